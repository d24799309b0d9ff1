"""What turns a sentence under a figure into a verdict: statistics of paired runs, with the lines drawn beforehand.

Run i of two lines met the same arrivals, so their difference is tested by a paired t-test over runs (permutations of
the queries, or people). A claim holds, does not hold, or cannot be told: `statistics` has the one rule for all. The
words of the papers have no numbers; here they have, the same everywhere:

- lower: below 0 at the end;
- over most of the range: significantly lower at more than half of 60 rounds spread evenly on a logarithmic scale; not
  so where significantly higher at half of them;
- substantially reduced: the average regret is less than half of that of the first round;
- approaches zero: in the last quarter less than a tenth of the first ten rounds', and still falling;
- still falling: the last quarter has less than 0.8 of the regret of the second quarter (0.65 is 1 / sqrt t);
- comparable, not much different, nearly identical: the difference lies within 25, 10, 5 % of the other's average
  regret, either way;
- much smaller than a factor: less than half of it;
- orders of magnitude: matched in a hundredth of the rounds;
- logarithmic: from a decade of rounds to the next, the growth is less than 1.8 times as much (1 is log t, 3.2 sqrt t).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from heedful.experiment import average_regret, standard_error
from heedful.figures.figure import AVERAGE, FAILS, HOLDS, OPEN, QUADRATIC, Check, Measure, Outcome, Ran, Verdict
from heedful.figures.statistics import (
    SIGNIFICANT,
    Part,
    all_hold,
    apart,
    below,
    fact,
    log_spaced,
    paired,
    ratio,
    t_test,
    told,
    told_between,
    weakest,
)

Array = npt.NDArray[np.float64]

HALF, TENTH, FALLING, DECADE = 0.5, 0.1, 0.8, 1.8
COMPARABLE, SIMILAR, IDENTICAL = 0.25, 0.10, 0.05


def _at(ran: Ran, t: int = 0) -> Array:
    """REG_t of every run (runs,); of the whole run, where t is 0."""
    means: Array = ran.regrets[:, : t or None].mean(axis=1)
    return means


def _end(ran: Ran, measure: Measure | None) -> Array:
    """What every run ends with (runs,): the average regret, or another measure."""
    return _at(ran) if measure is None else measure.of(ran.regrets, ran.M)[:, -1]


def _quarters(ran: Ran) -> tuple[Array, Array, Array]:
    """The mean regret of every run (runs,) in the first ten rounds, in the second and in the last quarter."""
    regrets, T = ran.regrets, ran.regrets.shape[1]
    return regrets[:, :10].mean(axis=1), regrets[:, T // 4 : T // 2].mean(axis=1), regrets[:, T - T // 4 :].mean(axis=1)


# ---------------------------------------------------------------------------- claims about two lines


def lower(panel: str, a: str, b: str, measure: Measure | None = None) -> Check:
    """Line a ends lower than line b, in average regret or in another measure."""

    def check(outcome: Outcome) -> Verdict:
        u, v = (_end(outcome[panel][label], measure) for label in (a, b))
        part = below(u, v)
        words = f"{a} {u.mean():.3g}, {b} {v.mean():.3g}: {told(part.found)}"
        return Verdict(part.conclusion(), words, part.found)

    return check


def falls_in_order(panel: str, labels: Sequence[str]) -> Check:
    """Every line ends lower than the one before it."""

    def check(outcome: Outcome) -> Verdict:
        ends = [_at(outcome[panel][label]) for label in labels]
        steps = [below(v, u) for u, v in pairwise(ends)]
        worst = weakest(steps).found
        listed = ", ".join(f"{label} {end.mean():.3g}" for label, end in zip(labels, ends))
        return Verdict(all_hold(steps), f"{listed}; the smallest step: {told(worst)}", worst)

    return check


def lower_mostly(panel: str, a: str, b: str, least: int = 1, most: int = 0) -> Check:
    """Line a is significantly lower than line b at most of the rounds from `least` to `most` (0: the last)."""

    def check(outcome: Outcome) -> Verdict:
        one, other = (average_regret(outcome[panel][label].regrets) for label in (a, b))
        rounds = [t for t in log_spaced(one.shape[1]) if least <= t <= (most or one.shape[1])]
        tests = [paired(one[:, t - 1], other[:, t - 1]) for t in rounds]
        under, over = (
            float(np.mean([sign * x.difference < 0 and x.p < SIGNIFICANT for x in tests])) for sign in (1, -1)
        )
        words = (
            f"{a} is significantly lower than {b} at {under:.0%} of rounds {rounds[0]:,} to {rounds[-1]:,}, "
            f"higher at {over:.0%}; after {rounds[-1]:,}: {one[:, rounds[-1] - 1].mean():.3g} and "
            f"{other[:, rounds[-1] - 1].mean():.3g}, {told(tests[-1])}"
        )
        return Verdict(HOLDS if under > HALF else FAILS if over >= HALF else OPEN, words, tests[-1])

    return check


def alike(panel: str, a: str, b: str, tolerance: float) -> Check:
    """At the end, a is neither higher nor lower than b by more than a share of b's average regret."""

    def check(outcome: Outcome) -> Verdict:
        u, v = _at(outcome[panel][a]), _at(outcome[panel][b])
        room = tolerance * float(v.mean())
        part = Part(paired(u, v), -room, room)
        words = f"{a} {u.mean():.3g}, {b} {v.mean():.3g} ({ratio(u, v) - 1.0:+.1%}; wanted ±{tolerance:.0%}): "
        return Verdict(part.conclusion(), words + told_between(part, float(v.mean()), "+.1%"), part.found)

    return check


