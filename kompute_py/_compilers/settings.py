"""The settings of the compilers and of the shader cache.

A Manager has them among its options, for `Manager.kernel` and reloads. `kp.compile` and `kp.ShaderModule`
have no Manager: they use the process's environment, under ``KOMPUTE_PY_``.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from .._base.settings import PREFIX, Option, as_bytes, default_cache_dir, find_setting, to_choice, to_path
from .limits import as_seconds

COMPILERS = {"dxc": "DXC", "slang": "Slang"}
"""Those in libraries, with their names in messages."""
Lookup = Callable[[str], Any]
"""Returns the value of a setting by its name."""

to_compiler = functools.partial(to_choice, choices=COMPILERS)


def _cache_dir() -> str:
    root = default_cache_dir()
    return root and os.path.join(root, "shaders")


OPTIONS: dict[str, Option] = {
    "shader_cache_dir": Option(
        'The folder of the cache of compiled shaders. "" turns the cache off.',
        functools.partial(to_path, takes='a folder, or "" for no shader cache on disk'),
        _cache_dir,
        is_path=True,
    ),
    "shader_cache_size": Option(
        "The most bytes that the cache of compiled shaders holds. 0 turns it off.",
        as_bytes,
        lambda: 128 * 2**20,
        empty_is_default=True,
    ),
    "compile": Option(
        'Whether source text may be compiled: "auto", or "never": the cache must have it.',
        functools.partial(to_choice, choices=("auto", "never")),
        lambda: "auto",
        empty_is_default=True,
    ),
    "compile_timeout": Option(
        "The time limit of one compilation, in seconds.",
        as_seconds,
        lambda: 20.0,
        empty_is_default=True,
    ),
    "dump": Option(
        "A folder that keeps the source, SPIR-V and assembly of each shader that is compiled, "
        'recordings as text, and a report if the device is lost. "" keeps none.',
        functools.partial(to_path, takes='a folder, or "" to keep no shaders'),
        str,
        is_path=True,
    ),
    "compiler": Option(
        'The compiler for HLSL: "dxc" or "slang". None: DXC if its library is found, else Slang.',
        to_compiler,
        lambda: None,
        empty_is_default=True,
    ),
    **{
        f"{kind}_library": Option(
            f'{name}\'s library or its folder. "" means no {name}, None to look for it.',
            functools.partial(to_path, takes=f'{name}\'s library, its folder, or "" for no {name}'),
            lambda: None,
            is_path=True,
        )
        for kind, name in COMPILERS.items()
    },
}


def of_process(name: str) -> Any:
    """The value for calls without a Manager. Raises the errors of `Manager` for the option."""
    return find_setting(name, OPTIONS[name], {}, PREFIX).value


def keeps_lines(setting: Lookup) -> bool:
    """Whether modules keep the lines of their source: those of a Manager with ``debug=``."""
    return setting is not of_process and bool(setting("debug"))
