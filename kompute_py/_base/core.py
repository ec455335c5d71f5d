"""The compiled core, imported before all else: an import without it says what to do."""

from __future__ import annotations

import sys
from pathlib import Path


def without_core(folder: Path, error: ImportError) -> ImportError:
    """The error for the import of the package in `folder`, after that of its core failed with `error`.

    It is `error` itself if a library for this Python is there and does not load.
    """
    there = sorted(path.name for path in folder.glob("_native.*") if path.suffix in (".so", ".pyd"))
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    if not there:
        return ImportError(
            f"{folder} is kompute_py's source folder, without its compiled core. If kompute_py is installed, "
            "start Python in another folder: this one comes first in its search path. Or build the core: "
            "`pip install -e .`, or `./dev build` and `./dev shell`"
        )
    digits = version.replace(".", "")
    if not any(f"-{digits}-" in name or f"cp{digits}-" in name for name in there):
        return ImportError(
            f"The kompute_py in {folder} was built for another Python than {version}: it has "
            f"{', '.join(there)}. Install it for this one: `pip install kompute-py`"
        )
    return error


try:
    from .. import _native as _native
except ImportError as failed:
    raise without_core(Path(__file__).parents[1], failed) from None
