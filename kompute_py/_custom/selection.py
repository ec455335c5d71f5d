"""FunctionSelection: what an operation decides about a call before its kernels are generated.

`select` of an operation says for each argument whether it specializes the kernels or is a value when they
run, and what the results are. Two calls with the same `spec_key` run the same kernels.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .._base.arrays import as_shape, to_dtype
from .._base.errors import (
    ArgumentTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    NumberRangeError,
    UnimplementedError,
    kind_of,
    shown,
)
from .._base.plain_arguments import as_list
from .._base.text import nearest
from .._base.types import dtype_text
from .._formulas.glsl_elements import need_of
from .._formulas.words import GLSL_WORDS
from .arg_descs import (
    BOUNDS,
    INT,
    OF_PYTHON,
    ArgDesc,
    AttrArg,
    ComputedArg,
    EmptyOptionalTensorArg,
    TensorArg,
    TensorListArg,
    ValueArg,
)
from .arguments import dtype_named
from .declaration import Declaration, Parameter
from .names import tensor_of_name
from .special import in_full, known, refuse_others, refuse_untold
from .specs import TensorSpec

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from .._device.names import DeviceInfo

_Arg = TypeVar("_Arg", bound="ArgDesc")
_FLOAT = np.dtype(np.float32)


def refuse_structs(name: str, desc: ArgDesc) -> None:
    """Raises UnimplementedError for structs, in a tensor or one alone, which are not numbers."""
    if isinstance(desc, (TensorArg, ValueArg)) and desc.dtype.names:
        field, word = desc.dtype.names[0], "uint8" if desc.dtype.itemsize % 4 else "uint32"
        raise UnimplementedError(
            f"{name}: {desc.name} is of the dtype {dtype_text(desc.dtype)}, and it takes numbers. Give it a "
            f"field, {desc.name}[{field!r}]; or, if structs are only moved, their words: "
            f"{desc.name}.view({word!r}).reshape(*{desc.name}.shape, -1)"
        )


class FunctionSelection:
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
            raise ArgumentTypeError("A FunctionSelection is made by an operation, for its select")
        self.op = op
        """The operation."""
        self.device: DeviceInfo | None = device
        """The device that will run it; None in `meta`, whose results do not depend on a device, and in
        portable programs."""
        self.features: frozenset[str] | None = features
        """The features of the device, by Vulkan's names; None in `meta`. `has` asks for some."""
        self.arg_descs: list[ArgDesc | None] = [None] * len(values)
        """The declared arguments, in the signature's order; None for those not declared yet."""
        self.inplace_tied_arg_descs: list[TensorArg] = []
        """The arguments that the operation writes, in the order of their declaration."""
        self.results: list[TensorArg] = []
        """The results, in the order of their declaration."""
        self._declaration = declaration
        self._given = values
        self._variant = ""
        self._special: dict[str, Any] = {}
        self._computed: list[ComputedArg] = []
        self._finished: list[TensorArg] | None = None  # what `tensors` finds, once `select` has ended
        self._finished_values: list[ValueArg] | None = None  # and what `values` does
        known(self)

    @property
    def name(self) -> str:
        """The operation's name, with which its errors begin."""
        return self._declaration.name

    @property
    def variant(self) -> str:
        """The one of the operation's `variants` that was chosen; "" if it declares none."""
        return self._variant

    # -- arguments -------------------------------------------------------------------------------------------

    def arg_tensor(self, argument: int | str, *, inplace_tied: bool = False) -> TensorArg:
        """A tensor. With `inplace_tied`, the kernels write it too: its type is ``Tensor(a!)``.

        Raises InvalidArgumentError if the signature says otherwise.
        """
        index, parameter = self._parameter(argument)
        self._expect(parameter, ("Tensor",), "arg_tensor")
        if inplace_tied is not bool(parameter.alias):
            raise InvalidArgumentError(
                f"{self.name}: the signature says {parameter}, so it is "
                f"{'' if parameter.alias else 'not '}written: arg_tensor({shown(argument)}, "
                f"inplace_tied={bool(parameter.alias)})"
            )
        arg = self._keep(TensorArg(index, parameter, self._given[index]))
        if inplace_tied:
            self.inplace_tied_arg_descs.append(arg)
        return arg

    def arg_optional_tensor(self, argument: int | str) -> TensorArg | None:
        """A tensor of type ``Tensor?``; None if it was not given.

        Raises InvalidArgumentError if the signature says otherwise.
        """
        index, parameter = self._parameter(argument)
        self._expect(parameter, ("Tensor?",), "arg_optional_tensor")
        if self._given[index] is None:
            self._keep(EmptyOptionalTensorArg(index, parameter, None))
            return None
        return self._keep(TensorArg(index, parameter, self._given[index]))

    def arg_tensor_list(self, argument: int | str) -> TensorListArg:
        """Tensors of type ``Tensor[]``. Raises InvalidArgumentError if the signature says otherwise."""
        index, parameter = self._parameter(argument)
        self._expect(parameter, ("Tensor[]",), "arg_tensor_list")
        return self._keep(TensorListArg(index, parameter, self._given[index]))

    def arg_int(self, argument: int | str) -> ValueArg:
        """An int that the kernels get when they run, as an int of 32 bits.

        Raises InvalidArgumentError if the signature says otherwise or the number does not fit.
        """
        index, parameter = self._parameter(argument)
        self._expect(parameter, ("int",), "arg_int")
        value = self._given[index]
        if not -(2**31) <= value < 2**31:
            raise InvalidArgumentError(
                f"{self.name}: {parameter.name} is {shown(value)}; the kernels take ints of 32 bits"
            )
        return self._keep(ValueArg(index, parameter, value, INT, "int"))

    def arg_float(self, argument: int | str) -> ValueArg:
        """A float that the kernels get when they run, rounded to float32.

        Raises InvalidArgumentError if the signature says otherwise.
        """
        index, parameter = self._parameter(argument)
        self._expect(parameter, ("float",), "arg_float")
        return self._keep(ValueArg(index, parameter, self._given[index], _FLOAT, "float"))

    def arg_tensor_or_value(self, argument: int | str) -> TensorArg | ValueArg:
        """A tensor or a number, of type ``Tensor|Scalar``: a `TensorArg`, or a `ValueArg`, which the kernels
        get when they run. For ``Tensor|Scalar?`` use `arg_optional_tensor_or_value`.

        A number of NumPy has its dtype. Python's has none: `weak` is its kind, and its `dtype` is the first
        of bool, int32, int64, uint64, float32 and complex64 that fits it, unless `select` says another:
        ``arg.cast(dtype)``. In the kernels it is its name, of the type that elements have in expressions.

        Raises InvalidArgumentError if the signature says otherwise, NumberRangeError for an int that fits no
        dtype.

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
        return self._tensor_or_value(index, parameter)

    def arg_optional_tensor_or_value(self, argument: int | str) -> TensorArg | ValueArg | None:
        """As `arg_tensor_or_value`, of type ``Tensor|Scalar?``; None if it was not given.

        Raises InvalidArgumentError if the signature says otherwise, NumberRangeError for an int that fits no
        dtype.
        """
        index, parameter = self._parameter(argument)
        self._expect(parameter, ("Tensor|Scalar?",), "arg_optional_tensor_or_value")
        if self._given[index] is None:
            self._keep(EmptyOptionalTensorArg(index, parameter, None))
            return None
        return self._tensor_or_value(index, parameter)

    def _tensor_or_value(
        self, index: int, parameter: Parameter, any_int: bool = False
    ) -> TensorArg | ValueArg:
        value = self._given[index]
        if isinstance(value, TensorSpec):
            return self._keep(TensorArg(index, parameter, value))
        if isinstance(value, np.generic):
            return self._keep(ValueArg(index, parameter, value.item(), value.dtype))
        for dtype in OF_PYTHON[type(value)]:
            least, most = BOUNDS.get(dtype, (value, value))
            if dtype.kind not in "iu" or least <= value <= most:
                arg = ValueArg(index, parameter, value, dtype, type(value).__name__)
                arg._decides = dtype.itemsize == 8 and dtype.kind != "c"  # another int may have int32
                return self._keep(arg)
        if any_int:
            arg = ValueArg(index, parameter, value, _FLOAT, "int")
            arg._decides = True
            return self._keep(arg)
        raise NumberRangeError(f"{self.name}: {parameter.name} is {shown(value)}; no dtype has it")

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
            found.v = dtype_named(f"{self.name}: {found.name}", found.v)
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
        for. `default` if the signature has no attribute of that name. Raises ArgumentTypeError unless the
        name is a str.
        """
        if not isinstance(name, str):
            raise ArgumentTypeError(f"{self.name}: an attribute is named by a str, not by {kind_of(name)}")
        attributes = (a for a in self.arg_descs if isinstance(a, AttrArg))
        return next((a.v for a in attributes if a.name == name), default)

    def value(self, name: str, number: Any, dtype: DTypeLike, *, of: Iterable[int | str] = ()) -> ValueArg:
        """A number that `select` computes, as a value when the kernels run: `name` there. Its dtype
        specializes them, its value does not.

        `number` may be a function: with the numbers of the arguments `of`, each call computes its value.

        Raises InvalidArgumentError if the name is taken or invalid in GLSL, or if the dtype cannot have the
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
            raise InvalidArgumentError(f"{self.name}: {shown(name)} cannot name a value in GLSL")
        declared = self._declaration
        taken = [p.name for p in declared.parameters] + [r.name for r in declared.results]
        taken += [each.name for each in self._computed]
        if name in taken or tensor_of_name(name, [each.name for each in self.tensors]) is not None:
            raise InvalidArgumentError(f"{self.name}: {shown(name)} names something else already")
        listed = as_list(of, f"{self.name}: of", "a list of arguments, by name or position")
        places = [self._place(each) for each in listed]
        function = number if callable(number) else lambda: number
        made = ComputedArg(Parameter(name, "Tensor|Scalar", "", None, False), function, places, self._given)
        made._fixed = not callable(number)
        try:
            made.cast(dtype)
        except NumberRangeError:
            if not name.startswith("kp_"):  # a name that the library gives, and users do not know
                raise
            raise InvalidArgumentError(
                f"{self.name}: kernels count with 32 bits, and this takes counts up to {shown(number)}: "
                "compute it in parts"
            ) from None
        self._computed.append(known(made))
        return made

    def is_given(self, argument: int | str) -> bool:
        """Whether the call has a value for an argument: not None. Raises InvalidArgumentError for an unknown
        one, ArgumentTypeError unless it is named by a str or an int.
        """
        return self._given[self._place(argument)] is not None

    def spec_of(self, argument: int | str) -> TensorSpec | None:
        """The shape and dtype of a tensor, or of a number of NumPy, before it is declared; None for others.

        Raises InvalidArgumentError for an unknown argument, ArgumentTypeError unless it is named by a str or
        an int.
        """
        value = self._given[self._place(argument)]
        if isinstance(value, np.generic):
            return TensorSpec((), value.dtype)
        return value if isinstance(value, TensorSpec) else None

    def specialize(self, **values: Any) -> None:
        """Makes values part of the specialization: `generate` reads them in `special`. Calls for which they
        differ have kernels of their own.

        They are numbers, texts, arrays, dtypes, lists, tuples, dicts, dataclasses, and objects with a
        ``__repr__`` of their own. Another value of a name replaces the one before. Raises ArgumentTypeError
        for masked arrays, tensors and images.

        >>> @kp.CustomOp.register
        ... class columns(kp.CustomOp):
        ...     signature = "columns(Tensor x) -> Tensor"
        ...     def select(self, ksel):
        ...         x = ksel.arg_tensor("x")
        ...         ksel.specialize(even=x.shape[-1] % 2 == 0)
        ...         ksel.return_new_tensor(x.shape, x.dtype)
        ...     def generate(self, ksel, kb):
        ...         kb.yield_results("x_load(i)" if ksel.special["even"] else "-x_load(i)")
        >>> columns(mgr.tensor([1, 2])).tolist(), columns(mgr.tensor([1, 2, 3])).tolist()
        ([1.0, 2.0], [-1.0, -2.0, -3.0])
        """
        for value in values.values():
            refuse_untold(value)
        self._special.update(values)

    @property
    def special(self) -> Mapping[str, Any]:
        """What `select` has given to `specialize`, by name. It cannot be changed."""
        return MappingProxyType(self._special)

    @property
    def values(self) -> list[ValueArg]:
        """The numbers when the kernels run: arguments, and what `value` has made."""
        if self._finished_values is not None:
            return self._finished_values
        return [each for each in self.arg_descs if isinstance(each, ValueArg)] + self._computed

    @property
    def tensors(self) -> list[TensorArg]:
        """The tensors that the kernels may use: arguments, with those of lists, then new results."""
        if self._finished is not None:
            return self._finished
        found: list[TensorArg] = []
        for desc in self.arg_descs:
            if isinstance(desc, TensorArg):
                found.append(desc)
            elif isinstance(desc, TensorListArg):
                found.extend(desc.items)
        return [*found, *(result for result in self.results if result.is_result)]

    # -- results ---------------------------------------------------------------------------------------------

    def return_new_tensor(
        self, shape: int | Iterable[int], dtype: DTypeLike, *, may_reuse: str | Iterable[str] = ()
    ) -> TensorArg:
        """A result that the call makes: its shape in this call, and its dtype.

        The lengths of its axes are values when the kernels run, as for arguments. `may_reuse` names tensor
        arguments that are declared already: if the caller donates one and it has as many bytes, the result
        may have its memory. Name an argument only if each invocation reads just the bytes that it writes
        itself, before it writes them, and no later dispatch reads it.

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
        result = TensorArg(len(self._given) + position, parameter, TensorSpec(size, to_dtype(dtype)))
        result.is_result = True
        result._may_reuse = self._reusable((may_reuse,) if isinstance(may_reuse, str) else may_reuse)
        self.results.append(known(result))
        return result

    def _reusable(self, names: Any) -> tuple[str, ...]:
        if type(names) is tuple and not names:
            return names
        if not isinstance(names, (list, tuple, set, frozenset)) or not all(isinstance(n, str) for n in names):
            raise ArgumentTypeError(f"{self.name}: may_reuse is a name or names, not {shown(names)}")
        known = [d.name for d in self.arg_descs if isinstance(d, TensorArg) and not d.parameter.alias]
        for name in names:
            if name not in known:
                raise InvalidArgumentError(
                    f"{self.name}: may_reuse names {shown(name)}{nearest(name, known)} It takes tensor "
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
        "subgroupSizeControl". False in `meta`, which has no device; in portable programs, true for those
        without which no device has the arguments' dtypes.

        Raises ArgumentTypeError unless they are str.
        """
        for feature in features:
            if not isinstance(feature, str):
                raise ArgumentTypeError(f"{self.name}: a feature is a name, not {shown(feature)}")
        return self.features is not None and self.features.issuperset(features)

    def may_have(self, feature: str) -> bool:
        """As `has`, but true in `meta`: its results are those of devices with all features."""
        return self.features is None or self.has(feature)

    def require(self, dtype: DTypeLike, what: str, advice: str = "convert to {}") -> None:
        """Raises UnimplementedError if the device does not have `dtype` in kernels: "`what` float64, which
        this device does not have (shaderFloat64); `advice`", with a dtype that it has for ``{}``. Raises
        ArgumentTypeError for words that are not a str.
        """
        for words in (what, advice):
            if not isinstance(words, str):
                raise ArgumentTypeError(f"{self.name}: require takes words as a str, not {kind_of(words)}")
        need = need_of(to_dtype(dtype))
        if need is not None and self.device is not None and not self.has(need.feature):
            raise UnimplementedError(
                f"{self.name}: {what} {dtype}, which this device does not have ({need.feature}); "
                + advice.format(need.instead)
            )

    def get_provided_arg_descs(self) -> list[ArgDesc]:
        """The arguments without the tensors that were not given."""
        return [a for a in self.arg_descs if a is not None and not isinstance(a, EmptyOptionalTensorArg)]

    @property
    def spec_key(self) -> str:
        """All that the kernels depend on, as text: the same in every process and run."""
        arguments = ",".join([f"{a.name}={a.spec_key}" for a in self.arg_descs if a is not None])
        results = ",".join([result.spec_key for result in self.results])
        variant = f"/{self.variant}" if self.variant else ""
        computed = "".join([f",{a.name}={a.spec_key}" for a in self._computed])
        special = f"{{{in_full(self._special)}}}" if self._special else ""
        return f"{self.name}({arguments}{computed})->{results}{variant}{special}"

    @property
    def digest(self) -> str:
        """`spec_key` as 16 hexadecimal digits."""
        return hashlib.sha256(self.spec_key.encode()).hexdigest()[:16]

    # -- inside ----------------------------------------------------------------------------------------------

    def _parameter(self, argument: int | str) -> tuple[int, Parameter]:
        """An argument that is not declared yet."""
        index = self._place(argument)
        parameter = self._declaration.parameters[index]
        if self.arg_descs[index] is not None:
            raise FailedPreconditionError(
                f"{self.name}: select declares the argument {parameter.name!r} twice"
            )
        return index, parameter

    def _place(self, argument: int | str) -> int:
        parameters = self._declaration.parameters
        if isinstance(argument, str):
            for index, each in enumerate(parameters):
                if each.name == argument:
                    return index
            names = [each.name for each in parameters]
            raise InvalidArgumentError(
                f"{self.name} has no parameter {shown(argument)}{nearest(argument, names)}"
            )
        if type(argument) is int and 0 <= argument < len(parameters):
            return argument
        if type(argument) is int:
            raise InvalidArgumentError(
                f"{self.name} has {len(parameters)} parameters; select asked for number {shown(argument)}"
            )
        raise ArgumentTypeError(
            f"{self.name}: an argument is named by its position or name, not by {shown(argument)}"
        )

    def _expect(self, parameter: Parameter, types: tuple[str, ...], call: str) -> None:
        if parameter.type not in types:
            raise InvalidArgumentError(
                f"{self.name}: the signature says {parameter}, and {call} is for {' or '.join(types)}"
            )

    def _attribute(self, argument: int | str, kind: str | tuple[str, ...], call: str) -> AttrArg:
        index, parameter = self._parameter(argument)
        self._expect(parameter, (kind,) if isinstance(kind, str) else kind, call)
        return self._keep(AttrArg(index, parameter, self._given[index]))

    def _keep(self, desc: _Arg) -> _Arg:
        if not self.op.takes_structs:
            for each in getattr(desc, "items", (desc,)):
                refuse_structs(self.name, each)
        self.arg_descs[desc.index] = desc
        return known(desc)

    def _refuse_result(self, position: int) -> None:
        declared = self._declaration.results
        if position >= len(declared):
            raise InvalidArgumentError(
                f"{self.name}: select declares {position + 1} results; the signature has {len(declared)}"
            )
        expected = declared[position]
        way = (
            f"return_tensor(...) of the argument {expected.name!r}"
            if expected.alias
            else "return_new_tensor(shape, dtype)"
        )
        raise InvalidArgumentError(
            f"{self.name}: by the signature, result {position} ({expected.name!r}) is declared by {way}"
        )

    def _guard(self, generating: bool) -> None:
        """While `generate` writes kernels, what differs between the calls that they serve is out of reach."""
        for tensor in self.tensors:
            tensor._generating = generating
        for value in self.values:
            value._generating = generating

    def _decisive(self) -> set[int]:
        """The places of the numbers that `select` looked at: the others may differ between its calls."""
        places = [
            [desc.index]
            for desc in self.arg_descs
            if isinstance(desc, AttrArg) or (isinstance(desc, ValueArg) and desc._decides)
        ]
        places += [each._places for each in self._computed if each._decides]
        return {place for each in places for place in each}

    def _finish(self) -> None:
        """Raises InvalidArgumentError if `select` left out an argument or a result, or added attributes."""
        for parameter, desc in zip(self._declaration.parameters, self.arg_descs, strict=True):
            if desc is None:
                kind = parameter.type.rstrip("[]?").lower()
                call = (
                    {
                        "Tensor?": "arg_optional_tensor",
                        "Tensor[]": "arg_tensor_list",
                        "Tensor|Scalar": "arg_tensor_or_value",
                        "Tensor|Scalar?": "arg_optional_tensor_or_value",
                    }.get(parameter.type, "arg_tensor")
                    if parameter.is_tensor
                    else f"attr_list_{kind}"
                    if "[]" in parameter.type
                    else f"attr_{kind}"
                )
                raise InvalidArgumentError(
                    f"{self.name}: select does not declare the argument {parameter.name!r}: "
                    f"ksel.{call}({parameter.name!r})"
                )
        if len(self.results) < len(self._declaration.results):
            missing = self._declaration.results[len(self.results)]
            raise InvalidArgumentError(
                f"{self.name}: select does not declare the result {missing.name!r}: "
                f"{'ksel.return_tensor(arg)' if missing.alias else 'ksel.return_new_tensor(shape, dtype)'}"
            )
        for each in (self, *self.arg_descs, *self.results, *self._computed):
            refuse_others(self.name, each)
        self._finished = self.tensors
        self._finished_values = self.values

    def _writes_nothing(self) -> bool:
        """Whether all that the kernels write is empty: new results and arguments."""
        written = (*self.results, *self.inplace_tied_arg_descs)
        return bool(written) and not any(each.size for each in written)

    def _numbers(self) -> Mapping[str, int]:
        """The lengths of all axes and the run-time ints, by their names in the kernels."""
        numbers: dict[str, int] = {}
        for tensor in self.tensors:
            name, shape = tensor._name, tensor._spec.shape
            numbers[f"{name}_size"] = math.prod(shape)
            for axis, length in enumerate(shape):
                numbers[f"{name}_dim{axis}"] = length
        for desc in self.arg_descs:
            if isinstance(desc, ValueArg) and desc.dtype.kind in "iu":
                numbers[desc.name] = desc._value
        for each in self._computed:
            if each.dtype.kind in "iu" and not each._places:  # shapes decide it
                numbers[each.name] = each._value
        return numbers


KernelSelection = FunctionSelection
"""The older name."""
