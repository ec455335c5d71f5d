"""Tables of operations: made once for each specialization and Manager."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp
from tests.support.operations import Like

_calls: list[kp.Manager] = []


def _computed(mgr):
    """Squares that the device computes."""
    _calls.append(mgr)
    return kp.ops.elementwise("x * x")(mgr.tensor(np.arange(5, dtype=np.float32)))


@kp.CustomOp.register
class looked_up(kp.CustomOp):
    signature = "looked_up(Tensor x, bool computed, int first=0) -> Tensor"

    def select(self, ksel):
        x = ksel.arg_tensor("x")
        ksel.attr_bool("computed")
        ksel.attr_int("first")
        ksel.return_new_tensor(x.shape, np.float32)

    def generate(self, ksel, kb):
        if ksel.arg_descs[1].v:
            kb.constant("table", _computed, size=5, dtype=np.float32)
        else:
            kb.constant("table", ksel.arg_descs[2].v + np.arange(5), dtype="float32")
        kb.yield_results("table_load(uint(x_load(i)) % table_size)")


@pytest.fixture(autouse=True)
def default(mgr):
    with mgr.current():
        yield
    looked_up.cache_clear()
    _calls.clear()


def test_arrays_and_functions(mgr):
    x = np.array([4, 0, 7, 2], np.int32)
    np.testing.assert_array_equal(looked_up(x, False), [4, 0, 2, 2])
    np.testing.assert_array_equal(looked_up(x, False, 10), [14, 10, 12, 12])
    np.testing.assert_array_equal(looked_up(mgr.tensor_t(x), True).read(), [16, 0, 4, 4])
    np.testing.assert_array_equal(looked_up(x[:2], True), [16, 0])
    assert _calls == [mgr]


def test_each_manager_has_its_own(mgr, make_manager):
    other = make_manager()
    for each in (mgr, other, mgr):
        t = each.tensor_t(np.array([3], np.int32))
        assert looked_up(t, True).read() == [9]
    assert _calls == [mgr, other]


def test_a_recording_keeps_it(mgr):
    t = mgr.tensor_t(np.array([3, 1], np.int32))
    operation = looked_up.op(t, False)
    sequence = mgr.sequence().record(operation)
    looked_up.cache_clear()
    sequence.eval()
    np.testing.assert_array_equal(operation.results[0].read(), [3, 1])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"name": "x", "contents": [1]}, kp.InvalidArgumentError, "'x' names something else"),
        ({"name": "1", "contents": [1]}, kp.InvalidArgumentError, "'1' cannot name a table"),
        ({"name": "t", "contents": []}, kp.InvalidArgumentError, "'t' has no elements"),
        ({"name": "t", "contents": lambda mgr: None}, kp.ArgumentTypeError, "a size, an int, and a dtype"),
        ({"name": "t", "contents": ["a"]}, kp.ArgumentTypeError, "not supported on a device"),
        (
            {"name": "t", "contents": lambda mgr: mgr.zeros(3), "size": 4, "dtype": "float32"},
            kp.InvalidArgumentError,
            "a Tensor with 4 elements of float32",
        ),
        ({"name": "t", "contents": [[1, 2], [3]]}, kp.InvalidArgumentError, "the table 't'"),
        ({"name": "t", "contents": ["a"], "dtype": "float32"}, kp.ArgumentTypeError, "the table 't'"),
        ({"name": "t", "contents": [1.0], "dtype": np.ones(3)}, kp.ArgumentTypeError, "dtype"),
    ],
)
def test_errors(mgr, arguments, error, message):
    @kp.CustomOp.register
    class wrong(Like):
        signature = "wrong(Tensor x) -> Tensor"

        def generate(self, ksel, kb):
            kb.constant(**arguments)
            kb.yield_results("x_load(i) + t_load(0)")

    with pytest.raises(error, match=message):
        wrong(mgr.tensor([1]))


def test_portable_programs_have_tables(mgr):
    program = kp.Program.record(looked_up, kp.TensorSpec(3, np.int32), False, portable=True).on(mgr)
    x = np.array([2, 0, 1], np.int32)
    np.testing.assert_array_equal(program.main(x), looked_up(mgr.tensor_t(x), False).read())
    with pytest.raises(kp.UnimplementedError, match=r"looked_up: its table 'table' is computed by a device"):
        kp.Program.record(looked_up, kp.TensorSpec(3, np.int32), True, portable=True)
