"""Scans from a line of text, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import kompute_py as kp
from tests.support.sampling import examples

pytestmark = pytest.mark.usefixtures("current")

WAYS = [
    (exclusive, reverse, segments)
    for exclusive in (False, True)
    for reverse in (False, True)
    for segments in (None, "starts", "ids")
]
SUMS = {
    way: kp.ops.scan(neutral=0, exclusive=way[0], reverse=way[1], segments=way[2], dtype="int32")
    for way in WAYS
}
RUNNING = kp.ops.scan()


def variants(mgr):
    """The names of the variants that the device can run."""
    found = ["run", "shared"]
    try:
        RUNNING.variant("subgroup")(mgr.tensor_t(np.ones(5, np.float32)))
    except kp.InvalidArgumentError as error:
        assert "no variant" in str(error)
        return found
    return [*found, "subgroup"]


def scanned(x, axis, exclusive, reverse, starts):
    """By NumPy's cumsum, less what it is where each segment begins."""
    x = np.moveaxis(x, axis, -1)
    starts = np.zeros(x.shape, bool) if starts is None else np.moveaxis(starts, axis, -1)
    if reverse:
        x, starts = x[..., ::-1], starts[..., ::-1]
    total = np.cumsum(x, -1)
    before = total - x
    if x.shape[-1]:
        place = np.where(starts, np.arange(x.shape[-1]), 0)
        first = np.maximum.accumulate(place, -1)
        total -= np.take_along_axis(before, first, -1)
    found = total - x if exclusive else total
    return np.moveaxis(found[..., ::-1] if reverse else found, -1, axis)


def marks_of(way, cuts, axis):
    """The argument that marks segments at `cuts`, and where they begin in the order of the scan."""
    if way[2] is None:
        return (), None
    if way[2] == "starts":
        return (cuts,), cuts
    ids = np.cumsum(cuts, axis).astype(np.int32)
    changes = np.moveaxis(np.zeros(cuts.shape, bool), axis, -1)
    moved = np.moveaxis(ids, axis, -1)
    if way[1]:
        changes[..., :-1] = moved[..., 1:] != moved[..., :-1]
    else:
        changes[..., 1:] = moved[..., 1:] != moved[..., :-1]
    return (ids,), np.moveaxis(changes, -1, axis)


@examples(6)
@given(data=st.data())
@pytest.mark.parametrize("variant", ["run", "shared"])
@pytest.mark.parametrize("way", WAYS)
def test_any_axis_and_segments(way, variant, data):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=5, min_side=0, max_side=6))
    x = data.draw(hnp.arrays(np.int32, shape, elements=st.integers(-9, 9)))
    cuts = data.draw(hnp.arrays(np.bool_, shape))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    marks, starts = marks_of(way, cuts, axis)
    got = SUMS[way].variant(variant)(x, *marks, axis=axis)
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, scanned(x, axis, way[0], way[1], starts))


@pytest.mark.parametrize("way", [(False, False, None), (True, True, "starts"), (False, True, "ids")])
def test_long_runs_by_each_variant(mgr, way):
    rng = np.random.default_rng(2)
    for shape in ((4097,), (100_003,), (3, 9001), (9001, 3)):
        x = rng.integers(-9, 9, shape).astype(np.int32)
        axis = int(np.argmax(shape))
        marks, starts = marks_of(way, rng.random(shape) < 1e-3, axis)
        want = scanned(x, axis, way[0], way[1], starts)
        for variant in variants(mgr):
            given = [mgr.tensor_t(each) for each in (x, *marks)]
            got = SUMS[way].variant(variant)(*given, axis=axis).read()
            np.testing.assert_array_equal(got, want)


def test_an_invocation_takes_no_more_turns_than_drivers_make(mgr):
    # llvmpipe ends loops after 65,535 turns of an invocation.
    x = mgr.tensor_t(np.ones((1 << 18, 16), np.int32))
    got = SUMS[False, False, None].variant("run")(x, axis=0).read()
    assert (got[-1] == 1 << 18).all() and (got[:, 5] == np.arange(1, (1 << 18) + 1)).all()


