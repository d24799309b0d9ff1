"""Experiments and promotions as JSON lines: the loop that they make is the one that they came from."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful import Loop
from heedful.data.jsonl import Line
from heedful.io import import_lines, rehearse
from kinds import Kind, each_kind
from loops import bits, bits_from_scratch, lines_of, rows, small_loop

FIXED = f"{Path(__file__).parents[1] / 'fixed.py'}:Fixed"
F0 = {row["id"]: row["f0"] for row in rows(12, 4)}


def in_any_order(lines: list[Line]) -> list[str]:
    """A batch puts decisions before feedback."""
    return sorted(json.dumps(each.record) for each in lines)


def line(number: int, **fields: Any) -> Line:
    return Line(number, fields, None)


def clicked(loop: Loop, rounds: range, seed: int = 0) -> None:
    """People who click what has the most of the first feature, most of the time."""
    rng = np.random.default_rng(seed)
    for i in rounds:
        shown = loop.decide(person=f"p{i % 20}", id=f"d{i}", show=4).shown
        best = max(shown, key=F0.__getitem__) if rng.random() < 0.9 else shown[int(rng.integers(4))]
        loop.feedback(f"d{i}", id=f"e{i}", clicks=[best])


def told_of(loop: Loop) -> Any:
    """All that a loop says of its experiments and promotions, without the places of events in the log."""
    found = [loop.experiment(event.id) for event in loop.projection.log.events(kinds=["experiment"])]
    verdicts = [each._replace(since=0, frozen=min(each.frozen, 1)) for each in found]
    return verdicts, [each._replace(seq=0) for each in loop.promotions()], loop.manifest.learner


def full_life(path: Path) -> Loop:
    """A loop in which learners were tried, promoted, and gone back on."""
    loop = small_loop(path, "perceptron", control=0.1)
    clicked(loop, range(10))
    loop.start_experiment("second-order:epsilon=0.1", share=0.5, id="x1")
    clicked(loop, range(10, 60))
    loop.undo("e12")
    loop.undo("e30")
    loop.stop_experiment(id="s1")
    clicked(loop, range(60, 66))
    loop.start_experiment("posterior", share=0.7, frozen=True, alpha=0.1, id="x2")
    clicked(loop, range(66, 100))
    version = loop.version
    loop.promote("second-order:epsilon=0.1", force=True, by="ann", reason="a test", id="u1")
    clicked(loop, range(100, 110))
    loop.rollback(version, id="r1", reason="too early")
    clicked(loop, range(110, 150))
    loop.promote(force=True, id="u2")
    clicked(loop, range(150, 160))
    return loop


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_an_import_of_experiments_and_promotions_is_the_loop_that_was(batch: int, tmp_path: Path) -> None:
    with full_life(tmp_path / "a") as loop, small_loop(tmp_path / "b", "perceptron", control=0.1) as other:
        lines = lines_of(loop)
        counts = Counter(str((each.record or {})["kind"]) for each in lines)
        assert [counts[kind] for kind in ("experiment", "stop", "promote", "rollback")] == [2, 1, 2, 1]
        assert {each.status for each in import_lines(other, lines, batch=batch) if each.kind != "item"} == {"applied"}
        assert bits(other) == bits(loop) == bits_from_scratch(other)
        assert other.manifest.learner == "posterior"
        assert told_of(other) == told_of(loop)
        assert in_any_order(lines_of(other)) == in_any_order(lines)
        head = other.projection.log.last()
        assert {each.status for each in import_lines(other, lines, batch=batch)} == {"duplicate"}
        assert {each.status for each in import_lines(loop, lines, batch=batch)} == {"duplicate"}
        assert other.projection.log.last() == head
        assert other.verify() == []
        shown = [each.decide(person="p3", id="next", show=5) for each in (loop, other)]
        assert shown[0].shown == shown[1].shown
    with Loop.open(tmp_path / "b") as other:
        assert other.manifest.learner == "posterior"


def test_an_experiment_that_runs_goes_on_where_it_was_imported(tmp_path: Path) -> None:
    with (
        small_loop(tmp_path / "a", "perceptron", control=0.0, seed=3) as loop,
        small_loop(tmp_path / "b", "perceptron", control=0.0, seed=3) as other,
    ):
        clicked(loop, range(5))
        loop.start_experiment("second-order", share=0.5, frozen=True, id="x")
        clicked(loop, range(5, 40))
        assert {each.status for each in import_lines(other, lines_of(loop)) if each.kind != "item"} == {"applied"}
        for each in (loop, other):
            clicked(each, range(40, 60))
        assert told_of(loop) == told_of(other)
        assert other.experiment().running
        assert [known(each, "d50").record.rival for each in (loop, other)] == [known(loop, "d50").record.rival] * 2
        assert known(loop, "d50").record.proposal == known(other, "d50").record.proposal
        assert known(loop, "d20").record.rival == known(other, "d20").record.rival != ()


def known(loop: Loop, id: str) -> Any:
    found = loop.projection.find_decision(id)
    assert found is not None
    return found


@pytest.mark.slow
def test_a_dry_run_takes_them_and_writes_nothing(tmp_path: Path) -> None:
    with full_life(tmp_path / "a") as loop:
        lines = lines_of(loop)
    with small_loop(tmp_path / "b", "perceptron", control=0.1) as other:
        head = other.projection.log.last()
    with rehearse(tmp_path / "b") as loop:
        assert {each.status for each in import_lines(loop, lines) if each.kind != "item"} == {"applied"}
        assert {each.status for each in import_lines(loop, lines)} == {"duplicate"}
        again = [line(1, kind="experiment", id="x3", learner="posterior", against="perceptron"),
                 line(2, kind="experiment", id="x4", learner="posterior", against="perceptron"),
                 line(3, kind="stop", id="s4", experiment="x1"),
                 line(4, kind="stop", id="s3", experiment="x3")]  # fmt: skip
        assert [(each.status, each.reason) for each in import_lines(loop, again)] == [
            ("applied", None),
            ("rejected", "experiment: expected none that runs, got x3: stop it first"),
            ("rejected", "experiment x1 is not running"),
            ("applied", None),
        ]
        assert loop.start_experiment("posterior", id="x5").status == "applied"
        assert loop.stop_experiment(id="s5").status == "applied"
    with Loop.open(tmp_path / "b") as other:
        assert other.projection.log.last() == head


def test_a_dry_run_takes_what_the_learner_takes_that_serves_by_then(tmp_path: Path) -> None:
    """A promotion, and a rollback of it, decide in a dry run, too, which forms of feedback are refused."""
    edit = {"edit": {"f1": 5.0}}
    with small_loop(tmp_path / "a", "dueling-bandit", control=0.0, k=1) as loop:
        for i in range(2):
            loop.decide(loop.items[:3], id=f"d{i}")
        loop.feedback("d0", id="none", none=True)
        version = loop.version
        loop.promote("perceptron", force=True)
        assert loop.feedback("d0", id="e0", item="i0", **edit).learned
        lines = lines_of(loop)
        loop.rollback(version)
        [back] = lines_of(loop)[len(lines) :]
    small_loop(tmp_path / "b", "dueling-bandit", control=0.0, k=1).close()
    with rehearse(tmp_path / "b") as dry:
        assert {each.status for each in import_lines(dry, lines, batch=1) if each.kind != "item"} == {"applied"}
        assert [each.status for each in import_lines(dry, [back])] == ["applied"]
        assert "dueling-bandit" in dry.manifest.learner
        told = dry.feedback("d1", id="e1", item="i0", **edit)
        assert (told.status, "DuelingBandit learns from" in str(told.reason)) == ("rejected", True)
    with small_loop(tmp_path / "c", "dueling-bandit", control=0.0, k=1) as loop:
        assert {each.status for each in import_lines(loop, lines, batch=1) if each.kind != "item"} == {"applied"}


@each_kind
def test_a_promotion_in_a_loop_of_any_kind_is_imported(kind: Kind, tmp_path: Path) -> None:
    with kind.make(tmp_path / "a") as loop, kind.make(tmp_path / "b") as other:
        spec = kind.other if kind.other != loop.manifest.learner else f"{kind.other}:rate=0.2"
        spec = loop.projection.interaction.full_spec(spec)
        interleaves = loop.projection.interaction.ranks
        if interleaves:
            loop.start_experiment(spec, share=1.0, id="x")
        for i in range(20):
            shown = loop.decide(person=f"p{i % 6}", id=f"d{i}", **kind.ask(i)).shown
            loop.feedback({**kind.answer(i, shown), "decision": f"d{i}", "id": f"e{i}"})
            if i == 14:
                loop.promote(spec, force=True, id="u")
        lines = lines_of(loop)
        assert {each.status for each in import_lines(other, lines) if each.kind != "item"} == {"applied"}
        assert other.manifest.learner == loop.manifest.learner == spec
        assert other.weights_of("p1") == pytest.approx(loop.weights_of("p1"))
        assert bits(other) == bits_from_scratch(other)
        assert {each.status for each in import_lines(other, lines)} == {"duplicate"}
        if interleaves:
            one, two = (each.experiment() for each in (loop, other))
            assert one.verdict == two.verdict
            assert one.agreement == two.agreement
        else:
            [told] = import_lines(other, [line(1, kind="experiment", id="y", learner=spec, against=spec)])
            assert told.status == "rejected"
            assert "shows no rankings" in (told.reason or "")


def test_a_rollback_to_an_undo_keeps_what_came_before_it_and_no_more(tmp_path: Path) -> None:
    """In one batch of an import too, where feedback and undos alternate."""
    with small_loop(tmp_path / "a", "perceptron") as loop, small_loop(tmp_path / "b", "perceptron") as other:
        for i in range(8):
            loop.feedback(loop.decide(id=f"d{i}").id, id=f"e{i}", better=[loop.items[i]])
            if i == 3:
                loop.undo("e1")
                version = loop.version
        loop.rollback(version)
        loop.undo("e3")
        assert {each.status for each in import_lines(other, lines_of(loop)) if each.kind != "item"} == {"applied"}
        assert [each.undone for each in other.lessons()] == [each.undone for each in loop.lessons()]
        assert bits(other) == bits(loop)


# ---------------------------------------------------------------------------- what is refused

OWN = """
from pathlib import Path
Path({marker!r}).write_text("run")
"""


def own_file(folder: Path) -> tuple[str, Path]:
    """A learner of somebody's own that leaves a trace when its file is run."""
    marker = folder / "was-run"
    path = folder / "elsewhere.py"
    path.write_text(OWN.format(marker=str(marker)) + Path(FIXED.partition(":")[0]).read_text().partition('"""\n')[2])
    path.write_text("from __future__ import annotations\n" + path.read_text().replace(
        "from __future__ import annotations\n", ""))  # fmt: skip
    return f"{path}:Fixed", marker


