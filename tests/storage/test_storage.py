"""Storage: what the log and the keys of a server have in common, tried on a schema of the tests' own."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from heedful.loop.log import Log
from heedful.server.keys import Keys
from heedful.storage import Busy, Closed, Damaged, Newer
from heedful.storage.sqlite import Connection, Database, Schema

BOOK = Schema(
    "book",
    ("CREATE TABLE page (n INTEGER NOT NULL PRIMARY KEY, text TEXT NOT NULL)", "CREATE TABLE note (a TEXT)"),
    (("page_stays", "CREATE TRIGGER page_stays BEFORE DELETE ON page BEGIN SELECT RAISE(ABORT, 'stays'); END"),),
)


@pytest.fixture
def file(tmp_path: Path) -> Database:
    """A file with a page."""
    made = Database(tmp_path / "book.db", BOOK, wait=0.1)
    fill(made)
    return made


def fill(database: Database) -> None:
    database.create()
    with closing(database.connect()) as connection, database.transaction(connection):
        database.fill(connection)
        connection.execute("INSERT INTO page VALUES (1, 'once')")


@pytest.fixture
def connection(file: Database) -> Iterator[Connection]:
    with closing(file.connect()) as connection:
        yield connection


# ---------------------------------------------------------------------------- a new file


def make_log(path: Path) -> None:
    Log(path / "log.db", create=True).close()


def make_keys(path: Path) -> None:
    with closing(Keys(path)) as keys:
        keys.create("ci")


MAKERS = {"log.db": make_log, "server.db": make_keys, "book.db": lambda path: Database(path / "book.db", BOOK).create()}


@pytest.mark.parametrize("name", MAKERS)
def test_a_new_file_is_its_owners_alone(tmp_path: Path, name: str) -> None:
    before = os.umask(0)
    try:
        MAKERS[name](tmp_path)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


@pytest.mark.parametrize("name", MAKERS)
def test_a_link_that_leads_elsewhere_is_not_followed_by_who_makes_a_file(tmp_path: Path, name: str) -> None:
    """Whoever may write into the folder could otherwise have a file made anywhere."""
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r"there already|cannot be read or written"):
        MAKERS[name](tmp_path / "here")
    assert not (tmp_path / "elsewhere").exists()
    assert (tmp_path / "here" / name).is_symlink()


def test_a_file_is_opened_with_all_that_keeps_one_from_following(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    real = os.open

    def opened(path: str | Path, flags: int, mode: int = 0o777) -> int:
        seen.append(flags)
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", opened)
    for each in MAKERS.values():
        each(tmp_path)
    assert len(seen) == len(MAKERS)
    for flags in seen:
        assert flags & (os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW) == os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


def test_what_is_there_is_not_made_again(file: Database) -> None:
    before = file.path.read_bytes()
    with pytest.raises(FileExistsError, match="expected a new book, got one that is there already"):
        file.create()
    assert file.path.read_bytes() == before


def test_connecting_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="the book cannot be read or written"):
        Database(tmp_path / "book.db", BOOK).connect()
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------------- schemas


def test_a_file_is_filled_all_or_nothing(tmp_path: Path) -> None:
    broken = Database(tmp_path / "book.db", BOOK._replace(tables=(*BOOK.tables, "NONSENSE")))
    broken.create()
    with closing(broken.connect()) as connection:
        with pytest.raises(sqlite3.OperationalError, match="NONSENSE"), broken.transaction(connection):
            broken.fill(connection)
        assert not broken.check(connection)
        assert connection.execute("SELECT * FROM sqlite_master").fetchall() == []


def test_a_newer_file_is_refused(file: Database, connection: Connection) -> None:
    connection.execute("PRAGMA user_version = 2")
    with pytest.raises(Newer, match="expected a book of schema 1, got 2: a newer heedful wrote it"):
        file.check(connection)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("CREATE VIEW more AS SELECT 1", "view 'more'"),
        ("CREATE TABLE more (a)", "table 'more'"),
        ("CREATE TABLE _litestream_lock (id INTEGER, more AS (id || id))", "table '_litestream_lock'"),
        ("CREATE TRIGGER more AFTER INSERT ON note BEGIN SELECT 1; END", "trigger 'more'"),
        ("CREATE INDEX more ON note (a)", "index 'more'"),
        ("DROP TABLE note", "no table 'note'"),
        ("ALTER TABLE note ADD COLUMN b", "table 'note'"),
        ("ALTER TABLE note ADD COLUMN b AS (a || a)", "table 'note'"),
        ("PRAGMA user_version = -1", "table 'page'"),
    ],
)
def test_more_or_less_than_our_tables_is_refused(
    file: Database, connection: Connection, change: str, told: str
) -> None:
    assert file.check(connection)
    connection.execute(change)
    with pytest.raises(Damaged, match=f"expected the tables of a book and nothing else, got {told}"):
        file.check(connection)


def test_what_the_planner_keeps_and_other_spaces_are_not_refused(file: Database, connection: Connection) -> None:
    connection.execute("ANALYZE")
    connection.execute("CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)")
    connection.execute("CREATE TABLE _litestream_lock (id INTEGER)")
    connection.execute("DROP TABLE note")
    connection.execute("CREATE TABLE note (a\n\t  TEXT)")
    assert file.check(connection)
    connection.execute("DROP TRIGGER page_stays")  # nobody is harmed by what is missing
    assert file.check(connection)


# ---------------------------------------------------------------------------- transactions


def test_a_transaction_is_undone_where_it_raises(file: Database, connection: Connection) -> None:
    with pytest.raises(sqlite3.IntegrityError), file.transaction(connection):
        connection.execute("INSERT INTO page VALUES (2, 'twice'), (1, 'again')")
    with pytest.raises(ZeroDivisionError), file.transaction(connection):
        connection.executemany("INSERT INTO page VALUES (?, 'text')", ([10 // n] for n in (2, 1, 0)))
    assert not connection.in_transaction
    assert connection.execute("SELECT count(*) FROM page").fetchone() == (1,)


def test_who_is_not_patient_waits_for_nobody(file: Database, connection: Connection) -> None:
    with closing(sqlite3.connect(file.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Busy, match="another process is writing"), file.transaction(connection, patient=False):
            raise AssertionError("two are writing")
        assert connection.execute("PRAGMA busy_timeout").fetchone() == (100,)
        told = "another process is writing; nothing was changed: try again"
        with pytest.raises(TimeoutError, match=told), file.errors(), file.transaction(connection):
            raise AssertionError("two are writing")
        with file.transaction(connection, writes=False):  # who reads goes on
            assert connection.execute("SELECT count(*) FROM page").fetchone() == (1,)
        other.execute("ROLLBACK")
    with file.transaction(connection, patient=False):
        connection.execute("INSERT INTO page VALUES (2, 'twice')")


# ---------------------------------------------------------------------------- errors


@pytest.mark.parametrize("writing", [False, True])
@pytest.mark.parametrize(
    ("code", "kind", "told"),
    [
        (sqlite3.SQLITE_BUSY, TimeoutError, "another process is writing; nothing was changed: try again"),
        (sqlite3.SQLITE_LOCKED, TimeoutError, "another process is writing"),
        (sqlite3.SQLITE_FULL, OSError, "the disk is full; nothing was changed: make room and try again"),
        (sqlite3.SQLITE_READONLY | 1 << 8, OSError, "the book cannot be read or written"),
        (sqlite3.SQLITE_IOERR | 3 << 8, OSError, "the book cannot be read or written"),
        (sqlite3.SQLITE_CANTOPEN, OSError, "the book cannot be read or written"),
        (sqlite3.SQLITE_PERM, OSError, "the book cannot be read or written"),
        (sqlite3.SQLITE_AUTH, OSError, "the book cannot be read or written"),
        (sqlite3.SQLITE_CORRUPT, Damaged, "restore a back-up"),
        (sqlite3.SQLITE_NOTADB, Damaged, "restore a back-up"),
    ],
)
def test_errors_in_words(tmp_path: Path, code: int, kind: type[Exception], told: str, writing: bool) -> None:
    error = sqlite3.OperationalError("something")
    error.sqlite_errorcode = code
    with pytest.raises(kind, match=told) as raised, Database(tmp_path / "book.db", BOOK).errors(writing=writing):
        raise error
    assert str(tmp_path / "book.db") in str(raised.value)


def test_a_question_that_makes_no_sense_means_damage_but_a_change_that_is_refused_does_not(
    file: Database, connection: Connection
) -> None:
    with pytest.raises(Damaged, match="restore a back-up"), file.errors():
        connection.execute("SELECT lost FROM page")
    with pytest.raises(sqlite3.IntegrityError, match="stays"), file.errors(writing=True):
        connection.execute("DELETE FROM page")


def test_damaged_text_is_not_repeated(file: Database, connection: Connection) -> None:
    connection.execute("INSERT INTO page VALUES (2, CAST(X'736563726574ff' AS TEXT))")
    with pytest.raises(Damaged, match="restore a back-up") as raised, file.errors():
        connection.execute("SELECT text FROM page").fetchall()
    assert "secret" not in str(raised.value)
    assert raised.value.__suppress_context__


def test_closed_is_said_and_our_own_mistakes_are_raised_as_they_are(file: Database) -> None:
    connection = file.connect()
    with pytest.raises(sqlite3.ProgrammingError, match="bindings"), file.errors():
        connection.execute("SELECT ?", [])
    connection.close()
    with pytest.raises(Closed, match="the book is closed: open it again"), file.errors():
        connection.execute("SELECT 1")


@pytest.mark.parametrize("content", [b"", b"not a database" * 100, b"SQLite format 3\0" + bytes(84)])
def test_a_header_of_another_application(tmp_path: Path, content: bytes) -> None:
    database = Database(tmp_path / "book.db", BOOK._replace(application=7))
    database.path.write_bytes(content)
    with pytest.raises(Damaged, match="expected a book, got a file of another kind or a damaged one"):
        database.check_header()


def test_a_header_of_ours(tmp_path: Path) -> None:
    database = Database(tmp_path / "book.db", BOOK._replace(application=7))
    database.create()
    with closing(database.connect("application_id = 7")):
        database.check_header()
