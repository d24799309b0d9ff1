"""The fields of settings that make a loop of a kind, whatever its learner."""

from __future__ import annotations

from typing import Literal

import msgspec


class KindSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """None in loops of other kinds; at most one is set."""

    ratings: tuple[float, float] | None = None
    """makes a loop of ratings: the lowest and the highest there may be"""
    choices: Literal["best", "ranking"] | None = None
    """makes a loop of choices, and says what they are for: to find the best, or to rank all. Two are shown where a
    request does not say, and `control` is the share of questions that chance picks"""
