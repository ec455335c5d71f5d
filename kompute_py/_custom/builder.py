"""FunctionBuilder: the GLSL of an operation's dispatches, written by its `generate`."""

from __future__ import annotations

import linecache
import math
import re
import sys
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from .._base.arrays import as_index, to_array, to_dtype
from .._base.errors import (
    ArgumentTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfMemoryError,
    kind_of,
    shown,
)
from .._base.text import nearest
from .._formulas.dtypes import literal
from .._formulas.glsl_elements import Element, element_of
from .._formulas.words import GLSL_WORDS
from .._shaders.module import ShaderModule, subgroups_of
from .arg_descs import RANKS, ArgDesc, EmptyOptionalTensorArg, TensorArg, TensorListArg, ValueArg
from .expressions import IntOrSize, Size, ceil_div, glsl, largest, product, smallest, two_axes
from .names import tensor_of_name
from .selection import FunctionSelection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import ArrayLike, DTypeLike

    from .._base.annotations import ShaderSource
    from .._manager.manager import Manager
    from .._memory.tensor import Tensor

_NAME = re.compile(r"[A-Za-z_]\w*")
_RESERVED = ("gl_", "kp_")


class Origin(NamedTuple):
    """The line of the generator that wrote a line of the kernel."""

    file: str
    line: int


class TensorValue:
    """A tensor in the kernels. ``str(value)`` is its name, and the name of the buffer's array in GLSL.

    With the name ``x``, the GLSL has ``x_load(i)`` and ``x_store(i, value)`` for element `i` in row-major
    order, ``x_at(i0, i1, ...)`` for the index of an element by its coordinates, ``x_dim0``, ``x_dim1``, ...
    for the lengths of the axes, ``x_stride0``, ... for the number of elements from one to the next on each
    axis, and ``x_size``. All indices are uint.

    Use ``x_load`` and ``x_store`` for elements of 8 and 16 bits: the buffer of a device without such elements
    is an array of uint. ``x_load`` gives float for float16, int for int8 and int16, uint for uint8 and
    uint16, and bool for bool; ``x_store`` takes these.

    For float32, int32 and uint32, ``x_load4(k)`` and ``x_store4(k, value)`` are the elements 4 k to 4 k + 3,
    as a vec4, ivec4 or uvec4: all four must exist.
    """

    __module__ = "kompute_py.typing"  # where users find it

    def __init__(
        self,
        name: str,
        dtype: np.dtype[Any],
        shape: tuple[IntOrSize, ...],
        features: frozenset[str] | None = None,
    ) -> None:
        self.name: str = name
        """Its name."""
        self.dtype: np.dtype[Any] = dtype
        """The elements' dtype."""
        self.shape: tuple[IntOrSize, ...] = shape
        """The lengths of the axes: ints if they are specialized, else sizes."""
        self.element: Element = element_of(dtype, features)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> IntOrSize:
        """The number of elements."""
        for length in self.shape:
            if not isinstance(length, int):
                return Size.named(f"{self.name}_size")
        return product(self.shape)

    @property
    def type(self) -> str:
        """The type of an element in GLSL expressions."""
        return self.element.type

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<TensorValue {self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]>"


class ScratchValue(TensorValue):
    """Memory of an operation that lives from its first to its last dispatch. One axis."""

    __module__ = "kompute_py.typing"  # where users find it

    @property
    def size(self) -> IntOrSize:
        return self.shape[0]


class Indirect(NamedTuple):
    """Three uint32 with the numbers of workgroups, which the device reads."""

    tensor: str
    offset: int
    """In elements."""


