"""Changes Slang's SPIR-V so that it matches the source.

- Slang names the structs of buffers after their layout (``P_std430``, ``SLANG_ParameterGroup_C_std140``), and
  the variable of a ``cbuffer C`` like its block. They get the source's names; the variable of a cbuffer gets
  none, since the source names its members only, as an unnamed block of GLSL does.
- The source's language is written as HLSL, because every validator knows its number; Slang has a newer one.
  Both mean the same to
  reflection: matrices have rows first.
- Constant buffers of HLSL are packed by HLSL's rule, which lets a member begin in the last, unfilled 16 bytes
  of an array, a matrix or a struct before it. Vulkan forbids that, so such a member begins at the next
  multiple of 16, as it does with DXC and glslang.
- ``mad`` of integers becomes an operation on floats, which is no SPIR-V: it is a multiplication and an
  addition.
"""

from __future__ import annotations

import array
import re

from .spirv_words import (
    CONSTANT,
    DECORATE,
    EXTENDED,
    FUNCTION,
    MEMBER_DECORATE,
    MEMBER_NAME,
    NAME,
    SOURCE,
    TYPE_ARRAY,
    TYPE_FLOAT,
    TYPE_INT,
    TYPE_MATRIX,
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
_FMA, _IADD, _IMUL = 50, 128, 132
_UNIFORM, _PUSH_CONSTANT = 2, 9
_BINDING, _SET = 33, 34
_ARRAY_STRIDE, _MATRIX_STRIDE, _ROW_MAJOR, _OFFSET = 6, 7, 4, 35
_GROUP = "SLANG_ParameterGroup_"
_LAYOUT = re.compile(r"_(default|natural|std140|std430|scalar|c)(_\d+)?$")
_OF_SLANG = {"globalParams", "entryPointParams"}  # blocks of uniforms that are in none
_ROW = 16  # bytes of HLSL's registers of constants


def tidied(spirv: bytes, language: str) -> bytes:
    """The module with the source's names, and for "hlsl" with constant buffers that Vulkan takes."""
    words = words_of(spirv)
    names: dict[int, str] = {}
    name_places: dict[int, int] = {}
    members: list[tuple[int, int, int, str]] = []  # place, struct, member, name
    types: dict[int, tuple[int, array.array[int]]] = {}
    constants: dict[int, int] = {}
    strides: dict[int, tuple[int, int]] = {}
    decorations: dict[tuple[int, int], dict[int, tuple[int, int]]] = {}  # of members: kind -> (value, place)
    variables: list[tuple[int, int, int]] = []
    out = Rewriter(words)
    for opcode, at, length in instructions(words):
        if opcode == FUNCTION:
            break
        if opcode == SOURCE:
            out.replace(at, array.array("I", [words[at], _HLSL, *words[at + 2 : at + length]]))
        elif opcode == NAME:
            names[words[at + 1]] = text_at(words, at + 2, at + length)
            name_places[words[at + 1]] = at
        elif opcode == MEMBER_NAME:
            members.append((at, words[at + 1], words[at + 2], text_at(words, at + 3, at + length)))
        elif opcode in TYPES:
            types[words[at + 1]] = (opcode, words[at + 2 : at + length])
        elif opcode == CONSTANT:
            constants[words[at + 2]] = words[at + 3]
        elif opcode == VARIABLE:
            variables.append((words[at + 1], words[at + 2], words[at + 3]))
        elif opcode == DECORATE and words[at + 2] == _ARRAY_STRIDE:
            strides[words[at + 1]] = (words[at + 3], at)
        elif opcode == MEMBER_DECORATE:
            value = words[at + 4] if length > 4 else 0
            decorations.setdefault((words[at + 1], words[at + 2]), {})[words[at + 3]] = (value, at)

    _lead_with_uint(words, types, out)
    _multiply_and_add(words, types, out)
    structs = {each for each, (opcode, _) in types.items() if opcode == TYPE_STRUCT}
    laid_out = {struct for struct, _ in decorations if struct in structs}
    for struct in laid_out:
        name = names.get(struct, "")
        shown = name if name.startswith("_Array_") else _LAYOUT.sub("", name.removeprefix(_GROUP))
        if shown != name and struct in name_places:
            out.replace(name_places[struct], encoded(NAME, [struct], shown))
    for at, struct, member, name in members:
        if name == "__member0" and struct in structs:
            inner = types.get(types[struct][1][member], (0, None))[0]
            if inner in (TYPE_ARRAY, TYPE_RUNTIME_ARRAY):
                out.replace(at, encoded(MEMBER_NAME, [struct, member], "data"))
    blocks: list[int] = []
    for pointer, variable, storage in variables:
        opcode, operands = types.get(pointer, (0, array.array("I")))
        if opcode != TYPE_POINTER:
            continue
        struct = operands[1]
        if storage in (_UNIFORM, _PUSH_CONSTANT):
            blocks.append(struct)
        unnamed = names.get(struct, "").startswith(_GROUP) or names.get(variable) in _OF_SLANG
        if unnamed and variable in name_places:
            out.replace(name_places[variable])
    if language == "hlsl":
        packing = _Packing(types, constants, strides, decorations, out)
        for block in blocks:
            packing.size(block, 0)
    return out.result()


def _lead_with_uint(
    words: array.array[int], types: dict[int, tuple[int, array.array[int]]], out: Rewriter
) -> None:
    """Put first, of the variables that Slang makes of one byte-address buffer, the one of uint: it is what
    reflection shows.
    """
    places: dict[tuple[int, int], list[tuple[int, int]]] = {}
    numbers: dict[int, dict[int, int]] = {}
    for opcode, at, length in instructions(words):
        if opcode == FUNCTION:
            break
        if opcode == DECORATE and words[at + 2] in (_BINDING, _SET) and length > 3:
            numbers.setdefault(words[at + 1], {})[words[at + 2]] = words[at + 3]
        elif opcode == VARIABLE and _BINDING in (known := numbers.get(words[at + 2], {})):
            places.setdefault((known.get(_SET, 0), known[_BINDING]), []).append((at, words[at + 1]))

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


def _multiply_and_add(
    words: array.array[int], types: dict[int, tuple[int, array.array[int]]], out: Rewriter
) -> None:
    """Of integers, in place of GLSL's Fma, which takes floats only."""

    def is_integer(kind: int) -> bool:
        opcode, operands = types.get(kind, (0, array.array("I")))
        return opcode == TYPE_INT or (opcode == TYPE_VECTOR and is_integer(operands[0]))

    for opcode, at, length in instructions(words):
        if opcode != EXTENDED or length != 8 or words[at + 4] != _FMA or not is_integer(words[at + 1]):
            continue
        kind, result, (a, b, c) = words[at + 1], words[at + 2], words[at + 5 : at + 8]
        product = out.fresh()
        out.replace(at, encoded(_IMUL, [kind, product, a, b]), encoded(_IADD, [kind, result, product, c]))


class _Packing:
    """Moves members out of the padding of what is before them, from the inside out."""

    def __init__(
        self,
        types: dict[int, tuple[int, array.array[int]]],
        constants: dict[int, int],
        strides: dict[int, tuple[int, int]],
        decorations: dict[tuple[int, int], dict[int, tuple[int, int]]],
        out: Rewriter,
    ) -> None:
        self._types, self._constants, self._strides = types, constants, strides
        self._decorations, self._out = decorations, out
        self._sizes: dict[int, tuple[int, int, bool]] = {}

    def size(self, kind: int, stride: int, row_major: bool = False) -> tuple[int, int, bool]:
        """(bytes with padding at the end, bytes of a scalar, whether it begins a row of 16 bytes) of a type;
        `stride` and
        `row_major` are a matrix's."""
        opcode, operands = self._types.get(kind, (0, array.array("I")))
        if opcode in (TYPE_INT, TYPE_FLOAT):
            return operands[0] // 8, operands[0] // 8, False
        if opcode == TYPE_VECTOR:
            scalar = self.size(operands[0], 0)[1]
            return scalar * operands[1], scalar, False
        if opcode == TYPE_MATRIX:
            rows = self._types[operands[0]][1][1]
            scalar = self.size(operands[0], 0)[1]
            return (rows if row_major else operands[1]) * stride, scalar, True
        if opcode == TYPE_ARRAY:
            inner, scalar, _ = self.size(operands[0], stride, row_major)
            step, place = self._strides.get(kind, (0, -1))
            if place >= 0 and step < inner:
                step = inner
                self._strides[kind] = (step, place)
                self._out.replace(place, encoded(DECORATE, [kind, _ARRAY_STRIDE, step]))
            return step * self._constants.get(operands[1], 0), scalar, True
        if opcode == TYPE_STRUCT:
            if kind not in self._sizes:
                self._sizes[kind] = self._pack(kind, operands)
            return self._sizes[kind]
        return 8, 8, False  # a bool has no place in memory; pointers have 8 bytes

    def _pack(self, struct: int, members: array.array[int]) -> tuple[int, int, bool]:
        listed = []
        for member, kind in enumerate(members):
            known = self._decorations.get((struct, member), {})
            if _OFFSET in known:
                stride = known.get(_MATRIX_STRIDE, (0, 0))[0]
                listed.append((*known[_OFFSET], member, kind, stride, _ROW_MAJOR in known))
        end, widest = 0, 4
        for offset, place, member, kind, stride, row_major in sorted(listed):
            size, scalar, begins_row = self.size(kind, stride, row_major)
            widest = max(widest, scalar)
            if offset < end:
                offset = _up(end, _ROW if begins_row else scalar)
                if offset // _ROW != (offset + size - 1) // _ROW:
                    offset = _up(offset, _ROW)
                self._out.replace(place, encoded(MEMBER_DECORATE, [struct, member, _OFFSET, offset]))
            end = offset + size
        return _up(end, _ROW), widest, True


def _up(value: int, step: int) -> int:
    return -(-value // step) * step
