"""Fourier transforms against NumPy's, computed in float64."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kompute_py as kp
from kompute_py._custom import expressions
from kompute_py.ops._signals import chirp as _chirp
from kompute_py.ops._signals import radix as _radix
from kompute_py.ops._signals import transforms as _transforms
from tests.support.child import run_child
from tests.support.sampling import examples, sampled

ONE = ["fft", "ifft", "rfft", "irfft"]
MANY = ["fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"]


@pytest.fixture(autouse=True)
def default(mgr):
    with mgr.current():
        yield
    for name in (*ONE, *MANY):
        getattr(kp.ops, name).cache_clear()


def numbers(shape, dtype=np.complex64, seed=0):
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        return rng.integers(0, 100, shape).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype.kind == "c" else x).astype(dtype)


def has_double(mgr):
    return "shaderFloat64" in mgr.enabled_features


def transformed(x, name, **arguments):
    """NumPy's result in float64, and the bound of the error that the documentation states."""
    wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    expected = getattr(np.fft, name)(wide, **arguments)
    if "axis" in arguments or name in ONE:
        n = max(expected.shape[arguments.get("axis", -1)], x.shape[arguments.get("axis", -1)])
    else:
        n = max(math.prod(expected.shape), math.prod(x.shape))
    return expected, 2 + math.log2(max(n, 1))


def check(result, x, name, **arguments):
    expected, bound = transformed(x, name, **arguments)
    assert result.shape == expected.shape
    assert result.dtype.kind == expected.dtype.kind
    eps = np.finfo(result.dtype).eps
    error = np.linalg.norm(result - expected)
    assert error <= bound * eps * max(np.linalg.norm(expected), np.finfo(np.float32).tiny), (name, x.shape)


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("n", range(1, 41))
def test_each_length(mgr, n):
    x = numbers((3, n))
    check(kp.ops.fft(x), x, "fft")


@pytest.mark.parametrize("n", [1000, 1009, 4096, 2**16, 100003])
def test_long_ones(mgr, n):
    x = numbers(n)
    there = kp.ops.fft(mgr.tensor_t(x))
    check(there.read(), x, "fft")


@pytest.mark.parametrize("n", [2, 15, 17, 256, 1021])
def test_inverse(mgr, n):
    x = numbers((2, n))
    check(kp.ops.ifft(x), x, "ifft")


@pytest.mark.parametrize("n", [4, 17, 2**15])
def test_float64(mgr, n):
    x = numbers((2, n), np.complex128)
    if not has_double(mgr):
        with pytest.raises(kp.UnimplementedError, match=r"no float64; convert it: x.astype\(np.complex64\)"):
            kp.ops.fft(x)
        return
    result = kp.ops.fft(x)
    assert result.dtype == np.complex128
    check(result, x, "fft")
    check(kp.ops.ifft(x), x, "ifft")
    check(kp.ops.rfft(x.real.copy()), x.real, "rfft")


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        ((16, 3, 5), "fft"), ((16, 3, 5), "ifft"), ((3, 17, 4), "ifft"), ((2, 19, 34), "fft"),
        ((4100, 2, 6), "fft"),
    ],
)  # fmt: skip
def test_axes(mgr, shape, name):
    """Short and long axes in front of others, also of those with large prime factors."""
    x = numbers(shape)
    axis = int(np.argmax(np.array(shape) > 10))
    check(getattr(kp.ops, name)(x, axis=axis), x, name, axis=axis)


BEYOND = [((70001, 2, 2), 1), ((140001, 2), 1), ((70001, 3), 1), ((530001, 17), 1)]


@pytest.mark.parametrize(("shared", "invocations"), [(512, 128), (4096, 128), (16384, 256)])
def test_lengths_with_small_primes_in_several_dispatches(monkeypatch, mgr, shared, invocations):
    monkeypatch.setattr(_transforms, "_facts", lambda device: (shared, invocations, False))
    for shape in [(8192,), (3, 1001, 5), (2, 2187, 2), (70, 1000)]:
        kp.ops.fft.cache_clear(), kp.ops.ifft.cache_clear()
        x = numbers(shape)
        axis = x.ndim // 2 if x.ndim != 2 else 1
        check(kp.ops.fft(x, axis=axis), x, "fft", axis=axis)
        t = mgr.tensor_t(x)
        check(kp.ops.ifft(t, axis=axis, out=t).read(), x, "ifft", axis=axis)


