"""Bare Debian systems in folders, to try what a fresh machine would do.

    sudo python3 tools/roots.py run trixie -- cat /etc/os-release
    sudo python3 tools/roots.py run bookworm --packages python3-venv,libvulkan1 --bring dist -- ls /bring/dist
    sudo python3 tools/roots.py remove

`debootstrap --variant=minbase` makes each suite once, in build/roots; every run works in a copy, which is
removed at the end. Scripts use `bare_root`. Mounts live in a mount namespace of their own, and processes in a
process namespace: a run that ends, or is killed, leaves no mount and no process behind.
Needs root, and the packages debootstrap and util-linux.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "build" / "roots"
MIRROR = "http://deb.debian.org/debian"
# The certificates that this machine trusts, in a root: a proxy may have one of its own. They are not at the
# usual place, because the package ca-certificates rewrites that file.
_CERTIFICATES = "/etc/ssl/this-machine.crt"
_CERTIFICATE_VARIABLES = (
    "SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO",
)  # fmt: skip
_PASSED_ON = (
    "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "PIP_DEFAULT_TIMEOUT",
)  # fmt: skip

_ENTER = """
set -e
mount -t proc proc "$ROOT/proc"
mount --rbind /dev "$ROOT/dev"
mount -t tmpfs -o mode=1777 shm "$ROOT/dev/shm"
mount --bind "$ARCHIVES" "$ROOT/var/cache/apt/archives"
exec chroot "$ROOT" /usr/bin/env -i "$@"
"""


class Root:
    """A system in a folder. `path` is that folder; files may be read and written there between the runs."""

    def __init__(self, path: Path, archives: Path) -> None:
        self.path = path
        self._archives = archives

    def run(
        self,
        command: Sequence[str],
        *,
        cwd: str = "/root",
        env: dict[str, str] | None = None,
        check: bool = True,
        timeout: float | None = None,
        capture: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        """Runs `command` inside, as root, with a clean environment and `env`.

        With `capture`, the result has the output and errors as text, in `stdout`. Raises
        subprocess.CalledProcessError if the command fails and `check` is set, and subprocess.TimeoutExpired
        after `timeout` seconds; its processes are then gone.
        """
        variables = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root",
            "LANG": "C.UTF-8",
            "TERM": os.environ.get("TERM", "dumb"),
            "DEBIAN_FRONTEND": "noninteractive",
        }
        variables |= {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        if (self.path / _CERTIFICATES[1:]).exists():
            variables |= dict.fromkeys(_CERTIFICATE_VARIABLES, _CERTIFICATES)
        variables |= env or {}
        assignments = [f"{name}={value}" for name, value in variables.items()]
        inside = ["/bin/sh", "-c", 'cd "$0" && exec "$@"', cwd, *command]
        return subprocess.run(
            [*_NAMESPACES, "sh", "-c", _ENTER, "sh", *assignments, *inside],
            env=os.environ | {"ROOT": str(self.path), "ARCHIVES": str(self._archives)},
            check=check,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if capture else None,
            stderr=subprocess.STDOUT if capture else None,
            text=True,
        )

    def install(self, packages: Sequence[str]) -> None:
        """Installs Debian packages, without those that they only recommend."""
        apt = ["apt-get", "-y", "-q", "-o", "APT::Sandbox::User=root", "-o", "APT::Install-Recommends=false"]
        quiet = ["-o", "Dpkg::Use-Pty=0", "-o", "APT::Keep-Downloaded-Packages=true"]
        self.run([*apt, "update"])
        self.run([*apt, *quiet, "install", *packages])

    def bring(self, source: Path, target: str) -> None:
        """Copies a file or folder of this machine to the absolute path `target` inside."""
        place = self.path / target.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, place, symlinks=True)
        else:
            shutil.copy2(source, place)


# The kernel ends all processes of a process namespace with its first one, which `unshare` ends with itself,
# and `unshare` with this process.
_NAMESPACES = (
    "setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child=KILL",
)  # fmt: skip


@contextlib.contextmanager
def bare_root(suite: str, packages: Sequence[str] = (), *, folder: Path = FOLDER) -> Iterator[Root]:
    """A fresh system of `suite` with `packages`, removed at the end.

    The first use of a suite downloads it into `folder`. Raises SystemExit if this machine cannot make one.
    """
    _check_machine()
    folder.mkdir(parents=True, exist_ok=True)
    archives = folder / "archives" / suite
    (archives / "partial").mkdir(parents=True, exist_ok=True)
    base = folder / f"base-{suite}"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _remove_abandoned(folder)
        if not base.exists():
            _debootstrap(suite, base)
        path = Path(tempfile.mkdtemp(prefix=f"run-{os.getpid()}-{suite}-", dir=folder))
    try:
        subprocess.run(["cp", "-a", "--reflink=auto", f"{base}/.", str(path)], check=True)
        root = Root(path, archives)
        _connect(path)
        if packages:
            root.install(packages)
        yield root
    finally:
        _remove(path)


def remove(folder: Path = FOLDER) -> None:
    """Removes all that `bare_root` keeps."""
    if folder.exists():
        _remove(folder)


def _check_machine() -> None:
    if os.geteuid() != 0:
        sys.exit("error: bare systems need root: debootstrap and chroot do")
    for tool, package in (("debootstrap", "debootstrap"), ("unshare", "util-linux"), ("chroot", "coreutils")):
        if shutil.which(tool, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is None:
            sys.exit(f"error: {tool} is not installed: apt-get install {package}")


def _debootstrap(suite: str, base: Path) -> None:
    making = base.with_name(f"making-{base.name}")
    if making.exists():
        _remove(making)
    print(f"making {base} with debootstrap", flush=True)
    log = base.with_name(f"{base.name}.log")
    with log.open("w") as output:
        done = subprocess.run(
            [*_NAMESPACES, "debootstrap", "--variant=minbase", suite, str(making), MIRROR],
            env=os.environ | {"PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    if done.returncode != 0:
        print("".join(f"  | {line}\n" for line in log.read_text().splitlines()[-10:]), end="")
        sys.exit(f"error: debootstrap failed (exit status {done.returncode}); its output is in {log}")
    making.rename(base)


def _connect(path: Path) -> None:
    """Names and certificates as on this machine. A system that is removed soon need not reach the disk."""
    settings = path / "etc" / "dpkg" / "dpkg.cfg.d"
    settings.mkdir(parents=True, exist_ok=True)
    (settings / "unsafe-io").write_text("force-unsafe-io\n")
    (path / "etc" / "apt" / "apt.conf.d" / "this-machine").write_text(_apt_settings())
    if Path("/etc/resolv.conf").exists():
        shutil.copy("/etc/resolv.conf", path / "etc" / "resolv.conf")
    trusted = Path(os.environ.get("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt"))
    if trusted.is_file():
        (path / "etc" / "ssl").mkdir(parents=True, exist_ok=True)
        shutil.copy(trusted, path / _CERTIFICATES[1:])


def _apt_settings() -> str:
    """What apt believes of a mirror's dates here, and its proxy: a mirror may be older than it says."""
    if shutil.which("apt-config") is None:
        return ""
    names = ("Acquire::Check-Valid-Until", "Acquire::Check-Date", "Acquire::http::Proxy")
    dump = subprocess.run(["apt-config", "dump", *names], check=True, stdout=subprocess.PIPE, text=True)
    return dump.stdout


