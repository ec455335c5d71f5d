// A tensor's native side: one VkBuffer in suballocated memory.
#pragma once

#include "base/number_cast.hpp"
#include "resource/host_import.hpp"
#include "resource/resource.hpp"
#include "resource/runs.hpp"
#include "resource/shared_memory.hpp"

namespace kp {

class Buffer final : public Resource {
public:
    // `data` (nbytes bytes) becomes the host's contents; a `storage` buffer has no host copy and uploads
    // it.
    Buffer(std::shared_ptr<Device> device, const void* data, uint64_t nbytes, MemoryType type);
    // `fill` repeats through the device's memory and through the host copy; without it, both begin
    // undefined. The host copy is made when it is needed. `required`: what its memory must have beyond what
    // the type asks for. `priority`: see MemoryAllocator::allocate.
    Buffer(std::shared_ptr<Device> device, std::optional<FillPattern> fill, uint64_t nbytes, MemoryType type,
           VkMemoryPropertyFlags required = 0, float priority = default_priority);
    // Of type `host`, over memory of the process, without a copy (for the conditions see
    // resource/host_import.hpp).
    Buffer(std::shared_ptr<Device> device, HostRange range);
    // Over memory that others use too, of any type but `device`; new memory is filled with zeros.
    Buffer(std::shared_ptr<Device> device, uint64_t nbytes, MemoryType type, SharedMemory& shared);
    ~Buffer() override;

    [[nodiscard]] VkBuffer handle() const noexcept { return buffer_; }
    // The VkBuffer's size: nbytes rounded up to a multiple of four, so that fills and copies of words reach
    // the end. Vulkan does not allow buffers of zero bytes, so an empty tensor's buffer has one word, which
    // is unused.
    [[nodiscard]] uint64_t handle_size() const noexcept {
        return nbytes_ == 0 ? 4 : (nbytes_ + 3) & ~uint64_t{3};
    }
    [[nodiscard]] uint64_t device_address() const noexcept;
    // A new descriptor of memory that can be shared.
    [[nodiscard]] Descriptor descriptor();
    void set_name(const std::string& name) override;

    // Like write(), for `count` numbers of the type `from`, which become numbers of the type `to` on their
    // way into memory that the host addresses. False if one does not fit: integers are checked before the
    // first is written, floats piece by piece, so that the pieces before are written then.
    [[nodiscard]] bool write_numbers(const void* data, uint64_t count, Number from, Number to,
                                     uint64_t offset);
    // Like read() and write(), for a strided part. No byte beside the runs is written.
    void read_runs(void* out, const Runs& runs);
    void write_runs(const void* data, const Runs& runs);

private:
    void stage(bool up, std::byte* host, const Runs& runs);
    [[nodiscard]] bool read_between(const Runs& runs) const noexcept;
    void allocate(VkMemoryPropertyFlags required = 0, float priority = default_priority);
    void fill_device(const FillPattern& pattern);
    struct Side;
    [[nodiscard]] std::shared_ptr<Side> make_side(const void* next, VkMemoryRequirements& needs);
    void bind(std::shared_ptr<Side> side);

    void download(void* out, uint64_t offset, uint64_t size) override;
    void upload(const void* data, uint64_t offset, uint64_t size) override;
    [[nodiscard]] bool collect_upload(const void* data) override;
    void release(std::vector<Point> points) override;

    VkBuffer buffer_ = VK_NULL_HANDLE;
    Descriptor imported_;  // of the memory, if it was imported
};

// The memory types that tensors of this type and with these properties can have, best first. Throws
// Error(unimplemented) if there is none.
[[nodiscard]] std::vector<uint32_t> memory_types_for(Device& device, MemoryType type,
                                                     VkMemoryPropertyFlags required);

}  // namespace kp
