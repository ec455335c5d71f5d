// The parts that instrumented shaders of a device share: the buffer of their records, its descriptor set, and
// the tables that say what a record means. It exists only if the device was opened with instruments.
//
// The buffer is bound at the first set that a shader does not use. The host reads it while the queue is idle,
// and then begins it anew; there is one queue, so that a dispatch and its operation's number belong together.
#pragma once

#include "adapter/device_handle.hpp"
#include "base/ranked.hpp"
#include "instruments/instrument.hpp"
#include "memory/allocator.hpp"

#include <array>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace kp {

class DeviceContext;

class Debugger {
public:
    Debugger(DeviceContext& context, MemoryAllocator& memory, const Instruments& wanted);
    Debugger(const Debugger&) = delete;
    Debugger& operator=(const Debugger&) = delete;
    ~Debugger();

    [[nodiscard]] const Instruments& wanted() const noexcept { return wanted_; }
    // The module with instruments, and its number; empty if it needs none. Throws Error(unimplemented) if all
    // sets are taken, or if code cannot be added.
    [[nodiscard]] std::vector<uint32_t> instrument(std::span<const uint32_t> words, uint32_t set,
                                                   uint32_t& module);

    [[nodiscard]] VkDescriptorSetLayout layout() const noexcept { return layout_; }
    [[nodiscard]] VkDescriptorSet set() const noexcept { return set_; }

    // The memory bound to a descriptor: bytes of an object, which is any pointer.
    struct Bound {
        uint32_t set = 0, binding = 0;
        const void* memory = nullptr;
        uint64_t begin = 0, end = 0;
    };
    struct Dispatch {
        uint32_t module = 0;
        std::array<uint32_t, 3> groups{};
        VkBuffer counts = VK_NULL_HANDLE;  // has the groups, if not null
        uint64_t counts_offset = 0;
        std::array<uint32_t, 3> local_size{};
        uint64_t shared_bytes = 0;
        std::vector<Bound> memory;
    };
    // True if dispatches of the module need `Dispatch` in full.
    [[nodiscard]] bool shadows(uint32_t module);

    // The dispatches that are recorded while it lives belong to the operation, and run after all earlier
    // work. Null debugger: does nothing. Null dispatch: a script records them, so their memory is unknown and
    // no races are looked for.
    class Operation {
    public:
        Operation(Debugger* debugger, VkCommandBuffer commands, uint32_t position, const std::string& name,
                  const Dispatch* dispatch)
            : debugger_(debugger), commands_(commands) {
            if (debugger_) debugger_->begin(commands_, std::to_string(position) + ":" + name, dispatch);
        }
        Operation(const Operation&) = delete;
        Operation& operator=(const Operation&) = delete;
        ~Operation() {
            if (debugger_) debugger_->end(commands_);
        }

    private:
        Debugger* debugger_;
        VkCommandBuffer commands_;
    };

    struct Records {
        std::vector<uint32_t> words;
        uint32_t dropped = 0;
    };
    // The records since the last call. No work may run meanwhile.
    [[nodiscard]] Records take();
    [[nodiscard]] std::vector<DebugSite> sites(uint32_t module);
    [[nodiscard]] std::string operation(uint32_t number);

private:
    struct Made {  // a buffer
        VkBuffer handle = VK_NULL_HANDLE;
        Allocation memory;
    };
    struct Module {
        std::vector<DebugSite> sites;
        Shadowed shadowed;
    };
    void make(Made& buffer, uint64_t bytes, MemoryUse use, MemoryAllocator& memory);
    void begin(VkCommandBuffer commands, const std::string& operation, const Dispatch* dispatch);
    // Writes the head of the shadow buffer, and zeroes the slots that the dispatch uses.
    void begin_shadow(VkCommandBuffer commands, const Dispatch& dispatch);
    void hide_all(VkCommandBuffer commands);
    void end(VkCommandBuffer commands) noexcept;
    void make_set();
    void destroy() noexcept;

    DeviceContext& context_;
    const Instruments wanted_;
    Made records_;
    Made shadow_;  // for races
    VkDescriptorSetLayout layout_ = VK_NULL_HANDLE;
    VkDescriptorPool pool_ = VK_NULL_HANDLE;
    VkDescriptorSet set_ = VK_NULL_HANDLE;
    RankedMutex mutex_{LockRank::debugger};
    std::vector<Module> modules_;  // by number
    std::unordered_map<std::string, uint32_t> numbers_;
    std::vector<std::string> operations_;  // by number
};

}  // namespace kp
