"""KernelSelection: what an operation decides about a call before its kernels are generated.

`select` of an operation says for each argument whether it specializes the kernels or is a value when they
run, and what the results are. Two calls with the same `spec_key` run the same kernels.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from struct import Struct
from struct import error as StructError
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .._base.arrays import as_shape, to_dtype
from .._base.errors import ArgumentTypeError, FailedPreconditionError, InvalidArgumentError, kind_of, shown
from .._base.text import nearest
from .._formulas.elements import element_of, name_of
from .._formulas.words import GLSL_WORDS
from .arguments import dtype_named
from .declaration import Declaration, Parameter
from .expressions import IntOrSize, Size
from .names import tensor_of_name
from .specs import TensorSpec

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from .._device.names import DeviceInfo

_Arg = TypeVar("_Arg", bound="ArgDesc")
_INT, _FLOAT = np.dtype(np.int32), np.dtype(np.float32)
_OF_PYTHON: dict[type, tuple[np.dtype[Any], ...]] = {
    bool: (np.dtype(np.bool_),),
    int: (_INT, np.dtype(np.int64), np.dtype(np.uint64)),
    float: (_FLOAT,),
    complex: (np.dtype(np.complex64),),
}
"""The dtypes that a number of Python may have in the kernels."""
_BOUNDS = {
    np.dtype(each): (int(np.iinfo(each).min), int(np.iinfo(each).max))
    for each in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
}
_RANKS = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}  # of the kinds of dtypes


class ArgDesc:
    """An argument as `select` declared it. Its classes are `TensorArg`, `TensorListArg`, `ValueArg` and
    `AttrArg`."""

    __module__ = "kompute_py.typing"  # where users find it

    ir_arity = 0
    """The number of buffers or run-time values that the kernels get for it."""
    is_list = False
    """Whether it is a list of tensors."""

    def __init__(self, index: int, parameter: Parameter, value: Any) -> None:
        self.index: int = index
        """The parameter's position in the signature."""
        self.parameter = parameter
        self.v: Any = value
        """The caller's value: a number, a text, a list, or the spec of a tensor."""

    @property
    def name(self) -> str:
        """The parameter's name."""
        return self.parameter.name

    @property
    def maybe_tensor_value(self) -> TensorSpec | None:
        """The shape and dtype of a tensor; None for others."""
        return None

    @property
    def spec_key(self) -> str:
        """Its part in the specialization, as text."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self.spec_key}>"


class TensorArg(ArgDesc):
    """A tensor: its dtype and number of axes specialize the kernels, and the axes that `specialize_dims`
    names. The lengths of the others are values when the kernels run.
    """

    __module__ = "kompute_py.typing"  # where users find it

    ir_arity = 1

    def __init__(self, index: int, parameter: Parameter, spec: TensorSpec, name: str = "") -> None:
        super().__init__(index, parameter, spec)
        self._name = name or parameter.name
        self.t: TensorSpec = spec
        """Its shape and dtype."""
        self.spec_dims: set[int] = set()
        """The axes whose lengths specialize the kernels."""
        self.strides: tuple[int, ...] | None = getattr(spec, "strides", None)
        """For a part of a tensor that is not dense: elements from one to the next on each axis. Operations
        with `reads_parts` get such; others get dense tensors, and None."""
        self.offset: int = getattr(spec, "first", 0)
        """The number of its first element in the memory."""
        self.is_result = False
        """Whether it is a new tensor that the operation makes."""
        self._may_reuse: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its name in the generated source."""
        return self._name

    @property
    def maybe_tensor_value(self) -> TensorSpec | None:
        """Its shape and dtype."""
        return self.t

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes in this call."""
        return self.t.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The elements' dtype."""
        return self.t.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.t.ndim

    @property
    def size(self) -> int:
        """The number of elements in this call."""
        return self.t.size

    def specialize_dims(self, *axes: int) -> TensorArg:
        """Makes the lengths of `axes` part of the specialization: constants in the kernels. Negative axes
        count from the end. Returns itself.

        Raises InvalidArgumentError for an axis that the tensor does not have.
        """
        for axis in axes:
            if type(axis) is not int or not -self.ndim <= axis < self.ndim:
                raise InvalidArgumentError(
                    f"{self.name} has {self.ndim} axes; specialize_dims was given {shown(axis)}"
                )
            self.spec_dims.add(axis % self.ndim)
        return self

    def specialize_all_dims(self) -> TensorArg:
        """Makes the lengths of all axes part of the specialization. Returns itself."""
        self.spec_dims.update(range(self.ndim))
        return self

    def dim(self, axis: int) -> IntOrSize:
        """The length of an axis in the kernels: an int if it is specialized, else a `Size`.

        Raises InvalidArgumentError for an axis that the tensor does not have.
        """
        if not -self.ndim <= axis < self.ndim:
            raise InvalidArgumentError(f"{self.name} has {self.ndim} axes; dim was given {shown(axis)}")
        axis %= self.ndim
        return self.shape[axis] if axis in self.spec_dims else Size.named(f"{self.name}_dim{axis}")

    @property
    def spec_key(self) -> str:
        """Dtype, and for each axis its length or "?"."""
        dims = ",".join(str(n) if i in self.spec_dims else "?" for i, n in enumerate(self.shape))
        return f"{name_of(self.dtype)}[{dims}]"


