"""CustomOp: the class that users derive from, and the callable that it becomes.

Some 870 lines because the ways to use an operation (call, record, submit, prepare) share its state."""

from __future__ import annotations

import functools
import inspect
import struct
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, overload

import numpy as np

from .._base.called import begun, unknown
from .._base.errors import (
    ArgumentTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    KomputeError,
    UnimplementedError,
    kind_of,
    shown,
)
from .._compilers.settings import of_process
from .._manager.default import manager as default_manager
from .._memory.donation import Donated, end, give_back, take
from .._memory.image import Image
from .._memory.strided import StridedView
from .._memory.tensor import Tensor
from .._recording.preload import report_built
from .._recording.streams import stream_of, submit_stream
from .._shaders.signature import MISSING
from .._sync.fence import Fence
from .arguments import (
    answered,
    check_outs,
    checked,
    donated,
    features_for,
    outs_of,
    plain_types,
    python_signature,
    spec_of,
)
from .declaration import Declaration, parse
from .files import write_files
from .forming import made_of_specs, make_form, tried_out
from .forms import (
    GIVEN,
    Calls,
    Facts,
    Form,
    bases,
    flat,
    look,
    look_at_parts,
    overlapping,
    places_of,
    refuse_donated,
    require_alive,
    surely_apart,
    with_taken,
)
from .library import OpLibrary, Recipe, recalled
from .notes import unchanged
from .op_custom import CacheInfo, OpCustom
from .program import Program, compile_program, written
from .repeated import table_for, teach
from .selection import KernelSelection
from .tuning import Tuning, check_variants, choices_of

if TYPE_CHECKING:
    import os

    from typing_extensions import Self

    from .._manager.manager import Manager
    from .._sync.semaphore import Semaphore, Waitable
    from .builder import KernelBuilder

_Method = TypeVar("_Method", bound=Callable[..., Any])
_MOST_PROGRAMS = 256
"""Specializations that an operation keeps for each Manager."""


