"""Assignment streams: people for slots, someone who corrects them, in the template of [J15] Algorithm 3."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from heedful.core.fold import play, trace
from heedful.learners.coactive.perceptron import PreferencePerceptron
from heedful.spaces.assignment import Assignment, best_assignment
from heedful.worlds.structured import StructuredStream, synthetic_assignments
from heedful.worlds.users import StrictAlpha

SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS, st.integers(1, 4), st.integers(0, 2), st.sampled_from([0.3, 0.5, 1.0]))
def test_stream(seed: int, slots: int, spare: int, alpha: float) -> None:
    """Every round's people once per pass; regret U(y*) - U(y) >= 0, and 0 for y*; the person is alpha-informative."""
    world, _ = synthetic_assignments(4, slots + spare, slots, 3, StrictAlpha(alpha), seed=seed)
    rng, space = np.random.default_rng(seed), naive.Assignments(slots)
    state = world.init(rng)
    met = []
    for t in range(9):
        assert not world.over(state, t)
        x = world.context(state, t, rng)
        [round_of_data] = np.flatnonzero((world.X == x).all(axis=(1, 2, 3)))
        met.append(int(round_of_data))
        u = x @ world.w_star
        y = rng.permutation(slots + spare)[:slots]
        y_star = space.argmax(world.w_star, x)
        r = float(world.w_star @ (space.phi(x, y_star) - space.phi(x, y)))
        assert world.regret(state, x, y) == pytest.approx(r, abs=1e-12)
        assert world.regret(state, x, y) >= -1e-12
        assert world.regret(state, x, np.array(y_star)) == pytest.approx(0.0, abs=1e-12)
        y_bar = world.respond(state, x, y, rng)
        assert y_bar.tolist() == naive.strict_alpha_assignment(u, y_star, y.tolist(), alpha)
        state = world.advance(state, x, y, y_bar)
    assert sorted(met[:4]) == [0, 1, 2, 3]
    assert met[4:] == (met * 2)[:5]


def test_synthetic_assignments() -> None:
    world, _ = synthetic_assignments(200, 5, 3, 4, StrictAlpha(), seed=1)
    assert world.X.shape == (200, 5, 3, 4)
    assert world.space == Assignment(3)
    assert np.linalg.norm(world.w_star) == pytest.approx(1.0)
    assert abs(world.X.mean()) < 0.05
    assert world.X.std() == pytest.approx(1.0, abs=0.05)
    orders = {tuple(world.init(np.random.default_rng(seed)).order.tolist()) for seed in range(5)}
    assert len(orders) == 5
    assert synthetic_assignments(200, 5, 3, 4, StrictAlpha(), seed=2)[0].X.tolist() != world.X.tolist()


def test_by_hand() -> None:
    """One feature, w* = 1, utilities people x slots [0 3; 2 1]: y* = (1,0), worth 5. Shown (0,1), worth 1."""
    X, best = np.array([[[[0.0], [3.0]], [[2.0], [1.0]]]]), np.array([[1, 0]])
    world = StructuredStream(X, np.ones(1), best, Assignment(2), StrictAlpha())
    rng = np.random.default_rng(0)
    state = world.init(rng)
    x = world.context(state, 7, rng)
    assert world.regret(state, x, np.array([0, 1])) == 4.0
    assert world.regret(state, x, np.array([1, 0])) == 0.0
    assert world.respond(state, x, np.array([0, 1]), rng).tolist() == [1, 0]


def test_a_learner_learns_who_belongs_where() -> None:
    """The regret of a run is that of what was shown, and falls to a tenth."""
    world, _ = synthetic_assignments(300, 5, 3, 4, StrictAlpha(), seed=1)
    learner = PreferencePerceptron(4, Assignment(3))
    regrets = trace(learner, world, 300, seed=0, interpreted=True)
    space = naive.Assignments(3)
    for regret, (played, _) in zip(regrets[:20], play(learner, world, 20, seed=0)):
        best = space.argmax(world.w_star, played.x)
        difference = space.phi(played.x, best) - space.phi(played.x, played.y)
        assert regret == pytest.approx(world.w_star @ difference, abs=1e-12)
    assert regrets[-100:].mean() < 0.1 * regrets[:5].mean()


def test_fewer_people_than_slots_are_refused() -> None:
    """With fewer people than slots the solver would look for a person that does not exist; it also rejects NaN."""
    with pytest.raises(ValueError, match=r"^seed: expected a whole number, 0 or more, got -1$"):
        synthetic_assignments(5, 3, 3, 2, StrictAlpha(), seed=-1)
    with pytest.raises(ValueError, match="people: expected a whole number, 3 or more, got 2"):
        synthetic_assignments(10, 2, 3, 4, StrictAlpha())
    for benefit in (np.ones((2, 3)), np.full((3, 2), np.nan)):
        with pytest.raises(
            ValueError, match="assignment: expected finite benefits and at least as many people as slots"
        ):
            best_assignment(benefit)
