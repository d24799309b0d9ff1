"""How much each feature of an item contributes to its score, and the method by which that was computed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from heedful.results.explanation import Contribution, Contributions

EXACT = "exact: the score is the sum of its parts"
GRADIENT = (
    "first order: the derivative of the score by each feature, times the feature; the parts need not sum to the score"
)
REMOVED = (
    "by removal: the score less the score of the item with that feature at 0, one feature at a time; the parts need "
    "not sum to the score"
)


def sort_parts(parts: Iterable[Contribution]) -> tuple[Contribution, ...]:
    """Return the contributions `parts` that are not 0, the largest in size first, and NaN before all."""
    there = [part for part in parts if part.counts != 0.0]
    return tuple(sorted(there, key=lambda part: -math.inf if math.isnan(part.counts) else -abs(part.counts)))


def linear(names: Sequence[str], weights: Any, values: Any, score_is: str) -> Contributions:
    """Return the contributions to a score that is linear in N features: weight times value of each.

    `names` are the features' names, `weights` and `values` (N,) each; `score_is` says what the score is: "utility"."""
    parts = [
        Contribution(name, float(value), float(weight), float(weight * value))
        for name, weight, value in zip(names, weights, values)
    ]
    return Contributions("exact", EXACT, score_is, sort_parts(parts))


def gradient(names: Sequence[str], slopes: object, values: object, score_is: str) -> Contributions:
    """Return first-order contributions to a score that is not linear in its N features: derivative times value of each.

    `names` are the features' names, `slopes` the derivatives of the score (N,), `values` those of the features (N,);
    `score_is` says what the score is: "utility"."""
    found = linear(names, slopes, values, score_is)
    return found._replace(method="gradient", about=GRADIENT)


def none(why: str, score_is: str = "score") -> Contributions:
    """Return empty contributions; `why` says in words why there are none, `score_is` what the score is."""
    return Contributions("none", why, score_is)
