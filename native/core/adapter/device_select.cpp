#include "adapter/device_select.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <span>
#include <utility>

namespace kp {

namespace {

constexpr uint32_t kMinimumMajor = 1;
constexpr uint32_t kMinimumMinor = 2;
constexpr const char* kBestDevice = "best device";

constexpr uint32_t major_version(uint32_t version) { return (version >> 22) & 0x7f; }
constexpr uint32_t minor_version(uint32_t version) { return (version >> 12) & 0x3ff; }

std::string lower(std::string_view text) {
    std::string result(text);
    for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return result;
}

std::string_view trim(std::string_view text) {
    const size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

bool contains(const std::string& text, std::string_view part) {
    return lower(text).find(part) != std::string::npos;
}

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

std::string join(const std::vector<std::string>& parts, const char* separator) {
    std::string text;
    for (const std::string& part : parts) text += (text.empty() ? "" : separator) + part;
    return text;
}

const char* type_name(DeviceType type) {
    switch (type) {
    case DeviceType::discrete: return "discrete GPU";
    case DeviceType::integrated: return "integrated GPU";
    case DeviceType::virtual_gpu: return "virtual GPU";
    case DeviceType::cpu: return "CPU";
    case DeviceType::other: break;
    }
    return "device of another type";
}

// "a CPU", "an integrated GPU"
std::string one_of(DeviceType type) {
    return (type == DeviceType::integrated ? "an " : "a ") + std::string(type_name(type));
}

// Lower is better.
int type_rank(DeviceType type) {
    switch (type) {
    case DeviceType::discrete: return 0;
    case DeviceType::integrated: return 1;
    case DeviceType::virtual_gpu: return 2;
    case DeviceType::cpu: return 4;
    case DeviceType::other: break;
    }
    return 3;  // unknown, but the driver says that it is not a CPU
}

std::string memory_text(uint64_t bytes) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f GiB", static_cast<double>(bytes) / (1ull << 30));
    return text;
}

std::string version_text(uint32_t version) {
    return std::to_string(major_version(version)) + "." + std::to_string(minor_version(version));
}

std::string uuid_text(const std::array<uint8_t, 16>& uuid) {
    std::string text;
    for (const uint8_t byte : uuid) {
        constexpr char digits[] = "0123456789abcdef";
        text += digits[byte >> 4];
        text += digits[byte & 15];
    }
    return text;
}

// Why kompute_py cannot use the device at all; empty if it can.
std::string unusable_reason(const DeviceCandidate& device) {
    std::vector<std::string> reasons;
    // Its properties are unknown then, so this is the only reason.
    if (!device.broken.empty()) return "does not say what it is: " + device.broken;
    if (std::pair(major_version(device.api_version), minor_version(device.api_version)) <
        std::pair(kMinimumMajor, kMinimumMinor)) {
        reasons.push_back("supports Vulkan " + version_text(device.api_version) + " only; kompute_py needs " +
                          std::to_string(kMinimumMajor) + "." + std::to_string(kMinimumMinor));
    }
    if (!device.timeline_semaphores) reasons.emplace_back("lacks the feature timelineSemaphore");
    if (!device.compute_queue) reasons.emplace_back("has no queue family that computes");
    if (!device.missing_extensions.empty()) {
        reasons.push_back(std::string("lacks the required extension") +
                          (device.missing_extensions.size() > 1 ? "s " : " ") +
                          join(device.missing_extensions, ", "));
    }
    return join(reasons, "; ");
}

struct VendorWord {
    std::string_view word;
    uint32_t vendor_id;     // 0: the vendor's id would fit other drivers too
    std::string_view name;  // the driver's name for its device
};

constexpr VendorWord kVendorWords[] = {
    {"nvidia", 0x10de, "nvidia"}, {"amd", 0x1002, "amd"},
    {"intel", 0x8086, "intel"},   {"apple", 0x106b, "apple"},
    {"arm", 0x13b5, "arm mali"},  {"qualcomm", 0x5143, "qualcomm"},
    {"lavapipe", 0, "llvmpipe"},  {"swiftshader", 0, "swiftshader"},
};

// One parsed entry of a request: tests if a device fits it, and describes it in words.
class Wish {
public:
    static Wish for_index(uint32_t index) {
        Wish wish(Kind::index, {});
        wish.index_ = index;
        return wish;
    }

