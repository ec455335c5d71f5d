"""A list of tensors and images: one check for every call that takes one, and one for the list of sequences of
`submit`.
"""

from __future__ import annotations

import re
from contextlib import nullcontext
from itertools import chain

import numpy as np
import pytest

import kompute_py as kp

SOURCE = """#version 450
layout(local_size_x = 1) in;
layout(binding = 0) buffer A { float a[]; };
layout(binding = 1) buffer B { float b[]; };
void main() { b[gl_GlobalInvocationID.x] = 2.0 * a[gl_GlobalInvocationID.x]; }
"""
SPIRV = kp.compile(SOURCE)


class Declares(kp.OpBase):
    def __init__(self, reads, writes):
        self.reads, self.writes = reads, writes

    def record(self, cmd):
        pass


class World:
    """A Manager's objects, and the calls on them. Each call gets a list of three tensors."""

    def __init__(self, mgr):
        self.mgr = mgr
        self.a, self.b, self.c = (mgr.tensor([i, i, i]) for i in (1, 2, 3))
        self.kernel = mgr.kernel(SOURCE)

    def evaluated(self, operation):
        self.mgr.sequence().record(operation).eval()

    def streamed(self, **given):
        lists = {"inputs": [self.a], "outputs": [self.b]} | given
        sequence = self.mgr.sequence().record(kp.OpCopy([self.a, self.b]))
        return list(sequence.stream([np.zeros(3, np.float32)], **lists))


# How errors name the call, and the call.
CALLS = {
    "algorithm(tensors=...)": lambda w, given: w.mgr.algorithm(given, SPIRV, (1, 1, 1)),
    "OpAlgoBase": lambda w, given: kp.OpAlgoBase(given, SPIRV, (1, 1, 1)),
    "OpMult": lambda w, given: w.evaluated(kp.OpMult(given)),
    "OpCopy": lambda w, given: w.evaluated(kp.OpCopy(given)),
    "OpFill": lambda w, given: w.evaluated(kp.OpFill(given, 1)),
    "OpSyncDevice": lambda w, given: w.evaluated(kp.OpSyncDevice(given)),
    "OpSyncLocal": lambda w, given: w.evaluated(kp.OpSyncLocal(given)),
    "Declares.reads": lambda w, given: w.evaluated(Declares(given, [])),
    "Declares.writes": lambda w, given: w.evaluated(Declares([], given)),
    "sequence(disjoint=...)": lambda w, given: w.mgr.sequence(disjoint=given),
    "main(uses=...)": lambda w, given: w.kernel(w.a, w.b, uses=given),
    "stream(shared=...)": lambda w, given: w.streamed(shared=given),
    "stream(inputs=...)": lambda w, given: w.streamed(inputs=given),
    "stream(outputs=...)": lambda w, given: w.streamed(outputs=given),
}
# The same, under the names of other calls.
ALIKE = {
    "kp.Algorithm": ("algorithm(tensors=...)", lambda w, given: kp.Algorithm(w.mgr, given, SPIRV, (1, 1, 1))),
    "no shader": ("algorithm(tensors=...)", lambda w, given: kp.Algorithm(w.mgr, given)),
    "rebuild": ("algorithm(tensors=...)", lambda w, given: w.mgr.algorithm([w.a, w.b], SPIRV).rebuild(given)),
    "bind": ("main(uses=...)", lambda w, given: w.kernel.bind(w.a, w.b, uses=given)),
    "submit": ("main(uses=...)", lambda w, given: w.kernel.submit(w.a, w.b, uses=given).wait()),
    "OpTensorCopy": ("OpCopy", lambda w, given: kp.OpTensorCopy(given)),
}
ALL = {name: (name, call) for name, call in CALLS.items()} | ALIKE
OPTIONAL = ("sequence(", "main(", "stream(")  # take a single object, too
NOT_MADE = ("stream(inputs", "stream(outputs")  # three of them are not what the recording reads and writes


class DoesNotIterate:
    def __iter__(self):
        raise ValueError("iteration of its own")


def destroyed(mgr):
    t = mgr.tensor([0, 0, 0])
    t.destroy()
    return t


