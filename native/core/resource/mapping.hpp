// Gives the host access to the device's memory of a tensor, or of a part of it.
//
// Vulkan lets the host read memory while the device reads it, and allows no other concurrent access. So a
// mapping that reads waits for pending work that writes the memory, and holds back recordings that would
// write it. A mapping that writes waits for all pending work, and holds back every recording that uses the
// memory. A recording that is held back raises at its next evaluation, until the mapping ends. The host's
// other ways to the same bytes, read() and write(), raise too. An evaluation pays nothing for this: the
// mapping notifies the recordings that list the memory among their uses.
#pragma once

#include "resource/resource.hpp"

#include <atomic>
#include <cstddef>
#include <vector>

namespace kp {

class Mapping {
public:
    // Holds recordings back. Throws if another mapping overlaps, or if the object of `range` was destroyed.
    // The caller then waits for pending() and calls begin(). `in_place`: over the device's memory itself,
    // if the host addresses it.
    Mapping(const ResourceRange& range, bool writes, bool in_place = true);
    ~Mapping();
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;

    // The ends of the work to wait for.
    [[nodiscard]] const std::vector<Point>& pending() const noexcept { return pending_; }
    // Call it when that work is done. With `reads`, brings the device's writes to the host.
    void begin(bool reads);
    // The first byte; null if the host does not address the memory, or if `in_place` is false.
    [[nodiscard]] std::byte* data() const noexcept { return data_; }
    // For a mapping without data(): copy all the memory's bytes to `out`, or from `data`. They block.
    void read(void* out);
    void write(const void* data);
    [[nodiscard]] const ResourceRange& range() const noexcept { return range_; }
    [[nodiscard]] bool is_open() const noexcept { return open_; }
    // Brings the host's writes to the device and lets recordings continue. Further calls do nothing.
    void close();

private:
    ResourceRange range_;
    bool writes_;
    bool open_ = true;
    std::byte* data_ = nullptr;
    std::vector<Point> pending_;
    std::shared_ptr<void> kept_;
};

}  // namespace kp
