// The host's own memcpy between two blocks as a careful C program makes them: in huge pages, touched before.
#pragma once

#include <cstddef>

namespace benchmark_floor {

class CopyPair {
public:
    explicit CopyPair(size_t bytes);
    CopyPair(const CopyPair&) = delete;
    CopyPair& operator=(const CopyPair&) = delete;
    ~CopyPair();

    void copy() const noexcept;

private:
    size_t bytes_;
    void* from_;
    void* to_;
};

}  // namespace benchmark_floor
