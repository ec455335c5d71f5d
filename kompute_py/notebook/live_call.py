"""A kernel's call with some push constants that move: by sliders, or by themselves.

Needs ipywidgets (the extra ``notebook``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from .._base.errors import ArgumentTypeError, FailedPreconditionError, InvalidArgumentError, kind_of
from .._kernels.kernel import Kernel
from .._memory.memory import Memory

try:
    import ipywidgets
except ImportError:
    raise FailedPreconditionError(
        "sliders and play need ipywidgets: pip install 'kompute-py[notebook]'"
    ) from None

if TYPE_CHECKING:
    import numpy as np

    class Box:
        """The part of ipywidgets.VBox that has to have types: ipywidgets has none."""

        def __init__(self, children: list[Any]) -> None: ...
        def __getattr__(self, name: str) -> Any: ...
        def close(self) -> None:
            """Removes it from the browser."""

        def _repr_mimebundle_(self, **options: Any) -> Any: ...

else:
    Box = ipywidgets.VBox

_CALL = ("grid", "groups", "indirect", "uses")
_INTEGERS = {f"{sign}int{bits}": (sign == "", bits) for sign in ("", "u") for bits in (8, 16, 32, 64)}


class LiveCall:
    """A call of a kernel, without the values of the push constants that move."""

    def __init__(
        self,
        kernel: Kernel,
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        shown: Memory,
        knobs: dict[str, Any],
        moving: list[str],
    ) -> None:
        self.kernel = kernel
        self.shown = shown
        self.knobs = knobs
        """A widget for each push constant with a range."""
        self.moving = moving
        """The push constants that have values of their own at each call."""
        self._args = args
        self._keywords = keywords

    @property
    def values(self) -> dict[str, Any]:
        """The push constants of the current slider positions."""
        return {name: knob.value for name, knob in self.knobs.items()}

    def __call__(self, moving: Mapping[str, Any]) -> np.ndarray[Any, Any]:
        """Calls the kernel; returns what it shows, read from the device."""
        push = {**self._keywords["push"], **self.values, **moving}
        self.kernel(*self._args, **{**self._keywords, "push": push})
        return self.shown.read()


def live_call(
    what: str,
    kernel: Kernel,
    args: tuple[Any, ...],
    keywords: dict[str, Any],
    show: Memory | None,
    value_of: Callable[[str, Mapping[str, Any]], Any] = lambda name, layout: None,
) -> LiveCall:
    """Checks the arguments of `sliders` or `play` (`what`) and makes the sliders.

    `value_of` gives a first value for each push constant that moves by itself, from its name and its layout;
    None for others.
    """
    if not isinstance(kernel, Kernel):
        raise ArgumentTypeError(f"{what} takes a kp.Kernel first, not {type(kernel).__name__}")
    if show is not None and not isinstance(show, Memory):
        raise ArgumentTypeError(f"{what}: show is {kind_of(show)}; give a Tensor or an Image")
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
    moving: dict[str, Any] = {}
    for name, layout in members.items():
        if name in given and not (isinstance(given[name], tuple) and _is_scalar(layout)):
            fixed[name] = given[name]
        elif name not in given and (value := value_of(name, layout)) is not None:
            moving[name] = value
        elif not _is_scalar(layout):
            raise InvalidArgumentError(f"{kernel.name}: {name!r} is not a single number: give it a value")
        else:
            knobs[name] = _knob(kernel, name, layout["kind"], given.get(name))
    every = dict.fromkeys(knobs, 0)
    # Resolved once with some values, so that wrong arguments raise here the errors of a call.
    values, _ = kernel.signature.resolve(kernel.name, args, dict(rest), bind, {**fixed, **every, **moving})
    written: list[Memory] = []
    for parameter, value in zip(kernel.signature.parameters, values, strict=True):
        if parameter.written:
            if isinstance(value, Memory):
                written.append(value)
            elif parameter.descriptors == 1:
                raise ArgumentTypeError(
                    f"{kernel.name}: {parameter.name!r} is {kind_of(value)}; {what} needs a Tensor "
                    "or an Image"
                )
    if show is None and not written:
        raise InvalidArgumentError(f"{kernel.name} writes no tensor or image to draw: give show=")
    shown = written[0] if show is None else show
    return LiveCall(kernel, args, {**rest, **call, "bind": bind, "push": fixed}, shown, knobs, list(moving))


class Live(Box):
    """A widget that calls a kernel again and again.

    It holds the kernel and its arguments until it is closed. When a cell runs again, the widgets that it made
    before are closed, if the front end tells which cell runs (JupyterLab and Notebook 7 do).
    """

    def __init__(self, call: LiveCall, children: list[Any]) -> None:
        self._call: LiveCall | None = call
        self._parts = children
        super().__init__(children)
        _replace_earlier(self)

    @property
    def kernel(self) -> Kernel:
        """The kernel. Raises FailedPreconditionError if the widget is closed."""
        return self._open().kernel

    @property
    def shown(self) -> Memory:
        """The tensor or image in the picture. Raises FailedPreconditionError if the widget is closed."""
        return self._open().shown

    @property
    def knobs(self) -> dict[str, Any]:
        """The sliders by push constant. Set ``.value`` to move one from Python.

        Raises FailedPreconditionError if the widget is closed.
        """
        return self._open().knobs

    @property
    def values(self) -> dict[str, Any]:
        """The push constants of the current slider positions.

        Raises FailedPreconditionError if the widget is closed.
        """
        return self._open().values

    def close(self) -> None:
        """Removes the widgets and releases the kernel and its memory.

        Without it, ipywidgets keeps them alive.
        """
        if getattr(self, "_call", None) is None:
            return
        self._call = None
        parts, self._parts = self._parts, []
        for part in [*parts, self]:
            # ipywidgets makes these beside each widget, and keeps them.
            for name in ("layout", "style"):
                beside = getattr(part, name, None)
                if isinstance(beside, ipywidgets.Widget):
                    beside.close()
        for part in parts:
            part.close()
        super().close()

    def _open(self) -> LiveCall:
        if self._call is None:
            raise FailedPreconditionError(
                f"The {type(self).__name__} is closed: run its cell again, or make a new one"
            )
        return self._call


# The widgets that each cell's last execution made: cell -> (execution, widgets).
_made_by: dict[str, tuple[str, WeakSet[Live]]] = {}


def _replace_earlier(made: Live) -> None:
    found = executing_cell()
    if found is None:
        return
    cell, execution = found
    earlier, widgets = _made_by.get(cell, ("", WeakSet()))
    if earlier != execution:
        for each in list(widgets):
            each.close()
        widgets = WeakSet()
        _made_by[cell] = (execution, widgets)
    widgets.add(made)


def executing_cell() -> tuple[str, str] | None:
    """The ids of the cell that runs and of its execution, if the front end told them."""
    try:
        from IPython import get_ipython  # type: ignore[attr-defined, unused-ignore]

        shell = get_ipython()  # type: ignore[no-untyped-call, unused-ignore]
        parent = shell.kernel.get_parent("shell")
        return str(parent["metadata"]["cellId"]), str(parent["header"]["msg_id"])
    except (ImportError, AttributeError, KeyError, TypeError):
        return None


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
