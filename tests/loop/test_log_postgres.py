"""A log in PostgreSQL: who may write, what the database refuses, what a lost connection leaves, what is erased."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from command import heedful

from heedful import Loop
from heedful.cli.doctor import _inspect
from heedful.loop.log import Event, Log
from heedful.loop.log.directory import Directory
from heedful.loop.log.table import LogTable
from heedful.loop.retraction import Unerased
from heedful.server.tables import Tables
from heedful.storage import Address, Busy, Closed, Damaged, Moved, Owned, Place, Unreachable
from heedful.storage.postgres import Connection
from loops import bits, bits_from_scratch, small_loop
from postgres import database
from processes import until
from takeover import Proxy, new_name


@pytest.fixture
def postgres(postgres_server: str) -> Iterator[str]:
    """A database for each test: a transaction that was cut off in one holds up the erasing of no other."""
    with database(postgres_server) as made:
        yield made


@pytest.fixture
def address(postgres: str) -> Address:
    """A loop with something in every table: a person was forgotten, another was not."""
    there = Address(postgres, new_name())
    with small_loop(there, control=0.0) as loop:
        for person in ("ann", "bob"):
            d = loop.decide(id=f"d-{person}", person=person)
            loop.feedback(d.id, id=f"e-{person}", clicks=[d.shown[3]])
        loop.forget("ann")
        loop.snapshot()
    return there


@pytest.fixture
def db(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    """Somebody else in the same database, who may do everything."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        yield connection


def exported(seq: int, id: str) -> Event:
    """An event that says little."""
    return Event(seq, "export", id, 0, None, None, 0, '{"path":"-"}')


def append(log: Log, *ids: str) -> None:
    """Write events with these ids, in one transaction."""
    with log.writing():
        head = log.head()
        log.append([exported(head + 1 + i, id) for i, id in enumerate(ids)])


def sent(log: Log) -> None:
    """All but the COMMIT is with the server."""
    assert log.store.execute("SELECT 1") == [(1,)]


def ids(log: Log) -> list[str]:
    """Of those events, in order."""
    return [event.id for event in log.events(kinds=["export"])]


# ---------------------------------------------------------------------------- nothing changes


CHANGES = [
    "UPDATE heedful.event SET payload = '{}'",
    "UPDATE heedful.event SET seq = seq",
    "DELETE FROM heedful.event",
    "DELETE FROM heedful.event WHERE seq = 2",
    "TRUNCATE heedful.event",
    "UPDATE heedful.forgotten SET seq = 7",
    "DELETE FROM heedful.forgotten",
    "TRUNCATE heedful.forgotten",
    "INSERT INTO heedful.event SELECT * FROM heedful.event ON CONFLICT (loop, seq) DO UPDATE SET payload = '{}'",
    "INSERT INTO heedful.event SELECT * FROM heedful.event",
    "SELECT set_config('heedful.erasing', '0', true); DELETE FROM heedful.event",
]


def test_the_database_refuses_every_change(address: Address, db: psycopg.Connection[Any]) -> None:
    before = db.execute("SELECT * FROM heedful.event ORDER BY loop, seq").fetchall()
    for change in CHANGES:
        with pytest.raises(psycopg.IntegrityError):
            pytest.fail(f"{change}: {db.execute(change).statusmessage}")  # type: ignore[arg-type]
        assert db.execute("SELECT * FROM heedful.event ORDER BY loop, seq").fetchall() == before, change
    with closing(Log(address)) as log:
        append(log, "new")  # or it would pass where everything is refused
        assert ids(log) == ["new"]


