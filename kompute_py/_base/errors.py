"""Errors: one tree under `KomputeError`, each class also the Python built-in that fits.

The native core throws errors of a kind; the bindings call `from_native` to make the Python exception of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any, NamedTuple


class ErrorCode(IntEnum):
    """The canonical status codes, as in Abseil, gRPC and PJRT."""

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
    # Past __init__, whose parameters a subclass may have changed. cls.__new__ would be RuntimeError's, which
    # refuses a class that is also an OSError; the right one is that of the built-in that decides the layout.
    builtin: Any = cls
    while builtin.__module__ != "builtins":
        builtin = builtin.__base__
    error = builtin.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class KomputeError(RuntimeError):
    """Base of all errors that kompute_py raises.

    `code` is the canonical status code; `vk_result` is the VkResult behind the error, 0 where no Vulkan call
    failed.
    """

    code: ErrorCode = ErrorCode.UNKNOWN
    vk_result: int = 0

    def __init__(self, message: str = "", *, vk_result: int = 0) -> None:
        super().__init__(message)
        # The built-in beside RuntimeError may have an __init__ of its own (OSError's), skipped above.
        self.args = (message,)
        if vk_result:
            self.vk_result = vk_result

    def __str__(self) -> str:
        # Not every built-in's own __str__ is the message: KeyError's has quotes, OSError's an errno.
        return str(self.args[0]) if self.args else ""

    def _render_traceback_(self) -> list[str]:
        """What IPython and notebooks show: the traceback without the frames inside this package."""
        from .tracebacks import render

        return render(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # OSError's and the default way call the class with args alone, which loses keyword-only arguments.
        return _restore, (type(self), self.args, self.__dict__.copy())


class InvalidArgumentError(KomputeError, ValueError):
    """An argument has a value that cannot work, whatever the state of the objects."""

    code = ErrorCode.INVALID_ARGUMENT


class ArgumentTypeError(KomputeError, TypeError):
    """An argument is of the wrong type, or an array of a dtype that is not supported."""

    code = ErrorCode.INVALID_ARGUMENT


class OutOfRangeError(KomputeError, IndexError):
    """An index or a position is beyond what there is."""

    code = ErrorCode.OUT_OF_RANGE


class NotFoundError(KomputeError, LookupError):
    """A device, file or name that was asked for does not exist."""

    code = ErrorCode.NOT_FOUND


class OutOfMemoryError(KomputeError, MemoryError):
    """Device memory, host memory or a pool of fixed size is exhausted."""

    code = ErrorCode.RESOURCE_EXHAUSTED


class EvalTimeoutError(KomputeError, TimeoutError):
    """The device did not finish in the time given. The work goes on and can be awaited again."""

    code = ErrorCode.DEADLINE_EXCEEDED


class FailedPreconditionError(KomputeError):
    """The object's state does not allow the call: it is destroyed, running, or not recorded."""

    code = ErrorCode.FAILED_PRECONDITION


class UnimplementedError(KomputeError, NotImplementedError):
    """The device, its driver or this version does not have what was asked for."""

    code = ErrorCode.UNIMPLEMENTED


class ExchangeError(KomputeError, BufferError):
    """Memory cannot be shared in the way that was asked for, by DLPack or the buffer protocol."""

    code = ErrorCode.FAILED_PRECONDITION


class UnavailableError(KomputeError):
    """Vulkan cannot be used here (no loader, driver or suitable device, or a missing extension), or a compiler that a shader needs."""

    code = ErrorCode.UNAVAILABLE


class DeviceLostError(KomputeError):
    """The device stopped and its contents are lost; a new Manager is needed."""

    code = ErrorCode.DATA_LOSS


class AbortedError(KomputeError):
    """What the work waited for failed (`semaphore.fail`), so that it was not done; the text is that failure's."""

    code = ErrorCode.ABORTED


class InternalError(KomputeError):
    """Vulkan or kompute_py did what it should not do."""

    code = ErrorCode.INTERNAL


