"""Learners of ratings by name, such as `bmf`, for loops; checks of the range of ratings and of actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heedful.loop import records
from heedful.loop.interactions.named import loop_learner
from heedful.loop.interactions.rating.implicit_feedback import check_actions
from heedful.spaces.slate import Slate

DEFAULT = "bmf"
"""The learner of a loop of ratings if none is named."""
_ACTIONS = {"view": (0.55, 0.1), "cart": (0.75, 0.5), "buy": (1.0, 1.0), "hide": (0.0, 1.0)}
"""The actions if none are given: (rating as a share of the range, 0 to 1; how many ratings it counts as)."""


def rater(spec: str, size: int, ratings: tuple[float, float] | None, n_features: int = 0) -> Any:
    """Return the learner of ratings that `spec` names, to show `size` items with `n_features` features.

    `ratings` are the (lowest, highest) rating. Raise ValueError if there is no such learner, or `ratings` is None."""
    if ratings is None:
        expected = "expected the lowest and the highest rating there may be, such as 1 and 5"
        raise ValueError(f"ratings: {expected}, as {spec} learns from ratings, got none")
    learner = loop_learner(spec, n_features, Slate(size, *ratings), "rating", f"of ratings, such as {DEFAULT}")
    if not isinstance(getattr(learner, "space", None), Slate):
        raise ValueError(f"learner: expected one whose space is a Slate, the items that it shows, got {spec}")
    return learner


def check_table(given: Mapping[str, object], unsaid: Mapping[str, object], low: float, high: float) -> dict[str, Any]:
    """Return the table of actions: for each, by name, the rating `value` that it stands for, and the number `weight` of
    ratings that it counts as.

    `given` is the table to check, for ratings from `low` to `high`. If it equals `unsaid`, the default of the settings,
    the result is heedful's default table, scaled to that range. Raise ValueError, naming the action, if an entry is not
    valid."""
    if given == unsaid:
        return {name: (low + share * (high - low), weight) for name, (share, weight) in _ACTIONS.items()}
    named = {records.check_id("actions", name): told for name, told in given.items()}
    return {name: (each.value, each.weight) for name, each in check_actions(named, Slate(1, low, high)).items()}
