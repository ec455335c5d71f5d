"""Calls Slang through the C functions of its library, from one thread of the compiler process (worker.py).

Slang reads every file through an object with its interface ISlangFileSystem (sources.py).
"""

from __future__ import annotations

import ctypes
import json
import os
import re
from typing import Any

from .sources import UNKNOWN, Files, Message, Methods, Result, Source, Unusable, guid, no_entry
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

_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "spCreateSession": (ctypes.c_void_p, [ctypes.c_char_p]),
    "spCreateCompileRequest": (ctypes.c_void_p, [ctypes.c_void_p]),
    "spDestroyCompileRequest": (None, [ctypes.c_void_p]),
    "spProcessCommandLineArguments": (
        ctypes.c_int32,
        [ctypes.c_void_p, ctypes.POINTER(ctypes.c_char_p), ctypes.c_int],
    ),
    "spSetCodeGenTarget": (None, [ctypes.c_void_p, ctypes.c_int]),
    "spFindProfile": (ctypes.c_uint, [ctypes.c_void_p, ctypes.c_char_p]),
    "spSetTargetProfile": (None, [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint]),
    "spSetFileSystem": (None, [ctypes.c_void_p, ctypes.c_void_p]),
    "spAddSearchPath": (None, [ctypes.c_void_p, ctypes.c_char_p]),
    "spAddPreprocessorDefine": (None, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]),
    "spAddTranslationUnit": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p]),
    "spAddTranslationUnitSourceString": (
        None,
        [ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p],
    ),
    "spAddEntryPoint": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_int]),
    "spCompile": (ctypes.c_int32, [ctypes.c_void_p]),
    "spGetDiagnosticOutput": (ctypes.c_char_p, [ctypes.c_void_p]),
    "spGetEntryPointCode": (
        ctypes.c_void_p,
        [ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ctypes.c_size_t)],
    ),
    "spGetBuildTagString": (ctypes.c_char_p, []),
    "slang_createBlob": (ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_size_t]),
    "spGetReflection": (ctypes.c_void_p, [ctypes.c_void_p]),
    "spReflection_ToJson": (
        ctypes.c_int32,
        [ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)],
    ),
}

_CAST = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_ubyte * 16))
_LOAD = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p))
_INTERFACES = {
    UNKNOWN,
    guid(0x87EDE0E1, 0x4852, 0x44B0, 0x8B, 0xF2, 0xCB, 0x31, 0x87, 0x4D, 0xE2, 0x39),  # ISlangCastable
    guid(0x003A09FC, 0x3A4D, 0x4BA0, 0xAD, 0x60, 0x1F, 0xD8, 0x63, 0xA9, 0x15, 0xAB),  # ISlangFileSystem
}


class Slang:
    """The library with a session that has loaded its core module (which takes a fifth of a second)."""

    def __init__(self, path: str) -> None:
        try:
            self._library = ctypes.CDLL(path)  # RTLD_LOCAL: its symbols do not conflict with others
            for name, (result, arguments) in _FUNCTIONS.items():
                function = getattr(self._library, name)
                function.restype, function.argtypes = result, arguments
        except (OSError, AttributeError) as error:
            raise Unusable(f"{path} cannot be used as Slang's library: {error}") from None
        self.name = f"Slang {self._library.spGetBuildTagString().decode(errors='replace')}"
        self._session = self._library.spCreateSession(None)
        if not self._session:
            raise Unusable(f"{path}: Slang created no session")

    def compile(self, source: Source) -> Result:
        """Compiles to SPIR-V without optimization."""
        version = source.spirv_version or _SPIRV_VERSION
        options = _options(source)
        result, log = self._attempt(source, version, options)
        if _UNUSED_BYTES in log:
            options.remove(_KEEP)
            result, log = self._attempt(source, version, options)
        if (
            result.spirv
            and source.register_bases
            and (any(map(_PLACED.search, result.files.texts())) or shared_bindings(result.spirv))
        ):
            # Slang would number what has [[vk::binding]] anew, and two variables of a ParameterBlock alike.
            message = (
                "Slang cannot shift registers beside [[vk::binding]] or a ParameterBlock; number all "
                "variables by [[vk::binding]], or none by registers"
            )
            return result._replace(spirv=b"", messages=[(source.name, 0, 0, "error", message, "")])
        if result.spirv and version == "1.3" and any(_EXCHANGE.search(text) for text in result.files.texts()):
            if source.spirv_version:
                message = "an atomic exchange needs SPIR-V 1.4: choose it as spirv_version, or leave that out"
                return result._replace(spirv=b"", messages=[(source.name, 0, 0, "error", message, "")])
            result, log = self._attempt(source, "1.4", options)
        return result

    def _attempt(self, source: Source, version: str, options: list[str]) -> tuple[Result, bytes]:
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
            for listed in (options, source.options):
                encoded = [option.encode() for option in listed]
                if not library.spProcessCommandLineArguments(
                    request, (ctypes.c_char_p * len(encoded))(*encoded), len(encoded)
                ):
                    continue
                if listed is options:
                    raise Unusable(
                        f"{self.name} lacks an option that kompute_py needs; install 2026.12 or later"
                    )
                log = library.spGetDiagnosticOutput(request) or b"Slang does not take them"
                refused = [
                    (source.name, 0, 0, "error", f"compiler_options: {each[4]}", "")
                    for each in _messages(log, source)
                ]
                return Result(b"", refused, files), b""
            for folder in source.include_dirs:
                library.spAddSearchPath(request, os.fsencode(folder))
            head = b""
            for name, value in [*_types_of_hlsl(source), *source.defines]:
                if "(" in name:
                    head += f"#define {name} {value}\n".encode()
                else:
                    library.spAddPreprocessorDefine(request, name.encode(), value.encode())
            text = source.text.removeprefix(b"\xef\xbb\xbf")
            if head:
                text = head + b"#line 1\n" + text
            unit = library.spAddTranslationUnit(request, _LANGUAGES[source.language], b"kp_source")
            library.spAddTranslationUnitSourceString(request, unit, os.fsencode(files.main), text)
            library.spAddEntryPoint(request, unit, source.entry.encode(), _COMPUTE_STAGE)
            failed = library.spCompile(request) < 0
            log = library.spGetDiagnosticOutput(request) or b""
            spirv = b""
            truths: list[str] = []
            if not failed:
                truths = self._bools(request)
                size = ctypes.c_size_t()
                code = library.spGetEntryPointCode(request, 0, ctypes.byref(size))
                spirv = ctypes.string_at(code, size.value) if code else b""
            messages = files.placed(_messages(log, source))
            if truths:
                message = f"{truths[0]} is a bool in a buffer, which has no place in memory: declare it uint"
                return Result(b"", [(source.name, 0, 0, "error", message, "")], files), log
            return Result(spirv, messages, files), log
        finally:
            library.spDestroyCompileRequest(request)

    def _bools(self, request: int) -> list[str]:
        """The names of bools in blocks, which the SPIR-V does not tell from ints."""
        blob = ctypes.c_void_p()
        self._library.spReflection_ToJson(self._library.spGetReflection(request), request, ctypes.byref(blob))
        if not blob.value:
            return []
        told = json.loads(_contents(blob.value))
        found: list[str] = []

        def look(part: Any, name: str) -> None:
            if isinstance(part, list):
                for each in part:
                    look(each, name)
            elif isinstance(part, dict):
                if part.get("scalarType") == "bool":
                    found.append(name)
                own = f"{name}.{part['name']}" if name and "name" in part else part.get("name", name)
                if "kind" in part:  # a type, whose name is not a member's
                    own = name
                for key in ("type", "elementType", "resultType", "fields"):
                    look(part.get(key), own)

        for each in (told, *told.get("entryPoints", ())):
            given = each.get("parameters", ())
            look([p for p in given if p.get("binding", {}).get("kind") != "specializationConstant"], "")
        return found

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


