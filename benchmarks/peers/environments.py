"""The peers, and a virtual environment for each: they would not all agree on one set of dependencies."""

from __future__ import annotations

import functools
import hashlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from ..paths import cache_directory

_READY = "ready"
_SYSTEM = Path("/usr/bin/python3")


class PeerError(RuntimeError):
    """A library cannot be installed, does not start, gives wrong numbers or fails; the message says why."""


@dataclass(frozen=True)
class Peer:
    """A library that is measured. Without `requirements` it works in this interpreter."""

    name: str
    requirements: tuple[str, ...] = ()
    of_system: str = ""
    """A module that the system's own Python may have, which saves installing it: PyPI's PyTorch brings
    gigabytes.
    """


OURS = Peer("kompute_py")
PEERS = {
    peer.name: peer
    for peer in (
        OURS, Peer("numpy"), Peer("wgpu", ("wgpu",)), Peer("taichi", ("taichi",)),
        Peer("compushady", ("compushady",)), Peer("torch", ("torch",), of_system="torch"),
    )
}  # fmt: skip


@functools.cache
def interpreter(peer: Peer) -> Path:
    """The Python that has `peer`; makes its environment where there is none yet.

    Raises PeerError with pip's reason.
    """
    if not peer.requirements:
        return Path(sys.executable)
    if peer.of_system and _imports(_SYSTEM, "numpy", peer.of_system):
        return _SYSTEM
    what = "\n".join(("numpy", *peer.requirements, sys.version))
    first = peer.requirements[0]
    folder = cache_directory() / "peers" / f"{first}-{hashlib.sha256(what.encode()).hexdigest()[:12]}"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if (folder / _READY).exists():
        return python
    print(f"installing {' and '.join(peer.requirements)} ...", file=sys.stderr, flush=True)
    _run(peer, [sys.executable, "-m", "venv", "--clear", str(folder)])
    _run(peer, [str(python), "-m", "pip", "install", "--quiet", "numpy", *peer.requirements])
    (folder / _READY).touch()
    return python


def _imports(python: Path, *modules: str) -> bool:
    """Whether this interpreter is there and has the modules."""
    command = [str(python), "-c", f"import {', '.join(modules)}"]
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=120).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _run(peer: Peer, command: list[str]) -> None:
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=1800
    )
    if done.returncode:
        errors = [line for line in done.stdout.splitlines() if line.startswith("ERROR")]
        raise PeerError(
            f"{peer.name} cannot be installed: {' '.join(errors) or done.stdout.strip()[-500:] or command}"
        )
