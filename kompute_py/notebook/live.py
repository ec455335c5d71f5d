"""Sliders for a kernel's push constants, with a picture that follows them.

Needs ipywidgets (the extra ``notebook``).
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .._base.errors import (
    ArgumentTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    KomputeError,
    kind_of,
)
from .._display import cards, pictures
from .._kernels.kernel import Kernel
from .._memory.memory import Memory

try:
    import ipywidgets
except ImportError:
    raise FailedPreconditionError("sliders needs ipywidgets: pip install 'kompute-py[notebook]'") from None

__all__ = ["Sliders", "sliders"]

if TYPE_CHECKING:

    class _Box:
        """The part of ipywidgets.VBox that has to have types: ipywidgets has none."""

        def __init__(self, children: list[Any]) -> None: ...
        def __getattr__(self, name: str) -> Any: ...
        def close(self) -> None: ...

else:
    _Box = ipywidgets.VBox

_CALL = ("grid", "groups", "uses")
_INTEGERS = {f"{sign}int{bits}": (sign == "", bits) for sign in ("", "u") for bits in (8, 16, 32, 64)}


class Sliders(_Box):
    """A widget with a slider for each push constant and a picture of the kernel's result.

    Created by `sliders`.
    """

    def __init__(
        self,
        kernel: Kernel,
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        shown: Memory,
        knobs: dict[str, Any],
    ) -> None:
        self.kernel = kernel
        self.shown = shown
        """The tensor or image in the picture."""
        self.knobs: dict[str, Any] = knobs
        """The widgets by push constant. Set ``.value`` to move a slider from Python."""
        self.picture: Any = ipywidgets.HTML()
        """The picture or an error, as HTML."""
        self._call = (args, keywords)
        for knob in knobs.values():
            knob.observe(lambda _: self.run(), names="value")
        super().__init__([*knobs.values(), self.picture])
        try:
            self._draw()
        except BaseException:
            self.close()
            raise

    @property
    def values(self) -> dict[str, Any]:
        """The push constants of the current slider positions."""
        return {name: knob.value for name, knob in self.knobs.items()}

    def close(self) -> None:
        """Removes the widgets and releases the kernel and its memory.

        Without it, ipywidgets keeps them alive.
        """
        for knob in self.knobs.values():
            knob.close()
        self.picture.close()
        super().close()

    def run(self) -> None:
        """Calls the kernel and draws the result, or the error that it raised."""
        try:
            self._draw()
        except KomputeError as error:
            text = html.escape(str(error))
            self.picture.value = f'<pre style="color:#e53935;white-space:pre-wrap">{text}</pre>'

    def _draw(self) -> None:
        args, keywords = self._call
        self.kernel(*args, **{**keywords, "push": {**keywords["push"], **self.values}})
        values = self.shown.read()
        if pictures.is_picture(values.shape, values.dtype):
            self.picture.value = pictures.picture(values).html(cards.memory_title(self.shown))
        else:
            self.picture.value = pictures.line(values) or f"<pre>{html.escape(repr(values))}</pre>"


def sliders(kernel: Kernel, *args: Any, show: Memory | None = None, **keywords: Any) -> Sliders:
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
    if not isinstance(kernel, Kernel):
        raise ArgumentTypeError(f"sliders takes a kp.Kernel first, not {type(kernel).__name__}")
    rest = dict(keywords)
    call = {name: rest.pop(name) for name in _CALL if name in rest}
    bind, given = rest.pop("bind", None) or {}, dict(rest.pop("push", None) or {})
    push = kernel.signature.push
    members: Mapping[str, Mapping[str, Any]] = (
        {} if push is None else dict(zip(push.names, push.members, strict=True))
    )
    given.update({name: rest.pop(name) for name in list(rest) if name in members})
    unknown = sorted(set(given) - set(members))
    if unknown:
        raise InvalidArgumentError(
            f"{kernel.name} has no push constant {unknown[0]!r}; it has: {', '.join(members)}"
        )
    knobs: dict[str, Any] = {}
    fixed: dict[str, Any] = {}
    for name, layout in members.items():
        if name in given and not (isinstance(given[name], tuple) and _is_scalar(layout)):
            fixed[name] = given[name]
        elif not _is_scalar(layout):
            raise InvalidArgumentError(f"{kernel.name}: {name!r} is not a single number: give it a value")
        else:
            knobs[name] = _knob(kernel, name, layout["kind"], given.get(name))
    every = dict.fromkeys(knobs, 0)
    # Resolved once with some values, so that wrong arguments raise here the errors of a call.
    values, _ = kernel.signature.resolve(kernel.name, args, dict(rest), bind, {**fixed, **every})
    written: list[Memory] = []
    for parameter, value in zip(kernel.signature.parameters, values, strict=True):
        if parameter.written:
            if isinstance(value, Memory):
                written.append(value)
            elif parameter.descriptors == 1:
                raise ArgumentTypeError(
                    f"{kernel.name}: {parameter.name!r} is {kind_of(value)}; sliders needs a Tensor "
                    "or an Image"
                )
    if show is None and not written:
        raise InvalidArgumentError(f"{kernel.name} writes no tensor or image to draw: give show=")
    shown = written[0] if show is None else show
    return Sliders(kernel, args, {**rest, **call, "bind": bind, "push": fixed}, shown, knobs)


def _is_scalar(layout: Mapping[str, Any]) -> bool:
    kind = layout["kind"]
    scalar = kind in _INTEGERS or kind == "bool" or kind.startswith("float")
    return scalar and not layout["array"] and max(layout["rows"], layout["columns"]) <= 1


def _knob(kernel: Kernel, name: str, kind: str, given: tuple[Any, ...] | None) -> Any:
    what = f"{kernel.name}: the range of {name!r}"
    if kind == "bool":
        if given is not None:
            raise InvalidArgumentError(f"{what} is {given!r}; a bool has no range")
        return ipywidgets.Checkbox(description=name)
    whole = kind in _INTEGERS
    numbers = given if given is not None else (0, 16) if whole else (0.0, 1.0)
    if not 2 <= len(numbers) <= 4 or not all(_is_number(each, whole) for each in numbers):
        raise InvalidArgumentError(
            f"{what} is {numbers!r}; give (low, high[, step[, start]]) in {'whole ' if whole else ''}numbers"
        )
    low, high = numbers[:2]
    step = numbers[2] if len(numbers) > 2 else 1 if whole else (high - low) / 100
    start = numbers[3] if len(numbers) > 3 else low
    if not low < high or not step > 0 or not low <= start <= high:
        raise InvalidArgumentError(
            f"{what} is {numbers!r}; low must be below high, step above 0, and start between low and high"
        )
    if whole:
        signed, bits = _INTEGERS[kind]
        least, most = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
        if low < least or high > most:
            raise InvalidArgumentError(f"{what} is {numbers!r}; a {kind} ranges from {least} to {most}")
        return ipywidgets.IntSlider(start, low, high, step, description=name)
    return ipywidgets.FloatSlider(start, min=low, max=high, step=step, description=name, readout_format=".4g")


def _is_number(value: Any, whole: bool) -> bool:
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        return False
    return math.isfinite(value)
