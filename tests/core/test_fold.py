"""The fold and the session: the same rounds however they are run, and doors that refuse by name."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from heedful.core.conformance import identical
from heedful.core.fold import Round, coerce, copy_arrays, generators, play, replay, trace, trace_in_chunks
from heedful.core.session import Session
from heedful.learners.coactive.dueling import DuelingBandit
from heedful.learners.coactive.perceptron import ConvexPerceptron, ExponentiatedPerceptron, PreferencePerceptron
from heedful.learners.coactive.posterior import Posterior
from heedful.learners.coactive.second_order import SecondOrderPerceptron
from heedful.spaces.assignment import Assignment
from heedful.spaces.ranking import Ranking
from heedful.worlds.items import item_pool
from heedful.worlds.queries import synthetic_queries
from heedful.worlds.users import StrictAlpha

WORLD, W_STAR = synthetic_queries(30, 6, 4, noise=0.0, user=StrictAlpha(0.5))
LEARNER = PreferencePerceptron(4, Ranking(3))


@pytest.mark.slow
def test_trace_is_the_regret_of_play() -> None:
    """U(y*) - U(y) worked out from what play shows, by sorting: no code of the world."""
    expected = []
    for played, _ in play(LEARNER, WORLD, 50, 4):
        u = played.x @ W_STAR
        discounts = 1 / np.log2(np.arange(2, 7))
        expected.append(np.sort(u)[::-1][:5] @ discounts - u[played.y[:5]] @ discounts)
    np.testing.assert_allclose(trace(LEARNER, WORLD, 50, 4), expected, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("interpreted", [True, False])
@pytest.mark.parametrize("learner", [LEARNER, DuelingBandit(4, Ranking(3))])
def test_pieces_are_the_whole(learner: Any, interpreted: bool) -> None:
    whole = trace(learner, WORLD, 50, 4, interpreted=interpreted)
    pieces = [piece.copy() for piece in trace_in_chunks(learner, WORLD, 50, 4, interpreted=interpreted, chunk=7)]
    assert [p.size for p in pieces] == [7, 14, 21, 28, 35, 42, 49, 50]
    assert identical(pieces[-1], whole)
    assert all(identical(p, whole[: p.size]) for p in pieces)


@pytest.mark.slow
def test_a_pool_that_runs_dry_ends_the_rounds() -> None:
    rng = np.random.default_rng(0)
    pool = item_pool(rng.standard_normal((9, 4)), rng.standard_normal(4), StrictAlpha(1.0))
    learner = PreferencePerceptron(4, Ranking(1))
    rounds = [r for r, _ in play(learner, pool, 100, 0)]
    gone = sum(len({*r.y.tolist(), *r.feedback.tolist()}) for r in rounds)
    assert gone == 9
    for interpreted in (True, False):
        assert trace(learner, pool, 100, 0, interpreted=interpreted).size == len(rounds) < 9
        assert trace(learner, pool, 2, 0, interpreted=interpreted).size == 2
    assert [r.x.shape[0] for r in rounds] == sorted({r.x.shape[0] for r in rounds}, reverse=True)


@pytest.mark.slow
def test_no_rounds() -> None:
    assert trace(LEARNER, WORLD, 0, 0).size == 0
    assert list(play(LEARNER, WORLD, 0, 0)) == []


@pytest.mark.slow
def test_one_is_one_point_nought() -> None:
    """A hyperparameter declared float may be given as an int; it is then the same learner, compiled once."""
    learner = coerce(ConvexPerceptron(4, Ranking(3), radius=2))
    assert type(learner.radius) is float
    assert type(learner.n_features) is int
    assert coerce((1, True)) == (1, True)
    assert identical(trace(ConvexPerceptron(4, Ranking(3), 2), WORLD, 20, 0), trace(learner, WORLD, 20, 0))


def test_the_three_generators_are_apart() -> None:
    """Seeds reproduce; the streams of one seed differ, and so do those of neighbouring seeds."""
    draws = [g.random() for seed in (3, 4) for g in generators(seed)]
    assert len(set(draws)) == 6
    assert draws == [g.random() for seed in (3, 4) for g in generators(seed)]


@pytest.mark.parametrize("seed", [-1, 1.5, "1", None, True])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    with pytest.raises(ValueError, match="seed: expected a whole number, 0 or more, got"):
        trace(LEARNER, WORLD, 5, seed)


@pytest.mark.parametrize("rounds", [-1, 2.5, "3", None, True])
def test_rounds_are_a_whole_number(rounds: Any) -> None:
    with pytest.raises(ValueError, match="rounds: expected a whole number, 0 or more, got"):
        trace(LEARNER, WORLD, rounds, 0)


def test_copies_share_nothing() -> None:
    class Nested(NamedTuple):
        a: Any
        b: Any

    value = Nested(np.arange(3.0), (np.ones(2), Nested(np.zeros(1), "x")))
    twin = copy_arrays(value)
    assert identical(twin, value)
    for array in (twin.a, twin.b[0], twin.b[1].a):
        array += 1
    assert value.a.tolist() == [0, 1, 2]
    assert value.b[0].tolist() == [1, 1]
    assert value.b[1].a.tolist() == [0]


def test_replay_folds_what_it_is_given() -> None:
    """Three rounds by hand: w = the sum of phi(x, ybar) - phi(x, y) with one position that counts."""
    x = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 3.0]])
    learner = PreferencePerceptron(2, Ranking(1))
    log = [Round(x, np.array([0]), np.array([1])), Round(x, np.array([1]), np.array([1]))]
    assert replay(learner, log, 0).w.tolist() == [-1.0, 1.0]
    assert replay(learner, [*log, Round(x, np.array([0]), np.array([2]))], 0).w.tolist() == [0.0, 4.0]
    assert replay(learner, [], 0).w.tolist() == [0.0, 0.0]


# ---------------------------------------------------------------------------- the session

X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])


def test_a_session_ranks_better_after_a_correction() -> None:
    session = Session(PreferencePerceptron(n_features=2, space=Ranking(3)))
    assert session.propose(X).tolist() == [0, 1, 2]  # nothing learned: ties to the lowest index
    session.learn([1, 2, 0])
    # D = (x_1 - x_0) / log2(2) + (x_2 - x_1) / log2(3) + (x_0 - x_2) / log2(4)
    d = (X[1] - X[0]) + (X[2] - X[1]) / np.log2(3) + (X[0] - X[2]) / 2
    np.testing.assert_allclose(session.weights, d, atol=1e-15)
    assert session.propose(X).tolist() == [1, 2, 0]
    assert session.learned == 1


def test_a_session_takes_lists_and_keeps_its_own() -> None:
    """What a caller does with the arrays it gave or got changes nothing."""
    session = Session(PreferencePerceptron(2, Ranking(3)))
    mine = X.tolist()
    array = X.copy()
    assert session.propose(mine).tolist() == [0, 1, 2]
    shown = session.propose(array)
    array[:] = 0.0
    shown[:] = 0
    session.learn((1, 2, 0))
    other = Session(PreferencePerceptron(2, Ranking(3)))
    other.propose(X)
    other.learn([1, 2, 0])
    assert identical(session.state, other.state)
    session.state.w[:] = 9.0
    session.weights[:] = 9.0
    assert identical(session.state, other.state)


def test_a_session_goes_on_after_a_refusal() -> None:
    session = Session(PreferencePerceptron(2, Ranking(3)))
    session.propose(X)
    with pytest.raises(ValueError, match=r"feedback: expected .*none twice, got 1 2 times"):
        session.learn([1, 1, 0])
    session.learn([2, 1, 0])
    assert session.learned == 1


def test_what_the_space_refuses_changes_no_session() -> None:
    """All that is refused is tried at the doors of the spaces (`spaces/`)."""
    session = Session(PreferencePerceptron(2, Ranking(3)))
    before = session.state
    with pytest.raises(ValueError, match=r"x: expected finite numbers, got nan at \[0, 1\]"):
        session.propose([[1.0, np.nan]])
    with pytest.raises(LookupError, match="learn: expected a proposal"):
        session.learn([0])
    session.propose(X)
    with pytest.raises(ValueError, match=r"^feedback: expected at least the first 3 of 3 candidates, got 2"):
        session.learn([0, 1])
    assert identical(before, session.state)


def test_learning_twice_from_one_proposal_is_refused() -> None:
    session = Session(PreferencePerceptron(2, Ranking(3)))
    session.propose(X)
    session.learn([1, 2, 0])
    before = session.state
    with pytest.raises(LookupError, match="learn: the latest proposal was already learned from"):
        session.learn([1, 2, 0])
    assert identical(before, session.state)


def test_great_numbers_are_numbers_up_to_where_sums_overflow() -> None:
    session = Session(PreferencePerceptron(2, Ranking(1)))
    assert session.propose([[1e99, 0.0], [0.0, 1e99]]).tolist() == [0]
    session.learn(1)
    assert session.weights.tolist() == [-1e99, 1e99]
    with pytest.raises(ValueError, match=r"x: expected numbers up to 1e\+100 in size, got 1e\+101 at \[1, 0\]"):
        session.propose([[0.0, 0.0], [1e101, 0.0]])


@pytest.mark.parametrize(
    "learner",
    [
        PreferencePerceptron(2, Ranking(3)),
        ConvexPerceptron(2, Ranking(3), 1e50),
        SecondOrderPerceptron(2, Ranking(3), radius=1e50),
        SecondOrderPerceptron(2, Ranking(3), radius=1e-6),
        SecondOrderPerceptron(2, Ranking(3), 1e50, 1e-6),
        SecondOrderPerceptron(2, Ranking(3), 1e-50, 1e50),
        ExponentiatedPerceptron(2, Ranking(3), 1e-50),
        Posterior(2, Ranking(3), prior=1e50),
        DuelingBandit(2, Ranking(3), 1e50, 1e50),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_what_a_door_lets_in_keeps_the_weights_finite(learner: Any) -> None:
    """The greatest numbers and hyperparameters that are accepted, lesson after lesson."""
    session = Session(learner)
    for x in ([[1e100, -1e100], [-1e100, 1e100], [1e100, 1e100]], [[1e-100, 0.0], [0.0, 1.0], [-1.0, 1e-300]]):
        for _ in range(20):
            shown = session.propose(x)
            session.learn(shown[::-1])
            assert np.isfinite(session.weights).all()


def test_an_interrupted_lesson_is_not_passed_over_in_silence() -> None:
    """An update that stops half-way leaves a state that is neither; nothing goes on from it."""

    class Stopping(NamedTuple):
        n_features: int
        space: Any

        def init(self, rng: Any) -> Any:
            return Round(np.zeros(2), 0, 0)

        def propose(self, state: Any, x: Any, rng: Any) -> Any:
            return self.space.argmax(state.x, x)

        def update(self, state: Any, x: Any, y: Any, feedback: Any) -> Any:
            state.x[0] = 1.0
            raise KeyboardInterrupt

    session = Session(Stopping(2, Ranking(3)))
    session.propose(X)
    with pytest.raises(KeyboardInterrupt):
        session.learn([1, 2, 0])
    for use in (lambda: session.propose(X), lambda: session.learn([1, 2, 0]), lambda: session.state):
        with pytest.raises(RuntimeError, match="session: a lesson was interrupted"):
            use()


def test_a_session_goes_on_from_a_state() -> None:
    first = Session(DuelingBandit(2, Ranking(3)), seed=5)
    for _ in range(4):
        first.learn(first.propose(X)[::-1])
    second = Session(DuelingBandit(2, Ranking(3)), seed=5, state=first.state, learned=first.learned)
    for _ in range(4):
        shown = first.propose(X)
        assert second.propose(X).tolist() == shown.tolist()
        first.learn(shown[::-1])
        second.learn(shown[::-1])
    assert identical(first.state, second.state)
    for other in (PreferencePerceptron(2, Ranking(3)), DuelingBandit(3, Ranking(3))):
        with pytest.raises(
            ValueError,
            match=r"state: expected one of this learner, \('DuelingState', \('float64', \(2,\)\), 'int'\), got",
        ):
            Session(DuelingBandit(2, Ranking(3)), state=Session(other).state)
    whole = first.state._replace(w=np.zeros(2, np.int64))
    with pytest.raises(ValueError, match=r"state: expected one of this learner, .*, got \('DuelingState', \('int64'"):
        Session(DuelingBandit(2, Ranking(3)), state=whole)
    with pytest.raises(ValueError, match="learned: expected a whole number, 0 or more, got -1"):
        Session(DuelingBandit(2, Ranking(3)), learned=-1)


@pytest.mark.parametrize("wrong", [None, PreferencePerceptron, Ranking(3), "perceptron"])
def test_what_is_no_learner_is_refused(wrong: Any) -> None:
    for use in (Session, lambda w: trace(w, WORLD, 1, 0), lambda w: play(w, WORLD, 1, 0)):
        with pytest.raises(ValueError, match="learner: expected one with its hyperparameters"):
            use(wrong)


@pytest.mark.parametrize("space", [None, 5, "ranking", Ranking])
def test_what_is_no_space_is_refused(space: Any) -> None:
    with pytest.raises(ValueError, match="space: expected one of what can be shown, such as"):
        Session(PreferencePerceptron(2, space))


@pytest.mark.slow
@pytest.mark.parametrize("interpreted", [True, False])
@pytest.mark.parametrize("n", [2, 3, 5, 1000])
def test_another_number_of_features_than_the_world_has_is_refused(n: int, interpreted: bool) -> None:
    with pytest.raises(ValueError, match="n_features: expected"):
        trace(PreferencePerceptron(n, Ranking(3)), WORLD, 5, 0, interpreted=interpreted)


@pytest.mark.slow
def test_numbers_of_numpy_are_numbers() -> None:
    """A numpy scalar as a hyperparameter is the number it stands for, in both executors."""
    learner = ConvexPerceptron(np.int8(4), Ranking(np.int64(3)), np.float32(0.5))
    plain = ConvexPerceptron(4, Ranking(3), 0.5)
    assert identical(coerce(learner), plain)
    assert identical(trace(learner, WORLD, 40, 0), trace(plain, WORLD, 40, 0, interpreted=True))


def test_a_session_with_an_item_and_with_an_assignment() -> None:
    items = Session(PreferencePerceptron(2, Ranking(1)))
    assert items.propose(X).tolist() == [0]
    items.learn(2)
    assert items.propose(X).tolist() == [1]  # w = (0, 1): rows 1 and 2 tie
    slots = Session(PreferencePerceptron(1, Assignment(2)))
    x = np.array([[[3.0], [1.0]], [[1.0], [0.0]], [[0.0], [5.0]]])
    first = slots.propose(x).tolist()
    slots.learn([0, 2])
    assert sorted({*first, 0, 1, 2}) == [0, 1, 2]
    if first != [0, 2]:
        assert slots.weights[0] == 8.0 - sum(x[p, s, 0] for s, p in enumerate(first))
    assert slots.propose(x).tolist() == [0, 2]


def test_a_learner_that_makes_no_sense_is_refused_when_the_session_starts() -> None:
    with pytest.raises(ValueError, match="batch: expected a whole number, 1 or more, got 0"):
        Session(PreferencePerceptron(2, Ranking(3), batch=0))
    with pytest.raises(ValueError, match="k: expected a whole number, 1 to 1024, got 2000"):
        Session(PreferencePerceptron(2, Ranking(2000)))
