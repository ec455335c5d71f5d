// Runs a dispatch with more groups on one axis than a device supports in layers along another axis that has
// only one group.
//
// The shader is rewritten to count as if there were no layers: layer l holds the groups from l * stride on.
// The last layer may be shorter. It is a separate dispatch with a base (vkCmdDispatchBase), so that exactly
// the requested number of groups runs. vkCmdDispatchBase alone cannot exceed the device's counts.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kp {

struct Fold {
    uint32_t from = 0;    // the axis with too many groups
    uint32_t into = 2;    // the axis that counts layers
    uint32_t stride = 0;  // groups of a whole layer on `from`
};

// The fold that `groups` need; nothing if they are within `limits` (maxComputeWorkGroupCount). Throws
// Error(invalid_argument), with the reason, if no fold is possible.
[[nodiscard]] std::optional<Fold> fold_of(const std::array<uint32_t, 3>& local_size,
                                          const std::array<uint32_t, 3>& groups,
                                          const std::array<uint32_t, 3>& limits);

// The module with the numbers of groups and invocations counted across layers. Throws Error(unimplemented),
// with the reason, if the code takes them in a way that cannot be rewritten, or reads the number of groups.
[[nodiscard]] std::vector<uint32_t> folded(std::span<const uint32_t> words, const std::string& entry,
                                           const Fold& fold, const std::array<uint32_t, 3>& local_size);

}  // namespace kp
