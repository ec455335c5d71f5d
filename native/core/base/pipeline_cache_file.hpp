// The pipeline cache on disk: one file for each device and driver, checksummed, safe against concurrent writers.
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

    // The payload, or nullopt when there is no file, it is damaged, or another user can have written it (it is a link, it is not
    // this user's or root's, or others may write to it). Never throws: a cache that cannot be read is empty.
    [[nodiscard]] std::optional<std::vector<uint8_t>> load() const noexcept;

    // Writes a temporary file beside and renames it over the old one, so that a reader sees the old file or the new one; deletes
    // what killed processes left of theirs. Folder and files are made for this user alone. False when the directory cannot be
    // written or is another user's: programs work without a cache.
    bool store(const std::vector<uint8_t>& payload) const noexcept;

    // Held from load to store by who merges into the file, so that two writers do not drop each other's entries. Another
    // process may hold it for as long as it likes (it may be stopped, or the folder on a file server that is gone), so it is
    // sought for a while only: see held().
    class Lock {
    public:
        explicit Lock(const std::string& path);
        Lock(const Lock&) = delete;
        Lock& operator=(const Lock&) = delete;
        ~Lock();
        // False where another writer still had it after lock_patience. A folder that knows no locks counts as held: renames
        // keep the file whole there, and a lost entry is compiled again.
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
