"""Calls Slang through the C functions of its library, from one thread of the compiler process (worker.py).

Slang reads every file through an object with its interface ISlangFileSystem (sources.py).
"""

from __future__ import annotations

import ctypes
import json
import os
import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from .._base.errors import InvalidArgumentError, UnavailableError
from .request import Request
from .sources import UNKNOWN, Files, Message, Methods, Result, error_in, no_entry
from .spirv_words import Module
from .tidy import shared_bindings

_SPIRV = 6
_COMPUTE_STAGE = 6
_LANGUAGES = {"slang": 1, "hlsl": 2}
_OK = 0
_NOT_FOUND = -2113928187  # SLANG_E_NOT_FOUND, 0x82000005

# Warnings that are reported better elsewhere or do not concern the author: capabilities added to the profile,
# registers without a shift (they keep their numbers), bindings that two variables share.
_IGNORED = {"41012", "39029", "39001"}

_IGNORED_IN_HLSL = {"30081"}  # implicit conversions of HLSL
_NO_ENTRY = "E38000"
_OLDEST = [2026, 12]

# Slang's oldest version. From 1.4 on it copies whole structs with OpCopyLogical, and drivers fail on those
# with matrices. Slang chooses a newer version itself if the source needs one.
_SPIRV_VERSION = "1.3"

# Keeps unused parameters in the signature. Slang fails on unused byte-address buffers; then they are dropped.
_KEEP = "-preserve-params"
_UNUSED_BYTES = b"Unhandled global inst in spirv-emit"

# For SPIR-V 1.3, Slang compiles an exchange of a buffer's element to a store with an undefined result id.
_EXCHANGE = re.compile(rb"(?<!Compare)Exchange\w*\s*\(|\.\s*exchange\s*\(|\batomic_exchange|\bAtomic\s*<")

_PLACED = re.compile(rb"\bvk(::|_)binding\b")
_ROW_MAJOR = re.compile(rb"^[ \t]*#[ \t]*pragma[ \t]+pack_matrix[ \t]*\([ \t]*row_major", re.MULTILINE)

_pointer, _text, _int = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32
_FUNCTIONS: dict[str, tuple[Any, ...]] = {  # the result, the arguments
    "spCreateSession": (_pointer, _text),
    "spCreateCompileRequest": (_pointer, _pointer),
    "spDestroyCompileRequest": (None, _pointer),
    "spProcessCommandLineArguments": (_int, _pointer, ctypes.POINTER(_text), _int),
    "spSetCodeGenTarget": (None, _pointer, _int),
    "spFindProfile": (_int, _pointer, _text),
    "spSetTargetProfile": (None, _pointer, _int, _int),
    "spSetFileSystem": (None, _pointer, _pointer),
    "spAddSearchPath": (None, _pointer, _text),
    "spAddPreprocessorDefine": (None, _pointer, _text, _text),
    "spAddTranslationUnit": (_int, _pointer, _int, _text),
    "spAddTranslationUnitSourceString": (None, _pointer, _int, _text, _text),
    "spAddEntryPoint": (_int, _pointer, _int, _text, _int),
    "spCompile": (_int, _pointer),
    "spGetDiagnosticOutput": (_text, _pointer),
    "spGetEntryPointCode": (_pointer, _pointer, _int, ctypes.POINTER(ctypes.c_size_t)),
    "spGetBuildTagString": (_text,),
    "slang_createBlob": (_pointer, _text, ctypes.c_size_t),
    "spGetReflection": (_pointer, _pointer),
    "spReflection_ToJson": (_int, _pointer, _pointer, ctypes.POINTER(_pointer)),
}

_CAST = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_ubyte * 16))
_LOAD = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p))
_INTERFACES = {
    UNKNOWN,
    UUID("87EDE0E1-4852-44B0-8BF2-CB31874DE239").bytes_le,  # ISlangCastable
    UUID("003A09FC-3A4D-4BA0-AD60-1FD863A915AB").bytes_le,  # ISlangFileSystem
}


