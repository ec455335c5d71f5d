"""Transfers between the caller's arrays or files and device memory, against memcpy and reading a file.

That they take no memory beyond the staging ring is not measured here but tested:
tests/transfers/test_transfer_memory.py.
"""

from __future__ import annotations

import mmap
import multiprocessing
import os
import tempfile
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

import kompute_py as kp

from .bench import Bench
from .figures import TIMES, Measured, figure
from .floor import CopyPair
from .paths import cache_directory
from .timing import prepared, side

LARGE = 256 << 20
SHARED = 64 << 20
# A round takes a twentieth of a second: fewer of them.
_SCALE = 0.2
# See rows_memory: the null driver's transfers are no measure.
_CPU_DRIVERS = ("lavapipe", "swiftshader")
# 0.95 of memcpy's rate.
_MUST = 1 / 0.95


def _beside_memcpy(bench: Bench, work: Callable[[kp.Tensor, np.ndarray], object]) -> Measured:
    tensor = bench.manager.empty(LARGE // 4, np.float32)
    array = np.ones(LARGE // 4, np.float32)
    # Both ways once: each page is there before the clock starts.
    tensor.write(array)
    tensor.read(array)
    pair = CopyPair(LARGE)
    try:
        return bench.compare(side(lambda: work(tensor, array)), pair.copy, times=1, scale=_SCALE)
    finally:
        pair.close()
        tensor.destroy()


@figure(
    "write-256m", "write() of 256 MiB from the caller's array", TIMES, "lavapipe", _MUST,
    drivers=_CPU_DRIVERS, baseline="memcpy"
)  # fmt: skip
def write(bench: Bench) -> Measured:
    return _beside_memcpy(bench, lambda tensor, array: tensor.write(array))


@figure(
    "read-256m", "read() of 256 MiB into the caller's array", TIMES, "lavapipe", _MUST,
    drivers=_CPU_DRIVERS, baseline="memcpy"
)  # fmt: skip
def read(bench: Bench) -> Measured:
    return _beside_memcpy(bench, lambda tensor, array: tensor.read(out=array))


@figure(
    "shared-64m", "deviceAndHost of 64 MiB: eval, np.asarray", TIMES, "lavapipe", 0.1, drivers=_CPU_DRIVERS,
    baseline="memcpy of it"
)  # fmt: skip
def shared(bench: Bench) -> Measured:
    manager = bench.manager
    # A dispatch of one group in a large tensor: what is left is the cost of handing the tensor to the device
    # and back.
    tensors = [manager.zeros(SHARED // 4, np.float32, "deviceAndHost") for _ in range(3)]
    left, _, product = tensors
    algorithm = manager.algorithm(tensors, bench.spirv, (1, 1, 1))
    sequence = manager.sequence().record(kp.OpAlgoDispatch(algorithm))
    values = left.numpy()

    def round_trip() -> np.ndarray:
        values[:64] = 2.0
        sequence.eval()
        return np.asarray(product)

    if not np.shares_memory(round_trip(), product.data()):
        raise RuntimeError("np.asarray copied a deviceAndHost tensor")
    pair = CopyPair(SHARED)
    try:
        return bench.compare(side(round_trip), pair.copy, times=1, scale=_SCALE, submits=True)
    finally:
        pair.close()


def _take_frames(pipe: Connection) -> None:
    with kp.Manager(validation=False, pipeline_cache_dir="") as manager:
        frame = manager.import_memory(pipe.recv())
        pipe.send(None)
        while pipe.recv():
            pipe.send(float(frame[-1:].read()[0]))


@figure(
    "exchanged-64m", "a frame of 64 MiB to another process, and its answer", TIMES, "lavapipe", 1 / 0.9,
    drivers=("lavapipe",), baseline="memcpy to shared pages"
)  # fmt: skip
def exchanged(bench: Bench) -> Measured:
    # Both write to pages of 4 KiB, as the system shares them.
    source = np.random.default_rng(1).random(SHARED // 4, np.float32)
    frame = bench.manager.shared(source.shape, source.dtype)
    context = multiprocessing.get_context("spawn")
    pipe, there = context.Pipe()
    process = context.Process(target=_take_frames, args=(there,))
    process.start()
    pipe.send(frame.share())
    pipe.recv()

    def hand_over() -> None:
        frame.write(source)
        pipe.send(True)
        if pipe.recv() != source[-1]:
            raise RuntimeError("the other process saw another frame")

    descriptor = os.memfd_create("frame")
    os.ftruncate(descriptor, SHARED)
    copied = np.frombuffer(mmap.mmap(descriptor, SHARED), np.float32)
    os.close(descriptor)
    copy = side(lambda: np.copyto(copied, source))
    try:
        return bench.compare(side(hand_over), copy, times=1, scale=_SCALE, submits=True)
    finally:
        pipe.send(False)
        process.join()


@figure(
    "load-256m", "load_tensors of a 256 MiB file", TIMES, "lavapipe", 1.0, drivers=_CPU_DRIVERS,
    baseline="np.fromfile"
)  # fmt: skip
def load(bench: Bench) -> Measured:
    with tempfile.TemporaryDirectory(dir=cache_directory()) as folder:
        path = Path(folder) / "model.safetensors"
        layer = bench.manager.tensor(np.ones(LARGE // 16, np.float32))
        layer.write(layer.data())
        kp.save_tensors(path, {f"layers.{number}": layer for number in range(4)})
        layer.destroy()
        # The file is in the system's cache on both sides, and both make what they read into.
        ours = prepared(lambda: None, lambda: kp.load_tensors(path, bench.manager, progress=False))
        theirs = prepared(lambda: None, lambda: np.fromfile(path, np.uint8))
        return bench.compare(ours, theirs, times=1, scale=_SCALE)
