"""The gallery's histogram equalisation with Taichi."""

import numpy as np
import taichi as ti


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
