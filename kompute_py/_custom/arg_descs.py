"""The arguments as `select` of an operation declared them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from struct import Struct
from struct import error as StructError
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from .._base.arrays import to_dtype
from .._base.errors import (
    ArgumentTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    NumberRangeError,
    kind_of,
    shown,
)
from .._formulas.glsl_elements import element_of, name_of
from .declaration import Parameter
from .expressions import IntOrSize, Size
from .names import text_of
from .specs import TensorSpec

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

INT = np.dtype(np.int32)
OF_PYTHON: dict[type, tuple[np.dtype[Any], ...]] = {
    bool: (np.dtype(np.bool_),),
    int: (INT, np.dtype(np.int64), np.dtype(np.uint64)),
    float: (np.dtype(np.float32),),
    complex: (np.dtype(np.complex64),),
}
"""The dtypes that a number of Python may have in the kernels."""
BOUNDS = {
    np.dtype(each): (int(np.iinfo(each).min), int(np.iinfo(each).max))
    for each in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
}
RANKS = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}  # of the kinds of dtypes


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
        self._generating = False  # while kernels are written, which serve other calls, too
        super().__init__(index, parameter, spec)
        self._name = name or parameter.name
        self.spec_dims: set[int] = set()
        """The axes with lengths that specialize the kernels."""
        self._strides: tuple[int, ...] | None = getattr(spec, "strides", None)
        self._offset: int = getattr(spec, "first", 0)
        self.is_result = False
        """Whether it is a new tensor that the operation makes."""
        self._may_reuse: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self._name

    @property
    def v(self) -> Any:  # type: ignore[override]
        """As `t`."""
        return self.t

    @v.setter
    def v(self, value: TensorSpec) -> None:
        self._spec: TensorSpec = value

    @property
    def t(self) -> TensorSpec:
        """Its shape and dtype.

        Raises FailedPreconditionError in `generate` unless all axes are specialized.
        """
        if self._generating and len(self.spec_dims) < self.ndim:
            self._refuse("shape", f"kb.arg_value({self.name!r}).shape")
        return self._spec

    @property
    def maybe_tensor_value(self) -> TensorSpec | None:
        return self.t

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes in this call. In `generate`, those that are not specialized are sizes, as
        in ``kb.arg_value(...).shape``."""
        if self._generating:
            return self._dims()  # type: ignore[return-value]
        return self._spec.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The elements' dtype."""
        return self._spec.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._spec.ndim

    @property
    def size(self) -> int:
        """The number of elements in this call. In `generate`, a size unless all axes are specialized."""
        if self._generating and len(self.spec_dims) < self.ndim:
            return Size.named(f"{self.name}_size")  # type: ignore[return-value]
        return self._spec.size

    @property
    def is_part(self) -> bool:
        """Whether it is a part of a tensor that is not dense, which is a part of the specialization.
        Operations with `reads_parts` get such; others get dense tensors."""
        return self._strides is not None

    @property
    def strides(self) -> tuple[int, ...] | None:
        """For a part of a tensor that is not dense: elements from one to the next on each axis; else None.

        Raises FailedPreconditionError in `generate`, which writes kernels for other parts, too: `select`
        reads them, and passes them on by ``ksel.value``.
        """
        if self._generating and self._strides is not None:
            self._refuse("strides", 'ksel.value("step", arg.strides[0], "uint32") in select')
        return self._strides

    @property
    def offset(self) -> int:
        """The number of its first element in the memory. Raises as `strides`."""
        if self._generating and self._strides is not None:
            self._refuse("offset", 'ksel.value("first", arg.offset, "uint32") in select')
        return self._offset

    def _refuse(self, what: str, instead: str) -> NoReturn:
        raise FailedPreconditionError(
            f"The {what} of {self.name} is that of one call, and generate writes kernels for others, too: "
            f"use {instead}"
        )

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
        return self._dims()[axis]

    def _dims(self) -> tuple[IntOrSize, ...]:
        """`dim` of all axes."""
        name, fixed = self._name, self.spec_dims
        return tuple(
            [
                length if axis in fixed else Size.named(f"{name}_dim{axis}")
                for axis, length in enumerate(self._spec.shape)
            ]
        )

    @property
    def spec_key(self) -> str:
        """Dtype, and for each axis its length or "?"."""
        fixed = self.spec_dims
        dims = ",".join([str(n) if i in fixed else "?" for i, n in enumerate(self._spec.shape)])
        return f"{name_of(self.dtype)}[{dims}]{'' if self._strides is None else 'part'}"


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
        return len(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, position: int) -> TensorArg:
        return self.items[position]

    @property
    def spec_key(self) -> str:
        return f"({';'.join(item.spec_key for item in self.items)})"


