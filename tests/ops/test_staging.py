"""Every function of `kp.ops` on memory apart from the host's, on parts of tensors, and with wrong arguments.

The calls are those of benchmarks/library/calls.py, of which each function has one.
"""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp
from benchmarks.library.calls import CALLS

_COUNTS = (1021, 300)
_RELATIVE = {"f": 2e-5, "c": 2e-5}
"""Of the largest number of a result. Each area's tests have the bounds of its functions."""
_OWN_ORDER = ("partition", "argpartition")
"""Functions whose result NumPy orders by another rule (test_selecting.py tests ours)."""


@pytest.fixture(scope="module")
def apart():
    """A Manager of memory that the host does not address, apart from staging memory, and which refuses copies
    that no call names.
    """
    with kp.Manager(force_staging=True, transfers="raise") as mgr, mgr:  # it is the current one, too
        yield mgr


@pytest.fixture(scope="module")
def plain():
    with kp.Manager() as mgr:
        yield mgr


def mapped(thing, function):
    """`function` of each array of an argument."""
    if isinstance(thing, np.ndarray):
        return function(thing)
    many = isinstance(thing, (list, tuple))
    return type(thing)(mapped(each, function) for each in thing) if many else thing


def arrays_of(result):
    """The results as arrays, one or several."""
    if isinstance(result, (list, tuple)):
        return [array for each in result for array in arrays_of(each)]
    return [result.read() if hasattr(result, "read") else np.asarray(result)]


def check(got, wanted, name):
    assert len(got) == len(wanted), name
    for a, b in zip(got, wanted, strict=True):
        assert np.shape(a) == np.shape(b), name
        if a.dtype.kind in _RELATIVE and a.size:
            b = b.astype(np.complex128 if a.dtype.kind == "c" else np.float64)
            finite = np.isfinite(b)
            np.testing.assert_array_equal(a[~finite], b[~finite].astype(a.dtype), name)
            largest = np.abs(b[finite]).max(initial=1e-30)
            assert np.abs(a[finite] - b[finite]).max(initial=0) <= _RELATIVE[a.dtype.kind] * largest, name
        else:
            np.testing.assert_array_equal(a, b, name)


def part(mgr, array):
    """The elements of an array, each second one of a tensor."""
    base = np.zeros((*array.shape, 2), array.dtype)
    base[..., 0] = array
    base[..., 1] = array.max() if array.size else 0
    return mgr.tensor_t(base)[..., 0]


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("name", CALLS)
def test_memory_apart_and_parts(name, apart, plain):
    call, function = CALLS[name], getattr(kp.ops, name)
    for count in _COUNTS[:1] if "fft" in name else _COUNTS:  # transforms have kernels for each length
        args, named = call.make(np.random.default_rng(7), count)
        there = {key: mapped(each, apart.tensor_t) for key, each in named.items()}
        got = arrays_of(function(*(mapped(each, apart.tensor_t) for each in args), **there))
        parts = [mapped(each, lambda array: part(apart, array)) for each in args]
        of_parts = arrays_of(function(*parts, **there))
        with np.errstate(all="ignore"):
            theirs = call.numpy and call.numpy(*args, **named)
        if theirs is None or name in _OWN_ORDER:  # or there is no such function, or it changes its argument
            theirs = function(*(mapped(each, plain.tensor_t) for each in args), **named)
        wanted = arrays_of(theirs)[: len(got)]
        check(got, wanted, name)
        check(of_parts, wanted, name)


def test_wrong_arguments(apart):
    for name, call in CALLS.items():
        args, named = call.make(np.random.default_rng(7), _COUNTS[0])
        for wrong, error in [({}, kp.KomputeError), ({"no_such_argument": 1}, TypeError)]:
            given = args if wrong else (object(), *args[1:])
            try:
                getattr(kp.ops, name)(*given, **named, **wrong)
            except error as found:
                assert not wrong or "no_such_argument" in str(found), name
            else:
                pytest.fail(f"{name} takes {wrong or 'an object'}")
