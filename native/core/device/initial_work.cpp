#include "device/initial_work.hpp"

#include "adapter/context.hpp"
#include "base/error.hpp"
#include "device/profiler.hpp"
#include "sync/retire.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace kp {
namespace {

constexpr uint64_t smallest_chunk = uint64_t{64} << 10;
constexpr uint64_t largest_chunk = uint64_t{4} << 20;
constexpr uint64_t alignment = 64;  // a multiple of every texel size
constexpr size_t most_idle = 2;

}  // namespace

// Host memory that the device copies from.
struct InitialWork::Chunk {
    InitialWork& owner;
    Allocation memory;
    const uint64_t size;
    uint64_t used = 0;

    Chunk(InitialWork& work, uint64_t bytes)
        : owner(work),
          memory(work.memory_.allocate_host_copy(bytes, "the contents of new objects")),
          size(bytes) {
        owner.staged_.fetch_add(size, std::memory_order_relaxed);
    }
    Chunk(const Chunk&) = delete;
    Chunk& operator=(const Chunk&) = delete;
    ~Chunk() { owner.staged_.fetch_sub(size, std::memory_order_relaxed); }
};

// The resources of a submission, kept until it is done.
struct InitialWork::Batch {
    InitialWork& owner;
    Commands commands;
    std::vector<std::shared_ptr<void>> sides;
    std::vector<std::shared_ptr<Chunk>> chunks;

    explicit Batch(InitialWork& work) : owner(work), commands(work.take_commands()) {}
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;
    ~Batch() { owner.give_back(commands); }
};

InitialWork::InitialWork(DeviceContext& context, MemoryAllocator& memory, Queue& queue, Retire& retired,
                         std::function<void(Point)> on_handed_over)
    : context_(context),
      memory_(memory),
      queue_(queue),
      retired_(retired),
      on_handed_over_(std::move(on_handed_over)) {}

InitialWork::~InitialWork() { clear(); }

void InitialWork::clear() noexcept {
    {
        const std::lock_guard lock(mutex_);
        items_.clear();
        chunk_.reset();
        collected_ = 0;
        unsent_ = 0;
    }
    const std::lock_guard lock(idle_mutex_);
    for (const Commands& each : idle_)
        context_.vk().vkDestroyCommandPool(context_.handle(), each.pool, nullptr);
    idle_.clear();
}

void InitialWork::trim() noexcept {
    const std::lock_guard lock(mutex_);
    drop_gone();
    chunk_.reset();  // the contents in it keep it alive
}

Point InitialWork::handed_over() const noexcept {
    const uint64_t value = last_.load(std::memory_order_acquire);
    return value ? Point{&queue_, value} : Point{};
}

// -- collecting ---------------------------------------------------------------------------------------------

void InitialWork::transition(InitialTarget target, const VkImageMemoryBarrier& barrier) {
    collect({.target = std::move(target), .barrier = barrier, .commands = {}, .chunk = {}});
}

void InitialWork::fill(InitialTarget target, uint64_t size, std::function<void(VkCommandBuffer)> commands) {
    collect({.target = std::move(target), .commands = std::move(commands), .chunk = {}, .bytes = size});
}

bool InitialWork::upload(InitialTarget target, const void* data, uint64_t size,
                         std::function<void(VkCommandBuffer, VkBuffer, uint64_t)> commands) {
    if (size > staged_limit()) return false;
    make_room(size);
    Place at;
    try {
        at = place(size);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::out_of_memory) throw;
        return false;
    }
    Allocation& memory = at.chunk->memory;
    std::memcpy(memory.mapped() + at.offset, data, size);
    if (!memory.coherent()) {
        const VkMappedMemoryRange range = memory.mapped_range(at.offset, size);
        context_.flush({&range, 1}, "the contents of new objects");
    }
    const VkBuffer from = memory.block_buffer();
    const uint64_t offset = memory.offset() + at.offset;
    unsent_.fetch_add(size, std::memory_order_relaxed);
    collect({.target = std::move(target),
             .commands = [commands = std::move(commands), from,
                          offset](VkCommandBuffer buffer) { commands(buffer, from, offset); },
             .chunk = std::move(at.chunk),
             .uploads = true,
             .bytes = size});
    return true;
}

