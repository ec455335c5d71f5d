// Validation messages, and whose they are.
//
// Managers share an instance, and an instance's messenger hears of all devices that were made from it. A message names handles:
// a device or a queue among them says whose it is. Most name only a buffer or a semaphore; but the layers speak from inside the
// call that they object to, so it belongs to the device whose function table this thread took last. A device that is watched
// notes that whenever its table is taken (Device::vk). What is left over, such as the words of a layer's own threads, belongs to
// the only device there is, else to nobody: then whoever looks first logs it, and nobody raises it.
#pragma once

#include "base/vulkan.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace kp {

struct Message {
    std::string severity;  // "error", "warning", "info"
    std::string id;        // the layer's message id, "VUID-..." or "SYNC-HAZARD-..."
    std::string text;
    bool own = true;  // whether it is known to be about the device of whoever reads it
};

// Callbacks run on any thread, also inside a Vulkan call that holds our locks: they only append here. Whoever drives the API
// drains the ring after the call has returned.
class MessageRing {
public:
    void append(Message message);
    [[nodiscard]] std::vector<Message> drain();

private:
    static constexpr size_t capacity = 4096;
    std::mutex mutex_;
    std::deque<Message> messages_;
    size_t dropped_ = 0;
    std::atomic<bool> any_{false};
};

// The number of the watched device that this thread called last; 0: none.
constinit inline thread_local uint64_t acting_device = 0;

class MessageRouter;

// One device's messages.
class Mailbox {
public:
    explicit Mailbox(MessageRouter& router);
    Mailbox(const Mailbox&) = delete;
    Mailbox& operator=(const Mailbox&) = delete;
    // What was not read becomes nobody's.
    ~Mailbox();

    // Messages that name this VkDevice or VkQueue are this device's.
    void claim(uint64_t handle);
    void append(Message message) { ring_.append(std::move(message)); }
    // Its own, and what is nobody's.
    [[nodiscard]] std::vector<Message> drain();
    [[nodiscard]] uint64_t number() const noexcept { return number_; }

private:
    friend class MessageRouter;
    MessageRouter& router_;
    uint64_t number_;
    MessageRing ring_;
};

class MessageRouter {
public:
    // `handles`: of the devices and queues that the message names.
    void route(Message message, const std::vector<uint64_t>& handles);

private:
    friend class Mailbox;
    [[nodiscard]] Mailbox* owner(const std::vector<uint64_t>& handles) const;

    std::mutex mutex_;
    std::vector<Mailbox*> boxes_;
    std::vector<std::pair<uint64_t, Mailbox*>> handles_;
    MessageRing unclaimed_;
};

}  // namespace kp
