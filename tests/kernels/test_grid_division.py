"""Default grids of code that divides, masks, shifts or subtracts from its invocation's number, in all
languages.

Each row is a body over `b` (written first), `a`, `x` and push constants n, w, h, s. Either the call is
refused, and its first choice gives what the user meant; or it runs, and the numbers that come out are those
of NumPy.
"""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

import kompute_py as kp

from ..support.languages import needs_slang

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
uint size_of(RWStructuredBuffer<uint> t) { uint count, stride; t.GetDimensions(count, stride); return count; }
[numthreads(8, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    uint n = p.n, w = p.w, h = p.h; int s = p.s; uint i = id.x; BODY
}
"""
LANGUAGES = ["glsl", "hlsl", pytest.param("slang", marks=needs_slang)]
N = 64  # elements of b: whole groups, so that rounding up hides nothing
NONE = {"n": 1, "w": 1, "h": 1, "s": 0}
i = np.arange(16 * N)


def ones(*counts):
    return [np.ones(count, np.uint32) for count in counts]


def expected(index, value, count=N):
    """b after b[index] = value by every invocation, the last one first."""
    b = np.zeros(count, np.uint32)
    index, value = np.broadcast_arrays(index, value)
    inside = (index >= 0) & (index < count)
    b[index[inside]] = value[inside]
    return b


# name: (body, sizes of a and x, constants, the first choice or None for any, b afterwards)
ALL = np.ones(N, np.uint32)
REFUSED = {
    "divided": ("b[i / 2] = 1;", (), {}, 2 * N, ALL),
    "divided in a function": ("b[half_of(i)] = 1;", (), {}, 2 * N, ALL),
    "shifted": ("b[i >> 2] = 1;", (), {}, 4 * N, ALL),
    "divided by a specialization constant": ("b[i / D] = 1;", (), {}, 4 * N, ALL),
    "divided by a push constant": ("b[i / w] = 1;", (), {"w": 8}, 8 * N, ALL),
    "shifted by a push constant": ("b[i >> w] = 1;", (), {"w": 3}, 8 * N, ALL),
    "divided twice": ("uint j = i / 2; b[j / 3] = 1;", (), {}, 6 * N, ALL),
    "divided in floats": ("b[uint(float(i) / 2.0f)] = 1;", (), {}, None, ALL),
    "bounded afterwards": ("uint j = i / 2; if (j >= n) return; b[j] = 1;", (), {"n": N}, 2 * N, ALL),
    "under a condition": ("if (i % 2 == 0) b[i / 2] = 1;", (), {}, 2 * N, ALL),
    "in a loop": ("for (uint k = 0; k < n; ++k) { b[i / 2] = 1; }", (), {"n": 3}, 2 * N, ALL),
    "after other elements": ("if (i < 4) b[i] = 1; b[i / 2] = 1;", (), {}, 2 * N, ALL),
    "less one": ("b[i - 1] = 1;", (), {}, N + 1, ALL),
    "less one under a condition": ("if (i > 0) b[i - 1] = 1;", (), {}, N + 1, ALL),
    "less a push constant": ("b[int(i) + s] = 1;", (), {"s": -3}, N + 3, ALL),
    "masked": ("b[i & 3] = 1;", (), {}, None, expected(i & 3, 1)),
    "modulo": ("b[i % n] = 1;", (), {"n": 5}, None, expected(i % 5, 1)),
    "modulo, as many as another has": ("b[i % n] = a[i];", (10 * N,), {"n": N}, 10 * N, ALL),
    "masked under a condition": (
        f"if (i / {N} == n) b[i & {N - 1}] = i;",
        (),
        {"n": 2},
        None,
        np.arange(2 * N, 3 * N, dtype=np.uint32),
    ),
    "pairs": (
        "if ((i & 1) == 0) b[i >> 1] = a[i] + a[i + 1];",
        (2 * N,),
        {},
        2 * N,
        np.full(N, 2, np.uint32),
    ),
    "planes that are longer": ("b[i % 3 * n + i / 3] = 1;", (), {"n": N}, None, ALL),
    "scattered by pairs": ("b[x[i / 2]] = 1;", (0, N), {}, 2 * N, expected(1, 1)),
}
RUNS = {
    "plain": ("b[i] = i;", (), {}, i[:N]),
    "divided by 1": ("b[i / w] = i;", (), {"w": 1}, i[:N]),
    "divided where it is read": ("b[i] = a[i / 4] + i;", (N // 4,), {}, 1 + i[:N]),
    "rows and columns": ("uint r = i / w, c = i % w; b[r * w + c] = i;", (), {"w": 7}, i[:N]),
    "rows and the rest": ("uint r = i / w, c = i - r * w; if (r < h) b[r * w + c] = i;", (), {"w": 8, "h": 8},
    i[:N]),
    "rows of a width from memory": ("uint r = i / x[0], c = i % x[0]; b[r * x[0] + c] = i;", (0, 1), {},
    i[:N]),
    "tiles": ("uint t = i / D, l = i % D; b[t * D + l] = i;", (), {}, i[:N]),
    "bits": ("b[((i >> 4) << 4) | (i & 15)] = i;", (), {}, i[:N]),
    "transposed": (
        "uint r = i / w, c = i % w; b[c * h + r] = i;", (), {"w": 16, "h": 4}, i[:N].reshape(4, 16).T.ravel(),
    ),
    "planes": (
        "b[i % 4 * n + i / 4] = i;", (), {"n": N // 4}, i[:N].reshape(-1, 4).T.ravel(),
    ),
    "exchanged": ("b[i ^ 5] = i;", (), {}, i[:N] ^ 5),
    "from the end": ("b[n - 1 - i] = i;", (), {"n": N}, i[:N][::-1]),
    "rolled": ("b[(i + w) % n] = i;", (), {"n": N, "w": 17}, np.roll(i[:N], 17)),
    "rolled by nothing": ("b[(i + w) % n] = i;", (), {"n": N, "w": 0}, i[:N]),
    "butterflies": (
        "uint k = i & (w - 1), j = ((i >> s) << (s + 1)) | k; b[j] = 1; b[j + w] = 2;", (), {"w": 8, "s": 3},
        np.tile(np.repeat([1, 2], 8), N // 16),
    ),
    "in steps of the grid": ("for (uint j = i; j < n; j += 8) { b[j] = j; }", (), {"n": N}, i[:N]),
    "bounded by a number": ("if (i >= n) return; b[i / 2] = 1;", (), {"n": N}, expected(i[:N] // 2, 1)),
    "as many as another has": ("b[i / 2] = a[i];", (N,), {}, expected(i[:N] // 2, 1)),
    "four each": ("for (uint k = 0; k < 4; ++k) { b[4 * i + k] = i; }", (), {}, i[:N] // 4),
    "inner elements": ("if (i < 1 || i >= n - 1) return; b[i] = a[i - 1] + a[i + 1];", (N,), {"n": N},
                       np.pad(np.full(N - 2, 2), 1)),
    "exchanged in pairs": (
        "uint q = i ^ w; if (q > i) { b[i] = 1; b[q] = 2; }", (), {"w": 1}, np.tile([1, 2], N // 2),
    ),
}  # fmt: skip


def kernel_of(mgr, language, body, array="uint b[]"):
    if language == "glsl":
        source = GLSL.replace("BODY", body).replace("uint b[]", array)
        return mgr.kernel(source.replace("2.0f", "2.0"), name="k")
    return mgr.kernel(HLSL.replace("BODY", body), language=language, name="k")


def arguments(kernel, sizes, constants):
    given = dict(zip("ax", ones(*sizes), strict=False))
    names = [parameter.name for parameter in kernel.signature.parameters]
    bound = {name: given[name] for name in names if name in given}
    if "x" in bound:
        bound["x"][...] = 8 if bound["x"].size == 1 else 1
    values = {**NONE, **constants}
    members = kernel.signature.push.members if kernel.signature.push is not None else ()
    push = {}
    for member in members:
        if member["members"]:
            push[member["name"]] = {m["name"]: values[m["name"]] for m in member["members"]}
        else:
            push[member["name"]] = values[member["name"]]
    return bound, push


def choices(error):
    return [tuple(map(int, each.split(","))) for each in re.findall(r"grid=\(([\d, ]*\d),?\)", str(error))]


@pytest.mark.parametrize("language", LANGUAGES)
def test_grids_that_would_leave_something_out_are_refused(mgr, needs, language):
    needs(mgr, "dispatch")
    for name, (body, sizes, constants, first, right) in REFUSED.items():
        kernel = kernel_of(mgr, language, body)
        bound, push = arguments(kernel, sizes, constants)
        b = np.zeros(N, np.uint32)
        with pytest.raises(kp.InvalidArgumentError, match="Choose the grid") as caught:
            kernel(bind={"b": b, **bound}, push=push)
            pytest.fail(f"{name} runs")
        found = choices(caught.value)
        assert found[-1] == (N,) and (first is None or found == [(first,), (N,)]), (name, str(caught.value))
        kernel(bind={"b": b, **bound}, push=push, grid=first or 16 * N)
        np.testing.assert_array_equal(b, right, name)


@pytest.mark.parametrize("language", LANGUAGES)
def test_grids_that_are_right_run(mgr, needs, language):
    needs(mgr, "dispatch")
    for name, (body, sizes, constants, right) in RUNS.items():
        kernel = kernel_of(mgr, language, body)
        bound, push = arguments(kernel, sizes, constants)
        b = np.zeros(N, np.uint32)
        try:
            kernel(bind={"b": b, **bound}, push=push)
        except kp.InvalidArgumentError as error:
            pytest.fail(f"{name}: {error}")
        np.testing.assert_array_equal(b, right, name)


def test_packed_bytes_count_the_bytes(mgr, needs):
    needs(mgr, "dispatch")
    data = np.random.default_rng(1).integers(0, 256, 1024).astype(np.uint8)
    right = np.bincount(data, minlength=256).astype(np.uint32)
    body = "atomicAdd(b[(a[i / 4] >> (8 * (i % 4))) & 255], 1u);"
    kernel = kernel_of(mgr, "glsl", body)
    for words in (data.view(np.uint32), np.tile(data.view(np.uint32), 4)):
        with pytest.raises(kp.InvalidArgumentError, match="Choose the grid") as caught:
            kernel(bind={"b": np.zeros(256, np.uint32), "a": words}, push=NONE)
        assert (4 * words.size,) in choices(caught.value)
        b = np.zeros(256, np.uint32)
        kernel(bind={"b": b, "a": words}, push=NONE, grid=4 * words.size)
        np.testing.assert_array_equal(b, right * (4 * words.size // 1024))
    pack = kernel_of(mgr, "glsl", "atomicOr(b[i >> 2], (a[i] & 255u) << ((i & 3u) * 8u));")
    b, wide = np.zeros(256, np.uint32), data.astype(np.uint32)
    with pytest.raises(kp.InvalidArgumentError, match="Choose the grid") as caught:
        pack(bind={"b": b, "a": wide}, push=NONE)
    assert (1024,) in choices(caught.value)
    pack(bind={"b": b, "a": wide}, push=NONE, grid=1024)
    np.testing.assert_array_equal(b.view(np.uint8), data)


def test_functions_of_code_that_is_not_optimized(mgr, needs):
    needs(mgr, "dispatch")
    head = GLSL.replace("void main()", "FUNCTION\nvoid main()")
    for function, body, first in [
        ("", "b[half_of(i)] = 1;", 2 * N),
        ("", "uint j = half_of(half_of(i)); b[j] = 1;", 4 * N),
        ("void put(uint at, uint v) { b[at / w] = v; }", "put(i, 1); if (n > 5) put(half_of(i), 1);", 8 * N),
        ("void put(uint at) { b[half_of(at)] = 1; }", "put(i); put(i);", 2 * N),
        (
            "uvec2 place(uint at) { return uvec2(at % w, at / w); }",
            "b[place(i).y * 2] = 1; b[place(i).y * 2 + 1] = 1;",
            2 * N,
        ),
        (
            "uvec2 place(uint at) { return uvec2(at % w, at / w); }",
            "uvec2 q = place(i); b[q.y * w + q.x] = 1;",
            None,
        ),
        ("uint row(uint at) { return at / w; }", "b[row(i) * w + i % w] = 1; b[row(0)] = 1;", None),
    ]:
        kernel = mgr.kernel(head.replace("FUNCTION", function).replace("BODY", body), optimize="none")
        push = {**NONE, "w": 4}
        b = np.zeros(N, np.uint32)
        if first is not None:
            with pytest.raises(kp.InvalidArgumentError, match="divides") as caught:
                kernel(bind={"b": b}, push=push)
            assert choices(caught.value) == [(first,), (N,)], body
        kernel(bind={"b": b}, push=push, grid=first) if first else kernel(bind={"b": b}, push=push)
        assert b.all()


def test_recorded_grids_are_looked_at_when_constants_or_files_change(mgr, needs, tmp_path):
    needs(mgr, "dispatch")
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


def test_two_axes(mgr, needs):
    needs(mgr, "dispatch")
    header = """#version 450
    layout(local_size_x = 4, local_size_y = 2) in;
    layout(binding = 0) buffer B { uint b[]; };
    layout(binding = 1) readonly buffer A { uint a[]; };
    layout(push_constant) uniform P { uint w, h; };
    void main() { uvec2 p = gl_GlobalInvocationID.xy; BODY }"""
    a = np.arange(16 * 24, dtype=np.uint32).reshape(16, 24)
    b = np.zeros((8, 12), np.uint32)
    smaller = mgr.kernel(header.replace("BODY", "b[p.y / 2 * (w / 2) + p.x / 2] = 1;"))
    with pytest.raises(kp.InvalidArgumentError, match="divides") as caught:
        smaller(b, w=24, h=16)
    assert choices(caught.value) == [(24, 16), (12, 8)]
    smaller(b, w=24, h=16, grid=choices(caught.value)[0])
    assert b.all()
    packed = mgr.kernel(
        header.replace("BODY", "atomicOr(b[p.y * (w / 4) + p.x / 4], a[p.y * w + p.x] << (p.x % 4 * 8));")
    )
    with pytest.raises(kp.InvalidArgumentError, match="Choose the grid"):
        packed(np.zeros((16, 6), np.uint32), a, w=24, h=16)
    tiles = mgr.kernel(
        header.replace(
            "BODY",
            "uvec2 t = p / 4, l = p % 4; uvec2 q = t * 4 + l; if (q.x < w && q.y < h) b[q.y * w + q.x] = "
            "a[q.y * w + q.x];",
        )
    )
    b = np.zeros_like(a)
    tiles(b, a, w=24, h=16)
    np.testing.assert_array_equal(b, a)
    swapped = mgr.kernel(header.replace("BODY", "uvec2 q = p ^ 1u; b[q.y * w + q.x] = a[p.y * w + p.x];"))
    swapped(b, a, w=24, h=16)
    np.testing.assert_array_equal(b, a.reshape(8, 2, 12, 2)[:, ::-1, :, ::-1].reshape(16, 24))


def test_images(mgr, needs):
    needs(mgr, "dispatch")
    header = """#version 450
    layout(local_size_x = 4, local_size_y = LY) in;
    layout(binding = 0, r32f) uniform image2D b;
    void main() { uvec2 p = gl_GlobalInvocationID.xy; BODY }"""

    def image():
        return mgr.image(np.zeros((8, 12), np.float32))

    quarter = mgr.kernel(header.replace("LY", "2").replace("BODY", "imageStore(b, ivec2(p / 2u), vec4(1));"))
    target = image()
    with pytest.raises(kp.InvalidArgumentError, match="divides") as caught:
        quarter(target)
    assert choices(caught.value) == [(24, 16), (12, 8)]
    quarter(target, grid=(24, 16))
    assert target.read().all()
    flat = mgr.kernel(
        header.replace("LY", "1").replace(
            "BODY",
            "ivec2 s = imageSize(b); int i = int(p.x); imageStore(b, ivec2(i % s.x, i / s.x), vec4(i));",
        )
    )
    target = image()
    flat(target)
    np.testing.assert_array_equal(target.read().reshape(8, 12), np.arange(96).reshape(8, 12))


def test_a_binding_of_declared_length(mgr, needs):
    needs(mgr, "dispatch")
    kernel = kernel_of(mgr, "glsl", "b[i / 2] = 1;", "uint b[64]")
    with pytest.raises(kp.InvalidArgumentError, match="divides") as caught:
        kernel(np.zeros(64, np.uint32), n=1, w=1, h=1, s=1)
    assert choices(caught.value) == [(128,), (64,)]


def test_other_values_are_looked_at_anew_and_equal_ones_are_not(mgr, needs, monkeypatch):
    needs(mgr, "dispatch")
    from kompute_py._kernels import grid_check

    seen = []
    original = grid_check._Doubt.check
    monkeypatch.setattr(grid_check._Doubt, "check", lambda *given: seen.append(1) or original(*given))
    kernel = kernel_of(mgr, "glsl", "b[i / w] = s;")
    b = mgr.zeros(N, np.uint32)
    for s in range(5):  # of which the index knows nothing
        kernel(bind={"b": b}, push={"w": 1, "s": s, "n": 0, "h": 0})
    assert len(seen) == 1
    with pytest.raises(kp.InvalidArgumentError, match="divides"):
        kernel(bind={"b": b}, push={"w": 2, "s": 0, "n": 0, "h": 0})
    plain = kernel_of(mgr, "glsl", "b[i] = s;")
    for s in range(5):
        plain(bind={"b": b}, push={"w": 1, "s": s, "n": 0, "h": 0})
    assert len(seen) == 2


def index_of(rng, depth):
    """A random expression of i."""
    if depth == 0 or rng.random() < 0.15:
        return "i"
    inner, number = index_of(rng, depth - 1), rng.choice([1, 2, 3, 4, 5, 6, 8, 12, 16, 48])
    value = rng.choice([str(number), f"w{number}"])
    return rng.choice(
        [
            *(f"({inner} {sign} {rng.choice([index_of(rng, depth - 1), str(number)])})" for sign in "+-|"),
            *(f"({inner} {sign} {value})" for sign in "*/%"),
            f"({inner} & {rng.choice([1, 3, 7, 12, 15, 48, 5])}u)",
            f"({inner} ^ {number}u)",
            f"({inner} << {rng.choice([1, 2])})",
            f"({inner} >> {rng.choice([1, 2, 3])})",
            f"(({inner} / {number}) * {rng.choice([number, number + 1])} + {inner} % {number})",
            f"part({inner}, {number})",
            f"(i < {number} ? {inner} : {index_of(rng, depth - 1)})",
        ]
    )


def test_random_indices_leave_nothing_out(mgr, needs):
    needs(mgr, "dispatch")
    source = """#version 450
    layout(local_size_x = 4) in;
    layout(binding = 0) buffer B { uint b[]; };
    layout(push_constant) uniform P { uint w1, w2, w3, w4, w5, w6, w8, w12, w16, w48; };
    uint part(uint v, uint k) { return v / k; }
    void main() { uint i = gl_GlobalInvocationID.x; BODY }"""
    bodies = (
        "b[E] = 1;",
        "if (i < 16) b[E] = 1;",
        "if (i < 96) b[E] = 1;",
        "if (i % 2 == 0) b[E] = 1;",
        "uint j = E; if (j >= b.length()) return; b[j] = 1;",
    )
    rng = random.Random(3)
    ran = 0
    for _ in range(60):
        body = rng.choice(bodies).replace("E", index_of(rng, rng.randrange(1, 4)))
        kernel = mgr.kernel(source.replace("BODY", body))
        push = {f"w{n}": n for n in (1, 2, 3, 4, 5, 6, 8, 12, 16, 48)} if kernel.signature.push else {}
        b, all_of_it = np.zeros(48, np.uint32), np.zeros(48, np.uint32)
        kernel(all_of_it, push=push, grid=4000)
        try:
            kernel(b, push=push)
        except kp.InvalidArgumentError as error:
            found = choices(error)
            if len(found) == 1:
                continue
            kernel(b, push=push, grid=found[0])
        else:
            ran += 1
        np.testing.assert_array_equal(b, all_of_it, body)
    assert ran > 15
