"""Functions of several operations, to call and to record.

A body is written once, with `run` for each operation that it needs: a call runs them one after the other, and
``.bind`` records them as one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..._base.errors import InvalidArgumentError, KomputeError
from ..._base.public import Routine
from ..._builders.elementwise import elementwise
from ..._custom.declaration import parse
from ..._custom.specs import TensorSpec
from ..._functions.called import called, explained
from ..._functions.custom_op import CustomOp
from ..._functions.forming import made_of_specs
from ..._functions.function import Function
from ..._functions.given import flat, manager_of
from ..._functions.library import recalled
from ..._functions.op_custom import OpCustom
from ..._manager.default import manager as default_manager
from ..._memory.needs import Imagined, planned
from ..._memory.strided import StridedView
from ..._sync.ordered import (
    Order,
    called_in_order,
    in_order,
    order_of,
    stream_of,
    submit_stream,
    with_options,
)
from .given import countable
from .moving import ascontiguousarray

if TYPE_CHECKING:
    from ..._manager.manager import Manager
    from ..._memory.needs import MemoryNeeds
    from ..._sync.fence import Fence

Run = Callable[..., Any]
"""``run(operation, *arguments)`` gives the operation's results."""
_copy = elementwise("x")


def _direct(operation: Function, *args: Any, **named: Any) -> Any:
    return operation(*args, **named)


class _Recorder:
    """Records what it runs, for the function `title`."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.operations: list[OpCustom] = []

    def __call__(self, operation: Any, *args: Any, **named: Any) -> Any:
        made = operation._titled(self.title, *args, **named)
        self.operations.append(made)
        return made.results[0] if len(made.results) == 1 else made.results


class _Imaginer:
    """Gives what the operations would give on a Manager's device, without memory; None: on any device."""

    def __init__(self, manager: Manager | None) -> None:
        self._manager: Any = manager

    def __call__(self, operation: Any, *args: Any, out: Any = None, **named: Any) -> Any:
        return self.of(operation._specs(args, named, self._manager))

    def of(self, value: Any) -> Any:
        """Tensors in the place of specs."""
        if isinstance(value, (list, tuple)):
            return type(value)([self.of(each) for each in value])
        if not isinstance(value, TensorSpec):
            return value
        return Imagined.of(self._manager, value.shape, value.dtype)


class _Preparer(_Imaginer):
    """Prepares calls of what it runs, and gives memory like their results."""

    def __call__(self, operation: Any, *args: Any, out: Any = None, **named: Any) -> Any:
        operation.preload(*args, out=out, **named)
        return self.of(operation._specs(args, named, self._manager)) if out is None else out

    def of(self, value: Any) -> Any:
        """Tensors in the place of specs."""
        if isinstance(value, tuple):
            return tuple(made_of_specs(value, otherwise=lambda: self._manager))
        return made_of_specs([value], otherwise=lambda: self._manager)[0]


class _Plain(Routine):
    """A function of `kp.ops` without all that a `Function` has; `lacks` says why, in errors."""

    def __init__(
        self, body: Callable[..., Any], name: str, parameters: inspect.Signature, lacks: str
    ) -> None:
        self._body, self._lacks = body, lacks
        self.__name__: str = name
        self.__qualname__: str = name
        self.__doc__, self.__module__ = body.__doc__, body.__module__
        self.__signature__: inspect.Signature = parameters

    def __repr__(self) -> str:
        return f"<function kp.ops.{self.__name__}{self.__signature__}>"

    def __reduce_ex__(self, protocol: object) -> Any:
        """It is pickled by its name."""
        return recalled(self, self.__module__)

    def __getattr__(self, name: str) -> Any:
        text = f"kp.ops.{self.__name__} has no attribute {name!r}"
        if hasattr(Function, name):
            text += f": it {self._lacks}"
        raise AttributeError(text, name=name, obj=self)


