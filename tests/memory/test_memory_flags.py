"""What Vulkan states of a tensor's memory."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp
from tests.support.child import run_child

pytestmark = pytest.mark.own_driver


def flags():
    mgr = kp.Manager()
    made = {name: mgr.zeros(64, memory_type=name) for name in ("device", "storage", "host", "deviceAndHost")}
    found = {name: list(t.memory_flags) for name, t in made.items()}
    assert made["storage"][8:].memory_flags == made["storage"].memory_flags
    found["image"] = list(mgr.image(np.ones((8, 8), np.float32)).memory_flags)
    made["host"].destroy()
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        _ = made["host"].memory_flags
    return found


def of_others():
    mgr = kp.Manager()
    array = kp.aligned_empty(4096, np.float32)
    return [list(t.memory_flags) for t in (mgr.from_host(array), mgr.shared(4))]


def test_memory_of_others_has_flags():
    for each in run_child(of_others, driver="lavapipe"):
        assert "host_visible" in each


def test_flags_of_separate_memories():
    found = run_child(flags, driver="null")
    alone = ["device_local"]
    assert found["storage"] == found["device"] == found["image"] == alone
    assert "host_visible" in found["host"] and "device_local" not in found["host"]
    assert {"device_local", "host_visible"} <= set(found["deviceAndHost"])


@pytest.mark.capability(
    "I15", "the flags of the memory that a tensor got", "Tensor.memory_flags", "concepts/memory_types"
)
def test_flags_of_one_memory():
    every = ["device_local", "host_visible", "host_coherent", "host_cached"]
    found = run_child(flags, driver="null", config="memory=unified")
    assert set(map(tuple, found.values())) == {tuple(every)}
    found = run_child(flags, driver="null", config="memory=noncoherent")
    assert not any("host_coherent" in each for each in found.values())
