// The common part of tensors and images: Kompute's memory types, device memory, and the host copy.
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

// Meanings and values are Kompute's.
enum class MemoryType : uint8_t {
    device = 0,           // device memory plus a host copy, moved by OpSyncDevice / OpSyncLocal
    host = 1,             // host memory that shaders use in place
    storage = 2,          // device memory only
    device_and_host = 3,  // one memory seen by both
};

[[nodiscard]] const char* to_string(MemoryType type) noexcept;

// The host copy of a `device` resource: a range in a mapped block that has a VkBuffer of its own. Shared,
// because NumPy views may outlive the resource. A resource made without data has no host copy until one is
// needed (for an array over it, or a sync operation), so memory that only shaders use is allocated once.
// However late it is made, it begins with the resource's initial contents.
struct HostCopy {
    Allocation memory;
};

class HostPages;
struct SharedPages;
struct InitialMarks;

// The device's side: its memory and, in derived structs, the Vulkan handles over it.
struct DeviceSide {
    virtual ~DeviceSide() = default;
    // Of memory that several tensors may be over, and the owner of this one's bytes there; declared first, so
    // that they are freed after the memory.
    std::shared_ptr<SharedPages> pages;
    std::shared_ptr<void> host_owner;
    Allocation memory;
};

struct InitialTarget;
struct ResourceRange;

// If a resource has a host copy, its contents begin there. bring() uploads them, once, before the first use
// of the device's memory: the host's own reads and writes, mappings, exports, and recordings when they are
// built. A recording that begins by overwriting all of the memory needs no upload; the contents then count
// as brought when that recording was submitted. From then on, only sync operations and write() change the
// device's contents from the host.
class Resource : public Object {
public:
    [[nodiscard]] uint64_t nbytes() const noexcept { return nbytes_; }
    [[nodiscard]] MemoryType memory_type() const noexcept { return memory_type_; }
    void set_name(const std::string& name) override;
    [[nodiscard]] std::string detail() const override { return " of " + std::to_string(nbytes_) + " bytes"; }
    // Bytes of the contents, on the device and in a host copy that exists.
    [[nodiscard]] uint64_t held_bytes() const noexcept override;

