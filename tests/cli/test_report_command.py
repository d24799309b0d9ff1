"""`heedful report`: what it says, in words and as JSON, and every refusal."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from command import Ended, done, heedful, refusal

from heedful import Loop
from heedful.loop.cluster_robust import paired_difference
from heedful.loop.simulation import Simulation
from heedful.results.answers import plain
from heedful.results.report import Report
from loops import small_loop

FIVE = ["i0", "i1", "i2", "i3", "i4"]


pytestmark = pytest.mark.usefixtures("folder")


def made(n: int, learned: int = 0, alone: int = 2, **settings: float) -> Report:
    """A loop "cars" with n lists answered by clicks: at that place in the learned ones, at that in those left alone,
    every seventh at the place after it."""
    with small_loop("cars.heedful", "perceptron", **{"control": 0.4} | settings) as loop:
        for i in range(n):
            shown = loop.decide(FIVE, id=f"d{i}", person=f"p{i % 20}")
            place = (alone if shown.arm == "control" else learned) + (i % 7 == 0)
            loop.feedback(f"d{i}", id=f"e{i}", clicks=[shown.shown[place]])
        return loop.report()


def told(got: Ended) -> str:
    """What it printed, as one line; it ended well."""
    assert (got.code, got.err) == (0, "")
    return " ".join(got.out.split())


@pytest.mark.slow
def test_numbers_keep_their_digits_on_narrow_screens_and_the_line_gives_way() -> None:
    report = made(400)
    for columns in (120, 80, 64, 50):
        got = done("report cars", width=columns)
        assert "…" not in got.out, columns
        for arm, arm_name in ((report.learned, "Learned"), (report.control, "Your")):
            [line] = [line for line in got.out.splitlines() if f"{arm.mean:.2f}" in line.split() and arm_name in line]
            numbers = [word for word in line.split() if word[0].isdigit()]
            assert numbers == [f"{arm.shown:,}", f"{arm.answered:,}", f"{arm.mean:.2f}"], columns
            assert len(line) <= columns
            assert bool(set("▁▂▃▄▅▆▇█") & set(line)) == (columns > 50)


def test_thumbs_are_counted_by_arm_with_an_interval() -> None:
    """The shares and intervals are those of their definition; of grades and ratings of thumbs there is no word."""
    with small_loop("cars.heedful", control=0.4) as loop:
        given: dict[str, list[tuple[int, float]]] = {"learned": [], "control": []}
        for i in range(200):
            arm = loop.decide(FIVE, id=f"d{i}", person=f"p{i % 20}").arm
            up = (i // 20) % 3 != 0 if arm == "learned" else (i // 20) % 3 == 0
            loop.feedback(f"d{i}", id=f"e{i}", thumb="up" if up else "down")
            given[arm].append((i % 20, float(up)))
        loop.record(FIVE, FIVE, id="other")
        loop.feedback("other", thumb="up")  # of somebody else's list, of neither arm
        undone = loop.decide(FIVE, id="undone", person="p0")
        loop.feedback(undone.id, id="u", thumb="up")
        loop.undo("u")
        thumbs = loop.report().thumbs
    assert thumbs is not None
    for share, ups in ((thumbs.learned, given["learned"]), (thumbs.control, given["control"])):
        assert (share.total, share.yes) == (len(ups), sum(up for _, up in ups))
        assert share.share == pytest.approx(share.yes / share.total)
        assert share.low is not None
        assert share.high is not None
        assert 0.0 <= share.low < share.share < share.high <= 1.0
    people, up = (np.array(each) for each in zip(*given["learned"]))
    more, of_nobody = [*up, 0.0, 0.0, 1.0, 1.0], [*people, 1001, 1002, 1003, 1004]  # two of either, of nobody
    by_hand = paired_difference(np.array(more), np.array(of_nobody, np.int64))
    assert by_hand is not None
    assert (thumbs.learned.low, thumbs.learned.high) == pytest.approx((max(by_hand.low, 0.0), by_hand.high))
    apart = thumbs.difference
    assert apart is not None
    assert apart.by == pytest.approx(
        thumbs.learned.yes / thumbs.learned.total - thumbs.control.yes / thumbs.control.total
    )
    out = told(heedful("report cars"))
    up, low = 100.0 * thumbs.learned.share, 100.0 * thumbs.learned.low
    assert f"Thumbs up: {up:.3g} % of {thumbs.learned.total} (from {low:.3g} % to" in out
    assert f"of your order (control); the difference is {apart.by:+.3f}, from {apart.low:+.3f} to" in out
    assert "(20 people): learning helps." in out
    assert heedful("report cars --json").json["thumbs"] == plain(thumbs)


def test_thumbs_of_one_person_alone_or_all_alike_tell_no_interval() -> None:
    with small_loop("cars.heedful", control=0.4) as loop:
        assert loop.report().thumbs is None
        for i in range(30):
            loop.decide(FIVE, id=f"d{i}", person="p")
            loop.feedback(f"d{i}", thumb="up" if i % 3 else "down")
        thumbs = loop.report().thumbs
    assert thumbs is not None
    assert thumbs.learned.total + thumbs.control.total == 30
    assert (thumbs.learned.low, thumbs.control.high, thumbs.difference) == (None, None, None)
    assert "Whether learning helps they cannot say: it takes those of two people" in told(heedful("report cars"))


def test_as_json() -> None:
    report = made(50)
    got = done("report cars --json")
    assert got.json == plain(report)
    assert heedful("report cars --json --last 10").json["decisions"] == 10
    assert "The newest 10 decisions, since" in told(heedful("report cars --last 10"))
    assert "The newest decision, since" in told(heedful("report cars --last 1"))


def test_one_decision_is_said_in_the_singular() -> None:
    with small_loop("cars.heedful", "perceptron") as loop:
        loop.decide(id="d")
    assert "The only decision, since" in told(heedful("report cars"))


def test_nothing_there_yet_and_nothing_to_compare() -> None:
    made(0, control=0.0)
    out = told(heedful("report cars"))
    assert "That cannot be known here. No list is left in its own order, as control is 0: " in out
    assert out.endswith("No feedback so far. Nothing was decided so far.")


def test_imported_deferred_undone_and_late() -> None:
    with small_loop("cars.heedful", "perceptron", control=0.0) as loop:
        loop.record(FIVE, FIVE, id="r", time=1_700_000_000_000_000)
        loop.decide(FIVE, id="mail", deferred=True)
        loop.feedback("r", id="e", clicks=["i1"])
    assert "Feedback: 1, of them 0 (0 %) with nothing to learn from, 0 (0 %) against" in told(heedful("report cars"))
    out = told(heedful("report cars"))
    assert "1 (100 %) late; 0 more undone." in out
    assert out.endswith("All 2 decisions, since 2023-11-14 22:13 UTC; 1 of them imported; 1 deferred and not shown")
    with Loop.open("cars.heedful") as loop:
        loop.undo("e")
    assert "No feedback but 1 that were undone." in told(heedful("report cars"))


def test_where_the_truth_is_known() -> None:
    with small_loop("cars.heedful", "perceptron", control=0.0, k=2) as loop:
        Simulation({"f0": 1.0}, 0.5).write(loop.path)
        assert "A simulated person teaches this loop: no learned list was answered so far." in told(
            heedful("report cars")
        )
        value = loop.projection.catalogue.features(loop.projection.catalogue.versions(FIVE))[:, 0]
        for i in range(10):
            loop.decide(FIVE, id=f"d{i}")
            loop.feedback(f"d{i}", id=f"e{i}", better=[FIVE[j] for j in (-value).argsort()])
    out = told(heedful("report cars"))
    assert re.search(r"regret [\d.]+ on average over 10 lists; at most [\d.]+\.", out)
    with Loop.open("cars.heedful") as loop:
        loop.undo("e3")
    assert "over 9 lists; no bound: something was undone." in told(heedful("report cars"))


def test_a_loop_that_is_not_there_is_refused() -> None:
    assert refusal("report vans") == "vans.heedful: no such loop; make one: heedful init vans ITEMS.csv"


def test_no_decisions_is_no_report() -> None:
    assert "--last: expected a whole number, 1 or more, got '0'" in refusal("report cars --last 0")


def test_a_simulation_that_makes_no_sense_is_bad_input(folder: Path) -> None:
    made(0)
    (folder / "cars.heedful" / "simulation.json").write_text('{"weights": {"f9": 1}}')
    assert refusal("report cars") == "simulation.json: weights: expected features of the loop, got 'f9'"
