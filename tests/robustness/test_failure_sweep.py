"""Every Vulkan call of every main flow fails once: a typed error or a fall-back, nothing left behind, the
next try works.

The null driver counts the calls that can fail and fails the nth of a function. A flow runs once undisturbed,
which tells how many calls it makes; then, for each function and n from 1 to its number, call n fails.
Whatever happens then, after it no Vulkan object and no object of ours is alive, the driver saw no misuse, and
the same flow runs undisturbed. A flow that copes with a failure must still give right results: flows check
what they compute.

The suite fails the first and the last call of each function of Vulkan, and a part of the calls between;
`./dev whole tests/robustness/test_failure_sweep.py` fails all of them.
"""

from __future__ import annotations

import functools
import gc
import logging
import os
import tempfile
import warnings

import numpy as np
import pytest

import kompute_py as kp
from tests.drivers import null_control
from tests.support.child import run_child
from tests.support.sampling import groups, sampled, spread

pytestmark = [pytest.mark.own_driver, pytest.mark.sampled]

SHADER = """
#version 450
layout(local_size_x = 64) in;
layout(push_constant) uniform Params { float factor; };
layout(constant_id = 0) const uint count = 100;
layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) buffer B { float b[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < count) b[i] = factor * a[i]; }
"""
PAINT = """
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0, r32f) uniform image2D canvas;
void main() { imageStore(canvas, ivec2(gl_GlobalInvocationID.xy), vec4(1.0)); }
"""
DATA = np.arange(1000, dtype=np.float32)
compiled = functools.cache(kp.compile)


# -- the flows -----------------------------------------------------------------------------------------------


def make_a_manager():
    with kp.Manager() as mgr:
        assert mgr.get_device_properties().device_name and kp.list_devices()


def make_a_manager_with_queues():
    with kp.Manager(0, [0, 0, 1]) as mgr:
        for index in range(3):
            assert mgr.sequence(index).is_init()


def make_tensors():
    with kp.Manager() as mgr:
        made = [mgr.tensor(DATA, where) for where in kp.MemoryTypes]
        zeros = [mgr.zeros(50, memory_type=where) for where in kp.MemoryTypes]
        mgr.sequence().eval(kp.OpSyncDevice(made + zeros))
        for t, zero in zip(made, zeros, strict=True):
            assert t.read().tolist() == DATA.tolist() and not zero.read().any()
        assert mgr.empty(5 << 20, np.uint8).size() == 5 << 20  # a memory block of its own


def read_and_write():
    with kp.Manager() as mgr:
        for where in kp.MemoryTypes:
            t = mgr.zeros(1000, memory_type=where)
            t.write(DATA)
            np.testing.assert_array_equal(np.asarray(t), DATA)
        image = mgr.image(np.zeros((5, 7), np.float32))
        image.write(np.ones((5, 7)))
        assert image.read().sum() == 35


def import_arrays():
    with kp.Manager() as mgr:
        for where in ("never", "auto"):
            array = kp.aligned_empty(1000)
            array[:] = DATA
            t = mgr.from_host(array, copy=where)
            out = mgr.zeros(1000)
            mgr.sequence().eval(kp.OpCopy([t, out]))
            assert out.read().tolist() == DATA.tolist()
            assert np.from_dlpack(t).tolist() == DATA.tolist()
        assert kp.from_dlpack(DATA, mgr).read().tolist() == DATA.tolist()


def make_images():
    with kp.Manager() as mgr:
        for where in kp.MemoryTypes:
            image = mgr.image(DATA[:64].reshape(8, 8), memory_type=where)
            mgr.sequence().eval(kp.OpSyncDevice([image]))
            np.testing.assert_array_equal(image.read(), DATA[:64].reshape(8, 8))
        a, b = mgr.image(DATA[:64], 4, 4, 4), mgr.image_t(np.zeros(64, np.float32), 4, 4, 4)
        mgr.sequence().record(kp.OpSyncDevice([a])).record(kp.OpCopy([a, b])).record(
            kp.OpSyncLocal([b])
        ).eval()
        assert b.data().tolist() == DATA[:64].tolist()


