"""`heedful report`: what it says, in words and as JSON, and every refusal."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from command import Ended, heedful

from heedful import Loop
from heedful.loop.report import Report
from heedful.loop.simulation import Simulation
from heedful.loop.wire import plain
from loops import small_loop

FIVE = ["i0", "i1", "i2", "i3", "i4"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


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


def test_in_words() -> None:
    report = made(120)
    apart = report.difference
    assert apart is not None
    assert apart.low > 0.0
    out = told(heedful("report cars"))
    assert f"learned {report.learned.shown} {report.learned.answered} {report.learned.mean:.3f} " in out
    assert f"left in their own order {report.control.shown} {report.control.answered} {report.control.mean:.3f} " in out
    wanted = f"Learned less own order: {apart.by:+.3f}, from {apart.low:+.3f} to {apart.high:+.3f} with 95 % confidence"
    assert f"{wanted} (20 people): learning helps." in out
    counts = report.feedback
    share = f"{counts.contradictory} ({counts.contradictory / 120:.0%}) against what the model says by now"
    assert f"Feedback: 120, of them 0 (0%) with nothing to learn from, {share}, 0 (0%) late; 0 more undone." in out
    assert re.search(r"All 120 decisions, since \d{4}-\d\d-\d\d \d\d:\d\d UTC$", out)
    assert "simulated" not in out
    line = re.search(r"0\.\d{3} ([▁▂▃▄▅▆▇█]{12}) ", out)
    assert line is not None
    assert set(line[1]) <= set("▇█")  # nearly always the first


def test_as_json() -> None:
    report = made(50)
    got = heedful("report cars --json")
    assert (got.code, got.err) == (0, "")
    assert got.json == plain(report)
    assert heedful("report cars --json --last 10").json["decisions"] == 10
    assert "The newest 10 decisions, since" in told(heedful("report cars --last 10"))


def test_where_it_does_harm_or_may_be_chance() -> None:
    made(120, learned=2, alone=0)
    assert "learning does harm." in told(heedful("report cars"))


def test_what_may_be_chance_is_called_so() -> None:
    made(40, learned=1, alone=1)
    assert "it may be chance." in told(heedful("report cars"))


def test_nothing_there_yet_and_nothing_to_compare() -> None:
    made(0, control=0.0)
    out = told(heedful("report cars"))
    assert "Whether learning helps cannot be said: no list is left in its own order, as control is 0: " in out
    assert out.endswith("No feedback so far. Nothing was decided so far.")


def test_imported_deferred_undone_and_late() -> None:
    with small_loop("cars.heedful", "perceptron", control=0.0) as loop:
        loop.record(FIVE, FIVE, id="r", time=1_700_000_000_000_000)
        loop.decide(FIVE, id="mail", deferred=True)
        loop.feedback("r", id="e", clicks=["i1"])
    assert "Feedback: 1, of them 0 (0%) with nothing to learn from, 0 (0%) against" in told(heedful("report cars"))
    out = told(heedful("report cars"))
    assert "1 (100%) late; 0 more undone." in out
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
        value = loop.ledger.shelf.features(loop.ledger.shelf.versions(FIVE))[:, 0]
        for i in range(10):
            loop.decide(FIVE, id=f"d{i}")
            loop.feedback(f"d{i}", id=f"e{i}", better=[FIVE[j] for j in (-value).argsort()])
    out = told(heedful("report cars"))
    assert re.search(r"regret [\d.]+ on average over 10 lists; at most [\d.]+\.", out)
    with Loop.open("cars.heedful") as loop:
        loop.undo("e3")
    assert "over 9 lists; no bound: something was undone." in told(heedful("report cars"))


def test_the_plot_shows_both(folder: Path) -> None:
    made(60)
    from matplotlib.colors import to_rgb
    from matplotlib.image import imread

    assert heedful("report cars --plot out.png").code == 0
    pixels = imread(folder / "out.png")[:, :, :3]
    for color in ("C0", "C1"):
        assert (abs(pixels - to_rgb(color)).max(axis=2) < 0.02).sum() > 100
    assert heedful("report cars --plot out.svg").code == 0
    assert "<svg" in (folder / "out.svg").read_text()


def test_there_is_nothing_to_draw(folder: Path) -> None:
    made(0)
    got = heedful("report cars --plot out.png")
    assert (got.code, got.err) == (
        0,
        "heedful: --plot: nothing was shown so far, so there is nothing to draw in out.png\n",
    )
    assert not (folder / "out.png").exists()


@pytest.mark.parametrize(
    ("line", "wanted", "code"),
    [
        ("report cars --plot a.txt", "--plot: wanted a name that ends in .png or .pdf or .svg, got 'a.txt'", 2),
        ("report cars --plot no/a.png", "--plot: wanted a file in a folder that exists, got 'no/a.png'", 2),
        ("report cars --plot dir.png", "--plot: wanted a file, got a folder, 'dir.png'", 2),
        ("report vans", "vans.heedful: no such loop; make one: heedful init vans ITEMS.csv", 2),
    ],
)
def test_what_is_refused(line: str, wanted: str, code: int) -> None:
    made(0)
    Path("dir.png").mkdir()
    got = heedful(line)
    assert (got.code, got.out, got.err) == (code, "", f"heedful: {wanted}\n")


@pytest.mark.parametrize("there", [True, False])
def test_a_plot_that_could_not_be_written_is_refused_first(there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    made(0)
    asked: list[Path] = []

    def readable(path: Path, mode: int) -> bool:  # root may write all
        if mode == os.W_OK:
            asked.append(path)
        return mode != os.W_OK

    monkeypatch.setattr("os.access", readable)
    if there:
        Path("a.png").touch()
    got = heedful("report cars --plot a.png")
    assert (got.code, got.out) == (2, "")
    assert got.err == "heedful: --plot: wanted a file that may be written, got 'a.png'\n"
    assert asked == [Path("a.png" if there else ".")]


def test_no_decisions_is_no_report() -> None:
    got = heedful("report cars --last 0")
    assert (got.code, got.out) == (2, "")
    assert "'--last'" in got.err


def test_a_simulation_that_makes_no_sense_is_bad_input(folder: Path) -> None:
    made(0)
    (folder / "cars.heedful" / "simulation.json").write_text('{"weights": {"f9": 1}}')
    got = heedful("report cars")
    assert (got.code, got.out) == (2, "")
    assert got.err == "heedful: simulation.json: weights: wanted features of the loop, got 'f9'\n"


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    made(0)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    got = heedful("report cars --plot a.png")
    assert (got.code, got.out) == (1, "")
    assert got.err == "heedful: --plot needs matplotlib, which is not installed: pip install 'heedful[plot]'\n"
