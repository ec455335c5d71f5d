"""Which compiler a source goes to, and compiling HLSL and Slang in a process of its own (process.py).

GLSL is compiled here, by glslang. HLSL and Slang are compiled by Slang. HLSL without Slang falls back to
glslang's front end for HLSL, which is no longer maintained: its known faults are mended or refused
(hlsl_faults.py).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _native
from .._base.digest import marks
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
from .cache import CachedShader
from .limits import too_long
from .settings import COMPILERS, Lookup, of_process
from .slang_library import INSTALL, find_slang

if TYPE_CHECKING:
    from .process import Ended

LANGUAGES = ("glsl", "hlsl", "slang")
_SPOKEN = {"glsl": "GLSL", "hlsl": "HLSL", "slang": "Slang"}
_FALLBACK = "glslang's front end for HLSL (the fallback)"
_BRINGS = f"{INSTALL} brings Slang, the maintained compiler"
_USUAL_CAUSES = (
    "; usual causes are an undefined name in [numthreads], a parameter without a name, "
    "and a name that is declared twice"
)
# Not compiled here: that would cost each import of the package a millisecond.
_NAME = rb"[A-Za-z_][A-Za-z0-9_]*"
_MACRO = _NAME + rb"(\([^()\r\n\0]*\))?"
_VERSIONS = ("1.3", "1.4", "1.5", "1.6")
_NEWEST = {"vulkan1.1": "1.3", "vulkan1.2": "1.5", "vulkan1.3": "1.6"}


Probes = list[tuple[str, "bytes | None"]]


class Compiler(NamedTuple):
    """The compiler of a source."""

    kind: str
    """"slang" or "glslang"."""
    library: str = ""
    """The path of Slang's library."""
    identity: str = ""
    """A key that differs if the library differs."""
    name: str = "glslang"
    """Its name in messages."""
    replaceable: bool = False
    """Whether another one may take what this one crashes on: nobody asked for this one."""


_GLSLANG = Compiler("glslang")
_noted = False


def choose_compiler(language: str, asked: str | None, setting: Lookup = of_process) -> Compiler:
    """The compiler for a source in `language`; `asked` is the option `compiler`.

    Raises InvalidArgumentError for a compiler that does not exist or cannot take the language,
    UnavailableError if Slang is required and its library is not found.
    """
    if asked is not None and (not isinstance(asked, str) or asked not in COMPILERS):
        raise InvalidArgumentError(
            f"compiler is {shown(asked)}; choose one of {', '.join(COMPILERS)}, or None"
        )
    only = {"glsl": "glslang", "slang": "slang"}.get(language)
    if only is not None and asked not in (None, only):
        raise InvalidArgumentError(
            f"compiler is {shown(asked)}, but {_SPOKEN[language]} is compiled by {only} alone; leave "
            "compiler out"
        )
    if only == "glslang":
        return _GLSLANG
    wanted = only or asked or setting("compiler")
    if wanted == "glslang":
        return _GLSLANG
    library = find_slang(setting)
    if library is not None:
        return Compiler("slang", library.path, library.identity, library.name, wanted is None)
    if wanted == "slang":
        raise UnavailableError(
            f"{_SPOKEN[language]} is compiled by Slang here, and its library is not found: {INSTALL}, or "
            "name the library in the setting slang_library (environment variable KOMPUTE_PY_SLANG_LIBRARY)"
        )
    _note_fallback()
    return _GLSLANG


def _note_fallback() -> None:
    global _noted
    if _noted:
        return
    _noted = True
    from logging import getLogger  # costs milliseconds

    getLogger("kompute_py").warning("HLSL is compiled by %s; %s", _FALLBACK, _BRINGS)


def describe_compilers() -> dict[str, str]:
    """Describes the compiler of each language in this process."""
    library = find_slang()
    found = f"{library.name} ({library.path})" if library is not None else None
    try:
        forced = of_process("compiler") == "glslang"
    except InvalidArgumentError:
        forced = False
    fallback = "glslang's front end" if forced else f"{_FALLBACK}; {_BRINGS}"
    return {
        "glsl": "glslang",
        "hlsl": fallback if forced or found is None else found,
        "slang": found or f"not available: {INSTALL}",
    }


