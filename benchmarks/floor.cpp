// What the engine is measured against, as a careful C++ program does it: an instance, a device and one queue
// with a timeline; c = a * b over 3 x 4 KiB, recorded once and submitted many times; and memcpy.
//
// floor.py calls the functions at the end. Each takes its times itself, around the work alone, and returns
// seconds. A function that fails returns null or a negative number and leaves the reason in floor_error().
//
// Device functions come from vkGetDeviceProcAddr: like the engine's own table, they go to the driver with no
// trampoline.
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_raii.hpp>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include <sys/mman.h>

#define FLOOR_API extern "C" __attribute__((visibility("default")))

namespace {

using Clock = std::chrono::steady_clock;
using Access = vk::AccessFlagBits;
using Memory = vk::MemoryPropertyFlagBits;
using Stage = vk::PipelineStageFlagBits;

// Never closed, as any Vulkan program keeps its loader.
const vk::raii::Context& context() {
    static const auto* const opened = new vk::raii::Context;
    return *opened;
}

struct Device {
    vk::raii::Instance instance;
    vk::raii::PhysicalDevice physical = nullptr;
    uint32_t family = 0;
    vk::raii::Device handle = nullptr;
    vk::raii::Queue queue = nullptr;

    Device() : instance(make_instance()) {
        choose_physical_device();
        // What the engine enables by default, so that the driver makes the same code of the same shader.
        vk::PhysicalDeviceTimelineSemaphoreFeatures timeline(VK_TRUE);
        vk::PhysicalDeviceFeatures features;
        features.robustBufferAccess = VK_TRUE;
        const float priority = 1.0F;
        const vk::DeviceQueueCreateInfo one({}, family, 1, &priority);
        handle = vk::raii::Device(
            physical, vk::DeviceCreateInfo({}, 1, &one, 0, nullptr, 0, nullptr, &features, &timeline));
        queue = handle.getQueue(family, 0);
    }

    static vk::raii::Instance make_instance() {
        vk::ApplicationInfo application;
        application.apiVersion = VK_API_VERSION_1_2;
        return {context(), vk::InstanceCreateInfo({}, &application)};
    }

    // The benchmarks let the loader see one driver only, so the first device with a compute queue is the one.
    void choose_physical_device() {
        for (auto& candidate : vk::raii::PhysicalDevices(instance)) {
            family = 0;
            for (const auto& each : candidate.getQueueFamilyProperties()) {
                if (each.queueFlags & vk::QueueFlagBits::eCompute) {
                    physical = std::move(candidate);
                    return;
                }
                ++family;
            }
        }
        throw std::runtime_error("The Vulkan driver offers no device with a compute queue");
    }

    // The first memory type of `allowed` with all of `required`; one that has `preferred` too where there is
    // such.
    [[nodiscard]] uint32_t memory_type(uint32_t allowed, vk::MemoryPropertyFlags required,
                                       vk::MemoryPropertyFlags preferred) const {
        const auto memory = physical.getMemoryProperties();
        for (const auto wanted : {required | preferred, required})
            for (uint32_t type = 0; type < memory.memoryTypeCount; ++type)
                if ((allowed >> type & 1U) != 0 &&
                    (memory.memoryTypes[type].propertyFlags & wanted) == wanted)
                    return type;
        throw std::runtime_error("The Vulkan driver has no memory type with the flags " +
                                 vk::to_string(required));
    }
};

constexpr uint64_t size = 1024 * sizeof(float);

// A buffer with memory of its own.
struct Buffer {
    vk::raii::Buffer handle;
    vk::raii::DeviceMemory memory;

    Buffer(const Device& device, vk::MemoryPropertyFlags required, vk::MemoryPropertyFlags preferred = {})
        : handle(device.handle,
                 {{},
                  size,
                  vk::BufferUsageFlagBits::eStorageBuffer | vk::BufferUsageFlagBits::eTransferSrc |
                      vk::BufferUsageFlagBits::eTransferDst}),
          memory(nullptr) {
        const auto needs = handle.getMemoryRequirements();
        memory = {device.handle, {needs.size, device.memory_type(needs.memoryTypeBits, required, preferred)}};
        handle.bindMemory(*memory, 0);
    }
};

// Two recordings: the dispatch alone, and upload of a and b, dispatch, download of c. The barriers are the
// fewest that are right for one submission at a time: the host waits for each, and nothing else touches the
// buffers.
class Floor {
public:
    // `groups` times the shader's local size are at least 1,024 invocations.
    Floor(const uint32_t* spirv, size_t bytes, uint32_t groups) : groups_(groups) {
        const auto& device = device_.handle;
        for (size_t i = 0; i < mapped_.size(); ++i)
            mapped_[i] = static_cast<float*>(staging_[i].memory.mapMemory(0, VK_WHOLE_SIZE));
        const vk::SemaphoreTypeCreateInfo type(vk::SemaphoreType::eTimeline);
        timeline_ = {device, vk::SemaphoreCreateInfo({}, &type)};
        create_pipeline(spirv, bytes);
        create_descriptors();
        pool_ = {device, {vk::CommandPoolCreateFlagBits::eResetCommandBuffer, device_.family}};
        vk::raii::CommandBuffers made(device, {*pool_, vk::CommandBufferLevel::ePrimary, 2});
        dispatch_ = std::move(made[0]);
        roundtrip_ = std::move(made[1]);
        dispatch_.begin({});
        add_dispatch(dispatch_);
        dispatch_.end();
        record_roundtrip();
    }

