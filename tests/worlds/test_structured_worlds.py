"""Sets that somebody corrects, in the template of [J15] Algorithm 3: the people, the regret, the learning."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from budget import examples
from heedful.core.fold import play, trace
from heedful.learners.coactive.perceptron import PreferencePerceptron
from heedful.worlds.answers import gain
from heedful.worlds.structured import synthetic_assignments, synthetic_subsets
from heedful.worlds.users import Better, StrictAlpha

SEEDS = st.integers(0, 2**32 - 1)
ALPHAS = st.sampled_from([0.1, 0.3, 0.5, 1.0])


def turn(state: Any, t: int) -> int:
    """Which of its contexts a world asks in round t."""
    return int(state.order[t % state.order.size])


STRICT = StrictAlpha(0.5)

# ---------------------------------------------------------------------------- sets


@examples(60)
@given(SEEDS, st.integers(1, 3), st.integers(0, 4), ALPHAS)
def test_subsets(seed: int, k: int, spare: int, alpha: float) -> None:
    """y* is the best of all sets, not the greedy one; the person exchanges members until the gain is enough."""
    world, w_star = synthetic_subsets(3, k + spare, k, 4, StrictAlpha(alpha), seed=seed)
    assert w_star.min() >= 0.0
    assert world.X.min() >= 0.0
    space, rng = naive.Subsets(k), np.random.default_rng(seed)
    state = world.init(rng)
    for t in range(5):
        assert not world.over(state, t)
        x = world.context(state, t, rng)
        assert x.tolist() == world.X[turn(state, t)].tolist()
        sets = space.objects(x)
        best = max(float(w_star @ space.phi(x, y)) for y in sets)
        y_star = world.best[turn(state, t)].tolist()
        assert w_star @ space.phi(x, y_star) == pytest.approx(best)
        y = rng.permutation(k + spare)[:k]
        r = best - float(w_star @ space.phi(x, y))
        assert world.regret(state, x, y) == pytest.approx(r, abs=1e-9)
        assert world.regret(state, x, y) >= -1e-12
        y_bar = world.respond(state, x, y, rng)
        assert y_bar.tolist() == naive.strict_alpha_set(space, w_star, x, y_star, y.tolist(), alpha)
        assert len({*y_bar.tolist()}) == k
        assert gain(world.space, x, w_star, y_bar, y) >= alpha * r - 1e-9
        state = world.advance(state, x, y, y_bar)


def test_a_set_corrected_by_hand() -> None:
    """Of 0 1 the best exchange is for 2 3: the first of these for the last of those, as long as needed."""
    world, _ = synthetic_subsets(1, 4, 2, 1, StrictAlpha(1.0))
    x, w, y, best = np.array([[0.0], [0.0], [1.0], [8.0]]), np.ones(1), np.array([0, 1]), np.array([2, 3])
    assert StrictAlpha(0.3).correct(world.space, x, w, best, y).tolist() == [0, 2]  # sqrt 1 of sqrt 9
    assert StrictAlpha(0.4).correct(world.space, x, w, best, y).tolist() == [3, 2]
    assert StrictAlpha(1.0).correct(world.space, x, w, best, best[::-1]).tolist() == [3, 2]


def test_the_bound_with_what_greed_gives_away() -> None:
    """|w_{T+1}|^2 <= 4 R^2 T + 2 sum max(0, w_t.D_t), and Theorem 1 with the root of it for 2 R sqrt T, at every T."""
    world, w_star = synthetic_subsets(60, 8, 3, 5, StrictAlpha(0.5), seed=3)
    plain, learner = naive.Subsets(3), PreferencePerceptron(5, world.space)
    R = max(float(np.linalg.norm(plain.phi(x, y))) for x in world.X for y in plain.objects(x))
    away, gains, failed, w = 0.0, 0.0, 0, np.zeros(5)
    regrets = trace(learner, world, 200, 0, interpreted=True)
    for T, (played, state) in enumerate(play(learner, world, 200, 0), 1):
        D = plain.phi(played.x, played.feedback) - plain.phi(played.x, played.y)
        away += max(0.0, float(w @ D))
        failed += w @ D > 1e-9
        gains += float(w_star @ D)
        w = state.w.copy()
        root = np.sqrt(4.0 * R**2 * T + 2.0 * away)
        assert np.linalg.norm(w) <= root + 1e-9
        assert w @ w_star == pytest.approx(gains)
        assert regrets[:T].sum() <= root / 0.5 + 1e-9
    assert failed > 0  # greed is not the argmax, and somewhere here it shows


# ---------------------------------------------------------------------------- random contexts


@pytest.mark.parametrize(
    ("kind", "first", "shown", "answered", "costs", "weights"),
    [
        (
            "assignments",
            [-0.801931, 1.73353, 0.103023, -1.091329, 0.010473, -0.058371],
            [[0, 1, 2], [1, 3, 0], [3, 2, 0], [0, 1, 3], [2, 3, 0], [3, 2, 0]],
            [[0, 2, 1], [1, 3, 0], [3, 2, 0], [0, 1, 3], [2, 3, 0], [3, 0, 2]],
            [3.4346749766, 0.0, 0.0, 0.0, 0.0, 0.3914248727],
            [-0.10985578952237611, -0.9939267569842138, 0.006427072370755609],
        ),
        (
            "sets",
            [0.0, 0.0, 0.0, 0.0, 0.380475, 0.631436],
            [[0, 1, 2], [0, 1, 2], [3, 0, 1], [2, 1, 0], [1, 5, 0], [0, 2, 5]],
            [[0, 1, 2], [0, 4, 2], [3, 5, 1], [2, 1, 3], [1, 5, 0], [0, 2, 1]],
            [0.0, 1.2659728049, 0.0253552166, 0.0615516409, 0.0, 0.0288293561],
            [0.16041538778792763, 0.10843535218385347, 0.981075266102256],
        ),
    ],
)
def test_a_seed_draws_what_it_always_drew(
    kind: str,
    first: list[float],
    shown: list[list[int]],
    answered: list[list[int]],
    costs: list[float],
    weights: list[float],
) -> None:
    """Contexts, weights and their order of a seed stay for good, so that figures on record can be had again."""
    world, w_star = {
        "assignments": lambda: synthetic_assignments(6, 4, 3, 3, STRICT, seed=5),
        "sets": lambda: synthetic_subsets(6, 6, 3, 3, STRICT, seed=5),
    }[kind]()
    assert w_star.tolist() == pytest.approx(weights, abs=1e-15)
    learner = PreferencePerceptron(3, world.space)
    rounds = [played for played, _ in play(learner, world, 6, 5)]
    assert [float(played.x.flat[0]) for played in rounds] == pytest.approx(first, abs=1e-6)
    assert [played.y.tolist() for played in rounds] == shown
    assert [played.feedback.tolist() for played in rounds] == answered
    assert trace(learner, world, 6, 5, interpreted=True) == pytest.approx(costs, abs=1e-9)


# ---------------------------------------------------------------------------- learning


def test_the_perceptron_is_its_transcription() -> None:
    """Round for round, on squares, which tie."""
    rng = np.random.default_rng(2)
    world, _ = synthetic_subsets(2, 6, 3, 4, STRICT)
    plain = naive.Subsets(3)
    learner, oracle = PreferencePerceptron(4, world.space), naive.PreferencePerceptron(4, plain)
    state = learner.init(rng)
    for _ in range(120):
        x = rng.integers(0, 3, (6, 4)) ** 2.0
        y = learner.propose(state, x, rng)
        assert oracle.w @ plain.phi(x, y) == pytest.approx(oracle.w @ plain.phi(x, oracle.propose(x)), abs=1e-6)
        objects = plain.objects(x)
        y_bar = np.array(objects[int(rng.integers(0, len(objects)))])
        state = learner.update(state, x, y, y_bar)
        oracle.update(x, y.tolist(), y_bar.tolist())
        np.testing.assert_allclose(state.w, oracle.w, rtol=1e-9, atol=1e-11)


def test_a_learner_learns() -> None:
    """Regret falls to less than a tenth, and goes on falling."""
    world, _ = synthetic_subsets(200, 10, 4, 8, STRICT)
    # To compile it takes ten times as long; that it is the same is a promise, kept in test_conformance.py.
    regrets = trace(PreferencePerceptron(8, world.space), world, 1200, seed=0, interpreted=True)
    late = [float(regrets[a:b].mean()) for a, b in pairwise([0, 20, 200, 1200])]
    assert late[2] < late[1] < late[0]
    assert regrets[-200:].mean() < 0.1 * regrets[:5].mean()


def test_what_is_refused() -> None:
    for make, told in [
        (lambda: synthetic_subsets(5, 4, 2, 2, STRICT, seed=-1), "seed: expected a whole number, 0 or more, got -1"),
        (lambda: synthetic_subsets(0, 4, 2, 2, STRICT), "rounds: expected a whole number, 1 or more, got 0"),
        (lambda: synthetic_subsets(5, 2, 3, 2, STRICT), "candidates: expected a whole number, 3 or more, got 2"),
        (lambda: synthetic_subsets(5, 40, 5, 2, STRICT), "k: expected at most 20000 sets to try, got 658008"),
        (
            lambda: synthetic_subsets(5, 4, 2, 2, Better()),
            "user: expected one who corrects assignments and sets (strict), got Better",
        ),
    ]:
        with pytest.raises(ValueError) as error:
            make()
        assert str(error.value).startswith(told)
