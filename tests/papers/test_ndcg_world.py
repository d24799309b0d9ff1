"""NDCG where people rate: what a ranking is worth, by hand and by definition; only its first is rated."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest

from heedful.core.fold import play, trace
from heedful.learners.ratings.alb import ALB
from heedful.learners.ratings.baselines import ItemMean
from heedful.learners.ratings.nmf_bandit import NMFBandit
from heedful.learners.ratings.pts import PTS
from heedful.papers.ndcg_world import NdcgWorld, RankByPrediction
from heedful.spaces.slate import Slate, SlateContext
from heedful.worlds.ratings import replay_ratings

RNG = np.random.default_rng(5)
PAIRS = np.argwhere(RNG.random((8, 12)) < 0.7)
VALUES = RNG.integers(1, 6, len(PAIRS)).astype(float)


def people(repeats: bool = True) -> Any:
    return replay_ratings(PAIRS[:, 0], PAIRS[:, 1], VALUES, repeats=repeats)


def ndcg(ratings: dict[int, float], ranking: list[int]) -> float:
    """NDCG@5 with the ratings themselves as gains."""
    best = sorted(ratings.values(), reverse=True)[:5]
    gained = [ratings[j] for j in ranking[:5]]
    dcg, ideal = (sum(g / math.log2(i + 2) for i, g in enumerate(gains)) for gains in (gained, best))
    return dcg / ideal if ideal > 0 else 1.0


def ratings_of(user: int) -> dict[int, float]:
    return {int(j): float(v) for (i, j), v in zip(PAIRS.tolist(), VALUES) if i == user}


def test_by_hand() -> None:
    """Ratings 4, 2, 0 of items 1, 5 and 7: best 4 + 2 / log2 3; shown 5, 7, 1: 2 + 0 + 4 / 2."""
    world = replay_ratings([0, 0, 0], [1, 5, 7], [4.0, 2.0, 0.0])
    best = 4.0 + 2.0 / math.log2(3.0)
    x = SlateContext(0, np.array([1, 5, 7]))
    ranked = NdcgWorld(world, 0.0, 0)
    left = ranked.init(RNG)
    assert ranked.regret(left, x, np.array([5, 7, 1])) == pytest.approx(1.0 - 4.0 / best)
    assert ranked.regret(left, x, np.array([1, 5, 7])) == pytest.approx(0.0)
    assert NdcgWorld(world, 0.0, 1).regret(left, x, np.array([7, 5, 7, 1])) == pytest.approx(1.0 - 4.0 / best)
    # Jester's way: -10 counts as nothing, so 14, 12 and 10
    shifted = NdcgWorld(world, -10.0, 0).regret(left, x, np.array([7, 5, 1]))
    log3 = math.log2(3.0)
    assert shifted == pytest.approx(1.0 - (10.0 + 12.0 / log3 + 14.0 / 2) / (14.0 + 12.0 / log3 + 10.0 / 2))
    # where nothing is worth anything, any order is the best
    assert NdcgWorld(world, 0.0, 0).regret(left, SlateContext(0, np.array([7])), np.array([7])) == 0.0


@pytest.mark.parametrize("repeats", [True, False])
def test_of_all_on_offer_by_definition(repeats: bool) -> None:
    world = NdcgWorld(people(repeats), 0.0, 0)
    learner = ALB(Slate(5), n_factors=3)
    regrets = trace(learner, world, 60, 1, interpreted=True)
    for t, (played, _) in enumerate(play(learner, world, 60, 1)):
        x, shown = played.x, played.y
        there = ratings_of(x.user)
        on_offer = {int(j): there[int(j)] for j in x.items}
        assert regrets[t] == pytest.approx(1.0 - ndcg(on_offer, shown.tolist()))
        assert played.feedback.items.tolist() == shown[:1].tolist()
        assert played.feedback.ratings.tolist() == [there[int(shown[0])]]
    assert len(regrets) == (60 if repeats else min(60, len(PAIRS)))


def test_nothing_but_the_first_is_consumed() -> None:
    """Each item once for each person, though five are ranked in every round."""
    world = NdcgWorld(people(repeats=False), 0.0, 0)
    rated = [(p.x.user, int(p.feedback.items[0])) for p, _ in play(ALB(Slate(5)), world, 500, 2)]
    assert sorted(rated) == [tuple(pair) for pair in PAIRS.tolist()]


@pytest.mark.parametrize("learner", [ALB(n_factors=3), PTS(n_factors=3, n_particles=3), NMFBandit(theta=0.5)])
def test_ranked_by_what_is_expected_it_shows_the_same(learner: Any) -> None:
    """What is shown and learned is what the learner shows by itself; what is ranked is by its ratings."""
    alone = list(play(learner, people(), 80, 3))
    ranked = list(play(RankByPrediction(learner), NdcgWorld(people(), 0.0, 1), 80, 3))
    for (played, _), (wanted, _) in zip(ranked, alone):
        assert played.y[:1].tolist() == wanted.y.tolist()
        assert played.feedback.ratings.tolist() == wanted.feedback.ratings.tolist()
    np.testing.assert_array_equal(ranked[-1][1].pairs.total, alone[-1][1].pairs.total)
    first, x = learner.init(np.random.default_rng(np.random.SeedSequence(3).spawn(3)[2])), ranked[0][0].x
    expected = learner.ratings(first, x)
    assert ranked[0][0].y[1:].tolist() == x.items[np.argsort(-expected, kind="stable")[:5]].tolist()


class Fixed(NamedTuple):
    """Shows the last item, expects most of the first."""

    def init(self, rng: Any) -> int:
        return 0

    def propose(self, state: int, x: SlateContext, rng: Any) -> Any:
        return x.items[-1:]

    def ratings(self, state: int, x: SlateContext) -> Any:
        return -x.items.astype(float)

    def update(self, state: int, x: SlateContext, y: Any, feedback: Any) -> int:
        assert y.size == 1
        return state + 1


def test_ndcg_of_what_is_expected_is_not_that_of_what_is_shown() -> None:
    regrets = trace(RankByPrediction(Fixed()), NdcgWorld(people(), 0.0, 1), 40, 0, interpreted=True)
    for regret, (played, _) in zip(regrets, play(RankByPrediction(Fixed()), NdcgWorld(people(), 0.0, 1), 40, 0)):
        x = played.x
        assert played.y.tolist() == [x.items[-1], *x.items[:5]]
        assert regret == pytest.approx(1.0 - ndcg(ratings_of(x.user), x.items.tolist()))


@pytest.mark.slow
def test_compiled_is_interpreted() -> None:
    world = NdcgWorld(people(), 0.0, 1)
    learner = RankByPrediction(ItemMean())
    np.testing.assert_array_equal(trace(learner, world, 200, 4), trace(learner, world, 200, 4, interpreted=True))
