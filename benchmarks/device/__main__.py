"""The part `device`: each function of `kp.ops` on the machine's own GPU, beside PyTorch's on the same GPU.

Prints the median of the device's time of a call on tensors of 16 million elements, the bytes that its shaders
read and write and their rate, and PyTorch's time for the same numbers where it has the function and CUDA.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import kompute_py as kp

from ..library.calls import CALLS
from ..parts import chosen
from .by_torch import TORCH, Torch

FIRST = (
    "add", "divide", "sqrt", "exp", "sin", "power", "sum", "max", "argmax", "mean", "var", "cumsum", "sort",
    "argsort", "topk", "unique", "histogram", "bincount", "nonzero", "searchsorted", "matmul", "fft", "rfft",
    "transpose", "roll", "repeat", "take", "put", "concatenate", "where", "astype", "softmax", "layer_norm",
    "convolve", "gaussian_filter", "median", "einsum", "flip", "triu", "linspace",
)  # fmt: skip


class Tiled(np.random.Generator):
    """Random numbers of which a million is repeated: large arrays at once."""

    def __init__(self, seed: int) -> None:
        super().__init__(np.random.PCG64(seed))

    def _tiled(self, draw: Callable[[Any], Any], size: Any) -> Any:
        total = int(np.prod(size)) if size is not None else 1
        if size is None or total <= 1 << 20:
            return draw(size)
        return np.resize(draw(1 << 20), size)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return self._tiled(lambda n: super(Tiled, self).normal(loc, scale, n), size)

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        return self._tiled(lambda n: super(Tiled, self).random(n, dtype), size)

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64, endpoint: bool = False
    ) -> Any:
        return self._tiled(lambda n: super(Tiled, self).integers(low, high, n, dtype, endpoint), size)


def main(arguments: list[str] | None = None) -> int:
    """Measures and prints. Returns 2 for a function that there is not."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks device", description=__doc__)
    parser.add_argument(
        "--only", action="append", default=[], metavar="FUNCTION", help="only this one; may be repeated"
    )
    parser.add_argument("--count", type=int, default=1 << 24, help="elements (default: 2**24)")
    parser.add_argument(
        "--seconds", type=float, default=600.0, help="begins no function after so many seconds"
    )
    parser.add_argument("--device", help="as kp.Manager takes it (default: its own choice)")
    options = parser.parse_args(arguments)
    order = [*(name for name in FIRST if name in CALLS), *(name for name in CALLS if name not in FIRST)]
    try:
        names = chosen("function", dict.fromkeys(order), options.only)
    except KeyError as error:
        print(f"error: {error.args[0]}", file=sys.stderr)
        return 2
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
    tensors = [_on_device(mgr, each) for each in args]
    function = getattr(kp.ops, name)
    seconds, moved = _device_time(mgr, lambda: function(*tensors, **named))
    theirs = peer.seconds(TORCH[name], args, named) if name in TORCH else None
    shown = [name, f"{seconds * 1e3:.3f}", f"{moved / 1e6:.0f}", f"{moved / seconds / 1e9:.0f}"]
    shown += ["", ""] if theirs is None else [f"{theirs * 1e3:.3f}", f"{theirs / seconds:.2f}"]
    return f"| {' | '.join(shown)} |"


def _on_device(mgr: kp.Manager, thing: Any) -> Any:
    """Arrays as tensors in the device's own memory, also those of lists; anything else as it is."""
    if isinstance(thing, np.ndarray) and thing.ndim:
        return mgr.tensor_t(thing)
    if isinstance(thing, (list, tuple)):
        return type(thing)(_on_device(mgr, each) for each in thing)
    return thing


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


if __name__ == "__main__":
    sys.exit(main())