@pytest.mark.sampled
def test_each_product_of_small_primes(mgr):
    for n in sampled((14, 15, 77, 96, 143, 150, 182, 243), tuple(range(2, 257))):
        if _radix.is_smooth(n):
            x = numbers((3, n))
            check(kp.ops.fft(x), x, "fft")


@pytest.mark.parametrize("doubles", [False, True])
def test_on_a_gpu_lines_stand_side_by_side(monkeypatch, mgr, needs, doubles):
    """Its plan, and the numbers of it: columns of one dispatch and of two, with groups that are not full."""
    if doubles:
        needs(mgr, "shaderFloat64")
    facts = _transforms._facts
    monkeypatch.setattr(_transforms, "_facts", lambda device: (*facts(device)[:2], True))
    kp.ops.fft.cache_clear(), kp.ops.ifft.cache_clear()
    for length, inner in [(64, 21), (97, 5), (500, 3), (4096, 18), (2187, 5), (1009, 2)]:
        x = numbers((2, length, inner), np.complex128 if doubles else np.complex64)
        check(kp.ops.fft(x, axis=1), x, "fft", axis=1)
        t = mgr.tensor_t(x)
        check(kp.ops.ifft(t, axis=1, out=t).read(), x, "ifft", axis=1)
    parts = _radix.split(4096, False, 32768, 1024, True, doubles)
    assert parts.lengths == (64, 64) and parts.lines == ((8, 8) if doubles else (16, 16))
    least = 32 // (16 if doubles else 8)
    for length in (2, 13, 500, 1000, 2048, 30030, 10**6):
        assert min(_radix.split(length, False, 32768, 1024, True, doubles).lines) >= least


@pytest.mark.parametrize("length", [4096, 65536, 2**20])
@pytest.mark.parametrize("doubles", [False, True])
def test_on_a_processor_lines_fill_a_row_of_its_cache(length, doubles):
    """64 bytes; more only where a line has so few invocations that a workgroup would have less than 8."""
    parts = _radix.split(length, True, 32768, 1024, False, doubles)
    size = 16 if doubles else 8
    for lines, stages in zip(parts.lines, parts.stages, strict=True):
        assert lines * size <= 64 or lines * stages.threads <= 8
    assert max(_chirp.split(length + 1, True, 32768, 1024, False, doubles).lines) * size <= 64


def columns_on_a_gpu():
    with kp.Manager() as mgr:
        x = [mgr.empty((2, n, n), np.complex64) for n in (512, 4096)]
        axes = [repr(kp.ops.fft.bind(each, axis=1)) for each in x]
        return mgr.get_device_properties()["type"], [*axes, repr(kp.ops.fft.bind(x[1]))]


@pytest.mark.own_driver
def test_a_device_that_says_it_is_a_gpu_is_one():
    """Columns of 4,096 numbers are two dispatches, and rows of as many are one."""
    kind, found = run_child(columns_on_a_gpu, driver="null", config="profile=geforce")
    assert kind == "discrete"
    counts = ["1 dispatch", "2 dispatches", "1 dispatch"]
    assert found == [f"<kp.OpCustom fft, {count}>" for count in counts]


def test_a_processor_reads_columns_at_once(mgr):
    x = mgr.zeros((2048, 4), np.complex64)
    count = "1 dispatch" if mgr.get_device_properties()["type"] == "cpu" else "2 dispatches"
    assert repr(kp.ops.fft.bind(x, axis=0)) == f"<kp.OpCustom fft, {count}>"


def test_grids_with_a_surplus(monkeypatch, mgr):
    """Groups beyond the last one would transform lines in place once more."""
    monkeypatch.setattr(expressions, "_MOST_GROUPS", 99)
    for module in (_chirp, _radix):
        monkeypatch.setattr(module, "MOST_GROUPS", 99)
    for shape in [(157, 64, 32), (157, 67, 32)]:  # the first of the two axes is transformed in place
        x = numbers(shape)
        check(kp.ops.fft2(x), x, "fft2")


