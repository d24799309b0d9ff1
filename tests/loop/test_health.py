"""The health of feedback: counts by hand, the same for every kind, as if what is gone had never been, faults found."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from feedback_streams import FAULTS as FAULTS_OF_PEOPLE
from feedback_streams import Visits, alarms, simulate
from heedful import Loop, Settings
from heedful.loop.health import GivenFeedback, ShownDecision, signals
from heedful.loop.signals import WatchedLoop
from heedful.results.health import Health, Signal
from kinds import Kind, each_kind, teach
from loops import choice_loop, rating_loop, rows, small_loop

T0, SECOND = 1_700_000_000_000_000, 1_000_000
NAMES = [f"i{j}" for j in range(12)]


def signal(found: Health, name: str) -> Signal:
    [told] = [each for each in found.signals if each.name == name]
    return told


# ---------------------------------------------------------------------------- every kind


@each_kind
def test_every_kind_says_how_healthy_its_feedback_is(kind: Kind, tmp_path: Path) -> None:
    with kind.make(tmp_path / "l") as loop:
        empty = loop.health()
        assert (empty.decisions, empty.feedback, empty.windows, empty.alarms) == (0, 0, (), ())
        assert all(each.said.startswith("Nothing can be said") for each in empty.signals)
        teach(kind, loop, range(30))
        before = loop.version
        found = loop.health(alpha=0.1)
        assert loop.version == before
        assert (found.decisions, found.feedback) == (30, 30)
        assert [each.decisions for each in found.windows] == [10, 10, 10]
        assert sum(each.feedback for each in found.windows) == 30
        assert found.largest.people == 3
        assert found.largest.feedback == pytest.approx(1 / 3)
        assert 1 / 3 <= found.largest.movement < 1.0
        assert [each.name for each in found.signals] == [
            "unanswered", "late", "empty", "contradictory", "one person", "error", "sample ratio",
        ]  # fmt: skip
        assert all(each.error_rate == pytest.approx(0.1 / 7) for each in found.signals)
        assert signal(found, "error").values >= 20
        assert all(0.0 <= (each.error or 0.0) <= 1.0 for each in found.windows)
        assert (found.corrections is None) == bool(found.uncorrected)
        assert (found.calibration == ()) == bool(found.uncalibrated)
        assert bool(found.calibration) == bool(loop.projection.interaction.words.prediction)
        for each in found.calibration:
            assert each.low <= each.predicted <= each.high
            assert each.came_low <= each.came <= each.came_high
        assert len(found.to_frame()) == 3
        assert "Health" in found._repr_html_()


def record(kind: Kind, loop: Loop, rounds: range, unsaid: Collection[int] = (), nobody: Collection[str] = ()) -> None:
    """Decisions that do not depend on the model, answered a minute later, but for some answers and people."""
    pair = loop.facts.get("choices")
    for i in rounds:
        person, shown = f"p{i % 3}", tuple(NAMES[i % 5 : i % 5 + (2 if pair else 4)])
        if person in nobody:
            continue
        when = T0 + 600 * SECOND * i
        loop.record(NAMES[: i % 5 + 5], shown, id=f"d{i}", person=person, time=when)
        if i not in unsaid:
            answer = {**kind.answer(i, shown), "decision": f"d{i}", "id": f"e{i}", "time": when + 60 * SECOND}
            assert loop.feedback(answer).status == "applied"


@pytest.mark.slow
@each_kind
def test_what_is_undone_rolled_back_or_forgotten_was_never_there(kind: Kind, tmp_path: Path) -> None:
    for name in "abcdef":
        (tmp_path / name).mkdir()
    with kind.make(tmp_path / "a" / "l") as loop, kind.make(tmp_path / "b" / "l") as never:
        record(kind, loop, range(30))
        loop.undo("e7")
        record(kind, never, range(30), unsaid={7})
        assert loop.health() == never.health()
        assert loop.health().feedback == 29
    with kind.make(tmp_path / "c" / "l") as loop, kind.make(tmp_path / "d" / "l") as never:
        record(kind, loop, range(18))
        version = loop.version
        record(kind, loop, range(18, 30))
        loop.rollback(version)
        record(kind, never, range(30), unsaid=range(18, 30))
        assert loop.health() == never.health()
        assert loop.health().feedback == 18
    with kind.make(tmp_path / "e" / "l") as loop, kind.make(tmp_path / "f" / "l") as never:
        record(kind, loop, range(30))
        loop.forget("p1")
        record(kind, never, range(30), nobody={"p1"})
        assert loop.health() == never.health()
        assert loop.health().decisions == 20


# ---------------------------------------------------------------------------- by hand


def shown_at(loop: Loop, i: int, seconds: float, person: str | None = "ann", shown: Sequence[str] = NAMES[:4]) -> None:
    loop.record(NAMES, shown, id=f"d{i}", person=person, time=T0 + int(seconds * SECOND))


def said_at(loop: Loop, i: int, seconds: float, **form: Any) -> None:
    loop.feedback(f"d{i}", id=f"e{i}-{seconds:g}", time=T0 + int(seconds * SECOND), **form)


def test_missing_late_and_empty_feedback_by_hand(tmp_path: Path) -> None:
    with small_loop(tmp_path / "l", "perceptron", late_after=10.0) as loop:
        for i in range(6):
            shown_at(loop, i, i)
        said_at(loop, 0, 5, clicks=["i1"])
        said_at(loop, 1, 15, clicks=[])  # late by 4 seconds
        said_at(loop, 2, 23, clicks=["i0"])  # later than twice the limit
        said_at(loop, 3, 23, none=True)  # in 20 seconds
        said_at(loop, 5, 25, clicks=["i2"])  # 20 seconds are just over
        found = loop.health()
        [window] = found.windows
        assert (window.since, window.until) == (T0, T0 + 5 * SECOND)
        assert (window.decisions, window.answered, window.settled) == (6, 5, 6)
        assert (window.unanswered, window.late, window.delay) == (2, 3, 20.0)
        assert (window.feedback, window.empty) == (5, 2)
        assert (found.until, found.late_after) == (T0 + 25 * SECOND, 10.0)
        assert found.delay == pytest.approx(np.quantile([5, 14, 21, 20, 20], 0.95))
        shown_at(loop, 6, 26)
        [window] = loop.health().windows
        assert (window.decisions, window.settled) == (7, 6), "the last one may be answered yet"


def test_what_is_deferred_counts_from_when_it_was_shown(tmp_path: Path) -> None:
    with small_loop(tmp_path / "l", "perceptron") as loop:
        for i in range(3):
            loop.decide(NAMES, id=f"d{i}", person="ann", deferred=True)
        loop.activate("d0", time=T0)
        said_at(loop, 0, 7, clicks=["i1"])
        assert loop.feedback("d1", clicks=["i2"]).status == "rejected", "it was not shown"
        found = loop.health()
        assert (found.decisions, found.feedback, found.since) == (1, 1, T0)


def test_contradictions_by_hand(tmp_path: Path) -> None:
    with small_loop(tmp_path / "l", "posterior:swap=0") as loop:
        answers: list[tuple[str | None, dict[str, Any]]] = [
            ("ann", {"better": ["i1"]}),  # before i0
            ("ben", {"better": ["i2"]}),  # somebody else
            ("ann", {"better": ["i2"]}),  # before i0 and i1
            ("ann", {"clicks": ["i1"]}),  # before i0 again
            ("ann", {"thumb": "up", "item": "i3"}),
            ("ann", {"thumb": "down", "item": "i3"}),  # a contradiction
            (None, {"better": ["i1"]}),
            (None, {"clicks": ["i1"]}),  # of nobody in particular
        ]
        for i, (person, form) in enumerate(answers):
            shown_at(loop, i, i, person)
            said_at(loop, i, i, **form)
        [window] = loop.health().windows
        assert (window.repeated, window.contradictory) == (2, 1)
        shown_at(loop, 8, 8, "ann", ["i1", "i0"])
        said_at(loop, 8, 8, better=["i0"])  # i0 before i1: undoes her own
        [window] = loop.health().windows
        assert (window.repeated, window.contradictory) == (3, 2)
        told = signal(loop.health(), "contradictory")
        assert (told.values, told.people, told.alarm) == (3, 1, False)


def test_numbers_contradict_each_other_far_apart(tmp_path: Path) -> None:
    with rating_loop(tmp_path / "l") as loop:
        for i, rating in enumerate((2, 3.9, 2, 4)):
            shown_at(loop, i, i, shown=["i0", "i1"])
            said_at(loop, i, i, rating={"i0": rating})
        [window] = loop.health().windows
        assert (window.repeated, window.contradictory) == (3, 1)
    with small_loop(tmp_path / "g", "ordinal-logistic:n_ranks=5") as loop:
        for i, grade in enumerate((2, 3, 4, 2)):
            shown_at(loop, i, i)
            said_at(loop, i, i, grade={"i0": grade})
        [window] = loop.health().windows
        assert (window.repeated, window.contradictory) == (3, 1)
    with choice_loop(tmp_path / "c") as loop:
        for i, choice in enumerate(("first", "equal", "first", "second")):
            shown_at(loop, i, i, shown=["i0", "i1"])
            said_at(loop, i, i, choice=choice)
        [window] = loop.health().windows
        assert (window.repeated, window.contradictory) == (2, 1)


def test_alpha_and_slack_by_hand(tmp_path: Path) -> None:
    """Gains by the weights that the loop has now, over the first k positions."""
    with small_loop(tmp_path / "l", "perceptron", k=3, control=0.0) as loop:
        rng = np.random.default_rng(0)
        rounds = []
        for i in range(25):
            shown = [f"i{j}" for j in rng.permutation(12)[:4]]
            best = shown[int(rng.integers(4))]
            shown_at(loop, i, i, f"p{i % 4}", shown)
            said_at(loop, i, i, better=[best])
            rounds.append((shown, [best, *[name for name in shown if name != best]]))
        known = loop.projection.find_decision("d0")
        assert known is not None
        x = loop.projection.requests.context(known).x
        u = x @ np.array(list(loop.weights.values()))

        def utility(names: Sequence[str]) -> float:
            return sum(float(u[NAMES.index(name)]) / math.log2(i + 2) for i, name in enumerate(names[:3]))

        order = sorted(NAMES, key=lambda name: -u[NAMES.index(name)])
        gains = [(utility(after) - utility(before), utility(order) - utility(before)) for before, after in rounds]
        alpha = sum(gain for gain, _ in gains) / sum(best for _, best in gains)
        found = loop.health()
        assert found.corrections.answers == 25
        assert found.corrections.alpha == pytest.approx(alpha)
        slack = np.mean([max(alpha * best - gain, 0.0) for gain, best in gains])
        assert found.corrections.slack == pytest.approx(slack)
        assert found.corrections.worse == pytest.approx(np.mean([gain < -1e-9 for gain, _ in gains]))
        first = gains[:12]
        assert found.windows[0].alpha == pytest.approx(sum(g for g, _ in first) / sum(b for _, b in first))
        assert found.windows[0].slack == pytest.approx(np.mean([max(alpha * b - g, 0.0) for g, b in first]))


def test_the_error_of_an_order_by_hand(tmp_path: Path) -> None:
    """Before anything is learned all scores are equal: half; afterwards what was clicked stands first."""
    with small_loop(tmp_path / "l", "perceptron", control=0.0) as loop:
        for i in range(2):
            shown_at(loop, i, i)
            said_at(loop, i, i, clicks=["i3"])
        [window] = loop.health().windows
        first, second = 0.5, _rank_error(loop, "d0", "i3")
        assert window.error == pytest.approx((first + second) / 2.0)


def _features(loop: Loop) -> dict[str, Any]:
    known = loop.projection.find_decision("d0")
    assert known is not None
    return dict(zip(NAMES, loop.projection.requests.context(known).x[:, :-1]))


def _rank_error(loop: Loop, id: str, clicked: str) -> float:
    """The share of the other three that one step of the perceptron from D = phi(ybar) - phi(y) puts before it."""
    x = _features(loop)
    shown = NAMES[:4]
    after = [clicked, *[name for name in shown if name != clicked]]
    w = sum((x[a] - x[b]) / math.log2(i + 2) for i, (a, b) in enumerate(zip(after, shown)))
    scores = {name: float(x[name] @ w) for name in shown}
    return sum(scores[name] > scores[clicked] for name in shown if name != clicked) / 3.0


def test_calibration_by_hand(tmp_path: Path) -> None:
    with rating_loop(tmp_path / "l", control=0.0) as loop:
        pairs = []
        for i in range(20):
            decided = loop.decide(person=f"p{i % 4}", repeats=True, id=f"d{i}")
            rating = 1 + i % 5
            loop.feedback(f"d{i}", id=f"e{i}", rating={decided.shown[0]: rating})
            pairs.append((float(decided.predicted[0] or 0.0), float(rating)))
        found = loop.health()
        assert sum(each.answers for each in found.calibration) == 20
        for each in found.calibration:
            inside = [(p, came) for p, came in pairs if each.low <= p < each.high or p == each.high == 5.0]
            assert each.answers == len(inside)
            assert (each.predicted, each.came) == pytest.approx(np.mean(inside, axis=0))


# ---------------------------------------------------------------------------- faults


def fault(
    path: Path, answer: Callable[[int, Sequence[str]], dict[str, Any] | None], n: int = 360, **more: Any
) -> Health:
    """The health of a log of 12 people in turns, decisions a minute apart; `answer` says what is answered, and after
    how many seconds where that is not five."""
    rng = np.random.default_rng(1)
    path.mkdir(exist_ok=True)
    more = {"who": lambda i: f"p{i % 12}"} | more
    with small_loop(path / "l", "perceptron", late_after=60.0, durable="feedback") as loop:
        events = []
        for i in range(n):
            shown = [f"i{j}" for j in rng.permutation(12)[:4]]
            shown_at(loop, i, 60 * i, more["who"](i), shown)
            given = answer(i, shown)
            if given is not None:
                delay = given.pop("after", 5)
                events.append({"decision": f"d{i}", "id": f"e{i}", "time": T0 + (60 * i + delay) * SECOND, **given})
        loop.feedback_many(events)
        return loop.health()


LIKED = [row["f0"] for row in rows(12, 4)]


def liked(shown: Sequence[str], turned: bool = False) -> dict[str, Any]:
    """The item with most of the first feature is liked best, or the other way round."""
    order = sorted(shown, key=lambda name: -LIKED[int(name[1:])], reverse=turned)
    return {"clicks": order[:1]}


def test_a_sound_log_raises_no_alarm(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    found = fault(
        tmp_path,
        lambda i, shown: (
            None if rng.random() < 0.3 else {"clicks": []} if rng.random() < 0.2 else liked(shown, rng.random() < 0.1)
        ),
    )
    assert found.alarms == ()
    assert all(each.evidence < 120.0 for each in found.signals)


FAULTS: dict[str, Callable[[int, Sequence[str]], dict[str, Any] | None]] = {
    "unanswered": lambda i, shown: liked(shown) if i % 4 and (i < 240 or i % 8 == 1) else None,
    "late": lambda i, shown: liked(shown) | ({"after": 90} if i >= 240 and i % 2 else {}),
    "empty": lambda i, shown: {"clicks": []} if i % 7 == 0 or (i >= 240 and i % 3) else liked(shown),
    "contradictory": lambda i, shown: liked(shown, i >= 240 and i % 24 >= 12),
    "error": lambda i, shown: liked(shown, i >= 240 and i % 2 > 0),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found_and_where_it_began(name: str, tmp_path: Path) -> None:
    found = fault(tmp_path, FAULTS[name], 480)
    told = signal(found, name)
    assert told.alarm
    assert told.evidence >= 120.0
    assert told.after > told.before
    assert abs(told.since - T0 - 240 * 60 * SECOND) < 60 * 60 * SECOND
    assert told.remedy
    quiet = {"unanswered", "late", "empty", "one person"} - {name}
    assert not quiet & {each.name for each in found.alarms}


@pytest.mark.slow
@pytest.mark.parametrize("since", [0, 240])
def test_one_person_who_floods_the_log_is_found(since: int, tmp_path: Path) -> None:
    found = fault(
        tmp_path, lambda i, shown: liked(shown), 480, who=lambda i: "bot" if i >= since and i % 10 else f"p{i % 12}"
    )
    told = signal(found, "one person")
    assert told.alarm
    assert "bot" in told.said
    assert "heedful forget l bot" in told.remedy
    assert abs(told.since - T0 - since * 60 * SECOND) < 60 * 60 * SECOND
    assert found.largest.person == ("bot" if since == 0 else found.largest.person)
    alone = fault(tmp_path / "alone", lambda i, shown: liked(shown), n=120, who=lambda i: "ann")
    assert not alone.alarms
    assert "nobody to compare" in signal(alone, "one person").said


@pytest.mark.slow
def test_sound_logs_raise_alarms_as_seldom_as_stated() -> None:
    """Of people who differ, come in visits and delay; looked at twice, with errors that fall. `bench/health.py` has
    1,000 such logs and how soon faults are found."""
    wrong = [run for run in range(100) if alarms(simulate(np.random.default_rng(run), 240), range(120, 241, 120))]
    assert len(wrong) <= 0.05 * 100


@pytest.mark.parametrize("run", range(3))
def test_visits_that_overlap_raise_no_alarm(run: int) -> None:
    """Five of 100 people at a time; what each says in one visit is the same all the time."""
    log = simulate(np.random.default_rng([run, 2]), 400, 100, visits=Visits(5, 20, 1.0))
    assert alarms(log, range(200, 401, 100)) == {}


@pytest.mark.parametrize("run", range(2))
def test_one_annotator_after_another_raises_no_alarm(run: int) -> None:
    log = simulate(np.random.default_rng([run, 3]), 240, 6, visits=Visits(1, 40, in_turn=True))
    assert alarms(log, range(24, 241, 24)) == {}


def test_other_people_with_other_rates_raise_no_alarm() -> None:
    """Two people who seldom answer with nothing, and afterwards two others who often do, each as ever."""
    given = [
        GivenFeedback(i, T0 + i * 60 * SECOND, "abcd"[i % 2 + 2 * (i >= 200)], i % 10 < (1 if i < 200 else 9))
        for i in range(400)
    ]
    shown = [ShownDecision(each.time, each.person, each.time) for each in given]
    found = signals(shown, given, given[-1].time, WatchedLoop("cars", "perceptron", 60.0, 0.05 / 6.0))
    assert [each.name for each in found if each.alarm] == []


@pytest.mark.parametrize("name", ["late", "contradictory", "one person"])
def test_faults_of_some_people_are_found(name: str) -> None:
    found = [simulate(np.random.default_rng([run, 1]), 1000, after=FAULTS_OF_PEOPLE[name], at=400) for run in range(5)]
    assert sum(name in alarms(log, range(1000, 1001)) for log in found) >= 4


def test_a_fault_is_found_where_everybody_comes_once() -> None:
    """Each of 300 people gives four answers in a row, the last half of them with nothing to learn."""
    given = [
        GivenFeedback(i, T0 + i * 60 * SECOND, f"p{i // 4}", i % 4 == 0 or (i >= 600 and i % 4 < 3))
        for i in range(1200)
    ]
    shown = [ShownDecision(each.time, each.person, each.time) for each in given]
    found = signals(shown, given, given[-1].time, WatchedLoop("cars", "perceptron", 60.0, 0.05 / 6.0))
    [told] = [each for each in found if each.alarm]
    assert (told.name, told.people) == ("empty", 300)
    assert "from people who came for the first time" in told.said
    assert (told.before, told.after) == (pytest.approx(0.25), pytest.approx(0.75, abs=0.06))


# ---------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("alpha", [0.0, 0.6, math.nan, "5 %"])
def test_an_alpha_that_is_none_is_refused(alpha: Any, tmp_path: Path) -> None:
    with small_loop(tmp_path / "l") as loop, pytest.raises(ValueError, match="alpha: expected"):
        loop.health(alpha)


def test_a_kind_that_says_nothing_says_why(tmp_path: Path) -> None:
    with small_loop(tmp_path / "l", "perceptron") as loop, rating_loop(tmp_path / "r") as other:
        assert loop.health().uncalibrated == "nothing is predicted of what is shown"
        assert loop.health().uncorrected.startswith("no answer corrected a list")
        assert other.health().uncorrected == "answers of this kind of feedback correct no list"
        assert other.health().uncalibrated == "no answer says how a prediction came out"
        assert "which key" in loop.health().floods
    assert Settings().late_after == 3600.0
