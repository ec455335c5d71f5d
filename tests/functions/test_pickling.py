"""Operations are pickled by name, or by the texts that they were made of."""

from __future__ import annotations

import copy
import pickle
import sys

import numpy as np
import pytest

import kompute_py as kp
from tests.programs.test_programs import SCALE
from tests.support.operations import Like

X = np.arange(1, 6, dtype=np.float32)
twice = kp.ops.elementwise("x * 2", name="twice")


@kp.CustomOp.register
class plus_one(Like):
    signature = "plus_one(Tensor x) -> Tensor"

    def variants(self, ksel):
        return ["a", "b"]

    def generate(self, ksel, kb):
        kb.yield_results("x_load(i) + 1" if ksel.variant == "a" else "1 + x_load(i)")


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        (kp.ops.elementwise("a * x + y", dtype="float16"), (2, X, X)),
        (kp.ops.elementwise("s = x + y; d = x - y", name="both", doc="Both."), (X, X)),
        (kp.ops.elementwise("f(x)", preamble="float f(float x) { return x * 3; }"), (X,)),
        (kp.ops.elementwise("a + b")(kp.ops.elementwise("sin(x)"), twice), (X,)),
        (kp.ops.reduction("x * y", "a + b", 0, finish="sqrt(a)", name="length"), (X, X)),
        (kp.ops.reduction(kp.ops.elementwise("x * x"), "max"), (X,)),
        (kp.ops.scan("x", "a * b", 1, exclusive=True, reverse=True), (X,)),
        (plus_one.variant("b"), (X,)),
    ],
)
def test_by_texts(mgr, operation, arguments):
    found = pickle.loads(pickle.dumps(operation))
    assert (found.__name__, found.__doc__, repr(found)) == (
        operation.__name__, operation.__doc__, repr(operation),
    )  # fmt: skip
    with mgr.current():
        np.testing.assert_array_equal(np.asarray(found(*arguments)), np.asarray(operation(*arguments)))


def test_by_name():
    library = kp.op_library("for_pickle")
    shared = kp.CustomOp.register(library=library)(type("shared", (plus_one.__wrapped__,), {}))
    for each in (kp.ops.exp, kp.ops.matmul, kp.ops.take, kp.ops.diff, kp.ops.cumsum, plus_one, twice, shared):
        if each is not twice:
            assert pickle.loads(pickle.dumps(each)) is each
        assert copy.copy(each) is each and copy.deepcopy([each])[0] is each


def test_what_nobody_finds_is_refused():
    unknown = kp.CustomOp.register(type("unknown", (plus_one.__wrapped__,), {"__module__": __name__}))
    with pytest.raises(kp.ArgumentTypeError, match=r"cannot be pickled.*op_library"):
        pickle.dumps(unknown)
    sys.modules[__name__].unknown = unknown
    assert pickle.loads(pickle.dumps(unknown)) is unknown


def test_kernels_and_modules_pickle_by_content(mgr):
    kernel = mgr.kernel(SCALE, name="scale")
    for each, factor in ((kernel, 2), (kernel.specialize(BY=5.0), 5)):
        with mgr.current():
            loaded = pickle.loads(pickle.dumps(each))
        assert loaded is not each and loaded.manager is mgr and loaded.name == "scale"
        np.testing.assert_array_equal(loaded(X, np.zeros(5, np.float32), plus=1.0), factor * X + 1)
        assert copy.copy(each) is each and copy.deepcopy([each])[0] is each
    module = pickle.loads(pickle.dumps(kp.ShaderModule(SCALE, name="scale")))
    assert (module.name, module.signature.text("f")) == ("scale", kernel.signature.text("f"))
    assert module.to_spirv() == kernel.to_spirv()