class Dispatch:
    """One dispatch while it is written."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.body: list[tuple[str, Origin]] = []
        self.outside: list[tuple[str, Origin]] = []
        self.extensions: list[str] = []
        self.local_size: tuple[int, int, int] = (64, 1, 1)
        self.subgroup_size: int | None = None
        self.full_subgroups = False
        self.grid: tuple[IntOrSize, IntOrSize, IntOrSize] | None = None
        self.indirect: Indirect | None = None
        self.counted = ""
        """The call that computed with `local_size`."""
        self.module: ShaderModule | None = None
        """In the place of the text."""
        self.bindings: tuple[str, ...] = ()
        """The tensors of `module`, by binding."""
        self.values: tuple[str, ...] = ()
        """The numbers in its push constants, in their order."""
        self.words: frozenset[str] = frozenset()
        """The names in the text, once it is complete."""


class FunctionBuilder:
    """The kernels of one specialization of an operation.

    ::

        def generate(self, ksel, kb):
            x, y = kb.arg_value("x"), kb.result(0)
            kb.grid(y.size)
            kb.emit('''
                uint i = gl_GlobalInvocationID.x;
                if (i < x_size) result_store(i, 2.0 * x_load(i));
            ''')

    Everything that `emit` is given between two calls of `begin_dispatch` is the body of one kernel. A
    dispatch runs after those before it, and sees what they have written. The kernels must write each element
    of each result: its contents are undefined before. Raises ArgumentTypeError if it is called: operations
    create it.

    >>> @kp.CustomOp.register
    ... class twice(kp.CustomOp):
    ...     signature = "twice(Tensor x) -> Tensor"
    ...     def select(self, ksel):
    ...         x = ksel.arg_tensor("x")
    ...         ksel.return_new_tensor(x.shape, x.dtype)
    ...     def generate(self, ksel, kb):
    ...         print(kb.arg_value("x").size, kb.constant_index(3))
    ...         kb.yield_results("x_load(i) * 2")
    >>> twice(mgr.tensor([1, 2])).tolist()
    x_size 3u
    [2.0, 4.0]
    """

    __module__ = "kompute_py"

    def __init__(self, selection: FunctionSelection, single_dispatch: bool) -> None:
        if not isinstance(selection, FunctionSelection):
            raise ArgumentTypeError("A FunctionBuilder is made by an operation, for its generate")
        self.selection: FunctionSelection = selection
        """The decisions of `select`."""
        self._single = single_dispatch
        self._tensors: dict[str, TensorValue] = {}
        self._values: dict[str, ValueArg] = {}
        self._results: list[TensorValue] = []
        self._scratch: dict[str, tuple[ScratchValue, IntOrSize]] = {}
        self._constants: dict[str, tuple[Any, int]] = {}
        self._dispatches: list[Dispatch] = []
        self._current: Dispatch | None = None
        self._of_one_size: list[tuple[str, ...]] = []
        """Results whose elements one expression each yields: they have the same number of elements."""
        self._calls: dict[str, int] = {}
        """The functions of `call`, with their numbers."""
        for tensor in selection.tensors:
            self._tensors[tensor.name] = TensorValue(
                tensor.name, tensor.dtype, tensor._dims(), selection.features
            )
        for desc in selection.values:
            self._values[desc.name] = desc
        self._results = [self._tensors[result.name] for result in selection.results]

    # -- values ----------------------------------------------------------------------------------------------

    def arg_value(self, argument: int | str) -> Any:
        """An argument in the kernels, by position or name: a `TensorValue`; a list of them for ``Tensor[]``;
        the name of a number that `select` declared with `arg_int`, `arg_float` or `arg_tensor_or_value`.

        Raises InvalidArgumentError for an attribute (its value is ``ksel``'s, not the kernels'), a tensor
        that was not given, and an unknown argument.
        """
        desc = self._desc(argument)
        if isinstance(desc, TensorArg):
            return self._tensors[desc.name]
        if isinstance(desc, TensorListArg):
            return [self._tensors[item.name] for item in desc.items]
        if isinstance(desc, ValueArg):
            return desc.name
        reason = (
            "was not given; ask arg_optional_tensor's result"
            if isinstance(desc, EmptyOptionalTensorArg)
            else f"is an attribute: its value is ksel.attribute({desc.name!r})"
        )
        raise InvalidArgumentError(
            f"{self._who()}: the argument {desc.name!r} is not a value of the kernels: it {reason}"
        )

    def result(self, position: int = 0) -> TensorValue:
        """A result in the kernels. Raises InvalidArgumentError if there is no such result."""
        if type(position) is not int or not 0 <= position < len(self._results):
            raise InvalidArgumentError(
                f"{self._who()} has {len(self._results)} results; result was given {shown(position)}"
            )
        return self._results[position]

    def constant_index(self, number: int) -> str:
        """A whole number as an index in GLSL: ``5u``.

        Raises InvalidArgumentError unless it is an int from 0 to 2**32 - 1.
        """
        if type(number) is not int or not 0 <= number < 2**32:
            raise InvalidArgumentError(f"An index is an int from 0 to 2**32 - 1, not {shown(number)}")
        return f"{number}u"

    def scratch(self, name: str, size: IntOrSize, dtype: DTypeLike = np.float32) -> ScratchValue:
        """Memory of `size` elements for the operation's own dispatches, with undefined contents at first.

        Raises InvalidArgumentError if `name` is not a GLSL name or is taken, ArgumentTypeError if
        `size` is neither an int nor a size, or for an unsupported dtype.
        """
        self._check_name(name, "scratch memory")
        _check_size(size, "The size of scratch memory")
        made = ScratchValue(name, to_dtype(dtype), (size,), self.selection.features)
        self._tensors[name] = made
        self._scratch[name] = made, size
        return made

    def _check_name(self, name: Any, what: str) -> None:
        if (
            not isinstance(name, str)
            or not _NAME.fullmatch(name)
            or name.startswith(_RESERVED)
            or name in GLSL_WORDS
            or "__" in name
        ):
            raise InvalidArgumentError(f"{self._who()}: {shown(name)} cannot name {what} in GLSL")
        known = [*self._tensors, *self._values]
        if (
            name in known
            or tensor_of_name(name, self._tensors) is not None
            or any(tensor_of_name(each, (name,)) is not None for each in known)
        ):
            raise InvalidArgumentError(f"{self._who()}: {shown(name)} names something else already")

    def constant(
        self,
        name: str,
        contents: ArrayLike | Callable[[Manager], Tensor],
        *,
        size: int | None = None,
        dtype: DTypeLike | None = None,
    ) -> TensorValue:
        """A table that the kernels read: the elements of `contents` in row-major order, which are the same in
        each call. It is uploaded once for each specialization and Manager.

        `contents` may be a function of the Manager that returns a Tensor of `size` elements of `dtype`, which
        the device computes, say. It is called once for each specialization and Manager.

        Raises InvalidArgumentError if `name` is not a GLSL name or is taken, if there are no elements,
        or for rows of several lengths; ArgumentTypeError for elements that the dtype does not have, an
        unsupported dtype, and a function without a size and a dtype.

        >>> @kp.CustomOp.register
        ... class primes(kp.CustomOp):
        ...     signature = "primes(Tensor x) -> Tensor"
        ...     def select(self, ksel):
        ...         x = ksel.arg_tensor("x")
        ...         ksel.return_new_tensor(x.shape, "int32")
        ...     def generate(self, ksel, kb):
        ...         kb.constant("table", np.int32([2, 3, 5, 7, 11]))
        ...         kb.yield_results("table_load(uint(x_load(i)))")
        >>> primes(mgr.tensor([4, 0])).tolist()
        [11, 2]
        """
        self._check_name(name, "a table")
        if callable(contents):
            if type(size) is not int or dtype is None:
                raise ArgumentTypeError(
                    f"{self._who()}: a function computes {name!r}: give a size, an int, and a dtype"
                )
            count, element = size, to_dtype(dtype)
        else:
            contents = self._table(name, contents, dtype)
            count, element = contents.size, to_dtype(contents.dtype)
        if not count:
            raise InvalidArgumentError(f"{self._who()}: the table {name!r} has no elements")
        made = TensorValue(name, element, (count,), self.selection.features)
        self._tensors[name] = made
        self._constants[name] = contents, count
        return made

    def _table(self, name: str, contents: Any, dtype: DTypeLike | None) -> np.ndarray[Any, Any]:
        """The elements of a table, on one axis: a copy."""
        wanted = None if dtype is None else to_dtype(dtype)
        found = to_array(contents, f"{self._who()}: the table {name!r}")
        try:
            return np.array(found, wanted).reshape(-1)
        except (TypeError, ValueError) as error:
            raise ArgumentTypeError(f"{self._who()}: the table {name!r} is not {wanted}: {error}") from None
        except MemoryError as error:
            raise OutOfMemoryError(f"{self._who()}: the table {name!r} is too large: {error}") from None

    @staticmethod
    def ceil_div(a: IntOrSize, b: IntOrSize) -> IntOrSize:
        """`a` divided by `b`, rounded up: of ints an int, else a size."""
        return ceil_div(a, b)

    @staticmethod
    def smallest(a: IntOrSize, b: IntOrSize) -> IntOrSize:
        """The smaller one: of ints an int, else a size."""
        return smallest(a, b)

    @staticmethod
    def largest(a: IntOrSize, b: IntOrSize) -> IntOrSize:
        """The larger one: of ints an int, else a size."""
        return largest(a, b)

    # -- dispatches ------------------------------------------------------------------------------------------

    def begin_dispatch(self, name: str = "") -> None:
        """Begins the next dispatch. `name` is added to the operation's in errors and profiles.

        Raises FailedPreconditionError if the operation says `single_dispatch` and has one, ArgumentTypeError
        if the name is not a str.
        """
        if not isinstance(name, str):
            raise ArgumentTypeError(f"{self._who()}: the name of a dispatch is a str, not {kind_of(name)}")
        if self._single and self._dispatches:
            raise FailedPreconditionError(
                f"{self._who()} has single_dispatch = True, so generate may not begin another dispatch"
            )
        self._current = Dispatch(name)
        self._dispatches.append(self._current)

    def workgroup(self, x: int, y: int = 1, z: int = 1) -> None:
        """The number of invocations in a workgroup; 64 by default. Short kernels of many elements take less
        time on GPUs with 256. Call it before `groups` and `yield_results`, which count with it.

        Raises InvalidArgumentError if not positive, FailedPreconditionError after one of these.
        """
        for size in (x, y, z):
            if type(size) is not int or size < 1:
                raise InvalidArgumentError(f"A workgroup has ints from 1 in x, y, z, not {shown((x, y, z))}")
        dispatch = self._dispatch()
        if dispatch.counted and dispatch.local_size != (x, y, z):
            raise FailedPreconditionError(
                f"{self._who()}: kb.{dispatch.counted} has counted workgroups of {dispatch.local_size}; call "
                "kb.workgroup before it"
            )
        dispatch.local_size = (x, y, z)

    def subgroups(self, size: int | None = None, *, full: bool = True) -> None:
        """The invocations of each subgroup, by default as many as the device chooses, and whether all
        subgroups are full. See `kp.ShaderModule` for what devices can do: ``ksel.has("subgroupSizeControl")``
        and ``ksel.device["subgroup_sizes"]`` tell.

        Raises InvalidArgumentError unless `size` is a power of two, and for a module of SPIR-V, which says it
        itself.
        """
        dispatch = self._dispatch(text=True)
        dispatch.subgroup_size, dispatch.full_subgroups = subgroups_of(size, full)

    def grid(self, x: IntOrSize, y: IntOrSize = 1, z: IntOrSize = 1) -> None:
        """The number of invocations, which is rounded up to whole workgroups. With 0, the dispatch does not
        run.

        Raises ArgumentTypeError if one is neither an int nor a size.
        """
        for size in (x, y, z):
            _check_size(size, "The grid")
        self._dispatch().grid = (x, y, z)
        self._dispatch().indirect = None

    @overload
    def groups(self, x: IntOrSize, y: IntOrSize = 1, z: IntOrSize = 1) -> None: ...
    @overload
    def groups(self, *, indirect: TensorValue, offset: int = 0) -> None: ...
    def groups(
        self,
        x: IntOrSize | None = None,
        y: IntOrSize = 1,
        z: IntOrSize = 1,
        *,
        indirect: TensorValue | None = None,
        offset: int = 0,
    ) -> None:
        """The number of workgroups; call it after `workgroup`. As `grid` of so many whole workgroups.

        `indirect` is scratch memory or an argument of dtype uint32 instead: the device reads the numbers of
        workgroups in x, y and z from it, from the element `offset` on, when the dispatch begins. An earlier
        dispatch may write them. Nothing checks them: none may be above the device's limit, which is 65535
        or more, so bound them with ``min(n, 65535u)``. With a 0, the dispatch does not run.

        Raises ArgumentTypeError if a number is neither an int nor a size and if `indirect` is not a uint32
        value of the kernels, InvalidArgumentError for both forms at once and for fewer than three elements.
        """
        if indirect is not None:
            if x is not None:
                raise InvalidArgumentError(f"{self._who()}: give groups numbers, or indirect, not both")
            self._groups_of(indirect, offset)
            return
        if x is None:
            raise ArgumentTypeError(f"{self._who()}: groups takes numbers, or indirect=")
        for size in (x, y, z):
            _check_size(size, "The number of groups")
        dispatch = self._dispatch()
        dispatch.counted = "groups"
        i, j, k = dispatch.local_size
        dispatch.grid = product((x, i)), product((y, j)), product((z, k))
        dispatch.indirect = None

    def _groups_of(self, value: Any, offset: Any) -> None:
        if not isinstance(value, TensorValue) or self._tensors.get(value.name) is not value:
            raise ArgumentTypeError(
                f"{self._who()}: indirect is {kind_of(value)}; give scratch memory or a tensor of these "
                "kernels: kb.scratch('groups', 3, 'uint32')"
            )
        if value.dtype != np.uint32:
            raise ArgumentTypeError(
                f"{self._who()}: indirect is {value.name!r} of {value.dtype}; workgroups are uint32"
            )
        first = as_index(offset, "offset")
        if first < 0 or (isinstance(value.size, int) and value.size < first + 3):
            raise InvalidArgumentError(
                f"{self._who()}: indirect is {value.name!r} with {value.size} elements, which has no three "
                f"from {first} on: the numbers of workgroups in x, y and z"
            )
        self.grid(1)  # for checks: one group
        self._dispatch().indirect = Indirect(value.name, first)

    def emit(self, source: Any) -> None:
        """Adds lines to the body of the dispatch's ``main``."""
        self._dispatch(text=True).body += _lines(source, 2)

    def spirv(
        self,
        module: ShaderSource,
        *,
        bindings: Iterable[str] | None = None,
        values: Iterable[str] = (),
        entry: str | None = None,
    ) -> None:
        """Makes the dispatch run a module of SPIR-V instead of emitted lines; its `grid` is still to be
        set.

        `module` is what `kp.ShaderModule` takes: bytes, words, a path, a ShaderModule, also source text.
        `bindings` names the tensors for the bindings 0, 1, ... of set 0: arguments, results and scratch
        memory, by default all, in the order of their declaration. `values` names the members of the module's
        push constants in their order, laid out as in std430: numbers of the call, and ``x_size``,
        ``x_dim0``, ... of tensors, which are uint. The workgroup is the module's.

        Elements of 8 and 16 bits are bound as they are, for devices with such elements. Raises
        InvalidArgumentError for invalid SPIR-V and unknown names, FailedPreconditionError if lines were
        emitted already, ArgumentTypeError for other types, and the errors of `kp.ShaderModule`.

        >>> spirv = kp.compile('''
        ... layout(local_size_x = 64) in;
        ... layout(binding = 0) readonly buffer X { float x[]; };
        ... layout(binding = 1) writeonly buffer Y { float y[]; };
        ... layout(push_constant) uniform P { uint count; float factor; };
        ... void main() { uint i = gl_GlobalInvocationID.x; if (i < count) y[i] = x[i] * factor; }
        ... ''')
        >>> @kp.CustomOp.register
        ... class scaled(kp.CustomOp):
        ...     signature = "scaled(Tensor x, float factor) -> Tensor"
        ...     def select(self, ksel):
        ...         x = ksel.arg_tensor("x")
        ...         ksel.arg_float("factor")
        ...         ksel.return_new_tensor(x.shape, x.dtype)
        ...     def generate(self, ksel, kb):
        ...         kb.spirv(spirv, values=("x_size", "factor"))
        ...         kb.grid(kb.arg_value("x").size)
        >>> scaled(mgr.tensor([1, 2]), 1.5).tolist()
        [1.5, 3.0]
        """
        dispatch = self._dispatch()
        if dispatch.body or dispatch.outside or dispatch.module is not None:
            raise FailedPreconditionError(
                f"{self._who()}: the dispatch has a kernel already; call kb.begin_dispatch() before kb.spirv"
            )
        made = (
            module
            if isinstance(module, ShaderModule) and entry is None
            else ShaderModule(module, name=self._who(), entry=entry)
        )
        names = tuple(self._tensors) if bindings is None else _names(bindings, "bindings")
        for name in names:
            if name not in self._tensors:
                raise InvalidArgumentError(
                    f"{self._who()}: bindings names {shown(name)}{nearest(name, self._tensors)} There are "
                    f"{', '.join(self._tensors)}"
                )
        found = _names(values, "values")
        known = {*self._values, *self.selection._numbers()}
        for name in found:
            if name not in known:
                raise InvalidArgumentError(
                    f"{self._who()}: values names {shown(name)}{nearest(name, known)} It takes names of "
                    "numbers, and sizes such as x_size and x_dim0"
                )
        dispatch.module, dispatch.bindings, dispatch.values = made, names, found
        dispatch.local_size = made.signature.local_size

    def declare(self, source: Any) -> None:
        """Adds lines before ``main``: functions, constants, shared memory."""
        self._dispatch(text=True).outside += _lines(source, 2)

    def call(self, operation: Any, /, **arguments: Any) -> Any:
        """An elementwise operation in this kernel: the expression of its result, or a tuple of them.

        `arguments` has for each of its parameters an expression, ``x="x_load(i)"``, or a number. The dtype of
        an expression is that of the tensor that it loads from or the value that it names; give any other
        expression with its dtype: ``x=("x_load(i) * 2.0", "float32")``.

        Raises ArgumentTypeError unless `operation` is elementwise and takes these dtypes,
        InvalidArgumentError for a missing or unknown parameter or an expression without a dtype.

        >>> line = kp.ops.elementwise("a * x + 1")
        >>> @kp.CustomOp.register
        ... class neighbours(kp.CustomOp):
        ...     signature = "neighbours(Tensor x) -> Tensor"
        ...     def select(self, ksel):
        ...         x = ksel.arg_tensor("x")
        ...         ksel.return_new_tensor(x.size - 1, x.dtype)
        ...     def generate(self, ksel, kb):
        ...         left, right = kb.call(line, x="x_load(i)", a=2), kb.call(line, x="x_load(i + 1)", a=2)
        ...         kb.yield_results(f"{right} - {left}")
        >>> neighbours(mgr.tensor([1, 2, 4])).tolist()
        [2.0, 4.0]
        """
        from .formula_calls import called

        text, extensions, results = called(self, operation, arguments)
        dispatch = self._dispatch()
        dispatch.extensions += extensions
        known = {line for line, _ in dispatch.outside}
        for part in text:
            if part.partition("\n")[0] not in known:
                dispatch.outside += [(line, _caller(1)) for line in part.split("\n")]
        return results[0] if len(results) == 1 else results

    def extension(self, name: str) -> None:
        """Enables a GLSL extension. Raises InvalidArgumentError if it is not a name."""
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidArgumentError(f"{shown(name)} is not the name of a GLSL extension")
        self._dispatch(text=True).extensions.append(name)

    def yield_results(self, *values: Any) -> None:
        """Ends the dispatch with one expression for each result: the element ``i`` of the result. A number of
        Python or NumPy becomes one of the result's dtype.

        The dispatch then has one invocation for each element of the first result, ``i`` is declared as the
        element's number, and ends invocations beyond. The results must have one size, which each call
        checks. Without `values`, it says that the emitted lines store all results themselves.

        Raises InvalidArgumentError unless there is one value for each result, ArgumentTypeError for one that
        is not a str, number or size, FailedPreconditionError if the dispatch has a grid already.
        """
        for value in values:
            if not isinstance(value, (str, int, float, complex, np.number, np.bool_, Size)):
                raise ArgumentTypeError(f"{self._who()}: a result is an expression, not {kind_of(value)}")
        if not self._results or (values and len(values) != len(self._results)):
            raise InvalidArgumentError(
                f"{self._who()} has {len(self._results)} results; yield_results was given {len(values)} "
                "values"
            )
        if values:
            dispatch = self._dispatch(text=True)
            if dispatch.grid is not None:
                raise FailedPreconditionError(
                    f"{self._who()}: yield_results with values sets the grid itself; this dispatch has one"
                )
            first, origin = self._results[0], _caller(1)
            # As many groups as there are, in two axes: one invocation for each element, whatever their shape.
            width, *more = dispatch.local_size
            count = math.prod(dispatch.local_size)
            self.groups(*two_axes(ceil_div(first.size, count)))
            if more == [1, 1]:
                index = f"gl_GlobalInvocationID.x + gl_GlobalInvocationID.y * gl_NumWorkGroups.x * {width}u"
            else:
                index = (
                    f"(gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * {count}u"
                    " + gl_LocalInvocationIndex"
                )
            self._of_one_size.append(tuple(result.name for result in self._results))
            dispatch.counted = "yield_results"
            dispatch.body.insert(0, (f"uint i = {index};", origin))
            dispatch.body.insert(1, (f"if (i >= {glsl(first.size)}) return;", origin))
            for result, value in zip(self._results, values, strict=True):
                dispatch.body.append(
                    (f"{result.name}_store(i, {self._yielded_text(result, value)});", origin)
                )

    # -- inside ----------------------------------------------------------------------------------------------

    def _yielded_text(self, result: TensorValue, value: Any) -> str:
        """The expression of a value that is stored in a result."""
        if isinstance(value, str | Size):
            return str(value)
        dtype = result.dtype
        floats = RANKS["f"]
        if dtype.kind != "b" and RANKS[np.dtype(type(value)).kind] > RANKS.get(dtype.kind, floats):
            raise InvalidArgumentError(
                f"{self._who()}: {result.name!r} is of {dtype}, and {shown(value)} is not"
            )
        try:
            return literal(value, dtype)
        except OverflowError:
            raise InvalidArgumentError(
                f"{self._who()}: {shown(value)} is out of bounds for {result.name!r} of {dtype}"
            ) from None

    def _who(self) -> str:
        return self.selection.name

    def _desc(self, argument: int | str) -> ArgDesc:
        descs = [desc for desc in self.selection.arg_descs if desc is not None]
        for desc in descs:
            given = desc.parameter.name if isinstance(argument, str) else desc.index
            if type(argument) in (int, str) and argument == given:
                return desc
        raise InvalidArgumentError(
            f"{self._who()} has no argument {shown(argument)}; it has {', '.join(d.name for d in descs)}"
        )

    def _dispatch(self, text: bool = False) -> Dispatch:
        """The current dispatch. With `text`, it takes lines."""
        if self._current is None:
            self.begin_dispatch()
        assert self._current is not None
        if text and self._current.module is not None:
            raise FailedPreconditionError(
                f"{self._who()}: the dispatch is a module of SPIR-V, which takes no lines; call "
                "kb.begin_dispatch()"
            )
        return self._current

    def _finish(self) -> list[Dispatch]:
        if not self._dispatches:
            raise InvalidArgumentError(f"{self._who()}: generate wrote no kernel: call kb.emit(...)")
        for number, dispatch in enumerate(self._dispatches):
            if dispatch.grid is None:
                raise InvalidArgumentError(
                    f"{self._who()}: dispatch {number} has no grid: call kb.grid(...), kb.groups(...) or "
                    "kb.yield_results(values)"
                )
            lines = [line for line, _ in dispatch.outside + dispatch.body]
            dispatch.words = frozenset(_NAME.findall("\n".join(lines)))
        for result in self._results:
            name, store = result.name, f"{result.name}_store"
            for dispatch in self._dispatches:
                if store in dispatch.words or name in dispatch.words or name in dispatch.bindings:
                    break
            else:
                raise InvalidArgumentError(
                    f"{self._who()}: no kernel writes the result {result.name!r}: store its elements with "
                    f"{result.name}_store(i, value), or call kb.yield_results(value, ...)"
                )
        return self._dispatches


