"""The part `operations`: operations of kp.ops beside NumPy's, PyTorch's and Taichi's, in turns on one driver.

Prints how long each takes, and how many times as long as kompute_py. Data is in the library's memory before
and after: on the device, or in arrays.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.drivers import DriverUnavailableError

from ..machine import describe
from .__main__ import Report, compare, lines, show
from .environments import OURS, PEERS
from .processes import Plan, Task

LIBRARIES = (OURS.name, "numpy", "torch", "taichi", "taichi-cpu")
_DRIVERS = ("lavapipe", "swiftshader")
TASKS = {
    task.name: task
    for task in (
        Task("sort", "sort 1 M ints of 32 bits", "operation", "sort"),
        Task("matmul", "product of 512 x 512 matrices of float32", "operation", "matmul"),
        Task("fft", "Fourier transform of 1 M complex64", "operation", "fft"),
        Task("rfft", "Fourier transform of 1 M float32", "operation", "rfft"),
        Task("normal", "16 M normal numbers of float32", "operation", "normal"),
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


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks operations", description=__doc__)
    parser.add_argument(
        "--only", action="append", default=[], choices=TASKS, help="only this operation; may be repeated"
    )
    parser.add_argument("--driver", default=_DRIVERS[0], choices=_DRIVERS)
    parser.add_argument("--quick", action="store_true", help="a short run, to see that everything works")
    parser.add_argument("--markdown", action="store_true", help="print Markdown, as the page has it")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers to FILE too")
    parser.add_argument(
        "--peer", action="append", default=[], choices=LIBRARIES[1:], help="only this library, beside ours"
    )
    parser.add_argument("--write", action="store_true", help="put the table into docs/inside/performance.md")
    options = parser.parse_args(arguments)
    if options.write and (options.quick or options.only or options.peer or options.driver != _DRIVERS[0]):
        parser.error("the page has all figures, of a full run on lavapipe")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Measures and prints. Returns 1 where a library could not be measured."""
    options = _parse(arguments)
    plan = QUICK if options.quick else FULL
    names = [name for name in LIBRARIES if name == OURS.name or not options.peer or name in options.peer]
    tasks = [task for name, task in TASKS.items() if not options.only or name in options.only]
    report = Report(describe(), options.driver)
    try:
        compare(report, [PEERS[name] for name in names], tasks, plan)
    except DriverUnavailableError as error:
        print(f"{options.driver} is not available: {error}", file=sys.stderr)
        return 1
    table = lines(tasks, names, report.typical, report.lost)
    return show(report, table, LEGEND.format(generations=plan.generations), options, "operations")


if __name__ == "__main__":
    sys.exit(main())
