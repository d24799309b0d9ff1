"""Claims about a sweep: a line for every value of a hyperparameter, and what all of them end with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from heedful.papers.figure import FAILS, HOLDS, OPEN, Check, Conclusion, Outcome, Verdict
from heedful.papers.statistics import below, lowest

Array = npt.NDArray[np.float64]

TWICE, WIDE = 2.0, 100.0
"""A value is good where it ends with less than twice the least; good over a factor of 100 is a wide range."""


def best_value(panel: str, values: Sequence[float], best: float) -> Check:
    """Of the lines of a sweep, the one of this value ends lower than each of the others."""

    def check(outcome: Outcome) -> Verdict:
        ends = _ends(outcome, panel, values)
        return lowest(ends, best, {value: f"{value:g}" for value in values}, ".3g")

    return check


def good_values(panel: str, values: Sequence[float]) -> Check:
    """Less than twice the least over at least a factor 100 of the values, and not so at either extreme."""

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
    """The values with less than twice the least span more in one panel than in another."""

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
    """The values around the one that ends lowest that have less than twice its regret: those of which that holds, and
    those of which it cannot be told that it does not."""
    ends = _ends(outcome, panel, values)
    least = min(ends, key=lambda value: ends[value].mean())
    found = {value: below(end, TWICE * ends[least]).conclusion(len(values)) for value, end in ends.items()}
    found[least] = HOLDS
    return _around(least, values, [v for v in values if found[v] == HOLDS]), _around(
        least, values, [v for v in values if found[v] != FAILS]
    )


def _around(least: float, values: Sequence[float], good: Sequence[float]) -> list[float]:
    """Those of the good values between which and the least there is no other value."""
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
    return {value: ran.regrets.mean(axis=1) for value, ran in zip(values, outcome[panel].values())}
