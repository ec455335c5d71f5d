"""Kernels: shaders called like functions, against NumPy."""

from __future__ import annotations

import gc
import warnings

import numpy as np
import pytest

import kompute_py as kp
from tests.support.kernel_sources import FIXED, SCALE, SPECIAL
from tests.support.threads import on_threads

HLSL = """
RWStructuredBuffer<float> data : register(u0);
[numthreads(32, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    uint count, stride;
    data.GetDimensions(count, stride);
    if (id.x < count) data[id.x] += 1.0;
}
"""
RECORDS = """
#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : enable
layout(local_size_x = 1) in;
struct Light { vec3 colour; float power; };
layout(push_constant) uniform Push {
    float a; vec2 b; vec3 c; mat3x2 m; int n[3]; Light lights[2]; uint last;
} push;
layout(set = 0, binding = 0) writeonly buffer Out { float values[]; };
void main() {
    values[0] = push.a; values[1] = push.b.x; values[2] = push.b.y;
    for (int i = 0; i < 3; ++i) values[3 + i] = push.c[i];
    for (int row = 0; row < 2; ++row) for (int column = 0; column < 3; ++column)
        values[6 + row * 3 + column] = push.m[column][row];
    for (int i = 0; i < 3; ++i) values[12 + i] = float(push.n[i]);
    for (int i = 0; i < 2; ++i) {
        values[15 + 4 * i] = push.lights[i].colour.x; values[16 + 4 * i] = push.lights[i].colour.y;
        values[17 + 4 * i] = push.lights[i].colour.z; values[18 + 4 * i] = push.lights[i].power;
    }
    values[23] = float(push.last);
}
"""


def arange(n, dtype=np.float32):
    return np.arange(n, dtype=dtype)


@pytest.fixture
def scale(mgr):
    return mgr.kernel(SCALE, name="scale")


# -- calls ---------------------------------------------------------------------------------------------------


def test_tensors_are_used_in_place(mgr, scale):
    x, y = mgr.tensor(arange(100)), mgr.zeros(100)
    assert scale(x, y, factor=2.0) is None
    np.testing.assert_array_equal(y.read(), arange(100) * 2)
    scale(x=x, y=y, factor=3)
    np.testing.assert_array_equal(y.read(), arange(100) * 3)
    scale(x, out=y, push={"factor": 4.0})
    np.testing.assert_array_equal(y.read(), arange(100) * 4)
    scale(bind={"x": x, "y": y}, factor=-0.0)
    assert np.signbit(y.read()[1:]).all()
    scale(x, y, factor=0.0)
    assert not np.signbit(y.read()).any()


def test_only_what_was_never_on_the_device_is_uploaded(mgr, scale):
    x, y = mgr.tensor(arange(8)), mgr.zeros(8)
    scale(x, y, factor=1.0)
    x.data()[:] = 100
    scale(x, y, factor=1.0)
    np.testing.assert_array_equal(y.read(), arange(8))
    mgr.sequence().eval(kp.OpSyncDevice([x]))
    scale(x, y, factor=1.0)
    np.testing.assert_array_equal(y.read(), np.full(8, 100))
    written = mgr.tensor(np.zeros(8))
    written.write(arange(8))
    scale(written, y, factor=1.0)
    np.testing.assert_array_equal(y.read(), arange(8))


@pytest.mark.capability("I64 W16", "shaders called like functions", "Manager.kernel", "guides/kernels")
def test_arrays_are_copied_in_and_back(scale):
    y = np.full(10, 7, np.float32)
    assert scale(arange(8), y, factor=2.0, grid=8) is y
    np.testing.assert_array_equal(y, [0, 2, 4, 6, 8, 10, 12, 14, 7, 7])
    strided = np.zeros((8, 2), np.float32)
    assert scale(arange(16)[::2], strided[:, 1], factor=1.0).base is strided
    np.testing.assert_array_equal(strided[:, 1], arange(16)[::2])
    np.testing.assert_array_equal(scale([1, 2, 3], out=np.zeros(3, np.float32), factor=2), [2, 4, 6])
    for n in range(1, 40):  # more shapes than are kept
        np.testing.assert_array_equal(scale(arange(n), np.empty(n, np.float32), factor=n), arange(n) * n)


