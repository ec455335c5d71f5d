"""`python tools/check_includes.py [FOLDER]`: whether the core's files include only what they may (part of
`./dev lint`).

The rules, over `native/core/` of the project in FOLDER:

- A room (a folder of the core) includes only itself and rooms below it. CMakeLists.txt lists the rooms from
  the bottom up.
- Units do not include each other in a circle. A unit is a `.hpp` and a `.cpp` of one name.
- An include names the room: `#include "sync/queue.hpp"`.
"""

from __future__ import annotations

import re
import sys
from collections import deque
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
_ROOMS = re.compile(r"set\(KP_CORE_FOLDERS\s+([^)]*)\)")


class Include(NamedTuple):
    """One line of a file: paths relative to the core's folder."""

    file: str
    line: int
    target: str

    def units(self) -> tuple[str, str]:
        """The unit that includes, and the one that is included."""
        return unit_of(self.file), unit_of(self.target)


def unit_of(path: str) -> str:
    """`sync/queue` for `sync/queue.hpp` and `sync/queue.cpp`."""
    return path.rpartition(".")[0]


def rooms(project: Path) -> list[str]:
    """The core's rooms from the bottom up, as CMakeLists.txt has them."""
    found = _ROOMS.search((project / "CMakeLists.txt").read_text(encoding="utf-8"))
    if found is None:
        raise SystemExit(
            "CMakeLists.txt has no set(KP_CORE_FOLDERS ...): the rooms of native/core, from the bottom up"
        )
    return found[1].split()


def includes(core: Path) -> list[Include]:
    """All `#include "..."` of the core's files."""
    found = []
    for path in sorted(core.rglob("*.[ch]pp")):
        text = path.read_text(encoding="utf-8")
        file = path.relative_to(core).as_posix()
        found += [Include(file, text.count("\n", 0, m.start(1)) + 1, m[1]) for m in _INCLUDE.finditer(text)]
    return found


def circle_through(start: str, graph: dict[str, set[str]]) -> list[str] | None:
    """The shortest way from a unit back to itself; None if there is none."""
    came_from: dict[str, str] = {}
    queue = deque([start])
    while queue:
        unit = queue.popleft()
        for after in sorted(graph.get(unit, ())):
            if after == start:
                way = [start]
                while unit != start:
                    way.append(unit)
                    unit = came_from[unit]
                return [start, *reversed(way[1:]), start]
            if after not in came_from:
                came_from[after] = unit
                queue.append(after)
    return None


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Circles between units, each unit in one of them at most."""
    found: list[list[str]] = []
    seen: set[str] = set()
    for unit in sorted(graph):
        circle = None if unit in seen else circle_through(unit, graph)
        if circle is not None and not seen.intersection(circle):
            found.append(circle)
            seen.update(circle)
    return found


def broken_rules(project: Path) -> list[str]:
    """A sentence for each include that breaks a rule."""
    core = project / "native" / "core"
    order = rooms(project)
    told = [
        f"native/core/{path.relative_to(core).as_posix()} is in no room: the rooms are {', '.join(order)} "
        "(CMakeLists.txt)"
        for path in sorted(core.rglob("*.[ch]pp"))
        if path.parent.parent != core or path.parent.name not in order
    ]
    if told:
        return told
    graph: dict[str, set[str]] = {}
    lines: dict[tuple[str, str], Include] = {}
    for include in includes(core):
        if not (core / include.target).is_file() or "/" not in include.target or ".." in include.target:
            told.append(
                f'native/core/{include.file}:{include.line} includes "{include.target}", which is no file of '
                "the core: "
                'name the room, as in "sync/queue.hpp"'
            )
            continue
        pair = include.units()
        if pair[0] == pair[1]:
            continue
        lines.setdefault(pair, include)
        lower, upper = (unit.partition("/")[0] for unit in pair)
        if order.index(lower) < order.index(upper):
            told.append(
                f"native/core/{include.file}:{include.line} includes native/core/{include.target}: the room "
                f"{lower} is "
                f"below {upper}, and a room includes only rooms below it"
            )
            continue
        graph.setdefault(pair[0], set()).add(pair[1])
    for circle in circles(graph):
        steps = [lines[pair] for pair in pairwise(circle)]
        told.append(
            "these units include each other in a circle: "
            + ", ".join(f"native/core/{s.file}:{s.line} includes native/core/{s.target}" for s in steps)
        )
    return told


def main(arguments: list[str]) -> int:
    """Prints what breaks a rule; 1 if something does."""
    told = broken_rules(Path(arguments[0]) if arguments else Path(__file__).parents[1])
    for line in told:
        print(line)
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
