"""Shaders from source: GLSL and HLSL compiled to SPIR-V by the compiler that is part of the package."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from .errors import ArgumentTypeError, InvalidArgumentError, KomputeWarning, NotFoundError

__all__ = ["Shader", "ShaderCompileWarning", "compile"]

_LANGUAGES = ("glsl", "hlsl")
# A str on one line with such an end is a path. What each is written in; None: it is SPIR-V already.
_SUFFIXES = {".comp": "glsl", ".glsl": "glsl", ".hlsl": "hlsl", ".spv": None, ".spvasm": None}
_SPIRV_MAGIC = b"\x03\x02\x23\x07"
_TARGETS = ("vulkan1.0", "vulkan1.1", "vulkan1.2", "vulkan1.3")


class ShaderCompileWarning(KomputeWarning):
    """The shader compiler warns about a source that it compiles."""


class _Compiled(NamedTuple):
    spirv: bytes
    files: list[str]
    """The files that the result was made from: the source's own and all that it includes."""


def compile(
    source: str | os.PathLike[str],
    *,
    language: str | None = None,
    entry: str = "main",
    defines: Mapping[str, object] | None = None,
    include_dirs: Iterable[str | os.PathLike[str]] = (),
    optimize: bool = True,
    debug_info: bool = False,
    target: str = "vulkan1.2",
) -> bytes:
    """Compile a compute shader to SPIR-V.

    Args:
        source: The text of the shader, or where it is: a path object, or a `str` on one line that ends in
            ``.comp``, ``.glsl``, ``.hlsl``, ``.spv`` or ``.spvasm``. A ``.spv`` file is validated and
            returned as it is, a ``.spvasm`` file is assembled and validated. A GLSL source without a ``#version`` counts as version 450.
        language: ``"glsl"`` or ``"hlsl"``; by default what the path's suffix says, else GLSL.
        entry: The name of the entry point. In HLSL it is the function to compile; in GLSL that function is
            always ``main`` and the module's entry point gets this name.
        defines: Macros. An `int` or `float` becomes a literal, a `bool` 1 or 0, None an empty macro (for
            ``#ifdef``), a `str` the text that the shader sees. ``{"SQUARE(x)": "((x) * (x))"}`` has a parameter.
        include_dirs: Where ``#include`` looks, after the directory of the file that includes.
        optimize: Optimize the SPIR-V for speed. Names, bindings and specialization constants are kept.
        debug_info: Keep the source and its lines in the module, for debuggers and profilers.
        target: ``"vulkan1.0"`` to ``"vulkan1.3"``: the version of Vulkan whose SPIR-V is made.

    Returns:
        The SPIR-V module.

    Raises:
        ShaderCompileError: The source does not compile. The message shows every error with its line and a
            caret; ``.diagnostics`` lists them.
        NotFoundError: There is no such file.
        InvalidArgumentError: A language, target, macro or name cannot be.
        ArgumentTypeError: An argument is of the wrong type.

    What the compiler warns about is a `ShaderCompileWarning`.
    """
    return _compile(
        source,
        language=language,
        entry=entry,
        defines=defines,
        include_dirs=include_dirs,
        optimize=optimize,
        debug_info=debug_info,
        target=target,
        stacklevel=3,
    ).spirv


def _compile(
    source: str | os.PathLike[str],
    *,
    language: str | None = None,
    entry: str = "main",
    defines: Mapping[str, object] | None = None,
    include_dirs: Iterable[str | os.PathLike[str]] = (),
    virtual_includes: Mapping[str, str] | None = None,
    optimize: bool = True,
    debug_info: bool = False,
    target: str = "vulkan1.2",
    stacklevel: int = 2,
) -> _Compiled:
    """`compile`, which also says which files took part; `virtual_includes` are texts that ``#include`` finds first."""
    from . import _native

    if language is not None and language not in _LANGUAGES:
        raise InvalidArgumentError(
            f"{language!r} is not a shading language; choose one of {', '.join(_LANGUAGES)}"
        )
    if not isinstance(entry, str) or not isinstance(target, str):
        raise ArgumentTypeError("entry and target must each be a str")
    macros = _macros(defines or {})
    if isinstance(include_dirs, str | bytes | os.PathLike):
        raise ArgumentTypeError("include_dirs is a list of directories; write [directory] for a single one")
    directories = [os.fsencode(directory) for directory in include_dirs]

    path = _path_of(source)
    if path is None:
        text, name, files = _encoded("the source", str(source)), b"<source>", []
    else:
        text, name, files = _read(path), os.fsencode(path), [str(path)]
        suffix = path.suffix.lower()
        if suffix in _SUFFIXES and _SUFFIXES[suffix] is None:
            if language is not None or macros:
                raise InvalidArgumentError(
                    f"{path} is SPIR-V already: language and defines cannot apply to it"
                )
            return _Compiled(_module(path, text, target), files)
        language = language or _SUFFIXES.get(suffix)
    spirv, found, included = _native.compile(
        text,
        name,
        language or "glsl",
        _encoded("entry", entry),
        macros,
        directories,
        {key: _encoded(key, value) for key, value in (virtual_includes or {}).items()},
        bool(optimize),
        bool(debug_info),
        _encoded("target", target),
    )
    for file, line, column, _, message, _ in found:
        place = ":".join(str(part) for part in (file, line, column) if part)
        warnings.warn(f"{place}: {message}", ShaderCompileWarning, stacklevel=stacklevel)
    return _Compiled(spirv, files + included)


