"""Limits of a compilation: the compiler's time, and the size of source files."""

from __future__ import annotations

import errno
import math
import os
from numbers import Real
from typing import Any

import numpy as np

from .._base.errors import ArgumentTypeError, InvalidArgumentError, NotFoundError, kind_of, shown
from .._base.file_access import NotRegularError, current_folder, read_regular
from .._base.settings import as_bytes

TIMEOUT_VARIABLE = "KOMPUTE_PY_COMPILE_TIMEOUT"
_MOST_SECONDS = 1e9
_SIZE_LIMIT = 64 << 20  # includes have the same limit


def as_seconds(value: Any, what: str) -> float:
    """The time limit of a compilation in seconds, from a number or its text; math.inf for no limit.

    Raises InvalidArgumentError or ArgumentTypeError, naming `what`, for invalid values.
    """
    if isinstance(value, (bool, np.timedelta64)) or not isinstance(value, (Real, str)):
        raise ArgumentTypeError(f"{what} is {kind_of(value)}; give seconds, or None for the default")
    try:
        seconds = float(value)
    except (ValueError, OverflowError):
        seconds = -1.0
    if not (0 < seconds < _MOST_SECONDS or seconds == math.inf):
        raise InvalidArgumentError(
            f"{what} is {shown(value)}; give a number of seconds above 0, or inf for no limit"
        )
    return seconds


def too_long(seconds: float) -> str:
    """The error message for a compilation that exceeds its limit."""
    return (
        f"compiling takes longer than {seconds:g} s; {TIMEOUT_VARIABLE} or the option "
        "compile_timeout sets the limit, and so does timeout=. "
        "Macros that grow, unrolled loops and large switches take long"
    )


def most_bytes(size_limit: int | str | None) -> int:
    """The largest allowed size of a file in bytes: `size_limit`, or 64 MiB for None.

    Raises the errors of `as_bytes`.
    """
    return _SIZE_LIMIT if size_limit is None else as_bytes(size_limit, "size_limit")


def read_file(path: str | os.PathLike[str], what: str, limit: int | str | None = None) -> bytes:
    """The contents of a regular file of at most `limit` bytes; None for 64 MiB. `what` names it in errors.

    Raises NotFoundError if there is no such file or it cannot be read, InvalidArgumentError if it is larger,
    and the errors of `most_bytes`.
    """
    limit = most_bytes(limit)
    name = repr(os.fsdecode(path))
    try:
        # As bytes: comments may be in any encoding, and the compiler accepts that.
        return read_regular(os.fspath(path), limit)
    except NotRegularError:
        raise NotFoundError(f"Cannot read the {what} file {name}: it is not a regular file") from None
    except FileNotFoundError as error:
        raise NotFoundError(f"There is no {what} file {name} (in {current_folder()!r})") from error
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) == errno.EFBIG:
            raise InvalidArgumentError(
                f"The {what} file {name} has more than {limit} bytes; "
                "kp.compile reads larger ones with size_limit="
            ) from None
        raise NotFoundError(f"Cannot read the {what} file {name}: {error}") from error
