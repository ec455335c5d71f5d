"""Errors for arguments that NumPy's functions accept in a place that the factories of a Manager do not.

``np.zeros(shape, dtype)`` and ``np.array(data, dtype)`` take the dtype second. So does ``mgr.zeros``, but
``mgr.tensor_t(data, memory_type)`` keeps the data's dtype. Each message ends with code that works, given
`mgr`, `data`, `shape` and so on.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from .errors import ArgumentTypeError, shown
from .types import MemoryTypes, dtype_code, to_memory_type

# DTYPE is replaced by the dtype that was given as a memory type.
KEPT_BY_TENSOR = "mgr.tensor makes float32; for another dtype give mgr.tensor_t(np.asarray(data, DTYPE))"
KEPT_BY_TENSOR_T = "mgr.tensor_t keeps the data's dtype: give mgr.tensor_t(np.asarray(data, DTYPE))"
KEPT_BY_TO = "to() keeps the dtype: give mgr.tensor_t(t.read().astype(DTYPE))"
KEPT_BY_IMAGES = "Convert the data, and keep its dtype: mgr.image_t(np.asarray(data, DTYPE))"
BEFORE = (
    "The dtype comes before it: mgr.zeros(shape, DTYPE), mgr.empty(shape, DTYPE), "
    "mgr.full(shape, fill_value, DTYPE)"
)


def keyword(dtype: Any, text: str) -> ArgumentTypeError:
    """The error for the keyword ``dtype=`` of a factory that keeps the data's dtype."""
    return ArgumentTypeError(
        f"dtype={dtype_code(dtype) or shown(dtype)} was given. "
        + text.replace("DTYPE", dtype_code(dtype) or "dtype")
    )


def in_allocation(shape: Any, dtype: Any, error: ArgumentTypeError) -> ArgumentTypeError:
    """The error for ``zeros(shape, dtype)``, ``empty`` or ``full`` after an argument raised `error`."""
    code = dtype_code(shape)
    if code is not None:
        return ArgumentTypeError(
            f"The shape is {code}, a dtype. The shape comes first, then the dtype: (shape, {code})"
        )
    axes = getattr(shape, "shape", None)
    if isinstance(axes, tuple) and (len(axes) != 1 or not _is_shape(shape)):
        kind = type(shape).__name__
        return ArgumentTypeError(f"The shape is a {kind} of shape {axes}: give {axes}")
    if _is_memory_type(dtype):
        name = dtype.name if isinstance(dtype, MemoryTypes) else dtype
        return ArgumentTypeError(f"{error}. It is a memory type: give memory_type={name!r}")
    if isinstance(dtype, int) and not isinstance(dtype, bool) and dtype < 2**63 and _is_shape(shape):
        return ArgumentTypeError(f"{error}. The axes are one argument, a tuple: {(*_axes(shape), dtype)}")
    return error


def of_fill(value: Any, error: ArgumentTypeError) -> ArgumentTypeError:
    """The error for ``full(shape, value)`` after `error`."""
    code = dtype_code(value)
    if code is None:
        return error
    return ArgumentTypeError(
        f"fill_value is {code}, a dtype. The dtype comes after it: mgr.full(shape, 0, {code})"
    )


def in_image(axis: str, value: Any, error: ArgumentTypeError) -> ArgumentTypeError:
    """The error for an image's extent after `error`."""
    code = dtype_code(value)
    if code is not None:
        return ArgumentTypeError(f"Image {axis} is {code}, a dtype. {KEPT_BY_IMAGES.replace('DTYPE', code)}")
    if isinstance(value, str):
        what = "a memory type: give memory_type" if _is_memory_type(value) else "text: give format"
        return ArgumentTypeError(f"Image {axis} is {shown(value)}, {what}={shown(value)}")
    return error


def as_format(value: Any) -> str:
    """A hint if `value` is a dtype, given as an image format; "" for anything else."""
    code = dtype_code(value)
    kinds = {"float": "f", "int": "i", "uint": "ui"}
    name = "" if code is None else code.removeprefix("np.")
    kind = name.rstrip("0123456789")
    if kind not in kinds or name[len(kind) :] not in ("8", "16", "32") or name == "float8":
        return ""
    formats = " or ".join(f'"{channels}{name[len(kind) :]}{kinds[kind]}"' for channels in ("r", "rgba"))
    return f"For elements of {code} give format={formats}. "


def _is_memory_type(value: Any) -> bool:
    try:
        to_memory_type(value)
    except Exception:
        return False
    return value is not None and (not isinstance(value, int) or isinstance(value, MemoryTypes))


def _axes(shape: Any) -> tuple[Any, ...]:
    try:
        return tuple(islice(shape, 100)) if hasattr(shape, "__iter__") else (shape,)
    except Exception:  # from its own iteration, such as a memoryview's
        return (shape,)


def _is_shape(shape: Any) -> bool:
    return all(hasattr(each, "__index__") and getattr(each, "ndim", 0) == 0 for each in _axes(shape))
