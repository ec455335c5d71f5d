"""Sorts, against NumPy's stable sort."""

from __future__ import annotations

from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import kompute_py as kp
from tests.ops.variants import only
from tests.support.sampling import examples

pytestmark = pytest.mark.usefixtures("current")


sort_in_groups, argsort_in_groups, segmented_in_groups = (
    only(each, "subgroup") for each in (kp.ops.sort, kp.ops.argsort, kp.ops.segmented_sort)
)
SORTS = {
    "run": (kp.ops.sort, kp.ops.argsort),
    "subgroup": (sort_in_groups, argsort_in_groups),
}
DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "float16", "int32", "uint32", "float32"]
WIDE = {"int64": "shaderInt64", "uint64": "shaderInt64", "float64": "shaderFloat64"}


def numbers(dtype, shape, seed=0):
    """Any bits, many ties, and of floats all special numbers."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        x = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
        return np.where(rng.random(shape) < 0.3, x // (info.max // 2 + 1), x).astype(dtype)
    special = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0], dtype)
    x = (rng.normal(size=shape) * 10.0 ** rng.integers(-3, 4, shape)).astype(dtype)
    return np.where(rng.random(shape) < 0.4, rng.choice(special, shape), x).astype(dtype)


def same(got, want):
    """The same numbers, also the signs of zeros."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_array_equal(got, want)
    if want.dtype.kind == "f":
        zeros = want == 0
        np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(want[zeros]))


def highest_first(x, axis):
    """The places of a descending stable sort, NaN first."""
    return x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis, stable=True), axis)


@examples(25)
@given(data=st.data())
def test_short_lines(data):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=7))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    dtype = data.draw(st.sampled_from(["int8", "float32"]))
    x = numbers(dtype, shape, data.draw(st.integers(0, 99)))
    same(kp.ops.sort(x, axis), np.sort(x, axis, stable=True))
    order = kp.ops.argsort(x, axis)
    assert order.shape == x.shape
    np.testing.assert_array_equal(order, np.argsort(x, axis, stable=True))
    down = kp.ops.argsort(x, axis, descending=True)
    np.testing.assert_array_equal(down, highest_first(x, axis))


@pytest.mark.parametrize(
    ("variant", "dtype"),
    [
        *(("run", dtype) for dtype in (*DTYPES, *WIDE)),
        *(("subgroup", dtype) for dtype in ("uint16", "float32", "int64")),
    ],
)
def test_long_lines_of_each_dtype(mgr, needs, dtype, variant):
    if dtype in WIDE:
        needs(mgr, WIDE[dtype])
    sort, argsort = SORTS[variant]
    for n in (257, 5003):
        x = numbers(dtype, n, n)
        same(sort(x), np.sort(x, stable=True))
        if dtype in ("float32", "uint16"):
            np.testing.assert_array_equal(argsort(x), np.argsort(x, stable=True))


@pytest.mark.each_driver
def test_lines_of_so_many_runs_that_their_digits_are_added_up_in_blocks():
    """More than 64 runs of up to 4,096 elements; with 264,001 elements the last block is not full."""
    for shape in ((264_001,), (2, 264_001)):
        x = numbers("int16", shape)
        same(sort_in_groups(x), np.sort(x, stable=True))
        np.testing.assert_array_equal(argsort_in_groups(x), np.argsort(x, stable=True))
    ends = np.array([3, 60, 264_001 - 70], np.int32)
    same(segmented_in_groups(x[0], ends), sorted_parts(x[0], ends))


@examples(8)
@given(data=st.data())
@pytest.mark.parametrize("variant", SORTS)
def test_long_lines_on_any_axis(variant, data):
    shape = data.draw(
        st.permutations(
            [data.draw(st.integers(257, 2999)), *data.draw(st.lists(st.integers(1, 3), max_size=3))]
        )
    )
    axis = int(np.argmax(shape))
    x = numbers("int16", shape, 3)
    _, argsort = SORTS[variant]
    np.testing.assert_array_equal(argsort(x, axis), np.argsort(x, axis, stable=True))
    np.testing.assert_array_equal(argsort(x, axis, descending=True), highest_first(x, axis))


