"""Which compiler a source goes to, and compiling HLSL and Slang in a process of its own (process.py).

GLSL is compiled here, by glslang, HLSL by DXC, Slang by Slang. HLSL without DXC goes to Slang, which takes
most of it.
"""

from __future__ import annotations

import functools
import re

from .. import _native
from .._base.digest import digest, marks, pack
from .._base.errors import (
    CompileTimeoutError,
    Diagnostic,
    InternalError,
    InvalidArgumentError,
    KomputeError,
    NotFoundError,
    ShaderCompileError,
    UnavailableError,
    UnimplementedError,
    shown,
)
from .._base.file_access import current_folder
from .cache import Compiled
from .libraries import INSTALL, find_library
from .limits import too_long
from .request import GLSLANG, Compiler, Request
from .settings import COMPILERS, Lookup, of_process, to_compiler

LANGUAGES = ("glsl", "hlsl", "slang")
_SPOKEN = {"glsl": "GLSL", "hlsl": "HLSL", "slang": "Slang"}
# The compilers' own options that may be given: those of the language, of layouts, of SPIR-V and of warnings,
# not of files, outputs and entry points.
_ALLOWED = {
    "dxc": r"-(HV|HV=?20\d\d|T|Zp[rc]|G(is|fp|fa)|W[\w=-]+|W|no-warnings|enable-16bit-types|fvk-[\w-]+"
    r"|fspv-(?!target-env|entrypoint)[\w=.+-]+|flegacy-[\w-]+|denorm|ffinite-math-only|fno-finite-math-only)",
    "slang": r"-(conformance|capability|matrix-layout-(row|column)-major|experimental-feature|fvk-[\w-]+"
    r"|fp-mode|denorm-mode-fp(16|32|64)|W[\w=-]+|warnings-\w+|std|lang|ignore-capabilities|unscoped-enum"
    r"|enable-experimental-passes|enable-experimental-dynamic-dispatch|force-glsl-scalar-layout"
    r"|restrictive-capability-check|disable-dynamic-dispatch|no-mangle|default-image-format-unknown"
    r"|loop-inversion)",
}
_VALUES = {"-T": r"cs_6_\d"}
_VALUE = r"[\w.:=+<>,/]+"
_NEWEST = {"vulkan1.0": "1.0", "vulkan1.1": "1.3", "vulkan1.2": "1.5", "vulkan1.3": "1.6"}  # of SPIR-V


_TAKE = {"glsl": ("glslang",), "hlsl": tuple(COMPILERS), "slang": ("slang",)}
"""The compilers that take each language, the preferred one first."""


def choose_compiler(language: str, asked: str | None, setting: Lookup = of_process) -> Compiler:
    """The compiler for a source in `language`; `asked` is the option `compiler`.

    Raises InvalidArgumentError for a compiler that does not exist or cannot take the language,
    UnavailableError if no library of one that does is found.
    """
    if asked is not None:
        asked = to_compiler(asked, "compiler")
    usual = _TAKE[language]
    if asked is not None and asked not in usual:
        raise InvalidArgumentError(
            f"compiler is {shown(asked)}, but {_SPOKEN[language]} is compiled by {' or '.join(usual)}; leave "
            "compiler out"
        )
    if usual == ("glslang",):
        return GLSLANG
    wanted = asked or (setting("compiler") if len(usual) > 1 else None)
    for kind in usual if wanted is None else (wanted,):
        library = find_library(kind, setting)
        if library is not None:
            if kind != usual[0] and wanted is None:
                _note_fallback()
            return Compiler(kind, COMPILERS[kind], library.path, f"{library.identity} {_own_identity()}")
    kind = wanted or usual[0]
    raise UnavailableError(
        f"{_SPOKEN[language]} needs the library of {COMPILERS[kind]}, which is not installed: "
        f"{INSTALL[kind]}, or name the library in the setting {kind}_library (environment variable "
        f"KOMPUTE_PY_{kind.upper()}_LIBRARY)"
    )


@functools.cache
def _own_identity() -> str:
    """Differs if the files of this folder differ, which change what the libraries make."""
    from pathlib import Path  # costs milliseconds

    files = sorted(Path(__file__).parent.glob("*.py"))
    return digest(pack(each.read_bytes() for each in files)).hex()


