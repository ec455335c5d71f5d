"""Draws the operations of a sequence and the barriers of its built recording: as Mermaid, Markdown and text.

A barrier is a global memory barrier before an operation. It orders everything before it with everything after
it, for the stages and accesses that it names. Operations without a barrier between them may overlap.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .._recording.sequence import Sequence

_SHOWN_FIRST, _SHOWN_LAST = 40, 10

# VkPipelineStageFlagBits and VkAccessFlagBits that the core uses.
_STAGES = {
    0x800: "shader",
    0x1000: "transfer",
    0x4000: "host",
    0x10000: "all commands",
    0x1: "top",
    0x2000: "bottom",
}
_ACCESSES = {
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
    """An operation, a barrier, or a gap."""

    kind: str
    """"operation", "barrier" or "gap" (operations that are not shown)."""
    text: str


class Graph(NamedTuple):
    """A sequence's steps, in order."""

    title: str
    steps: list[Step]
    note: str


def graph_of(sequence: Sequence) -> Graph:
    """The graph of `sequence`. Builds and submits nothing."""
    native = sequence._native
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
    steps: list[Step] = []
    for i in range(len(names) + 1):
        hidden = _SHOWN_FIRST <= i < len(names) - _SHOWN_LAST
        if hidden:
            if i == _SHOWN_FIRST:
                steps.append(Step("gap", f"{len(names) - _SHOWN_LAST - _SHOWN_FIRST} more operations"))
            continue
        steps.extend(Step("barrier", text) for text in before.get(i, ()))
        if i < len(names):
            steps.append(Step("operation", f"{i}: {names[i]}"))
    count = sum(map(len, before.values()))
    state = "running" if native.is_running() else "evaluated"
    note = f"{len(names)} operation{'s' if len(names) != 1 else ''} on queue {native.queue_index}, " + (
        f"{count} barrier{'s' if count != 1 else ''}, {state}"
        if built
        else "recorded; barriers are known after an evaluation"
    )
    return Graph(title, steps, note)


def mermaid(graph: Graph) -> str:
    """The graph in Mermaid's language."""
    lines = ["flowchart TD"]
    for i, step in enumerate(graph.steps):
        left, right = {"operation": ('["', '"]'), "barrier": ('{{"', '"}}'), "gap": ('(["', '"])')}[step.kind]
        lines.append(f"    n{i}{left}{_label(step.text)}{right}")
    for i, (one, other) in enumerate(zip(graph.steps, graph.steps[1:], strict=False)):
        # A dotted line: the operations may overlap.
        free = one.kind == other.kind == "operation"
        lines.append(f"    n{i} {'-.-' if free else '-->'} n{i + 1}")
    if not graph.steps:
        lines.append(f'    n0["{_label(graph.title)}: {_label(graph.note)}"]')
    return "\n".join(lines)


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
    signs = {"operation": "  ", "barrier": "    | ", "gap": "  ... "}
    return "\n".join([f"{graph.title}: {graph.note}", *(signs[s.kind] + s.text for s in graph.steps)])


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


def _label(text: str) -> str:
    # Mermaid's entity codes keep any character of a name plain text.
    return re.sub(r"[^\w .,:()+→-]", lambda m: f"#{ord(m[0])};" if m[0] >= " " else " ", text)
