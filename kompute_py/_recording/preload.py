"""Builds pipelines ahead of their first use, several at a time.

Some drivers compile when a pipeline is made (SwiftShader, most GPUs), others when it is first dispatched
(Mesa's lavapipe). So a pipeline that is built ahead is dispatched, too: with no groups, over memory of its
own.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from .. import _native
from .._base.errors import ArgumentTypeError, InvalidArgumentError, kind_of
from .._base.plain_arguments import as_list
from .._base.types import MemoryTypes
from .._shaders.layout import BUFFERS

if TYPE_CHECKING:
    import logging

    from .._device.device import Device
    from .._shaders.constants import Specialization
    from .._shaders.signature import Signature

_Item = TypeVar("_Item")
_Made = TypeVar("_Made")
_MOST_THREADS = 16
_MORE = "drivers may compile more in its first run"


class Ahead(NamedTuple):
    """What is to be built."""

    shader: _native.Shader
    special: Specialization
    signature: Signature


def preload(manager: Device, items: Any) -> None:
    """Builds the pipelines of kernels and algorithms. Raises the errors of `Manager.preload`."""
    given = as_list(items, "preload", "kernels and algorithms, as in mgr.preload([kernel, ...])")
    ahead = []
    for position, each in enumerate(given):
        describe = getattr(each, "_ahead", None)
        if describe is None or isinstance(each, type):
            raise ArgumentTypeError(
                "preload takes kernels and algorithms, as in mgr.preload([kernel, ...]); element "
                f"{position} is {kind_of(each)}. A function and a program preload themselves: f.preload(x)"
            )
        if each._manager is not manager:
            raise InvalidArgumentError(
                f"preload: element {position} ({each!r}) belongs to {each._manager!r}, not to {manager!r}"
            )
        ahead.append(describe())
    if ahead:
        for each, built in zip(given, _build(manager, ahead), strict=True):
            each._keep(built)
    if manager._watch is not None:
        manager._watch()


def _build(manager: Device, all_of_it: list[Ahead]) -> list[_native.Algorithm | None]:
    """Builds the pipelines in parallel, dispatches each with no groups, and waits.

    Returns algorithms that keep the pipelines. The pipeline of a shader with images or samplers is only
    built, and that of a shader with an array of bindings of run-time length depends on the length, so it is
    not: None for these.

    Raises the first error of `Context.algorithm`; the others are built all the same.
    """
    made = in_parallel(lambda each: _algorithm(manager, each), all_of_it)
    fences = [_native.submit_once(_native.op_warm_up(each)) for each in made if each is not None]
    for fence in fences:
        fence.wait(-1.0)
    return made


def _algorithm(manager: Device, ahead: Ahead) -> _native.Algorithm | None:
    shader, special, signature = ahead
    used = [p for p in signature.parameters if p.used]
    if any(p.descriptors == 0 for p in used):
        return None
    if any(p.kind not in BUFFERS for p in used):
        manager._native.check_pipeline(shader, special.data, special.entries)
        return None
    arguments: list[Any] = []
    for p in used:
        memory = manager._native.buffer(None, max(p.size, 256), MemoryTypes.storage, None)
        arguments += [(p.set, p.binding, element, memory, None) for element in range(p.descriptors)]
    return manager._native.algorithm(shader, arguments, (1, 1, 1), special.data, special.entries, b"")


def in_parallel(
    work: Callable[[_Item], _Made], items: Iterable[_Item], threads_at_most: int = 0
) -> list[_Made]:
    """The results of `work` for each item, on several threads: it releases the interpreter lock where it
    compiles or waits. 0 is as many threads as compilers make use of.

    Raises the error of the first item that fails; the others are made all the same.
    """
    waiting = list(enumerate(items))
    made: dict[int, _Made] = {}
    errors: list[tuple[int, BaseException]] = []

    def run() -> None:
        while True:
            try:
                number, item = waiting.pop(0)
            except IndexError:
                return
            try:
                made[number] = work(item)
            except BaseException as error:
                errors.append((number, error))

    count = len(waiting)
    most = min(count, threads_at_most or min(os.cpu_count() or 1, _MOST_THREADS))
    threads = [threading.Thread(target=run, daemon=True) for _ in range(most - 1)]
    try:
        with contextlib.suppress(RuntimeError):  # no more threads: then this one does the work
            for thread in threads:
                thread.start()
        run()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
    except BaseException:
        waiting.clear()  # Ctrl-C: what has begun ends by itself
        raise
    if errors:
        raise min(errors, key=lambda each: each[0])[1]
    return [made[number] for number in range(count)]


_log: logging.Logger | None = None
_quiet = threading.local()


def is_reported() -> bool:
    """Whether anything reads what this module logs. A program that has not imported logging does not."""
    global _log
    if _log is None:
        if "logging" not in sys.modules:
            return False
        _log = sys.modules["logging"].getLogger("kompute_py")
    return _log.isEnabledFor(20) and not getattr(_quiet, "calls", 0)  # INFO


@contextlib.contextmanager
def unreported() -> Iterator[None]:
    """Nothing that this thread builds within is reported: the caller reports all of it as one."""
    _quiet.calls = getattr(_quiet, "calls", 0) + 1
    try:
        yield
    finally:
        _quiet.calls -= 1


def report_built(name: str, seconds: float, first_run: float | None = None) -> None:
    """Logs that a call had to build a pipeline first, and how long its first run took, in which some drivers
    compile; None: it has not run yet.
    """
    if not is_reported():
        return
    more = _MORE if first_run is None else f"its first run took {1000 * first_run:.1f} ms"
    _report(f"{name}: its pipeline was built first, in {1000 * seconds:.1f} ms; {more}. To build it ahead")


def report_made(tensors: int, entry: str, seconds: float) -> None:
    """Logs that making an algorithm built its pipeline."""
    of = f"Algorithm of {tensors} tensors, entry point {entry!r}"
    _report(
        f"{of}: its pipeline was built, in {1000 * seconds:.1f} ms; {_MORE}. To have all of it built ahead"
    )


def _report(text: str) -> None:
    if is_reported() and _log is not None:
        _log.info("%s: preload()", text)
