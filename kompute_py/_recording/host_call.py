"""OpHostCall: a Python function between two operations of a recording."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .. import _native
from .._base.arrays import as_name
from .._base.errors import ArgumentTypeError, InvalidArgumentError, kind_of
from .._memory.memory import Memory, memory_list
from .._memory.peer import HostSteps
from .operations import OpBase

if TYPE_CHECKING:
    from .._device.device import Device


class OpHostCall(OpBase):
    """Calls ``function()`` on the host between two operations of a recording, at each evaluation.

    The function starts when everything that was recorded before it is done, so `read()` and `data()` show the
    results. What was recorded after it starts when the function has returned, and uses what it wrote. The
    returned value is ignored. The function runs on the thread that evaluates the sequence. It may use the
    Manager's objects, other sequences and kernels among them, but not the sequence that it belongs to.

    `reads` and `writes` are lists of the tensors and images that the function reads and writes. Of the work
    of other sequences, it then waits for the work on these only. If both are None, it waits for all work that
    was submitted to the Manager. Work that other threads submit while the function runs is not held back.

    `name` is for errors, pictures and `repr`; by default, the function's own name.

    `eval_async` and `mgr.submit` call the function too, and return when the work after the last one is
    submitted. If the function raises an exception, no operation after it runs, work that waits for the
    sequence is cancelled, and the wait for the sequence (`eval`, `eval_await`, ``await``, `fence.wait`)
    raises the exception; then the sequence can be evaluated again. KeyboardInterrupt is raised at once.

    Sequences with timestamps refuse it with FailedPreconditionError, `OpRepeat` and `Sequence.stream` with
    UnimplementedError. Behind held work (which waits for a semaphore's value that nothing has signalled),
    `eval_async` and `mgr.submit` raise FailedPreconditionError; `eval` waits.

    Raises ArgumentTypeError if `function` is not callable, or is a coroutine function or a generator
    function; for lists of other things; and for a name that is not a str. Raises InvalidArgumentError for
    objects of several Managers.

    >>> t = mgr.tensor([1, 2, 3])
    >>> def halve():
    ...     t.write(t.read() / 2)
    >>> call = kp.OpHostCall(halve, reads=[t], writes=[t])
    >>> mgr.sequence().record(kp.OpFill([t], 6), call, kp.OpSyncLocal([t])).eval()
    <kp.Sequence ...>
    >>> t.data().tolist()
    [3.0, 3.0, 3.0]
    """

    __module__ = "kompute_py"  # public; imported when first used

    __slots__ = {
        "_native": "",
        "function": "The function.",
        "name": "The name, for errors and pictures.",
        "reads": "The memory that the function reads; None if neither list was given.",
        "writes": "The memory that the function writes; None if neither list was given.",
    }

    def __init__(
        self,
        function: Callable[[], object],
        *,
        reads: Iterable[Memory] | None = None,
        writes: Iterable[Memory] | None = None,
        name: str | None = None,
    ) -> None:
        if not callable(function):
            raise ArgumentTypeError(
                f"OpHostCall calls a function; {kind_of(function)} is not callable. Give the function "
                "itself, without ()"
            )
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            raise ArgumentTypeError(
                f"OpHostCall: {_name_of(function)} is a coroutine function or a generator function, and "
                "calling one runs nothing. Give a plain function"
            )
        self.function: Callable[[], object] = function
        self.name: str = _name_of(function) if name is None else as_name(name)
        self.reads: tuple[Memory, ...] | None = None
        self.writes: tuple[Memory, ...] | None = None
        if reads is not None or writes is not None:
            self.reads = tuple(
                memory_list(() if reads is None else reads, "OpHostCall(reads=...)", empty=True)
            )
            self.writes = tuple(
                memory_list(() if writes is None else writes, "OpHostCall(writes=...)", empty=True)
            )
        self._native = HostCalls(self)

    def __repr__(self) -> str:
        return f"<kp.OpHostCall {self.name}>"


def _name_of(function: Callable[..., object]) -> str:
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


class HostCalls(HostSteps):
    """The content of ``OpHostCall``. Immutable."""

    __slots__ = ("function", "name", "reads", "writes")

    what = "an OpHostCall"
    untimed = "the device's timestamps belong to one submission"

    def __init__(self, operation: OpHostCall) -> None:
        self.function = operation.function
        self.name = f"OpHostCall {operation.name}"
        self.reads = operation.reads
        self.writes = operation.writes
        memories = (*(self.reads or ()), *(self.writes or ()))
        self.managers = list({id(each._manager): each._manager for each in memories}.values())
        if len(self.managers) > 1:
            raise InvalidArgumentError(
                f"{self.name}: reads and writes have objects of several Managers. Give objects of the "
                "sequence's Manager; the function's own read() and write() wait for the work of others"
            )

    def steps(self, manager: Device) -> list[HostCall]:
        """Creates the step."""
        if self.managers and manager not in self.managers:
            raise InvalidArgumentError(
                f"{self.name}: its reads and writes belong to another Manager than the sequence. Record it "
                "into a sequence of their Manager"
            )
        return [HostCall(self, manager)]


class FunctionError(Exception):
    """A function raised `error`. Never leaves the package."""

    def __init__(self, name: str, error: Exception) -> None:
        super().__init__(f"{name} raised {type(error).__name__}: {error}")
        self.error = error


class HostCall:
    """A function as a part of a recording: see `peer.HostStep`."""

    __slots__ = ("_content", "_manager")

    def __init__(self, content: HostCalls, manager: Device) -> None:
        self._content = content
        self._manager = manager

    @property
    def name(self) -> str:
        """The operation's name."""
        return self._content.name

    def check(self) -> None:
        """Raises FailedPreconditionError if a declared object is destroyed."""
        for memory in (*(self._content.reads or ()), *(self._content.writes or ())):
            memory._require_init("be used by " + self.name)

    def _before(self) -> _native.Fence:
        content, context = self._content, self._manager._native
        if content.reads is None or content.writes is None:
            return _native.submit(context, [], [], [], [])  # all submitted work
        return _native.fence_before(
            context, [each._native for each in content.reads], [each._native for each in content.writes]
        )

    def why_held(self) -> str:
        """A sentence that names the semaphores to be signalled first; "" if it need not wait for any."""
        return self._before().why_held()

    def submit(self) -> None:
        """Waits and calls the function.

        Raises FunctionError if the function raises an Exception.
        """
        self.check()
        self._before().wait(-1.0)
        try:
            self._content.function()
        except Exception as error:
            raise FunctionError(self.name, error.with_traceback(_own(error))) from None

    def is_running(self) -> bool:
        """False: nothing runs after `submit`."""
        return False

    def poll(self) -> bool:
        """True: nothing runs after `submit`."""
        return True

    def fence(self) -> _native.Fence:
        """A fence that is done at once."""
        return _native.Fence.join([])


def _own(error: Exception) -> Any:
    """The traceback from the function on."""
    return error.__traceback__ and error.__traceback__.tb_next
