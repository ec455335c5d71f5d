"""A small neural network learns to read handwritten digits; the whole training runs on the device.

A network is matrix products. One shader makes them all: push constants say which matrix is read transposed,
and a specialization constant says what becomes of the sum. Views of a tensor are the batches, so an epoch
over all of them is recorded once and evaluated thirty times. NumPy trains the same network and must get the
same weights.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import kompute_py as kp

BATCH, UNITS, RATE = 64, 36, 0.3
SET, RECTIFY, MASK, DESCEND = range(4)
PRODUCT = """
#version 450
layout(local_size_x = 4, local_size_y = 16) in;
layout(constant_id = 0) const uint MODE = 0;
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) readonly buffer B { float b[]; };
layout(binding = 2) buffer C { float c[]; };
layout(push_constant) uniform Sizes { uint rows, columns, inner; uvec2 a_step, b_step; float rate; };
void main() {
    const uint x = gl_GlobalInvocationID.x, y = gl_GlobalInvocationID.y, i = y * columns + x;
    if (x >= columns || y >= rows) return;
    float sum = 0.0;
    for (uint k = 0; k < inner; ++k) sum += a[y * a_step.x + k * a_step.y] * b[k * b_step.x + x * b_step.y];
    if (MODE == 0) c[i] = sum;
    if (MODE == 1) c[i] = max(sum, 0.0);
    if (MODE == 2) c[i] = c[i] > 0.0 ? sum : 0.0;
    if (MODE == 3) c[i] -= rate * sum;
}
"""
SOFTMAX = """
#version 450
layout(local_size_x = 16) in;
layout(binding = 0) readonly buffer Wanted { float wanted[][10]; };
layout(binding = 1) buffer Scores { float scores[][10]; };  // become errors
void main() {
    const uint row = gl_GlobalInvocationID.x;
    float total = 0.0;
    if (row >= scores.length()) return;
    for (uint k = 0; k < 10; ++k) total += exp(scores[row][k]);
    for (uint k = 0; k < 10; ++k) scores[row][k] = exp(scores[row][k]) / total - wanted[row][k];
}
"""


def one_epoch(mgr: kp.Manager, x: kp.Tensor, wanted: kp.Tensor, w1: kp.Tensor, w2: kp.Tensor) -> kp.Sequence:
    """One step of gradient descent for each batch."""
    kernel, softmax, epoch = mgr.kernel(PRODUCT), mgr.kernel(SOFTMAX), mgr.sequence()

    def product(mode: int, a: kp.Tensor, b: kp.Tensor, c: kp.Tensor, turned: str = "") -> kp.OpBase:
        (height, width), rows, columns = a.shape, *c.shape
        inner, a_step = (height, (1, width)) if turned == "a" else (width, (width, 1))
        sizes = {"rows": rows, "columns": columns, "inner": inner, "a_step": a_step, "rate": RATE / BATCH}
        b_step = (1, inner) if turned == "b" else (columns, 1)
        return kernel.specialize(MODE=mode).bind(a, b, c, b_step=b_step, grid=(columns, rows), **sizes)

    hidden, passed, errors = mgr.zeros((BATCH, UNITS)), mgr.zeros((BATCH, UNITS)), mgr.zeros((BATCH, 10))
    for start in range(0, x.shape[0], BATCH):
        rows, labels = x[start : start + BATCH], wanted[start : start + BATCH]
        epoch.record(product(RECTIFY, rows, w1, hidden), kp.OpCopy([hidden, passed]))
        epoch.record(product(SET, hidden, w2, errors), softmax.bind(labels, errors, grid=BATCH))
        epoch.record(product(MASK, errors, w2, passed, turned="b"))
        epoch.record(product(DESCEND, hidden, errors, w2, turned="a"))
        epoch.record(product(DESCEND, rows, passed, w1, turned="a"))
    return epoch


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__ and __doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=1408, help="digits to learn from, a multiple of 64")
    parser.add_argument("--out", type=Path, default=Path("kompute-demo/digits_network.png"))
    options = parser.parse_args(argv)
    digits: Any = load_digits()
    rng = np.random.default_rng(4)
    pixels = np.column_stack([digits.data / 16, np.ones(len(digits.data))])  # the ones make the bias
    split = train_test_split(pixels, digits.target, train_size=options.size, random_state=0)
    x, new, y, labels = map(np.asarray, split)
    w1, w2, wanted = rng.normal(0, 0.2, (65, UNITS)), rng.normal(0, 0.2, (UNITS, 10)), np.eye(10)[y]
    with kp.Manager() as mgr:
        tensors = [mgr.tensor(each) for each in (x, wanted, w1, w2)]
        epoch = one_epoch(mgr, *tensors)
        for _ in range(30):
            epoch.eval()
        trained = [tensor.read() for tensor in tensors[2:]]

    for start in [*range(0, len(x), BATCH)] * 30:
        rows = x[start : start + BATCH]
        hidden = np.maximum(rows @ w1, 0)
        errors = np.exp(hidden @ w2)
        errors = errors / errors.sum(1, keepdims=True) - wanted[start : start + BATCH]
        passed = errors @ w2.T * (hidden > 0)
        w1, w2 = w1 - RATE / BATCH * rows.T @ passed, w2 - RATE / BATCH * hidden.T @ errors
    error = max(np.abs(trained[0] - w1).max(), np.abs(trained[1] - w2).max())
    good = (np.maximum(new @ trained[0], 0) @ trained[1]).argmax(1) == labels
    right = error < 1e-3 and good.mean() > 0.9
    print(f"{good.mean():.1%} of {len(new)} new digits read; largest difference to NumPy {error:.1e}")
    print("right" if right else "WRONG")

    # Above, what the hidden units look for; below, new digits, those that it misreads first and in red.
    tiles = [colormaps["RdBu"](0.5 + 0.5 * unit / np.abs(w1).max()) for unit in trained[0][:64].T]
    shown = np.argsort(good, kind="stable")[:18]
    tiles += [colormaps["bone" if good[i] else "Reds_r"](new[i, :64]) for i in shown]
    framed = np.pad(np.reshape(tiles, (6, 9, 8, 8, 4)), ((0, 0), (0, 0), (1, 1), (1, 1), (0, 0)))[..., :3]
    picture = Image.fromarray((255 * framed.swapaxes(1, 2).reshape(60, 90, 3)).astype(np.uint8))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    picture.resize((720, 480), Image.Resampling.NEAREST).save(options.out)
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
