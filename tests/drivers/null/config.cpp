// KP_NULL_DRIVER=key=value,key=value: what device an instance of the driver pretends to be.
#include "common.hpp"

#include <cstdio>

namespace kpnull {
namespace {

bool number(const std::string& text, uint64_t& out) {
    if (text.empty() || text[0] == '-') return false;
    char* end = nullptr;
    out = std::strtoull(text.c_str(), &end, 0);
    return end && *end == 0;
}
std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    for (size_t at = 0; at <= text.size();) {
        const size_t end = std::min(text.find(separator, at), text.size());
        if (end > at) parts.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return parts;
}

bool apply(Config& config, const std::string& key, const std::string& value) {
    if (key == "memory") {
        config.memory = value;
        return value == "discrete" || value == "unified" || value == "noncoherent" || value == "exotic";
    }
    if (key == "api") {
        if (value == "1.1")
            config.api_version = VK_API_VERSION_1_1;
        else if (value == "1.2")
            config.api_version = VK_API_VERSION_1_2;
        else if (value == "1.3")
            config.api_version = VK_API_VERSION_1_3;
        else
            return false;
        return true;
    }
    if (key == "disable") {
        for (auto& feature : split(value, '+')) config.disabled_features.push_back(feature);
        return true;
    }
    if (key == "noext") {
        for (auto& extension : split(value, '+')) config.disabled_extensions.push_back(extension);
        return true;
    }
    uint64_t n = 0;
    if (!number(value, n)) return false;
    static const std::map<std::string, const char*> switches{
        {"int64", "shaderInt64"},     {"int16", "shaderInt16"},     {"int8", "shaderInt8"},
        {"float64", "shaderFloat64"}, {"float16", "shaderFloat16"}, {"bda", "bufferDeviceAddress"}};
    if (auto found = switches.find(key); found != switches.end()) {
        if (n == 0) config.disabled_features.emplace_back(found->second);
        return n <= 1;
    }
    if (key == "no_timeline") return config.no_timeline = n != 0, n <= 1;
    if (key == "devices") return config.devices = uint32_t(n), n <= 2;
    if (key == "heap_mib") return config.heap_mib = n, n >= 1;
    if (key == "host_heap_mib") return config.host_heap_mib = n, n >= 1;
    if (key == "gpu_us") return config.gpu_us = n, true;
    if (key == "max_wait_ms") return config.max_wait_ms = n, n >= 1;
    if (key == "max_range") return config.max_range = uint32_t(n), n >= 1 && n <= UINT32_MAX;
    if (key == "push") return config.push = uint32_t(n), n >= 128 && n <= 4096;
    if (key == "groups") return config.groups = uint32_t(n), n >= 1 && n <= UINT32_MAX;
    if (key == "invocations") return config.invocations = uint32_t(n), n >= 1 && n <= 65536;
    if (key == "allocations") return config.allocations = uint32_t(n), n >= 1 && n <= UINT32_MAX;
    if (key == "subgroup") return config.subgroup = uint32_t(n), n >= 1 && n <= 128;
    return false;
}

}  // namespace

bool Config::read(Config& config) {
    const char* text = std::getenv("KP_NULL_DRIVER");
    if (!text) return true;
    for (const std::string& item : split(text, ',')) {
        const size_t equals = item.find('=');
        if (equals == std::string::npos || !apply(config, item.substr(0, equals), item.substr(equals + 1))) {
            std::fprintf(stderr,
                         "null driver: KP_NULL_DRIVER has the invalid item '%s'. Keys: "
                         "memory=discrete|unified|noncoherent|"
                         "exotic, api=1.1|1.2|1.3, devices=0..2, heap_mib, host_heap_mib, gpu_us, "
                         "max_wait_ms, max_range, "
                         "push>=128, groups, invocations, allocations, subgroup, no_timeline, int64, int16, "
                         "int8, float64, "
                         "float16, bda (0|1), disable=feature+feature, noext=extension+extension\n",
                         item.c_str());
            return false;
        }
    }
    return true;
}

}  // namespace kpnull
