"""What a kernel's bindings take: those that the shader does not use, blocks of structs, and elements with
padding.
"""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp
from tests.support.kernel_sources import SPECIAL

# -- what the shader declares and does not use ---------------------------------------------------------------

MUCH_UNUSED = """
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0, rgba32f) uniform image2D picture;
layout(set = 0, binding = 1) buffer A { uint a[]; };
layout(set = 0, binding = 2) uniform sampler2D photo;
layout(set = 1, binding = 3) uniform Other { vec4 other; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < a.length()) a[i] += 1; }
"""
LENGTH_ALONE = """
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) readonly buffer A { uint a[]; };
layout(set = 0, binding = 1) writeonly buffer B { uint b[]; };
void main() { b[0] = a.length(); }
"""


def test_unused_bindings_of_any_kind_and_set(mgr):
    kernel = mgr.kernel(MUCH_UNUSED, name="k")
    assert str(kernel.signature.parameters[0]) == "unused image2D picture"
    t = mgr.tensor_t(np.arange(100, dtype=np.uint32))
    kernel(a=t)
    np.testing.assert_array_equal(t.read(), np.arange(1, 101))
    mgr.kernel("#version 450\nlayout(binding = 1) buffer A { uint a[]; };\nvoid main() {}")(groups=1)


def test_a_length_alone_is_a_use(mgr):
    kernel = mgr.kernel(LENGTH_ALONE, name="k")
    a = kernel.signature.parameters[0]
    assert (a.access, a.used, str(a)) == ("none", True, "uint[] a")
    out = mgr.zeros(5, np.uint32)
    with pytest.raises(kp.InvalidArgumentError, match="missing argument 'a'"):
        kernel(b=out)
    known = mgr.zeros(7, np.uint32)
    kernel(known, out)
    assert out.read()[0] == 7
    op = kernel.bind(known, out)
    known.destroy()
    with pytest.raises(kp.FailedPreconditionError):
        mgr.sequence().eval(op)


@pytest.mark.parametrize("number", [0x10000, 2**31 - 1, 2**32 - 1])
def test_binding_numbers_beyond_all_tables(mgr, number):
    spirv = kp.ShaderModule(LENGTH_ALONE).disassembly().replace("Binding 1", f"Binding {number}")
    with pytest.raises(kp.UnimplementedError, match=f"binding number {number}"):
        mgr.kernel(spirv)


def test_the_first_call_with_a_view_uploads_all_of_the_tensor(mgr):
    """Else a later call with the tensor would find the rest of it undefined."""
    kernel = mgr.kernel(MUCH_UNUSED)
    t = mgr.tensor_t(np.arange(128, dtype=np.uint32))
    kernel(a=t[64:])
    kernel(a=t)
    np.testing.assert_array_equal(t.read(), np.arange(128) + np.repeat([1, 2], 64))


RECORD_BLOCKS = """
#version 450
layout(local_size_x = 8) in;
struct Light { vec3 pos; float power; };
layout(set = 1, binding = 0) uniform Config { float gain; int mode; Light lights[2]; } config;
layout(set = 0, binding = 0) buffer Histogram { uint total; uint bins[]; } histogram;
layout(set = 0, binding = 1) writeonly buffer Out { float y[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= y.length()) return;
    y[i] = config.gain * config.mode + config.lights[1].power + config.lights[0].pos.y;
    atomicAdd(histogram.total, 1);
    atomicAdd(histogram.bins[i % 2], 1);
}
"""
CONFIG = {"gain": 2.0, "mode": 3, "lights": [{"pos": (0, 7, 0), "power": 1.0}, ((0, 0, 0), 100.0)]}


@pytest.mark.capability("I4", "uniform buffers", "Manager.kernel", "guides/structs")
def test_a_block_takes_a_dict(mgr):
    kernel = mgr.kernel(RECORD_BLOCKS, name="blocks")
    histogram, y = kernel(np.zeros(3, np.uint32), config=CONFIG, y=np.zeros(10, np.float32), grid=10)
    assert np.array_equal(y, np.full(10, 113)) and list(histogram) == [10, 5, 5]
    made = np.zeros((), kp.struct_dtype(kernel, "config"))
    made["gain"], made["mode"] = 1.0, 1
    _, y = kernel(np.zeros(3, np.uint32), config=made, y=y, grid=10)
    assert np.array_equal(y, np.full(10, 1))
    assert kp.struct_dtype(kernel, (1, 0)) == made.dtype
    with pytest.raises(kp.InvalidArgumentError, match="'mode' is missing"):
        kernel(np.zeros(3, np.uint32), config={"gain": 1.0, "lights": CONFIG["lights"]}, y=y, grid=10)
    with pytest.raises(kp.InvalidArgumentError, match=r"a member of 'config'; give config=\{...\}, a"):
        kernel(np.zeros(3, np.uint32), y=y, grid=10, **CONFIG)
    with pytest.raises(kp.InvalidArgumentError, match="'mode', 'lights' are missing"):
        kernel(np.zeros(3, np.uint32), config={"gain": 1.0}, y=y, grid=10)
    with pytest.raises(kp.ArgumentTypeError, match=r"np.zeros\(1, kp.struct_dtype\(blocks, 'config'\)\)"):
        kernel.bind(mgr.tensor_t(np.zeros(3, np.uint32)), config=CONFIG, y=mgr.zeros(10), grid=10)
    with pytest.raises(kp.ArgumentTypeError, match="'histogram' is written by the shader: give an array"):
        kernel({"total": 0}, config=CONFIG, y=y, grid=10)
    with pytest.raises(kp.ArgumentTypeError, match=r"takes|give a Tensor"):
        kernel.bind(mgr.zeros(3), config=CONFIG, y=mgr.zeros(10), grid=10)


