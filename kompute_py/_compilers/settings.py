"""The settings of the compilers and of the shader cache.

A Manager has them among its options, for `Manager.kernel` and reloads. `kp.compile` and `kp.ShaderModule`
have no Manager: they use the process's environment, under ``KOMPUTE_PY_``.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from .._base.errors import ArgumentTypeError, InvalidArgumentError, shown
from .._base.settings import PREFIX, Option, default_cache_dir, find_setting, to_path
from .._base.sizes import as_bytes
from .limits import as_seconds

COMPILERS = ("dxc", "slang")
Lookup = Callable[[str], Any]
"""Returns the value of a setting by its name."""


def _library_of(spoken: str) -> Callable[[Any, str], str]:
    return functools.partial(to_path, takes=f'{spoken}\'s library, its folder, or "" for no {spoken}')


def to_compiler(value: Any, source: str) -> str:
    """`value`, a compiler of HLSL. Raises ArgumentTypeError or InvalidArgumentError, naming `source`."""
    if not isinstance(value, str) or value.strip().lower() not in COMPILERS:
        wrong = InvalidArgumentError if isinstance(value, str) else ArgumentTypeError
        raise wrong(f"{source} is {shown(value)}; choose one of {', '.join(COMPILERS)}")
    return value.strip().lower()


def to_when(value: Any, source: str) -> str:
    """`value`, when to compile. Raises ArgumentTypeError or InvalidArgumentError, naming `source`."""
    if not isinstance(value, str) or value.strip().lower() not in ("auto", "never"):
        wrong = InvalidArgumentError if isinstance(value, str) else ArgumentTypeError
        raise wrong(f"{source} is {shown(value)}; choose auto or never")
    return value.strip().lower()


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
        to_when,
        lambda: "auto",
        empty_is_default=True,
    ),
    "compile_timeout": Option(
        "The time limit of one compilation, in seconds.",
        as_seconds,
        lambda: 20.0,
        empty_is_default=True,
    ),
    "compiler": Option(
        'The compiler for HLSL: "dxc" or "slang". None: DXC if its library is found, else Slang.',
        to_compiler,
        lambda: None,
        empty_is_default=True,
    ),
    "dxc_library": Option(
        'DXC\'s library or its folder. "" means no DXC, None to look for it.',
        _library_of("DXC"),
        lambda: None,
        is_path=True,
    ),
    "slang_library": Option(
        'Slang\'s library or its folder. "" means no Slang, None to look for it.',
        _library_of("Slang"),
        lambda: None,
        is_path=True,
    ),
}


def of_process(name: str) -> Any:
    """The value for calls without a Manager. Raises the errors of `Manager` for the option."""
    return find_setting(name, OPTIONS[name], {}, PREFIX).value
