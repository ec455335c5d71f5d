#include "run/host_side.hpp"

#include "base/error.hpp"
#include "device/device.hpp"
#include "resource/resource.hpp"

#include <utility>

namespace kp {

std::vector<std::shared_ptr<const Delivery>> HostSide::prepare() {
    Delivery delivery;
    delivery.invalidates = plan_.invalidates();
    delivery.all_in_place = plan_.undeclared() && device().memory().in_place_needs_sync();
    needs_flush_ = !plan_.flushes().empty() || delivery.all_in_place;
    if (const uint64_t bytes = plan_.slot_bytes()) {
        device().retired().collect();
        delivery.slots = std::make_shared<const Allocation>(
            device().memory().allocate_host_copy(bytes, "the ends of a tensor's parts"));
        if (!delivery.slots->coherent()) delivery.invalidates.push_back(delivery.slots->mapped_range());
        delivery.edges = plan_.edges();
        for (const auto& [to, slot, size] : plan_.landings())
            delivery.landings.push_back({to, delivery.slots->mapped() + slot, size});
    }
    if (delivery.empty()) return {};
    return {std::make_shared<const Delivery>(std::move(delivery))};
}

void HostSide::flush() const {
    if (!needs_flush_) return;
    if (plan_.undeclared()) device().memory().flush_in_place();
    device().flush(plan_.flushes(), stream_.label().c_str());
}

void HostSide::await_edges() const {
    if (!needs_flush_ || !device().deliveries().any()) return;
    for (const Point& point : device().deliveries().in_the_way(plan_.flushes()))
        point.timeline->wait_until(point.value);
}

void HostSide::require_clear_of(std::span<const VkMappedMemoryRange> edges) const {
    const VkMappedMemoryRange* edge = needs_flush_ ? find_overlap(edges, plan_.flushes()) : nullptr;
    if (!edge) return;
    std::string name = "a tensor";
    {
        const std::lock_guard lock(device().graph_mutex());
        for (const auto& planned : plan_.objects()) {
            const auto* resource = dynamic_cast<const Resource*>(planned.object);
            if (!resource || !resource->is_init() || !resource->has_host_copy() ||
                !resource->host_copy_made())
                continue;
            const VkMappedMemoryRange range = resource->host_memory().mapped_range();
            if (find_overlap({&range, 1}, {edge, 1})) name = "the " + resource->label();
        }
    }
    throw Error(
        ErrorKind::failed_precondition,
        "The " + stream_.label() + " cannot be submitted: it syncs bytes of " + name + " that lie within " +
            std::to_string(edge->size) +
            " bytes of the end of a part which OpSyncLocal is to bring to the host before, in work that "
            "is held or in the same submission. On this memory, which is not coherent, the part has to "
            "arrive first: submit the two apart, or sync parts that begin and end at multiples of " +
            std::to_string(device().memory().atom()) + " bytes (nonCoherentAtomSize)");
}

}  // namespace kp
