"""Sliders for a kernel's push constants, with a picture that follows them.

Needs ipywidgets (the extra ``notebook``).
"""

from __future__ import annotations

import html
from typing import Any

from .._base.errors import KomputeError
from .._display import drawings
from .._display.cards import memory_title
from .._kernels.kernel import Kernel
from .._live.call import LiveCall, live_call
from .._memory.memory import Memory
from .._recording.sequence import Sequence
from .widgets import Live, ipywidgets, knobs_of

__all__ = ["Sliders", "sliders"]


class Sliders(Live):
    """A widget with a slider for each push constant and a picture of the kernel's result.

    Created by `sliders`.
    """

    def __init__(self, call: LiveCall) -> None:
        self.picture: Any = ipywidgets.HTML()
        """The picture or an error, as HTML."""
        knobs = knobs_of(call)
        for knob in knobs.values():
            knob.observe(lambda _: self.run(), names="value")
        super().__init__(call, knobs, below=[self.picture])
        try:
            self._draw()
        except BaseException:
            self.close()
            raise

    def run(self) -> None:
        """Calls the kernel and draws the result, or the error that it raised."""
        try:
            self._draw()
        except KomputeError as error:
            text = html.escape(str(error))
            self.picture.value = f'<pre role="alert" style="color:#e53935;white-space:pre-wrap">{text}</pre>'

    def _draw(self) -> None:
        values = self._open()(self._positions())
        if drawings.is_picture(values.shape, values.dtype):
            self.picture.value = drawings.picture(values).html(memory_title(self.shown))
        else:
            self.picture.value = drawings.line(values) or f"<pre>{html.escape(repr(values))}</pre>"


def sliders(kernel: Kernel | Sequence, *args: Any, show: Memory | None = None, **keywords: Any) -> Sliders:
    """Sliders for the scalar push constants of `kernel`. Each movement calls the kernel and draws its result.

    ::

        kp.notebook.sliders(blur, src, out=dst, sigma=(0.0, 10.0), steps=3)

    The arguments are those of a call of the kernel, with tensors and images. For a push constant give a tuple
    ``(low, high)``, ``(low, high, step)`` or ``(low, high, step, start)`` for a slider in that range, or a
    number for a fixed value. Without an argument, a float gets a slider from 0 to 1, an integer from 0 to 16,
    and a bool a check box. Vectors, matrices and structs need a value. `show` is the tensor or image to draw,
    by default the first that the kernel writes.

    Raises InvalidArgumentError for an invalid range, a push constant that needs a value, or a kernel that
    writes none of its arguments; ArgumentTypeError if `kernel` is not a Kernel or an argument is an array;
    and the errors of the first call. Errors of later calls replace the picture.
    """
    return Sliders(live_call("sliders", kernel, args, keywords, show))
