"""Custom operations: calls, recordings, and the first call of a specialization."""

from __future__ import annotations

import itertools

import numpy as np

import kompute_py as kp

from .bench import Bench
from .calls import scale
from .figures import TIMES, Measured, figure
from .timing import side

_CPU_DRIVERS = ("lavapipe", "swiftshader")  # those that compute


@figure(
    "operation-recorded", "eval of a recorded custom operation", TIMES, "null", 1.05, 1.0,
    baseline="the same shader in an OpAlgoDispatch"
)  # fmt: skip
def operation_recorded(bench: Bench) -> Measured:
    def make(bench: Bench) -> tuple:
        x, y = bench.tensors[:2]
        ours = bench.manager.sequence().record(scale.op(x, out=y))
        algorithm = bench.manager.algorithm([x, y], kp.compile(scale.sources(x)[0]), (16, 1, 1))
        push = np.array([x.size(), 0], np.uint32).tobytes()
        theirs = bench.manager.sequence().record(kp.OpAlgoDispatch(algorithm, push))
        return side(ours.eval), side(theirs.eval)

    return bench.compare_submissions(make)


@figure(
    "operation-new", "first call of a specialization of a custom operation, nothing in the caches", TIMES,
    "null", 1.2, 1.1, baseline="compile the same shader, make the algorithm, record, eval"
)  # fmt: skip
def operation_new(bench: Bench) -> Measured:
    mgr, (x, y) = bench.manager, bench.tensors[:2]
    # Other numbers than in earlier runs, whose modules may be on disk.
    numbers = itertools.count(int.from_bytes(np.random.default_rng().bytes(3), "little") * 64)
    push = np.array([x.size(), 0], np.uint32).tobytes()
    (text,) = scale.sources(x, number=77777)

    def theirs() -> None:
        spirv = kp.compile(text.replace("77777.0", f"{next(numbers)}.0"))
        algorithm = mgr.algorithm([x, y], spirv, (16, 1, 1), push_consts=push)
        mgr.sequence().record(kp.OpAlgoDispatch(algorithm)).eval()

    theirs()
    scale.cache_clear()
    return bench.compare(
        side(lambda: scale(x, number=next(numbers), out=y)), side(theirs), times=10, submits=True
    )


_LARGE = 1 << 24
"""Elements of the rows on a whole device: 64 MiB of float32, 16 MiB in a quick run."""
_READ = """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { vec4 x[]; };
layout(binding = 1) buffer Y { float y[]; };
void main() {
    uint t = gl_GlobalInvocationID.x;
    vec4 sum = vec4(0);
    for (uint k = t * RUN; k < (t + 1) * RUN; ++k) sum += x[k];
    y[t] = sum.x + sum.y + sum.z + sum.w;
}
"""
_COPY = """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { vec4 x[]; };
layout(binding = 1) buffer Y { vec4 y[]; };
void main() {
    uint t = gl_GlobalInvocationID.x;
    for (uint k = t * RUN; k < (t + 1) * RUN; ++k) y[k] = x[k];
}
"""


def _large(bench: Bench) -> tuple[int, kp.Tensor, kp.Tensor]:
    n = _LARGE // 4 if bench.quick else _LARGE
    x = np.random.default_rng(0).random(n, dtype=np.float32)
    return n, bench.manager.tensor_t(x), bench.manager.empty(n)


def _by_hand(bench: Bench, source: str, x: kp.Tensor, y: kp.Tensor) -> kp.Sequence:
    """A kernel of 1,024 invocations, each of which walks through its run."""
    spirv = kp.compile(source.replace("RUN", f"{x.size() // 4096}u"))
    return bench.manager.sequence().record(
        kp.OpAlgoDispatch(bench.manager.algorithm([x, y], spirv, (16, 1, 1)))
    )


def _recorded(bench: Bench, operation: kp.Operation, *args: object, out: kp.Tensor) -> kp.Sequence:
    kp.tune(operation, *args)
    return bench.manager.sequence().record(operation.op(*args, out=out))


@figure(
    "reduction-16m", "sum of 16 M floats by kp.ops.reduction", TIMES, "lavapipe", 1.3, 1.05,
    baseline="a kernel by hand that only reads them"
)  # fmt: skip
def reduction_16m(bench: Bench) -> Measured:
    _, x, y = _large(bench)
    ours = _recorded(bench, kp.ops.reduction(), x, out=bench.manager.empty(()))
    return bench.compare(side(ours.eval), side(_by_hand(bench, _READ, x, y).eval), times=1, submits=True)


@figure(
    "reduction-fused", "sum(a*x+y) of 8 M floats each by kp.ops.reduction", TIMES, "lavapipe", 1.1, 1.0,
    baseline="the sum of 16 M floats"
)  # fmt: skip
def reduction_fused(bench: Bench) -> Measured:
    n, x, _ = _large(bench)
    half = n // 2
    fused = kp.ops.reduction("a * x + y")
    ours = _recorded(bench, fused, 2.0, x[:half], x[half:], out=bench.manager.empty(()))
    theirs = _recorded(bench, kp.ops.reduction(), x, out=bench.manager.empty(()))
    return bench.compare(side(ours.eval), side(theirs.eval), times=1, submits=True)