    // True if sync operations move data: there is a separate host copy, or one will be made when it is
    // needed.
    [[nodiscard]] bool has_host_copy() const noexcept { return has_host_copy_; }
    // True if the host's side exists already, or never will.
    [[nodiscard]] bool host_copy_made() const noexcept {
        return !has_host_copy_ || host_copy_made_.load(std::memory_order_acquire);
    }
    // Makes the host copy if there is to be one and it does not exist yet. Thread-safe. Call it before
    // reading or writing the copy.
    void need_host_copy();
    // True if the host can address the device's own memory of the resource as plain bytes.
    [[nodiscard]] bool host_visible() const noexcept { return direct_ != nullptr; }
    // The memory that the host reads and writes: the host copy, or the one memory. Null for `storage`, and
    // before need_host_copy().
    [[nodiscard]] std::byte* host_data() const noexcept;
    [[nodiscard]] const std::shared_ptr<HostCopy>& host_copy() const noexcept { return host_copy_; }
    [[nodiscard]] const Allocation& host_memory() const noexcept { return host_copy_->memory; }
    [[nodiscard]] VkBuffer host_buffer() const noexcept { return host_copy_->memory.block_buffer(); }
    [[nodiscard]] uint64_t host_offset() const noexcept { return host_copy_->memory.offset(); }
    [[nodiscard]] const Allocation& device_memory() const noexcept;
    // The host addresses the device's own memory and does not cache it: each word that it reads crosses the
    // bus (GPUs with a resizable BAR, phones). Readers first copy it to cached memory with the device;
    // writing in place is fast.
    [[nodiscard]] bool slow_to_read() const noexcept { return slow_to_read_; }
    // True if read() goes through the staging ring.
    [[nodiscard]] bool reads_staged() const noexcept { return !direct_ || slow_to_read(); }
    // Keeps the bytes behind host_data() alive beyond destroy().
    [[nodiscard]] std::shared_ptr<void> keep_host() const;
    // True if the device's memory holds the contents. Before that, the host copy (if it exists yet) holds
    // them.
    [[nodiscard]] bool on_device() const noexcept {
        return brought_.load(std::memory_order_acquire) == Brought::yes;
    }
    // Brings the contents to the device's memory, and hands the resource's initial work to the queue. Once
    // done, further calls cost two loads. If it throws, nothing counts as done. Do not call it under the
    // graph mutex.
    void bring();
    // The same, but the work may still be collected, not yet handed over.
    void bring_contents();
    // True if bring() must come before the use of the memory by a recording that is being planned; if there
    // are no contents to bring, that is noted here. `overwritten`: the recording begins by writing all of the
    // memory without reading it. Under the graph mutex.
    [[nodiscard]] bool must_be_brought(bool overwritten);
    // Call it when a recording that overwrites all of the memory was submitted. Under the graph mutex.
    void note_brought() noexcept;
    // Compares the host copy of these bytes with the device's memory, as far as known without a wait.
    [[nodiscard]] Freshness freshness(uint64_t offset, uint64_t size);
    // True if a write by the host was the last change of some of these bytes of device memory, and made them
    // newer than the host copy. Under the graph mutex.
    [[nodiscard]] bool left_behind(uint64_t begin, uint64_t end);
    // Both sides of these bytes are the same now, for a reason other than a sync operation.
    void note_match(uint64_t offset, uint64_t size) noexcept;
    // Device memory was exported: other code may write it at any time.
    void note_exported();
    // Notes the last run of a recording that forgets the resource. Under the graph mutex.
    void note_run(const Effect& effect, const FreshnessRecord::Run& run) noexcept {
        freshness_.note_run(effect, run);
    }
    // The host has written these bytes of device memory but not of the host copy.
    void note_host_write(uint64_t offset, uint64_t size) noexcept;
    // The end of the resource's initial work, on the first queue; no timeline if there was none.
    [[nodiscard]] Point initial_point() const noexcept;
    // The same, after handing over collected work.
    [[nodiscard]] Point initial_end() override;
    // True if no recording and no transfer may write it: it is frozen, or its owner must not see it change.
    [[nodiscard]] bool read_only() const noexcept { return read_only_.load(std::memory_order_acquire); }
    // Makes it read-only for good, once the contents are on the device. Throws if arrays or a mapping may
    // write it. Recordings are rebuilt before they run again, so that those that write it are refused.
    void freeze();
    void require_writable() const;
    [[nodiscard]] Object& ordered_by() noexcept override;
    // The place of its first byte among all that is ordered with it: the address, if it is memory of the
    // process.
    [[nodiscard]] uint64_t first_byte() const noexcept { return first_byte_; }
    // The device's own memory for code that addresses it as bytes: the address, and an object that keeps
    // the memory (and the VkDevice) alive beyond destroy(). Null if the host cannot address it, or would
    // have to flush and invalidate by itself.
    struct Shared {
        std::byte* data = nullptr;
        std::shared_ptr<void> keep;
    };
    [[nodiscard]] bool shareable() const noexcept;
    [[nodiscard]] Shared share();
    // The host may touch host_data() once the device is past this point; no timeline: at once.
    [[nodiscard]] Point settled() { return direct_ ? initial_end() : Point{}; }
    // Call it when a view of host_data() was handed out. The view's end is not reported, but the view keeps
    // this object alive.
    void note_view() noexcept { viewed_ = true; }
    [[nodiscard]] bool viewed() const noexcept { return viewed_; }
    // The device closes: if views may exist, their bytes stay until this object is destroyed.
    void keep_viewed();