class TensorListArg(ArgDesc):
    """A list of tensors: its length specializes the kernels, and what specializes each tensor."""

    __module__ = "kompute_py.typing"  # where users find it

    is_list = True

    def __init__(self, index: int, parameter: Parameter, specs: Sequence[TensorSpec]) -> None:
        super().__init__(index, parameter, list(specs))
        self.items: tuple[TensorArg, ...] = tuple(
            TensorArg(index, parameter, spec, f"{parameter.name}{number}")
            for number, spec in enumerate(specs)
        )
        """The tensors, named after the parameter with numbers."""

    @property
    def ir_arity(self) -> int:  # type: ignore[override]
        """The number of tensors."""
        return len(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, position: int) -> TensorArg:
        return self.items[position]

    @property
    def spec_key(self) -> str:
        """The keys of the tensors."""
        return f"({';'.join(item.spec_key for item in self.items)})"


class EmptyOptionalTensorArg(ArgDesc):
    """A ``Tensor?`` that was not given."""

    __module__ = "kompute_py.typing"  # where users find it

    @property
    def spec_key(self) -> str:
        """That it is absent."""
        return "none"


class ValueArg(ArgDesc):
    """A number when the kernels run: a push constant. Its dtype specializes them, its value does not."""

    __module__ = "kompute_py.typing"  # where users find it

    ir_arity = 1

    def __init__(
        self, index: int, parameter: Parameter, value: Any, dtype: np.dtype[Any], weak: str = ""
    ) -> None:
        super().__init__(index, parameter, value)
        self._decides = False
        """Whether `select` looked at the value."""
        self.weak: str = weak
        """For a number without a dtype, such as Python's, which takes that of what it is combined with: its
        kind, "bool", "int", "float" or "complex". "" for a number with a dtype, such as np.float32(2)."""
        self.dtype: np.dtype[Any] = dtype
        """The dtype that it has in the kernels. `cast` changes it."""
        self._least, self._most = _BOUNDS.get(dtype, (0, 0))

    @property
    def glsl_type(self) -> str:
        """Its type in the kernels: that of an element of such a tensor in expressions."""
        return element_of(self.dtype).type

    def cast(self, dtype: DTypeLike) -> ValueArg:
        """Gives it another dtype in the kernels, as NumPy does when it promotes a number; it is not `weak`
        any more. Returns itself.

        Raises InvalidArgumentError if an int is out of the dtype's bounds, or if the dtype is of a lower kind
        (an int for a float, a float for a complex number), UnimplementedError for a dtype that kernels do not
        take, ArgumentTypeError for what is no dtype.
        """
        wanted = to_dtype(dtype)
        element_of(wanted)
        value = self._value
        known = _OF_PYTHON.get(type(value))
        if known is None:
            raise ArgumentTypeError(f"{self.name} is {shown(value)}, which is no number of Python")
        if _RANKS[wanted.kind] < _RANKS[known[0].kind]:
            raise InvalidArgumentError(f"{self.name} is {shown(value)}, which is no {wanted}")
        self._least, self._most = _BOUNDS.get(wanted, (0, 0))
        if wanted.kind in "iu" and not self._least <= value <= self._most:
            raise InvalidArgumentError(f"{self.name} is {shown(value)}, out of bounds for {wanted}")
        self.dtype, self.weak = wanted, ""
        return self

    @property
    def v(self) -> Any:
        """The caller's number. A `select` that looks at it runs again for each other number."""
        self._decides = True
        return self._value

    @v.setter
    def v(self, value: Any) -> None:
        self._value = value

    def _of(self, given: Sequence[Any]) -> Any:
        """Its value in a call with these arguments."""
        return given[self.index]

    def _packed(self, value: Any, how: Struct) -> bytes:
        """A number of this kind and dtype for the kernels.

        Raises struct.error for an int that does not fit: its call chooses another dtype, or raises.
        """
        if isinstance(value, np.generic):
            value = value.item()
        kind = self.dtype.kind
        if kind == "c":
            return how.pack(value.real, value.imag)
        if kind in "iu" and not self._least <= value <= self._most:
            raise StructError(f"{value} is out of bounds for {self.dtype}")
        if kind == "f" and self.dtype.itemsize == 2:
            with np.errstate(over="ignore"):
                value = float(np.float16(value))
        try:
            return how.pack(value)
        except OverflowError:  # of float32, which is infinite there
            return how.pack(math.copysign(math.inf, value))

    @property
    def spec_key(self) -> str:
        """Its kind, and its dtype in the kernels."""
        return f"{self.weak or 'number'}:{name_of(self.dtype)}"


