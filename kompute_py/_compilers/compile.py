"""Shaders from source: GLSL compiled to SPIR-V by the compiler that is part of the package, HLSL by DXC and
Slang by Slang where they are installed (languages.py)."""

from __future__ import annotations

import functools
import math
import os
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _native
from .._base.arrays import to_flag
from .._base.digest import digest, marks, pack
from .._base.errors import (
    ArgumentTypeError,
    CompileTimeoutError,
    EvalTimeoutError,
    InvalidArgumentError,
    ShaderCompileError,
    ShaderCompileWarning,
    UnimplementedError,
    kind_of,
    shown,
)
from .._base.plain_arguments import refuse_unordered
from .cache import CachedShader, compiler_key, shader_cache
from .languages import LANGUAGES, Compiler, choose_compiler, compile_elsewhere
from .limits import most_bytes, read_file, time_limit, too_long
from .settings import Lookup, of_process
from .spirv_words import is_spirv, module_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from .._base.annotations import CompilerName, Language, Optimization, SizeLike, Target

__all__ = ["Shader", "ShaderCompileWarning", "compile"]

_OPTIMIZATIONS = ("none", "size", "performance")
_MAX_REGISTER_BASE = 1 << 16  # far beyond the bindings of any device
# A one-line str with such a suffix is a path. The language of each; None for SPIR-V.
_SUFFIXES: dict[str, Language | None] = {
    ".comp": "glsl",
    ".glsl": "glsl",
    ".hlsl": "hlsl",
    ".slang": "slang",
    ".spv": None,
    ".spvasm": None,
}
TARGETS = ("vulkan1.0", "vulkan1.1", "vulkan1.2", "vulkan1.3")


class _Compiled(NamedTuple):
    spirv: bytes
    declared: bytes
    """The module before optimization; b"" if it is the same."""
    files: list[str]
    """The files that the result was made from: the source's own and all that it includes."""
    sought: list[tuple[str, bytes]]
    """All paths on which the result depends, with the digests of their contents; b"" for missing files."""
    language: Language | None = None
    """None: it was SPIR-V already."""
    compiler: str | None = None