@pytest.mark.parametrize(("shared", "n"), [(512, 211), (1024, 10007)])
def test_lengths_with_large_primes_in_several_dispatches(monkeypatch, mgr, shared, n):
    # Little shared memory, so that the tables' transform is made of two or three.
    monkeypatch.setattr(_transforms, "_facts", lambda device: (shared, 128, False))
    kp.ops.fft.cache_clear(), kp.ops.ifft.cache_clear()
    for x, name in ((numbers(n), "fft"), (numbers((2, n, 2)), "ifft")):
        check(getattr(kp.ops, name)(x, axis=x.ndim // 2), x, name, axis=x.ndim // 2)
    kp.ops.fft.cache_clear(), kp.ops.ifft.cache_clear()


@pytest.mark.parametrize(("n", "other"), [(97, 127), (1030, 2039), (10007, 16381), (524309, 1000003)])
@pytest.mark.parametrize("doubles", [False, True])
def test_lengths_share_their_kernels(n, other, doubles):
    """So that a driver compiles for the first of them only, whatever the batches and the direction."""
    dtype = np.dtype(np.complex128 if doubles else np.complex64)

    def sources(length, batches, inverse):
        parts = _chirp.split(length, True, 32768, 1024, False, doubles)
        made = _chirp.passes(parts, batches, length, 1, inverse, 1.0, dtype)
        assert len(made) == 2 * len(parts.bits) - 1
        return [each.source for each in made]

    first = sources(n, 1, False)
    assert sources(other, 3, True) == first
    parts = _chirp.split(n, True, 32768, 1024, False, doubles)
    assert len(set(first)) == len(set(parts.bits[:-1])) + 1


@pytest.mark.parametrize(("n", "most"), [(97, 90), (2039, 125), (10007, 125), (65537, 160), (1000003, 195)])
def test_kernels_have_few_accesses_to_memory(n, most):
    """A driver for a CPU compiles for about as long as it has them: 1.5 ms each, with lavapipe."""
    parts = _chirp.split(n, True, 32768, 1024, False, False)
    made = _chirp.passes(parts, 1, n, 1, False, 1.0, np.dtype(np.complex64))
    kernels = {each.source.partition("void main()")[2] for each in made}
    assert sum(len(re.findall(r"\b(?!v\[|c\[)\w+\[", each)) for each in kernels) <= most


@pytest.mark.parametrize(
    ("n", "dispatches", "most"),
    [
        (64, 1, 51),
        (4096, 1, 70),
        (1000, 1, 65),
        (30030, 2, 100),
        (65536, 2, 100),
        (10**6, 2, 100),
        (2**20, 2, 100),
        (2**22, 3, 150),
    ],
)
def test_kernels_of_small_primes_have_few_accesses_to_memory(n, dispatches, most):
    parts = _radix.split(n, True, 32768, 1024, False, False)
    made = _radix.passes(parts, 1, 1, False, 1.0, np.dtype(np.complex64))
    assert math.prod(parts.lengths) == n and len(made) == dispatches
    for each, stages in zip(made, parts.stages, strict=True):
        kernel = each.source.partition("void main()")[2]
        assert len(re.findall(r"\b(?:numbers|given|result|roots)\[", kernel)) == stages.accesses
        butterflies = -(-math.prod(stages.radices) // stages.radices[-1] // stages.threads)
        assert kernel.count("between[") == (0 if each.ends else 2 * butterflies)
        assert all(table.size < n // 2 for table in each.tables)
    assert parts.accesses == sum(each.accesses for each in parts.stages) <= most


@pytest.mark.parametrize("on_gpu", [False, True])
@pytest.mark.parametrize("facts", [(1024, 128), (16384, 128), (32768, 1024), (49152, 1536)])
@pytest.mark.parametrize("doubles", [False, True])
def test_lines_of_small_primes_fit_into_workgroups(facts, doubles, on_gpu):
    for n in (2, 13, 64, 96, 1001, 2187, 4096, 30030, 10**6, 2**20, 3**15, 2**26):
        for is_dense in (False, True):
            _, _, lengths, stages, lines = _radix.split(n, is_dense, *facts, on_gpu, doubles)
            assert math.prod(lengths) == n
            for length, each, side_by_side in zip(lengths, stages, lines, strict=True):
                assert side_by_side >= 1 and side_by_side * each.threads <= facts[1]
                assert side_by_side * length * (16 if doubles else 8) <= facts[0]
                assert math.prod(each.radices) == length


@pytest.mark.parametrize("on_gpu", [False, True])
@pytest.mark.parametrize("facts", [(1024, 128), (2048, 128), (16384, 128), (32768, 1024), (49152, 1536)])
@pytest.mark.parametrize("doubles", [False, True])
def test_lines_fit_into_workgroups(facts, doubles, on_gpu):
    for length in (17, 97, 1009, 4099, 2**15 + 3, 2**20 + 7, 2**26 + 9):
        bits, lines = parts = _chirp.split(length, False, *facts, on_gpu, doubles)
        assert 2 * length - 1 <= 2 ** sum(bits) < 4 * length, parts
        for each, side_by_side in zip(bits, lines, strict=True):
            numbers = side_by_side << each
            assert each >= 3 and numbers * (16 if doubles else 8) <= facts[0] and numbers // 8 <= facts[1]


def test_numbers_beside_each_other(mgr):
    """An axis in front of others, of one dispatch and of several, with groups that are not full."""
    for shape in [(3, 97, 5), (2, 17, 19), (5003, 3), (3, 4099, 2)]:
        x = numbers(shape)
        axis = int(np.argmax(np.array(shape) > 10))
        for name in ("fft", "ifft"):
            check(getattr(kp.ops, name)(x, axis=axis), x, name, axis=axis)
        t = mgr.tensor_t(x)
        check(kp.ops.fft(t, axis=axis, out=t).read(), x, "fft", axis=axis)


def test_nan_of_a_length_with_a_large_prime(mgr):
    x = numbers((4, 97))
    x[1, 96] = np.nan
    x[2, 5] = np.inf
    result = kp.ops.fft(x)
    assert not np.isfinite(result[[1, 2]]).any() and np.isfinite(result[[0, 3]]).all()


@pytest.mark.sampled
def test_more_transforms_than_workgroups_on_an_axis(mgr):
    for shape, axis in sampled(BEYOND[::2], BEYOND):
        x = numbers(shape)
        check(kp.ops.fft(x, axis=axis), x, "fft", axis=axis)


@examples(15)
@given(st.data())
def test_several_axes(data):
    name = data.draw(st.sampled_from(MANY))
    ndim = data.draw(st.integers(2, 4))
    shape = tuple(data.draw(st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=ndim, max_size=ndim)))
    count = 2 if name.endswith("2") else data.draw(st.integers(1, min(ndim, 3)))
    axes = data.draw(st.permutations(range(ndim)))[:count]
    axes = [axis - ndim if data.draw(st.booleans()) else axis for axis in axes]
    s = data.draw(st.none() | st.lists(st.sampled_from([1, 2, 3, 4, 8]), min_size=count, max_size=count))
    if name.startswith("ir") and s is None and shape[axes[-1]] == 1:
        s = [2] * count
    norm = data.draw(st.sampled_from(["backward", "ortho", "forward"]))
    dtype = np.float32 if name.startswith("r") else data.draw(st.sampled_from([np.complex64, np.float32]))
    x = numbers(shape, dtype)
    result = getattr(kp.ops, name)(x, s=s, axes=axes, norm=norm)
    assert result.dtype == (np.float32 if name.startswith("ir") else np.complex64)
    check(result, x, name, s=s, axes=axes, norm=norm)


@examples(15)
@given(
    st.sampled_from(ONE), st.sampled_from([(5,), (3, 6), (2, 3, 4)]), st.integers(-1, 0),
    st.none() | st.sampled_from([1, 2, 5, 8, 12]), st.sampled_from(["backward", "ortho", "forward"]),
)  # fmt: skip
def test_one_axis(name, shape, axis, n, norm):
    x = numbers(shape, np.float32 if name == "rfft" else np.complex64)
    result = getattr(kp.ops, name)(x, n=n, axis=axis, norm=norm)
    check(result, x, name, n=n, axis=axis, norm=norm)


@pytest.mark.parametrize(
    ("shape", "axis", "dtype"),
    [
        ((3, 34), 1, "float32"),  # pairs are read as they stand
        ((16, 3), 0, "int16"),
        ((2, 16), 1, "float64"),
        ((4, 2), 1, "float32"),
    ],
)
def test_real_numbers_of_even_lengths(mgr, needs, shape, axis, dtype):
    if dtype == "float64":
        needs(mgr, "shaderFloat64")
    x = numbers(shape, dtype)
    half = kp.ops.rfft(mgr.tensor_t(x), axis=axis).read()
    check(half, x, "rfft", axis=axis)
    check(kp.ops.irfft(half, axis=axis), half, "irfft", axis=axis)


@pytest.mark.parametrize("n", [8, 9])
@pytest.mark.parametrize("axis", [0, 1])
def test_imaginary_parts_that_count_nothing(mgr, n, axis):
    x = numbers((n, n))
    x.imag[0], x.imag[:, 0] = 1e3, -1e3
    x.imag[n // 2], x.imag[:, n // 2] = 1e4, 3
    check(kp.ops.irfft(x, n=n, axis=axis), x, "irfft", n=n, axis=axis)
    if axis:
        check(kp.ops.irfft2(x, s=(n, n)), x, "irfft2", s=(n, n))
    first = numbers(n // 2 + 1)
    expected = np.fft.irfft(first, n)
    first.imag[0] = np.nan
    np.testing.assert_allclose(kp.ops.irfft(first, n=n), expected, atol=1e-5)


def test_nan_stays_in_its_row(mgr):
    x = numbers((4, 16), np.float32)
    x[1, 3] = np.nan
    half = kp.ops.rfft(x)
    assert np.isnan(half[1]).all() and not np.isnan(half[[0, 2, 3]]).any()
    back = kp.ops.irfft(half)
    assert np.isnan(back[1]).all() and not np.isnan(back[[0, 2, 3]]).any()


def test_real_parts(mgr):
    """Parts of tensors at odd places, whose pairs stand elsewhere than complex numbers may."""
    x = numbers((9, 12), np.float32)
    t = mgr.tensor_t(x)
    for part, array in [
        (t[1:4], x[1:4]),
        (t[:, 1:9], x[:, 1:9]),
        (t[3, 1:7], x[3, 1:7]),
        (t[:, ::2], x[:, ::2]),
    ]:
        check(kp.ops.rfft(part).read(), array, "rfft")
    half, out = numbers((2, 4)), mgr.zeros((5, 6))
    kp.ops.irfft(mgr.tensor_t(half), out=out[1:3])
    check(out.read()[1:3], half, "irfft")
    assert not out.read()[[0, 3, 4]].any()


@examples(10)
@given(st.data())
def test_shifts(data):
    shape = tuple(data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=3)))
    axes = data.draw(
        st.none() | st.integers(-len(shape), len(shape) - 1) | st.permutations(range(len(shape)))
    )
    x = numbers(shape, data.draw(st.sampled_from([np.float32, np.complex64])))
    for name in ("fftshift", "ifftshift"):
        np.testing.assert_array_equal(getattr(kp.ops, name)(x, axes), getattr(np.fft, name)(x, axes))


@pytest.mark.parametrize(
    ("shapes", "axes", "dtypes"),
    [
        ([(9,), (4,)], None, ["float32", "float32"]),
        ([(3,), (200,)], None, ["int16", "float32"]),
        ([(5, 4), (3, 4)], None, ["float32", "complex64"]),
        ([(5, 3, 6), (5, 4, 7)], [2, 1], ["float32", "float32"]),
        # one or two numbers along the last axis
        ([(1,), (1,)], None, ["float32", "float32"]),
        ([(50, 1), (3, 1)], None, ["float32", "float32"]),
        ([(5, 2), (5, 1)], None, ["float32", "complex64"]),
        ([(9, 2), (3, 1)], None, ["float32", "float32"]),
        # in blocks
        ([(20_011,), (33,)], None, ["float32", "float32"]),
        ([(1, 70), (1, 9001)], [1], ["complex64", "int16"]),
        ([(3, 5000, 2), (3, 17, 2)], [1], ["float32", "float32"]),
        ([(2, 1), (2, 3000)], [1], ["float32", "uint8"]),
        # axes that broadcast
        ([(4, 9), (1, 4)], [1], ["float32", "float32"]),
        ([(1, 9, 3), (5, 4, 1)], [1], ["float32", "float32"]),
        ([(1, 6, 4), (5, 1, 3)], [2], ["complex64", "float32"]),
        ([(3, 5000, 1), (1, 17, 2)], [1], ["float32", "float32"]),
        ([(1, 33), (3, 5000)], [1], ["complex64", "float32"]),
    ],
)
def test_convolutions(mgr, shapes, axes, dtypes):
    a, b = (numbers(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True))
    wide = [x.astype(np.complex128) for x in (a, b)]
    every = range(a.ndim) if axes is None else axes
    lengths = [a.shape[axis] + b.shape[axis] - 1 for axis in every]
    spectra = [np.fft.fftn(x, s=lengths, axes=list(every)) for x in wide]
    full = np.fft.ifftn(spectra[0] * spectra[1], axes=list(every))
    for mode in ("full", "same", "valid"):
        expected = full
        for axis in every:
            n, m = a.shape[axis], b.shape[axis]
            first, count = {"full": (0, n + m - 1), "same": ((m - 1) // 2, n)}.get(
                mode, (min(n, m) - 1, abs(n - m) + 1)
            )
            expected = np.take(expected, range(first, first + count), axis)
        on_axes = [(a.shape[axis], b.shape[axis]) for axis in every]
        if mode == "valid" and len({x > y for x, y in on_axes if x != y}) > 1:
            with pytest.raises(kp.InvalidArgumentError, match="neither of"):
                kp.ops.fftconvolve(a, b, mode, axes)
            continue
        result = kp.ops.fftconvolve(a, b, mode, axes)
        assert result.shape == expected.shape and result.dtype.kind == np.result_type(a, b, np.float32).kind
        bound = 4 * (2 + math.log2(math.prod(lengths))) * np.finfo(result.dtype).eps
        assert np.abs(result - expected).max() <= bound * np.linalg.norm(a) * np.linalg.norm(b)
        if a.ndim == 1 and mode == "full":
            np.testing.assert_allclose(expected.real, np.convolve(a, b), rtol=1e-4, atol=1e-4)
    recorded = kp.ops.fftconvolve.op(mgr.tensor_t(a), mgr.tensor_t(b), axes=axes)
    mgr.sequence().record(recorded).eval()
    np.testing.assert_allclose(recorded.results[0].read(), full, atol=1e-5 * np.abs(full).max())


def test_blocks_of_convolutions_keep_faults_apart(mgr):
    """They take fewer passes over the longer array; a NaN reaches only its block and the next one."""
    a, b = numbers((100_000,), "float32"), numbers((50,), "float32")
    a[60_000] = np.nan
    result = kp.ops.fftconvolve(a, b)
    wrong = np.flatnonzero(np.isnan(result))
    assert set(range(60_000, 60_050)) <= set(wrong) and len(wrong) < 10_000
    near = np.convolve(a[:50_000], b)[:50_000]
    np.testing.assert_allclose(result[:50_000], near, atol=1e-4)


@pytest.mark.parametrize("n", [1, 2, 7, 1000])
def test_frequencies(mgr, n):
    for name in ("fftfreq", "rfftfreq"):
        expected = getattr(np.fft, name)(n, 0.3)
        np.testing.assert_allclose(getattr(kp.ops, name)(n, 0.3), expected, rtol=1.2e-7)
        out = mgr.empty(expected.shape)
        assert getattr(kp.ops, name)(n, 0.3, out=out) is out
        np.testing.assert_allclose(out.read(), expected, rtol=1.2e-7)
        if has_double(mgr):
            np.testing.assert_allclose(getattr(kp.ops, name)(n, 0.3, np.float64), expected, rtol=3e-16)
    recorded = kp.ops.fftfreq.op(n)
    mgr.sequence().record(recorded).eval()
    np.testing.assert_allclose(recorded.results[0].read(), np.fft.fftfreq(n), rtol=1.2e-7)


def test_defaults_of_several_axes(mgr):
    x = numbers((2, 3, 4))
    for name in ("fft2", "fftn", "ifft2", "ifftn", "irfft2", "irfftn"):
        check(getattr(kp.ops, name)(x), x, name)
    check(kp.ops.fftn(x, s=[4, 4]), x, "fftn", s=[4, 4], axes=(-2, -1))
    check(kp.ops.fftn(x, s=[-1, 2], axes=[0, 2]), x, "fftn", s=[2, 2], axes=[0, 2])


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "float16", "float32"])
def test_dtypes(mgr, dtype):
    x = numbers((3, 8), dtype)
    wide = has_double(mgr) and np.dtype(dtype).kind in "biu"
    for name in ("fft", "rfft"):
        result = getattr(kp.ops, name)(x)
        assert result.dtype == (np.complex128 if wide else np.complex64)
        check(result, x, name)
        assert getattr(kp.ops, name).meta(kp.TensorSpec((3, 8), np.float32)).dtype == np.complex64


def test_in_place(mgr):
    for n in (12, 17):
        x = numbers((4, n))
        t = mgr.tensor_t(x)
        assert kp.ops.fft(t, out=t) is t
        check(t.read(), x, "fft")
        kp.ops.ifft(t, out=t)
        np.testing.assert_allclose(t.read(), x, atol=1e-5)


def test_parts(mgr):
    x = numbers((6, 8))
    t = mgr.tensor_t(x)
    for part, array in [(t[1:3], x[1:3]), (t[::2], x[::2]), (t[:, 3], x[:, 3]), (t[:, ::-1], x[:, ::-1])]:
        check(kp.ops.fft(part).read(), array, "fft")
    out = mgr.zeros((6, 8), np.complex64)
    kp.ops.fft(t[2:4], out=out[1:3])
    check(out.read()[1:3], x[2:4], "fft")
    assert not out.read()[[0, 3, 4, 5]].any()


@pytest.mark.parametrize("n", [24, 17, 2**15])
def test_recorded(mgr, n):
    """A filter in a sequence, evaluated with other numbers: two transforms share their scratch memory."""
    t = mgr.tensor_t(numbers(n, np.float32))
    half = kp.ops.rfft.op(t)
    back = kp.ops.irfft.op(half.results[0], n)
    sequence = mgr.sequence().record(kp.OpSyncDevice([t])).record(half).record(back)
    for seed in range(3):
        x = t.data()[:] = numbers(n, np.float32, seed)
        sequence.eval()
        check(half.results[0].read(), x, "rfft")
        np.testing.assert_allclose(back.results[0].read(), x, atol=1e-5)


def test_submitted(mgr):
    x = mgr.tensor_t(numbers(64))
    y, z = mgr.empty(64, np.complex64), mgr.empty(64, np.complex64)
    kp.ops.fft.submit(x, out=y)
    kp.ops.ifft.submit(y, out=z).wait()
    np.testing.assert_allclose(z.read(), x.read(), atol=1e-5)


def test_empty(mgr):
    assert kp.ops.fft(np.zeros((0, 8), np.complex64)).shape == (0, 8)
    assert kp.ops.rfft(np.zeros((8, 0), np.float32), axis=0).shape == (5, 0)
    assert kp.ops.irfft(np.zeros((0, 5), np.complex64)).shape == (0, 8)
    assert (kp.ops.fftn(np.complex64(3)) == 3).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: kp.ops.fft(x, axis=2), r"fft: axis is 2, and there are 2 axes"),
        (lambda x: kp.ops.fftn(x, axes=[0, -2]), r"an axis twice"),
        (lambda x: kp.ops.fft(x, n=0), r"the length 0 was given for axis 1"),
        (lambda x: kp.ops.fft(x[:, :0]), r"axis 1 has the length 0"),
        (
            lambda x: kp.ops.irfft(x[:, :1]),
            r"axis 1 has the length 1, and its result would have 2 \* \(1 - 1\) = 0.*n=",
        ),
        (
            lambda x: kp.ops.fft(x, norm="orthogonal"),
            r"norm is 'orthogonal'; it is one of backward, ortho, forward",
        ),
        (lambda x: kp.ops.rfft(x), r"x is complex64, and rfft transforms real numbers; call fft"),
        (lambda x: kp.ops.fft2(x, s=[2]), r"1 lengths for 2 axes"),
        (lambda x: kp.ops.fftconvolve(x, x[0]), r"in1 has 2 axes, and in2 1"),
        (lambda x: kp.ops.fftconvolve(x, x[:2], axes=1), r"lengths 3 and 2 on axis 0; give the same, or 1"),
        (lambda x: kp.ops.fftconvolve(x, x[:, :0]), r"lengths 4 and 0 on axis 1; give elements"),
        (lambda x: kp.ops.fftconvolve(x, x, "half"), r"mode is 'half'"),
        (lambda x: kp.ops.fftfreq(0), r"n is 0"),
        (lambda x: kp.ops.rfftfreq(4, 0), r"d is 0"),
        (lambda x: kp.ops.fftfreq(4, dtype="int32"), r"dtype is int32"),
        (lambda x: kp.ops.rfftn(x.real.copy(), axes=[]), r"no axis to transform"),
    ],
)
def test_errors(mgr, call, message):
    with pytest.raises(kp.InvalidArgumentError, match=message):
        call(numbers((3, 4)))


def test_portable_programs(mgr):
    x = numbers((3, 8))
    program = kp.Program.record(kp.ops.fft, kp.TensorSpec(x.shape, x.dtype), portable=True)
    np.testing.assert_array_equal(program.on(mgr).main(x), kp.ops.fft(mgr.tensor_t(x)).read())
