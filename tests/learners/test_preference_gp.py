"""The folds of preference Gaussian processes: equal to inference from nothing, people apart or together."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from heedful.core.conformance import identical
from heedful.core.fold import Round, copy_arrays, play, replay
from heedful.inference.gp.acquisition import bald, next_question
from heedful.inference.gp.hierarchical import fit
from heedful.inference.gp.kernels import kernel_for
from heedful.inference.gp.posterior import Posterior
from heedful.inference.gp.response_noise import infer_with_noise
from heedful.inference.gp.subset_acquisition import subset_scores
from heedful.inference.pairwise import concatenate, order_rows, pair_rows
from heedful.learners.preference.collaborative_gp import CollaborativeGP
from heedful.learners.preference.preference_gp import HierarchicalGP, PreferenceGP
from heedful.spaces.comparison import EQUAL, SECOND, UNSURE, Choice, ComparisonPool
from heedful.worlds.choices import gaussian_choosers
from one_person import infer
from orderers import Orderers

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
    return pair_rows([pair for pair, _ in rows], None, [tie for _, tie in rows])


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
    assert not identical(a, b)


@pytest.mark.parametrize("cls", [PreferenceGP, HierarchicalGP, CollaborativeGP])
def test_who_cannot_judge_says_nothing(cls: Any) -> None:
    learner = cls(SPACE, every=30)
    state = replay(learner, log_of(learner, 40), 3)
    before = copy_arrays(state)
    state = learner.update(state, ComparisonPool(1, np.array([[0, 1]])), np.array([0, 1]), UNSURE)
    assert identical(state, before._replace(t=41))


def test_equally_good_pulls_together() -> None:
    learner = PreferenceGP(Choice(3), amplitude=3.0)
    state = learner.init(np.random.default_rng(0))
    x, y = ComparisonPool(0, np.array([[0, 1]])), np.array([0, 1])
    for _ in range(10):
        state = learner.update(state, x, y, EQUAL)
    mean, var = learner.posterior(state).gap(0, 1)
    assert (mean, var < 1.0) == (pytest.approx(0.0, abs=1e-9), True)


@pytest.mark.parametrize("cls", [PreferenceGP, CollaborativeGP])
def test_the_pair_with_most_to_learn_is_asked(cls: Any) -> None:
    learner = cls(SPACE)
    state = replay(learner, log_of(learner), 3)
    pairs = np.stack(np.triu_indices(7, 1), axis=1)[::-1].copy()
    posterior = learner.posterior(state, 2)
    shown = learner.propose(state, ComparisonPool(2, pairs), np.random.default_rng(0))
    gains = bald(*posterior.gap(pairs[:, 0], pairs[:, 1]))
    np.testing.assert_array_equal(shown, pairs[gains.argmax()])
    assert pairs.tolist().index(shown.tolist()) > 0
    part = learner.posterior(state, 2, some := np.array([5, 0, 3]))
    np.testing.assert_allclose(part.mean, posterior.mean[some])
    np.testing.assert_allclose(part.cov, posterior.cov[np.ix_(some, some)])
    asked = learner.question(state, 2, some)
    assert set(asked.tolist()) <= {0, 3, 5}
    assert set(learner.question(state, 2, some, skip=[asked]).tolist()) != set(asked.tolist())
    alone = learner.propose(state, ComparisonPool(2, np.array([[6, 3]])), np.random.default_rng(0))
    assert alone.tolist() == [6, 3]


def test_nothing_is_learned_of_one_from_another() -> None:
    learner = PreferenceGP(SPACE)
    log = log_of(learner)
    state = replay(learner, log, 3)
    alone = replay(learner, [r for r in log if r.x.user == 1], 3)
    close(learner.posterior(state, 1), learner.posterior(alone, 1), 1e-12)
    close(learner.posterior(state, 9), Posterior(np.zeros(7), kernel_for(FEATURES).over(FEATURES)), 1e-12)


def test_together_the_fold_is_the_fit() -> None:
    """After a learning of the population to the end, the fold stands where a fit from nothing does."""
    learner = HierarchicalGP(SPACE, width=0.3, every=10)
    log = log_of(learner, 80)
    state = learner.relearn(replay(learner, log, 3), 500)
    answers = state.said
    rows = pair_rows(answers.pairs[: answers.n], None, answers.equal[: answers.n], answers.user[: answers.n])
    K = kernel_for(FEATURES).over(FEATURES)
    wanted = fit(K, 4, rows, kappa0=1.0, width=0.3, steps=500)
    np.testing.assert_allclose(state.mean, wanted.population.mean, atol=0.1)
    np.testing.assert_allclose(np.sqrt(state.cov.diagonal()), np.sqrt(wanted.population.cov.diagonal()), atol=0.1)
    for user in range(4):
        close(learner.posterior(state, user), infer(state.cov, state.mean, table(log, user), width=0.3).posterior, 1e-3)
    close(learner.posterior(state, 99), Posterior(state.mean, state.cov), 1e-12)  # somebody new


@pytest.mark.slow
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
        states.append([copy_arrays(state) for _, state in play(learner, world, 20, 0)][-1])
    assert identical(*states)


@pytest.mark.slow
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


# ---------------------------------------------------------------------------- more than two, and new items

THREE = gaussian_choosers(3, 7, amplitude=2.0, tie=0.2, unsure=0.1, shown=3, seed=3)
FOUR = Orderers(gaussian_choosers(3, 7, amplitude=2.0, shown=4, seed=4))


def rows_of(log: list[Round], user: int) -> Any:
    """The answers of one person about three or four, by hand."""
    parts = []
    for r in log:
        if r.x.user != user or (isinstance(r.feedback, int) and r.feedback == UNSURE):
            continue
        shown = r.y.tolist()
        if isinstance(r.feedback, int):
            tie = r.feedback == EQUAL
            parts.append(
                order_rows([shown], equal=True)
                if tie
                else order_rows([shown[r.feedback], np.delete(shown, r.feedback).tolist()])
            )
        else:
            parts.append(order_rows([shown[place] for place in r.feedback]))
    return concatenate(parts)


@pytest.mark.slow
@pytest.mark.parametrize("world", [THREE, FOUR])
@pytest.mark.parametrize("rule", ["bald", "eubo", "random"])
def test_the_best_of_several_and_orders_fold_as_they_are_inferred(world: Any, rule: str) -> None:
    learner = PreferenceGP(Choice(7), rule=rule, amplitude=2.0)
    log = [played for played, _ in play(learner, world, 25, 3)]
    state = replay(learner, log, 3)
    for user in range(3):
        wanted = infer(4.0 * np.eye(7), np.zeros(7), rows_of(log, user), width=0.25).posterior
        close(learner.posterior(state, user), wanted, 1e-4)
    assert len({tuple(r.y) for r in log}) > 5


@pytest.mark.slow
def test_together_rankings_fold_as_they_are_fitted() -> None:
    learner = HierarchicalGP(Choice(7, equal=False), every=10)
    log = [played for played, _ in play(learner, FOUR, 60, 3)]
    state = learner.relearn(replay(learner, log, 3), 500)
    parts = [rows_of(log, user) for user in range(3)]
    rows = concatenate([part._replace(user=np.full(part.size, u)) for u, part in enumerate(parts)])
    wanted = fit(np.eye(7), 3, rows, kappa0=1.0, steps=500)
    np.testing.assert_allclose(state.mean, wanted.population.mean, atol=0.1)
    for user in range(3):
        close(learner.posterior(state, user), infer(state.cov, state.mean, parts[user]).posterior, 1e-3)


def test_an_order_of_two_is_a_choice_and_a_part_of_an_order_is_one() -> None:
    learner = PreferenceGP(Choice(5))
    x, y = ComparisonPool(0, np.array([[3, 1]])), np.array([3, 1])
    first = learner.init(np.random.default_rng(0))
    chosen = learner.update(copy_arrays(first), x, y, SECOND)
    for order in ([1], [1, 0]):
        assert identical(learner.update(copy_arrays(first), x, y, np.array(order)), chosen)
    x, y = ComparisonPool(0, np.array([[3, 1, 4, 0]])), np.array([3, 1, 4, 0])
    part = learner.posterior(learner.update(copy_arrays(first), x, y, np.array([2, 0])))
    wanted = infer(np.eye(5), np.zeros(5), order_rows([4, 3, [1, 0]])).posterior
    close(part, wanted, 1e-4)


def test_the_set_with_most_to_learn_is_asked() -> None:
    learner = PreferenceGP(SPACE)
    state = replay(learner, log_of(learner), 3)
    sets = np.array(list(combinations(range(7), 3)))[::-1].copy()
    shown = learner.propose(state, ComparisonPool(2, sets), np.random.default_rng(0))
    gains = subset_scores(learner.posterior(state, 2), "bald", sets)
    assert gains[(sets == shown).all(axis=1)][0] > gains.max() - 0.02
    assert shown.tolist() in sets.tolist()
    for items in (np.arange(7), np.array([6, 1, 3, 2])):
        pair = learner.question(state, 2, items)
        posterior = learner.posterior(state, 2, np.sort(items))
        assert pair.tolist() == np.sort(items)[list(next_question(posterior)[:2])].tolist()
        other = learner.question(state, 2, items, skip=[pair, (0, 5)])
        assert sorted(other.tolist()) != sorted(pair.tolist())
        assert set(learner.question(state, 2, items, 3).tolist()) <= set(items.tolist())


@pytest.mark.parametrize("cls", [PreferenceGP, HierarchicalGP])
def test_items_that_come_later_are_as_if_they_had_always_been_there(cls: Any) -> None:
    """One by one, in one piece, or from the beginning: the same but for rounding, where nothing was said before."""
    X = np.random.default_rng(3).normal(size=(7, 2))
    learner = cls(Choice(0, True, np.empty((0, 2))))
    one = whole = learner.init(np.random.default_rng(0))
    for row in X:
        one = learner.with_items(one, row[None])
    whole = learner.with_items(whole, X)
    always = cls(Choice(7, True, X)).init(np.random.default_rng(0))
    assert identical(one, whole)
    assert identical(whole, always)


def test_items_that_come_later_change_nothing_of_the_others() -> None:
    """For items without features, and for an item whose features lie among those of the earlier ones."""
    bare = PreferenceGP(Choice(7), width=0.3)
    state = replay(bare, log_of(bare), 3)
    before = bare.posterior(state, 1)
    more = bare.with_items(copy_arrays(state), np.empty((2, 0)))
    after = bare.posterior(more, 1)
    np.testing.assert_allclose(after.mean[:7], before.mean, atol=1e-12)
    np.testing.assert_allclose(after.cov[:7, :7], before.cov, atol=1e-12)
    np.testing.assert_allclose(after.cov[7:], np.eye(9)[7:], atol=1e-12)
    shown = np.array([8, 2])
    more = bare.update(more, ComparisonPool(1, shown[None]), shown, 0)
    wanted = infer(np.eye(9), np.zeros(9), concatenate([table(log_of(bare), 1), pair_rows([(8, 2)])]), width=0.3)
    close(bare.posterior(more, 1), wanted.posterior, 1e-4)


def test_a_new_item_like_a_known_one_is_liked_as_much() -> None:
    learner = HierarchicalGP(SPACE, width=0.3, every=10)
    state = replay(learner, log_of(learner, 80), 3)
    more = learner.with_items(copy_arrays(state), FEATURES[[4]])
    for user in (0, 9):
        posterior = learner.posterior(more, user)
        assert posterior.mean[7] == pytest.approx(posterior.mean[4], abs=0.02)
        assert posterior.gap(7, 4)[1] < 0.01
    assert len(more.mean) == 8
    K = learner.relearn(more).cov
    assert K.shape == (8, 8)


@pytest.mark.parametrize("cls", [PreferenceGP, HierarchicalGP])
def test_items_that_make_no_sense(cls: Any) -> None:
    learner = cls(SPACE)
    state = learner.init(np.random.default_rng(0))
    for wrong in (np.zeros((1, 3)), np.zeros(2), "items", np.full((1, 2), np.nan), None):
        with pytest.raises(ValueError, match=r"^features: expected"):
            learner.with_items(state, wrong)
    with pytest.raises(ValueError, match="features: expected at most 10000 items"):
        cls(Choice(3)).with_items(cls(Choice(3)).init(np.random.default_rng(0)), np.empty((9_998, 0)))


@pytest.mark.slow
@pytest.mark.parametrize("cls", [PreferenceGP, HierarchicalGP])
def test_without_an_item_its_answers_are_gone(cls: Any) -> None:
    learner = cls(Choice(7), width=0.3, every=1)
    log = log_of(learner, 40)
    left = learner.without_item(replay(learner, log, 3), 2)
    never = replay(learner, [r for r in log if 2 not in r.y], 3)
    if cls is HierarchicalGP:
        left, never = learner.relearn(left, 300), learner.relearn(never, 300)
    for user in range(4):
        close(learner.posterior(left, user), learner.posterior(never, user), 1e-3 if cls is PreferenceGP else 0.1)
    assert 2 not in left.said.pairs[: left.said.n]


def test_without_an_item_what_its_answers_taught_of_the_person_is_gone() -> None:
    """Of somebody who tossed a die about one item, and so seemed to err often: as inferred from the rest alone."""
    rng = np.random.default_rng(1)
    f = np.linspace(2.0, -2.0, 6)
    learner = PreferenceGP(Choice(6), amplitude=2.0, every=60, learn_noise=True)
    state, pairs = learner.init(rng), []
    for _ in range(120):
        pair = rng.choice(6, 2, replace=False)
        gap = f[pair[0]] - f[pair[1]] + rng.normal()
        answer = EQUAL if abs(gap) < 0.5 else int(gap < 0.0)
        if 5 in pair:
            answer = int(rng.integers(-1, 2))
        else:
            pairs.append((pair[::-1] if answer == SECOND else pair, answer == EQUAL))
        state = learner.update(state, ComparisonPool(0, pair[None]), pair, answer)
    alone = pair_rows([pair for pair, _ in pairs], None, [tie for _, tie in pairs])
    never, noise = infer_with_noise(4.0 * np.eye(6), np.zeros(6), alone, ties=True)
    assert learner.noise(state).lapse > noise.lapse[0] + 0.03
    left = learner.without_item(state, 5)
    assert learner.noise(left)[:2] == pytest.approx([noise.width[0], noise.lapse[0]], abs=2e-3)
    close(learner.posterior(left), never.posterior, 0.03)


@pytest.mark.slow
def test_how_people_answer_is_learned() -> None:
    """Who often errs, and who never does, and who chooses at random; a width of .5 begun at .25."""
    world = gaussian_choosers(3, 7, amplitude=2.0, tie=0.5, lapse=0.3, seed=6)
    world = world._replace(lapses=np.array([0.0, 0.3, 1.0]))
    learner = PreferenceGP(Choice(7), amplitude=2.0, rule="random", learn_noise=True)
    state: Any = None
    for _, live in play(learner, world, 360, 0):
        state = live
    noise = [learner.noise(state, user) for user in range(3)]
    assert noise[0].lapse < 0.05
    assert noise[1].lapse > 0.1
    assert [person.random > 0.5 for person in noise] == [False, False, True]
    assert 0.35 < noise[0].width < 0.65
    new = learner.noise(state, 9)
    assert [new.width, new.random] == pytest.approx([0.25, 0.05])
    rows = state.said.rows(state.said.of(1))
    rows = rows._replace(user=np.zeros(rows.size, np.int64))
    got, alone = infer_with_noise(4.0 * np.eye(7), np.zeros(7), rows, ties=True)
    assert noise[1].lapse == pytest.approx(alone.lapse[0], abs=0.02)
    close(learner.posterior(state, 1), got.posterior, 0.1)


@pytest.mark.slow
def test_together_one_width_is_learned() -> None:
    world = gaussian_choosers(6, 7, amplitude=2.0, tie=0.5, seed=6)
    learner = HierarchicalGP(Choice(7), rule="random", every=40, learn_noise=True)
    state: Any = None
    for _, live in play(learner, world, 300, 0):
        state = live
    people = [learner.noise(state, user) for user in range(6)]
    assert len({person.width for person in people}) == 1
    assert 0.35 < people[0].width < 0.65
    assert max(person.random for person in people) < 0.01
    assert learner.noise(state, 9).width == people[0].width


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(("amplitude", "width"), [(1e3, 1e-3), (1e3, 1e3)])
def test_at_its_limits_what_is_believed_stays_a_gaussian(amplitude: float, width: float, k: int) -> None:
    """Of answers at random, which contradict one another."""
    rng = np.random.default_rng(2)
    learner = PreferenceGP(Choice(6), amplitude=amplitude, width=width)
    state = learner.init(rng)
    for _ in range(12):
        shown = rng.choice(6, k, replace=False)
        state = learner.update(state, ComparisonPool(0, shown[None]), shown, int(rng.integers(-1, k)))
        mean, cov = learner.posterior(state)
        assert np.isfinite(mean).all()
        assert (cov.diagonal() > 0.0).all()
