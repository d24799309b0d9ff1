"""The pages of a grading loop: what they predict and show, what a grade does, what is refused, what was learned."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from browsing import Seen, Visitor, words

from heedful import Loop
from heedful.loop.cluster_robust import Difference
from heedful.loop.interactions.findings import Findings
from heedful.loop.interactions.ordinal import texts as ordinal_texts
from heedful.loop.interactions.ordinal.model import GradingModel
from heedful.loop.prediction_report import PredictionReport, PredictionWindow
from heedful.loop.report import Arm, Counts, Report
from heedful.server.main import served
from heedful.server.pages import scale_widget
from heedful.server.pages.charts import chart
from heedful.server.pages.score_line import score_line
from loops import bits, diverged, small_loop, values

CALM: dict[str, Any] = {"control": 0.0, "exploration": 0.0}
BASE = "/loops/films"
Form = dict[str, str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def visitor(folder: Path) -> Iterator[Visitor]:
    with served(folder) as url, closing(Visitor(url)) as found:
        yield found


def made(folder: Path, learner: str = "averaged-prank:n_ranks=5", name: str = "films", **settings: Any) -> Path:
    path = folder / f"{name}.heedful"
    small_loop(path, learner, **CALM | settings).close()
    return path


def names(seen: Seen) -> list[str]:
    """The cards, from the top."""
    return [each.attrib["data-key"] for each in seen.all("ol[@id='cards']/li")]


def marks(seen: Seen) -> dict[str, str]:
    """What stands on each card of its grade."""
    return {each.attrib["data-key"]: words(each.find(".//p[@class='mark']")) for each in seen.all("ol[@id='cards']/li")}


def state(seen: Seen) -> Form:
    """What the page keeps of its cards."""
    return {field.attrib["name"]: field.attrib["value"] for field in seen.one("form[@id='corrections']").iter("input")}


def grades(visitor: Visitor, seen: Seen, item: str, grade: int | str, event: str, **more: str) -> Seen:
    """Give a grade as the script does."""
    kept = state(seen)
    form = {"kind": "grade", "item": item, "grade": str(grade), "event": event}
    form |= {"hand": kept["hand"], "decision": kept["decision"]} | more
    return visitor.post(f"{BASE}/teach", form, hx_request="true")


def lessons(seen: Seen) -> dict[str, bool]:
    """The last lessons, newest first, and whether each still counts."""
    return {each.attrib["data-key"]: "class" not in each.attrib for each in seen.all("ul[@class='lessons']/li")}


def said(seen: Seen) -> str:
    return seen.one("section[@id='hand']").attrib["data-said"]


# ---------------------------------------------------------------------------- the cards


def test_every_card_has_what_is_predicted_and_a_button_for_each_grade(visitor: Visitor, folder: Path) -> None:
    path = made(folder)
    with Loop.open(path) as loop:
        for n, grade in enumerate([1, 5, 2, 4, 3, 1]):
            loop.decide([f"i{n}"], id=f"d{n}")
            loop.feedback(f"d{n}", id=f"e{n}", grade={f"i{n}": grade})
    seen = visitor.get(BASE)
    with Loop.open(path) as loop:
        predicted = values(loop.predict(names(seen)))
        decision = loop.projection.find_decision(state(seen)["decision"])
        assert decision is not None
        assert decision.record.predicted == tuple(predicted.values())
    assert list(predicted) == names(seen)  # the highest first
    assert marks(seen) == {name: f"Predicted: {grade}" for name, grade in predicted.items()}
    for card in seen.all("ol[@id='cards']/li"):
        buttons = card.findall(".//button[@name='grade']")
        assert [button.attrib["value"] for button in buttons] == ["1", "2", "3", "4", "5"]
        [marked] = [button for button in buttons if "data-predicted" in button.attrib]
        assert int(marked.attrib["value"]) == predicted[card.attrib["data-key"]]
        assert words(marked) == f"{marked.attrib['value']} of 1 to 5, nearest to the prediction"
        assert {button.attrib["aria-pressed"] for button in buttons} == {"false"}
        assert card.find(".//*[@role='group']").attrib["aria-labelledby"]  # type: ignore[union-attr]
    for coactive in ("None of these", "rather have", "drag"):
        assert coactive not in seen.html


def test_many_grades_are_typed_in(visitor: Visitor, folder: Path) -> None:
    made(folder, f"prank:n_ranks={scale_widget.BUTTONS}")
    assert len(visitor.get(BASE).all("ol[@id='cards']/li[1]//button[@name='grade']")) == scale_widget.BUTTONS
    made(folder, "prank:n_ranks=100", "hundred")
    seen = visitor.get("/loops/hundred")
    assert seen.all("button[@name='grade']") == []
    fields = seen.all("input[@name='grade']")
    assert len(fields) == len(names(seen)) == 8
    assert {(each.attrib["min"], each.attrib["max"], each.attrib["type"]) for each in fields} == {
        ("1", "100", "number")
    }


def test_a_grade_is_one_lesson_and_the_card_says_what_came_of_it(visitor: Visitor, folder: Path) -> None:
    path = made(folder)
    seen = visitor.get(BASE)
    item = names(seen)[2]
    then = grades(visitor, seen, item, 2, "e1")
    assert then.status == 200
    with Loop.open(path) as loop:
        [told] = loop.lessons()
        assert (told.form, told.chosen, told.values, told.decision) == (
            "grade",
            (item,),
            (2.0,),
            state(seen)["decision"],
        )
        now = values(loop.predict(names(seen)))
    assert names(then) == names(seen)  # nothing moves from under the hand
    expected = {name: f"Predicted: {grade}" for name, grade in now.items()}
    assert marks(then) == expected | {item: f"You said 2 · predicted now: {now[item]}"}
    assert said(then).startswith(f"{item}: 2. Predicted before: 5, now: ")
    assert then.one("section[@id='hand']").attrib["data-lesson"] == "e1"
    assert f"Graded {item}: 2" in then.html
    [pressed] = then.all("button[@aria-pressed='true']")
    assert (pressed.attrib["value"], pressed.attrib["data-focus"]) == ("2", f"grade 2 {item}")
    other = grades(visitor, then, names(seen)[5], 4, "e2")
    assert state(other)["decision"] == state(seen)["decision"]  # both answer the one list
    with Loop.open(path) as loop:
        counts, found = loop.projection.log.counts(), loop.report().prediction
        assert (counts["decision"], counts["feedback"]) == (1, 2)
        assert found is not None
        assert found.answers == 2


def test_sent_again_it_counts_once(visitor: Visitor, folder: Path) -> None:
    path = made(folder)
    seen = visitor.get(BASE)
    item = names(seen)[0]
    once = grades(visitor, seen, item, 3, "same")
    twice = grades(visitor, seen, item, 3, "same")
    assert (once.status, twice.status, marks(once)) == (200, 200, marks(twice))
    assert (grades(visitor, seen, item, 4, "same").status, lessons(twice)) == (409, {"same": True})
    with Loop.open(path) as loop:
        assert loop.projection.log.counts()["feedback"] == 1


def test_a_second_grade_of_a_card_stands_in_place_of_the_first(visitor: Visitor, folder: Path) -> None:
    """Also where the first is sent again; a grade of other cards is left alone."""
    path = made(folder)
    seen = visitor.get(BASE)
    one, other = names(seen)[:2]
    grades(visitor, seen, one, 1, "e1")
    grades(visitor, seen, other, 4, "e2")
    then = grades(visitor, seen, one, 3, "e3")
    assert lessons(then) == {"e3": True, "e2": True, "e1": False}
    assert marks(then)[one].startswith("You said 3 ")
    again = grades(visitor, seen, one, 1, "e1")
    assert lessons(again) == {"e3": True, "e2": True, "e1": False}
    assert marks(again) == marks(then)
    grades(visitor, seen, one, 3, "e3")
    with Loop.open(path) as loop:
        left = bits(loop)
        assert loop.projection.log.counts()["undo"] == 1
        assert loop.verify() == []
    plain = made(folder, name="plain")
    with Loop.open(plain) as loop:
        decision = loop.decide(json.loads(state(seen)["hand"]))
        loop.feedback(decision.id, grade={other: 4})
        loop.feedback(decision.id, grade={one: 3})
        assert bits(loop) == left


def test_an_answer_that_grades_several_is_not_taken_back_for_one(visitor: Visitor, folder: Path) -> None:
    path = made(folder)
    seen = visitor.get(BASE)
    one, other = names(seen)[:2]
    visitor.http.post(
        "/v1/loops/films/feedback",
        json={"decision": state(seen)["decision"], "id": "both", "grade": {one: 2, other: 4}},
    ).raise_for_status()
    then = grades(visitor, seen, one, 3, "e1")
    assert lessons(then) == {"e1": True, "both": True}
    assert [marks(then)[name][:10] for name in (one, other)] == ["You said 3", "You said 4"]
    with Loop.open(path) as loop:
        assert "undo" not in loop.projection.log.counts()


def test_undo_is_as_if_it_had_never_been(visitor: Visitor, folder: Path) -> None:
    path = made(folder)
    with Loop.open(path) as loop:
        empty = bits(loop)
    seen = visitor.get(BASE)
    item = names(seen)[4]
    then = grades(visitor, seen, item, 1, "e1")
    kept = {"hand": state(then)["hand"], "decision": state(then)["decision"]}
    back = visitor.post(f"{BASE}/undo", {"event": "e1", **kept}, hx_request="true")
    assert (names(back), marks(back)) == (names(seen), marks(seen))
    assert (said(back), lessons(back)) == (f"Taken back: “Graded {item}: 1”.", {"e1": False})
    with Loop.open(path) as loop:
        assert bits(loop) == empty


def test_it_works_without_a_script(visitor: Visitor, folder: Path) -> None:
    made(folder)
    seen = visitor.get(BASE)
    form = seen.fields(f"{BASE}/teach")
    assert form["item"] == names(seen)[0]
    events = {each.attrib["value"] for each in seen.all("form[@class='to-grade']/input[@name='event']")}
    assert len(events) == 8  # each card's own, so that none takes another's for a repetition
    then = visitor.post(f"{BASE}/teach", form | {"grade": "2"})
    assert then.status == 303
    page = visitor.get(then.headers["location"])
    assert (names(page), lessons(page)) == (names(seen), {form["event"]: True})
    assert marks(page)[form["item"]].startswith("You said 2 ")
    back = visitor.post(f"{BASE}/undo", page.fields(f"{BASE}/undo"))
    assert parse_qs(urlsplit(back.headers["location"]).query)["decision"] == [form["decision"]]
    assert marks(visitor.get(back.headers["location"])) == marks(seen)


def test_cards_whose_list_is_not_known_are_noted_as_seen(visitor: Visitor, folder: Path) -> None:
    """Such as a page that a browser kept, of another person's list, or of none."""
    path = made(folder, shrink=2.0)
    ann = visitor.get(f"{BASE}?person=ann")
    kept = state(ann)
    for person, decision in (("bob", kept["decision"]), ("ann", "nothing")):
        other = visitor.get(f"{BASE}?person={person}&decision={decision}&hand={kept['hand'].replace(' ', '')}")
        assert (state(other)["decision"], sorted(names(other))) == ("", sorted(names(ann)))
    then = grades(visitor, other, names(ann)[0], 2, "e1", person="ann")
    assert state(then)["decision"] == "e1-seen"
    assert marks(then)[names(ann)[0]].startswith("You said 2 ")
    grades(visitor, then, names(ann)[1], 3, "e2", person="ann")
    with Loop.open(path) as loop:
        assert [told.decision for told in loop.lessons(person="ann")] == ["e1-seen", "e1-seen"]
        report = loop.report()
        assert report.prediction is not None
        assert (report.imported, report.prediction.answers) == (1, 0)
    assert "1 list noted without a prediction" in visitor.get(f"{BASE}/learned").at("report")


