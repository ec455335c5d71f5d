"""Plots of tensors, images and arrays. Needs matplotlib (the extra ``plot``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base.errors import ArgumentTypeError, FailedPreconditionError, InvalidArgumentError
from .._base.types import MemoryTypes
from .._display.pictures import is_picture
from .._memory.memory import Memory

__all__ = ["plot"]

_KINDS = ("line", "image", "hist")


def contents(thing: Any) -> np.ndarray[Any, Any]:
    """The contents of a tensor, an image or an array.

    For tensors and images, the device's contents after pending work if the device memory was written, else
    the host copy. Raises ArgumentTypeError if `thing` is not numeric, FailedPreconditionError if it is
    destroyed.
    """
    if isinstance(thing, Memory):
        thing._require_init("be shown")
        if (
            thing._native.on_device
            or thing.memory_type() is MemoryTypes.storage
            or not thing._native.host_copy_made
        ):
            return thing.read()
        return thing.numpy()
    array = np.asarray(thing)
    if array.dtype.kind not in "biufc":
        raise ArgumentTypeError(f"plot draws numbers; this {type(thing).__name__} has dtype {array.dtype}")
    return array


def plot(*things: Any, kind: str | None = None, ax: Any = None, **options: Any) -> Any:
    """Draws tensors, images or arrays into one matplotlib Axes and returns it.

    `kind` is "line", "image" or "hist". By default, an array that looks like a picture ((height, width[, 3 or
    4])) is drawn as an image, and others as lines, one for each row. `ax` is the Axes to draw into (default:
    that of a new figure). `options` are passed to matplotlib's ``plot``, ``imshow`` or ``hist``. Tensors show
    the device's contents after pending work if the device memory was written, else their host copy. Complex
    numbers show their magnitudes.

    Raises FailedPreconditionError if matplotlib is missing (the error names the extra) or an object is
    destroyed; InvalidArgumentError for an unknown kind, nothing to draw, several pictures, or an array that
    is not a picture; ArgumentTypeError if an argument is not numeric.

    >>> axes = kp.plot(mgr.tensor([1, 4, 9]), kind="line")
    >>> axes.lines[0].get_ydata().tolist()
    [1.0, 4.0, 9.0]
    """
    if kind is not None and kind not in _KINDS:
        raise InvalidArgumentError(f"kind is {kind!r}; choose one of {', '.join(_KINDS)}")
    if not things:
        raise InvalidArgumentError("plot needs at least one tensor, image or array")
    arrays = [contents(thing) for thing in things]
    arrays = [np.abs(array) if array.dtype.kind == "c" else array for array in arrays]
    for thing, array in zip(things, arrays, strict=True):
        if array.dtype.kind not in "biuf":
            raise ArgumentTypeError(
                f"plot draws numbers; this {type(thing).__name__} has dtype {array.dtype}"
            )
    if kind is None:
        image = len(arrays) == 1 and is_picture(arrays[0].shape, arrays[0].dtype)
        kind = "image" if image else "line"
    if kind == "image":
        if len(arrays) != 1:
            raise InvalidArgumentError(
                f"plot draws one picture at a time, not {len(arrays)}: call it once for each, with ax="
            )
        arrays[0] = _pixels(arrays[0])
    axes = _axes() if ax is None else ax
    for thing, array in zip(things, arrays, strict=True):
        label = {"label": thing.name} if isinstance(thing, Memory) and thing.name else {}
        if kind == "image":
            if array.ndim == 2:
                options = {"cmap": "viridis", "interpolation": "nearest", **options}
            axes.imshow(array, **options)
        elif kind == "hist":
            axes.hist(array.reshape(-1), **{"bins": 64, **label, **options})
        else:
            rows = array.reshape(-1, array.shape[-1]) if array.ndim > 1 else array.reshape(1, -1)
            axes.plot(rows.T, **{**label, **options})
    if kind != "image" and axes.get_legend_handles_labels()[0]:
        axes.legend()
    return axes


def _pixels(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[..., 0]
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (3, 4)):
        raise InvalidArgumentError(
            f"A picture has the shape (height, width) or (height, width, 3 or 4), not {array.shape}"
        )
    return array.astype(np.float32) if array.dtype == np.float16 else array


def _axes() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise FailedPreconditionError(
            "plot and show need matplotlib: pip install 'kompute-py[plot]'"
        ) from None
    return plt.subplots(layout="constrained")[1]
