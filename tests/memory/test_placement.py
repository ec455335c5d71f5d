"""What tensors' memory must be beyond its type: memory_flags asked for and read back."""

import numpy as np
import pytest

import kompute_py as kp
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
