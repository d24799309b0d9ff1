"""What a loop of choices exports is ranked as the loop ranks it."""

from __future__ import annotations

from pathlib import Path

import pytest

from heedful.data.choices import open_choices
from heedful.data.comparisons import by_name
from heedful.io import export_lines
from heedful.studies.answers import choices_of
from loops import choice_loop, small_loop
from written import write_lines


def test_an_export_has_the_answers_of_its_loop(tmp_path: Path) -> None:
    with choice_loop(tmp_path / "a.heedful", n_items=4) as loop:
        asked = [("ann", "i0", "i1", "first"), ("bob", "i1", "i0", "second"), ("ann", "i2", "i3", "equal")]
        asked += [("ann", "i0", "i2", "second"), ("bob", "i3", "i1", "cannot_judge"), (None, "i0", "i3", "both_bad")]
        for i, (who, one, two, choice) in enumerate(asked):
            loop.record([one, two], [one, two], id=f"d{i}", person=who)
            loop.feedback(f"d{i}", id=f"e{i}", choice=choice)
        version = loop.version
        loop.undo("e3")
        for i, given in enumerate(({"better": ["i2"]}, {"better": ["i1", "i2"]}, {"clicks": ["i0"]})):
            loop.record(["i0", "i1", "i2"], ["i0", "i1", "i2"], id=f"b{i}", person="cy")
            loop.feedback(f"b{i}", id=f"f{i}", **given)
        loop.withdraw("i3")
        file = write_lines(tmp_path / "a.jsonl", list(export_lines(loop)))
        found = open_choices(file)
        assert found.summary == "the events of a loop; 1 answer undone or rolled back"
        best_of_three = [each for each in by_name(found.choices) if each.person == "cy"]
        assert {each.tiers for each in best_of_three} == {
            (("i2",), ("i0", "i1")),
            (("i1",), ("i2",), ("i0",)),
            (("i0",), ("i1", "i2")),
        }
        theirs = [each for each in by_name(choices_of(loop)) if each.person != "cy"]
        assert sorted(map(repr, theirs)) == sorted(repr(e) for e in by_name(found.choices) if e.person != "cy")
        assert len(theirs) == 5
        assert found.choices.items[:3] == tuple(loop.items)
        loop.rollback(version)
        found = open_choices(write_lines(tmp_path / "b.jsonl", list(export_lines(loop))))
        assert found.choices == choices_of(loop)
        assert found.choices.answers == 6
        assert found.summary == "the events of a loop; 3 answers undone or rolled back"


def test_an_export_without_comparisons_is_refused_with_what_it_has(tmp_path: Path) -> None:
    with small_loop(tmp_path / "a.heedful", control=0.0) as loop:
        shown = loop.decide(id="d").shown
        loop.feedback("d", id="e", clicks=[shown[1]])
        file = write_lines(tmp_path / "a.jsonl", list(export_lines(loop)))
    expected = r"^a.jsonl: choice: expected an export with answers about two items, got clicks$"
    with pytest.raises(ValueError, match=expected):
        open_choices(file)
    with pytest.raises(ValueError, match=r"^a.jsonl:1: feedback: expected a line that a loop exported, got 'd'$"):
        open_choices(write_lines(file, [{"kind": "feedback", "id": "e", "decision": "d", "choice": "first"}]))
    shown_two = {"kind": "decision", "id": "d", "shown": ["x", "y"]}
    write_lines(file, [shown_two, {"kind": "feedback", "id": "e", "decision": "d", "choice": "first"}])
    with pytest.raises(ValueError, match=r"^a.jsonl: columns: expected none with the events of a loop, got winner$"):
        open_choices(file, {"winner": ["w"]})


def test_a_table_with_a_column_kind_stays_a_table(tmp_path: Path) -> None:
    found = open_choices(write_lines(tmp_path / "a.jsonl", [{"kind": "item", "winner": "x", "loser": "y"}]))
    assert found.choices.items == ("x", "y")
