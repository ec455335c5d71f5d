// Chooses a physical device, and explains the rejection of each other one. Pure: takes structs, returns a
// decision and sentences.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kp {

// The values of VkPhysicalDeviceType.
enum class DeviceType : uint8_t { other = 0, integrated = 1, discrete = 2, virtual_gpu = 3, cpu = 4 };

struct DeviceCandidate {
    uint32_t index = 0;         // among the visible devices
    uint32_t vulkan_index = 0;  // among all, in Vulkan's order
    std::string name;
    DeviceType type = DeviceType::other;
    uint32_t vendor_id = 0;
    uint32_t device_id = 0;
    std::array<uint8_t, 16> uuid{};
    std::array<uint8_t, 16> driver_uuid{};
    bool has_twin = false;  // another device, visible or not, has the same two UUIDs
    std::string driver_name;
    std::string pci_address;   // "0000:01:00.0"; empty if the driver does not tell
    uint32_t api_version = 0;  // VK_MAKE_API_VERSION
    uint64_t device_local_bytes = 0;
    bool timeline_semaphores = false;
    bool compute_queue = false;
    std::vector<std::string> missing_extensions;  // of those the caller *requires*
    std::string broken;  // not empty: the driver failed to describe the device, and how
};

struct Rejection {
    uint32_t index = 0;
    std::string name;
    std::string reason;  // one sentence: "supports Vulkan 1.1 only; kompute_py needs 1.2"
};

struct Selection {
    std::optional<uint32_t> position;    // into the candidates; nullopt: nothing fits
    std::vector<Rejection> passed_over;  // every other candidate, in order, with its reason
    std::string request;                 // the parsed request: "name contains 'nvidia'", "best device", ...
    std::vector<std::string> repeated;   // entries of the user's list of visible devices that add no device
    size_t hidden = 0;                   // devices that the user hides; they are not among the candidates
};

// The user's request. `index` is an enumeration index and takes precedence over `preferences`, a
// comma-separated list that is tried in order ("nvidia,amd,cpu"): the first entry that fits a usable device
// wins. If neither is given: the best device. An entry, in any case, has the first of these meanings that it
// can have:
//   1 or 2 digits       the enumeration index
//   a type word         cpu, discrete, integrated, virtual, gpu (any but cpu)
//   a vendor word       nvidia, amd, intel, apple, arm, qualcomm, lavapipe, swiftshader: by vendor id, or
//                       part of the name or of the driver's name
//   UUID:UUID:number    exactly one device: its UUID, its driver's UUID, and Vulkan's index, which only
//                       counts if several devices have the same two UUIDs
//   a PCI address       0000:01:00.0, or 01:00.0 in domain 0
//   8 to 32 hex digits  the UUID or its beginning, dashes ignored; also part of the name
//   anything else       part of the name or of the driver's name
struct DeviceRequest {
    std::optional<uint32_t> index;
    std::string preferences;
};

// The devices that the user's list leaves visible: positions in `candidates`, in the list's order. Entries
// are separated by ';' or ',' and parsed as those of a DeviceRequest. Each names all devices that it fits (so
// "gpu" hides CPUs); an entry that stands there several times names one device each time, in order. An empty
// list names no device. Throws, listing the existing devices, Error(not_found) if an entry fits no device,
// and Error(out_of_range) if it stands there more often than there are devices that it fits. `repeated`, if
// given, receives the entries that add no device to those of other entries before them.
[[nodiscard]] std::vector<uint32_t> visible_positions(const std::vector<DeviceCandidate>& candidates,
                                                      std::string_view list,
                                                      std::vector<std::string>* repeated = nullptr);

// Of several devices that fit, takes the best: discrete, integrated, virtual, other, CPU; then the most
// device-local memory, the newest Vulkan, the lowest index. Never takes a device that kompute_py cannot use.
[[nodiscard]] Selection select_device(const std::vector<DeviceCandidate>& candidates,
                                      const DeviceRequest& request);

// For a selection without a position: "Requested device (name contains 'amd') was not found. Devices: [0]
// llvmpipe: name does not contain 'amd'. <the fix>".
[[nodiscard]] std::string explain_failure(const Selection& selection);

}  // namespace kp
