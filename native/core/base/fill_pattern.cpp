#include "base/fill_pattern.hpp"

#include "base/first_touch.hpp"

#include <cstring>
#include <span>

namespace kp {
namespace {

bool repeats(std::string_view bytes, size_t period) {
    return bytes.size() % period == 0 && bytes.substr(period) == bytes.substr(0, bytes.size() - period);
}

}  // namespace

FillPattern::FillPattern(std::string_view element) {
    size_t period = 1;
    while (period < element.size() && !repeats(element, period)) ++period;
    bytes_ = element.empty() ? std::string(1, '\0') : std::string(element.substr(0, period));
}

std::optional<uint32_t> FillPattern::word() const noexcept {
    if (4 % period() != 0) return std::nullopt;
    char bytes[4];
    for (size_t i = 0; i < 4; ++i) bytes[i] = bytes_[i % period()];
    uint32_t word = 0;
    std::memcpy(&word, bytes, 4);
    return word;
}

void FillPattern::write(std::byte* to, uint64_t size) const noexcept {
    first_fill(to, std::as_bytes(std::span(bytes_)), size);
}

}  // namespace kp
