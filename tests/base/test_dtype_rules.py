"""Arrays whose dtype contradicts the shader's: kernels refuse them, algorithms warn once, and each says how
to convert.
"""

from __future__ import annotations

import array as arrays
import warnings

import numpy as np
import pytest

import kompute_py as kp

COPY = """#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) readonly buffer A { FROM a[]; };
layout(set = 0, binding = 1) writeonly buffer B { TO b[]; };
void main() { uint i = gl_GlobalInvocationID.x; b[i] = TO(a[i]); }
"""
PUSHED = """#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) writeonly buffer B { float b[]; };
layout(push_constant) uniform P { MEMBERS };
layout(constant_id = 0) const float FACTOR = 1;
void main() { b[gl_GlobalInvocationID.x] = FACTOR * float(x); }
"""


def copier(source, target="float"):
    return kp.compile(COPY.replace("FROM", source).replace("TO", target))


@pytest.mark.parametrize(
    ("declared", "dtype", "fix"),
    [
        ("uint", np.float32, r"data\.astype\(np\.uint32\).*bits are meant, tensor\.view\(np\.uint32\)"),
        ("uint", np.int32, r"astype\(np\.uint32\)"),
        ("float", np.uint32, r"astype\(np\.float32\)"),
        ("float", np.float64, r"astype\(np\.float32\)"),
        ("int", np.int64, r"astype\(np\.int32\)"),
        ("uint", np.bool_, r"one byte in NumPy, and .* 32 bits: give .*astype\(np\.uint32\).*astype\(bool\)"),
        ("vec4", np.int32, r"astype\(np\.float32\)"),
    ],
)
def test_an_algorithm_warns_once_where_dtypes_contradict(mgr, declared, dtype, fix):
    spirv = copier(declared, "vec4" if declared == "vec4" else "float")
    given = mgr.tensor_t(np.ones(4, dtype))
    out = mgr.zeros(4)
    with pytest.warns(
        kp.KomputeWarning, match=rf"Binding 0 \('a'\) is {declared}\[\].*tensors\[0\].*{fix}"
    ) as found:
        mgr.algorithm([given, out], spirv, (4, 1, 1))
    assert len(found) == 1
    assert found[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mgr.algorithm([given, out], spirv, (4, 1, 1))  # once is enough


def test_what_kompute_converts_to_float32_warns_where_the_shader_reads_integers(mgr):
    given = mgr.tensor(np.array([1, 2], np.uint32))
    out = mgr.zeros(2)
    with pytest.warns(kp.KomputeWarning, match=r"mgr\.tensor converts to float32"):
        algorithm = mgr.algorithm([given, out], copier("uint"), (2, 1, 1))
    mgr.sequence().record(kp.OpSyncDevice([given])).record(kp.OpAlgoDispatch(algorithm)).eval()
    np.testing.assert_array_equal(out.read(), [1065353216, 1073741824])  # the bits, as in Kompute


@pytest.mark.parametrize(
    ("declared", "data"),
    [
        ("float", np.ones(4, np.float32)),
        ("uint", np.ones(4, np.uint32)),
        ("vec2", np.ones(4, np.complex64)),
        ("vec4", np.zeros(4, "V16")),
        ("vec2", np.zeros(4, np.dtype([("x", "f4"), ("y", "f4")]))),
    ],
)
def test_what_does_not_contradict_is_silent(mgr, declared, data):
    spirv = copier(declared, declared)
    out = mgr.tensor_t(np.zeros_like(data))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mgr.algorithm([mgr.tensor_t(data), out], spirv, (4, 1, 1))


def test_pixels_packed_into_integers_are_silent_and_flat_bytes_are_not(mgr):
    out = mgr.zeros((4, 4))
    spirv = copier("uint")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for shape, dtype in (((4, 4, 4), np.uint8), ((4, 4, 2), np.float16), ((4, 4, 2), np.int16)):
            mgr.algorithm([mgr.zeros(shape, dtype), out], spirv, (4, 1, 1))
    for shape, dtype in ((16, np.uint8), ((4, 3), np.uint16), ((4, 4), np.bool_)):
        with pytest.warns(kp.KomputeWarning, match=r"tensors\[0\]"):
            mgr.algorithm([mgr.zeros(shape, dtype), out], copier("uint"), (4, 1, 1))


def test_blocks_of_several_members_take_raw_bytes_and_any_of_their_kinds(mgr):
    spirv = kp.compile(
        """#version 450
        layout(local_size_x = 1) in;
        layout(set = 0, binding = 0) buffer A { float x; uint y; } a;
        layout(set = 0, binding = 1) buffer B { float u; float v; } b;
        void main() { a.y += uint(a.x); b.u += b.v; }"""
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mgr.algorithm([mgr.zeros(2), mgr.zeros(8, np.uint8)], spirv, (1, 1, 1))
        mgr.algorithm([mgr.zeros(2, np.uint32), mgr.zeros(2)], spirv, (1, 1, 1))
    with pytest.warns(kp.KomputeWarning, match=r"tensors\[1\]"):
        mgr.algorithm([mgr.zeros(2), mgr.zeros(2, np.int32)], spirv, (1, 1, 1))


@pytest.mark.parametrize(
    ("declared", "dtype", "fix", "without"),
    [
        ("float", np.float64, r"array\.astype\(np\.float32\)", "view"),
        ("uint", np.float32, r"array\.astype\(np\.uint32\).*array\.view\(np\.uint32\)", "tensor_t"),
        ("uint", np.bool_, r"array\.astype\(np\.uint32\).*astype\(bool\)", "view"),
    ],
)
def test_a_kernel_refuses_and_says_how_to_convert(mgr, declared, dtype, fix, without):
    kernel = mgr.kernel(COPY.replace("FROM", declared).replace("TO", "float"), name="copy")
    with pytest.raises(kp.ArgumentTypeError, match=rf"copy: 'a'.*{fix}") as raised:
        kernel(np.ones(4, dtype), np.zeros(4, np.float32))
    assert without not in str(raised.value)
    with pytest.raises(kp.ArgumentTypeError, match=r"mgr\.tensor_t\(data\.astype"):
        kernel(mgr.tensor_t(np.ones(4, dtype)), np.zeros(4, np.float32))


def test_lists_of_numbers_and_of_truth_values_are_converted(mgr):
    kernel = mgr.kernel(COPY.replace("FROM", "uint").replace("TO", "float"))
    np.testing.assert_array_equal(kernel([True, False, 3], np.zeros(3, np.float32)), [1, 0, 3])
    mask = np.array([True, False, True])
    np.testing.assert_array_equal(kernel(mask.astype(np.uint32), np.zeros(3, np.float32)), mask)
    kernel = mgr.kernel(COPY.replace("FROM", "float").replace("TO", "float"), name="copy")
    for beyond in (1e300, -1e300, 10**40):
        with pytest.raises(kp.InvalidArgumentError, match=r"copy: 'a'.*holds float32"):
            kernel([1, beyond], np.zeros(2, np.float32))
    np.testing.assert_array_equal(
        kernel([float("inf"), 0.1], np.zeros(2, np.float32)), np.float32([np.inf, 0.1])
    )


@pytest.mark.parametrize(
    ("members", "data", "bits"),
    [
        ("float x;", np.array([2], np.int32), 2.8e-45),
        ("float x;", np.array([2], np.uint32), 2.8e-45),
        ("float x; float y;", np.array([1.0]), 0.0),  # float64
        ("int x;", np.array([1], np.float32), 1065353216),
        ("float x; int n;", np.array([1, 2], np.float32), 1),
        ("float x;", np.ones(4, np.bool_), 2.36943e-38),
    ],
)
def test_arrays_of_another_dtype_that_go_in_bit_by_bit_warn_once(mgr, members, data, bits):
    spirv = kp.compile(PUSHED.replace("MEMBERS", members))
    out = mgr.zeros(1)
    with pytest.warns(
        kp.KomputeWarning, match=r"push_consts are an array of .*bit by bit.*Give a list"
    ) as found:
        algorithm = mgr.algorithm([out], spirv, (1, 1, 1), [], data)
    assert len(found) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        operation = kp.OpAlgoDispatch(algorithm, data)
    mgr.sequence().eval(operation)
    # As in Kompute; drivers may flush denormal numbers to zero.
    np.testing.assert_allclose(out.read(), [bits], rtol=0.01, atol=1e-44)


@pytest.mark.parametrize(
    ("members", "data"),
    [
        ("float x;", np.array([2], np.float32)), ("int x;", np.array([2], np.uint32)),
        ("int x;", np.array([2**31 - 1], np.uint32)), ("uint x;", np.array([0], np.int32)),
        ("uint n; int x;", np.array([1, -1], np.int32)),
        ("float x; int n;", np.frombuffer(bytes(8), np.uint8)), ("float x; int n;", bytes(8)),
        ("float x; float y;", [1, 2]),
    ],
)  # fmt: skip
def test_arrays_of_the_right_dtype_and_bytes_do_not_warn(mgr, members, data):
    spirv = kp.compile(PUSHED.replace("MEMBERS", members))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mgr.algorithm([mgr.zeros(1)], spirv, (1, 1, 1), [2.0], data)


@pytest.mark.parametrize(
    ("members", "data", "named"),
    [
        ("uint x;", np.array([-1], np.int32), "x"),
        ("int x;", np.array([2**31], np.uint32), "x"),
        ("int x; uint n;", np.array([-1, -2], np.int32), "n"),
        ("uint64_t x;", np.array([-1], np.int64), "x"),
    ],
)
def test_integers_that_the_other_sign_does_not_hold_warn_once_they_are_given(
    mgr, needs, members, data, named
):
    source = PUSHED.replace("MEMBERS", members)
    if "64" in members:
        needs(mgr, "shaderInt64")
        source = source.replace(
            "450", "450\n#extension GL_EXT_shader_explicit_arithmetic_types_int64 : enable"
        )
    algorithm = mgr.algorithm([mgr.zeros(1)], kp.compile(source), (1, 1, 1), [], [1] * len(data))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kp.OpAlgoDispatch(algorithm, np.abs(data // 2))
    with pytest.warns(kp.KomputeWarning, match=rf"bit by bit, and the shader reads .* in '{named}'"):
        kp.OpAlgoDispatch(algorithm, data)


@pytest.mark.parametrize(
    ("declared", "dtype", "largest", "beyond", "says"),
    [
        ("uint", np.int32, 2**31 - 1, -5, "negative numbers are larger by 4294967296"),
        ("int", np.uint32, 2**31 - 1, 2**32 - 5, "numbers from there on are negative"),
    ],
)
def test_the_warning_about_a_sign_tells_what_the_shader_finds(mgr, declared, dtype, largest, beyond, says):
    spirv = kp.compile(COPY.replace("FROM", declared).replace("TO", declared))
    given, out = (
        mgr.tensor_t(np.array([0, largest, beyond], dtype)),
        mgr.tensor_t(np.zeros(3, declared + "32")),
    )
    with pytest.warns(kp.KomputeWarning, match=f"numbers from 0 to {largest} are the same, {says} there"):
        algorithm = mgr.algorithm([given, out], spirv, (3, 1, 1))
    mgr.sequence().eval(kp.OpAlgoDispatch(algorithm))
    found = out.read().astype(np.int64)
    expected = beyond + 2**32 if beyond < 0 else beyond - 2**32
    np.testing.assert_array_equal(found, [0, largest, expected])


def test_specialization_constants_warn_as_well(mgr):
    spirv = kp.compile(PUSHED.replace("MEMBERS", "float x;"))
    out = mgr.zeros(1)
    with pytest.warns(
        kp.KomputeWarning, match=r"array of int32.*constant 0 \(FACTOR\) as float32.*Give a list"
    ):
        mgr.algorithm([out], spirv, (1, 1, 1), np.array([2], np.int32), [1.0])
    text = PUSHED.replace("MEMBERS", "float x;").replace("const float FACTOR", "const uint FACTOR")
    spirv_of_uint = kp.compile(text.replace("= FACTOR", "= float(FACTOR)"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mgr.algorithm([out], spirv_of_uint, (1, 1, 1), np.array([7], np.int32), [1.0])
    with pytest.warns(kp.KomputeWarning, match=r"array of int32.*constant 0 \(FACTOR\) as uint32"):
        mgr.algorithm([out], spirv_of_uint, (1, 1, 1), np.array([-7], np.int32), [1.0])
    algorithm = mgr.algorithm([out], spirv, (1, 1, 1), [2], [3.0])
    mgr.sequence().eval(kp.OpAlgoDispatch(algorithm))
    assert out.read() == [6]


# -- one value into a tensor ---------------------------------------------------------------------------------


def put(mgr, how, dtype, value):
    if how == "full":
        return mgr.full(3, value, dtype)
    t = mgr.zeros(3, dtype)
    if how == "fill":
        t.fill(value)
    elif how == "OpFill":
        mgr.sequence().eval(kp.OpFill([t], value))
    else:
        t.write([value] * 3)
    return t


PUTS = ("full", "fill", "OpFill", "write")


@pytest.mark.parametrize("how", PUTS)
@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (np.float32, 1e300), (np.float32, -1e300), (np.float16, 70000), (np.float16, 1e5),
        (np.complex64, 1e300 + 1j), (np.uint8, 300), (np.int32, 2**31), (np.bool_, 2),
    ],
)  # fmt: skip
def test_values_beyond_the_dtype_are_refused_everywhere(mgr, how, dtype, value):
    with pytest.raises(kp.InvalidArgumentError, match=r"dtype|range"):
        put(mgr, how, dtype, value)


@pytest.mark.parametrize("how", PUTS)
@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (np.float32, 0.1), (np.float32, float("inf")), (np.float32, float("nan")),
        (np.float32, np.float64(3.4e38)), (np.float16, 65504), (np.float64, 1e300), (np.int32, -5),
        (np.bool_, True), (np.complex64, 1 + 2j),
    ],
)  # fmt: skip
def test_values_within_are_rounded(mgr, how, dtype, value):
    np.testing.assert_array_equal(put(mgr, how, dtype, value).read(), np.full(3, value, dtype))


@pytest.mark.parametrize(
    "value", [arrays.array("f", [1, 2]), arrays.array("f", [1]), [1.0], np.ones(2), (1.0, 2.0)]
)
def test_a_fill_takes_one_value_and_says_so(mgr, value):
    t = mgr.zeros(4)
    for use in (t.fill, lambda v: kp.OpFill([t], v)):
        with pytest.raises(kp.ArgumentTypeError, match="is not a single element: give a scalar"):
            use(value)
    t.fill(np.array(2.0)).wait()
    np.testing.assert_array_equal(t.read(), np.full(4, 2))
