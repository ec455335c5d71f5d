"""What is made from data is uploaded once, before the first use of its device memory by anything.

Each use gets a fresh tensor or image, in memory that destroyed ones left full of 42s, and returns what the
device was seen to hold
afterwards: the data, in all of them.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kompute_py as kp
from tests.drivers import null_control
from tests.support.child import run_child

N = 3000
DATA = np.arange(1, N + 1, dtype=np.float32)
H, W = 17, 33
PIXELS = np.arange(1, H * W * 4 + 1, dtype=np.float32).reshape(H, W, 4)
COPY = """#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) buffer Y { float y[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) y[i] = x[i]; }
"""
ADD = """#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer X { float x[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length() && i >= 64) x[i] += 1; }
"""
REFERENCE = """#version 450
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 64) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats { float x[]; };
layout(set = 0, binding = 0) buffer Y { float y[]; };
layout(push_constant) uniform P { Floats data; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < y.length()) y[i] = data.x[i]; }
"""
LOAD = """#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0, rgba32f) uniform readonly image2D source;
layout(set = 0, binding = 1) buffer Y { vec4 y[]; };
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy), size = imageSize(source);
    if (all(lessThan(at, size))) y[at.y * size.x + at.x] = imageLoad(source, at);
}
"""
SAMPLE = """#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0) uniform sampler2D source;
layout(set = 0, binding = 1) buffer Y { vec4 y[]; };
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy), size = textureSize(source, 0);
    if (all(lessThan(at, size))) y[at.y * size.x + at.x] = texelFetch(source, at, 0);
}
"""


def soil(mgr: kp.Manager) -> None:
    """Leaves memory full of 42s behind, of the kinds that the next objects get."""
    made = [mgr.full(N, 42.0, memory_type=kind) for kind in ("device", "storage") for _ in range(4)]
    made += [mgr.image(np.full_like(PIXELS, 42), memory_type=kind) for kind in ("device", "storage")]
    for each in made:
        assert np.all(each.read() == 42)
    for each in made:
        each.destroy()


@contextlib.contextmanager
def another_manager() -> Iterator[kp.Manager]:
    other = kp.Manager()
    try:
        yield other
    finally:
        other.destroy()


class RawCopy(kp.OpBase):
    """Raw Vulkan on handles that it is given, or asks for while it records. Says nothing of what it uses."""

    def __init__(self, source: Any, target: Any, nbytes: int) -> None:
        self.source, self.target, self.nbytes = source, target, nbytes

    def record(self, cmd: Any) -> None:
        vulkan = pytest.importorskip("vulkan")
        source, target = (
            each if isinstance(each, int) else each.vk_buffer for each in (self.source, self.target)
        )
        region = vulkan.VkBufferCopy(srcOffset=0, dstOffset=0, size=self.nbytes)
        vulkan.vkCmdCopyBuffer(cmd.vk_command_buffer, source, target, 1, [region])


# -- tensors -------------------------------------------------------------------------------------------------

Use = Callable[[kp.Manager, Any], np.ndarray]
TENSOR_USES: dict[str, Use] = {}  # that need no shader
DISPATCHES: dict[str, Use] = {}
IMAGE_USES: dict[str, Use] = {}
IMAGE_DISPATCHES: dict[str, Use] = {}


def a_use(table: dict[str, Use], name: str, **options: Any) -> Callable[[Any], Any]:
    def add(function: Any) -> Any:
        table[name] = lambda mgr, t: function(mgr, t, **options)
        return function

    return add


TENSOR_USES |= {
    "read": lambda mgr, t: t.read(),
    "read into an array": lambda mgr, t: t.read(np.empty(N, np.float32)),
    "read regions": lambda mgr, t: np.append(t.read(region=np.s_[:7]), t.read(region=np.s_[7:])),
    "asarray": lambda mgr, t: np.asarray(t),
    "item": lambda mgr, t: np.array([t[0].item(), *DATA[1:-1], t[N - 1].item()], np.float32),
    "a view": lambda mgr, t: t.view(dtype=np.uint32).read().view(np.float32),
    "reshape": lambda mgr, t: t.reshape(3, -1).read().reshape(-1),
    "DLPack": lambda mgr, t: np.array(np.from_dlpack(t, device="cpu")),
    "DLPack, copied": lambda mgr, t: np.from_dlpack(t, device="cpu", copy=True),
    "to another type": lambda mgr, t: t.to(mgr, "storage").read(),
    "to another host type": lambda mgr, t: t.to(mgr, "host").data().copy(),
    "to itself, copied": lambda mgr, t: t.to(mgr, copy=True).read(),
}


@a_use(TENSOR_USES, "write a part")
def write_part(mgr, t):
    t[64:128].write(DATA[64:128])
    return t.read()


@a_use(TENSOR_USES, "write a region")
def write_region(mgr, t):
    t.write(DATA[:9], region=np.s_[:9])
    return t.read()


@a_use(TENSOR_USES, "fill a part")
def fill_part(mgr, t):
    t[5:6].fill(6.0)
    return t.read()


@a_use(TENSOR_USES, "copy into a part")
def copy_into_part(mgr, t):
    t[64:128].copy_from(mgr.tensor(DATA[64:128]))
    return t.read()


@a_use(TENSOR_USES, "copy_from")
def copy_from(mgr, t):
    target = mgr.empty(N)
    target.copy_from(t)
    return target.read()


@a_use(TENSOR_USES, "copy_to")
def copy_to(mgr, t):
    target = mgr.empty(N)
    t.copy_to(target)
    return target.read()


@a_use(TENSOR_USES, "copy_to an array")
def copy_to_array(mgr, t):
    target = np.zeros(N, np.float32)
    t.copy_to(target)
    return target


@a_use(TENSOR_USES, "OpCopy")
@a_use(TENSOR_USES, "OpCopy on another queue", queue=1)
def op_copy(mgr, t, queue=0):
    target = mgr.empty(N)
    mgr.sequence(queue).eval(kp.OpCopy([t, target]))
    return target.read()


@a_use(TENSOR_USES, "OpCopy, evaluated later")
def op_copy_async(mgr, t):
    target = mgr.empty(N)
    seq = mgr.sequence(1).record(kp.OpCopy([t, target]))
    mgr.submit([seq]).wait()
    return target.read()


@a_use(TENSOR_USES, "OpCopyRegion")
def op_copy_region(mgr, t):
    image = mgr.image_empty((4, 8))
    mgr.sequence().eval(kp.OpCopyRegion(t[:128], image))
    return np.append(image.read().reshape(-1), DATA[128:])


@a_use(TENSOR_USES, "OpFill of a part")
def op_fill(mgr, t):
    mgr.sequence().eval(kp.OpFill([t[5:6]], 6.0))
    return t.read()


@a_use(TENSOR_USES, "map(read=True)")
def map_read(mgr, t):
    with t.map(read=True) as array:
        return np.array(array)


@a_use(TENSOR_USES, "map(read=True) of a part")
def map_read_part(mgr, t):
    with t[100:].map(read=True) as array:
        return np.append(DATA[:100], array)


@a_use(TENSOR_USES, "map(write=True)", part=np.s_[:])
@a_use(TENSOR_USES, "map(write=True) of a part", part=np.s_[100:])
def map_write(mgr, t, part):
    with t[part].map(write=True) as array:
        array[50:] = DATA[part][50:]
    return t.read()


@a_use(TENSOR_USES, "map(discard=True)", part=np.s_[:])
@a_use(TENSOR_USES, "map(discard=True) of a part", part=np.s_[100:])
def map_discard(mgr, t, part):
    with t[part].map(discard=True) as array:
        array[:] = DATA[part]
    return t.read()


@a_use(TENSOR_USES, "save_tensors")
def save(mgr, t):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.safetensors"
        kp.save_tensors(path, {"t": t})
        return kp.load_tensors(path, mgr)["t"].read()


@a_use(TENSOR_USES, "to another Manager")
@a_use(TENSOR_USES, "to another Manager's storage", where="storage")
@a_use(IMAGE_USES, "to another Manager")
def to_manager(mgr, t, where=None):
    with another_manager() as other:
        return t.to(other, where).read()


@a_use(TENSOR_USES, "copy_from of another Manager")
def peer_copy(mgr, t):
    with another_manager() as other:
        target = other.empty(N)
        target.copy_from(t)
        return target.read()


@a_use(TENSOR_USES, "OpCopy to another Manager")
def peer_op_copy(mgr, t):
    with another_manager() as other:
        target = other.empty(N)
        mgr.sequence().eval(kp.OpCopy([t, target]))
        return target.read()


@a_use(TENSOR_USES, "a part written by another Manager")
def peer_write(mgr, t):
    with another_manager() as other:
        t[64:128].copy_from(other.tensor(DATA[64:128]))
        return t.read()


@a_use(TENSOR_USES, "vk_buffer", queue=0)
@a_use(TENSOR_USES, "vk_buffer on another queue", queue=1)
def vk_buffer(mgr, t, queue):
    target = mgr.empty(N)
    mgr.sequence(queue).eval(RawCopy(t.vk_buffer, target.vk_buffer, t.nbytes))
    return target.read()


@a_use(TENSOR_USES, "vk_buffer while recording")
def vk_buffer_inside(mgr, t):
    target = mgr.empty(N)
    mgr.sequence(1).eval(RawCopy(t, target, t.nbytes))
    return target.read()


@a_use(TENSOR_USES, "vk_buffer of a view")
def vk_buffer_of_view(mgr, t):
    target = mgr.empty(N)
    mgr.sequence().eval(RawCopy(t[8:].vk_buffer, target.vk_buffer, t.nbytes))
    return target.read()


@a_use(TENSOR_USES, "streaming")
def streaming(mgr, t):
    """Frames read it beside what is streamed."""
    frame, out = mgr.empty(1), mgr.empty(N)
    seq = mgr.sequence().record(kp.OpCopy([t, out])).record(kp.OpCopy([frame, out[:1]]))
    results = [each.copy() for each in seq.stream([DATA[:1]] * 3, inputs=[frame], outputs=[out])]
    assert len(results) == 3 and all(np.array_equal(each, results[0]) for each in results)
    return results[0]


SYNCS: dict[str, Use] = {}  # only for what has a host copy


@a_use(SYNCS, "OpSyncLocal", queue=0)
@a_use(SYNCS, "OpSyncLocal on another queue", queue=1)
def sync_local(mgr, t, queue):
    mgr.sequence(queue).eval(kp.OpSyncLocal([t]))
    return t.data()


@a_use(SYNCS, "OpSyncDevice")
def sync_device(mgr, t):
    mgr.sequence().eval(kp.OpSyncDevice([t]))
    return t.read()


@a_use(SYNCS, "OpSyncDevice of a part")
def sync_part(mgr, t):
    mgr.sequence().eval(kp.OpSyncDevice([t[100:200]]))
    return t.read()


@a_use(SYNCS, "OpSyncLocal of a part")
def sync_local_part(mgr, t):
    mgr.sequence().eval(kp.OpSyncLocal([t[100:200]]))
    return t.numpy()


@a_use(SYNCS, "OpSyncDevice and a look at the handle")
def sync_and_handle(mgr, t):
    target = mgr.empty(N)
    mgr.sequence().record(kp.OpSyncDevice([t])).record(RawCopy(t, target, t.nbytes)).eval()
    return target.read()


@a_use(DISPATCHES, "OpAlgoDispatch")
def dispatch(mgr, t):
    out = mgr.zeros(N)
    algorithm = mgr.algorithm([t, out], kp.compile(COPY), ((N + 63) // 64, 1, 1))
    mgr.sequence().eval(kp.OpAlgoDispatch(algorithm))
    return out.read()


@a_use(DISPATCHES, "a kernel's call", how=lambda mgr, k, t, out: k(t, out))
@a_use(DISPATCHES, "kernel.submit", how=lambda mgr, k, t, out: k.submit(t, out).wait())
@a_use(DISPATCHES, "kernel.bind", how=lambda mgr, k, t, out: mgr.sequence().eval(k.bind(t, out)))
@a_use(DISPATCHES, "a view in a kernel", how=lambda mgr, k, t, out: k(t[:], out))
@a_use(
    DISPATCHES,
    "kernel.bind on another queue",
    how=lambda mgr, k, t, out: mgr.sequence(1).eval(k.bind(t, out)),
)
def kernel(mgr, t, how):
    out = mgr.zeros(N)
    how(mgr, mgr.kernel(COPY), t, out)
    return out.read()


@a_use(DISPATCHES, "a shader that writes a part")
def shader_writes(mgr, t):
    mgr.kernel(ADD)(t)
    return t.read() - np.where(DATA > 64, np.float32(1), np.float32(0))


@a_use(DISPATCHES, "device_address", how=lambda t: t.device_address)
@a_use(DISPATCHES, "a reference", how=lambda t: t)
def reference(mgr, t, how):
    if "bufferDeviceAddress" not in mgr.enabled_features:
        pytest.skip("no bufferDeviceAddress")
    out = mgr.zeros(N)
    mgr.kernel(REFERENCE)(out, data=how(t))
    return out.read()


# -- images --------------------------------------------------------------------------------------------------

IMAGE_USES |= {
    "read": lambda mgr, image: image.read(),
    "read regions": lambda mgr, image: np.concatenate(
        [image.read(region=np.s_[:5]), image.read(region=np.s_[5:])]
    ),
    "asarray": lambda mgr, image: np.asarray(image),
}


@a_use(IMAGE_USES, "write a region")
def write_image_region(mgr, image):
    image.write(PIXELS[2:4, 3:9], region=np.s_[2:4, 3:9])
    return image.read()


@a_use(IMAGE_USES, "copy_to a tensor")
def image_to_tensor(mgr, image):
    target = mgr.empty(PIXELS.size)
    image.copy_to(target)
    return target.read().reshape(PIXELS.shape)


@a_use(IMAGE_USES, "OpCopy", queue=0)
@a_use(IMAGE_USES, "OpCopy on another queue", queue=1)
def image_copy(mgr, image, queue):
    target = mgr.image_empty((H, W))
    mgr.sequence(queue).eval(kp.OpCopy([image, target]))
    return target.read()


@a_use(IMAGE_USES, "OpCopyRegion onto a part")
def image_region(mgr, image):
    other = mgr.image(PIXELS[:2, :2])
    mgr.sequence().eval(kp.OpCopyRegion(other, image, target_region=np.s_[:2, :2]))
    return image.read()


@a_use(IMAGE_USES, "vk_image")
def vk_image(mgr, image):
    assert image.vk_image and image.vk_image_view
    return image.read()


IMAGE_SYNCS: dict[str, Use] = {
    name: lambda mgr, image, use=use: use(mgr, image).reshape(PIXELS.shape)
    for name, use in SYNCS.items()
    if "part" not in name and "handle" not in name
}


@a_use(IMAGE_DISPATCHES, "imageLoad", source=LOAD, bound=lambda image: image)
@a_use(IMAGE_DISPATCHES, "sampled", source=SAMPLE, bound=lambda image: image.sampled())
def image_kernel(mgr, image, source, bound):
    out = mgr.zeros((H, W, 4))
    mgr.kernel(source)(bound(image), out, grid=(W, H))
    return out.read()


# -- the table -----------------------------------------------------------------------------------------------


def cases(shaders: bool) -> Iterator[tuple[str, Callable[[kp.Manager], Any], np.ndarray, Use]]:
    """(what, make, what it holds, use) of all."""
    for where in ("device", "storage"):
        uses = TENSOR_USES | (SYNCS if where == "device" else {}) | (DISPATCHES if shaders else {})
        for name, use in uses.items():
            yield f"tensor, {where}, {name}", lambda mgr, where=where: mgr.tensor(DATA, where), DATA, use
        uses = IMAGE_USES | (IMAGE_SYNCS if where == "device" else {}) | (IMAGE_DISPATCHES if shaders else {})
        for name, use in uses.items():
            yield (
                f"image, {where}, {name}",
                lambda mgr, where=where: mgr.image(PIXELS, memory_type=where),
                PIXELS,
                use,
            )


def check_a_use(mgr: kp.Manager, make: Callable[[kp.Manager], Any], holds: np.ndarray, use: Use) -> None:
    soil(mgr)
    np.testing.assert_array_equal(use(mgr, make(mgr)), holds)


def check_all_uses(memory_debug: bool) -> list[str]:
    wrong = []
    for what, make, holds, use in cases(shaders=False):
        mgr = kp.Manager(family_queue_indices=[0, 1], memory_debug=memory_debug)
        try:
            check_a_use(mgr, make, holds, use)
        except Exception as error:
            wrong.append(f"{what}: {str(error)[:300]}")
        finally:
            mgr.destroy()
    return wrong + null_control().violations()


@pytest.mark.parametrize("what, make, holds, use", [pytest.param(*case, id=case[0]) for case in cases(True)])
def test_every_first_use_finds_the_data(make_manager, what, make, holds, use):
    mgr = make_manager(family_queue_indices=[0, 0])
    check_a_use(mgr, make, holds, use)


@pytest.mark.sampled(every=2)
@pytest.mark.own_driver
@pytest.mark.parametrize(
    "config, memory_debug",
    [
        ("memory=discrete", False), ("memory=discrete", True), ("memory=discrete,gpu_us=300", False),
        ("memory=noncoherent", False), ("memory=unified", False),
    ],
)  # fmt: skip
def test_every_first_use_finds_the_data_on_other_memory(config, memory_debug):
    """With two families of queues, and the copies carried out."""
    assert run_child(check_all_uses, memory_debug, driver="null", config=config) == []


def test_undefined_contents_are_poisoned_in_a_debug_run(make_manager):
    mgr = make_manager(memory_debug=True)
    soil(mgr)
    poison = np.full(N * 4, 0xDD, np.uint8)
    for where in ("device", "storage", "host", "deviceAndHost"):
        np.testing.assert_array_equal(mgr.empty(N, memory_type=where).read().view(np.uint8), poison)
    for where in ("device", "storage"):
        assert np.all(mgr.image_empty((H, W), memory_type=where).read().view(np.uint8) == 0xDD)


def check_poison() -> None:
    mgr = kp.Manager(memory_debug=True)
    soil(mgr)
    for where in ("device", "storage", "host", "deviceAndHost"):
        assert np.all(mgr.empty(N, memory_type=where).read().view(np.uint8) == 0xDD)
        assert np.all(mgr.image_empty((H, W), memory_type=where).read().view(np.uint8) == 0xDD)
    mgr.destroy()


@pytest.mark.own_driver
def test_undefined_contents_of_device_memory_are_poisoned_in_a_debug_run():
    run_child(check_poison, driver="null")
