"""The bounds of [J15], where their hypotheses hold, next to learners that break them.

A bound that holds proves little: here the regret may not exceed it, and the same learner with a sign error must.
"""

from typing import Any, NamedTuple

import numpy as np
import pytest

import naive
from heedful.core.fold import trace
from heedful.core.session import Session
from heedful.learners.coactive.perceptron import ConvexPerceptron, ExponentiatedPerceptron, PreferencePerceptron
from heedful.learners.coactive.second_order import SecondOrderPerceptron
from heedful.spaces.ranking import Ranking
from heedful.worlds.queries import QueryStream, feature_bounds, query_stream, synthetic_queries
from heedful.worlds.users import StrictAlpha

ALPHA, N, T = 0.5, 5, 3000
TIMES = np.arange(1, T + 1)


class Reversed(NamedTuple):
    """Rankings with a sign error: learning steps go away from the better object."""

    k: int = 5

    def argmax(self, w: Any, x: Any) -> Any:
        return Ranking(self.k).argmax(w, x)

    def add_difference(self, out: Any, x: Any, ybar: Any, y: Any, scale: float) -> None:
        Ranking(self.k).add_difference(out, x, ybar, y, -scale)

    def check(self) -> None:
        pass


@pytest.fixture(scope="module")
def stream() -> tuple[QueryStream, np.ndarray, float, float]:
    """Queries of ten documents, a user who is strictly 1/2-informative, |w*| = 1; and R <= 1/2, S over the data.

    Features are scaled down: the terms of Theorems 6 and 8 in R fall faster than the regret, so they say something.
    """
    made, w_star = synthetic_queries(400, 10, N, noise=0.0, user=StrictAlpha(ALPHA), seed=1)
    R, _ = feature_bounds(made.X, made.offsets, Ranking())
    world = query_stream(made.X * (0.5 / R), made.labels, made.offsets, w_star, made.user, shuffle=2)
    R, S = feature_bounds(world.X, world.offsets, Ranking())
    assert pytest.approx(0.5) == R
    return world, w_star, R, S


def means(learner: Any, world: QueryStream) -> np.ndarray:
    """REG_t for t = 1..T, Eq. 4."""
    return np.cumsum(trace(learner, world, T, seed=3, interpreted=True)) / TIMES


def bounded(S: float) -> list[Any]:
    return [
        PreferencePerceptron(N, Ranking()),
        PreferencePerceptron(N, Ranking(), batch=10),
        ExponentiatedPerceptron(N, Ranking(), bound=S, horizon=T),
        ConvexPerceptron(N, Ranking(), radius=1.0),
    ]


def test_feature_bounds_hold_over_the_data(stream: Any) -> None:
    """R and S of the theorems bound |phi(x, y)| of whole rankings, in the two norms; y* and its reverse come near."""
    world, _, R, S = stream
    norms, sups = [], []
    for q in range(world.offsets.size - 1):
        x = world.X[world.offsets[q] : world.offsets[q + 1]]
        for direction in np.concatenate([np.eye(N), -np.eye(N), x]):
            phi = naive.Rankings(5).phi(x, naive.Rankings(5).argmax(direction, x))
            norms.append(float(np.linalg.norm(phi)))
            sups.append(float(np.abs(phi).max()))
    assert 0.5 * R < max(norms) <= R
    assert 0.7 * S < max(sups) <= S


@pytest.mark.parametrize("which", range(4), ids=["Theorem 1", "Lemma 4", "Theorem 5", "Theorem 6"])
def test_the_regret_is_bounded_and_that_of_a_sign_error_is_not(stream: Any, which: int) -> None:
    """Theorem 1, Lemma 4, Theorem 5 (fixed rate) and Theorem 6 (linear loss), xi = 0, after every round."""
    world, w_star, R, S = stream
    learner = bounded(S)[which]
    bound = learner.regret_bound(TIMES, ALPHA, w_star, R, S)
    regret = means(learner, world)
    assert (regret <= bound).all()
    wrong = means(learner._replace(space=Reversed()), world)
    assert wrong[-1] > bound[-1]


