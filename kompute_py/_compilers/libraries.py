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
    files: str
    """A pattern of the library's file name."""
    package: str
    """The Python package that brings it."""
    folder: str
    """In the package."""
    extra: str


_DXC = r"(lib)?dxcompiler(_\w+)?(\.\d+)*\.(so|dylib|dll)(\.\d+)*"
# File names in slangpy (libslang-compiler.so.0.2026.12) and in Slang's releases (slang.dll). A file
# libslang.so.2 with no further version belongs to S-Lang, another library, so system folders are not
# searched.
_SLANG = r"(lib)?slang(-compiler)?(\.(so|dylib|dll))((\.\d+)*)|lib(slang|slang-compiler)[.\d]*\.dylib"
_KINDS = {
    "dxc": _Kind(_DXC, "compushady", "backends", "hlsl"),
    "slang": _Kind(_SLANG, "slangpy", ".", "slang"),
}
INSTALL = {kind: f"pip install 'kompute_py[{each.extra}]'" for kind, each in _KINDS.items()}
"""The command that installs each compiler."""


class Library(NamedTuple):
    """A compiler's library on this machine."""

    path: str
    identity: str
    """Differs for different files: path, size and time of change."""


def find_library(kind: str, setting: Lookup = of_process) -> Library | None:
    """The library to use of "dxc" or "slang"; None if there is none.

    The setting `dxc_library` or `slang_library` names it (a file, or a folder that contains it; "" means no
    library). Without the setting it is that of the package that the extra brings, else that of the Vulkan SDK
    in ``VULKAN_SDK``, else, for DXC, that of the system, else that of compushady.
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
    places = [] if spec is None else list(spec.submodule_search_locations or ())
    inside = [os.path.normpath(os.path.join(place, kind.folder)) for place in places]
    # The DXC of compushady is older than all others, but that of its fork of the same name is not.
    is_oldest = kind.files == _DXC and not any(os.path.isdir(f"{place}_lrtu.libs") for place in places)
    if not is_oldest:
        yield from inside
    sdk = os.environ.get("VULKAN_SDK")
    if sdk:
        yield os.path.join(sdk, "Bin" if sys.platform == "win32" else "lib")
    if kind.files == _DXC and sys.platform != "win32":
        yield f"/usr/lib/{os.uname().machine}-linux-gnu"
        yield from ("/usr/local/lib", "/usr/lib64", "/usr/lib", "/opt/homebrew/lib")
    if is_oldest:
        yield from inside


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
    return Library(place, f"{os.path.realpath(place)} {status.st_size} {status.st_mtime_ns}")
