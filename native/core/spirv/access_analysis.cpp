// Model. Every id gets a set of bits: the uses of the memory that it points to, or of the image that it is.
// An instruction that accesses memory sets bits on its pointer. An instruction that makes one reference from
// another (an access chain, a copy, a phi, an image loaded from its variable) adds an edge from the result to
// its source. Bits flow along edges until nothing changes, so a use of the result is a use of the source.
// Calls are edges too: a callee's uses of a parameter are uses of each call's argument, and a caller's uses
// of a call's result are uses of the ids that the callee returns. Bits are only added and there are five of
// them, so this ends in time linear in the module, even with recursion and loops, and the order of visits
// does not matter.
//
// A reference that leaves this scheme (stored to memory, converted to an integer, passed to an unknown
// opcode) gets the bit `unknown`, which counts as read and written. References to physical memory are plain
// addresses that may come from anywhere, so for those only the storage class in the pointer's type counts.
#include "spirv/access_analysis.hpp"

#include <algorithm>

#include <spirv/unified1/GLSL.std.450.h>

namespace kp::spirv {
namespace {

// Traits of a type.
constexpr uint8_t holds_handle = 1;      // an image, a sampler...: loading it does not access memory yet
constexpr uint8_t holds_pointer = 2;     // a pointer, except to physical memory
constexpr uint8_t physical_pointer = 4;  // itself a pointer to physical memory

// Instructions that only compute values: no operand can be a reference. Their literals must not be taken for
// ids.
bool only_values(uint32_t op) {
    const auto in = [op](uint32_t first, uint32_t last) { return op >= first && op <= last; };
    return op == spv::OpNop || op == spv::OpUndef || op == spv::OpLine || op == spv::OpNoLine ||
           op == spv::OpLabel || in(spv::OpLoopMerge, spv::OpReturn) || op == spv::OpUnreachable ||
           in(spv::OpVectorExtractDynamic, spv::OpVectorShuffle) || op == spv::OpTranspose ||
           in(spv::OpConvertFToU, spv::OpQuantizeToF16) || in(spv::OpSNegate, spv::OpSMulExtended) ||
           (in(spv::OpAny, spv::OpFUnordGreaterThanEqual) && op != spv::OpSelect) ||
           in(spv::OpShiftRightLogical, spv::OpBitCount) || in(spv::OpDPdx, spv::OpFwidthCoarse) ||
           op == spv::OpControlBarrier || op == spv::OpMemoryBarrier ||
           in(spv::OpGroupNonUniformElect, spv::OpGroupNonUniformQuadSwap) ||
           in(spv::OpGroupAll, spv::OpGroupSMax) || in(spv::OpSDotKHR, spv::OpSUDotAccSatKHR) ||
           op == spv::OpTerminateInvocation || op == newer::cooperative_matrix_length ||
           op == newer::cooperative_matrix_mul_add;
}

// Instructions that take references but neither read nor write their targets.
bool only_asks(uint32_t op) {
    switch (op) {
    case spv::OpArrayLength:
    case newer::untyped_array_length:
    case newer::untyped_prefetch:
    case spv::OpImageQueryFormat:
    case spv::OpImageQueryOrder:
    case spv::OpImageQuerySizeLod:
    case spv::OpImageQuerySize:
    case spv::OpImageQueryLod:
    case spv::OpImageQueryLevels:
    case spv::OpImageQuerySamples:
    case spv::OpPtrEqual:
    case spv::OpPtrNotEqual:
    case spv::OpPtrDiff:
    case spv::OpLifetimeStart:
    case spv::OpLifetimeStop: return true;
    default: return false;
    }
}

bool is_atomic(uint32_t op) {
    return (op >= spv::OpAtomicLoad && op <= spv::OpAtomicXor) || op == spv::OpAtomicFlagTestAndSet ||
           op == spv::OpAtomicFlagClear || op == spv::OpAtomicFAddEXT || op == spv::OpAtomicFMinEXT ||
           op == spv::OpAtomicFMaxEXT;
}

}  // namespace

AccessAnalysis::AccessAnalysis(const Module& module, uint32_t entry_function) : module_(module) {
    uses_.resize(module.id_limit());
    physical_capable_ = std::find(module.capabilities.begin(), module.capabilities.end(),
                                  spv::CapabilityPhysicalStorageBufferAddresses) != module.capabilities.end();
    classify_types();
    for (const Function* function : call_tree(module, entry_function)) walk(*function);
    // A variable initialized with another variable's address holds that address from the start.
    for (const Instruction global : module.globals)
        if (global.op() == spv::OpVariable && global.size() > 4) escape(global[4]);
    propagate();
}

uint8_t AccessAnalysis::uses(uint32_t variable) const {
    return variable < uses_.size() ? uses_[variable] : 0;
}

// A type is declared before the types that use it, except for forward-declared pointers
// (OpTypeForwardPointer). Only pointers to physical memory may be forward-declared, and type_traits() queries
// those itself.
void AccessAnalysis::classify_types() {
    type_traits_.resize(module_.id_limit());
    for (const Instruction type : module_.globals) {
        uint8_t traits = 0;
        switch (type.op()) {
        case spv::OpTypeImage:
        case spv::OpTypeSampler:
        case spv::OpTypeSampledImage:
        case spv::OpTypeOpaque:
        case spv::OpTypeAccelerationStructureKHR:
        case spv::OpTypeRayQueryKHR: traits = holds_handle; break;
        case spv::OpTypePointer:
        case newer::type_untyped_pointer:
            traits = type[2] == spv::StorageClassPhysicalStorageBuffer ? physical_pointer : holds_pointer;
            break;
        case spv::OpTypeArray:
        case spv::OpTypeRuntimeArray: traits = type_traits(type[2]) & (holds_handle | holds_pointer); break;
        case spv::OpTypeStruct:
            for (uint32_t i = 2; i < type.size(); ++i)
                traits |= type_traits(type[i]) & (holds_handle | holds_pointer);
            break;
        default: continue;
        }
        type_traits_[type[1]] = traits;
    }
}

uint8_t AccessAnalysis::type_traits(uint32_t type) const {
    return type < type_traits_.size() ? type_traits_[type] : 0;
}

bool AccessAnalysis::is_reference(uint32_t id) const {
    return (type_traits(module_.type_of(id)) & (holds_handle | holds_pointer)) != 0;
}

void AccessAnalysis::walk(const Function& function) {
    for (const Instruction instruction : function.body) visit(function, instruction);
}

void AccessAnalysis::visit(const Function& function, Instruction instruction) {
    const uint32_t op = instruction.op();
    if (only_values(op)) return;
    if (only_asks(op)) {
        for (uint32_t i = 1; i < instruction.size(); ++i)
            if (is_reference(instruction[i])) use(instruction[i], Uses::named);
        return;
    }
    if (is_atomic(op)) return visit_atomic(instruction);
    if (visit_image(instruction)) return;
    switch (op) {
    case spv::OpLoad: load(instruction[3], instruction[1], instruction[2]); return;
    case spv::OpCooperativeMatrixLoadNV:
    case newer::cooperative_matrix_load: use(instruction[3], Uses::read); return;
    case spv::OpStore:
    case spv::OpCooperativeMatrixStoreNV:
    case newer::cooperative_matrix_store: store(instruction[1], instruction[2]); return;
    case spv::OpCopyMemory:
    case spv::OpCopyMemorySized: {
        use(instruction[1], Uses::write);
        use(instruction[2], Uses::read);
        // Copying a variable that holds references makes a second path to their targets.
        const Instruction pointer = module_.find(module_.type_of(instruction[2]));
        if (pointer.op() == spv::OpTypePointer && type_traits(pointer[3]) != 0) escape(instruction[2]);
        return;
    }
    case spv::OpAccessChain:
    case spv::OpInBoundsAccessChain:
    case spv::OpPtrAccessChain:
    case spv::OpInBoundsPtrAccessChain:
    case spv::OpCopyObject:
    case spv::OpCopyLogical:
    case spv::OpCompositeExtract: derive(instruction[2], instruction[3]); return;
    case newer::untyped_access_chain:
    case newer::untyped_in_bounds_access_chain:
    case newer::untyped_ptr_access_chain:
    case newer::untyped_in_bounds_ptr_access_chain: derive(instruction[2], instruction[4]); return;
    case spv::OpCompositeInsert:
        derive(instruction[2], instruction[3]);
        derive(instruction[2], instruction[4]);
        return;
    case spv::OpSelect:
        derive(instruction[2], instruction[4]);
        derive(instruction[2], instruction[5]);
        return;
    case spv::OpCompositeConstruct:
        for (uint32_t i = 3; i < instruction.size(); ++i) derive(instruction[2], instruction[i]);
        return;
    case spv::OpPhi:
        for (uint32_t i = 3; i < instruction.size(); i += 2) derive(instruction[2], instruction[i]);
        return;
    case spv::OpBitcast:
        if (type_traits(instruction[1]) & holds_pointer)
            derive(instruction[2], instruction[3]);
        else
            escape(instruction[3]);
        return;
    case spv::OpConvertPtrToU: escape(instruction[3]); return;
    case spv::OpConvertUToPtr: return;
    case spv::OpVariable:
        if (instruction.size() > 4) escape(instruction[4]);
        return;
    case spv::OpReturnValue: derive(function.id, instruction[1]); return;
    case spv::OpFunctionCall: visit_call(instruction); return;
    case spv::OpExtInst: visit_extended(instruction); return;
    case spv::OpRayQueryInitializeKHR:
        use(instruction[1], Uses::read | Uses::write);
        use(instruction[2], Uses::read);
        return;
    case spv::OpConvertUToAccelerationStructureKHR: physical_ |= Uses::read; return;
    default: escape_operands(instruction, 1); return;
    }
}

void AccessAnalysis::visit_atomic(Instruction instruction) {
    switch (instruction.op()) {
    case spv::OpAtomicLoad: use(instruction[3], Uses::read | Uses::atomic); return;
    case spv::OpAtomicStore:
    case spv::OpAtomicFlagClear: use(instruction[1], Uses::write | Uses::atomic); return;
    default: use(instruction[3], Uses::read | Uses::write | Uses::atomic); return;
    }
}

bool AccessAnalysis::visit_image(Instruction instruction) {
    const uint32_t op = instruction.op();
    if (op == spv::OpImageWrite) {
        use(instruction[1], Uses::write);
    } else if ((op >= spv::OpImageSampleImplicitLod && op <= spv::OpImageRead) ||
               (op >= spv::OpImageSparseSampleImplicitLod && op <= spv::OpImageSparseDrefGather) ||
               op == spv::OpImageSparseRead || op == spv::OpImageSampleFootprintNV) {
        use(instruction[3], Uses::read);
    } else if (op == spv::OpImage) {
        derive(instruction[2], instruction[3]);
    } else if (op == spv::OpSampledImage) {
        derive(instruction[2], instruction[3]);
        derive(instruction[2], instruction[4]);
    } else if (op == spv::OpImageTexelPointer) {
        derive(instruction[2], instruction[3]);
    } else {
        return op == spv::OpImageSparseTexelsResident;
    }
    return true;
}

void AccessAnalysis::visit_call(Instruction instruction) {
    const Function* callee = module_.function(instruction[3]);
    derive(instruction[2], callee->id);
    for (uint32_t i = 0; i < callee->parameters.size(); ++i)
        derive(callee->parameters[i], instruction[4 + i]);
}

void AccessAnalysis::visit_extended(Instruction instruction) {
    const auto found = module_.instruction_sets.find(instruction[3]);
    const std::string set = found == module_.instruction_sets.end() ? "" : found->second;
    if (set.starts_with("NonSemantic.") || set.find("DebugInfo") != std::string::npos) return;
    if (set != "GLSL.std.450") return escape_operands(instruction, 5);
    switch (instruction[4]) {
    case GLSLstd450Modf:
    case GLSLstd450Frexp: use(instruction[6], Uses::write); return;
    case GLSLstd450InterpolateAtCentroid:
    case GLSLstd450InterpolateAtSample:
    case GLSLstd450InterpolateAtOffset: use(instruction[5], Uses::read); return;
    default: return;  // the other instructions of the set take no pointers
    }
}

void AccessAnalysis::load(uint32_t pointer, uint32_t result_type, uint32_t result) {
    // Loading an image from its variable does not read memory; uses of the loaded image count.
    if (type_traits(result_type) & holds_handle)
        derive(result, pointer);
    else
        use(pointer, Uses::read);
}

void AccessAnalysis::store(uint32_t pointer, uint32_t object) {
    use(pointer, Uses::write);
    escape(object);
}

// From here on the reference cannot be tracked. Ids that are not references are ignored.
void AccessAnalysis::escape(uint32_t id) {
    if (is_reference(id)) use(id, Uses::unknown);
}

void AccessAnalysis::escape_operands(Instruction instruction, uint32_t first) {
    for (uint32_t i = first; i < instruction.size(); ++i) {
        const uint8_t traits = type_traits(module_.type_of(instruction[i]));
        if (traits != 0) use(instruction[i], Uses::unknown);
    }
}

void AccessAnalysis::use(uint32_t id, uint8_t bits) {
    if (id >= uses_.size()) {
        module_.check_bound(id);
        // The id has no known definition. The result of an unknown opcode may be a physical address.
        if (physical_capable_) physical_ |= bits;
        return;
    }
    uses_[id] |= bits | Uses::named;
    const uint32_t type = module_.type_of(id);
    if ((type_traits(type) & physical_pointer) || (type == 0 && physical_capable_)) physical_ |= bits;
}

void AccessAnalysis::derive(uint32_t result, uint32_t source) {
    if (result >= uses_.size() || source >= uses_.size())
        return module_.check_bound(std::max(result, source));
    uses_[source] |= Uses::named;
    derived_.emplace_back(result, source);
}

void AccessAnalysis::propagate() {
    std::sort(derived_.begin(), derived_.end());
    std::vector<uint32_t> changed;
    for (const auto& [result, source] : derived_) changed.push_back(result);
    changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
    while (!changed.empty()) {
        const uint32_t result = changed.back();
        changed.pop_back();
        auto edge = std::lower_bound(derived_.begin(), derived_.end(), std::pair(result, 0u));
        for (; edge != derived_.end() && edge->first == result; ++edge) {
            const uint8_t before = uses_[edge->second];
            uses_[edge->second] |= uses_[result];
            if (uses_[edge->second] != before) changed.push_back(edge->second);
        }
    }
}

}  // namespace kp::spirv
