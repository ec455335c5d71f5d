"""Bools in blocks of Slang's SPIR-V: each becomes a uint, as in blocks of GLSL.

A bool has no representation in memory. Slang declares an int instead; for a vector of bools directly in a
buffer it keeps the bools, which SPIR-V does not allow. This file replaces both by uints, with conversions
of what the code reads and writes, so that the same shader in GLSL, HLSL and Slang takes the same arrays.

First the types of all blocks are renewed: a leaf is replaced, an array around it is declared a second time, a
struct changes in place. A struct that is also used without bools is declared a second time too: Slang has one
`RWStructuredBuffer` for buffers of bool and of int. Then a pass over the code follows the types. Pointers to
changed types get other types. Loaded and extracted values are converted to the type that the code expects,
stored and inserted values to the type in the block.

If a module uses such a pointer in a way that this file does not know, the module stays unchanged: its results
are right, but the signature has ints.
"""

from __future__ import annotations

import array

from .slang_reflection import Blocks, Truths
from .spirv_words import (
    CONSTANT,
    DECORATE,
    FUNCTION,
    HEADER,
    MEMBER_DECORATE,
    MEMBER_NAME,
    NAME,
    TYPE_ARRAY,
    TYPE_BOOL,
    TYPE_INT,
    TYPE_MATRIX,
    TYPE_POINTER,
    TYPE_RUNTIME_ARRAY,
    TYPE_STRUCT,
    TYPE_VECTOR,
    TYPES,
    VARIABLE,
    encoded,
    instructions,
    text_at,
    words_of,
)

_TRUE, _FALSE, _COMPOSITE, _NULL, _SPEC_COMPOSITE, _SPEC_OPERATION = 41, 42, 44, 46, 51, 52
_LOAD, _STORE, _CHAIN, _IN_BOUNDS_CHAIN, _ARRAY_LENGTH = 61, 62, 65, 66, 68
_CONSTRUCT, _EXTRACT, _INSERT, _COPY_LOGICAL = 80, 81, 82, 400
_BITCAST, _SELECT, _NOT_EQUAL = 124, 169, 171
_BINDING, _SET = 33, 34
_UNIFORM, _PUSH, _STORAGE = 2, 9, 12  # storage classes
_ARRAYS = (TYPE_ARRAY, TYPE_RUNTIME_ARRAY)
_SEQUENCES = (TYPE_VECTOR, TYPE_MATRIX, *_ARRAYS)
# Instructions whose operands are numbers, not ids, or of another module: OpLine, OpExtInst, OpVectorShuffle,
# OpLoopMerge to OpSwitch.
_OTHERS = (8, 12, 79, *range(246, 252))
_MOST_PARTS = 1 << 16  # values that are converted one by one because an array or a struct is


class _Unknown(Exception):
    """The module does something that is not known here."""


def with_uints(spirv: bytes, blocks: Blocks) -> bytes:
    """The module with uints for the bools of its blocks; `blocks` says which are bools."""
    module = _Module(words_of(spirv))
    try:
        if not module.renew(blocks):
            return spirv
        return module.rewritten()
    except (_Unknown, KeyError):  # KeyError: an id of something that is not a type or a value here
        return spirv