@pytest.mark.parametrize("name", ALL)
def test_what_is_refused(name, mgr, clean):
    world, other = World(mgr), kp.Manager()
    called, call = ALL[name]
    a, b = world.a, world.b
    foreign = other.tensor([0, 0, 0])
    # Errors name the call, and the argument if there are others.
    call_name, _, argument = called.removesuffix("=...)").partition("(")
    wrong = {
        "a number": (5, kp.ArgumentTypeError, "not 5"),
        "text": ("abc", kp.ArgumentTypeError, "not 'abc'"),
        "bytes": (b"abc", kp.ArgumentTypeError, "not b'abc'"),
        "a dict": ({"a": a, "b": b}, kp.ArgumentTypeError, "give its values"),
        "a dict by tensor": ({a: 1, b: 2, world.c: 3}, kp.ArgumentTypeError, "give its values"),
        "a set": ({a, b, world.c}, kp.ArgumentTypeError, "a set has no order"),
        "an array": (np.zeros(3), kp.ArgumentTypeError, "mgr.tensor_t(array)"),
        "a class": (kp.Tensor, kp.ArgumentTypeError, "kompute_py.Tensor"),
        "no iteration": (DoesNotIterate(), kp.ArgumentTypeError, "does not iterate: iteration of its own"),
        "an array inside": ([a, b, np.zeros(3)], kp.ArgumentTypeError, "ELEMENT 2 is array"),
        "a number inside": ([a, 5, b], kp.ArgumentTypeError, "ELEMENT 1 is 5, an int"),
        "None inside": ((a, None, b), kp.ArgumentTypeError, "ELEMENT 1 is None"),
        "a list inside": ([[a], [b]], kp.ArgumentTypeError, "ELEMENT 0 is ["),
        "text inside": ([a, b, "c"], kp.ArgumentTypeError, "ELEMENT 2 is 'c'"),
        "a sequence inside": ([a, b, mgr.sequence()], kp.ArgumentTypeError, "ELEMENT 2 is <kp.Sequence"),
        "inside a generator": ((x for x in (a, b, 5)), kp.ArgumentTypeError, "ELEMENT 2 is 5"),
        "destroyed": (
            [a, b, destroyed(mgr)],
            kp.FailedPreconditionError,
            "is destroyed: it cannot be ELEMENT 2",
        ),
        "destroyed, generated": ((x for x in (a, destroyed(mgr))), kp.FailedPreconditionError, "ELEMENT 1"),
    }
    if called != "OpCopy":  # copies between Managers
        wrong["another Manager's"] = ([a, b, foreign], kp.InvalidArgumentError, "copy it over with .to(mgr)")
    if name != "rebuild" and not called.startswith(
        ("main(", "Declares.")
    ):  # there it stands for nothing given
        wrong["None"] = (None, kp.ArgumentTypeError, "not None")
    if not called.startswith(OPTIONAL):
        wrong["a tensor"] = (a, kp.ArgumentTypeError, "[tensor]")
        if not called.startswith(("algorithm", "Declares")):
            wrong["empty"] = ([], kp.InvalidArgumentError, "at least one is needed")
    failed = {}
    for kind, (given, expected, text) in wrong.items():
        try:
            call(world, given)
            failed[kind] = "nothing raised"
        except Exception as error:
            text = re.sub(r"ELEMENT (\d)", f"{argument}[\\1]" if argument else r"element \1", text)
            if type(error) is not expected or text not in str(error) or call_name not in str(error):
                failed[kind] = error
    assert not failed

    def failing():
        yield a
        raise ZeroDivisionError("the generator's own")

    with pytest.raises(ZeroDivisionError):
        call(world, failing())
    other.destroy()


@pytest.mark.parametrize("name", [name for name in ALL if not name.startswith(NOT_MADE)])
def test_what_is_taken(name, mgr, clean):
    world = World(mgr)
    _, call = ALL[name]
    three = (world.a, world.b, world.c)
    surplus = name in ("algorithm(tensors=...)", "kp.Algorithm", "rebuild", "OpAlgoBase")
    with pytest.warns(kp.KomputeWarning, match="3 tensors") if surplus else nullcontext():
        for given in (
            list(three),
            three,
            iter(three),
            (x for x in three),
            dict.fromkeys(three).keys(),
            chain(three[:1], three[1:]),
        ):
            call(world, given)
    if ALL[name][0].startswith(OPTIONAL):
        call(world, world.a)
        call(world, ())


