"""What only loops of some kinds were created with, as a client reads it."""

from __future__ import annotations

import msgspec


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of a loop; those of other kinds are None."""

    grades: int | None = None
    """the number of grades, in a loop of grades"""
    ratings: tuple[float, float] | None = None
    """the lowest and highest rating, in a loop of ratings"""
    choices: str | None = None
    """the purpose of choices, best or ranking, in a loop of choices"""
