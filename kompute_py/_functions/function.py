"""Function: what a custom operation becomes, to be called, bound, submitted and prepared."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .._base.errors import (
    ArgumentTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    KomputeError,
    kind_of,
    shown,
)
from .._base.public import Routine
from .._custom.arguments import (
    answered,
    checked,
    features_for,
    outs_of,
    plain_types,
    python_signature,
)
from .._custom.declaration import Declaration
from .._custom.names import text_of
from .._custom.program import written
from .._custom.selection import FunctionSelection
from .._kernels.donation import Donated, donating, require_apart, with_taken
from .._kernels.specializations import Specializations
from .._manager.default import manager as default_manager
from .._memory.image import Image
from .._memory.needs import current as planning
from .._memory.needs import planned
from .._memory.strided import StridedView
from .._memory.tensor import Tensor
from .._recording.preload import report_built
from .._shaders.signature import MISSING
from .._sync.fence import Fence
from .._sync.ordered import Order, called_in_order, fence_of, order_of, stream_of, submit_stream
from .called import begun, unknown
from .forming import made_of_specs
from .forms import Facts
from .given import flat, manager_of, require_alive
from .library import Recipe, recalled
from .op_custom import CacheInfo, OpCustom
from .preparing import Prepared, Preparing
from .tuning import Tuning

if TYPE_CHECKING:
    from typing_extensions import Self

    from .._manager.manager import Manager
    from .._memory.needs import MemoryNeeds
    from .._sync.semaphore import Signals, Waits
    from .custom_op import CustomOp

_Method = TypeVar("_Method", bound=Callable[..., Any])


def _beginning(method: _Method) -> _Method:
    """A method of Function with errors that begin with its name."""

    @functools.wraps(method)
    def call(self: Any, /, *args: Any, **named: Any) -> Any:
        try:
            return method(self, *args, **named)
        except KomputeError as error:
            begun(error, self.__name__)
            raise

    return call  # type: ignore[return-value]


class Function(Routine):
    """A custom operation: a callable.

    A call runs it now, and waits. Its results are where the arguments are: Tensors if one of them is a
    Tensor, else arrays. ``out=`` gives the memory of the results, a tuple if there are several: Tensors,
    parts of them such as ``t[:, 1]`` and ``t[::-1]``, Images, or arrays. ``donate=`` (names or positions of
    tensors, or True for all) destroys these arguments after the call. ``wait=`` and ``signal=`` are as in
    `Sequence.eval_async`: the call waits for `wait` before it looks at its arguments, and signals at its end,
    on the host; an error signals nothing.

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

    def __init_subclass__(cls, named: bool = False) -> None:
        """For help() and messages, classes that only add a way to run have this one's name."""
        if not named:
            cls.__name__ = cls.__qualname__ = "Function"
            cls.__module__ = "kompute_py"

    def __init__(self, op: CustomOp, declaration: Declaration, forced: str = "") -> None:
        if not hasattr(op, "_has_variants") or not isinstance(declaration, Declaration):
            raise ArgumentTypeError("A Function is made by kp.CustomOp.register")
        self._op = op
        self._declaration = declaration
        self._names = tuple(each.name for each in declaration.parameters)
        self._at = {name: place for place, name in enumerate(self._names)}
        self._defaults = [each.left_out for each in declaration.parameters]
        self._plain = [plain_types(each) for each in declaration.parameters]
        self._one_fresh = len(declaration.results) == 1 and not declaration.results[0].alias
        self._most_by_position = sum(not each.by_name for each in declaration.parameters)
        self._eager: bool = op._eager
        self.__name__: str = declaration.name
        self.__qualname__: str = declaration.name
        self.__doc__: str | None = inspect.getdoc(type(op)) if type(op).__doc__ else None
        self.__wrapped__: type[CustomOp] = type(op)
        self.__signature__: inspect.Signature = python_signature(declaration)
        self._prepared = Preparing(op, declaration, forced)
        self._recipe: Recipe | None = None
        """A call that makes such an operation, for pickle."""
        self._fixed: dict[str, Any] = {}
        """The arguments that `specialize` has fixed."""
        self._whole: Function = self
        """The function without them."""
        self._specializations: Specializations[Function] = Specializations(None)

    def _made_by(self, make: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]) -> Self:
        """Itself, with the call that made it."""
        self._recipe = make, args, named
        return self

    def __reduce_ex__(self, protocol: object) -> Any:
        """An operation is pickled by its name, or by the texts that it was made of."""
        return recalled(self, type(self._op).__module__, self._recipe)

    def __repr__(self) -> str:
        return f"<kp.Function {self._declaration.text}>"

    # -- calling ---------------------------------------------------------------------------------------------

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        try:
            calls = self._prepared.current
            if calls is not None:
                result = calls.table.call(args, named)
                if result is not NotImplemented:
                    if calls.watch is not None:
                        calls.watch()
                    return result
            if "wait" not in named and "signal" not in named:
                return self._general(True, args, **named)
            return called_in_order(self, args, named)
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
        with self._donating(values, outs_of(self._declaration, out), donate) as (taken, reused):
            return self._evaluated(None, (), {}, with_taken(values, taken), out, taken, reused)

    def _donating(
        self, values: list[Any], outs: tuple[Any, ...], donate: Any
    ) -> AbstractContextManager[tuple[list[Donated], list[Tensor]]]:
        """`donating` for a call."""
        may_give = {
            parameter.name: value
            for parameter, value in zip(self._declaration.parameters, values, strict=True)
            if isinstance(value, Tensor) and not parameter.alias
        }
        written = *outs, *(values[place] for place in self._prepared.written)
        return donating(self.__name__, self._names, may_give, donate, written)

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
            if planning.plan is not None and out is not None:
                for each in outs_of(self._declaration, out):
                    planning.plan.writes(each)
                return out
            results = answered(self._declaration, answer, outs_of(self._declaration, out))
            if taken:
                answers = (results,) if self._declaration.single else results
                require_apart(self.__name__, [each.taken for each in taken], answers)
            return results
        if out is None:
            outs: tuple[Any, ...] = ()
        elif self._one_fresh and type(out) is Tensor:
            out._require_init("be written")
            outs = (out,)
        else:
            outs = outs_of(self._declaration, out)
        if planning.plan is not None:
            with self._prepared.lock:
                results = self._prepared.planned(planning.plan, values, outs)
            return results[0] if self._declaration.single else tuple(results)
        given = self._prepared.memory(values, outs)
        try:
            with self._prepared.lock:
                known, began = self._prepared.misses, time.perf_counter()
                form, push, manager, calls = self._prepared.form(values, outs)
                built = time.perf_counter() - began if self._prepared.misses > known else 0.0
            # Without the lock: other threads may have to signal what this call waits for.
            fresh = form.new_results(given, manager, taken, reused)
            results = form.call(given, manager, push, calls, fresh)
        except FailedPreconditionError:
            require_alive(given)
            raise
        if built:
            report_built(self.__name__, built, time.perf_counter() - began - built)
        if exactly and form.repeats:
            named = named if out is None else {**named, "out": out}
            calls.table.remember(args, named, form, given, push)
        return results[0] if self._declaration.single else tuple(results)

    def variant(self, name: str) -> Function:
        """The operation with one of its variants, without a measurement.

        Raises InvalidArgumentError if it declares no variants, ArgumentTypeError if the name is not a str. A
        call raises InvalidArgumentError if `variants` does not return the name.
        """
        if not self._prepared.has_variants:
            raise InvalidArgumentError(f"{self.__name__} declares no variants")
        if not isinstance(name, str) or not name:
            raise ArgumentTypeError(f"{self.__name__}: a variant is a name, not {shown(name)}")
        return Function(self._op, self._declaration, name)._made_by(Function.variant, (self, name), {})

    def specialize(self, /, **values: Any) -> Function:
        """The function with these arguments fixed, which its calls then leave out: numbers, texts, dtypes and
        lists of numbers, but no tensors. Parameters behind one are given by name. A value given again
        replaces the earlier one.

        The same values give the same function while that is in use, and for the 16 that were asked for last
        also when it is not. It shares what is prepared with this one.

        Raises ArgumentTypeError for a name that the function lacks, InvalidArgumentError for a tensor or an
        array. Values are checked by the calls.

        >>> total = kp.ops.sum.specialize(axis=0)
        >>> total(mgr.tensor([[1, 2], [3, 4]])).tolist()
        [4.0, 6.0]
        """
        fixed = dict(self._fixed)
        for name, value in values.items():
            if name not in self._at:
                raise unknown(self.__name__, name, self._names, self._declaration.text)
            if isinstance(value, (Tensor, StridedView, Image, np.ndarray)):
                raise InvalidArgumentError(
                    f"{self.__name__}: {name} is memory, which each call gives; specialize fixes numbers, "
                    "texts and dtypes"
                )
            fixed[name] = tuple(value) if type(value) is list else value
        if not values:
            return self
        key = frozenset([(name, type(value), text_of(value)) for name, value in fixed.items()])
        known = self._specializations
        return known.find(key) or known.add(key, _Specialized(self._whole, fixed))

    # -- other ways to use it -------------------------------------------------------------------------------

    @_beginning
    def bind(self, /, *args: Any, out: Any = None, **named: Any) -> OpCustom:
        """The function with these arguments as an operation: ``seq.record(f.bind(x))``. Its attribute
        `results` has the tensors.

        Tensors only: record OpSyncDevice and OpSyncLocal for arrays. Results that `out` does not give are
        made now, of the first tensor's memory type; those of an operation without tensors by the current
        Manager. Raises what a call raises.
        """
        return self._titled("", *args, out=out, **named)

    op = bind  # its older name

    def _titled(self, title: str, /, *args: Any, out: Any = None, **named: Any) -> OpCustom:
        """`bind` for a function that records it among others: names of dispatches begin with that one's."""
        values, outs = self._bind(args, named), outs_of(self._declaration, out)
        if not outs and not any(
            isinstance(each, (np.ndarray, Tensor, StridedView, Image)) for each in flat(values)
        ):
            manager = default_manager()
            made = self._prepared.select(values, self._prepared.calls_of(manager).facts).results
            outs = tuple(manager.empty(each.shape, each.dtype) for each in made)
        prepared, parts, results = self._recorded(values, outs, title)
        written = results if any(not each.alias for each in self._declaration.results) else ()
        again = functools.partial(self._over_copies, values, written, results, title)
        return OpCustom(self._declaration.name, prepared.form, parts, results, again)

    def _over_copies(
        self, values: list[Any], outs: tuple[Any, ...], results: tuple[Tensor, ...], title: str
    ) -> OpCustom:
        """See `OpCustom._over_any_memory`."""
        given = flat((*values, *outs))
        with self._prepared.lock:
            manager = manager_of(self.__name__, given)
            assert manager is not None  # it has the results
            places = tuple([place for place, each in enumerate(given) if isinstance(each, Tensor)])
            form, _ = self._prepared.made(values, outs, places, manager, self._prepared.calls_of(manager))
        push = form.pushes(values)
        parts = form.operations(manager, self._prepared.memory(values, outs), (), push, title)
        return OpCustom(self._declaration.name, form, parts, results)

    def submit(
        self,
        /,
        *args: Any,
        out: Any = None,
        wait: Waits = (),
        signal: Signals = (),
        **named: Any,
    ) -> Fence:
        """Runs it without waiting and returns a Fence. Tensors only; its `results` are what `out` does not
        give. ``donate=`` is as in a call.

        `wait` and `signal` are as in `Sequence.eval_async`. Raises what a call raises.

        >>> x = mgr.tensor([1, 4, 9])
        >>> fences = [kp.ops.sqrt.submit(x) for _ in range(3)]  # three of them run
        >>> [each.results[0].tolist() for each in fences][-1]  # waits
        [1.0, 2.0, 3.0]
        """
        if out is not None:
            named["out"] = out
        try:
            order = order_of(wait, signal)
            calls = self._prepared.current
            if calls is not None:
                submitted = calls.table.submit(args, named, order)
                manager = calls.reference()
                if submitted is not NotImplemented and manager is not None:
                    if calls.watch is not None:
                        calls.watch()
                    return fence_of(submitted, manager)
            return self._submitted(args, order, **named)
        except KomputeError as error:
            if isinstance(error, FailedPreconditionError):
                self._explain(error, (*args, *named.values()))
            begun(error, self.__name__)
            raise

    def _submitted(
        self, args: tuple[Any, ...], order: Order | None, /, out: Any = None, donate: Any = (), **named: Any
    ) -> Fence:
        values = self._bind(args, named)
        outs = outs_of(self._declaration, out)
        with self._donating(values, outs, donate) as (taken, reused):
            values = with_taken(values, taken)
            given = self._prepared.memory(values, outs)
            prepared, parts, results = self._recorded(values, outs, taken=taken, reused=reused)
            if prepared.form.repeats and not taken:
                named = named if out is None else {**named, "out": out}
                prepared.calls.table.remember(args, named, prepared.form, given, prepared.push)
            new = tuple([each for each in results if all(each is not other for other in given)])
            fence = submit_stream(prepared.manager, stream_of(prepared.manager, parts), order, new)
        if prepared.calls.watch is not None:
            prepared.calls.watch()
        return fence

    def _recorded(
        self,
        values: list[Any],
        outs: tuple[Any, ...],
        title: str = "",
        taken: Sequence[Donated] = (),
        reused: list[Tensor] | None = None,
    ) -> tuple[Prepared, list[Any], tuple[Tensor, ...]]:
        """A call over Tensors, with its native operations and results. `taken` and `reused` are as in
        `_evaluated`.
        """
        for value in flat((*values, *outs)):
            if isinstance(value, np.ndarray):
                own = zip(self._names, values, strict=True)
                places = (name for name, each in own if any(value is one for one in flat([each])))
                name = next(places, "out")
                raise ArgumentTypeError(
                    f"{self.__name__}: what is recorded works on Tensors, and {name!r} is {kind_of(value)}: "
                    "make one, mgr.tensor_t(array)"
                )
        given = self._prepared.memory(values, outs)
        with self._prepared.lock:
            require_alive(given)
            known, began = self._prepared.misses, time.perf_counter()
            prepared = self._prepared.form(values, outs)
            if self._prepared.misses > known:
                report_built(self.__name__, time.perf_counter() - began)
            manager = prepared.manager
            if not self._op.reads_parts and StridedView in map(type, flat(values)):
                shared = self._prepared.shared(values, outs)
                form, _ = self._prepared.made(values, outs, shared, manager, prepared.calls, gathers=True)
                prepared = prepared._replace(form=form)
        form = prepared.form
        fresh = form.new_results(given, manager, taken, reused)
        parts = form.operations(manager, given, fresh, prepared.push, title)
        results = tuple(given[each] if each >= 0 else fresh[-2 - each] for each in form.results)
        return prepared, parts, results

    @_beginning
    def preload(self, /, *args: Any, out: Any = None, **named: Any) -> None:
        """Prepares calls with arguments like these: chooses the kernels, generates, compiles and builds them,
        and dispatches each with no groups. The first such call then takes no longer than later ones.

        The arguments are those of a call; a `kp.TensorSpec` may stand for a Tensor, of the current Manager if
        there is no Tensor (``with mgr.current():``). Nothing is computed, and no memory of theirs is touched.
        A call that builds its kernels first says so in the log "kompute_py" (level INFO), with the time.
        Raises what a call raises.

        >>> kp.ops.exp.preload(kp.TensorSpec((1000,)))
        """
        values, outs = made_of_specs(self._bind(args, named, meta=True)), outs_of(self._declaration, out)
        given = self._prepared.memory(values, outs)
        require_alive(given)
        with self._prepared.lock:
            prepared = self._prepared.form(values, outs)
        prepared.form.warm_up(given, prepared.manager)

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
        return self._specs(args, named, None)

    def _specs(self, args: tuple[Any, ...], named: dict[str, Any], manager: Manager | None) -> Any:
        """`meta` on a device: the dtypes that it has."""
        facts = None if manager is None else self._prepared.calls_of(manager).facts
        selection = self._prepared.select(self._bind(args, named, meta=True), facts)
        specs = tuple(result.t for result in selection.results)
        return specs[0] if self._declaration.single else specs

    @_beginning
    def memory_needs(self, /, *args: Any, out: Any = None, **named: Any) -> MemoryNeeds:
        """The memory that a call with arguments like these needs, before anything is allocated.

        A `kp.TensorSpec` may stand for a Tensor; arrays count with the buffers that stand for them. Kernels
        are generated and compiled to SPIR-V, and variants are not measured. `eager_execute` runs, with
        Tensors that have no memory. Raises what a call raises, and UnimplementedError if that depends on
        contents that the call computes.

        >>> print(kp.ops.cumsum.memory_needs(kp.TensorSpec(10**6)))
        7.6... MiB (inputs 3.8... MiB, outputs 3.8... MiB, scratch ...), code ...
        """
        manager = manager_of(self.__name__, flat((*args, *named.values(), out))) or default_manager()
        return planned(manager, functools.partial(self._general, None), (args,), {**named, "out": out})

    @_beginning
    def sources(self, /, *args: Any, **named: Any) -> tuple[str, ...]:
        """The GLSL of each dispatch for arguments of these specs, as `kp.Program.record` with
        ``portable=True`` compiles it: whole shaders, to be read or compiled elsewhere. "" stands for a module
        of SPIR-V. Needs no device.

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

    def _for_any_device(self, args: tuple[Any, ...], named: dict[str, Any]) -> FunctionSelection:
        values = self._bind(args, named, meta=True)
        selection = self._prepared.select(values, Facts(None, features_for(self._declaration, values), 0))
        if self._prepared.has_variants:
            selection._variant = self._prepared.variants(selection)[0]
        return selection

    def cache_info(self) -> CacheInfo:
        """The size and use of its caches."""
        return self._prepared.info()

    def cache_clear(self) -> None:
        """Drops compiled specializations and prepared calls, and counts from zero."""
        self._prepared.clear()

    def _tuned(self, /, *args: Any, **named: Any) -> Tuning:
        """See `kp.tune`."""
        named = {name: each for name, each in named.items() if name not in ("out", "donate")}
        return self._prepared.tuned(self._bind(args, named))

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


def _of_the_whole(method: _Method) -> _Method:
    """A method of a specialized function: that of the whole one, with the fixed arguments."""

    @functools.wraps(method)
    def call(self: Any, /, *args: Any, **named: Any) -> Any:
        for name in named:
            if name in self._fixed:
                raise InvalidArgumentError(
                    f"{self.__name__}: {name} is fixed, {self._fixed[name]!r}: leave it out, or "
                    f"specialize({name}=...) again"
                )
        return getattr(self._whole, method.__name__)(*args, **named, **self._fixed)

    return call  # type: ignore[return-value]


class _Specialized(Function):
    """A function with arguments fixed. All that is prepared is the whole function's."""

    def __init__(self, whole: Function, fixed: dict[str, Any]) -> None:
        vars(self).update(vars(whole), _whole=whole, _fixed=fixed)
        self._made_by(Function.specialize, (whole,), fixed)
        kept = [each for each in whole.__signature__.parameters.values() if each.name not in fixed]
        behind = False
        for place, each in enumerate(kept):
            behind = behind or (each.name in self._at and self._at[each.name] > place)
            if behind:
                kept[place] = each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        self.__signature__ = whole.__signature__.replace(parameters=kept)

    def __repr__(self) -> str:
        fixed = ", ".join(f"{name}={value!r}" for name, value in self._fixed.items())
        return f"<kp.Function {self._declaration.text}, {fixed}>"

    def variant(self, name: str) -> Function:
        return self._whole.variant(name).specialize(**self._fixed)

    __call__ = _of_the_whole(Function.__call__)
    memory_needs = _of_the_whole(Function.memory_needs)
    submit = _of_the_whole(Function.submit)
    preload = _of_the_whole(Function.preload)
    meta = _of_the_whole(Function.meta)
    sources = _of_the_whole(Function.sources)
    _titled = _of_the_whole(Function._titled)
    _tuned = _of_the_whole(Function._tuned)
