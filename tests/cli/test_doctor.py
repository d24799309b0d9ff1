"""`heedful doctor`: what it finds of a loop that is well, and of every way in which one is not."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from command import done, heedful

from heedful import Loop, Settings
from heedful.cli.doctor import _inspect
from heedful.core.serialization import read_arrays, write_arrays
from heedful.features import infer
from heedful.storage import Address, Place
from loops import rows, set_clock, small_loop
from unprivileged import unprivileged


@pytest.fixture(autouse=True)
def loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A loop with three decisions for two people, two of them answered, one taken back."""
    monkeypatch.chdir(tmp_path)
    with small_loop("cars.heedful", "posterior", n_items=4, n_features=2) as loop:
        for round, person in enumerate(("ann", "bob", None)):
            d = loop.decide(person=person, id=f"d{round}")
            if round:
                loop.feedback(d.id, clicks=[d.shown[2]], id=f"e{round}")
        loop.undo("e1")
    return tmp_path / "cars.heedful"


def looked() -> dict[str, list[dict[str, str]]]:
    got = heedful("doctor cars --json")
    found: dict[str, list[dict[str, str]]] = {}
    for each in got.json:
        assert set(each) == {"check", "status", "told", "next"}
        assert each["status"] in ("ok", "warning", "problem")
        found.setdefault(each["check"], []).append(each)
    problems = [each for each in got.json if each["status"] == "problem"]
    assert (got.code, got.err) == (1 if problems else 0, "")
    return found


def statuses(found: dict[str, list[dict[str, str]]]) -> dict[str, str]:
    """What is not ok."""
    return {check: each["status"] for check, all in found.items() for each in all if each["status"] != "ok"}


def only_finding(check: str, status: str) -> dict[str, str]:
    """The finding of the one check that is not ok, which has this status."""
    found = looked()
    assert statuses(found) == {check: status}
    return found[check][0]


def log(statement: str, *values: Any) -> None:
    """Change the log behind heedful's back."""
    with sqlite3.connect("cars.heedful/log.db") as db:
        triggers = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            db.execute(f"DROP TRIGGER {name}")
        db.execute(statement, values)
        for _, sql in triggers:
            db.execute(sql)
    db.close()


def when(loop: Loop) -> int:
    event = loop.projection.log.find("decision", "d2")
    assert event is not None
    return event.time


def test_a_loop_that_is_well() -> None:
    got = done("doctor cars")
    lines = got.out.splitlines()
    assert lines[-1].rstrip() == "All is well."
    assert all(line.startswith("✓ ") for line in lines[:-2])
    found = looked()
    assert statuses(found) == {}
    told = "items 4, decisions 3, answered 2, feedback 2, undone 1, people 2, forgotten 0, exports 0"
    assert found["events"][0]["told"] == told
    assert found["features"][0]["told"] == "3, the caller's score among them"
    assert found["model"][0]["told"].startswith("version ")
    assert set(found) == {
        *("permissions", "disk", "log", "model", "snapshots", "events", "features", "categories", "late", "repeated"),
        *("clock", "candidates", "fields", "lessons", "sample ratio"),
    }


def test_a_log_that_is_no_database(loop: Path) -> None:
    (loop / "log.db").write_bytes(b"nothing of the kind" * 500)
    found = only_finding("log", "problem")
    assert "cars.heedful/log.db: expected a" in found["told"]
    assert "back-up" in found["next"]
    got = heedful("doctor cars")
    assert got.code == 1
    assert got.out.splitlines()[-1].rstrip() == "1 problem, 0 warnings."


def test_a_log_that_can_be_changed(loop: Path) -> None:
    with sqlite3.connect(loop / "log.db") as db:
        db.execute("DROP TRIGGER event_stays")
    db.close()
    assert "no longer refuses changes: event_stays" in only_finding("log", "problem")["told"]


def test_a_log_with_an_event_missing() -> None:
    log("DELETE FROM event WHERE kind = 'decision' AND id = 'd1'")
    found = looked()
    assert "problem" in statuses(found).values()
    assert found["log"][0]["told"] == "1 event is about an event that is not there"


def test_a_model_that_is_not_the_fold_of_the_log(loop: Path) -> None:
    with Loop.open(loop) as one:
        one.snapshot()
    [path] = loop.glob("snapshot-*")
    arrays, manifest = read_arrays(path)
    arrays["shared.m"][0] += 1e-9
    manifest.pop("schema")
    write_arrays(path, arrays, manifest)  # nothing wrong with it, but that it says something else
    found = only_finding("model", "problem")
    assert found["told"] == "the model is not the fold of the log, bit for bit"
    for snapshot in loop.glob("snapshot-*"):  # as it says
        snapshot.unlink()
    assert "snapshot-*" in found["next"]
    assert statuses(looked()) == {}


