"""Compiles the benchmarks' own shared libraries into the cache, again whenever their sources change."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from .paths import cache_directory

# -O2 as a release build of a C++ program has it.
_FLAGS = [
    "-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall",
    "-Wno-missing-field-initializers",
]  # fmt: skip


class BuildError(RuntimeError):
    """A library cannot be built; the message says what is missing, or what the compiler said."""


def _compiler() -> list[str]:
    chosen = os.environ.get("CXX")
    if chosen:
        return shlex.split(chosen)
    for name in ("g++", "c++", "clang++"):
        if shutil.which(name):
            return [name]
    raise BuildError("The benchmarks need a C++20 compiler: install g++, or set CXX")


def build_library(source: Path, needs: str) -> Path:
    """The library of a C++ file; `needs` says in errors what must be installed.

    Raises BuildError.
    """
    compiler, name = _compiler(), source.stem
    digest = hashlib.sha256(" ".join(compiler + _FLAGS).encode() + b"\0" + source.read_bytes())
    library = cache_directory() / f"{name}-{digest.hexdigest()[:16]}" / f"lib{name}.so"
    if library.exists():
        return library
    library.parent.mkdir(exist_ok=True)
    # Two builds at once each write a file of their own; the last rename wins with the same content.
    with tempfile.TemporaryDirectory(dir=library.parent) as scratch:
        made = Path(scratch) / library.name
        command = [*compiler, *_FLAGS, "-o", str(made), str(source), "-ldl"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            tail = "\n".join(done.stderr.strip().splitlines()[-30:])
            raise BuildError(f"Building {library.name} failed ({needs}): {shlex.join(command)}\n{tail}")
        made.replace(library)
    return library
