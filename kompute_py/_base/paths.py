"""The user's folders."""

from __future__ import annotations

import os
import sys


def default_cache_dir() -> str:
    """The system's folder for the user's caches, which may be deleted at any time. "" if there is none."""
    if sys.platform == "win32":
        root = os.environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        root = os.path.expanduser("~/Library/Caches")
    else:
        root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    # Without a home folder, expanduser leaves the tilde: the user then has no place to write to.
    return os.path.join(root, "kompute_py") if os.path.isabs(root) else ""
