"""Ranking SVM: its schedule, its cross-validation and its weights against their transcription; and by hand."""

import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from streams import context, reaction

import naive
from heedful.core.fold import must_interpret, trace
from heedful.learners.coactive import ranking_svm
from heedful.learners.coactive.ranking_svm import GRID, RankingSVM, choose_C, fit_svm
from heedful.spaces.assignment import Assignment
from heedful.spaces.ranking import Ranking
from heedful.worlds.queries import synthetic_queries
from heedful.worlds.users import StrictAlpha

N = 3


def fed(learner: RankingSVM, pairs: Any) -> Any:
    """The state after these difference vectors."""
    state = learner.init(np.random.default_rng(0))
    for D in pairs:
        state = learner.step(state, D)
    return state


def test_the_schedule_is_the_rule_of_the_paper_at_every_n_up_to_200(monkeypatch: pytest.MonkeyPatch) -> None:
    """ "Whenever 10% more examples were added"; C = 100 up to 50 pairs, cross-validated beyond."""
    trained: list[tuple[int, float]] = []
    monkeypatch.setattr(ranking_svm, "choose_C", lambda pairs, squared: 7.0)

    def solved(pairs: Any, C: float, squared: bool) -> Any:
        trained.append((len(pairs), C))
        return np.ones(N)

    monkeypatch.setattr(ranking_svm, "fit_svm", solved)
    learner = RankingSVM(N, Ranking(2))
    state, last, wanted = learner.init(np.random.default_rng(0)), 0, []
    for n in range(1, 201):
        state = learner.step(state, np.ones(N))
        if naive.due(n, last):
            last = n
            wanted.append((n, 100.0 if n <= 50 else 7.0))
        assert (state.n, state.trained, state.t) == (n, last, n)
        assert trained == wanted
    ns = [n for n, _ in trained]
    assert ns[:22] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 21, 24, 27, 30, 33, 37, 41]
    assert ns[22:] == [46, 51, 57, 63, 70, 77, 85, 94, 104, 115, 127, 140, 154, 170, 187]


@pytest.mark.slow
@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("space", [Ranking(5), Ranking(1), Assignment(2)], ids=repr)
def test_pseudo_code(space: Any, squared: bool) -> None:
    """Round for round: the same pairs, trained in the same rounds, to the same least objective.

    The weights are those of a solver, which stops near the optimum: ours may not cost more than a hundredth above it.
    """
    plain = naive.Assignments(2) if isinstance(space, Assignment) else naive.Rankings(space.k)
    learner, oracle = RankingSVM(N, space, squared=squared), naive.RankingSVM(N, plain, squared, [0.1, 1.0])
    rng = np.random.default_rng(4)
    state = learner.init(rng)
    for t in range(1, 25):
        x = context(rng, space, N)
        y = learner.propose(state, x, rng)
        if oracle.trained:
            assert y.tolist() == space.argmax(state.w, x).tolist()
        ybar = reaction(rng, space, x, y)
        before = state.w.copy()
        state = learner.update(state, x, y, ybar)
        trained = oracle.trained
        oracle.update(x, y.tolist(), ybar.tolist())
        assert (state.t, state.n, state.trained, state.C) == (t, len(oracle.pairs), oracle.trained, 100.0)
        assert state.pairs[: state.n] == pytest.approx(np.reshape(oracle.pairs, (-1, N)), abs=1e-12)
        if oracle.trained == trained:
            assert state.w.tobytes() == before.tobytes()
        else:
            least = naive.svm_objective(oracle.w, oracle.pairs, 100.0, squared)
            assert naive.svm_objective(state.w, oracle.pairs, 100.0, squared) <= 1.01 * least, t
    assert oracle.trained >= 8


def noisy_pairs(n: int, noise: float, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    pairs = rng.standard_normal((n, N))
    right = pairs @ [1.0, -0.5, 0.25] + noise * rng.standard_normal(n) > 0
    return np.where(right[:, None], pairs, -pairs)


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "seed"), [(0.0, 0), (0.3, 1), (1.0, 2), (3.0, 3)])
def test_cross_validation(noise: float, seed: int) -> None:
    """The C that orders most held-out pairs right, over five folds; the smallest of those that tie."""
    pairs = noisy_pairs(60, noise, seed)
    small = tuple(C for C in GRID if C <= 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking_svm, "GRID", small)
        for squared in (False, True):
            assert choose_C(pairs, squared) == naive.cross_validated(list(pairs), small, squared)


