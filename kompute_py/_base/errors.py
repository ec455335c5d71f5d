"""Errors: one tree under `KomputeError`. Each class also derives from the built-in exception that fits.

The native core throws errors with a kind; the bindings call `from_native` to create the Python exception.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from types import MethodType
from typing import Any, NamedTuple, NoReturn, TypeVar

from .text import Told, told

_Class = TypeVar("_Class", bound=type[Any])


class ErrorCode(IntEnum):
    """The canonical status codes, as in Abseil, gRPC and PJRT.

    Each error class has one: see the table in the errors' reference. Nothing here raises DATA_LOSS or
    UNAUTHENTICATED, so that they have a code and no class.

    >>> kp.OutOfRangeError("too far").code
    <ErrorCode.OUT_OF_RANGE: 11>
    """

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


def _restore(cls: type[KomputeError], args: tuple[Any, ...], state: dict[str, Any]) -> KomputeError:
    # Skips __init__, because a subclass may have changed its parameters. cls.__new__ would be RuntimeError's,
    # which refuses a class that is also an OSError. The right __new__ is that of the built-in that decides
    # the layout.
    builtin: Any = cls
    while builtin.__module__ != "builtins":
        builtin = builtin.__base__
    error = builtin.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class KomputeError(RuntimeError):
    """Base of all errors that kompute_py raises.

    `code` is the canonical status code; `vk_result` is the VkResult behind the error, or 0 if no Vulkan call
    failed.

    >>> try:
    ...     mgr.zeros(-1)
    ... except kp.KomputeError as error:
    ...     print(error)
    The shape (-1,) has a negative axis; an axis has 0 elements or more
    """

    code: ErrorCode = ErrorCode.UNKNOWN
    """The canonical status code."""
    vk_result: int = 0
    """The VkResult behind the error; 0 if no Vulkan call failed."""

    def __init__(self, message: Told = "", *, vk_result: int = 0) -> None:
        # A function is called here: the native side sets errors that are made only if they are looked at.
        text = told(message)
        super().__init__(text)
        # super().__init__ skips the __init__ of the other built-in base (such as OSError's).
        self.args: tuple[Any, ...] = (text,)
        if vk_result:
            self.vk_result = vk_result

    def __str__(self) -> str:
        # Some built-ins format the message: KeyError's __str__ adds quotes, OSError's an errno.
        return str(self.args[0]) if self.args else ""

    def _render_traceback_(self) -> list[str]:
        """The traceback for IPython and notebooks, without the frames inside this package."""
        from .shown_errors import render

        return render(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # OSError's and the default __reduce__ call the class with args only and lose keyword-only arguments.
        return _restore, (type(self), self.args, self.__dict__.copy())


_restore.__module__ = "kompute_py.errors"  # pickles name it


class InvalidArgumentError(KomputeError, ValueError):
    """An argument has a value that is invalid in every state of the objects.

    >>> try:
    ...     mgr.sampler("cubic")
    ... except kp.InvalidArgumentError as error:
    ...     print(error)
    There is no filter 'cubic'; use nearest or linear
    """

    code = ErrorCode.INVALID_ARGUMENT


class ArgumentTypeError(KomputeError, TypeError):
    """An argument is of the wrong type, or an array of a dtype that is not supported.

    >>> try:
    ...     mgr.tensor("text")
    ... except kp.ArgumentTypeError as error:
    ...     print(error)
    The data is a str; give numbers (or the bytes of the text: ...
    """

    code = ErrorCode.INVALID_ARGUMENT


class OutOfRangeError(KomputeError, IndexError):
    """An index or a position is out of range.

    >>> try:
    ...     mgr.zeros(3)[7]
    ... except kp.OutOfRangeError as error:
    ...     print(error)
    Tensor of shape (3,), float32 has no [7]: index 7 is out of bounds for axis 0 with size 3
    """

    code = ErrorCode.OUT_OF_RANGE


class NotFoundError(KomputeError, LookupError):
    """The requested device, file or name does not exist.

    >>> try:
    ...     kp.Manager("no such device")
    ... except kp.NotFoundError as error:
    ...     print(error)
    Requested device (name contains 'no such device') was not found. ...
    """

    code = ErrorCode.NOT_FOUND


class ArrayAttributeError(KomputeError, AttributeError):
    """A tensor, image or Manager lacks an attribute that arrays, or modules that make them, have."""

    code = ErrorCode.NOT_FOUND

    def __init__(self, message: Told, name: str = "", obj: object = None) -> None:
        super().__init__(message)
        self.name: str = name
        self.obj: object = obj


class OutOfMemoryError(KomputeError, MemoryError):
    """Device memory, host memory or a pool of fixed size is exhausted.

    >>> try:
    ...     mgr.zeros(2**60)
    ... except kp.OutOfMemoryError as error:
    ...     print(error)
    A tensor of 4611686018427387904 bytes is larger than any buffer of ...
    """

    code = ErrorCode.RESOURCE_EXHAUSTED


class EvalTimeoutError(KomputeError, TimeoutError):
    """The device did not finish before the timeout. The work continues and can be awaited again. Also for a
    driver that makes a pipeline for longer than `pipeline_timeout`.

    >>> try:
    ...     mgr.semaphore().wait(1, timeout=0.01)
    ... except kp.EvalTimeoutError as error:
    ...     print(error)
    <kp.Semaphore at 0> did not reach 1 in 0.01 s; call wait again later
    """

    code = ErrorCode.DEADLINE_EXCEEDED


class FailedPreconditionError(KomputeError):
    """The object's state does not allow the call: it is destroyed, running, or not recorded.

    >>> t = mgr.zeros(3)
    >>> t.destroy()
    >>> try:
    ...     t.read()
    ... except kp.FailedPreconditionError as error:
    ...     print(error)
    Tensor of shape (3,), float32 is destroyed: it cannot be read
    """

    code = ErrorCode.FAILED_PRECONDITION


class UnimplementedError(KomputeError, NotImplementedError):
    """The device, its driver or this version does not support the request.

    >>> text = "layout(set = 1, binding = 0) buffer X { float x[]; }; void main() { x[0] = 1.0; }"
    >>> try:
    ...     mgr.algorithm([mgr.zeros(1)], kp.compile(text))
    ... except kp.UnimplementedError as error:
    ...     print(error)
    The shader's storage buffer 'x' is in descriptor set 1; ...
    """

    code = ErrorCode.UNIMPLEMENTED


class ExchangeError(KomputeError, BufferError):
    """Memory cannot be shared by DLPack or the buffer protocol in the requested way.

    >>> try:
    ...     kp.from_dlpack(np.array([1, 2])[::-1], mgr, copy=False)
    ... except kp.ExchangeError as error:
    ...     print(error)
    The data cannot be shared, and copy=False: ...
    """

    code = ErrorCode.FAILED_PRECONDITION


class UnavailableError(KomputeError):
    """Vulkan, a compiler that a shader needs, or a file is unavailable.

    For Vulkan: the loader, a driver, a suitable device or an extension is missing. For a file: the system
    refuses to read or write it, or another program changes it meanwhile.
    """

    code = ErrorCode.UNAVAILABLE


class PermissionDeniedError(UnavailableError, PermissionError):
    """The system refuses to open, read or write a file because of its permissions.

    >>> kp.errors.PermissionDeniedError("The file 'a' cannot be read").code.name
    'PERMISSION_DENIED'
    """

    code = ErrorCode.PERMISSION_DENIED


class DeviceLostError(KomputeError):
    """The device stopped and its contents are lost; a new Manager is needed."""

    code = ErrorCode.UNAVAILABLE


class NonFiniteError(KomputeError, FloatingPointError):
    """An operation wrote a NaN or an infinity, and the Manager was opened with ``debug="nans"``.

    >>> with kp.Manager(debug="nans") as debugged:
    ...     zeros = debugged.zeros(3)
    ...     try:
    ...         kp.ops.divide(1, zeros)
    ...     except kp.errors.NonFiniteError as error:
    ...         error.operation, error.index
    ('divide', (0,))
    """

    code = ErrorCode.OUT_OF_RANGE

    def __init__(
        self,
        message: str = "",
        *,
        operation: str = "",
        tensor: Any = None,
        index: tuple[int, ...] = (),
        inputs: Mapping[str, Any] | None = None,
        line: str = "",
    ) -> None:
        super().__init__(message)
        self.operation: str = operation
        """The name of the operation."""
        self.tensor: Any = tensor
        """The Tensor or Image that it wrote; None for memory that a call has for an array, or for itself."""
        self.index: tuple[int, ...] = index
        """The place of the first such element."""
        self.inputs: dict[str, Any] = dict(inputs or {})
        """The numbers that the operation read at that place, by the tensors' names."""
        self.line: str = line
        """The line that recorded the operation, else that of the submission: "file.py:12"; "" if unknown."""


class AbortedError(KomputeError):
    """The work was not done: `semaphore.fail` failed a semaphore that it waited for, or it was cancelled.

    The message is the one given to `semaphore.fail`. For cancelled work, the error is a CancelledError.

    >>> semaphore = mgr.semaphore()
    >>> semaphore.fail("no more frames")
    >>> try:
    ...     semaphore.wait(1)
    ... except kp.AbortedError as error:
    ...     print(error)
    no more frames
    """

    code = ErrorCode.ABORTED


class CancelledError(AbortedError):
    """The work was cancelled before it ran: nothing could start it any more, because a semaphore that it
    waited for, its sequence or its Manager is gone.

    >>> t = mgr.tensor([1])
    >>> fence = mgr.submit(mgr.sequence().record(kp.OpSyncDevice([t])), wait=(mgr.semaphore(), 1))
    >>> try:
    ...     fence.wait()
    ... except kp.errors.CancelledError as error:
    ...     print(error.code.name)
    CANCELLED
    """

    code = ErrorCode.CANCELLED


class InternalError(KomputeError):
    """An internal error of Vulkan or kompute_py."""

    code = ErrorCode.INTERNAL


# Not a dataclass: importing dataclasses, which NumPy does not load, takes longer than this whole module.
class ValidationError(InternalError):
    """The validation layer, or a shader of a Manager with ``debug=``, reported errors. Only ``strict=True``
    raises it.

    `messages` is a list of (severity, id, text).
    """

    def __init__(self, message: str, messages: list[tuple[str, str, str]]) -> None:
        super().__init__(message)
        self.messages = messages


class Diagnostic(NamedTuple):
    """One message of the shader compiler.

    >>> kp.errors.Diagnostic("blur.comp", 3, 7, "error", "undeclared identifier").line
    3
    """

    file: str
    """The compiler's name of it.

    For text without a path: the shader's name, as in "<blur>", or "<source>".
    """
    line: int
    """Counted from 1; 0 if unknown."""
    column: int
    """Counted from 1; 0 if unknown."""
    severity: str
    """"error", "warning" or "note"."""
    message: str
    """The compiler's text, without file and line."""
    source_line: str = ""
    """The text of the line; "" if unknown."""


class ShaderCompileError(InvalidArgumentError):
    """A shader's source does not compile. The message shows each of the `diagnostics` with a caret.

    >>> try:
    ...     kp.compile("void main() { x = 1; }")
    ... except kp.ShaderCompileError as error:
    ...     print(error.diagnostics[0].line, error.diagnostics[0].severity)
    1 error
    """

    def __init__(
        self, message: str = "", *, vk_result: int = 0, diagnostics: Iterable[Diagnostic] = ()
    ) -> None:
        super().__init__(message, vk_result=vk_result)
        self.diagnostics: list[Diagnostic] = list(diagnostics)
        # (path, digest of its contents, or b"" if missing) of each involved file: a watched kernel watches
        # these.
        self._sought: list[tuple[str, bytes]] = []

    def format(self, color: bool | None = None) -> str:
        """The message with terminal colours.

        `color` is True or False. With None the message is coloured if stderr is a terminal that shows colours
        and ``NO_COLOR`` is not set.
        """
        from .shown_errors import colored, terminal_shows_color

        return colored(str(self)) if (terminal_shows_color() if color is None else color) else str(self)

    def _repr_html_(self) -> str:
        """The message as HTML, for notebooks."""
        from .shown_errors import as_html

        return as_html(str(self))


class DonatedTensorError(FailedPreconditionError):
    """The tensor was donated to an operation: the result may have its memory.

    >>> @kp.CustomOp.register
    ... class half(kp.CustomOp):
    ...     signature = "half(Tensor x) -> Tensor"
    ...     def select(self, ksel):
    ...         x = ksel.arg_tensor("x")
    ...         ksel.return_new_tensor(x.shape, x.dtype, may_reuse="x")
    ...     def generate(self, ksel, kb):
    ...         kb.yield_results("x_load(i) / 2")
    >>> t = mgr.tensor([2, 4])
    >>> half(t, donate="x").tolist()
    [1.0, 2.0]
    >>> try:
    ...     t.read()
    ... except kp.errors.DonatedTensorError as error:
    ...     print(str(error).partition(":")[0])
    Tensor of shape (2,), float32 was donated to half
    """


class AlreadyExistsError(KomputeError):
    """A library has an operation of that name already.

    >>> library = kp.op_library("exists")
    >>> try:
    ...     kp.op_library("exists")
    ... except kp.errors.AlreadyExistsError as error:
    ...     print(error.code.name)
    ALREADY_EXISTS
    """

    code = ErrorCode.ALREADY_EXISTS


class SignatureError(InvalidArgumentError, SyntaxError):
    """The signature of a custom operation cannot be read.

    `text` is the signature and `offset` the column of the fault, counted from 1.

    >>> try:
    ...     @kp.CustomOp.register
    ...     class Double(kp.CustomOp):
    ...         signature = "double(Tenser x) -> Tensor"
    ... except kp.errors.SignatureError as error:
    ...     print(error.offset)
    8
    """

    def __init__(self, message: str = "", text: str = "", offset: int = 0) -> None:
        super().__init__(message)
        self.msg: str = message
        self.text: str = text
        self.offset: int = offset

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class FormulaError(SignatureError):
    """A formula, such as that of `kp.ops.elementwise`, cannot be read.

    `text` is the formula and `offset` the column of the fault, counted from 1.

    >>> kp.errors.FormulaError("there is no function 'sqr'", "x + sqr(y)", 5).offset
    5
    """


class NumberRangeError(InvalidArgumentError, OverflowError):
    """A number of Python that the dtype does not have to which NumPy's rules convert it.

    >>> try:
    ...     kp.ops.add(np.uint8([1, 2]), 300)
    ... except OverflowError as error:
    ...     print(type(error).__name__)
    NumberRangeError
    """

    code = ErrorCode.OUT_OF_RANGE


class CompileTimeoutError(ShaderCompileError, TimeoutError):
    """The compiler exceeded its time limit; see the `timeout` of `kompute_py.compile`."""

    code = ErrorCode.DEADLINE_EXCEEDED


class KomputeWarning(UserWarning):
    """The code is allowed but probably a mistake.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     mgr.tensor([1, 2]) == [1, 2]
    False
    >>> caught[0].category.__name__
    'KomputeWarning'
    """


_SHOWN = 180  # the most characters of a str
_ITEMS = 70  # of a list; with a comma and a space each, they are longer than the text


class ShaderCompileWarning(KomputeWarning):
    """The shader compiler reports a warning for a source that compiles."""


def shown(value: Any) -> str:
    """`value` for an error message: its repr, cut to one line, or its type if repr fails."""
    if type(value) is str and len(value) > _SHOWN:
        return f"{value[:_SHOWN]!r}..."
    try:
        return f"{_beginning(value)!r:.200}"
    except Exception:
        return kind_of(value)


def _beginning(value: Any, depth: int = 0) -> Any:
    """As much of long lists as the text of an error shows, so that repr does not walk the rest."""
    if type(value) not in (list, tuple) or depth > 4:
        return value
    return type(value)(_beginning(each, depth + 1) for each in value[:_ITEMS])


def kind_of(value: Any) -> str:
    """The type of `value` for an error message, with its article: "an int", "a list"; "None" for None."""
    if value is None:
        return "None"
    name = type(value).__name__
    if type(value).__module__.startswith("PIL."):
        return f"PIL's {name}"
    vowel = name[:1] in "aeioAEIO" or name.startswith(("nd", "np"))
    return f"{'an' if vowel else 'a'} {name}"


def instead_of(value: Any, usual: str) -> str:
    """Advice for `value`, which is not an array: the argument to give; `usual` for most values."""
    if isinstance(value, MethodType):
        return f"call it: t.{value.__name__}()"
    if type(value).__module__.startswith("PIL."):
        return 'give mgr.image(picture, format="rgba8") or np.asarray(picture)'
    return usual


def refuse_copy(what: object, instead: str, why: str = "is an object on a device") -> NoReturn:
    """Raises the ArgumentTypeError (a TypeError) of copying or pickling an object on a device.

    A second Python object for the same device object would destroy it twice, and another process has no
    access to it.
    """
    kind = type(what).__name__
    raise ArgumentTypeError(f"A kp.{kind} {why}: it cannot be copied or pickled; {instead}")


def not_copyable(instead: str, why: str = "is an object on a device") -> Callable[[_Class], _Class]:
    """A decorator for classes: copying and pickling are refused, see `refuse_copy`."""

    def refused(self: object, protocol: object) -> NoReturn:
        refuse_copy(self, instead, why)

    def decorated(cls: _Class) -> _Class:
        cls.__reduce_ex__ = refused  # type: ignore[assignment]
        return cls

    return decorated


# Keys: the names of the core's kp::ErrorKind.
_BY_KIND: dict[str, type[KomputeError]] = {
    "invalid_argument": InvalidArgumentError,
    "argument_type": ArgumentTypeError,
    "out_of_range": OutOfRangeError,
    "not_found": NotFoundError,
    "out_of_memory": OutOfMemoryError,
    "eval_timeout": EvalTimeoutError,
    "failed_precondition": FailedPreconditionError,
    "donated": DonatedTensorError,
    "unimplemented": UnimplementedError,
    "unavailable": UnavailableError,
    "device_lost": DeviceLostError,
    "shader_compile": ShaderCompileError,
    "exchange": ExchangeError,
    "aborted": AbortedError,
    "cancelled": CancelledError,
    "internal": InternalError,
}


def from_native(
    kind: str,
    message: str,
    vk_result: int = 0,
    diagnostics: Iterable[Diagnostic | tuple[str, int, int, str, str, str]] = (),
    sought: Iterable[tuple[str, bytes | None]] = (),
) -> KomputeError:
    """The exception for a native error; the bindings raise it.

    `kind` is the name of a kp::ErrorKind. `diagnostics` are those of a shader_compile error, as `Diagnostic`
    or as tuples of its fields. `sought` lists the paths at which it looked for includes, with their contents.
    """
    cls = _BY_KIND.get(kind, InternalError)
    if issubclass(cls, ShaderCompileError):
        listed = [d if isinstance(d, Diagnostic) else Diagnostic(*d) for d in diagnostics]
        error = cls(message, vk_result=vk_result, diagnostics=listed)
        from .digest import marks

        error._sought = marks(sought)
        return error
    return cls(message, vk_result=vk_result)
