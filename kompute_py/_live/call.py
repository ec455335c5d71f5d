"""A call of a kernel, or a sequence, that runs again and again with some push constants that move.

Knows no window and no widget: a push constant that moves by hand is a `Knob`, and a front end shows that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._base.errors import ArgumentTypeError, InvalidArgumentError, kind_of
from .._kernels.kernel import Kernel
from .._memory.memory import Memory
from .._recording.sequence import Sequence
from .state import State, value_of

if TYPE_CHECKING:
    import numpy as np

_CALL = ("grid", "groups", "indirect", "uses")
_INTEGERS = {f"{sign}int{bits}": (sign == "", bits) for sign in ("", "u") for bits in (8, 16, 32, 64)}
_Members = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Knob:
    """A push constant that is moved by hand."""

    name: str
    kind: type
    """bool, int or float."""
    low: float = 0
    high: float = 1
    step: float = 1
    start: float = 0


class LiveCall:
    """The work for each picture, and the memory that it shows."""

    def __init__(
        self,
        source: Kernel | Sequence,
        run: Callable[[dict[str, Any]], Any],
        shown: Memory,
        knobs: dict[str, Knob],
        moving: _Members,
    ) -> None:
        self.source = source
        self.shown = shown
        self.knobs = knobs
        """The push constants with a range."""
        self.moving = moving
        """The layouts of the push constants that follow a `State`."""
        self._run = run

    @property
    def starts(self) -> dict[str, Any]:
        """The values of the knobs before anybody moves them."""
        return {name: knob.kind(knob.start) for name, knob in self.knobs.items()}

    def __call__(self, knobs: Mapping[str, Any], state: State | None = None) -> np.ndarray[Any, Any]:
        """Runs with these values of the knobs; returns what it shows, read from the device."""
        moved = (
            {} if state is None else {name: value_of(name, each, state) for name, each in self.moving.items()}
        )
        self._run({**knobs, **moved})
        return self.shown.read()


def live_call(
    what: str,
    source: Kernel | Sequence,
    args: tuple[Any, ...],
    keywords: dict[str, Any],
    show: Memory | None,
    state: State | None = None,
) -> LiveCall:
    """Checks the arguments of `what` (sliders, play, show), and makes the knobs.

    With a `state`, push constants of the names that follow one do so. Raises the errors that `sliders` lists.
    """
    if show is not None and not isinstance(show, Memory):
        raise ArgumentTypeError(f"{what}: show is {kind_of(show)}; give a Tensor or an Image")
    if isinstance(source, Sequence):
        if args or keywords:
            raise InvalidArgumentError(f"{what}: a sequence has its arguments already; give show= alone")
        if show is None:
            raise InvalidArgumentError(f"{what}: give show=, the tensor or image of the sequence to draw")
        return LiveCall(source, lambda _: source.eval(), show, {}, {})
    if not isinstance(source, Kernel):
        raise ArgumentTypeError(
            f"{what} takes a kp.Kernel or a kp.Sequence first, not {type(source).__name__}"
        )
    return _of_kernel(what, source, args, keywords, show, state)


def _of_kernel(
    what: str,
    kernel: Kernel,
    args: tuple[Any, ...],
    keywords: dict[str, Any],
    show: Memory | None,
    state: State | None,
) -> LiveCall:
    rest = dict(keywords)
    call = {name: rest.pop(name) for name in _CALL if name in rest}
    bind, given = rest.pop("bind", None) or {}, dict(rest.pop("push", None) or {})
    push = kernel.signature.push
    members: _Members = {} if push is None else dict(zip(push.names, push.members, strict=True))
    given.update({name: rest.pop(name) for name in list(rest) if name in members})
    unknown = sorted(set(given) - set(members))
    if unknown:
        raise InvalidArgumentError(
            f"{kernel.name} has no push constant {unknown[0]!r}; it has: {', '.join(members)}"
        )
    knobs: dict[str, Knob] = {}
    fixed: dict[str, Any] = {}
    moving: dict[str, Any] = {}
    for name, layout in members.items():
        if name in given and not (isinstance(given[name], tuple) and _is_scalar(layout)):
            fixed[name] = given[name]
        elif state is not None and name not in given and (value := value_of(name, layout, state)) is not None:
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

    def run(moved: dict[str, Any]) -> None:
        kernel(*args, **rest, **call, bind=bind, push={**fixed, **moved})

    layouts = {name: members[name] for name in moving}
    return LiveCall(kernel, run, written[0] if show is None else show, knobs, layouts)


def _is_scalar(layout: Mapping[str, Any]) -> bool:
    kind = layout["kind"]
    scalar = kind in _INTEGERS or kind == "bool" or kind.startswith("float")
    return scalar and not layout["array"] and max(layout["rows"], layout["columns"]) <= 1


def _knob(kernel: Kernel, name: str, kind: str, given: tuple[Any, ...] | None) -> Knob:
    what = f"{kernel.name}: the range of {name!r}"
    if kind == "bool":
        if given is not None:
            raise InvalidArgumentError(f"{what} is {given!r}; a bool has no range")
        return Knob(name, bool)
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
    return Knob(name, int if whole else float, low, high, step, start)


def _is_number(value: Any, whole: bool) -> bool:
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        return False
    return math.isfinite(value)
