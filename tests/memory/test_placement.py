"""What tensors' memory must be beyond its type, asked for and read back: flags, priorities, places."""

import gc
import re

import numpy as np
import pytest

import kompute_py as kp
from tests.drivers import null_control
from tests.support.child import run_child

MAKERS = {
    "empty": lambda mgr, *rest, **named: mgr.empty(9, np.float32, *rest, **named),
    "zeros": lambda mgr, *rest, **named: mgr.zeros(9, np.float32, *rest, **named),
    "full": lambda mgr, *rest, **named: mgr.full(9, 7, np.float32, *rest, **named),
}
TYPES = ("device", "host", "storage", "deviceAndHost")
FLAGS = ("device_local", "host_visible", "host_coherent", "host_cached")


@pytest.mark.capability("I8", "memory by Vulkan's property flags", "Manager.empty", "concepts/memory_types")
@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("memory_type", TYPES)
def test_flags_asked_for_are_got_or_refused(mgr, make, memory_type):
    kinds = [
        {name for name, has in kind.items() if has is True}
        for kind in mgr.get_device_properties().memory_types
    ]
    for n in range(1, 16):
        wanted = {flag for k, flag in enumerate(FLAGS) if n >> k & 1}
        try:
            tensor = MAKERS[make](mgr, memory_type, memory_flags=sorted(wanted))
        except kp.UnimplementedError as error:
            assert "memory_flags" in str(error) and "memory_types" in str(error)
            # The device has none, or none that serves this type.
            assert not any(wanted <= kind for kind in kinds) or memory_type != "device"
        else:
            assert wanted <= set(tensor.memory_flags)
            tensor.write(np.arange(9))
            np.testing.assert_array_equal(tensor.read(), np.arange(9))
    assert MAKERS[make](mgr, memory_type, memory_flags=()).memory_type().name == memory_type


@pytest.mark.parametrize(
    "flags, error, words",
    [
        ("host_cache", kp.InvalidArgumentError, "'host_cache'.*device_local, host_visible"),
        (["host_cached", "fast"], kp.InvalidArgumentError, "'fast'"),
        (3, kp.ArgumentTypeError, "memory_flags is 3.*names of flags"),
        ([3], kp.ArgumentTypeError, "names of flags"),
        ({"host_cached": 1}, kp.ArgumentTypeError, "names of flags"),
    ],
)
def test_other_flags_are_refused(mgr, flags, error, words):
    for make in MAKERS.values():
        with pytest.raises(error, match=words):
            make(mgr, memory_flags=flags)


def by_flags() -> list[str]:
    with kp.Manager() as mgr:
        cached = mgr.zeros(100, memory_type="host", memory_flags="host_cached")
        coherent = mgr.zeros(100, memory_type="host", memory_flags=["host_coherent"])
        refused = ""
        try:
            mgr.zeros(100, memory_type="host", memory_flags=["host_coherent", "host_cached"])
        except kp.UnimplementedError as error:
            refused = str(error)
        return [" ".join(cached.memory_flags), " ".join(coherent.memory_flags), refused]


@pytest.mark.own_driver
def test_a_discrete_device_has_both_kinds():
    cached, coherent, refused = run_child(by_flags, driver="null", config="memory=discrete")
    assert "host_cached" in cached and "host_coherent" not in cached
    assert "host_coherent" in coherent and "host_cached" not in coherent
    assert "no memory with all of these memory_flags" in refused


def by_priority() -> dict[str, object]:
    control = null_control()
    with kp.Manager() as mgr, control.logging():
        first, last = mgr.empty(1000, priority=0.9), mgr.zeros(1000, memory_type="storage", priority=0)
        plain = mgr.full(1000, 7.0, priority=0.5)
        asked = [each["priority"] for each in control.allocations() if each["priority"] is not None]
        told = [first.priority, last[:10].priority, plain.priority]
        heaps = [each.allocations for each in mgr.memory.heaps]
        first.write(np.arange(1000))
        same = bool((first.read() == np.arange(1000)).all() and (last.read() == 0).all())
        before = sum(each.blocks for each in mgr.memory.heaps)
        del first, last
        gc.collect()
        left = before - sum(each.blocks for each in mgr.memory.heaps)
        place = mgr.memory_place("storage").priorities
        features = [name for name in mgr.enabled_features if "emory" in name and "odel" not in name]
    return {
        "asked": asked, "told": told, "same": same, "left": left, "place": place, "features": features,
        "heaps": heaps, "violations": control.violations(),
    }  # fmt: skip