class Slang:
    """The library with a session that has loaded its core module (which takes a fifth of a second)."""

    def __init__(self, path: str) -> None:
        try:
            self._library = ctypes.CDLL(path)  # RTLD_LOCAL: its symbols do not conflict with others
            for name, (result, *arguments) in _FUNCTIONS.items():
                function = getattr(self._library, name)
                function.restype, function.argtypes = result, arguments
        except (OSError, AttributeError) as error:
            raise UnavailableError(f"{path} cannot be used as Slang's library: {error}") from None
        tag = self._library.spGetBuildTagString().decode(errors="replace")
        self.name = f"Slang {tag}"
        if [int(each) for each in re.findall(r"\d+", tag)] < _OLDEST and tag[:1].isdigit():
            raise UnavailableError(f"{path} is {self.name}, which is too old; install 2026.12 or later")
        self._session = self._library.spCreateSession(None)
        if not self._session:
            raise UnavailableError(f"{path}: Slang created no session")

    def compile(self, source: Request) -> Result:
        """Compiles to SPIR-V without optimization."""
        version = source.spirv_version or _SPIRV_VERSION
        if version < _SPIRV_VERSION:  # Slang would write the header of that version
            raise InvalidArgumentError(f"{self.name} writes SPIR-V 1.3 and later, not {version}")
        options = [*_options(source), *source.options]
        result, log = self._attempt(source, version, options)
        if _UNUSED_BYTES in log:
            options.remove(_KEEP)
            result, log = self._attempt(source, version, options)
        texts = result.files.texts.values()
        if (
            source.register_bases
            and result.spirv
            and (any(map(_PLACED.search, texts)) or shared_bindings(Module(result.spirv)))
        ):
            # Slang would number what has [[vk::binding]] anew, and two variables of a ParameterBlock alike.
            message = (
                "Slang cannot shift registers together with [[vk::binding]] or a ParameterBlock; number all "
                "variables by [[vk::binding]], or none by registers"
            )
            return result._replace(spirv=b"", messages=error_in(source, message))
        if result.spirv and version == "1.3" and any(map(_EXCHANGE.search, texts)):
            result, log = self._attempt(source, "1.4", options)
        return result

    def _attempt(self, source: Request, version: str, options: list[str]) -> tuple[Result, bytes]:
        """The result of one attempt, and Slang's log."""
        library = self._library
        files = Files(source)
        system = self._file_system(files)
        request = library.spCreateCompileRequest(self._session)
        try:
            library.spSetFileSystem(request, system.address)
            library.spSetCodeGenTarget(request, _SPIRV)
            profile = library.spFindProfile(self._session, f"spirv_{version.replace('.', '_')}".encode())
            library.spSetTargetProfile(request, 0, profile)
            encoded = [option.encode() for option in options]
            if library.spProcessCommandLineArguments(
                request, (ctypes.c_char_p * len(encoded))(*encoded), len(encoded)
            ):
                log = library.spGetDiagnosticOutput(request) or b"Slang does not take them"
                why = "; ".join(each[4] for each in _messages(log, source))
                return Result(b"", error_in(source, f"compiler_options: {why}"), files), b""
            for folder in source.include_dirs:
                library.spAddSearchPath(request, os.fsencode(folder))
            head = b""
            for name, value in [*_types_of_hlsl(source), *source.defines]:
                if "(" in name:
                    head += f"#define {name} {value}\n".encode()
                else:
                    library.spAddPreprocessorDefine(request, name.encode(), value.encode())
            text = source.source.removeprefix(b"\xef\xbb\xbf")
            if head:
                text = head + b"#line 1\n" + text
            unit = library.spAddTranslationUnit(request, _LANGUAGES[source.language], b"kp_source")
            library.spAddTranslationUnitSourceString(request, unit, os.fsencode(files.main), text)
            library.spAddEntryPoint(request, unit, source.entry.encode(), _COMPUTE_STAGE)
            failed = library.spCompile(request) < 0
            log = library.spGetDiagnosticOutput(request) or b""
            spirv = b""
            if not failed:
                for truth in self._bools(request):
                    message = f"{truth} is a bool in a buffer, which has no place in memory: declare it uint"
                    return Result(b"", error_in(source, message), files), log
                size = ctypes.c_size_t()
                code = library.spGetEntryPointCode(request, 0, ctypes.byref(size))
                spirv = ctypes.string_at(code, size.value) if code else b""
            return Result(spirv, files.placed(_messages(log, source)), files), log
        finally:
            library.spDestroyCompileRequest(request)

    def _bools(self, request: int) -> Iterator[str]:
        """The names of bools in blocks, which the SPIR-V does not tell from ints."""
        blob = ctypes.c_void_p()
        self._library.spReflection_ToJson(self._library.spGetReflection(request), request, ctypes.byref(blob))
        told = json.loads(_contents(blob.value)) if blob.value else {}
        for each in (told, *told.get("entryPoints", ())):
            for given in each.get("parameters", ()):
                if given.get("binding", {}).get("kind") != "specializationConstant":
                    yield from _bools_in(given, "")

    def _file_system(self, files: Files) -> Methods:
        def cast(this: int, asked: Any) -> int | None:
            return this if bytes(asked.contents) in _INTERFACES else None

        def load(_: int, path: bytes, out: Any) -> int:
            content = files.read(os.fsdecode(path))
            if content is None:
                return _NOT_FOUND
            text = content or b"\n"  # Slang creates no empty blobs
            out[0] = self._library.slang_createBlob(text, len(text))
            return _OK if out[0] else _NOT_FOUND

        return Methods(_INTERFACES, [_CAST(cast), _LOAD(load)])


