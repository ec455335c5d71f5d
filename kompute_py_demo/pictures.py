"""The demo's pictures: one file for each stage, and a contact sheet with all stages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from kompute_py._base.text import duration

if TYPE_CHECKING:
    from .pipeline import PhotoPipeline
    from .run import DemoResult

_INK, _SOFT, _GRID = "#1c2430", "#6b7686", "#e3e7ec"
_ACCENT = "#2f6fde"
_SHOWN = 640  # the most pixels per side in the contact sheet


def write_pictures(folder: Path, pipeline: PhotoPipeline, result: DemoResult) -> list[Path]:
    """Writes blurred.png, edges.png, toned.png, histogram.png and contact_sheet.png; returns their paths.

    Raises OSError if a file cannot be written.
    """
    photo = _eight_bits(pipeline.photo.numpy())
    blurred = _eight_bits(pipeline.blurred.numpy())
    toned = Image.fromarray(np.ascontiguousarray(pipeline.toned.numpy()[..., :3]))
    strengths = pipeline.edges.numpy()
    strongest = float(strengths.max())
    # Edges of a blurred photo are faint, so the strongest one becomes white.
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
            f"exposure {result.settings.exposure:+g} EV",
            toned,
        ),
    ]
    _contact_sheet(tiles, histogram, result, files[-1])
    return files


def _eight_bits(pixels: np.ndarray) -> Image.Image:
    return Image.fromarray(np.rint(pixels[..., :3] / 257.0).astype(np.uint8))


def _figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), dpi=100, facecolor="white")
    FigureCanvasAgg(figure)  # needs no display and no pyplot state
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
    # Clipped blacks and whites fill the outer bins; these must not flatten the rest.
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
    # All in inches. The rows have the picture's proportions; the second one, with the charts, has a minimum
    # height.
    wide, margin, gap, header, title = 4.2, 0.4, 0.3, 1.0, 0.42
    upper = wide * min(result.height / result.width, 1.3)
    lower = max(upper, 2.6)
    width, height = 2 * margin + 3 * wide + 2 * gap, header + title + upper + title + lower + margin
    figure = _figure(width, height)

    def cell(number: int) -> tuple[float, float, float, float]:
        row, column = divmod(number, 3)
        bottom, high = (margin + lower + title, upper) if row == 0 else (margin, lower)
        return margin + column * (wide + gap), bottom, wide, high

    def axes_in(left: float, bottom: float, wide: float, high: float) -> Any:
        return figure.add_axes((left / width, bottom / height, wide / width, high / height))

    def write(left: float, bottom: float, text: str, **style: Any) -> Any:
        # Dollar signs do not start a formula: a file name may contain them.
        return figure.text(left / width, bottom / height, text, parse_math=False, **style)

    def label(number: int, name: str, caption: str) -> None:
        left, bottom, _, high = cell(number)
        written = write(left, bottom + high + 0.1, name, color=_INK, fontsize=11.5, fontweight="bold")
        end = written.get_window_extent().x1 / figure.dpi
        write(end + 0.1, bottom + high + 0.1, caption, color=_SOFT, fontsize=9.5)

    device = result.device
    write(
        margin,
        height - 0.55,
        "One recorded sequence, one submission",
        color=_INK,
        fontsize=19,
        fontweight="bold",
    )
    write(
        margin,
        height - 0.82,
        f"{_shortened(result.photo)} on {device['device_name']}   ·   "
        f"{duration(result.eval_seconds)} from upload to download   ·   "
        f"{duration(sum(result.reference_seconds.values()))} in NumPy and SciPy",
        color=_SOFT,
        fontsize=10.5,
    )
    for number, (name, caption, image) in enumerate(tiles):
        label(number, name, caption)
        axes = axes_in(*cell(number))
        axes.set_axis_off()
        shown = image.copy()
        shown.thumbnail((_SHOWN, _SHOWN), Image.Resampling.LANCZOS)
        axes.imshow(shown, cmap="gray", vmin=0, vmax=255, interpolation="lanczos")
        axes.set_anchor("NW")

    label(4, "Luminance histogram", "of the toned picture")
    left, bottom, wide, high = cell(4)
    _plot_histogram(axes_in(left + 0.55, bottom + 0.5, wide - 0.6, high - 0.6), counts)
    if result.device_seconds:
        label(5, "Time on the device", "by its timestamps")
        seconds = result.device_seconds
    else:
        label(5, "Time in NumPy and SciPy", "the device has no timestamps")
        seconds = result.reference_seconds
    left, bottom, wide, high = cell(5)
    _plot_steps(axes_in(left + 1.15, bottom + 0.5, wide - 1.8, high - 0.6), seconds)
    figure.savefig(path)


def _shortened(name: str, most: int = 40) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


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
