"""The fold of the collaborative model: equal to a fit of all answers; between those, a person's weights alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from heedful.core.conformance import identical
from heedful.core.fold import Round, copy_arrays, play, replay
from heedful.inference.collaborative.cp import fit
from heedful.inference.gp.kernels import kernel_for
from heedful.inference.gp.posterior import Posterior
from heedful.inference.pairwise import PairRows, pair_rows
from heedful.learners.preference.collaborative_gp import CollaborativeGP
from heedful.spaces.comparison import EQUAL, SECOND, UNSURE, Choice, ComparisonPool
from heedful.worlds.choices import gaussian_choosers

Array = npt.NDArray[np.float64]
FEATURES = np.random.default_rng(0).normal(size=(6, 2))
SPACE = Choice(6, True, FEATURES)
WORLD = gaussian_choosers(8, 6, amplitude=2.0, tie=0.2, unsure=0.1, seed=1)
LEARNER = CollaborativeGP(SPACE, D=4, width=0.3, every=30)


def log_of(learner: Any, rounds: int) -> list[Round]:
    return [played for played, _ in play(learner, WORLD, rounds, 3)]


def table(log: list[Round]) -> PairRows:
    told = [r for r in log if r.feedback != UNSURE]
    pairs = [r.y[::-1] if r.feedback == SECOND else r.y for r in told]
    return pair_rows(pairs, None, [r.feedback == EQUAL for r in told], [r.x.user for r in told])


def close(a: Posterior, b: Posterior) -> None:
    np.testing.assert_allclose(a.mean, b.mean, atol=1e-10)
    np.testing.assert_allclose(a.cov, b.cov, atol=1e-10)


def test_the_fold_is_the_fit() -> None:
    log = log_of(LEARNER, 90)
    state = LEARNER.relearn(replay(LEARNER, log, 3))
    rows = table(log)
    people, user = np.unique(rows.user, return_inverse=True)
    K = kernel_for(FEATURES).over(FEATURES)
    wanted = fit(K, people.size, rows._replace(user=user), D=4, width=0.3)
    for at, person in enumerate(people.tolist()):
        close(LEARNER.posterior(state, person), wanted.posterior(at))
    assert (state.t, state.learned) == (90, rows.size)


def test_functions_are_learned_when_there_is_a_tenth_more() -> None:
    learner = LEARNER._replace(every=10)
    learned = [(state.learned, state.said.n) for _, state in play(learner, WORLD, 170, 4)]
    assert sorted({at for at, _ in learned})[:14] == [*range(0, 120, 10), 121, 133]
    assert all(n - at < max(10, at // 10) for at, n in learned)


def test_in_between_only_the_person_is() -> None:
    log = log_of(LEARNER, 45)
    state = replay(LEARNER, log, 3)
    before = copy_arrays(state)
    assert 0 < state.learned < state.said.n
    state = LEARNER.update(state, ComparisonPool(2, np.array([[0, 1]])), np.array([0, 1]), SECOND)
    assert identical(state.mean, before.mean)
    assert LEARNER.posterior(state, 2).beats(1, 0) > LEARNER.posterior(before, 2).beats(1, 0)
    for person in (0, 1, 3):
        close(LEARNER.posterior(state, person), LEARNER.posterior(before, person))


def test_somebody_new() -> None:
    """A coin at first, but which differences matter is known; one answer tells of all items."""
    state = replay(LEARNER, log_of(LEARNER, 90), 3)
    new = LEARNER.posterior(state, 77)
    np.testing.assert_allclose(new.mean, 0.0)
    assert np.abs(new.cov - LEARNER.posterior(LEARNER.init(np.random.default_rng(0))).cov).max() > 0.1
    state = LEARNER.update(state, ComparisonPool(77, np.array([[4, 2]])), np.array([4, 2]), 0)
    told = LEARNER.posterior(state, 77)
    assert told.beats(4, 2) > 0.5
    assert (np.abs(told.mean) > 1e-3).sum() > 2
    assert 77 in state.people.tolist()
    state = LEARNER.update(
        state, ComparisonPool(50, np.array([[4, 2]])), np.array([4, 2]), SECOND
    )  # between those who are known
    close(LEARNER.posterior(state, 77), told)
    assert LEARNER.posterior(state, 50).beats(4, 2) < 0.5


def test_an_order_is_its_comparisons_and_all_equal_are_ties() -> None:
    learner = LEARNER._replace(every=1000)
    x, y = ComparisonPool(0, np.array([[3, 1, 5]])), np.array([3, 1, 5])
    start = learner.init(np.random.default_rng(0))
    ordered = learner.update(copy_arrays(start), x, y, np.array([2, 0, 1]))
    assert ordered.said.pairs[:2].tolist() == [[5, 3], [3, 1]]
    assert ordered.said.group[:2].tolist() == [-1, -1]
    best = learner.update(copy_arrays(start), x, y, 1)
    assert best.said.pairs[: best.said.n].tolist() == [[1, 3], [1, 5]]
    equal = learner.update(copy_arrays(start), x, y, EQUAL)
    assert (equal.said.n, equal.said.equal[:3].all()) == (3, True)


def test_without_an_item_is_as_if_that_had_never_been_said() -> None:
    log = log_of(LEARNER, 90)
    state = replay(LEARNER, log, 3)
    left = LEARNER.without_item(copy_arrays(state), 4)
    never = LEARNER.relearn(replay(LEARNER, [r for r in log if 4 not in r.y.tolist()], 3))
    close(LEARNER.posterior(left, 2), LEARNER.posterior(never, 2))
    nobody = LEARNER.init(np.random.default_rng(0))
    nobody = LEARNER.update(nobody, ComparisonPool(0, np.array([[0, 1]])), np.array([0, 1]), 0)
    nobody = LEARNER.without_item(nobody, 0)
    close(LEARNER.posterior(nobody, 0), LEARNER.posterior(LEARNER.init(np.random.default_rng(0)), 0))


def test_items_may_arrive() -> None:
    state = replay(LEARNER, log_of(LEARNER, 60), 3)
    state = LEARNER.with_items(state, FEATURES[:1] + 1e-9)
    posterior = LEARNER.posterior(state, 2)
    assert posterior.mean.shape == (7,)
    assert posterior.mean[6] == pytest.approx(posterior.mean[0], abs=1e-3)  # it is like item 0
    state = LEARNER.update(state, ComparisonPool(2, np.array([[6, 1]])), np.array([6, 1]), 0)
    assert LEARNER.posterior(state, 2).mean.shape == (7,)
    with pytest.raises(ValueError, match="features: expected rows of 2"):
        LEARNER.with_items(state, np.zeros((1, 3)))


@pytest.mark.parametrize(
    ("amplitude", "width", "D"), [(3.0, 3.0, 3), (10.0, 0.25, 20), (1.0, 10.0, 3), (100.0, 30.0, 3), (100.0, 30.0, 20)]
)
def test_what_is_believed_is_finite_whatever_is_said(amplitude: float, width: float, D: int) -> None:
    learner = CollaborativeGP(Choice(6), D=D, amplitude=amplitude, width=width)
    for seed in range(3):
        state, rng = learner.init(np.random.default_rng(0)), np.random.default_rng(seed)
        for _ in range(25):
            y = rng.choice(6, 2, replace=False)
            state = learner.update(state, ComparisonPool(0, y[None]), y, int(rng.integers(-1, 2)))
            believed = learner.posterior(state)
            assert np.isfinite(believed.mean).all()
            assert np.linalg.eigvalsh(believed.cov).min() > -1e-9 * amplitude**2
