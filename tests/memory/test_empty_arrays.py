"""Arrays and tensors with no element: legal wherever NumPy has them; nothing runs, and nothing breaks."""

from __future__ import annotations

import asyncio
import warnings
from pathlib import Path

import numpy as np
import pytest

import kompute_py as kp
from kompute_py.cli import main
from tests.support.kernel_sources import SCALE

pytestmark = pytest.mark.each_driver

SHAPES = ((0,), (0, 3), (4, 0), (2, 0, 5))
TYPES = tuple(kp.MemoryTypes)
COUNT = """#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) readonly buffer A { TYPE a[]; };
layout(set = 0, binding = 1) buffer B { uint b[]; };
void main() {
    b[gl_GlobalInvocationID.x] = 100 + a.length();
    for (uint i = 0; i < a.length(); ++i) b[0] += uint(a[i]);
}
"""


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("memory_type", TYPES)
def test_tensors_of_every_kind(mgr, shape, memory_type):
    made = [
        mgr.tensor(np.zeros(shape), memory_type),
        mgr.tensor_t(np.zeros(shape, np.float32), memory_type),
        mgr.empty(shape, np.float32, memory_type),
        mgr.zeros(shape, np.float32, memory_type),
        mgr.full(shape, 7, np.float32, memory_type),
    ]
    for t in made:
        assert (t.shape, t.size(), len(t), t.nbytes, t.dtype) == (shape, 0, 0, 0, np.float32)
        assert t.is_init() and t.memory_type() == memory_type
        for got in (t.read(), np.asarray(t), t.read(np.empty(shape, np.float32))):
            assert got.shape == shape and got.dtype == np.float32
        t.write(np.zeros(shape))
        t.write([])
        t.fill(3).wait()
        t.copy_from(made[0]).wait()
        t.copy_to(np.empty(shape, np.float32)).wait()
        assert t.to(mgr, copy=True).shape == shape
        with t.map(read=True, write=True) as array:
            assert array.shape == shape
        assert f"shape={shape}" in repr(t)
        assert "shape" in t._repr_html_() or str(shape) in t._repr_html_()
        if memory_type != kp.MemoryTypes.storage:
            assert t.data().shape == (0,) and t.data().base is t
            assert t.numpy().shape == shape
        with pytest.raises(kp.InvalidArgumentError, match="has no element"):
            t.item()
        with pytest.raises(kp.InvalidArgumentError, match="holds 0 elements; the data has 1"):
            t.write([1])
    sequence = mgr.sequence()
    for t in made:
        sequence.record(kp.OpSyncDevice([t])).record(kp.OpFill([t], 2)).record(kp.OpSyncLocal([t]))
    sequence.record(kp.OpCopy(made)).record(kp.OpCopyRange(made[0], made[1])).eval()
    for t in made:
        t.destroy()
        assert not t.is_init()


def test_lists_and_dtypes(mgr):
    assert mgr.tensor([]).shape == (0,)
    for dtype in (
        np.bool_,
        np.uint8,
        np.int16,
        np.float64,
        np.complex64,
        np.dtype([("a", "f4"), ("b", "u4")]),
    ):
        t = mgr.tensor_t(np.zeros((3, 0), dtype))
        assert t.dtype == dtype and t.read().dtype == dtype
        t.write([])
        assert mgr.zeros(0, dtype).shape == (0,)
    with pytest.raises(kp.InvalidArgumentError, match="negative"):
        mgr.zeros((2, -1))


def test_views(mgr):
    t = mgr.tensor(np.arange(12).reshape(3, 4))
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    for key in (slice(1, 1), slice(3, None), slice(2, 1), (1, slice(4, 4)), (slice(0, 0), slice(1, 3))):
        part = t[key]
        assert part.shape == array[key].shape
        np.testing.assert_array_equal(part.read(), array[key])
        part.write(np.zeros(part.shape))
        part.fill(9).wait()
        assert part.data().size == 0 and part.base is t
        assert part.view(dtype=np.uint32).shape == part.shape
        with part.map(write=True) as mapped, t.map(read=True) as whole:
            assert mapped.size == 0 and whole.size == 12
    empty = mgr.zeros((0, 3))
    assert empty[0:0].shape == (0, 3) and empty[:, 1:1].shape == (0, 0)
    assert empty.reshape(3, 0).shape == (3, 0) and empty.reshape(-1, 3).shape == (0, 3)
    assert empty.view(dtype=np.uint16).shape == (0, 6)
    for wrong in ((0, -1), (1,), (-1, -1)):
        with pytest.raises(kp.InvalidArgumentError):
            empty.reshape(*wrong)
    with pytest.raises(kp.OutOfRangeError):
        empty[0]
    with pytest.raises(kp.InvalidArgumentError):
        t.reshape(0, 3)
    mgr.sequence().record(kp.OpSyncDevice([t])).record(kp.OpSyncDevice([t[3:3]])).record(
        kp.OpCopy([t[1:1], t[2:2], t[1:1]])
    ).record(kp.OpFill([t[0:1], t[0:0], t[1:1]], 5)).record(kp.OpSyncLocal([t, t[1:1]])).eval()
    np.testing.assert_array_equal(t.numpy()[0], np.full(4, 5))
    np.testing.assert_array_equal(t.numpy()[1:], array[1:])