def test_beyond_fifty_pairs_the_c_is_the_chosen_one() -> None:
    pairs = noisy_pairs(57, 1.0, 5)
    learner = RankingSVM(N, Ranking(2), squared=True)
    state = fed(learner, pairs)
    assert state.trained == 57
    assert state.C == choose_C(pairs, True) in GRID
    assert state.w.tobytes() == fit_svm(pairs, state.C, True).tobytes()
    assert fed(learner, pairs[:50]).C == 100.0


@pytest.mark.parametrize(("C", "along"), [(100.0, 0.5), (0.1, 0.2)])
def test_one_pair_by_hand(C: float, along: float) -> None:
    """D = (2, 0, 0): the least w with w . D = 1 is (1/2, 0, 0), unless C stops it at w = C D; squared, at
    w_1 = 4C / (1 + 8C), where w_1 = 2 C (1 - 2 w_1) 2."""
    D = np.array([[2.0, 0.0, 0.0]])
    assert fit_svm(D, C, False) == pytest.approx([along, 0.0, 0.0], abs=1e-3)
    assert fit_svm(D, C, True) == pytest.approx([4 * C / (1 + 8 * C), 0.0, 0.0], abs=1e-3)


def test_what_corrects_nothing_is_no_pair() -> None:
    learner = RankingSVM(2, Ranking(1))
    state = learner.init(np.random.default_rng(0))
    x = np.eye(2)
    state = learner.update(state, x, np.array([1]), np.array([1]))
    assert (state.n, state.trained, state.t) == (0, 0, 1)
    assert not state.w.any()
    state = learner.update(state, x, np.array([1]), np.array([0]))
    assert (state.n, state.trained, state.t) == (1, 1, 2)
    assert state.w == pytest.approx([0.5, -0.5], abs=1e-3)  # the least w with w . (1, -1) = 1


def test_before_the_first_pair_anything_is_shown() -> None:
    """ "Starting with a random y": of two items, either; after it, the argmax."""
    learner, rng = RankingSVM(2, Ranking(1)), np.random.default_rng(0)
    state = learner.init(rng)
    shown = [int(learner.propose(state, np.eye(2), rng)[0]) for _ in range(400)]
    assert 160 < sum(shown) < 240
    state = learner.step(state, np.array([-1.0, 1.0]))
    assert {int(learner.propose(state, np.eye(2), rng)[0]) for _ in range(20)} == {1}


def test_of_more_pairs_than_the_capacity_the_latest_are_kept() -> None:
    state = fed(RankingSVM(N, Ranking(2), capacity=4), np.arange(1.0, 7.0)[:, None] * np.ones(N))
    assert sorted(state.pairs[:, 0].tolist()) == [3.0, 4.0, 5.0, 6.0]
    assert (state.n, state.trained) == (6, 6)


def test_it_learns_what_a_strict_user_wants() -> None:
    world, _ = synthetic_queries(100, 10, 5, noise=0.0, user=StrictAlpha(0.5), seed=1)
    regret = trace(RankingSVM(5, Ranking(5), squared=True), world, 100, 0)
    assert regret[50:].mean() < 0.1 * trace(RankingSVM(5, Ranking(5)), world, 1, 0).mean()


def test_it_says_that_it_does_not_compile_and_warns_of_nothing() -> None:
    assert must_interpret(RankingSVM(2, Ranking(2)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit_svm(noisy_pairs(80, 3.0, 6), 1000.0, False)


@pytest.mark.slow
def test_without_scikit_learn_it_says_how_to_get_it() -> None:
    program = (
        "import sys; sys.modules['sklearn'] = None\n"
        "from heedful import RankingSVM, Ranking\n"
        "try: RankingSVM(2, Ranking(2)).init(None)\n"
        "except ModuleNotFoundError as error: print(error)"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert out == "RankingSVM needs scikit-learn, which is not installed: pip install '.[sklearn]'\n"


def test_what_a_thread_trains_is_what_it_would_have_trained_alone() -> None:
    """liblinear has one generator for all threads of a process."""
    sets = [noisy_pairs(60, 1.0, seed) for seed in range(6)]
    alone = [fit_svm(pairs, 100.0, False) for pairs in sets]
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(lambda pairs: fit_svm(pairs, 100.0, False), sets * 4))
    assert all(np.array_equal(w, alone[i % 6]) for i, w in enumerate(together))
