// The host at work in the device's memory of a tensor, or of a part of it.
//
// Vulkan lets the host read memory while the device reads it, and nothing else at the same time. So a mapping that reads
// waits for pending work that writes the memory, and holds back recordings that would write it; a mapping that writes waits for all
// pending work, and holds back every recording that uses it. Held back means: their next evaluation raises, until the
// mapping ends. The host's other ways to the same bytes, read() and write(), raise too. That costs an evaluation nothing: recordings that list the memory among what they use are told.
#pragma once

#include "resource/resource.hpp"

#include <atomic>
#include <cstddef>
#include <vector>

namespace kp {

class Mapping {
public:
    // Holds recordings back. Throws when another mapping is in the way, or what `range` names was destroyed. The caller then
    // waits for pending() and calls begin(). `in_place`: over the device's memory itself, where the host addresses it.
    Mapping(const ResourceRange& range, bool writes, bool in_place = true);
    ~Mapping();
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;

    // The ends of the work to wait for.
    [[nodiscard]] const std::vector<Point>& pending() const noexcept { return pending_; }
    // The work is done: with `reads`, brings what the device wrote to the host.
    void begin(bool reads);
    // The first byte; null where the host does not address the memory, or is not to.
    [[nodiscard]] std::byte* data() const noexcept { return data_; }
    // Where data() is null: the memory's bytes, all of them, copied to `out`, or from `data`. Block.
    void read(void* out);
    void write(const void* data);
    [[nodiscard]] const ResourceRange& range() const noexcept { return range_; }
    [[nodiscard]] bool is_open() const noexcept { return open_; }
    // Brings what the host wrote to the device, and lets recordings go on. Again: nothing.
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
