"""k-means: a photograph in eight colours, its own.

Each pixel joins the nearest colour, then each colour becomes the mean of its pixels. Each workgroup sums up
its pixels in shared memory, then adds them to the whole: whole numbers, so the order of the atomics does
not matter. One step is recorded once and evaluated until the colours stand still. scikit-learn, from the
same start, must find the same colours.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from skimage.data import coffee
from sklearn.cluster import KMeans

import kompute_py as kp

COLORS = 8
ASSIGN = """
#version 450
layout(local_size_x = 128) in;
layout(constant_id = 0) const uint COLORS = 1;
layout(binding = 0) readonly buffer Pixels { uint pixels[]; };  // red, green, blue, unused: a byte each
layout(binding = 1) readonly buffer Colors { vec4 colors[]; };
layout(binding = 2) writeonly buffer Nearest { uint nearest[]; };
layout(binding = 3) buffer Sums { uint sums[]; };  // red, green, blue and the number of pixels of each colour
shared uint inside[4 * COLORS];

void main() {
    const uint i = gl_GlobalInvocationID.x, local = gl_LocalInvocationID.x;
    if (local < 4 * COLORS) inside[local] = 0;
    barrier();
    if (i < pixels.length()) {
        const uvec3 pixel = uvec3(pixels[i], pixels[i] >> 8, pixels[i] >> 16) & 255u;
        uint best = 0;
        for (uint k = 1; k < COLORS; ++k)
            if (distance(vec3(pixel), colors[k].rgb) < distance(vec3(pixel), colors[best].rgb)) best = k;
        nearest[i] = best;
        for (uint c = 0; c < 3; ++c) atomicAdd(inside[4 * best + c], pixel[c]);
        atomicAdd(inside[4 * best + 3], 1u);
    }
    barrier();
    if (local < 4 * COLORS) atomicAdd(sums[local], inside[local]);
}
"""
MOVE = """
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer Sums { uvec4 sums[]; };
layout(binding = 1) buffer Colors { vec4 colors[]; };
void main() {
    const uint k = gl_GlobalInvocationID.x;
    if (k < colors.length() && sums[k].w > 0) colors[k] = vec4(sums[k]) / float(sums[k].w);
}
"""


def cluster(pixels: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """The colours, the nearest one of each pixel, and how many steps it took."""
    with kp.Manager() as mgr:
        data, nearest = mgr.tensor_t(pixels.view(np.uint32).ravel()), mgr.empty(len(pixels), np.uint32)
        colors, sums = mgr.tensor(start), mgr.zeros(start.shape, np.uint32)
        assign, move = mgr.kernel(ASSIGN).specialize(COLORS=len(start)), mgr.kernel(MOVE)
        step = mgr.sequence().record(
            kp.OpFill([sums], 0),
            assign.bind(data, colors, nearest, sums.view(np.uint32)),
            move.bind(sums, colors),
            kp.OpSyncLocal([colors]),
        )
        before, steps = start, 0
        while steps < 300:
            steps += 1
            step.eval()
            if np.array_equal(colors.numpy(), before):
                break
            before = colors.numpy().copy()
        return before[:, :3], nearest.read(), steps


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__ and __doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=200, help="rows of the photograph")
    parser.add_argument("--out", type=Path, default=Path("kompute-demo/kmeans.png"))
    options = parser.parse_args(argv)
    photo = Image.fromarray(coffee()).convert("RGBA").resize((options.size * 3 // 2, options.size))
    pixels = np.asarray(photo).reshape(-1, 4)
    start = pixels[np.random.default_rng(0).choice(len(pixels), COLORS, replace=False)].astype(np.float32)
    colors, nearest, steps = cluster(pixels, start)

    same: dict[str, Any] = {"init": start[:, :3], "n_init": 1, "max_iter": 300, "tol": 0}
    reference = KMeans(COLORS, **same).fit(pixels[:, :3].astype(float))
    error = np.abs(colors - reference.cluster_centers_).max()
    right = error < 0.5
    print(f"{len(pixels)} pixels, {steps} steps; largest difference to scikit-learn {error:.2g} of 255")
    print("right" if right else "WRONG")

    order = np.argsort(colors.sum(1))
    share = np.cumsum(np.bincount(nearest, minlength=COLORS)[order]) / len(pixels)
    strip = np.searchsorted(share, (np.arange(photo.width) + 0.5) / photo.width)
    picture = colors[nearest].reshape(photo.height, photo.width, 3)
    picture[-photo.height // 12 :] = colors[order][strip]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture.round().astype(np.uint8)).save(options.out)
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
