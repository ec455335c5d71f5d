"""Einstein's summation and its relatives, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kompute_py as kp
from tests.support.sampling import examples

pytestmark = pytest.mark.usefixtures("current")

ops = kp.ops


def numbers(shape, dtype=np.float32, seed=0):
    """Small whole numbers, whose sums are exact."""
    rng = np.random.default_rng(seed)
    if np.dtype(dtype) == np.bool_:
        return rng.random(shape) < 0.4
    low = 0 if np.dtype(dtype).kind == "u" else -7
    found = rng.integers(low, 8, shape).astype(dtype)
    return found + 1j * rng.integers(-7, 8, shape).astype(dtype) if found.dtype.kind == "c" else found


def check(got, expected):
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape and got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)


@st.composite
def sums(draw):
    """Subscripts, and shapes that fit."""
    lengths = {each: draw(st.sampled_from((1, 2, 3, 5, 7))) for each in "abcde"}
    terms = []
    for _ in range(draw(st.integers(1, 2))):
        term = "".join(draw(st.lists(st.sampled_from("abcde"), max_size=4)))
        at = draw(st.integers(0, len(term)))
        terms.append(term[:at] + "..." * draw(st.booleans()) + term[at:])
    dots = [draw(st.lists(st.sampled_from((1, 4)), max_size=2)) if "..." in t else [] for t in terms]
    used = sorted({each for term in terms for each in term if each.isalpha()})
    text = ",".join(terms)
    if draw(st.booleans()):
        result = draw(st.permutations(used))[: draw(st.integers(0, len(used)))]
        text += "->" + "..." * any("..." in each for each in terms) + "".join(result)
    shapes = []
    for term, free in zip(terms, dots, strict=True):
        before, _, after = term.partition("...")
        shapes.append((*(lengths[c] for c in before), *free, *(lengths[c] for c in after)))
    return text, shapes


@examples(20)
@given(sums(), st.sampled_from((np.float32, np.int32)))
def test_sums_of_any_form(mgr, case, dtype):
    text, shapes = case
    args = [numbers(shape, dtype, number) for number, shape in enumerate(shapes)]
    expected = np.einsum(text, *args)
    check(ops.einsum(text, *args), expected)
    tensors = [mgr.tensor_t(each) for each in args]
    check(ops.einsum(text, *tensors).read(), expected)
    assert ops.einsum.meta(text, *[kp.TensorSpec(s, dtype) for s in shapes]).shape == expected.shape


DTYPES = ["int8", "uint8", "uint16", "int32", "float16", "bool", "complex64", "int64", "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(mgr, needs, dtype):
    wide = {"int64": "shaderInt64", "float64": "shaderFloat64"}
    if dtype in wide and wide[dtype] not in mgr.enabled_features:
        with pytest.raises(kp.UnimplementedError, match=dtype):
            ops.einsum("ij,jk->ik", np.ones((2, 2), dtype), np.ones((2, 2), dtype))
        pytest.skip(f"the device lacks {wide[dtype]}")
    x, y = numbers((6, 9), dtype, 1), numbers((9, 4), dtype, 2)
    if dtype in ("int8", "uint8", "uint16"):
        x, y = x * np.dtype(dtype).type(17), y * np.dtype(dtype).type(13)  # sums that wrap
    for text, args in (("ij,jk->ik", (x, y)), ("ij->j", (x,)), ("ij,ij->i", (x, x)), ("ij,kl->", (x, y))):
        check(ops.einsum(text, *args), np.einsum(text, *args))


def test_two_dtypes_and_parts_of_tensors(mgr):
    a, b = numbers((8, 9), np.int8), numbers((9, 10))
    ta, tb = mgr.tensor_t(a), mgr.tensor_t(b)
    check(ops.einsum("ij,jk->ki", ta[::2], tb[:, ::-1]).read(), np.einsum("ij,jk->ki", a[::2], b[:, ::-1]))
    out = mgr.zeros((8, 10))
    assert ops.einsum("ij,jk", ta, tb, out=out) is out
    check(out.read(), a @ b)


def test_long_sums_by_each_way(mgr):
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 200_003)).astype(np.float32)
    exact = np.dot(x.astype(np.float64), y.astype(np.float64))
    bound = np.abs(x.astype(np.float64) * y).sum() * 2**-24 * 800
    assert abs(ops.einsum("i,i", x, y) - exact) <= bound  # a product of matrices
    pairs = ops.einsum("ij,ij->i", np.stack([x, y]), np.stack([y, x]))
    assert (abs(pairs - exact) <= bound).all()
    total = ops.einsum("i->", x)
    assert abs(total - x.astype(np.float64).sum()) <= np.abs(x).sum() * 2**-24 * 800


def test_in_a_sequence(mgr):
    a, b = numbers((5, 6)), numbers((6, 7), seed=1)
    ta, tb = mgr.tensor_t(a), mgr.tensor_t(b)
    for text in ("ij,jk->ki", "ij,jk->i"):
        operation = ops.einsum.op(text, ta, tb)
        sequence = mgr.sequence().record(operation)
        for scale in (1, 2):
            ta.write(a * scale)
            sequence.eval()
            check(operation.results[0].read(), np.einsum(text, a * scale, b))


@pytest.mark.parametrize(
    "text, words",
    [
        ("ij,jk->ik", "2 lists of indices, and 1 arguments"), ("i1->i", "'i1' is not a list of indices"),
        ("i.j->i", "'i.j' is not a list of indices"), ("ij->ii", "'i' stands twice in the result"),
        ("ij->ik", "'k' of the result is in no argument"),
        ("ijk->i", "'ijk' has 3 indices, and a has the shape"),
        ("i->i", "'i' has 1 indices, and a has the shape"), ("i...->i", "the result needs '...', too"),
        ("ii->i", "the index 'i' has the lengths 3 and 4"),
    ],
)  # fmt: skip
def test_subscripts_that_do_not_fit(text, words):
    with pytest.raises(kp.InvalidArgumentError, match=words):
        ops.einsum(text, np.ones((3, 4), np.float32))


@pytest.mark.parametrize(
    "left, right", [((3,), (3,)), ((2, 3), (4, 3)), ((), (2, 3)), ((2, 0), (0,)), ((), ())]
)
def test_inner(left, right):
    a, b = numbers(left), numbers(right, seed=1)
    check(ops.inner(a, b), np.inner(a, b))


@pytest.mark.parametrize("left, right", [((3,), (4,)), ((2, 3), (2, 2)), ((), (5,)), ((0,), (3,))])
def test_outer(left, right):
    a, b = numbers(left), numbers(right, np.int16, seed=1)
    check(ops.outer(a, b), np.outer(a, b))


@pytest.mark.parametrize(
    "left, right, axes",
    [
        ((2, 3, 4), (3, 4, 5), 2), ((2, 3), (4,), 0), ((2, 3, 4), (4, 3), ([1, 2], [1, 0])),
        ((2, 3), (3, 2), (-1, 0)), ((2, 3), (5, 2), ([0], [-1])),
    ],
)  # fmt: skip
def test_tensordot(mgr, left, right, axes):
    a, b = numbers(left), numbers(right, seed=1)
    check(ops.tensordot(a, b, axes), np.tensordot(a, b, axes))
    check(ops.tensordot(mgr.tensor_t(a), mgr.tensor_t(b), axes).read(), np.tensordot(a, b, axes))


@pytest.mark.parametrize(
    "axes, error, words",
    [
        (3, kp.InvalidArgumentError, "axes is 3; a has 2 axes"),
        (([0], [0, 1]), kp.InvalidArgumentError, "as many axes of a as of b"),
        (([0], [5]), kp.InvalidArgumentError, "axes has 5 for b, which has 2 axes"),
        (1, kp.InvalidArgumentError, "axis 1 of a has the length 3, and axis 0 of b 2"),
        ("x", kp.ArgumentTypeError, "give a number of axes, or a pair"),
    ],
)
def test_tensordot_refuses(axes, error, words):
    with pytest.raises(error, match=words):
        ops.tensordot(np.ones((2, 3), np.float32), np.ones((2, 3), np.float32), axes)


def test_trace(mgr):
    a = numbers((4, 5, 3), np.int32)
    for offset, axis1, axis2 in ((0, 0, 1), (1, 1, 2), (-2, 0, 2), (9, 0, 1)):
        expected = np.trace(a, offset, axis1, axis2)
        got = np.asarray(ops.trace(a, offset, axis1, axis2))
        assert got.shape == expected.shape
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", ["f4", "i4", "F", "i1", "?"])
def test_several_arguments(mgr, dtype):
    for subscripts, shapes in (
        ("ij,jk,kl->il", [(3, 4), (4, 5), (5, 2)]),
        ("ij,jk,kl,lm", [(3, 4), (4, 5), (5, 2), (2, 6)]),
        ("ii,ij,j->i", [(3, 3), (3, 4), (4,)]),
        ("...ij,jk,...k->...i", [(2, 3, 4), (4, 5), (1, 5)]),
        ("a,b,c->abc", [(2,), (3,), (4,)]),
        ("ij,j,j", [(3, 4), (4,), (1,)]),
        ("i,i,i->", [(0,), (0,), (0,)]),
        (",ij,->ji", [(), (3, 2), ()]),
    ):
        arrays = [np.asarray(numbers(shape, dtype, seed)) for seed, shape in enumerate(shapes)]
        expected = np.einsum(subscripts, *arrays)
        check(ops.einsum(subscripts, *arrays), expected)
        operation = ops.einsum.op(subscripts, *(mgr.tensor_t(each) for each in arrays))
        mgr.sequence().record(operation).eval()
        check(operation.results[0].read(), expected)


def test_several_arguments_of_several_dtypes(mgr):
    arrays = [np.float32([0.5, 1]), np.int8([100, 2]), np.int8([100, 4])]
    expected = np.einsum("i,i,i->i", *arrays)
    check(ops.einsum("i,i,i->i", *arrays), expected)
    out = mgr.zeros(2)
    assert (
        ops.einsum("i,i,i->i", *map(mgr.tensor_t, arrays), out=out) is out
        and out.tolist() == expected.tolist()
    )
    halves = [np.float16([300]), np.float16([300]), np.float16([0.25])]  # float16 has no 90,000
    assert ops.einsum("i,i,i->", *halves) == 22500
    for args, error, words in (
        (
            ("ij,jk->ik", *[np.zeros((2, 2), np.float32)] * 3),
            kp.InvalidArgumentError,
            "3 arguments were given",
        ),
        (
            ("ij,jk,kl->il", *[np.zeros((2, 3), np.float32)] * 3),
            kp.InvalidArgumentError,
            "'j' has the lengths",
        ),
        ((3, *[np.zeros((2, 2), np.float32)] * 3), kp.ArgumentTypeError, "subscripts is an int"),
    ):
        with pytest.raises(error, match=words):
            ops.einsum(*args)
