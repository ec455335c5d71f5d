"""How many invocations run if a call does not say: every shader of a matrix, over arrays of every shape, is
right in each
element or refused with the choices named."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import kompute_py as kp
from kompute_py.cli import main
from tests.drivers import null_control
from tests.support.child import run_child

# Each binding with its declarations, the dtype of the array, and the axes that one element has in it.
ELEMENTS = {
    "float": ("buffer B { float b[]; };", "b[i] += 1", np.float32, ()),
    "vec2": ("buffer B { vec2 b[]; };", "b[i] += 1", np.float32, (2,)),
    "vec4": ("buffer B { vec4 b[]; };", "b[i] += 1", np.float32, (4,)),
    "mat2": ("buffer B { mat2 b[]; };", "b[i] += mat2(1, 1, 1, 1)", np.float32, (2, 2)),
    "std140": ("buffer B { float b[]; };", "b[i] += 1", np.float32, (4,)),
    "struct": (
        "struct S { vec3 v; uint n; };\nlayout(binding = 0) buffer B { S b[]; };",
        "b[i].v += 1; b[i].n += 1",
        np.dtype([("v", np.float32, 3), ("n", np.uint32)]),
        (),
    ),
    "array": ("buffer B { float b[][4]; };", "for (uint k = 0; k < 4; ++k) b[i][k] += 1", np.float32, (4,)),
}
LOCAL = {
    1: "local_size_x = 16",
    2: "local_size_x = 8, local_size_y = 2",
    3: "local_size_x = 4, local_size_y = 2, local_size_z = 2",
}
CODE = {
    1: "uint i = gl_GlobalInvocationID.x; if (i >= b.length()) return;",
    2: "uvec2 p = gl_GlobalInvocationID.xy; if (p.x >= size.x || p.y >= size.y) return; uint i = p.y * "
    "size.x + p.x;",
    3: "uvec3 p = gl_GlobalInvocationID; if (any(greaterThanEqual(p, size))) return; uint i = (p.z * size.y "
    "+ p.y) * size.x + p.x;",
}
SHAPES = [
    (1,), (7,), (130,), (1, 40), (40, 1), (9, 31), (2, 3, 4), (5, 7, 11), (1, 9, 31), (1, 1, 1), (2, 3, 4, 5),
    (1, 1, 9, 31),
]  # fmt: skip


def source(dims, declaration, statement, layout="std430"):
    if not declaration.startswith("struct"):
        declaration = f"layout({layout}, binding = 0) {declaration}"
    push = "" if dims == 1 else "layout(push_constant) uniform P { uvec3 size; };"
    return (
        "#version 450\n"
        f"layout({LOCAL[dims]}) in;\n"
        f"{declaration}\n"
        f"{push}\n"
        f"void main() {{ {CODE[dims]} {statement}; }}"
    )


def agree(dims, shape):
    return dims == 1 or len(shape) == dims or len([n for n in shape if n != 1]) == dims


def used_size(dims, shape):
    """Width, height and depth that the shader is told."""
    longer = shape if len(shape) == dims else tuple(n for n in shape if n != 1)
    return (*reversed(longer), 1, 1, 1)[:3]


def refused(call, spelling="grid="):
    with pytest.raises(kp.InvalidArgumentError) as raised:
        call()
    text = str(raised.value)
    assert text.count(spelling) + text.count(spelling.replace("grid", "groups")) >= 2, text
    return text


def right(array):
    if array.dtype.names:
        return all(np.all(array[name] == 1) for name in array.dtype.names)
    return bool(np.all(array == 1))


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("dims", (1, 2, 3))
def test_every_element_or_a_choice(mgr, dims, element):
    declaration, statement, dtype, inner = ELEMENTS[element]
    if element == "array":
        statement = statement if dims > 1 else "for (uint k = 0; k < 4; ++k) b[i][k] += 1"
    kernel = mgr.kernel(
        source(dims, declaration, statement, "std140" if element == "std140" else "std430"), name="k"
    )
    for shape in SHAPES:
        array = np.zeros((*shape, *inner), dtype)
        keywords = {} if dims == 1 else {"size": used_size(dims, shape)}
        if element == "array" and dims > 1:
            continue  # rows of four are elements or an axis: below
        if agree(dims, shape):
            got = kernel(array, **keywords)
            filled = got[..., :1] if element == "std140" else got
            assert right(filled), (shape, filled)
            tensor = mgr.tensor_t(np.zeros_like(array))
            operation = kernel.bind(tensor, **keywords)
            mgr.sequence().record(kp.OpSyncDevice([tensor])).record(operation).record(
                kp.OpSyncLocal([tensor])
            ).eval()
            whole = tensor.numpy().reshape(array.shape)
            assert right(whole[..., :1] if element == "std140" else whole), shape
        else:
            refused(lambda array=array, keywords=keywords: kernel(array, **keywords))
            tensor = mgr.tensor_t(array)
            refused(lambda tensor=tensor, keywords=keywords: kernel.bind(tensor, **keywords))
            refused(lambda tensor=tensor, keywords=keywords: kernel.submit(tensor, **keywords))


def test_the_reported_arrays(mgr):
    square = mgr.kernel(
        "#version 450\nlayout(local_size_x = 64) in;\nlayout(binding = 0) buffer Data { float data[]; };\n"
        "void main() { uint i = gl_GlobalInvocationID.x; if (i < data.length()) data[i] *= data[i]; }"
    )
    np.testing.assert_array_equal(
        square(np.arange(8, dtype=np.float32).reshape(4, 2)), [[0, 1], [4, 9], [16, 25], [36, 49]]
    )
    move = mgr.kernel(
        "#version 450\nlayout(local_size_x = 64) in;\nlayout(binding = 0) buffer P { vec4 pos[]; };\n"
        "void main() { uint i = gl_GlobalInvocationID.x; if (i < pos.length()) pos[i] += 1; }"
    )
    assert move.bind(mgr.zeros((1024, 4))).groups == (16, 1, 1)
    assert move.bind(mgr.zeros(4096)).groups == (16, 1, 1)
    assert np.all(move(np.zeros((1024, 4), np.float32)) == 1)


def test_declared_lengths_and_arrays_after_members(mgr):
    head = "#version 450\nlayout(local_size_x = 4, local_size_y = 2) in;\n"
    table = mgr.kernel(head + "layout(binding = 0) buffer T { uint cells[6][5]; };\n"
                       "void main() { uvec2 p = gl_GlobalInvocationID.xy; if (p.x < 5 && p.y < 6) "
                       "cells[p.y][p.x] += 1; }")  # fmt: skip
    for shape in ((6, 5), (30,)):
        assert np.all(table(np.zeros(shape, np.uint32)) == 1)
    rows = mgr.kernel(head + "layout(binding = 0) buffer T { uint cells[][5]; };\n"
                      "void main() { uvec2 p = gl_GlobalInvocationID.xy; if (p.x < 5 && p.y < "
                      "cells.length()) cells[p.y][p.x] += 1; }")  # fmt: skip
    for shape in ((7, 5), (35,)):
        assert np.all(rows(np.zeros(shape, np.uint32)) == 1)
    tail = mgr.kernel("#version 450\nlayout(local_size_x = 4) in;\nlayout(binding = 0) buffer T { uint n; "
    "uint skip; uvec2 cells[]; };\n"
                      "void main() { uint i = gl_GlobalInvocationID.x; if (i < cells.length()) cells[i] += "
                      "1; }")  # fmt: skip
    assert np.all(tail(np.zeros(2 + 2 * 37, np.uint32))[2:] == 1)
    fixed = mgr.kernel("#version 450\nlayout(local_size_x = 4) in;\nlayout(binding = 0) buffer T { uint n; "
    "uint bins[9]; };\n"
                       "void main() { uint i = gl_GlobalInvocationID.x; if (i < 9) bins[i] += 1; "
                       "}")  # fmt: skip
    assert np.all(fixed(np.zeros(10, np.uint32))[1:] == 1)


# -- images --------------------------------------------------------------------------------------------------

IMAGE = "layout(binding = 0, r32f) uniform {} img;"
STORE = "imageStore(img, {}, imageLoad(img, {}) + 1);"


def image_kernel(mgr, dims, kind, at):
    body = STORE.format(at, at)
    return mgr.kernel(
        f"#version 450\nlayout({LOCAL[dims]}) in;\n{IMAGE.format(kind)}\nvoid main() {{ uvec3 id = "
        f"gl_GlobalInvocationID; {body} }}"
    )


def test_images(mgr):

    def image(shape, dims, layers=None):
        return mgr.image_t(np.zeros(shape, np.float32), dims=dims, layers=layers)

    def check(kernel, img):
        kernel(img)
        assert np.all(img.read() == 1)

    check(image_kernel(mgr, 1, "image1D", "int(id.x)"), image((37,), 1))
    for shape in ((9, 31), (1, 40), (40, 1)):
        check(image_kernel(mgr, 2, "image2D", "ivec2(id.xy)"), image(shape, 2))
    check(image_kernel(mgr, 3, "image3D", "ivec3(id)"), image((5, 7, 11), 3))
    check(image_kernel(mgr, 3, "image2DArray", "ivec3(id)"), image((5, 7, 11), 2, layers=True))
    # One component over two axes of texels: as many invocations as texels.
    flat = "ivec2(id.x % imageSize(img).x, id.x / imageSize(img).x)"
    check(image_kernel(mgr, 1, "image2D", flat), image((9, 31), 2))
    slab = image_kernel(mgr, 2, "image3D", "ivec3(id.xy, 0)")
    text = refused(lambda: slab(image((5, 7, 11), 3)))
    assert "grid=(11, 35)" in text and "grid=(77, 5)" in text


# -- groups, counters, nothing at all ------------------------------------------------------------------------


def lines(mgr, body, local="local_size_x = 16", extra=""):
    return mgr.kernel(
        f"#version 450\nlayout({local}) in;\nlayout(binding = 0) readonly buffer A {{ float a[]; }};\n"
        f"layout(binding = 1) buffer B {{ float b[]; }};\nlayout(push_constant) uniform P {{ uint width; "
        "};\n"
        f"{extra}\nshared float sums[16];\nvoid main() {{ {body} }}",
        name="k",
    )


@pytest.mark.parametrize(
    "index",
    [
        "gl_WorkGroupID.x * gl_WorkGroupSize.x + gl_LocalInvocationID.x",
        "gl_WorkGroupID.x * 16 + gl_LocalInvocationIndex",
        "(gl_WorkGroupID.x << 4) | gl_LocalInvocationID.x",
        "gl_GlobalInvocationID.x + 0 * width",
    ],
)
def test_numbers_of_groups_and_within_them(mgr, index):
    kernel = lines(mgr, f"uint i = {index}; if (i < b.length()) b[i] = a[i] + 1;")
    for shape in ((5,), (100, 10), (3, 4, 5)):
        a = np.random.default_rng(0).random(shape, np.float32)
        np.testing.assert_array_equal(kernel(a, np.zeros(shape, np.float32), width=1), a + 1)


def test_blocks_of_two_axes_counted_on_one(mgr):
    kernel = lines(
        mgr,
        "uint i = gl_WorkGroupID.x * 16 + gl_LocalInvocationIndex; if (i < b.length()) b[i] = a[i] + width;",
        local="local_size_x = 4, local_size_y = 4",
    )
    out = mgr.zeros(1000)
    assert kernel.bind(mgr.zeros(1000), out, width=1).groups == (63, 1, 1)
    assert np.all(kernel(np.zeros(1000, np.float32), np.zeros(1000, np.float32), width=1) == 1)


def test_a_group_for_each_row_is_a_choice(mgr):
    body = """
        uint row = gl_WorkGroupID.x, i = gl_LocalInvocationID.x; float sum = 0;
        for (uint c = i; c < width; c += 16) sum += a[row * width + c];
        sums[i] = sum; barrier();
        if (i == 0) { float all = 0; for (uint k = 0; k < 16; ++k) all += sums[k]; b[row] = all; }"""
    kernel = lines(mgr, body)
    a = np.arange(40 * 30, dtype=np.float32).reshape(40, 30)
    text = refused(lambda: kernel(a, np.zeros(40, np.float32), width=30))
    assert "groups=(40,) for one workgroup each" in text and "grid=(40,) for one invocation each" in text
    np.testing.assert_allclose(kernel(a, np.zeros(40, np.float32), width=30, groups=40), a.sum(1))
    # Both choices are one group.
    np.testing.assert_allclose(kernel(a[:1], np.zeros(1, np.float32), width=30), a[:1].sum(1))
    # On an axis where a group has one invocation, its number is the invocation's.
    along_y = lines(mgr, body.replace("gl_WorkGroupID.x", "gl_WorkGroupID.y"))
    np.testing.assert_allclose(along_y(a, np.zeros(40, np.float32), width=30), a.sum(1))


def test_an_array_by_group_is_named_and_the_grid_of_the_other_comes_first(mgr):
    kernel = mgr.kernel("""
