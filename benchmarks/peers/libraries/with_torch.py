"""PyTorch on the CPU: tensors that share NumPy's memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from base import Additions, Library, Multiplication, Transfer


class Torch(Library):
    """Its operations, with the threads that it takes by default."""

    def __init__(self, caches: bool = False) -> None: ...

    def about(self) -> str:
        return f"PyTorch {torch.__version__}, CPU, {torch.get_num_threads()} threads"

    def transfer(self, array: np.ndarray) -> Transfer:
        outside, inside = torch.from_numpy(array), torch.zeros(array.size)
        out = np.zeros_like(array)
        landing = torch.from_numpy(out)

        def download() -> np.ndarray:
            landing.copy_(inside)
            return out

        return Transfer(lambda: inside.copy_(outside), download)

    def multiplication(self, left: np.ndarray, right: np.ndarray) -> Multiplication:
        a, b, product = torch.from_numpy(left), torch.from_numpy(right), torch.zeros(left.size)

        def multiply() -> np.ndarray:
            return torch.mul(a, b, out=product).numpy()

        return Multiplication(multiply, multiply, product.numpy)

    def call(self, left: np.ndarray, right: np.ndarray) -> Callable[[], np.ndarray]:
        out = np.zeros_like(left)

        def multiply() -> np.ndarray:
            torch.mul(torch.from_numpy(left), torch.from_numpy(right), out=torch.from_numpy(out))
            return out

        return multiply

    def additions(self, array: np.ndarray, count: int) -> Additions:
        inside = torch.from_numpy(array.copy())

        def run() -> None:
            for _ in range(count):
                inside.add_(1)

        return Additions(run, inside.numpy)

    def stream(self, frames: list[np.ndarray], results: list[np.ndarray]) -> Callable[[], object]:
        def run() -> None:
            for frame, result in zip(frames, results):  # noqa: B905 - its Python may be an older one
                out = torch.from_numpy(result)
                torch.mul(torch.from_numpy(frame), 2, out=out)
                out.add_(1)

        return run


LIBRARY = Torch