    // Submit, and wait for the end.
    void dispatch() { run(*dispatch_); }
    void roundtrip() { run(*roundtrip_); }
    void rerecorded_roundtrip() {
        record_roundtrip();
        run(*roundtrip_);
    }

    // Host memory of a, b and c.
    [[nodiscard]] float* host(size_t index) const noexcept { return mapped_[index]; }

private:
    void create_pipeline(const uint32_t* spirv, size_t bytes) {
        const auto& device = device_.handle;
        std::array<vk::DescriptorSetLayoutBinding, 3> bindings;
        for (uint32_t i = 0; i < bindings.size(); ++i)
            bindings[i] = {i, vk::DescriptorType::eStorageBuffer, 1, vk::ShaderStageFlagBits::eCompute};
        set_layout_ = {device, vk::DescriptorSetLayoutCreateInfo({}, bindings)};
        layout_ = {device, vk::PipelineLayoutCreateInfo({}, *set_layout_)};
        const vk::raii::ShaderModule module(device, vk::ShaderModuleCreateInfo({}, bytes, spirv));
        pipeline_ = {device, nullptr,
                     vk::ComputePipelineCreateInfo(
                         {}, {{}, vk::ShaderStageFlagBits::eCompute, *module, "main"}, *layout_)};
    }

    void create_descriptors() {
        const auto& device = device_.handle;
        const vk::DescriptorPoolSize room(vk::DescriptorType::eStorageBuffer, 3);
        descriptors_ = {device, {vk::DescriptorPoolCreateFlagBits::eFreeDescriptorSet, 1, room}};
        set_ = std::move(vk::raii::DescriptorSets(device, {*descriptors_, *set_layout_}).front());
        for (uint32_t i = 0; i < local_.size(); ++i) {
            const vk::DescriptorBufferInfo buffer(*local_[i].handle, 0, size);
            device.updateDescriptorSets(
                vk::WriteDescriptorSet(*set_, i, 0, vk::DescriptorType::eStorageBuffer, {}, buffer), {});
        }
    }

    void add_dispatch(const vk::raii::CommandBuffer& commands) const {
        commands.bindPipeline(vk::PipelineBindPoint::eCompute, *pipeline_);
        commands.bindDescriptorSets(vk::PipelineBindPoint::eCompute, *layout_, 0, *set_, {});
        commands.dispatch(groups_, 1, 1);
    }

    void add_barrier(Stage from, Access written, Stage to, Access used) const {
        roundtrip_.pipelineBarrier(from, to, {}, vk::MemoryBarrier(written, used), {}, {});
    }

    void record_roundtrip() {
        const vk::BufferCopy whole(0, 0, size);
        roundtrip_.begin({});
        for (size_t i = 0; i < 2; ++i) roundtrip_.copyBuffer(*staging_[i].handle, *local_[i].handle, whole);
        add_barrier(Stage::eTransfer, Access::eTransferWrite, Stage::eComputeShader, Access::eShaderRead);
        add_dispatch(roundtrip_);
        add_barrier(Stage::eComputeShader, Access::eShaderWrite, Stage::eTransfer, Access::eTransferRead);
        roundtrip_.copyBuffer(*local_[2].handle, *staging_[2].handle, whole);
        add_barrier(Stage::eTransfer, Access::eTransferWrite, Stage::eHost, Access::eHostRead);
        roundtrip_.end();
    }

    void run(vk::CommandBuffer commands) {
        const uint64_t value = ++value_;
        const vk::TimelineSemaphoreSubmitInfo signal({}, value);
        device_.queue.submit(vk::SubmitInfo({}, {}, commands, *timeline_, &signal));
        if (device_.handle.waitSemaphores({{}, *timeline_, value}, UINT64_MAX) != vk::Result::eSuccess)
            throw std::runtime_error("vkWaitSemaphores timed out");
    }

