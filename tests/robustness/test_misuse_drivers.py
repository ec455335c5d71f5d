"""What a machine does to a program: no loader, no driver, little memory, a lost device, Ctrl-C, long waits.

Each test is a function that runs in a process of its own (see `child.py`): without Vulkan, or on the null
driver, which takes as long for a submission as it is told to, has as much memory as it is told to, and is
lost on demand.
"""

from __future__ import annotations

import gc
import logging
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import kompute_py as kp
from tests.drivers import Result, null_control
from tests.support.child import run_child
from tests.support.kernel_sources import INT64

pytestmark = pytest.mark.own_driver  # one pass of the suite is enough

STEP = """
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer V { float v[]; };
void main() { v[gl_GlobalInvocationID.x] += 1.0; }
"""
FLOAT64 = """
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer A { double a[]; };
void main() { a[0] += 1.0lf; }
"""
# The loader library is not to be had for anyone, as on a machine without Vulkan.
NO_LOADER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
void* dlopen(const char* name, int flags) {
    static void* (*next)(const char*, int);
    if (!next) *(void**)&next = dlsym(RTLD_NEXT, "dlopen");
    return name && strstr(name, "libvulkan") ? 0 : next(name, flags);
}
"""


def refusal(error, *patterns):
    """Asserts that making a Manager and listing devices raise `error`, with each of `patterns` in the
    text."""
    for use in (kp.Manager, lambda: kp.Manager(0)):
        with pytest.raises(error) as caught:
            use()
        for pattern in patterns:
            assert re.search(pattern, str(caught.value)), f"{pattern!r} is not in: {caught.value}"


def slow_upload(mgr):
    """A recorded sequence whose evaluation takes as long as the null driver was told to (gpu_us)."""
    t = mgr.tensor(np.arange(1000))
    return t, mgr.sequence().record(kp.OpSyncDevice([t])).record(kp.OpSyncLocal([t]))


# -- no Vulkan -----------------------------------------------------------------------------------------------


def check_no_loader():
    refusal(kp.UnavailableError, "loader", "libvulkan1", "vulkan-loader", "molten-vk")
    with pytest.raises(kp.UnavailableError, match="loader"):
        kp.list_devices()
    with pytest.raises(kp.UnavailableError):
        kp.manager()
    assert kp.compile(STEP)[:4] == b"\x03\x02\x23\x07" and kp.alive() == 0


@pytest.fixture(scope="session")
def without_loader(tmp_path_factory):
    """Environment variables with which no process finds the Vulkan loader."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    assert compiler, "no C compiler to build the stand-in for a machine without Vulkan"
    folder = tmp_path_factory.mktemp("no-loader")
    source, library = folder / "no_loader.c", folder / "no_loader.so"
    source.write_text(NO_LOADER)
    command = [compiler, "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(command)}:\n{done.stderr}"
    return {"LD_PRELOAD": str(library)}


def test_no_loader(without_loader):
    run_child(check_no_loader, env=without_loader)


def check_no_driver():
    refusal(kp.UnavailableError, "no driver", "mesa-vulkan-drivers", "VK_DRIVER_FILES")
    with pytest.raises(kp.UnavailableError, match="no driver"):
        kp.list_devices()
    assert kp.alive() == 0


def test_no_driver(tmp_path):
    nowhere = str(tmp_path / "nothing.json")
    run_child(check_no_driver, env={"VK_DRIVER_FILES": nowhere, "VK_ICD_FILENAMES": nowhere})


def check_no_device():
    refusal(kp.UnavailableError, "found a driver, but no device", "mesa-vulkan-drivers", "VK_LOADER_DEBUG")
    with pytest.raises(kp.UnavailableError, match="no device"):
        kp.list_devices()
    assert kp.alive() == 0


def test_no_device():
    run_child(check_no_device, driver="null", config="devices=0")


def check_unsuitable(*patterns):
    with pytest.raises(kp.UnavailableError) as caught:
        kp.Manager()
    for pattern in patterns:
        assert re.search(pattern, str(caught.value)), f"{pattern!r} is not in: {caught.value}"
    with pytest.raises(kp.NotFoundError, match=patterns[-1]):
        kp.Manager(0)
    assert len(kp.list_devices()) == 1 and kp.alive() == 0 == null_control().live("VkDevice")


@pytest.mark.parametrize(
    ("config", "patterns"),
    [("api=1.1", (r"\[0\]", r"1\.1", r"1\.2")), ("no_timeline=1", (r"\[0\]", "(?i)timeline"))],
)
def test_no_suitable_device(config, patterns):
    run_child(check_unsuitable, *patterns, driver="null", config=config)


def check_environment_choice():
    with pytest.raises(kp.NotFoundError, match=r"nowhere.*else.*nothing"):
        kp.Manager()
    with pytest.raises(kp.InvalidArgumentError, match=r"KOMPUTE_PY_STRICT.*maybe"):
        os.environ["KOMPUTE_PY_STRICT"] = "maybe"
        kp.Manager(0)


def test_a_device_named_by_the_environment_that_is_not_there():
    run_child(check_environment_choice, driver="null", env={"KOMPUTE_PY_DEVICE": "nowhere, nothing"})


def check_queue_families():
    mgr = kp.Manager(
        0, [0, 1, 1, 0]
    )  # Kompute's form: a queue for each entry, the next one of a family that repeats
    assert [(queue["family"], queue["index"], queue["shared"]) for queue in mgr.queues] == [
        (0, 0, False), (1, 0, False), (1, 1, False), (0, 1, False),
    ]  # fmt: skip
    for index in range(4):
        t = mgr.tensor([1, 2])
        mgr.sequence(index).record(kp.OpSyncDevice([t])).eval()
        assert t.read().tolist() == [1, 2]
    with pytest.raises(kp.OutOfRangeError, match=r"4.*opened 4 queues \(0 to 3\)"):
        mgr.sequence(4)
    with pytest.raises(kp.InvalidArgumentError, match=r"family 2.*no compute.*0, 1"):
        kp.Manager(0, [2])
    with pytest.raises(kp.OutOfRangeError, match=r"family 3.*0 to 2"):
        kp.Manager(0, [0, 3])
    with pytest.raises(kp.InvalidArgumentError, match=r"-1.*from 0"):
        kp.Manager(0, [-1])
    assert not null_control().violations()


def test_queue_families():
    run_child(check_queue_families, driver="null")


# -- what the device lacks -----------------------------------------------------------------------------------


def check_missing_features():
    mgr = kp.Manager()
    for code, name in ((kp.compile(INT64), "Int64"), (kp.compile(FLOAT64), "Float64")):
        with pytest.raises(kp.UnimplementedError, match=name) as caught:
            mgr.algorithm([mgr.zeros(2, np.int64)], code, (1, 1, 1))
        assert "null" in str(caught.value).lower()  # the device's name
    with pytest.raises(kp.KomputeError, match="VK_KHR_16bit_storage"):
        kp.Manager(required_extensions=["VK_KHR_16bit_storage"])
    big = mgr.empty(65_537, np.uint8)
    with pytest.raises(kp.InvalidArgumentError, match=r"65537.*65536|maxStorageBufferRange"):
        mgr.algorithm([big], kp.compile(STEP.replace("64", "1")), (1, 1, 1))
    with pytest.raises(kp.InvalidArgumentError, match=r"Local size 64.*32.*maxComputeWorkGroup"):
        mgr.algorithm([mgr.zeros(64)], kp.compile(STEP), (1, 1, 1))
    assert not null_control().violations()


def test_what_the_device_lacks():
    config = "int64=0,float64=0,noext=VK_KHR_16bit_storage,maxStorageBufferRange=65536,invocations=32"
    run_child(check_missing_features, driver="null", config=config)


def check_memory():
    """64 MiB of device memory: what does not fit is refused, says how the heaps stand, and leaves the rest as
    it was.
    """
    mgr = kp.Manager()
    kept = mgr.tensor(np.arange(1000), "storage")
    for kind in ("storage", "device"):
        with pytest.raises(MemoryError) as caught:
            mgr.empty(100 << 20, np.uint8, kind)
        assert isinstance(caught.value, kp.OutOfMemoryError) and "MiB" in str(caught.value)
        assert "destroy()" in str(caught.value) and "heap" in str(caught.value).lower()
    many = []
    with pytest.raises(kp.OutOfMemoryError):
        for _ in range(100):
            many.append(mgr.zeros(1 << 20, np.uint8, "storage"))
    assert 40 <= len(many) <= 64
    del many[::2]
    gc.collect()
    again = [mgr.tensor(np.full(1 << 18, n), "storage") for n in range(10)]
    assert kept.read().tolist() == list(range(1000)) and [int(t.read()[-1]) for t in again] == list(range(10))
    del again, many, kept
    mgr.destroy()
    gc.collect()
    assert not null_control().violations() and null_control().live("VkDeviceMemory") == 0


def test_out_of_device_memory():
    run_child(check_memory, driver="null", config="memory=unified,heap_mib=64")


# -- a lost device -------------------------------------------------------------------------------------------


def check_lost(while_waiting):
    control = null_control()
    mgr = kp.Manager()
    t, seq = slow_upload(mgr)
    seq.name = "upload"
    view = t.data()
    seq.eval()
    if while_waiting:
        threading.Timer(0.1, control.lose_device).start()
    else:
        control.lose_device()
    with pytest.raises(kp.DeviceLostError, match="new Manager") as caught:
        seq.eval()
    assert caught.value.code == kp.ErrorCode.UNAVAILABLE and caught.value.vk_result == -4
    with pytest.raises(kp.DeviceLostError):
        t.read()
    with pytest.raises(kp.KomputeError):
        mgr.sequence().record(kp.OpSyncDevice([t])).eval()
    fence, wait = seq.fence, None
    if while_waiting:
        # Every later wait says what was running.
        assert "during one of OpSyncDevice, OpSyncLocal of the sequence 'upload'" in str(caught.value)
        for wait in (
            seq.eval_await,
            fence.wait,
            t.read,
            mgr.synchronize,
            fence.future().result,
        ):
            with pytest.raises(kp.DeviceLostError, match="OpSyncLocal of the sequence 'upload'"):
                wait()
    else:
        # The submission that the device refused is named, and a lost device is given no other.
        during = (
            "It was lost during the submission of one of OpSyncDevice, OpSyncLocal of the sequence 'upload'"
        )
        assert during in str(caught.value)
        before = control.calls("vkQueueSubmit")
        for wait in (seq.eval, seq.eval_async, seq.eval_await, mgr.synchronize, t.read):
            with pytest.raises(kp.DeviceLostError, match=during):
                wait()
        assert control.calls("vkQueueSubmit") == before
    assert view.tolist() == list(range(1000))  # the host's copy is the host's
    t.destroy()
    seq.destroy()
    mgr.destroy()
    mgr.destroy()
    del mgr, t, seq, view, caught, fence, wait
    gc.collect()
    assert kp.alive() == 0 == control.live() and not control.violations()
    fresh = kp.Manager()
    a = fresh.tensor([1, 2])
    fresh.sequence().record(kp.OpSyncDevice([a])).eval()
    assert a.read().tolist() == [1, 2]


@pytest.mark.parametrize("while_waiting", [False, True])
def test_a_lost_device(while_waiting):
    run_child(check_lost, while_waiting, driver="null", config=f"gpu_us={300_000 if while_waiting else 0}")


# -- waiting -------------------------------------------------------------------------------------------------


def interrupt_after(seconds):
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()


def check_interrupt():
    """Ctrl-C in the middle of device work: KeyboardInterrupt now, the work is collected later."""
    mgr = kp.Manager()
    t, seq = slow_upload(mgr)
    for wait in (
        seq.eval,
        lambda: seq.eval_async().eval_await(),
        lambda: seq.eval_async().eval_await(timeout=60),
    ):
        with null_control().pausing():
            interrupt_after(0.1)
            with pytest.raises(KeyboardInterrupt):
                wait()
            assert seq.is_running() and not seq.is_complete()
            with pytest.raises(kp.FailedPreconditionError, match="running"):
                seq.eval()
        seq.eval_await()
        assert not seq.is_running()
    with null_control().pausing():
        seq.eval_async()
        interrupt_after(0.1)
        with pytest.raises(KeyboardInterrupt):
            t.read()
    seq.eval_await()
    assert t.read().tolist() == list(range(1000))


def test_control_c():
    run_child(check_interrupt, driver="null", config="gpu_us=1")


def check_interrupted_transfers():
    """Ctrl-C while a transfer through the staging ring, or destroy(), waits for work: nothing is
    lost.
    """
    mgr = kp.Manager()
    behind = mgr.tensor([1, 2, 3], "storage")
    t, seq = slow_upload(mgr)
    for wait in (
        behind.read,
        lambda: behind.write([4, 5, 6]),
        lambda: mgr.tensor([7, 8, 9], "storage"),
        mgr.synchronize,
        mgr.destroy,
    ):
        with null_control().pausing():
            seq.eval_async()
            interrupt_after(0.1)
            with pytest.raises(KeyboardInterrupt):
                wait()
                time.sleep(10)  # a signal that comes late must not end the child
            assert mgr.is_init() and seq.is_running() and not seq.is_complete()
        seq.eval_await()
        assert behind.read().tolist() == [1, 2, 3] and t.read().tolist() == list(range(1000))
    seq.eval_async()
    mgr.destroy()
    assert not mgr.is_init() and not seq.is_init()
    mgr.destroy()
    assert not null_control().violations()


def test_control_c_in_transfers_and_destroy():
    run_child(check_interrupted_transfers, driver="null", config="gpu_us=500000")


def check_broken_device():
    """Each of the calls that ask for a device's extensions fails once; some are the loader's, the others
    ours.
    """
    control, entry = null_control(), "vkEnumerateDeviceExtensionProperties"
    keep = kp.Manager()  # and with it the instance, so that each try makes the same calls
    control.clear()
    assert [device.index for device in kp.list_devices()] == [0, 1]
    listed, opened, refused = set(), set(), 0
    for nth in range(1, control.calls(entry) + 1):
        control.clear()
        control.fail(entry, nth, Result.ERROR_INITIALIZATION_FAILED)
        listed.add(tuple(device.index for device in kp.list_devices()))
        control.clear()
        control.fail(entry, nth, Result.ERROR_INITIALIZATION_FAILED)
        with kp.Manager() as mgr:
            index = mgr.get_device_properties().index
            opened.add(index)
            [(other, _, reason)] = mgr._native.passed_over
            assert other == 1 - index
            if index == 1:
                assert "does not say what it is" in reason and "INITIALIZATION_FAILED" in reason
        control.clear()
        control.fail(entry, nth, Result.ERROR_INITIALIZATION_FAILED)
        try:
            kp.Manager(0).destroy()
        except kp.NotFoundError as error:
            assert "does not say what it is" in str(error)
            refused += 1
    assert {(1,), (0,)} <= listed and opened == {0, 1} and refused
    keep.destroy()


def test_one_broken_device_leaves_the_others():
    run_child(check_broken_device, driver="null", config="devices=2")


def check_locked_cache(directory):
    """Another process that never lets go of the cache's lock must not stop this one."""
    import fcntl

    with kp.Manager(pipeline_cache_dir=directory) as mgr:
        t = mgr.tensor([1])
        mgr.algorithm([t], kp.compile(STEP))
    [file] = Path(directory).glob("*.bin")
    file.unlink()
    with open(f"{file.with_suffix('')}.bin.lock", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        mgr = kp.Manager(pipeline_cache_dir=directory)
        t = mgr.tensor([1])
        mgr.algorithm([t], kp.compile(STEP))
        records = []
        handler = logging.Handler()
        handler.emit = records.append
        logging.getLogger("kompute_py").addHandler(handler)
        begin = time.perf_counter()
        mgr.destroy()
        assert 1.5 < time.perf_counter() - begin < 20 and not file.exists()
        assert any("holds its lock" in record.getMessage() for record in records)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no lock to hold there")
def test_a_locked_pipeline_cache_is_left_alone(tmp_path):
    run_child(check_locked_cache, str(tmp_path), driver="null")


def check_other_threads():
    mgr = kp.Manager()
    t, seq = slow_upload(mgr)
    control = null_control()

    def let_go():
        for _ in range(5):
            time.sleep(0.001)  # takes the interpreter lock again
        control.pause(False)

    waits = {
        "eval": seq.eval, "eval_await": lambda: seq.eval_async().eval_await(),
        "read": lambda: (seq.eval_async(), t.read()),
        "write": lambda: t.write(np.arange(1000)), "destroy": mgr.destroy,
    }  # fmt: skip
    for name, wait in waits.items():
        if name != "eval" and seq.is_running():
            seq.eval_await()
        control.pause()
        if name in ("write", "destroy"):
            seq.eval_async()
        thread = threading.Thread(target=let_go)
        thread.start()
        wait()  # for ever, if the other thread does not run
        thread.join()


def test_other_threads_run_while_one_waits():
    run_child(check_other_threads, driver="null", config="gpu_us=1")


def check_time_out():
    mgr = kp.Manager()
    _, seq = slow_upload(mgr)
    with null_control().pausing():
        seq.eval_async()
        begin = time.perf_counter()
        for wait in (
            lambda: seq.eval_await(20),
            lambda: seq.eval_await(wait_for=20),
            lambda: seq.eval_await(timeout=0.02),
        ):
            with pytest.raises(TimeoutError) as caught:
                wait()
            assert (
                isinstance(caught.value, kp.EvalTimeoutError)
                and caught.value.code == kp.ErrorCode.DEADLINE_EXCEEDED
            )
            # 20 are milliseconds
            assert "0.02 s" in str(caught.value) and "eval_await" in str(caught.value) and seq.is_running()
        assert time.perf_counter() - begin >= 0.055
        with pytest.raises(kp.EvalTimeoutError):
            seq.eval_await(0)
        assert not seq.is_complete()
    assert seq.eval_await(60_000) is seq
    assert seq.is_complete() and not seq.is_running()
    with pytest.warns(kp.KomputeWarning, match="nothing running"):
        seq.eval_await()


def test_time_outs():
    run_child(check_time_out, driver="null", config="gpu_us=1")


# -- going away while the device works -----------------------------------------------------------------------


def check_drops():
    """Finalisers do not wait, and what the device still uses stays until it is done."""
    control = null_control()
    mgr = kp.Manager()
    t, seq = slow_upload(mgr)
    with control.pausing():
        seq.eval_async()
        with pytest.warns(ResourceWarning, match="eval_await"):
            del seq
            gc.collect()
        del t
        gc.collect()
        running = control.live("VkBuffer")
        assert control.live("VkCommandPool") == 1
    mgr.synchronize()
    mgr.sequence()  # collects
    assert (
        control.live("VkBuffer") == running - 1
        and control.live("VkCommandPool") == 0
        and not control.violations()
    )

    t, seq = slow_upload(mgr)
    view = t.data()
    with control.pausing():
        seq.eval_async()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            del seq, t, mgr
            gc.collect()
        assert view.tolist() == list(range(1000)) and view.base.manager.is_init()
        del view
        gc.collect()
        assert kp.alive() != 0
    while kp.alive() != 0:  # it looks after what was left
        time.sleep(0.01)
    assert control.live() == 0, control.live_report()
    assert not control.violations()


def test_dropping_what_runs():
    run_child(check_drops, driver="null", config="gpu_us=1")


def check_destroys():
    """destroy() of each object in the middle of work: the work ends first, and nothing is destroyed under
    it."""
    control = null_control()
    mgr = kp.Manager()
    for victim in range(3):
        tensors = [mgr.tensor(np.arange(100)) for _ in range(2)]
        algorithm = mgr.algorithm(tensors[:1], kp.compile(STEP), (1, 1, 1))
        seq = (
            mgr.sequence()
            .record(kp.OpSyncDevice(tensors))
            .record(kp.OpAlgoDispatch(algorithm))
            .record(kp.OpSyncLocal(tensors))
        )
        view = tensors[0].data()
        seq.eval_async()
        (tensors[0], algorithm, seq)[victim].destroy()
        if victim < 2:
            seq.eval_await()
            with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
                seq.eval()
        assert view[:5].tolist() == [0, 1, 2, 3, 4]
    running = mgr.sequence().record(kp.OpSyncDevice(tensors)).eval_async()
    mgr.destroy()
    assert not running.is_init() and not running.is_running()
    assert control.live("VkPipeline") == control.live("VkCommandPool") == 0
    assert control.live("VkDeviceMemory") == 1  # behind `view`
    del mgr, tensors, algorithm, seq, view, running
    gc.collect()
    assert kp.alive() == 0 == control.live(), control.live_report()
    assert not control.violations()


def test_destroying_what_runs():
    run_child(check_destroys, driver="null", config="gpu_us=50000")


def leave_running():
    """The interpreter ends while the device works."""
    mgr = kp.Manager()
    t, seq = slow_upload(mgr)
    seq.eval_async()
    leave_running.kept = (mgr, t, seq)


@pytest.mark.parametrize("driver", ["null", "lavapipe"])
def test_the_interpreter_ends_in_the_middle_of_work(driver):
    run_child(leave_running, driver=driver, config="gpu_us=200000" if driver == "null" else None)