layout(local_size_x = 16) in;
layout(binding = 0) buffer Y { float y[]; };
layout(binding = 1) writeonly buffer S { float sums[]; };
shared float parts[16];
void main() {
    uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationID.x;
    if (i < y.length()) y[i] *= 2;
    parts[own] = i < y.length() ? y[i] : 0;
    barrier();
    if (own == 0) {
        float all = 0;
        for (uint k = 0; k < 16; ++k) all += parts[k];
        sums[gl_WorkGroupID.x] = all;
    }
}""")
    y = np.ones(100, np.float32)
    text = refused(lambda: kernel(y, np.zeros(7, np.float32)))
    assert "writes 'sums' at gl_WorkGroupID.x, one element for each group of 16 x 1 x 1, and 'y'" in text
    assert 0 < text.index("grid=(100,)") < text.index("groups=(100,)")
    assert kernel(y, np.zeros(7, np.float32), grid=100)[1].tolist() == [32.0] * 6 + [8.0]


def test_partial_sums_are_a_choice(mgr):
    kernel = lines(
        mgr,
        "sums[gl_LocalInvocationID.x] = a[gl_GlobalInvocationID.x] * width; barrier(); if "
        "(gl_LocalInvocationID.x == 0) "
        "{ float all = 0; for (uint k = 0; k < 16; ++k) all += sums[k]; b[gl_WorkGroupID.x] = all; }",
    )
    a = np.arange(160, dtype=np.float32)
    refused(lambda: kernel(a, np.zeros(10, np.float32), width=1))
    np.testing.assert_allclose(
        kernel(a, np.zeros(10, np.float32), width=1, groups=10), a.reshape(10, 16).sum(1)
    )


def test_numbers_within_a_group_alone(mgr):
    kernel = lines(mgr, "uint i = gl_LocalInvocationID.x; if (i < b.length()) b[i] = a[i] + width;")
    assert np.all(kernel(np.zeros(16, np.float32), np.zeros(16, np.float32), width=2) == 2)
    assert kernel.bind(mgr.zeros(16), mgr.zeros(16), width=1).groups == (1, 1, 1)
    assert "groups=(1,)" in refused(
        lambda: kernel(np.zeros(17, np.float32), np.zeros(17, np.float32), width=2)
    )


def test_no_number_at_all_is_one_group(mgr):
    kernel = lines(
        mgr, "for (uint i = 0; i < b.length(); ++i) b[i] = a[i] + width;", local="local_size_x = 1"
    )
    assert np.all(kernel(np.zeros((5, 7), np.float32), np.zeros((5, 7), np.float32), width=3) == 3)
    assert kernel.bind(mgr.zeros((5, 7)), mgr.zeros((5, 7)), width=1).groups == (1, 1, 1)


def test_counters_do_not_say_how_many_run(mgr):
    histogram = mgr.kernel(
        "#version 450\nlayout(local_size_x = 16) in;\nlayout(binding = 0) readonly buffer A { uint a[]; };\n"
        "layout(binding = 1) buffer H { uint bins[]; };\n"
        "void main() { uint i = gl_GlobalInvocationID.x; if (i < a.length()) atomicAdd(bins[a[i]], 1); }"
    )
    values = np.random.default_rng(0).integers(0, 8, 1000).astype(np.uint32)
    text = refused(lambda: histogram(values, np.zeros(8, np.uint32)))
    assert "grid=(8,) as 'bins' has" in text and "grid=(1000,) as 'a' has" in text
    got = histogram(values, np.zeros(8, np.uint32), grid=1000)
    np.testing.assert_array_equal(got, np.bincount(values, minlength=8))
    # A counter first, then what is written for each element.
    select = mgr.kernel(
        "#version 450\nlayout(local_size_x = 16) in;\nlayout(binding = 0) buffer N { uint count; };\n"
        "layout(binding = 1) buffer O { uint o[]; };\n"
        "void main() { uint i = gl_GlobalInvocationID.x; if (i < o.length()) { atomicAdd(count, 1); o[i] = "
        "i; } }"
    )
    count, order = select(np.zeros(1, np.uint32), np.zeros(1000, np.uint32))
    assert count[0] == 1000 and np.array_equal(order, np.arange(1000))
    any_positive = mgr.kernel(
        "#version 450\nlayout(local_size_x = 16) in;\nlayout(binding = 0) buffer N { uint found; };\n"
        "layout(binding = 1) readonly buffer A { float a[]; };\n"
        "void main() { uint i = gl_GlobalInvocationID.x; if (i < a.length() && a[i] > 0) found = 1; }"
    )
    refused(lambda: any_positive(np.zeros(1, np.uint32), np.eye(20, dtype=np.float32)))
    assert any_positive(np.zeros(1, np.uint32), np.eye(20, dtype=np.float32), grid=400)[0] == 1


def test_arrays_of_bindings(mgr):
    kernel = mgr.kernel(
        "#version 450\nlayout(local_size_x = 16) in;\nlayout(binding = 0) buffer B { float b[]; } parts[2];\n"
        "void main() { uint i = gl_GlobalInvocationID.x; if (i < parts[0].b.length()) parts[0].b[i] += 1; "
        "if (i < parts[1].b.length()) parts[1].b[i] += 2; }"
    )
    one, two = mgr.zeros((3, 5)), mgr.zeros((20, 7))
    kernel([one, two])
    assert np.all(one.read() == 1) and np.all(two.read() == 2)


def test_hlsl(mgr):
    head = "struct P { float2 at; uint n; uint pad; };\nRWStructuredBuffer<{}> b : register(u0);\n"

    def kernel(kind, parameters, body, threads="16, 1, 1", before=""):
        return mgr.kernel(
            head.replace("{}", kind)
            + before
            + f"\n[numthreads({threads})]\nvoid main({parameters}) {{ {body} }}",
            language="hlsl",
        )

    assert np.all(
        kernel("float", "uint3 id : SV_DispatchThreadID", "if (id.x < 300) b[id.x] += 1;")(
            np.zeros((10, 30), np.float32)
        )
        == 1
    )
    assert np.all(
        kernel("float4", "uint i : SV_DispatchThreadID", "b[i] += 1;")(np.zeros((32, 2, 4), np.float32)) == 1
    )
    groups = kernel(
        "float",
        "uint3 g : SV_GroupID, uint t : SV_GroupIndex",
        "uint i = g.x * 16 + t; if (i < 300) b[i] += 1;",
    )
    assert np.all(groups(np.zeros((10, 30), np.float32)) == 1)
    struct = kernel(
        "float", "In input", "if (input.id.x < 300) b[input.id.x] += 1;",
        before="struct In { uint3 id : SV_DispatchThreadID; uint3 g : SV_GroupID; };",
    )  # fmt: skip
    assert np.all(struct(np.zeros((10, 30), np.float32)) == 1)
    plane = kernel(
        "float",
        "uint3 id : SV_DispatchThreadID",
        "if (id.x < 30 && id.y < 10) b[id.y * 30 + id.x] += 1;",
        "8, 8, 1",
    )
    assert np.all(plane(np.zeros((10, 30), np.float32)) == 1)
    refused(lambda: plane(np.zeros(300, np.float32)))
    records = np.zeros((3, 50), np.dtype([("at", np.float32, 2), ("n", np.uint32), ("pad", np.uint32)]))
    assert np.all(
        kernel("P", "uint3 id : SV_DispatchThreadID", "if (id.x < 150) b[id.x].n += 1;")(records)["n"] == 1
    )


@pytest.mark.parametrize("optimize", [True, False])
def test_spirv_of_any_optimization(mgr, optimize):
    text = source(1, *ELEMENTS["vec4"][:2]).replace(
        "uint i = gl_GlobalInvocationID.x;", "uvec3 id = gl_GlobalInvocationID; uint i = id.x;"
    )
    kernel = mgr.kernel(kp.compile(text, optimize=optimize))
    assert np.all(kernel(np.zeros((5, 6, 7, 4), np.float32)) == 1)


def test_constants_decide(mgr):
    kernel = mgr.kernel(
        "#version 450\nlayout(local_size_x_id = 0) in;\nlayout(constant_id = 1) const uint TILE = 1;\n"
        "layout(binding = 0) buffer B { float b[]; };\n"
        "void main() { uint i = gl_WorkGroupID.x * TILE + gl_LocalInvocationID.x; if (i < b.length()) b[i] "
        "+= 1; }"
    )
    full = kernel.specialize(**dict.fromkeys(kernel.spec_constants, 32))
    assert full.local_size == (32, 1, 1)
    assert np.all(full(np.zeros(1000, np.float32)) == 1)
    refused(lambda: full.specialize(TILE=16)(np.zeros(1000, np.float32)))


# -- a shader that counts one axis over two ------------------------------------------------------------------


def test_the_fold_of_two_axes(mgr):
    kernel = mgr.kernel(
        "#version 450\nlayout(local_size_x = 4) in;\nlayout(binding = 0) buffer B { uint b[]; };\nvoid "
        "main() {\n"
        "uint i = gl_GlobalInvocationID.x + gl_GlobalInvocationID.y * gl_NumWorkGroups.x * "
        "gl_WorkGroupSize.x;\n"
        "if (i < b.length()) b[i] += 1; }"
    )
    for shape in ((1,), (300_001,), (3, 4, 5), (11, 13), (2, 3, 4, 5)):
        assert np.all(kernel(np.zeros(shape, np.uint32)) == 1), shape


# -- more groups than the device takes on an axis ------------------------------------------------------------

ADD = """#version 450
layout(local_size_x = 8) in;
layout(binding = 0) buffer Data { uint data[]; };
layout(push_constant) uniform P { uint by; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < data.length()) data[i] += by + i; }"""


@pytest.fixture
def limit(mgr):
    most = mgr.get_device_properties()["max_work_group_count"][0]
    if most > 2**20:
        pytest.skip(f"the device runs {most} groups on an axis: no array here needs more")
    return most


def test_layers_run_every_group_once(mgr, limit):
    kernel = mgr.kernel(ADD)
    for count in (8 * limit, 8 * limit + 1, 2 * 8 * limit, 3 * 8 * limit - 5):
        wanted = 3 + np.arange(count, dtype=np.uint32)
        np.testing.assert_array_equal(kernel(np.zeros(count, np.uint32), by=3), wanted)
    tensor = mgr.zeros(20 * limit, np.uint32)
    operation = kernel.bind(tensor, by=1)
    assert operation.groups == (-(-20 * limit // 8), 1, 1)
    sequence = mgr.sequence(timestamps=True).record(operation)
    for _ in range(2):
        sequence.eval()
    assert len(sequence.timings()) == 1
    np.testing.assert_array_equal(tensor.read(), 2 + 2 * np.arange(20 * limit, dtype=np.uint32))
    operation.set(by=0, grid=8)
    sequence.eval()
    operation.set(grid=20 * limit)
    kernel.submit(tensor, by=0).wait()
    sequence.eval()
    got = tensor.read()
    assert got[9] == 2 + 4 * 9 and got[3] == 2 + 5 * 3 and got[-1] == 2 + 4 * (20 * limit - 1)


def test_readme_kernel_on_four_million_numbers(mgr, limit):
    square = mgr.kernel(
        "#version 450\nlayout(local_size_x = 64) in;\nlayout(binding = 0) buffer Data { float data[]; };\n"
        "void main() { uint i = gl_GlobalInvocationID.x; if (i < data.length()) data[i] *= data[i]; }"
    )
    numbers = np.random.default_rng(0).random(4_194_304 + 7, np.float32)
    np.testing.assert_array_equal(square(numbers.copy()), numbers * numbers)


def test_layers_on_every_axis(mgr, limit):
    head = (
        "#version 450\n"
        "layout(local_size_x = 2, local_size_y = LY, local_size_z = LZ) in;\n"
        "layout(binding = 0) buffer B { uint b[]; };\n"
    )
    body = """layout(push_constant) uniform P { uvec3 size; };
        void put(uvec3 p, uvec3 g) { if (any(greaterThanEqual(p, size))) return;
            uint i = (p.z * size.y + p.y) * size.x + p.x;
            if (p == g * gl_WorkGroupSize + gl_LocalInvocationID) b[i] = i; }
        void main() { put(gl_GlobalInvocationID, gl_WorkGroupID); }"""
    for local, shape in (
        ((1, 1), (1, limit + 9, 3)),
        ((1, 4), (3, limit + 9, 2)),
        ((1, 1), (limit + 9, 1, 2)),
        ((3, 1), (limit + 9, 3, 2)),
    ):
        kernel = mgr.kernel(head.replace("LY", str(local[0])).replace("LZ", str(local[1])) + body)
        got = kernel(np.zeros(shape, np.uint32), size=shape[::-1])
        np.testing.assert_array_equal(got, np.arange(got.size, dtype=np.uint32).reshape(shape))


def test_layers_in_algorithms_hazards_and_streams(mgr, limit):
    count = 8 * limit + 24
    a, b = mgr.zeros(count, np.uint32), mgr.zeros(count, np.uint32)
    add = mgr.algorithm([a], kp.compile(ADD), workgroup=(limit + 3, 1, 1), push_consts=[1])
    assert add.workgroup == (limit + 3, 1, 1)
    other = mgr.algorithm([b], kp.compile(ADD), workgroup=(1, 1, 1), push_consts=[1])
    sequence = mgr.sequence().record(kp.OpAlgoDispatch(add)).record(kp.OpCopy([a, b]))
    sequence.record(kp.OpAlgoDispatch(other, grid=count)).record(kp.OpAlgoDispatch(add))
    sequence.eval()
    index = np.arange(count, dtype=np.uint32)
    np.testing.assert_array_equal(a.read(), 2 * (1 + index))
    np.testing.assert_array_equal(b.read(), 2 * (1 + index))
    other.workgroup = (limit + 3, 1, 1)
    mgr.sequence().record(kp.OpAlgoDispatch(other)).eval()
    np.testing.assert_array_equal(b.read(), 3 * (1 + index))

    source_, result = mgr.zeros(count, np.uint32), mgr.zeros(count, np.uint32)
    copy = mgr.kernel(
        "#version 450\nlayout(local_size_x = 8) in;\nlayout(binding = 0) readonly buffer A { uint a[]; };\n"
        "layout(binding = 1) writeonly buffer B { uint b[]; };\n"
        "void main() { uint i = gl_GlobalInvocationID.x; if (i < b.length()) b[i] = a[i] + 1; }"
    )
    frames = [index, index + 5]
    streamed = (
        mgr.sequence().record(copy.bind(source_, result)).stream(frames, inputs=source_, outputs=result)
    )
    for frame, got in zip(frames, streamed, strict=True):
        np.testing.assert_array_equal(got, frame + 1)


def test_what_cannot_run_in_layers_is_refused_before_anything_moves(mgr, limit):
    counting = mgr.kernel(ADD.replace("data[i] += by + i", "data[i] += by + gl_NumWorkGroups.x"))
    tensor = mgr.tensor_t(np.zeros(8 * limit + 1, np.uint32))
    for call in (counting, counting.bind, counting.submit):
        with pytest.raises(
            kp.InvalidArgumentError,
            match=r"groups in x.*maxComputeWorkGroupCount.*gl_NumWorkGroups.*uint i = ",
        ):
            call(tensor, by=1)
    assert not tensor._native.on_device
    with pytest.raises(kp.InvalidArgumentError, match="gl_NumWorkGroups"):
        counting(np.zeros(8 * limit + 1, np.uint32), by=1)
    kernel = mgr.kernel(ADD)
    small = mgr.zeros(8, np.uint32)
    for groups in ((limit + 1, limit + 1, 1), (limit + 1, 2, 2), (2**32, 1, 1), (2**31, 1, 1)):
        with pytest.raises(kp.InvalidArgumentError, match="maxComputeWorkGroupCount"):
            kernel(small, by=1, groups=groups)


def layers_of_seven():
    mgr = kp.Manager()
    kernel = mgr.kernel(ADD)
    control = null_control()
    done = []
    for groups in (7, 8, 21, 45, (1, 9, 1), (3, 9, 1), (1, 1, 49)):
        before = control.dispatches
        kernel(mgr.zeros(8, np.uint32), by=1, groups=groups)
        done.append(control.dispatches - before)
    for groups in (50, (8, 8, 1), (3, 9, 2)):
        with pytest.raises(kp.InvalidArgumentError, match="maxComputeWorkGroupCount"):
            kernel(mgr.zeros(8, np.uint32), by=1, groups=groups)
    return [done, control.violations()]


def test_layers_stay_within_the_limits_of_the_device():
    # One dispatch for whole layers, and one for what is left.
    done, violations = run_child(layers_of_seven, driver="null", config="groups=7")
    assert violations == [] and done == [1, 2, 1, 2, 2, 2, 1]


# -- the command line ----------------------------------------------------------------------------------------


def test_the_command_line(mgr, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for dims, element in itertools.product((1, 2, 3), ("float", "vec4")):
        declaration, statement, dtype, inner = ELEMENTS[element]
        Path("k.comp").write_text(source(dims, declaration, statement))
        for shape in ((130,), (9, 31), (5, 7, 11), (2, 3, 4, 5)):
            array = rng.random((*shape, *inner)).astype(dtype)
            np.save("in.npy", array)
            command = ["run", "k.comp", "--in", "b=in.npy", "--out", "b=out.npy"]
            if dims > 1:
                command += ["--set", f"size={','.join(map(str, used_size(dims, shape)))}"]
            if agree(dims, shape):
                assert main(command) == 0
                np.testing.assert_array_equal(np.load("out.npy"), array + 1)
            else:
                assert main(command) == 1
                assert capsys.readouterr().err.count("--grid ") >= 2
    # The report's: 120,000 numbers in a picture's shape, by a shader that counts in x.
    Path("k.comp").write_text(source(1, *ELEMENTS["float"][:2]))
    np.save("in.npy", np.zeros((300, 400), np.float32))
    assert main(["run", "k.comp", "--in", "b=in.npy", "--out", "b=out.npy"]) == 0
    assert np.all(np.load("out.npy") == 1)
    assert main(["bench", "k.comp", "--in", "b=in.npy", "--json", "--seconds", "0.01"]) == 0
    assert '"groups": [7500, 1, 1]' in " ".join(capsys.readouterr().out.split()).replace("[ ", "[").replace(
        " ]", "]"
    )


def test_x_and_z(mgr):
    source = """
