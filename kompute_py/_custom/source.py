"""The GLSL of a dispatch: its buffers, accessors and run-time values around the lines of the generator."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Set
from typing import NamedTuple

from .._formulas.glsl import functions_in
from .._formulas.glsl_elements import element_of
from .builder import Dispatch, FunctionBuilder, Origin, ScratchValue, TensorValue
from .expressions import glsl, product
from .float_modes import lines_of

_NAME = re.compile(r"[A-Za-z_]\w*")
_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_ACCESS = ("load", "store", "load4", "store4")
_DECLARING = frozenset(("layout", "define", "include"))
"""The words without which no line declares bindings or constants."""
_OF_FOUR = {"float": "vec4", "int": "ivec4", "uint": "uvec4"}
_DOUBLES = frozenset(("double", "dvec2", "dvec3", "dvec4"))
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
    "dvec2": struct.Struct("<dd"),
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
    """(name, type in the kernels) of the run-time values, in the order of the block: the longest first, so
    that none needs padding."""
    words: frozenset[str]
    """The tensors that are bound as arrays of uint."""
    pushed: bool
    """The values are push constants; else they are in a buffer after the tensors'."""
    known: bool = False
    """Its bindings and push constants are those above, because the generator cannot have declared others."""

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


def _is_bound(name: str, words: Set[str]) -> bool:
    """Whether a kernel with these names uses the elements of the tensor."""
    return (
        name in words
        or f"{name}_load" in words
        or f"{name}_store" in words
        or f"{name}_load4" in words
        or f"{name}_store4" in words
    )


def _index_macros(values: Iterable[TensorValue], words: Set[str]) -> list[str]:
    """The definitions of ``x_at`` and ``x_stride0`` for the tensors for which a kernel uses one."""
    macros: list[str] = []
    text = " ".join(words)
    if "_stride" not in text and "_at" not in text:
        return macros
    for value in values:
        strides = [f"{value.name}_stride{axis}" for axis in range(value.ndim)]
        at = f"{value.name}_at"
        used = strides if at in words else [each for each in strides if each in words]
        if not used and at not in words:
            continue
        for axis, stride in enumerate(strides):
            if stride in used:
                macros.append(f"#define {stride} {glsl(product(value.shape[axis + 1 :]))}")
        names = [f"i{axis}" for axis in range(value.ndim)]
        index = " + ".join(f"({name}) * {stride}" for name, stride in zip(names, strides, strict=True))
        macros.append(f"#define {at}({', '.join(names)}) ({index or '0u'})")
    return macros


