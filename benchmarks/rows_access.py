"""Access from the host: small reads and writes, parts, conversion, images, parameter files."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import kompute_py as kp

from .bench import Bench
from .figures import TIMES, Measured, figure
from .paths import cache_directory
from .timing import side

_NULL = ("null",)
# See rows_memory: the null driver's transfers are no measure.
_CPU_DRIVERS = ("lavapipe", "swiftshader")
_SMALL = 64  # float32: 256 bytes
_MANY = 16 << 20
_PICTURE = (2160, 3840, 4)
_FILE = 20_000
# A round takes a twentieth of a second: fewer of them.
_SCALE = 0.2


def _converted(bench: Bench, data: np.ndarray, dtype: type) -> Measured:
    tensor = bench.manager.zeros(_MANY, dtype)
    tensor.write(data)
    target = np.zeros(_MANY, dtype)
    target[...] = 1  # the pages are there
    try:
        return bench.compare(
            side(lambda: tensor.write(data)),
            side(lambda: np.copyto(target, data, casting="unsafe")),
            times=1,
            scale=_SCALE,
        )
    finally:
        tensor.destroy()


@figure(
    "write-f64-16m", "write() of 16 M float64 to float32", TIMES, "lavapipe", 1.3, 1.05,
    drivers=_CPU_DRIVERS, baseline="np.copyto"
)  # fmt: skip
def write_floats(bench: Bench) -> Measured:
    return _converted(bench, np.linspace(0, 1, _MANY), np.float32)


@figure(
    "write-i64-16m", "write() of 16 M int64 to int32, with the check of their range", TIMES, "lavapipe", 2,
    1.3, drivers=_CPU_DRIVERS, baseline="np.copyto"
)  # fmt: skip
def write_integers(bench: Bench) -> Measured:
    return _converted(bench, np.arange(_MANY), np.int32)


@figure(
    "read-every-second", "t[::2].read() of 16 M through the staging ring", TIMES, "lavapipe", 1.0,
    drivers=_CPU_DRIVERS, baseline="reading all of t"
)  # fmt: skip
def read_every_second(bench: Bench) -> Measured:
    manager = kp.Manager(validation=False, pipeline_cache_dir="", force_staging=True)
    try:
        tensor = manager.zeros(_MANY)
        part = tensor[::2]
        return bench.compare(side(part.read), side(tensor.read), times=1, scale=_SCALE, submits=True)
    finally:
        manager.destroy()


def _pictures(
    bench: Bench,
    ours: Callable[[kp.Image, np.ndarray], object],
    theirs: Callable[[kp.Tensor, np.ndarray], object],
) -> Measured:
    array = np.random.default_rng(1).integers(0, 255, _PICTURE, np.uint8)
    image, tensor = bench.manager.image_t(array), bench.manager.tensor_t(array)
    # Both ways once: each page is there before the clock starts.
    image.write(array)
    tensor.write(array)
    room = array.copy()
    try:
        return bench.compare(
            side(lambda: ours(image, room)),
            side(lambda: theirs(tensor, room)),
            times=1,
            scale=_SCALE,
            submits=True,
        )
    finally:
        image.destroy()
        tensor.destroy()


@figure(
    "image-write-4k", "Image.write() of 3840 x 2160 RGBA8", TIMES, "lavapipe", 1.25, 1.1,
    drivers=_CPU_DRIVERS, baseline="Tensor.write()"
)  # fmt: skip
def image_write(bench: Bench) -> Measured:
    return _pictures(bench, lambda image, room: image.write(room), lambda tensor, room: tensor.write(room))


@figure(
    "image-read-4k", "Image.read() of 3840 x 2160 RGBA8", TIMES, "lavapipe", 1.25, 1.1,
    drivers=_CPU_DRIVERS, baseline="Tensor.read()"
)  # fmt: skip
def image_read(bench: Bench) -> Measured:
    return _pictures(bench, lambda image, room: image.read(room), lambda tensor, room: tensor.read(room))


def _each(work: Callable[[], object]) -> Callable[[int], float]:
    """A side that does `work`, which does something `_FILE` times, and counts it as that often."""

    def run(times: int) -> float:
        seconds = 0.0
        for _ in range(times):
            start = time.perf_counter()
            made = work()
            seconds += time.perf_counter() - start
            del made
        return seconds / _FILE

    return run


def _file(bench: Bench, work: Callable[[Path, dict[str, kp.Tensor]], object]) -> Measured:
    manager = bench.manager
    tensors = {f"w{number}": manager.tensor(np.full(256, number, np.float32)) for number in range(_FILE)}
    manager.sequence().eval(kp.OpSyncDevice(list(tensors.values())))
    with tempfile.TemporaryDirectory(dir=cache_directory()) as folder:
        path = Path(folder) / "model.safetensors"
        kp.save_tensors(path, tensors, progress=False)
        return bench.compare(_each(lambda: work(path, tensors)), times=1, scale=_SCALE)


@figure("load-20000", "load_tensors of 20,000 of 1 KiB, each", "us", drivers=_NULL, must=12, aim=8)
def load(bench: Bench) -> Measured:
    return _file(bench, lambda path, _: kp.load_tensors(path, bench.manager, progress=False))


@figure("save-20000", "save_tensors of 20,000 of 1 KiB, each", "us", drivers=_NULL, must=9, aim=6)
def save(bench: Bench) -> Measured:
    return _file(bench, lambda path, tensors: kp.save_tensors(path, tensors, progress=False))
