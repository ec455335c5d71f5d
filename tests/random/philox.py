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
    places = np.uint64(position) + np.arange(blocks, dtype=np.uint64)
    made[:, 0], made[:, 1], made[:, 2], made[:, 3] = places & _M, places >> np.uint64(32), attempt, jump
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


def order(state, count):
    """The order of the numbers below `count` by keys of 64 bits."""
    pairs = words(state, -(-count // 2)).reshape(-1, 2)[:count].astype(np.uint64)
    return np.argsort(pairs[:, 0] << np.uint64(32) | pairs[:, 1], kind="stable")


def _stream(state, element):
    """The numbers of 64 bits of an element."""
    attempt = 0
    while True:
        counter = counters(state["position"] + element, 1, state["jump"], attempt)
        a, b, c, d = (int(word) for word in philox(counter, state["key"])[0])
        yield a << 32 | b
        yield c << 32 | d
        attempt += 1


def exponential(state, element):
    """An exponential number, times 2**64: von Neumann's method as he tells it."""
    numbers, whole = _stream(state, element), 0
    while True:
        first = last = next(numbers)
        length = 1
        while (following := next(numbers)) < last:
            last = following
            length += 1
        if length % 2:
            return max(whole << 64 | first, 1)
        whole += 1


def multiples(p):
    """Probabilities as multiples of 2**-62."""
    return [max(int(float(each) * 2**62), int(each > 0)) for each in p]


def quotient(number, weight):
    """The key of an exponential number over a weight, as the kernel makes it: 8 bits of the exponent and 56
    of the fraction."""
    exponent = number.bit_length() - 65 - (weight.bit_length() - 1)
    number = number << 64 >> number.bit_length()
    divisor = weight << 64 >> weight.bit_length()
    divisor = (divisor >> 40) + (divisor >> 39 & 1)
    if divisor == 2**24:
        divisor, exponent = 2**23, exponent - 1
    found = (number << 16) // divisor
    if found < 2**56:
        found, exponent = found * 2, exponent - 1
    return exponent + 128 << 56 | found % 2**56


def race(state, p):
    """The order by exponential numbers over probabilities."""
    weights = multiples(p)
    keys = [
        quotient(exponential(state, number), weight) if weight else 2**64 - 1
        for number, weight in enumerate(weights)
    ]
    return sorted(range(len(keys)), key=lambda number: keys[number])


def categories(state, count, p):
    """Choices with replacement."""
    sums, whole = [], 0
    for each in multiples(p):
        whole += each
        sums.append(whole)
    pairs = words(state, -(-count // 2)).reshape(-1, 2)[:count].astype(object)
    return [sum(each <= ((a << 32 | b) * whole >> 64) for each in sums) for a, b in pairs]
