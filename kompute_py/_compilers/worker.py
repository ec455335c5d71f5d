"""The process that compiles HLSL and Slang.

`process` starts it; a crash of a compiler ends only this process.

It runs as a script, without the package, because its import would load NumPy. One thread reads requests from
standard input and ends the process at its end, even during a compilation. Another thread, with a large stack,
compiles. Output of the compilers goes to standard error, which is a file, so that no pipe fills up.

A message is a value as `marshal` writes it.
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
from collections.abc import Callable
from contextlib import suppress
from typing import Any

_STACK = 256 << 20
_MOST_MEMORY = 8 << 30  # bytes of address space; beyond it the compiler fails instead of the machine
_MOST_PRINTED = 16 << 20
_IDLE = 300.0  # seconds without work after which the process ends


_COMMENTS = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)


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

    def __init__(self, native: Any, begin: Callable[[str], object]) -> None:
        """`begin` tells the parent which step begins, so that it knows that of a crash."""
        self._native, self._begin = native, begin
        self._loaded: dict[str, Any] = {}

    def answer(self, folder: str, packed: Any) -> dict[str, Any]:
        """The answer to a request, and the current folder for it. Errors are answers too."""
        from kompute_py._compilers.dxc import Dxc
        from kompute_py._compilers.request import Request
        from kompute_py._compilers.slang import Slang

        with suppress(OSError):
            os.chdir(folder)  # relative paths start at the parent's folder
        try:
            request = Request.unpacked(packed)
            kind, library = request.compiler.kind, request.compiler.library
            if library not in self._loaded:
                self._loaded[library] = {"slang": Slang, "dxc": Dxc}[kind](library)
            return self._compiled(self._loaded[library], request)
        except Exception as error:
            return {"error": type(error).__name__, "message": str(error)}

    def _compiled(self, compiler: Any, source: Any) -> dict[str, Any]:
        from kompute_py._base.errors import ShaderCompileError
        from kompute_py._compilers.faults import of_dxc, of_slang
        from kompute_py._compilers.image_formats import set_formats
        from kompute_py._compilers.sources import error_in
        from kompute_py._compilers.spirv_words import Module
        from kompute_py._compilers.tidy import LETTERS, set_apart, shared_bindings, tidy

        made = compiler.compile(source)
        own = bool(source.register_bases) or any("-shift" in each for each in source.options)
        code = _COMMENTS.sub(b" ", b"\n".join(made.files.texts.values())).decode(errors="replace")
        shifted = made.spirv and "register" in code and not own and shared_bindings(Module(made.spirv))
        if shifted:
            made = compiler.compile(source._replace(register_bases=LETTERS))
        found = {"probes": list(made.files.probes.items()), "name": compiler.name}
        if not made.spirv:
            if not any(each[3] == "error" for each in made.messages):
                made.messages.extend(error_in(source, "it failed without saying why"))
            return {"error": "compile", "diagnostics": made.messages, **found}
        module = Module(made.spirv)
        tidy(module)
        if shifted:
            set_apart(module)
        shared = shared_bindings(module)
        tree = made.tree()
        if source.compiler.kind == "slang":
            found_wrong = of_slang(module, code)
        else:
            found_wrong = of_dxc(module, code, tree, compiler.is_old)
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
                for (file, line, column), each in dict.fromkeys(found_wrong)
            ]
        )
        for each in set_formats(module, code, tree):
            refused += error_in(source, each)
        self._begin("optimizer")
        try:
            spirv, declared = self._native.finish_spirv(
                module.result(), os.fsencode(source.name), source.optimize, source.target
            )
        except ShaderCompileError as error:  # the compiler's module is not valid
            refused += map(tuple, error.diagnostics)
        if refused:
            return {"error": "compile", "diagnostics": refused, **found}
        warnings = [*made.messages, *((source.name, 0, 0, "warning", each, "") for each in shared)]
        return {"spirv": spirv, "declared": declared, "warnings": warnings, **found}


def write(target: int, message: Any) -> None:
    """Writes a message."""
    rest = memoryview(marshal.dumps(message))
    while rest:
        rest = rest[os.write(target, rest[: 1 << 20]) :]


def _serve(requests: queue.SimpleQueue[Any], target: int, native_path: str) -> None:
    try:
        compilers = Compilers(_import_siblings(native_path), lambda step: write(target, step))
        while True:
            try:
                request = requests.get(timeout=_IDLE)
            except queue.Empty:
                break
            with suppress(OSError):  # standard error is not a file
                os.ftruncate(2, 0)
                os.lseek(2, 0, os.SEEK_SET)
            write(target, compilers.answer(*request))
    except BaseException as error:
        sys.stderr.write(f"{type(error).__name__}: {error}")
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


def main() -> None:
    """Serves requests until standard input ends. The argument is the path of the native module."""
    source, target = open(os.dup(0), "rb"), os.dup(1)  # noqa: SIM115
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    _limit()
    requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
    with suppress(ValueError, RuntimeError):
        threading.stack_size(_STACK)
    threading.Thread(target=_serve, args=(requests, target, sys.argv[1]), daemon=True).start()
    try:
        while True:
            requests.put(marshal.load(source))
    except EOFError:  # the parent has ended
        os._exit(0)


if __name__ == "__main__":
    main()
