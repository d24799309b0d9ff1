"""What only the pages of a grading loop have: thresholds, the error against the median, weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from browsing import Visitor, words
from scales import BASE, CALM, GRADES

from heedful import Loop
from heedful.loop.interactions.findings import Findings
from heedful.loop.interactions.ordinal import texts as ordinal_texts
from heedful.loop.interactions.ordinal.model import GradingModel
from heedful.results.report import Arm, Counts, Difference, PredictionReport, PredictionWindow, Report
from heedful.server.pages.charts import chart, score_line
from loops import diverged, small_loop, values


def taught(path: Path, learner: str = "ordinal-logistic:n_ranks=5", lists: int = 40, **settings: Any) -> Loop:
    """A loop of which the grade grows with f0; three people, the third of whom is strict."""
    loop = small_loop(path, learner, **{"control": 0.1} | settings)
    x = {
        name: loop.projection.catalogue.features([version])[0][0]
        for name, version in loop.projection.catalogue.on_offer()
    }
    for n in range(lists):
        decision = loop.decide(id=f"d{n}", person=f"p{n % 3}", show=4)
        grade = {name: min(max(round(3 + 1.5 * float(x[name]) - (n % 3 == 2)), 1), 5) for name in decision.shown}
        loop.feedback(decision.id, id=f"e{n}", grade=grade)
    return loop


def test_thresholds_are_drawn_where_they_lie(visitor: Visitor, tmp_path: Path) -> None:
    with taught(tmp_path / "films.heedful", shrink=3.0) as loop:
        _, view = loop.projection.reading("p2")
        b = [float(each) for each in loop.learner.thresholds(view.shared)]
        assert view.person is not None
        assert isinstance(view.model, GradingModel)
        level = view.model.level(view.person)
        for person, shift in ((None, 0.0), ("p2", level)):
            cuts = loop.projection.interaction.cuts(view if person else view._replace(person=None))
            assert cuts is not None
            grades = score_line(cuts)
            spots = [left for left, _, _ in grades[1:]]
            assert spots == sorted(spots)
            low, high = b[0] - (b[-1] - b[0]) / 4, b[-1] + (b[-1] - b[0]) / 4
            assert spots == pytest.approx([100 * (each - low) / (high - low) for each in b], abs=0.01)
            assert grades[0][2] == f"below {b[0] + shift:.2f}".replace("-", "−")
            # what is told of a grade is where the model predicts it
            for name, grade in values(loop.predict(person=person)).items():
                weights = list(loop.weights_of(person).values())[:-1]
                version = loop.projection.catalogue.current[name]
                score = float(loop.projection.catalogue.features([version])[0] @ weights)
                cuts = [each + shift for each in b]
                assert grade == 1 + sum(score >= cut for cut in cuts)
    assert abs(level) > 0.01
    page = visitor.get(f"{BASE}/learned?person=p2")
    rects = page.all("svg[@class='cut-line']/rect[@class='threshold']")
    assert [float(each.attrib["x"].rstrip("%")) for each in rects] == spots
    assert grades[0][2] in page.at("weights")
    assert "style=" not in page.html


@pytest.mark.parametrize(
    ("learner", "told"),
    [
        ("multiclass:n_ranks=5", "Its learner, multiclass:n_ranks=5, has no single weight vector"),
        ("constant-rank:n_ranks=5", "Its learner, constant-rank:n_ranks=5, has no single weight vector"),
        ("widrow-hoff:n_ranks=5", "The longer the bar, the more it counts in the score of an item."),
    ],
)
def test_learners_without_thresholds(visitor: Visitor, tmp_path: Path, learner: str, told: str) -> None:
    taught(tmp_path / "films.heedful", learner, 12).close()
    page = visitor.get(f"{BASE}/learned")
    assert page.status == 200
    assert told in page.at("weights")
    assert page.all("svg[@class='cut-line']") == []
    assert bool(page.all("tr[@data-weight]")) == learner.startswith("widrow")
    seen = visitor.get(BASE)
    then = GRADES.give(visitor, seen, seen.names[0], 1, "new")
    assert then.marks[seen.names[0]].startswith("You said 1 ")
    assert ("no single weight vector" in words(then.tree)) != learner.startswith("widrow")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_weights_that_overflow_are_said_and_the_pages_go_on(visitor: Visitor, tmp_path: Path) -> None:
    with diverged(tmp_path / "films.heedful", **CALM) as loop:
        caveat = loop.overflown
    assert caveat
    for path in (BASE, f"{BASE}/learned"):
        seen = visitor.get(path)
        assert seen.status == 200
        assert f"{caveat[1:]}." in words(seen.tree)
        assert " nan" not in seen.html
        assert seen.all("tr[@data-weight]") == seen.all("ul[@class='bars']") == []
    assert caveat in words(visitor.get("/loops/films/row").tree)
    seen = visitor.get(BASE)
    then = GRADES.give(visitor, seen, seen.names[0], 2, "new")
    assert (then.status, then.lessons["new"]) == (200, True)
    assert "Nothing yet" not in visitor.get(f"{BASE}/learned").at("weights")


def test_the_verdict_says_what_the_interval_says() -> None:
    def found(apart: Difference | None, series: tuple[PredictionWindow, ...] = ()) -> PredictionReport:
        told = 200, 0.41, 0.93, apart, "" if apart else "why", series, {"exact": 0.625}
        return PredictionReport("mean error", True, "the median grade so far", *told)

    none = Arm(0, 0, None)
    report = Report(0, 200, True, None, 0, 0, none, none, None, "", (), Counts(0, 0, 0, 0, 0), None)

    def told(apart: Difference | None, series: tuple[PredictionWindow, ...] = ()) -> Findings:
        return ordinal_texts.findings(report, found(apart, series))

    better = told(Difference(-0.52, -0.6, -0.44, 40)).verdict
    assert (better.kind, better.short) == ("good", "Yes: it predicts better than always the median grade.")
    assert better.more == (
        "Mean error, over 200 answers: predictions 0.41, the median grade so far 0.93.",
        "Difference: −0.52, below 0 is better (95 % confidence interval: −0.60 to −0.44).",
        "Exactly right: 62 % of 200 grades.",
    )
    assert told(Difference(0.2, 0.1, 0.3, 40)).verdict.kind == "bad"
    assert told(Difference(0.0, -0.1, 0.1, 40)).verdict.kind == "open"
    assert told(None, (PredictionWindow(1, 1, 20, 0.5, 0.5),)).picture is None
    picture = told(None, tuple(PredictionWindow(i, i, 10, i / 97, 1.0) for i in range(97))).picture
    assert picture is not None
    assert len(json.loads(chart(picture))["x"]) <= 20
