// The parts of pipelines that algorithms share: shader modules, layouts, pipelines, descriptor pools, the
// cache on disk.
//
// Modules, layouts and pipelines are found by content. They live while an algorithm, a recording or Python
// uses them. The `recent` modules and pipelines that were requested last stay alive without users, so
// making an algorithm again costs a look-up and a descriptor set. A pipeline keeps its module and its
// layout alive.
//
// Pipelines are compiled with no lock held, several at a time; a thread waits only for a pipeline that it
// requests itself.
#pragma once

#include "adapter/check_shader.hpp"
#include "adapter/device_handle.hpp"
#include "base/content_store.hpp"
#include "base/ranked.hpp"
#include "base/vulkan.hpp"
#include "pipeline/driver_caches.hpp"
#include "pipeline/shader.hpp"
#include "spirv/fold.hpp"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace kp {

class Debugger;
class DeviceContext;
class Queue;

// The bytes of specialization constants, and each id's place in them.
struct Specialization {
    std::string data;
    std::vector<VkSpecializationMapEntry> entries;

    // In the form that reflection takes.
    [[nodiscard]] std::vector<SpecValue> values() const;
};

using SetLayout = DeviceHandle<VkDescriptorSetLayout>;

struct PipelineLayout {
    DeviceHandle<VkPipelineLayout> object;
    std::vector<std::shared_ptr<SetLayout>> sets;
    // The descriptors that a set of each layout holds.
    std::vector<std::vector<VkDescriptorPoolSize>> descriptors;
    // For shaders with instruments: the set to bind last, which algorithms share. Its layout is not in
    // `sets`.
    VkDescriptorSet instruments = VK_NULL_HANDLE;
    VkPushConstantRange push{};  // size 0: none

    [[nodiscard]] VkPipelineLayout handle() const noexcept { return object.get(); }
};

// Keep it alive until the work submitted with it has ended.
struct Pipeline {
    DeviceHandle<VkPipeline> object;
    std::shared_ptr<Shader> shader;  // its number is part of the pipeline's key
    std::shared_ptr<PipelineLayout> layout;
    std::array<uint32_t, 3> local_size{1, 1, 1};  // specialization applied, as in the next
    uint64_t shared_bytes = 0;
    bool divisible = false;                  // its grids may run in parts (see pipeline/division.hpp)
    std::atomic<float> seconds_of_group{0};  // as it was last measured for a watchdog; 0: not yet
    std::atomic<bool> named{false};          // for graphics debuggers

    [[nodiscard]] VkPipeline handle() const noexcept { return object.get(); }
};

// A part of a compiled pipeline, as its driver describes it (VK_KHR_pipeline_executable_properties).
struct PipelineExecutable {
    using Number = std::variant<bool, int64_t, uint64_t, double>;
    std::string name;
    std::string description;
    uint32_t subgroup_size = 0;                              // 0: unknown
    std::vector<std::pair<std::string, Number>> statistics;  // by the driver's names
    std::vector<std::pair<std::string, std::string>> texts;  // its code on the way to the device's
};

// Counts of existing objects, and of the unused ones among them.
struct PipelineCounts {
    size_t modules = 0;
    size_t module_bytes = 0;  // of their SPIR-V
    size_t unused_modules = 0;
    size_t unused_module_bytes = 0;
    size_t pipelines = 0;
    size_t unused_pipelines = 0;
    size_t layouts = 0;
    size_t set_layouts = 0;
    size_t descriptor_pools = 0;
};

// The pipeline and the dispatches that run a number of groups.
struct Launch {
    std::shared_ptr<Pipeline> pipeline;
    std::array<uint32_t, 3> groups{};  // of the first dispatch; all 0: no dispatch
    std::array<uint32_t, 3> base{};    // of the second one
    std::array<uint32_t, 3> rest{};    // of the second one; all 0: no second dispatch
};

struct DescriptorSet {
    VkDescriptorSet handle = VK_NULL_HANDLE;
    VkDescriptorPool pool = VK_NULL_HANDLE;
};

class PipelineStore {
public:
    // `queues`: the device's queues, each once.
    PipelineStore(DeviceContext& context, std::vector<Queue*> queues, std::string cache_dir, size_t recent,
                  Debugger* debugger);
    ~PipelineStore();

    // Hold the returned lock from the first look at a pipeline to the end of the work with its layout:
    // close() waits for it. Throws if the device is closed.
    [[nodiscard]] std::shared_lock<Ranked<std::shared_timed_mutex>> use();

