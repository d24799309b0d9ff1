"""Experiments: settings, runs and averages, against loops and means written out here."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from heedful.core.fold import play
from heedful.data.catalogue import Catalogue, load_catalogue
from heedful.data.letor import Queries
from heedful.experiments import beside
from heedful.experiments.coactive import catalogue_setting, letor_setting
from heedful.experiments.run import (
    Advance,
    CompilationNotice,
    Curve,
    InterpretedNotice,
    Run,
    average_regret,
    bound,
    checkpoints,
    curve,
    error_reason,
    pair_agreement,
    simulate,
    standard_error,
)
from heedful.experiments.setting import Setting
from heedful.jit.kernel import visible
from heedful.spaces.ranking import Ranking, WithBaseScore
from heedful.worlds.clicks import Cascade
from heedful.worlds.users import Best, Better, Noisy, StrictAlpha


@pytest.fixture(scope="module")
def queries() -> Queries:
    """Twelve queries of 4 to 7 documents; every third has no relevant one."""
    rng = np.random.default_rng(5)
    sizes = rng.integers(4, 8, 12)
    X = rng.integers(-3, 4, (sizes.sum(), 3)).astype(np.float64)
    labels = np.clip(X[:, 0] - X[:, 1] + rng.integers(-1, 2, len(X)), 0, 2).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    for q in range(0, 12, 3):
        labels[offsets[q] : offsets[q + 1]] = 0
    return Queries(X, labels, offsets, np.array([str(q) for q in range(12)]))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    rng = np.random.default_rng(6)
    columns = [rng.standard_normal(40).tolist() for _ in "abc"]
    file = tmp_path_factory.mktemp("table") / "items.csv"
    file.write_text("\n".join(["a,b,c", *[",".join(map(repr, row)) for row in zip(*columns)]]))
    return load_catalogue(file)


def runs_of(setting: Setting, learners: dict[str, Any], rounds: int, **how: Any) -> dict[str, list[Run]]:
    runs = [event for event in simulate(learners, setting, rounds, interpreted=True, **how) if isinstance(event, Run)]
    runs.sort(key=lambda run: (run.seed, run.person))
    return {name: [run for run in runs if run.learner == name] for name in learners}


class Recorder(NamedTuple):
    """Shows what comes as it comes and writes down what it met and what came back: for the interpreted fold."""

    met: Any
    answers: Any
    size: int = 99

    def init(self, rng: Any) -> int:
        return 0

    def propose(self, state: int, x: Any, rng: Any) -> Any:
        self.met.append(x.copy())
        return np.arange(min(len(x), self.size))

    def update(self, state: int, x: Any, y: Any, feedback: Any) -> int:
        self.answers.append(feedback.tolist())
        return state


# ---------------------------------------------------------------------------- settings


def test_a_letor_setting_keeps_every_query_and_counts_one_pass(queries: Queries) -> None:
    setting = letor_setting(queries, Noisy(5), k=3, seeds=(4, 9))
    assert setting.rounds == 12
    assert [(scene.seed, scene.person, scene.draw) for scene in setting.scenes] == [(4, 0, 4), (9, 0, 9)]
    assert setting.scenes[0].world is setting.scenes[1].world
    assert math.isnan(setting.alpha)
    # w* solves the normal equations of the labels on the features.
    w_star = setting.scenes[0].w_star
    np.testing.assert_allclose(queries.X.T @ (queries.X @ w_star - queries.labels), 0, atol=1e-9)


def test_regrets_are_those_of_a_loop_over_play(queries: Queries) -> None:
    setting = letor_setting(queries, StrictAlpha(0.5), k=3, seeds=(2,))
    learner, (scene,) = setting.learner("second-order:gamma=0.5"), setting.scenes
    wanted = []
    for played, _ in play(learner, scene.world, 30, 2):  # more than two passes
        u = played.x @ scene.w_star
        gain = [1 / math.log2(i + 2) for i in range(3)]
        wanted.append(np.sort(u)[::-1][:3] @ gain - u[visible(played.y)[:3]] @ gain)
    (run,) = runs_of(setting, {"a": learner}, 30)["a"]
    np.testing.assert_allclose(run.regrets, wanted, rtol=1e-9, atol=1e-12)
    assert run.regrets.max() > 0.1


def test_learners_meet_the_same_arrivals(queries: Queries, table: Catalogue) -> None:
    for setting in (letor_setting(queries, Noisy(4), seeds=(0, 1)), catalogue_setting(table, Best(), people=2)):
        size = 99 if setting.space.k > 1 else 1
        first, second = Recorder([], [], size), Recorder([], [], size)
        runs = runs_of(setting, {"first": first, "perceptron": setting.learner("perceptron"), "second": second}, 8)
        assert len(first.met) == 16
        assert all(np.array_equal(a, b) for a, b in zip(first.met, second.met))
        assert first.answers == second.answers
        assert [run.regrets.tolist() for run in runs["first"]] == [run.regrets.tolist() for run in runs["second"]]
        assert not all(np.array_equal(a, b) for a, b in zip(first.met[:8], first.met[8:]))  # seeds, people differ


def test_people_differ_and_depend_on_seed_and_person_alone(table: Catalogue) -> None:
    some = catalogue_setting(table, Better(), people=3, seeds=(0, 1)).scenes
    more = catalogue_setting(table, Best(), people=5, seeds=(1,)).scenes
    assert [(scene.seed, scene.person) for scene in some] == [(s, p) for s in (0, 1) for p in range(3)]
    assert len({tuple(scene.w_star) for scene in some}) == len({scene.draw for scene in some}) == 6
    for a, b in zip(some[3:], more):
        assert a.draw == b.draw
        assert np.array_equal(a.w_star, b.w_star)
        assert np.array_equal(a.world.ratings, b.world.ratings)


def test_what_bare_names_get_from_the_data(queries: Queries, table: Catalogue) -> None:
    letor, items = letor_setting(queries, Noisy(), k=3), catalogue_setting(table, Best())
    # S: no ranking of three has a larger entry of phi, by trying the best for every query and feature.
    gain = np.array([1 / math.log2(i + 2) for i in range(3)])
    parts = np.split(np.abs(queries.X), queries.offsets[1:-1])
    S = max(float((np.sort(part, axis=0)[::-1][:3].T @ gain).max()) for part in parts)
    assert letor.learner("exponentiated").bound == pytest.approx(S)
    assert items.learner("exponentiated").bound == np.abs(table.X).max()
    assert items.learner("convex").radius == letor.learner("convex").radius == 100.0
    assert items.learner("perceptron").space.k == 1


def test_what_settings_refuse(queries: Queries, table: Catalogue, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="user: expected one who ranks"):
        letor_setting(queries, Best())
    with pytest.raises(ValueError, match="user: expected one who picks"):
        catalogue_setting(table, Noisy())
    with pytest.raises(ValueError, match="k: expected a whole number, 1 to 1024, got 1025"):
        letor_setting(queries, Noisy(), k=1025)
    with pytest.raises(ValueError, match="people: expected a whole number, 1 or more, got 0"):
        catalogue_setting(table, Best(), people=0)
    setting = letor_setting(queries, Noisy())
    with pytest.raises(ValueError, match="second-order:gamma=-1: gamma: expected a finite number above 0"):
        setting.learner("second-order:gamma=-1")
    clicks = letor_setting(queries, Cascade(clicks_only=True))
    with pytest.raises(
        ValueError,
        match=r"^learner: expected a learner of clicks, such as posterior, as with clicks_only .*, got perceptron$",
    ):
        clicks.learner("perceptron")
    for spec in ("posterior", "posterior:swap=0", "perturbed", "fixed-order", "random-order"):
        clicks.learner(spec)
    letor_setting(queries, Cascade()).learner("perceptron")
    (tmp_path / "ranks.py").write_text(
        "from typing import NamedTuple\n"
        "class Ranks(NamedTuple):\n"
        '    """Ranks: nobody. Interaction: ordinal."""\n'
        "    def init(self, rng): return 0\n"
        "    def propose(self, state, x, rng): return 0\n"
        "    def update(self, state, x, y, feedback): return 0\n"
    )
    with pytest.raises(
        ValueError, match=r"expected one that takes corrections \(coactive\), got .*Ranks, which is ord"
    ):
        setting.learner(f"{tmp_path / 'ranks.py'}:Ranks")
    with pytest.raises(ValueError, match="seeds: expected at least one, got none"):
        next(simulate({}, letor_setting(queries, Noisy(), seeds=()), 1))


# ---------------------------------------------------------------------------- runs


def test_runs_do_not_depend_on_how_many_go_at_a_time(queries: Queries) -> None:
    setting = letor_setting(queries, Noisy(4), seeds=range(4))
    learners = {name: setting.learner(name) for name in ("perceptron", "dueling-bandit")}
    one, four = runs_of(setting, learners, 20), runs_of(setting, learners, 20, jobs=4)
    for name in learners:
        assert [run.regrets.tolist() for run in one[name]] == [run.regrets.tolist() for run in four[name]]
        assert all(run.seconds > 0 for run in one[name])


class Alone(NamedTuple):
    """Learns nothing, and notes whether another one was asked at the same time."""

    asked: list[int]
    together: list[int]

    @property
    def must_interpret(self) -> bool:
        return True

    def init(self, rng: Any) -> int:
        return 0

    def propose(self, state: int, x: Any, rng: Any) -> Any:
        self.asked.append(1)
        time.sleep(0.002)  # long enough for another thread to take the next fold
        self.together.append(len(self.asked))
        self.asked.pop()
        return np.arange(len(x))

    def update(self, state: int, x: Any, y: Any, feedback: Any) -> int:
        return state + 1


@pytest.mark.parametrize("interpreted", [True, None])
def test_what_is_interpreted_takes_turns(queries: Queries, interpreted: bool | None) -> None:
    setting = letor_setting(queries, Noisy(4), seeds=range(4))
    alone = Alone([], [])
    events = simulate({"alone": alone}, setting, 5, jobs=4, interpreted=interpreted, engine="serial")
    assert sorted(run.seed for run in events if isinstance(run, Run)) == [0, 1, 2, 3]
    assert alone.together == [1] * 20


def test_progress_adds_up_also_where_pools_run_dry(table: Catalogue) -> None:
    setting = catalogue_setting(table, Best(), people=3)
    learners = {name: setting.learner(name) for name in ("perceptron", "posterior:swap=0")}
    events = list(simulate(learners, setting, 500, interpreted=True))
    assert sum(event.rounds for event in events if isinstance(event, Advance)) == 2 * 3 * 500
    lengths = [event.regrets.size for event in events if isinstance(event, Run)]
    assert len(lengths) == 6
    assert all(20 <= length <= 40 for length in lengths)  # one or two of 40 items leave a round


@pytest.mark.slow
@pytest.mark.parametrize("how", ["compiled", "changed over"])
def test_compiled_runs_are_the_interpreted_ones(queries: Queries, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "LOADING", 0.0)
    monkeypatch.setattr(beside, "_kinds", {})
    setting = letor_setting(queries, StrictAlpha(0.5), seeds=(0, 1))
    learners = {"perceptron": setting.learner("perceptron")}
    if how == "compiled":
        events = list(simulate(learners, setting, 25, jobs=2))
        assert events[0] == CompilationNotice("perceptron")
    else:  # it is on the disk by now, or is not worth while
        events = list(simulate(learners, setting, 25, jobs=2, interpreted=None))
        assert not [event for event in events if isinstance(event, CompilationNotice)]
    assert not [event for event in events if isinstance(event, InterpretedNotice)]
    compiled = sorted((event for event in events if isinstance(event, Run)), key=lambda run: run.seed)
    interpreted = runs_of(setting, learners, 25)["perceptron"]
    assert [run.regrets.tolist() for run in compiled] == [run.regrets.tolist() for run in interpreted]


@pytest.mark.slow
def test_what_does_not_compile_runs_interpreted_and_says_why(queries: Queries) -> None:
    setting = letor_setting(queries, Noisy(4))
    learner = Recorder([], [])
    events = list(simulate({"mine": learner}, setting, 5))
    (why,) = [event for event in events if isinstance(event, InterpretedNotice)]
    assert why.learner == "mine"
    assert "Cannot determine Numba type" in why.reason or "list" in why.reason
    assert "\n" not in why.reason
    assert len(learner.met) == 5


def test_what_changes_over_and_cannot_says_why_once(queries: Queries, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "LOADING", 0.0)
    monkeypatch.setattr(beside, "_kinds", {})
    setting, learner = letor_setting(queries, Noisy(4), seeds=(0, 1)), Recorder([], [])
    events = list(simulate({"mine": learner}, setting, 5, interpreted=None))
    (why,) = [event for event in events if isinstance(event, InterpretedNotice)]
    assert why.learner == "mine"
    assert len(learner.met) == 10


def test_what_a_learner_raises_is_raised(queries: Queries) -> None:
    class Late(Recorder):
        def update(self, state: int, x: Any, y: Any, feedback: Any) -> int:
            self.met.append(x)
            if len(self.met) > 6:
                raise RuntimeError("enough")
            return state

    setting, learner = letor_setting(queries, Noisy()), Late([], [])
    with pytest.raises(RuntimeError, match="enough"):
        list(simulate({"late": learner}, setting, 10, interpreted=True))


def test_whoever_stops_listening_stops_the_runs(queries: Queries) -> None:
    setting, learner = letor_setting(queries, Noisy(), seeds=range(50)), Recorder([], [])
    events = simulate({"mine": learner}, setting, 400, interpreted=True)
    assert isinstance(next(events), Advance)
    events.close()  # type: ignore[attr-defined]
    assert len(learner.met) < 50 * 400


NUMBA = """Failed in nopython mode pipeline (step: nopython frontend)
No implementation of function Function(<function run at 0x7f>) found for signature:
 >>> run(Mine(int64))
