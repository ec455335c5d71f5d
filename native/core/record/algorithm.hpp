// A pipeline with the resources bound to it. Immutable: rebinding makes a new algorithm.
#pragma once

#include "base/succession.hpp"
#include "pipeline/pipeline_store.hpp"
#include "pipeline/sampler.hpp"
#include "record/access.hpp"
#include "resource/object.hpp"
#include "resource/resource.hpp"

#include <list>

namespace kp {

class Buffer;
class DescriptorWrites;
struct ImageFormat;
struct Substitution;

// The argument for one descriptor of a shader: memory, a sampler, or both.
struct Argument {
    uint32_t set = 0;
    uint32_t binding = 0;
    uint32_t element = 0;  // index in an array of descriptors
    ResourceRange range;
    std::shared_ptr<Sampler> sampler;
    const ImageFormat* texels = nullptr;  // of a texel buffer for which the shader declares no format
    std::optional<bool> whole;            // as in a Use
};

// What algorithms share that differ in their memory only.
struct AlgorithmBase {
    std::shared_ptr<Device> device;
    std::shared_ptr<Pipeline> pipeline;
    Specialization constants;
};

class Algorithm final : public Object {
public:
    // Of an earlier algorithm with arguments for the same descriptors: no pipeline is looked for. Not for
    // shaders with arrays of run-time length.
    Algorithm(const AlgorithmBase& base, std::vector<Argument> arguments, std::array<uint32_t, 3> workgroup);
    // `push_constants`: the default for its dispatches, of the block's size or empty. Arguments without a
    // binding are kept alive but not used.
    Algorithm(std::shared_ptr<Device> device, std::shared_ptr<Shader> shader, std::vector<Argument> arguments,
              std::array<uint32_t, 3> workgroup, const Specialization& constants, std::string push_constants);
    ~Algorithm() override;

    struct Binding {
        ResourceRange range;
        UseKind use = UseKind::shader_read_write;
        std::optional<bool> whole;  // as in a Use
    };

    // The same algorithm with other memory bound; this one if none of its memory is replaced.
    [[nodiscard]] std::shared_ptr<Algorithm> substituted(const Substitution& by);
    [[nodiscard]] const std::shared_ptr<Shader>& shader() const noexcept { return shader_; }
    [[nodiscard]] const Pipeline& pipeline() const noexcept { return *pipeline_; }
    [[nodiscard]] AlgorithmBase base() const { return {shared_device(), pipeline_, constants_}; }
    [[nodiscard]] std::array<uint32_t, 3> workgroup() const noexcept { return workgroup_; }
    [[nodiscard]] const std::string& push_constants() const noexcept { return push_constants_; }
    // True if the device runs so many groups in one dispatch.
    [[nodiscard]] bool fits(const std::array<uint32_t, 3>& groups) const noexcept;
    // The launch that runs so many groups. Throws Error(invalid_argument) if the device cannot run them.
    [[nodiscard]] Launch launch(const std::array<uint32_t, 3>& groups) const;
    // Call it when the owner has rebuilt this algorithm: dispatches that follow it use `next` when they are
    // recorded again.
    void supersede(const std::shared_ptr<Algorithm>& next);
    // The latest algorithm that supersedes this one; null if there is none.
    [[nodiscard]] std::shared_ptr<Algorithm> successor() const;
    // Throws Error(failed_precondition) if it, or a bound object, was destroyed.
    void check() const;
    // The memory that a dispatch uses; unused bindings are left out.
    [[nodiscard]] const std::vector<Binding>& uses() const noexcept { return uses_; }
    // The name of a binding with an empty array of single bytes, which no descriptor can express; "" if
    // there is none.
    [[nodiscard]] const std::string& unbindable() const noexcept { return unbindable_; }
    [[nodiscard]] const std::vector<Argument>& arguments() const noexcept { return arguments_; }
    void set_name(const std::string& name) override;
    // By set number; null if the shader has no binding in a set.
    [[nodiscard]] const std::vector<VkDescriptorSet>& sets() const noexcept { return handles_; }

private:
    void release(std::vector<Point> points) override;
    // Throws if an argument is destroyed or of another Manager.
    void check_arguments() const;
    // Allocates the descriptor sets and writes them.
    void bind_all(const DescriptorCounts& counts);
    void warn_of_overlaps();
    // Checks the argument and adds its descriptor.
    void bind(const BindingInfo& info, const Argument& argument, DescriptorWrites& writes);
    void note_empty(const BindingInfo& info);
    [[nodiscard]] VkBufferView view_of(const BindingInfo& info, const Argument& argument,
                                       const Buffer& buffer);
    [[nodiscard]] const Argument* find(uint32_t set, uint32_t binding, uint32_t element) const noexcept;
    void index_arguments();
    // The number of descriptors of each array of run-time length, which is the number of its arguments.
    [[nodiscard]] DescriptorCounts count_descriptors() const;
    void free_sets() noexcept;

    std::shared_ptr<Shader> shader_;
    std::shared_ptr<Pipeline> pipeline_;
    Specialization constants_;
    std::vector<Argument> arguments_;
    // Positions of arguments sorted by set, binding and element; only if there are many.
    std::vector<uint32_t> by_place_;
    std::vector<Binding> uses_;
    std::vector<DescriptorSet> sets_;
    std::vector<VkDescriptorSet> handles_;
    std::list<DeviceHandle<VkBufferView>> views_;  // of texel buffers
    std::array<uint32_t, 3> workgroup_;
    std::string push_constants_;
    Succession<Algorithm> succession_;  // under the graph mutex
    std::string unbindable_;
};

}  // namespace kp
