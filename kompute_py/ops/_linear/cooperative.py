"""Products by cooperative matrices: those that the subgroups of a GPU hold and multiply together.

A workgroup of four subgroups computes a tile, each subgroup two by two matrices of it. Parts of both sides go
through shared memory, which has zeros beyond the edges, so that any shape is right. Sums leave through shared
memory, too: the device decides how a subgroup holds a matrix.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..._base.errors import ShaderCompileError
from ..._compilers.compile import compile
from ..._custom.selection import FunctionSelection

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..._custom.builder import FunctionBuilder

EXTENSION = "GL_KHR_cooperative_matrix"
_FEATURES = ("cooperativeMatrix", "vulkanMemoryModel", "subgroupSizeControl", "computeFullSubgroups")
_TYPES = {
    "float16": ("float16_t", "GL_EXT_shader_explicit_arithmetic_types_float16", "shaderFloat16"),
    "int8": ("int8_t", "GL_EXT_shader_explicit_arithmetic_types_int8", "shaderInt8"),
    "uint8": ("uint8_t", "GL_EXT_shader_explicit_arithmetic_types_int8", "shaderInt8"),
}
"""The types of elements, with the extension of GLSL and the feature that they need."""
_SUMS = {"float16": ("float32",), "int8": ("int32",), "uint8": ("int32", "uint32")}
"""The dtypes of sums; sums of uint8 that fit int32 have the same bits in both."""
_SUBGROUPS, _EACH = 2, 2
"""Rows and columns of subgroups in a workgroup, and of matrices in a subgroup."""


class Cooperation(NamedTuple):
    """The matrices that a device multiplies."""

    rows: int
    columns: int
    depth: int
    dtype: str
    sums: str
    """The dtype of the sums."""
    subgroup: int
    """Invocations of a subgroup."""

    @property
    def high(self) -> int:
        """Rows of a workgroup."""
        return self.rows * _SUBGROUPS * _EACH

    @property
    def wide(self) -> int:
        """Columns of a workgroup."""
        return self.columns * _SUBGROUPS * _EACH

    @property
    def step(self) -> int:
        """Products that a workgroup adds between two barriers."""
        return self.depth * 2

    @property
    def size(self) -> int:
        """Invocations of a workgroup."""
        return self.subgroup * _SUBGROUPS**2

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory."""
        element = np.dtype(self.dtype).itemsize
        sums = self.rows * self.columns * _SUBGROUPS**2 * np.dtype(self.sums).itemsize
        return (self.high + self.wide) * self.step * element + sums


def cooperation_of(
    ksel: FunctionSelection, left: np.dtype[Any], right: np.dtype[Any], sums: np.dtype[Any]
) -> Cooperation | None:
    """The matrices for a product, or None if the device or the compiler has none for its dtypes."""
    device, name = ksel.device, left.name
    if device is None or left != right or name not in _TYPES or not ksel.has(*_FEATURES, _TYPES[name][2]):
        return None
    if sums.name not in ("float32", "int32") or (sums.kind == "f") != (name == "float16"):
        return None
    least, most = device["subgroup_sizes"]
    found = [
        Cooperation(
            each["rows"],
            each["columns"],
            each["depth"],
            name,
            each["result"],
            min(max(device["subgroup_size"], least), most),
        )
        for each in device["cooperative_matrices"]
        if each["left"] == each["right"] == name
        and each["added"] == each["result"]
        and each["result"] in _SUMS[name]
        and each["scope"] == "subgroup"
        and not each["saturating"]
    ]
    limits = device["limits"]
    fit = [
        each
        for each in found
        if each.shared_bytes <= limits["maxComputeSharedMemorySize"]
        and each.size <= limits["maxComputeWorkGroupInvocations"]
    ]
    if not fit or not takes_extension(EXTENSION):
        return None
    return max(fit, key=lambda each: (each.rows * each.columns * each.depth, each.rows))


@functools.cache
def takes_extension(name: str) -> bool:
    """Whether the compiler of this package takes an extension of GLSL: older ones refuse later ones. A
    process tries each once.
    """
    try:
        compile(f"#version 450\n#extension {name} : require\nvoid main() {{}}", optimize=False)
    except ShaderCompileError:
        return False
    return True


