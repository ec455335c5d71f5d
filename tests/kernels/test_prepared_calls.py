"""Calls that are prepared once and then run natively: the same results and errors as the first time, for all
numbers, memory, shapes and grids; what the table keeps, and what it lets go of.
"""

from __future__ import annotations

import gc
import itertools
import struct
import warnings

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._kernels import prepared
from kompute_py._memory import lending
from tests.support.threads import on_threads

BITS = """#version 450
layout(local_size_x = 1) in;
layout(binding = 0) writeonly buffer Out { uint bits[]; };
layout(push_constant) uniform P { float f; int i; uint u; };
void main() { bits[0] = floatBitsToUint(f); bits[1] = uint(i); bits[2] = u; }
"""
SCALE = """#version 450
layout(local_size_x = 32) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
layout(push_constant) uniform P { float factor; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < y.length()) y[i] = factor * x[i]; }
"""
COUNTED = """#version 450
layout(local_size_x = 32) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
layout(push_constant) uniform P { uint count; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < count) y[i] = x[i] + 1.0; }
"""


@pytest.fixture
def scale(mgr):
    return mgr.kernel(SCALE)


def arange(n):
    return np.arange(n, dtype=np.float32)


# -- numbers -------------------------------------------------------------------------------------------------

NUMBERS = [
    0.0, -0.0, 0, False, True, 1, 1.0, -1, float("nan"), float("inf"), -float("inf"), 1e-45, 3.4028234e38,
    2**24 + 1, 2**60, np.float16(0.5), np.float32(0.1), np.float64(0.1), np.int8(-3), np.uint64(2**63),
    np.int64(7), np.bool_(True),
]  # fmt: skip


def test_numbers_reach_the_shader_bit_by_bit(mgr):
    kernel, out = mgr.kernel(BITS), mgr.tensor_t(np.zeros(3, np.uint32))
    for _ in range(2):  # the first round prepares the call
        for number in NUMBERS:
            kernel(out, f=number, i=-5, u=7, groups=1)
            expected = np.float32(number).view(np.uint32)
            seen = out.read()
            if np.isnan(number):
                assert np.isnan(seen[:1].view(np.float32)[0])
            else:
                assert seen[0] == expected, number
            assert seen[1:].tolist() == [2**32 - 5, 7]
    for i, u in itertools.product(
        [-(2**31), -1, 0, True, 2**31 - 1, np.int16(-9)], [0, 2**32 - 1, np.uint8(5)]
    ):
        kernel(out, f=0.5, i=i, u=u, groups=1)
        assert out.read().tolist() == [struct.unpack("<I", struct.pack("<f", 0.5))[0], int(i) % 2**32, int(u)]


@pytest.mark.parametrize(
    "wrong",
    [
        {"i": 2**31}, {"i": -(2**31) - 1}, {"u": -1}, {"u": 2**32}, {"i": 1.5}, {"i": "1"}, {"f": None},
        {"f": 1e39}, {"f": 2**200}, {"u": np.int64(-1)}, {"f": 1j}, {"f": [1.0]},
    ],
    ids=str,
)  # fmt: skip
def test_numbers_that_do_not_fit_are_refused_after_others_were_prepared(mgr, wrong):
    kernel, out = mgr.kernel(BITS), mgr.tensor_t(np.zeros(3, np.uint32))
    good = {"f": 1.0, "i": 1, "u": 1, "groups": 1}
    with pytest.raises(kp.KomputeError) as first:
        kernel(out, **good | wrong)
    kernel(out, **good)
    before = out.read().tolist()
    with pytest.raises(kp.KomputeError) as later:
        kernel(out, **good | wrong)
    assert type(first.value) is type(later.value)
    assert str(first.value) == str(later.value)
    assert out.read().tolist() == before


@pytest.mark.parametrize(
    "change",
    [{"factr": 1.0}, {"factor": None}, {"push": {"factor": 2.0}}, {"grid": (8,), "groups": (1,)}, {"x": 1}],
    ids=str,
)
def test_other_keywords_are_looked_at_anew(mgr, scale, change):
    x, y = mgr.tensor(arange(8)), mgr.zeros(8)
    scale(x, y, factor=2.0)
    with pytest.raises(kp.KomputeError):
        scale(x, y, **{"factor": 2.0} | change)
    scale(x, y, factor=3.0)
    assert y.read().tolist() == (arange(8) * 3).tolist()


