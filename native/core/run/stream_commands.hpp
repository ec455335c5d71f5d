// A stream's command buffer, the further ones that a watchdog asks for, and the secondary ones of repeated
// operations.
#pragma once

#include "base/vulkan.hpp"
#include "record/stream_plan.hpp"
#include "resource/object.hpp"
#include "sync/queue.hpp"

#include <vector>

namespace kp {

class StreamCommands final : public Secondaries {
public:
    StreamCommands(const Object& stream, const Queue& queue);
    StreamCommands(const StreamCommands&) = delete;
    StreamCommands& operator=(const StreamCommands&) = delete;
    ~StreamCommands();

    // The first one, which stays the same.
    [[nodiscard]] VkCommandBuffer handle() const noexcept { return handles_.front(); }
    // In the order in which they run.
    [[nodiscard]] const std::vector<VkCommandBuffer>& handles() const noexcept { return handles_; }
    // Those but the first are freed when the recording is built again.
    [[nodiscard]] VkCommandBuffer make() override;
    [[nodiscard]] VkCommandBuffer next() override;

    // The commands are being recorded. Its destructor drops what was recorded if end() was not called: an
    // interrupted recording must not stay open.
    class Open {
    public:
        explicit Open(StreamCommands& commands);
        Open(const Open&) = delete;
        Open& operator=(const Open&) = delete;
        ~Open();
        void end();

    private:
        StreamCommands* commands_;
    };

private:
    void free_others() noexcept;
    void begin_last() const;
    void end_last() const;

    const Object& stream_;
    Device& device_;
    VkCommandPool pool_ = VK_NULL_HANDLE;
    std::vector<VkCommandBuffer> handles_;
    std::vector<VkCommandBuffer> secondaries_;
};

}  // namespace kp
