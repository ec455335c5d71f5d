"""A table of shaders as people write them, each with a model in NumPy.

A function with `@shader(source)` is one: it is given `run`, which calls the kernel with arrays of its own and
returns them as the kernel left them, and returns pairs of what there is and what there should be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import kompute_py as kp


class Shader(NamedTuple):
    name: str
    source: str
    options: dict[str, Any]
    check: Callable[[Run], list[tuple[Any, Any]]]


class Run:
    """Calls a kernel with arrays, images and blocks of values, by their names in the source."""

    def __init__(self, mgr: kp.Manager, shader: Shader) -> None:
        self.mgr = mgr
        self._shader = shader

    def __call__(self, groups: Any, *, entry: str = "", **given: Any) -> Any:
        """What the arrays are after the run, by their names."""
        options = {**self._shader.options, **({"entry": entry} if entry else {})}
        kernel = self.mgr.kernel(self._shader.source, language="hlsl", compiler="dxc", **options)
        made = {
            name: self.mgr.tensor_t(each) if isinstance(each, np.ndarray) else each
            for name, each in given.items()
        }
        kernel(**made, groups=groups)
        return {name: each.read() for name, each in made.items() if isinstance(each, (kp.Tensor, kp.Image))}


class Table:
    """The shaders of a file."""

    def __init__(self) -> None:
        self.shaders: list[Shader] = []

    def __call__(self, source: str, **options: Any) -> Callable[[Any], Any]:
        def add(check: Any) -> Any:
            self.shaders.append(Shader(check.__name__, source, options, check))
            return check

        return add


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    """Numbers from -1 to 1, the same each time."""
    return np.random.default_rng(seed + sum(shape)).uniform(-1, 1, shape).astype(np.float32)


def whole(most: int, *shape: int, seed: int = 0) -> np.ndarray:
    """Whole numbers below `most`, the same each time."""
    return np.random.default_rng(seed + sum(shape)).integers(0, most, shape).astype(np.uint32)


def check(mgr: kp.Manager, shader: Shader, tolerance: float = 2e-5) -> None:
    """Runs a shader and compares; whole numbers must be the same."""
    for got, wanted in shader.check(Run(mgr, shader)):
        got, wanted = np.asarray(got), np.asarray(wanted)
        if wanted.dtype.kind in "iub" and got.dtype.kind in "iub":
            np.testing.assert_array_equal(got.astype(np.int64), wanted.astype(np.int64), err_msg=shader.name)
        else:
            np.testing.assert_allclose(got, wanted, tolerance, tolerance, err_msg=shader.name)
