"""The state of a loop of ratings, and the kernel that learns ratings from columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from heedful.jit.kernel import Ints, kernel
from heedful.learners.ratings.interaction_matrix import InteractionMatrix, add_rating
from heedful.loop.interactions.columns import Lessons
from heedful.spaces.slate import SlateContext, WeightedRatings


class RatingState(NamedTuple):
    """The state of all people and items in a loop of ratings."""

    learned: Any
    """the learner's state"""
    said: InteractionMatrix
    """for each pair of person and item: how much the person said of it (a rating counts 1, an action its weight), and
    the weighted sum of the ratings"""
    gone: Ints
    """for each of M items 1 if it is withdrawn, otherwise 0 (M,)"""
    users: int
    """the number of people"""

    @property
    def grows(self) -> bool:
        """True: its arrays become longer as people and items arrive."""
        return True


@kernel
def is_there(gone: Ints, item: int) -> bool:
    """Return whether the item with this number is on offer, by `RatingState.gone`."""
    return bool(item >= gone.size or gone[item] == 0)


@kernel
def take_in(
    learner: Any, learned: Any, said: InteractionMatrix, user: int, shown: Ints, told: WeightedRatings
) -> tuple[Any, InteractionMatrix]:
    """Return (the learner's state, what was said) after the person with the number `user` rated some of the items
    `shown` (m,) as `told`. The arrays of `learned` and `said`, those before, are overwritten."""
    learned = learner.update(learned, SlateContext(user, np.sort(shown)), shown, told)
    for j in range(told.items.size):
        said = add_rating(said, user, told.items[j], told.ratings[j], told.weights[j])
    return learned, said


@kernel
def learn_ratings(
    learner: Any, state: RatingState, lessons: Lessons, at: Ints, who: Ints, known: Ints, seqs: Ints
) -> tuple[RatingState, int, int]:
    """Learn the ratings with the indices `at` (k,) of `lessons`, in order; what is withdrawn is left out.

    The candidates of an example are the numbers of the items shown, its answer the indices of those rated; its parts
    are the ratings and their weights. `who` (n,), `known` (p, 3) and `seqs` (k,) say whose they are (`Columns.people`).
    Return (the state after them, in how many there was anything to learn, twice). The arrays of `state`, the one
    before, are overwritten."""
    learned, said, gone, users, count = state.learned, state.said, state.gone, state.users, 0
    for n in range(at.size):
        i = at[n]
        items, rated = lessons.x.ith(i), lessons.answer.ith(i)
        values, weights = lessons.parts[0].ith(i), lessons.parts[1].ith(i)
        shown, taken = items.copy(), rated.copy()
        m = r = 0
        for item in items:
            if is_there(gone, item):
                shown[m] = item
                m += 1
        for j in range(rated.size):
            if is_there(gone, items[rated[j]]):
                taken[r] = j
                r += 1
        if r == 0:
            continue
        shown, taken = shown[:m], taken[:r]
        told = WeightedRatings(items[rated[taken]], values[taken], weights[taken])
        user, person = users, who[i]
        if person >= 0 and known[person, 0] >= 0:
            user = known[person, 0]
        else:
            users += 1
        if person >= 0:
            if known[person, 0] < 0:
                known[person, 0], known[person, 2] = user, seqs[n]
            known[person, 1] += 1
        learned, said = take_in(learner, learned, said, user, shown, told)
        count += 1
    return RatingState(learned, said, gone, users), count, count
