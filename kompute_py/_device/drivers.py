"""The installed Vulkan drivers, by the manifests that the loader reads. No driver is loaded.

The places and their order are the loader's (its LoaderDriverInterface.md): the files of VK_DRIVER_FILES or
of VK_ICD_FILENAMES alone; else those of VK_ADD_DRIVER_FILES and of the system's folders (Windows: registry).
VK_LOADER_DRIVERS_SELECT and VK_LOADER_DRIVERS_DISABLE choose among them by file name.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from .._base.errors import ArgumentTypeError, InvalidArgumentError, NotFoundError, shown
from .._base.file_access import read_regular
from .._base.plain_arguments import as_text
from .._base.text import nearest

_MOST_BYTES = 2**20  # of a manifest
_ALIASES = {
    "amd": ("radeon", "amdvlk", "amd"),
    "apple": ("MoltenVK", "kosmickrisp"),
    "arm": ("panfrost", "mali"),
    "cpu": ("lvp", "vk_swiftshader"),
    "intel": ("intel", "intel_hasvk"),
    "lavapipe": ("lvp",),
    "nvidia": ("nvidia", "nouveau"),
    "qualcomm": ("freedreno", "adreno"),
    "swiftshader": ("vk_swiftshader",),
}
"""Other names, with those of the manifests, the first that is there."""


class DriverInfo(NamedTuple):
    """An installed Vulkan driver, as its manifest describes it.

    >>> names = [driver.name for driver in kp.available_drivers() if driver.fault is None]
    """

    name: str
    """The manifest's file name without "_icd" and the processor: "lvp" for lvp_icd.x86_64.json."""
    manifest: str
    """The manifest's path."""
    library: str | None
    """The library's path, or a bare name, which the system searches for. None if the manifest names none."""
    api_version: str
    """The version of Vulkan that the manifest states; "" if it states none."""
    is_portability: bool
    """Whether it implements a part of Vulkan alone (VK_KHR_portability_subset)."""
    shadowed_by: str | None
    """The manifest that comes before it under the same name: ``kp.Manager(driver=name)`` takes that one."""
    fault: str | None
    """Why it cannot be used, as far as its files tell; None if nothing is wrong."""

    def __str__(self) -> str:
        notes = [f"Vulkan {self.api_version}"] if self.api_version else []
        if self.is_portability:
            notes.append("portability")
        if self.shadowed_by:
            notes.append(f"shadowed by {self.shadowed_by}")
        if self.fault:
            notes.append(self.fault)
        return f"{self.name}: {self.library or self.manifest} ({', '.join(notes) or 'no notes'})"


DriverInfo.__module__ = "kompute_py"  # public; imported when first used


def available_drivers() -> list[DriverInfo]:
    """The installed Vulkan drivers, in the loader's order, without loading any. Needs no device.

    All that the loader would look at are listed, also those that are damaged (`fault`) or have the name of an
    earlier one (`shadowed_by`): the loader opens these, too, but ``kp.Manager(driver=name)`` takes the first.

    >>> all(isinstance(each.name, str) for each in kp.available_drivers())
    True
    """
    first: dict[str, str] = {}
    found = []
    for path in _manifests():
        made = _read(path)
        if made.name in first:
            made = made._replace(shadowed_by=first[made.name])
        elif made.fault is None:
            first[made.name] = made.manifest
        found.append(made)
    return found


def to_driver(value: Any, source: str) -> str:
    """Checks the option `driver`: a name, or the path of a manifest. "" stands for none."""
    if isinstance(value, str):
        return as_text(value, source).strip()
    if isinstance(value, os.PathLike):
        path = os.fspath(value)
        return as_text(os.fsdecode(path), source)
    raise ArgumentTypeError(f"{source} is {shown(value)}; give a driver's name, or the path of its manifest")


def driver_named(name: str) -> DriverInfo | None:
    """The driver of the option's value; None for "". Raises NotFoundError, with those that are there."""
    if not name:
        return None
    if os.path.dirname(name) or name.endswith(".json"):
        return _of_path(name)
    found = [each for each in available_drivers() if each.shadowed_by is None and each.fault is None]
    for wanted in (name, *_ALIASES.get(name.lower(), ())):
        for each in found:
            if each.name.lower() == wanted.lower():
                return each
    names = ", ".join(each.name for each in found) or "none"
    near = nearest(name, {*(each.name for each in found), *_ALIASES} - {name.lower()})
    raise NotFoundError(
        f"There is no Vulkan driver {shown(name)}{near} "
        f"kp.available_drivers() lists them: {names}. Give one of these names, or the path of a manifest"
    )


def manifest_named(name: str) -> bytes:
    """The manifest of the option's value for the core; b"" for all drivers that the loader finds."""
    found = driver_named(name)
    return b"" if found is None else os.fsencode(found.manifest)


def driver_of(library: bytes, name: str) -> DriverInfo | None:
    """The driver of an open device, by its library, and by the option's value if one was given."""
    if name:
        return driver_named(name)
    path = os.path.realpath(os.fsdecode(library)) if library else ""
    for each in available_drivers() if path else ():
        if each.library is not None and _is_same(each.library, path):
            return each
    return None


