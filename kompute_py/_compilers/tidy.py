"""Changes the SPIR-V of Slang and DXC so that it has the source's names.

- Slang names the structs of buffers after their layout (``P_std430``, ``SLANG_ParameterGroup_C_std140``), DXC
  after their kind (``type.ConstantBuffer.P``), and both name the variable of a ``cbuffer C`` like its block.
  They get the source's names; the variable of a cbuffer gets none, since the source names its members only,
  as an unnamed block of GLSL does.
- The source's language is written as HLSL, because every validator knows its number; Slang has a newer one.
  Both mean the same to reflection: matrices have rows first.
- DXC adds a counter to each buffer that could have one; those that no code uses go.
- DXC widens an int before it makes a double of it; the double is made of the int, since Mesa's lavapipe
  compares that of the widened one with 0 wrongly.
- DXC 1.8 declares NVIDIA's partitioned subgroups for each sum over a wave; without their use that goes.
- Slang describes an ``inout`` parameter and a buffer that is one by pointers to their types, which validators
  before 2025 know for numbers only: debuggers see the type itself. A struct that holds pointers to itself is
  described without them, since their members follow it.
"""

from __future__ import annotations

import re

from .spirv_words import (
    CAPABILITY,
    ENTRY_POINT,
    EXTENDED,
    EXTENSION,
    IMPORT,
    MEMBER_DECORATE,
    MEMBER_NAME,
    PASSES,
    SOURCE,
    TYPE_ARRAY,
    TYPE_RUNTIME_ARRAY,
    Module,
    encoded,
)

_HLSL = 5
_WIDENS = _UNSIGNED, _SIGNED = 113, 114  # OpUConvert, OpSConvert
_TO_FLOAT = {111: _SIGNED, 112: _UNSIGNED}  # OpConvertSToF, OpConvertUToF
_USE_POINTERS = (*PASSES, 62, 65, 66)  # stores and access chains
_UNIFORM = 2
_PARTITIONED = 5297  # GroupNonUniformPartitionedNV
_PARTITIONS = "SPV_NV_shader_subgroup_partitioned"
_PARTITION = 5296  # OpGroupNonUniformPartitionNV
_OVER_GROUPS = range(349, 365)  # OpGroupNonUniformIAdd to LogicalXor; those over partitions from operation 6
_FORWARD = 4433  # OpExtInstWithForwardRefsKHR
_FORWARDS = "SPV_KHR_relaxed_extended_instruction"
_DEBUG_INFO = "NonSemantic.Shader.DebugInfo.100"
_DEBUG_BASIC, _DEBUG_POINTER = 2, 3  # its instructions
_GROUP = "SLANG_ParameterGroup_"
_LAYOUT = re.compile(r"_(default|natural|std140|std430|scalar|c)(_\d+)?$")
_KIND = re.compile(r"^type\.((ConstantBuffer|TextureBuffer|PushConstant)\.)?")
_GLOBALS = "GlobalParams"
_OF_COMPILER = {"globalParams", "entryPointParams", "$Globals"}  # blocks of uniforms that are in none


