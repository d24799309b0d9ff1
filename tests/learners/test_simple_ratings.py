"""The rules that every table of ratings shows: against going through the history, and worked by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ratings_streams import played

import naive_ratings as naive
from heedful.learners.ratings.baselines import ItemMean, PairMean, RandomItem, UserGreedy, uniform
from heedful.spaces.slate import Slate, SlateContext, SlateRatings

RULES: list[tuple[Any, Any]] = [
    (UserGreedy(), naive.user_greedy_scores),
    (UserGreedy(Slate(4)), naive.user_greedy_scores),
    (ItemMean(), lambda *a: naive.item_mean_scores(*a, 1.0)),
    (ItemMean(Slate(3), prior=0.0), lambda *a: naive.item_mean_scores(*a, 0.0)),
    (PairMean(), lambda *a: naive.pair_mean_scores(*a, 1.0)),
    (PairMean(Slate(3), prior=2.0), lambda *a: naive.pair_mean_scores(*a, 2.0)),
]


@pytest.mark.parametrize("late", [0, 40])
@pytest.mark.parametrize(("learner", "scores"), RULES)
def test_each_is_its_readable_version_round_for_round(learner: Any, scores: Any, late: int) -> None:
    """Whole numbers, so sums are exact, and what ties here ties there."""
    history: list[naive.Rating] = []
    played(
        learner,
        lambda user, items, rng: naive.best_of(scores(history, user, items), items, learner.space.size),
        lambda x, f: history.extend((x.user, int(j), float(r)) for j, r in zip(f.items, f.ratings)),
        rounds=150,
        seed=5,
        late=late,
    )


def test_by_hand() -> None:
    """User 0 gives item 2 a 4 and item 5 a 1; user 1 gives item 5 a 5 and a 3. The mean is 13 / 4."""
    x, expected = SlateContext(0, np.array([2, 3, 5])), {}
    for learner in (UserGreedy(), ItemMean(), PairMean()):
        state = learner.init(np.random.default_rng(0))
        for user, item, rating in ((0, 2, 4.0), (0, 5, 1.0), (1, 5, 5.0), (1, 5, 3.0)):
            state = learner.update(
                state,
                SlateContext(user, np.array([item])),
                np.array([item]),
                SlateRatings(np.array([item]), np.array([rating])),
            )
        expected[type(learner).__name__] = learner.ratings(state, x).tolist()
    assert expected == {
        "UserGreedy": [4.0, 3.25, 1.0],
        "ItemMean": [(4.0 + 3.25) / 2, 3.25, (9.0 + 3.25) / 4],
        "PairMean": [4.0, 3.25, 1.0],
    }


@pytest.mark.parametrize("size", [1, 2, 3])
def test_random_items_are_equally_likely(size: int) -> None:
    """Pearson's statistic of the first item shown, against its 99.9 % quantile."""
    from scipy.stats import chi2

    learner, rng = RandomItem(Slate(size)), np.random.default_rng(0)
    x, state = SlateContext(0, np.array([2, 3, 7, 9, 11])), learner.init(rng)
    shown = [learner.propose(state, x, rng).tolist() for _ in range(2000)]
    assert all(len(set(y)) == size and set(y) <= set(x.items.tolist()) for y in shown)
    counts = [sum(y[0] == j for y in shown) for j in x.items]
    assert sum((c - 400) ** 2 / 400 for c in counts) < chi2.ppf(0.999, 4)


def test_fewer_on_offer_than_the_slate_takes() -> None:
    for learner in (RandomItem(Slate(5)), PairMean(Slate(5))):
        rng = np.random.default_rng(0)
        y = learner.propose(learner.init(rng), SlateContext(0, np.array([4, 8])), rng)
        assert sorted(y.tolist()) == [4, 8]


def test_numbers_that_belong_to_keys() -> None:
    """The same as the transcription's, also of negative keys; even over [0, 1]."""
    keys = [(0, 0), (1, 2), (-5, 7), (2**40, 3)]
    for seed in (0, 2**61 + 3):
        assert [uniform(seed, a, b) for a, b in keys] == [naive.uniform(seed, a, b) for a, b in keys]
    many = [uniform(9, a, b) for a in range(60) for b in range(60)]
    assert np.abs(np.histogram(many, 10, (0, 1))[0] - 360).max() < 5 * 18
    assert len(set(many)) == 3600
