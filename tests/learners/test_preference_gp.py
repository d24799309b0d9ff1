"""The folds of preference Gaussian processes: equal to inference from nothing, people apart or together."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from heedful.checks import same
from heedful.fold import Round, copied, play, replay
from heedful.learners.preference_gp import HierarchicalGP, PreferenceGP
from heedful.preferences.answers import answers
from heedful.preferences.ep import infer
from heedful.preferences.hierarchical import fit
from heedful.preferences.kernels import kernel_for
from heedful.preferences.posterior import Posterior
from heedful.preferences.questions import bald
from heedful.spaces_pairs import EQUAL, SECOND, UNSURE, Choice, Pool
from heedful.worlds.choices import gaussian_choosers

Array = npt.NDArray[np.float64]
FEATURES = np.random.default_rng(0).normal(size=(7, 2))
SPACE = Choice(7, True, FEATURES)
WORLD = gaussian_choosers(4, 7, amplitude=2.0, tie=0.3, unsure=0.1, seed=1)


def log_of(learner: Any, rounds: int = 60) -> list[Round]:
    return [played for played, _ in play(learner, WORLD, rounds, 3)]


def table(log: list[Round], user: int) -> Any:
    """The answers of one person, by hand."""
    rows = [(r.y[::-1] if r.feedback == SECOND else r.y, r.feedback == EQUAL) for r in log if r.x.user == user]
    told = [r.feedback for r in log if r.x.user == user]
    rows = [row for row, feedback in zip(rows, told) if feedback != UNSURE]
    return answers([pair for pair, _ in rows], None, [tie for _, tie in rows])


def close(a: Posterior, b: Posterior, atol: float) -> None:
    np.testing.assert_allclose(a.mean, b.mean, atol=atol)
    np.testing.assert_allclose(a.cov, b.cov, atol=atol)


@pytest.mark.parametrize("features", [True, False])
def test_the_fold_is_inference_from_nothing(features: bool) -> None:
    """Answer by answer from where the sites were, and all answers at once: the same posterior."""
    space = SPACE if features else Choice(7)
    learner = PreferenceGP(space, width=0.3, lapse=0.02, amplitude=1.5)
    log = log_of(learner)
    state = replay(learner, log, 3)
    K = kernel_for(FEATURES, amplitude=1.5).over(FEATURES) if features else 2.25 * np.eye(7)
    for user in range(5):
        wanted = infer(K, np.zeros(7), table(log, user), width=0.3, lapse=0.02).posterior
        close(learner.posterior(state, user), wanted, 1e-4)
    assert (state.t, state.said.n) == (60, sum(r.feedback != UNSURE for r in log))


def test_every_few_answers_is_not_far_off() -> None:
    often, seldom = PreferenceGP(SPACE), PreferenceGP(SPACE, every=1000)
    log = log_of(often)
    a, b = replay(often, log, 3), replay(seldom, log, 3)
    for user in range(4):
        close(often.posterior(a, user), seldom.posterior(b, user), 0.05)
    assert not same(a, b)


def test_who_cannot_judge_says_nothing() -> None:
    learner = PreferenceGP(SPACE)
    state = replay(learner, log_of(learner), 3)
    before = copied(state)
    state = learner.update(state, Pool(1, np.array([[0, 1]])), np.array([0, 1]), UNSURE)
    assert same(state, before._replace(t=61))


def test_equally_good_pulls_together() -> None:
    learner = PreferenceGP(Choice(3), amplitude=3.0)
    state = learner.init(np.random.default_rng(0))
    x, y = Pool(0, np.array([[0, 1]])), np.array([0, 1])
    for _ in range(10):
        state = learner.update(state, x, y, EQUAL)
    mean, var = learner.posterior(state).gap(0, 1)
    assert (mean, var < 1.0) == (pytest.approx(0.0, abs=1e-9), True)


def test_the_pair_with_most_to_learn_is_asked() -> None:
    learner = PreferenceGP(SPACE)
    state = replay(learner, log_of(learner), 3)
    pairs = np.stack(np.triu_indices(7, 1), axis=1)[::-1].copy()
    posterior = learner.posterior(state, 2)
    shown = learner.propose(state, Pool(2, pairs), np.random.default_rng(0))
    gains = bald(*posterior.gap(pairs[:, 0], pairs[:, 1]))
    np.testing.assert_array_equal(shown, pairs[gains.argmax()])
    assert pairs.tolist().index(shown.tolist()) > 0
    alone = learner.propose(state, Pool(2, np.array([[6, 3]])), np.random.default_rng(0))
    assert alone.tolist() == [6, 3]


def test_nothing_is_learned_of_one_from_another() -> None:
    learner = PreferenceGP(SPACE)
    log = log_of(learner)
    state = replay(learner, log, 3)
    alone = replay(learner, [r for r in log if r.x.user == 1], 3)
    close(learner.posterior(state, 1), learner.posterior(alone, 1), 1e-12)
    close(learner.posterior(state, 9), Posterior(np.zeros(7), kernel_for(FEATURES).over(FEATURES)), 1e-12)


def test_without_a_person_is_as_if_they_had_never_come() -> None:
    learner = PreferenceGP(SPACE)
    log = log_of(learner)
    left = learner.without_user(replay(learner, log, 3), 1)
    never = replay(learner, [r for r in log if r.x.user != 1], 3)
    for a, b in zip(left.said[:5], never.said[:5]):
        np.testing.assert_array_equal(a[: left.said.n], b[: never.said.n])
    assert left.said.n == never.said.n


def test_together_the_fold_is_the_fit() -> None:
    """After a learning of the population to the end, the fold stands where a fit from nothing does."""
    learner = HierarchicalGP(SPACE, width=0.3, every=10)
    log = log_of(learner, 80)
    state = learner.learned_anew(replay(learner, log, 3), 500)
    said = state.said
    rows = answers(said.pairs[: said.n], None, said.equal[: said.n], said.user[: said.n])
    K = kernel_for(FEATURES).over(FEATURES)
    wanted = fit(K, 4, rows, kappa0=1.0, width=0.3, steps=500)
    np.testing.assert_allclose(state.mean, wanted.population.mean, atol=0.1)
    np.testing.assert_allclose(np.sqrt(state.cov.diagonal()), np.sqrt(wanted.population.cov.diagonal()), atol=0.1)
    for user in range(4):
        close(learner.posterior(state, user), infer(state.cov, state.mean, table(log, user), width=0.3).posterior, 1e-3)
    close(learner.posterior(state, 99), Posterior(state.mean, state.cov), 1e-12)  # somebody new


def test_the_population_is_learned_when_there_is_a_tenth_more() -> None:
    learner = HierarchicalGP(Choice(7), every=10)
    learned = [state.learned for _, state in play(learner, WORLD, 200, 4)]
    told = [state.said.n for _, state in play(learner, WORLD, 200, 4)]
    assert sorted(set(learned))[:11] == [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]
    assert all(n - at <= max(10, at // 10) for n, at in zip(told, learned))
    assert sorted(set(learned))[11:14] == [110, 121, 133]


def test_between_learnings_of_the_population_it_is_the_prior() -> None:
    learner = HierarchicalGP(SPACE, width=0.3, every=40)
    log = log_of(learner, 75)
    state = replay(learner, log, 3)
    assert state.learned < state.said.n
    assert np.abs(state.mean).max() > 0.1
    last = log[-1].x.user
    wanted = infer(state.cov, state.mean, table(log, last), width=0.3).posterior
    close(learner.posterior(state, last), wanted, 1e-4)


def test_where_equally_good_is_not_on_offer_the_width_is_0() -> None:
    world = gaussian_choosers(2, 7, seed=2)
    states = []
    for width in (0.0, 0.25):
        learner = PreferenceGP(Choice(7, equal=False), width=width)
        states.append([copied(state) for _, state in play(learner, world, 20, 0)][-1])
    assert same(*states)


def test_people_who_are_alike_teach_one_another() -> None:
    """20 people with one taste and 8 answers each: what the others said tells most of what one would choose."""
    world = gaussian_choosers(20, 8, amplitude=3.0, shared=0.95, seed=5)
    space = Choice(8, equal=False)
    right = {}
    for learner in (PreferenceGP(space), HierarchicalGP(space)):
        state: Any = None
        for _, live in play(learner, world, 160, 6):
            state = live
        a, b = np.triu_indices(8, 1)
        truth = world.utilities[:, a] > world.utilities[:, b]
        got = np.array([learner.posterior(state, u).beats(a, b) > 0.5 for u in range(20)])
        right[type(learner).__name__] = float((got == truth).mean())
    assert right["HierarchicalGP"] > 0.85
    assert right["HierarchicalGP"] > right["PreferenceGP"] + 0.03


def test_of_a_person_who_is_gone_nothing_is_left_in_the_population() -> None:
    learner = HierarchicalGP(Choice(7), every=5)
    log = log_of(learner, 80)
    left = learner.without_user(replay(learner, log, 3), 1)
    never = learner.without_user(replay(learner, [r for r in log if r.x.user != 1], 3), 1)
    assert same(left._replace(t=0), never._replace(t=0))


def test_the_last_person_gone_nothing_is_left() -> None:
    learner = HierarchicalGP(Choice(7), every=5)
    state = replay(learner, log_of(learner, 30), 3)
    for user in range(4):
        state = learner.without_user(state, user)
    first = learner.init(np.random.default_rng(0))
    assert same((state.mean, state.cov, state.said.n), (first.mean, first.cov, 0))


@pytest.mark.parametrize("cls", [PreferenceGP, HierarchicalGP])
@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"space": None}, "space: wanted a choice among items"),
        ({"amplitude": 0.0}, "amplitude: wanted"),
        ({"width": -1.0}, "width: wanted a number from 0"),
        ({"width": 0.0}, "width: wanted more than 0 where 'equally good' is on offer"),
        ({"lapse": 1.0}, "lapse: wanted a number from 0 to 0.99"),
        ({"lengthscale": np.nan}, "lengthscale: wanted"),
        ({"rule": "best"}, "rule: wanted bald"),
        ({"every": 0}, "every: wanted"),
    ],
)
def test_hyperparameters_that_make_no_sense(cls: Any, given: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=f"^{named}"):
        cls(**{"space": Choice(3), **given}).init(np.random.default_rng(0))
    for name in ("nu0", "kappa0"):
        with pytest.raises(ValueError, match=f"^{name}: wanted a number, 0 or more"):
            HierarchicalGP(Choice(3), **{name: -0.5}).init(np.random.default_rng(0))
