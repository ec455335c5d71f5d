// A device's view of an object made from it: enough to list it, to report it and to end it.
#pragma once

#include "base/object_kind.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace kp {

class Member : public std::enable_shared_from_this<Member> {
public:
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

    [[nodiscard]] ObjectKind kind() const noexcept { return kind_; }
    [[nodiscard]] bool is_init() const noexcept { return !destroyed_.load(std::memory_order_acquire); }
    [[nodiscard]] virtual std::string name() const = 0;
    // Bytes of its contents, on the device and in a host copy.
    [[nodiscard]] virtual uint64_t held_bytes() const noexcept { return 0; }
    // Of a stream: it is built again before its next submission. Under the graph mutex.
    virtual void outdate() noexcept {}
    // Work of it that the device has not ended, as far as is known, in words for an error; empty if there is
    // none.
    [[nodiscard]] virtual std::string running_work() const { return {}; }

protected:
    explicit Member(ObjectKind kind) : kind_(kind) {}
    virtual ~Member() = default;

    // Begins its end; false if it has already begun.
    [[nodiscard]] bool end_once() noexcept { return !destroyed_.exchange(true, std::memory_order_acq_rel); }
    // Frees the parts that belong to the device, which is closing.
    virtual void close() = 0;

private:
    friend class Device;

    std::atomic<bool> destroyed_{false};
    const ObjectKind kind_;
    // A share of its ownership; null if its last owner is dropping it, or if it has no owner yet. Not
    // virtual, because a thread that walks the list may meet an object with its destructor already running.
    [[nodiscard]] std::shared_ptr<Member> hold() noexcept { return weak_from_this().lock(); }
    // Links of the device's list of members that were not destroyed yet.
    bool listed_ = false;
    Member* previous_ = nullptr;
    Member* next_ = nullptr;
};

}  // namespace kp
