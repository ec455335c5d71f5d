"""The price of an option by Monte Carlo, with its error bar.

A share moves at random; an option pays what it ends above the strike. The mean over many paths estimates the
price, and their spread tells how far off it may be. One sequence draws normal numbers, moves the share day
by day and sums up the payments; each evaluation draws others. Black and Scholes' formula knows the price.
"""

import argparse
import math
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import kompute_py as kp

SHARE, STRIKE, RATE, VOLATILITY, YEARS, STEPS = 100.0, 105.0, 0.03, 0.2, 1.0, 16
MOVE = kp.ops.elementwise("share * exp(drift + spread * noise)", name="move")
PAY = kp.ops.elementwise("discount * maximum(share - strike, 0)", name="pay")
TOTAL = kp.ops.reduction(PAY, name="total")
SQUARES = kp.ops.reduction(kp.ops.elementwise("p * p")(PAY), name="squares")


def simulate(paths: int, rounds: int) -> np.ndarray:
    """For each round the sum of the payments, and the sum of their squares."""
    step = YEARS / STEPS
    drift, spread = (RATE - VOLATILITY**2 / 2) * step, VOLATILITY * math.sqrt(step)
    generator = kp.random.Generator(2026)
    with kp.Manager() as mgr:
        noise, share = mgr.empty(paths), mgr.empty(paths)
        sums, squares = mgr.empty(()), mgr.empty(())
        sequence = mgr.sequence().record(kp.OpFill([share], SHARE))
        for _ in range(STEPS):
            sequence.record(generator.normal_op(noise), MOVE.op(share, drift, spread, noise, out=share))
        terms = (math.exp(-RATE * YEARS), share, STRIKE)
        sequence.record(TOTAL.op(*terms, out=sums), SQUARES.op(*terms, out=squares))
        sequence.record(kp.OpSyncLocal([sums, squares]))
        found = []
        for _ in range(rounds):
            sequence.eval()
            found.append((float(sums), float(squares)))
    return np.array(found)


def black_scholes() -> float:
    def normal(x: float) -> float:
        return 0.5 * (1 + math.erf(x / math.sqrt(2)))

    spread = VOLATILITY * math.sqrt(YEARS)
    upper = (math.log(SHARE / STRIKE) + (RATE + VOLATILITY**2 / 2) * YEARS) / spread
    return SHARE * normal(upper) - STRIKE * math.exp(-RATE * YEARS) * normal(upper - spread)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__ and __doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=20_000, help="paths in a round")
    parser.add_argument("--rounds", type=int, default=64)
    parser.add_argument("--out", type=Path, default=Path("kompute-demo/monte_carlo.png"))
    options = parser.parse_args(argv)
    sums, squares = simulate(options.size, options.rounds).cumsum(0).T
    paths = options.size * np.arange(1, options.rounds + 1)
    mean = sums / paths
    error = np.sqrt((squares / paths - mean**2) / paths)
    price = black_scholes()
    off = abs(mean[-1] - price) / error[-1]
    fell = error[0] / error[-1] / math.sqrt(options.rounds)
    right = off < 4 and 0.9 < fell < 1.1
    print(f"{paths[-1]} paths: {mean[-1]:.4f} ± {error[-1]:.4f}")
    print(f"the formula: {price:.4f}, {off:.1f} errors away")
    print("right" if right else "WRONG")

    figure = Figure(figsize=(7.2, 4.8), layout="constrained")
    axes = figure.add_subplot(xscale="log", xlabel="paths", ylabel="price")
    for width in (2, 1):
        axes.fill_between(
            paths, mean - width * error, mean + width * error, color="tab:blue", alpha=0.2, lw=0
        )
    axes.plot(paths, mean, "tab:blue", label="estimate, with one and two standard errors")
    axes.axhline(price, color="tab:orange", label="Black and Scholes")
    axes.legend()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.out, dpi=100)
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
