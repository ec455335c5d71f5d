"""Philox 4x32-10 and the draws in NumPy, to compare with."""

from __future__ import annotations

import numpy as np

_M = np.uint64(0xFFFFFFFF)


def philox(counter, key):
    """The four words of each counter (n, 4) for a key of two words."""
    c = [np.asarray(counter)[:, i].astype(np.uint64) for i in range(4)]
    k = [int(key[0]), int(key[1])]
    for _ in range(10):
        first, second = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [
            (second >> np.uint64(32)) ^ c[1] ^ np.uint64(k[0]),
            second & _M,
            (first >> np.uint64(32)) ^ c[3] ^ np.uint64(k[1]),
            first & _M,
        ]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return np.stack(c, axis=1).astype(np.uint32)


def counters(position, blocks, jump=0, attempt=0):
    made = np.zeros((blocks, 4), np.uint32)
    for number in range(blocks):
        place = position + number
        made[number] = place & 0xFFFFFFFF, place >> 32, attempt, jump
    return made


def words(state, blocks):
    """The words that a generator in this state draws next."""
    return philox(counters(state["position"], blocks, state["jump"]), state["key"])


def integers(state, count, least, most):
    """Integers of at most 32 bits: Lemire's multiplication, drawing again where it would be uneven."""
    span, found = most - least + 1, []
    for number in range(count):
        lane, attempt = number % 4, 0
        while True:
            counter = counters(state["position"] + number // 4, 1, state["jump"], attempt)
            product = int(philox(counter, state["key"])[0, lane]) * span
            if span == 2**32 or product % 2**32 >= 2**32 % span:
                break
            attempt += 1
        found.append(least + (product >> 32))
    return found