There are 2 candidate implementations:
  Rejected as the implementation raised a specific error:
    TypingError: Failed in nopython mode pipeline (step: nopython frontend)
    {inner}

    File "../somewhere/mine.py", line 36:
        def propose(self, state, x, rng): return helper(x)
  raised from typeinfer.py:1494
During: Pass nopython_type_inference
"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (NUMBA.format(inner="Untyped global name 'helper'"), "Untyped global name 'helper' (mine.py, line 36)"),
        (
            NUMBA.format(
                inner="- Resolution failure for literal arguments:\nNo implementation of function F found for "
                "signature:\n\n >>> argsort(array, axis=0)"
            ),
            "no argsort(array, axis=0) (mine.py, line 36)",
        ),
        ("Cannot determine Numba type of <class 'dict'>\nand more", "Cannot determine Numba type of <class 'dict'>"),
        ("", "ValueError"),
    ],
)
def test_the_reason_is_the_innermost(text: str, told: str) -> None:
    assert error_reason(ValueError(text)) == told


# ---------------------------------------------------------------------------- averages


def run(seed: int, person: int, *regrets: float, seconds: float = 1.0) -> Run:
    return Run("it", seed, person, np.array(regrets), seconds)


def test_a_curve_by_hand() -> None:
    got = curve([run(0, 0, 4.0, 2.0, 0.0), run(1, 0, 2.0, 2.0, 2.0, seconds=2.0)])
    np.testing.assert_allclose(got.mean, [3.0, 2.5, 2.0])
    np.testing.assert_allclose(got.stderr, [1.0, 0.5, 0.0])  # half the distance of two
    assert got[2:] == ("seeds", 3, 2.0)


