"""The demo's pipeline as a script: blur, edges, tone curve and histogram of a photograph, recorded as one
sequence.

python examples/photo_pipeline.py photograph.jpg --out toned.png
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps
from skimage.data import astronaut

import kompute_py as kp

SHADERS = Path(__file__).resolve().parent.parent / "kompute_py_demo" / "shaders"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "image", nargs="?", type=Path, help="a PNG or JPEG (default: scikit-image's astronaut)"
    )
    parser.add_argument("--device", help="a part of the device's name")
    parser.add_argument("--out", type=Path, default=Path("kompute-demo/photo_pipeline.png"))
    parser.add_argument("--sigma", type=float, default=2.0, help="of the blur, in pixels, up to 7.75")
    options = parser.parse_args(argv)

    image = Image.fromarray(astronaut()) if options.image is None else Image.open(options.image)
    photo = np.asarray(ImageOps.exif_transpose(image).convert("RGBA")).astype(np.uint16) * 257
    height, width = photo.shape[:2]
    blur, sobel, tone, count = (
        kp.compile(SHADERS / f"{name}.comp") for name in ("blur", "sobel", "tone", "histogram")
    )

    with kp.Manager(options.device) as mgr:
        source = mgr.tensor_t(photo)
        rows = mgr.empty(photo.shape, np.uint16, "storage")  # the host never sees this one
        blurred = mgr.empty(photo.shape, np.uint16)
        edges = mgr.empty((height, width), np.float32)
        toned = mgr.empty(photo.shape, np.uint8)
        histogram = mgr.empty(256, np.uint32)

        # Groups are counted in what one group of the shader makes; see each shader's head.
        size, kernel = [width, height], [int(4 * options.sigma + 0.5), options.sigma]
        along_rows = mgr.algorithm(
            [source, rows], blur, (-(-width // 64), -(-height // 8)), [0, *kernel], size
        )
        along_columns = mgr.algorithm(
            [rows, blurred], blur, (-(-width // 8), -(-height // 64)), [1, *kernel], size
        )
        find_edges = mgr.algorithm([blurred, edges], sobel, (-(-width // 16), -(-height // 16)), [], size)
        pixels = width * height
        tone_curve = mgr.algorithm([blurred, edges, toned], tone, _groups(pixels, 256))
        count_levels = mgr.algorithm([toned, histogram], count, _groups(pixels, 4096))

        pipeline = (
            mgr.sequence()
            .record(kp.OpSyncDevice([source]))
            .record(kp.OpAlgoDispatch(along_rows))
            .record(kp.OpAlgoDispatch(along_columns))
            .record(kp.OpAlgoDispatch(find_edges))
            # exposure in stops, contrast, saturation, ink
            .record(kp.OpAlgoDispatch(tone_curve, [0.15, 0.6, 1.2, 2.0]))
            .record(kp.OpFill([histogram], 0))
            .record(kp.OpAlgoDispatch(count_levels))
            .record(kp.OpSyncLocal([edges, toned, histogram]))
        )
        pipeline.eval()
        print(f"{mgr!r}: {width} x {height} pixels")
        result, strongest, levels = (
            toned.numpy()[..., :3].copy(),
            float(edges.data().max()),
            histogram.data().copy(),
        )

    options.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(result).save(options.out)
    median = int(np.searchsorted(np.cumsum(levels), pixels / 2))
    print(f"strongest edge {strongest:.3f}, median luminance {median}: {options.out}")

    luminance = (result.astype(np.uint32) @ np.array([2126, 7152, 722], np.uint32) + 5000) // 10000
    right = np.array_equal(levels, np.bincount(luminance.ravel(), minlength=256))
    print(f"the histogram is the one that NumPy counts: {'right' if right else 'WRONG'}")
    return 0 if right else 1


def _groups(pixels: int, of_one: int) -> tuple[int, int]:
    """Groups in x and y: one axis alone ends at 65535 groups on many devices."""
    groups = -(-pixels // of_one)
    across = min(groups, 65535)
    return across, -(-groups // across)


if __name__ == "__main__":
    sys.exit(main())