def test_no_file_is_run_that_nobody_named(tmp_path: Path) -> None:
    spec, marker = own_file(tmp_path)
    evidence = {"method": "log", "alpha": 0.05}
    told = [
        line(1, kind="experiment", id="x", learner=spec, against="perceptron", share=0.5),
        line(2, kind="promote", id="u", learner=spec, before="perceptron", evidence=evidence),
        line(3, kind="promote", id="v", learner="second-order", before=spec, evidence=evidence),
        line(4, kind="decision", id="d", person="p", candidates=["i0", "i1"], shown=["i0", "i1"], arm="learned",
             learner=f"{spec}@1", proposal={"start": 0, "swapped": [False]}),
        line(5, kind="feedback", id="e", decision="d", clicks=["i1"]),
    ]  # fmt: skip
    with small_loop(tmp_path / "l", "perceptron") as loop:
        found = list(import_lines(loop, told))
        assert [each.status for each in found] == ["rejected"] * 3 + ["applied"] * 2
        for each in found[:3]:
            assert each.reason == (
                f"learner: {spec} is not one of heedful's, and its file was not named when opening the loop: "
                f"learner={spec!r}"
            )
        with pytest.raises(ValueError, match="was not named when opening the loop"):
            loop.projection.candidate(spec)
        loop.evaluate("second-order")
        assert loop.manifest.learner == "perceptron"
    with rehearse(tmp_path / "l") as loop:
        assert [each.status for each in import_lines(loop, told[:3])] == ["rejected"] * 3
    assert not marker.exists()
    with small_loop(tmp_path / "own", spec) as loop:  # its file is named here
        assert marker.exists()
        assert [each.status for each in import_lines(loop, [
            line(1, kind="experiment", id="x", learner=f"{spec}:tilt=2", against=spec, share=0.5),
            line(2, kind="promote", id="u", learner=f"{spec}:tilt=2", before=spec, evidence=evidence),
        ])] == ["applied"] * 2  # fmt: skip
        assert loop.manifest.learner == f"{spec}:tilt=2"


