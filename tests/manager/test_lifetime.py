"""Lifetime: objects go in any order, any number of times; what was in flight ends, what NumPy shows stays."""

from __future__ import annotations

import copy
import gc
import itertools
import pickle

import numpy as np
import pytest

import kompute_py as kp

SUM = """
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) readonly buffer Left { float left[]; };
layout(set = 0, binding = 1) readonly buffer Right { float right[]; };
layout(set = 0, binding = 2) writeonly buffer Sum { float sum[]; };
void main() { sum[gl_GlobalInvocationID.x] = left[gl_GlobalInvocationID.x] + right[gl_GlobalInvocationID.x]; }
"""


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, pickle.dumps])
def test_objects_on_a_device_are_not_copied_behind_its_back(mgr, how):
    t = mgr.tensor([1, 2, 3])
    things = [(mgr, "kp.Manager"), (t, "read"), (t[0:2], "read"), (mgr.sequence(), "record")]
    things += [
        (mgr.image(np.ones((2, 2), np.float32)), "read"),
        (mgr.algorithm([t] * 3, kp.compile(SUM)), "SPIR-V"),
    ]
    kernel = mgr.kernel(
        "#version 450\nlayout(binding = 0) buffer A { float a[]; }; void main() { a[0] = 1; }"
    )
    mapping = t.map(read=True)
    things += [
        (kernel.bind(t), "make a new one"),
        (mapping, "copy its array"),
    ]
    things += [(kp.OpSyncLocal([t]), "record the same"), (t[0:1].copy_to(mgr.zeros(1)), "wait for this")]
    things += [
        (mgr.sampler(), "mgr.sampler"),
        (things[4][0].sampled(), "image.sampled"),
        (mgr.memory, "heaps"),
    ]
    for thing, instead in things:
        with pytest.raises(kp.ArgumentTypeError, match=f"cannot be copied or pickled; .*{instead}") as caught:
            how(thing)
        assert isinstance(caught.value, TypeError)
    mapping.close()


def test_managers_of_one_device_are_told_apart(make_manager):
    assert repr(make_manager()) != repr(make_manager())


def test_use_after_destroy_of_the_manager(mgr):
    code = kp.compile(SUM)
    tensors = [mgr.tensor([1, 2, 3]) for _ in range(3)]
    t, image, algorithm = tensors[0], mgr.image(np.zeros((2, 2), np.float32)), mgr.algorithm(tensors, code)
    seq = mgr.sequence().record(kp.OpSyncDevice(tensors)).eval()
    op = kp.OpSyncLocal(tensors)
    mgr.destroy()
    for use in (
        t.data, t.numpy, t.read, lambda: t.write([1, 2, 3]), lambda: np.asarray(t), image.data, image.read,
        seq.eval,
        seq.eval_async, seq.eval_await, seq.clear, seq.rerecord, lambda: seq.record(op), lambda: seq.eval(op),
        lambda: mgr.tensor([1]), lambda: mgr.tensor_t([1]), lambda: mgr.zeros(3),
        lambda: mgr.image(np.zeros((2, 2))),
        mgr.sequence, lambda: mgr.algorithm(tensors, code), mgr.__enter__,
    ):  # fmt: skip
        with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
            use()
    for thing in (mgr, t, image, algorithm, seq):
        assert not thing.is_init() and "destroyed" in repr(thing)
        thing.destroy()
    assert t.size() == len(t) == 0 and mgr.get_device_properties()["device_name"] and mgr.list_devices()


def test_what_is_destroyed_gives_no_handles(mgr):
    t, image = mgr.tensor([1, 2, 3]), mgr.image(np.zeros((2, 2), np.float32))
    algorithm = mgr.algorithm([t] * 3, kp.compile(SUM))
    seq = mgr.sequence().record(kp.OpAlgoDispatch(algorithm)).eval()
    things = [seq, algorithm, image, t[1:], t, mgr]
    handles = [[name for name in dir(thing) if name.startswith("vk_")] for thing in things]
    assert [len(names) for names in handles] == [2, 3, 5, 6, 6, 5]
    for thing, names in zip(things, handles, strict=True):
        for name in names:
            getattr(thing, name)
    for thing, names in zip(things, handles, strict=True):
        thing.destroy()
        for name in names:
            with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
                getattr(thing, name)()  # vk_queue is a method


