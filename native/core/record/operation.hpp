// Operations: what a stream records. Immutable and shared; one may stand in many streams, many times.
#pragma once

#include "record/access.hpp"
#include "resource/object.hpp"
#include "resource/resource.hpp"

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kp {

class Algorithm;
class Recorder;
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
    [[nodiscard]] const std::string& name() const noexcept { return name_; }

    // Throws when an object it uses was destroyed.
    virtual void check() const = 0;
    // Says what it uses. No Vulkan call.
    virtual void declare(StreamPlan& plan) const = 0;
    // Appends its commands; barriers are not its business.
    virtual void record(Recorder& recorder) const = 0;
    // Runs code that is not ours (and may take other locks) while recording.
    [[nodiscard]] virtual bool calls_out() const noexcept { return false; }
    // A queue for transfers alone does not do.
    [[nodiscard]] virtual bool needs_compute_queue() const noexcept { return false; }

    // What it is by now, for a recording that begins with it; null where it is still itself. Not under the graph mutex.
    [[nodiscard]] virtual std::shared_ptr<const Operation> renewed() const { return nullptr; }
    // The same operation for other memory (see record/substitution.hpp); null where nothing is left of it. Throws
    // Error(unimplemented) where that cannot be. Not under the graph mutex.
    [[nodiscard]] virtual std::shared_ptr<const Operation> substituted(const Substitution& by) const;
    [[nodiscard]] virtual SyncDirection syncs() const noexcept { return SyncDirection::none; }
    // Memory whose address it holds, so that nothing can stand for it. Under the graph mutex.
    [[nodiscard]] virtual std::vector<ResourceRange> fixed() const { return {}; }

private:
    std::shared_ptr<Device> device_;
    std::string name_;
};

using OperationPtr = std::shared_ptr<const Operation>;

// Host copies to device memory. Nothing to move for `host` and `deviceAndHost`; `storage` has no host side.
[[nodiscard]] OperationPtr make_sync_device(std::vector<ResourceRange> ranges);
[[nodiscard]] OperationPtr make_sync_local(std::vector<ResourceRange> ranges);
// Throws where the contents of one do not fit the other: other sizes, or images of other shapes.
void require_fit(const ResourceRange& source, const ResourceRange& destination);
// Device memory of the first to each other one.
[[nodiscard]] OperationPtr make_copy(std::vector<ResourceRange> ranges);
// A buffer's range and the bytes that are repeated over it, a whole number of times.
struct Filling {
    ResourceRange range;
    std::string pattern;
};
[[nodiscard]] OperationPtr make_fill(std::vector<Filling> fillings);
// What a dispatch keeps when its algorithm is rebuilt; all else is the new one's.
struct OwnChoice {
    std::optional<std::array<uint64_t, 3>> invocations;
    bool push_constants = false;
};
[[nodiscard]] OperationPtr make_dispatch(std::shared_ptr<Algorithm> algorithm, std::array<uint32_t, 3> groups,
                                         std::string push_constants, OwnChoice own = {});

// A dispatch whose groups, push constants, references and algorithm can change: recordings that hold it are built anew at their next
// submission. What runs meanwhile runs what it was built with.
class BoundDispatch : public Operation {
public:
    using Operation::Operation;
    [[nodiscard]] virtual std::shared_ptr<Algorithm> algorithm() const = 0;
    // Throws what make_dispatch throws; nothing has changed then.
    // `references`: buffers whose addresses the push constants, or what they lead to, hold.
    virtual void set(std::array<uint32_t, 3> groups, std::string push_constants,
                     std::vector<ResourceRange> references) = 0;
    virtual void replace(std::shared_ptr<Algorithm> algorithm, std::array<uint32_t, 3> groups,
                         std::string push_constants, std::vector<ResourceRange> references) = 0;
    // `next` stands for it in recordings that begin from now on (see renewed()). Those that hold it keep it.
    virtual void supersede(const std::shared_ptr<BoundDispatch>& next) = 0;
};
[[nodiscard]] std::shared_ptr<BoundDispatch> make_bound_dispatch(std::shared_ptr<Algorithm> algorithm,
                                                                 std::array<uint32_t, 3> groups,
                                                                 std::string push_constants,
                                                                 std::vector<ResourceRange> references = {});

struct CustomUses {
    bool declared = false;
    std::vector<ResourceRange> reads;
    std::vector<ResourceRange> writes;
};
[[nodiscard]] OperationPtr make_custom(std::shared_ptr<Device> device, std::string name,
                                       std::function<void(VkCommandBuffer)> record, CustomUses uses);

}  // namespace kp
