"""Claims about a sweep: a line for every value of a hyperparameter, and what all of them end with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from heedful.figures.figure import Check, Outcome, Verdict
from heedful.figures.statistics import paired, told

Array = npt.NDArray[np.float64]


def best_value(panel: str, values: Sequence[float], best: float) -> Check:
    """Of the lines of a sweep, the one of this value ends lowest."""

    def check(outcome: Outcome) -> Verdict:
        ends = _ends(outcome, panel, values)
        least = min(ends, key=lambda value: ends[value].mean())
        found = paired(ends[best], ends[least])
        return Verdict(
            least == best,
            f"lowest at {least:g} ({ends[least].mean():.3g}; {best:g} has {ends[best].mean():.3g}): {told(found)}",
            found,
        )

    return check


def good_values(panel: str, values: Sequence[float]) -> Check:
    """Within a factor 2 of the best over at least a factor 100 of the values; both extremes outside of it."""

    def check(outcome: Outcome) -> Verdict:
        good = good_range(outcome, panel, values)
        span = good[-1] / good[0]
        holds = span >= 100 and values[0] not in good and values[-1] not in good
        return Verdict(
            holds,
            f"at most twice the least regret from {good[0]:g} to {good[-1]:g}; tried {values[0]:g} to {values[-1]:g}",
        )

    return check


def broader(wide: str, narrow: str, values: Sequence[float]) -> Check:
    """The values within a factor 2 of the best span more in one panel than in another."""

    def check(outcome: Outcome) -> Verdict:
        spans = [(good[0], good[-1]) for good in (good_range(outcome, panel, values) for panel in (wide, narrow))]
        (a, b), (c, d) = spans
        return Verdict(b / a > d / c, f"{wide}: {a:g} to {b:g}; {narrow}: {c:g} to {d:g}")

    return check


def good_range(outcome: Outcome, panel: str, values: Sequence[float]) -> list[float]:
    """The values around the best whose regret is at most twice the least."""
    ends = {value: float(end.mean()) for value, end in _ends(outcome, panel, values).items()}
    least = min(ends, key=lambda value: ends[value])
    good = [value for value in values if ends[value] <= 2.0 * ends[least]]
    i = j = values.index(least)
    while i > 0 and values[i - 1] in good:
        i -= 1
    while j < len(values) - 1 and values[j + 1] in good:
        j += 1
    return list(values[i : j + 1])


def _ends(outcome: Outcome, panel: str, values: Sequence[float]) -> dict[float, Array]:
    return {value: ran.regrets.mean(axis=1) for value, ran in zip(values, outcome[panel].values())}
