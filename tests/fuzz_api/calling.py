"""The child process: makes the calls, and says each before it begins."""

from __future__ import annotations

import faulthandler
import inspect
import json
import os
import random
import re
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import kompute_py as kp

from .objects import SOURCE, Objects, public_callables
from .values import NEVER_TAKEN, ODD, OddError

_ADDRESS_SPACE = 16 << 30  # bytes; a call that asks for more gets none
_PATIENCE = 5.0  # seconds, after which a signal ends the call
# Names that say what fits, in annotations and as parameters.
_FITS: list[tuple[str, Callable[[Objects, dict[str, Any]], list[Any]]]] = [
    ("Seq[", lambda o, held: [[held["Tensor"]], [held["Tensor"], o.mgr.zeros(8)], [held["Image"]]]),
    ("Tensor", lambda _, held: [held["Tensor"], held["tensor of ints"]]),
    ("Memory", lambda _, held: [held["Tensor"], held["Image"]]),
    ("Image", lambda _, held: [held["Image"]]),
    ("Sampler", lambda _, held: [held["Sampler"]]),
    ("Semaphore", lambda _, held: [held["Semaphore"]]),
    ("Algorithm", lambda _, held: [held["Algorithm"]]),
    ("Kernel", lambda _, held: [held["Kernel"]]),
    ("Manager", lambda o, _: [o.mgr]),
    ("Sequence", lambda _, held: [held["Sequence"]]),
    ("OpBase", lambda _, held: [held["OpFill"]]),
    ("ArrayLike", lambda *_: [np.ones(8, np.float32), [1.0] * 8, np.zeros((4, 4, 4), np.float32), 1.0]),
    ("Array", lambda _, held: [np.ones(8, np.float32), held["Tensor"]]),
    ("DTypeLike", lambda *_: [np.float32, "i4", np.dtype("f2")]),
    ("Path", lambda *_: ["saved", "shader.comp"]),
    ("bytes", lambda o, _: [o.spirv]),
    ("dtype", lambda *_: [np.float32, "f4"]),
    ("bool", lambda *_: [True, False]),
    ("int", lambda *_: [0, 1, 2, 4, 8]),
    ("float", lambda *_: [0.5, 1.0]),
    ("str", lambda *_: ["main", "auto", "glsl", "f"]),
    ("None", lambda *_: [None]),
]
_BY_NAME: dict[str, Callable[[Objects, dict[str, Any]], list[Any]]] = {
    "spirv": lambda o, _: [o.spirv], "shader": lambda o, _: [o.spirv], "source": lambda o, _: [o.spirv],
    "tensors": lambda _, held: [[held["Tensor"]]], "memories": lambda _, held: [[held["Tensor"]]],
    "workgroup": lambda *_: [(1, 1, 1), 1], "shape": lambda *_: [(2, 3), 4],
    "push_consts": lambda *_: [[1.0, 1], []], "spec_consts": lambda *_: [[2], []],
    "op": lambda _, held: [held["OpFill"], kp.OpSyncDevice], "inputs": lambda _, held: [held["Tensor"]],
    "outputs": lambda _, held: [held["Tensor"]], "items": lambda *_: [[np.ones(8, np.float32)]],
}  # fmt: skip
_SIGNATURE = re.compile(r"^[\w.]+\(\) (got an unexpected keyword|missing \d|got multiple values|takes )")
# What keeps, compares, describes or ignores its argument, and reads no elements of it. An Algorithm without a
# shader ignores the rest.
_KEEP = {
    "Algorithm", "CommandRecorder", "DeviceMemory", "Fence", "OpLibrary", "Manager.__exit__",
    "Mapping.__exit__", "MemoryHandle.__exit__", "SemaphoreHandle.__exit__", "Profile.__exit__",
    "Mapping.__array__",
    "CustomOp.eager_execute", "FunctionSelection.attribute",
    "config_report", "Manager.algorithm", "FunctionBuilder.constant", "Function.meta",
    "Function.sources",
}  # fmt: skip


def _keeps(call: Any, name: str) -> bool:
    """Whether a callable may succeed with any object."""
    record = isinstance(call, type) and issubclass(call, tuple)
    return record or name in _KEEP or name.endswith(("__eq__", "__ne__", "__array__"))


# Parameters for which any object may do: a tensor's dtype or truth counts; edges of bins need no range.
_FLAGS = {
    "dtype", "range", "read", "write", "discard", "staging", "watch", "timestamps", "unnormalized", "layers",
}  # fmt: skip


def _reads(call: Any, parameter: str) -> bool:
    """Whether a parameter takes elements, not a dtype or a flag."""
    found = {each.name: str(each.annotation) for each in parameters_of(call)}.get(parameter, "")
    return parameter not in _FLAGS and "bool" not in found


_KEYWORDS = ["f", "n", "scale", "grid", "size", "name", "optimize", "queue", "data", "nonsense"]


def parameters_of(call: Any) -> list[inspect.Parameter]:
    """The parameters of a callable; any number of any kind for what does not say."""
    try:
        found = list(inspect.signature(call).parameters.values())
    except (TypeError, ValueError):
        return [inspect.Parameter("any", inspect.Parameter.VAR_POSITIONAL)]
    return [p for p in found if not p.name.startswith("_")]


