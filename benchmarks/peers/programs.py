"""The shaders of the part `shaders`, their data, and their results as NumPy has them.

What a shader's run takes is the driver's business, unless the library in between changes the shader, adds
barriers or submits in pieces. So all libraries should be level.

A program is a few passes over numbered buffers. Sizes are part of the sources, because not all libraries
have push constants. Each run computes everything anew, so that it may run many times and end with the same
result.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import kompute_py as kp

from ..advice import sources

_HEAD = "#version 450\nlayout(local_size_x = {x}, local_size_y = {y}) in;\n"


@dataclass(frozen=True)
class Pass:
    """A dispatch: `buffers` says which buffers its bindings 0, 1, ... are."""

    source: str
    buffers: tuple[int, ...]
    groups: tuple[int, int]


@dataclass(frozen=True)
class Program:
    """Passes in order, the buffers they begin with, and what some of them hold in the end."""

    name: str
    title: str
    passes: tuple[Pass, ...]
    make: Callable[[], tuple[list[np.ndarray], dict[int, np.ndarray]]]

    def write(self, folder: Path) -> None:
        """What libraries/serve.py reads: SPIR-V, buffers and results."""
        buffers, results = self.make()
        passes = []
        for number, each in enumerate(self.passes):
            (folder / f"{number}.spv").write_bytes(kp.compile(each.source))
            passes.append({"spirv": f"{number}.spv", "buffers": each.buffers, "groups": each.groups})
        for number, buffer in enumerate(buffers):
            np.save(folder / f"buffer{number}.npy", buffer)
        for number, result in results.items():
            np.save(folder / f"result{number}.npy", result)
        plan = {
            "passes": passes,
            "buffers": [f"buffer{number}.npy" for number in range(len(buffers))],
            "results": {str(number): f"result{number}.npy" for number in results},
        }
        (folder / "plan.json").write_text(json.dumps(plan))


def _source(body: str, x: int, y: int = 1, **sizes: int) -> str:
    constants = "".join(f"const uint {name} = {value};\n" for name, value in sizes.items())
    return _HEAD.format(x=x, y=y) + constants + body


def _random(count: int) -> np.ndarray:
    return np.random.default_rng(count).random(count, np.float32)


# -- saxpy ---------------------------------------------------------------------------------------------------

_LENGTH = 4 << 20
_SAXPY = """
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Y { float y[]; };
layout(binding = 2) writeonly buffer Z { float z[]; };
void main() { uint i = gl_GlobalInvocationID.x; z[i] = 2.5 * x[i] + y[i]; }
"""


def _saxpy_data() -> tuple[list[np.ndarray], dict[int, np.ndarray]]:
    x, y = _random(_LENGTH), np.arange(_LENGTH, dtype=np.float32)
    return [x, y, np.zeros_like(x)], {2: np.float32(2.5) * x + y}


# -- reduction -----------------------------------------------------------------------------------------------

_REDUCTION = """
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) writeonly buffer S { float sums[]; };
shared float part[256];
void main() {
    uint l = gl_LocalInvocationID.x, at = gl_WorkGroupID.x * 256 * EACH + l;
    float sum = 0.0;
    for (uint k = 0; k < EACH; ++k) sum += a[at + k * 256];
    part[l] = sum;
    barrier();
    for (uint half_ = 128; half_ > 0; half_ /= 2) {
        if (l < half_) part[l] += part[l + half_];
        barrier();
    }
    if (l == 0) sums[gl_WorkGroupID.x] = part[0];
}
"""
_PARTS = _LENGTH // (256 * 16)


def _reduction_data() -> tuple[list[np.ndarray], dict[int, np.ndarray]]:
    a = _random(_LENGTH)
    total = np.array([a.sum(dtype=np.float64)], np.float32)
    return [a, np.zeros(_PARTS, np.float32), np.zeros(1, np.float32)], {2: total}


# -- matrix products -----------------------------------------------------------------------------------------

_SIZE = 256
_TILED = sources.TILED.replace(sources.N, f"const uint n = {_SIZE};")
# An array of vectors would be memory to some of the libraries' compilers.
_BLOCKS = """
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) readonly buffer B { float b[]; };
layout(binding = 2) writeonly buffer C { float c[]; };
void main() {
    uint j = 4 * gl_GlobalInvocationID.x, i = 4 * gl_GlobalInvocationID.y;
    vec4 sum0 = vec4(0.0), sum1 = vec4(0.0), sum2 = vec4(0.0), sum3 = vec4(0.0);
    for (uint k = 0; k < N; ++k) {
        uint at = k * N + j;
        vec4 row = vec4(b[at], b[at + 1], b[at + 2], b[at + 3]);
        sum0 += a[i * N + k] * row;
        sum1 += a[(i + 1) * N + k] * row;
        sum2 += a[(i + 2) * N + k] * row;
        sum3 += a[(i + 3) * N + k] * row;
    }
    for (uint q = 0; q < 4; ++q) {
        c[i * N + j + q] = sum0[q];
        c[(i + 1) * N + j + q] = sum1[q];
        c[(i + 2) * N + j + q] = sum2[q];
        c[(i + 3) * N + j + q] = sum3[q];
    }
}
"""


def _matrices_data() -> tuple[list[np.ndarray], dict[int, np.ndarray]]:
    a, b = _random(2 * _SIZE * _SIZE).reshape(2, _SIZE, _SIZE)
    return [a.ravel(), b.ravel(), np.zeros(_SIZE * _SIZE, np.float32)], {2: (a @ b).ravel()}


# -- stencil -------------------------------------------------------------------------------------------------

_SIDE = 2048
_STENCIL = """
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) writeonly buffer B { float b[]; };
void main() {
    uint x = gl_GlobalInvocationID.x, y = gl_GlobalInvocationID.y, i = y * N + x;
    if (x == 0 || y == 0 || x == N - 1 || y == N - 1) { b[i] = a[i]; return; }
    b[i] = 0.6 * a[i] + 0.1 * (a[i - 1] + a[i + 1] + a[i - N] + a[i + N]);
}
"""


def _stencil_data() -> tuple[list[np.ndarray], dict[int, np.ndarray]]:
    a = _random(_SIDE * _SIDE).reshape(_SIDE, _SIDE)
    b = a.copy()
    around = a[1:-1, :-2] + a[1:-1, 2:] + a[:-2, 1:-1] + a[2:, 1:-1]
    b[1:-1, 1:-1] = np.float32(0.6) * a[1:-1, 1:-1] + np.float32(0.1) * around
    return [a.ravel(), np.zeros(_SIDE * _SIDE, np.float32)], {1: b.ravel()}


# -- histogram -----------------------------------------------------------------------------------------------

_CLEAR = """
layout(binding = 0) writeonly buffer H { uint bins[]; };
void main() { bins[gl_GlobalInvocationID.x] = 0; }
"""


def _histogram_data() -> tuple[list[np.ndarray], dict[int, np.ndarray]]:
    a = np.random.default_rng(1).integers(0, 256, _LENGTH, np.uint32)
    return [a, np.zeros(256, np.uint32)], {1: np.bincount(a, minlength=256).astype(np.uint32)}


# -- scan ----------------------------------------------------------------------------------------------------

_ITEMS = 1 << 20
_SCAN = """
layout(binding = 0) readonly buffer A { uint a[]; };
layout(binding = 1) writeonly buffer B { uint b[]; };
layout(binding = 2) writeonly buffer S { uint sums[]; };
shared uint part[256];
void main() {
    uint l = gl_LocalInvocationID.x, at = gl_GlobalInvocationID.x * EACH, total = 0;
    for (uint k = 0; k < EACH; ++k) total += a[at + k];
    part[l] = total;
    barrier();
    for (uint step_ = 1; step_ < 256; step_ *= 2) {
        uint before = l >= step_ ? part[l - step_] : 0;
        barrier();
        part[l] += before;
        barrier();
    }
    uint sum = part[l] - total;
    for (uint k = 0; k < EACH; ++k) { sum += a[at + k]; b[at + k] = sum; }
    if (l == 255) sums[gl_WorkGroupID.x] = sum;
}
"""
_ADD = """
layout(binding = 0) buffer B { uint b[]; };
layout(binding = 1) readonly buffer S { uint sums[]; };
void main() {
    uint group = gl_GlobalInvocationID.x / BLOCK;
    if (group > 0) b[gl_GlobalInvocationID.x] += sums[group - 1];
}
"""
_BLOCK = 256 * 16
_BLOCK_COUNT = _ITEMS // _BLOCK


def _scan_data() -> tuple[list[np.ndarray], dict[int, np.ndarray]]:
    a = np.random.default_rng(2).integers(0, 100, _ITEMS, np.uint32)
    sums = np.zeros(_BLOCK_COUNT, np.uint32)
    return [a, np.zeros_like(a), sums, sums, sums[:1]], {1: np.cumsum(a, dtype=np.uint32)}


PROGRAMS = {
    program.name: program
    for program in (
        Program(
            "saxpy",
            "saxpy, 4 Mi numbers",
            (Pass(_source(_SAXPY, 128), (0, 1, 2), (_LENGTH // 128, 1)),),
            _saxpy_data,
        ),
        Program(
            "reduction",
            "sum of 4 Mi numbers, in shared memory",
            (
                Pass(_source(_REDUCTION, 256, EACH=16), (0, 1), (_PARTS, 1)),
                Pass(_source(_REDUCTION, 256, EACH=_PARTS // 256), (1, 2), (1, 1)),
            ),
            _reduction_data,
        ),
        Program(
            "matrix-tiled",
            "product of 256 x 256 matrices, tiles in shared memory",
            (Pass(_TILED, (0, 1, 2), (_SIZE // 16, _SIZE // 16)),),
            _matrices_data,
        ),
        Program(
            "matrix-blocks",
            "the same, 4 x 4 elements for each invocation",
            (Pass(_source(_BLOCKS, 8, 8, N=_SIZE), (0, 1, 2), (_SIZE // 32, _SIZE // 32)),),
            _matrices_data,
        ),
        Program(
            "stencil",
            "five-point stencil, 2048 x 2048",
            (Pass(_source(_STENCIL, 32, 4, N=_SIDE), (0, 1), (_SIDE // 32, _SIDE // 4)),),
            _stencil_data,
        ),
        Program(
            "histogram",
            "histogram of 4 Mi numbers, 256 bins in shared memory",
            (
                Pass(_source(_CLEAR, 256), (1,), (1, 1)),
                Pass(sources.HISTOGRAM, (0, 1), (_LENGTH // (256 * 16), 1)),
            ),
            _histogram_data,
        ),
        Program(
            "scan",
            "prefix sum of 1 Mi numbers, three passes",
            (
                Pass(_source(_SCAN, 256, EACH=16), (0, 1, 2), (_BLOCK_COUNT, 1)),
                Pass(_source(_SCAN, 256, EACH=_BLOCK_COUNT // 256), (2, 3, 4), (1, 1)),
                Pass(_source(_ADD, 256, BLOCK=_BLOCK), (1, 3), (_ITEMS // 256, 1)),
            ),
            _scan_data,
        ),
    )
}
"""By name. Data and results do not depend on where they run."""
