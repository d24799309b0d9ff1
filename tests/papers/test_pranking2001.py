"""The figures of [P01], on people and streams that are small enough to be counted by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.command import heedful
from films import ratings_of, shared, write_1m
from heedful.core.fold import trace
from heedful.data.movielens import Ratings, load_movielens
from heedful.learners.ordinal.ordinal_logistic import OrdinalLogistic
from heedful.learners.ordinal.perceptrons import ConstantRank, MulticlassPerceptron, PRank, WidrowHoff
from heedful.papers import FIGURES
from heedful.papers.figure import FAILS, HOLDS, NOT_RUN, OPEN, Option, Panel, Size
from heedful.papers.panels import RATERS, RATERS_100
from heedful.papers.pranking2001 import ONLINE, ONLINE_UNIT, thresholds_in_order
from heedful.papers.run_ordinal import (
    COSTS,
    STEPS,
    People,
    _cross_validate,
    draw_people,
    instances_of,
    people_who_rated,
    predict_ranks,
    ratings_batch,
    run_ordinal,
    separable,
    synthetic_batch,
)
from heedful.papers.runner import Workers
from heedful.worlds.instances import instance_stream, synthetic_instances
from papers.invented import ran, silent

MINE = [figure for figure in FIGURES.values() if figure.id.startswith("pranking2001/")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 people, some of whom rated 12 or more of 30 movies."""
    return write_1m(tmp_path_factory.mktemp("data") / "movielens-1m", ratings_of(users=24, movies=30))


@pytest.fixture
def people(folder: Path, monkeypatch: pytest.MonkeyPatch) -> People:
    monkeypatch.setitem(RATERS, RATERS_100, 12)
    return people_who_rated(load_movielens(folder), 12)


# ---------------------------------------------------------------------------- people


def test_a_person_by_hand() -> None:
    """Three people rate; the third too little. Person 0's movies have the ratings of person 1, centred; no more."""
    rows = [(0, 0, 5), (0, 1, 1), (0, 2, 3), (1, 0, 4), (1, 2, 2), (1, 3, 1), (2, 0, 5)]
    users, movies, values = (np.array(column) for column in zip(*rows))
    nothing: Any = np.empty(0)
    ratings = Ratings(users, movies, values.astype(float), users, np.arange(3), np.arange(4), *[nothing] * 3)
    people = people_who_rated(ratings, 2)
    np.testing.assert_array_equal(people.ranks, [[5, 4], [1, 0], [3, 2], [0, 1]])
    np.testing.assert_array_equal(people.centred, [[0.5, 0.25], [-0.5, 0.0], [0.0, -0.25], [0.0, -0.5]])
    X, ranks = instances_of(people, 0, 3)
    assert dict(zip(ranks.tolist(), X.tolist())) == {5: [0.0, 0.25], 1: [0.0, 0.0], 3: [0.0, -0.25]}
    X, ranks = instances_of(people, 0, 3, ("unit",))
    assert dict(zip(ranks.tolist(), X.tolist())) == {5: [0.0, 1.0], 1: [0.0, 0.0], 3: [0.0, -1.0]}
    X, ranks = instances_of(people, 0, 3, ("unit", "intercept"))
    assert dict(zip(ranks.tolist(), X.tolist())) == {5: [0.0, 1.0, 1.0], 1: [0.0, 0.0, 1.0], 3: [0.0, -1.0, 1.0]}
    assert people.centred[0, 0] == 0.5  # what was set to 0 was a copy


def test_everybody_has_rated_as_many_as_there_are_rounds(people: People) -> None:
    assert people.ranks.shape[1] >= 8
    for person in draw_people(people, 8):
        X, ranks = instances_of(people, person, 12)
        assert X.shape == (12, people.ranks.shape[1])
        assert not X[:, person].any()
        assert set(ranks.tolist()) <= {1, 2, 3, 4, 5}
    assert len(set(draw_people(people, 8))) == 8


def test_no_instance_is_longer_than_R(people: People) -> None:
    every: tuple[tuple[Option, ...], ...] = ((), ("unit",), ("unit", "intercept"))
    for options in every:
        batch = ratings_batch(people, Size(12, 8), options)
        lengths = [np.linalg.norm(s.world.X, axis=1).max() for part in batch.parts for s in part.scenes]
        assert max(lengths) <= batch.R * (1 + 1e-6)
        assert max(lengths) > 0.9 * batch.R
    batch = synthetic_batch(Size(500, 2))
    lengths = [np.linalg.norm(s.world.X, axis=1).max() for part in batch.parts for s in part.scenes]
    assert 2.5 < max(lengths) <= batch.R


