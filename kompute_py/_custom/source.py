"""The GLSL of a dispatch: its buffers, accessors and run-time values around the lines of the generator."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from typing import NamedTuple

from .._formulas.elements import element_of
from .._formulas.glsl import functions_in
from .builder import Dispatch, KernelBuilder, Origin, ScratchValue, TensorValue
from .expressions import glsl, product

_NAME = re.compile(r"[A-Za-z_]\w*")
_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_ACCESS = ("load", "store", "load4", "store4")
_MOST_PUSH = 128
"""Bytes of push constants that every device has."""
VALUES = {
    "uint": struct.Struct("<I"),
    "int": struct.Struct("<i"),
    "float": struct.Struct("<f"),
    "bool": struct.Struct("<I"),
    "double": struct.Struct("<d"),
    "int64_t": struct.Struct("<q"),
    "uint64_t": struct.Struct("<Q"),
    "vec2": struct.Struct("<ff"),
}
"""How a run-time value of a type stands in the block of values. Each is aligned by its size."""


class Source(NamedTuple):
    """A dispatch's GLSL, and what it uses."""

    text: str
    origins: list[Origin | None]
    """For each line the generator's line, None for lines of the builder."""
    tensors: list[str]
    """The tensors in the order of their bindings."""
    parameters: list[tuple[str, str]]
    """(name, type in the kernels) of the run-time values, in the order of the block: those of 8 bytes first,
    so that none needs padding."""
    words: frozenset[str]
    """The tensors that are bound as arrays of uint."""
    pushed: bool
    """The values are push constants; else they are in a buffer after the tensors'."""

    def offsets(self) -> list[int]:
        """The first byte of each run-time value, in std430."""
        found, end = [], 0
        for _, kind in self.parameters:
            size = VALUES[kind].size
            end = -(-end // size) * size
            found.append(end)
            end += size
        return found


def alike(source: Source, items: Iterable[str]) -> str:
    """The text with other names for the tensors of lists, and for numbers such as ``kp_n17``: kernels of
    several items that differ by these only are the same text, which is compiled once.
    """
    items = set(items)
    names = {
        f"kp_{name}_buffer": f"kp_list{n}_buffer" for n, name in enumerate(source.tensors) if name in items
    }
    for number, name in enumerate(source.tensors):
        if name in items:
            names[name] = f"kp_list{number}"
            names.update((f"{name}_{each}", f"kp_list{number}_{each}") for each in _ACCESS)
    for number, (name, _) in enumerate(source.parameters):
        if name.startswith("kp_") or any(name.startswith(f"{item}_") for item in items):
            names[name] = f"kp_number{number}"
    return _WORD.sub(lambda found: names.get(found[0], found[0]), source.text)


def source_of(builder: KernelBuilder, dispatch: Dispatch) -> Source:
    """The GLSL of one dispatch, or no text for a module of SPIR-V."""
    if dispatch.module is not None:
        kinds = {name: desc.glsl_type for name, desc in builder._values.items()}
        values = [(name, kinds.get(name, "uint")) for name in dispatch.values]
        return Source("", [], list(dispatch.bindings), values, frozenset(), True)
    written = [line for line, _ in (*dispatch.outside, *dispatch.body)]
    words = set(_NAME.findall("\n".join(written)))
    macros: list[str] = []
    computed: list[str] = []
    """Numbers that the host computes for each call."""
    tensors: list[TensorValue] = []
    for value in builder._tensors.values():
        if words & {value.name, *(f"{value.name}_{each}" for each in _ACCESS)}:
            tensors.append(value)
    for value in builder._tensors.values():
        strided = f"{value.name}_stride"
        at = f"{value.name}_at" in words
        if at or any(f"{strided}{axis}" in words for axis in range(value.ndim)):
            for axis in range(value.ndim):
                if at or f"{strided}{axis}" in words:
                    macros.append(f"#define {strided}{axis} {glsl(product(value.shape[axis + 1 :]))}")
            names = [f"i{axis}" for axis in range(value.ndim)]
            index = " + ".join(f"({name}) * {strided}{axis}" for axis, name in enumerate(names)) or "0u"
            macros.append(f"#define {value.name}_at({', '.join(names)}) ({index})")
            words |= set(_NAME.findall(" ".join(macros)))
        for axis, length in enumerate(value.shape):
            if isinstance(length, int) and f"{value.name}_dim{axis}" in words:
                macros.append(f"#define {value.name}_dim{axis} {length}u")
        if f"{value.name}_size" in words:
            if isinstance(value.size, int):
                macros.append(f"#define {value.name}_size {glsl(value.size)}")
            elif isinstance(value, ScratchValue):
                computed.append(f"{value.name}_size")
    numbers = [*builder.selection._numbers(), *computed]
    parameters = [(name, "uint") for name in numbers if name in words and name not in builder._values]
    taken = {line.split()[1].split("(")[0] for line in macros}
    parameters = [(name, kind) for name, kind in parameters if name not in taken]
    used = {name: desc for name, desc in builder._values.items() if name in words}
    parameters += [(name, desc.glsl_type) for name, desc in used.items()]
    parameters.sort(key=lambda each: -VALUES[each[1]].size)
    pushed = sum(VALUES[kind].size for _, kind in parameters) <= _MOST_PUSH
    extensions = [e for value in tensors for e in value.element.extensions] + dispatch.extensions
    for desc in used.values():
        if VALUES[desc.glsl_type].size == 8:
            extensions += element_of(desc.dtype).extensions
    head = ["#version 450", *(f"#extension {name} : require" for name in dict.fromkeys(extensions))]
    sizes = ", ".join(
        f"local_size_{axis} = {n}" for axis, n in zip("xyz", dispatch.local_size, strict=True) if n > 1
    )
    head.append(f"layout({sizes or 'local_size_x = 1'}) in;")
    # Variables, no macros: functions may have locals of the same name.
    flags = [f"bool {name} = kp_{name} != 0u;" for name, kind in parameters if kind == "bool"]
    if parameters:
        members = " ".join(
            f"uint kp_{name};" if kind == "bool" else f"{kind} {name};" for name, kind in parameters
        )
        place = "push_constant" if pushed else f"binding = {len(tensors)}"
        qualifier = "uniform" if pushed else "readonly buffer"
        head.append(f"layout({place}) {qualifier} kp_parameters {{ {members} }};")
    arguments = {desc.name for desc in builder.selection._tensors() if not desc.is_result}
    tied = {desc.name for desc in builder.selection.inplace_tied_arg_descs}
    conversions = " ".join(value.element.load + value.element.store for value in tensors)
    for text in functions_in(conversions).values():
        head += text.split("\n")
    for binding, value in enumerate(tensors):
        element = value.element
        fixed = value.name in builder._constants or (value.name in arguments and value.name not in tied)
        head.append(
            f"layout(binding = {binding}) {'readonly ' if fixed else ''}buffer kp_{value.name}_buffer "
            f"{{ {element.stored} {value.name}[]; }};"
        )
        if element.words:
            bits = value.dtype.itemsize * 8
            word, shift = f"{value.name}[i / {32 // bits}u]", f"(i % {32 // bits}u * {bits}u)"
            loaded = element.load.format(w=word, s=shift)
            # Two steps, but no invocation changes the bits of another.
            stored = (
                f"atomicAnd({word}, ~({hex((1 << bits) - 1)}u << {shift})); "
                f"atomicOr({word}, ({element.store.format('v')}) << {shift});"
            )
        else:
            loaded = element.load.format(f"{value.name}[i]")
            stored = f"{value.name}[i] = {element.store.format('v')};"
        four = {"float": "vec4", "int": "ivec4", "uint": "uvec4"}.get("" if element.words else element.stored)
        if four and words & {f"{value.name}_load4", f"{value.name}_store4"}:
            head.append(
                f"layout(binding = {binding}) {'readonly ' if fixed else ''}buffer kp_{value.name}_buffer4 "
                f"{{ {four} kp_{value.name}4[]; }};"
            )
            head.append(f"{four} {value.name}_load4(uint i) {{ return kp_{value.name}4[i]; }}")
            if not fixed:
                store = f"kp_{value.name}4[i] = v;"
                head.append(f"void {value.name}_store4(uint i, {four} v) {{ {store} }}")
        if f"{value.name}_load" in words:
            head.append(f"{element.type} {value.name}_load(uint i) {{ return {loaded}; }}")
        if not fixed and f"{value.name}_store" in words:
            head.append(f"void {value.name}_store(uint i, {element.type} v) {{ {stored} }}")
    lines: list[tuple[str, Origin | None]] = [(line, None) for line in (*head, *flags, *macros)]
    lines += dispatch.outside
    lines.append(("void main() {", None))
    lines += dispatch.body
    lines.append(("}", None))
    return Source(
        "\n".join(line for line, _ in lines) + "\n",
        [origin for _, origin in lines],
        [value.name for value in tensors],
        parameters,
        frozenset(value.name for value in tensors if value.element.words),
        pushed,
    )