def _bools_in(part: Any, name: str) -> Iterator[str]:
    """The paths of bools in a part of Slang's reflection."""
    if isinstance(part, list):
        for each in part:
            yield from _bools_in(each, name)
    elif isinstance(part, dict):
        if part.get("scalarType") == "bool":
            yield name
        if "kind" not in part:  # a type's name is not a member's
            name = ".".join(filter(None, (name, part.get("name"))))
        for key in ("type", "elementType", "resultType", "fields"):
            yield from _bools_in(part.get(key), name)


def _contents(blob: int) -> bytes:
    """The contents of an ISlangBlob, which is released."""
    table = ctypes.cast(blob, ctypes.POINTER(ctypes.POINTER(ctypes.c_void_p)))[0]
    start = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(table[3])(blob)
    size = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p)(table[4])(blob)
    content = ctypes.string_at(start, size)
    ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)(table[2])(blob)
    return content


def _options(source: Request) -> list[str]:
    options = [
        "-O0",  # the package's optimizer follows; it keeps names and interfaces
        _KEEP,
        "-fvk-use-entrypoint-name",
        "-skip-spirv-validation",
        "-enable-machine-readable-diagnostics",
    ]
    if source.language == "hlsl":
        # Slang ignores the pragma.
        order = "row" if _ROW_MAJOR.search(source.source) else "column"
        options += ["-fvk-use-dx-layout", f"-matrix-layout-{order}-major"]
    if source.debug_info:
        options.append("-g2")
    if source.register_bases:
        for letter in "tubs":
            options += [f"-fvk-{letter}-shift", str(source.register_bases.get(letter, 0)), "all"]
    return options


def _types_of_hlsl(source: Request) -> list[tuple[str, str]]:
    """Macros for HLSL's small types, because Slang lacks some of them.

    They have 32 bits unless `hlsl_16bit_types` is set.
    """
    if source.language != "hlsl":
        return []
    small = source.hlsl_16bit_types
    types = {
        "min16float": "half", "min10float": "half", "min16int": "int16_t", "min16uint": "uint16_t",
    } if small else {
        "half": "float", "min16float": "float", "min10float": "float", "min16int": "int", "min16uint": "uint",
    }  # fmt: skip
    sizes = ["", *"1234", *(f"{rows}x{columns}" for rows in "1234" for columns in "1234")]
    return [(name + size, meant + size) for name, meant in types.items() for size in sizes]


# -- messages --------------------------------------------------------------------------------------


def _messages(log: bytes, source: Request) -> list[Message]:
    """Slang's machine-readable lines: code, severity, file, line, column, the end's line and column, message.

    A line of severity "span" adds details or another place to the line before it.
    """
    found: list[tuple[str, Message]] = []  # with their codes
    for line in filter(None, map(str.strip, log.decode(errors="replace").splitlines())):
        parts = line.split("\t", 7)
        if len(parts) < 8 or not parts[3].isdigit() or not parts[4].isdigit():
            code, last = found.pop() if found else ("", ("", 0, 0, "error", "", ""))
            found.append((code, (*last[:4], f"{last[4]}\n{line}".strip(), "")))
            continue
        code, severity, message = parts[0], parts[1], parts[7].rstrip(".")
        place = (parts[2], int(parts[3]), int(parts[4]))
        if severity == "span" and not (found and message):
            continue
        if severity == "span" and found[-1][1][:3] == place:
            code, (*_, severity, _, _) = found.pop()
        elif severity == "span":
            severity = "note"
        elif severity not in ("error", "warning", "note"):
            severity = "error"  # "fatal", "internal"
        found.append((code, (*place, severity, message, "")))
    if any(code == _NO_ENTRY for code, _ in found):
        return no_entry(source)
    ignored = _IGNORED | (_IGNORED_IN_HLSL if source.language == "hlsl" else set())
    kept: dict[Message, None] = {}
    dropped = False
    for code, each in found:
        # A note belongs to the message before it.
        heeded = "'#pragma pack_matrix'" in each[4] and each[0].endswith(source.name)  # by _options
        if each[3] != "note":
            dropped = each[3] == "warning" and (code.lstrip("E") in ignored or heeded)
        if not dropped:
            kept[each] = None
    return list(kept)