def _remove_abandoned(folder: Path) -> None:
    """The copies of runs that were killed."""
    for path in folder.glob("run-*"):
        if not Path("/proc", path.name.split("-")[1]).exists():
            _remove(path)


def _remove(path: Path) -> None:
    # Never across a mount: there should be none, and what is mounted belongs to the machine.
    subprocess.run(["rm", "-rf", "--one-file-system", "--", str(path)], check=True)


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Bare Debian systems in folders.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run a command in a fresh system, which is then removed")
    run.add_argument(
        "suite", help="bookworm (Debian 12), trixie (13), testing, or another one that debootstrap knows"
    )
    run.add_argument("--packages", default="", metavar="A,B", help="Debian packages to install first")
    run.add_argument("--bring", action="append", default=[], metavar="PATH", help="copy this to /bring first")
    run.add_argument("words", nargs="+", metavar="COMMAND", help="the command, after --")
    commands.add_parser("remove", help="remove the systems and downloads that are kept")
    arguments = parser.parse_args(argv)
    if arguments.command == "remove":
        remove()
        return 0
    packages = [name for name in arguments.packages.split(",") if name]
    with bare_root(arguments.suite, packages) as root:
        for each in map(Path, arguments.bring):
            root.bring(each, f"/bring/{each.resolve().name}")
        print(f"in {root.path}: {shlex.join(arguments.words)}", flush=True)
        return root.run(arguments.words, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