def compile(
    source: str | os.PathLike[str],
    *,
    language: Language | None = None,
    entry: str = "main",
    defines: Mapping[str, object] | None = None,
    include_dirs: Iterable[str | os.PathLike[str]] = (),
    includes: Mapping[str, str] | None = None,
    optimize: bool | Optimization = True,
    debug_info: bool = False,
    target: Target = "vulkan1.2",
    spirv_version: str | None = None,
    glsl_version: int | str | None = None,
    auto_bind: bool = False,
    register_bases: Mapping[str, int] | None = None,
    hlsl_offsets: bool = False,
    hlsl_16bit_types: bool = False,
    compiler: CompilerName | None = None,
    compiler_options: str | Iterable[str] = (),
    cache: bool = True,
    timeout: float | None = None,
    size_limit: SizeLike | None = None,
) -> bytes:
    """Compile a compute shader to SPIR-V.

    Args:
        source: The text of the shader, or its path: a path object, or a `str` on one line that ends in
            ``.comp``, ``.glsl``, ``.hlsl``, ``.slang``, ``.spv`` or ``.spvasm``. A file of SPIR-V, told by
            its first bytes or by ``.spv``, is validated and returned as it is. A ``.spvasm`` file is
            assembled and validated. A GLSL source without a ``#version`` counts as version 450.
        language: ``"glsl"``, ``"hlsl"`` or ``"slang"``; by default what the path's suffix says, else GLSL.
        entry: The name of the entry point. In HLSL and Slang it is the function to compile; in GLSL that
            function is always ``main`` and the module's entry point gets this name.
        defines: Macros. An `int` or `float` becomes a literal, a `bool` 1 or 0, None an empty macro (for
            ``#ifdef``), a `str` the text that the shader sees. ``{"SQUARE(x)": "((x) * (x))"}`` has a
            parameter.
        include_dirs: Folders for ``#include``, searched after the including file's own.
        includes: Texts by name, which ``#include`` finds before any file.
        optimize: ``"performance"`` (True), ``"size"``, or ``"none"`` (False). Names, bindings and
            specialization constants are kept.
        debug_info: Keep the source and its lines in the module, for debuggers and profilers.
        target: ``"vulkan1.0"`` to ``"vulkan1.3"``: the Vulkan version of the resulting SPIR-V.
        spirv_version: ``"1.0"`` to ``"1.6"``, up to what the target has; by default that, and for HLSL and
            Slang 1.3, which all drivers take.
        glsl_version: The version of GLSL whatever ``#version`` says: 430 to 460, ``"310 es"``,
            ``"450 compatibility"``.
        auto_bind: Number bindings that have no number. In HLSL and Slang that is always so.
        register_bases: For HLSL: what to add to the registers' numbers by their letter: ``{"u": 8}`` makes
            ``u0`` binding 8. By default nothing; but if two resources would then share a binding, as ``t0``
            and ``u0`` do, those of u are numbered after those of t, then those of b, then those of s.
        hlsl_offsets: Lay blocks of GLSL out by the rules of HLSL.
        hlsl_16bit_types: Give ``half`` and ``min16float`` of HLSL 16 bits, not 32.
        compiler: The compiler of HLSL: ``"dxc"`` or ``"slang"``; by default that of
            ``KOMPUTE_PY_COMPILER``, else DXC if its library is found, else Slang (the guide "HLSL and
            Slang" says how they differ).
        compiler_options: Options of DXC or Slang themselves, as on their command line: a list, or text with
            spaces between them: ``"-HV 2018 -Zpr -fvk-use-scalar-layout"`` for DXC,
            ``"-conformance Circle:IShape=0"`` for Slang. The guide lists those that are allowed.
        cache: Look into the cache on disk, and keep the result there.
        timeout: Seconds that the compiler may take; ``math.inf`` for no limit. The default is the environment
            variable ``KOMPUTE_PY_COMPILE_TIMEOUT``, else 20. The first source of HLSL or Slang starts the
            compiler's process within this time.
        size_limit: The bytes that the shader's file may have, an int or text such as "128 MiB". The default
            is 64 MiB.

    Returns:
        The SPIR-V module.

    Raises:
        ShaderCompileError: The source does not compile. The message shows every error with its line and a
            caret; ``.diagnostics`` lists them.
        CompileTimeoutError: A ShaderCompileError: the compiler did not finish within the time limit.
        NotFoundError: There is no such file, or it is not a regular file (a folder, a device, a pipe).
        InvalidArgumentError: The file is larger than `size_limit`; a language, compiler, target, macro or
            name cannot be.
        UnavailableError: The library of DXC or Slang is not found:
            ``pip install 'kompute_py[hlsl]'`` or ``'kompute_py[slang]'``.
        ArgumentTypeError: An argument is of the wrong type.

    Ctrl-C is heard at once. After it, or after the time limit, the compiler of GLSL cannot be stopped: it
    goes on in a thread of its own until it is done, its result is dropped, and the memory that it takes is
    free then. It holds up no other compilation, nor the end of the process. The compilers of HLSL and Slang
    are processes, which are ended.

    What the compiler warns about is a `ShaderCompileWarning`.

    The cache is in the folder ``KOMPUTE_PY_SHADER_CACHE_DIR`` (default: ``kompute_py/shaders`` in the user's
    cache folder; "" turns it off) and holds ``KOMPUTE_PY_SHADER_CACHE_SIZE`` (default "128 MiB"). It notices
    changes of includes. `Manager.kernel` uses the Manager's options of these names instead.

    >>> spirv = kp.compile("layout(local_size_x = 8) in; void main() {}")
    >>> spirv[:4].hex()
    '03022307'
    """
    return _compile(**locals(), stacklevel=3).spirv


