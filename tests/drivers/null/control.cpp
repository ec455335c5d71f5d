// Counting, failure injection, the list of live objects, violations and the log: what a test steers and reads
// through the C functions at the end (a ctypes.CDLL of the file that the loader opened reaches the same
// instance).
#include "entry_points.hpp"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <cstdarg>
#include <cstdio>
#include <string_view>

namespace kpnull {

std::atomic<bool> g_armed{false};
std::atomic<bool> g_logging{false};
std::atomic<bool> g_paused{false};

namespace {

struct Injection {
    std::string entry;  // "*": any failable entry point
    uint64_t remaining;
    VkResult result;
};

// Never destroyed: objects may be released by static destructors of the application that run after ours.
struct State {
    std::mutex mutex;
    EntryPoint* entries = nullptr;
    std::vector<Injection> injections;
    std::string held;  // entry point whose calls wait; "": none
    uint64_t waiting = 0;
    std::condition_variable let_go;
    std::string last_failed;
    std::vector<std::string> violations;
    std::mutex log_mutex;
    std::vector<std::string> log;
    struct Live {
        std::mutex mutex;
        Object* first = nullptr;
        uint64_t count = 0;
    } live[size_t(Kind::Count)];
};
// A child of a fork must not find a lock that a thread of its parent held.
State* made_state();
State& state() {
    static State* instance = made_state();
    return *instance;
}
State* made_state() {
    static auto* made = new State;
    pthread_atfork(
        [] {
            for (State::Live& live : made->live) live.mutex.lock();
            made->mutex.lock();
            made->log_mutex.lock();
        },
        [] {
            made->log_mutex.unlock();
            made->mutex.unlock();
            for (State::Live& live : made->live) live.mutex.unlock();
        },
        [] {
            made->log_mutex.unlock();
            made->mutex.unlock();
            for (State::Live& live : made->live) live.mutex.unlock();
        });
    return made;
}
std::atomic<bool> g_counting{false};
std::atomic<uint64_t> g_total_calls{0};
std::atomic<uint64_t> g_submissions{0};

constexpr size_t kMaxViolations = 10000;
constexpr size_t kMaxLog = 1000000;

struct KindNames {
    const char* name;
    VkObjectType type;
};
constexpr KindNames kKinds[size_t(Kind::Count)] = {
    {"VkInstance", VK_OBJECT_TYPE_INSTANCE},
    {"VkPhysicalDevice", VK_OBJECT_TYPE_PHYSICAL_DEVICE},
    {"VkDevice", VK_OBJECT_TYPE_DEVICE},
    {"VkQueue", VK_OBJECT_TYPE_QUEUE},
    {"VkCommandPool", VK_OBJECT_TYPE_COMMAND_POOL},
    {"VkCommandBuffer", VK_OBJECT_TYPE_COMMAND_BUFFER},
    {"VkDeviceMemory", VK_OBJECT_TYPE_DEVICE_MEMORY},
    {"VkBuffer", VK_OBJECT_TYPE_BUFFER},
    {"VkBufferView", VK_OBJECT_TYPE_BUFFER_VIEW},
    {"VkImage", VK_OBJECT_TYPE_IMAGE},
    {"VkImageView", VK_OBJECT_TYPE_IMAGE_VIEW},
    {"VkSampler", VK_OBJECT_TYPE_SAMPLER},
    {"VkShaderModule", VK_OBJECT_TYPE_SHADER_MODULE},
    {"VkDescriptorSetLayout", VK_OBJECT_TYPE_DESCRIPTOR_SET_LAYOUT},
    {"VkDescriptorPool", VK_OBJECT_TYPE_DESCRIPTOR_POOL},
    {"VkDescriptorSet", VK_OBJECT_TYPE_DESCRIPTOR_SET},
    {"VkPipelineLayout", VK_OBJECT_TYPE_PIPELINE_LAYOUT},
    {"VkPipeline", VK_OBJECT_TYPE_PIPELINE},
    {"VkPipelineCache", VK_OBJECT_TYPE_PIPELINE_CACHE},
    {"VkQueryPool", VK_OBJECT_TYPE_QUERY_POOL},
    {"VkSemaphore", VK_OBJECT_TYPE_SEMAPHORE},
    {"VkDebugUtilsMessengerEXT", VK_OBJECT_TYPE_DEBUG_UTILS_MESSENGER_EXT},
};

// Physical devices and queues live as long as their parent: they can not leak by themselves.
bool counts_as_live(Kind kind) { return kind != Kind::PhysicalDevice && kind != Kind::Queue; }

size_t copy_out(const std::string& text, char* buffer, size_t size) {
    if (buffer && size) {
        const size_t n = std::min(size - 1, text.size());
        std::memcpy(buffer, text.data(), n);
        buffer[n] = 0;
    }
    return text.size() + 1;
}

// Call with state().mutex held.
void update_armed() { g_armed = g_counting || !state().injections.empty() || !state().held.empty(); }

}  // namespace

const char* kind_name(Kind kind) { return kKinds[size_t(kind)].name; }
VkObjectType kind_object_type(Kind kind) { return kKinds[size_t(kind)].type; }
const char* label(const Object* object) { return object && object->name ? object->name : "unnamed"; }

VkResult enter(EntryPoint& entry) {
    State& s = state();
    if (!entry.listed.exchange(true)) {
        std::lock_guard lock(s.mutex);
        entry.next = s.entries;
        s.entries = &entry;
    }
    entry.calls.fetch_add(1, std::memory_order_relaxed);
    if (!entry.failable) return VK_SUCCESS;
    g_total_calls.fetch_add(1, std::memory_order_relaxed);
    std::unique_lock lock(s.mutex);
    if (!s.held.empty() && entry.name == s.held) {
        ++s.waiting;
        s.let_go.wait(lock, [&] { return entry.name != s.held; });
        --s.waiting;
    }
    for (size_t i = 0; i < s.injections.size(); ++i) {
        Injection& injection = s.injections[i];
        if (injection.entry != "*" && injection.entry != entry.name) continue;
        if (--injection.remaining) continue;
        const VkResult result = injection.result;
        s.injections.erase(s.injections.begin() + long(i));
        s.last_failed = entry.name;
        update_armed();
        return result;
    }
    return VK_SUCCESS;
}

void violation(const char* format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    State& s = state();
    std::lock_guard lock(s.mutex);
    if (s.violations.size() < kMaxViolations) s.violations.emplace_back(text);
}

namespace {
thread_local bool t_together = false;
thread_local std::vector<std::string> t_lines;
}  // namespace

void append_log(const std::string& json_object) {
    if (t_together) {
        t_lines.push_back(json_object);
        return;
    }
    State& s = state();
    std::lock_guard lock(s.log_mutex);
    if (s.log.size() < kMaxLog) s.log.push_back(json_object);
}

LogTogether::LogTogether() { t_together = true; }
LogTogether::~LogTogether() {
    t_together = false;
    State& s = state();
    std::lock_guard lock(s.log_mutex);
    for (std::string& line : t_lines)
        if (s.log.size() < kMaxLog) s.log.push_back(std::move(line));
    t_lines.clear();
}

uint64_t next_submission_number() { return g_submissions.fetch_add(1) + 1; }

void link(Object* object) {
    auto& live = state().live[size_t(object->kind)];
    std::lock_guard lock(live.mutex);
    object->next = live.first;
    if (live.first) live.first->previous = object;
    live.first = object;
    ++live.count;
}

void unlink(Object* object) {
    auto& live = state().live[size_t(object->kind)];
    std::lock_guard lock(live.mutex);
    if (object->previous)
        object->previous->next = object->next;
    else
        live.first = object->next;
    if (object->next) object->next->previous = object->previous;
    object->previous = object->next = nullptr;
    --live.count;
}

void retire(Object* object) {
    if (object->destroyed) {
        violation("%s (%s) is destroyed twice", kind_name(object->kind), label(object));
        return;
    }
    const uint32_t pending = object->pending.load();
    if (pending)
        violation("%s (%s) is destroyed while %u pending submission(s) use it", kind_name(object->kind),
                  label(object), pending);
    unlink(object);
    object->destroyed = true;
    if ((object->recorded || pending) && object->parent && object->parent->kind == Kind::Device) {
        auto* device = static_cast<Device*>(object->parent);
        device->destroy_epoch.fetch_add(1);
        std::lock_guard lock(device->zombie_mutex);
        device->zombies.push_back(object);
        return;
    }
    object->deleter(object);
}

uint64_t live_count(Kind kind) {
    auto& live = state().live[size_t(kind)];
    std::lock_guard lock(live.mutex);
    return live.count;
}

void for_each_live(Kind kind, void (*visit)(Object*, void*), void* context) {
    auto& live = state().live[size_t(kind)];
    std::lock_guard lock(live.mutex);
    for (Object* o = live.first; o; o = o->next) visit(o, context);
}

void note_orphans(const Object* parent) {
    for (size_t k = 0; k < size_t(Kind::Count); ++k) {
        if (!counts_as_live(Kind(k))) continue;
        struct Found {
            const Object* parent;
            uint64_t count = 0;
            std::string name;
        } found{parent};
        for_each_live(
            Kind(k),
            [](Object* o, void* context) {
                auto& f = *static_cast<Found*>(context);
                if (o->parent != f.parent) return;
                if (f.count++ == 0) f.name = label(o);
                o->parent = nullptr;  // it stays on the list of live objects, as the leak that it is
            },
            &found);
        if (found.count)
            violation("%s (%s) is destroyed with %llu live %s (one is %s)", kind_name(parent->kind),
                      label(parent), static_cast<unsigned long long>(found.count), kKinds[k].name,
                      found.name.c_str());
    }
}

}  // namespace kpnull

