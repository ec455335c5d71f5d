"""A network that reads handwritten digits, made of ready operations only.

No shader is written: matrix products, sums, `softmax` and one-line expressions from `kp.ops` make the forward
pass, the gradients and Adam's step (Kingma and Ba, 2015). One step is recorded once; evaluating it with other
rows of the data trains the network. scikit-learn's MLPClassifier, with the same layers, batches and steps,
must not read more than a point better.
"""

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import kompute_py as kp

BATCH, UNITS, RATE, DECAY1, DECAY2 = 64, 64, 2e-3, 0.9, 0.999
LAYER = kp.ops.elementwise("maximum(sum + bias, 0)", name="layer")
SHIFT = kp.ops.elementwise("sum + bias", name="shift")
ERROR = kp.ops.elementwise("(found - wanted) / count", name="error")
MASK = kp.ops.elementwise("where(hidden > 0, error, 0)", name="mask")
MEAN = kp.ops.elementwise("m + (1 - decay) * (g - m)", name="mean")
SQUARE = kp.ops.elementwise("v + (1 - decay) * (g * g - v)", name="square")
STEP = kp.ops.elementwise("w - pace * m / (sqrt(v) + 1e-8)", name="step")


def record_step(mgr: kp.Manager, weights: list[kp.Tensor]) -> tuple[kp.Sequence, list[kp.Tensor]]:
    """A step, and the tensors that it reads: rows of pixels, the digits they show, Adam's pace."""
    ops, step = kp.ops, mgr.sequence()
    w1, b1, w2, b2 = weights
    batch, labels, pace = mgr.zeros((BATCH, w1.shape[0])), mgr.zeros((BATCH, 10)), mgr.zeros(())
    hidden, found, back = mgr.zeros((BATCH, UNITS)), mgr.zeros((BATCH, 10)), mgr.zeros((BATCH, UNITS))
    gradients = [mgr.zeros(each.shape) for each in weights]
    step.record(kp.OpSyncDevice([batch, labels, pace]))
    step.record(ops.matmul.op(batch, w1, out=hidden), LAYER.op(hidden, b1, out=hidden))
    step.record(ops.matmul.op(hidden, w2, out=found), SHIFT.op(found, b2, out=found))
    step.record(ops.softmax.op(found, axis=1, out=found), ERROR.op(found, labels, float(BATCH), out=found))
    step.record(ops.matmul.op(found, w2, transpose_b=True, out=back), MASK.op(hidden, back, out=back))
    step.record(ops.matmul.op(batch, back, transpose_a=True, out=gradients[0]))
    step.record(ops.sum.op(back, axis=0, out=gradients[1]))
    step.record(ops.matmul.op(hidden, found, transpose_a=True, out=gradients[2]))
    step.record(ops.sum.op(found, axis=0, out=gradients[3]))
    for w, g in zip(weights, gradients, strict=True):
        m, v = mgr.zeros(w.shape), mgr.zeros(w.shape)
        step.record(MEAN.op(m, DECAY1, g, out=m), SQUARE.op(v, DECAY2, g, out=v))
        step.record(STEP.op(w, pace, m, v, out=w))
    return step, [batch, labels, pace]


def train(x: np.ndarray, y: np.ndarray, epochs: int) -> list[np.ndarray]:
    """The weights after `epochs` passes over the data."""
    rng = np.random.default_rng(3)
    with kp.Manager() as mgr:
        shapes = (x.shape[1], UNITS), (UNITS,), (UNITS, 10), (10,)
        limits = [np.sqrt(6 / (x.shape[1] + UNITS))] * 2 + [np.sqrt(6 / (UNITS + 10))] * 2
        weights = [mgr.tensor(rng.uniform(-b, b, s)) for b, s in zip(limits, shapes, strict=True)]
        (step, (batch, labels, pace)), steps, wanted = record_step(mgr, weights), 0, np.eye(10)[y]
        for _ in range(epochs):
            order = rng.permutation(len(x))
            for start in range(0, len(x) - BATCH + 1, BATCH):
                steps += 1
                rows = order[start : start + BATCH]
                batch.data()[:] = x[rows].ravel()
                labels.data()[:] = wanted[rows].ravel()
                pace.data()[:] = RATE * np.sqrt(1 - DECAY2**steps) / (1 - DECAY1**steps)
                step.eval()
        return [each.read() for each in weights]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__ and __doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=1408, help="digits to learn from, a multiple of 64")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--out", type=Path, default=Path("kompute-demo/digits_operations.png"))
    options = parser.parse_args(argv)
    digits: Any = load_digits()
    split = train_test_split(digits.data / 16, digits.target, train_size=options.size, random_state=0)
    x, new, y, labels = map(np.asarray, split)
    w1, b1, w2, b2 = train(x, y, options.epochs)
    read = (np.maximum(new @ w1 + b1, 0) @ w2 + b2).argmax(1)
    same = {"batch_size": BATCH, "learning_rate_init": RATE, "alpha": 0, "max_iter": options.epochs, "tol": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it was told when to stop
        theirs = MLPClassifier((UNITS,), **same, random_state=0).fit(x, y)
    good, their_good = (read == labels).mean(), theirs.score(new, labels)
    right = good > their_good - 0.01
    print(f"{good:.1%} of {len(new)} new digits read; scikit-learn reads {their_good:.1%}")
    print("right" if right else "WRONG")

    # Above, how the hidden units see; below, new digits, those that it misreads first and in red.
    tiles = [colormaps["RdBu"](0.5 + 0.5 * unit / np.abs(w1).max()) for unit in w1.T[:36]]
    shown = np.argsort(read == labels, kind="stable")[:18]
    tiles += [colormaps["bone" if read[i] == labels[i] else "Reds_r"](new[i]) for i in shown]
    framed = np.pad(np.reshape(tiles, (6, 9, 8, 8, 4)), ((0, 0), (0, 0), (1, 1), (1, 1), (0, 0)))[..., :3]
    picture = Image.fromarray((255 * framed.swapaxes(1, 2).reshape(60, 90, 3)).astype(np.uint8))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    picture.resize((720, 480), Image.Resampling.NEAREST).save(options.out)
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
