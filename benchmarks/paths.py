"""Where the benchmarks keep what they build."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def cache_directory() -> Path:
    """The benchmarks' part of the repository's cache; made when missing."""
    directory = ROOT / ".cache" / "benchmarks"
    directory.mkdir(parents=True, exist_ok=True)
    return directory
