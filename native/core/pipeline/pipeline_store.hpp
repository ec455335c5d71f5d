// Everything of pipelines that algorithms share: shader modules, layouts, pipelines, descriptor pools, the cache on disk.
//
// Modules, layouts and pipelines are found by content. They live while an algorithm, a recording or Python uses them, and so many modules
// and pipelines as were asked for last (`recent`) live on without: making an algorithm again costs a look-up and a descriptor set. A
// pipeline keeps its module and its layout.
//
// Pipelines are compiled with no lock held, several at a time; a thread waits only for a pipeline that it asks for itself.
#pragma once

#include "adapter/check_shader.hpp"
#include "adapter/device_handle.hpp"
#include "base/content_store.hpp"
#include "base/pipeline_cache_file.hpp"
#include "base/ranked.hpp"
#include "base/vulkan.hpp"
#include "pipeline/shader.hpp"
#include "spirv/fold.hpp"

#include <array>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kp {

class DeviceContext;
class Queue;

// Bytes for specialization constants and where each id finds its own.
struct Specialization {
    std::string data;
    std::vector<VkSpecializationMapEntry> entries;

    // As reflection takes them.
    [[nodiscard]] std::vector<SpecValue> values() const;
};

using SetLayout = DeviceHandle<VkDescriptorSetLayout>;

struct PipelineLayout {
    DeviceHandle<VkPipelineLayout> object;
    std::vector<std::shared_ptr<SetLayout>> sets;
    std::vector<std::vector<VkDescriptorPoolSize>> descriptors;  // what a set of each layout holds
    VkPushConstantRange push{};                                  // size 0: none

    [[nodiscard]] VkPipelineLayout handle() const noexcept { return object.get(); }
};

// Whoever submits work with it keeps it until that has ended.
struct Pipeline {
    DeviceHandle<VkPipeline> object;
    std::shared_ptr<Shader> shader;  // whose number is part of what finds the pipeline
    std::shared_ptr<PipelineLayout> layout;
    std::array<uint32_t, 3> local_size{1, 1, 1};  // specialization applied

    [[nodiscard]] VkPipeline handle() const noexcept { return object.get(); }
};

// What lives, and what of that nothing uses.
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
    std::array<uint32_t, 3> groups{};  // of the first dispatch; all 0: there is none
    std::array<uint32_t, 3> base{};    // of the second one
    std::array<uint32_t, 3> rest{};    // of the second one; all 0: there is none
};

struct DescriptorSet {
    VkDescriptorSet handle = VK_NULL_HANDLE;
    VkDescriptorPool pool = VK_NULL_HANDLE;
};

class PipelineStore {
public:
    // `queues`: of the device, each once.
    PipelineStore(DeviceContext& context, std::vector<Queue*> queues, std::string cache_dir, size_t recent);
    ~PipelineStore();

    // What to hold from the first look at a pipeline to the end of the work with its layout: close() waits for it. Throws for a closed
    // device.
    [[nodiscard]] std::shared_lock<Ranked<std::shared_timed_mutex>> use();

    [[nodiscard]] std::shared_ptr<Shader> shader(std::string_view bytes, const std::string& entry,
                                                 std::string_view declared = {});
    [[nodiscard]] std::shared_ptr<Pipeline> pipeline(const std::shared_ptr<Shader>& shader,
                                                     const Specialization& constants,
                                                     const DescriptorCounts& counts);
    // Whether pipeline() finds it, with no array of run-time length, without compiling.
    [[nodiscard]] bool knows(const std::shared_ptr<Shader>& shader, const Specialization& constants);
    // Waits up to `nanoseconds` for those who use it, who may be compiling; whether there is none left.
    [[nodiscard]] bool await_users(uint64_t nanoseconds);
    // What runs `groups` of them, in layers where the device does not take so many on an axis. Throws
    // Error(invalid_argument), naming the limit, where it cannot.
    [[nodiscard]] Launch launch(const std::shared_ptr<Shader>& shader, const Specialization& constants,
                                const DescriptorCounts& counts, const std::array<uint32_t, 3>& groups);

