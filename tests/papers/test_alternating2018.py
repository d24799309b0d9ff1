"""The figures of [A18]: the worlds, who meets whom, the claims; on ratings made up here, and as many as there are."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.command import heedful
from films import ratings_of, shared, write_100k
from heedful.core.fold import trace
from heedful.data.ratings import RatingTable, movielens_ratings
from heedful.learners.ratings.alb import ALB as Bandits
from heedful.papers import FIGURES
from heedful.papers.alternating2018.figures import (
    FILES,
    FILES_ONCE,
    GRID,
    RANKED,
    RANKED_FACTORS,
    ROWS,
    SWITCHED,
    SYNTHETIC,
)
from heedful.papers.alternating2018.tuning import (
    ALB,
    GRIDS,
    HALF,
    NMF,
    PTS,
    PUBLISHED,
    SPECS,
    TUNED,
    tuned_spec,
)
from heedful.papers.comparisons import (
    ahead,
    below_all,
    best_cell,
    higher,
    little_gained,
    lowest_cell,
    quicker,
    smaller_gaps,
    steadier_over,
)
from heedful.papers.figure import FAILS, HOLDS, NOT_RUN, OPEN, Line, Panel, Size
from heedful.papers.ndcg_world import NdcgWorld, RankByPrediction
from heedful.papers.panels import BERNOULLI, BOOKS, GAUSSIAN, JESTER, MOVIES_100K, RATED
from heedful.papers.run_figure import Sources
from heedful.papers.run_ratings import LOW, RANGES, TUNING, learner, run_ratings, scenes
from heedful.papers.runner import Workers
from heedful.spaces.slate import Slate
from heedful.worlds.ratings import gaussian_ratings, replay_ratings
from papers.invented import ran, silent

MINE = [figure for figure in FIGURES.values() if figure.id.startswith("alternating2018/")]


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is compiled for a few rounds."""
    from heedful.papers import runner as module

    simulate = module.simulate
    monkeypatch.setattr(module, "simulate", lambda *args, **how: simulate(*args, **{**how, "interpreted": True}))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder with films, jokes and books that are not there."""
    write_100k(tmp_path / "movielens-100k", ratings_of(users=12, movies=14), movies=14)
    rng = np.random.default_rng(0)
    (tmp_path / "jester-1").mkdir()
    rows = np.where(rng.random((9, 10)) < 0.8, rng.integers(-10, 11, (9, 10)), 99)
    lines = [",".join(map(str, [int((row != 99).sum()), *row.tolist()])) for row in rows]
    (tmp_path / "jester-1" / "jester-data-1.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "book-crossing-subset").mkdir()
    books = [f"{u},B{j},{r}" for (u, j), r in ratings_of(seed=1, users=10, movies=12).items()]
    text = "User-ID,ISBN,Book-Rating\n" + "\n".join(books) + "\n1,B99,0\n"
    (tmp_path / "book-crossing-subset" / "BX-Book-Ratings.subset.csv").write_text(text)
    return tmp_path


@pytest.fixture
def table(folder: Path) -> RatingTable:
    return movielens_ratings(folder / "movielens-100k")


# ---------------------------------------------------------------------------- as data


def test_every_plot_has_bmf_and_the_simple_rows() -> None:
    for figure in MINE:
        for panel in figure.panels:
            assert panel.world in RATED
            if panel.kind != "cells":
                assert panel.lines[-len(ROWS) :] == ROWS
    assert [line.learners for line in ROWS] == [
        ("bmf",), ("pair-mean",), ("item-mean",), ("user-greedy",), ("random-item",)
    ]  # fmt: skip


@functools.cache
@functools.cache
def resample(spec: str) -> float:
    """That of the learner that a line of a figure names."""
    return float(learner(spec, SYNTHETIC[0]).resample)


@pytest.mark.slow
def test_particles_are_drawn_anew_at_every_step_as_in_the_paper() -> None:
    """Fewer resamplings are ours: a line of their own, that says so, in every plot that compares the methods."""
    drawn: dict[str, set[float]] = {}
    for figure in MINE:
        for panel in figure.panels:
            for line in panel.lines:
                for spec in line.learners:
                    if spec.startswith("pts"):
                        ours = "(ours)" in line.label or "resample=0.5" in line.label or panel.title.startswith(HALF)
                        drawn.setdefault("ours" if ours else "the paper's", set()).add(resample(spec))
    assert drawn == {"ours": {0.5}, "the paper's": {1.0}}
    for panel in (*SYNTHETIC, *FILES, *FILES_ONCE, *RANKED, *RANKED_FACTORS):
        assert [line.label for line in panel.lines if "pts" in line.learners[0]] == [PTS, HALF]


def test_what_is_tuned_is_in_the_grid_and_so_are_the_paper_s() -> None:
    for world, once in TUNED:
        for method in SPECS:
            assert tuned_spec(world, method, once) in GRIDS[method]
        penalty, sigma = PUBLISHED[world]
        assert f"alb:penalty={penalty:g},sigma={sigma:g}" in GRIDS[ALB]
    assert len(GRID) == 36
    assert {len(panel.lines) for panel in GRID} == {63, 24, 16}


def test_the_sizes_are_those_of_the_paper() -> None:
    for figure in MINE:
        for panel in figure.panels:
            assert panel.full.rounds == 25_000
            assert panel.full.runs == (2 if panel.kind == "cells" else 5)


# ---------------------------------------------------------------------------- worlds


def test_run_s_is_of_seed_s_and_a_grid_has_other_seeds(table: RatingTable) -> None:
    size = Size(10, 3)
    made = scenes(SYNTHETIC[0], size, lambda world: pytest.fail("no file is needed"))
    for seed, scene in enumerate(made):
        assert (scene.seed, scene.draw) == (seed, seed)
        np.testing.assert_array_equal(scene.world.Y, gaussian_ratings(seed=seed).Y)
    again = scenes(FILES[1], size, lambda world: table)
    assert [scene.world.repeats for scene in again] == [True] * 3
    assert not scenes(FILES_ONCE[1], size, lambda world: table)[0].world.repeats
    assert [scene.seed for scene in scenes(GRID[0], size, lambda world: table)] == [TUNING, TUNING + 1, TUNING + 2]


def test_only_jester_is_shifted_and_only_for_ndcg(table: RatingTable) -> None:
    for panel in (*RANKED, *RANKED_FACTORS):
        [scene] = scenes(panel, Size(5, 1), lambda world: table)
        assert isinstance(scene.world, NdcgWorld)
        assert scene.world.low == (-10.0 if panel.world == JESTER else 0.0)
        assert scene.world.begin == (1 if panel.options == ("factors",) else 0)
    assert set(LOW) == {BOOKS, MOVIES_100K, JESTER}
    assert set(scenes(FILES[2], Size(5, 1), lambda world: table)[0].world.values) == set(table.values)


def test_learners_know_the_range_of_ratings() -> None:
    for world, (low, high) in RANGES.items():
        panel = FILES[0]._replace(world=world)
        assert learner("nmf-bandit", panel).space == Slate(1, low, high)
    assert learner("alb", SYNTHETIC[0]).space == Slate()
    assert learner("alb", RANKED[0]).space == Slate(5, 1.0, 10.0)
    assert learner("alb:sigma=2", RANKED_FACTORS[2]) == RankByPrediction(Bandits(Slate(1, -10.0, 10.0), sigma=2.0))


# ---------------------------------------------------------------------------- runs


def few(panel: Panel, *specs: str, kind: str = "") -> Panel:
    lines = tuple(Line(spec, (spec,), "") for spec in specs)
    return panel._replace(lines=lines, kind=kind or panel.kind)


@pytest.mark.slow
def test_regrets_are_those_of_the_seed(table: RatingTable) -> None:
    for panel, repeats in ((FILES[1], True), (FILES_ONCE[1], False)):
        got = run_ratings(few(panel, "alb", "item-mean"), Size(400, 2), lambda world: table, {}, Workers(1), silent)
        world = replay_ratings(table.users, table.items, table.values, repeats=repeats)
        for seed in range(2):
            wanted = trace(Bandits(Slate(1, 1.0, 5.0)), world, 400, seed, interpreted=True)
            np.testing.assert_array_equal(got["alb"].regrets[seed], wanted)
        assert got["item-mean"].regrets.shape == (2, 400 if repeats else table.values.size)


def test_by_scores_and_by_what_is_expected(table: RatingTable) -> None:
    """A learner that cannot say what it expects is ranked by its scores in both."""
    kept: dict[Any, Any] = {}
    scores, factors = (
        run_ratings(few(panel, "alb", "random-item"), Size(60, 2), lambda world: table, kept, Workers(1), silent)
        for panel in (RANKED[1], RANKED_FACTORS[1])
    )
    world = replay_ratings(table.users, table.items, table.values)
    for got, each, begin in (
        (scores, Bandits(Slate(5, 1.0, 5.0)), 0),
        (factors, RankByPrediction(Bandits(Slate(1, 1.0, 5.0))), 1),
    ):
        wanted = trace(each, NdcgWorld(world, 0.0, begin), 60, 1, interpreted=True)
        np.testing.assert_array_equal(got["alb"].regrets[1], wanted)
    assert (scores["alb"].regrets != factors["alb"].regrets).any()
    np.testing.assert_array_equal(scores["random-item"].regrets, factors["random-item"].regrets)


def test_what_two_panels_share_is_run_once(table: RatingTable, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[Any, Any] = {}
    first = run_ratings(few(FILES[1], "item-mean"), Size(9, 1), lambda world: table, kept, Workers(1), silent)
    monkeypatch.setattr("heedful.papers.runner.simulate", lambda *args, **how: pytest.fail("run twice"))
    second = run_ratings(few(FILES[1], "item-mean"), Size(9, 1), lambda world: table, kept, Workers(1), silent)
    np.testing.assert_array_equal(first["item-mean"].regrets, second["item-mean"].regrets)


def test_bars_hold_sums_or_seconds_and_cells_sums(table: RatingTable) -> None:
    curve, bars, cells, seconds = (
        run_ratings(panel, Size(30, 2), lambda world: table, {}, Workers(1), silent)["pair-mean"]
        for panel in (
            few(FILES[1], "pair-mean"),
            few(FILES[1], "pair-mean", kind="bars"),
            few(FILES[1], "pair-mean", kind="cells"),
            few(FILES[1], "pair-mean", kind="bars")._replace(options=("seconds",)),
        )
    )
    np.testing.assert_allclose(bars.regrets[:, 0], curve.regrets.sum(axis=1))
    world = replay_ratings(table.users, table.items, table.values)
    for run in range(2):
        wanted = trace(learner("pair-mean", FILES[1]), world, 30, TUNING + run, interpreted=True).sum()
        assert cells.regrets[run, 0] == pytest.approx(wanted)
    assert seconds.regrets.shape == (2, 1)
    assert (seconds.regrets > 0).all()
    np.testing.assert_array_equal(seconds.seconds, seconds.regrets[:, 0])


def test_switching_changes_nothing_else() -> None:
    """The lines of a panel are ALB as it was tuned, but for C."""
    for panel in SWITCHED:
        every, *rarely = [line.learners[0] for line in panel.lines[: -len(ROWS)]]
        assert every == tuned_spec(panel.world, ALB)
        assert [spec.removeprefix(every) for spec in rarely] == [f",switching={C}" for C in ("0.1", "0.5", "2", "10")]


# ---------------------------------------------------------------------------- claims


def ndcg(*values: float, runs: int = 4) -> Any:
    """A line that has these NDCGs in every run, but for a little."""
    return ran(1.0 - np.array(values) + 1e-4 * np.arange(runs)[:, None])


def test_higher_ndcg() -> None:
    outcome: Any = {"p": {"a": ndcg(0.9, 0.8), "b": ndcg(0.8, 0.8), "c": ndcg(0.9, 0.8)}}
    noisy = ran(1.0 - np.array([[0.9], [0.5], [0.95], [0.6]]))
    assert higher("p", "a", "b")(outcome).conclusion == HOLDS
    assert higher("p", "b", "a")(outcome).conclusion == FAILS
    assert higher("p", "a", "c")(outcome).conclusion == FAILS
    found = higher("p", "a", "b")({"p": {"a": noisy, "b": ndcg(0.7)}})
    assert found.conclusion == OPEN
    assert found.paired is not None
    assert found.paired.difference > 0


def test_ahead_throughout() -> None:
    """Averages from a tenth of the rounds on: what was in the first rounds, or is so only at the end, is not enough."""
    t = np.arange(100)
    even, late = ran(np.full((2, 100), 0.2)), ran(np.where(t < 50, 0.25, 0.1) + np.zeros((2, 1)))
    better = ran(np.where(t < 5, 0.4, 0.1) + np.zeros((2, 1)))  # after ten rounds 0.25, from 60 on below 0.17
    outcome: Any = {"p": {"even": even, "late": late, "worse": ran(np.full((2, 100), 0.24)), "better": better}}
    assert ahead("p", "even", ("worse",), 0.03)(outcome).conclusion == HOLDS
    assert ahead("p", "even", ("worse",), 0.05)(outcome).conclusion == FAILS
    assert ahead("p", "late", ("even",), 0.0)(outcome).conclusion == FAILS
    assert ahead("p", "even", ("worse", "late"), 0.03)(outcome).conclusion == FAILS
    assert ahead("p", "better", ("even",), 0.0)(outcome).conclusion == FAILS
    loose: Any = {"p": {"even": even, "loose": ran(np.full((2, 100), 0.3) + np.array([[0.2], [-0.2]]))}}
    assert ahead("p", "even", ("loose",), 0.03)(loose).conclusion == OPEN


def test_gaps_and_spreads() -> None:
    outcome: Any = {
        "near": {"a": ndcg(0.9), "b": ndcg(0.88), "c": ndcg(0.1)},
        "far": {"a": ndcg(0.9), "b": ndcg(0.8), "c": ndcg(0.1)},
    }
    assert smaller_gaps("near", ("far",), ("a", "b"))(outcome).conclusion == HOLDS
    assert smaller_gaps("far", ("near",), ("a", "b"))(outcome).conclusion == FAILS
    assert smaller_gaps("near", ("far",), ("a", "c"))(outcome).conclusion == FAILS  # as far
    loose = outcome | {"far": outcome["far"] | {"a": ran([[0.1], [0.9], [0.5], [0.0]])}}
    assert smaller_gaps("near", ("far",), ("a", "b"))(loose).conclusion == OPEN
    flat = {"x": ran([[1.0, 1.0]] * 3), "y": ran([[1.1, 1.1]] * 3)}
    steep = {"x": ran([[10.0]] * 3), "y": ran([[13.0]] * 3)}
    both = (("x", "y"),) * 2
    verdict = steadier_over(("f", "s"), both)({"f": flat, "s": steep})
    assert verdict.conclusion == HOLDS
    assert "f 9.5 %, s 26.1 %" in verdict.words
    assert steadier_over(("s", "f"), both)({"f": flat, "s": steep}).conclusion == FAILS
    unsteady = steep | {"y": ran([[16.0], [10.0], [13.0]])}
    assert steadier_over(("f", "s"), both)({"f": flat, "s": unsteady}).conclusion == OPEN


def test_below_all() -> None:
    low = {label: ran(np.array([[v], [v + 0.1], [v + 0.2]])) for label, v in (("x", 1.0), ("y", 2.0))}
    high = {"z": ran(np.array([[2.5], [2.55], [2.7]])), "w": ran(np.array([[1.5], [1.6], [1.8]]))}
    outcome: Any = {"low": low, "high": high}
    assert below_all(("low", ("x", "y")), ("high", ("z",)))(outcome).conclusion == HOLDS
    assert below_all(("low", ("x", "y")), ("high", ("z", "w")))(outcome).conclusion == FAILS
    outcome["high"]["v"] = ran(np.array([[1.5], [2.6], [4.0]]))
    assert below_all(("low", ("x", "y")), ("high", ("v",)))(outcome).conclusion == OPEN
    assert "low with y less high with w: " in below_all(("low", ("x", "y")), ("high", ("z", "w")))(outcome).words


def test_the_best_cell() -> None:
    lines = {
        f"alb:sigma={s}": ran([[r], [r + 2.0]])._replace(learner=f"alb:sigma={s}") for s, r in ((1, 5.0), (2, 4.0))
    }
    assert best_cell("p", "alb:sigma=2")({"p": lines}).conclusion == HOLDS
    other = best_cell("p", "alb:sigma=1")({"p": lines})
    assert other.conclusion == FAILS
    assert other.words.startswith("lowest at sigma=2 with 5; sigma=1 has 6; sigma=1 less sigma=2: ")
    loose: Any = {"p": lines | {"alb:sigma=1": ran([[5.0], [6.1]])._replace(learner="alb:sigma=1")}}
    assert best_cell("p", "alb:sigma=2")(loose).conclusion == OPEN
    alone: Any = {"p": {key: ran(line.regrets[:1])._replace(learner=key) for key, line in lines.items()}}
    assert best_cell("p", "alb:sigma=2")(alone).conclusion == OPEN


def test_the_cell_that_was_chosen_is_that_of_the_lowest_mean() -> None:
    """Of the runs it was chosen by: two of the same seeds say so, one does not."""
    lines: Any = {f"alb:sigma={s}": ran([[r], [r]])._replace(learner=f"alb:sigma={s}") for s, r in ((1, 5.0), (2, 4.9))}
    assert lowest_cell("p", "alb:sigma=2", 2)({"p": lines}).conclusion == HOLDS
    assert lowest_cell("p", "alb:sigma=1", 2)({"p": lines}).conclusion == FAILS
    verdict = lowest_cell("p", "alb:sigma=2", 3)({"p": lines})
    assert verdict.conclusion == OPEN
    assert "chosen by 3 runs, here are 2" in verdict.words


def test_quicker() -> None:
    lines: Any = {"a": ran([[1.0], [1.01], [0.99]]), "b": ran([[2.48], [2.5], [2.52]])}
    noisy = lines | {"a": ran([[1.0], [1.3], [0.7]])}
    assert quicker("p", "a", "b", 0.5)({"p": noisy}).conclusion == OPEN
    assert quicker("p", "a", "b", 0.5)({"p": lines}).conclusion == HOLDS
    assert quicker("p", "a", "b", 0.35)({"p": lines}).conclusion == FAILS
    assert quicker("p", "b", "a", 0.5)({"p": lines}).conclusion == FAILS


def test_little_is_gained() -> None:
    lines: Any = {"k = 1": ran([[9.0]] * 2), "k = 5": ran([[10.0]] * 2), "k = 7": ran([[30.0]] * 2)}
    assert little_gained("p", tuple(lines), "k = 5", 0.11)({"p": lines}).conclusion == HOLDS
    assert little_gained("p", tuple(lines), "k = 5", 0.09)({"p": lines}).conclusion == FAILS
    lines["k = 1"] = ran([[8.0], [10.0]])
    assert little_gained("p", tuple(lines), "k = 5", 0.11)({"p": lines}).conclusion == OPEN


# ---------------------------------------------------------------------------- the command


@pytest.fixture
def small(folder: Path, unrendered: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A few rounds, of grids three panels with two cells."""
    for figure in MINE:
        panels = figure.panels[:3] if figure.id.endswith("grid") else figure.panels
        fewer = [panel._replace(quick=Size(6, 2)) for panel in panels]
        if figure.id.endswith("grid"):
            fewer = [
                panel._replace(
                    lines=tuple(line for line in panel.lines if _named(line, panel) or line is panel.lines[0])
                )
                for panel in fewer
            ]
        monkeypatch.setitem(FIGURES, figure.id, figure._replace(panels=tuple(fewer)))
    return folder


