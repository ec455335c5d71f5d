// The structs of the DLPack protocol, version 1.1, as its header dlpack.h (https://github.com/dmlc/dlpack)
// defines them. This is our own copy, because distributions still ship headers from before version 1.0, which
// lack the versioned struct.
#pragma once

#include <cstdint>

namespace kp::dlpack {

struct Device {
    int32_t type = 0;
    int32_t id = 0;
};
constexpr int32_t cpu = 1;
constexpr int32_t cuda_host = 3;  // pinned memory of the process, addressable by the CPU
constexpr int32_t rocm_host = 11;

struct DataType {
    uint8_t code = 0;
    uint8_t bits = 0;
    uint16_t lanes = 1;
};

struct Tensor {
    void* data = nullptr;
    Device device;
    int32_t ndim = 0;
    DataType dtype;
    int64_t* shape = nullptr;
    int64_t* strides = nullptr;  // in elements; null: dense and row-major
    uint64_t byte_offset = 0;
};

struct Managed {
    Tensor tensor;
    void* context = nullptr;
    void (*deleter)(Managed* self) = nullptr;
};

struct Version {
    uint32_t major = 0;
    uint32_t minor = 0;
};

constexpr uint64_t flag_read_only = 1;
constexpr uint64_t flag_is_copied = 2;

struct ManagedVersioned {
    Version version;
    void* context = nullptr;
    void (*deleter)(ManagedVersioned* self) = nullptr;
    uint64_t flags = 0;
    Tensor tensor;
};

constexpr const char* name = "dltensor";
constexpr const char* used_name = "used_dltensor";
constexpr const char* versioned_name = "dltensor_versioned";
constexpr const char* used_versioned_name = "used_dltensor_versioned";

}  // namespace kp::dlpack