def compile_elsewhere(request: Mapping[str, Any], seconds: float) -> tuple[CachedShader, Probes]:
    """The result for `shader._Request`, as a dict, of a source in HLSL or Slang, and the paths at which it
    looked for includes.

    Raises what `kp.compile` raises.
    """
    from . import process as shader_process

    chosen: Compiler = request["compiler"]
    if chosen.kind == "slang":
        _check(request)
    name = os.fsdecode(request["name"])
    try:
        answer = shader_process.ask(_packed(request), seconds)
    except shader_process.TimedOut:
        refusal = _failure(request, too_long(seconds))
        raise CompileTimeoutError(str(refusal), diagnostics=refusal.diagnostics) from None
    except shader_process.Ended as error:
        if chosen.replaceable:
            return _by_fallback(request, chosen, error, seconds)
        how = f" ({error})" if str(error) else ""
        causes = "" if chosen.kind == "slang" else _USUAL_CAUSES
        if error.step:
            causes = '; compile with optimize="none"'
        raise _failure(
            request, f"{_crash(_who(chosen), error)}{how}, in a process of its own{causes}"
        ) from None
    except OSError as error:
        raise InternalError(
            f"{name}: {_SPOKEN[request['language']]} is compiled in a process of its own, which cannot be "
            f"started: {error}"
        ) from error
    failed = answer.get("error")
    if failed is None:
        probes = _probes(answer)
        warnings = [_message(each) for each in answer["warnings"]]
        spirv = answer["spirv"].encode("latin-1")
        if chosen.kind == "slang" and spirv[5] > int(_NEWEST[request["target"].decode()][2:]):
            raise _failure(
                request,
                f"it needs SPIR-V 1.{spirv[5]}, which {request['target'].decode()} lacks; choose a later "
                "target",
            )
        shader = CachedShader(
            spirv,
            warnings,
            list(answer["included"]),
            marks(probes),
            answer["declared"].encode("latin-1"),
            answer["name"],
        )
        return shader, probes
    if failed == "compile":
        refusal = _error(
            request, [Diagnostic(*_message(each)) for each in answer["diagnostics"]], answer.get("name")
        )
        refusal._sought = (
            marks(_probes(answer))
            if "probes" in answer
            else [(path, mark.encode("latin-1")) for path, mark in answer["sought"]]
        )
        raise refusal
    if failed == "refused":
        raise _failure(request, f"{_FALLBACK} would not do what the source says: {answer['message']}")
    if failed == "unusable":
        raise UnavailableError(f"{name}: {answer['message']}")
    kinds = {
        each.__name__: each
        for each in (InvalidArgumentError, NotFoundError, UnimplementedError, UnavailableError)
    }
    raise kinds.get(failed, InternalError)(
        answer["message"] if failed in kinds else f"{name}: {_who(chosen)} failed: {answer['message']}"
    )


def _by_fallback(
    request: Mapping[str, Any], crashed: Compiler, how: Ended, seconds: float
) -> tuple[CachedShader, Probes]:
    """The fallback's result for a source on which Slang crashed, with a warning."""
    name = os.fsdecode(request["name"]).encode(errors="replace").decode()
    try:
        shader, probes = compile_elsewhere({**request, "compiler": _GLSLANG}, seconds)
    except KomputeError:
        crash = crashed._replace(replaceable=False)
        raise _failure(
            {**request, "compiler": crash},
            f"{_crash(crashed.name, how)} ({how}), in a process of its own, and {_FALLBACK} does not compile "
            "it",
        ) from None
    message = f"{_crash(crashed.name, how)}; it is compiled by {_FALLBACK}"
    return shader._replace(warnings=[*shader.warnings, (name, 0, 0, "warning", message, "")]), probes


def _crash(who: str, how: Ended) -> str:
    """The message for a crash: the compiler and the source."""
    if how.step:
        return f"the SPIR-V {how.step} crashed on what {who} made of this source"
    return f"{who} crashed on this source"


