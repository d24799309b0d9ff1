"""How much of what is said moves the model: counted as it is folded, kept with it, and told where nothing does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful import Loop
from heedful.loop.model import Moves
from loops import bits_from_scratch, choice_loop, rating_loop, small_loop, specs, values

FIVE = ["i0", "i1", "i2", "i3", "i4"]


def weights(loop: Loop, person: str | None = None) -> bytes:
    return np.array(list(loop.weights_of(person).values())).tobytes()


def test_impressions_of_one_item_move_nothing_and_that_is_said(tmp_path: Path) -> None:
    with small_loop(tmp_path / "l", "posterior") as loop:
        before = weights(loop)
        for i in range(30):
            loop.record([f"i{i % 5}"], [f"i{i % 5}"], id=f"d{i}", probability=0.2)
            form: dict[str, Any] = {"clicks": [f"i{i % 5}"]} if i % 2 else {"action": "buy", "item": f"i{i % 5}"}
            loop.feedback(f"d{i}", **form)
            assert bool(loop.unmoved) == (i >= 19)
        assert weights(loop) == before
        assert loop.projection.moves == Moves(30, 0)
        told = (
            "30 feedback moved the model 0 times: each list showed a single item, and a click or an action on the only "
        )
        told += "one compares it with nothing. Thumbs, up and down, do: each is compared with those before it; so do "
        assert loop.unmoved == f"{told}lists of two or more."
        assert loop.unmoved in loop.caveats
        assert loop.feedback("d0", thumb="up").learned  # what it says would move it does
        assert weights(loop) != before
        assert (loop.projection.moves, loop.unmoved) == (Moves(31, 1), "")


@pytest.mark.parametrize("spec", specs())
def test_what_is_counted_is_what_changed(tmp_path: Path, spec: str) -> None:
    """Of every learner, with offsets of people: the weights of the shared model, or those of the person."""
    with small_loop(tmp_path / "l", spec, shrink=1.0, control=0.0) as loop:
        moved = 0
        forms: list[dict[str, Any]] = [{"better": ["i3"]}, {"better": FIVE}, {"none": True}, {"clicks": ["i1"]}]
        for i in range(12):
            person = f"p{i % 2}" if i % 3 else None
            d = loop.decide(FIVE, id=f"d{i}", person=person)
            form = {"better": list(d.shown)} if i % 4 == 1 else forms[i % 4]
            before = weights(loop), weights(loop, person)
            loop.feedback(f"d{i}", id=f"e{i}", **form)
            moved += (weights(loop), weights(loop, person)) != before
            assert loop.projection.moves == Moves(i + 1, moved)
        assert moved > 0 or spec in ("random-order", "prior-order")


def test_the_count_survives_snapshots_marks_and_undoing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.loop.keeper.BETWEEN", 5)
    with small_loop(tmp_path / "l", "perceptron", control=0.0) as loop:
        for i in range(20):
            d = loop.decide(FIVE, id=f"d{i}")
            loop.feedback(f"d{i}", id=f"e{i}", better=[d.shown[-1]] if i % 4 == 0 else list(d.shown))
        assert loop.projection.moves == Moves(20, 5)
        assert loop.verify() == []
        assert loop.projection.moves == Moves(20, 5)
        assert loop.undo("e17").status == "applied"  # said what the model said already
        assert loop.projection.moves == Moves(19, 5)
        assert loop.undo("e2").status == "applied"
        kept = loop.projection.moves
        bits_from_scratch(loop)
        assert loop.projection.moves == kept
        loop.snapshot()
    with Loop.open(tmp_path / "l") as loop:
        assert loop.projection.moves == kept
        loop.decide(FIVE, id="more")
        loop.feedback("more", none=True)
        with Loop.open(tmp_path / "l") as other:
            assert other.projection.moves == Moves(kept.given + 1, kept.moved)
            other.decide(FIVE, id="other")
            other.feedback("other", better=[other.rank(FIVE)[-1]])
        loop.projection.look()
        assert loop.projection.moves == Moves(kept.given + 2, kept.moved + 1)
    for path in (tmp_path / "l").glob("snapshot-*"):
        path.unlink()
    with Loop.open(tmp_path / "l") as loop:
        assert loop.projection.moves == Moves(kept.given + 2, kept.moved + 1)


@pytest.mark.parametrize(
    ("forms", "why"),
    [
        (
            [{"none": True}, {"clicks": []}],
            "none of it says that anything was preferred. Send what people do choose, too",
        ),
        ([{"better": "same"}], "what was said is what the model says already. Something else that is preferred does"),
    ],
)
def test_why_nothing_moves(tmp_path: Path, forms: list[dict[str, Any]], why: str) -> None:
    with small_loop(tmp_path / "l", "perceptron", control=0.0) as loop:
        for i in range(20):
            d = loop.decide(FIVE, id=f"d{i}")
            form = forms[i % len(forms)]
            loop.feedback(f"d{i}", **({"better": list(d.shown)} if form.get("better") else form))
        assert loop.unmoved == f"20 feedback moved the model 0 times: {why}."


def test_other_kinds_of_loops(tmp_path: Path) -> None:
    with small_loop(tmp_path / "g", "prank:n_ranks=5", control=0.0) as loop:
        grade = values(loop.predict(["i0"]))["i0"]
        loop.decide(["i0"], id="d")
        assert loop.feedback("d", grade={"i0": grade}).learned
        assert loop.projection.moves == Moves(1, 0)
        loop.feedback("d", grade={"i0": 1 if grade > 2 else 5})
        assert loop.projection.moves == Moves(2, 1)
    with rating_loop(tmp_path / "r") as loop:
        loop.decide(["i0"], person="p", id="d")
        loop.feedback("d", rating={"i0": 3})
        loop.feedback("d", none=True)
        assert loop.projection.moves == Moves(2, 1)
    with choice_loop(tmp_path / "c") as loop:
        loop.decide(["i0", "i1"], person="p", id="d")
        loop.feedback("d", choice="cannot_judge")
        loop.feedback("d", choice="first")
        assert loop.projection.moves == Moves(2, 1)
