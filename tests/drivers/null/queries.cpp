// Query pools and the device's clock (nanoseconds of CLOCK_MONOTONIC, made strictly increasing).
#include "entry_points.hpp"

#include <algorithm>
#include <ctime>

namespace kpnull {
namespace {

uint64_t clock_ns(clockid_t clock) {
    timespec t{};
    clock_gettime(clock, &t);
    return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

bool available(const QueryPool& pool, uint32_t first, uint32_t count) {
    for (uint32_t i = first; i < first + count; ++i)
        if (pool.states[i] != QueryState::Available) return false;
    return true;
}
bool in_range(const QueryPool& pool, uint32_t first, uint32_t count, const char* call) {
    if (first <= pool.count && count <= pool.count - first) return true;
    violation("%s: queries %u+%u of VkQueryPool (%s) with %u", call, first, count, label(&pool), pool.count);
    return false;
}

}  // namespace

uint64_t device_time_ns() {
    static std::atomic<uint64_t> last{0};
    uint64_t previous = last.load();
    uint64_t now;
    do {
        now = std::max(clock_ns(CLOCK_MONOTONIC), previous + 1);
    } while (!last.compare_exchange_weak(previous, now));
    return now;
}

void reset_queries(QueryPool& pool, uint32_t first, uint32_t count) {
    if (!in_range(pool, first, count, "reset of queries")) return;
    for (uint32_t i = first; i < first + count; ++i) pool.states[i] = QueryState::Reset;
}

// Writes what is available; false when something was not.
bool write_query_results(QueryPool& pool, uint32_t first, uint32_t count, uint8_t* out, VkDeviceSize stride,
                         VkQueryResultFlags flags) {
    if (!in_range(pool, first, count, "query results")) return false;
    bool complete = true;
    for (uint32_t i = 0; i < count; ++i, out += stride) {
        const bool ready = pool.states[first + i] == QueryState::Available;
        complete &= ready;
        const uint64_t value = ready ? pool.values[first + i].load() : 0;
        const uint64_t values[2] = {value, ready};
        const bool write_value = ready || (flags & VK_QUERY_RESULT_PARTIAL_BIT);
        const bool with_availability = flags & VK_QUERY_RESULT_WITH_AVAILABILITY_BIT;
        for (uint32_t k = write_value ? 0 : 1; k < (with_availability ? 2u : 1u); ++k) {
            if (flags & VK_QUERY_RESULT_64_BIT) {
                std::memcpy(out + k * 8, &values[k], 8);
            } else {
                const uint32_t narrow = uint32_t(values[k]);
                std::memcpy(out + k * 4, &narrow, 4);
            }
        }
    }
    return complete;
}

VKAPI_ATTR VkResult VKAPI_CALL vkCreateQueryPool(VkDevice device, const VkQueryPoolCreateInfo* info,
                                                 const VkAllocationCallbacks*, VkQueryPool* out) {
    KP_FAILABLE("vkCreateQueryPool");
    if (info->queryType != VK_QUERY_TYPE_TIMESTAMP) {
        violation("vkCreateQueryPool: query type %d is not supported", int(info->queryType));
        return VK_ERROR_FEATURE_NOT_PRESENT;
    }
    auto* pool = create<QueryPool>(from<Device>(device));
    pool->count = info->queryCount;
    pool->values = std::make_unique<std::atomic<uint64_t>[]>(info->queryCount);
    pool->states = std::make_unique<std::atomic<QueryState>[]>(info->queryCount);
    *out = to(pool);
    return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL vkDestroyQueryPool(VkDevice, VkQueryPool pool, const VkAllocationCallbacks*) {
    KP_COUNTED("vkDestroyQueryPool");
    destroy<QueryPool>(pool);
}
VKAPI_ATTR VkResult VKAPI_CALL vkGetQueryPoolResults(VkDevice handle, VkQueryPool pool_handle, uint32_t first,
                                                     uint32_t count, size_t size, void* out,
                                                     VkDeviceSize stride, VkQueryResultFlags flags) {
    KP_FAILABLE("vkGetQueryPoolResults");
    Device& device = *from<Device>(handle);
    QueryPool& pool = *from<QueryPool>(pool_handle);
    if (!in_range(pool, first, count, "vkGetQueryPoolResults")) return VK_ERROR_OUT_OF_HOST_MEMORY;
    const size_t element =
        (flags & VK_QUERY_RESULT_64_BIT ? 8 : 4) * (flags & VK_QUERY_RESULT_WITH_AVAILABILITY_BIT ? 2 : 1);
    if (count && (count - 1) * stride + element > size) {
        violation("vkGetQueryPoolResults: %u results do not fit into %zu bytes", count, size);
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    if (flags & VK_QUERY_RESULT_WAIT_BIT) {
        const VkResult waited = device.wait(UINT64_MAX, [&] { return available(pool, first, count); });
        if (waited != VK_SUCCESS) return waited;
    } else if (device.lost) {
        return VK_ERROR_DEVICE_LOST;
    }
    return write_query_results(pool, first, count, static_cast<uint8_t*>(out), stride, flags) ? VK_SUCCESS
                                                                                              : VK_NOT_READY;
}
VKAPI_ATTR void VKAPI_CALL vkResetQueryPool(VkDevice, VkQueryPool pool, uint32_t first, uint32_t count) {
    KP_COUNTED("vkResetQueryPool");
    if (from<QueryPool>(pool)->pending)
        violation("vkResetQueryPool: VkQueryPool (%s) is in use by a pending submission",
                  label(from<QueryPool>(pool)));
    reset_queries(*from<QueryPool>(pool), first, count);
}
VKAPI_ATTR VkResult VKAPI_CALL vkGetCalibratedTimestampsEXT(VkDevice, uint32_t count,
                                                            const VkCalibratedTimestampInfoEXT* infos,
                                                            uint64_t* timestamps, uint64_t* deviation) {
    KP_FAILABLE("vkGetCalibratedTimestampsEXT");
    const uint64_t begin = clock_ns(CLOCK_MONOTONIC);
    for (uint32_t i = 0; i < count; ++i) {
        switch (infos[i].timeDomain) {
        case VK_TIME_DOMAIN_DEVICE_EXT: timestamps[i] = device_time_ns(); break;
        case VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT: timestamps[i] = clock_ns(CLOCK_MONOTONIC); break;
        case VK_TIME_DOMAIN_CLOCK_MONOTONIC_RAW_EXT: timestamps[i] = clock_ns(CLOCK_MONOTONIC_RAW); break;
        default:
            violation("vkGetCalibratedTimestampsEXT: time domain %d", int(infos[i].timeDomain));
            timestamps[i] = 0;
        }
    }
    *deviation = clock_ns(CLOCK_MONOTONIC) - begin + 1;
    return VK_SUCCESS;
}

}  // namespace kpnull