def write_cooperative(
    kb: FunctionBuilder,
    way: Cooperation,
    in_line: tuple[bool, bool],
    load: Callable[[int, str], str],
    store: Callable[[str], str],
) -> None:
    """Writes the dispatch of the products, which has begun. `in_line` says of both sides whether the elements
    of a sum follow each other; `load` gives an element of side 0 or 1, `store` keeps the sum of `i` and `j`.
    """
    kind, extension, _ = _TYPES[way.dtype]
    sums = {"float32": "float", "int32": "int", "uint32": "uint"}[way.sums]
    m, n, depth, step, high, wide = way.rows, way.columns, way.depth, way.step, way.high, way.wide
    kb.subgroups(way.subgroup)
    for each in (EXTENSION, "GL_KHR_memory_scope_semantics", "GL_KHR_shader_subgroup_basic", extension):
        kb.extension(each)
    matrix = "coopmat<{}, gl_ScopeSubgroup, {}, {}, gl_MatrixUse{}>"
    added = matrix.format(sums, m, n, "Accumulator")
    kb.declare(f"shared {kind} kp_x[{high * step}];\nshared {kind} kp_y[{step * wide}];")
    kb.declare(f"shared {sums} kp_sums[{_SUBGROUPS**2 * m * n}];")
    along, across = "uint k = n % {1}u, m = n / {1}u;", "uint m = n % {0}u, k = n / {0}u;"
    x_place = (along if in_line[0] else across).format(high, step)
    y_place = (across if in_line[1] else along).format(wide, step)
    left = load(0, "left + (row + m) * kp_left_i + (first + k) * kp_left_k")
    right = load(1, "right + (column + m) * kp_right_j + (first + k) * kp_right_k")
    places = [(i, j) for i in range(_EACH) for j in range(_EACH)]
    sides = [f"{matrix.format(kind, m, depth, 'A')} a{i};" for i in range(_EACH)]
    sides += [f"{matrix.format(kind, depth, n, 'B')} b{j};" for j in range(_EACH)]
    turn = []
    for i in range(_EACH):
        at = f"(u * {_EACH}u + {i}u) * {m * step}u + k"
        turn.append(f"coopMatLoad(a{i}, kp_x, {at}, {step}u, gl_CooperativeMatrixLayoutRowMajor);")
    for j in range(_EACH):
        at = f"k * {wide}u + (v * {_EACH}u + {j}u) * {n}u"
        turn.append(f"coopMatLoad(b{j}, kp_y, {at}, {wide}u, gl_CooperativeMatrixLayoutRowMajor);")
    turn += [f"c{i}_{j} = coopMatMulAdd(a{i}, b{j}, c{i}_{j});" for i, j in places]
    lines = [
        f"row *= {high}u; column *= {wide}u;",
        f"uint u = gl_SubgroupID / {_SUBGROUPS}u, v = gl_SubgroupID % {_SUBGROUPS}u;",
        f"uint out_ = gl_SubgroupID * {m * n}u;",
        *(f"{added} c{i}_{j} = {added}({sums}(0));" for i, j in places),
        *sides,
        f"for (; first < end; first += {step}u) {{",
        f"for (uint n = lane; n < {high * step}u; n += {way.size}u) {{ {x_place} {kind} e = {kind}(0);",
        f"if (row + m < kp_rows && first + k < end) e = {kind}({left}); kp_x[m * {step}u + k] = e; }}",
        f"for (uint n = lane; n < {step * wide}u; n += {way.size}u) {{ {y_place} {kind} e = {kind}(0);",
        f"if (column + m < kp_columns && first + k < end) e = {kind}({right}); kp_y[k * {wide}u + m] = e; }}",
        "barrier();",
        f"for (uint k = 0u; k < {step}u; k += {depth}u) {{",
        *turn,
        "}",
        "barrier();",
        "}",
    ]
    for i, j in places:
        lines.append(
            f"coopMatStore(c{i}_{j}, kp_sums, out_, {n}u, gl_CooperativeMatrixLayoutRowMajor);\n"
            "subgroupMemoryBarrierShared(); subgroupBarrier();\n"
            f"for (uint n = gl_SubgroupInvocationID; n < {m * n}u; n += gl_SubgroupSize) {{\n"
            f"uint i = row + (u * {_EACH}u + {i}u) * {m}u + n / {n}u;\n"
            f"uint j = column + (v * {_EACH}u + {j}u) * {n}u + n % {n}u;\n"
            f"if (i < kp_rows && j < kp_columns) {store('kp_sums[out_ + n]')}\n}}\n"
            "subgroupMemoryBarrierShared(); subgroupBarrier();"
        )
    kb.emit("\n".join(lines))
