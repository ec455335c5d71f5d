// A stream's command buffer, and the secondary ones of its repeated operations.
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

    [[nodiscard]] VkCommandBuffer handle() const noexcept { return handle_; }
    // Of repeated operations; they are freed when the recording is built again.
    [[nodiscard]] VkCommandBuffer make() override;

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
    void free_secondaries() noexcept;

    const Object& stream_;
    Device& device_;
    VkCommandPool pool_ = VK_NULL_HANDLE;
    VkCommandBuffer handle_ = VK_NULL_HANDLE;
    std::vector<VkCommandBuffer> secondaries_;
};

}  // namespace kp
