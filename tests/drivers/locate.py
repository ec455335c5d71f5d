"""Finds, fetches and builds the test drivers.

- lavapipe is the one that the system has installed.
- "system" is whatever the loader finds by itself: the machine's own GPU (`KOMPUTE_PY_TEST_DRIVER=system`).
- SwiftShader and a newer Khronos validation layer come out of Debian's package `chromium-common`. It is
  downloaded with apt and unpacked, not installed, so this needs no root.
- The null driver (see null/common.hpp) is compiled from the sources here, again whenever they change.

What was made is kept under `$KOMPUTE_PY_TEST_CACHE`, or `.cache/drivers` in the repository. Each entry is
made in a directory of its own and renamed into place under a file lock: two processes may ask at once, and an
interrupted one leaves nothing that looks finished.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
NULL_SOURCES = HERE / "null"
NULL_LIBRARY = "libkp_null_driver.so"
CHROMIUM = "chromium-common"
SWIFTSHADER_LIBRARY = "libvk_swiftshader.so"
LAYER_LIBRARY = "libVkLayer_khronos_validation.so"
LAYER_MANIFEST = "VkLayer_khronos_validation.json"
LAYERS = ("debian", "newer")
SYSTEM = "system"
# Of the null driver, for config="profile=NAME": a device of each kind that programs must be right on
# (README.md).
PROFILES = (
    "small_bar", "large_bar", "integrated", "mobile", "small_limits", "apple", "geforce", "radeon", "adreno",
    "bare",
)  # fmt: skip


class DriverUnavailableError(RuntimeError):
    """A driver or layer is not here and can not be made; the message says what is missing."""


def cache_directory() -> Path:
    """Where fetched and built drivers are kept; made when missing."""
    chosen = os.environ.get("KOMPUTE_PY_TEST_CACHE")
    directory = Path(chosen).expanduser().resolve() if chosen else ROOT / ".cache" / "drivers"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


@contextlib.contextmanager
def _locked(name: str) -> Iterator[None]:
    import fcntl  # not on Windows, where nothing is made

    with open(cache_directory() / f".{name}.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # released when the file closes, also if the process dies
        yield


def _entry(name: str, make: Callable[[Path], None]) -> Path:
    """The cache's directory `name`, which `make` fills if it does not exist."""
    final = cache_directory() / name
    if final.is_dir():
        return final
    with _locked(name.split("-")[0]):
        if final.is_dir():
            return final
        scratch = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=cache_directory()))
        try:
            make(scratch)
            scratch.chmod(0o755)
            scratch.rename(final)
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
    return final


def _run(command: list[str], what: str, cwd: Path | None = None) -> str:
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, errors="replace", check=False)
    except FileNotFoundError:
        raise DriverUnavailableError(f"{what}: there is no command `{command[0]}` here") from None
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-30:])
        raise DriverUnavailableError(f"{what}: `{shlex.join(command)}` failed ({done.returncode}):\n{tail}")
    return done.stdout


def _need_linux(what: str) -> None:
    if not sys.platform.startswith("linux"):
        raise DriverUnavailableError(f"{what} is only made on Linux; this is {platform.system()}")


# ----------------------------------------------------------------------------------------------- system files