def make_algorithms():
    with kp.Manager() as mgr:
        tensors = [mgr.tensor(DATA), mgr.zeros(1000)]
        code = compiled(SHADER)
        for count in (100, 200):
            algorithm = mgr.algorithm(tensors, code, (2, 1, 1), [count], [2.0])
            assert algorithm.is_init()
        assert mgr.algorithm([mgr.image(np.zeros((8, 8)))], compiled(PAINT), (1, 1, 1)).is_init()
        assert kp.OpMult([tensors[0], tensors[1], mgr.zeros(1000)]).algorithm.is_init()
        tensors[0].destroy()
        algorithm.destroy()


def record_and_eval():
    with kp.Manager() as mgr:
        a, b = mgr.tensor(DATA), mgr.zeros(1000)
        host, store = mgr.zeros(1000, memory_type="host"), mgr.zeros(1000, memory_type="storage")
        algorithm = mgr.algorithm([store, host], compiled(SHADER), (2, 1, 1), [100], [2.0])
        seq = (
            mgr.sequence()
            .record(kp.OpSyncDevice([a]))
            .record(kp.OpCopy([a, store, b]))
            .record(kp.OpFill([host], 3))
            .record(kp.OpAlgoDispatch(algorithm))
            .record(kp.OpSyncLocal([b]))
        )
        seq.eval()
        assert b.data().tolist() == DATA.tolist() and host.data()[500] == 3
        a.data()[:] = 7
        seq.eval()
        seq.rerecord()
        seq.eval()
        assert set(b.data().tolist()) == {7.0}
        seq.clear()
        seq.eval(kp.OpCopy([host, b])).eval(kp.OpSyncLocal([b]))
        assert b.data()[999] == 3


def eval_async_and_await():
    with kp.Manager(0, [0, 1]) as mgr:
        a, b = mgr.tensor(DATA), mgr.zeros(1000)
        first, second = mgr.sequence(0), mgr.sequence(1)
        first.eval_async(kp.OpSyncDevice([a]))
        second.record(kp.OpCopy([a, b])).record(kp.OpSyncLocal([b])).eval_async()
        first.eval_await()
        second.eval_await(10_000)
        assert b.data().tolist() == DATA.tolist() and first.is_complete()


def take_timestamps():
    with kp.Manager() as mgr:
        t = mgr.tensor(DATA)
        seq = mgr.sequence(timestamps=True).record(kp.OpSyncDevice([t])).eval()
        assert len(seq.get_timestamps()) == 2
        seq.record(kp.OpSyncDevice([t])).record(kp.OpSyncLocal([t])).eval()
        assert len(seq.timings()) == 2


def destroy_in_the_middle():
    mgr = kp.Manager()
    a, b = mgr.tensor(DATA), mgr.zeros(1000)
    algorithm = mgr.algorithm([a, b], compiled(SHADER), (2, 1, 1), [], [2.0])
    seq = mgr.sequence().record(kp.OpSyncDevice([a, b])).record(kp.OpAlgoDispatch(algorithm)).eval_async()
    view = a.data()
    b.destroy()
    algorithm.destroy()
    seq.destroy()
    a.destroy()
    mgr.destroy()
    assert view.tolist() == DATA.tolist()


def drop_without_destroying():
    mgr = kp.Manager()
    t = mgr.tensor(DATA)
    mgr.sequence().record(kp.OpSyncDevice([t])).eval_async()
    del mgr
    assert t.data()[1] == 1


