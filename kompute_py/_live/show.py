"""`kp.show`: a kernel or a sequence as a moving picture in a window, or in a film."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from os import PathLike
from typing import TYPE_CHECKING, Any

from .._base.errors import InvalidArgumentError
from .._kernels.kernel import Kernel
from .._memory.memory import Memory
from .._recording.sequence import Sequence
from .film import checked_path, write_video
from .player import Player, player_of
from .window import run_window

if TYPE_CHECKING:
    import numpy as np


def show(
    source: Kernel | Sequence,
    *args: Any,
    show: Memory | None = None,
    fps: float = 60.0,
    before: Callable[[], Any] | None = None,
    limits: tuple[float, float] | None = None,
    title: str | None = None,
    frames: int | None = None,
    path: str | PathLike[str] | None = None,
    **keywords: Any,
) -> None:
    """Shows what a kernel or a sequence draws, frame after frame: in a window, or as a film in `path`.

    ::

        kp.show(waves, image, speed=(0.1, 4.0))                       # a window with a slider for `speed`
        kp.show(seq, show=image)                                      # a recording, evaluated for each frame
        kp.show(waves, image, path="waves.mp4", frames=120)           # a film, without a window

    It returns when the window is closed, or after `frames` frames. A kernel takes the arguments of its call,
    with tensors and images. A push constant with a range, ``(low, high[, step[, start]])``, has a slider; so
    has one without an argument (a float from 0 to 1, an int from 0 to 16, a bool as a check box). Push
    constants of the names ``time``, ``time_delta``, ``frame``, ``resolution``, ``mouse`` and Shadertoy's
    ``iTime``, ``iTimeDelta``, ``iFrame``, ``iResolution``, ``iMouse`` follow the window, as for
    `kp.notebook.play`, which says what they are. A sequence is evaluated as it was recorded. A kernel made
    with ``watch=True`` takes each saved version of its file; while one has a mistake, which is shown below
    the picture, the version before it goes on.

    `show` is the tensor or image to draw, (rows, columns[, 1, 3 or 4]); by default the first that the kernel
    writes. `limits` are the numbers that become black and white: by default 0 and 1 for floats and the
    dtype's range for integers. `before` is called before each new frame. At most `fps` frames a second are
    drawn; time is real time, and a slow kernel draws fewer. The space bar plays and pauses, the right arrow
    goes one frame on, R goes to the beginning, and Escape closes the window. An error stops the play and is
    shown below the picture; with `frames` it is raised.

    With `path` there is no window: `frames` frames, 1 / `fps` seconds apart, are written as
    `kp.write_video` says. Sliders stay at their starts, and the mouse at 0.

    Raises FailedPreconditionError if Dear PyGui (the extra ``show``) or a display is missing, in another
    thread than the main one, and if a window is open already; InvalidArgumentError for a `path` without
    `frames`, `frames` below 1, a sequence without `show`, what is not a picture, and what `kp.notebook.play`
    refuses; the errors of `kp.write_video`; and those of the first call.

    >>> picture = mgr.tensor_t(np.zeros((8, 8), np.float32))
    >>> kp.show(mgr.sequence().record(kp.OpSyncDevice([picture])), show=picture, path="dark.gif", frames=3)
    """
    if frames is not None and (isinstance(frames, bool) or not isinstance(frames, int) or frames < 1):
        raise InvalidArgumentError(f"show: frames is {frames!r}; give a whole number from 1")
    if path is not None and frames is None:
        raise InvalidArgumentError(f"show: a film has an end: give frames= with path={str(path)!r}")
    # A film's name is checked before the device works.
    place = None if path is None else checked_path(path)
    player = player_of("show", source, args, keywords, show=show, fps=fps, before=before, limits=limits)
    if place is None:
        run_window(player, float(fps), title or f"{source.name or 'sequence'}: {player.title}", frames)
    else:
        assert frames is not None
        write_video(place, _drawn(player, frames), float(fps))


def _drawn(player: Player, frames: int) -> Iterator[np.ndarray[Any, Any]]:
    for index in range(frames):
        if index:
            player.state.clock.step()
        yield player.draw(player.call.starts)
