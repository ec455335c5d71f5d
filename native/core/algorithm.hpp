// A pipeline with the resources bound to it. Immutable: rebinding means a new algorithm.
#pragma once

#include "access.hpp"
#include "object.hpp"
#include "pipeline_store.hpp"
#include "resource_range.hpp"

namespace kp {

class Algorithm final : public Object {
public:
    // Binding i of set 0 is ranges[i]. `push_constants` is the default of its dispatches: the block's size or empty.
    Algorithm(std::shared_ptr<Device> device, std::shared_ptr<Shader> shader,
              std::vector<ResourceRange> ranges, std::array<uint32_t, 3> workgroup,
              const Specialization& constants, std::string push_constants);
    ~Algorithm() override;

    struct Binding {
        ResourceRange range;
        UseKind use = UseKind::shader_read_write;
    };

    [[nodiscard]] const std::shared_ptr<Shader>& shader() const noexcept { return shader_; }
    [[nodiscard]] const Pipeline& pipeline() const noexcept { return *pipeline_; }
    [[nodiscard]] std::array<uint32_t, 3> workgroup() const noexcept { return workgroup_; }
    [[nodiscard]] const std::string& push_constants() const noexcept { return push_constants_; }
    [[nodiscard]] const std::vector<ResourceRange>& ranges() const noexcept { return ranges_; }
    // What a dispatch touches; unused bindings are left out.
    [[nodiscard]] const std::vector<Binding>& uses() const noexcept { return uses_; }
    void set_name(const std::string& name) override;
    [[nodiscard]] VkDescriptorSet set() const noexcept { return set_.handle; }

private:
    void release(std::vector<Point> points) override;
    void bind(const BindingInfo& info, const ResourceRange& range);

    std::shared_ptr<Shader> shader_;
    std::shared_ptr<Pipeline> pipeline_;
    std::vector<ResourceRange> ranges_;
    std::vector<Binding> uses_;
    DescriptorSet set_;
    std::array<uint32_t, 3> workgroup_;
    std::string push_constants_;
};

}  // namespace kp
