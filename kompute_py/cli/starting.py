"""``kompute-py new`` and ``watch``: a project to begin with, and a shader's picture while it is written."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from .._base.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from .common import Traceback
from .options import CompileOptions, Given, InputArgument
from .running import opened
from .shaders import keywords_of

_VIEW = "View"

# Not a docstring: typer would keep its line ends.
WATCH_HELP = """Show a shader's picture in a window while you write it.

kompute-py watch waves.comp --size 640,480 --range speed=0.1,4

The window draws the first image or buffer that the shader writes, frame after frame, and takes each saved \
version of the file; a mistake is shown below the picture, and the version before it goes on. Push constants \
named time, frame, resolution or mouse (or as Shadertoy's: iTime, ...) follow the window, and other numbers \
have sliders. Contents of bindings are given as for run. With --out and --frames it writes a film instead.

Exit status: 0 done, 1 failed, 2 wrong usage."""


def watch_command(
    shader: InputArgument,
    given: Given,
    options: CompileOptions,
    size: Annotated[
        str,
        typer.Option(
            "--size",
            metavar="W,H",
            rich_help_panel=_VIEW,
            help="Columns and rows of outputs without a shape.",
        ),
    ] = "512,512",
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            metavar="NAME=LOW,HIGH[,STEP[,START]]",
            rich_help_panel=_VIEW,
            help="The range of a push constant's slider. Default: 0 to 1 for floats, 0 to 16 for integers.",
        ),
    ] = None,
    show: Annotated[
        str | None,
        typer.Option(
            "--show",
            metavar="NAME",
            rich_help_panel=_VIEW,
            help="The binding to draw. Default: the first that the shader writes.",
        ),
    ] = None,
    fps: Annotated[
        float, typer.Option("--fps", rich_help_panel=_VIEW, help="The most frames in a second.")
    ] = 60.0,
    frames: Annotated[
        int | None,
        typer.Option("--frames", metavar="N", min=1, rich_help_panel=_VIEW, help="End after N frames."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILM",
            rich_help_panel=_VIEW,
            help="Write a film without a window: .mp4, .webm, .gif, or frame-%03d.png. Needs --frames.",
        ),
    ] = None,
    show_traceback: Traceback = False,
) -> None:
    """See `WATCH_HELP`."""
    from .._live.show import show as show_live
    from .arguments import counts, loaded, number, pairs, specialized

    if shader == "-":
        raise InvalidArgumentError("watch needs a file, which it looks at while you write; - has none")
    if out is not None and frames is None:
        raise InvalidArgumentError(f"--out {out}: a film has an end: give --frames")
    moving = {
        name: _range(name, number(text, f"--range {name}")) for name, text in pairs(ranges or [], "--range")
    }
    given.size = size
    with opened(given.device) as manager:
        kernel = manager.kernel(Path(shader), watch=True, **keywords_of(options))
        kernel = specialized(kernel, given.constants)
        bound, push = loaded(manager, kernel, given)
        both = sorted(set(moving) & set(push))
        if both:
            raise InvalidArgumentError(f"{both[0]} is given by --set and by --range")
        if show is not None and show not in bound:
            raise NotFoundError(f"--show {show}: {kernel.name} has {', '.join(bound) or 'no bindings'}")
        launch = {"grid": counts(given.grid, "--grid"), "groups": counts(given.groups, "--groups")}
        keywords: dict[str, Any] = {name: value for name, value in launch.items() if value is not None}
        show_live(
            kernel, bind=bound, push={**push, **moving}, show=None if show is None else bound[show],
            fps=fps, frames=frames, path=out, **keywords,
        )  # fmt: skip
    if out is not None:
        print(f"{out}: {frames} frames", file=sys.stderr)


def _range(name: str, value: Any) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise InvalidArgumentError(f"--range {name}: give LOW,HIGH, such as --range {name}=0,1")
    return tuple(value)


def new_command(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A folder that does not exist, or is empty.")
    ],
    show_traceback: Traceback = False,
) -> None:
    """Write a project to begin with: a script, its shader and a test."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FailedPreconditionError(f"{folder} exists and is not empty: choose another name")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in _PROJECT.items():
        (folder / name).write_text(text, encoding="utf-8")
    print(f"{folder}: {', '.join(_PROJECT)}")
    print(f"  cd {folder}")
    print("  python waves.py                     writes waves.png")
    print("  python -m pytest                    runs the test (pip install pytest)")
    print("  kompute-py watch waves.comp         shows the picture while you write the shader")


_PROJECT = {
    "waves.comp": """\
#version 450
// A picture of waves: red by column, green by row.
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0, rgba8) uniform writeonly image2D picture;
layout(push_constant) uniform Settings {
    float time;   // seconds
    float speed;  // waves in a second
};

void main() {
    ivec2 place = ivec2(gl_GlobalInvocationID.xy), size = imageSize(picture);
    if (any(greaterThanEqual(place, size))) return;
    vec2 at = vec2(place) / vec2(size);
    float wave = 0.5 + 0.5 * sin(6.2831853 * (3.0 * at.x - speed * time));
    imageStore(picture, place, vec4(wave, at.y, 0.5, 1.0));
}
""",
    "waves.py": '''\
"""Draws waves with a shader. `python waves.py` writes a picture, and with --window it opens a window."""

import argparse
from pathlib import Path

import kompute_py as kp
import numpy as np
from PIL import Image

SHADER = Path(__file__).with_name("waves.comp")


def picture_of(mgr: kp.Manager, rows: int, columns: int) -> kp.Image:
    return mgr.image_t(np.zeros((rows, columns, 4), np.uint8), format="rgba8")


def waves(mgr: kp.Manager, rows: int, columns: int, time: float, speed: float = 1.0) -> np.ndarray:
    """The waves at `time` in seconds: (rows, columns, 4) of uint8."""
    picture = picture_of(mgr, rows, columns)
    mgr.kernel(SHADER)(picture, time=time, speed=speed)
    return picture.read()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--window", action="store_true")
    with kp.Manager() as mgr:
        if parser.parse_args().window:
            kp.show(mgr.kernel(SHADER, watch=True), picture_of(mgr, 480, 640), speed=(0.0, 4.0, 0.1, 1.0))
        else:
            Image.fromarray(waves(mgr, 480, 640, time=0.25)).save("waves.png")
            print("waves.png")


if __name__ == "__main__":
    main()
''',
    "test_waves.py": '''\
"""`python -m pytest` compares the shader with NumPy."""

import kompute_py as kp
import numpy as np
from waves import waves


def test_waves_are_those_of_numpy():
    rows, columns, time, speed = 48, 64, 0.3, 2.0
    with kp.Manager() as mgr:
        drawn = waves(mgr, rows, columns, time, speed)
    x, y = np.arange(columns) / columns, np.arange(rows) / rows
    red = np.broadcast_to(0.5 + 0.5 * np.sin(2 * np.pi * (3 * x - speed * time)), (rows, columns))
    green = np.broadcast_to(y[:, None], (rows, columns))
    expected = np.stack([red, green, np.full_like(red, 0.5), np.ones_like(red)], axis=-1)
    np.testing.assert_allclose(drawn / 255, expected, atol=1 / 255)  # a step of rgba8
''',
}
