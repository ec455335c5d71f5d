"""The peers, and a virtual environment for each: they would not all agree on one set of dependencies."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from ..paths import cache_directory

_READY = "ready"


class PeerError(RuntimeError):
    """A library cannot be installed, does not start, gives wrong numbers or fails; the message says why."""


@dataclass(frozen=True)
class Peer:
    """A library that is measured. Without `requirements` it works in this interpreter."""

    name: str
    requirements: tuple[str, ...] = ()


OURS = Peer("kompute_py")
PEERS = {
    peer.name: peer
    for peer in (
        OURS,
        Peer("numpy"),
        Peer("wgpu", ("wgpu",)),
        Peer("taichi", ("taichi",)),
        Peer("compushady", ("compushady",)),
        Peer("iree", ("iree-base-runtime", "iree-base-compiler")),
    )
}


def interpreter(peer: Peer) -> Path:
    """The Python that has `peer`; makes its environment where there is none yet.

    Raises PeerError with pip's reason.
    """
    if not peer.requirements:
        return Path(sys.executable)
    what = "\n".join(("numpy", *peer.requirements, sys.version))
    folder = cache_directory() / "peers" / f"{peer.name}-{hashlib.sha256(what.encode()).hexdigest()[:12]}"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if (folder / _READY).exists():
        return python
    print(f"installing {' and '.join(peer.requirements)} ...", file=sys.stderr, flush=True)
    _run(peer, [sys.executable, "-m", "venv", "--clear", str(folder)])
    _run(peer, [str(python), "-m", "pip", "install", "--quiet", "numpy", *peer.requirements])
    (folder / _READY).touch()
    return python


def _run(peer: Peer, command: list[str]) -> None:
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=1800
    )
    if done.returncode:
        errors = [line for line in done.stdout.splitlines() if line.startswith("ERROR")]
        raise PeerError(
            f"{peer.name} cannot be installed: {' '.join(errors) or done.stdout.strip()[-500:] or command}"
        )
