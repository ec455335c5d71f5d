"""Arrays that the command line names: .npy, .npz, pictures through Pillow, and generated arrays."""

from __future__ import annotations

import ast
import io
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from .._base.errors import InvalidArgumentError, KomputeError, NotFoundError
from .._base.texels import full_scale, with_alpha
from .._files.picture_files import opened_picture
from .common import require

Array = np.ndarray[Any, Any]

SOURCES = (
    "a file (.npy, .npz, .npz:KEY or a picture), zeros:SHAPE, ones:SHAPE, random:SHAPE, arange:N, or numbers"
)

_GENERATED = re.compile(r"(zeros|ones|random|arange):([^:]*)(?::([^:]+))?")
_NPZ = re.compile(r"(.+\.npz)(?::(.+))?", re.IGNORECASE)
_BYTE, _SHORT = 255, 65535


def load(text: str, name: str, base: np.dtype[Any] | None) -> tuple[Array, bool]:
    """(array, whether it is a picture) that `text` names for the binding `name` with scalars of `base`.

    A picture is uint8, uint16 or float32 (0 to 1) of shape (h, w) or (h, w, channels). A generated array has
    the dtype `base` if `text` names none. Raises NotFoundError if there is no such file, and
    InvalidArgumentError if there is no such array.
    """
    path = Path(text)
    packed = _NPZ.fullmatch(text)
    if packed is not None and not path.is_file():
        return _from_npz(Path(packed[1]), packed[2], name), False
    if not path.is_file():
        made = _generated(text, name, base)
        if made is None:
            made = _numbers(text)
        if made is None:
            what = "is a folder" if path.is_dir() else "is not a file"
            raise NotFoundError(f"{name}: {text} {what}; give {SOURCES}")
        return made, False
    if path.suffix.lower() == ".npz":
        return _from_npz(path, None, name), False
    if path.suffix.lower() == ".npy":
        return _from_npy(path, name), False
    return read_picture(path), True


def _from_npy(path: Path, name: str) -> Array:
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except (OSError, ValueError, EOFError) as error:
        raise InvalidArgumentError(f"{name}: {path} cannot be read as .npy: {error}") from error


def _from_npz(path: Path, key: str | None, name: str) -> Array:
    if not path.is_file():
        raise NotFoundError(f"{name}: {path} is not a file")
    import zipfile

    try:
        with np.load(path, allow_pickle=False) as file:
            keys = list(file.keys())
            if key is None:
                key = keys[0] if len(keys) == 1 else name
            if key not in keys:
                raise InvalidArgumentError(
                    f"{name}: {path} has no array {key!r}; it has {', '.join(keys) or 'none'}: "
                    f"give {path}:KEY"
                )
            return np.asarray(file[key])
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        if isinstance(error, KomputeError):
            raise
        raise InvalidArgumentError(f"{name}: {path} cannot be read as .npz: {error}") from error


