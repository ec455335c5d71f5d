"""The gallery's matrix products with Taichi, timed by the clock of the host."""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import taichi as ti
from matplotlib.figure import Figure


@ti.kernel
def naive(a: ti.template(), b: ti.template(), c: ti.template()):
    for y, x in c:
        total = 0.0
        for k in range(a.shape[1]):
            total += a[y, k] * b[k, x]
        c[y, x] = total


@ti.kernel
def tiled(a: ti.template(), b: ti.template(), c: ti.template(), tile: ti.template(), n: ti.i32):
    groups = (n + tile - 1) // tile
    ti.loop_config(block_dim=tile * tile)
    for invocation in range(groups * groups * tile * tile):
        group, local = invocation // (tile * tile), invocation % (tile * tile)
        j, i = local // tile, local % tile
        y, x = group // groups * tile + j, group % groups * tile + i
        tile_a = ti.simt.block.SharedArray((tile, tile), ti.f32)
        tile_b = ti.simt.block.SharedArray((tile, tile), ti.f32)
        total = 0.0
        for t in range(groups):
            tile_a[j, i] = a[y, t * tile + i] if y < n and t * tile + i < n else 0.0
            tile_b[j, i] = b[t * tile + j, x] if x < n and t * tile + j < n else 0.0
            ti.simt.block.sync()
            for k in range(tile):
                total += tile_a[j, k] * tile_b[k, i]
            ti.simt.block.sync()
        if y < n and x < n:
            c[y, x] = total


@ti.kernel
def blocked(a: ti.template(), b: ti.template(), c: ti.template()):
    for y, x in ti.ndrange(c.shape[0] // 4, c.shape[1] // 4):
        total = ti.Matrix.zero(ti.f32, 4, 4)
        for k in range(a.shape[1]):
            for j, i in ti.static(ti.ndrange(4, 4)):
                total[j, i] += a[4 * y + j, k] * b[k, 4 * x + i]
        for j, i in ti.static(ti.ndrange(4, 4)):
            c[4 * y + j, 4 * x + i] = total[j, i]


def products(left: np.ndarray, right: np.ndarray, tile: int) -> Iterator[tuple[str, np.ndarray, float]]:
    """The name, the product and the seconds of each kernel."""
    ti.init(arch=ti.vulkan)
    a, b, c = (ti.field(ti.f32, left.shape) for _ in range(3))
    a.from_numpy(left)
    b.from_numpy(right)
    for name, kernel, more in (
        ("naive", naive, ()),
        (f"tiles of {tile} x {tile}", tiled, (tile, len(left))),
        ("4 x 4 in registers", blocked, ()),
    ):
        seconds = []
        for _ in range(3):
            c.fill(np.nan)
            ti.sync()
            start = time.perf_counter()
            kernel(a, b, c, *more)
            ti.sync()
            seconds.append(time.perf_counter() - start)
        yield name, c.to_numpy(), min(seconds)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=256, help="rows and columns, a multiple of 4")
    parser.add_argument("--tile", type=int, default=16, help="side of the tiles")
    parser.add_argument("--out", type=Path, default=Path("kompute-demo/matrix_products_taichi.png"))
    options = parser.parse_args(argv)
    n, rng, speeds, wrong = options.size, np.random.default_rng(7), {}, 0
    left, right = rng.uniform(-1, 1, (2, n, n)).astype(np.float32)
    allowed = 2 * n * np.finfo(np.float32).eps * (np.abs(left) @ np.abs(right))
    for name, product, seconds in products(left, right, options.tile):
        speeds[name] = 2 * n**3 / seconds / 1e9
        correct = bool(np.all(np.abs(product - left @ right) <= allowed))
        wrong += not correct
        print(f"{name}: {speeds[name]:.2f} GFLOP/s, {'right' if correct else 'WRONG'}")

    figure = Figure(figsize=(7.2, 4.8), layout="constrained")
    axes = figure.subplots()
    bars = axes.barh(list(speeds), list(speeds.values()), color=["#9aa5b1", "#4c78a8", "#f58518"])
    axes.bar_label(bars, fmt="%.2f", padding=4)
    axes.set(xlabel="GFLOP/s", title=f"{n} x {n} product", xlim=(0, 1.15 * max(speeds.values())))
    axes.invert_yaxis()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.out)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
