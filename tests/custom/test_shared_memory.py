"""Arguments of every type that counts as an array, and arguments and results that share memory.

The rule: a call gives what NumPy gives for copies of its arguments, whatever memory they have.
"""

from __future__ import annotations

import enum

import numpy as np
import pytest

import kompute_py as kp
from kompute_py.errors import ArgumentTypeError, InvalidArgumentError

N = 100_000


class OwnArray(np.ndarray):
    pass


class OwnTensor(kp.Tensor):
    pass


class Number(enum.IntEnum):
    TWO = 2


class Mode(str, enum.Enum):
    CLIP = "clip"


class Half(float):
    pass


@kp.CustomOp.register
class add_turned(kp.CustomOp):
    """`x` gets `y` added, from its end."""

    signature = "add_turned(Tensor(a!) x, Tensor y) -> Tensor(a!)"

    def select(self, ksel: kp.FunctionSelection) -> None:
        ksel.return_tensor(ksel.arg_tensor("x", inplace_tied=True))
        ksel.arg_tensor("y")

    def generate(self, ksel: kp.FunctionSelection, kb: kp.FunctionBuilder) -> None:
        kb.workgroup(64)
        kb.groups(kb.ceil_div(kb.arg_value("x").size, 64))
        kb.emit("""uint i = gl_GlobalInvocationID.x;
            if (i < x_size) x_store(i, x_load(i) + y_load(y_size - 1u - i));""")


@kp.CustomOp.register
class turned(kp.CustomOp):
    """`x` from its end, and each element doubled."""

    signature = "turned(Tensor x) -> (Tensor back, Tensor twice)"

    def select(self, ksel: kp.FunctionSelection) -> None:
        x = ksel.arg_tensor("x")
        ksel.return_new_tensor(x.shape, x.dtype)
        ksel.return_new_tensor(x.shape, x.dtype)

    def generate(self, ksel: kp.FunctionSelection, kb: kp.FunctionBuilder) -> None:
        kb.workgroup(64)
        kb.groups(kb.ceil_div(kb.arg_value("x").size, 64))
        kb.emit("""uint i = gl_GlobalInvocationID.x;
            if (i < x_size) { back_store(i, x_load(x_size - 1u - i)); twice_store(i, 2 * x_load(i)); }""")


@pytest.fixture
def current(mgr: kp.Manager, monkeypatch: pytest.MonkeyPatch) -> kp.Manager:
    """A Manager for calls over arrays."""
    monkeypatch.setattr("kompute_py._functions.preparing.default_manager", lambda: mgr)
    return mgr


def _arrays(kind: str, path) -> list[np.ndarray]:
    """Arrays of several shapes and dtypes."""
    plain = [
        np.arange(6, dtype=np.float32), np.arange(1, dtype=np.float32), np.arange(6, dtype=np.int32),
        np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(12, dtype=np.float32)[::2],
        np.arange(9, dtype=np.uint8), np.zeros(0, np.float32),
    ]  # fmt: skip
    if kind == "own":
        return [each.view(OwnArray) for each in plain]
    if kind == "matrix":
        return [np.asmatrix(each) for each in plain]
    if kind == "record":
        return [each.view(np.recarray) for each in plain]
    found = []
    for number, each in enumerate(plain):
        if each.size:
            made = np.memmap(path / f"{number}.bin", each.dtype, "w+", shape=each.shape)
            made[...] = each
            found.append(made)
    return found


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("kind", ["memmap", "own", "matrix", "record"])
def test_subclasses_of_arrays(current: kp.Manager, tmp_path, kind: str) -> None:
    for _ in range(4):  # prepared calls, too
        for array in _arrays(kind, tmp_path):
            found = kp.ops.flip(array)
            assert type(found) is np.ndarray and found.dtype == array.dtype
            np.testing.assert_array_equal(found, np.flip(np.asarray(array)))
            both = kp.ops.concatenate([array, array])
            np.testing.assert_array_equal(both, np.concatenate([np.asarray(array)] * 2))


@pytest.mark.parametrize("kind", ["memmap", "own"])
def test_subclasses_as_out(current: kp.Manager, tmp_path, kind: str) -> None:
    for _ in range(4):
        for array in _arrays(kind, tmp_path):
            out = array.copy()
            assert kp.ops.flip(array, out=out) is out
            np.testing.assert_array_equal(np.asarray(out), np.flip(np.asarray(array)))


def test_masked_arrays_are_refused(current: kp.Manager) -> None:
    with pytest.raises(ArgumentTypeError, match="mask"):
        kp.ops.flip(np.ma.masked_array([1.0, 2.0], [True, False]))


def test_subclasses_of_tensors(mgr: kp.Manager) -> None:
    for _ in range(4):
        for dtype in (np.float32, np.int32):
            for size in (3, 5, 2):
                array = np.arange(size, dtype=dtype)
                found = kp.ops.flip(OwnTensor(mgr, array))
                np.testing.assert_array_equal(found.read(), array[::-1])
    one = OwnTensor(mgr, np.arange(N, dtype=np.float32))
    kp.ops.flip(one, out=one)
    np.testing.assert_array_equal(one.read(), np.arange(N)[::-1])
    with pytest.raises(InvalidArgumentError, match="two Managers"):
        other = kp.Manager()
        kp.ops.add(one, OwnTensor(other, np.arange(N, dtype=np.float32)))


