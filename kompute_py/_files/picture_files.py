"""Opens picture files through Pillow: upright, with errors that describe the fault of the file."""

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
    """The picture in `path`, turned as its camera recorded; its pixels are decoded inside the block.

    Raises InvalidArgumentError if the file is not a picture (the message then says that it is `unknown`), is
    damaged or too large.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            # The warning is only about size. Pictures too large for the device are found, or scaled down,
            # later.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(path) as file:
                yield ImageOps.exif_transpose(file)
    except UnidentifiedImageError:
        raise InvalidArgumentError(f"{path} is {unknown}") from None
    except Image.DecompressionBombError as error:
        raise InvalidArgumentError(f"{path} is too large to read: {error}") from None
    except (OSError, SyntaxError, ValueError) as error:
        # Pillow's decoders raise any of these for truncated or damaged files.
        raise InvalidArgumentError(f"{path} cannot be read: {error}") from error
