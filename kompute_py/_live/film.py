"""Moving pictures in files: videos, GIFs, or one picture for each frame."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from .._base.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError, kind_of
from .._base.file_access import as_path
from .._display.drawings import is_picture
from .._memory.memory import Memory
from .player import check_limits, check_rate, rgba

_VIDEOS = (".mp4", ".mov", ".mkv", ".webm", ".avi")
_PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff")
_NUMBER = re.compile(r"%0?\d*d")


def write_video(
    path: str | PathLike[str],
    frames: Iterable[Any],
    fps: float = 30.0,
    *,
    limits: tuple[float, float] | None = None,
) -> int:
    """Writes pictures as a moving one, and returns how many. They are taken one by one, as they are made.

    ::

        def frames():
            for step in range(120):
                seq.eval()
                yield image

        kp.write_video("waves.mp4", frames())

    The suffix chooses the format: .mp4, .mov, .mkv, .webm or .avi are videos (by FFmpeg, in PyAV), .gif
    is an animated GIF that begins again at its end. A picture's suffix with a number as in C's printf,
    ``"waves-%03d.png"``, writes a file for each frame, from 0; without a number there may be one frame.

    A frame is a tensor, an image or an array of shape (rows, columns[, 1, 3 or 4]) with at least 8 rows and
    columns; all have one size. `limits` are the numbers that become black and white: by default 0 and 1 for
    floats and the dtype's range for integers. Alpha is ignored. `fps` is in frames a second, above 0 and at
    most 240; a GIF's frame takes a multiple of 10 ms, at least 20. A video with an odd number of rows or
    columns gets one more, a copy of the last.

    Raises ArgumentTypeError for a `path` of another type, InvalidArgumentError for another suffix, an `fps`
    or `limits` out of range, a frame that is not a picture or has another size than the first, and no frame
    at all; NotFoundError if the folder is missing; FailedPreconditionError if PyAV or Pillow (the extra
    ``video``) is missing; OSError if the file cannot be written. A film that fails leaves an incomplete file.

    >>> kp.write_video("fade-%d.png", [np.full((8, 8), step / 4) for step in range(5)])
    5
    """
    place = checked_path(path)
    check_rate("write_video", fps)
    pictures = _Pictures(frames, check_limits("write_video", limits))
    suffix = place.suffix.lower()
    write = _write_files if suffix in _PICTURES else _write_gif if suffix == ".gif" else _write_video
    write(place, pictures, float(fps))
    return pictures.count


def checked_path(path: str | PathLike[str]) -> Path:
    """The path of a film. Raises the errors of `write_video` about it."""
    place = Path(as_path(path))
    suffix = place.suffix.lower()
    if suffix not in (*_VIDEOS, ".gif", *_PICTURES):
        raise InvalidArgumentError(
            f"{place} is not a film's name: give {', '.join(_VIDEOS)}, .gif, or a number and a picture's "
            "suffix, such as frame-%03d.png"
        )
    if suffix in _PICTURES and len(_NUMBER.findall(place.name)) > 1:
        raise InvalidArgumentError(f"{place} has two places for a number; give one, such as frame-%03d.png")
    if not place.parent.is_dir():
        raise NotFoundError(f"{place}: there is no folder {place.parent}")
    return place


class _Pictures:
    """The frames as pixels, (rows, columns, 3) of uint8, checked one by one."""

    def __init__(self, frames: Iterable[Any], limits: tuple[float, float] | None) -> None:
        self.count = 0
        self._frames = frames
        self._limits = limits

    def __iter__(self) -> Iterator[np.ndarray[Any, Any]]:
        size: tuple[int, ...] = ()
        for frame in self._frames:
            pixels = self._pixels(frame)
            size = size or pixels.shape
            if pixels.shape != size:
                raise InvalidArgumentError(
                    f"write_video: frame {self.count} has {pixels.shape[0]} rows and {pixels.shape[1]} "
                    f"columns, and the first has {size[0]} and {size[1]}"
                )
            self.count += 1
            yield pixels
        if not self.count:
            raise InvalidArgumentError("write_video: there are no frames")

    def _pixels(self, frame: Any) -> np.ndarray[Any, Any]:
        array = frame.read() if isinstance(frame, Memory) else frame
        if not isinstance(array, np.ndarray) or not is_picture(array.shape, array.dtype):
            found = f" of shape {array.shape} and {array.dtype}" if isinstance(array, np.ndarray) else ""
            raise InvalidArgumentError(
                f"write_video: frame {self.count} is {kind_of(frame)}{found}, not a picture; give (rows, "
                "columns[, 1, 3 or 4]) with at least 8 rows and columns"
            )
        return np.ascontiguousarray(rgba(array, self._limits)[..., :3])


def _write_files(place: Path, pictures: _Pictures, fps: float) -> None:
    image = _pillow()
    number = next(iter(_NUMBER.findall(place.name)), None)
    for index, pixels in enumerate(pictures):
        if number is None and index:
            raise InvalidArgumentError(
                f"{place} is one picture, and there are several: put a number into the name, such as "
                f"{place.stem}-%03d{place.suffix}"
            )
        name = place.name if number is None else place.name.replace(number, number % index)
        image.fromarray(pixels).save(place.with_name(name))


def _write_gif(place: Path, pictures: _Pictures, fps: float) -> None:
    image = _pillow()
    made = (image.fromarray(pixels) for pixels in pictures)
    first = next(made)
    # GIFs count in hundredths of a second, and browsers take less than two of them as ten.
    duration = max(20, 10 * round(100 / fps))
    first.save(place, save_all=True, append_images=made, duration=duration, loop=0)


def _write_video(place: Path, pictures: _Pictures, fps: float) -> None:
    try:
        import av
    except ImportError:
        raise _missing("av") from None
    made = iter(pictures)
    first = next(made)
    rows, columns = (size + size % 2 for size in first.shape[:2])
    with av.open(place, "w") as container:
        stream: Any = container.add_stream(
            container.default_video_codec, rate=Fraction(fps).limit_denominator(1001)
        )
        stream.width, stream.height, stream.pix_fmt = columns, rows, "yuv420p"
        for pixels in itertools.chain([first], made):
            more = ((0, rows - pixels.shape[0]), (0, columns - pixels.shape[1]), (0, 0))
            frame = av.VideoFrame.from_ndarray(np.pad(pixels, more, mode="edge"), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise _missing("Pillow") from None
    return Image


def _missing(library: str) -> FailedPreconditionError:
    return FailedPreconditionError(
        f"this film needs {library}, which is missing: pip install 'kompute-py[video]'"
    )
