"""Counts the lines of code of Python files: no blank lines, no comments, no docstrings.

    python tools/count_code.py FILE ...

A shader inside of a string counts as code; its blank lines and its lines of comments do not.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from pathlib import Path

_LAYOUT = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)


def _docstrings(source: str) -> set[int]:
    """The numbers of the lines that docstrings are on."""
    lines: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            if ast.get_docstring(node, clean=False) is not None:
                first = node.body[0]
                lines.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return lines


def code_lines(source: str) -> list[str]:
    """The lines of code, without the space around them."""
    numbers: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _LAYOUT:
            numbers.update(range(token.start[0], token.end[0] + 1))
    text = source.splitlines()
    kept = [text[number - 1].strip() for number in sorted(numbers - _docstrings(source))]
    return [line for line in kept if line and not line.startswith("//")]


def main() -> int:
    """Prints the count of each file and their sum."""
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    counts = [(len(code_lines(Path(name).read_text(encoding="utf-8"))), name) for name in sys.argv[1:]]
    for count, name in counts:
        print(f"{count:6} {name}")
    if len(counts) > 1:
        print(f"{sum(count for count, _ in counts):6} together")
    return 0


if __name__ == "__main__":
    sys.exit(main())
