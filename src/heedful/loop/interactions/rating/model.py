"""The model of a loop of ratings: a learner over all people and items, from nothing.

People are numbered by their first lesson in the fold, items by their first appearance in the log. Thus a log without a
person is folded as if they had never been, and an item has the same number whoever rates it. A person without a name
gets a new number every time.

What a person has said of an item adds up, a rating as 1, an action as its weight; from 1 on the item is consumed. A
withdrawn item goes with all that was learned of it, at its place in the log; put back, it begins again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.fold import copy_arrays, generators
from heedful.jit.kernel import Floats, Ints
from heedful.learners.ratings.interaction_matrix import InteractionMatrix, add_rating, empty_matrix, grow, remove_item
from heedful.loop.interactions.numbered import Number, Numbered
from heedful.loop.interactions.rating.implicit_feedback import Action, weigh_actions
from heedful.loop.model import Context, Person
from heedful.loop.records import FeedbackRecord
from heedful.spaces.slate import SlateContext, WeightedRatings

Array = npt.NDArray[np.float64]

CONSUMED = 1.0 - 1e-9
"""The sum of weights from which on an item counts as consumed: 1, allowing for rounding of ten actions of a tenth."""


class RatingState(NamedTuple):
    """The state: the learner's; what each person has said of each item, as counts (a rating 1, an action its weight)
    and sums by pair; for every item 1 if it is withdrawn (M,); the number of people."""

    learned: Any
    said: InteractionMatrix
    gone: Ints
    users: int

    @property
    def grows(self) -> bool:
        """whether its arrays become longer as people and items arrive"""
        return True


class RatingModel(Numbered[RatingState]):
    """The state of a loop of ratings: of its learner, and of the numbers of people. `teach` is a step of the fold."""

    version = 1
    """the version of how feedback becomes lessons, raised when what is folded changes"""

    def __init__(self, learner: Any, actions: Mapping[str, Any]) -> None:
        """Begin with `learner`; `actions` are (value, weight) by name."""
        super().__init__(
            learner, RatingState(learner.init(generators(0)[2]), empty_matrix(64, 64), np.zeros(64, np.int64), 0)
        )
        self.actions = {name: Action(*told) for name, told in actions.items()}

    # ------------------------------------------------------------------------ proposing

    def offer(self, shared: RatingState, person: Person | None, numbers: Ints) -> SlateContext:
        """Return these items (m,), in rising order, as an offer to this person, or to a stranger."""
        return SlateContext(shared.users if person is None else person.state.user, numbers)

    def consumed(self, shared: RatingState, person: Person | None) -> Ints:
        """Return the numbers of the items that this person has consumed."""
        if person is None:
            return np.zeros(0, np.int64)
        said, found = shared.said, []
        p = said.of_user[person.state.user] if person.state.user < said.of_user.size else -1
        while p >= 0:
            if said.count[p] >= CONSUMED:
                found.append(said.item[p])
            p = said.after_user[p]
        return np.array(found, np.int64)

    def propose(self, shared: RatingState, offer: SlateContext, size: int, rng: Any) -> Ints:
        """Return the numbers of the best `size` items on offer, best first."""
        learner = self.learner._replace(space=self.learner.space._replace(size=size))
        return np.asarray(learner.propose(shared.learned, offer, rng), np.int64)

    def ratings(self, shared: RatingState, person: Person | None, numbers: Ints) -> Array | None:
        """Return the expected ratings of these items by this person (m,), within the range, and in its middle before
        any rating; None for a learner that does not tell, or whose expectations are not finite."""
        if not hasattr(self.learner, "ratings"):
            return None
        space = self.learner.space
        if not shared.said.count[: shared.said.used].any():  # nothing is known
            return np.full(numbers.size, (space.low + space.high) / 2.0)
        order = numbers.argsort()
        found = np.empty(numbers.size)
        found[order] = self.learner.ratings(shared.learned, self.offer(shared, person, numbers[order]))
        return None if np.isnan(found).any() else np.clip(found, space.low, space.high)

    def spreads(self, shared: RatingState, person: Person | None, numbers: Ints) -> list[float] | None:
        """Return the standard deviations of the expected ratings (m,); None for a learner that does not tell."""
        if not hasattr(self.learner, "deviations"):
            return None
        order, found = numbers.argsort(), np.empty(numbers.size)
        found[order] = self.learner.deviations(shared.learned, self.offer(shared, person, numbers[order]))
        return found.tolist()

    # ------------------------------------------------------------------------ learning

    def refusal(self, form: str) -> str | None:
        """Return why the learner cannot use a form of feedback; None if it can."""
        if form in ("rating", "actions", "none"):
            return None
        low, high = self.learner.space.low, self.learner.space.high
        expected = f"{form}: expected rating, actions or none: this loop learns ratings from {low:g} to {high:g}"
        hints = {"grade": "send grades as rating", "action": "write actions={item: action}"}
        return f"{expected}; {hints[form]}" if form in hints else expected

    def teach(self, context: Context, feedback: FeedbackRecord, extra: Floats, version: int) -> bool:
        """Learn from one piece of feedback and return whether there was anything to learn. Items that are withdrawn by
        now are left out."""
        lesson = self.lesson(context, feedback, extra)
        if lesson is None:
            return False
        there = self._there(lesson.items)
        if not there.any():
            return False
        lesson = WeightedRatings(*(part[there] for part in lesson))
        learned, said, gone, users = self._own()
        person = self.people.get(context.person) if context.person is not None else None
        if person is None:
            person, users = Person(Number(users), 0, version), users + 1
        user = person.state.user
        shown: Ints = np.array(context.x[list(context.record.shown)], np.int64)
        shown = shown[self._there(shown)]
        learned = self.learner.update(learned, SlateContext(user, np.sort(shown)), shown, lesson)
        for item, rating, weight in zip(*(part.tolist() for part in lesson)):
            said = add_rating(said, user, item, rating, weight)
        self.shared = RatingState(learned, said, gone, users)
        if context.person is not None:
            self.people[context.person] = person._replace(lessons=person.lessons + 1)
        return True

    def lesson(self, context: Context, feedback: FeedbackRecord, extra: Floats) -> WeightedRatings | None:
        """Return what a piece of feedback says to the learner: weighted ratings in the order shown; None if it says
        nothing."""
        if feedback.form not in ("rating", "actions"):
            return None
        place = {j: i for i, j in enumerate(feedback.chosen)}
        among = [j for j in context.record.shown if j in place]
        items: Ints = np.array(context.x[among], np.int64)
        if feedback.form == "rating":
            return WeightedRatings(items, np.array([feedback.values[place[j]] for j in among]), np.ones(items.size))
        return weigh_actions(self.actions, items, [feedback.done[place[j]] for j in among])

    def put(self, number: int, there: bool, unlearn: bool = True) -> None:
        """Take in that an item was put on offer (`there`), or withdrawn, which removes all that was learned of it. If
        the learner fails, its error is raised and nothing is changed; with `unlearn` False it is not asked."""
        if there:
            if number < self.shared.gone.size and self.shared.gone[number]:
                self._own().gone[number] = 0
            return
        learned, said, gone, users = self._own()
        if unlearn and hasattr(self.learner, "without_item"):
            learned = self.learner.without_item(copy_arrays(learned), number)
        gone = grow(gone, number + 1, 0)
        gone[number] = 1
        remove_item(said, number)
        self.shared = RatingState(learned, said, gone, users)

    def knows(self, lesson: Any) -> bool:
        """Return whether any item of a lesson is still on offer."""
        return bool(self._there(lesson.items).any())

    def _there(self, numbers: Ints) -> Any:
        """Return which of these items are still on offer (m,)."""
        gone = self.shared.gone
        return np.array([number >= gone.size or gone[number] == 0 for number in numbers.tolist()], np.bool_)
