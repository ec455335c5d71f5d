#include "pipeline_cache_file.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#ifndef _WIN32
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#endif

namespace kp {
namespace {

struct Header {
    char magic[8];
    uint32_t version;
    uint32_t reserved;
    uint64_t size;
    uint64_t checksum;
};

constexpr char magic[8] = {'k', 'p', 'p', 'i', 'p', 'e', '\r', '\n'};
constexpr uint32_t format_version = 1;
// A damaged size field must not make us read a terabyte.
constexpr uint64_t largest_payload = uint64_t{256} << 20;

}  // namespace

uint64_t fnv1a(const void* data, size_t size) noexcept {
    const auto* bytes = static_cast<const unsigned char*>(data);
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
    return hash;
}

PipelineCacheFile::PipelineCacheFile(const std::string& directory, const std::string& key)
    : directory_(directory), path_((std::filesystem::path(directory) / (key + ".bin")).string()) {}

std::optional<std::vector<uint8_t>> PipelineCacheFile::load() const noexcept {
    try {
        std::ifstream file(path_, std::ios::binary);
        Header header{};
        if (!file.read(reinterpret_cast<char*>(&header), sizeof header)) return std::nullopt;
        if (std::memcmp(header.magic, magic, sizeof magic) != 0 || header.version != format_version ||
            header.size > largest_payload)
            return std::nullopt;
        std::vector<uint8_t> payload(header.size);
        if (!file.read(reinterpret_cast<char*>(payload.data()), static_cast<std::streamsize>(header.size)))
            return std::nullopt;
        if (fnv1a(payload.data(), payload.size()) != header.checksum) return std::nullopt;
        return payload;
    } catch (...) {
        return std::nullopt;
    }
}

bool PipelineCacheFile::store(const std::vector<uint8_t>& payload) const noexcept {
    try {
        std::filesystem::create_directories(directory_);
        std::random_device random;
        const std::string temporary = path_ + "." + std::to_string(random()) + ".tmp";
        Header header{};
        std::memcpy(header.magic, magic, sizeof magic);
        header.version = format_version;
        header.size = payload.size();
        header.checksum = fnv1a(payload.data(), payload.size());
        {
            std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
            file.write(reinterpret_cast<const char*>(&header), sizeof header);
            file.write(reinterpret_cast<const char*>(payload.data()),
                       static_cast<std::streamsize>(payload.size()));
            file.flush();
            if (!file) {
                file.close();
                std::error_code ignored;
                std::filesystem::remove(temporary, ignored);
                return false;
            }
        }
        std::error_code error;
        std::filesystem::rename(temporary, path_, error);
        if (error) {
            std::error_code ignored;
            std::filesystem::remove(temporary, ignored);
            return false;
        }
        return true;
    } catch (...) {
        return false;
    }
}

PipelineCacheFile::Lock::Lock(const std::string& path) {
#ifndef _WIN32
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
    descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor_ < 0) return;
    // flock has no time-out of its own, so it is asked again and again. A signal (EINTR) is no reason to give up.
    const auto end = std::chrono::steady_clock::now() + lock_patience;
    while (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) return;
        if (std::chrono::steady_clock::now() >= end) {
            held_ = false;
            return;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
#else
    (void)
        path;  // renames are atomic there too; two writers at once may lose one another's newest entries, nothing more
#endif
}

PipelineCacheFile::Lock::~Lock() {
#ifndef _WIN32
    if (descriptor_ >= 0) close(descriptor_);
#endif
}

}  // namespace kp
