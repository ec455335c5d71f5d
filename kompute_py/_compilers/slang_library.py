"""Finds Slang's library: by a setting, in the package slangpy, in the Vulkan SDK. Loads nothing."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator
from typing import NamedTuple

from .settings import Lookup, of_process

INSTALL = "pip install 'kompute_py[slang]'"

# File names in slangpy (libslang-compiler.so.0.2026.12) and in Slang's releases (slang.dll). A file
# libslang.so.2 with no further version belongs to S-Lang, another library, so system folders are not
# searched.
_NAME = r"(lib)?slang(-compiler)?(\.(so|dylib|dll))((\.\d+)*)|lib(slang|slang-compiler)[.\d]*\.dylib"
_VERSION = r"(20\d\d\.\d+(?:\.\d+)*)"


class SlangLibrary(NamedTuple):
    """Slang's library on this machine."""

    path: str
    identity: str
    """Differs for different files: path, size and time of change."""

    @property
    def name(self) -> str:
        """The compiler's name in messages: "Slang 2026.12", or "Slang" if the file name has no version."""
        found = re.search(_VERSION, os.path.basename(self.path))
        return f"Slang {found[1]}" if found else "Slang"


def find_slang(setting: Lookup = of_process) -> SlangLibrary | None:
    """The library to use; None if there is none.

    The setting `slang_library` names it (a file, or a folder that contains it; "" means no library). Without
    the setting it is that of the package slangpy, else that of the Vulkan SDK in ``VULKAN_SDK``.
    """
    named = setting("slang_library")
    if named is not None:
        return _library(named) if named else None
    for folder in _folders():
        found = _library(folder)
        if found is not None:
            return found
    return None


def _folders() -> Iterator[str]:
    # find_spec does not import the module: slangpy would load a hundred megabytes.
    from importlib.util import find_spec

    try:
        spec = find_spec("slangpy")
    except (ImportError, ValueError):  # ValueError: a module of that name without a spec
        spec = None
    if spec is not None:
        yield from spec.submodule_search_locations or ()
    sdk = os.environ.get("VULKAN_SDK")
    if sdk:
        yield os.path.join(sdk, "Bin" if sys.platform == "win32" else "lib")


def _library(place: str) -> SlangLibrary | None:
    try:
        if os.path.isdir(place):
            names = sorted(name for name in os.listdir(place) if re.fullmatch(_NAME, name))
            if not names:
                return None
            # "-compiler" is the newer name; a file with the older one beside it may be a stub.
            best = max(names, key=lambda name: ("-compiler" in name, len(name), name))
            place = os.path.join(place, best)
        status = os.stat(place)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(status.st_mode):  # loading a pipe would wait forever
        return None
    return SlangLibrary(place, f"{os.path.realpath(place)} {status.st_size} {status.st_mtime_ns}")
