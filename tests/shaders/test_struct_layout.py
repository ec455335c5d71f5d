"""Structured dtypes and shaders' blocks: the dtype that fits, and the refusal of one that does not."""

from __future__ import annotations

import re

import numpy as np
import pytest

import kompute_py as kp

pytestmark = pytest.mark.each_driver

PARTICLES = """
#version 450
layout(local_size_x = 1) in;
struct Particle { vec3 position; float mass; vec2 spin; uint id; };
layout(std430, binding = 0) buffer P { Particle p[]; };
layout(std140, binding = 1) uniform U { mat3 turn; float scale[3]; vec3 move; int n; };
layout(std430, binding = 2) buffer H { uint count; float total; dvec2 tail[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    p[i].position = turn * p[i].position * scale[1] + move;
    p[i].mass += float(n) * scale[2];
    p[i].spin = p[i].spin.yx;
    p[i].id += 100;
    count = 7;
    total = scale[0];
    tail[i] = dvec2(p[i].mass, i);
}
"""
PARTICLE = np.dtype(
    {
        "names": ["position", "mass", "spin", "id"],
        "formats": [("<f4", (3,)), "<f4", ("<f4", (2,)), "<u4"],
        "offsets": [0, 12, 16, 24],
        "itemsize": 32,
    }
)


@pytest.fixture(scope="module")
def particles() -> bytes:
    return kp.compile(PARTICLES)


def block(text: str, layout: str = "std430", extra: str = "") -> bytes:
    """A shader whose only buffer has the members of `text`."""
    return kp.compile(
        f"#version 450\n#extension GL_EXT_scalar_block_layout : require\n{extra}\n"
        f"layout({layout}, binding = 0) buffer B {{ {text} }};\nvoid main() {{}}",
        optimize=False,
    )


@pytest.mark.capability("", "structured dtypes of a shader's structs", "kp.struct_dtype", "guides/structs")
def test_the_dtype_of_an_array_of_structs(particles):
    made = kp.struct_dtype(particles, 0)
    assert made == PARTICLE
    assert kp.struct_dtype(particles, "P") == made
    assert kp.struct_dtype(kp.ShaderModule(particles), 0) == made


def test_the_dtype_of_a_uniform_block_has_std140_padding(particles):
    made = kp.struct_dtype(particles, 1)
    assert {name: made.fields[name][1] for name in made.names} == {
        "turn": 0, "scale": 48, "move": 96, "n": 108,
    }  # fmt: skip
    assert made["turn"].shape == (3, 4) and made["scale"].shape == (3, 4) and made["move"].shape == (3,)
    assert made.itemsize == 112


def test_the_dtype_of_a_header_with_a_tail_takes_a_length(particles):
    made = kp.struct_dtype(particles, 2, length=5)
    assert made["tail"].shape == (5, 2) and made.fields["tail"][1] == 16 and made.itemsize == 16 + 5 * 16
    with pytest.raises(kp.InvalidArgumentError, match="length=n"):
        kp.struct_dtype(particles, 2)
    with pytest.raises(kp.InvalidArgumentError, match="omit length"):
        kp.struct_dtype(particles, 1, length=3)
    assert kp.struct_dtype(particles, 2, length=0).itemsize == 16
    with pytest.raises(kp.InvalidArgumentError, match="0 elements or more"):
        kp.struct_dtype(particles, 2, length=-1)
    with pytest.raises(kp.NotFoundError, match=r"binding 9.*0 \('p'\)"):
        kp.struct_dtype(particles, 9)


@pytest.mark.own_driver
@pytest.mark.parametrize(
    ("text", "layout", "shape", "itemsize"),
    [
        ("float x[];", "std430", (), 4), ("float x[];", "std140", (4,), 16),
        ("vec3 x[];", "std430", (4,), 16), ("vec3 x[];", "scalar", (3,), 12),
        ("mat2 x[];", "std430", (2, 2), 16), ("mat3 x[];", "std430", (3, 4), 48),
        ("mat3 x[];", "scalar", (3, 3), 36), ("layout(row_major) mat2x3 x[];", "std430", (3, 2), 24),
        ("uvec4 x[8];", "std430", (4,), 16), ("bool x[];", "std430", (), 4),
    ],
)  # fmt: skip
def test_elements_of_arrays_are_as_long_as_their_stride(text, layout, shape, itemsize):
    made = kp.struct_dtype(block(text, layout), 0)
    assert made.names is None and made.shape == shape and made.itemsize == itemsize
    assert np.zeros(5, made).nbytes == 5 * itemsize


def test_nested_structs_and_arrays_of_arrays():
    structs = "struct Inner { float x; vec3 y; }; struct Outer { Inner a[2]; uint n[2][3]; };"
    made = kp.struct_dtype(block("Outer b[];", "std430", structs), 0)
    assert made["a"].base.fields["y"][1] == 16 and made["a"].base.itemsize == 32
    assert made["n"].shape == (2, 3) and made.itemsize == 96


