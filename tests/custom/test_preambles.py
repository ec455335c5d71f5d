"""Functions in GLSL that formulas bring into kernels: each once, and none in the place of another."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp
from kompute_py.errors import InvalidArgumentError, ShaderCompileError
from tests.support.operations import Like

SAME = "float own(float a) {\n    return a;\n}"
DOUBLED = "float own(float a) {\n    return 2.0 * a;\n}"
SPACED = """
float first(float a) {
    a *= 2.0;


    return a;
}


float second(float a) {
    a *= 3.0;

    return a;
}
"""
X = np.arange(1, 2000, dtype=np.float32)


def _calling(*operations: kp.Elementwise, declared: str = "") -> kp.Operation:
    """The sum of 100 times the first and the second."""

    @kp.CustomOp.register
    class calling(Like):
        signature = "calling(Tensor x) -> Tensor"

        def generate(self, ksel: kp.FunctionSelection, kb: kp.FunctionBuilder) -> None:
            if declared:
                kb.declare(declared)
            parts = [kb.call(each, x="x_load(i)") for each in operations]
            kb.yield_results(" * 100.0 + ".join(parts))

    return calling


def test_functions_of_one_name_do_not_replace_each_other(mgr: kp.Manager) -> None:
    same, doubled = (kp.ops.elementwise("own(x)", preamble=each) for each in (SAME, DOUBLED))
    x = mgr.tensor_t(X)
    for calling in (_calling(same, doubled), _calling(doubled, same), _calling(same, declared=DOUBLED)):
        with pytest.raises(ShaderCompileError, match="'own' : function already has a body"):
            calling(x)
    for made in (
        lambda: same(doubled),
        lambda: kp.ops.elementwise("u + v")(same, doubled),
        lambda: kp.ops.reduction(same, "own(a) + b", 0, preamble=DOUBLED),
        lambda: kp.ops.scan(same, "own(a) + b", 0, preamble=DOUBLED),
        lambda: kp.ops.reduction(same, "a + b", 0, finish="own(a)", preamble=DOUBLED),
    ):
        with pytest.raises(InvalidArgumentError, match="Two preambles define 'own'"):
            made()


def test_one_preamble_serves_all_parts_of_a_kernel(mgr: kp.Manager) -> None:
    x = mgr.tensor_t(X)
    same, doubled = (kp.ops.elementwise("own(x)", preamble=each) for each in (SAME, DOUBLED))
    assert np.array_equal(_calling(same, same)(x).read(), X * 101)
    twice = kp.ops.elementwise("u + v")(doubled, doubled(doubled))  # a preamble and one that has it
    assert np.array_equal(twice(x).read(), X * 6)
    assert np.array_equal(_calling(doubled, twice)(x).read(), X * 206)
    greatest = "max(own(a), own(b))"
    for variant in ("run", "shared"):
        found = kp.ops.reduction("own(x)", greatest, 0, finish="own(a)", preamble=SAME).variant(variant)(x)
        assert float(found.read()) == X[-1]
        found = kp.ops.scan("own(x)", greatest, 0, preamble=SAME).variant(variant)(x)
        assert np.array_equal(found.read(), X)
    assert np.array_equal(kp.ops.scan(doubled, greatest, 0, preamble=DOUBLED)(x[:1]).read(), X[:1] * 2)


def test_preambles_may_have_empty_lines(mgr: kp.Manager) -> None:
    x = mgr.tensor_t(X)
    assert np.array_equal(kp.ops.elementwise("first(x) + second(x)", preamble=SPACED)(x).read(), X * 5)
    both = kp.ops.elementwise("first(x) * 10 + second(x)", preamble=SPACED)
    assert np.array_equal(_calling(both, both)(x).read(), X * 23 * 101)
    assert np.array_equal(kp.ops.scan("first(x)", "max", preamble=SPACED)(x).read(), X * 2)
