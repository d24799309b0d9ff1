"""The posterior: the textbook's mode and precision for every kind of answer, and numbers that stay sound."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from budget import FACTOR, examples
from heedful.core.fold import play, trace
from heedful.learners.coactive.posterior import Posterior, preferred
from heedful.learners.logistic import MOST_FULL, PosteriorState, add_squares, logistic_pull, observe
from heedful.spaces.ranking import Ranking, WithBaseScore
from heedful.worlds.clicks import PositionBiased
from heedful.worlds.queries import query_stream, synthetic_queries
from heedful.worlds.users import Noisy

N = 4
SEEDS = st.integers(0, 2**32 - 1)
RNG = np.random.default_rng(0)


def covariance(state: PosteriorState) -> np.ndarray:
    """Only the lower triangle counts."""
    return np.tril(state.P) + np.tril(state.P, -1).T


def same(state: PosteriorState, oracle: Any) -> None:
    assert state.m == pytest.approx(oracle.m, rel=1e-6, abs=1e-7)
    assert covariance(state) == pytest.approx(np.linalg.inv(oracle.L), rel=1e-6, abs=1e-7)


# ---------------------------------------------------------------------------- against the textbook


@examples(25)
@given(SEEDS, st.sampled_from([Ranking(3), Ranking(1), WithBaseScore(Ranking(5))]), st.sampled_from([0, 2]))
def test_every_answer_moves_it_to_the_mode_with_the_precision_there(seed: int, space: Any, products: int) -> None:
    """Clicks, corrections and thumbs in turn, on features of unlike scales, one of them constant now and then."""
    rng = np.random.default_rng(seed)
    learner, scored = Posterior(N, space, products=products), isinstance(space, WithBaseScore)
    state, oracle = learner.init(rng), naive.Posterior(N, space.positions(), scored, products)
    for _ in range(6):
        m = int(rng.integers(1, 14))
        x = rng.standard_normal((m, N)) * [1.0, 10.0, 0.1, 2.0]
        x[:, 1] = x[0, 1] if rng.random() < 0.3 else x[:, 1]
        shown = rng.permutation(m)[: int(rng.integers(1, m + 1))]
        some = rng.permutation(m)[: int(rng.integers(0, m + 1))]
        weight = float(rng.choice([1.0, 2.5]))
        kind = rng.integers(3)
        if kind == 0:
            clicks = some[np.isin(some, shown)]
            state = learner.learn(state, x, shown, clicks, True, weight)
            oracle.clicked(x, shown.tolist(), clicks.tolist(), weight)
        elif kind == 1:
            state = learner.learn(state, x, shown, some, False, weight)
            oracle.k = min(space.positions(), len(shown))
            oracle.corrected(x, shown.tolist(), some.tolist(), weight)
        else:
            up = float(rng.choice([0.0, 0.3, 1.0]))
            alone = bool(rng.integers(2))
            state = learner.judge(state, x[0], x.mean(axis=0), up, alone)
            oracle.judged(x[0], x.mean(axis=0), up, alone)
        same(state, oracle)
    assert state.t == 6


@given(SEEDS)
def test_what_it_says_of_how_sure_it_is(seed: int) -> None:
    """The covariance of the log-odds of thumbs, and of differences, are those of the textbook's Gaussian."""
    rng = np.random.default_rng(seed)
    learner, oracle = Posterior(N, Ranking(3)), naive.Posterior(N, 3)
    state = learner.init(rng)
    for up in (1.0, 0.0, 0.5):
        z = rng.standard_normal(N) * [1.0, 10.0, 0.1, 2.0]
        state = learner.judge(state, z, np.zeros(N), up, True)
        oracle.judged(z, np.zeros(N), up, True)
    x = rng.standard_normal((5, N))
    P = np.linalg.inv(oracle.L)
    for level, rest in ((1.0, np.ones(5)), (0.0, np.zeros(5))):
        rows = np.column_stack([x - level * oracle.usual, np.zeros((5, 22)), rest])
        want = rows @ P @ rows.T  # of thousands: an entry is as exact as the largest is
        assert learner.covariance(state, x, level) == pytest.approx(want, abs=1e-9 * np.abs(want).max())
    assert learner.spreads(state) == pytest.approx(np.sqrt(np.diag(P)[:N]), abs=1e-7)
    assert learner.log_odds(state) == pytest.approx(oracle.m[-1] - oracle.usual @ oracle.m[:N], abs=1e-7)


