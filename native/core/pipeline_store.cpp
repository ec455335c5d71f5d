#include "pipeline_store.hpp"

#include "device.hpp"
#include "error.hpp"
#include "pipeline_cache_file.hpp"
#include "shader_check.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace kp {
namespace {

constexpr uint32_t sets_per_pool = 64;

void append(std::string& key, const void* data, size_t size) {
    key.append(static_cast<const char*>(data), size);
}

template <typename T>
void append(std::string& key, const T& value) {
    append(key, &value, sizeof value);
}

std::string hex(const uint8_t* bytes, size_t count) {
    constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (size_t i = 0; i < count; ++i) {
        text += digits[bytes[i] >> 4];
        text += digits[bytes[i] & 15];
    }
    return text;
}

// A shader's address is its identity here: the store keeps every shader for as long as it lives itself.
std::string key_of(const Shader& shader, const Specialization& constants, const DescriptorCounts& counts) {
    std::string key;
    const Shader* identity = &shader;
    append(key, identity);
    for (const auto& entry : constants.entries) {
        append(key, entry.constantID);
        append(key, constants.data.data() + entry.offset, entry.size);
    }
    for (const auto& each : counts.runtime) append(key, each);
    return key;
}

}  // namespace

std::vector<SpecValue> Specialization::values() const {
    std::vector<SpecValue> out;
    for (const auto& entry : entries) {
        SpecValue value{entry.constantID, 0};
        std::memcpy(&value.bits, data.data() + entry.offset, std::min<size_t>(entry.size, sizeof value.bits));
        out.push_back(value);
    }
    return out;
}

VkDescriptorType PipelineStore::descriptor_type(DescriptorKind kind) noexcept {
    switch (kind) {
    case DescriptorKind::storage_buffer: return VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    case DescriptorKind::uniform_buffer: return VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
    case DescriptorKind::storage_image: return VK_DESCRIPTOR_TYPE_STORAGE_IMAGE;
    case DescriptorKind::sampled_image: return VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE;
    case DescriptorKind::sampler: return VK_DESCRIPTOR_TYPE_SAMPLER;
    case DescriptorKind::combined_image_sampler: return VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER;
    case DescriptorKind::uniform_texel_buffer: return VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER;
    case DescriptorKind::storage_texel_buffer: return VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER;
    case DescriptorKind::acceleration_structure: return VK_DESCRIPTOR_TYPE_ACCELERATION_STRUCTURE_KHR;
    }
    return VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
}

PipelineStore::PipelineStore(Device& device, std::string cache_dir)
    : device_(device), cache_dir_(std::move(cache_dir)) {}

PipelineStore::~PipelineStore() { close(); }

std::shared_ptr<Shader> PipelineStore::shader(std::string_view bytes, const std::string& entry,
                                              std::string_view declared) {
    const uint64_t hash = std::hash<std::string_view>{}(bytes);
    const std::lock_guard lock(mutex_);
    device_.require_open("make an algorithm");  // close() takes this lock, too
    auto& bucket = shaders_[hash];
    for (const auto& known : bucket)
        if (known->is(bytes, entry, declared)) return known;
    auto made = std::make_shared<Shader>(device_, bytes, entry, declared);
    bucket.push_back(made);
    return made;
}

