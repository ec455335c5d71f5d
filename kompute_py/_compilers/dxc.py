"""Calls DXC, the reference compiler of HLSL, through the COM objects of its library, from one thread of the
compiler process (worker.py).

An object begins with a pointer to a table of methods, whose first three are those of IUnknown. On
Linux and macOS, older DXC has two destructors after them, so that an interface's own methods begin at
place 5, not 3. DXC itself tells which: it is given an allocator of ours, and calls one of its methods.
"""

from __future__ import annotations

import ctypes
import re
from typing import Any
from uuid import UUID

from .._base.errors import UnavailableError
from .request import Request
from .sources import OK, UNKNOWN, Files, Message, Methods, Result, error_in, no_entry

_UTF8 = 65001
_NOT_FOUND = -2147467259  # E_FAIL
_SHADER_MODEL = "cs_6_6"
_ENVIRONMENTS = {
    "1.0": "vulkan1.0",
    "1.3": "vulkan1.1",
    "1.4": "vulkan1.1spirv1.4",
    "1.5": "vulkan1.2",
    "1.6": "vulkan1.3",
}
_LINE = re.compile(r"(?:(.*?):(\d+):(?:(\d+):)? )?(?:fatal )?(error|warning|note): (.*)")
_DROPPED = re.compile(r".*Removing (\w+) instruction because of incompatible execution model\.")
_FLAG = re.compile(r" \[-W[\w-]+\]$")

_CLASS_UTILS = UUID("6245D6AF-66E0-48FD-80B4-4D271796748C").bytes_le
_CLASS_COMPILER = UUID("73E22D93-E6CE-47F3-B5BF-F0664F39C1B0").bytes_le
_UTILS = UUID("4605C4CB-2019-492A-ADA4-65F20BB7D67F").bytes_le
_COMPILER = UUID("228B4687-5A6A-4730-900C-9702B2203F54").bytes_le
_RESULT = UUID("58346CDA-DDE7-4497-9461-6F87AF5E0659").bytes_le
_VERSION = UUID("B04F5B50-2059-4F12-A8FF-A1E0CDE1CC7E").bytes_le
_INCLUDE_HANDLER = UUID("7F61FC7D-950D-467F-B3E3-3C02FB49187C").bytes_le
_MALLOC = UUID("00000002-0000-0000-C000-000000000046").bytes_le

# Methods by their place after those of IUnknown.
_CREATE_BLOB = 3  # of IDxcUtils
_COMPILE = 0  # of IDxcCompiler3
_STATUS, _CODE, _ERRORS = 0, 1, 2  # of IDxcResult
_POINTER, _SIZE = 0, 1  # of IDxcBlob
_RELEASE = 2  # of IUnknown

_pointer, _u32 = ctypes.c_void_p, ctypes.c_uint32
_LOAD = ctypes.CFUNCTYPE(ctypes.c_int32, _pointer, ctypes.c_wchar_p, ctypes.POINTER(_pointer))
_ALLOCATE = ctypes.CFUNCTYPE(_pointer, _pointer, ctypes.c_size_t, ctypes.c_size_t)


class _Text(ctypes.Structure):
    _fields_ = (("text", ctypes.c_char_p), ("size", ctypes.c_size_t), ("encoding", _u32))