// ------------------------------------------------------------------------------------- the C interface

using namespace kpnull;

#define KP_CONTROL extern "C" __attribute__((visibility("default")))

// Makes the nth call from now (1 is the next) of an entry point return `result`; "" or "*" stands for any
// failable one. Returns 0, or -1 for an entry point that this driver does not have.
KP_CONTROL int kpnull_fail(const char* entry, uint64_t nth, int32_t result) {
    std::string name = entry && *entry ? entry : "*";
    if (nth == 0 || result == VK_SUCCESS || (name != "*" && !knows_entry_point(name.c_str()))) return -1;
    State& s = state();
    std::lock_guard lock(s.mutex);
    s.injections.push_back({std::move(name), nth, VkResult(result)});
    update_armed();
    return 0;
}

// Calls of the entry point wait inside the driver until it is called again with another, or with "". Returns
// as kpnull_fail does.
KP_CONTROL int kpnull_hold(const char* entry) {
    const std::string name = entry ? entry : "";
    if (!name.empty() && !knows_entry_point(name.c_str())) return -1;
    State& s = state();
    std::lock_guard lock(s.mutex);
    s.held = name;
    s.let_go.notify_all();
    update_armed();
    return 0;
}
// How many calls wait now.
KP_CONTROL uint64_t kpnull_waiting() {
    State& s = state();
    std::lock_guard lock(s.mutex);
    return s.waiting;
}

