// Validation messages, and the devices that they belong to.
//
// Managers share an instance, and an instance's messenger receives the messages of all its devices. A message
// names handles: a device or a queue among them identifies its device. Most messages only name a buffer or a
// semaphore. But layers report from inside the faulty call, so the message belongs to the device that this
// thread took the function table of last. A watched device records this whenever its table is taken
// (Device::vk). Other messages, such as those of a layer's own threads, belong to the only device if there is
// just one. Otherwise they are unclaimed: the first reader logs them, and they are never raised as errors.
#pragma once

#include "base/ranked.hpp"
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
    bool own = true;  // it is known to be about the reader's device
};

// Callbacks run on any thread, even inside a Vulkan call that holds our locks, so they only append here. The
// caller of the API drains the ring after the call has returned.
class MessageRing {
public:
    void append(Message message);
    [[nodiscard]] std::vector<Message> drain();

private:
    static constexpr size_t capacity = 4096;
    RankedMutex mutex_{LockRank::message_ring};
    std::deque<Message> messages_;
    size_t dropped_ = 0;
    std::atomic<bool> any_{false};
};

// The number of the watched device that this thread called last; 0: none.
constinit inline thread_local uint64_t acting_device = 0;

class MessageRouter;

// The messages of one device.
class Mailbox {
public:
    explicit Mailbox(MessageRouter& router);
    Mailbox(const Mailbox&) = delete;
    Mailbox& operator=(const Mailbox&) = delete;
    // Unread messages become unclaimed.
    ~Mailbox();

    // Messages that name this VkDevice or VkQueue belong to this device.
    void claim(uint64_t handle);
    void append(Message message) { ring_.append(std::move(message)); }
    // Its own messages, and the unclaimed ones.
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
    // `handles`: the devices and queues that the message names.
    void route(Message message, const std::vector<uint64_t>& handles);

private:
    friend class Mailbox;
    [[nodiscard]] Mailbox* owner(const std::vector<uint64_t>& handles) const;

    RankedMutex mutex_{LockRank::message_router};
    std::vector<Mailbox*> boxes_;
    std::vector<std::pair<uint64_t, Mailbox*>> handles_;
    MessageRing unclaimed_;
};

}  // namespace kp