def test_a_whole_order_is_a_correction_and_a_part_of_it_clicks() -> None:
    x, learner = RNG.standard_normal((5, N)), Posterior(N, Ranking(2))
    y = learner.propose(learner.init(RNG), x, RNG)
    for feedback, clicked in (([3, 1, 0, 2, 4], False), ([3, 1], True), ([], True)):
        ours = learner.update(learner.init(RNG), x, y, np.array(feedback, np.int64))
        chosen = np.array(feedback if clicked else feedback[:2], np.int64)
        theirs = learner.learn(learner.init(RNG), x, y.shown, chosen, clicked, 1.0)
        assert ours.m.tobytes() == theirs.m.tobytes()
        assert ours.P.tobytes() == theirs.P.tobytes()


def test_pairs_by_hand() -> None:
    """Shown 0 to 5, of which the first two are looked at in any case. 3 and 0 should have come first: each beats 1 and
    2, which stood above the lower one, and 3 beats 0, which stood above it. 6 was not shown: then all above is 2."""
    better, worse = preferred(7, np.arange(6), np.array([3, 0]), 2)
    assert list(zip(better.tolist(), worse.tolist())) == [(3, 1), (3, 2), (3, 0), (0, 1), (0, 2)]
    better, worse = preferred(7, np.arange(6), np.array([6]), 2)
    assert list(zip(better.tolist(), worse.tolist())) == [(6, 0), (6, 1)]


def test_one_observation_by_hand() -> None:
    """Prior variance 4, target 1: the mode solves x = 4 (1 - sigma(x)), x = 1.1886; the variance is then 1 / (1/4 +
    sigma (1 - sigma))."""
    m, P = np.zeros(1), np.full((1, 1), 4.0)
    observe(m, P, np.ones((1, 1)), np.zeros(1, np.int64), np.full(1, -1), np.ones(1), 1.0)
    p = 1.0 / (1.0 + np.exp(-m[0]))
    assert m[0] == pytest.approx(4.0 * (1.0 - p), abs=1e-9)
    assert P[0, 0] == pytest.approx(1.0 / (0.25 + p * (1.0 - p)))


@given(SEEDS)
def test_what_is_compiled_rounds_alike(seed: int) -> None:
    """Also where many observations are of the same row, so that the order of sums matters."""
    rng = np.random.default_rng(seed)
    r, share, weight = int(rng.integers(2, 40)), rng.choice([0.1, 0.5, 1.0]), float(rng.choice([1.0, 2.5]))
    some = [(a, b) for a in range(r) for b in range(-1, a) if rng.random() < share] or [(1, 0)]
    plus, minus = np.array(some).T.copy()
    given = rng.standard_normal(r) * rng.choice([1.0, 100.0]), plus, minus, rng.random(plus.size).round(1), weight
    for interpreted, compiled in zip(logistic_pull(*given), logistic_pull.__kernel__(*given)):  # type: ignore[attr-defined]
        assert interpreted.tobytes() == compiled.tobytes()