def within_factor(panel: str, a: str, b: str, factor: float, measure: Measure | None = None) -> Check:
    """Line a ends with less than `factor` times what b has, in average regret or another measure."""

    def check(outcome: Outcome) -> Verdict:
        u, v = (_end(outcome[panel][label], measure) for label in (a, b))
        part = below(u, factor * v)
        words = f"{a} has {ratio(u, v):.2f} times the regret of {b}; against {factor:.3g} times: {told(part.found)}"
        return Verdict(part.conclusion(), words, part.found)

    return check


def matched_early(panel: str, fast: str, slow: str, share: float = 0.01, most: int | None = None) -> Check:
    """What `slow` has after all rounds, `fast` has after this share of them, or after `most` where that is fewer."""

    def check(outcome: Outcome) -> Verdict:
        one, other = (average_regret(outcome[panel][label].regrets) for label in (fast, slow))
        T = one.shape[1]
        t = max(1, min(int(share * T), most or T))
        part = below(one[:, t - 1], other[:, -1])
        first = np.flatnonzero(one.mean(axis=0) <= other[:, -1].mean())
        when = f"first after {int(first[0]) + 1:,}" if first.size else "never"
        words = (
            f"{slow} {other[:, -1].mean():.3g} after {T:,} rounds, {fast} {one[:, t - 1].mean():.3g} after {t:,} "
            f"({when} as low): {told(part.found)}"
        )
        return Verdict(part.conclusion(), words, part.found)

    return check


def cheaper(panel: str, a: str, b: str, share: float = 0.1) -> Check:
    """A run of line a takes less than this share of the processor time of one of b."""

    def check(outcome: Outcome) -> Verdict:
        one, other = outcome[panel][a].seconds, outcome[panel][b].seconds
        part = below(one, share * other)
        longer = float(other.mean()) / max(float(one.mean()), 1e-9)
        words = f"{one.mean():.2g} s a run against {other.mean():.2g} s: {longer:,.0f} times as long"
        return Verdict(part.conclusion(), f"{words}; against {1.0 / share:.3g} times: {told(part.found)}", part.found)

    return check


# ---------------------------------------------------------------------------- claims about one line