@pytest.mark.parametrize("shape", SHAPES)
def test_kernels_run_nothing(mgr, shape):
    kernel = mgr.kernel(SCALE, name="scale")
    x, y = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    assert kernel(x, y, factor=2) is y
    assert kernel([], np.zeros(0, np.float32), factor=2).shape == (0,)
    a, b = mgr.zeros(shape), mgr.zeros(shape)
    for _ in range(3):
        assert kernel(a, b, factor=2) is None
    kernel.submit(a, b, factor=2).wait()
    operation = kernel.bind(a, b, factor=2)
    assert 0 in operation.groups
    sequence = mgr.sequence().record(operation)
    sequence.eval()
    sequence.eval_async()
    sequence.eval_await()
    operation.set(factor=3)
    sequence.eval()

    async def awaited():
        await sequence.eval_async()

    asyncio.run(awaited())
    frames = [np.zeros(shape, np.float32) for _ in range(4)]
    results = [np.asarray(out).shape for out in sequence.stream(frames, inputs=[a], outputs=[b])]
    assert results == [shape] * 4


def test_a_grid_of_no_invocation_runs_nothing(mgr):
    kernel = mgr.kernel(SCALE, name="scale")
    x, y = np.ones(4, np.float32), np.full(4, 7, np.float32)
    for more in ({"grid": 0}, {"grid": (4, 0)}, {"groups": 0}, {"groups": (1, 1, 0)}):
        np.testing.assert_array_equal(kernel(x, y, factor=2, **more), np.full(4, 7))
    for more in ({"grid": -1}, {"groups": (1, -1)}):
        with pytest.raises(kp.InvalidArgumentError, match="0 or more"):
            kernel(x, y, factor=2, **more)
    out = mgr.zeros(4)
    algorithm = mgr.algorithm([mgr.tensor(x), out], kp.compile(SCALE), (1, 1, 1), [], [2.0])
    mgr.sequence().eval(kp.OpAlgoDispatch(algorithm, grid=0))
    np.testing.assert_array_equal(out.read(), np.zeros(4))


@pytest.mark.parametrize("kind", ["float", "vec4", "double", "uint16_t"])
def test_shaders_find_no_element(mgr, needs, kind):
    dtype = {"float": "f4", "vec4": "f4", "double": "f8", "uint16_t": "u2"}[kind]
    if kind == "double":
        needs(mgr, "shaderFloat64")
    if kind == "uint16_t":
        needs(mgr, "storageBuffer16BitAccess")
    source = COUNT.replace("TYPE", kind).replace(
        "uint(a[i])", "uint(a[i].x)" if kind == "vec4" else "uint(a[i])"
    )
    source = source.replace("#version 450", "#version 450\n#extension GL_EXT_shader_16bit_storage : enable")
    kernel = mgr.kernel(source, name="count")
    given = np.zeros(0, dtype)
    np.testing.assert_array_equal(kernel(given, np.zeros(3, np.uint32), grid=3), [100] * 3)
    whole = mgr.tensor_t(np.ones(64, dtype))
    out = mgr.zeros(3, np.uint32)
    for a in (mgr.tensor_t(given), whole[0:0], whole[3:3], whole[64:]):
        kernel(a, out, grid=3)
        np.testing.assert_array_equal(out.read(), [100] * 3)
        algorithm = mgr.algorithm([a, out], kp.compile(source), (3, 1, 1))
        out.fill(0)
        mgr.sequence().eval(kp.OpAlgoDispatch(algorithm))
        np.testing.assert_array_equal(out.read(), [100] * 3)


def test_arrays_of_single_bytes_are_refused_only_where_something_runs(mgr, needs):
    needs(mgr, "storageBuffer8BitAccess")
    source = COUNT.replace("TYPE", "uint8_t").replace(
        "#version 450", "#version 450\n#extension GL_EXT_shader_8bit_storage : enable"
    )
    kernel = mgr.kernel(source, name="count")
    assert kernel(np.zeros(0, np.uint8), np.zeros(0, np.uint32), grid=0).shape == (0,)
    kernel.submit(mgr.zeros(0, np.uint8), mgr.zeros(0, np.uint32), grid=0).wait()
    with pytest.raises(kp.UnimplementedError, match=r"binding 0 .*empty array of single bytes"):
        kernel(np.zeros(0, np.uint8), np.zeros(3, np.uint32), grid=3)


