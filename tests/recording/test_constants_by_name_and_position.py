"""Push and specialization constants: every way to give them follows the same rules, with the same bytes or
the same error.

One table of values and declared types goes through all the ways: by position (`mgr.algorithm`,
`OpAlgoDispatch`, the setter), by name (calls of kernels, `bind`, `set`, `specialize`) and by id. The
reference is NumPy's conversion.
"""

from __future__ import annotations

import decimal
import fractions
import math
import warnings

import numpy as np
import pytest

import kompute_py as kp

SCALAR = """#version 450
EXTENSION
layout(local_size_x = 1) in;
layout(constant_id = 0) const SPEC X = SPEC(0);
layout(push_constant) uniform P { TYPE x; };
layout(binding = 0) buffer Out { uvec2 pushed, special; };
void main() { pushed = BITS(x); special = BITS(TYPE(X)); }
"""
# GLSL's type -> (NumPy's, how the shader shows its bits, feature, extension).
TYPES = {
    "int": (np.int32, "uvec2(uint(V), 0)", "", ""),
    "uint": (np.uint32, "uvec2(V, 0)", "", ""),
    "float": (np.float32, "uvec2(floatBitsToUint(V), 0)", "", ""),
    "double": (np.float64, "unpackDouble2x32(V)", "shaderFloat64", ""),
    "int64_t": (
        np.int64,
        "unpackUint2x32(uint64_t(V))",
        "shaderInt64",
        "#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require",
    ),
    "uint64_t": (
        np.uint64,
        "unpackUint2x32(V)",
        "shaderInt64",
        "#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require",
    ),
}  # fmt: skip


class Odd:
    """A number only by what it says of itself."""

    def __float__(self):
        raise ZeroDivisionError("no")


NUMBERS = [
    *(0, 1, 7, -1, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32 - 1, 2**32, 2**63, -(2**63), 2**64 - 1,
    2**64, 10**400),
    *(0.0, -0.0, 1.0, 0.1, 1.5, -3.0, 16777217.0, 1e-46, 3.4e38, 1e39, 4294967296.0, math.inf, -math.inf,
    math.nan),
    *(True, False, np.bool_(True), np.int8(-3), np.uint16(9), np.int64(3), np.uint64(2**63), np.float16(0.1)),
    *(np.float32(0.1), np.float64(0.1), np.array(5), np.array([5]), np.array([[0.5]]), np.array(0.25, ">f4")),
    *(fractions.Fraction(1, 2), fractions.Fraction(4, 2), decimal.Decimal("2"), decimal.Decimal("0.1")),
]  # fmt: skip
NO_NUMBERS = [
    *("1", b"1", bytearray(b"1"), None, 1j, np.complex64(1), np.str_("1"), np.datetime64(1, "D"),
    np.timedelta64(1, "s")),
    *(object(), Odd(), {}, {"x": 1}, (), [1], [1, 2], np.array([1, 2]), np.zeros(0), np.array("1"),
    np.array([None])),
    *(np.ma.masked, np.ma.masked_array([1], [True]), range(1), {1}, np.zeros((), [("a", "f4")])[()]),
]  # fmt: skip


def wanted(value, dtype):
    """The bits that a value has as the declared type, by NumPy; None if it does not fit."""
    number = value.reshape(())[()] if isinstance(value, np.ndarray) else value
    if isinstance(number, (fractions.Fraction, decimal.Decimal)):
        number = float(number)  # they are exact here, but for 0.1, which rounds
    number = number.item() if isinstance(number, np.generic) else number
    if np.dtype(dtype).kind == "f":
        try:
            with np.errstate(over="ignore", under="ignore"):
                made = np.array(float(number)).astype(dtype)
        except OverflowError:
            return None
        if np.isinf(made) and not math.isinf(number):
            return None
    else:
        if isinstance(number, float) and not number.is_integer():
            return None
        if not np.iinfo(dtype).min <= int(number) <= np.iinfo(dtype).max:
            return None
        made = np.array(int(number), dtype)
    return made.tobytes().ljust(8, b"\0")