class EmptyOptionalTensorArg(ArgDesc):
    """A ``Tensor?`` that was not given."""

    __module__ = "kompute_py.typing"  # where users find it

    @property
    def spec_key(self) -> str:
        return "none"


class ValueArg(ArgDesc):
    """A number when the kernels run: a push constant. Its dtype specializes them, its value does not."""

    __module__ = "kompute_py.typing"  # where users find it

    ir_arity = 1

    def __init__(
        self, index: int, parameter: Parameter, value: Any, dtype: np.dtype[Any], weak: str = ""
    ) -> None:
        super().__init__(index, parameter, value)
        self._generating = False
        self._decides = False
        """Whether `select` looked at the value."""
        self._fixed = False
        """Whether a prepared call has one number: that of `select`."""
        self.weak: str = weak
        """For a number without a dtype, such as Python's, which takes that of what it is combined with: its
        kind, "bool", "int", "float" or "complex". "" for a number with a dtype, such as np.float32(2)."""
        self.dtype: np.dtype[Any] = dtype
        """The dtype that it has in the kernels. `cast` changes it."""
        self._least, self._most = BOUNDS.get(dtype, (0, 0))

    @property
    def glsl_type(self) -> str:
        """Its type in the kernels: that of an element of such a tensor in expressions."""
        return element_of(self.dtype).type

    def cast(self, dtype: DTypeLike) -> ValueArg:
        """Gives it another dtype in the kernels, as NumPy does when it promotes a number; it is not `weak`
        any more. Returns itself.

        Raises NumberRangeError if an int is out of the dtype's bounds, InvalidArgumentError if the dtype is
        of a lower kind (an int for a float, a float for a complex number), UnimplementedError for a dtype
        that kernels do not take, ArgumentTypeError if it is not a dtype.
        """
        wanted = to_dtype(dtype)
        element_of(wanted)
        value = self._value
        known = OF_PYTHON.get(type(value))
        if known is None:
            raise ArgumentTypeError(f"{self.name} is {shown(value)}, which is not a Python number")
        if RANKS[wanted.kind] < RANKS[known[0].kind]:
            raise InvalidArgumentError(f"{self.name} is {shown(value)}, which is no {wanted}")
        self._least, self._most = BOUNDS.get(wanted, (0, 0))
        if wanted.kind in "iu" and not self._least <= value <= self._most:
            raise NumberRangeError(f"{self.name} is {shown(value)}, out of bounds for {wanted}")
        self.dtype, self.weak = wanted, ""
        return self

    @property
    def v(self) -> Any:
        """The caller's number. A `select` that looks at it runs again for each other number.

        Raises FailedPreconditionError in `generate`, which writes kernels for other numbers, too.
        """
        if self._generating:
            raise FailedPreconditionError(
                f"{self.name} is a number when the kernels run, and generate writes kernels for others, too: "
                f"write {self.name!r} in GLSL, or declare an attribute, attr_..., in select"
            )
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
            with np.errstate(over="ignore"):  # infinite if float32 has no such number
                number = self.dtype.type(value)
            return how.pack(float(number.real), float(number.imag))
        if kind in "iu" and not self._least <= value <= self._most:
            raise StructError(f"{value} is out of bounds for {self.dtype}")
        if kind == "f" and self.dtype.itemsize == 2:
            with np.errstate(over="ignore"):
                value = float(np.float16(value))
        try:
            return how.pack(float(value) if kind == "f" else value)
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
        self._function, self._places = function, places
        self.parameter: Parameter = parameter
        super().__init__(-1, parameter, self._of(values), INT)

    def _of(self, given: Sequence[Any]) -> Any:
        number = self._function(*[given[place] for place in self._places])
        if isinstance(number, np.generic):
            number = number.item()
        if type(number) not in OF_PYTHON:
            raise ArgumentTypeError(f"{self.name} is computed as {kind_of(number)}; compute a number")
        return number


class AttrArg(ArgDesc):
    """A value that decides what the kernels are. It specializes them; they cannot read it."""

    __module__ = "kompute_py.typing"  # where users find it

    @property
    def spec_key(self) -> str:
        return text_of(self.v)
