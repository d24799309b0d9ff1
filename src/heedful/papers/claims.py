"""Claims about regret: functions that turn a claim of a paper about a figure into a verdict, by statistics of paired
runs with limits fixed beforehand.

Each function that returns a check returns a function from the results of a figure to a verdict. `panel` is the key of
one of the figure's plots; `a`, `b` and `labels` are labels of curves in it. Run i of two curves met the same data, so
their difference is tested by a paired t-test over runs (permutations of the queries, or people). A claim holds, does
not hold, or cannot be told; `papers.statistics` has the rule. The papers' words have no numbers; here they have, the
same everywhere:

- lower: below 0 at the end;
- over most of the range: significantly lower at more than half of 60 rounds spread evenly on a logarithmic scale; not
  so where significantly higher at half of them;
- comparable, not much different, nearly identical: the difference lies within 25, 10, 5 % of the other's average
  regret, either way;
- much smaller than a factor: less than half of it;
- orders of magnitude: matched in a hundredth of the rounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from heedful.experiments.run import average_regret
from heedful.papers.figure import FAILS, HOLDS, OPEN, Check, LineResult, Measure, Outcome, Verdict
from heedful.papers.statistics import (
    SIGNIFICANT,
    Part,
    below,
    describe,
    describe_interval,
    log_spaced,
    paired_t_test,
    percentage,
    ratio,
    verdict_on_all,
    welch_t_test,
)

Array = npt.NDArray[np.float64]

HALF = 0.5
COMPARABLE, SIMILAR, IDENTICAL = 0.25, 0.10, 0.05


def regret_at(result: LineResult, t: int = 0) -> Array:
    """Return REG_t of each run (runs,) of a curve with the results `result`: the average regret over the first `t`
    rounds, or over all if t is 0."""
    means: Array = result.regrets[:, : t or None].mean(axis=1)
    return means


def _end(result: LineResult, measure: Measure | None) -> Array:
    """Return the final value of each run (runs,): of `measure`, or of the average regret if it is None."""
    return regret_at(result) if measure is None else measure.of(result.regrets, result.M)[:, -1]


def lower(panel: str, a: str, b: str, measure: Measure | None = None) -> Check:
    """Check that the curve `a` ends lower than the curve `b`, in average regret or in `measure`."""

    def check(outcome: Outcome) -> Verdict:
        u, v = (_end(outcome[panel][label], measure) for label in (a, b))
        part = below(u, v)
        words = f"{a} {u.mean():.3g}, {b} {v.mean():.3g}: {describe(part.test)}"
        return Verdict(part.conclusion(), words, part.test)

    return check


def falls_in_order(panel: str, labels: Sequence[str]) -> Check:
    """Check that each of the curves `labels` ends lower, in average regret, than the curve before it."""

    def check(outcome: Outcome) -> Verdict:
        ends = [regret_at(outcome[panel][label]) for label in labels]
        steps = {f"{labels[i + 1]} less {labels[i]}": below(v, u) for i, (u, v) in enumerate(pairwise(ends))}
        listed = ", ".join(f"{label} {end.mean():.3g}" for label, end in zip(labels, ends))
        return verdict_on_all(steps, f"{listed}; ")

    return check


def lower_mostly(panel: str, a: str, b: str, least: int = 1, most: int = 0) -> Check:
    """Check that the curve `a` is significantly lower than the curve `b` at more than half of the rounds compared,
    which are evenly spaced on a logarithmic scale from `least` to `most` (0: the last)."""

    def check(outcome: Outcome) -> Verdict:
        regret_a, regret_b = (average_regret(outcome[panel][label].regrets) for label in (a, b))
        rounds = [t for t in log_spaced(regret_a.shape[1]) if least <= t <= (most or regret_a.shape[1])]
        tests = [paired_t_test(regret_a[:, t - 1], regret_b[:, t - 1]) for t in rounds]
        under, over = (
            float(np.mean([sign * x.difference < 0 and x.p < SIGNIFICANT for x in tests])) for sign in (1, -1)
        )
        words = (
            f"{a} is significantly lower than {b} at {percentage(under)} of rounds {rounds[0]:,} to {rounds[-1]:,}, "
            f"higher at {percentage(over)}; after {rounds[-1]:,}: {regret_a[:, rounds[-1] - 1].mean():.3g} and "
            f"{regret_b[:, rounds[-1] - 1].mean():.3g}, {describe(tests[-1])}"
        )
        return Verdict(HOLDS if under > HALF else FAILS if over >= HALF else OPEN, words, tests[-1])

    return check


def alike(panel: str, a: str, b: str, tolerance: float) -> Check:
    """Check that the final average regrets of the curves `a` and `b` differ by at most the share `tolerance` of that of
    `b`."""

    def check(outcome: Outcome) -> Verdict:
        u, v = regret_at(outcome[panel][a]), regret_at(outcome[panel][b])
        room = tolerance * float(v.mean())
        part = Part(paired_t_test(u, v), -room, room)
        difference = f"{percentage(ratio(u, v) - 1.0, '+.1f')}; expected ±{percentage(tolerance)}"
        words = f"{a} {u.mean():.3g}, {b} {v.mean():.3g} ({difference}): "
        return Verdict(
            part.conclusion(), words + describe_interval(part, float(v.mean()) / 100.0, "+.1f", " %"), part.test
        )

    return check


def within_factor(panel: str, a: str, b: str, factor: float, measure: Measure | None = None) -> Check:
    """Check that the curve `a` ends below `factor` times the curve `b`, in average regret or in `measure`."""

    def check(outcome: Outcome) -> Verdict:
        u, v = (_end(outcome[panel][label], measure) for label in (a, b))
        part = below(u, factor * v)
        words = f"{a} has {ratio(u, v):.2f} times the regret of {b}; against {factor:.3g} times: {describe(part.test)}"
        return Verdict(part.conclusion(), words, part.test)

    return check


def matched_early(panel: str, fast: str, slow: str, share: float = 0.01, most: int | None = None) -> Check:
    """Check that the curve `fast` reaches the final average regret of the curve `slow` after the share `share` of the
    rounds, or after `most` rounds if these are fewer."""

    def check(outcome: Outcome) -> Verdict:
        regret_fast, regret_slow = (average_regret(outcome[panel][label].regrets) for label in (fast, slow))
        T = regret_fast.shape[1]
        t = max(1, min(int(share * T), most or T))
        part = below(regret_fast[:, t - 1], regret_slow[:, -1])
        first = np.flatnonzero(regret_fast.mean(axis=0) <= regret_slow[:, -1].mean())
        when = f"first after {int(first[0]) + 1:,}" if first.size else "never"
        words = (
            f"{slow} {regret_slow[:, -1].mean():.3g} after {T:,} rounds, "
            f"{fast} {regret_fast[:, t - 1].mean():.3g} after {t:,} ({when} as low): {describe(part.test)}"
        )
        return Verdict(part.conclusion(), words, part.test)

    return check


def cheaper(panel: str, a: str, b: str, share: float = 0.1) -> Check:
    """Check that a run of the curve `a` takes less than the share `share` of the processor time of a run of the curve
    `b`."""

    def check(outcome: Outcome) -> Verdict:
        one, other = outcome[panel][a].seconds, outcome[panel][b].seconds
        part = below(one, share * other)
        longer = float(other.mean()) / max(float(one.mean()), 1e-9)
        words = f"{one.mean():.2g} s a run against {other.mean():.2g} s: {longer:,.0f} times as long"
        return Verdict(
            part.conclusion(),
            f"{words}; against {1.0 / share:.3g} times: {describe(part.test)}",
            part.test,
        )

    return check


def closer(near: str, far: str, a: str, b: str) -> Check:
    """Check that the ratio of the average regret of the curve `a`, the higher one, to that of the curve `b` is smaller
    in the panel `near` than in the panel `far`.

    It compares logarithms, whose scatter follows from that of a and b relative to their means (delta method).
    """

    def check(outcome: Outcome) -> Verdict:
        ends = [(regret_at(outcome[panel][a]), regret_at(outcome[panel][b])) for panel in (near, far)]
        ratios = [ratio(u, v) for u, v in ends]
        logs = [u / u.mean() - v / v.mean() + math.log(ratio(u, v)) for u, v in ends]
        test = welch_t_test(*logs)
        words = f"{a} has {ratios[0]:.2f} times the regret of {b} in {near}, {ratios[1]:.2f} in {far}"
        return Verdict(Part(test, high=0.0).conclusion(), f"{words}; of their logarithms: {describe(test)}", test)

    return check
