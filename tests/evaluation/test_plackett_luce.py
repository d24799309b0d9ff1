"""Every list has the probability that the product over its positions says, and is drawn as often."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from heedful.evaluation.plackett_luce import draw, pair_weights, place_probabilities, probability, step_probabilities
from naive import plackett_luce


@pytest.mark.parametrize(("m", "k"), [(1, 1), (3, 2), (4, 4), (5, 3)])
@pytest.mark.parametrize("temperature", [0.3, 1.0, 20.0])
def test_probabilities_are_the_products_and_sum_to_one(m: int, k: int, temperature: float) -> None:
    lists = list(itertools.permutations(range(m), k))
    found = [probability(np.array(each), m, temperature) for each in lists]
    assert found == pytest.approx([plackett_luce(each, m, temperature) for each in lists], rel=1e-12)
    assert sum(found) == pytest.approx(1.0)


@pytest.mark.parametrize("m", [3, 4, 5])
@pytest.mark.parametrize("temperature", [0.3, 1.0, 20.0])
def test_places_have_the_probabilities_of_all_lists_together(m: int, temperature: float) -> None:
    """By enumeration of all lists of three."""
    expected = np.zeros((m, 3))
    for each in itertools.permutations(range(m), 3):
        p = plackett_luce(each, m, temperature)
        for place, rank in enumerate(each):
            expected[rank, place] += p
        assert np.prod(step_probabilities(np.array(each), m, temperature)) == pytest.approx(p, rel=1e-12)
    assert place_probabilities(m, temperature) == pytest.approx(expected, rel=1e-9)


def test_lists_are_drawn_as_often_as_their_probability_says() -> None:
    rng, n = np.random.default_rng(0), 20_000
    drawn = Counter(tuple(draw(4, 3, 0.8, rng).tolist()) for _ in range(n))
    for each in itertools.permutations(range(4), 3):
        p = plackett_luce(each, 4, 0.8)
        assert abs(drawn[each] / n - p) < 4.5 * np.sqrt(p * (1.0 - p) / n)


@pytest.mark.parametrize("m", [2, 5, 6])
def test_pairs_weigh_what_the_two_orders_of_both_say(m: int) -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        ranks = draw(m, 4 if m > 4 else m, 1.3, rng)
        weights = pair_weights(ranks, m, 1.3)
        for pair in range(ranks.size // 2):
            other = ranks.copy()
            other[2 * pair], other[2 * pair + 1] = ranks[2 * pair + 1], ranks[2 * pair]
            shown, swapped = plackett_luce(tuple(ranks.tolist()), m, 1.3), plackett_luce(tuple(other.tolist()), m, 1.3)
            assert weights[pair] == pytest.approx(0.5 / (shown / (shown + swapped)), rel=1e-9)


def test_the_probability_of_a_long_list_keeps_its_digits() -> None:
    ranks = np.arange(100)[::-1].copy()
    assert 0.0 < probability(ranks, 100, 5.0) < 1e-150
    assert np.isfinite(pair_weights(ranks, 100, 0.2)).all()