void InitialWork::collect(Item item) {
    bool full = false;
    {
        const std::lock_guard lock(mutex_);
        if (items_.size() + 1 >= most_items) {
            drop_gone();
            full = items_.size() >= most_items / 2;
        }
        full = full || unsent_.load(std::memory_order_relaxed) >= most_collected;
        InitialMarks& marks = *item.target.marks;
        items_.push_back(std::move(item));
        marks.collected.fetch_add(1, std::memory_order_release);
        collected_.fetch_add(1, std::memory_order_release);
    }
    if (full) submit();
}

// Drops the work of objects that are gone, so that making and dropping objects in a loop leaves no work
// behind.
void InitialWork::drop_gone() noexcept {
    const size_t gone = std::erase_if(items_, [](const Item& item) { return item.target.side.expired(); });
    collected_.fetch_sub(gone, std::memory_order_release);
}

uint64_t InitialWork::staged_limit() const noexcept {
    const uint64_t limit = memory_.options().limit;
    return limit ? std::min(most_staged, limit / 8) : most_staged;
}

// Waits only if more contents are in flight than may be held.
void InitialWork::make_room(uint64_t size) {
    const uint64_t limit = staged_limit();
    const auto has_room = [&] {
        return staged_.load(std::memory_order_relaxed) + std::max(size, smallest_chunk) <= limit;
    };
    if (has_room()) return;
    retired_.collect();
    if (has_room()) return;
    submit();
    if (const Point last = handed_over(); last.timeline) last.timeline->wait_until(last.value);
    retired_.collect();
}

InitialWork::Place InitialWork::place(uint64_t size) {
    retired_.collect();  // before the lock, because freeing may take other locks
    const std::lock_guard lock(mutex_);
    const uint64_t room = (size + alignment - 1) / alignment * alignment;
    if (!chunk_ || chunk_->size - chunk_->used < room) {
        const uint64_t next = chunk_ ? std::min(chunk_->size * 2, largest_chunk) : smallest_chunk;
        if (room > next / 2) {
            auto own = std::make_shared<Chunk>(*this, room);
            own->used = room;
            return {std::move(own), 0};
        }
        chunk_ = std::make_shared<Chunk>(*this, next);
    }
    return {chunk_, std::exchange(chunk_->used, chunk_->used + room)};
}

// -- handing over -------------------------------------------------------------------------------------------

