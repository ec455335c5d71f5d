"""Fetches the archives that the shaders are in, through pip and apt, and keeps them unpacked in the tests'
cache.

What comes from PyPI is pinned by its hash. What comes from Debian is the release's own source package: apt
verifies it by the release's signatures. Neither is installed, and nothing needs root.
"""

from __future__ import annotations

import shutil
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.drivers.locate import DriverUnavailableError, _entry, _run

CorpusUnavailableError = DriverUnavailableError
"""An archive is not here and cannot be fetched; the message says why."""


@dataclass(frozen=True)
class Archive:
    """A package whose shaders are judged."""

    name: str
    fetch: Callable[[Path], None]
    """Fills a folder with its shaders, and with what they include."""
    of: str
    """What it is."""
    quick: bool = True
    """Whether the test suite fetches it, or `./dev corpus` alone."""

    def folder(self) -> Path:
        """Where its shaders are; fetches them the first time. Raises CorpusUnavailableError."""
        return _entry(f"corpus-{self.name}", self.fetch)


def _unpack(archive: Path, into: Path, folders: Iterable[str]) -> None:
    """The regular files of the archive below a path that contains one of `folders`."""
    wanted = tuple(folders)

    def keep(name: str) -> bool:
        return ".." not in Path(name).parts and not name.startswith("/") and any(f in name for f in wanted)

    if archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(into, [name for name in packed.namelist() if keep(name)])
        return
    with tarfile.open(archive) as packed:
        for member in packed:
            source = packed.extractfile(member) if member.isfile() and keep(member.name) else None
            if source is not None:
                target = into / member.name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(source.read())


def _from_pypi(requirement: str, digest: str, *folders: str, wheel: bool = False) -> Callable[[Path], None]:
    def fetch(into: Path) -> None:
        scratch = into / ".fetched"
        scratch.mkdir()
        wanted = scratch / "requirements.txt"
        wanted.write_text(f"{requirement} --hash=sha256:{digest}\n")
        form = "--only-binary" if wheel else "--no-binary"
        _run(
            [sys.executable, "-m", "pip", "download", "-q", "--no-deps", form, ":all:", "--require-hashes",
             "-r", str(wanted), "-d", str(scratch)],
            f"fetching {requirement} from PyPI",
        )  # fmt: skip
        wanted.unlink()
        for archive in scratch.iterdir():
            _unpack(archive, into, folders)
        shutil.rmtree(scratch)

    return fetch


def _from_debian(package: str, *folders: str) -> Callable[[Path], None]:
    def fetch(into: Path) -> None:
        what = f"fetching Debian's source of {package}"
        scratch = into / ".fetched"
        for part in ("lists/partial", "cache/archives/partial", "sources"):
            (scratch / part).mkdir(parents=True)
        # Most systems list no sources. Lists of its own need no root and leave the system's alone.
        listed = _run(
            ["apt-get", "indextargets", "--format", "deb-src $(REPO_URI) $(RELEASE) $(COMPONENT)|$(ORIGIN)",
             "Created-By: Packages"], what,
        )  # fmt: skip
        origins = ("Debian", "Ubuntu")
        lines = {line.split("|")[0] for line in listed.splitlines() if line.split("|")[-1] in origins}
        if not lines:
            raise CorpusUnavailableError(
                f"{what}: apt knows no repository of Debian or Ubuntu; run apt-get update once"
            )
        (scratch / "sources.list").write_text("\n".join(sorted(lines)) + "\n")
        private = [
            "-o", f"Dir::Etc::SourceList={scratch / 'sources.list'}", "-o", "Dir::Etc::SourceParts=/dev/null",
            "-o", f"Dir::State::Lists={scratch / 'lists'}", "-o", f"Dir::Cache={scratch / 'cache'}",
        ]  # fmt: skip
        _run(["apt-get", *private, "-q", "update"], what)
        _run(["apt-get", *private, "-q", "source", "--download-only", package], what, scratch / "sources")
        for archive in (scratch / "sources").glob("*.orig.tar.*"):
            _unpack(archive, into, folders)
        shutil.rmtree(scratch)

    return fetch


ARCHIVES = (
    Archive(
        "spirv-cross", _from_debian("spirv-cross", "/shaders"),
        "SPIRV-Cross's own tests: GLSL and SPIR-V assembly with images, sets, arrays, constants, odd layouts",
    ),
    Archive(
        "glslang", _from_debian("glslang", "/Test/"),
        "glslang's own tests: GLSL and HLSL with subgroups, 8- and 16-bit storage, atomics, many extensions",
    ),
    Archive(
        "grilly", _from_pypi(
            "grilly==0.3.0.20260207103851",
            "fbf1181fcd87506a3fa66bd769015972e8ee30da63ce982024063b4cf71fce22",
            "shaders/", wheel=True,
        ),
        "neural networks: plain kernels with push constants",
    ),
    Archive(
        "kp", _from_pypi(
            "kp==0.9.0",
            "98e583dc6e9731ff6d7a3e3317817e4d93f7b2945929619e29a56325db279949",
            ".comp",
        ),
        "Kompute's own shaders",
    ),
    Archive(
        "ggml", _from_pypi(
            "stable-diffusion-cpp-python==0.4.7",
            "998d1957260dd5ae4e18a8acc0c14b0a8757aaa9f96515197b6d5bbf46df9282",
            "/vulkan-shaders/",
        ),
        "language and image models: includes and defines, quantized formats, groups sized by constants",
        quick=False,
    ),
)  # fmt: skip
"""Every archive, in the order of the table."""
