// The pipeline cache on disk: one file for each device and driver, checksummed, safe against concurrent
// writers.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kp {

class PipelineCacheFile {
public:
    // A damaged size field must not make us read a terabyte.
    static constexpr uint64_t largest_payload = uint64_t{256} << 20;

    // `key` names the device and driver: hex digits and dashes.
    PipelineCacheFile(const std::string& directory, const std::string& key);

    // The payload, or nullopt if the file is missing or damaged, or if another user can have written it (it
    // is a link, it does not belong to this user or root, or others may write to it). Never throws: an
    // unreadable cache counts as empty.
    [[nodiscard]] std::optional<std::vector<uint8_t>> load() const noexcept;

    // Writes a temporary file in the same folder and renames it over the old one, so that readers see either
    // the old or the new file. Deletes temporary files of killed processes. Makes folder and files for this
    // user alone. Returns false if the directory cannot be written or belongs to another user: programs work
    // without a cache.
    bool store(const std::vector<uint8_t>& payload) const noexcept;

    // Hold it from load to store when merging into the file, so that two writers do not drop each other's
    // entries. Another process may hold it for any time (it may be stopped, or the folder may be on a lost
    // file server), so the wait for it is limited: see held().
    class Lock {
    public:
        explicit Lock(const std::string& path);
        Lock(const Lock&) = delete;
        Lock& operator=(const Lock&) = delete;
        ~Lock();
        // False if another writer still had it after lock_patience. A folder without lock support counts as
        // held: renames still keep the file whole, and a lost entry is compiled again.
        [[nodiscard]] bool held() const noexcept { return held_; }

    private:
        int descriptor_ = -1;
        bool held_ = true;
    };
    static constexpr std::chrono::milliseconds lock_patience{2000};
    [[nodiscard]] Lock lock() const { return Lock(path_ + ".lock"); }
    [[nodiscard]] const std::string& path() const noexcept { return path_; }

private:
    std::string directory_;
    std::string path_;
};

// FNV-1a, 64 bits (Fowler, Noll, Vo).
[[nodiscard]] uint64_t fnv1a(const void* data, size_t size) noexcept;

}  // namespace kp