def test_several_written_arrays(mgr):
    split = mgr.kernel(
        """
        #version 450
        layout(set = 0, binding = 0) readonly buffer A { ivec2 pairs[]; };
        layout(set = 0, binding = 1) buffer B { int left[]; };
        layout(set = 0, binding = 2) buffer C { int right[]; };
        void main() { uint i = gl_GlobalInvocationID.x; left[i] = pairs[i].x; right[i] = pairs[i].y; }
        """
    )
    left, right = split(arange(6, np.int32).reshape(3, 2), np.zeros(3, np.int32), np.zeros(3, np.int32))
    assert left.tolist() == [0, 2, 4] and right.tolist() == [1, 3, 5]
    with pytest.raises(kp.InvalidArgumentError, match="left, right"):
        split(arange(6, np.int32), out=left)


def test_grids(mgr):
    count = mgr.kernel(
        """
        #version 450
        layout(local_size_x = 4, local_size_y = 2, local_size_z = 2) in;
        layout(set = 0, binding = 0) buffer A { uint ran[]; };
        void main() { atomicAdd(ran[0], 1); atomicMax(ran[1], gl_GlobalInvocationID.x + 1);
                      atomicMax(ran[2], gl_GlobalInvocationID.y + 1);
                      atomicMax(ran[3], gl_GlobalInvocationID.z + 1); }
        """
    )

    def ran(shape, **how):
        return count(np.zeros(shape, np.uint32), **how).reshape(-1)[:4].tolist()

    # Writes at constants tell no number of invocations, whatever the shape.
    assert ran((3, 5, 9), grid=(9, 5, 3)) == [12 * 6 * 4, 12, 6, 4]
    with pytest.raises(kp.InvalidArgumentError, match=r"groups=\(1,\) .*grid=\(9, 5, 3\)"):
        ran((3, 5, 9))
    for shape in (9, (3, 9), (1, 3, 1, 9)):
        with pytest.raises(kp.InvalidArgumentError, match=r"xyz.*grid=\(.*grid=\("):
            ran(shape)
    assert ran(4, grid=(5, 3)) == [8 * 4 * 2, 8, 4, 2]
    assert ran(4, groups=(3, 1, 2)) == [12 * 2 * 4, 12, 2, 4]
    for wrong in ({"grid": (1, 1), "groups": 1}, {"grid": -1}, {"groups": -1}, {"groups": 2**31}):
        with pytest.raises(kp.InvalidArgumentError, match="main"):
            ran(4, **wrong)


def test_images(mgr):
    invert = mgr.kernel(
        """
        #version 450
        layout(local_size_x = 8, local_size_y = 8) in;
        layout(set = 0, binding = 0, r32f) readonly uniform image2D source;
        layout(set = 0, binding = 1, r32f) writeonly uniform image2D result;
        void main() {
            ivec2 at = ivec2(gl_GlobalInvocationID.xy);
            if (all(lessThan(at, imageSize(result)))) imageStore(result, at, vec4(1.0 - imageLoad(source,
            at).x));
        }
        """
    )
    picture = np.random.default_rng(0).random((20, 30), dtype=np.float32)
    source, result = mgr.image(picture), mgr.image(np.zeros((20, 30), np.float32))
    invert(source, result)
    np.testing.assert_array_equal(result.read(), 1 - picture)
    with pytest.raises(kp.InvalidArgumentError, match=r"'result'.*mgr\.image"):
        invert(source, mgr.tensor(picture))
    with pytest.raises(kp.ArgumentTypeError, match=r"'source'.*mgr\.image"):
        invert(picture, result)