    [[nodiscard]] std::shared_ptr<Shader> shader(std::string_view bytes, const std::string& entry,
                                                 std::string_view declared = {},
                                                 SubgroupRequest subgroups = {}, bool unchecked = false);
    [[nodiscard]] std::shared_ptr<Pipeline> pipeline(const std::shared_ptr<Shader>& shader,
                                                     const Specialization& constants,
                                                     const DescriptorCounts& counts);
    // For a shader without arrays of run-time length: true if pipeline() finds it without compiling.
    [[nodiscard]] bool knows(const std::shared_ptr<Shader>& shader, const Specialization& constants);
    // What the driver says of a pipeline, which is compiled for it and dropped; empty if the device cannot.
    [[nodiscard]] std::vector<PipelineExecutable> executables(const std::shared_ptr<Shader>& shader,
                                                              const Specialization& constants);
    // Waits up to `nanoseconds` for threads that use the store, which may be compiling; true if none is
    // left.
    [[nodiscard]] bool await_users(uint64_t nanoseconds);
    // The launch that runs `groups`, in layers if the device does not take so many on one axis. If that is
    // impossible, throws Error(invalid_argument) that names the limit.
    [[nodiscard]] Launch launch(const std::shared_ptr<Shader>& shader, const Specialization& constants,
                                const DescriptorCounts& counts, const std::array<uint32_t, 3>& groups);

    [[nodiscard]] DescriptorSet allocate_set(const PipelineLayout& layout, uint32_t set);
    void free_set(DescriptorSet set) noexcept;

    [[nodiscard]] PipelineCounts counts();
    // Drops unused modules, pipelines and descriptor pools.
    void trim() noexcept;
    // Writes the cache to disk if it has grown, and drops the store's own objects; the device is idle.
    // Objects with other owners are freed with the device's list of handles.
    void close() noexcept;

    [[nodiscard]] static VkDescriptorType descriptor_type(DescriptorKind kind) noexcept;

private:
    [[nodiscard]] std::shared_ptr<Pipeline> pipeline(const std::shared_ptr<Shader>& shader,
                                                     const Specialization& constants,
                                                     const DescriptorCounts& counts,
                                                     const std::optional<Fold>& fold);
    [[nodiscard]] std::shared_ptr<Pipeline>
    compile(const std::shared_ptr<Shader>& shader, const Specialization& constants,
            const DescriptorCounts& counts, const std::optional<Fold>& fold, VkPipelineCreateFlags flags = 0);
    [[nodiscard]] std::shared_ptr<PipelineLayout>
    layout(const ShaderInfo& info, const DescriptorCounts& counts, std::optional<uint32_t> instruments);
    [[nodiscard]] std::shared_ptr<SetLayout>
    set_layout(const std::vector<VkDescriptorSetLayoutBinding>& bindings);

    void tidy_up() noexcept;  // after each compilation

    [[nodiscard]] std::shared_ptr<Shader> known(uint64_t hash, std::string_view bytes,
                                                const std::string& entry, std::string_view declared,
                                                SubgroupRequest subgroups, bool unchecked,
                                                std::vector<std::shared_ptr<Shader>>& dropped);
    void sweep_shaders();

    struct Pool {
        VkDescriptorPool handle = VK_NULL_HANDLE;
        uint32_t taken = 0;  // number of sets
    };
    [[nodiscard]] Pool* make_pool(const std::vector<VkDescriptorPoolSize>& needs);
    void drop_pool(Pool& pool) noexcept;  // it must have no sets

    DeviceContext& context_;
    Debugger* const debugger_;
    const std::vector<Queue*> queues_;
    DriverCaches caches_;
    // Locks are taken in this order.
    Ranked<std::shared_timed_mutex> life_{LockRank::pipeline_users};  // see use()
    RankedMutex shaders_mutex_{LockRank::shaders};                    // held briefly
    // By a hash of their arguments.
    std::unordered_map<uint64_t, std::vector<std::weak_ptr<Shader>>> shaders_;
    SweepRule shaders_sweep_;
    Recent<Shader> recent_shaders_;
    ContentStore<Pipeline> pipelines_;
    ContentStore<PipelineLayout> layouts_;
    ContentStore<SetLayout> set_layouts_;
    RankedMutex tidying_mutex_{LockRank::pipeline_tidying};
    size_t compiled_ = 0;       // under tidying_mutex_
    uint64_t submissions_ = 0;  // of all queues, at the last check; under tidying_mutex_
    RankedMutex pools_mutex_{LockRank::descriptor_pools};
    std::unordered_map<VkDescriptorPool, Pool> pools_;
    std::vector<Pool*> with_room_;  // for sets, maybe not for descriptors; tried from the last to the first
    size_t empty_pools_ = 0;
};

}  // namespace kp
