"""compushady: upload and readback heaps, and an HLSL kernel."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version

import compushady
import numpy as np
from base import Call, Library, groups_of
from compushady.shaders import hlsl

# All as unordered access: version 0.17.5 gives lavapipe zeros for structured buffers that are bound as
# resources.
_HLSL = """
RWStructuredBuffer<float> left : register(u0);
RWStructuredBuffer<float> right : register(u1);
RWStructuredBuffer<float> product : register(u2);
[numthreads(64, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    uint i = id.x + id.y * 2097152, count, stride;
    product.GetDimensions(count, stride);
    if (i < count) product[i] = left[i] * right[i];
}
"""
_ADD = """
RWStructuredBuffer<float> data : register(u0);
[numthreads(64, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    uint count, stride;
    data.GetDimensions(count, stride);
    if (id.x < count) data[id.x] += 1.0;
}
"""
_FRAME = """
RWStructuredBuffer<float> source : register(u0);
RWStructuredBuffer<float> target : register(u1);
[numthreads(64, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    uint count, stride;
    target.GetDimensions(count, stride);
    if (id.x < count) target[id.x] = 2.0 * source[id.x] + 1.0;
}
"""


def _pair(nbytes: int, heap: int) -> tuple[compushady.Buffer, compushady.Buffer]:
    """Device memory, and memory of `heap` that the host sees."""
    return compushady.Buffer(nbytes, stride=4), compushady.Buffer(nbytes, heap)


def _read(inside: compushady.Buffer, landing: compushady.Buffer, out: np.ndarray) -> np.ndarray:
    inside.copy_to(landing)
    landing.readback(out)
    return out


class Compushady(Library):
    """The best device of its Vulkan back end."""

    def __init__(self, caches: bool = False) -> None:
        self._device = compushady.get_current_device()

    def about(self) -> str:
        return f"compushady {version('compushady')}, {self._device.name}"

    def call(self, left: np.ndarray, right: np.ndarray) -> Call:
        a, outside_a = _pair(left.nbytes, compushady.HEAP_UPLOAD)
        b, outside_b = _pair(left.nbytes, compushady.HEAP_UPLOAD)
        product, landing = _pair(left.nbytes, compushady.HEAP_READBACK)
        out = np.zeros_like(left)
        kernel = compushady.Compute(hlsl.compile(_HLSL), uav=[a, b, product])
        groups = groups_of(left.size)

        def multiply() -> np.ndarray:
            outside_a.upload(left)
            outside_b.upload(right)
            outside_a.copy_to(a)
            outside_b.copy_to(b)
            kernel.dispatch(*groups, 1)
            return _read(product, landing, out)

        return multiply

    def additions(self, array: np.ndarray, count: int) -> tuple[Callable[[], object], Call]:
        inside, outside = _pair(array.nbytes, compushady.HEAP_UPLOAD)
        outside.upload(array)
        outside.copy_to(inside)
        landing = compushady.Buffer(array.nbytes, compushady.HEAP_READBACK)
        kernel, groups = compushady.Compute(hlsl.compile(_ADD), uav=[inside]), groups_of(array.size)

        def run() -> None:
            for _ in range(count):
                kernel.dispatch(*groups, 1)

        return run, lambda: _read(inside, landing, np.zeros_like(array))

    def stream(self, frames: list[np.ndarray], results: list[np.ndarray]) -> Callable[[], object]:
        source, outside = _pair(frames[0].nbytes, compushady.HEAP_UPLOAD)
        target, landing = _pair(frames[0].nbytes, compushady.HEAP_READBACK)
        kernel = compushady.Compute(hlsl.compile(_FRAME), uav=[source, target])
        groups = groups_of(frames[0].size)

        def run() -> None:
            for frame, result in zip(frames, results, strict=True):
                outside.upload(frame)
                outside.copy_to(source)
                kernel.dispatch(*groups, 1)
                _read(target, landing, result)

        return run


LIBRARY = Compushady
