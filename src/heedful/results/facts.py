"""What is fixed of a loop, by its kind of feedback."""

from __future__ import annotations

import msgspec


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a loop that exist only for one kind of feedback (grades, ratings or choices); None for other
    kinds."""

    grades: int | None = None
    """the number of grades, in a loop of grades"""
    ratings: tuple[float, float] | None = None
    """the lowest and highest rating, in a loop of ratings"""
    choices: str | None = None
    """the purpose of choices, best or ranking, in a loop of choices"""
