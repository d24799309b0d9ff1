"""What is taken out of learners of ratings: a log folded without it is as if it had never been, and its counts and sums
are at once those of that fold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ratings_streams import offers, sums, weighed

from heedful.core.conformance import identical
from heedful.core.fold import Round, copy_arrays, generators, replay
from heedful.core.session import Session
from heedful.learners.ratings.alb import ALB
from heedful.learners.ratings.baselines import RandomItem
from heedful.learners.ratings.nmf_bandit import NMFBandit
from heedful.learners.ratings.pts import PTS
from heedful.learners.registry import find_learners, summarise
from heedful.spaces.slate import Slate, SlateContext, WeightedRatings

USER, ITEM = 3, 5
LEARNERS = [
    pytest.param(cls, marks=[pytest.mark.slow] if cls in (ALB, PTS) else [])
    for cls in sorted(set(find_learners().values()), key=lambda cls: str(cls.__name__))
    if summarise(cls).interaction == "rating"
]
CHOOSERS = [case for case in LEARNERS if case.values[0] is not RandomItem]


def logged(learner: Any, rounds: int = 60) -> list[Round]:
    """What a session shows and what is rated of it, with weights now and then."""
    session, log = Session(learner, 1), []
    for t, (x, answer) in enumerate(offers(rounds, 6)):
        shown = session.propose(x)
        feedback = weighed(answer(shown), t) if t % 3 else answer(shown)
        session.learn(feedback)
        log.append(Round(x, shown, feedback))
    return log


def kept(log: list[Round], stays: Callable[[int, int, int], bool]) -> list[Round]:
    """The log without the ratings that do not stay (round, user, item), and without rounds that have none left."""
    out = []
    for t, (x, y, feedback) in enumerate(log):
        these = np.array([stays(t, x.user, int(item)) for item in feedback.items])
        if these.any():
            out.append(Round(x, y, type(feedback)(*[column[these] for column in feedback])))
    return out


def a_rating(log: list[Round]) -> tuple[int, int]:
    """A round and the place of a rating in it that has a weight other than 1."""
    return next(
        (t, r) for t, (*_, feedback) in enumerate(log) for r in range(feedback.items.size) if feedback.weight(r) != 1.0
    )


@pytest.mark.parametrize("cls", LEARNERS)
def test_a_log_folded_without_it_is_as_if_it_had_never_been(cls: Any) -> None:
    """Bit for bit: as a session that showed it to nobody's answer; and of an item, as if it had never been on offer."""
    learner = cls(Slate(3))
    log = logged(learner)
    t0, r0 = a_rating(log)
    item0 = log[t0].feedback.items[r0]
    for stays in (
        lambda t, user, item: (t, item) != (t0, item0),
        lambda t, user, item: user != USER,
        lambda t, user, item: item != ITEM,
    ):
        left = kept(log, stays)
        session, at = Session(learner, 1), 0
        for t, (x, _, feedback) in enumerate(log):
            session.propose(x)
            if any(stays(t, x.user, int(item)) for item in feedback.items):
                session.learn(left[at].feedback)
                at += 1
        assert at == len(left)
        assert identical(session.state, replay(learner, left, 1))
    never = [
        Round(SlateContext(x.user, x.items[x.items != ITEM]), y[y != ITEM], feedback)
        for x, y, feedback in kept(log, lambda t, user, item: item != ITEM)
    ]
    assert identical(session.state, replay(learner, never, 1))


@pytest.mark.parametrize("cls", CHOOSERS)
def test_counts_and_sums_are_at_once_those_without_it(cls: Any) -> None:
    learner = cls(Slate(3))
    log = logged(learner)
    full, refolded = replay(learner, log, 1), replay(learner, kept(log, lambda t, user, item: item != ITEM), 1)
    state = learner.without_item(copy_arrays(full), ITEM)
    now, wanted = sums(state), sums(refolded)
    assert now.keys() == wanted.keys()
    assert wanted != sums(full)
    for pair, (count, total) in wanted.items():
        assert now[pair] == pytest.approx((count, total))
    if cls is NMFBandit:  # how many people have rated, by which it explores
        assert state.users == refolded.users
    if hasattr(state, "counts"):  # the sums that are not kept for each pair
        np.testing.assert_allclose(state.counts, refolded.counts, atol=1e-9)
        np.testing.assert_allclose(state.totals, refolded.totals, atol=1e-9)
        assert (state.n, state.sum) == (pytest.approx(refolded.n), pytest.approx(refolded.sum))


@pytest.mark.parametrize(
    ("cls", "at"), [(NMFBandit, ITEM), pytest.param(PTS, (slice(None), ITEM), marks=pytest.mark.slow)]
)
def test_the_factors_of_an_item_that_is_taken_out_are_the_first_ones(cls: Any, at: Any) -> None:
    learner = cls(Slate(3))
    first = learner.init(generators(1)[2]).V[at].copy()  # the generator with which `replay` begins
    state = replay(learner, logged(learner), 1)
    assert (state.V[at] != first).any()
    np.testing.assert_array_equal(learner.without_item(state, ITEM).V[at], first)


@pytest.mark.parametrize("cls", LEARNERS)
def test_what_nobody_rated_is_taken_out_without_a_word(cls: Any) -> None:
    learner = cls(Slate(3))
    state = replay(learner, logged(learner, 30), 1)
    before = sums(state) if hasattr(state, "pairs") else {}
    state = learner.without_item(state, 500)
    assert (sums(state) if hasattr(state, "pairs") else {}) == before


@pytest.mark.parametrize("cls", CHOOSERS)
def test_a_weight_is_as_many_ratings_in_counts_and_sums(cls: Any) -> None:
    learner = cls(Slate(3))
    log = [(x, y, feedback) for x, y, feedback in logged(learner) if isinstance(feedback, WeightedRatings)]
    wanted: dict[tuple[int, int], tuple[float, float]] = {}
    for x, _, (items, ratings, weights) in log:
        for item, rating, weight in zip(items.tolist(), ratings.tolist(), weights.tolist()):
            count, total = wanted.get((x.user, item), (0.0, 0.0))
            wanted[x.user, item] = count + weight, total + weight * rating
    assert {weight for *_, feedback in log for weight in feedback.weights} == {0.25, 1.0, 3.0}
    assert sums(replay(learner, [Round(*played) for played in log], 1)) == wanted
