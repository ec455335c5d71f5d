"""Shaders from source: GLSL compiled to SPIR-V by the compiler that is part of the package, HLSL by DXC and
Slang by Slang where they are installed (languages.py)."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from .. import _native
from .._base.arrays import to_flag
from .._base.digest import digest, marks
from .._base.errors import (
    ArgumentTypeError,
    CompileTimeoutError,
    EvalTimeoutError,
    InvalidArgumentError,
    NotFoundError,
    ShaderCompileError,
    ShaderCompileWarning,
    UnimplementedError,
    kind_of,
    shown,
)
from .._base.plain_arguments import as_text, refuse_unordered
from .cache import Compiled, compiler_key, dump_source, dump_spirv, shader_cache
from .languages import LANGUAGES, choose_compiler, compile_elsewhere
from .limits import as_seconds, most_bytes, read_file, too_long
from .request import Request
from .settings import Lookup, keeps_lines, of_process
from .spirv_words import is_spirv, module_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from .._base.annotations import (
        CompilerName,
        Language,
        Optimization,
        SizeLike,
        TargetLike,
    )

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
_GRAPHICS = (
    ".vert", ".frag", ".geom", ".tesc", ".tese", ".mesh", ".task", ".rgen", ".rchit", ".rahit", ".rmiss",
    ".rint", ".rcall",
)  # fmt: skip
TARGETS = ("vulkan1.0", "vulkan1.1", "vulkan1.2", "vulkan1.3")


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
    target: TargetLike = "vulkan1.2",
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
        target: ``"vulkan1.0"`` to ``"vulkan1.3"``: the Vulkan version of the resulting SPIR-V. A device (a
            `DeviceInfo`, a Manager, a URI such as ``"vulkan://nvidia"``, or the path of a description as
            `kp.check` takes it) stands for the newest one that it takes.
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
) -> Compiled:
    """`compile` with its options, which also says which files took part. `title` is what messages call source
    text.

    `setting` gives the compilers' settings. With `unchecked`, SPIR-V in a file is not checked against the
    target, and assembly becomes what Vulkan 1.`unchecked` has.
    """
    given = SimpleNamespace(**{**(compile.__kwdefaults__ or {}), **options})
    language: Language | None = given.language
    includes = {} if given.includes is None else given.includes
    if language is not None and (not isinstance(language, str) or language not in LANGUAGES):
        raise InvalidArgumentError(
            f"{shown(language)} is not a shading language; choose one of {', '.join(LANGUAGES)}"
        )
    entry, target = _text(given.entry, "entry"), target_of(given.target)
    macros = _macros({} if given.defines is None else given.defines)
    if isinstance(given.include_dirs, str | bytes | os.PathLike):
        raise ArgumentTypeError("include_dirs is a list of directories; write [directory] for a single one")
    directories = _directories(given.include_dirs)

    most_bytes(given.size_limit)
    path = path_of(source)
    named = str(path or source)
    if "\n" not in named and os.path.splitext(named)[1].lower() in _GRAPHICS:
        raise InvalidArgumentError(
            f"{named!r} is a shader of graphics or ray tracing by its name; kompute_py runs compute shaders "
            "(.comp)"
        )
    if path is None:
        text, name, files, sought = _text(str(source), "The source").encode(), text_name(title), [], []
    else:
        text, name, files = read_file(path, "shader", given.size_limit), str(path), [str(path)]
        sought = [(str(path), digest(text))]
        suffix = path.suffix.lower()
        if suffix == ".spv" or suffix == ".spvasm" or is_spirv(text):
            if language is not None or macros or includes:
                raise InvalidArgumentError(
                    f"{path} is SPIR-V already: language, defines and includes cannot apply to it"
                )
            return Compiled(_module(path, text, target, unchecked), b"", files, sought)
        language = language or _SUFFIXES.get(suffix)
    language = language or "glsl"
    chosen = choose_compiler(language, given.compiler, setting)
    request = Request(
        text,
        name,
        entry,
        macros,
        directories,
        _texts(includes),
        _optimization(given.optimize),
        to_flag(given.debug_info, "debug_info") or keeps_lines(setting),
        target,
        _text("" if given.spirv_version is None else given.spirv_version, "spirv_version"),
        _glsl_version(given.glsl_version),
        to_flag(given.auto_bind, "auto_bind"),
        to_flag(given.hlsl_offsets, "hlsl_offsets"),
        language,
        to_flag(given.hlsl_16bit_types, "hlsl_16bit_types"),
        _bases({} if given.register_bases is None else given.register_bases),
        _own_options(given.compiler_options),
        chosen,
    )
    cached = to_flag(given.cache, "cache")
    return _warned(request, given.timeout, cached, setting, stacklevel + 1, files=files, sought=sought)


def compile_text(text: str, title: str, setting: Lookup) -> Compiled:
    """`_compile` of GLSL without options, as generators write it. `title` is its name in messages.

    No warning is given for two underscores in a name: a tensor ``x_`` brings the name ``x__load``.
    """
    request = Request(_text(text, "The source").encode(), text_name(title))
    return _warned(request, None, True, setting, 4, '("__")')


def _warned(
    request: Request,
    timeout: float | None,
    cache: bool,
    setting: Lookup,
    stacklevel: int,
    unheeded: str | None = None,
    files: Iterable[str] = (),
    sought: Iterable[tuple[str, bytes]] = (),
) -> Compiled:
    """The compiler's result, or the cache's, with a Python warning for each of the compiler's, but those
    about `unheeded`. `files` and `sought` are the source's own.
    """
    try:
        if isinstance(timeout, str):
            raise ArgumentTypeError("timeout is a str; give seconds, or None for the default")
        seconds = setting("compile_timeout") if timeout is None else as_seconds(timeout, "timeout")
        folder, dumped = setting("dump"), ""
        if folder:
            dumped = dump_source(folder, request)
        store = shader_cache(setting) if cache else None
        key = compiler_key() + request.key() if store else b""
        compiled = store.load(key) if store else None
        if compiled is None and setting("compile") == "never":
            where = f"it would be {store.path(key)}" if store else "there is no cache"
            raise NotFoundError(
                f'{request.name} is not compiled, and compile="never" allows no compiler: {where}. '
                "Compile it "
                "before, with the same options, or give SPIR-V or a program (kp.load_program)"
            )
        if compiled is None:
            begin = time.monotonic_ns()
            try:
                compiled = _compiled(request, seconds)
            finally:
                _native.note_span("compile", request.name.encode(errors="replace"), begin)
            if store:
                store.store(key, compiled, request.name)
        if dumped:
            dump_spirv(dumped, compiled.spirv)
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
    return compiled._replace(files=[*files, *compiled.files], sought=[*sought, *compiled.sought])


COMPILE_OPTIONS = tuple(compile.__kwdefaults__ or ())
"""The names of what `compile` takes besides the source."""


def _compiled(request: Request, seconds: float) -> Compiled:
    if request.language != "glsl":
        return compile_elsewhere(request, seconds)
    if request.options:
        raise InvalidArgumentError("compiler_options are for DXC and Slang; glslang takes none")
    try:
        spirv, declared, warned, included, probes = _native.compile(request.native(), seconds)
    except EvalTimeoutError:
        raise CompileTimeoutError(f"{request.name}: {too_long(seconds)}") from None
    return Compiled(spirv, declared, included, marks(probes), "glsl", "glslang", warned)


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
    return _text(str(version), "glsl_version")


def _own_options(options: str | Iterable[str]) -> list[str]:
    if isinstance(options, str):
        return options.split()
    refuse_unordered(options, "compiler_options", "a list of options")
    return [_text(each, "a compiler's option") for each in options]


def _directories(directories: Iterable[str | os.PathLike[str]]) -> list[str]:
    refuse_unordered(directories, "include_dirs", "a list of paths")
    try:
        return [os.fsdecode(os.fsencode(directory)) for directory in directories]
    except Exception as error:  # of the objects' own methods
        raise ArgumentTypeError(f"include_dirs is not a list of paths: {error}") from None


def _texts(includes: Mapping[str, str]) -> dict[str, bytes]:
    if not isinstance(includes, Mapping):
        raise ArgumentTypeError(f"includes is a dict of texts by name, not {type(includes).__name__}")
    return {
        _text(name, "an include's name"): _text(text, f"The include {name!r}").encode()
        for name, text in includes.items()
    }


def _bases(bases: Mapping[str, int]) -> dict[str, int]:
    if not isinstance(bases, Mapping):
        raise ArgumentTypeError(f"register_bases is a dict such as {{'u': 8}}, not {type(bases).__name__}")
    for letter, base in bases.items():
        if letter not in ("t", "u", "b", "s"):
            raise InvalidArgumentError(
                f"register_bases has {shown(letter)}; HLSL's registers have the letters t, u, b and s"
            )
        if isinstance(base, bool) or not isinstance(base, int) or not 0 <= base <= _MAX_REGISTER_BASE:
            wrong = InvalidArgumentError if type(base) is int else ArgumentTypeError
            raise wrong(
                f"register_bases[{shown(letter)}] is {shown(base)}; give an int of 0 to {_MAX_REGISTER_BASE}"
            )
    return {str(letter): int(base) for letter, base in bases.items()}


def text_name(title: str | None) -> str:
    """The file's name for source text, which is in none: the compiler takes it for no path by its "<"."""
    shown = " ".join((title or "source").replace("\0", " ").split())
    return f"<{shown}>".encode(errors="replace").decode()


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


