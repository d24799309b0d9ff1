"""[J15] Algorithm 6: against its pseudo-code, rounds worked by hand, A A^-1 = I, and the projection."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streams import context, follow, plain, reaction

import naive
from budget import examples
from heedful.learners.coactive.second_order import SecondOrderPerceptron, project_onto_ball
from heedful.spaces.assignment import Assignment
from heedful.spaces.ranking import Ranking

N = 4
SPACES = [Ranking(5), Ranking(2), Ranking(1), Assignment(3)]
SEEDS = st.integers(0, 2**32 - 1)
SETTINGS = [(1.0, 1.0, 100.0), (1.0, 1.0, 0.5), (0.2, 3.0, 0.1), (5.0, 0.01, 2.0)]


def whole(lower: np.ndarray) -> np.ndarray:
    """The symmetric matrix of a lower triangle: what stands above the diagonal means nothing."""
    return np.tril(lower) + np.tril(lower, -1).T


@pytest.mark.parametrize("space", SPACES, ids=repr)
@pytest.mark.parametrize(("gamma", "epsilon", "radius"), SETTINGS)
@pytest.mark.parametrize("seed", range(3))
def test_pseudo_code(space: Any, gamma: float, epsilon: float, radius: float, seed: int) -> None:
    """Algorithm 6 with A itself and another way to project, round for round."""
    oracle = naive.SecondOrderPreferencePerceptron(N, plain(space), gamma, epsilon, radius)
    state = follow(SecondOrderPerceptron(N, space, gamma, epsilon, radius), oracle, seed)
    assert whole(state.A_inv) @ oracle.A == pytest.approx(np.eye(N), abs=1e-8)
    assert state.t == 60


def by_hand(learner: Any, x: np.ndarray, rounds: list[tuple[int, int, list[float], list[list[float]]]]) -> None:
    """Each round: the item shown, the item that comes back, w and A^-1 after it."""
    state = learner.init(np.random.default_rng(0))
    for t, (wanted, ybar, w, A_inv) in enumerate(rounds, 1):
        y = learner.propose(state, x, np.random.default_rng(0))
        assert y.tolist() == [wanted], t
        state = learner.update(state, x, y, np.array([ybar]))
        assert state.w == pytest.approx(w, abs=1e-12), t
        assert whole(state.A_inv) == pytest.approx(np.array(A_inv), abs=1e-12), t


def test_algorithm_6_by_hand() -> None:
    by_hand(
        SecondOrderPerceptron(2, Ranking(1)),
        np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]),
        [
            # D = (1,0), A = diag(2,1), A^-1 D = (1/2, 0)
            (0, 1, [0.5, 0.0], [[0.5, 0.0], [0.0, 1.0]]),
            # D = (-1,1), A = [3 -1; -1 2], det 5, A^-1 D = (-1/5, 2/5)
            (1, 2, [0.3, 0.4], [[0.4, 0.2], [0.2, 0.6]]),
            # scores 0, .3, .4. D = (1,-1), A = [4 -2; -2 3], det 8, A^-1 D = (1/8, -1/4)
            (2, 1, [0.425, 0.15], [[0.375, 0.25], [0.25, 0.5]]),
            # the same object comes back: D = 0, nothing moves
            (1, 1, [0.425, 0.15], [[0.375, 0.25], [0.25, 0.5]]),
        ],
    )


def test_gamma_and_epsilon_by_hand() -> None:
    """gamma = 3, epsilon = 2: D = (1,0) gives A = diag(5,2), A^-1 D = (1/5, 0); then D = (-1,2): A = [8 -6; -6 14],
    det 76, A^-1 D = (-14 + 12, -6 + 16) / 76."""
    by_hand(
        SecondOrderPerceptron(2, Ranking(1), gamma=3.0, epsilon=2.0),
        np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]),
        [
            (0, 1, [0.2, 0.0], [[0.2, 0.0], [0.0, 0.5]]),
            (1, 2, [0.2 - 2 / 76, 10 / 76], [[14 / 76, 6 / 76], [6 / 76, 8 / 76]]),
        ],
    )


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize(("epsilon", "radius"), [(1e-6, 1e-6), (1e-6, 1e50), (1e50, 1e-6), (1.0, 1e-6)])
def test_what_is_let_in_is_learned_whatever_the_size_of_features(epsilon: float, radius: float, scale: float) -> None:
    rng = np.random.default_rng(0)
    learner = SecondOrderPerceptron(3, Ranking(2), epsilon=epsilon, radius=radius)
    state = learner.init(rng)
    for _ in range(60):
        x = scale * rng.standard_normal((5, 3))
        y = learner.propose(state, x, rng)
        state = learner.update(state, x, y, rng.permutation(5))
    assert np.linalg.norm(state.w) <= radius * (1.0 + 1e-9)


def test_projection_by_hand() -> None:
    """A = diag(4,1), mu = 2, w = (3,4): (A + mu I) w = (18,12) = A w_bar for w_bar = (4.5,12). The Euclidean
    projection of the same point, 5 w_bar / |w_bar|, is (1.76, 4.68)."""
    assert project_onto_ball(np.diag([0.25, 1.0]), np.array([4.5, 12.0]), 5.0) == pytest.approx([3.0, 4.0], abs=1e-11)


@examples(30)
@given(SEEDS, st.sampled_from(SPACES), st.sampled_from(SETTINGS), st.integers(1, 30))
def test_the_inverse_is_that_of_A(seed: int, space: Any, hyper: tuple[float, float, float], rounds: int) -> None:
    """A = epsilon I + gamma sum D D^T, A A^-1 = I; and w_t.D_t <= 0 in every round."""
    rng = np.random.default_rng(seed)
    learner, phi = SecondOrderPerceptron(N, space, *hyper), plain(space).phi
    state, A = learner.init(rng), hyper[1] * np.eye(N)
    for _ in range(rounds):
        x = context(rng, space, N)
        y = learner.propose(state, x, rng)
        ybar = reaction(rng, space, x, y)
        D = phi(x, ybar) - phi(x, y)
        assert learner.weights(state) @ D <= 1e-9
        A += hyper[0] * np.outer(D, D)
        state = learner.update(state, x, y, ybar)
        assert np.linalg.norm(state.w) <= hyper[2] * (1.0 + 1e-9)
    assert A @ whole(state.A_inv) == pytest.approx(np.eye(N), abs=1e-8)


@pytest.mark.slow
@examples(100)
@given(SEEDS, st.integers(1, 8), st.floats(0.01, 0.999), st.floats(0.0, 3.0))
def test_projection_is_the_nearest_point_of_the_ball(seed: int, n: int, shrink: float, spread: float) -> None:
    """|w| = radius, and (I + mu A^-1) w = w_bar for one mu >= 0, which makes w the minimum of a convex problem; so
    nothing in the ball is nearer in the norm of A."""
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.standard_normal((n, n)))
    a = 10.0 ** rng.uniform(-spread, spread, n)
    A, A_inv = Q @ np.diag(a) @ Q.T, Q @ np.diag(1.0 / a) @ Q.T
    w_bar = rng.standard_normal(n) * 10.0 ** rng.uniform(-2, 2)
    radius = shrink * float(np.linalg.norm(w_bar))
    above = np.triu(rng.standard_normal((n, n)), 1)  # never read
    kept = w_bar.copy()
    w = project_onto_ball(np.tril(A_inv) + above, w_bar, radius)
    assert (w_bar == kept).all()
    assert np.linalg.norm(w) == pytest.approx(radius, rel=1e-9)
    pulled = A_inv @ w
    mu = float(pulled @ (w_bar - w) / (pulled @ pulled))
    assert mu >= 0.0
    assert w + mu * pulled == pytest.approx(w_bar, rel=1e-6, abs=1e-7 * np.linalg.norm(w_bar))
    assert w == pytest.approx(naive.projected(A, w_bar, radius), rel=1e-6, abs=1e-7 * radius)
    others = rng.standard_normal((200, n))
    others *= radius * rng.random((200, 1)) ** (1.0 / n) / np.linalg.norm(others, axis=1, keepdims=True)
    near = w + 0.01 * radius * rng.standard_normal((200, n))
    near *= np.minimum(1.0, radius / np.linalg.norm(near, axis=1, keepdims=True))
    for other in np.concatenate([others, near]):
        assert (other - w_bar) @ A @ (other - w_bar) >= (w - w_bar) @ A @ (w - w_bar) * (1.0 - 1e-9)


def test_projection_inside_the_learner_ends_on_the_sphere() -> None:
    """A radius that the first step already passes: w is on the sphere, and the identity of A goes on."""
    learner = SecondOrderPerceptron(2, Ranking(1), radius=0.25)
    x = np.array([[0.0, 0.0], [1.0, 0.0]])
    state = learner.update(learner.init(np.random.default_rng(0)), x, np.array([0]), np.array([1]))
    assert state.w == pytest.approx([0.25, 0.0], abs=1e-12)  # w + A^-1 D = (1/2, 0)
    assert whole(state.A_inv) == pytest.approx(np.diag([0.5, 1.0]), abs=1e-15)
