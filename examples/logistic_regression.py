"""Logistic regression trained on the device, on scikit-learn's breast cancer data.

Gradient descent: one recorded sequence makes 50 steps of it, and is evaluated until the loss stands still.
Two dispatches make a step (the prediction's error for each sample, then each weight's gradient), and each
reads what the one before it wrote. scikit-learn's own LogisticRegression, with the same penalty, has the same
optimum: the two are compared.

    python examples/logistic_regression.py
"""

from __future__ import annotations

import argparse
import itertools
import sys

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import kompute_py as kp

STEPS = 50  # of one evaluation
LEARNING_RATE = 0.3
PENALTY = 1.0  # scikit-learn's C

# One invocation for each sample: weights[0] is the bias.
ERROR_SHADER = """
#version 450

layout(local_size_x = 64) in;

layout(set = 0, binding = 0) readonly buffer Samples { float samples[]; };
layout(set = 0, binding = 1) readonly buffer Labels { float labels[]; };
layout(set = 0, binding = 2) readonly buffer Weights { float weights[]; };
layout(set = 0, binding = 3) writeonly buffer Errors { float errors[]; };
layout(set = 0, binding = 4) writeonly buffer Losses { float losses[]; };

layout(constant_id = 0) const uint FEATURES = 1;

void main() {
    const uint sample_index = gl_GlobalInvocationID.x;
    if (sample_index >= labels.length()) {
        return;
    }
    float logit = weights[0];
    for (uint feature = 0; feature < FEATURES; ++feature) {
        logit += weights[feature + 1] * samples[sample_index * FEATURES + feature];
    }
    const float label = labels[sample_index];
    errors[sample_index] = 1.0 / (1.0 + exp(-logit)) - label;
    // log(1 + exp(x)) without overflow.
    losses[sample_index] = max(logit, 0.0) + log(1.0 + exp(-abs(logit))) - label * logit;
}
"""

# One group for each weight: its invocations share the sum over the samples.
STEP_SHADER = """
#version 450

layout(local_size_x = 64) in;

layout(set = 0, binding = 0) readonly buffer Samples { float samples[]; };
layout(set = 0, binding = 1) readonly buffer Errors { float errors[]; };
layout(set = 0, binding = 2) buffer Weights { float weights[]; };

layout(constant_id = 0) const uint FEATURES = 1;
layout(push_constant) uniform Training {
    float learning_rate;
    float penalty;
};

shared float sums[64];

void main() {
    const uint weight = gl_WorkGroupID.x;
    const uint self = gl_LocalInvocationID.x;
    float sum = 0.0;
    for (uint i = self; i < errors.length(); i += 64) {
        sum += errors[i] * (weight == 0 ? 1.0 : samples[i * FEATURES + weight - 1]);
    }
    sums[self] = sum;
    for (uint half_size = 32; half_size > 0; half_size /= 2) {
        barrier();
        if (self < half_size) {
            sums[self] += sums[self + half_size];
        }
    }
    if (self == 0) {
        const float shrink = weight == 0 ? 0.0 : penalty * weights[weight];
        weights[weight] -= learning_rate * (sums[0] / float(errors.length()) + shrink);
    }
}
"""


def train(
    mgr: kp.Manager, samples: np.ndarray, labels: np.ndarray, most_evals: int
) -> tuple[np.ndarray, list[float]]:
    """The weights (bias first) after training, and the mean loss after each evaluation."""
    count, features = samples.shape
    x, y = mgr.tensor(samples), mgr.tensor(labels)
    weights = mgr.zeros(features + 1)
    errors = mgr.empty(count, memory_type="storage")
    losses = mgr.empty(count)
    error = mgr.algorithm(
        [x, y, weights, errors, losses], kp.compile(ERROR_SHADER), (-(-count // 64), 1, 1), [features]
    )
    penalty = 1.0 / (PENALTY * count)
    step = mgr.algorithm(
        [x, errors, weights],
        kp.compile(STEP_SHADER),
        (features + 1, 1, 1),
        [features],
        [LEARNING_RATE, penalty],
    )

    mgr.sequence().record(kp.OpSyncDevice([x, y, weights])).eval()
    epoch = mgr.sequence()
    for _ in range(STEPS):
        epoch.record(kp.OpAlgoDispatch(error)).record(kp.OpAlgoDispatch(step))
    epoch.record(kp.OpAlgoDispatch(error)).record(kp.OpSyncLocal([weights, losses]))

    history: list[float] = []
    while len(history) < most_evals:
        epoch.eval()
        w = weights.data()[1:]
        history.append(float(losses.data().mean() + 0.5 * penalty * (w @ w)))
        if len(history) > 1 and history[-2] - history[-1] < 1e-5 * history[-1]:
            break
    return weights.data().copy(), history


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", help="a part of the device's name")
    parser.add_argument("--evals", type=int, default=100, help=f"most evaluations, of {STEPS} steps each")
    options = parser.parse_args(argv)

    data = load_breast_cancer()
    x_train, x_test, y_train, y_test = train_test_split(
        data.data, data.target, test_size=0.25, stratify=data.target, random_state=0
    )
    scaler = StandardScaler().fit(x_train)
    x_train, x_test = scaler.transform(x_train), scaler.transform(x_test)

    with kp.Manager(options.device) as mgr:
        print(f"{mgr!r}: {len(x_train)} samples of {x_train.shape[1]} features")
        weights, history = train(mgr, x_train, y_train, options.evals)
    for number in sorted({0, len(history) // 4, len(history) // 2, len(history) - 1}):
        print(f"  after {(number + 1) * STEPS:5} steps: loss {history[number]:.5f}")

    predicted = (x_test @ weights[1:] + weights[0]) > 0
    accuracy = float(np.mean(predicted == y_test))
    reference = LogisticRegression(C=PENALTY, max_iter=10_000).fit(x_train, y_train)
    expected = reference.predict(x_test)
    agreement = float(np.mean(predicted == expected))
    print(f"accuracy on {len(x_test)} samples that it has not seen: {accuracy:.4f}")
    print(
        f"scikit-learn's LogisticRegression: {np.mean(expected == y_test):.4f}; same prediction: "
        f"{agreement:.4f}"
    )

    falling = len(history) > 1 and all(later <= earlier for earlier, later in itertools.pairwise(history))
    if not falling:
        print("WRONG: the loss does not fall")
    if accuracy <= 0.93:
        print("WRONG: the accuracy is not above 0.93")
    if agreement < 0.97:
        print("WRONG: scikit-learn predicts something else")
    return 0 if falling and accuracy > 0.93 and agreement >= 0.97 else 1


if __name__ == "__main__":
    sys.exit(main())
