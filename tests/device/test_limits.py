"""What a device allows: each limit is said with its name and both numbers, before the driver sees what is
beyond it.

The null driver notes as a violation what gets to it all the same.
"""

from __future__ import annotations

import gc
import platform

import numpy as np
import pytest

import kompute_py as kp
from tests.drivers import PROFILES, null_control
from tests.support.child import run_child

pytestmark = pytest.mark.own_driver

HEAD = """#version 450
#extension GL_EXT_nonuniform_qualifier : enable
layout(local_size_x = 32) in;
layout(binding = 0) buffer O { float o[]; };
"""
# A declaration of an array `x` of one kind, what reads an element of it, and the limit of a compute stage.
KINDS = {
    "storage buffers": (
        "layout(binding = 1) buffer B { float b[]; } x[];",
        "x[nonuniformEXT(i)].b[0]",
        "maxPerStageDescriptorStorageBuffers",
    ),
    "uniform buffers": (
        "layout(binding = 1) uniform B { float b; } x[];",
        "x[i].b",
        "maxPerStageDescriptorUniformBuffers",
    ),
    "storage images": (
        "layout(binding = 1, r32f) uniform image2D x[];",
        "imageLoad(x[i], ivec2(0)).x",
        "maxPerStageDescriptorStorageImages",
    ),
    "sampled images": (
        "layout(binding = 1) uniform texture2D x[]; layout(binding = 2) uniform sampler s;",
        "texelFetch(sampler2D(x[i], s), ivec2(0), 0).x",
        "maxPerStageDescriptorSampledImages",
    ),
    "samplers": (
        "layout(binding = 1) uniform sampler x[]; layout(binding = 2) uniform texture2D t;",
        "textureLod(sampler2D(t, x[i]), vec2(0), 0).x",
        "maxPerStageDescriptorSamplers",
    ),
}


def source_of(kind, count=None):
    """With a count: an array of fixed length."""
    declaration, use, _ = KINDS[kind]
    if count is not None:
        declaration = declaration.replace("x[]", f"x[{count}]", 1)
    return HEAD + declaration + f"\nvoid main() {{ uint i = gl_GlobalInvocationID.x; o[0] = {use}; }}\n"


def elements_of(mgr, kind, count):
    if kind in ("storage buffers", "uniform buffers"):
        return [mgr.zeros(4) for _ in range(count)]
    if kind == "samplers":
        return [mgr.sampler()] * count
    return [mgr.image(np.zeros((2, 2), np.float32)) for _ in range(count)]


def the_other(mgr, kind):
    if kind == "sampled images":
        return [mgr.sampler()]
    return [mgr.image(np.zeros((2, 2), np.float32))] if kind == "samplers" else []


def check_arrays():
    """On the smallest limits: arrays of all kinds, at the limit and one beyond, of run-time length and of a
    fixed one.
    """
    mgr = kp.Manager()
    limits = mgr.get_device_properties()["limits"]
    for kind, (_, _, limit) in KINDS.items():
        most = limits[limit] - (kind == "storage buffers")  # `o` is one
        kernel = mgr.kernel(source_of(kind))
        out = mgr.zeros(4)
        mgr.sequence().record(
            kernel.bind(out, elements_of(mgr, kind, most), *the_other(mgr, kind), grid=(1,))
        ).eval()
        needed = limits[limit] + 1
        numbers = (
            f"{needed} {kind}.*{most + 1} of them the array 'x' of binding 1.*{limits[limit]} \\({limit}\\)"
        )
        calls = null_control().calls("vkCreatePipelineLayout")
        with pytest.raises(kp.InvalidArgumentError, match=numbers) as refused:
            kernel.bind(out, elements_of(mgr, kind, most + 1), *the_other(mgr, kind), grid=(1,))
        with pytest.raises(kp.InvalidArgumentError, match=numbers):
            kernel = mgr.kernel(source_of(kind, most + 1))
            kernel.bind(out, elements_of(mgr, kind, most + 1), *the_other(mgr, kind), grid=(1,))
        assert null_control().calls("vkCreatePipelineLayout") == calls
        # The same from afar.
        found = kp.check(source_of(kind), mgr, array_lengths={"x": most + 1})
        assert (limit, needed, limits[limit]) in [finding[1:4] for finding in found]
        assert any(str(finding) in str(refused.value) for finding in found)
        assert kp.check(source_of(kind), mgr, array_lengths={"x": most}) == []
    mgr.destroy()
    assert null_control().violations() == []