def _compile(
    source: str | os.PathLike[str],
    *,
    title: str | None = None,
    unchecked: int | None = None,
    setting: Lookup = of_process,
    stacklevel: int = 2,
    **options: Any,
) -> _Compiled:
    """`compile` with its options, which also says which files took part. `title` is what messages call source
    text.

    `setting` gives the compilers' settings. With `unchecked`, SPIR-V in a file is not checked against the
    target, and assembly becomes what Vulkan 1.`unchecked` has.
    """
    given = SimpleNamespace(**{**(compile.__kwdefaults__ or {}), **options})
    language: Language | None = given.language
    entry, target, size_limit = given.entry, given.target, given.size_limit
    includes = {} if given.includes is None else given.includes
    if language is not None and (not isinstance(language, str) or language not in LANGUAGES):
        raise InvalidArgumentError(
            f"{shown(language)} is not a shading language; choose one of {', '.join(LANGUAGES)}"
        )
    if not isinstance(entry, str) or not isinstance(target, str):
        raise ArgumentTypeError("entry and target must each be a str")
    macros = _macros({} if given.defines is None else given.defines)
    if isinstance(given.include_dirs, str | bytes | os.PathLike):
        raise ArgumentTypeError("include_dirs is a list of directories; write [directory] for a single one")
    directories = _directories(given.include_dirs)

    most_bytes(size_limit)
    path = path_of(source)
    graphics = _stage_of(str(source if path is None else path))
    if graphics is not None:
        raise InvalidArgumentError(
            f"{os.fspath(source)!r} is a {graphics} shader by its name; kompute_py runs compute shaders "
            "(.comp)"
        )
    if path is None:
        text, name, files, sought = _encoded("the source", str(source)), text_name(title), [], []
    else:
        text, name, files = read_file(path, "shader", size_limit), os.fsencode(path), [str(path)]
        sought = [(str(path), digest(text))]
        suffix = path.suffix.lower()
        if suffix == ".spv" or suffix == ".spvasm" or is_spirv(text):
            if language is not None or macros or includes:
                raise InvalidArgumentError(
                    f"{path} is SPIR-V already: language, defines and includes cannot apply to it"
                )
            return _Compiled(_module(path, text, target, unchecked), b"", files, sought)
        language = language or _SUFFIXES.get(suffix)
    language = language or "glsl"
    chosen = choose_compiler(language, given.compiler, setting)
    request = _Request(
        text,
        name,
        _encoded("entry", entry),
        macros,
        directories,
        _texts(includes),
        _optimization(given.optimize),
        to_flag(given.debug_info, "debug_info"),
        _encoded("target", target),
        _encoded("spirv_version", "" if given.spirv_version is None else given.spirv_version),
        _encoded("glsl_version", _glsl_version(given.glsl_version)),
        to_flag(given.auto_bind, "auto_bind"),
        to_flag(given.hlsl_offsets, "hlsl_offsets"),
        language,
        to_flag(given.hlsl_16bit_types, "hlsl_16bit_types"),
        _bases({} if given.register_bases is None else given.register_bases),
        _own_options(given.compiler_options),
        chosen,
    )
    cache = to_flag(given.cache, "cache")
    return _warned(request, given.timeout, cache, setting, stacklevel + 1, files=files, sought=sought)


def compile_text(text: str, title: str, setting: Lookup) -> _Compiled:
    """`_compile` of GLSL without options, as generators write it. `title` is its name in messages.

    No warning is given for two underscores in a name: a tensor ``x_`` brings the name ``x__load``.
    """
    request = _Request(_encoded("the source", text), text_name(title))
    return _warned(request, None, True, setting, 4, '("__")')


def _warned(
    request: _Request,
    timeout: float | None,
    cache: bool,
    setting: Lookup,
    stacklevel: int,
    unheeded: str | None = None,
    files: Iterable[str] = (),
    sought: Iterable[tuple[str, bytes]] = (),
) -> _Compiled:
    """The compiler's result, or the cache's, with a Python warning for each of the compiler's, but those
    about `unheeded`. `files` and `sought` are the source's own.
    """
    try:
        seconds = time_limit(timeout, setting("compile_timeout") if timeout is None else 0)
        compiled = _cached(request, seconds, setting) if cache else _run(request, seconds)[0]
    except ShaderCompileError as error:
        error._sought = [*sought, *error._sought]
        from . import mistaken  # after an error only

        if misnamed := mistaken.as_path(request.source, ", ".join(_SUFFIXES)):
            raise misnamed from None
        if hint := mistaken.hint(request.source, request.language):
            error.args = (f"{error}\n{hint}",)
        raise
    for file, line, column, _, message, _ in compiled.warnings:
        if unheeded is not None and unheeded in message:
            continue
        place = ":".join(str(part) for part in (file, line, column) if part)
        warnings.warn(f"{place}: {message}", ShaderCompileWarning, stacklevel=stacklevel)
    return _Compiled(
        compiled.spirv,
        compiled.declared,
        [*files, *compiled.included],
        [*sought, *compiled.sought],
        request.language,
        compiled.compiler,
    )


