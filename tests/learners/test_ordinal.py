"""[P01]: against the pseudo-code, rounds worked by hand, the equalities of the proof, the order lemma, the bound."""

from __future__ import annotations

import warnings
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from budget import examples
from heedful.core.fold import play, trace
from heedful.core.session import Session
from heedful.learners.ordinal.ordinal_logistic import OrdinalLogistic
from heedful.learners.ordinal.perceptrons import ConstantRank, MulticlassPerceptron, PRank, WidrowHoff
from heedful.worlds.instances import instance_stream, polynomial, synthetic_instances, synthetic_ordinal

RNG = np.random.default_rng(0)
Stream = tuple[np.ndarray, list[int]]


def stream(seed: int, rounds: int, n: int, k: int) -> Stream:
    """Small whole numbers, some instances twice, ranks that have nothing to do with them: ties everywhere."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (rounds, n)).astype(np.float64)
    X[1::3] = X[: X[1::3].shape[0]]
    return X, rng.integers(1, k + 1, rounds).tolist()


def pairs(n: int, k: int) -> list[tuple[Any, Any]]:
    """Every learner with its pseudo-code; 1/8 and whole numbers are exact for as long as a stream lasts."""
    return [
        (PRank(n, k), naive.PRank(n, k)),
        (MulticlassPerceptron(n, k), naive.MulticlassPerceptron(n, k)),
        (ConstantRank(n, k), naive.ConstantRank(k)),
    ]


def directions(learner: Any, state: Any) -> Any:
    return state.W if isinstance(learner, MulticlassPerceptron) else learner.weights(state)


def follow(learner: Any, oracle: Any, X: np.ndarray, ranks: list[int], dtype: Any = np.float64) -> Any:
    """Play `learner` along its pseudo-code, which has Python's whole numbers; equal in every round. The state."""
    state = learner.init(RNG)
    for t, (x, y) in enumerate(zip(X, ranks)):
        shown = learner.propose(state, x.astype(dtype), RNG)
        assert type(shown) is int
        exact = [int(i) for i in x]
        assert shown == oracle.predict(exact), t
        state = learner.update(state, x.astype(dtype), shown, y)
        oracle.update(exact, y)
    return state


def agree(learner: Any, state: Any, oracle: Any) -> None:
    """The same numbers inside, exactly."""
    if isinstance(learner, PRank):
        assert state.w.tolist() == oracle.w
        assert state.b.tolist() == [oracle.b[r] for r in range(1, learner.n_ranks)]
    elif isinstance(learner, MulticlassPerceptron):
        assert state.W.tolist() == list(oracle.w.values())
    else:
        assert state.counts.tolist() == [oracle.seen.count(r) for r in range(1, learner.n_ranks + 1)]


SIZES = [(1, 2), (3, 5), (4, 3), (9, 4), (2, 12)]