def test_arrays_of_descriptors():
    run_child(check_arrays, driver="null", config="profile=small_limits")


def count_writes() -> None:
    """An algorithm's descriptors reach the driver in one call, however many there are."""
    control = null_control()
    mgr = kp.Manager()
    for kind in KINDS:
        for length in (1, 3, 300):
            kernel, out = mgr.kernel(source_of(kind)), mgr.empty(4)
            elements = elements_of(mgr, kind, length)
            control.clear()
            kernel.bind(out, elements, *the_other(mgr, kind), grid=(1,))
            assert control.calls("vkUpdateDescriptorSets") == 1, (kind, length)
    mgr.destroy()
    assert null_control().violations() == []


def test_descriptors_are_written_in_one_call():
    run_child(count_writes, driver="null")


BOTH = (
    HEAD
    + """
layout(set = 1, binding = 0) buffer B { float b[]; } x[];
layout(set = 2, binding = 0, r32f) uniform image2D y[];
void main() { uint i = gl_GlobalInvocationID.x; o[0] = x[i].b[0] + imageLoad(y[i], ivec2(0)).x; }
"""
)
MANY = HEAD + "layout(binding = 1) buffer B { float b[]; } x[];\nvoid main() { o[0] = x[int(o[1])].b[0]; }\n"


def check_sums():
    """Over all bindings and sets: eight images and as many buffers as there may be are more resources than
    there may be.
    """
    mgr = kp.Manager()
    found = kp.check(BOTH, mgr, array_lengths={"x": 29, "y": 8})
    assert [finding[:4] for finding in found] == [("limit", "maxPerStageResources", 38, 37)]
    with pytest.raises(kp.InvalidArgumentError, match=r"38 buffers and images.*37 \(maxPerStageResources\)"):
        mgr.kernel(BOTH).bind(
            mgr.zeros(4),
            elements_of(mgr, "storage buffers", 29),
            elements_of(mgr, "storage images", 8),
            grid=(1,),
        )
    with pytest.raises(
        kp.InvalidArgumentError, match=r"no array of bindings of run-time length called 'z'.*'x', 'y'"
    ):
        kp.check(BOTH, mgr, array_lengths={"z": 2})
    for wrong in (0, -1, 2**32, 1.5):
        with pytest.raises(kp.InvalidArgumentError, match="length of the array 'x'"):
            kp.check(BOTH, mgr, array_lengths={"x": wrong})
    mgr.destroy()


def test_sums_over_bindings():
    run_child(check_sums, driver="null", config="profile=small_limits,maxPerStageResources=37")


def check_many():
    """Seventy thousand of 65,536: refused at once, not after a look at each for each."""
    mgr = kp.Manager()
    kernel, out, one = mgr.kernel(MANY), mgr.zeros(4), mgr.zeros(4)
    with pytest.raises(kp.InvalidArgumentError, match=r"70002 storage buffers.*65536"):
        kernel.bind(out, [one] * 70_001, grid=(1,))
    mgr.destroy()


@pytest.mark.capability(
    "K61", "as many bindings as the device takes", "kp.OpAlgoDispatch", "concepts/recording"
)
def test_very_long_arrays():
    run_child(check_many, driver="null", config="profile=integrated")


def check_set():
    """More descriptors in one set than the driver promises to take: it is asked, and takes four times as
    many.
    """
    mgr = kp.Manager()
    kernel, out, one = mgr.kernel(MANY), mgr.zeros(4), mgr.zeros(4)
    kernel.bind(out, [one] * 399, grid=(1,))
    with pytest.raises(
        kp.InvalidArgumentError, match=r"401 descriptors in one set.*maxPerSetDescriptors is 100"
    ):
        kernel.bind(out, [one] * 400, grid=(1,))
    mgr.destroy()


