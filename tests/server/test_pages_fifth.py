"""A kind of feedback that no page knows: best-worst scaling of `tests/fifth.py`, taught with the fields that its form
declares, listed, told and taken back; and fields of any other form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from browsing import Seen, Visitor, words

from heedful import Loop
from heedful.evaluation.answers import Answer
from heedful.loop.interactions.forms import (
    ACTIONS,
    BETTER,
    CHOICE,
    CLICKS,
    EDIT,
    ITEM,
    NONE,
    RATING,
    AnsweredDecision,
    Form,
    by_name,
)
from heedful.loop.records import Feedback, FeedbackRecord
from heedful.server.pages import fields_widget
from heedful.server.pages.fields_widget import PREFIX
from kinds import FIFTH, KINDS

BASE = "/loops/cars"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    KINDS[-1].make(tmp_path / "cars.heedful", control=0.0).close()
    return tmp_path


@pytest.fixture
def visitor(folder: Path, visitor: Visitor) -> Visitor:
    """Somebody who looks at its pages."""
    return visitor


def answer(visitor: Visitor, seen: Seen, best: str, worst: str, **more: str) -> Seen:
    form = seen.fields(f"{BASE}/teach") | {f"{PREFIX}best": best, f"{PREFIX}worst": worst} | more
    return visitor.post(f"{BASE}/teach", form)


def test_the_page_asks_for_what_the_form_declares(visitor: Visitor) -> None:
    seen = visitor.get(BASE)
    shown = seen.names
    assert seen.status == 200
    assert len(shown) == 4  # what its interaction shows, and no more
    for name in ("best", "worst"):
        radios = seen.all(f"input[@name='{PREFIX}{name}']")
        assert [each.attrib["value"] for each in radios] == shown
        assert all(each.attrib["type"] == "radio" and "required" in each.attrib for each in radios)
    assert [words(each) for each in seen.all("li[1]//label")] == ["Best", "Worst"]
    assert "Which of these is the best, which the worst?" in words(seen.tree)
    assert any(
        "none" in form.find("input[@name='kind']").attrib["value"] for form in seen.all("form[@class='to-answer']")
    )


def test_an_answer_teaches_and_brings_other_cards_and_is_taken_back(visitor: Visitor, folder: Path) -> None:
    seen = visitor.get(BASE)
    best, *_, worst = seen.names
    then = answer(visitor, seen, best, worst)
    assert then.status == 303
    with Loop.open(folder / "cars.heedful", learner=FIFTH) as loop:
        [lesson] = loop.lessons()
        assert (lesson.form, lesson.chosen, lesson.learned) == ("best", (best,), True)
        assert loop.projection.log.counts()["feedback"] == 1
        event = lesson.event
    told = words(visitor.get(BASE).one("ul[@class='lessons']/li"))
    assert told.startswith(f"Best: {best}, not ")
    learned = visitor.get(f"{BASE}/learned")
    assert f"Best: {best}, not " in learned.at("lessons")
    assert f"best {best}, worst {worst}" in learned.at("events")
    assert "That cannot be told here. The best of four says nothing of how good the four were." in learned.at("report")
    assert learned.all("tr[@data-weight]")
    back = visitor.post(f"{BASE}/learned/undo", {"event": event})
    assert back.status == 303
    with Loop.open(folder / "cars.heedful", learner=FIFTH) as loop:
        assert loop.lessons()[0].undone
        assert set(loop.weights.values()) == {0.0}
    assert "undone" in visitor.get(f"{BASE}/learned").at("lessons")


def test_none_of_them_is_a_button(visitor: Visitor, folder: Path) -> None:
    seen = visitor.get(BASE)
    assert visitor.post(f"{BASE}/teach", seen.fields(f"{BASE}/teach") | {"kind": "none"}).status == 303
    with Loop.open(folder / "cars.heedful", learner=FIFTH) as loop:
        [lesson] = loop.lessons()
        assert (lesson.form, lesson.learned) == ("none", False)


# ---------------------------------------------------------------------------- any form


class Survey(Form):
    """Something of each kind of field."""

    name, hint, example = "likes", "which of them somebody likes", ["a"]
    schema = {"type": "array", "items": ITEM}  # noqa: RUF012
    more_fields = {  # noqa: RUF012
        "prices": {"type": "object", "additionalProperties": {"type": "number"}},
        "notes": {"type": "object", "additionalProperties": {"type": "string"}},
        "mood": {"enum": ["good", "bad"]},
        "sure": {"type": "boolean"},
        "minutes": {"type": "number"},
        "remark": {"type": "string"},
        "other": {"anyOf": [{"type": "object"}, {"type": "array"}]},
    }

    def parse(self, value: Any, given: Mapping[str, Any]) -> Feedback:
        return Feedback("likes", tuple(value))

    def write(self, record: FeedbackRecord, decided: AnsweredDecision) -> dict[str, Any]:
        return {"likes": [decided.names[j] for j in record.chosen]}

    def answer(self, record: FeedbackRecord, shown: Sequence[int]) -> Answer:
        return Answer(best=tuple(record.chosen), picked=True)


@pytest.mark.parametrize(
    ("form", "kinds"),
    [
        (Survey(), ["items", "numbers", "texts", "choice", "tick", "number", "text", "json"]),
        (CLICKS, ["items", "items"]),
        (BETTER, ["items"]),
        (EDIT, ["text", "tick", "item"]),
        (RATING, ["numbers"]),
        (ACTIONS, ["texts"]),
        (CHOICE, ["choice"]),
    ],
)
def test_every_declared_field_has_a_widget(form: Form, kinds: list[str]) -> None:
    assert [field.kind for field in fields_widget.inputs_of(form)] == kinds


class _Loop:
    """As much of a loop as `parse` reads."""

    def __init__(self, *forms: Form) -> None:
        self.forms = by_name(*forms)
        self.projection = self.interaction = self


def test_posted_fields_become_feedback() -> None:
    posted = {
        "kind": "likes",
        "field.likes:a": "1",
        "field.likes:c": "1",
        "field.likes:z": "1",  # no card
        "field.prices:a": "2.5",
        "field.prices:b": "3",
        "field.notes:b": " red ",
        "field.mood": "bad",
        "field.sure": "1",
        "field.minutes": "7",
        "field.remark": "fine",
        "field.other": '{"x": [1]}',
    }
    loop: Any = _Loop(Survey(), NONE)
    assert fields_widget.parse(loop, ["a", "b", "c"], posted) == {
        "likes": ["a", "c"],
        "prices": {"a": 2.5, "b": 3},
        "notes": {"b": "red"},
        "mood": "bad",
        "sure": True,
        "minutes": 7,
        "remark": "fine",
        "other": {"x": [1]},
    }
    assert fields_widget.parse(loop, [], {"kind": "none"}) == {"none": True}
    for field, text, told in (
        ("field.minutes", "soon", "minutes: expected a number, got 'soon'"),
        ("field.prices:a", "nan", "prices['a']: expected a number, got 'nan'"),
        ("field.other", "{", "other: expected JSON, got '{'"),
    ):
        with pytest.raises(ValueError, match="expected") as raised:
            fields_widget.parse(loop, ["a"], posted | {field: text})
        assert str(raised.value) == told


def test_the_report_says_how_well_answers_were_predicted(visitor: Visitor, folder: Path) -> None:
    """The share of answers in which the likeliest was the best, next to a guess, as the report measures it."""
    with Loop.open(folder / "cars.heedful", learner=FIFTH) as loop:
        for i in range(40):
            shown = loop.decide(id=f"d{i}", person=f"p{i % 8}").shown
            ranked = sorted(shown, key=lambda name: int(name.strip("abcdefghijklmnopqrstuvwxyz ")))
            loop.feedback(f"d{i}", best=ranked[-1], worst=ranked[0])
        found = loop.report().prediction
    assert found is not None
    assert found.difference is not None
    told = visitor.get(f"{BASE}/learned").at("report")
    assert "How well does it predict? Share of answers in which the likeliest was the best, over 40 answers:" in told
    assert f"predictions {found.score:.2f}, a guess {found.baseline:.2f}." in told
    by, low, high = (f"{each:+.2f}".replace("-", "−") for each in found.difference[:3])
    assert f"Difference: {by}, above 0 is better (95 % confidence interval: {low} to {high})." in told
    assert "Share of answers in which the likeliest was the best over time. Higher is better." in told
