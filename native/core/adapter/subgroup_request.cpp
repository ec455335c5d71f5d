#include "adapter/subgroup_request.hpp"

#include "base/error.hpp"

#include <bit>

namespace kp {
namespace {

std::string sizes_of(const ShaderSubgroups& has) {
    const std::string least = std::to_string(has.least);
    return has.least == has.most ? least : "powers of two from " + least + " to " + std::to_string(has.most);
}

}  // namespace

void check_subgroups(const SubgroupRequest& request, const ShaderHost& host) {
    const ShaderSubgroups& has = host.subgroups;
    const auto lacks = [&](const std::string& what, const char* feature) {
        throw Error(ErrorKind::unimplemented, "The shader asks for " + what + ", and '" + host.name +
                                                  "' lacks the feature '" + feature +
                                                  "'. Leave it out, and read gl_SubgroupSize in the code");
    };
    if (request.full && !host.has("computeFullSubgroups")) lacks("full subgroups", "computeFullSubgroups");
    if (request.size == 0) return;
    const std::string asked = "subgroups of " + std::to_string(request.size);
    if (!host.has("subgroupSizeControl") || !has.in_compute) lacks(asked, "subgroupSizeControl");
    if (!std::has_single_bit(request.size) || request.size < has.least || request.size > has.most)
        throw Error(ErrorKind::invalid_argument, "The shader asks for " + asked + ", and subgroups of '" +
                                                     host.name + "' have " + sizes_of(has) + " invocations");
}

void check_subgroups(const SubgroupRequest& request, const std::array<uint32_t, 3>& local_size,
                     const ShaderHost& host) {
    const ShaderSubgroups& has = host.subgroups;
    const uint32_t size = request.size != 0 ? request.size : has.size;
    const uint64_t invocations = uint64_t{local_size[0]} * local_size[1] * local_size[2];
    if (request.full && local_size[0] % size != 0)
        throw Error(ErrorKind::invalid_argument, "Subgroups of " + std::to_string(size) +
                                                     " are full only if local_size_x is a multiple of " +
                                                     std::to_string(size) + "; it is " +
                                                     std::to_string(local_size[0]));
    if (request.size != 0 && invocations > uint64_t{size} * has.most_in_workgroup)
        throw Error(ErrorKind::invalid_argument,
                    "A workgroup has " + std::to_string(invocations) +
                        " invocations, and with subgroups of " + std::to_string(size) + " '" + host.name +
                        "' takes " + std::to_string(uint64_t{size} * has.most_in_workgroup) +
                        " (maxComputeWorkgroupSubgroups): use a smaller local size");
}

}  // namespace kp
