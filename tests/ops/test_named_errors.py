"""Errors of kp.ops and kp.random are typed, and begin with the function that was called."""

from __future__ import annotations

import inspect
import re
import warnings

import numpy as np
import pytest

import kompute_py as kp
from tests.support.sampling import groups, sampled

pytestmark = pytest.mark.own_driver

SQUARE = np.arange(16, dtype=np.float32).reshape(4, 4) + 1


def callables():
    """Their names and themselves; of operations also what records them."""
    for name in kp.ops._HOMES:
        function = getattr(kp.ops, name)
        yield name, function
        if hasattr(function, "op"):
            yield f"{name}.op", function.op
    for name in kp.random.__all__:
        yield f"random.{name}", getattr(kp.random, name)
    generator = kp.random.Generator(7)
    for name in dir(generator):
        if not name.startswith("_") and name != "state":
            yield f"random.Generator.{name}", getattr(generator, name)


CALLABLES = dict(callables())


def refused(title, *args, **named):
    """The message of a call if it raises, which is typed and begins with the name."""
    name = title.removeprefix("random.").removeprefix("Generator.").removesuffix(".op")
    try:
        CALLABLES[title](*args, **named)
    except kp.KomputeError as error:
        assert re.match(rf"{name}\b", str(error)), (title, args, named, str(error))
        return str(error)
    return None


@pytest.fixture
def bad(mgr, make_manager):
    """Of a wrong type, dtype or shape, of another Manager, destroyed, or too large."""
    destroyed = mgr.zeros(4)
    destroyed.destroy()
    return [
        "text", None, object(), 10**30, -1, 0.5, [[1], [2, 3]], SQUARE.astype(np.complex64),
        np.zeros(0, np.int8), np.zeros(3, object), np.zeros(3, "f4,i4"), np.ones((2, 3, 5), np.float32),
        destroyed, make_manager().tensor_t(SQUARE), np.broadcast_to(np.float32(1), (2**20, 2**20)),
    ]  # fmt: skip


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("titles", groups([*CALLABLES], 80))
def test_errors_begin_with_the_called_name(mgr, bad, titles):
    first = mgr.tensor_t(SQUARE)
    with mgr.current(), warnings.catch_warnings():
        warnings.simplefilter("ignore", kp.KomputeWarning)
        for number, title in enumerate(titles):
            parameters = inspect.signature(CALLABLES[title]).parameters.values()
            places = [each for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
            needed = sum(each.default is each.empty for each in places)
            messages = [refused(title)] if needed else []
            assert all(messages)
            for each in sampled(bad[number % 5 :: 5], bad):
                for args in ([each] * needed, [first] + [each] * (needed - 1), [first] * needed + [each]):
                    if any(one is each for one in args[: len(places)]):
                        messages.append(refused(title, *args[: len(places)]))


def test_arguments_that_do_not_fit_the_signature(mgr):
    with mgr.current():
        for title, function in CALLABLES.items():
            for args, named in (((), {"nonsense": 1}), ((SQUARE,) * 20, {})):
                kinds = [each.kind for each in inspect.signature(function).parameters.values()]
                if named or inspect.Parameter.VAR_POSITIONAL not in kinds:
                    message = refused(title, *args, **named)
                    # Others than these two look at the number of arguments first.
                    of_values = title.split(".")[0] in ("einsum", "linspace")
                    assert message and (of_values or re.search("signature|->", message)), message


@pytest.mark.parametrize(
    ("title", "named", "way"),
    [
        ("unique", {"axis": 0}, r"t\.read\(\)"),
        ("sum", {"where": SQUARE > 1}, r"kp\.ops\.where\(condition, x, y\)"),
        ("add.op", {"where": SQUARE > 1}, r"kp\.ops\.where\(condition, x, y\)"),
        ("nanstd", {"correction": 1}, "ddof"),
        ("max", {"initial": 1}, "combine"),
        ("exp", {"dtype": np.float64}, r"kp\.ops\.astype\(x, dtype\)"),
    ],
)
def test_parameters_that_only_numpy_has(mgr, title, named, way):
    with mgr.current():
        message = refused(title, mgr.tensor_t(SQUARE), **named)
    begin = f"{title.removesuffix('.op')} has no parameter '{next(iter(named))}', which NumPy's function has"
    assert re.match(f"{begin}.*{way}", message)


def test_functions_that_a_function_calls_are_not_named(mgr):
    for function in (kp.ops.nonzero, kp.ops.unique):
        with mgr.current(), pytest.raises(kp.UnimplementedError) as told:
            function(np.array(["a"]))
        assert str(told.value).startswith(f"{function.__name__}: Generated kernels do not take")
