"""Principal components, then k-means: thirteen measurements of wines become two, and fall into three groups.

The largest eigenvectors of the covariance come from orthogonal iteration: multiply, orthogonalise, repeat.
Then each wine joins the nearest centre, and each centre becomes the mean of its wines. Both loops are ready
operations from `kp.ops`, repeated in one submission. scikit-learn's PCA and KMeans must find the same.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA

import kompute_py as kp

GROUPS = 3
SCALE = kp.ops.elementwise("(x - mean) / spread", name="scale")
PROJECT = kp.ops.elementwise("b - along * a", name="project")
UNIT = kp.ops.elementwise("a / length", name="unit")
DISTANCE = kp.ops.reduction("(x - centre) * (x - centre)", name="distance")
MEMBER = kp.ops.elementwise("where(nearest == group, 1.0, 0.0)", dtype="float32", name="member")
CENTRE = kp.ops.elementwise("sums / maximum(counts, 1)", name="centre")


def principal_axes(mgr: kp.Manager, x: kp.Tensor) -> kp.Tensor:
    """The two axes along which the rows of `x`, with mean zero, vary most."""
    ops, axes = kp.ops, mgr.tensor(np.random.default_rng(0).normal(size=(2, x.shape[1])))
    first, second = axes[0], axes[1]
    covariance = ops.matmul(x, x, transpose_a=True)
    turned, length, along = mgr.zeros(axes.shape), mgr.zeros(()), mgr.zeros(())
    once = [
        ops.matmul.op(axes, covariance, out=turned),
        ops.vector_norm.op(turned[0], out=length),
        UNIT.op(turned[0], length, out=first),
        ops.dot.op(first, turned[1], out=along),
        PROJECT.op(turned[1], along, first, out=second),
        ops.vector_norm.op(second, out=length),
        UNIT.op(second, length, out=second),
    ]
    mgr.sequence().record(kp.OpRepeat(once, 200)).eval()
    return axes


def groups(mgr: kp.Manager, points: kp.Tensor, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The centres after thirty steps of k-means, and the group of each point."""
    ops, count = kp.ops, points.shape[0]
    centres, names = mgr.tensor(start), mgr.tensor_t(np.arange(GROUPS, dtype=np.int32))
    distances, nearest = mgr.zeros((count, GROUPS)), ops.argmin(mgr.zeros((count, 1)), axis=1, keepdims=True)
    members, sums, counts = mgr.zeros((count, GROUPS)), mgr.zeros((GROUPS, 2)), mgr.zeros((GROUPS, 1))
    once = [
        DISTANCE.op(points.reshape(count, 1, 2), centres.reshape(1, GROUPS, 2), axis=2, out=distances),
        ops.argmin.op(distances, axis=1, keepdims=True, out=nearest),
        MEMBER.op(nearest, names, out=members),
        ops.matmul.op(members, points, transpose_a=True, out=sums),
        ops.sum.op(members, axis=0, out=counts.reshape(GROUPS)),
        CENTRE.op(sums, counts, out=centres),
    ]
    mgr.sequence().record(kp.OpRepeat(once, 30)).eval()
    return centres.read(), nearest.read()[:, 0]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__ and __doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=178, help="how many of the wines")
    parser.add_argument("--out", type=Path, default=Path("kompute-demo/principal_axes.png"))
    options = parser.parse_args(argv)
    wines: Any = load_wine()
    some = np.random.default_rng(1).permutation(len(wines.data))[: options.size]
    data = wines.data[some]
    with kp.Manager() as mgr, mgr:
        raw = mgr.tensor(data)
        x = SCALE(raw, kp.ops.mean(raw, axis=0), kp.ops.std(raw, axis=0))
        found_axes = principal_axes(mgr, x)
        turned = kp.ops.matmul(x, found_axes, transpose_b=True)
        axes, points = found_axes.read(), turned.read()
        start = points[:GROUPS]
        centres, found = groups(mgr, turned, start)

    scaled = (data - data.mean(0)) / data.std(0)
    reference = PCA(2).fit(scaled).components_
    angle = 1 - np.abs((axes * reference).sum(1)).min()  # an axis may point either way
    same: dict[str, Any] = {"init": start, "n_init": 1, "max_iter": 30, "tol": 0}
    theirs = KMeans(GROUPS, **same).fit(points)
    error = np.abs(centres - theirs.cluster_centers_).max()
    right = angle < 1e-4 and error < 1e-3 and (found == theirs.labels_).mean() > 0.99
    print(f"{len(data)} wines; axes off by {angle:.1e}, centres by {error:.1e} from scikit-learn")
    print("right" if right else "WRONG")

    figure = Figure(figsize=(7.2, 4.8), layout="constrained")
    plot = figure.add_subplot(xlabel="first principal component", ylabel="second")
    for kind, mark in zip(range(3), "os^", strict=True):
        of = wines.target[some] == kind
        colors = [f"C{each}" for each in found[of]]
        plot.scatter(
            points[of, 0], points[of, 1], c=colors, marker=mark, alpha=0.7, label=wines.target_names[kind]
        )
    plot.scatter(
        centres[:, 0], centres[:, 1], c="black", marker="+", s=200, label="centres of the groups (colours)"
    )
    plot.legend()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.out, dpi=100)
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