def test_a_changed_row_and_a_removed_trigger_are_found(address: Address, db: psycopg.Connection[Any]) -> None:
    with Loop.open(address) as loop:
        assert loop.verify() == []
        with db.transaction():
            db.execute("SET LOCAL session_replication_role = replica")
            changed = "UPDATE heedful.event SET time = time + 1 WHERE id = 'e-bob' AND loop = %s"
            db.execute(changed, [loop.projection.log.store.number])
        assert any("its content was changed" in told for told in loop.projection.log.problems())
    db.execute("ALTER TABLE heedful.forgotten DISABLE TRIGGER forgotten_stays")
    try:
        with closing(Log(address)) as log:
            assert any("forgotten_stays missing or changed" in told for told in log.problems())
    finally:
        db.execute("ALTER TABLE heedful.forgotten ENABLE TRIGGER forgotten_stays")


def test_what_is_there_and_what_is_not(address: Address, postgres: str) -> None:
    with pytest.raises(FileExistsError, match="one that is there already"):
        small_loop(address)
    with pytest.raises(FileNotFoundError, match="no such loop"):
        Loop.open(address.url + "#nowhere")
    with pytest.raises(Damaged, match="URL of a database"):
        Loop.open("postgresql://host/db?nonsense=1#a")
    with pytest.raises(Unreachable, match="cannot be reached"):
        Loop.open("postgresql://127.0.0.1:1/db#a")
    with closing(Log(address)) as log:
        log.close()
        with pytest.raises(Closed):
            log.last()
        with pytest.raises(Closed):
            append(log, "x")


def test_a_loop_that_was_deleted_is_gone(address: Address, db: psycopg.Connection[Any]) -> None:
    with closing(Log(address)) as log:
        with db.transaction():
            db.execute("SELECT set_config('heedful.erasing', %s, true)", [str(log.store.number)])
            db.execute("DELETE FROM heedful.event WHERE loop = %s", [log.store.number])
            db.execute("DELETE FROM heedful.loop WHERE number = %s", [log.store.number])
        with pytest.raises(Moved, match="deleted"):
            append(log, "x")
        assert not log.store.is_there()


def test_a_newer_heedful_is_refused(address: Address, db: psycopg.Connection[Any]) -> None:
    db.execute("UPDATE heedful.version SET number = number + 1")
    try:
        with pytest.raises(Damaged, match="a newer heedful"):
            Loop.open(address)
    finally:
        db.execute("UPDATE heedful.version SET number = number - 1")


VERSIONS = {
    "no row": "DELETE FROM heedful.version",
    "two rows": "INSERT INTO heedful.version SELECT * FROM heedful.version",
    "NULL": "ALTER TABLE heedful.version ALTER number DROP NOT NULL; UPDATE heedful.version SET number = NULL",
    "negative": "UPDATE heedful.version SET number = -1",
    "none at all": "UPDATE heedful.version SET number = 0",
    "text": "ALTER TABLE heedful.version ALTER number TYPE text USING 'two'",
    "a number of thirty digits": "ALTER TABLE heedful.version ALTER number TYPE numeric USING 1e30",
}


@pytest.mark.parametrize("change", VERSIONS.values(), ids=VERSIONS)
def test_a_damaged_version_is_said_at_every_door(address: Address, db: psycopg.Connection[Any], change: str) -> None:
    before = db.execute("SELECT count(*) FROM heedful.event").fetchall()
    db.execute(change)
    told = r"heedful\.version: expected one row with a whole number .* restore a back-up"
    with pytest.raises(Damaged, match=told):
        Loop.open(address)
    with pytest.raises(Damaged, match=told):
        small_loop(Address(address.url, new_name()))
    tables = Tables(Address(address.url))
    with pytest.raises(Damaged, match=told), tables.reading():
        pass
    tables.close()
    [found] = _inspect(address, None)
    assert (found.check, found.status) == ("log", "problem")
    assert re.search(told, found.told)
    assert db.execute("SELECT count(*) FROM heedful.event").fetchall() == before


def test_a_damaged_count_of_changes_is_said(address: Address, db: psycopg.Connection[Any]) -> None:
    tables = Tables(Address(address.url))
    db.execute("ALTER TABLE heedful.version ALTER changes DROP NOT NULL; UPDATE heedful.version SET changes = NULL")
    with tables.reading() as connection:
        assert connection is not None
        with pytest.raises(Damaged, match=r"heedful\.version: expected one row .* in changes, got None: restore"):
            tables.changes(connection)
    tables.close()