def source_of(builder: FunctionBuilder, dispatch: Dispatch) -> Source:
    """The GLSL of one dispatch, or no text for a module of SPIR-V."""
    if dispatch.module is not None:
        kinds = {name: desc.glsl_type for name, desc in builder._values.items()}
        values = [(name, kinds.get(name, "uint")) for name in dispatch.values]
        return Source("", [], list(dispatch.bindings), values, frozenset(), True)
    words = dispatch.words
    every = builder._tensors.values()
    tensors = [value for value in every if _is_bound(value.name, words)]
    macros = _index_macros(every, words)
    if macros:
        words = words.union(_NAME.findall(" ".join(macros)))
    own: list[str] = []
    """Lengths and sizes that are values when the kernels run, in the order of the arguments."""
    computed: list[str] = []
    """Sizes of scratch memory, which the host computes for each call."""
    for value in every:
        name = f"{value.name}_size"
        if name in words:
            size = value.size
            if isinstance(size, int):
                macros.append(f"#define {name} {size}u")
            elif isinstance(value, ScratchValue):
                computed.append(name)
            else:
                own.append(name)
        for axis, length in enumerate(value.shape):
            name = f"{value.name}_dim{axis}"
            if name not in words:
                continue
            if isinstance(length, int):
                macros.append(f"#define {name} {length}u")
            elif not isinstance(value, ScratchValue):
                own.append(name)
    parameters = [(name, "uint") for name in (*own, *computed)]
    used = {name: desc for name, desc in builder._values.items() if name in words}
    parameters += [(name, desc.glsl_type) for name, desc in used.items()]
    widths = [VALUES[kind].size for _, kind in parameters]
    if max(widths, default=0) > 4:
        parameters.sort(key=lambda each: -VALUES[each[1]].size)
    pushed = sum(widths) <= _MOST_PUSH
    extensions = [e for value in tensors for e in value.element.extensions] + dispatch.extensions
    for desc in used.values():
        if VALUES[desc.glsl_type].size == 8:
            extensions += element_of(desc.dtype).extensions
    device = builder.selection.device
    controls = {} if device is None else device.get("float_controls", {})
    # Of the widest numbers: of two modes of one kind glslang keeps the last alone.
    doubles = _DOUBLES & words.union([value.element.type for value in tensors])
    modes = lines_of(controls, 64 if doubles else 32)
    if modes:
        extensions.append("GL_EXT_spirv_intrinsics")
    head = ["#version 450", *(f"#extension {name} : require" for name in dict.fromkeys(extensions)), *modes]
    x, y, z = dispatch.local_size
    sizes = f"local_size_x = {x}"
    if y > 1 or z > 1:
        sizes += f", local_size_y = {y}, local_size_z = {z}"
    head.append(f"layout({sizes}) in;")
    # Variables, no macros: functions may have locals of the same name.
    flags = [f"bool {name} = kp_{name} != 0u;" for name, kind in parameters if kind == "bool"]
    if parameters:
        members = " ".join(
            [f"uint kp_{name};" if kind == "bool" else f"{kind} {name};" for name, kind in parameters]
        )
        place = "push_constant" if pushed else f"binding = {len(tensors)}"
        qualifier = "uniform" if pushed else "readonly buffer"
        head.append(f"layout({place}) {qualifier} kp_parameters {{ {members} }};")
    selection = builder.selection
    written = {*builder._scratch, *[each.name for each in selection.results]}
    written.update([each.name for each in selection.inplace_tied_arg_descs])
    conversions = " ".join([value.element.load + value.element.store for value in tensors])
    if "kp_" in conversions:
        for text in functions_in(conversions).values():
            head += text.split("\n")
    head += dict.fromkeys(value.element.declared for value in tensors if value.element.declared)
    for binding, value in enumerate(tensors):
        element, name = value.element, value.name
        fixed = name not in written
        head.append(
            f"layout(binding = {binding}) {'readonly ' if fixed else ''}buffer kp_{name}_buffer "
            f"{{ {element.stored} {name}[]; }};"
        )
        if element.words:
            bits = value.dtype.itemsize * 8
            word, shift = f"{name}[i / {32 // bits}u]", f"(i % {32 // bits}u * {bits}u)"
            loaded = element.load.format(w=word, s=shift)
            # Two steps, but no invocation changes the bits of another.
            stored = (
                f"atomicAnd({word}, ~({hex((1 << bits) - 1)}u << {shift})); "
                f"atomicOr({word}, ({element.store.format('kp_v')}) << {shift});"
            )
        else:
            loaded = element.load.format(f"{name}[i]")
            stored = f"{name}[i] = {element.store.format('kp_v')};"
        if f"{name}_load4" in words or f"{name}_store4" in words:
            four = "" if element.words else _OF_FOUR.get(element.stored)
            if four:
                head.append(
                    f"layout(binding = {binding}) {'readonly ' if fixed else ''}buffer kp_{name}_buffer4 "
                    f"{{ {four} kp_{name}4[]; }};"
                )
                head.append(f"{four} {name}_load4(uint i) {{ return kp_{name}4[i]; }}")
                if not fixed:
                    head.append(f"void {name}_store4(uint i, {four} kp_v) {{ kp_{name}4[i] = kp_v; }}")
        if f"{name}_load" in words:
            head.append(f"{element.type} {name}_load(uint i) {{ return {loaded}; }}")
        if not fixed and f"{name}_store" in words:
            head.append(f"void {name}_store(uint i, {element.type} kp_v) {{ {stored} }}")
    lines: list[tuple[str, Origin | None]] = [(line, None) for line in (*head, *flags, *macros)]
    lines += dispatch.outside
    lines.append(("void main() {", None))
    lines += dispatch.body
    lines.append(("}", None))
    return Source(
        "\n".join([line for line, _ in lines]) + "\n",
        [origin for _, origin in lines],
        [value.name for value in tensors],
        parameters,
        frozenset([value.name for value in tensors if value.element.words]),
        pushed,
        dispatch.words.isdisjoint(_DECLARING),
    )
