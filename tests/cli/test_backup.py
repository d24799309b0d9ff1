"""`heedful backup`, `restore` and `copy`: what is copied, what is refused, and what is said of it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from command import done, heedful, refusal

from heedful import Loop
from heedful.server.audit import COMMAND, Audit
from heedful.server.keys import Keys
from heedful.server.links import Links
from heedful.storage import Address
from loops import bits, small_loop

ALL = "2 loops, 2 copied; keys copied"


@pytest.fixture(autouse=True)
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two loops, one of a tenant, two keys and a link to a study."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "served" / "acme").mkdir(parents=True)
    for name in ("cars", "acme/vans"):
        with small_loop(tmp_path / "served" / f"{name}.heedful", control=0.0) as loop:
            d = loop.decide(id="d1", person="ann")
            loop.feedback(d.id, id="e1", clicks=[d.shown[3]])
    with closing(Keys(tmp_path / "served")) as keys:
        keys.revoke(keys.create("one")[0].prefix)
        keys.create("two", tenant="acme", scopes=["read"], rate=3.5)
    Links(tmp_path / "served").create("main", "cars", 5, segment="all", people=10, shows=True)
    return tmp_path / "served"


def keys_of(home: Path | Address) -> list[object]:
    with closing(Keys(home)) as keys:
        return [key._asdict() for key in keys.all()]


def acts_of(home: Path | Address) -> list[object]:
    return [{**act._asdict(), "id": 0} for act in Audit(home).newest(None, 2**60, 1000)]


def test_the_audit_log_comes_with_the_keys_and_loses_no_act() -> None:
    done("backup served copy")
    done("restore copy again")
    assert acts_of(Path("again")) == acts_of(Path("served"))
    assert len(acts_of(Path("served"))) == 3
    Audit(Path("copy")).add(COMMAND, "main", "forget", "cars")
    got = heedful("backup served copy")
    assert (got.code, len(acts_of(Path("copy")))) == (1, 4)
    assert "keys: copy: expected an earlier audit log of served, got one with acts that it does not have" in got.err


def test_a_folder_by_way_of_a_back_up() -> None:
    assert done("backup served copy").out == f"served to copy: {ALL}\n"
    assert done("backup served copy").out == "served to copy: 2 loops, 2 unchanged; keys unchanged\n"
    with Loop.open("served/cars.heedful") as loop:
        loop.decide(id="d2")
    with closing(Keys(Path("served"))) as keys:
        keys.revoke(keys.all()[1].prefix)
    assert done("backup served copy").out == "served to copy: 2 loops, 1 copied, 1 unchanged; keys copied\n"
    assert done("restore copy again").out == f"copy to again: {ALL}\n"
    assert done("restore copy again").out == "copy to again: 2 loops, 2 unchanged; keys unchanged\n"
    assert keys_of(Path("again")) == keys_of(Path("served"))
    assert done("doctor again").out.splitlines()[-1].startswith("2 loops: 0 problems")
    with Loop.open("served/cars.heedful") as loop, Loop.open("again/cars.heedful") as copy:
        assert bits(loop) == bits(copy)


@pytest.mark.slow
def test_a_database_is_backed_up_and_restored(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    done("backup served copy")
    assert done("restore copy {}", postgres).out.endswith(f": {ALL}\n")
    assert done("restore copy {}", postgres).out.endswith("2 unchanged; keys unchanged\n")
    assert [{**key, "id": 0} for key in keys_of(Address(postgres))] == [
        {**key, "id": 0} for key in keys_of(Path("served"))
    ]
    [link], [was] = (Links(home).all("main", "cars", 5) for home in (Address(postgres), Path("served")))
    assert link == was
    assert was.shows
    assert done("backup {} again", postgres).out.endswith(f" to again: {ALL}\n")
    assert done("backup {} copy", postgres).out.endswith(" to copy: 2 loops, 2 unchanged; keys unchanged\n")
    with Loop.open("again/acme/vans.heedful") as loop, Loop.open("served/acme/vans.heedful") as vans:
        assert bits(loop) == bits(vans)
        assert loop.verify() == []
    # One loop, out of the database and into it.
    assert done("copy {}#cars new", postgres).out == "new.heedful: 15 events\n"
    assert done("copy new {}", postgres).out.endswith("#new: 15 events\n")
    assert done("copy served/cars.heedful {}#acme/cars", postgres).out.endswith("#acme/cars: 15 events\n")
    assert done("doctor {}#acme", postgres).out.splitlines()[-1].startswith("2 loops: 0 problems")
    assert "4 events erased in 2 of 2 loops" in done("forget {} ann --yes", postgres).out  # those of no tenant
    assert refusal("restore copy {}", postgres).startswith("TO: ")
    assert refusal("backup {}#cars again", postgres).startswith("FROM: expected a database, got a loop in one")
    monkeypatch.setenv("HEEDFUL_DATABASE", postgres)
    assert done("forget . ann --yes").out == "0 events erased in 0 of 2 loops\n"


def test_nothing_else_is_overwritten(tmp_path: Path) -> None:
    done("backup served copy")
    with Loop.open("served/cars.heedful") as loop:
        loop.decide(id="d2")
    with closing(Keys(Path("served"))) as keys:
        keys.create("three")
    # The wrong way round: what is newer stays, keys too.
    got = heedful("backup copy served")
    assert got.code == 1
    assert got.out == "copy to served: 2 loops, 1 unchanged, 1 failed; keys failed\n"
    assert (
        "cars: served/cars.heedful/log.db: expected an earlier copy of copy/cars.heedful, got one with events"
        in got.err
    )
    assert "keys: served: expected earlier keys of copy, got hk_" in got.err
    assert len(keys_of(Path("served"))) == 3
    assert refusal("restore copy served") == "TO: served: expected nothing to restore over, got other keys"
    small_loop("other.heedful").close()
    (tmp_path / "full").mkdir()
    small_loop("full/trucks.heedful").close()
    assert refusal("restore copy full") == "TO: full: expected nothing to restore over, got trucks"
    assert [path.name for path in Path("full").iterdir()] == ["trucks.heedful"]
    for line, told in {
        "backup served served/copy": "TO: expected two folders, none within the other, got served and served/copy",
        "backup nowhere copy": "FROM: expected a folder that is there, got 'nowhere'",
        "backup served/cars.heedful copy": (
            "FROM: expected the folder that loops are in, got one of them; heedful copy copies one loop"
        ),
        "restore served/acme/vans.heedful x": (
            "FROM: expected the folder that loops are in, got one of them; heedful copy copies one loop"
        ),
        "copy nowhere x": "nowhere.heedful: no such loop; make one: heedful init nowhere ITEMS.csv",
        "copy other served/cars.heedful": (
            "served/cars.heedful: expected no loop, or an unchanged copy of the same one, got another"
        ),
        "copy other other": "TO: expected another place than the loop's own, got 'other'",
        "copy other nowhere/x": "nowhere: expected a folder that is there to put the loop in",
    }.items():
        assert refusal(line) == told
    (tmp_path / "empty").mkdir()
    assert refusal("backup empty copy2") == "FROM: expected loops, or keys, got none in empty"
    assert not Path("copy2").exists()


def test_one_that_fails_holds_up_no_other(tmp_path: Path) -> None:
    with closing(sqlite3.connect("served/cars.heedful/log.db")) as db, db:
        db.execute("DROP TRIGGER event_keeps")
    got = heedful("backup served copy --json")
    assert (got.code, got.err) == (
        1,
        "heedful: cars: the database no longer refuses changes: event_keeps missing or changed\n",
    )
    assert [(part["name"], part["status"]) for part in got.json] == [
        ("acme/vans", "copied"), ("cars", "failed"), ("keys", "copied")
    ]  # fmt: skip
    assert not list(Path("copy").glob("*cars*"))


def test_a_loop_is_copied_to_a_name_or_into_a_folder() -> None:
    assert done("copy served/cars.heedful autos").out == "autos.heedful: 15 events\n"
    assert done("copy autos autos2 --json").json == {
        "from": "autos.heedful", "to": "autos2.heedful", "events": 15, "new": True
    }  # fmt: skip
    assert done("copy autos served").out == "served/autos.heedful: 15 events\n"
    assert done("copy autos served").out == "served/autos.heedful: 15 events, which were there already\n"
