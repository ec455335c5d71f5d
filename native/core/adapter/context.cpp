#include "adapter/context.hpp"

#include "adapter/device_handle.hpp"
#include "base/error.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <string_view>

namespace kp {
namespace {

std::string joined(const std::vector<std::string>& names) {
    std::string text;
    for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
}

// A feature struct of any extension: all of them are a head and switches. It is longer than any that there
// is, so that a driver that knows more switches than the caller stays within it.
struct RawStruct {
    VkStructureType sType{};
    void* pNext = nullptr;
    std::array<VkBool32, 64> values{};
};

// The feature structs that are parts of Vulkan 1.2's (with those of 1.1) and of Vulkan 1.3's: a chain may not
// have both.
// clang-format off
#define KP_PARTS_OF_V12(X) \
    X(16BIT_STORAGE) X(MULTIVIEW) X(VARIABLE_POINTERS) X(PROTECTED_MEMORY) X(SAMPLER_YCBCR_CONVERSION) \
    X(SHADER_DRAW_PARAMETERS) X(8BIT_STORAGE) X(SHADER_ATOMIC_INT64) X(SHADER_FLOAT16_INT8) \
    X(DESCRIPTOR_INDEXING) X(SCALAR_BLOCK_LAYOUT) X(IMAGELESS_FRAMEBUFFER) \
    X(UNIFORM_BUFFER_STANDARD_LAYOUT) X(SHADER_SUBGROUP_EXTENDED_TYPES) \
    X(SEPARATE_DEPTH_STENCIL_LAYOUTS) X(HOST_QUERY_RESET) X(TIMELINE_SEMAPHORE) X(BUFFER_DEVICE_ADDRESS) \
    X(VULKAN_MEMORY_MODEL)
#define KP_PARTS_OF_V13(X) \
    X(IMAGE_ROBUSTNESS) X(INLINE_UNIFORM_BLOCK) X(PIPELINE_CREATION_CACHE_CONTROL) X(PRIVATE_DATA) \
    X(SHADER_DEMOTE_TO_HELPER_INVOCATION) X(SHADER_TERMINATE_INVOCATION) X(SUBGROUP_SIZE_CONTROL) \
    X(SYNCHRONIZATION_2) X(TEXTURE_COMPRESSION_ASTC_HDR) X(ZERO_INITIALIZE_WORKGROUP_MEMORY) \
    X(DYNAMIC_RENDERING) X(SHADER_INTEGER_DOT_PRODUCT) X(MAINTENANCE_4)
// clang-format on

bool is_part_of_core(VkStructureType type, uint32_t api_version) {
    switch (type) {
#define X(name) case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_##name##_FEATURES:
        KP_PARTS_OF_V12(X) return api_version >= VK_API_VERSION_1_2;
        KP_PARTS_OF_V13(X) return api_version >= VK_API_VERSION_1_3;
#undef X
    default: return false;
    }
}

// The struct to enable the features with. Asks the device first: a driver leaves structs that it does not
// know as they are, so a wrong number and a wrong count are found.
RawStruct checked(const PhysicalDevice& device, const void* chain, const RawFeatures& asked) {
    constexpr VkBool32 untouched = 0xA5A5A5A5;
    RawStruct made{static_cast<VkStructureType>(asked.type)};
    const size_t count = asked.wanted.size();
    const std::string what = "The struct " + std::to_string(asked.type) + " of " + asked.extension + " on '" +
                             device.properties.deviceName + "'";
    for (const auto* each = static_cast<const VkBaseInStructure*>(chain); each; each = each->pNext)
        if (each->sType == made.sType)
            throw Error(ErrorKind::invalid_argument,
                        what + " is enabled already, with all features that the device has: leave it out");
    if (is_part_of_core(made.sType, device.properties.apiVersion))
        throw Error(ErrorKind::invalid_argument,
                    what + " is a part of Vulkan " + version_text(device.properties.apiVersion) +
                        ", of which all features for compute shaders are enabled already: leave it out");
    made.values.fill(untouched);
    VkPhysicalDeviceFeatures2 query{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    query.pNext = &made;
    vkGetPhysicalDeviceFeatures2(device.handle, &query);
    size_t has = made.values.size();
    while (has > 0 && made.values[has - 1] == untouched) --has;
    if (has == 0)
        throw Error(ErrorKind::invalid_argument,
                    what +
                        " is none that the driver knows: give the sType of the extension's feature struct");
    if (has != count)
        throw Error(ErrorKind::invalid_argument, what + " has " + std::to_string(has) + " features, not " +
                                                     std::to_string(count) + ": give one bool for each");
    for (size_t i = 0; i < made.values.size(); ++i) {
        const bool wanted = i < count && asked.wanted[i];
        if (wanted && made.values[i] != VK_TRUE)
            throw Error(ErrorKind::unimplemented, what + ": the device does not have feature " +
                                                      std::to_string(i) + ": give False for it");
        made.values[i] = wanted ? VK_TRUE : VK_FALSE;
    }
    return made;
}

void add_unique(std::vector<std::string>& names, const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

}  // namespace

// The destructor runs after a throw here only because this constructor delegates.
DeviceContext::DeviceContext(const ContextOptions& options) : DeviceContext() {
    dump_ = options.dump;
    watchdog_ = options.watchdog;
    if (options.borrowed) {
        borrow(*options.borrowed);
        return;
    }
    choose(options);
    open(options);
}

DeviceContext::~DeviceContext() {
    if (handle_ == VK_NULL_HANDLE) return;
    if (handles_) handles_->close();
    if (!borrowed_) table_.vkDestroyDevice(handle_, nullptr);
    count(ObjectKind::context, -1);
}

void DeviceContext::choose(const ContextOptions& options) {
    instance_ = Instance::get(options.instance);
    mailbox_ = std::make_unique<Mailbox>(instance_->messages());
    if (instance_->sends_messages()) watched_ = mailbox_->number();
    acting_device = watched_;
    DeviceList list = query_devices(*instance_, options.visible);
    std::vector<DeviceCandidate> candidates;
    for (const auto& physical : list.devices) {
        candidates.push_back(physical.candidate());
        for (const auto& name : options.required_extensions)
            if (!physical.has_extension(name.c_str())) candidates.back().missing_extensions.push_back(name);
    }
    selection_ = select_device(candidates, options.request);
    selection_.hidden = list.hidden;
    selection_.repeated = list.repeated;
    if (!selection_.position) {
        const bool asked = options.request.index.has_value() || !options.request.preferences.empty();
        throw Error(asked && !candidates.empty() ? ErrorKind::not_found : ErrorKind::unavailable,
                    explain_failure(selection_));
    }
    physical_ = std::move(list.devices[*selection_.position]);
}

void DeviceContext::borrow(const BorrowedDevice& given) {
    owner_ = given.owner;
    borrowed_ = true;
    instance_ = Instance::borrow(given.instance);
    mailbox_ = std::make_unique<Mailbox>(instance_->messages());
    const std::vector<VkPhysicalDevice> all = instance_->physical_devices();
    const auto found = std::find(all.begin(), all.end(), given.physical);
    if (found == all.end())
        throw Error(ErrorKind::invalid_argument,
                    "physical_device is not one of the instance's " + std::to_string(all.size()));
    physical_ =
        PhysicalDevice::query(given.instance, given.physical, static_cast<uint32_t>(found - all.begin()));
    const std::string name = std::string("'") + physical_.properties.deviceName + "'";
    if (!physical_.broken.empty()) throw Error(ErrorKind::unavailable, name + ": " + physical_.broken);
    if (physical_.properties.apiVersion < VK_API_VERSION_1_2)
        throw Error(ErrorKind::unavailable, name + " supports Vulkan " +
                                                version_text(physical_.properties.apiVersion) +
                                                " only; kompute_py needs 1.2");
    const auto has = [](const std::vector<std::string>& names, const std::string& wanted) {
        return std::find(names.begin(), names.end(), wanted) != names.end();
    };
    for (const std::string& extension : given.extensions)
        if (!has(physical_.extensions, extension))
            throw Error(ErrorKind::invalid_argument,
                        name + " has no extension " + extension + ", so it cannot be enabled");
    for (const auto& [feature, supported] : physical_.features)
        if (!supported && has(given.features, feature))
            throw Error(ErrorKind::invalid_argument,
                        name + " has no feature " + feature + ", so it cannot be enabled");
    if (!has(given.features, "timelineSemaphore"))
        throw Error(ErrorKind::invalid_argument,
                    "features does not name timelineSemaphore, which kompute_py needs: make the device with "
                    "it, and name all features that it was made with");
    // A device does not have the extensions that were not enabled.
    physical_.extensions = given.extensions;
    if (!physical_.has_extension(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME))
        physical_.host_import_alignment = 0;

    std::vector<uint32_t> wanted;
    for (const auto& [family, index] : given.queues) wanted.push_back(family);
    queue_places_ = plan_queues(wanted);
    for (size_t i = 0; i < given.queues.size(); ++i) {
        const auto [family, index] = given.queues[i];
        if (index >= physical_.families[family].queueCount)
            throw Error(ErrorKind::out_of_range,
                        "Queue family " + std::to_string(family) + " of " + name + " has " +
                            std::to_string(physical_.families[family].queueCount) +
                            " queue(s), and none with index " + std::to_string(index));
        queue_places_[i] = {family, index};
        if (std::find(families_.begin(), families_.end(), family) == families_.end())
            families_.push_back(family);
    }
    enable([&](const char* feature) { return has(given.features, feature); });
    took(given.device, given.extensions);
}

std::vector<DeviceContext::QueuePlace> DeviceContext::plan_queues(const std::vector<uint32_t>& asked) {
    const auto& families = physical_.families;
    std::vector<uint32_t> wanted = asked;
    if (wanted.empty()) {
        // Drivers optimise families with graphics first, and Kompute takes one too: the first with compute.
        for (uint32_t i = 0; i < families.size() && wanted.empty(); ++i)
            if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) && families[i].queueCount != 0)
                wanted.push_back(i);
    }
    std::map<uint32_t, uint32_t> taken;
    std::vector<QueuePlace> plan;
    for (const uint32_t family : wanted) {
        if (family >= families.size())
            throw Error(ErrorKind::out_of_range, "Queue family " + std::to_string(family) +
                                                     " does not exist on '" +
                                                     physical_.properties.deviceName + "', which has " +
                                                     std::to_string(families.size()) + " (0 to " +
                                                     std::to_string(families.size() - 1) + ")");
        // The first queue serves all work without a named queue, so it must compute. Further queues may only
        // move memory.
        const VkQueueFlags enough =
            plan.empty() ? VK_QUEUE_COMPUTE_BIT : VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT;
        if (!(families[family].queueFlags & enough)) {
            std::string fit;
            for (uint32_t i = 0; i < families.size(); ++i)
                if (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT)
                    fit += (fit.empty() ? "" : ", ") + std::to_string(i);
            throw Error(ErrorKind::invalid_argument,
                        "Queue family " + std::to_string(family) + " of '" + physical_.properties.deviceName +
                            "' has no compute queues" +
                            (plan.empty() ? ", which the first must be" : " and none for transfers") +
                            ". Families with compute: " + fit);
        }
        const uint32_t nth = taken[family]++;
        plan.emplace_back(family, nth % families[family].queueCount);
        if (nth == families[family].queueCount)
            note("Queue family " + std::to_string(family) + " has " +
                 std::to_string(families[family].queueCount) + " queue(s); further ones share them");
    }
    return plan;
}

void DeviceContext::open(const ContextOptions& options) {
    queue_places_ = plan_queues(options.family_queue_indices);
    const std::vector<float>& asked = options.queue_priorities;
    if (!asked.empty() && asked.size() != queue_places_.size())
        throw Error(ErrorKind::invalid_argument, "queue_priorities has " + std::to_string(asked.size()) +
                                                     " numbers for " + std::to_string(queue_places_.size()) +
                                                     " queue(s): give one for each");
    std::map<uint32_t, std::vector<float>> priorities;  // family -> of each physical queue to open
    for (size_t i = 0; i < queue_places_.size(); ++i) {
        const auto [family, index] = queue_places_[i];
        auto& of_family = priorities[family];
        if (of_family.size() <= index) of_family.resize(index + 1, 0.0f);
        of_family[index] = std::max(of_family[index], asked.empty() ? 1.0f : asked[i]);
    }

    std::vector<std::string> extensions;
    for (const auto& name : options.required_extensions) add_unique(extensions, name);
    for (const auto& name : options.desired_extensions) {
        if (physical_.has_extension(name.c_str()))
            add_unique(extensions, name);
        else
            note("The desired extension " + name + " is not supported by '" +
                 physical_.properties.deviceName + "'");
    }
    for (const char* name :
         {"VK_KHR_portability_subset", VK_EXT_MEMORY_BUDGET_EXTENSION_NAME,
          VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME,
          VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME})
        if (physical_.has_extension(name)) add_unique(extensions, name);
    if (physical_.host_import_alignment != 0)
        add_unique(extensions, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);

    enable([&](const char* name) {
        return options.robust_access || std::strncmp(name, "robustBufferAccess", 18) != 0;
    });
    for (const char* name : enabled_->needed_extensions()) add_unique(extensions, name);

    std::vector<VkDeviceQueueCreateInfo> queue_infos;
    for (const auto& [family, of_family] : priorities) {
        VkDeviceQueueCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
        info.queueFamilyIndex = family;
        info.queueCount = static_cast<uint32_t>(of_family.size());
        info.pQueuePriorities = of_family.data();
        queue_infos.push_back(info);
        families_.push_back(family);
    }
    std::vector<const char*> names;
    for (const auto& name : extensions) names.push_back(name.c_str());

    VkDeviceCreateInfo create{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
    create.pNext = enabled_->head();
    std::deque<RawStruct> structs;
    for (const RawFeatures& each : options.features) {
        if (!physical_.has_extension(each.extension.c_str())) continue;
        structs.push_back(checked(physical_, create.pNext, each));
        structs.back().pNext = const_cast<void*>(create.pNext);
        create.pNext = &structs.back();
    }
    create.queueCreateInfoCount = static_cast<uint32_t>(queue_infos.size());
    create.pQueueCreateInfos = queue_infos.data();
    create.enabledExtensionCount = static_cast<uint32_t>(names.size());
    create.ppEnabledExtensionNames = names.data();
    VkDevice made = VK_NULL_HANDLE;
    const VkResult result = vkCreateDevice(physical_.handle, &create, nullptr, &made);
    check_vk(result, "vkCreateDevice",
             (std::string("device '") + physical_.properties.deviceName + "' with extensions " +
              joined(extensions))
                 .c_str());
    took(made, std::move(extensions));
}

void DeviceContext::enable(const std::function<bool(const char*)>& wanted) {
    FeatureChain supported(physical_.properties.apiVersion, physical_.extensions);
    supported.query(physical_.handle);
    enabled_ = std::make_unique<FeatureChain>(physical_.properties.apiVersion, physical_.extensions);
    enabled_features_ = enabled_->enable_from(supported, wanted);
    shader_host_ = kp::shader_host(physical_, enabled_features_);
    buffer_addresses_ = enabled_->v12.bufferDeviceAddress;
}

void DeviceContext::took(VkDevice device, std::vector<std::string> extensions) {
    handle_ = device;
    mailbox_->claim(handle_value(handle_));
    count(ObjectKind::context, 1);
    enabled_extensions_ = std::move(extensions);
    volkLoadDeviceTable(&table_, handle_);
    if (instance_->debug_utils()) {
        const auto find = [this]<typename Function>(Function& function, const char* name) {
            function = reinterpret_cast<Function>(vkGetDeviceProcAddr(handle_, name));
        };
        find(set_name_, "vkSetDebugUtilsObjectNameEXT");
        find(begin_label_, "vkCmdBeginDebugUtilsLabelEXT");
        find(end_label_, "vkCmdEndDebugUtilsLabelEXT");
    }
    handles_ = std::make_shared<DeviceHandles>(*this);
}

void DeviceContext::require_own() const {
    if (foreign())
        throw Error(
            ErrorKind::failed_precondition,
            "The device belongs to the parent process, and this one cannot use it. Make a new Manager "
            "in this process");
}

void DeviceContext::require_open(const char* action) const {
    if (foreign())
        throw Error(ErrorKind::failed_precondition,
                    std::string("Cannot ") + action +
                        ": the Manager belongs to the parent process. Make a new Manager in this process");
    if (!is_open())
        throw Error(ErrorKind::failed_precondition,
                    std::string("Cannot ") + action + ": the Manager was destroyed. Make a new Manager");
}

void DeviceContext::note_lost_work(const std::string& work) {
    const std::lock_guard lock(lost_mutex_);
    if (lost_work_.empty()) lost_work_ = work;
}

void DeviceContext::rethrow_explained(const Error& error) {
    if (error.kind() != ErrorKind::device_lost) throw;
    if (lost() && lost_work().empty())
        if (const std::string work = running_work(); !work.empty()) note_lost_work(work);
    const std::string work = lost_work();
    if (work.empty() || std::string_view(error.what()).find(work) != std::string_view::npos) throw;
    throw Error(error.kind(), std::string(error.what()) + ". It was lost during " + work, error.vk_result());
}

std::string DeviceContext::lost_device() {
    {
        const std::lock_guard lock(lost_mutex_);
        if (!lost_device_.empty()) return lost_device_;
    }
    std::string text = std::string("The device is '") + physical_.properties.deviceName + "'";
    if (const std::string queues = progress(); !queues.empty()) text += " (" + queues + ")";
    text += fault();
    const std::lock_guard lock(lost_mutex_);
    if (lost_device_.empty()) lost_device_ = std::move(text);
    return lost_device_;
}

std::string DeviceContext::fault() const {
    if (!enabled_ || !enabled_->fault.deviceFault || !table_.vkGetDeviceFaultInfoEXT) return {};
    VkDeviceFaultCountsEXT counts{VK_STRUCTURE_TYPE_DEVICE_FAULT_COUNTS_EXT};
    if (table_.vkGetDeviceFaultInfoEXT(handle_, &counts, nullptr) != VK_SUCCESS) return {};
    counts.vendorBinarySize = 0;
    std::vector<VkDeviceFaultAddressInfoEXT> addresses(counts.addressInfoCount);
    std::vector<VkDeviceFaultVendorInfoEXT> vendor(counts.vendorInfoCount);
    VkDeviceFaultInfoEXT info{VK_STRUCTURE_TYPE_DEVICE_FAULT_INFO_EXT};
    info.pAddressInfos = addresses.data();
    info.pVendorInfos = vendor.data();
    const VkResult result = table_.vkGetDeviceFaultInfoEXT(handle_, &counts, &info);
    if (result != VK_SUCCESS && result != VK_INCOMPLETE) return {};
    std::string text = std::string(". The driver says: ") + info.description;
    const auto hex = [](uint64_t number) {
        std::array<char, 24> digits{};
        std::snprintf(digits.data(), digits.size(), "0x%llx", static_cast<unsigned long long>(number));
        return std::string(digits.data());
    };
    for (size_t i = 0; i < counts.addressInfoCount && i < addresses.size(); ++i) {
        const auto& each = addresses[i];
        const char* kind =
            each.addressType == VK_DEVICE_FAULT_ADDRESS_TYPE_READ_INVALID_EXT      ? "invalid read"
            : each.addressType == VK_DEVICE_FAULT_ADDRESS_TYPE_WRITE_INVALID_EXT   ? "invalid write"
            : each.addressType == VK_DEVICE_FAULT_ADDRESS_TYPE_EXECUTE_INVALID_EXT ? "invalid execution"
                                                                                   : "instruction";
        text += std::string("; ") + kind + " at " + hex(each.reportedAddress);
    }
    for (size_t i = 0; i < counts.vendorInfoCount && i < vendor.size(); ++i)
        text += std::string("; ") + vendor[i].description + " (" + hex(vendor[i].vendorFaultCode) + ", " +
                hex(vendor[i].vendorFaultData) + ")";
    return text;
}

std::string DeviceContext::lost_work() const {
    const std::lock_guard lock(lost_mutex_);
    return lost_work_;
}

void DeviceContext::throw_lost(const char* call, const std::string& what) {
    mark_lost();
    try {
        throw_vk(VK_ERROR_DEVICE_LOST, call, what);
    } catch (const Error& error) {
        const std::string work = lost_work();
        throw Error(error.kind(),
                    std::string(error.what()) + ". " + lost_device() +
                        (work.empty() ? "" : ". It was lost during " + work),
                    error.vk_result());
    }
}

void DeviceContext::note(std::string text) {
    const std::lock_guard lock(notes_mutex_);
    notes_.push_back(std::move(text));
}

void DeviceContext::note_once(const std::string& text) {
    const std::lock_guard lock(notes_mutex_);
    if (std::find(noted_.begin(), noted_.end(), text) != noted_.end()) return;
    noted_.push_back(text);
    notes_.push_back(text);
}

std::vector<std::string> DeviceContext::take_notes() {
    const std::lock_guard lock(notes_mutex_);
    return std::exchange(notes_, {});
}

void DeviceContext::flush(std::span<const VkMappedMemoryRange> ranges, const char* what) const {
    if (ranges.empty()) return;
    check_vk(table_.vkFlushMappedMemoryRanges(handle_, static_cast<uint32_t>(ranges.size()), ranges.data()),
             "vkFlushMappedMemoryRanges", what);
}

void DeviceContext::invalidate(std::span<const VkMappedMemoryRange> ranges, const char* what) const {
    if (ranges.empty()) return;
    check_vk(
        table_.vkInvalidateMappedMemoryRanges(handle_, static_cast<uint32_t>(ranges.size()), ranges.data()),
        "vkInvalidateMappedMemoryRanges", what);
}

void DeviceContext::name_handle(VkObjectType type, uint64_t handle, const std::string& name) const noexcept {
    if (!set_name_ || handle == 0) return;
    VkDebugUtilsObjectNameInfoEXT info{VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT};
    info.objectType = type;
    info.objectHandle = handle;
    info.pObjectName = name.c_str();
    set_name_(handle_, &info);
}

DeviceContext::Label::Label(const DeviceContext& device, VkCommandBuffer commands, const std::string& name,
                            const std::string* line) {
    if (!device.begin_label_ || !device.end_label_) return;
    VkDebugUtilsLabelEXT info{VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT};
    const std::string text = line ? name + " (" + *line + ")" : std::string();
    info.pLabelName = line ? text.c_str() : name.c_str();
    device.begin_label_(commands, &info);
    end_ = device.end_label_;
}

void DeviceContext::mark_foreign() noexcept {
    foreign_.store(true, std::memory_order_release);
    closed_.store(true, std::memory_order_release);
    handles_->forget();
}

}  // namespace kp
