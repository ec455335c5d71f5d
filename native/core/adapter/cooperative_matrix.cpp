#include "adapter/cooperative_matrix.hpp"

#include "base/error.hpp"

namespace kp {
namespace {

// VkCooperativeMatrixPropertiesKHR.
struct Properties {
    VkStructureType sType = static_cast<VkStructureType>(1000506001);
    void* pNext = nullptr;
    uint32_t rows = 0, columns = 0, depth = 0;
    uint32_t left = 0, right = 0, added = 0, result = 0;  // VkComponentTypeKHR
    VkBool32 saturating = VK_FALSE;
    uint32_t scope = 0;  // VkScopeKHR
};

using Query = VkResult(VKAPI_PTR*)(VkPhysicalDevice, uint32_t*, Properties*);

const char* component(uint32_t type) {
    constexpr const char* names[] = {"float16", "float32", "float64", "int8",   "int16", "int32",
                                     "int64",   "uint8",   "uint16",  "uint32", "uint64"};
    constexpr uint32_t bfloat16 = 1000141000;
    if (type == bfloat16) return "bfloat16";
    return type < std::size(names) ? names[type] : nullptr;
}

const char* scope_name(uint32_t scope) {
    switch (scope) {
    case 1: return "device";
    case 2: return "workgroup";
    case 3: return "subgroup";
    case 5: return "queue_family";
    default: return nullptr;
    }
}

}  // namespace

std::vector<CooperativeMatrix> query_cooperative_matrices(VkInstance instance, VkPhysicalDevice device) {
    constexpr const char* name = "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR";
    const auto query = reinterpret_cast<Query>(vkGetInstanceProcAddr(instance, name));
    if (query == nullptr) return {};
    uint32_t count = 0;
    check_vk(query(device, &count, nullptr), name, "");
    std::vector<Properties> listed(count);
    if (const VkResult result = query(device, &count, listed.data()); result != VK_INCOMPLETE)
        check_vk(result, name, "");
    listed.resize(count);
    std::vector<CooperativeMatrix> found;
    for (const Properties& each : listed) {
        const char* const names[] = {component(each.left), component(each.right), component(each.added),
                                     component(each.result), scope_name(each.scope)};
        bool known = true;
        for (const char* text : names) known = known && text != nullptr;
        if (!known) continue;
        found.push_back({each.rows, each.columns, each.depth, names[0], names[1], names[2], names[3],
                         each.saturating != VK_FALSE, names[4]});
    }
    return found;
}

}  // namespace kp
