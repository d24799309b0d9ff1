"""`heedful why`: the loop's answer, of every kind of feedback, and every refusal."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import Ended, heedful

from heedful import Loop
from heedful.results.answers import plain
from kinds import Kind, each_kind, teach


def bad(got: Ended, told: str) -> None:
    assert (got.code, got.out) == (2, "")
    assert got.err.startswith(f"heedful: {told}")


@each_kind
def test_why_is_the_loops_answer(kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with kind.make(tmp_path / "l.heedful") as loop:
        teach(kind, loop, range(9))
    own = ["--own", kind.own] if kind.own else []
    for decision in ("d0", "d8"):
        with Loop.open(tmp_path / "l.heedful", learner=kind.own) as loop:
            known = loop.projection.find_decision(decision)
            assert known is not None
            item = known.names[known.record.shown[-1]]
            told = loop.why(decision, item, 3)
        got = heedful(" ".join(["why l", decision, item, "--top 3 --json", *own]))
        assert (got.code, got.err, got.json) == (0, "", plain(told))
        words = " ".join(heedful(" ".join(["why l", decision, item, *own])).out.split())
        assert words.startswith(f"{item} was shown in place {told.place}")
        assert told.events_about[1:] in words
        assert told.features_about[1:] in words
        for each in told.events:
            assert each.event in words
    bad(heedful(" ".join(["why l d0 i99", *own])), "item i99 is not among the candidates of decision d0")
    bad(heedful(" ".join(["why l d99 i0", *own])), "decision d99 is not in the log")
    bad(heedful(" ".join(["why l d0 i0 --top -1", *own])), "top: expected")
    with Loop.open(tmp_path / "l.heedful", learner=kind.own) as loop:
        loop.forget("p0")
    bad(heedful(" ".join(["why l d0 i0", *own])), "decision d0 was forgotten")
