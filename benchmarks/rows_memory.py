"""Memory: making tensors, moving their contents, images and files; beside memcpy and NumPy."""

from __future__ import annotations

import mmap
import multiprocessing
import os
import tempfile
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

import kompute_py as kp

from .bench import Bench
from .figures import CPU_DRIVERS, TIMES, figure
from .paths import cache_directory
from .timing import Side, making, side

LARGE = 256 << 20
SHARED = 64 << 20
_AT_A_TIME = 1000
_MANY = 16 << 20
_PICTURE = (2160, 3840, 4)
_FILE = 20_000
# A round takes a twentieth of a second: fewer of them.
_LONG: dict[str, Any] = {"times": 1, "scale": 0.2}
# On each of several devices: where a block lies in memory changes its times, as the placement of threads
# does. Several in a row, so that a side's first copy, which finds the other's traces in the caches, is not
# all that is measured.
_SYNC: dict[str, Any] = {"drivers": CPU_DRIVERS, "devices": True, "times": 4, "scale": 0.1}


def _touched(thing: Any, array: np.ndarray) -> Any:
    """The tensor or image, written and read once: each page is there before the clock starts."""
    thing.write(array)
    thing.read(array)
    return thing


# -------------------------------------------------------------------------------------------------- transfers


def _sync(on: Bench, operation: Callable[[list[kp.Tensor]], kp.OpBase]) -> tuple[Side, Side]:
    tensor = on.manager.tensor(np.ones(SHARED // 4, np.float32))
    sequence = on.manager.sequence()
    sequence.eval(kp.OpSyncDevice([tensor])).eval(kp.OpSyncLocal([tensor]))
    sequence.clear()
    return side(sequence.record(operation([tensor])).eval), on.memcpy(SHARED)


for _name, _operation in (("device", kp.OpSyncDevice), ("local", kp.OpSyncLocal)):
    figure(
        f"sync-{_name}-64m", f"{_operation.__name__} of 64 MiB", TIMES, "lavapipe", 1.05, **_SYNC,
        baseline="memcpy",
    )(lambda on, operation=_operation: _sync(on, operation))  # fmt: skip


def _beside_memcpy(bench: Bench, work: Callable[[kp.Tensor, np.ndarray], object]) -> tuple[Side, Side]:
    array = np.ones(LARGE // 4, np.float32)
    tensor = _touched(bench.temporary(bench.manager.empty(LARGE // 4, np.float32)), array)
    return side(lambda: work(tensor, array)), bench.memcpy(LARGE)


for _name, _title, _work in (
    ("write", "write() of 256 MiB from", lambda tensor, array: tensor.write(array)),
    ("read", "read() of 256 MiB into", lambda tensor, array: tensor.read(out=array)),
):
    figure(  # 0.95 of memcpy's rate
        f"{_name}-256m", f"{_title} the caller's array", TIMES, "lavapipe", 1 / 0.95, drivers=CPU_DRIVERS,
        baseline="memcpy", **_LONG
    )(lambda bench, work=_work: _beside_memcpy(bench, work))  # fmt: skip


@figure(
    "shared-64m", "deviceAndHost of 64 MiB: eval, np.asarray", TIMES, "lavapipe", 0.1, drivers=CPU_DRIVERS,
    baseline="memcpy of it", submits=True, **_LONG
)  # fmt: skip
def shared(bench: Bench) -> tuple[Side, Side]:
    # A dispatch of one group in a large tensor: what is left is the cost of handing the tensor to the device
    # and back.
    tensors = [bench.manager.zeros(SHARED // 4, np.float32, "deviceAndHost") for _ in range(3)]
    left, _, product = tensors
    algorithm = bench.manager.algorithm(tensors, bench.spirv, (1, 1, 1))
    sequence = bench.manager.sequence().record(kp.OpAlgoDispatch(algorithm))
    values = left.numpy()

    def round_trip() -> np.ndarray:
        values[:64] = 2.0
        sequence.eval()
        return np.asarray(product)

    if not np.shares_memory(round_trip(), product.data()):
        raise RuntimeError("np.asarray copied a deviceAndHost tensor")
    return side(round_trip), bench.memcpy(SHARED)


def _take_frames(pipe: Connection) -> None:
    with kp.Manager(validation=False, pipeline_cache_dir="") as manager:
        frame = manager.import_memory(pipe.recv())
        pipe.send(None)
        while pipe.recv():
            pipe.send(float(frame[-1:].read()[0]))


@figure(
    "exchanged-64m", "a frame of 64 MiB to another process, and its answer", TIMES, "lavapipe", 1 / 0.9,
    drivers=("lavapipe",), baseline="memcpy to shared pages", submits=True, **_LONG
)  # fmt: skip
def exchanged(bench: Bench) -> tuple[Side, Side]:
    # Both write to pages of 4 KiB, as the system shares them.
    source = np.random.default_rng(1).random(SHARED // 4, np.float32)
    frame = bench.manager.shared(source.shape, source.dtype)
    context = multiprocessing.get_context("spawn")
    pipe, there = context.Pipe()
    process = context.Process(target=_take_frames, args=(there,))
    process.start()
    bench.ending.callback(process.join)
    bench.ending.callback(pipe.send, False)
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
    return side(hand_over), side(lambda: np.copyto(copied, source))


def _converted(bench: Bench, data: np.ndarray, dtype: type) -> tuple[Side, Side]:
    tensor = bench.temporary(bench.manager.zeros(_MANY, dtype))
    tensor.write(data)
    target = np.ones(_MANY, dtype)
    return side(lambda: tensor.write(data)), side(lambda: np.copyto(target, data, casting="unsafe"))


@figure(
    "write-f64-16m", "write() of 16 M float64 to float32", TIMES, "lavapipe", 1.3, 1.05,
    drivers=CPU_DRIVERS, baseline="np.copyto", **_LONG
)  # fmt: skip
def write_floats(bench: Bench) -> tuple[Side, Side]:
    return _converted(bench, np.linspace(0, 1, _MANY), np.float32)


@figure(
    "write-i64-16m", "write() of 16 M int64 to int32, with the check of their range", TIMES, "lavapipe", 2,
    1.3, drivers=CPU_DRIVERS, baseline="np.copyto", **_LONG
)  # fmt: skip
def write_integers(bench: Bench) -> tuple[Side, Side]:
    return _converted(bench, np.arange(_MANY), np.int32)


@figure(
    "read-every-second", "t[::2].read() of 16 M through the staging ring", TIMES, "lavapipe", 1.0,
    drivers=CPU_DRIVERS, baseline="reading all of t", submits=True, **_LONG
)  # fmt: skip
def read_every_second(bench: Bench) -> tuple[Side, Side]:
    tensor = bench.own_manager(force_staging=True).zeros(_MANY)
    return side(tensor[::2].read), side(tensor.read)


def _pictures(bench: Bench, work: Callable[[Any, np.ndarray], object]) -> tuple[Side, Side]:
    array = np.random.default_rng(1).integers(0, 255, _PICTURE, np.uint8)
    make = bench.manager.image_t, bench.manager.tensor_t
    image, tensor = (_touched(bench.temporary(each(array)), array) for each in make)
    return side(lambda: work(image, array)), side(lambda: work(tensor, array))


for _name, _work in (
    ("write", lambda thing, array: thing.write(array)),
    ("read", lambda thing, array: thing.read(array)),
):
    figure(
        f"image-{_name}-4k", f"Image.{_name}() of 3840 x 2160 RGBA8", TIMES, "lavapipe", 1.25, 1.1,
        drivers=CPU_DRIVERS, baseline=f"Tensor.{_name}()", submits=True, **_LONG
    )(lambda bench, work=_work: _pictures(bench, work))  # fmt: skip


# ------------------------------------------------------------------------------------------------------ files


@figure(
    "load-256m", "load_tensors of a 256 MiB file", TIMES, "lavapipe", 1.0, drivers=CPU_DRIVERS,
    baseline="np.fromfile", **_LONG
)  # fmt: skip
def load(bench: Bench) -> tuple[Side, Side]:
    layer = bench.manager.tensor(np.ones(LARGE // 16, np.float32))
    layer.write(layer.data())
    path = _saved(bench, {f"layers.{number}": layer for number in range(4)})
    layer.destroy()
    # The file is in the system's cache on both sides, and both make what they read into.
    ours = making(lambda: kp.load_tensors(path, bench.manager, progress=False))
    return ours, making(lambda: np.fromfile(path, np.uint8))


def _saved(bench: Bench, tensors: dict[str, kp.Tensor]) -> Path:
    folder = bench.ending.enter_context(tempfile.TemporaryDirectory(dir=cache_directory()))
    kp.save_tensors(path := Path(folder) / "model.safetensors", tensors, progress=False)
    return path


def _file(bench: Bench, work: Callable[[Path, dict[str, kp.Tensor]], object]) -> Side:
    manager = bench.manager
    tensors = {f"w{number}": manager.tensor(np.full(256, number, np.float32)) for number in range(_FILE)}
    manager.sequence().eval(kp.OpSyncDevice(list(tensors.values())))
    path = _saved(bench, tensors)
    run = making(lambda: work(path, tensors))
    return lambda times: run(times) / _FILE


@figure(
    "load-20000", "load_tensors of 20,000 of 1 KiB, each", "us", must=12, aim=8, drivers=("null",), **_LONG
)
def load_many(bench: Bench) -> Side:
    return _file(bench, lambda path, _: kp.load_tensors(path, bench.manager, progress=False))


@figure(
    "save-20000", "save_tensors of 20,000 of 1 KiB, each", "us", must=9, aim=6, drivers=("null",), **_LONG
)
def save_many(bench: Bench) -> Side:
    return _file(bench, lambda path, tensors: kp.save_tensors(path, tensors, progress=False))


# --------------------------------------------------------------------------------------------------- creation


# Moving 64 MiB takes longer than a block has to: fewer of them.
@figure(
    "tensor-64m", "make a 64 MiB tensor", TIMES, "lavapipe", 1.3, 1.05, baseline="ndarray.copy()", times=1,
    scale=0.3
)  # fmt: skip
def large_tensor(bench: Bench) -> tuple[Side, Side]:
    data, manager = np.ones(SHARED // 4, np.float32), bench.manager
    return making(lambda: manager.tensor(data)), making(data.copy)


def _small_tensor(bench: Bench, alive: int) -> tuple[Side, Side]:
    data, make = np.ones(256, np.float32), bench.manager.tensor
    bench.ending.callback([make(data) for _ in range(alive)].clear)
    return making(lambda: make(data)), making(data.copy)


for _alive in (5_000, 100_000):
    figure(
        f"tensor-1k-{_alive}", f"make a 1 KiB tensor with {_alive:,} alive", "us", "lavapipe", 4, 3,
        baseline="ndarray.copy()", times=_AT_A_TIME
    )(lambda bench, alive=_alive: _small_tensor(bench, alive))  # fmt: skip


# The driver executes what it is given: on others, the clears would be measured.
@figure(
    "zeros-device-only", "each of 1,000 x mgr.zeros on device-only memory, with their clears", "us",
    drivers=("null",), must=4, aim=3, times=_AT_A_TIME
)  # fmt: skip
def zeros_on_device(bench: Bench) -> Side:
    manager = bench.own_manager(force_staging=True)

    def make(times: int) -> float:
        made = []

        def work() -> None:
            made.extend(manager.zeros(16) for _ in range(times))
            manager.synchronize()

        return side(work)(1)

    return make


@figure(
    "tensor-1k-retired", "make a 1 KiB tensor while work uses 10,000 destroyed ones", "us", "null", 4, 2,
    times=_AT_A_TIME
)  # fmt: skip
def beside_retired(bench: Bench) -> Side:
    manager, data = bench.own_manager(), np.ones(256, np.float32)
    tensors = [manager.tensor(data) for _ in range(10_000)]
    semaphore = manager.semaphore()
    sequence = manager.sequence().record(kp.OpFill(tensors, 1.0))
    sequence.eval_async(wait=(semaphore, 1))
    bench.ending.callback(sequence.eval_await)
    bench.ending.callback(semaphore.signal, 1)
    for tensor in tensors:
        tensor.destroy()
    return making(lambda: manager.tensor(data))


ARRAY = """#version 450
#extension GL_EXT_nonuniform_qualifier : require
layout(local_size_x = 1) in;
layout(binding = 0) buffer Part { float part[]; } parts[];
void main() { parts[nonuniformEXT(gl_GlobalInvocationID.x)].part[0] += 1; }
"""
FEW, MANY = 1_000, 60_000


@figure(
    "descriptor-array", f"an array of {MANY:,} descriptors under validation, each", TIMES,
    drivers=("null",), baseline=f"in one of {FEW:,}", must=1.5, aim=1.1, times=1, scale=0.1
)  # fmt: skip
def descriptor_array(bench: Bench) -> tuple[Side, ...]:
    manager = bench.own_manager(validation=True)
    kernel = manager.kernel(ARRAY)

    def each_of(count: int) -> Side:
        tensors = [manager.empty(1) for _ in range(count)]
        bind = side(lambda: kernel.bind(tensors, grid=1))
        return lambda times: bind(times) / count

    return each_of(MANY), each_of(FEW)
