"""Clicks by examination: exact in the position-based model by enumeration, off in a cascade, errors as by leaving
people out one by one, intervals as often right as they say."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from heedful.evaluation import examination
from heedful.evaluation.examination import Clicks, estimate, interval, neighbour_ratio, pair_clicks, reliable_places

LOOKS, LIKED = (1.0, 0.6, 0.3), (0.2, 0.7, 0.5)
"""How likely people look at each place, and like each of three items when they see it."""
SWAP = 0.25
RANKINGS = ((0, 1, 2), (1, 2, 0), (2, 0, 1))
"""Three rankers; the lists are those of the first, in which neighbours are swapped."""


def lists() -> Iterator[tuple[tuple[int, ...], int, float, float]]:
    """(list, upper place of the pair that might have been swapped, its weight 1 / (2 P), the chance of all that)."""
    for start, swapped in itertools.product((0, 1), (False, True)):
        order = list(RANKINGS[0])
        if swapped:
            order[start : start + 2] = order[start : start + 2][::-1]
        p = SWAP if swapped else 1.0 - SWAP
        yield tuple(order), start, 0.5 / p, 0.5 * p


def position_based(order: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], float]]:
    """(places clicked, their chance) if people look at each place with a chance of its own."""
    for clicks in itertools.product((False, True), repeat=3):
        chances = [LOOKS[q] * LIKED[j] if clicks[q] else 1.0 - LOOKS[q] * LIKED[j] for q, j in enumerate(order)]
        yield tuple(q for q in range(3) if clicks[q]), float(np.prod(chances))


def cascade(order: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], float]]:
    """(places clicked, their chance) if people read from the top and stop after a click."""
    left = 1.0
    for q, j in enumerate(order):
        yield (q,), left * LIKED[j]
        left *= 1.0 - LIKED[j]


def above(order: tuple[int, ...], place: int) -> list[int]:
    """For each ranker the places of the items that it ranks before the one at `place`, as bits."""
    return [
        sum(1 << q for q, j in enumerate(order) if ranking.index(j) < ranking.index(order[place]))
        for ranking in RANKINGS
    ]


Rows = list[tuple[int, int, float, float, list[int], float]]


def clicks_of(rows: Rows) -> Clicks:
    person, place, upper, lower, before, weight = zip(*rows)
    return Clicks(*map(np.array, (person, place, upper, lower, before, weight)))


def population(model: Callable[[tuple[int, ...]], Iterator[tuple[tuple[int, ...], float]]]) -> Clicks:
    """Every list with every click, weighted by its chance; each from somebody else."""
    rows: Rows = []
    for order, start, weight, p in lists():
        for places, chance in model(order):
            for q in places:
                pair = (weight * (q == start), weight * (q == start + 1))
                rows.append((len(rows), q, *pair, above(order, q), p * chance))
    return clicks_of(rows)


def true_values(places: int) -> np.ndarray:
    """The mean of 1 / log2(1 + rank) over the items that people like, of those at the first places."""
    gained, whole = np.zeros(3), 0.0
    for order, _, _, p in lists():
        top = order[:places]
        for j in top:
            ranks = [sorted(top, key=ranking.index).index(j) + 1 for ranking in RANKINGS]
            gained += p * LIKED[j] / np.log2(1.0 + np.array(ranks))
            whole += p * LIKED[j]
    return gained / whole


@pytest.mark.parametrize("places", [2, 3])
def test_it_is_exact_if_clicks_depend_on_the_item_and_the_place(places: int) -> None:
    """Joachims, Swaminathan & Schnabel (2017), with the examination of Agarwal et al. (2019)."""
    clicks = population(position_based)
    upper = np.bincount(clicks.place, clicks.upper * clicks.weight, 3)[:2]
    lower = np.bincount(clicks.place, clicks.lower * clicks.weight, 3)[1:]
    assert examination.examination(upper, lower) == pytest.approx(LOOKS)
    found = estimate(clicks, places)
    assert found is not None
    assert found.values == pytest.approx(true_values(places))
    if places == 3:  # the ranker whose lists are shown is the worst, and found to be
        assert found.values.argmax() == 1
        assert found.values.argmin() == 0


def test_it_is_off_if_people_stop_after_a_click() -> None:
    clicks = population(cascade)
    found = estimate(clicks, 3)
    assert found is not None
    assert abs(found.values - true_values(3)).max() > 0.02


def drawn(n: int, rng: np.random.Generator, people: int) -> Clicks:
    """Clicks of n lists, by the position-based model."""
    rows: Rows = []
    each = list(lists())
    chances = np.array([p for *_, p in each])
    who = rng.integers(people, size=n)
    count = np.bincount(who, minlength=people)
    for t, i in enumerate(rng.choice(len(each), n, p=chances)):
        order, start, weight, _ = each[i]
        for q in np.flatnonzero(rng.random(3) < np.array(LOOKS) * np.array(LIKED)[list(order)]).tolist():
            pair = (weight * (q == start), weight * (q == start + 1))
            rows.append((int(who[t]), q, *pair, above(order, q), 1.0 / count[who[t]]))
    return clicks_of(rows)


def test_errors_are_those_of_leaving_out_one_person_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, "PEOPLE", 7)  # a few at a time
    clicks = drawn(400, np.random.default_rng(0), 40)
    found = estimate(clicks, 3)
    assert found is not None
    people = np.unique(clicks.person)
    without = [estimate(clicks.select(clicks.person != who), 3) for who in people]
    apart = np.array([each.values for each in without if each is not None]) - found.values
    shrunk = (people.size - 1.0) / people.size
    assert found.errors == pytest.approx(np.sqrt(shrunk * (apart**2).sum(axis=0)))
    gaps = apart - apart[:, :1]
    assert found.gap_errors == pytest.approx(np.sqrt(shrunk * (gaps**2).sum(axis=0)))
    assert (found.people, found.clicks) == (people.size, clicks.place.size)
    assert found.freedom < people.size


def test_a_ratio_of_neighbours_is_that_of_sums_with_an_error_by_people() -> None:
    clicks = drawn(600, np.random.default_rng(4), 60)
    value, low, high = neighbour_ratio(clicks, 0, 0.05)
    sides = (clicks.upper * (clicks.place == 0), clicks.lower * (clicks.place == 1))
    upper, lower = (np.bincount(clicks.person, side * clicks.weight, 60) for side in sides)
    assert value == pytest.approx(lower.sum() / upper.sum())
    assert low < LOOKS[1] < high
    without = [np.log((lower.sum() - b) / (upper.sum() - a)) for a, b in zip(upper, lower) if a + b > 0.0]
    jackknife = np.sqrt(np.sum((np.array(without) - np.log(value)) ** 2))
    assert (np.log(high) - np.log(low)) / 2.0 == pytest.approx(2.0 * jackknife, rel=0.1)
    assert np.log(high) + np.log(low) == pytest.approx(2.0 * np.log(value))
    assert neighbour_ratio(clicks.select(clicks.person == 0), 0, 0.05)[1:] == (0.0, np.inf)
    assert neighbour_ratio(clicks._replace(lower=0.0 * clicks.lower), 0, 0.05) == (0.0, 0.0, np.inf)


def test_all_clicks_of_one_person_have_no_error() -> None:
    clicks = drawn(400, np.random.default_rng(1), 2)
    assert estimate(clicks.select(clicks.person == 0), 2) is None


def test_places_are_known_as_far_as_enough_clicks_tell_them(monkeypatch: pytest.MonkeyPatch) -> None:
    clicks = drawn(2000, np.random.default_rng(2), 2000)
    tally = pair_clicks(clicks)
    assert (
        tally[0]
        == ((clicks.upper > 0.0) & (clicks.place == 0)).sum() + ((clicks.lower > 0.0) & (clicks.place == 1)).sum()
    )
    assert tally[2:].sum() == 0
    assert reliable_places(clicks) == 3
    second = ((clicks.upper > 0.0) & (clicks.place == 1)) | ((clicks.lower > 0.0) & (clicks.place == 2))
    few = clicks.select(~second | (np.cumsum(second) < examination.LEAST_CLICKS))
    assert pair_clicks(few)[:2].tolist() == [tally[0], examination.LEAST_CLICKS - 1]
    assert reliable_places(few) == 2
    assert reliable_places(clicks._replace(upper=np.zeros_like(clicks.upper))) == 1
    # the errors of the two ratios add up; that of the first, with clicks enough, is taken as it is
    ends = [np.log(neighbour_ratio(clicks, place, 0.05)[1:]) for place in (0, 1)]
    errors = [(high - low) / 2.0 / 1.96 for low, high in ends]
    for limit, places in ((1.05 * np.hypot(*errors), 3), (0.95 * np.hypot(*errors), 2), (0.1 * errors[0], 2)):
        monkeypatch.setattr(examination, "MOST_ERROR", limit)
        assert reliable_places(clicks) == places


def test_an_interval_is_one_of_students_t() -> None:
    assert interval(0.5, 0.1, 10.0, 0.05) == pytest.approx((0.5 - 0.2228, 0.5 + 0.2228), abs=1e-4)
    assert interval(0.5, 0.0, 1.0, 0.05) == (0.5, 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("people", [30, 3000])
def test_intervals_hold_as_often_as_they_say(people: int) -> None:
    """150 logs of 900 lists, by few people who come back and by many; 95 % and three standard errors."""
    held = []
    for seed in range(150):
        found = estimate(drawn(900, np.random.default_rng([3, seed]), people), 3)
        assert found is not None
        low, high = interval(found.values[1] - found.values[0], found.gap_errors[1], found.freedom, 0.05)
        held.append(low <= true_values(3)[1] - true_values(3)[0] <= high)
    assert np.mean(held) >= 0.95 - 3.0 * np.sqrt(0.95 * 0.05 / 150)
