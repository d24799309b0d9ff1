"""Streams of ratings for the tests of learners: people and items that come one after the other, ratings that tie."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from heedful.spaces.slate import SlateContext, SlateRatings, WeightedRatings


def offers(
    rounds: int, seed: int, users: int = 9, items: int = 12, late: int = 0
) -> Iterator[tuple[SlateContext, Any]]:
    """Random users with a random few of the items on offer, and a function from what is shown to its ratings, whole
    numbers from 1 to 5. From round `late` on (0: never), numbers 70 higher come, too."""
    rng = np.random.default_rng(seed)
    Y = np.round(3 + rng.standard_normal((users + 70, 2)) @ rng.standard_normal((2, items + 70)))
    for t in range(rounds):
        more = 70 if late and t >= late else 0
        user = int(rng.integers(users)) + (more if rng.random() < 0.5 else 0)
        numbers = np.arange(items) if not more else np.concatenate([np.arange(items), np.arange(70, 70 + items)])
        chosen = np.sort(rng.permutation(numbers)[: rng.integers(3, items)])
        yield SlateContext(user, chosen), lambda shown, user=user, t=t: rate(Y, user, shown, t)


def rate(Y: Any, user: int, shown: Any, t: int) -> SlateRatings:
    """Of a slate, all but its last are rated, where there are several; now and then one rating is off by one."""
    items = np.array(shown[: max(1, len(shown) - 1)])
    return SlateRatings(items, np.clip(Y[user, items] + (t % 3 == 0), 1, 5).astype(np.float64))


def weighed(feedback: SlateRatings, t: int) -> WeightedRatings:
    """The same with weights, some below 1 and some above."""
    return WeightedRatings(*feedback, np.array([0.25, 1.0, 3.0])[(t + feedback.items) % 3])


def played(
    learner: Any,
    propose: Callable[[int, list[int], Any], list[int]],
    update: Callable[[SlateContext, Any], None],
    rounds: int,
    seed: int,
    late: int = 0,
    weigh: bool = False,
) -> Any:
    """The state of `learner` after a stream, when it has shown what `propose` shows in every round; with `weigh`, what
    is rated has weights, some below 1 and some above."""
    rng, same = np.random.default_rng(seed), np.random.default_rng(seed)
    state = learner.init(rng)
    same.integers(2**62)  # what init has drawn
    if not hasattr(state, "seed"):
        same = np.random.default_rng(seed)
    for t, (x, answer) in enumerate(offers(rounds, seed, late=late)):
        shown = learner.propose(state, x, rng)
        wanted = propose(x.user, x.items.tolist(), same)
        assert shown.tolist() == wanted, f"round {t}"
        feedback = answer(shown)
        if weigh:
            feedback = weighed(feedback, t)
        state = learner.update(state, x, shown, feedback)
        update(x, feedback)
    assert rng.bit_generator.state == same.bit_generator.state
    return state


def sums(state: Any) -> dict[tuple[int, int], tuple[float, float]]:
    """Count and sum of each pair that has any."""
    pairs = state.pairs
    places = [p for p in range(pairs.used) if pairs.count[p] != 0.0]
    return {(int(pairs.user[p]), int(pairs.item[p])): (pairs.count[p], pairs.total[p]) for p in places}
