"""What lists without an answer say: whether they are answers, and whether answers of one kind of list are missing."""

from __future__ import annotations

import math
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful import Loop, Settings
from heedful.loop.arms import arm_difference
from heedful.loop.cluster_robust import difference
from heedful.results.report import Arm
from loops import choice_loop, rating_loop, set_clock, small_loop

FIVE = ["i0", "i1", "i2", "i3", "i4"]
START = 1_700_000_000_000_000


@pytest.fixture
def slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten minutes pass between two events, and two hours until a list counts as not answered."""
    times = count(START, 600_000_000)
    set_clock(monkeypatch, lambda: next(times))


def page(folder: Path, n: int = 60, nones: str = "", **settings: Any) -> Loop:
    """A loop whose page reports clicks: on 4 of 5 learned lists and on 1 of 5 in the caller's order, at any place.

    `nones` names the arms whose lists without a click are answered "none": "learned", "control" or both."""
    loop = small_loop(folder, "perceptron", control=0.5, **settings)
    for i in range(n):
        d = loop.decide(FIVE, id=f"d{i}", person=f"p{i}")
        if (i % 5 == 0) != (d.arm == "learned"):
            loop.feedback(d.id, id=f"e{i}", clicks=[d.shown[i % 3]])
        elif d.arm in nones:
            loop.feedback(d.id, id=f"e{i}", none=True)
    return loop


# ---------------------------------------------------------------------------- one kind is answered less often


@pytest.mark.usefixtures("slowly")
def test_clicks_alone_are_told_as_shares_of_all_lists_and_not_compared_by_answers(tmp_path: Path) -> None:
    with page(tmp_path / "l") as loop:
        found = loop.report()
        clicks = found.click_through
        assert (clicks.learned.total, clicks.control.total) == (found.learned.shown, found.control.shown)
        assert (clicks.learned.yes, clicks.control.yes) == (found.learned.answered, found.control.answered)
        by = clicks.learned.yes / clicks.learned.total - clicks.control.yes / clicks.control.total
        assert clicks.difference.by == pytest.approx(by)
        assert 0.3 < clicks.difference.low < by < clicks.difference.high < 0.85
        ratio = found.sample_ratio
        assert ratio.differs
        assert ratio.e_value >= 20.0
        assert found.difference is None
        assert "have an answer" in found.unsaid
        assert "none_after" in found.unsaid
        told = loop.projection.interaction.findings(found)
        assert told.verdict.kind == "open"
        text = " ".join(
            [told.verdict.short, *told.verdict.more, *[s for each in told.sections for s in each.sentences]]
        )
        assert "Too early" not in text
        assert f"{by:+.3f}" in text


@pytest.mark.parametrize("silent", ["learned", "control"])
@pytest.mark.usefixtures("slowly")
def test_there_is_no_verdict_where_one_arm_is_silent_without_a_click(tmp_path: Path, silent: str) -> None:
    """Clicks come as often in either arm; the lists of one arm without a click are never answered."""
    with small_loop(tmp_path / "l", "perceptron", control=0.5) as loop:
        for i in range(75):
            d = loop.decide(FIVE, id=f"d{i}", person=f"p{i}")
            if i % 3 == 0:
                loop.feedback(d.id, clicks=[d.shown[i % 2]])
            elif d.arm != silent:
                loop.feedback(d.id, none=True)
        found = loop.report()
        assert found.difference is None
        assert found.sample_ratio.differs
        health = {each.name: each for each in loop.health().signals}["sample ratio"]
        assert health.alarm
        assert health.evidence == pytest.approx(found.sample_ratio.e_value)


@pytest.mark.usefixtures("slowly")
def test_loops_that_are_answered_alike_are_compared_as_before(tmp_path: Path) -> None:
    """Where every list is answered, nothing is missing: the interval is that of the answers."""
    with page(tmp_path / "l", nones="learned control") as loop:
        found = loop.report()
        assert found.unsaid == ""
        assert found.difference.low > 0.0
        assert not found.sample_ratio.differs
        assert not any(each.alarm for each in loop.health().signals if each.name == "sample ratio")


@pytest.mark.usefixtures("slowly")
def test_thumbs_are_not_compared_where_one_kind_of_list_gets_fewer(tmp_path: Path) -> None:
    with small_loop(tmp_path / "l", "posterior:swap=0", control=0.5) as loop:
        for i in range(60):
            d = loop.decide(FIVE, id=f"d{i}", person=f"p{i}")
            if d.arm == "learned" or i % 4 == 0:
                loop.feedback(d.id, thumb="up" if i % 3 else "down")
        thumbs = loop.report().thumbs
        assert thumbs.difference is None
        assert "have a thumb" in thumbs.unsaid


def test_kinds_that_compare_no_arms_say_nothing_of_them(tmp_path: Path) -> None:
    with choice_loop(tmp_path / "l", control=0.5) as loop:
        assert loop.report().sample_ratio is None
        assert {each.name: each for each in loop.health().signals}["sample ratio"].evidence == 1.0


# ---------------------------------------------------------------------------- silence is none after a deadline


def timed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, minutes: list[tuple[int, int | None]], **settings: Any
) -> Loop:
    """A loop with lists shown and clicked (None: never) so many minutes after the start; all in the model's order."""
    at = [0]
    set_clock(monkeypatch, lambda: START + at[0] * 60_000_000)
    loop, shown = small_loop(folder, "perceptron", control=0.0, **settings), dict[int, str]()
    happens = [(minute, what, i) for i, both in enumerate(minutes) for what, minute in enumerate(both)
               if minute is not None]  # fmt: skip
    for minute, what, i in sorted(happens):
        at[0] = minute
        if what == 0:
            shown[i] = loop.decide(FIVE, id=f"d{i}", person=f"p{i}").shown[0]
        else:
            loop.feedback(f"d{i}", id=f"e{i}", clicks=[shown[i]])
    return loop


