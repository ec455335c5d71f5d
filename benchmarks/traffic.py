"""The part `traffic`: what each function of `kp.ops` moves on 16 million elements, and the time that follows.

Counts on the null driver with the profile of a GPU, so the variants are those that a GPU gets and nothing is
timed: dispatches, barriers, and the bytes of all ranges that the operations declare as read and written.
Beside them stands the least that any algorithm moves (each argument once, each result once) and, at four
published bandwidths, the time for the bytes moved. `--write` puts the table into
docs/inside/performance.md.

A result whose length depends on numbers is empty here (nothing computes them): its last copy is not counted.
Neither are dispatches with groups that the device reads: `segmented_sort` has them for long segments, which
the arguments here lack.
"""

from __future__ import annotations

import os
import sys
from typing import Any, NamedTuple

import numpy as np

from tests.drivers import environment, null_control

from .library.calls import CALLS
from .library.large import COUNT, Tiled, functions, made, options_of, size
from .pages import INSIDE, put
from .parts import parsed, part

CARDS = {"integrated, 90 GB/s": 90, "Apple M4 Pro, 273": 273, "RTX 4070, 504": 504, "RTX 4090, 1008": 1008}
"""GB/s as published: two channels of DDR5-5600, and the makers' data sheets."""
MUCH = 1.5


class Traffic(NamedTuple):
    """What one call moves."""

    name: str
    dispatches: int
    barriers: int
    moved: int
    least: int

    @property
    def ratio(self) -> float:
        """How often the least is moved."""
        return self.moved / max(self.least, 1)


@part
def main(arguments: list[str] | None = None) -> int:
    """Counts and prints. Returns 2 for a function that there is not."""
    parser = options_of("traffic", __doc__, INSIDE.name)
    options = parsed(parser, arguments, "only")
    if options.write and options.count != COUNT:
        parser.error("the page has the figures of 2**24 elements")
    names = functions(options.only)
    os.environ.update(environment("null", config="profile=geforce"))
    os.environ["KOMPUTE_PY_PIPELINE_CACHE_DIR"] = ""
    import kompute_py as kp

    rows, failed = [], []
    for name in names:
        with kp.Manager() as mgr, mgr:
            try:
                rows.append(traffic(mgr, name, options.count))
            except (kp.KomputeError, MemoryError) as error:
                failed.append(f"{name} ({type(error).__name__})")
                continue
        print(rows[-1], file=sys.stderr, flush=True)
    text = table(rows)
    if failed:
        text += f"\n\nNot counted: {', '.join(failed)}."
    print(text)
    if options.write:
        put(INSIDE, "traffic", text)
    return 0


def traffic(mgr: Any, name: str, count: int) -> Traffic:
    """Counts a call's second run: the first one makes tables that are kept."""
    import kompute_py as kp

    args, named = CALLS[name].make(Tiled(0), count)
    tensors = made(args, lambda each: mgr.empty(each.shape, each.dtype, "storage"))
    function = getattr(kp.ops, name)
    function(*tensors, **named)
    control = null_control()
    control.clear()
    with control.logging(), mgr.profile() as profile:
        result = function(*tensors, **named)
    commands = [each["op"] for each in control.commands()]
    records = profile.records
    # The device reads how many groups these have: none, with the arguments of these calls.
    idle = [
        not groups.any() and "." in str(part)
        for part, groups in zip(records["name"], records["groups"], strict=True)
    ]
    assert sum(idle) == commands.count("dispatch_indirect"), name
    records = records[~np.array(idle, bool)]
    return Traffic(
        name,
        commands.count("dispatch"),
        commands.count("barrier"),
        int(records["bytes_read"].sum() + records["bytes_written"].sum()),
        size(tensors) + size(result),
    )


def table(rows: list[Traffic]) -> str:
    """The table in Markdown, those that move the most above the least first. Equal ones share a line."""
    alike: dict[tuple[str, ...], list[str]] = {}
    heads = ["function", "dispatches", "barriers", "MB moved", "least MB", "moved / least"]
    lines = [heads + [f"ms: {card}" for card in CARDS]]
    lines.append(["---"] * len(lines[0]))
    for row in sorted(rows, key=lambda each: -each.ratio):
        ratio = f"{row.ratio:.2f}"
        cells = [str(row.dispatches), str(row.barriers), _mega(row.moved), _mega(row.least)]
        cells.append(f"**{ratio}**" if float(ratio) > MUCH else ratio)
        cells += [f"{row.moved / rate / 1e6:.3g}" for rate in CARDS.values()]
        alike.setdefault(tuple(cells), []).append(row.name)
    lines += [[", ".join(names), *found] for found, names in alike.items()]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _mega(count: int) -> str:
    return f"{count / 1e6:,.1f}"


if __name__ == "__main__":
    sys.exit(main())