def test_what_went_off_offer_goes_off_the_page(visitor: Visitor, folder: Path) -> None:
    path = made(folder)
    seen = visitor.get(BASE)
    gone, other = names(seen)[:2]
    with Loop.open(path) as loop:
        loop.withdraw(gone)
    then = grades(visitor, seen, gone, 2, "e1")  # it was shown, so the answer counts
    assert said(then) == f"{gone}: 2. It is no longer on offer."
    assert names(then) == names(seen)[1:]
    assert lessons(grades(visitor, then, other, 2, "e2")) == {"e2": True, "e1": True}


def test_who_may_only_look_on_sees_the_predictions(visitor: Visitor, folder: Path) -> None:
    from heedful.server.keys import Keys

    made(folder)
    with closing(Keys(folder)) as keys:
        _, secret = keys.create("looks on", scopes=["read"])
    visitor.sign_in(secret)
    seen = visitor.get(BASE)
    assert len(marks(seen)) == 8
    assert seen.all("button[@name='grade']") == []
    assert len(seen.all("span[@class='grade']")) == 40
    assert state(seen)["decision"] == ""


# ---------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"grade": "6"}, "grade['{item}']: expected a whole number from 1 to 5, got '6'"),
        ({"grade": "0"}, "expected a whole number from 1 to 5, got '0'"),
        ({"grade": "x"}, "expected a whole number from 1 to 5, got 'x'"),
        ({"grade": ""}, "expected a whole number from 1 to 5, got ''"),
        ({"grade": "2.5"}, "expected a whole number from 1 to 5, got '2.5'"),
        ({"grade": "-1"}, "expected a whole number from 1 to 5, got '-1'"),
        ({"grade": "٣"}, "expected a whole number from 1 to 5, got '٣'"),
        ({"grade": "9" * 5000}, "expected a whole number from 1 to 5"),
        ({"item": ""}, "item: expected a text"),
        ({"item": "tank"}, "tank"),
        ({"item": "tank", "decision": ""}, "'tank' is not among the cards"),
        ({"decision": "elsewhere"}, "decision elsewhere is not in the log"),
        ({"decision": "", "hand": "no"}, "hand: expected a list of names as JSON"),
        ({"event": ""}, "event: expected a text"),
        ({"event": "a" * 181}, "event: expected a text"),
        ({"kind": "pick"}, "kind: expected grade, as this loop learns grades from 1 to 5, got 'pick'"),
        ({"kind": "none"}, "kind: expected grade"),
        ({"person": "a\x00b"}, "person: expected a text"),
    ],
)
def test_bad_input_teaches_nothing(visitor: Visitor, folder: Path, form: Form, told: str) -> None:
    """Neither in the log nor in the model: `elsewhere` is a list of another loop."""
    path, other = made(folder), made(folder, name="other")
    with Loop.open(other) as loop:
        loop.decide(["i0", "i1"], id="elsewhere")
    seen = visitor.get(BASE)
    item = names(seen)[0]
    kept = state(seen)
    good = {
        "kind": "grade",
        "item": item,
        "grade": "3",
        "event": "e1",
        "hand": kept["hand"],
        "decision": kept["decision"],
    }
    with Loop.open(path) as loop:
        before = loop.projection.log.counts(), bits(loop)
    for headers in ({"hx_request": "true"}, {}):
        answer = visitor.post(f"{BASE}/teach", good | form, **headers)
        assert answer.status in (409, 422), answer.html
        assert told.format(item=item) in words(answer.tree)
        assert ("<html" in answer.html) is not bool(headers)
    with Loop.open(path) as loop:
        assert (loop.projection.log.counts(), bits(loop)) == before


