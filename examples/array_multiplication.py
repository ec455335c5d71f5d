"""Kompute's introduction, in kompute_py: two tensors are multiplied on the device, and the result is
accumulated.

python examples/array_multiplication.py
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

import kompute_py as kp

SHADER = """
#version 450

layout(local_size_x = 64) in;

layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) readonly buffer B { float b[]; };
layout(set = 0, binding = 2) buffer Products { uint products[]; };
layout(set = 0, binding = 3) buffer Scaled { uint scaled[]; };

layout(constant_id = 0) const float FACTOR = 1.0;
layout(push_constant) uniform Constants { float offset; };

void main() {
    const uint index = gl_GlobalInvocationID.x;
    if (index < a.length()) {
        products[index] += uint(a[index] * b[index]);
        scaled[index] += uint(a[index] * FACTOR + offset);
    }
}
"""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__ and __doc__.splitlines()[0])
    parser.add_argument("--device", help="a part of the device's name")
    parser.add_argument("--size", type=int, default=1000, help="elements of each tensor")
    options = parser.parse_args(argv)

    host_a = np.full(options.size, 2.0)
    host_b = np.arange(options.size)
    with kp.Manager(options.device) as mgr:
        a, b = mgr.tensor(host_a), mgr.tensor(host_b)
        products = mgr.zeros(options.size, np.uint32)
        scaled = mgr.zeros(options.size, np.uint32)
        tensors = [a, b, products, scaled]
        algorithm = mgr.algorithm(
            tensors,
            kp.compile(SHADER),
            workgroup=(-(-options.size // 64), 1, 1),
            spec_consts=[2],
            push_consts=[2],
        )
        # Upload, two dispatches with different push constants, download: one submission. The second dispatch
        # reads what the first one wrote; the barrier between them is put in place.
        (
            mgr.sequence()
            .record(kp.OpSyncDevice(tensors))
            .record(kp.OpAlgoDispatch(algorithm))
            .record(kp.OpAlgoDispatch(algorithm, [3]))
            .record(kp.OpSyncLocal([products, scaled]))
            .eval()
        )
        print(f"{mgr!r}")
        print("products:", products)
        print("scaled:  ", scaled)
        right = np.array_equal(products.data(), 2 * (host_a * host_b).astype(np.uint32)) and np.array_equal(
            scaled.data(), np.full(options.size, (2 * 2 + 2) + (2 * 2 + 3), np.uint32)
        )
    print("right" if right else "WRONG: NumPy gives other numbers")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
