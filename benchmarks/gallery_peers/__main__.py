"""Runs the programs of the gallery that peers have too, and compares their lines of code.

    python -m benchmarks.gallery_peers [--markdown] [--count]

Each library works in a virtual environment of its own, which the command makes. `--count` only counts.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tools.count_code import code_lines

from ..paths import ROOT
from ..peers.environments import OURS, Peer, interpreter
from ..table import aligned

_SHARED = ("matplotlib", "pillow", "scikit-image", "scipy")
LIBRARIES = {
    "kompute_py": (OURS, ROOT / "kompute_py_gallery"),
    "taichi": (Peer("gallery-taichi", ("taichi", *_SHARED)), Path(__file__).parent / "with_taichi"),
    "wgpu": (Peer("gallery-wgpu", ("wgpu", *_SHARED)), Path(__file__).parent / "with_wgpu"),
}
PROGRAMS = ("heat", "histogram_equalisation", "raymarch")
SIZES = {"raymarch": 120}


def counts(program: str) -> dict[str, tuple[int, int]]:
    """Of each library: all lines of code, and those that are not the same in all versions."""
    lines = {
        name: code_lines((folder / f"{program}.py").read_text()) for name, (_, folder) in LIBRARIES.items()
    }
    same = Counter(lines["kompute_py"])
    for each in lines.values():
        same &= Counter(each)
    return {name: (len(each), (Counter(each) - same).total()) for name, each in lines.items()}


def run(library: str, program: str) -> str:
    """The last line that the program printed, which says whether its result was right.

    Raises SystemExit with the program's output if it fails.
    """
    peer, folder = LIBRARIES[library]
    with tempfile.TemporaryDirectory() as out:
        command = [str(interpreter(peer)), str(folder / f"{program}.py"), "--out", f"{out}/picture.png"]
        if program in SIZES:
            command += ["--size", str(SIZES[program])]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
            env={**os.environ, "TI_OFFLINE_CACHE": "0"},
        )
    if done.returncode or not done.stdout:
        raise SystemExit(f"{program} with {library} fails:\n{done.stdout}{done.stderr}")
    return done.stdout.splitlines()[-1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--count", action="store_true", help="run nothing")
    options = parser.parse_args()
    if not options.count:
        for program in PROGRAMS:
            for library in LIBRARIES:
                print(f"{program} with {library}: {run(library, program)}", file=sys.stderr, flush=True)
    rows = [["program", *LIBRARIES]]
    for program in PROGRAMS:
        cells = counts(program).values()
        rows.append([program.replace("_", " "), *(f"{own} ({whole})" for whole, own in cells)])
    print(aligned(rows, options.markdown))
    return 0


if __name__ == "__main__":
    sys.exit(main())
