"""The gallery's histogram equalisation with Taichi."""

import argparse
from pathlib import Path

import numpy as np
import taichi as ti
from PIL import Image
from skimage.data import moon


@ti.kernel
def equalise_field(pixels: ti.template(), counts: ti.template(), sums: ti.template(), mapped: ti.template()):
    for grey in counts:
        counts[grey] = 0
    for y, x in pixels:
        counts[int(pixels[y, x])] += 1  # atomic
    for _ in range(1):
        total = ti.u32(0)
        for grey in range(256):
            total += counts[grey]
            sums[grey] = total
    for y, x in pixels:
        mapped[y, x] = ti.u8(sums[int(pixels[y, x])] * 255 // sums[255])


def equalise(pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How often each grey occurs, and the photograph with its greys spread evenly."""
    ti.init(arch=ti.vulkan)
    before, after = (ti.field(ti.u8, pixels.shape) for _ in range(2))
    counts, sums = (ti.field(ti.u32, 256) for _ in range(2))
    before.from_numpy(pixels)
    equalise_field(before, counts, sums, after)
    return counts.to_numpy(), after.to_numpy()


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=320, help="rows of the picture")
    parser.add_argument("--out", type=Path, default=Path("kompute-demo/histogram_equalisation_taichi.png"))
    options = parser.parse_args(argv)
    height, width = options.size // 8 * 8, options.size // 8 * 12
    photo = Image.fromarray(moon()).crop((0, 85, 512, 85 + 341)).resize((width, height))
    pixels = np.ascontiguousarray(photo)
    counts, after = equalise(pixels)

    expected = np.bincount(pixels.ravel(), minlength=256)
    sums = expected.cumsum()
    right = np.array_equal(counts, expected) and np.array_equal(after, (sums * 255 // sums[-1])[pixels])
    print(f"{pixels.shape} pixels: {'the same as NumPy, right' if right else 'WRONG'}")

    picture = np.where(np.arange(width) < width // 2, pixels, after)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture.astype(np.uint8)).save(options.out)
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
