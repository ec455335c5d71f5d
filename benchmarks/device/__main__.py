"""The part `device`: each function of `kp.ops` on the machine's own GPU, beside PyTorch's on the same GPU.

Prints the median of the device's time of a call on tensors of 16 million elements, the bytes that its shaders
read and write and their rate, and PyTorch's time for the same numbers where it has the function and CUDA.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

import kompute_py as kp

from ..library.calls import CALLS
from ..library.large import Tiled, functions, made, options_of
from .by_torch import TORCH, Torch


def main(arguments: list[str] | None = None) -> int:
    """Measures and prints. Returns 2 for a function that there is not."""
    parser = options_of("device", __doc__)
    parser.add_argument(
        "--seconds", type=float, default=600.0, help="begins no function after so many seconds"
    )
    parser.add_argument("--device", help="as kp.Manager takes it (default: its own choice)")
    options = parser.parse_args(arguments)
    try:
        names = functions(options.only)
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


if __name__ == "__main__":
    sys.exit(main())