class Dxc:
    """The library with a compiler."""

    def __init__(self, path: str) -> None:
        try:
            self._library = ctypes.CDLL(path)  # RTLD_LOCAL: its symbols do not conflict with others
            for create in (self._library.DxcCreateInstance, self._library.DxcCreateInstance2):
                create.restype = ctypes.c_int32
            self._library.DxcCreateInstance.argtypes = [ctypes.c_char_p, ctypes.c_char_p, _pointer]
            self._library.DxcCreateInstance2.argtypes = [_pointer, ctypes.c_char_p, ctypes.c_char_p, _pointer]
        except (OSError, AttributeError) as error:
            raise UnavailableError(f"{path} cannot be used as DXC's library: {error}") from None
        self._first = self._first_method(path)
        self._utils = self._create(_CLASS_UTILS, _UTILS, path)
        self._compiler = self._create(_CLASS_COMPILER, _COMPILER, path)
        version = self._create(_CLASS_COMPILER, _VERSION, path)
        numbers = (_u32 * 2)()
        start = ctypes.addressof(numbers)
        self._call(version, 0, _pointer(start), _pointer(start + 4))
        self.name = f"DXC {numbers[0]}.{numbers[1]}"
        self.is_old = tuple(numbers) < (1, 8)

    def _first_method(self, path: str) -> int:
        """The place of an interface's first own method: what this DXC calls to allocate memory."""
        called: list[int] = []
        memory: list[Any] = []

        def method(place: int) -> Any:
            def allocate(_: int, size: int, __: int) -> int:
                if not 0 < size <= 1 << 20:
                    return 0  # a destructor; it is not called before memory was allocated
                called.append(place)
                memory.append(ctypes.create_string_buffer(size))
                return ctypes.addressof(memory[-1])

            return _ALLOCATE(allocate)

        allocator = Methods({UNKNOWN, _MALLOC}, [method(place) for place in range(3, 12)])
        made = _pointer()
        self._library.DxcCreateInstance2(allocator.address, _CLASS_UTILS, UNKNOWN, ctypes.byref(made))
        self._kept = (allocator, memory)  # the object that was made is in this memory; it is never released
        if not called or called[0] not in (3, 5):
            raise UnavailableError(f"{path}: the interfaces of this DXC have an unknown layout")
        return called[0]

    def _create(self, kind: bytes, interface: bytes, path: str) -> int:
        made = _pointer()
        if self._library.DxcCreateInstance(kind, interface, ctypes.byref(made)) != OK or not made.value:
            raise UnavailableError(
                f"{path}: this DXC lacks an interface that kompute_py needs; install DXC 1.6 or later"
            )
        return made.value

    def _call(self, this: int, method: int, *arguments: Any, result: Any = ctypes.c_int32) -> Any:
        """Calls an interface's own method; -1 is Release."""
        place = _RELEASE if method < 0 else self._first + method
        table = ctypes.cast(this, ctypes.POINTER(ctypes.POINTER(_pointer)))[0]
        kind = ctypes.CFUNCTYPE(result, _pointer, *(type(each) for each in arguments))
        return kind(table[place])(this, *arguments)

    def _bytes(self, result: int, method: int) -> bytes:
        """The contents of the blob that a method of a result returns."""
        blob = _pointer()
        self._call(result, method, _pointer(ctypes.addressof(blob)))
        if not blob.value:
            return b""
        size = self._call(blob.value, _SIZE, result=ctypes.c_size_t)
        content = ctypes.string_at(self._call(blob.value, _POINTER, result=_pointer), size) if size else b""
        self._call(blob.value, -1)
        return content

    def compile(self, source: Request) -> Result:
        """Compiles to SPIR-V without optimization.

        A source that HLSL 2021 refuses is compiled as HLSL 2018, unless an option names the version: older
        shaders choose vectors with ``a ? b : c``.
        """
        version = "2021"
        result = self._attempt(source, version)
        if not result.spirv and not any(each.startswith("-HV") for each in source.options):
            older = self._attempt(source, "2018")
            if older.spirv:
                version, result = "2018", older
        if not result.spirv:
            return result
        shown = source._replace(options=[*source.options, "-ast-dump"])
        return result._replace(tree=lambda: self._attempt(shown, version).spirv.decode(errors="replace"))

    def _attempt(self, source: Request, version: str) -> Result:
        files = Files(source)
        text = source.source.removeprefix(b"\xef\xbb\xbf")
        given = _Text(text, len(text), _UTF8)
        options = [files.main, *_options(source, version)]
        listed = (ctypes.c_wchar_p * len(options))(*options)
        handler = self._include_handler(files)
        made = _pointer()
        status = self._call(
            self._compiler,
            _COMPILE,
            _pointer(ctypes.addressof(given)),
            _pointer(ctypes.addressof(listed)),
            _u32(len(options)),
            _pointer(handler.address),
            ctypes.c_char_p(_RESULT),
            _pointer(ctypes.addressof(made)),
        )
        if status != OK or not made.value:
            message = f"{self.name} does not compile it (error 0x{status & 0xFFFFFFFF:08x})"
            return Result(b"", error_in(source, message), files)
        outcome = ctypes.c_int32()
        self._call(made.value, _STATUS, _pointer(ctypes.addressof(outcome)))
        messages = _messages(self._bytes(made.value, _ERRORS), source, self.name)
        good = outcome.value == OK and not any(each[3] == "error" for each in messages)
        spirv = self._bytes(made.value, _CODE) if good else b""
        self._call(made.value, -1)
        return Result(spirv, files.placed(messages), files)

    def _include_handler(self, files: Files) -> Methods:
        def load(_: int, path: str, out: Any) -> int:
            out[0] = None
            content = files.read(path)
            if content is None:
                return _NOT_FOUND
            blob = _pointer()
            failed = self._call(
                self._utils,
                _CREATE_BLOB,
                ctypes.c_char_p(content),
                _u32(len(content)),
                _u32(_UTF8),
                _pointer(ctypes.addressof(blob)),
            )
            out[0] = blob.value
            return int(failed)

        unused = [_LOAD(lambda *_: _NOT_FOUND)] * (self._first - 3)
        return Methods({UNKNOWN, _INCLUDE_HANDLER}, [*unused, _LOAD(load)])


