// Reads a SPIR-V module's declarations. Pure.
#pragma once

#include "spirv/shader_info.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace kp {

// Never reads outside `words` and never crashes, for any contents. The module need not have been validated.
// Throws Error(invalid_argument) if the module is too short, has a wrong magic number (the message says if
// the bytes look like text/GLSL, an ELF, byte-swapped words), has truncated instructions or ids out of bound,
// has no compute entry point, or not the named one (lists the existing ones; "main", the default, also means
// a module's only compute entry point, whatever its name).
//
// Reflection is per entry point: only variables reachable from its call tree have access != none. All
// variables of the module's interface that the entry point uses, or that have a set or binding, are listed.
//
// With `specialization`, all facts that constants decide (local size, shared memory, array lengths,
// descriptor counts) are those of a pipeline with these values; SpecConstantInfo::default_bits stays the
// module's.
[[nodiscard]] ShaderInfo reflect(std::span<const uint32_t> words, const std::string& entry = "main",
                                 std::span<const SpecValue> specialization = {});

// The reflection of an optimized shader. Its arguments are those that the source declares, even if the
// optimizer removed the code that uses them. Its behaviour (accesses, atomics, shared memory, capabilities)
// is that of the code that runs.
[[nodiscard]] ShaderInfo as_declared(ShaderInfo declared, const ShaderInfo& runs);

}  // namespace kp