KernelBuilder = FunctionBuilder
"""The older name."""


def _check_size(size: Any, what: str) -> None:
    if type(size) is not int and not isinstance(size, Size):
        raise ArgumentTypeError(f"{what} is an int or a size, such as kb.result(0).size, not {kind_of(size)}")
    if isinstance(size, int) and size < 0:
        raise InvalidArgumentError(f"{what} is not negative; {shown(size)} was given")


def _names(given: Any, what: str) -> tuple[str, ...]:
    names = tuple(given) if isinstance(given, (list, tuple, set, frozenset, dict)) else ()
    if isinstance(given, str) or not all(isinstance(each, str) for each in names) or (given and not names):
        raise ArgumentTypeError(f"{what} is a list of names, not {shown(given)}")
    return names


def _caller(depth: int) -> Origin:
    frame = sys._getframe(depth + 1)
    return Origin(frame.f_code.co_filename, frame.f_lineno)


def _lines(source: Any, depth: int) -> list[tuple[str, Origin]]:
    """The lines of `source`, each with the line of the generator that it stands on, or else the call's."""
    if not isinstance(source, str):
        raise ArgumentTypeError(f"Kernels are written as text, not as {kind_of(source)}")
    call = _caller(depth)
    lines = source.split("\n")
    if len(lines) == 1:
        return [(source, call)]
    # In a text over several lines, they follow each other in the file, too. The call's line is that of its
    # first or last argument, according to the version of Python.
    for first in (call.line, call.line - len(lines) + 1):
        seen = [linecache.getline(call.file, first + number) for number in range(len(lines))]
        if all(line.strip() in text for line, text in zip(lines, seen, strict=True)):
            return [(line, Origin(call.file, first + number)) for number, line in enumerate(lines)]
    return [(line, call) for line in lines]
