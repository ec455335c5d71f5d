"""Tracebacks for notebooks: the user's frames, without those inside this package."""

from __future__ import annotations

import os
import sys
import traceback
from types import TracebackType
from typing import Any

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def without_package(trace: TracebackType | None) -> TracebackType | None:
    """`trace` without the frames of this package; unchanged if it has no other frames."""
    kept = []
    each = trace
    while each is not None:
        if not each.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            kept.append(each)
        each = each.tb_next
    made: TracebackType | None = None
    for each in reversed(kept):
        made = TracebackType(made, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return trace if made is None else made


def _is_inside(error: BaseException) -> bool:
    """Whether the error passed only through code of this package."""
    each = error.__traceback__
    while each is not None:
        if not each.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            return False
        each = each.tb_next
    return True


def _before(error: BaseException) -> BaseException | None:
    """The error that tracebacks show before `error`."""
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


class _Shown:
    """Removes the package's frames and internal errors from an error's chain, until `restore`."""

    def __init__(self, error: BaseException) -> None:
        self._kept: list[tuple[BaseException, TracebackType | None, Any, Any, bool]] = []
        each: BaseException | None = error
        while each is not None and all(each is not known for known, *_ in self._kept):
            self._kept.append(
                (each, each.__traceback__, each.__cause__, each.__context__, each.__suppress_context__)
            )
            each = _before(each)
        shown = [known for known, *_ in self._kept if known is error or not _is_inside(known)]
        for one, other in zip(shown, [*shown[1:], None], strict=True):
            if _before(one) is not other:
                one.__cause__, one.__context__, one.__suppress_context__ = None, other, False
            one.__traceback__ = without_package(one.__traceback__)

    def restore(self) -> None:
        """Restores the chain and its tracebacks."""
        for each, trace, cause, context, suppressed in self._kept:
            each.__traceback__ = trace
            each.__cause__, each.__context__, each.__suppress_context__ = cause, context, suppressed


def render(error: BaseException) -> list[str]:
    """The lines that IPython shows for `error`, without the package's frames in it and in earlier errors.

    All frames are shown if ``get_ipython().InteractiveTB.skip_hidden`` is False. The error keeps its whole
    traceback, so ``%debug`` sees every frame.
    """
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    show = None if shell is None else shell.InteractiveTB
    shown = _Shown(error) if getattr(show, "skip_hidden", True) else None
    try:
        if show is None:
            return traceback.format_exception(type(error), error, error.__traceback__)
        lines: list[str] = show.structured_traceback(type(error), error, error.__traceback__)
        return lines
    finally:
        if shown is not None:
            shown.restore()
