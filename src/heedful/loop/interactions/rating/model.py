"""The model of a loop of ratings: the learner's state of all people and items, folded from the log.

People are numbered by their first feedback in the log, items by their first appearance. Thus a log without a person's
feedback folds as if they had never been there, and an item has the same number for everybody. A person without a
name gets a new number every time.

What a person has said of an item adds up, a rating as 1, an action as its weight; from a sum of 1 on the item is
consumed, that is, not shown to them again. When an item is withdrawn, all that was learned of it is removed; put on
offer again, it starts with nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.core.fold import copy_arrays, generators
from heedful.jit.kernel import Floats, Ints
from heedful.learners.ratings.interaction_matrix import empty_matrix, grow, places_of, remove_item
from heedful.loop.catalogue import Catalogue
from heedful.loop.interactions.numbered import Numbered
from heedful.loop.interactions.rating.compiled import RatingState, is_there, take_in
from heedful.loop.interactions.rating.implicit_feedback import Action, weigh_actions
from heedful.loop.log import Event
from heedful.loop.model import Context, Person, View
from heedful.loop.records import FeedbackRecord
from heedful.loop.settings import Manifest
from heedful.spaces.slate import SlateContext, WeightedRatings

Array = npt.NDArray[np.float64]

CONSUMED = 1.0 - 1e-9
"""The sum of weights from which on an item counts as consumed: 1, less a tolerance for rounding of ten times 0.1."""


class RatingModel(Numbered[RatingState]):
    """The model of a loop of ratings: the learner's state for all people and items, and each person's number in it.

    `teach`, called for each piece of feedback in the order of the log, `put` and `withdraw` for items are all that
    change it."""

    version = 1
    """the version of the fold: raised when the same log would give another state"""

    def __init__(self, learner: Any, manifest: Manifest) -> None:
        super().__init__(learner, manifest)
        self.feature_names = manifest.encoding.names
        nothing = empty_matrix(64, 64)
        self.shared = RatingState(learner.init(generators(0)[2]), nothing, np.zeros(64, np.int64), 0)
        self.actions = {name: Action(*action) for name, action in manifest.settings.actions.items()}

    # ------------------------------------------------------------------------ proposing

    def offer(self, view: View[Any], numbers: Ints) -> SlateContext:
        """Return the context for which the learner proposes: a person, a new one if there is none in `view`, and the m
        items to choose from, with the sorted `numbers` (m,)."""
        return SlateContext(view.shared.users if view.person is None else view.person.state, numbers)

    def consumed_items(self, view: View[Any]) -> Ints:
        """Return the numbers of the items that this person has rated, or acted on with weights that sum to 1."""
        if view.person is None:
            return np.zeros(0, np.int64)
        said = view.shared.said
        places = places_of(said.by_user, view.person.state)
        rated: Ints = said.item[places[said.count[places] >= CONSUMED]]
        return rated

    def propose(self, view: View[Any], numbers: Ints, size: int, rng: np.random.Generator) -> Ints:
        """Return the numbers of the `size` items that the learner shows, out of those with the sorted `numbers`
        (m,)."""
        learner = self.learner._replace(space=self.learner.space._replace(size=size))
        return np.asarray(learner.propose(view.shared.learned, self.offer(view, numbers), rng), np.int64)

    def ratings(self, view: View[Any], numbers: Ints) -> Array | None:
        """Return the ratings expected of this person for the items `numbers` (m,), within the range; before any rating
        its middle.

        Return None for a learner that predicts no ratings, or whose predictions are not finite."""
        if not hasattr(self.learner, "ratings"):
            return None
        space = self.learner.space
        said = view.shared.said
        if not said.count[: said.used].any():  # nothing is known
            return np.full(numbers.size, (space.low + space.high) / 2.0)
        order = numbers.argsort()
        found = np.empty(numbers.size)
        found[order] = self.learner.ratings(view.shared.learned, self.offer(view, numbers[order]))
        return None if np.isnan(found).any() else np.clip(found, space.low, space.high)

    def spreads(self, view: View[Any], numbers: Ints) -> list[float] | None:
        """Return the standard deviation of the rating expected for each of the items `numbers` (m,).

        Return None for a learner that has none."""
        if not hasattr(self.learner, "deviations"):
            return None
        order, found = numbers.argsort(), np.empty(numbers.size)
        found[order] = self.learner.deviations(view.shared.learned, self.offer(view, numbers[order]))
        return found.tolist()

    # ------------------------------------------------------------------------ learning

    def teach(self, context: Context, feedback: FeedbackRecord, extra: Floats, version: int) -> bool:
        lesson = self.lesson(context, feedback, extra)
        if lesson is None:
            return False
        there = self.are_there(lesson.items)
        if not there.any():
            return False
        lesson = WeightedRatings(lesson.items[there], lesson.ratings[there], lesson.weights[there])
        learned, said, gone, users = self._own()
        person = self.people.get(context.person) if context.person is not None else None
        if person is None:
            person, users = Person(users, 0, version), users + 1
        user = person.state
        shown: Ints = np.array(context.x[list(context.record.shown)], np.int64)
        shown = shown[self.are_there(shown)]
        learned, said = take_in(self.learner, learned, said, user, shown, lesson)
        self.shared = RatingState(learned, said, gone, users)
        if context.person is not None:
            self.people[context.person] = person._replace(lessons=person.lessons + 1)
        return True

    def lesson(self, context: Context, feedback: FeedbackRecord, extra: Floats) -> WeightedRatings | None:
        if feedback.form not in ("rating", "actions"):
            return None
        place = {j: i for i, j in enumerate(feedback.chosen)}
        among = [j for j in context.record.shown if j in place]
        items: Ints = np.array(context.x[among], np.int64)
        if feedback.form == "rating":
            return WeightedRatings(items, np.array([feedback.values[place[j]] for j in among]), np.ones(items.size))
        return weigh_actions(self.actions, items, [feedback.done[place[j]] for j in among])

    def put(self, number: int, features: Floats) -> None:
        """Note that the item with the number `number` was put on offer with these features (N,), in place."""
        if number < self.shared.gone.size and self.shared.gone[number]:
            self._own().gone[number] = 0
        if features.size and hasattr(self.learner, "with_item"):
            state = self._own()
            self.shared = state._replace(learned=self.learner.with_item(state.learned, number, features))

    def withdraw(self, number: int, unlearn: bool = True) -> None:
        """Remove the item with the number `number`, and what was learned of it, in place.

        If the learner fails at that, its error is raised and nothing is changed; with `unlearn` False the learner is
        not called, and only the model's own tables forget the item."""
        learned, said, gone, users = self._own()
        if unlearn and hasattr(self.learner, "without_item"):
            learned = self.learner.without_item(copy_arrays(learned), number)
        gone = grow(gone, number + 1, 0)
        gone[number] = 1
        remove_item(said, number)
        self.shared = RatingState(learned, said, gone, users)

    def on_item(self, event: Event, catalogue: Catalogue) -> str:
        number = catalogue.number(event.subject or "")
        if event.arrays is not None:
            self.put(number, np.frombuffer(event.arrays, "<f4"))
            return ""
        try:
            self.withdraw(number)
        except Exception as error:  # whatever a learner of somebody's own raises
            self.withdraw(number, unlearn=False)
            return f"{type(self.learner).__name__} failed to unlearn it: {type(error).__name__}: {error}"
        return ""

    def teaches(self, lesson: WeightedRatings) -> bool:
        return bool(self.are_there(lesson.items).any())

    def are_there(self, numbers: Ints) -> npt.NDArray[np.bool_]:
        """Return a mask of the items `numbers` (m,) that are still on offer (m,)."""
        gone = self.shared.gone
        return np.array([is_there(gone, number) for number in numbers.tolist()], np.bool_)
