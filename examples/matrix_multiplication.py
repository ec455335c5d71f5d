"""Matrix multiplication, naive and tiled: the tile's side is a specialization constant that also sets the
local size.

Both are checked against NumPy, and their speed comes from the device's timestamps.

    python examples/matrix_multiplication.py --size 1024
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

import kompute_py as kp

NAIVE = """
#version 450

layout(local_size_x = 16, local_size_y = 16) in;

layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) readonly buffer B { float b[]; };
layout(set = 0, binding = 2) writeonly buffer C { float c[]; };
layout(push_constant) uniform Size { uint n; };

void main() {
    const uint row = gl_GlobalInvocationID.y, column = gl_GlobalInvocationID.x;
    if (row >= n || column >= n) {
        return;
    }
    float sum = 0.0;
    for (uint k = 0; k < n; ++k) {
        sum += a[row * n + k] * b[k * n + column];
    }
    c[row * n + column] = sum;
}
"""

# A group holds one tile of A and one of B in shared memory: each value is read from the buffer once for TILE
# products.
TILED = """
#version 450

layout(local_size_x = 16, local_size_y = 16, local_size_x_id = 0, local_size_y_id = 0) in;
layout(constant_id = 0) const uint TILE = 16;

layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) readonly buffer B { float b[]; };
layout(set = 0, binding = 2) writeonly buffer C { float c[]; };
layout(push_constant) uniform Size { uint n; };

shared float tile_a[TILE * TILE];
shared float tile_b[TILE * TILE];

void main() {
    const uint x = gl_LocalInvocationID.x, y = gl_LocalInvocationID.y;
    const uint row = gl_WorkGroupID.y * TILE + y, column = gl_WorkGroupID.x * TILE + x;
    float sum = 0.0;
    for (uint first = 0; first < n; first += TILE) {
        // Zeros beyond the border add nothing; every invocation reaches the barriers.
        tile_a[y * TILE + x] = row < n && first + x < n ? a[row * n + first + x] : 0.0;
        tile_b[y * TILE + x] = column < n && first + y < n ? b[(first + y) * n + column] : 0.0;
        barrier();
        for (uint k = 0; k < TILE; ++k) {
            sum += tile_a[y * TILE + k] * tile_b[k * TILE + x];
        }
        barrier();
    }
    if (row < n && column < n) {
        c[row * n + column] = sum;
    }
}
"""

_RUNS = 3


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", help="a part of the device's name")
    parser.add_argument("--size", type=int, default=256, help="rows and columns of each matrix")
    parser.add_argument("--tile", type=int, default=16, help="the tile's side")
    options = parser.parse_args(argv)
    n, tile = options.size, options.tile

    rng = np.random.default_rng(7)
    left, right = (rng.uniform(-1, 1, (n, n)).astype(np.float32) for _ in range(2))
    start = time.perf_counter()
    expected = left @ right
    numpy_seconds = time.perf_counter() - start
    # A sum of n products in float32 is off by at most n roundings of the sum of their sizes, in whatever
    # order; NumPy's own sum may be off as much.
    allowed = 2 * n * np.finfo(np.float32).eps * (np.abs(left) @ np.abs(right))

    work = 2 * n**3
    print(f"{n} x {n} float32; NumPy on the CPU: {work / numpy_seconds / 1e9:.2f} GFLOP/s")
    wrong = 0
    with kp.Manager(options.device) as mgr:
        print(f"{mgr!r}")
        a, b, c = mgr.tensor(left), mgr.tensor(right), mgr.empty((n, n))
        mgr.sequence().record(kp.OpSyncDevice([a, b])).eval()
        groups, tiles = -(-n // 16), -(-n // tile)
        naive = mgr.algorithm([a, b, c], kp.compile(NAIVE), (groups, groups, 1), push_consts=[n])
        tiled = mgr.algorithm([a, b, c], kp.compile(TILED), (tiles, tiles, 1), [tile], [n])
        timed = mgr.get_device_properties()["timestamps_supported"]
        for name, algorithm in (("naive", naive), (f"tiles of {tile} x {tile}", tiled)):
            sequence = mgr.sequence(timestamps=timed)
            # Cleared before: a dispatch that writes nothing must not pass with the other one's numbers.
            sequence.record(kp.OpFill([c], float("nan"))).record(kp.OpAlgoDispatch(algorithm))
            sequence.record(kp.OpSyncLocal([c]))
            seconds = []
            for _ in range(_RUNS):
                start = time.perf_counter()
                sequence.eval()
                whole = time.perf_counter() - start
                seconds.append(sequence.timings()[1][1] if timed else whole)
            error = np.abs(c.numpy() - expected)
            right_result = bool(np.all(error <= allowed))
            wrong += not right_result
            print(
                f"  {name}: {work / min(seconds) / 1e9:.2f} GFLOP/s "
                f"{'by timestamps' if timed else 'with transfers: the device takes no timestamps'}; "
                f"largest difference to NumPy {np.max(error):.2g}, {'right' if right_result else 'WRONG'}"
            )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
