"""Evidence that a mean has risen: its formulas, its mean without a change, how often it is wrong, what it finds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from heedful.evaluation.change import interval, rise, starts

ALPHA = 0.05


def weight(k: int) -> float:
    return 8.0 / ((k + 8) * (k + 9))


def capital(d: list[float]) -> float:
    """The mean capital of bets on differences, term by term."""
    bets = zip((0.2, 0.5, 0.8, 0.97), (0.1, 0.2, 0.3, 0.4))
    return sum(share * math.prod([1.0 + bet * each for each in d]) for bet, share in bets)


def test_the_evidence_is_its_formula() -> None:
    """Of nobody in particular: each value counts as that of a new person."""
    x = [0.0, 0.2, 0.0, 0.1, 0.0, 0.3, 0.9, 1.0, 0.8]
    assert starts(9).tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert starts(40).tolist()[-5:] == [18, 22, 26, 31, 38]
    assert starts(1).size == starts(0).size == 0
    told = {}
    for k, s in enumerate(range(1, 9)):
        told[s] = weight(k) / 6.0 * capital([after - before for after, before in zip(x[s:], x[:s][::-1])])
    found = rise(np.array(x), [None] * 9)
    assert math.isclose(math.exp(found.log_evidence), max(told.values()), rel_tol=1e-9)
    assert found.start == max(told, key=told.__getitem__) == 5
    assert (found.before, found.after) == (pytest.approx(0.075), pytest.approx(0.75))


STABLE: dict[str, Callable[[np.random.Generator], Any]] = {
    "rare": lambda rng: rng.random(500) < 0.03,
    "even": lambda rng: rng.random(500) < 0.5,
    "graded": lambda rng: rng.integers(0, 5, 500) / 4.0,
    "falling": lambda rng: rng.random(500) < np.linspace(0.9, 0.1, 500),
}


@pytest.mark.slow
@pytest.mark.parametrize("values", STABLE)
def test_looked_at_again_and_again_it_is_wrong_seldom(values: str) -> None:
    wrong = 0
    for run in range(100):
        x = np.asarray(STABLE[values](np.random.default_rng([run, len(values)])), float)
        wrong += any(
            rise(x[:n], [None] * n).log_evidence >= math.log(1.0 / ALPHA) for n in (50, 100, 200, 300, 400, 500)
        )
    assert wrong / 100 <= ALPHA


@pytest.mark.parametrize(("before", "after"), [(0.05, 0.4), (0.4, 0.9)])
def test_a_rise_is_found_where_it_is(before: float, after: float) -> None:
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.random(300) < before, rng.random(150) < after]).astype(float)
    found = rise(x, [None] * 450)
    assert found.log_evidence > math.log(20.0)
    assert abs(found.start - 300) <= 60
    assert found.before < found.after
    assert rise(1.0 - x, [None] * 450).log_evidence < 0.0, "a fall is no rise"


def test_people_are_compared_with_themselves_round_by_round() -> None:
    """Three people: a round is over after two of the three, or of the two who came of late, and the last is not."""
    people = list("abcabbcabca")
    values = np.array([0.0, *(0.0, 0.2), *(0.1, 0.2, 0.4), *(0.9, 1.0), *(0.8, 1.0), 0.3])
    pairs = {1: [0.1 - 0.0], 2: [0.1 - 0.0, 0.3 - 0.0, 0.9 - 0.2], 3: [1.0 - 0.1, 0.8 - 0.3, 0.9 - 0.2]}
    told = {s: weight(k) / 2.0 * capital(d) for k, (s, d) in enumerate(pairs.items())}
    assert max(told, key=told.__getitem__) == 3
    found = rise(values, people)
    assert math.isclose(math.exp(found.log_evidence), told[3], rel_tol=1e-9)
    assert (found.start, found.same) == (6, True)
    assert (found.before, found.after) == (pytest.approx((0.1 + 0.3 + 0.2) / 3), pytest.approx(0.9))


def test_new_people_are_compared_with_earlier_ones() -> None:
    """Each person counts once, by the first value or by the first four, when the last of these came."""
    rng = np.random.default_rng(8)
    values = (rng.random(200) < np.repeat([0.1, 0.8], 100)).astype(float)
    people = [f"p{i // 5}" for i in range(200)]
    four = values.reshape(40, 5)[:, :4].mean(axis=1)
    told = rise(four, [None] * 40)
    found = rise(values, people)
    assert math.isclose(found.log_evidence, told.log_evidence, rel_tol=1e-9)
    assert (found.start, found.before, found.after) == (5 * told.start + 3, told.before, told.after)
    assert not found.same


def test_people_who_never_change_rarely_look_as_if_they_did_at_any_time() -> None:
    """Exactly, over all that two people who differ may say: what each says in one round is the same."""
    people = list("aabbbaabaabb")
    visits = [0, 0, 1, 1, 1, 2, 2, 3, 4, 4, 5, 5]
    ever = []
    for said in itertools.product((0.0, 1.0), repeat=6):
        x = np.array([said[visit] for visit in visits])
        ever.append(max(math.exp(rise(x[:n], people[:n]).log_evidence) for n in range(2, 13)))
    for mean in ({"a": 0.1, "b": 0.9}, {"a": 0.5, "b": 0.5}, {"a": 0.8, "b": 0.3}):
        own = [mean["ababab"[visit]] for visit in range(6)]
        chances = [
            math.prod(p if each else 1.0 - p for p, each in zip(own, said))
            for said in itertools.product((0.0, 1.0), repeat=6)
        ]
        assert math.isclose(sum(chances), 1.0)
        for least in (1.05, 1.2, 1.5, 2.0):
            assert sum(chance for chance, most in zip(chances, ever) if most >= least) <= 1.0 / least


def test_who_is_there_is_no_change() -> None:
    others = np.repeat([0.1, 0.9], 300)
    people = [f"p{i % 5 + 5 * (i >= 300)}" for i in range(600)]
    assert rise(others, people).log_evidence < math.log(2.0)


@pytest.mark.slow
def test_intervals_hold_the_mean() -> None:
    missed = 0
    for run in range(100):
        x = (np.random.default_rng(run).random(400) < 0.2).astype(float)
        found = [interval(x[:n], ALPHA) for n in (20, 50, 100, 200, 400)]
        missed += any(not low <= 0.2 <= high for _, low, high in found)
        assert all(low <= mean <= high for mean, low, high in found)
    assert missed / 100 <= ALPHA
    _, low, high = interval(np.tile([0.0, 1.0], 500))
    assert 0.4 < low < 0.5 < high < 0.6
    mean, low, high = interval(np.zeros(1000))
    assert (mean, low) == (0.0, 0.0)
    assert high < 0.02
    assert interval(np.zeros(0))[1:] == (0.0, 1.0)


@pytest.mark.parametrize("values", [[1.5], [-0.1], [math.nan], [[0.5]]])
def test_other_values_are_refused(values: Any) -> None:
    for measured in (interval, lambda x: rise(x, ["ann"])):
        with pytest.raises(ValueError, match="expected numbers from 0 to 1"):
            measured(np.array(values))


def test_nothing_and_little_say_nothing() -> None:
    for n, people in ((0, []), (1, [None]), (2, ["ann"] * 2)):
        found = rise(np.zeros(n), people)
        assert (found.log_evidence, found.start) == (0.0, 0)
