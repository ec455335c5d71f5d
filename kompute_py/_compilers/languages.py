"""Which compiler a source goes to, and compiling HLSL and Slang in a process of its own (process.py).

GLSL is compiled here, by glslang, HLSL by DXC, Slang by Slang. HLSL without DXC goes to Slang, which takes
most of it.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

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
from .cache import CachedShader
from .libraries import INSTALL, Library, find_library
from .limits import too_long
from .settings import COMPILERS, Lookup, of_process

LANGUAGES = ("glsl", "hlsl", "slang")
_SPOKEN = {"glsl": "GLSL", "hlsl": "HLSL", "slang": "Slang"}
_TITLES = {"glslang": "glslang", "dxc": "DXC", "slang": "Slang"}
# Not compiled here: that would cost each import of the package a millisecond.
_NAME = rb"[A-Za-z_][A-Za-z0-9_]*"
_MACRO = _NAME + rb"(\([^()\r\n\0]*\))?"
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
_VERSIONS = {"slang": ("1.3", "1.4", "1.5", "1.6"), "dxc": ("1.0", "1.3", "1.5", "1.6")}
_NEWEST = {"vulkan1.0": "1.0", "vulkan1.1": "1.3", "vulkan1.2": "1.5", "vulkan1.3": "1.6"}


Probes = list[tuple[str, "bytes | None"]]


class Compiler(NamedTuple):
    """The compiler of a source."""

    kind: str
    """"glslang", "dxc" or "slang"."""
    library: str = ""
    """The path of its library, if it is in one."""
    identity: str = ""
    """A key that differs if the library differs, or what this package does to its results."""
    name: str = "glslang"
    """Its name in messages."""


_GLSLANG = Compiler("glslang")
_TAKE = {"glsl": ("glslang",), "hlsl": COMPILERS, "slang": ("slang",)}
"""The compilers that take each language, the preferred one first."""
_noted = False


def choose_compiler(language: str, asked: str | None, setting: Lookup = of_process) -> Compiler:
    """The compiler for a source in `language`; `asked` is the option `compiler`.

    Raises InvalidArgumentError for a compiler that does not exist or cannot take the language,
    UnavailableError if no library of one that does is found.
    """
    if asked is not None and (not isinstance(asked, str) or asked not in COMPILERS):
        raise InvalidArgumentError(
            f"compiler is {shown(asked)}; choose one of {', '.join(COMPILERS)}, or None"
        )
    usual = _TAKE[language]
    if asked is not None and asked not in usual:
        raise InvalidArgumentError(
            f"compiler is {shown(asked)}, but {_SPOKEN[language]} is compiled by {' or '.join(usual)}; leave "
            "compiler out"
        )
    if usual == ("glslang",):
        return _GLSLANG
    wanted = asked or (setting("compiler") if len(usual) > 1 else None)
    for kind in usual if wanted is None else (wanted,):
        library = find_library(kind, setting)
        if library is not None:
            if kind != usual[0] and wanted is None:
                _note_fallback(library)
            return Compiler(kind, library.path, f"{library.identity} {_own_identity()}", library.name)
    kind = wanted or usual[0]
    raise UnavailableError(
        f"{_SPOKEN[language]} is compiled by {_TITLES[kind]} here, and its library is not found: "
        f"{INSTALL[kind]}, or name the library in the setting {kind}_library (environment variable "
        f"KOMPUTE_PY_{kind.upper()}_LIBRARY)"
    )


@functools.cache
def _own_identity() -> str:
    """Differs if the files of this folder differ, which change what the libraries make."""
    folder = os.path.dirname(os.path.abspath(__file__))
    contents = []
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py"):
            with open(os.path.join(folder, name), "rb") as file:
                contents.append(file.read())
    return digest(pack(contents)).hex()


def _note_fallback(library: Library) -> None:
    global _noted
    if _noted:
        return
    _noted = True
    from logging import getLogger  # costs milliseconds

    getLogger("kompute_py").warning(
        "HLSL is compiled by %s, which takes most of it; %s brings DXC, its own compiler",
        library.name,
        INSTALL["dxc"],
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


def compile_elsewhere(request: Mapping[str, Any], seconds: float) -> tuple[CachedShader, Probes]:
    """The result for `shader._Request`, as a dict, of a source in HLSL or Slang, and the paths at which it
    looked for includes.

    Raises what `kp.compile` raises.
    """
    from . import process as shader_process

    chosen: Compiler = request["compiler"]
    _check(request)
    name, target = os.fsdecode(request["name"]), request["target"].decode()
    try:
        answer = shader_process.ask(_message(request), seconds)
    except shader_process.TimedOut:
        refusal = _failure(request, too_long(seconds))
        raise CompileTimeoutError(str(refusal), diagnostics=refusal.diagnostics) from None
    except shader_process.Ended as error:
        how = f" ({error})" if str(error) else ""
        what = (
            f"the SPIR-V {error.step} crashed on what {chosen.name} made of this source"
            if error.step
            else f"{chosen.name} crashed on this source"
        )
        advice = '; compile with optimize="none"' if error.step else ""
        raise _failure(request, f"{what}{how}, in a process of its own{advice}") from None
    except OSError as error:
        raise InternalError(
            f"{name}: {_SPOKEN[request['language']]} is compiled in a process of its own, which cannot be "
            f"started: {error}"
        ) from error
    failed = answer.get("error")
    if failed is None:
        spirv, probes = answer["spirv"], answer["probes"]
        if spirv[5] > int(_NEWEST[target][2:]):
            raise _failure(
                request, f"it needs SPIR-V 1.{spirv[5]}, which {target} lacks; choose a later target"
            )
        return CachedShader(
            spirv, answer["warnings"], answer["included"], marks(probes), answer["declared"], answer["name"]
        ), probes
    if failed == "compile":
        refusal = _error(request, [Diagnostic(*each) for each in answer["diagnostics"]], answer["name"])
        refusal._sought = marks(answer["probes"])
        raise refusal
    if failed == "unusable":
        raise UnavailableError(f"{name}: {answer['message']}")
    kinds = {
        each.__name__: each
        for each in (InvalidArgumentError, NotFoundError, UnimplementedError, UnavailableError)
    }
    raise kinds.get(failed, InternalError)(
        answer["message"] if failed in kinds else f"{name}: {chosen.name} failed: {answer['message']}"
    )


def _message(request: Mapping[str, Any]) -> tuple[Any, ...]:
    """The request as the compiler process takes it (worker.py)."""
    from .sources import Source

    source = Source(
        request["source"],
        os.fsdecode(request["name"]),
        request["language"],
        request["entry"].decode(),
        [(key.decode(), value.decode()) for key, value in request["defines"]],
        [os.fsdecode(folder) for folder in request["include_dirs"]],
        request["includes"],
        request["debug_info"],
        request["target"].decode(),
        request["spirv_version"].decode(),
        request["hlsl_16bit_types"],
        request["register_bases"],
        request["compiler_options"],
    )
    try:
        folder = os.getcwd()
    except OSError:  # it was deleted
        folder = os.sep
    chosen: Compiler = request["compiler"]
    return chosen.kind, chosen.library, folder, request["optimize"], tuple(source)


def _failure(request: Mapping[str, Any], message: str) -> ShaderCompileError:
    name = os.fsdecode(request["name"]).encode(errors="replace").decode()
    return _error(request, [Diagnostic(name, 0, 0, "error", message, "")])


def _error(
    request: Mapping[str, Any], diagnostics: list[Diagnostic], compiler: str | None = None
) -> ShaderCompileError:
    text = _native.render_diagnostics(diagnostics)
    by = compiler or request["compiler"].name
    return ShaderCompileError(f"{text}\ncompiler: {by}", diagnostics=diagnostics)


def _check(request: Mapping[str, Any]) -> None:
    """The native compiler's checks of arguments, for the others."""
    entry, target, name = request["entry"], request["target"].decode(), os.fsdecode(request["name"])
    chosen: Compiler = request["compiler"]
    if target not in _NEWEST:
        raise InvalidArgumentError(f"{shown(target)} is not a target; choose one of {', '.join(_NEWEST)}")
    if target == "vulkan1.0" and chosen.kind == "slang":
        raise InvalidArgumentError(
            "target is 'vulkan1.0', and Slang does not write SPIR-V for it; choose vulkan1.1 or later"
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
    before = ""
    for option in request["compiler_options"]:
        allowed = _ALLOWED[chosen.kind] if option.startswith("-") else _VALUES.get(before, _VALUE)
        before = option
        if not re.fullmatch(allowed, option):
            raise InvalidArgumentError(
                f"compiler_options has {shown(option)}, which kompute_py does not pass to "
                f"{_TITLES[chosen.kind]}; it passes those of the language, of layouts, of SPIR-V and of "
                "warnings"
            )
    if request["glsl_version"]:
        raise InvalidArgumentError(f"a version of GLSL does not apply to {_SPOKEN[request['language']]}")
    version = request["spirv_version"].decode()
    known = [each for each in _VERSIONS[chosen.kind] if each <= _NEWEST[target]]
    if version and version not in known:
        raise InvalidArgumentError(
            f"{shown(version)} is not a version of SPIR-V that {_TITLES[chosen.kind]} writes for {target}; "
            f"choose one of {', '.join(known)}"
        )
    source = request["source"]
    if not source.strip():
        raise _failure(request, "the source is empty")
    if b"\0" in source:
        raise _failure(request, "the source contains a NUL character; is it text?")
