// Everything of pipelines that algorithms share: shader modules, layouts, pipelines, descriptor pools, the cache on disk.
//
// Entries are found by content and live as long as the device: making an algorithm from SPIR-V that this Manager has seen
// costs a look-up and a descriptor set.
#pragma once

#include "shader.hpp"
#include "shader_check.hpp"
#include "spirv_fold.hpp"
#include "vulkan.hpp"

#include <array>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kp {

class Device;

// Bytes for specialization constants and where each id finds its own.
struct Specialization {
    std::string data;
    std::vector<VkSpecializationMapEntry> entries;

    // As reflection takes them.
    [[nodiscard]] std::vector<SpecValue> values() const;
};

struct PipelineLayout {
    VkPipelineLayout handle = VK_NULL_HANDLE;
    std::vector<VkDescriptorSetLayout> sets;
    std::vector<std::vector<VkDescriptorPoolSize>> descriptors;  // what a set of each layout holds
    VkPushConstantRange push{};                                  // size 0: none
};

struct Pipeline {
    VkPipeline handle = VK_NULL_HANDLE;
    std::shared_ptr<PipelineLayout> layout;
    std::array<uint32_t, 3> local_size{1, 1, 1};  // specialization applied
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
    PipelineStore(Device& device, std::string cache_dir);
    ~PipelineStore();

    // What to hold from the first look at a pipeline to the end of the work with its layout: close() waits for it. Throws for a closed
    // device.
    [[nodiscard]] std::shared_lock<std::shared_timed_mutex> use();

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

    // Writes the cache to disk when it has grown and destroys everything; the device is idle.
    void close() noexcept;

    [[nodiscard]] static VkDescriptorType descriptor_type(DescriptorKind kind) noexcept;

private:
    [[nodiscard]] std::shared_ptr<Pipeline> pipeline(const std::shared_ptr<Shader>& shader,
                                                     const Specialization& constants,
                                                     const DescriptorCounts& counts,
                                                     const std::optional<Fold>& fold);
    [[nodiscard]] std::shared_ptr<PipelineLayout> layout(const ShaderInfo& info,
                                                         const DescriptorCounts& counts);
    [[nodiscard]] VkDescriptorSetLayout set_layout(const std::vector<VkDescriptorSetLayoutBinding>& bindings);
    [[nodiscard]] std::shared_ptr<Pipeline> find(const std::string& key);
    void open_cache();
    void save_cache() noexcept;
    [[nodiscard]] VkDescriptorPool make_pool(const std::vector<VkDescriptorPoolSize>& needs);

    Device& device_;
    std::string cache_dir_;
    // In this order.
    std::shared_timed_mutex life_;  // see use()
    std::mutex compiling_;          // held over pipeline creation: one compilation at a time feeds one cache
    std::mutex mutex_;              // held briefly
    std::unordered_map<uint64_t, std::vector<std::shared_ptr<Shader>>> shaders_;
    std::unordered_map<std::string, std::shared_ptr<Pipeline>> pipelines_;
    std::unordered_map<std::string, std::shared_ptr<PipelineLayout>> layouts_;
    std::unordered_map<std::string, VkDescriptorSetLayout> set_layouts_;
    VkPipelineCache cache_ = VK_NULL_HANDLE;  // with compiling_
    bool cache_grew_ = false;
    std::mutex pools_mutex_;
    std::vector<VkDescriptorPool> pools_;
};

}  // namespace kp
