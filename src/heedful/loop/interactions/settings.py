"""The settings that make a loop one of a certain kind of feedback, whatever its learner."""

from __future__ import annotations

from typing import Literal

import msgspec


class KindSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The settings that make a loop one of a certain kind of feedback; at most one of them is set, `k` aside."""

    k: int = 10
    """how many positions of a list count when a corrected order is learned from; with 1 a single item is shown, which
    clicks, thumbs and rewards judge. Where items are known by number: how many are shown unless a request says
    otherwise"""

    ratings: tuple[float, float] | None = None
    """selects a loop of ratings: the lowest and highest rating"""
    choices: Literal["best", "ranking"] | None = None
    """selects a loop of choices and says what they are for: finding the best, or ranking all. Two items are shown
    unless a request says otherwise, and `control` is the share of questions picked at random"""
    cost_weight: float | None = None
    """selects a loop of routes, which chooses a model for each prompt: by how much more probable a thumb up has to be
    to pay for one unit of cost, 0 or more. A request may say another in its context, as "cost_weight\""""