def test_silence_is_none_once_the_deadline_has_passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the times of the decisions; a click that comes later counts in its place, what is younger not yet."""
    lists = [(0, 1), (0, None), (50, 51), (50, None), (100, None), (0, 119), (119, 120)]
    with timed(tmp_path / "l", monkeypatch, lists, none_after=3600.0) as loop:
        found = loop.report()
        assert found.learned == Arm(7, 5, pytest.approx(3 / 5))  # shown by minute 59: two without a click, one late
        clicks = found.click_through
        assert (clicks.learned.total, clicks.learned.yes) == (5, 3)
        assert found.feedback.given == 4
        loop.undo("e5")
        assert loop.report().learned == Arm(7, 5, pytest.approx(2 / 5))  # as if it had never been clicked
        loop.undo("e0")
        assert loop.report().learned == Arm(7, 4, pytest.approx(1 / 4))  # what was answered in time was not silent
        assert found.sample_ratio is None  # nobody is silent by then
        told = " ".join(loop.projection.interaction.findings(found).notes)
        assert "1 hour" in told
    with timed(tmp_path / "m", monkeypatch, lists) as loop:
        assert loop.report().learned == Arm(7, 4, 1.0)


def test_silence_teaches_no_order(tmp_path: Path) -> None:
    """No click on a list is no dislike of any item; that nobody answered is in the log."""
    with page(tmp_path / "l", 30) as loop, page(tmp_path / "m", 30, none_after=1e-6) as other:
        assert loop.weights == other.weights
        assert other.projection.log.last()[0] > loop.projection.log.last()[0]
        assert other.verify() == []


def test_with_a_deadline_clicks_alone_get_a_verdict(tmp_path: Path) -> None:
    with page(tmp_path / "l", none_after=1e-6) as loop:
        found = loop.report()
        assert found.learned.answered >= found.learned.shown - 1
        assert 0.1 < found.difference.low < found.difference.by < found.difference.high
        assert found.sample_ratio is None
        assert loop.projection.interaction.findings(found).verdict.kind == "good"


def test_the_forgotten_leave_no_silence_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lists = [(0, 1), (0, None), (0, None), (120, 120)]
    with timed(tmp_path / "l", monkeypatch, lists, none_after=60.0) as loop:
        assert loop.report().learned == Arm(4, 3, pytest.approx(1 / 3))
        loop.forget("p1")
        assert loop.report().learned == Arm(3, 2, pytest.approx(1 / 2))


def test_lists_in_silence_count_where_a_log_is_evaluated(tmp_path: Path) -> None:
    """Every second list of two, drawn at random, gets a click on its first item: a list is worth 1/2."""
    settings: dict[str, Any] = {"control": 0.0, "sampled": 1.0, "temperature": 100.0, "none_after": 1e-6}
    with small_loop(tmp_path / "l", "perceptron", **settings) as loop:
        for i in range(80):
            d = loop.decide(["i0", "i1"], id=f"d{i}", person=f"p{i}")
            if i % 2:
                loop.feedback(d.id, clicks=[d.shown[0]])
        values = {each.measure: each for each in loop.evaluate("perceptron").learners[0].values}
        pairs, lists = values["swapped pairs"], values["list value"]
        assert (pairs.comparisons, lists.comparisons) == (40, 80)
        assert lists.value is not None
        assert lists.low < 0.5 < lists.high < 0.95


def test_a_deadline_is_taken_where_none_says_something(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^none_after: expected none in a loop of ratings, "):
        rating_loop(tmp_path / "r", none_after=60.0)
    with pytest.raises(ValueError, match=r"^none_after: expected none in a loop of choices, "):
        choice_loop(tmp_path / "c", none_after=60.0)
    for wrong in (0, -1.0, 1e13, "60", True, math.nan):
        with pytest.raises(ValueError, match=r"^none_after: expected "):
            Settings(none_after=wrong)
    assert Settings().none_after is None


# ---------------------------------------------------------------------------- the interval


def drawn(rng: np.random.Generator, n: int, share: float, missing: str, apart: float = 0.0) -> tuple[Any, ...]:
    """Scores, whether answered, whether learned, of n lists of as many people who click alike in either arm."""
    control, click = rng.random(n) < share, rng.random(n) < 0.3
    lost = (control if "control" in missing else ~control) & (rng.random(n) < 0.5)
    lost &= click if "clicks" in missing else ~click if "nones" in missing else True
    return click / rng.integers(1, 6, n), ~lost, ~control


@pytest.mark.parametrize(
    "missing", [f"{what} {arm}" for what in ("nones", "clicks", "") for arm in ("learned", "control")]
)
def test_random_clicks_get_no_verdict_whatever_one_arm_loses(missing: str) -> None:
    """At most .05 of 150 samples and three standard errors, also where the answered shares are not looked at."""
    rng, wrong, of_answers = np.random.default_rng(5), 0, 0
    for _ in range(150):
        scores, answered, learned = drawn(rng, 400, 0.3, missing)
        found = arm_difference(scores, answered, learned, np.arange(400))
        wrong += found.low > 0.0 or found.high < 0.0
        among = difference(scores[answered], learned[answered], np.arange(answered.sum()))
        of_answers += among is not None and (among.low > 0.0 or among.high < 0.0)
    assert wrong <= 150 * 0.05 + 3.0 * math.sqrt(150 * 0.05 * 0.95)
    assert of_answers > 30 or missing.strip() in ("learned", "control")  # of what was answered it would


def test_a_small_control_without_a_click_does_not_make_a_verdict() -> None:
    """Rare clicks and fifteen lists left alone: all scores of these are often 0, which is no certainty."""
    rng, wrong = np.random.default_rng(6), 0
    for _ in range(300):
        scores, _, learned = drawn(rng, 300, 0.05, "")
        scores = scores * (rng.random(300) < 0.3)
        found = arm_difference(scores, np.ones(300, bool), learned, np.arange(300))
        wrong += found is not None and (found.low > 0.0 or found.high < 0.0)
    assert wrong <= 300 * 0.05 + 3.0 * math.sqrt(300 * 0.05 * 0.95)