def _packed(request: Mapping[str, Any]) -> dict[str, Any]:
    """The request as JSON takes it: bytes as the characters of the same numbers."""
    chosen: Compiler = request["compiler"]

    def plain(value: Any) -> Any:
        if isinstance(value, bytes):
            return value.decode("latin-1")
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return [plain(each) for each in value]
        return value

    fields = {key: plain(value) for key, value in request.items() if key != "compiler"}
    try:
        folder = os.getcwd()
    except OSError:  # it was deleted
        folder = os.sep
    return {"compiler": chosen.kind, "library": chosen.library, "folder": folder, "request": fields}


def _message(fields: list[Any]) -> tuple[str, int, int, str, str, str]:
    file, line, column, severity, message, source_line = fields
    return file, line, column, severity, message, source_line


def _probes(answer: Mapping[str, Any]) -> Probes:
    return [
        (path, None if content is None else content.encode("latin-1")) for path, content in answer["probes"]
    ]


def _who(chosen: Compiler) -> str:
    return chosen.name if chosen.kind == "slang" else _FALLBACK


def _failure(request: Mapping[str, Any], message: str) -> ShaderCompileError:
    name = os.fsdecode(request["name"]).encode(errors="replace").decode()
    return _error(request, [Diagnostic(name, 0, 0, "error", message, "")])


def _error(
    request: Mapping[str, Any], diagnostics: list[Diagnostic], compiler: str | None = None
) -> ShaderCompileError:
    chosen: Compiler = request["compiler"]
    text = _native.render_diagnostics(diagnostics)
    by = f"{compiler or chosen.name}" if chosen.kind == "slang" else f"{_FALLBACK}; {_BRINGS}"
    return ShaderCompileError(f"{text}\ncompiler: {by}", diagnostics=diagnostics)


def _check(request: Mapping[str, Any]) -> None:
    """The native compiler's checks of arguments, for Slang."""
    entry, target, name = request["entry"], request["target"].decode(), os.fsdecode(request["name"])
    if target == "vulkan1.0":
        raise InvalidArgumentError(
            "target is 'vulkan1.0', and Slang does not write SPIR-V for it; choose vulkan1.1 or later, or "
            'compiler="glslang" for HLSL'
        )
    if target not in _NEWEST:
        raise InvalidArgumentError(
            f"{shown(target)} is not a target; choose one of vulkan1.0, {', '.join(_NEWEST)}"
        )
    if not re.fullmatch(_NAME, entry):
        raise InvalidArgumentError(
            f"{entry.decode(errors='replace')!r} cannot be an entry point: its name is letters, digits and _"
        )
    for key, value in request["defines"]:
        if not re.fullmatch(_MACRO, key):
            raise InvalidArgumentError(
                f"cannot define {key.decode(errors='replace')!r}: a macro's name is letters, digits and _"
            )
        if re.search(rb"[\r\n\0]", value):
            raise InvalidArgumentError(f"cannot define {key.decode()}: a macro's value is one line of text")
    for folder in request["include_dirs"]:
        if not folder or b"\0" in folder:
            raise InvalidArgumentError(
                "an include directory must not be empty or contain a NUL character; '.' is the current one"
            )
    if re.search(r"[\r\n\0]", name):
        raise InvalidArgumentError("the source's name must be one line of text")
    if request["glsl_version"]:
        raise InvalidArgumentError(f"a version of GLSL does not apply to {_SPOKEN[request['language']]}")
    version = request["spirv_version"].decode()
    known = _VERSIONS[: _VERSIONS.index(_NEWEST[target]) + 1]
    if version and version not in known:
        raise InvalidArgumentError(
            f"{shown(version)} is not a version of SPIR-V that Slang writes for {target}; choose one of "
            f"{', '.join(known)}"
        )
    source = request["source"]
    if not source.strip():
        raise _failure(request, "the source is empty")
    if b"\0" in source:
        raise _failure(request, "the source contains a NUL character; is it text?")
