"""Sends the messages of the validation layer and of the core to ``logging.getLogger("kompute_py")``.

The layer's callback runs in the middle of Vulkan calls, when it must not use Python or any lock of ours. The
core therefore keeps the messages in a ring. They are logged, and with `strict` raised, after the call that
caused them.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterable

from .. import _native
from .._base.errors import DeviceLostError, KomputeError, ValidationError

_LOGGER = "kompute_py"
_MOST_LAST = 20  # messages in the report of a lost device
# Values of logging's levels, because importing logging costs milliseconds and most programs never get a
# message.
_LEVELS = {"error": 40, "warning": 30, "info": 20}


class Diagnostics:
    """The messages of one Manager."""

    __slots__ = ("__weakref__", "_context", "_crash", "_last", "_strict", "_wait", "_write_crash", "more")

    def __init__(
        self,
        context: _native.Context,
        strict: bool,
        write_crash: Callable[[DeviceLostError, Iterable[str]], str] | None,
        wait: bool = False,
    ) -> None:
        """`wait`: each report waits for all that was submitted. `write_crash` gets the first error of a lost
        device and the last messages, and returns a sentence for the error.
        """
        self._context = context
        self._strict = strict
        self._wait = wait
        self._write_crash = write_crash
        self._crash = ""
        self._last: deque[str] = deque(maxlen=_MOST_LAST)
        self.more: Callable[[bool], None] | None = None
        """Further reports, before the messages: of debugging. It raises only if it may."""

    def watch(self) -> None:
        """Makes errors log the earlier messages before they are raised."""
        _watching.add(self)
        _native.before_raising(_report_all)

    def log_notes(self) -> None:
        """Logs the core's new notes: missing desired extensions, and fall-backs."""
        notes = self._context.take_notes()
        if not notes:
            return
        from logging import getLogger

        for note in notes:
            getLogger(_LOGGER).warning("%s", note)

    def report(self, can_raise: bool = True) -> None:
        """Logs all messages since the last call.

        In strict mode, raises ValidationError if they include errors.
        """
        if self._wait and can_raise and self._context.is_init():
            self._context.wait_submitted()
        if self.more is not None:
            self.more(can_raise)
        messages = self._context.drain_messages()
        if not messages:
            return
        from logging import getLogger

        logger = getLogger(_LOGGER)
        for severity, identity, text, _ in messages:
            # The attribute lets a handler distinguish the layer's messages from our notes.
            extra = {"validation_id": identity}
            logger.log(_LEVELS.get(severity, 20), "%s: %s", identity, text, extra=extra)
            self._last.append(f"{severity}: {identity}: {text}")
        # A message that may not be about this Manager's device is not raised: a script must not fail for
        # another device.
        errors = [message[:3] for message in messages if message[0] == "error" and message[3]]
        if errors and self._strict and can_raise:
            more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
            raise ValidationError(f"Vulkan validation: {errors[0][1]}: {errors[0][2]}{more}", errors)

    def explain(self, error: DeviceLostError) -> None:
        """Adds to the error where the report of the loss is, which the first one writes."""
        if self._write_crash is not None:
            self._crash, self._write_crash = self._write_crash(error, self._last), None
        if self._crash:
            error.args = (f"{error}. {self._crash}",)


# The diagnostics of the Managers with messages.
_watching: weakref.WeakSet[Diagnostics] = weakref.WeakSet()


def _report_all(error: KomputeError) -> None:
    for diagnostics in list(_watching):
        # Only for the device of the error: messages of other devices must still be raised if their Managers
        # are strict.
        if diagnostics._context.is_acting():
            diagnostics.report(can_raise=False)
        if isinstance(error, DeviceLostError) and diagnostics._context.is_lost():
            diagnostics.explain(error)