    [[nodiscard]] DescriptorSet allocate_set(const PipelineLayout& layout, uint32_t set);
    void free_set(DescriptorSet set) noexcept;

    [[nodiscard]] PipelineCounts counts();
    // Drops modules, pipelines and descriptor pools that nothing uses.
    void trim() noexcept;
    // Writes the cache to disk when it has grown, and drops what it keeps; the device is idle. What others keep goes with the device's
    // list of handles.
    void close() noexcept;

    [[nodiscard]] static VkDescriptorType descriptor_type(DescriptorKind kind) noexcept;

private:
    [[nodiscard]] std::shared_ptr<Pipeline> pipeline(const std::shared_ptr<Shader>& shader,
                                                     const Specialization& constants,
                                                     const DescriptorCounts& counts,
                                                     const std::optional<Fold>& fold);
    [[nodiscard]] std::shared_ptr<Pipeline> compile(const std::shared_ptr<Shader>& shader,
                                                    const Specialization& constants,
                                                    const DescriptorCounts& counts,
                                                    const std::optional<Fold>& fold);
    [[nodiscard]] std::shared_ptr<PipelineLayout> layout(const ShaderInfo& info,
                                                         const DescriptorCounts& counts);
    [[nodiscard]] std::shared_ptr<SetLayout>
    set_layout(const std::vector<VkDescriptorSetLayoutBinding>& bindings);

    // The driver's cache that pipelines are compiled with now, made when first asked for. A new one takes its place when it has been given
    // many pipelines, since it forgets none; threads that compile with the old one keep that until they are done.
    struct Cache {
        DeviceHandle<VkPipelineCache> object;
        size_t fed = 0;  // under cache_mutex_
    };
    [[nodiscard]] std::shared_ptr<Cache> cache();
    void feed(const std::shared_ptr<Cache>& cache) noexcept;
    void save(const Cache& cache) noexcept;
    void tidy_up() noexcept;  // after each compilation
    [[nodiscard]] PipelineCacheFile cache_file() const;
    [[nodiscard]] VkPipelineCache make_cache(const std::vector<uint8_t>& payload, VkResult& result) const;

    [[nodiscard]] std::shared_ptr<Shader> known(uint64_t hash, std::string_view bytes,
                                                const std::string& entry, std::string_view declared,
                                                std::vector<std::shared_ptr<Shader>>& dropped);
    void sweep_shaders();

    struct Pool {
        VkDescriptorPool handle = VK_NULL_HANDLE;
        uint32_t taken = 0;  // sets
    };
    [[nodiscard]] Pool* make_pool(const std::vector<VkDescriptorPoolSize>& needs);
    void drop_pool(Pool& pool) noexcept;  // which has no set

    DeviceContext& context_;
    const std::vector<Queue*> queues_;
    std::string cache_dir_;
    // In this order.
    Ranked<std::shared_timed_mutex> life_{LockRank::pipeline_users};            // see use()
    RankedMutex shaders_mutex_{LockRank::shaders};                              // held briefly
    std::unordered_map<uint64_t, std::vector<std::weak_ptr<Shader>>> shaders_;  // by a hash of what they are
    SweepRule shaders_sweep_;
    Recent<Shader> recent_shaders_;
    ContentStore<Pipeline> pipelines_;
    ContentStore<PipelineLayout> layouts_;
    ContentStore<SetLayout> set_layouts_;
    RankedMutex cache_mutex_{
        LockRank::pipeline_cache};  // held while the cache is read from or written to disk
    std::shared_ptr<Cache> cache_;
    bool cache_was_read_ = false;
    size_t compiled_ = 0;       // under cache_mutex_
    uint64_t submissions_ = 0;  // of all queues, when we last looked; under cache_mutex_
    RankedMutex pools_mutex_{LockRank::descriptor_pools};
    std::unordered_map<VkDescriptorPool, Pool> pools_;
    std::vector<Pool*> with_room_;  // for sets, if not for descriptors; tried from the last to the first
    size_t empty_pools_ = 0;
};

}  // namespace kp
