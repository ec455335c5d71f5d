"""The option `transfers`: whether calls may copy between the host and the device without saying so.

Calls that only copy say so: `read`, `write`, `tensor`, `to`, OpSyncDevice. All others that copy contents ask
the Manager's guard first, if it has one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from .._base.errors import FailedPreconditionError
from .._base.warn import warn

if TYPE_CHECKING:
    from typing import Literal

# Functions of NumPy that answer False if an argument does not become an array.
_SWALLOW = ("array_equal", "array_equiv")

Guard = Callable[[str, str], None]
"""Is told of a copy, "what copies how many bytes where", and of the call to use instead."""


def guard_for(transfers: Literal["allow", "warn", "raise"]) -> Guard | None:
    """The guard of a Manager with this value of the option; None if all copies are allowed."""
    return {"allow": None, "warn": _warn, "raise": _refuse}[transfers]


def on_host(guard: Guard, what: str, nbytes: int) -> None:
    """The guard's word on `what` a call takes or gives: an array of so many bytes."""
    guard(
        f"{what} is an array of the host: the call copies its {nbytes} bytes between the host and the device",
        "give a Tensor, such as mgr.tensor_t(array), and read() results",
    )


def _refuse(copies: str, instead: str) -> None:
    if sys._getframe(3).f_code.co_name in _SWALLOW:  # below are the method that reads and `__array__`
        warn(f"{copies}, and this function of NumPy takes the error for a difference: {instead}")
    raise FailedPreconditionError(f'{copies}, which the Manager\'s transfers="raise" forbids: {instead}')


def _warn(copies: str, instead: str) -> None:
    warn(f"{copies}: {instead}")
