"""Answers of a study by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from heedful import Loop, Settings, infer
from heedful.data.comparisons import Comparison, comparison_of
from heedful.studies.answers import event_id, study_answers


@pytest.mark.parametrize(
    ("shown", "answer", "wanted"),
    [
        (("a", "b"), "second", Comparison("ann", (("b",), ("a",)), 1, "a")),
        (("a", "first"), "first", Comparison("ann", (("a",), ("first",)), 1, "a")),
        (("a", "first", "b"), "first", Comparison("ann", (("first",), ("a", "b")))),
        (("a", "b", "second"), "second", Comparison("ann", (("second",), ("a", "b")))),
    ],
)
def test_a_side_is_one_of_two(shown: tuple[str, ...], answer: str, wanted: Comparison[str]) -> None:
    """In more than two, first and second are items of that name."""
    assert comparison_of("ann", shown, answer) == wanted


@pytest.mark.parametrize(
    ("show", "given", "answer"),
    [
        (2, {"choice": "second"}, "second"),
        (2, {"choice": "both_bad"}, "both_bad"),
        (2, {"clicks": ["b"]}, "second"),
        (3, {"better": ["c", "a"]}, "c"),
        (2, {"none": True}, "cannot_judge"),
        (2, {"clicks": []}, None),
        (2, {"action": "buy", "item": "b"}, None),
        (2, {"thumb": "up", "item": "b"}, None),
        (2, {"rating": {"a": 1, "b": 2}}, None),
    ],
)
def test_an_answer_is_what_its_form_says_is_best(
    tmp_path: Path, show: int, given: dict[str, Any], answer: str | None
) -> None:
    items = [{"id": name, "x": i} for i, name in enumerate("abc")]
    plain = Settings(control=0.0, exploration=0.0)
    with Loop.create(tmp_path / "l.heedful", items=items, encoding=infer(items), settings=plain) as loop:
        loop.decide(["a", "b", "c"][:show], id="d", person="ann", show=show)
        assert loop.feedback("d", id="e", **given).status == "applied"
        assert [each.answer for each in study_answers(loop)] == ([] if answer is None else [answer])


def test_a_question_that_was_skipped_has_no_answer(tmp_path: Path) -> None:
    items = [{"id": name, "x": i} for i, name in enumerate("ab")]
    with Loop.create(tmp_path / "l.heedful", items=items, encoding=infer(items)) as loop:
        loop.decide(id="d", person="ann")
        loop.feedback("d", id=event_id("ann", 0, 0), none=True)
        assert list(study_answers(loop)) == []