@pytest.fixture
def ways(mgr, needs, request):
    """(NumPy's type, each way to give one constant as a function that returns the bits in the shader)."""
    kind = request.param
    dtype, bits, feature, extension = TYPES[kind]
    if feature:
        needs(mgr, feature)
    source = SCALAR.replace("EXTENSION", extension).replace("SPEC", kind).replace("TYPE", kind)
    source = source.replace("BITS(x)", bits.replace("V", "x"))
    source = source.replace(f"BITS({kind}(X))", bits.replace("V", f"{kind}(X)"))
    spirv = kp.compile(source)
    out = mgr.tensor_t(np.zeros(4, np.uint32))
    kernel = mgr.kernel(spirv, name="k")
    algorithm = mgr.algorithm([out], spirv, (1, 1, 1), push_consts=[0])
    operation = kernel.bind(out, groups=1, x=0)

    def pushed(operation):
        out.fill(0)
        mgr.sequence().eval(operation)
        return out.read()[:2].tobytes()

    def special(make):
        made = make()
        out.fill(0)
        if isinstance(made, kp.Kernel):
            made(out, groups=1, x=0)
        else:
            mgr.sequence().eval(kp.OpAlgoDispatch(made))
        return out.read()[2:].tobytes()

    def set_push(value):
        algorithm.push_consts = [value]
        return pushed(kp.OpAlgoDispatch(algorithm))

    def called(value):
        out.fill(0)
        kernel(out, groups=1, x=value)
        return out.read()[:2].tobytes()

    def rebuilt(value):
        algorithm.rebuild(spec_consts=[value])
        return algorithm

    return dtype, {
        "algorithm": lambda v: pushed(kp.OpAlgoDispatch(mgr.algorithm([out], spirv, (1, 1, 1),
        push_consts=[v]))),
        "dispatch": lambda v: pushed(kp.OpAlgoDispatch(algorithm, [v])),
        "dispatch, a tuple": lambda v: pushed(kp.OpAlgoDispatch(algorithm, (v,))),
        "dispatch, a generator": lambda v: pushed(kp.OpAlgoDispatch(algorithm, (each for each in [v]))),
        "setter": set_push,
        "call": called,
        "push=": lambda v: (out.fill(0), kernel(out, groups=1, push={"x": v}), out.read()[:2].tobytes())[2],
        "bind": lambda v: pushed(kernel.bind(out, groups=1, x=v)),
        "set": lambda v: pushed(operation.set(x=v)),
        "spec by position": lambda v: special(lambda: mgr.algorithm([out], spirv, (1, 1, 1), [v])),
        "spec by id": lambda v: special(lambda: mgr.algorithm([out], spirv, (1, 1, 1), {0: v})),
        "spec by name": lambda v: special(lambda: mgr.algorithm([out], spirv, (1, 1, 1), {"X": v})),
        "rebuild": lambda v: special(lambda: rebuilt(v)),
        "specialize": lambda v: special(lambda: kernel.specialize(X=v)),
        "specialize by id": lambda v: special(lambda: kernel.specialize({0: v})),
    }  # fmt: skip


def said(way, value):
    """(class, sentence without the constant's name) of the error that a way raises."""
    with pytest.raises(kp.KomputeError) as caught:
        way(value)
    text = str(caught.value)
    return type(caught.value), text[text.index(" is ") :]


@pytest.mark.parametrize("ways", TYPES, indirect=True)
def test_each_way_gives_the_same_bits_or_the_same_error(ways):
    dtype, each = ways
    fitted = refused = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for value in NUMBERS:
            bits = wanted(value, dtype)
            if bits is None:
                refused += 1
                sentences = {said(way, value) for way in each.values()}
                assert len(sentences) == 1, (value, sentences)
                ((error, text),) = sentences
                assert error is kp.InvalidArgumentError, (value, text)
                assert f"shader's {np.dtype(dtype)}" in text or "integers only" in text
            else:
                fitted += 1
                found = {name: way(value) for name, way in each.items()}
                if dtype is np.float32 and 0 < abs(np.frombuffer(bits, dtype)[0]) < 1e-38:
                    continue  # a driver may flush it to zero
                assert found == dict.fromkeys(found, bits), value
    assert fitted >= 10 and refused >= 1


