#include "spirv/interface.hpp"

#include "spirv/constants.hpp"
#include "spirv/module.hpp"

#include <algorithm>
#include <unordered_map>

namespace kp {
namespace {

using spirv::Instruction;
using spirv::Module;

struct Name {
    uint32_t value;
    const char* name;
};

// An input of a compute shader: a 32-bit integer, or a vector of `components` such integers, signed or
// unsigned.
struct BuiltIn {
    uint32_t value;
    const char* name;
    uint32_t components;
};

// All inputs that Vulkan defines for a compute shader.
constexpr BuiltIn built_ins[] = {
    {spv::BuiltInNumWorkgroups, "NumWorkgroups", 3},
    {spv::BuiltInWorkgroupId, "WorkgroupId", 3},
    {spv::BuiltInLocalInvocationId, "LocalInvocationId", 3},
    {spv::BuiltInGlobalInvocationId, "GlobalInvocationId", 3},
    {spv::BuiltInLocalInvocationIndex, "LocalInvocationIndex", 1},
    {spv::BuiltInSubgroupSize, "SubgroupSize", 1},
    {spv::BuiltInNumSubgroups, "NumSubgroups", 1},
    {spv::BuiltInSubgroupId, "SubgroupId", 1},
    {spv::BuiltInSubgroupLocalInvocationId, "SubgroupLocalInvocationId", 1},
    {spv::BuiltInSubgroupEqMask, "SubgroupEqMask", 4},
    {spv::BuiltInSubgroupGeMask, "SubgroupGeMask", 4},
    {spv::BuiltInSubgroupGtMask, "SubgroupGtMask", 4},
    {spv::BuiltInSubgroupLeMask, "SubgroupLeMask", 4},
    {spv::BuiltInSubgroupLtMask, "SubgroupLtMask", 4},
    {spv::BuiltInDeviceIndex, "DeviceIndex", 1},
};

// Storage classes that module-scope variables of a compute shader may have, besides Input.
constexpr uint32_t classes[] = {
    spv::StorageClassUniformConstant, spv::StorageClassUniform,      spv::StorageClassWorkgroup,
    spv::StorageClassPrivate,         spv::StorageClassPushConstant, spv::StorageClassStorageBuffer,
};

constexpr Name class_names[] = {
    {spv::StorageClassInput, "Input"},
    {spv::StorageClassOutput, "Output"},
    {spv::StorageClassCrossWorkgroup, "CrossWorkgroup"},
    {spv::StorageClassFunction, "Function"},
    {spv::StorageClassGeneric, "Generic"},
    {spv::StorageClassAtomicCounter, "AtomicCounter"},
    {spv::StorageClassImage, "Image"},
    {spv::StorageClassPhysicalStorageBuffer, "PhysicalStorageBuffer"},
};

// Built-ins of other stages, for messages.
constexpr Name other_built_ins[] = {
    {0, "Position"},       {1, "PointSize"},         {3, "ClipDistance"},    {4, "CullDistance"},
    {5, "VertexId"},       {6, "InstanceId"},        {7, "PrimitiveId"},     {8, "InvocationId"},
    {9, "Layer"},          {10, "ViewportIndex"},    {15, "FragCoord"},      {16, "PointCoord"},
    {17, "FrontFacing"},   {18, "SampleId"},         {19, "SamplePosition"}, {20, "SampleMask"},
    {22, "FragDepth"},     {23, "HelperInvocation"}, {25, "WorkgroupSize"},  {42, "VertexIndex"},
    {43, "InstanceIndex"}, {4424, "BaseVertex"},     {4425, "BaseInstance"}, {4426, "DrawIndex"},
    {4440, "ViewIndex"},
};

template <size_t count>
std::string name_in(const Name (&names)[count], uint32_t value) {
    for (const Name& each : names)
        if (each.value == value) return each.name;
    return "number " + std::to_string(value);
}

std::string described(const Module& module, Instruction variable) {
    const uint32_t id = variable[2];
    const std::string& name = module.name(id);
    return name.empty() ? "The variable " + std::to_string(id) : "The variable '" + name + "'";
}

// True if the variable holds a 32-bit integer, or a vector of `components` such integers.
bool holds_integers(const Module& module, Instruction variable, uint32_t components) {
    const Instruction pointer = module.find(variable[1]);
    if (pointer.op() != spv::OpTypePointer) return false;
    Instruction type = module.find(pointer[3]);
    if (components > 1) {
        if (type.op() != spv::OpTypeVector || type[3] != components) return false;
        type = module.find(type[2]);
    }
    return type.op() == spv::OpTypeInt && type[2] == 32;
}

// The reason why the variable is invalid; "" if it is valid.
std::string problem_of(const Module& module, Instruction variable) {
    const uint32_t id = variable[2];
    const uint32_t storage = variable[3];
    const auto built_in = module.decoration(id, spv::DecorationBuiltIn);
    const bool allowed = std::find(std::begin(classes), std::end(classes), storage) != std::end(classes);
    if (allowed && !built_in) return "";
    const std::string what = described(module, variable);
    if (allowed)
        return what + " has the decoration BuiltIn, and its storage class is not Input: " +
               "declare it as an Input, or remove the decoration";
    if (storage == spv::StorageClassOutput)
        return what + " is an Output, and a compute shader has none: write to a storage buffer or image";
    if (storage != spv::StorageClassInput)
        return what + " has the storage class " + name_in(class_names, storage) +
               ", in which a compute shader has no variables: use StorageBuffer, Uniform, UniformConstant, "
               "PushConstant, Workgroup or Private";
    if (!built_in)
        return what +
               " is an Input without the decoration BuiltIn, and a compute shader has no other inputs: "
               "read the value from a buffer or a push constant";
    const auto known = std::find_if(std::begin(built_ins), std::end(built_ins),
                                    [&](const BuiltIn& each) { return each.value == *built_in; });
    if (known == std::end(built_ins))
        return what + " is the built-in " + name_in(other_built_ins, *built_in) +
               ", which is no input of a compute shader";
    if (!holds_integers(module, variable, known->components))
        return what + " is the built-in " + known->name + " and has another type: declare it as " +
               (known->components == 1
                    ? "one 32-bit integer"
                    : "a vector of " + std::to_string(known->components) + " 32-bit integers");
    return "";
}

// Sizes of types. Each type is measured once: a struct may hold another struct twice, which holds a third one
// twice, and so on.
class Sizes {
public:
    Sizes(const Module& module, std::span<const SpecValue> specialization)
        : module_(module), constants_(module, specialization) {}