def test_people_are_averaged_first_and_cut_to_the_shortest() -> None:
    got = curve([run(0, 0, 4.0, 2.0, 9.0), run(0, 1, 0.0, 2.0), run(1, 0, 1.0, 1.0, 1.0), run(1, 1, 1.0, 3.0, 3.0)])
    np.testing.assert_allclose(got.mean, [1.5, 1.75])  # seeds: (2, 2) and (1, 2), hence (2, 2) and (1, 1.5)
    np.testing.assert_allclose(got.stderr, [0.5, 0.25])
    assert (got.over, got.longest) == ("seeds", 3)
    assert got.rounds_per_second == pytest.approx(11 / 4)


def test_with_one_seed_the_error_is_over_people() -> None:
    got = curve([run(7, 0, 4.0, 2.0), run(7, 1, 0.0, 2.0)])
    np.testing.assert_allclose(got.mean, [2.0, 2.0])
    np.testing.assert_allclose(got.stderr, [2.0, 1.0])
    assert got.over == "people"


def test_one_run_has_no_error() -> None:
    got = curve([run(0, 0, 4.0, 2.0)])
    assert np.isnan(got.stderr).all()
    assert got.stderr.shape == (2,)
    assert got.over == "nothing"
    assert isinstance(got, Curve)


def test_average_and_standard_error_are_numpy_s_word_for_word() -> None:
    regrets = np.random.default_rng(1).random((4, 30))
    wanted = [[row[: t + 1].mean() for t in range(30)] for row in regrets]
    np.testing.assert_allclose(average_regret(regrets), wanted)
    np.testing.assert_allclose(
        standard_error(regrets), [math.sqrt(sum((v - c.mean()) ** 2 for v in c) / 3) / 2 for c in regrets.T]
    )