def reduced(panel: str, labels: Sequence[str], t: int) -> Check:
    """After t rounds the average regret of every line is less than half of that of the first round."""

    def check(outcome: Outcome) -> Verdict:
        ran = [outcome[panel][label] for label in labels]
        parts = [below(_at(x, t), HALF * _at(x, 1)) for x in ran]
        worst = weakest(parts).found
        shares = [ratio(_at(x, t), _at(x, 1)) for x in ran]
        listed = ", ".join(f"{label} {share:.0%}" for label, share in zip(labels, shares))
        words = f"average regret after {t} rounds, of the first round's: {listed}"
        return Verdict(all_hold(parts), f"{words}; against half, the highest: {told(worst)}", worst)

    return check


def vanishing(panel: str, labels: Sequence[str]) -> Check:
    """Every line approaches zero."""

    def check(outcome: Outcome) -> Verdict:
        quarters = [_quarters(outcome[panel][label]) for label in labels]
        parts = [
            part
            for first, second, last in quarters
            for part in (below(last, TENTH * first), below(last, FALLING * second))
        ]
        worst = weakest(parts).found
        words = f"{_falling(labels, quarters)}; against a tenth of the first and 0.8 of the second, the highest: "
        return Verdict(all_hold(parts), words + told(worst), worst)

    return check


def stuck(panel: str, labels: Sequence[str]) -> Check:
    """No line approaches zero: its last quarter has more than 0.8 of the regret of its second one."""

    def check(outcome: Outcome) -> Verdict:
        quarters = [_quarters(outcome[panel][label]) for label in labels]
        parts = [below(FALLING * second, last) for _, second, last in quarters]
        worst = weakest(parts).found
        words = f"{_falling(labels, quarters)}; 0.8 of the second less the last, the highest: {told(worst)}"
        return Verdict(all_hold(parts), words, worst)

    return check


def _falling(labels: Sequence[str], quarters: Sequence[tuple[Array, Array, Array]]) -> str:
    listed = (
        f"{label} {first.mean():.3g}, {second.mean():.3g}, {last.mean():.3g}"
        for label, (first, second, last) in zip(labels, quarters)
    )
    return f"regret in the first ten rounds, the second and the last quarter: {'; '.join(listed)}"


def steadier(panel: str, labels: Sequence[str]) -> Check:
    """The standard error of every line's average regret is lower at the end than after ten rounds.

    By the test of Pitman and Morgan: of paired values, the variance of one is lower where their difference and their
    sum are correlated.
    """

    def check(outcome: Outcome) -> Verdict:
        averages = [average_regret(outcome[panel][label].regrets)[:, [9, -1]] for label in labels]
        parts = [_steadier(values) for values in averages]
        worst = weakest(parts).found
        errors = [standard_error(values) for values in averages]
        listed = ", ".join(f"{label} {early:.2g} and {late:.2g}" for label, (early, late) in zip(labels, errors))
        words = f"after ten rounds and at the end: {listed}; Pitman and Morgan's correlation, the highest: "
        return Verdict(all_hold(parts), words + told(worst), worst)

    return check


def _steadier(values: Array) -> Part:
    """That the second of paired values (runs x 2) scatters less: that late + early and late - early go together less
    than not at all. The difference is their correlation r, whose t has n - 2 degrees of freedom."""
    n = len(values)
    more, less = values[:, 1] + values[:, 0], values[:, 1] - values[:, 0]
    spread = float(more.std() * less.std()) if n > 2 else 0.0
    if spread == 0.0:
        return Part(t_test(0.0, math.nan, n, math.nan), high=0.0)
    r = float(np.mean((more - more.mean()) * (less - less.mean())) / spread)
    return Part(t_test(r, math.sqrt(max(1.0 - r * r, 0.0) / (n - 2)), n, n - 2.0), high=0.0)


