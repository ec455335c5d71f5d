"""Runs the code that a page of the documentation shows, and compares what it prints.

A page is a program: its blocks run from top to bottom, in one namespace and in one empty folder.

- ``python``: runs. A ``text`` block directly after it is its standard output; ``...`` stands for anything.
- An error is shown by its last line at the end of the ``text`` block, ``InvalidArgumentError: the message``.
  An error that is not shown fails.
- ``ipython``: runs as cells do, in one IPython shell for the page.
- ``glsl``, ``hlsl``, ``slang``: compiled if they are whole shaders. A ``text`` block directly after one is
  the compiler's report.
- ``console``: lines with ``$ kompute-py ...`` or ``$ python ...`` run; the lines after each are its output.
- A block whose first line is a comment with a file name alone, ``// blur.comp`` or ``# script.py``, is also
  saved under this name.
- ``<!-- run before: CODE -->`` runs Python that readers do not see, such as making the files of commands.
- ``<!-- needs: PACKAGE -->`` on the line before a block: the block runs if the package is installed.
- ``<!-- not run: REASON -->`` on the line before a block: the block is not run, and counted.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import kompute_py as kp
from tests.support.optional import optional

SHADERS = ("glsl", "hlsl", "slang")
RUN = ("python", "ipython", "console", *SHADERS)
# Blocks of these kinds show commands that a page cannot run: installing, building, measuring.
SHELL = ("sh", "bash", "shell")
_WHOLE = {
    "glsl": re.compile(r"^\s*#version\b", re.M),
    "hlsl": re.compile(r"\[numthreads\s*\(", re.I),
    "slang": re.compile(r"\[numthreads\s*\(", re.I),
}
_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|:{3,}|~{3,})(?P<info>[^\n`]*)$")
_FILE = re.compile(r"^(?://|#)\s*([\w.-]+\.[a-z]+)\s*$")


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    text: str
    line: int
    """The line of its first line, from 1."""
    not_run: str | None = None
    """The reason for which it does not run; "" if none is given."""
    hidden: bool = False
    """Whether readers do not see it."""
    output: str | None = None
    """The text of the block with its output."""
    needs: str | None = None
    """The package that it needs, which may not be installed."""


class NotAsShown(AssertionError):
    """A page's code does not do what the page shows."""


def blocks_of(text: str) -> list[Block]:
    """The blocks of a page in their order, with their outputs; also those inside of directives."""
    found: list[Block] = []
    lines = text.split("\n")
    reason: str | None = None
    opened: list[str] = []  # the fences of the directives around the line
    needs: str | None = None
    at = 0
    while at < len(lines):
        line = lines[at]
        marker = re.match(r"\s*<!--\s*not run:?(.*?)-->\s*$", line, re.I)
        if marker:
            reason = marker[1].strip()
            at += 1
            continue
        package = re.match(r"\s*<!--\s*needs:\s*(\w+)\s*-->\s*$", line)
        if package:
            needs = package[1]
            at += 1
            continue
        if re.match(r"\s*<!--\s*run before:", line):
            begin = at
            while "-->" not in lines[at]:
                at += 1
            code = "\n".join(lines[begin : at + 1]).partition("run before:")[2].partition("-->")[0]
            found.append(Block("python", textwrap.dedent(code), begin + 1, hidden=True))
            at += 1
            continue
        fence = _FENCE.match(line)
        language = fence["info"].strip().split(" ")[0].lower() if fence else ""
        if fence and opened and not language and fence["fence"].startswith(opened[-1]):
            opened.pop()  # the end of a directive, not the beginning of a block
            at += 1
            continue
        if fence and language.startswith("{"):
            opened.append(fence["fence"])
        if not fence or language.startswith("{") or fence["fence"].startswith(":"):
            if line.strip():
                reason = needs = None
            at += 1
            continue
        begin, indent = at + 1, len(fence["indent"])
        at = begin
        while at < len(lines) and not re.match(
            rf" *{fence['fence'][0]}{{{len(fence['fence'])},}} *$", lines[at]
        ):
            at += 1
        body = "\n".join(each[indent:] if not each[:indent].strip() else each for each in lines[begin:at])
        at += 1
        if (
            language == "text"
            and found
            and found[-1].output is None
            and _follows(found[-1], lines, begin - 1)
        ):
            found[-1] = found[-1]._replace(output=body)
        else:
            found.append(Block(language, body, begin + 1, reason, needs=needs))
        reason = needs = None
    return found


def _follows(block: Block, lines: list[str], fence: int) -> bool:
    """Whether a ``text`` block is the output of `block`: it comes directly after it."""
    end = block.line - 1 + block.text.count("\n") + 1 if not block.hidden else -1
    return (
        not block.hidden
        and block.language in RUN
        and all(not each.strip() for each in lines[end + 1 : fence])
    )


def matches(got: str, shown: str) -> bool:
    """Whether output is as shown: ``...`` stands for anything, spaces at line ends do not count."""

    def plain(text: str) -> str:
        return "\n".join(line.rstrip() for line in text.strip("\n").split("\n"))

    pattern = ".*?".join(re.escape(part) for part in plain(shown).split("..."))
    return re.fullmatch(pattern, plain(got), re.S) is not None


