"""The memory of a call is known before it runs, within a tenth."""

from __future__ import annotations

import functools
import gc

import numpy as np
import pytest

import kompute_py as kp
from benchmarks.library.calls import CALLS
from tests.ops.test_staging import mapped
from tests.support.operations import Like

ELEMENTS = 1 << 18
SLACK = 2 << 10
"""Bytes beside a tenth: memory begins at whole 256 bytes."""
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
    mgr.tensor_t(np.ones(4, np.float32), "device").read()  # a GPU's staging ring, which all calls share
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


TOLD = [name for name in CALLS if hasattr(getattr(kp.ops, name), "memory_needs")]


@pytest.mark.own_driver
def test_nearly_all_functions_tell_it():
    assert len(TOLD) >= 223


@pytest.mark.sampled(every=8)
@pytest.mark.parametrize("name", TOLD)
def test_the_library(mgr, name):
    function = getattr(kp.ops, name)
    args, named = CALLS[name].make(np.random.default_rng(7), ELEMENTS)
    needs = function.memory_needs(*spec(args), **{key: spec(each) for key, each in named.items()})
    there = mapped(args, mgr.tensor_t)
    named = {key: mapped(each, mgr.tensor_t) for key, each in named.items()}
    for each in (*there, *named.values()):
        if isinstance(each, kp.Tensor):
            each.read()  # uploads it
    taken = grown(mgr, functools.partial(function, *there, **named))
    check(name, mgr, needs.outputs + needs.scratch, taken)
    assert needs.code > 0


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
    "Kernel.memory_needs, Function.memory_needs, Sequence.memory_needs, Program.memory_needs",
    "concepts/memory_types",
)
def test_kernels(mgr):
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
    before = [heap.used for heap in mgr.memory.heaps]
    assert twice.memory_needs(kp.TensorSpec(2**38), kp.TensorSpec(2**38), grid=64).inputs == 2**40
    assert [heap.used for heap in mgr.memory.heaps] == before
    with pytest.raises(kp.errors.InvalidArgumentError, match="takes 2 bindings"):
        twice.memory_needs(t, t, t)
    with pytest.raises(kp.errors.ArgumentTypeError, match="float64"):
        twice.memory_needs(kp.TensorSpec(10, np.float64))


def test_text():
    assert str(kp.MemoryNeeds(100, 2048, 0, 1024)) == (
        "3 KiB (inputs 2 KiB, outputs 0 bytes, scratch 1 KiB), code 100 bytes"
    )


def test_what_lives_at_the_same_time(mgr):
    @kp.CustomOp.register
    class chained(Like):
        signature = "chained(Tensor x) -> Tensor"

        def eager_execute(self, x):
            twice = kp.ops.add(x, x)
            fourfold = kp.ops.add(twice, twice)
            del twice
            return kp.ops.sqrt(kp.ops.exp(fourfold))

    nbytes = 4 * ELEMENTS
    # `fourfold`, its exp and the result
    assert chained.memory_needs(kp.TensorSpec(ELEMENTS))[1:] == (nbytes, nbytes, 2 * nbytes)
    t = mgr.zeros(ELEMENTS)
    check("chained", mgr, 3 * nbytes, grown(mgr, lambda: chained(t)))
    out = mgr.zeros(ELEMENTS)
    assert chained.memory_needs(t, out=out)[1:] == (nbytes, nbytes, 3 * nbytes)
    check("with out", mgr, 3 * nbytes, grown(mgr, lambda: chained(t, out=out)))
    t.write(np.full(ELEMENTS, 0.5, np.float32))
    np.testing.assert_allclose(chained(t).read(), np.exp(1.0), rtol=1e-6)  # nothing is left of the plan


