"""Managers: choosing a device, options, queues, life, diagnostics."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import gc
import logging
import os
import subprocess
import sys
import threading
import time
import uuid
import weakref

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._device.diagnostics import Diagnostics
from kompute_py._device.options import options_of, settings
from tests.drivers import null_control
from tests.support.child import python, run_child
from tests.support.operations import Breaks
from tests.support.threads import on_threads


def resolve_options(keywords):
    return options_of(settings(keywords))


@pytest.mark.capability(
    "K13", "name, limits and features of the open device", "Manager.get_device_properties", "concepts/devices"
)
def test_device_properties(mgr):
    info = mgr.get_device_properties()
    assert isinstance(info, dict) and isinstance(info, kp.DeviceInfo)
    assert isinstance(info["device_name"], str) and info["device_name"] in repr(mgr)
    assert len(info["max_work_group_count"]) == len(info["max_work_group_size"]) == 3
    assert info["max_work_group_invocations"] >= 128 and isinstance(info["timestamps_supported"], bool)
    assert info.device_name == info["device_name"] and info.limits["maxPushConstantsSize"] >= 128
    assert info.type in {"discrete", "integrated", "virtual", "cpu", "other"}
    with pytest.raises(AttributeError, match="device_name"):
        _ = info.devicename
    assert "device_name" in dir(info) and info["device_name"] in repr(info)


@pytest.mark.capability(
    "K14 I53", "devices listed without opening them", "kp.list_devices", "concepts/devices"
)
def test_list_devices(mgr):
    devices = kp.list_devices()
    assert devices and all(isinstance(d, kp.DeviceInfo) for d in devices)
    assert [d.index for d in devices] == list(range(len(devices)))
    assert [d.device_name for d in mgr.list_devices()] == [d.device_name for d in devices]


@pytest.mark.capability(
    "K2 S32 W14",
    "a device by index, name, vendor, type, UUID or PCI address",
    "kp.Manager",
    "guides/several_devices",
)
def test_forms_of_device(make_manager):
    first = kp.list_devices()[0]
    name = first.device_name
    for device in (0, np.int64(0), name, name[:5].upper(), first, uuid.UUID(first.uuid), first.uuid):
        manager = make_manager(device, validation=False)
        assert manager.get_device_properties().device_name == name
    assert make_manager(device=0, family_queue_indices=[], desired_extensions=[]).is_init()


@pytest.mark.parametrize("device", [99, -1, "no such device", uuid.UUID(int=2**128 - 1)])
def test_unknown_devices(device):
    with pytest.raises(kp.NotFoundError, match=r"(?s)."):
        kp.Manager(device)


@pytest.mark.parametrize("device", [1.5, True, [1.5], [[0]], {}, b"0", object()])
def test_devices_of_wrong_types(device):
    with pytest.raises(kp.ArgumentTypeError, match="device"):
        kp.Manager(device)


def test_a_rejection_says_why():
    name = kp.list_devices()[0].device_name
    with pytest.raises(kp.NotFoundError) as caught:
        kp.Manager("no such device")
    assert "no such device" in str(caught.value) and name in str(caught.value)


def test_the_environment_names_the_device(monkeypatch):
    name = kp.list_devices()[0].device_name
    monkeypatch.setenv("KOMPUTE_PY_DEVICE", f"no such device,{name}")
    assert kp.Manager().get_device_properties().device_name == name
    monkeypatch.setenv("KOMPUTE_PY_DEVICE", "no such device")
    with pytest.raises(kp.NotFoundError):
        kp.Manager()
    assert kp.Manager(0).is_init()  # an argument wins over the environment


@pytest.mark.capability("K3", "queues by family", "Manager.queues", "guides/several_devices")
def test_queue_families(make_manager, mgr):
    families = mgr.get_device_properties().queue_families
    compute = next(f["index"] for f in families if f["compute"])
    two = make_manager(0, [compute, compute])
    assert len(two.queues) == 2 and two.queues[0]["family"] == compute
    assert two.queues[1]["shared"] == (families[compute]["count"] < 2)
    t = two.tensor([1, 2, 3])
    two.sequence(0).eval(kp.OpSyncDevice([t]))
    t.data()[:] = 0
    two.sequence(1).eval(kp.OpSyncLocal([t]))
    np.testing.assert_array_equal(t.data(), [1, 2, 3])
    assert two.vk_queue(0) > 0 and two.vk_queue(1) > 0
    for bad in (2, 10**6):
        with pytest.raises(kp.OutOfRangeError):
            two.vk_queue(bad)
    with pytest.raises(kp.KomputeError):
        kp.Manager(0, [99])
    with pytest.raises(kp.InvalidArgumentError):
        kp.Manager(0, [-1])
    for wrong in ("0", 5, [1.5]):
        with pytest.raises(kp.ArgumentTypeError):
            kp.Manager(0, wrong)


@pytest.mark.capability(
    "", "extensions of Vulkan, desired or required", "Manager.enabled_extensions", "reference/manager"
)
def test_extensions(messages):
    with kp.Manager(desired_extensions=["VK_EXT_no_such_extension"]) as manager:
        assert any("VK_EXT_no_such_extension" in text for text in messages)
        assert "VK_EXT_no_such_extension" not in manager.enabled_extensions
        offered = manager.get_device_properties().extensions
    if offered:
        with kp.Manager(required_extensions=[offered[0]]) as manager:
            assert offered[0] in manager.enabled_extensions
    with pytest.raises(kp.KomputeError, match="VK_EXT_no_such_extension"):
        kp.Manager(required_extensions=["VK_EXT_no_such_extension"])
    for wrong in ("VK_KHR_swapchain", [5], 5):
        with pytest.raises(kp.ArgumentTypeError):
            kp.Manager(desired_extensions=wrong)


@pytest.mark.capability("P8 P9", "options are checked by name and type", "kp.config_report", "guides/options")
def test_unknown_options_list_the_known():
    with pytest.raises(kp.InvalidArgumentError, match=r"robust_acces'.*pipeline_cache_dir.*robust_access"):
        kp.Manager(robust_acces=True)


@pytest.mark.capability(
    "I61 S29 S49",
    "options by keyword, environment or default, with the source of each",
    "kp.config_report, Manager.config",
    "guides/options",
)
def test_options_keyword_environment_default(monkeypatch):
    monkeypatch.delenv("KOMPUTE_PY_PIPELINE_CACHE_DIR", raising=False)
    assert resolve_options({}).robust_access is True
    assert resolve_options({}).pipeline_cache_dir.endswith("kompute_py")
    monkeypatch.setenv("KOMPUTE_PY_ROBUST_ACCESS", "off")
    monkeypatch.setenv("KOMPUTE_PY_STRICT", "1")
    monkeypatch.setenv("KOMPUTE_PY_REQUIRED_EXTENSIONS", "VK_A, VK_B VK_C")
    found = resolve_options({"strict": None})
    assert found.robust_access is False and found.strict is True
    assert found.required_extensions == ("VK_A", "VK_B", "VK_C")
    assert resolve_options({"robust_access": True, "strict": False})[1:3] == (False, True)
    monkeypatch.setenv("KOMPUTE_PY_STRICT", "perhaps")
    with pytest.raises(kp.InvalidArgumentError, match="KOMPUTE_PY_STRICT"):
        resolve_options({})
    with pytest.raises(kp.ArgumentTypeError, match="strict"):
        resolve_options({"strict": 2.5})


@pytest.mark.parametrize("variable", ["KOMPUTE_ENV_DEBUG_LAYERS", "KOMPUTE_PY_DEBUG_LAYERS"])
def test_debug_layers_of_the_environment(monkeypatch, variable):
    monkeypatch.setenv(variable, "VK_LAYER_A VK_LAYER_B")
    assert resolve_options({}).debug_layers == ("VK_LAYER_A", "VK_LAYER_B")
    assert resolve_options({"debug_layers": ["VK_LAYER_C"]}).debug_layers == ("VK_LAYER_C",)


def test_validation_by_the_environment(monkeypatch):
    monkeypatch.setenv("KOMPUTE_PY_VALIDATION", "1")
    with kp.Manager() as manager:
        assert manager.validation
    with kp.Manager(validation=False) as manager:
        assert not manager.validation


@pytest.mark.capability(
    "K1 K12 P12 P20",
    "one object owns all others; a block, `destroy` or the last reference ends it",
    "Manager.destroy",
    "concepts/lifetimes",
)
def test_the_context_manager_and_destroy():
    with kp.Manager() as manager:
        t = manager.tensor([1, 2])
        algorithm = kp.OpMult([t, t, t]).algorithm
        seq = manager.sequence().record(kp.OpSyncDevice([t])).eval()
        view = t.data()
        assert manager.is_init() and t.is_init() and seq.is_init() and algorithm.is_init()
    assert not (manager.is_init() or t.is_init() or seq.is_init() or algorithm.is_init())
    manager.destroy()
    assert "destroyed" in repr(manager)
    np.testing.assert_array_equal(view, [1, 2])
    for use in (
        lambda: manager.tensor([1]),
        lambda: manager.zeros(1),
        lambda: manager.image(np.zeros((1, 1))),
        lambda: manager.sequence(),
        lambda: manager.algorithm(
            [], kp.compile("#version 450\nlayout(local_size_x = 1) in;\nvoid main() {}\n"), (1, 1, 1)
        ),
        manager.__enter__,
        seq.eval,
        t.data,
        lambda: seq.record(kp.OpSyncDevice([t])),
    ):
        with pytest.raises(kp.FailedPreconditionError):
            use()
    for child in (t, seq, algorithm):
        child.destroy()


def test_destroy_with_work_in_flight(clean):
    manager = kp.Manager()
    t = manager.tensor(np.arange(1 << 20))
    seq = manager.sequence().record(kp.OpSyncDevice([t])).eval_async()
    manager.destroy()
    assert not seq.is_running() and not seq.is_init()


def test_dropping_everything_at_once(clean):
    before = kp.alive()
    manager = kp.Manager()
    t = manager.tensor(np.arange(1 << 20))
    seq = manager.sequence().record(kp.OpSyncDevice([t])).eval_async()
    with pytest.warns(ResourceWarning):
        del manager, t, seq
        gc.collect()
    deadline = time.monotonic() + 30
    while True:
        with kp.Manager():  # each takes away what earlier ones left behind, once the device is done with it
            pass
        if kp.alive() == before:
            break
        assert time.monotonic() < deadline, kp.alive(detail=True)


def test_the_default_manager():
    made = kp.manager()
    try:
        assert kp.manager() is made
        found = []
        on_threads(lambda _: found.append(kp.manager()), range(4))
        assert all(manager is made for manager in found)
        made.destroy()
        again = kp.manager()
        assert again is not made and again.is_init()
    finally:
        kp.manager().destroy()
    before = kp.alive()
    kp.manager().destroy()
    assert kp.alive() == before


def test_the_end_of_a_block_leaves_a_shared_manager_open():
    outside = kp.manager()
    t = outside.tensor([1, 2])
    try:
        for enter in (lambda: kp.manager(0), kp.manager, outside.current):
            with enter() as inner:
                assert inner is outside and kp.manager() is outside
        with kp.Manager() as own:
            with kp.manager() as inner:
                assert inner is own
            with own.current():
                assert kp.manager() is own
            with kp.manager(0), pytest.raises(KeyError), outside.current():
                assert kp.manager() is outside
                raise KeyError
            assert own.is_init() and kp.manager() is own
            current = own.current()
        assert not own.is_init() and t.read().tolist() == [1, 2] and kp.manager() is outside
        for enter in (own.current, lambda: current):
            with pytest.raises(kp.FailedPreconditionError, match="cannot be entered"), enter():
                pass
    finally:
        outside.destroy()


@pytest.mark.capability(
    "W2", "a Manager for the code of a block, a task or a thread", "Manager.current", "guides/threads"
)
def test_inside_its_block_a_manager_is_the_one_that_code_gets():
    outside = kp.manager()
    try:
        with kp.Manager() as one:
            assert kp.manager() is one
            with kp.Manager() as two:
                assert kp.manager() is two
                assert kp.from_dlpack(np.zeros(3, np.float32)).manager is two
                with one:
                    assert kp.manager() is one
                assert one.is_init() and kp.manager() is two  # a block around this one uses it
                assert kp.manager(0) is outside  # by a device: the process's
            assert kp.manager() is one
        assert not one.is_init()
        with pytest.raises(KeyError), kp.Manager():
            raise KeyError
        assert kp.manager() is outside
        with kp.Manager() as one:
            one.destroy()
            assert kp.manager() is outside
        one = kp.Manager()
        with one, kp.Manager():
            pass
        assert kp.manager() is outside
    finally:
        outside.destroy()


def test_threads_and_tasks_inside_the_block_of_a_manager():
    outside = kp.manager()
    later = []

    async def task(gate):
        later.append(kp.manager())
        await gate.wait()
        later.append(kp.manager())

    async def main():
        gate = asyncio.Event()
        with kp.Manager() as mgr:
            waiting = asyncio.create_task(task(gate))
            await asyncio.sleep(0)
            assert await asyncio.to_thread(kp.manager) is mgr
            with concurrent.futures.ThreadPoolExecutor() as pool:
                assert pool.submit(kp.manager).result() is outside
                context = contextvars.copy_context()
                assert pool.submit(context.run, kp.manager).result() is mgr

            # What a task enters is its own.
            async def enters():
                with kp.Manager() as own:
                    await asyncio.sleep(0)
                    assert kp.manager() is own

            first, second = enters(), enters()
            await asyncio.gather(first, second)
            assert kp.manager() is mgr
        gate.set()
        await waiting
        return mgr

    try:
        mgr = asyncio.run(main())
        assert later == [mgr, outside]
    finally:
        outside.destroy()


def test_a_generator_shares_the_block_with_the_code_that_drives_it():
    outside = kp.manager()

    def frames():
        with kp.Manager() as own:
            yield own, kp.manager()
            yield own, kp.manager()

    async def later():
        with kp.Manager() as own:
            yield own, kp.manager()

    async def main():
        generator = later()
        own, seen = await anext(generator)
        assert own is seen is kp.manager()
        await generator.aclose()
        assert not own.is_init() and kp.manager() is outside

    try:
        one, two = frames(), frames()
        first, seen = next(one)
        assert first is seen is kp.manager()
        second, seen = next(two)
        assert second is seen is kp.manager()
        assert next(one) == (first, second)  # the block that was entered last, whoever entered it
        one.close()
        assert not first.is_init() and kp.manager() is second
        thread = threading.Thread(target=two.close)  # in another context than the entry
        thread.start()
        thread.join()
        assert not second.is_init() and kp.manager() is outside
        asyncio.run(main())
    finally:
        outside.destroy()


def test_a_task_keeps_the_manager_of_its_making_until_that_is_destroyed():
    outside = kp.manager()

    async def main():
        with kp.Manager() as mgr:
            task = asyncio.create_task(asyncio.sleep(0, mgr))
            inner = contextvars.copy_context()
        return inner.run(kp.manager), await task

    try:
        found, mgr = asyncio.run(main())
        assert found is outside and not mgr.is_init()
    finally:
        outside.destroy()


def test_a_context_keeps_no_manager_alive():
    with kp.Manager() as mgr:
        context = contextvars.copy_context()
    gone = weakref.ref(mgr)
    del mgr
    gc.collect()
    assert gone() is None and len(context) > 0


def test_a_block_that_ends_in_another_context():
    manager = kp.Manager()
    contextvars.copy_context().run(manager.__enter__)
    outside = kp.manager()
    try:
        assert outside is not manager
        manager.__exit__(None, None, None)
        assert not manager.is_init() and kp.manager() is outside
    finally:
        outside.destroy()


def test_alive(mgr):
    before = kp.alive()
    t = mgr.tensor([1])
    assert kp.alive() == before + 1 and kp.alive(detail=True)["buffer"] >= 1
    del t
    assert kp.alive() == before


def test_raw_handles(mgr):
    assert mgr.vk_instance > 0 and mgr.vk_physical_device > 0 and mgr.vk_device > 0 and mgr.vk_queue() > 0


def test_several_managers(make_manager):
    managers = [make_manager(validation=False) for _ in range(3)]
    tensors = [m.tensor([i, i]) for i, m in enumerate(managers)]
    for i, (m, t) in enumerate(zip(managers, tensors, strict=True)):
        m.sequence().eval(kp.OpSyncDevice([t]))
        np.testing.assert_array_equal(t.read(), [i, i])
    managers[0].destroy()
    assert tensors[1].is_init() and not tensors[0].is_init()


@pytest.mark.capability(
    "K74",
    "validation layers and their messages in Python's log",
    "Manager.validation, Manager.on_message",
    "reference/manager",
)
def test_validation_messages_are_logged(messages):
    pytest.importorskip("vulkan")
    with kp.Manager(validation=True) as manager:
        manager.sequence().record(Breaks(manager.zeros(16))).eval()
    assert any("vkCmdFillBuffer" in text for text in messages)


def test_strict_raises_validation_messages(messages):
    pytest.importorskip("vulkan")
    with kp.Manager(validation=True, strict=True) as manager:
        seq = manager.sequence().record(Breaks(manager.zeros(16)))
        with pytest.raises(kp.ValidationError, match="vkCmdFillBuffer") as caught:
            seq.eval()
        assert isinstance(caught.value, kp.KomputeError) and caught.value.code is kp.ErrorCode.INTERNAL
        assert caught.value.messages and all(severity == "error" for severity, _, _ in caught.value.messages)
        assert not seq.is_running()
        manager.sequence().record(kp.OpFill([manager.zeros(16)], 1)).eval()


def test_messages_of_a_call_that_raises_are_logged_with_it(caplog):
    vk = pytest.importorskip("vulkan")
    mgr = kp.Manager(validation=True)
    t = mgr.tensor([1, 2, 3])
    with caplog.at_level(logging.ERROR, "kompute_py"):
        # A message that nothing has fetched yet, as a failing call leaves it.
        wrong = vk.VkBufferCreateInfo(size=0, usage=vk.VK_BUFFER_USAGE_TRANSFER_SRC_BIT)
        device = vk.ffi.cast("VkDevice", mgr.vk_device)
        with contextlib.suppress(vk.VkError):
            vk.vkDestroyBuffer(device, vk.vkCreateBuffer(device, wrong, None), None)
        assert not caplog.records
        with pytest.raises(kp.OutOfRangeError):
            t._native.read(np.zeros(100))
        assert "VkBufferCreateInfo" in caplog.text
    mgr.destroy()


def test_levels_of_messages(caplog):
    class Context:
        def drain_messages(self):
            return [
                ("error", "VUID-a", "wrong", True),
                ("warning", "b", "odd", True),
                ("info", "c", "told", True),
            ]

        def take_notes(self):
            return ["a note"]

    diagnostics = Diagnostics(Context(), strict=True, write_crash=None)
    with caplog.at_level(logging.DEBUG, "kompute_py"):
        with pytest.raises(kp.ValidationError, match="VUID-a: wrong"):
            diagnostics.report()
        diagnostics.report(can_raise=False)
        diagnostics.log_notes()
    assert [(r.levelname, r.getMessage()) for r in caplog.records[:3]] == [
        ("ERROR", "VUID-a: wrong"), ("WARNING", "b: odd"), ("INFO", "c: told"),
    ]  # fmt: skip
    assert caplog.records[-1].getMessage() == "a note"


def test_import_does_no_work():
    code = """
