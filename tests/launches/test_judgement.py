"""Which default grids run, and are right, and which are refused with the line to add."""

from __future__ import annotations

import re

import numpy as np
import pytest

import kompute_py as kp

from ..support.languages import needs_slang

H, W = 5, 13  # not multiples of the groups
FLAT = """#version 450
layout(local_size_x = 4) in;
layout(binding = 0) buffer S { uint s[]; };
layout(binding = 1) buffer B { float b[]; };
layout(binding = 2) readonly buffer A { float a[]; };
layout(binding = 3) readonly buffer I { uint index[]; };
"""
ROWS = """#version 450
layout(local_size_x = 4, local_size_y = 2) in;
layout(binding = 0) buffer B { float b[]; };
layout(binding = 1) readonly buffer A { float a[]; };
layout(push_constant) uniform P { float rows, columns; uint h, w; };
layout(constant_id = 0) const uint WIDTH = 13;
"""
DOWN = "uint r = gl_GlobalInvocationID.x, c = gl_GlobalInvocationID.y; "  # x counts the rows
ALONG = "uint r = gl_GlobalInvocationID.y, c = gl_GlobalInvocationID.x; "
TILES = (
    "uint r = gl_WorkGroupID.x * 4 + gl_LocalInvocationID.x, "
    "c = gl_WorkGroupID.y * 2 + gl_LocalInvocationID.y; "
)
ADD = "b[r * w + c] = a[r * w + c] + 1;"
BODIES = {
    "return": "if (r >= h || c >= w) return; " + ADD,
    "condition": "if (r < h && c < w) " + ADD,
    "no check": ADD,
    "constants": f"if (r < {H} && c < WIDTH) b[r * WIDTH + c] = a[r * WIDTH + c] + 1;",
    "floats": "if (r >= uint(rows) || c >= uint(columns)) return; "
    "b[r * uint(columns) + c] = a[r * uint(columns) + c] + 1;",
}


def choices(error):
    return [tuple(map(int, each.split(","))) for each in re.findall(r"grid=\(([\d, ]*\d),?\)", str(error))]


def sizes(h, w):
    return {"rows": h, "columns": w, "h": h, "w": w}


def called(kernel, shape, transposed=False, **options):
    a = np.arange(H * W, dtype=np.float32).reshape(shape)
    b = np.zeros(shape[::-1] if transposed else shape, np.float32)
    kernel(b, a, **sizes(*shape), **options)
    return b, (a.T if transposed else a + 1)


@pytest.mark.parametrize("count", [DOWN, TILES], ids=["global", "tiles"])
@pytest.mark.parametrize("body", BODIES)
def test_x_that_counts_rows_is_refused_and_the_first_choice_is_right(mgr, count, body):
    kernel = mgr.kernel(ROWS + "void main() {" + count + BODIES[body] + "}")
    with pytest.raises(kp.InvalidArgumentError, match=r"another order.*as the code counts") as caught:
        called(kernel, (H, W))
    assert choices(caught.value) == [(H, W), (W, H)]
    if body != "no check":
        b, right = called(kernel, (H, W), grid=choices(caught.value)[0])
        np.testing.assert_array_equal(b, right)
    with pytest.raises(kp.InvalidArgumentError, match="another order"):
        kernel.bind(mgr.zeros((H, W)), mgr.zeros((H, W)), **sizes(H, W))


@pytest.mark.parametrize("body", [body for body in BODIES if body != "no check"])
def test_x_that_counts_columns_runs_and_is_right(mgr, body):
    b, right = called(mgr.kernel(ROWS + "void main() {" + ALONG + BODIES[body] + "}"), (H, W))
    np.testing.assert_array_equal(b, right)


def test_a_transposition_is_refused_unless_it_counts_what_it_writes(mgr):
    read = mgr.kernel(ROWS + "void main() {" + ALONG + "if (r < h && c < w) b[c * h + r] = a[r * w + c]; }")
    with pytest.raises(kp.InvalidArgumentError, match="another order") as caught:
        called(read, (H, W), transposed=True)
    b, right = called(read, (H, W), transposed=True, grid=choices(caught.value)[0])
    np.testing.assert_array_equal(b, right)
    written = mgr.kernel(ROWS + "void main() {" + DOWN + "if (r < h && c < w) b[c * h + r] = a[r * w + c]; }")
    b, right = called(written, (H, W), transposed=True)
    np.testing.assert_array_equal(b, right)


