"""Memory bound to a shader by position (algorithms) and by name (kernels): the same rules, with the same
sentences.

An object of the wrong kind raises in both. Contents that differ from the declaration raise in a kernel and
warn once in an algorithm.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import kompute_py as kp

SHADER = """#version 450
layout(local_size_x = 1) in;
DECLARED;
layout(set = 0, binding = 1) buffer Out { float o[]; };
void main() { o[0] = USED; }
"""
BUFFER = "layout(set = 0, binding = 0, std430) readonly buffer A {{ {} a[]; }}"
UNIFORM = "layout(set = 0, binding = 0, std140) uniform A {{ {} }}"
STORAGE_IMAGE = "layout(set = 0, binding = 0, {}) readonly uniform {} a"

FLOATS = (BUFFER.format("float"), "a[0]")
IMAGE = (STORAGE_IMAGE.format("r32f", "image2D"), "imageLoad(a, ivec2(0)).x")
SAMPLED = ("layout(set = 0, binding = 0) uniform sampler2D a", "texelFetch(a, ivec2(0), 0).x")


def image(mgr, channels=1, dtype=np.float32):
    return mgr.image_t(np.ones((4, 4, channels), dtype))


def destroyed(mgr):
    t = mgr.zeros(4)
    t.destroy()
    return t


def made(mgr, declared):
    """(SPIR-V, kernel "k", the output) of a shader whose binding 0 is `declared`."""
    declaration, used = declared
    spirv = kp.compile(SHADER.replace("DECLARED", declaration).replace("USED", used))
    return spirv, mgr.kernel(spirv, name="k"), mgr.zeros(4)


def plain(text, given):
    """The sentence without the words that say which argument it is."""
    subject = given._describe()
    return (
        text.replace("Binding 0 ('a')", "'a'")
        .replace("k: 'a'", "'a'")
        .replace(f"tensors[0] ({subject})", subject)
    )


WRONG = {
    "image for a buffer": (FLOATS, image),
    "sampler for a buffer": (FLOATS, lambda mgr: mgr.sampler()),
    "sampled image for a buffer": (FLOATS, lambda mgr: image(mgr).sampled(mgr.sampler())),
    "tensor for an image": (IMAGE, lambda mgr: mgr.zeros(4)),
    "sampler for an image": (IMAGE, lambda mgr: mgr.sampler()),
    "sampled image for a storage image": (IMAGE, lambda mgr: image(mgr).sampled(mgr.sampler())),
    "image for a combined sampler": (SAMPLED, image),
    "tensor for a combined sampler": (SAMPLED, lambda mgr: mgr.zeros(4)),
    "image of three dimensions": (IMAGE, lambda mgr: mgr.image_empty((2, 2, 2), format="r32f", dims=3)),
    "image of integers": (
        (STORAGE_IMAGE.format("r32i", "iimage2D"), "float(imageLoad(a, ivec2(0)).x)"),
        lambda mgr: mgr.image_empty((2, 2), format="r32ui"),
    ),
    "record of another layout": (
        (BUFFER.format("vec2"), "a[0].x"),
        lambda mgr: mgr.tensor_t(np.zeros(2, [("x", "f4"), ("y", "i4")])),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_an_object_of_another_kind_raises_the_same_by_position_and_by_name(mgr, name):
    declared, make = WRONG[name]
    spirv, kernel, out = made(mgr, declared)
    given = make(mgr)
    with pytest.raises(kp.KomputeError) as by_position:
        mgr.algorithm([given, out], spirv, (1, 1, 1))
    with pytest.raises(kp.KomputeError) as by_name:
        kernel(given, out, groups=1)
    if name == "image of integers":  # of another format than declared, too, which a kernel says first
        assert "declared layout(r32i)" in str(by_name.value) and "declare it as uimage2D" in str(
            by_position.value
        )
        return
    assert type(by_position.value) is type(by_name.value) is kp.InvalidArgumentError
    assert plain(str(by_position.value), given) == plain(str(by_name.value), given)


@pytest.mark.parametrize("wrong", ["destroyed", "foreign"])
def test_destroyed_and_foreign_memory(mgr, wrong):
    spirv, kernel, out = made(mgr, FLOATS)
    with kp.Manager() as other:
        given = destroyed(mgr) if wrong == "destroyed" else other.zeros(4)
        error = kp.FailedPreconditionError if wrong == "destroyed" else kp.InvalidArgumentError
        with pytest.raises(error, match=r"tensors\[0\]"):
            mgr.algorithm([given, out], spirv, (1, 1, 1))
        with pytest.raises(error, match="'a' of k"):
            kernel(given, out, groups=1)
        with pytest.raises(error, match="uses"):
            kernel(out, out, groups=1, uses=[given])
        del given


DIFFERENT = {
    "another dtype": (FLOATS, lambda mgr: mgr.zeros(4, np.int32), kp.ArgumentTypeError),
    "doubles": (FLOATS, lambda mgr: mgr.zeros(4, np.float64), kp.ArgumentTypeError),
    "another sign": (
        (BUFFER.format("uint"), "float(a[0])"), lambda mgr: mgr.zeros(4, np.int32), kp.ArgumentTypeError,
    ),
    "truth values": (FLOATS, lambda mgr: mgr.zeros(4, np.bool_), kp.ArgumentTypeError),
    "complex numbers": (FLOATS, lambda mgr: mgr.zeros(4, np.complex64), kp.ArgumentTypeError),
    "complex numbers for vec3": (
        (BUFFER.format("vec3"), "a[0].x"), lambda mgr: mgr.zeros(4, np.complex64), kp.ArgumentTypeError,
    ),
    "numbers without padding": (
        (UNIFORM.format("float a[4];"), "a[0]"), lambda mgr: mgr.zeros(16), kp.InvalidArgumentError,
    ),
    "rows of three without padding": (
        (BUFFER.format("vec3"), "a[0].x"), lambda mgr: mgr.zeros((4, 3)), kp.InvalidArgumentError,
    ),
    "matrices by rows": (
        (BUFFER.format("mat2x3"), "a[0][0].x"), lambda mgr: mgr.zeros((4, 3, 2)), kp.InvalidArgumentError,
    ),
    "too small a block": (
        (UNIFORM.format("vec4 x; vec4 y;"), "x.x + y.x"), lambda mgr: mgr.zeros(4), kp.InvalidArgumentError,
    ),
    "another format": (IMAGE, lambda mgr: image(mgr, 4), kp.InvalidArgumentError),
}  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENT)
def test_contents_that_differ_raise_by_name_and_warn_once_by_position(mgr, name):
    declared, make, error = DIFFERENT[name]
    spirv, kernel, out = made(mgr, declared)
    given = make(mgr)
    with pytest.raises(error) as by_name:
        kernel(given, out, groups=1)
    with pytest.raises(error):
        kernel.bind(given, out, groups=1)
    with pytest.warns(kp.KomputeWarning) as by_position:
        mgr.algorithm([given, out], spirv, (1, 1, 1))
    assert len(by_position) == 1 and by_position[0].filename == __file__
    called = kernel.signature.parameters[0].name
    said = plain(str(by_name.value).replace(f"'{called}'", "'a'"), given)
    assert plain(str(by_position[0].message).replace(f"'{called}'", "'a'"), given) == said
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mgr.algorithm([given, out], spirv, (1, 1, 1))


def test_small_floats_are_bits_and_no_floats(mgr):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    halves = mgr.zeros(4, ml_dtypes.bfloat16)
    spirv, kernel, out = made(mgr, FLOATS)
    with pytest.raises(kp.ArgumentTypeError, match=r"holds float32; .*bfloat16.*astype\(np\.float32\)"):
        kernel(halves, out, groups=1)
    with pytest.warns(kp.KomputeWarning, match=r"holds float32; .*bfloat16"):
        mgr.algorithm([halves, out], spirv, (1, 1, 1))
    spirv, kernel, out = made(mgr, (BUFFER.format("uint"), "float(a[0])"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel(halves, out, groups=1)
        mgr.algorithm([halves, out], spirv, (1, 1, 1))


@pytest.mark.parametrize(
    ("declared", "make"),
    [
        ((BUFFER.format("vec4"), "a[0].x"), lambda mgr: mgr.tensor_t(np.zeros(4, "V16"))),
        ((BUFFER.format("vec2"), "a[0].x"), lambda mgr: mgr.zeros(4, np.complex64)),
        ((BUFFER.format("vec3"), "a[0].x"), lambda mgr: mgr.zeros((4, 4))),
        ((UNIFORM.format("float x; int n;"), "x + float(n)"), lambda mgr: mgr.zeros(16, np.uint8)),
        ((UNIFORM.format("float a[4];"), "a[0]"), lambda mgr: mgr.zeros((4, 4))),
        ((BUFFER.format("mat2x3"), "a[0][0].x"), lambda mgr: mgr.zeros((4, 2, 4))),
        (IMAGE, image),
        (SAMPLED, lambda mgr: image(mgr).sampled(mgr.sampler())),
    ],
)
def test_contents_that_fit_are_silent_in_both(mgr, declared, make):
    spirv, kernel, out = made(mgr, declared)
    given = make(mgr)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel(given, out, groups=1)
        mgr.sequence().eval(kp.OpAlgoDispatch(mgr.algorithm([given, out], spirv, (1, 1, 1))))


def test_the_raw_bytes_of_vectors_count_as_vectors(mgr):
    twice = mgr.kernel(
        """#version 450
        layout(local_size_x = 1) in;
        layout(binding = 0) readonly buffer A { vec4 a[]; };
        layout(binding = 1) writeonly buffer B { vec4 b[]; };
        void main() { b[gl_GlobalInvocationID.x] = 2 * a[gl_GlobalInvocationID.x]; }
        """
    )
    data = np.arange(16, dtype=np.float32)
    result = twice(data.view("V16"), np.zeros(4, "V16"))
    np.testing.assert_array_equal(result.view(np.float32), 2 * data)
