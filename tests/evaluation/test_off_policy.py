"""Every estimator is unbiased in the model of people that it assumes, by going through all lists, and not elsewhere."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from heedful.evaluation.off_policy import (
    Estimate,
    Refusal,
    doubly_robust,
    estimate,
    limits,
    list_weights,
    prefix_weights,
    slot_weights,
    value,
)

M, K = 4, 3
LISTS = list(itertools.permutations(range(M), K))
RNG = np.random.default_rng(5)


def chances(scores: Any, prefix: tuple[int, ...]) -> dict[int, float]:
    """Plackett-Luce: P(next item), of those that are not in the list."""
    left = [j for j in range(M) if j not in prefix]
    total = sum(math.exp(scores[j]) for j in left)
    return {j: math.exp(scores[j]) / total for j in left}


def steps(scores: Any, y: tuple[int, ...]) -> list[float]:
    return [chances(scores, y[:i])[y[i]] for i in range(K)]


def probability(scores: Any, y: tuple[int, ...]) -> float:
    return math.prod(steps(scores, y))


def marginal(scores: Any, item: int, slot: int) -> float:
    return sum(probability(scores, y) for y in LISTS if y[slot] == item)


MU, PI = RNG.normal(size=M), RNG.normal(size=M)
BY_ITEM = RNG.random((M, K))
BY_PREFIX = {y[: i + 1]: float(RNG.random()) for y in LISTS for i in range(K)}
BY_LIST = {y: RNG.random(K) for y in LISTS}
PEOPLE: dict[str, Callable[[tuple[int, ...]], Any]] = {
    "item and slot": lambda y: [BY_ITEM[y[i], i] for i in range(K)],
    "cascade": lambda y: [BY_PREFIX[y[: i + 1]] for i in range(K)],
    "anything": lambda y: BY_LIST[y],
}
UNBIASED = {
    "list": {"item and slot", "cascade", "anything"},
    "prefix": {"item and slot", "cascade"},
    "slot": {"item and slot"},
    "doubly robust": {"item and slot", "cascade"},
}


def expectation(estimator: str, rewards: Callable[[tuple[int, ...]], Any]) -> float:
    """Of one decision, over all lists that the log may have."""
    logged = np.array([steps(MU, y) for y in LISTS])
    target = np.array([steps(PI, y) for y in LISTS])
    r = np.array([rewards(y) for y in LISTS])
    share = np.array([probability(MU, y) for y in LISTS])
    if estimator == "slot":
        weights = slot_weights(
            np.array([[marginal(PI, y[i], i) for i in range(K)] for y in LISTS]),
            np.array([[marginal(MU, y[i], i) for i in range(K)] for y in LISTS]),
        )
        return value(weights, r, share=share)
    if estimator == "doubly robust":  # with a model of the rewards that has nothing to do with them
        q = {
            y[: i + 1]: float(np.random.default_rng(len(y[: i + 1]) + sum(y[: i + 1])).random())
            for y in LISTS
            for i in range(K)
        }
        predicted = [[q[y[: i + 1]] for i in range(K)] for y in LISTS]
        expected = [[sum(p * q[(*y[:i], a)] for a, p in chances(PI, y[:i]).items()) for i in range(K)] for y in LISTS]
        weights = prefix_weights(target, logged)
        each = [
            doubly_robust(
                weights[t : t + 1], r[t : t + 1], np.array(predicted[t : t + 1]), np.array(expected[t : t + 1])
            )
            for t in range(len(LISTS))
        ]
        return float(share @ np.array(each))
    weights = (list_weights if estimator == "list" else prefix_weights)(target, logged)
    return value(weights, r, share=share)


@pytest.mark.parametrize("people", PEOPLE)
@pytest.mark.parametrize("estimator", UNBIASED)
def test_it_is_unbiased_where_it_says_so_and_nowhere_else(estimator: str, people: str) -> None:
    truth = sum(probability(PI, y) * sum(PEOPLE[people](y)) for y in LISTS)
    found = expectation(estimator, PEOPLE[people])
    if people in UNBIASED[estimator]:
        assert found == pytest.approx(truth, abs=1e-12)
    else:
        assert abs(found - truth) > 1e-4


def draw(n: int, seed: int) -> tuple[Any, Any, Any]:
    """(weights of prefixes, rewards that are 0 or 1 by a cascade, lists) of n decisions by MU."""
    rng = np.random.default_rng(seed)
    at = rng.choice(len(LISTS), n, p=[probability(MU, y) for y in LISTS])
    ys = [LISTS[i] for i in at]
    weights = prefix_weights(np.array([steps(PI, y) for y in ys]), np.array([steps(MU, y) for y in ys]))
    rewards = (rng.random((n, K)) < np.array([PEOPLE["cascade"](y) for y in ys])).astype(float)
    return weights, rewards, ys


TRUTH = sum(probability(PI, y) * sum(PEOPLE["cascade"](y)) for y in LISTS)


@pytest.mark.parametrize("normalise", [False, True])
def test_a_long_log_tells_the_value_and_its_interval_holds_it(normalise: bool) -> None:
    found = estimate(*draw(4000, 1)[:2], normalise=normalise)
    assert isinstance(found, Estimate)
    assert found.value == pytest.approx(TRUTH, abs=0.1)
    assert found.low < TRUTH < found.high
    assert found.high - found.low < 0.6
    assert (found.warning, found.unsupported) == ("", 0.0)
    assert found.mean_weight == pytest.approx(1.0, abs=0.1)


def test_wrong_probabilities_are_found_by_the_mean_weight() -> None:
    weights, rewards, _ = draw(4000, 2)
    found = estimate(weights * 1.3, rewards)
    assert isinstance(found, Estimate)
    assert found.warning.startswith("the mean weight is 1.")


def test_a_person_counts_once_however_often_they_come() -> None:
    """Somebody with 2,000 decisions who likes everything moves the value by no more than their share of people."""
    weights, rewards, _ = draw(2000, 3)
    names = [f"p{i % 500}" for i in range(2000)]
    alone = estimate(weights, rewards, people=names)
    many, ones = np.vstack([weights, np.ones((2000, K))]), np.vstack([rewards, np.ones((2000, K))])
    together = estimate(many, ones, people=[*names, *["loud"] * 2000])
    assert isinstance(alone, Estimate)
    assert isinstance(together, Estimate)
    assert together.value - alone.value == pytest.approx((K - alone.value) / 501, rel=1e-9)


def test_a_log_that_cannot_tell_says_why_and_what_would_help() -> None:
    few = estimate(*[part[:20] for part in draw(20, 4)[:2]])
    assert isinstance(few, Refusal)
    assert "it takes 30" in few.reason
    weights, rewards, _ = draw(500, 5)
    other = estimate(weights, rewards, unsupported=np.full(500, 0.6))
    assert isinstance(other, Refusal)
    assert other.reason == "60% of what this ranker would show is not in the log"
    deterministic = estimate(np.zeros((500, K)), rewards, unsupported=np.ones(500))
    assert isinstance(deterministic, Refusal)
    assert "Exploration" in deterministic.remedy


@pytest.mark.parametrize(
    ("weights", "rewards", "told"),
    [
        (np.ones((3, 2)), np.ones((3, 3)), "weights: expected shape"),
        (np.ones(3), np.ones(3), "rewards: expected decisions x slots"),
        (-np.ones((3, 2)), np.ones((3, 2)), "weights: expected finite"),
        (np.full((3, 2), np.nan), np.ones((3, 2)), "weights: expected finite"),
        (np.ones((3, 2)), np.full((3, 2), 1.5), "rewards: expected numbers from 0 to 1"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(weights: Any, rewards: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        estimate(weights, rewards)


@pytest.mark.parametrize("bound", [False, True])
def test_looked_at_after_every_decision_the_interval_misses_no_more_often_than_stated(bound: bool) -> None:
    """One of two items, clicks on a few per cent, weights from 1/4 to 4: here a normal interval misses most often. What
    was rejected at any look stays rejected, so the last interval has missed if any has."""
    runs, rounds, alpha = 200, 800, 0.1
    rng = np.random.default_rng(6)
    mu, pi, click = np.array([0.8, 0.2]), np.array([0.2, 0.8]), np.array([0.02, 0.05])
    truth, missed, widths = float(pi @ click), 0, []
    for _ in range(runs):
        arm = (rng.random(rounds) < mu[1]).astype(int)
        w, r = (pi / mu)[arm], (rng.random(rounds) < click[arm]).astype(float)
        low, high = limits(w * r, w * (1.0 - r), 4.0 if bound else None, alpha)
        missed += not low <= truth <= high
        widths.append(high - low)
    assert missed / runs <= alpha + 3.0 * math.sqrt(alpha * (1.0 - alpha) / runs)
    assert np.mean(widths) < (0.12 if bound else 0.4)


def test_rare_clicks_on_one_of_thirty_items_have_an_interval_that_holds() -> None:
    """10,000 impressions of one item each, drawn with equal probability, with 46 clicks: as in a log of a shop."""
    rng = np.random.default_rng(7)
    item, target = rng.integers(30, size=10_000), 4
    clicked = np.zeros(10_000)
    clicked[rng.permutation(10_000)[:46]] = 1.0
    weights = 30.0 * (item == target)
    found = estimate(weights[:, None], clicked[:, None], most=30.0)
    assert isinstance(found, Estimate)
    assert found.low < 0.0046 < found.high < 0.06
    assert found.effective == pytest.approx((item == target).sum())
    unbound = estimate(weights[:, None], clicked[:, None])
    assert isinstance(unbound, Estimate)
    assert unbound.high > found.high
