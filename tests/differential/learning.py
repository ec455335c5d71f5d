"""Every way to learn that submitted work is done.

Each is a function of the program and the work; it returns what it learned.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import kompute_py as kp

if TYPE_CHECKING:
    from .memories import Work
    from .program import Program

Way = Callable[["Program", "Work"], "list[Work]"]
LIMIT = 60.0  # seconds; a wait that lasts longer is a fault


def _poll(done: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + LIMIT
    while not done():
        if time.monotonic() > end:
            raise AssertionError(f"{what} is not done after {LIMIT} s")


def _sequence_await(program: Program, work: Work) -> list[Work]:
    program.sequence_of(work).eval_await(timeout=LIMIT)
    return [work]


def _sequence_poll(program: Program, work: Work) -> list[Work]:
    _poll(program.sequence_of(work).is_complete, "a sequence")
    return [work]


def _sequence_fence(program: Program, work: Work) -> list[Work]:
    program.sequence_of(work).fence.wait(LIMIT)
    return [work]


def _sequence_in_loop(program: Program, work: Work) -> list[Work]:
    sequence = program.sequence_of(work)

    async def main() -> None:
        await sequence

    program.in_loop(main())
    return [work]


def _sequence_destroy(program: Program, work: Work) -> list[Work]:
    program.sequence_of(work).destroy()
    program.forget_sequence(work)
    return [work]


def _fence(work: Work) -> kp.Fence:
    assert work.fence is not None
    return work.fence


def _fence_wait(program: Program, work: Work) -> list[Work]:
    _fence(work).wait(LIMIT)
    return [work]


def _fence_poll(program: Program, work: Work) -> list[Work]:
    _poll(_fence(work).done, "a fence")
    return [work]


def _fence_future(program: Program, work: Work) -> list[Work]:
    _fence(work).future().result(LIMIT)
    return [work]


def _fence_in_loop(program: Program, work: Work) -> list[Work]:
    fence = _fence(work)

    async def main() -> None:
        await fence

    program.in_loop(main())
    return [work]


def _fence_join(program: Program, work: Work) -> list[Work]:
    held = program.held()
    others = [each for each in program.unlearned if each.fence is not None and each not in held][-3:]
    kp.Fence.join(_fence(work), *(_fence(each) for each in others)).wait(LIMIT)
    return [work, *others]


def _semaphore_wait(program: Program, work: Work) -> list[Work]:
    assert work.signal is not None
    work.signal.semaphore.wait(1, LIMIT)
    return [work]


def _semaphore_poll(program: Program, work: Work) -> list[Work]:
    assert work.signal is not None
    semaphore = work.signal.semaphore
    _poll(lambda: semaphore.query() >= 1, "a semaphore")
    return [work]


def _semaphore_fence(program: Program, work: Work) -> list[Work]:
    assert work.signal is not None
    work.signal.semaphore.at(1).wait(LIMIT)
    return [work]


def _semaphore_future(program: Program, work: Work) -> list[Work]:
    assert work.signal is not None
    work.signal.semaphore.at(1).future().result(LIMIT)
    return [work]


def _synchronize(program: Program, work: Work) -> list[Work]:
    program.mgr.synchronize()
    return list(program.unlearned)


def _later(program: Program, work: Work) -> list[Work]:
    """Work on the same queue that shares nothing with it."""
    held = program.held()
    before = [each for each in program.unlearned if each.queue == work.queue and each not in held]
    scratch = program.scratch(work.queue)
    scratch.eval()
    return before


def _dependent(program: Program, work: Work) -> list[Work]:
    """Work of another queue that reads what it wrote."""
    item = program.random.choice(
        [item for item, writes in work.uses.items() if writes and item.thing.is_init()]
    )
    return [program.read_elsewhere(item)]


def _read(program: Program, work: Work) -> list[Work]:
    item = program.random.choice(
        [item for item, writes in work.uses.items() if writes and item.thing.is_init()]
    )
    program.read(item)
    return [work]


SEQUENCE: tuple[Way, ...] = (
    _sequence_await, _sequence_poll, _sequence_fence, _sequence_in_loop, _sequence_destroy,
)  # fmt: skip
FENCE: tuple[Way, ...] = (_fence_wait, _fence_poll, _fence_future, _fence_in_loop, _fence_join)
SEMAPHORE: tuple[Way, ...] = (_semaphore_wait, _semaphore_poll, _semaphore_fence, _semaphore_future)
WRITER: tuple[Way, ...] = (_dependent, _read)
ANY: tuple[Way, ...] = (_synchronize, _later)
EVERY = SEQUENCE + FENCE + SEMAPHORE + WRITER + ANY


def ways(program: Program, work: Work) -> list[Way]:
    """Those that are there for `work`."""
    found = list(ANY)
    if program.has_sequence(work):
        found += SEQUENCE
    if work.fence is not None:
        found += FENCE
    if work.signal is not None:
        found += SEMAPHORE
    if any(writes and item.thing.is_init() for item, writes in work.uses.items()):
        found += WRITER
    return found
