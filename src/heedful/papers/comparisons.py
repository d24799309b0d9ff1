"""Claims about rating learners: their NDCG, the best entry of a grid of hyperparameters, numbers of factors, times.

Each function that returns a check returns a function from the results of a figure to a verdict. `panel` is the key of
one of the figure's plots; `a`, `b`, `label`, `labels` and `others` are labels of curves in it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from heedful.experiments.run import average_regret
from heedful.papers.figure import OPEN, Check, LineResult, Measure, Outcome, Verdict
from heedful.papers.statistics import (
    Part,
    below,
    describe,
    fact,
    log_spaced,
    lowest,
    paired_t_test,
    percentage,
    verdict_on_all,
    welch_t_test,
)

Array = npt.NDArray[np.float64]

NDCG = Measure("average NDCG@5 of rounds 1 to t", lambda regrets, M: 1.0 - average_regret(regrets))
"""the average NDCG@5, for worlds whose regret is 1 - NDCG"""


def higher(panel: str, a: str, b: str) -> Check:
    """Check that the curve `a` ends with a higher average NDCG than the curve `b`."""

    def check(outcome: Outcome) -> Verdict:
        u, v = (_ndcg(outcome[panel][label])[:, -1] for label in (a, b))
        part = Part(paired_t_test(u, v), low=0.0)
        return Verdict(part.conclusion(), f"{a} {u.mean():.3f}, {b} {v.mean():.3f}: {describe(part.test)}", part.test)

    return check


def ahead(panel: str, a: str, others: Sequence[str], least: float) -> Check:
    """Check that from a tenth of the rounds on, the average NDCG of the curve `a` exceeds that of each of the curves
    `others` by more than `least`."""

    def check(outcome: Outcome) -> Verdict:
        ndcg = _ndcg(outcome[panel][a])
        T = ndcg.shape[1]
        rounds = np.array([t for t in log_spaced(T) if t >= T / 10])
        gaps = {b: (ndcg - _ndcg(outcome[panel][b]))[:, rounds - 1] for b in others}
        parts = {
            f"{b} after {t:,}": Part(paired_t_test(gap, np.zeros(len(gap))), low=least)
            for b, runs in gaps.items()
            for t, gap in zip(rounds, runs.T)
        }
        listed = ", ".join(
            f"{b} by {gap.mean(axis=0).min():+.3f} to {gap.mean(axis=0).max():+.3f}" for b, gap in gaps.items()
        )
        words = f"rounds {rounds[0]:,} to {T:,}, {a} is ahead of {listed} (expected {least:+.2f} throughout)"
        return verdict_on_all(parts, f"{words}; ")

    return check


def smaller_gaps(panel: str, wide: Sequence[str], labels: Sequence[str]) -> Check:
    """Check that the range of the final NDCG over the curves `labels`, highest less lowest, is smaller in the plot
    `panel` than in each of the panels `wide`."""

    def check(outcome: Outcome) -> Verdict:
        gaps = {}
        for key in (panel, *wide):
            ends = sorted((_ndcg(outcome[key][label])[:, -1] for label in labels), key=lambda end: float(end.mean()))
            gaps[key] = ends[-1] - ends[0]
        parts = {f"{panel} less {key}": Part(welch_t_test(gaps[panel], gaps[key]), high=0.0) for key in wide}
        listed = ", ".join(f"{key} {gap.mean():.3f}" for key, gap in gaps.items())
        return verdict_on_all(parts, f"from the lowest to the highest: {listed}; ")

    return check


def _ndcg(result: LineResult) -> Array:
    return NDCG.of(result.regrets, result.M)


def best_cell(panel: str, cell: str) -> Check:
    """Check that among the learners of the figure's panel named `panel`, the learner `cell` (its name with parameters)
    ends with the lowest cumulative regret; whether that is clear or cannot be told, `lowest` says."""

    def check(outcome: Outcome) -> Verdict:
        ends = _cells(outcome, panel)
        return lowest(ends, cell, {spec: parameters(spec) for spec in ends}, ",.0f")

    return check


def lowest_cell(panel: str, cell: str, runs: int) -> Check:
    """Check that in the grid of the panel `panel`, the learner `cell` has the lowest mean cumulative regret. With fewer
    than `runs` runs, by which it was chosen, it cannot be told."""

    def check(outcome: Outcome) -> Verdict:
        ends = _cells(outcome, panel)
        least = min(ends, key=lambda spec: ends[spec].mean())
        words = f"lowest at {parameters(least)} with {ends[least].mean():,.0f}"
        if least != cell:
            words += (
                f"; {parameters(cell)} has {ends[cell].mean():,.0f}: {describe(paired_t_test(ends[cell], ends[least]))}"
            )
        count = ends[cell].size
        if count < runs:
            return Verdict(OPEN, f"{words}; it was chosen by {runs} runs, here are {count}")
        return Verdict(fact(least == cell), words)

    return check


def _cells(outcome: Outcome, panel: str) -> dict[str, Array]:
    """Return for each learner of a grid search, whose results are in the plot `panel`, the sum of the regrets of each
    run (runs,).
    """
    return {result.learner: result.regrets.sum(axis=1) for result in outcome[panel].values()}


def parameters(spec: str) -> str:
    """Return the hyperparameters of a learner's specification `spec`, such as "penalty=1,sigma=0.4" of
    "alb:penalty=1,sigma=0.4"."""
    return spec.partition(":")[2]


def steadier_over(panels: Sequence[str], labels: Sequence[Sequence[str]]) -> Check:
    """Check that the mean regrets of the curves of the first of `panels` vary less, relative to their mean, than those
    of each other panel. `labels` has the labels of the curves of each panel."""

    def check(outcome: Outcome) -> Verdict:
        spreads = []
        for key, group in zip(panels, labels):
            ends = sorted(
                (outcome[key][label].regrets.mean(axis=1) for label in group), key=lambda end: float(end.mean())
            )
            spreads.append((ends[-1] - ends[0]) / np.mean(ends))
        parts = {f"{panels[0]} less {key}": below(spreads[0], other) for key, other in zip(panels[1:], spreads[1:])}
        listed = ", ".join(f"{key} {percentage(spread.mean(), '.1f')}" for key, spread in zip(panels, spreads))
        return verdict_on_all(parts, f"from the lowest to the highest, of the mean: {listed}; ")

    return check


def below_all(a: tuple[str, Sequence[str]], b: tuple[str, Sequence[str]]) -> Check:
    """Check that every curve of one panel has a lower mean regret than every curve of another.

    `a` and `b` are (panel, labels of its curves). Means are over rounds, and runs are paired in the tests. The verdict
    reports the weakest of the comparisons.
    """

    def check(outcome: Outcome) -> Verdict:
        (panel_a, labels_a), (panel_b, labels_b) = a, b
        parts = {
            f"{panel_a} with {u} less {panel_b} with {v}": below(
                outcome[panel_a][u].regrets.mean(axis=1), outcome[panel_b][v].regrets.mean(axis=1)
            )
            for u in labels_a
            for v in labels_b
        }
        return verdict_on_all(parts)

    return check


def little_gained(panel: str, labels: Sequence[str], label: str, share: float) -> Check:
    """Check that none of the curves `labels` has a mean regret that is lower than that of the curve `label` by more
    than the share `share` of it."""

    def check(outcome: Outcome) -> Verdict:
        ends = {curve: outcome[panel][curve].regrets.mean(axis=1) for curve in labels}
        parts = {
            f"{percentage(1.0 - share)} of {label} less {curve}": below((1.0 - share) * ends[label], ends[curve])
            for curve in labels
            if curve != label
        }
        least = min(ends, key=lambda curve: float(ends[curve].mean()))
        gain = 1.0 - ends[least].mean() / ends[label].mean()
        listed = ", ".join(f"{curve} {end.mean():,.4g}" for curve, end in ends.items())
        return verdict_on_all(parts, f"{listed}: {least} is {percentage(gain, '.1f')} lower than {label}; ")

    return check


def quicker(panel: str, a: str, b: str, share: float) -> Check:
    """Check that, in seconds, the curve `a` takes less than the share `share` of the time of the curve
    `b`."""

    def check(outcome: Outcome) -> Verdict:
        u, v = (outcome[panel][label].regrets[:, -1] for label in (a, b))
        part = below(u, share * v)
        words = (
            f"{a} {u.mean():.3g} s, {b} {v.mean():.3g} s, {u.mean() / v.mean():.2f} times; against {share:.2f} times"
        )
        return Verdict(part.conclusion(), f"{words}: {describe(part.test)}", part.test)

    return check
