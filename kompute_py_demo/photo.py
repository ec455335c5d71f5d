"""Loads the photograph from any format, turns it upright and converts it to RGBA with 16 bits per channel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from kompute_py._base.errors import InvalidArgumentError, NotFoundError
from kompute_py._files.picture_files import opened_picture

_WHITE = (255, 255, 255, 255)
_FULL = 65535


@dataclass(frozen=True)
class Photo:
    """A picture on the host: mode RGB, or I with grey values from 0 to 65535."""

    name: str
    image: Image.Image

    @property
    def width(self) -> int:
        """The number of pixels in a row."""
        return self.image.width

    @property
    def height(self) -> int:
        """The number of rows."""
        return self.image.height

    def fitted(self, most_pixels: int) -> Photo:
        """This photo, or a smaller one in the same proportions if it has more than `most_pixels`.

        Raises InvalidArgumentError if these proportions need more pixels.
        """
        pixels = self.width * self.height
        if pixels <= most_pixels:
            return self
        scale = math.sqrt(most_pixels / pixels)
        width, height = math.floor(self.width * scale), math.floor(self.height * scale)
        if width < 1 or height < 1:
            raise InvalidArgumentError(
                f"{self.name} is {self.width} x {self.height} pixels, and no picture of these proportions "
                f"fits in {most_pixels} pixels"
            )
        return Photo(self.name, self.image.resize((width, height), Image.Resampling.LANCZOS))

    def pixels(self) -> np.ndarray:
        """The pixels as a uint16 array of shape (height, width, 4): red, green, blue, and 65535 as alpha."""
        made = np.full((self.height, self.width, 4), _FULL, np.uint16)
        values = np.asarray(self.image)
        if self.image.mode == "I":
            made[..., :3] = np.clip(values, 0, _FULL)[..., np.newaxis]
        else:
            made[..., :3] = values
            made[..., :3] *= 257  # 255 becomes 65535, exactly
        return made


def load_photo(path: Path | None) -> Photo:
    """The picture in a file of any format and mode that Pillow reads; with None, scikit-image's astronaut.

    The camera's orientation is applied, and transparent parts become white. Raises NotFoundError if there is
    no such file, and InvalidArgumentError if the file is not a picture.
    """
    if path is None:
        from skimage.data import astronaut

        return Photo("astronaut (scikit-image)", Image.fromarray(astronaut()))
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise NotFoundError(f"{path} {what}; give the path of a PNG or JPEG file")
    with opened_picture(path, "no picture that Pillow can read; give a PNG or JPEG file") as image:
        return Photo(path.name, _plain(image))


def _plain(image: Image.Image) -> Image.Image:
    """`image` in mode RGB, or in mode I if it is grey with 16 bits."""
    if image.mode.startswith("I"):
        return image.convert("I")
    if image.has_transparency_data:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, _WHITE), image)
    return image.convert("RGB")
