"""Logistic regression: a classifier is trained on the device, on scikit-learn's breast cancer data.

Two dispatches make a step of gradient descent: the error of each sample, then the gradient of each weight,
for which a workgroup sums over the samples. Each reads what the one before it wrote. Ten steps are
recorded once, and evaluated until the loss stands still. scikit-learn's LogisticRegression has the same
optimum: the weights must agree.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import kompute_py as kp

STRENGTH = 0.1  # inverse strength of the penalty on large weights: scikit-learn's C
ERROR = """
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer Samples { float samples[]; };
layout(binding = 1) readonly buffer Labels { float labels[]; };
layout(binding = 2) readonly buffer Weights { float weights[]; };  // the bias first
layout(binding = 3) writeonly buffer Errors { float errors[]; };
layout(binding = 4) writeonly buffer Losses { float losses[]; };

void main() {
    const uint i = gl_GlobalInvocationID.x, features = weights.length() - 1;
    if (i >= labels.length()) return;
    float logit = weights[0];
    for (uint k = 0; k < features; ++k) logit += weights[k + 1] * samples[i * features + k];
    errors[i] = 1.0 / (1.0 + exp(-logit)) - labels[i];
    losses[i] = max(logit, 0.0) + log(1.0 + exp(-abs(logit))) - labels[i] * logit;  // does not overflow
}
"""
DESCEND = """
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer Samples { float samples[]; };
layout(binding = 1) readonly buffer Errors { float errors[]; };
layout(binding = 2) buffer Weights { float weights[]; };
layout(push_constant) uniform Training { float rate, penalty; };
shared float sums[64];

void main() {
    const uint weight = gl_WorkGroupID.x, local = gl_LocalInvocationID.x, features = weights.length() - 1;
    float sum = 0.0;
    for (uint i = local; i < errors.length(); i += 64)
        sum += errors[i] * (weight == 0 ? 1.0 : samples[i * features + weight - 1]);
    sums[local] = sum;
    for (uint half_size = 32; half_size > 0; half_size /= 2) {
        barrier();
        if (local < half_size) sums[local] += sums[local + half_size];
    }
    if (local > 0) return;
    const float shrink = weight == 0 ? 0.0 : penalty * weights[weight];
    weights[weight] -= rate * (sums[0] / float(errors.length()) + shrink);
}
"""


def train(samples: np.ndarray, labels: np.ndarray, penalty: float) -> tuple[np.ndarray, list[float]]:
    """The weights, bias first, and the loss after each ten steps."""
    with kp.Manager() as mgr:
        x, y, weights = mgr.tensor(samples), mgr.tensor(labels), mgr.zeros(samples.shape[1] + 1)
        errors, losses = mgr.empty(len(labels), memory_type="storage"), mgr.empty(len(labels))
        error = mgr.kernel(ERROR).bind(x, y, weights, errors, losses)
        descend = mgr.kernel(DESCEND).bind(
            x, errors, weights, groups=weights.size(), rate=0.5, penalty=penalty
        )
        steps = mgr.sequence().record(*[error, descend] * 10, error, kp.OpSyncLocal([weights, losses]))
        history = [np.inf]
        while len(history) < 100:
            steps.eval()
            loss = losses.data().mean() + 0.5 * penalty * (weights.data()[1:] ** 2).sum()
            history.append(float(loss))
            if history[-2] - history[-1] < 1e-5 * history[-1]:
                break
        return weights.read(), history[1:]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__ and __doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=426, help="samples to learn from")
    parser.add_argument("--out", type=Path, default=Path("kompute-demo/logistic_regression.png"))
    options = parser.parse_args(argv)
    data: Any = load_breast_cancer()
    samples = StandardScaler().fit_transform(data.data)
    split = train_test_split(samples, data.target, train_size=options.size, random_state=0)
    x, new, y, kinds = map(np.asarray, split)
    weights, history = train(x, y, 1 / (STRENGTH * len(y)))

    chance = 1 / (1 + np.exp(-new @ weights[1:] - weights[0]))
    reference = LogisticRegression(C=STRENGTH, max_iter=10_000, tol=1e-8).fit(x, y)
    error = np.abs(chance - reference.predict_proba(new)[:, 1]).max()
    right = error < 0.05 and np.all(np.diff(history) < 1e-6)
    print(f"{10 * len(history)} steps; right on {np.mean((chance > 0.5) == kinds):.1%} of new samples")
    print(f"largest difference to scikit-learn's probabilities {error:.3f}: {'right' if right else 'WRONG'}")

    figure = Figure(figsize=(7.2, 4.8), layout="constrained")
    loss, result = figure.subplots(2, 1)
    loss.plot(10 * np.arange(1, len(history) + 1), history, color="#4c78a8", linewidth=2)
    loss.set(xlabel="steps", ylabel="loss")
    sorted_out = [chance[kinds == kind] for kind in (0, 1)]
    result.hist(
        sorted_out, bins=20, stacked=True, color=["#e45756", "#54a24b"], label=list(data.target_names)
    )
    result.set(xlabel="probability that it is benign", ylabel="new samples", yscale="log")
    result.legend()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.out)
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
