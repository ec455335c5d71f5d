"""Plots of tensors, images and arrays. Needs matplotlib (the extra ``plot``)."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from html import escape
from typing import Any, Protocol, runtime_checkable

import numpy as np

from .._base.errors import ArgumentTypeError, FailedPreconditionError, InvalidArgumentError
from .drawings import is_picture

__all__ = ["plot"]

_KINDS = ("line", "image", "hist")
_MOST_PARTS = 8
"""The most lines and pictures of an Axes that its alternative text lists."""


@runtime_checkable
class Plottable(Protocol):
    """A tensor or an image."""

    def _plotted(self) -> tuple[str, np.ndarray[Any, Any]]:
        """Its name and its contents. Raises FailedPreconditionError if it is destroyed."""


def _contents(thing: Any) -> tuple[str, np.ndarray[Any, Any]]:
    """The name, "" if there is none, and the contents of a tensor, an image or an array."""
    if isinstance(thing, Plottable):
        return thing._plotted()
    array = np.asarray(thing)
    if array.dtype.kind not in "biufc":
        raise ArgumentTypeError(f"plot draws numbers; this {type(thing).__name__} has dtype {array.dtype}")
    return "", array


def plot(
    *things: Any, kind: str | None = None, ax: Any = None, figure: str | None = None, **options: Any
) -> Any:
    """Draws tensors, images or arrays into one matplotlib Axes and returns it.

    `kind` is "line", "image" or "hist". By default, an array that looks like a picture ((height, width[, 3 or
    4])) is drawn as an image, and others as lines, one for each row. `ax` is the Axes to draw into (default:
    that of a new figure). `options` are passed to matplotlib's ``plot``, ``imshow`` or ``hist``. Tensors show
    the device's contents after pending work if the device memory was written, else their host copy. Complex
    numbers show their magnitudes.

    `figure` names a figure: the next call with the same name draws into it anew, instead of into a new one.
    So a loop has one picture that moves: in a window, if matplotlib has one, and in a notebook's cell.

    In a notebook a new figure has an alternative text, which says what it shows.

    Raises FailedPreconditionError if matplotlib is missing (the error names the extra) or an object is
    destroyed; InvalidArgumentError for an unknown kind, nothing to draw, several pictures, an array that is
    not a picture, or both `ax` and `figure`; ArgumentTypeError if an argument is not numeric.

    >>> axes = kp.plot(mgr.tensor([1, 4, 9]), kind="line")
    >>> axes.lines[0].get_ydata().tolist()
    [1.0, 4.0, 9.0]
    """
    if kind is not None and kind not in _KINDS:
        raise InvalidArgumentError(f"kind is {kind!r}; choose one of {', '.join(_KINDS)}")
    if not things:
        raise InvalidArgumentError("plot needs at least one tensor, image or array")
    named = [_contents(thing) for thing in things]
    arrays = [np.abs(array) if array.dtype.kind == "c" else array for _, array in named]
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
    if figure is not None and ax is not None:
        raise InvalidArgumentError("plot: ax is a part of its own figure; give ax= or figure=")
    axes = _axes(figure) if ax is None else ax
    for (name, _), array in zip(named, arrays, strict=True):
        label = {"label": name} if name else {}
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
    if figure is not None:
        _refresh(figure, axes.figure)
    return axes


def _pixels(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[..., 0]
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (3, 4)):
        raise InvalidArgumentError(
            f"A picture has the shape (height, width) or (height, width, 3 or 4), not {array.shape}"
        )
    return array.astype(np.float32) if array.dtype == np.float16 else array


def _axes(name: str | None) -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise FailedPreconditionError(
            "plot and show need matplotlib: pip install 'kompute-py[plot]'"
        ) from None
    if name is None:
        return plt.subplots(layout="constrained", FigureClass=_figure_class())[1]
    figure = plt.figure(name, clear=True, layout="constrained", FigureClass=_figure_class())
    return figure.add_subplot()


_cells: dict[str, tuple[int, Any]] = {}
"""The cell's execution that shows a named figure, and the handle of its output."""


def _refresh(name: str, figure: Any) -> None:
    """Shows a named figure as it is now: in its window, or in the output of the cell that runs."""
    import matplotlib.pyplot as plt

    if "inline" not in plt.get_backend().lower():
        if figure.canvas.required_interactive_framework is not None:
            plt.pause(0.001)  # draws, and lets the window answer
        return
    from IPython.core.getipython import get_ipython
    from IPython.display import display

    shell: Any = get_ipython()
    data = {"text/html": _html(figure) or "", "text/plain": repr(figure)}
    plt.close(figure)  # else the cell would show it once more at its end
    execution, handle = _cells.get(name, (-1, None))
    if handle is not None and execution == shell.execution_count:
        handle.update(data, raw=True)
    else:
        _cells[name] = shell.execution_count, display(data, raw=True, display_id=True)


@cache
def _figure_class() -> Any:
    """matplotlib's Figure, which a notebook shows with an alternative text."""
    from matplotlib.figure import Figure

    class DescribedFigure(Figure):
        def _ipython_display_(self) -> None:
            html = _html(self)
            if html is None:
                raise NotImplementedError  # IPython then shows it as any other object
            from IPython.display import display

            display({"text/html": html, "text/plain": repr(self)}, raw=True)

    return DescribedFigure


def _html(figure: Any) -> str | None:
    """The figure in the format that is chosen in IPython, with its alternative text; None if there is none.

    IPython's own images have no place for such a text.
    """
    from IPython.core.getipython import get_ipython

    formatter: Any = getattr(get_ipython(), "display_formatter", None)
    for mime in ("image/svg+xml", "image/png", "image/jpeg") if formatter is not None else ():
        made = formatter.formatters[mime](figure)
        data, metadata = made if isinstance(made, tuple) else (made, {})
        if data:
            size = "".join(f' {key}="{metadata[key]}"' for key in ("width", "height") if key in metadata)
            if mime == "image/svg+xml":
                data = data.encode()
            text = b64encode(data).decode("ascii") if isinstance(data, bytes) else data
            return f'<img src="data:{mime};base64,{text}"{size} alt="{escape(_described(figure))}"/>'
    return None


def _described(figure: Any) -> str:
    """The contents of the figure: for each Axes its title, and its pictures, lines and bars with ranges."""
    return "; ".join(filter(None, map(_described_axes, figure.axes))) or "An empty figure"


def _described_axes(axes: Any) -> str:
    parts = [
        f"picture, {' x '.join(map(str, each.get_size()[::-1]))}{_range(each.get_array())}"
        for each in axes.images
    ]
    for line in axes.lines:
        label = "" if line.get_label().startswith("_") else f" {line.get_label()!r}"
        parts.append(f"line{label}, {_count(line.get_ydata(), 'point')}{_range(line.get_ydata())}")
    if axes.patches:
        highest = max(patch.get_height() for patch in axes.patches if hasattr(patch, "get_height"))
        parts.append(f"histogram, {_count(axes.patches, 'bar')}, the highest {highest:.4g}")
    title = axes.get_title()
    shown = "; ".join(parts[:_MOST_PARTS])
    if len(parts) > _MOST_PARTS:
        shown += f"; and {len(parts) - _MOST_PARTS} more"
    return f"{title}: {shown}" if title and shown else title or shown


def _count(things: Any, what: str) -> str:
    return f"{len(things)} {what}{'' if len(things) == 1 else 's'}"


def _range(values: Any) -> str:
    finite = np.ma.compressed(np.ma.masked_invalid(values))
    return f", from {finite.min():.4g} to {finite.max():.4g}" if finite.size else ", no finite number"
