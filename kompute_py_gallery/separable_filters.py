"""Separable filters: a photograph is blurred by rows and then by columns, and turned into an ink drawing.

A Gaussian blur in two dimensions is one along the rows and then one along the columns: 2 (2 r + 1) reads
for a pixel instead of (2 r + 1)². One shader does both; a specialization constant says along which axis.
Two blurs of different width and their difference, thresholded, make the ink. A sampler repeats the pixels
at the edges. SciPy's gaussian_filter must agree.
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.ndimage import gaussian_filter
from skimage.data import chelsea

import kompute_py as kp

BLUR = """
#version 450
layout(local_size_x = 16, local_size_y = 8) in;
layout(constant_id = 0) const int AXIS = 0;
layout(binding = 0) uniform sampler2D source;
layout(binding = 1, rgba32f) writeonly uniform image2D blurred;
layout(push_constant) uniform Filter { float sigma; int radius; };

void main() {
    const ivec2 size = imageSize(blurred), at = ivec2(gl_GlobalInvocationID.xy);
    if (any(greaterThanEqual(at, size))) return;
    vec4 sum = vec4(0);
    float weights = 0.0;
    for (int i = -radius; i <= radius; ++i) {
        const float weight = exp(-0.5 * float(i * i) / (sigma * sigma));
        const vec2 there = vec2(at) + (AXIS == 0 ? vec2(i, 0) : vec2(0, i));
        sum += weight * texture(source, (there + 0.5) / vec2(size));
        weights += weight;
    }
    imageStore(blurred, at, sum / weights);
}
"""
INK = """
#version 450
layout(local_size_x = 16, local_size_y = 8) in;
layout(binding = 0, rgba32f) readonly uniform image2D fine;
layout(binding = 1, rgba32f) readonly uniform image2D coarse;
layout(binding = 2, rgba8) writeonly uniform image2D drawing;
layout(push_constant) uniform Pen { float pressure, softness; };

void main() {
    const ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    if (any(greaterThanEqual(at, imageSize(drawing)))) return;
    const vec3 a = imageLoad(fine, at).rgb, b = imageLoad(coarse, at).rgb;
    const float sharpened = dot(vec3(0.2126, 0.7152, 0.0722), a + pressure * (a - b));
    const float light = smoothstep(0.4 - softness, 0.4 + softness, sharpened);
    imageStore(drawing, at, vec4(mix(vec3(0.16, 0.13, 0.24), vec3(1.0, 0.97, 0.9), light), 1));
}
"""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__ and __doc__.splitlines()[0])
    parser.add_argument("image", nargs="?", type=Path, help="a photograph (default: scikit-image's cat)")
    parser.add_argument("--size", type=int, default=300, help="rows of the photograph")
    parser.add_argument("--out", type=Path, default=Path("kompute-demo/separable_filters.png"))
    options = parser.parse_args(argv)
    photo = (Image.open(options.image) if options.image else Image.fromarray(chelsea())).convert("RGBA")
    photo = photo.resize((photo.width * options.size // photo.height, options.size))
    pixels, shape = np.asarray(photo) / np.float32(255), (photo.height, photo.width)
    sigmas = options.size / 300, options.size / 60

    with kp.Manager() as mgr:
        source, edge = mgr.image(pixels), mgr.sampler("nearest", "clamp_to_edge")
        rows, drawing = mgr.image_empty(shape), mgr.image_empty(shape, "rgba8")
        blurs = [mgr.image_empty(shape) for _ in sigmas]
        blur = mgr.kernel(BLUR)
        along_rows, along_columns = blur.specialize(AXIS=0), blur.specialize(AXIS=1)
        pipeline = mgr.sequence()
        for sigma, blurred in zip(sigmas, blurs, strict=True):
            width = {"sigma": sigma, "radius": int(4 * sigma + 0.5)}
            pipeline.record(along_rows.bind(source.sampled(edge), rows, **width))
            pipeline.record(along_columns.bind(rows.sampled(edge), blurred, **width))
        pipeline.record(mgr.kernel(INK).bind(*blurs, drawing, pressure=5.0, softness=0.15)).eval()
        fine, coarse, ink = blurs[0].read(), blurs[1].read(), drawing.read()

    expected = [gaussian_filter(pixels, (sigma, sigma, 0), mode="nearest") for sigma in sigmas]
    error = np.abs(np.array([fine, coarse]) - expected).max()
    right = error < 1e-5
    print(f"{shape} pixels, largest difference to SciPy {error:.1e}: {'right' if right else 'WRONG'}")

    thirds = np.arange(photo.width) * 3 // photo.width
    picture = np.choose(thirds[:, np.newaxis], [np.asarray(photo), (255 * coarse).astype(np.uint8), ink])[
        ..., :3
    ]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture).save(options.out)
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