def _vulkan_directories(kind: str) -> list[Path]:
    """The directories in which the Vulkan loader looks for manifests of a kind (`icd.d`,
    `explicit_layer.d`)."""
    home = Path.home()
    roots = [os.environ.get("XDG_CONFIG_HOME") or str(home / ".config")]
    roots += (os.environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":")
    roots += ["/etc", os.environ.get("XDG_DATA_HOME") or str(home / ".local/share")]
    roots += (os.environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share").split(":")
    roots += ["/usr/local/share", "/usr/share"]
    unique = dict.fromkeys(Path(root) / "vulkan" / kind for root in roots if root)
    return [directory for directory in unique if directory.is_dir()]


def _lavapipe() -> Path:
    found = [
        path for directory in _vulkan_directories("icd.d") for path in sorted(directory.glob("lvp_icd*.json"))
    ]
    # A system with foreign architectures has one manifest for each.
    native = [path for path in found if platform.machine() in path.name or path.name == "lvp_icd.json"]
    if not (native or found):
        raise DriverUnavailableError(
            "lavapipe is not installed (no lvp_icd*.json); on Debian and Ubuntu: apt install "
            "mesa-vulkan-drivers"
        )
    return (native or found)[0]


def _system_layer() -> Path:
    for directory in _vulkan_directories("explicit_layer.d"):
        if (directory / LAYER_MANIFEST).is_file():
            return directory
    raise DriverUnavailableError(
        "the Khronos validation layer is not installed; on Debian and Ubuntu: apt install "
        "vulkan-validationlayers"
    )


# -------------------------------------------------------------------------------------------- out of Chromium


def _download_chromium(scratch: Path) -> Path:
    what = f"fetching Debian's {CHROMIUM}"
    if not shutil.which("apt-get"):
        raise DriverUnavailableError(f"{what}: this system has no apt-get (it is made on Debian only)")
    download = ["apt-get", "download", "-q", CHROMIUM]
    try:
        _run(download, what, scratch)
    except DriverUnavailableError as first:
        # No package lists, as in a fresh container. Own lists need no root and leave the system's alone.
        lists = scratch / "apt"
        for part in ("lists/partial", "cache/archives/partial"):
            (lists / part).mkdir(parents=True)
        private = ["-o", f"Dir::State::lists={lists / 'lists'}", "-o", f"Dir::Cache={lists / 'cache'}"]
        try:
            _run(["apt-get", *private, "-q", "update"], what, scratch)
            _run(["apt-get", *private, *download[1:]], what, scratch)
        except DriverUnavailableError as second:
            raise DriverUnavailableError(f"{first}\nand with fresh package lists: {second}") from None
    packages = list(scratch.glob(f"{CHROMIUM}_*.deb"))
    if len(packages) != 1:
        raise DriverUnavailableError(f"{what}: apt-get downloaded {len(packages)} packages instead of one")
    return packages[0]


def _fill_chromium(directory: Path) -> None:
    scratch = directory / "unpack"
    scratch.mkdir()
    package = _download_chromium(scratch)
    _run(["dpkg", "-x", str(package), str(scratch / "files")], f"unpacking {package.name}")
    for name in (SWIFTSHADER_LIBRARY, LAYER_LIBRARY):
        found = next((scratch / "files").rglob(name), None)
        if found is None:
            raise DriverUnavailableError(f"{package.name} has no {name}")
        shutil.copyfile(found, directory / name)
    (directory / "version").write_text(package.name.split("_")[1] + "\n")
    shutil.rmtree(scratch)


def _chromium() -> Path:
    _need_linux("SwiftShader")
    return _entry("chromium", _fill_chromium)


def _write_json(path: Path, content: dict[str, Any]) -> Path:
    """Write a manifest with absolute paths; again when the cache has moved."""
    text = json.dumps(content, indent=2) + "\n"
    if not path.is_file() or path.read_text() != text:
        part = path.with_name(f".{path.name}.{os.getpid()}")
        part.write_text(text)
        part.replace(path)
    return path


def _icd(library: Path, api_version: str) -> Path:
    content = {
        "file_format_version": "1.0.0",
        "ICD": {"library_path": str(library), "api_version": api_version},
    }
    return _write_json(library.with_name("icd.json"), content)


def _swiftshader() -> Path:
    return _icd(_chromium() / SWIFTSHADER_LIBRARY, "1.3.0")


def _newer_layer() -> Path:
    directory = _chromium() / "layer"
    directory.mkdir(exist_ok=True)
    extensions = [
        {"name": "VK_EXT_debug_report", "spec_version": "9"},
        {"name": "VK_EXT_debug_utils", "spec_version": "1"},
        {"name": "VK_EXT_layer_settings", "spec_version": "2", "entrypoints": []},
        {"name": "VK_EXT_validation_features", "spec_version": "2"},
    ]
    layer = {
        "name": "VK_LAYER_KHRONOS_validation", "type": "GLOBAL",
        "library_path": str(directory.parent / LAYER_LIBRARY), "api_version": "1.4.0",
        "implementation_version": "1", "description": "Khronos Validation Layer",
        "instance_extensions": extensions, "device_extensions": [],
    }  # fmt: skip
    _write_json(directory / LAYER_MANIFEST, {"file_format_version": "1.2.0", "layer": layer})
    return directory


# -------------------------------------------------------------------------------------------- the null driver

_FLAGS = ["-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread", "-Wl,-z,defs"]


def _compiler() -> list[str]:
    chosen = os.environ.get("CXX")
    if chosen:
        return shlex.split(chosen)
    for name in ("g++", "c++", "clang++"):
        if shutil.which(name):
            return [name]
    raise DriverUnavailableError("the null driver: no C++ compiler here (g++, or set CXX)")


@functools.cache
def _null() -> Path:
    _need_linux("the null driver")
    sources = sorted(NULL_SOURCES.glob("*.cpp"))
    digest = hashlib.sha256(" ".join(_FLAGS).encode())
    for path in sorted([*sources, *NULL_SOURCES.glob("*.hpp")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    what = (
        "building the null driver (it needs a C++20 compiler and the Vulkan headers, libvulkan-dev on Debian)"
    )

    def make(directory: Path) -> None:
        target = directory / NULL_LIBRARY
        _run([*_compiler(), *_FLAGS, "-o", str(target), *map(str, sources)], what)

    return _icd(_entry(f"null-{digest.hexdigest()[:16]}", make) / NULL_LIBRARY, "1.3.239")


# --------------------------------------------------------------------------------------------- other programs


def compile_program(name: str, source: Path, libraries: list[str]) -> Path:
    """A program of the tests, compiled from one C++ file, again whenever that changes.

    Args:
        name: a word for the cache.
        source: the file.
        libraries: what to link, as the linker takes it ("-lvulkan").

    Raises:
        DriverUnavailableError: there is no compiler, or it fails.
    """
    _need_linux(f"the program {source.name}")
    digest = hashlib.sha256(" ".join(libraries).encode() + source.read_bytes()).hexdigest()[:16]
    what = (
        f"building {source.name} (it needs a C++20 compiler and the Vulkan loader, libvulkan-dev on Debian)"
    )

    def make(directory: Path) -> None:
        flags = ["-std=c++20", "-O1", "-pthread"]
        _run([*_compiler(), *flags, "-o", str(directory / name), str(source), *libraries], what)

    return _entry(f"{name}-{digest}", make) / name


# --------------------------------------------------------------------------------------------- what tests use

_DRIVERS: dict[str, Callable[[], Path]] = {"lavapipe": _lavapipe, "swiftshader": _swiftshader, "null": _null}
_LAYERS: dict[str, Callable[[], Path]] = {"debian": _system_layer, "newer": _newer_layer}


def manifest(driver: str) -> Path:
    """The driver's manifest (ICD JSON), made first if need be;
    raises DriverUnavailableError with the reason."""
    if driver not in _DRIVERS:
        raise ValueError(f"unknown driver {driver!r}; there are {', '.join(_DRIVERS)}")
    return _DRIVERS[driver]()


def layer_directory(layer: str) -> Path:
    """The directory with a validation layer's manifest: "debian" (the system's) or "newer"."""
    if layer not in _LAYERS:
        raise ValueError(f"unknown validation layer {layer!r}; there are {', '.join(_LAYERS)}")
    return _LAYERS[layer]()


def drivers(explain: Callable[[str], None] | None = None) -> dict[str, Any]:
    """Every driver's manifest and every validation layer's directory; None for one that can not be had.

    `explain` is called with the reason for each of those.
    """

    def attempt(name: str, locate: Callable[[], Path]) -> str | None:
        try:
            return str(locate())
        except DriverUnavailableError as error:
            if explain:
                explain(f"{name}: {error}")
            return None

    found: dict[str, Any] = {name: attempt(name, locate) for name, locate in _DRIVERS.items()}
    found["validation_layer"] = {name: attempt(f"validation layer {name}", _LAYERS[name]) for name in LAYERS}
    return found


def environment(driver: str, layer: str | None = None, config: str | None = None) -> dict[str, str]:
    """Environment variables with which a process sees one driver only, or those that are named.

    Args:
        driver: "lavapipe", "swiftshader" or "null"; several with "+" between (the loader orders devices).
            "system", alone: the loader's own choice.
        layer: "debian" or "newer" to offer that validation layer instead of what the loader finds, with
            synchronization validation switched on. The program still has to enable it (or VK_INSTANCE_LAYERS
            has).
        config: for the null driver, the value of KP_NULL_DRIVER, such as "profile=mobile,gpu_us=20".

    Raises:
        DriverUnavailableError: the driver or layer is not here and can not be made.
    """
    names = driver.split("+")
    # Mesa's implicit layer would reorder devices.
    variables = {"NODEVICE_SELECT": "1"}
    files = "VK_DRIVER_FILES", "VK_ICD_FILENAMES"  # loaders before 1.3.207 know the second name only
    if driver == SYSTEM:
        variables |= {name: os.environ[name] for name in files if name in os.environ}
    else:
        variables |= dict.fromkeys(files, os.pathsep.join(str(manifest(name)) for name in names))
    if config is not None:
        if "null" not in names:
            raise ValueError(f"config is for the null driver, not for {driver}")
        variables["KP_NULL_DRIVER"] = config
    if layer is not None:
        directory = layer_directory(layer)
        variables["VK_LAYER_PATH"] = str(directory)
        # Layers that know the new name warn about the old one, and older layers know the old one only.
        if layer == "newer" or '"validate_sync"' in (directory / LAYER_MANIFEST).read_text():
            variables["VK_KHRONOS_VALIDATION_VALIDATE_SYNC"] = "1"
        else:
            variables["VK_LAYER_ENABLES"] = "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT"
    return variables
