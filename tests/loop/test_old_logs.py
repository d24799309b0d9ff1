"""Logs that earlier code wrote: they open, say what they said, decide what they decided, bit for bit.

What is expected was written by the code that wrote the log (tests/logs/make.py). Sums of a model are compared to ten
digits, as the last bits of some learners' depend on the machine; that a log folds to the same bits whichever way its
records are written is compared on the machine at hand.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from heedful import Loop
from heedful.data.jsonl import Line
from heedful.io import export_lines, import_lines
from logs.make import MAKERS, answer, seen
from loops import bits_of, empty_copy

LOGS = Path(__file__).parents[1] / "logs"


@pytest.fixture(params=sorted(MAKERS))
def old(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """(the folder of a loop as it was, what it said of itself)."""
    folder = tmp_path / "old"
    folder.mkdir()
    (folder / "log.db").write_bytes(gzip.decompress((LOGS / f"{request.param}.db.gz").read_bytes()))
    return folder, json.loads((LOGS / f"{request.param}.json").read_text())


def test_an_old_log_opens_and_decides_as_it_did(old: tuple[Path, dict[str, Any]]) -> None:
    folder, expected = old
    with Loop.open(folder) as loop:
        assert loop.notes == []
        assert loop.verify() == []
        found = json.loads(json.dumps(seen(loop)))
        assert found["sums"] == pytest.approx(expected["sums"], rel=1e-10)
        for name in ("version", "people", "export", "again"):
            assert found[name] == expected[name]
        for ours, theirs in zip(found["next"], expected["next"], strict=True):
            assert ours == theirs
        late = answer(loop)
        assert late["sums"] == pytest.approx(expected["answer"]["sums"], rel=1e-10)
        assert {**late, "sums": None} == {**expected["answer"], "sums": None}
        assert loop.verify() == []
    with Loop.open(folder) as loop:
        assert json.loads(json.dumps(seen(loop)["again"])).items() >= expected["again"].items()


def test_an_old_log_and_the_same_events_written_today_fold_to_the_same_bits(
    old: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    folder, _ = old
    with Loop.open(folder) as loop:
        lines = [Line(i, json.loads(json.dumps(line)), None) for i, line in enumerate(export_lines(loop), 1)]
        with empty_copy(tmp_path / "new", loop.manifest) as again:
            assert {outcome.status for outcome in import_lines(again, lines)} == {"applied"}
            assert again.verify() == []
            assert bits_of(again.projection.model) == bits_of(loop.projection.model)
            for person in (None, "p0", "p1"):
                ours, theirs = (each.decide(person=person, id=f"then-{person}") for each in (again, loop))
                assert (ours.shown, ours.probability) == (theirs.shown, theirs.probability)