@pytest.mark.slow
def test_neither_heedful_nor_a_server_of_a_folder_imports_psycopg_or_ray(tmp_path: Path) -> None:
    program = """
import json, sys, urllib.request
from pathlib import Path

def heavy():
    return sorted(name for name in sys.modules if name.split(".")[0] in ("psycopg", "ray"))

import heedful
assert heavy() == [], heavy()
sys.path.insert(0, sys.argv[2])
from loops import small_loop
small_loop(Path(sys.argv[1]) / "cars.heedful").close()
from heedful.server.main import served

def ask(path, value):
    request = urllib.request.Request(f"{url}/v1/loops/cars/{path}", json.dumps(value).encode())
    request.add_header("content-type", "application/json")
    return json.load(urllib.request.urlopen(request))

with served(Path(sys.argv[1])) as url:
    shown = ask("decisions", {"id": "d"})["shown"]
    assert ask("feedback", {"decision": "d", "clicks": [shown[3]]})["status"] == "applied"
    assert urllib.request.urlopen(f"{url}/metrics").status == 200
assert heavy() == [], heavy()
assert "heedful.loop.log.table" not in sys.modules
import heedful.storage.postgres
heedful.storage.postgres.driver()
assert "psycopg" in heavy(), "it would be seen"
"""
    subprocess.run([sys.executable, "-c", program, tmp_path, Path(__file__).parents[1]], check=True)


# ---------------------------------------------------------------------------- one owner


def pass_by(db: psycopg.Connection[Any], seconds: float) -> None:
    """Let so much time pass for all leases."""
    db.execute("UPDATE heedful.lease SET expires = expires - make_interval(secs => %s)", [seconds])


def test_an_owner_keeps_others_out_until_its_lease_ends(address: Address, db: psycopg.Connection[Any]) -> None:
    with closing(Log(address)) as one, closing(Log(address)) as two, closing(Directory(address)) as directory:
        one.store.keep_owning(600.0, "http://one")
        two.store.keep_owning(600.0, "http://two")
        append(one, "a")
        with pytest.raises(Owned) as told:
            append(two, "b")
        assert told.value.owner == "http://one"
        assert not two.store.owns
        assert ids(two) == ["a"]  # whoever reads needs not own it
        for _ in range(4):
            pass_by(db, 300.0)
            assert directory.renew([one.store]) == []
        with pytest.raises(Owned):
            append(two, "b")
        pass_by(db, 600.0)
        append(two, "b")
        assert two.store.owns
        # The former owner wakes up: nothing of it gets in, whether it waits or not.
        with pytest.raises(Busy), one.writing(patient=False):
            one.append([exported(one.head() + 1, "late")])
        with pytest.raises(Owned) as told:
            append(one, "late")
        assert told.value.owner == "http://two"
        assert not one.store.owns
        assert directory.renew([one.store, two.store]) == []
        assert ids(one) == ["a", "b"]
        two.close()  # which gives it back
        append(one, "c")
        assert ids(one) == ["a", "b", "c"]


def leases_of(address: Address) -> dict[str, str]:
    """What doctor finds of who owns a loop: what it says, and what to do."""
    return {found.told: found.next for found in _inspect(address, None) if found.check == "lease"}


def test_a_lease_that_is_missing_is_named_and_made_again(address: Address, db: psycopg.Connection[Any]) -> None:
    assert leases_of(address) == {}
    db.execute("DELETE FROM heedful.lease")
    [(told, hint)] = leases_of(address).items()
    assert told == "missing: the database does not have the row that says who owns the loop"
    assert hint == "Nothing is lost: the next decision or feedback makes it again."
    with closing(Log(address)) as one, closing(Log(address)) as two:
        one.store.keep_owning(600.0, "http://one")
        append(one, "a")
        two.store.keep_owning(600.0, "http://two")
        with pytest.raises(Owned):
            append(two, "b")
        db.execute("DELETE FROM heedful.lease")
        append(two, "b")  # whoever is first
        with pytest.raises(Owned):
            append(one, "c")
        assert ids(one) == ["a", "b"]
    assert leases_of(address) == {}