@pytest.mark.parametrize("ways", ["uint", "float"], indirect=True)
def test_what_is_no_number_gives_the_same_error_in_each_way(ways):
    _, each = ways
    for value in NO_NUMBERS:
        sentences = {said(way, value) for way in each.values()}
        assert len(sentences) == 1, (value, sentences)
        ((error, _),) = sentences
        sized = isinstance(value, np.ndarray) and value.size != 1
        assert error is (kp.InvalidArgumentError if sized else kp.ArgumentTypeError), value


def test_a_truth_value_is_0_or_1(mgr):
    """Of specialization constants.

    In a block a bool of GLSL is a uint, of which every value but 0 is true.
    """
    source = """#version 450
        layout(local_size_x = 1) in;
        layout(constant_id = 0) const bool X = false;
        layout(binding = 0) buffer Out { uint o; };
        void main() { o = X ? 7 : 8; }
        """
    out, kernel = mgr.tensor_t(np.zeros(1, np.uint32)), mgr.kernel(source, name="k")
    spirv = kernel.to_spirv()
    makers = (
        lambda v: kernel.specialize(X=v).spec_constants["X"],
        lambda v: mgr.algorithm([out], spirv, (1, 1, 1), [v]).spec_consts[0],
        lambda v: mgr.algorithm([out], spirv, (1, 1, 1), {"X": v}).spec_consts[0],
    )
    for value in (0, 1, False, True, 1.0, np.bool_(True), np.array([1]), np.uint8(0)):
        assert [make(value) for make in makers] == [bool(value)] * 3
    for value in (2, -1, 0.5, 2**32, math.nan, np.int8(3)):
        assert len({said(make, value) for make in makers}) == 1
    kernel.specialize(X=np.bool_(True))(out, groups=1)
    assert out.read()[0] == 7


MEMBERS = """#version 450
layout(local_size_x = 1) in;
struct S { vec2 at; int id; };
layout(push_constant) uniform P { float a; vec3 v; mat2x3 m; int t[3]; S s[2]; bool b; };
layout(binding = 0) buffer Out { float o[]; };
void main() {
    o[0] = a; o[1] = v.x; o[2] = v.y; o[3] = v.z;
    for (int c = 0; c < 2; ++c) for (int r = 0; r < 3; ++r) o[4 + 2 * r + c] = m[c][r];
    for (int i = 0; i < 3; ++i) o[10 + i] = float(t[i]);
    for (int i = 0; i < 2; ++i) { o[13 + 3 * i] = s[i].at.x; o[14 + 3 * i] = s[i].at.y;
    o[15 + 3 * i] = float(s[i].id); }
    o[19] = b ? 1.0 : 0.0;
}
"""
RECORD = np.array([((5, 6), 7), ((8, 9), 10)], [("at", "f4", 2), ("id", "i4")])
GOOD = {
    "a": 0.5,
    "v": (1, 2, 3),
    "m": [[1, 2], [3, 4], [5, 6]],  # three rows of two, whatever their order in memory
    "t": [-1, 0, 1],
    "s": [{"at": (5, 6), "id": 7}, ((8, 9), 10)],
    "b": True,
}
SHOWN = [0.5, 1, 2, 3, 1, 2, 3, 4, 5, 6, -1, 0, 1, 5, 6, 7, 8, 9, 10, 1]


