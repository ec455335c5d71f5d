"""The process that compiles HLSL and Slang.

`process` starts it; a crash of a compiler ends only this process.

It runs as a script, without the package, because its import would load NumPy. One thread reads requests from
standard input and ends the process at its end, even during a compilation. Another thread, with a large stack,
compiles. Output of the compilers goes to standard error, which is a file, so that no pipe fills up.

A message is its length in 8 bytes, then JSON, in which each byte of binary data is the character with the
same number. An empty message precedes each answer when the compiler is loaded: the time limit counts from
there.
"""

from __future__ import annotations

import importlib.util
import json
import os
import queue
import re
import signal
import sys
import threading
import types
from typing import Any

_STACK = 256 << 20
_MOST_MEMORY = 8 << 30  # bytes of address space; beyond it the compiler fails instead of the machine
_MOST_PRINTED = 16 << 20
_IDLE = 300.0  # seconds without work after which the process ends


# Slang's warning about shift amounts, which this process masks.
_MASKED = re.compile(r"shift amount exceeds the number of bits")
_SAME = re.compile(r"'(.*)' and '\1' are both binding")


def _begin(step: str) -> None:
    """Reports the start of a step on standard error, so that the parent knows the step of a crash."""
    try:
        os.write(2, f"\0{step}\0".encode())
    except OSError:
        pass


def _import_siblings(native: str) -> Any:
    """Imports the native module. Makes the package's other files importable without running its __init__."""
    package = types.ModuleType("kompute_py")
    package.__path__ = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
    sys.modules["kompute_py"] = package
    spec = importlib.util.spec_from_file_location("kompute_py._native", native)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {native}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["kompute_py._native"] = module
    spec.loader.exec_module(module)
    package._native = module  # type: ignore[attr-defined]
    return module


def _limit() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    try:
        import resource

        for which, most in (
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_FSIZE, _MOST_PRINTED),
            (resource.RLIMIT_AS, _MOST_MEMORY),
        ):
            hard = resource.getrlimit(which)[1]
            soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(which, (soft, hard))
    except (ImportError, OSError, ValueError):
        pass  # Windows, or limits that are lower already


def _text(content: bytes) -> str:
    return content.decode("latin-1")


def _bytes(text: str) -> bytes:
    return text.encode("latin-1")


