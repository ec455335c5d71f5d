#include "run/turn.hpp"

#include "base/error.hpp"
#include "base/long_call.hpp"
#include "device/device.hpp"

#include <chrono>

namespace kp {
namespace {

thread_local uint32_t calls_out = 0;  // how deep this thread is in foreign code

// Call it between two tries to take the turn. The thread that has it may need the interpreter lock.
void let_others_go_on(int& tries) {
    if (++tries < 100) return std::this_thread::yield();
    long_call([] { std::this_thread::sleep_for(std::chrono::microseconds(50)); });
}

}  // namespace

void Turn::refuse_second_thread() const {
    throw Error(
        ErrorKind::failed_precondition,
        is_calling_out()
            ? "The " + stream_.label() +
                  " is recording: neither an operation in it nor another thread can change or "
                  "evaluate it meanwhile. Use a sequence in one thread at a time"
            : "The " + stream_.label() +
                  " is being changed or evaluated by another thread. Use a sequence in one thread at a "
                  "time, or one for each");
}

void Turn::wait_to_drive() const {
    for (int tries = 0; !take(Kind::driving);) {
        if (kind_.load(std::memory_order_relaxed) == Kind::driving) refuse_second_thread();
        let_others_go_on(tries);
    }
}

Turn::Taken Turn::look() const {
    for (int tries = 0; !take(Kind::looking);) {
        if (is_calling_out_here()) return nullptr;
        if (is_calling_out()) refuse_second_thread();
        let_others_go_on(tries);
    }
    return Taken(this);
}

Turn::Taken Turn::take_for_release() {
    for (int tries = 0; !take(Kind::looking);) {
        {
            const std::lock_guard lock(stream_.device().graph_mutex());
            if (is_calling_out()) {  // else the driving thread may read the mark now
                release_later_ = true;
                return nullptr;
            }
        }
        let_others_go_on(tries);
    }
    return Taken(this);
}

bool Turn::is_in_foreign_code() noexcept { return calls_out != 0; }

Turn::CallingOut::CallingOut(Turn& turn, std::unique_lock<RankedMutex>& graph) : turn_(turn), graph_(graph) {
    mark(std::this_thread::get_id());
    ++calls_out;
    graph_.unlock();
}

Turn::CallingOut::~CallingOut() {
    graph_.lock();
    --calls_out;
    mark({});
}

void Turn::CallingOut::mark(std::thread::id id) const noexcept {
    Turn* each = &turn_;
    do {
        each->caller_.store(id, std::memory_order_release);
        each = each->next_;
    } while (each != &turn_);
}

}  // namespace kp
