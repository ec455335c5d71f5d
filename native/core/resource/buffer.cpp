#include "resource/buffer.hpp"

#include "base/error.hpp"
#include "base/first_touch.hpp"
#include "device/device.hpp"
#include "device/initial_work.hpp"
#include "device/staging.hpp"
#include "memory/guard.hpp"
#include "resource/host_pages.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

namespace kp {
namespace {

// The value of undefined contents in a debug run.
constexpr char poison_bytes[] = {std::to_integer<char>(poison_value)};
constexpr std::string_view poison(poison_bytes, 1);

// `count` copies of `bytes`, each so far from the one before on either side.
template <uint64_t bytes>
void copy_row(std::byte* to, uint64_t to_stride, const std::byte* from, uint64_t from_stride,
              uint64_t count) noexcept {
    for (uint64_t at = 0; at < count; ++at) std::memcpy(to + at * to_stride, from + at * from_stride, bytes);
}

// The same for any size; those of elements need no call for each.
void copy_row(std::byte* to, uint64_t to_stride, const std::byte* from, uint64_t from_stride, uint64_t bytes,
              uint64_t count) noexcept {
    switch (bytes) {
    case 1: return copy_row<1>(to, to_stride, from, from_stride, count);
    case 2: return copy_row<2>(to, to_stride, from, from_stride, count);
    case 4: return copy_row<4>(to, to_stride, from, from_stride, count);
    case 8: return copy_row<8>(to, to_stride, from, from_stride, count);
    case 16: return copy_row<16>(to, to_stride, from, from_stride, count);
    default:
        for (uint64_t at = 0; at < count; ++at)
            std::memcpy(to + at * to_stride, from + at * from_stride, bytes);
    }
}

// Copies `size` packed bytes of the runs from `begin` to their places in `host`. `contents` begins with the
// buffer's byte `first`.
void pick(const Runs& runs, uint64_t begin, uint64_t size, const std::byte* contents, uint64_t first,
          std::byte* host) {
    runs.each_row(begin, size,
                  [&](uint64_t place, uint64_t packed, uint64_t bytes, uint64_t stride, uint64_t count) {
                      copy_row(host + packed, bytes, contents + (place - first), stride, bytes, count);
                  });
}

MemoryUse use_of(MemoryType type) noexcept {
    if (type == MemoryType::host) return MemoryUse::host;
    return type == MemoryType::device_and_host ? MemoryUse::device_and_host : MemoryUse::device;
}

// Of a tensor's VkBuffer.
VkBufferCreateInfo described(const Device& device, uint64_t size) noexcept {
    VkBufferCreateInfo create{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    create.size = size;
    create.usage = buffer_usage;
    if (device.buffer_addresses()) create.usage |= VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
    device.share(create);
    return create;
}

std::vector<uint32_t> types_for(Device& device, MemoryType type, uint32_t type_bits,
                                VkMemoryPropertyFlags required) {
    std::vector<uint32_t> types = device.memory().types_with(use_of(type), type_bits, required);
    if (types.empty())
        throw Error(ErrorKind::unimplemented,
                    std::string("'") + device.physical().properties.deviceName +
                        "' has no memory with all of these memory_flags for a tensor of this memory type; "
                        "mgr.get_device_properties().memory_types lists what it has");
    return types;
}

}  // namespace

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

