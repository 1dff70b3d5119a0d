"""Bootstrap of seven methods on the same cards: this package against scipy.stats.bootstrap.

Run: python -m benchmarks.bootstrap [--repeats 5]

All contestants run in one process, one after the other in each round, and the medians over the
rounds are compared. Before timing, the intervals are compared: with the same seed scipy must give
ours to 1e-12, else there is nothing to race. The last lines time the exact limit (scoring/limit.py)
against the same scipy job, and the Brier score of a million cards.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.stats import bootstrap as scipy_bootstrap

from scoring.bootstrap import interval, resample
from scoring.exact import ExactArray
from scoring.limit import limit_interval
from scoring.rules import brier_losses, brier_score

METHODS = 7
RESAMPLES = 10_000
SEED = 0

Job = Callable[[], list[tuple[float, float]]]


def panel(n: int) -> list[ExactArray]:
    """Return the Brier losses of seven methods on n cards, probabilities of 4 decimals."""
    draw = np.random.Generator(np.random.PCG64(20260101))
    y = draw.integers(0, 2, n)
    forecasts = [draw.integers(0, 10_001, n) * 100_000 for _ in range(METHODS)]
    return [brier_losses(p, y) for p in forecasts]


def ours(losses: list[ExactArray]) -> Job:
    """Return our job: one resampling for all methods, then seven intervals."""

    def run() -> list[tuple[float, float]]:
        drawn = resample(losses, seed=SEED, resamples=RESAMPLES)
        if drawn is None:
            return []
        ends = [interval(drawn, which=which) for which in range(METHODS)]
        return [(end.low, end.high) for end in ends]

    return run


def the_limit(losses: list[ExactArray]) -> Job:
    """Return the job of seven exact limits."""

    def run() -> list[tuple[float, float]]:
        found = [limit_interval(loss) for loss in losses]
        return [(end.low, end.high) for end in found if end is not None]

    return run


def scipy_each(table: NDArray[np.float64]) -> Job:
    """Return scipy's job, one call a method with the same seed."""

    def run() -> list[tuple[float, float]]:
        ends = []
        for row in table:
            rng = np.random.Generator(np.random.PCG64(SEED))
            found = scipy_bootstrap(
                (row,), np.mean, n_resamples=RESAMPLES, method="percentile", rng=rng
            ).confidence_interval
            ends.append((float(found.low), float(found.high)))
        return ends

    return run


def scipy_joint(table: NDArray[np.float64]) -> Job:
    """Return scipy's job, one call for the whole (7, n) table."""

    def run() -> list[tuple[float, float]]:
        rng = np.random.Generator(np.random.PCG64(SEED))
        found = scipy_bootstrap(
            (table,), np.mean, axis=-1, n_resamples=RESAMPLES, method="percentile", rng=rng
        ).confidence_interval
        return list(zip(found.low.tolist(), found.high.tolist(), strict=True))

    return run


def race(jobs: dict[str, Job], repeats: int) -> dict[str, float]:
    """Return the median seconds of each job over interleaved rounds, one warm-up round first."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for turn in range(repeats + 1):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            if turn:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def measure(n: int, repeats: int) -> bool:
    """Print one table for n cards; return whether scipy and we agree."""
    losses = panel(n)
    table = np.stack([loss.floats() for loss in losses])
    jobs = {
        "ours": ours(losses),
        "limit": the_limit(losses),
        "scipy per method": scipy_each(table),
        "scipy joint": scipy_joint(table),
    }
    gap = float(np.abs(np.array(jobs["ours"]()) - np.array(jobs["scipy per method"]())).max())
    print(f"\n{n} cards x {METHODS} methods, {RESAMPLES} resamples, percentile 95%")
    print(f"  largest difference of an end from scipy's, same seed: {gap:.1e}")
    medians = race(jobs, repeats)
    each, joint = medians["scipy per method"], medians["scipy joint"]
    for name, seconds in medians.items():
        line = f"  {name:<18}{seconds * 1e3:10.2f} ms"
        if name in {"ours", "limit"}:
            line += f"   {each / seconds:7.1f}x scipy per method   {joint / seconds:7.1f}x joint"
        print(line)
    return gap < 1e-12


def measure_brier(cards: int, repeats: int) -> None:
    """Print the time of one Brier score."""
    draw = np.random.Generator(np.random.PCG64(1))
    p, y = draw.integers(0, 10**9 + 1, cards), draw.integers(0, 2, cards).astype(np.int8)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        brier_score(p, y)
        times.append(time.perf_counter() - start)
    print(f"\nexact Brier score of {cards} cards: {statistics.median(times) * 1e3:.2f} ms")


def main() -> int:
    """Run all tables; exit 1 where our intervals are not scipy's."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    print(f"python {sys.version.split()[0]}, numpy {np.__version__}, scipy {scipy.__version__}")
    agree = [measure(n, repeats) for n in (24, 1000)]
    measure_brier(1_000_000, repeats)
    return 0 if all(agree) else 1


if __name__ == "__main__":
    raise SystemExit(main())
