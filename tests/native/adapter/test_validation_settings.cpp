// What the validation layer is told, by what it offers.
#include "adapter/validation_settings.hpp"

#include <doctest/doctest.h>

#include <cstring>

using kp::ValidationSettings;

namespace {

constexpr const char* layer_settings = "VK_EXT_layer_settings";

size_t length(const void* chain) {
    size_t count = 0;
    for (auto* each = static_cast<const VkBaseInStructure*>(chain); each; each = each->pNext) ++count;
    return count;
}

}  // namespace

TEST_CASE("a layer is told what it offers to be told") {
    const VkBaseInStructure behind{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT, nullptr};
    for (const bool features : {false, true})
        for (const bool settings : {false, true}) {
            std::vector<std::string> offered{"VK_EXT_debug_utils"};
            if (features) offered.emplace_back(VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME);
            if (settings) offered.emplace_back(layer_settings);
            std::vector<const char*> extensions{"VK_EXT_debug_utils"};
            ValidationSettings told;
            const void* chain = told.chain(offered, extensions, &behind);
            CHECK(length(chain) == 1 + size_t(features) + size_t(settings));
            CHECK(extensions.size() == length(chain));
            CHECK(told.stop_naming(extensions) == settings);
            CHECK(extensions.size() == 1 + size_t(features));
            CHECK_FALSE(told.stop_naming(extensions));
        }
}

#ifdef VK_EXT_layer_settings
TEST_CASE("the settings are those of Vulkan's own structures") {
    std::vector<const char*> extensions;
    ValidationSettings told;
    const void* chain = told.chain({VK_EXT_LAYER_SETTINGS_EXTENSION_NAME}, extensions, nullptr);
    VkLayerSettingsCreateInfoEXT info{};
    std::memcpy(&info, chain, sizeof info);
    CHECK(info.sType == VK_STRUCTURE_TYPE_LAYER_SETTINGS_CREATE_INFO_EXT);
    CHECK(info.pNext == nullptr);
    REQUIRE(info.settingCount == 1);
    const VkLayerSettingEXT& setting = info.pSettings[0];
    CHECK(std::string(setting.pLayerName) == kp::validation_layer);
    CHECK(std::string(setting.pSettingName) == "syncval_shader_accesses_heuristic");
    CHECK(setting.type == VK_LAYER_SETTING_TYPE_BOOL32_EXT);
    REQUIRE(setting.valueCount == 1);
    CHECK(*static_cast<const VkBool32*>(setting.pValues) == VK_TRUE);
}
#endif

TEST_CASE("messages about the settings alone are known") {
    for (const char* text : {
             "The setting \"syncval_shader_accesses_heuristic\" in VkLayerSettingsCreateInfoEXT was not "
             "recognized",
             "The list of enabled extensions in ppEnabledExtensionNames must contain VK_EXT_layer_settings",
             "loader_validate_instance_extensions: Extension VK_EXT_layer_settings not found in list of "
             "known",
         })
        CHECK(kp::is_about_settings(text));
    CHECK_FALSE(
        kp::is_about_settings("Hazard WRITE_AFTER_WRITE, if syncval_shader_accesses_heuristic is on"));
    CHECK_FALSE(kp::is_about_settings(""));
    CHECK_FALSE(kp::is_about_settings(nullptr));
}
