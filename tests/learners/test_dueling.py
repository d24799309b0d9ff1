"""Dueling bandit gradient descent and team-draft interleaving: against their pseudo-code, and rounds by hand."""

from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streams import candidates

import naive
from budget import examples
from coins import Draws
from heedful.learners.coactive.dueling import Duel, DuelingBandit, DuelingState, team_draft
from heedful.spaces.ranking import Ranking

N = 4
SEEDS = st.integers(0, 2**32 - 1)


def answer(rng: np.random.Generator, k: int, m: int, shown: list[int]) -> np.ndarray:
    """Any order of the m; of two items either, both, or a third; and nothing where an item is shown alone."""
    if k > 1:
        return rng.permutation(m)[: int(rng.integers(min(k, m), m + 1))]
    answers = [shown, shown[::-1], shown[:1], shown[1:], [int(rng.integers(0, m))]]
    return np.array(answers[int(rng.integers(0, 5))] if len(shown) > 1 else [], np.int64)


@pytest.mark.parametrize(("k", "seed"), [(k, seed) for k in (5, 2, 1) for seed in range(6)])
def test_pseudo_code(k: int, seed: int) -> None:
    """The same duels and weights, round for round, for users who click on any number of random entries."""
    ours, theirs, stream = (np.random.default_rng(seed) for _ in range(3))
    learner = DuelingBandit(N, Ranking(k), gamma=0.7, delta=0.3)
    oracle = naive.DuelingBandit(N, naive.Rankings(k), 0.7, 0.3)
    state, won = learner.init(ours), 0
    for t in range(150):
        x = candidates(stream, (int(stream.integers(1, 9)), N))
        y = learner.propose(state, x, ours)
        shown, teams, u = oracle.propose(x, theirs)
        assert y.shown.tolist() == shown, t
        assert y.teams.tolist() == teams, t
        assert y.u == pytest.approx(u, abs=1e-15)
        ybar = answer(stream, k, len(x), shown)
        before = state.w.copy()
        state = learner.update(state, x, y, ybar)
        oracle.update(shown, teams, u, ybar.tolist())
        assert state.w == pytest.approx(oracle.w, abs=1e-12), t
        won += not np.array_equal(before, state.w)
    assert state.t == 150
    assert learner.weights(state) is state.w
    assert 5 < won < 130


def test_what_is_tried_is_a_step_of_gamma_in_any_direction() -> None:
    """|u| = 1, uniform on the sphere: no direction is favoured."""
    learner, rng = DuelingBandit(3, Ranking(2)), np.random.default_rng(0)
    state = learner.init(rng)
    us = np.array([learner.propose(state, np.eye(3), rng).u for _ in range(2000)])
    assert np.linalg.norm(us, axis=1) == pytest.approx(np.ones(2000), abs=1e-12)
    assert np.abs(us.mean(axis=0)).max() < 0.06
    assert us.T @ us / 2000 == pytest.approx(np.eye(3) / 3, abs=0.03)


# ---------------------------------------------------------------------------- team draft


def test_team_draft_by_hand() -> None:
    """The first ranks 0 1 2 3, the second 2 0 3 1."""
    coins = Draws(0.7, 0.2)
    out, teams = team_draft(np.array([0, 1, 2, 3]), np.array([2, 0, 3, 1]), 4, coins)
    # level, coin .7: the first drafts 0; the second is behind: 2; level, coin .2: the second, 0 and 2 are gone: 3;
    # the first is behind: 1
    assert out.tolist() == [0, 2, 3, 1]
    assert teams.tolist() == [0, 1, 1, 0]
    assert coins.draws == []


def test_team_draft_of_unequal_lists_by_hand() -> None:
    """The first has 0 alone: coin .1, the second drafts 1; the first is behind: 0; level, coin .9 for the first, who
    has no candidate left: the second drafts 2; the first is behind but has none: the second drafts 3."""
    coins = Draws(0.1, 0.9)
    out, teams = team_draft(np.array([0]), np.array([1, 0, 2, 3]), 9, coins)
    assert out.tolist() == [1, 0, 2, 3]
    assert teams.tolist() == [1, 0, 1, 1]
    assert coins.draws == []
    out, teams = team_draft(np.array([1, 0, 2]), np.array([0]), 9, Draws(0.4, 0.4))
    assert out.tolist() == [0, 1, 2]  # the mirror: 0 by the second, 1, then the second has no candidate left
    assert teams.tolist() == [1, 0, 0]


def test_team_draft_stops_at_the_wanted_size() -> None:
    out, teams = team_draft(np.array([0, 1, 2, 3]), np.array([2, 0, 3, 1]), 3, Draws(0.5, 0.49999))
    assert out.tolist() == [0, 2, 3]  # one half is the first's
    assert teams.tolist() == [0, 1, 1]