def test_arguments_by_name_in_any_order(mgr, scale):
    x, y, z = mgr.tensor(arange(8)), mgr.zeros(8), mgr.zeros(8)
    for _ in range(3):
        for i, call in enumerate(
            [
                lambda f, o: scale(x, o, factor=f),
                lambda f, o: scale(x, y=o, factor=f),
                lambda f, o: scale(factor=f, y=o, x=x),
                lambda f, o: scale(y=o, factor=f, x=x),
                lambda f, o: scale(x, factor=f, out=o),
                lambda f, o: scale(**{"".join(["fac", "tor"]): f, "x": x, "y": o}),
            ]
        ):
            for out, other in ((y, z), (z, y)):
                other.write(np.zeros(8))
                call(i + 1.5, out)
                assert out.read().tolist() == (arange(8) * (i + 1.5)).tolist()
                assert not other.read().any()


# -- grids ---------------------------------------------------------------------------------------------------


def test_grids_are_told_apart(mgr):
    one_each = mgr.kernel("""#version 450
layout(local_size_x = 1, local_size_y = 1) in;
layout(binding = 0) buffer N { uint n[]; };
void main() { atomicAdd(n[gl_GlobalInvocationID.y], 1u); }""")
    for _ in range(2):
        for keywords, counts in [
            ({"grid": 3}, [3, 0]),
            ({"grid": (3,)}, [3, 0]),
            ({"grid": [2, 2]}, [2, 2]),
            ({"grid": (2, 1)}, [2, 0]),
            ({"groups": (5,)}, [5, 0]),
            ({"groups": (np.int64(4), True)}, [4, 0]),
            ({"grid": (0,)}, [0, 0]),
            ({"grid": (2, 2), "groups": None}, [2, 2]),
        ]:
            n = np.zeros(2, np.uint32)
            one_each(n, **keywords)
            assert n.tolist() == counts, keywords
    for wrong in (-1, (1, 2, 3, 4), (1.5,), "3", {3}, (2**70,)):
        with pytest.raises(kp.KomputeError):
            one_each(np.zeros(2, np.uint32), grid=wrong)


def test_checks_that_depend_on_push_constants_are_made_for_each_value(mgr):
    add = mgr.kernel(COUNTED)
    for x, y in [
        (arange(10), np.zeros(20, np.float32)),
        (mgr.tensor(arange(10)), mgr.zeros(20)),
        (mgr.tensor(arange(10)), mgr.zeros(20)),  # of the same shapes
    ]:
        add(x, y, count=5, grid=20)
        for _ in range(2):
            with pytest.raises(kp.InvalidArgumentError, match=r"'x' has 10 elements"):
                add(x, y, count=11, grid=20)
            add(x, y, count=10, grid=20)
        out = y if isinstance(y, np.ndarray) else y.read()
        assert out.tolist() == [*(arange(10) + 1), *[0] * 10]


# -- arrays --------------------------------------------------------------------------------------------------


def test_arrays_of_changing_shapes(mgr, scale):
    rng = np.random.default_rng(5)
    for _ in range(2):
        for shape in [(1,), (64,), (8, 8), (3, 5, 7), (65,), (1000,), (7, 1), (1, 7), (4096,), (63,)]:
            x = rng.random(shape, np.float32)
            y = np.full(shape, -1, np.float32)
            assert scale(x, y, factor=2.0) is y
            assert np.array_equal(y, x * np.float32(2))
            left_out = scale(x, factor=3.0)
            assert left_out is not x
            assert left_out.shape == shape
            assert np.array_equal(left_out, x * np.float32(3))


QUADS = """#version 450
layout(local_size_x = 32) in;
layout(binding = 0) readonly buffer X { vec4 x[]; };
layout(binding = 1) writeonly buffer Y { vec4 y[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < y.length()) y[i] = x[i] + 1.0; }
"""


@pytest.fixture
def no_longer_way(monkeypatch):
    """Fails a call that is not prepared, from the moment that it is called."""

    def forbid():
        def fail(*_):
            raise AssertionError("the call went the longer way")

        monkeypatch.setattr("kompute_py._kernels.kernel.Call", fail)

    return forbid