# Not a dataclass: NumPy does not load that module, and its import costs more than all of this one.
class ValidationError(InternalError):
    """The validation layer reported errors (only raised by ``Manager(validation=True, strict=True)``).

    `messages` has (severity, id, text) of each.
    """

    def __init__(self, message: str, messages: list[tuple[str, str, str]]) -> None:
        super().__init__(message)
        self.messages = messages


class Diagnostic(NamedTuple):
    """One message of the shader compiler."""

    file: str
    """As the compiler names it; of text without a path the shader's name as in "<blur>", else "<source>"."""
    line: int
    """From 1 on; 0 when unknown."""
    column: int
    """From 1 on; 0 when unknown."""
    severity: str
    """"error", "warning" or "note"."""
    message: str
    source_line: str = ""
    """The text of the line; "" when unknown."""


class ShaderCompileError(InvalidArgumentError):
    """A shader's source does not compile. The text shows each of the `diagnostics`, with a caret."""

    def __init__(
        self, message: str = "", *, vk_result: int = 0, diagnostics: Iterable[Diagnostic] = ()
    ) -> None:
        super().__init__(message, vk_result=vk_result)
        self.diagnostics: list[Diagnostic] = list(diagnostics)
        # (path, digest of what was there, or b"") of the files that it was about: what a watched kernel goes on watching.
        self._sought: list[tuple[str, bytes]] = []

    def format(self, color: bool | None = None) -> str:
        """The text, with the colours of a terminal: `color` True or False, or None for where stderr is a terminal that
        shows them (and ``NO_COLOR`` is not set)."""
        from .report import colored, terminal_shows_color

        return colored(str(self)) if (terminal_shows_color() if color is None else color) else str(self)

    def _repr_html_(self) -> str:
        """For notebooks."""
        from .report import as_html

        return as_html(str(self))


class CompileTimeoutError(ShaderCompileError, TimeoutError):
    """The compiler did not finish in the time given; see the `timeout` of `kompute_py.compile`."""

    code = ErrorCode.DEADLINE_EXCEEDED


class KomputeWarning(UserWarning):
    """Something is allowed but probably not meant."""


_SHOWN = 180  # characters of a str


class ShaderCompileWarning(KomputeWarning):
    """The shader compiler warns about a source that it compiles."""


def shown(value: Any) -> str:
    """`value` for an error's text: its repr, cut to a line; its type if it has none."""
    if type(value) is str and len(value) > _SHOWN:
        return f"{value[:_SHOWN]!r}..."
    try:
        return f"{value!r:.200}"
    except Exception:
        return f"a {type(value).__name__}"


def not_copyable(thing: object, instead: str, why: str = "is an object on a device") -> ArgumentTypeError:
    """What copy.copy, copy.deepcopy and pickle of an object on a device raise: a second Python object over the same device
    object would destroy it twice, and another process has neither."""
    return ArgumentTypeError(f"A kp.{type(thing).__name__} {why}: it cannot be copied or pickled; {instead}")


# By the names of the core's kp::ErrorKind.
_BY_KIND: dict[str, type[KomputeError]] = {
    "invalid_argument": InvalidArgumentError,
    "argument_type": ArgumentTypeError,
    "out_of_range": OutOfRangeError,
    "not_found": NotFoundError,
    "out_of_memory": OutOfMemoryError,
    "eval_timeout": EvalTimeoutError,
    "failed_precondition": FailedPreconditionError,
    "unimplemented": UnimplementedError,
    "unavailable": UnavailableError,
    "device_lost": DeviceLostError,
    "shader_compile": ShaderCompileError,
    "exchange": ExchangeError,
    "aborted": AbortedError,
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

    `kind` is the name of a kp::ErrorKind. `diagnostics` are those of a shader_compile error, as
    `Diagnostic` or as tuples of its fields; `sought` are the places where it looked for includes, with what was there.
    """
    cls = _BY_KIND.get(kind, InternalError)
    if issubclass(cls, ShaderCompileError):
        listed = [d if isinstance(d, Diagnostic) else Diagnostic(*d) for d in diagnostics]
        error = cls(message, vk_result=vk_result, diagnostics=listed)
        from .digest import marks

        error._sought = marks(sought)
        return error
    return cls(message, vk_result=vk_result)
