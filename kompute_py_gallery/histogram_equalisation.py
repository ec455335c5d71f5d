"""Histogram equalisation: a flat photograph of the moon gets the whole range of greys.

Three kernels make one recorded sequence. The first counts the greys: each workgroup counts in shared memory
and adds its counts to the whole with atomics. The second sums the counts up to each grey, in one workgroup.
The third gives each pixel the share of pixels that are darker or as dark. NumPy must have every count and
every pixel the same.
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image
from skimage.data import moon

import kompute_py as kp

COUNT = """
#version 450
layout(local_size_x = 256) in;
layout(binding = 0) readonly buffer Pixels { uint pixels[]; };  // four in each
layout(binding = 1) buffer Counts { uint counts[256]; };
shared uint inside[256];

void main() {
    const uint i = gl_GlobalInvocationID.x, local = gl_LocalInvocationID.x;
    inside[local] = 0;
    barrier();
    if (i < pixels.length())
        for (uint k = 0; k < 4; ++k) atomicAdd(inside[bitfieldExtract(pixels[i], int(8 * k), 8)], 1u);
    barrier();
    atomicAdd(counts[local], inside[local]);
}
"""
SUM = """
#version 450
layout(local_size_x = 256) in;
layout(binding = 0) readonly buffer Counts { uint counts[256]; };
layout(binding = 1) writeonly buffer Sums { uint sums[256]; };
shared uint inside[256];

void main() {
    const uint local = gl_LocalInvocationID.x;
    inside[local] = counts[local];
    for (uint step = 1; step < 256; step *= 2) {
        barrier();
        const uint before = local >= step ? inside[local - step] : 0;
        barrier();
        inside[local] += before;
    }
    sums[local] = inside[local];
}
"""
MAP = """
#version 450
layout(local_size_x = 256) in;
layout(binding = 0) readonly buffer Pixels { uint pixels[]; };
layout(binding = 1) readonly buffer Sums { uint sums[256]; };
layout(binding = 2) writeonly buffer Mapped { uint mapped[]; };

void main() {
    const uint i = gl_GlobalInvocationID.x;
    if (i >= pixels.length()) return;
    uint four = 0;
    for (int k = 0; k < 32; k += 8) four |= sums[bitfieldExtract(pixels[i], k, 8)] * 255 / sums[255] << k;
    mapped[i] = four;
}
"""


def equalise(pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How often each grey occurs, and the photograph with its greys spread evenly."""
    with kp.Manager() as mgr:
        before = mgr.tensor_t(pixels.view(np.uint32))
        counts, sums, after = (
            mgr.zeros(256, np.uint32),
            mgr.empty(256, np.uint32),
            mgr.empty(before.shape, np.uint32),
        )
        count, total, spread = mgr.kernel(COUNT), mgr.kernel(SUM), mgr.kernel(MAP)
        pipeline = mgr.sequence().record(
            kp.OpFill([counts], 0),
            count.bind(before, counts, grid=before.size()),
            total.bind(counts, sums),
            spread.bind(before, sums, after),
        )
        pipeline.eval()
        return counts.read(), after.read().view(np.uint8)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__ and __doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=320, help="rows of the picture")
    parser.add_argument("--out", type=Path, default=Path("kompute-demo/histogram_equalisation.png"))
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
