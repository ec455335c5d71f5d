"""Pictures in files, opened through Pillow: turned upright, with errors that say what is wrong with the file."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from .._base.errors import InvalidArgumentError

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage


@contextmanager
def opened_picture(path: Path, unknown: str) -> Iterator[PillowImage]:
    """The picture in `path`, in the orientation that a camera noted; its pixels are decoded inside the block.

    Raises InvalidArgumentError for what is no picture, saying that it is `unknown`, and for one that is damaged or too large.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            # Only a warning of size: too large for the device is found, or scaled down, later.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(path) as file:
                yield ImageOps.exif_transpose(file)
    except UnidentifiedImageError:
        raise InvalidArgumentError(f"{path} is {unknown}") from None
    except Image.DecompressionBombError as error:
        raise InvalidArgumentError(f"{path} is too large to be read: {error}") from None
    except (OSError, SyntaxError, ValueError) as error:
        # Pillow's decoders raise any of these for a file that ends early or is damaged.
        raise InvalidArgumentError(f"{path} cannot be read: {error}") from error
