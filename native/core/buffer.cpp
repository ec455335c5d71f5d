#include "buffer.hpp"

#include "device.hpp"
#include "error.hpp"
#include "first_touch.hpp"
#include "staging.hpp"
#include "transient.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace kp {

struct Buffer::Side final : DeviceSide {
    Device& device;
    VkBuffer buffer = VK_NULL_HANDLE;
    explicit Side(Device& d) : device(d) {}
    ~Side() override { device.vk().vkDestroyBuffer(device.handle(), buffer, nullptr); }
};

std::shared_ptr<Buffer::Side> Buffer::make_side(const void* next, VkMemoryRequirements& needs) {
    if (nbytes_ > UINT64_MAX / 2)
        throw Error(ErrorKind::out_of_memory,
                    "A tensor of " + std::to_string(nbytes_) + " bytes is larger than any memory");
    auto side = std::make_shared<Side>(device());
    auto& vk = device().vk();

    VkBufferCreateInfo create{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    create.pNext = next;
    create.size = handle_size();
    create.usage = buffer_usage;
    if (device().buffer_addresses()) create.usage |= VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
    device().share(create);
    // A size above it is not for vkCreateBuffer to refuse: passing it is invalid use.
    if (const uint64_t limit = device().physical().max_buffer_size; create.size > limit)
        throw Error(ErrorKind::out_of_memory,
                    "A tensor of " + std::to_string(nbytes_) + " bytes is larger than any buffer of '" +
                        device().physical().properties.deviceName + "' (maxBufferSize " +
                        std::to_string(limit) + " bytes): split it into several tensors");
    if (const VkResult result = vk.vkCreateBuffer(device().handle(), &create, nullptr, &side->buffer);
        result != VK_SUCCESS)
        throw_vk(result, "vkCreateBuffer", "a tensor of " + std::to_string(nbytes_) + " bytes");
    vk.vkGetBufferMemoryRequirements(device().handle(), side->buffer, &needs);
    return side;
}

void Buffer::bind(std::shared_ptr<Side> side) {
    check_vk(device().vk().vkBindBufferMemory(device().handle(), side->buffer, side->memory.memory(),
                                              side->memory.offset()),
             "vkBindBufferMemory", "a tensor");
    buffer_ = side->buffer;
    address(side->memory);
    device_side_ = std::move(side);
}

Buffer::Buffer(std::shared_ptr<Device> owner, const void* data, uint64_t nbytes, MemoryType type)
    : Resource(std::move(owner), ObjectKind::buffer, nbytes, type) {
    allocate();
    if (type == MemoryType::device) make_host_copy();
    if (std::byte* host = host_data())
        first_copy(host, data, nbytes);
    else
        write(data, 0, nbytes);
}

Buffer::Buffer(std::shared_ptr<Device> owner, std::optional<FillPattern> fill, uint64_t nbytes,
               MemoryType type)
    : Resource(std::move(owner), ObjectKind::buffer, nbytes, type) {
    allocate();
    if (fill && nbytes != 0) fill_device(*fill);
    if (type == MemoryType::device) defer_host_copy(std::move(fill));
}

void Buffer::allocate() {
    VkMemoryRequirements needs{};
    auto side = make_side(nullptr, needs);

    MemoryUse use = MemoryUse::device;
    if (memory_type_ == MemoryType::host) {
        use = MemoryUse::host;
    } else if (memory_type_ == MemoryType::device_and_host) {
        use = MemoryUse::device_and_host;
        if (!device().memory().has_device_and_host(needs.memoryTypeBits))
            device().note_once(
                "This device has no memory that is both device-local and host-visible: deviceAndHost "
                "tensors are placed in host memory");
    }
    side->memory = device().memory().allocate(needs, use, MemoryPool::buffers, "a tensor", handle_size());
    bind(std::move(side));
}

Buffer::Buffer(std::shared_ptr<Device> owner, HostRange range)
    : Resource(std::move(owner), ObjectKind::buffer, range.nbytes, MemoryType::host) {
    check_host_import(device(), range);
    VkExternalMemoryBufferCreateInfo external{VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO};
    external.handleTypes = host_import_handle;
    VkMemoryRequirements needs{};
    auto side = make_side(&external, needs);
    read_only_ = range.read_only;
    side->memory = import_host(device(), range, needs);
    side->host_owner = std::move(range.owner);
    bind(std::move(side));
    note_on_device();
}

Buffer::~Buffer() { finalize(); }

void Buffer::release(std::vector<Point> points) {
    end_transfers();
    buffer_ = VK_NULL_HANDLE;
    Resource::release(std::move(points));
}

uint64_t Buffer::device_address() const noexcept {
    if (!device().buffer_addresses() || buffer_ == VK_NULL_HANDLE) return 0;
    VkBufferDeviceAddressInfo info{VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO};
    info.buffer = buffer_;
    return device().vk().vkGetBufferDeviceAddress(device().handle(), &info);
}

void Buffer::set_name(const std::string& name) {
    Resource::set_name(name);
    name_handles([this](const std::string& given) {
        device().name_handle(VK_OBJECT_TYPE_BUFFER, handle_value(buffer_), given);
    });
}

void Buffer::fill_device(const FillPattern& pattern) {
    if (direct_) {
        pattern.write(direct_, nbytes_);
        flush(device_memory());
        return;
    }
    // On the device, and nobody waits for it: what comes later is ordered after what it leaves behind.
    auto& vk = device().vk();
    if (const auto word = pattern.word()) {
        leave_behind(submit_transient(device(), [&](VkCommandBuffer commands) {
            vk.vkCmdFillBuffer(commands, buffer_, 0, handle_size(), *word);
        }));
        return;
    }
    // A few repetitions go in with the commands; the device doubles what is there until it reaches the end.
    constexpr uint64_t most_seed = 64 * 1024;  // vkCmdUpdateBuffer's limit, and whole words
    const uint64_t unit = std::lcm(pattern.period(), uint64_t{4});
    std::vector<std::byte> seed(std::min(handle_size(), std::max<uint64_t>(1, most_seed / unit) * unit));
    pattern.write(seed.data(), seed.size());
    if (seed.size() > most_seed) {
        device().staging().upload(buffer_, 0, seed.data(), std::min(seed.size(), nbytes_));
    }
    const bool inlined = seed.size() <= most_seed;
    if (!inlined && seed.size() >= nbytes_) return;
    leave_behind(submit_transient(device(), [&](VkCommandBuffer commands) {
        if (inlined) vk.vkCmdUpdateBuffer(commands, buffer_, 0, seed.size(), seed.data());
        VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
        barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
        barrier.dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT;
        for (uint64_t done = seed.size(); done < handle_size();) {
            vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT,
                                    0, 1, &barrier, 0, nullptr, 0, nullptr);
            const VkBufferCopy region{0, done, std::min(done, handle_size() - done)};
            vk.vkCmdCopyBuffer(commands, buffer_, buffer_, 1, &region);
            done += region.size;
        }
    }));
}

void Buffer::download(void* out, uint64_t offset, uint64_t size) {
    device().staging().download(buffer_, offset, out, size);
}

void Buffer::upload(const void* data, uint64_t offset, uint64_t size) {
    device().staging().upload(buffer_, offset, data, size);
}

}  // namespace kp
