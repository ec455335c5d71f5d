"""Operations of one line against NumPy, which evaluates the same text."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kompute_py as kp
from tests.support.operations import Like
from tests.support.sampling import examples

pytestmark = pytest.mark.usefixtures("current")

TEXT = "a * x + y"
MADE = kp.ops.elementwise(TEXT, name="made")
SEVERAL = kp.ops.elementwise("s = x + y; d = x - y; _t = x * 2; p = _t * y")


def values(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 100, shape).astype(dtype)


@st.composite
def shapes_that_broadcast(draw):
    axes = draw(st.integers(0, 5))
    whole = tuple(draw(st.sampled_from([0, 1, 2, 3, 5, 7, 8])) for _ in range(axes))
    found = []
    for _ in range(3):
        left = draw(st.integers(0, axes))
        found.append(tuple(1 if draw(st.booleans()) else n for n in whole[left:]))
    return found


@pytest.mark.capability(
    "",
    "operations of one line, for all dtypes",
    "kp.ops.elementwise, kp.ops.reduction, kp.ops.scan",
    "guides/generated_operations",
)
@examples(60)
@given(
    shapes_that_broadcast(),
    st.tuples(*[st.sampled_from(["float32", "int32", "uint8", "float16", "int16"])] * 3),
    st.booleans(),
)
def test_broadcasting(shapes, dtypes, tensors):
    mgr = kp.manager()
    if "shaderInt64" not in mgr.enabled_features or "shaderFloat64" not in mgr.enabled_features:
        dtypes = (dtypes[0],) * 3
    arrays = [values(s, d, n) for n, (s, d) in enumerate(zip(shapes, dtypes, strict=True))]
    a, x, y = arrays
    with np.errstate(over="ignore"):
        expected = a * x + y
    found = MADE(*(mgr.tensor_t(each) for each in arrays)) if tensors else MADE(*arrays)
    assert type(found) is (kp.Tensor if tensors else np.ndarray)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    np.testing.assert_allclose(np.asarray(found), expected, rtol=2e-3 if "float16" in dtypes else 1e-6)


@st.composite
def parts(draw):
    """An index of a tensor of shape (6, 7, 8), for one axis of result 5 at most."""
    key = []
    for n in (6, 7, 8):
        step = draw(st.sampled_from([1, 1, 2, 3, -1, -2]))
        count = draw(st.integers(0, 3))
        start = draw(st.integers(0, n - 1))
        stop = start + step * count
        key.append(slice(start, stop if stop >= 0 else None, step))
    return tuple(key)


@examples(60)
@given(parts(), st.sampled_from(["float32", "int32", "uint8", "float16", "complex64"]), st.booleans())
def test_parts_of_tensors(key, dtype, both):
    mgr = kp.manager()
    whole = values((6, 7, 8), dtype)
    t = mgr.tensor_t(whole)
    part, expected = t[key], whole[key]
    other = values(expected.shape, dtype, 1)
    result = SEVERAL(part, part if both else mgr.tensor_t(other))
    other = expected if both else other
    np.testing.assert_array_equal(result[0].read(), expected + other)
    np.testing.assert_array_equal(result[1].read(), expected - other)
    np.testing.assert_array_equal(t.read(), whole)


def test_parts_are_read_where_they_are(mgr):
    whole = values((64, 64), "float32")
    t = mgr.tensor_t(whole)
    operation = SEVERAL.op(t[:, 3], t[5])  # an array or a part that is copied cannot be recorded
    sequence = mgr.sequence().record(operation)
    t.write(whole * 2)
    sequence.eval()
    np.testing.assert_array_equal(operation.results[0].read(), 2 * whole[:, 3] + 2 * whole[5])
    before = SEVERAL.cache_info().specializations
    for column in range(4):
        np.testing.assert_array_equal(
            SEVERAL(t[:, column], t[5])[1].read(), 2 * whole[:, column] - 2 * whole[5]
        )
    assert SEVERAL.cache_info().specializations <= before + 1  # one for an offset of 0


@pytest.mark.parametrize("dtype", ["float32", "uint8", "float16"])
def test_results_in_the_memory_of_arguments(mgr, dtype):
    add = kp.ops.elementwise("x + y")
    data = values(1000, dtype) // 4
    for source, other, target in [
        (np.s_[:], np.s_[:], np.s_[:]),
        (np.s_[:-1], np.s_[1:], np.s_[1:]),
        (np.s_[1:], np.s_[:-1], np.s_[:-1]),
        (np.s_[::-1], np.s_[:], np.s_[:]),
        (np.s_[1:2], np.s_[:], np.s_[:]),
        (np.s_[:500], np.s_[500:], np.s_[250:750]),
        (np.s_[::2], np.s_[1::2], np.s_[:500]),
    ]:
        t, expected = mgr.tensor_t(data), data.copy()
        expected[target] = data[source] + data[other]
        for repeat in range(3):
            if repeat:
                t.write(data)
            out = t[target]
            assert add(t[source], t[other], out=out) is out
            np.testing.assert_array_equal(t.read(), expected, err_msg=str((source, other, target)))


def test_other_operations_copy_arguments_that_they_would_overwrite(mgr):
    @kp.CustomOp.register
    class mirrored(Like):
        signature = "mirrored(Tensor x) -> Tensor"

        def generate(self, ksel, kb):
            kb.yield_results("x_load(x_size - 1 - i)")

    data = values(5000, "float32")
    t = mgr.tensor_t(data)
    mirrored(t, out=t)
    np.testing.assert_array_equal(t.read(), data[::-1])


@pytest.mark.parametrize("memory_type", ["device", "host", "storage", "deviceAndHost"])
def test_staging(make_manager, memory_type):
    mgr = make_manager(force_staging=True)
    whole = values((9, 10), "float32")
    t = mgr.tensor_t(whole, memory_type=memory_type)
    with mgr.current():
        found = MADE(0.5, t[::2], t[1, ::-1])
        assert found.memory_type() == t.memory_type()
        np.testing.assert_array_equal(found.read(), 0.5 * whole[::2] + whole[1, ::-1])
        np.testing.assert_array_equal(MADE(0.5, whole, whole), 1.5 * whole)
        MADE(2.0, t, t, out=t)
        np.testing.assert_array_equal(t.read(), 3 * whole)


def test_numbers_and_kinds_of_arguments(mgr):
    x = np.arange(5, dtype=np.int8)
    for a in (2, np.int16(3), 2.5, np.float32(0.5), True):
        found, expected = MADE(a, x, x), a * x + x
        if "shaderFloat64" not in mgr.enabled_features and expected.dtype == np.float64:
            expected = expected.astype(np.float32)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    misses = MADE.cache_info().misses
    for a in range(20):
        np.testing.assert_array_equal(MADE(a, x, 1), a * x + 1)
    assert MADE.cache_info().misses == misses + 1
    with pytest.raises(kp.InvalidArgumentError, match="200 is out of bounds for int8"):
        MADE(200, x, x)
    assert MADE.meta(2, kp.TensorSpec((3, 1), "int8"), kp.TensorSpec(4, "int32")) == kp.TensorSpec(
        (3, 4), "int32"
    )


@pytest.mark.parametrize("name", ["a", "b", "x", "y", "s", "r", "v"])
def test_names_of_flags_are_not_seen_by_functions(name):
    """The functions of a kernel have locals and parameters of these names."""
    given = np.float32([5.5, -2, 0.25])
    for flag in (True, np.True_):
        for text, expected in [
            (f"fmod(z, {name})", np.fmod(given, np.float32(1))),
            (f"z % {name} + arctan2(z, {name})", given % np.float32(1) + np.arctan2(given, np.float32(1))),
            (f"z // {name} if {name} else z", given // np.float32(1)),
        ]:
            np.testing.assert_allclose(kp.ops.elementwise(text)(z=given, **{name: flag}), expected, rtol=1e-5)
    np.testing.assert_array_equal(
        kp.ops.elementwise(f"where({name}, z, -z)")(z=given, **{name: False}), -given
    )


def test_more_than_one_grid(mgr):
    n = 65535 * 256 + 1000
    data = (np.arange(n) % 251).astype(np.uint8)
    t = mgr.tensor_t(data)
    kp.ops.elementwise("x * 3 + 1")(t, out=t)
    np.testing.assert_array_equal(t.read(), data * np.uint8(3) + np.uint8(1))


def test_more_than_shaders_reach(mgr):
    most = mgr.get_device_properties()["limits"]["maxStorageBufferRange"]
    if most > 1 << 28:
        pytest.skip("its tensors would be too large for a test")
    n = most // 4 + 5000
    data = np.arange(n, dtype=np.float32)
    t = mgr.tensor_t(data, memory_type="host")
    twice = kp.ops.elementwise("x * 2 + b")
    assert twice(t, 1, out=t) is t
    assert np.array_equal(t.read()[-6000:], data[-6000:] * 2 + 1) and t.read()[12345] == 24691
    with pytest.raises(kp.InvalidArgumentError, match=r"maxStorageBufferRange.*in parts"):
        twice.op(t, 1, out=t)
    with pytest.raises(kp.InvalidArgumentError, match="maxStorageBufferRange"):
        twice(t[::2], 1)
    del data
    rows = t.reshape(2, -1)[:, : n // 2 - 1]  # each row is within reach
    assert np.array_equal(twice(rows, 1)[1].read()[-9:], t.read()[-10:-1] * 2 + 1)


def test_fused(mgr):
    line, root = kp.ops.elementwise(TEXT), kp.ops.elementwise("sqrt(abs(z)) + a")
    both = root(line)
    assert isinstance(both, kp.Elementwise) and str(inspect.signature(both)).startswith(
        "(a: 'Tensor|Scalar', x:"
    )
    x, y = values(50, "float32"), values((3, 1), "float32", 1)
    np.testing.assert_allclose(both(2.0, x, y), np.sqrt(np.abs(2 * x + y)) + 2, rtol=1e-6)
    three = root(z=both, a=kp.ops.elementwise("x - 1"))
    assert three.formula.names == ("a", "x", "y")
    expected = np.sqrt(np.abs(np.sqrt(np.abs(2 * x + y)) + 2)) + (x - 1)
    np.testing.assert_allclose(three(2, x, y), expected, rtol=1e-6)
    chain = kp.ops.elementwise("u * u", dtype="float16")
    mixed = kp.ops.elementwise("v + 1")(chain)
    assert mixed(x).dtype == np.float16
    with pytest.raises(kp.ArgumentTypeError, match="give operations only"):
        root(line, x)
    with pytest.raises(kp.InvalidArgumentError, match="no argument 'w'"):
        root(w=line)
    with pytest.raises(kp.InvalidArgumentError, match="has 3 results"):
        root(SEVERAL)


def test_preambles_names_and_documents(mgr):
    smooth = kp.ops.elementwise(
        "s_curve(x) * k",
        name="smoothed",
        doc="A smooth step.",
        preamble="float s_curve(float t) { t = clamp(t, 0.0, 1.0); return t * t * (3.0 - 2.0 * t); }",
    )
    assert smooth.__name__ == "smoothed" and smooth.__doc__ == "A smooth step."
    assert MADE.__doc__ == "Computes ``a * x + y`` for each element."
    assert list(inspect.signature(smooth).parameters) == ["x", "k", "out", "donate", "wait", "signal"]
    x = np.linspace(-1, 2, 20, dtype=np.float32)
    t = np.clip(x, 0, 1)
    np.testing.assert_allclose(smooth(x, 2.0), t * t * (3 - 2 * t) * 2, rtol=1e-6)


def test_in_the_kernels_of_others(mgr):
    both = kp.ops.elementwise("s = x % m + k; d = where(x > m, exp(float32(x)), 0)")

    def made(**arguments):
        class windows(kp.CustomOp):
            signature = "windows(Tensor x, float k) -> (Tensor s, Tensor d)"

            def select(self, ksel):
                x = ksel.arg_tensor("x")
                ksel.arg_float("k")
                ksel.return_new_tensor(x.shape, "float32")
                ksel.return_new_tensor(x.shape, "float32")

            def generate(self, ksel, kb):
                kb.grid(kb.result(0).size)
                s, d = kb.call(both, **(arguments or {"x": "x_load(i)", "m": 3, "k": "k"}))
                again, _ = kb.call(both, x=("(x_load(i) + 1)", "int32"), m=3, k="k")
                kb.emit("uint i = gl_GlobalInvocationID.x; if (i >= s_size) return;")
                kb.emit(f"float total = 0.0; for (uint j = 0; j < 2; ++j) total += float({s} + {again});")
                kb.emit(f"s_store(i, total); d_store(i, {d});")

        return kp.CustomOp.register(windows)

    x = np.arange(-5, 9, dtype=np.int16)
    s, d = made()(x, 0.5)
    np.testing.assert_array_equal(s, 2 * ((x % 3 + 0.5) + ((x.astype(np.int32) + 1) % 3 + 0.5)))
    np.testing.assert_allclose(d, np.where(x > 3, np.exp(x.astype(np.float32)), 0), rtol=4e-6)
    for wrong, error, match in [
        ({"x": "x_load(i)", "m": 3}, kp.InvalidArgumentError, "lacks an expression for 'k'"),
        ({"x": "x_load(i) + 1", "m": 3, "k": 1}, kp.InvalidArgumentError, "needs its dtype"),
        ({"x": "x_load(i)", "n": 3, "k": 1}, kp.InvalidArgumentError, "no parameter 'n'"),
        ({"x": [], "m": 3, "k": 1}, kp.ArgumentTypeError, "x is a list; give an expression"),
    ]:
        with pytest.raises(error, match=match):
            made(**wrong)(x, 0.5)

    def generate(self, ksel, kb):
        kb.call(np.sqrt)

    operation = made()
    operation.__wrapped__.generate = generate
    with pytest.raises(kp.ArgumentTypeError, match="takes an elementwise operation"):
        operation(x, 0.5)


def test_portable_programs(mgr):
    specs = kp.TensorSpec((3, 4), "float32"), kp.TensorSpec(4, "float16")
    program = kp.Program.record(MADE, 2.0, *specs, portable=True)
    x, y = np.arange(12, dtype=np.float32).reshape(3, 4), np.arange(4, dtype=np.float16)
    np.testing.assert_array_equal(
        program.on(mgr).main(x, y), MADE(2.0, mgr.tensor_t(x), mgr.tensor_t(y)).read()
    )


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: kp.ops.elementwise("x +"), kp.errors.FormulaError, "column"),
        (lambda: kp.ops.elementwise(3), kp.ArgumentTypeError, "a formula is a str|A formula is a str"),
        (lambda: kp.ops.elementwise("x", name="a b"), kp.InvalidArgumentError, "identifier"),
        (lambda: kp.ops.elementwise("x", name=3), kp.ArgumentTypeError, "name is a str"),
        (lambda: kp.ops.elementwise("x", doc=3), kp.ArgumentTypeError, "doc is a str"),
        (lambda: kp.ops.elementwise("x", dtype="what"), kp.ArgumentTypeError, "not a dtype"),
        (lambda: kp.ops.elementwise("donate + 1"), kp.errors.SignatureError, "argument of every call"),
        (
            lambda: MADE(1, np.zeros(3), np.zeros(4)),
            kp.InvalidArgumentError,
            r"broadcast.*x \(3,\), y \(4,\)",
        ),
        (lambda: MADE(1, np.zeros(3, np.float32)), kp.ArgumentTypeError, "lacks the argument 'y'"),
        (lambda: kp.ops.elementwise("x & 1")(np.zeros(3, np.float32)), kp.ArgumentTypeError, "& takes ints"),
        (
            lambda: kp.ops.elementwise("x", dtype="int32")(np.zeros(3, np.float32)),
            kp.ArgumentTypeError,
            "not converted to int32 unasked",
        ),
    ],
)
def test_wrong_uses(call, error, match):
    with pytest.raises(error, match=match):
        call()


# -- any expression ------------------------------------------------------------------------------------------

OPERATORS = ["+", "-", "*", "//", "%", "&", "|", "^", "<", ">=", "==", "!="]
# Not minimum and copysign: NumPy leaves open which of 0.0 and -0.0 it gives, and which sign a NaN has.
FUNCTIONS = ["fmod"]


@st.composite
def expressions(draw, depth=3):
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from(["x", "y", "z", "x", "y", "2", "3", "-1", "0.5", "-0.0"]))
    a, b = draw(expressions(depth - 1)), draw(expressions(depth - 1))
    what = draw(st.integers(0, 9))
    if what < 6:
        return f"({a} {draw(st.sampled_from(OPERATORS))} {b})"
    if what < 8:
        return f"{draw(st.sampled_from(FUNCTIONS))}({a}, {b})"
    if what == 8:
        return f"where({a}, {b}, {draw(expressions(depth - 1))})"
    # Not ~: of a condition of numbers, such as ~(2 < 2), it is an int to Python and a bool to NumPy.
    return f"{draw(st.sampled_from(['-', 'abs', 'sign', 'floor', 'trunc', 'isnan']))}({a})"


@examples(60)
@given(
    expressions(),
    st.tuples(
        *[st.sampled_from(["float32", "int8", "uint8", "int32", "float64", "int64", "bool", "int16"])] * 3
    ),
)
def test_any_expression(text, dtypes):
    mgr = kp.manager()
    if "shaderFloat64" not in mgr.enabled_features:
        pytest.skip("NumPy computes some of these in float64, which the device lacks")
    rng = np.random.default_rng(0)
    arguments = {
        name: rng.permutation(
            np.r_[-3:9, 127, 0, 0, 5, 6].astype(np.int64)
            if dtype[0] != "f"
            else np.r_[-3:3.5:0.5, -0.0, np.inf, -np.inf, np.nan]
        ).astype(dtype)
        for name, dtype in zip("xyz", dtypes, strict=True)
    }

    class Names(dict):
        def __missing__(self, name):
            function = getattr(np, {"abs": "absolute"}.get(name, name))

            def call(*args):
                found = function(*args)
                plain = all(type(each) in (bool, int, float) for each in args)
                return found.item() if plain else found

            return call

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = eval(text, {}, Names(arguments))
        except (TypeError, OverflowError, ValueError, ZeroDivisionError):
            expected = None
    try:
        operation = kp.ops.elementwise(text)
        found = operation(**{name: arguments[name] for name in operation.formula.names})
    except (kp.ArgumentTypeError, kp.InvalidArgumentError, kp.UnimplementedError):
        return
    if expected is None:
        return
    expected = np.asarray(expected)
    assert found.dtype == expected.dtype
    expected = np.broadcast_to(expected, found.shape)
    np.testing.assert_array_equal(found, expected)
    found = np.asarray(found)
    zeros = found[expected == 0], expected[expected == 0]
    np.testing.assert_array_equal(*(each.dtype.kind == "f" and np.signbit(each) for each in zeros))


@pytest.mark.parametrize("text", ["exp(x)", "log(x) * a + sqrt(y)", "tanh(x) - y", "sin(x) + y", "x ** 1.5"])
def test_four_elements_at_a_time_are_those_one_by_one(mgr, text):
    operation = kp.ops.elementwise(text)
    rng = np.random.default_rng(7)
    for n in (1, 3, 4, 5, 1023):
        values = {"x": rng.uniform(0, 9, n), "y": rng.uniform(0, 9, n)}
        arrays = {
            name: each.astype(np.float32) for name, each in values.items() if name in operation.formula.names
        }
        apart = {name: mgr.tensor_t(np.repeat(each, 2))[::2] for name, each in arrays.items()}
        number = {"a": 0.5} if "a" in operation.formula.names else {}
        found = operation(**{name: mgr.tensor_t(each) for name, each in arrays.items()}, **number)
        assert np.array_equal(found.read(), operation(**apart, **number).read())