@pytest.mark.own_driver
@pytest.mark.capability(
    "",
    "priorities of memory, for devices that several programs fill",
    "Tensor.priority",
    "concepts/memory_types",
)
def test_priorities_reach_the_driver():
    found = run_child(by_priority, driver="null", config="profile=geforce")
    assert found["asked"] == pytest.approx([0.9, 0.0])
    assert found["told"] == [0.9, 0.0, 0.5] and found["same"] and found["place"]
    assert found["left"] == 2  # each had an allocation of its own
    assert {"memoryPriority", "pageableDeviceLocalMemory"} <= set(found["features"])
    assert found["violations"] == []


def test_a_device_without_priorities_ignores_them(mgr):
    if "memoryPriority" in mgr.enabled_features:
        assert mgr.zeros(4, priority=0.25).priority == 0.25
    else:
        assert mgr.zeros(4, priority=0.25).priority is None and not mgr.memory_place().priorities
    for wrong, error in (
        (-0.1, kp.InvalidArgumentError),
        (1.5, kp.InvalidArgumentError),
        (float("nan"), kp.InvalidArgumentError),
        ("0.5", kp.ArgumentTypeError),
        ([1], kp.ArgumentTypeError),
    ):
        for make in MAKERS.values():
            with pytest.raises(error, match="priority is"):
                make(mgr, priority=wrong)


@pytest.mark.capability(
    "I1",
    "the memory that a tensor would get: its properties, limits and what is left",
    "Manager.memory_place",
    "concepts/memory_types",
)
@pytest.mark.parametrize("memory_type", TYPES)
def test_the_place_is_the_one_that_a_tensor_gets(mgr, memory_type):
    place = mgr.memory_place(memory_type)
    tensor = mgr.empty(1000, memory_type=memory_type)
    assert place.memory_flags == tensor.memory_flags
    assert mgr.memory.heaps[place.heap].size >= place.largest >= place.largest_binding // 2**10
    assert place.room > 0
    assert place.mappable == tensor.mappable
    assert place.importable == (memory_type == "host" and mgr.host_import_alignment is not None)
    if place.shareable:
        assert mgr.shared(100, memory_type=memory_type).nbytes == 400
    elif memory_type != "device":
        with pytest.raises(kp.UnimplementedError):
            mgr.shared(100, memory_type=memory_type)
    for n in range(1, 16):
        flags = [flag for k, flag in enumerate(FLAGS) if n >> k & 1]
        try:
            made = mgr.empty(9, memory_type=memory_type, memory_flags=flags)
        except kp.UnimplementedError as error:
            with pytest.raises(kp.UnimplementedError, match=re.escape(str(error))):
                mgr.memory_place(memory_type, memory_flags=flags)
        else:
            assert mgr.memory_place(memory_type, memory_flags=flags).memory_flags == made.memory_flags


def test_a_limit_bounds_the_place(make_manager):
    with make_manager(memory_limit="8 MiB") as mgr:
        before = mgr.memory_place("storage")
        assert before.largest == 8 << 20 and before.room <= 8 << 20
        tensor = mgr.zeros(1 << 20, memory_type="storage")  # 4 MiB
        assert mgr.memory_place("storage").room <= 4 << 20
        with pytest.raises(kp.OutOfMemoryError):
            mgr.zeros((before.largest >> 2) + 1024, memory_type="storage")
        assert tensor.is_init()
    with pytest.raises(kp.FailedPreconditionError):
        mgr.memory_place()
