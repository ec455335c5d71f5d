#include "sync/wait_choice.hpp"

#include <algorithm>

namespace kp {

bool WaitChoice::next() noexcept {
    if (mode_ != WaitMode::automatic) return mode_ == WaitMode::spin;
    const uint32_t resting = resting_.load(std::memory_order_relaxed);
    if (resting != 0) {
        resting_.store(resting - 1, std::memory_order_relaxed);
        return false;
    }
    if (measuring_.load(std::memory_order_relaxed))
        return (turn_.fetch_add(1, std::memory_order_relaxed) & 1) != 0;
    return spins_.load(std::memory_order_relaxed);
}

void WaitChoice::note(bool spun, uint64_t nanoseconds) noexcept {
    if (mode_ != WaitMode::automatic) return;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return;
    if (nanoseconds > short_nanoseconds) {
        if (spun && ++long_in_a_row_ >= patience) {
            long_in_a_row_ = 0;
            resting_.store(pause, std::memory_order_relaxed);
        }
        return;
    }
    if (spun) long_in_a_row_ = 0;
    if (!measuring_.load(std::memory_order_relaxed)) {
        if (++decided_for_ >= keep) {
            decided_for_ = 0;
            counts_ = {};
            measuring_.store(true, std::memory_order_relaxed);
        }
        return;
    }
    uint32_t& count = counts_[spun];
    if (count < samples) times_[spun][count++] = nanoseconds;
    if (counts_[0] < samples || counts_[1] < samples) return;
    for (auto& times : times_) std::nth_element(times.begin(), times.begin() + samples / 2, times.end());
    // Spinning keeps a core busy, so it must be more than 10 % faster.
    spins_.store(times_[1][samples / 2] * 10 < times_[0][samples / 2] * 9, std::memory_order_relaxed);
    measuring_.store(false, std::memory_order_relaxed);
}

}  // namespace kp
