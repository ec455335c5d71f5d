// A SPIR-V module's declarations, as data: bindings, accesses, constants, sizes, capabilities.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kp {

enum class DescriptorKind : uint8_t {
    storage_buffer,
    uniform_buffer,
    storage_image,
    sampled_image,  // separate texture
    sampler,        // separate sampler
    combined_image_sampler,
    uniform_texel_buffer,
    storage_texel_buffer,
    acceleration_structure,
};

// none: declared but neither read nor written by this entry point's call tree.
enum class Access : uint8_t { none = 0, read = 1, write = 2, read_write = 3 };

enum class ScalarKind : uint8_t { boolean, signed_int, unsigned_int, floating, bfloat16, none };

inline float bfloat16_value(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// A type's layout in memory: a scalar, vector, matrix, array or struct; `offset` is only meaningful for
// members.
struct TypeLayout {
    std::string name;                      // member's name, "" if unknown
    std::string type_name;                 // struct's name, "" otherwise
    ScalarKind scalar = ScalarKind::none;  // element kind; none for structs and unknown types
    uint32_t width = 0;                    // bits of the scalar: 8, 16, 32, 64 (bool: 32)
    uint32_t rows = 1;                     // vector length; rows of a matrix
    uint32_t columns = 1;                  // columns of a matrix, 1 otherwise
    uint32_t matrix_stride = 0;            // bytes, 0 if not a matrix
    bool row_major = false;
    bool hlsl_matrix = false;  // HLSL and Slang name it float2x3: 2 rows, 3 columns
    std::vector<uint32_t>
        array;  // outermost first; 0: run-time length; for a specialization constant: its default
    std::vector<uint32_t> array_strides;  // bytes, one per entry of `array`
    bool physical_pointer = false;        // a 64-bit buffer reference
    std::vector<TypeLayout> members;      // of a struct
    uint64_t offset = 0;                  // bytes from the start of the enclosing block
    uint64_t size = 0;                    // bytes, without trailing padding; a runtime array counts as 0
};

struct BindingInfo {
    uint32_t set = 0;
    uint32_t binding = 0;
    DescriptorKind kind = DescriptorKind::storage_buffer;
    uint32_t count = 1;  // array of descriptors; 0 = runtime-sized array of descriptors
    Access access = Access::none;
    bool used = false;          // the code mentions it; a query of only its length or size is not an access
    std::string instance_name;  // "a" of `buffer A { float x[]; } a;`, "" if none
    std::string block_name;     // "A"
    bool readonly = false;      // decorated NonWritable (on the variable or all members)
    bool writeonly = false;     // decorated NonReadable
    TypeLayout layout;          // of the block, for buffers
    // images
    uint32_t image_dim = 0;  // SpvDim: 0 1D, 1 2D, 2 3D, 3 Cube, 5 Buffer
    bool image_arrayed = false;
    bool image_multisampled = false;
    uint32_t image_format = 0;                   // SpvImageFormat, 0 = unknown
    ScalarKind image_scalar = ScalarKind::none;  // sampled type
    bool atomic = false;                         // atomics use it
};

struct PushConstantInfo {
    uint32_t offset = 0;  // first byte that any member occupies, rounded down to 4
    uint32_t size = 0;    // bytes from `offset` to the end of the last member, rounded up to 4
    std::string instance_name, block_name;
    TypeLayout layout;  // members' offsets count from the start of the push-constant space
};

struct SpecConstantInfo {
    uint32_t id = 0;
    std::string name;
    ScalarKind scalar = ScalarKind::none;
    uint32_t width = 32;        // bits (bool: 32, as VkBool32)
    uint64_t default_bits = 0;  // bit pattern, zero-extended
    std::string conflict;       // differing defaults of its declarations: "16 (TILE) and 1 (the local size)"
};

// A value that a pipeline sets for a specialization constant.
struct SpecValue {
    uint32_t id = 0;    // SpecId
    uint64_t bits = 0;  // bit pattern, zero-extended
};

struct EntryPointInfo {
    std::string name;
    uint32_t execution_model = 0;  // SpvExecutionModel; 5 = GLCompute
};

struct ShaderInfo {
    uint32_t version = 0;  // 0x00010300 for SPIR-V 1.3
    std::string entry;     // the entry point that the rest describes
    std::vector<EntryPointInfo> entry_points;
    std::vector<BindingInfo>
        bindings;  // sorted by (set, binding); aliases merged (access OR-ed, readonly AND-ed)
    std::optional<PushConstantInfo> push_constants;             // merged if several blocks
    std::vector<SpecConstantInfo> spec_constants;               // sorted by id
    std::array<uint32_t, 3> local_size{1, 1, 1};                // with specialization applied
    std::array<std::optional<uint32_t>, 3> local_size_spec_id;  // constant_id that sets it, if any
    std::vector<uint32_t> capabilities;                         // SpvCapability
    std::vector<std::string> extensions;
    std::vector<std::string> atomic_features;  // needed by its atomics, of any function
    uint64_t shared_bytes = 0;                 // Workgroup storage used by the call tree
    bool physical_storage_buffer = false;      // accesses memory through buffer references
    bool physical_storage_writes = false;
};

// SPIR-V's name: "GLCompute", "Vertex".
[[nodiscard]] std::string execution_model_name(uint32_t model);
// Names for messages.
[[nodiscard]] const char* to_string(DescriptorKind kind) noexcept;  // "storage buffer"
[[nodiscard]] const char* to_string(Access access) noexcept;        // "read"
[[nodiscard]] std::string capability_name(uint32_t capability);     // "Int64"

}  // namespace kp
