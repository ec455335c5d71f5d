// Which physical device to take, and why not each other one. Pure: structs in, a decision and sentences out.
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
    uint32_t index = 0;         // among those that are visible
    uint32_t vulkan_index = 0;  // among all, in Vulkan's order
    std::string name;
    DeviceType type = DeviceType::other;
    uint32_t vendor_id = 0;
    uint32_t device_id = 0;
    std::array<uint8_t, 16> uuid{};
    std::array<uint8_t, 16> driver_uuid{};
    bool has_twin = false;  // another device, visible or not, has the same two UUIDs
    std::string driver_name;
    uint32_t api_version = 0;  // VK_MAKE_API_VERSION
    uint64_t device_local_bytes = 0;
    bool timeline_semaphores = false;
    bool compute_queue = false;
    std::vector<std::string> missing_extensions;  // of those the caller *requires*
    std::string broken;                           // not empty: the driver failed to describe it, and how
};

struct Rejection {
    uint32_t index = 0;
    std::string name;
    std::string reason;  // one sentence: "supports Vulkan 1.1 only; kompute_py needs 1.2"
};

struct Selection {
    std::optional<uint32_t> position;    // into the candidates; nullopt: nothing fits
    std::vector<Rejection> passed_over;  // every other candidate, in order, with its reason
    std::string request;  // how the request was read: "name contains 'nvidia'", "best device", ...
    std::vector<std::string>
        repeated;       // entries of the user's list of visible devices that name no further one
    size_t hidden = 0;  // devices that were not among the candidates since the user hides them
};

// What the user asked for. `index` is an enumeration index and wins over `preferences`, a comma-separated
// list tried in order ("nvidia,amd,cpu"): the first entry that fits some usable device wins. Neither given:
// the best device. An entry, in any case, is read as the first of these that it can be:
//   1 or 2 digits       the enumeration index
//   a type word         cpu, discrete, integrated, virtual, gpu (any but cpu)
//   a vendor word       nvidia, amd, intel, apple, arm, qualcomm, lavapipe, swiftshader: by vendor id, or
//                       part of the name or of the driver's name
//   UUID:UUID:number    one device and no other: its UUID, its driver's, and Vulkan's index, which counts only where several
//                       devices have the same two
//   8 to 32 hex digits  the UUID or its beginning, dashes ignored; also part of the name
//   anything else       part of the name or of the driver's name
struct DeviceRequest {
    std::optional<uint32_t> index;
    std::string preferences;
};

// The devices that a list of the user's leaves visible: positions in `candidates`, in the list's order. Entries are separated by
// ';' or ',' and read as those of a DeviceRequest; each names all devices that it fits (so "gpu" hides those that are CPUs).
// An empty list names none. Throws Error(not_found), saying what there is, for an entry that fits no device.
// `repeated`, where given, takes the entries that add no device to those that the entries before them named.
[[nodiscard]] std::vector<uint32_t> visible_positions(const std::vector<DeviceCandidate>& candidates,
                                                      std::string_view list,
                                                      std::vector<std::string>* repeated = nullptr);

// Of several devices that fit, takes the best: discrete, integrated, virtual, other, CPU; then the most
// device-local memory, the newest Vulkan, the lowest index. Devices that kompute_py cannot use are never
// taken.
[[nodiscard]] Selection select_device(const std::vector<DeviceCandidate>& candidates,
                                      const DeviceRequest& request);

// For a selection without a position: "Requested device (name contains 'amd') was not found. Devices: [0]
// llvmpipe: name does not contain 'amd'. <what to do>".
[[nodiscard]] std::string explain_failure(const Selection& selection);

}  // namespace kp
