"""How the cards lie: as they were dealt, as the model ranks them, or as a person put them, which stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from heedful.core.decoding import decoder
from heedful.core.validation import describe
from heedful.loop import records


class Placement(msgspec.Struct, frozen=True):
    """What a person last said of the cards on the page. The page keeps it, and hands it in again as it is."""

    order: tuple[str, ...]
    """as they lay then"""
    cards: tuple[str, ...]
    """the cards that the person moved, the last one last"""
    kind: str
    """pick or order"""
    event: str
    """the correction"""
    version: int
    """of the model that had learned it"""

    def around(self, ranked: Sequence[str], version: int) -> tuple[str, ...]:
        """The cards as they lie now that the model ranks them so: as they were put where it has learned nothing since,
        otherwise with those that were moved in their places and the others around them as it ranks them."""
        lie = [name for name in self.order if name in ranked]
        if version == self.version and len(lie) == len(ranked):
            return tuple(lie)
        fixed = {lie.index(name): name for name in self.cards if name in lie}
        others = iter([name for name in ranked if name not in fixed.values()])
        return tuple([fixed[i] if i in fixed else next(others) for i in range(len(ranked))])


class Hand(NamedTuple):
    """What is shown, best first."""

    names: tuple[str, ...]
    dealt: tuple[str, ...]
    """the same in the order in which they were dealt, which is the order where nothing was learned"""
    decision: str = ""
    """whose list this is, as long as it is as it was decided; "" for one that was ranked again"""
    arm: str = ""
    ranked: tuple[str, ...] = ()
    """as the model has them"""
    placed: Placement | None = None
    """what the person said of them, if anything: the cards are shown so"""

    def place(self, name: str) -> int:
        """Where the model alone would put one of them, from 1."""
        return self.ranked.index(name) + 1

    def follows(self, name: str, title: str) -> str:
        """How far the model goes along with where a card lies."""
        if self.place(name) == self.names.index(name) + 1:
            return f"What it learned so far puts {title} there, too."
        return f"By what it learned so far {title} would stand {ordinal(self.place(name))}."


def parse_placement(text: str, most: int) -> Placement:
    """What a page was given to keep, of at most so many cards. ValueError where it is something else."""
    try:
        found = decoder(Placement).decode(text)
        for names in (found.order, found.cards):
            if len(records.distinct("placed", list(names), 0)) > most:
                raise ValueError(f"at most {most} cards")
    except (ValueError, RecursionError):
        raise ValueError(f"placed: expected what the page was given, got {describe(text)}") from None
    return found


def ordinal(n: int) -> str:
    """1st, 2nd, 3rd, ..."""
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"
