"""The figures of [H12]: who is split how, what is asked and foretold, the claims; on choices made up here."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.command import heedful
from data.test_pairwise_datasets import seats, write_election, write_jura
from heedful.data.pairwise_dataset import PairwiseDataset, all_pairs
from heedful.inference.gp.acquisition import bald, mes
from heedful.papers import FIGURES, nips2012, run_comparison, with_labels
from heedful.papers.choice_claims import (
    asks_apart,
    lower_than_all,
    near,
    near_the_best,
    one_as_good,
    throughout,
    wins,
)
from heedful.papers.choice_models import COUNTS, Problem, model
from heedful.papers.figure import FAILS, HOLDS, NOT_RUN, OPEN, Line, Size
from heedful.papers.figure1_toy import BALD, GRID, LABELS, MES, SD
from heedful.papers.nips2012 import ASKING, CP, CPU, PUBLISHED, SETS, SU, TABLE_1, TABLE_2, TABLE_3
from heedful.papers.panels import ELECTION, JURA, SUSHI
from heedful.papers.run_comparison import (
    OTHERS,
    QUERIES,
    QUESTION_PAIRS,
    TRAINING,
    Split,
    hold_out_people,
    run_panel,
    split,
)
from heedful.papers.run_figure import Sources
from heedful.papers.runner import Workers
from papers.invented import ran, silent

MINE = [figure for figure in FIGURES.values() if figure.id.startswith("nips2012/")]


@pytest.fixture
def data() -> PairwiseDataset:
    """150 people, ten items with utilities f_u = a mean and more, answered with noise."""
    rng = np.random.default_rng(0)
    f = rng.standard_normal(10) + 0.7 * rng.standard_normal((150, 10))
    a, b = all_pairs(10).T
    first = f[:, a] - f[:, b] + 0.5 * rng.standard_normal((150, 45)) > 0.0
    names = np.array([str(i) for i in range(10)])
    return PairwiseDataset(names, rng.standard_normal((10, 3)), rng.standard_normal((150, 2)), first)


# ---------------------------------------------------------------------------- as data


def test_the_tables_are_the_paper_s() -> None:
    """[H12] Tables 1 to 3: sums of the rows as printed there, and a cell of each."""
    assert PUBLISHED == ("CPU", "CP", "BI", "BO", "SU")
    assert {key: round(sum(row), 3) for key, row in TABLE_1.items()} == {
        "Synthetic": 0.9, "Sushi": 0.947, "MovieLens": 1.035, "Election": 1.1, "Jura": 0.9,
    }  # fmt: skip
    assert dict(zip(PUBLISHED, TABLE_1["Election"]))["BI"] == 0.077
    assert round(sum(TABLE_2["Election"]), 3) == 167.321
    assert dict(zip(ASKING, TABLE_3["Sushi"])) == {
        "CPU-B": 0.148, "CPU-E": 0.153, "CPU-R": 0.178, "CP-B": 0.144, "CP-E": 0.151, "CP-R": 0.176,
        "SU-B": 0.179, "SU-E": 0.197, "SU-R": 0.212,
    }  # fmt: skip
    assert {key: round(sum(row), 3) for key, row in TABLE_3.items()} == {
        "Synthetic": 1.671, "Sushi": 1.538, "MovieLens": 1.781, "Election": 1.941, "Jura": 1.436,
    }  # fmt: skip


def test_sizes_are_the_paper_s() -> None:
    for figure in MINE:
        for panel in figure.panels:
            if figure.id in ("nips2012/table1", "nips2012/functions"):
                assert panel.full == Size(100, 25)
            if figure.id in ("nips2012/table3", "nips2012/fig2"):
                assert panel.full == Size(1000, 25)
    assert list(TRAINING.values()) == [30, 20, 20, 20, 15]
    assert list(QUESTION_PAIRS.values()) == [(5, 35, 5)] * 3 + [(3, 22, 3), (3, 15, 3)]


def test_each_is_there_with_both_labels() -> None:
    for figure in MINE:
        published = with_labels(figure, "published")
        assert published.id == figure.id
        if figure.id == "nips2012/fig1":
            continue
        assert {"published" in panel.options for panel in figure.panels} == {False}
        assert {"published" in panel.options for panel in published.panels} == {True}
    counts = {figure.id: len(with_labels(figure, "published").claims) - len(figure.claims) for figure in MINE}
    assert {name: n for name, n in counts.items() if n} == {"nips2012/table1": 25, "nips2012/table3": 45}
    other = FIGURES["jair2015/fig2"]
    assert with_labels(other, "published") is other
    mine = MINE[0]._replace(note="changed")
    assert with_labels(mine, "published") is mine


# ---------------------------------------------------------------------------- splits


def test_a_split_has_every_pair_of_everybody_once(data: PairwiseDataset) -> None:
    parts = split(data, 40, 3, 20)
    assert (parts.train.shape, parts.pool.shape, parts.test.shape) == ((40, 20), (40, 0), (40, 25))
    for learned, foretold in zip(parts.train, parts.test):
        assert sorted([*learned, *foretold]) == list(range(45))
    asked = split(data, 40, 3, 5, 35, 5)
    assert [part.shape[1] for part in (asked.train, asked.pool, asked.test)] == [5, 35, 5]
    np.testing.assert_array_equal(asked.first, parts.first)  # the same people, whatever is learned
    assert (split(data, 40, 4, 20).train != parts.train).any()
    at = [[tuple(row) for row in data.people.tolist()].index(tuple(row)) for row in parts.problem.people.tolist()]
    assert len(set(at)) == 40
    np.testing.assert_array_equal(data.first[at], parts.first)


def test_rows_are_the_answers_and_the_first_stay_the_first(data: PairwiseDataset) -> None:
    parts = split(data, 30, 1, 5, 35, 5)
    rows = parts.rows(parts.train)
    assert rows.size == 150
    for user, (winner, loser) in zip(rows.user.tolist(), rows.pairs.tolist()):
        p = list(combinations(range(10), 2)).index((min(winner, loser), max(winner, loser)))
        assert parts.first[user, p] == (winner < loser)
    longer = parts.rows(np.column_stack([parts.train, parts.pool[:, :2]]))
    np.testing.assert_array_equal(longer.pairs[:150], rows.pairs)
    np.testing.assert_array_equal(longer.user[:150], rows.user)


def test_who_is_kept_apart_is_in_no_split(data: PairwiseDataset) -> None:
    rest, others = hold_out_people(data)
    assert (len(rest.first), len(others.first)) == (50, OTHERS)
    together = np.vstack([rest.people, others.people])
    np.testing.assert_allclose(together.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(together.std(axis=0), 1.0)
    assert len({tuple(row) for row in together.tolist()}) == 150


class Sure:
    """Believes of every user that the item with the lower number is better by 1, with variances that are their sum."""

    log_evidence = -1.0

    def gap(self, user: Any, a: Any, b: Any) -> tuple[Any, Any]:
        return np.where(a < b, 1.0, -1.0) * (1.0 + user % 3), 0.1 * (a + b) + 0.0


def test_errors_and_likelihoods_are_of_what_is_foretold(data: PairwiseDataset) -> None:
    from scipy.stats import norm

    parts = split(data, 20, 0, 20)
    wrong, logs = [], []
    for u, row in enumerate(parts.test.tolist()):
        for p in row:
            a, b = list(combinations(range(10), 2))[p]
            wrong.append(not parts.first[u, p])
            sign = 1.0 if parts.first[u, p] else -1.0
            logs.append(norm.logcdf(sign * (1.0 + u % 3) / np.sqrt(1.1 + 0.1 * (a + b) - 0.1)))
    assert parts.error(Sure()) == pytest.approx(np.mean(wrong))
    assert parts.log_likelihood(Sure()) == pytest.approx(np.mean(logs))


@pytest.mark.parametrize(("rule", "score"), [("bald", bald), ("mes", mes)])
def test_everybody_is_asked_what_the_rule_gives_most(
    data: PairwiseDataset, monkeypatch: pytest.MonkeyPatch, rule: str, score: Any
) -> None:
    seen = []

    def fit(problem: Problem, rows: Any, earlier: Any) -> Sure:
        seen.append(rows)
        assert (earlier is None) == (len(seen) == 1)
        return Sure()

    monkeypatch.setattr(run_comparison, "model", lambda name: fit)
    got = run_comparison._ask(data, SUSHI, 12, 5, f"cp by {rule}")
    assert got.values.shape == (QUERIES + 1,)
    parts = split(data, 12, 5, 5, 35, 5)
    assert np.ptp(got.values) == 0.0
    assert got.values[0] == parts.error(Sure())
    assert [rows.size for rows in seen] == [12 * (5 + q) for q in range(QUERIES + 1)]
    pairs = list(combinations(range(10), 2))
    for user in range(12):
        pool = parts.pool[user].tolist()
        for q in range(QUERIES):
            worth = [score(1.0 + user % 3, 0.1 * sum(pairs[p])) for p in pool]
            asked = pool.pop(int(np.argmax(worth)))
            row = 12 * (5 + q) + user
            assert (seen[-1].user[row], sorted(seen[-1].pairs[row].tolist())) == (user, list(pairs[asked]))


def test_random_questions_are_those_of_the_seed(data: PairwiseDataset) -> None:
    one, again, other = (run_comparison._ask(data, SUSHI, 12, seed, "su by random").values for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()
    assert one[-1] < one[0]  # ten answers more


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cp", "cpu", "su"])
def test_what_rules_have_in_common_is_fitted_once(
    data: PairwiseDataset, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """And changes nothing; nor does it that SU goes on from where it was, and CPU keeps what is known of people."""
    names = [f"{name} by {rule}" for rule in ("bald", "mes", "random")]
    monkeypatch.setattr(run_comparison, "QUERIES", 3)
    apart = [run_comparison._ask(data, SUSHI, 12, 3, each) for each in names]
    fits, whole = [], run_comparison._fit

    def counted(fit: Any, parts: Split, learned: Any, earlier: Any) -> Any:
        fits.append(learned.shape[1])
        return whole(fit, parts, learned, earlier)

    def afresh(fit: Any, parts: Split, learned: Any, earlier: Any) -> Any:
        return whole(fit, parts._replace(problem=parts.problem._replace(cache={})), learned, None)

    monkeypatch.setattr(run_comparison, "_fit", counted)
    together = run_comparison._ask_by_rules(data, SUSHI, 12, 3, names)
    assert sorted(fits) == sorted([5, *(3 * [6, 7, 8])])
    for one, other in zip(apart, together.values()):
        np.testing.assert_array_equal(one.values, other.values)
        assert other.seconds > 0.0
    monkeypatch.setattr(run_comparison, "_fit", afresh)
    for one, each in zip(apart, names):
        np.testing.assert_array_equal(one.values, run_comparison._ask(data, SUSHI, 12, 3, each).values)


@pytest.mark.slow
def test_models_by_name(data: PairwiseDataset) -> None:
    rest, others = hold_out_people(data)
    rows = split(others, OTHERS, 0, 20)
    apart = {
        "tuned": run_comparison.tune_on_others("tuned", data.features, rows.problem.people, rows.rows(rows.train), True)
    }
    kept = run_comparison.tune_on_others(
        "hierarchical-tuned", data.features, rows.problem.people, rows.rows(rows.train), True
    )
    apart["hierarchical-tuned"] = kept
    assert kept in COUNTS
    apart["bo"] = run_comparison.tune_on_others("bo", data.features, rows.problem.people, rows.rows(rows.train), True)
    parts = split(rest, 20, 0, 20, tuned=apart)
    answers = parts.rows(parts.train)
    naive = np.minimum(rest.first.mean(axis=0), 1.0 - rest.first.mean(axis=0)).mean()
    for name in (
        "cp",
        "cp:D=5",
        "cp:D=5,times=2",
        "cpu",
        "cp-fitc",
        "bi",
        "bo",
        "su",
        "hierarchical",
        "hierarchical-tuned",
        "tuned",
    ):
        fitted = model(name)(parts.problem, answers, None)
        assert parts.error(fitted) < naive + 0.1, name
        assert np.isfinite(fitted.log_evidence)
        mean, var = fitted.gap(np.array([3, 3]), np.array([1, 2]), np.array([2, 1]))
        np.testing.assert_allclose(mean, -mean[::-1], atol=1e-9)
        assert (var > 0.0).all()
    one, other = (model(f"hierarchical{more}")(parts.problem, answers, None) for more in (f":nu0={kept}", "-tuned"))
    np.testing.assert_array_equal(one.fit.population.cov, other.fit.population.cov)
    assert model("cp:D=5")(parts.problem, answers, None).mw.shape == (20, 5)
    with pytest.raises(ValueError, match=r"^model: expected one of cpu, cp, .*, got 'gp'$"):
        model("gp")


# ---------------------------------------------------------------------------- panels


def test_what_two_panels_share_is_run_once(data: PairwiseDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    [panel] = [panel for panel in FIGURES["nips2012/table1"].panels if panel.world == SUSHI]
    panel = panel._replace(lines=(Line("SU", ("su",), ""), Line("more", ("hierarchical",), "")))
    kept: dict[Any, Any] = {}
    got = run_panel(panel, Size(30, 3), lambda world, labels: data, kept, Workers(2), silent)
    rest, _ = hold_out_people(data)
    wanted = [split(rest, 30, s, 20) for s in range(3)]
    errors = [w.error(model("su")(w.problem, w.rows(w.train), None)) for w in wanted]
    np.testing.assert_array_equal(got["SU"].regrets[:, 0], errors)
    assert got["SU"].seconds.min() > 0.0
    monkeypatch.setattr(run_comparison, "_test", lambda *args: pytest.fail("run twice"))
    again = run_panel(panel, Size(30, 3), lambda world, labels: data, kept, Workers(2), silent)
    np.testing.assert_array_equal(got["more"].regrets, again["more"].regrets)


def test_seconds_and_scales(data: PairwiseDataset) -> None:
    [timed] = [panel for panel in FIGURES["nips2012/table2"].panels if panel.world == SUSHI]
    timed = timed._replace(lines=(Line("SU", ("su",), ""),))
    got = run_panel(timed, Size(20, 2), lambda world, labels: data, {}, Workers(2), silent)["SU"]
    assert got.regrets.shape == (2, 1)
    np.testing.assert_array_equal(got.seconds, got.regrets[:, 0])
    [panel] = [panel for panel in FIGURES["nips2012/evidence"].panels if panel.world == SUSHI]
    panel = panel._replace(lines=tuple(line._replace(learners=("hierarchical",)) for line in panel.lines))
    scaled = run_panel(panel, Size(20, 1), lambda world, labels: data, {}, Workers(1), silent)
    parts = split(data, 20, 0, 20)
    for i, times in ((0, 0.25), (4, 1.0), (8, 4.0)):
        fitted = model(f"hierarchical:times={times}")(parts.problem, parts.rows(parts.train), None)
        assert scaled["evidence"].marks[i] == times
        assert scaled["evidence"].regrets[0, i] == pytest.approx(fitted.log_evidence / 400)
        assert scaled["error"].regrets[0, i] == parts.error(fitted)
        assert scaled["log-likelihood of test answers"].regrets[0, i] == parts.log_likelihood(fitted)


def test_figure_1_mes_asks_for_a_coin_and_bald_where_nothing_is_known() -> None:
    panel = FIGURES["nips2012/fig1"].panels[0]
    got = run_panel(panel, panel.full, lambda world, labels: pytest.fail("no file is needed"), {}, Workers(1), silent)
    asks = {rule: GRID[got[rule].regrets[0].argmax()] for rule in (BALD, MES)}
    assert -0.6 < asks[MES] < 0.6  # between the coins
    assert asks[BALD] > 2.5  # beyond all labels
    assert set(got[LABELS].regrets[0]) == {-1.0, 1.0}
    assert got[SD].regrets[0].max() == got[SD].regrets[0][-1]


# ---------------------------------------------------------------------------- claims


def ended(*values: float) -> Any:
    return ran(np.array(values)[:, None])


def test_a_cell_is_told_with_its_scatter() -> None:
    found = near("p", "a", 0.16)({"p": {"a": ended(0.17, 0.19)}}).words
    assert found.startswith("0.180 ± 0.010: +0.020, expected ±0.02; 95 % interval -0.107 to +0.147")
    assert near("p", "a", 0.2)({"p": {"a": ended(0.2)}}).words.startswith("0.200: +0.000")


def test_who_is_lower() -> None:
    lines = {"low": ended(0.1, 0.11, 0.12), "mid": ended(0.12, 0.13, 0.141), "odd": ended(0.3, 0.02, 0.15)}
    outcome: Any = {"p": lines}
    assert lower_than_all("p", ("low",), ("mid",))(outcome).conclusion == HOLDS
    assert lower_than_all("p", ("low",), ("mid", "odd"))(outcome).conclusion == OPEN
    assert lower_than_all("p", ("mid",), ("low",))(outcome).conclusion == FAILS
    assert one_as_good("p", ("mid", "low"), "low")(outcome).conclusion == HOLDS
    assert one_as_good("p", ("mid",), "low")(outcome).conclusion == FAILS
    assert one_as_good("p", ("mid", "odd"), "low")(outcome).conclusion == OPEN


def test_wins_are_counted_both_ways() -> None:
    better, worse, same = ended(0.1, 0.11, 0.12), ended(0.12, 0.13, 0.141), ended(0.1, 0.11, 0.12)
    outcome: Any = {"p": {"m-B": better, "m-E": worse}, "q": {"m-B": worse, "m-E": better}}
    outcome |= {"r": {"m-B": better, "m-E": same}}
    check = wins(("p", "q", "r"), ("m",), "B", "E", 1, 1)(outcome)
    assert check.conclusion == HOLDS
    assert check.words == "of 3, B is significantly lower in 1 (m p), E in 1 (m q)"
    assert wins(("p", "q", "r"), ("m",), "B", "E", 0, 1)(outcome).conclusion == FAILS
    assert wins(("p", "q", "r"), ("m",), "B", "E", 1, 3)(outcome).conclusion == FAILS
    outcome["r"] = {"m-B": ended(0.1, 0.2, 0.3), "m-E": ended(0.2, 0.2, 0.15)}
    assert wins(("p", "q", "r"), ("m",), "B", "E", 1, 2)(outcome).conclusion == OPEN


def test_throughout_and_scales_and_where_is_asked() -> None:
    outcome: Any = {"p": {"a": ran([[0.3, 0.2], [0.32, 0.2]]), "b": ran([[0.31, 0.3], [0.33, 0.3]])}}
    assert throughout("p", "a", "b")(outcome).conclusion == HOLDS
    assert throughout("p", "b", "a")(outcome).conclusion == FAILS
    outcome["p"]["b"] = ran([[0.29, 0.3], [0.31, 0.3]])
    assert throughout("p", "a", "b")(outcome).conclusion == FAILS
    outcome["p"]["b"] = ran([[0.29, 0.3], [0.36, 0.3]])
    assert throughout("p", "a", "b")(outcome).conclusion == OPEN
    marks = np.array([0.5, 1.0, 2.0])
    guide = ran([[1.0, 2.0, 3.0]] * 2)._replace(marks=marks)
    for lasts, wanted in (((0.205, 0.205), HOLDS), ((0.22, 0.22), FAILS), ((0.17, 0.24), OPEN)):
        errors = ran([[0.3, 0.2, last] for last in lasts])._replace(marks=marks)
        assert near_the_best("p", "g", "e")({"p": {"g": guide, "e": errors}}).conclusion == wanted
    lines = {
        "sd": ran([[1.0, 2.0, 3.0]])._replace(marks=marks),
        "x": ran([[1.0, 9.0, 1.0]]),
        "y": ran([[9.0, 1.0, 1.0]]),
    }
    assert asks_apart("p", "x", "y", "sd")({"p": lines}).conclusion == HOLDS
    assert asks_apart("p", "y", "x", "sd")({"p": lines}).conclusion == FAILS


# ---------------------------------------------------------------------------- the command


@pytest.fixture
def folder(tmp_path: Path, unrendered: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two of the sets, with seats and places that are not there; a handful of people, and models that are quick."""
    monkeypatch.setattr(run_comparison, "OTHERS", 12)
    monkeypatch.setattr(run_comparison, "QUERIES", 2)
    monkeypatch.setattr(nips2012, "FEW", Size(8, 2))
    monkeypatch.setattr(nips2012, "SOME", Size(8, 2))
    monkeypatch.setattr(nips2012, "MODELS", nips2012.MODELS | {"BO": "su", "CP, tuned (ours)": "hierarchical"})
    for figure in nips2012.figures():
        monkeypatch.setitem(FIGURES, figure.id, figure)
    write_election(tmp_path / "uk-election-2010", seats(60))
    (tmp_path / "jura").mkdir()
    write_jura(tmp_path / "jura")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("name", ["table1", "fig2"])