def fitting(
    parameter: inspect.Parameter, objects: Objects, held: dict[str, Any], chance: random.Random
) -> Any:
    """An argument that may well be meant."""
    if parameter.name in _BY_NAME:
        return chance.choice(_BY_NAME[parameter.name](objects, held))
    text = "" if parameter.annotation is parameter.empty else str(parameter.annotation)
    found = [value for word, make in _FITS if word in text for value in make(objects, held)]
    return chance.choice(found or [held["Tensor"], held["Image"], 1, 4, "auto", [1.0, 2.0], None])


def arguments(
    call: Any, odd: dict[str, str], objects: Objects, chance: random.Random
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of one call: `odd` says by the names of parameters which odd values they get."""
    positional: list[Any] = []
    named: dict[str, Any] = {}
    held = objects.fresh()
    by_name = False
    for parameter in parameters_of(call):
        required = parameter.default is parameter.empty
        if parameter.kind is parameter.VAR_KEYWORD:
            if parameter.name in odd:
                named[chance.choice(_KEYWORDS)] = ODD[odd[parameter.name]]()
            continue
        if parameter.name in odd:
            value = ODD[odd[parameter.name]]()
        elif (required and parameter.kind is not parameter.VAR_POSITIONAL) or chance.random() < 0.3:
            value = fitting(parameter, objects, held, chance)
        else:
            by_name = by_name or parameter.kind is parameter.POSITIONAL_OR_KEYWORD
            continue
        if parameter.kind is parameter.KEYWORD_ONLY or (
            by_name and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        ):
            named[parameter.name] = value
        elif not by_name or parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(value)
    return positional, named


class Slow(BaseException):
    """A call took too long, and a signal ended it."""


def _ring(*_: Any) -> None:
    raise Slow


def is_right(error: BaseException, name: str) -> bool:
    """Whether a refusal is as it should be."""
    if isinstance(error, (kp.KomputeError, OddError, Slow)):
        return True
    # Python's own refusal of the call: raised before anything of the package ran, or by the protocol of the
    # method.
    text = _text(error)
    if isinstance(error, TypeError) and "incompatible function arguments" not in text:
        if _SIGNATURE.search(text):  # of a keyword that is passed on, as mgr.sampler's
            return True
        frames = traceback.extract_tb(error.__traceback__)
        return all(__file__ == frame.filename for frame in frames)
    # Errors of the objects themselves: what DLPack says of arrays of objects, and what a memoryview says.
    if isinstance(error, BufferError) or "released memoryview" in text:
        return True
    if isinstance(error, KeyError) and name.endswith("__getitem__"):  # a mapping's protocol
        return True
    # NumPy's protocol has this one for copy=False.
    return isinstance(error, ValueError) and name.endswith("__array__") and "copy" in text


class Child:
    """Makes calls of one callable after another."""

    def __init__(self) -> None:
        self.objects = Objects()
        self.callables = {name: (kind, get) for name, kind, get in public_callables(self.objects)}
        self.faults: dict[str, str] = {}

    def attempt(self, name: str, odd: dict[str, str], seed: str) -> str:
        """Makes one call; "" or the fault."""
        kind, get = self.callables[name]
        chance = random.Random(seed)
        try:
            call = get(self.objects)
        except kp.KomputeError:
            return ""
        if kind == "read":
            positional, named = [], {}
        elif kind == "set":
            positional, named = [ODD[value]() for value in odd.values()] or [0], {}
        else:
            positional, named = arguments(call, odd, self.objects, chance)
        signal.setitimer(signal.ITIMER_REAL, _PATIENCE)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made = call(*positional, **named)
                if made is not NotImplemented and not _keeps(call, name):
                    taken = [
                        value for each, value in odd.items() if value in NEVER_TAKEN and _reads(call, each)
                    ]
                    if taken:
                        return f"takes what it must refuse: {', '.join(taken)}"
                if inspect.iscoroutine(made):
                    made.close()
                signal.setitimer(signal.ITIMER_REAL, 0)
                if isinstance(made, kp.Manager) and made is not self.objects.mgr:
                    made.destroy()
        except BaseException as error:
            signal.setitimer(signal.ITIMER_REAL, 0)
            if isinstance(error, Slow):
                self.objects.renew()
            if not is_right(error, name):
                where = traceback.extract_tb(error.__traceback__)[-1]
                place = f"{os.path.basename(where.filename)}:{where.lineno}"
                return f"{type(error).__name__} at {place}: {_text(error)}"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        return ""


def _text(error: BaseException) -> str:
    try:
        return str(error)[:200].replace("\n", " ")
    except Exception:
        return "?"


def main() -> None:
    """Reads calls from standard input, a line each; says "+" before each, and "-" and the fault after it."""
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    signal.signal(signal.SIGALRM, _ring)
    with open("shader.comp", "w") as file:
        file.write(SOURCE)
    limit = sys.getrecursionlimit()
    child = Child()
    out = os.dup(1)
    os.dup2(2, 1)  # whatever a call prints is no answer

    def say(what: Any) -> None:
        os.write(out, (json.dumps(what) + "\n").encode())

    say([[name, kind, [p.name for p in parameters_of(get(child.objects))] if kind == "call"
    else ["value"] * (kind == "set")]
         for name, (kind, get) in child.callables.items()])  # fmt: skip
    for line in sys.stdin:
        name, odd, seed = json.loads(line)
        say(child.attempt(name, odd, seed))
        sys.setrecursionlimit(limit)
    child.objects.mgr.destroy()


if __name__ == "__main__":
    main()
