"""The part `shaders`: the same SPIR-V through kompute_py, compushady and wgpu, in turns on one Vulkan driver.

Prints the processor time of a run, and how many times as long the others take.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

import kompute_py as kp

from ..peers.__main__ import Report, measure, parsed, parser_of
from ..peers.environments import OURS
from ..peers.processes import Plan, Task
from .programs import PROGRAMS, Program

LIBRARIES = (OURS.name, "compushady", "wgpu")
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


def main(arguments: list[str] | None = None) -> int:
    """Measures and prints. Returns 1 where a library could not be measured."""
    options = parsed(parser_of("shaders", __doc__, LIBRARIES, PROGRAMS), arguments)
    plan = QUICK if options.quick else FULL
    with tempfile.TemporaryDirectory() as scratch:
        tasks = []
        for program in PROGRAMS.values():
            if not options.only or program.name in options.only:
                folder = Path(scratch) / program.name
                folder.mkdir()
                write(program, folder)
                tasks.append(Task(program.name, program.title, "shaders", str(folder)))
        return measure("shaders", tasks, LIBRARIES, plan, options, LEGEND, Report.processor)


if __name__ == "__main__":
    sys.exit(main())
