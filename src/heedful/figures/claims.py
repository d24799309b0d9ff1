"""What turns a sentence under a figure into a yes or a no: statistics of paired runs, with the lines drawn beforehand.

Run i of two lines met the same arrivals, so their difference is tested by a paired t-test over runs (permutations of
the queries, or people). The words of the papers have no numbers; here they have, the same everywhere:

- lower: at the end, with p < 0.05 (two-sided);
- over most of the range: significantly lower at more than half of 60 rounds spread evenly on a logarithmic scale;
- substantially reduced: the average regret is at most half of that of the first round;
- approaches zero: in the last quarter at most a tenth of the first ten rounds', and still falling;
- still falling: the last quarter has less than 0.8 of the regret of the second quarter (0.65 is 1 / sqrt t);
- comparable, not much different, nearly identical: the 95 % interval of the difference lies within 25, 10, 5 % of
  the other's average regret;
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
from heedful.figures.figure import AVERAGE, QUADRATIC, Check, Measure, Outcome, Ran, Verdict
from heedful.figures.statistics import SIGNIFICANT, log_spaced, paired, ratio, reach, significantly_lower, told

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


def _quarters(ran: Ran) -> tuple[float, float, float]:
    """The mean regret of the first ten rounds, of the second and of the last quarter."""
    mean, T = ran.regrets.mean(axis=0), ran.regrets.shape[1]
    return float(mean[:10].mean()), float(mean[T // 4 : T // 2].mean()), float(mean[T - T // 4 :].mean())


# ---------------------------------------------------------------------------- claims about two lines


def lower(panel: str, a: str, b: str, measure: Measure | None = None) -> Check:
    """Line a ends significantly lower than line b, in average regret or in another measure."""

    def check(outcome: Outcome) -> Verdict:
        u, v = (_end(outcome[panel][label], measure) for label in (a, b))
        found = paired(u, v)
        return Verdict(significantly_lower(found), f"{a} {u.mean():.3g}, {b} {v.mean():.3g}: {told(found)}", found)

    return check


def falls_in_order(panel: str, labels: Sequence[str]) -> Check:
    """Every line ends significantly lower than the one before it."""

    def check(outcome: Outcome) -> Verdict:
        ends = [_at(outcome[panel][label]) for label in labels]
        steps = [paired(v, u) for u, v in pairwise(ends)]
        worst = max(steps, key=lambda step: step.t)
        listed = ", ".join(f"{label} {end.mean():.3g}" for label, end in zip(labels, ends))
        return Verdict(all(map(significantly_lower, steps)), f"{listed}; the smallest step: {told(worst)}", worst)

    return check


def lower_mostly(panel: str, a: str, b: str, least: int = 1, most: int = 0) -> Check:
    """Line a is significantly lower than line b at most of the rounds from `least` to `most` (0: the last)."""

    def check(outcome: Outcome) -> Verdict:
        one, other = (average_regret(outcome[panel][label].regrets) for label in (a, b))
        rounds = [t for t in log_spaced(one.shape[1]) if least <= t <= (most or one.shape[1])]
        tests = [paired(one[:, t - 1], other[:, t - 1]) for t in rounds]
        below, above = (
            float(np.mean([sign * x.difference < 0 and x.p < SIGNIFICANT for x in tests])) for sign in (1, -1)
        )
        span = f"of rounds {rounds[0]:,} to {rounds[-1]:,}"
        return Verdict(
            below > HALF,
            f"{a} is significantly lower than {b} at {below:.0%} {span}, higher at {above:.0%}; "
            f"after {rounds[-1]:,}: {one[:, rounds[-1] - 1].mean():.3g} and {other[:, rounds[-1] - 1].mean():.3g}, "
            f"{told(tests[-1])}",
            tests[-1],
        )

    return check


def alike(panel: str, a: str, b: str, tolerance: float) -> Check:
    """At the end, the 95 % interval of the difference of a and b lies within a share of b's average regret."""

    def check(outcome: Outcome) -> Verdict:
        u, v = _at(outcome[panel][a]), _at(outcome[panel][b])
        found = paired(u, v)
        room = tolerance * float(v.mean())
        holds = abs(found.difference) + reach(found) <= room
        apart = ratio(u, v) - 1.0
        return Verdict(
            bool(holds),
            f"{a} {u.mean():.3g}, {b} {v.mean():.3g} ({apart:+.1%}; wanted ±{tolerance:.0%}): {told(found)}",
            found,
        )

    return check