def test_a_loop_that_learns_no_grades_takes_none(visitor: Visitor, folder: Path) -> None:
    small_loop(folder / "films.heedful", **CALM).close()
    seen = visitor.get(BASE)
    assert seen.all("form[@class='to-grade']") == []
    form = {"kind": "grade", "item": "i1", "grade": "3", "event": "e1", "hand": '["i0", "i1"]', "decision": ""}
    answer = visitor.post(f"{BASE}/teach", form)
    assert (answer.status, "kind: expected pick, order or none, got 'grade'" in words(answer.tree)) == (422, True)


def test_names_are_only_ever_text(visitor: Visitor, folder: Path) -> None:
    evil = "<img src=x onerror=alert(1)>\"'&"
    with small_loop(folder / "films.heedful", "prank:n_ranks=5", 3, **CALM) as loop:
        loop.put_items([{"id": evil, "f0": 1.0, "f1": 0.0, "f2": 0.0, "f3": 0.0}])
    seen = visitor.get(BASE)
    then = grades(visitor, seen, evil, 2, "e1")
    assert evil not in seen.html + then.html
    assert marks(then)[evil].startswith("You said 2 ")
    assert said(then).startswith(f"{evil}: 2.")


# ---------------------------------------------------------------------------- what it learned


def taught(path: Path, learner: str = "averaged-prank:n_ranks=5", lists: int = 40, **settings: Any) -> Loop:
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


