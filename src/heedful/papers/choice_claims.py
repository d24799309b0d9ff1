"""Claims about models of comparisons: entries of a table against the paper's numbers, and which model has the lower
error.

Each public function that returns a check returns a function from the results of a figure to a verdict on one claim.
`panel` is the key of one of the figure's plots; `label`, `a`, `b`, `ours` and `others` are labels of curves in it. The
values of a curve are errors unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from heedful.experiments.run import standard_error
from heedful.papers.figure import FAILS, HOLDS, OPEN, Check, Conclusion, LineResult, Outcome, Verdict
from heedful.papers.statistics import (
    Part,
    below,
    describe_interval,
    fact,
    one_holds,
    paired_t_test,
    verdict_on_all,
)

Array = npt.NDArray[np.float64]

NEAR = 0.02
"""the greatest difference of an error from the paper's number, either way, with which it counts as reproduced"""
EVEN = 0.01
"""Two models break even if their errors differ by at most this; one is as good as another if its error is higher by at
most this."""


IN_SECONDS = "{:.3g} s"
"""the format of values that are seconds"""


def ends(result: LineResult) -> Array:
    """Return the final value of each run (runs,) of a curve, from its results `result`."""
    return result.regrets[:, -1]


def with_error(values: Array) -> str:
    """Return the mean of `values` (runs,) as text, with its standard error if there are at least two."""
    if values.size < 2:
        return f"{values.mean():.3f}"
    return f"{values.mean():.3f} ± {float(standard_error(values)):.3f}"


def near(panel: str, label: str, paper: float) -> Check:
    """Check that the final mean of the curve `label` of the panel `panel` differs from the paper's number `paper` by at
    most .02 (NEAR)."""

    def check(outcome: Outcome) -> Verdict:
        values = ends(outcome[panel][label])
        part = Part(paired_t_test(values, np.full(values.size, paper)), -NEAR, NEAR)
        words = f"{with_error(values)}: {part.test.difference:+.3f}, expected ±{NEAR:.2f}; {describe_interval(part)}"
        return Verdict(part.conclusion(), words, part.test)

    return check


def lower_than_all(panel: str, ours: Sequence[str], others: Sequence[str], form: str = "{:.3f}") -> Check:
    """Check that each of the curves `ours` ends lower than each of the curves `others`.

    `form` is the format of final means in the text."""

    def check(outcome: Outcome) -> Verdict:
        values = {label: ends(outcome[panel][label]) for label in (*ours, *others)}
        parts = {f"{a} less {b}": below(values[a], values[b]) for a in ours for b in others}
        listed = ", ".join(f"{label} {form.format(value.mean())}" for label, value in values.items())
        return verdict_on_all(parts, f"{listed}; ")

    return check


def even(panel: str, a: str, b: str) -> Check:
    """Check that the final means of the curves `a` and `b` differ by at most .01 (EVEN)."""

    def check(outcome: Outcome) -> Verdict:
        u, v = (ends(outcome[panel][label]) for label in (a, b))
        part = Part(paired_t_test(u, v), -EVEN, EVEN)
        words = f"{a} {u.mean():.3f}, {b} {v.mean():.3f}, expected ±{EVEN:.2f}: {describe_interval(part)}"
        return Verdict(part.conclusion(), words, part.test)

    return check


def one_as_good(panel: str, some: Sequence[str], b: str) -> Check:
    """Check that at least one of the curves `some` ends at most .01 (EVEN) higher than the curve `b`."""

    def check(outcome: Outcome) -> Verdict:
        other = ends(outcome[panel][b])
        parts = {a: Part(paired_t_test(ends(outcome[panel][a]), other), high=EVEN) for a in some}
        least = min(parts, key=lambda label: parts[label].test.difference)
        words = f"{least} {other.mean() + parts[least].test.difference:.3f}, {b} {other.mean():.3f}, "
        words += f"expected at most {EVEN:+.2f}: {describe_interval(parts[least])}"
        return Verdict(one_holds(list(parts.values())), words, parts[least].test)

    return check


