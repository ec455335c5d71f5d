#include "base/loader_library.hpp"

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#if defined(_WIN32)
#include <windows.h>
#else
#include <dlfcn.h>
#include <sys/stat.h>
#endif

namespace kp {
namespace {

#if defined(_WIN32)
constexpr const char* library_names[] = {"vulkan-1.dll"};

PFN_vkGetInstanceProcAddr open_library(const std::string& path, std::string& error) {
    HMODULE library = LoadLibraryA(path.c_str());
    if (!library) {
        error = "error " + std::to_string(GetLastError());
        return nullptr;
    }
    auto found = reinterpret_cast<PFN_vkGetInstanceProcAddr>(
        reinterpret_cast<void (*)()>(GetProcAddress(library, "vkGetInstanceProcAddr")));
    if (!found) error = "it has no vkGetInstanceProcAddr";
    if (!found) FreeLibrary(library);
    return found;
}
#else
#if defined(__APPLE__)
constexpr const char* library_names[] = {"libvulkan.dylib", "libvulkan.1.dylib", "libMoltenVK.dylib"};
#else
constexpr const char* library_names[] = {"libvulkan.so.1", "libvulkan.so"};
#endif

PFN_vkGetInstanceProcAddr open_library(const std::string& path, std::string& error) {
    // Opening a pipe would wait for a writer. The system searches for a bare name, which is not a file path
    // here.
    struct stat status {};
    if (path.find('/') != std::string::npos && stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
        error = path + ": it is not a regular file";
        return nullptr;
    }
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char* why = dlerror();
        error = why ? why : "it does not open";
        return nullptr;
    }
    auto found = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
    if (!found) error = path + ": it has no vkGetInstanceProcAddr";
    if (!found) dlclose(library);
    return found;
}
#endif

std::vector<std::string> candidates(std::string_view places) {
    std::vector<std::string> files;
    while (!places.empty()) {
        const size_t end = places.find(';');
        std::string_view place = places.substr(0, end);
        places = end == std::string_view::npos ? std::string_view{} : places.substr(end + 1);
        const size_t first = place.find_first_not_of(" \t");
        if (first == std::string_view::npos) continue;
        place = place.substr(first, place.find_last_not_of(" \t") - first + 1);
        std::error_code ignored;
        if (!std::filesystem::is_directory(place, ignored)) {
            files.emplace_back(place);
            continue;
        }
        for (const char* name : library_names)
            files.push_back((std::filesystem::path(place) / name).string());
    }
    return files;
}

}  // namespace

NamedLoader open_named_loader() {
    NamedLoader loader;
    const char* places = std::getenv(loader_variable);
    if (!places) return loader;
    for (const std::string& file : candidates(places)) {
        loader.named = true;
        std::string error;
        loader.get_proc = open_library(file, error);
        if (loader.get_proc) return loader;
        loader.error += (loader.error.empty() ? "" : "; ") + error;
    }
    return loader;
}

namespace {

void set_variable(const char* name, const char* value) {
#if defined(_WIN32)
    _putenv_s(name, value ? value : "");
#else
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
#endif
}

// VK_ICD_FILENAMES is the older name, which loaders before 1.3.207 know alone.
constexpr const char* driver_files[] = {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"};
constexpr const char* driver_choices[] = {"VK_ADD_DRIVER_FILES", "VK_LOADER_DRIVERS_SELECT",
                                          "VK_LOADER_DRIVERS_DISABLE"};

}  // namespace

OnlyDriver::OnlyDriver(const std::string& manifest) {
    if (manifest.empty()) return;
    const auto change = [this](const char* name, const char* value) {
        const char* now = std::getenv(name);
        before_.emplace_back(name, now ? std::optional<std::string>(now) : std::nullopt);
        set_variable(name, value);
    };
    for (const char* name : driver_files) change(name, manifest.c_str());
    for (const char* name : driver_choices) change(name, nullptr);
}

OnlyDriver::~OnlyDriver() {
    for (const auto& [name, value] : before_) set_variable(name, value ? value->c_str() : nullptr);
}

std::string library_of(const void* function) {
#if defined(_WIN32)
    (void)function;
    return {};
#else
    Dl_info info{};
    return function && dladdr(function, &info) && info.dli_fname ? info.dli_fname : "";
#endif
}

}  // namespace kp
