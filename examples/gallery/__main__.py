"""Remakes the pictures of the gallery, and stops at the first program whose result is wrong.

python -m examples.gallery [NAME ...]
"""

import importlib
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
PICTURES = FOLDER.parents[1] / "docs" / "gallery"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__main__")
# Larger than a first try needs them.
OPTIONS = {
    "heat": ["--size", "240"],
    "kmeans": ["--size", "480"],
    "life": ["--size", "160"],
    "mandelbrot": ["--size", "480", "--most", "2000"],
    "matrix_products": ["--size", "512"],
    "nbody": ["--size", "480"],
    "path_tracer": ["--size", "400", "--passes", "120"],
    "raymarch": ["--size", "480"],
    "reaction_diffusion": ["--size", "160", "--steps", "8000"],
    "separable_filters": ["--size", "300"],
    "histogram_equalisation": ["--size", "340"],
}


def main(names: list[str]) -> int:
    for name in names or NAMES:
        if name not in NAMES:
            print(f"There is no program {name!r}; there are {', '.join(NAMES)}", file=sys.stderr)
            return 2
        print(f"{name}:", flush=True)
        start = time.perf_counter()
        script = importlib.import_module(f"{__package__}.{name}")
        if script.main([*OPTIONS.get(name, []), "--out", str(PICTURES / f"{name}.webp")]):
            return 1
        print(f"  {time.perf_counter() - start:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
