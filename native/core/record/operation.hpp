// Operations: the items that a stream records. Immutable and shared; one operation may be in many streams,
// many times.
#pragma once

#include "record/access.hpp"
#include "resource/image.hpp"
#include "resource/object.hpp"
#include "resource/resource.hpp"

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kp {

class Algorithm;
class Recorder;
struct OperationContent;
class StreamPlan;
struct Substitution;

class Operation {
public:
    Operation(std::shared_ptr<Device> device, std::string name)
        : device_(std::move(device)), name_(std::move(name)) {}
    virtual ~Operation() = default;
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;

    [[nodiscard]] Device& device() const noexcept { return *device_; }
    [[nodiscard]] const std::shared_ptr<Device>& shared_device() const noexcept { return device_; }
    [[nodiscard]] virtual std::string name() const { return name_; }

    // Throws if an object that it uses was destroyed.
    virtual void check() const = 0;
    // Declares its uses. Makes no Vulkan call.
    virtual void declare(StreamPlan& plan) const = 0;
    // Appends its commands, without barriers.
    virtual void record(Recorder& recorder) const = 0;
    // About how many commands and uses a recording of it has.
    [[nodiscard]] virtual size_t parts() const noexcept { return 1; }
    // Of a dispatch; 0 if the device reads them, or if it is another operation. Under the graph mutex.
    [[nodiscard]] virtual std::array<uint32_t, 3> groups() const noexcept { return {}; }
    // The bytes that it declares to read and to write, each at most once; of repetitions, in all turns; of
    // syncs, those that pass between host and device, also where both have one memory. `index`: of its
    // command in `plan`. Under the graph mutex.
    [[nodiscard]] virtual Moved moved(const StreamPlan& plan, size_t index) const;
    // True if it runs foreign code (which may take other locks) while recording.
    [[nodiscard]] virtual bool calls_out() const noexcept { return false; }
    // True if a transfer-only queue cannot run it.
    [[nodiscard]] virtual bool needs_compute_queue() const noexcept { return false; }

    // The operation to record now in its place, in a new recording; null if it is still current. Do not
    // call it under the graph mutex.
    [[nodiscard]] virtual std::shared_ptr<const Operation> renewed() const { return nullptr; }
    // Whether renewed() has one that stands for a newer object. The same holds for calling it.
    [[nodiscard]] virtual bool outdated() const { return false; }
    // The same operation for other memory (see record/substitution.hpp); null if nothing of it remains.
    // Throws Error(unimplemented) if it cannot be made. Do not call it under the graph mutex.
    [[nodiscard]] virtual std::shared_ptr<const Operation> substituted(const Substitution& by) const;
    // Grows with each change of what it records.
    [[nodiscard]] virtual uint64_t version() const noexcept { return 0; }
    // The same operation, made again from those that it was made of; null if it needs none. A declaration
    // that finds them changed asks for it (StreamPlan::ask_remaking). Not under the graph mutex.
    [[nodiscard]] virtual std::shared_ptr<const Operation> remade() const { return nullptr; }
    [[nodiscard]] virtual SyncDirection syncs() const noexcept { return SyncDirection::none; }
    // The arguments that it was made of. Not under the graph mutex.
    [[nodiscard]] virtual OperationContent content() const;
    // Memory that cannot be substituted, because the operation holds its address. Under the graph mutex.
    [[nodiscard]] virtual std::vector<ResourceRange> fixed() const { return {}; }

private:
    std::shared_ptr<Device> device_;
    std::string name_;
};

using OperationPtr = std::shared_ptr<const Operation>;

// Host copies to device memory. Moves no data for `host` and `deviceAndHost`; `storage` has no host side.
[[nodiscard]] OperationPtr make_sync_device(std::vector<ResourceRange> ranges);
[[nodiscard]] OperationPtr make_sync_local(std::vector<ResourceRange> ranges);
// Throws if the contents of one do not fit the other: other sizes, or images of other shapes.
void require_fit(const ResourceRange& source, const ResourceRange& destination);
// Copies device memory of the first range to each other one.
[[nodiscard]] OperationPtr make_copy(std::vector<ResourceRange> ranges);
// A buffer's range and the bytes to repeat over it, a whole number of times.
struct Filling {
    ResourceRange range;
    std::string pattern;
};
[[nodiscard]] OperationPtr make_fill(std::vector<Filling> fillings);
// The settings that a dispatch keeps when its algorithm is rebuilt; all others come from the new algorithm.
struct OwnChoice {
    std::optional<std::array<uint64_t, 3>> invocations;
    bool push_constants = false;
};
// The memory of a dispatch beside its algorithm's.
struct DispatchMemory {
    // Buffers with addresses in the push constants, or in memory that these lead to.
    std::vector<ResourceRange> references;
    // Three uint32 in a buffer: the numbers of groups, which the device reads when the dispatch begins.
    // Without a resource, the host gives them.
    ResourceRange indirect;
};
// Throws Error(invalid_argument) if `indirect` is not such a range of the algorithm's device.
[[nodiscard]] OperationPtr make_dispatch(std::shared_ptr<Algorithm> algorithm, std::array<uint32_t, 3> groups,
                                         std::string push_constants, OwnChoice own = {},
                                         ResourceRange indirect = {});

// A dispatch with groups, push constants, references and an algorithm that can change: recordings that hold
// it are rebuilt at their next submission. Work in flight runs with the values of its build.
class BoundDispatch : public Operation {
public:
    using Operation::Operation;
    [[nodiscard]] virtual std::shared_ptr<Algorithm> algorithm() const = 0;
    [[nodiscard]] virtual DispatchMemory memory() const = 0;
    // Throws the errors of make_dispatch; nothing has changed then.
    virtual void set(std::array<uint32_t, 3> groups, std::string push_constants,
                     std::vector<ResourceRange> references) = 0;
    virtual void replace(std::shared_ptr<Algorithm> algorithm, std::array<uint32_t, 3> groups,
                         std::string push_constants, DispatchMemory memory) = 0;
    // `next` takes its place in recordings that begin from now on (see renewed()). Recordings that hold
    // this one keep it.
    virtual void supersede(const std::shared_ptr<BoundDispatch>& next) = 0;
};
[[nodiscard]] std::shared_ptr<BoundDispatch> make_bound_dispatch(std::shared_ptr<Algorithm> algorithm,
                                                                 std::array<uint32_t, 3> groups,
                                                                 std::string push_constants,
                                                                 DispatchMemory memory = {});

// The arguments of an operation as data: enough to make it again for other memory on another device.
struct OperationContent {
    // "dispatch", "copy", "copy region", "fill", "sync device", "sync local" or "repeat"; "" for foreign
    // code.
    std::string kind;
    // Of all but dispatches and repetitions, as their factories take them.
    std::vector<ResourceRange> ranges;
    std::vector<std::string> patterns;  // of fills
    std::vector<ImageRegion> regions;   // of region copies; those of buffers mean nothing
    // Of dispatches.
    std::shared_ptr<Algorithm> algorithm;
    std::array<uint32_t, 3> groups{};
    std::string push_constants;
    DispatchMemory memory;
    // Of repetitions.
    std::vector<OperationPtr> operations;
    uint64_t times = 0;
    std::vector<std::pair<ResourceRange, ResourceRange>> swaps;
};

struct CustomUses {
    bool declared = false;
    std::vector<ResourceRange> reads;
    std::vector<ResourceRange> writes;
};
[[nodiscard]] OperationPtr make_custom(std::shared_ptr<Device> device, std::string name,
                                       std::function<void(VkCommandBuffer)> record, CustomUses uses);

}  // namespace kp
