// Pure: whether a short wait should look at the counter again and again for a while before it sleeps.
//
// Sleeping costs a wake-up, some 5 to 50 us on a GPU; looking costs a core, which a CPU driver may need for the work itself. Which
// is faster is measured where it runs: short waits try both in turn, the medians decide, and now and then they are measured
// anew. Long waits say nothing (either way is lost in them): work whose last wait was long does not ask (see Timeline::wait),
// and after some in a row nobody looks for a while.
#pragma once

#include "base/ranked.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

namespace kp {

enum class WaitMode : uint8_t { automatic, spin, block };

class WaitChoice {
public:
    explicit WaitChoice(WaitMode mode) noexcept : mode_(mode), spins_(mode == WaitMode::spin) {}

    // How long a wait may look before it sleeps.
    static constexpr uint64_t spin_nanoseconds = 100'000;
    // Waits up to this long count.
    static constexpr uint64_t short_nanoseconds = 200'000;
    static constexpr uint32_t samples = 15;  // of each way
    static constexpr uint32_t keep = 8192;   // waits for which a decision stands
    static constexpr uint32_t patience = 8;  // long waits in a row after which nobody looks
    static constexpr uint32_t pause = 64;    // for so many waits

    // Whether the next wait looks before it sleeps.
    [[nodiscard]] bool next() noexcept;
    // What became of it. Any thread; a sample is left out rather than waited for.
    void note(bool spun, uint64_t nanoseconds) noexcept;

    [[nodiscard]] WaitMode mode() const noexcept { return mode_; }
    [[nodiscard]] bool measuring() const noexcept {
        return mode_ == WaitMode::automatic && measuring_.load(std::memory_order_relaxed);
    }
    [[nodiscard]] bool spins() const noexcept { return spins_.load(std::memory_order_relaxed); }

private:
    const WaitMode mode_;
    std::atomic<bool> spins_;
    std::atomic<bool> measuring_{true};
    std::atomic<uint32_t> turn_{0};
    std::atomic<uint32_t> resting_{0};  // waits without looking that are left
    RankedMutex mutex_{LockRank::wait_choice};
    uint32_t long_in_a_row_ = 0;
    uint32_t decided_for_ = 0;
    std::array<uint32_t, 2> counts_{};  // by whether it looked
    std::array<std::array<uint64_t, samples>, 2> times_{};
};

}  // namespace kp