def test_bindings_tell_their_dtypes(mgr, particles, needs):
    needs(mgr, "shaderFloat64")
    p, u = mgr.zeros(4, kp.struct_dtype(particles, 0)), mgr.zeros((), kp.struct_dtype(particles, 1))
    h = mgr.zeros((), kp.struct_dtype(particles, 2, length=4))
    algorithm = mgr.algorithm([p, u, h], particles, (4, 1, 1))
    assert algorithm.bindings[0].dtype == PARTICLE
    assert algorithm.bindings[1].dtype == u.dtype and algorithm.bindings[2].dtype is None


def test_a_shader_sees_the_fields(mgr, particles, needs):
    needs(mgr, "shaderFloat64")
    data = np.zeros(4, PARTICLE)
    data["position"] = np.arange(12).reshape(4, 3)
    data["mass"], data["spin"], data["id"] = [1, 2, 3, 4], (5, 6), [0, 1, 2, 3]
    u = np.zeros((), kp.struct_dtype(particles, 1))
    turn = np.array([[0, 1, 0], [2, 0, 0], [0, 0, 3]], np.float32)  # its rows are the shader's columns
    u["turn"][..., :3] = turn
    u["scale"][:, 0] = [0.5, 2, 10]
    u["move"], u["n"] = (1, 2, 3), 2
    p, uniform = mgr.tensor_t(data, "storage"), mgr.tensor_t(u, "storage")
    header = mgr.zeros((), kp.struct_dtype(particles, 2, length=4), "storage")
    mgr.sequence().record(kp.OpAlgoDispatch(mgr.algorithm([p, uniform, header], particles, (4, 1, 1)))).eval()
    got, head = p.read(), header.read()
    np.testing.assert_array_equal(got["position"], data["position"] @ turn * 2 + [1, 2, 3])
    np.testing.assert_array_equal(got["mass"], data["mass"] + 20)
    np.testing.assert_array_equal(got["spin"], np.tile([6, 5], (4, 1)))
    np.testing.assert_array_equal(got["id"], data["id"] + 100)
    assert head["count"] == 7 and head["total"] == 0.5
    np.testing.assert_array_equal(head["tail"], np.stack([got["mass"], np.arange(4)], axis=1))


SIMPLE = "struct Q { float a; uint b; vec2 c; };"
GOOD = [
    [("a", "f4"), ("b", "u4"), ("c", "f4", (2,))],
    [("other", "f4"), ("names", "i4"), ("x", "f4"), ("y", "f4")],  # grouped otherwise, signed
    [("a", "f4"), ("b", "u4"), ("c", "c8")],
    [("a", "f4"), ("b", "u4"), ("c", "V8")],
    [("all", [("a", "f4"), ("b", "u4"), ("c", "f4", (2,))], (2,))],  # two elements of the shader's in one
]
BAD = [
    ([("a", "f4"), ("b", "u4"), ("c", "f4", (3,))], r"bytes +16 +20 +<-"),
    ([("a", "f8"), ("b", "u4"), ("c", "f4")], r"0 +float a +float64 a +<-"),
    ([("a", "f4"), ("b", "f4"), ("c", "f4", (2,))], r"4 +uint b +float32 b +<-"),
    ([("a", "f4"), ("b", "u2"), ("pad", "u2"), ("c", "f4", (2,))], r"4 +uint b +uint16 b +<-"),
    ([("a", "f4"), ("b", "u4"), ("c", "f4"), ("d", "i4")], r"12 +int32 d +<-"),
    ([("a", "f4"), ("b", "u4"), ("c", "f4", (2,)), ("d", "f4", (4,))], r"bytes +16 +32 +<-"),
]


def used(text: str, layout: str, extra: str, statement: str) -> bytes:
    return kp.compile(
        f"#version 450\n{extra}\nlayout({layout}, binding = 0) buffer B {{ {text} }};\nvoid main() {{ "
        f"{statement} }}"
    )


@pytest.mark.parametrize("fields", GOOD)
def test_dtypes_with_the_same_bytes_fit(mgr, fields):
    spirv = used("Q q[];", "std430", SIMPLE, "q[0].a = 1; q[0].c = vec2(2);")
    assert mgr.algorithm([mgr.zeros(4, np.dtype(fields))], spirv, (1, 1, 1)).is_init()


