"""Outputs that a call leaves out: made with the shape that follows, or refused with the argument to give."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp

I = "uint i = gl_GlobalInvocationID.x;"  # noqa: E741
XY = "uint x = gl_GlobalInvocationID.x, y = gl_GlobalInvocationID.y;"
SIZE = "layout(push_constant) uniform P { uint w; uint h; };"
A = np.arange(12, dtype=np.float32).reshape(3, 4)


def shader(body, *blocks, local="local_size_x = 64", more=""):
    """GLSL with an array for each of `blocks`: "float a" is read, "out float c" written, "inout ..." both."""
    lines = ["#version 450", f"layout({local}) in;", more]
    for number, block in enumerate(blocks):
        *access, kind, name = block.split()
        how = {"": "readonly", "out": "writeonly", "inout": ""}["".join(access)]
        lines.append(f"layout(binding = {number}) {how} buffer B{number} {{ {kind} {name}[]; }};")
    return "\n".join([*lines, f"void main() {{ {body} }}"])


SQUARE = "local_size_x = 8, local_size_y = 8"
GUARDED = f"{I} if (i < c.length())"
ADD = shader(f"{GUARDED} c[i] = a[i] + b[i];", "float a", "float b", "out float c")


@pytest.fixture
def made(mgr):

    def make(source, **options):
        return mgr.kernel(source, name="k", **options)

    return make


# -- the shape of other arguments ----------------------------------------------------------------------------


@pytest.mark.capability("P47 P48", "results made by the call", "Manager.kernel", "guides/kernels")
@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 3, 4), (1, 1), (0,), (0, 3)])
def test_arrays_give_an_array_of_their_shape(made, shape):
    add = made(ADD)
    a = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    b = np.full(shape, 2, np.float32)
    for _ in range(3):
        c = add(a, b)
        assert type(c) is np.ndarray and c.dtype == np.float32 and c.shape == shape
        np.testing.assert_array_equal(c, a + 2)
    assert add(a, b) is not c


def test_a_tensor_among_the_arguments_gives_a_tensor(made, mgr):
    add = made(ADD)
    t = mgr.tensor(A)
    for a, b in ((t, t), (t, A), (A, t), (t[:2], A[:2])):
        c = add(a, b)
        assert type(c) is kp.Tensor and c.manager is mgr and c.memory_type() is kp.MemoryTypes.device
        np.testing.assert_array_equal(c.read(), np.asarray(a) + np.asarray(b))
    first, second = add(t, t), add(t, t)
    assert first is not second
    second.fill(0).wait()
    np.testing.assert_array_equal(first.read(), 2 * A)  # results of earlier calls stay
    np.testing.assert_array_equal(add(add(t, t), t).read(), 3 * A)


def test_lists_and_given_outputs_as_ever(made):
    add = made(ADD)
    assert add([1, 2, 3], [4, 5, 6]).tolist() == [5, 7, 9]
    c = np.zeros((3, 4), np.float32)
    assert add(A, A, out=c) is c and add(A, A, c) is c
    np.testing.assert_array_equal(c, 2 * A)


def test_names_and_push_constants(made):
    scale = made(
        shader(f"{I} if (i < a.length()) c[i] = f * a[i];", "out float c", "float a").replace(
            "void main", "layout(push_constant) uniform P { float f; };\nvoid main"
        )
    )
    np.testing.assert_array_equal(scale(a=A, f=2), 2 * A)
    np.testing.assert_array_equal(scale(bind={"a": A}, push={"f": 3}), 3 * A)


def test_several_outputs_in_the_order_of_the_bindings(made, mgr):
    both = made(
        shader(f"{GUARDED} {{ c[i] = a[i]; d[i] = 2 * a[i]; }}", "out float c", "float a", "out float d")
    )
    c, d = both(a=A)
    np.testing.assert_array_equal([c, d], [A, 2 * A])
    own = np.zeros((3, 4), np.float32)
    first, second = both(own, A)
    assert first is own and type(second) is np.ndarray
    np.testing.assert_array_equal([first, second], [A, 2 * A])
    first, second = both(a=A, d=own)
    assert second is own
    np.testing.assert_array_equal([first, second], [A, 2 * A])
    kept = mgr.zeros((3, 4))
    second = both(kept, A)  # a tensor that was given is not returned
    assert type(second) is kp.Tensor
    np.testing.assert_array_equal([kept.read(), second.read()], [A, 2 * A])


@pytest.mark.parametrize(
    ("kind", "value", "dtype", "inner"),
    [
        ("float", "a[i]", np.float32, ()),
        ("int", "int(a[i])", np.int32, ()),
        ("uint", "uint(a[i])", np.uint32, ()),
        ("vec2", "vec2(a[i])", np.float32, (2,)),
        ("vec4", "vec4(a[i])", np.float32, (4,)),
        ("ivec4", "ivec4(a[i])", np.int32, (4,)),
        ("mat2", "mat2(a[i], a[i], a[i], a[i])", np.float32, (2, 2)),
    ],
)
def test_types_of_elements(made, kind, value, dtype, inner):
    c = made(shader(f"{GUARDED} c[i] = {value};", "float a", f"out {kind} c"))(A)
    assert c.dtype == dtype and c.shape == (3, 4, *inner)
    np.testing.assert_array_equal(c, np.broadcast_to(A.reshape(3, 4, *[1] * len(inner)), c.shape))


def test_elements_of_vectors_are_counted_without_their_components(made):
    length = made(shader(f"{GUARDED} c[i] = a[i].x + a[i].w;", "vec4 a", "out float c"))
    data = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    np.testing.assert_array_equal(length(data), data[..., 0] + data[..., 3])
    np.testing.assert_array_equal(length(data.reshape(-1)), (data[..., 0] + data[..., 3]).reshape(-1))


def test_records(made):
    source = shader(
        f"{GUARDED} {{ c[i].n = int(a[i]); c[i].f = a[i]; }}",
        "float a",
        "out S c",
        more="struct S { int n; float f; };",
    )
    c = made(source)(A)
    assert c.shape == (3, 4) and c.dtype.names == ("n", "f")
    np.testing.assert_array_equal(c["f"], A)
    np.testing.assert_array_equal(c["n"], A.astype(int))


def test_what_is_not_written_is_zero(made, mgr):
    for body in ("if (a[i] > 5) c[i] = a[i];", "if (a[i] > 5) c[i] = a[i]; else if (a[i] > 3) c[i] = 0;"):
        some = made(shader(f"{I} if (i < a.length()) {{ {body} }}", "float a", "out float c"))
        for _ in range(2):
            np.testing.assert_array_equal(some(np.full((3, 4), 9, np.float32)), np.full((3, 4), 9))
            np.testing.assert_array_equal(some(A), np.where(A > 5, A, 0))
        np.testing.assert_array_equal(some(mgr.tensor(A)).read(), np.where(A > 5, A, 0))


def test_a_larger_grid_is_fine_with_a_bounds_check(made):
    np.testing.assert_array_equal(made(ADD)(A, A, grid=100), 2 * A)
    plain = made(shader(f"{I} c[i] = a[i];", "float a", "out float c"))
    np.testing.assert_array_equal(plain(A), A)
    np.testing.assert_array_equal(plain(A, grid=12), A)


def test_reads_beside_the_element(made):
    clamped = made(
        shader(f"{GUARDED} c[i] = a[min(i + 1, a.length() - 1)] - a[i];", "float a", "out float c")
    )
    flat = A.reshape(-1)
    np.testing.assert_array_equal(clamped(flat), np.append(flat[1:], flat[-1]) - flat)


# -- the shape of the grid -----------------------------------------------------------------------------------


def test_one_element_for_each_invocation(made):
    ramp = made(shader(f"{GUARDED} c[i] = float(i);", "out float c"))
    assert ramp(grid=10).tolist() == list(range(10))
    assert ramp(grid=(10, 1, 1)).shape == (10,) and ramp(groups=2).shape == (128,)
    assert ramp(grid=0).shape == (0,)


def test_rows_and_layers_of_the_grid(made):
    rows = made(
        shader(
            f"{XY} if (x < w && y < h) c[y * w + x] = float(10 * y + x);",
            "out float c",
            local=SQUARE,
            more=SIZE,
        )
    )
    wanted = 10 * np.arange(3)[:, None] + np.arange(4)
    np.testing.assert_array_equal(rows(grid=(4, 3), w=4, h=3), wanted)
    np.testing.assert_array_equal(rows(grid=(1, 3), w=1, h=3), wanted[:, :1])
    layers = made(
        shader(
            "uvec3 p = gl_GlobalInvocationID; c[(p.z * 3 + p.y) * 4 + p.x] = p.z * 100 + p.y * 10 + p.x;",
            "out uint c",
            local="local_size_x = 1",
        )
    )
    found = layers(grid=(4, 3, 2))
    assert found.shape == (2, 3, 4) and found[1, 2, 3] == 123
    np.testing.assert_array_equal(found, 100 * np.arange(2)[:, None, None] + wanted)


def test_groups_that_count_their_own_invocations(made):
    counted = made(shader("uint i = gl_WorkGroupID.x * 64 + gl_LocalInvocationID.x; c[i] = i;", "out uint c"))
    assert counted(grid=128).tolist() == list(range(128))


def test_a_product_of_matrices(made):
    product = made(
        shader(
            f"{XY} if (x >= w || y >= h) return; float s = 0; for (uint k = 0; k < w; ++k) "
            "s += a[y * w + k] * b[k * w + x]; c[y * w + x] = s;",
            "float a",
            "float b",
            "out float c",
            local=SQUARE,
            more=SIZE,
        )
    )
    a, b = A[:, :3], np.arange(9, dtype=np.float32).reshape(3, 3)
    np.testing.assert_array_equal(product(a.copy(), b, w=3, h=3, grid=(3, 3)), a @ b)


# -- images and blocks of fixed size -------------------------------------------------------------------------


def test_images(made, mgr):
    draw = made(
        "#version 450\nlayout(local_size_x = 8, local_size_y = 8) in;\n"
        "layout(binding = 0, rgba8) writeonly uniform image2D o;\n"
        "void main() { ivec2 p = ivec2(gl_GlobalInvocationID.xy);"
        " imageStore(o, p, vec4(p.x / 255.0, p.y / 255.0, 0, 1)); }"
    )
    image = draw(grid=(5, 3))
    assert type(image) is kp.Image and (image.width, image.height, image.format) == (5, 3, "rgba8")
    wanted = np.zeros((3, 5, 4), np.uint8)
    wanted[..., 0], wanted[..., 1], wanted[..., 3] = np.arange(5), np.arange(3)[:, None], 255
    np.testing.assert_array_equal(image.read(), wanted)
    double = made(
        "#version 450\nlayout(local_size_x = 8, local_size_y = 8) in;\n"
        "layout(binding = 0, r32f) readonly uniform image2D s;\n"
        "layout(binding = 1, r32f) writeonly uniform image2D o;\n"
        "void main() { ivec2 p = ivec2(gl_GlobalInvocationID.xy); ivec2 n = imageSize(o);"
        " if (p.x < n.x && p.y < n.y) imageStore(o, p, 2 * imageLoad(s, p)); }"
    )
    image = double(mgr.image(A))
    assert image.shape == (3, 4)
    np.testing.assert_array_equal(image.read(), 2 * A)


def test_an_image_of_no_declared_format_is_given(made):
    kernel = made(
        "#version 450\nlayout(local_size_x = 8, local_size_y = 8) in;\n"
        "layout(binding = 0) writeonly uniform image2D o;\n"
        "void main() { imageStore(o, ivec2(gl_GlobalInvocationID.xy), vec4(1)); }"
    )
    with pytest.raises(kp.InvalidArgumentError, match=r"does not declare its format.*give an Image: out="):
        kernel(grid=(4, 4))


def test_blocks_have_the_size_that_the_shader_declares(made):
    kernel = made(
        "#version 450\nlayout(local_size_x = 1) in;\n"
        "layout(binding = 0) writeonly buffer F { float f[5]; };\n"
        "layout(binding = 1) writeonly buffer G { uint g; };\n"
        "layout(binding = 2) writeonly buffer V { vec4 v[2]; };\n"
        "void main() { for (int i = 0; i < 5; ++i) f[i] = i; g = 7; v[1] = vec4(1); }"
    )
    f, g, v = kernel(grid=1)
    assert f.tolist() == [0, 1, 2, 3, 4] and g.shape == () and g == 7 and g.dtype == np.uint32
    assert v.tolist() == [[0] * 4, [1] * 4]


# -- refusals ------------------------------------------------------------------------------------------------

AC = ("float a", "out float c")
REFUSED = {
    "no size at all": (shader(f"{GUARDED} c[i] = i;", "out float c"), (), {}, "give grid="),
    "arguments of different shapes": (ADD, (A, A.reshape(-1)), {}, "different shapes"),
    "arguments of different sizes": (ADD, (A, A[:2]), {}, "different shapes"),
    "an axis that is not counted": (
        shader(f"{GUARDED} c[i] = i;", "out float c"), (), {"grid": (4, 2)}, "does not count all axes",
    ),
    "a grid beyond the arguments": (
        shader(f"{I} c[i] = a[i];", *AC), (A,), {"grid": 64}, "write 64 elements",
    ),
    "a grid below the arguments": (ADD, (A, A), {"grid": 6}, "write 6 elements"),
    "another width": (
        shader(f"{XY} c[y * w + x] = 1;", "out float c", more=SIZE), (), {"grid": (4, 3), "w": 5, "h": 3},
        "row by row",
    ),
    "columns": (
        shader(f"{XY} c[x * h + y] = 1;", "out float c", more=SIZE), (), {"grid": (4, 3), "w": 4, "h": 3},
        "row by row",
    ),
    "a check that stops early": (
        shader(f"{XY} if (y < h) c[y * w + x] = 1;", "out float c", more=SIZE),
        (),
        {"grid": (4, 3), "w": 4, "h": 2},
        "stops before the 3 invocations in y end",
    ),
    "no check of the last groups": (
        shader(f"{XY} c[y * w + x] = x;", "out float c", local=SQUARE, more=SIZE),
        (),
        {"grid": (4, 3), "w": 4, "h": 3},
        "invocations beyond its x write elements of others: check x",
    ),
    "no check of the last groups beside an argument": (
        shader(f"{XY} if (y < h) c[y * w + x] = a[y * w + x] + x;", *AC, local=SQUARE, more=SIZE),
        (A,),
        {"w": 4, "h": 3},
        "invocations beyond its x",
    ),
    "a check of the sum": (
        shader(f"{XY} if (y * w + x < c.length()) c[y * w + x] = x;", "out float c", local=SQUARE, more=SIZE),
        (),
        {"grid": (4, 3), "w": 4, "h": 3},
        "invocations beyond its x",
    ),
    "rows beside a grid of one": (
        shader(f"{XY} if (x < w && y < h) c[y * w + x] = 1;", "out float c", local=SQUARE, more=SIZE),
        (),
        {"grid": 4, "w": 2, "h": 3},
        "stops before the 4 invocations in x end",
    ),
    "two elements each": (
        shader(f"{I} c[2 * i] = 1; c[2 * i + 1] = 2;", "out float c"),
        (),
        {"grid": 4},
        "row by row",
    ),
    "an element beside": (shader(f"{I} c[i + 1] = 1;", "out float c"), (), {"grid": 4}, "row by row"),
    "one for each group": (
        shader("if (gl_LocalInvocationID.x == 0) c[gl_WorkGroupID.x] = a[gl_GlobalInvocationID.x];", *AC),
        (A,),
        {"groups": 1},
        "for each workgroup",
    ),
    "differences beyond the end": (
        shader(f"{GUARDED} c[i] = a[i + 1] - a[i];", *AC), (A,), {}, "reads 'a' beyond its end",
    ),
    "one difference less": (
        shader(f"{I} if (i + 1 < a.length()) c[i] = a[i + 1] - a[i];", *AC),
        (A,),
        {},
        "write 11 elements, but 12",
    ),
    "a limit from the caller": (
        shader(f"{I} if (i < w) c[i] = a[i];", *AC, more=SIZE), (A,), {"w": 7, "h": 0},
        "write 7 elements, but 12",
    ),
    "a loop": (
        shader(f"{I} for (uint j = i; j < a.length(); j += 64) c[j] = a[j];", *AC),
        (A,),
        {},
        "not followed",
    ),
    "a place from memory": (
        shader(f"{I} if (i < a.length()) c[p[i]] = a[i];", *AC, "uint p"),
        (A,),
        {"p": np.zeros((3, 4), np.uint32)},
        "not followed",
    ),
    "a constant place besides": (
        shader(f"{I} c[i] = a[i]; if (i == 0) c[20] = 1;", *AC), (A,), {}, "not followed",
    ),
    "a place in a loop besides": (
        shader(f"{I} c[i] = a[i]; for (uint k = 0; k < w; ++k) c[k] = 1;", *AC, more=SIZE),
        (A,),
        {"w": 3, "h": 0},
        "not followed",
    ),
    "several members": (
        "#version 450\nlayout(local_size_x = 64) in;\n"
        "layout(binding = 0) writeonly buffer C { uint n; float c[]; };\n"
        f"void main() {{ {I} c[i] = 1; n = 3; }}",
        (),
        {"grid": 4},
        "no single dtype",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_nothing_is_guessed(made, name):
    source, args, keywords, text = REFUSED[name]
    with pytest.raises(
        kp.InvalidArgumentError, match=r"was left out, and its shape does not follow.*(out|c)="
    ) as raised:
        made(source)(*args, **keywords)
    assert text in str(raised.value)


def test_the_refused_calls_work_with_the_output(made):
    source, args, keywords, _ = REFUSED["one difference less"]
    c = made(source)(*args, out=np.zeros(11, np.float32), grid=11, **keywords)
    np.testing.assert_array_equal(c, np.diff(A.reshape(-1)))


def test_only_what_is_only_written_is_left_out(made):
    add = made(ADD)
    with pytest.raises(kp.InvalidArgumentError, match="missing argument 'b'"):
        add(A)
    inout = made(shader(f"{GUARDED} c[i] += 1;", "inout float c"))
    with pytest.raises(kp.InvalidArgumentError, match="missing argument 'c'"):
        inout(grid=4)
    atomic = made(shader(f"{I} atomicAdd(c[0], 1);", "inout uint c"))
    with pytest.raises(kp.InvalidArgumentError, match="missing argument 'c'"):
        atomic(grid=4)


def test_recordings_take_outputs_that_are_given(made, mgr):
    add, t = made(ADD), mgr.tensor(A)
    with pytest.raises(kp.InvalidArgumentError, match="missing argument 'c'"):
        add.bind(t, t)


@pytest.mark.parametrize("earlier", [0, 1], ids=["first submit", "after a call"])
def test_submitted_work_makes_its_outputs(made, mgr, earlier):
    add, gate = made(ADD), mgr.semaphore()
    for _ in range(earlier):
        add(mgr.tensor(A), mgr.tensor(A))
    tensors = [mgr.tensor(A * number) for number in range(5)]
    fences = [add.submit(each, each, wait=() if number else (gate, 1)) for number, each in enumerate(tensors)]
    assert not fences[0].done()
    gate.signal(1)
    for number, fence in enumerate(fences):
        (c,) = fence.results
        assert type(c) is kp.Tensor and c.shape == A.shape
        np.testing.assert_array_equal(c.read(), 2 * A * number)
    assert add.submit(tensors[0], tensors[1], c).results == ()
    with pytest.raises(kp.ArgumentTypeError, match="'a' is an ndarray"):
        add.submit(A, A)


def test_submitted_outputs_of_the_grid_are_tensors(made, mgr):
    ramp = made(shader(f"{GUARDED} c[i] = float(i);", "out float c"))
    gate = mgr.semaphore()
    for number in range(1, 4):
        assert ramp.submit(grid=number).results[0].tolist() == list(range(number))
        assert type(ramp(grid=number)) is np.ndarray  # what a submission was told is not a call's
        gate.signal(2 * number - 1)
        empty = ramp.submit(grid=0, wait=(gate, 2 * number - 1), signal=(gate, 2 * number))
        gate.wait(2 * number, timeout=20)
        assert empty.wait().results[0].shape == (0,)


def test_specialized_kernels_have_rules_of_their_own(made):
    kernel = made(
        shader(
            f"{I} c[N * i] = a[N * i];",
            "float a",
            "out float c",
            more="layout(constant_id = 0) const uint N = 1;",
        )
    )
    np.testing.assert_array_equal(kernel(A), A)
    with pytest.raises(kp.InvalidArgumentError):
        kernel.specialize(N=2)(A)


@pytest.mark.parametrize("call", [{}, {"grid": 100}])
def test_an_element_for_each_workgroup_is_given(made, call):
    body = f"{I} if (gl_LocalInvocationIndex == 0) s[gl_WorkGroupID.x] = a[i];"
    partial = made(shader(body, "float a", "out float s"))
    x = np.arange(128, dtype=np.float32)
    with pytest.raises(kp.InvalidArgumentError, match=r"for each workgroup.* To choose it, give an array"):
        partial(x, **call)
    np.testing.assert_array_equal(partial(x, np.zeros(2, np.float32), groups=2), [0, 64])
