"""The part `shaders`: the same SPIR-V through kompute_py, compushady and wgpu, in turns on one Vulkan driver.

Prints the processor time of a run, and how many times as long the others take.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

import kompute_py as kp
from tests.drivers import DriverUnavailableError

from ..machine import describe
from ..peers.__main__ import Report, compare, lines, show
from ..peers.environments import OURS, PEERS
from ..peers.processes import Plan, Task
from .programs import PROGRAMS, Program

LIBRARIES = (OURS.name, "compushady", "wgpu")
_DRIVERS = ("lavapipe", "swiftshader")
FULL = Plan(generations=3, rounds=5, block_seconds=0.05, limit=3.0)
QUICK = Plan(generations=1, rounds=2, block_seconds=0.005, limit=5.0)

LEGEND = """\
Least processor time of a run, all threads, over blocks that the libraries' processes did in turns; the
processes were started {generations} times. In parentheses: times as long as kompute_py. The SPIR-V is the
same, but for the numbers of its bindings with compushady; results are checked before times are taken.
kompute_py and wgpu keep indices inside of arrays, compushady leaves that to the driver."""


def write(program: Program, folder: Path) -> None:
    """What libraries/serve.py reads: SPIR-V, buffers and results."""
    buffers, results = program.make()
    plan: dict[str, object] = {"passes": [], "buffers": [], "results": {}}
    passes = []
    for number, each in enumerate(program.passes):
        name = f"{number}.spv"
        (folder / name).write_bytes(kp.compile(each.source))
        passes.append({"spirv": name, "buffers": each.buffers, "groups": each.groups})
    plan["passes"] = passes
    plan["buffers"] = [f"buffer{number}.npy" for number in range(len(buffers))]
    plan["results"] = {str(number): f"result{number}.npy" for number in results}
    for number, buffer in enumerate(buffers):
        np.save(folder / f"buffer{number}.npy", buffer)
    for number, result in results.items():
        np.save(folder / f"result{number}.npy", result)
    (folder / "plan.json").write_text(json.dumps(plan))


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks shaders", description=__doc__)
    parser.add_argument(
        "--only", action="append", default=[], choices=PROGRAMS, help="only this shader; may be repeated"
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
    report = Report(describe(), options.driver)
    with tempfile.TemporaryDirectory() as scratch:
        tasks = []
        for program in PROGRAMS.values():
            if not options.only or program.name in options.only:
                folder = Path(scratch) / program.name
                folder.mkdir()
                write(program, folder)
                tasks.append(Task(program.name, program.title, "shaders", str(folder)))
        try:
            compare(report, [PEERS[name] for name in names], tasks, plan)
        except DriverUnavailableError as error:
            print(f"{options.driver} is not available: {error}", file=sys.stderr)
            return 1
    table = lines(tasks, names, report.processor, report.lost)
    return show(report, table, LEGEND.format(generations=plan.generations), options, "shaders")


if __name__ == "__main__":
    sys.exit(main())