    static Wish read(std::string_view entry) {
        const std::string text = lower(entry);
        if (Wish wish(Kind::identity, text); wish.read_identity()) return wish;
        const bool number =
            std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
        if (number && text.size() <= 2) return for_index(static_cast<uint32_t>(std::stoul(text)));
        for (const char* word : {"cpu", "gpu", "discrete", "integrated", "virtual"})
            if (text == word) return {Kind::type, text};
        for (const VendorWord& vendor : kVendorWords) {
            if (text != vendor.word) continue;
            Wish wish(Kind::vendor, text);
            wish.vendor_ = &vendor;
            return wish;
        }
        if (Wish wish(Kind::pci, text); wish.read_pci()) return wish;
        std::string digits = text;
        std::erase(digits, '-');
        const bool hex =
            std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
        if (hex && digits.size() >= 8 && digits.size() <= 32) {
            Wish wish(Kind::uuid, text);
            wish.digits_ = digits;
            return wish;
        }
        return {Kind::name, text};
    }

    [[nodiscard]] bool fits(const DeviceCandidate& device) const {
        switch (kind_) {
        case Kind::index: return device.index == index_;
        case Kind::identity:
            return uuid_text(device.uuid) == digits_ && uuid_text(device.driver_uuid) == driver_ &&
                   (!device.has_twin || device.vulkan_index == index_);
        case Kind::type: return fits_type(device.type);
        case Kind::vendor:
            return (vendor_->vendor_id != 0 && device.vendor_id == vendor_->vendor_id) ||
                   in_names(device, text_) || in_names(device, vendor_->name);
        case Kind::pci: return device.pci_address == digits_;
        case Kind::uuid: return uuid_text(device.uuid).starts_with(digits_) || in_names(device, text_);
        case Kind::name: break;
        }
        return in_names(device, text_);
    }

    // "name contains 'amd'", as a text of its own.
    [[nodiscard]] std::string request() const {
        switch (kind_) {
        case Kind::index: return "index " + std::to_string(index_);
        case Kind::identity:
            return "the device with UUID " + quoted(digits_) + " of the driver with UUID " + quoted(driver_);
        case Kind::type: return "type " + quoted(text_);
        case Kind::vendor: return "vendor or name " + quoted(text_);
        case Kind::pci: return "PCI address " + quoted(digits_);
        case Kind::uuid: return "UUID begins with " + quoted(text_);
        case Kind::name: break;
        }
        return "name contains " + quoted(text_);
    }

    // Why a device does not fit.
    [[nodiscard]] std::string mismatch(const DeviceCandidate& device) const {
        switch (kind_) {
        case Kind::index:
            return "index is " + std::to_string(device.index) + ", not " + std::to_string(index_);
        case Kind::identity:
            if (uuid_text(device.uuid) != digits_) return "UUID is " + uuid_text(device.uuid);
            if (uuid_text(device.driver_uuid) != driver_)
                return "UUID of the driver is " + uuid_text(device.driver_uuid);
            return "is another device with the same UUIDs (Vulkan's index " +
                   std::to_string(device.vulkan_index) + ", not " + std::to_string(index_) + ")";
        case Kind::type: return "is " + one_of(device.type) + ", not " + quoted(text_);
        case Kind::vendor: return "vendor and name are not " + quoted(text_);
        case Kind::pci:
            return device.pci_address.empty() ? "does not tell its PCI address"
                                              : "PCI address is " + device.pci_address;
        case Kind::uuid: return "UUID is " + uuid_text(device.uuid) + ", not " + quoted(text_);
        case Kind::name: break;
        }
        return "name does not contain " + quoted(text_);
    }

private:
    enum class Kind : uint8_t { index, type, vendor, uuid, identity, pci, name };

    // "01:00.0" or "0000:01:00.0"
    bool read_pci() {
        const std::string_view form = "hhhh:hh:hh.o";
        const std::string whole = text_.size() == 7 ? "0000:" + text_ : text_;
        if (whole.size() != form.size()) return false;
        for (size_t i = 0; i < form.size(); ++i) {
            const auto c = static_cast<unsigned char>(whole[i]);
            const bool fits = form[i] == 'h'   ? std::isxdigit(c) != 0
                              : form[i] == 'o' ? c >= '0' && c <= '7'
                                               : c == static_cast<unsigned char>(form[i]);
            if (!fits) return false;
        }
        digits_ = whole;
        return true;
    }

    bool read_identity() {
        const size_t first = text_.find(':');
        const size_t second = first == std::string::npos ? first : text_.find(':', first + 1);
        if (second == std::string::npos || first != 32 || second != 65) return false;
        digits_ = text_.substr(0, 32);
        driver_ = text_.substr(33, 32);
        const std::string number = text_.substr(66);
        const auto all = [](const std::string& part, auto is) {
            return std::all_of(part.begin(), part.end(), [&](unsigned char c) { return is(c) != 0; });
        };
        const auto digit = [](unsigned char c) { return std::isdigit(c); };
        const auto hex = [](unsigned char c) { return std::isxdigit(c); };
        if (number.empty() || number.size() > 9 || !all(number, digit) || !all(digits_ + driver_, hex))
            return false;
        index_ = static_cast<uint32_t>(std::stoul(number));
        return true;
    }

