"""ALB against [A18] Algorithm 1 with its histories kept, round for round; removal; slates; what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import naive
from budget import FACTOR
from heedful.core.fold import trace
from heedful.learners.ratings.alb import ALB, ALBState
from heedful.learners.ratings.ridge import normals_of
from heedful.spaces.slate import Slate, SlateContext, SlateRatings
from heedful.worlds.ratings import bernoulli_ratings, gaussian_ratings

RNG = np.random.default_rng(0)


def first_rows(learner: ALB, state: ALBState, items: int) -> Any:
    """The factors that items have before anything is learned of them, items x k."""
    rows = np.zeros((items, learner.n_factors))
    for j, row in enumerate(rows):
        normals_of(state.seed, j, row)
    return learner.spread * rows


def given(user: int, items: Any) -> SlateContext:
    return SlateContext(user, np.array(sorted(items), np.int64))


def one(item: int, rating: float) -> SlateRatings:
    return SlateRatings(np.array([item]), np.array([rating]))


def in_words(learner: ALB, state: ALBState, items: int) -> Any:
    """The transcription, with the same parameters and first rows."""
    given = first_rows(learner, state, items), learner.penalty, learner.sigma, learner.delta, learner.s
    if learner.switching:
        return naive.RarelySwitchingBandits(*given, learner.switching)
    return naive.AlternatingLinearBandits(*given)


def best(scores: Any, shown: int, x: SlateContext) -> None:
    """The item shown is the first of those with the highest score, but for ties that rounding breaks."""
    scores = np.array(scores)
    behind = scores.max() - scores[x.items == shown]
    assert behind <= 1e-12 * max(1.0, abs(scores.max()))


def rewritten(paper: Any, learner: ALB, state: ALBState) -> None:
    """The histories with the factors that ours has, so that one round's rounding does not reach the next."""
    k = learner.n_factors
    for j in range(min(len(paper.B), len(state.B))):  # those that came later are as they were given
        paper.B[j] = state.B[j, :k].copy()
    paper.X = [paper.B[j] for j in paper.items]
    paper.Z = [state.A[i, :k].copy() for i in paper.users]


