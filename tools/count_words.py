"""Counts words that make text hard to read, over docstrings, comments, error messages and the documents for
readers.

    python tools/count_words.py [PATH ...]

Without a path: the package, the core with its bindings, README.md, CONTRIBUTING.md and the pages of the site.
It prints one line for each group of files and fails if a count is above its limit. `--worst N` lists the N
files with the most.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GROUPS = {
    "kompute_py": ["kompute_py"],
    "native": ["native"],
    "documents": [
        "README.md",
        "CONTRIBUTING.md",
        "docs/index.md",
        "docs/start",
        "docs/concepts",
        "docs/guides",
        "docs/coming_from",
        "docs/gallery",
        "docs/reference",
        "docs/inside",
    ],
}
# Name -> (pattern, most per 1,000 words).
COUNTED = {
    '"where"': (re.compile(r"\bwhere\b", re.I), 2.0),
    'sentences with "What" first': (
        re.compile(r"(?:^|(?<=[.!?:]\s)|(?<=\n\n))What\b(?![^.!?]*\?)", re.M),
        0.3,
    ),
    "who, whoever, whose": (re.compile(r"\b(?:who|whoever|whose|whom)\b", re.I), 0.3),
}
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
_CODE = re.compile(r"``.*?``|`[^`\n]*`", re.S)
_FENCE = re.compile(r"^```.*?^```|^~~~.*?^~~~", re.S | re.M)
_CXX_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_CXX_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)


def python_texts(source: str) -> Iterator[str]:
    """Docstrings, texts below attributes, runs of comments, and the strings of errors and warnings."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield ast.get_docstring(node) or ""
        if isinstance(node, (ast.Module, ast.ClassDef)):
            yield from (_text_of(line) for line in node.body[1:])  # the texts below attributes
        raised = isinstance(node, ast.Raise) and node.exc is not None
        called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if raised or (called and re.search(r"Error$|^warn$", node.func.id)):
            yield " ".join(
                part.value
                for part in ast.walk(node)
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            )
    yield from _runs(
        (token.start[0], token.string.lstrip("#: "))
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    )


def _text_of(line: ast.stmt) -> str:
    """The text of a statement that is nothing else, else an empty one."""
    constant = line.value if isinstance(line, ast.Expr) else None
    if isinstance(constant, ast.Constant) and isinstance(constant.value, str):
        return constant.value
    return ""


def cxx_texts(source: str) -> Iterator[str]:
    """Runs of comments, and the strings of messages: those of several words."""
    yield from _runs(
        (source.count("\n", 0, found.start()) + 1, found[0].lstrip("/*! "))
        for found in _CXX_COMMENT.finditer(source)
    )
    for found in _CXX_STRING.findall(_CXX_COMMENT.sub("", source)):
        if len(_WORD.findall(found)) > 3:
            yield found


def _runs(comments: Iterator[tuple[int, str]]) -> Iterator[str]:
    """Comments on lines that follow each other, as one text."""
    run: list[str] = []
    last = -1
    for line, text in comments:
        if line != last + 1 and run:
            yield " ".join(run)
            run = []
        run.append(text)
        last = line
    yield " ".join(run)


def texts_of(path: Path) -> list[str]:
    """The texts of one file; none of other kinds of files."""
    if path.suffix not in (".py", ".pyi", ".cpp", ".hpp", ".h", ".md"):
        return []
    source = path.read_text(encoding="utf-8")
    if path.suffix in (".py", ".pyi"):
        found = list(python_texts(source))
    elif path.suffix == ".md":
        found = [_FENCE.sub("", source)]
    else:
        found = list(cxx_texts(source))
    return [_CODE.sub("code", text) for text in found if text]


def count(paths: list[Path]) -> tuple[int, dict[str, int]]:
    """How many words, and how many of each counted kind."""
    texts = [text for path in paths for text in texts_of(path)]
    words = sum(len(_WORD.findall(text)) for text in texts)
    return words, {name: sum(len(p.findall(t)) for t in texts) for name, (p, _) in COUNTED.items()}


def files_of(given: list[str]) -> list[Path]:
    """The files of these paths, folders with all that is in them."""
    found: list[Path] = []
    for each in given:
        path = ROOT / each
        if not path.exists():
            sys.exit(f"{each}: there is no such file or folder")
        found += sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    return found


def main() -> int:
    """Prints the counts; 1 if one is above its limit."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--worst", type=int, default=0, metavar="N")
    arguments = parser.parse_args()
    groups = {path: [path] for path in arguments.paths} or GROUPS
    failed = False
    for group, given in groups.items():
        files = files_of(given)
        words, counts = count(files)
        rates = {name: 1000 * number / max(words, 1) for name, number in counts.items()}
        over = [name for name, rate in rates.items() if rate > COUNTED[name][1]]
        failed = failed or bool(over)
        shown = ", ".join(f"{name} {rates[name]:.2f} (at most {COUNTED[name][1]})" for name in COUNTED)
        print(f"{'FAIL' if over else 'ok  '} {group}: {words} words; per 1,000: {shown}")
        if arguments.worst:
            ranked = sorted(((sum(count([file])[1].values()), file) for file in files), reverse=True)
            for number, file in ranked[: arguments.worst]:
                print(f"       {number:4} {file.relative_to(ROOT)}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
