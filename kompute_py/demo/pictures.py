"""The demo's pictures: one file for each stage, and a contact sheet of all of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from ..units import duration

if TYPE_CHECKING:
    from .pipeline import PhotoPipeline
    from .run import DemoResult

_INK, _SOFT, _GRID = "#1c2430", "#6b7686", "#e3e7ec"
_ACCENT = "#2f6fde"
_SHOWN = 640  # pixels: a contact sheet shows no more of a picture


def write_pictures(folder: Path, pipeline: PhotoPipeline, result: DemoResult) -> list[Path]:
    """Writes blurred.png, edges.png, toned.png, histogram.png and contact_sheet.png; returns their paths.

    Raises OSError where a file cannot be written.
    """
    photo = _eight_bits(pipeline.photo.numpy())
    blurred = _eight_bits(pipeline.blurred.numpy())
    toned = Image.fromarray(np.ascontiguousarray(pipeline.toned.numpy()[..., :3]))
    strengths = pipeline.edges.numpy()
    strongest = float(strengths.max())
    # Edges of a blurred photo are faint: white is the strongest one.
    edges = Image.fromarray((strengths * (255 / strongest if strongest > 0 else 0)).astype(np.uint8))
    histogram = np.array(pipeline.histogram.numpy())

    files = []
    for name, image in (("blurred", blurred), ("edges", edges), ("toned", toned)):
        files.append(folder / f"{name}.png")
        image.save(files[-1])
    files.append(folder / "histogram.png")
    _histogram_picture(histogram, files[-1])
    files.append(folder / "contact_sheet.png")
    tiles = [
        ("Photograph", f"{result.width} × {result.height}", photo),
        ("Gaussian blur", f"sigma {result.settings.sigma:g} px, two passes", blurred),
        ("Sobel edges", f"white is {strongest:.2f} of a full step", edges),
        (
            "Tone curve, edges as ink",
            f"exposure {result.settings.exposure:+g} EV, contrast {result.settings.contrast:g}",
            toned,
        ),
    ]
    _contact_sheet(tiles, histogram, result, files[-1])
    return files


def _eight_bits(pixels: np.ndarray) -> Image.Image:
    return Image.fromarray(np.rint(pixels[..., :3] / 257.0).astype(np.uint8))


def _figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), dpi=100, facecolor="white")
    FigureCanvasAgg(figure)  # no display, and no state of pyplot's
    return figure


def _histogram_picture(counts: np.ndarray, path: Path) -> None:
    figure = _figure(8, 4.5)
    axes = figure.add_axes((0.1, 0.13, 0.87, 0.76))
    _plot_histogram(axes, counts)
    figure.text(0.1, 0.93, "Luminance of the toned picture", color=_INK, fontsize=13, fontweight="bold")
    figure.savefig(path)


def _plot_histogram(axes: Any, counts: np.ndarray) -> None:
    levels = np.arange(counts.size)
    axes.fill_between(levels, counts, step="mid", color=_ACCENT, alpha=0.22, linewidth=0)
    axes.step(levels, counts, where="mid", color=_ACCENT, linewidth=1.2)
    axes.set_xlim(0, counts.size - 1)
    # Clipped blacks and whites pile up in the outer bins; they must not flatten the rest.
    inner = counts[1:-1]
    top = float(inner.max()) if inner.any() else float(counts.max())
    axes.set_ylim(0, 1.08 * max(top, 1.0))
    axes.set_xticks([0, 64, 128, 192, 255])
    axes.set_xlabel("luminance, 0 to 255", color=_SOFT, fontsize=9)
    axes.set_ylabel("pixels", color=_SOFT, fontsize=9)
    _plain_axes(axes)
    axes.grid(axis="y", color=_GRID, linewidth=0.8)


def _plain_axes(axes: Any) -> None:
    axes.set_axisbelow(True)
    axes.tick_params(colors=_SOFT, labelsize=8.5, length=0)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(_GRID)


def _contact_sheet(
    tiles: list[tuple[str, str, Image.Image]], counts: np.ndarray, result: DemoResult, path: Path
) -> None:
    figure = _figure(14, 10.2)
    figure.text(
        0.03, 0.955, "One recorded sequence, one submission", color=_INK, fontsize=19, fontweight="bold"
    )
    device = result.device
    figure.text(
        0.03,
        0.927,
        f"{result.photo} on {device['device_name']} ({device['driver_name']} {device['driver_version']})   ·   "
        f"{duration(result.eval_seconds)} from upload to download   ·   "
        f"{duration(sum(result.reference_seconds.values()))} in NumPy and SciPy",
        color=_SOFT,
        fontsize=10.5,
        parse_math=False,  # a file's name may have a dollar sign
    )
    width, height, gap = 0.3, 0.385, 0.02
    cells = [
        (0.03 + column * (width + gap), bottom, width, height)
        for bottom in (0.495, 0.03)
        for column in (0, 1, 2)
    ]
    for (title, caption, image), cell in zip(tiles, cells[:4], strict=True):
        _title(figure, cell, title, caption)
        axes = figure.add_axes(cell)
        axes.set_axis_off()
        axes.set_anchor("N")
        shown = image.copy()
        shown.thumbnail((_SHOWN, _SHOWN), Image.Resampling.LANCZOS)
        axes.imshow(shown, cmap="gray", vmin=0, vmax=255, interpolation="lanczos")
    left, bottom, wide, high = cells[4]
    _title(figure, cells[4], "Luminance histogram", "of the toned picture, counted with atomics")
    _plot_histogram(figure.add_axes((left + 0.035, bottom + 0.045, wide - 0.045, high - 0.06)), counts)
    left, bottom, wide, high = cells[5]
    if result.device_seconds:
        _title(figure, cells[5], "Time on the device", "by its own timestamps")
        _plot_steps(
            figure.add_axes((left + 0.085, bottom + 0.045, wide - 0.13, high - 0.06)), result.device_seconds
        )
    else:
        _title(figure, cells[5], "Time in NumPy and SciPy", "this device takes no timestamps")
        _plot_steps(
            figure.add_axes((left + 0.085, bottom + 0.045, wide - 0.13, high - 0.06)),
            result.reference_seconds,
        )
    figure.savefig(path)


def _title(figure: Figure, cell: tuple[float, float, float, float], title: str, caption: str) -> None:
    left, bottom, _, high = cell
    label = figure.text(left, bottom + high + 0.008, title, color=_INK, fontsize=11.5, fontweight="bold")
    box = label.get_window_extent()
    right = figure.transFigure.inverted().transform((box.x1, box.y0))[0]
    figure.text(right + 0.008, bottom + high + 0.008, caption, color=_SOFT, fontsize=9.5)


def _plot_steps(axes: Any, seconds: dict[str, float]) -> None:
    names = list(seconds)
    values = [seconds[name] for name in names]
    axes.barh(range(len(names)), values, color=_ACCENT, alpha=0.85, height=0.62)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xticks([])
    _plain_axes(axes)
    axes.spines["bottom"].set_visible(False)
    axes.set_xlim(0, max(values) or 1.0)
    for row, value in enumerate(values):
        axes.annotate(
            duration(value),
            (value, row),
            (5, 0),
            textcoords="offset points",
            va="center",
            color=_SOFT,
            fontsize=9,
        )
