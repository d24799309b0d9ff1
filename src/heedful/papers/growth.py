"""Claims about how a curve develops: it falls, vanishes, settles, grows, or stays below its theoretical bound.

Each function that returns a check returns a function from the results of a figure to a verdict; `panel` is the key of
one of the figure's plots, `label` and `labels` are labels of curves in it. The words of the papers have no numbers;
here they have, the same everywhere:

- substantially reduced: the average regret is less than half of that of the first round;
- approaches zero: in the last quarter less than a tenth of the first ten rounds', and still falling;
- still falling: the last quarter has less than 0.8 of the regret of the second quarter (0.65 is 1 / sqrt t);
- logarithmic: from a decade of rounds to the next, the growth is less than 1.8 times as much (1 is log t, 3.2 sqrt t).

[J15]: Shivaswamy & Joachims, *Coactive Learning*, JAIR 53, 2015.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from heedful.experiments.run import average_regret, standard_error
from heedful.papers.claims import HALF, regret_at
from heedful.papers.figure import AVERAGE, OPEN, QUADRATIC, Check, LineResult, Measure, Outcome, Verdict
from heedful.papers.statistics import Part, all_hold, below, describe, fact, percentage, ratio, t_test, verdict_on_all

Array = npt.NDArray[np.float64]

TENTH, FALLING, DECADE = 0.1, 0.8, 1.8


def _quarters(result: LineResult) -> tuple[Array, Array, Array]:
    """Return the mean regret of each run (runs,) in the first ten rounds, in the second quarter and in the last."""
    regrets, T = result.regrets, result.regrets.shape[1]
    return regrets[:, :10].mean(axis=1), regrets[:, T // 4 : T // 2].mean(axis=1), regrets[:, T - T // 4 :].mean(axis=1)


def regret_halves(panel: str, labels: Sequence[str], t: int) -> Check:
    """Check that after `t` rounds the average regret of each of the curves `labels` is less than half that of the first
    round."""

    def check(outcome: Outcome) -> Verdict:
        results = [outcome[panel][label] for label in labels]
        parts = {
            label: below(regret_at(result, t), HALF * regret_at(result, 1)) for label, result in zip(labels, results)
        }
        shares = [ratio(regret_at(result, t), regret_at(result, 1)) for result in results]
        listed = ", ".join(f"{label} {percentage(share)}" for label, share in zip(labels, shares))
        words = f"average regret after {t} rounds, of the first round's: {listed}"
        return verdict_on_all(parts, f"{words}; against half, ")

    return check


def vanishing(panel: str, labels: Sequence[str]) -> Check:
    """Check that the regret of each of the curves `labels` approaches zero. In the last quarter it is less than a tenth
    of the first ten rounds' and less than 0.8 of the second quarter's."""

    def check(outcome: Outcome) -> Verdict:
        quarters = [_quarters(outcome[panel][label]) for label in labels]
        parts = {
            f"{label} against {name}": below(last, share * before)
            for label, (first, second, last) in zip(labels, quarters)
            for name, share, before in (("a tenth of the first", TENTH, first), ("0.8 of the second", FALLING, second))
        }
        return verdict_on_all(parts, f"{_falling(labels, quarters)}; ")

    return check


def stuck(panel: str, labels: Sequence[str]) -> Check:
    """Check that none of the curves `labels` approaches zero; the last quarter has more than 0.8 of the regret of the
    second quarter."""

    def check(outcome: Outcome) -> Verdict:
        quarters = [_quarters(outcome[panel][label]) for label in labels]
        parts = {label: below(FALLING * second, last) for label, (_, second, last) in zip(labels, quarters)}
        return verdict_on_all(parts, f"{_falling(labels, quarters)}; 0.8 of the second less the last, ")

    return check


def _falling(labels: Sequence[str], quarters: Sequence[tuple[Array, Array, Array]]) -> str:
    listed = (
        f"{label} {first.mean():.3g}, {second.mean():.3g}, {last.mean():.3g}"
        for label, (first, second, last) in zip(labels, quarters)
    )
    return f"regret in the first ten rounds, the second and the last quarter: {'; '.join(listed)}"


def steadier(panel: str, labels: Sequence[str]) -> Check:
    """Check that the standard error of the average regret of each of the curves `labels` is lower at the end than after
    ten rounds.

    The Pitman-Morgan test: of paired values, one has the lower variance if their difference and sum are correlated.
    """

    def check(outcome: Outcome) -> Verdict:
        averages = [average_regret(outcome[panel][label].regrets)[:, [9, -1]] for label in labels]
        parts = {label: _test_steadier(values) for label, values in zip(labels, averages)}
        errors = [standard_error(values) for values in averages]
        listed = ", ".join(f"{label} {early:.2g} and {late:.2g}" for label, (early, late) in zip(labels, errors))
        return verdict_on_all(parts, f"after ten rounds and at the end: {listed}; Pitman and Morgan's correlation, ")

    return check


def _test_steadier(values: Array) -> Part:
    """Return the part of a claim that the second of paired values (runs x 2) varies less than the first: that late +
    early and late - early are negatively correlated (r, whose t has n - 2 degrees of freedom)."""
    n = len(values)
    more, less = values[:, 1] + values[:, 0], values[:, 1] - values[:, 0]
    spread = float(more.std() * less.std()) if n > 2 else 0.0
    if spread == 0.0:
        return Part(t_test(0.0, math.nan, n, math.nan), high=0.0)
    r = float(np.mean((more - more.mean()) * (less - less.mean())) / spread)
    return Part(t_test(r, math.sqrt(max(1.0 - r * r, 0.0) / (n - 2)), n, n - 2.0), high=0.0)


def logarithmic(panel: str, label: str, measure: Measure = QUADRATIC) -> Check:
    """Check that the cumulative `measure` of the curve `label` grows as log t. The last decade of rounds adds less than
    1.8 times what the one before added."""

    def check(outcome: Outcome) -> Verdict:
        last, before = decades(outcome[panel][label], measure)
        return _growing(below(last, DECADE * before), last, before)

    return check


def faster_than_log(panel: str, label: str, measure: Measure = QUADRATIC) -> Check:
    """Check that the cumulative `measure` of the curve `label` grows faster than log t. The last decade of rounds adds
    more than 1.8 times what the one before added."""

    def check(outcome: Outcome) -> Verdict:
        last, before = decades(outcome[panel][label], measure)
        return _growing(below(DECADE * before, last), last, before)

    return check


def _growing(part: Part, last: Array, before: Array) -> Verdict:
    words = f"the last decade adds {ratio(last, before):.2f} times what the one before added (log t: 1, sqrt t: 3.16)"
    return Verdict(part.conclusion(), f"{words}; against {DECADE} times: {describe(part.test)}", part.test)


def decades(result: LineResult, measure: Measure) -> tuple[Array, Array]:
    """Return (A, B), (runs,) each, for a curve with the results `result`: what the last decade of rounds, from T / 10
    to T, adds to the cumulative `measure` of each run, and what the decade before it adds."""
    total = measure.of(result.regrets, result.M)
    T = total.shape[1]
    tenth, hundredth = total[:, T // 10 - 1], total[:, T // 100 - 1]
    return total[:, -1] - tenth, tenth - hundredth


def within_bound(panel: str, labels: Sequence[str], measure: Measure = AVERAGE) -> Check:
    """Check that the mean over runs of each of the curves `labels`, in `measure`, is at most its theoretical bound,
    itself a mean, at every round for which there is one.

    With one run, or if all runs are equal, the values are compared without a test.
    """

    def check(outcome: Outcome) -> Verdict:
        shares, parts = [], []
        for label in labels:
            result = outcome[panel][label]
            if not result.bound.size:
                return Verdict(
                    OPEN, f"{label}: {result.theorem or 'no theorem'} promises nothing here: {result.lacking}"
                )
            fractions = measure.of(result.regrets, result.M)[:, result.marks.astype(int) - 1] / result.bound
            shares.append(float(fractions.mean(axis=0).max()))
            parts += [below(column, np.full(len(fractions), 1.0 + 1e-9)) for column in fractions.T]
        listed = ", ".join(f"{label} {share:.2g}" for label, share in zip(labels, shares))
        words = f"what is drawn / the bound, at most: {listed}"
        single = len(outcome[panel][labels[0]].regrets) == 1
        return Verdict(fact(max(shares) <= 1.0 + 1e-9) if single else all_hold(parts), words)

    return check


def lower_bound_met(panel: str, labels: Sequence[str]) -> Check:
    """Return a function from a figure's results to the verdict on this claim ([J15] Lemma 3): in the plot with the key
    `panel`, every run of T rounds of the curves labelled `labels` has the average regret 2 / sqrt T, to rounding, for
    each T that was run.
    """

    def check(outcome: Outcome) -> Verdict:
        worst = 0.0
        for label in labels:
            result = outcome[panel][label]
            worst = max(worst, float(np.abs(result.regrets.mean(axis=0) * np.sqrt(result.marks) / 2.0 - 1.0).max()))
        words = f"largest relative difference from 2 / sqrt T, over all T and learners: {worst:.1g}"
        return Verdict(fact(worst < 1e-9), words)

    return check