def _named(line: Line, panel: Panel) -> bool:
    """Whether a claim is about this cell."""
    penalty, sigma = PUBLISHED[panel.world]
    of_paper = f"alb:penalty={penalty:g},sigma={sigma:g}"
    once = "once" in panel.options
    return line.learners[0] in (of_paper, *(tuned_spec(panel.world, method, once) for method in SPECS))


@pytest.mark.slow
@pytest.mark.parametrize("figure", MINE, ids=lambda figure: figure.id)
def test_each_is_drawn_and_its_claims_are_judged(small: Path, figure: Any) -> None:
    got = heedful(f"figure {figure.id} --quick --json --jobs 1 --data {{}} --out {{}}", small, small / "out")
    assert got.code == 0, got.err
    assert list(got.json["panels"]) == [panel.key for panel in FIGURES[figure.id].panels]
    judged = {claim["verdict"] for claim in got.json["claims"]}
    assert judged <= {HOLDS, FAILS, OPEN} | ({NOT_RUN} if figure.id.endswith("grid") else set())
    assert judged - {NOT_RUN}
    for kind in ("png", "svg"):
        assert (small / "out" / f"{figure.id.replace('/', '-')}.{kind}").stat().st_size > 500


@pytest.mark.slow
def test_without_files_what_needs_none_is_drawn(small: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    got = heedful("figure alternating2018/rank --quick --json --data {} --out {}", empty, tmp_path / "out")
    assert got.code == 0, got.err
    assert f"left out: no movielens-100k in {empty}" in got.err
    assert list(got.json["panels"]) == [f"{method}, Gaussian" for method in (ALB, PTS, NMF)]


def test_the_tables_are_found_in_a_folder(folder: Path) -> None:
    sources = Sources(folder)
    assert {world: sources.lacks(FILES[0]._replace(world=world)) for world in RATED} == dict.fromkeys(RATED, "")
    books = sources.table(BOOKS)
    assert books.values.min() >= 1.0
    assert "B99" not in books.item_names
    assert sources.table(JESTER).values.min() >= -10.0
    assert sources.table(JESTER) is sources.table(JESTER)
    assert Sources(folder / "jester-1").lacks(FILES[2]) == ""
    told = Sources(folder / "jester-1").lacks(FILES[0])
    assert told is not None
    assert told.startswith(f"no book-crossing-subset in {folder / 'jester-1'}: looked in book-crossing-subset, ")
    for world in (GAUSSIAN, BERNOULLI):
        assert Sources(folder / "nowhere").lacks(SYNTHETIC[0]._replace(world=world)) == ""


@pytest.mark.slow
def test_as_many_ratings_as_there_are() -> None:
    """Counted from the files, and by who collected them: densities .0026, .063 and .72; [A18] has .002, .058, .373."""
    sources = Sources(shared("jester-1").parent)
    shapes = {
        world: (np.unique(table.users).size, np.unique(table.items).size, table.values.size)
        for world in (BOOKS, MOVIES_100K, JESTER)
        for table in [sources.table(world)]
    }
    assert shapes == {BOOKS: (1830, 1991, 9320), MOVIES_100K: (943, 1682, 100_000), JESTER: (5000, 100, 359_379)}
