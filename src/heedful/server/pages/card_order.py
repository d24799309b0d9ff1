"""The order of the cards on a page: as they were dealt, as the model ranks them, or as a person put them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from heedful.core.decoding import decoder
from heedful.core.validation import describe
from heedful.loop import records


class Placement(msgspec.Struct, frozen=True):
    """The places that a person gave to cards. The page stores it and sends it back unchanged with each request."""

    order: tuple[str, ...]
    """all cards of the page, in the order after the person's correction"""
    cards: tuple[str, ...]
    """the cards that the person moved, the last one last"""
    kind: str
    """pick or order"""
    event: str
    """the id of the correction"""
    version: int
    """the version of the model after it had learned the correction"""

    def around(self, ranked: Sequence[str], version: int) -> tuple[str, ...]:
        """Return the order of the cards under a model of this `version`, which ranks them as `ranked`.

        While the model has learned nothing new, this is the person's order. Afterwards the cards that the person moved
        keep their places, and the others follow the model's order around them.
        """
        own = [name for name in self.order if name in ranked]
        if version == self.version and len(own) == len(ranked):
            return tuple(own)
        fixed = {own.index(name): name for name in self.cards if name in own}
        others = iter([name for name in ranked if name not in fixed.values()])
        return tuple([fixed[i] if i in fixed else next(others) for i in range(len(ranked))])


class Hand(NamedTuple):
    """The cards on a page."""

    names: tuple[str, ...]
    """the cards in the order in which they are shown, best first"""
    dealt: tuple[str, ...]
    """the same cards in the order in which they were dealt"""
    decision: str = ""
    """the id of the decision whose list this is; "" if the cards were ranked again since"""
    arm: str = ""
    """the arm of that decision: control or learned"""
    ranked: tuple[str, ...] = ()
    """the same cards in the model's order"""
    placed: Placement | None = None
    """the places that the person gave to cards; None for none"""

    def place(self, name: str) -> int:
        """Return the place, from 1, that the model gives to a card."""
        return self.ranked.index(name) + 1

    def agreement(self, name: str, title: str) -> str:
        """Return whether the model agrees with the place of a card, as a sentence."""
        if self.place(name) == self.names.index(name) + 1:
            return f"What it learned so far puts {title} there, too."
        return f"By what it learned so far {title} would stand {ordinal(self.place(name))}."


def parse_placement(text: str, most: int) -> Placement:
    """Read a placement, of at most `most` cards, from the JSON that a page sends. Raise ValueError if it is none."""
    try:
        found = decoder(Placement).decode(text)
        for names in (found.order, found.cards):
            if len(records.distinct("placed", list(names), 0)) > most:
                raise ValueError(f"at most {most} cards")
    except (ValueError, RecursionError):
        raise ValueError(f"placed: expected what the page was given, got {describe(text)}") from None
    return found


def ordinal(n: int) -> str:
    """Return `n` with its ending: "1st", "2nd", "3rd", ..."""
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"
