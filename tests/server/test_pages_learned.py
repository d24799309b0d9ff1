"""The page of what a loop learned: what it tells, what it takes back, what it says where nothing can be said."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import Visitor, words

from heedful import Loop
from heedful.core.wording import count
from heedful.loop.interactions import findings
from heedful.loop.interactions.coactive.texts import WORDS
from heedful.loop.interactions.forms import FORMS
from heedful.loop.settings import Settings
from heedful.loop.simulation import Simulation
from heedful.results.history import LessonTold
from heedful.results.report import Arm, Counts, Difference, Report, Window
from heedful.server.context import Options
from heedful.server.keys import Keys
from heedful.server.pages import formatting
from heedful.server.pages.learned import LESSONS
from loops import bits, small_loop


@pytest.fixture(scope="module")
def options() -> Options:
    return Options(words={"f0": ("heavier", "lighter")})


def taught(path: Path, lists: int = 30, **settings: Any) -> Loop:
    """A loop of which mostly what has little f0 is wanted; a list in three is left alone."""
    loop = small_loop(path, **({"control": 0.3, "k": 5} | settings))
    weight = {
        row: loop.projection.catalogue.features([version])[0][0]
        for row, version in loop.projection.catalogue.on_offer()
    }
    for n in range(lists):
        decision = loop.decide(id=f"d{n}", person=f"p{n % 3}" if n % 4 else None, show=6)
        wanted = decision.shown[n % 6] if n % 7 == 6 else min(decision.shown, key=weight.__getitem__)
        loop.feedback(decision.id, id=f"e{n}", better=[wanted])
    return loop


def test_weights_lessons_and_events_in_words(visitor: Visitor, tmp_path: Path) -> None:
    loop = taught(tmp_path / "cars.heedful")
    page = visitor.get("/loops/cars/learned")
    assert page.status == 200
    assert page.at("so-far") == "From 30 answers to 30 lists."
    [strongest] = [words(row) for row in page.all("tr[@data-weight='f0']")]
    assert strongest.startswith("lighter ")
    weights = [float(words(row).rpartition(" ±")[0].rpartition(" ")[2]) for row in page.all("tr[@data-weight]")]
    assert weights == sorted(weights, reverse=True)
    bars = [float(bar.attrib["width"]) for bar in page.all("rect[@class='value']")]
    assert bars[0] == 100
    assert bars == sorted(bars, reverse=True)
    told = loop.lessons(LESSONS)
    rows = page.all("tr[@data-event]")
    assert [row.attrib["data-event"] for row in rows] == [each.event for each in told]
    assert all(known_forms_tell(each) in words(row) for each, row in zip(told, rows))
    assert words(page.all("ol/li")[0]).endswith(f"Answer: would rather have {told[0].chosen[0]}")
    head, _ = loop.projection.log.last()
    assert [int(each.attrib["data-seq"]) for each in page.all("ol/li")] == list(range(head, head - 50, -1))
    loop.close()


def test_lessons_come_a_page_at_a_time_and_by_person(visitor: Visitor, tmp_path: Path) -> None:
    taught(tmp_path / "cars.heedful", LESSONS + 3).close()
    page = visitor.get("/loops/cars/learned")
    first = [row.attrib["data-event"] for row in page.all("tr[@data-event]")]
    [older] = [link.attrib["href"] for link in page.all("a") if words(link) == "Older"]
    page = visitor.get(older.partition("#")[0])
    second = [row.attrib["data-event"] for row in page.all("tr[@data-event]")]
    assert first + second == [f"e{n}" for n in reversed(range(LESSONS + 3))]
    assert "Older" not in [words(link) for link in page.all("a")]
    assert [link.attrib["href"] for link in page.all("a") if words(link) == "Newest"] == ["/loops/cars/learned#lessons"]
    own = visitor.get("/loops/cars/learned?person=p1")
    assert {row.attrib["data-event"] for row in own.all("tr[@data-event]")} == {
        f"e{n}" for n in range(LESSONS + 3) if n % 3 == 1 and n % 4
    }
    assert own.at("weights-h") == "What it thinks people like"
    assert own.at("about").startswith("Only the lessons below are p1's alone")
    nobody = visitor.get("/loops/cars/learned?person=nobody")
    assert "No lesson of this person is here." in nobody.at("lessons")
    assert nobody.at("about") == "Nobody called nobody has been here. What is below holds for everybody."


def test_what_is_told_of_a_person_is_what_was_learned_of_that_person(visitor: Visitor, tmp_path: Path) -> None:
    taught(tmp_path / "cars.heedful", 9, shrink=2.0).close()
    own = visitor.get("/loops/cars/learned?person=p1")
    assert own.at("weights-h") == "What it thinks p1 likes"
    assert own.at("about") == "What it thinks, and the lessons, are p1's; all else is everybody's."
    nobody = visitor.get("/loops/cars/learned?person=nobody")
    assert nobody.at("weights-h") == "What it thinks people like"
    assert nobody.at("about").startswith("Nobody called nobody has been here.")
    assert visitor.get("/loops/cars/learned").at("about") == ""


def test_persons_are_asked_for_only_where_there_are_some(visitor: Visitor, tmp_path: Path) -> None:
    with small_loop(tmp_path / "cars.heedful") as loop:
        decision = loop.decide(show=3)
        loop.feedback(decision.id, clicks=[decision.shown[1]])
    page = visitor.get("/loops/cars/learned")
    assert page.all("input[@id='person']") == []
    assert "Person" not in page.at("lessons")
    with Loop.open(tmp_path / "cars.heedful") as loop:
        decision = loop.decide(show=3, person="p1")
        loop.feedback(decision.id, clicks=[decision.shown[1]])
    page = visitor.get("/loops/cars/learned")
    assert len(page.all("input[@id='person']")) == 1
    assert "Person" in page.at("lessons")
    assert "no name" in page.at("lessons")


@pytest.mark.parametrize("scripted", [False, True])
def test_a_lesson_is_taken_back(visitor: Visitor, tmp_path: Path, scripted: bool) -> None:
    with taught(tmp_path / "one.heedful", 9) as loop:
        loop.undo("e1")
        without = bits(loop)
    taught(tmp_path / "cars.heedful", 9).close()
    page = visitor.get("/loops/cars/learned?person=p1")
    form = page.fields("/loops/cars/learned/undo")
    assert form == {"event": "e7", "person": "p1"}
    headers = {"hx_request": "true"} if scripted else {}
    done = visitor.post("/loops/cars/learned/undo", form | {"event": "e1"}, **headers)
    if scripted:
        assert done.status == 200
        assert done.at("said") == "Undone: it counts as if it had never been given."
        page = done
    else:
        assert (done.status, done.headers["location"]) == (303, "/loops/cars/learned?person=p1#lessons")
        page = visitor.get("/loops/cars/learned?person=p1")
    row = page.one("tr[@data-event='e1']")
    assert row.attrib["class"] == "lesson-gone"
    assert "undone" in words(row)
    assert row.find(".//button") is None
    assert page.at("so-far") == "From 9 answers to 9 lists, 1 of them taken back."
    with Loop.open(tmp_path / "cars.heedful") as loop:
        assert bits(loop) == without


def test_what_cannot_be_taken_back_is_refused(visitor: Visitor, tmp_path: Path) -> None:
    taught(tmp_path / "cars.heedful", 2).close()
    wrong = visitor.post("/loops/cars/learned/undo", {"event": "nothing"}, hx_request="true")
    assert wrong.status == 409
    assert "feedback nothing is not in the log" in words(wrong.tree)
    assert visitor.post("/loops/cars/learned/undo", {"event": ""}).status == 422
    assert visitor.post("/loops/cars/learned/undo", {"event": "e0"}, origin="http://evil.example").status == 403
    assert visitor.post("/loops/other/learned/undo", {"event": "e0"}).status == 404
    with Loop.open(tmp_path / "cars.heedful") as loop:
        assert not any(each.undone for each in loop.lessons())


@pytest.mark.parametrize("query", ["before=x", "before=0", "before=1&before=2", "person=%00"])
def test_a_query_that_makes_no_sense_is_refused(visitor: Visitor, tmp_path: Path, query: str) -> None:
    taught(tmp_path / "cars.heedful", 1).close()
    page = visitor.get(f"/loops/cars/learned?{query}")
    assert page.status == 422
    assert "expected" in words(page.one("main"))


def test_who_may_only_read_sees_no_button(visitor: Visitor, tmp_path: Path) -> None:
    taught(tmp_path / "cars.heedful", 3).close()
    with closing(Keys(tmp_path)) as keys:
        visitor.sign_in(keys.create("looker", scopes=["read"])[1])
    page = visitor.get("/loops/cars/learned")
    assert len(page.all("tr[@data-event]")) == 3
    assert not any("Undo" in words(button) for button in page.all("button"))


def test_what_people_wrote_is_text_and_never_markup(visitor: Visitor, tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    with small_loop(tmp_path / "cars.heedful") as loop:
        loop.put_items([{"id": evil, "f0": 1.0, "f1": 0.0, "f2": 0.0, "f3": 0.0}])
        decision = loop.decide(["i1", evil], id=f"d{evil}", person=f"p{evil}")
        loop.feedback(decision.id, id=f"e{evil}", better=[decision.shown[1]])
    page = visitor.get("/loops/cars/learned")
    assert evil not in page.html
    assert evil in page.at("events")
    assert page.fields("/loops/cars/learned/undo")["event"] == f"e{evil}"
    assert page.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")


# ---------------------------------------------------------------------------- what was measured


NONE = Arm(0, 0, None)


def report(
    learned: Arm = NONE,
    control: Arm = NONE,
    difference: Difference | None = None,
    unsaid: str = "",
    series: tuple[Window, ...] = (),
) -> Report:
    """A report of nothing else."""
    shown = learned.shown + control.shown
    return Report(0, shown, True, None, 0, 0, learned, control, difference, unsaid, series, Counts(0, 0, 0, 0, 0), None)


def test_the_verdict_says_what_the_interval_says() -> None:
    arms = Arm(100, 90, 0.625), Arm(20, 18, 0.25)
    better = findings.compare(report(*arms, Difference(0.375, 0.25, 0.5, 40)), WORDS, Settings(control=0.2))
    assert (better.kind, better.short) == ("good", "Yes: what was learned does better than the control.")
    assert better.more == (
        "Mean reciprocal rank: learned order 0.62, your order (control) 0.25.",
        "Difference: +0.38 (95 % confidence interval: +0.25 to +0.50).",
    )
    worse = findings.compare(report(*arms[::-1], Difference(-0.375, -0.5, -0.25, 40)), WORDS, Settings(control=0.2))
    assert (worse.kind, worse.short) == ("bad", "No: what was learned does worse than the control.")
    assert "−0.38" in worse.more[1]
    open_ = findings.compare(report(*arms, Difference(0.1, -0.01, 0.21, 40)), WORDS, Settings(control=0.2))
    assert (open_.kind, open_.short) == ("open", "No difference can be shown yet.")


def test_what_is_in_neither_kind_of_list_is_said(visitor: Visitor, tmp_path: Path) -> None:
    assert findings.excluded_sentence(report(Arm(9, 9, 0.5)), WORDS) == ""
    with taught(tmp_path / "cars.heedful", 9) as loop:
        for n in range(2):
            loop.record(["i0", "i1"], ["i1", "i0"], id=f"e{n}-seen")
        loop.decide(["i0", "i1"], id="mail", deferred=True)
        loop.undo("e1")
    page = visitor.get("/loops/cars/learned")
    told = (
        "Not counted here: 2 lists put in order by the page itself after a lesson, or imported; 1 list made ahead and "
        "never shown; 1 answer taken back."
    )
    assert told in page.at("report")
    assert "Shown: i1 and i0 (not a first deal: the page had put these in order)" in page.at("events")


def test_a_kind_of_list_with_few_answers_is_drawn_as_a_level(visitor: Visitor) -> None:
    few = [Window(i, i, Arm(9, 9, 0.5), Arm(2, 2 if i < 4 else 0, 0.25 if i < 4 else None)) for i in range(20)]
    drawn = findings.arms_picture(report(Arm(180, 180, 0.5), Arm(40, 8, 0.25), series=tuple(few)), WORDS, "place")
    assert drawn is not None
    learned, left = drawn.lines
    assert (left.label, set(left.values), left.reference) == ("your order (control), on average", {0.25}, True)
    fewer = findings.arms_picture(report(Arm(180, 180, 0.5), Arm(40, 7, 0.25), series=tuple(few[3:])), WORDS, "place")
    assert fewer is not None
    assert [line.label for line in fewer.lines] == [learned.label]


def test_every_point_of_the_picture_rests_on_several_lists() -> None:
    rng = np.random.default_rng(0)
    arms = [Arm(5, int(n), float(rng.uniform(0.2, 1)) if n else None) for n in rng.integers(0, 4, 97)]
    series = tuple(Window(i, i, arm, NONE) for i, arm in enumerate(arms))
    drawn = findings.arms_picture(report(Arm(485, 9, 0.5), series=series), WORDS, "place")
    assert drawn is not None
    [line] = drawn.lines
    began, points = 0, 0
    for i, value in enumerate(line.values):
        if value is not None:
            part = [arm for arm in arms[began : i + 1] if arm.mean is not None]
            answered = sum(arm.answered for arm in part)
            assert answered >= findings.EACH
            assert value == pytest.approx(sum(arm.answered * (arm.mean or 0.0) for arm in part) / answered, abs=1e-4)
            began, points = i + 1, points + 1
    assert 2 <= points <= findings.POINTS
    assert findings.arms_picture(report(Arm(9, 9, 0.5), series=series[:1]), WORDS, "place") is None


def test_regret_is_told_where_a_simulation_knows_it_and_nowhere_else(visitor: Visitor, tmp_path: Path) -> None:
    for name in ("real", "simulated"):
        loop = small_loop(tmp_path / f"{name}.heedful", "perceptron", control=0.0, k=3)
        w = np.array([1.0, -2.0, 0.5, 0.0])
        worth = {
            row: float(loop.projection.catalogue.features([v])[0] @ w)
            for row, v in loop.projection.catalogue.on_offer()
        }
        if name == "simulated":
            Simulation(dict(zip(loop.feature_names, w.tolist())), 1.0).write(loop.path)
        for n in range(20):
            decision = loop.decide(id=f"d{n}")
            loop.feedback(decision.id, better=sorted(decision.shown, key=lambda each: -worth[each]))
        loop.close()
    assert visitor.get("/loops/real/learned").at("truth") == ""
    page = visitor.get("/loops/simulated/learned")
    assert "Only a simulation can measure this" in page.at("truth")
    assert "the theorem for its learner bounds it by" in page.at("truth")
    plots = [json.loads(each.attrib["data-plot"]) for each in page.all("div[@data-plot]")]
    [plot] = [each for each in plots if each["y"] == "log"]
    regret, bound = (line["values"] for line in plot["lines"])
    assert all(low <= high for low, high in zip(regret, bound) if low is not None)
    (tmp_path / "simulated.heedful" / "simulation.json").write_text("no")
    assert visitor.get("/loops/simulated/learned").status == 422


# ---------------------------------------------------------------------------- in words


def known_forms_tell(lesson: LessonTold) -> str:
    """A lesson as its form tells it."""
    return FORMS[lesson.form].tell(lesson)


def told(form: str, chosen: tuple[str, ...] = (), over: tuple[str, ...] = (), **more: Any) -> str:
    """A lesson in words."""
    values, text = more.get("values", ()), more.get("text")
    lesson = LessonTold("e", 1, 0, form, "d", "learned", None, chosen, over, values, text, False, False, True)
    return known_forms_tell(lesson)


def test_lessons_in_words() -> None:
    assert told("better", ("a",), ("b",)) == "Put a before b"
    assert told("better", ("a", "b"), ()) == "Agreed that a is first"
    assert told("clicks", ("a", "b"), ("c",)) == "Clicked a and b, not c"
    assert told("clicks", ("a",)) == "Clicked a"
    assert told("clicks") == "Clicked nothing"
    assert told("thumb", ("a",), values=(1.0,)) == "Thumb up for a"
    assert told("thumb", values=(-1.0,)) == "Thumb down for the list"
    assert told("action", ("a",), ("b",), text="buy") == "Buy: a, shown below b"
    assert told("action", ("a",)) == "An action: a"
    assert told("rating", ("a", "b"), values=(5.0, 2.5)) == "Rated a: 5 and b: 2.5"
    assert told("grade", ("a",), values=(3.0,)) == "Graded a: 3"
    assert told("edit", ("a",), ("b",)) == "Corrected b to a"
    assert told("edit") == "Corrected what was shown"
    assert told("choice", ("a",), ("b",)) == "Chose a, not b"
    assert told("choice") == "Could not choose between the two"
    assert told("none") == "Wanted none of these"


def test_sizes_and_lists_of_names() -> None:
    assert [formatting.size(n) for n in (0, 999, 1000, 12_345, 5e6, 3e9, 2e15)] == [
        *("0 B", "999 B", "1.0 kB", "12 kB", "5.0 MB", "3.0 GB", "2,000.0 TB")
    ]
    names = [formatting.join_names(list("abcdef")[:n]) for n in range(7)]
    assert names[:5] == ["", "a", "a and b", "a, b and c", "a, b, c and d"]
    assert names[5:] == ["a, b, c, d and 1 more", "a, b, c, d and 2 more"]
    assert count(1, "list") == "1 list"
    assert count(2000, "list") == "2,000 lists"


def test_it_is_asked_for_again_when_something_happens(visitor: Visitor, tmp_path: Path) -> None:
    """What the script of the page needs: where events come from, what to ask for, which parts to take over."""
    taught(tmp_path / "cars.heedful", LESSONS + 1).close()
    page = visitor.get("/loops/cars/learned?person=p1&before=60")
    [live] = page.all("div[@data-live]")
    assert live.attrib["hx-get"] == "/loops/cars/learned?person=p1&before=60"
    parts = [part.removeprefix("#") for part in live.attrib["hx-select-oob"].split(",")]
    assert len(parts) == 9
    assert all(len(page.all(f"*[@id='{part}']")) == 1 for part in parts)
    address, _, after = live.attrib["data-live"].partition("?after=")
    with Loop.open(tmp_path / "cars.heedful") as loop:
        assert int(after) == loop.projection.log.last()[0]
    with visitor.http.stream("GET", f"{address}?after={int(after) - 1}") as stream:
        assert stream.status_code == 200
        assert any(line.startswith("event: feedback") for line in stream.iter_lines())
