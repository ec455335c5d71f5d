// What tensors and images have in common: Kompute's memory types, device memory, and the host copy.
#pragma once

#include "base/fill_pattern.hpp"
#include "base/ranked.hpp"
#include "memory/allocator.hpp"
#include "resource/object.hpp"
#include "sync/freshness.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

namespace kp {

// Kompute's meaning and values.
enum class MemoryType : uint8_t {
    device = 0,           // device memory plus a host copy, moved by OpSyncDevice / OpSyncLocal
    host = 1,             // host memory that shaders use in place
    storage = 2,          // device memory only
    device_and_host = 3,  // one memory seen by both
};

[[nodiscard]] const char* to_string(MemoryType type) noexcept;

// The host copy of a `device` resource: a range in a mapped block that has a VkBuffer of its own. Shared, because NumPy
// views may outlive the resource. A resource that was made with no data has none until something needs it (array over it,
// sync operation): memory that only shaders use then costs once. It begins with what the resource was made with, however
// late it is made.
struct HostCopy {
    Allocation memory;
};

// The device's side: its memory, and in derived structs what Vulkan made over it.
struct DeviceSide {
    virtual ~DeviceSide() = default;
    std::shared_ptr<void> host_owner;  // of imported memory; goes after it, so it is declared before it
    Allocation memory;
};

struct InitialMarks;
struct InitialTarget;
struct ResourceRange;

// The contents of what has a host copy begin there. bring() uploads them, once, before anything uses the device's memory: the
// host's own reads and writes, mappings, exports, and recordings when they are built. A recording that begins by overwriting all of
// it needs no upload; then the contents count as brought when that recording was submitted. From then on only sync operations and
// write() change what the device holds.
class Resource : public Object {
public:
    [[nodiscard]] uint64_t nbytes() const noexcept { return nbytes_; }
    [[nodiscard]] MemoryType memory_type() const noexcept { return memory_type_; }
    void set_name(const std::string& name) override;
    [[nodiscard]] std::string detail() const override { return " of " + std::to_string(nbytes_) + " bytes"; }
    // Bytes of the contents, on the device and in a host copy that exists.
    [[nodiscard]] uint64_t held_bytes() const noexcept override;

    // Whether sync operations move data: there is a separate host copy, or will be once something needs it.
    [[nodiscard]] bool has_host_copy() const noexcept { return has_host_copy_; }
    // Whether the host's side exists already, or never will.
    [[nodiscard]] bool host_copy_made() const noexcept {
        return !has_host_copy_ || host_copy_made_.load(std::memory_order_acquire);
    }
    // Makes the host copy where there is to be one and is none yet. Thread-safe. Comes before all that reads or writes it.
    void need_host_copy();
    // The host can address the device's own memory of the resource as plain bytes.
    [[nodiscard]] bool host_visible() const noexcept { return direct_ != nullptr; }
    // Where the host reads and writes: the host copy, or the one memory. Null for `storage`, and before need_host_copy().
    [[nodiscard]] std::byte* host_data() const noexcept;
    [[nodiscard]] const std::shared_ptr<HostCopy>& host_copy() const noexcept { return host_copy_; }
    [[nodiscard]] const Allocation& host_memory() const noexcept { return host_copy_->memory; }
    [[nodiscard]] VkBuffer host_buffer() const noexcept { return host_copy_->memory.block_buffer(); }
    [[nodiscard]] uint64_t host_offset() const noexcept { return host_copy_->memory.offset(); }
    [[nodiscard]] const Allocation& device_memory() const noexcept;
    // The host addresses the device's own memory and does not cache it: each word that it reads crosses the bus (GPUs with a
    // resizable BAR, phones). What reads it copies it to cached memory with the device first; writing in place is fast.
    [[nodiscard]] bool slow_to_read() const noexcept { return slow_to_read_; }
    // Whether read() goes through the staging ring.
    [[nodiscard]] bool reads_staged() const noexcept { return !direct_ || slow_to_read(); }
    // Keeps the bytes behind host_data() alive beyond destroy().
    [[nodiscard]] std::shared_ptr<void> keep_host() const;
    // Whether the device's memory holds the contents; before that, the host copy does (where there is one yet).
    [[nodiscard]] bool on_device() const noexcept {
        return brought_.load(std::memory_order_acquire) == Brought::yes;
    }
    // Sees to it that the device's memory holds the contents, and that what the object began with is with the queue. Once it has,
    // it costs two loads. Throws; then nothing counts as done. Not under the graph mutex.
    void bring();
    // The same, but that it may still be collected.
    void bring_contents();
    // Whether bring() must come before a recording that is being planned uses the memory. `overwritten`: it begins by writing all of
    // it, without a look at what was there. Under the graph mutex.
    [[nodiscard]] bool must_be_brought(bool overwritten);
    // A recording that overwrites all of the memory was submitted. Under the graph mutex.
    void note_brought() noexcept;
    // How the host copy of these bytes stands to the device's memory, from what is known without a wait.
    [[nodiscard]] Freshness freshness(uint64_t offset, uint64_t size);
    // Both sides of these bytes are the same now, by other means than a sync operation.
    void note_match(uint64_t offset, uint64_t size) noexcept;
    // Somebody outside has got hold of device memory and may write it at any time.
    void note_exported();
    // A recording that forgets the resource did this last. Under the graph mutex.
    void note_run(const Effect& effect, const FreshnessRecord::Run& run) noexcept {
        freshness_.note_run(effect, run);
    }
    // The host has written these bytes of device memory and not of the host copy.
    void note_host_write(uint64_t offset, uint64_t size) noexcept;
    // Where the work that the object began with ends, on the first queue; no timeline: there was none.
    [[nodiscard]] Point initial_point() const noexcept;
    // The same, of all such work: what is collected is handed over.
    [[nodiscard]] Point initial_end() override;
    // The memory is somebody's who must not see it change: no recording and no transfer may write it.
    [[nodiscard]] bool read_only() const noexcept { return read_only_; }
    void require_writable() const;
    // The device's own memory for somebody who addresses it as bytes: where it is, and what keeps it (and the VkDevice)
    // alive beyond destroy(). Null where the host cannot address it, or would have to flush and invalidate by itself.
    struct Shared {
        std::byte* data = nullptr;
        std::shared_ptr<void> keep;
    };
    [[nodiscard]] bool shareable() const noexcept;
    [[nodiscard]] Shared share();
    // The host may touch host_data() once the device is past this point; no queue: at once.
    [[nodiscard]] Point settled() { return direct_ ? initial_end() : Point{}; }
    // A view of host_data() was handed out. Nobody tells when it dies, but it keeps this object alive for as long.
    void note_view() noexcept { viewed_ = true; }
    // The device closes: if there may be views, the bytes behind them stay until this object goes.
    void keep_viewed();

