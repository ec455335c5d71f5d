#include "adapter/validation_settings.hpp"

#include <algorithm>
#include <cstring>

namespace kp {
namespace {

constexpr const char* layer_settings = "VK_EXT_layer_settings";
constexpr auto layer_settings_create_info = static_cast<VkStructureType>(1000496000);
constexpr int bool32 = 0;  // VK_LAYER_SETTING_TYPE_BOOL32_EXT

// If it is off, the layer does not take into account what a dispatch reads. Then it reports that two writes
// are not ordered, although a dispatch between them reads what the first wrote and so orders them.
constexpr const char* shader_accesses = "syncval_shader_accesses_heuristic";

constexpr VkValidationFeatureEnableEXT synchronization =
    VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;

}  // namespace

const void* ValidationSettings::chain(const std::vector<std::string>& offered,
                                      std::vector<const char*>& extensions, const void* next) {
    const auto offers = [&](const char* name) {
        return std::find(offered.begin(), offered.end(), name) != offered.end();
    };
    if (offers(VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME)) {
        extensions.push_back(VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME);
        features_.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT;
        features_.pNext = next;
        features_.enabledValidationFeatureCount = 1;
        features_.pEnabledValidationFeatures = &synchronization;
        next = &features_;
    }
    if (offers(layer_settings)) {
        extensions.push_back(layer_settings);
        setting_ = {validation_layer, shader_accesses, bool32, 1, &yes_};
        settings_ = {layer_settings_create_info, next, 1, &setting_};
        next = &settings_;
    }
    return next;
}

bool ValidationSettings::stop_naming(std::vector<const char*>& extensions) const {
    return std::erase_if(extensions, [](const char* name) { return !std::strcmp(name, layer_settings); }) > 0;
}

bool is_about_settings(const char* text) {
    return text && (std::strstr(text, layer_settings) || std::strstr(text, "VkLayerSettingsCreateInfoEXT"));
}

}  // namespace kp
