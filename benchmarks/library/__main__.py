"""The part `library`: time per element of each function of `kp.ops`, beside NumPy's, on lavapipe.

Prints the least time of a call on tensors, and of NumPy's on arrays, in turns, over a million elements. The
table of docs/reference/library.md takes them from benchmarks/library/measured.json, which `--write` writes.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from ..workers import measure, options_of, parsed, when

MEASURED = Path(__file__).with_name("measured.json")
"""By area: when it was measured, and by function our time and NumPy's."""


def main(arguments: list[str] | None = None) -> int:
    """Measures and prints. Returns 1 if a function could not be measured."""
    from .calls import CALLS

    options = parsed(options_of("library", __doc__, "function", "keep the times for the page"), arguments)
    found: dict[str, list[str]] = {}

    def show(answer: dict[str, Any]) -> None:
        ours, numpy = found[answer["name"]] = [_shown(answer["ours"]), _shown(answer["numpy"])]
        print(f"{answer['name']:24} {ours:>9} ns per element, NumPy {numpy or '-'}", flush=True)

    status = measure("library", "function", CALLS, options, show)
    if options.write and found:
        _keep(when(options.driver), found, measured() if options.only else {})
    return status


def measured() -> dict[str, list[str]]:
    """The kept times of our call and of NumPy's, by function."""
    areas = json.loads(MEASURED.read_text()).values()
    return {name: times for area in areas for name, times in area.items() if name != "when"}


def _keep(moment: str, found: dict[str, list[str]], before: dict[str, list[str]]) -> None:
    """Writes the areas that `found` has functions of, with a line for each function."""
    from kompute_py import ops

    areas = json.loads(MEASURED.read_text())
    for module, names in ops._MODULES.items():
        if set(names) & set(found):
            times = {**before, **found}
            kept = {name: times[name] for name in sorted(names) if name in times}
            areas[module.rpartition(".")[2]] = {"when": moment, **kept}
    lines = json.dumps(areas, indent=1, sort_keys=False)
    MEASURED.write_text(re.sub(r"\[\s+(.*?),\s+(.*?)\s+\]", r"[\1, \2]", lines) + "\n")


def _shown(nanoseconds: float | None) -> str:
    """Two digits, or all before the point."""
    if nanoseconds is None:
        return ""
    digits = 2 if nanoseconds < 1 else 1 if nanoseconds < 100 else 0
    return f"{nanoseconds:.{digits}f}"


if __name__ == "__main__":
    sys.exit(main())
