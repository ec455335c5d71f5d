"""Writes the tables of docs/reference/capabilities.md from the marks of tests.

    python tools/capabilities.py            # rewrites the page: `./dev format` does it
    python tools/capabilities.py --check    # fails if the page is not what the tests say

A test of a capability has the mark ``capability(keys, text, calls, page)``: the keys of the features that it
serves ("K12 S7-S10", or none), what it does, its names as users write them ("Tensor.map, kp.alive"), and the
page that shows it.
Each key has a mark, or stands in the page's table "Not offered", which is written by hand.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGE = DOCS / "reference" / "capabilities.md"
COUNTS = {"K": 76, "S": 64, "I": 82, "P": 55, "W": 47}
"""How many features each of the documents has that the page names."""
AREAS = {
    "Devices": "cli device manager",
    "Memory": "base exchange files images manager/test_lifetime memory transfers",
    "Work and its order": "debugging device/test_limits profiling recording sync",
    "Shaders and operations": "builders compilers custom functions kernels launches ops random shaders",
    "Programs": "programs",
    "Errors": "base/test_errors debugging/test_crashes",
}
"""The tables, with the tests whose capabilities they list; the longest beginning decides."""
BEGIN, END = "<!-- written by tools/capabilities.py -->", "<!-- end -->"


class Capability(NamedTuple):
    """One line of a table: one mark of a test."""

    area: str
    page: str
    text: str
    calls: tuple[str, ...]
    keys: tuple[str, ...]

    def line(self) -> str:
        """The line, with the title of the page as the text of its link."""
        text = (DOCS / f"{self.page}.md").read_text(encoding="utf-8")
        title = next(line for line in text.splitlines() if line.startswith("# ")).removeprefix("# ")
        calls = ", ".join(f"`{call}`" for call in self.calls)
        return f"| {self.text} | {calls} | [{title}](../{self.page}.md) | {shortened(self.keys)} |"


def expanded(text: str) -> tuple[str, ...]:
    """The single keys of "K12 S7-S10"."""
    keys: list[str] = []
    for part in text.split():
        found = re.fullmatch(r"([A-Z])(\d+)(?:-\1(\d+))?", part)
        if found is None:
            raise ValueError(f"{part!r} is not a key such as K12 or a range such as S7-S10")
        first = int(found[2])
        keys += [f"{found[1]}{number}" for number in range(first, int(found[3] or first) + 1)]
    return tuple(keys)


def shortened(keys: tuple[str, ...]) -> str:
    """Keys as text, with ranges; the inverse of `expanded`."""
    numbers = sorted((key[0], int(key[1:])) for key in keys)
    runs: list[list[tuple[str, int]]] = []
    for letter, number in numbers:
        if runs and runs[-1][-1] == (letter, number - 1):
            runs[-1].append((letter, number))
        else:
            runs.append([(letter, number)])
    names = [[f"{letter}{number}" for letter, number in run] for run in runs]
    return " ".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else " ".join(run) for run in names)


def area_of(test: str) -> str:
    """The table of a test's capabilities."""
    fits = [
        (len(start), area)
        for area, starts in AREAS.items()
        for start in starts.split()
        if test.startswith(start)
    ]
    if not fits:
        raise ValueError(f"tools/capabilities.py names no table for tests/{test}")
    return max(fits)[1]


def capabilities() -> list[Capability]:
    """The capabilities that tests are marked with, in the order of the page."""
    found: list[Capability] = []
    tests = ROOT / "tests"
    for path in sorted(tests.rglob("test_*.py")):
        source = path.read_text(encoding="utf-8")
        if "mark.capability(" not in source:
            continue
        area = area_of(path.relative_to(tests).as_posix())
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for keys, text, calls, page in marks(node):
                    found.append(Capability(area, page, text, tuple(calls.split(", ")), expanded(keys)))
    return sorted(found, key=lambda each: (list(AREAS).index(each.area), each))


def marks(test: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[list[str]]:
    """The arguments of the test's marks `capability`."""
    for mark in test.decorator_list:
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.capability":
            arguments = [ast.literal_eval(argument) for argument in mark.args]
            if len(arguments) != 4 or mark.keywords:
                raise ValueError(f"{test.name}: the mark capability takes keys, text, calls and page")
            yield arguments


def without_a_line(page: str, listed: list[Capability]) -> list[str]:
    """The faults of keys: those without a test or a reason, and those that no document has."""
    reasons = re.findall(
        r"^\|[^|]+\|[^|]+\|[^|]+\|([^|]+)\|$", page.split("## Not offered")[1], re.MULTILINE
    )[2:]
    marked = Counter(key for each in listed for key in each.keys)
    known = {f"{letter}{number}" for letter, count in COUNTS.items() for number in range(1, count + 1)}
    refused = {key for text in reasons for key in expanded(text)}
    return [
        *(
            f"{key}: no test is marked with it, and it is not listed as not offered"
            for key in sorted(known - {*marked, *refused})
        ),
        *(f"{key}: no document has this key" for key in sorted({*marked, *refused} - known)),
        *(f"{key}: several tests are marked with it" for key, count in sorted(marked.items()) if count > 1),
    ]


def written(page: str, listed: list[Capability]) -> str:
    """The page with tables of these capabilities."""
    tables = []
    for area in AREAS:
        lines = [each.line() for each in listed if each.area == area]
        tables.append(
            "\n".join([f"## {area}\n", "| capability | call | page | keys |", "|---|---|---|---|", *lines])
        )
    head, rest = page.split(BEGIN)
    return f"{head}{BEGIN}\n\n" + "\n\n".join(tables) + f"\n\n{END}{rest.split(END)[1]}"


def main(arguments: list[str]) -> int:
    """Writes or checks the page; the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="only look whether the page is what the tests say"
    )
    check = parser.parse_args(arguments).check
    page, listed = PAGE.read_text(encoding="utf-8"), capabilities()
    faults = without_a_line(page, listed)
    right = written(page, listed)
    if not check and right != page:
        PAGE.write_text(right, encoding="utf-8")
    elif check and right != page:
        faults.append(f"{PAGE.relative_to(ROOT)} is not what the tests say: run python tools/capabilities.py")
    print(*faults, sep="\n", end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
