"""Draws the operations of a sequence and the barriers of its built recording: as Mermaid, Markdown and text.

A barrier is a global memory barrier before an operation. It orders everything before it with everything after
it, for the stages and accesses that it names. Operations without a barrier between them may overlap.

In a long sequence, parts that are repeated are drawn once, in a loop with the number of repetitions.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, Protocol

from .folding import Element, fold

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SHORT = 12
"""Sequences with so few operations are shown as they are; longer ones with repeated parts as loops."""
_SHOWN_FIRST, _SHOWN_LAST = 40, 10
_WORK = ("operation", "loop")

# VkPipelineStageFlagBits and VkAccessFlagBits that the core uses.
_STAGES = {
    0x2: "indirect",
    0x800: "shader",
    0x1000: "transfer",
    0x4000: "host",
    0x10000: "all commands",
    0x1: "top",
    0x2000: "bottom",
}
_ACCESSES = {
    0x1: "read",
    0x8: "uniform read",
    0x20: "read",
    0x40: "write",
    0x800: "read",
    0x1000: "write",
    0x2000: "read",
    0x4000: "write",
    0x8000: "read",
    0x10000: "write",
}


class Step(NamedTuple):
    """An operation, a barrier, a loop, or a gap."""

    kind: str
    """"operation", "barrier", "loop" or "gap" (operations that are not shown)."""
    text: str
    body: tuple[Step, ...] = ()
    """The steps of a loop. The barriers between two repetitions are its last steps."""


class Recorded(Protocol):
    """A recording: the core's stream, or one that was split at copies between devices."""

    @property
    def name(self) -> str:
        """The sequence's name; "" without one."""

    @property
    def queue_index(self) -> int:
        """The queue that runs it."""

    def is_init(self) -> bool:
        """False once it is destroyed."""

    def is_recording(self) -> bool:
        """True until it is built."""

    def is_running(self) -> bool:
        """True while the device runs it."""

    def operation_names(self) -> list[str]:
        """The names of the operations, in order."""

    def barriers(self) -> list[tuple[int, int, int, int, int]]:
        """The barriers: before which operation; stages and accesses that come before, and those after."""


class Graph(NamedTuple):
    """A sequence's steps, in order."""

    title: str
    steps: list[Step]
    note: str


def graph_of(native: Recorded) -> Graph:
    """The graph of a sequence. Builds and submits nothing."""
    title = f"Sequence {native.name!r}" if native.name else "Sequence"
    if not native.is_init():
        return Graph(title, [], "destroyed")
    names = native.operation_names()
    if not names:
        return Graph(title, [], "nothing recorded")
    # The barriers belong to the built recording, which exists after the first evaluation.
    built = not native.is_recording()
    before: dict[int, list[str]] = {}
    if built:
        for at, src_stages, src_access, dst_stages, dst_access in native.barriers():
            if src_stages:
                text = f"{_side(src_stages, src_access)} → {_side(dst_stages, dst_access)}"
                before.setdefault(min(at, len(names)), []).append(text)
    elements = [Element(tuple(before.get(i, ())), name) for i, name in enumerate(names)]
    if len(elements) > _SHORT:
        elements = fold(elements)
    steps = _steps(elements, tuple(before.get(len(names), ())))
    count = sum(map(len, before.values()))
    state = "running" if native.is_running() else "evaluated"
    note = f"{len(names)} operation{'s' if len(names) != 1 else ''} on queue {native.queue_index}, " + (
        f"{count} barrier{'s' if count != 1 else ''}, {state}"
        if built
        else "recorded; barriers are known after an evaluation"
    )
    return Graph(title, steps, note)


def _steps(elements: list[Element], last: tuple[str, ...]) -> list[Step]:
    """The steps of some elements and the barriers after them. The middle of a long list is left out."""
    steps: list[Step] = []
    at = 0
    hidden = range(_SHOWN_FIRST, max(_SHOWN_FIRST, len(elements) - _SHOWN_LAST))
    for i, element in enumerate(elements):
        if i in hidden:
            if i == _SHOWN_FIRST:
                left_out = sum(each.operations for each in elements[hidden.start : hidden.stop])
                steps.append(Step("gap", f"{left_out} more operations"))
        else:
            steps.extend(Step("barrier", text) for text in element.before)
            steps.append(_loop(element, at) if element.body else Step("operation", f"{at}: {element.name}"))
        at += element.operations
    return [*steps, *(Step("barrier", text) for text in last)]


