"""Which members of a shader's blocks are bool, as Slang's reflection says.

A bool has no representation in memory. Slang writes an int for it, so the SPIR-V no longer distinguishes the
two. `slang_bools.py` needs to know.
"""

from __future__ import annotations

import ctypes
from typing import Any, Union

Truths = Union[bool, "dict[str, Truths]"]
"""What is bool in a type: True for a bool and for vectors, matrices and arrays of bools; for a struct, its
members that contain bools, by name."""

Blocks = list[tuple[tuple[int, int] | None, Truths]]
"""(set and binding, what is bool in it) of each block that has bools; None in place of both numbers for push
constants."""

_STRUCT, _ARRAY, _MATRIX, _VECTOR, _SCALAR, _CONSTANT_BUFFER, _RESOURCE = 1, 2, 3, 4, 5, 6, 7
_TEXTURE_BUFFER, _STORAGE_BUFFER, _PARAMETER_BLOCK = 9, 10, 11
_BLOCKS = (_CONSTANT_BUFFER, _TEXTURE_BUFFER, _STORAGE_BUFFER, _PARAMETER_BLOCK)
_BOOL = 2
_SLOT, _PUSH, _SPACE, _SUB_SPACE = 9, 11, 12, 20  # parameter categories
_DEEPEST = 64  # levels of nested structs

_pointer, _count = ctypes.c_void_p, ctypes.c_uint
FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "spGetReflection": (_pointer, [_pointer]),
    "spReflection_getGlobalParamsVarLayout": (_pointer, [_pointer]),
    "spReflection_getEntryPointByIndex": (_pointer, [_pointer, ctypes.c_size_t]),
    "spReflectionEntryPoint_getVarLayout": (_pointer, [_pointer]),
    "spReflectionVariableLayout_GetTypeLayout": (_pointer, [_pointer]),
    "spReflectionVariableLayout_GetVariable": (_pointer, [_pointer]),
    "spReflectionVariableLayout_GetOffset": (ctypes.c_size_t, [_pointer, ctypes.c_int]),
    "spReflectionVariableLayout_GetSpace": (ctypes.c_size_t, [_pointer, ctypes.c_int]),
    "spReflectionVariable_GetName": (ctypes.c_char_p, [_pointer]),
    "spReflectionVariable_GetType": (_pointer, [_pointer]),
    "spReflectionTypeLayout_GetType": (_pointer, [_pointer]),
    "spReflectionTypeLayout_getKind": (_count, [_pointer]),
    "spReflectionTypeLayout_GetSize": (ctypes.c_size_t, [_pointer, ctypes.c_int]),
    "spReflectionTypeLayout_GetFieldCount": (_count, [_pointer]),
    "spReflectionTypeLayout_GetFieldByIndex": (_pointer, [_pointer, _count]),
    "spReflectionTypeLayout_GetElementTypeLayout": (_pointer, [_pointer]),
    "spReflectionTypeLayout_GetElementVarLayout": (_pointer, [_pointer]),
    "spReflectionTypeLayout_getContainerVarLayout": (_pointer, [_pointer]),
    "spReflectionType_GetKind": (_count, [_pointer]),
    "spReflectionType_GetScalarType": (_count, [_pointer]),
    "spReflectionType_GetElementType": (_pointer, [_pointer]),
    "spReflectionType_GetResourceResultType": (_pointer, [_pointer]),
    "spReflectionType_GetFieldCount": (_count, [_pointer]),
    "spReflectionType_GetFieldByIndex": (_pointer, [_pointer, _count]),
}
"""The C functions used here: results and arguments."""


def bools_of(library: Any, request: int) -> Blocks:
    """The blocks with bools of a request that compiled."""
    program = library.spGetReflection(request)
    if not program:
        return []
    reader = _Reader(library)
    reader.visit(library.spReflection_getGlobalParamsVarLayout(program), 0, 0, 0)
    entry = library.spReflection_getEntryPointByIndex(program, 0)
    if entry:
        reader.visit_parameters(library.spReflectionEntryPoint_getVarLayout(entry))
    return reader.blocks