@pytest.mark.parametrize(("n", "k"), SIZES)
@pytest.mark.parametrize("which", range(3), ids=["PRank", "MulticlassPerceptron", "ConstantRank"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_pseudo_code(n: int, k: int, which: int, dtype: Any) -> None:
    """[P01] Figure 2 and its rivals, round for round, every number equal."""
    for seed in range(3):
        learner, oracle = pairs(n, k)[which]
        X, ranks = stream(seed, 80, n, k)
        agree(learner, follow(learner, oracle, X, ranks, dtype), oracle)


@st.composite
def streams(draw: Any) -> tuple[int, int, Stream]:
    n, k = draw(st.integers(1, 4)), draw(st.integers(2, 6))
    row = st.lists(st.integers(-2, 2), min_size=n, max_size=n)
    rounds = draw(st.lists(st.tuples(row, st.integers(1, k)), min_size=1, max_size=25))
    return n, k, (np.array([x for x, _ in rounds], float), [y for _, y in rounds])


@examples(60)
@given(streams())
def test_pseudo_code_on_any_stream(case: tuple[int, int, Stream]) -> None:
    n, k, (X, ranks) = case
    for learner, oracle in pairs(n, k):
        agree(learner, follow(learner, oracle, X, ranks), oracle)


def test_widrow_hoff_pseudo_code() -> None:
    """In fractions, until they no longer fit a float; then to rounding, where no rank is near a half."""
    for seed in range(6):
        X, ranks = stream(seed, 60, 3, 5)
        learner, oracle = WidrowHoff(3, 5, eta=0.125), naive.WidrowHoff(3, 5, Fraction(1, 8))
        state, decided = learner.init(RNG), 0
        for t, (x, y) in enumerate(zip(X, ranks)):
            exact = [int(i) for i in x]
            s = sum(a * b for a, b in zip(oracle.w, exact))
            shown = learner.propose(state, x, RNG)
            assert type(shown) is int
            if t < 8 or abs(s + Fraction(1, 2) - round(s + Fraction(1, 2))) > 1e-9:
                assert shown == oracle.predict(exact), t
                decided += 1
            state = learner.update(state, x, shown, y)
            oracle.update(exact, y)
            wanted = [float(a) for a in oracle.w]
            if t < 8:
                assert state.w.tolist() == wanted, t
            assert state.w == pytest.approx(wanted, rel=1e-9, abs=1e-12), t
        assert decided > 50


# ---------------------------------------------------------------------------- rounds by hand


def by_hand(learner: Any, rounds: list[tuple[list[float], int, int, list[Any], list[float]]]) -> None:
    """Each round: x, what is shown, the true rank; the weights and thresholds after it."""
    state = learner.init(RNG)
    for t, (x, wanted, y, w, b) in enumerate(rounds, 1):
        shown = learner.propose(state, np.array(x), RNG)
        assert shown == wanted, t
        state = learner.update(state, np.array(x), shown, y)
        np.testing.assert_allclose(directions(learner, state), w, atol=1e-12, err_msg=f"round {t}")
        if b:
            assert learner.thresholds(state).tolist() == pytest.approx(b), t


def test_prank_by_hand() -> None:
    """k = 3: y_r is (-1, -1) for rank 1, (1, -1) for 2, (1, 1) for 3."""
    by_hand(
        PRank(2, 3),
        [
            # s = 0 is not below b = (0, 0): rank 3. y_r = (-1, -1): 0 is wrong for both. w -= 2 x, b += 1
            ([1, 0], 3, 1, [-2, 0], [1, 1]),
            # s = 0 < 1: rank 1. y_r = (1, 1), both wrong: w += 2 x, b -= 1
            ([0, 1], 1, 3, [-2, 2], [0, 0]),
            # s = 0, a tie with both: rank 3. y_r = (1, -1): (0 - 0) y_r <= 0 for both. tau = (1, -1), sum 0: w stays
            ([1, 1], 3, 2, [-2, 2], [-1, 1]),
            # s = 0, in [-1, 1): rank 2, right: nothing moves
            ([1, 1], 2, 2, [-2, 2], [-1, 1]),
            # s = -1, a tie with b_1: rank 2. y_r = (-1, -1): wrong for r = 1 alone, since (-1 - 1) (-1) > 0
            ([0.5, 0], 2, 1, [-2.5, 2], [0, 1]),
            # s = 1, a tie with b_2: rank 3, right, and the tie does not count
            ([0, 0.5], 3, 3, [-2.5, 2], [0, 1]),
            # s = 2.5: rank 3. y_r = (-1, -1): both wrong
            ([-1, 0], 3, 1, [-0.5, 2], [1, 2]),
        ],
    )


def test_multiclass_perceptron_by_hand() -> None:
    by_hand(
        MulticlassPerceptron(2, 3),
        [
            ([1, 0], 1, 3, [[-1, 0], [0, 0], [1, 0]], []),  # all tie: the lowest
            ([0, 1], 1, 2, [[-1, -1], [0, 1], [1, 0]], []),  # all tie again
            ([1, 1], 2, 2, [[-1, -1], [0, 1], [1, 0]], []),  # -2, 1, 1: the lower, and right
            ([1, 1], 2, 3, [[-1, -1], [-1, 0], [2, 1]], []),
        ],
    )


def test_widrow_hoff_by_hand() -> None:
    by_hand(
        WidrowHoff(2, 3, eta=0.5),
        [
            ([1, 0], 1, 3, [1.5, 0], []),  # 0 is clipped to 1
            ([1, 0], 2, 3, [2.25, 0], []),  # 1.5 is rounded up; it moves although 2 is near
            ([2, 0], 3, 2, [-0.25, 0], []),  # 4.5 is clipped to 3, but not where it learns: .5 (2 - 4.5) 2 = -2.5
            ([0, 1], 1, 1, [-0.25, 0.5], []),  # right, and it moves
        ],
    )


def test_constant_by_hand() -> None:
    state, learner = ConstantRank(1, 4).init(RNG), ConstantRank(1, 4)
    for wanted, y in [(2, 4), (4, 1), (1, 3), (3, 3), (3, 4), (3, 4), (3, 4), (4, 1)]:
        assert learner.propose(state, np.ones(1), RNG) == wanted
        state = learner.update(state, np.ones(1), wanted, y)


# ---------------------------------------------------------------------------- the lemma, the proof, the bound


def cases(seed: int) -> tuple[PRank, np.ndarray, list[int]]:
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(1, 5)), int(rng.integers(2, 8))
    if seed % 2:
        return PRank(n, k), rng.standard_normal((150, n)) * 3, rng.integers(1, k + 1, 150).tolist()
    return PRank(n, k), *stream(seed, 150, n, k)


@pytest.mark.parametrize("seed", range(12))
def test_the_thresholds_stay_in_order(seed: int) -> None:
    """[P01] Order Preservation: b_1 <= ... <= b_{k-1} after every round, whole numbers."""
    learner, X, ranks = cases(seed)
    state = learner.init(RNG)
    for x, y in zip(X, ranks):
        state = learner.update(state, x, 0, y)
        b = state.b.tolist()
        assert all(p <= q for p, q in pairwise(b))
        assert all(v == int(v) for v in b)
    assert np.any(np.diff(state.b) > 0) or learner.n_ranks == 2


@pytest.mark.parametrize("seed", range(12))
def test_the_equalities_of_the_proof(seed: int) -> None:
    """With v = (w, b), any v* = (w*, b*), tau from the pseudo-code on its own:

    v*.v_{T+1} = sum_t sum_r tau_r (w*.x - b*_r), |v_{T+1}|^2 = sum_t (2 sum_r tau_r (w.x - b_r) + (sum tau)^2 |x|^2 +
    sum_r tau_r^2), in every round sum_r tau_r (w.x - b_r) <= 0, and n_t <= sum |tau|, with equality where nothing ties.
    """
    learner, X, ranks = cases(seed)
    rng = np.random.default_rng(seed + 100)
    k = learner.n_ranks
    w_star, b_star = rng.standard_normal(learner.n_features), np.sort(rng.standard_normal(k - 1))
    state, along, square, tied = learner.init(RNG), 0.0, 0.0, 0
    for x, y in zip(X, ranks):
        s, shown = float(x @ state.w), learner.propose(state, x, RNG)
        y_r = np.where(y <= np.arange(1, k), -1.0, 1.0)
        tau = np.where((s - state.b) * y_r <= 0, y_r, 0.0) * (shown != y)
        along += float(tau @ (w_star @ x - b_star))
        assert tau @ (s - state.b) <= 0
        square += float(2 * tau @ (s - state.b) + tau.sum() ** 2 * (x @ x) + tau @ tau)
        ties = bool(np.any(s == state.b))
        assert abs(shown - y) <= np.abs(tau).sum()
        assert ties or abs(shown - y) == np.abs(tau).sum()
        tied += abs(shown - y) < np.abs(tau).sum()
        state = learner.update(state, x, shown, y)
    assert w_star @ state.w + b_star @ state.b == pytest.approx(along, rel=1e-9)
    assert state.w @ state.w + state.b @ state.b == pytest.approx(square, rel=1e-9)
    assert seed % 2 or learner.n_ranks == 2 or tied


def separable(seed: int, n: int, k: int, margin: float) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Instances that a rule (w*, b*) of norm 1 ranks right by at least `margin`: X, ranks, the true margin, R^2."""
    rng = np.random.default_rng(seed)
    w, b = rng.standard_normal(n), np.sort(rng.standard_normal(k - 1))
    norm = float(np.sqrt(w @ w + b @ b))
    w, b = w / norm, b / norm
    X = rng.standard_normal((3000, n)) * 2
    gap = X @ w - b[:, None]
    X = X[np.abs(gap).min(axis=0) >= margin]
    gap = X @ w - b[:, None]
    return X, 1 + (gap > 0).sum(axis=0), float(np.abs(gap).min()), float((X**2).sum(axis=1).max())


@pytest.mark.parametrize("seed", range(6))
def test_the_mistake_bound(seed: int) -> None:
    """[P01] Mistake Bound: sum |tau|, and so the rank loss, is at most (k - 1)(R^2 + 1) / gamma^2; and it stops."""
    n, k = 3, 3 + seed % 3
    X, ranks, gamma, R2 = separable(seed, n, k, 0.15)
    assert len(X) > 100
    learner = PRank(n, k)
    state, loss, moved = learner.init(RNG), 0, 0.0
    for _ in range(60):
        before = loss
        for x, y in zip(X, ranks):
            shown, old = learner.propose(state, x, RNG), state.b.copy()
            loss += abs(shown - int(y))
            state = learner.update(state, x, shown, int(y))
            moved += float(np.abs(state.b - old).sum())
        if loss == before:
            break
    assert loss == before  # a whole pass without a mistake: the bound has an end to be reached before
    assert 0 < loss <= moved <= (k - 1) * (R2 + 1) / gamma**2


# ---------------------------------------------------------------------------- the kernel and its features


def test_polynomial_features_are_the_kernel() -> None:
    """The inner product of two mapped instances is (x . z + 1)^2, and PRank on them is PRank with that kernel."""
    rng = np.random.default_rng(4)
    for n in (1, 2, 5):
        X = rng.standard_normal((30, n))
        assert polynomial(X).shape == (30, (n + 1) * (n + 2) // 2)
        np.testing.assert_allclose(polynomial(X) @ polynomial(X).T, (X @ X.T + 1) ** 2, rtol=1e-12, atol=1e-12)
    X = rng.random((300, 2))
    ranks = 1 + np.searchsorted([-1, -0.1, 0.25, 1], 10 * (X[:, 0] - 0.5) * (X[:, 1] - 0.5))
    mapped = polynomial(X)
    oracle = naive.KernelPRank(lambda z, x: (sum(a * b for a, b in zip(z, x)) + 1) ** 2, 5)
    learner = PRank(6, 5)
    state, mistakes = learner.init(RNG), 0
    for t in range(300):
        shown = learner.propose(state, mapped[t], RNG)
        assert shown == oracle.predict(X[t].tolist()), t
        mistakes += shown != ranks[t]
        state = learner.update(state, mapped[t], shown, int(ranks[t]))
        oracle.update(X[t].tolist(), int(ranks[t]))
        assert state.b.tolist() == [oracle.b[r] for r in range(1, 5)], t
    assert mistakes > 50


# ---------------------------------------------------------------------------- what else holds


@pytest.mark.parametrize("cls", [PRank, MulticlassPerceptron, WidrowHoff, ConstantRank])
def test_permuting_features_permutes_weights(cls: Any) -> None:
    """And changes no rank that is shown: on whole numbers, exactly."""
    X, ranks = stream(9, 60, 5, 4)
    order = np.random.default_rng(1).permutation(5)
    learner = cls(5, 4)
    a, b = learner.init(RNG), learner.init(RNG)
    for x, y in zip(X, ranks):
        shown = learner.propose(a, x, RNG)
        assert shown == learner.propose(b, x[order], RNG)
        a, b = learner.update(a, x, shown, y), learner.update(b, x[order], shown, y)
    if cls is not ConstantRank:
        np.testing.assert_allclose(directions(learner, b), directions(learner, a)[..., order], rtol=1e-12, atol=1e-12)
        assert np.any(directions(learner, a))


@pytest.mark.slow
@pytest.mark.parametrize("n", [3, 50, 128, 129, 300])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_compiled_is_interpreted(n: int, dtype: str) -> None:
    """Bit for bit, on both sides of the 128 addends that numpy sums in one piece; regret is the rank loss."""
    world, _, _ = synthetic_ordinal(150, n, 5, noise=0.3, seed=n, dtype=dtype)
    for learner in (PRank(n, 5), OrdinalLogistic(n, 5), MulticlassPerceptron(n, 5), WidrowHoff(n, 5, 0.001)):
        fast = trace(learner, world, 400, 3)
        assert fast.tobytes() == trace(learner, world, 400, 3, interpreted=True).tobytes()
        assert fast.tolist() == [abs(r.y - r.feedback) for r, _ in play(learner, world, 400, 3)]


@pytest.mark.slow
def test_a_diverging_widrow_hoff_still_shows_a_rank() -> None:
    """eta |x|^2 > 2: w overflows to infinity, then to no number; what is shown stays a rank, compiled as well."""
    learner = WidrowHoff(2, 5, eta=10.0)
    world = instance_stream([[3.0, -4.0], [1.0, 1.0], [5.0, 2.0]], [1, 3, 5], n_ranks=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        rounds = [(r.y, s.w.copy()) for r, s in play(learner, world, 900, 0)]
        fast, slow = trace(learner, world, 900, 0), trace(learner, world, 900, 0, interpreted=True)
    assert np.isnan(rounds[-1][1]).any()
    assert {y for y, _ in rounds} <= {1, 2, 3, 4, 5}
    assert rounds[-1][0] == 1
    assert fast.tobytes() == slow.tobytes()


@pytest.mark.slow
def test_each_learns_what_it_can() -> None:
    """On the paper's stream (Figure 4): PRank beats the constant, and ordinal logistic regression beats PRank."""
    world = synthetic_instances(7000)
    loss = {
        type(learner).__name__: float(trace(learner, world, 7000, 0).mean())
        for learner in (PRank(6, 5), OrdinalLogistic(6, 5), ConstantRank(6, 5))
    }
    assert loss["OrdinalLogistic"] < loss["PRank"] < loss["ConstantRank"]


# ---------------------------------------------------------------------------- doors


def test_a_session_takes_grades() -> None:
    session = Session(PRank(2, 3))
    assert session.propose([1, 0]) == 3
    with pytest.raises(ValueError, match=r"^feedback: expected a grade, a whole number from 1 to 3, got 4$"):
        session.learn(4)
    with pytest.raises(ValueError, match=r"^x: expected shape \(2,\), got \(3,\)$"):
        session.propose([1, 0, 0])
    for bad in (0, -1, 2.5, np.nan, np.inf, True, "2", [2], np.array([2]), None, np.timedelta64(2), 10**400):
        with pytest.raises(ValueError, match=r"^feedback: expected a grade, a whole number from 1 to 3, got "):
            session.learn(bad)
    assert session.state.t == 0
    session.learn(np.int64(1))
    assert session.weights.tolist() == [-2, 0]
    assert session.propose(np.array([0, 1], np.float32)) == 1
    session.learn(3.0)
    assert session.state.b.tolist() == [0, 0]