class CustomOp:
    """Base of custom operations. A class derives from it and is registered, which makes it a callable.

    ::

        @kp.CustomOp.register
        class scale(kp.CustomOp):
            "Each element of `x` times `factor`."

            signature = "scale(Tensor x, float factor=2.0) -> Tensor"

            def select(self, ksel):
                x = ksel.arg_tensor("x")
                ksel.arg_float("factor")
                ksel.return_new_tensor(x.shape, x.dtype)

            def generate(self, ksel, kb):
                kb.yield_results("x_load(i) * factor")

        scale(np.arange(4, dtype=np.float32))

    `select` decides for each call: what specializes the kernels, and what the results are. `generate` writes
    the kernels, once for each specialization. `eager_execute` may answer in Python instead: it gets the
    arguments as `select` does, and returns the results, or NotImplemented to run the kernels.

    >>> @kp.CustomOp.register
    ... class add_one(kp.CustomOp):
    ...     signature = "add_one(Tensor x) -> Tensor"
    ...     def select(self, ksel):
    ...         x = ksel.arg_tensor("x")
    ...         ksel.return_new_tensor(x.shape, x.dtype)
    ...     def generate(self, ksel, kb):
    ...         kb.yield_results("x_load(i) + 1")
    >>> add_one(mgr.tensor([0, 1, 2])).tolist()
    [1.0, 2.0, 3.0]
    """

    __module__ = "kompute_py"

    signature: ClassVar[str]
    """Name, parameters and results: ``"softmax(Tensor x, int axis=-1) -> Tensor"``."""
    single_dispatch: ClassVar[bool] = False
    """Whether one dispatch is all that `generate` may write."""

    reads_parts: ClassVar[bool] = False
    """Whether the kernels find the elements of parts of tensors that are not dense, such as ``t[:, 0]``, with
    the ``offset`` and ``strides`` of a `TensorArg`. Else such arguments are copied."""

    makes_images: ClassVar[bool] = False
    """Whether results are Images if an argument is one, where an image can have their shape and dtype. Else
    they are Tensors."""

    in_place: ClassVar[bool] = False
    """Whether results may be in the memory of dense arguments of their shape: no invocation reads an element
    that another one writes. Else arguments that share memory with `out` are copied."""

    def select(self, ksel: KernelSelection) -> None:
        """Declares each argument and the results of a call on `ksel`.

        Raises UnimplementedError unless a subclass defines it.
        """
        raise UnimplementedError(f"{type(self).__name__} does not define select(self, ksel)")

    def generate(self, ksel: KernelSelection, kb: KernelBuilder) -> None:
        """Writes the kernels of a specialization with `kb`.

        Raises UnimplementedError unless a subclass defines it.
        """
        raise UnimplementedError(f"{type(self).__name__} does not define generate(self, ksel, kb)")

    def variants(self, ksel: KernelSelection) -> list[str]:
        """The ways to generate the kernels for this call that are worth a try on this device, the best guess
        first. `generate` finds the chosen one in ``ksel.variant``.

        ::

            def variants(self, ksel):
                if ksel.device is None or ksel.device["type"] == "cpu":
                    return ["run"]
                return ["subgroups", "shared"] if ksel.has("computeFullSubgroups") else ["shared"]

            def generate(self, ksel, kb):
                if ksel.variant == "run":
                    ...

        If there are several, the first call with tensors of such dtypes, axes and about such size measures
        each on copies of what it writes (the option `tuning` says when), and keeps the choice for later calls
        and processes; `kp.tune` measures at leisure. ``my_op.variant("run")`` is the operation with one
        variant. `ksel.device` is None for `aot`: return what any device can run.

        By default there is one, with the name that `select` gave to ``ksel.variant``. Raises
        ArgumentTypeError unless `ksel` is a KernelSelection.
        """
        if not isinstance(ksel, KernelSelection):
            raise ArgumentTypeError(f"variants takes a KernelSelection, not {kind_of(ksel)}")
        return [ksel.variant]

    def trials(self, ksel: KernelSelection) -> list[str]:
        """Those of `variants` that the first call of a size measures, by default all of them. Leave out what
        works but takes too long to try; `kp.tune` measures all."""
        return self.variants(ksel)

    def eager_execute(self, *arguments: Any) -> Any:
        """The results of a call, computed in Python, or NotImplemented to run the kernels (the default)."""
        return NotImplemented

    @overload
    @staticmethod
    def register(op_class: Callable[[], CustomOp], /) -> Operation: ...
    @overload
    @staticmethod
    def register(*, library: OpLibrary | None = None) -> Callable[[Callable[[], CustomOp]], Operation]: ...
    @staticmethod
    def register(op_class: Any = None, /, *, library: OpLibrary | None = None) -> Any:
        """Decorates a class that derives from CustomOp: makes the callable. With `library`, the callable is
        also found there, by its name.

        Raises SignatureError if the signature cannot be read, ArgumentTypeError for anything but such a
        class, FailedPreconditionError if the library has an operation of that name.
        """

        if library is not None and not isinstance(library, OpLibrary):
            raise ArgumentTypeError(f"register: library is {kind_of(library)}; give one: kp.op_library(name)")

        def make(given: Any) -> Operation:
            if not isinstance(given, type) or not issubclass(given, CustomOp) or given is CustomOp:
                raise ArgumentTypeError(
                    f"register decorates a class that derives from kp.CustomOp, not {shown(given)}"
                )
            text = getattr(given, "signature", None)
            if text is None:
                raise ArgumentTypeError(
                    f'{given.__name__} has no signature: signature = "{given.__name__}(Tensor x) -> Tensor"'
                )
            operation = Operation(given(), parse(text))
            if library is not None:
                library._add(operation)
            return operation

        return make if op_class is None else make(op_class)


def _beginning(method: _Method) -> _Method:
    """A method of Operation with errors that begin with the operation's name."""

    @functools.wraps(method)
    def call(self: Any, /, *args: Any, **named: Any) -> Any:
        try:
            return method(self, *args, **named)
        except KomputeError as error:
            begun(error, self.__name__)
            raise

    return call  # type: ignore[return-value]