class _Module:
    def __init__(self, words: array.array[int]) -> None:
        self._words = words
        self._bound = words[3]
        self._types: dict[int, tuple[int, list[int]]] = {}
        self._constants: dict[int, int] = {}
        self._kind: dict[int, int] = {}  # value -> its type
        self._globals: dict[int, tuple[int, list[int]]] = {}  # constants: id -> opcode, operands
        self._member_names: dict[int, dict[int, str]] = {}
        self._places: dict[int, dict[int, int]] = {}
        self._variables: list[tuple[int, int, int]] = []  # id, type, storage class
        self._code = len(words)  # where the functions begin
        for opcode, at, length in instructions(words):
            if opcode == FUNCTION:
                self._code = at
                break
            if opcode == MEMBER_NAME:
                named = self._member_names.setdefault(words[at + 1], {})
                named[words[at + 2]] = text_at(words, at + 3, at + length)
            elif opcode == DECORATE and words[at + 2] in (_BINDING, _SET):
                self._places.setdefault(words[at + 1], {})[words[at + 2]] = words[at + 3]
            elif opcode in TYPES:
                self._types[words[at + 1]] = (opcode, list(words[at + 2 : at + length]))
            elif opcode not in (NAME, DECORATE, MEMBER_DECORATE) and length > 2:
                if words[at + 1] in self._types:
                    self._kind[words[at + 2]] = words[at + 1]
                    self._globals[words[at + 2]] = (opcode, list(words[at + 3 : at + length]))
                if opcode == CONSTANT:
                    self._constants[words[at + 2]] = words[at + 3]
                elif opcode == VARIABLE:
                    self._variables.append((words[at + 2], words[at + 1], words[at + 3]))
        self._leaves: dict[int, int] = {}  # components -> the type of a uint, or of so many
        self._copies: dict[int, list[int]] = {}  # type -> others, declared behind it
        self._arrays: dict[tuple[int, int], int] = {}
        self._structs: dict[int, dict[tuple[int, ...], int]] = {}  # struct -> members -> its new declaration
        self._done: dict[tuple[int, int], int] = {}
        self._pointees: dict[int, int] = {}  # pointer -> what it points to, if that has changed
        self._pointers: dict[tuple[int, int], int] = {}
        self._numbers: dict[tuple[int, int], int] = {}  # type, 0 or 1 -> constant
        self._early: list[array.array[int]] = []  # constants that the code needs
        self._touched: dict[int, bool] = {}
        self._left = _MOST_PARTS

    def _fresh(self) -> int:
        self._bound += 1
        return self._bound - 1

    # -- types

    def renew(self, blocks: Blocks) -> bool:
        """Renew the types of all blocks. False if none has changed."""
        known = {place: truths for place, truths in blocks if place is not None}
        pushed: dict[str, Truths] = {}
        for place, truths in blocks:
            if place is None and isinstance(truths, dict):
                pushed.update(truths)
        changed = False
        for variable, pointer, storage in self._variables:
            if storage not in (_UNIFORM, _PUSH, _STORAGE):
                continue
            truths = False
            if storage == _PUSH:
                truths = pushed or False
            elif _BINDING in (at := self._places.get(variable, {})):
                truths = known.get((at.get(_SET, 0), at[_BINDING]), False)
            before = self._types[pointer][1][1]
            after = self._renewed(before, truths)
            if after != before:
                self._pointees[variable] = after
                changed = True
        return changed or any(
            made == struct and list(members) != self._types[struct][1]
            for struct, variants in self._structs.items()
            for members, made in variants.items()
        )

    def _renewed(self, kind: int, truths: Truths) -> int:
        """The type for `kind` in a block, in which `truths` are bools."""
        key = (kind, id(truths))
        if key not in self._done:
            self._done[key] = self._renew(kind, truths)
        return self._done[key]

    def _renew(self, kind: int, truths: Truths) -> int:
        opcode, operands = self._types.get(kind, (0, []))
        if opcode == TYPE_BOOL:
            return self._leaf(1)
        if opcode == TYPE_INT:
            return self._leaf(1) if truths is True and operands == [32, 1] else kind
        if opcode == TYPE_VECTOR:
            return kind if self._renewed(operands[0], truths) == operands[0] else self._leaf(operands[1])
        if opcode in _ARRAYS:
            inner = self._renewed(operands[0], truths)
            if inner == operands[0]:
                return kind
            if (kind, inner) not in self._arrays:
                self._arrays[kind, inner] = self._copy(kind, [inner, *operands[1:]])
            return self._arrays[kind, inner]
        if opcode != TYPE_STRUCT:
            return kind
        names = self._member_names.get(kind, {})
        parts: list[Truths] = [False] * len(operands)
        if isinstance(truths, dict) and not truths.keys().isdisjoint(names.values()):
            parts = [truths.get(names.get(member, ""), False) for member in range(len(operands))]
        elif len(operands) == 1:  # Slang's struct around an array, a matrix or a buffer's elements
            parts = [truths]
        members = tuple(self._renewed(each, part) for each, part in zip(operands, parts, strict=True))
        variants = self._structs.setdefault(kind, {})
        if members not in variants:
            variants[members] = self._copy(kind, list(members)) if variants else kind
        return variants[members]

    def _copy(self, kind: int, operands: list[int]) -> int:
        result = self._fresh()
        self._types[result] = (self._types[kind][0], operands)
        self._copies.setdefault(kind, []).append(result)
        return result

    def _leaf(self, components: int) -> int:
        if components not in self._leaves:
            wanted = (TYPE_INT, [32, 0]) if components == 1 else (TYPE_VECTOR, [self._leaf(1), components])
            known = next((each for each, declared in self._types.items() if declared == wanted), None)
            result = self._fresh() if known is None else known
            self._types[result] = wanted
            self._leaves[components] = result
        return self._leaves[components]

    def _fields(self, struct: int) -> list[int]:
        """A struct's members as they are now."""
        for members, made in self._structs.get(struct, {}).items():
            if made == struct:
                return list(members)
        return self._types[struct][1]

    def _part(self, kind: int, index: int | None) -> int:
        """The type of a part; `index` is needed for structs."""
        opcode, operands = self._types[kind]
        if opcode in _SEQUENCES:
            return operands[0]
        if opcode != TYPE_STRUCT or index is None:
            raise _Unknown
        return self._fields(kind)[index]

    def _changed(self, kind: int) -> bool:
        """Whether a type has a struct that changed in place."""
        if kind not in self._touched:
            opcode, operands = self._types[kind]
            if opcode == TYPE_STRUCT:
                self._touched[kind] = self._fields(kind) != operands or any(map(self._changed, operands))
            else:
                self._touched[kind] = opcode in _ARRAYS and self._changed(operands[0])
        return self._touched[kind]

    # -- values

    def _number(self, kind: int, value: int) -> int:
        """The constant `value` of a type of uints."""
        if (kind, value) not in self._numbers:
            opcode, operands = self._types[kind]
            part = self._number(operands[0], value) if opcode == TYPE_VECTOR else 0
            result = self._fresh()
            self._early.append(
                encoded(_COMPOSITE, [kind, result, *[part] * operands[1]])
                if part
                else encoded(CONSTANT, [kind, result, value])
            )
            self._numbers[kind, value] = result
        return self._numbers[kind, value]

    def _convert(self, out: array.array[int], value: int, before: int, after: int, result: int = 0) -> int:
        """Write the conversion of a value to another type with the same parts; the id of what it gives."""
        if before == after and not result:
            return value
        result = result or self._fresh()
        (opcode, operands), (opcode_after, operands_after) = self._types[before], self._types[after]
        if opcode != opcode_after and {opcode, opcode_after} != {TYPE_BOOL, TYPE_INT}:
            raise _Unknown
        if opcode in (TYPE_BOOL, TYPE_INT, TYPE_VECTOR):
            was, becomes = (
                self._types[each[1][0] if each[0] == TYPE_VECTOR else kind][0]
                for kind, each in ((before, self._types[before]), (after, self._types[after]))
            )
            if was == becomes == TYPE_INT:
                out.extend(encoded(_BITCAST, [after, result, value]))
            elif was == TYPE_BOOL and becomes == TYPE_INT:
                numbers = [self._number(after, 1), self._number(after, 0)]
                out.extend(encoded(_SELECT, [after, result, value, *numbers]))
            elif was == TYPE_INT and becomes == TYPE_BOOL:
                out.extend(encoded(_NOT_EQUAL, [after, result, value, self._number(before, 0)]))
            else:
                raise _Unknown
            return result
        if opcode == TYPE_STRUCT:
            pairs = list(zip(self._fields(before), self._fields(after), strict=True))
        elif opcode == TYPE_ARRAY and (count := self._constants.get(operands[1], 0)) in range(1, self._left):
            pairs = [(operands[0], operands_after[0])] * count
        else:
            raise _Unknown
        self._left -= len(pairs)
        if self._left < 0:
            raise _Unknown
        parts = []
        for i, (old, new) in enumerate(pairs):
            part = self._fresh()
            out.extend(encoded(_EXTRACT, [old, part, value, i]))
            parts.append(self._convert(out, part, old, new))
        out.extend(encoded(_CONSTRUCT, [after, result, *parts]))
        return result

    def _constant(self, out: array.array[int], value: int, after: int) -> int:
        """A constant as one of another type."""
        before = self._kind.get(value)
        if before is None:
            raise _Unknown
        if before == after:
            return value
        opcode, operands = self._globals[value]
        result = self._fresh()
        if opcode in (_TRUE, _FALSE, CONSTANT) and self._types[after][0] == TYPE_INT:
            number = operands[0] if opcode == CONSTANT else int(opcode == _TRUE)
            made = encoded(CONSTANT, [after, result, number])
        elif opcode == _NULL:
            made = encoded(_NULL, [after, result])
        elif opcode == _COMPOSITE:
            parts = [self._constant(out, each, self._part(after, i)) for i, each in enumerate(operands)]
            made = encoded(_COMPOSITE, [after, result, *parts])
        else:
            raise _Unknown
        out.extend(made)
        return result

    # -- the module

    def _pointer(self, kind: int, pointee: int) -> int:
        """The pointer type that stands for pointer type `kind` with another pointee."""
        if (kind, pointee) not in self._pointers:
            self._pointers[kind, pointee] = self._copy(kind, [self._types[kind][1][0], pointee])
        return self._pointers[kind, pointee]

    def _pointee(self, pointer: int) -> int:
        known = self._pointees.get(pointer)
        if known is None:
            opcode, operands = self._types.get(self._kind.get(pointer, 0), (0, []))
            if opcode != TYPE_POINTER:
                raise _Unknown
            known = operands[1]
        return known

    def rewritten(self) -> bytes:
        """The module with the renewed types."""
        words = self._words
        code: array.array[int] = array.array("I")
        for opcode, at, length in instructions(words[:HEADER] + words[self._code :]):
            place = at - HEADER + self._code
            if length > 2 and words[place + 1] in self._types:
                self._kind[words[place + 2]] = words[place + 1]
            self._rewrite(code, opcode, words[place : place + length])
        variables = {
            each: self._pointer(kind, self._pointees[each])
            for each, kind, _ in self._variables
            if each in self._pointees
        }
        out = words[:HEADER]
        moved = {each for each in self._leaves.values() if each < words[3]}
        begun = False
        for opcode, at, length in instructions(words[: self._code]):
            instruction = words[at : at + length]
            if opcode in TYPES and not begun:
                begun = True
                for _, leaf in sorted(self._leaves.items()):
                    out.extend(encoded(self._types[leaf][0], [leaf, *self._types[leaf][1]]))
            if opcode in TYPES:
                self._declare(out, opcode, instruction, moved)
            elif opcode in (NAME, MEMBER_NAME, DECORATE, MEMBER_DECORATE):
                out.extend(instruction)
                for copy in self._copies.get(instruction[1], ()):
                    instruction[1] = copy
                    out.extend(instruction)
            elif opcode == VARIABLE and instruction[2] in variables:
                out.extend([instruction[0], variables[instruction[2]], *instruction[2:]])
            elif opcode in (_COMPOSITE, _SPEC_COMPOSITE) and self._is_renewed(instruction[1]):
                fields = self._fields(instruction[1])
                parts = [self._constant(out, *each) for each in zip(instruction[3:], fields, strict=True)]
                out.extend(encoded(opcode, [*instruction[1:3], *parts]))
            elif opcode == _SPEC_OPERATION and any(
                self._changed(self._kind[each]) for each in instruction[4:] if each in self._kind
            ):
                raise _Unknown
            else:
                out.extend(instruction)
        for constant in self._early:
            out.extend(constant)
        out.extend(code)
        out[3] = self._bound
        return out.tobytes()

    def _is_renewed(self, kind: int) -> bool:
        return self._types[kind][0] == TYPE_STRUCT and self._fields(kind) != self._types[kind][1]

    def _declare(
        self, out: array.array[int], opcode: int, instruction: array.array[int], moved: set[int]
    ) -> None:
        """Write a type's declaration as it is now, and its copies."""
        kind = instruction[1]
        copies = [encoded(opcode, [each, *self._types[each][1]]) for each in self._copies.get(kind, ())]
        if kind in moved:
            pass
        elif opcode == TYPE_STRUCT:
            out.extend(encoded(opcode, [kind, *self._fields(kind)]))
        else:
            out.extend(instruction)
        for copy in copies:
            out.extend(copy)

    def _rewrite(self, out: array.array[int], opcode: int, instruction: array.array[int]) -> None:
        """Write an instruction of a function."""
        kind, result = (*instruction[1:3], 0, 0)[:2]
        if opcode in (_CHAIN, _IN_BOUNDS_CHAIN):
            reached = self._pointee(instruction[3])
            for index in instruction[4:]:
                reached = self._part(reached, self._constants.get(index))
            if reached != self._types[kind][1][1]:
                self._pointees[result] = reached
                instruction[1] = self._pointer(kind, reached)
        elif opcode == _LOAD:
            held = self._pointee(instruction[3])
            if held != kind:
                instruction[1:3] = array.array("I", [held, loaded := self._fresh()])
                out.extend(instruction)
                self._convert(out, loaded, held, kind, result)
                return
        elif opcode == _STORE:
            value = instruction[2]
            instruction[2] = self._convert(out, value, self._kind[value], self._pointee(instruction[1]))
        elif opcode == _EXTRACT:
            reached = self._kind[instruction[3]]
            for index in instruction[4:]:
                reached = self._part(reached, index)
            if reached != kind:
                instruction[1:3] = array.array("I", [reached, part := self._fresh()])
                out.extend(instruction)
                self._convert(out, part, reached, kind, result)
                return
        elif opcode == _INSERT:
            reached = kind
            for index in instruction[5:]:
                reached = self._part(reached, index)
            instruction[3] = self._convert(out, instruction[3], self._kind[instruction[3]], reached)
        elif opcode == _CONSTRUCT and self._is_renewed(kind):
            fields = self._fields(kind)
            for i, (value, field) in enumerate(zip(instruction[3:], fields, strict=True)):
                instruction[3 + i] = self._convert(out, value, self._kind[value], field)
        elif opcode == _COPY_LOGICAL and (self._changed(kind) or self._changed(self._kind[instruction[3]])):
            self._convert(out, instruction[3], self._kind[instruction[3]], kind, result)
            return
        elif opcode not in (_ARRAY_LENGTH, *_OTHERS) and not self._pointees.keys().isdisjoint(
            instruction[1:]
        ):
            raise _Unknown
        out.extend(instruction)