def _contents(blob: int) -> bytes:
    """The contents of an ISlangBlob, which is released."""
    table = ctypes.cast(blob, ctypes.POINTER(ctypes.POINTER(ctypes.c_void_p)))[0]
    start = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(table[3])(blob)
    size = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p)(table[4])(blob)
    content = ctypes.string_at(start, size)
    ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)(table[2])(blob)
    return content


def _options(source: Source) -> list[str]:
    options = [
        "-O0",  # the package's optimizer follows; it keeps names and interfaces
        _KEEP,
        "-fvk-use-entrypoint-name",
        "-skip-spirv-validation",
        "-enable-machine-readable-diagnostics",
    ]
    if source.language == "hlsl":
        # Slang ignores the pragma.
        order = "row" if _ROW_MAJOR.search(source.text) else "column"
        options += ["-fvk-use-dx-layout", f"-matrix-layout-{order}-major"]
    if source.debug_info:
        options.append("-g2")
    if source.register_bases:
        for letter in "tubs":
            options += [f"-fvk-{letter}-shift", str(source.register_bases.get(letter, 0)), "all"]
    return options


def _types_of_hlsl(source: Source) -> list[tuple[str, str]]:
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


def _messages(log: bytes, source: Source) -> list[Message]:
    """Slang's machine-readable lines: code, severity, file, line, column, the end's line and column, message.

    A line of severity "span" adds details or another place to the line before it.
    """
    found: list[Message] = []
    codes: list[str] = []
    for line in log.decode(errors="replace").splitlines():
        parts = line.split("\t", 7)
        if len(parts) < 8 or not parts[3].isdigit() or not parts[4].isdigit():
            if line.strip():
                if found:
                    found[-1] = (*found[-1][:4], f"{found[-1][4]}\n{line.strip()}", "")
                else:
                    found.append(("", 0, 0, "error", line.strip(), ""))
                    codes.append("")
            continue
        code, severity, file, number, column, message = *parts[:3], int(parts[3]), int(parts[4]), parts[7]
        if severity == "span":
            if found and message and found[-1][:3] == (file, number, column):
                found[-1] = (*found[-1][:4], message.rstrip("."), "")
            elif found and message:
                found.append((file, number, column, "note", message.rstrip("."), ""))
                codes.append(code)
            continue
        if severity not in ("error", "warning", "note"):
            severity = "error"  # "fatal", "internal"
        found.append((file, number, column, severity, message.rstrip("."), ""))
        codes.append(code)
    if _NO_ENTRY in codes:
        return no_entry(source)
    ignored = _IGNORED | (_IGNORED_IN_HLSL if source.language == "hlsl" else set())
    kept: dict[Message, None] = {}
    dropped = False
    for each, code in zip(found, codes, strict=True):
        # A note belongs to the message before it.
        heeded = "'#pragma pack_matrix'" in each[4] and each[0].endswith(source.name)  # by _options
        if each[3] != "note":
            dropped = each[3] == "warning" and (code.lstrip("E") in ignored or heeded)
        if not dropped:
            kept[each] = None
    return list(kept)