def drafts(first: tuple[int, ...], second: tuple[int, ...], size: int) -> dict[tuple[Any, ...], Fraction]:
    """(list, teams) with its exact probability: every sequence of fair coins, and how many of them each draft used."""
    found: dict[tuple[Any, ...], Fraction] = {}
    for flips in product((0.25, 0.75), repeat=size):
        coins = Draws(*flips)
        out, teams = team_draft(np.array(first), np.array(second), size, coins)
        key = (tuple(out.tolist()), tuple(teams.tolist()))
        found[key] = found.get(key, Fraction(0)) + Fraction(1, 2**size)
    assert sum(found.values()) == 1
    return found


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_each_ranker_is_equally_likely_to_lead(size: int) -> None:
    """Exactly, over all coins, for every pair of rankings of up to four: each ranker drafts first, and first of every
    pair of entries, with probability 1/2; both draft as many on average; and who they are makes no difference."""
    for m in range(1, 5):
        first = tuple(range(m))
        for second in permutations(first):
            forth, back = drafts(first, second, size), drafts(second, first, size)
            assert forth == {(out, tuple(1 - team for team in teams)): p for (out, teams), p in back.items()}
            for at in range(0, min(size, m), 2):
                assert sum(p for (_, teams), p in forth.items() if teams[at] == 0) == Fraction(1, 2)
            lead = sum(p * (len(teams) - 2 * sum(teams)) for (_, teams), p in forth.items())
            assert lead == 0
            assert all(abs(len(teams) - 2 * sum(teams)) <= 1 for _, teams in forth)


def test_who_clicks_without_looking_prefers_nobody() -> None:
    """Clicks on any set of positions, whatever stands there: each ranker wins equally often, exactly."""
    for second in permutations(range(4)):
        drafted = drafts((0, 1, 2, 3), second, 4)
        for clicks in product((0, 1), repeat=4):
            lead = [0, 0]
            for (_, teams), p in drafted.items():
                won = sum(click * (1 if team else -1) for click, team in zip(clicks, teams))
                if won:
                    lead[won > 0] += p
            assert lead[0] == lead[1]


@examples(100)
@given(SEEDS, st.integers(1, 9), st.integers(1, 9))
def test_team_draft(seed: int, m: int, size: int) -> None:
    """As the pseudo-code drafts it, cut off at `size`; two whole rankings give a whole ranking, teams one apart."""
    rng = np.random.default_rng(seed)
    first, second = rng.permutation(m), rng.permutation(m)
    if rng.random() < 0.5:
        first, second = first[: rng.integers(1, m + 1)], second[: rng.integers(1, m + 1)]
    coins = rng.random(30).tolist()
    out, teams = team_draft(first, second, size, Draws(*coins))
    draws = iter(coins)
    wanted, of = naive.team_draft(first.tolist(), second.tolist(), lambda: next(draws) < 0.5)
    assert out.tolist() == wanted[:size]
    assert teams.tolist() == of[:size]
    if first.size == second.size == m:
        assert sorted(wanted) == list(range(m))
        assert abs(of.count(0) - of.count(1)) <= 1


# ---------------------------------------------------------------------------- who wins

U = np.array([0.6, 0.8])


def moved(k: int, shown: list[int], teams: list[int], ybar: list[int]) -> bool:
    """Whether w takes the step delta u, which is all it can do."""
    learner = DuelingBandit(2, Ranking(k), delta=0.5)
    duel = Duel(np.array(shown), np.array(teams), U)
    x = np.zeros((9, 2))
    w = learner.update(DuelingState(np.ones(2), 0), x, duel, np.array(ybar, np.int64)).w.tolist()
    assert w in ([1.0, 1.0], [1.3, 1.4])
    return w == [1.3, 1.4]


@pytest.mark.parametrize(
    ("k", "ybar", "wins"),
    [
        (3, [2, 3, 0, 1], True),  # two clicks for the rival, one against
        (3, [2, 0, 1, 3], False),
        (2, [2, 0, 3, 1], False),  # the first two alone are clicks: a tie
        (2, [3, 2, 0, 1], True),
        (3, [2], True),  # an order cut short: one click
        (3, [0], False),
        (5, [2, 3, 0, 1], False),  # fewer than k: all clicked, a tie
        (5, [7, 8, 3], True),  # clicks on entries that were not shown count for neither team
        (5, [], False),
    ],
)
def test_the_rival_must_win_strictly(k: int, ybar: list[int], wins: bool) -> None:
    """Shown 0 2 1 3, drafted by w, w', w, w'."""
    assert moved(k, [0, 2, 1, 3], [0, 1, 0, 1], ybar) == wins


@pytest.mark.parametrize(("ybar", "wins"), [([4], True), ([2], False), ([2, 4], False), ([4, 2], False), ([1], False)])
def test_of_two_items_the_one_that_comes_back_wins(ybar: list[int], wins: bool) -> None:
    """Item 4 is the rival's; both mean a tie."""
    assert moved(1, [4, 2], [1, 0], ybar) == wins
    assert moved(1, [2, 4], [0, 1], ybar) == wins


def test_both_may_choose_the_same_item() -> None:
    """[J15] 6.2.6: "Two movies were obtained based on w and w_1". Where they are one, it is shown twice, a tie."""
    learner, rng = DuelingBandit(2, Ranking(1), gamma=1e-9), np.random.default_rng(0)
    led = set()
    for _ in range(20):
        y = learner.propose(DuelingState(np.array([1.0, 0.0]), 0), np.array([[0.0, 1.0], [1.0, 0.0]]), rng)
        assert y.shown.tolist() == [1, 1]
        assert sorted(y.teams.tolist()) == [0, 1]
        led.add(int(y.teams[0]))
    assert led == {0, 1}


@pytest.mark.parametrize("ybar", [[3], [3, 3], [5]])
def test_an_item_does_not_win_against_itself(ybar: list[int]) -> None:
    """Both weights chose item 3: whatever comes back, a tie."""
    assert not moved(1, [3, 3], [0, 1], ybar)
    assert not moved(1, [3, 3], [1, 0], ybar)


@pytest.mark.parametrize("team", [0, 1])
def test_a_list_of_one_compares_nothing(team: int) -> None:
    assert not moved(3, [3], [team], [3])