def test_the_default_workgroup_of_an_empty_tensor_is_no_group(mgr):
    source = (
        "#version 450\n"
        "layout(local_size_x = 4) in; layout(set = 0, binding = 0) readonly buffer A { float a[]; }; "
    )
    source += "layout(set = 0, binding = 1) buffer B { float b[]; }; void main() { b[0] = 1 + a.length(); }"
    out = mgr.zeros(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        algorithm = mgr.algorithm([mgr.zeros(0), out], kp.compile(source))
    assert algorithm.workgroup == (0, 1, 1)
    mgr.sequence().eval(kp.OpAlgoDispatch(algorithm))
    assert out.read() == [0]
    algorithm.workgroup = (1, 1, 1)
    mgr.sequence().eval(kp.OpAlgoDispatch(algorithm))
    assert out.read() == [1]
    empties = [mgr.zeros(0) for _ in range(3)]
    mgr.sequence().eval(kp.OpMult(empties))


def test_sharing(mgr):
    for memory_type in (kp.MemoryTypes.host, kp.MemoryTypes.deviceAndHost):
        t = mgr.zeros((0, 3), memory_type=memory_type)
        assert np.from_dlpack(t).shape == (0, 3)
        assert memoryview(t).nbytes == 0
    assert kp.from_dlpack(np.zeros((0, 2), np.float32), mgr).shape == (0, 2)
    for shape in SHAPES:
        assert mgr.from_host(np.zeros(shape, np.float32)).shape == shape
        assert kp.aligned_empty(shape).shape == shape
        assert mgr.from_host(kp.aligned_zeros(shape)).read().shape == shape
    with pytest.raises(kp.InvalidArgumentError, match="no element"):
        mgr.from_host(kp.aligned_empty(0), copy="never")


def test_copies_between_managers(mgr, make_manager):
    other = make_manager()
    source, target = mgr.zeros((0, 2)), other.zeros((0, 2))
    target.copy_from(source).wait()
    assert source.to(other).shape == (0, 2)
    mgr.sequence().record(kp.OpCopy([source, target])).eval()


def test_parameter_files(mgr, tmp_path):
    path = tmp_path / "p.safetensors"
    data = {
        "none": np.zeros((0, 3), np.float32),
        "two": np.arange(2, dtype=np.float32),
        "last": np.zeros(0, np.int32),
    }
    kp.save_tensors(path, {name: mgr.tensor_t(array, "host") for name, array in data.items()})
    loaded = kp.load_tensors(path, mgr)
    assert set(loaded) == set(data)
    for name, array in data.items():
        assert loaded[name].dtype == array.dtype
        np.testing.assert_array_equal(loaded[name].read(), array)
    kp.save_tensors(path, {"none": mgr.zeros((4, 0))})
    assert kp.load_tensors(path, mgr)["none"].shape == (4, 0)


def test_images_are_refused(mgr):
    for make in (
        lambda: mgr.image(np.zeros((0, 4), np.float32)),
        lambda: mgr.image_t(np.zeros((4, 0, 4), np.uint8)),
        lambda: mgr.image_empty((0, 4)),
        lambda: mgr.image(np.zeros((0, 4, 4), np.float32), layers=True),
        lambda: mgr.image([], 4, 4, 1),
    ):
        with pytest.raises(kp.InvalidArgumentError, match=r"at least 1 texel.*A tensor may be empty"):
            make()


def test_struct_dtypes_with_no_element(mgr):
    spirv = kp.compile(
        "#version 450\nlayout(local_size_x = 1) in; layout(set = 0, binding = 0) buffer A { uint n; float "
        "a[]; }; "
        "void main() { n = a.length(); }"
    )
    dtype = kp.struct_dtype(spirv, 0, length=0)
    assert dtype.itemsize == 4
    t = mgr.tensor_t(np.zeros(1, dtype))
    mgr.algorithm([t], spirv, (1, 1, 1))


def test_the_command_line(tmp_path, monkeypatch, capsys, mgr):
    monkeypatch.chdir(tmp_path)
    Path("scale.comp").write_text(SCALE)
    np.save("x.npy", np.zeros(0, np.float32))
    assert main(["run", "scale.comp", "--in", "x=x.npy", "--set", "factor=2", "--out", "y=y.npy"]) == 0
    assert np.load("y.npy").shape == (0,)