@given(SEEDS)
def test_squares_are_those_of_the_formula_and_compiled_round_alike(seed: int) -> None:
    """Also of one feature, whose column numpy would add up in another order, of float32, and of what is constant."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(1, 200)), int(rng.integers(1, 4))
    X = (rng.standard_normal((m, n)) + 3.0).astype(rng.choice(["f4", "f8"]))
    X[:, -1] = X[0, -1] if rng.random() < 0.3 else X[:, -1]
    mean = X.mean(axis=0, dtype=np.float64)
    found = []
    for sums in (add_squares, add_squares.__kernel__):  # type: ignore[attr-defined]
        squares, sizes = np.ones((2, n))
        sums(squares, sizes, X, mean)
        found.append(squares.tobytes() + sizes.tobytes())
        assert squares == pytest.approx(1.0 + ((X - mean) ** 2).sum(axis=0))
        assert sizes == pytest.approx(1.0 + (X.astype(np.float64) ** 2).sum(axis=0))
    assert found[0] == found[1]


# ---------------------------------------------------------------------------- what it is for


def test_clicks_at_the_top_count_for_less() -> None:
    """What always stands first is always clicked; what is clicked without standing there is better."""
    learner = Posterior(2, Ranking(2), swap=0.0)
    state, x = learner.init(RNG), np.eye(2)
    for _ in range(300):
        state = learner.learn(state, x, np.array([0, 1]), np.array([0]), True, 1.0)
        state = learner.learn(state, x, np.array([1, 0]), np.array([1, 0]), True, 1.0)
    w = learner.weights(state)
    assert w[0] > w[1]
    assert state.m[2] > state.m[3] + 1.0  # the effect of the first place


def test_before_any_answer_the_callers_order_is_shown_whatever_the_unit_of_the_score() -> None:
    for unit in (1e-3, 1.0, 1e3):
        learner = Posterior(3, WithBaseScore(Ranking(5)), swap=0.0)
        state, rng = learner.init(RNG), np.random.default_rng(1)
        assert learner.weights(state).tolist() == [0.0, 0.0, 0.0]
        x = rng.standard_normal((8, 3))
        x[:, 2] *= unit
        assert learner.propose(state, x, rng).shown.tolist() == np.argsort(-x[:, 2]).tolist()
        state = learner.learn(state, x, np.arange(8), np.array([7]), False, 1.0)
        scale = x[:, 2].std()
        kept = learner.weights(state)[2] + 1.0
        assert 0.2 < kept * scale < 2.0


def test_a_persons_own_weights_leave_the_shared_score_alone() -> None:
    learner = Posterior(N, WithBaseScore(Ranking(3), adjusted=False))
    state = learner.init(RNG)
    for _ in range(20):
        x = RNG.standard_normal((6, N))
        state = learner.learn(state, x, np.arange(6), RNG.permutation(6)[:2], bool(RNG.integers(2)), 1.0)
    assert learner.weights(state)[-1] == 0.0
    assert learner.weights(state)[:-1].all()


@pytest.mark.parametrize("n", [MOST_FULL, MOST_FULL + 1])
def test_many_features_keep_their_variances_alone(n: int) -> None:
    learner = Posterior(n, Ranking(3))
    state, size = learner.init(RNG), n + 23
    assert state.P.shape == ((size, size) if n <= MOST_FULL else (1, size))
    for _ in range(3):
        x = RNG.standard_normal((6, n))
        state = learner.learn(state, x, np.arange(4), np.array([2]), True, 1.0)
        state = learner.learn(state, x, np.arange(4), np.array([5, 3]), False, 1.0)
    variances = np.diag(state.P) if n <= MOST_FULL else state.P[0]
    assert (variances > 0.0).all()
    assert np.isfinite(state.m).all()


def test_variances_alone_are_those_of_the_whole_for_one_observation() -> None:
    z = RNG.standard_normal((1, 5))
    variances = np.array([[1.0, 4.0, 0.5, 2.0, 1.0]])
    whole, m, other = np.diag(variances[0]), np.zeros(5), np.zeros(5)
    for mean, P in ((m, variances), (other, whole)):
        observe(mean, P, z, np.zeros(1, np.int64), np.full(1, -1), np.ones(1), 1.0)
    assert m == pytest.approx(other)
    assert variances[0] == pytest.approx(np.diag(whole))


# ---------------------------------------------------------------------------- numbers that stay sound


@pytest.mark.slow
@pytest.mark.parametrize("user", [Noisy(5), PositionBiased(1.0, 0.1, True)])
def test_after_many_rounds_the_covariance_is_that_of_the_precision(user: Any) -> None:
    """Positive definite, and the inverse of what the textbook adds up, from the same observations."""
    n, rounds = 6, 10_000 * FACTOR
    world, _ = synthetic_queries(50, 8, n, noise=1.0, user=user)
    learner = Posterior(n, Ranking(3))
    *_, (_, state) = play(learner, world, rounds, 0)
    P = covariance(state)
    assert np.linalg.eigvalsh(P).min() > 0.0
    assert np.isfinite(state.m).all()
    L = np.linalg.inv(P)
    assert np.linalg.eigvalsh(L[:n, :n]).min() > 0.1


@pytest.mark.parametrize("scale", [1e-150, 1e-9, 1e9, 1e150, 1e300])
def test_features_of_any_scale_teach_the_same_order(scale: float) -> None:
    """As far as squares of them are finite; otherwise nothing is NaN."""
    rng = np.random.default_rng(3)
    learner = Posterior(2, Ranking(3), swap=0.0)
    state = learner.init(rng)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        for _ in range(40):
            x = rng.standard_normal((6, 2)) * scale
            order = np.argsort(-x[:, 0])
            state = learner.learn(state, x, rng.permutation(6), order[:3], False, 1.0)
    assert np.isfinite(state.m).all()
    if 1e-100 < scale < 1e100:
        assert learner.weights(state)[0] * scale > 1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("user", "space"),
    [(PositionBiased(1.0, 0.1, True), Ranking(3)), (Noisy(5), WithBaseScore(Ranking(5)))],
)
def test_compiled_it_learns_the_same(user: Any, space: Any) -> None:
    """Also with fewer than k clicks, with none, and on lists shorter than k."""
    rng = np.random.default_rng(3)
    offsets = np.unique(np.concatenate([[0], np.cumsum(rng.integers(1, 9, 30))]))
    X = rng.integers(-1, 2, (int(offsets[-1]), N)).astype(float)
    world = query_stream(X, rng.integers(0, 5, len(X)), offsets, rng.standard_normal(N), user, k=3)
    learner = Posterior(N, space)
    assert trace(learner, world, 300, 2).tobytes() == trace(learner, world, 300, 2, interpreted=True).tobytes()