@pytest.mark.capability(
    "K4 K70",
    "objects end in any order; memory stays while it is used",
    "Tensor.destroy, Sequence.destroy",
    "concepts/lifetimes",
)
def test_destroying_in_any_order_and_twice():
    """All orders, on Managers without validation: that one process makes so many is part of the test."""
    gc.collect()
    before = kp.alive()
    code = kp.compile(SUM)
    for order in itertools.permutations(range(4)):
        mgr = kp.Manager()
        tensors = [mgr.tensor([1, 2, 3], kind) for kind in ("device", "host", "storage")]
        algorithm = mgr.algorithm(tensors, code, (3, 1, 1))
        seq = (
            mgr.sequence().record(kp.OpSyncDevice(tensors)).record(kp.OpAlgoDispatch(algorithm)).eval_async()
        )
        things = [mgr, tensors[order[0] % 3], algorithm, seq]
        for index in order:
            things[index].destroy()
            things[index].destroy()
            assert not things[index].is_init()
        del mgr, tensors, algorithm, seq, things
    gc.collect()
    assert kp.alive() == before


@pytest.mark.parametrize("end", ["tensor.destroy()", "mgr.destroy()", "del mgr"])
@pytest.mark.parametrize("where", ["device", "host", "deviceAndHost"])
def test_views_outlive_what_they_show(end, where):
    gc.collect()
    before = kp.alive()
    mgr = kp.Manager()
    tensor = mgr.tensor(np.arange(50_000), where)
    view, shaped = tensor.data(), tensor.numpy()
    part = view[10:20]
    if end == "tensor.destroy()":
        tensor.destroy()
        filler = [
            mgr.zeros(50_000, memory_type=where) for _ in range(4)
        ]  # would take the memory if it were free
        assert not any(t.data().any() for t in filler)
        del filler
    elif end == "mgr.destroy()":
        mgr.destroy()
        assert not view.base.is_init()
    del mgr, tensor
    gc.collect()
    assert view[49_999] == 49_999 and shaped.sum() == view.sum() == 49_999 * 25_000
    view[:] = 7
    assert part.tolist() == [7] * 10
    del view, shaped, part
    gc.collect()
    assert kp.alive() == before


def test_failed_constructors_leave_nothing(mgr):
    code = kp.compile(SUM)
    t = mgr.tensor([1])
    gc.collect()
    before = kp.alive(detail=True)
    for _ in range(20):
        for make in (
            lambda: mgr.algorithm([t], code), lambda: mgr.empty(1 << 45, np.uint8), lambda: mgr.sequence(9),
            lambda: mgr.image(np.zeros(5), 2, 2, 1), lambda: kp.Manager(99),
        ):  # fmt: skip
            with pytest.raises(kp.KomputeError):
                make()
    gc.collect()
    after = kp.alive(detail=True)
    assert after | {"shader": 0} == before | {"shader": 0}  # the Manager keeps what it has compiled


@pytest.mark.filterwarnings("error")
def test_objects_that_were_never_made_are_deleted_quietly():
    for make in (
        lambda: kp.Manager("no such gpu"), lambda: kp.Sequence(None, 0), lambda: kp.Tensor(None, [1]),
        lambda: kp.Algorithm(None, [], b"no"), lambda: kp.Image(None, np.zeros((2, 2))),
    ):  # fmt: skip
        with pytest.raises((kp.KomputeError, AttributeError, TypeError)):
            make()
    gc.collect()


@pytest.mark.capability(
    "P41", "live objects of the process or a Manager", "kp.alive", "guides/troubleshooting"
)
def test_alive_of_one_manager(make_manager):
    one, other = make_manager(validation=False), make_manager(validation=False)
    before = kp.alive(detail=True, manager=one)
    assert before["context"] == 1 and before["buffer"] == 0
    kept = [one.zeros(4), one.zeros(4), other.zeros(4), one.sequence()]
    assert kp.alive(detail=True, manager=one) == {**before, "buffer": 2, "stream": 1}
    assert kp.alive(manager=one) == sum(before.values()) + 3
    assert kp.alive(True, manager=other)["buffer"] == 1
    assert kp.alive(detail=True)["buffer"] == 3
    one.destroy()
    assert kp.alive(detail=True, manager=one)["buffer"] == 2  # destroyed, and still held here
    kept.clear()
    assert kp.alive(detail=True, manager=one)["buffer"] == 0
    with pytest.raises(kp.ArgumentTypeError, match="manager=mgr"):
        kp.alive(other)
    with pytest.raises(kp.ArgumentTypeError, match=r"kp\.Manager"):
        kp.alive(manager=3)