def test_generators_are_used_whole(mgr, clean):
    """Consumed once: the operation has all of the elements, not what a first look left."""
    a, b, c = (mgr.tensor([i, i + 1]) for i in (3, 5, 7))
    both = lambda *memories: (each for each in memories)  # noqa: E731
    s = mgr.sequence().record(kp.OpSyncDevice(both(a, b, c))).record(kp.OpMult(both(a, b, c)))
    s.record(kp.OpSyncLocal(both(a, b, c))).eval()
    assert c.numpy().tolist() == [15, 24]
    mgr.sequence().record(kp.OpCopy(both(c, a, b))).eval()
    assert a.read().tolist() == b.read().tolist() == [15, 24]
    mgr.sequence().record(kp.OpFill(both(a, b), 9)).eval()
    assert a.read().tolist() == b.read().tolist() == [9, 9] and c.read().tolist() == [15, 24]
    algorithm = mgr.algorithm(both(c, a), SPIRV, (2, 1, 1))
    mgr.sequence().record(kp.OpAlgoDispatch(algorithm)).eval()
    assert a.read().tolist() == [30, 48] and algorithm.get_tensors() == [c, a]
    assert kp.OpAlgoBase(both(c, a), SPIRV, (2, 1, 1)).algorithm.get_tensors() == [c, a]
    other = kp.Manager()
    there = other.zeros(2)
    mgr.sequence().record(kp.OpCopy(both(c, there))).eval()
    assert there.read().tolist() == [15, 24]
    other.destroy()


def by_attribute(tensors):
    return Declares([], (each for each in tensors))


def by_class(tensors):
    class Operation(Declares):
        writes = (each for each in tensors)

        def __init__(self):
            pass

    Operation()._bind(tensors[0]._manager)  # another object of the class reads it first
    return Operation()


def by_slot(tensors):
    class Operation(kp.OpBase):
        __slots__ = ("writes",)

        def record(self, cmd):
            pass

    operation = Operation()
    operation.writes = (each for each in tensors)
    return operation


def by_property(tensors):
    class Operation(kp.OpBase):
        @property
        def writes(self):
            return (each for each in tensors)

        def record(self, cmd):
            pass

    return Operation()


@pytest.mark.parametrize("declare", [by_attribute, by_class, by_slot, by_property])
def test_a_generator_that_an_operation_declares_counts_at_each_recording(declare, mgr, clean):
    """It is empty after the first one, and without the declaration barriers would be missing."""
    a, b = mgr.zeros(2), mgr.zeros(2)
    operation = declare([a, b])
    recordings = [mgr.sequence().record(operation) for _ in range(3)]
    for recording in recordings:
        recording.eval()
    b.destroy()
    for recording in recordings:  # each knows that it uses b
        with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
            recording.eval()


def test_images_are_taken(mgr, clean):
    image = mgr.image(np.ones((4, 4), np.float32))
    t = mgr.zeros(16)
    mgr.sequence().record(kp.OpSyncDevice(x for x in (image, t))).record(
        kp.OpCopy(x for x in (image, t))
    ).eval()
    assert t.read().tolist() == [1.0] * 16
    mgr.sequence().record(kp.OpFill((x for x in (t, image)), 2)).eval()
    assert (image.read() == 2).all() and t.read().tolist() == [2.0] * 16
    with pytest.raises(kp.ArgumentTypeError, match="not Image"):
        mgr.kernel(SOURCE)(mgr.zeros(2), mgr.zeros(2), uses=[image])


def test_sequences_of_submit(mgr, clean):
    a = mgr.zeros(2)
    first, second = (mgr.sequence().record(kp.OpFill([a], i)) for i in (1, 2))
    mgr.submit(s for s in (first, second)).wait()
    assert a.read().tolist() == [2, 2]
    mgr.submit(first).wait()
    assert a.read().tolist() == [1, 1]
    for wrong, text in (
        (5, "not 5"), (None, "not None"), ("abc", "not 'abc'"), ({"a": first}, "give its values"),
        (DoesNotIterate(), "does not iterate"),
        ([first, 5], "element 1 is 5, an int"), ([first, a], "element 1 is <kp.Tensor"),
        ((s for s in (second, None)), "element 1 is None"),
        (a, "submit takes sequences"), ([[first]], "element 0 is ["),
    ):  # fmt: skip
        with pytest.raises(kp.ArgumentTypeError) as caught:
            mgr.submit(wrong)
        assert "submit takes sequences, as in mgr.submit([seq, ...])" in str(caught.value) and text in str(
            caught.value
        )
    assert a.read().tolist() == [1, 1]