class Compilers:
    """The two compilers, each loaded on first use."""

    def __init__(self, native: Any) -> None:
        self._native = native
        self._slang: Any = None
        self._slang_path = ""

    def load(self, asked: dict[str, Any]) -> None:
        """Loads the compiler of the request, which takes longer than most compilations.

        `answer` reports errors.
        """
        from kompute_py._compilers import hlsl_faults  # noqa: F401
        from kompute_py._compilers.slang_compiler import Slang, Unusable

        if asked["compiler"] != "slang" or self._slang_path == asked["library"]:
            return
        try:
            self._slang, self._slang_path = Slang(asked["library"]), asked["library"]
        except Unusable:
            pass

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request; errors are answers too."""
        from kompute_py._base.errors import KomputeError, ShaderCompileError
        from kompute_py._compilers import hlsl_faults
        from kompute_py._compilers.hlsl_faults import Refused
        from kompute_py._compilers.slang_compiler import Unusable

        try:
            os.chdir(asked["folder"])  # relative paths start at the parent's folder
        except OSError:
            pass
        try:
            return self._slang_of(asked) if asked["compiler"] == "slang" else self._glslang_of(asked)
        except ShaderCompileError as error:
            fault = next(
                filter(None, (hlsl_faults.explained(each.message) for each in error.diagnostics)), None
            )
            if fault is not None:
                return {"error": "refused", "message": fault}
            return {
                "error": "compile",
                "diagnostics": [list(each) for each in error.diagnostics],
                "sought": [[path, _text(mark)] for path, mark in error._sought],
            }
        except Refused as error:
            return {"error": "refused", "message": str(error)}
        except Unusable as error:
            return {"error": "unusable", "message": str(error)}
        except KomputeError as error:
            return {"error": type(error).__name__, "message": str(error)}
        except MemoryError:
            return {"error": "InternalError", "message": "the compiler ran out of memory"}
        except Exception as error:
            return {"error": "InternalError", "message": f"{type(error).__name__}: {error}"}

    def _glslang_of(self, asked: dict[str, Any]) -> dict[str, Any]:
        from kompute_py._compilers import hlsl_faults
        from kompute_py._compilers.spirv_shifts import masked

        fields = asked["request"]
        source, name = _bytes(fields["source"]), _bytes(fields["name"])
        includes = {each: _bytes(text) for each, text in fields["includes"].items()}
        texts = [source, *includes.values()]
        own = [(_bytes(key), _bytes(value)) for key, value in fields["defines"]]
        hlsl_faults.check_before(texts)
        defines = [*own, *(each for each in hlsl_faults.macros(texts) if each[0] not in dict(own))]
        spirv, _, warnings, included, probes = self._native.compile(
            source,
            name,
            fields["language"],
            _bytes(fields["entry"]),
            defines,
            [_bytes(folder) for folder in fields["include_dirs"]],
            includes,
            "none",
            fields["debug_info"],
            _bytes(fields["target"]),
            _bytes(fields["spirv_version"]),
            _bytes(fields["glsl_version"]),
            fields["auto_bind"],
            fields["hlsl_offsets"],
            fields["hlsl_16bit_types"],
            fields["register_bases"],
        )
        texts += [content for _, content in probes if content is not None]
        spirv = masked(hlsl_faults.mended(spirv, texts, own))
        _begin("optimizer")
        spirv, declared, _ = self._native.finish_spirv(
            spirv, name, fields["optimize"], fields["target"], False
        )
        return self._done(spirv, declared, warnings, included, probes, "glslang")

    def _slang_of(self, asked: dict[str, Any]) -> dict[str, Any]:
        from kompute_py._compilers import hlsl_faults
        from kompute_py._compilers.hlsl_values import shift_misread
        from kompute_py._compilers.slang_bools import with_uints
        from kompute_py._compilers.slang_compiler import Slang, Source
        from kompute_py._compilers.slang_images import with_formats
        from kompute_py._compilers.slang_spirv import tidied
        from kompute_py._compilers.spirv_shifts import masked

        if self._slang_path != asked["library"]:
            self._slang, self._slang_path = Slang(asked["library"]), asked["library"]
        fields = asked["request"]
        name = _bytes(fields["name"])
        source = Source(
            _bytes(fields["source"]),
            os.fsdecode(name),
            fields["language"],
            fields["entry"],
            [(_bytes(key).decode(), _bytes(value).decode()) for key, value in fields["defines"]],
            [os.fsdecode(_bytes(folder)) for folder in fields["include_dirs"]],
            {each: _bytes(text) for each, text in fields["includes"].items()},
            fields["debug_info"],
            fields["target"],
            fields["spirv_version"],
            fields["hlsl_16bit_types"],
            fields["register_bases"],
        )
        made = self._slang.compile(source)
        counters = hlsl_faults.hidden_counter(hlsl_faults.without_comments(made.texts))
        if counters is not None:
            return self._failed([(source.name, 0, 0, "error", counters, "")], made.probes)
        if not made.spirv:
            if not any(each[3] == "error" for each in made.messages):
                made.messages.append((source.name, 0, 0, "error", "it failed without saying why", ""))
            return self._failed(made.messages, made.probes)
        code = hlsl_faults.without_comments(made.texts).decode(errors="replace")
        found = shift_misread(code, source.defines, False)
        if found is not None:
            message = (
                f"{found}: of constants, a shift by as many bits as there are, or more, "
                "is folded to 0; write & 31"
            )
            return self._failed([(source.name, 0, 0, "error", message, "")], made.probes)
        messages = [each for each in made.messages if not _MASKED.search(each[4])]
        spirv = masked(with_formats(tidied(with_uints(made.spirv, made.bools), source.language), code))
        _begin("optimizer")
        spirv, declared, shared = self._native.finish_spirv(
            spirv, name, fields["optimize"], fields["target"], True
        )
        # A byte-address buffer that is read as several types is several variables with one binding.
        shared = [each for each in shared if not _SAME.match(each[4])]
        return self._done(spirv, declared, [*messages, *shared], made.included, made.probes, self._slang.name)

    def _failed(self, messages: list[Any], probes: list[tuple[str, bytes | None]]) -> dict[str, Any]:
        return {
            "error": "compile",
            "diagnostics": [list(each) for each in messages],
            "probes": self._probes(probes),
            "name": self._slang.name,
        }

    def _done(
        self,
        spirv: bytes,
        declared: bytes,
        warnings: Any,
        included: list[str],
        probes: list[tuple[str, bytes | None]],
        name: str,
    ) -> dict[str, Any]:
        return {
            "spirv": _text(spirv),
            "declared": _text(declared),
            "warnings": [list(each) for each in warnings],
            "included": included,
            "probes": self._probes(probes),
            "name": name,
        }

    @staticmethod
    def _probes(probes: list[tuple[str, bytes | None]]) -> list[list[str | None]]:
        return [[path, None if content is None else _text(content)] for path, content in probes]


def _read(source: int, length: int) -> bytes:
    """Reads `length` bytes. Ends the process if the parent has ended."""
    parts = []
    while length:
        part = os.read(source, min(length, 1 << 20))
        if not part:
            os._exit(0)
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _write(target: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(target, rest) :]


def _serve(requests: queue.SimpleQueue[bytes], target: int, native_path: str) -> None:
    try:
        compilers = Compilers(_import_siblings(native_path))
        while True:
            try:
                request = requests.get(timeout=_IDLE)
            except queue.Empty:
                break
            try:
                os.ftruncate(2, 0)
                os.lseek(2, 0, os.SEEK_SET)
            except OSError:
                pass  # standard error is not a file
            asked = json.loads(request)
            compilers.load(asked)
            _write(target, bytes(8))  # an empty message: the compilation starts
            answer = json.dumps(compilers.answer(asked)).encode()
            _write(target, len(answer).to_bytes(8, "little") + answer)
    except BaseException as error:
        sys.stderr.write(f"{type(error).__name__}: {error}")
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


def main() -> None:
    """Serves requests until standard input ends. The argument is the path of the native module."""
    source, target = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    _limit()
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    try:
        threading.stack_size(_STACK)
    except (ValueError, RuntimeError):
        pass
    threading.Thread(target=_serve, args=(requests, target, sys.argv[1]), daemon=True).start()
    while True:
        length = int.from_bytes(_read(source, 8), "little")
        requests.put(_read(source, length))


if __name__ == "__main__":
    main()