def target_of(target: Any) -> str:
    """The name of a target: as given, or of a device, which may be described by a dict or a file. Raises
    ArgumentTypeError for anything else.
    """
    text = target.lower() if isinstance(target, str) else ""
    if text.startswith("vulkan:") or text.endswith(".json") or isinstance(target, (os.PathLike, Mapping)):
        from .. import _device_info

        target = _device_info(target)
    options = getattr(target, "compile_options", None)
    return _text(target if options is None else options["target"], "target")


def check_target(spirv: bytes, target: Any, what: str) -> None:
    """Raises InvalidArgumentError if `what`, a module, is not valid for the target; it may be newer.
    UnimplementedError for a capability that the tools do not know.
    """
    # Whether a layout needs the device to have scalarBlockLayout shows when an algorithm is made of it.
    if problem := _native.validate_spirv(spirv, minor_of(target), scalar_block_layout=True):
        newer = "Invalid capability operand" in problem  # than the tools
        raise (UnimplementedError if newer else InvalidArgumentError)(
            f"{what} is not valid SPIR-V for target={target_of(target)!r}: {problem}"
        )


def minor_of(target: Any) -> int:
    """The Vulkan 1.x that a target names. Raises InvalidArgumentError if there is no such target,
    ArgumentTypeError as `target_of` does.
    """
    name = target_of(target)
    if name not in TARGETS:
        raise InvalidArgumentError(
            f"{shown(name)} is not a target; choose one of {', '.join(TARGETS)}, or give a device: a "
            "DeviceInfo, a Manager, a URI such as 'vulkan://nvidia' or a file such as 'vulkaninfo.json'"
        )
    return TARGETS.index(name)


