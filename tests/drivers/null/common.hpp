// The null driver: a Vulkan device that keeps the books of a real one and executes everything but shaders.
//
// It has two purposes. It measures what a framework costs by itself (a submission of a recorded dispatch
// costs tens of nanoseconds here), and it makes what real drivers hide visible: it fails any call on request,
// counts live objects, keeps host and device contents of non-coherent memory apart, and notes misuse instead
// of crashing on it.
//
// Every object starts with the loader's word, so one layout serves dispatchable and non-dispatchable handles
// alike; a handle is the object's address.
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vk_icd.h>
#include <vulkan/vulkan.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

static_assert(sizeof(void*) == 8, "handles are object addresses");

namespace kpnull {

// ------------------------------------------------------------------------------------- instrumentation

// One per entry point. Constant-initialised, so that reaching it costs no guard; it joins the list when first
// armed.
struct EntryPoint {
    const char* name;
    bool failable;
    std::atomic<uint64_t> calls{0};
    std::atomic<bool> listed{false};
    EntryPoint* next = nullptr;
    constexpr EntryPoint(const char* entry_name, bool can_fail) : name(entry_name), failable(can_fail) {}
};

// True while calls are counted or a failure is armed: the only thing that an entry point tests when it is
// not.
extern std::atomic<bool> g_armed;
// True while no submission ends (with gpu_us).
extern std::atomic<bool> g_paused;
// True while executed commands are written to the log.
extern std::atomic<bool> g_logging;

VkResult enter(EntryPoint& entry);
void violation(const char* format, ...) __attribute__((format(printf, 1, 2)));
void append_log(const std::string& json_object);

// The lines that this thread logs during its life go into the log together, at its end: queues with threads
// of their own would mix the lines of their submissions.
class LogTogether {
public:
    LogTogether();
    LogTogether(const LogTogether&) = delete;
    LogTogether& operator=(const LogTogether&) = delete;
    ~LogTogether();
};
uint64_t next_submission_number();

inline bool armed() { return g_armed.load(std::memory_order_relaxed); }

#define KP_FAILABLE(entry_name)                                                                              \
    do {                                                                                                     \
        static constinit ::kpnull::EntryPoint kp_entry{entry_name, true};                                    \
        if (::kpnull::armed()) [[unlikely]]                                                                  \
            if (VkResult kp_injected = ::kpnull::enter(kp_entry); kp_injected != VK_SUCCESS)                 \
                return kp_injected;                                                                          \
    } while (0)

#define KP_COUNTED(entry_name)                                                                               \
    do {                                                                                                     \
        static constinit ::kpnull::EntryPoint kp_entry{entry_name, false};                                   \
        if (::kpnull::armed()) [[unlikely]]                                                                  \
            ::kpnull::enter(kp_entry);                                                                       \
    } while (0)

// --------------------------------------------------------------------------------------------- objects

// clang-format off
enum class Kind : uint8_t {
    Instance, PhysicalDevice, Device, Queue, CommandPool, CommandBuffer, DeviceMemory, Buffer, BufferView,
    Image, ImageView, Sampler, ShaderModule, DescriptorSetLayout, DescriptorPool, DescriptorSet,
    PipelineLayout, Pipeline, PipelineCache, QueryPool, Semaphore, DebugUtilsMessenger,
    Count
};
// clang-format on
const char* kind_name(Kind kind);
VkObjectType kind_object_type(Kind kind);

struct Object {
    VK_LOADER_DATA loader;  // the loader writes its dispatch table here
    Kind kind;
    std::atomic<bool> recorded{false};  // a command buffer refers to it: the struct outlives vkDestroy*
    std::atomic<bool> destroyed{false};
    std::atomic<uint32_t> pending{0};  // submissions in flight that use it
    std::atomic<uint64_t> last_reference{0};
    Object* parent;  // instance or device
    Object* previous = nullptr;
    Object* next = nullptr;
    char* name = nullptr;  // from vkSetDebugUtilsObjectNameEXT
    void (*deleter)(Object*) = nullptr;
    Object(Kind object_kind, Object* owner) : kind(object_kind), parent(owner) {
        set_loader_magic_value(this);
    }
    ~Object() { std::free(name); }
    Object(const Object&) = delete;
    Object& operator=(const Object&) = delete;
};

const char* label(const Object* object);
void link(Object* object);
void unlink(Object* object);
// Ends an object's life; notes it when the device still uses it.
void retire(Object* object);
uint64_t live_count(Kind kind);
// Notes every live object of a parent that is going away.
void note_orphans(const Object* parent);
void for_each_live(Kind kind, void (*visit)(Object*, void*), void* context);

template <class T>
T* from(typename T::Handle handle) {
    return reinterpret_cast<T*>(handle);
}
template <class T>
typename T::Handle to(T* object) {
    return reinterpret_cast<typename T::Handle>(object);
}
template <class T, class... A>
T* create(Object* parent, A&&... arguments) {
    T* object = new T(parent, std::forward<A>(arguments)...);
    object->deleter = [](Object* base) { delete static_cast<T*>(base); };
    link(object);
    return object;
}
template <class T>
void destroy(typename T::Handle handle) {
    if (handle) retire(from<T>(handle));
}

#define KP_OBJECT(type)                                                                                      \
    static constexpr Kind kKind = Kind::type;                                                                \
    using Handle = Vk##type;                                                                                 \
    explicit type(Object* owner) : Object(kKind, owner) {}

// --------------------------------------------------------------------------------------- configuration

struct Config;
// A kind of real device; see profiles.cpp.
struct Profile {
    const char* name;
    const char* device_name;
    VkPhysicalDeviceType type;
    std::vector<std::pair<uint64_t, VkMemoryHeapFlags>> heaps;  // MiB (0: Config::heap_mib), and flags
    std::vector<VkMemoryType> types;
    void (*apply)(Config&, VkPhysicalDeviceLimits&);
};
const Profile* find_profile(const std::string& name);  // null: there is none
std::string profile_names();                           // with "|" between

struct Config {
    Config();
    VkPhysicalDeviceLimits limits{};  // of the default device, of the profile, or as single keys set them
    const Profile* profile = nullptr;
    uint32_t api_version = VK_API_VERSION_1_3;
    uint32_t devices = 1;
    std::string memory = "discrete";
    uint64_t heap_mib = 8192;
    uint64_t host_heap_mib = 16384;
    uint64_t gpu_us = 0;      // above zero: a worker per queue takes this long for each submission
    uint64_t compile_ms = 0;  // above zero: a pipeline takes this long, and needs its cache for itself
    uint32_t subgroup = 32;
    uint32_t least_subgroup = 0;           // 0: half of it
    uint32_t vendor = 0x10000 + 0x4b50;    // above 0xFFFF: not a PCI vendor
    uint32_t timestamp_bits = 64;          // valid bits of timestamps on the queue families with compute
    uint32_t transfer_timestamps = 0;      // valid bits of timestamps on the queue family with transfers only
    uint64_t max_allocation = 4ull << 30;  // maxMemoryAllocationSize
    uint32_t max_set_descriptors = 1u << 20;  // maxPerSetDescriptors
    uint64_t max_wait_ms = 120000;            // an endless wait ends in VK_ERROR_DEVICE_LOST and a violation
    bool no_timeline = false;
    bool cooperative = false;   // VK_KHR_cooperative_matrix
    bool bfloat16 = false;      // VK_KHR_shader_bfloat16
    bool fault = false;         // VK_EXT_device_fault
    bool executables = false;   // VK_KHR_pipeline_executable_properties
    bool priorities = false;    // VK_EXT_memory_priority, VK_EXT_pageable_device_local_memory
    bool semaphore_fd = false;  // VK_KHR_external_semaphore_fd, of timelines
    bool trap_reads = false;    // see traps.cpp
    bool bare = false;          // only the features that Vulkan 1.2 demands, and no extension
    bool portability = false;   // VK_KHR_portability_subset
    std::vector<std::string> disabled_features;
    std::vector<std::string> disabled_extensions;
    // Reads KP_NULL_DRIVER; an unknown key or value is reported on stderr and false returned.
    static bool read(Config& config);
};

// --------------------------------------------------------------------------------- instance and device

struct FeatureStruct {
    VkStructureType type;
    std::vector<VkBool32> values;
};
struct PropertyStruct {
    VkStructureType type;
    std::vector<uint8_t> bytes;  // everything behind sType and pNext
};

struct PhysicalDevice;
struct Instance : Object {
    KP_OBJECT(Instance)
    Config config;
    uint32_t application_api = VK_API_VERSION_1_0;
    std::vector<std::string> extensions;
    std::vector<PhysicalDevice*> devices;
    ~Instance();
};

struct PhysicalDevice : Object {
    KP_OBJECT(PhysicalDevice)
    Instance* instance = nullptr;
    uint32_t index = 0;
    VkPhysicalDeviceProperties properties{};
    VkPhysicalDeviceFeatures features{};
    VkPhysicalDeviceMemoryProperties memory{};
    std::atomic<uint64_t> heap_used[VK_MAX_MEMORY_HEAPS]{};
    std::vector<FeatureStruct> feature_structs;
    std::vector<PropertyStruct> property_structs;
    std::vector<VkExtensionProperties> extensions;
    std::vector<VkQueueFamilyProperties> families;
    uint32_t usable_types = 0;  // memory types that buffers and images may have
    bool has_extension(const char* name) const;
};
void describe(PhysicalDevice& device);  // fills in everything above from the instance's Config
void describe_features(PhysicalDevice& device, const Config& config);

struct Semaphore;
struct CommandBuffer;
struct Queue;
struct DeviceMemory;

struct Device : Object {
    KP_OBJECT(Device)
    PhysicalDevice* physical = nullptr;
    uint32_t api_version = VK_API_VERSION_1_0;
    std::unordered_set<std::string> extensions;
    std::vector<Queue*> queues;
    std::mutex mutex;              // guards queues, submissions and the signalling of semaphores
    std::condition_variable work;  // workers wait here (only with gpu_us)
    std::atomic<bool> lost{false};
    std::atomic<int64_t> submits_until_lost{-1};
    std::atomic<uint64_t> held{0};  // submissions accepted and not finished
    std::atomic<uint64_t> destroy_epoch{0};
    std::atomic<uint32_t> allocations{0};
    std::atomic<uint32_t> waiters{0};
    std::mutex wait_mutex;
    std::condition_variable wait_changed;
    std::mutex zombie_mutex;
    std::vector<Object*> zombies;  // destroyed objects that command buffers still name
    std::mutex imports_mutex;
    std::vector<const DeviceMemory*> imports;  // of memory of the process
    bool asynchronous = false;                 // Config::gpu_us: workers execute
    bool stop = false;
    ~Device();
    void lose();
    // Wakes waiting threads; call after the state they look at has been stored.
    void wake() {
        if (waiters.load(std::memory_order_seq_cst) != 0) wake_slow();
    }
    void wake_slow();
    template <class Ready>
    VkResult wait(uint64_t timeout_ns, Ready ready) {
        if (ready()) return VK_SUCCESS;
        if (lost.load(std::memory_order_acquire)) return VK_ERROR_DEVICE_LOST;
        if (timeout_ns == 0) return VK_TIMEOUT;
        return wait_slow(
            timeout_ns, [](void* context) { return (*static_cast<Ready*>(context))(); }, &ready);
    }
    VkResult wait_slow(uint64_t timeout_ns, bool (*ready)(void*), void* context);
};

struct SemaphoreUse {
    Semaphore* semaphore;
    uint64_t value;
};
struct Submission {
    uint64_t accepted_ns = 0;  // with gpu_us
    std::vector<SemaphoreUse> waits, signals;
    std::vector<CommandBuffer*> command_buffers;
    std::vector<Object*> retained;  // whose `pending` it has raised
};
struct Queue : Object {
    KP_OBJECT(Queue)
    Device* device = nullptr;
    uint32_t family = 0, index = 0;
    VkDeviceQueueCreateFlags flags = 0;
    uint64_t dispatches = 0;
    std::deque<Submission> pending;
    std::atomic<uint64_t> outstanding{0};  // pending, and the one that a worker executes
    std::thread worker;
};

// ------------------------------------------------------------------------------------------- resources

struct DeviceMemory : Object {
    KP_OBJECT(DeviceMemory)
    Device* device = nullptr;
    uint32_t type = 0, heap = 0;
    VkDeviceSize size = 0;
    uint8_t* device_bytes = nullptr;
    uint8_t* host_bytes = nullptr;  // what the application maps; device_bytes itself where memory is coherent
    uint8_t* snapshot = nullptr;    // host_bytes as of the last flush or invalidate (non-coherent only)
    bool host_visible = false, coherent = false, imported = false, address = false;
    bool trapped = false;  // host_bytes is a mapping of its own, of the same memory; see traps.cpp
    bool mapped = false;
    VkDeviceSize map_offset = 0, map_size = 0;
    Object* dedicated = nullptr;
    std::atomic<uint32_t> bound{0};
    std::mutex ranges_mutex;
    struct Range {
        VkDeviceSize end;
        bool linear;
        Object* object;
    };
    std::multimap<VkDeviceSize, Range> ranges;  // kept only while instrumentation is armed
    ~DeviceMemory();
};

struct TrappedMemory {
    uint8_t* device = nullptr;
    uint8_t* host = nullptr;
};
bool can_trap_reads();
TrappedMemory map_trapped(VkDeviceSize size);  // zeros; null where the system refuses
void unmap_trapped(const TrappedMemory& memory, VkDeviceSize size);
void close_trapped();  // from here on, reads are noted again

struct Resource : Object {  // what can be bound to memory
    using Object::Object;
    DeviceMemory* memory = nullptr;
    VkDeviceSize offset = 0;
    bool tracked = false;
    uint8_t* bytes() const { return memory->device_bytes + offset; }
};
void bind(Resource& resource, DeviceMemory* memory, VkDeviceSize offset, const VkMemoryRequirements& needs,
          bool linear);
void unbind(Resource& resource);
// The device has written bytes of a resource: what the host has cached of them is stale.
void device_wrote(const Resource& resource, const uint8_t* bytes, VkDeviceSize size);

struct Buffer : Resource {
    static constexpr Kind kKind = Kind::Buffer;
    using Handle = VkBuffer;
    explicit Buffer(Object* owner) : Resource(kKind, owner) {}
    VkDeviceSize size = 0;
    VkBufferUsageFlags usage = 0;
    bool external = false;
};
struct BufferView : Object {
    KP_OBJECT(BufferView)
    Buffer* buffer = nullptr;
    VkFormat format = VK_FORMAT_UNDEFINED;
    VkDeviceSize offset = 0, range = 0;
};

enum class Numeric : uint8_t { Unorm, Snorm, Uint, Sint, Float, Srgb };
struct FormatInfo {
    VkFormat format;
    uint8_t channels, bits;  // bits per channel
    Numeric numeric;
    bool bgra;
    uint32_t texel_bytes() const { return uint32_t(channels) * bits / 8; }
};
const FormatInfo* find_format(VkFormat format);
VkFormatFeatureFlags format_features(VkFormat format, VkImageTiling tiling);
VkFormatFeatureFlags format_buffer_features(VkFormat format);

struct Image : Resource {
    static constexpr Kind kKind = Kind::Image;
    using Handle = VkImage;
    explicit Image(Object* owner) : Resource(kKind, owner) {}
    VkImageCreateInfo info{};
    uint32_t texel_bytes = 0;
    VkDeviceSize total = 0;
    struct Level {
        VkDeviceSize offset, row_pitch, slice_pitch;
        VkExtent3D extent;
    };
    std::vector<Level> levels;  // layer 0
    VkDeviceSize layer_pitch = 0;
    void lay_out();
    uint8_t* texel(uint32_t level, uint32_t layer, uint32_t x, uint32_t y, uint32_t z) const {
        const Level& l = levels[level];
        return bytes() + layer * layer_pitch + l.offset + z * l.slice_pitch + y * l.row_pitch +
               uint64_t(x) * texel_bytes;
    }
};
struct ImageView : Object {
    KP_OBJECT(ImageView)
    Image* image = nullptr;
    VkFormat format = VK_FORMAT_UNDEFINED;
    VkImageSubresourceRange range{};
};
struct Sampler : Object {
    KP_OBJECT(Sampler)
};

// -------------------------------------------------------------------------------- shaders, descriptors

struct ShaderModule : Object {
    KP_OBJECT(ShaderModule)
    std::vector<uint32_t> code;
};
struct DescriptorSetLayout : Object {
    KP_OBJECT(DescriptorSetLayout)
    struct Binding {
        uint32_t binding, count, first;  // first: index of its first descriptor in the set
        VkDescriptorType type;
        VkDescriptorBindingFlags flags;
    };
    VkDescriptorSetLayoutCreateFlags flags = 0;
    std::vector<Binding> bindings;  // ascending
    uint32_t total = 0;
};
struct Descriptor {
    VkDescriptorType type = VK_DESCRIPTOR_TYPE_MAX_ENUM;  // MAX_ENUM: never written
    Object* object = nullptr;                             // Buffer, BufferView, ImageView or Sampler
    VkDeviceSize offset = 0, range = 0;
};
struct DescriptorSet;
struct DescriptorPool : Object {
    KP_OBJECT(DescriptorPool)
    VkDescriptorPoolCreateFlags flags = 0;
    uint32_t max_sets = 0, used_sets = 0;
    std::map<VkDescriptorType, std::pair<uint32_t, uint32_t>> capacity;  // type -> (limit, used)
    std::unordered_set<DescriptorSet*> sets;
};
struct DescriptorSet : Object {
    KP_OBJECT(DescriptorSet)
    DescriptorPool* pool = nullptr;
    std::vector<DescriptorSetLayout::Binding> bindings;
    std::vector<Descriptor> descriptors;
};
void write_descriptors(DescriptorSet& set, const VkWriteDescriptorSet& write);

struct PipelineLayout : Object {
    KP_OBJECT(PipelineLayout)
    std::vector<std::vector<DescriptorSetLayout::Binding>> sets;
    uint32_t push_bytes = 0;
};
struct Pipeline : Object {
    KP_OBJECT(Pipeline)
    std::string entry;
    uint64_t hash = 0;
    VkPipelineCreateFlags flags = 0;
};
struct PipelineCache : Object {
    KP_OBJECT(PipelineCache)
    std::mutex mutex;
    std::mutex compiling;  // held while a pipeline is made, if Config::compile_ms says so
    std::unordered_set<uint64_t> hashes;
};

// ------------------------------------------------------------------------------------- synchronisation

// A counter; several semaphores have one once a file descriptor of it was imported.
struct Payload {
    std::atomic<uint64_t> value{0};
    std::atomic<bool> exported{false};
};
struct Semaphore : Object {
    KP_OBJECT(Semaphore)
    bool exportable = false;
    std::shared_ptr<Payload> payload = std::make_shared<Payload>();
};
enum class QueryState : uint8_t { Undefined, Reset, Available };
struct QueryPool : Object {
    KP_OBJECT(QueryPool)
    uint32_t count = 0;
    std::unique_ptr<std::atomic<uint64_t>[]> values;
    std::unique_ptr<std::atomic<QueryState>[]> states;
};
uint64_t device_time_ns();  // strictly increasing
void reset_queries(QueryPool& pool, uint32_t first, uint32_t count);
bool write_query_results(QueryPool& pool, uint32_t first, uint32_t count, uint8_t* out, VkDeviceSize stride,
                         VkQueryResultFlags flags);

struct DebugUtilsMessenger : Object {
    static constexpr Kind kKind = Kind::DebugUtilsMessenger;
    using Handle = VkDebugUtilsMessengerEXT;
    explicit DebugUtilsMessenger(Object* owner) : Object(kKind, owner) {}
};
// --------------------------------------------------------------------------------------- small helpers

template <class T>
const T* find_in_chain(const void* next, VkStructureType type) {
    for (auto* node = static_cast<const VkBaseInStructure*>(next); node; node = node->pNext)
        if (node->sType == type) return reinterpret_cast<const T*>(node);
    return nullptr;
}
template <class T>
T* find_in_chain(void* next, VkStructureType type) {
    for (auto* node = static_cast<VkBaseOutStructure*>(next); node; node = node->pNext)
        if (node->sType == type) return reinterpret_cast<T*>(node);
    return nullptr;
}
template <class T>
VkResult fill_array(const T* items, size_t size, uint32_t* count, T* out) {
    if (!out) {
        *count = uint32_t(size);
        return VK_SUCCESS;
    }
    const uint32_t written = *count < size ? *count : uint32_t(size);
    for (uint32_t i = 0; i < written; ++i) out[i] = items[i];
    *count = written;
    return written < size ? VK_INCOMPLETE : VK_SUCCESS;
}
inline VkDeviceSize align_up(VkDeviceSize value, VkDeviceSize alignment) {
    return (value + alignment - 1) / alignment * alignment;
}

inline constexpr VkDeviceSize kAtomSize = 64;
inline constexpr VkDeviceSize kBufferAlignment = 64;
inline constexpr VkDeviceSize kImageGranularity = 1024;
inline constexpr VkDeviceSize kImportAlignment = 4096;

}  // namespace kpnull