def test_contents_that_decide(mgr):
    @kp.CustomOp.register
    class halved(Like):
        signature = "halved(Tensor x) -> Tensor"

        def eager_execute(self, x):
            return kp.ops.add(x, x)[: int(kp.ops.sum(x).read())]

    with pytest.raises(kp.errors.UnimplementedError, match="follows from contents"):
        halved.memory_needs(kp.TensorSpec(10))
    assert halved(mgr.tensor([1.0, 2.0, 1.0, 0.0, 0.0])).tolist() == [2.0, 4.0, 2.0, 0.0]


def test_calls_in_parts(make_manager, mgr):
    """Beyond what a device's shaders reach through one binding."""
    most = mgr.get_device_properties()["limits"]["maxStorageBufferRange"]
    if most > 1 << 28:
        pytest.skip("the device's bindings have no such limit")
    rows = most // 4096 + 1000
    needs = kp.ops.exp.memory_needs(kp.TensorSpec((rows, 1024)))
    assert needs[1:] == (rows * 4096, rows * 4096, 0)
    needs = kp.ops.sum.memory_needs(kp.TensorSpec((rows, 1024)), axis=0)
    assert needs.inputs == rows * 4096 and needs.scratch < rows * 1024


def test_images(mgr):
    copied = mgr.kernel("""
    #version 450
    layout(local_size_x = 8, local_size_y = 8) in;
    layout(binding = 0, rgba8) readonly uniform image2D a;
    layout(binding = 1, rgba8) writeonly uniform image2D b;
    void main() {
        ivec2 at = ivec2(gl_GlobalInvocationID.xy);
        if (all(lessThan(at, imageSize(a)))) imageStore(b, at, imageLoad(a, at));
    }""")
    image = mgr.image_t(np.zeros((512, 300, 4), np.uint8), format="rgba8")
    image.read()
    told = copied.memory_needs(image)
    assert told[1:3] == (image.nbytes, image.nbytes)
    check("a made image", mgr, told.outputs + told.scratch, grown(mgr, lambda: copied(image)))
    other = mgr.image_empty((512, 300), "rgba8")
    assert copied.memory_needs(image, other)[1:] == (image.nbytes, image.nbytes, 0)
    gc.collect()
    alive = kp.alive(manager=mgr)
    copied.memory_needs(image)
    assert kp.alive(manager=mgr) == alive
    told = kp.ops.add.memory_needs(image, image)
    kp.ops.add(image, image)
    check("add", mgr, told.outputs + told.scratch, grown(mgr, lambda: kp.ops.add(image, image)))


def test_recordings(mgr):
    gc.collect()
    mgr.memory.trim()
    before = mgr.memory.used
    x, y, z = (mgr.zeros(ELEMENTS) for _ in range(3))
    sequence = mgr.sequence()
    sequence.record(kp.ops.exp.bind(x, out=y)).record(kp.ops.cumsum.bind(y, out=z))
    sequence.record(kp.OpRepeat([kp.OpCopy([z, y[:ELEMENTS]])], 3))
    told = sequence.memory_needs()
    assert told[1:3] == (x.nbytes, y.nbytes + z.nbytes)
    assert told.code > 100
    sequence.eval()
    check("a sequence", mgr, told.total, mgr.memory.used - before)
    split = mgr.sequence().record(kp.OpFill([x], 1.0), kp.OpHostCall(lambda: None, reads=[x], writes=[y]))
    assert split.memory_needs()[1:] == (0, x.nbytes + y.nbytes, 0)

    class Own(kp.OpBase):
        reads = ()
        writes = ()

        def record(self, cmd):
            pass

    with pytest.raises(kp.errors.UnimplementedError, match="Own records"):
        mgr.sequence().record(Own()).memory_needs()


def test_entries_of_kernels(mgr):
    kernel = mgr.kernel(TWICE)
    program = kp.Program.record({"twice": kernel}).on(mgr)
    spec = kp.TensorSpec(ELEMENTS)
    assert program.twice.memory_needs(spec) == kernel.memory_needs(spec)
    assert program.memory_needs()[1:] == (0, 0, 0)
