// What the Khronos validation layer is told when an instance is made with it.
#pragma once

#include "base/vulkan.hpp"

#include <string>
#include <vector>

namespace kp {

inline constexpr const char* validation_layer = "VK_LAYER_KHRONOS_validation";

// Synchronization validation, in the ways that the layer offers. The structures are read while the instance
// is made, so this object must live until then, at its place.
class ValidationSettings {
public:
    ValidationSettings() = default;
    ValidationSettings(const ValidationSettings&) = delete;
    ValidationSettings& operator=(const ValidationSettings&) = delete;

    // `offered` names the layer's own extensions. Appends those that are used to `extensions`; returns the
    // new head of the chain.
    const void* chain(const std::vector<std::string>& offered, std::vector<const char*>& extensions,
                      const void* next);
    // Older loaders refuse extensions of layers whose names they do not know, but pass on all of the chain.
    // Takes that name out again; returns false if it is not there.
    bool stop_naming(std::vector<const char*>& extensions) const;

private:
    VkValidationFeaturesEXT features_{};
    // VkLayerSettingEXT and VkLayerSettingsCreateInfoEXT of VK_EXT_layer_settings: the headers that this is
    // compiled with may be older than the layer.
    struct Setting {
        const char* layer;
        const char* name;
        int type;
        uint32_t count;
        const void* values;
    };
    struct Settings {
        VkStructureType type;
        const void* next;
        uint32_t count;
        const Setting* settings;
    };
    VkBool32 yes_ = VK_TRUE;
    Setting setting_{};
    Settings settings_{};
};

// Does this message concern the settings above? Then it is not for the user, who chose none of them: the
// layer has no such setting, or the loader does not know the extension.
[[nodiscard]] bool is_about_settings(const char* text);

}  // namespace kp
