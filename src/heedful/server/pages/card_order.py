"""The order of the cards (items) on a page: as first shown, as the model ranks them now, or as a person moved them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from heedful.core.decoding import decoder
from heedful.core.validation import describe
from heedful.loop import records
from heedful.server.pages.forms import MOST


class Placement(msgspec.Struct, frozen=True):
    """A person's correction of the order of the cards; the page keeps it and sends it back with each request."""

    order: tuple[str, ...]
    """all cards of the page, in the order after the correction"""
    cards: tuple[str, ...]
    """the cards that the person moved, the last one last"""
    kind: str
    """what the correction was: "pick" (one card is the best) or "order\""""
    event: str
    """the id of the feedback with the correction"""
    version: int
    """the version of the model after it had learned the correction"""

    def around(self, ranked: Sequence[str], version: int) -> tuple[str, ...]:
        """Return the names of the cards in the order in which to show them, after this correction.

        `ranked` has them in the order of the model of this `version`. If that is the version that learned the
        correction, the result is the person's own order. If the model has learned more since, the cards that the person
        moved keep their positions, and the others fill the remaining positions in the model's order."""
        order = [name for name in self.order if name in ranked]
        if version == self.version and len(order) == len(ranked):
            return tuple(order)
        fixed = {order.index(name): name for name in self.cards if name in order}
        others = iter([name for name in ranked if name not in fixed.values()])
        return tuple([fixed[i] if i in fixed else next(others) for i in range(len(ranked))])


class Hand(NamedTuple):
    """The cards (items) that a page shows: as shown, as the loop proposed them, and as the model ranks them now."""

    names: tuple[str, ...]
    """the cards in the order shown, best first"""
    dealt: tuple[str, ...]
    """the same cards in the order in which they came to the page"""
    decision: str = ""
    """the id of the logged decision that showed them; "" if the page itself has reordered them since"""
    arm: str = ""
    """what made the list of that decision: "learned" (the model), "control" (an order without the model), "sampled" (a
    draw)"""
    ranked: tuple[str, ...] = ()
    """the same cards in the order of the model"""
    placed: Placement | None = None
    """the person's correction of the order; None without one"""

    def place(self, name: str) -> int:
        """Return the position, 1 for the best, of the card `name` in the model's ranking of these cards."""
        return self.ranked.index(name) + 1

    def agreement(self, name: str, title: str) -> str:
        """Return a sentence on whether the model agrees with where the card `name`, called `title`, is shown."""
        if self.place(name) == self.names.index(name) + 1:
            return f"What it learned so far puts {title} there, too."
        return f"By what it learned so far {title} would stand {ordinal(self.place(name))}."


def parse_placement(text: str) -> Placement:
    """Return a person's correction of the order of the cards, from the JSON `text` that a page sent.

    Raise ValueError if the text is no such correction, or one of more than `MOST` cards."""
    try:
        placement = decoder(Placement).decode(text)
        for names in (placement.order, placement.cards):
            if len(records.distinct("placed", list(names), 0)) > MOST:
                raise ValueError(f"at most {MOST} cards")
    except (ValueError, RecursionError):
        raise ValueError(f"placed: expected what the page was given, got {describe(text)}") from None
    return placement


def ordinal(n: int) -> str:
    """Return the number `n` with its ending: "1st", "2nd", "3rd", ..."""
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"