def _loop(element: Element, at: int | None) -> Step:
    """A loop. `at`: the number of its first operation; None inside a loop, where it changes."""
    steps: list[Step] = []
    for i, each in enumerate(element.body):
        if i > 0:
            steps.extend(Step("barrier", text) for text in each.before)
        steps.append(_loop(each, None) if each.body else Step("operation", each.name))
    steps.extend(Step("barrier", text) for text in element.body[0].before)
    where = "" if at is None else f", operations {at} to {at + element.operations - 1}"
    return Step("loop", f"{element.times} times{where}", tuple(steps))


def mermaid(graph: Graph) -> str:
    """The graph in Mermaid's language, with a title and a description for screen readers."""
    if not graph.steps:
        return f'flowchart TD\n    n0["{_label(graph.title)}: {_label(graph.note)}"]'
    lines = ["flowchart TD", f"    accTitle: {_spoken(graph.title)}", f"    accDescr: {_spoken(graph.note)}"]
    edges: list[str] = []
    _Drawing(lines, edges).draw(graph.steps, "    ")
    return "\n".join(lines + edges)


class _Drawing:
    """Adds steps to the lines of a drawing: first the nodes, in the subgraphs of loops, then the edges."""

    def __init__(self, lines: list[str], edges: list[str]) -> None:
        self._lines = lines
        self._edges = edges
        self._nodes = 0
        self._loops = 0

    def draw(self, steps: Sequence[Step], indent: str) -> tuple[int, int]:
        """Draws `steps`; returns their first node, and the last that is an operation or a gap."""
        first = before = last = None
        for step in steps:
            if step.kind == "loop":
                self._lines.append(f'{indent}subgraph loop{self._loops}["{_label(step.text)}"]')
                self._loops += 1
                entry, leave = self.draw(step.body, indent + "    ")
                self._lines.append(f"{indent}end")
            else:
                entry = leave = self._node(step, indent)
            if before is not None:
                # A dotted line: the operations may overlap.
                free = before[1] in _WORK and step.kind in _WORK
                self._edge(before[0], entry, free)
            first = entry if first is None else first
            before = (leave, step.kind)
            last = leave if step.kind != "barrier" or last is None else last
        assert first is not None and before is not None and last is not None
        if indent != "    " and before[1] == "barrier":
            self._edge(before[0], first, False)
        return first, last

    def _node(self, step: Step, indent: str) -> int:
        left, right = {"operation": ('["', '"]'), "barrier": ('{{"', '"}}'), "gap": ('(["', '"])')}[step.kind]
        self._lines.append(f"{indent}n{self._nodes}{left}{_label(step.text)}{right}")
        self._nodes += 1
        return self._nodes - 1

    def _edge(self, one: int, other: int, free: bool) -> None:
        self._edges.append(f"    n{one} {'-.-' if free else '-->'} n{other}")


def as_markdown(graph: Graph) -> str:
    """The graph as Markdown: its title, and the drawing as a block of Mermaid."""
    title, note = (
        re.sub(r"[^\w .,:]", lambda m: f"&#{ord(m[0])};", text) for text in (graph.title, graph.note)
    )
    if not graph.steps:
        return f"**{title}**: {note}"
    return f"**{title}**: {note}\n\n```mermaid\n{mermaid(graph)}\n```"


def as_text(graph: Graph) -> str:
    """The graph as plain text."""
    return "\n".join([f"{graph.title}: {graph.note}", *_text_lines(graph.steps, "")])


def _text_lines(steps: Sequence[Step], indent: str) -> Iterator[str]:
    signs = {"operation": "  ", "loop": "  ", "barrier": "    | ", "gap": "  ... "}
    for step in steps:
        yield f"{indent}{signs[step.kind]}{step.text}{':' if step.body else ''}"
        yield from _text_lines(step.body, indent + "    ")


def _side(stages: int, access: int) -> str:
    where = _named(stages, _STAGES) or "nothing"
    what = _named(access, _ACCESSES)
    return f"{where} {what}" if what else where


def _named(mask: int, names: dict[int, str]) -> str:
    found = [name for bit, name in names.items() if mask & bit]
    rest = mask & ~sum(names)
    if rest:
        found.append(f"{rest:#x}")
    return "+".join(dict.fromkeys(found))


def _spoken(text: str) -> str:
    # Titles and descriptions know no entity codes, and end with the line.
    return " ".join(re.sub(r"[^\w.,()-]", " ", text).split())


def _label(text: str) -> str:
    # Mermaid's entity codes keep any character of a name plain text.
    return re.sub(r"[^\w .,:()+→-]", lambda m: f"#{ord(m[0])};" if m[0] >= " " else " ", text)
