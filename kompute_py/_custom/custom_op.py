"""CustomOp: the class that users derive from, and the callable that it becomes."""

from __future__ import annotations

import inspect
import json
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, overload

import numpy as np

from .._base.errors import (
    ArgumentTypeError,
    InvalidArgumentError,
    UnimplementedError,
    kind_of,
    shown,
)
from .._base.text import nearest
from .._compilers.settings import of_process
from .._manager.default import manager as default_manager
from .._memory.strided import StridedView
from .._memory.tensor import Tensor
from .._recording.operations import OpBase, OpSyncDevice, OpSyncLocal
from .._shaders.signature import MISSING
from .._sync.fence import Fence
from .arguments import checked, python_signature
from .declaration import Declaration, parse
from .program import Program, Ready, as_files, compile_program, prepare
from .selection import KernelSelection, TensorArg, TensorListArg
from .specs import TensorSpec

if TYPE_CHECKING:
    import os

    from .._manager.manager import Manager
    from .._recording.sequence import Sequence
    from .._sync.semaphore import Semaphore, Waitable
    from .builder import KernelBuilder
    from .library import OpLibrary

_MOST_PROGRAMS = 256
"""Specializations that an operation keeps for each Manager."""
_MOST_PREPARED = 128
"""Calls that an operation keeps ready."""


class CacheInfo(NamedTuple):
    """The size and use of an operation's caches."""

    hits: int
    """Calls whose specialization was compiled already."""
    misses: int
    """Calls that generated and compiled kernels."""
    specializations: int
    """Compiled specializations, over all Managers."""
    prepared: int
    """Calls that are ready to run again with the same tensors, or with arrays of the same shapes."""


CacheInfo.__module__ = "kompute_py.typing"  # where users find it


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


class _Returned(NamedTuple):
    """Where a result of a call comes from."""

    place: int
    """Its position among the arguments and `out`; -1 if the call makes it."""
    tensor: Tensor | None
    """The tensor that the kernels write; None if it is the caller's, at `place`."""


class _Prepared(NamedTuple):
    """A call that is ready to run again. The caller's tensors are held weakly."""

    sequence: Sequence
    inputs: tuple[tuple[int, np.ndarray[Any, Any]], ...]
    """(position among the arguments, host copy) of arrays, to be written before."""
    results: tuple[_Returned, ...]
    arrays: bool
    """Results that the call makes are arrays: copies of the tensors' host copies."""
    ready: Ready
    references: tuple[weakref.ref[Any], ...]


_CallArguments = tuple[tuple[Any, ...], dict[str, Any]]
_Place = tuple["int | str", "int | None"]
"""The position or name of an argument of a call, and the position in it if it is a tuple."""


class _Repeated(NamedTuple):
    """A call that was made twice with the same tensors."""

    sequence: Sequence
    places: tuple[_Place, ...]
    """Where its results stand among its arguments."""
    references: tuple[weakref.ref[Any], ...]