class ComputedArg(ValueArg):
    """A number when the kernels run that each call computes from the numbers of its arguments."""

    __module__ = "kompute_py.typing"  # where users find it

    def __init__(
        self, parameter: Parameter, function: Callable[..., Any], places: list[int], values: Sequence[Any]
    ) -> None:
        self._function, self._places, self.parameter = function, places, parameter
        super().__init__(-1, parameter, self._of(values), _INT)

    def _of(self, given: Sequence[Any]) -> Any:
        number = self._function(*[given[place] for place in self._places])
        if isinstance(number, np.generic):
            number = number.item()
        if type(number) not in _OF_PYTHON:
            raise ArgumentTypeError(f"{self.name} is computed as {kind_of(number)}; compute a number")
        return number


class AttrArg(ArgDesc):
    """A value that decides what the kernels are. It specializes them and is no value in them."""

    __module__ = "kompute_py.typing"  # where users find it

    @property
    def spec_key(self) -> str:
        """The value."""
        return repr(self.v)


class KernelSelection:
    """One call of an operation, as its `select` sees it. Arguments are named by position or by name.

    Each argument must be declared once: as a tensor (`arg_tensor`, `arg_optional_tensor`, `arg_tensor_list`),
    as a number when the kernels run (`arg_int`, `arg_float`), as a tensor or a number, whatever it is
    (`arg_tensor_or_value`), or as an attribute that decides what the
    kernels are (`attr_int`, `attr_float`, `attr_bool`, `attr_str`, `attr_dtype`, `attr_list_int`,
    `attr_list_float`).
    Raises ArgumentTypeError if it is called: operations create it.

    >>> @kp.CustomOp.register
    ... class first(kp.CustomOp):
    ...     signature = "first(Tensor x, int n=1) -> Tensor"
    ...     def select(self, ksel):
    ...         x, n = ksel.arg_tensor("x"), ksel.attr_int("n").v
    ...         ksel.return_new_tensor((n, *x.shape[1:]), x.dtype)
    ...         print(ksel.spec_key)
    >>> first.meta(kp.TensorSpec((5, 2)), 3)
    first(x=float32[?,?],n=3)->float32[?,?]
    kp.TensorSpec((3, 2), 'float32')
    """

    __module__ = "kompute_py"

    def __init__(
        self,
        op: Any,
        declaration: Declaration,
        values: Sequence[Any],
        device: DeviceInfo | None,
        features: frozenset[str] | None = None,
    ) -> None:
        if not isinstance(declaration, Declaration) or not isinstance(values, list):
            raise ArgumentTypeError("A KernelSelection is made by an operation, for its select")
        self.op = op
        """The operation."""
        self.device: DeviceInfo | None = device
        """The device that will run it; None in `meta`, whose results do not depend on a device, and `aot`."""
        self.variant: str = ""
        """Free text that tells several ways to generate the kernels apart, such as "subgroups". Part of
        `spec_key`. If the operation declares `variants`, the one that was chosen."""
        self.arg_descs: list[ArgDesc | None] = [None] * len(values)
        """The declared arguments, in the signature's order; None for those not declared yet."""
        self.inplace_tied_arg_descs: list[TensorArg] = []
        """The arguments that the operation writes, in the order of their declaration."""
        self.results: list[TensorArg] = []
        """The results, in the order of their declaration."""
        self._declaration = declaration
        self._values = values
        self._features = features
        self.notes: dict[str, Any] = {}
        """Notes that `select` leaves for `generate`."""
        self._made = 0
        self._computed: list[ComputedArg] = []
        self._finished: list[TensorArg] | None = None  # what `_tensors` finds, once `select` has ended

    # -- arguments -------------------------------------------------------------------------------------------

    def arg_tensor(self, argument: int | str, *, inplace_tied: bool = False) -> TensorArg:
        """A tensor. With `inplace_tied`, the kernels write it too: its type is ``Tensor(a!)``.

        Raises InvalidArgumentError if the signature says otherwise.
        """
        index, parameter = self._parameter(argument)
        self._expect(parameter, ("Tensor",), "arg_tensor")
        if inplace_tied is not bool(parameter.alias):
            raise InvalidArgumentError(
                f"{self._who()}: the signature says {parameter}, so it is "
                f"{'' if parameter.alias else 'not '}written: arg_tensor({shown(argument)}, "
                f"inplace_tied={bool(parameter.alias)})"
            )
        arg = self._keep(TensorArg(index, parameter, self._values[index]))
        if inplace_tied:
            self.inplace_tied_arg_descs.append(arg)
        return arg

    def arg_optional_tensor(self, argument: int | str) -> TensorArg | None:
        """A tensor of type ``Tensor?``; None if it was not given.

        Raises InvalidArgumentError if the signature says otherwise.
        """
        index, parameter = self._parameter(argument)
        self._expect(parameter, ("Tensor?",), "arg_optional_tensor")
        if self._values[index] is None:
            self._keep(EmptyOptionalTensorArg(index, parameter, None))
            return None
        return self._keep(TensorArg(index, parameter, self._values[index]))

    def arg_tensor_list(self, argument: int | str) -> TensorListArg:
        """Tensors of type ``Tensor[]``. Raises InvalidArgumentError if the signature says otherwise."""
        index, parameter = self._parameter(argument)
        self._expect(parameter, ("Tensor[]",), "arg_tensor_list")
        return self._keep(TensorListArg(index, parameter, self._values[index]))

    def arg_int(self, argument: int | str) -> ValueArg:
        """An int that the kernels get when they run, as an int of 32 bits.

        Raises InvalidArgumentError if the signature says otherwise or the number does not fit.
        """
        index, parameter = self._parameter(argument)
        self._expect(parameter, ("int",), "arg_int")
        value = self._values[index]
        if not -(2**31) <= value < 2**31:
            raise InvalidArgumentError(
                f"{self._who()}: {parameter.name} is {value}; the kernels take ints of 32 bits"
            )
        return self._keep(ValueArg(index, parameter, value, _INT, "int"))

    def arg_float(self, argument: int | str) -> ValueArg:
        """A float that the kernels get when they run, rounded to float32.

        Raises InvalidArgumentError if the signature says otherwise.
        """
        index, parameter = self._parameter(argument)
        self._expect(parameter, ("float",), "arg_float")
        return self._keep(ValueArg(index, parameter, self._values[index], _FLOAT, "float"))

    def arg_tensor_or_value(self, argument: int | str) -> TensorArg | ValueArg:
        """A tensor or a number, of type ``Tensor|Scalar``: a `TensorArg`, or a `ValueArg`, which the kernels
        get when they run.

        A number of NumPy has its dtype. Python's has none: `weak` is its kind, and its `dtype` is the first
        of bool, int32, int64, uint64, float32 and complex64 that fits it, unless `select` says another:
        ``arg.cast(dtype)``. In the kernels it is its name, of the type that elements have in expressions.

        Raises InvalidArgumentError if the signature says otherwise, or for an int that fits no dtype.

        >>> @kp.CustomOp.register
        ... class plus(kp.CustomOp):
        ...     signature = "plus(Tensor x, Tensor|Scalar y) -> Tensor"
        ...     def select(self, ksel):
        ...         x, y = ksel.arg_tensor("x"), ksel.arg_tensor_or_value("y")
        ...         if isinstance(y, kp.typing.ValueArg):
        ...             y.cast(x.dtype)
        ...         ksel.return_new_tensor(x.shape, x.dtype)
        ...     def generate(self, ksel, kb):
        ...         number = isinstance(ksel.arg_descs[1], kp.typing.ValueArg)
        ...         kb.yield_results("x_load(i) + y" if number else "x_load(i) + y_load(i)")
        >>> x = mgr.tensor([1, 2])
        >>> plus(x, 0.5).tolist(), plus(x, x).tolist()
        ([1.5, 2.5], [2.0, 4.0])
        """
        index, parameter = self._parameter(argument)
        self._expect(parameter, ("Tensor|Scalar",), "arg_tensor_or_value")
        value = self._values[index]
        if isinstance(value, TensorSpec):
            return self._keep(TensorArg(index, parameter, value))
        if isinstance(value, np.generic):
            return self._keep(ValueArg(index, parameter, value.item(), value.dtype))
        for dtype in _OF_PYTHON[type(value)]:
            least, most = _BOUNDS.get(dtype, (value, value))
            if dtype.kind not in "iu" or least <= value <= most:
                arg = ValueArg(index, parameter, value, dtype, type(value).__name__)
                arg._decides = dtype.itemsize == 8 and dtype.kind != "c"  # another int may have int32
                return self._keep(arg)
        raise InvalidArgumentError(f"{self._who()}: {parameter.name} is {shown(value)}; no dtype has it")

    def attr_int(self, argument: int | str) -> AttrArg:
        """An int that decides what the kernels are; `v` is its value."""
        return self._attribute(argument, "int", "attr_int")

    def attr_float(self, argument: int | str) -> AttrArg:
        """A float that decides what the kernels are; `v` is its value."""
        return self._attribute(argument, "float", "attr_float")

    def attr_bool(self, argument: int | str) -> AttrArg:
        """A bool that decides what the kernels are; `v` is its value."""
        return self._attribute(argument, "bool", "attr_bool")

    def attr_str(self, argument: int | str) -> AttrArg:
        """A text that decides what the kernels are; `v` is its value."""
        return self._attribute(argument, "str", "attr_str")

    def attr_dtype(self, argument: int | str) -> AttrArg:
        """A dtype that decides what the kernels are; `v` is the np.dtype. For ``dtype?`` it may be None.

        Raises UnimplementedError for bfloat16 and float8 if their package, ml_dtypes, is missing.
        """
        found = self._attribute(argument, ("dtype", "dtype?"), "attr_dtype")
        if found.v is not None:
            found.v = dtype_named(f"{self._who()}: {found.name}", found.v)
        return found

    def attr_list_int(self, argument: int | str) -> AttrArg:
        """A list of ints that decides what the kernels are; `v` is its value. For ``int[]?`` it may be None,
        and callers may give one int for a list of it."""
        return self._attribute(argument, ("int[]", "int[]?"), "attr_list_int")

    def attr_list_float(self, argument: int | str) -> AttrArg:
        """A list of floats that decides what the kernels are; `v` is its value."""
        return self._attribute(argument, "float[]", "attr_list_float")

    def attribute(self, name: str, default: Any = None) -> Any:
        """The value of an attribute that `select` has declared, by the parameter's name: what `generate` asks
        for. `default` if the signature has no attribute of that name.
        """
        attributes = (a for a in self.arg_descs if isinstance(a, AttrArg))
        return next((a.v for a in attributes if a.name == name), default)

    def value(self, name: str, number: Any, dtype: DTypeLike, *, of: Iterable[int | str] = ()) -> ValueArg:
        """A number that `select` computes, as a value when the kernels run: `name` there. Its dtype
        specializes them, its value does not.

        `number` may be a function: with the numbers of the arguments `of`, each call computes its value.

        Raises InvalidArgumentError if the name is taken or is none in GLSL, or if the dtype cannot have the
        number; ArgumentTypeError for a number, a name or `of` of another type, UnimplementedError for a dtype
        that kernels do not take.

        >>> @kp.CustomOp.register
        ... class divided(kp.CustomOp):
        ...     signature = "divided(Tensor x, float by) -> Tensor"
        ...     def select(self, ksel):
        ...         x, by = ksel.arg_tensor("x"), ksel.arg_float("by")
        ...         ksel.value("factor", lambda by: 1 / by, "float32", of=["by"])
        ...         ksel.return_new_tensor(x.shape, x.dtype)
        ...     def generate(self, ksel, kb):
        ...         kb.yield_results("x_load(i) * factor")
        >>> divided(mgr.tensor([1, 2]), 4).tolist()
        [0.25, 0.5]
        """
        if not isinstance(name, str):
            raise ArgumentTypeError(f"The name of a value is a str, not {kind_of(name)}")
        if (
            not (name.isidentifier() and name.isascii())
            or name in GLSL_WORDS
            or name.startswith(("gl_", "_"))
        ):
            raise InvalidArgumentError(f"{self._who()}: {shown(name)} cannot name a value in GLSL")
        declared = self._declaration
        taken = [p.name for p in (*declared.parameters, *declared.results, *self._computed)]
        if name in taken or tensor_of_name(name, [each.name for each in self._tensors()]) is not None:
            raise InvalidArgumentError(f"{self._who()}: {shown(name)} names something else already")
        if isinstance(of, (str, bytes)) or not isinstance(of, Iterable):
            raise ArgumentTypeError(
                f"{self._who()}: of is {kind_of(of)}; give a list of arguments, by name or position"
            )
        places = [self._place(each) for each in of]
        function = number if callable(number) else lambda: number
        made = ComputedArg(Parameter(name, "Tensor|Scalar", "", None, False), function, places, self._values)
        made.cast(dtype)
        self._computed.append(made)
        return made

    # -- results ---------------------------------------------------------------------------------------------

    def return_new_tensor(
        self, shape: int | Iterable[int], dtype: DTypeLike, *, may_reuse: str | Iterable[str] = ()
    ) -> TensorArg:
        """A result that the call makes: its shape in this call, and its dtype.

        The lengths of its axes are values when the kernels run, as for arguments. `may_reuse` names tensor
        arguments that are declared already: if the caller donates one and it has as many bytes, the result
        may have its memory. Name those of which each invocation reads only the bytes that it writes itself,
        before it writes them, and which no later dispatch reads.

        Raises InvalidArgumentError if the signature has no such result, for a negative axis, or if
        `may_reuse` names no such argument; ArgumentTypeError if it has no names.
        """
        position = len(self.results)
        declared = self._declaration.results
        if position >= len(declared) or declared[position].alias:
            self._refuse_result(position)
        name = declared[position].name
        parameter = Parameter(name, "Tensor", "", None, False)
        size = as_shape(shape)
        result = TensorArg(len(self._values) + position, parameter, TensorSpec(size, to_dtype(dtype)))
        result.is_result = True
        result._may_reuse = self._reusable((may_reuse,) if isinstance(may_reuse, str) else may_reuse)
        self.results.append(result)
        return result

    def _reusable(self, names: Any) -> tuple[str, ...]:
        if not isinstance(names, (list, tuple, set, frozenset)) or not all(isinstance(n, str) for n in names):
            raise ArgumentTypeError(f"{self._who()}: may_reuse is a name or names, not {shown(names)}")
        known = [d.name for d in self.arg_descs if isinstance(d, TensorArg) and not d.parameter.alias]
        for name in names:
            if name not in known:
                raise InvalidArgumentError(
                    f"{self._who()}: may_reuse names {shown(name)}{nearest(name, known)} It takes tensor "
                    "arguments that select declared before and that the kernels do not write"
                )
        return tuple(names)

    def return_tensor(self, argument: TensorArg) -> TensorArg:
        """A result that is an argument which the kernels write. Returns `argument`.

        Raises InvalidArgumentError if the signature has no such result.
        """
        position = len(self.results)
        declared = self._declaration.results
        if (
            position >= len(declared)
            or not isinstance(argument, TensorArg)
            or not declared[position].alias
            or declared[position].alias != argument.parameter.alias
        ):
            self._refuse_result(position)
        self.results.append(argument)
        return argument

    def has(self, *features: str) -> bool:
        """Whether the device has all of these features, by Vulkan's names: "shaderInt64",
        "subgroupSizeControl". False in `meta` and `aot`, which have no device.

        Raises ArgumentTypeError unless they are str.
        """
        for feature in features:
            if not isinstance(feature, str):
                raise ArgumentTypeError(f"{self._who()}: a feature is a name, not {shown(feature)}")
        return self._features is not None and self._features.issuperset(features)

    def get_provided_arg_descs(self) -> list[ArgDesc]:
        """The arguments without the tensors that were not given."""
        return [a for a in self.arg_descs if a is not None and not isinstance(a, EmptyOptionalTensorArg)]

    @property
    def spec_key(self) -> str:
        """All that the kernels depend on, as text: the same in every process and run."""
        arguments = ",".join(f"{a.name}={a.spec_key}" for a in self.arg_descs if a is not None)
        results = ",".join(result.spec_key for result in self.results)
        variant = f"/{self.variant}" if self.variant else ""
        computed = "".join(f",{a.name}={a.spec_key}" for a in self._computed)
        return f"{self._declaration.name}({arguments}{computed})->{results}{variant}"

    @property
    def digest(self) -> str:
        """`spec_key` as 16 hexadecimal digits."""
        return hashlib.sha256(self.spec_key.encode()).hexdigest()[:16]

    # -- inside ----------------------------------------------------------------------------------------------

    def _value_args(self) -> list[ValueArg]:
        """The run-time values: arguments, and what `select` computed."""
        return [*(each for each in self.arg_descs if isinstance(each, ValueArg)), *self._computed]

    def _who(self) -> str:
        return self._declaration.name

    def _parameter(self, argument: int | str) -> tuple[int, Parameter]:
        """An argument that is not declared yet."""
        index = self._place(argument)
        parameter = self._declaration.parameters[index]
        if self.arg_descs[index] is not None:
            raise FailedPreconditionError(
                f"{self._who()}: select declares the argument {parameter.name!r} twice"
            )
        return index, parameter

    def _place(self, argument: int | str) -> int:
        parameters = self._declaration.parameters
        if isinstance(argument, str):
            names = [each.name for each in parameters]
            if argument not in names:
                raise InvalidArgumentError(
                    f"{self._who()} has no parameter {shown(argument)}{nearest(argument, names)}"
                )
            return names.index(argument)
        if type(argument) is int and 0 <= argument < len(parameters):
            return argument
        if type(argument) is int:
            raise InvalidArgumentError(
                f"{self._who()} has {len(parameters)} parameters; select asked for number {shown(argument)}"
            )
        raise ArgumentTypeError(
            f"{self._who()}: an argument is named by its position or name, not by {shown(argument)}"
        )

    def _expect(self, parameter: Parameter, types: tuple[str, ...], call: str) -> None:
        if parameter.type not in types:
            raise InvalidArgumentError(
                f"{self._who()}: the signature says {parameter}, and {call} is for {' or '.join(types)}"
            )

    def _attribute(self, argument: int | str, kind: str | tuple[str, ...], call: str) -> AttrArg:
        index, parameter = self._parameter(argument)
        self._expect(parameter, (kind,) if isinstance(kind, str) else kind, call)
        return self._keep(AttrArg(index, parameter, self._values[index]))

    def _keep(self, desc: _Arg) -> _Arg:
        self.arg_descs[desc.index] = desc
        return desc

    def _refuse_result(self, position: int) -> None:
        declared = self._declaration.results
        if position >= len(declared):
            raise InvalidArgumentError(
                f"{self._who()}: select declares {position + 1} results; the signature has {len(declared)}"
            )
        expected = declared[position]
        way = (
            f"return_tensor(...) of the argument {expected.name!r}"
            if expected.alias
            else "return_new_tensor(shape, dtype)"
        )
        raise InvalidArgumentError(
            f"{self._who()}: by the signature, result {position} ({expected.name!r}) is declared by {way}"
        )

    def _decisive(self) -> set[int]:
        """The places of the numbers that `select` looked at: the others may differ between its calls."""
        return {
            desc.index
            for desc in self.arg_descs
            if isinstance(desc, AttrArg) or (isinstance(desc, ValueArg) and desc._decides)
        }

    def _finish(self) -> None:
        """Raises InvalidArgumentError if `select` left out an argument or a result."""
        for parameter, desc in zip(self._declaration.parameters, self.arg_descs, strict=True):
            if desc is None:
                kind = parameter.type.rstrip("[]?").lower()
                call = (
                    {
                        "Tensor?": "arg_optional_tensor",
                        "Tensor[]": "arg_tensor_list",
                        "Tensor|Scalar": "arg_tensor_or_value",
                    }.get(parameter.type, "arg_tensor")
                    if parameter.is_tensor
                    else f"attr_list_{kind}"
                    if "[]" in parameter.type
                    else f"attr_{kind}"
                )
                raise InvalidArgumentError(
                    f"{self._who()}: select does not declare the argument {parameter.name!r}: "
                    f"ksel.{call}({parameter.name!r})"
                )
        if len(self.results) < len(self._declaration.results):
            missing = self._declaration.results[len(self.results)]
            raise InvalidArgumentError(
                f"{self._who()}: select does not declare the result {missing.name!r}: "
                f"{'ksel.return_tensor(arg)' if missing.alias else 'ksel.return_new_tensor(shape, dtype)'}"
            )
        self._finished = self._tensors()

    def _tensors(self) -> list[TensorArg]:
        """The tensors that the kernels may use: arguments, then new results."""
        if self._finished is not None:
            return self._finished
        found: list[TensorArg] = []
        for desc in self.arg_descs:
            if isinstance(desc, TensorArg):
                found.append(desc)
            elif isinstance(desc, TensorListArg):
                found.extend(desc.items)
        return [*found, *(result for result in self.results if result.is_result)]

    def _numbers(self) -> Mapping[str, int]:
        """The lengths of all axes and the run-time ints, by their names in the kernels."""
        numbers: dict[str, int] = {}
        for tensor in self._tensors():
            numbers[f"{tensor.name}_size"] = math.prod(tensor.shape)
            for axis, length in enumerate(tensor.shape):
                numbers[f"{tensor.name}_dim{axis}"] = length
        for desc in self.arg_descs:
            if isinstance(desc, ValueArg) and desc.dtype.kind in "iu":
                numbers[desc.name] = desc._value
        for each in self._computed:
            if each.dtype.kind in "iu" and not each._places:  # shapes decide it
                numbers[each.name] = each._value
        return numbers
