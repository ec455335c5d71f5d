"""A process that awaits: `python -m tests.stall.awaits RUNS COUNT` prints one line for each run of COUNT
awaits, with its seconds.

Each run awaits a semaphore's values in COUNT tasks, half of them cancelled, while the host raises it; then
two threads wait for and look at a semaphore that a third one raises. Messages of the validation layer come as
lines, too.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time

import kompute_py as kp

VALUES = 50


class Lines(logging.Handler):
    """Prints what the library logs."""

    def emit(self, record: logging.LogRecord) -> None:
        print("message", getattr(record, "validation_id", "of the library"), flush=True)


async def _awaits(sem: kp.Semaphore, base: int, count: int) -> None:
    async def one(value: int) -> None:
        await sem.at(value)

    tasks = [asyncio.create_task(one(base + 1 + i % VALUES)) for i in range(count)]
    await asyncio.sleep(0.01)
    for task in tasks[::2]:
        task.cancel()
    for value in range(1, VALUES + 1):
        await asyncio.sleep(0)
        sem.signal(base + value)
    await asyncio.gather(*tasks, return_exceptions=True)


def _threads(sem: kp.Semaphore, count: int) -> None:
    """One thread waits for each value, one looks at the counter, this one raises it at all distances from
    them.
    """
    first = sem.query()
    last = first + count

    def waits() -> None:
        value = first
        while value < last:
            sem.wait(value + 1)
            value = sem.query()

    def looks() -> None:
        while sem.query() < last:
            pass

    threads = [threading.Thread(target=each) for each in (waits, looks)]
    for thread in threads:
        thread.start()
    for value in range(first + 1, last + 1):
        sem.signal(value)
        end = time.perf_counter() + (value % 100) * 1e-6
        while time.perf_counter() < end:
            pass
    for thread in threads:
        thread.join()


def main(runs: int, count: int) -> None:
    """The runs, on a Manager with validation if a layer is there."""
    logger = logging.getLogger("kompute_py")
    logger.addHandler(Lines(logging.WARNING))
    logger.propagate = False
    mgr = kp.Manager(validation="KHRONOS" in " ".join(kp._native.loader_info()["layers"]))
    sem = mgr.semaphore()
    for _ in range(runs):
        began = time.monotonic()
        asyncio.run(_awaits(sem, sem.query(), count))
        print(f"awaits {time.monotonic() - began:.3f}", flush=True)
        began = time.monotonic()
        _threads(sem, count)
        print(f"threads {time.monotonic() - began:.3f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
