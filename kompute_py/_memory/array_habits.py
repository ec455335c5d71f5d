"""The operators and attributes of arrays on tensors and images.

An object's contents are on the device. Conversions to Python's numbers and lists, and to arrays (``int(t)``,
``t.tolist()``, ``t.astype(...)``) read them, as ``np.asarray(t)`` does, and so do NumPy's functions
(``np.add(t, 1)``, ``np.sum(t)``) and expressions with an array (``t + np.ones(3)``). Python's operators and
the other methods of arrays do not tell where to compute, so each raises an error with code to use instead: an
operation of ``kp.ops``, which computes on the device, and NumPy's on a copy. Tensors compare by identity.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import getattr_static
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.errors import ArgumentTypeError, ArrayAttributeError, InvalidArgumentError, shown
from .._base.types import is_small_float
from .._base.warn import warn

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

# The operations of `kp.ops` that compute on the device what an operator or a method of arrays computes.
ON_DEVICE = {
    "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "//": "floor_divide", "%": "remainder",
    "**": "power", "@": "matmul", "&": "bitwise_and", "|": "bitwise_or", "^": "bitwise_xor",
    "<<": "left_shift", ">>": "right_shift", "<": "less", "<=": "less_equal", ">": "greater",
    ">=": "greater_equal",
}  # fmt: skip
METHODS_ON_DEVICE = frozenset(
    [
        "all",
        "any",
        "argmax",
        "argmin",
        "argpartition",
        "argsort",
        "clip",
        "conj",
        "conjugate",
        "cumprod",
        "cumsum",
        "diagonal",
        "dot",
        "imag",
        "max",
        "mean",
        "min",
        "nonzero",
        "partition",
        "prod",
        "real",
        "repeat",
        "round",
        "searchsorted",
        "sort",
        "std",
        "sum",
        "swapaxes",
        "take",
        "trace",
        "transpose",
        "var",
    ]
)
# The same for methods that only the tensors of PyTorch, CuPy and JAX have.
_SAME = [
    "amax", "amin", "ceil", "cos", "equal", "exp", "floor", "greater", "less", "log", "log_softmax",
    "logsumexp", "matmul", "median", "multiply", "norm", "pow", "relu", "scatter_add", "sigmoid", "sin",
    "softmax", "sqrt", "square", "stack", "subtract", "tanh", "tile", "topk", "tril", "triu", "unique",
    "where",
]  # fmt: skip
"""Functions of `kp.ops` that are methods of tensors elsewhere."""

OPERATIONS = {
    "around": "round", "bmm": "matmul", "cast": "astype", "cat": "concatenate", "chunk": "array_split",
    "clamp": "clip",
    "clamp_max": "minimum", "clamp_min": "maximum", "cumulative_prod": "cumprod", "cumulative_sum": "cumsum",
    "deg2rad": "radians", "div": "divide", "eq": "equal",
    "expand": "broadcast_to",
    "fliplr": "flip", "flipud": "flip", "gather": "take_along_axis", "ge": "greater_equal", "gt": "greater",
    "hstack": "concatenate", "index_select": "take", "kthvalue": "partition", "le": "less_equal",
    "lt": "less", "matrix_transpose": "swapaxes",
    "mm": "matmul", "mul": "multiply", "mv": "matmul", "ne": "not_equal",
    "neg": "negative", "permute": "transpose", "rad2deg": "degrees",
    "scatter": "put_along_axis", "scatter_reduce": "scatter_add", "sub": "subtract", "vstack": "concatenate",
}  # fmt: skip
"""The function of `kp.ops` that computes what this name does in PyTorch, CuPy, JAX or NumPy."""

CALLS = {
    "allclose": "np.allclose(a, b)",
    "array": "mgr.tensor_t(np.array(values))",
    "asarray": "mgr.as_tensor(values)",
    "copy": "t.to(t.manager, copy=True)",
    "empty": "mgr.empty(shape, dtype)",
    "empty_like": "mgr.empty(t.shape, t.dtype)",
    "expand_dims": "t[None] or t.reshape(shape)",
    "flatten": "t.reshape(-1)",
    "from_numpy": "mgr.tensor_t(array)",
    "frombuffer": "mgr.tensor_t(np.frombuffer(data, dtype))",
    "full_like": "mgr.full(t.shape, fill_value, t.dtype)",
    "identity": "kp.ops.eye(n)",
    "isclose": "np.isclose(a, b)",
    "meshgrid": "x[None, :] and y[:, None], which functions broadcast",
    "ones": "mgr.full(shape, 1)",
    "ones_like": "mgr.full(t.shape, 1, t.dtype)",
    "rand": "kp.random.Generator().random(shape)",
    "randint": "kp.random.Generator().integers(low, high, shape)",
    "randn": "kp.random.Generator().standard_normal(shape)",
    "ravel": "t.reshape(-1)",
    "reshape": "t.reshape(shape)",
    "squeeze": "t.reshape(shape)",
    "unsqueeze": "t[None] or t.reshape(shape)",
    "zeros": "mgr.zeros(shape, dtype)",
    "zeros_like": "mgr.zeros(t.shape, t.dtype)",
}
"""Code for functions of NumPy and PyTorch that are not functions of `kp.ops`."""
MAKERS = {name: code for name, code in CALLS.items() if code.startswith(("mgr.", "kp."))} | {
    name: f"kp.ops.{name}(...)" for name in ("arange", "concatenate", "eye", "linspace", "stack")
}
"""Code for functions that make arrays."""
_METHODS_ELSEWHERE = {**dict.fromkeys(_SAME), **OPERATIONS}

# Attributes of arrays and of PyTorch's, CuPy's and JAX's tensors with an answer of their own: the reason, and
# what to use.
_ANSWERS = {
    "device": "its memory belongs to a Manager; t.manager.get_device_properties() describes the device",
    "to_device": "its memory belongs to a Manager; t.to(manager) copies it to another one",
    "cuda": "its memory belongs to a Manager; t.to(kp.Manager(device)) copies it to another device",
    "cpu": "its contents are on the device; t.read() copies them to the host",
    "get": "its contents are on the device; t.read() copies them to the host",
    "to_numpy": "its contents are on the device; t.read() copies them to the host",
    "clone": "its contents are on the device; t.to(t.manager, copy=True) copies them there",
    "detach": "tensors have no gradients; t.to(t.manager, copy=True) is a copy",
    "asnumpy": "its contents are on the device; t.read() copies them to the host",
    "T": "its contents are on the device; kp.ops.transpose(t) reverses the axes there",
    "mT": "its contents are on the device; kp.ops.swapaxes(t, -1, -2) swaps the last axes there",
    "compress": "its contents are on the device; kp.ops.compress(condition, t) takes elements there",
    "masked_select": "its contents are on the device; kp.ops.compress(mask, t) takes elements there",
    "put": "it is written in place; kp.ops.put(t, indices, values, out=t) does it",
    "at": "it is written in place; t.write(values, region) writes a part",
    "backward": "tensors have no gradients; write the backward pass as a kernel or with kp.ops",
    "grad": "tensors have no gradients; write the backward pass as a kernel or with kp.ops",
    "requires_grad": "tensors have no gradients; write the backward pass as a kernel or with kp.ops",
    "contiguous": "a Tensor is always contiguous; kp.ops.ascontiguousarray(part) copies a strided part",
    "is_contiguous": "a Tensor is always contiguous; kp.ops.ascontiguousarray(part) copies a strided part",
    "copy_": "it is written in place; t.write(values) or t.copy_from(other) does it",
    "fill_": "it is written in place; t.fill(value) does it",
    "zero_": "it is written in place; t.fill(0) does it",
    "add_": "it is written in place; kp.ops.add(t, x, out=t) does it",
    "mul_": "it is written in place; kp.ops.multiply(t, x, out=t) does it",
    "numel": "its number of elements has NumPy's name; t.size() gives it",
    "dim": "its number of axes has NumPy's name; t.ndim gives it",
    "element_size": "the size of an element has NumPy's name; t.itemsize gives it",
    **{
        name: f"its elements get other axes without a copy; {CALLS[name]} does it"
        for name in ("flatten", "ravel", "squeeze", "unsqueeze")
    },
    **{
        name: f"its dtype is fixed; kp.ops.astype(t, np.{dtype}) converts it on the device"
        for name, dtype in [
            ("float", "float32"),
            ("half", "float16"),
            ("double", "float64"),
            ("int", "int32"),
            ("long", "int64"),
            ("bool", "bool_"),
            ("type", "float32"),
        ]
    },
    "block_until_ready": "calls wait for their results; t.manager.synchronize() waits for submitted work",
}
_NUMBERS = (int, float, complex, list, tuple)
_READ = "t.read()"


def _code(value: Any, read: str = ".read()") -> str:
    """`value` as code if it is a short number, else a name that stands for it; `read` follows that of a
    tensor.
    """
    if isinstance(value, ArrayHabits):
        return "other" + read
    if isinstance(value, MethodType):  # such as t.size
        return f"t.{value.__name__}()"
    text = shown(value)
    return text if isinstance(value, (int, float, complex)) and len(text) < 30 else "other"


def _advice(there: str, code: str) -> str:
    """How to compute on the device, if there is an operation for it, and on the host."""
    place = f"Compute there with {there}, or on the host" if there else "Compute on the host"
    return f"its contents are on the device. {place} with a copy: {code}"


def _refuse(thing: Any, doing: str, code: str, there: str = "") -> ArgumentTypeError:
    kind = type(thing).__name__
    return ArgumentTypeError(
        f"{'An' if kind[0] in 'AEIOU' else 'A'} {kind} has no {doing}: {_advice(there, code)}"
    )


def _binary(symbol: str, reflected: bool) -> Callable[[Any, Any], Any]:
    def operate(self: Any, other: Any) -> Any:
        if not isinstance(other, (*_NUMBERS, MethodType, ArrayHabits)):
            return NotImplemented  # arrays then read the tensor; other types may support it
        left, right = (_code(other), _READ) if reflected else (_READ, _code(other))
        two = (_code(other, ""), "t") if reflected else ("t", _code(other, ""))
        there = f"kp.ops.{ON_DEVICE[symbol]}({', '.join(two)})"
        raise _refuse(self, f"operator {symbol}", f"{left} {symbol} {right}", there)

    return operate


def _unary(code: str, doing: str, operation: str = "") -> Callable[..., Any]:
    def operate(self: Any, *rest: Any) -> Any:
        raise _refuse(self, doing, code, operation and f"kp.ops.{operation}(t)")

    return operate


class WithAnswers:
    """Base of classes that have `OnlyOfArrays`."""

    __slots__ = ()

    def __dir__(self) -> list[str]:
        """The attributes that work. Those of arrays that only raise an error are left out."""
        kind = type(self)
        return [
            name for name in super().__dir__() if type(getattr_static(kind, name, None)) is not OnlyOfArrays
        ]


class ArrayHabits(WithAnswers):
    """Base of Memory and StridedView: the operators and attributes of arrays.

    Subclasses have `read`, `size`, `shape`, `dtype` and `_describe`.
    """

    __slots__ = ()

    # -- conversions, which read the device's contents -------------------------------------------------------

    def tolist(self) -> Any:
        """The device's contents, after pending work, as nested lists of Python numbers, as in NumPy.

        A 0-dimensional object gives one number. Raises the errors of `read`.
        """
        return self._read_for("tolist()", "t.read().tolist()").tolist()

    def astype(self, dtype: DTypeLike) -> np.ndarray[Any, Any]:
        """The device's contents, after pending work, as a new NumPy array of `dtype` and this shape.

        Converts as ``ndarray.astype`` does: floats are cut to integers, and integers wrap. Raises
        ArgumentTypeError if `dtype` is not a dtype or the conversion does not exist, and the errors of
        `read`.
        """
        memory: Any = self
        try:
            wanted = np.dtype(dtype)
        except Exception as error:
            raise ArgumentTypeError(f"dtype is {shown(dtype)}, which is not a dtype: {error}") from None
        array = self._read_for("astype()", "t.read().astype(dtype), or kp.ops.astype(t, dtype) on the device")
        try:
            return np.asarray(array.astype(wanted, copy=False))
        except (TypeError, ValueError) as error:
            raise ArgumentTypeError(f"{memory._describe()} does not convert to {wanted}: {error}") from None

    def item(self) -> Any:
        """The only element, as a Python number, after pending work.

        Raises InvalidArgumentError if there is not exactly one element, and the errors of `read`.
        """
        memory: Any = self
        if memory.size() != 1:
            memory._require_init("be read")
            raise InvalidArgumentError(f"{memory._describe()} {self._several('item()', '{}.item()')}")
        return self._read_for("item()", "t.read().item()").item()

    def __int__(self) -> int:
        """``int(t)``: the only element, read from the device as by `item`.

        Raises ArgumentTypeError if there is not exactly one element.
        """
        return int(self._number("int"))

    def __float__(self) -> float:
        """``float(t)`` of the only element, like ``int(t)``."""
        return float(self._number("float"))

    def __complex__(self) -> complex:
        """``complex(t)`` of the only element, like ``int(t)``."""
        return complex(self._number("complex"))

    def __format__(self, spec: str) -> str:
        """``f"{t:.3f}"``: the only element, read from the device as by `item`. Without a format, ``str(t)``.

        Raises ArgumentTypeError for a format if there is not exactly one element, ValueError for a format
        that numbers do not have.
        """
        return format(self._number("format"), spec) if spec else str(self)

    def _number(self, kind: str) -> Any:
        memory: Any = self
        if memory.size() != 1:
            memory._require_init("be read")
            raise ArgumentTypeError(f"{memory._describe()} {self._several(f'{kind}()', kind + '({})')}")
        if memory.dtype.kind == "V" and not is_small_float(memory.dtype):
            raise ArgumentTypeError(
                f"{memory._describe()} is one record, not a number: t.item() returns its fields"
            )
        return self._read_for(f"{kind}()", "t.read().item()").item()

    def _read_for(self, call: str, instead: str) -> np.ndarray[Any, Any]:
        """The device's contents for a call that does not say that it reads them: see `transfers`."""
        memory: Any = self
        guard = memory._manager._guard
        if guard is not None and not memory._is_single():
            memory._require_init("be read")
            guard(
                f"{memory._describe()}: {call} copies {memory.nbytes} bytes from the device to the host",
                f"write {instead}",
            )
        found: np.ndarray[Any, Any] = memory.read()
        return found

    def _before_assigned(self, value: Any, on_device: bool) -> None:
        """The guard's word on ``t[key] = value``, unless `value` is a number. `on_device`: tensors are
        assigned there, and not through the host.
        """
        memory: Any = self
        guard = memory._manager._guard
        if guard is None:
            return
        is_memory = isinstance(value, ArrayHabits)
        if not (on_device if is_memory else np.ndim(value) == 0):
            given: Any = value
            nbytes = given.nbytes if is_memory else np.size(value) * memory.dtype.itemsize
            guard(
                f"{memory._describe()}: an assignment copies {nbytes} bytes "
                f"{'through the host' if is_memory else 'from the host to the device'}",
                f"write t[key].{'copy_from(other)' if is_memory else 'write(values)'}",
            )

    def _several(self, user: str, one: str) -> str:
        """Text that names an alternative to `user`, which needs one element; `one` is code for it, with {}
        for t.
        """
        memory: Any = self
        if memory.size() == 0:
            return f"has no element, and {user} takes one"
        first = "t[" + ", ".join("0" * len(memory.shape)) + "]"
        if not hasattr(self, "__getitem__"):
            first = first.replace("t[", "t.read()[")
        return (
            f"has {memory.size()} elements, and {user} takes one: {one.format(first)}, "
            "or t.read() for all of them"
        )

    # -- truth, comparison, operators ------------------------------------------------------------------------

    def __bool__(self) -> bool:
        """Whether the only element is nonzero, as in NumPy. Waits for pending work that writes it.

        With any other number of elements: True if there are any, as in Kompute, with a KomputeWarning,
        because NumPy raises an error there. Write ``t is not None`` or ``t.read().any()``.
        """
        memory: Any = self
        count: int = memory.size()
        if count == 1 and memory.dtype.type is not np.void:
            return bool(self._read_for("bool()", "t.read().item(), or t is not None").reshape(-1)[0])
        if memory.is_init():
            warn(
                f"The truth of {memory._describe()} only says that it has {count or 'no'} elements. "
                "Write len(t) > 0 or t is not None if that is meant; "
                "t.read().any() or t.read().all() for the elements"
            )
        return count != 0

    def __eq__(self, other: object) -> Any:
        """Compares by identity, as in Kompute.

        A number or a list never equals a tensor: a KomputeWarning shows how to compare the elements.
        """
        if isinstance(other, _NUMBERS):
            warn(
                f"A {type(self).__name__} is compared by identity, so it never equals {shown(other):.60}. "
                f"On the device, kp.ops.equal(t, {_code(other)}) compares its elements; or compare "
                f"with a copy: {_READ} == {_code(other)}"
            )
        return NotImplemented

    if TYPE_CHECKING:

        def __hash__(self) -> int: ...

        __iter__ = __reversed__ = None

    else:  # for checkers of types, tensors lack the operators: they find `t + 1`
        __hash__ = object.__hash__

        __add__, __radd__ = _binary("+", False), _binary("+", True)
        __sub__, __rsub__ = _binary("-", False), _binary("-", True)
        __mul__, __rmul__ = _binary("*", False), _binary("*", True)
        __truediv__, __rtruediv__ = _binary("/", False), _binary("/", True)
        __floordiv__, __rfloordiv__ = _binary("//", False), _binary("//", True)
        __mod__, __rmod__ = _binary("%", False), _binary("%", True)
        __pow__, __rpow__ = _binary("**", False), _binary("**", True)
        __matmul__, __rmatmul__ = _binary("@", False), _binary("@", True)
        __and__, __rand__ = _binary("&", False), _binary("&", True)
        __or__, __ror__ = _binary("|", False), _binary("|", True)
        __xor__, __rxor__ = _binary("^", False), _binary("^", True)
        __lshift__, __rlshift__ = _binary("<<", False), _binary("<<", True)
        __rshift__, __rrshift__ = _binary(">>", False), _binary(">>", True)
        __lt__, __le__ = _binary("<", False), _binary("<=", False)
        __gt__, __ge__ = _binary(">", False), _binary(">=", False)
        __neg__ = _unary("-t.read()", "operator -", "negative")
        __pos__ = _unary("+t.read()", "operator +", "positive")
        __invert__ = _unary("~t.read()", "operator ~", "invert")
        __abs__ = _unary("abs(t.read())", "abs()", "absolute")
        __round__ = _unary("t.read().round()", "round()", "round")
        # Without these, Python would iterate through __getitem__, with one device view per element.
        __iter__ = _unary("for x in t.read()", "iteration")
        __reversed__ = _unary("reversed(t.read())", "iteration")

    def __contains__(self, value: object) -> bool:
        """Raises ArgumentTypeError with code that looks for a value."""
        raise _refuse(self, "operator in", f"{_code(value)} in {_READ}")

    def __setitem__(self, key: object, value: object) -> None:
        """Raises ArgumentTypeError with code that writes a part."""
        raise ArgumentTypeError(
            f"An {type(self).__name__} has no item assignment: its contents are on the device. "
            "Use t.write(value, region) with the index from the brackets as region, or t.fill(value) for all"
        )