@pytest.fixture
def members(mgr):
    """Two ways to give all members, each a function that returns what the shader shows."""
    spirv = kp.compile(MEMBERS)
    out = mgr.zeros(20)
    kernel, algorithm = mgr.kernel(spirv, name="k"), mgr.algorithm([out], spirv, (1, 1, 1))

    def by_name(values):
        kernel(out, groups=1, **values)
        return out.read()

    def by_position(values):
        mgr.sequence().eval(kp.OpAlgoDispatch(algorithm, list(values.values())))
        return out.read()

    return by_name, by_position


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("a", np.float64(0.5)), ("a", np.array([0.5])), ("v", np.arange(1, 4)),
        ("v", (each for each in (1, 2, 3))), ("v", range(1, 4)), ("v", memoryview(np.float32([1, 2, 3]))),
        ("m", np.arange(1, 7).reshape(3, 2)), ("m", np.asfortranarray(np.arange(1.0, 7).reshape(3, 2))),
        ("m", [np.array([1, 2]), (3, 4), range(5, 7)]), ("t", np.array([-1, 0, 1], np.int8)),
        ("t", np.array([-1, 0, 1], object)), ("s", RECORD), ("s", [RECORD[0], {"id": 10, "at": [8, 9]}]),
        ("b", 1.0),
    ],
)  # fmt: skip
def test_members_by_name_and_by_position(members, mgr, name, value):
    values = list(value) if hasattr(value, "__next__") else value
    for way in members:
        given = (each for each in values) if hasattr(value, "__next__") else value
        np.testing.assert_array_equal(way({**GOOD, name: given}), SHOWN)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("a", "x", kp.ArgumentTypeError),
        ("a", [1, 2], kp.ArgumentTypeError),
        ("a", np.zeros(2), kp.InvalidArgumentError),
        ("v", (1, 2), kp.InvalidArgumentError),
        ("v", 1.0, kp.ArgumentTypeError),
        ("v", {1, 2, 3}, kp.ArgumentTypeError),
        ("v", "123", kp.ArgumentTypeError),
        ("v", b"123", kp.ArgumentTypeError),
        ("v", bytearray(b"123"), kp.ArgumentTypeError),
        ("v", np.zeros(3, complex), kp.ArgumentTypeError),
        ("v", np.array(["1", "2", "3"]), kp.ArgumentTypeError),
        ("v", iter(range(10**9)), kp.InvalidArgumentError),
        ("v", np.ma.masked_array([1, 2, 3], [False, True, False]), kp.ArgumentTypeError),
        ("v", [1, np.ma.masked, 3], kp.ArgumentTypeError),
        ("m", np.zeros((2, 3)), kp.InvalidArgumentError),
        ("m", [[1, 2], [3, 4], [5]], kp.InvalidArgumentError),
        ("m", [1, 2, 3, 4, 5, 6], kp.InvalidArgumentError),
        ("t", [1, 2.5, 3], kp.InvalidArgumentError),
        ("t", [1, 2, 2**31], kp.InvalidArgumentError),
        ("s", [{"at": (1, 2), "id": 3}], kp.InvalidArgumentError),
        ("s", [{"at": (1, 2), "ident": 3}] * 2, kp.InvalidArgumentError),
        ("s", [{"at": (1, 2)}] * 2, kp.InvalidArgumentError),
        ("s", [((1, 2), 3, 4)] * 2, kp.InvalidArgumentError),
        ("s", [((1, 2), 0.5)] * 2, kp.InvalidArgumentError),
        ("b", None, kp.ArgumentTypeError),
    ],
)
def test_members_that_do_not_fit_give_one_error(members, name, value, error):
    found = set()
    for way, who in zip(members, ("k", "push_consts"), strict=True):
        with pytest.raises(error) as caught:
            way({**GOOD, name: value})
        text = str(caught.value)
        assert text.startswith(f"{who}: {name}"), text
        if not hasattr(value, "__next__"):
            found.add((type(caught.value), text.removeprefix(who)))
    assert len(found) <= 1, found


def test_flat_numbers_fill_the_scalars_in_the_order_of_their_offsets(mgr):
    """A list, and any array, whatever its shape: an array that has the block's bytes goes in as it is in
    memory.
    """
    spirv = kp.compile(
        """#version 450
        layout(local_size_x = 1) in;
        layout(push_constant) uniform P { mat2 m; };
        layout(binding = 0) buffer Out { float o[]; };
        void main() { o[0] = m[0][0]; o[1] = m[0][1]; o[2] = m[1][0]; o[3] = m[1][1]; }
        """
    )
    out = mgr.zeros(4)
    algorithm, kernel = mgr.algorithm([out], spirv, (1, 1, 1)), mgr.kernel(spirv)
    assert algorithm.push_constants.components == ("m[0][0]", "m[0][1]", "m[1][0]", "m[1][1]")
    columns = [1, 2, 3, 4]
    for flat in (
        columns,
        np.float32([[1, 2], [3, 4]]),
        np.array([[1.0, 2], [3, 4]]),
        np.array([[1, 2], [3, 4]], "i8"),
    ):
        mgr.sequence().eval(kp.OpAlgoDispatch(algorithm, flat))
        np.testing.assert_array_equal(out.read(), columns)
    for rows in ([[1, 3], [2, 4]], [[[1, 3], [2, 4]]], [np.array([[1, 3], [2, 4]])]):
        mgr.sequence().eval(kp.OpAlgoDispatch(algorithm, rows))
        np.testing.assert_array_equal(out.read(), columns)
    kernel(out, m=[[1, 3], [2, 4]], groups=1)
    np.testing.assert_array_equal(out.read(), columns)


