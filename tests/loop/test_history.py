"""The feedback of a loop in words, and the order that its model has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful import Loop
from heedful.evaluation.answers import chosen_over, said_pairs
from heedful.loop.decide import DecisionRequest
from heedful.loop.interactions.forms import BETTER
from heedful.loop.log import Log
from heedful.loop.log.reader import LogReader
from heedful.loop.records import FeedbackRecord
from heedful.results.answers import plain
from heedful.results.history import LessonTold
from loops import bits, small_loop, specs

FIVE = ["i0", "i1", "i2", "i3", "i4"]


@pytest.fixture
def loop(tmp_path: Path) -> Any:
    with small_loop(tmp_path / "loop", "posterior:swap=0", control=0.0) as made:
        yield made


def said(loop: Loop, shown: Sequence[str] = FIVE, **given: Any) -> LessonTold:
    """What is told of feedback on a list."""
    number = loop.projection.log.last()[0]
    loop.record(FIVE, shown, id=f"d{number}", person="ann")
    assert loop.feedback(f"d{number}", id=f"e{number}", **given).status == "applied"
    [told] = loop.lessons(1)
    assert (told.event, told.decision, told.arm, told.person) == (f"e{number}", f"d{number}", "imported", "ann")
    assert told.form == next(iter(given))
    return told


# ---------------------------------------------------------------------------- what was said


@pytest.mark.parametrize(
    ("given", "chosen", "over"),
    [
        ({"clicks": ["i2"]}, "2", "01"),
        ({"clicks": ["i3", "i1"]}, "31", "02"),
        ({"clicks": ["i0"]}, "0", ""),
        ({"clicks": []}, "", ""),
        ({"better": ["i3"]}, "3", "012"),
        ({"better": ["i0", "i1", "i4", "i2", "i3"]}, "4", "23"),  # dragged to the third place
        ({"better": ["i1", "i2", "i3", "i0", "i4"]}, "123", "0"),  # dragged down
        ({"better": ["i4", "i3", "i2", "i1", "i0"]}, "4321", "0"),
        ({"better": FIVE}, "01234", ""),  # it was right
        ({"better": ["i0"]}, "0", ""),
        ({"action": "buy", "item": "i2"}, "2", "01"),
        ({"action": "hide", "item": "i2"}, "2", ""),
        ({"rating": {"i1": 2, "i4": 5}}, "41", ""),
        ({"grade": {"i1": 2, "i0": 2}}, "10", ""),
        ({"choice": "second"}, "1", "0"),
        ({"choice": "first"}, "0", "1"),
        ({"choice": "equal"}, "", ""),
        ({"thumb": "up"}, "", ""),
        ({"thumb": "down", "item": "i3"}, "3", ""),
        ({"none": True}, "", ""),
        ({"edit": {"f0": 0.4}}, "", "0"),
        ({"edit": {"f0": 0.4}, "item": "i2"}, "", "2"),
    ],
    ids=str,
)
def test_what_was_said_by_name(loop: Loop, given: dict[str, Any], chosen: str, over: str) -> None:
    told = said(loop, **given)
    assert (told.chosen, told.over) == (tuple(f"i{c}" for c in chosen), tuple(f"i{c}" for c in over))


def test_what_was_not_shown_was_put_before_all_that_was(loop: Loop) -> None:
    told = said(loop, ["i2", "i0"], better=["i4"])
    assert (told.chosen, told.over) == (("i4",), ("i2", "i0"))


def test_an_edit_that_is_the_nearest_item_names_it(loop: Loop) -> None:
    X = {row: loop.projection.catalogue.features(loop.projection.catalogue.versions([row]))[0] for row in FIVE}
    told = said(loop, edit={"id": "mine", "features": X["i3"].tolist()}, nearest=True)
    assert (told.chosen, told.over, told.learned) == (("i3",), ("i0",), True)
    same = said(loop, edit={"id": "mine", "features": X["i0"].tolist()}, nearest=True)
    assert (same.chosen, same.over, same.learned) == ((), (), False)


def test_a_click_in_a_later_list_names_what_was_clicked_there(loop: Loop) -> None:
    loop.record(FIVE, ["i0", "i1", "i2"], id="first", person="ann")
    loop.record(["i7", "i8"], ["i7", "i8"], id="later", person="ann")
    assert loop.feedback("first", clicks=["i8", "i1"], chain=["later"]).status == "applied"
    [told] = loop.lessons(1)
    assert (told.chosen, told.over) == (("i8", "i1"), ("i0", "i2"))  # who went on had seen all of it


def test_numbers_and_texts(loop: Loop) -> None:
    assert said(loop, rating={"i1": 2, "i4": 5}).values == (5.0, 2.0)
    assert [said(loop, thumb=thumb).values for thumb in ("up", "down")] == [(1.0,), (-1.0,)]
    bought = said(loop, action="cart", item="i1")
    assert (bought.text, bought.values) == ("cart", (0.5,))
    assert said(loop, action="hide", item="i1").values == (-1.0,)
    assert said(loop, better=["i1"]).values == ()


@st.composite
def reorderings(draw: Any) -> tuple[list[int], list[int]]:
    """What was shown of seven, and what of the seven was put first."""
    shown = draw(st.permutations(range(7)))[: draw(st.integers(1, 7))]
    return shown, draw(st.permutations(range(7)))[: draw(st.integers(1, 7))]


@given(reorderings())
def test_who_rose_and_past_whom(case: tuple[list[int], list[int]]) -> None:
    """Chosen is what was named and now stands before something that was shown ahead of it; over is what else it passed.
    Where nothing was passed: all that were named."""
    shown, named = case
    after = [*named, *(j for j in shown if j not in named)]

    def passed(a: int, b: int) -> bool:
        was = shown.index(a) if a in shown else len(shown)
        return b in shown and after.index(a) < after.index(b) and shown.index(b) < was

    answer = BETTER.answer(FeedbackRecord("better", named), shown)
    assert set(said_pairs(shown, answer)) == {(a, b) for a in named for b in after if passed(a, b)}
    chosen, over = chosen_over(shown, answer)
    risen = [a for a in named if any(passed(a, b) for b in after)]
    assert chosen == (risen or named)
    assert over == [b for b in shown if b not in risen and any(passed(a, b) for a in risen)]
    assert all(after.index(a) < after.index(b) for a in risen for b in over if passed(a, b))


# ---------------------------------------------------------------------------- what became of it


def test_what_became_of_it(loop: Loop) -> None:
    start = 1_700_000_000_000_000
    for i, seconds in enumerate((3600, 3601)):
        loop.record(FIVE, FIVE, id=f"d{i}", time=start)
        answer = loop.feedback(f"d{i}", id=f"e{i}", time=start + seconds * 1_000_000, better=["i1"])
        [told] = loop.lessons(1)
        assert (told.seq, told.time, told.late, told.learned) == (answer.seq, start + seconds * 1_000_000, i == 1, True)
    loop.undo("e0")
    assert [(told.event, told.undone, told.learned) for told in loop.lessons()] == [
        ("e1", False, True),
        ("e0", True, True),
    ]
    assert not said(loop, none=True).learned
    known = loop.projection.find_decision(loop.decide(FIVE, id="mail", deferred=True).id)
    loop.activate("mail", time=known.since + 7200 * 1_000_000)
    loop.feedback("mail", time=known.since + 7201 * 1_000_000, none=True)
    assert not loop.lessons(1)[0].late
    loop.forget("ann")
    assert [told.person for told in loop.lessons()] == [None] * 3


def test_pages_follow_each_other(loop: Loop) -> None:
    for i in range(25):
        loop.record(FIVE, FIVE, id=f"d{i}", person=["ann", "bob", None][i % 3])
        loop.feedback(f"d{i}", id=f"e{i}", better=["i1"])
        loop.feedback(f"d{i}", id=f"f{i}", none=True)
    wanted = [f"{form}{i}" for i in reversed(range(25)) for form in "fe"]
    assert [told.event for told in loop.lessons()] == wanted
    found: list[LessonTold] = []
    while page := loop.lessons(7, before=found[-1].seq if found else None):
        assert len(page) == 7 or len(found) == 49
        found += page
    assert [told.event for told in found] == wanted
    bobs = loop.lessons(10, person="bob")
    assert [told.event for told in bobs] == [e for e in wanted if int(e[1:]) % 3 == 1][:10]
    assert (
        loop.lessons(10, person="bob", before=bobs[-1].seq)[0].event == [e for e in wanted if int(e[1:]) % 3 == 1][10]
    )
    assert loop.lessons(person="nobody") == ()
    assert loop.lessons(before=10**15) == tuple(found)
    assert loop.lessons(before=1) == ()


def test_a_later_page_knows_what_was_undone(loop: Loop) -> None:
    loop.record(FIVE, FIVE, id="d")
    loop.feedback("d", id="e", better=["i1"])
    for i in range(300):
        loop.feedback("d", id=f"n{i}", none=True)
    loop.undo("e")
    [told] = loop.lessons(before=loop.projection.log.find("feedback", "n0").seq)  # type: ignore[union-attr]
    assert (told.event, told.undone) == ("e", True)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"limit": 0}, "limit: expected a whole number, 1 to 10000, got 0"),
        ({"limit": 10_001}, "limit: expected a whole number, 1 to 10000, got 10001"),
        ({"limit": "50"}, "limit: expected a whole number, 1 to 10000, got '50'"),
        ({"before": 0}, "before: expected a whole number, 1 or more, got 0"),
        ({"person": ""}, "person: expected a text of 1 to 200 printable characters, got ''"),
    ],
)
def test_what_makes_no_sense_is_refused(loop: Loop, given: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError) as refused:
        loop.lessons(**given)
    assert str(refused.value) == told


def test_what_another_process_wrote_is_told(loop: Loop) -> None:
    with Loop.open(loop.path) as other:
        other.decide(FIVE, id="d")
        other.feedback("d", id="e", better=["i2"])
        assert [told.event for told in loop.lessons()] == ["e"]
        other.undo("e")
        assert [told.undone for told in loop.lessons()] == [True]


def grown(loop: Loop, n: int, start: int) -> None:
    """n more decisions, each answered, in few commits."""
    for first in range(start, start + n, 500):
        asked = [loop.decider.read(FIVE, id=f"d{i}") for i in range(first, first + 500)]
        loop.projection.submit([loop.decider.propose(each) for each in asked if isinstance(each, DecisionRequest)])
        loop.feedback_many({"decision": f"d{i}", "id": f"e{i}", "better": ["i1"]} for i in range(first, first + 500))


@pytest.mark.slow
def test_the_newest_of_a_long_log_take_no_more_reading_than_of_a_short_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are counted, whatever way they come: not one more from a log that is ten times as long."""
    read = {"rows": 0}
    event, scan = Log._event, Log._scan

    def counted_event(self: Log, row: Any) -> Any:
        read["rows"] += 1
        return event(self, row)

    def counted_scan(self: Log, *arguments: Any) -> Any:
        rows = scan(self, *arguments)
        read["rows"] += len(rows)
        return rows

    monkeypatch.setattr(Log, "_event", counted_event)
    monkeypatch.setattr(Log, "_scan", counted_scan)
    counts = []
    with small_loop(tmp_path / "loop", "perceptron", control=0.0) as loop:
        for n, start in ((1000, 0), (9000, 1000)):
            grown(loop, n, start)
            loop.undo(f"e{start + 10}")
            loop.undo(f"e{start + n - 3}")
            loop.projection.keeper.forget_memory(loop.projection)
            read["rows"] = 0
            found = loop.lessons(50)
            counts.append(read["rows"])
            assert [told.event for told in found] == [f"e{i}" for i in range(start + n - 1, start + n - 51, -1)]
            assert [told.event for told in found if told.undone] == [f"e{start + n - 3}"]
    assert counts[1] - counts[0] < 10  # a few undos more
    assert counts[1] < 2000


