"""Invocations that fill up the last workgroups and write elements of others are refused. Each kernel of a
table runs against NumPy, with and without a check of its bounds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import kompute_py as kp

HEAD = """#version 450
layout(local_size_x = 16, local_size_y = 16) in;
layout(push_constant) uniform P { uint w; uint h; };
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) buffer O { float o[]; };
shared float tile[256];
float twice(float v) { return v < 0 ? -2 * v : 2 * v; }
float row_sum(uint y) { float s = 0; for (uint k = 0; k < w; ++k) s += a[y * w + k]; return s; }
uint at(uint x, uint y) { return y * w + x; }
"""
XY = "uint x = gl_GlobalInvocationID.x, y = gl_GlobalInvocationID.y;"

# Bodies that write a row of elements for each y, and their results from (a, o, x, y, i, w), all in two axes.
BODIES = {
    "one index": ("uint i = y * w + x; o[i] = a[i] * 2;", lambda a, o, x, y, i, w: a * 2),
    "a function for the index": ("o[at(x, y)] = twice(a[at(x, y)]);", lambda a, o, x, y, i, w: a * 2),
    "the number of the group": (
        "uvec2 p = gl_WorkGroupID.xy * 16 + gl_LocalInvocationID.xy; o[p.y * w + p.x] = a[y * w + x] + 1;",
        lambda a, o, x, y, i, w: a + 1,
    ),
    "signed numbers": (
        "ivec2 p = ivec2(gl_GlobalInvocationID.xy); int i = p.y * int(w) + p.x; o[i] = sqrt(a[i]);",
        lambda a, o, x, y, i, w: np.sqrt(a),
    ),
    "the column": ("o[y * w + x] = float(x);", lambda a, o, x, y, i, w: x),
    "in place": ("o[y * w + x] *= 2;", lambda a, o, x, y, i, w: o * 2),
    "a loop over the row": (
        "o[y * w + x] = row_sum(y);",
        lambda a, o, x, y, i, w: 0 * a + a.sum(1, keepdims=True),
    ),
    "a loop up to the column": (
        "float v = 0; for (uint k = 0; k <= x; ++k) v += 1; o[y * w + x] = v;",
        lambda a, o, x, y, i, w: x + 1,
    ),
    "a loop left at the column": (
        "float v = 0; for (uint k = 0; k < w; ++k) { if (k == x) break; v += a[k]; } o[y * w + x] = v;",
        lambda a, o, x, y, i, w: np.concatenate([[0], np.cumsum(a[0])[:-1]])[x],
    ),
    "a check of the sum": (
        "uint i = y * w + x; if (i < o.length()) o[i] = a[i];",
        lambda a, o, x, y, i, w: a,
    ),
    "a check of the rows": ("if (y < h) o[y * w + x] = a[y * w + x];", lambda a, o, x, y, i, w: a),
    "written at some columns": (
        "uint i = y * w + x; if ((x & 1) == 0) o[i] = a[i];",
        lambda a, o, x, y, i, w: np.where(x % 2 == 0, a, o),
    ),
    "from the end": ("o[(h - 1 - y) * w + x] = float(x);", lambda a, o, x, y, i, w: x),
    "shared memory": (
        "uint l = gl_LocalInvocationIndex; tile[l] = float(x); barrier(); o[y * w + x] = tile[l];",
        lambda a, o, x, y, i, w: x,
    ),
    "a switch": (
        "uint i = y * w + x; float v; switch (x % 3u) { case 0: v = 5; break; case 1: v = a[i]; break;"
        " default: v = -a[i]; } o[i] = v;",
        lambda a, o, x, y, i, w: np.choose(x % 3, [0 * a + 5, a, -a]),
    ),
}

# Checks that keep out the invocations beyond the grid, in the forms that shaders use.
CHECKS = {
    "two returns": "if (x >= w) return; if (y >= h) return; {}",
    "or": "if (x >= w || y >= h) return; {}",
    "and": "if (x < w && y < h) {{ {} }}",
    "not": "if (!(x < w && y < h)) return; {}",
    "nested": "if (x < w) {{ if (y < h) {{ {} }} }}",
    "vectors": "if (any(greaterThanEqual(gl_GlobalInvocationID.xy, uvec2(w, h)))) return; {}",
    "all": "if (all(lessThan(uvec2(x, y), uvec2(w, h)))) {{ {} }}",
    "signed vectors": "ivec2 p = ivec2(x, y), e = ivec2(w, h); if (any(greaterThanEqual(p, e))) return; {}",
    "a variable": "bool inside = x < w && y < h; if (!inside) return; {}",
    "with another condition": "if (x < w && y < h && a[y * w + x] > -1) {{ {} }}",
    "only the columns": "if (x > w - 1) return; {}",
    "float": "if (float(x) >= float(w) || y >= h) return; {}",
    "the length": "if (x >= o.length() / h || y >= h) return; {}",
    "a loop": "for (uint once = 0; once < 1; ++once) {{ if (x >= w || y >= h) break; {} }}",
}


@pytest.fixture
def made(mgr):

    def make(body, head=HEAD, **options):
        return mgr.kernel(f"{head}void main() {{ {XY} {body} }}", name="k", **options)

    return make


def arrays(w, h):
    a = ((np.arange(w * h) * 7) % 97).astype(np.float32).reshape(h, w)
    o = ((np.arange(w * h) * 5) % 89).astype(np.float32).reshape(h, w)
    y, x = np.mgrid[:h, :w]
    return a, o, x, y, y * w + x


def agrees(kernel, result, w, h, **grid):
    a, o, x, y, i = arrays(w, h)
    expected = np.broadcast_to(result(a, o.copy(), x, y, i, w), (h, w)).astype(np.float32)
    kernel(a, o, w=w, h=h, **grid)
    np.testing.assert_allclose(o, expected, rtol=1e-6)


@pytest.mark.parametrize("name", BODIES)
def test_rows_are_refused_until_the_columns_are_checked(made, name):
    body, result = BODIES[name]
    kernel = made(body)
    a, o, *_ = arrays(20, 10)
    before = o.copy()
    for grid in ({}, {"grid": (20, 10)}):
        with pytest.raises(
            kp.InvalidArgumentError, match=r"x = 20 to 31 write elements of 'o'.*if .x >= 20. return"
        ):
            kernel(a, o, w=20, h=10, **grid)
    np.testing.assert_array_equal(o, before)
    agrees(kernel, result, 32, 10)  # no invocations beyond the columns
    check = "if (x >= w || y >= h) return;"
    if "barrier" in body:
        body = body.replace("o[y * w + x] =", f"{check} o[y * w + x] =")
        check = ""
    kernel = made(f"{check} {body}")
    for w, h in ((20, 10), (33, 17), (1, 40)):
        agrees(kernel, result, w, h)


@pytest.mark.parametrize("form", CHECKS)
@pytest.mark.parametrize("name", ["the column", "in place", "a loop up to the column", "a switch"])
def test_checks_in_all_forms_are_known(made, form, name):
    body, result = BODIES[name]
    kernel = made(CHECKS[form].format(body))
    agrees(kernel, result, 20, 10)
    agrees(kernel, result, 33, 17)


# -- other ways to say the width, other indices and outputs -------------------------------------------------

TWO = """#version 450
layout(local_size_x = 16, local_size_y = 16) in;
{}
layout(binding = 0) {} o[]; }};
"""
WIDTHS = {
    "a literal": ("const uint w = 20, h = 10;", {}),
    "push constants": ("layout(push_constant) uniform P { uint w; uint h; };", {"w": 20, "h": 10}),
    "float push constants": (
        "layout(push_constant) uniform P { float fw; float fh; };\n#define w uint(fw)\n#define h uint(fh)",
        {"fw": 20, "fh": 10},
    ),
    "specialization constants": (
        "layout(constant_id = 0) const uint w = 7; layout(constant_id = 1) const uint h = 3;",
        {},
    ),
    "the length of an array": (
        "layout(binding = 1) readonly buffer R { float row[]; };\n#define w row.length()\n"
        "#define h (o.length() / row.length())",
        {"row": np.zeros(20, np.float32)},
    ),
    "a uniform buffer": (
        "layout(binding = 1) uniform U { uint w; uint h; };",
        {"U": np.array([20, 10], np.uint32)},
    ),
    "a storage buffer": (
        "layout(binding = 1) readonly buffer U { uint size[2]; };\n#define w size[0]\n#define h size[1]",
        {"size": np.array([20, 10], np.uint32)},
    ),
}


@pytest.mark.parametrize("kind", WIDTHS)
def test_the_width_may_be_given_in_any_way(made, kind):
    more, given = WIDTHS[kind]
    head = TWO.format(more, "buffer O { float")

    def sized(body):
        kernel = made(body, head)
        return kernel.specialize(w=20, h=10) if kernel.spec_constants else kernel

    out = np.zeros((10, 20), np.float32)
    with pytest.raises(kp.InvalidArgumentError, match=r"x = 20 to 31 write elements of 'o'"):
        sized("o[y * w + x] = float(x);")(out, **given)
    sized("if (x < w) o[y * w + x] = float(x);")(out, **given)
    np.testing.assert_array_equal(out, np.mgrid[:10, :20][1])


def test_the_last_axis_may_be_counted_in_y(made):
    out = np.zeros((20, 20), np.float32)
    body = "{} o[x * h + y] = float({});"
    _, x = np.mgrid[:20, :20]
    with pytest.raises(kp.InvalidArgumentError, match=r"y = 20 to 31 .* Check y"):
        made(body.format("", "y"))(np.zeros(1, np.float32), out, w=20, h=20)
    made(body.format("if (y >= h) return;", "y"))(np.zeros(1, np.float32), out, w=20, h=20)
    np.testing.assert_array_equal(out, x)


def test_three_axes(made):
    head = TWO.format(
        "layout(push_constant) uniform P { uint w; uint h; uint d; };", "buffer O { float"
    ).replace("16, local_size_y = 16", "4, local_size_y = 4, local_size_z = 4")
    body = "uint z = gl_GlobalInvocationID.z; {} o[(z * h + y) * w + x] = float({});"
    w, h, d = 6, 5, 3
    out = np.zeros((d, h, w), np.float32)
    z, y, x = np.mgrid[:d, :h, :w]
    for value, check, axis in (
        ("x", "", "x"),
        ("y", "", "x"),
        ("x", "if (x >= w) return;", "y"),
        ("z", "if (x >= w || z >= d) return;", "y"),
    ):
        with pytest.raises(kp.InvalidArgumentError, match=f"Check {axis}"):
            made(body.format(check, value), head)(out, w=w, h=h, d=d)
    for value, expected in (("x", x), ("z + 10 * y", z + 10 * y)):
        made(body.format("if (x >= w || y >= h) return;", value), head)(out, w=w, h=h, d=d)
        np.testing.assert_array_equal(out, expected)
    made(body.format("", "x"), head)(out[:, :4, :4].copy(), w=4, h=4, d=d)  # all groups are full in x and y


def test_longer_rows_hold_what_is_beyond_the_grid(made):
    """Elements of no invocation of the grid may be written: a grid is rounded up."""
    kernel = made("o[y * w + x] = float(x);")
    out = np.zeros((10, 32), np.float32)
    kernel(np.zeros(1, np.float32), out, w=32, h=10, grid=(20, 10))
    np.testing.assert_array_equal(out[:, :20], np.mgrid[:10, :20][1])
    with pytest.raises(kp.InvalidArgumentError, match=r"x = 20 to 31"):
        kernel(np.zeros(1, np.float32), out[:, :31].copy(), w=31, h=10, grid=(20, 10))


def test_groups_are_the_callers_word(made):
    kernel = made("o[y * w + x] = float(x);")
    out = np.zeros((16, 20), np.float32)
    kernel(np.zeros(1, np.float32), out, w=20, h=16, groups=(1, 1))
    np.testing.assert_array_equal(out[:15, :16], np.mgrid[:15, :16][1])


def test_a_shader_that_exchanges_elements_is_told_of_groups(mgr):
    kernel = mgr.kernel("""#version 450
