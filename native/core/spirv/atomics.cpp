#include "spirv/atomics.hpp"

#include <algorithm>

namespace kp::spirv {
namespace {

// The end of the feature's name for an instruction's operation on floats: "s" for plain loads, stores and
// exchanges; null if the instruction is not an atomic that floats support.
const char* float_operation(uint32_t op) {
    switch (op) {
    case spv::OpAtomicLoad:
    case spv::OpAtomicStore:
    case spv::OpAtomicExchange: return "s";
    case spv::OpAtomicFAddEXT: return "Add";
    case spv::OpAtomicFMinEXT:
    case spv::OpAtomicFMaxEXT: return "MinMax";
    default: return nullptr;
    }
}

bool is_atomic(uint32_t op) {
    return (op >= spv::OpAtomicLoad && op <= spv::OpAtomicXor) || float_operation(op) != nullptr;
}

const char* place_of(uint32_t storage_class) {
    switch (storage_class) {
    case spv::StorageClassUniform:
    case spv::StorageClassStorageBuffer:
    case spv::StorageClassPhysicalStorageBuffer: return "Buffer";
    case spv::StorageClassWorkgroup: return "Shared";
    case spv::StorageClassImage: return "Image";
    default: return nullptr;  // invalid for atomics, or private memory
    }
}

// "" if every device supports it.
std::string feature_of(const Module& module, Instruction instruction) {
    const bool stores = instruction.op() == spv::OpAtomicStore;
    const auto storage = module.storage_class(module.type_of(instruction[stores ? 1 : 3]));
    const char* place = storage ? place_of(*storage) : nullptr;
    const Instruction type = module.find(stores ? module.type_of(instruction[4]) : instruction[1]);
    if (!place) return "";
    const std::string start = std::string("shader") + place;
    if (type.op() == spv::OpTypeInt) return type[2] == 64 ? start + "Int64Atomics" : "";
    const char* operation = float_operation(instruction.op());
    if (type.op() != spv::OpTypeFloat || !operation) return "";
    return start + "Float" + std::to_string(type[2]) + "Atomic" + operation;
}

}  // namespace

std::vector<std::string> atomic_features(const Module& module) {
    std::vector<std::string> features;
    for (const Function& function : module.functions())
        for (const Instruction instruction : function.body) {
            if (!is_atomic(instruction.op())) continue;
            std::string feature = feature_of(module, instruction);
            if (!feature.empty() && std::find(features.begin(), features.end(), feature) == features.end())
                features.push_back(std::move(feature));
        }
    return features;
}

}  // namespace kp::spirv