@examples(10)
@given(data=st.data())
def test_many_lines_are_merged(data):
    n, lines = data.draw(st.sampled_from([1, 7, 8, 9, 100, 257, 1031])), data.draw(st.integers(16, 40))
    shape = data.draw(st.sampled_from([(lines, n), (n, lines), (4, n, lines // 4)]))
    axis = shape.index(n)
    x = numbers(data.draw(st.sampled_from(["uint8", "int16", "float32"])), shape, n)
    same(kp.ops.sort(x, axis), np.sort(x, axis, stable=True))
    down = data.draw(st.booleans())
    order = highest_first(x, axis) if down else np.argsort(x, axis, stable=True)
    np.testing.assert_array_equal(kp.ops.argsort(x, axis, descending=down), order)
    keys, places = kp.ops.sort_by_key(x, order.astype(np.int32), axis, descending=down)
    same(keys, np.take_along_axis(x, order, axis))
    np.testing.assert_array_equal(places, np.take_along_axis(order, order, axis))


@pytest.mark.parametrize("dtype", ["bool", "float16", "uint32", *WIDE])
def test_dtypes_of_merged_lines(mgr, needs, dtype):
    if dtype in WIDE:
        needs(mgr, WIDE[dtype])
    x = numbers(dtype, (17, 300))
    same(kp.ops.sort(x), np.sort(x, stable=True))
    np.testing.assert_array_equal(kp.ops.argsort(x), np.argsort(x, stable=True))


def test_the_longest_merged_lines():
    x = numbers("float32", (16, 4096))  # all turns of an invocation's loops count together
    np.testing.assert_array_equal(kp.ops.argsort(x, 1), np.argsort(x, 1, stable=True))


def test_views_and_out_and_in_place(mgr):
    x = mgr.tensor_t(numbers("float32", (40, 30)))
    array = x.read()
    same(kp.ops.sort(x[::2]).read(), np.sort(array[::2], stable=True))
    same(kp.ops.sort(x[:, 0]).read(), np.sort(array[:, 0], stable=True))
    out = mgr.empty((40, 30))
    assert kp.ops.sort(x, 0, out=out) is out
    same(out.read(), np.sort(array, 0, stable=True))
    kp.ops.sort(x, out=x)
    same(x.read(), np.sort(array, stable=True))
    long = mgr.tensor_t(numbers("float32", 1000))
    want = np.sort(long.read(), stable=True)
    kp.ops.sort(long, out=long)
    same(long.read(), want)


def test_in_a_sequence_again_and_again(mgr):
    x, y = mgr.tensor_t(numbers("uint32", 3001)), mgr.tensor_t(np.zeros(3001, np.uint32))
    sequence = mgr.sequence().record(kp.ops.sort.op(x, out=y))
    for seed in range(3):
        given = numbers("uint32", 3001, seed)
        x.write(given)
        sequence.eval()
        same(y.read(), np.sort(given))


def test_memory_apart_from_the_hosts(make_manager):
    mgr = make_manager(force_staging=True)
    x = mgr.tensor_t(numbers("float32", 3001))
    same(kp.ops.sort(x).read(), np.sort(x.read(), stable=True))


@pytest.mark.parametrize("n", [0, 1, 100, 2999])
def test_values_in_the_order_of_their_keys(n):
    keys, values = numbers("uint8", n), np.arange(n, dtype=np.float32)
    order = np.argsort(keys, stable=True)
    got = kp.ops.sort_by_key(keys, values)
    same(got[0], keys[order])
    same(got[1], values[order])


def test_values_of_other_dtypes_and_axes():
    keys = numbers("float32", (300, 3))
    values = (np.arange(900) * (1 + 2j)).astype(np.complex64).reshape(300, 3)
    order = highest_first(keys, 0)
    got = kp.ops.sort_by_key(keys, values, 0, descending=True)
    same(got[0], np.take_along_axis(keys, order, 0))
    np.testing.assert_array_equal(got[1], np.take_along_axis(values, order, 0))


SEGMENTED = {"run": kp.ops.segmented_sort, "subgroup": segmented_in_groups}


def sorted_parts(keys, ends):
    return np.concatenate([np.sort(part, stable=True) for part in np.split(keys, ends)])


@examples(6)
@given(data=st.data())
@pytest.mark.parametrize("variant", SEGMENTED)
def test_segments(variant, data):
    n = data.draw(st.integers(1, 3000))
    count = data.draw(st.sampled_from([1, 7, 254]))
    ends = np.sort(np.random.default_rng(n).integers(0, n + 1, count)).astype(np.int32)
    keys = numbers("int16", n)
    same(SEGMENTED[variant](keys, ends), sorted_parts(keys, ends))


def test_many_segments_and_none():
    keys = numbers("uint8", 5000)
    ends = np.arange(0, 5001, 10, dtype=np.uint32)
    same(kp.ops.segmented_sort(keys, ends), np.sort(keys.reshape(-1, 10)).reshape(-1))
    same(kp.ops.segmented_sort(keys, np.zeros(0, np.int32)), np.sort(keys))


@pytest.mark.parametrize(("variant", "dtype"), [("run", "float32"), ("run", "uint8"), ("subgroup", "int32")])
def test_long_segments_beside_short_ones(variant, dtype):
    rng = np.random.default_rng(5)
    lengths = [3, 0, 6000, 1, 4096, 4097, 0, 5, 12_000, 70, *rng.integers(0, 90, 400)]
    ends = np.cumsum(lengths).astype(np.uint16)
    keys = numbers(dtype, int(ends[-1]) + 9)
    same(SEGMENTED[variant](keys, ends), sorted_parts(keys, ends))


def test_more_long_segments_than_a_digit_counts():
    keys, ends = numbers("int32", 30_000), np.arange(0, 30_000, 100, dtype=np.int32)
    same(segmented_in_groups(keys, ends), sorted_parts(keys, ends))


def test_offsets_beyond_the_ends(mgr, needs):
    needs(mgr, "shaderInt64")
    keys = numbers("float32", 500)
    ends = np.array([-(2**40), -1, 0, 20, 499, 500, 2**32 + 7, 2**60])
    same(kp.ops.segmented_sort(keys, ends), sorted_parts(keys, np.clip(ends, 0, 500)))


@pytest.mark.parametrize("n", [50, 9000])
@pytest.mark.parametrize("variant", SEGMENTED)
def test_offsets_that_do_not_ascend_lose_no_element(variant, n):
    keys = numbers("float32", n)
    got = SEGMENTED[variant](keys, np.int32([n // 2, 7, n // 3, -1, n]))
    np.testing.assert_array_equal(np.sort(got), np.sort(keys))


@examples(10)
@given(data=st.data())
def test_highest_and_lowest(data):
    n = data.draw(st.sampled_from([1, 5, 256, 257, 1500]))
    shape = data.draw(st.permutations([n, 2]))
    axis = shape.index(n)
    k = data.draw(st.integers(0, min(n, 9)))
    x = numbers("float32", shape, n)
    for largest in (True, False):
        order = highest_first(x, axis) if largest else np.argsort(x, axis, stable=True)
        order = np.take(order, np.arange(k), axis)
        values, indices = kp.ops.topk(x, k, axis, largest=largest)
        np.testing.assert_array_equal(indices, order)
        same(values, np.take_along_axis(x, order, axis))


def test_a_million_keys(mgr):
    x = np.random.default_rng(1).integers(0, 2**32, 1_000_003, dtype=np.uint32)
    same(kp.ops.sort(mgr.tensor_t(x)).read(), np.sort(x))


def test_indices_are_those_of_numpy_where_the_device_has_them(mgr):
    wide = kp.ops.argsort.meta(kp.TensorSpec((3,), "float32")).dtype
    assert wide == np.int64
    assert kp.ops.argsort(np.ones(3, np.float32)).dtype in (np.int64, np.int32)


def test_errors():
    with pytest.raises(kp.InvalidArgumentError, match="no axes"):
        kp.ops.sort(np.float32(1).reshape(()))
    with pytest.raises(kp.InvalidArgumentError, match="axis is 2"):
        kp.ops.sort(np.ones((2, 2), np.float32), 2)
    with pytest.raises(kp.errors.UnimplementedError, match="complex64 are not sorted"):
        kp.ops.sort(np.ones(2, np.complex64))
    with pytest.raises(kp.InvalidArgumentError, match="one shape"):
        kp.ops.sort_by_key(np.ones(2, np.int32), np.ones(3, np.int32))
    with pytest.raises(kp.InvalidArgumentError, match="k is 3"):
        kp.ops.topk(np.ones(2, np.int32), 3)
    with pytest.raises(kp.errors.ArgumentTypeError, match="give ints"):
        kp.ops.segmented_sort(np.ones(2, np.int32), np.ones(1, np.float32))
    with pytest.raises(kp.InvalidArgumentError, match="one axis each"):
        kp.ops.segmented_sort(np.ones((2, 2), np.int32), np.ones(1, np.int32))


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_small_floats(name):
    x = numbers("float32", 700).astype(getattr(ml_dtypes, name))
    order = np.argsort(x.astype(np.float32), stable=True)
    np.testing.assert_array_equal(kp.ops.argsort(x), order)
    got = kp.ops.sort(x).astype(np.float32)
    np.testing.assert_array_equal(got, x[order].astype(np.float32))


def test_subgroups_only_of_a_known_size():
    gpu = {
        "type": "discrete", "vendor_id": 0x10DE, "subgroup_operations": ["basic", "ballot"],
        "subgroup_size": 32, "subgroup_sizes": (8, 32),
    }  # fmt: skip
    intel = {**gpu, "vendor_id": 0x8086}
    choice = {"subgroupSizeControl", "computeFullSubgroups"}
    ways = [
        (gpu, set(), ["subgroup", "run"]),
        (intel, set(), ["run"]),
        (intel, {"subgroupSizeControl"}, ["run"]),
        (intel, choice, ["subgroup", "run"]),  # the kernels ask for a size
        ({**gpu, "subgroup_operations": ["basic"]}, choice, ["run"]),
        ({**gpu, "type": "cpu"}, choice, ["run"]),
        (None, set(), ["run"]),
    ]
    for device, features, names in ways:
        given = SimpleNamespace(device=device, has=features.__contains__)
        assert kp.ops.sort.__wrapped__().variants(given) == names


@pytest.mark.parametrize("n", [6, 2000, 90_000])
def test_structs_in_the_order_of_their_keys(mgr, n):
    rng = np.random.default_rng(n)
    structs = np.zeros((2, n), [("shop", np.int32), ("sale", np.float32), ("day", np.uint16, 2)])
    structs["shop"], structs["sale"] = rng.integers(0, 50, (2, n)), rng.normal(size=(2, n))
    structs["day"] = rng.integers(0, 99, (2, n, 2))
    tensor = mgr.tensor_t(structs)
    for key in ("shop", "sale"):
        want = np.take_along_axis(structs, np.argsort(structs[key], axis=-1, kind="stable"), -1)
        for keys, values in ((structs[key], structs), (tensor[key], tensor)):
            np.testing.assert_array_equal(kp.ops.sort_by_key(keys, values)[1], want)
    with pytest.raises(
        kp.UnimplementedError, match=r"keys is of the dtype .* Give it a field, keys\['shop'\]"
    ):
        kp.ops.sort_by_key(tensor, tensor["shop"])


@pytest.mark.parametrize("axis", [-1, 0])
def test_several_keys(mgr, axis):
    rng = np.random.default_rng(3)
    keys = rng.integers(0, 4, (7, 300)).astype(np.int32), rng.integers(0, 3, (7, 300)).astype(np.float32)
    want = np.lexsort(keys, axis)
    np.testing.assert_array_equal(kp.ops.lexsort(keys, axis), want)
    np.testing.assert_array_equal(kp.ops.lexsort([mgr.tensor_t(each) for each in keys], axis), want)
    rows = mgr.tensor_t(np.stack([keys[0][0], keys[0][1]]))
    np.testing.assert_array_equal(kp.ops.lexsort(rows), np.lexsort(rows.read()))
    recorded = kp.ops.lexsort.bind([mgr.tensor_t(each) for each in keys], axis)
    mgr.sequence().record(recorded).eval()
    np.testing.assert_array_equal(recorded.results[0], want)
    for none in ((), np.zeros((0, 3), np.float32), 5.0):
        with pytest.raises(kp.InvalidArgumentError, match="there are no keys"):
            kp.ops.lexsort(none)