def test_descriptors_of_one_set():
    run_child(check_set, driver="null", config="maxPerSetDescriptors=100")


# -- memory --------------------------------------------------------------------------------------------------


def check_allocation_size():
    """9 MiB of 8: tensors of all types, images and imported arrays; blocks for what is smaller stay below."""
    mgr = kp.Manager()
    most, size = 8 << 20, 9 << 20
    refused = rf"bytes, but 'Null .*' allocates at most {most} bytes at once \(maxMemoryAllocationSize\)"
    for kind in kp.MemoryTypes:
        with pytest.raises(kp.OutOfMemoryError, match=rf"a tensor.* needs {size} {refused}"):
            mgr.empty(size, np.uint8, memory_type=kind)
    with pytest.raises(kp.OutOfMemoryError, match=f"an image needs [0-9]+ {refused}"):
        mgr.image(np.zeros((3 << 10, 3 << 10), np.uint8))
    if "VK_EXT_external_memory_host" in mgr.get_device_properties()["extensions"]:
        with pytest.raises(kp.OutOfMemoryError, match=f"an imported array needs {size} {refused}"):
            mgr.from_host(kp.aligned_empty(size, np.uint8), copy="never")
    kept = [mgr.tensor(np.full(1 << 18, i, np.float32), memory_type="storage") for i in range(64)]
    kept += [mgr.empty(most - 4096, np.uint8, memory_type="storage") for _ in range(2)]
    assert all((t.read() == i).all() for i, t in enumerate(kept[:64]))
    assert mgr.get_device_properties()["limits"]["maxMemoryAllocationSize"] == most
    mgr.destroy()
    assert null_control().violations() == []


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("profile", PROFILES)
def test_largest_allocation(profile):
    config = f"profile={profile},maxMemoryAllocationSize={8 << 20}"
    run_child(check_allocation_size, driver="null", config=config)


def check_small_allocations():
    """1 MiB at most: transfers of whole tensors and images, whose memory the host does not address, go in
    pieces that fit.
    """
    mgr = kp.Manager()
    words = np.arange(3 << 16, dtype=np.uint32)
    for kind in kp.MemoryTypes:
        t = mgr.empty(words.shape, np.uint32, memory_type=kind)
        t.write(words)
        assert (t.read() == words).all()
        image = mgr.image_t(np.zeros((384, 512), np.uint32), memory_type=kind)
        image.write(words.reshape(384, 512))
        assert (image.read() == words.reshape(384, 512)).all()
    mgr.destroy()
    assert null_control().violations() == []


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("profile", PROFILES)
def test_transfers_fit_the_largest_allocation(profile):
    run_child(
        check_small_allocations, driver="null", config=f"profile={profile},maxMemoryAllocationSize={1 << 20}"
    )


def check_allocation_count():
    mgr = kp.Manager()
    kept = []
    with pytest.raises(
        kp.OutOfMemoryError,
        match=r"allocation of its own, but 'Null .*' allows 6 \(maxMemoryAllocationCount\)",
    ):
        for _ in range(7):
            kept.append(mgr.empty(64 << 20, np.uint8, memory_type="storage"))
    made = len(kept)
    kept.pop().destroy()
    kept.append(mgr.empty(64 << 20, np.uint8, memory_type="storage"))
    assert len(kept) == made
    mgr.destroy()
    assert null_control().violations() == []


def test_most_allocations():
    run_child(check_allocation_count, driver="null", config="profile=large_bar,maxMemoryAllocationCount=6")


def check_samplers():
    mgr = kp.Manager()
    modes = ("repeat", "clamp_to_edge", "mirrored_repeat", "clamp_to_border")
    kept = [mgr.sampler(address=mode) for mode in modes[:3]]
    with pytest.raises(
        kp.OutOfMemoryError, match=r"has 3 different samplers.* allows 3 \(maxSamplerAllocationCount\)"
    ):
        mgr.sampler(address=modes[3])
    kept += [mgr.sampler(address=mode) for mode in modes[:3]]
    mgr.destroy()


