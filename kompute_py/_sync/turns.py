"""What an await does before it hands its wait over to the Manager's waiting thread.

Handing over costs two switches of threads and a wake-up of the event loop. This is more than short work takes
on the device. An await therefore first looks at the device's counter itself. Two rules bound this:

- Looks delay a turn of the event loop by at most `LOOK` seconds in all, and only if no task or callback of
  the loop is ready to run. What becomes ready during a look waits for its end.
- The awaits of a loop are in a queue, in the order in which they began. Each turn ends the awaits whose work
  is done, without blocking. If none ends in `_POLLS` turns in a row, or a look ends without news, the thread
  gets the queue.

One turn starts, ends or hands over at most `A_TURN` awaits, because a thousand at once must not block other
tasks.
"""

from __future__ import annotations

import asyncio
import collections
import threading
import time
import weakref
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .. import _native

LOOK = 200e-6
A_TURN = 64
_POLLS = 16


class Await(Protocol):
    """An await of a fence."""

    def look(self, seconds: float) -> bool | None:
        """True if it is over; None if it is for work that waits for a signal."""

    def end(self) -> None:
        """Lets the awaiting task run again."""

    def hand_over(self) -> None:
        """Gives it to a thread that waits."""


class Turns:
    """An event loop's awaits that have begun and are not handed over. Used by the loop's own thread only."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = weakref.ref(loop)
        # The callbacks that are ready to run: of asyncio's own loops. Other loops do not show theirs, so that
        # nobody looks there.
        self._ready: collections.deque[object] | None = getattr(loop, "_ready", None)
        self._queue: collections.deque[Await] = collections.deque()
        self._polls = _POLLS
        self._left = LOOK  # of this turn's time for looks
        self._marks = 0  # callbacks of ours that are ready: _begin

    def look(self, fence: _native.Fence, loop: asyncio.AbstractEventLoop) -> bool:
        """True if the work is over, possibly after a look. The caller is a task that would wait next."""
        if self._queue or not self._is_idle() or self._left <= 0:
            return False
        if not self._marks:
            self._marks = 1
            loop.call_soon(self._begin)
        start = time.perf_counter()
        over = fence.look(self._left)
        self._left -= time.perf_counter() - start
        return over is True

    def add(self, wake: Await, loop: asyncio.AbstractEventLoop) -> None:
        """Queues an await of work that is not over."""
        if not self._queue:
            loop.call_soon(self._turn, loop)
        self._queue.append(wake)

    def _is_idle(self) -> bool:
        return self._ready is not None and len(self._ready) <= self._marks

    def _begin(self) -> None:
        self._marks = 0
        self._left = LOOK

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        queue = self._queue
        ended = False
        try:
            for _ in range(min(len(queue), A_TURN)):
                over = queue[0].look(0.0)
                if over:
                    queue.popleft().end()
                    ended = True
                elif over is None or not self._polls:
                    queue.popleft().hand_over()
                else:
                    break
            if ended or not queue:
                self._polls = _POLLS
            elif self._polls:
                self._polls -= 1
                if self._is_idle():
                    if queue[0].look(LOOK):
                        queue.popleft().end()
                    else:
                        self._polls = 0
        finally:
            if queue:
                loop.call_soon(self._turn, loop)


class _Here(threading.local):
    turns: Turns | None = None


_here = _Here()


def turns_of(loop: asyncio.AbstractEventLoop) -> Turns:
    """The turns of the loop that runs in this thread."""
    turns = _here.turns
    if turns is None or turns.loop() is not loop:
        turns = _here.turns = Turns(loop)
    return turns
