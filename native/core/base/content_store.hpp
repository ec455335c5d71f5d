// Objects found by their content. They live while they are in use; the most recently requested ones stay
// alive even if unused.
//
// No object is destroyed under the lock here: a dropped object is destroyed with the caller's own reference
// to it.
#pragma once

#include "base/ranked.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kp {

// The `most` objects that were requested last. Guarded by the caller's lock.
template <class T>
class Recent {
public:
    explicit Recent(size_t most) : most_(most) {}

    // Makes `one` the latest. Returns the object that is no longer in the list, for the caller to drop
    // without a lock.
    [[nodiscard]] std::shared_ptr<T> touch(const std::shared_ptr<T>& one) {
        if (most_ == 0) return nullptr;
        if (const auto known = places_.find(one.get()); known != places_.end()) {
            order_.splice(order_.begin(), order_, known->second);
            return nullptr;
        }
        order_.push_front(one);
        try {
            places_.emplace(one.get(), order_.begin());
        } catch (...) {
            order_.pop_front();
            throw;
        }
        if (order_.size() <= most_) return nullptr;
        std::shared_ptr<T> oldest = std::move(order_.back());
        places_.erase(oldest.get());
        order_.pop_back();
        return oldest;
    }
    // Removes and returns all of them, for the caller to drop.
    [[nodiscard]] std::list<std::shared_ptr<T>> take() noexcept {
        places_.clear();
        return std::exchange(order_, {});
    }
    [[nodiscard]] const std::list<std::shared_ptr<T>>& all() const noexcept { return order_; }

private:
    size_t most_;
    std::list<std::shared_ptr<T>> order_;  // the latest first
    std::unordered_map<const T*, typename std::list<std::shared_ptr<T>>::iterator> places_;
};

// Decides when to sweep a table of weak references: its size has doubled since the last sweep.
class SweepRule {
public:
    [[nodiscard]] bool due(size_t entries) const noexcept { return entries >= at_; }
    void swept(size_t left) noexcept { at_ = std::max<size_t>(64, 2 * left); }

private:
    size_t at_ = 64;
};

// Objects by key. The first thread that requests an absent object makes it, without a lock; others that
// request the same key wait only for that thread. If making it fails, the next waiting thread makes it,
// because the cause (no memory) may only have affected the first one.
template <class T>
class ContentStore {
public:
    explicit ContentStore(size_t most_recent) : recent_(most_recent) {}

    // Null if there is none.
    [[nodiscard]] std::shared_ptr<T> find(const std::string& key) {
        std::shared_ptr<T> dropped, found;  // both outlive the lock
        const std::lock_guard lock(mutex_);
        if (const auto entry = entries_.find(key); entry != entries_.end()) found = entry->second.made.lock();
        if (found) dropped = recent_.touch(found);
        return found;
    }

    // Throws the errors of `make`.
    template <class Make>
    [[nodiscard]] std::shared_ptr<T> get(const std::string& key, const Make& make) {
        std::shared_ptr<T> dropped, made;
        {
            std::unique_lock lock(mutex_);
            if (sweep_.due(entries_.size())) sweep();
            while (true) {
                Entry& entry = entries_.try_emplace(key).first->second;
                if ((made = entry.made.lock())) {
                    dropped = recent_.touch(made);
                    return made;
                }
                if (!entry.making) {
                    entry.making = true;
                    break;
                }
                // The entry may have been swept meanwhile.
                wait_ranked(lock, [&](auto& native) { ended_.wait(native); });
            }
        }
        try {
            made = make();
        } catch (...) {
            end(key, nullptr);
            throw;
        }
        end(key, made);
        const std::lock_guard lock(mutex_);
        dropped = recent_.touch(made);
        return made;
    }

    // Stops keeping unused objects alive; returns the recent ones for the caller to drop.
    [[nodiscard]] std::list<std::shared_ptr<T>> take_recent() {
        const std::lock_guard lock(mutex_);
        return recent_.take();
    }
    // Calls `count(kept, recent)` under the lock, with all living objects and with those kept as recent.
    template <class Count>
    void look(const Count& count) {
        std::vector<std::shared_ptr<T>> all;  // outlives the lock: it may hold the last reference
        const std::lock_guard lock(mutex_);
        for (const auto& [key, entry] : entries_)
            if (auto one = entry.made.lock()) all.push_back(std::move(one));
        count(all, recent_.all());
    }

private:
    struct Entry {
        std::weak_ptr<T> made;
        bool making = false;
    };

    void end(const std::string& key, const std::shared_ptr<T>& made) noexcept {
        const std::lock_guard lock(mutex_);
        Entry& entry = entries_.find(key)->second;  // not swept while it is being made
        entry.making = false;
        entry.made = made;
        ended_.notify_all();
    }
    void sweep() {
        std::erase_if(entries_,
                      [](const auto& each) { return !each.second.making && each.second.made.expired(); });
        sweep_.swept(entries_.size());
    }

    RankedMutex mutex_{LockRank::pipeline_contents};  // held briefly
    std::condition_variable ended_;
    std::unordered_map<std::string, Entry> entries_;
    Recent<T> recent_;
    SweepRule sweep_;
};

}  // namespace kp
