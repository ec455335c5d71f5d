// The driver's caches that pipelines are compiled with, and their file on disk.
//
// A driver may hold a cache's lock while it compiles (SwiftShader does), so each compilation has a cache of
// its own. A program that compiles on one thread has one cache; a program that compiles on several at a time
// has as many as threads compiled at once. All go into the one file.
#pragma once

#include "adapter/device_handle.hpp"
#include "base/lock_ranks.hpp"
#include "base/pipeline_cache_file.hpp"
#include "base/ranked.hpp"
#include "base/vulkan.hpp"

#include <memory>
#include <string>
#include <vector>

namespace kp {

class DeviceContext;

class DriverCaches {
    // Driver caches never forget entries, so a cache is dropped after many pipelines.
    struct Cache {
        DeviceHandle<VkPipelineCache> object;
        size_t fed = 0;
    };

public:
    // `directory`: of the file; empty: there is none.
    DriverCaches(DeviceContext& context, std::string directory);

    // The cache for one compilation, given back at the end.
    class Lease {
    public:
        Lease(DriverCaches& caches, std::unique_ptr<Cache> cache) noexcept
            : caches_(caches), cache_(std::move(cache)) {}
        Lease(const Lease&) = delete;
        Lease& operator=(const Lease&) = delete;
        ~Lease() { caches_.give_back(std::move(cache_)); }

        [[nodiscard]] VkPipelineCache handle() const noexcept { return cache_->object.get(); }
        // Call it when a pipeline has been made with it.
        void fed() noexcept { ++cache_->fed; }

    private:
        DriverCaches& caches_;
        std::unique_ptr<Cache> cache_;
    };
    [[nodiscard]] Lease take();

    // Writes to disk what has been compiled, and drops all caches; none is lent.
    void close() noexcept;

private:
    [[nodiscard]] std::unique_ptr<Cache> make(bool from_disk) const;
    [[nodiscard]] VkPipelineCache make_handle(const std::vector<uint8_t>& payload, VkResult& result) const;
    [[nodiscard]] std::vector<uint8_t> contents(VkPipelineCache of) const;
    void give_back(std::unique_ptr<Cache> cache) noexcept;
    void save(const std::vector<VkPipelineCache>& caches) const noexcept;
    [[nodiscard]] PipelineCacheFile file() const;

    DeviceContext& context_;
    const std::string directory_;
    RankedMutex mutex_{LockRank::pipeline_caches};  // held briefly
    std::vector<std::unique_ptr<Cache>> idle_;      // the one in use last is at the end
    bool one_was_full_ = false;
};

}  // namespace kp
