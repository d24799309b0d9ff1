"""Looking at a loop of ratings: what is expected of an item, from what that comes, and what would another learner say?

As `heedful.loop.hindsight`, nothing here changes anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from heedful.fold import copied
from heedful.kernel import Ints
from heedful.loop.hindsight import Explanation, Foreseen, Moved, Part, Replayed
from heedful.loop.ledger import Ledger, Published
from heedful.loop.log import Event
from heedful.loop.model import Person
from heedful.loop.packing import Known
from heedful.loop.raters import rater
from heedful.loop.rating import RatingModel
from heedful.loop.request import Request
from heedful.loop.wire import FeedbackRecord, decode_feedback
from heedful.pairs import Pairs, place_of
from heedful.spaces_offers import Weighed

MOST = 30
"""Ratings of the item, and of the person, that are looked at one by one: the newest."""


class Expected(NamedTuple):
    """What is expected of an item."""

    rating: float
    spread: float | None
    """the standard deviation of that belief; None where the learner does not say"""


def expected(ledger: Ledger, request: Request, state: Published, own: Person | None) -> dict[str, Expected]:
    """What a person is expected to give each of these, by name, the most first. ValueError where the loop does not
    say."""
    model = ledger.model
    if not isinstance(model, RatingModel):
        raise ValueError(f"rated: wanted a loop of ratings, got one of {ledger.founding.learner}")
    found = model.ratings(state.shared, own, request.x)
    if found is None:
        raise ValueError(f"rated: wanted a learner that says what it expects, got {ledger.founding.learner}")
    spreads = model.spreads(state.shared, own, request.x)
    order = np.argsort(-found, kind="stable").tolist()
    return {request.called[j]: Expected(float(found[j]), None if spreads is None else spreads[j]) for j in order}


# ---------------------------------------------------------------------------- why


def explain_rating(ledger: Ledger, id: str) -> Explanation:
    """Why the first of decision `id` was shown. LookupError where there is no such decision."""
    known = ledger.known(id)
    if known is None:
        raise LookupError(f"decision {id} is not in the log")
    model, name = as_of(ledger, known.version), known.names[known.record.shown[0]]
    number = ledger.shelf.number(name)
    person = model.people.get(known.person) if known.person is not None else None
    rating = foreseen(model, person, number)
    moved = _moved(ledger, model, known, name) if rating.expected is not None else ()
    arm, margin = known.record.arm, 0.0 if rating.expected is None else rating.expected
    because = _because(type(ledger.learner).__name__, arm, rating)
    parts = tuple(_parts(model, person, number, margin))
    return Explanation(known.id, arm, name, None, because, margin, parts, moved, rating=rating)


def as_of(ledger: Ledger, version: int) -> RatingModel:
    """The model as it was at a version: from the newest state before it that was kept, folded on."""
    model = ledger.fresh()
    assert isinstance(model, RatingModel)
    for event, decision, feedback in ledger.steps(model, ledger.before(model, version), version):
        if event.seq not in ledger.failed:
            ledger.teach(model, event, decision, feedback)
    return model


def foreseen(model: RatingModel, person: Person | None, number: int) -> Foreseen:
    """What a model expects of an item, and from how much."""
    item, said = np.array([number]), model.shared.said
    found = model.ratings(model.shared, person, item)
    spreads = model.spreads(model.shared, person, item)
    user = -1 if person is None else person.state.user
    return Foreseen(
        None if found is None else float(found[0]),
        None if spreads is None else spreads[0],
        *_tally(said, _linked(said.of_item, said.after_item, number)),
        *_tally(said, _linked(said.of_user, said.after_user, user)),
        *_tally(said, [p for p in [place_of(said, user, number) if user >= 0 else -1] if p >= 0]),
    )


def _linked(newest: Ints, after: Ints, one: int) -> list[int]:
    """The places of the pairs of one person, or item."""
    found, p = [], int(newest[one]) if 0 <= one < newest.size else -1
    while p >= 0:
        found.append(p)
        p = int(after[p])
    return found


def _tally(said: Pairs, places: list[int]) -> tuple[float, float | None]:
    """(how many ratings, their mean) of these pairs."""
    count = float(said.count[places].sum())
    return count, float(said.total[places].sum()) / count if count > 0.0 else None


def _because(learner: str, arm: str, rating: Foreseen) -> str:
    if arm == "control":
        return "this was a control: the caller's score or chance decided, whatever the model says"
    if arm == "imported":
        return "somebody else chose this; the rating is what the model expected at that time"
    if rating.expected is None:
        return f"{learner} showed this, and does not say what it expects"
    if rating.spread is None:
        return f"{learner} put this first of what was left; the rating is what it expected"
    return f"{learner} put this first of what was left: by the rating it expected, and by how uncertain that was"


def _parts(model: RatingModel, person: Person | None, number: int, margin: float) -> Iterator[Part]:
    """What an expected rating is the sum of, as far as the learner says."""
    learner = model.learner
    if not hasattr(learner, "parts") or not model.shared.said.count.any():
        return
    left = margin
    for name, value in learner.parts(model.shared.learned, model.offer(model.shared, person, np.array([number]))):
        counts = float(value[0])
        left -= counts
        if counts != 0.0:
            yield Part(name, 1.0, counts, 0.0, counts)
    if abs(left) > 1e-9 * max(abs(margin), 1.0):
        yield Part("kept within the range", 1.0, left, 0.0, left)


def _moved(ledger: Ledger, model: RatingModel, known: Known, name: str) -> tuple[Moved, ...]:
    """Which ratings of the item, and of the person, an expected rating comes from: by how much it would be different
    without each; the most first."""
    if not hasattr(model.learner, "without_rating"):
        return ()
    number, moved = ledger.shelf.number(name), []
    person = model.people.get(known.person) if known.person is not None else None
    now = _raw(model, model.shared.learned, person, number)
    middle = (model.learner.space.low + model.learner.space.high) / 2.0
    weight_of_all = float(model.shared.said.count[: model.shared.said.used].sum())
    for event, ratings in _about(ledger, model, known, name):
        state, left = copied(model.shared.learned), weight_of_all
        for user, item, rating, weight in ratings:
            try:
                weighs = () if weight == 1.0 else (weight,)
                state = model.learner.without_rating(state, user, item, rating, *weighs)
            except LookupError:  # taken out already, with its item
                continue
            left -= weight
        # Where nothing is left that anybody rated, the middle is expected, whatever the learner made of it.
        by = now - (_raw(model, state, person, number) if left > 1e-9 * weight_of_all else middle)
        if by != 0.0:
            moved.append(Moved(event.id, event.seq, decode_feedback(event.payload).form, by))
    return tuple(sorted(moved, key=lambda each: -abs(each.by)))


def _raw(model: RatingModel, learned: Any, person: Person | None, number: int) -> float:
    """An expected rating."""
    found = model.ratings(model.shared._replace(learned=learned), person, np.array([number]))
    return 0.0 if found is None else float(found[0])


def _about(
    ledger: Ledger, model: RatingModel, known: Known, name: str
) -> list[tuple[Event, list[tuple[int, int, float, float]]]]:
    """The newest feedback on the item, and of the person, that a model is made of, each with what it says of that:
    (user, item, rating, weight)."""
    hers: list[Any] = []
    others: list[Any] = []
    for event, decision, feedback in ledger.lessons(up_to=known.version):
        same = decision.person is not None and decision.person == known.person
        if event.seq in ledger.failed or decision.person not in model.people:
            continue
        if not same and name not in decision.names:
            continue
        context = ledger.requests.context(decision)
        lesson = model.lesson(context, feedback, context.x[:0])
        user = model.people[decision.person or ""].state.user
        said = zip(*(part.tolist() for part in lesson)) if lesson is not None else ()
        ratings = [(user, *each) for each in said if same or each[0] == ledger.shelf.number(name)]
        if ratings:
            (hers if same else others).append((event, ratings))
    return [*hers[-MOST:], *others[-MOST:]]


# ---------------------------------------------------------------------------- what another would say


def replay_ratings(ledger: Ledger, spec: str) -> Replayed:
    """How well the learner that `spec` names would have predicted the ratings of the log, each before it learned from
    it. ValueError where it is none, or does not fit the loop."""
    model = RatingModel(rater(spec, ledger.settings.k, ledger.ratings), ledger.settings.actions)
    lessons, off, rated, right, compared = 0, 0.0, 0, 0.0, 0.0
    for event, decision, feedback in ledger.steps(model):
        try:
            found = _foretold(ledger, model, decision, feedback)
            if found is not None:
                given, predicted = found
                off, rated = off + float(np.abs(predicted - given).sum()), rated + given.size
                right, compared = right + _in_order(given, predicted), compared + _in_order(given, given)
            lessons += ledger.teach(model, event, decision, feedback)
        except Exception as error:  # whatever a learner of somebody's own raises
            raise ValueError(f"learner: {spec} failed on feedback {event.id}: {error}") from error
    agreement = right / compared if compared else None
    return Replayed(spec, lessons, {}, agreement, compared, error=off / rated if rated else None, rated=rated)


def _foretold(ledger: Ledger, model: RatingModel, decision: Known, feedback: FeedbackRecord) -> Any:
    """(ratings given, ratings predicted) of a piece of feedback; None where it gives none, or nothing is predicted."""
    if feedback.form != "rating":
        return None
    context = ledger.requests.context(decision)
    lesson: Weighed | None = model.lesson(context, feedback, context.x[:0])
    person = model.people.get(decision.person) if decision.person is not None else None
    predicted = None if lesson is None else model.ratings(model.shared, person, lesson.items)
    return None if lesson is None or predicted is None else (lesson.ratings, predicted)


def _in_order(given: Any, predicted: Any) -> float:
    """How many pairs that were rated differently are predicted in that order; ties count half."""
    signs = np.sign(given[:, None] - given[None, :]) * np.sign(predicted[:, None] - predicted[None, :])
    apart = np.triu(given[:, None] != given[None, :])
    return float(((signs[apart] + 1.0) / 2.0).sum())