    // -- mapping (see resource/mapping.hpp); the first two under the graph mutex
    // Throws where another mapping of the same bytes is in the way. Adds the ends of the work to wait for; what InitialWork had of it
    // was handed over.
    void begin_mapping(const ResourceRange& range, bool writes, std::vector<Point>& pending);
    void end_mapping(const ResourceRange& range, bool writes) noexcept;
    // Throws where a mapping is in the way of a recording: `touches` says whether it uses what a mapping holds. Under the graph
    // mutex.
    void require_unmapped(const std::function<bool(const Held&)>& touches) const;
    // Throws where a mapping of these bytes is in the way of the host's own reading, or writing, of them.
    void require_unmapped(bool writes, uint64_t offset, uint64_t size) const;
    [[nodiscard]] std::byte* mapped() const noexcept { return direct_; }
    [[nodiscard]] std::shared_ptr<void> keep_device_side() const;
    void flush_range(uint64_t offset, uint64_t size) const;
    // What the host wrote goes out first: invalidating would drop it.
    void invalidate_range(uint64_t offset, uint64_t size) const;
    // Before the host writes a part: flushing moves whole atoms (nonCoherentAtomSize), and those at the part's ends would carry
    // old bytes beside it over what the device wrote there.
    void invalidate_ends(uint64_t offset, uint64_t size) const;

    // The device's contents, after pending work. Blocks. These three throw where a mapping is in the way.
    void read(void* out, uint64_t offset, uint64_t size);
    // Replaces the device's contents (not the host copy), after pending work. Blocks.
    void write(const void* data, uint64_t offset, uint64_t size);
    // Copies device contents of a resource of another device here, after pending work on both, with the host. The host must
    // address the memory of one of the two. Blocks.
    void receive(Resource& source, uint64_t source_offset, uint64_t offset, uint64_t size);
    // Waits for pending work and brings both sides of memory that the host addresses together.
    void wait_pending();

    // Before and after the device uses memory that the host wrote to or will read; no-ops on coherent memory.
    void flush(const Allocation& memory) const;
    void invalidate(const Allocation& memory) const;

protected:
    Resource(std::shared_ptr<Device> device, ObjectKind kind, uint64_t nbytes, MemoryType type);

    // Staged transfer, for memory that the host cannot address or reads slowly.
    virtual void download(void* out, uint64_t offset, uint64_t size) = 0;
    virtual void upload(const void* data, uint64_t offset, uint64_t size) = 0;
    // All of the contents, by way of InitialWork: nothing waits. False where that cannot hold them.
    [[nodiscard]] virtual bool collect_upload(const void* data) = 0;
    // All of the contents of memory that nothing has used yet.
    void begin_with(const void* data);
    // To be called where the host does not address the memory, or Vulkan has work to do before anybody uses it.
    void expect_initial_work();
    [[nodiscard]] InitialTarget initial_target() const;
    // The contents are those of the host copy.
    void begin_on_host() noexcept {
        if (nbytes_ != 0) brought_.store(Brought::no, std::memory_order_relaxed);
    }
    void make_host_copy();
    // need_host_copy() will make it, filled with `initial`; with none, its contents are undefined.
    void defer_host_copy(std::optional<FillPattern> initial);
    // Runs `body` when no work is pending that gets in its way, and brings memory that the host addresses up to date.
    // `whole`: of all of it.
    void transfer(const char* action, bool writes, bool whole, const std::function<void()>& body);
    // For release(): another thread may be in the middle of read() or write(). New ones are refused by then.
    void end_transfers();