@pytest.mark.parametrize("expires", ["'infinity'", "clock_timestamp() + interval '10 years'"])
def test_a_lease_without_an_end_is_named_with_what_to_do(
    address: Address, db: psycopg.Connection[Any], expires: str
) -> None:
    db.execute(f"UPDATE heedful.lease SET owner = 'x', address = 'http://x', expires = {expires}")
    [(told, hint)] = leases_of(address).items()
    assert told.startswith("another process, at http://x, owns the loop until ")
    statement = hint.partition(": ")[2]
    assert statement.startswith("UPDATE heedful.lease SET expires = ")
    with closing(Log(address)) as log:
        log.store.keep_owning(600.0, "http://one")
        with pytest.raises(Owned):
            append(log, "a")
        db.execute(statement)
        append(log, "a")
    assert leases_of(address) == {}


def expiries(db: psycopg.Connection[Any]) -> dict[int, Any]:
    """When the lease of each loop runs out, by the number of the loop, of those that were ever owned."""
    return dict(db.execute("SELECT loop, expires FROM heedful.lease WHERE epoch > 0").fetchall())


def test_the_leases_of_many_loops_are_renewed_by_one_statement(
    postgres: str, db: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without one that is locked, which holds up no other, and without one that somebody else has taken over."""
    with ExitStack() as stack:
        logs = []
        for _ in range(12):
            small_loop(there := Address(postgres, new_name())).close()
            logs.append(stack.enter_context(closing(Log(there))))
            logs[-1].store.keep_owning(60.0, "")
            append(logs[-1], "a")
        tables = [log.store for log in logs]
        directory = stack.enter_context(closing(Directory(Address(postgres))))
        assert directory.renew([]) == []
        asked: list[str] = []
        was = Connection.execute

        def counted(self: Connection, query: str, *more: Any) -> Any:
            asked.append(query)
            return was(self, query, *more)

        monkeypatch.setattr(Connection, "execute", counted)
        before = expiries(db)
        assert directory.renew(tables) == []
        assert len(asked) == 1
        after = expiries(db)
        assert sorted(after) == sorted(table.number for table in tables)
        assert all(after[number] > before[number] for number in after)

        locked, gone, *others = tables
        db.execute("UPDATE heedful.lease SET owner = 'other', epoch = epoch + 1 WHERE loop = %s", [gone.number])
        before = expiries(db)
        with db.transaction():
            db.execute("SELECT FROM heedful.lease WHERE loop = %s FOR UPDATE", [locked.number])
            assert directory.renew(tables) == [gone]
        after = expiries(db)
        assert {number for number in after if after[number] > before[number]} == {table.number for table in others}
        assert [table.owns for table in tables] == [True, False, *(True for _ in others)]
        locked.hand_over()  # what was given back is not renewed
        before = expiries(db)
        assert directory.renew(tables) == []
        assert expiries(db)[locked.number] == before[locked.number]


def test_one_statement_says_what_there_is_to_follow(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which loops are owned, and up to which event: a server that follows them reads those that have more, alone."""
    there = [Address(postgres, new_name()) for _ in range(3)]
    with ExitStack() as stack:
        directory = stack.enter_context(closing(Directory(Address(postgres))))
        assert directory.last_of_owned() == {}
        for address in there:
            small_loop(address).close()
        assert directory.last_of_owned() == {}
        logs = [stack.enter_context(closing(Log(address))) for address in there[:2]]
        for log in logs:
            log.store.keep_owning(60.0, "")
            append(log, "a")
        append(logs[1], "b", "c")
        asked = []
        was = Connection.execute
        monkeypatch.setattr(Connection, "execute", lambda *given: asked.append(given[1]) or was(*given))
        first = logs[0].last()[0]
        assert directory.last_of_owned() == {there[0].key: (first, ""), there[1].key: (first + 2, "")}
        assert len([query for query in asked if "heedful.lease" in query and "to_regclass" not in query]) == 1
        with Loop.open(there[1]) as follower:
            assert not follower.projection.is_behind(directory.last_of_owned()[there[1].key][0])
            append(logs[1], "d")
            assert follower.projection.is_behind(directory.last_of_owned()[there[1].key][0])
            follower.projection.look()
            assert not follower.projection.is_behind(directory.last_of_owned()[there[1].key][0])


def test_a_commit_renews_a_lease_that_has_lasted_for_a_quarter(address: Address, db: psycopg.Connection[Any]) -> None:
    """So that a loop keeps its owner whose lease is locked by commits whenever all leases are renewed."""
    with closing(Log(address)) as log:
        log.store.keep_owning(60.0, "")
        append(log, "a")
        before = expiries(db)
        append(log, "b")
        assert expiries(db) == before
        log.store._renewed -= 15.0
        append(log, "c")
        [[number, later]] = expiries(db).items()
        assert later > before[number]


def test_who_owned_it_before_and_saw_nobody_goes_on(address: Address, db: psycopg.Connection[Any]) -> None:
    with closing(Log(address)) as one:
        one.store.keep_owning(600.0, "")
        append(one, "a")
        pass_by(db, 600.0)
        with one.writing(patient=False):
            one.append([exported(one.head() + 1, "b")])
        assert ids(one) == ["a", "b"]


def test_scripts_take_turns(address: Address) -> None:
    with Loop.open(address) as one, Loop.open(address) as two:
        for i in range(3):
            for name, loop in (("one", one), ("two", two)):
                d = loop.decide(id=f"{name}-{i}", person="bob")
                loop.feedback(d.id, id=f"f-{name}-{i}", clicks=[d.shown[2]])
        one.projection.catch_up()
        assert bits(one) == bits(two) == bits_from_scratch(one)


def test_a_stopped_transaction_holds_nobody_up_for_long(address: Address) -> None:
    with closing(Log(address)) as one, closing(Log(address)) as two:
        one.store.keep_owning(0.5, "")
        two.store.keep_owning(0.5, "")
        with pytest.raises(Unreachable), one.writing():  # noqa: PT012
            one.append([exported(one.head() + 1, "stopped")])

            def written() -> bool:
                with suppress(TimeoutError):
                    append(two, "other")
                    return True
                return False

            until(written)  # it stops here, with the lock, which it would hold without end
        assert ids(one) == ["other"]


def test_half_a_transaction_holds_nobody_up_for_long(address: Address, db: psycopg.Connection[Any]) -> None:
    """The rest of what was sent in pieces never comes; the database itself would wait without end."""
    with closing(Log(address)) as log, closing(psycopg.connect(address.url, autocommit=True)) as stopped:
        log.store.keep_owning(0.5, "")
        append(log, "a")
        raw = stopped.pgconn
        raw.enter_pipeline_mode()
        for query in (
            "BEGIN",
            "SET LOCAL idle_in_transaction_session_timeout = 500",
            f"SELECT FROM heedful.lease WHERE loop = {log.store.number} FOR UPDATE",
        ):
            raw.send_query_params(query.encode(), None)
        raw.send_flush_request()
        raw.flush()
        pid, query = stopped.info.backend_pid, "SELECT state, wait_event FROM pg_stat_activity WHERE pid = %s"
        until(lambda: db.execute(query, [pid]).fetchall() == [("active", "ClientRead")])
        append(log, "b")
        assert ids(log) == ["a", "b"]
        assert db.execute(query, [pid]).fetchall() == []
        with small_loop(Address(address.url, new_name())) as other, db.transaction():
            db.execute("SELECT FROM heedful.lease WHERE loop = %s FOR UPDATE", [other.projection.log.store.number])
            log.store.keep_owning(0.0, "")
            log.store._end_stuck()  # only what holds the lease of this loop
            assert db.execute("SELECT 1").fetchall() == [(1,)]


def test_a_follower_learns_without_owning(address: Address) -> None:
    with Loop.open(address) as owner, Loop.open(address) as follower:
        owner.projection.log.store.keep_owning(5.0, "")
        follower.projection.log.store.keep_owning(5.0, "")
        d = owner.decide(person="bob")
        owner.feedback(d.id, clicks=[d.shown[3]])
        follower.projection.look()
        assert bits(follower) == bits(owner)
        owner.forget("bob")
        follower.projection.look()
        assert bits(follower) == bits(owner) == bits_from_scratch(follower)
        assert follower.projection.find_decision("d-bob") is None
        with pytest.raises(Owned):
            follower.decide()
        owner.close()
        follower.decide()
        assert follower.verify() == []


def test_much_of_another_process_is_taken_in_together(home: Place) -> None:
    """Decisions, answers and items in turn, as if each came alone."""
    small_loop(home / "loop", control=0.0).close()
    with Loop.open(home / "loop") as one, Loop.open(home / "loop") as two, Loop.open(home / "loop") as third:
        for i in range(40):
            d = one.decide(id=f"d{i}", person=f"p{i % 3}")
            one.feedback(f"d{i // 2}", id=f"e{i}", clicks=[d.shown[i % 4]])
            if i % 10 == 5:
                one.put_items([{"id": f"new{i}", "f0": 1.0, "f1": float(i), "f2": 0.0, "f3": -1.0}])
                one.withdraw(f"i{i % 7}")
            third.projection.look()  # a few at a time
        asked: list[int] = []
        at = two.projection.log.at
        two.projection.log.at = lambda seq: asked.append(seq) or at(seq)  # type: ignore[method-assign,func-returns-value]
        two.projection.look()
        assert asked == []
        assert two.version == third.version == one.version
        assert bits(two) == bits(third) == bits(one) == bits_from_scratch(two)
        assert set(two.items) == set(one.items)


# ---------------------------------------------------------------------------- lost connections


@pytest.fixture
def proxy(address: Address) -> Iterator[tuple[Proxy, Log]]:
    """A connection that can be cut, and the log behind it."""
    parts = urlsplit(address.url)
    between = Proxy(parts.port or 5432)
    url = parts._replace(netloc=f"{parts.username}@127.0.0.1:{between.port}").geturl()
    with closing(Log(Address(url, address.key))) as log:
        yield between, log
    between.close()


def test_a_commit_whose_answer_is_lost_is_looked_up(proxy: tuple[Proxy, Log]) -> None:
    between, log = proxy
    with log.writing():
        log.append([exported(log.head() + 1, "a"), exported(log.head() + 2, "b")])
        sent(log)
        between.lost = "answers"
    assert ids(log) == ["a", "b"]
    append(log, "c")
    assert ids(log) == ["a", "b", "c"]


def test_a_commit_that_never_came_is_told(proxy: tuple[Proxy, Log]) -> None:
    between, log = proxy
    with pytest.raises(Unreachable, match="nothing was changed"), log.writing():  # noqa: PT012
        log.append([exported(log.head() + 1, "a")])
        sent(log)
        between.lost = "requests"
    assert ids(log) == []
    append(log, "a")
    assert ids(log) == ["a"]


def test_a_commit_whose_outcome_cannot_be_known_is_told(address: Address) -> None:
    parts = urlsplit(address.url)
    between = Proxy(parts.port or 5432)
    url = parts._replace(netloc=f"{parts.username}@127.0.0.1:{between.port}").geturl()
    with closing(Log(Address(url, address.key), wait=0.5)) as log:
        with pytest.raises(Unreachable, match="not known"), log.writing():  # noqa: PT012
            log.append([exported(log.head() + 1, "a")])
            sent(log)
            between.lost, between.through = "answers", False
        between.through = True
        assert ids(log) == ["a"]
    between.close()


def test_connections_that_were_cut_are_made_again(proxy: tuple[Proxy, Log]) -> None:
    between, log = proxy
    for id in "abc":
        append(log, id)
        between.cut()
        assert log.counts()["export"] == len(ids(log))
        between.cut()
    assert ids(log) == ["a", "b", "c"]


def test_a_loop_whose_answer_is_lost_answers_all_the_same(address: Address, proxy: tuple[Proxy, Log]) -> None:
    between, log = proxy
    with Loop.open(log.path) as loop:
        d = loop.decide(id="d", person="bob")
        inner = loop.projection.log.append

        def lossy(events: Any) -> None:
            inner(events)
            sent(loop.projection.log)
            between.lost = "answers"

        loop.projection.log.append = lossy  # type: ignore[method-assign]
        answer = loop.feedback(d.id, id="e", clicks=[d.shown[3]])
        loop.projection.log.append = inner  # type: ignore[method-assign]
        assert answer.status == "applied"
        again = loop.feedback(d.id, id="e", clicks=[d.shown[3]])
        assert (again.status, again.seq) == ("duplicate", answer.seq)
        assert bits(loop) == bits_from_scratch(loop)


# ---------------------------------------------------------------------------- forgetting


def test_no_byte_is_left_in_the_tables(postgres: str, db: psycopg.Connection[Any]) -> None:
    [[data]] = db.execute("SHOW data_directory").fetchall()
    [[number]] = db.execute("SELECT oid FROM pg_database WHERE datname = current_database()").fetchall()
    folder = Path(data) / "base" / str(number)
    try:
        list(folder.iterdir())
    except OSError:
        pytest.skip("the files of the database server cannot be read here")

    def holding(marker: bytes) -> list[Path]:
        db.execute("CHECKPOINT")
        return [file for file in folder.iterdir() if marker in file.read_bytes()]

    with small_loop(Address(postgres, new_name()), control=0.0, shrink=3.0) as loop:
        for i in range(20):
            d = loop.decide(id=f"d{i}-annemarie" if i % 2 else f"d{i}", person="annemarie" if i % 2 else "bob")
            loop.feedback(d.id, id=f"e{i}", clicks=[d.shown[3]])
        loop.snapshot()
        assert holding(b"annemarie")
        gone = loop.forget("annemarie")
        assert (gone.events, gone.erased) == (20, True)
        assert any("write-ahead log" in told for told in gone.unreached)
        assert holding(b"annemarie") == []
        assert holding(b"bob")
        assert bits(loop) == bits_from_scratch(loop)


def test_an_old_transaction_holds_up_the_erasing(
    address: Address, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Loop.open(address) as loop, psycopg.connect(postgres) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT count(*) FROM heedful.event")
        monkeypatch.setattr(loop.projection.log.store._server, "wait", 2.0)
        with pytest.raises(Unerased) as told:
            loop.forget("bob")
        monkeypatch.undo()
        assert told.value.forgotten.events == 2
        assert not told.value.forgotten.erased
        assert loop.projection.log.unfinished()
        reader.rollback()
        loop.finish_forgetting()
        assert not loop.projection.log.unfinished()
        assert loop.verify() == []


def test_a_transaction_of_another_database_holds_up_no_erasing(
    address: Address, postgres_server: str, db: psycopg.Connection[Any]
) -> None:
    """VACUUM FULL alone keeps what any transaction of the whole server might see."""
    with database(postgres_server) as other, psycopg.connect(other) as writer, Loop.open(address) as loop:
        [[number]] = writer.execute("SELECT pg_current_xact_id()::text::bigint").fetchall()
        assert loop.forget("bob").erased
        [[oldest]] = db.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint").fetchall()
        assert oldest <= number, "the other transaction is not open any more"
        assert not loop.projection.log.unfinished()
        assert loop.verify() == []


def test_nobody_waits_long_for_an_erasing_that_waits(
    address: Address, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Someone begins to read just before the table is written anew: that is given up, and others go on."""
    with Loop.open(address) as loop, psycopg.connect(postgres) as reader:
        store = loop.projection.log.store
        locking = store._server.transaction

        @contextmanager
        def locked(*arguments: Any) -> Iterator[None]:
            with locking(*arguments):
                yield
            reader.execute("SELECT count(*) FROM heedful.event")

        monkeypatch.setattr(store._server, "transaction", locked)
        monkeypatch.setattr(store, "_wait", 0.5)
        with pytest.raises(TimeoutError):
            store.rewrite()
        monkeypatch.undo()
        reader.rollback()
        store.rewrite()
        assert loop.verify() == []


def test_a_large_snapshot_is_not_kept(address: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.loop.log.table.LARGEST", 100)
    with Loop.open(address) as loop:
        with pytest.raises(OSError, match="expected a snapshot of at most 100 bytes"):
            loop.snapshot()
        loop.decide()
        assert loop.verify() == []


def test_the_log_is_opened_by_its_address_alone(address: Address) -> None:
    with Loop.open(f"{address.url}#{address.key}.heedful") as loop:
        assert loop.path == address
        assert isinstance(loop.projection.log.store, LogTable)


def test_who_wrote_to_the_loop_and_serves_it_says_where_at_once(
    postgres: str, db: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = new_name()
    with small_loop(Address(postgres, name)) as loop:
        loop.decide()
        loop.projection.log.store.keep_owning(60.0, "http://one:8710")
        query = "SELECT address FROM heedful.lease JOIN heedful.loop ON number = loop WHERE name = %s"
        assert db.execute(query, [name]).fetchall() == [("http://one:8710",)]
        with Loop.open(Address(postgres, name)) as other:
            monkeypatch.setattr(other.projection.log.store, "_wait", 1.0)
            with pytest.raises(Owned, match="at http://one:8710") as error:
                other.decide(id="d")
        assert error.value.owner == "http://one:8710"


def test_a_role_that_may_not_write_tables_anew_erases_nothing_and_says_so(
    postgres: str, db: psycopg.Connection[Any]
) -> None:
    name, role = new_name(), f"limited_{new_name()}".replace("-", "_")
    with small_loop(Address(postgres, name), control=0.0) as loop:
        loop.decide(id="d-annemarie", person="annemarie")
    db.execute(f"CREATE ROLE {role} LOGIN")
    for right in (
        "USAGE ON SCHEMA heedful",
        "SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA heedful",
        "USAGE ON ALL SEQUENCES IN SCHEMA heedful",
    ):
        db.execute(f"GRANT {right} TO {role}")
    parts = urlsplit(postgres)
    limited = parts._replace(netloc=f"{role}@{parts.netloc.rpartition('@')[2]}").geturl()
    try:
        for url, lacks in ((postgres, False), (limited, True)):
            directory = Directory(Address(url))
            told = [each for each in directory.lacks() if "GRANT" in each]
            directory.close()
            assert len(told) == lacks, told
        assert f'TO "{role}"' in told[0]
        got = heedful("doctor {} --json", f"{limited}#{name}")
        [finding] = [each for each in got.json if each["check"] == "role"]
        assert (got.code, finding["status"]) == (0, "warning")
        assert "forget" in finding["told"]
        with Loop.open(Address(limited, name)) as loop, pytest.raises(Unerased, match="may not write") as error:
            loop.forget("annemarie")
        assert (error.value.forgotten.events, error.value.forgotten.erased) == (1, False)
    finally:
        db.execute(f"DROP OWNED BY {role}")
        db.execute(f"DROP ROLE {role}")


def test_more_servers_than_the_database_has_connections_for_are_told(
    postgres: str, db: psycopg.Connection[Any]
) -> None:
    with small_loop(Address(postgres, new_name())):
        directory = Directory(Address(postgres))
        [[most]] = db.execute("SELECT current_setting('max_connections')::int").fetchall()
        assert directory.lacks(1) == []
        [told] = directory.lacks(most)
        assert f"{most:,} servers may need {23 * most:,} connections" in told
        directory.close()