class _Reader:
    def __init__(self, library: Any) -> None:
        self._library = library
        self._known: dict[int, Truths] = {}
        self.blocks: Blocks = []

    def visit(self, variable: int | None, binding: int, space: int, depth: int) -> None:
        """Note the blocks of a variable; `binding` and `space` are those of what it is in."""
        library = self._library
        if not variable or depth > _DEEPEST:
            return
        layout = library.spReflectionVariableLayout_GetTypeLayout(variable)
        binding += library.spReflectionVariableLayout_GetOffset(variable, _SLOT)
        space += library.spReflectionVariableLayout_GetSpace(variable, _SLOT)
        self._visit_type(variable, layout, binding, space, depth)

    def visit_parameters(self, variable: int | None) -> None:
        """Note the blocks among the entry point's parameters; uniforms among them are push constants."""
        self.visit(variable, 0, 0, 0)
        layout = self._library.spReflectionVariableLayout_GetTypeLayout(variable) if variable else None
        if layout and self._library.spReflectionTypeLayout_getKind(layout) == _STRUCT:
            self._note(None, self._of_fields(layout, 0))

    def _visit_type(self, variable: int, layout: int | None, binding: int, space: int, depth: int) -> None:
        library = self._library
        while layout and library.spReflectionTypeLayout_getKind(layout) == _ARRAY:
            layout = library.spReflectionTypeLayout_GetElementTypeLayout(layout)
        if not layout:
            return
        kind = library.spReflectionTypeLayout_getKind(layout)
        if kind == _STRUCT:
            for field in range(library.spReflectionTypeLayout_GetFieldCount(layout)):
                inner = library.spReflectionTypeLayout_GetFieldByIndex(layout, field)
                self.visit(inner, binding, space, depth + 1)
        elif kind == _RESOURCE:
            held = library.spReflectionType_GetResourceResultType(
                library.spReflectionTypeLayout_GetType(layout)
            )
            self._note((space, binding), self._of(held, 0))
        elif kind in _BLOCKS:
            if kind == _PARAMETER_BLOCK:
                space += library.spReflectionVariableLayout_GetOffset(variable, _SUB_SPACE)
                binding = 0
            container = library.spReflectionTypeLayout_getContainerVarLayout(layout)
            element = library.spReflectionTypeLayout_GetElementVarLayout(layout)
            at = binding
            if container:
                at += library.spReflectionVariableLayout_GetOffset(container, _SLOT)
            truths: Truths = False
            if element:
                held = library.spReflectionVariableLayout_GetTypeLayout(element)
                truths = (
                    self._of_fields(held, 0)
                    if library.spReflectionTypeLayout_getKind(held) == _STRUCT
                    else self._of(library.spReflectionTypeLayout_GetType(held), 0)
                )
                self.visit(element, binding, space, depth + 1)
            pushed = library.spReflectionTypeLayout_GetSize(layout, _PUSH) > 0
            self._note(None if pushed else (space, at), truths)

    def _note(self, place: tuple[int, int] | None, truths: Truths) -> None:
        if truths:
            self.blocks.append((place, truths))

    def _of_fields(self, layout: int, depth: int) -> Truths:
        """Of a struct's layout: that of all parameters together has no type."""
        library = self._library
        found: dict[str, Truths] = {}
        for field in range(library.spReflectionTypeLayout_GetFieldCount(layout)):
            inner = library.spReflectionTypeLayout_GetFieldByIndex(layout, field)
            variable = library.spReflectionVariableLayout_GetVariable(inner)
            held = library.spReflectionVariableLayout_GetTypeLayout(inner)
            self._add(found, variable, self._of(library.spReflectionTypeLayout_GetType(held), depth + 1))
        return found or False

    def _of(self, kind: int | None, depth: int) -> Truths:
        """What is bool in a type."""
        library = self._library
        if not kind or depth > _DEEPEST:
            return False
        if kind in self._known:
            return self._known[kind]
        self._known[kind] = False  # a type that contains itself
        category = library.spReflectionType_GetKind(kind)
        result: Truths = False
        if category == _SCALAR:
            result = library.spReflectionType_GetScalarType(kind) == _BOOL
        elif category in (_ARRAY, _MATRIX, _VECTOR):
            result = self._of(library.spReflectionType_GetElementType(kind), depth + 1)
        elif category == _STRUCT:
            found: dict[str, Truths] = {}
            for field in range(library.spReflectionType_GetFieldCount(kind)):
                variable = library.spReflectionType_GetFieldByIndex(kind, field)
                self._add(
                    found, variable, self._of(library.spReflectionVariable_GetType(variable), depth + 1)
                )
            result = found or False
        self._known[kind] = result
        return result

    def _add(self, found: dict[str, Truths], variable: int | None, truths: Truths) -> None:
        name = self._library.spReflectionVariable_GetName(variable) if variable else None
        if name and truths:
            found[name.decode(errors="replace")] = truths