@figure(
    "scan-16m", "exclusive scan of 16 M floats by kp.ops.scan", TIMES, "lavapipe", 3, 1.5,
    baseline="a kernel by hand that copies them"
)  # fmt: skip
def scan_16m(bench: Bench) -> Measured:
    _, x, y = _large(bench)
    ours = _recorded(bench, kp.ops.scan(neutral=0, exclusive=True), x, out=y)
    return bench.compare(side(ours.eval), side(_by_hand(bench, _COPY, x, y).eval), times=1, submits=True)


@figure(
    "sort-1m", "sort of 1 M uint32 by kp.ops.sort", TIMES, "lavapipe", 60, 30,
    baseline="a kernel by hand that copies them", drivers=_CPU_DRIVERS
)  # fmt: skip
def sort_1m(bench: Bench) -> Measured:
    keys = np.random.default_rng(0).integers(0, 2**32, 1 << 20, dtype=np.uint32)
    x = bench.manager.tensor_t(keys)
    y, z = bench.manager.empty(1 << 20, dtype=np.uint32), bench.manager.empty(1 << 20)
    ours = bench.manager.sequence().record(kp.ops.sort.op(x, out=y))
    theirs = _by_hand(bench, _COPY, x.view(np.float32), z)
    ours.eval()
    assert np.array_equal(y.read(), np.sort(keys))
    return bench.compare(side(ours.eval), side(theirs.eval), times=1, submits=True)


@figure(
    "fft-1m", "transform of 1 M complex64 by kp.ops.fft", TIMES, "lavapipe", 4, 1,
    baseline="NumPy's np.fft.fft", drivers=_CPU_DRIVERS
)  # fmt: skip
def fft_1m(bench: Bench) -> Measured:
    rng = np.random.default_rng(0)
    data = (rng.normal(size=1 << 20) + 1j * rng.normal(size=1 << 20)).astype(np.complex64)
    x, y = bench.manager.tensor_t(data), bench.manager.empty(1 << 20, dtype=np.complex64)
    ours = bench.manager.sequence().record(kp.ops.fft.op(x, out=y))
    ours.eval()
    np.testing.assert_allclose(y.read(), np.fft.fft(data), atol=0.05)
    return bench.compare(side(ours.eval), side(lambda: np.fft.fft(data)), times=1, submits=True)


@figure(
    "matmul-512", "matrix product of 512 x 512 floats by kp.ops.matmul", "ms", "lavapipe", 67, 40,
    baseline="np.matmul", drivers=_CPU_DRIVERS
)  # fmt: skip
def matmul_512(bench: Bench) -> Measured:
    """67 ms are 4 GFLOP/s."""
    a, b = np.random.default_rng(0).normal(size=(2, 512, 512)).astype(np.float32)
    x, y, z = bench.manager.tensor_t(a), bench.manager.tensor_t(b), bench.manager.empty((512, 512))
    ours = bench.manager.sequence().record(kp.ops.matmul.op(x, y, out=z))
    return bench.compare(side(ours.eval), side(lambda: a @ b), times=1, submits=True)


_NORMALS = """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { uvec4 x[]; };
layout(binding = 1) buffer Y { vec4 y[]; };
vec2 normals(uvec2 w) {
    vec2 u = (vec2(w) + 1.0) * 2.3283064365386963e-10;
    return sqrt(max(-2.0 * log(u.x), 0.0)) * vec2(cos(6.2831853 * u.y), sin(6.2831853 * u.y));
}
void main() {
    uint t = gl_GlobalInvocationID.x;
    for (uint k = t * RUN; k < (t + 1) * RUN; ++k) y[k] = vec4(normals(x[k].xy), normals(x[k].zw));
}
"""


@figure(
    "normal-16m", "16 M normal numbers by kp.random", TIMES, "lavapipe", 3, 1.5,
    baseline="a kernel by hand that makes them of random words which it reads", drivers=_CPU_DRIVERS
)  # fmt: skip
def normal_16m(bench: Bench) -> Measured:
    """Both write as many numbers by Box and Muller's transform. The baseline copies random words through it,
    with GLSL's log, sqrt, sin and cos; ours makes the words, by Philox 4x32-10.
    """
    n, _, y = _large(bench)
    words = np.random.default_rng(0).integers(0, 2**32, n, dtype=np.uint32)
    theirs = _by_hand(bench, _NORMALS, bench.manager.tensor_t(words), y)
    ours = bench.manager.sequence().record(kp.random.Generator(0).normal_op(y))
    for each in (ours, theirs):
        each.eval()
        assert abs(y.read().mean()) < 0.01 and abs(y.read().std() - 1) < 0.01
    return bench.compare(side(ours.eval), side(theirs.eval), times=1, submits=True)
