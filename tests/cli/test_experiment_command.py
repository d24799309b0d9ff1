"""`heedful experiment` and `heedful promote`: what the loop says, in words and as JSON, and every exit code."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import Ended, done, heedful, refusal

from heedful import Loop
from loops import as_json, bits, bits_from_scratch, choice_loop, rows, small_loop

F0 = {row["id"]: row["f0"] for row in rows(12, 4)}
FIXED = f"{Path(__file__).parents[1] / 'fixed.py'}:Fixed"
UP, DOWN = f"{FIXED}:tilt=1", f"{FIXED}:tilt=-1"
SECOND = "second-order:epsilon=0.1"


pytestmark = pytest.mark.usefixtures("folder")


def bad(got: Ended, told: str) -> None:
    assert (got.code, got.out) == (2, "")
    assert got.err.startswith(f"heedful: {told}"), got.err


def words(got: Ended) -> str:
    """What it printed, as one line; it ended well."""
    assert (got.code, got.err) == (0, "")
    return " ".join(got.out.split())


def choose(loop: Loop, rounds: range, people: int = 25) -> None:
    """People who click what has the most of the first feature."""
    for i in rounds:
        shown = loop.decide(person=f"p{i % people}", id=f"d{i}", show=4).shown
        loop.feedback(f"d{i}", id=f"e{i}", clicks=[max(shown, key=F0.__getitem__)])


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("experiment cars --share 0.5", "--share: expected only with --start or --plan"),
        ("experiment cars --stop --alpha 0.1", "--alpha: expected only with --start or --plan"),
        ("experiment cars --plan --frozen", "--frozen: expected only with --start"),
        (f"experiment cars --start {SECOND} --days 3", "--days: expected only with --plan"),
        ("experiment cars --plan --share 0", "share: expected a number from 1e-6 to 1, got 0.0"),
        ("promote cars --list --force", "--force: expected none with --list"),
        (f"promote cars --list --learner {SECOND}", "--learner: expected none with --list"),
        ("promote cars --list --by ann", "--by: expected none with --list"),
    ],
)
def test_an_option_that_would_not_count_is_refused(given: str, told: str) -> None:
    small_loop("cars.heedful", "perceptron").close()
    bad(heedful(given), told)
    with Loop.open("cars.heedful") as loop:
        assert loop.projection.log.counts().keys() == {"loop", "item"}


def test_what_is_no_feedback_is_not_said_to_teach_nothing() -> None:
    with small_loop("cars.heedful", "perceptron") as loop:
        loop.decide(id="d", deferred=True)
    started = words(heedful(f"experiment cars --start {SECOND} --share 0.2"))
    assert "nothing in it" not in started
    assert f"Tried: {SECOND}, next to perceptron; lists of 20 % of the people are drafted by both" in started
    assert "heedful experiment cars" in started
    assert "nothing in it" not in words(heedful("experiment cars --stop"))
    assert "nothing in it" not in words(heedful("feedback cars d --activate"))


@pytest.mark.slow
def test_an_experiment_from_the_start_to_the_promotion() -> None:
    """Learners of which one ranks as people choose and the other the other way round."""
    small_loop("cars.heedful", DOWN, control=0.0).close()
    own = f"--own {DOWN}"
    bad(heedful(f"experiment cars {own}"), "experiment: there was none")
    bad(heedful(f"experiment cars --stop {own}"), "experiment: none is running")
    got = heedful(f"experiment cars --start {UP} --share 0.9 --json {own}")
    assert (got.code, got.json["status"]) == (0, "applied")
    with Loop.open("cars.heedful", learner=DOWN) as loop:
        choose(loop, range(150))
        found = loop.experiment()
        assert found.ready
        version = loop.version
    assert done(f"experiment cars --json {own}").json == as_json(found)
    told = words(heedful(f"experiment cars {own}", width=400))
    assert f"{UP} against {DOWN}: lists of 90 % of the people are drafted together" in told
    assert f"People prefer the candidate, {UP}." in told
    assert "It may be promoted: heedful promote cars" in told
    got = heedful(f"promote cars --by ann --reason better --json {own}")
    assert (got.code, got.json["learner"], got.json["before"], got.json["forced"]) == (0, UP, DOWN, [])
    assert got.json["evidence"]["verdict"] == "b"
    with Loop.open("cars.heedful", learner=DOWN) as loop:
        assert loop.manifest.learner == UP
        [promotion] = loop.promotions()
        assert (promotion.by, promotion.reason) == ("ann", "better")
    assert done(f"promote cars --list --json {own}").json == [as_json(promotion) | {"changed": ""}]
    told = words(heedful(f"promote cars --list {own}", width=400))
    assert UP in told
    assert "interleaving" in told
    assert "it is over" in words(heedful(f"experiment cars {own}", width=400))
    assert heedful(f"rollback cars {version} {own}").code == 0
    assert "rolled back" in words(heedful(f"promote cars --list {own}", width=400))
    assert heedful(f"experiment cars --stop {own}").code == 0
    with Loop.open("cars.heedful", learner=DOWN) as loop:
        assert loop.manifest.learner == DOWN


def test_a_learner_of_ones_own_is_tried_in_a_loop_of_heedfuls() -> None:
    small_loop("cars.heedful", "perceptron", control=0.0).close()
    told = f"learner: {UP} is not one of heedful's, and its file was not named when opening the loop"
    bad(heedful(f"experiment cars --start {UP}"), told)
    bad(heedful(f"promote cars --learner {UP} --force"), told)
    got = heedful(f"experiment cars --start {UP} --share 1 --json --own other.py:Mine --own {FIXED}")
    assert (got.code, got.json["status"]) == (0, "applied")
    got = heedful("experiment cars --json")
    assert (got.code, got.json["learner"]) == (0, UP)
    assert "its file was not named when opening the loop" in got.err
    assert heedful(f"promote cars --force --own {UP}").code == 0
    bad(heedful("decide cars"), told)
    assert "(here: --own SPEC)" in heedful("decide cars").err
    assert heedful(f"decide cars --own {UP}").code == 0


def test_without_the_evidence_nobody_is_promoted_unless_forced() -> None:
    with small_loop("cars.heedful", "perceptron", control=0.2) as loop:
        loop.start_experiment(SECOND, share=0.5)
        choose(loop, range(30), people=4)
        reasons, version = loop.experiment().against_promotion, loop.version
    told = words(heedful("experiment cars", width=400))
    for reason in reasons:
        assert f"Not to be promoted: {reason}." in told
    running = told.partition(" Not to be promoted")[0]
    bad(heedful("promote cars"), f"promote: {SECOND} is not ready: {reasons[0]}")
    told = words(heedful("promote cars --list"))
    assert told == "nobody was promoted: the loop has the learner that it was made with"
    assert heedful("promote cars --list --json").json == []
    told = words(heedful("promote cars --force", width=400))
    assert f"{SECOND} serves now in place of perceptron" in told
    for reason in reasons:
        assert f"Against it spoke: {reason}" in told
    back = told.rpartition("To go back on this: heedful ")[2]
    assert back.startswith("rollback cars ")
    assert heedful(back).code == 0
    with Loop.open("cars.heedful") as loop:
        assert loop.manifest.learner == "perceptron"
        assert version == int(back.split()[-1])
        assert bits(loop) == bits_from_scratch(loop)
    assert heedful("experiment cars --stop").code == 0
    over = words(heedful("experiment cars", width=400))
    assert "; it is over" in over
    assert over.replace("; it is over", "") == running  # and no reason why it is not to be promoted


@pytest.mark.slow
def test_a_plan_begins_nothing() -> None:
    with small_loop("cars.heedful", "perceptron") as loop:
        choose(loop, range(30))
        planned = [loop.plan_experiment(share, days=days) for share, days in ((0.2, 14.0), (0.5, 3.0))]
        head = loop.projection.log.last()
    assert done("experiment cars --plan --json").json == as_json(planned[0])
    told = words(heedful("experiment cars --plan --share 0.5 --days 3", width=400))
    assert f"With 50 % of the people: about {planned[1].people:,} people and {planned[1].sessions:,} sessions" in told
    assert f"Take it with care: {planned[1].caveat}." in told
    with Loop.open("cars.heedful") as loop:
        assert loop.projection.log.last() == head


def test_by_the_log_alone() -> None:
    with small_loop("cars.heedful", "perceptron") as loop:
        choose(loop, range(20))
    bad(heedful("promote cars"), "learner: expected its name, as no experiment is running")
    bad(heedful(f"promote cars -l {SECOND}"), f"promote: {SECOND} is not ready: ")
    got = heedful(f"promote cars -l {SECOND} --force --json")
    assert (got.code, got.json["learner"], got.json["evidence"]["method"]) == (0, SECOND, "log")
    assert got.json["answer"]["status"] == "applied"
    bad(heedful(f"promote cars -l {SECOND} --force"), "learner: expected another than the one that serves")


def test_what_makes_no_sense_ends_with_2_and_what_cannot_be_read_with_1(folder: Path) -> None:
    small_loop("cars.heedful", "perceptron").close()
    for line, told in (
        ("experiment cars --start nobody", "learner: expected"),
        ("experiment cars --stop --plan", "--start, --stop, --plan: expected one of them at most"),
        ("experiment cars --start perceptron --plan", "--start, --stop, --plan: expected one of them at most"),
        ("experiment none", ""),
        ("promote none", ""),
    ):
        bad(heedful(line), told)
    for line in ("experiment cars --share 1.5", "experiment cars --plan --days 0", "promote cars --by"):
        assert heedful(line).code == 2
    assert heedful("experiment cars --start second-order").code == 0
    bad(heedful("experiment cars --start posterior"), "experiment: expected none that runs")
    choice_loop("pairs.heedful").close()
    bad(heedful("experiment pairs --start gp"), "experiment: ")
    (folder / "cars.heedful" / "log.db").write_bytes(b"no log" * 100)
    for line in ("experiment cars", "promote cars --list", "promote cars --force"):
        refusal(line, code=1)


def test_one_person_leaves_the_error_of_the_credit_unknown() -> None:
    with small_loop("cars.heedful", "perceptron", control=0.0) as loop:
        loop.start_experiment(SECOND, share=1.0)
        choose(loop, range(2), people=1)
        assert loop.experiment().credit_error is None
    told = words(heedful("experiment cars"))
    assert "credit by positions" in told
    assert "+-" not in told
    with Loop.open("cars.heedful") as loop:
        loop.feedback(loop.decide(person="q", id="q", show=4).id, clicks=["i1"])
        shown = loop.decide(person="r", id="r", show=4).shown
        loop.feedback("r", clicks=[shown[1]])
    assert "+-" in words(heedful("experiment cars"))
