"""A size in bytes, as options, environment variables and arguments take it: one grammar for all of them."""

from __future__ import annotations

import operator
import re
from typing import Any

from .errors import ArgumentTypeError, InvalidArgumentError, shown

_UNITS = {"": 1, "b": 1, "byte": 1, "bytes": 1}
for _power, _letter in enumerate("kmgt", 1):
    _UNITS |= {
        _letter: 2 ** (10 * _power),
        f"{_letter}ib": 2 ** (10 * _power),
        f"{_letter}b": 10 ** (3 * _power),
    }
_TEXT = re.compile(r"\s*([0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})\s*([A-Za-z]*)\s*", re.ASCII)
GRAMMAR = (
    'give an int of bytes, or text: "128 MiB" or "128M" (binary: KiB, MiB, GiB, TiB), '
    '"128 MB" (decimal: kB, MB, GB, TB), "1.5 GiB", "0"'
)


def as_bytes(value: Any, what: str) -> int:
    """The bytes that `value` says: an int, or text, such as "128 MiB", "128M" (the same), "128 MB" (128 *
    10**6) or "1.5 GiB".

    Case does not count; spaces around the number and the unit may be left out. Raises InvalidArgumentError,
    naming `what` and the grammar, for other text, a size below 0 or above 2**63 - 1, and a fraction of a
    byte; ArgumentTypeError for other types.
    """
    if isinstance(value, str):
        found = _TEXT.fullmatch(value)
        if found is None or found[2].lower() not in _UNITS:
            raise InvalidArgumentError(f"{what} is {shown(value)}, which is not a size; {GRAMMAR}")
        unit = _UNITS[found[2].lower()]
        whole, _, part = found[1].partition(".")
        digits = int(whole + part)
        size, rest = divmod(digits * unit, 10 ** len(part))
        if (digits and not size) or (rest and unit == 1):
            raise InvalidArgumentError(f"{what} is {shown(value)}, a fraction of a byte; {GRAMMAR}")
    else:
        try:
            if isinstance(value, bool):
                raise TypeError
            size = operator.index(value)
        except Exception:  # of the object's own __index__
            raise ArgumentTypeError(f"{what} is {shown(value)}, which is not a size; {GRAMMAR}") from None
    if not 0 <= size < 2**63:
        raise InvalidArgumentError(
            f"{what} is {shown(value)}; sizes are from 0 to 2**63 - 1 bytes: {GRAMMAR}"
        )
    return size