def wins(panels: Sequence[str], models: Sequence[str], a: str, b: str, most: int = -1, least: int = 0) -> Check:
    """Check that of the pairs of one of `panels` and one of `models`, the acquisition function `a` is significantly
    better than `b` in at least `least`, and significantly worse in at most `most` (-1: any number).

    The claim fails if more than `most` are significantly worse at level 0.05 / their number, so that none is by chance,
    or if so many are that `least` cannot be reached. It cannot be told if too few are better or worse.
    """

    def check(outcome: Outcome) -> Verdict:
        parts = {
            f"{model} {panel}": below(*(ends(outcome[panel][f"{model}-{rule}"]) for rule in (a, b)))
            for panel in panels
            for model in models
        }
        lower = [name for name, part in parts.items() if part.conclusion() == HOLDS]
        higher = [name for name, part in parts.items() if Part(part.test, low=0.0).conclusion() == HOLDS]
        surely = [name for name, part in parts.items() if part.conclusion(len(parts)) == FAILS]
        words = f"of {len(parts)}, {a} is significantly lower in {len(lower)}"
        words += f" ({', '.join(lower)})" if lower else ""
        words += f", {b} in {len(higher)}" + (f" ({', '.join(higher)})" if higher else "")
        conclusion: Conclusion = OPEN
        if len(lower) >= least and (most < 0 or len(higher) <= most):
            conclusion = HOLDS
        elif 0 <= most < len(surely) or len(parts) - len(surely) < least:
            conclusion = FAILS
        return Verdict(conclusion, words)

    return check


def throughout(panel: str, a: str, b: str) -> Check:
    """Check that the curve `a` is lower than the curve `b` at the start and after every question."""

    def check(outcome: Outcome) -> Verdict:
        lower, upper = (outcome[panel][label].regrets for label in (a, b))
        parts = {f"after {i}": below(u, v) for i, (u, v) in enumerate(zip(lower.T, upper.T))}
        difference = (lower - upper).mean(axis=0)
        return verdict_on_all(parts, f"{a} less {b}, from {difference.min():+.3f} to {difference.max():+.3f}; ")

    return check


def near_the_best(panel: str, guide: str, error: str) -> Check:
    """Check that the curve `error` is, at the length-scale where the curve `guide` has its highest mean, at most .01
    (EVEN) higher than at the length-scale of the tables, 1.
    """

    def check(outcome: Outcome) -> Verdict:
        curve = outcome[panel][guide]
        best = int(curve.regrets.mean(axis=0).argmax())
        errors = outcome[panel][error].regrets
        reference = int(np.abs(curve.marks - 1.0).argmin()) if curve.marks.size else 0
        part = Part(paired_t_test(errors[:, best], errors[:, reference]), high=EVEN)
        scale = float(curve.marks[best]) if curve.marks.size else float("nan")
        words = f"highest at {scale:.2g} times, error {errors[:, best].mean():.3f}; at 1, "
        words += f"{errors[:, reference].mean():.3f}, expected at most {EVEN:+.2f}: {describe_interval(part)}"
        return Verdict(part.conclusion(), words, part.test)

    return check


def asks_apart(panel: str, a: str, b: str, spread: str) -> Check:
    """Check that the curve `spread`, a standard deviation over inputs, is higher where the curve `a` is highest than
    where the curve `b` is highest."""

    def check(outcome: Outcome) -> Verdict:
        lines = outcome[panel]
        grid, sd = lines[spread].marks, lines[spread].regrets[0]
        highest = [int(lines[label].regrets[0].argmax()) for label in (a, b)]
        where = [
            f"{label} asks at {grid[i]:.2f}, standard deviation {sd[i]:.2f}" if grid.size else label
            for label, i in zip((a, b), highest)
        ]
        return Verdict(fact(bool(sd[highest[0]] > sd[highest[1]])), "; ".join(where))

    return check
