"""Loops that certainly have no end: nothing in them changes what decides whether they go on.

A natural loop has the blocks from which its back edge can be reached. All ways out are branches of these
blocks. If each of them depends on constants, arguments of the function and memory that the loop does not
write, and that no other invocation may write, the first turn ends the loop, or none.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Any, NamedTuple

from .._compilers.spirv_words import EXTENDED, VARIABLE, Module

_LABEL, _BRANCH, _BRANCH_IF, _SWITCH = 248, 249, 250, 251
_TRUE, _FALSE, _CONSTANT, _LOOP_MERGE = 41, 42, 43, 246
_PHI, _LOAD, _STORE, _COPY_MEMORY, _COPY_SIZED, _CALL = 245, 61, 62, 63, 64, 57
_LINE, _FUNCTION_END = 8, 56
_DEBUG_LINE = 103  # of NonSemantic.Shader.DebugInfo
_NEITHER = (_LOOP_MERGE, 247, _BRANCH, _BRANCH_IF, _SWITCH, VARIABLE)
_CHAINS = (65, 66, 67, 70, 83)  # access chains, and copies of pointers
_PURE = {*range(77, 85), *range(109, 125), *range(126, 153), *range(154, 192), *range(194, 206), EXTENDED, 1}
"""Opcodes of results that follow from the operands alone."""
_IDS = {79: 2, 81: 1, 82: 2}
"""Of those with literals, how many operands are ids."""
_WRITING = (35, 51)  # modf and frexp write through a pointer
_FUNCTION, _PRIVATE = 7, 6  # storage classes
_FIXED = (0, 1, 2, 9)  # UniformConstant, Input, Uniform, PushConstant
_BUFFER_BLOCK = 3  # a decoration


class _Instruction(NamedTuple):
    opcode: int
    result: int
    operands: tuple[int, ...]
    line: int


def endless_loops(spirv: bytes) -> list[int]:
    """The lines of the loops that certainly have no end, 0 if the module does not have the line of one."""
    module = Module(spirv)
    storage: dict[int, int] = {}
    for each, at in module.variables():
        storage[each] = module.words[at + 3]
        if storage[each] == 2 and _is_written(module, module.words[at + 1]):
            storage[each] = 12  # the older form of a storage buffer
    sure = {
        module.words[at + 2]: opcode == _TRUE for opcode, at, _ in module.head if opcode in (_TRUE, _FALSE)
    }
    return [line for blocks in _functions(module) for line in _of_function(blocks, storage, sure)]


def _is_written(module: Module, pointer: int) -> bool:
    kind = module.inner(pointer)
    while (inner := module.inner(kind)) != 0:
        kind = inner
    return any(module.words[at + 2] == _BUFFER_BLOCK for at in module.annotations.get(kind, ()))


def _functions(module: Module) -> Iterator[dict[int, list[_Instruction]]]:
    """The blocks of each function, by label."""
    blocks: dict[int, list[_Instruction]] = {}
    block: list[_Instruction] = []
    line = 0
    for opcode, at, length in module.body:
        words = tuple(module.words[at + 1 : at + length])
        if opcode == _LINE:
            line = words[1]
        elif opcode == EXTENDED and module.words[at + 4] == _DEBUG_LINE and length > 6:
            line = _constant(module, module.words[at + 6], line)
        elif opcode == _LABEL:
            block = blocks[words[0]] = []
        elif opcode == _FUNCTION_END:
            yield blocks
            blocks = {}
        elif blocks:
            typed = opcode in {*_PURE, *_CHAINS, _PHI, _LOAD, _CALL, VARIABLE}
            block.append(_Instruction(opcode, *((words[1], words[2:]) if typed else (0, words)), line))


def _constant(module: Module, number: int, otherwise: int) -> int:
    for opcode, at, _ in module.head:
        if opcode == _CONSTANT and module.words[at + 2] == number:
            return module.words[at + 3]
    return otherwise


def _after(end: _Instruction, sure: dict[int, bool]) -> tuple[int, ...]:
    """The blocks that a block goes to; `sure` has the values of constants."""
    if end.opcode == _BRANCH:
        return end.operands
    if end.opcode == _BRANCH_IF:
        condition, then, other = end.operands[:3]
        return (then if sure[condition] else other,) if condition in sure else (then, other)
    return (end.operands[1], *end.operands[3::2]) if end.opcode == _SWITCH else ()


def _reached(ways: dict[int, Any], first: Iterable[int], stop: Container[int]) -> set[int]:
    """The blocks from which or to which ways lead, those of `stop` not passed."""
    found: set[int] = set()
    wanted = [*first]
    while wanted:
        label = wanted.pop()
        if label not in found and label not in stop and label in ways:
            found.add(label)
            wanted += ways[label]
    return found


def _of_function(
    blocks: dict[int, list[_Instruction]], storage: dict[int, int], sure: dict[int, bool]
) -> Iterator[int]:
    after = {label: _after(block[-1], sure) if block else () for label, block in blocks.items()}
    alive = _reached(after, [*blocks][:1], ())
    before: dict[int, list[int]] = {label: [] for label in alive}
    for label in alive:
        for to in after[label]:
            before.setdefault(to, []).append(label)
    for header, block in blocks.items():
        merge = next((each for each in block if each.opcode == _LOOP_MERGE), None)
        if merge is None:
            continue
        end, again = merge.operands[:2]
        back = {header, *_reached(after, [again], (header, end))}.intersection(before.get(header, ()))
        if not back:
            continue  # it never goes back
        inside = {header, *_reached(before, back, (header,))}
        found = _Decided(blocks, inside, header, storage)
        ends = [blocks[label][-1] for label in inside if any(to not in inside for to in after[label])]
        if all(found.is_fixed(each.operands[0]) for each in ends):
            yield merge.line or block[0].line


class _Decided:
    """Which values a loop never changes."""

    def __init__(
        self, blocks: dict[int, list[_Instruction]], inside: set[int], header: int, storage: dict[int, int]
    ) -> None:
        self._made = {each.result: each for label in inside for each in blocks[label] if each.result}
        self._everywhere = {each.result: each for block in blocks.values() for each in block if each.result}
        self._storage = storage
        self._inside = inside
        self._phis = {each.result for each in blocks[header] if each.opcode == _PHI}
        self._known: dict[int, bool] = {}
        self._written: set[int] = set()
        """The variables that it may write; 0: any of the invocation's."""
        for label in inside:
            for each in blocks[label]:
                if each.opcode in (_STORE, _COPY_MEMORY, _COPY_SIZED):
                    self._written.add(self._root(each.operands[0]))
                elif each.opcode == _CALL:
                    self._written |= {0, *(self._root(operand) for operand in each.operands[1:])}
                elif each.opcode == EXTENDED and each.operands[1] in _WRITING:
                    self._written.add(self._root(each.operands[-1]))
                elif each.opcode not in {*_PURE, *_CHAINS, *_NEITHER, _PHI, _LOAD}:
                    self._written |= {self._root(operand) for operand in each.operands}
                    # Its second word is the result, if it has one.
                    self._known |= dict.fromkeys(each.operands[1:2], False)

    def _root(self, pointer: int) -> int:
        while (made := self._everywhere.get(pointer)) is not None and made.opcode in _CHAINS:
            pointer = made.operands[0]
        return pointer

    def is_fixed(self, value: int) -> bool:
        """Whether a value is the same in each turn."""
        known = self._known.get(value)
        if known is None:
            self._known[value] = True  # of itself: a phi that keeps its value
            known = self._known[value] = self._look(value)
        return known

    def _look(self, value: int) -> bool:
        made = self._made.get(value)
        if made is None:
            return True  # from before the loop
        if made.opcode == _PHI:
            if value not in self._phis:
                return False  # other branches of the loop decide it
            pairs = zip(made.operands[::2], made.operands[1::2], strict=True)
            return all(each == value for each, label in pairs if label in self._inside)
        if made.opcode == _LOAD:
            return self._is_kept(made.operands[0])
        if made.opcode == EXTENDED:
            return all(map(self.is_fixed, made.operands[2:]))
        if made.opcode not in _PURE:
            return False
        return all(map(self.is_fixed, made.operands[: _IDS.get(made.opcode)]))

    def _is_kept(self, pointer: int) -> bool:
        """Whether memory keeps its contents, and the pointer is the same in each turn."""
        while (made := self._everywhere.get(pointer)) is not None and made.opcode in _CHAINS:
            if pointer in self._made and not all(map(self.is_fixed, made.operands[1:])):
                return False
            pointer = made.operands[0]
        if made is not None and made.opcode != VARIABLE:
            return False
        if made is None and pointer not in self._storage:
            return False  # a parameter of a function
        storage = _FUNCTION if made is not None else self._storage[pointer]
        if storage in _FIXED:
            return True
        if storage == _PRIVATE and 0 in self._written:
            return False
        return storage in (_FUNCTION, _PRIVATE) and pointer not in self._written