    // -- mapping (see resource/mapping.hpp); the first two under the graph mutex
    // Throws if another mapping of the same bytes conflicts. Adds the ends of the work to wait for. Hand
    // over the resource's work in InitialWork first.
    void begin_mapping(const ResourceRange& range, bool writes, std::vector<Point>& pending);
    void end_mapping(const ResourceRange& range, bool writes) noexcept;
    // Throws if a mapping conflicts with a recording: `touches` returns true if the recording uses the
    // bytes that a mapping holds. Under the graph mutex.
    void require_unmapped(const std::function<bool(const Held&)>& touches);
    // Throws if a mapping of these bytes conflicts with the host's own read or write of them.
    void require_unmapped(bool writes, uint64_t offset, uint64_t size);
    [[nodiscard]] std::byte* mapped() const noexcept { return direct_; }
    [[nodiscard]] std::shared_ptr<void> keep_device_side() const;
    // The memory and, destroyed after it, its device.
    [[nodiscard]] std::shared_ptr<void> keep(std::shared_ptr<void> memory) const;
    void flush_range(uint64_t offset, uint64_t size) const;
    // Flushes the host's writes first, because invalidating would drop them.
    void invalidate_range(uint64_t offset, uint64_t size) const;
    // Call it before the host writes a part: flushing moves whole atoms (nonCoherentAtomSize), and those at
    // the part's ends would carry stale bytes over the device's writes beside the part.
    void invalidate_ends(uint64_t offset, uint64_t size) const;

    // Reads the device's contents after pending work. Blocks. This and the next two throw if a mapping
    // conflicts.
    void read(void* out, uint64_t offset, uint64_t size);
    // Replaces the device's contents (not the host copy) after pending work. Blocks.
    void write(const void* data, uint64_t offset, uint64_t size);
    // Copies device contents of a resource of another device here, with the host, after pending work on
    // both. The host must address the memory of one of the two. Blocks.
    void receive(Resource& source, uint64_t source_offset, uint64_t offset, uint64_t size);
    // Waits for pending work and synchronizes both sides of memory that the host addresses.
    void wait_pending();
    // True if read() would wait for no submitted work. Another thread may submit some right after.
    [[nodiscard]] bool idle();

    // Call these before and after the device uses memory that the host wrote or will read. They do nothing
    // on coherent memory.
    void flush(const Allocation& memory) const;
    void invalidate(const Allocation& memory) const;

protected:
    Resource(std::shared_ptr<Device> device, ObjectKind kind, uint64_t nbytes, MemoryType type);

    // Staged transfer, for memory that the host cannot address or reads slowly.
    virtual void download(void* out, uint64_t offset, uint64_t size) = 0;
    virtual void upload(const void* data, uint64_t offset, uint64_t size) = 0;
    // Uploads all of the contents through InitialWork, without a wait. False if InitialWork cannot hold
    // them.
    [[nodiscard]] virtual bool collect_upload(const void* data) = 0;
    // Writes all of the contents of memory that is still unused.
    void begin_with(const void* data);
    // Call it if the host does not address the memory, or if Vulkan has work to do before the first use.
    void expect_initial_work();
    [[nodiscard]] InitialTarget initial_target() const;
    // The contents begin in the host copy.
    void begin_on_host() noexcept {
        if (nbytes_ != 0) brought_.store(Brought::no, std::memory_order_relaxed);
    }
    void make_host_copy();
    // need_host_copy() makes the copy later, filled with `initial`; without it, the copy's contents are
    // undefined.
    void defer_host_copy(std::optional<FillPattern> initial);
    // Runs `body` when no conflicting work is pending, and brings memory that the host addresses up to
    // date. `body` transfers bytes of `touched`; `whole`: all bytes of the memory.
    struct Touched {
        uint64_t offset = 0;
        uint64_t size = 0;
        bool all = true;  // of these bytes; else only some of them
    };
    void transfer(const char* action, bool writes, bool whole, Touched touched,
                  const std::function<void()>& body);
    void transfer(const char* action, bool writes, bool whole, const std::function<void()>& body) {
        transfer(action, writes, whole, {0, nbytes_, true}, body);
    }
    // For release(): another thread may be in the middle of read() or write(). New calls are already
    // refused.
    void end_transfers();

    std::shared_ptr<DeviceSide> device_side_;
    std::shared_ptr<HostCopy> host_copy_;
    std::shared_ptr<void> kept_for_views_;
    // Sets direct_ and the members that depend on it, once device memory exists.
    void address(const Allocation& memory) noexcept;
    std::byte* direct_ = nullptr;
    bool slow_to_read_ = false;
    bool viewed_ = false;
    bool has_host_copy_ = false;
    bool begins_undefined_ = false;  // unless a host copy is made before the first use
    std::atomic<bool> host_copy_made_{false};
    std::atomic<bool> read_only_{false};  // becomes true under the graph mutex and alone in transfers_
    // For imported memory, once; before anybody else knows this object.
    void share_pages(const std::byte* data);
    uint64_t nbytes_;
    MemoryType memory_type_;