KP_CONTROL void kpnull_pause(int on) { g_paused.store(on != 0); }

KP_CONTROL void kpnull_count(int on) {
    State& s = state();
    std::lock_guard lock(s.mutex);
    g_counting = on != 0;
    update_armed();
}

// Forgets injections, counts, violations and the log; live objects and whether calls are counted stay.
KP_CONTROL void kpnull_clear() {
    State& s = state();
    {
        std::lock_guard lock(s.mutex);
        s.injections.clear();
        s.last_failed.clear();
        s.violations.clear();
        for (EntryPoint* e = s.entries; e; e = e->next) e->calls = 0;
        g_total_calls = 0;
        update_armed();
    }
    std::lock_guard lock(s.log_mutex);
    s.log.clear();
}

KP_CONTROL uint64_t kpnull_calls(const char* entry) {
    State& s = state();
    std::lock_guard lock(s.mutex);
    uint64_t total = 0;
    for (EntryPoint* e = s.entries; e; e = e->next)
        if (!std::strcmp(e->name, entry)) total += e->calls;
    return total;
}
// The entry points that can fail and were called since kpnull_clear, each on a line of its own.
KP_CONTROL size_t kpnull_called(char* buffer, size_t size) {
    State& s = state();
    std::lock_guard lock(s.mutex);
    std::string text;
    for (EntryPoint* e = s.entries; e; e = e->next)
        if (e->failable && e->calls) text += std::string(e->name) + "\n";
    return copy_out(text, buffer, size);
}
KP_CONTROL int kpnull_knows(const char* entry) { return knows_entry_point(entry) ? 1 : 0; }
KP_CONTROL uint64_t kpnull_total_calls() { return g_total_calls; }
// Injected failures that have not happened yet.
KP_CONTROL uint64_t kpnull_armed_failures() {
    State& s = state();
    std::lock_guard lock(s.mutex);
    return s.injections.size();
}

