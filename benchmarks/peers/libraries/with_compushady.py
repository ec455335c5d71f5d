"""compushady: upload and readback heaps, and an HLSL kernel."""

from __future__ import annotations

from importlib.metadata import version

import compushady
import numpy as np
from base import LOCAL_SIZE, Library, Multiplication, Transfer
from compushady.shaders import hlsl

# All as unordered access: version 0.17.5 gives lavapipe zeros for structured buffers that are bound as
# resources.
_HLSL = """
RWStructuredBuffer<float> left : register(u0);
RWStructuredBuffer<float> right : register(u1);
RWStructuredBuffer<float> product : register(u2);
[numthreads(64, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) { product[id.x] = left[id.x] * right[id.x]; }
"""


def _pair(nbytes: int, heap: int) -> tuple[compushady.Buffer, compushady.Buffer]:
    """Device memory, and memory of `heap` that the host sees."""
    return compushady.Buffer(nbytes, stride=4), compushady.Buffer(nbytes, heap)


class Compushady(Library):
    """The best device of its Vulkan back end."""

    def __init__(self) -> None:
        self._device = compushady.get_current_device()

    def about(self) -> str:
        return f"compushady {version('compushady')}, {self._device.name}"

    def transfer(self, array: np.ndarray) -> Transfer:
        inside, outside = _pair(array.nbytes, compushady.HEAP_UPLOAD)
        landing = compushady.Buffer(array.nbytes, compushady.HEAP_READBACK)
        out = np.zeros_like(array)

        def upload() -> None:
            outside.upload(array)
            outside.copy_to(inside)

        def download() -> np.ndarray:
            inside.copy_to(landing)
            landing.readback(out)
            return out

        return Transfer(upload, download)

    def multiplication(self, left: np.ndarray, right: np.ndarray) -> Multiplication:
        a, outside_a = _pair(left.nbytes, compushady.HEAP_UPLOAD)
        b, outside_b = _pair(left.nbytes, compushady.HEAP_UPLOAD)
        product, landing = _pair(left.nbytes, compushady.HEAP_READBACK)
        out = np.zeros_like(left)
        kernel = compushady.Compute(hlsl.compile(_HLSL), uav=[a, b, product])
        groups = left.size // LOCAL_SIZE

        def read() -> np.ndarray:
            product.copy_to(landing)
            landing.readback(out)
            return out

        def dispatch() -> None:
            kernel.dispatch(groups, 1, 1)

        def round_trip() -> np.ndarray:
            outside_a.upload(left)
            outside_b.upload(right)
            outside_a.copy_to(a)
            outside_b.copy_to(b)
            dispatch()
            return read()

        return Multiplication(round_trip, dispatch, read)


LIBRARY = Compushady
