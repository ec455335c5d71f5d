"""Looks for the traces of a test: messages of the validation layer, living objects, damaged memory."""

from __future__ import annotations

import contextlib
import gc
import logging
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from .._base.errors import InternalError, KomputeError, ValidationError
from .._manager.manager import Manager, alive

_MOST_LISTED = 8


class Messages(logging.Handler):
    """Keeps what the library logs at WARNING and above."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []
        self.of_validation: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Takes one message."""
        self.texts.append(record.getMessage())
        if hasattr(record, "validation_id"):
            self.of_validation.append(record.getMessage())


@contextlib.contextmanager
def watched() -> Iterator[Messages]:
    """Collects the messages that the library logs within the block."""
    handler = Messages()
    logger = logging.getLogger("kompute_py")
    logger.addHandler(handler)
    try:
        yield handler
    finally:
        logger.removeHandler(handler)


def report_of(manager: Manager, messages: Messages, passed: bool) -> str:
    """The faults that a test left, in lines; "" if there are none.

    Of a test that failed, pytest shows the messages, and the traceback keeps its objects.
    """
    lines = []
    try:
        manager.synchronize()  # shaders of work in flight may report faults
    except ValidationError as error:
        if not any(text in str(error) for text in messages.of_validation):
            lines.append(str(error))
    except KomputeError:
        pass  # destroyed, or lost
    try:
        manager.memory.check()
    except InternalError as error:
        lines.append(f"bytes outside a tensor were written: {error}")
    if passed:
        left = left_alive(manager)
        manager._diagnostics.report(can_raise=False)
        texts = list(dict.fromkeys(messages.of_validation))
        lines += [f"validation: {text}" for text in texts[:_MOST_LISTED]]
        if len(texts) > _MOST_LISTED:
            lines.append(f"validation: {len(texts) - _MOST_LISTED} more messages")
        lines += left
    return "\n".join(lines)


def left_alive(manager: Manager) -> list[str]:
    """A line for each kind of object that is still alive, and for objects with what keeps them."""
    if not _objects(manager):
        return []
    gc.collect()
    manager.memory.trim()  # what calls keep for later ones is not the test's
    counts = _objects(manager)
    if not counts:
        return []
    some = ", ".join(f"{count} of kind {kind!r}" for kind, count in counts.items())
    lines = [f"still alive after the test: {some}"]
    labels = manager.memory.labels()
    named = list(labels.items())[:_MOST_LISTED]
    lines += [f"  {each.objects} x {label}: {each.bytes:,} bytes" for label, each in named]
    found = [each for each in gc.get_objects() if _is_of(each, manager)]
    for each in found[:_MOST_LISTED]:
        keeper = _keeper(each, {id(found)})
        lines.append(f"  {each!r:.100}" + (f", kept by {keeper}" if keeper else ""))
    return lines


def _objects(manager: Manager) -> dict[str, int]:
    counts = alive(detail=True, manager=manager)
    return {kind: count for kind, count in counts.items() if count and kind != "context"}


def _is_of(thing: Any, manager: Manager) -> bool:
    kind = type(thing)
    if kind.__module__ != "kompute_py" or not hasattr(kind, "manager"):
        return False
    try:
        return thing.manager is manager
    except Exception:  # destroyed, or never made
        return False


def _keeper(thing: Any, ignored: set[int], depth: int = 4) -> str:
    """The name that keeps it: "test_blur.CACHE"; "" if none is found."""
    if depth == 0:
        return ""
    for each in gc.get_referrers(thing):
        if id(each) in ignored:
            continue
        ignored.add(id(each))
        if isinstance(each, FrameType):
            if not each.f_globals.get("__name__", "").startswith(("kompute_py", "_pytest", "pluggy")):
                return f"a local name of {each.f_code.co_name}()"
            continue
        if isinstance(each, dict):
            module = sys.modules.get(str(each.get("__name__")))
            if module is not None and vars(module) is each:
                return next(f"{module.__name__}.{name}" for name, value in each.items() if value is thing)
        found = _keeper(each, ignored, depth - 1)
        if found:
            return found
    return ""
