"""``debug="disjoint"``: parts of a tensor that a script says do not meet, and do."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import kompute_py as kp

SCALE = """
#version 450
layout(local_size_x = 16) in;
layout(push_constant) uniform P { uint first; uint count; float by; };
layout(binding = 0) buffer X { float x[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < count) x[first + i] *= by;
}"""


@pytest.fixture
def mgr(make_manager):
    return make_manager(family_queue_indices=[0, 0], debug="disjoint")


def reports(work):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        work()
    return [str(each.message) for each in caught if "disjoint=" in str(each.message)]


def two(mgr, x, first, second):
    """Two sequences of different queues; the second one says that it uses other parts of `x`."""
    one, other = mgr.sequence(0).record(first), mgr.sequence(1, disjoint=[x]).record(second)
    one.name, other.name = "left", "right"
    return lambda: (one.eval_async(), other.eval_async(), one.fence.wait(), other.fence.wait())


def test_copies_that_meet(mgr):
    x, y = mgr.zeros(100), mgr.full(60, 2.0)
    x.name = "x"
    work = two(mgr, x, kp.OpCopy([y, x[:60]]), kp.OpCopy([y, x[40:]]))
    (told,) = reports(work)
    assert told.startswith("Two queues use elements 40 to 59 of x, which disjoint= denies: "), told
    assert "the sequence 'left' on queue 0" in told and "the sequence 'right' on queue 1" in told
    assert told.count("test_disjoint.py:") == 2  # the lines that recorded them
    assert not reports(work)  # once for a pair


def test_a_read_of_what_the_other_writes(mgr):
    x, y, z = mgr.tensor(np.arange(100)), mgr.full(60, 2.0), mgr.zeros(60)
    (told,) = reports(two(mgr, x, kp.OpCopy([y, x[:60]]), kp.OpCopy([x[40:], z])))
    assert "elements 40 to 59" in told
    assert not reports(two(mgr, x, kp.OpCopy([x[:60], z]), kp.OpCopy([x[40:], y])))  # two that read


def test_parts_that_a_shader_chooses(mgr):
    x = mgr.full(100, 3.0)
    scale = mgr.kernel(SCALE)

    def work(first, count):
        return two(
            mgr,
            x,
            scale.bind(x, first=0, count=50, by=2.0, grid=50),
            scale.bind(x, first=first, count=count, by=2.0, grid=count),
        )

    assert not reports(work(50, 50))
    (told,) = reports(work(49, 10))
    assert "elements 49 to 49" in told


def test_parts_that_do_not_meet(mgr):
    x, y = mgr.zeros(100), mgr.full(50, 2.0)
    assert not reports(two(mgr, x, kp.OpCopy([y, x[:50]]), kp.OpCopy([y, x[50:]])))
    # Without a declaration the two are ordered, and so are those of one queue.
    for queue, declared in [(1, False), (0, True)]:
        z = mgr.zeros(100)
        first = mgr.sequence(0).record(kp.OpFill([z[:60]], 1.0))
        second = mgr.sequence(queue, disjoint=[z] if declared else ()).record(kp.OpFill([z[:60]], 2.0))
        assert not reports(lambda one=first, other=second: (one.eval(), other.eval()))


def test_memory_that_is_gone_is_forgotten(mgr):
    for number in range(20):  # the same place and size, each time
        x, y = mgr.zeros(100), mgr.full(60, 2.0)
        queue = number % 2
        sequence = mgr.sequence(queue, disjoint=[x]).record(kp.OpCopy([y, x[:60]]))
        assert not reports(sequence.eval), number
        del sequence, x, y
