"""Finds the libraries of DXC and Slang: by a setting, in a Python package, in the Vulkan SDK, in the system.
Loads nothing."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator
from typing import NamedTuple

from .settings import Lookup, of_process


class _Kind(NamedTuple):
    spoken: str
    files: str
    """A pattern of the library's file name."""
    package: str
    """The Python package that brings it."""
    folders: tuple[str, ...]
    """In the package."""
    install: str
    in_system: bool


_DXC = r"(lib)?dxcompiler(_\w+)?(\.\d+)*\.(so|dylib|dll)(\.\d+)*"
# File names in slangpy (libslang-compiler.so.0.2026.12) and in Slang's releases (slang.dll). A file
# libslang.so.2 with no further version belongs to S-Lang, another library, so system folders are not
# searched.
_SLANG = r"(lib)?slang(-compiler)?(\.(so|dylib|dll))((\.\d+)*)|lib(slang|slang-compiler)[.\d]*\.dylib"
_VERSION = r"(20\d\d\.\d+(?:\.\d+)*)"
_KINDS = {
    "dxc": _Kind("DXC", _DXC, "compushady", ("backends",), "pip install 'kompute_py[hlsl]'", True),
    "slang": _Kind("Slang", _SLANG, "slangpy", (".",), "pip install 'kompute_py[slang]'", False),
}
INSTALL = {kind: each.install for kind, each in _KINDS.items()}
"""The command that installs each compiler."""


class Library(NamedTuple):
    """A compiler's library on this machine."""

    kind: str
    """"dxc" or "slang"."""
    path: str
    identity: str
    """Differs for different files: path, size and time of change."""

    @property
    def name(self) -> str:
        """The compiler's name in messages: "Slang 2026.12", or "DXC" if the file name has no version."""
        found = re.search(_VERSION, os.path.basename(self.path))
        spoken = _KINDS[self.kind].spoken
        return f"{spoken} {found[1]}" if found else spoken


def find_library(kind: str, setting: Lookup = of_process) -> Library | None:
    """The library to use of "dxc" or "slang"; None if there is none.

    The setting `dxc_library` or `slang_library` names it (a file, or a folder that contains it; "" means no
    library). Without the setting it is that of the compiler's Python package, else that of the Vulkan SDK in
    ``VULKAN_SDK``, else, for DXC, that of the system.
    """
    named = setting(f"{kind}_library")
    if named is not None:
        return _library(kind, named) if named else None
    for folder in _folders(_KINDS[kind]):
        found = _library(kind, folder)
        if found is not None:
            return found
    return None


def _folders(kind: _Kind) -> Iterator[str]:
    # find_spec does not import the module: slangpy would load a hundred megabytes.
    from importlib.util import find_spec

    try:
        spec = find_spec(kind.package)
    except (ImportError, ValueError):  # ValueError: a module of that name without a spec
        spec = None
    if spec is not None:
        for place in spec.submodule_search_locations or ():
            yield from (os.path.normpath(os.path.join(place, folder)) for folder in kind.folders)
    sdk = os.environ.get("VULKAN_SDK")
    if sdk:
        yield os.path.join(sdk, "Bin" if sys.platform == "win32" else "lib")
    if kind.in_system and sys.platform != "win32":
        yield f"/usr/lib/{os.uname().machine}-linux-gnu"
        yield from ("/usr/local/lib", "/usr/lib64", "/usr/lib", "/opt/homebrew/lib")


def _library(kind: str, place: str) -> Library | None:
    try:
        if os.path.isdir(place):
            names = sorted(name for name in os.listdir(place) if re.fullmatch(_KINDS[kind].files, name))
            if not names:
                return None
            # "-compiler" is Slang's newer name; a file with the older one beside it may be a stub.
            best = max(names, key=lambda name: ("-compiler" in name, len(name), name))
            place = os.path.join(place, best)
        status = os.stat(place)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(status.st_mode):  # loading a pipe would wait forever
        return None
    return Library(kind, place, f"{os.path.realpath(place)} {status.st_size} {status.st_mtime_ns}")