def _generated(text: str, name: str, base: np.dtype[Any] | None) -> Array | None:
    match = _GENERATED.fullmatch(text)
    if match is None:
        return None
    kind, lengths, dtype_name = match.groups()
    shape = shape_of(lengths, f"{name}: {text}")
    dtype = dtype_of(dtype_name, f"{name}: {text}") if dtype_name else base or np.dtype(np.float32)
    try:
        if kind == "zeros":
            return np.zeros(shape, dtype)
        if kind == "ones":
            return np.ones(shape, dtype)
        if kind == "arange":
            return np.arange(math.prod(shape)).astype(dtype).reshape(shape)
        # The same numbers in every run, so that runs can be compared.
        generator = np.random.default_rng(0)
        if dtype.kind == "f":
            return generator.random(shape, np.float32).astype(dtype)
        return generator.integers(0, _BYTE // 2, shape, endpoint=True).astype(dtype)
    except MemoryError:
        raise InvalidArgumentError(f"{name}: {text} does not fit into the host's memory") from None
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{name}: {text}: {error}") from None


def _numbers(text: str) -> Array | None:
    value = literal(text)
    if value is None or isinstance(value, (str, Mapping)):
        return None
    try:
        array = np.array(value)
    except ValueError:  # rows of different lengths
        return None
    return array if array.dtype.kind in "biuf" and array.size else None


def literal(text: str) -> Any:
    """A number, a bool, a list of numbers (brackets are optional) or a dict; None for any other text."""
    plain = text.strip()
    if plain.lower() in ("true", "false"):
        return plain.lower() == "true"
    if plain.lower().lstrip("+-") in ("inf", "nan"):
        return float(plain)
    try:
        value = ast.literal_eval(plain)
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None
    return value if isinstance(value, (bool, int, float, list, tuple, dict)) else None


def shape_of(text: str, what: str) -> tuple[int, ...]:
    """ "512,512" or "512x512" as a shape. Raises InvalidArgumentError for other text or lengths below 1."""
    parts = re.split(r"[,x]", text.strip())
    if not all(part.strip().isdecimal() for part in parts) or not all(int(part) > 0 for part in parts):
        raise InvalidArgumentError(
            f"{what}: {text!r} is not a shape; give lengths of at least 1, such as 512,512"
        )
    return tuple(int(part) for part in parts)


def dtype_of(text: str, what: str) -> np.dtype[Any]:
    """The numeric NumPy dtype with a name. Raises InvalidArgumentError for any other text."""
    try:
        dtype = np.dtype(text)
    except (TypeError, ValueError, SyntaxError):
        dtype = None
    if dtype is None or dtype.kind not in "biufc":
        raise InvalidArgumentError(
            f"{what}: {text!r} is not a dtype of numbers; give one such as float32 or uint8"
        )
    return dtype


# -- pictures --------------------------------------------------------------------------------------


def read_picture(path: Path) -> Array:
    """The picture in a file as uint8, uint16 (only grey) or float32.

    The shape is (h, w) for grey, (h, w, 2) for grey with alpha, (h, w, 3) or (h, w, 4).
    """
    require("cli", ("PIL",))
    with opened_picture(path, "no .npy, no .npz and no picture that Pillow can read") as image:
        return _pixels(image)


def _pixels(image: Any) -> Array:
    if image.mode == "F":
        return np.asarray(image, np.float32)
    if image.mode.startswith("I"):
        return np.clip(np.asarray(image.convert("I")), 0, _SHORT).astype(np.uint16)
    if image.mode == "1":
        image = image.convert("L")
    elif image.mode not in ("L", "LA", "RGB", "RGBA"):
        image = image.convert("RGBA" if image.has_transparency_data else "RGB")
    return np.asarray(image)


def with_channels(pixels: Array, count: int) -> Array:
    """A picture with 1 to 4 channels. Grey is the luminance (ITU-R 601); a missing alpha becomes opaque."""
    full = full_scale(pixels.dtype)
    own = pixels.shape[2] if pixels.ndim == 3 else 1
    planes = pixels.reshape(*pixels.shape[:2], own)
    if own == count:
        return planes[..., 0] if count == 1 else planes
    if (own, count) == (3, 4):
        return with_alpha(planes)
    colors, alpha = (
        (planes[..., : own - 1], planes[..., own - 1 :])
        if own in (2, 4)
        else (planes, np.full((*planes.shape[:2], 1), full, planes.dtype))
    )
    if count <= 2 and colors.shape[2] == 3:
        grey = colors @ np.array([0.299, 0.587, 0.114])
        grey = grey.astype(pixels.dtype) if pixels.dtype.kind == "f" else np.rint(grey).astype(pixels.dtype)
        colors = grey[..., np.newaxis]
    elif count >= 3 and colors.shape[2] == 1:
        colors = np.repeat(colors, 3, axis=2)
    if count == 1:
        return np.ascontiguousarray(colors[..., 0])
    return np.concatenate([colors, alpha], axis=2) if count in (2, 4) else np.ascontiguousarray(colors)


def is_picture_name(path: Path) -> bool:
    """Whether Pillow can write a picture to a file with this name."""
    require("cli", ("PIL",))
    from PIL import Image

    Image.init()
    return Image.registered_extensions().get(path.suffix.lower()) in Image.SAVE


def save(path: Path, arrays: Mapping[str, Array]) -> None:
    """Writes .npy (for one array) or .npz. Raises KomputeError if it cannot be written."""

    def write(file: IO[bytes]) -> None:
        if path.suffix.lower() == ".npz":
            np.savez(file, **dict(arrays))  # type: ignore[arg-type]
        else:
            (array,) = arrays.values()
            np.save(file, array, allow_pickle=False)

    try:
        _write(path, write)
    except OSError as error:
        raise KomputeError(f"cannot write {path}: {error.strerror or error}") from error


def _write(path: Path, write: Callable[[IO[bytes]], None]) -> None:
    """Writes a file with `write`, which may seek in it. Opening a pipe waits for its reader, until Ctrl-C."""
    with path.open("wb") as file:
        if file.seekable():
            write(file)
        else:
            whole = io.BytesIO()
            write(whole)
            file.write(whole.getbuffer())


def save_picture(path: Path, name: str, values: Array) -> str:
    """Writes `values` of shape (h, w), (h, w, 1), (h, w, 3), (h, w, 4), or (h, w, 2) for grey with alpha.

    Floats range from 0 to 1, integers from 0 to 255. Values outside are clipped. The returned text reports
    clipping; it is "" if there was none. Raises InvalidArgumentError for other shapes and dtypes, and
    KomputeError if the file cannot be written.
    """
    from PIL import Image

    channels = values.shape[2] if values.ndim == 3 else 1
    if values.ndim not in (2, 3) or channels > 4:
        raise InvalidArgumentError(
            f"{name} has shape {values.shape}; a picture is (h, w) or (h, w, 1 to 4): "
            f"give --shape {name}=H,W,C, or write {path.with_suffix('.npy')}"
        )
    if values.dtype.kind not in "biuf":
        raise InvalidArgumentError(
            f"{name} holds {values.dtype}; a picture consists of real numbers: write an .npy"
        )
    if values.dtype.kind == "b":
        values = values.astype(np.float32)
    full = 1.0 if values.dtype.kind == "f" else _BYTE
    beyond = np.count_nonzero(~((values >= 0) & (values <= full)))
    note = ""
    if beyond:
        note = (
            f"{name}: {100 * beyond / values.size:.3g} % of the values lie outside 0 to {full:g} "
            f"and were clipped in {path.name}"
        )
    scaled = np.clip(np.nan_to_num(values.astype(np.float64)), 0, full) * (_BYTE / full)
    pixels = np.rint(scaled).astype(np.uint8)
    image = Image.fromarray(pixels[..., 0] if values.ndim == 3 and channels == 1 else pixels)
    suffix = path.suffix.lower()
    if suffix in (".jpg", ".jpeg", ".bmp", ".ppm", ".pgm") and image.mode in ("RGBA", "LA"):
        image = image.convert("RGB" if image.mode == "RGBA" else "L")
    try:
        if path.exists() and not path.is_file():  # a pipe, in which Pillow cannot seek
            _write(path, lambda file: image.save(file, Image.registered_extensions()[suffix]))
        else:
            image.save(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise KomputeError(f"cannot write {path}: {reason}") from error
    return note
