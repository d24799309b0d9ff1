"""What only some loops were made with, as a client reads it."""

from __future__ import annotations

import msgspec


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Of each kind what the others have not: None there."""

    grades: int | None = None
    """how many there are, in a loop of grades"""
    ratings: tuple[float, float] | None = None
    """the lowest and the highest, in a loop of ratings"""
    choices: str | None = None
    """what they are for, best or ranking, in a loop of choices"""
