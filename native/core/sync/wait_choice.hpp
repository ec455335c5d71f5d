// Decides whether a short wait spins on the counter for a while before it sleeps. Uses no device.
//
// Sleeping costs a wake-up, some 5 to 50 us on a GPU; spinning costs a core, which a CPU driver may need
// for the work itself. Measurements at run time tell which one is faster: short waits try both in turn, the
// medians decide, and they are measured again now and then. Long waits give no measurement, because either
// way's cost is lost in them: work with a long last wait does not ask (see Timeline::wait), and after some
// long waits in a row, no wait spins for a while.
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

    // How long a wait may spin before it sleeps.
    static constexpr uint64_t spin_nanoseconds = 100'000;
    // Only waits up to this long are measured.
    static constexpr uint64_t short_nanoseconds = 200'000;
    static constexpr uint32_t samples = 15;  // of each way
    static constexpr uint32_t keep = 8192;   // waits for which a decision is kept
    static constexpr uint32_t patience = 8;  // long waits in a row until spinning pauses
    static constexpr uint32_t pause = 64;    // the pause, in waits

    // True if the next wait is to spin before it sleeps.
    [[nodiscard]] bool next() noexcept;
    // Notes the outcome. Callable on any thread; drops a sample rather than wait for the lock.
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
    std::atomic<uint32_t> resting_{0};  // waits without spinning that are left
    RankedMutex mutex_{LockRank::wait_choice};
    uint32_t long_in_a_row_ = 0;
    uint32_t decided_for_ = 0;
    std::array<uint32_t, 2> counts_{};  // by whether the wait spun
    std::array<std::array<uint64_t, samples>, 2> times_{};
};

}  // namespace kp
