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


def marked(message: str, text: str, column: int) -> str:
    """The message, and the text with a mark under a column."""
    line = text.count("\n", 0, column)
    start = text.rfind("\n", 0, column) + 1
    return f"{message} (column {column + 1})\n    {text.splitlines()[line]}\n    {' ' * (column - start)}^"


def nodes_of(roots: Any) -> Iterator[Node]:
    """All nodes, each once, parts before what they are part of."""
    seen: set[Node] = set()

    def walk(node: Node) -> Iterator[Node]:
        if node in seen:
            return
        seen.add(node)
        for each in node.args:
            yield from walk(each)
        yield node

    for root in roots:
        yield from walk(root)