def test_most_samplers():
    run_child(check_samplers, driver="null", config="maxSamplerAllocationCount=3")


# -- timestamps ----------------------------------------------------------------------------------------------


def check_transfer_timestamps():
    """A queue that only moves memory may not record the reset of its queries; each evaluation takes new times
    all the same.
    """
    mgr = kp.Manager(0, [0, 2], validation=True)
    a, b = mgr.tensor([1, 2, 3]), mgr.zeros(3)
    seq = mgr.sequence(1, timestamps=True).record(kp.OpSyncDevice([a])).record(kp.OpCopy([a, b]))
    last = 0
    for _ in range(3):
        ticks = seq.eval().get_timestamps()
        assert last < ticks[0] <= ticks[1] <= ticks[2]
        last = ticks[2]
    assert [name for name, _ in seq.timings()] == ["OpSyncDevice", "OpCopy"]
    assert b.read().tolist() == [1, 2, 3]
    held = mgr.semaphore()
    mgr.submit(seq, wait=(held, 1))
    held.signal(1)
    seq.eval_await()
    assert seq.get_timestamps()[0] > last
    mgr.destroy()
    assert null_control().violations() == []


@pytest.mark.parametrize("layer", ["newer", "debian"])
@pytest.mark.parametrize("profile", ["small_bar", "large_bar"])
def test_timestamps_of_transfer_queues(profile, layer):
    run_child(check_transfer_timestamps, driver="null", layer=layer, config=f"profile={profile}")


def check_without_host_reset():
    mgr = kp.Manager(0, [0, 2])
    with pytest.raises(kp.UnimplementedError, match=r"family 2 .*only moves memory.*'hostQueryReset'"):
        mgr.sequence(1, timestamps=True)
    seq = mgr.sequence(0, timestamps=True).record(kp.OpSyncDevice([mgr.zeros(3)])).eval()
    assert len(seq.get_timestamps()) == 2
    mgr.destroy()


def test_timestamps_need_a_reset():
    run_child(check_without_host_reset, driver="null", config="profile=small_bar,disable=hostQueryReset")


def check_first_timestamp():
    """Work of other tensors that was queued before is over when the first operation's time begins."""
    mgr = kp.Manager()
    code = "void main() { float x = 0; for (int i = 0; i < 200000; ++i) x = sin(x + i); o[0] = x; }"
    algorithm = mgr.algorithm([mgr.zeros(4)], kp.compile(HEAD + code), (1, 1, 1))
    before = mgr.sequence(timestamps=True).record(kp.OpAlgoDispatch(algorithm))
    a, b = mgr.zeros(64), mgr.zeros(64)
    seq = mgr.sequence(timestamps=True).record(kp.OpCopy([a, b])).record(kp.OpFill([b], 1.0))
    for _ in range(2):  # a first time compiles
        before.eval_async()
        seq.eval_async()
        seq.eval_await()
        before.eval_await()
        assert before.get_timestamps()[-1] <= seq.get_timestamps()[0]
    mgr.destroy()


@pytest.mark.parametrize("driver", ["null", "lavapipe", "swiftshader"])
def test_the_first_time_excludes_what_was_queued_before(driver):
    run_child(check_first_timestamp, driver=driver, config="gpu_us=20000" if driver == "null" else None)


# -- memory that the host does not cache ---------------------------------------------------------------------