def test_hlsl(mgr):
    data = arange(50)
    assert mgr.kernel(HLSL, language="hlsl", target="vulkan1.1")(data) is data
    np.testing.assert_array_equal(data, arange(50) + 1)


# -- sources -------------------------------------------------------------------------------------------------


@pytest.mark.capability(
    "P43 W20", "kernels of text, files, modules, SPIR-V and assembly", "Manager.kernel", "guides/kernels"
)
def test_sources(mgr, tmp_path):
    spirv = kp.compile(SCALE)
    (tmp_path / "twice.comp").write_text(SCALE)
    (tmp_path / "twice.spv").write_bytes(spirv)

    class Holder:
        def to_spirv(self):
            return spirv

    module = kp.ShaderModule(SCALE, name="held")
    for source in (SCALE, spirv, bytearray(spirv), Holder(), module, mgr.kernel(SCALE), module.disassembly()):
        np.testing.assert_array_equal(
            mgr.kernel(source)([1, 2], out=np.zeros(2, np.float32), factor=2), [2, 4]
        )
    for path in (tmp_path / "twice.comp", str(tmp_path / "twice.spv")):
        kernel = mgr.kernel(path)
        assert kernel.name == "twice"
        np.testing.assert_array_equal(kernel([1, 2], out=np.zeros(2, np.float32), factor=2), [2, 4])
    assert mgr.kernel(module).name == "held"
    include = mgr.kernel(
        SCALE.replace("factor *", "TWICE *").replace("layout(local", '#include "twice.h"\nlayout(local'),
        includes={"twice.h": "#define TWICE (2.0 * FACTOR)\n"},
        defines={"FACTOR": "factor"},
    )
    np.testing.assert_array_equal(include([1, 2], out=np.zeros(2, np.float32), factor=2), [4, 8])


def test_what_is_no_shader(mgr, tmp_path):
    with pytest.raises(kp.ShaderCompileError, match="2:"):
        mgr.kernel("#version 450\nvoid main() { nonsense }\n")
    for wrong, error in (
        (b"\x7fELF1234", kp.InvalidArgumentError),
        (b"", kp.InvalidArgumentError),
        (3, kp.ArgumentTypeError),
        (tmp_path / "none.comp", kp.NotFoundError),
        ("#version 450\nvoid other() {}\n", kp.ShaderCompileError),
    ):
        with pytest.raises(error):
            mgr.kernel(wrong)
    with pytest.raises(kp.InvalidArgumentError, match="SPIR-V already"):
        mgr.kernel(kp.compile(SCALE), defines={"A": 1})
    with pytest.raises(TypeError, match="colour"):
        mgr.kernel(SCALE, colour=True)


def test_a_graphics_shader_is_refused(mgr):
    with pytest.raises(kp.InvalidArgumentError, match="compute"):
        mgr.kernel(
            'OpCapability Shader\nOpMemoryModel Logical GLSL450\nOpEntryPoint Vertex %main "main"\n'
            "%void = OpTypeVoid\n%fn = OpTypeFunction %void\n%main = OpFunction %void None %fn\n%l = "
            "OpLabel\nOpReturn\n"
            "OpFunctionEnd\n"
        )


# -- push constants and specialization -----------------------------------------------------------------------