def test_the_numbers_of_the_page_are_those_of_the_report(visitor: Visitor, folder: Path) -> None:
    with taught(folder / "films.heedful") as loop:
        found = loop.report().prediction
    assert found is not None
    assert found.difference is not None
    page = visitor.get(f"{BASE}/learned")
    told = page.at("report")
    for number in (f"predictions {found.score:.2f}, ", f"the median grade so far {found.baseline:.2f}."):
        assert number in told
    apart = [f"{value:+.2f}".replace("-", "−") for value in found.difference[:3]]
    assert f"Difference: {apart[0]}, below 0 is better" in told
    assert f"(95 % confidence interval: {apart[1]} to {apart[2]})." in told
    assert f"Exactly right: {found.details['exact']:.0%} of 160 grades.".replace("%", " %") in told
    assert "it predicts better" in told
    assert page.all("p[@class='verdict verdict--good']")
    [plot] = [json.loads(each.attrib["data-plot"]) for each in page.all("div[@data-plot]")]
    assert (plot["y"], plot["x"][-1]) == ("error", 160)
    assert [line["label"] for line in plot["lines"]] == ["predictions", "the median grade so far"]
    for line, mean in zip(plot["lines"], (found.score, found.baseline)):
        steps = [b - a for a, b in zip([0, *plot["x"]], plot["x"])]
        assert sum(n * value for n, value in zip(steps, line["values"])) / 160 == pytest.approx(mean, abs=1e-4)
    [row] = [words(each) for each in page.all("tr[@data-weight='f0']")]
    assert row.startswith("more f0")


