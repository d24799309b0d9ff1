"""An explanation of why an item was shown in a loop of ratings: its expected rating, and the ratings behind that.

Each rating is left out in turn, to see how much the expected rating depends on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from heedful.core.fold import copy_arrays
from heedful.jit.kernel import Ints
from heedful.learners.ratings.interaction_matrix import InteractionMatrix, place_of
from heedful.loop.interactions.contributions import EXACT, none, sort_parts
from heedful.loop.interactions.protocol import Past
from heedful.loop.interactions.rating.model import RatingModel
from heedful.loop.log import Event
from heedful.loop.model import Context, View
from heedful.loop.packing import LoggedDecision
from heedful.loop.records import decode_feedback
from heedful.results.explanation import Contribution, Contributions

if TYPE_CHECKING:
    from heedful.results.explanation import Explanation, Moved, Part

SCORE = "expected rating"
MOST = 30
"""How many of the newest ratings of the item, and of the person, are left out one by one."""


def explain_rating(learner: str, decision: LoggedDecision, context: Context, past: Past[RatingModel]) -> Explanation:
    """Return why the first item of a decision was shown: its expected rating, the uncertainty, and the ratings from
    which it was computed.

    `learner` is the name of the learner's class, `context` the `decision` with the numbers of its candidates, `past`
    the log up to it."""
    from heedful.results.explanation import Explanation

    model, first = past.model(), decision.record.shown[0]
    name, number = decision.names[first], int(context.x[first])
    view = model.view(decision.person)
    rating = rating_prediction(view, number)
    moved = _find_evidence(view, past, decision, name, number) if rating.expected is not None else ()
    arm, margin = decision.record.arm, 0.0 if rating.expected is None else rating.expected
    because = _because(learner, arm, rating)
    parts = tuple(_parts(view, number, margin))
    return Explanation(decision.id, arm, name, None, because, margin, parts, moved, rating._asdict())


def rating_contributions(view: View[RatingModel], number: int) -> Contributions:
    """Return the terms whose sum is the rating that the model expects of a person for the item with the number
    `number`.

    They are the mean of all ratings, the offsets of the person and of the item, and so on. For a learner that cannot
    split its prediction there are none, and the result says why."""
    model, found = view.model, view.model.ratings(view, np.array([number]))
    name = type(model.learner).__name__
    if found is None:
        return none(f"{name} does not say which rating it expects: there are no parts", SCORE)
    if not view.shared.said.count[: view.shared.said.used].any():
        middle = Contribution("middle of the scale", 1.0, None, float(found[0]))
        return Contributions("exact", EXACT, SCORE, sort_parts([middle]))
    if not hasattr(model.learner, "parts"):
        return none(f"{name} knows items by number, not by features, and does not split what it expects", SCORE)
    parts = [Contribution(p.name, 1.0, None, p.counts) for p in _parts(view, number, float(found[0]))]
    return Contributions("exact", EXACT, SCORE, sort_parts(parts))


class RatingPrediction(NamedTuple):
    """The rating expected of one person for one item, and how many ratings it rests on."""

    expected: float | None
    """the expected rating, within the range; None for a learner that predicts none"""
    spread: float | None
    """its standard deviation; None if it is unknown"""
    by_all: float
    """how many ratings of the item there were by all people, actions counting by weight"""
    mean_of_all: float | None
    """their mean; None without any"""
    by_person: float
    """how many ratings the person had given, of all items"""
    mean_of_person: float | None
    """their mean; None without any"""
    own: float
    """how many ratings the person had given of this item"""
    mean_of_own: float | None
    """their mean; None without any"""


def rating_prediction(view: View[RatingModel], number: int) -> RatingPrediction:
    """Return the rating that the model expects of a person for the item with the number `number`, and how many ratings
    it rests on."""
    item, said = np.array([number]), view.shared.said
    found = view.model.ratings(view, item)
    spreads = view.model.spreads(view, item)
    user = -1 if view.person is None else view.person.state.user
    return RatingPrediction(
        None if found is None else float(found[0]),
        None if spreads is None else spreads[0],
        *_tally(said, _follow_links(said.of_item, said.after_item, number)),
        *_tally(said, _follow_links(said.of_user, said.after_user, user)),
        *_tally(said, [p for p in [place_of(said, user, number) if user >= 0 else -1] if p >= 0]),
    )


def _follow_links(newest: Ints, after: Ints, one: int) -> list[int]:
    """Return the rows, in the table of ratings, of one person or of one item, from its linked list."""
    found, p = [], int(newest[one]) if 0 <= one < newest.size else -1
    while p >= 0:
        found.append(p)
        p = int(after[p])
    return found


def _tally(said: InteractionMatrix, places: list[int]) -> tuple[float, float | None]:
    """Return (number, mean) of the ratings in the rows `places` of the table `said`; the mean is None if there are
    none."""
    count = float(said.count[places].sum())
    return count, float(said.total[places].sum()) / count if count > 0.0 else None


def _because(learner: str, arm: str, rating: RatingPrediction) -> str:
    if arm == "control":
        return "this was a control: the caller's score or chance decided, whatever the model says"
    if arm == "interleaved":
        return "the loop's ranking and that of a candidate learner drafted this list together, in turn"
    if arm == "imported":
        return "somebody else chose this; the rating is what the model expected at that time"
    if rating.expected is None:
        return f"{learner} showed this, and does not say what it expects"
    if rating.spread is None:
        return f"{learner} put this first of what was left; the rating is what it expected"
    return f"{learner} put this first of what was left: by the rating it expected, and by how uncertain that was"


def _parts(view: View[RatingModel], number: int, margin: float) -> Iterator[Part]:
    """Yield the terms whose sum is `margin`, the rating expected of a person (overall mean, offset of the person,
    ...)."""
    from heedful.results.explanation import Part

    learner = view.model.learner
    if not hasattr(learner, "parts") or not view.shared.said.count.any():
        return
    left = margin
    names = view.model.feature_names
    for name, value in learner.parts(view.shared.learned, view.model.offer(view, np.array([number]))):
        counts = float(value[0])
        left -= counts
        if counts != 0.0:
            yield Part(names[name] if isinstance(name, int) else name, 1.0, counts, 0.0, counts)
    if abs(left) > 1e-9 * max(abs(margin), 1.0):
        yield Part("kept within the range", 1.0, left, 0.0, left)


def _find_evidence(
    view: View[RatingModel], past: Past[RatingModel], known: LoggedDecision, name: str, number: int
) -> tuple[Moved, ...]:
    """Return the feedback on an item, and by the person of a decision, from which the expected rating was computed, the
    most influential first."""
    from heedful.results.explanation import Moved

    model = view.model
    if not hasattr(model.learner, "without_rating"):
        return ()
    moved, now = [], _raw(view, view.shared.learned, number)
    middle = (model.learner.space.low + model.learner.space.high) / 2.0
    weight_of_all = float(model.shared.said.count[: model.shared.said.used].sum())
    for event, ratings in _about(model, past, known, name, number):
        state, left = copy_arrays(model.shared.learned), weight_of_all
        for user, item, rating, weight in ratings:
            try:
                weighs = () if weight == 1.0 else (weight,)
                state = model.learner.without_rating(state, user, item, rating, *weighs)
            except LookupError:  # taken out already, with its item
                continue
            left -= weight
        # Where nothing is left that anybody rated, the middle is expected, whatever the learner made of it.
        by = now - (_raw(view, state, number) if left > 1e-9 * weight_of_all else middle)
        if by != 0.0:
            moved.append(Moved(event.id, event.seq, decode_feedback(event.payload).form, by))
    return tuple(sorted(moved, key=lambda each: -abs(each.by)))


def _raw(view: View[RatingModel], learned: object, number: int) -> float:
    """Return the rating of the item `number` that the state `learned` of the model's learner expects of a person; 0 if
    it predicts none."""
    found = view.model.ratings(view._replace(shared=view.shared._replace(learned=learned)), np.array([number]))
    return 0.0 if found is None else float(found[0])


def _about(
    model: RatingModel, past: Past[RatingModel], known: LoggedDecision, name: str, number: int
) -> list[tuple[Event, list[tuple[int, int, float, float]]]]:
    """Return the newest feedback on the item, and by the person of the decision `known`, that the model learned
    from."""
    own: list[Any] = []
    others: list[Any] = []
    for event, decision, feedback in past.feedback():
        same = decision.person is not None and decision.person == known.person
        if decision.person not in model.people:
            continue
        if not same and name not in decision.names:
            continue
        context = past.context(decision)
        lesson = model.lesson(context, feedback, context.x[:0])
        user = model.people[decision.person or ""].state.user
        said = zip(*(part.tolist() for part in lesson)) if lesson is not None else ()
        ratings = [(user, *each) for each in said if same or each[0] == number]
        if ratings:
            (own if same else others).append((event, ratings))
    return [*own[-MOST:], *others[-MOST:]]