    uint64_t of(uint32_t type, uint32_t depth = 0) {
        if (const auto known = sizes_.find(type); known != sizes_.end()) return known->second;
        const uint64_t size = depth > 64 ? 0 : found(module_.find(type), depth + 1);
        sizes_.emplace(type, size);
        return size;
    }

private:
    static constexpr uint64_t most = uint64_t{1} << 40;

    uint64_t found(Instruction type, uint32_t depth) {
        switch (type.op()) {
        case spv::OpTypeInt:
        case spv::OpTypeFloat: return std::max(type[2] / 8, 1u);
        case spv::OpTypeVector:
        case spv::OpTypeMatrix: return times(of(type[2], depth), type[3]);
        case spv::OpTypeArray: return times(of(type[2], depth), constants_.integer(type[3]).value_or(1));
        case spv::OpTypeStruct: {
            uint64_t size = 0;
            for (uint32_t i = 2; i < type.size(); ++i) size = std::min(size + of(type[i], depth), most);
            return size;
        }
        default: return 4;
        }
    }

    static uint64_t times(uint64_t size, uint64_t count) {
        return size != 0 && count > most / size ? most : std::min(size * count, most);
    }

    const Module& module_;
    spirv::Constants constants_;
    std::unordered_map<uint32_t, uint64_t> sizes_;
};

}  // namespace

uint64_t private_bytes(std::span<const uint32_t> words, std::span<const SpecValue> specialization) {
    const Module module(words);
    Sizes sizes(module, specialization);
    uint64_t total = 0;
    const auto count = [&](Instruction variable) {
        if (variable.op() != spv::OpVariable) return;
        if (variable[3] != spv::StorageClassPrivate && variable[3] != spv::StorageClassFunction) return;
        const Instruction pointer = module.find(variable[1]);
        if (pointer.op() == spv::OpTypePointer) total += sizes.of(pointer[3]);
    };
    for (const Instruction global : module.globals) count(global);
    for (const auto& function : module.functions())
        for (const Instruction instruction : function.body) count(instruction);
    return total;
}

std::string empty_array(std::span<const uint32_t> words, std::span<const SpecValue> specialization) {
    const Module module(words);
    const spirv::Constants constants(module, specialization);
    const auto name_of_array = [&](uint32_t type) -> std::string {
        const auto named = [&](Instruction variable) -> std::string {
            if (variable.op() != spv::OpVariable) return "";
            const Instruction pointer = module.find(variable[1]);
            if (pointer.op() != spv::OpTypePointer || pointer[3] != type) return "";
            return module.name(variable[2]);
        };
        for (const Instruction global : module.globals)
            if (std::string name = named(global); !name.empty()) return name;
        for (const auto& function : module.functions())
            for (const Instruction instruction : function.body)
                if (std::string name = named(instruction); !name.empty()) return name;
        return "";
    };
    for (const Instruction type : module.globals) {
        if (type.op() != spv::OpTypeArray) continue;
        const spirv::ConstantValue* length = constants.find(type[3]);
        if (!length || length->type.width == 0 || length->type.width > 64) continue;
        const uint32_t unused = 64 - length->type.width;
        const auto value = static_cast<int64_t>(length->bits[0] << unused) >> unused;
        const bool negative = length->type.kind == spirv::NumericType::Kind::signed_int && value < 0;
        if (length->bits[0] != 0 && !negative) continue;
        const std::string name = name_of_array(type.result());
        return "The shader's array " + (name.empty() ? "" : "'" + name + "' ") + "has the length " +
               std::to_string(value) +
               " with these specialization constants, and an array has at least one element: give other "
               "constants, or declare its length as max(..., 1)";
    }
    return "";
}

std::string interface_problem(std::span<const uint32_t> words, const std::string& entry) {
    const Module module(words);
    const spirv::EntryPoint* point = nullptr;
    bool others = false;  // stages that may have other variables
    for (const auto& each : module.entry_points) {
        if (each.model != spv::ExecutionModelGLCompute)
            others = true;
        else if (each.name == entry)
            point = &each;
    }
    if (!point) return "";
    for (const Instruction global : module.globals) {
        if (global.op() != spv::OpVariable) continue;
        const auto& listed = point->interface;
        if (others && std::find(listed.begin(), listed.end(), global[2]) == listed.end()) continue;
        if (std::string problem = problem_of(module, global); !problem.empty()) return problem;
    }
    return "";
}

}  // namespace kp