def _options(source: Request, version: str) -> list[str]:
    # From SPIR-V 1.4 on whole structs are copied by an instruction that drivers fail on.
    usual = "vulkan1.0" if source.target == "vulkan1.0" else "vulkan1.1"
    options = [
        "-spirv",
        *("-T", _SHADER_MODEL, "-E", source.entry, "-HV", version),
        "-O0",  # the package's optimizer follows; it keeps names and interfaces
        "-Vd",
        f"-fspv-target-env={_ENVIRONMENTS.get(source.spirv_version, usual)}",
    ]
    if not any(each.startswith("-fvk-use-") for each in source.options):
        options.append("-fvk-use-dx-layout")
    if source.debug_info:
        options.append("-Zi")
    if source.hlsl_16bit_types:
        options.append("-enable-16bit-types")
    for letter, base in source.register_bases.items():
        options += [f"-fvk-{letter}-shift", str(base), "all"]
    for folder in source.include_dirs:
        options += ["-I", folder]
    for name, value in source.defines:
        options += ["-D", f"{name}={value}"]
    return [*options, *source.options]


def _messages(log: bytes, source: Request, compiler: str) -> list[Message]:
    """DXC's messages, which are those of Clang: a line, then the source's line and a caret."""
    found: list[Message] = []
    understood = False
    for line in log.decode(errors="replace").replace("\0", "").splitlines():
        match = _LINE.fullmatch(line)
        if match:
            understood = True
            file, number, column, severity, message = match.groups()
            if message.endswith("[-Wconversion]") and "from larger type" not in message:
                continue  # an implicit conversion of HLSL; a double that becomes a float is worth a word
            if dropped := _DROPPED.fullmatch(message):  # it puts a constant in its place
                file, severity = source.name, "error"
                message = (
                    f"{compiler} would give wrong numbers: it drops {dropped[1]}, what ddx, ddy and fwidth "
                    "become, from compute shaders: write it in Slang or GLSL"
                )
            found.append(
                (file or "", int(number or 0), int(column or 0), severity, _FLAG.sub("", message), "")
            )
    if any("missing entry point definition" in each[4] for each in found):
        return no_entry(source)
    if not understood and log.strip(b"\0 \n"):
        text = " ".join(log.decode(errors="replace").replace("\0", "").split())
        found += error_in(source, text)
    return list(dict.fromkeys(found))