def within_factor(panel: str, a: str, b: str, factor: float, measure: Measure | None = None) -> Check:
    """Line a ends with less than `factor` times what b has, significantly, in average regret or another measure."""

    def check(outcome: Outcome) -> Verdict:
        u, v = (_end(outcome[panel][label], measure) for label in (a, b))
        found = paired(u, factor * v)
        return Verdict(
            significantly_lower(found),
            f"{a} has {ratio(u, v):.2f} times the regret of {b}; against {factor:.3g} times: {told(found)}",
            found,
        )

    return check


def matched_early(panel: str, fast: str, slow: str, share: float = 0.01, most: float = math.inf) -> Check:
    """What `slow` has after all rounds, `fast` has after at most this share of them, and at most so many."""

    def check(outcome: Outcome) -> Verdict:
        one, other = (average_regret(outcome[panel][label].regrets) for label in (fast, slow))
        T, end = one.shape[1], float(other[:, -1].mean())
        first = np.flatnonzero(one.mean(axis=0) <= end)
        when = int(first[0]) + 1 if first.size else T + 1
        found, wanted = paired(one[:, -1], other[:, -1]), min(share * T, most)
        matched = f"is matched by {fast} after {when:,}" if first.size else f"is never matched by {fast}"
        words = f"the {end:.3g} of {slow} after {T:,} rounds {matched}"
        return Verdict(when <= wanted, f"{words} (wanted at most {wanted:,.0f}); at the end: {told(found)}", found)

    return check


def cheaper(panel: str, a: str, b: str, share: float = 0.1) -> Check:
    """A run of line a takes at most this share of the processor time of one of b."""

    def check(outcome: Outcome) -> Verdict:
        one, other = outcome[panel][a].seconds, outcome[panel][b].seconds
        return Verdict(
            one <= share * other,
            f"{one:.2g} s a run against {other:.2g} s: {other / max(one, 1e-9):,.0f} times as long",
        )

    return check


# ---------------------------------------------------------------------------- claims about one line


def reduced(panel: str, labels: Sequence[str], t: int) -> Check:
    """After t rounds the average regret of every line is at most half of that of the first round."""

    def check(outcome: Outcome) -> Verdict:
        ran = [outcome[panel][label] for label in labels]
        tests = [paired(_at(x, t), HALF * _at(x, 1)) for x in ran]
        shares = [ratio(_at(x, t), _at(x, 1)) for x in ran]
        worst = max(tests, key=lambda test: test.t)
        listed = ", ".join(f"{label} {share:.0%}" for label, share in zip(labels, shares))
        words = f"average regret after {t} rounds, of the first round's: {listed}"
        holds = all(map(significantly_lower, tests))
        return Verdict(holds, f"{words}; against half, the highest: {told(worst)}", worst)

    return check


def vanishing(panel: str, labels: Sequence[str]) -> Check:
    """Every line approaches zero."""

    def check(outcome: Outcome) -> Verdict:
        quarters = [_quarters(outcome[panel][label]) for label in labels]
        holds = [last <= TENTH * first and last < FALLING * second for first, second, last in quarters]
        return Verdict(all(holds), _falling(labels, quarters))

    return check


def stuck(panel: str, labels: Sequence[str]) -> Check:
    """No line approaches zero: its last quarter is not lower than its second one."""

    def check(outcome: Outcome) -> Verdict:
        quarters = [_quarters(outcome[panel][label]) for label in labels]
        return Verdict(all(last >= FALLING * second for _, second, last in quarters), _falling(labels, quarters))

    return check


