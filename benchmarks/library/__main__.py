"""The part `library`: time per element of each function of `kp.ops`, beside NumPy's, on lavapipe.

Prints the least time of a call on tensors, and of NumPy's on arrays, in turns, over a million elements. The
table of docs/reference/library.md takes them from benchmarks/library/measured, which `--write` writes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from tests.drivers import DriverUnavailableError

from ..drivers import driver_environment
from ..machine import describe
from ..paths import ROOT

MEASURED = Path(__file__).with_name("measured")
"""The folder of what is measured: AREA.json for each area."""


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks library", description=__doc__)
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="only this function; may be repeated"
    )
    parser.add_argument("--driver", default="lavapipe", choices=("lavapipe", "swiftshader"))
    parser.add_argument("--quick", action="store_true", help="a short run, to see that everything works")
    parser.add_argument("--write", action="store_true", help="keep the times for the page")
    options = parser.parse_args(arguments)
    if options.write and (options.quick or options.driver != "lavapipe"):
        parser.error("the page has figures of a full run on lavapipe")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Measures and prints. Returns 1 if a function could not be measured."""
    from .calls import CALLS

    options = _parse(arguments)
    names = options.only or list(CALLS)
    if unknown := [name for name in names if name not in CALLS]:
        print(f"error: there is no function {unknown[0]!r}; there are: {', '.join(CALLS)}", file=sys.stderr)
        return 2
    try:
        environment = driver_environment(options.driver)
    except DriverUnavailableError as error:
        print(f"error: {options.driver} is not available: {error}", file=sys.stderr)
        return 1
    machine = describe()
    when = f"{machine['date']}, {machine['processor']}, {machine['system']}, {options.driver}"
    print(when)
    command = [sys.executable, "-m", "benchmarks.library.worker", "quick" if options.quick else "full"]
    found: dict[str, list[str]] = {}
    with subprocess.Popen(
        [*command, *names], cwd=ROOT, env=os.environ | environment, stdout=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdout is not None
        for line in worker.stdout:
            answer = json.loads(line)
            found[answer["name"]] = [_shown(answer["ours"]), _shown(answer["numpy"])]
            ours, numpy = found[answer["name"]]
            print(f"{answer['name']:24} {ours:>9} ns per element, NumPy {numpy or '-'}", flush=True)
    if options.write and found:
        _keep(when, found, measured() if options.only else {})
    if missing := [name for name in names if name not in found]:
        print(f"error: {missing[0]} was not measured", file=sys.stderr)
    return 1 if missing else 0


def measured() -> dict[str, list[str]]:
    """The kept times of our call and of NumPy's, by function."""
    files = sorted(MEASURED.glob("*.json"))
    return {
        name: times for file in files for name, times in json.loads(file.read_text())["functions"].items()
    }


def _keep(when: str, found: dict[str, list[str]], before: dict[str, list[str]]) -> None:
    """Writes the files of the areas that `found` has functions of."""
    from kompute_py import ops

    for module, names in ops._MODULES.items():
        if not set(names) & set(found):
            continue
        times = {**before, **found}
        kept = {"when": when, "functions": {name: times[name] for name in sorted(names) if name in times}}
        file = MEASURED / f"{module.rpartition('.')[2].removeprefix('_')}.json"
        file.write_text(json.dumps(kept, indent=1) + "\n")


def _shown(nanoseconds: float | None) -> str:
    """Two digits, or all before the point."""
    if nanoseconds is None:
        return ""
    digits = 2 if nanoseconds < 1 else 1 if nanoseconds < 100 else 0
    return f"{nanoseconds:.{digits}f}"


if __name__ == "__main__":
    sys.exit(main())
