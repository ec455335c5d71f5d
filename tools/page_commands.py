"""Runs the commands of README.md and the pages as a reader does: from an installed wheel, in an empty folder.

::

    python tools/page_commands.py                      # builds a wheel, installs it, and runs every page
    python tools/page_commands.py docs/guides/timing.md

A page's blocks run in their order (tests/support/pages.py), because they write the files that its commands
take; then the commands inside of its sentences. The wheel is installed into an environment of its own, which
sees the packages of this one, but not the sources. The exit status is 1 if a command fails.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_INLINE = re.compile(r"`((?:kompute-py|python -m kompute_py\w*)\b[^`\n]*)`")
_FENCED = re.compile(r"^(?P<fence>```+|~~~+).*?^(?P=fence)$", re.M | re.S)
# These wait for somebody, remove caches, or take files that the sentence only names.
_ONLY_READ = {"cache", "demo", "diff", "profile", "program", "watch"}
_RUN_PAGE = """
import sys
from pathlib import Path
import kompute_py
assert Path(kompute_py.__file__).is_relative_to(sys.prefix), kompute_py.__file__
from tests.support.pages import Page
page = Page(Path(sys.argv[1]))
page.run()
"""
_READ = """
import json, shlex, sys, typer.main
from kompute_py.cli.app import app
for text in sys.argv[1:]:
    command = typer.main.get_command(app)
    words = [word for word in shlex.split(text)[1:] if word != "..."]
    try:
        while words and hasattr(command, "commands"):
            name, *words = words
            command = command.commands[name]
        if words:
            command.make_context(command.name, words)
    except Exception as error:
        if type(error).__name__ != "MissingParameter":  # a command that a sentence only names
            print(json.dumps([text, repr(error)]))
"""


def installed(folder: Path, wheel: Path) -> Path:
    """The Python of a new environment with the wheel, and with the packages that this Python has."""
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps", str(wheel)]
    subprocess.run(command, check=True)
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    # A line that names a folder adds it behind the wheel, without the files *.pth in it: no editable sources.
    places = [sysconfig.get_path("purelib"), *(each for each in sys.path if each.endswith("dist-packages"))]
    Path(site, "packages.pth").write_text("\n".join(places), encoding="utf-8")
    return python


def built(folder: Path) -> Path:
    """A wheel of these sources."""
    command = ["pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder), str(ROOT)]
    subprocess.run([sys.executable, "-m", *command], check=True)
    return next(folder.glob("kompute_py-*.whl"))


def sentences(text: str) -> Iterator[str]:
    """The commands inside of sentences."""
    yield from dict.fromkeys(_INLINE.findall(_FENCED.sub("", text)))


class Reader:
    """Runs pages with an installed Python."""

    def __init__(self, python: Path, folder: Path) -> None:
        self.python, self.folder = python, folder
        beside = folder / "beside"  # the runner of pages, without the sources of the package next to it
        beside.mkdir()
        (beside / "tests").symlink_to(ROOT / "tests")
        self.beside = beside
        self.environment = {
            **os.environ,
            "PATH": os.pathsep.join([str(python.parent), os.environ.get("PATH", "")]),
            "MPLBACKEND": "agg",
            "COLUMNS": "110",
            "NO_COLOR": "1",
            "IPYTHONDIR": str(folder / "ipython"),
            "XDG_CACHE_HOME": str(folder / "cache"),
        }

    def _run(self, words: Sequence[str | Path], where: Path, **environment: str) -> tuple[str, str]:
        """What the command prints if it ends well, and if it fails."""
        done = subprocess.run(
            words,
            cwd=where,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        if done.returncode == 0:
            return done.stdout, ""
        return "", done.stdout + done.stderr or f"exit status {done.returncode}"

    def read(self, page: Path) -> list[tuple[str, str]]:
        """The blocks and commands of a page that fail, each with its message."""
        wrong = []
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            where = Path(name)
            _, said = self._run(
                [self.python, "-c", _RUN_PAGE, page], where, PYTHONPATH=str(self.beside), PYTHONSAFEPATH="1"
            )
            if said:
                wrong.append(("its blocks", said))
            named: list[str] = []
            for command in sentences(page.read_text(encoding="utf-8")):
                words = shlex.split(command)
                if words[0] == "python":
                    run: list[str | Path] = [self.python, *words[1:]]
                elif words[1:] != ["info"] and (not words[2:] or words[1] in _ONLY_READ or "..." in words):
                    named.append(command)
                    continue
                else:
                    run = [self.python.parent / words[0], *words[1:]]
                _, said = self._run(run, where)
                if said:
                    wrong.append((command, said))
            if named:
                found, said = self._run([self.python, "-c", _READ, *named], where)
                wrong += [(named[0], said)] if said else map(tuple, map(json.loads, found.splitlines()))
        return wrong


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pages", nargs="*", type=Path, help="pages; default: all")
    given = parser.parse_args(argv).pages
    sys.path.insert(0, str(ROOT))
    from tests.support.pages import pages

    chosen = [page.resolve() for page in given] or [
        page for page in pages(ROOT) if "inside" not in page.parts
    ]
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        reader = Reader(installed(folder / "installed", built(folder / "wheel")), folder)
        for page in chosen:
            wrong = reader.read(page)
            print(f"{'FAILED' if wrong else 'ok    '} {page.relative_to(ROOT)}", flush=True)
            for what, said in wrong:
                failed += 1
                print(f"  {what}:", *said.rstrip().splitlines()[-12:], sep="\n    ", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