    void release(std::vector<Point> points) override;
    void close() override;

private:
    void wait_for_work(bool writers_only = false);
    // Call these with the transfer lock held and everything checked.
    void read_now(void* out, uint64_t offset, uint64_t size);
    void write_now(const void* data, uint64_t offset, uint64_t size);
    void store(const void* data, uint64_t offset, uint64_t size);
    void bring_now();
    // Brings the contents by running `how`, which writes all of the device's memory; false if another
    // thread has brought them.
    bool bring_by(const std::function<void()>& how);
    [[nodiscard]] bool claim();
    // read() and write() of the mapping's own bytes, to which the mapping refuses other access.
    void read_mapped(void* out, uint64_t offset, uint64_t size);
    void write_mapped(const void* data, uint64_t offset, uint64_t size);
    // Synchronizes both sides of memory that the host addresses, once no work is pending: flushes the
    // host's writes (a cache writes back only the lines that it changed), then invalidates, so that the
    // host sees the device's writes.
    void settle() const;
    void check_range(uint64_t offset, uint64_t size, const char* action) const;
    void note_host(uint64_t offset, uint64_t size, Freshness left, bool wrote = false) noexcept;
    // The same under the graph mutex.
    void note_host_locked(uint64_t offset, uint64_t size, Freshness left, bool wrote) noexcept;
    // From now on, all of the contents are on the device: those of the host copy, or the initial ones.
    void note_first_contents(bool of_host_copy) noexcept;
    class HostWriting;
    friend class Mapping;
    friend class BuiltRecording;
    friend class StreamPlan;
    // The plan's number of the host copy (Object::slot_ numbers the device's side).
    uint64_t host_epoch_ = 0;
    uint32_t host_slot_ = 0;
    // The bytes that a mapping holds back. If the memory is not coherent, these are all the atoms
    // (nonCoherentAtomSize) that the mapping lies in, because atoms move as a whole.
    [[nodiscard]] Held held(const ResourceRange& range, bool writes) const noexcept;
    [[nodiscard]] std::string how(const Mapped& mapping) const;
    std::shared_ptr<HostPages> pages_;  // of imported memory
    uint64_t first_byte_ = 0;
    std::atomic<bool> is_mapped_{false};  // whether mappings may exist; read without the graph mutex
    RankedSharedMutex transfers_{LockRank::transfers};  // shared: a host transfer runs
    RankedMutex host_copy_mutex_{LockRank::host_copy};  // held while the host copy is made or dropped
    std::optional<FillPattern> initial_;                // of a host copy that is not made yet
    enum class Brought : uint8_t { no, moving, yes };
    std::atomic<Brought> brought_{Brought::yes};  // changes under the graph mutex
    // Held by the thread that brings; taken before the graph mutex.
    RankedMutex bringing_{LockRank::bringing};
    std::shared_ptr<InitialMarks> initial_marks_;
    FreshnessRecord freshness_;  // under the graph mutex
    // write() has been up to here; memory behind it may be fresh. Only a guess, so that writers need not
    // synchronize on it.
    std::atomic<uint64_t> touched_{0};
};

// Bytes of a resource: a tensor, or a view of a part of one. Operations and bindings use ranges, so that a
// part can be ordered, moved and bound without the rest. An image is always whole, because texels do not
// follow byte ranges.
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
    // Where the bytes are. Two tensors over the same memory of the process differ in all but this.
    struct Place {
        const void* memory = nullptr;
        uint64_t begin = 0;
        uint64_t end = 0;

        friend bool operator==(const Place&, const Place&) = default;
    };
    [[nodiscard]] Place place() const noexcept;
    [[nodiscard]] bool overlaps(const ResourceRange& other) const noexcept;
    [[nodiscard]] bool contains(const ResourceRange& other) const noexcept;
    // The name in messages: "tensor 'weights'", or "tensor 'weights' (bytes 64 to 128)".
    [[nodiscard]] std::string label() const;

    friend bool operator==(const ResourceRange&, const ResourceRange&) = default;
};

}  // namespace kp