def check_reads(cached):
    """Every way to look at device memory that the host writes in place. The driver notes each word that the
    host reads.

    `cached`: whether there is device memory that the host caches, which deviceAndHost tensors then have.
    """
    mgr = kp.Manager(0, memory_debug=False)
    data = np.arange(5000, dtype=np.float32)
    t, s = mgr.tensor(data), mgr.tensor(data, memory_type="storage")
    both = mgr.tensor(data, memory_type="deviceAndHost")
    mgr.sequence().eval(kp.OpSyncDevice([t]))
    flags = np.arange(7, dtype=np.uint8)
    odd = mgr.tensor(flags, memory_type="storage")
    for each in (t, s, both):
        assert np.array_equal(each.read(), data)
        assert each[17:18].read().tolist() == [17.0] and each[4999].item() == 4999.0
        with each.map(read=True) as array:
            assert array[3] == 3.0 and array.sum() == data.sum()
        with each[10:20].map(read=True, write=True) as array:
            array *= 2
        assert np.array_equal(each[8:22].read()[2:12], 2 * data[10:20])
        with each.map(write=True) as array:
            array[10:20] = data[10:20]
        assert np.array_equal(each.read(), data)
        if each is not both or not cached:
            with pytest.raises(kp.FailedPreconditionError, match="staging=True"):
                each.map(read=True, staging=False)
        other = mgr.empty(5000, memory_type="storage")
        other.copy_from(each)
        assert np.array_equal(other.read(), data)
    assert odd[3:5].read().tolist() == [3, 4]
    for each in (t, s):
        with pytest.raises(kp.ExchangeError, match=r"a word at a time.*memory type host"):
            np.from_dlpack(each)
        assert each.__dlpack_device__()[0] == 7
        capsule = each.__dlpack__(dl_device=(1, 0), max_version=(1, 0))
        assert "dltensor" in repr(capsule)
    image = mgr.image(np.arange(512, dtype=np.float32).reshape(8, 64), memory_type="deviceAndHost")
    assert image.read()[3, 4] == 196.0
    assert image.read(region=np.s_[2:4, 1:3]).tolist() == [[129.0, 130.0], [193.0, 194.0]]
    for value in (1.5, np.pi):
        assert (mgr.full(70_000, value).read() == np.float32(value)).all()
        assert (mgr.full(70_000, value, memory_type="storage").read() == np.float32(value)).all()
    with kp.Manager(0) as elsewhere:
        moved = t.to(elsewhere)
        assert np.array_equal(moved.read(), data)
        back = moved.to(mgr)
        assert np.array_equal(back.read(), data)
    mgr.destroy()
    del t, s, both, odd, image, other, each, moved, back
    gc.collect()
    return null_control().violations()


@pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the null driver tells reads from writes on x86-64 alone"
)
@pytest.mark.parametrize("profile", ["large_bar", "mobile"])
def test_uncached_memory_is_not_read_by_the_host(profile):
    assert (
        run_child(check_reads, profile == "mobile", driver="null", config=f"profile={profile},trap_reads=1")
        == []
    )


def check_what_little_there_is():
    mgr = kp.Manager()
    info = mgr.get_device_properties()
    assert info["api_version"].startswith("1.2")
    seq = mgr.sequence(timestamps=True)
    t, image = mgr.tensor_t(np.arange(1000, dtype=np.uint32)), mgr.image(np.ones((8, 8), np.float32))
    other = mgr.zeros(1000, np.uint32)
    seq.record(kp.OpSyncDevice([t, image])).record(kp.OpCopy([t, other])).record(
        kp.OpSyncLocal([other])
    ).eval()
    assert other.data().tolist() == list(range(1000)) and image.read().sum() == 64
    assert len(seq.timings()) == 3
    with pytest.raises(kp.UnimplementedError):
        mgr.shared(4)
    array = kp.aligned_empty(4096, np.uint8)
    if "VK_EXT_external_memory_host" in info["extensions"]:
        mgr.from_host(array, copy="never")
    else:
        with pytest.raises(kp.UnimplementedError):
            mgr.from_host(array, copy="never")
    t.freeze()
    with mgr.profile() as profile:
        other.fill(3).wait()
    assert len(profile.records) >= 1
    mgr.destroy()
    assert null_control().violations() == []
    return list(info["extensions"])


def test_vulkan_1_2_with_nothing_optional():
    assert run_child(check_what_little_there_is, driver="null", layer="newer", config="profile=bare") == []


def test_a_portability_subset():
    found = run_child(check_what_little_there_is, driver="null", layer="newer", config="profile=apple")
    assert "VK_KHR_portability_subset" in found
