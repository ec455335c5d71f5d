"""Routes what the validation layer and the core have to say to ``logging.getLogger("kompute_py")``.

The layer's callback runs in the middle of Vulkan calls, where neither Python nor a lock of ours may be touched, so the
core keeps the messages in a ring. They are logged, and with `strict` raised, once the call that caused them is over.
"""

from __future__ import annotations

import weakref

from .. import _native
from .._base.errors import ValidationError

_LOGGER = "kompute_py"
# Values of logging's levels: importing logging costs milliseconds, and most programs never have a message.
_LEVELS = {"error": 40, "warning": 30, "info": 20}


class Diagnostics:
    """One Manager's messages."""

    __slots__ = ("__weakref__", "_context", "_strict")

    def __init__(self, context: _native.Context, strict: bool) -> None:
        self._context = context
        self._strict = strict

    def watch(self) -> None:
        """From now on, what was said up to an error is logged before the error is raised."""
        _watching.add(self)
        _native.before_raising(_report_all)

    def log_notes(self) -> None:
        """Logs the core's notes that are new: missing desired extensions, fall-backs taken."""
        notes = self._context.take_notes()
        if not notes:
            return
        from logging import getLogger

        for note in notes:
            getLogger(_LOGGER).warning("%s", note)

    def report(self, can_raise: bool = True) -> None:
        """Logs all messages since the last call. Raises ValidationError in strict mode where errors are among them."""
        messages = self._context.drain_messages()
        if not messages:
            return
        from logging import getLogger

        logger = getLogger(_LOGGER)
        for severity, identity, text, _ in messages:
            # The attribute lets a handler tell the layer's messages from notes of ours.
            extra = {"validation_id": identity}
            logger.log(_LEVELS.get(severity, 20), "%s: %s", identity, text, extra=extra)
        # What is not known to be about this Manager's device is not raised: a script must not fail for another one's.
        errors = [message[:3] for message in messages if message[0] == "error" and message[3]]
        if errors and self._strict and can_raise:
            more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
            raise ValidationError(f"Vulkan validation: {errors[0][1]}: {errors[0][2]}{more}", errors)


# Of the Managers that have messages.
_watching: weakref.WeakSet[Diagnostics] = weakref.WeakSet()


def _report_all() -> None:
    for diagnostics in list(_watching):
        # Of the device that the error is from: others' messages are still to be raised where those are strict.
        if diagnostics._context.is_acting():
            diagnostics.report(can_raise=False)
