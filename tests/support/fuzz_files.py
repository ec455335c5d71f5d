"""Mutated parameter files of each format, and programs (`fuzz_programs`), for ``./dev fuzz --files``: bytes
flipped, numbers replaced, parts cut, doubled and moved.

Each mutant is indexed, and what is taken is read and loaded. A refusal must be typed. A process that ends or
hangs fails the command, and the number on its last line names the mutant.
"""

from __future__ import annotations

import argparse
import io
import random
import struct
import sys
import time

import numpy as np

import kompute_py as kp
from tests.support import fuzz_programs

FORMATS = ("irpa", "gguf", "safetensors")
MOST_BYTES = 1 << 20  # what a mutant may claim and still be loaded
_NUMBERS = (
    0, 1, 2, 3, 7, 8, 9, 16, 31, 32, 33, 60, 88, 255, 2**16, 2**31, 2**32 - 1, 2**62, 2**63, 2**64 - 1,
)  # fmt: skip


def seed_file(format: str) -> bytes:
    """A file of each kind of entry that the format has."""
    if format == "gguf":
        return _gguf()
    index = kp.TensorIndex(
        {
            "floats": np.arange(6, dtype=np.float32).reshape(2, 3),
            "bytes": np.arange(9, dtype=np.uint8),
            "ints": np.arange(4),
            "none": np.zeros((0, 2), np.float16),
        },
        {"a": "b"} if format == "safetensors" else {},
    )
    index.add_splat("splat", 2.5, (4, 4))
    if format == "irpa":
        index.add("kept", np.arange(3, dtype=np.uint8), metadata=b"any bytes")
    file = io.BytesIO()
    kp.save_tensors(file, index, format=format)
    return file.getvalue()


def _gguf() -> bytes:
    def text(value: bytes) -> bytes:
        return struct.pack("<Q", len(value)) + value

    pairs = [
        text(b"general.alignment") + struct.pack("<II", 4, 32),
        text(b"name") + struct.pack("<I", 8) + text(b"model"),
        text(b"tokens") + struct.pack("<IIQ", 9, 8, 2) + text(b"a") + text(b"bc"),
        text(b"numbers") + struct.pack("<IIQ3f", 9, 6, 3, 1, 2, 3),
        text(b"yes") + struct.pack("<IB", 7, 1),
    ]
    listed, data = b"", b""
    for name, shape, kind, size in (("w", (3, 2), 0, 24), ("q", (64, 2), 2, 72), ("k", (256,), 12, 144)):
        listed += text(name.encode()) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        listed += struct.pack("<IQ", kind, len(data))
        data += bytes(range(size)).ljust(-(-size // 32) * 32, b"\0")
    head = struct.pack("<4sIQQ", b"GGUF", 3, 3, len(pairs)) + b"".join(pairs) + listed
    return head.ljust(-(-len(head) // 32) * 32, b"\0") + data


def mutant(whole: bytes, number: int, seed: int) -> bytes:
    """The mutant of that number."""
    chance = random.Random(f"file {number} {seed}")
    made = bytearray(whole)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        at = chance.randrange(len(made)) if made else 0
        turn = chance.randrange(8)
        if turn <= 1 and made:
            made[at] ^= 1 << chance.randrange(8)
        elif turn <= 4:  # a number, mostly at a place that numbers have
            size = chance.choice((4, 8, 8))
            at -= at % chance.choice((1, 4, 4, 8))
            value = chance.choice((*_NUMBERS, len(made), chance.randrange(300)))
            made[at : at + size] = (value % (1 << 8 * size)).to_bytes(size, "little")
        elif turn == 5:
            del made[at : at + chance.choice((1, 4, 8, 16, 64, 1 << 20))]
        elif turn == 6:
            made[at:at] = made[at : at + chance.choice((1, 4, 8, 76, 85))]
        else:
            other = chance.randrange(len(made)) if made else 0
            made[at : at + 8] = made[other : other + 8]
    return bytes(made)


def use(data: bytes, manager: kp.Manager | None) -> bool:
    """Indexes, reads and loads a file. False if it is refused, with a typed error."""
    try:
        index = kp.tensor_file_info(data)
    except kp.KomputeError:
        return False
    if index.nbytes > MOST_BYTES:
        return True
    for name in index:
        try:
            index.read(name)
        except kp.UnimplementedError:
            continue
    if manager is not None:
        for decoded in (False, True):
            try:
                loaded = kp.load_tensors(index, manager, dequantize=decoded, progress=False)
            except kp.UnimplementedError:
                continue
            for tensor in loaded.values():
                tensor.destroy()
    return True


def main() -> int:
    """``./dev fuzz --files [COUNT] [--seed N]``: COUNT mutants of each format."""
    parser = argparse.ArgumentParser(prog="./dev fuzz --files")
    parser.add_argument("count", nargs="?", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    manager = kp.manager()
    failed = 0
    for format in FORMATS:
        whole, taken, slowest = seed_file(format), 0, 0.0
        assert use(whole, manager)
        for number in range(given.count):
            print(f"\r{format} {number}", end="", file=sys.stderr)
            began = time.perf_counter()
            try:
                taken += use(mutant(whole, number, given.seed), manager)
            except Exception as error:
                failed += 1
                print(f"\n{format} {number}: {type(error).__name__}: {error}")
            slowest = max(slowest, time.perf_counter() - began)
        print(f"\r{format}: {given.count} mutants, {taken} taken, the slowest took {slowest:.3f} s")
    whole, taken = fuzz_programs.seed_program(manager), 0
    assert fuzz_programs.use(whole, manager)
    for number in range(given.count):
        print(f"\rprogram {number}", end="", file=sys.stderr)
        change = mutant if number % 4 == 0 else fuzz_programs.mutant
        try:
            taken += fuzz_programs.use(change(whole, number, given.seed), manager)
        except Exception as error:
            failed += 1
            print(f"\nprogram {number}: {type(error).__name__}: {error}")
    print(f"\rprogram: {given.count} mutants, {taken} taken")
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
