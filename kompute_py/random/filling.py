"""The process's generator, and functions that fill memory by it or by another one."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from .._base.errors import ArgumentTypeError, kind_of
from .._functions.called import called
from .._sync.ordered import in_order
from .generator import Generator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._sync.semaphore import Ordering
    from .generator import Numbers

_default: Generator | None = None
_default_lock = threading.Lock()


@called
def default_generator() -> Generator:
    """The process's generator, which functions without one use. Its seed is the system's.

    >>> kp.random.default_generator()
    <kp.random.Generator Philox4x32-10, key ...>
    """
    global _default
    with _default_lock:
        if _default is None:
            _default = Generator()
        return _default


@called
@in_order
def fill_randn(out: Numbers, generator: Generator | None = None, **options: Unpack[Ordering]) -> Numbers:
    """Fills `out` (float16, float32 or float64) with standard normal numbers, and returns it.

    Raises the errors of `Generator.standard_normal`.

    >>> kp.random.fill_randn(mgr.zeros((2, 3)), kp.random.Generator(1)).shape
    (2, 3)
    """
    return _generator(generator).standard_normal(out=_given(out))  # type: ignore[no-any-return]


@called
@in_order
def fill_uniform(
    out: Numbers,
    low: float = 0.0,
    high: float = 1.0,
    generator: Generator | None = None,
    **options: Unpack[Ordering],
) -> Numbers:
    """Fills `out` with uniform numbers from `low` to `high`, and returns it.

    Raises the errors of `Generator.uniform`.

    >>> kp.random.fill_uniform(mgr.zeros(3), -1, 1).shape
    (3,)
    """
    return _generator(generator).uniform(low, high, out=_given(out))  # type: ignore[no-any-return]


@called
@in_order
def fill_randint(
    out: Numbers,
    low: int,
    high: int | None = None,
    generator: Generator | None = None,
    **options: Unpack[Ordering],
) -> Numbers:
    """Fills `out` with integers from `low` to below `high`, and returns it.

    Raises the errors of `Generator.integers`.

    >>> kp.random.fill_randint(mgr.zeros(3, "uint8"), 256).dtype
    dtype('uint8')
    """
    return _generator(generator).integers(low, high, out=_given(out))  # type: ignore[no-any-return]


def _given(out: Any) -> Any:
    if out is None:
        raise ArgumentTypeError("out is a Tensor or an array, not None")
    return out


def _generator(given: Generator | None) -> Generator:
    if given is None:
        return default_generator()
    if not isinstance(given, Generator):
        raise ArgumentTypeError(f"generator is a kp.random.Generator, not {kind_of(given)}")
    return given