@functools.cache
def takes_extension(name: str) -> bool:
    """Whether the compiler of this package takes an extension of GLSL: older ones refuse later ones. A
    process tries each once.
    """
    try:
        compile(f"#version 450\n#extension {name} : require\nvoid main() {{}}", optimize=False)
    except ShaderCompileError:
        return False
    return True


COMPILE_OPTIONS = tuple(compile.__kwdefaults__ or ())
"""The names of what `compile` takes beside the source."""


class _Request(NamedTuple):
    """The arguments of the compiler of GLSL, then what only the others take; by default plain GLSL's."""

    source: bytes
    name: bytes
    entry: bytes = b"main"
    defines: Sequence[tuple[bytes, bytes]] = ()
    include_dirs: Sequence[bytes] = ()
    includes: dict[str, bytes] = {}  # noqa: RUF012 - nobody changes it
    optimize: str = "performance"
    debug_info: bool = False
    target: bytes = b"vulkan1.2"
    spirv_version: bytes = b""
    glsl_version: bytes = b""
    auto_bind: bool = False
    hlsl_offsets: bool = False
    language: Language = "glsl"
    hlsl_16bit_types: bool = False
    register_bases: dict[str, int] = {}  # noqa: RUF012
    compiler_options: Sequence[str] = ()
    compiler: Compiler = Compiler("glslang")

    def key(self) -> bytes:
        """All that decides the result, files that are included aside."""
        relative = [*self.include_dirs, *([] if self.name.startswith(b"<") else [self.name])]
        here = b"" if all(map(os.path.isabs, relative)) else os.fsencode(os.getcwd())
        flags = (self.debug_info, self.auto_bind, self.hlsl_offsets, self.hlsl_16bit_types)
        options = f"{self.language} {self.optimize} {flags} {sorted(self.register_bases.items())}"
        return pack(
            [
                compiler_key(),
                self.source,
                self.name,
                here,
                options.encode(),
                self.entry,
                self.target,
                self.spirv_version,
                self.glsl_version,
                self.compiler.identity.encode(errors="surrogateescape"),
                pack(part for define in self.defines for part in define),
                pack(self.include_dirs),
                pack(option.encode() for option in self.compiler_options),
                pack(part for name in sorted(self.includes) for part in (name.encode(), self.includes[name])),
            ]
        )


def _run(request: _Request, seconds: float) -> tuple[CachedShader, list[tuple[str, bytes | None]]]:
    """The compiler's result, and the paths at which it looked for includes."""
    begin = time.monotonic_ns()
    try:
        return _run_compiler(request, seconds)
    finally:
        _native.note_span("compile", request.name.decode(errors="replace"), begin)


def _run_compiler(request: _Request, seconds: float) -> tuple[CachedShader, list[tuple[str, bytes | None]]]:
    if request.language != "glsl":
        return compile_elsewhere(request._asdict(), seconds)
    if request.compiler_options:
        raise InvalidArgumentError("compiler_options are for DXC and Slang; glslang takes none")
    try:
        spirv, declared, found, included, probes = _native.compile(*request[:13], seconds)
    except EvalTimeoutError:
        raise CompileTimeoutError(f"{os.fsdecode(request.name)}: {too_long(seconds)}") from None
    return CachedShader(spirv, found, included, marks(probes), declared), probes


def _cached(request: _Request, seconds: float, setting: Lookup) -> CachedShader:
    cache = shader_cache(setting)
    if cache is None:
        return _run(request, seconds)[0]
    key = request.key()
    shader = cache.load(key)
    if shader is None:
        shader, probes = _run(request, seconds)
        cache.store(key, shader, probes, os.fsdecode(request.name))
    return shader