def test_subclasses_of_numbers(mgr: kp.Manager) -> None:
    x = mgr.tensor([1, 2, 3])
    for _ in range(4):
        np.testing.assert_array_equal(kp.ops.multiply(x, Number.TWO).read(), [2, 4, 6])
        np.testing.assert_array_equal(kp.ops.multiply(x, Half(0.5)).read(), [0.5, 1, 1.5])
        np.testing.assert_array_equal(kp.ops.multiply(x, np.float32(0.5)).read(), [0.5, 1, 1.5])
        np.testing.assert_array_equal(kp.ops.take(x, mgr.tensor_t(np.int32([9])), 0, Mode.CLIP).read(), [3])


def _turned_sum(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x + y[::-1]


@pytest.mark.parametrize("recorded", [False, True])
def test_an_argument_that_is_written_and_read(mgr: kp.Manager, recorded: bool) -> None:
    values = np.arange(N, dtype=np.float32)
    half, n = N // 2, N // 2 - 3

    def check(x: kp.Tensor, y: kp.Tensor) -> None:
        expected = _turned_sum(x.read(), y.read())
        if recorded:
            mgr.sequence().eval(add_turned.op(x, y))
        else:
            assert add_turned(x, y) is x
        np.testing.assert_array_equal(x.read(), expected)

    for _ in range(4):
        a = mgr.tensor_t(values)
        check(a, a)
        a.write(values)
        check(a[:n], a[n // 2 : n // 2 + n])
        a.write(values)
        check(a[n // 2 : n // 2 + n], a[:n])
        a.write(values)
        check(a[:half], a[half : 2 * half])  # neighbours
        check(a.reshape(-1), a)


def test_arrays_that_are_written_and_read(current: kp.Manager) -> None:
    for _ in range(4):
        b = np.arange(N, dtype=np.float32)
        expected = _turned_sum(b, b)
        add_turned(b, b)
        np.testing.assert_array_equal(b, expected)


def _imports(mgr: kp.Manager, way: str) -> tuple[kp.Tensor, kp.Tensor]:
    values = np.arange(N, dtype=np.float32)
    if way == "from_host":
        array = kp.aligned_empty(N, np.float32)
        array[:] = values
        return mgr.from_host(array), mgr.from_host(array)
    a = mgr.tensor_t(values, memory_type="host" if way == "dlpack of host" else None)
    if way == "numpy":
        a = mgr.tensor_t(values, memory_type="deviceAndHost")
        return a, mgr.from_host(a.numpy())
    return a, kp.from_dlpack(a, mgr)


@pytest.mark.parametrize("way", ["from_host", "dlpack", "dlpack of host", "numpy"])
@pytest.mark.parametrize("swapped", [False, True])
def test_imports_of_the_same_memory(mgr: kp.Manager, way: str, swapped: bool) -> None:
    a, b = _imports(mgr, way)
    if swapped:
        a, b = b, a
    for _ in range(4):
        before = a.read()
        kp.ops.flip(a, out=b)
        np.testing.assert_array_equal(b.read(), before[::-1])
        before, values = a.read(), b.read()
        add_turned(a, b)
        np.testing.assert_array_equal(a.read(), _turned_sum(before, values))
        a.write(np.arange(N, dtype=np.float32)), b.write(np.arange(N, dtype=np.float32))


def test_two_results_in_one_memory_are_refused(mgr: kp.Manager, current: kp.Manager) -> None:
    x, y = mgr.tensor(np.arange(8)), mgr.zeros(8)
    array, long = np.zeros(8, np.float32), mgr.zeros(12)
    given = np.arange(8, dtype=np.float32)
    for first, second, source in ((y, y, x), (array, array, given), (long[:8], long[4:12], x)):
        for call in (turned, turned.op):
            if source is given and call is not turned:
                continue
            with pytest.raises(InvalidArgumentError, match="share memory"):
                call(source, out=(first, second))
    a, b = _imports(mgr, "from_host")
    a.write(np.full(N, 5, np.float32))
    if (b.read() == 5).all():  # the device has imported both, and did not copy them
        with pytest.raises(InvalidArgumentError, match="share memory"):
            turned(mgr.zeros(N), out=(a, b))
    for _ in range(3):
        back, twice = turned(x, out=(x, y))  # an argument and a result may
        np.testing.assert_array_equal(back.read(), np.arange(8)[::-1])
        np.testing.assert_array_equal(twice.read(), np.arange(8) * 2)
        x.write(np.arange(8))
    parts = np.zeros((8, 2), np.float32)
    turned(given, out=(parts[:, 0], parts[:, 1]))  # neighbours, which share no element
    np.testing.assert_array_equal(parts[:, 1], given * 2)


def test_a_donated_result_is_refused(mgr: kp.Manager) -> None:
    x = mgr.tensor(np.arange(8))
    with pytest.raises(InvalidArgumentError, match="donated"):
        kp.ops.negative(x, out=x, donate="x")
    view = x[:]
    with pytest.raises(InvalidArgumentError):
        kp.ops.negative(x, out=view, donate="x")
    with pytest.raises(InvalidArgumentError, match="donated"):
        add_turned(x, x, donate="y")
    np.testing.assert_array_equal(x.read(), np.arange(8))
