"""What a compilation may take: seconds of the compiler, bytes of a source's file."""

from __future__ import annotations

import errno
import math
import operator
import os
from typing import Any

import numpy as np

from .._base.errors import ArgumentTypeError, InvalidArgumentError, NotFoundError, shown
from .._base.file_access import NotRegularError, read_regular

TIMEOUT_VARIABLE = "KOMPUTE_PY_COMPILE_TIMEOUT"
_TIMEOUT = 20.0
_MOST_SECONDS = 1e9
_SIZE_LIMIT = 64 << 20  # that of an include, too


def time_limit(timeout: float | None = None) -> float:
    """Seconds that a compilation may take: `timeout`, else what the environment says, else 20; math.inf for no limit.

    Raises InvalidArgumentError or ArgumentTypeError, which name the argument or the variable, for anything else.
    """
    value: Any = timeout
    if value is None:
        what = f"The environment variable {TIMEOUT_VARIABLE}"
        value = os.environ.get(TIMEOUT_VARIABLE, "").strip()
        if not value:
            return _TIMEOUT
    else:
        what = "timeout"
        numbers = (int, float, np.integer, np.floating)
        if isinstance(value, (bool, np.timedelta64)) or not isinstance(value, numbers):
            raise ArgumentTypeError(
                f"{what} is a {type(value).__name__}; give seconds, or None for the default"
            )
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
    """What an error says of a compilation beyond its limit."""
    return (
        f"compiling takes longer than {seconds:g} s; {TIMEOUT_VARIABLE} sets the limit, and so does timeout=. Macros that grow, "
        "unrolled loops and large switches take long"
    )


def most_bytes(size_limit: int | None) -> int:
    """Bytes that a file may have: `size_limit`, or 64 MiB for None.

    Raises ArgumentTypeError if it is not an int, InvalidArgumentError if it is below 0.
    """
    if size_limit is None:
        return _SIZE_LIMIT
    try:
        if isinstance(size_limit, bool):
            raise TypeError
        limit = operator.index(size_limit)
    except Exception:  # of the object's own __index__
        raise ArgumentTypeError(f"size_limit is {shown(size_limit)}; give an int of bytes") from None
    if limit < 0:
        raise InvalidArgumentError(f"size_limit is {shown(limit)}; give a number of bytes from 0 on")
    return limit


def read_file(path: str | os.PathLike[str], what: str, limit: int | None = None) -> bytes:
    """The contents of a regular file of at most `limit` bytes; None for 64 MiB. `what` names it in errors.

    Raises NotFoundError if there is no such file or it cannot be read, InvalidArgumentError if it is larger, and what `most_bytes`
    raises.
    """
    limit = most_bytes(limit)
    name = repr(os.fsdecode(path))
    try:
        # As bytes: a comment may be in any encoding, and the compiler does not mind.
        return read_regular(os.fspath(path), limit)
    except NotRegularError:
        raise NotFoundError(f"Cannot read the {what} file {name}: it is not a regular file") from None
    except FileNotFoundError as error:
        raise NotFoundError(f"There is no {what} file {name} (in {os.getcwd()!r})") from error
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) == errno.EFBIG:
            raise InvalidArgumentError(
                f"The {what} file {name} has more than {limit} bytes; kp.compile reads larger ones with size_limit="
            ) from None
        raise NotFoundError(f"Cannot read the {what} file {name}: {error}") from error
