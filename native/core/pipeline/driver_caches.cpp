#include "pipeline/driver_caches.hpp"

#include "adapter/context.hpp"
#include "base/error.hpp"

#include <exception>
#include <mutex>
#include <utility>

namespace kp {
namespace {

constexpr size_t pipelines_per_cache = 1024;

std::string hex(const uint8_t* bytes, size_t count) {
    constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (size_t i = 0; i < count; ++i) {
        text += digits[bytes[i] >> 4];
        text += digits[bytes[i] & 15];
    }
    return text;
}

void free_cache(const DeviceContext& context, uint64_t cache) noexcept {
    context.vk().vkDestroyPipelineCache(context.handle(), handle_from<VkPipelineCache>(cache), nullptr);
}

}  // namespace

DriverCaches::DriverCaches(DeviceContext& context, std::string directory)
    : context_(context), directory_(std::move(directory)) {}

DriverCaches::Lease DriverCaches::take() {
    bool from_disk = false;
    {
        const std::lock_guard lock(mutex_);
        if (!idle_.empty()) {
            auto cache = std::move(idle_.back());
            idle_.pop_back();
            return {*this, std::move(cache)};
        }
        // The contents of a full cache are on disk, and its successor begins empty.
        from_disk = !one_was_full_;
    }
    return {*this, make(from_disk)};
}

void DriverCaches::give_back(std::unique_ptr<Cache> cache) noexcept {
    if (cache->fed < pipelines_per_cache) {
        try {
            const std::lock_guard lock(mutex_);
            idle_.push_back(std::move(cache));
            return;
        } catch (const std::exception&) {
            if (!cache) return;  // no memory for the list: this cache is dropped
        }
    }
    {
        const std::lock_guard lock(mutex_);
        one_was_full_ = true;
    }
    save({cache->object.get()});
}

void DriverCaches::close() noexcept {
    std::vector<std::unique_ptr<Cache>> caches;
    {
        const std::lock_guard lock(mutex_);
        caches = std::exchange(idle_, {});
    }
    std::vector<VkPipelineCache> fed;
    for (const auto& each : caches)
        if (each->fed != 0) fed.push_back(each->object.get());
    if (!fed.empty()) save(fed);
}

VkPipelineCache DriverCaches::make_handle(const std::vector<uint8_t>& payload, VkResult& result) const {
    VkPipelineCacheCreateInfo create{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    create.initialDataSize = payload.size();
    create.pInitialData = payload.data();
    VkPipelineCache made = VK_NULL_HANDLE;
    result = context_.vk().vkCreatePipelineCache(context_.handle(), &create, nullptr, &made);
    return result == VK_SUCCESS ? made : VK_NULL_HANDLE;
}

std::unique_ptr<DriverCaches::Cache> DriverCaches::make(bool from_disk) const {
    std::vector<uint8_t> payload;
    if (from_disk && !directory_.empty())
        if (auto loaded = file().load()) payload = std::move(*loaded);
    auto made = std::make_unique<Cache>();
    VkResult result = VK_SUCCESS;
    VkPipelineCache handle = make_handle(payload, result);
    // The driver rejects the data that it once wrote: begin with an empty cache.
    if (result != VK_SUCCESS && !payload.empty()) handle = make_handle({}, result);
    check_vk(result, "vkCreatePipelineCache", "the pipeline cache");
    made->object.own(context_.handles(), handle, &free_cache);
    return made;
}

std::vector<uint8_t> DriverCaches::contents(VkPipelineCache of) const {
    auto& vk = context_.vk();
    std::vector<uint8_t> payload;
    size_t size = 0;
    if (vk.vkGetPipelineCacheData(context_.handle(), of, &size, nullptr) != VK_SUCCESS) return payload;
    payload.resize(size);
    if (vk.vkGetPipelineCacheData(context_.handle(), of, &size, payload.data()) != VK_SUCCESS) size = 0;
    payload.resize(size);
    return payload;
}

PipelineCacheFile DriverCaches::file() const {
    const auto& properties = context_.physical().properties;
    return {directory_,
            hex(properties.pipelineCacheUUID, VK_UUID_SIZE) + "-" + std::to_string(properties.driverVersion)};
}

void DriverCaches::save(const std::vector<VkPipelineCache>& caches) const noexcept {
    if (directory_.empty() || context_.lost()) return;
    try {
        auto& vk = context_.vk();
        const PipelineCacheFile file = this->file();
        const auto lock = file.lock();
        if (!lock.held()) {
            context_.note("The pipeline cache " + file.path() +
                          " was not written: another process holds its lock. Pipelines made now are compiled "
                          "again by the "
                          "next process");
            return;
        }
        // Another process may have written the file since it was read here, so its entries are merged, not
        // lost. They are merged into a temporary cache, because other threads may be compiling with these
        // ones.
        const auto present = file.load();
        std::vector<uint8_t> payload;
        if (present || caches.size() > 1) {
            VkResult result = VK_SUCCESS;
            if (const VkPipelineCache all = make_handle(present.value_or(std::vector<uint8_t>()), result);
                all != VK_NULL_HANDLE) {
                if (vk.vkMergePipelineCaches(context_.handle(), all, static_cast<uint32_t>(caches.size()),
                                             caches.data()) == VK_SUCCESS)
                    payload = contents(all);
                vk.vkDestroyPipelineCache(context_.handle(), all, nullptr);
            }
        }
        // If they are together too large for a file that would be read again, keep only the first one's
        // contents.
        if (payload.empty() || payload.size() > PipelineCacheFile::largest_payload)
            payload = contents(caches.front());
        if (payload.empty() || payload.size() > PipelineCacheFile::largest_payload) return;
        if (!present || *present != payload) file.store(payload);
    } catch (...) {
        return;  // not enough memory for a cache: the next run compiles again
    }
}

}  // namespace kp