def test_the_order_of_declared_rows_and_of_three_axes(mgr):
    nested = mgr.kernel(
        ROWS.replace("float b[]", "float b[][13]")
        + f"void main() {{ {DOWN} if (r < b.length() && c < {W}) b[r][c] = 1; }}"
    )
    with pytest.raises(kp.InvalidArgumentError, match="another order") as caught:
        nested(np.zeros((H, W), np.float32), **sizes(H, W))
    assert choices(caught.value)[0] == (H, W)
    deep = mgr.kernel(
        ROWS
        + "void main() { uvec3 p = gl_GlobalInvocationID; if (p.z < w && p.y < h) b[(p.x * h + p.y) * w + "
        "p.z] = 1; }"
    )
    with pytest.raises(kp.InvalidArgumentError, match="another order") as caught:
        deep(np.zeros((3, H, W), np.float32), **sizes(H, W))
    b = np.zeros((3, H, W), np.float32)
    deep(b, **sizes(H, W), grid=choices(caught.value)[0])
    assert (b == 1).all()


def test_orders_that_run_the_same_or_leave_out_the_same_are_not_refused(mgr):
    square = mgr.kernel(ROWS + "void main() {" + DOWN + f"if (r < h && c < w) {ADD} }}")
    a, b = np.ones((6, 6), np.float32), np.zeros((6, 6), np.float32)
    square(b, a, **sizes(6, 6))
    assert (b == 2).all()
    pitch = mgr.kernel(ROWS + "void main() {" + ALONG + f"if (c < w && r < h) b[r * {W} + c] = 1; }}")
    b = np.zeros((H, W), np.float32)
    pitch(b, **sizes(H, W - 4))
    assert (b[:, : W - 4] == 1).all() and (b[:, W - 4 :] == 0).all()
    inner = mgr.kernel(
        ROWS + "void main() {" + ALONG + "if (c < 1 || r < 1 || c >= w - 1 || r >= h - 1) return; "
        "uint i = r * w + c; b[i] = a[i - 1] + a[i + 1] + a[i - w] + a[i + w]; }"
    )
    b = np.zeros((H, W), np.float32)
    inner(b, np.ones((H, W), np.float32), **sizes(H, W))
    assert (b[1:-1, 1:-1] == 4).all() and b.sum() == 4 * (H - 2) * (W - 2)


COUNTS = {
    "a status": "uint i = gl_GlobalInvocationID.x; if (i == 0) s[0] = 7; if (i < b.length()) b[i] = a[i] + "
    "1;",
    "a status on a condition": "uint i = gl_GlobalInvocationID.x; if (i >= b.length()) return; if (a[i] < 0) "
    "s[0] = 7; "
    "else b[i] = a[i] + 1;",
    "several slots": "uint i = gl_GlobalInvocationID.x; if (i < b.length()) { s[i % 3] = 1; b[i] = a[i] + 1; "
    "}",
}


@pytest.mark.parametrize("body", COUNTS)
def test_a_first_array_that_is_not_counted_is_refused_if_another_has_other_elements(mgr, body):
    kernel = mgr.kernel(FLAT + "void main() {" + COUNTS[body] + "}")
    a = np.arange(1000, dtype=np.float32)
    s, b = np.zeros(3, np.uint32), np.zeros(1000, np.float32)
    with pytest.raises(kp.InvalidArgumentError, match="writes 's' first, but not one element") as caught:
        kernel(s=s, b=b, a=a)
    assert choices(caught.value) == [(1000,), (3,)]
    kernel(s=s, b=b, a=a, grid=choices(caught.value)[0])
    np.testing.assert_array_equal(b, a + 1)
    # The same groups either way: nothing is in doubt.
    b = np.zeros(4, np.float32)
    kernel(s=s, b=b, a=a[:4])
    np.testing.assert_array_equal(b, a[:4] + 1)