def logarithmic(panel: str, label: str, measure: Measure = QUADRATIC) -> Check:
    """What a line adds up grows as log t: in the last decade of rounds not much more than in the one before."""

    def check(outcome: Outcome) -> Verdict:
        last, before = decades(outcome[panel][label], measure)
        return _growing(below(last, DECADE * before), last, before)

    return check


def slower_than_log(panel: str, label: str, measure: Measure = QUADRATIC) -> Check:
    """What a line adds up grows faster than log t."""

    def check(outcome: Outcome) -> Verdict:
        last, before = decades(outcome[panel][label], measure)
        return _growing(below(DECADE * before, last), last, before)

    return check


def _growing(part: Part, last: Array, before: Array) -> Verdict:
    words = f"the last decade adds {ratio(last, before):.2f} times what the one before added (log t: 1, sqrt t: 3.16)"
    return Verdict(part.conclusion(), f"{words}; against {DECADE} times: {told(part.found)}", part.found)


def decades(ran: Ran, measure: Measure) -> tuple[Array, Array]:
    """What the last decade of rounds adds, and the decade before (runs,)."""
    total = measure.of(ran.regrets, ran.M)
    T = total.shape[1]
    tenth, hundredth = total[:, T // 10 - 1], total[:, T // 100 - 1]
    return total[:, -1] - tenth, tenth - hundredth


def bounded(panel: str, labels: Sequence[str], measure: Measure = AVERAGE) -> Check:
    """At every mark, no line is above what theory promises: its mean over the runs, as the bound is.

    Of one run, or where all are equal, as they are.
    """

    def check(outcome: Outcome) -> Verdict:
        shares, parts = [], []
        for label in labels:
            ran = outcome[panel][label]
            if not ran.bound.size:
                return Verdict(OPEN, f"{label}: {ran.theorem or 'no theorem'} promises nothing here: {ran.lacking}")
            drawn = measure.of(ran.regrets, ran.M)[:, ran.marks.astype(int) - 1] / ran.bound
            shares.append(float(drawn.mean(axis=0).max()))
            parts += [below(column, np.full(len(drawn), 1.0 + 1e-9)) for column in drawn.T]
        listed = ", ".join(f"{label} {share:.2g}" for label, share in zip(labels, shares))
        words = f"what is drawn / the bound, at most: {listed}"
        alone = len(outcome[panel][labels[0]].regrets) == 1
        return Verdict(fact(max(shares) <= 1.0 + 1e-9) if alone else all_hold(parts), words)

    return check


def closer(near: str, far: str, a: str, b: str) -> Check:
    """The ratio of the average regrets of a and b, a's the higher, is nearer to one in one panel than in the other.

    Of the two, the logarithms are compared, whose scatter is that of a and b as shares of their means (delta method).
    """

    def check(outcome: Outcome) -> Verdict:
        ends = [(_at(outcome[panel][a]), _at(outcome[panel][b])) for panel in (near, far)]
        ratios = [ratio(u, v) for u, v in ends]
        logs = [u / u.mean() - v / v.mean() + math.log(ratio(u, v)) for u, v in ends]
        found = apart(*logs)
        words = f"{a} has {ratios[0]:.2f} times the regret of {b} in {near}, {ratios[1]:.2f} in {far}"
        return Verdict(Part(found, high=0.0).conclusion(), f"{words}; of their logarithms: {told(found)}", found)

    return check


def lower_bound_met(panel: str, labels: Sequence[str]) -> Check:
    """[J15] Lemma 3: the average regret of a run of T rounds is 2 / sqrt T, to rounding, for every T that was run."""

    def check(outcome: Outcome) -> Verdict:
        worst = 0.0
        for label in labels:
            ran = outcome[panel][label]
            worst = max(worst, float(np.abs(ran.regrets.mean(axis=0) * np.sqrt(ran.marks) / 2.0 - 1.0).max()))
        words = f"largest relative difference from 2 / sqrt T, over all T and learners: {worst:.1g}"
        return Verdict(fact(worst < 1e-9), words)

    return check
