"""Runs a program of the gallery: python -m kompute_py_gallery NAME [--size N] [--out PICTURE]."""

from __future__ import annotations

import importlib
import pkgutil
import sys

from . import __path__ as folder

NAMES = sorted(each.name for each in pkgutil.iter_modules(folder) if not each.name.startswith("_"))


def main(arguments: list[str]) -> int:
    """Returns the status of the process: 0, 1 for a wrong result, 2 for a name that is not there."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(f"{__doc__}\n\nThe programs: {', '.join(NAMES)}")
        return 0
    name, *options = arguments
    if name not in NAMES:
        print(f"There is no program {name!r} in the gallery; there are {', '.join(NAMES)}", file=sys.stderr)
        return 2
    sys.argv[0] = f"python -m {__package__} {name}"  # for the program's own usage
    try:
        program = importlib.import_module(f"{__package__}.{name}")
    except ModuleNotFoundError as error:
        print(f'{name} needs {error.name}: pip install "kompute-py[examples]"', file=sys.stderr)
        return 1
    status: int = program.main(options)
    return status


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
