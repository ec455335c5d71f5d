#include "adapter/shader_host.hpp"

#include <algorithm>

namespace kp {

bool ShaderHost::has(const std::string& feature) const {
    return std::find(features.begin(), features.end(), feature) != features.end();
}

const char* to_string(FindingKind kind) noexcept {
    switch (kind) {
    case FindingKind::device: return "device";
    case FindingKind::version: return "version";
    case FindingKind::validation: return "validation";
    case FindingKind::capability: return "capability";
    case FindingKind::feature: return "feature";
    case FindingKind::extension: return "extension";
    case FindingKind::mode: return "mode";
    case FindingKind::limit: return "limit";
    }
    return "limit";
}

}  // namespace kp
