"""Figures are run: the same arrivals for every line, nothing twice, and the bounds of [J15] where they hold."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.core.fold import play, trace
from heedful.diagnostics import slacks, true_utilities
from heedful.experiments.setting import Setting
from heedful.learners.registry import make_user
from heedful.papers import FIGURES, runner
from heedful.papers.datasets import FILES, files_of, missing_files
from heedful.papers.figure import (
    AVERAGE,
    CUMULATIVE,
    HOLDS,
    QUADRATIC,
    Claim,
    Figure,
    Outcome,
    Panel,
    Size,
    Verdict,
    judged_rounds,
    verdicts,
)
from heedful.papers.panels import BOOKS, CHAINS, WEB, curve, web
from heedful.papers.run_figure import Sources, missing_panels, run
from heedful.papers.theory import NONE, guaranteed_regret, with_slack
from papers.invented import letor_files

SMALL = Size(40, 3)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    folder = tmp_path_factory.mktemp("data")
    letor_files(folder / "letor4-mq2008")
    return Sources(folder)


def figure(*panels: Panel) -> Figure:
    return Figure("test/fig", "nobody's", "a test", panels, ())


STRICT = "strict:alpha=0.5"


@pytest.mark.slow
def test_a_run_is_the_trace_of_its_seed(sources: Sources) -> None:
    panel = web(curve("p", "perceptron", STRICT), curve("c", "convex", STRICT), quick=SMALL)
    outcome = run(figure(panel), sources, quick=True)
    setting = sources.setting("web", make_user(STRICT), 3)
    for label, spec in (("p", "perceptron"), ("c", "convex")):
        for seed in range(3):
            wanted = trace(setting.learner(spec), setting.scenes[seed].world, 40, seed, interpreted=True)
            np.testing.assert_allclose(outcome["web"][label].regrets[seed], wanted, atol=1e-12)
        np.testing.assert_allclose(outcome["web"][label].M, setting.R * np.linalg.norm(setting.scenes[0].w_star))


def simulated(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The learners of each call of `simulate` from now on, and whether they are interpreted."""
    ran: list[tuple[Any, ...]] = []
    simulate = runner.simulate

    def counted(learners: Any, *args: Any, **how: Any) -> Any:
        ran.append((*learners, how.get("interpreted", False)))
        return simulate(learners, *args, **how)

    monkeypatch.setattr(runner, "simulate", counted)
    return ran


