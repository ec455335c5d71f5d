#include "base/messages.hpp"

#include <algorithm>
#include <iterator>

namespace kp {

void MessageRing::append(Message message) {
    const std::lock_guard lock(mutex_);
    if (messages_.size() == capacity) {
        messages_.pop_front();
        ++dropped_;
    }
    messages_.push_back(std::move(message));
    any_.store(true, std::memory_order_release);
}

std::vector<Message> MessageRing::drain() {
    if (!any_.load(std::memory_order_acquire)) return {};
    const std::lock_guard lock(mutex_);
    std::vector<Message> result(std::make_move_iterator(messages_.begin()),
                                std::make_move_iterator(messages_.end()));
    if (dropped_ != 0)
        result.push_back(
            {"warning", "kompute_py", std::to_string(dropped_) + " older validation messages were dropped"});
    messages_.clear();
    dropped_ = 0;
    any_.store(false, std::memory_order_release);
    return result;
}

Mailbox::Mailbox(MessageRouter& router) : router_(router) {
    static std::atomic<uint64_t> numbers{0};
    number_ = ++numbers;
    const std::lock_guard lock(router_.mutex_);
    router_.boxes_.push_back(this);
}

Mailbox::~Mailbox() {
    const std::lock_guard lock(router_.mutex_);
    std::erase(router_.boxes_, this);
    std::erase_if(router_.handles_, [&](const auto& entry) { return entry.second == this; });
    for (Message& message : ring_.drain()) {
        message.own = false;
        router_.unclaimed_.append(std::move(message));
    }
}

void Mailbox::claim(uint64_t handle) {
    const std::lock_guard lock(router_.mutex_);
    router_.handles_.emplace_back(handle, this);
}

std::vector<Message> Mailbox::drain() {
    std::vector<Message> messages = ring_.drain();
    for (Message& message : router_.unclaimed_.drain()) messages.push_back(std::move(message));
    return messages;
}

Mailbox* MessageRouter::owner(const std::vector<uint64_t>& handles) const {
    for (const uint64_t handle : handles)
        for (const auto& [known, box] : handles_)
            if (known == handle) return box;
    for (Mailbox* box : boxes_)
        if (box->number_ == acting_device) return box;
    return boxes_.size() == 1 ? boxes_.front() : nullptr;
}

void MessageRouter::route(Message message, const std::vector<uint64_t>& handles) {
    const std::lock_guard lock(mutex_);
    if (Mailbox* box = owner(handles)) {
        box->append(std::move(message));
        return;
    }
    message.own = false;
    unclaimed_.append(std::move(message));
}

}  // namespace kp