def test_what_may_differ_from_a_prepared_call(mgr, scale, no_longer_way):
    quads = mgr.kernel(QUADS)
    x, y = mgr.tensor(arange(8)), mgr.zeros(8)
    scale(x, y, factor=1.0)
    scale(x, y, factor=1.0, grid=(8,))
    scale(arange(8), np.zeros(8, np.float32), factor=1.0)
    scale(x, np.zeros(8, np.float32), factor=1.0)
    quads(np.zeros((3, 4), np.float32), np.zeros((3, 4), np.float32))
    no_longer_way()
    for n in (1, 5, 8, 33, 1000):
        for factor in (0.0, 2, np.float32(3)):
            a, out = arange(n), np.full(n, -1, np.float32)
            assert scale(a, out, factor=factor) is out
            assert np.array_equal(out, a * np.float32(factor))
            t, r = mgr.tensor(a), mgr.zeros(n)
            scale(t, r, factor=factor)
            assert np.array_equal(r.read(), out)
            scale.submit(t, r, factor=1.0).wait()
            mgr.sequence().record(scale.bind(t, r, factor=factor)).eval()
            assert np.array_equal(r.read(), out)
            assert scale.bind(t, r, factor=1.0).groups == (-(-n // 32), 1, 1)
            scale(t, out, factor=4.0)
            assert np.array_equal(out, a * 4)
        for shape in ((n, 4), (2, n, 4), (4 * n,)):
            out = np.zeros(shape, np.float32)
            quads(np.full(shape, 2, np.float32), out)
            assert (out == 3).all()


@pytest.mark.parametrize(
    "sizes", [(8, 9), (9, 8), (0, 8), (8, 0), (0, 0), (6, 8), (5, 5), (2**31, 4)], ids=str
)
def test_sizes_that_are_refused_are_refused_after_others(mgr, sizes):
    outcomes = []
    for prepared_before in (False, True):
        quads = mgr.kernel(QUADS)
        if prepared_before:
            for n in (4, 8):
                quads(np.zeros(n, np.float32), np.zeros(n, np.float32))
        x = np.broadcast_to(np.float32(1), sizes[:1])  # may have more elements than there is memory
        y = np.zeros(sizes[1], np.float32)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", kp.KomputeWarning)
                quads(x if len(x) > 100 else x.copy(), y)
            outcomes.append(y.tolist())
        except kp.KomputeError as error:
            outcomes.append((type(error), str(error)))
    assert outcomes[0] == outcomes[1]


def test_what_a_shader_leaves_keeps_the_callers_contents(mgr):
    add = mgr.kernel(COUNTED)
    for count in (3, 3, 5, 0, 8):
        y = np.full(8, -7, np.float32)
        add(arange(8), y, count=count, grid=8)
        assert y.tolist() == [*(arange(8)[:count] + 1), *[-7] * (8 - count)]
        assert add(arange(8), count=8, grid=8).tolist() == (arange(8) + 1).tolist()


def test_arrays_that_differ_only_in_what_the_key_must_tell(mgr, scale):
    y = np.zeros(8, np.float32)
    scale(arange(8), y, factor=2.0)
    frozen = np.zeros(8, np.float32)
    frozen.flags.writeable = False
    with pytest.raises(kp.InvalidArgumentError, match="read-only"):
        scale(arange(8), frozen, factor=2.0)
    scale(frozen, y, factor=2.0)
    assert not y.any()
    with pytest.raises(kp.ArgumentTypeError, match="float64"):
        scale(arange(8).astype(np.float64), y, factor=2.0)
    every_other = arange(16)[::2]
    scale(every_other, y, factor=2.0)
    assert y.tolist() == (every_other * 2).tolist()
    into = np.zeros(16, np.float32)
    scale(arange(8), into[1::2], factor=2.0)
    assert into.tolist() == [n for i in range(8) for n in (0, 2 * i)]
    swapped = arange(8).astype(">f4")
    for _ in range(2):
        scale(swapped, y, factor=3.0)
        assert y.tolist() == (arange(8) * 3).tolist()
    masked = np.ma.masked_array(arange(8), [True] * 8)
    with pytest.raises(kp.ArgumentTypeError, match="mask"):
        scale(masked, y, factor=2.0)
    with pytest.raises(kp.InvalidArgumentError):
        scale(arange(7), y, factor=2.0)


def test_arrays_and_tensors_together(mgr, scale):
    x, y = mgr.tensor(arange(8)), mgr.zeros(8)
    for factor in (2.0, 3.0, 4.0):
        out = np.zeros(8, np.float32)
        assert scale(x, out, factor=factor) is out
        assert out.tolist() == (arange(8) * factor).tolist()
        assert scale(out, y, factor=1.0) is None
        assert y.read().tolist() == out.tolist()
    assert scale(mgr.tensor(arange(8) + 1), np.zeros(8, np.float32), factor=2.0)[0] == 2


def test_large_arrays(mgr, scale):
    x = arange(100_000)
    for factor in (2.0, 3.0):
        assert np.array_equal(scale(x, factor=factor), x * np.float32(factor))


def test_the_buffers_of_arrays_are_shared_by_sizes(mgr):
    for n in range(1, 5000, 7):
        assert n <= lending.capacity(n) <= max(256, n * 5 // 4)
        assert lending.capacity(lending.capacity(n)) == lending.capacity(n)
    kernel = mgr.kernel(SCALE)
    gc.collect()
    before = kp.alive(detail=True)["buffer"]
    for n in range(100, 8000, 100):
        x = arange(n)
        assert np.array_equal(kernel(x, factor=2.0), x * 2)
        gc.collect(0)
        assert kp.alive(detail=True)["buffer"] - before <= 60  # four sizes between two powers of two
    del kernel
    gc.collect()
    assert kp.alive(detail=True)["buffer"] == before


# -- memory --------------------------------------------------------------------------------------------------


def test_sets_of_tensors_in_turn_beyond_what_is_kept(mgr, monkeypatch):
    monkeypatch.setattr(prepared, "_MOST_ENTRIES", 20)
    kernel = mgr.kernel(SCALE)
    sets = [(mgr.tensor(arange(8) + i), mgr.zeros(8)) for i in range(50)]
    for factor in (2.0, 3.0):
        for x, y in sets:
            kernel(x, y, factor=factor)
            assert len(kernel._table) <= 20
        for i, (_, y) in enumerate(sets):
            assert y.read().tolist() == ((arange(8) + i) * factor).tolist()


def test_more_sets_than_recordings(mgr, scale):
    sets = [(mgr.tensor(arange(4) + i), mgr.zeros(4)) for i in range(600)]
    for factor in (2.0, 3.0):
        for x, y in sets:
            scale(x, y, factor=factor)
    for i, (_, y) in enumerate(sets):
        assert y.read().tolist() == ((arange(4) + i) * 3).tolist()


def test_tensors_that_end_are_forgotten(mgr, scale):
    x = mgr.tensor(arange(8))
    scale(x, mgr.zeros(8), factor=2.0)
    gc.collect()
    before = kp.alive(detail=True)
    for i in range(20):
        y = mgr.zeros(8)  # may get the address of the last one
        scale(x, y, factor=float(i))
        scale.submit(x, y, factor=float(i)).wait()
        assert y.read().tolist() == (arange(8) * i).tolist()
        scale(x[:4], y[:4], factor=1.0)
        del y
    gc.collect()
    assert len(scale._table) == 0
    assert kp.alive(detail=True) == before


def test_other_shapes_at_the_address_of_a_tensor_that_ended(mgr, scale):
    for n in [8, 16, 8, 24, 4] * 4:
        x, y = mgr.tensor(arange(n)), mgr.zeros(n)
        scale(x, y, factor=2.0)
        assert y.read().tolist() == (arange(n) * 2).tolist()
        del x, y


def test_views_are_made_anew_for_each_call(mgr, scale):
    x, y = mgr.tensor(arange(256)), mgr.zeros(256)
    for start in [0, 64, 128, 64, 0, 192]:
        for _ in range(2):
            scale(x[start : start + 64], y[start : start + 64], factor=start + 1.0)
        assert (
            y.read()[start : start + 64].tolist() == (arange(256)[start : start + 64] * (start + 1)).tolist()
        )
    kept = x[64:128]
    for _ in range(3):
        scale(kept, y[:64], factor=2.0)
        assert y.read()[:64].tolist() == (arange(256)[64:128] * 2).tolist()
    gc.collect()
    assert len(scale._table) > 0
    del x, kept
    gc.collect()
    assert len(scale._table) == 0


@pytest.mark.parametrize("call", ["__call__", "submit", "bind"])
def test_destroyed_memory_is_refused(mgr, scale, call):
    x, y = mgr.tensor(arange(8)), mgr.zeros(8)
    run = getattr(scale, call)
    for _ in range(2):
        run(x, y, factor=2.0)
    x.destroy()
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        run(x, y, factor=2.0)
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        run(x, mgr.zeros(8), factor=2.0)
    other = mgr.tensor(arange(8))
    getattr(scale, call)(other, y, factor=3.0)


@pytest.mark.parametrize("call", ["__call__", "submit", "bind"])
def test_tensors_of_another_manager_are_refused(mgr, scale, call):
    run = getattr(scale, call)
    run(mgr.tensor(arange(8)), mgr.zeros(8), factor=2.0)
    with kp.Manager() as other, pytest.raises(kp.InvalidArgumentError, match="belongs to"):
        run(other.tensor(arange(8)), mgr.zeros(8), factor=2.0)


def test_a_kernel_is_freed_with_all_that_it_prepared(mgr):
    gc.collect()
    before = kp.alive(detail=True)
    kernel = mgr.kernel(SCALE)
    counted = mgr.kernel(COUNTED)
    x, y = mgr.tensor(arange(8)), mgr.zeros(8)
    kernel(x, y, factor=1.0)
    kernel(arange(8), factor=1.0)
    kernel.submit(x, y, factor=1.0)
    counted(x, mgr.zeros(12), count=4, grid=8)  # has a check of its push constants
    counted(arange(8), np.zeros(12, np.float32), count=4, grid=8)
    operation = kernel.bind(x, y, factor=5.0)
    del kernel, counted
    mgr.sequence().record(operation).eval()
    assert y.read().tolist() == (arange(8) * 5).tolist()
    del operation, x, y
    gc.collect()
    mgr.memory.trim()
    assert kp.alive(detail=True) == before


# -- bind and submit -----------------------------------------------------------------------------------------


def test_bound_operations_are_independent(mgr, scale):
    x, y, z = mgr.tensor(arange(8)), mgr.zeros(8), mgr.zeros(8)
    for _ in range(2):
        first, second = scale.bind(x, y, factor=2.0), scale.bind(x, z, factor=3.0, grid=(8,))
        assert first.push_constants == {"factor": 2.0}
        assert first.groups == second.groups == (1, 1, 1)
        sequence = mgr.sequence().record(first, second)
        sequence.eval()
        first.set(factor=5.0)
        scale(x, z, factor=7.0)
        assert z.read().tolist() == (arange(8) * 7).tolist()
        sequence.eval()
        assert y.read().tolist() == (arange(8) * 5).tolist()
        assert z.read().tolist() == (arange(8) * 3).tolist()
    with pytest.raises(kp.ArgumentTypeError, match="bind and submit copy nothing"):
        scale.bind(arange(8), y, factor=2.0)
    scale(arange(8), y, factor=2.0)
    for call in (scale.bind, scale.submit):
        with pytest.raises(kp.ArgumentTypeError, match="bind and submit copy nothing"):
            call(arange(8), y, factor=2.0)


def test_many_submissions_at_once(mgr):
    step = mgr.kernel("""#version 450
layout(local_size_x = 1) in;
layout(binding = 0) buffer X { uint x[]; };
layout(push_constant) uniform P { uint factor, plus; };
void main() { x[0] = x[0] * factor + plus; }""")
    x = mgr.tensor_t(np.ones(1, np.uint32))
    expected = 1
    fences = []
    for i in range(300):
        fences.append(step.submit(x, factor=3, plus=i, groups=1))
        expected = (expected * 3 + i) % 2**32
        if i % 50 == 49:
            step(x, factor=1, plus=1, groups=1)
            expected += 1
    for fence in fences:
        assert fence.wait().done()
    assert x.read()[0] == expected


def test_threads_call_one_kernel(mgr, scale):
    def work(number):
        x, y = mgr.tensor(arange(64) + number), mgr.zeros(64)
        for i in range(40):
            factor = float(number * 100 + i)
            scale(x, y, factor=factor)
            out = scale(arange(64 + i % 3), factor=factor)
            fresh = mgr.zeros(64)
            scale.submit(x, fresh, factor=factor).wait()
            np.testing.assert_array_equal(y.read(), (arange(64) + number) * np.float32(factor))
            np.testing.assert_array_equal(out, arange(64 + i % 3) * np.float32(factor))
            np.testing.assert_array_equal(fresh.read(), y.read())

    on_threads(work, range(4))


def test_images_are_recognized(mgr):
    fill = mgr.kernel("""#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0, r32f) uniform writeonly image2D img;
layout(push_constant) uniform P { float value; };
void main() { imageStore(img, ivec2(gl_GlobalInvocationID.xy), vec4(value)); }""")
    images = [mgr.image(np.zeros((4, 5), np.float32)) for _ in range(3)]
    for value in (1.0, 2.0, 3.0):
        for i, image in enumerate(images):
            fill(image, value=value + i)
            fill.submit(image, value=value + 10 * i).wait()
            assert (image.read() == value + 10 * i).all()
    del image
    images.clear()
    gc.collect()
    assert len(fill._table) == 0


def test_calls_whose_groups_the_device_reads(mgr):
    count = mgr.kernel("""#version 450
layout(local_size_x = 1) in;
layout(binding = 0) buffer X { uint x[]; };
layout(push_constant) uniform P { uint plus; };
void main() { atomicAdd(x[0], plus); }""")
    x, y = (mgr.tensor_t(np.zeros(1, np.uint32)) for _ in range(2))
    groups = mgr.tensor_t(np.ones(6, np.uint32))
    expected = 0
    for n in range(1, 6):
        groups.write(np.array([n, 1, 1, 2 * n, 1, 1], np.uint32))
        count(x, indirect=groups, plus=3)
        count.submit(x, indirect=groups, plus=n).wait()
        mgr.sequence().record(count.bind(x, indirect=groups, plus=1)).eval()
        count(x, indirect=groups[3:], plus=5)
        expected += n * (3 + n + 1) + 2 * n * 5
        assert x.read()[0] == expected
        assert count._table.call((x,), {"indirect": groups, "plus": 0}) is None  # without Python
        assert count._table.call((y,), {"indirect": groups, "plus": 0}) is NotImplemented
    assert count.bind(x, indirect=groups, plus=1).groups is None
    groups.destroy()
    for _ in range(2):
        with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
            count(x, indirect=groups, plus=1)
    del groups, x
    gc.collect()
    assert len(count._table) == 0


def test_prepared_calls_have_the_kernels_latest_name(mgr, scale):
    x, y = mgr.tensor(arange(8)), mgr.zeros(8)
    for name in ("first", "second"):
        scale.name = name
        for _ in range(3):
            scale(x, y, factor=2.0)
            assert scale.bind(x, y, factor=2.0)._native.algorithm.name == name


BODIES = {
    "plain": "y[i] = x[i];",
    "checked": "if (i < y.length()) y[i] = x[i];",
    "halved": "if (i < y.length()) y[i] = x[i / 2];",
    "masked": "y[i & 3] = x[0];",
    "reversed": "y[y.length() - 1 - i] = x[i];",
    "shifted": "if (i + 1 < y.length()) y[i + 1] = x[i];",
    "by the other's length": "if (i < x.length()) y[i] = x[i];",
    "group and index": "y[gl_WorkGroupID.x * 8 + gl_LocalInvocationIndex] = x[i];",
    "neighbours": "if (i < y.length()) y[i] = x[i] + x[i + 1];",
}


@pytest.mark.parametrize("tensors", [False, True], ids=["arrays", "tensors"])
@pytest.mark.parametrize("body", BODIES)
def test_a_prepared_kernel_does_what_a_new_one_does(mgr, body, tensors):
    source = f"""#version 450
layout(local_size_x = 8) in;
layout(binding = 0) readonly buffer X {{ float x[]; }};
layout(binding = 1) buffer Y {{ float y[]; }};
void main() {{ uint i = gl_GlobalInvocationID.x; {BODIES[body]} }}"""

    def outcome(kernel, sizes, **keywords):
        x, y = arange(sizes[0]) + 1, np.zeros(sizes[1], np.float32)
        given = [mgr.tensor(x), mgr.tensor(y)] if tensors else [x, y]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", kp.KomputeWarning)
                kernel(*given, **keywords)
        except kp.KomputeError as error:
            return type(error), str(error)
        return (given[1].read() if tensors else y).tolist()

    prepared_kernel = mgr.kernel(source, name="k")
    sizes = [(16, 16), (8, 8), (13, 13), (16, 8), (8, 16), (17, 4), (4, 4), (32, 32), (33, 32), (3, 40)]
    for keywords in ({}, {"grid": (16,)}, {"groups": (2,)}):
        for each in sizes:
            fresh = outcome(mgr.kernel(source, name="k"), each, **keywords)
            assert outcome(prepared_kernel, each, **keywords) == fresh, (each, keywords)


# -- outputs that are left out -------------------------------------------------------------------------------

ADD = """#version 450
layout(local_size_x = 32) in;
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) readonly buffer B { float b[]; };
layout(binding = 2) writeonly buffer C { float c[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < c.length()) c[i] = a[i] + b[i]; }
"""


def test_outputs_that_are_left_out_are_made_without_python(mgr, no_longer_way):
    add = mgr.kernel(ADD)
    a = arange(80)
    x, y, z = mgr.tensor(a), mgr.tensor(2 * a), mgr.tensor(3 * a)
    w = mgr.tensor(arange(7))
    for tensors in ((x, y), (w, w), (x, a)):
        add(*tensors)
    no_longer_way()
    results = [add(x, y), add(y, z), add(z, x), add(x, y), add(x, a + 1)]
    assert len({id(each) for each in results}) == 5
    assert len({each.vk_buffer for each in results}) == 5
    for result, expected in zip(results, (3 * a, 5 * a, 4 * a, 3 * a, 2 * a + 1), strict=True):
        assert type(result) is kp.Tensor
        assert result.shape == (80,)
        assert result.dtype == np.float32
        assert np.array_equal(result.read(), expected)
    assert np.array_equal(add(w, w).read(), 2 * arange(7))
    assert np.array_equal(add(add(x, y), z).read(), 6 * a)
    assert np.array_equal(add(x[:7], w).read(), 2 * arange(7))
    assert np.array_equal(add(x[64:71], w).read(), 64 + 2 * arange(7))


def test_a_part_that_cannot_be_bound_is_copied_as_the_first_time(mgr):
    add = mgr.kernel(ADD)
    x, y = mgr.tensor(arange(40)), mgr.tensor(arange(7))
    for first in (1, 0, 1, 1):
        assert np.array_equal(add(x[first : first + 7], y).read(), first + 2 * arange(7))


def test_what_a_prepared_call_leaves_in_a_new_output_is_zero(mgr):
    some = mgr.kernel("""#version 450
layout(local_size_x = 32) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) if (x[i] > 0.0) y[i] = x[i]; }""")
    x = mgr.tensor(np.array([1, -1, 2, -2], np.float32))
    for _ in range(4):
        mgr.full(4, 7.0).destroy()  # memory to be given again
        result = some(x)
        assert np.array_equal(result.read(), [1, 0, 2, 0])
        del result


def test_an_output_that_is_left_out_is_refused_by_bind(mgr):
    add = mgr.kernel(ADD)
    x = mgr.tensor(arange(4))
    add(x, x)
    with pytest.raises(kp.InvalidArgumentError, match="missing argument 'c'"):
        add.bind(x, x)


def test_new_push_constants_are_checked_with_outputs_left_out(mgr):
    counted = mgr.kernel(COUNTED)
    x = mgr.tensor(arange(8))
    assert np.array_equal(counted(x, count=8).read(), arange(8) + 1)
    for _ in range(2):
        assert np.array_equal(counted(x, count=8).read(), arange(8) + 1)
        with pytest.raises(kp.InvalidArgumentError, match="write 5 elements, but 8"):
            counted(x, count=5)