def test_a_snapshot_that_is_damaged(loop: Path) -> None:
    with Loop.open(loop) as one:
        path = one.snapshot()
    assert looked()["snapshots"][0]["told"] == "1 usable, the newest 0 events behind the log"
    path.write_bytes(path.read_bytes()[:-3])
    assert path.name in only_finding("snapshot", "warning")["told"]


def test_a_snapshot_of_other_code(loop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.python_version", lambda: "2.7")
    with Loop.open(loop) as one:
        one.snapshot()
    monkeypatch.undo()
    monkeypatch.chdir(loop.parent)
    assert only_finding("snapshot", "warning")["told"].endswith("made with another python")


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_a_loop_that_others_may_read(loop: Path) -> None:
    (loop / "log.db").chmod(0o640)
    found = only_finding("permissions", "warning")
    assert found["told"].endswith("cars.heedful/log.db")
    assert found["next"] == "chmod -R go= cars.heedful"
    (loop / "log.db").chmod(0o600)
    loop.chmod(0o755)
    assert statuses(looked()) == {"permissions": "warning"}
    loop.chmod(stat.S_IRWXU)
    assert statuses(looked()) == {}


def test_a_loop_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.cli.doctor.os.access", lambda path, _, **how: path.name != "log.db")
    assert only_finding("writing", "warning")["told"] == "cannot be written by this user: cars.heedful/log.db"


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.mark.parametrize(("free", "status"), [(1000, "problem"), (2**29, "warning"), (2**40, None)])
def test_room_on_the_disk(monkeypatch: pytest.MonkeyPatch, free: int, status: str | None) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(2**41, 0, free))
    found = looked()
    assert statuses(found).get("disk") == status
    told = {1000: "1,000 bytes free", 2**29: "512 MB free", 2**40: "1.0 TB free"}[free]
    assert found["disk"][0]["told"].startswith(told)


def test_feedback_that_comes_late(loop: Path) -> None:
    with Loop.open(loop) as one:
        decided = when(one)
        for n in range(2):
            one.feedback("d2", better=[f"i{n}"], time=decided + 3_601_000_000)
        assert statuses(looked()) == {}  # half of it
        one.feedback("d2", better=["i2"], time=decided + 3_601_000_000)
    assert only_finding("late", "warning")["told"] == "3 of 5 feedback came more than 3600 s after the decision"


def test_feedback_that_is_older_than_its_decision(loop: Path) -> None:
    with Loop.open(loop) as one:
        decided = when(one)
        one.feedback("d2", better=["i1"], time=decided - 900_000)  # clocks differ a little
        assert statuses(looked()) == {}
        one.feedback("d2", better=["i0"], time=decided - 1_100_000)
    assert only_finding("clock", "warning")["told"] == "1 feedback are older than their decisions"


