"""Dispatches of generated operations whose workgroups an earlier dispatch computes."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp
from tests.drivers import null_control
from tests.support.child import run_child
from tests.support.operations import Like

from .operations import compact

pytestmark = pytest.mark.usefixtures("current")


class First(kp.CustomOp):
    """`n[first]` groups of 64 ones, and zeros after them; `n` is an argument."""

    signature = "first(Tensor n, int size, int first=0) -> Tensor"

    def select(self, ksel):
        ksel.arg_tensor("n")
        size = ksel.attr_int("size").v
        ksel.attr_int("first")
        ksel.return_new_tensor((size,), "int32")

    def generate(self, ksel, kb):
        kb.begin_dispatch("zeros")
        kb.grid(kb.result(0).size)
        kb.emit("if (gl_GlobalInvocationID.x < result_size) result_store(gl_GlobalInvocationID.x, 0);")
        kb.begin_dispatch("ones")
        kb.groups(indirect=kb.arg_value("n"), offset=ksel.arg_descs[2].v)
        kb.emit("if (gl_GlobalInvocationID.x < result_size) result_store(gl_GlobalInvocationID.x, 1);")


first = kp.CustomOp.register(First)


@pytest.mark.parametrize("keep", ["none", "one", "last block", "all", "few"])
@pytest.mark.parametrize("n", [1, 256, 40_000])
def test_only_the_blocks_that_keep_something_run(mgr, n, keep):
    rng = np.random.default_rng(n)
    x = rng.random(n, np.float32)
    kept = {
        "none": np.zeros(n, bool), "one": np.arange(n) == n // 2, "last block": np.arange(n) > n - 100,
        "all": np.ones(n, bool), "few": rng.random(n) < 0.002,
    }[keep]  # fmt: skip
    values, count = compact(mgr.tensor_t(x), mgr.tensor_t(kept))
    expected = np.zeros(n, np.float32)
    expected[: kept.sum()] = x[kept]
    np.testing.assert_array_equal(values.read(), expected)
    assert int(count) == kept.sum()


@pytest.mark.parametrize("at", [0, 1, 3])
def test_an_argument_gives_the_groups(mgr, at):
    n = np.full(7, 9, np.uint32)
    n[at : at + 3] = 2, 1, 1
    expected = [1] * 128 + [0] * 22
    assert first(n, 150, first=at).tolist() == expected
    tensor = mgr.tensor_t(n)
    assert first(tensor, 150, first=at).tolist() == expected
    # A part that begins where shaders could not bind it, and other numbers in the same recording.
    assert first(tensor[at:], 150).tolist() == expected
    operation = first.op(tensor, 150, at)
    sequence = mgr.sequence().record(operation)
    for groups in (0, 1, 3):
        n[at] = groups
        tensor.write(n)
        sequence.eval()
        ones = min(64 * groups, 150)
        assert operation.results[0].read().tolist() == [1] * ones + [0] * (150 - ones)


def test_an_argument_is_too_small(mgr):
    with pytest.raises(kp.InvalidArgumentError, match=r"n has 2 elements; first\.ones reads"):
        first(np.ones(2, np.uint32), 5)
    with pytest.raises(kp.InvalidArgumentError, match="from element 1 on"):
        first(mgr.tensor_t(np.ones(3, np.uint32)), 5, first=1)


def check_commands():
    x = np.ones(1000, np.float32)
    mgr = kp.Manager(validation=False)
    a, keep = mgr.tensor_t(x), mgr.tensor_t(x > 0)
    sequence = mgr.sequence().record(compact.op(a, keep))
    control = null_control()
    control.count()
    sequence.eval()
    assert control.calls("vkCmdDispatch") == 2
    assert control.calls("vkCmdDispatchIndirect") == 1
    assert not control.violations()


def test_the_device_is_given_the_place():
    run_child(check_commands, driver="null")


@pytest.mark.parametrize(
    ("write", "error", "match"),
    [
        (lambda kb, x: kb.groups(indirect="todo"), kp.ArgumentTypeError, "give scratch memory or a tensor"),
        (lambda kb, x: kb.groups(indirect=x), kp.ArgumentTypeError, "'x' of float32"),
        (lambda kb, x: kb.groups(2, indirect=x), kp.InvalidArgumentError, "not both"),
        (lambda kb, x: kb.groups(), kp.ArgumentTypeError, "takes numbers, or indirect="),
        (
            lambda kb, x: kb.groups(indirect=kb.scratch("todo", 2, "uint32")),
            kp.InvalidArgumentError,
            "'todo' with 2 elements",
        ),
        (
            lambda kb, x: kb.groups(indirect=kb.scratch("todo", 5, "uint32"), offset=3),
            kp.InvalidArgumentError,
            "no three from 3 on",
        ),
        (
            lambda kb, x: kb.groups(indirect=kb.scratch("todo", 5, "uint32"), offset=-1),
            kp.InvalidArgumentError,
            "no three from -1 on",
        ),
        (
            lambda kb, x: kb.groups(indirect=kb.scratch("todo", 5, "uint32"), offset=1.5),
            kp.ArgumentTypeError,
            "offset",
        ),
    ],
)
def test_errors(mgr, write, error, match):
    class Bad(Like):
        signature = "bad(Tensor x) -> Tensor"

        def generate(self, ksel, kb):
            write(kb, kb.arg_value("x"))
            kb.emit("result_store(0, x_load(0));")

    with pytest.raises(error, match=match):
        kp.CustomOp.register(Bad)(np.ones(3, np.float32))
