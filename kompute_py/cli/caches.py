"""``kompute-py cache``: the results of compilation on disk."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from .._base.settings import ConfigReport, Setting
from .._base.text import binary_size
from .common import Traceback


def cache_command(
    clear: Annotated[bool, typer.Option("--clear", help="Delete the entries of all caches.")] = False,
    entries: Annotated[bool, typer.Option("--list", help="List the entries, the last used first.")] = False,
    show_traceback: Traceback = False,
) -> None:
    """Show or clear the caches on disk: compiled shaders, the drivers' pipelines, choices of variants."""
    from .._compilers.cache import shader_cache, source_name
    from .._device.options import settings

    options = settings({})
    shaders = shader_cache(lambda name: getattr(options, name).value)
    if shaders is None:
        print("shaders: off (KOMPUTE_PY_SHADER_CACHE_DIR or KOMPUTE_PY_SHADER_CACHE_SIZE)")
    else:
        found = shaders.entries()
        size = sum(entry.size for entry in found)
        print(f"shaders: {_count(found)}, {binary_size(size)} of {binary_size(shaders.limit)}")
        print(f"  {shaders.directory}")
        _print_sources(options.shader_cache_dir, options.shader_cache_size)
        if entries:
            for entry in reversed(found):
                try:
                    name = source_name(entry.path)
                except (OSError, ValueError):
                    name = "(damaged)"
                print(f"  {_date(entry.used)}  {binary_size(entry.size):>10}  {name}")
        if clear:
            print(f"  deleted {shaders.clear()}")

    _show_pipelines(options, entries, clear)
    _show_choices(options, clear)


def _show_choices(options: ConfigReport, clear: bool) -> None:
    from .._functions.tuning import tuning_files

    directory = options.tuning_dir.value
    if not directory:
        print("choices of variants: off (KOMPUTE_PY_TUNING_DIR)")
        return
    files = tuning_files(directory)
    print(f"choices of variants: {_count(files)}")
    print(f"  {directory}")
    _print_sources(options.tuning_dir)
    if clear:
        print(f"  deleted {sum(map(_remove, files))}")


def _show_pipelines(options: ConfigReport, entries: bool, clear: bool) -> None:
    directory = options.pipeline_cache_dir.value
    if not directory:
        print("pipelines: off (KOMPUTE_PY_PIPELINE_CACHE_DIR)")
        return
    files = list(_pipeline_files(directory))
    print(f"pipelines: {_count(files)}, {binary_size(sum(status.st_size for _, status in files))}")
    print(f"  {directory}")
    _print_sources(options.pipeline_cache_dir)
    if entries:
        for path, status in sorted(files, key=lambda file: -file[1].st_mtime):
            print(f"  {_date(status.st_mtime)}  {binary_size(status.st_size):>10}  {os.path.basename(path)}")
    if clear:
        print(f"  deleted {sum(_remove(path) for path, _ in files)}")
        # Without a common lock two writers lose at most each other's newest entries: it can go at any time.
        for path, _ in _pipeline_files(directory, ".lock"):
            _remove(path)


def _print_sources(*found: Setting) -> None:
    for each in found:
        if each.source != "default":
            print(f"  {each.name} from {each.source}")


def _pipeline_files(directory: str, more: str = "") -> Iterator[tuple[str, os.stat_result]]:
    """The files of native/core/base/pipeline_cache_file: hexadecimal digits, a dash, digits, ".bin"; `more`
    is ".lock" for their locks.
    """
    ending = f".bin{more}"
    try:
        with os.scandir(directory) as found:
            for entry in found:
                uuid, dash, version = entry.name.removesuffix(ending).partition("-")
                ours = entry.name.endswith(ending) and len(uuid) == 32 and dash and version.isdecimal()
                if ours and entry.is_file():
                    yield entry.path, entry.stat()
    except OSError:
        return


def _remove(path: str) -> bool:
    try:
        os.remove(path)
    except OSError:
        return False
    return True


def _count(found: Sequence[object]) -> str:
    return f"{len(found)} {'entry' if len(found) == 1 else 'entries'}"


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
