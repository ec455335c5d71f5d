"""The command line without the extra ``cli``: ``info`` and ``--version``, in plain text."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
import traceback
from collections.abc import Sequence

from .. import __version__
from .._device.report import report
from .info import collect, print_info
from .output import PROGRAM, accept_old_code_pages, one_line

_USAGE = f"""\
usage: {PROGRAM} info [--json | --report]
       {PROGRAM} --version

info   Show the devices, their capabilities, and what is missing for which purpose.
       --json: print JSON, with all limits and features.
       --report: print the text for a bug report.

The other commands, which need more packages (pip install "kompute-py[cli]"):

demo, compile, reflect, disasm, check, run, bench, watch, new, cache, program, profile"""


class PlainPage:
    """`Page` as text on stdout."""

    def __init__(self) -> None:
        self._width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 120

    def line(self, label: str, text: str, style: str = "") -> None:
        """One line; `style` is not shown."""
        print(self._wrapped(f"{label}{text}", ""))

    def device(self, title: str, is_default: bool, note: str, rows: Sequence[tuple[str, str]]) -> None:
        """A device, and its properties with their names."""
        end = note or ("used by default" if is_default else "")
        print(f"\n{title}{f'  {end}' if end else ''}")
        width = max(len(name) for name, _ in rows)
        for name, text in rows:
            print(self._wrapped(text, f"   {name:<{width}}  "))

    def _wrapped(self, text: str, start: str) -> str:
        return textwrap.fill(
            f"{start}{text}",
            max(self._width, 40),
            subsequent_indent=" " * len(start),
            break_long_words=False,
            break_on_hyphens=False,
        )


def run(argv: Sequence[str] | None, missing: str) -> int:
    """Runs a command line as `kompute_py.cli.main` does. The other commands need the package `missing`."""
    accept_old_code_pages()
    words = list(sys.argv[1:] if argv is None else argv)
    shows_traceback = "--traceback" in words
    words = [word for word in words if word != "--traceback"]
    try:
        status = _run(words, missing)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader has enough, as of `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at the program's end
        return 1
    except KeyboardInterrupt:
        print(f"{PROGRAM}: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        if shows_traceback:
            traceback.print_exc()
        else:
            _print_error(one_line(error))
        return 1


def _run(words: list[str], missing: str) -> int:
    if words == ["--version"]:
        print(f"{PROGRAM} {__version__}")
        return 0
    if not words or "--help" in words:
        print(_USAGE)
        return 0 if words else 2
    if words[0] != "info":
        _print_error(f'this needs {missing}: pip install "kompute-py[cli]" (without it, there is `info`)')
        return 1
    if words[1:] not in ([], ["--json"], ["--report"]):
        print(_USAGE, file=sys.stderr)
        return 2
    if words[1:] == ["--report"]:
        print(report())
        return 0
    found = collect()
    if len(words) == 2:
        print(json.dumps(found, indent=2))
    else:
        print_info(found, PlainPage())
    return 0


def _print_error(text: str) -> None:
    print(f"{PROGRAM}: error: {text}", file=sys.stderr)
