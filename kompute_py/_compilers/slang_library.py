"""Where Slang's library is: an environment variable, the package slangpy, the Vulkan SDK. Loads nothing."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator
from typing import NamedTuple

from .settings import Lookup, of_process

INSTALL = "pip install 'kompute_py[slang]'"

# Of slangpy (libslang-compiler.so.0.2026.12) and of Slang's own releases (slang.dll). A file libslang.so.2 without more to its
# version is S-Lang's, another library: system folders are not searched.
_NAME = r"(lib)?slang(-compiler)?(\.(so|dylib|dll))((\.\d+)*)|lib(slang|slang-compiler)[.\d]*\.dylib"
_VERSION = r"(20\d\d\.\d+(?:\.\d+)*)"


class SlangLibrary(NamedTuple):
    """Slang's library on this machine."""

    path: str
    identity: str
    """Another one where the file is another: its path, size and time of change."""

    @property
    def name(self) -> str:
        """What messages call the compiler: "Slang 2026.12"; without the version where the file's name has none."""
        found = re.search(_VERSION, os.path.basename(self.path))
        return f"Slang {found[1]}" if found else "Slang"


def find_slang(setting: Lookup = of_process) -> SlangLibrary | None:
    """The library to use; None where there is none.

    It is the one that the setting `slang_library` names (a file, or a folder that holds it; "" stands for
    none), else the one of the package slangpy, else the one of the Vulkan SDK in ``VULKAN_SDK``.
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
    # Finding a module's folder does not import it: slangpy would load a hundred megabytes.
    from importlib.util import find_spec

    try:
        spec = find_spec("slangpy")
    except (ImportError, ValueError):  # ValueError: a module of that name that has no spec
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
            # "-compiler" is the newer name, beside which the older one may be a stub.
            best = max(names, key=lambda name: ("-compiler" in name, len(name), name))
            place = os.path.join(place, best)
        status = os.stat(place)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(status.st_mode):  # to load a pipe would wait for ever
        return None
    return SlangLibrary(place, f"{os.path.realpath(place)} {status.st_size} {status.st_mtime_ns}")
