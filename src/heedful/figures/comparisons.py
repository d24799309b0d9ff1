"""Claims about learners of ratings: NDCG, cells of a grid, ranks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from heedful.experiment import average_regret
from heedful.figures.figure import Check, Measure, Outcome, Ran, Verdict
from heedful.figures.statistics import SIGNIFICANT, log_spaced, paired, significantly_lower, told

Array = npt.NDArray[np.float64]

NDCG = Measure("average NDCG@5 of rounds 1 to t", lambda regrets, M: 1.0 - average_regret(regrets))
"""Of regrets that are 1 - NDCG."""


def higher(panel: str, a: str, b: str) -> Check:
    """Line a ends with a significantly higher average NDCG than line b."""

    def check(outcome: Outcome) -> Verdict:
        u, v = (_ndcg(outcome[panel][label])[:, -1] for label in (a, b))
        found = paired(u, v)
        holds = found.difference > 0 and found.p < SIGNIFICANT
        return Verdict(bool(holds), f"{a} {u.mean():.3f}, {b} {v.mean():.3f}: {told(found)}", found)

    return check


def ahead(panel: str, a: str, others: Sequence[str], least: float) -> Check:
    """From a tenth of the rounds on, line a has an average NDCG higher by at least so much than each of the others."""

    def check(outcome: Outcome) -> Verdict:
        one = _ndcg(outcome[panel][a])
        T = one.shape[1]
        rounds = [t for t in log_spaced(T) if t >= T / 10]
        apart = {b: (one - _ndcg(outcome[panel][b])).mean(axis=0)[np.array(rounds) - 1] for b in others}
        listed = ", ".join(f"{b} by {gap.min():+.3f} to {gap.max():+.3f}" for b, gap in apart.items())
        return Verdict(
            all(bool(gap.min() >= least) for gap in apart.values()),
            f"rounds {rounds[0]:,} to {T:,}, {a} is ahead of {listed} (wanted {least:+.2f} throughout)",
        )

    return check


def smaller_gaps(panel: str, wide: Sequence[str], labels: Sequence[str]) -> Check:
    """What the highest of the lines ends with beyond the lowest is less in one panel than in each of the others."""

    def check(outcome: Outcome) -> Verdict:
        gaps = {}
        for key in (panel, *wide):
            ends = [_ndcg(outcome[key][label])[:, -1].mean() for label in labels]
            gaps[key] = float(max(ends) - min(ends))
        listed = ", ".join(f"{key} {gap:.3f}" for key, gap in gaps.items())
        return Verdict(gaps[panel] < min(gaps[key] for key in wide), f"from the lowest to the highest: {listed}")

    return check


def _ndcg(ran: Ran) -> Array:
    return NDCG.of(ran.regrets, ran.M)


def best_cell(panel: str, cell: str) -> Check:
    """Of a grid, this cell ends lowest."""

    def check(outcome: Outcome) -> Verdict:
        ends = {ran.learner: ran.regrets.sum(axis=1) for ran in outcome[panel].values()}
        least = min(ends, key=lambda spec: ends[spec].mean())
        found = paired(ends[cell], ends[least])
        words = f"lowest at {parameters(least)} with {ends[least].mean():,.0f}"
        if least != cell:
            words += f"; {parameters(cell)} has {ends[cell].mean():,.0f}: {told(found)}"
        return Verdict(least == cell, words, found)

    return check


def parameters(spec: str) -> str:
    """The hyperparameters of a learner, as they are written."""
    return spec.partition(":")[2]


def steadier_over(panels: Sequence[str], labels: Sequence[Sequence[str]]) -> Check:
    """Over its lines, the first panel's end differs less, as a share of its mean, than that of each other panel."""

    def check(outcome: Outcome) -> Verdict:
        spreads = []
        for key, some in zip(panels, labels):
            ends = [float(outcome[key][label].regrets.mean()) for label in some]
            spreads.append((max(ends) - min(ends)) / np.mean(ends))
        listed = ", ".join(f"{key} {spread:.1%}" for key, spread in zip(panels, spreads))
        return Verdict(bool(spreads[0] < min(spreads[1:])), f"from the lowest to the highest, of the mean: {listed}")

    return check


def below_all(a: tuple[str, Sequence[str]], b: tuple[str, Sequence[str]]) -> Check:
    """Every line of these of one panel ends significantly lower than every one of these of another."""

    def check(outcome: Outcome) -> Verdict:
        (one, ours), (other, theirs) = a, b
        tests = {
            (u, v): paired(outcome[one][u].regrets.mean(axis=1), outcome[other][v].regrets.mean(axis=1))
            for u in ours
            for v in theirs
        }
        (u, v), worst = max(tests.items(), key=lambda item: item[1].t)
        holds = all(test.difference < 0 and test.p < SIGNIFICANT for test in tests.values())
        return Verdict(holds, f"the least difference, {one} with {u}, {other} with {v}: {told(worst)}", worst)

    return check


def little_gained(panel: str, labels: Sequence[str], label: str, share: float) -> Check:
    """The lowest of the lines is lower than this one by at most a share of it."""

    def check(outcome: Outcome) -> Verdict:
        ends = {each: float(outcome[panel][each].regrets.mean()) for each in labels}
        least = min(ends, key=lambda each: ends[each])
        gain = 1.0 - ends[least] / ends[label]
        listed = ", ".join(f"{each} {end:,.4g}" for each, end in ends.items())
        return Verdict(gain <= share, f"{listed}: {least} is {gain:.1%} lower than {label}")

    return check


def quicker(panel: str, a: str, b: str, share: float) -> Check:
    """Where lines hold the seconds of their runs, a takes at most this share of those of b, significantly."""

    def check(outcome: Outcome) -> Verdict:
        u, v = (outcome[panel][label].regrets[:, -1] for label in (a, b))
        found = paired(u, share * v)
        words = (
            f"{a} {u.mean():.3g} s, {b} {v.mean():.3g} s, {u.mean() / v.mean():.2f} times; against {share:.2f} times"
        )
        return Verdict(significantly_lower(found), f"{words}: {told(found)}", found)

    return check
