"""The part `instructions`, also `python -m benchmarks.callgrind`: instructions per eval, per record and per
tensor, on the null driver.

They are the same in every run to within a few, however busy the machine is, so that a change that costs a
hundred of them shows. `--profile NAME` keeps callgrind's output, for callgrind_annotate or KCachegrind.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from ..build import BuildError, build_library
from ..calls import WORKS
from ..pages import INSIDE, put
from ..parts import Stopped, chosen, driver_environment, options_of, parsed, part
from ..past import add_options, compare_and_save, find
from ..paths import ROOT, cache_directory
from ..table import aligned

TIMES = 500
_TOTAL = re.compile(r"^(?:totals|summary):\s*(\d+)", re.MULTILINE)


def count_all(names: Sequence[str], keep: dict[str, Path] | None = None) -> Iterator[tuple[str, float]]:
    """The name and the instructions of each piece of work, as it is done; `keep` says by name where a profile
    of callgrind's goes.

    Raises Stopped or BuildError.
    """
    chosen("work", WORKS, list(names))
    if not shutil.which("valgrind"):
        raise Stopped("valgrind is not installed; on Debian and Ubuntu: apt install valgrind")
    needs = "it needs valgrind/callgrind.h, which Debian's package valgrind has"
    marks = build_library(Path(__file__).with_name("marks.cpp"), needs)
    with tempfile.TemporaryDirectory(dir=cache_directory()) as folder, tempfile.TemporaryFile("w+") as errors:
        scratch = Path(folder)
        command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--quiet"]
        command += [f"--callgrind-out-file={scratch}/%p"]
        command += [sys.executable, "-m", "benchmarks.callgrind.worker", str(marks), str(TIMES), *names]
        # The same hashes, so the same dictionaries, in every run. A compiler is slow under valgrind.
        variables = os.environ | driver_environment("null")
        variables |= {"PYTHONHASHSEED": "0", "KOMPUTE_PY_COMPILE_TIMEOUT": "600"}
        with subprocess.Popen(
            command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process:
            assert process.stdout is not None
            done = 0
            try:
                for line in process.stdout:
                    name, number, status = line.split()
                    if int(status):
                        raise Stopped(_failure(f"counting {name!r} under valgrind", status, errors))
                    profile = scratch / number
                    yield name, _total(name, profile)
                    if keep and name in keep:
                        shutil.copyfile(profile, keep[name])
                    done += 1
            finally:
                if done < len(names):
                    process.kill()
        if done < len(names):
            raise Stopped(_failure(f"counting {names[done]!r} under valgrind", process.returncode, errors))


def _total(name: str, profile: Path) -> float:
    found = _TOTAL.findall(profile.read_text(errors="replace"))
    if not found:
        raise Stopped(f"callgrind wrote no total for {name!r}")
    return int(found[-1]) / TIMES


def _failure(what: str, status: object, errors: TextIO) -> str:
    errors.seek(0)
    tail = "\n".join(errors.read().strip().splitlines()[-20:])
    return f"{what} failed ({status}):\n{tail}"


_LIMITED = (3, 11)
"""The version of Python that the limits are for: others take more or fewer in the interpreter."""


@part
def main(arguments: list[str] | None = None) -> int:
    """Prints the instructions for one of each piece of work.

    Returns 1 where something could not be counted, 2 where there is nothing to compare with, 3 where
    --compare found something that takes more, and 4 if something takes more than its limit.
    """
    parser = options_of("instructions", __doc__, "work", page=INSIDE.name)
    parser.add_argument("--profile", choices=WORKS, help="keep callgrind's output of this one")
    add_options(parser)
    options = parsed(parser, arguments, "only", "profile")
    if options.compare is not None:
        find(options.compare)  # before minutes are spent
    profiled = [options.profile] if options.profile else []
    keep = {name: cache_directory() / f"callgrind.out.{name}" for name in profiled}
    counts: dict[str, float] = {}
    rows = [("instructions", "at most", "for one of")]
    try:
        for name, counted in count_all(options.only or profiled or list(WORKS), keep):
            counts[name], work = counted, WORKS[name]
            rows.append((f"{counted:,.0f}", f"{work.most:,}", work.title))
            print(f"{counted:12,.0f}  {work.title} (at most {work.most:,})", flush=True)
    except BuildError as error:
        raise Stopped(str(error)) from None
    table = aligned(rows, True, (0, 1))
    if options.markdown:
        print(table)
    for path in keep.values():
        print(f"{'':12}  profile: {os.path.relpath(path)}")
    if options.write:
        put(INSIDE, "instructions", table)
    beyond = [
        name
        for name, counted in counts.items()
        if counted > WORKS[name].most and sys.version_info[:2] == _LIMITED
    ]
    for name in beyond:
        print(f"error: {name} takes more than {WORKS[name].most:,} instructions", file=sys.stderr)
    compared = compare_and_save(options, counts, {name: work.title for name, work in WORKS.items()})
    return compared or (4 if beyond else 0)


if __name__ == "__main__":
    sys.exit(main())
