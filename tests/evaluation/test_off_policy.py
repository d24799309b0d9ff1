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
    estimate,
    shown_too_often,
    value,
)
from heedful.evaluation.unbounded import limits, lower_limit

UNBIASED = {
    "list": {"item and slot", "cascade", "anything"},
    "prefix": {"item and slot", "cascade"},
    "slot": {"item and slot"},
}
PEOPLE = ("item and slot", "cascade", "anything")


class Enumeration:
    """All lists of k of m items, with the probabilities of two Plackett-Luce rankers, the one of the log (`mu`) and the
    target (`pi`), and the rewards of people of three sorts."""

    def __init__(self, m: int, k: int) -> None:
        self.m, self.k, self.lists = m, k, list(itertools.permutations(range(m), k))
        rng = np.random.default_rng(5)
        self.mu, self.pi = rng.normal(size=m), rng.normal(size=m)
        by_item = rng.random((m, k))
        by_prefix = {y[: i + 1]: float(rng.random()) for y in self.lists for i in range(k)}
        by_list = {y: rng.random(k) for y in self.lists}
        self.people: dict[str, Callable[[tuple[int, ...]], Any]] = {
            "item and slot": lambda y: [by_item[y[i], i] for i in range(k)],
            "cascade": lambda y: [by_prefix[y[: i + 1]] for i in range(k)],
            "anything": lambda y: by_list[y],
        }

    def chances(self, scores: Any, prefix: tuple[int, ...]) -> dict[int, float]:
        """Plackett-Luce: P(next item), of those that are not in the list."""
        left = [j for j in range(self.m) if j not in prefix]
        total = sum(math.exp(scores[j]) for j in left)
        return {j: math.exp(scores[j]) / total for j in left}

    def steps(self, scores: Any, y: tuple[int, ...]) -> list[float]:
        return [self.chances(scores, y[:i])[y[i]] for i in range(self.k)]

    def probability(self, scores: Any, y: tuple[int, ...]) -> float:
        return math.prod(self.steps(scores, y))

    def marginals(self, scores: Any) -> Any:
        """P(item in slot), (m, k)."""
        found = np.zeros((self.m, self.k))
        for y in self.lists:
            found[y, range(self.k)] += self.probability(scores, y)
        return found

    def truth(self, people: str) -> float:
        return sum(self.probability(self.pi, y) * sum(self.people[people](y)) for y in self.lists)

    def expectation(self, estimator: str, people: str) -> float:
        """Of one decision, over all lists that the log may have."""
        logged = np.array([self.steps(self.mu, y) for y in self.lists])
        target = np.array([self.steps(self.pi, y) for y in self.lists])
        r = np.array([self.people[people](y) for y in self.lists])
        share = np.array([self.probability(self.mu, y) for y in self.lists])
        if estimator == "slot":
            of_target, of_log = (
                np.array([each[y, range(self.k)] for y in self.lists])
                for each in (self.marginals(self.pi), self.marginals(self.mu))
            )
            return value(of_target / of_log, r, share=share)
        weights = np.cumprod(target / logged, axis=1)
        if estimator == "list":
            weights = np.broadcast_to(weights[:, -1:], r.shape)
        assert share @ weights == pytest.approx(np.ones(self.k), abs=1e-12), "weights have mean 1"
        return value(weights, r, share=share)


@pytest.mark.parametrize("people", PEOPLE)
@pytest.mark.parametrize("estimator", UNBIASED)
@pytest.mark.parametrize(("m", "k"), [(3, 2), (3, 3), (4, 3), (5, 3), (5, 5)])
def test_it_is_unbiased_where_it_says_so_and_nowhere_else(m: int, k: int, estimator: str, people: str) -> None:
    world = Enumeration(m, k)
    truth, found = world.truth(people), world.expectation(estimator, people)
    if people in UNBIASED[estimator]:
        assert found == pytest.approx(truth, abs=1e-12)
    else:
        assert abs(found - truth) > 1e-4


@pytest.mark.parametrize("people", PEOPLE)
@pytest.mark.parametrize("estimator", UNBIASED)
@pytest.mark.parametrize(("m", "k"), [(1, 1), (2, 1), (2, 2), (5, 1)])
def test_they_agree_where_the_first_item_is_the_whole_list(m: int, k: int, estimator: str, people: str) -> None:
    """There the first item says what the whole list is, so nobody's clicks depend on more."""
    world = Enumeration(m, k)
    assert world.expectation(estimator, people) == pytest.approx(world.truth(people), abs=1e-12)


WORLD = Enumeration(4, 3)
M, K, LISTS, MU, PI = WORLD.m, WORLD.k, WORLD.lists, WORLD.mu, WORLD.pi
steps, probability = WORLD.steps, WORLD.probability


def draw(n: int, seed: int) -> tuple[Any, Any, Any]:
    """(weights of prefixes, rewards that are 0 or 1 by a cascade, lists) of n decisions by MU."""
    rng = np.random.default_rng(seed)
    at = rng.choice(len(LISTS), n, p=[probability(MU, y) for y in LISTS])
    ys = [LISTS[i] for i in at]
    weights = np.cumprod([np.divide(steps(PI, y), steps(MU, y)) for y in ys], axis=1)
    rewards = (rng.random((n, K)) < np.array([WORLD.people["cascade"](y) for y in ys])).astype(float)
    return weights, rewards, ys


