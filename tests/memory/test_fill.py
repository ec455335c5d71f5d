"""OpFill and OpCopyRange: patterns and ranges at any byte, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kompute_py as kp
from tests.drivers import null_control
from tests.support.child import run_child
from tests.support.sampling import examples

PAIR = np.dtype([("a", "<u2"), ("b", "<f4")])
VALUES = [
    (np.bool_, True), (np.int8, -3), (np.uint16, 513), (np.int32, -2), (np.uint64, 2**63 + 5),
    (np.float16, 0.1), (np.float32, -0.0), (np.float64, 0.1), (np.complex64, 1 - 2j),
    (np.complex128, 0.5 + 3j), (PAIR, (7, 2.5)),
]  # fmt: skip


@pytest.mark.capability("S6 S17", "filling on the device", "Tensor.fill", "guides/asynchronous")
@pytest.mark.parametrize(
    ("dtype", "value"), VALUES, ids=lambda each: str(np.dtype(each)) if isinstance(each, type) else None
)
def test_scalars_of_every_dtype(mgr, dtype, value):
    t = mgr.zeros(37, dtype)
    mgr.sequence().eval(kp.OpFill([t], value))
    assert t.read().tobytes() == np.full(37, np.array(value, dtype)).tobytes()
    t.fill(np.array(value, dtype)[()]).wait()
    assert t.read().tobytes() == np.full(37, np.array(value, dtype)).tobytes()


def test_zero_and_one_are_bools(mgr):
    t = mgr.full(3, 1, np.bool_, "host")
    assert t.read().tolist() == [True] * 3
    t.fill(0).wait()
    assert not t.read().any()
    t.write([1, 0, 1])
    assert t.read().tolist() == [True, False, True]
    for wrong in (2, -1):
        with pytest.raises(
            kp.InvalidArgumentError, match=f"bool; the data's range {wrong} to {wrong} does not fit"
        ):
            t.fill(wrong)
    with pytest.raises(kp.ArgumentTypeError, match="without loss"):
        t.write([1.0, 0.0, 1.0])


@pytest.mark.parametrize("memory_type", list(kp.MemoryTypes))
def test_every_memory_type(mgr, memory_type):
    t = mgr.empty(1000, np.float64, memory_type)
    t.fill(0)
    t[3:997].fill(0.1).wait()
    assert t.read().tolist() == [0] * 3 + [0.1] * 994 + [0] * 3


def test_any_bytes(mgr):
    """Patterns of 1 to 8 bytes over parts that begin and end anywhere."""
    t = mgr.empty(64, np.uint8)
    t.fill(0)
    model = np.zeros(64, np.uint8)

    @examples(60)
    @given(
        begin=st.integers(0, 60),
        times=st.integers(1, 20),
        pattern=st.sampled_from([1, 2, 4, 8]).flatmap(lambda n: st.binary(min_size=n, max_size=n)),
    )
    def check(begin, times, pattern):
        times = min(times, (64 - begin) // len(pattern))
        if times:
            end = begin + times * len(pattern)
            t[begin:end].fill(pattern)
            model[begin:end] = np.frombuffer(pattern * times, np.uint8)
            np.testing.assert_array_equal(t.read(), model)

    check()


def test_long_patterns_over_much_memory(mgr):
    t = mgr.empty((5 << 20) // 16 + 3, np.complex128, "storage")
    t.fill(1 + 2j).wait()
    assert set(t.read()) == {1 + 2j}


def test_several_tensors_at_once(mgr):
    a, b, c = mgr.empty(5, np.int32), mgr.empty(7, np.float64), mgr.empty(9, np.uint8)
    for each in (a, b, c):
        each.fill(0)
    mgr.sequence().eval(kp.OpFill([a, b[1:6], c[2:4], a], 3))
    assert a.read().tolist() == [3] * 5 and b.read().tolist() == [0, 3, 3, 3, 3, 3, 0]
    assert c.read().tolist() == [0, 0, 3, 3, 0, 0, 0, 0, 0]


def test_what_does_not_fit(mgr):
    t = mgr.zeros(5, np.uint8)
    t.name = "bytes"
    for value, error, match in (
        (b"abc", kp.InvalidArgumentError, "3 bytes.*1, 2, 4, 8"),
        (b"ab", kp.InvalidArgumentError, "'bytes' of 5 bytes.*pattern of 2"),
        (256, kp.InvalidArgumentError, "range"),
        (1.5, kp.ArgumentTypeError, "uint8"),
        ("x", kp.ArgumentTypeError, "uint8"),
    ):
        with pytest.raises(error, match=match):
            kp.OpFill([t], value)
    with pytest.raises(kp.InvalidArgumentError, match="overlap"):
        kp.OpFill([t[0:3], t[2:4]], 1)
    with pytest.raises(kp.ArgumentTypeError, match=r"tuple|element"):
        kp.OpFill([mgr.zeros(2, PAIR)], [1, 2, 3])


@pytest.mark.capability("I36", "copying ranges of bytes", "kp.OpCopyRange", "concepts/recording")
def test_copy_range(mgr):
    a, b = mgr.tensor_t(np.arange(24).reshape(4, 6)), mgr.zeros(30, np.int64, "storage")
    mgr.sequence().eval(kp.OpSyncDevice([a]))
    (
        mgr.sequence()
        .record(kp.OpFill([b], -1))
        .record(kp.OpCopyRange(a, b, source_offset=5, target_offset=2, count=4))
        .record(kp.OpCopyRange(a, b, source_offset=20, target_offset=26))
        .record(kp.OpCopyRange(a[1], b, target_offset=10))
        .record(kp.OpCopyRange(b, b, source_offset=2, target_offset=20, count=4))
        .eval()
    )
    wanted = np.full(30, -1)
    wanted[2:6] = wanted[20:24] = [5, 6, 7, 8]
    wanted[26:30], wanted[10:16] = [20, 21, 22, 23], range(6, 12)
    np.testing.assert_array_equal(b.read(), wanted)


def test_copy_ranges_that_cannot_be(mgr):
    a, b = mgr.zeros(8, np.int32), mgr.zeros(8, np.int32)
    for arguments, error, match in (
        ({"count": 9}, kp.OutOfRangeError, "source.*0 to 8"),
        ({"target_offset": 1}, kp.OutOfRangeError, "target.*1 to 9"),
        ({"source_offset": -1, "count": 2}, kp.OutOfRangeError, "source"),
        ({"count": -1}, kp.InvalidArgumentError, "0 elements or more"),
        ({"source_offset": 9}, kp.InvalidArgumentError, "0 elements or more"),
        ({"count": 1.5}, kp.ArgumentTypeError, "count"),
    ):
        with pytest.raises(error, match=match):
            kp.OpCopyRange(a, b, **arguments)
    with pytest.raises(kp.InvalidArgumentError, match="overlap"):
        kp.OpCopyRange(a, a, source_offset=0, target_offset=3, count=4)
    with pytest.raises(kp.ArgumentTypeError, match="dtype"):
        kp.OpCopyRange(a, mgr.zeros(8))
    with pytest.raises(kp.ArgumentTypeError, match="tensors"):
        kp.OpCopyRange(a, np.zeros(8, np.int32))


def test_read_and_write_regions(mgr):
    t = mgr.tensor_t(np.arange(24).reshape(4, 6), "storage")
    assert t.read(region=2).tolist() == [12, 13, 14, 15, 16, 17]
    out = np.zeros((2, 6), np.int64)
    assert t.read(out, np.s_[1:3]) is out and out[1, 0] == 12
    t.write([1, 2, 3], region=(3, slice(1, 4)))
    t.write(-1, region=(0, 0))
    assert t.read()[3].tolist() == [18, 1, 2, 3, 22, 23] and t.read(region=(0, 0)) == -1
    assert t.read(region=np.s_[:, 0]).tolist() == [-1, 6, 12, 18]
    with pytest.raises(kp.OutOfRangeError):
        t.read(region=7)
    assert t.read(region=np.s_[2:2]).shape == (0, 6)
    with pytest.raises(kp.InvalidArgumentError, match="elements"):
        t.write([1, 2], region=2)


def test_item(mgr):
    t = mgr.tensor_t(np.arange(4) + 0.5, "storage")
    assert t[2].item() == 2.5 and type(t[2].item()) is float
    with pytest.raises(kp.InvalidArgumentError, match="4 elements"):
        t.item()


def check_discrete_fills():
    with kp.Manager() as mgr:
        for kind in ("device", "storage", "host", "deviceAndHost"):
            t = mgr.tensor_t(np.zeros(103, np.uint8), kind)
            mgr.sequence().eval(kp.OpSyncDevice([t]))
            t[1:98].fill(5).wait()
            t[2:10].fill(b"abcdefgh").wait()
            wanted = np.zeros(103, np.uint8)
            wanted[1:98] = 5
            wanted[2:10] = list(b"abcdefgh")
            np.testing.assert_array_equal(t.read(), wanted)
            if kind in ("host", "deviceAndHost"):
                np.testing.assert_array_equal(t.data(), wanted)
    assert not null_control().violations()


@pytest.mark.own_driver
def test_discrete_memory():
    run_child(check_discrete_fills, driver="null", config="memory=discrete")


@pytest.mark.parametrize("value", [2.0, np.float64(2), np.float32(2), np.float16(2), np.array(2.0)], ids=repr)
def test_a_whole_float_fills_integers(mgr, value):
    t = mgr.zeros(4, np.int32)
    t.fill(value).wait()
    assert (t.read() == 2).all()
    assert (mgr.full(4, value, np.int32).read() == 2).all()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1.5, "1.5 is not a whole number.*int32.*round it"), (np.float32(0.25), "not a whole number"),
        (float("nan"), "not a whole number"), (float("inf"), "not a whole number"),
        (None, "None is not a number: give one"), (object(), "is not a number"),
    ],
    ids=repr,
)  # fmt: skip
def test_values_that_are_no_integers_are_refused_with_advice_that_helps(mgr, value, message):
    for use in (lambda t: t.fill(value), lambda t: kp.OpFill([t], value)):
        with pytest.raises(kp.ArgumentTypeError, match=message):
            use(mgr.zeros(4, np.int32))
    if value is None:
        with pytest.raises(kp.ArgumentTypeError, match=message):
            mgr.zeros(4).fill(value)


def test_ranges_in_any_order_are_filled_once_each(mgr):
    """Many parts, some given twice, against NumPy; overlaps are refused, and the error names both parts."""
    random = np.random.default_rng(5)
    tensors = [mgr.zeros(200, np.uint8) for _ in range(3)]
    for _ in range(30):
        cuts = [np.unique(random.integers(0, 201, 12)) for _ in tensors]
        parts = [
            (number, int(begin), int(end))
            for number, cut in enumerate(cuts)
            for begin, end in zip(cut[:-1:2], cut[1::2], strict=False)
        ]
        random.shuffle(parts)
        parts += [*parts[:3], (0, 5, 5), (0, 5, 5)]
        value = int(random.integers(1, 256))
        expected = [tensor.read() for tensor in tensors]
        for number, begin, end in parts:
            expected[number][begin:end] = value
        mgr.sequence().eval(kp.OpFill([tensors[number][begin:end] for number, begin, end in parts], value))
        for tensor, array in zip(tensors, expected, strict=True):
            np.testing.assert_array_equal(tensor.read(), array)
        number, begin, end = max(parts, key=lambda part: part[2] - part[1])
        for first, last in ((begin, end - 1), (begin + 1, end), (begin + 1, end - 1), (0, 200)):
            if (first, last) == (begin, end) or first >= last:
                continue
            views = [tensors[number][begin:end] for number, begin, end in parts]
            views.insert(int(random.integers(0, len(views))), tensors[number][first:last])
            with pytest.raises(kp.InvalidArgumentError, match="OpFill got parts that overlap: the tensor"):
                kp.OpFill(views, value)


def test_overlapping_parts_are_named(mgr):
    t = mgr.zeros(16, np.uint8)
    t.name = "t"
    with pytest.raises(
        kp.InvalidArgumentError,
        match=r"the tensor 't' \(bytes 4 to 9\) and the tensor 't' \(bytes 8 to 12\). Record one",
    ):
        kp.OpFill([t[0:2], t[4:9], t[12:16], t[8:12]], 1)
    # One range with two patterns.
    with pytest.raises(kp.InvalidArgumentError, match="parts that overlap"):
        kp.OpFill([t, t.view(np.uint32)], 1)