def _path_of(source: object) -> Path | None:
    if isinstance(source, os.PathLike):
        return Path(os.fsdecode(source))
    if not isinstance(source, str):
        raise ArgumentTypeError(
            f"A shader's source is a str or a path, not {type(source).__name__}"
            + ("; bytes of SPIR-V need no compiling" if isinstance(source, bytes | bytearray) else "")
        )
    if "\n" in source or "\r" in source or not source.lower().endswith(tuple(_SUFFIXES)):
        return None
    return Path(source)


def _read(path: Path) -> bytes:
    try:
        # As bytes: a comment may be in any encoding, and the compiler does not mind.
        return path.read_bytes()
    except FileNotFoundError as error:
        raise NotFoundError(f"There is no shader file {str(path)!r} (in {os.getcwd()!r})") from error
    except (OSError, ValueError) as error:
        raise NotFoundError(f"Cannot read the shader file {str(path)!r}: {error}") from error


def _module(path: Path, content: bytes, target: str) -> bytes:
    """The module that a file of SPIR-V or of its assembly holds, valid for the target."""
    from . import _native

    if target not in _TARGETS:
        raise InvalidArgumentError(f"{target!r} is not a target; choose one of {', '.join(_TARGETS)}")
    minor = _TARGETS.index(target)
    if path.suffix.lower() == ".spvasm":
        content = _native.assemble_spirv(content, minor, os.fsencode(path))
    elif content[:4] != _SPIRV_MAGIC or len(content) % 4:
        raise InvalidArgumentError(
            f"{path} is not SPIR-V: it has {len(content)} bytes and starts with {content[:4]!r}"
        )
    # Whether a layout needs the device to have scalarBlockLayout shows when an algorithm is made of it.
    if problem := _native.validate_spirv(content, minor, scalar_block_layout=True):
        raise InvalidArgumentError(f"{path} is not valid SPIR-V for {target}: {problem}")
    return content


def _encoded(what: str, text: str) -> bytes:
    if not isinstance(text, str):
        raise ArgumentTypeError(f"{what} must be a str, not {type(text).__name__}")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(
            f"{what} contains half of a surrogate pair, which is no character"
        ) from error


def _macros(defines: Mapping[str, object]) -> list[tuple[bytes, bytes]]:
    if not isinstance(defines, Mapping):
        raise ArgumentTypeError(f"defines is a dict of macros, not {type(defines).__name__}")
    return [(_encoded("a macro's name", name), _literal(name, value)) for name, value in defines.items()]


def _literal(name: str, value: Any) -> bytes:
    """The value of a macro as the shader's text."""
    if hasattr(value, "dtype") and getattr(value, "shape", None) == ():
        value = value.item()  # a NumPy scalar
    if value is None:
        return b""
    if isinstance(value, str):
        return _encoded(f"the value of the macro {name}", value)
    if isinstance(value, bool):
        # Not true and false: #if knows only numbers.
        return b"1" if value else b"0"
    if isinstance(value, int):
        if -(2**31) <= value < 2**31:
            return str(value).encode()
        if 0 <= value < 2**32:
            return f"{value}u".encode()
        raise InvalidArgumentError(
            f"The macro {name} = {value} does not fit 32 bits; give it as the text that the shader should see"
        )
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidArgumentError(
                f"The macro {name} = {value}: shading languages have no literal for it"
            )
        return repr(value).encode()
    raise ArgumentTypeError(
        f"The macro {name} is a {type(value).__name__}; it must be a str, int, float, bool or None"
    )


class Shader:
    """What Kompute's older versions have for compiling; `compile` is the newer way."""

    @staticmethod
    def compile_source(
        source: str, entryPoint: str = "main", definitions: Iterable[tuple[str, object]] = ()
    ) -> bytes:
        """Compile GLSL to SPIR-V, as `compile` does.

        `definitions` are pairs of a macro's name and value. The argument is always the text itself, never a path.
        """
        if not isinstance(source, str):
            raise ArgumentTypeError(f"The source must be a str, not {type(source).__name__}")
        # A line end more keeps what looks like the name of a file from being opened.
        return _compile(source + "\n", entry=entryPoint, defines=dict(definitions), stacklevel=3).spirv