def copy_between_managers():
    with kp.Manager(force_staging=True) as here, kp.Manager(force_staging=True) as there:
        a = here.tensor(DATA)
        a.write(DATA)
        b, host = a.to(there), there.zeros(1000, memory_type="host")
        seq = here.sequence().record(kp.OpCopy([a, b, host])).record(kp.OpFill([a], 2)).eval()
        assert b.read().tolist() == DATA.tolist() == host.data().tolist()
        seq.eval()
        b.copy_to(a).wait()
        assert set(a.read().tolist()) == {2.0} and not seq.is_running()


def keep_pipelines_on_disk():
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):
            with kp.Manager(pipeline_cache_dir=folder) as mgr:
                tensors = [mgr.tensor(DATA), mgr.zeros(1000)]
                assert mgr.algorithm(tensors, compiled(SHADER), (2, 1, 1)).is_init()


def save_and_load_parameters():
    with tempfile.TemporaryDirectory() as folder, kp.Manager() as mgr:
        path = os.path.join(folder, "model.safetensors")
        kp.save_tensors(path, {})
        tensors = {where.name: mgr.empty(1000, memory_type=where) for where in kp.MemoryTypes}
        for tensor in tensors.values():
            tensor.write(DATA)
        try:
            kp.save_tensors(path, tensors)
        except kp.KomputeError:
            # What was there before is there still, and nothing beside it.
            assert os.listdir(folder) == ["model.safetensors"] and not kp.tensor_file_info(path)
            raise
        for where in kp.MemoryTypes:
            for tensor in kp.load_tensors(path, mgr, memory_type=where).values():
                assert tensor.read().tolist() == DATA.tolist()


def reload_a_kernel():
    with tempfile.TemporaryDirectory() as folder, kp.Manager() as mgr, warnings.catch_warnings():
        warnings.simplefilter("ignore", kp.KomputeWarning)  # of a driver that fails to compile an edit
        path = os.path.join(folder, "scale.comp")
        with open(path, "w") as file:
            file.write(SHADER)
        kernel = mgr.kernel(path, watch=True)
        a, b = mgr.tensor(DATA), mgr.zeros(1000)
        op = kernel.bind(a, b, factor=2.0)
        seq = mgr.sequence().record(op).eval()
        kernel(a, b, factor=1.0)
        with open(path, "w") as file:
            file.write(SHADER.replace("local_size_x = 64", "local_size_x = 32"))
        try:
            seq.eval()
            kernel(a, b, factor=1.0)
        finally:
            # All of it has the new version, or none.
            assert (op.groups, kernel.local_size) in (((16, 1, 1), (64, 1, 1)), ((32, 1, 1), (32, 1, 1)))
            assert kernel.error is None or kernel.local_size == (64, 1, 1)
        seq.eval()


def run_instrumented():
    """Nothing runs here, so nothing is reported: all calls around the dispatches are made."""
    with kp.Manager(debug="printf,bounds,races,loops") as mgr:
        a, b = mgr.tensor(DATA), mgr.zeros(1000)
        kernel = mgr.kernel(compiled(SHADER, debug_info=True)).specialize(count=1000)
        kernel(a, b, factor=2.0)
        groups = mgr.tensor_t(np.array([1, 1, 1], np.uint32))
        seq = mgr.sequence().record(kernel.bind(a, b, factor=2.0, indirect=groups), kp.OpCopy([a, b])).eval()
        seq.eval()
        assert b.read().tolist() == DATA.tolist()


FLOWS = (
    make_a_manager, make_a_manager_with_queues, make_tensors, read_and_write, import_arrays, make_images,
    make_algorithms, record_and_eval, eval_async_and_await, take_timestamps, destroy_in_the_middle,
    drop_without_destroying, copy_between_managers, keep_pipelines_on_disk, save_and_load_parameters,
    reload_a_kernel, run_instrumented,
)  # fmt: skip
# VkResult: the classes of failure that ask for different care.
OUT_OF_HOST_MEMORY, OUT_OF_DEVICE_MEMORY, INITIALIZATION_FAILED, DEVICE_LOST = -1, -2, -3, -4
INCOMPATIBLE_DRIVER = -9
INSTANCE_CALLS = ("vkCreateInstance", "vkEnumerateInstanceExtensionProperties", "vkEnumeratePhysicalDevices")