def _exactly(args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """A key for a call with Tensors, ints and texts; None for any other. It holds while the tensors live."""
    key: list[Any] = []
    for each in args:
        kind = type(each)
        if kind is Tensor:
            key.append(id(each))
        elif kind is int or kind is str:
            key.append((each,))
        else:
            return None
    for name, each in named.items():
        kind = type(each)
        if name == "donate":
            return None
        if kind is Tensor:
            key += (name, id(each))
        elif kind is int or kind is str:
            key += (name, (each,))
        elif kind is tuple and name == "out" and all(type(one) is Tensor for one in each):
            key += (name, tuple(map(id, each)))
        else:
            return None
    return tuple(key)


def _at(place: _Place, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    where, number = place
    found = args[where] if isinstance(where, int) else named[where]
    return found if number is None else found[number]


class OpCustom(OpBase):
    """A custom operation with its arguments bound, to be recorded: made by ``my_op.op(...)``.

    `results` are the tensors that it writes. Raises ArgumentTypeError if it is called: operations create it.

    >>> @kp.CustomOp.register
    ... class negative(kp.CustomOp):
    ...     signature = "negative(Tensor x) -> Tensor"
    ...     def select(self, ksel):
    ...         x = ksel.arg_tensor("x")
    ...         ksel.return_new_tensor(x.shape, x.dtype)
    ...     def generate(self, ksel, kb):
    ...         kb.yield_results("-x_load(i)")
    >>> operation = negative.op(mgr.tensor([1, 2]))
    >>> mgr.sequence().record(operation).eval()
    <kp.Sequence ...>
    >>> operation.results[0].tolist()
    [-1.0, -2.0]
    """

    __module__ = "kompute_py"

    __slots__ = {"_name": "", "_parts": "", "_ready": "", "results": "The tensors that it writes."}

    def __init__(self, name: str, ready: Ready, results: tuple[Tensor, ...]) -> None:
        if not isinstance(ready, Ready):
            raise ArgumentTypeError("An OpCustom is made by a custom operation: my_op.op(...)")
        self._name = name
        self._ready = ready
        self._parts = tuple(each._native for each in ready.operations)
        self.results: tuple[Tensor, ...] = results

    def __repr__(self) -> str:
        return f"<kp.OpCustom {self._name}, {len(self._parts)} dispatches>"


OpCustom._hooked = True  # recorded part by part


class Operation:
    """A custom operation: a callable.

    A call runs it now, and waits. Its results are where the arguments are: Tensors if one of them is a
    Tensor, else arrays. ``out=`` gives the memory of the results, a tuple if there are several. ``donate=``
    (names or positions of tensors, or True for all) destroys these arguments after the call.

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

    def __init__(self, op: CustomOp, declaration: Declaration) -> None:
        if not isinstance(op, CustomOp) or not isinstance(declaration, Declaration):
            raise ArgumentTypeError("An Operation is made by kp.CustomOp.register")
        self._op = op
        self._declaration = declaration
        self._names = tuple(each.name for each in declaration.parameters)
        self.__name__: str = declaration.name
        self.__qualname__: str = declaration.name
        self.__doc__: str | None = inspect.getdoc(type(op)) if type(op).__doc__ else None
        self.__wrapped__: type[CustomOp] = type(op)
        self.__signature__: inspect.Signature = python_signature(declaration)
        self._programs: weakref.WeakKeyDictionary[Manager, OrderedDict[str, Program]] = (
            weakref.WeakKeyDictionary()
        )
        self._prepared: OrderedDict[tuple[Any, ...], _Prepared] = OrderedDict()
        # Calls with exactly the same arguments as before.
        self._repeated: dict[Any, _Repeated] = {}
        self._hits = 0
        self._misses = 0
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"<kp.Operation {self._declaration.text}>"

    # -- calling ---------------------------------------------------------------------------------------------

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        key = _exactly(args, named)
        if key is not None:
            found = self._repeated.get(key)
            if found is not None:
                with self._lock:
                    found.sequence.eval()
                if self._declaration.single:
                    return _at(found.places[0], args, named)
                return tuple(_at(place, args, named) for place in found.places)
        return self._general(key, args, **named)

    def _general(
        self, exactly: Any, args: tuple[Any, ...], out: Any = None, donate: Any = (), **named: Any
    ) -> Any:
        values = self._bind(args, named)
        given_away = self._donated(values, donate)  # refused before anything runs
        answer = self._op.eager_execute(*values)
        if answer is not NotImplemented:
            results = self._answered(answer, out)
        else:
            with self._lock:
                results = self._call(values, out, exactly, (args, {**named, "out": out}))
        for tensor in given_away:
            tensor.destroy()
        return results

    def _call(self, values: list[Any], out: Any, exactly: Any, call: _CallArguments) -> Any:
        given = (*values, *self._outs(out))
        key = tuple(map(_key_of, given))
        found = self._prepared.get(key)
        if found is None:
            found = self._prepare(values, given[len(values) :], key)
        elif exactly is not None and not found.inputs and all(r.tensor is None for r in found.results):
            # The second time with the same tensors: from now on, not even the arguments are looked at.
            self._repeat(exactly, found, [given[place] for place, _ in found.results], call)
        for place, copy in found.inputs:
            np.copyto(copy, given[place])
        found.sequence.eval()
        results: list[Any] = []
        for place, tensor in found.results:
            if tensor is None:
                results.append(given[place])
            elif place >= 0:
                np.copyto(given[place], tensor.numpy())
                results.append(given[place])
            else:
                results.append(tensor.numpy().copy() if found.arrays else tensor)
        return results[0] if self._declaration.single else tuple(results)

    def _prepare(self, values: list[Any], outs: tuple[Any, ...], key: tuple[Any, ...]) -> _Prepared:
        given = (*values, *outs)
        manager = self._manager_of(given)
        selection = self._select(values, manager)
        self._check_outs(selection, outs)
        arrays = not any(isinstance(value, (Tensor, StridedView)) for value in _flat(given))
        memory: dict[str, Tensor] = {}
        inputs: list[tuple[int, np.ndarray[Any, Any]]] = []
        uploads: list[Tensor] = []
        downloads: list[Tensor] = []
        again = True  # the same call can run once more
        for item, value, place in _given_tensors(selection, values):
            written = item in selection.inplace_tied_arg_descs
            tensor = memory[item.name] = _on_device(manager, value, item.name, written)
            if isinstance(value, np.ndarray):
                uploads.append(tensor)
                if place is None:
                    again = False
                else:
                    inputs.append((place, tensor.numpy()))
            elif tensor is not value:
                again = False  # a copy of a part that is not dense
        results: list[_Returned] = []
        for number, result in enumerate(selection.results):
            place = len(values) + number if number < len(outs) else -1 if result.is_result else result.index
            theirs = given[place] if place >= 0 else None
            if isinstance(theirs, Tensor):
                if result.is_result:
                    memory[result.name] = theirs
                results.append(_Returned(place, None))
                continue
            if result.is_result:
                kind: Any = "device" if arrays or theirs is not None else _memory_type(given)
                memory[result.name] = manager.empty(result.shape, result.dtype, kind)
            tensor = memory[result.name]
            if arrays or theirs is not None:
                downloads.append(tensor)
            else:
                again = False  # the caller gets it
            results.append(_Returned(place, tensor))
        ready = prepare(self._program(selection, manager), selection, manager, memory)
        sequence = manager.sequence()
        if uploads:
            sequence.record(OpSyncDevice(uploads))
        for operation in ready.operations:
            sequence.record(operation)
        if downloads:
            sequence.record(OpSyncLocal(downloads))
        references: tuple[weakref.ref[Any], ...] = ()
        if again:
            this = weakref.ref(self)

            def forget(_: Any) -> None:
                operation = this()
                if operation is not None:
                    operation._prepared.pop(key, None)

            references = tuple(weakref.ref(each, forget) for each in _flat(given) if isinstance(each, Tensor))
        made = _Prepared(sequence, tuple(inputs), tuple(results), arrays, ready, references)
        if again:
            self._prepared[key] = made
            while len(self._prepared) > _MOST_PREPARED:
                self._prepared.popitem(last=False)
        return made

    def _repeat(self, exactly: Any, found: _Prepared, results: list[Any], call: _CallArguments) -> None:
        if type(self._op).eager_execute is not CustomOp.eager_execute:
            return
        args, named = call
        places: list[_Place] = []
        for result in results:
            at = next((n for n, each in enumerate(args) if each is result), None)
            name = next((n for n, each in named.items() if each is result), None)
            if at is None and name is None:
                several = named["out"]
                if not isinstance(several, tuple):
                    return
                places.append(("out", next(n for n, each in enumerate(several) if each is result)))
            else:
                places.append((str(name) if at is None else at, None))
        this = weakref.ref(self)

        def forget(_: Any) -> None:
            operation = this()
            if operation is not None:
                operation._repeated.pop(exactly, None)

        tensors = [each for each in (*args, *named.values(), *results) if isinstance(each, Tensor)]
        self._repeated[exactly] = _Repeated(
            found.sequence, tuple(places), tuple(weakref.ref(each, forget) for each in tensors)
        )
        while len(self._repeated) > _MOST_PREPARED:
            self._repeated.pop(next(iter(self._repeated)), None)

    # -- other ways to use it --------------------------------------------------------------------------------

    def op(self, /, *args: Any, out: Any = None, **named: Any) -> OpCustom:
        """The operation with these arguments, to be recorded. Its attribute `results` has the tensors.

        Tensors only: record OpSyncDevice and OpSyncLocal for arrays. Results that `out` does not give are
        made now, of the first tensor's memory type. Raises what a call raises.
        """
        values = self._bind(args, named)
        outs = self._outs(out)
        ready, results, _ = self._over_tensors(values, outs)
        return OpCustom(self._declaration.name, ready, results)

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
        values = self._bind(args, named)
        outs = self._outs(out)
        fresh = [result.name for result in self._declaration.results if not result.alias]
        if fresh and not outs:
            raise InvalidArgumentError(
                f"{self.__name__}.submit returns a Fence, so it needs the memory of its results: "
                f"out={'tensor' if len(fresh) == 1 else '(' + ', '.join(fresh) + ')'}"
            )
        ready, _, manager = self._over_tensors(values, outs)
        sequence = manager.sequence()
        for operation in ready.operations:
            sequence.record(operation)
        return manager.submit([sequence], wait=wait, signal=signal)

    def _over_tensors(
        self, values: list[Any], outs: tuple[Any, ...]
    ) -> tuple[Ready, tuple[Tensor, ...], Manager]:
        given = (*values, *outs)
        for value in _flat(given):
            if isinstance(value, (np.ndarray, StridedView)):
                raise ArgumentTypeError(
                    f"{self.__name__}: what is recorded works on Tensors, and this is {kind_of(value)}: "
                    "make one, mgr.tensor_t(array)"
                )
        manager = self._manager_of(given)
        selection = self._select(values, manager)
        self._check_outs(selection, outs)
        memory: dict[str, Tensor] = {}
        for item, value, _ in _given_tensors(selection, values):
            memory[item.name] = value
        results = []
        for number, result in enumerate(selection.results):
            if result.is_result:
                memory[result.name] = (
                    outs[number]
                    if number < len(outs)
                    else manager.empty(result.shape, result.dtype, _memory_type(given))
                )
            results.append(memory[result.name])
        ready = prepare(self._program(selection, manager), selection, manager, memory)
        return ready, tuple(results), manager

    def meta(self, /, *args: Any, **named: Any) -> Any:
        """The specs of the results for arguments of these specs; needs no device.

        A tensor is given as a `kp.TensorSpec`, or as an array or Tensor, of which only shape and dtype count.
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

    def aot(self, path: str | os.PathLike[str], /, *args: Any, **named: Any) -> Path:
        """Writes what a program needs to run it for arguments of these specs, into the folder `path`.

        The folder gets ``NAME.json``, which describes tensors, scratch memory and dispatches (bindings,
        groups, the block of run-time values), and a SPIR-V module for each dispatch, ``NAME-0.spv``. They run
        on any device: elements of 8 and 16 bits are bound as words. The arguments are those of `meta`.
        Returns the path of the JSON file. Needs no device.

        Raises what `meta`, `generate` and `kp.compile` raise, and OSError if the files cannot be written.
        """
        selection = self._select(self._bind(args, named, meta=True), None)
        selection._features = frozenset()  # for any device
        description, modules = as_files(compile_program(self._op, selection, of_process), selection)
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        for dispatch, module in zip(description["dispatches"], modules, strict=True):
            (folder / dispatch["module"]).write_bytes(module)
        target = folder / f"{self.__name__}.json"
        target.write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")
        return target

    def cache_info(self) -> CacheInfo:
        """The size and use of its caches."""
        with self._lock:
            kept = sum(len(programs) for programs in self._programs.values())
            return CacheInfo(self._hits, self._misses, kept, len(self._prepared))

    def cache_clear(self) -> None:
        """Drops compiled specializations and prepared calls, and counts from zero."""
        with self._lock:
            self._programs.clear()
            self._prepared.clear()
            self._repeated.clear()
            self._hits = self._misses = 0

    # -- inside ----------------------------------------------------------------------------------------------

    def _bind(self, args: tuple[Any, ...], named: Mapping[str, Any], meta: bool = False) -> list[Any]:
        """A value for each parameter, of the type that the signature says."""
        parameters = self._declaration.parameters
        positional = sum(not each.by_name for each in parameters)
        if len(args) > positional:
            raise ArgumentTypeError(
                f"{self.__name__} takes {positional} arguments by position; {len(args)} were given: "
                f"{self._declaration.text}"
            )
        values: list[Any] = list(args)
        for parameter in parameters[len(args) :]:
            if parameter.name in named:
                values.append(named[parameter.name])
            elif parameter.default is not MISSING:
                values.append(parameter.default)
            elif parameter.type == "Tensor?":
                values.append(None)
            else:
                raise ArgumentTypeError(
                    f"{self.__name__} lacks the argument {parameter.name!r}: {self._declaration.text}"
                )
        for name in named:
            if name not in self._names:
                raise ArgumentTypeError(
                    f"{self.__name__} has no parameter {shown(name)}{nearest(name, self._names)} "
                    f"The signature is {self._declaration.text}"
                )
            if self._names.index(name) < len(args):
                raise ArgumentTypeError(f"{self.__name__}: the argument {shown(name)} is given twice")
        return [
            checked(f"{self.__name__}: {parameter.name}", parameter, value, meta)
            for parameter, value in zip(parameters, values, strict=True)
        ]

    def _outs(self, out: Any) -> tuple[Any, ...]:
        fresh = [result for result in self._declaration.results if not result.alias]
        if out is None:
            return ()
        outs = tuple(out) if isinstance(out, (tuple, list)) else (out,)
        if len(outs) != len(fresh) or len(fresh) != len(self._declaration.results):
            raise InvalidArgumentError(
                f"{self.__name__} makes {len(fresh)} results; out gives {len(outs)}: {self._declaration.text}"
            )
        for each in outs:
            if not isinstance(each, (Tensor, np.ndarray)):
                raise ArgumentTypeError(f"{self.__name__}: out is {kind_of(each)}; give a Tensor or an array")
        return outs

    def _check_outs(self, selection: KernelSelection, outs: tuple[Any, ...]) -> None:
        for result, given in zip(selection.results, outs, strict=False):
            if tuple(given.shape) != result.shape or given.dtype != result.dtype:
                raise InvalidArgumentError(
                    f"{self.__name__}: the result {result.name!r} has shape {result.shape} and dtype "
                    f"{result.dtype}; out has shape {tuple(given.shape)} and dtype {given.dtype}"
                )
            if isinstance(given, np.ndarray) and not given.flags.writeable:
                raise InvalidArgumentError(f"{self.__name__}: out for {result.name!r} is a read-only array")

    def _manager_of(self, given: Iterable[Any]) -> Manager:
        found: Manager | None = None
        for value in _flat(given):
            if isinstance(value, (Tensor, StridedView)):
                if found is not None and value.manager is not found:
                    raise InvalidArgumentError(
                        f"{self.__name__}: its tensors belong to two Managers; copy one: t.to(manager)"
                    )
                found = value.manager
        return default_manager() if found is None else found

    def _select(self, values: list[Any], manager: Manager | None) -> KernelSelection:
        specs = [
            [_spec(each) for each in value]
            if parameter.type == "Tensor[]"
            else _spec(value)
            if parameter.is_tensor and hasattr(value, "shape") and not isinstance(value, np.generic)
            else value
            for parameter, value in zip(self._declaration.parameters, values, strict=True)
        ]
        device = None if manager is None else manager.get_device_properties()
        features = None if manager is None else frozenset(manager.enabled_features)
        selection = KernelSelection(self._op, self._declaration, specs, device, features)
        self._op.select(selection)
        selection._finish()
        return selection

    def _program(self, selection: KernelSelection, manager: Manager) -> Program:
        with self._lock:
            programs = self._programs.setdefault(manager, OrderedDict())
            key = selection.spec_key
            found = programs.get(key)
            if found is not None:
                self._hits += 1
                programs.move_to_end(key)
                return found
            self._misses += 1
            made = programs[key] = compile_program(self._op, selection, manager._setting)
            while len(programs) > _MOST_PROGRAMS:
                programs.popitem(last=False)
            return made

    def _donated(self, values: list[Any], donate: Any) -> list[Tensor]:
        if donate is None or donate is False or donate == ():
            return []
        tensors = {
            parameter.name: value
            for parameter, value in zip(self._declaration.parameters, values, strict=True)
            if isinstance(value, Tensor) and not parameter.alias
        }
        if donate is True:
            return list(tensors.values())
        wanted = (donate,) if isinstance(donate, (str, int)) else tuple(donate)
        found = []
        for each in wanted:
            name = self._names[each] if type(each) is int and 0 <= each < len(self._names) else each
            if name not in tensors:
                raise InvalidArgumentError(
                    f"{self.__name__}: {shown(each)} cannot be donated: give names or positions of Tensor "
                    f"arguments that it does not write ({', '.join(tensors) or 'this call has none'})"
                )
            found.append(tensors[name])
        return found

    def _answered(self, answer: Any, out: Any) -> Any:
        if out is None:
            return answer
        outs = self._outs(out)
        answers = (answer,) if self._declaration.single else tuple(answer)
        for given, each in zip(outs, answers, strict=True):
            if isinstance(given, Tensor):
                given.write(np.asarray(each))
            else:
                np.copyto(given, np.asarray(each))
        return outs[0] if self._declaration.single else outs


def _given_tensors(
    selection: KernelSelection, values: list[Any]
) -> Iterator[tuple[TensorArg, Any, int | None]]:
    """For each tensor argument what it is in the kernels, what was given, and its position in the call; None
    for tensors of a list.
    """
    for desc in selection.arg_descs:
        if isinstance(desc, TensorListArg):
            for item, value in zip(desc.items, values[desc.index], strict=True):
                yield item, value, None
        elif isinstance(desc, TensorArg):
            yield desc, values[desc.index], desc.index


def _flat(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if isinstance(value, list):
            yield from value
        else:
            yield value


def _key_of(value: Any) -> Any:
    """A key: equal for arguments that the same prepared call can take."""
    if isinstance(value, np.ndarray):
        return (value.shape, value.dtype, value.flags.writeable)
    if isinstance(value, (Tensor, StridedView)):
        return id(value)
    if isinstance(value, list):
        return tuple(map(_key_of, value))
    return (type(value), repr(value))  # repr: 0.0 and -0.0 are equal, and nan is not equal to itself


def _spec(value: Any) -> TensorSpec:
    return value if isinstance(value, TensorSpec) else TensorSpec(tuple(value.shape), value.dtype)


def _memory_type(given: Iterable[Any]) -> Any:
    """The memory type of new results: that of the first tensor, or `device` if it is over host memory."""
    for value in _flat(given):
        if isinstance(value, Tensor):
            return value.memory_type()
        if isinstance(value, StridedView):
            return value.base.memory_type()
    return "device"


def _on_device(manager: Manager, value: Any, name: str, written: bool) -> Tensor:
    """The tensor that the kernels use for an argument: itself if it can be bound, else a dense copy."""
    if isinstance(value, np.ndarray):
        if written and not value.flags.writeable:
            raise InvalidArgumentError(f"{name} is written by the kernels and is a read-only array")
        tensor = manager.empty(value.shape, value.dtype)
        np.copyto(tensor.numpy(), value)
        return tensor
    if isinstance(value, StridedView):
        if written:
            raise InvalidArgumentError(
                f"{name} is written by the kernels and {value._describe()} is not dense"
            )
        return manager.tensor_t(value.read())
    return value  # type: ignore[no-any-return]