@functools.cache  # a note a process
def _note_fallback() -> None:
    from logging import getLogger  # costs milliseconds

    getLogger("kompute_py").warning(
        "HLSL is compiled by Slang, which takes most of it; %s brings DXC, its own compiler", INSTALL["dxc"]
    )


def describe_compilers() -> dict[str, str]:
    """Describes the compiler of each language in this process."""
    described = {}
    for language in LANGUAGES:
        try:
            chosen = choose_compiler(language, None)
        except KomputeError as error:
            described[language] = f"not available: {error}"
        else:
            described[language] = chosen.name + (f" ({chosen.library})" if chosen.library else "")
    return described


def compile_elsewhere(request: Request, seconds: float) -> Compiled:
    """The result for a source in HLSL or Slang. Raises what `kp.compile` raises."""
    from . import process as shader_process

    name, chosen = request.name, request.compiler
    _check(request)
    try:
        answer = shader_process.ask((current_folder(), request.packed()), seconds)
    except TimeoutError:
        refusal = _failure(request, too_long(seconds))
        raise CompileTimeoutError(str(refusal), diagnostics=refusal.diagnostics) from None
    except shader_process.Ended as error:
        how, step = error.args
        what, advice = f"{chosen.name} crashed on this source", ""
        if step:
            what = f"the SPIR-V {step} crashed on what {chosen.name} made of this source"
            advice = '; compile with optimize="none"'
        raise _failure(request, f"{what} ({how}), in a process of its own{advice}") from None
    except OSError as error:
        raise InternalError(
            f"{name}: {_SPOKEN[request.language]} is compiled in a process of its own, which cannot be "
            f"started: {error}"
        ) from error
    failed = answer.get("error")
    if failed is None:
        spirv, by = answer["spirv"], answer["name"]
        version, asked, target = f"1.{spirv[5]}", request.spirv_version, request.target
        if version > _NEWEST[target]:
            raise _failure(request, f"it needs SPIR-V {version}, which {target} lacks; choose a later target")
        if asked and version != asked:
            raise _failure(request, f"{by} writes SPIR-V {version} of it, not {asked}")
        probes, warned = answer["probes"], answer["warnings"]
        included = [path for path, content in probes if content is not None]
        return Compiled(spirv, answer["declared"], included, marks(probes), request.language, by, warned)
    if failed == "compile":
        refusal = _error(request, [Diagnostic(*each) for each in answer["diagnostics"]], answer["name"])
        refusal._sought = marks(answer["probes"])
        raise refusal
    message = answer["message"]
    for kind in (InvalidArgumentError, NotFoundError, UnimplementedError, UnavailableError):
        if failed == kind.__name__:
            raise kind(message)
    raise InternalError(f"{name}: {chosen.name} failed: {failed}: {message}")


def _failure(request: Request, message: str) -> ShaderCompileError:
    name = request.name.encode(errors="replace").decode()
    return _error(request, [Diagnostic(name, 0, 0, "error", message, "")])


def _error(
    request: Request, diagnostics: list[Diagnostic], compiler: str | None = None
) -> ShaderCompileError:
    text = f"{_native.render_diagnostics(diagnostics)}\ncompiler: {compiler or request.compiler.name}"
    return ShaderCompileError(text, diagnostics=diagnostics)


def _check(request: Request) -> None:
    """The native compiler's checks, and those of options that only the others take."""
    kind = request.compiler.kind
    request.native().check()
    before = ""
    for option in request.options:
        allowed = _ALLOWED[kind] if option.startswith("-") else _VALUES.get(before, _VALUE)
        before = option
        if not re.fullmatch(allowed, option):
            raise InvalidArgumentError(
                f"compiler_options has {shown(option)}, which kompute_py does not pass to {COMPILERS[kind]}; "
                "it passes those of the language, of layouts, of SPIR-V and of warnings"
            )
    if request.glsl_version:
        raise InvalidArgumentError(f"a version of GLSL does not apply to {_SPOKEN[request.language]}")
    if not request.source.strip():
        raise _failure(request, "the source is empty")
    if b"\0" in request.source:
        raise _failure(request, "the source contains a NUL character; is it text?")