DRAFT = {"experiment": "x", "teams": [0, 1], "coins": [0], "ranks": [[1, 2], [2, 1]], "places": [1.0, 0.5]}
DECISION = {"kind": "decision", "id": "d", "candidates": ["i0", "i1"], "shown": ["i0", "i1"], "arm": "interleaved"}
TRIED = {"kind": "experiment", "id": "x", "learner": "second-order", "against": "perceptron"}
MADE = {"kind": "promote", "id": "u", "learner": "second-order", "before": "perceptron",
        "evidence": {"method": "log", "alpha": 0.05}}  # fmt: skip


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (TRIED | {"learner": 3}, "learner: expected a text"),
        (TRIED | {"learner": "nobody"}, "learner: expected "),
        (TRIED | {"learner": "prank:n_ranks=5"}, "learner: expected one that is taught what is better"),
        (TRIED | {"against": None}, "against: expected a text"),
        (TRIED | {"share": 1.5}, "share: expected a number from 0 to 1, got 1.5"),
        (TRIED | {"alpha": 0}, "alpha: expected a number from 1e-6 to 0.5, got 0"),
        (TRIED | {"frozen": 7}, "frozen: expected true or false, got 7"),
        (TRIED | {"since": 7}, "experiment: expected id, learner, "),
        ({"kind": "stop", "id": "s"}, "experiment: expected a text of 1 to 200"),
        ({"kind": "stop", "id": "s", "experiment": "x"}, "experiment x is not in the log"),
        (MADE | {"before": "nobody"}, "learner: expected "),
        (MADE | {"evidence": []}, 'evidence: expected an object whose method is "interleaving" or "log"'),
        (MADE | {"evidence": {"method": "agreement", "alpha": 0.05}}, 'evidence: expected an object whose method is "'),
        (MADE | {"evidence": {"method": "log"}}, "evidence.alpha: expected a number"),
        (MADE | {"evidence": {"method": "interleaving", "alpha": 0.05}}, "experiment: expected a text of 1 to 200"),
        (MADE | {"experiment": "x"}, "experiment x is not in the log"),
        (MADE | {"forced": "so"}, "forced: expected a list of sentences, got 'so'"),
        (MADE | {"forced": [1]}, "forced[0]: expected a text"),
        (MADE | {"by": 1}, "by: expected a text"),
        (DECISION, "proposal: expected what is kept of a draft of 2"),
        (DECISION | {"proposal": DRAFT | {"experiment": ""}}, "proposal.experiment: expected a text"),
        (DECISION | {"proposal": DRAFT | {"teams": [0]}}, "proposal.teams: expected what is kept of a draft of 2"),
        (DECISION | {"proposal": DRAFT | {"coins": [2]}}, "proposal.coins: expected a whole number"),
        (DECISION | {"proposal": DRAFT | {"ranks": [[1, 2]]}}, "proposal.ranks[0]: expected what is kept"),
        (DECISION | {"proposal": DRAFT | {"places": [1.0, 0.0]}}, "proposal.places: expected numbers above 0"),
        (DECISION | {"proposal": DRAFT, "rival": "i0"}, "rival: expected a list"),
    ],
)  # fmt: skip
def test_a_line_that_makes_no_sense_is_rejected_with_a_reason(record: Any, told: str, tmp_path: Path) -> None:
    with small_loop(tmp_path / "l", "perceptron") as loop:
        head = loop.projection.log.last()
        [found] = import_lines(loop, [Line(1, record, None)])
        assert found.status == "rejected"
        assert (found.reason or "").startswith(told)
        assert loop.projection.log.last() == head


def test_frozen_from_the_first_event_on_is_frozen(tmp_path: Path) -> None:
    """Where nothing was learned yet, both sides stay at nothing."""
    with small_loop(tmp_path / "l", "perceptron", control=0.0) as loop:
        loop.start_experiment("second-order", share=1.0, frozen=True, id="x")
        assert loop.experiment().frozen > 0
        first = loop.decide(person="p", id="first", show=12)
        ranks = known(loop, "first").record.proposal["ranks"]
        clicked(loop, range(10))
        order = [sorted(zip(side, first.shown)) for side in ranks]
        again = loop.decide(person="p", id="again", show=12)
        assert [sorted(zip(side, again.shown)) for side in known(loop, "again").record.proposal["ranks"]] == order
