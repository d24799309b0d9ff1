"""A made shop: what it says of clicks is what people click, and it is what its seed makes it."""

from itertools import islice

import numpy as np
import pytest

from heedful.worlds.shop import ITEMS, SIZE, make_shop


def test_expected_clicks_are_the_mean_of_clicks_and_are_right_by_hand() -> None:
    shop = make_shop(3, people=4)
    shown, rng = [5, 0, 7, 2], np.random.default_rng(0)
    counts = np.zeros(ITEMS)
    for _ in range(4000):
        clicked = shop.click(1, shown, rng)
        assert set(clicked) <= set(shown)
        counts[clicked] += 1.0
    click = 0.02 + 0.98 * (2.0 ** shop.grades[1, shown] - 1.0)  # of a person who looks
    by_hand = click / np.arange(1, 5)
    assert np.abs(counts[shown] / 4000 - by_hand).max() < 4.0 * 0.5 / np.sqrt(4000)
    assert shop.expected_clicks(1, shown) == pytest.approx(by_hand.sum(), rel=1e-12)


def test_a_seed_makes_the_same_shop_and_the_mean_taste_ranks_better_than_the_shops_scores() -> None:
    one, same, other = make_shop(0), make_shop(0), make_shop(1)
    assert all(np.array_equal(a, b) for a, b in zip(one[:4], same[:4]))
    assert not np.array_equal(one.X, other.X)
    assert [len(one.rows()), one.rows()[0]["id"], len(one.rows()[0])] == [60, "item-1", 13]
    requests = list(islice(one.requests(np.random.default_rng(1)), 300))
    assert all(len(set(each.candidates.tolist())) == 12 for each in requests)
    by_taste, by_score, by_chance = (
        np.mean([one.expected_clicks(p, c[np.argsort(-s[c])][:SIZE].tolist()) for p, c in requests])
        for s in (one.X @ one.tastes.mean(axis=0), one.scores, np.random.default_rng(2).random(60))
    )
    assert by_taste > 1.2 * by_score > 1.2 * by_chance