def test_few_lessons_are_found_among_many_other_events(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(3):
        loop.decide(FIVE, id=f"d{i}")
        loop.feedback(f"d{i}", id=f"e{i}", better=["i1"])
    loop.put_items([{"id": f"new{i}", "f0": float(i), "f1": 0.0, "f2": 0.0, "f3": 0.0} for i in range(1000)])
    read, event = [], Log._event
    monkeypatch.setattr(Log, "_event", lambda self, row: read.append(row[0]) or event(self, row))
    assert [told.event for told in loop.lessons(50)] == ["e2", "e1", "e0"]
    assert len(read) < 20
    head = loop.projection.log.last()[0]
    by_index = list(loop.projection.log.newest_first(head + 1, "feedback"))
    monkeypatch.setattr("heedful.loop.log.reader.FEW", 2)
    assert list(loop.projection.log.newest_first(head + 1, "feedback")) == by_index
    assert [one.id for one in loop.projection.log.newest_first(by_index[0].seq, "feedback")] == ["e1", "e0"]


def test_few_events_of_a_kind_are_read_as_many_are(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in (3, 0, 5, 1, 2, 4):  # the index has them by their ids
        loop.decide(FIVE, id=f"d{i}")
        loop.feedback(f"d{i}", id=f"e{i}", better=["i1"])
    for i in (0, 5, 2, 1):
        loop.undo(f"e{i}")
    log = loop.projection.log
    loop.rollback(log.last()[0] - 1)
    loop.rollback(log.last()[0] - 3)

    def found() -> object:
        seqs = log.places("feedback")
        middle = [log.places("feedback", after, up_to) for after, up_to in ((seqs[0], seqs[4]), (0, seqs[2]))]
        return seqs, middle, [log.retractions(up_to) for up_to in (None, *range(log.last()[0] + 1))]

    few = found()
    monkeypatch.setattr("heedful.loop.log.reader.FEW", 1)
    assert found() == few


# ---------------------------------------------------------------------------- the order of the model


@pytest.mark.parametrize("spec", [*specs(), *specs("ordinal")])
def test_the_order_is_the_one_that_a_decision_shows_without_exploration_and_control(tmp_path: Path, spec: str) -> None:
    """Whatever the learner, for everybody and for a person; a loop that explores and leaves half to the control ranks
    as one that does neither. Nothing of the loop changes by it."""
    form = "grade" if spec in specs("ordinal") else "rating"
    prior, orders = [0.1, 0.2, 0.0, -0.3, 0.0], []
    for control, exploration in ((0.0, 0.0), (0.5, 0.5 if "posterior" in spec else 0.0)):
        how: dict[str, Any] = {"control": control, "exploration": exploration}
        how |= {"shrink": 0.0 if spec.startswith(("constant-rank", "multiclass", "prank", "widrow-hoff")) else 2.0}
        with small_loop(tmp_path / str(control), spec, **how) as loop:
            for i in range(5):
                loop.record(FIVE, FIVE, id=f"d{i}", person=f"p{i % 2}")
                loop.feedback(f"d{i}", id=f"e{i}", **{form: {"i3": 5, "i0": 1 + i % 2, "i1": 3}})
            before = bits(loop), loop.projection.log.last(), plain(loop.report())
            people = (None, "p0", "p1", "new")
            orders.append([loop.rank(FIVE, person=person, prior=prior) for person in people])
            assert (bits(loop), loop.projection.log.last(), plain(loop.report())) == before
            for person, order in zip(people, orders[0]) if not control else ():
                d = loop.decide(FIVE, person=person, prior=prior)
                if d.probability is None:  # it draws all the same, and cannot say how
                    assert spec == "dueling-bandit"
                else:
                    assert (d.shown, d.probability) == (order, 1.0)
    assert orders[0] == orders[1]


def test_what_cannot_be_ranked_is_refused_as_for_a_decision(loop: Loop) -> None:
    with pytest.raises(LookupError, match=r"expected items on offer, .*, got 'tram'"):
        loop.rank(["tram"], strict=True)
    with pytest.raises(ValueError, match="candidates: expected each once, got 'i0' 2 times"):
        loop.rank(["i0", "i0"], strict=True)
    with pytest.raises(ValueError, match=r"^person: "):
        loop.rank(FIVE, person="")
    with Loop.open(loop.path) as other:
        other.put_items([{"id": "new", "f0": 1.0}])
        assert loop.rank(["new"]) == ("new",)  # another process put it there


def test_items_are_read_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a log says of items is not asked for one by one: over a network each question takes its time."""
    with small_loop(tmp_path / "l", n_items=1200) as loop:
        names = loop.items
    reads: list[tuple[int, int]] = []
    between = LogReader.between

    def counted(self: LogReader, first: int, last: int, kind: str) -> Any:
        reads.append((first, last))
        return between(self, first, last, kind)

    monkeypatch.setattr(LogReader, "between", counted)
    with Loop.open(tmp_path / "l") as loop:
        catalogue = loop.projection.catalogue
        versions = list(catalogue.current.values())
        assert [catalogue.called_at([version])[0][0] for version in versions] == list(names)
        assert len(reads) <= 3
        assert len(set(reads)) == len(reads)
