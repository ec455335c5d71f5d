// Catches the host reading device memory that it does not cache (trap_reads=1).
//
// On a real device such a read is right and slow, so no test would see it. Here the host's mapping of the
// memory is a second one, closed. Touching it is a fault: a read is noted as a violation, a write is what the
// mapping is for, and either opens its page. Each submission closes all pages again, so that a read is missed
// only behind a write to its page with no submission between them. Calls of the system do not fault, but fail
// with EFAULT.
#include "common.hpp"

#include <csignal>
#include <mutex>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

namespace kpnull {
namespace {

constexpr uintptr_t kPage = 4096;
constexpr size_t kMost = 4096;

struct Region {
    std::atomic<uintptr_t> begin{0};
    std::atomic<uintptr_t> end{0};
    std::atomic<bool> opened{false};
};
Region g_regions[kMost];
std::atomic<size_t> g_used{0};  // slots that ever were in use
std::mutex g_mutex;
struct sigaction g_previous {};

Region* region_of(uintptr_t address) {
    for (size_t i = 0, n = g_used.load(); i < n; ++i)
        if (g_regions[i].begin.load() <= address && address < g_regions[i].end.load()) return &g_regions[i];
    return nullptr;
}

bool wrote(const void* context) {
#if defined(__x86_64__)
    return static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2;
#else
    (void)context;
    return true;
#endif
}

void on_fault(int number, siginfo_t* info, void* context) {
    const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
    if (Region* region = region_of(address)) {
        if (!wrote(context))
            violation("the host reads uncached device memory, %llu bytes into a mapping",
                      static_cast<unsigned long long>(address - region->begin.load()));
        region->opened = true;
        mprotect(reinterpret_cast<void*>(address / kPage * kPage), kPage, PROT_READ | PROT_WRITE);
        return;
    }
    if (g_previous.sa_flags & SA_SIGINFO)
        g_previous.sa_sigaction(number, info, context);
    else if (g_previous.sa_handler != SIG_DFL && g_previous.sa_handler != SIG_IGN)
        g_previous.sa_handler(number);
    else
        sigaction(number, &g_previous, nullptr);  // it faults again, and ends the process
}

void listen() {
    static std::once_flag once;
    std::call_once(once, [] {
        struct sigaction action {};
        action.sa_sigaction = on_fault;
        action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
        sigaction(SIGSEGV, &action, &g_previous);
    });
}

}  // namespace

bool can_trap_reads() {
#if defined(__x86_64__)
    return true;
#else
    return false;
#endif
}

TrappedMemory map_trapped(VkDeviceSize size) {
    listen();
    const std::lock_guard lock(g_mutex);
    size_t slot = 0;
    while (slot < kMost && g_regions[slot].end.load() != 0) ++slot;
    if (slot == kMost) return {};
    const int file = memfd_create("kp-null-memory", MFD_CLOEXEC);
    if (file < 0) return {};
    TrappedMemory made;
    if (ftruncate(file, static_cast<off_t>(size)) == 0) {
        void* device = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
        void* host = mmap(nullptr, size, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
        if (device != MAP_FAILED && host != MAP_FAILED)
            made = {static_cast<uint8_t*>(device), static_cast<uint8_t*>(host)};
    }
    close(file);
    if (!made.host) return {};
    Region& region = g_regions[slot];
    region.begin = reinterpret_cast<uintptr_t>(made.host);
    region.opened = false;
    region.end = region.begin + (size + kPage - 1) / kPage * kPage;
    if (slot >= g_used.load()) g_used = slot + 1;
    return made;
}

void unmap_trapped(const TrappedMemory& memory, VkDeviceSize size) {
    const std::lock_guard lock(g_mutex);
    if (Region* region = region_of(reinterpret_cast<uintptr_t>(memory.host))) {
        region->end = 0;
        region->begin = 0;
    }
    munmap(memory.host, size);
    munmap(memory.device, size);
}

void close_trapped() {
    for (size_t i = 0, n = g_used.load(std::memory_order_relaxed); i < n; ++i) {
        Region& region = g_regions[i];
        if (!region.opened.exchange(false)) continue;
        const std::lock_guard lock(g_mutex);
        if (const uintptr_t end = region.end.load())
            mprotect(reinterpret_cast<void*>(region.begin.load()), end - region.begin.load(), PROT_NONE);
    }
}

}  // namespace kpnull
