"""Data of 1 MiB or more that has another dtype is converted while it is written."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp

INTEGERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
COUNT = (1 << 20) + 37  # more than a piece, and no multiple of one
OPTIONS = [{}, {"force_staging": True}, {"force_non_coherent": True}]


def common(source: np.dtype, target: np.dtype, count: int = COUNT) -> np.ndarray:
    """Random numbers of `source` that fit `target`, with the ends of the range that both have."""
    rng = np.random.default_rng(5)
    if source.kind == "f":
        values = rng.normal(size=count).astype(source)
        values[[3, 40_000, -1]] = np.nan, np.inf, -np.inf
        return values
    least, most = np.iinfo(source).min, np.iinfo(source).max
    if target.kind != "f":
        least, most = max(least, np.iinfo(target).min), min(most, np.iinfo(target).max)
    values = rng.integers(least, most, count, source, endpoint=True)
    values[[0, -1]] = least, most
    return values


@pytest.mark.parametrize("target", [*INTEGERS, "f4", "f8"])
@pytest.mark.parametrize("source", [*INTEGERS, "f4", "f8"])
def test_numbers_are_those_of_numpy(mgr, source, target):
    source, target = np.dtype(source), np.dtype(target)
    if source.kind == "f" and target.kind != "f":
        pytest.skip("floats do not become integers")
    data = common(source, target)
    t = mgr.zeros(COUNT + 2, target)
    t[1:-1].write(data)
    wanted = np.zeros(COUNT + 2, target)
    wanted[1:-1] = data
    np.testing.assert_array_equal(t.read(), wanted)
    t.reshape(-1).write(np.concatenate([data[:1], data, data[:1]]).reshape(1, -1))
    np.testing.assert_array_equal(t[1:-1].read(), data.astype(target))


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
@pytest.mark.parametrize("memory_type", list(kp.MemoryTypes))
def test_every_memory(make_manager, memory_type, options):
    mgr = make_manager(**options)
    data = common(np.dtype("i8"), np.dtype("i4"))
    t = mgr.empty(COUNT, np.int32, memory_type)
    t.write(data)
    np.testing.assert_array_equal(t.read(), data)
    t.write(data[::-1])
    np.testing.assert_array_equal(np.asarray(t), data[::-1])


@pytest.mark.parametrize("odd", ["reversed", "unaligned", "big-endian", "bool", "float16", "list"])
def test_odd_sources(mgr, odd):
    data = common(np.dtype("i2"), np.dtype("i2")) % 2
    given = {
        "reversed": lambda: data.astype("i8")[::-1],
        "unaligned": lambda: np.frombuffer(b"\0" + data.astype("i8").tobytes(), np.uint8)[1:].view("i8"),
        "big-endian": lambda: data.astype(">i8"),
        "bool": lambda: data.astype(bool),
        "float16": lambda: data.astype("f2"),
        "list": lambda: data.astype("i8")[:200_000].tolist(),
    }[odd]()
    t = mgr.zeros(len(given))
    t.write(given)
    np.testing.assert_array_equal(t.read(), np.asarray(given, np.float32))


@pytest.mark.parametrize("at", [0, 5, 300_000, COUNT - 1])
@pytest.mark.parametrize("source, target", [("i8", "i4"), ("i8", "u8"), ("u4", "i4"), ("i2", "i1")])
def test_an_integer_that_does_not_fit_changes_nothing(mgr, source, target, at):
    data = common(np.dtype(source), np.dtype(target))
    data[at] = np.iinfo(source).min if target.startswith("u") else np.iinfo(source).max
    if target == "i4" and source == "i8":
        data[at] = 1 << 31
    t = mgr.full(COUNT, 7, target)
    for used in (False, True):
        if used:
            t.read()
        with pytest.raises(kp.InvalidArgumentError, match=r"the data's range -?\d+ to -?\d+ does not fit"):
            t.write(data)
        assert (t.read() == 7).all()


@pytest.mark.parametrize("at", [0, 5, 300_000, COUNT - 1])
def test_a_float_that_does_not_fit(mgr, at):
    data = common(np.dtype("f8"), np.dtype("f4"))
    data[at] = -1e39
    t = mgr.full(COUNT, 7.0)
    t.read()
    with pytest.raises(kp.InvalidArgumentError, match="beyond its range, which would become infinite"):
        t.write(data)
    found = t.read()
    assert (found[at:] == 7).all()  # what follows is not written
    before = found[:at]
    new = data[:at].astype(np.float32)
    assert ((before == 7) | (before == new) | (np.isnan(before) & np.isnan(new))).all()
    # Less than 1 MiB, or a tensor that the device has not used yet: all of it keeps its contents.
    small = mgr.full(1000, 7.0)
    with pytest.raises(kp.InvalidArgumentError, match="beyond its range"):
        small.write(np.full(1000, 1e39))
    assert (small.read() == 7).all()
    fresh = mgr.tensor(np.full(COUNT, 8.0))
    with pytest.raises(kp.InvalidArgumentError, match="beyond its range"):
        fresh.write(data)
    assert (fresh.read() == 8).all()


def test_it_is_ordered_and_known_like_other_writes(mgr):
    kernel = mgr.kernel("""#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer X { float x[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] += 1; }
""")
    t = mgr.tensor(np.zeros(COUNT))
    assert "not on the device yet" in repr(t)
    for value in range(3):
        fence = kernel.submit(t)
        t.write(np.full(COUNT, float(value)))
        assert fence.done()
        assert t.read(region=np.s_[:1])[0] == value
    assert "the device's contents are newer" in repr(t)
    with t.map(read=True), pytest.raises(kp.FailedPreconditionError, match="mapped"):
        t.write(np.ones(COUNT))
    t.destroy()
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        t.write(np.ones(COUNT))
