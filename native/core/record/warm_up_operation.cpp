#include "record/warm_up_operation.hpp"

#include "record/algorithm.hpp"
#include "record/stream_plan.hpp"

#include <string>

namespace kp {
namespace {

class WarmUp final : public Operation {
public:
    explicit WarmUp(std::shared_ptr<Algorithm> algorithm)
        : Operation(algorithm->shared_device(), "preload"), algorithm_(std::move(algorithm)) {}

    void check() const override { algorithm_->check(); }

    void declare(StreamPlan& plan) const override {
        plan.mention(*algorithm_);
        plan.keep(algorithm_);
        for (const auto& argument : algorithm_->arguments())
            if (argument.range.resource) plan.mention(*argument.range.resource);
    }

    void record(Recorder& to) const override {
        const Pipeline& pipeline = algorithm_->pipeline();
        const PipelineLayout& layout = *pipeline.layout;
        to.bind(pipeline.handle(), layout.handle(), algorithm_->sets());
        if (layout.push.size != 0) {
            const std::string zeros(layout.push.size, '\0');
            to.vk.vkCmdPushConstants(to.commands, layout.handle(), VK_SHADER_STAGE_COMPUTE_BIT,
                                     layout.push.offset, layout.push.size, zeros.data());
        }
        to.vk.vkCmdDispatch(to.commands, 0, 0, 0);
    }

    [[nodiscard]] bool needs_compute_queue() const noexcept override { return true; }

private:
    std::shared_ptr<Algorithm> algorithm_;
};

}  // namespace

OperationPtr make_warm_up(std::shared_ptr<Algorithm> algorithm) {
    return std::make_shared<WarmUp>(std::move(algorithm));
}

}  // namespace kp