def compared(learner: ALB, rounds: int, users: int, items: int, seed: int) -> ALBState:
    """Rounds of partial offers and noisy ratings in which users and items arrive late, held against Algorithm 1, each
    from the same factors: what one round rounds off, a hundred others multiply a millionfold."""
    rng = np.random.default_rng(seed)
    Y = rng.standard_normal((users, 4)) @ rng.standard_normal((4, items))
    state = learner.init(rng)
    paper = in_words(learner, state, items)
    k = learner.n_factors
    for t in range(rounds):
        i = int(rng.integers(min(users, 2 + t // 40)))
        there = min(items, 3 + t // 30)
        x = given(i, rng.choice(there, rng.integers(1, there + 1), replace=False))
        scores = paper.scores(i, x.items)
        np.testing.assert_allclose(learner.scores(state, x), scores, rtol=1e-9, atol=1e-9)
        [shown] = learner.propose(state, x, rng)
        assert shown == paper.play(i, x.items), f"round {t}"
        rating = float(Y[i, shown] + 0.3 * rng.standard_normal())
        state = learner.update(state, x, np.array([shown]), one(int(shown), rating))
        paper.observe(i, int(shown), rating)
        np.testing.assert_allclose(state.A[i, :k], paper.A[i], rtol=1e-9, atol=1e-9)
        there = min(items, len(state.B))
        np.testing.assert_allclose(state.B[:there, :k], paper.B[:there], rtol=1e-9, atol=1e-9)
        rewritten(paper, learner, state)
    np.testing.assert_array_equal(state.columns, state.B.T)
    assert state.t == rounds
    return state


@pytest.mark.slow
@pytest.mark.parametrize("k", [3, 5, 7])
def test_algorithm_1_round_for_round(k: int) -> None:
    """[A18] Algorithm 1, Eq. 3, 4, 6, 7 and 8: scores, item shown, A_i and every B_j, to 1e-9."""
    compared(ALB(n_factors=k, n_users=1, n_items=1), 3000 if k == 5 and FACTOR > 1 else 800, 25, 40, k)


@pytest.mark.slow
@pytest.mark.parametrize("k", [3, 5, 7])
@pytest.mark.parametrize("made", [gaussian_ratings, bernoulli_ratings])
def test_algorithm_1_left_to_itself(made: Any, k: int) -> None:
    """The same on the paper's worlds with nothing in common but the first rows: equal to 1e-9 after 600 rounds,
    and 3000 where there is time.

    With lambda = 1, where rounding is not multiplied. Ratings of 0 and 1 make scores tie in exact arithmetic."""
    world, learner = made(), ALB(n_factors=k)
    rng = np.random.default_rng(k)
    state = learner.init(rng)
    paper = in_words(learner, state, 200)
    truth = world.init(rng)
    for t in range(3000 if k == 5 and FACTOR > 1 else 600):
        x = world.context(truth, t, rng)
        [shown] = learner.propose(state, x, rng)
        best(paper.scores(x.user, x.items), shown, x)
        feedback = world.respond(truth, x, np.array([shown]), rng)
        state = learner.update(state, x, np.array([shown]), feedback)
        paper.observe(x.user, int(shown), float(feedback.ratings[0]))
        np.testing.assert_allclose(state.A[x.user, :k], paper.A[x.user], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(state.B[:200, :k], paper.B, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("change", [{"penalty": 0.05, "sigma": 0.5}, {"s": 0.0, "spread": 2.0, "delta": 0.3}])
def test_parameters(change: dict[str, float]) -> None:
    compared(ALB(n_users=30, n_items=60)._replace(**change), 400, 12, 15, 7)


# ---------------------------------------------------------------------------- rarely switching


@pytest.mark.slow
@pytest.mark.parametrize("C", [0.05, 0.5, 20.0])
@pytest.mark.parametrize("k", [2, 5])
def test_rarely_switching_round_for_round(k: int, C: float) -> None:
    """Abbasi-Yadkori et al. 2011, section 5.1: scores, item shown, A_i and B_j, in rounds with a switch and without."""
    state = compared(ALB(n_factors=k, n_users=1, n_items=1, switching=C), 700, 25, 40, k)
    assert len(state.growth) >= 25
    assert (state.growth[:18] < np.inf).all()
    assert (state.growth[25:] == np.inf).all()
    switched = int((state.growth[:25] > np.log1p(C)).sum())
    assert switched < 25


@pytest.mark.slow
def test_switching_at_once_is_algorithm_1() -> None:
    """Where every growth is enough; and never again, where none is."""
    world = gaussian_ratings(20, 30, 3)
    for rounds in (60, 1500):
        plain, rarely = (trace(ALB(switching=C), world, rounds, 0) for C in (0.0, 1e-13))
        np.testing.assert_array_equal(plain, rarely)
    assert (trace(ALB(switching=1e9), world, 1500, 0) != trace(ALB(), world, 1500, 0)).any()


def test_switching_worked_by_hand() -> None:
    """One factor, lambda = 1, B_0 = 2, B_1 = -3, C = 5: det V is 1, then 5; A is due above 6, so it stays as it was.
    The next rating, when B_0 is 1.5, makes det V 5 + 1.5^2, and A is due."""
    learner = ALB(n_factors=1, sigma=1.0, delta=float(np.exp(-2.0)), switching=5.0)
    state = learner.init(np.random.default_rng(0))
    for j, b in enumerate((2.0, -3.0)):
        state.B[j, 0] = state.columns[0, j] = b
    x = given(0, [0, 1])
    assert learner.scores(state, x) == pytest.approx([6.0, 9.0])
    state = learner.update(state, x, x.items, one(0, 5.0))
    assert state.A[0, 0] == pytest.approx(3.0)
    assert state.growth[0] == pytest.approx(np.log(5.0))
    assert state.inverse[0, 0, 0] == pytest.approx(0.2)
    assert learner.scores(state, x) == pytest.approx([4.5, -9.0])  # A . B: B_0 is 1.5 now
    assert learner.propose(state, x, RNG).tolist() == [0]
    exactly = learner._replace(switching=4.0)  # det V must grow by more than a factor of 5
    assert exactly.scores(state, x) == pytest.approx([4.5, -9.0])
    state = learner.update(state, x, x.items, one(0, 5.0))
    assert state.A[0, 0] == pytest.approx(3.0)  # not computed again
    assert state.growth[0] == pytest.approx(np.log(5.0 + 1.5**2))
    assert learner.scores(state, x) == pytest.approx(ALB(n_factors=1, sigma=1.0, delta=np.exp(-2.0)).scores(state, x))


def test_what_is_taken_out_makes_users_switch() -> None:
    learner = ALB(switching=1e9)
    for taken, users in (
        (lambda s: learner.without_item(s, 5), {u for u, j, _ in LOG if j == 5}),
        (lambda s: learner.without_item(s, 10**6), set()),
    ):
        state = taken(played(learner, LOG))
        assert set(np.flatnonzero(state.growth[:8] == np.inf).tolist()) == users


def test_a_learner_that_always_switches_keeps_nothing_for_it() -> None:
    state = played(ALB(), LOG)
    assert state.inverse.size == state.growth.size == 0


def test_worked_by_hand() -> None:
    """One factor, lambda = sigma = s = 1, delta = e^-2, B = 2: before anything, V = 1, c = 2 + 1."""
    learner = ALB(n_factors=1, sigma=1.0, delta=float(np.exp(-2.0)), s=1.0, penalty=1.0)
    state = learner.init(np.random.default_rng(0))
    state.B[0, 0] = state.columns[0, 0] = 2.0
    x = given(0, [0])
    assert learner.scores(state, x) == pytest.approx([6.0])  # 0 * 2 + 3 |2|
    assert learner.ratings(state, x) == pytest.approx([0.0])
    state = learner.update(state, x, x.items, one(0, 5.0))
    assert state.A[0, 0] == pytest.approx(3.0)  # 0 + 3 * 2 / 2
    assert state.B[0, 0] == pytest.approx(15.0 / 10.0)  # (9 + 1)^-1 3 * 5
    assert learner.ratings(state, x) == pytest.approx([4.5])
    V, mu = 1.0 + 2.25, 7.5 / 3.25  # of B = 1.5
    c = np.sqrt(2.0 * (0.5 * np.log(V) + 2.0)) + 1.0
    assert learner.scores(state, x) == pytest.approx([mu * 1.5 + c * 1.5 / np.sqrt(V)])


def test_factors_of_zero_are_not_divided_by() -> None:
    learner = ALB()
    state = learner.init(RNG)
    state.B[0], state.columns[:, 0] = 0.0, 0.0
    x = given(0, [0])
    assert learner.scores(state, x).tolist() == [0.0]
    state = learner.update(state, x, x.items, one(0, 1.0))
    assert not state.A[0].any()
    assert not state.B[0].any()


def test_a_slate_has_the_best_few() -> None:
    learner = ALB(Slate(4))
    state = learner.init(RNG)
    x = given(3, range(2, 30))
    shown = learner.propose(state, x, RNG)
    scores = learner.scores(state, x)
    assert shown.tolist() == x.items[np.argsort(-scores, kind="stable")[:4]].tolist()
    assert learner.propose(state, given(3, [5, 7]), RNG).size == 2
    alone = ALB(Slate(1)).propose(state, x, RNG)
    assert alone.tolist() == shown[:1].tolist()


def test_ratings_of_a_slate_are_learned_one_after_the_other() -> None:
    learner = ALB(Slate(3))
    x = given(0, range(6))
    at_once, apart = (learner.init(np.random.default_rng(1)) for _ in range(2))
    at_once = learner.update(at_once, x, x.items[:3], SlateRatings(np.array([2, 0]), np.array([1.0, -3.0])))
    for item, rating in ((2, 1.0), (0, -3.0)):
        apart = learner.update(apart, x, x.items[:3], one(item, rating))
    assert (at_once.t, apart.t) == (1, 2)
    np.testing.assert_array_equal(at_once.A, apart.A)
    np.testing.assert_array_equal(at_once.B, apart.B)


def test_first_factors_do_not_depend_on_when_an_item_comes() -> None:
    small, large = (ALB(n_items=n).init(np.random.default_rng(2)) for n in (3, 500))
    np.testing.assert_array_equal(small.B, large.B[:3])
    x = given(0, range(400))
    np.testing.assert_array_equal(ALB().scores(small, x), ALB().scores(large, x))
    assert abs(large.B.mean()) < 0.1
    assert abs(large.B.std() - 1.0) < 0.05


# ---------------------------------------------------------------------------- taking out


def played(learner: ALB, log: list[tuple[int, int, float]]) -> ALBState:
    state = learner.init(np.random.default_rng(3))
    for user, item, rating in log:
        x = given(user, range(12))
        state = learner.update(state, x, np.array([item]), one(item, rating))
    return state


LOG = [(int(u), int(j), float(r)) for u, j, r in zip(*(RNG.integers(0, n, 150) for n in (8, 12, 6)))]


def test_an_item_that_is_taken_out_has_its_first_factors_again() -> None:
    """All others stay as they are."""
    learner = ALB(spread=2.0)
    state = played(learner, LOG)
    wanted = state.B.copy()
    wanted[5] = learner.init(np.random.default_rng(3)).B[5]
    assert (wanted[5] != state.B[5]).any()
    state = learner.without_item(state, 5)
    np.testing.assert_array_equal(state.B, wanted)
    np.testing.assert_array_equal(state.columns, wanted.T)


# ---------------------------------------------------------------------------- at large


@pytest.mark.slow
def test_it_learns() -> None:
    """Regret falls to a small part of what it was, and below that of a random item."""
    world = gaussian_ratings(60, 60, 3, seed=1)
    regrets = trace(ALB(n_factors=3, penalty=0.01, sigma=0.5), world, 6000, 0)
    assert regrets[-1000:].mean() < 0.2 * regrets[:500].mean()
    assert regrets[-1000:].mean() < 0.2 * (world.best - world.Y.mean(axis=1)).mean()
