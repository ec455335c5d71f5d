"""The part `workers`: what two Dask workers do in the time of one, of the same blocks on the same machine.

Prints the least seconds of several runs, the first not counted. A device of the null driver takes 100 ms for
a block and no processor; those of lavapipe share the machine's.
"""

from __future__ import annotations

import sys
import time

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

import kompute_py as kp
import kompute_py.dask
from tests.drivers import environment

from .pages import DASK, put
from .parts import DRIVERS, chosen, driver_environment, options_of, parsed, part, when
from .table import aligned

COUNT = 32
NULL = "null driver, a device each"
_BLOCKS = {NULL: 4, DRIVERS[0]: 16 << 10}
"""KiB of a block, by device."""
_TURNS, _QUICK_TURNS = (2, 1, 2, 1, 2, 1, 2), (2, 1, 2)


def seconds(device: str, turns: tuple[int, ...] = _TURNS) -> dict[int, float]:
    """By number of workers, of at most two: the least seconds of a run over the blocks. `turns`: how many
    work in each run.
    """
    slow = environment("null", None, "memory=unified,gpu_us=100000")
    variables = slow if device == NULL else driver_environment(device)
    cluster = LocalCluster(
        n_workers=2, threads_per_worker=2, processes=True, dashboard_address=None, env=variables
    )
    with cluster as made, Client(made) as client:
        addresses = list(client.scheduler_info()["workers"])
        work = kp.ops.elementwise("x * 2 + k", name="work")
        elements = _BLOCKS[device] * 256
        x = da.zeros(COUNT * elements, chunks=elements, dtype=np.float32)
        took: dict[int, float] = {}
        for k, number in enumerate(turns):
            found = kp.dask.map_blocks(work, x, float(k))  # work that Dask has not done yet
            began = time.perf_counter()
            client.compute(found.sum(), workers=addresses[:number]).result()
            if k:  # the first makes kernels
                took[number] = min(took.get(number, np.inf), time.perf_counter() - began)
    return took


@part
def main(arguments: list[str] | None = None) -> int:
    """Measures and prints. Returns 1 if a driver is missing, 2 for a device that there is not."""
    parser = options_of("workers", __doc__, "device", page=DASK.name, markdown=False)
    parser.add_argument("--quick", action="store_true", help="a short run, to see that everything works")
    options = parsed(parser, arguments, "quick", "only")
    names = chosen("device", _BLOCKS, options.only)
    print(when("null, lavapipe"))
    rows = [("device", "blocks", "one worker", "two workers", "ratio")]
    for name in names:
        took = seconds(name, _QUICK_TURNS if options.quick else _TURNS)
        size = f"{COUNT} of {_BLOCKS[name]:,} KiB"
        rows.append((name, size, f"{took[1]:.2f} s", f"{took[2]:.2f} s", f"{took[1] / took[2]:.2f}"))
    print(aligned(rows, False))
    if options.write:
        put(DASK, "workers", aligned(rows, True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
