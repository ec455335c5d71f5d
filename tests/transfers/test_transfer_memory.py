"""What transfers cost in memory: none of them holds a second copy of the data on the host.

Each case runs in a process of its own and asks the system for the most memory that the process ever had in
use, which the system counts page by page. The arrays, and the device's memory of the CPU drivers, are in use
before the count begins.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._files import reading
from tests.support.child import run_child

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")

pytestmark = [
    pytest.mark.own_driver,
    pytest.mark.skipif(not RESET.exists(), reason="this system does not count a process's peak anew"),
]

MIB = 1 << 20
SIZE = 96 * MIB
# Two slots of native/core/device/staging.hpp.
RING = 8 * MIB
# Of memory that is not coherent the null driver keeps three copies, the host's, the device's, and that of the
# last flush.
NULL_RING = 3 * RING
# Stacks, Python's own objects, a driver's command memory.
SLACK = 3 * MIB
TYPES = ["device", "host", "storage", "deviceAndHost"]


def in_use(field: str) -> int:
    found = re.search(rf"^{field}:\s+(\d+) kB$", STATUS.read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) << 10


def growth(work: Callable[[], object]) -> int:
    """Bytes by which the most memory in use during `work` is above that before it."""
    before = in_use("VmRSS")
    RESET.write_text("5")
    result = work()
    peak = in_use("VmHWM")
    del result
    return peak - before


def filled(value: float) -> np.ndarray:
    return np.full(SIZE // 4, value, np.float32)


# -- in the child --------------------------------------------------------------------------------------------


def measure_a_copy() -> list[int]:
    """What the measure says of work that does take as much memory, and of work that takes none."""
    data, other = filled(1), filled(2)
    return [growth(data.copy), growth(lambda: np.copyto(other, data))]


def transfers(memory_type: str) -> dict[str, int]:
    manager = kp.Manager()
    data, out = filled(3), filled(0)
    tensor = manager.empty(data.shape, np.float32, memory_type)
    # Puts the device's memory in use, and leaves the staging ring to the write.
    manager.sequence().eval(kp.OpFill([tensor], 1.0))
    grown = {
        "write": growth(lambda: tensor.write(data)),
        "read": growth(lambda: tensor.read(out)),
    }
    assert np.array_equal(out, data)
    return grown


def first_transfer(memory_type: str) -> int:
    """The growth of the first write, of which the device's memory is a part on every driver of ours."""
    manager = kp.Manager()
    data = filled(3)
    tensor = manager.empty(data.shape, np.float32, memory_type)
    return growth(lambda: tensor.write(data))


def shared() -> dict[str, object]:
    """deviceAndHost: NumPy writes, the device doubles, NumPy reads."""
    manager = kp.Manager()
    tensor = manager.empty(SIZE // 4, np.float32, "deviceAndHost")
    other = manager.empty(SIZE // 4, np.float32, "deviceAndHost")
    tensor.write(filled(1))
    other.write(filled(1))
    sequence = manager.sequence().record(kp.OpCopy([tensor, other]))
    sequence.eval()
    seen = []

    def round_trip() -> None:
        tensor.numpy()[:] = 5
        sequence.eval()
        seen.append(np.asarray(other))

    grown = growth(round_trip)
    return {
        "growth": grown,
        "values": [float(seen[0].min()), float(seen[0].max())],
        "is the device's memory": bool(np.shares_memory(seen[0], other.data())),
    }


def parameter_files(memory_type: str) -> dict[str, int]:
    manager = kp.Manager()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.safetensors"
        tensor = manager.empty(SIZE // 4, np.float32, memory_type)
        tensor.write(filled(7))
        save = growth(lambda: kp.save_tensors(path, {"large": tensor}))
        before = kp.load_tensors(path, manager, memory_type=memory_type)
        load = growth(lambda: kp.load_tensors(path, manager, memory_type=memory_type))
        loaded = before["large"].read()
        assert loaded.min() == loaded.max() == 7
    return {"save": save, "load": load}


# -- here ----------------------------------------------------------------------------------------------------

# What is measured is the drivers' own memory, whatever options the whole run has.
OWN_MEMORY = {
    "KOMPUTE_PY_FORCE_STAGING": "0",
    "KOMPUTE_PY_FORCE_NON_COHERENT": "0",
    "KOMPUTE_PY_MEMORY_DEBUG": "0",
}


def test_the_measure_sees_a_copy_and_nothing_else():
    copied, moved = run_child(measure_a_copy)
    assert SIZE - SLACK <= copied <= SIZE + SLACK
    assert moved <= SLACK


@pytest.mark.parametrize("memory_type", TYPES)
@pytest.mark.parametrize("driver", ["lavapipe", "swiftshader"])
def test_transfers_on_cpu_drivers_take_no_memory(driver, memory_type):
    grown = run_child(transfers, memory_type, driver=driver, env=OWN_MEMORY)
    assert max(grown.values()) <= SLACK, grown


@pytest.mark.capability(
    "I12 S20", "staging memory, made and reused by itself", "Tensor.read, Tensor.write", "guides/performance"
)
@pytest.mark.parametrize("memory_type", ["device", "storage"])
def test_transfers_to_discrete_memory_take_the_staging_ring_and_take_it_once(memory_type):
    grown = run_child(transfers, memory_type, driver="null", env=OWN_MEMORY)
    assert RING <= grown["write"] <= NULL_RING + SLACK, grown
    assert grown["read"] <= SLACK, grown


@pytest.mark.parametrize("memory_type", ["device", "storage"])
def test_a_tensors_host_copy_is_not_filled_by_a_write(memory_type):
    assert run_child(first_transfer, memory_type, driver="lavapipe", env=OWN_MEMORY) <= SIZE + SLACK


def test_device_and_host_needs_no_copy_at_all():
    assert run_child(shared, driver="lavapipe", env=OWN_MEMORY) == {
        "growth": pytest.approx(0, abs=SLACK),
        "values": [5, 5],
        "is the device's memory": True,
    }


@pytest.mark.parametrize("memory_type", ["device", "storage"])
@pytest.mark.parametrize("driver, ring", [("lavapipe", 0), ("null", NULL_RING)])
def test_parameter_files_go_through_in_pieces(driver, ring, memory_type):
    grown = run_child(parameter_files, memory_type, driver=driver, env=OWN_MEMORY)
    piece = reading.PIECE
    assert grown["save"] <= piece + ring + SLACK, grown
    # The new tensors' own memory, which is the host's on these drivers.
    assert grown["load"] <= SIZE + piece + ring + SLACK, grown