@pytest.mark.parametrize("check", ["if (i < index.length()) ", ""], ids=["checked", "unchecked"])
def test_scattered_writes_count_what_is_read(mgr, check):
    kernel = mgr.kernel(
        FLAT + "void main() { uint i = gl_GlobalInvocationID.x; " + check + "s[index[i]] = 1; }"
    )
    many = np.arange(1000, dtype=np.uint32) // 100
    with pytest.raises(kp.InvalidArgumentError, match="writes 's' first") as caught:
        kernel(s=np.zeros(10, np.uint32), index=many)
    s = np.zeros(10, np.uint32)
    kernel(s=s, index=many, grid=choices(caught.value)[0])
    assert s.all()
    few, s = np.arange(8, dtype=np.uint32) * 7 + 3, np.zeros(1000, np.uint32)
    if check:
        kernel(s=s, index=few)  # the rest does nothing
    else:  # the rest would read zeros, and write to s[0]
        with pytest.raises(kp.InvalidArgumentError, match="writes 's' first") as caught:
            kernel(s=s, index=few)
        kernel(s=s, index=few, grid=choices(caught.value)[0])
    assert np.array_equal(np.flatnonzero(s), few)
    order, s = np.random.default_rng(0).permutation(1000).astype(np.uint32), np.zeros(1000, np.uint32)
    kernel(s=s, index=order)
    assert s.all()


def test_another_array_that_is_written_to_its_end_is_counted(mgr):
    kernel = mgr.kernel(
        FLAT
        + "void main() { uint i = gl_GlobalInvocationID.x; if (i < s.length()) s[i] = 1; if (i < b.length()) "
        "b[i] = 1; }"
    )
    with pytest.raises(kp.InvalidArgumentError, match=r"grid=\(1000,\) as 'b' has"):
        kernel(s=np.zeros(10, np.uint32), b=np.zeros(1000, np.float32))


def test_writes_at_constants_alone_run_one_workgroup_or_are_refused(mgr):
    head = "#version 450\nlayout(local_size_x = 4) in;\nlayout(binding = 0) buffer Y { float y[]; };\n"
    races = mgr.kernel(head + "void main() { y[0] = float(gl_GlobalInvocationID.x) + 2; }")
    with pytest.raises(kp.InvalidArgumentError, match=r"groups=\(1,\) for one workgroup, or grid=\(9,\)"):
        races(np.zeros(9, np.float32))
    plain = mgr.kernel(head + "void main() { y[0] = 2; }")
    assert plain.bind(mgr.zeros(9)).groups == (1, 1, 1)
    first = mgr.kernel(head + "void main() { uint i = gl_GlobalInvocationID.x; if (i == 0) y[3] = 2; }")
    assert first(np.zeros(9, np.float32))[3] == 2


# -- indices of one axis, in all languages -------------------------------------------------------------------

GLSL = """#version 450
layout(local_size_x = 8) in;
layout(binding = 0) buffer B { uint b[]; };
layout(binding = 1) readonly buffer A { uint a[]; };
layout(binding = 2) readonly buffer X { uint x[]; };
layout(push_constant) uniform P { uint n, w, h; int s; };
layout(constant_id = 0) const uint D = 4;
uint half_of(uint v) { return v / 2; }
void main() { uint i = gl_GlobalInvocationID.x; BODY }
"""
HLSL = """
[[vk::binding(0)]] RWStructuredBuffer<uint> b;
[[vk::binding(1)]] StructuredBuffer<uint> a;
[[vk::binding(2)]] StructuredBuffer<uint> x;
struct P { uint n; uint w; uint h; int s; };
[[vk::push_constant]] P p;
[[vk::constant_id(0)]] const uint D = 4;
uint half_of(uint v) { return v / 2; }
[numthreads(8, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    uint n = p.n, w = p.w, h = p.h; int s = p.s; uint i = id.x; BODY
}
"""
LANGUAGES = ["glsl", "hlsl", pytest.param("slang", marks=needs_slang)]
N = 64  # elements of b: whole groups, so that rounding up hides nothing
NONE = {"n": 1, "w": 1, "h": 1, "s": 0}
i = np.arange(16 * N)