def test_thresholds_are_drawn_where_they_lie(visitor: Visitor, folder: Path) -> None:
    with taught(folder / "films.heedful", shrink=3.0) as loop:
        state, own = loop.projection.reading("p2")
        b = [float(each) for each in loop.learner.thresholds(state.shared)]
        assert own is not None
        assert isinstance(loop.projection.model, GradingModel)
        level = loop.projection.model.level(own)
        for person, shift in ((None, 0.0), ("p2", level)):
            line = score_line(
                loop.projection.interaction.cuts(loop.projection.model, state.shared, own if person else None)
            )
            assert line is not None
            spots = [part.left for part in line.parts[1:]]
            assert spots == sorted(spots)
            low, high = b[0] - (b[-1] - b[0]) / 4, b[-1] + (b[-1] - b[0]) / 4
            assert spots == pytest.approx([100 * (each - low) / (high - low) for each in b], abs=0.01)
            assert line.parts[0].told == f"below {b[0] + shift:.2f}".replace("-", "−")
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
    assert line is not None
    assert line.parts[0].told in page.at("weights")
    assert "style=" not in page.html


def test_before_anything_was_graded(visitor: Visitor, folder: Path) -> None:
    made(folder)
    page = visitor.get(f"{BASE}/learned")
    assert "the first grade changes that." in page.at("weights")
    assert "Too early to say. No grade was given to " in page.at("report")
    assert page.all("div[@data-plot]") == []
    assert "which all still lie at 0.00" in page.one("svg[@class='cut-line']").attrib["aria-label"]
    assert "2 no score so far" in page.at("weights")
    assert "No grade yet." in page.at("lessons")
    teach = visitor.get(BASE)
    assert "Nothing yet: no grade so far." in words(teach.tree)
    assert teach.all("ul[@class='bars']") == []


def test_of_too_few_people_the_errors_are_told_and_no_difference(visitor: Visitor, folder: Path) -> None:
    with small_loop(folder / "films.heedful", "prank:n_ranks=5", **CALM) as loop:
        loop.decide(["i0", "i1"], id="d")
        loop.feedback("d", grade={"i0": 2, "i1": 5})
    told = visitor.get(f"{BASE}/learned").at("report")
    assert (
        "Too early to say. Mean |predicted − given|, over 2 answers: predictions 1.50, the median grade so far" in told
    )
    assert "Too few people have graded: it takes two at least." in told


@pytest.mark.parametrize(
    ("learner", "told"),
    [
        ("multiclass:n_ranks=5", "Its learner, multiclass:n_ranks=5, has no single weight vector"),
        ("constant-rank:n_ranks=5", "Its learner, constant-rank:n_ranks=5, has no single weight vector"),
        ("widrow-hoff:n_ranks=5", "The longer the bar, the more it counts in the score of an item."),
    ],
)
def test_learners_without_thresholds(visitor: Visitor, folder: Path, learner: str, told: str) -> None:
    taught(folder / "films.heedful", learner, 12).close()
    page = visitor.get(f"{BASE}/learned")
    assert page.status == 200
    assert told in page.at("weights")
    assert page.all("svg[@class='cut-line']") == []
    assert bool(page.all("tr[@data-weight]")) == learner.startswith("widrow")
    seen = visitor.get(BASE)
    then = grades(visitor, seen, names(seen)[0], 1, "new")
    assert marks(then)[names(seen)[0]].startswith("You said 1 ")
    assert ("no single weight vector" in words(then.tree)) != learner.startswith("widrow")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_weights_that_overflow_are_said_and_the_pages_go_on(visitor: Visitor, folder: Path) -> None:
    with diverged(folder / "films.heedful", **CALM) as loop:
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
    then = grades(visitor, seen, names(seen)[0], 2, "new")
    assert (then.status, lessons(then)["new"]) == (200, True)
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
    drawn = chart(told(None, tuple(PredictionWindow(i, i, 10, i / 97, 1.0) for i in range(97))).picture)
    assert drawn is not None
    assert len(json.loads(drawn.data)["x"]) <= 20


def test_the_list_of_loops_says_which_predict_grades(visitor: Visitor, folder: Path) -> None:
    made(folder)
    small_loop(folder / "cars.heedful").close()
    assert "grades 1–5" in words(visitor.get("/loops/films/row").one("th"))
    assert "grades" not in words(visitor.get("/loops/cars/row").one("th"))
