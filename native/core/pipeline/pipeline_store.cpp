#include "pipeline/pipeline_store.hpp"

#include "adapter/check_shader.hpp"
#include "adapter/context.hpp"
#include "base/error.hpp"
#include "base/host_heap.hpp"
#include "base/host_span.hpp"
#include "pipeline/debugger.hpp"
#include "spirv/invocation.hpp"
#include "sync/queue.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace kp {
namespace {

PipelineExecutable::Number number_of(const VkPipelineExecutableStatisticKHR& statistic) {
    switch (statistic.format) {
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR: return statistic.value.b32 != VK_FALSE;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR: return statistic.value.i64;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR: return statistic.value.f64;
    default: return statistic.value.u64;
    }
}

constexpr uint32_t sets_per_pool = 64;
// The store cleans up after the drivers each time it has compiled this many pipelines.
constexpr size_t compilations_per_tidying = 16;

void append(std::string& key, const void* data, size_t size) {
    key.append(static_cast<const char*>(data), size);
}

template <typename T>
void append(std::string& key, const T& value) {
    append(key, &value, sizeof value);
}

std::string key_of(const Shader& shader, const Specialization& constants, const DescriptorCounts& counts) {
    std::string key;
    append(key, shader.number());
    for (const auto& entry : constants.entries) {
        append(key, entry.constantID);
        append(key, constants.data.data() + entry.offset, entry.size);
    }
    for (const auto& each : counts.runtime) append(key, each);
    return key;
}

template <typename Handle>
using Destroyer = void(VKAPI_PTR*)(VkDevice, Handle, const VkAllocationCallbacks*);

// The function with which DeviceHandle frees a handle. `destroy` is a member of the device's table.
template <typename Handle, Destroyer<Handle> VolkDeviceTable::*destroy>
void free_handle(const DeviceContext& context, uint64_t handle) noexcept {
    (context.vk().*destroy)(context.handle(), handle_from<Handle>(handle), nullptr);
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

PipelineStore::PipelineStore(DeviceContext& context, std::vector<Queue*> queues, std::string cache_dir,
                             size_t recent, Debugger* debugger)
    : context_(context),
      debugger_(debugger),
      queues_(std::move(queues)),
      caches_(context, std::move(cache_dir)),
      recent_shaders_(recent),
      pipelines_(recent),
      layouts_(0),  // pipelines keep their layouts
      set_layouts_(0) {}

PipelineStore::~PipelineStore() { close(); }

std::shared_ptr<Shader> PipelineStore::known(uint64_t hash, std::string_view bytes, const std::string& entry,
                                             std::string_view declared, SubgroupRequest subgroups,
                                             bool unchecked, std::vector<std::shared_ptr<Shader>>& dropped) {
    const auto bucket = shaders_.find(hash);
    if (bucket == shaders_.end()) return nullptr;
    for (const auto& each : bucket->second) {
        auto shader = each.lock();
        if (!shader) continue;
        if (shader->is(bytes, entry, declared, subgroups, unchecked)) {
            dropped.push_back(recent_shaders_.touch(shader));
            return shader;
        }
        dropped.push_back(std::move(shader));  // its last user may be dropping it
    }
    return nullptr;
}

void PipelineStore::sweep_shaders() {
    if (!shaders_sweep_.due(shaders_.size())) return;
    for (auto bucket = shaders_.begin(); bucket != shaders_.end();) {
        std::erase_if(bucket->second, [](const auto& shader) { return shader.expired(); });
        bucket = bucket->second.empty() ? shaders_.erase(bucket) : std::next(bucket);
    }
    shaders_sweep_.swept(shaders_.size());
}

std::shared_ptr<Shader> PipelineStore::shader(std::string_view bytes, const std::string& entry,
                                              std::string_view declared, SubgroupRequest subgroups,
                                              bool unchecked) {
    const uint64_t hash = std::hash<std::string_view>{}(bytes);
    const auto in_use = use();
    std::vector<std::shared_ptr<Shader>> dropped;  // freed after the lock
    {
        const std::lock_guard lock(shaders_mutex_);
        if (auto found = known(hash, bytes, entry, declared, subgroups, unchecked, dropped)) return found;
    }
    // Validating a module takes time, so no lock is held. Two threads may make the same module; the first
    // one is kept.
    auto made = std::make_shared<Shader>(context_, bytes, entry, declared, subgroups, unchecked, debugger_);
    const std::lock_guard lock(shaders_mutex_);
    if (auto found = known(hash, bytes, entry, declared, subgroups, unchecked, dropped)) return found;
    sweep_shaders();
    auto& bucket = shaders_[hash];
    std::erase_if(bucket, [](const auto& shader) { return shader.expired(); });
    bucket.push_back(made);
    dropped.push_back(recent_shaders_.touch(made));
    return made;
}

std::shared_ptr<SetLayout>
PipelineStore::set_layout(const std::vector<VkDescriptorSetLayoutBinding>& bindings) {
    std::string key;
    for (const auto& binding : bindings) {
        append(key, binding.binding);
        append(key, binding.descriptorType);
        append(key, binding.descriptorCount);
    }
    if (auto found = set_layouts_.find(key)) return found;
    VkDescriptorSetLayoutCreateInfo create{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    create.bindingCount = static_cast<uint32_t>(bindings.size());
    create.pBindings = bindings.data();
    uint64_t descriptors = 0;
    for (const auto& binding : bindings) descriptors += binding.descriptorCount;
    // The driver takes any layout up to this limit; above it, ask the driver.
    if (const uint32_t always = context_.physical().v11.maxPerSetDescriptors; descriptors > always) {
        VkDescriptorSetLayoutSupport support{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_SUPPORT};
        context_.vk().vkGetDescriptorSetLayoutSupport(context_.handle(), &create, &support);
        if (!support.supported)
            throw Error(ErrorKind::invalid_argument,
                        "The shader has " + std::to_string(descriptors) + " descriptors in one set, and '" +
                            context_.physical().properties.deviceName +
                            "' refuses so many (maxPerSetDescriptors is " + std::to_string(always) +
                            "): spread them over several sets, or put buffers into one tensor");
    }
    return set_layouts_.get(key, [&] {
        auto made = std::make_shared<SetLayout>();
        VkDescriptorSetLayout handle = VK_NULL_HANDLE;
        check_vk(context_.vk().vkCreateDescriptorSetLayout(context_.handle(), &create, nullptr, &handle),
                 "vkCreateDescriptorSetLayout", "an algorithm's bindings");
        made->own(context_.handles(), handle,
                  &free_handle<VkDescriptorSetLayout, &VolkDeviceTable::vkDestroyDescriptorSetLayout>);
        return made;
    });
}

std::shared_ptr<PipelineLayout> PipelineStore::layout(const ShaderInfo& info, const DescriptorCounts& counts,
                                                      std::optional<uint32_t> instruments) {
    uint32_t sets = 0;
    // Leave out bindings that the code does not use: some drivers read descriptors that no shader reads.
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
    append(key, instruments.value_or(UINT32_MAX));
    if (instruments) bindings.resize(*instruments);
    return layouts_.get(key, [&] {
        auto made = std::make_shared<PipelineLayout>();
        made->push = push;
        std::vector<VkDescriptorSetLayout> handles;
        for (const auto& entries : bindings) {
            made->sets.push_back(set_layout(entries));
            handles.push_back(made->sets.back()->get());
            auto& needs = made->descriptors.emplace_back();
            for (const auto& entry : entries) needs.push_back({entry.descriptorType, entry.descriptorCount});
        }
        if (instruments) {
            handles.push_back(debugger_->layout());
            made->instruments = debugger_->set();
        }
        VkPipelineLayoutCreateInfo create{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
        create.setLayoutCount = static_cast<uint32_t>(handles.size());
        create.pSetLayouts = handles.data();
        create.pushConstantRangeCount = push.size != 0 ? 1 : 0;
        create.pPushConstantRanges = &made->push;
        VkPipelineLayout handle = VK_NULL_HANDLE;
        check_vk(context_.vk().vkCreatePipelineLayout(context_.handle(), &create, nullptr, &handle),
                 "vkCreatePipelineLayout", "an algorithm");
        made->object.own(context_.handles(), handle,
                         &free_handle<VkPipelineLayout, &VolkDeviceTable::vkDestroyPipelineLayout>);
        return made;
    });
}

std::shared_lock<Ranked<std::shared_timed_mutex>> PipelineStore::use() {
    std::shared_lock lock(life_);
    context_.require_open("make an algorithm");
    return lock;
}

bool PipelineStore::knows(const std::shared_ptr<Shader>& shader, const Specialization& constants) {
    return pipelines_.find(key_of(*shader, constants, {})) != nullptr;
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
    return pipelines_.get(key, [&] { return compile(shader, constants, counts, fold); });
}

std::shared_ptr<Pipeline> PipelineStore::compile(const std::shared_ptr<Shader>& shader,
                                                 const Specialization& constants,
                                                 const DescriptorCounts& counts,
                                                 const std::optional<Fold>& fold,
                                                 VkPipelineCreateFlags flags) {
    // Sizes made of constants (local size, shared arrays, arrays of descriptors) are those of this
    // specialization.
    const std::vector<SpecValue> values = constants.values();
    const ShaderInfo specialized = values.empty() ? ShaderInfo{} : shader->specialized(values);
    const ShaderInfo& info = values.empty() ? shader->info() : specialized;
    if (const auto found = check_arrays(shader->words(), values); !found.empty())
        throw Error(ErrorKind::invalid_argument, found.front().message);
    if (const auto found = check_limits(info, context_.shader_host(), counts); !found.empty())
        throw Error(ErrorKind::invalid_argument, found.front().message);
    if (const auto found = check_private_memory(shader->words(), values); !found.empty())
        throw Error(ErrorKind::invalid_argument, found.front().message);
    const SubgroupRequest& subgroups = shader->subgroups();
    if (subgroups.any()) check_subgroups(subgroups, info.local_size, context_.shader_host());
    auto made = std::make_shared<Pipeline>();
    made->local_size = info.local_size;
    made->shared_bytes = info.shared_bytes;
    made->shader = shader;
    made->layout = layout(info, counts, shader->instruments());
    VkSpecializationInfo specialization{};
    specialization.mapEntryCount = static_cast<uint32_t>(constants.entries.size());
    specialization.pMapEntries = constants.entries.data();
    specialization.dataSize = constants.data.size();
    specialization.pData = constants.data.data();
    VkComputePipelineCreateInfo create{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
    create.flags = flags;
    create.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    create.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    create.stage.module = shader->handle();
    struct Module {  // of the rewritten shader; not needed once the pipeline exists
        DeviceContext& context;
        VkShaderModule handle = VK_NULL_HANDLE;
        ~Module() {
            if (handle != VK_NULL_HANDLE)
                context.vk().vkDestroyShaderModule(context.handle(), handle, nullptr);
        }
    } module{context_};
    if (fold) {
        const std::vector<uint32_t> words = folded(shader->code(), info.entry, *fold, info.local_size);
        VkShaderModuleCreateInfo code{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
        code.codeSize = words.size() * sizeof(uint32_t);
        code.pCode = words.data();
        check_vk(context_.vk().vkCreateShaderModule(context_.handle(), &code, nullptr, &module.handle),
                 "vkCreateShaderModule", "a shader that runs in layers");
        create.stage.module = module.handle;
        create.flags |= VK_PIPELINE_CREATE_DISPATCH_BASE;
    }
    if (context_.watchdog() > 0 && invocation_use(shader->words(), info.entry, values).group_count == 0) {
        made->divisible = true;
        create.flags |= VK_PIPELINE_CREATE_DISPATCH_BASE;
    }
    create.stage.pName = info.entry.c_str();
    create.stage.pSpecializationInfo = constants.entries.empty() ? nullptr : &specialization;
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size{
        VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO};
    size.requiredSubgroupSize = subgroups.size;
    if (subgroups.size != 0) create.stage.pNext = &size;
    if (subgroups.full) create.stage.flags |= VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    create.layout = made->layout->handle();
    VkPipeline handle = VK_NULL_HANDLE;
    {
        const HostSpan span("pipeline");
        auto cache = caches_.take();
        check_vk(context_.vk().vkCreateComputePipelines(context_.handle(), cache.handle(), 1, &create,
                                                        nullptr, &handle),
                 "vkCreateComputePipelines", "an algorithm");
        cache.fed();
    }
    made->object.own(context_.handles(), handle,
                     &free_handle<VkPipeline, &VolkDeviceTable::vkDestroyPipeline>);
    tidy_up();
    return made;
}

std::vector<PipelineExecutable> PipelineStore::executables(const std::shared_ptr<Shader>& shader,
                                                           const Specialization& constants) {
    const VolkDeviceTable& vk = context_.vk();
    const VkDevice device = context_.handle();
    if (!context_.enabled().executables.pipelineExecutableInfo) return {};
    const auto in_use = use();
    const std::shared_ptr<Pipeline> pipeline =
        compile(shader, constants, {}, std::nullopt,
                VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR |
                    VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR);
    const VkPipelineInfoKHR whole{VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR, nullptr, pipeline->handle()};
    uint32_t count = 0;
    check_vk(vk.vkGetPipelineExecutablePropertiesKHR(device, &whole, &count, nullptr),
             "vkGetPipelineExecutablePropertiesKHR", "a kernel's statistics");
    std::vector<VkPipelineExecutablePropertiesKHR> parts(
        count, {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR, nullptr, 0, {}, {}, 0});
    check_vk(vk.vkGetPipelineExecutablePropertiesKHR(device, &whole, &count, parts.data()),
             "vkGetPipelineExecutablePropertiesKHR", "a kernel's statistics");
    std::vector<PipelineExecutable> found;
    for (uint32_t i = 0; i < count; ++i) {
        PipelineExecutable part{parts[i].name, parts[i].description, parts[i].subgroupSize, {}, {}};
        const VkPipelineExecutableInfoKHR one{VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR, nullptr,
                                              pipeline->handle(), i};
        uint32_t numbers = 0;
        check_vk(vk.vkGetPipelineExecutableStatisticsKHR(device, &one, &numbers, nullptr),
                 "vkGetPipelineExecutableStatisticsKHR", "a kernel's statistics");
        std::vector<VkPipelineExecutableStatisticKHR> statistics(
            numbers, {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR, nullptr, {}, {}, {}, {}});
        check_vk(vk.vkGetPipelineExecutableStatisticsKHR(device, &one, &numbers, statistics.data()),
                 "vkGetPipelineExecutableStatisticsKHR", "a kernel's statistics");
        for (const auto& each : statistics) part.statistics.emplace_back(each.name, number_of(each));
        uint32_t texts = 0;
        check_vk(vk.vkGetPipelineExecutableInternalRepresentationsKHR(device, &one, &texts, nullptr),
                 "vkGetPipelineExecutableInternalRepresentationsKHR", "a kernel's statistics");
        std::vector<VkPipelineExecutableInternalRepresentationKHR> forms(
            texts, {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR,
                    nullptr,
                    {},
                    {},
                    0,
                    0,
                    nullptr});
        std::vector<std::string> contents(texts);
        for (const bool sized : {false, true}) {  // the first call tells the sizes
            for (uint32_t k = 0; sized && k < texts; ++k) {
                contents[k].resize(forms[k].dataSize);
                forms[k].pData = contents[k].data();
            }
            check_vk(vk.vkGetPipelineExecutableInternalRepresentationsKHR(device, &one, &texts, forms.data()),
                     "vkGetPipelineExecutableInternalRepresentationsKHR", "a kernel's statistics");
        }
        for (uint32_t k = 0; k < texts; ++k) {
            if (forms[k].isText == VK_FALSE) continue;
            contents[k].resize(std::min(contents[k].size(), contents[k].find('\0')));
            part.texts.emplace_back(forms[k].name, std::move(contents[k]));
        }
        found.push_back(std::move(part));
    }
    return found;
}

Launch PipelineStore::launch(const std::shared_ptr<Shader>& shader, const Specialization& constants,
                             const DescriptorCounts& counts, const std::array<uint32_t, 3>& groups) {
    // If any axis has no groups, nothing runs.
    if (groups[0] == 0 || groups[1] == 0 || groups[2] == 0)
        return {pipeline(shader, constants, counts), groups, {}, {}};
    const std::vector<SpecValue> values = constants.values();
    if (const std::string why = shader->refuses(groups, values); !why.empty())
        throw Error(ErrorKind::invalid_argument,
                    std::to_string(groups[0]) + " x " + std::to_string(groups[1]) + " x " +
                        std::to_string(groups[2]) +
                        " workgroups are more than the device runs (maxComputeWorkGroupCount), and " + why);
    const auto& most = context_.limits().maxComputeWorkGroupCount;
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

PipelineStore::Pool* PipelineStore::make_pool(const std::vector<VkDescriptorPoolSize>& needs) {
    // Room for many small sets of the usual kinds, and at least for one set of this shape.
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
    with_room_.reserve(pools_.size() + 1);  // so that returning a set needs no memory
    VkDescriptorPool handle = VK_NULL_HANDLE;
    check_vk(context_.vk().vkCreateDescriptorPool(context_.handle(), &create, nullptr, &handle),
             "vkCreateDescriptorPool", "an algorithm's bindings");
    Pool* pool = nullptr;
    try {
        pool = &(pools_[handle] = {handle, 0});
    } catch (...) {
        context_.vk().vkDestroyDescriptorPool(context_.handle(), handle, nullptr);
        throw;
    }
    with_room_.push_back(pool);
    ++empty_pools_;
    return pool;
}

DescriptorSet PipelineStore::allocate_set(const PipelineLayout& layout, uint32_t set) {
    const std::lock_guard lock(pools_mutex_);
    const VkDescriptorSetLayout set_layout = layout.sets[set]->get();
    VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    allocate.descriptorSetCount = 1;
    allocate.pSetLayouts = &set_layout;
    DescriptorSet result;
    const auto attempt = [&](Pool& pool) {
        allocate.descriptorPool = pool.handle;
        const VkResult answer =
            context_.vk().vkAllocateDescriptorSets(context_.handle(), &allocate, &result.handle);
        if (answer != VK_SUCCESS) return answer;
        result.pool = pool.handle;
        if (pool.taken++ == 0) --empty_pools_;
        if (pool.taken == sets_per_pool) std::erase(with_room_, &pool);
        return answer;
    };
    // Try the last pool first: an earlier one has room only after frees, so it is tried only if the last is
    // full.
    for (size_t i = with_room_.size(); i-- > 0;) {
        const VkResult answer = attempt(*with_room_[i]);
        if (answer == VK_SUCCESS) return result;
        if (answer != VK_ERROR_OUT_OF_POOL_MEMORY && answer != VK_ERROR_FRAGMENTED_POOL)
            throw_vk(answer, "vkAllocateDescriptorSets", "an algorithm's bindings");
    }
    check_vk(attempt(*make_pool(layout.descriptors[set])), "vkAllocateDescriptorSets",
             "an algorithm's bindings");
    return result;
}

void PipelineStore::free_set(DescriptorSet set) noexcept {
    const std::lock_guard lock(pools_mutex_);
    const auto found = pools_.find(set.pool);
    if (found == pools_.end()) return;  // pools that are gone took their sets along
    Pool& pool = found->second;
    context_.vk().vkFreeDescriptorSets(context_.handle(), pool.handle, 1, &set.handle);
    if (pool.taken == sets_per_pool) with_room_.push_back(&pool);
    if (--pool.taken != 0) return;
    // Keep one empty pool, so that a program that makes and drops one algorithm does not make pools again
    // and again.
    if (++empty_pools_ > 1) drop_pool(pool);
}

void PipelineStore::drop_pool(Pool& pool) noexcept {
    --empty_pools_;
    std::erase(with_room_, &pool);
    const VkDescriptorPool handle = pool.handle;
    pools_.erase(handle);
    context_.vk().vkDestroyDescriptorPool(context_.handle(), handle, nullptr);
}

void PipelineStore::tidy_up() noexcept {
    bool idle = false;
    {
        const std::lock_guard lock(tidying_mutex_);
        if (++compiled_ % compilations_per_tidying != 0) return;
        uint64_t submissions = 0;
        for (const Queue* each : queues_) submissions += each->submitted();
        idle = submissions == std::exchange(submissions_, submissions);
    }
    give_back_heap();
    // lavapipe frees destroyed pipelines only with the next submission, so a program that makes algorithms
    // but runs none must submit too.
    if (!idle) return;
    try {
        PreparedSubmit nothing;
        nothing.prepare(*queues_.front(), {});
        queues_.front()->submit(nothing);
    } catch (const std::exception&) {
        return;  // they are freed later
    }
}

PipelineCounts PipelineStore::counts() {
    PipelineCounts counts;
    // Counts, for each module, the owners that are not users: unused pipelines and the store itself.
    std::unordered_map<const Shader*, long> idle;
    pipelines_.look([&](const auto& all, const auto& recent) {
        counts.pipelines = all.size();
        constexpr long ours = 2;  // the list of recent ones, and `all`
        for (const auto& pipeline : recent)
            if (pipeline.use_count() == ours) {
                ++counts.unused_pipelines;
                ++idle[pipeline->shader.get()];
            }
    });
    layouts_.look([&](const auto& all, const auto&) { counts.layouts = all.size(); });
    set_layouts_.look([&](const auto& all, const auto&) { counts.set_layouts = all.size(); });
    {
        std::vector<std::shared_ptr<Shader>> all;  // freed after the lock
        const std::lock_guard lock(shaders_mutex_);
        for (const auto& shader : recent_shaders_.all()) ++idle[shader.get()];
        for (const auto& [hash, bucket] : shaders_)
            for (const auto& each : bucket)
                if (auto shader = each.lock()) all.push_back(std::move(shader));
        for (const auto& shader : all) {
            ++counts.modules;
            counts.module_bytes += shader->code_bytes();
            const auto found = idle.find(shader.get());
            if (shader.use_count() - 1 > (found == idle.end() ? 0 : found->second)) continue;
            ++counts.unused_modules;
            counts.unused_module_bytes += shader->code_bytes();
        }
    }
    const std::lock_guard lock(pools_mutex_);
    counts.descriptor_pools = pools_.size();
    return counts;
}

void PipelineStore::trim() noexcept {
    // Freed here, with no lock held.
    (void)pipelines_.take_recent();
    std::list<std::shared_ptr<Shader>> shaders;
    {
        const std::lock_guard lock(shaders_mutex_);
        shaders = recent_shaders_.take();
    }
    shaders.clear();
    const std::lock_guard lock(pools_mutex_);
    for (size_t i = with_room_.size(); i-- > 0;)
        if (with_room_[i]->taken == 0) drop_pool(*with_room_[i]);
}

void PipelineStore::close() noexcept {
    {
        const std::unique_lock alone(life_);
        caches_.close();
    }
    trim();
    const std::lock_guard lock(pools_mutex_);
    for (const auto& [handle, pool] : pools_)
        context_.vk().vkDestroyDescriptorPool(context_.handle(), handle, nullptr);
    pools_.clear();
    with_room_.clear();
    empty_pools_ = 0;
}

}  // namespace kp
