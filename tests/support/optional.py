"""Packages that tests use if they are there: PyTorch, also the CPU build that Debian and Ubuntu package.

The system's package lies in a folder that a .venv does not search. Its torch 1.13 was built for NumPy 1, of
which it warns once, and needs no NumPy for DLPack.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.machinery
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

SYSTEM = Path("/usr/lib/python3/dist-packages")


def system_torch_fits() -> bool:
    """Whether the system's package has an extension module for this very interpreter."""
    suffixes = importlib.machinery.EXTENSION_SUFFIXES
    return any((SYSTEM / "torch" / f"_C{suffix}").exists() for suffix in suffixes)


@contextlib.contextmanager
def optional(name: str) -> Iterator[ModuleType | None]:
    """The package `name`, or None if it is not installed.

    For the system's PyTorch, its folder stands last on the path inside of the block.
    """
    before = list(sys.path)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Failed to initialize NumPy")
            try:
                module = importlib.import_module(name)
            except ModuleNotFoundError:
                if name != "torch" or not system_torch_fits():
                    yield None
                    return
                sys.path.append(str(SYSTEM))
                module = importlib.import_module(name)
            if name == "torch":
                module.zeros(1)[0] = 1  # here torch looks for NumPy
        yield module
    finally:
        sys.path[:] = before