def test_theorem_5_where_no_weight_is_negative(stream: Any) -> None:
    """Every feature turned the way this user likes it, so w* >= 0: with ln N for ln 2N, a lower bound."""
    world, w_star, R, S = stream
    turned = query_stream(world.X * np.sign(w_star), world.labels, world.offsets, np.abs(w_star), world.user, shuffle=2)
    learner = ExponentiatedPerceptron(N, Ranking(), bound=S, horizon=T, signed=False)
    bound = learner.regret_bound(TIMES, ALPHA, np.abs(w_star), R, S)
    assert (bound < bounded(S)[2].regret_bound(TIMES, ALPHA, np.abs(w_star), R, S)).all()
    regret = means(learner, turned)
    assert (regret <= bound).all()
    assert regret[-1] < 0.3 * means(learner._replace(space=Reversed()), turned)[-1]  # no weight can turn negative
    assert np.isnan(learner.regret_bound(TIMES, ALPHA, w_star, R, S)).all()


def test_bounds_by_hand() -> None:
    """R = 3, |w*| = |(3,4)| = 5, |w*|_1 = 7, S = 2, alpha = 1/2, after 100 and 400 rounds."""
    t, w_star = np.array([100, 400]), np.array([3.0, -4.0])

    def bound(learner: Any) -> Any:
        return learner.regret_bound(t, 0.5, w_star, 3.0, 2.0)

    # Theorem 1: 2 . 3 . 5 / (10 . 1/2), and half of it
    assert bound(PreferencePerceptron(2, Ranking())) == pytest.approx([6.0, 3.0])
    # Lemma 4: sqrt k = 3 times as much
    assert bound(PreferencePerceptron(2, Ranking(), batch=9)) == pytest.approx([18.0, 9.0])
    # Theorem 5, T = 400, N = 4: 7 (2 ln 4 + 1) 2 / (20 . 1/2); at t = 100: 7 (2 . 2 . 20 ln 4 + 2 . 100 / 20) / (100/2)
    wanted = [7 * (80 * np.log(4) + 10) / 50, 7 * (2 * np.log(4) + 1) / 5]
    assert bound(ExponentiatedPerceptron(2, Ranking(), bound=2.0, horizon=400)) == pytest.approx(wanted)
    # The same without doubling, N = 2, of a w* that has no negative weight
    [least, most] = [7 * (80 * np.log(2) + 10) / 50, 7 * (2 * np.log(2) + 1) / 5]
    unsigned = ExponentiatedPerceptron(2, Ranking(), bound=2.0, horizon=400, signed=False)
    assert unsigned.regret_bound(t, 0.5, np.array([3.0, 4.0]), 3.0, 2.0) == pytest.approx([least, most])
    # Theorem 6, D2 = 100: (100/20 + 100/100 + 36/10) 2, (100/40 + 100/400 + 36/20) 2
    assert bound(ConvexPerceptron(2, Ranking(), radius=5.0)) == pytest.approx([19.2, 9.1])


def test_no_bound_where_the_hypotheses_fail() -> None:
    """NaN, no number without a meaning: variable rate, S too small (Theorem 5); w* outside the ball (Theorem 6)."""
    t, w_star = np.array([1, 10, 100]), np.array([3.0, 4.0])
    for learner in (
        ExponentiatedPerceptron(2, Ranking(), bound=2.0),
        ExponentiatedPerceptron(2, Ranking(), bound=1.999, horizon=100),
        ConvexPerceptron(2, Ranking(), radius=4.999),
    ):
        bound = learner.regret_bound(t, 0.5, w_star, 3.0, 2.0)
        assert bound.shape == (3,)
        assert np.isnan(bound).all()
    unsigned = ExponentiatedPerceptron(2, Ranking(), bound=2.0, horizon=100, signed=False)
    assert np.isnan(unsigned.regret_bound(t, 0.5, np.array([3.0, -1e-9]), 3.0, 2.0)).all()
    assert np.isfinite(unsigned.regret_bound(t, 0.5, np.array([3.0, 0.0]), 3.0, 2.0)).all()


