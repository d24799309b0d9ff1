"""Loops, exports and keys that were made before: they open as they are, decide bit for bit, and say what they said.

States and decisions never change; texts change in commits that change nothing else (tests/goldens/make.py).
"""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from asking import Caller

from goldens import asked, figures, folds, logs, make
from heedful import Loop
from heedful.data.jsonl import as_lines
from heedful.io import import_lines
from heedful.server.main import served
from loops import empty_copy

KINDS = sorted(logs.MAKERS)


def golden(kind: str, name: str) -> str:
    return (logs.FOLDER / kind / name).read_text()


def same_state(kind: str, found: str) -> list[str]:
    """What differs from the state that was kept."""
    expected = golden(kind, "state.json")
    versions = [folds.from_json(written)[0] for written in (expected, found)]
    assert versions[0] == versions[1], f"{kind} is of another version: (in tests) python -m goldens.make states"
    return asked.differences(kind, expected, found)


@pytest.mark.parametrize("snapshot", [True, False], ids=["from its snapshot", "from its log"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_loop_of_before_opens_and_decides_as_it_did(kind: str, snapshot: bool, tmp_path: Path) -> None:
    with Loop.open(logs.place(kind, tmp_path, snapshot=snapshot)) as loop:
        assert loop.notes == []
        assert (loop.projection.keeper.since_snapshot == 0) is snapshot, (
            "nothing is learned anew of what the snapshot has"
        )
        assert same_state(kind, asked.state(loop)) == []
        differ = asked.other_decisions(golden(kind, "decisions.json"), asked.decisions(kind, loop))
        assert differ == [], "raise a version, then (in tests) python -m goldens.make states"
        assert loop.verify() == []  # of the snapshot nobody says which processor made it


@pytest.mark.parametrize("kind", KINDS)
def test_an_export_of_before_makes_the_same_loop(kind: str, tmp_path: Path) -> None:
    with Loop.open(logs.place(kind, tmp_path)) as loop:
        manifest, offered = loop.manifest, loop.items
    lines = as_lines(map(json.loads, golden(kind, "export.jsonl").splitlines()))
    with empty_copy(tmp_path / "again", manifest) as again:
        assert {outcome.status for outcome in import_lines(again, lines)} == {"applied"}
        assert again.verify() == []
        assert again.items == offered
        assert same_state(kind, asked.state(again)) == []


def test_keys_of_before_work(tmp_path: Path) -> None:
    logs.place_all(tmp_path)
    with served(tmp_path) as url:
        for name, read, write in (("all", 200, 200), ("read", 200, 403), ("ended", 401, 401), (None, 401, 401)):
            with closing(Caller(url, None if name is None else logs.key(name))) as caller:
                assert caller.get("/v1/loops").status == read, name
                assert caller.post("/v1/loops/ranking/decisions", {}).status == write, name


@pytest.mark.slow
def test_what_is_said_of_loops_of_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exports, commands, pages, answers over HTTP. Changed texts are written again, in a commit of their own, with
    (in tests) python -m goldens.make texts."""
    monkeypatch.setattr("heedful.server.pages.standing.PATIENCE", 60.0)  # also on a machine that is busy
    found = asked.texts(tmp_path)
    kept = {str(p.relative_to(logs.FOLDER)) for kind in KINDS for p in (logs.FOLDER / kind).iterdir()}
    assert set(found) == {name for name in kept if name.endswith((".txt", "export.jsonl"))}
    for name, text in found.items():
        assert text == (logs.FOLDER / name).read_text(), f"{name}: (in tests) python -m goldens.make texts"


@pytest.mark.slow
@pytest.mark.parametrize("case", figures.CASES)
def test_what_is_reported_of_a_log_with_everything_in_it(case: str) -> None:
    """The figures of its reports. Where they are to differ they are written again, in a commit of their own, with (in
    tests) python -m goldens.make figures."""
    expected = json.loads((figures.FOLDER / f"{case}.json").read_text())
    assert list(figures.differences(expected, figures.figures(case))) == []


def test_logs_are_not_written_again_nor_states_under_the_same_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(make.make_logs()) == len(KINDS) + 1
    assert make.make_states() == []
    before = golden("grades", "state.json")
    monkeypatch.setattr(
        "heedful.learners.ordinal.ordinal_logistic.OrdinalLogistic.update", lambda self, state, x, y, feedback: state
    )
    [told] = make.make_states()
    assert told == "grades: its state or decisions changed, and its version is 1.1 as before"
    assert golden("grades", "state.json") == before
