"""Runs README's two commands on bare Debian systems, as on a fresh machine.

    sudo python3 tools/try_readme.py                                    # on Debian 12, 13 and testing
    sudo python3 tools/try_readme.py trixie --command "test tests/memory -q"

Each system (tools/roots.py) has git and nothing else beyond debootstrap's minbase; the project is a clone of
HEAD. What a command prints also goes to build/roots/SUITE-COMMAND.log. The exit status is 1 if one fails.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from roots import FOLDER, Root, bare_root

PROJECT = Path(__file__).resolve().parent.parent
SUITES = ("bookworm", "trixie", "testing")
COMMANDS = ("demo", "test")
_INSIDE = "/root/kompute_py"


def try_suite(suite: str, commands: Sequence[str], env: dict[str, str]) -> list[str]:
    """Runs `commands` of ./dev in a fresh system of `suite`; returns a line about each that fails."""
    with bare_root(suite, ["git"]) as root:
        clone = root.path / _INSIDE[1:]
        # Not hard links: the system is a copy, and so is what it builds from.
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(PROJECT), str(clone)], check=True)
        return [line for line in (_try(root, suite, command, env) for command in commands) if line]


def _try(root: Root, suite: str, command: str, env: dict[str, str]) -> str:
    words = shlex.split(command)
    print(f"== {suite}: ./dev {command}", flush=True)
    began = time.monotonic()
    status = root.run(
        ["/bin/sh", "-c", '{ ./dev "$@"; echo $? >/root/status; } 2>&1 | tee /root/log', "sh", *words],
        cwd=_INSIDE,
        env=env,
        check=False,
    ).returncode
    status = status or int((root.path / "root" / "status").read_text())
    log = FOLDER / f"{suite}-{words[0]}.log"
    log.write_text((root.path / "root" / "log").read_text(errors="replace"))
    print(
        f"== {suite}: ./dev {command}: exit {status} after {time.monotonic() - began:.0f} s; {log}",
        flush=True,
    )
    return f"{suite}: ./dev {command} ended with {status}" if status else ""


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="README's two commands on bare Debian systems.")
    parser.add_argument(
        "suites", nargs="*", default=SUITES, metavar="SUITE", help="bookworm, trixie, testing (default: all)"
    )
    parser.add_argument(
        "--command",
        action="append",
        metavar="'COMMAND ARGUMENTS'",
        help="of ./dev, in place of demo and test",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a variable, such as DEV_WITHOUT_TORCH=1",
    )
    arguments = parser.parse_args(argv)
    env = dict(each.split("=", 1) for each in arguments.set)
    failed = [
        line for suite in arguments.suites for line in try_suite(suite, arguments.command or COMMANDS, env)
    ]
    for line in failed:
        print(f"failed: {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
