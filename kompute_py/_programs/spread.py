"""An entry of a program on several Managers: a call gives each its own arguments, and all work at once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.errors import ArgumentTypeError, InvalidArgumentError, UnimplementedError, kind_of
from .._kernels.kernel import Kernel
from .._recording.preload import in_parallel
from .._sync.fence import Fence
from .._sync.ordered import ordered

if TYPE_CHECKING:
    from .running import Recorded

_SAME = (str, Number, np.generic, Mapping, tuple, type(None))
"""Each Manager gets these as they are: numbers, members of blocks, grids, names of donated arguments."""


class Spread:
    """An entry on several Managers."""

    def __init__(self, name: str, targets: list[Kernel | Recorded]) -> None:
        self._name = name
        self._targets = targets
        self._cuts = not isinstance(targets[0], Kernel)
        """Whether arrays are cut. A recording's shapes tell whether that was meant; a kernel takes any."""

    def __call__(self, /, *args: Any, wait: Any = (), signal: Any = (), **named: Any) -> Any:
        """A call on each Manager."""
        cut: list[tuple[Any, list[Any]]] = []
        each = self._arguments(args, named, cut)
        with ordered(wait, signal):
            calls = [partial(target, *a, **n) for target, (a, n) in zip(self._targets, each, strict=True)]
            results = in_parallel(lambda call: call(), calls, len(calls))
        if not isinstance(results[0], tuple):
            return _gathered(results, cut)
        return tuple([_gathered(pieces, cut) for pieces in zip(*results, strict=True)])

    def submit(self, /, *args: Any, wait: Any = (), signal: Any = (), **named: Any) -> Fence:
        """See `ProgramEntry.submit`."""
        if wait or signal:
            raise UnimplementedError(
                f"{self._name}.submit on several Managers takes neither wait nor signal, which belong to "
                "one: submit to each, program.on(mgr)"
            )
        each = self._arguments(args, named, [])
        fences = [target.submit(*a, **n) for target, (a, n) in zip(self._targets, each, strict=True)]
        joined = Fence.join(*fences)
        joined.results = tuple(map(list, zip(*[fence.results for fence in fences], strict=True)))
        return joined

    def bind(self, /, *_: Any, **__: Any) -> Any:
        """Refused."""
        raise UnimplementedError(
            f"{self._name}.bind makes an operation of one Manager: program.on(mgr) has it"
        )

    def preload(self) -> None:
        """`ProgramEntry.preload` on each."""
        in_parallel(lambda target: target.preload(), self._targets, len(self._targets))

    def _arguments(
        self, args: tuple[Any, ...], named: Mapping[str, Any], cut: list[tuple[Any, list[Any]]]
    ) -> list[tuple[list[Any], dict[str, Any]]]:
        """The arguments of each Manager, by position and by name. Arrays that are cut are added to `cut`."""
        count = len(self._targets)

        def pieces(what: str, value: Any) -> Any:
            if what == "out" and isinstance(value, tuple):
                return zip(*[pieces("a part of out", each) for each in value], strict=True)
            if isinstance(value, _SAME) or what == "donate":
                return [value] * count
            if isinstance(value, list):
                if len(value) == count:
                    return value
                raise InvalidArgumentError(
                    f"{self._name}: {what} is a list of {len(value)}; on {count} Managers, a list has one "
                    "argument for each"
                )
            if not self._cuts or type(value) is not np.ndarray or not value.ndim:
                array = ": np.array_split(x, n)" if type(value) is np.ndarray and value.ndim else ""
                raise ArgumentTypeError(
                    f"{self._name}: {what} is {kind_of(value)}; on {count} Managers, give a list with one "
                    f"argument for each{array}"
                )
            made = np.array_split(value, count)
            cut.append((value, made))
            return made

        by_place = [pieces(f"argument {number}", each) for number, each in enumerate(args)]
        by_name = [pieces(name, each) for name, each in named.items()]
        ordered_pieces = zip(*by_place, *by_name, strict=True) if by_place or by_name else [()] * count
        return [
            (list(each[: len(args)]), dict(zip(named, each[len(args) :], strict=True)))
            for each in ordered_pieces
        ]


def _gathered(results: Any, cut: list[tuple[Any, list[Any]]]) -> Any:
    """The result of a call for those of all Managers: of arrays that were cut an array, else a list."""
    if results[0] is None:
        return None
    for whole, pieces in cut:
        if all(one is other for one, other in zip(results, pieces, strict=True)):
            return whole
    if cut and all(isinstance(each, np.ndarray) for each in results):
        return np.concatenate([np.atleast_1d(each) for each in results])
    return list(results)