def assert_nothing_left(when):
    gc.collect()
    control = null_control()
    assert control.live() == 0, f"{when}: {control.live_report()}"
    assert kp.alive() == 0, f"{when}: {kp.alive(detail=True)}"
    assert not control.violations(), f"{when}: {control.violations()}"


def sweep(*cases):
    """For each (name of a flow, results): fails calls of it once with each result.

    Returns for each (functions, failures, failures that came out as errors).
    """
    warnings.simplefilter("ignore", ResourceWarning)
    logging.getLogger("kompute_py").setLevel(logging.ERROR)
    return [sweep_flow(globals()[name], results) for name, results in cases]


def sweep_flow(flow, results):
    flow()  # once before counting: compilers and caches of the process warm up
    gc.collect()
    gc.freeze()  # what is here stays: a collection then looks at the flow's own objects
    control = null_control()
    control.clear()
    flow()
    calls = {entry: control.calls(entry) for entry in control.called()}
    assert sum(calls.values()) == control.total_calls, calls
    assert_nothing_left(f"{flow.__name__} undisturbed")
    chosen = [(entry, nth) for entry, count in calls.items() for nth in spread(range(1, count + 1), every=16)]
    return len(calls), len(chosen), [sweep_one(flow, chosen, result) for result in results]


def sweep_one(flow, calls, result):
    control = null_control()
    errors = 0
    for entry, nth in calls:
        control.clear()
        control.fail(entry, nth, result)
        try:
            flow()
        except kp.KomputeError as error:
            errors += 1
            text = str(error)
            # Loaders hide why a driver's instance could not be made, newer ones also why it lists no device.
            hidden = (INCOMPATIBLE_DRIVER, INITIALIZATION_FAILED) if entry in INSTANCE_CALLS else ()
            expected = (result, 0, *hidden)
            assert error.vk_result in expected and len(text) > 20, f"call {nth} of {entry}: {text}"
            del error
        when = f"{flow.__name__}, call {nth} of {entry} failed with {result}"
        assert control.armed_failures == 0, f"{when}: it was not reached"
        assert_nothing_left(when)
        control.clear()
        flow()
        assert_nothing_left(f"the next try after {when}")
    return errors


CASES = [
    *((flow, "discrete", (OUT_OF_DEVICE_MEMORY, DEVICE_LOST)) for flow in FLOWS),
    *(
        (flow, "discrete", (OUT_OF_HOST_MEMORY, INITIALIZATION_FAILED))
        for flow in (make_a_manager, eval_async_and_await)
    ),
    *((flow, "unified", (OUT_OF_DEVICE_MEMORY,)) for flow in (make_tensors, make_images, record_and_eval)),
    *(
        (flow, "noncoherent", (OUT_OF_HOST_MEMORY,))
        for flow in (make_tensors, read_and_write, record_and_eval)
    ),
]


# A process takes as long to start as a flow takes, so several flows share one.
GROUPS = [
    (memory, group)
    for memory in ("discrete", "unified", "noncoherent")
    for of_memory in [[(flow.__name__, results) for flow, m, results in CASES if m == memory]]
    for group in groups(of_memory, sampled(6, 1))
]


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize(
    ("memory", "group"), GROUPS, ids=[f"{memory}-{'-'.join(n for n, _ in group)}" for memory, group in GROUPS]
)
def test_sweep(memory, group):
    found = run_child(sweep, *group, driver="null", config=f"memory={memory}")
    for (flow, _), (functions, failures, errors) in zip(group, found, strict=True):
        # The least that a flow calls are six functions, and it copes with the failure of few.
        report = f"{flow}: {functions} functions, {failures} failures, {errors} errors"
        assert functions >= 6 and min(errors) >= failures // 3, report