// Live objects of a type name ("VkBuffer"), or of all types ("*"); UINT64_MAX for an unknown name.
KP_CONTROL uint64_t kpnull_live(const char* kind) {
    const std::string_view name = kind ? kind : "*";
    uint64_t total = 0;
    for (size_t k = 0; k < size_t(Kind::Count); ++k) {
        if (name == kKinds[k].name) return live_count(Kind(k));
        if (counts_as_live(Kind(k))) total += live_count(Kind(k));
    }
    return name == "*" || name.empty() ? total : UINT64_MAX;
}

KP_CONTROL size_t kpnull_live_report(char* buffer, size_t size) {
    std::string text;
    for (size_t k = 0; k < size_t(Kind::Count); ++k) {
        if (!counts_as_live(Kind(k))) continue;
        const uint64_t count = live_count(Kind(k));
        if (!count) continue;
        text += std::string(kKinds[k].name) + ": " + std::to_string(count);
        for_each_live(
            Kind(k),
            [](Object* o, void* context) {
                if (o->name) *static_cast<std::string*>(context) += std::string(" '") + o->name + "'";
            },
            &text);
        text += "\n";
    }
    return copy_out(text, buffer, size);
}

KP_CONTROL size_t kpnull_last_failed(char* buffer, size_t size) {
    State& s = state();
    std::lock_guard lock(s.mutex);
    return copy_out(s.last_failed, buffer, size);
}

KP_CONTROL size_t kpnull_violations(char* buffer, size_t size) {
    State& s = state();
    std::lock_guard lock(s.mutex);
    std::string text;
    for (const std::string& v : s.violations) text += v + "\n";
    return copy_out(text, buffer, size);
}

KP_CONTROL void kpnull_log(int on) {
    g_logging = on != 0;
    if (!on) return;
    State& s = state();
    std::lock_guard lock(s.log_mutex);
    s.log.clear();
}

namespace {
size_t log_as_json(char* buffer, size_t size, std::string_view prefix) {
    State& s = state();
    std::lock_guard lock(s.log_mutex);
    std::string text = "[";
    for (const std::string& entry : s.log) {
        if (!std::string_view(entry).starts_with(prefix)) continue;
        if (text.size() > 1) text += ",\n";
        text += entry;
    }
    text += "]";
    return copy_out(text, buffer, size);
}
}  // namespace

// All return the size needed with the terminating zero and fill what fits.
KP_CONTROL size_t kpnull_commands(char* buffer, size_t size) { return log_as_json(buffer, size, "{\"op\""); }
KP_CONTROL size_t kpnull_allocations(char* buffer, size_t size) {
    return log_as_json(buffer, size, "{\"bytes\"");
}
KP_CONTROL size_t kpnull_devices(char* buffer, size_t size) {
    return log_as_json(buffer, size, "{\"priorities\"");
}
KP_CONTROL size_t kpnull_barriers(char* buffer, size_t size) {
    return log_as_json(buffer, size, "{\"op\":\"barrier\"");
}

// Every live device is lost after that many further submissions (0: now).
KP_CONTROL void kpnull_lose_device(uint64_t after_submits) {
    for_each_live(
        Kind::Device,
        [](Object* o, void* context) {
            auto* device = static_cast<Device*>(o);
            const uint64_t after = *static_cast<uint64_t*>(context);
            if (after == 0)
                device->lose();
            else
                device->submits_until_lost = int64_t(after);
        },
        &after_submits);
}

// Dispatches that live devices have taken through their queues.
KP_CONTROL uint64_t kpnull_dispatches() {
    uint64_t total = 0;
    for_each_live(
        Kind::Device,
        [](Object* o, void* context) {
            auto* device = static_cast<Device*>(o);
            std::lock_guard lock(device->mutex);
            for (Queue* q : device->queues) *static_cast<uint64_t*>(context) += q->dispatches;
        },
        &total);
    return total;
}