class Page:
    """A page that runs. Use it inside of the folder in which its code shall run."""

    def __init__(self, path: Path, text: str | None = None) -> None:
        self.path = path
        self.blocks = blocks_of(path.read_text(encoding="utf-8") if text is None else text)
        self.not_run: list[tuple[int, str]] = []
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self._shell: Any = None

    def run(self) -> None:
        """Runs all blocks. Raises NotAsShown, with the page's line, for the first that is not as shown."""
        try:
            for block in self.blocks:
                if block.not_run is not None:
                    if not block.not_run:
                        raise self._wrong(block, "give a reason: <!-- not run: REASON -->")
                    self.not_run.append((block.line, block.not_run))
                elif block.needs is not None:
                    with optional(block.needs) as package:
                        if package is None:
                            self.not_run.append((block.line, f"needs {block.needs}"))
                        else:
                            self._run(block)
                else:
                    self._run(block)
        finally:
            self._end()

    def _run(self, block: Block) -> None:
        if block.language in RUN:
            self._save(block)
            getattr(self, f"_{'shader' if block.language in SHADERS else block.language}")(block)

    def _wrong(self, block: Block, text: str) -> NotAsShown:
        return NotAsShown(f"{self.path}:{block.line}: {text}")

    def _compare(self, block: Block, got: str, shown: str | None) -> None:
        if shown is not None and not matches(got, shown):
            raise self._wrong(
                block,
                f"the page shows\n{_indented(shown)}\nand the code prints\n{_indented(got)}",
            )

    def _save(self, block: Block) -> None:
        named = _FILE.match(block.text.split("\n", 1)[0])
        if named:
            Path(named[1]).write_text(block.text + "\n", encoding="utf-8")

    def _python(self, block: Block) -> None:
        out = io.StringIO()
        error: BaseException | None = None
        # Lines as the page counts them, in tracebacks and in errors of shaders.
        code = compile("\n" * (block.line - 1) + block.text, str(self.path), "exec")
        with contextlib.redirect_stdout(out):
            try:
                exec(code, self.names)
            except Exception as raised:
                error = raised
        got = out.getvalue()
        if error is not None:
            last = f"{type(error).__name__}: {error}"
            if block.output is None or not re.search(
                r"^\w*(Error|Exception|Warning|Interrupt): ", block.output, re.M
            ):
                raise self._wrong(block, f"raises {last}") from error
            got += last
            error.__traceback__ = None
        self._compare(block, got, block.output)

    def _ipython(self, block: Block) -> None:
        if self._shell is None:
            from IPython.core.interactiveshell import InteractiveShell

            self._shell = InteractiveShell(user_ns=self.names)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            result = self._shell.run_cell(block.text)
        error = result.error_before_exec or result.error_in_exec
        if error is not None and (block.output is None or f"{type(error).__name__}" not in block.output):
            raise self._wrong(block, f"raises {type(error).__name__}: {error}")
        self._compare(block, out.getvalue(), block.output)

    def _shader(self, block: Block) -> None:
        if not _WHOLE[block.language].search(block.text):
            return
        try:
            kp.compile("\n" + block.text, language=block.language)
        except kp.ShaderCompileError as error:
            if block.output is None:
                raise self._wrong(block, f"does not compile:\n{error}") from None
            self._compare(block, str(error), block.output)

    def _console(self, block: Block) -> None:
        parts = re.split(r"^\$ ", block.text, flags=re.M)
        if parts[0].strip() or len(parts) == 1:
            raise self._wrong(block, 'a console block begins with "$ COMMAND"')
        for part in parts[1:]:
            command, _, shown = part.partition("\n")
            while command.rstrip().endswith("\\"):
                more, _, shown = shown.partition("\n")
                command = f"{command.rstrip()[:-1]} {more.strip()}"
            words = shlex.split(command, comments=True)
            if words[0] not in ("kompute-py", "python"):
                raise self._wrong(
                    block, f'"{words[0]}" is not run here: mark the block with <!-- not run: REASON -->'
                )
            status, got = _command(command, words)
            if status not in (0, 1) or (status == 1 and not shown.strip()):
                raise self._wrong(block, f"{command}: exit status {status}\n{got}")
            if shown.strip():
                self._compare(block, got, shown)

    def _end(self) -> None:
        """Lets go of all that the page made, so that nothing of it is alive."""
        for value in list(self.names.values()):
            if isinstance(value, kp.Manager):
                value.destroy()
        if self._shell is not None:
            import atexit

            self._shell.reset(new_session=False)
            self._shell.atexit_operations()
            atexit.unregister(self._shell.atexit_operations)
            self._shell = None
        self.names.clear()
        kp.manager().destroy()


def _indented(text: str) -> str:
    return textwrap.indent(text, "    ")


def _command(command: str, words: list[str]) -> tuple[int, str]:
    """Exit status and output (stdout, then stderr). A command that needs no shell runs in this process."""
    if words[0] == "kompute-py" and not re.search(r"[|<>;&`]|\$\(", command):
        from kompute_py.cli import main

        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(words[1:])
        return status, out.getvalue() + err.getvalue()
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run(
        ["sh", "-c", command], env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=500,
        check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def pages(root: Path) -> Iterator[Path]:
    """README.md and the pages of the site; not the flat pages, which the folders replace."""
    yield root / "README.md"
    for path in sorted((root / "docs").rglob("*.md")):
        if path.parent != root / "docs" or path.name == "index.md":
            yield path