import sys, numpy
before = set(sys.modules)
import kompute_py as kp
new = {name.split(".")[0] for name in set(sys.modules) - before}
heavy = new & {"vulkan", "logging", "matplotlib", "scipy", "typer", "rich", "asyncio", "PIL"}
assert not heavy, heavy
assert kp.alive() == 0
with open("/proc/self/maps") as maps:
    assert "libvulkan" not in maps.read()
"""
    if not os.path.exists("/proc/self/maps"):
        pytest.skip("needs /proc")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr


def test_no_driver():
    done = python(
        "-c",
        "import kompute_py as kp\n"
        "for use in (kp.Manager, kp.list_devices):\n"
        "    try:\n        use()\n"
        "    except kp.UnavailableError as error: print(len(str(error)))\n",
        VK_DRIVER_FILES="/nonexistent/driver.json",
        VK_ICD_FILENAMES="/nonexistent/driver.json",
    )
    assert done.returncode == 0 and len(done.stdout.split()) == 2, done.stderr


def test_exit_with_objects_alive():
    done = python(
        "-c",
        "import kompute_py as kp, numpy as np\n"
        "mgr = kp.Manager()\n"
        "t = mgr.tensor(np.zeros(1 << 20))\n"
        "view = t.data()\n"
        "seq = mgr.sequence().record(kp.OpSyncDevice([t])).eval()\n"
        "kp.manager()\n",
    )
    assert done.returncode == 0 and done.stderr == "", done.stderr


def test_exit_with_work_in_flight():
    # Global variables go after the exit hooks, and then the driver's threads must be done.
    code = (
        "import kompute_py as kp, numpy as np\n"
        "mgr = kp.Manager()\n"
        "t = mgr.zeros(6000)\n"
        'code = kp.compile("""#version 450\n'
        "layout(local_size_x = 1) in; layout(binding = 0) buffer V { float v[]; };\n"
        "void main() {\n"
        "    float x = v[gl_GlobalInvocationID.x]; for (int k = 0; k < 3000; k++) x = sin(x) + 1.0;\n"
        "    v[gl_GlobalInvocationID.x] = x;\n"
        '}""")\n'
        "seq = mgr.sequence().record(kp.OpAlgoDispatch(mgr.algorithm([t], code))).eval_async()\n"
    )
    for _ in range(3):
        done = python("-c", code)
        assert done.returncode == 0 and done.stderr == "", done.stderr