class Operation:
    """A custom operation: a callable.

    A call runs it now, and waits. Its results are where the arguments are: Tensors if one of them is a
    Tensor, else arrays. ``out=`` gives the memory of the results, a tuple if there are several: Tensors,
    parts of them such as ``t[:, 1]`` and ``t[::-1]``, Images, or arrays. ``donate=`` (names or positions of
    tensors, or True for all) destroys these arguments after the call.

    Raises ArgumentTypeError and InvalidArgumentError for arguments that do not fit the signature, and the
    errors of `select`, `generate` and `kp.Algorithm`.

    >>> @kp.CustomOp.register
    ... class negative(kp.CustomOp):
    ...     signature = "negative(Tensor x) -> Tensor"
    ...     def select(self, ksel):
    ...         x = ksel.arg_tensor("x")
    ...         ksel.return_new_tensor(x.shape, x.dtype)
    ...     def generate(self, ksel, kb):
    ...         kb.yield_results("-x_load(i)")
    >>> negative(mgr.tensor([1, 2])).tolist()
    [-1.0, -2.0]
    """

    __module__ = "kompute_py"

    def __init__(self, op: CustomOp, declaration: Declaration, forced: str = "") -> None:
        if not isinstance(op, CustomOp) or not isinstance(declaration, Declaration):
            raise ArgumentTypeError("An Operation is made by kp.CustomOp.register")
        self._op = op
        self._forced = forced
        self._several = type(op).variants is not CustomOp.variants
        self._declaration = declaration
        self._names = tuple(each.name for each in declaration.parameters)
        self._at = {name: place for place, name in enumerate(self._names)}
        self._defaults = [
            None if each.type in ("Tensor?", "Tensor|Scalar?") and each.default is MISSING else each.default
            for each in declaration.parameters
        ]
        self._written = [n for n, each in enumerate(declaration.parameters) if each.alias]
        """The places of the parameters that it writes."""
        self._tensors = [
            (place, each.type == "Tensor[]")
            for place, each in enumerate(declaration.parameters)
            if each.is_tensor
        ]
        """The places of the parameters that take tensors, and whether they take lists."""
        self._plain = [plain_types(each) for each in declaration.parameters]
        self._one_fresh = len(declaration.results) == 1 and not declaration.results[0].alias
        self._most_by_position = sum(not each.by_name for each in declaration.parameters)
        self._eager = type(op).eager_execute is not CustomOp.eager_execute
        self.__name__: str = declaration.name
        self.__qualname__: str = declaration.name
        self.__doc__: str | None = inspect.getdoc(type(op)) if type(op).__doc__ else None
        self.__wrapped__: type[CustomOp] = type(op)
        self.__signature__: inspect.Signature = python_signature(declaration)
        self._calls: dict[int, Calls] = {}
        """By the Manager's id."""
        self._table = table_for(declaration.name, self._names)
        self._hits = 0
        self._misses = 0
        self._lock = threading.RLock()
        self._recipe: Recipe | None = None
        """A call that makes such an operation, for pickle."""

    def _made_by(self, make: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]) -> Self:
        """Itself, with the call that made it."""
        self._recipe = make, args, named
        return self

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce_ex__(self, protocol: object) -> Any:
        """An operation is pickled by its name, or by the texts that it was made of."""
        return recalled(self, type(self._op).__module__, self._recipe)

    def __repr__(self) -> str:
        return f"<kp.Operation {self._declaration.text}>"

    # -- calling ---------------------------------------------------------------------------------------------

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        try:
            result = self._table.call(args, named)
            if result is NotImplemented:
                return self._general(True, args, **named)
            return result
        except KomputeError as error:
            if isinstance(error, FailedPreconditionError):
                self._explain(error, (*args, *named.values()))
            begun(error, self.__name__)
            raise

    def _explain(self, error: KomputeError, given: Sequence[Any]) -> None:
        """Raises the error that names the tensor instead, if one is destroyed or donated."""
        try:
            require_alive(given)
        except KomputeError as better:
            begun(better, self.__name__)
            raise better from None

    def _general(
        self, exactly: Any, args: tuple[Any, ...], /, out: Any = None, donate: Any = (), **named: Any
    ) -> Any:
        values = self._bind(args, named)
        if donate is None or donate is False or (type(donate) is tuple and not donate):
            return self._evaluated(exactly, args, named, values, out)
        # Refused before anything runs.
        given_away = donated(self._declaration, values, donate)
        outs = outs_of(self._declaration, out)
        refuse_donated(self.__name__, given_away, (*outs, *(values[n] for n in self._written)))
        taken = take(given_away, self.__name__)
        reused: list[Tensor] = []
        try:
            results = self._evaluated(None, (), {}, with_taken(values, taken), out, taken, reused)
        except BaseException as error:
            if reused and not isinstance(error, Exception):
                end(taken, self.__name__, ())  # Ctrl-C: what runs on writes there
            else:
                give_back(taken)
            raise
        end(taken, self.__name__, reused)
        return results

    def _evaluated(
        self,
        exactly: Any,
        args: tuple[Any, ...],
        named: dict[str, Any],
        values: list[Any],
        out: Any,
        taken: Sequence[Donated] = (),
        reused: list[Tensor] | None = None,
    ) -> Any:
        """The results of a call, once it has run. `taken` are tensors that may give them their memory; those
        that do are added to `reused`.
        """
        answer = NotImplemented
        if self._eager:
            require_alive(values)
            answer = self._op.eager_execute(*values)
        if answer is not NotImplemented:
            results = answered(self._declaration, answer, outs_of(self._declaration, out))
            if taken:
                answers = (results,) if self._declaration.single else results
                refuse_donated(self.__name__, [each.taken for each in taken], answers)
            return results
        if out is None:
            outs: tuple[Any, ...] = ()
        elif self._one_fresh and type(out) is Tensor:
            out._require_init("be written")
            outs = (out,)
        else:
            outs = outs_of(self._declaration, out)
        given = self._memory(values, outs)
        try:
            with self._lock:
                known, began = self._misses, time.perf_counter()
                form, push, manager = self._form(values, outs)
                built = time.perf_counter() - began if self._misses > known else 0.0
            try:  # without the lock: other threads may have to signal what this call waits for
                memory = None
                if reused is not None:
                    memory = form.reused(
                        given, places_of(given, [each.taken for each in taken if each.alone])
                    )
                    reused += [given[place] for place in memory.values()]
                results = form.run(given, manager, push, memory)
            finally:
                form.busy.release()
        except FailedPreconditionError:
            require_alive(given)
            raise
        if built:
            report_built(self.__name__, built, time.perf_counter() - began - built)
        if exactly and not self._eager:
            call = args, named if out is None else {**named, "out": out}
            teach(self._table, form, push, given, manager, call, self._declaration.single)
        return results[0] if self._declaration.single else tuple(results)

    def _form(self, values: list[Any], outs: tuple[Any, ...]) -> tuple[Form, list[bytes], Manager]:
        """A form for a call, with the push constants of its dispatches, and the Manager.

        It is the caller's alone until ``form.busy`` is released. The lock is held.
        """
        given = (*values, *outs)
        key, manager = look(self.__name__, given, self._op.reads_parts)
        if manager is None:
            manager = default_manager()
        shared: tuple[int, ...] = ()
        if len(outs) + len(self._written) == 1 and surely_apart(values, outs):
            key = (*key, shared)
        elif outs or self._written:
            shared = self._shared(values, outs)
            key = (*key, shared, *look_at_parts((*outs, *[values[place] for place in self._written])))
        calls = self._calls_of(manager)
        found = calls.find(key, given)
        free = None if found is None else found.free()
        if free is not None:
            try:
                return free, free.pushes(values), manager
            except struct.error:  # a number of another dtype
                free.busy.release()
                found = None
            except BaseException:
                free.busy.release()
                raise
        form, decisive = self._made(values, outs, shared, manager, calls)
        push = form.pushes(values)
        form.busy.acquire()
        if found is None:
            calls.keep(manager, key, given, decisive, form)
        else:
            calls.keep_beside(manager, found, form)
        return form, push, manager

    def _made(
        self,
        values: list[Any],
        outs: tuple[Any, ...],
        shared: tuple[int, ...],
        manager: Manager,
        calls: Calls,
        gathers: bool = False,
    ) -> tuple[Form, set[int]]:
        """A new form for a call, and the places of the numbers that it depends on. `shared` is what `_shared`
        found. `gathers`: the device copies parts that are only read, too; in calls the host does.
        """
        for parameter, value in zip(self._declaration.parameters, values, strict=True):
            if isinstance(value, (Tensor, np.ndarray)):  # `_bind` did not check its dtype
                checked(f"{self.__name__}: {parameter.name}", parameter, value, False)
        selection = self._select(values, calls.facts)
        check_outs(self.__name__, selection.results, outs)
        if self._several:
            selection.variant = self._choice(selection, values, manager, calls)
        if selection._writes_nothing():
            program = Program(self.__name__, (), ())  # nothing to compute, so generators need not think of it
        else:
            program = self._program(selection, manager, calls)
        if self._op.reads_parts:
            values = bases(values, self._written)
        form = make_form(program, selection, manager, calls.facts, values, outs, shared, gathers)
        return form, selection._decisive() | program.decisive(selection)

    def _shared(self, values: list[Any], outs: tuple[Any, ...]) -> tuple[int, ...]:
        """The places of arguments to copy, because they share memory with what is written."""
        written: list[int] = []
        if self._written:
            place = 0
            for number, value in enumerate(values):
                count = len(value) if type(value) is list else 1
                written += range(place, place + count) if number in self._written else ()
                place += count
        return overlapping(self.__name__, values, outs, self._op.in_place, written)

    def _memory(self, values: list[Any], outs: tuple[Any, ...]) -> list[Any]:
        if self._op.reads_parts and StridedView in map(type, values):
            values = bases(values, self._written)
        return flat((*values, *outs))

    # -- variants --------------------------------------------------------------------------------------------

    def variant(self, name: str) -> Operation:
        """The operation with one of its variants, without a measurement.

        Raises InvalidArgumentError if it declares no variants, ArgumentTypeError if the name is not a str. A
        call raises InvalidArgumentError if `variants` does not return the name.
        """
        if not self._several:
            raise InvalidArgumentError(f"{self.__name__} declares no variants")
        if not isinstance(name, str) or not name:
            raise ArgumentTypeError(f"{self.__name__}: a variant is a name, not {shown(name)}")
        return Operation(self._op, self._declaration, name)._made_by(Operation.variant, (self, name), {})

    def _variants(self, selection: KernelSelection) -> list[str]:
        found = check_variants(self.__name__, self._op.variants(selection))
        if not self._forced:
            return found
        if self._forced not in found:
            raise InvalidArgumentError(
                f"{self.__name__} has no variant {shown(self._forced)} for this call on this device; it has "
                f"{', '.join(found)}"
            )
        return [self._forced]

    def _choice(self, selection: KernelSelection, values: list[Any], manager: Manager, calls: Calls) -> str:
        found = self._variants(selection)
        if len(found) == 1:
            return found[0]
        mode = manager._setting("tuning")
        tried = [each for each in self._op.trials(selection) if each in found]
        if mode == "off" or len(tried) < 2:
            return (tried or found)[0]
        choices = choices_of(calls.facts.properties, manager._setting("tuning_dir"))
        key = self._tuning_key(selection)
        kept = choices.find(key, found)
        if kept is None and mode == "auto" and all(each.size for each in selection._tensors()):
            kept = self._measured(selection, tried, values, manager, calls, False).variant
            choices.keep(key, kept)
        return kept or found[0]

    def _tuning_key(self, selection: KernelSelection) -> str:
        """The calls that share a choice: those of one specialization and about one size."""
        owner = type(self._op)
        size = sum(each.size for each in selection._tensors()).bit_length()
        return f"{owner.__module__}.{owner.__qualname__}: {selection.spec_key} 2^{size}"

    def _measured(
        self,
        selection: KernelSelection,
        variants: list[str],
        values: list[Any],
        manager: Manager,
        calls: Calls,
        thorough: bool,
    ) -> Tuning:
        def program_of(chosen: KernelSelection) -> Program:
            return self._program(chosen, manager, calls)

        return tried_out(program_of, selection, variants, values, manager, calls.facts, thorough)

    def _tuned(self, args: tuple[Any, ...], named: dict[str, Any]) -> Tuning:
        """See `kp.tune`."""
        if not self._several or self._forced:
            raise InvalidArgumentError(
                f"{self.__name__} is bound to the variant {self._forced!r}"
                if self._forced
                else f"{self.__name__} declares no variants"
            )
        named = {name: each for name, each in named.items() if name not in ("out", "donate")}
        values = self._bind(args, named)
        with self._lock:
            _, manager = look(self.__name__, values)
            manager = default_manager() if manager is None else manager
            calls = self._calls_of(manager)
            selection = self._select(values, calls.facts)
            found = self._variants(selection)
            if not all(each.size for each in selection._tensors()):
                raise InvalidArgumentError(f"{self.__name__}: tune measures nothing for an empty tensor")
            tuning = self._measured(selection, found, values, manager, calls, True)
            choices = choices_of(calls.facts.properties, manager._setting("tuning_dir"))
            choices.keep(self._tuning_key(selection), tuning.variant)
            self._forget()  # prepared calls have made their choice
        return tuning

    # -- other ways to use it --------------------------------------------------------------------------------

    @_beginning
    def op(self, /, *args: Any, out: Any = None, **named: Any) -> OpCustom:
        """The operation with these arguments, to be recorded. Its attribute `results` has the tensors.

        Tensors only: record OpSyncDevice and OpSyncLocal for arrays. Results that `out` does not give are
        made now, of the first tensor's memory type; those of an operation without tensors by the current
        Manager. Raises what a call raises.
        """
        return self._titled("", *args, out=out, **named)

    def _titled(self, title: str, /, *args: Any, out: Any = None, **named: Any) -> OpCustom:
        """`op` for a function that records it among others: its dispatches have the function's name first."""
        values, outs = self._bind(args, named), outs_of(self._declaration, out)
        if not outs and not any(
            isinstance(each, (np.ndarray, Tensor, StridedView, Image)) for each in flat(values)
        ):
            manager = default_manager()
            made = self._select(values, self._calls_of(manager).facts).results
            outs = tuple(manager.empty(each.shape, each.dtype) for each in made)
        form, _, parts, results, _ = self._recorded(values, outs, title)
        written = results if any(not each.alias for each in self._declaration.results) else ()
        again = functools.partial(self._over_copies, values, written, results, title)
        return OpCustom(self._declaration.name, form, parts, results, again)

    def _over_copies(
        self, values: list[Any], outs: tuple[Any, ...], results: tuple[Tensor, ...], title: str
    ) -> OpCustom:
        """See `OpCustom._over_any_memory`."""
        given = flat((*values, *outs))
        with self._lock:
            _, manager = look(self.__name__, given, self._op.reads_parts)
            assert manager is not None  # it has the results
            places = tuple([place for place, each in enumerate(given) if isinstance(each, Tensor)])
            form, _ = self._made(values, outs, places, manager, self._calls_of(manager))
            parts = form.operations(self._memory(values, outs), (), form.pushes(values), title)
        return OpCustom(self._declaration.name, form, parts, results)

    def submit(
        self,
        /,
        *args: Any,
        out: Any = None,
        wait: Waitable | Iterable[Waitable] = (),
        signal: tuple[Semaphore, int] | Iterable[tuple[Semaphore, int]] = (),
        **named: Any,
    ) -> Fence:
        """Runs it without waiting and returns a Fence. Tensors only; `out` gives the memory of the results.

        `wait` and `signal` are as in `Sequence.eval_async`. Raises what a call raises, and
        InvalidArgumentError if a new result is not given by `out`.
        """
        if out is not None:
            named["out"] = out
        try:
            found = self._table.recorded(args, named)
            if found is not NotImplemented:
                stream, (free, manager) = found
                if free.acquire(False):
                    try:
                        if not stream.is_running() or stream.due() is True:
                            return submit_stream(manager(), stream, wait, signal)
                    finally:
                        free.release()
            return self._submitted(args, wait, signal, **named)
        except KomputeError as error:
            if isinstance(error, FailedPreconditionError):
                self._explain(error, (*args, *named.values()))
            begun(error, self.__name__)
            raise

    def _submitted(
        self, args: tuple[Any, ...], wait: Any, signal: Any, /, out: Any = None, **named: Any
    ) -> Fence:
        values = self._bind(args, named)
        outs = outs_of(self._declaration, out)
        fresh = [result.name for result in self._declaration.results if not result.alias]
        if fresh and not outs:
            raise InvalidArgumentError(
                f"{self.__name__}.submit returns a Fence, so it needs the memory of its results: "
                f"out={'tensor' if len(fresh) == 1 else '(' + ', '.join(fresh) + ')'}"
            )
        form, push, parts, _, manager = self._recorded(values, outs)
        call = args, named if out is None else {**named, "out": out}
        given = self._memory(values, outs)
        teach(self._table, form, push, given, manager, call, self._declaration.single, True)
        return submit_stream(manager, stream_of(manager, parts), wait, signal)

    def _recorded(
        self, values: list[Any], outs: tuple[Any, ...], title: str = ""
    ) -> tuple[Form, list[bytes], list[Any], tuple[Tensor, ...], Manager]:
        """The form of a call over Tensors, its push constants, native operations and results."""
        for value in flat((*values, *outs)):
            if isinstance(value, np.ndarray):
                raise ArgumentTypeError(
                    f"{self.__name__}: what is recorded works on Tensors, and this is {kind_of(value)}: "
                    "make one, mgr.tensor_t(array)"
                )
        gathers = not self._op.reads_parts and StridedView in map(type, flat(values))
        given = self._memory(values, outs)
        with self._lock:
            require_alive(given)
            known, began = self._misses, time.perf_counter()
            form, push, manager = self._form(values, outs)
            form.busy.release()  # what is recorded needs what it has in common with others
            if self._misses > known:
                report_built(self.__name__, time.perf_counter() - began)
            if form.private or gathers:
                # Recordings run beside calls, so they have memory of their own.
                shared = self._shared(values, outs)
                form, _ = self._made(values, outs, shared, manager, self._calls_of(manager), gathers)
                push = form.pushes(values)
            fresh = [each.made(manager) for each in form.fresh]
            parts = form.operations(given, fresh, push, title)
        results = tuple(given[number] if what == GIVEN else fresh[number] for what, number in form.results)
        return form, push, parts, results, manager

    @_beginning
    def preload(self, /, *args: Any, out: Any = None, **named: Any) -> None:
        """Prepares calls with arguments like these: chooses the kernels, generates, compiles and builds them,
        and dispatches each with no groups. The first such call then takes no longer than later ones.

        The arguments are those of a call; a `kp.TensorSpec` may stand for a Tensor. Nothing is computed, and
        no memory of theirs is touched. A call that builds its kernels first says so in the log "kompute_py"
        (level INFO), with the time. Raises what a call raises.

        >>> kp.ops.exp.preload(kp.TensorSpec((1000,)))
        """
        values, outs = made_of_specs(self._bind(args, named, meta=True)), outs_of(self._declaration, out)
        given = self._memory(values, outs)
        require_alive(given)
        with self._lock:
            form, _, manager = self._form(values, outs)
        try:
            form.warm_up(given, manager)
        finally:
            form.busy.release()

    @_beginning
    def meta(self, /, *args: Any, **named: Any) -> Any:
        """The specs of the results for arguments of these specs; needs no device.

        A tensor is given as a `kp.TensorSpec`, or as an array or Tensor; only its shape and dtype count.
        Returns a TensorSpec, or a tuple of them. Raises what `select` raises, and the errors of arguments
        that do not fit the signature.

        >>> @kp.CustomOp.register
        ... class flat(kp.CustomOp):
        ...     signature = "flat(Tensor x) -> Tensor"
        ...     def select(self, ksel):
        ...         x = ksel.arg_tensor("x")
        ...         ksel.return_new_tensor((x.size,), x.dtype)
        >>> flat.meta(kp.TensorSpec((2, 3)))
        kp.TensorSpec((6,), 'float32')
        """
        selection = self._select(self._bind(args, named, meta=True), None)
        specs = tuple(result.t for result in selection.results)
        return specs[0] if self._declaration.single else specs

    @_beginning
    def sources(self, /, *args: Any, **named: Any) -> tuple[str, ...]:
        """The GLSL of each dispatch for arguments of these specs, as for `aot`: whole shaders, to be read or
        compiled elsewhere. "" stands for a module of SPIR-V. Needs no device.

        Raises what `meta` and `generate` raise.

        >>> @kp.CustomOp.register
        ... class negative(kp.CustomOp):
        ...     signature = "negative(Tensor x) -> Tensor"
        ...     def select(self, ksel):
        ...         x = ksel.arg_tensor("x")
        ...         ksel.return_new_tensor(x.shape, x.dtype)
        ...     def generate(self, ksel, kb):
        ...         kb.yield_results("-x_load(i)")
        >>> (text,) = negative.sources(kp.TensorSpec((3,)))
        >>> text.splitlines()[0], "result_store(i, -x_load(i));" in text
        ('#version 450', True)
        """
        return written(self._op, self._for_any_device(args, named))

    def _for_any_device(self, args: tuple[Any, ...], named: dict[str, Any]) -> KernelSelection:
        values = self._bind(args, named, meta=True)
        selection = self._select(values, Facts(None, features_for(self._declaration, values), 0))
        if self._several:
            selection.variant = self._variants(selection)[0]
        return selection

    @_beginning
    def aot(self, path: str | os.PathLike[str], /, *args: Any, **named: Any) -> Path:
        """Writes what a program needs to run it for arguments of these specs, into the folder `path`.

        The folder gets ``NAME.json``, which describes tensors, scratch memory and dispatches (bindings,
        groups, the block of run-time values), and a SPIR-V module for each dispatch, ``NAME-0.spv``. They run
        on any device that has the arguments' dtypes: elements of 8 and 16 bits are bound as words, and
        results have the dtypes that they have on a device with nothing else, so a sum of int32 is of int32
        unless ``dtype="int64"`` is given. The arguments are those of `meta`.
        Returns the path of the JSON file. Needs no device.

        Raises what `meta`, `generate` and `kp.compile` raise, InvalidArgumentError if the path is a file's,
        and OSError if the files cannot be written.
        """
        selection = self._for_any_device(args, named)
        return write_files(path, compile_program(self._op, selection, of_process), selection)

    def cache_info(self) -> CacheInfo:
        """The size and use of its caches."""
        with self._lock:
            kept = sum(len(calls.programs) for calls in self._calls.values())
            prepared = sum(len(calls.forms) for calls in self._calls.values())
            return CacheInfo(self._hits, self._misses, kept, prepared)

    def _forget(self) -> None:
        """Drops prepared calls, and their memory."""
        # Without the lock: another thread may have it and wait for the memory.
        for calls in list(self._calls.values()):
            calls.forget()
        self._table.clear()

    def cache_clear(self) -> None:
        """Drops compiled specializations and prepared calls, and counts from zero."""
        with self._lock:
            self._calls.clear()
            self._table.clear()
            self._hits = self._misses = 0

    # -- inside ----------------------------------------------------------------------------------------------

    def _bind(self, args: tuple[Any, ...], named: Mapping[str, Any], meta: bool = False) -> list[Any]:
        """A value for each parameter, of the type that the signature says."""
        count = len(args)
        if count > self._most_by_position:
            raise ArgumentTypeError(
                f"{self.__name__} takes {self._most_by_position} arguments by position; {count} were given: "
                f"{self._declaration.text}"
            )
        values: list[Any] = [*args, *self._defaults[count:]]
        for name, value in named.items():
            place = self._at.get(name, -1)
            if place < 0:
                raise unknown(self.__name__, name, self._names, self._declaration.text)
            if place < count:
                raise ArgumentTypeError(f"{self.__name__}: the argument {shown(name)} is given twice")
            values[place] = value
        for place, (value, plain) in enumerate(zip(values, self._plain, strict=True)):
            if type(value) in plain:
                continue
            parameter = self._declaration.parameters[place]
            if value is MISSING:
                raise ArgumentTypeError(
                    f"{self.__name__} lacks the argument {parameter.name!r}: {self._declaration.text}"
                )
            values[place] = checked(f"{self.__name__}: {parameter.name}", parameter, value, meta)
        return values

    def _calls_of(self, manager: Manager) -> Calls:
        found = self._calls.get(id(manager))
        if found is None:
            this = weakref.ref(self)

            def ended(number: int) -> None:
                operation = this()
                if operation is not None:
                    operation._calls.pop(number, None)

            def dropped(form: Form) -> None:
                operation = this()
                if operation is not None:
                    operation._table.drop_of(form)

            found = self._calls[id(manager)] = Calls(manager, ended, dropped)
        return found

    def _select(self, values: list[Any], facts: Facts | None) -> KernelSelection:
        parts = self._op.reads_parts
        specs: list[Any] = list(values)
        for place, several in self._tensors:
            value = values[place]
            if several:
                specs[place] = [spec_of(each, parts) for each in value]
            elif hasattr(value, "shape") and not isinstance(value, np.generic):
                specs[place] = spec_of(value, parts and place not in self._written)
        device, features = (None, None) if facts is None else facts[:2]
        selection = KernelSelection(self._op, self._declaration, specs, device, features)
        with unchanged(self.__name__, "select", self._op):
            self._op.select(selection)
        selection._finish()
        return selection

    def _program(self, selection: KernelSelection, manager: Manager, calls: Calls) -> Program:
        programs = calls.programs
        key = selection.spec_key
        found = programs.get(key)
        if found is not None:
            self._hits += 1
            if programs.pop(key, None) is not None:
                programs[key] = found  # the newest is the last
            return found
        self._misses += 1
        found = compile_program(self._op, selection, manager._setting)
        while len(programs) >= _MOST_PROGRAMS:
            calls.drop_program(next(iter(programs)))
        calls.keep_program(manager, key, found)
        return found
