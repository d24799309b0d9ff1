"""Simulated people, [J15] section 6.1: against the naive ones, and against what they promise, from both sides.

"Gains at least alpha r" has its tight twin: no less would have done.
"""

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from heedful.learners import registry
from heedful.spaces.assignment import Assignment
from heedful.worlds import users
from heedful.worlds.answers import insert, least_gaining, move_to_front, next_above, nth
from heedful.worlds.users import (
    Best,
    Better,
    Noisy,
    StrictAlpha,
    rounded_ratings,
    utility,
)

SEEDS = st.integers(0, 2**32 - 1)
ALPHAS = st.sampled_from([0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0])
RNG = np.random.default_rng(0)


def test_everybody_goes_by_one_name() -> None:
    """The worlds name the people that the command line takes."""
    assert [type(registry.make_user(name)) for name in users.USERS] == list(users.USERS.values())
    assert users.users_that("rank") == "strict, noisy, position-biased, cascade, expected"
    assert users.users_that("pick") == "strict, better, best, expected"
    assert users.users_that("correct") == "strict"


def values(rng: np.random.Generator, m: Any) -> np.ndarray:
    """Utilities: small integers, which tie, or floats."""
    return rng.integers(-2, 3, m).astype(float) if rng.random() < 0.4 else rng.standard_normal(m)


def ranked(user: Any, k: int, u: np.ndarray, labels: np.ndarray, shown: list[int]) -> list[int]:
    best = naive.utility(u, sorted(range(len(u)), key=lambda j: -u[j]), k)
    given_shown = np.array(shown)
    feedback: list[int] = user.rank(k, u, labels, best, given_shown, RNG).tolist()
    assert given_shown.tolist() == shown
    return feedback


# ---------------------------------------------------------------------------- strictly alpha-informative, rankings


