"""Claims about a sweep, a plot of regret by the value of a hyperparameter: one curve for each value.

Each function that returns a check returns a function from the results of a figure to a verdict. `panel` is the key of
the plot, `values` are those of the hyperparameter, in the order of its curves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from heedful.papers.figure import FAILS, HOLDS, OPEN, Check, Conclusion, Outcome, Verdict
from heedful.papers.statistics import below, lowest

Array = npt.NDArray[np.float64]

TWICE, WIDE = 2.0, 100.0
"""A hyperparameter's value is good if its regret is less than TWICE the least; good values that span a factor of WIDE
are a wide range."""


def best_value(panel: str, values: Sequence[float], best: float) -> Check:
    """Check that the value `best` has a lower average regret than each other value."""

    def check(outcome: Outcome) -> Verdict:
        ends = _ends(outcome, panel, values)
        return lowest(ends, best, {value: f"{value:g}" for value in values}, ".3g")

    return check


def good_values(panel: str, values: Sequence[float]) -> Check:
    """Check that the values with less than twice the lowest regret span at least a factor of 100, and exclude both
    extremes."""

    def check(outcome: Outcome) -> Verdict:
        sure, possible = good_ranges(outcome, panel, values)
        extremes = {values[0], values[-1]}
        conclusion: Conclusion = OPEN
        if _span(sure) >= WIDE and not extremes & {*possible}:
            conclusion = HOLDS
        elif _span(possible) < WIDE or extremes & {*sure}:
            conclusion = FAILS
        words = (
            f"tried {values[0]:g} to {values[-1]:g}; at most twice the least regret {_describe_alphas(sure, possible)}"
        )
        return Verdict(conclusion, words)

    return check


def broader(wide: str, narrow: str, values: Sequence[float]) -> Check:
    """Check that in sweeps over `values`, those with less than twice the lowest regret span a greater factor in the
    panel `wide` than in the panel `narrow`."""

    def check(outcome: Outcome) -> Verdict:
        (sure, possible), (sure_there, possible_there) = (
            good_ranges(outcome, panel, values) for panel in (wide, narrow)
        )
        conclusion: Conclusion = OPEN
        if _span(sure) > _span(possible_there):
            conclusion = HOLDS
        elif _span(possible) <= _span(sure_there):
            conclusion = FAILS
        words = f"{wide}: {_describe_alphas(sure, possible)}; {narrow}: {_describe_alphas(sure_there, possible_there)}"
        return Verdict(conclusion, words)

    return check


def good_ranges(outcome: Outcome, panel: str, values: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return (surely good, possibly good): the neighbouring `values` of a hyperparameter around the best one that have
    less than twice the lowest regret, in the plot `panel` of the results `outcome`.

    Surely good: their regret is significantly less than twice the lowest. Possibly good: it is not significantly more.
    """
    ends = _ends(outcome, panel, values)
    least = min(ends, key=lambda value: ends[value].mean())
    conclusions = {value: below(end, TWICE * ends[least]).conclusion(len(values)) for value, end in ends.items()}
    conclusions[least] = HOLDS
    return _around(least, values, [v for v in values if conclusions[v] == HOLDS]), _around(
        least, values, [v for v in values if conclusions[v] != FAILS]
    )


def _around(least: float, values: Sequence[float], good: Sequence[float]) -> list[float]:
    """Return the `values` from the best one, `least`, in both directions as long as they are among the `good` ones."""
    i = j = values.index(least)
    while i > 0 and values[i - 1] in good:
        i -= 1
    while j < len(values) - 1 and values[j + 1] in good:
        j += 1
    return list(values[i : j + 1])


def _span(good: Sequence[float]) -> float:
    return good[-1] / good[0]


def _describe_alphas(sure: Sequence[float], possible: Sequence[float]) -> str:
    words = f"from {sure[0]:g} to {sure[-1]:g}"
    return words if [*sure] == [*possible] else f"{words}, perhaps from {possible[0]:g} to {possible[-1]:g}"


def _ends(outcome: Outcome, panel: str, values: Sequence[float]) -> dict[float, Array]:
    return {value: result.regrets.mean(axis=1) for value, result in zip(values, outcome[panel].values())}
