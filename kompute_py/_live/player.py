"""A picture that plays, without a place where it is shown: its call, its clock and mouse, its pixels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

import numpy as np

from .._base.errors import InvalidArgumentError
from .._display.cards import memory_title
from .._display.drawings import is_picture
from .._kernels.kernel import Kernel
from .._memory.memory import Memory
from .._recording.sequence import Sequence
from .call import LiveCall, live_call
from .state import Clock, State


class Player:
    """Draws frames. Created by `player_of`."""

    def __init__(
        self,
        call: LiveCall,
        state: State,
        before: Callable[[], Any] | None,
        limits: tuple[float, float] | None,
    ) -> None:
        self.call = call
        self.state = state
        self.milliseconds: float = 0.0
        """The time that the last frame took, with `before`."""
        self._before = before
        self._limits = limits

    @property
    def title(self) -> str:
        """The thing that is shown: the memory's kind and name."""
        return memory_title(self.call.shown)

    def draw(self, knobs: Mapping[str, Any], *, fresh: bool = True, every: int = 1) -> np.ndarray[Any, Any]:
        """The pixels of the frame that is due, (rows, columns, 4) of uint8, or `every` n-th of them.

        `fresh`: it is another frame than the last one, so `before` is called.
        """
        began = perf_counter()
        if fresh and self._before is not None:
            self._before()
        values = self.call(knobs, self.state)
        self.state.mouse.new = False
        pixels = rgba(values[::every, ::every], self._limits)
        self.milliseconds = 1000 * (perf_counter() - began)
        return pixels


def player_of(
    what: str,
    source: Kernel | Sequence,
    args: tuple[Any, ...],
    keywords: dict[str, Any],
    *,
    show: Memory | None,
    fps: float,
    before: Callable[[], Any] | None,
    limits: tuple[float, float] | None,
) -> Player:
    """Checks the arguments of `what`, `play` or `show`; raises the errors that these list."""
    check_rate(what, fps)
    if before is not None and not callable(before):
        raise InvalidArgumentError(f"{what}: before is {before!r}; give a function without arguments")
    limits = check_limits(what, limits)
    state = State(Clock(1 / fps), 1, 1)
    call = live_call(what, source, args, keywords, show, state)
    shape = call.shown.shape
    if not is_picture(shape, call.shown.dtype):
        raise InvalidArgumentError(
            f"{what} shows a picture, (rows, columns[, 1, 3 or 4]) of at least 8 rows and columns, one at "
            "most 64 times the other; "
            f"{memory_title(call.shown)} has the shape {shape} of {call.shown.dtype}"
        )
    state.rows, state.columns = shape[:2]
    return Player(call, state, before, limits)


def check_rate(what: str, fps: Any) -> None:
    """Raises InvalidArgumentError if `fps` is not above 0 and at most 240."""
    if isinstance(fps, bool) or not isinstance(fps, (int, float)) or not 0 < fps <= 240:
        raise InvalidArgumentError(f"{what}: fps is {fps!r}; give a number above 0 and at most 240")


def check_limits(what: str, limits: Any) -> tuple[float, float] | None:
    """The limits as floats; None stays. Raises InvalidArgumentError for others than two finite numbers."""
    if limits is None:
        return None
    try:
        low, high = (float(each) for each in limits)
    except (TypeError, ValueError):
        low = high = 0.0
    if low == high or not np.isfinite([low, high]).all():
        raise InvalidArgumentError(f"{what}: limits are {limits!r}; give two different finite numbers")
    return low, high


def rgba(array: np.ndarray[Any, Any], limits: tuple[float, float] | None) -> np.ndarray[Any, Any]:
    """The opaque pixels of a picture, (rows, columns, 4) of uint8.

    `limits`: the numbers that become black and white; None for 0 and 1 of floats and the range of integers.
    """
    array = array[..., None] if array.ndim == 2 else array
    if array.dtype == np.uint8 and limits is None:
        pixels = array
    elif array.dtype.kind == "b":
        pixels = array.astype(np.uint8) * np.uint8(255)
    else:
        low, high = limits or (0.0, 1.0)
        if limits is None and array.dtype.kind in "iu":
            low, high = float(np.iinfo(array.dtype).min), float(np.iinfo(array.dtype).max)
        values: np.ndarray[Any, Any] = array.astype(np.float32 if array.dtype.itemsize <= 4 else np.float64)
        with np.errstate(all="ignore"):
            values = (values - low) * (255 / (high - low)) + 0.5
        pixels = np.clip(np.nan_to_num(values, nan=0.0, posinf=255, neginf=0), 0, 255).astype(np.uint8)
    made = np.full((*array.shape[:2], 4), 255, np.uint8)
    made[..., :3] = pixels[..., :3]
    return made