def tidy(module: Module) -> None:
    """Gives the module the source's names."""
    words, names = module.words, module.names
    counters = {each for each, _ in module.variables() if names.get(each, "").startswith("counter.var.")}
    _describe_types(module)
    widened: dict[tuple[int, int], int] = {}  # how, the result -> the integer
    partitioned = False
    for opcode, at, length in module.body:
        if opcode in _USE_POINTERS:
            counters.difference_update(words[at + 1 : at + length])
        if opcode == _PARTITION or (opcode in _OVER_GROUPS and words[at + 4] >= 6):
            partitioned = True
        elif opcode in _WIDENS and module.ints.get(words[at + 1], (0,))[0] == 64:
            widened[opcode, words[at + 2]] = words[at + 3]
        elif opcode in _TO_FLOAT:
            words[at + 3] = widened.get((_TO_FLOAT[opcode], words[at + 3]), words[at + 3])
    for counter in counters:
        for at in (module.places.pop(counter), *module.annotations[counter]):
            module.replace(at)
    laid_out: set[int] = set()
    for opcode, at, length in module.head:
        if opcode == SOURCE:
            words[at + 1] = _HLSL
        elif opcode == ENTRY_POINT and counters:
            first = at + 3 + len(module.text(at + 3, at + length).encode()) // 4 + 1
            listed = [each for each in words[first : at + length] if each not in counters]
            module.replace(at, encoded(ENTRY_POINT, [*words[at + 1 : first], *listed]))
        elif opcode == MEMBER_DECORATE:
            laid_out.add(words[at + 1])
        elif opcode == MEMBER_NAME and module.text(at + 3, at + length) == "__member0":
            struct, member = words[at + 1], words[at + 2]
            if module.kind(words[module.places[struct] + 2 + member]) in (TYPE_ARRAY, TYPE_RUNTIME_ARRAY):
                module.replace(at, encoded(MEMBER_NAME, [struct, member], "data"))
        elif opcode == EXTENSION:
            if module.text(at + 1, at + length) in (_FORWARDS, *([] if partitioned else [_PARTITIONS])):
                module.replace(at)
        elif opcode == CAPABILITY and words[at + 1] == _PARTITIONED and not partitioned:
            module.replace(at)
    for struct in laid_out:
        name = names.get(struct, "")
        shown = _LAYOUT.sub("", name.removeprefix(_GROUP))
        if name.startswith("type."):
            shown = _GLOBALS if name == "type.$Globals" else _KIND.sub("", name)
        if shown != name and not name.startswith("_Array_"):
            module.rename(struct, shown)
    for variable, at in module.variables():
        own, block = names.get(variable), names.get(module.inner(words[at + 1]), "")
        if own is not None and (
            block.startswith(_GROUP)
            or own in _OF_COMPILER
            or (words[at + 3] == _UNIFORM and block == f"type.{own}")
        ):
            module.replace(module.annotations[variable][0])


def _describe_types(module: Module) -> None:
    """Rewrites what debuggers are told of types so that older validators take it."""
    words = module.words
    sets = {
        words[at + 1]
        for opcode, at, length in module.head
        if opcode == IMPORT and module.text(at + 2, at + length) == _DEBUG_INFO
    }
    told = [each for each in module.head if each[0] in (EXTENDED, _FORWARD) and words[each[1] + 3] in sets]
    later = {words[at + 2] for _, at, _ in told}
    numbers: set[int] = set()
    meant: dict[int, int] = {}  # pointers -> their types
    for opcode, at, length in told:
        result, kind, first = words[at + 2], words[at + 4], at + 5
        later.discard(result)
        for place in range(first, at + length):
            words[place] = meant.get(words[place], words[place])
        if kind == _DEBUG_BASIC:
            numbers.add(result)
        elif kind == _DEBUG_POINTER and words[first] not in numbers:
            meant[result] = words[first]
            module.replace(at)
        if opcode == _FORWARD:
            known = [each for each in words[first : at + length] if each not in later]
            module.replace(at, encoded(EXTENDED, [*words[at + 1 : first], *known]))


# The registers of each letter are shifted by this to tell them apart.
LETTERS = {"t": 1 << 16, "u": 2 << 16, "b": 3 << 16, "s": 4 << 16}


def shared_bindings(module: Module) -> list[str]:
    """A sentence for each pair of variables that have one binding, so the same memory. A byte-address buffer
    that is read as several types is several variables of one name.
    """
    seen: dict[tuple[int, int], str] = {}
    found = []
    for variable, (place, at) in module.bindings().items():
        number, name = module.words[at], module.names.get(variable, str(variable))
        first = seen.setdefault((place, number), name)
        if first != name:
            found.append(
                f"'{first}' and '{name}' are both binding {number}, so the same memory; give one another "
                "number"
            )
    return found


def set_apart(module: Module) -> None:
    """Gives registers that are shifted by `LETTERS` other numbers. In each set those of t keep theirs if no
    variable without a register has one of them, else they follow after the largest number so far; then those
    of u follow, then those of b, then those of s.
    """
    words = module.words
    listed = sorted(module.bindings().values(), key=lambda each: words[each[1]])
    first: dict[tuple[int, int], int] = {}  # set and letter -> the number of its register 0
    free: dict[int, int] = {}
    taken = {(place, words[at] & 0xFFFF) for place, at in listed if words[at] >> 16 == 0}
    kept = {place for place, at in listed if words[at] >> 16 == 1}
    kept -= {place for place, at in listed if (place, words[at] - (1 << 16)) in taken}
    for place, at in listed:
        letter, register = divmod(words[at], 1 << 16)
        counts = letter > 1 or (letter == 1 and place not in kept)
        base = first.setdefault((place, letter), free.get(place, 0) if counts else 0)
        words[at] = base + register
        free[place] = max(free.get(place, 0), base + register + 1)
