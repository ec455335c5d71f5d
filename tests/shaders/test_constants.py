"""Packing of push and specialization constants: pure, from layouts as the reflection gives them."""

from __future__ import annotations

import struct

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._shaders.constants import SpecConstants
from kompute_py._shaders.push import Block
from kompute_py.errors import ArgumentTypeError, InvalidArgumentError

pytestmark = pytest.mark.own_driver  # none at all


def member(name, kind, offset, **more):
    layout = {
        "name": name, "type_name": "", "kind": kind, "rows": 1, "columns": 1, "row_major": False,
        "hlsl_matrix": False, "matrix_stride": 0,
        "array": [], "array_strides": [], "offset": offset, "size": 0, "members": [],
    }  # fmt: skip
    return {**layout, **more}


def block(size, *members, offset=0):
    return Block(
        {
            "offset": offset, "size": size, "name": "", "block_name": "Params",
            "layout": member("", "struct", 0, members=members),
        }
    )  # fmt: skip


MIXED = block(
    16, member("scale", "float32", 0), member("count", "uint32", 4), member("shift", "int32", 8),
    member("x", "float32", 12),
)  # fmt: skip


def test_each_value_gets_the_declared_type():
    assert MIXED.pack([0.5, 7, -3, 2]) == struct.pack("<fIif", 0.5, 7, -3, 2)
    assert MIXED.pack((0.5, 7.0, -3.0, 2)) == struct.pack("<fIif", 0.5, 7, -3, 2)
    assert MIXED.pack(np.array([0.5, 7, -3, 2])) == struct.pack("<fIif", 0.5, 7, -3, 2)
    assert MIXED.pack([np.float32(0.5), np.int64(7), np.int8(-3), True]) == struct.pack(
        "<fIif", 0.5, 7, -3, 1
    )


def test_an_array_of_the_blocks_size_goes_in_bit_by_bit():
    assert MIXED.pack(np.array([7, 8, 9, 10], np.int32)) == struct.pack("<4i", 7, 8, 9, 10)
    assert MIXED.pack(np.array([7, 8, 9, 10], ">i4")) == struct.pack("<4i", 7, 8, 9, 10)
    record = np.array((0.5, 7, -3, 2.0), dtype=[("a", "f4"), ("b", "u4"), ("c", "i4"), ("d", "f4")])
    assert MIXED.pack(record) == struct.pack("<fIif", 0.5, 7, -3, 2)
    raw = bytes(range(16))
    assert MIXED.pack(raw) == MIXED.pack(bytearray(raw)) == MIXED.pack(memoryview(raw)) == raw


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, -1, 0, 0], "push_consts: count is -1, out of range .*uint32"),
        ([1, 2**32, 0, 0], "out of range"),
        ([1, 0, 2**31, 0], "out of range.*int32"),
        ([1, 1.5, 0, 0], "1.5.*integers only"),
        ([1, float("nan"), 0, 0], "integers only"),
        ([1, float("inf"), 0, 0], "integers only"),
        ([1e39, 0, 0, 0], "out of range of the shader's float32"),
        ([10**400, 0, 0, 0], "out of range"),
        ([1, 2, 3], r"3 values \(12 bytes\).*4 \(16 bytes\): scale, count, shift, x"),
        ([1, 2, 3, 4, 5], r"5 values \(20 bytes\).*\(16 bytes\)"),
        (b"abc", "3 bytes.*16 bytes"),
        ({"a": 1}, "'a' cannot be set: .* scale, count, shift, x"),
    ],
)
def test_what_does_not_fit_is_named(values, message):
    with pytest.raises(InvalidArgumentError, match=message):
        MIXED.pack(values)


@pytest.mark.parametrize(
    "values",
    [["a", 1, 2, 3], [None, 1, 2, 3], [1j, 1, 2, 3], "abcd", object(), np.zeros(3, np.complex64)],
)
def test_what_is_no_number(values):
    with pytest.raises(ArgumentTypeError):
        MIXED.pack(values)


def test_floats_round_and_keep_nan_and_infinity():
    floats = block(12, member("v", "float32", 0, rows=3))
    got = np.frombuffer(floats.pack(np.array([0.1, np.nan, -np.inf])), np.float32)
    np.testing.assert_array_equal(got, np.array([0.1, np.nan, -np.inf], np.float32))
    assert floats.component_names == ["v[0]", "v[1]", "v[2]"]


def test_a_single_number_is_a_list_of_one():
    one = block(4, member("n", "uint32", 0))
    assert one.pack(3) == one.pack([3]) == one.pack(np.int64(3)) == struct.pack("<I", 3)


