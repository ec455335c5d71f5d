"""PyTorch on the CPU: tensors that share NumPy's memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from base import Call, Library


class Torch(Library):
    """Its operations, with the threads that it takes by default."""

    def __init__(self, caches: bool = False) -> None: ...

    def about(self) -> str:
        return f"PyTorch {torch.__version__}, CPU, {torch.get_num_threads()} threads"

    def call(self, left: np.ndarray, right: np.ndarray) -> Call:
        out = np.zeros_like(left)

        def multiply() -> np.ndarray:
            torch.mul(torch.from_numpy(left), torch.from_numpy(right), out=torch.from_numpy(out))
            return out

        return multiply

    def additions(self, array: np.ndarray, count: int) -> tuple[Callable[[], object], Call]:
        inside = torch.from_numpy(array.copy())

        def run() -> None:
            for _ in range(count):
                inside.add_(1)

        return run, inside.numpy

    def stream(self, frames: list[np.ndarray], results: list[np.ndarray]) -> Callable[[], object]:
        def run() -> None:
            for frame, result in zip(frames, results):  # noqa: B905 - its Python may be an older one
                out = torch.from_numpy(result)
                torch.mul(torch.from_numpy(frame), 2, out=out)
                out.add_(1)

        return run


LIBRARY = Torch
