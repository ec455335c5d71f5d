"""A photograph is freed from stripes and noise in the frequency domain.

Its Fourier transform has the stripes as two bright points: `argmax` finds them, and a notch removes them.
Then each frequency is weakened as its power is close to the noise's (Wiener's filter), and the inverse
transform gives the picture. All of it is ready operations from `kp.ops` and two expressions. NumPy must get
the same picture, and it must be closer to the original.
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image
from skimage.data import camera

import kompute_py as kp

NOISE, STRIPES, LOW, NOTCH = 0.1, 0.25, 0.09, 3.0
POWER = kp.ops.elementwise("where(fx * fx + fy * fy > low * low, real(f)**2 + imag(f)**2, 0)", name="power")
CLEAN = kp.ops.elementwise(
    "_p = real(f)**2 + imag(f)**2;"
    "_near = minimum((x - px)**2 + (y - py)**2, (width - x - px)**2 + (height - y - py)**2);"
    "f * where(_near < notch * notch, 0, maximum(1 - noise / maximum(_p, 1e-9), 0))",
    name="clean",
)


def spoiled(photo: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The photograph with stripes and noise."""
    rows, columns = np.indices(photo.shape)
    stripes = np.sin(2 * np.pi * (columns * 0.21 + rows * 0.12))
    return (photo + STRIPES * stripes + rng.normal(0, NOISE, photo.shape)).astype(np.float32)


def numbers(shape: tuple[int, int]) -> tuple[list[np.ndarray], float]:
    """For each frequency its distances and its place along both axes; the noise's power in one."""
    height, width = shape
    fy, fx = np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width)[None, :]
    y, x = np.arange(height)[:, None], np.arange(width)[None, :]
    # A frequency that is mere noise keeps little: three times the mean power is taken away.
    return [each.astype(np.float32) for each in (fx, fy, x, y)], 3 * NOISE**2 * height * width


def denoised(picture: np.ndarray) -> np.ndarray:
    height, width = picture.shape
    (fx, fy, x, y), noise = numbers(picture.shape)
    with kp.Manager() as mgr, mgr:
        spectrum = kp.ops.fft2(mgr.tensor_t(picture.astype(np.complex64)))
        power = POWER(f=spectrum, fx=fx, fy=fy, low=LOW)
        py, px = divmod(int(kp.ops.argmax(power)), width)
        sizes = {"width": width, "height": height, "notch": NOTCH, "noise": noise}
        cleaned = CLEAN(f=spectrum, x=x, y=y, px=float(px), py=float(py), **sizes)
        return kp.ops.ifft2(cleaned).read().real


def by_numpy(picture: np.ndarray) -> np.ndarray:
    height, width = picture.shape
    (fx, fy, x, y), noise = numbers(picture.shape)
    spectrum = np.fft.fft2(picture)
    power = np.abs(spectrum) ** 2
    py, px = np.unravel_index(np.argmax(np.where(fx**2 + fy**2 > LOW**2, power, 0)), power.shape)
    near = np.minimum((x - px) ** 2 + (y - py) ** 2, (width - x - px) ** 2 + (height - y - py) ** 2)
    return np.real(np.fft.ifft2(spectrum * np.where(near < NOTCH**2, 0, np.maximum(1 - noise / power, 0))))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__ and __doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=300, help="rows of the photograph; any number")
    parser.add_argument("--out", type=Path, default=Path("kompute-demo/denoise.png"))
    options = parser.parse_args(argv)
    whole = Image.fromarray(camera()).resize((options.size, options.size), Image.Resampling.LANCZOS)
    photo = np.asarray(whole, np.float32) / 255
    before = spoiled(photo, np.random.default_rng(0))
    after, expected = denoised(before), by_numpy(before)
    error = np.abs(after - expected).max()
    decibels = [-10 * np.log10(np.mean((each - photo) ** 2)) for each in (before, after)]
    right = error < 1e-3 and decibels[1] > decibels[0] + 6
    print(f"from {decibels[0]:.1f} to {decibels[1]:.1f} dB; largest difference to NumPy {error:.1e}")
    print("right" if right else "WRONG")

    middle = slice(options.size // 8, options.size // 8 + options.size * 3 // 4)
    pair = np.hstack([before[:, middle], after[:, middle]]).clip(0, 1)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray((255 * pair).astype(np.uint8)).save(options.out)
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