    std::shared_ptr<DeviceSide> device_side_;
    std::shared_ptr<HostCopy> host_copy_;
    std::shared_ptr<void> kept_for_views_;
    // Sets direct_ and what goes with it, once device memory is there.
    void address(const Allocation& memory) noexcept;
    std::byte* direct_ = nullptr;
    bool slow_to_read_ = false;
    bool viewed_ = false;
    bool has_host_copy_ = false;
    bool begins_undefined_ = false;  // unless a host copy is made before the first use
    std::atomic<bool> host_copy_made_{false};
    bool read_only_ = false;
    uint64_t nbytes_;
    MemoryType memory_type_;

    void release(std::vector<Point> points) override;
    void close() override;

private:
    void wait_for_work(bool writers_only = false);
    // These with the transfer lock held and everything checked.
    void read_now(void* out, uint64_t offset, uint64_t size);
    void write_now(const void* data, uint64_t offset, uint64_t size);
    void store(const void* data, uint64_t offset, uint64_t size);
    void bring_now();
    // Runs `how`, which writes all of the device's memory, as what brings the contents; false where others have brought them.
    bool bring_by(const std::function<void()>& how);
    [[nodiscard]] bool claim();
    // read() and write() of a mapping's own bytes, which it keeps others from.
    void read_mapped(void* out, uint64_t offset, uint64_t size);
    void write_mapped(const void* data, uint64_t offset, uint64_t size);
    // Brings both sides of memory that the host addresses together, once no work is pending: what the host wrote goes out
    // (a cache writes back only lines it changed), then what the device wrote comes in.
    void settle() const;
    void check_range(uint64_t offset, uint64_t size, const char* action) const;
    void note_host(uint64_t offset, uint64_t size, Freshness left) noexcept;
    // All of the contents are on the device from now on: the host copy's, or what the resource was made with.
    void note_first_contents(bool of_host_copy) noexcept;
    class HostWriting;
    friend class Mapping;
    friend class Stream;
    friend class StreamPlan;
    // The plan's number of the host copy (Object::slot_ numbers the device's side).
    uint64_t host_epoch_ = 0;
    uint32_t host_slot_ = 0;
    struct Mapped {
        uint64_t offset = 0;
        uint64_t size = 0;
        bool writes = false;
    };
    // What a mapping holds back: where the memory is not coherent, all of the atoms (nonCoherentAtomSize) that it lies in, since
    // those move as a whole.
    [[nodiscard]] Held held(const Mapped& mapping) const noexcept;
    [[nodiscard]] std::string how(const Mapped& mapping) const;
    std::vector<Mapped> mappings_;
    std::atomic<bool> is_mapped_{false};                // whether there are any: seen without the graph mutex
    RankedSharedMutex transfers_{LockRank::transfers};  // shared: a host transfer runs
    RankedMutex host_copy_mutex_{LockRank::host_copy};  // held while it is made or let go
    std::optional<FillPattern> initial_;                // of a host copy that is not made yet
    enum class Brought : uint8_t { no, moving, yes };
    std::atomic<Brought> brought_{Brought::yes};  // changes under the graph mutex
    RankedMutex bringing_{LockRank::bringing};    // held by the one who brings; comes before the graph mutex
    std::shared_ptr<InitialMarks> initial_marks_;
    FreshnessRecord freshness_;  // under the graph mutex
    // write() has been up to here; memory behind it may be fresh. Only a guess, so that writers need not agree on it.
    std::atomic<uint64_t> touched_{0};
};

// Bytes of a resource: what a tensor, or a view of a part of one, names. Operations and bindings speak of ranges, so that a
// part is ordered, moved and bound without the rest. An image is always whole: texels do not follow byte ranges.
struct ResourceRange {
    std::shared_ptr<Resource> resource;
    uint64_t offset = 0;
    uint64_t size = 0;

    ResourceRange() = default;
    ResourceRange(std::shared_ptr<Resource> whole) : resource(std::move(whole)), size(resource->nbytes()) {}
    ResourceRange(std::shared_ptr<Resource> part, uint64_t begin, uint64_t bytes)
        : resource(std::move(part)), offset(begin), size(bytes) {}

    [[nodiscard]] uint64_t end() const noexcept { return offset + size; }
    [[nodiscard]] bool whole() const noexcept { return offset == 0 && size == resource->nbytes(); }
    [[nodiscard]] bool overlaps(const ResourceRange& other) const noexcept {
        return resource == other.resource && size != 0 && other.size != 0 && offset < other.end() &&
               other.offset < end();
    }
    // "tensor 'weights'", or "tensor 'weights' (bytes 64 to 128)": how messages call it.
    [[nodiscard]] std::string label() const;

    friend bool operator==(const ResourceRange&, const ResourceRange&) = default;
};

// The union of ranges, as ranges of which none overlaps another.
[[nodiscard]] std::vector<ResourceRange> merged(std::vector<ResourceRange> ranges);

}  // namespace kp