    static constexpr vk::MemoryPropertyFlags host_memory = Memory::eHostVisible | Memory::eHostCoherent;

    Device device_;
    uint32_t groups_;
    std::array<Buffer, 3> local_{Buffer{device_, Memory::eDeviceLocal}, Buffer{device_, Memory::eDeviceLocal},
                                 Buffer{device_, Memory::eDeviceLocal}};
    std::array<Buffer, 3> staging_{Buffer{device_, host_memory, Memory::eHostCached},
                                   Buffer{device_, host_memory, Memory::eHostCached},
                                   Buffer{device_, host_memory, Memory::eHostCached}};
    std::array<float*, 3> mapped_{};
    vk::raii::DescriptorSetLayout set_layout_ = nullptr;
    vk::raii::PipelineLayout layout_ = nullptr;
    vk::raii::Pipeline pipeline_ = nullptr;
    vk::raii::DescriptorPool descriptors_ = nullptr;
    vk::raii::DescriptorSet set_ = nullptr;
    vk::raii::CommandPool pool_ = nullptr;
    vk::raii::CommandBuffer dispatch_ = nullptr;
    vk::raii::CommandBuffer roundtrip_ = nullptr;
    vk::raii::Semaphore timeline_ = nullptr;
    uint64_t value_ = 0;
};

// Two blocks of host memory as a careful C program makes them: in huge pages, touched before.
class CopyPair {
public:
    explicit CopyPair(size_t bytes) : bytes_(bytes), from_(make(bytes, 1)), to_(make(bytes, 2)) {}

    void copy() const noexcept {
        std::memcpy(to_.get(), from_.get(), bytes_);
        // Nobody reads the copy: without this the compiler may leave it out.
        asm volatile("" : : "r"(to_.get()) : "memory");
    }

private:
    struct Free {
        void operator()(void* block) const noexcept { std::free(block); }
    };
    using Block = std::unique_ptr<void, Free>;

    static Block make(size_t bytes, int content) {
        constexpr size_t huge_page = size_t{2} << 20;
        const size_t rounded = (bytes + huge_page - 1) / huge_page * huge_page;
        Block block(std::aligned_alloc(huge_page, rounded));
        if (!block) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
        madvise(block.get(), rounded, MADV_HUGEPAGE);
#endif
        std::memset(block.get(), content, rounded);
        return block;
    }

    size_t bytes_;
    Block from_;
    Block to_;
};

thread_local std::string last_error;

// What `make` makes; null after an error.
template <class Make>
auto made(Make&& make) -> decltype(make()) {
    try {
        return make();
    } catch (const std::exception& error) {
        last_error = error.what();
        return nullptr;
    }
}

// Seconds of `times` times the work; negative after an error.
template <class Work>
double timed(uint64_t times, Work&& work) {
    try {
        const auto start = Clock::now();
        for (uint64_t i = 0; i < times; ++i) work();
        return std::chrono::duration<double>(Clock::now() - start).count();
    } catch (const std::exception& error) {
        last_error = error.what();
        return -1.0;
    }
}

}  // namespace

FLOOR_API const char* floor_error() { return last_error.c_str(); }

FLOOR_API Floor* floor_open(const uint32_t* spirv, uint64_t bytes, uint32_t groups) {
    return made([&] { return new Floor(spirv, bytes, groups); });
}
FLOOR_API void floor_close(Floor* floor) { delete floor; }
FLOOR_API float* floor_host(Floor* floor, uint32_t index) { return floor->host(index); }

// Submit a recording and wait, `times` times; the last records it anew each time.
FLOOR_API double floor_eval(Floor* floor, uint64_t times) {
    return timed(times, [&] { floor->dispatch(); });
}
FLOOR_API double floor_roundtrip(Floor* floor, uint64_t times) {
    return timed(times, [&] { floor->roundtrip(); });
}
FLOOR_API double floor_rerecorded_roundtrip(Floor* floor, uint64_t times) {
    return timed(times, [&] { floor->rerecorded_roundtrip(); });
}

// Makes an instance and a device with one queue.
FLOOR_API double floor_create() {
    std::unique_ptr<Device> device;
    return timed(1, [&] { device = std::make_unique<Device>(); });
}

FLOOR_API CopyPair* floor_copy_open(uint64_t bytes) {
    return made([&] { return new CopyPair(bytes); });
}
FLOOR_API void floor_copy_close(CopyPair* pair) { delete pair; }
FLOOR_API double floor_copy(const CopyPair* pair, uint64_t times) {
    return timed(times, [&] { pair->copy(); });
}