def _optimization(value: bool | str) -> str:
    if isinstance(value, str):
        if value not in _OPTIMIZATIONS:
            raise InvalidArgumentError(
                f"optimize is {shown(value)}; choose True, False or one of {', '.join(_OPTIMIZATIONS)}"
            )
        return value
    return "performance" if to_flag(value, "optimize") else "none"


def _glsl_version(version: int | str | None) -> str:
    if version is None:
        return ""
    if isinstance(version, bool) or not isinstance(version, (int, str)):
        raise ArgumentTypeError(f"glsl_version is {shown(version)}; give an int such as 450, or a str")
    if isinstance(version, int) and not 0 <= version <= 10**6:
        raise InvalidArgumentError(f"glsl_version is {shown(version)}; GLSL has versions such as 450")
    return str(version)


def _own_options(options: str | Iterable[str]) -> list[str]:
    if isinstance(options, str):
        return options.split()
    refuse_unordered(options, "compiler_options", "a list of options")
    listed = list(options)
    for each in listed:
        _encoded("a compiler's option", each)
    return [str(each) for each in listed]  # of the class str itself, as for _texts


def _directories(directories: Iterable[str | os.PathLike[str]]) -> list[bytes]:
    refuse_unordered(directories, "include_dirs", "a list of paths")
    try:
        return [os.fsencode(directory) for directory in directories]
    except Exception as error:  # of the objects' own methods
        raise ArgumentTypeError(f"include_dirs is not a list of paths: {error}") from None


def _texts(includes: Mapping[str, str]) -> dict[str, bytes]:
    if not isinstance(includes, Mapping):
        raise ArgumentTypeError(f"includes is a dict of texts by name, not {type(includes).__name__}")
    for name in includes:
        _encoded("an include's name", name)
    # Of the class str itself: what goes to another process has no classes of others.
    return {str(name): _encoded(f"the include {name!r}", text) for name, text in includes.items()}


def _bases(bases: Mapping[str, int]) -> dict[str, int]:
    if not isinstance(bases, Mapping):
        raise ArgumentTypeError(f"register_bases is a dict such as {{'u': 8}}, not {type(bases).__name__}")
    for letter, base in bases.items():
        if letter not in ("t", "u", "b", "s"):
            raise InvalidArgumentError(
                f"register_bases has {shown(letter)}; HLSL's registers have the letters t, u, b and s"
            )
        if isinstance(base, bool) or not isinstance(base, int):
            raise ArgumentTypeError(f"register_bases[{shown(letter)}] is {shown(base)}; give an int")
        if not 0 <= base <= _MAX_REGISTER_BASE:
            raise InvalidArgumentError(
                f"register_bases[{shown(letter)}] is {shown(base)}; give 0 to {_MAX_REGISTER_BASE}"
            )
    return {str(letter): int(base) for letter, base in bases.items()}


_STAGES = {
    ".vert": "vertex", ".frag": "fragment", ".geom": "geometry", ".tesc": "tessellation control",
    ".tese": "tessellation evaluation", ".mesh": "mesh", ".task": "task", ".rgen": "ray generation",
    ".rchit": "closest hit", ".rahit": "any hit", ".rmiss": "miss", ".rint": "intersection",
    ".rcall": "callable",
}  # fmt: skip


def _stage_of(text: str) -> str | None:
    """The stage of a file's suffix, if it is not the compute stage; None for source
    text.
    """
    if len(text) > 4096 or "\n" in text:
        return None
    return _STAGES.get(os.path.splitext(text)[1].lower())


def text_name(title: str | None) -> bytes:
    """The file's name for source text, which is in none: the compiler takes it for no path by its "<"."""
    shown = " ".join((title or "source").replace("\0", " ").split())
    return f"<{shown}>".encode(errors="replace")