    Wish(Kind kind, std::string text) : kind_(kind), text_(std::move(text)) {}

    static bool in_names(const DeviceCandidate& device, std::string_view part) {
        return contains(device.name, part) || contains(device.driver_name, part);
    }

    [[nodiscard]] bool fits_type(DeviceType type) const {
        if (text_ == "gpu") return type != DeviceType::cpu;
        if (text_ == "cpu") return type == DeviceType::cpu;
        if (text_ == "discrete") return type == DeviceType::discrete;
        if (text_ == "integrated") return type == DeviceType::integrated;
        return type == DeviceType::virtual_gpu;
    }

    Kind kind_;
    std::string text_;  // lower case
    uint32_t index_ = 0;
    std::string digits_;
    std::string driver_;
    const VendorWord* vendor_ = nullptr;
};

std::vector<Wish> read_list(std::string_view rest, const char* separators) {
    std::vector<Wish> wishes;
    while (!rest.empty()) {
        const size_t end = rest.find_first_of(separators);
        const std::string_view entry = trim(rest.substr(0, end));
        if (!entry.empty()) wishes.push_back(Wish::read(entry));
        rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    }
    return wishes;
}

std::vector<Wish> read_wishes(const DeviceRequest& request) {
    if (request.index) return {Wish::for_index(*request.index)};
    return read_list(request.preferences, ",");
}

std::string request_text(const std::vector<Wish>& wishes) {
    if (wishes.empty()) return kBestDevice;
    std::vector<std::string> parts;
    for (const Wish& wish : wishes) parts.push_back(wish.request());
    return join(parts, ", else ");
}

bool better(const DeviceCandidate& a, const DeviceCandidate& b) {
    if (type_rank(a.type) != type_rank(b.type)) return type_rank(a.type) < type_rank(b.type);
    if (a.device_local_bytes != b.device_local_bytes) return a.device_local_bytes > b.device_local_bytes;
    if (a.api_version != b.api_version) return a.api_version > b.api_version;
    return a.index < b.index;
}

// Why `winner` was preferred to `device`; both fit the request equally.
std::string lost_reason(const DeviceCandidate& device, const DeviceCandidate& winner) {
    const std::string rival = "[" + std::to_string(winner.index) + "] ";
    if (type_rank(device.type) != type_rank(winner.type))
        return "is " + one_of(device.type) + "; " + rival + "is " + one_of(winner.type);
    if (device.device_local_bytes != winner.device_local_bytes) {
        return "has " + memory_text(device.device_local_bytes) + " of device memory; " + rival + "has " +
               memory_text(winner.device_local_bytes);
    }
    if (device.api_version != winner.api_version) {
        const auto patched = [](uint32_t version) {
            return version_text(version) + "." + std::to_string(version & 0xfff);
        };
        return "supports an older Vulkan (" + patched(device.api_version) + ") than " + rival + "does (" +
               patched(winner.api_version) + ")";
    }
    return "is as good as " + rival + "which comes first";
}

// The best usable candidate that fits `wish`, or the best of all if `wish` is null.
std::optional<uint32_t> best_of(const std::vector<DeviceCandidate>& candidates, const Wish* wish) {
    std::optional<uint32_t> best;
    for (uint32_t i = 0; i < candidates.size(); ++i) {
        const DeviceCandidate& device = candidates[i];
        if (wish != nullptr && !wish->fits(device)) continue;
        if (!unusable_reason(device).empty()) continue;
        if (!best || better(device, candidates[*best])) best = i;
    }
    return best;
}

// Why a device was not chosen. `tried`: the entries that were tried. If there is a winner, it met the last
// one.
std::string passed_over_reason(const DeviceCandidate& device, std::span<const Wish> tried,
                               const DeviceCandidate* winner) {
    const bool fits = tried.empty() || std::any_of(tried.begin(), tried.end(),
                                                   [&](const Wish& wish) { return wish.fits(device); });
    if (fits) {
        // A usable device that fits can only have lost to the winner; otherwise it would be the winner.
        std::string reason = unusable_reason(device);
        return reason.empty() ? lost_reason(device, *winner) : reason;
    }
    if (winner != nullptr) return tried.back().mismatch(device);
    std::vector<std::string> reasons;
    for (const Wish& wish : tried) reasons.push_back(wish.mismatch(device));
    return join(reasons, "; ");
}

}  // namespace

std::vector<uint32_t> visible_positions(const std::vector<DeviceCandidate>& candidates, std::string_view list,
                                        std::vector<std::string>* repeated) {
    std::vector<uint32_t> positions;
    const std::vector<Wish> wishes = read_list(list, ";,");
    for (size_t at = 0; at < wishes.size(); ++at) {
        const Wish& wish = wishes[at];
        const auto same = [&](const Wish& other) { return other.request() == wish.request(); };
        const bool several = std::count_if(wishes.begin(), wishes.end(), same) > 1;
        const bool again = std::any_of(wishes.begin(), wishes.begin() + static_cast<ptrdiff_t>(at), same);
        bool fits = false;
        const size_t before = positions.size();
        for (uint32_t i = 0; i < candidates.size(); ++i) {
            if (!wish.fits(candidates[i])) continue;
            fits = true;
            if (std::find(positions.begin(), positions.end(), i) != positions.end()) continue;
            positions.push_back(i);
            if (several) break;
        }
        const bool added = positions.size() != before;
        if (fits && !added && !again && repeated) repeated->push_back(wish.request());
        if (fits && (added || !again)) continue;
        std::string text =
            "The visible devices (visible_devices=, KOMPUTE_PY_VISIBLE_DEVICES: " + quoted(list) +
            ") name one that is not there: " + wish.request() +
            (fits ? ", more often than there are such devices: each time names one more" : "") +
            ". Commas or semicolons separate devices. Devices: ";
        for (size_t i = 0; i < candidates.size(); ++i)
            text += (i == 0 ? "[" : ", [") + std::to_string(candidates[i].index) + "] " + candidates[i].name +
                    " (UUID " + uuid_text(candidates[i].uuid) + ")";
        throw Error(fits ? ErrorKind::out_of_range : ErrorKind::not_found, text);
    }
    return positions;
}

Selection select_device(const std::vector<DeviceCandidate>& candidates, const DeviceRequest& request) {
    const std::vector<Wish> wishes = read_wishes(request);
    Selection selection;
    selection.request = request_text(wishes);

    std::span<const Wish> tried;
    if (wishes.empty()) {
        selection.position = best_of(candidates, nullptr);
    } else {
        for (size_t i = 0; i < wishes.size() && !selection.position; ++i) {
            selection.position = best_of(candidates, &wishes[i]);
            tried = std::span(wishes).first(i + 1);
        }
    }

    const DeviceCandidate* winner = selection.position ? &candidates[*selection.position] : nullptr;
    for (const DeviceCandidate& device : candidates) {
        if (&device != winner)
            selection.passed_over.push_back(
                {device.index, device.name, passed_over_reason(device, tried, winner)});
    }
    return selection;
}

std::string explain_failure(const Selection& selection) {
    const bool best = selection.request == kBestDevice;
    if (selection.passed_over.empty() && selection.hidden != 0) {
        return "No Vulkan device is visible: the list of visible devices (visible_devices=, "
               "KOMPUTE_PY_VISIBLE_DEVICES) hides " +
               (selection.hidden == 1 ? "the one there is" : "all " + std::to_string(selection.hidden)) +
               ". Name some in it, or unset it.";
    }
    if (selection.passed_over.empty()) {
        return "No Vulkan device was found" +
               (best ? std::string() : " (requested: " + selection.request + ")") +
               ". Install the driver of your GPU, or a driver that computes on the CPU (Debian and Ubuntu: "
               "apt-get install mesa-vulkan-drivers).";
    }
    std::string text = best ? "None of the Vulkan devices can be used."
                            : "Requested device (" + selection.request + ") was not found.";
    text += " Devices: ";
    for (size_t i = 0; i < selection.passed_over.size(); ++i) {
        const Rejection& device = selection.passed_over[i];
        text +=
            (i == 0 ? "[" : "; [") + std::to_string(device.index) + "] " + device.name + ": " + device.reason;
    }
    if (selection.hidden != 0)
        text += "; " + std::to_string(selection.hidden) +
                " more hidden by the list of visible devices (visible_devices=, KOMPUTE_PY_VISIBLE_DEVICES)";
    text += best ? ". Update the driver of one of them, or install one that computes on the CPU (Debian and "
                   "Ubuntu: "
                   "apt-get install mesa-vulkan-drivers)."
                 : ". Ask for one of these by index, UUID or part of its name, or for none in particular "
                   "(device=None, "
                   "KOMPUTE_PY_DEVICE unset) to get the best.";
    return text;
}

}  // namespace kp