@given(SEEDS, ALPHAS, st.sampled_from([2, 3, 5]), st.integers(1, 12))
def test_strict_alpha_on_rankings(seed: int, alpha: float, k: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    u, shown = rng.standard_normal(n), rng.permutation(n).tolist()
    assert ranked(StrictAlpha(alpha), k, u, np.zeros(n), shown) == naive.strict_alpha_ranking(k, u, shown, alpha)


@given(SEEDS, ALPHAS, st.sampled_from([2, 5]), st.integers(1, 12))
def test_strict_alpha_gains_enough_and_goes_no_deeper_than_needed(seed: int, alpha: float, k: int, n: int) -> None:
    """Eq. 5 holds; and for the list read one document less deep it does not. Ties and the rest stay as shown."""
    rng = np.random.default_rng(seed)
    u, shown = values(rng, n), rng.permutation(n).tolist()
    y_bar = ranked(StrictAlpha(alpha), k, u, np.zeros(n), shown)
    size = min(k, n)
    assert sorted(y_bar) == list(range(n))
    head, rest = y_bar[:size], y_bar[size:]
    assert head == sorted(head, key=lambda j: (-u[j], shown.index(j)))
    assert rest == [j for j in shown if j not in head]

    here = naive.utility(u, shown, k)
    needed = alpha * (naive.utility(u, sorted(range(n), key=lambda j: -u[j]), k) - here)
    assert naive.utility(u, y_bar, k) - here >= needed - 1e-12
    depth = max([shown.index(j) + 1 for j in head])
    for d in range(size, depth):
        shallower = sorted(shown[:d], key=lambda j: -u[j])[:size]
        assert naive.utility(u, shallower, k) - here < needed + 1e-12
    assert [u[j] for j in head] == sorted((u[j] for j in shown[:depth]), reverse=True)[:size]


@given(SEEDS, st.sampled_from([2, 5]), st.integers(1, 12))
def test_all_of_the_regret_is_gained_at_alpha_one(seed: int, k: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    u, shown = values(rng, n), rng.permutation(n).tolist()
    y_bar = ranked(StrictAlpha(1.0), k, u, np.zeros(n), shown)
    assert sorted((u[j] for j in y_bar[:k]), reverse=True) == sorted(u.tolist(), reverse=True)[:k]


def test_y_star_where_rounding_refuses_every_depth() -> None:
    """U(y*) computed otherwise may come out an ulp higher than any list reaches: then y*, ties to the lowest index."""
    u, shown = np.array([0.1, 0.3, 0.2, 0.3, 0.0]), np.array([4, 2, 3, 1, 0])
    feedback = StrictAlpha(1.0).rank(2, u, u, 10.0, shown, RNG)
    assert feedback.tolist() == [1, 3, 2, 0, 4]


def test_strict_alpha_by_hand() -> None:
    """k = 3, discounts 1, .63, 1/2; utilities 0 0 1 2 4 0 as shown. U(y) = 1/2, U(y*) = 4 + 1.26 + .5 = 5.76, r = 5.26.

    The first three, sorted, gain 1/2; of the first four 2, 1, 0: 2.63 - .5 = 2.13; of the first five 5.26.
    """
    u, shown = np.array([0.0, 0.0, 1.0, 2.0, 4.0, 0.0]), [0, 1, 2, 3, 4, 5]
    for alpha, wanted in [
        (0.05, [2, 0, 1, 3, 4, 5]),
        (0.09, [2, 0, 1, 3, 4, 5]),  # .5 of 5.26 is .095
        (0.10, [3, 2, 0, 1, 4, 5]),
        (0.40, [3, 2, 0, 1, 4, 5]),  # 2.13 of 5.26 is .405
        (0.41, [4, 3, 2, 0, 1, 5]),
        (1.00, [4, 3, 2, 0, 1, 5]),
    ]:
        assert ranked(StrictAlpha(alpha), 3, u, u, shown) == wanted, alpha


def test_strict_alpha_on_a_list_shorter_than_k_by_hand() -> None:
    """All of it is read; of documents 0 and 1, which tie, the one shown first stays first."""
    u = np.array([1.0, 1.0, 0.0])
    assert ranked(StrictAlpha(0.5), 5, u, u, [2, 1, 0]) == [1, 0, 2]
    assert ranked(StrictAlpha(0.5), 5, u, u, [0, 1, 2]) == [0, 1, 2]


# ---------------------------------------------------------------------------- noisy, rankings


@given(SEEDS, st.sampled_from([2, 3, 5]), st.integers(1, 12), st.sampled_from([1, 2, 5, 10, 25]))
def test_noisy(seed: int, k: int, n: int, depth: int) -> None:
    """Of the first `depth` shown the k of highest label, falling, ties as shown; then the rest as shown."""
    rng = np.random.default_rng(seed)
    labels, shown = rng.integers(0, 5, n).astype(float), rng.permutation(n).tolist()
    y_bar = ranked(Noisy(depth), k, values(rng, n), labels, shown)
    assert y_bar == naive.noisy_ranking(k, labels, shown, depth)
    size = min(k, depth, n)
    head = y_bar[:size]
    assert set(head) <= set(shown[:depth])
    for a, b in pairwise(head):
        assert (-labels[a], shown.index(a)) < (-labels[b], shown.index(b))
    passed_over = [j for j in shown[:depth] if j not in head]
    assert all(labels[j] <= labels[head[-1]] for j in passed_over)
    assert all(labels[j] < labels[head[-1]] for j in passed_over if shown.index(j) < shown.index(head[-1]))
    assert y_bar[size:] == [j for j in shown if j not in head]


def test_noisy_by_hand() -> None:
    """Shown 3 1 0 2 4, labels 2 4 1 2 4 of documents 0..4, k = 2: read three, four or all deep."""
    labels = np.array([2.0, 4.0, 1.0, 2.0, 4.0])
    for depth, wanted in [(1, [3, 1, 0, 2, 4]), (3, [1, 3, 0, 2, 4]), (4, [1, 3, 0, 2, 4]), (9, [1, 4, 3, 0, 2])]:
        assert ranked(Noisy(depth), 2, labels * 0.0, labels, [3, 1, 0, 2, 4]) == wanted, depth


# ---------------------------------------------------------------------------- items


@given(SEEDS, ALPHAS, st.integers(1, 12))
def test_strict_alpha_on_items(seed: int, alpha: float, m: int) -> None:
    """Eq. 5, and no item of lower utility would have done; y itself exactly where it is best."""
    rng = np.random.default_rng(seed)
    u, y = values(rng, m), int(rng.integers(0, m))
    y_bar = int(StrictAlpha(alpha).pick(u, np.zeros(m), y, RNG))
    assert y_bar == naive.strict_alpha_item(u, y, alpha)
    needed = alpha * (u.max() - u[y])
    assert u[y_bar] - u[y] >= needed
    if u[y] == u.max():
        assert y_bar == y
    else:
        assert u[y_bar] > u[y]
        lower = u[u < u[y_bar]]
        assert (lower - u[y] < needed).all()
        assert y_bar == np.flatnonzero(u == u[y_bar])[0]


@pytest.mark.parametrize(("alpha", "wanted"), [(0.1, 4), (0.25, 4), (0.26, 2), (0.5, 2), (0.51, 1), (1.0, 1)])
def test_strict_alpha_on_items_by_hand(alpha: float, wanted: int) -> None:
    """From 1, the best is 5: gains 4 (items 1 and 3), 2 (2), 1 (4)."""
    assert StrictAlpha(alpha).pick(np.array([1.0, 5.0, 3.0, 5.0, 2.0]), np.zeros(5), 0, RNG) == wanted


@given(SEEDS, st.booleans(), st.integers(1, 10))
def test_better_and_best(seed: int, exact: bool, m: int) -> None:
    """[J15]: the smallest rating strictly above; [C12], `exact`: exactly one above; best: the highest. Else y."""
    rng = np.random.default_rng(seed)
    ratings, y = rng.choice([1.0, 2.0, 3.5, 3.0, 4.0, 5.0], m), int(rng.integers(0, m))
    for user, allowed in [
        (Better(exact), naive.better_items(ratings.tolist(), y, exact)),
        (Best(), naive.best_items(ratings.tolist(), y)),
    ]:
        assert int(user.pick(np.zeros(m), ratings, y, rng)) in allowed


def test_ties_are_all_reached_and_fairly() -> None:
    """Ratings 3 4 5 4 4 5 1, shown item 0: better is 1, 3 or 4; best is 2 or 5. About 1000 each."""
    ratings = np.array([3.0, 4.0, 5.0, 4.0, 4.0, 5.0, 1.0])
    for user, wanted, times in [
        (Better(), {1, 3, 4}, 3000),
        (Better(exact=True), {1, 3, 4}, 3000),
        (Best(), {2, 5}, 2000),
    ]:
        picks = Counter(int(user.pick(ratings, ratings, 0, rng)) for rng in map(np.random.default_rng, range(times)))
        assert set(picks) == wanted
        assert min(picks.values()) > 900


def test_better_by_hand() -> None:
    """From 3: of 1, 3, 5 and 3.5 the better is 3.5, and none is exactly one above; from the top, y itself."""
    ratings = np.array([3.0, 1.0, 5.0, 3.5, 3.0])
    assert Better().pick(ratings, ratings, 0, RNG) == 3
    assert Better().pick(ratings, 2.0 * ratings, 3, RNG) == 2  # 10, above any scale of five
    assert Better(exact=True).pick(ratings, ratings, 0, RNG) == 0
    assert Better(exact=True).pick(ratings, ratings, 4, RNG) == 4
    assert Better().pick(ratings, ratings, 2, RNG) == 2
    assert Best().pick(ratings, ratings, 2, RNG) == 2
    for seed in range(20):  # y itself, not another of the top
        assert Best().pick(ratings, np.array([5.0, 5.0, 5.0]), 1, np.random.default_rng(seed)) == 1


def test_of_two() -> None:
    """By utility where alpha is strict, by rating else; the utilities and ratings of the others do not matter."""
    u, r = np.array([1.0, 2.5, 2.0]), np.array([4.0, 1.0, 4.0])
    assert StrictAlpha().prefer(u, r, 0, 1) == -1.5
    assert StrictAlpha().prefer(u, r, 1, 2) == 0.5
    for user in (Better(), Best()):
        assert user.prefer(u, r, 0, 1) == 3.0
        assert user.prefer(u, r, 0, 2) == 0.0


def test_ratings_round_half_up_into_one_to_five() -> None:
    u = np.array([-3.0, 0.49, 1.49, 1.5, 2.5, 3.49999, 4.5, 5.5, 99.0])
    assert rounded_ratings(u).tolist() == [1.0, 1.0, 1.0, 2.0, 3.0, 3.0, 5.0, 5.0, 5.0]


# ---------------------------------------------------------------------------- assignments


def corrected(user: StrictAlpha, u: np.ndarray, best: np.ndarray, y: np.ndarray) -> np.ndarray:
    """An assignment corrected by a user with utilities u (people x slots): one feature, which is the utility."""
    return user.correct(Assignment(u.shape[1]), u[:, :, None], np.ones(1), best, y)


@given(SEEDS, ALPHAS, st.integers(1, 5), st.integers(0, 3))
def test_strict_alpha_on_assignments(seed: int, alpha: float, slots: int, spare: int) -> None:
    """Eq. 5, slot after slot, and no further than needed; no person twice; the object shown is not changed."""
    rng = np.random.default_rng(seed)
    m = slots + spare
    u, y = rng.standard_normal((m, slots)), rng.permutation(m)[:slots]
    y_star = np.array(naive.Assignments(slots).argmax([1.0], u[:, :, None]))
    given_y = y.copy()
    y_bar = corrected(StrictAlpha(alpha), u, y_star, y)
    assert y.tolist() == given_y.tolist()
    assert y_bar.tolist() == naive.strict_alpha_assignment(u, y_star.tolist(), y.tolist(), alpha)
    assert len({*y_bar.tolist()}) == slots

    def total(z: Any) -> float:
        return float(sum(u[person, s] for s, person in enumerate(z)))

    needed = alpha * (total(y_star) - total(y))
    assert total(y_bar) - total(y) >= needed - 1e-12


def test_strict_alpha_on_assignments_by_hand() -> None:
    """Utilities people x slots; shown 0 1 2 (worth 0), y* = 1 0 3 worth 4 + 1 + 3 = 8. Slot 1 to person 1, who swaps
    with 0: 4 + 1 = 5. The second is then right; the third brings person 3: 8."""
    u = np.array([[0.0, 1.0, 0.0], [4.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 3.0]])
    y, y_star = np.array([0, 1, 2]), np.array([1, 0, 3])
    assert corrected(StrictAlpha(0.5), u, y_star, y).tolist() == [1, 0, 2]
    assert corrected(StrictAlpha(5 / 8), u, y_star, y).tolist() == [1, 0, 2]
    assert corrected(StrictAlpha(0.63), u, y_star, y).tolist() == [1, 0, 3]
    assert corrected(StrictAlpha(1.0), u, y_star, y_star).tolist() == [1, 0, 3]


# ---------------------------------------------------------------------------- the pieces


def test_the_pieces_by_hand() -> None:
    u = np.array([1.0, 2.0, 4.0])
    assert utility(u, np.array([2, 1, 0]), 1) == 4.0
    assert utility(u, np.array([2, 1, 0]), 3) == pytest.approx(4.0 + 2.0 / np.log2(3.0) + 0.5)
    assert utility(u, np.array([2]), 5) == 4.0
    chosen, size = np.zeros(3, np.int64), 0  # k = 2, and one place more
    for j, wanted in [(0, [0]), (1, [1, 0]), (2, [2, 1])]:
        size = insert(chosen, size, 2, u, j)
        assert chosen[:size].tolist() == wanted
    size = insert(chosen, size, 2, np.array([1.0, 2.0, 4.0, 2.0]), 3)
    assert chosen[:size].tolist() == [2, 1]  # a tie: the one that came first stays
    assert move_to_front(np.array([5, 2, 9]), 2, np.array([1, 2, 3, 5, 0]), 6).tolist() == [5, 2, 1, 3, 0]
    assert [nth(np.array([3.0, 1.0, 3.0, 3.0]), 3.0, n) for n in range(4)] == [0, 2, 3, -1]


@given(SEEDS, st.integers(1, 12))
def test_the_two_bodies_of_a_primitive_agree_also_where_values_tie(seed: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    u, y = values(rng, m), int(rng.integers(m))
    needed = float(rng.choice([0.0, 0.5, 1.0, 2.0, 9.0]))
    by_hand = min((j for j in range(m) if u[j] - u[y] >= needed), key=lambda j: (u[j], j), default=y)
    assert least_gaining(u, y, needed) == least_gaining.__kernel__(u, y, needed) == by_hand
    above = min((v for v in u if v > u[y]), default=np.inf)
    assert next_above(u, u[y]) == next_above.__kernel__(u, u[y]) == above