def path_of(source: object) -> Path | None:
    """The path that a shader's source names: a path object, or a str on one line with a suffix of shaders.

    None for source text.
    """
    if not isinstance(source, str | os.PathLike):
        raise ArgumentTypeError(
            f"A shader's source is a str or a path, not {type(source).__name__}"
            + ("; bytes of SPIR-V need no compiling" if isinstance(source, bytes | bytearray) else "")
        )
    if isinstance(source, str):
        if "\n" in source or "\r" in source or not source.lower().endswith(tuple(_SUFFIXES)):
            return None
        place: str | bytes = source
    else:
        try:
            place = os.fspath(source)
        except TypeError as error:  # __fspath__ returned something else
            raise ArgumentTypeError(
                f"The shader's path, of type {type(source).__name__}, does not give a path: {error}"
            ) from None
    # pathlib is a tenth of what importing the package costs, and most programs never name a file: source text
    # that is found on disk would wait ten times as long for it as for the rest.
    from pathlib import Path

    return Path(os.fsdecode(place))


def is_source_file(path: Path) -> bool:
    """Whether the file's suffix says that it holds source or assembly."""
    suffix = path.suffix.lower()
    return suffix in _SUFFIXES and suffix != ".spv"


def _module(path: Path, content: bytes, target: str, unchecked: int | None) -> bytes:
    """The module that a file of SPIR-V or of its assembly holds, valid for the target unless it is
    `unchecked`.
    """
    if path.suffix.lower() == ".spvasm" and not is_spirv(content):
        minor = minor_of(target) if unchecked is None else unchecked
        content = _native.assemble_spirv(content, minor, os.fsencode(path))
    else:
        content = module_bytes(content, str(path))
    if unchecked is None:
        check_target(content, target, str(path))
    return content


def check_target(spirv: bytes, target: str, what: str) -> None:
    """Raises InvalidArgumentError if `what`, a module, is not valid for the target; it may be newer.
    UnimplementedError for a capability that the tools do not know.
    """
    # Whether a layout needs the device to have scalarBlockLayout shows when an algorithm is made of it.
    if problem := _native.validate_spirv(spirv, minor_of(target), scalar_block_layout=True):
        newer = "Invalid capability operand" in problem  # than the tools
        raise (UnimplementedError if newer else InvalidArgumentError)(
            f"{what} is not valid SPIR-V for target={target!r}: {problem}"
        )


def minor_of(target: str) -> int:
    """The Vulkan 1.x that a target names. Raises InvalidArgumentError if there is no such target."""
    if target not in TARGETS:
        raise InvalidArgumentError(f"{shown(target)} is not a target; choose one of {', '.join(TARGETS)}")
    return TARGETS.index(target)


def _encoded(what: str, text: str) -> bytes:
    if not isinstance(text, str):
        raise ArgumentTypeError(f"{what} must be a str, not {type(text).__name__}")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(
            f"{what} contains half of a surrogate pair, which is not a character"
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
            f"The macro {name} = {shown(value)} does not fit 32 bits; give it as the text that the shader "
            "should see"
        )
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidArgumentError(
                f"The macro {name} = {value}: shading languages have no literal for it"
            )
        return repr(value).encode()
    raise ArgumentTypeError(
        f"The macro {name} is {kind_of(value)}; it must be a str, int, float, bool or None"
    )


class Shader:
    """The compiling interface of Kompute's older versions; `compile` is the newer one.

    >>> kp.Shader.compile_source("layout(local_size_x = 8) in; void main() {}")[:4].hex()
    '03022307'
    """

    __module__ = "kompute_py"  # public; imported when first used

    @staticmethod
    def compile_source(
        source: str, entryPoint: str = "main", definitions: Iterable[tuple[str, object]] = ()
    ) -> bytes:
        """Compile GLSL to SPIR-V, as `compile` does.

        `definitions` are pairs of a macro's name and value. The argument is always the text itself, never a
        path.
        """
        if not isinstance(source, str):
            raise ArgumentTypeError(f"The source must be a str, not {type(source).__name__}")
        try:
            defines = dict(definitions)
        except (TypeError, ValueError) as error:
            raise ArgumentTypeError(
                f"definitions are {shown(definitions)}; give pairs of a macro's name and value: {error}"
            ) from None
        # A line end more keeps what looks like the name of a file from being opened.
        return _compile(source + "\n", entry=entryPoint, defines=defines, stacklevel=3).spirv
