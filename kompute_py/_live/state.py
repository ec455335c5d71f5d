"""The state of a playing picture: its clock, its mouse, and the push constants that follow them.

Knows no widget and no device.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .._base.errors import InvalidArgumentError


class Clock:
    """The time and the number of the frame that is shown.

    `now` gives seconds. While it plays, each `tick` goes one frame on and to the time that has passed. So a
    slow kernel draws fewer frames; it does not fall behind.
    """

    def __init__(self, frame_seconds: float, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now
        self._frame_seconds = frame_seconds
        self._last = 0.0
        self.playing: bool = False
        self.time: float = 0.0
        self.delta: float = 0.0
        """Seconds between the last two frames."""
        self.frame: int = 0

    def play(self) -> None:
        """Lets the time pass from now on."""
        if not self.playing:
            self.playing = True
            self._last = self._now()

    def pause(self) -> None:
        """Stops at the frame that is shown."""
        self.playing = False

    def tick(self) -> None:
        """Goes on to the frame that is due now. Does nothing unless playing."""
        if self.playing:
            now = self._now()
            self._advance(max(0.0, now - self._last))
            self._last = now

    def step(self) -> None:
        """Pauses, and goes one frame on."""
        self.pause()
        self._advance(self._frame_seconds)

    def reset(self) -> None:
        """Goes back to frame 0 at time 0. It goes on playing if it plays."""
        self.time = self.delta = 0.0
        self.frame = 0
        self._last = self._now()

    def _advance(self, seconds: float) -> None:
        self.time += seconds
        self.delta = seconds
        self.frame += 1


@dataclass
class Mouse:
    """The pointer over the picture, in pixels from the top left corner."""

    x: float = 0.0
    y: float = 0.0
    held: bool = False
    presses: int = 0
    dragged: tuple[float, float] = (0.0, 0.0)
    """Where it was last while a button was held."""
    pressed: tuple[float, float] = (0.0, 0.0)
    """Where a button was pressed last."""
    new: bool = field(default=False, repr=False)
    """Whether a button was pressed since the last frame."""

    def update(self, message: Mapping[str, Any], columns: int, rows: int) -> None:
        """Takes over what the browser tells: x and y in pixels, held, presses, and where it was pressed."""
        self.x, self.y = _inside(message, "x", columns), _inside(message, "y", rows)
        self.held = bool(message.get("held"))
        presses = int(message.get("presses", 0))
        self.new = self.new or presses != self.presses
        if presses != self.presses:
            self.pressed = (_inside(message, "pressed_x", columns), _inside(message, "pressed_y", rows))
            self.dragged = self.pressed
        self.presses = presses
        if self.held:
            self.dragged = (self.x, self.y)


def _inside(message: Mapping[str, Any], name: str, size: int) -> float:
    value = float(message.get(name, 0.0))
    return min(max(value, 0.0), float(size)) if math.isfinite(value) else 0.0


@dataclass
class State:
    """All that the push constants may follow."""

    clock: Clock
    columns: int
    rows: int
    mouse: Mouse = field(default_factory=Mouse)

    def shadertoy_mouse(self) -> list[float]:
        """Shadertoy's ``iMouse``: y counts upwards; z and w tell by their signs if it is held and new."""
        mouse = self.mouse
        # Signs tell nothing of zero, so the edges count as half a pixel.
        x, y = (max(0.5, mouse.pressed[0]), max(0.5, self.rows - mouse.pressed[1]))
        if not mouse.presses:
            return [0.0] * 4
        return [
            mouse.dragged[0],
            self.rows - mouse.dragged[1],
            x if mouse.held else -x,
            y if mouse.new else -y,
        ]


@dataclass(frozen=True)
class _Source:
    """Where a push constant's values come from."""

    value: Callable[[State], list[float]]
    sizes: tuple[int, ...]
    whole: tuple[bool, ...]
    """Whether floats (False) and integers (True) may hold it."""


_FLOAT, _ANY = (False,), (False, True)
_TIME = _Source(lambda state: [state.clock.time], (1,), _FLOAT)
_DELTA = _Source(lambda state: [state.clock.delta], (1,), _FLOAT)
_FRAME = _Source(lambda state: [state.clock.frame], (1,), _ANY)
_SIZE = _Source(lambda state: [state.columns, state.rows, 1], (2, 3), _ANY)
_MOUSE = _Source(
    lambda state: [state.mouse.x, state.mouse.y, float(state.mouse.held), float(state.mouse.presses)],
    (2, 3, 4),
    _ANY,
)
SOURCES = {
    "time": _TIME,
    "iTime": _TIME,
    "time_delta": _DELTA,
    "iTimeDelta": _DELTA,
    "frame": _FRAME,
    "iFrame": _FRAME,
    "resolution": _SIZE,
    "iResolution": _SIZE,
    "mouse": _MOUSE,
    "iMouse": _Source(State.shadertoy_mouse, (4,), _FLOAT),
}
"""The push constants that follow the state, by name."""

_INTEGER_KINDS = ("int32", "uint32", "int64", "uint64", "int16", "uint16")
_FLOAT_KINDS = ("float32", "float64", "float16")


def value_of(name: str, layout: Mapping[str, Any], state: State) -> Any:
    """The value of the push constant `name` in `state`; None if nothing of that name follows it.

    Raises InvalidArgumentError if its type cannot hold the value.
    """
    source = SOURCES.get(name)
    if source is None:
        return None
    kind, size = str(layout["kind"]), int(layout["rows"])
    whole = kind in _INTEGER_KINDS
    fits = kind in _FLOAT_KINDS or whole
    if (
        not fits
        or layout["array"]
        or layout["columns"] > 1
        or size not in source.sizes
        or whole not in source.whole
    ):
        raise InvalidArgumentError(
            f"moving pictures give {name!r} {_wanted(source)}, and the shader declares another type: change "
            f"it, or give {name}= a value"
        )
    numbers = source.value(state)[:size]
    values = [int(number) for number in numbers] if whole else [float(number) for number in numbers]
    return values[0] if size == 1 else values


def _wanted(source: _Source) -> str:
    if source.sizes == (1,):
        return "a float or an int" if source.whole == _ANY else "a float"
    kinds = " or ".join(f"vec{size}" for size in source.sizes)
    return f"a {kinds} of floats" + (" or integers" if source.whole == _ANY else "")