#version 450
layout(local_size_x = 8, local_size_z = 8) in;
layout(binding = 0) buffer A { float a[]; };
layout(push_constant) uniform P { uint width; };
void main() {
    uvec3 i = gl_GlobalInvocationID;
    uint at = i.z * width + i.x;
    if (i.x < width && at < a.length()) a[at] += 1.0;
}"""
    kernel = mgr.kernel(source, name="k")
    np.testing.assert_array_equal(kernel(np.zeros((100, 30), np.float32), width=30), 1)
    with pytest.raises(kp.InvalidArgumentError, match=r"grid=\(\d+, 1, \d+\)"):
        kernel(np.zeros((2, 50, 30), np.float32), width=30)


@pytest.mark.parametrize("shape", [(3, 5), (6,), (1, 2)])
def test_numbers_that_are_no_whole_element_are_refused(mgr, shape):
    source = """
#version 450
layout(local_size_x = 8) in;
layout(binding = 0) buffer A { vec4 a[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < a.length()) a[i] += 1.0; }"""
    kernel = mgr.kernel(source, name="k")
    with pytest.raises(
        kp.InvalidArgumentError, match=r"'a' is vec4\[\].*which the shader cannot reach.*grid="
    ):
        kernel(np.zeros(shape, np.float32))
    if np.prod(shape) >= 4:
        assert kernel(np.zeros(shape, np.float32), grid=(8,)).reshape(-1)[:4].all()


def test_of_a_block_the_array_of_run_time_length_or_the_longest_counts_and_counters_never(mgr):
    head = "#version 450\nlayout(local_size_x = 4) in;\n"
    tail = mgr.kernel(
        head + "layout(binding = 0) buffer A { uint head[3]; uint a[]; };\n"
        "void main() { uint i = gl_GlobalInvocationID.x; if (i < a.length()) a[i] = 1u; }"
    )
    np.testing.assert_array_equal(tail(np.zeros(13, np.uint32)), [0] * 3 + [1] * 10)
    assert tail.bind(mgr.zeros(13, np.uint32)).groups == (3, 1, 1)
    fixed = mgr.kernel(
        head + "layout(binding = 0) buffer A { uint few[8]; uint many[20]; };\n"
        "void main() { uint i = gl_GlobalInvocationID.x; many[i] = few[i % 8u] + i; }"
    )
    assert fixed.bind(mgr.zeros(28, np.uint32)).groups == (5, 1, 1)
    both = mgr.kernel(
        head + "layout(binding = 0) buffer A { uint a[]; };\nlayout(binding = 1) buffer B { uint b[]; };\n"
        "void main() { uint i = gl_GlobalInvocationID.x; if (i == 0u) a[1] = 5u; atomicAdd(a[0], 1u); b[i] = "
        "i; }"
    )
    a, b = np.zeros(2, np.uint32), np.zeros(12, np.uint32)
    both(a, b)
    np.testing.assert_array_equal(a, [12, 5])
    np.testing.assert_array_equal(b, np.arange(12))


def test_a_grid_in_the_order_of_the_axes_is_told_so(mgr):
    twice = mgr.kernel(
        """#version 450
        layout(local_size_x = 8, local_size_y = 8) in;
        layout(push_constant) uniform P { uint rows, columns; };
        layout(binding = 0) readonly buffer X { float x[]; };
        layout(binding = 1) writeonly buffer Y { float y[]; };
        void main() {
            uint c = gl_GlobalInvocationID.x, r = gl_GlobalInvocationID.y;
            if (r < rows && c < columns) y[r * columns + c] = 2 * x[r * columns + c];
        }"""
    )
    x = np.ones((30, 17), np.float32)
    with pytest.raises(kp.InvalidArgumentError, match=r"x, the last axis, first: grid=\(17, 30\)\."):
        twice(x, rows=30, columns=17, grid=x.shape)
    assert (twice(x, rows=30, columns=17, grid=(17, 30)) == 2).all()
