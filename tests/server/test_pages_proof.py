"""The page that proves learners: what the log says, the experiment and promotions, of every kind, and every refusal."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from urllib.parse import quote
from xml.etree.ElementTree import Element

import numpy as np
import pytest
from browsing import Seen, Visitor, words

from heedful import Loop
from heedful.core.wording import share, share_of
from heedful.loop.experiment import VERDICTS
from heedful.loop.interactions import telling
from heedful.results.experiment import Experiment
from heedful.results.sentences import number
from heedful.server.keys import Keys
from heedful.server.pages.charts import Axis
from heedful.server.pages.evaluation_view import verdict
from heedful.server.pages.proof import fitting
from heedful.studies.arena import create_arena
from heedful.studies.outputs import Outputs
from heedful.studies.study import Study
from kinds import KINDS, Kind, each_kind, teach
from loops import rows, small_loop

PROOF = "/loops/l/proof"
F0 = {row["id"]: row["f0"] for row in rows(12, 4)}


def live(path: Path, rounds: int, start: int = 0) -> None:
    """Twenty people click what has the most of the first feature."""
    with Loop.open(path) as loop:
        for i in range(start, start + rounds):
            shown = loop.decide(show=4, id=f"d{i}", person=f"p{i % 20}").shown
            loop.feedback(f"d{i}", id=f"e{i}", clicks=[max(shown, key=lambda name: F0[name])])


def rows_of(page: Seen) -> list[Element]:
    """The rows of the tables of values."""
    return page.all("div[@id='told']//tr[@data-learner]")


@pytest.mark.slow
@each_kind
def test_every_learner_that_is_offered_is_evaluated_as_the_loop_does(
    visitor: Visitor, kind: Kind, tmp_path: Path
) -> None:
    with kind.make(tmp_path / "l.heedful") as loop:
        teach(kind, loop, range(12))
        offered, own = fitting(loop), loop.manifest.learner
        asked = offered or [kind.other]
        found = loop.evaluate(*asked)
    # One learner takes its answers, or has the offsets of people that this loop has.
    assert (offered == []) is (kind.name in ("best-worst", "ordinal", "routing"))
    first = visitor.get(PROOF)
    assert first.status == 200
    assert "style=" not in first.html
    assert [each.attrib["value"] for each in first.all("datalist[@id='learners']/option")] == offered
    assert rows_of(first) == []
    page = visitor.get(f"{PROOF}?learner={quote(' '.join(asked))}")
    assert page.status == 200
    told = page.at("told")
    for each in found.learners[1:]:
        assert verdict(found, each)[1] in told
        for value in each.values:
            assert value.warning in told
    for j, measure in enumerate(found.measures):
        assert measure.about in told
        for line in telling.refusals(found, j):
            assert line.text in told
        assert telling.needed(found, j) in told
    drawn = [value for each in found.learners for value in each.values if value.low is not None]
    apart = [value for each in found.learners for value in each.values if value.difference_low is not None]
    assert len(page.all("svg[@class='interval-bar']")) == len(drawn) + len(apart)
    assert {row.attrib["data-learner"] for row in rows_of(page)} <= {own, *asked}


@pytest.mark.slow
def test_an_interval_is_drawn_where_it_lies(visitor: Visitor, tmp_path: Path) -> None:
    small_loop(tmp_path / "l.heedful", "posterior", exploration=0.5, control=0.0).close()
    live(tmp_path / "l.heedful", 150)
    with Loop.open(tmp_path / "l.heedful") as loop:
        values = [each.values[0] for each in loop.evaluate("perceptron").learners]
    page = visitor.get(f"{PROOF}?learner=perceptron")
    ends = [(value.low or 0.0, value.value or 0.0, value.high or 0.0) for value in values]
    low, high = min(each[0] for each in ends), max(each[2] for each in ends)
    length, start = 1.08 * (high - low), low - 0.04 * (high - low)
    for row, (left, at, right) in zip(rows_of(page), ends):
        scale, bar, point = row.findall("td")[0].findall("svg/rect")
        assert scale.attrib["width"] == "100%"
        found = [float(each.rstrip("%")) for each in (bar.attrib["x"], bar.attrib["width"], point.attrib["x"])]
        expected = [left - start, right - left, 0.985 * (at - start)]
        assert found == pytest.approx([100.0 * each / length for each in expected], abs=0.02)
    zero = next(each for each in page.all("rect") if each.get("class") == "zero")
    least, most = values[1].difference_low or 0.0, values[1].difference_high or 0.0
    assert least < 0.0 < most  # so few answers cannot tell
    assert float(zero.attrib["x"].rstrip("%")) == pytest.approx(
        100.0 * (0.04 * (most - least) - least) / (1.08 * (most - least)), abs=0.02
    )
    assert "It cannot be told yet whether perceptron is better than posterior" in page.at("told")


def test_an_interval_of_which_an_end_is_not_known_is_not_drawn() -> None:
    axis = Axis.around([(0.0, 1.0), (-np.inf, 2.0), (None, None)])
    assert axis == Axis(-0.04, 1.04)
    assert axis.interval(0.5, 0.0, 1.0) == (3.7, 92.6, 50.0)
    assert axis.interval(0.5, -np.inf, 1.0) is None
    assert axis.interval(0.5, None, None) is None
    assert Axis.around([(-np.inf, np.inf)], 0.0, 5.0) == Axis(0.0, 5.0)


@pytest.mark.slow
def test_position_bias_is_drawn_where_it_lies(visitor: Visitor, tmp_path: Path) -> None:
    small_loop(tmp_path / "l.heedful", "posterior", exploration=0.5, control=0.0).close()
    live(tmp_path / "l.heedful", 150)
    with Loop.open(tmp_path / "l.heedful") as loop:
        bias = loop.evaluate().position_bias
    assert bias is not None
    rows = visitor.get(f"{PROOF}?learner=perceptron").all("section[@id='position-bias']//tbody/tr")
    assert [words(row).split(" ")[:3] for row in rows] == [
        [f"{each.place}", "and", f"{each.place + 1}"] for each in bias
    ]
    low, high = min(1.0, *(each.low for each in bias)), max(1.0, *(each.high for each in bias))
    for row, each in zip(rows, bias):
        assert f"{each.ratio:.3f} {each.low:.3f} to {each.high:.3f} {each.clicks:,}" in words(row)
        _, even, bar, _ = row.findall("td")[0].findall("svg/rect")
        start, length = low - 0.04 * (high - low), 1.08 * (high - low)
        found = [float(part.attrib["x"].rstrip("%")) for part in (even, bar)]
        assert found == pytest.approx([100.0 * (at - start) / length for at in (1.0, each.low)], abs=0.02)


def test_a_script_gets_the_evaluation_alone_and_a_refusal_in_its_place(visitor: Visitor, tmp_path: Path) -> None:
    with KINDS[0].make(tmp_path / "l.heedful") as loop:
        teach(KINDS[0], loop, range(6))
    part = visitor.get(f"{PROOF}?learner=perceptron", hx_request="true")
    assert (part.status, part.all("h1"), len(part.all("div[@id='told']"))) == (200, [], 1)
    again = visitor.get(f"{PROOF}?learner=perceptron", hx_request="true", hx_history_restore_request="true")
    assert len(again.all("h1")) == 1
    refused = visitor.get(f"{PROOF}?learner=prank", hx_request="true")
    assert (refused.status, refused.all("h1")) == (200, [])
    assert "expected one that is taught what is better" in words(refused.one("p[@role='alert']"))


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("learner=nobody", "Learner: expected one of heedful's"),
        ("learner=os:system", "Learner: expected one of heedful's"),
        ("learner=perceptron&alpha=2", "Alpha: expected"),
        ("learner=perceptron&alpha=x", "Alpha: expected a number, got 'x'"),
        (f"learner={'+'.join(f'perceptron@{i}' for i in range(11))}", "at most 10 names, got 11"),
        ("plan=1&share=101", "Share: expected 0 to 100 percent"),
        ("plan=1&share=nan", "Share: expected 0 to 100 percent"),
        ("plan=1&days=-1", "Days: expected"),
    ],
)
def test_what_is_wrong_is_said_on_the_page(visitor: Visitor, tmp_path: Path, query: str, told: str) -> None:
    small_loop(tmp_path / "l.heedful").close()
    page = visitor.get(f"{PROOF}?{query}")
    assert page.status == 422
    assert len(page.all("h1")) == 1
    [alert] = [each for each in page.all("p[@role='alert']") if "hidden" not in each.attrib]
    assert told in words(alert)


@each_kind
def test_kinds_that_show_no_rankings_say_so_instead_of_a_form(visitor: Visitor, kind: Kind, tmp_path: Path) -> None:
    with kind.make(tmp_path / "l.heedful") as loop:
        interleaves = loop.projection.interaction.ranks
    page = visitor.get(PROOF)
    actions = {form.get("action") for form in page.all("form")}
    assert (f"{PROOF}/start" in actions) is interleaves
    assert f"{PROOF}/promote" in actions
    said = "shows no rankings, and nothing else can be interleaved." in page.at("experiment")
    assert said is not interleaves
    if not interleaves:
        assert visitor.get(f"{PROOF}?plan=1").status == 422
        page = visitor.post(f"{PROOF}/start", {"candidate": "perceptron"})
        assert page.status == 422


@pytest.mark.slow
def test_an_experiment_from_its_plan_to_its_end(visitor: Visitor, tmp_path: Path) -> None:
    path = tmp_path / "l.heedful"
    small_loop(path, "posterior", exploration=0.5, control=0.0).close()
    live(path, 60)
    with Loop.open(path) as loop:
        plan = loop.plan_experiment(0.5, days=7.0)
    page = visitor.get(f"{PROOF}?plan=1&share=50&days=7")
    assert f"{plan.sessions:,} session" in page.at("plan")
    given = page.fields(f"{PROOF}/start")
    assert (given["share"], given["days"], "frozen" in given) == ("50", "7", False)
    sent = {"id": given["id"], "candidate": "perceptron", "share": "50", "frozen": "1"}
    for _ in range(2):  # a double click starts one
        answer = visitor.post(f"{PROOF}/start", sent)
        assert (answer.status, answer.headers["location"]) == (303, f"{PROOF}?said=started#experiment")
    again = visitor.post(f"{PROOF}/start", {"candidate": "perceptron"})
    assert again.status == 422
    assert "expected none that runs" in again.at("experiment")
    live(path, 120, 60)
    found = stands(path)
    assert (found.share, found.running, found.learner) == (0.5, True, "perceptron")
    assert found.frozen > 0
    page = visitor.get(f"{PROOF}?said=started")
    text = page.at("experiment")
    for told in (
        "perceptron against posterior",
        f"50 % of the people get lists that both learners draft together. Both sides rank as they did at version "
        f"{found.frozen:,}.",
        VERDICTS[found.verdict.verdict].format(learner="perceptron", against="posterior"),
        f"The e-value is {found.verdict.e_value:.4g}; from 20 on people's preference is decided.",
        f"In {found.agreement.decisions:,} lists of the loop's own learner, the candidate would have put the same item",
    ):
        assert told in text
    said, credit, answered = found.verdict, found.credit, found.answered
    assert credit is not None
    assert {words(each.find("dt")): words(each.find("dd")) for each in page.all("dl[@class='facts']/div")} == {
        "Sessions": f"{said.sessions:,}",
        "People": f"{said.people:,}",
        "Won by the candidate": f"{share(said.share)} ({share(said.low)} to {share(said.high)})",
        "Largest person": share(said.largest),
        "Credit by positions": f"{number(credit, 3, sign=True)} ± {found.credit_error:.3f}",
        "Coins": f"{found.coins.own:,} : {found.coins.candidate:,}",
        "People outside : inside": f"{found.people.own:,} : {found.people.candidate:,}",
        "Interleaved lists answered": _of(answered.answered, answered.interleaved),
        "Other lists answered": _of(answered.learned_answered, answered.learned),
    }
    e_value = page.one("div[@class='evidence']/svg/rect")
    expected = min(max(np.log(found.verdict.e_value) / np.log(20.0), 0.0), 1.0)
    assert float(e_value.attrib["width"]) == pytest.approx(100.0 * expected, abs=0.1)
    assert (
        [words(row) for row in page.all("details[@id='moves']//tbody/tr")]
        == [
            f"{move.item} {move.shown:,} {move.proposed:,} "
            + ("–" if move.places is None else f"{move.places:+.1f}".replace("-", "−"))
            for move in found.agreement.moves
        ]
        != []
    )
    assert len(page.all("details[@id='whose']//tbody/tr")) == len(found.agreement.people) > 0
    assert f"{PROOF}/start" not in {form.get("action") for form in page.all("form")}
    stop = {"id": page.fields(f"{PROOF}/stop")["id"]}
    for _ in range(2):
        answer = visitor.post(f"{PROOF}/stop", stop)
        assert (answer.status, answer.headers["location"]) == (303, f"{PROOF}?said=stopped#experiment")
    assert not stands(path).running
    page = visitor.post(f"{PROOF}/stop", {"id": "again"})
    assert (page.status, "none is running" in page.at("experiment")) == (422, True)
    assert "over" in page.at("experiment")


def _of(n: int, total: int) -> str:
    return f"{n:,} of {total:,} ({share_of(n, total)})"


def stands(path: Path) -> Experiment:
    with Loop.open(path) as loop:
        return loop.experiment()


@pytest.mark.slow
def test_a_promotion_needs_evidence_or_a_confirmation(visitor: Visitor, tmp_path: Path) -> None:
    path = tmp_path / "l.heedful"
    small_loop(path, "posterior", exploration=0.5, control=0.0).close()
    live(path, 30)
    refused = visitor.post(f"{PROOF}/promote", {"learner": "perceptron", "by": "ann", "reason": "to see"})
    assert refused.status == 422
    told = refused.at("promote")
    assert "perceptron was not promoted. Against it speaks: The log does not say that it is better" in told
    [anyway] = [form for form in refused.all("form") if form.get("id") == "anyway"]
    boxes = [field for field in anyway.iter("input") if field.get("type") == "checkbox"]
    assert [(box.attrib["name"], "required" in box.attrib, "checked" in box.attrib) for box in boxes] == [
        ("force", True, False)
    ]
    with Loop.open(path) as loop:
        assert loop.manifest.learner == "posterior"
    fields = {field.attrib["name"]: field.get("value", "") for field in anyway.iter("input")}
    assert (fields["learner"], fields["by"], fields["reason"]) == ("perceptron", "ann", "to see")
    for _ in range(2):
        answer = visitor.post(f"{PROOF}/promote", fields)
        assert (answer.status, answer.headers["location"]) == (303, f"{PROOF}?said=promoted#promote")
    with Loop.open(path) as loop:
        [made] = loop.promotions()
        assert (made.learner, made.before, made.by, made.reason) == ("perceptron", "posterior", "ann", "to see")
        assert made.forced
    page = visitor.get(f"{PROOF}?said=promoted")
    [row] = page.all("table[@id='promotions']/tbody/tr")
    for part in ("perceptron", f"{made.seq:,}", "posterior", "ann", "to see", "forced", made.forced[0][1:]):
        assert part in words(row)
    assert "The log still holds this evidence." in words(row)
    assert f"heedful rollback l {made.seq - 1}" in page.at("promote")
    assert page.at("main").count("perceptron serves now") == 1
    with Loop.open(path) as loop:
        loop.forget("p3")
        [made] = loop.promotions()
        assert made.changed
    assert "The evidence has changed since" in visitor.get(PROOF).at("promotions")
    with Loop.open(path) as loop:
        loop.rollback(made.seq - 1)
    page = visitor.get(PROOF)
    assert "rolled back" in page.at("promotions")
    assert "heedful rollback" not in page.at("promote")


@pytest.mark.slow
def test_the_candidate_of_the_experiment_is_promoted_by_its_evidence(visitor: Visitor, tmp_path: Path) -> None:
    path = tmp_path / "l.heedful"
    small_loop(path, "posterior", exploration=0.5, control=0.0).close()
    with Loop.open(path) as loop:
        loop.start_experiment("perceptron", share=1.0)
    live(path, 5)
    page = visitor.get(PROOF)
    against = [words(each) for each in page.all("ul[@id='against']/li")]
    assert against == [f"{each[:1].upper()}{each[1:]}." for each in stands(path).against_promotion]
    refused = visitor.post(f"{PROOF}/promote", {"learner": ""})
    assert refused.status == 422
    assert [each for each in against if each not in refused.at("promote")] == []
    [anyway] = [form for form in refused.all("form") if form.get("id") == "anyway"]
    fields = {field.attrib["name"]: field.get("value", "") for field in anyway.iter("input")}
    assert fields["learner"] == ""
    assert visitor.post(f"{PROOF}/promote", fields).status == 303
    with Loop.open(path) as loop:
        assert loop.promotions()[0].evidence["method"] == "interleaving"
        assert loop.manifest.learner == "perceptron"


def test_of_a_long_log_what_is_left_of_evidence_is_told_when_asked(
    visitor: Visitor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heedful.server.pages.proof.AT_ONCE", 5)
    with small_loop(tmp_path / "l.heedful", "posterior", exploration=0.5, control=0.0) as loop:
        loop.promote("perceptron", force=True)
    live(tmp_path / "l.heedful", 5)
    page = visitor.get(PROOF)
    assert "posterior" in page.at("promotions")
    assert "left" not in page.at("promotions")
    [more] = [link.attrib["href"] for link in page.all("a") if words(link) == "What is left of the evidence?"]
    page = visitor.get(more.partition("#")[0])
    assert "The log still holds this evidence." in page.at("promotions")
    assert "What is left of the evidence?" not in page.at("promote")


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"learner": ""}, "Learner: expected its name, as no experiment is running."),
        ({"learner": "os:system"}, "Learner: expected one of heedful's"),
        ({"learner": "posterior:swap=0"}, "expected another than the one that serves"),
        ({"learner": "perceptron", "force": "yes"}, "Force: expected 1 or nothing, got 'yes'."),
        ({"learner": "perceptron", "by": "x" * 1001}, "By: expected"),
    ],
)
def test_no_promotion(visitor: Visitor, tmp_path: Path, form: dict[str, str], told: str) -> None:
    small_loop(tmp_path / "l.heedful").close()
    page = visitor.post(f"{PROOF}/promote", form)
    assert page.status == 422
    assert told in page.at("promote")
    with Loop.open(tmp_path / "l.heedful") as loop:
        assert loop.promotions() == ()


def test_who_may_only_look_is_shown_no_button(visitor: Visitor, tmp_path: Path) -> None:
    with small_loop(tmp_path / "l.heedful") as loop:
        loop.start_experiment("perceptron", share=0.5)
    with closing(Keys(tmp_path)) as keys:
        visitor.sign_in(keys.create("k", scopes=["read"])[1])
    page = visitor.get(f"{PROOF}?learner=perceptron")
    assert page.status == 200
    assert [form.get("method") for form in page.all("form")] == ["post", "get"]  # to sign out, and to evaluate


def test_an_arena_is_told_where_its_models_are_compared(visitor: Visitor, tmp_path: Path) -> None:
    """Its learner chooses who meets whom, and its leaderboard needs none: no form is offered that proves little."""
    outputs = Outputs({"q": "What?"}, {model: {"q": f"Text of {model}"} for model in ("quartz", "heron")})
    create_arena(tmp_path / "l.heedful", outputs, Study(kind="answers"), "ranking").close()
    page = visitor.get(PROOF)
    assert page.status == 200
    assert "nothing to evaluate or to promote here" in page.at("arena")
    [link] = page.one("p[@id='arena']").findall("a")
    assert visitor.get(link.attrib["href"]).status == 200
    assert [each.attrib.get("action") for each in page.all("main//form")] == []