    VkBufferCreateInfo create = described(device(), handle_size());
    create.pNext = next;
    // Check the size here: vkCreateBuffer need not refuse a larger one, and passing it is invalid use.
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
    if (!direct_) expect_initial_work();
}

Buffer::Buffer(std::shared_ptr<Device> owner, const void* data, uint64_t nbytes, MemoryType type)
    : Resource(std::move(owner), ObjectKind::buffer, nbytes, type) {
    allocate();
    if (type == MemoryType::device) {
        make_host_copy();
        begin_on_host();
    }
    if (std::byte* host = host_data())
        first_copy(host, data, nbytes);
    else
        begin_with(data);
}

Buffer::Buffer(std::shared_ptr<Device> owner, std::optional<FillPattern> fill, uint64_t nbytes,
               MemoryType type, VkMemoryPropertyFlags required, float priority)
    : Resource(std::move(owner), ObjectKind::buffer, nbytes, type) {
    allocate(required, priority);
    if (!fill && device().memory().options().debug) fill.emplace(poison);
    if (fill && nbytes != 0) fill_device(*fill);
    if (type != MemoryType::device) return;
    defer_host_copy(std::move(fill));
    begin_on_host();
}

std::vector<uint32_t> memory_types_for(Device& device, MemoryType type, VkMemoryPropertyFlags required) {
    // The types that a buffer may have do not depend on its size.
    const VkBufferCreateInfo create = described(device, 4);
    VkBuffer buffer = VK_NULL_HANDLE;
    check_vk(device.vk().vkCreateBuffer(device.handle(), &create, nullptr, &buffer), "vkCreateBuffer",
             "a query of memory");
    VkMemoryRequirements needs{};
    device.vk().vkGetBufferMemoryRequirements(device.handle(), buffer, &needs);
    device.vk().vkDestroyBuffer(device.handle(), buffer, nullptr);
    return types_for(device, type, needs.memoryTypeBits, required);
}

void Buffer::allocate(VkMemoryPropertyFlags required, float priority) {
    VkMemoryRequirements needs{};
    auto side = make_side(nullptr, needs);
    if (required != 0) {
        uint32_t bits = 0;
        for (const uint32_t each : types_for(device(), memory_type_, needs.memoryTypeBits, required))
            bits |= uint32_t{1} << each;
        needs.memoryTypeBits = bits;
    }
    if (memory_type_ == MemoryType::device_and_host &&
        !device().memory().has_device_and_host(needs.memoryTypeBits))
        device().note_once("This device has no memory that is both device-local and host-visible: "
                           "deviceAndHost tensors are placed in host memory");
    device().retired().collect();
    side->memory = device().memory().allocate(needs, use_of(memory_type_), MemoryPool::buffers, "a tensor",
                                              handle_size(), priority);
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
    const std::byte* data = range.data;
    side->pages = import_pages(shared_device(), range, needs);
    side->host_owner = std::move(range.owner);  // empty if it is the import's now
    side->memory =
        side->pages->memory.part(reinterpret_cast<uintptr_t>(data) - side->pages->begin, needs.size);
    bind(std::move(side));
    share_pages(data);
}

Buffer::Buffer(std::shared_ptr<Device> owner, uint64_t nbytes, MemoryType type, SharedMemory& shared)
    : Resource(std::move(owner), ObjectKind::buffer, nbytes, type) {
    const bool importing = shared.fd.is_open();
    check_sharing(device(), importing);
    VkExternalMemoryBufferCreateInfo external{VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO};
    external.handleTypes = shared_handle;
    VkMemoryRequirements needs{};
    auto side = make_side(&external, needs);
    device().retired().collect();
    side->memory = share_memory(device(), shared, side->buffer, needs, use_of(type));
    side->pages = kp::shared_pages(shared_device(), shared.key, nbytes);
    bind(std::move(side));
    share_pages(reinterpret_cast<const std::byte*>(shared.key));
    imported_ = std::move(shared.fd);
    if (!importing) fill_device(FillPattern(std::string_view("\0", 1)));
}

Descriptor Buffer::descriptor() {
    return imported_.is_open() ? imported_.copy() : descriptor_of(device(), device_memory().memory());
}

Buffer::~Buffer() { finalize(); }

void Buffer::release(std::vector<Point> points) {
    end_transfers();
    buffer_ = VK_NULL_HANDLE;
    imported_ = Descriptor();
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
    InitialWork& work = device().initial_work();
    if (const auto word = pattern.word()) {
        work.fill(initial_target(), nbytes_,
                  [&owner = device(), buffer = buffer_, size = handle_size(),
                   word = *word](VkCommandBuffer commands) {
                      owner.vk().vkCmdFillBuffer(commands, buffer, 0, size, word);
                  });
        return;
    }
    // The host provides a few repetitions; the device doubles them until it reaches the end.
    constexpr uint64_t least_seed = 64 * 1024;
    const uint64_t unit = std::lcm(pattern.period(), uint64_t{4});
    std::vector<std::byte> seed(std::min(handle_size(), std::max<uint64_t>(1, least_seed / unit) * unit));
    pattern.write(seed.data(), seed.size());
    const auto grow = [&owner = device(), buffer = buffer_, begin = seed.size(),
                       end = handle_size()](VkCommandBuffer commands) {
        const auto& vk = owner.vk();
        VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
        barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
        barrier.dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT;
        for (uint64_t done = begin; done < end;) {
            vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT,
                                    0, 1, &barrier, 0, nullptr, 0, nullptr);
            const VkBufferCopy region{0, done, std::min(done, end - done)};
            vk.vkCmdCopyBuffer(commands, buffer, buffer, 1, &region);
            done += region.size;
        }
    };
    const auto all = [&owner = device(), buffer = buffer_, size = seed.size(),
                      grow](VkCommandBuffer commands, VkBuffer from, uint64_t offset) {
        const VkBufferCopy region{offset, 0, size};
        owner.vk().vkCmdCopyBuffer(commands, from, buffer, 1, &region);
        grow(commands);
    };
    if (work.upload(initial_target(), seed.data(), seed.size(), all)) return;
    device().staging().upload(buffer_, 0, seed.data(), seed.size());
    if (seed.size() < handle_size()) work.fill(initial_target(), handle_size() - seed.size(), grow);
}

void Buffer::download(void* out, uint64_t offset, uint64_t size) {
    device().staging().download(buffer_, offset, out, size);
}

