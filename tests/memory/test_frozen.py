"""Frozen memory: every way to write it is refused, and what reads it runs."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp
from tests.memory.test_views import ADD_ONE, COPY, compiled


def ways_to_write(mgr, t, others):
    """Calls that each write `t` once; those that record it do so now."""
    other = mgr.tensor_t(np.ones(8, np.uint32))
    add = mgr.kernel(compiled(ADD_ONE))
    copy = mgr.kernel(compiled(COPY))
    recorded = mgr.sequence().record(kp.OpFill([t], 7))
    into = mgr.sequence().record(kp.OpCopy([other, t]))
    dispatched = mgr.sequence().record(add.bind(t))
    uploaded = mgr.sequence().record(kp.OpSyncDevice([t]))
    away = others.tensor_t(np.ones(8, np.uint32))
    between = mgr.sequence().record(kp.OpCopy([away, t]))
    bound = kp.ops.add.bind(other, 1, out=t)
    function = mgr.sequence().record(bound)

    def mapped():
        with t.map(write=True) as array:
            array[:] = 3

    def item():
        t[::3] = 9

    def strided():
        t[::2].write([5, 5, 5, 5])

    return {
        "write": lambda: t.write(np.arange(8)),
        "convert": lambda: t.write(np.arange(8, dtype=np.int8)),
        "part": lambda: t[2:4].write([1, 2]),
        "strided": strided,
        "item": item,
        "map": mapped,
        "fill": lambda: t.fill(4),
        "fill a view": lambda: t[1:3].fill(4),
        "copy_from": lambda: t.copy_from(other),
        "copy_to": lambda: other.copy_to(t),
        "from another Manager": lambda: t.copy_from(away),
        "recorded fill": recorded.eval,
        "recorded copy": into.eval,
        "recorded dispatch": dispatched.eval,
        "recorded upload": uploaded.eval,
        "recorded copy between Managers": between.eval,
        "recorded function": function.eval,
        "kernel": lambda: add(t),
        "submitted kernel": lambda: add.submit(t).wait(),
        "output of a kernel": lambda: copy(other, t),
        "function": lambda: kp.ops.add(other, 1, out=t),
        "a view of it as out": lambda: kp.ops.add(other[:4], 1, out=t[::2]),
    }


@pytest.mark.capability(
    "I6", "tensors that nothing may write any more", "Tensor.freeze", "reference/tensor_rules"
)
@pytest.mark.parametrize("memory_type", list(kp.MemoryTypes))
def test_frozen_memory_is_not_written_in_any_way(mgr, memory_type):
    data = np.arange(8, dtype=np.uint32)
    with kp.Manager() as others:
        t = mgr.tensor_t(data, memory_type)
        t.name = "weights"
        ways = ways_to_write(mgr, t, others)
        if memory_type is not kp.MemoryTypes.device:
            del ways["recorded upload"]  # does nothing there
        for way in ways.values():  # each runs, and prepares what it can
            way()
            way()
        t.write(data)
        assert not t.read_only
        assert t.freeze() is t and t.freeze().read_only and t[1:].read_only
        for name, way in ways.items():
            with pytest.raises(kp.FailedPreconditionError, match=r"weights.*read-only.*frozen"):
                way()
                pytest.fail(name)
            np.testing.assert_array_equal(t.read(), data, name)
        # What reads it runs.
        assert kp.ops.add(t, 1).tolist() == (data + 1).tolist()
        np.testing.assert_array_equal(t.to(others).read(), data)
        mgr.kernel(compiled(COPY))(t, out := mgr.zeros(8, np.uint32))
        np.testing.assert_array_equal(out.read(), data)
        with t.map(read=True) as array:
            np.testing.assert_array_equal(array, data)
        made = t.to(mgr, copy=True)
        assert not made.read_only
        made.fill(1)
        if memory_type is not kp.MemoryTypes.storage:
            assert not t.data().flags.writeable
        t.destroy()
        with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
            t.freeze()


def test_memory_that_others_could_write_is_not_frozen(mgr):
    t = mgr.tensor([1, 2, 3])
    with pytest.raises(kp.FailedPreconditionError, match=r"view.*t\.base\.freeze"):
        t[1:].freeze()
    held = t.data()
    assert not t.freeze().data().flags.writeable and not held.flags.writeable
    for memory_type in ("host", "deviceAndHost"):
        one = mgr.tensor_t(np.ones(3, np.float32), memory_type)
        part = one[1:].data()
        with pytest.raises(kp.FailedPreconditionError, match=r"given out.*copy=True\)\.freeze"):
            one.freeze()
        part[:] = 5
        assert one.tolist() == [1, 5, 5]
    mapped = mgr.zeros(3)
    with mapped.map(write=True), pytest.raises(kp.FailedPreconditionError, match="mapping that writes"):
        mapped.freeze()


def test_frozen_memory_is_not_donated(mgr):
    x = mgr.tensor([1, 2, 3]).freeze()
    with pytest.raises(kp.InvalidArgumentError, match=r"cannot be donated.*frozen"):
        kp.ops.sin(x, donate=["x"])
    assert x.tolist() == [1, 2, 3]
    assert np.asarray(x).tolist() == [1, 2, 3]


def test_images_are_frozen_too(mgr):
    picture = mgr.image(np.ones((4, 4), np.float32)).freeze()
    for way in (lambda: picture.write(np.zeros((4, 4))), lambda: picture.copy_from(mgr.zeros((4, 4)))):
        with pytest.raises(kp.FailedPreconditionError, match="frozen"):
            way()
    assert (picture.read() == 1).all()
