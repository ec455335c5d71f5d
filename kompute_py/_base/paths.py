"""Folders of the user's."""

from __future__ import annotations

import os
import sys


def default_cache_dir() -> str:
    """The folder for what may be deleted at any time: the user's, as the system has it. "" where there is none."""
    if sys.platform == "win32":
        root = os.environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        root = os.path.expanduser("~/Library/Caches")
    else:
        root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    # With no home folder expanduser leaves the tilde: then there is no place of the user's to write to.
    return os.path.join(root, "kompute_py") if os.path.isabs(root) else ""