@pytest.mark.parametrize(("fields", "row"), BAD)
def test_dtypes_with_other_bytes_are_refused_side_by_side(mgr, fields, row):
    spirv = used("Q q[];", "std430", SIMPLE, "q[0].a = 1;")
    t = mgr.zeros(4, np.dtype(fields))
    with pytest.raises(kp.InvalidArgumentError, match=row) as error:
        mgr.algorithm([t], spirv, (1, 1, 1))
    fitting = f"kp.struct_dtype(shader, 0), of the kernel or its SPIR-V, which is\n    {np.dtype(GOOD[0])!r}"
    assert fitting in str(error.value)
    # Its bytes are another matter: a plain dtype is not checked.
    assert mgr.algorithm([t.view(np.uint8)], spirv, (1, 1, 1)).is_init()
    with pytest.raises(kp.InvalidArgumentError, match=row):
        mgr.kernel(spirv)(t, grid=1)


BODY = "struct Q { vec3 a; float b; vec3 c; };"
WITH_STEPS = "struct Q { mat3 m; vec3 a; };"
FLOATS_ELSEWHERE = [  # floats only, so that the bytes alone do not differ
    ("Q q[];", "std430", BODY, [("a", "f4", 3), ("b", "f4"), ("c", "f4", 3)], r"bytes +32 +28 +<-"),
    ("Q q[];", "std430", BODY, [("a", "f4", 3), ("c", "f4", 3), ("b", "f4"), ("d", "f4")], r"24 .* b +<-"),
    ("Q q[];", "std430", BODY, [("a", "f4", 4), ("b", "f4"), ("c", "f4", 3)], r"16 .*float32 b +<-"),
    ("Q q[];", "std430", WITH_STEPS, [("m", "f4", (3, 3)), ("x", "f4", 3), ("a", "f4", 4)], r"0 .* m +<-"),
    (
        "Q q; float z;",
        "std430",
        BODY,
        [("q", [("b", "f4"), ("a", "f4", 3), ("c", "f4", 4)]), ("z", "f4")],
        "",
    ),
    (
        "float z; vec3 a;", "std430", "", [("z", "f4"), ("a", "f4", 3), ("pad", "f4", 4)],
        r"4 .*float32\[3\] a +<-",
    ),
    ("float a[3]; float z;", "std140", "", [("a", "f4", 3), ("p", "f4", 9), ("z", "f4", 4)], r"0 .* a +<-"),
]  # fmt: skip


@pytest.mark.parametrize(("members", "layout", "extra", "fields", "row"), FLOATS_ELSEWHERE)
def test_fields_lie_at_the_members_of_their_names(mgr, members, layout, extra, fields, row):
    first = re.match(r"\w+ (\w+)", members)[1]
    if "Q" in members:
        first += "[0].a" if "[" in members else ".a"
    elif "[3]" in members:
        first += "[0]"
    spirv = used(members, layout, extra, f"{first} *= 2;")
    data = np.zeros(4, np.dtype(fields))
    for call in (
        lambda: mgr.algorithm([mgr.tensor_t(data)], spirv, (1, 1, 1)),
        lambda: mgr.kernel(spirv)(data, grid=1),
    ):
        with pytest.raises(kp.InvalidArgumentError, match=f"layout[\\s\\S]*{row}"):
            call()
    renamed = [(f"other_{name}", *rest) for name, *rest in fields]  # grouped otherwise, on purpose
    assert mgr.algorithm([mgr.zeros(4, np.dtype(renamed))], spirv, (1, 1, 1)).is_init()


def test_one_element_needs_no_stride(mgr):
    spirv = used("Q q[];", "std430", BODY, "q[0].a *= 2;")
    one = mgr.zeros(1, np.dtype([("a", "f4", 3), ("b", "f4"), ("c", "f4", 3)]))
    assert mgr.algorithm([one], spirv, (1, 1, 1)).is_init()


def test_a_block_larger_than_the_tensor_is_refused(mgr):
    spirv = used("float a; uint b; vec4 c;", "std430", "", "a = 1;")
    good = kp.struct_dtype(spirv, 0)
    assert good.itemsize == 32
    assert mgr.algorithm([mgr.zeros((), good)], spirv, (1, 1, 1)).is_init()
    short = np.dtype([("a", "f4"), ("b", "u4")])
    with pytest.raises(kp.InvalidArgumentError, match=r"bytes +32 +8 +<-"):
        mgr.algorithm([mgr.zeros(1, short)], spirv, (1, 1, 1))


def test_a_tail_is_checked_to_its_end(mgr):
    spirv = used("uint n; float rest[];", "std430", "", "rest[n] = 1;")
    fits = np.dtype([("n", "u4"), ("rest", "f4", (5,))])
    assert mgr.algorithm([mgr.zeros((), fits)], spirv, (1, 1, 1)).is_init()
    with pytest.raises(kp.InvalidArgumentError, match=r"length=n"):
        mgr.algorithm([mgr.zeros((), [("n", "u4"), ("rest", "f4", (3,)), ("last", "u4")])], spirv, (1, 1, 1))
    # A second element would lie where the shader expects more of the tail.
    with pytest.raises(kp.InvalidArgumentError, match="layout"):
        mgr.algorithm([mgr.zeros(2, fits)], spirv, (1, 1, 1))
