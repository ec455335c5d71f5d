"""The option watchdog: recordings and dispatches in parts that a system lets end."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import kompute_py as kp
from tests.drivers import null_control
from tests.support.child import run_child

# Each element says which invocation and group wrote it, after turns that take a while.
WHERE = """#version 450
layout(local_size_x = 8, local_size_y = 2) in;
layout(binding = 0) buffer X { uint x[]; };
layout(push_constant) uniform P { uint turns; uvec2 size; };
void main() {
    uvec3 at = gl_GlobalInvocationID;
    uint number = (at.z * size.y + at.y) * size.x + at.x;
    float sum = 0.0;
    for (uint i = 0; i < turns; ++i) sum += sin(float(i) + sum);
    x[number] += gl_WorkGroupID.x + 1000u * gl_WorkGroupID.y + 1000000u * gl_WorkGroupID.z
        + (sum > 1e9 ? 1u : 0u);
}"""
COUNT = """#version 450
layout(local_size_x = 1) in;
layout(binding = 0) buffer X { uint x[]; };
void main() { atomicAdd(x[0], gl_NumWorkGroups.x); }"""


def expected(groups):
    z, y, x = np.indices((groups[2], groups[1] * 2, groups[0] * 8))
    return (x // 8 + 1000 * (y // 2) + 1000000 * z).astype(np.uint32)


@pytest.mark.parametrize("groups", [(300, 1, 1), (3, 50, 2), (1, 1, 40)])
def test_groups_have_the_numbers_of_the_whole_grid(make_manager, groups):
    mgr = make_manager(watchdog=0.01)
    wanted = expected(groups)
    x = mgr.tensor_t(np.zeros_like(wanted))
    where = mgr.kernel(WHERE)
    size = (groups[0] * 8, groups[1] * 2)
    for run in range(3):  # in many parts, then in those that the measured time asks for
        where(x, turns=1000, size=size, groups=groups)
        np.testing.assert_array_equal(x.read(), wanted * (run + 1))


def test_a_recording_in_parts(make_manager):
    """Operations that depend on each other, over several command buffers."""
    mgr = make_manager(watchdog=0.01)
    wanted = expected((200, 1, 1))
    x, y = mgr.tensor_t(np.zeros_like(wanted)), mgr.tensor_t(np.zeros_like(wanted))
    where = mgr.kernel(WHERE)
    step = where.bind(x, turns=300, size=(1600, 2), groups=(200, 1, 1))
    sequence = mgr.sequence().record(step, kp.OpCopy([x, y]), step, kp.ops.add.bind(y, x, out=y))
    sequence.record(kp.OpSyncLocal([y]))
    for run in range(3):
        sequence.eval()
        np.testing.assert_array_equal(y.data().reshape(wanted.shape), wanted * (4 * run + 3))
    other = mgr.sequence().record(kp.OpRepeat([step], 40))
    mgr.submit([sequence, other]).wait()
    np.testing.assert_array_equal(y.data().reshape(wanted.shape), wanted * 15)
    np.testing.assert_array_equal(x.read(), wanted * 48)


def test_shaders_that_read_the_number_of_groups_run_whole(make_manager):
    mgr = make_manager(watchdog=0.01)
    x = mgr.tensor_t(np.zeros(1, np.uint32))
    for _ in range(2):
        mgr.kernel(COUNT)(x, groups=(1000, 1, 1))
    assert x.read()[0] == 2 * 1000**2


def test_the_library(make_manager):
    mgr = make_manager(watchdog=0.01)
    a = np.random.default_rng(3).random(100_003, np.float32)
    with mgr.current():
        for _ in range(2):
            np.testing.assert_array_equal(kp.ops.sort(a), np.sort(a))
            np.testing.assert_allclose(kp.ops.sum(a), a.sum(dtype=np.float64), rtol=1e-5)
            np.testing.assert_allclose(kp.ops.cumsum(a), np.cumsum(a, dtype=np.float64), rtol=1e-5)


def test_a_run_that_never_began_teaches_nothing(make_manager):
    """The validation layer reports a look at queries that were not reset."""
    mgr = make_manager(watchdog=0.01)
    wanted = expected((20, 1, 1))
    x = mgr.tensor_t(np.zeros_like(wanted))
    sequence = mgr.sequence().record(mgr.kernel(WHERE).bind(x, turns=1, size=(160, 2), groups=(20, 1, 1)))
    semaphore = mgr.semaphore()
    sequence.eval_async(wait=[semaphore.at(1)])
    semaphore.fail("not today")
    with pytest.raises(kp.errors.AbortedError, match="not today"):
        sequence.eval_await()
    for run in range(2):
        sequence.eval()
        np.testing.assert_array_equal(x.read(), wanted * (run + 1))


def test_profiles_take_the_parts_together(make_manager, needs):
    mgr = make_manager(watchdog=0.01)
    needs(mgr, "timestamps")
    wanted = expected((100, 1, 1))
    x = mgr.tensor_t(np.zeros_like(wanted))
    where = mgr.kernel(WHERE, name="where")
    with mgr.profile() as p:
        where(x, turns=100, size=(800, 2), groups=(100, 1, 1))
    np.testing.assert_array_equal(x.read(), wanted)
    assert [str(name) for name in p.records["name"]].count("where") == 1


def check_numbers_of_dispatches():
    control = null_control()
    mgr = kp.Manager(watchdog=0.1)
    x = mgr.tensor_t(np.zeros(16 * 4096, np.uint32))
    step = mgr.kernel(WHERE).bind(x, turns=0, size=(8 * 4096, 2), groups=(4096, 1, 1))
    sequence = mgr.sequence().record(step)

    def parts(dispatch):
        before = control.calls(dispatch)
        control.log(True)
        sequence.eval()
        control.log(False)
        return control.calls(dispatch) - before, control.calls("vkCmdDispatch")

    # Nobody knows the rate: 64 parts, each in a command buffer of its own that takes 2 ms on this driver.
    assert parts("vkCmdDispatchBase") == (64, 0)
    # 126 ms or more were measured, and 50 are allowed.
    now, _ = parts("vkCmdDispatchBase")
    assert 3 <= now <= 16, now
    # What was measured counts again, so that the number goes down slowly; then the recording stays as it is.
    for _ in range(6):
        parts("vkCmdDispatchBase")
    assert parts("vkCmdDispatchBase") == (0, 0)
    # A new recording knows the rate.
    before = control.calls("vkCmdDispatchBase")
    mgr.sequence().record(step).eval()
    assert control.calls("vkCmdDispatchBase") - before == 1
    mgr.destroy()
    assert not control.violations(), control.violations()


@pytest.mark.own_driver
def test_the_measured_rate_decides_the_number_of_parts():
    run_child(check_numbers_of_dispatches, driver="null", config="gpu_us=2000")


def check_without():
    control = null_control()
    mgr = kp.Manager()
    x = mgr.tensor_t(np.zeros(16, np.uint32))
    mgr.kernel(WHERE)(x, turns=0, size=(8, 2), groups=(4096, 1, 1))
    assert control.calls("vkCmdDispatchBase") == 0 and control.calls("vkCmdDispatch") == 1


@pytest.mark.own_driver
def test_without_the_option_nothing_is_divided():
    run_child(check_without, driver="null")


@pytest.mark.parametrize("value", [0, -1, "soon", True])
def test_other_values(value):
    with pytest.raises((kp.InvalidArgumentError, kp.ArgumentTypeError), match="watchdog"):
        kp.config_report(watchdog=value)


def check_barriers():
    """Groups of a dispatch are in no order, but validation layers see its parts as several dispatches, and do
    not follow chains of barriers from one submission to the next."""
    control = null_control()
    mgr = kp.Manager(watchdog=0.1)
    x = mgr.tensor_t(np.zeros(16 * 64, np.uint32))
    step = mgr.kernel(WHERE).bind(x, turns=0, size=(8 * 64, 2), groups=(64, 1, 1))
    with control.logging():
        mgr.sequence().record(step).eval()
    commands = control.commands()
    places = [at for at, each in enumerate(commands) if each["op"] == "dispatch"]
    assert len(places) == 4
    everything, of_shaders = 0x10000, 0x800  # stages
    for first, last in itertools.pairwise(places):
        between = commands[first + 1 : last]
        assert [each["op"] for each in between] == ["barrier", "barrier", "submit"]
        (shaders,), (all_commands,) = (each["memory"] for each in between[:2])
        assert shaders == {
            "src_stage": of_shaders, "src_access": 0x60, "dst_stage": of_shaders, "dst_access": 0x60,
        }  # fmt: skip
        assert all_commands["src_stage"] == all_commands["dst_stage"] == everything
        assert (all_commands["src_access"], all_commands["dst_access"]) == (0x10000, 0x18000)
    mgr.destroy()
    assert not control.violations(), control.violations()


@pytest.mark.own_driver
def test_parts_of_a_dispatch_and_of_a_recording_are_ordered():
    run_child(check_barriers, driver="null", config="gpu_us=2000")
