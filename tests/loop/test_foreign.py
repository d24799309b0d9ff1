"""A loop folder that somebody else made: what is in it runs nothing, hangs nobody, takes no memory that is not there,
and reaches nothing outside."""

from __future__ import annotations

import json
import os
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from heedful import Loop
from heedful.loop.log import Log, checksum
from heedful.loop.simulation import Simulation
from heedful.studies.study import picture_in, study_of
from loops import bits, small_loop

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d4944415478da63fcffff3f030005fe02fe0a2dd4"
    "5b0000000049454e44ae426082"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with small_loop(tmp_path / "loop") as loop:
        d = loop.decide(id="d")
        loop.feedback("d", id="e", better=[d.shown[3]])
    return tmp_path / "loop"


@contextmanager
def database(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path / "log.db", isolation_level=None)) as db:
        yield db


SCHEMAS = {
    "a trigger": ["CREATE TRIGGER evil AFTER INSERT ON event BEGIN INSERT INTO forgotten VALUES (NEW.seq, 1); END"],
    "a view": ["ALTER TABLE event RENAME TO e", "CREATE VIEW event AS SELECT * FROM e UNION ALL SELECT * FROM e"],
    "another table": ["CREATE TABLE other (a)"],
    "another index": ["CREATE INDEX other ON event (time) WHERE time > 1"],
    "a view beside": ["CREATE VIEW other AS SELECT 1"],
    "another trigger of a name that is known": [
        "DROP TRIGGER event_keeps",
        "CREATE TRIGGER event_keeps AFTER INSERT ON event BEGIN INSERT INTO forgotten VALUES (NEW.seq, 1); END",
    ],
    "another index of a name that is known": ["DROP INDEX event_subject", "CREATE INDEX event_subject ON event (kind)"],
    "another column": ["ALTER TABLE event ADD COLUMN more GENERATED ALWAYS AS (seq + 1) VIRTUAL"],
    "no table": ["DROP TABLE secret"],
    "another table of a name that is known": ["DROP TABLE forgotten", "CREATE TABLE forgotten (digest, seq)"],
}


@pytest.mark.parametrize("statements", SCHEMAS.values(), ids=SCHEMAS.keys())
def test_a_schema_that_is_not_ours_is_refused(path: Path, statements: list[str]) -> None:
    with database(path) as db:
        for statement in statements:
            db.execute(statement)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = (path / "log.db").read_bytes()
    with pytest.raises(ValueError, match=r"log\.db: expected the tables of a log and nothing else, got "):
        Loop.open(path)
    assert (path / "log.db").read_bytes() == before


def test_statistics_of_the_database_are_no_harm(path: Path) -> None:
    with database(path) as db:
        db.execute("ANALYZE")
    with Loop.open(path) as loop:
        assert loop.verify() == []


def test_a_log_that_no_longer_refuses_changes_opens_and_verify_says_so(path: Path) -> None:
    with database(path) as db:
        db.execute("DROP TRIGGER event_keeps")
    with Loop.open(path) as loop:
        assert "event_keeps missing or changed" in loop.verify()[0]


ONE, TWO = "1" * 16, "2" * 16
"""Numbers of pictures."""

ENDLESS = "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r)"
COLUMNS = (
    "n AS seq, 'loop' AS kind, 'loop' AS id, 1 AS time, NULL AS subject, NULL AS target, 0 AS version, '' AS payload"
)
INTO = "INSERT OR IGNORE INTO forgotten SELECT n, 1"


@pytest.mark.parametrize(
    "statements",
    [
        ["ALTER TABLE event RENAME TO e", f"CREATE VIEW event AS {ENDLESS} SELECT {COLUMNS}, NULL, 0 FROM r"],
        [f"CREATE TRIGGER evil AFTER INSERT ON event BEGIN {INTO} FROM ({ENDLESS} SELECT n FROM r); END"],
    ],
)
def test_what_never_ends_is_not_begun(path: Path, statements: list[str]) -> None:
    with database(path) as db:
        for statement in statements:
            db.execute(statement)
    with pytest.raises(ValueError, match="expected the tables of a log"):
        Loop.open(path)


RECORDS = {
    "no json": "{",
    "another type": '{"shown": "all"}',
    "an item that is none": '{"shown": [0], "items": [1000000]}',
    "nothing to inflate": '{"shown": [], "packed": {"record": 5, "rest": 1000000000000}}',
}