VkDescriptorSetLayout PipelineStore::set_layout(const std::vector<VkDescriptorSetLayoutBinding>& bindings) {
    std::string key;
    for (const auto& binding : bindings) {
        append(key, binding.binding);
        append(key, binding.descriptorType);
        append(key, binding.descriptorCount);
    }
    if (const auto found = set_layouts_.find(key); found != set_layouts_.end()) return found->second;
    VkDescriptorSetLayoutCreateInfo create{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    create.bindingCount = static_cast<uint32_t>(bindings.size());
    create.pBindings = bindings.data();
    uint64_t descriptors = 0;
    for (const auto& binding : bindings) descriptors += binding.descriptorCount;
    // Up to here the driver takes any; beyond, it has to be asked.
    if (const uint32_t always = device_.physical().v11.maxPerSetDescriptors; descriptors > always) {
        VkDescriptorSetLayoutSupport support{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_SUPPORT};
        device_.vk().vkGetDescriptorSetLayoutSupport(device_.handle(), &create, &support);
        if (!support.supported)
            throw Error(ErrorKind::invalid_argument,
                        "The shader has " + std::to_string(descriptors) + " descriptors in one set, and '" +
                            device_.physical().properties.deviceName +
                            "' refuses so many (maxPerSetDescriptors is " + std::to_string(always) +
                            "): spread them over several sets, or put buffers into one tensor");
    }
    VkDescriptorSetLayout made = VK_NULL_HANDLE;
    check_vk(device_.vk().vkCreateDescriptorSetLayout(device_.handle(), &create, nullptr, &made),
             "vkCreateDescriptorSetLayout", "an algorithm's bindings");
    set_layouts_.emplace(std::move(key), made);
    return made;
}

std::shared_ptr<PipelineLayout> PipelineStore::layout(const ShaderInfo& info,
                                                      const DescriptorCounts& counts) {
    uint32_t sets = 0;
    // A binding that the code does not use has no place in it: some drivers look at descriptors that no shader reads.
    for (const auto& binding : info.bindings)
        if (binding.used) sets = std::max(sets, binding.set + 1);
    std::vector<std::vector<VkDescriptorSetLayoutBinding>> bindings(sets);
    std::string key;
    for (const auto& binding : info.bindings) {
        if (!binding.used) continue;
        VkDescriptorSetLayoutBinding entry{};
        entry.binding = binding.binding;
        entry.descriptorType = descriptor_type(binding.kind);
        entry.descriptorCount = counts.of(binding);
        entry.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
        bindings[binding.set].push_back(entry);
        append(key, binding.set);
        append(key, entry.binding);
        append(key, entry.descriptorType);
        append(key, entry.descriptorCount);
    }
    VkPushConstantRange push{};
    if (info.push_constants) {
        push.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
        push.offset = info.push_constants->offset;
        push.size = info.push_constants->size;
    }
    append(key, push.offset);
    append(key, push.size);
    if (const auto found = layouts_.find(key); found != layouts_.end()) return found->second;

    auto made = std::make_shared<PipelineLayout>();
    made->push = push;
    for (const auto& entries : bindings) {
        made->sets.push_back(set_layout(entries));
        auto& needs = made->descriptors.emplace_back();
        for (const auto& entry : entries) needs.push_back({entry.descriptorType, entry.descriptorCount});
    }
    VkPipelineLayoutCreateInfo create{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    create.setLayoutCount = static_cast<uint32_t>(made->sets.size());
    create.pSetLayouts = made->sets.data();
    create.pushConstantRangeCount = push.size != 0 ? 1 : 0;
    create.pPushConstantRanges = &made->push;
    check_vk(device_.vk().vkCreatePipelineLayout(device_.handle(), &create, nullptr, &made->handle),
             "vkCreatePipelineLayout", "an algorithm");
    layouts_.emplace(std::move(key), made);
    return made;
}

std::shared_lock<std::shared_timed_mutex> PipelineStore::use() {
    std::shared_lock lock(life_);
    device_.require_open("make an algorithm");
    return lock;
}

std::shared_ptr<Pipeline> PipelineStore::find(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto found = pipelines_.find(key);
    return found == pipelines_.end() ? nullptr : found->second;
}

bool PipelineStore::knows(const std::shared_ptr<Shader>& shader, const Specialization& constants) {
    return find(key_of(*shader, constants, {})) != nullptr;
}

bool PipelineStore::await_users(uint64_t nanoseconds) {
    const std::unique_lock lock(life_, std::chrono::nanoseconds(nanoseconds));
    return lock.owns_lock();
}

std::shared_ptr<Pipeline> PipelineStore::pipeline(const std::shared_ptr<Shader>& shader,
                                                  const Specialization& constants,
                                                  const DescriptorCounts& counts) {
    return pipeline(shader, constants, counts, std::nullopt);
}

std::shared_ptr<Pipeline> PipelineStore::pipeline(const std::shared_ptr<Shader>& shader,
                                                  const Specialization& constants,
                                                  const DescriptorCounts& counts,
                                                  const std::optional<Fold>& fold) {
    std::string key = key_of(*shader, constants, counts);
    if (fold) append(key, *fold);
    if (auto found = find(key)) return found;
    const std::lock_guard compiling(compiling_);
    if (auto found = find(key)) return found;  // made while we waited

    // Sizes made of constants (local size, shared arrays, arrays of descriptors) are those of this specialization.
    const std::vector<SpecValue> values = constants.values();
    const ShaderInfo specialized = values.empty() ? ShaderInfo{} : shader->specialized(values);
    const ShaderInfo& info = values.empty() ? shader->info() : specialized;
    if (const auto found = check_limits(info, device_.shader_host(), counts); !found.empty())
        throw Error(ErrorKind::invalid_argument, found.front().message);
    auto made = std::make_shared<Pipeline>();
    made->local_size = info.local_size;
    {
        const std::lock_guard lock(mutex_);
        made->layout = layout(info, counts);
    }

    if (cache_ == VK_NULL_HANDLE) open_cache();
    VkSpecializationInfo specialization{};
    specialization.mapEntryCount = static_cast<uint32_t>(constants.entries.size());
    specialization.pMapEntries = constants.entries.data();
    specialization.dataSize = constants.data.size();
    specialization.pData = constants.data.data();
    VkComputePipelineCreateInfo create{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
    create.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    create.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    create.stage.module = shader->handle();
    struct Module {  // of the rewritten shader: it may go when the pipeline is there
        Device& device;
        VkShaderModule handle = VK_NULL_HANDLE;
        ~Module() {
            if (handle != VK_NULL_HANDLE) device.vk().vkDestroyShaderModule(device.handle(), handle, nullptr);
        }
    } module{device_};
    if (fold) {
        const std::vector<uint32_t> words = folded(shader->code(), info.entry, *fold, info.local_size);
        VkShaderModuleCreateInfo code{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
        code.codeSize = words.size() * sizeof(uint32_t);
        code.pCode = words.data();
        check_vk(device_.vk().vkCreateShaderModule(device_.handle(), &code, nullptr, &module.handle),
                 "vkCreateShaderModule", "a shader that runs in layers");
        create.stage.module = module.handle;
        create.flags |= VK_PIPELINE_CREATE_DISPATCH_BASE;
    }
    create.stage.pName = info.entry.c_str();
    create.stage.pSpecializationInfo = constants.entries.empty() ? nullptr : &specialization;
    create.layout = made->layout->handle;
    check_vk(
        device_.vk().vkCreateComputePipelines(device_.handle(), cache_, 1, &create, nullptr, &made->handle),
        "vkCreateComputePipelines", "an algorithm");
    cache_grew_ = true;
    const std::lock_guard lock(mutex_);
    pipelines_.emplace(key, made);
    return made;
}

Launch PipelineStore::launch(const std::shared_ptr<Shader>& shader, const Specialization& constants,
                             const DescriptorCounts& counts, const std::array<uint32_t, 3>& groups) {
    // No group on any axis runs nothing, whatever the others are.
    if (groups[0] == 0 || groups[1] == 0 || groups[2] == 0)
        return {pipeline(shader, constants, counts), groups, {}, {}};
    const std::vector<SpecValue> values = constants.values();
    if (const std::string why = shader->refuses(groups, values); !why.empty())
        throw Error(ErrorKind::invalid_argument,
                    std::to_string(groups[0]) + " x " + std::to_string(groups[1]) + " x " +
                        std::to_string(groups[2]) +
                        " workgroups are more than the device runs (maxComputeWorkGroupCount), and " + why);
    const auto& most = device_.limits().maxComputeWorkGroupCount;
    const auto fold = fold_of(shader->specialized(values).local_size, groups, {most[0], most[1], most[2]});
    if (!fold) return {pipeline(shader, constants, counts), groups, {}, {}};
    const auto in_use = use();
    Launch launch{pipeline(shader, constants, counts, fold), groups, {}, groups};
    const uint32_t layers = groups[fold->from] / fold->stride;
    launch.groups[fold->from] = fold->stride;
    launch.groups[fold->into] = layers;
    launch.base[fold->into] = layers;
    launch.rest[fold->from] = groups[fold->from] % fold->stride;
    if (launch.rest[fold->from] == 0) launch.rest = {};
    return launch;
}

VkDescriptorPool PipelineStore::make_pool(const std::vector<VkDescriptorPoolSize>& needs) {
    // Room for many small sets of the usual kinds, and in any case for one of this shape.
    constexpr std::array<std::pair<VkDescriptorType, uint32_t>, 8> usual{{
        {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 8 * sets_per_pool},
        {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, sets_per_pool},
        {VK_DESCRIPTOR_TYPE_STORAGE_IMAGE, 2 * sets_per_pool},
        {VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, sets_per_pool},
        {VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE, 16},
        {VK_DESCRIPTOR_TYPE_SAMPLER, 16},
        {VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER, 16},
        {VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER, 16},
    }};
    std::vector<VkDescriptorPoolSize> sizes;
    for (const auto& [type, count] : usual) {
        uint32_t needed = 0;
        for (const auto& need : needs)
            if (need.type == type) needed += need.descriptorCount;
        sizes.push_back({type, std::max(count, needed)});
    }
    VkDescriptorPoolCreateInfo create{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    create.flags = VK_DESCRIPTOR_POOL_CREATE_FREE_DESCRIPTOR_SET_BIT;
    create.maxSets = sets_per_pool;
    create.poolSizeCount = static_cast<uint32_t>(sizes.size());
    create.pPoolSizes = sizes.data();
    VkDescriptorPool pool = VK_NULL_HANDLE;
    check_vk(device_.vk().vkCreateDescriptorPool(device_.handle(), &create, nullptr, &pool),
             "vkCreateDescriptorPool", "an algorithm's bindings");
    pools_.push_back(pool);
    return pool;
}

DescriptorSet PipelineStore::allocate_set(const PipelineLayout& layout, uint32_t set) {
    const std::lock_guard lock(pools_mutex_);
    VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    allocate.descriptorSetCount = 1;
    allocate.pSetLayouts = &layout.sets[set];
    DescriptorSet result;
    const auto attempt = [&](VkDescriptorPool pool) {
        allocate.descriptorPool = pool;
        result.pool = pool;
        return device_.vk().vkAllocateDescriptorSets(device_.handle(), &allocate, &result.handle);
    };
    // The last pool first: an earlier one has room only after frees, so look there only when it is full.
    for (auto pool = pools_.rbegin(); pool != pools_.rend(); ++pool) {
        const VkResult answer = attempt(*pool);
        if (answer == VK_SUCCESS) return result;
        if (answer != VK_ERROR_OUT_OF_POOL_MEMORY && answer != VK_ERROR_FRAGMENTED_POOL)
            throw_vk(answer, "vkAllocateDescriptorSets", "an algorithm's bindings");
    }
    check_vk(attempt(make_pool(layout.descriptors[set])), "vkAllocateDescriptorSets",
             "an algorithm's bindings");
    return result;
}

void PipelineStore::free_set(DescriptorSet set) noexcept {
    const std::lock_guard lock(pools_mutex_);
    // Pools that are gone took their sets along.
    if (std::find(pools_.begin(), pools_.end(), set.pool) != pools_.end())
        device_.vk().vkFreeDescriptorSets(device_.handle(), set.pool, 1, &set.handle);
}

void PipelineStore::open_cache() {
    std::vector<uint8_t> payload;
    if (!cache_dir_.empty()) {
        const auto& properties = device_.physical().properties;
        const PipelineCacheFile file(cache_dir_, hex(properties.pipelineCacheUUID, VK_UUID_SIZE) + "-" +
                                                     std::to_string(properties.driverVersion));
        if (auto loaded = file.load()) payload = std::move(*loaded);
    }
    VkPipelineCacheCreateInfo create{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    create.initialDataSize = payload.size();
    create.pInitialData = payload.data();
    VkResult result = device_.vk().vkCreatePipelineCache(device_.handle(), &create, nullptr, &cache_);
    if (result != VK_SUCCESS && !payload.empty()) {
        // The driver dislikes what it once wrote: start afresh.
        create.initialDataSize = 0;
        create.pInitialData = nullptr;
        result = device_.vk().vkCreatePipelineCache(device_.handle(), &create, nullptr, &cache_);
    }
    check_vk(result, "vkCreatePipelineCache", "the pipeline cache");
    cache_grew_ = false;
}

void PipelineStore::save_cache() noexcept {
    if (cache_ == VK_NULL_HANDLE || !cache_grew_ || cache_dir_.empty() || device_.lost()) return;
    try {
        auto& vk = device_.vk();
        const auto& properties = device_.physical().properties;
        const PipelineCacheFile file(cache_dir_, hex(properties.pipelineCacheUUID, VK_UUID_SIZE) + "-" +
                                                     std::to_string(properties.driverVersion));
        const auto lock = file.lock();
        if (!lock.held()) {
            device_.note("The pipeline cache " + file.path() +
                         " was not written: another process holds its lock. Pipelines made now are compiled "
                         "again by the "
                         "next process");
            return;
        }
        // Another process may have written since we read: its entries are merged in, not lost.
        const auto present = file.load();
        if (present) {
            VkPipelineCacheCreateInfo create{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
            create.initialDataSize = present->size();
            create.pInitialData = present->data();
            VkPipelineCache other = VK_NULL_HANDLE;
            if (vk.vkCreatePipelineCache(device_.handle(), &create, nullptr, &other) == VK_SUCCESS) {
                vk.vkMergePipelineCaches(device_.handle(), cache_, 1, &other);
                vk.vkDestroyPipelineCache(device_.handle(), other, nullptr);
            }
        }
        size_t size = 0;
        if (vk.vkGetPipelineCacheData(device_.handle(), cache_, &size, nullptr) != VK_SUCCESS || size == 0)
            return;
        std::vector<uint8_t> payload(size);
        if (vk.vkGetPipelineCacheData(device_.handle(), cache_, &size, payload.data()) != VK_SUCCESS) return;
        payload.resize(size);
        if (!present || *present != payload) file.store(payload);
    } catch (...) {
        return;  // no memory for a cache: the next run compiles again
    }
}

void PipelineStore::close() noexcept {
    auto& vk = device_.vk();
    decltype(shaders_) shaders;
    {
        const std::unique_lock alone(life_);
        const std::lock_guard lock(mutex_);
        save_cache();
        for (auto& [key, pipeline] : pipelines_)
            vk.vkDestroyPipeline(device_.handle(), std::exchange(pipeline->handle, nullptr), nullptr);
        pipelines_.clear();
        for (auto& [key, layout] : layouts_)
            vk.vkDestroyPipelineLayout(device_.handle(), std::exchange(layout->handle, nullptr), nullptr);
        layouts_.clear();
        for (auto& [key, layout] : set_layouts_)
            vk.vkDestroyDescriptorSetLayout(device_.handle(), layout, nullptr);
        set_layouts_.clear();
        if (cache_ != VK_NULL_HANDLE)
            vk.vkDestroyPipelineCache(device_.handle(), std::exchange(cache_, nullptr), nullptr);
        shaders.swap(shaders_);
        for (auto& [hash, bucket] : shaders)
            for (auto& shader : bucket) shader->close();
    }
    {
        const std::lock_guard lock(pools_mutex_);
        for (VkDescriptorPool pool : pools_) vk.vkDestroyDescriptorPool(device_.handle(), pool, nullptr);
        pools_.clear();
    }
    // `shaders` dies here, outside the locks: what the bindings keep with a shader may want the interpreter's lock.
}

}  // namespace kp