void Buffer::upload(const void* data, uint64_t offset, uint64_t size) {
    device().staging().upload(buffer_, offset, data, size);
}

bool Buffer::write_numbers(const void* data, uint64_t count, Number from, Number to, uint64_t offset) {
    struct DoesNotFit {};
    // The check brings a piece into the nearest cache, where the conversion finds it. With larger pieces, the
    // processor no longer reads one piece while it writes the piece before.
    constexpr uint64_t piece = 512;
    const uint64_t size = count * bytes_of(to);
    require_unmapped(true, offset, size);
    if (!is_float(to) && !fit(from, to, data, count)) return false;
    const auto* const numbers = static_cast<const std::byte*>(data);
    try {
        transfer("write", true, size == nbytes_, {offset, size, true}, [&] {
            for (uint64_t done = 0; done < count; done += piece) {
                const uint64_t now = std::min(piece, count - done);
                const std::byte* const next = numbers + done * bytes_of(from);
                if (is_float(to) && !fit(from, to, next, now)) throw DoesNotFit();
                convert(from, to, next, now, direct_ + offset + done * bytes_of(to));
            }
        });
    } catch (const DoesNotFit&) {
        return false;
    }
    return true;
}

void Buffer::read_runs(void* out, const Runs& runs) {
    require_unmapped(false, runs.offset(), runs.extent());
    auto* const host = static_cast<std::byte*>(out);
    transfer("read", false, false, {runs.offset(), runs.extent(), false}, [&] {
        if (reads_staged()) {
            stage(false, host, runs);
            return;
        }
        pick(runs, 0, runs.bytes(), direct_, 0, host);
    });
}

void Buffer::write_runs(const void* data, const Runs& runs) {
    require_unmapped(true, runs.offset(), runs.extent());
    const auto* const host = static_cast<const std::byte*>(data);
    transfer("write", true, false, {runs.offset(), runs.extent(), runs.bytes() == runs.extent()}, [&] {
        if (!direct_) {
            stage(true, const_cast<std::byte*>(host), runs);
            return;
        }
        runs.each_row(0, runs.bytes(),
                      [&](uint64_t place, uint64_t packed, uint64_t bytes, uint64_t stride, uint64_t count) {
                          copy_row(direct_ + place, stride, host + packed, bytes, bytes, count);
                      });
    });
}

// Whether it takes less time to read the bytes between the runs too, and pick the runs out of them. On a CPU
// driver a copy of a run takes as long as 30 bytes of a dense one. Copy engines of GPUs take longer for each
// run.
bool Buffer::read_between(const Runs& runs) const noexcept {
    const bool cpu = device().physical().properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    const uint64_t worth = cpu ? 32 : 256;
    return runs.ascending() && runs.extent() / worth < runs.bytes() / runs.length();
}

void Buffer::stage(bool up, std::byte* host, const Runs& runs) {
    if (runs.bytes() == 0) return;
    if (!up && read_between(runs)) {
        device().staging().download(buffer_, runs.offset(), runs.extent(),
                                    [&](const std::byte* landed, uint64_t begin, uint64_t size) {
                                        const uint64_t first = runs.packed(runs.offset() + begin);
                                        const uint64_t end = runs.packed(runs.offset() + begin + size);
                                        pick(runs, first, end - first, landed, runs.offset() + begin, host);
                                    });
        return;
    }
    // A command buffer holds a limited number of copies, whatever the size of the runs.
    constexpr uint64_t most_copies = 64 * 1024;
    const uint64_t fitting = runs.length() > device().staging().slot_bytes() / most_copies
                                 ? device().staging().slot_bytes()
                                 : runs.length() * most_copies;
    std::vector<VkBufferCopy> copies;
    const auto record = [&](VkCommandBuffer commands, VkBuffer buffer, uint64_t host_offset, uint64_t begin,
                            uint64_t size) {
        copies.clear();
        runs.each(begin, size, [&](uint64_t place, uint64_t packed, uint64_t bytes) {
            const uint64_t there = host_offset + packed - begin;
            copies.push_back(up ? VkBufferCopy{there, place, bytes} : VkBufferCopy{place, there, bytes});
        });
        device().vk().vkCmdCopyBuffer(commands, up ? buffer : buffer_, up ? buffer_ : buffer,
                                      static_cast<uint32_t>(copies.size()), copies.data());
    };
    if (up)
        device().staging().upload(host, runs.bytes(), fitting, record);
    else
        device().staging().download(host, runs.bytes(), fitting, record);
}

bool Buffer::collect_upload(const void* data) {
    return device().initial_work().upload(initial_target(), data, nbytes_,
                                          [&owner = device(), buffer = buffer_, size = nbytes_](
                                              VkCommandBuffer commands, VkBuffer from, uint64_t offset) {
                                              const VkBufferCopy region{offset, 0, size};
                                              owner.vk().vkCmdCopyBuffer(commands, from, buffer, 1, &region);
                                          });
}

}  // namespace kp
