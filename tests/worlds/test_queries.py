"""Query streams ([J15] section 6.1.1): the order of the queries, the answers, the regret."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from heedful.core.fold import play, trace
from heedful.learners.coactive.perceptron import PreferencePerceptron
from heedful.spaces.ranking import Ranking
from heedful.worlds.queries import QueryStream, feature_bounds, query_stream, synthetic_queries
from heedful.worlds.users import Best, Noisy, StrictAlpha

SEEDS = st.integers(0, 2**32 - 1)
N = 3
SIZES = [4, 1, 7, 6, 2]  # lists shorter than k, and of one document
OFFSETS = np.cumsum([0, *SIZES])
W_STAR = np.array([0.6, 0.0, -0.8])
HALF = StrictAlpha(0.5)


def rows(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows that tell their query and their label: x = (query, position, label and a fraction)."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.sort(rng.integers(0, 5, size))[::-1] for size in SIZES]).astype(float)
    places = np.concatenate([np.arange(size) for size in SIZES])
    return np.column_stack([np.repeat(np.arange(5), SIZES), places, labels + rng.random(labels.size)]), labels


def stream(user: Any = HALF, **options: Any) -> QueryStream:
    X, labels = rows()
    return query_stream(X, labels, OFFSETS, W_STAR, user, **options)


@given(SEEDS)
def test_every_query_once_per_pass(seed: int) -> None:
    """In the same order in every pass, and for the same seed; contexts are whole queries."""
    world = stream()
    orders = []
    for _ in range(2):
        asked = np.random.default_rng(seed)
        state = world.init(asked)
        orders.append([int(world.context(state, t, asked)[0, 0]) for t in range(12)])
        for t in range(12):
            x = world.context(state, t, asked)
            assert x.shape == (SIZES[int(x[0, 0])], N)
            assert len(set(x[:, 0].tolist())) == 1
            assert not world.over(state, t)
    assert orders[0] == orders[1]
    assert sorted(orders[0][:5]) == [0, 1, 2, 3, 4]
    assert orders[0][5:] == (orders[0] * 2)[:7]


def test_orders_differ_between_seeds() -> None:
    orders = {tuple(stream().init(np.random.default_rng(seed)).order.tolist()) for seed in range(40)}
    assert len(orders) > 20


@pytest.mark.parametrize("shuffle", [0, 1, 2])
def test_shuffling_keeps_documents_with_their_labels_in_their_query(shuffle: int) -> None:
    X, labels = rows()
    world = stream(shuffle=shuffle)
    assert sorted(map(tuple, world.X.tolist())) == sorted(map(tuple, X.tolist()))
    assert world.X[:, 0].tolist() == X[:, 0].tolist()
    assert world.labels.tolist() == np.floor(world.X[:, 2]).tolist()
    assert world.utilities == pytest.approx(world.X @ W_STAR, abs=1e-15)
    assert world.X[:, 1].tolist() != X[:, 1].tolist()
    assert world.X.tolist() == stream(shuffle=shuffle).X.tolist()
    assert world.X.flags.c_contiguous
    assert labels.tolist() == rows()[1].tolist()


def test_shuffles_differ_and_round_one_does_not_cheat() -> None:
    """Data files come sorted by label; every position comes first about as often, here of 7."""
    firsts = [int(stream(shuffle=s).X[OFFSETS[2], 1]) for s in range(700)]
    counts = np.bincount(firsts, minlength=7)
    assert counts.min() > 65
    assert counts.sum() == 700


@given(SEEDS, st.sampled_from([2, 5]), st.sampled_from([StrictAlpha(0.5), StrictAlpha(1.0), Noisy(3)]))
def test_answers_and_regret(seed: int, k: int, user: Any) -> None:
    """Regret is U(y*) - U(y) >= 0, and 0 for y*; the person answers by the utilities and labels of this query."""
    world = stream(user, k=k, shuffle=seed % 10)
    rng = np.random.default_rng(seed)
    state = world.init(rng)
    for t in range(11):
        x = world.context(state, t, rng)
        u, labels = x @ W_STAR, np.floor(x[:, 2])
        m = len(x)
        y_star = sorted(range(m), key=lambda j: -u[j])
        y = rng.permutation(m)
        wanted = naive.utility(u, y_star, k) - naive.utility(u, y.tolist(), k)
        regret = world.regret(state, x, y)
        assert regret == pytest.approx(wanted, abs=1e-12)
        assert regret >= -1e-12
        assert world.regret(state, x, np.array(y_star)) == pytest.approx(0.0, abs=1e-12)
        feedback = world.respond(state, x, y, rng).tolist()
        if isinstance(user, Noisy):
            assert feedback == naive.noisy_ranking(k, labels, y.tolist(), 3)
        else:
            gain = naive.utility(u, feedback, k) - naive.utility(u, y.tolist(), k)
            assert gain >= user.alpha * wanted - 1e-12
            assert feedback == naive.strict_alpha_ranking(k, u, y.tolist(), user.alpha)
        state = world.advance(state, x, y, np.array(feedback))
        assert state.t == t + 1


def test_the_world_is_not_spent_by_a_run() -> None:
    """Two runs of one world are the same run; the curve is the regret of what was shown, round for round."""
    world = stream(k=5)
    learner = PreferencePerceptron(N, Ranking(5))
    first = trace(learner, world, 23, seed=4, interpreted=True)
    assert first.tolist() == trace(learner, world, 23, seed=4, interpreted=True).tolist()
    for regret, (played, _) in zip(first, play(learner, world, 23, seed=4)):
        u = played.x @ W_STAR
        best = naive.utility(u, sorted(range(len(u)), key=lambda j: -u[j]), 5)
        assert regret == pytest.approx(best - naive.utility(u, played.y.tolist(), 5), abs=1e-12)


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_feature_bounds(k: int) -> None:
    """R and S bound |phi(x, y)| for every ranking of every query, and are reached where all rows are alike."""
    rng = np.random.default_rng(k)
    X = rng.standard_normal((int(OFFSETS[-1]), N))
    R, S = feature_bounds(X, OFFSETS, Ranking(k))
    space = naive.Rankings(k)
    phis = [space.phi(X[lo:hi], y) for lo, hi in pairwise(OFFSETS) for y in space.objects(X[lo:hi])]
    norms, sups = np.linalg.norm(phis, axis=1), np.abs(phis).max(axis=1)
    assert 0.5 * R < norms.max() <= R * (1.0 + 1e-12)
    assert 0.5 * S < sups.max() <= S * (1.0 + 1e-12)
    alike = np.tile([3.0, -4.0, 0.0], (int(OFFSETS[-1]), 1)).astype(np.float32)
    discounts = sum(1.0 / np.log2(i + 2) for i in range(k))
    assert feature_bounds(alike, OFFSETS, Ranking(k)) == pytest.approx((5.0 * discounts, 4.0 * discounts))


def test_feature_bounds_by_hand() -> None:
    """k = 3, discounts 1, .63, .5. Query one: rows (3,4), (0,1): 5 + .63, and 4 + .63 in the second feature. Query
    two: one row (-6,0): 6, and 6."""
    X = np.array([[0.0, 1.0], [3.0, 4.0], [-6.0, 0.0]])
    assert feature_bounds(X[:2], np.array([0, 2]), Ranking(3)) == pytest.approx(
        (5.0 + 1.0 / np.log2(3), 4.0 + 1.0 / np.log2(3))
    )
    assert feature_bounds(X, np.array([0, 2, 3]), Ranking(3)) == pytest.approx((6.0, 6.0))


def test_synthetic_queries() -> None:
    """|w*| = 1, normal features, grades 0..4 = round(2 + 1.2 (u + noise N(0,1))); in single precision where asked."""
    world, w_star = synthetic_queries(200, 10, 6, noise=0.0, user=Noisy(), seed=3)
    assert np.linalg.norm(w_star) == pytest.approx(1.0)
    assert world.X.shape == (2000, 6)
    assert world.offsets.tolist() == list(range(0, 2001, 10))
    assert abs(world.X.mean()) < 0.05
    assert world.X.std() == pytest.approx(1.0, abs=0.05)
    assert world.labels.tolist() == np.clip(np.round(2.0 + 1.2 * (world.X @ w_star)), 0, 4).tolist()
    noisy, _ = synthetic_queries(200, 10, 6, noise=1.5, user=Noisy(), seed=3)
    assert noisy.X.tolist() == world.X.tolist()
    error = (noisy.labels - 2.0) / 1.2 - noisy.utilities
    inside = (noisy.labels > 0) & (noisy.labels < 4) & (np.abs(noisy.utilities) < 0.3)
    assert 0.6 < error[inside].std() < 1.2  # of a normal with deviation 1.5, cut off at -2 and 2
    single, _ = synthetic_queries(5, 4, 6, noise=0.0, user=Noisy(), k=3, dtype="float32")
    assert (single.k, world.k) == (3, 5)
    assert single.X.dtype == np.float32
    assert single.utilities.dtype == np.float64
    other, _ = synthetic_queries(200, 10, 6, noise=0.0, user=Noisy(), seed=4)
    assert other.X.tolist() != world.X.tolist()


def test_misuse_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"^k: expected a ranking of at least 2 positions, got 1"):
        stream(k=1)
    with pytest.raises(
        ValueError,
        match=r"^user: expected one who ranks documents \(strict, noisy, position-biased, cascade, expected\), "
        r"got Best",
    ):
        stream(Best())
    with pytest.raises(ValueError, match=r"^shuffle: expected a whole number, 0 or more, got -1$"):
        stream(shuffle=-1)
    for field, value in [("seed", -1), ("noise", -1.0), ("noise", np.nan), ("noise", True)]:
        with pytest.raises(
            ValueError, match=rf"^{field}: expected a (whole number, 0 or more|number from 0 to 1e50), got {value}$"
        ):
            synthetic_queries(3, 4, 2, **{"noise": 0.0, "user": Noisy(), field: value})  # type: ignore[arg-type]


ROWS, GOOD = np.arange(24.0).reshape(6, 4), np.array([0, 2, 6])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offsets": [2, 4, 6]}, "offsets: expected them to rise from 0 to 6"),
        ({"offsets": [0, 4]}, "offsets: expected them to rise from 0 to 6"),
        ({"offsets": [0, 5, 4, 6]}, "offsets: expected them to rise"),
        ({"offsets": [0, 2, 2, 6]}, "offsets: expected them to rise"),
        ({"offsets": [-1, 6]}, "offsets: expected them to rise"),
        ({"offsets": [0, 100]}, "offsets: expected them to rise"),
        ({"offsets": []}, "offsets: expected where each query begins"),
        ({"offsets": [0]}, "offsets: expected where each query begins"),
        ({"offsets": [0.0, 6.0]}, "offsets: expected where each query begins"),
        ({"w_star": np.ones(1)}, r"w_star: expected shape \(4,\), got \(1,\)"),
        ({"w_star": 1.0}, r"w_star: expected shape \(4,\), got \(\)"),
        ({"w_star": np.full(4, np.nan)}, "w_star: expected finite numbers"),
        ({"labels": np.zeros(7)}, r"labels: expected shape \(6,\), got \(7,\)"),
        ({"labels": np.zeros((6, 2))}, "labels: expected shape"),
        ({"X": np.where(ROWS == 5, np.nan, ROWS)}, r"X: expected finite numbers, got nan at \[1, 1\]"),
        ({"X": "text"}, "X: expected 2-dimensional numbers"),
        ({"k": 2000}, "k: expected a whole number, 1 to 1024, got 2000"),
        ({"k": "5"}, "k: expected a whole number"),
        ({"user": StrictAlpha(float("nan"))}, "alpha: expected a number above 0, at most 1, got nan"),
        ({"user": Noisy(-3)}, "depth: expected a whole number, 1 or more, got -3"),
        ({"user": Noisy}, "user: expected one who ranks documents"),
    ],
)
def test_data_that_do_not_fit_together_are_refused(change: dict[str, Any], message: str) -> None:
    whole = {"X": ROWS, "labels": np.zeros(6), "offsets": GOOD, "w_star": np.ones(4), "user": Noisy(), "k": 5}
    query_stream(**whole)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=f"^{message}"):
        query_stream(**{**whole, **change})  # type: ignore[arg-type]


@pytest.mark.slow
def test_whole_numbers_are_features_too() -> None:
    """Integer features are made floats: compiled code would read their bits as floats."""
    X = np.arange(24).reshape(6, 4) % 5
    world = query_stream(X, np.arange(6) % 3, GOOD, np.array([1.0, -1.0, 2.0, 0.0]), StrictAlpha())
    assert world.X.dtype == np.float64
    learner = PreferencePerceptron(4, Ranking(2))
    assert trace(learner, world, 20, 0).tolist() == trace(learner, world, 20, 0, interpreted=True).tolist()
