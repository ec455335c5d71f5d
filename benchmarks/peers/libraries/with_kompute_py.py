"""kompute_py: recorded sequences, and write() and read()."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from base import ADD_GLSL, FRAME_GLSL, Call, Library

import kompute_py as kp

_CALL = """
#version 450
layout(local_size_x = LOCAL) in;
layout(set = 0, binding = 0) readonly buffer Left { float left[]; };
layout(set = 0, binding = 1) readonly buffer Right { float right[]; };
layout(set = 0, binding = 2) writeonly buffer Product { float product[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < product.length()) product[i] = left[i] * right[i]; }
"""


class KomputePy(Library):
    """One Manager with the defaults of a user's."""

    def __init__(self, caches: bool = False) -> None:
        self._manager = kp.Manager() if caches else kp.Manager(pipeline_cache_dir="")

    def about(self) -> str:
        return f"kompute_py {kp.__version__}, {self._manager.get_device_properties()['device_name']}"

    def call(self, left: np.ndarray, right: np.ndarray) -> Call:
        # One dimension, as users write it; larger groups where 65,535 of 64 are too few.
        local = 64 if left.size <= 1 << 20 else 512
        kernel = self._manager.kernel(_CALL.replace("LOCAL", str(local)))
        out = np.zeros_like(left)
        return lambda: kernel(left, right, out)

    def additions(self, array: np.ndarray, count: int) -> tuple[Callable[[], object], Call]:
        tensor = self._manager.tensor(array)
        add, sequence = self._manager.kernel(ADD_GLSL), self._manager.sequence()
        sequence.record(kp.OpSyncDevice([tensor])).eval()
        sequence.clear()
        for _ in range(count):
            sequence.record(add.bind(tensor))
        return sequence.eval, tensor.read

    def stream(self, frames: list[np.ndarray], results: list[np.ndarray]) -> Callable[[], object]:
        manager = self._manager
        frame, result = manager.tensor(frames[0]), manager.zeros(frames[0].shape)
        work = manager.kernel(FRAME_GLSL).bind(source=frame, target=result)
        recorded = manager.sequence().record(kp.OpSyncDevice([frame])).record(work)
        recorded.record(kp.OpSyncLocal([result]))

        def run() -> None:
            made = recorded.stream(frames, inputs=[frame], outputs=[result])
            for out, landing in zip(made, results, strict=True):
                np.copyto(landing, out)

        return run


LIBRARY = KomputePy
