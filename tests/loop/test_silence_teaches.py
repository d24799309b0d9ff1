"""Silence that teaches: lists that nobody answered in time are answered "none" in the log, each once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful import Loop
from heedful.data.jsonl import as_lines
from heedful.io import import_lines, rehearse
from heedful.io.exports import as_time
from heedful.loop.decide import DecisionRequest
from heedful.loop.log import Log
from heedful.loop.projection import Projection
from heedful.loop.silence import MOST, PREFIX, Unanswered, is_silence
from heedful.storage import Address
from loops import LIKED, banners, bits, bits_from_scratch, export, set_clock
from takeover import new_name

SECOND = 1_000_000
START = 1_700_000_000 * SECOND


class Clock:
    """A clock that is set by hand, in seconds after the start."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> int:
        return START + round(SECOND * self.at)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of all loops of a test."""
    made = Clock()
    set_clock(monkeypatch, made)
    return made


def visits(loop: Loop, clock: Clock, numbers: Iterable[int], nones: bool = False) -> list[bool]:
    """Visits, one every 10 seconds: what a device likes is clicked after 3 seconds in three of four cases, anything
    else in one of ten; return whether what was shown is what it likes.

    With `nones` the page says `none` itself, a minute after a visit; otherwise it says nothing."""
    found, waiting = [], list[tuple[int, str]]()
    for i in numbers:
        rng = np.random.default_rng(i)
        device = sorted(LIKED)[i % 3]
        clock.at = 10.0 * i
        shown = loop.decide(id=f"d{i}", person=f"p{i}", context={"device": device}).shown[0]
        while nones and waiting and waiting[0][0] <= i - 6:
            loop.feedback(waiting.pop(0)[1], none=True)
        found.append(shown == LIKED[device])
        if rng.random() < (0.75 if found[-1] else 0.1):
            clock.at += 3.0
            loop.feedback(f"d{i}", id=f"e{i}", clicks=[shown])
        else:
            waiting.append((i, f"d{i}"))
    return found


def silences(loop: Loop) -> list[str]:
    """The ids of the decisions whose silence is an answer, in the order of the log."""
    log = loop.projection.log
    events = [event for event in log.events(kinds=["feedback"]) if is_silence(event)]
    targets = [log.at(event.target or 0) for event in events]
    assert [event.id for event in events] == [PREFIX + target.id for target in targets if target is not None]
    return [event.id.removeprefix(PREFIX) for event in events]


def unclicked(loop: Loop, below: int) -> list[str]:
    """Of the visits with a number below that one, those that were not clicked."""
    log = loop.projection.log
    return [f"d{i}" for i in range(below) if log.find("feedback", f"e{i}") is None]


# ---------------------------------------------------------------------------- what is learned


def test_a_page_that_reports_clicks_alone_teaches_what_one_that_says_none_does(tmp_path: Path, clock: Clock) -> None:
    """Bit for bit, where the page says it when the loop takes it for said; of the clicks alone less is learned."""
    with banners(tmp_path / "a", none_after=60.0) as clicks, banners(tmp_path / "b") as nones:
        liked = visits(clicks, clock, range(300))
        assert visits(nones, clock, range(300), nones=True) == liked
        assert clicks.weights == nones.weights
        assert clicks.predict(context={"device": "desk"}) == nones.predict(context={"device": "desk"})
        assert np.mean(liked[200:]) > 0.85
        assert silences(clicks) == unclicked(clicks, 294)
        assert clicks.verify() == []
    with banners(tmp_path / "c") as alone:
        visits(alone, clock, range(300))
        assert min(each.value for each in alone.predict(context={"device": "desk"}).values()) > 0.5


def test_the_time_of_a_silence_is_when_it_became_an_answer(tmp_path: Path, clock: Clock) -> None:
    with banners(tmp_path / "l", none_after=60.0) as loop:
        loop.decide(id="d0")
        clock.at = 59.9
        loop.decide(id="d1")
        assert silences(loop) == []
        clock.at = 1000.0
        before = loop.version
        assert loop.decide(id="d2").version == before  # it was made before that
        assert silences(loop) == ["d0", "d1"]
        times = [event.time - START for event in loop.projection.log.events(kinds=["feedback"])]
        assert times == [60 * SECOND, round(119.9 * SECOND)]
        assert loop.version > before
        assert all(lesson.learned and lesson.form == "none" for lesson in loop.lessons())


def test_the_lowest_reward_is_what_silence_says(tmp_path: Path, clock: Clock) -> None:
    """Of banners that bring 0 to 50, those that nobody took are worth nothing."""
    with banners(tmp_path / "l", none_after=60.0, rewards=(0.0, 50.0)) as loop:
        for i in range(60):
            clock.at = 100.0 * i
            d = loop.decide(id=f"d{i}", context={"device": "desk"})
            if d.shown[0] == "food":
                loop.feedback(d.id, reward=40.0)
        predicted = loop.predict(context={"device": "desk"})
        assert predicted["food"].value > 30.0
        assert predicted["news"].value < 15.0
        assert 0.0 < loop.report().learned.mean <= 40.0


# ---------------------------------------------------------------------------- answers that come later


def test_a_late_click_counts_in_place_of_the_silence(tmp_path: Path, clock: Clock) -> None:
    """It is learned in addition; reports, evaluations and health count it alone. Undone, it gives way again."""
    with banners(tmp_path / "l", none_after=60.0) as loop:
        shown = list[str]()
        for i in range(4):
            clock.at = 100.0 * i
            shown += loop.decide(id=f"d{i}", context={"device": "desk"}).shown
        assert silences(loop) == ["d0", "d1", "d2"]
        without = loop.weights
        assert loop.feedback("d0", id="late", clicks=shown[:1]).learned
        assert loop.weights != without
        found = loop.report()
        assert (found.learned.answered, found.learned.mean) == (3, pytest.approx(1 / 3))
        assert (found.feedback.given, found.feedback.undone) == (1, 0)
        assert found.prediction.answers == 3
        assert loop.evaluate().decisions == 3
        [error] = [each for each in loop.evaluate().learners[0].values if each.measure == "squared error"]
        assert error.comparisons == 3
        health = loop.health()
        assert (health.decisions, health.feedback) == (4, 3)
        assert sum(window.answered for window in health.windows) == 1  # that nobody answers is still told
        loop.undo("late")
        assert loop.weights == without
        assert loop.report().learned.mean == 0.0
        assert loop.verify() == []


def test_a_list_whose_answer_was_undone_stays_without_one(tmp_path: Path, clock: Clock) -> None:
    """Somebody did answer; that it was wrong says not that there was none. What an undo promises holds."""
    with banners(tmp_path / "l", none_after=60.0) as loop:
        before = loop.weights
        d = loop.decide(id="d0")
        loop.feedback("d0", id="e0", clicks=list(d.shown))
        loop.undo("e0")
        clock.at = 100.0
        loop.decide(id="d1")
        assert silences(loop) == []
        assert loop.weights == before
        clock.at = 200.0
        loop.decide(id="d2")
        assert loop.weights != before
        assert loop.undo(f"{PREFIX}d1").learned
        assert loop.weights == before
        clock.at = 300.0
        loop.decide(id="d3")
        assert silences(loop) == ["d1", "d2"]
        loop.rollback(1)
        clock.at = 400.0
        loop.decide(id="d4")
        assert silences(loop) == ["d1", "d2", "d3"]  # what was gone back on is not said again
        assert loop.verify() == []


# ---------------------------------------------------------------------------- which lists


def test_lists_that_nobody_saw_are_not_silent(tmp_path: Path, clock: Clock) -> None:
    """A deferred one counts from when it was shown, also if that was after others had become silent."""
    with banners(tmp_path / "l", none_after=60.0) as loop:
        loop.decide(id="never", deferred=True)
        loop.decide(id="later", deferred=True)
        loop.decide([], id="empty")
        clock.at = 100.0
        loop.decide(id="d1")
        loop.activate("later")
        clock.at = 159.0
        loop.decide(id="d2")
        assert silences(loop) == []
        clock.at = 1000.0
        loop.decide(id="d3")
        assert silences(loop) == ["d1", "later", "d2"]
        assert loop.activate("never").status == "applied"
    with Loop.open(tmp_path / "l") as loop:
        clock.at = 1100.0
        loop.decide(id="d4")
        assert silences(loop) == ["d1", "later", "d2", "d3", "never"]


def test_the_forgotten_are_not_silent(tmp_path: Path, clock: Clock) -> None:
    with banners(tmp_path / "l", none_after=60.0) as loop:
        loop.decide(id="d0", person="ann")
        loop.decide(id="d1", person="bob")
        clock.at = 100.0
        loop.decide(id="d2", person="ann")
        assert silences(loop) == ["d0", "d1"]
        assert loop.forget("ann").events == 3
        clock.at = 200.0
        loop.decide(id="d3")
        clock.at = 300.0
        loop.decide(id="d4")
        assert silences(loop) == ["d1", "d3"]
        assert loop.verify() == []


def test_ids_that_callers_chose_do_no_harm(tmp_path: Path, clock: Clock) -> None:
    """That of a silence is refused for anything else; one may be too long to follow the prefix."""
    with banners(tmp_path / "l", none_after=60.0) as loop:
        shown = loop.decide(id="d0").shown
        long = loop.decide(id="d" * 200).id
        for form in ({"clicks": list(shown)}, {"none": True}):
            with pytest.raises(
                ValueError, match=r"id: expected another beginning than 'silence-', .*, got 'silence-d1'"
            ):
                loop.feedback("d0", id=f"{PREFIX}d1", **form)
        assert loop.feedback("d0", id=f"{PREFIX}d0", none=True).status == "applied", "as an export has it"
        for i in (2, 3):
            clock.at = 100.0 * i
            loop.decide(id=f"d{i}")
        given = [(event.target, is_silence(event)) for event in loop.projection.log.events(kinds=["feedback"])]
        at = {id: loop.projection.find_decision(id).seq for id in ("d0", long, "d2")}
        assert given == [(at["d0"], True), (at[long], True), (at["d2"], True)]


def test_times_that_other_systems_say_do_not_end_the_wait(tmp_path: Path, clock: Clock) -> None:
    """A decision that was shown in a year counts from now."""
    with banners(tmp_path / "l", none_after=60.0) as loop:
        loop.decide(id="d0")
        loop.record(["news", "food"], ["news"], id="ahead", time=START + 10**15)
        loop.feedback("d0", clicks=["news"] if loop.projection.find_decision("d0").record.shown == (0,) else [])
        clock.at = 59.0
        loop.decide(id="d1")
        assert silences(loop) == []
        clock.at = 61.0
        loop.decide(id="d2")
        assert silences(loop) == ["ahead"]


def test_loops_without_the_setting_say_nothing(tmp_path: Path, clock: Clock) -> None:
    with banners(tmp_path / "l") as loop:
        visits(loop, clock, range(20))
        assert silences(loop) == []


# ---------------------------------------------------------------------------- each once


def test_after_a_restart_the_rest_is_said(tmp_path: Path, clock: Clock) -> None:
    """Closed or killed, with a snapshot or none, it learns what a loop does that was open all the time."""
    with banners(tmp_path / "a", none_after=60.0) as loop:
        visits(loop, clock, range(90))
        whole, said = bits(loop), silences(loop)
    loop = banners(tmp_path / "b", none_after=60.0)
    visits(loop, clock, range(30))
    loop.close()
    killed = Loop.open(tmp_path / "b")
    visits(killed, clock, range(30, 60))
    with Loop.open(tmp_path / "b") as loop:  # the one before wrote no snapshot, and will never write again
        visits(loop, clock, range(60, 90))
        assert silences(loop) == said
        assert bits(loop) == whole == bits_from_scratch(loop)
        assert max(Counter(said).values()) == 1
    killed.close()


def test_several_processes_say_each_once(tmp_path: Path, clock: Clock) -> None:
    """They take turns, and one opens the loop in between."""
    with banners(tmp_path / "l", none_after=60.0) as one, Loop.open(tmp_path / "l") as two:
        visits(one, clock, range(20))
        visits(two, clock, range(20, 40))
        with Loop.open(tmp_path / "l") as three:
            for i in range(40, 90):
                visits((one, two, three)[i % 3], clock, [i])
            one.undo("e1" if one.projection.log.find("feedback", "e1") else "e2")
            visits(two, clock, range(90, 100))
            visits(one, clock, range(100, 110))
            assert silences(three) == unclicked(three, 104)
            assert three.verify() == []


@pytest.mark.parametrize("at", ["written", "committed"])
def test_an_interruption_leaves_nothing_out_and_says_nothing_twice(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """Before the commit, as by a full disk, or after it, before anything is learned."""
    with banners(tmp_path / "l", none_after=60.0) as loop:
        visits(loop, clock, range(20))
        with monkeypatch.context() as broken:

            def interrupt(*_: object) -> None:
                raise OSError("the disk is full") if at == "written" else KeyboardInterrupt

            broken.setattr(*((Log, "append") if at == "written" else (Projection, "_learn")), interrupt)
            clock.at = 10.0 * 20
            with pytest.raises((OSError, KeyboardInterrupt)):
                loop.decide(id="d20", person="p20", context={"device": sorted(LIKED)[20 % 3]})
        assert (loop.projection.log.find("decision", "d20") is None) == (at == "written")
        visits(loop, clock, range(20, 40))
        assert silences(loop) == unclicked(loop, 34)
        assert loop.verify() == []


def test_after_a_quiet_night_a_commit_says_few(tmp_path: Path, clock: Clock) -> None:
    """The oldest first, the rest with those that follow, also after a restart."""
    with banners(tmp_path / "l", none_after=60.0) as loop:
        for i in range(50):
            loop.decide(id=f"d{i}")
        clock.at = 100.0
        loop.decide(id="d50")
        assert silences(loop) == [f"d{i}" for i in range(MOST + 1)]
    with Loop.open(tmp_path / "l") as loop:
        clock.at = 101.0
        loop.decide(id="d51")
        assert len(silences(loop)) == 2 * MOST + 1
        loop.decide(id="d52")
        assert silences(loop) == [f"d{i}" for i in range(50)]


def test_opening_reads_no_further_than_the_newest_silence(tmp_path: Path, clock: Clock) -> None:
    """The log is read back to the list that was silent last, not to its beginning."""
    read = list[int]()

    class Reader:
        def __init__(self, log: Log) -> None:
            self.log = log

        def moments_back(self) -> Iterable[tuple[int, str, int | None, int, str]]:
            for row in self.log.moments_back():
                read.append(row[0])
                yield row

    with banners(tmp_path / "l", none_after=60.0) as loop:
        visits(loop, clock, range(100))
        newest = loop.projection.find_decision(silences(loop)[-1]).seq
        Unanswered(Reader(loop.projection.log), 60.0)  # type: ignore[arg-type]
        assert min(read) == max(seq for seq in read if seq <= newest) == newest


def test_who_must_not_wait_reads_no_log(tmp_path: Path, clock: Clock) -> None:
    """The first commit that needs the lists that wait is made by a thread that may take its time."""
    with banners(tmp_path / "l", none_after=60.0) as loop:
        loop.decide(id="d0")
    with Loop.open(tmp_path / "l") as loop:

        def decide(id: str) -> list[str] | None:
            request = loop.decider.read(id=id)
            assert isinstance(request, DecisionRequest)
            answers = loop.projection.attempt([loop.decider.propose(request)])
            return None if answers is None else [f"{each.event} {each.status}" for each in answers]

        assert decide("d1") is None
        loop.decide(id="d1")
        clock.at = 100.0
        assert decide("d2") == ["d2 applied"]
        assert silences(loop) == ["d0", "d1"]


# ---------------------------------------------------------------------------- who only reads, and imports


def test_who_only_reads_writes_nothing(tmp_path: Path, clock: Clock) -> None:
    with banners(tmp_path / "l", none_after=60.0) as loop:
        loop.decide(id="d0")
        loop.record(["news", "food"], ["news"], id="d1")
        clock.at = 1000.0
        head = loop.projection.log.last()[0]
        loop.report()
        loop.health()
        loop.evaluate()
    with Loop.open(tmp_path / "l", read_only=True) as loop:
        loop.report()
        loop.evaluate("perceptron")
    lines = [{"kind": "feedback", "id": "e0", "decision": "d0", "none": True}]
    with rehearse(tmp_path / "l") as loop:
        assert [each.status for each in import_lines(loop, as_lines(lines))] == ["applied"]
    with Loop.open(tmp_path / "l") as loop:
        assert loop.projection.log.last()[0] == head
        assert loop.verify() == []


def test_what_is_exported_is_imported_as_it_was(tmp_path: Path, clock: Clock) -> None:
    """The same model, bit for bit, in batches of any size, and nothing is said again; also of a late click."""
    with banners(tmp_path / "l", none_after=60.0) as loop:
        visits(loop, clock, range(100))
        late = silences(loop)[3]
        known = loop.projection.find_decision(late)
        loop.feedback(late, id="late", clicks=[known.names[known.record.shown[0]]])
        visits(loop, clock, range(100, 120))
        lines, state, said = export(loop), bits(loop), silences(loop)
        report = loop.report()
    for batch in (1000, 17, 1):
        with banners(tmp_path / f"m{batch}", none_after=60.0) as other:
            for status in ("applied", "duplicate"):
                again = {each.status for each in import_lines(other, as_lines(lines), batch=batch)}
                assert again <= {status, "duplicate"}
            assert silences(other) == said
            assert bits(other) == state
            assert other.report().feedback == report.feedback
            assert other.verify() == []


def test_a_log_of_clicks_alone_is_silent_by_its_own_times(tmp_path: Path, clock: Clock) -> None:
    """In whichever batches it comes: each list is answered by its click or by its silence, never by both."""
    lines = list[dict[str, Any]]()
    for i in range(200):
        time, shown = START - (1000 - i) * 600 * SECOND, ["news", "sport", "food"][i % 3 :][:1]
        lines.append({"kind": "decision", "id": f"d{i}", "candidates": ["news", "sport", "food"], "shown": shown}
                     | {"time": as_time(time)})  # fmt: skip
        if i % 4 == 0:
            lines.append({"kind": "feedback", "id": f"e{i}", "decision": f"d{i}", "clicks": shown}
                         | {"time": as_time(time + 30 * SECOND)})  # fmt: skip
    for batch in (1000, 10, 3):
        with banners(tmp_path / f"l{batch}", none_after=3600.0) as loop:
            outcomes = list(import_lines(loop, as_lines(lines), batch=batch))
            assert {(each.status, each.reason) for each in outcomes} == {("applied", None)}
            said = silences(loop)
            assert said == [f"d{i}" for i in range(200) if i % 4][: len(said)]
            assert len(said) >= 140  # all but the last six, in the last batch those that its last click let
            assert loop.evaluate().decisions == 50 + len(said)


# ---------------------------------------------------------------------------- in PostgreSQL


@pytest.mark.slow
def test_in_postgresql_the_next_owner_says_the_rest(postgres: str, clock: Clock) -> None:
    there = Address(postgres, new_name())
    with banners(there, none_after=60.0) as loop:
        visits(loop, clock, range(30))
    with Loop.open(there) as loop:
        visits(loop, clock, range(30, 60))
        assert silences(loop) == unclicked(loop, 54)
        assert loop.verify() == []
