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
"""

from __future__ import annotations

import array
import re

from .spirv_words import (
    CAPABILITY,
    DECORATE,
    ENTRY_POINT,
    EXTENSION,
    FUNCTION,
    MEMBER_DECORATE,
    MEMBER_NAME,
    NAME,
    SOURCE,
    TYPE_ARRAY,
    TYPE_INT,
    TYPE_POINTER,
    TYPE_RUNTIME_ARRAY,
    TYPE_STRUCT,
    TYPE_VECTOR,
    TYPES,
    VARIABLE,
    Rewriter,
    encoded,
    instructions,
    text_at,
    words_of,
)

_HLSL = 5
_WIDENS = _UNSIGNED, _SIGNED = 113, 114  # OpUConvert, OpSConvert
_TO_FLOAT = {111: _SIGNED, 112: _UNSIGNED}  # OpConvertSToF, OpConvertUToF
_UNIFORM = 2
_PARTITIONED = 5297  # GroupNonUniformPartitionedNV
_PARTITIONS = "SPV_NV_shader_subgroup_partitioned"
_PARTITION = 5296  # OpGroupNonUniformPartitionNV
_OVER_GROUPS = range(349, 365)  # OpGroupNonUniformIAdd to LogicalXor; those over partitions from operation 6
_BINDING, _SET = 33, 34
_GROUP = "SLANG_ParameterGroup_"
_LAYOUT = re.compile(r"_(default|natural|std140|std430|scalar|c)(_\d+)?$")
_KIND = re.compile(r"^type\.((ConstantBuffer|TextureBuffer|PushConstant)\.)?")
_GLOBALS = "GlobalParams"
_OF_COMPILER = {"globalParams", "entryPointParams", "$Globals"}  # blocks of uniforms that are in none


def tidied(spirv: bytes) -> bytes:
    """The module with the source's names."""
    words = words_of(spirv)
    names: dict[int, str] = {}
    places: dict[int, list[int]] = {}  # of what names and decorates an id
    members: list[tuple[int, int, int, str]] = []  # place, struct, member, name
    types: dict[int, tuple[int, array.array[int]]] = {}
    laid_out: set[int] = set()
    variables: list[tuple[int, int, int]] = []
    counters: dict[int, int] = {}  # variable -> place
    entries: list[tuple[int, int, int]] = []  # place, that of the variables, end
    long: set[int] = set()  # types of integers of 64 bits
    widened: dict[tuple[int, int], int] = {}  # how, the result, the integer
    inside = False
    partitioned: list[int] = []  # places of the capability and its extension
    out = Rewriter(words)
    for opcode, at, length in instructions(words):
        inside = inside or opcode == FUNCTION
        if inside:
            if opcode == _PARTITION or (opcode in _OVER_GROUPS and words[at + 4] >= 6):
                partitioned = []
            if counters:
                for each in counters.keys() & words[at + 1 : at + length]:
                    del counters[each]
            if opcode in _WIDENS and words[at + 1] in long:
                widened[opcode, words[at + 2]] = words[at + 3]
            elif opcode in _TO_FLOAT and (of := widened.get((_TO_FLOAT[opcode], words[at + 3]))):
                out.replace(at, array.array("I", [*words[at : at + 3], of]))
        elif (opcode == CAPABILITY and words[at + 1] == _PARTITIONED) or (
            opcode == EXTENSION and text_at(words, at + 1, at + length) == _PARTITIONS
        ):
            partitioned.append(at)
        elif opcode == ENTRY_POINT:
            entries.append(
                (at, at + 3 + len(text_at(words, at + 3, at + length).encode()) // 4 + 1, at + length)
            )
        elif opcode == SOURCE:
            out.replace(at, array.array("I", [words[at], _HLSL, *words[at + 2 : at + length]]))
        elif opcode == NAME:
            names[words[at + 1]] = text_at(words, at + 2, at + length)
            places.setdefault(words[at + 1], []).append(at)
        elif opcode == MEMBER_NAME:
            members.append((at, words[at + 1], words[at + 2], text_at(words, at + 3, at + length)))
        elif opcode in TYPES:
            types[words[at + 1]] = (opcode, words[at + 2 : at + length])
            if (opcode == TYPE_INT and words[at + 2] == 64) or (
                opcode == TYPE_VECTOR and words[at + 2] in long
            ):
                long.add(words[at + 1])
        elif opcode == VARIABLE:
            variables.append((words[at + 1], words[at + 2], words[at + 3]))
            if names.get(words[at + 2], "").startswith("counter.var."):
                counters[words[at + 2]] = at
        elif opcode == DECORATE:
            places.setdefault(words[at + 1], []).append(at)
        elif opcode == MEMBER_DECORATE:
            laid_out.add(words[at + 1])

    _lead_with_uint(words, types, out)
    for at in partitioned:
        out.replace(at)
    for counter, place in counters.items():
        for at in (place, *places[counter]):
            out.replace(at)
    for at, first, end in entries if counters else ():
        listed = array.array("I", (each for each in words[first:end] if each not in counters))
        head = words[at:first]
        head[0] = ENTRY_POINT | (len(head) + len(listed)) << 16
        out.replace(at, head + listed)
    structs = {each for each, (opcode, _) in types.items() if opcode == TYPE_STRUCT}
    for struct in laid_out & structs:
        name = names.get(struct, "")
        if name.startswith("_Array_"):
            continue
        shown = _LAYOUT.sub("", name.removeprefix(_GROUP))
        if name.startswith("type."):
            shown = _GLOBALS if name == "type.$Globals" else _KIND.sub("", name)
        if shown != name:
            out.replace(places[struct][0], encoded(NAME, [struct], shown))
    for at, struct, member, name in members:
        if name == "__member0" and struct in structs:
            inner = types.get(types[struct][1][member], (0, None))[0]
            if inner in (TYPE_ARRAY, TYPE_RUNTIME_ARRAY):
                out.replace(at, encoded(MEMBER_NAME, [struct, member], "data"))
    for pointer, variable, storage in variables:
        opcode, operands = types.get(pointer, (0, array.array("I")))
        if opcode != TYPE_POINTER or variable not in names:
            continue
        block = names.get(operands[1], "")
        if (
            block.startswith(_GROUP)
            or names[variable] in _OF_COMPILER
            or (storage == _UNIFORM and block == f"type.{names[variable]}")
        ):
            out.replace(places[variable][0])
    return out.result()


# The registers of each letter are shifted by this to tell them apart.
LETTERS = {"t": 1 << 16, "u": 2 << 16, "b": 3 << 16, "s": 4 << 16}


def shared_bindings(spirv: bytes) -> list[str]:
    """A sentence for each pair of variables that have one binding, so the same memory. A byte-address buffer
    that is read as several types is several variables of one name.
    """
    words = words_of(spirv)
    names: dict[int, str] = {}
    seen: dict[tuple[int, int], str] = {}
    for opcode, at, length in instructions(words):
        if opcode == FUNCTION:
            break
        if opcode == NAME:
            names[words[at + 1]] = text_at(words, at + 2, at + length)
    found = []
    for variable, (place, at) in _bindings(words).items():
        number, name = words[at + 3], names.get(variable, str(variable))
        first = seen.setdefault((place, number), name)
        if first != name:
            found.append(
                f"'{first}' and '{name}' are both binding {number}, so the same memory; give one another "
                "number"
            )
    return found


def set_apart(spirv: bytes) -> bytes:
    """The module with other numbers for registers that are shifted by `LETTERS`. In each set those of t keep
    theirs if no variable without a register has one of them, else they follow after the largest number so
    far; then those of u follow, then those of b, then those of s.
    """
    words = words_of(spirv)
    listed = sorted(_bindings(words).values(), key=lambda each: words[each[1] + 3])
    first: dict[tuple[int, int], int] = {}  # set and letter -> the number of its register 0
    free: dict[int, int] = {}
    taken = {(place, words[at + 3] & 0xFFFF) for place, at in listed if words[at + 3] >> 16 == 0}
    kept = {place for place, at in listed if words[at + 3] >> 16 == 1}
    kept -= {place for place, at in listed if (place, words[at + 3] - (1 << 16)) in taken}
    for place, at in listed:
        letter, register = divmod(words[at + 3], 1 << 16)
        counts = letter > 1 or (letter == 1 and place not in kept)
        base = first.setdefault((place, letter), free.get(place, 0) if counts else 0)
        words[at + 3] = base + register
        free[place] = max(free.get(place, 0), base + register + 1)
    return words.tobytes()


def _bindings(words: array.array[int]) -> dict[int, tuple[int, int]]:
    """The set of each variable with a binding, and the place of the decoration with its number."""
    sets: dict[int, int] = {}
    places: dict[int, int] = {}
    for opcode, at, _ in instructions(words):
        if opcode == FUNCTION:
            break
        if opcode == DECORATE and words[at + 2] == _SET:
            sets[words[at + 1]] = words[at + 3]
        elif opcode == DECORATE and words[at + 2] == _BINDING:
            places[words[at + 1]] = at
    return {variable: (sets.get(variable, 0), at) for variable, at in places.items()}


def _lead_with_uint(
    words: array.array[int], types: dict[int, tuple[int, array.array[int]]], out: Rewriter
) -> None:
    """Put first, of the variables that Slang makes of one byte-address buffer, the one of uint: it is what
    reflection shows.
    """
    places: dict[tuple[int, int], list[tuple[int, int]]] = {}
    bound = _bindings(words)
    for opcode, at, _ in instructions(words):
        if opcode == VARIABLE and (of := bound.get(words[at + 2])):
            places.setdefault((of[0], words[of[1] + 3]), []).append((at, words[at + 1]))

    def is_uint(pointer: int) -> bool:
        kind = pointer
        for _ in range(4):  # pointer, struct, array, scalar
            opcode, operands = types.get(kind, (0, array.array("I")))
            if opcode == TYPE_INT:
                return list(operands) == [32, 0]
            if not operands:
                return False
            kind = operands[1] if opcode == TYPE_POINTER else operands[0]
        return False

    for variables in places.values():
        first = next((i for i, (_, pointer) in enumerate(variables) if is_uint(pointer)), 0)
        if first == 0:
            continue
        ordered = [variables[first], *variables[:first], *variables[first + 1 :]]
        for at, _ in variables[:-1]:
            out.replace(at)
        last = variables[-1][0]
        out.replace(last, *(words[at : at + (words[at] >> 16)] for at, _ in ordered))