@pytest.mark.parametrize("payload", RECORDS.values(), ids=RECORDS.keys())
def test_a_decision_that_is_none_is_damage_and_says_where(path: Path, payload: str) -> None:
    """Written with the checksum that it should have: nothing but its content is wrong."""
    log = Log(path / "log.db")
    decided = log.find("decision", "d")
    log.close()
    with database(path) as db:
        db.execute("DROP TRIGGER event_keeps")
        new = decided._replace(payload=payload)
        db.execute("UPDATE event SET payload = ?, checked = ? WHERE seq = ?", (payload, checksum(new), new.seq))
    for snapshot in path.glob("snapshot-*"):
        snapshot.unlink()
    with pytest.raises(ValueError, match=rf"log\.db: event {decided.seq}: expected a decision as it was written"):
        Loop.open(path)


# ---------------------------------------------------------------------------- snapshots


def grown(path: Path, size: int) -> Path:
    """A snapshot whose last array has so many bytes, as its header says; there is nothing on the disk of them."""
    [snapshot] = path.glob("snapshot-*.safetensors")
    raw = snapshot.read_bytes()
    [n] = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + n])
    last = max((name for name in header if name != "__metadata__"), key=lambda name: header[name]["data_offsets"][1])
    start = header[last]["data_offsets"][0]
    header[last] |= {"data_offsets": [start, start + size], "shape": [size // 8]}
    written = json.dumps(header).encode()
    snapshot.write_bytes(struct.pack("<Q", len(written)) + written)
    os.truncate(snapshot, 8 + len(written) + start + size)
    return snapshot


@pytest.mark.parametrize("size", [64_000_000, 50_000_000_000])
def test_a_snapshot_of_nothing_is_not_read(path: Path, size: int) -> None:
    with Loop.open(path) as loop:
        loop.snapshot()
        before = bits(loop)
    grown(path, size)
    with Loop.open(path) as loop:
        assert bits(loop) == before
        assert any("expected a snapshot that is all there" in note for note in loop.notes)
        assert loop.verify() == []


def test_a_snapshot_beyond_memory_is_not_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Loop.open(path) as loop:
        loop.snapshot()
        before = bits(loop)
    monkeypatch.setattr("heedful.core.serialization.physical_memory", lambda: 1_000)
    with Loop.open(path) as loop:
        assert bits(loop) == before
        assert any("that fits into memory" in note for note in loop.notes)


# ---------------------------------------------------------------------------- links


def test_links_in_the_folder_lead_nowhere(path: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / ONE).write_bytes(PNG)
    (elsewhere / "study.json").write_text('{"ask": "secret?"}')
    (elsewhere / "simulation.json").write_text('{"weights": {}}')
    (path / "pictures").mkdir()
    (path / "pictures" / TWO).write_bytes(PNG)
    (path / "pictures" / ONE).symlink_to(elsewhere / ONE)
    assert picture_in(path, TWO) == (PNG, "image/png")
    assert picture_in(path, ONE) is None
    (path / "pictures").rename(tmp_path / "moved")
    (path / "pictures").symlink_to(elsewhere)
    assert picture_in(path, ONE) is None
    for name, read in (("study.json", study_of), ("simulation.json", Simulation.read)):
        (path / name).symlink_to(elsewhere / name)
        with pytest.raises(ValueError, match=f"^{name}: expected a file of this folder, got a link"):
            read(path)
    snapshot = path / "snapshot-000000000099.safetensors"
    snapshot.symlink_to(elsewhere / ONE)
    with Loop.open(path) as loop:
        assert loop.verify() == []
    assert (elsewhere / ONE).read_bytes() == PNG


def test_what_is_no_plain_file_is_not_waited_for(path: Path) -> None:
    (path / "pictures").mkdir()
    os.mkfifo(path / "pictures" / ONE)
    (path / "pictures" / TWO).mkdir()
    assert picture_in(path, ONE) is None
    assert picture_in(path, TWO) is None
    os.mkfifo(path / "study.json")
    with pytest.raises(ValueError, match=r"^study\.json: expected a plain file"):
        study_of(path)
    os.mkfifo(path / "snapshot-000000000099.safetensors")
    with Loop.open(path) as loop:
        assert loop.verify() == []


def test_files_that_are_too_large_are_not_read(path: Path) -> None:
    (path / "pictures").mkdir()
    (path / "pictures" / ONE).write_bytes(PNG)
    os.truncate(path / "pictures" / ONE, 10**11)
    assert picture_in(path, ONE) is None
    (path / "study.json").write_text("{}")
    os.truncate(path / "study.json", 10**11)
    with pytest.raises(ValueError, match=r"^study\.json: expected at most"):
        study_of(path)