def steadier(panel: str, labels: Sequence[str]) -> Check:
    """The standard error of every line's average regret is lower at the end than after ten rounds."""

    def check(outcome: Outcome) -> Verdict:
        errors = [standard_error(average_regret(outcome[panel][label].regrets))[[9, -1]] for label in labels]
        listed = ", ".join(f"{label} {early:.2g} and {late:.2g}" for label, (early, late) in zip(labels, errors))
        return Verdict(all(late < early for early, late in errors), f"after ten rounds and at the end: {listed}")

    return check


def logarithmic(panel: str, label: str, measure: Measure = QUADRATIC) -> Check:
    """What a line adds up grows as log t: in the last decade of rounds not much more than in the one before."""

    def check(outcome: Outcome) -> Verdict:
        growth = decades(outcome[panel][label], measure)
        return Verdict(
            growth < DECADE,
            f"the last decade adds {growth:.2f} times what the one before added (log t: 1, sqrt t: 3.16)",
        )

    return check


def slower_than_log(panel: str, label: str, measure: Measure = QUADRATIC) -> Check:
    """What a line adds up grows faster than log t."""

    def check(outcome: Outcome) -> Verdict:
        growth = decades(outcome[panel][label], measure)
        return Verdict(
            growth >= DECADE,
            f"the last decade adds {growth:.2f} times what the one before added (log t: 1, sqrt t: 3.16)",
        )

    return check


def decades(ran: Ran, measure: Measure) -> float:
    """How much more the last decade of rounds adds than the decade before."""
    total = measure.of(ran.regrets, ran.M).mean(axis=0)
    T = total.size
    last, before = total[-1] - total[T // 10 - 1], total[T // 10 - 1] - total[T // 100 - 1]
    return float(last / before) if before > 0 else math.inf


def bounded(panel: str, labels: Sequence[str], measure: Measure = AVERAGE) -> Check:
    """At every mark, no line is above what theory promises: its mean over the runs, as the bound is."""

    def check(outcome: Outcome) -> Verdict:
        shares = []
        for label in labels:
            ran = outcome[panel][label]
            if not ran.bound.size:
                return Verdict(None, f"{label}: {ran.theorem or 'no theorem'} promises nothing here: {ran.lacking}")
            drawn = measure.of(ran.regrets, ran.M).mean(axis=0)[ran.marks.astype(int) - 1]
            shares.append(float((drawn / ran.bound).max()))
        listed = ", ".join(f"{label} {share:.2g}" for label, share in zip(labels, shares))
        return Verdict(max(shares) <= 1.0 + 1e-9, f"what is drawn / the bound, at most: {listed}")

    return check


def _falling(labels: Sequence[str], quarters: Sequence[tuple[float, float, float]]) -> str:
    listed = (
        f"{label} {first:.3g}, {second:.3g}, {last:.3g}" for label, (first, second, last) in zip(labels, quarters)
    )
    return f"regret in the first ten rounds, the second and the last quarter: {'; '.join(listed)}"


def closer(near: str, far: str, a: str, b: str) -> Check:
    """The ratio of the average regrets of a and b is nearer to one in one panel than in the other."""

    def check(outcome: Outcome) -> Verdict:
        ratios = [ratio(_at(outcome[panel][a]), _at(outcome[panel][b])) for panel in (near, far)]
        return Verdict(
            ratios[0] < ratios[1],
            f"{a} has {ratios[0]:.2f} times the regret of {b} in {near}, {ratios[1]:.2f} in {far}",
        )

    return check


def lower_bound_met(panel: str, labels: Sequence[str]) -> Check:
    """[J15] Lemma 3: the average regret of a run of T rounds is 2 / sqrt T, to rounding, for every T that was run."""

    def check(outcome: Outcome) -> Verdict:
        worst = 0.0
        for label in labels:
            ran = outcome[panel][label]
            worst = max(worst, float(np.abs(ran.regrets.mean(axis=0) * np.sqrt(ran.marks) / 2.0 - 1.0).max()))
        return Verdict(
            worst < 1e-9, f"largest relative difference from 2 / sqrt T, over all T and learners: {worst:.1g}"
        )

    return check
