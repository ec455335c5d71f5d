"""One form for each entry of the reference: text, parameters, returns, errors, facts, example.

Docstrings have the errors in a sentence, ``Raises ThisError for a negative size; ThatError if ...``, because
they are read in terminals, too. Here it becomes a list. Autodoc adds the types of parameters and results.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from public import readable

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_NAMES = r"\w+(?:Error|Warning)(?:(?:, and |, | and | or )\w+(?:Error|Warning))*"
# "Raises" at the beginning of a sentence, to the end of that sentence.
_SENTENCE = re.compile(r"(?:^|(?<=[.:] ))Raises (.+?)(?:\.(?=\s+[A-Z`])|\.?$)\s*", re.S)
_ONE = re.compile(rf"({_NAMES})(?:,? (.*))?", re.S)
_FIELD = re.compile(r":\w+( \w+)?:")


def errors_of(sentence: str) -> list[tuple[str, str]]:
    """Names and reasons in "AError for x; BError if y"; "" as the name of what another call raises."""
    found: list[tuple[str, str]] = []
    for part in re.split(rf"[;,] (?:and )?(?={_NAMES}\b)|; ", sentence):
        one = _ONE.fullmatch(part)
        if one and found and not found[-1][1]:
            found[-1] = (f"{found[-1][0]}, {one[1]}", one[2] or "")  # one reason for several errors
        elif one:
            found.append((one[1], one[2] or ""))
        elif found and found[-1][0]:
            found[-1] = (found[-1][0], f"{found[-1][1]}; {part}")
        else:
            found.append(("", part))
    return found


def in_form(lines: list[str]) -> list[str]:
    """The lines of a docstring: its text, a list of fields, and its examples."""
    blocks = [block.split("\n") for block in "\n".join(lines).strip("\n").split("\n\n")]
    text: list[list[str]] = []
    raised: list[tuple[str, str]] = []
    facts: list[str] = []
    examples: list[list[str]] = []
    for block in blocks:
        first = block[0]
        if _FIELD.match(first):
            facts += block
        elif first.startswith(">>> "):
            examples.append(block)
        elif first.startswith((" ", "- ", "* ", "=", "|", "..")) or first.endswith("::"):
            (examples if examples and first.startswith(" ") else text).append(block)
        else:
            whole = " ".join(block)
            raised += [each for found in _SENTENCE.finditer(whole) for each in errors_of(found[1])]
            rest = _SENTENCE.sub("", whole).strip()
            if rest:
                into = text if not examples or first.startswith("Also called:") else examples
                into.append(block if rest == whole else [rest])
    fields = [
        f":raises {re.sub(',? (?:and|or) ', ', ', names)}: {reason}" if names else f":raises: {reason}"
        for names, reason in raised
    ]
    parts = [*text, fields + facts] if fields or facts else text
    if examples:
        parts += [[".. rubric:: Example"], *examples]
    return [line for part in parts for line in [*part, ""]]


def lay_out(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Brings a docstring into the form."""
    if what in ("function", "method", "class", "property", "exception"):
        lines[:] = in_form(lines)


_ORDER = {"param": 0, "type": 0, "returns": 1, "return": 1, "rtype": 1, "yields": 1, "raises": 2}
"""The kinds of fields, which Sphinx makes lists of afterwards, by their place; the facts come last."""
_WORDS = {
    "Tensor": "Tensor | ndarray",
    "Tensor?": "Tensor | ndarray | None",
    "Tensor[]": "list[Tensor | ndarray]",
    "Tensor|Scalar": "Tensor | ndarray | complex",
    "Tensor|Scalar?": "Tensor | ndarray | complex | None",
    "dtype": "DTypeLike",
    "dtype?": "DTypeLike | None",
    "int[]": "list[int]",
    "int[]?": "int | list[int] | None",
    "float[]": "float | list[float]",
}
"""The types of a function's parameters as Python has them."""


def place_of(field: str) -> int:
    """The place of a field in its entry: parameters, results, errors, facts."""
    return _ORDER.get(field.split()[0], 3)


def in_words(field: str, text: str, of_ops: bool) -> str:
    """A text in a field without private names; the type of a parameter of `kp.ops` in Python's words."""
    return _WORDS.get(text, readable(text)) if of_ops and field.startswith("type ") else readable(text)


def sort_fields(app: Sphinx, domain: str, kind: str, content: Any) -> None:
    """Sorts the fields of an entry, when autodoc has added the types, and removes private names from them."""
    from docutils import nodes

    of_ops = content.parent[0].get("module") == "kompute_py.ops"
    for fields in content.findall(nodes.field_list):
        if fields.parent is content:
            fields[:] = sorted(fields, key=lambda each: place_of(each[0].astext()))
            for field in fields:
                for text in list(field[1].findall(nodes.Text)):
                    words = in_words(field[0].astext(), text, of_ops)
                    if text != words:
                        text.parent.replace(text, nodes.Text(words))


def setup(app: Sphinx) -> dict[str, Any]:
    """Connects it, before the docstring's sections are read and after the other words are added."""
    app.connect("autodoc-process-docstring", lay_out, priority=450)
    app.connect("object-description-transform", sort_fields, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