@pytest.mark.parametrize("n", [1, 255, 4099, 300_007])
def test_sums_of_floats_are_as_exact_as_numpys(mgr, n):
    x = np.random.default_rng(n).normal(size=n).astype(np.float32)
    exact, bound = np.cumsum(x, dtype=np.float64), np.cumsum(np.abs(x), dtype=np.float64)
    for variant in variants(mgr):
        got = RUNNING.variant(variant)(mgr.tensor_t(x)).read()
        assert (np.abs(got - exact) <= bound * np.arange(1, n + 1) * 2.0**-24).all()


def test_the_order_is_kept(mgr):
    # Not commutative: the last of two.
    last = kp.ops.scan("x", "b + 0 * a", dtype="int32")
    x = np.random.default_rng(3).integers(0, 99, 30_011).astype(np.int32)
    for variant in variants(mgr):
        np.testing.assert_array_equal(last.variant(variant)(mgr.tensor_t(x)).read(), x)


def test_maps_broadcast_and_dtypes():
    product = kp.ops.scan("x * y").variant("run")
    x, y = np.arange(5, dtype=np.float32).reshape(5, 1), np.arange(7, dtype=np.float32)
    for axis in (0, 1):
        np.testing.assert_array_equal(product(x, y, axis=axis), np.cumsum(x * y, axis))
    np.testing.assert_array_equal(product(x[:, 0], 3), np.cumsum(x[:, 0] * 3))
    wide = kp.ops.scan(dtype="float32").variant("run")(np.arange(9, dtype=np.int16))
    assert wide.dtype == np.float32 and wide.tolist() == np.cumsum(np.arange(9)).tolist()
    most = kp.ops.scan(reduce="max").variant("run")(np.array([1, 3, 2, 7, 5], np.uint8))
    assert most.dtype == np.uint8 and most.tolist() == [1, 3, 3, 7, 7]


def test_recorded_into_its_own_memory(mgr):
    x = mgr.tensor_t(np.arange(10_000, dtype=np.int32))
    mgr.sequence().record(SUMS[True, False, None].op(x, out=x)).eval()
    np.testing.assert_array_equal(x.read(), np.cumsum(np.arange(10_000)) - np.arange(10_000))


def test_refusals():
    x = np.ones((2, 3), np.float32)
    with pytest.raises(kp.InvalidArgumentError, match="there are 2 axes"):
        RUNNING(x, axis=2)
    with pytest.raises(kp.InvalidArgumentError, match="have none"):
        RUNNING(np.array(1, np.float32))
    starts = kp.ops.scan(segments="starts")
    with pytest.raises(kp.ArgumentTypeError, match="bools or ints"):
        starts(x, x)
    with pytest.raises(kp.InvalidArgumentError, match="does not broadcast"):
        starts(x, np.ones((2, 2), bool))
    with pytest.raises(kp.InvalidArgumentError, match="exclusive"):
        kp.ops.scan(reduce="max", exclusive=True)
    with pytest.raises(kp.InvalidArgumentError, match="segments"):
        kp.ops.scan(segments="flags")
    with pytest.raises(kp.InvalidArgumentError, match="marks segments"):
        kp.ops.scan("ids + x", segments="ids")
    for bad in ({"exclusive": 1}, {"reverse": None}):
        with pytest.raises(kp.ArgumentTypeError):
            kp.ops.scan(**bad)


def test_staging(make_manager):
    mgr = make_manager(force_staging=True)
    x = np.random.default_rng(4).integers(-99, 99, (37, 5011)).astype(np.int32)
    for variant in ("run", "shared"):
        for axis in (0, 1):
            got = SUMS[False, False, None].variant(variant)(mgr.tensor_t(x), axis=axis).read()
            np.testing.assert_array_equal(got, np.cumsum(x, axis))
    with mgr.current():
        np.testing.assert_array_equal(
            SUMS[False, True, None].variant("run")(x), np.cumsum(x[:, ::-1], 1)[:, ::-1]
        )
