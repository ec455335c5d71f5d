// Opcodes grouped by how their results depend on their operands.
#pragma once

#include "spirv/module.hpp"

#include <cstdint>

#include <spirv/unified1/GLSL.std.450.h>

namespace kp::spirv {

inline bool in(uint32_t op, uint32_t first, uint32_t last) { return op >= first && op <= last; }

inline bool atomic_access(uint32_t op) {
    return in(op, spv::OpAtomicLoad, spv::OpAtomicXor) || op == spv::OpAtomicFAddEXT ||
           op == spv::OpAtomicFMinEXT || op == spv::OpAtomicFMaxEXT;
}

// Leads from a pointer into what it points to.
inline bool is_chain(uint32_t op) { return op == spv::OpAccessChain || op == spv::OpInBoundsAccessChain; }

// The last instruction of a block.
inline bool ends_block(uint32_t op) {
    return in(op, spv::OpBranch, spv::OpUnreachable) || op == spv::OpTerminateInvocation;
}

// Each component of the result depends on the same component of the operands.
inline bool by_component(uint32_t op) {
    return op == spv::OpBitcast || op == spv::OpCopyObject || op == spv::OpCopyLogical ||
           in(op, spv::OpConvertFToU, spv::OpQuantizeToF16) || in(op, spv::OpSNegate, spv::OpFMod) ||
           in(op, spv::OpIsNan, spv::OpSelect) || in(op, spv::OpIEqual, spv::OpFUnordGreaterThanEqual) ||
           in(op, spv::OpShiftRightLogical, spv::OpBitCount) ||
           in(op, spv::OpLogicalEqual, spv::OpLogicalNot);
}

inline bool by_component_of_glsl(uint32_t instruction) {
    return in(instruction, GLSLstd450Round, GLSLstd450Pow) ||
           in(instruction, GLSLstd450Exp, GLSLstd450InverseSqrt) ||
           in(instruction, GLSLstd450FMin, GLSLstd450FMix) ||
           in(instruction, GLSLstd450Step, GLSLstd450Fma) ||
           in(instruction, GLSLstd450FindILsb, GLSLstd450FindUMsb) ||
           in(instruction, GLSLstd450NMin, GLSLstd450NClamp);
}

// Computes a value from values, without other effects.
inline bool only_values(uint32_t op) {
    return op == spv::OpUndef || op == spv::OpLoad ||
           in(op, spv::OpAccessChain, spv::OpInBoundsPtrAccessChain) ||
           in(op, spv::OpVectorExtractDynamic, spv::OpTranspose) ||
           in(op, spv::OpSampledImage, spv::OpImageRead) || in(op, spv::OpImage, spv::OpImageQuerySamples) ||
           in(op, spv::OpConvertFToU, spv::OpQuantizeToF16) || op == spv::OpBitcast ||
           in(op, spv::OpSNegate, spv::OpSMulExtended) || in(op, spv::OpAny, spv::OpSelect) ||
           in(op, spv::OpIEqual, spv::OpFUnordGreaterThanEqual) ||
           in(op, spv::OpShiftRightLogical, spv::OpBitCount) || in(op, spv::OpDPdx, spv::OpFwidthCoarse) ||
           op == spv::OpPhi ||
           in(op, spv::OpImageSparseSampleImplicitLod, spv::OpImageSparseTexelsResident) ||
           op == spv::OpImageSparseRead ||
           in(op, spv::OpGroupNonUniformElect, spv::OpGroupNonUniformQuadSwap) ||
           in(op, spv::OpGroupAll, spv::OpGroupSMax) || in(op, spv::OpCopyLogical, spv::OpPtrDiff) ||
           in(op, spv::OpSDotKHR, spv::OpSUDotAccSatKHR) || op == spv::OpArrayLength ||
           op == newer::untyped_array_length || op == spv::OpImageTexelPointer;
}

// The position of the mask of an image instruction's optional operands, a literal; 0 for other instructions.
inline uint32_t mask_index(uint32_t op) {
    if (op == spv::OpImageWrite) return 4;
    if (in(op, spv::OpImageSampleDrefImplicitLod, spv::OpImageSampleDrefExplicitLod) ||
        in(op, spv::OpImageSampleProjDrefImplicitLod, spv::OpImageSampleProjDrefExplicitLod) ||
        in(op, spv::OpImageGather, spv::OpImageDrefGather))
        return 6;
    return in(op, spv::OpImageSampleImplicitLod, spv::OpImageRead) ? 5 : 0;
}

}  // namespace kp::spirv
