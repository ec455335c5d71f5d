"""Parts of a sorted axis, against NumPy's stable sort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kompute_py as kp
from kompute_py.ops._orders.selecting import SelectOp
from tests.ops.orders.test_sorting import DTYPES, WIDE, highest_first, numbers, same
from tests.support.sampling import examples

pytestmark = pytest.mark.usefixtures("current")


def in_groups(operation):
    """The variant for devices with subgroups, on processors, too."""
    members = {"variants": lambda self, ksel: ["subgroup"], "__doc__": operation.__doc__}
    return kp.CustomOp.register(type("InGroups", (operation.__wrapped__,), members))


NAMES = ("topk", "partition", "argpartition")
WAYS = {
    "run": {name: getattr(kp.ops, name) for name in NAMES},
    "subgroup": {name: in_groups(getattr(kp.ops, name)) for name in NAMES},
}


def highest(x, k, axis, largest):
    """The places of the `k` highest or lowest."""
    order = highest_first(x, axis) if largest else np.argsort(x, axis, stable=True)
    return np.take(order, np.arange(k), axis)


def check_topk(topk, x, k, axis, largest):
    values, indices = topk(x, k, axis, largest=largest)
    order = highest(x, k, axis, largest)
    np.testing.assert_array_equal(indices, order)
    same(values, np.take_along_axis(x, order, axis))


def check_partition(operations, x, kth, axis):
    """Both, each in an order of its own: of their variants, some keep the order on each side, some sort."""
    got, places = operations["partition"](x, kth, axis), operations["argpartition"](x, kth, axis)
    assert got.dtype == x.dtype and got.shape == x.shape == places.shape
    check_sides(got, x, kth, axis)
    check_sides(np.take_along_axis(x, places, axis), x, kth, axis)
    np.testing.assert_array_equal(np.sort(places, axis), np.argsort(np.zeros(x.shape), axis, stable=True))


def check_sides(got, x, kth, axis):
    """`got` has the numbers of `x`, the one of place `kth` at its place, between lower and higher ones."""
    bits = f"u{x.dtype.itemsize}"  # zeros of both signs, too
    whole = [
        each if x.dtype.kind in "iu" else np.where(np.isnan(each), x.dtype.type(np.nan), each)
        for each in (got, x)
    ]
    one, other = (np.sort(each.view(bits), axis) for each in whole)
    np.testing.assert_array_equal(one, other)
    sought = np.take(np.sort(x, axis), [kth % x.shape[axis]], axis)
    np.testing.assert_array_equal(np.take(got, [kth % x.shape[axis]], axis), sought)
    before, after = np.split(got, [kth % x.shape[axis]], axis)
    assert ((before <= sought) | np.isnan(sought)).all()
    assert ((after >= sought) | np.isnan(after)).all()


@examples(8)
@given(data=st.data())
@pytest.mark.parametrize("way", WAYS)
def test_highest_and_lowest_of_long_axes(way, data):
    n = data.draw(st.sampled_from([1024, 1025, 3001, 6007]))
    shape = data.draw(st.permutations([n, *data.draw(st.lists(st.integers(1, 3), max_size=2))]))
    axis, k = shape.index(n), data.draw(st.sampled_from([1, 2, 10, 255, 257, 1200]))
    x = numbers("float32", shape, n)
    check_topk(WAYS[way]["topk"], x, min(k, n), axis, data.draw(st.booleans()))


@pytest.mark.parametrize("dtype", [*DTYPES, *WIDE])
def test_selections_of_each_dtype(mgr, needs, dtype):
    if dtype in WIDE:
        needs(mgr, WIDE[dtype])
    x = numbers(dtype, 5003)
    for largest in (True, False):
        check_topk(kp.ops.topk, x, 100, 0, largest)
    for kth in (0, 1700, -1):
        check_partition(WAYS["run"], x, kth, 0)
    if dtype in ("uint16", "float32", "int64"):
        check_topk(WAYS["subgroup"]["topk"], x, 100, 0, True)
        check_partition(WAYS["subgroup"], x, 1700, 0)


@pytest.mark.parametrize("way", WAYS)
def test_few_elements_then_many_and_few_again(way):
    """Selections and sorts are different kernels, whatever was called before."""
    x = numbers("float32", 20_000)
    for k in (10, 20_000, 4096, 4097, 1024, 1025, 3):
        check_topk(WAYS[way]["topk"], x, k, 0, True)
    for n in (1500, 300, 20_000):
        check_topk(WAYS[way]["topk"], x[:n], 5, 0, False)
        check_partition(WAYS[way], x[:n], n // 3, 0)


@pytest.mark.each_driver
def test_digits_of_many_runs_are_added_up_in_blocks():
    x = numbers("int16", (2, 264_001))
    for k in (100, 66_000):  # sorted at once, and by digits
        check_topk(WAYS["subgroup"]["topk"], x, k, 1, True)
    check_partition(WAYS["subgroup"], x, 132_000, 1)


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_many_elements_of_several_lines(dtype):
    check_topk(kp.ops.topk, numbers(dtype, (18_001, 2)), 4500, 0, True)


@pytest.mark.parametrize("way", WAYS)
def test_all_elements_are_equal(way):
    x = np.full((2, 4000), 7, np.int32)
    check_topk(WAYS[way]["topk"], x, 33, 1, True)
    np.testing.assert_array_equal(WAYS[way]["argpartition"](x, 50)[1], np.arange(4000))


@examples(8)
@given(data=st.data())
@pytest.mark.parametrize("way", WAYS)
def test_partitions(way, data):
    n = data.draw(st.sampled_from([1, 5, 256, 1023, 1024, 4001]))
    shape = data.draw(st.permutations([n, *data.draw(st.lists(st.integers(1, 3), max_size=2))]))
    axis = shape.index(n)
    x = numbers(data.draw(st.sampled_from(["float32", "int8"])), shape, n)
    check_partition(WAYS[way], x, data.draw(st.integers(-n, n - 1)), axis)


def test_many_lines_are_partitioned():
    check_partition(WAYS["run"], numbers("float32", (20, 1500)), 70, 1)
    check_partition(WAYS["run"], numbers("int16", (5000, 17)), 4999, 0)


def test_views_and_out_and_in_place(mgr):
    x = mgr.tensor_t(numbers("float32", (3000, 2)))
    array = x.read()
    same(kp.ops.topk(x[:, 0], 9)[0].read(), array[highest(array[:, 0], 9, 0, True), 0])
    want = kp.ops.partition(array, 10, 0)
    assert kp.ops.partition(x, 10, 0, out=x) is x
    same(x.read(), want)


def test_in_a_sequence_again_and_again(mgr):
    x = mgr.tensor_t(numbers("uint32", 3001))
    operation = kp.ops.topk.op(x, 5)
    sequence = mgr.sequence().record(operation)
    for seed in range(3):
        given = numbers("uint32", 3001, seed)
        x.write(given)
        sequence.eval()
        np.testing.assert_array_equal(operation.results[1].read(), highest(given, 5, 0, True))


def test_a_million_numbers(mgr):
    x = np.random.default_rng(1).normal(size=1_000_003).astype(np.float32)
    check_topk(kp.ops.topk, x, 1000, 0, True)
    same(kp.ops.partition(x, 500_000)[500_000], np.sort(x)[500_000])


def test_memory_apart_from_the_hosts(make_manager):
    mgr = make_manager(force_staging=True)
    x = mgr.tensor_t(numbers("float32", 3001))
    same(kp.ops.topk(x, 9)[0].read(), x.read()[highest(x.read(), 9, 0, True)])


def test_long_axes_are_not_sorted():
    """Or the other tests would test sorts."""
    assert issubclass(kp.ops.topk.__wrapped__, SelectOp)
    assert any("kth" in text for text in kp.ops.topk.sources(kp.TensorSpec((5000,)), 9))
    assert not any("kth" in text for text in kp.ops.topk.sources(kp.TensorSpec((500,)), 9))


def test_errors():
    with pytest.raises(kp.InvalidArgumentError, match="kth is 3, and the axis has 2 elements; give -2 to 1"):
        kp.ops.partition(np.ones((2, 5), np.float32), 3, 0)
    with pytest.raises(kp.InvalidArgumentError, match="no elements"):
        kp.ops.argpartition(np.ones(0, np.float32), 0)
    with pytest.raises(kp.errors.UnimplementedError, match="are not sorted"):
        kp.ops.partition(np.ones(2, np.complex64), 0)