@pytest.mark.slow
def test_quadratic_loss_of_the_second_order_perceptron(stream: Any) -> None:
    """Theorem 8, c(th) = (th - M)^2, M = R |w*|, lambda = 2, G = 6 M, gamma = lambda / G, xi = 0, epsilon = 1:
    CREG_T <= G D2 / (T alpha) + G N / (2 T gamma alpha) ln(4 R^2 T gamma + 1)."""
    world, w_star, R, _ = stream
    M = R * float(np.linalg.norm(w_star))
    gamma, G, D2 = 1.0 / (3.0 * M), 6.0 * M, 4.0
    logs = np.log(4.0 * R**2 * TIMES * gamma + 1.0)
    bound = (G * D2 + G * N * logs / (2.0 * gamma)) / (TIMES * ALPHA)
    learner = SecondOrderPerceptron(N, Ranking(), gamma=gamma, epsilon=1.0, radius=1.0)

    def creg(learner: Any) -> np.ndarray:  # Eq. 15
        r = trace(learner, world, T, seed=3, interpreted=True)
        return np.cumsum((-r - M) ** 2 - M**2) / TIMES

    assert (creg(learner) <= bound).all()
    assert creg(learner._replace(space=Reversed()))[-1] > bound[-1]


# ---------------------------------------------------------------------------- the lower bound, in a space of its own


class Sign(NamedTuple):
    """Objects -1 and +1, phi(x, y) = y x: the space of Lemma 3. Nothing of ours knows it."""

    def phi(self, x: Any, y: Any) -> Any:
        return y * x

    def argmax(self, w: Any, x: Any) -> Any:
        return np.array(1 if w @ x >= 0.0 else -1)

    def add_difference(self, out: Any, x: Any, ybar: Any, y: Any, scale: float) -> None:
        out += scale * (ybar - y) * x

    def check(self) -> None:
        pass

    def check_context(self, x: Any, n_features: int) -> Any:
        return np.asarray(x, float).reshape(n_features)

    def check_object(self, name: str, x: Any, y: Any) -> Any:
        if y not in (-1, 1):
            raise ValueError(f"{name}: expected -1 or 1, got {y!r}")
        return np.array(y)


@pytest.mark.parametrize("horizon", [16, 64])
def test_nobody_learns_from_contexts_that_never_return(horizon: int) -> None:
    """Lemma 3: contexts e_1..e_T, feedback -y, w* = -y / sqrt T. REG_T = 2 / sqrt T, Theorem 1's right side."""
    learners = [
        PreferencePerceptron(horizon, Sign()),
        PreferencePerceptron(horizon, Sign(), batch=4),
        ExponentiatedPerceptron(horizon, Sign(), bound=1.0, horizon=horizon),
        ConvexPerceptron(horizon, Sign(), radius=1.0),
        SecondOrderPerceptron(horizon, Sign()),
    ]
    for learner in learners:
        session, shown = Session(learner), []
        for x in np.eye(horizon):
            shown.append(int(session.propose(x)))
            session.learn(-shown[-1])
        w_star = -np.array(shown) / np.sqrt(horizon)
        regret = [w_star @ (-y * x) - w_star @ (y * x) for x, y in zip(np.eye(horizon), shown)]
        assert np.mean(regret) == 2.0 / np.sqrt(horizon)
        assert shown == [1] * horizon  # a context that is new to w
        assert (session.weights < 0.0).all()
        if learner is learners[0]:
            assert session.weights.tolist() == [-2.0] * horizon
            right = learner.regret_bound(np.array([horizon]), 1.0, w_star, 1.0, 1.0)
            assert right.tolist() == [2.0 / np.sqrt(horizon)]