def test_time_that_ran_backwards(loop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Loop.open(loop) as one:
        decided = when(one)
        for later in (60, 59.5, 0, 1, 2, 70):
            set_clock(monkeypatch, lambda later=later: decided + int(later * 1e6))
            one.decide()
    monkeypatch.undo()
    monkeypatch.chdir(loop.parent)
    assert only_finding("clock", "warning")["told"] == "time ran backwards 1 time"


def test_servers_of_a_database_whose_clocks_differ_are_not_time_that_ran_backwards(
    home: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file has one machine's clock; a database has that of each server that owned the loop in turn."""
    with small_loop(home / "two.heedful") as two:
        two.decide(id="d2")
        decided = when(two)
        for later in (100, 60, 61, 110):  # the second server's clock is 40 s behind
            set_clock(monkeypatch, lambda later=later: decided + int(later * 1e6))
            d = two.decide(id=f"at {later}")
        two.feedback(d.id, clicks=[d.shown[2]], time=decided + 70_000_000)
        found = {each.check: (each.status, each.told) for each in _inspect(two.path, None)}
        assert found["clock"][0] == ("ok" if isinstance(home, Address) else "warning")
        for later in (200, 139):
            set_clock(monkeypatch, lambda later=later: decided + int(later * 1e6))
            two.decide()
        told = [(each.status, each.told) for each in _inspect(two.path, None) if each.check == "clock"]
        ran = "1 time" if isinstance(home, Address) else "2 times"
        assert ("warning", f"time ran backwards {ran}") in told


def test_an_import_is_not_time_that_ran_backwards(loop: Path) -> None:
    with Loop.open(loop) as one:
        one.record(["i0", "i1"], ["i1"], id="old", time=1_500_000_000_000_000)
        one.feedback("old", clicks=["i1"], time=1_500_000_001_000_000)
    assert statuses(looked()) == {}


def test_feedback_that_was_sent_twice_under_different_ids(loop: Path) -> None:
    with Loop.open(loop) as one:
        one.feedback("d2", clicks=["i3"], id="a")
        one.feedback("d1", clicks=["i3"], id="b")  # of another decision
        assert statuses(looked()) == {}
        one.feedback("d2", clicks=["i3"], id="c")
    assert only_finding("repeated", "warning")["told"].startswith("1 of 5 feedback say again")


def test_categories_that_the_encoding_does_not_know() -> None:
    items = [{"id": f"i{j}", "make": "vw" if j % 2 else "bmc", "size": j} for j in range(8)]
    context = infer([{"day": "mon"}, {"day": "tue"}] * 3, identifier="")
    shutil.rmtree("cars.heedful")
    with Loop.create("cars.heedful", encoding=infer(items), items=items, context=context) as one:
        one.decide(context={"day": "mon"})
        assert statuses(looked()) == {}
        one.put_items([{"id": "new", "make": "audi", "size": 3}, {"id": "newer", "make": "audi", "size": 4}])
        one.decide(context={"day": "sun"})
        one.decide([{"id": "x", "make": "saab", "size": 1}, {"id": "y", "make": "vw", "size": 1}])
        one.decide([{"id": "x", "features": [0.0] * one.manifest.encoding.size}])
    found = looked()
    assert statuses(found) == {"categories": "warning"}
    told = found["categories"][0]["told"]
    assert all(part in told for part in ("make=audi (2 times)", "day=sun (1 times)", "make=saab (1 times)"))


def test_what_the_settings_make_impossible_to_prove() -> None:
    shutil.rmtree("cars.heedful")
    small_loop("cars.heedful", "posterior", n_items=3, n_features=2, control=0.0, exploration=0.0).close()
    found = looked()
    assert [each["told"].split(":")[0] for each in found["settings"]] == ["control 0", "exploration 0"]
    assert statuses(found) == {"settings": "warning"}


def test_a_note_of_the_loop_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.loop.history.learner_version", lambda learner, settings: "another")
    found = looked()
    assert statuses(found)["note"] == "warning"
    assert "problem" not in statuses(found).values()
    assert "the learner's code has changed" in found["note"][0]["told"]


def test_an_event_that_was_changed() -> None:
    log("UPDATE event SET time = time + 1 WHERE id = 'd0'")
    found = looked()
    assert statuses(found) == {"log": "problem"}
    [only] = found["log"]  # told once, whatever comes across it
    assert "its content was changed since it was written" in only["told"]


def test_doctor_after_somebody_was_forgotten(loop: Path) -> None:
    with Loop.open(loop) as one:
        one.forget("bob")
    found = looked()
    assert statuses(found) == {}
    assert "decisions 2, answered 1, feedback 1, undone 0, people 1, forgotten 1" in found["events"][0]["told"]


@pytest.mark.parametrize("line", ["doctor", "report", "health", "show", "evaluate perceptron"])
@pytest.mark.parametrize("kept", [True, False])
def test_what_reads_changes_nothing(loop: Path, line: str, kept: bool) -> None:
    with Loop.open(loop) as one:
        one.snapshot()
    if not kept:
        for file in loop.glob("snapshot-*"):
            file.unlink()
    before = {file.name: file.read_bytes() for file in loop.iterdir()}
    words = line.split()
    heedful(" ".join([words[0], "cars", *words[1:]]))
    assert {file.name: file.read_bytes() for file in loop.iterdir()} == before


def test_a_log_of_a_newer_version_is_left_as_it_is(loop: Path) -> None:
    with closing(sqlite3.connect(loop / "log.db")) as db:
        db.execute("PRAGMA user_version = 99")
    before = {file.name: file.read_bytes() for file in loop.iterdir()}
    [found] = looked()["log"]
    assert "newer than" in found["told"]
    assert "back-up" not in found["next"]
    assert {file.name: file.read_bytes() for file in loop.iterdir()} == before


def test_texts_that_are_not_stored_are_no_unknown_categories() -> None:
    shutil.rmtree("cars.heedful")
    items = [row | {"about": f"thing number {j} here"} for j, row in enumerate(rows(6, 2))]
    encoding = infer(items, identifier="id")
    Loop.create("cars.heedful", encoding=encoding, items=items, settings=Settings(store_text=False)).close()
    assert statuses(looked()) == {}


def test_who_was_promoted_and_who_is_tried() -> None:
    assert {"promotion", "experiment"}.isdisjoint(looked())
    with Loop.open("cars.heedful") as loop:
        loop.snapshot()
        loop.start_experiment("perceptron", share=0.2, id="x")
        begun = loop.projection.log.last()[0]
    assert [each["told"] for each in looked()["experiment"]] == [
        f"perceptron is tried against posterior on 20 % of the people, since event {begun} (x)"
    ]
    with Loop.open("cars.heedful") as loop:
        made = loop.promote(force=True, by="ann")
        loop.start_experiment("second-order", id="y")
    found = looked()
    assert [each["told"] for each in found["promotion"]] == [
        f"perceptron serves in place of posterior: promoted by ann in event {made.answer.seq}, "
        f"against {len(made.forced)} reasons"
    ]
    [told] = [each["told"] for each in found["experiment"]]
    assert told.startswith("second-order is tried against perceptron on nobody's lists: it only proposes, since event ")
    assert statuses(found) == statuses(looked())
    assert "snapshot" not in found  # that of the learner before is no fault
    with Loop.open("cars.heedful") as loop:
        loop.rollback(begun - 1)
    assert {"promotion", "experiment"}.isdisjoint(looked())


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    ["doctor", "report", "health", "why d1", "why d1 i3", "export -", "export {}"],
)
@pytest.mark.parametrize("line_ends", ["killed", "closed"])
def test_what_reads_reads_where_nothing_can_be_written(tmp_path: Path, line: str, line_ends: str) -> None:
    """Also the events that are in a write-ahead file alone, as after a crash."""
    words = line.replace("{}", "out.jsonl").split()
    command = " ".join([words[0], "cars", *words[1:]])
    heedful(command)  # which imports modules that only the administrator may read
    with unprivileged() as folder:
        os.chdir(folder)
        with small_loop("other.heedful", "posterior", control=0.0) as one:
            for n in range(3):
                one.feedback(one.decide(id=f"d{n}", person="ann").id, clicks=["i3"])
            shutil.copytree("other.heedful", "cars.heedful")
        if line_ends == "closed":
            shutil.rmtree("cars.heedful")
            os.rename("other.heedful", "cars.heedful")
        loop = folder / "cars.heedful"
        before = {file.name: file.read_bytes() for file in loop.iterdir() if file.suffix != ".db-shm"}
        os.chmod(loop, 0o500)
        got = heedful(command)
        assert got.code == 0, got
        assert {file.name: file.read_bytes() for file in loop.iterdir() if file.suffix != ".db-shm"} == before
        if words[0] == "export":
            lines = got.out if words[1] == "-" else Path(words[1]).read_text()
            assert sum('"kind":"feedback"' in each.replace(" ", "") for each in lines.splitlines()) == 3
            assert "forget does not name it" in got.err
        else:
            assert got.err == ""
    os.chdir(tmp_path)


def damage_page(file: Path) -> None:
    """Zeros where a table ends."""
    content = bytearray(file.read_bytes())
    content[-2000:] = bytes(2000)
    file.write_bytes(content)


def write_version(file: Path) -> None:
    """A schema that this heedful does not know."""
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA user_version = 99")


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (damage_page, "expected a whole database of keys, got one with"),
        (write_version, "expected a database of keys of schema 1, got 99: a newer heedful wrote it"),
        (
            lambda file: file.write_bytes(b"no database" * 100),
            "expected a whole database of keys, got a damaged file or one of another kind",
        ),
        (lambda file: (file.unlink(), file.mkdir()), "server.db"),
    ],
    ids=["a page", "a newer schema", "a file of another kind", "a folder"],
)
def test_the_keys_of_a_folder_are_checked(tmp_path: Path, spoil: Any, told: str) -> None:
    done(f"keys create site --folder {tmp_path}", notes=True)
    file = tmp_path / "server.db"
    before = file.read_bytes()
    got = done(f"doctor {tmp_path} --json").json
    assert [each.get("file", each.get("loop")) for each in got] == [str(tmp_path / "cars.heedful"), str(file)]
    assert got[1]["findings"] == [{"check": "keys", "status": "ok", "told": "whole", "next": ""}]
    assert file.read_bytes() == before
    spoil(file)
    before = file.read_bytes() if file.is_file() else b""
    out = heedful(f"doctor {tmp_path}")
    assert out.code == 1
    assert "1 loop: 1 problem, " in out.out
    [finding] = heedful(f"doctor {tmp_path} --json").json[1]["findings"]
    assert (finding["check"], finding["status"]) == ("keys", "problem")
    assert told in finding["told"]
    assert "\n" not in finding["told"]
    assert not file.is_file() or file.read_bytes() == before
    assert {path.name for path in tmp_path.glob("server.db*")} == {"server.db"}
