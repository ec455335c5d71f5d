"""A picture that plays: a kernel called for each frame, with its time, frame and mouse as push constants.

Needs ipywidgets and anywidget (the extra ``notebook``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.errors import FailedPreconditionError, KomputeError
from .._display import drawings
from .._kernels.kernel import Kernel
from .._live.player import Player, player_of
from .._memory.memory import Memory
from .._recording.sequence import Sequence
from .widgets import Live, knobs_of

try:
    import anywidget
    import traitlets
except ImportError:
    raise FailedPreconditionError("play needs anywidget: pip install 'kompute-py[notebook]'") from None

__all__ = ["Play", "play"]

_MOST_PIXELS = 1024
"""Larger pictures are sent with every n-th pixel."""
_SHOWN_SIDE = 384  # small pictures are enlarged to about this


if TYPE_CHECKING:

    class _AnyWidget:
        """The part of anywidget.AnyWidget that has to have types."""

        def __init__(self, **traits: Any) -> None: ...
        def __getattr__(self, name: str) -> Any: ...

else:
    _AnyWidget = anywidget.AnyWidget


class _Screen(_AnyWidget):
    """The picture and the buttons, in the browser."""

    _esm = Path(__file__).with_name("play.js")
    playing = traitlets.Bool(False).tag(sync=True)
    error = traitlets.Unicode("").tag(sync=True)
    description = traitlets.Unicode("").tag(sync=True)
    fps = traitlets.Float(30.0).tag(sync=True)
    follows_mouse = traitlets.Bool(False).tag(sync=True)
    scale = traitlets.Int(1).tag(sync=True)
    """Pixels of the array by pixels of the picture."""


class Play(Live):
    """A widget with a picture that plays, buttons and sliders.

    Created by `play`.
    """

    def __init__(self, player: Player, fps: float) -> None:
        self._player = player
        self._state = state = player.state
        call = player.call
        self._pixels = np.zeros((1, 1, 4), np.uint8)
        self._took = 0.0
        self._asked = False
        scale = -(-max(state.columns, state.rows) // _MOST_PIXELS)
        self._screen: Any = _Screen(
            fps=fps,
            scale=scale,
            follows_mouse=any("mouse" in name.lower() for name in call.moving),
            description=f"{player.title} as a moving picture, {state.columns} columns by {state.rows} rows",
        )
        knobs = knobs_of(call)
        super().__init__(call, knobs, above=[self._screen])
        try:
            self._draw()
        except BaseException:
            self.close()
            raise
        self._screen.on_msg(self._heard)
        for knob in knobs.values():
            knob.observe(lambda _: self._try(), names="value")

    @property
    def playing(self) -> bool:
        """Whether time passes."""
        return self._state.clock.playing

    @property
    def time(self) -> float:
        """The time of the frame that is shown, in seconds."""
        return self._state.clock.time

    @property
    def frame(self) -> int:
        """The number of the frame that is shown, from 0."""
        return self._state.clock.frame

    @property
    def error(self) -> str:
        """The error that stopped the play; "" if there is none."""
        return str(self._screen.error)

    def play(self) -> None:
        """Lets the time pass. The browser asks for frames while the picture is in view.

        Raises FailedPreconditionError if the widget is closed; so do `step` and `reset`.
        """
        self._open()
        self._screen.error = ""
        self._state.clock.play()
        self._screen.playing = True

    def pause(self) -> None:
        """Stops at the frame that is shown."""
        self._state.clock.pause()
        self._screen.playing = False

    def step(self) -> None:
        """Pauses, goes one frame on (by 1 / fps seconds) and draws it. The picture shows errors."""
        self._open()
        self._state.clock.step()
        self._screen.playing = False
        self._try(fresh=True)

    def reset(self) -> None:
        """Goes back to frame 0 at time 0 and draws it. It goes on playing if it plays."""
        self._open()
        self._state.clock.reset()
        self._try(fresh=True)

    def close(self) -> None:
        """Stops, removes the widgets and releases the kernel and its memory."""
        if self._call is not None:
            self._state.clock.pause()
            del self._player
        super().close()

    def _heard(self, _: Any, message: Mapping[str, Any], buffers: Any) -> None:
        """Answers the browser. Each question gets one answer: the browser counts those that are open."""
        if self._call is None:
            return
        self._asked = message.get("ask") is not None
        try:
            self._answer(message)
        finally:
            if self._asked:
                self._tell({})

    def _answer(self, message: Mapping[str, Any]) -> None:
        if "mouse" in message:
            self._state.mouse.update(message["mouse"], self._state.columns, self._state.rows)
        pressed, asked = message.get("press"), message.get("ask")
        if pressed in ("play", "pause", "step", "reset"):
            getattr(self, pressed)()
        elif asked == "frame" and self.playing:
            self._state.clock.tick()
            self._try(fresh=True)
        elif asked == "same":
            self._try()
        elif asked == "last":
            self._send()

    def _try(self, fresh: bool = False) -> None:
        """Draws and sends a frame. An error stops the play and is shown.

        `fresh`: the frame is another one than before, so `before` is called.
        """
        if self._call is None:
            return
        try:
            self._draw(fresh)
        except Exception as error:
            self.pause()
            text = str(error) if isinstance(error, KomputeError) else f"{type(error).__name__}: {error}"
            self._screen.error = text
            return
        except BaseException:  # an interrupt
            self.pause()
            raise
        self._screen.error = ""
        self._send()

    def _draw(self, fresh: bool = True) -> None:
        self._open()
        player = self._player
        self._pixels = player.draw(self._positions(), fresh=fresh, every=self._screen.scale)
        self._took = player.milliseconds

    def _send(self) -> None:
        rows, columns = self._pixels.shape[:2]
        zoom = max(1, _SHOWN_SIDE // max(rows, columns))
        message = {"frame": self.frame, "time": self.time, "rows": rows, "columns": columns, "zoom": zoom}
        self._tell({**message, "took": self._took}, [self._pixels.tobytes()])

    def _tell(self, message: dict[str, Any], buffers: list[bytes] | None = None) -> None:
        self._screen.send({**message, "answer": self._asked}, buffers=buffers)
        self._asked = False

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """The widget, and the frame that is shown as a picture, for front ends without widgets."""
        data = super()._repr_mimebundle_(**options)
        if isinstance(data, dict) and self._call is not None:
            data["image/png"] = drawings.picture(self._pixels).png
        return data


def play(
    kernel: Kernel | Sequence,
    *args: Any,
    show: Memory | None = None,
    fps: float = 30.0,
    before: Callable[[], Any] | None = None,
    limits: tuple[float, float] | None = None,
    **keywords: Any,
) -> Play:
    """A picture that plays: calls `kernel` for each frame and shows the tensor or image that it writes.

    ::

        kp.notebook.play(waves, out=image, speed=(0.1, 4.0)).play()

    The arguments are those of `sliders`. Push constants with these names follow the play, unless they are
    given:

    - ``time``, ``iTime`` (float): seconds of play;
    - ``time_delta``, ``iTimeDelta`` (float): seconds since the frame before;
    - ``frame``, ``iFrame`` (int, uint or float): the number of the frame, from 0;
    - ``resolution``, ``iResolution`` (vec2, vec3, ivec2, uvec2, ...): columns, rows, 1;
    - ``mouse`` (vec2 to vec4, or integers): x and y in pixels of the picture, from its top left corner, y
      downwards as the rows; 1 while a button is held, else 0; the number of presses so far;
    - ``iMouse`` (vec4): as in Shadertoy. y counts upwards. xy: where it was dragged last; zw: where it was
      pressed, z positive while the button is held, w in the first frame of a press.

    Time is real time: if the kernel is slow, fewer frames are drawn, and missed frames are not drawn later.
    The browser asks for at most `fps` frames a second, and for none while the picture is out of view.

    `before` is called before the kernel in each new frame, for example ``seq.eval``. `limits` are the numbers
    that become black and white: by default 0 and 1 for floats and the dtype's range for integers. Alpha is
    ignored.

    An error, of the kernel or of `before`, stops the play and is shown below the picture. When the cell runs
    again, its earlier widgets are closed.

    Raises InvalidArgumentError for a result that is not a picture ((rows, columns) or (rows, columns, 1, 3 or
    4) with at least 8 rows and columns, one at most 64 times the other), an `fps` not above 0 and at most
    240, limits that are not two different finite numbers, or a push constant of a listed name and another
    type; and the errors of `sliders`.
    """
    player = player_of("play", kernel, args, keywords, show=show, fps=fps, before=before, limits=limits)
    return Play(player, float(fps))