TRUTH = WORLD.truth("cascade")


@pytest.mark.slow
def test_a_long_log_tells_the_value_and_its_interval_holds_it() -> None:
    found = estimate(*draw(4000, 1)[:2])
    assert isinstance(found, Estimate)
    assert found.value == pytest.approx(TRUTH, abs=0.1)
    assert found.low < TRUTH < found.high
    assert found.high - found.low < 0.6
    assert (found.warning, found.unsupported) == ("", 0.0)
    assert found.mean_weight == pytest.approx(1.0, abs=0.1)


@pytest.mark.slow
def test_wrong_probabilities_are_found_by_the_mean_weight() -> None:
    weights, rewards, _ = draw(4000, 2)
    found = estimate(weights * 1.3, rewards)
    assert isinstance(found, Refusal)
    assert found.reason.startswith("the mean weight is 1.")
    assert "logged probabilities are wrong" in found.reason


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
    never = estimate(np.zeros((20, K)), draw(20, 4)[1])  # too few rows to say that it is not in the log
    assert isinstance(never, Refusal)
    assert never.reason == "the effective sample size is 0, which leaves any value possible"
    weights, rewards, _ = draw(500, 5)
    other = estimate(weights * 0.4, rewards)
    assert isinstance(other, Refusal)
    assert "% of what it would show is not in the log, or logged probabilities are wrong" in other.reason
    deterministic = estimate(np.zeros((500, K)), rewards)
    assert isinstance(deterministic, Refusal)
    assert deterministic.reason == "100 % of what it would show is not in the log"
    assert "Exploration" in deterministic.remedy


@pytest.mark.parametrize("most", [None, 50.0])
def test_few_large_weights_have_an_interval_that_holds_and_a_word_that_the_value_is_rough(most: float | None) -> None:
    """Two actions, shown with .02 and .98: of 1,000 rows about 20 show the target, each with the weight 50."""
    rng, truth, runs, missed = np.random.default_rng(12), 0.6, 15, 0
    for _ in range(runs):
        shown = rng.random((1000, 1)) < 0.02
        found = estimate(shown / 0.02, (rng.random((1000, 1)) < np.where(shown, truth, 0.2)) * 1.0, most=most)
        assert isinstance(found, Estimate)
        assert 0.0 < found.low < found.value <= 1.0
        assert found.effective == pytest.approx(shown.sum())
        assert ("the value is rough" in found.warning) == (shown.sum() < 30)
        missed += not found.low <= truth <= found.high
    assert missed / runs <= 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / runs)


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


@pytest.mark.parametrize("unit", [1.0, 3e-7, 5e9])
def test_a_lower_limit_of_amounts_needs_no_range_and_scales_with_them(unit: float) -> None:
    """Amounts from 0 on, of which few are large: whatever is still to come is above its lower limit."""
    rng, alpha, runs = np.random.default_rng(9), 0.1, 60
    mean, lows = math.exp(1.125), []
    for _ in range(runs):
        lows.append(lower_limit(unit * rng.lognormal(0.0, 1.5, 400), alpha))
    assert np.mean([low > unit * mean for low in lows]) <= alpha / 2 + 3.0 * math.sqrt(alpha / 2 / runs)
    assert np.mean(lows) > 0.6 * unit * mean
    assert lower_limit(np.zeros(9), alpha) == 0.0


def test_amounts_have_the_ends_that_are_known() -> None:
    weights, rewards, _ = draw(2000, 4)
    ends = []
    for span in ((0.0, 1.0), (0.0, math.inf), (-math.inf, 1.0), (-math.inf, math.inf)):
        found = estimate(weights, rewards, span=span)
        assert isinstance(found, Estimate)
        ends.append((found.low, found.high))
        assert found.value == estimate(weights, rewards).value  # type: ignore[union-attr]
    (low, high), (only_low, none), (nothing, only_high), neither = ends
    assert (none, nothing, neither) == (math.inf, -math.inf, (-math.inf, math.inf))
    assert only_low == pytest.approx(low, rel=0.05)
    assert K - only_high == pytest.approx(K - high, rel=0.05)
    moved = estimate(weights, 7.0 * rewards - 2.0, span=(-2.0, 5.0))
    assert isinstance(moved, Estimate)
    assert moved.low == pytest.approx(7.0 * low - 2.0 * K)
    assert moved.high == pytest.approx(7.0 * high - 2.0 * K)
    with pytest.raises(ValueError, match=r"rewards: expected numbers from 0 to 0\.5, got another"):
        estimate(weights, rewards, span=(0.0, 0.5))


def test_a_sound_log_is_not_said_to_show_an_action_too_often_and_a_wrong_one_is() -> None:
    """One action of four is shown once in 2,000 rows, with a weight of 2,000."""
    rng, chances = np.random.default_rng(10), np.array([0.5, 0.4, 0.0995, 0.0005])
    logs = [rng.choice(4, 300, p=chances) for _ in range(100)]
    assert sum(shown_too_often(actions, chances[actions]) is not None for actions in logs) <= 2
    wrong = shown_too_often(rng.choice(4, 900, p=chances), np.full(900, 0.25))
    assert wrong is not None
    assert wrong[0] == 0
    assert wrong[1] == pytest.approx(2.0, abs=0.3)


@pytest.mark.slow
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
