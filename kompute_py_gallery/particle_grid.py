"""Particles that repel each other, found through a grid that is sorted anew in each step.

Each particle has the number of its cell as key. A radix sort (`kp.ops.sort_by_key`) puts the particles of a
cell side by side, `kp.ops.searchsorted` finds where each cell begins, and a kernel of one's own visits only
the nine cells around. A step is recorded once. SciPy's KDTree must find the same forces, and in the end the
particles must keep their distance.
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.spatial import KDTree

import kompute_py as kp

PUSH = 0.3  # of the radius, for one neighbour in the same place
CELL = kp.ops.elementwise(
    "uint32(floor(minimum(y * cells, cells - 1)) * cells + floor(minimum(x * cells, cells - 1)))", name="cell"
)
MOVE = """
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer Places { vec2 places[]; };
layout(binding = 1) readonly buffer Order { uint order[]; };
layout(binding = 2) readonly buffer Begin { uint begin[]; };
layout(binding = 3) writeonly buffer Moved { vec2 moved[]; };
layout(push_constant) uniform Grid { uint cells; float rate; };

void main() {
    const uint i = gl_GlobalInvocationID.x;
    if (i >= places.length()) return;
    const float radius = 1.0 / float(cells);
    const vec2 here = places[i];
    const ivec2 cell = min(ivec2(here * float(cells)), ivec2(cells - 1));
    vec2 force = vec2(0);
    for (int y = max(cell.y - 1, 0); y <= min(cell.y + 1, int(cells) - 1); ++y)
        for (int x = max(cell.x - 1, 0); x <= min(cell.x + 1, int(cells) - 1); ++x)
            for (uint k = begin[y * cells + x]; k < begin[y * cells + x + 1]; ++k) {
                const vec2 away = here - places[order[k]];
                const float d = length(away);
                if (d > 0.0 && d < radius) force += away / d * (1.0 - d / radius);
            }
    moved[i] = clamp(here + rate * radius * force, 0.0, 0.999999);
}
"""


def record_step(mgr: kp.Manager, places: kp.Tensor, cells: int) -> kp.Sequence:
    """One step of all particles."""
    count = places.shape[0]
    keys, order = mgr.zeros(count, np.uint32), mgr.tensor_t(np.arange(count, dtype=np.uint32))
    sorted_keys, sorted_order = mgr.zeros(count, np.uint32), mgr.zeros(count, np.uint32)
    every = mgr.tensor_t(np.arange(cells * cells + 1, dtype=np.uint32))
    begin, moved = kp.ops.searchsorted(sorted_keys, every), mgr.zeros((count, 2))
    first = mgr.zeros(begin.shape, np.uint32)
    return mgr.sequence().record(
        CELL.op(x=places[:, 0], y=places[:, 1], cells=float(cells), out=keys),
        kp.ops.sort_by_key.op(keys, order, out=(sorted_keys, sorted_order)),
        kp.ops.searchsorted.op(sorted_keys, every, out=begin),
        kp.ops.astype.op(begin, "uint32", out=first),
        mgr.kernel(MOVE).bind(places, sorted_order, first, moved, cells=cells, rate=PUSH, grid=count),
        kp.OpCopy([moved, places]),
        kp.OpSyncLocal([places]),
    )


def by_scipy(places: np.ndarray, cells: int) -> np.ndarray:
    """The places after a step."""
    pairs = KDTree(places).query_pairs(1 / cells, output_type="ndarray")
    away = places[pairs[:, 0]] - places[pairs[:, 1]]
    distance = np.linalg.norm(away, axis=1, keepdims=True)
    push = away / distance * (1 - distance * cells)
    force = np.zeros_like(places)
    np.add.at(force, pairs[:, 0], push)
    np.subtract.at(force, pairs[:, 1], push)
    return np.clip(places + PUSH / cells * force, 0, 0.999999)


def spacing(places: np.ndarray) -> float:
    """The mean distance to the nearest neighbour, over that of a square grid."""
    distances, _ = KDTree(places).query(places, 2)
    return distances[:, 1].mean() * np.sqrt(len(places))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__ and __doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=4000, help="particles")
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--out", type=Path, default=Path("kompute-demo/particle_grid.png"))
    options = parser.parse_args(argv)
    start = np.random.default_rng(0).random((options.size, 2)).astype(np.float32)
    cells = int(np.sqrt(options.size / 3))
    with kp.Manager() as mgr, mgr:
        places = mgr.tensor_t(start)
        step = record_step(mgr, places, cells).eval()
        error = np.abs(places.numpy() - by_scipy(start.astype(np.float64), cells)).max() * cells
        for _ in range(options.steps - 1):
            step.eval()
        end = places.read()
    before, after = spacing(start), spacing(end)
    right = error < 1e-4 and after > 0.75 > before
    print(f"{options.size} particles in {cells * cells} cells; first step off by {error:.1e} of a cell")
    print(f"distance to the nearest: {before:.2f}, then {after:.2f} of a square grid's")
    print("right" if right else "WRONG")

    figure = Figure(figsize=(6, 4), layout="constrained")
    for axes, shown in zip(figure.subplots(1, 2), (start, end), strict=True):
        cell = (shown * cells).astype(int)
        axes.scatter(*shown.T, s=12000 / options.size, c=(cell[:, 1] * 7 + cell[:, 0] * 3) % 10, cmap="tab10")
        axes.set(aspect="equal", xticks=[], yticks=[], xlim=(0, 0.75), ylim=(0, 1))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.out, dpi=100)
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