def test_a_record_must_have_the_layout_of_the_block(mgr):
    spirv = kp.compile(
        """#version 450
        layout(local_size_x = 1) in;
        layout(push_constant) uniform P { float x; int n; vec2 v; };
        layout(binding = 0) buffer Out { float o[]; };
        void main() { o[0] = x; o[1] = float(n); o[2] = v.x; o[3] = v.y; }
        """
    )
    out = mgr.zeros(4)
    algorithm = mgr.algorithm([out], spirv, (1, 1, 1))
    good = np.array((0.5, -3, (1, 2)), [("a", "f4"), ("b", "i4"), ("c", "f4", 2)])
    for record in (np.array((-3, 0.5, (1, 2)), [("n", "i4"), ("x", "f4"), ("v", "f4", 2)]),):
        with pytest.raises(
            kp.InvalidArgumentError,
            match=r"(?s)push_consts are an array that does not have the layout.*int n",
        ):
            kp.OpAlgoDispatch(algorithm, record)
    with pytest.raises(kp.InvalidArgumentError, match=r"record of 8 bytes; the shader's block P has 16"):
        kp.OpAlgoDispatch(algorithm, np.zeros((), [("x", "f4"), ("n", "i4")]))
    for record in (good, good[()], good.reshape(1)):
        mgr.sequence().eval(kp.OpAlgoDispatch(algorithm, record))
        np.testing.assert_array_equal(out.read(), [0.5, -3, 1, 2])


def test_algorithms_take_push_constants_by_name(mgr):
    out = mgr.zeros(4)
    source = """
    layout(push_constant) uniform P { float x; uint n; ivec2 at; };
    layout(binding = 0) buffer Out { float values[]; };
    void main() { values[0] = x; values[1] = n; values[2] = at.x; values[3] = at.y; }"""
    algorithm = mgr.algorithm(
        [out], kp.compile(source), (1, 1, 1), push_consts={"n": 3, "at": (4, -5), "x": 2}
    )
    plain = mgr.sequence().record(kp.OpAlgoDispatch(algorithm))
    assert plain.eval() and out.read().tolist() == [2, 3, 4, -5]
    algorithm.push_consts = {"x": 1.5, "n": 1, "at": [0, 9]}
    assert algorithm.push_consts == (1.5, 1, 0, 9)
    assert plain.eval() and out.read().tolist() == [1.5, 1, 0, 9]
    own = {"at": np.int64([7, 8]), "n": 2, "x": 0.5}
    mgr.sequence().eval(kp.OpAlgoDispatch(algorithm, own))
    assert out.read().tolist() == [0.5, 2, 7, 8]
    algorithm.rebuild(push_consts=own)
    assert algorithm.push_consts == (0.5, 2, 7, 8)
    for given, says in (
        ({"n": 1}, "missing push constants x, at"),
        (own | {"m": 1}, "'m' cannot be set: the shader's block .* has x, n, at"),
        (own | {"n": -1}, "push_consts: n is -1"),
    ):
        with pytest.raises(kp.InvalidArgumentError, match=says):
            algorithm.push_consts = given


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([1, (2, 3)], "values for 2 members; the shader's block P has 6: a, v, m, t, s, b"),
        ([1, 2], r"push_consts have 2 values \(8 bytes\); .* has 20 "),
        (iter(range(10**9)), "push_consts have "),
        (np.zeros(3), r"push_consts have 3 values"),
        ([[1]] * 6, r"push_consts: a is \[1\] of type list"),
    ],
)
def test_other_counts_are_named(mgr, given, says):
    algorithm = mgr.algorithm([mgr.zeros(20)], kp.compile(MEMBERS), (1, 1, 1))
    with pytest.raises(kp.KomputeError, match=says):
        kp.OpAlgoDispatch(algorithm, given)
