"""What a loop of ratings thinks is liked: how much it knows, what it expects to be liked best, for one person why."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heedful.loop import Loop
from heedful.loop.explain import Explanation
from heedful.loop.interactions.rating.model import CONSUMED, RatingModel
from heedful.loop.packing import Known
from heedful.server.pages.cards import cards, title_of, with_titles
from heedful.server.pages.formatting import Moment, count, describe_lesson, moment
from heedful.server.pages.rating import expected, told

BEST = 10
"""Items that are told of."""
FROM = 5
"""Ratings that something comes from, which are told of."""
_SMALL = 0.005
"""Of the range of ratings: what counts less is not told of."""


class Best(NamedTuple):
    """An item that is expected to be liked."""

    title: str
    rating: str
    spread: str
    """its standard deviation; "" where the learner does not say"""
    own: str
    """what the person said of it: "said 4", "looked at"; "" for nothing"""
    at: float
    """where it stands on the scale, in percent of its length; where one standard deviation less does, and how long it
    is from there to one more"""
    left: float
    width: float


class Reason(NamedTuple):
    """What counts for a rating that was expected, or against it, and how much."""

    what: str
    counts: str


class Why(NamedTuple):
    """Why something was shown first to a person."""

    title: str
    at: Moment
    because: str
    known: tuple[str, ...]
    """from how much"""
    sums: tuple[Reason, ...]
    """what the expected rating is the sum of"""
    comes: tuple[Reason, ...]
    """which ratings it comes from"""


class Liked(NamedTuple):
    """What the page tells."""

    low: str
    high: str
    numbers: str
    best: tuple[Best, ...]
    unsaid: str
    """why nothing is expected, in words; "" where something is"""
    last: str
    """what came first in the last list that was shown to the person; "" where there is none"""
    why: Why | None
    """why that was; None where nobody asks"""


def of(loop: Loop, person: str | None, asked: bool = False) -> Liked | None:
    """What there is to tell, of a person or of somebody new; None for a loop of another kind. Where it is `asked` why
    something was shown, a part of the log is folded again."""
    if loop.ratings is None:
        return None
    low, high = loop.ratings
    foreseen = expected(loop, list(loop.ledger.shelf.current), person)
    found = list(foreseen.items())[:BEST]
    titles = {card.name: card.title for card in cards(loop, [name for name, _ in found])}
    own, best = _own(loop, person), []
    for name, each in found:
        spread = 0.0 if each.spread is None else each.spread
        start, end = max(each.value - spread, low), min(each.value + spread, high)
        best.append(
            Best(
                titles.get(name, name),
                told(each.value, high - low),
                "" if each.spread is None else told(each.spread, high - low),
                own.get(loop.ledger.shelf.number(name), ""),
                _share(each.value, low, high),
                _share(start, low, high),
                round(_share(end, low, high) - _share(start, low, high), 2),
            )
        )
    ends = [f"{each:g}".replace("-", "−") for each in (low, high)]
    last = _last(loop, person)
    first = "" if last is None or not last.record.shown else title_of(loop, last.names[last.record.shown[0]])
    why = _why(loop, last, person) if asked and last is not None and person is not None else None
    return Liked(ends[0], ends[1], _numbers(loop), tuple(best), _unsaid(loop, bool(best)), first, why)


def _share(value: float, low: float, high: float) -> float:
    return round(100 * (value - low) / (high - low), 2)


def _numbers(loop: Loop) -> str:
    """How many ratings, people and items there are."""
    model = loop.ledger.model
    assert isinstance(model, RatingModel)
    state, _ = loop.ledger.reading(None)
    said, items = state.shared.said, len(loop.ledger.shelf.current)
    there = said.count[: said.used]
    ratings, rated = float(there.sum()), int(np.unique(said.item[: said.used][there > 0.0]).size)
    if not ratings:
        return f"No ratings so far, of {count(items, 'item')} on offer."
    people = int(np.unique(said.user[: said.used][there > 0.0]).size)
    many = "1 rating" if ratings == 1.0 else f"{ratings:,.6g} ratings"
    by = "1 person" if people == 1 else f"{people:,} people"
    part = "" if ratings == int(ratings) else ", where actions count by their weight"
    return f"{many} by {by}, of {rated:,} of {count(items, 'item')} on offer{part}."


def _unsaid(loop: Loop, there: bool) -> str:
    if there:
        return ""
    if loop.ledger.reading(None)[0].shared.users == 0:
        return "Nothing yet: what is shown first is as good as drawn. The first rating changes that."
    if not loop.ledger.shelf.current:
        return "Nothing is on offer."
    return f"Its learner, {loop.founding.learner}, does not say what it expects."


def _own(loop: Loop, person: str | None) -> dict[int, str]:
    """What a person said of items, by their numbers."""
    state, own = loop.ledger.reading(person)
    said, found = state.shared.said, dict[int, str]()
    p = int(said.of_user[own.state.user]) if own is not None and own.state.user < said.of_user.size else -1
    while p >= 0:
        if said.count[p] >= CONSUMED:
            found[int(said.item[p])] = f"said {said.total[p] / said.count[p]:.3g}".replace("-", "−")
        elif said.count[p] > 0.0:
            found[int(said.item[p])] = "looked at"
        p = int(said.after_user[p])
    return found


# ---------------------------------------------------------------------------- why


def _last(loop: Loop, person: str | None) -> Known | None:
    """The last list that was shown to a person; None where there is none."""
    log = loop.ledger.log
    event = log.at(seq) if person is not None and (seq := log.newest("decision", person)) > 0 else None
    return None if event is None else loop.ledger.known(event.id)


def _why(loop: Loop, last: Known, person: str) -> Why | None:
    """Why the first of a list was shown to a person; None where she was forgotten meanwhile."""
    assert loop.ratings is not None
    try:
        found = loop.explain(last.id)
    except LookupError:
        return None
    span = loop.ratings[1] - loop.ratings[0]
    sums = [Reason(part.name, _signed(part.counts, span)) for part in found.features if _counts(part.counts, span)]
    comes = [
        Reason(text, _signed(each.by, span))
        for each in found.lessons[:FROM]
        if _counts(each.by, span) and (text := _said(loop, each.seq, person))
    ]
    because = f"{found.because[:1].upper()}{found.because[1:]}."
    known = tuple(_known(loop, found, person, span))
    return Why(title_of(loop, found.first), moment(last.since), because, known, tuple(sums), tuple(comes))


def _counts(value: float, span: float) -> bool:
    return abs(value) >= _SMALL * span


def _signed(value: float, span: float) -> str:
    """A difference on a scale of this length."""
    return f"+{told(value, span / 10)}" if value > 0.0 else told(value, span / 10)


def _known(loop: Loop, found: Explanation, person: str, span: float) -> list[str]:
    """What was expected, and from how much, in sentences."""
    rating = found.rating
    if rating is None:
        return []
    lines = []
    if rating.expected is not None:
        spread = "" if rating.spread is None else f", give or take {told(rating.spread, span)}"
        lines.append(f"It expected {told(rating.expected, span)}{spread}.")
    for n, mean, whose in (
        (rating.by_all, rating.mean_of_all, "It had"),
        (rating.by_person, rating.mean_of_person, f"{person} had given"),
        (rating.own, rating.mean_of_own, f"{person} had given this one"),
    ):
        if n > 0.0 and mean is not None:
            lines.append(f"{whose} {n:,.6g} rating{'' if n == 1.0 else 's'}, {told(mean, span)} on average.")
        elif whose == "It had":
            lines.append("It had no rating.")
    return lines


def _said(loop: Loop, seq: int, person: str) -> str:
    """What was said in one piece of feedback."""
    found = with_titles(loop, loop.lessons(limit=1, before=seq + 1))
    if not found or found[0].seq != seq:
        return ""
    who = found[0].person
    return describe_lesson(found[0]) if who == person else f"{who or 'Somebody'}: {describe_lesson(found[0])}"