@pytest.mark.parametrize(
    ("rounds", "marks"),
    [
        (1, [1]),
        (2, [1, 2]),
        (3, [1, 3]),
        (10, [1, 3, 10]),
        (784, [1, 3, 10, 30, 100, 300, 784]),
        (31, [1, 3, 10, 30, 31]),
    ],
)
def test_checkpoints(rounds: int, marks: list[int]) -> None:
    assert checkpoints(rounds).tolist() == marks


def test_bounds_are_for_strict_people_and_learners_that_have_one(queries: Queries) -> None:
    strict, noisy = letor_setting(queries, StrictAlpha(0.5)), letor_setting(queries, Noisy())
    learner, t = strict.learner("perceptron"), [1.0, 9.0]
    norm = np.linalg.norm(strict.scenes[0].w_star)
    np.testing.assert_allclose(bound(learner, strict, t), [4 * strict.R * norm, 4 * strict.R * norm / 3])
    assert np.isnan(bound(learner, noisy, t)).all()
    assert np.isnan(bound(strict.learner("posterior:swap=0"), strict, t)).all()
    assert np.isnan(bound(strict.learner("exponentiated"), strict, t)).all()  # the variable rate has no guarantee
    assert np.isfinite(bound(strict.learner("exponentiated:horizon=9"), strict, t)).all()


