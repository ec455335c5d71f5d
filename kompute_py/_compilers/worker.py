"""The process that compiles HLSL and Slang.

`process` starts it; a crash of a compiler ends only this process.

It runs as a script, without the package, because its import would load NumPy. One thread reads requests from
standard input and ends the process at its end, even during a compilation. Another thread, with a large stack,
compiles. Output of the compilers goes to standard error, which is a file, so that no pipe fills up.

A message is its length in 8 bytes, then a value as `marshal` writes it.
"""

from __future__ import annotations

import importlib.util
import marshal
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


_COMMENTS = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)


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


class Compilers:
    """The compilers, each loaded on first use."""

    def __init__(self, native: Any) -> None:
        self._native = native
        self._loaded: dict[tuple[str, str], Any] = {}

    def _compiler(self, kind: str, library: str) -> Any:
        from kompute_py._compilers.dxc import Dxc
        from kompute_py._compilers.slang import Slang

        if (kind, library) not in self._loaded:
            self._loaded[kind, library] = {"slang": Slang, "dxc": Dxc}[kind](library)
        return self._loaded[kind, library]

    def answer(self, kind: str, library: str, folder: str, optimize: str, fields: Any) -> dict[str, Any]:
        """The answer to a request: a compiler, its library, the current folder, the optimization and the
        fields of a `Source`. Errors are answers too.
        """
        from kompute_py._base.errors import KomputeError
        from kompute_py._compilers.sources import Source, Unusable

        try:
            os.chdir(folder)  # relative paths start at the parent's folder
        except OSError:
            pass
        try:
            return self._compiled(self._compiler(kind, library), kind, Source(*fields), optimize)
        except Unusable as error:
            return {"error": "unusable", "message": str(error)}
        except KomputeError as error:
            return {"error": type(error).__name__, "message": str(error)}
        except MemoryError:
            return {"error": "InternalError", "message": "the compiler ran out of memory"}
        except Exception as error:
            return {"error": "InternalError", "message": f"{type(error).__name__}: {error}"}

    def _compiled(self, compiler: Any, kind: str, source: Any, optimize: str) -> dict[str, Any]:
        from kompute_py._base.errors import ShaderCompileError
        from kompute_py._compilers.faults import of_module, of_numbers, of_text, of_tree
        from kompute_py._compilers.image_formats import with_formats
        from kompute_py._compilers.tidy import LETTERS, set_apart, shared_bindings, tidied

        made = compiler.compile(source)
        own = bool(source.register_bases) or any("-shift" in each for each in source.options)
        code = _without_comments(made.files.texts())
        shifted = made.spirv and "register" in code and not own and shared_bindings(made.spirv)
        if shifted:
            made = compiler.compile(source._replace(register_bases=LETTERS))
        found = {"probes": made.files.probes(), "name": compiler.name}
        if not made.spirv:
            if not any(each[3] == "error" for each in made.messages):
                made.messages.append((source.name, 0, 0, "error", "it failed without saying why", ""))
            return {"error": "compile", "diagnostics": made.messages, **found}
        spirv = tidied(made.spirv)
        if shifted:
            spirv = set_apart(spirv)
        shared = shared_bindings(spirv)
        fault = of_module(spirv)
        tree = made.tree()
        spirv, formless = with_formats(spirv, code, tree)
        if kind == "slang":
            sentences, placed = [*of_text(code), *([fault] if fault else [])], []
        else:
            sentences, placed = list(of_numbers(code)), list(of_tree(tree, fault, compiler.is_old))
        faults = [(("", 0, 0), each) for each in sentences] + placed
        refused: list[Any] = made.files.placed(
            [
                (
                    file or source.name,
                    line,
                    column,
                    "error",
                    f"{compiler.name} would give wrong numbers: {each}",
                    "",
                )
                for (file, line, column), each in dict.fromkeys(faults)
            ]
        )
        refused += [(source.name, 0, 0, "error", each, "") for each in formless]
        _begin("optimizer")
        try:
            spirv, declared = self._native.finish_spirv(
                spirv, os.fsencode(source.name), optimize, source.target
            )
        except ShaderCompileError as error:  # the compiler's module is not valid
            refused += map(tuple, error.diagnostics)
        if refused:
            return {"error": "compile", "diagnostics": refused, **found}
        warnings = [*made.messages, *((source.name, 0, 0, "warning", each, "") for each in shared)]
        included = made.files.included()
        return {"spirv": spirv, "declared": declared, "warnings": warnings, "included": included, **found}


def _without_comments(texts: list[bytes]) -> str:
    return b"\n".join(_COMMENTS.sub(b" ", text) for text in texts).decode(errors="replace")


def read(source: int) -> Any:
    """The next message. Raises EOFError if the other side has ended."""

    def exactly(length: int) -> bytes:
        parts = []
        while length:
            part = os.read(source, min(length, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            length -= len(part)
        return b"".join(parts)

    return marshal.loads(exactly(int.from_bytes(exactly(8), "little")))


def write(target: int, message: Any) -> None:
    """Writes a message."""
    packed = marshal.dumps(message)
    rest = memoryview(len(packed).to_bytes(8, "little") + packed)
    while rest:
        rest = rest[os.write(target, rest[: 1 << 20]) :]


def _serve(requests: queue.SimpleQueue[Any], target: int, native_path: str) -> None:
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
            write(target, compilers.answer(*request))
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
    requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
    try:
        threading.stack_size(_STACK)
    except (ValueError, RuntimeError):
        pass
    threading.Thread(target=_serve, args=(requests, target, sys.argv[1]), daemon=True).start()
    try:
        while True:
            requests.put(read(source))
    except EOFError:  # the parent has ended
        os._exit(0)


if __name__ == "__main__":
    main()
