"""The part `device`: each function of `kp.ops` on the machine's own GPU, beside PyTorch's on the same GPU.

Prints the median of the device's time of a call on tensors of 16 million elements, the bytes that its shaders
read and write and their rate, and PyTorch's time for the same numbers where it has the function and CUDA.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import kompute_py as kp

from .library.calls import CALLS
from .library.large import Tiled, functions, made, options_of
from .parts import part


def _method(name: str) -> Callable[..., Any]:
    return lambda torch, *args: getattr(torch, name)(*args)


_SAME = """
add subtract multiply divide sqrt exp log sin cos tanh sigmoid maximum sum max min argmax argmin mean where
matmul flip triu tril bincount searchsorted nonzero vdot inner outer trace sort unique median
"""
TORCH: dict[str, Callable[..., Any]] = {
    **{name: _method(name) for name in _SAME.split()}, "power": lambda t, x, y: t.pow(x, y),
    "var": lambda t, x: t.var(x, correction=0), "std": lambda t, x: t.std(x, correction=0),
    "cumsum": lambda t, x: t.cumsum(x.reshape(-1), 0), "cumprod": lambda t, x: t.cumprod(x.reshape(-1), 0),
    "argsort": lambda t, x: t.argsort(x, stable=True), "fft": lambda t, x: t.fft.fft(x),
    "rfft": lambda t, x: t.fft.rfft(x), "transpose": lambda t, x: x.T.contiguous(),
    "softmax": lambda t, x: t.softmax(x, -1),
}  # fmt: skip
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


@part
def main(arguments: list[str] | None = None) -> int:
    """Measures and prints. Returns 2 for a function that there is not."""
    parser = options_of("device", __doc__)
    parser.add_argument(
        "--seconds", type=float, default=600.0, help="begins no function after so many seconds"
    )
    parser.add_argument("--device", help="as kp.Manager takes it (default: its own choice)")
    options = parser.parse_args(arguments)
    names = functions(options.only)
    began = time.monotonic()
    peer = Torch()
    with kp.Manager(options.device) as mgr, mgr:
        print(f"{mgr.get_device_properties().device_name}; PyTorch: {peer.name}")
        print("| function | ms | MB moved | GB/s | PyTorch ms | theirs over ours |")
        print("|---|---|---|---|---|---|")
        for name in names:
            if time.monotonic() - began > options.seconds:
                print(f"time is up before {name}")
                break
            try:
                print(_row(mgr, name, options.count, peer), flush=True)
            except kp.KomputeError as error:
                print(f"| {name} | {type(error).__name__}: {str(error)[:100]} |", flush=True)
    return 0


def _row(mgr: kp.Manager, name: str, count: int, peer: Torch) -> str:
    call = CALLS[name]
    args, named = call.make(Tiled(0), count)
    tensors = made(args, mgr.tensor_t)
    function = getattr(kp.ops, name)
    seconds, moved = _device_time(mgr, lambda: function(*tensors, **named))
    theirs = peer.seconds(TORCH[name], args, named) if name in TORCH else None
    shown = [name, f"{seconds * 1e3:.3f}", f"{moved / 1e6:.0f}", f"{moved / seconds / 1e9:.0f}"]
    shown += ["", ""] if theirs is None else [f"{theirs * 1e3:.3f}", f"{theirs / seconds:.2f}"]
    return f"| {' | '.join(shown)} |"


def _device_time(mgr: kp.Manager, work: Callable[[], object]) -> tuple[float, int]:
    """The median of the device's seconds in a call, and the bytes that its operations read and write."""
    work()
    work()
    seconds, moved = [], 0
    for _ in range(7):
        with mgr.profile() as profile:
            work()
        records = profile.records
        seconds.append(float(np.nansum(records["seconds"])))
        moved = int(records["bytes_read"].sum() + records["bytes_written"].sum())
    return float(np.median(seconds)), moved