def test_each_is_drawn_and_its_claims_are_judged(folder: Path, name: str) -> None:
    got = heedful(
        f"figure nips2012/{name} --quick --json --labels published --jobs 1 --data {{}} --out {{}}",
        folder,
        folder / "o",
    )
    assert got.code == 0, got.err
    assert "left out: no sushi in" in got.err
    assert list(got.json["panels"]) == ["Election", "Jura"]
    about = [claim for claim in got.json["claims"] if claim["says"].startswith(("Election", "Jura"))]
    assert {claim["verdict"] for claim in about} <= {HOLDS, FAILS, OPEN}
    assert {claim["verdict"] for claim in got.json["claims"] if claim["says"].startswith("Sushi")} == {NOT_RUN}
    if name == "fig2":
        line = got.json["panels"]["Jura"]["CP-B"]
        assert line["rounds"] == [1, 2, 3]
        assert len(line["regret"]) == 3
    else:
        assert {"panel": "Jura", "line": "BO", "paper": 0.254} in got.json["paper_numbers"]
    for kind in ("png", "svg"):
        assert (folder / "o" / f"nips2012-{name}.{kind}").stat().st_size > 500


@pytest.mark.slow
def test_cells_are_printed_beside_the_paper_s(folder: Path) -> None:
    got = heedful("figure nips2012/table1 --quick --jobs 1 --data {} --out {}", folder, folder / "out", width=200)
    assert got.code == 0, got.err
    assert "Labels are the right ones" in got.out
    row = next(line for line in got.out.splitlines() if line.strip().startswith(SU))
    assert "(0.300)" in row
    assert "(0.181)" in row
    assert "±" in row


def test_labels_that_are_not_known(tmp_path: Path) -> None:
    got = heedful("figure nips2012/table1 --labels wrong --data {}", tmp_path)
    assert got.code == 2
    assert "labels: expected right or published, got 'wrong'" in got.err


def test_sources_find_the_sets(folder: Path) -> None:
    sources = Sources(folder)
    by_world = {panel.world: panel for panel in FIGURES["nips2012/table1"].panels}
    assert set(by_world) == set(SETS)
    assert {world for world, panel in by_world.items() if not sources.lacks(panel)} == {ELECTION, JURA}
    told = sources.lacks(by_world[SUSHI])
    assert told is not None
    assert told.startswith(f"no sushi in {folder}: looked in sushi and the folder itself for sushi3a.5000.10.order, ")
    right = sources.choices(ELECTION, "right")
    assert sources.choices(ELECTION, "right") is right
    assert (sources.choices(ELECTION, "published").first != right.first).any()
    assert isinstance(split(right, 5, 0, 20), Split)
    assert (CPU, CP) == ("CPU", "CP")