layout(local_size_x = 16, local_size_y = 16) in;
layout(push_constant) uniform P { uint rows; uint columns; };
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) writeonly buffer O { float o[]; };
shared float tile[16][17];
void main() {
    uvec2 first = gl_WorkGroupID.xy * 16, l = gl_LocalInvocationID.xy, from = first + l, to = first.yx + l;
    if (from.x < columns && from.y < rows) tile[l.y][l.x] = a[from.y * columns + from.x];
    barrier();
    if (to.x < rows && to.y < columns) o[to.y * rows + to.x] = tile[l.x][l.y];
}""")
    data, out = np.arange(3500, dtype=np.float32).reshape(50, 70), np.zeros((70, 50), np.float32)
    with pytest.raises(kp.InvalidArgumentError, match=r"give groups=\(5, 4, 1\) instead of a grid"):
        kernel(data, out, rows=50, columns=70, grid=(70, 50))
    kernel(data, out, rows=50, columns=70, groups=(5, 4, 1))
    np.testing.assert_array_equal(out, data.T)


def test_several_elements_and_members(made):
    head = TWO.format(
        "layout(push_constant) uniform P { uint w; uint h; }; struct S { vec2 p; float m[2]; };",
        "buffer O { S",
    )
    dtype = np.dtype([("p", np.float32, 2), ("m", np.float32, 2)])
    out = np.zeros((10, 20), dtype)
    body = "uint i = y * w + x; {} {{ o[i].p = vec2(i, 1); o[i].m[1] = 3; }}"
    with pytest.raises(kp.InvalidArgumentError, match=r"x = 20 to 31"):
        made(body.format(""), head)(out, w=20, h=10)
    made(body.format("if (x < w)"), head)(out, w=20, h=10)

    channels = TWO.format("layout(push_constant) uniform P { uint w; uint h; };", "buffer O { float")
    out = np.zeros((10, 20, 3), np.float32)
    loop = "for (uint c = 0; c < 3; ++c) o[(y * w + x) * 3 + c] = float(x + c);"
    with pytest.raises(kp.InvalidArgumentError, match=r"x = 20 to 31"):
        made(loop, channels)(out, w=20, h=10, grid=(20, 10))
    made(f"if (x < w) {{ {loop} }}", channels)(out, w=20, h=10, grid=(20, 10))
    np.testing.assert_array_equal(out, np.broadcast_to(np.arange(20)[:, None] + np.arange(3), out.shape))


def test_every_output_is_looked_at(made):
    head = TWO.format(
        "layout(push_constant) uniform P { uint w; uint h; }; layout(binding = 1) buffer Q { float q[]; };",
        "buffer O { float",
    )
    out, other = np.zeros((10, 20), np.float32), np.zeros((10, 20), np.float32)
    with pytest.raises(kp.InvalidArgumentError, match="elements of 'q'"):
        made("if (x < w) o[y * w + x] = 1; q[y * w + x] = float(x);", head)(out, other, w=20, h=10)


def test_atomics(made):
    head = TWO.format("layout(push_constant) uniform P { uint w; uint h; };", "buffer O { uint")
    out = np.zeros((10, 20), np.uint32)
    with pytest.raises(kp.InvalidArgumentError, match=r"x = 20 to 31"):
        made("atomicAdd(o[y * w + x], 1);", head)(out, w=20, h=10, grid=(20, 10))
    made("if (x < w) atomicAdd(o[y * w + x], 1);", head)(out, w=20, h=10, grid=(20, 10))
    assert np.all(out == 1)


def test_indices_that_are_not_followed_need_a_check_of_each_axis(made):
    out = np.zeros((10, 20), np.float32)
    body = "o[(y * w + x) ^ 0x100u] = 1;"
    for check in ("", "if (y < h)"):
        with pytest.raises(kp.InvalidArgumentError, match=r"x = 20 to 31"):
            made(f"{check} {body}")(np.zeros(1, np.float32), out, w=20, h=10, grid=(20, 10))
    made(f"if (x < w && y < h) {body}")(np.zeros(1, np.float32), out, w=20, h=10, grid=(20, 10))


@pytest.mark.parametrize("bound", ["a[y]", "uint(a[0]) + y", "x + 1"])
def test_a_comparison_with_what_differs_between_invocations_is_no_check(made, bound):
    body = f"if (x < uint({bound})) o[y * w + x] = float(x);"
    with pytest.raises(kp.InvalidArgumentError, match=r"x = 20 to 31"):
        made(body)(np.full(16, 40, np.float32), np.zeros((10, 20), np.float32), w=20, h=10)


def test_images_have_an_end_on_each_axis(made, mgr):
    head = """#version 450
    layout(local_size_x = 16, local_size_y = 16) in;
    layout(binding = 0, r32f) uniform image2D img;
    """
    image = mgr.image_t(np.zeros((10, 20), np.float32))
    made("imageStore(img, ivec2(x, y), vec4(x));", head)(image)
    np.testing.assert_array_equal(np.asarray(image), np.mgrid[:10, :20][1])


def test_left_out_outputs_follow_the_same_rule(made):
    head = HEAD.replace("buffer O", "writeonly buffer O")
    a = arrays(20, 10)[0]
    result = made("if (x < w) o[y * w + x] = a[y * w + x] * 2;", head)(a, w=20, h=10)
    np.testing.assert_array_equal(result, a * 2)
    with pytest.raises(kp.InvalidArgumentError, match=r"left out.*check x in the shader"):
        made("if (y < h) o[y * w + x] = a[y * w + x] * x;", head)(a, w=20, h=10)


def test_recordings_and_changed_push_constants_are_checked(made, mgr):
    kernel = made("o[y * w + x] = float(x);")
    a, o = mgr.zeros(1, np.float32), mgr.zeros((16, 32), np.float32)
    operation = kernel.bind(a, o, w=32, h=16, grid=(20, 16))
    with pytest.raises(kp.InvalidArgumentError, match=r"x = 20 to 31"):
        operation.set(w=20)
    assert operation.push_constants["w"] == 32
    with pytest.raises(kp.InvalidArgumentError, match=r"x = 20 to 31"):
        kernel.bind(a, o, w=20, h=16, grid=(20, 16))
    with pytest.raises(kp.InvalidArgumentError, match=r"x = 20 to 31"):
        mgr.sequence().record(kernel.bind(a, o, w=20, h=16, grid=(20, 16)))
    operation.set(w=20, grid=(32, 16))


def test_prepared_calls_with_other_push_constants_are_checked(made, mgr):
    kernel = made("if (x >= h) return; o[y * w + x] = float(x);")
    for a, o in (
        (np.zeros(1, np.float32), np.zeros((10, 20), np.float32)),
        (mgr.zeros(1, np.float32), mgr.zeros((10, 20), np.float32)),
    ):
        for _ in range(3):
            kernel(a, o, w=20, h=20)
        for _ in range(2):
            with pytest.raises(kp.InvalidArgumentError, match=r"x = 20 to 31"):
                kernel(a, o, w=20, h=40)
        kernel(a, o, w=20, h=19)
        np.testing.assert_array_equal(np.asarray(o), np.mgrid[:10, :20][1])


def test_all_checks_of_a_product_of_sizes(made):
    kernel = made("if (x >= w) return; uint i = y * w + x; o[i] = a[i] + float(x);")
    for w, h in itertools.product((1, 15, 16, 17, 31), (1, 2, 16, 19)):
        a, o, x, *_ = arrays(w, h)
        kernel(a, o, w=w, h=h)
        np.testing.assert_array_equal(o, a + x)