def _text(value: str, what: str) -> str:
    """`as_text`, of the class str itself: what goes to another process has no classes of others."""
    return str.__str__(as_text(value, what))


def _macros(defines: Mapping[str, object]) -> list[tuple[str, str]]:
    if not isinstance(defines, Mapping):
        raise ArgumentTypeError(f"defines is a dict of macros, not {type(defines).__name__}")
    return [(_text(name, "a macro's name"), _literal(name, value)) for name, value in defines.items()]


def _literal(name: str, value: Any) -> str:
    """The value of a macro as the shader's text."""
    if hasattr(value, "dtype") and getattr(value, "shape", None) == ():
        value = value.item()  # a NumPy scalar
    if value is None:
        return ""
    if isinstance(value, str):
        return _text(value, f"The value of the macro {name}")
    if isinstance(value, bool):
        # Not true and false: #if knows only numbers.
        return "1" if value else "0"
    if isinstance(value, int):
        if -(2**31) <= value < 2**31:
            return str(int(value))
        if 0 <= value < 2**32:
            return f"{int(value)}u"
        raise InvalidArgumentError(
            f"The macro {name} = {shown(value)} does not fit 32 bits; give it as the text that the shader "
            "should see"
        )
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidArgumentError(
                f"The macro {name} = {value}: shading languages have no literal for it"
            )
        return repr(float(value))
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