def test_push_constants_by_layout(mgr):
    show = mgr.kernel(RECORDS, name="show")
    matrix = np.arange(6).reshape(2, 3)
    lights = [{"colour": (1, 2, 3), "power": 4}, ((5, 6, 7), 8)]
    values = {
        "a": 0.5, "b": (1, 2), "c": np.array([3, 4, 5]), "m": matrix, "n": [-1, 0, 1], "lights": lights,
        "last": 9,
    }  # fmt: skip
    result = show(np.zeros(24, np.float32), grid=1, **values)
    wanted = [0.5, 1, 2, 3, 4, 5, *range(6), -1, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    np.testing.assert_array_equal(result, wanted)
    records = np.array([((1, 2, 3), 4), ((5, 6, 7), 8)], [("colour", "f4", 3), ("power", "f4")])
    np.testing.assert_array_equal(
        show(np.zeros(24, np.float32), grid=1, **{**values, "lights": records}), wanted
    )
    for name, wrong, error, match in (
        ("b", (1, 2, 3), kp.InvalidArgumentError, "b is a vector of 2"),
        ("m", matrix.T, kp.InvalidArgumentError, "m is a matrix of 2 rows"),
        ("n", [1, 2.5, 3], kp.InvalidArgumentError, r"n\[1\]"),
        ("n", [1, 2, 2**31], kp.InvalidArgumentError, r"n\[2\].*int32"),
        ("last", -1, kp.InvalidArgumentError, "last.*uint32"),
        ("a", "x", kp.ArgumentTypeError, "show: a"),
        ("c", 1.0, kp.ArgumentTypeError, "c is a vector"),
        ("lights", lights[:1], kp.InvalidArgumentError, "lights is an array of 2"),
        ("lights", [{"colour": (1, 2, 3), "powr": 4}] * 2, kp.InvalidArgumentError, "power|powr"),
    ):
        with pytest.raises(error, match=match):
            show(np.zeros(24, np.float32), grid=1, **{**values, name: wrong})


def test_specialization(mgr):
    kernel = mgr.kernel(SPECIAL)
    assert kernel.local_size == (16, 1, 1) and kernel.spec_constants == {"TILE": 16, "BIAS": 0.5}
    wide = kernel.specialize(TILE=32)
    assert wide is kernel.specialize(TILE=32) and wide.local_size == (32, 1, 1)
    both = wide.specialize(BIAS=0.25)
    assert both.spec_constants == {"TILE": 32, "BIAS": 0.25} and both is kernel.specialize(BIAS=0.25, TILE=32)
    assert set(kernel(np.zeros(40, np.float32))) == {16.5}
    assert set(both(np.zeros(40, np.float32))) == {32.25}
    with pytest.raises(kp.InvalidArgumentError, match=r"'TILES'.*TILE"):
        kernel.specialize(TILES=1)
    with pytest.raises(kp.InvalidArgumentError, match="TILE"):
        kernel.specialize(TILE=-1)


# -- in sequences --------------------------------------------------------------------------------------------


@pytest.mark.capability(
    "I69 I70 S37 S40",
    "a call prepared: bound, changed, recorded, submitted",
    "Kernel.bind, Kernel.submit",
    "guides/kernels",
)
def test_bound_kernels_are_recorded(mgr, scale):
    x, y, z = mgr.tensor(arange(8)), mgr.zeros(8), mgr.zeros(8)
    first, second = scale.bind(x, y, factor=2.0), scale.bind(y, out=z, factor=3.0)
    seq = mgr.sequence().record(kp.OpSyncDevice([x]), first, second, kp.OpSyncLocal([y, z]))
    seq.eval()
    np.testing.assert_array_equal(z.data(), arange(8) * 6)
    assert first.set(factor=10.0) is first and first.push_constants == {"factor": 10.0}
    seq.eval()
    np.testing.assert_array_equal(y.data(), arange(8) * 10)
    np.testing.assert_array_equal(z.data(), arange(8) * 30)
    z.write(np.zeros(8))
    second.set(factor=1.0, groups=1)
    with pytest.raises(kp.InvalidArgumentError, match="factor"):
        second.set(factr=1.0)
    with pytest.raises(kp.InvalidArgumentError, match=r"indirect=tensor"):
        second.set(groups=mgr.tensor_t(np.uint32([1, 1, 1])))
    with pytest.raises(kp.ArgumentTypeError, match="ndarray"):
        scale.bind(arange(8), y, factor=1.0)
    seq.eval()
    np.testing.assert_array_equal(z.data(), arange(8) * 10)


def test_set_while_running_acts_at_the_next_evaluation(mgr, scale):
    x, y = mgr.tensor(arange(8)), mgr.zeros(8)
    op = scale.bind(x, y, factor=2.0)
    seq = mgr.sequence().record(kp.OpSyncDevice([x]), op, kp.OpSyncLocal([y]))
    seq.eval_async()
    op.set(factor=5.0)
    seq.eval_await()
    np.testing.assert_array_equal(y.data(), arange(8) * 2)
    seq.eval()
    np.testing.assert_array_equal(y.data(), arange(8) * 5)


def test_hazards_between_calls_and_sequences(mgr, scale):
    x, y = mgr.tensor(np.ones(1000)), mgr.zeros(1000)
    back = mgr.sequence().record(kp.OpCopy([y, x]))
    for _ in range(10):
        scale(x, y, factor=2.0)
        back.eval()
    assert set(x.read()) == {1024.0}


# -- bad input -----------------------------------------------------------------------------------------------


def test_bad_arguments_are_named(mgr, scale):
    x, y = mgr.tensor(arange(8)), mgr.zeros(8)
    for args, keywords, error, match in (
        ((x, y), {}, kp.InvalidArgumentError, "scale: missing push constant factor"),
        ((), {"factor": 1, "y": y}, kp.InvalidArgumentError, "scale: missing argument 'x'"),
        ((x, y), {"factr": 1}, kp.InvalidArgumentError, "'factr'.*did you mean 'factor'"),
        ((x, y, x), {"factor": 1}, kp.InvalidArgumentError, "takes 2 bindings.*3 were given"),
        ((x, y), {"factor": 1, "y": y}, kp.InvalidArgumentError, "'y' twice"),
        ((x, y), {"factor": 1, "push": {"factor": 1}}, kp.InvalidArgumentError, "'factor' twice"),
        ((x, mgr.zeros(8, np.int32)), {"factor": 1}, kp.ArgumentTypeError, r"'y' is float\[\].*int32.*view"),
        ((arange(8, np.float64), y), {"factor": 1}, kp.ArgumentTypeError, "'x'.*float64.*astype"),
        ((x, object()), {"factor": 1}, kp.ArgumentTypeError, "'y' is an object"),
        ((x, y), {"factor": 1e39}, kp.InvalidArgumentError, "factor.*float32"),
        ((x, y), {"factor": 1, "bind": [x]}, kp.ArgumentTypeError, "bind is a list"),
    ):
        with pytest.raises(error, match=match):
            scale(*args, **keywords)
    frozen = np.zeros(8, np.float32)
    frozen.flags.writeable = False
    with pytest.raises(kp.InvalidArgumentError, match=r"'y'.*read-only"):
        scale(x, frozen, factor=1)
    y.destroy()
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        scale(x, y, factor=1)


@pytest.mark.capability(
    "W17", "calls run where their tensors are; mixed devices are refused", "Manager.kernel", "guides/kernels"
)
def test_another_managers_tensor(make_manager, needs):
    one, other = make_manager(), make_manager()
    with pytest.raises(kp.InvalidArgumentError, match="belongs to"):
        one.kernel(SCALE)(one.tensor([1]), other.tensor([1]), factor=1)


def test_fixed_blocks_and_unused_bindings(mgr):
    kernel = mgr.kernel(FIXED, name="fixed")
    assert [p.name for p in kernel.signature.parameters] == ["first", "nothing", "grid"]
    table = np.arange(17, dtype=np.int32)
    cells = kernel(first=table, bind={"grid": np.zeros((2, 4), np.uint32)})
    np.testing.assert_array_equal(cells.reshape(-1), 0 + table[1:9])
    with pytest.raises(kp.InvalidArgumentError, match=r"'first'.*68 bytes.*64"):
        kernel(table[:16], bind={"grid": np.zeros(8, np.uint32)})


def test_destroyed_while_cached(mgr, scale):
    x, y = mgr.tensor(arange(8)), mgr.zeros(8)
    for _ in range(3):
        scale(x, y, factor=2.0)
    y.destroy()
    with pytest.raises(kp.FailedPreconditionError):
        scale(x, y, factor=2.0)
    y = mgr.zeros(8)
    scale(x, y, factor=2.0)
    np.testing.assert_array_equal(y.read(), arange(8) * 2)


# -- life ----------------------------------------------------------------------------------------------------


def test_calls_do_not_keep_tensors(mgr, scale):
    x = mgr.tensor(arange(8))
    y = mgr.zeros(8)
    scale(x, y, factor=2.0)
    gc.collect()
    before = kp.alive(detail=True)["buffer"]
    for _ in range(5):
        scale(x, mgr.zeros(8), factor=2.0)
    gc.collect()
    assert kp.alive(detail=True)["buffer"] == before
    del y
    gc.collect()
    assert kp.alive(detail=True)["buffer"] == before - 1
    assert kp.alive(detail=True)["stream"] == 0


def test_many_tensors_in_turn(mgr, scale):
    x = mgr.tensor(arange(4))
    targets = [mgr.zeros(4) for _ in range(200)]
    for factor in (2.0, 3.0):
        for target in targets:
            scale(x, target, factor=factor)
    assert all(target.read()[1] == 3 for target in targets)


def test_threads_take_turns(mgr, scale):

    def work(seed):
        for i in range(20):
            np.testing.assert_array_equal(
                scale(arange(64) + seed, np.empty(64, np.float32), factor=float(i + 1)),
                (arange(64) + seed) * (i + 1),
            )

    on_threads(work, range(4))


def test_after_the_manager_is_destroyed(make_manager):
    mgr = make_manager()
    kernel = mgr.kernel(SCALE)
    mgr.destroy()
    with pytest.raises(kp.FailedPreconditionError):
        kernel([1], np.zeros(1, np.float32), factor=1)


# -- what it shows -------------------------------------------------------------------------------------------


@pytest.mark.capability(
    "I68 S35 S36", "name, arguments and types of a kernel", "Kernel.signature", "reference/kernels"
)
def test_signature_as_text(mgr):
    scale = mgr.kernel(SCALE, name="scale")
    assert repr(scale) == "<kp.Kernel scale(float[] x, out float[] y, *, float factor)>"
    assert "local size  64 x 1 x 1" in str(scale) and "0.1 y: storage buffer, float[], write" in str(scale)
    assert "TILE = 16" in str(mgr.kernel(SPECIAL))
    assert "vec2 b, vec3 c, mat3x2 m, int[3] n, struct Light[2] lights" in repr(mgr.kernel(RECORDS))


@pytest.mark.capability(
    "P45",
    "a compiled shader described without running it",
    "Kernel.reflection, Kernel.disassembly",
    "reference/kernels",
)
def test_looking_inside(mgr):
    scale = mgr.kernel(SCALE)
    assert "OpEntryPoint GLCompute" in scale.disassembly()
    assert "factor" in scale.to("glsl") and "numthreads(64" in scale.to("hlsl")
    with pytest.raises(kp.ArgumentTypeError, match=r"belongs to its Manager.*other.kernel\(k.module\)"):
        scale.to(scale.manager)
    assert scale.reflection["bindings"][1]["access"] == "write"
    assert scale.to_spirv() == scale.module.to_spirv()
    assert repr(scale.module).startswith("<kp.ShaderModule main(float[] x")


def test_warnings_point_at_the_caller(mgr):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mgr.kernel("#version 450\n#extension GL_NONSENSE : enable\nvoid main() {}\n")
    assert caught and caught[0].filename == __file__


# -- names in texts ------------------------------------------------------------------------------------------


def test_operations_are_called_by_their_kernel(mgr):
    scale = mgr.kernel(SCALE, name="scale")
    x, y = mgr.zeros(4), mgr.zeros(4)
    sequence = mgr.sequence().record(scale.bind(x, y, factor=1.0))
    assert "[scale]" in repr(sequence)


def test_specialize_names_the_kernel(mgr):
    with pytest.raises(
        kp.InvalidArgumentError, match=r"^special: There is no specialization constant 'tile'"
    ):
        mgr.kernel(SPECIAL, name="special").specialize(tile=3)


@pytest.mark.parametrize(
    "wrong", [{"grid": (4, -1)}, {"grid": (4, 1, -2)}, {"groups": (1, -1, 1)}, {"grid": ()}]
)
def test_no_axis_runs_fewer_than_none(mgr, wrong):
    kernel = mgr.kernel(
        "layout(local_size_x = 1) in; layout(binding = 0) buffer A { float a[]; }; void main() { a[0] = 1; "
        "}\n"
    )
    with pytest.raises(kp.InvalidArgumentError, match=r"main: gr(id|oups)"):
        kernel(mgr.zeros(4), **wrong)


def test_an_image_has_the_format_that_the_shader_declares(mgr):
    source = """
layout(local_size_x = 1) in;
layout(binding = 0, rgba8) uniform image2D picture;
void main() { imageStore(picture, ivec2(0), vec4(1)); }
"""
    kernel = mgr.kernel(source, name="draw")
    with pytest.raises(
        kp.InvalidArgumentError, match=r"draw: 'picture' .*layout\(rgba8\).*rgba32f.*format='rgba8'"
    ):
        kernel(mgr.image(np.zeros((2, 2, 4), np.float32)))
    kernel(mgr.image(np.zeros((2, 2, 4), np.uint8), format="rgba8"))


def test_unknown_constants_name_the_kernel_and_what_is_near(mgr):
    source = """
layout(local_size_x = 1) in;
layout(constant_id = 0) const int TILE = 1;
layout(constant_id = 1) const int X = 1;
layout(binding = 0) buffer A { int a[]; };
void main() { a[0] = TILE; a[1] = X; }
"""
    kernel = mgr.kernel(source, name="tiled")
    with pytest.raises(kp.InvalidArgumentError, match=r"tiled: .*'TILES', did you mean 'TILE'\?"):
        kernel.specialize(TILES=2)
    assert kernel.specialize(**{"0": 7}).local_size == (1, 1, 1)


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        ({"spec_consts": {"BLOCK": 64}}, r"mgr\.kernel\(source\)\.specialize\(BLOCK=64\)"),
        ({"push_consts": [2.0]}, r"kernel\(x, y, factor=2\.0\)"),
        ({"workgroup": (4, 1, 1)}, r"groups=\(4, 1, 1\)"),
        ({"tensors": []}, r"kernel\(x, y\)"),
        ({"grid": 64}, r"grid=1000"),
        ({"groups": 64}, r"groups=\(4, 1, 1\)"),
        ({"BLOCK": 64}, r"kernel\.specialize\(NAME=value\)"),
        ({"enrty": "main"}, r"did you mean 'entry'\?"),
    ],
)
def test_arguments_of_algorithms_and_calls_are_sent_to_their_place(mgr, options, answer):
    with pytest.raises(kp.ArgumentTypeError, match=answer):
        mgr.kernel("void main() {}", **options)


@pytest.mark.parametrize(
    "source",
    [
        "#version 450\nlayout(location = 0) in vec3 p;\nvoid main() { gl_Position = vec4(p, 1); }",
        "#version 450\nlayout(location = 0) out vec4 c;\nvoid main() { c = vec4(gl_FragCoord.xy, 0, 1); }",
    ],
)
def test_a_graphics_shader_is_called_one(mgr, source, tmp_path):
    with pytest.raises(
        kp.ShaderCompileError, match="looks like a graphics shader; kompute_py runs compute shaders"
    ):
        mgr.kernel(source)
    path = tmp_path / "view.frag"
    path.write_text(source)
    for given in (path, str(path)):
        with pytest.raises(kp.InvalidArgumentError, match=r"view.frag' is a shader of graphics"):
            mgr.kernel(given)
