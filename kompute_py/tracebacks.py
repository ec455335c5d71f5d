"""Tracebacks as notebooks show them: the user's frames, without those inside this package."""

from __future__ import annotations

import os
import sys
import traceback
from types import TracebackType
from typing import Any

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def without_package(trace: TracebackType | None) -> TracebackType | None:
    """`trace` without the frames of this package; as it is if it has no other frames."""
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


def render(error: BaseException) -> list[str]:
    """The lines that IPython shows for `error`: the package's frames are left out of it and of what caused it.

    All frames are shown if ``get_ipython().InteractiveTB.skip_hidden`` is False. The error keeps its whole traceback, so
    ``%debug`` sees every frame.
    """
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    chain: list[tuple[BaseException, TracebackType | None]] = []
    each: BaseException | None = error
    while each is not None and all(each is not known for known, _ in chain):
        chain.append((each, each.__traceback__))
        each = each.__cause__ or each.__context__
    show = None if shell is None else shell.InteractiveTB
    hide = getattr(show, "skip_hidden", True)
    try:
        if hide:
            for each, trace in chain:
                each.__traceback__ = without_package(trace)
        if show is None:
            return traceback.format_exception(type(error), error, error.__traceback__)
        lines: list[str] = show.structured_traceback(type(error), error, error.__traceback__)
        return lines
    finally:
        for each, trace in chain:
            each.__traceback__ = trace
