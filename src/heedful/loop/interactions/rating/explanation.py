"""What a loop of ratings expects of an item: the parts of the expected rating, and the ratings that it rests on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from heedful.jit.kernel import Ints
from heedful.learners.ratings.interaction_matrix import InteractionMatrix, place_of, places_of
from heedful.loop.interactions.contributions import EXACT, none, sort_parts
from heedful.loop.interactions.rating.model import RatingModel
from heedful.loop.model import View
from heedful.results.explanation import Contribution, Contributions

SCORE = "expected rating"


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
    return Contributions("exact", EXACT, SCORE, sort_parts(_parts(view, number, float(found[0]))))


class RatingPrediction(NamedTuple):
    """The rating expected of one person for one item, and how many ratings it rests on."""

    expected: float | None
    """the expected rating, within the range; None for a learner that predicts none"""
    spread: float | None
    """its standard deviation; None if it is unknown"""
    ratings_of_item: float
    """how many ratings of the item there were by all people, actions counting by weight"""
    mean_of_item: float | None
    """their mean; None without any"""
    ratings_by_person: float
    """how many ratings the person had given, of all items"""
    mean_by_person: float | None
    """their mean; None without any"""
    own_ratings: float
    """how many ratings the person had given of this item"""
    own_mean: float | None
    """their mean; None without any"""


def rating_prediction(view: View[RatingModel], number: int) -> RatingPrediction:
    """Return the rating that the model expects of a person for the item with the number `number`, and how many ratings
    it rests on."""
    item, said = np.array([number]), view.shared.said
    found = view.model.ratings(view, item)
    spreads = view.model.spreads(view, item)
    user = -1 if view.person is None else view.person.state
    return RatingPrediction(
        None if found is None else float(found[0]),
        None if spreads is None else spreads[0],
        *_tally(said, places_of(said.by_item, number)),
        *_tally(said, places_of(said.by_user, user)),
        *_tally(said, [p for p in [place_of(said, user, number) if user >= 0 else -1] if p >= 0]),
    )


def _tally(said: InteractionMatrix, places: Ints | list[int]) -> tuple[float, float | None]:
    """Return (number, mean) of the ratings in the rows `places` of the table `said`; the mean is None if there are
    none."""
    count = float(said.count[places].sum())
    return count, float(said.total[places].sum()) / count if count > 0.0 else None


def _parts(view: View[RatingModel], number: int, rating: float) -> Iterator[Contribution]:
    """Yield the terms whose sum is the `rating` expected of a person (overall mean, offset of the person, ...)."""
    left, names = rating, view.model.feature_names
    for name, value in view.model.learner.parts(view.shared.learned, view.model.offer(view, np.array([number]))):
        left -= float(value[0])
        yield Contribution(names[name] if isinstance(name, int) else name, 1.0, None, float(value[0]))
    if abs(left) > 1e-9 * max(abs(rating), 1.0):
        yield Contribution("kept within the range", 1.0, None, left)