class OnlyOfArrays:
    """An attribute that arrays, or tensors of another kind, have and these lack. Reading it raises
    ArrayAttributeError, with `answer` if it has one.

    Each attribute has its own descriptor, because a `__getattr__` would slow down all existing attributes.
    """

    def __init__(self, name: str, answer: str = "") -> None:
        self._name = name
        self._answer = answer or _ANSWERS.get(name, "")
        self._advice = f"t.read().{name}{'(...)' if callable(getattr(np.ndarray, name, None)) else ''}"
        if name == "__array_interface__":
            self._advice = _READ
        elif name == "copy":
            self._advice = "t.read(); on the device: t.to(t.manager, copy=True)"
        elif self._answer:
            self._advice = self._answer.partition("; ")[2] or self._answer
        elif not hasattr(np.ndarray, name):
            self._advice = f"kp.ops.{_METHODS_ELSEWHERE[name] or name}(t, ...)"
        self.__doc__ = f"Only arrays have this attribute: {self._advice}."

    def __get__(self, thing: Any, kind: type) -> Any:
        text = f"{kind.__name__!r} object has no attribute {self._name!r}"
        if self._answer:
            answer = self._answer
            if type(getattr_static(kind, "reshape", None)) is OnlyOfArrays:  # images and parts with steps
                answer = re.sub(r"\bt(?=\[|\.reshape)", "kp.ops.ascontiguousarray(t)", answer)
            text += f": {answer}"
        elif self._name in _METHODS_ELSEWHERE:
            text += f": its contents are on the device. Compute there with {self._advice}"
        elif self._name in METHODS_ON_DEVICE:
            text += f": {_advice(f'kp.ops.{self._name}', self._advice)}"
        else:
            has = "A copy on the host" if self._name == "copy" else "A copy on the host has it"
            text += f": its contents are on the device. {has}: {self._advice}"
        raise ArrayAttributeError(text, self._name, thing)


def answer_for(kind: type, other: type, answer: str) -> None:
    """Reading a public attribute that `other` has and `kind` lacks raises an error with `answer`; "{}" is the
    name."""
    for name in dir(other):
        lacks, has = (type(getattr_static(each, name, None)) for each in (kind, other))
        if not name.startswith("_") and lacks in (type(None), OnlyOfArrays) and has is not OnlyOfArrays:
            setattr(kind, name, OnlyOfArrays(name, answer.format(name)))


for _name in (*dir(np.ndarray), *_ANSWERS, *_METHODS_ELSEWHERE):
    if not _name.startswith("_") and not hasattr(ArrayHabits, _name):
        setattr(ArrayHabits, _name, OnlyOfArrays(_name))
del _name
