"""A function's own name comes first in all that tells of it."""

from __future__ import annotations

import contextlib
import inspect

import numpy as np
import pytest

import kompute_py as kp

pytestmark = pytest.mark.own_driver

SQUARE = np.arange(16, dtype=np.float32).reshape(4, 4) + 1
VECTOR = SQUARE.reshape(-1)
IMAGE = SQUARE.reshape(1, 1, 4, 4)
INTS = np.arange(4, dtype=np.int32)


def recorded():
    """The functions of kp.ops that can be recorded."""
    names = (name for name in dir(kp.ops) if name[0] != "_" and name not in kp.ops._ALIASES)
    return sorted(name for name in names if callable(getattr(getattr(kp.ops, name), "op", None)))


def test_names_and_declarations_agree():
    for name in recorded():
        function = getattr(kp.ops, name)
        assert function.__name__ == name and name in repr(function)


def test_numpys_other_names_are_the_same_functions():
    assert {"concat", "permute_dims", "pow", "acos", "abs"} <= set(kp.ops._ALIASES)
    for name, function in kp.ops._ALIASES.items():
        assert getattr(kp.ops, name) is getattr(kp.ops, function) and name in dir(kp.ops)
        other = getattr(np, name, None)  # NumPy 1 lacks some
        assert other is None or name in ("amax", "amin") or other is getattr(np, function)


def test_a_name_that_is_not_there_says_what_is_near():
    for owner, name, near in (
        (kp.ops, "summ", "sum"),
        (kp, "Manger", "Manager"),
        (kp.ops, "concatanate", "concatenate"),
    ):
        with pytest.raises(AttributeError, match=f"did you mean '{near}'"):
            getattr(owner, name)
    assert {"ops", "random", "notebook", "typing", "errors"} <= set(dir(kp))


def candidates(mgr):
    """What functions may be given for the parameters that they need."""
    s, v, p, i = (mgr.tensor_t(each) for each in (SQUARE, VECTOR, IMAGE, INTS))
    other = mgr.tensor_t(VECTOR)
    m, few = mgr.tensor_t(SQUARE.astype(np.int32) % 4), mgr.tensor_t(VECTOR[:4])
    yield ["ij,jk->ik", s, s]
    yield [s, m, s, 0]
    yield [v, i, few, 0]
    yield [mgr.tensor_t(VECTOR[:3]), mgr.tensor_t(VECTOR[1:4])]
    yield [mgr.tensor_t(INTS.astype(np.uint8)), 4, 1]
    for first in (s, v, p, i, [v, other], 4, mgr.tensor_t(SQUARE.astype(np.complex64))):
        for rest in (s, v, p, i, 1, 2, (0, 1), (2, 2), (16,), np.float32, 0.5, [0], [v, other]):
            for more in (rest, 1, v, i, 0):
                yield [first, rest, more, more, more, more]


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("name", recorded())
def test_what_is_recorded_has_the_name_first(mgr, name):
    """In the repr, and in those of recordings, timings and errors, which have the names of dispatches."""
    function = getattr(kp.ops, name)
    parameters = inspect.signature(function).parameters
    count = sum(
        each.default is each.empty and each.kind is not each.KEYWORD_ONLY for each in parameters.values()
    )
    named = {"mode": "clip"} if "mode" in parameters and parameters["mode"].default == "raise" else {}
    operation = None
    for given in candidates(mgr):
        # Functions without tensors run on the current Manager.
        for most in {max(1, count), 3}:
            with contextlib.suppress(kp.KomputeError, TypeError, ValueError, AttributeError), mgr.current():
                operation = operation or function.op(*given[:most], **named)
        if operation is not None:
            break
    assert operation is not None, f"no arguments for {name}"
    assert repr(operation).startswith(f"<kp.OpCustom {name},")
    sequence = operation.results[0].manager.sequence(total_timestamps=64).record(operation).eval()
    for each, _ in sequence.timings():
        assert each == name or each.startswith((f"{name}.", "OpCopy")), sequence


def test_operations_that_take_more_than_their_signature_keep_their_name(mgr):
    """Their other arguments run other operations."""
    x = mgr.tensor(VECTOR)
    with mgr.current():
        made = {
            "linspace": kp.ops.linspace.op(1j, 2, 5),
            "repeat": kp.ops.repeat.op(x, np.arange(16)),
            "einsum": kp.ops.einsum.op("i,i,i", x, x, x),
        }
    for name, operation in made.items():
        assert repr(operation).startswith(f"<kp.OpCustom {name},")
        sequence = mgr.sequence(total_timestamps=64).record(operation).eval()
        assert all(each.startswith(f"{name}.") for each, _ in sequence.timings()), sequence


def test_keys_of_complex_numbers_advise_real_ones(mgr):
    advice = r"kp\.ops\.absolute\(x\), kp\.ops\.real\(x\)"
    for dtype in (np.complex64, np.complex128):
        with mgr.current(), pytest.raises(kp.UnimplementedError, match=advice):
            kp.ops.sort(np.ones(3, dtype))
