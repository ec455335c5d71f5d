// Bytes that repeat through memory: the initial contents of mgr.zeros and mgr.full. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kp {

class FillPattern {
public:
    // From one element; kept as its shortest period, so that 1.0 + 1.0j is as cheap as a float.
    explicit FillPattern(std::string_view element);

    // Bytes until it repeats.
    [[nodiscard]] uint64_t period() const noexcept { return bytes_.size(); }
    // The 32-bit word that vkCmdFillBuffer would repeat; nothing if the period does not divide a word.
    [[nodiscard]] std::optional<uint32_t> word() const noexcept;
    // Fills `size` bytes, which may be fresh memory.
    void write(std::byte* to, uint64_t size) const noexcept;

private:
    std::string bytes_;
};

}  // namespace kp
