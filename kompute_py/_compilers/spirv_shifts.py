"""Shifts of HLSL and Slang: their amounts count modulo the number of bits. SPIR-V leaves an amount beyond
them undefined: optimizers fold
it to 0, and devices differ."""

from __future__ import annotations

import array

from .spirv_words import (
    CONSTANT,
    FUNCTION,
    TYPE_INT,
    TYPE_VECTOR,
    TYPES,
    Rewriter,
    encoded,
    instructions,
    words_of,
)

_SHIFTS = (194, 195, 196)  # OpShiftRightLogical, OpShiftRightArithmetic, OpShiftLeftLogical
_SPEC_CONSTANT_OP, _AND = 52, 199
_CONSTANTS = range(41, 53)  # OpConstantTrue to OpSpecConstantOp
_COMPOSITE = 44
_UNDEF = 1


def masked(spirv: bytes) -> bytes:
    """The module with each amount of a shift masked, unless it is a constant that is small enough."""
    words = words_of(spirv)
    places = [
        (opcode, at)
        for opcode, at, length in instructions(words)
        if opcode in _SHIFTS or (opcode == _SPEC_CONSTANT_OP and length == 6 and words[at + 3] in _SHIFTS)
    ]
    if not places:
        return spirv
    types: dict[int, tuple[int, array.array[int]]] = {}
    kind_of: dict[int, int] = {}
    numbers: dict[int, list[int]] = {}
    first_function = 0
    for opcode, at, length in instructions(words):
        if opcode in TYPES:
            types[words[at + 1]] = (opcode, words[at + 2 : at + length])
        elif opcode == FUNCTION and not first_function:
            first_function = at
        elif (
            length > 2
            and (first_function or opcode in _CONSTANTS or opcode == _UNDEF)
            and words[at + 1] in types
        ):
            kind_of[words[at + 2]] = words[at + 1]
            if opcode == CONSTANT:
                wide = length > 4 and words[at + 4] != 0
                numbers[words[at + 2]] = [1 << 32 if wide else words[at + 3]]
            elif opcode == _COMPOSITE:
                parts = words[at + 3 : at + length]
                if all(part in numbers for part in parts):
                    numbers[words[at + 2]] = [numbers[part][0] for part in parts]

    def scalar(kind: int) -> tuple[int, int, int]:
        """(type of a number, its bits, how many a vector has or 1)."""
        opcode, operands = types[kind]
        if opcode == TYPE_VECTOR:
            number, bits, _ = scalar(operands[0])
            return number, bits, operands[1]
        return kind, operands[0] if opcode == TYPE_INT else 32, 1

    out = Rewriter(words)
    made: dict[tuple[int, int], int] = {}
    added = array.array("I")
    early: dict[tuple[int, int], int] = {}

    def mask(kind: int, bits: int, known: dict[tuple[int, int], int], into: array.array[int]) -> int:
        if (kind, bits) in known:
            return known[kind, bits]
        number, own, count = scalar(kind)
        if count > 1:
            part = mask(number, bits, known, into)
            result = out.fresh()
            into.extend(encoded(_COMPOSITE, [kind, result, *[part] * count]))
        else:
            result = out.fresh()
            into.extend(encoded(CONSTANT, [kind, result, bits - 1] + [0] * (own > 32)))
        known[kind, bits] = result
        return result

    for opcode, at in places:
        base_at = at + (4 if opcode == _SPEC_CONSTANT_OP else 3)
        amount = words[base_at + 1]
        bits = scalar(words[at + 1])[1]
        if amount not in kind_of or all(each < bits for each in numbers.get(amount, [bits])):
            continue
        kind = kind_of[amount]
        result = out.fresh()
        shift = words[at : at + (words[at] >> 16)]
        shift[base_at + 1 - at] = result
        if opcode == _SPEC_CONSTANT_OP:
            before = array.array("I")
            low = mask(kind, bits, early, before)
            out.replace(at, before, encoded(_SPEC_CONSTANT_OP, [kind, result, _AND, amount, low]), shift)
        else:
            low = mask(kind, bits, made, added)
            out.replace(at, encoded(_AND, [kind, result, amount, low]), shift)
    if added:
        begin = words[first_function : first_function + (words[first_function] >> 16)]
        out.replace(first_function, added, begin)
    return out.result()
