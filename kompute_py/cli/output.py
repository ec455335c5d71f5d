"""How the command line prints: what holds with and without the extra `cli`."""

from __future__ import annotations

import io
import re
import sys

from .._base.errors import KomputeError, ShaderCompileError

PROGRAM = "kompute-py"


def accept_old_code_pages() -> None:
    """An old code page then shows "?" instead of "×"; otherwise, an error would end the program."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not stream.encoding.lower().startswith("utf"):
            stream.reconfigure(errors="replace")


def as_options(text: str) -> str:
    """A library message with arguments as options: ``grid=(64, 2)`` becomes ``--grid 64,2``."""
    text = re.sub(r"(?<![-\w])target=(['\"])([\w.]+)\1", r"--target \2", text)
    text = re.sub(
        r"\b(grid|groups)=\(([\d, ]+)\)",
        lambda found: f"--{found[1]} {','.join(re.findall(r'[0-9]+', found[2]))}",
        text,
    )
    text = re.sub(r"(?<![-\w])spec_consts=\{'?(\w+)'?: ([\w.]+)\}", r"--spec \1=\2", text)
    text = re.sub(r"(?<![-\w])path=", "--out", text)
    return re.sub(r"(?<![-\w])(grid|groups|frames|show)=", r"--\1", text)


def one_line(error: Exception) -> str:
    """The message of an error that ends a command: on one line, but for the lines of a compiler."""
    if isinstance(error, ShaderCompileError):
        return str(error)
    text = " ".join(str(error).split())
    if isinstance(error, (KomputeError, OSError)) and text:
        return as_options(text)
    # A fault of the package, not of the user: the type of the error helps to find it.
    return f"{type(error).__name__}: {text or 'no message'} (--traceback shows where)"