# ---------------------------------------------------------------------------- curves


def learners(N: int, R: float) -> dict[str, Any]:
    return {
        "PRank": PRank(N, 5),
        "multiclass perceptron": MulticlassPerceptron(N, 5),
        "Widrow-Hoff": WidrowHoff(N, 5, float(f"{1 / R**2:.3g}")),
        "ordinal logistic (ours)": OrdinalLogistic(N, 5),
        "constant (ours)": ConstantRank(N, 5),
    }


@pytest.mark.slow
@pytest.mark.parametrize("panel", [ONLINE[1], ONLINE_UNIT[0], ONLINE_UNIT[2]], ids=lambda panel: panel.key)
def test_the_curves_are_the_losses_of_people(people: People, panel: Panel) -> None:
    got = run_ordinal(panel, Size(12, 5), lambda least: people, {}, Workers(1), silent)
    chosen = sorted(draw_people(people, 5))
    R = ratings_batch(people, Size(12, 5), panel.options).R
    N = people.ranks.shape[1] + ("intercept" in panel.options)
    for label, learner in learners(N, R).items():
        losses = []
        for person in chosen:
            world = instance_stream(*instances_of(people, person, 12, panel.options), n_ranks=5)
            losses.append(trace(learner, world, 12, person, interpreted=True))
        np.testing.assert_array_equal(got[label].regrets, losses)
    best = [
        np.mean(
            [
                trace(
                    WidrowHoff(N, 5, float(f"{step / R**2:.3g}")),
                    instance_stream(*instances_of(people, p, 12, panel.options), n_ranks=5),
                    12,
                    p,
                    interpreted=True,
                )
                for p in chosen
            ]
        )
        for step in STEPS
    ]
    assert got["Widrow-Hoff, best eta in hindsight"].regrets.mean() == pytest.approx(min(best))


@pytest.mark.slow
def test_the_synthetic_curves_are_streams_of_their_own() -> None:
    got = run_ordinal(ONLINE[0], Size(60, 3), lambda least: pytest.fail("no people needed"), {}, Workers(1), silent)
    for label, learner in learners(6, 3.0).items():
        wanted = [trace(learner, synthetic_instances(60, s), 60, s, interpreted=True) for s in range(3)]
        np.testing.assert_array_equal(got[label].regrets, wanted)


# ---------------------------------------------------------------------------- batch learners


def test_passes_are_updates_in_the_order_of_the_instances() -> None:
    rng = np.random.default_rng(2)
    X, ranks = rng.integers(-2, 3, (20, 3)).astype(float), rng.integers(1, 6, 20)
    learner = PRank(3, 5)
    state = learner.init(rng)
    for _ in range(3):
        for x, rank in zip(X, ranks):
            state = learner.update(state, x, 1, int(rank))
    wanted = [1 + int(np.sum(x @ state.w >= state.b)) for x in X]
    assert predict_ranks("prank passes=3", X, ranks, X).tolist() == wanted
    assert predict_ranks("constant-rank", X, ranks, X).tolist() == [int(np.sort(ranks)[9])] * 20


def test_machines_learn_what_is_easy() -> None:
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(3)
    ranks = np.tile(np.arange(1, 6), 12)
    X = np.eye(5)[ranks - 1] + 0.05 * rng.standard_normal((60, 5))
    line = ranks[:, None] - 3.0 + 0.05 * rng.standard_normal((60, 1))
    assert (predict_ranks("svm", X[:40], ranks[:40], X[40:]) == ranks[40:]).all()
    assert (predict_ranks("svr", line[:40], ranks[:40], line[40:]) == ranks[40:]).all()
    one = np.full(10, 4)
    assert predict_ranks("svm", X[:10], one, X[10:12]).tolist() == [4, 4]


