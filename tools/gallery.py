"""Remakes the pictures of the gallery, and stops at the first program with a wrong result.

python tools/gallery.py [NAME ...]
"""

import importlib
import sys
import time
from pathlib import Path

from PIL import Image

from kompute_py_gallery.__main__ import NAMES

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "gallery"
SHEET = ["mandelbrot", "path_tracer", "nbody", "raymarch", "reaction_diffusion", "heat"]
# Larger than a first try needs them.
OPTIONS = {
    "denoise": ["--size", "268"],
    "heat": ["--size", "240"],
    "kmeans": ["--size", "480"],
    "life": ["--size", "160"],
    "mandelbrot": ["--size", "480", "--most", "2000"],
    "matrix_products": ["--size", "512"],
    "nbody": ["--size", "480"],
    "particle_grid": ["--size", "600"],
    "path_tracer": ["--size", "400", "--passes", "120"],
    "raymarch": ["--size", "480"],
    "reaction_diffusion": ["--size", "160", "--steps", "8000"],
    "separable_filters": ["--size", "300"],
    "histogram_equalisation": ["--size", "340"],
}


def main(names: list[str]) -> int:
    """Runs the programs of these names, or all; returns the status of the process."""
    for name in names or NAMES:
        if name not in NAMES:
            print(f"There is no program {name!r}; there are {', '.join(NAMES)}", file=sys.stderr)
            return 2
        print(f"{name}:", flush=True)
        start = time.perf_counter()
        script = importlib.import_module(f"kompute_py_gallery.{name}")
        if script.main([*OPTIONS.get(name, []), "--out", str(PICTURES / f"{name}.webp")]):
            return 1
        print(f"  {time.perf_counter() - start:.1f} s", flush=True)
    draw_contact_sheet()
    return 0


def draw_contact_sheet() -> None:
    """Some of the pictures in two rows."""
    width, height, gap = 400, 266, 8
    sheet = Image.new("RGBA", (3 * width + 2 * gap, 2 * height + gap))
    for i, name in enumerate(SHEET):
        picture = Image.open(PICTURES / f"{name}.webp").resize((width, height), Image.Resampling.LANCZOS)
        sheet.paste(picture, (i % 3 * (width + gap), i // 3 * (height + gap)))
    sheet.save(PICTURES / "contact_sheet.webp")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