def test_a_block_of_one_kind_of_scalars_has_its_dtype(mgr):
    kernel = mgr.kernel(RECORD_BLOCKS, name="blocks")
    assert {p.name: p.dtype for p in kernel.signature.parameters} == {
        "histogram": np.uint32,
        "y": np.float32,
        "config": None,
    }
    with pytest.raises(kp.ArgumentTypeError, match=r"'histogram' .* holds uint32"):
        kernel.bind(mgr.zeros(3), config=mgr.zeros(20), y=mgr.zeros(10))
    kernel.bind(mgr.empty(12, np.uint8), config=mgr.zeros(20), y=mgr.zeros(10), grid=10)  # raw bytes


def test_rows_of_three_for_a_padded_vec3(mgr):
    source = """
        #version 450
        layout(set = 0, binding = 0) readonly buffer P { vec3 points[]; };
        layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
        layout(local_size_x = 8) in;
        void main() { uint i = gl_GlobalInvocationID.x; if (i < y.length()) y[i] = points[i].z; }
    """
    kernel = mgr.kernel(source, name="z")
    points = np.arange(12, dtype=np.float32).reshape(4, 3)
    with pytest.raises(
        kp.InvalidArgumentError,
        match=r"z: 'points' is vec3\[\], whose elements are 16 bytes apart.*struct_dtype",
    ):
        kernel.bind(mgr.tensor_t(points), mgr.zeros(4))
    kernel.bind(mgr.zeros(16), mgr.zeros(4))
    made = np.zeros(4, kp.struct_dtype(kernel, "points"))
    made[..., :3] = points
    assert np.array_equal(kernel(made, np.zeros(4, np.float32)), points[:, 2])
    padded = np.pad(points, ((0, 0), (0, 1)))
    assert np.array_equal(kernel(padded, np.zeros(4, np.float32)), points[:, 2])


def test_numbers_for_a_padded_array(mgr):
    source = """
        #version 450
        layout(set = 0, binding = 0, std140) readonly buffer X { float x[]; };
        layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
        layout(local_size_x = 4) in;
        void main() { uint i = gl_GlobalInvocationID.x; if (i < y.length()) y[i] = x[i]; }
    """
    kernel = mgr.kernel(source, name="copy")
    assert "x: storage buffer, float[] (16 bytes apart), read\n" in str(kernel)
    for given in (mgr.zeros(16), mgr.zeros((8, 2)), np.zeros(4, np.float32)):
        with pytest.raises(
            kp.InvalidArgumentError,
            match=r"copy: 'x' is float\[\], whose elements are 16 bytes apart.*struct_dtype.*rows of "
            r"4.*std430",
        ):
            kernel(given, mgr.zeros(4))
    values = np.arange(4, dtype=np.float32)
    assert np.array_equal(kernel(np.pad(values[:, None], ((0, 0), (0, 3))), np.zeros(4, np.float32)), values)
    made = np.zeros(4, kp.struct_dtype(kernel, "x"))
    made[..., 0] = values
    assert np.array_equal(kernel(made, np.zeros(4, np.float32)), values)


@pytest.mark.parametrize(
    ("declared", "fits", "wrong"),
    [
        ("mat3", (4, 3, 4), [(4, 3, 3)]),
        ("mat2x3", (4, 2, 4), [(4, 2, 3), (4, 3, 2)]),
        ("mat2x4", (4, 2, 4), [(4, 4, 2)]),
        ("layout(row_major) mat2x4", (4, 4, 2), [(4, 2, 4)]),
        ("mat4", (4, 4, 4), []),
    ],
)
def test_arrays_for_matrices_are_their_memory(mgr, declared, fits, wrong):
    """One with the rows and columns of the matrices and other bytes is refused, as an array and as a
    tensor."""
    source = f"""
        #version 450
        layout(binding = 0) buffer Y {{ float y[]; }};
        layout(binding = 1) readonly buffer M {{ {declared} m[]; }};
        layout(local_size_x = 1) in;
        void main() {{ y[0] = m[1][0][1]; }}
    """
    kernel = mgr.kernel(source, name="matrices")
    assert np.zeros(4, kp.struct_dtype(kernel, "m")).shape == fits
    kernel(np.zeros(1, np.float32), np.zeros(fits, np.float32), groups=1)
    for shape in wrong:
        array = np.zeros(shape, np.float32)
        for given in (array, mgr.tensor_t(array)):
            with pytest.raises(
                kp.InvalidArgumentError, match=r"matrices: 'm' is .*\[\]: in memory a matrix is"
            ):
                kernel(np.zeros(1, np.float32), given, groups=1)


def test_a_matrix_alone_in_a_uniform_block(mgr):
    """Its array has rows and columns, as in a dict."""
    source = """
        #version 450
        layout(binding = 0) buffer Y { float y[]; };
        layout(binding = 1) uniform M { mat4x3 m; };
        layout(local_size_x = 1) in;
        void main() { for (int c = 0; c < 4; ++c) for (int r = 0; r < 3; ++r) y[r * 4 + c] = m[c][r]; }
    """
    kernel = mgr.kernel(source)
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    for given in (array, {"m": array}, array.tolist()):
        assert np.array_equal(kernel(np.zeros(12, np.float32), m=given, groups=1), array.ravel())


def test_print_shows_structs_and_what_sets_the_local_size(mgr):
    text = str(mgr.kernel(RECORD_BLOCKS, name="blocks"))
    assert "Config { float gain @0; int mode @4; struct Light[2] lights @16 (16 apart) }" in text
    assert "Light { vec3 pos @0; float power @12 }" in text
    special = mgr.kernel(SPECIAL, name="special").specialize(TILE=8)
    assert "local size  8 (TILE) x 1 x 1" in str(special)
