"""Every way to use a function gives what a call gives: submitted, by its specs, prepared, in a program."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp
from benchmarks.library.calls import CALLS
from kompute_py.ops._places.composed import Composed
from tests.ops.test_staging import arrays_of, check, mapped

_COUNT = 200
_SEVERAL = [name for name in CALLS if isinstance(getattr(kp.ops, name), Composed)]
_SINGLE = [name for name in CALLS if name not in _SEVERAL and hasattr(getattr(kp.ops, name), "bind")]


def spec_of(array):
    return kp.TensorSpec(array.shape, array.dtype)


def on(mgr, dtype):
    """The dtype of a result on this device; `meta` tells that of one which has all."""
    narrower = {"int64": ("shaderInt64", np.int32), "float64": ("shaderFloat64", np.float32)}
    feature, other = narrower.get(dtype.name, ("", dtype))
    return np.dtype(other) if feature and feature not in mgr.enabled_features else dtype


def given(name):
    args, named = CALLS[name].make(np.random.default_rng(3), _COUNT)
    if name in ("take", "take_along_axis", "choose") or name.startswith(("scatter", "put")):
        named = {**named, "mode": "clip"}  # kernels cannot raise errors
    return args, named


@pytest.mark.parametrize(
    "name", [*_SEVERAL, *(pytest.param(each, marks=pytest.mark.sampled(every=6)) for each in _SINGLE)]
)
def test_all_verbs(mgr, current, name):
    function = getattr(kp.ops, name)
    args, named = given(name)

    def of(make):
        return mapped(args, make), {key: mapped(each, make) for key, each in named.items()}

    there, options = of(mgr.tensor_t)
    wanted = arrays_of(function(*there, **options))
    there, options = of(mgr.tensor_t)  # some write their arguments
    check(arrays_of(function.submit(*there, **options).results), wanted, name)
    specs, options = of(spec_of)
    made = function.meta(*specs, **options)
    metas = made if isinstance(made, tuple) else (made,)
    assert [(each.shape, on(mgr, each.dtype)) for each in metas] == [(a.shape, a.dtype) for a in wanted]
    function.preload(*specs, **options)
    if not named:
        entry = kp.Program.record({"entry": (function, *specs)})["entry"]
        arrays: list[np.ndarray] = []
        mapped(args, arrays.append)
        check(arrays_of(entry(*arrays)), wanted, name)