class Composed(_Plain):
    """A function of several operations: ``f(...)`` runs them, ``f.bind(...)`` is one to record. `name` is the
    body's own, unless it is a part of another operation."""

    def __init__(self, body: Callable[..., Any], name: str = "") -> None:
        _, *rest = inspect.signature(body, eval_str=False).parameters.values()
        parameters = with_options(inspect.Signature(rest), out=None, wait=(), signal=())
        lacks = "runs several operations, and only single ones have it"
        super().__init__(body, name or body.__name__, parameters, lacks)

    def __call__(self, /, *args: Any, out: Any = None, **named: Any) -> Any:
        if "wait" in named or "signal" in named:
            return called_in_order(self, args, {**named, "out": out})
        return self._run(_direct, args, out, named)

    def _run(self, run: Run, args: tuple[Any, ...], out: Any, named: dict[str, Any]) -> Any:
        try:
            if named.pop("donate", ()) != ():
                raise InvalidArgumentError(
                    "it runs several operations, which donate nothing: leave donate= out"
                )
            found = self._body(run, *args, **named)
            if out is not None or (isinstance(run, _Recorder) and not run.operations):
                found = run(_copy, found, out=out)
            return found
        except (KomputeError, TypeError) as error:
            raise explained(error, self.__name__, self.__signature__, args, named)  # noqa: B904

    def memory_needs(self, /, *args: Any, out: Any = None, **named: Any) -> MemoryNeeds:
        """`Function.memory_needs` of all that it runs, with what lives at the same time."""
        manager = manager_of(self.__name__, flat((*args, *named.values(), out))) or default_manager()
        return planned(manager, self, args, {**named, "out": out})

    def bind(self, /, *args: Any, out: Any = None, **named: Any) -> OpCustom:
        """The operations for these arguments, as one to record. Tensors only; raises what a call raises."""
        return self._titled("", *args, out=out, **named)

    op = bind  # its older name

    def submit(self, /, *args: Any, wait: Any = (), signal: Any = (), **named: Any) -> Fence:
        """`Function.submit` of all that it runs, as one submission."""
        return self._submitted(args, order_of(wait, signal), **named)

    def _submitted(
        self, args: tuple[Any, ...], order: Order | None, /, out: Any = None, **named: Any
    ) -> Fence:
        operation = self.bind(*args, out=out, **named)
        manager = operation.results[0].manager
        new = operation.results if out is None else ()
        return submit_stream(manager, stream_of(manager, operation._parts), order, new)

    def preload(self, /, *args: Any, out: Any = None, **named: Any) -> None:
        """`Function.preload` of each operation that a call with arguments like these runs. It takes the
        memory of what they pass to each other while it prepares them.
        """
        manager = manager_of(self.__name__, flat((*args, *named.values(), out))) or default_manager()
        run = _Preparer(manager)
        given = [run.of(each) for each in args]
        self._run(run, tuple(given), out, {name: run.of(value) for name, value in named.items()})

    def meta(self, /, *args: Any, **named: Any) -> Any:
        """`Function.meta`: the specs of the results for arguments of these specs; needs no device."""
        return self._specs(args, named, None)

    def _specs(self, args: tuple[Any, ...], named: dict[str, Any], manager: Manager | None) -> Any:
        run = _Imaginer(manager)
        given = tuple([run.of(each) for each in args])
        found = self._run(run, given, None, {name: run.of(value) for name, value in named.items()})
        several = isinstance(found, tuple)
        specs = tuple([TensorSpec(each.shape, each.dtype) for each in (found if several else (found,))])
        return specs if several else specs[0]

    def _titled(self, title: str, /, *args: Any, out: Any = None, **named: Any) -> OpCustom:
        """`bind` for a function that records it among others; that one's name comes first."""
        recorder = _Recorder(f"{title}.{self.__name__}" if title else self.__name__)
        found = self._run(recorder, args, out, named)
        results = found if isinstance(found, tuple) else (found,)
        return OpCustom._joined(self.__name__, recorder.operations, results)


Composed.__name__ = Composed.__qualname__ = "Function"  # for help() and messages


def called_only(instead: str) -> Callable[[Callable[..., Any]], CalledOnly]:
    """A decorator of functions that are called and not recorded; `instead` says what is."""
    return lambda body: CalledOnly(body, instead)


class CalledOnly(_Plain):
    """A function for which the host looks at what the device computes, or that computes nothing."""

    def __init__(self, body: Callable[..., Any], instead: str) -> None:
        lacks = f"can only be called. To record, use {instead}"
        ordered = in_order(body)
        super().__init__(called(ordered), body.__name__, inspect.signature(ordered), lacks)
        self._instead = instead

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        return self._body(*args, **named)


CalledOnly.__name__ = CalledOnly.__qualname__ = "Function"


class Widened(Function):
    """An operation that takes more than its signature says: if `others` is true of
    the arguments that are given, a body runs several operations."""

    def __init__(
        self,
        op: type[CustomOp],
        others: Callable[[tuple[Any, ...], dict[str, Any]], bool],
        body: Callable[..., Any],
    ) -> None:
        super().__init__(op(), parse(op.signature))
        self._others = others
        self._body = Composed(body, self.__name__)

    def _is_other(self, args: tuple[Any, ...], named: dict[str, Any]) -> bool:
        return self._others(args, {**dict(zip(self._names, args, strict=False)), **named})

    def _general(
        self, exactly: Any, args: tuple[Any, ...], /, out: Any = None, donate: Any = (), **named: Any
    ) -> Any:
        if not self._is_other(args, named):
            return super()._general(exactly, args, out, donate, **named)
        return self._body(*args, out=out, donate=donate, **named)

    def _runs(self, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """What runs for these arguments."""
        return self._body if self._is_other(args, named) else super()

    def _titled(self, title: str, /, *args: Any, **named: Any) -> OpCustom:
        return self._runs(args, named)._titled(title, *args, **named)  # type: ignore[no-any-return]

    def _submitted(
        self, args: tuple[Any, ...], order: Order | None, /, out: Any = None, donate: Any = (), **named: Any
    ) -> Fence:
        return self._runs(args, named)._submitted(  # type: ignore[no-any-return]
            args, order, out=out, donate=donate, **named
        )

    def preload(self, /, *args: Any, **named: Any) -> None:
        """See `Function.preload`."""
        self._runs(args, named).preload(*args, **named)

    def _specs(self, args: tuple[Any, ...], named: dict[str, Any], manager: Manager | None) -> Any:
        return self._runs(args, named)._specs(args, named, manager)


def records(run: Run) -> bool:
    """Whether the operations are recorded: the host cannot look at what they compute."""
    return run is not _direct


def dense(run: Run, x: Any) -> Any:
    """A Tensor or an array with the elements in row-major order, which can be reshaped."""
    x = countable(x)
    return run(ascontiguousarray, x) if isinstance(x, StridedView) else x