def test_padding_is_respected():
    padded = block(
        32, member("a", "float32", 0), member("v", "float32", 16, rows=3), member("n", "uint32", 28)
    )
    assert padded.pack([1, 2, 3, 4, 5]) == struct.pack("<f12x3fI", 1, 2, 3, 4, 5)
    assert (
        padded.pack([1, [2, 3, 4], 5])
        == padded.pack([1, np.array([2, 3, 4]), 5])
        == padded.pack([1, 2, 3, 4, 5])
    )


def test_a_block_that_does_not_start_at_zero():
    late = block(8, member("a", "uint32", 16), member("b", "float32", 20), offset=16)
    assert late.pack([1, 2]) == struct.pack("<If", 1, 2)


def test_matrices_in_the_order_of_their_offsets():
    columns = block(24, member("m", "float32", 0, rows=2, columns=3, matrix_stride=8))
    assert columns.pack(range(1, 7)) == struct.pack("<6f", *range(1, 7))
    assert columns.component_names[:3] == ["m[0][0]", "m[0][1]", "m[1][0]"]
    rows = block(32, member("m", "float32", 0, rows=2, columns=3, matrix_stride=16, row_major=True))
    assert rows.pack([1, 2, 3, 4, 5, 6]) == struct.pack("<3f4x3f4x", 1, 2, 3, 4, 5, 6)


def test_arrays_and_structs():
    point = [member("at", "float32", 0, rows=2), member("id", "uint32", 8)]
    nested = block(
        40, member("n", "int32", 0), member("p", "struct", 8, array=[2], array_strides=[16], members=point)
    )
    assert nested.component_names == [
        "n", "p[0].at[0]", "p[0].at[1]", "p[0].id", "p[1].at[0]", "p[1].at[1]", "p[1].id",
    ]  # fmt: skip
    assert nested.pack([-1, 1, 2, 3, 4, 5, 6]) == struct.pack("<i4xffI4xffI4x", -1, 1, 2, 3, 4, 5, 6)
    table = block(24, member("t", "uint32", 0, array=[2, 3], array_strides=[12, 4]))
    assert table.pack([[1, 2, 3], [4, 5, 6]]) == struct.pack("<6I", 1, 2, 3, 4, 5, 6)
    assert table.pack(np.arange(6)) == struct.pack("<6I", *range(6))


@pytest.mark.parametrize(
    ("kind", "code", "low", "high"),
    [
        ("int8", "b", -128, 127), ("uint8", "B", 0, 255), ("int16", "h", -(2**15), 2**15 - 1),
        ("uint16", "H", 0, 2**16 - 1),
        ("int32", "i", -(2**31), 2**31 - 1), ("uint32", "I", 0, 2**32 - 1),
        ("int64", "q", -(2**63), 2**63 - 1),
        ("uint64", "Q", 0, 2**64 - 1), ("pointer", "Q", 0, 2**64 - 1), ("bool", "I", 0, 1),
    ],
)  # fmt: skip
def test_integer_limits(kind, code, low, high):
    size = struct.calcsize(code)
    one = block(size, member("n", kind, 0))
    for value in (low, high):
        assert one.pack([value]) == struct.pack("<" + code, value)
    for value in (low - 1, high + 1):
        with pytest.raises(InvalidArgumentError, match="out of range"):
            one.pack([value])


@pytest.mark.parametrize(("kind", "code"), [("float16", "e"), ("float32", "f"), ("float64", "d")])
def test_float_types(kind, code):
    one = block(struct.calcsize(code), member("x", kind, 0))
    assert one.pack([0.1]) == struct.pack("<" + code, 0.1)


SPEC = SpecConstants(
    [
        {"id": 0, "name": "tile", "type": "uint32", "default": 1},
        {"id": 1, "name": "alpha", "type": "float32", "default": 1.0},
        {"id": 2, "name": "flag", "type": "bool", "default": False},
        {"id": 3, "name": "big", "type": "float64", "default": 0.0},
    ]
)


def unpack(packed):
    return {identity: packed.data[offset : offset + size] for identity, offset, size in packed.entries}


def test_specialization_by_position():
    packed = SPEC.pack([16, 0.5, True])
    assert unpack(packed) == {0: struct.pack("<I", 16), 1: struct.pack("<f", 0.5), 2: struct.pack("<I", 1)}
    assert packed.surplus == 0


def test_specialization_by_id_or_name():
    assert unpack(SPEC.pack({"alpha": 2, 0: 4})) == {1: struct.pack("<f", 2), 0: struct.pack("<I", 4)}
    for unknown in (9, "beta"):
        with pytest.raises(InvalidArgumentError, match=r"0 \(tile\), 1 \(alpha\), 2 \(flag\), 3 \(big\)"):
            SPEC.pack({unknown: 1})


def test_wide_constants_are_aligned():
    packed = SPEC.pack([1, 2, 0, 4.5])
    assert packed.entries[3][1] % 8 == 0
    assert unpack(packed)[3] == struct.pack("<d", 4.5)


