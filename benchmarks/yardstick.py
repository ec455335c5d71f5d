"""A fixed piece of work that no commit of this repository changes: how fast the machine is just now."""

from __future__ import annotations

import time


def _work() -> int:
    total = 0
    table = {number: str(number) for number in range(200)}
    for number in range(4000):
        total += len(table[number % 200]) ^ number
    return total


def yardstick(tries: int = 25) -> float:
    """Seconds of the fastest of some tries, in processor time; about 10 ms in all."""
    best = float("inf")
    for _ in range(tries):
        start = time.thread_time()
        _work()
        best = min(best, time.thread_time() - start)
    return best