class Greedy(NamedTuple):
    """A space that says that its argmax is none."""

    approximate = True


def test_no_bound_where_what_is_shown_is_not_the_argmax(queries: Queries) -> None:
    setting = letor_setting(queries, StrictAlpha(0.5))
    learner = setting.learner("perceptron")
    assert np.isfinite(bound(learner, setting, [1, 9])).all()
    for space in (WithBaseScore(Ranking(5)), Greedy()):
        assert np.isnan(bound(learner._replace(space=space), setting, [1, 9])).all()


def test_bounds_are_averaged_over_people(table: Catalogue) -> None:
    setting = catalogue_setting(table, StrictAlpha(0.5), people=4)
    learner = setting.learner("exponentiated:horizon=50")
    R, S = np.linalg.norm(table.X, axis=1).max(), np.abs(table.X).max()
    assert (setting.R, setting.S) == (R, S)
    each = [learner.regret_bound(np.array([50.0]), 0.5, scene.w_star, R, S)[0] for scene in setting.scenes]
    assert len(set(each)) == 4
    assert float(bound(learner, setting, 50)) == pytest.approx(np.mean(each))


def test_regret_stays_below_the_bound(queries: Queries) -> None:
    setting = letor_setting(queries, StrictAlpha(0.3), seeds=range(3))
    learner = setting.learner("perceptron")
    got = curve(runs_of(setting, {"it": learner}, 100)["it"])
    assert (got.mean <= bound(learner, setting, np.arange(1, 101))).all()


def test_pairs_alike_by_hand() -> None:
    assert pair_agreement(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])) == pytest.approx(2 / 3)
    assert pair_agreement(np.array([1.0, 1.0, 3.0]), np.array([1.0, 2.0, 3.0])) == 1.0  # a tie is no pair
    assert pair_agreement(np.array([1.0, 2.0]), np.array([5.0, 5.0])) == 0.0
    assert math.isnan(pair_agreement(np.ones(3), np.arange(3.0)))