InitialWork::Commands InitialWork::take_commands() {
    auto& vk = context_.vk();
    Commands commands;
    {
        const std::lock_guard lock(idle_mutex_);
        if (!idle_.empty()) {
            commands = idle_.back();
            idle_.pop_back();
        }
    }
    struct Guard {
        InitialWork& owner;
        Commands& commands;
        bool armed = true;
        ~Guard() {
            if (armed)
                owner.context_.vk().vkDestroyCommandPool(owner.context_.handle(), commands.pool, nullptr);
        }
    } guard{*this, commands};
    if (commands.pool == VK_NULL_HANDLE) {
        VkCommandPoolCreateInfo create{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
        create.flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
        create.queueFamilyIndex = queue_.family();
        check_vk(vk.vkCreateCommandPool(context_.handle(), &create, nullptr, &commands.pool),
                 "vkCreateCommandPool", "new objects");
        VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
        allocate.commandPool = commands.pool;
        allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
        allocate.commandBufferCount = 1;
        check_vk(vk.vkAllocateCommandBuffers(context_.handle(), &allocate, &commands.buffer),
                 "vkAllocateCommandBuffers", "new objects");
    } else {
        check_vk(vk.vkResetCommandPool(context_.handle(), commands.pool, 0), "vkResetCommandPool",
                 "new objects");
    }
    guard.armed = false;
    return commands;
}

void InitialWork::give_back(Commands commands) noexcept {
    {
        const std::lock_guard lock(idle_mutex_);
        if (context_.is_open() && idle_.size() < most_idle) {
            try {
                idle_.push_back(commands);
                return;
            } catch (...) {
                // Not enough host memory to keep it: destroy it.
            }
        }
    }
    context_.vk().vkDestroyCommandPool(context_.handle(), commands.pool, nullptr);
}

void InitialWork::record(VkCommandBuffer commands, const std::vector<Item>& items) const {
    auto& vk = context_.vk();
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    check_vk(vk.vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer", "new objects");
    // Only earlier work of this kind has touched these objects, so no other work needs to end first.
    VkMemoryBarrier transfers{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    transfers.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
    transfers.dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    VkPipelineStageFlags before = VK_PIPELINE_STAGE_TRANSFER_BIT;
    VkPipelineStageFlags after = VK_PIPELINE_STAGE_TRANSFER_BIT;
    std::vector<VkImageMemoryBarrier> images;
    for (const Item& item : items) {
        if (item.commands) continue;
        images.push_back(item.barrier);
        before |= item.barrier.srcAccessMask ? VK_PIPELINE_STAGE_HOST_BIT : VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT;
        after = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    }
    vk.vkCmdPipelineBarrier(commands, before, after, 0, 1, &transfers, 0, nullptr,
                            static_cast<uint32_t>(images.size()), images.data());
    bool filled = false;
    for (const Item& item : items) {
        if (!item.commands || item.uploads) continue;
        item.commands(commands);
        filled = true;
    }
    // An object may be filled when it is made, and get the host's contents before its first use.
    for (const Item& item : items) {
        if (!item.uploads) continue;
        if (std::exchange(filled, false))
            vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT,
                                    0, 1, &transfers, 0, nullptr, 0, nullptr);
        item.commands(commands);
    }
    check_vk(vk.vkEndCommandBuffer(commands), "vkEndCommandBuffer", "new objects");
}

void InitialWork::hand_over(std::vector<Item>& items) {
    auto batch = std::make_shared<Batch>(*this);
    batch->sides.reserve(items.size());
    batch->chunks.reserve(items.size());
    std::erase_if(items, [&](const Item& item) {
        auto side = item.target.side.lock();
        if (!side) return true;
        batch->sides.push_back(std::move(side));
        if (item.chunk && (batch->chunks.empty() || batch->chunks.back() != item.chunk))
            batch->chunks.push_back(item.chunk);
        return false;
    });
    if (items.empty()) return;
    record(batch->commands.buffer, items);
    PreparedSubmit submission;
    submission.prepare(queue_, {batch->commands.buffer});
    uint64_t read = 0;
    uint64_t written = 0;
    for (const Item& item : items) {
        read += item.uploads ? item.bytes : 0;
        written += item.bytes;
    }
    const Profiler::Naming naming("first contents", read, written);
    const Point point{&queue_, queue_.submit(submission)};
    last_.store(point.value, std::memory_order_release);
    for (const Item& item : items) {
        item.target.marks->value.store(point.value, std::memory_order_release);
        item.target.marks->collected.fetch_sub(1, std::memory_order_release);
    }
    try {
        on_handed_over_(point);
        retired_.push({point}, std::move(batch));
    } catch (...) {  // no host memory for the lists: wait for the work here
        items.clear();
        while (!queue_.wait(point.value, UINT64_C(1'000'000'000))) {}
        throw;
    }
    items.clear();
}

void InitialWork::submit() {
    if (collected_.load(std::memory_order_acquire) == 0) return;
    context_.require_own();
    const std::lock_guard turn(submitting_);
    std::vector<Item> items;
    std::shared_ptr<Chunk> chunk;  // freed after the lock
    size_t count = 0;
    {
        const std::lock_guard lock(mutex_);
        items.swap(items_);
        chunk.swap(chunk_);
        count = items.size();
        unsent_ = 0;
    }
    try {
        hand_over(items);
    } catch (...) {
        const std::lock_guard lock(mutex_);
        collected_.fetch_sub(count - items.size(), std::memory_order_release);
        items_.insert(items_.begin(), std::make_move_iterator(items.begin()),
                      std::make_move_iterator(items.end()));
        throw;
    }
    collected_.fetch_sub(count, std::memory_order_release);
}

}  // namespace kp
