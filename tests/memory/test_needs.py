"""The memory of a call is known before it runs, within a tenth."""

from __future__ import annotations

import functools
import gc

import numpy as np
import pytest

import kompute_py as kp
from benchmarks.library.calls import CALLS
from tests.ops.test_staging import mapped

ELEMENTS = 1 << 18
SLACK = 66 << 10
"""Bytes beside a tenth: scratch memory has 64 KiB at least, and memory begins at whole 256 bytes."""
TWICE = """
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) writeonly buffer B { float b[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < a.length()) b[i] = a[i] * 2.0; }"""


@pytest.fixture(scope="module")
def mgr():
    with kp.Manager(tuning="off") as manager, manager:
        yield manager


def grown(mgr, call):
    """Bytes of the device that a call takes at most."""
    gc.collect()
    mgr.memory.trim()
    before = sum(heap.used for heap in mgr.memory.heaps)
    mgr.memory.reset_peak()
    result = call()
    peak = sum(heap.peak for heap in mgr.memory.heaps)
    del result
    return peak - before


def spec(thing):
    return mapped(thing, lambda array: kp.TensorSpec(array.shape, array.dtype) if array.ndim else array)


def check(name, mgr, needs, taken):
    assert abs(taken - needs) <= needs / 10 + SLACK, f"{name}: {needs} bytes told, {taken} taken"


def asked(function, args, named):
    try:
        return function.memory_needs(*args, **named)
    except kp.errors.UnimplementedError as error:
        assert "run" in str(error)
        return None


def test_the_library(mgr):
    told = 0
    for name, call in CALLS.items():
        function = getattr(kp.ops, name)
        if not hasattr(function, "memory_needs"):
            continue
        args, named = call.make(np.random.default_rng(7), ELEMENTS)
        needs = asked(function, spec(args), {key: spec(each) for key, each in named.items()})
        if needs is None:
            continue
        told += 1
        there = mapped(args, mgr.tensor_t)
        named = {key: mapped(each, mgr.tensor_t) for key, each in named.items()}
        for each in (*there, *named.values()):
            if isinstance(each, kp.Tensor):
                each.read()  # uploads it
        taken = grown(mgr, functools.partial(function, *there, **named))
        check(name, mgr, needs.outputs + needs.scratch, taken)
        assert needs.code > 0, name
    assert told > 150, told


def test_arrays_and_parts(mgr):
    x = np.ones(ELEMENTS + 1, np.float32)
    needs = kp.ops.add.memory_needs(x, x)
    check("arrays", mgr, needs.total, grown(mgr, lambda: kp.ops.add(x, x)))
    t = mgr.tensor_t(np.ones((ELEMENTS, 2), np.float32))
    t.read()
    needs = kp.ops.add.memory_needs(t[:, 0], t[:, 1])
    assert (needs.inputs, needs.outputs) == (8 * ELEMENTS, 4 * ELEMENTS)
    check("parts", mgr, needs.outputs + needs.scratch, grown(mgr, lambda: kp.ops.add(t[:, 0], t[:, 1])))
    out = mgr.empty((ELEMENTS, 2))
    out.fill().wait()
    needs = kp.ops.add.memory_needs(t[:, 0], t[:, 1], out=out[:, 0])
    taken = grown(mgr, lambda: kp.ops.add(t[:, 0], t[:, 1], out=out[:, 0]))
    check("a part as out", mgr, needs.scratch, taken)


@pytest.mark.capability(
    "P46",
    "the memory that a call or a program takes, before it runs",
    "Kernel.memory_needs, Function.memory_needs, Program.memory",
    "concepts/memory_types",
)
def test_kernels(mgr, needs):
    needs(mgr, "dispatch")
    twice = mgr.kernel(TWICE)
    x = np.ones(ELEMENTS + 100, np.float32)
    t = mgr.tensor_t(x)
    t.read()
    of_tensor, of_array = twice.memory_needs(t), twice.memory_needs(x)
    assert of_tensor == twice.memory_needs(kp.TensorSpec(x.shape))
    assert of_tensor[1:] == (x.nbytes, x.nbytes, 0) and of_tensor.code == len(twice.to_spirv())
    check("a tensor", mgr, of_tensor.outputs, grown(mgr, lambda: twice(t)))
    check("an array", mgr, of_array.total, grown(mgr, lambda: twice(x)))
    assert twice.memory_needs(t, t).total == x.nbytes  # one memory
    # More than the device has: nothing is allocated.
    before = mgr.memory.heaps
    assert twice.memory_needs(kp.TensorSpec(2**38), kp.TensorSpec(2**38), grid=64).inputs == 2**40
    assert mgr.memory.heaps == before
    with pytest.raises(kp.errors.InvalidArgumentError, match="takes 2 bindings"):
        twice.memory_needs(t, t, t)
    with pytest.raises(kp.errors.ArgumentTypeError, match="float64"):
        twice.memory_needs(kp.TensorSpec(10, np.float64))


def test_text():
    assert str(kp.MemoryNeeds(100, 2048, 0, 1024)) == (
        "3 KiB (inputs 2 KiB, outputs 0 bytes, scratch 1 KiB), code 100 bytes"
    )
