#include "resource/resource.hpp"

#include "base/error.hpp"
#include "base/first_touch.hpp"
#include "base/host_span.hpp"
#include "device/device.hpp"
#include "device/initial_work.hpp"
#include "resource/host_pages.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <mutex>
#include <new>
#include <optional>
#include <vector>

namespace kp {
namespace {

// For release(). In a destructor, no other thread has the resource's locks, and this thread may hold any
// other lock: the lock is taken at once, whatever its rank. Otherwise it is waited for, in the order of
// ranks.
template <class Mutex>
std::unique_lock<Mutex> alone(Mutex& mutex) {
    std::unique_lock lock(mutex, std::try_to_lock);
    if (!lock.owns_lock()) lock.lock();
    return lock;
}

}  // namespace

const char* to_string(MemoryType type) noexcept {
    switch (type) {
    case MemoryType::device: return "device";
    case MemoryType::host: return "host";
    case MemoryType::storage: return "storage";
    case MemoryType::device_and_host: return "deviceAndHost";
    }
    return "unknown";
}

Resource::Resource(std::shared_ptr<Device> device, ObjectKind kind, uint64_t nbytes, MemoryType type)
    : Object(std::move(device), kind), nbytes_(nbytes), memory_type_(type) {}

void Resource::set_name(const std::string& name) {
    Object::set_name(name);
    const std::lock_guard lock(host_copy_mutex_);
    if (device_side_) device_side_->memory.set_label(label());
    if (host_copy_) host_copy_->memory.set_label("the host copy of " + label());
}

uint64_t Resource::held_bytes() const noexcept {
    if (!is_init()) return 0;
    return has_host_copy_ && host_copy_made_.load(std::memory_order_acquire) ? 2 * nbytes_ : nbytes_;
}

void Resource::make_host_copy() {
    auto copy = std::make_shared<HostCopy>();
    copy->memory = device().memory().allocate_host_copy(std::max<uint64_t>(nbytes_, 1),
                                                        kind() == ObjectKind::image ? "an image's host copy"
                                                                                    : "a tensor's host copy");
    if (initial_) {
        initial_->write(copy->memory.mapped(), nbytes_);
        initial_.reset();
    }
    if (!name().empty()) copy->memory.set_label("the host copy of " + label());
    host_copy_ = std::move(copy);
    has_host_copy_ = true;
    host_copy_made_.store(true, std::memory_order_release);
}

void Resource::defer_host_copy(std::optional<FillPattern> initial) {
    begins_undefined_ = !initial;
    initial_ = std::move(initial);
    has_host_copy_ = true;
}

void Resource::need_host_copy() {
    if (host_copy_made()) return;
    device().retired().collect();  // before the lock, because freeing may take other locks
    const std::lock_guard lock(host_copy_mutex_);
    // Check under the lock, which release() takes after is_init() turned false: a destroyed resource gets
    // no copy.
    require_init("make the host copy of");
    if (!host_copy_made()) make_host_copy();
}

std::byte* Resource::host_data() const noexcept {
    if (has_host_copy_)
        return host_copy_made_.load(std::memory_order_acquire) ? host_copy_->memory.mapped() : nullptr;
    return memory_type_ == MemoryType::storage ? nullptr : direct_;
}

const Allocation& Resource::device_memory() const noexcept {
    static const Allocation none;
    return device_side_ ? device_side_->memory : none;
}

std::shared_ptr<void> Resource::keep_host() const {
    if (!host_data()) return nullptr;
    if (host_copy_) return keep(host_copy_);
    return keep(device_side_);
}

void Resource::require_writable() const {
    if (!read_only()) return;
    throw Error(ErrorKind::failed_precondition,
                "The " + label() + " is read-only: " +
                    (pages_ ? "its memory is an array's that was imported as immutable. Import a writable "
                              "array with MUTABLE_ZERO_COPY, or copy it with copy=\"always\""
                            : "it was frozen. Write to a copy: t.to(t.manager, copy=True)"));
}

void Resource::freeze() {
    bring();
    const auto transfers = alone(transfers_);
    const std::lock_guard lock(device().graph_mutex());
    require_init("freeze");
    const bool mapped =
        std::any_of(mappings_.begin(), mappings_.end(), [](const Mapped& each) { return each.writes; });
    if (!read_only() && (mapped || (viewed_ && !has_host_copy_)))
        throw Error(ErrorKind::failed_precondition,
                    "The " + label() + " cannot be frozen: " +
                        (mapped ? "a mapping that writes it is open. Close it first"
                                : "arrays over its memory were given out, which could write it (data(), "
                                  "np.asarray, views). Freeze a copy: t.to(t.manager, copy=True).freeze()"));
    read_only_.store(true, std::memory_order_release);
    outdate_recordings();
}

void Resource::address(const Allocation& memory) noexcept {
    direct_ = memory.mapped();
    slow_to_read_ =
        direct_ && memory.device_local() && !memory.cached() && device().memory().host_copies_cached();
}

bool Resource::shareable() const noexcept {
    // A consumer reads shared memory element by element. (The two types with one memory are what the host
    // sees in any case.)
    if (has_host_copy_ || memory_type_ == MemoryType::storage)
        if (slow_to_read()) return false;
    // The one memory of `host` and `deviceAndHost` is flushed and invalidated around every recording. The
    // memory of the other types is not, so it must be coherent.
    return direct_ != nullptr && (device_memory().coherent() || memory_type_ == MemoryType::host ||
                                  memory_type_ == MemoryType::device_and_host);
}

Resource::Shared Resource::share() {
    const std::shared_lock lock(transfers_);
    require_init("share");
    if (!shareable()) return {};
    auto kept = keep_device_side();
    bring_now();
    note_exported();
    return {direct_, std::move(kept)};
}

void Resource::close() {
    keep_viewed();
    destroy();
}

void Resource::keep_viewed() {
    if (!viewed_) return;
    if (host_copy_)
        kept_for_views_ = host_copy_;
    else
        kept_for_views_ = device_side_;
}

void Resource::release(std::vector<Point> points) {
    struct Payload {
        std::shared_ptr<DeviceSide> side;
        std::shared_ptr<HostCopy> copy;
    };
    // Freed after the locks, because freeing may take other locks.
    Payload freed;
    {
        const auto lock = alone(transfers_);
        const auto copy_lock = alone(host_copy_mutex_);
        host_copy_made_.store(false, std::memory_order_relaxed);
        direct_ = nullptr;
        freed.side = std::move(device_side_);
        freed.copy = std::move(host_copy_);
    }
    if (points.empty()) return;
    device().retired().push(std::move(points), std::make_shared<Payload>(std::move(freed)));
}

void Resource::flush(const Allocation& memory) const {
    if (!memory.mapped() || memory.coherent()) return;
    const VkMappedMemoryRange range = memory.mapped_range();
    device().flush({&range, 1}, label().c_str());
}

void Resource::invalidate(const Allocation& memory) const {
    if (!memory.mapped() || memory.coherent()) return;
    const VkMappedMemoryRange range = memory.mapped_range();
    device().invalidate({&range, 1}, label().c_str());
}

void Resource::end_transfers() { const auto lock = alone(transfers_); }

void Resource::wait_pending() {
    const std::shared_lock lock(transfers_);
    require_init("wait for");
    wait_for_work();
    if (direct_) settle();
}

bool Resource::idle() {
    for (const auto& point : pending(true))
        if (!point.timeline->passed(point.value)) return false;
    if (!reads_staged()) return true;
    // The transfer waits in its queue for all that was submitted before.
    const auto& queues = device().queues();
    return std::all_of(queues.begin(), queues.end(),
                       [](const auto& logical) { return logical.queue->passed(logical.queue->submitted()); });
}

void Resource::wait_for_work(bool writers_only) {
    for (const auto& point : pending(writers_only)) point.timeline->wait_until(point.value);
}

void Resource::settle() const {
    flush(device_memory());
    invalidate(device_memory());
}

std::shared_ptr<void> Resource::keep_device_side() const { return keep(device_side_); }

std::shared_ptr<void> Resource::keep(std::shared_ptr<void> memory) const {
    struct Kept {
        std::shared_ptr<Device> device;
        std::shared_ptr<void> memory;
    };
    return std::make_shared<Kept>(Kept{shared_device(), std::move(memory)});
}

void Resource::begin_mapping(const ResourceRange& range, bool writes, std::vector<Point>& points) {
    Object& by = ordered_by();
    const uint64_t begin = first_byte_ + range.offset;
    for (const Mapped& other : by.mappings_)
        if ((writes || other.writes) && other.size != 0 && range.size != 0 &&
            other.offset < begin + range.size && begin < other.offset + other.size)
            throw Error(ErrorKind::failed_precondition,
                        "Cannot map the " + range.label() + (writes ? " to write" : " to read") +
                            ": it is mapped to " + (other.writes ? "write" : "read") +
                            " already. Close that mapping first");
    by.mappings_.push_back({begin, range.size, writes, held(range, writes)});
    is_mapped_ = true;
    if (range.size != 0) by.hold_back(by.mappings_.back().held, points);
    if (const Point point = initial_point(); point.timeline) merge_point(points, point);
}

void Resource::end_mapping(const ResourceRange& range, bool writes) noexcept {
    Object& by = ordered_by();
    const auto mine = std::find_if(by.mappings_.begin(), by.mappings_.end(), [&](const Mapped& each) {
        return each.offset == first_byte_ + range.offset && each.size == range.size && each.writes == writes;
    });
    if (mine == by.mappings_.end()) return;
    if (mine->size != 0) by.let_go(mine->held);
    by.mappings_.erase(mine);
    is_mapped_ = pages_ || !by.mappings_.empty();
}

Object::Held Resource::held(const ResourceRange& range, bool writes) const noexcept {
    const Allocation& memory = device_memory();
    if (!memory.mapped() || memory.coherent())
        return {first_byte_ + range.offset, first_byte_ + range.end(), !writes};
    const VkMappedMemoryRange atoms = memory.mapped_range(range.offset, range.size);
    const uint64_t begin = first_byte_ + atoms.offset - memory.offset();
    return {begin, begin + atoms.size, !writes};
}

std::string Resource::how(const Mapped& mapping) const {
    // The mapping may be one of other memory that overlaps this.
    const uint64_t begin = std::max(mapping.offset, first_byte_) - first_byte_;
    const uint64_t end = std::min(mapping.offset + mapping.size - first_byte_, nbytes_);
    const bool whole = begin == 0 && end == nbytes_;
    return std::string("mapped to ") + (mapping.writes ? "write" : "read") +
           (whole ? std::string() : " (bytes " + std::to_string(begin) + " to " + std::to_string(end) + ")");
}

void Resource::require_unmapped(const std::function<bool(const Held&)>& touches) {
    for (const Mapped& mapping : ordered_by().mappings_) {
        if (mapping.size == 0) continue;
        const Held& atoms = mapping.held;
        if (!touches(atoms)) continue;
        const bool beside = !touches({mapping.offset, mapping.offset + mapping.size, !mapping.writes});
        throw Error(ErrorKind::failed_precondition,
                    "The " + label() + " is " + how(mapping) + ": work that " +
                        (mapping.writes ? "uses " : "writes ") +
                        (beside ? "bytes " + std::to_string(atoms.begin - first_byte_) + " to " +
                                      std::to_string(atoms.end - first_byte_) +
                                      ", which this memory moves as a whole (nonCoherentAtomSize),"
                                : std::string(mapping.offset == first_byte_ && mapping.size == nbytes_
                                                  ? "it"
                                                  : "these bytes")) +
                        " cannot be evaluated. Close the mapping first");
    }
}

void Resource::require_unmapped(bool writes, uint64_t offset, uint64_t size) {
    if (!is_mapped_ || size == 0) [[likely]]
        return;
    const std::lock_guard lock(device().graph_mutex());
    const uint64_t begin = first_byte_ + offset;
    for (const Mapped& mapping : ordered_by().mappings_)
        if ((writes || mapping.writes) && mapping.size != 0 && mapping.offset < begin + size &&
            begin < mapping.offset + mapping.size)
            throw Error(ErrorKind::failed_precondition,
                        "The " + label() + " is " + how(mapping) + ": meanwhile it cannot be " +
                            (writes ? "written" : "read") +
                            " there in another way. Use the mapping's array, or close the mapping first");
}

void Resource::flush_range(uint64_t offset, uint64_t size) const {
    const Allocation& memory = device_memory();
    if (!memory.mapped() || memory.coherent() || size == 0) return;
    const VkMappedMemoryRange mapped = memory.mapped_range(offset, size);
    device().flush({&mapped, 1}, label().c_str());
}

void Resource::invalidate_ends(uint64_t offset, uint64_t size) const {
    if (size == 0) return;
    if (offset != 0) invalidate_range(offset, 1);
    if (offset + size != nbytes_) invalidate_range(offset + size - 1, 1);
}

void Resource::invalidate_range(uint64_t offset, uint64_t size) const {
    const Allocation& memory = device_memory();
    if (!memory.mapped() || memory.coherent() || size == 0) return;
    flush_range(offset, size);
    const VkMappedMemoryRange mapped = memory.mapped_range(offset, size);
    device().invalidate({&mapped, 1}, label().c_str());
}

void Resource::check_range(uint64_t offset, uint64_t size, const char* action) const {
    require_init(action);
    if (offset > nbytes_ || size > nbytes_ - offset)
        throw Error(ErrorKind::out_of_range, std::string("Cannot ") + action + " bytes " +
                                                 std::to_string(offset) + " to " +
                                                 std::to_string(offset + size) + " of the " + label() +
                                                 ", which has " + std::to_string(nbytes_) + " bytes");
}

// Exists while the host writes device memory. An interrupted write may have written a part.
class Resource::HostWriting {
public:
    HostWriting(Resource& resource, uint64_t offset, uint64_t size)
        : resource_(resource), offset_(offset), size_(size) {}
    HostWriting(const HostWriting&) = delete;
    HostWriting& operator=(const HostWriting&) = delete;
    ~HostWriting() { resource_.note_host(offset_, size_, left_, true); }
    void end(bool all = true) noexcept { left_ = all ? Freshness::behind : Freshness::partly; }

private:
    Resource& resource_;
    const uint64_t offset_;
    const uint64_t size_;
    Freshness left_ = Freshness::unknown;
};

void Resource::transfer(const char* action, bool writes, bool whole, Touched touched,
                        const std::function<void()>& body) {
    const std::shared_lock lock(transfers_);
    check_range(touched.offset, touched.size, action);
    if (writes) require_writable();
    const auto run = [&] {
        wait_for_work(!writes);
        if (direct_) settle();
        std::optional<HostWriting> writing;
        if (writes) writing.emplace(*this, touched.offset, touched.size);
        body();
        if (direct_ && writes) flush(device_memory());
        if (writing) writing->end(touched.all);
    };
    if (writes && whole && !on_device() && bring_by(run)) return;
    bring_now();
    run();
}

// -- the device's initial contents --------------------------------------------------------------------------

void Resource::expect_initial_work() { initial_marks_ = std::make_shared<InitialMarks>(); }

InitialTarget Resource::initial_target() const { return {device_side_, initial_marks_}; }

Point Resource::initial_point() const noexcept {
    const uint64_t value = initial_marks_ ? initial_marks_->value.load(std::memory_order_acquire) : 0;
    return value ? Point{device().queues().front().queue, value} : Point{};
}

Point Resource::initial_end() {
    if (initial_marks_ && initial_marks_->collected.load(std::memory_order_acquire) != 0)
        device().initial_work().submit();
    return initial_point();
}

void Resource::begin_with(const void* data) {
    if (nbytes_ == 0) return;
    if (direct_) {
        first_copy(direct_, data, nbytes_);
        touched_.store(nbytes_, std::memory_order_relaxed);
        flush(device_memory());
    } else if (!collect_upload(data)) {
        device().initial_work().submit();
        upload(data, 0, nbytes_);
    }
}

void Resource::bring() {
    if (!on_device()) [[unlikely]]
        bring_contents();
    (void)initial_end();
}

void Resource::bring_contents() {
    const std::shared_lock lock(transfers_);
    if (is_init()) bring_now();
}

void Resource::bring_now() {
    if (on_device()) [[likely]]
        return;
    bring_by([this] {
        // Without a host copy, the device's memory has the initial contents, or is undefined.
        const bool made = host_copy_made();
        if (made) begin_with(host_copy_->memory.mapped());
        note_first_contents(made);
    });
}

bool Resource::bring_by(const std::function<void()>& how) {
    const std::lock_guard turn(bringing_);
    if (!claim()) return false;
    const auto end = [this](Brought state) {
        const std::lock_guard lock(device().graph_mutex());
        brought_.store(state, std::memory_order_release);
    };
    try {
        how();
    } catch (...) {
        end(Brought::no);
        throw;
    }
    end(Brought::yes);
    return true;
}

bool Resource::claim() {
    const std::lock_guard lock(device().graph_mutex());
    // A recording that would overwrite the contents may be in the middle of its submission. When this
    // returns, it has either been submitted or must be rebuilt first.
    if (!on_device()) settle_covers(true);
    if (on_device()) return false;
    brought_.store(Brought::moving, std::memory_order_release);
    return true;
}

void Resource::note_brought() noexcept {
    if (brought_.load(std::memory_order_relaxed) == Brought::no)
        brought_.store(Brought::yes, std::memory_order_release);
}

bool Resource::must_be_brought(bool overwritten) {
    if (initial_marks_ && initial_marks_->collected.load(std::memory_order_acquire) != 0) return true;
    if (on_device() || !is_init()) return false;
    if (brought_.load(std::memory_order_relaxed) == Brought::moving) return true;
    settle_covers(false);
    if (on_device() || overwritten) return false;
    if (!begins_undefined_ || host_copy_made()) return true;
    note_host_locked(0, nbytes_, Freshness::unknown, false);  // no contents: nothing to bring
    note_brought();
    return false;
}

void Resource::read(void* out, uint64_t offset, uint64_t size) {
    require_unmapped(false, offset, size);
    read_mapped(out, offset, size);
}

void Resource::read_mapped(void* out, uint64_t offset, uint64_t size) {
    const std::shared_lock lock(transfers_);
    check_range(offset, size, "read");
    if (size != 0) read_now(out, offset, size);
}

void Resource::read_now(void* out, uint64_t offset, uint64_t size) {
    const HostSpan span("read", size);
    bring_now();
    wait_for_work(true);
    if (reads_staged()) {
        if (direct_) flush_range(offset, size);  // the host's writes in place
        download(out, offset, size);
    } else {
        invalidate_range(offset, size);
        std::memcpy(out, direct_ + offset, size);
    }
}

void Resource::write(const void* data, uint64_t offset, uint64_t size) {
    require_unmapped(true, offset, size);
    write_mapped(data, offset, size);
}

void Resource::write_mapped(const void* data, uint64_t offset, uint64_t size) {
    const std::shared_lock lock(transfers_);
    check_range(offset, size, "write");
    require_writable();
    if (size != 0) write_now(data, offset, size);
}

void Resource::receive(Resource& source, uint64_t source_offset, uint64_t offset, uint64_t size) {
    source.require_unmapped(false, source_offset, size);
    require_unmapped(true, offset, size);
    // Locked in one order, whatever the copy's direction, so that two crossing copies do not wait for each
    // other.
    const bool before = std::less<const Resource*>()(this, &source);
    const std::shared_lock first((before ? *this : source).transfers_);
    const std::shared_lock second((before ? source : *this).transfers_);
    source.check_range(source_offset, size, "copy");
    check_range(offset, size, "copy to");
    require_writable();
    if (size == 0) return;
    if (!direct_) {
        source.bring_now();
        source.wait_for_work(true);
        if (!source.reads_staged()) {
            source.settle();
            write_now(source.direct_ + source_offset, offset, size);
            return;
        }
        std::vector<std::byte> bounce(size);
        source.read_now(bounce.data(), source_offset, size);
        write_now(bounce.data(), offset, size);
        return;
    }
    const auto run = [&] {
        wait_for_work();
        settle();
        HostWriting writing(*this, offset, size);
        source.read_now(direct_ + offset, source_offset, size);
        flush(device_memory());
        writing.end();
    };
    if (size == nbytes_ && !on_device()) {
        source.bring_now();  // not while this resource is being brought, because copies may cross
        if (bring_by(run)) return;
    }
    bring_now();
    run();
}

void Resource::write_now(const void* data, uint64_t offset, uint64_t size) {
    const HostSpan span("write", size);
    if (!on_device()) [[unlikely]] {
        if (size == nbytes_ && bring_by([&] { store(data, offset, size); })) return;
        bring_now();
    }
    store(data, offset, size);
}

void Resource::store(const void* data, uint64_t offset, uint64_t size) {
    wait_for_work();
    HostWriting writing(*this, offset, size);
    if (direct_) {
        invalidate_ends(offset, size);
        // Copying page by page helps only on fresh pages: on others, one large memcpy spares the memory
        // bus.
        const uint64_t touched = touched_.load(std::memory_order_relaxed);
        if (offset >= touched) {
            first_copy(direct_ + offset, data, size);
            touched_.store(offset + size, std::memory_order_relaxed);
        } else {
            std::memmove(direct_ + offset, data, size);
        }
        flush_range(offset, size);
    } else {
        upload(data, offset, size);
    }
    writing.end();
}

// -- freshness: the host's and the recordings' effects on both sides (see sync/freshness.hpp)

void Resource::note_host(uint64_t offset, uint64_t size, Freshness left, bool wrote) noexcept {
    if (!has_host_copy_) return;
    const std::lock_guard lock(device().graph_mutex());
    note_host_locked(offset, size, left, wrote);
}

void Resource::note_host_locked(uint64_t offset, uint64_t size, Freshness left, bool wrote) noexcept {
    thread_local std::vector<Point> now;
    try {
        now.clear();
        for (const auto& logical : device().queues())
            merge_point(now, {logical.queue, logical.queue->submitted()});
    } catch (const std::bad_alloc&) {
        freshness_.note_lost();
        return;
    }
    freshness_.note_host(offset, offset + size, left, now, wrote);
    if (wrote) tell_host_write(offset, offset + size);
}

void Resource::note_host_write(uint64_t offset, uint64_t size) noexcept {
    note_host(offset, size, Freshness::behind, true);
}

void Resource::note_match(uint64_t offset, uint64_t size) noexcept {
    note_host(offset, size, Freshness::matches);
}

void Resource::note_exported() {
    const std::lock_guard lock(device().graph_mutex());
    freshness_.note_shared();
}

void Resource::note_first_contents(bool of_host_copy) noexcept {
    if (!has_host_copy_) return;
    if (!of_host_copy && begins_undefined_) {
        note_host(0, nbytes_, Freshness::unknown);
        return;
    }
    // Earlier work with undeclared uses did not change these contents.
    const auto& queues = device().queues();
    if (std::any_of(queues.begin(), queues.end(),
                    [](const auto& logical) { return logical.queue->undeclared() != 0; }))
        note_match(0, nbytes_);
}

Freshness Resource::freshness(uint64_t offset, uint64_t size) {
    if (!has_host_copy_ || size == 0) return Freshness::matches;
    const uint64_t end = offset + size;
    std::vector<Point> undeclared;
    const std::lock_guard lock(device().graph_mutex());
    if (!is_init()) return Freshness::matches;
    settle_covers(false);
    if (brought_.load(std::memory_order_relaxed) == Brought::no) return Freshness::unsent;
    device().add_undeclared(undeclared, true);
    FreshnessRecord record = freshness_;
    add_last_runs(offset, end, record);
    if (std::any_of(mappings_.begin(), mappings_.end(), [&](const Mapped& mapping) {
            return mapping.writes && mapping.offset < end && offset < mapping.offset + mapping.size;
        }))
        record.note_shared();
    return record.freshness(offset, end, undeclared);
}

bool Resource::left_behind(uint64_t begin, uint64_t end) {
    FreshnessRecord record = freshness_;
    add_last_runs(begin, end, record);
    return record.left_behind(begin, end);
}

// -- memory of the process, which several tensors may be over

void Resource::share_pages(const std::byte* data) {
    first_byte_ = reinterpret_cast<uintptr_t>(data);
    pages_ = device_side_->pages->order;
    is_mapped_ = true;  // another tensor over them may be
}

Object& Resource::ordered_by() noexcept { return pages_ ? static_cast<Object&>(*pages_) : *this; }

// -- ranges

ResourceRange::Place ResourceRange::place() const noexcept {
    const uint64_t begin = resource->first_byte() + offset;
    // Addresses are the same for all tensors over memory of the process.
    const void* memory = resource.get();
    if (resource->first_byte() != 0) memory = &resource->device();
    return {memory, begin, begin + size};
}

bool ResourceRange::overlaps(const ResourceRange& other) const noexcept {
    if (size == 0 || other.size == 0) return false;
    const Place mine = place();
    const Place theirs = other.place();
    return mine.memory == theirs.memory && mine.begin < theirs.end && theirs.begin < mine.end;
}

bool ResourceRange::contains(const ResourceRange& other) const noexcept {
    const Place mine = place();
    const Place theirs = other.place();
    return mine.memory == theirs.memory && mine.begin <= theirs.begin && theirs.end <= mine.end;
}

std::string ResourceRange::label() const {
    if (whole()) return resource->label();
    return resource->label() + " (bytes " + std::to_string(offset) + " to " + std::to_string(end()) + ")";
}

}  // namespace kp
