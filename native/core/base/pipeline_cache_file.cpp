#include "base/pipeline_cache_file.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <thread>

#ifndef _WIN32
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#else
#include <fstream>
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

namespace fs = std::filesystem;

#ifndef _WIN32

class Descriptor {
public:
    explicit Descriptor(int value) : value_(value) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
        if (value_ >= 0) close(value_);
    }
    [[nodiscard]] int get() const noexcept { return value_; }

private:
    int value_;
};

bool is_own(const struct stat& status) { return status.st_uid == geteuid() || status.st_uid == 0; }

// Opens a regular file of this user (or root) that no other user may change, because its contents go to the
// driver. Does not block, because the path may be a pipe. -1 for any other file.
int open_own(const std::string& path, int flags) {
    const int descriptor = open(path.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    struct stat status {};
    if (descriptor >= 0 && (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode) || !is_own(status) ||
                            (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)) {
        close(descriptor);
        return -1;
    }
    return descriptor;
}

bool read_all(int descriptor, void* data, size_t size) {
    auto* at = static_cast<char*>(data);
    while (size > 0) {
        const ssize_t count = read(descriptor, at, size);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        at += count;
        size -= static_cast<size_t>(count);
    }
    return true;
}

bool write_all(int descriptor, const void* data, size_t size) {
    const auto* at = static_cast<const char*>(data);
    while (size > 0) {
        const ssize_t count = write(descriptor, at, size);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        at += count;
        size -= static_cast<size_t>(count);
    }
    return true;
}

// Makes the folder, and missing ones above it, for this user alone; false if that fails or if another user
// owns it.
bool make_own_folder(const fs::path& folder) {
    std::error_code error;
    if (!folder.empty() && !fs::exists(folder, error)) {
        if (folder.has_parent_path() && folder.parent_path() != folder &&
            !make_own_folder(folder.parent_path()) && !fs::is_directory(folder.parent_path(), error))
            return false;
        if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return false;
    }
    struct stat status {};
    return stat(folder.empty() ? "." : folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
           is_own(status);
}

// A writer holds a lock on its temporary file. The system drops the lock if the process is killed; then the
// file is abandoned.
void delete_abandoned(const fs::path& folder, const std::string& prefix) {
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
        const std::string name = at->path().filename().string();
        if (!name.starts_with(prefix) || !name.ends_with(".tmp")) continue;
        const Descriptor file(open_own(at->path().string(), O_RDONLY));
        if (file.get() >= 0 && flock(file.get(), LOCK_EX | LOCK_NB) == 0) unlink(at->path().c_str());
    }
}

// A new file with this content, locked until the Descriptor closes it. -1 if it cannot be written; then
// nothing is left of it.
int write_temporary(const std::string& path, const Header& header, const std::vector<uint8_t>& payload) {
    const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (descriptor < 0) return -1;
    struct stat status {};
    // Before it was locked, another writer may have deleted it as abandoned. A file system without locks
    // cannot have this problem.
    const bool lost = (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) ||
                      fstat(descriptor, &status) != 0 || status.st_nlink == 0;
    if (!lost && write_all(descriptor, &header, sizeof header) &&
        write_all(descriptor, payload.data(), payload.size()))
        return descriptor;
    unlink(path.c_str());
    close(descriptor);
    return -1;
}

#endif

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
#ifndef _WIN32
        const Descriptor file(open_own(path_, O_RDONLY));
        const auto read = [&](void* data, size_t size) { return read_all(file.get(), data, size); };
        struct stat status {};
        if (file.get() < 0 || fstat(file.get(), &status) != 0) return std::nullopt;
        const auto file_bytes = static_cast<uint64_t>(status.st_size);
#else
        std::ifstream file(path_, std::ios::binary);
        const auto read = [&](void* data, size_t size) {
            return static_cast<bool>(file.read(static_cast<char*>(data), static_cast<std::streamsize>(size)));
        };
        std::error_code unknown;
        const uint64_t file_bytes = fs::file_size(path_, unknown);
        if (unknown) return std::nullopt;
#endif
        Header header{};
        if (!read(&header, sizeof header)) return std::nullopt;
        if (std::memcmp(header.magic, magic, sizeof magic) != 0 || header.version != format_version ||
            header.size > largest_payload || file_bytes != sizeof header + header.size)
            return std::nullopt;
        std::vector<uint8_t> payload(header.size);
        if (!read(payload.data(), payload.size())) return std::nullopt;
        if (fnv1a(payload.data(), payload.size()) != header.checksum) return std::nullopt;
        return payload;
    } catch (...) {
        return std::nullopt;
    }
}

bool PipelineCacheFile::store(const std::vector<uint8_t>& payload) const noexcept {
    try {
        std::random_device random;
        const std::string temporary = path_ + "." + std::to_string(random()) + ".tmp";
        Header header{};
        std::memcpy(header.magic, magic, sizeof magic);
        header.version = format_version;
        header.size = payload.size();
        header.checksum = fnv1a(payload.data(), payload.size());
        std::error_code error;
#ifndef _WIN32
        if (!make_own_folder(directory_)) return false;
        delete_abandoned(directory_, fs::path(path_).filename().string() + ".");
        const Descriptor file(write_temporary(temporary, header, payload));
        if (file.get() < 0) return false;
#else
        fs::create_directories(directory_);
        {
            std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
            file.write(reinterpret_cast<const char*>(&header), sizeof header);
            file.write(reinterpret_cast<const char*>(payload.data()),
                       static_cast<std::streamsize>(payload.size()));
            file.flush();
            if (!file) {
                file.close();
                fs::remove(temporary, error);
                return false;
            }
        }
#endif
        fs::rename(temporary, path_, error);
        if (!error) return true;
        fs::remove(temporary, error);
        return false;
    } catch (...) {
        return false;
    }
}

PipelineCacheFile::Lock::Lock(const std::string& path) {
#ifndef _WIN32
    if (!make_own_folder(fs::path(path).parent_path())) return;
    descriptor_ = open_own(path, O_RDWR | O_CREAT);
    if (descriptor_ < 0) return;
    // flock has no time-out, so it is tried repeatedly. A signal (EINTR) must not end the attempts.
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
    (void)path;  // renames are atomic there too; two writers may at most lose each other's newest entries
#endif
}

PipelineCacheFile::Lock::~Lock() {
#ifndef _WIN32
    if (descriptor_ >= 0) close(descriptor_);
#endif
}

}  // namespace kp
