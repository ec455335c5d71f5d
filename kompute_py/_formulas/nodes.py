"""The parts of a formula."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple


class Node:
    """A part of a formula: an argument, a number, or a function of other parts. Nodes are shared."""

    __slots__ = ("args", "column", "op", "text", "value")

    def __init__(self, op: str, args: tuple[Node, ...], value: Any, text: str, column: int) -> None:
        self.op = op
        """ "name", "number", "call" of a function of the preamble, or the name of a function of NumPy."""
        self.args = args
        self.value = value
        """The argument's name, the number, or the function of the preamble."""
        self.text = text
        """The text that it was written in, for errors."""
        self.column = column
        """Its column in the text, counted from 0."""


class Own(NamedTuple):
    """A GLSL function of a formula's preamble."""

    name: str
    type: str
    parameters: tuple[str, ...]


_SHOWN = 100
"""Characters of a line that errors show on both sides of a column."""


def marked(message: str, text: str, column: int) -> str:
    """The message, and the text's line, or a part of a long one, with a mark under a column."""
    start = text.rfind("\n", 0, column) + 1
    line, at = text[start:].partition("\n")[0], column - start
    if len(line) > 2 * _SHOWN:
        first = max(at - _SHOWN, 0)
        dots = "..." if first else ""
        line, at = dots + line[first : at + _SHOWN] + "...", at - first + len(dots)
    return f"{message} (column {column + 1})\n    {line}\n    {' ' * at}^"


def nodes_of(roots: Any) -> Iterator[Node]:
    """All nodes, each once, parts before what they are part of."""
    seen: set[Node] = set()
    waiting = [(root, False) for root in reversed(list(roots))]
    while waiting:
        node, ready = waiting.pop()
        if ready:
            yield node
        elif node not in seen:
            seen.add(node)
            waiting.append((node, True))
            waiting += [(each, False) for each in reversed(node.args)]
