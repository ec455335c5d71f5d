"""DLPack and the buffer protocol: a tensor's memory for other libraries, and tensors from their objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.errors import ArgumentTypeError, ExchangeError

if TYPE_CHECKING:
    from collections.abc import Callable


CPU = 1
VULKAN = 7
CPU_MEMORY = (CPU, 3, 11)
"""DLPack device types with memory that the CPU can address; 3 and 11 are pinned memory."""
# DLPack's codes for the kinds of elements, by NumPy's letters.
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_BFLOAT16 = 4
_KINDS = {code: kind for kind, code in _CODES.items()}


def code_of(dtype: np.dtype[Any], what: str) -> tuple[int, int]:
    if dtype.name == "bfloat16":
        return _BFLOAT16, 16
    # Dtypes of ml_dtypes also have kind "f", but their bits have another meaning.
    code = _CODES.get(dtype.kind) if dtype.isbuiltin == 1 else None
    if code is None:
        raise ExchangeError(
            f"{what} has elements that DLPack has no name for; share one of another dtype: "
            "t.view(dtype=np.uint8), or one field copied to a separate tensor"
        )
    return code, dtype.itemsize * 8


def dtype_of(code: int, bits: int) -> np.dtype[Any]:
    if (code, bits) == (_BFLOAT16, 16):
        try:
            import ml_dtypes
        except ImportError:
            raise ArgumentTypeError(
                "The DLPack tensor is of bfloat16; NumPy needs the package ml_dtypes for it: "
                "pip install ml_dtypes"
            ) from None
        return np.dtype(ml_dtypes.bfloat16)
    kind = _KINDS.get(code)
    if kind is not None and bits % 8 == 0:
        try:
            return np.dtype(f"{kind}{bits // 8}")
        except TypeError:
            pass
    raise ArgumentTypeError(
        f"The DLPack tensor has elements of type code {code} and {bits} bits; NumPy has no dtype for "
        "them: convert it first"
    )


def capsule_of(obj: Any, copy: bool | None) -> Any:
    make: Callable[..., Any] = obj.__dlpack__
    # Older producers know fewer keywords and raise TypeError for the others.
    options: list[dict[str, Any]] = [{"max_version": (1, 1), "copy": copy}, {"max_version": (1, 1)}, {}]
    if copy is None:
        del options[0]
    for each in options:
        try:
            return make(**each)
        except TypeError:
            if not each:
                raise
    raise AssertionError("unreachable")