def _is_same(library: str, path: str) -> bool:
    bare = not os.path.dirname(library)
    return os.path.basename(path).startswith(library) if bare else os.path.realpath(library) == path


def _of_path(given: str) -> DriverInfo:
    path = os.path.abspath(os.path.expanduser(given))
    if not os.path.isfile(path):
        raise NotFoundError(f"driver is {shown(given)}, and there is no such file")
    found = _read(Path(path))
    if found.fault is not None:
        raise InvalidArgumentError(f"driver is {shown(given)}, which cannot be used: {found.fault}")
    return found


def _name(path: str | Path) -> str:
    name = Path(path).name.split(".")[0]
    for end in ("_icd", "_icd64", "_icd32"):
        name = name.removesuffix(end)
    return name.removesuffix("_icd")


def _read(path: Path) -> DriverInfo:
    """A manifest, whatever it holds."""
    empty = DriverInfo(_name(path), str(path), None, "", False, None, None)
    try:
        found = json.loads(read_regular(str(path), _MOST_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or str(error)[:200]
        return empty._replace(fault=f"the manifest cannot be read: {reason}")
    icd = found.get("ICD") if isinstance(found, dict) else None
    library = icd.get("library_path") if isinstance(icd, dict) else None
    if not isinstance(library, str) or not library or "\0" in library:
        return empty._replace(fault="the manifest names no library (ICD, library_path)")
    assert isinstance(icd, dict)
    version = icd.get("api_version")
    made = empty._replace(
        api_version=version if isinstance(version, str) else "",
        is_portability=icd.get("is_portability_driver") is True,
    )
    if os.path.dirname(library):
        library = str((path.parent / library).resolve())
        if not os.path.isfile(library):
            made = made._replace(fault=f"its library is not there: {library}")
    bits = icd.get("library_arch")
    if bits in ("32", "64") and int(bits) != (64 if sys.maxsize > 2**32 else 32):
        made = made._replace(fault=f"its library is for processes of {bits} bits")
    return made._replace(library=library)


def _manifests() -> Iterator[Path]:
    """The manifests that the loader reads, in its order, each once."""
    only = os.environ.get("VK_DRIVER_FILES") or os.environ.get("VK_ICD_FILENAMES")
    if only:
        places: Iterable[Path] = _listed(only)
    else:
        places = (*_listed(os.environ.get("VK_ADD_DRIVER_FILES", "")), *_of_system())
    seen = set()
    for path in places:
        key = os.path.realpath(path)
        if key not in seen and _is_chosen(path.name):
            seen.add(key)
            yield path


def _listed(text: str) -> list[Path]:
    """Files, and the manifests of folders, of a variable."""
    found: list[Path] = []
    for each in filter(None, text.split(os.pathsep)):
        path = Path(each)
        found += _in_folder(path) if path.is_dir() else [path]
    return found


def _in_folder(folder: Path) -> list[Path]:
    try:
        return sorted(each for each in folder.iterdir() if each.suffix == ".json")
    except OSError:
        return []


def _of_system() -> list[Path]:
    if sys.platform == "win32":
        return _of_registry()
    return [path for folder in _folders() for path in _in_folder(Path(folder, "vulkan", "icd.d"))]


def _folders() -> list[str]:
    env = os.environ.get
    home = os.path.expanduser("~")
    if sys.platform == "darwin":
        own = [os.path.join(home, ".config"), os.path.join(home, ".local", "share")]
        return [
            *own,
            "/etc",
            "/usr/local/etc",
            "/usr/local/share",
            "/opt/homebrew/etc",
            "/opt/homebrew/share",
            "/usr/share",
        ]
    return [
        env("XDG_CONFIG_HOME") or os.path.join(home, ".config"),
        *(env("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep),
        "/usr/local/etc",
        "/etc",
        env("XDG_DATA_HOME") or os.path.join(home, ".local", "share"),
        *(env("XDG_DATA_DIRS") or f"/usr/local/share{os.pathsep}/usr/share").split(os.pathsep),
    ]


def _of_registry() -> list[Path]:
    """Windows' list. The manifests of display adapters, which the loader finds by Direct3D, are not in it."""
    import importlib

    registry: Any = importlib.import_module("winreg")
    found = []
    for root in (registry.HKEY_LOCAL_MACHINE, registry.HKEY_CURRENT_USER):
        try:
            with registry.OpenKey(root, r"SOFTWARE\Khronos\Vulkan\Drivers") as key:
                for number in range(registry.QueryInfoKey(key)[1]):
                    path, off, _ = registry.EnumValue(key, number)
                    if off == 0:
                        found.append(Path(path))
        except OSError:
            continue
    return found


def _is_chosen(name: str) -> bool:
    env = os.environ.get
    only, off = env("VK_LOADER_DRIVERS_SELECT"), env("VK_LOADER_DRIVERS_DISABLE")
    if only:
        return _fits(name, only)
    return not (off and _fits(name, off))


def _fits(name: str, globs: str) -> bool:
    listed = [each.strip().lower() for each in globs.split(",") if each.strip()]
    return any(each == "~all~" or fnmatch(name.lower(), each) for each in listed)