def test_public_names():
    assert kp.__version__
    for name in kp.__all__:
        assert getattr(kp, name) is not None
    assert kp.TensorTypes is kp.MemoryTypes and kp.TensorDataTypes is kp.DataTypes
    for name, member in [*kp.MemoryTypes.__members__.items(), *kp.DataTypes.__members__.items()]:
        assert getattr(kp, name) is member and name not in kp.__all__
    with pytest.raises(AttributeError, match="nonsense"):
        _ = kp.nonsense
    # Completion shows what is public, with the public modules.
    modules = {"dask", "errors", "notebook", "ops", "random", "testing", "typing"}
    assert {name for name in dir(kp) if not name.startswith("__")} == {*kp.__all__, *modules}


def test_numbers_beyond_what_vulkan_counts_with():
    with pytest.raises(kp.NotFoundError, match=str(2**40)):
        kp.Manager(2**40)
    with pytest.raises(kp.OutOfRangeError, match=str(2**40)):
        kp.Manager(0, [2**40])


def check_names():
    mgr = kp.Manager()
    t, image, sem = mgr.zeros(4), mgr.image(np.zeros((2, 2))), mgr.semaphore()
    seq = mgr.sequence().record(kp.OpFill([t], 1)).eval()
    t.name, image.name, sem.name, seq.name = "weights", "photo", "frames", "step"
    named = null_control().live_report()
    return mgr.validation, [named[f"Vk{kind}"] for kind in ("Buffer", "Image", "Semaphore", "CommandBuffer")]


def test_names_reach_the_driver_without_validation():
    validation, named = run_child(check_names, driver="null")
    assert not validation
    for name, report in zip(("weights", "photo", "frames", "step"), named, strict=True):
        assert name in report