def expected(index, value):
    """b after b[index] = value by every invocation, the last one first."""
    b = np.zeros(N, np.uint32)
    index, value = np.broadcast_arrays(index, value)
    inside = (index >= 0) & (index < N)
    b[index[inside]] = value[inside]
    return b


# name: (body, sizes of a and x, constants, the grid that is named first if there is one)
REFUSED = {
    "divided": ("b[i / 2] = 1;", (), {}, 2 * N),
    "divided in a function": ("b[half_of(i)] = 1;", (), {}, 2 * N),
    "shifted": ("b[i >> 2] = 1;", (), {}, 4 * N),
    "divided by a specialization constant": ("b[i / D] = 1;", (), {}, 4 * N),
    "divided by a push constant": ("b[i / w] = 1;", (), {"w": 8}, 8 * N),
    "divided in floats": ("b[uint(float(i) / 2.0f)] = 1;", (), {}, None),
    "bounded afterwards": ("uint j = i / 2; if (j >= n) return; b[j] = 1;", (), {"n": N}, 2 * N),
    "bounded further": ("if (i < n) b[x[i]] = i;", (0, 2 * N), {"n": 2 * N}, 2 * N),
    "under a condition": ("if (i % 2 == 0) b[i / 2] = 1;", (), {}, 2 * N),
    "after other elements": ("if (i < 4) b[i] = 1; b[i / 2] = 1;", (), {}, 2 * N),
    "less one": ("b[i - 1] = 1;", (), {}, N + 1),
    "less a push constant": ("b[int(i) + s] = 1;", (), {"s": -3}, N + 3),
    "in a loop from below": ("for (int k = -1; k < 1; ++k) { b[int(i) + k] = 1; }", (), {}, N + 1),
    "masked": ("b[i & 3] = 1;", (), {}, None),
    "modulo": ("b[i % n] = 1;", (), {"n": 5}, None),
    "exchanged": ("b[i ^ 5] = i;", (), {}, None),
    "rolled": ("b[(i + w) % n] = i;", (), {"n": N, "w": 17}, None),
    "modulo, as many as another has": ("b[i % n] = a[i];", (10 * N,), {"n": N}, 10 * N),
    "scattered": ("b[x[i]] = 1;", (0, 2 * N), {}, 2 * N),
    "scattered by pairs": ("b[x[i / 2]] = 1;", (0, N), {}, None),
    "at one place": ("b[3] = i;", (), {}, None),
}
RUNS = {
    "plain": ("b[i] = i;", (), {}, i[:N]),
    "divided by 1": ("b[i / w] = i;", (), {"w": 1}, i[:N]),
    "divided where it is read": ("b[i] = a[i / 4] + i;", (N // 4,), {}, 1 + i[:N]),
    "rows and columns": ("uint r = i / w, c = i % w; b[r * w + c] = i;", (), {"w": 7}, i[:N]),
    "rows and the rest": ("uint r = i / w, c = i - r * w; if (r < h) b[r * w + c] = i;", (), {"w": 8, "h": 8},
    i[:N]),
    "layers": (
        "uint z = i / (w * h), y = i / w % h, c = i % w; b[(z * h + y) * w + c] = i;",
        (), {"w": 4, "h": 8}, i[:N],
    ),
    "tiles": ("uint t = i / D, l = i % D; b[t * D + l] = i;", (), {}, i[:N]),
    "from the end": ("b[n - 1 - i] = i;", (), {"n": N}, i[:N][::-1]),
    "further on": ("b[i + w] = i;", (), {"w": 17}, expected(i + 17, i)),
    "in steps of the grid": ("for (uint j = i; j < n; j += 8) { b[j] = j; }", (), {"n": N}, i[:N]),
    "bounded by a number": ("if (i >= n) return; b[i / 2] = 1;", (), {"n": N}, expected(i[:N] // 2, 1)),
    "bounded rows": ("uint r = i / w, c = i % w; if (r < h) b[c * h + r] = i;", (), {"w": 16, "h": 4},
                     i[:N].reshape(4, 16).T.ravel()),
    "as many as another has": ("b[i / 2] = a[i];", (N,), {}, expected(i[:N] // 2, 1)),
    "a permutation": ("b[n - 1 - x[i]] = i;", (0, N), {"n": N}, None),
    "four each": ("for (uint k = 0; k < 4; ++k) { b[4 * i + k] = i; }", (), {}, i[:N] // 4),
    "inner elements": ("if (i < 1 || i >= n - 1) return; b[i] = a[i - 1] + a[i + 1];", (N,), {"n": N},
                       np.pad(np.full(N - 2, 2), 1)),
}  # fmt: skip


def called_in(mgr, language, body, sizes, constants, optimize=True, **grid):
    source = GLSL.replace("2.0f", "2.0") if language == "glsl" else HLSL
    kernel = mgr.kernel(source.replace("BODY", body), language=language, name="k", optimize=optimize)
    given = dict(zip("ax", (np.ones(size, np.uint32) for size in sizes), strict=False))
    if "x" in given:
        given["x"][:] = np.arange(given["x"].size)
    names = [parameter.name for parameter in kernel.signature.parameters]
    bound = {name: given[name] for name in names if name in given}
    values = {**NONE, **constants}
    push = {
        member["name"]: {m["name"]: values[m["name"]] for m in member["members"]}
        or values.get(member["name"])
        for member in (kernel.signature.push.members if kernel.signature.push is not None else ())
    }
    b = np.zeros(N, np.uint32)
    kernel(bind={"b": b, **bound}, push=push, **grid)
    return b


@pytest.mark.parametrize("language", LANGUAGES)
def test_indices_that_do_not_tell_the_number_of_invocations(mgr, language):
    for name, (body, sizes, constants, first) in REFUSED.items():
        for optimize in (True, False):
            with pytest.raises(kp.InvalidArgumentError, match="Choose the grid") as caught:
                called_in(mgr, language, body, sizes, constants, optimize)
                pytest.fail(f"{name} runs")
            found = choices(caught.value)
            assert found[-1] == (N,) and (first is None or found[0] == (first,)), (name, str(caught.value))
        called_in(mgr, language, body, sizes, constants, grid=first or 16 * N)


@pytest.mark.parametrize("language", LANGUAGES)
def test_indices_that_tell_it(mgr, language):
    for name, (body, sizes, constants, right) in RUNS.items():
        for optimize in (True, False):
            try:
                b = called_in(mgr, language, body, sizes, constants, optimize)
            except kp.InvalidArgumentError as error:
                pytest.fail(f"{name}: {error}")
            np.testing.assert_array_equal(b, i[:N][::-1] if right is None else right, name)


def test_recorded_grids_are_looked_at_when_constants_or_files_change(mgr, tmp_path):
    path = tmp_path / "k.comp"
    path.write_text(GLSL.replace("BODY", "b[i / w] = 1;"))
    kernel = mgr.kernel(path)
    b = mgr.zeros(N, np.uint32)
    operation = kernel.bind(bind={"b": b}, push={**NONE, "w": 1})
    with pytest.raises(kp.InvalidArgumentError, match="divides"):
        operation.set(w=2)
    operation.set(w=1)
    path.write_text(GLSL.replace("BODY", "b[i / 2 / w] = 1;"))
    with pytest.raises(kp.InvalidArgumentError, match="divides"):
        kernel.reload()
    mgr.sequence().record(operation).eval()
    assert b.read().all()
    operation.set(w=4, grid=4 * N)
    kernel.reload()


def test_prepared_calls_look_at_other_push_constants(mgr):
    kernel = mgr.kernel(GLSL.replace("BODY", "b[i / w] = 1;"), name="k")
    for b in (np.zeros(N, np.uint32), mgr.zeros(N, np.uint32)):
        for _ in range(3):
            kernel(bind={"b": b}, push=NONE)
        for _ in range(2):
            with pytest.raises(kp.InvalidArgumentError, match="divides"):
                kernel(bind={"b": b}, push={**NONE, "w": 2})
        kernel(bind={"b": b}, push=NONE)


# -- several axes --------------------------------------------------------------------------------------------


def test_two_axes(mgr):
    header = """#version 450
    layout(local_size_x = 4, local_size_y = 2) in;
    layout(binding = 0) buffer B { uint b[]; };
    layout(binding = 1) readonly buffer A { uint a[]; };
    layout(push_constant) uniform P { uint w, h; };
    void main() { uvec2 p = gl_GlobalInvocationID.xy; BODY }"""

    def kernel(body):
        return mgr.kernel(header.replace("BODY", body))

    a = np.arange(16 * 24, dtype=np.uint32).reshape(16, 24)
    for body, b in (
        ("b[p.y / 2 * (w / 2) + p.x / 2] = 1;", np.zeros((8, 12), np.uint32)),
        (
            "atomicOr(b[p.y * (w / 4) + p.x / 4], a[p.y * w + p.x] << (p.x % 4 * 8));",
            np.zeros((16, 6), np.uint32),
        ),
        ("b[p.y * w + p.x] = 1;", np.zeros((16, 20), np.uint32)),  # rows of another length
        ("b[p.y * w] = p.x;", a.copy()),  # one element for many invocations
        ("if (p.x < h && p.y < w) b[p.x * w + p.y] = 1;", np.zeros((16, 24), np.uint32)),
    ):
        given = (b,) if "a[" not in body else (b, a)
        with pytest.raises(kp.InvalidArgumentError, match="Choose the grid"):
            kernel(body)(*given, w=24, h=16)
    tiles = (
        "uvec2 t = p / 4, l = p % 4; uvec2 q = t * 4 + l; "
        "if (q.x < w && q.y < h) b[q.y * w + q.x] = a[q.y * w + q.x];"
    )
    flipped = "b[(h - 1 - p.y) * w + p.x] = a[p.y * w + p.x];"
    swapped = "uvec2 q = p ^ 1u; b[q.y * w + q.x] = a[p.y * w + p.x];"
    columns = "b[p.x * w + p.y] = a[p.x * w + p.y];"
    for body, right in (
        (tiles, a),
        (flipped, a[::-1]),
        (swapped, a.reshape(8, 2, 12, 2)[:, ::-1, :, ::-1].reshape(16, 24)),
    ):
        b = np.zeros_like(a)
        kernel(body)(b, a, w=24, h=16)
        np.testing.assert_array_equal(b, right)
    b = np.zeros_like(a)
    with pytest.raises(kp.InvalidArgumentError, match=r"grid=\(16, 24\) as the code counts"):
        kernel(columns)(b, a, w=24, h=16)


def test_images(mgr):
    header = """#version 450
    layout(local_size_x = 4, local_size_y = LY) in;
    layout(binding = 0, r32f) uniform image2D b;
    void main() { uvec2 p = gl_GlobalInvocationID.xy; BODY }"""

    def kernel(body, rows="2"):
        return mgr.kernel(header.replace("LY", rows).replace("BODY", body))

    def image():
        return mgr.image(np.zeros((8, 12), np.float32))

    for body in ("imageStore(b, ivec2(p / 2u), vec4(1));", "imageStore(b, ivec2(p.yx), vec4(1));",
                 "imageStore(b, ivec2(3), vec4(p.x));"):  # fmt: skip
        with pytest.raises(kp.InvalidArgumentError, match="Choose the grid"):
            kernel(body)(image())
    for body, rows in (
        ("ivec2 s = imageSize(b); int i = int(p.x); imageStore(b, ivec2(i % s.x, i / s.x), vec4(1));", "1"),
        ("ivec2 s = imageSize(b); imageStore(b, ivec2(p.x, s.y - 1 - int(p.y)), vec4(1));", "2"),
    ):
        target = image()
        kernel(body, rows)(target)
        assert target.read().all()


def test_a_binding_of_declared_length(mgr):
    source = GLSL.replace("uint b[]", "uint b[64]")
    with pytest.raises(kp.InvalidArgumentError, match="divides"):
        mgr.kernel(source.replace("BODY", "b[i / 2] = 1;"))(np.zeros(64, np.uint32), **NONE)
    assert mgr.kernel(source.replace("BODY", "b[i] = 1;"))(np.zeros(64, np.uint32), **NONE).all()
