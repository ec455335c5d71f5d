"""Runs the programs of the gallery that peers have too, and compares their lines of code.

    python -m benchmarks.gallery_peers [--markdown] [--count]

Each library works in a virtual environment of its own, which the command makes. `--count` only counts.
A peer's file has what differs from the gallery's program; the rest of its program is the gallery's own text.
"""

from __future__ import annotations

import argparse
import ast
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


def source(library: str, program: str) -> str:
    """The text of the whole program."""
    ours, own = (
        (LIBRARIES[name][1] / f"{program}.py").read_text(encoding="utf-8") for name in ("kompute_py", library)
    )
    if library == "kompute_py":
        return ours
    has = {node.name for node in ast.parse(own).body if isinstance(node, ast.FunctionDef)}
    parts = [own]
    for node in ast.parse(ours).body:
        text = ast.get_source_segment(ours, node) or ""
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            shared = text not in own and "kompute_py" not in text
        else:
            shared = isinstance(node, ast.If) or (isinstance(node, ast.FunctionDef) and node.name not in has)
        if shared:
            parts.append(text)
    return "\n\n".join(parts)


def counts(program: str) -> dict[str, tuple[int, int]]:
    """Of each library: all lines of code, and those that are not the same in all versions."""
    lines = {name: code_lines(source(name, program)) for name in LIBRARIES}
    same = Counter(lines["kompute_py"])
    for each in lines.values():
        same &= Counter(each)
    return {name: (len(each), (Counter(each) - same).total()) for name, each in lines.items()}


def run(library: str, program: str) -> str:
    """The last line that the program printed, which says whether its result was right.

    Raises SystemExit with the program's output if it fails.
    """
    peer, _ = LIBRARIES[library]
    with tempfile.TemporaryDirectory() as out:
        whole = Path(out, f"{program}.py")
        whole.write_text(source(library, program), encoding="utf-8")
        command = [str(interpreter(peer)), str(whole), "--out", f"{out}/picture.png"]
        if program in SIZES:
            command += ["--size", str(SIZES[program])]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=600, check=False,
            env={**os.environ, "TI_OFFLINE_CACHE": "0"},
        )  # fmt: skip
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
