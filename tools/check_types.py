"""Counts the public names of a package whose types are complete, with pyright; fails below a limit.

::

    python tools/check_types.py                        # kompute_py, at least 99 % of its names
    python tools/check_types.py FOLDER --least 98.5    # another package

A name counts if its type, and all types that it mentions, are written down, so that each checker of types
comes to the same result. Other packages' types do not count. Prints the names that fall short.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LEAST = 99.0


def completeness(package: Path) -> dict[str, Any]:
    """Pyright's report on the package in this folder."""
    # Pyright looks for an installed package with its file py.typed. Of an editable installation it would find
    # only the folder with the extension module.
    with tempfile.TemporaryDirectory() as site:
        os.symlink(package.resolve(), Path(site, package.name), target_is_directory=True)
        command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson"]
        done = subprocess.run(
            [*command, "--verifytypes", package.name, "--ignoreexternal"],
            cwd=site,
            env={**os.environ, "PYTHONPATH": site, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    try:
        report: dict[str, Any] = json.loads(done.stdout)["typeCompleteness"]
    except (ValueError, KeyError):
        raise SystemExit(f"pyright gave no report:\n{done.stdout}{done.stderr}") from None
    return report


def main() -> int:
    """Runs the check. Returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("package", nargs="?", type=Path, default=ROOT / "kompute_py")
    parser.add_argument("--least", type=float, default=LEAST, help=f"percent of the names ({LEAST:g})")
    given = parser.parse_args()
    report = completeness(given.package)
    if not report["symbols"]:
        raise SystemExit(f"pyright found no names in {given.package}: has it a file py.typed?")
    for symbol in report["symbols"]:
        if not (symbol["isTypeKnown"] and not symbol["isTypeAmbiguous"]):
            reasons = [each["message"].splitlines()[0] for each in symbol["diagnostics"]]
            print(f"{symbol['name']}: {'; '.join(reasons) or 'incomplete'}")
    score = 100 * report["completenessScore"]
    print(f"{score:.2f} % of the public names have complete types; at least {given.least:g} % are required")
    return int(score < given.least)


if __name__ == "__main__":
    raise SystemExit(main())