def test_the_batch_comparison_holds_out_a_fifth(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    loss, accuracy = FIGURES["pranking2001/batch"].panels[:2]
    kept: dict[Any, Any] = {}
    got = run_ordinal(loss, Size(12, 3), lambda least: people, kept, Workers(1), silent)
    with monkeypatch.context() as patch:
        patch.setattr("heedful.papers.run_ordinal.predict_ranks", lambda *args: pytest.fail("learned twice"))
        right = run_ordinal(accuracy, Size(12, 3), lambda least: people, kept, Workers(1), silent)
    for i, person in enumerate(draw_people(people, 3)):
        X, ranks = instances_of(people, person, 12)
        for label, spec in {"PRank, ten passes": "prank passes=10", "constant (ours)": "constant-rank"}.items():
            guess = predict_ranks(spec, X[:9].astype(float), ranks[:9], X[9:].astype(float))
            assert got[label].regrets[i, 0] == pytest.approx(np.abs(guess - ranks[9:]).mean())
            assert right[label].regrets[i, 0] == pytest.approx(np.mean(guess == ranks[9:]))


def test_a_rotation_changes_no_machine(people: People) -> None:
    """What is learned from the rotated instances is what would be from the instances themselves."""
    pytest.importorskip("sklearn")
    loss = FIGURES["pranking2001/batch"].panels[0]
    got = run_ordinal(loss, Size(12, 3), lambda least: people, {}, Workers(1), silent)
    for i, person in enumerate(draw_people(people, 3)):
        X, ranks = instances_of(people, person, 12)
        wide = X.astype(float)
        guess = predict_ranks("svr", wide[:9], ranks[:9], wide[9:])
        assert got["SVR"].regrets[i, 0] == pytest.approx(np.abs(guess - ranks[9:]).mean())


def test_only_machines_see_rotated_instances(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    """PRank sees the instances as they are, in which inner products may be equal; machines a feature for each movie."""
    widths: dict[str, int] = {}

    def watched(spec: str, X: Any, ranks: Any, unseen: Any) -> Any:
        widths[spec] = X.shape[1]
        return np.ones(len(unseen), np.int64)

    monkeypatch.setattr("heedful.papers.run_ordinal.predict_ranks", watched)
    loss = FIGURES["pranking2001/batch"].panels[0]
    run_ordinal(loss, Size(12, 1), lambda least: people, {}, Workers(1), silent)
    assert {widths["svm"], widths["svr"]} == {12}
    assert {widths["prank"], widths["prank passes=10"], widths["constant-rank"]} == {people.ranks.shape[1]}
    assert people.ranks.shape[1] != 12


def test_what_a_machine_costs_is_cross_validated() -> None:
    """Every third instance is held out once; the C with the least rank loss is taken, the smallest where they tie."""
    svm = pytest.importorskip("sklearn.svm")
    rng = np.random.default_rng(4)
    X, ranks = rng.standard_normal((31, 6)), rng.integers(1, 6, 31)
    losses = {}
    for C in COSTS:
        losses[C] = 0.0
        for held in range(3):
            out = np.arange(31) % 3 == held
            value = svm.SVR(kernel="linear", C=C).fit(X[~out], ranks[~out]).predict(X[out])
            losses[C] += float(np.abs(np.clip(np.floor(value + 0.5), 1, 5) - ranks[out]).sum())
        assert _cross_validate("svr", C, X, ranks) == losses[C]
    assert len(set(losses.values())) > 1
    best = min(C for C in COSTS if losses[C] == min(losses.values()))
    unseen = rng.standard_normal((50, 6))
    value = svm.SVR(kernel="linear", C=best).fit(X, ranks).predict(unseen)
    wanted = np.clip(np.floor(value + 0.5), 1, 5)
    np.testing.assert_array_equal(predict_ranks("svr", X, ranks, unseen), wanted)


# ---------------------------------------------------------------------------- the lemma and the theorem


@pytest.mark.parametrize("margin", [0.01, 0.08])
def test_a_rule_of_norm_1_ranks_a_separable_stream_by_the_margin(margin: float) -> None:
    stream, R2, gamma = separable(400, 7, margin)
    w = np.random.default_rng([7, 5]).standard_normal(10)
    v = np.concatenate([w / np.linalg.norm(w), [-0.3, -0.1, 0.1, 0.3]])
    v /= np.linalg.norm(v)
    X, ranks = stream.X, stream.ranks
    signs = np.where(ranks[:, None] <= np.arange(1, 5), -1.0, 1.0)  # y_r
    margins = ((X @ v[:10])[:, None] - v[10:]) * signs
    assert margins.min() == pytest.approx(gamma)
    assert gamma >= margin
    assert (X**2).sum(axis=1).max() == pytest.approx(R2)
    assert R2 <= 1.0 + 1e-9
    assert set(ranks.tolist()) == {1, 2, 3, 4, 5}
    loss = trace(PRank(10, 5), stream, 2000, 0, interpreted=True).sum()
    assert 0 < loss <= 4.0 * (R2 + 1.0) / gamma**2


@pytest.mark.slow
def test_the_bound_is_drawn_where_it_holds_and_nowhere_else() -> None:
    (panel,) = FIGURES["pranking2001/bound"].panels
    got = run_ordinal(panel, Size(200, 2), lambda least: pytest.fail("no people needed"), {}, Workers(1), silent)
    for margin in (0.01, 0.03, 0.08):
        line = got[f"margin {margin:g}"]
        limits = [4.0 * (R2 + 1.0) / gamma**2 for _, R2, gamma in (separable(200, seed, margin) for seed in range(2))]
        np.testing.assert_allclose(line.bound, np.mean(limits))
        assert line.theorem == "the mistake bound"
    noisy = got["noisy (synthetic)"]
    assert noisy.bound.size == 0
    assert "noisy" in noisy.lacking


def test_the_gaps_are_those_of_the_thresholds(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    (panel,) = FIGURES["pranking2001/lemma"].panels
    monkeypatch.setitem(RATERS, "raters-200", 12)
    got = run_ordinal(panel, Size(50, 2), lambda least: people, {}, Workers(1), silent)
    assert [len(line.regrets[0]) for line in got.values()] == [50, 12, 12]
    rng = np.random.default_rng(np.random.SeedSequence(1).spawn(3)[0])  # what is asked in the run of seed 1
    stream, learner = synthetic_instances(50, 1), PRank(6, 5)
    state, gaps = learner.init(rng), []
    for i in rng.permutation(50):
        state = learner.update(state, stream.X[i], 1, int(stream.ranks[i]))
        gaps.append(min(state.b[1:] - state.b[:-1]))
    np.testing.assert_array_equal(got["synthetic stream"].regrets[1], gaps)


def test_thresholds_out_of_order_are_seen() -> None:
    check = thresholds_in_order("gaps", ("a",))
    assert check({"gaps": {"a": ran([0.0, 0.0, 1.0])}}).conclusion == HOLDS
    verdict = check({"gaps": {"a": ran([0.0, 2.0, -1.0])}})
    assert verdict.conclusion == FAILS
    assert "least gap -1 over 3 rounds" in verdict.words


# ---------------------------------------------------------------------------- the command


@pytest.fixture
def small(folder: Path, unrendered: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sizes that take no time, and people who rated as much as there is."""
    for world in RATERS:
        monkeypatch.setitem(RATERS, world, 12)
    for figure in MINE:
        panels = tuple(panel._replace(quick=Size(min(panel.quick.rounds, 12), 3)) for panel in figure.panels)
        monkeypatch.setitem(FIGURES, figure.id, figure._replace(panels=panels))
    return folder.parent


@pytest.mark.slow
@pytest.mark.parametrize("figure", MINE, ids=lambda figure: figure.id)
def test_each_is_drawn_and_its_claims_are_judged(small: Path, tmp_path: Path, figure: Any) -> None:
    if figure.id.endswith("batch"):
        pytest.importorskip("sklearn")
    got = heedful(f"figure {figure.id} --quick --json --jobs 1 --data {{}} --out {{}}", small, tmp_path)
    assert got.code == 0, got.err
    assert list(got.json["panels"]) == [panel.key for panel in figure.panels]
    assert {claim["verdict"] for claim in got.json["claims"]} <= {HOLDS, FAILS, OPEN}
    for kind in ("png", "svg"):
        assert (tmp_path / f"{figure.id.replace('/', '-')}.{kind}").stat().st_size > 500


@pytest.mark.slow
def test_without_the_ratings_what_needs_none_is_drawn(small: Path, tmp_path: Path) -> None:
    got = heedful("figure pranking2001/fig4 --quick --json --data {} --out {}", tmp_path, tmp_path / "out")
    assert got.code == 0, got.err
    assert f"left out: no movielens-1m in {tmp_path}" in got.err
    assert list(got.json["panels"]) == ["synthetic-grades"]
    assert {claim["verdict"] for claim in got.json["claims"] if not claim["says"].startswith("Synthetic")} == {NOT_RUN}


def test_without_scikit_learn_there_is_no_batch_comparison(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heedful.papers.run_figure.find_spec", lambda name: None)
    got = heedful("figure pranking2001/batch --quick --data {} --out {}", small, tmp_path)
    assert got.code == 1
    assert "needs scikit-learn, which is not installed: pip install '.[sklearn]'" in got.err


@pytest.mark.slow
def test_as_many_people_as_there_are_in_movielens_1m() -> None:
    """Counted from the file: 2,945 have at least 100 ratings, 1,589 at least 200."""
    ratings = load_movielens(shared("movielens-1m"))
    assert [people_who_rated(ratings, least).ranks.shape[1] for least in (100, 200)] == [2945, 1589]