def test_arrays_of_the_constants_size_go_in_bit_by_bit():
    bits = np.array([1, 0x3F800000], np.int32)
    assert unpack(SPEC.pack(bits)) == {0: struct.pack("<I", 1), 1: struct.pack("<f", 1.0)}
    assert unpack(SPEC.pack(np.array([2.0, 3.0]))) == {0: struct.pack("<I", 2), 1: struct.pack("<f", 3.0)}


def test_surplus_and_gaps():
    assert SPEC.pack([1, 2, 0, 0, 5, 6]).surplus == 2
    gap = SpecConstants(
        [
            {"id": 0, "name": "", "type": "int32", "default": 0},
            {"id": 5, "name": "n", "type": "int32", "default": 0},
        ]
    )
    with pytest.raises(InvalidArgumentError, match=r"id 1, but the shader has the ids 0, 5 \(n\)"):
        gap.pack([1, 2])
    assert unpack(gap.pack({5: 2, 0: 1})) == {5: struct.pack("<i", 2), 0: struct.pack("<i", 1)}
    assert SpecConstants([]).pack([1]).surplus == 1


@pytest.mark.parametrize("values", [[-1], [1.5], [2**32], {"flag": 2}])
def test_specialization_out_of_range(values):
    with pytest.raises(InvalidArgumentError):
        SPEC.pack(values)


@pytest.mark.parametrize("values", ["ab", b"abcd", ["x"], np.array(["x"])])
def test_specialization_of_wrong_types(values):
    with pytest.raises(ArgumentTypeError):
        SPEC.pack(values)


PUSH_STRUCT = """#version 450
layout(local_size_x = 1) in;
layout(binding = 0) buffer B { float b[]; };
layout(push_constant) uniform P { vec3 place; float mass; uint count; float factors[2]; };
void main() { b[0] = place.x; b[1] = place.y; b[2] = place.z; b[3] = mass; b[4] = float(count);
b[5] = factors[0]; b[6] = factors[1]; }
"""
FITTING = [
    [("place", "f4", 3), ("mass", "f4"), ("count", "u4"), ("factors", "f4", 2)],
    [("x", "f4"), ("yz", "f4", 2), ("m", "f4"), ("n", "i4"), ("f", [("a", "f4"), ("b", "f4")])],
]
MISFITS = [
    [("mass", "f4"), ("place", "f4", 3), ("count", "u4"), ("factors", "f4", 2)],  # in another order
    [("place", "f4", 3), ("mass", "f4"), ("factors", "f4", 2), ("count", "u4")],
    [("place", "f4", 3), ("mass", "f4"), ("count", "f4"), ("factors", "f4", 2)],  # another dtype
    [("place", "f8"), ("mass", "f8"), ("count", "u4"), ("factors", "f4", 2)],
    [("place", "f4", 3), ("mass", "f4"), ("factors", "u4"), ("count", "f4", 2)],  # names exchanged
]


@pytest.mark.parametrize("fields", FITTING, ids=str)
def test_structured_push_constants_that_fit_go_in(mgr, fields):
    b = mgr.zeros(8)
    values = np.frombuffer(struct.pack("<4fI2f", 1, 2, 3, 4, 5, 6, 7), np.dtype(fields))
    algorithm = mgr.algorithm([b], kp.compile(PUSH_STRUCT), (1, 1, 1), [], values)
    mgr.sequence().record(kp.OpAlgoDispatch(algorithm)).eval()
    np.testing.assert_array_equal(b.read()[:7], [1, 2, 3, 4, 5, 6, 7])


@pytest.mark.parametrize("fields", MISFITS, ids=str)
def test_structured_push_constants_that_lie_elsewhere_are_refused(mgr, fields):
    b, spirv = mgr.zeros(8), kp.compile(PUSH_STRUCT)
    values = np.zeros(1, np.dtype(fields))
    with pytest.raises(
        kp.InvalidArgumentError, match=r"(?s)layout of the shader's block.*float32\[3\]|vec3 place"
    ) as caught:
        mgr.algorithm([b], spirv, (1, 1, 1), [], values)
    for name in ("place", "mass", "count", "factors", *(name for name, *_ in fields)):
        assert name in str(caught.value)
    algorithm = mgr.algorithm([b], spirv, (1, 1, 1), [], np.zeros(7, np.uint32).tobytes())
    for use in (
        lambda: kp.OpAlgoDispatch(algorithm, values),
        lambda: setattr(algorithm, "push_consts", values),
    ):
        with pytest.raises(kp.InvalidArgumentError, match="layout of the shader's block"):
            use()


def test_structured_specialization_constants_are_refused():
    with pytest.raises(kp.ArgumentTypeError, match=r"spec_consts have dtype.*\{name: value\}"):
        SpecConstants([{"id": 0, "type": "uint32", "name": "n", "default": 1}]).pack(
            np.zeros(1, [("n", "u4")])
        )
