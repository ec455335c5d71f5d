// VK_KHR_cooperative_matrix: matrices that a subgroup holds together. By number: the headers that this is
// built with may be older than the extension.
#pragma once

#include "base/vulkan.hpp"

#include <string>
#include <vector>

namespace kp {

constexpr const char* cooperative_matrix_extension = "VK_KHR_cooperative_matrix";

// VkPhysicalDeviceCooperativeMatrixFeaturesKHR.
struct CooperativeMatrixFeatures {
    VkStructureType sType = static_cast<VkStructureType>(1000506000);
    void* pNext = nullptr;
    VkBool32 cooperativeMatrix = VK_FALSE;
    VkBool32 cooperativeMatrixRobustBufferAccess = VK_FALSE;
};

// A product that the device computes: rows x depth times depth x columns.
struct CooperativeMatrix {
    uint32_t rows = 0, columns = 0, depth = 0;
    std::string left, right, added, result;  // dtypes, by NumPy's names
    bool saturating = false;
    std::string scope;
};

// Those of a device that has the extension. The list leaves out numbers that have no name here.
[[nodiscard]] std::vector<CooperativeMatrix> query_cooperative_matrices(VkInstance instance,
                                                                        VkPhysicalDevice device);

}  // namespace kp
