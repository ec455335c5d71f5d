"""PyTorch's functions for those of `kp.ops`, on CUDA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

TORCH: dict[str, Callable[..., Any]] = {
    **{
        name: (lambda own: lambda t, *args: getattr(t, own)(*args))(name)
        for name in (
            *(
                "add",
                "subtract",
                "multiply",
                "divide",
                "sqrt",
                "exp",
                "log",
                "sin",
                "cos",
                "tanh",
                "sigmoid",
                "maximum",
            ),
            *("sum", "max", "min", "argmax", "argmin", "mean", "where", "matmul", "flip", "triu", "tril"),
            *("bincount", "searchsorted", "nonzero", "vdot", "inner", "outer", "trace"),
        )
    },
    "power": lambda t, x, y: t.pow(x, y),
    "var": lambda t, x: t.var(x, correction=0),
    "std": lambda t, x: t.std(x, correction=0),
    "cumsum": lambda t, x: t.cumsum(x.reshape(-1), 0),
    "cumprod": lambda t, x: t.cumprod(x.reshape(-1), 0),
    "sort": lambda t, x: t.sort(x),
    "argsort": lambda t, x: t.argsort(x, stable=True),
    "unique": lambda t, x: t.unique(x),
    "fft": lambda t, x: t.fft.fft(x),
    "rfft": lambda t, x: t.fft.rfft(x),
    "transpose": lambda t, x: x.T.contiguous(),
    "median": lambda t, x: t.median(x),
    "softmax": lambda t, x: t.softmax(x, -1),
}
"""By the name in `kp.ops`: ``call(torch, *tensors)``."""


class Torch:
    """PyTorch on the first CUDA device, if both are here."""

    def __init__(self) -> None:
        try:
            import torch
        except ImportError:
            self.torch, self.name = None, "not installed"
            return
        self.torch = torch if torch.cuda.is_available() else None
        self.name = (
            f"{torch.__version__}, {torch.cuda.get_device_name()}" if self.torch else "has no CUDA device"
        )

    def seconds(self, call: Callable[..., Any], args: Any, named: dict[str, Any]) -> float | None:
        """The median of the device's seconds; None without PyTorch, or if it refuses the arguments."""
        torch = self.torch
        if torch is None or named:
            return None
        tensors = [self._tensor(each) for each in args]
        try:
            call(torch, *tensors)
            found = []
            for _ in range(7):
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                begin.record()
                call(torch, *tensors)
                end.record()
                torch.cuda.synchronize()
                found.append(begin.elapsed_time(end) / 1e3)
        except (RuntimeError, TypeError, ValueError, AttributeError):
            return None
        return float(np.median(found))

    def _tensor(self, thing: Any) -> Any:
        return (
            self.torch.from_numpy(np.ascontiguousarray(thing)).cuda()
            if isinstance(thing, np.ndarray)
            else thing
        )
