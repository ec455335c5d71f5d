"""Managers on devices that others made, and the handles of ours."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import kompute_py as kp
from tests.memory.test_views import ADD_ONE, compiled

vk = pytest.importorskip("vulkan")
NEEDS = ["timelineSemaphore"]


class Neighbour:
    """A program that makes its own device."""

    def __init__(self, features=NEEDS, extensions=(), validation=True):
        layers = ["VK_LAYER_KHRONOS_validation"] if validation else []
        application = vk.VkApplicationInfo(
            pApplicationName="neighbour", applicationVersion=1, pEngineName="", engineVersion=1,
            apiVersion=vk.VK_MAKE_VERSION(1, 3, 0),
        )  # fmt: skip
        self.texts = []
        messages = vk.VkDebugUtilsMessengerCreateInfoEXT(
            messageSeverity=0x1100, messageType=7, pfnUserCallback=self._keep
        )
        create = vk.VkInstanceCreateInfo(
            pNext=messages,
            pApplicationInfo=application,
            ppEnabledLayerNames=layers,
            ppEnabledExtensionNames=["VK_EXT_debug_utils"],
        )
        self.instance = vk.vkCreateInstance(create, None)
        self.messenger = vk.vkGetInstanceProcAddr(self.instance, "vkCreateDebugUtilsMessengerEXT")(
            self.instance, messages, None
        )
        self.physical = vk.vkEnumeratePhysicalDevices(self.instance)[0]
        queue = vk.VkDeviceQueueCreateInfo(queueFamilyIndex=0, pQueuePriorities=[1.0])
        chain = vk.VkPhysicalDeviceTimelineSemaphoreFeatures(
            timelineSemaphore="timelineSemaphore" in features
        )
        self.device = vk.vkCreateDevice(
            self.physical,
            vk.VkDeviceCreateInfo(
                pNext=chain, pQueueCreateInfos=[queue], ppEnabledExtensionNames=list(extensions)
            ),
            None,
        )
        self.features, self.extensions = features, extensions

    def _keep(self, severity, kinds, data, user):
        text = vk.ffi.string(data.pMessage).decode()
        # The module asks for functions of a device that are an instance's.
        if not text.startswith("vkGetDeviceProcAddr"):
            self.texts.append(text)
        return 0

    def handles(self):
        made = [int(vk.ffi.cast("uintptr_t", each)) for each in (self.instance, self.physical, self.device)]
        return (*made, [(0, 0)], self.extensions, self.features)

    def works(self):
        """Uses its device itself."""
        create = vk.VkBufferCreateInfo(size=64, usage=vk.VK_BUFFER_USAGE_STORAGE_BUFFER_BIT)
        vk.vkDestroyBuffer(self.device, vk.vkCreateBuffer(self.device, create, None), None)
        vk.vkQueueWaitIdle(vk.vkGetDeviceQueue(self.device, 0, 0))
        return True

    def destroy(self):
        vk.vkDestroyDevice(self.device, None)
        vk.vkGetInstanceProcAddr(self.instance, "vkDestroyDebugUtilsMessengerEXT")(
            self.instance, self.messenger, None
        )
        vk.vkDestroyInstance(self.instance, None)


@pytest.fixture
def neighbour():
    made = Neighbour()
    yield made
    gc.collect()
    made.destroy()
    assert made.texts == []  # the layer would also report what is left on the device


@pytest.mark.capability(
    "K75 W5",
    "a device that another library opened; our handles for others",
    "Manager.from_handles, Manager.vk_handles",
    "guides/neighbours",
)
def test_a_manager_on_a_device_of_another_program(neighbour, clean):
    with kp.Manager.from_handles(*neighbour.handles(), owner=neighbour) as mgr:
        assert mgr.vk_handles[:3] == neighbour.handles()[:3]
        assert mgr.vk_handles.queues == ((0, 0),) and mgr.enabled_features == NEEDS
        assert not mgr.validation and mgr.config.validation.value is False
        t = mgr.tensor_t(np.arange(1000, dtype=np.uint32))
        add = mgr.kernel(compiled(ADD_ONE))
        add(t)
        mgr.sequence().record(add.bind(t), add.bind(t), kp.OpSyncLocal([t])).eval()
        assert t.data().tolist() == list(range(3, 1003))
        assert kp.ops.sum(t, dtype=np.float32).item() == sum(range(3, 1003))
        image = mgr.image(np.ones((4, 4), np.float32))
        assert image.read().sum() == 16
        assert neighbour.works()
        view = t.data()
    assert not t.is_init() and view[0] == 3 and neighbour.works()
    with kp.Manager.from_handles(*neighbour.handles()) as mgr:
        assert mgr.zeros(4).read().tolist() == [0] * 4
    del mgr, t, add, image, view


def test_the_neighbour_signals_a_semaphore_of_ours(neighbour, clean):
    with kp.Manager.from_handles(*neighbour.handles()) as mgr:
        semaphore = mgr.semaphore(shared=True)
        other = mgr.import_semaphore(semaphore.share())
        t = mgr.zeros(4)
        held = t.fill(3, wait=[(semaphore, 5)], signal=[(semaphore, 6)])
        handle = vk.ffi.cast("VkSemaphore", semaphore.vk_semaphore)
        assert not held.done()
        vk.vkSignalSemaphore(neighbour.device, vk.VkSemaphoreSignalInfo(semaphore=handle, value=5))
        held.wait(timeout=20)
        assert t.read().tolist() == [3] * 4
        other.wait(6, timeout=20)
        with pytest.raises(kp.InvalidArgumentError, match="only goes up"):
            semaphore.signal(5)
        del semaphore, other, held, t


def test_two_managers_on_one_device(mgr, clean):
    handles = mgr.vk_handles
    assert handles.instance == mgr.vk_instance and handles.physical_device == mgr.vk_physical_device
    assert handles.queues == ((0, 0),) and set(handles.extensions) == set(mgr.enabled_extensions)
    same = kp.Manager.from_handles(*handles, owner=mgr)
    assert same.vk_device == mgr.vk_device and same.vk_queue(0) == mgr.vk_queue(0)
    assert same.enabled_features == mgr.enabled_features
    a, b = mgr.zeros(100, np.uint32), same.zeros(100, np.uint32)
    for each in (a, b, a):
        each.manager.kernel(compiled(ADD_ONE))(each)
    assert set(a.read().tolist()) == {2} and set(b.read().tolist()) == {1}
    with pytest.raises(kp.InvalidArgumentError, match="Manager"):
        same.kernel(compiled(ADD_ONE))(a)
    assert a.to(same).read()[0] == 2
    same.destroy()
    assert b.is_init() is False and a.read()[0] == 2
    a.manager.kernel(compiled(ADD_ONE))(a)
    assert a.read()[0] == 3


def test_the_owner_is_kept_as_long_as_memory_is_used(make_manager):
    class Owner:
        pass

    mgr = make_manager()
    owner = Owner()
    alive = weakref.ref(owner)
    same = kp.Manager.from_handles(*mgr.vk_handles, owner=owner)
    del owner
    t = same.tensor([1, 2, 3])
    view = t.data()
    same.destroy()
    del same, t
    gc.collect()
    assert alive() is not None and view.tolist() == [1, 2, 3]
    del view
    gc.collect()
    mgr.zeros(1).read()  # objects are dropped between two instructions of the interpreter
    assert alive() is None


def test_what_was_not_enabled_is_not_used(neighbour, clean):
    with kp.Manager.from_handles(*neighbour.handles()) as mgr:
        assert mgr.enabled_extensions == [] and mgr.host_import_alignment is None
        with pytest.raises(kp.UnimplementedError, match="shaderInt64"):
            mgr.kernel("""
                #version 450
                #extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
                layout(local_size_x = 64) in;
                layout(binding = 0) buffer B { int64_t b[]; };
                void main() { b[gl_GlobalInvocationID.x] += 1; }""")(np.zeros(64, np.int64))
        with pytest.raises(kp.UnimplementedError):
            mgr.shared(4)
        array = np.ones(4096, np.float32)
        assert kp.ops.sum(mgr.tensor(array)).item() == 4096


def test_handles_that_do_not_fit_say_why(mgr):
    instance, physical, device, queues, extensions, features = mgr.vk_handles
    good = (instance, physical, device, queues, extensions, features)
    features_of = mgr.get_device_properties()["features"]
    lacking = next(name for name, there in features_of.items() if not there)

    def without(position, value, **options):
        given = [*good]
        given[position] = value
        return lambda: kp.Manager.from_handles(*given, **options)

    for wrong, error, text in [
        (without(0, "x"), kp.ArgumentTypeError, "instance"),
        (without(0, 0), kp.InvalidArgumentError, "instance"),
        (without(1, 8), kp.InvalidArgumentError, "not one of the instance's"),
        (without(2, -1), kp.InvalidArgumentError, "device"),
        (without(3, []), kp.InvalidArgumentError, "queues is empty"),
        (without(3, [0]), kp.ArgumentTypeError, "pairs"),
        (without(3, [(0, 99)]), kp.OutOfRangeError, "none with index 99"),
        (without(3, [(99, 0)]), kp.OutOfRangeError, "family 99"),
        (without(3, [(-1, 0)]), kp.OutOfRangeError, "count from 0"),
        (without(4, ["VK_KHR_nothing"]), kp.InvalidArgumentError, "no extension VK_KHR_nothing"),
        (without(4, 3), kp.ArgumentTypeError, "extensions"),
        (without(5, []), kp.InvalidArgumentError, "timelineSemaphore"),
        (without(5, [*NEEDS, lacking]), kp.InvalidArgumentError, f"no feature {lacking}"),
        (without(5, [*NEEDS, "shaderfloat64"]), kp.InvalidArgumentError, "did you mean 'shaderFloat64'"),
        (without(5, features, validation=True), kp.InvalidArgumentError, "exists already"),
        (without(5, features, driver="lvp"), kp.InvalidArgumentError, "exists already"),
        (without(5, features, memory_limits=3), kp.InvalidArgumentError, "memory_limit"),
    ]:
        with pytest.raises(error, match=text):
            wrong()
    mgr.zeros(4).read()
    made = without(
        5, [*NEEDS, "geometryShader"], memory_limit="64 MiB"
    )()  # what compute does not use is left out
    assert made.config.memory_limit.value == 64 << 20 and made.enabled_features == NEEDS
    made.destroy()
    closed = kp.Manager()
    closed.destroy()
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        _ = closed.vk_handles
