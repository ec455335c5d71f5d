// A pipeline with the resources bound to it. Immutable: rebinding means a new algorithm.
#pragma once

#include "base/succession.hpp"
#include "pipeline/pipeline_store.hpp"
#include "pipeline/sampler.hpp"
#include "record/access.hpp"
#include "resource/object.hpp"
#include "resource/resource.hpp"

namespace kp {

class Buffer;
struct Substitution;

// What one descriptor of a shader is given: memory, a sampler, or both.
struct Argument {
    uint32_t set = 0;
    uint32_t binding = 0;
    uint32_t element = 0;  // of an array of descriptors
    ResourceRange range;
    std::shared_ptr<Sampler> sampler;
};

class Algorithm final : public Object {
public:
    // `push_constants` is the default of its dispatches: the block's size or empty. Arguments that no binding takes are kept
    // alive and not used.
    Algorithm(std::shared_ptr<Device> device, std::shared_ptr<Shader> shader, std::vector<Argument> arguments,
              std::array<uint32_t, 3> workgroup, const Specialization& constants, std::string push_constants);
    ~Algorithm() override;

    struct Binding {
        ResourceRange range;
        UseKind use = UseKind::shader_read_write;
    };

    // The same with other memory bound; itself where none of it is replaced.
    [[nodiscard]] std::shared_ptr<Algorithm> substituted(const Substitution& by);
    [[nodiscard]] const std::shared_ptr<Shader>& shader() const noexcept { return shader_; }
    [[nodiscard]] const Pipeline& pipeline() const noexcept { return *pipeline_; }
    [[nodiscard]] std::array<uint32_t, 3> workgroup() const noexcept { return workgroup_; }
    [[nodiscard]] const std::string& push_constants() const noexcept { return push_constants_; }
    // Whether the device runs so many groups in one dispatch.
    [[nodiscard]] bool fits(const std::array<uint32_t, 3>& groups) const noexcept;
    // What runs so many groups. Throws Error(invalid_argument) for more than the device runs.
    [[nodiscard]] Launch launch(const std::array<uint32_t, 3>& groups) const;
    // Its owner made it anew: dispatches that follow it take `next` when they are recorded again.
    void supersede(const std::shared_ptr<Algorithm>& next);
    // The latest of those; null where there is none.
    [[nodiscard]] std::shared_ptr<Algorithm> successor() const;
    // Throws Error(failed_precondition) when it, or what is bound, was destroyed.
    void check() const;
    // What a dispatch touches; unused bindings are left out.
    [[nodiscard]] const std::vector<Binding>& uses() const noexcept { return uses_; }
    // The binding that is an empty array of single bytes, which no descriptor can be; "" where there is none.
    [[nodiscard]] const std::string& unbindable() const noexcept { return unbindable_; }
    [[nodiscard]] const std::vector<Argument>& arguments() const noexcept { return arguments_; }
    void set_name(const std::string& name) override;
    // By set number; null where the shader has no binding in a set.
    [[nodiscard]] const std::vector<VkDescriptorSet>& sets() const noexcept { return handles_; }

private:
    void release(std::vector<Point> points) override;
    void bind(const BindingInfo& info, const Argument& argument);
    void bind_empty(const BindingInfo& info, const Buffer& buffer, VkWriteDescriptorSet& write);
    [[nodiscard]] const Argument* find(uint32_t set, uint32_t binding, uint32_t element) const noexcept;
    void index_arguments();
    // How many descriptors each array of run-time length has, which is how many arguments it is given.
    [[nodiscard]] DescriptorCounts count_descriptors() const;
    void free_sets() noexcept;

    std::shared_ptr<Shader> shader_;
    std::shared_ptr<Pipeline> pipeline_;
    Specialization constants_;
    std::vector<Argument> arguments_;
    std::vector<uint32_t> by_place_;  // positions of many arguments, sorted by set, binding and element
    std::vector<Binding> uses_;
    std::vector<DescriptorSet> sets_;
    std::vector<VkDescriptorSet> handles_;
    std::array<uint32_t, 3> workgroup_;
    std::string push_constants_;
    Succession<Algorithm> succession_;  // under the graph mutex
    std::string unbindable_;
};

}  // namespace kp
