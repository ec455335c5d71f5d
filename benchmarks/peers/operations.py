"""The part `operations`: operations of kp.ops beside NumPy's, PyTorch's and Taichi's, in turns on one driver.

Prints how long each takes, and how many times as long as kompute_py. Data is in the library's memory before
and after: on the device, or in arrays.
"""

from __future__ import annotations

import sys

from .__main__ import Report, measure, parsed, parser_of
from .environments import OURS
from .processes import Plan, Task

LIBRARIES = (OURS.name, "numpy", "torch", "taichi", "taichi-cpu")
TASKS = {
    task.name: task
    for task in (
        Task("sort", "sort 1 M ints of 32 bits", "operation", "sort"),
        Task("matmul", "product of 512 x 512 matrices of float32", "operation", "matmul"),
        Task("fft", "Fourier transform of 1 M complex64", "operation", "fft"),
        Task("rfft", "Fourier transform of 1 M float32", "operation", "rfft"),
        Task("normal", "16 M normal numbers of float32", "operation", "normal"),
        Task("permutation", "random order of 1 M numbers", "operation", "permutation"),
        Task("sum", "sum of 16 M float32", "operation", "sum"),
        Task("cumsum", "running sums of 16 M float32", "operation", "cumsum"),
    )
}
FULL = Plan(generations=3, rounds=5, block_seconds=0.05, limit=6.0)
QUICK = Plan(generations=1, rounds=2, block_seconds=0.005, limit=5.0)

LEGEND = """\
Lower quartiles over blocks that the libraries' processes did in turns; the processes were started
{generations} times. In parentheses: times as long as kompute_py. Each library is used in the fastest way
that its documentation shows, and the results are checked before times are taken. A dash: the library has no
such operation."""


def main(arguments: list[str] | None = None) -> int:
    """Measures and prints. Returns 1 where a library could not be measured."""
    options = parsed(parser_of("operations", __doc__, LIBRARIES, TASKS), arguments)
    tasks = [task for name, task in TASKS.items() if not options.only or name in options.only]
    plan = QUICK if options.quick else FULL
    return measure("operations", tasks, LIBRARIES, plan, options, LEGEND, Report.typical)


if __name__ == "__main__":
    sys.exit(main())