@pytest.mark.slow
def test_what_two_figures_share_is_run_once(sources: Sources, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = simulated(monkeypatch)
    size = Size(31, 2)
    first = run(figure(web(curve("p", "perceptron", STRICT), quick=size)), sources, quick=True)
    both = web(curve("x", "perceptron", STRICT), curve("c", "convex", STRICT), quick=size)
    second = run(figure(both), sources, quick=True)
    assert ran == [("perceptron", False), ("convex", False)]
    np.testing.assert_array_equal(first["web"]["p"].regrets, second["web"]["x"].regrets)
    assert list(second["web"]) == ["x", "c"]


@pytest.mark.slow
def test_who_is_timed_beside_a_solver_is_not_compiled_either(sources: Sources, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ranking SVM cannot be compiled; the time of machine code beside its own says nothing about the two methods."""
    pytest.importorskip("sklearn")
    ran = simulated(monkeypatch)
    size = Size(17, 2)
    alone = run(figure(web(curve("p", "perceptron", STRICT), quick=size)), sources, quick=True)
    both = web(curve("p", "perceptron", STRICT), curve("s", "ranking-svm", STRICT), quick=size)
    beside = run(figure(both), sources, quick=True)
    assert ran == [("perceptron", False), ("perceptron", "ranking-svm", True)]
    np.testing.assert_array_equal(alone["web"]["p"].regrets, beside["web"]["p"].regrets)


@pytest.mark.slow
def test_little_is_kept_where_there_is_little_room(sources: Sources, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "KEPT", 1)
    for rounds in (11, 12, 13):
        run(figure(web(curve("p", "perceptron", STRICT), quick=Size(rounds, 1))), sources, quick=True)
    assert [key[2].rounds for key in sources.cache] == [13]


@pytest.mark.slow
def test_the_best_in_hindsight_is_drawn(sources: Sources) -> None:
    several = curve("b", "dueling-bandit", STRICT)._replace(
        learners=tuple(f"dueling-bandit:gamma=1,delta={d}" for d in (0.01, 0.1, 1))
    )
    best = run(figure(web(several, quick=SMALL)), sources, quick=True)["web"]["b"]
    each = [
        run(figure(web(curve("b", spec, STRICT), quick=SMALL)), sources, quick=True)["web"]["b"].regrets[:, :15].mean()
        for spec in several.learners
    ]
    assert best.regrets[:, :15].mean() == min(each)
    assert best.learner == several.learners[int(np.argmin(each))]


@pytest.mark.slow
def test_claims_see_the_queries_once(sources: Sources) -> None:
    """Of 40 rounds of 15 queries, the first 15: afterwards nothing is new. What is drawn goes on."""
    seen = []

    def look(outcome: Outcome) -> Verdict:
        line = outcome["web"]["p"]
        seen.append(line)
        return Verdict(HOLDS, f"{line.regrets.shape}")

    panel = web(curve("p", "perceptron", STRICT), quick=SMALL)
    looked = Figure("test/fig", "nobody's", "a test", (panel,), (Claim("Looked at.", ("web",), look),))
    outcome = run(looked, sources, quick=True)
    assert outcome["web"]["p"].once == 15
    assert outcome["web"]["p"].regrets.shape == (3, 40)
    [verdict] = verdicts(looked, outcome)
    assert verdict.words == "(3, 15)"
    [line] = seen
    np.testing.assert_array_equal(line.regrets, outcome["web"]["p"].regrets[:, :15])
    assert line.marks.max() == 15  # the bound is looked at in the last round, too
    assert line.bound.size == line.marks.size < outcome["web"]["p"].bound.size
    assert judged_rounds(outcome) == (
        "Claims about web search are judged on rounds 1 to 15, once through the queries: from then on the same queries "
        "come again."
    )
    shorter = run(figure(web(curve("p", "perceptron", STRICT), quick=Size(12, 2))), sources, quick=True)
    assert shorter["web"]["p"].once == 0
    assert judged_rounds(shorter) == ""


@pytest.mark.slow
def test_what_the_world_decides_stands_in_a_learner(sources: Sources) -> None:
    setting = sources.setting("web", make_user(STRICT), 1)
    norm = float(np.linalg.norm(setting.scenes[0].w_star))
    spec = "second-order:gamma={gamma!r},radius={norm!r}"
    lines = curve("s", spec, STRICT), curve("e", "exponentiated:horizon={rounds}", STRICT)
    ran = run(figure(web(*lines, quick=SMALL)), sources, quick=True)["web"]
    assert setting.learner(ran["s"].learner).radius == norm
    assert setting.learner(ran["s"].learner).gamma == 1.0 / (3.0 * setting.R * norm)
    assert setting.learner(ran["e"].learner).horizon == 15  # what is judged: once through the queries


def test_without_data_nothing_is_run_and_it_is_said(tmp_path: Path) -> None:
    sources = Sources(tmp_path)
    for name in ("jair2015/fig1", "jair2015/fig2", "jair2015/fig9"):
        why = missing_panels(FIGURES[name], sources)
        assert set(why) == {panel.key for panel in FIGURES[name].panels}
        assert all(str(tmp_path) in words for words in why.values())
        assert run(FIGURES[name], sources, quick=True) == {}
    assert missing_panels(FIGURES["jair2015/lemma3"], sources) == {}


@pytest.mark.parametrize(
    ("world", "name"),
    [(WEB, "MQ2008"), (CHAINS, "trec-session-2012"), (CHAINS, "trec-session"), (BOOKS, "book-crossing")],
)
def test_folders_have_more_than_one_name(tmp_path: Path, world: str, name: str) -> None:
    (tmp_path / name).mkdir()
    wanted = [tmp_path / name / file for file in FILES[world]]
    for file in wanted:
        assert files_of(world, tmp_path) == []
        file.touch()
    assert files_of(world, tmp_path) == wanted


SESSION = """<session num="1" starttime="0" userid="9">
  <topic num="{topic}"><desc>made up</desc></topic>
  <interaction num="1" starttime="1.5" type="reformulate"><query>a made up query</query>
    <results>{results}</results>
    <clicked><click num="1"><rank>{clicked}</rank><starttime>3</starttime><endtime>9</endtime></click></clicked>
  </interaction>
  <currentquery starttime="20"><query>another</query></currentquery>
</session>"""
"""A session as the track has them; in 2013 its documents are of ClueWeb12."""


def write_track(folder: Path, year: int, clicked: list[int]) -> None:
    """The files of a year: a session for each of these ranks clicked, of four results with grades 0, 1, 2, 3."""
    folder.mkdir(exist_ok=True)
    tag, name = ("clueweb09id", "clueweb09-en") if year == 2012 else ("clueweb12id", "clueweb12-0000wb-")
    sessions, judged = [], []
    for topic, rank in enumerate(clicked, 1):
        results = "".join(
            f'<result rank="{i + 1}"><url>http://x.org/{i}</url><{tag}>{name}{topic}-{i}</{tag}><title>t</title>'
            "<snippet>s</snippet></result>"
            for i in range(4)
        )
        sessions.append(SESSION.format(topic=topic, results=results, clicked=rank))
        judged += [f"{topic} 0 {name}{topic}-{i} {i}\n" for i in range(4)]
    text = f"<sessiontrack{year}>{''.join(sessions)}</sessiontrack{year}>"
    (folder / f"sessiontrack{year}.xml").write_text(text)
    (folder / f"qrels.{year}.txt").write_text("".join(judged))


@pytest.mark.slow
def test_the_tracks_of_2012_and_2013_are_chains_where_they_are(tmp_path: Path) -> None:
    """One year or both, in one folder or two; what is clicked on top of 0 1 2 3 gains by its grade."""
    clicks = {2012: [4, 2], 2013: [1, 3, 4]}
    fig1 = FIGURES["jair2015/fig1"]
    for years in ((2012,), (2013,), (2012, 2013)):
        apart, together = tmp_path / f"apart{len(years)}{years[0]}", tmp_path / f"together{len(years)}{years[0]}"
        for folder in (apart, together):
            folder.mkdir()
        for year in years:
            write_track(apart / f"trec-session-{year}", year, clicks[year])
            write_track(together / "trec-session", year, clicks[year])
        wanted = [rank for year in years for rank in clicks[year]]
        for folder in (apart, together, together / "trec-session"):
            sources = Sources(folder)
            assert missing_panels(fig1, sources) == {}
            ran = run(fig1, sources)["chains"]
            assert ran["normal"].regrets.shape == (len(wanted), 1)
            r = 1.25 * np.arange(4)
            discounts = 1.0 / np.log2(np.arange(4) + 2.0)
            gains = [
                r[[rank - 1, *(i for i in range(4) if i != rank - 1)]] @ discounts - r @ discounts for rank in wanted
            ]
            np.testing.assert_allclose(ran["normal"].regrets[:, 0], gains, atol=1e-12)
            # three rankings of each chain, in a row of its own
            three = np.column_stack([ran[condition].regrets for condition in ("normal", "swapped", "reversed")])
            np.testing.assert_array_equal(ran["all"].regrets, three)
            assert ran["all"].M.shape == three.shape


def test_half_a_track_is_none(tmp_path: Path) -> None:
    write_track(tmp_path / "trec-session-2013", 2013, [1])
    (tmp_path / "trec-session-2013" / "qrels.2013.txt").unlink()
    assert missing_files(CHAINS, tmp_path) == (
        f"no trec-session-2012 in {tmp_path}: looked in trec-session-2012, trec-session-2013, trec-session and the "
        "folder itself for sessiontrack2012.xml and qrels.2012.txt, or sessiontrack2013.xml and qrels.2013.txt, plain "
        "or .gz"
    )
    assert Sources(tmp_path).lacks(FIGURES["jair2015/fig1"].panels[0]) == missing_files(CHAINS, tmp_path)


def test_what_was_looked_for_is_told(tmp_path: Path) -> None:
    assert Sources(tmp_path).lacks(FIGURES["coactive2012/fig2"].panels[0]) == (
        f"no letor4-mq2008 in {tmp_path}: looked in letor4-mq2008, MQ2008 and the folder itself for S1.txt, S2.txt, "
        "S3.txt, S4.txt and S5.txt, plain or .gz"
    )
    assert missing_files(BOOKS, tmp_path).endswith("and the folder itself for BX-Book-Ratings.subset.csv, plain or .gz")


def test_without_scikit_learn_there_is_no_ranking_svm(sources: Sources, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.papers.run_figure.find_spec", lambda name: None)
    assert ".[sklearn]" in missing_panels(FIGURES["coactive2012/fig3"], sources)["web"]
    assert missing_panels(FIGURES["coactive2012/fig2"], sources) == {}


def test_a_folder_that_is_a_data_set_and_files_that_are_named(tmp_path: Path) -> None:
    files = letor_files(tmp_path / "some")
    [panel] = FIGURES["coactive2012/fig2"].panels
    assert Sources(tmp_path / "some").lacks(panel) == ""
    assert Sources(tmp_path).lacks(panel) != ""
    named = Sources(tmp_path, files[:2])
    assert named.lacks(panel) == ""
    assert named.setting("web", make_user(STRICT), 1).rounds == 6


def test_lemma_3_is_met_by_every_learner(tmp_path: Path) -> None:
    """[J15] Lemma 3: REG_T = 2 / sqrt T on its stream, which is the right side of Theorem 1."""
    one_figure = FIGURES["jair2015/lemma3"]
    outcome = run(one_figure, Sources(tmp_path), quick=True)
    assert [verdict.conclusion for verdict in verdicts(one_figure, outcome)] == [HOLDS]
    assert outcome["lower"]["perceptron"].marks[-1] == 100


# ---------------------------------------------------------------------------- bounds


MARKS = np.array([1.0, 4.0, 40.0])


def setting_of(sources: Sources, user: str) -> Setting:
    return sources.setting("web", make_user(user), 2)


@pytest.mark.parametrize(
    ("user", "spec", "theorem", "factor"),
    [
        (STRICT, "perceptron", "Theorem 1", 1.0),
        (STRICT, "perceptron:batch=4", "Lemma 4", 2.0),
        ("expected:alpha=0.5,strict=0.5", "perceptron", "Corollary 2", 1.0),
    ],
)
def test_the_bounds_of_the_perceptron(sources: Sources, user: str, spec: str, theorem: str, factor: float) -> None:
    """[J15] Theorem 1, Corollary 2, Lemma 4 without slack: 2 R |w*| sqrt(k/t) / alpha, summed t times that."""
    setting = setting_of(sources, user)
    wanted = factor * 2.0 * setting.R * np.linalg.norm(setting.scenes[0].w_star) / (0.5 * np.sqrt(MARKS))
    average = guaranteed_regret(setting.learner(spec), make_user(user), setting, AVERAGE, MARKS)
    assert average.theorem == theorem
    np.testing.assert_allclose(average.values, wanted)
    added = guaranteed_regret(setting.learner(spec), make_user(user), setting, CUMULATIVE, MARKS)
    np.testing.assert_allclose(added.values, MARKS * wanted)


def test_theorem_5_wants_a_fixed_rate(sources: Sources) -> None:
    """[J15] Theorem 5 at t = T: |w*|_1 (2 ln 2N + 1) S / (alpha sqrt T)."""
    setting, user = setting_of(sources, STRICT), make_user(STRICT)
    free = guaranteed_regret(setting.learner("exponentiated"), user, setting, AVERAGE, MARKS)
    assert (free.theorem, free.values.size) == ("Theorem 5", 0)
    assert "horizon" in free.lacking
    fixed = guaranteed_regret(setting.learner("exponentiated:horizon=40"), user, setting, AVERAGE, MARKS)
    l1 = np.abs(setting.scenes[0].w_star).sum()
    assert fixed.values[-1] == pytest.approx(l1 * (2.0 * math.log(6) + 1.0) * setting.S / (0.5 * math.sqrt(40)))


def test_theorems_6_and_8_of_the_quadratic_loss(sources: Sources) -> None:
    """[J15] Theorem 8 with the gamma and the ball that it covers; with gamma = 1 and radius 100 it says why not."""
    setting, user = setting_of(sources, "strict:alpha=1"), make_user("strict:alpha=1")
    norm = float(np.linalg.norm(setting.scenes[0].w_star))
    M = setting.R * norm
    plain = guaranteed_regret(setting.learner("second-order"), user, setting, QUADRATIC, MARKS)
    assert (plain.theorem, plain.values.size) == ("Theorem 8", 0)
    assert "gamma" in plain.lacking
    gamma = 1.0 / (3.0 * M)
    covered = guaranteed_regret(
        setting.learner(f"second-order:gamma={gamma!r},radius={norm!r}"), user, setting, QUADRATIC, MARKS
    )
    logs = np.log(4.0 * setting.R**2 * MARKS * gamma + 1.0)
    wanted = 6.0 * M * (4.0 * norm**2 / MARKS + 3.0 * logs / (2.0 * MARKS * gamma))  # N = 3, eps = 1
    np.testing.assert_allclose(covered.values, MARKS * wanted)
    sixth = guaranteed_regret(setting.learner(f"convex:radius={norm!r}"), user, setting, QUADRATIC, MARKS)
    d2, root = 4.0 * norm**2, np.sqrt(MARKS)
    np.testing.assert_allclose(sixth.values, MARKS * 6.0 * M * (d2 / (2 * root) + d2 / MARKS + 4 * setting.R**2 / root))


def test_noisy_feedback_has_no_bound_without_its_slack(sources: Sources) -> None:
    setting, user = setting_of(sources, "noisy:depth=3"), make_user("noisy:depth=3")
    learner = setting.learner("perceptron")
    assert guaranteed_regret(learner, user, setting, AVERAGE, MARKS).values.size == 0
    found = with_slack(learner, setting, AVERAGE, MARKS, 0.5, 2)
    assert found.theorem.startswith("Theorem 1 with the slack")
    averages = [
        np.cumsum(trace(learner, scene.world, 40, scene.draw, interpreted=True)) / np.arange(1, 41)
        for scene in setting.scenes
    ]
    regret = np.mean(averages, axis=0)[MARKS.astype(int) - 1]
    assert (regret <= found.values + 1e-12).all()
    # at alpha = 0.5 the slack is half the regret less the gain: what is promised beyond the constant term
    constant = 2.0 * setting.R * np.linalg.norm(setting.scenes[0].w_star) / (0.5 * np.sqrt(MARKS))
    assert not np.allclose(found.values, constant)
    added = with_slack(learner, setting, CUMULATIVE, MARKS, 0.5, 2)
    np.testing.assert_allclose(added.values, MARKS * found.values)


def test_with_slack_there_are_also_the_bounds_of_batches_and_of_convex_losses(sources: Sources) -> None:
    """[J15] Lemma 4 and Theorem 6 with the slacks of noisy answers; Theorem 8 says what it lacks, an SVM has none."""
    setting = setting_of(sources, "noisy:depth=3")
    batches = with_slack(setting.learner("perceptron:batch=4"), setting, AVERAGE, MARKS, 0.5, 2)
    assert batches.theorem.startswith("Lemma 4 with the slack")
    norm = float(np.linalg.norm(setting.scenes[0].w_star))
    convex = setting.learner(f"convex:radius={norm!r}")
    found = with_slack(convex, setting, QUADRATIC, MARKS, 0.5, 1)
    assert found.theorem.startswith("Theorem 6 with the slack")
    log = [played for played, _ in play(convex, setting.scenes[0].world, 40, setting.scenes[0].draw)]
    xi = np.maximum(slacks(true_utilities(log, setting.space, setting.scenes[0].w_star), 0.5), 0.0)
    G, d2, root = 6.0 * setting.R * norm, 4.0 * norm**2, np.sqrt(MARKS)
    noise = 2.0 * np.array([xi[: int(t)].mean() for t in MARKS])
    wanted = G / 0.5 * (noise + d2 / (2.0 * root) + d2 / MARKS + 4.0 * setting.R**2 / root)
    np.testing.assert_allclose(found.values, MARKS * wanted)
    second = with_slack(setting.learner("second-order"), setting, QUADRATIC, MARKS, 0.5, 1)
    assert (second.theorem, second.values.size) == ("Theorem 8", 0)
    assert "gamma" in second.lacking
    assert with_slack(setting.learner("posterior:swap=0"), setting, AVERAGE, MARKS, 0.5, 1) == NONE
