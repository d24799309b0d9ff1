"""The log: what is written stays, whoever asks; a group is answered once; schemas are brought up, all or nothing."""

from __future__ import annotations

import errno
import linecache
import multiprocessing
import os
import random
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from budget import FACTOR
from heedful import Loop
from heedful.loop import group
from heedful.loop.group import GroupCommit
from heedful.loop.log import Event, Log, file
from heedful.loop.log.schema import SCHEMA
from heedful.storage import Place
from loops import bits, bits_from_scratch, small_loop

TABLES = ("event", "forgotten", "secret")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log with something in every table: a person was forgotten, another was not."""
    with small_loop(tmp_path / "loop", control=0.0) as loop:
        for person in ("ann", "bob"):
            d = loop.decide(id=f"d-{person}", person=person)
            loop.feedback(d.id, id=f"e-{person}", clicks=[d.shown[3]])
        loop.forget("ann")
    return tmp_path / "loop" / "log.db"


def contents(db: sqlite3.Connection) -> dict[str, list[Any]]:
    return {table: db.execute(f"SELECT * FROM {table} ORDER BY {KEY[table]}").fetchall() for table in TABLES}


def connections(path: Path) -> Iterator[sqlite3.Connection]:
    for recursive in ("OFF", "ON"):
        with closing(sqlite3.connect(path)) as db:
            db.execute(f"PRAGMA recursive_triggers = {recursive}")
            yield db


# ---------------------------------------------------------------------------- nothing changes

KEY = {"event": "seq", "forgotten": "digest", "secret": "name"}
OTHER = {"event": "payload", "forgotten": "seq", "secret": "value"}
VALUE = {"event": "'{}'", "forgotten": "7", "secret": "'00'"}


def changes(table: str, columns: list[str], row: list[str]) -> Iterator[str]:
    """SQL that would change or remove the row with these literals, were it allowed to."""
    key, other, value = KEY[table], OTHER[table], VALUE[table]
    old = row[columns.index(key)]
    new = [value if name == other else literal for name, literal in zip(columns, row)]
    names, same, changed = ", ".join(columns), ", ".join(row), ", ".join(new)
    for how in ("UPDATE", "UPDATE OR REPLACE", "UPDATE OR IGNORE"):
        yield f"{how} {table} SET {other} = {value}"
        yield f"{how} {table} SET {other} = {value} WHERE {key} = {old}"
        yield f"{how} {table} SET {key} = {key} || '9'"
    yield f"UPDATE {table} SET {key} = {key}"
    yield f"DELETE FROM {table}"
    yield f"DELETE FROM {table} WHERE {key} = {old}"
    for how in ("INSERT OR REPLACE", "REPLACE", "INSERT", "INSERT OR FAIL", "INSERT OR ROLLBACK"):
        yield f"{how} INTO {table} ({names}) VALUES ({changed})"
        yield f"{how} INTO {table} ({names}) VALUES ({same})"
        yield f"{how} INTO {table} ({names}) SELECT {names} FROM {table}"
    for upsert in (f"({key}) DO UPDATE SET {other} = {value}", f"({key}) DO UPDATE SET {other} = excluded.{other}"):
        yield f"INSERT INTO {table} ({names}) VALUES ({changed}) ON CONFLICT {upsert}"
    if table == "event":  # another place in the order, the same kind and id
        moved = ", ".join("999" if name == "seq" else literal for name, literal in zip(columns, new))
        yield f"INSERT OR REPLACE INTO event ({names}) VALUES ({moved})"
        yield f"INSERT INTO event ({names}) VALUES ({moved}) ON CONFLICT (kind, id) DO UPDATE SET payload = '{{}}'"
        places = names.replace("seq", "rowid")
        yield f"INSERT OR REPLACE INTO event ({places}) VALUES ({changed})"
        yield f"INSERT OR REPLACE INTO event (rowid, {names}) VALUES ({old}, {moved})"
        texts = ", ".join(f"'{x}'" if name == "seq" else x for name, x in zip(columns, new))
        yield f"INSERT OR REPLACE INTO event ({names}) VALUES ({texts})"


@pytest.mark.parametrize("table", TABLES)
def test_the_database_refuses_every_change(path: Path, table: str) -> None:
    tried = 0
    for db in connections(path):
        before = contents(db)
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        quoted = ", ".join(f"quote({name})" for name in columns)
        rows = db.execute(f"SELECT {quoted} FROM {table}").fetchall()
        assert rows
        for row in rows[-2:]:
            for change in changes(table, columns, list(row)):
                with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                    db.execute(change)
                assert contents(db) == before, change
                db.rollback()
                tried += 1
        with closing(sqlite3.connect(path)) as other:
            assert contents(other) == before
    assert tried >= 2 * 25


def test_a_new_row_is_taken(path: Path) -> None:
    # Or the test above would pass on a database that refuses everything.
    with closing(sqlite3.connect(path)) as db:
        before = contents(db)["event"]
        db.execute("INSERT INTO event SELECT 999, 'export', 'x', 0, NULL, NULL, 0, '{}', NULL, 0")
        assert len(contents(db)["event"]) == len(before) + 1


def test_a_removed_trigger_is_found(path: Path) -> None:
    with closing(Log(path)) as opened:
        assert opened.problems() == []
    with closing(sqlite3.connect(path)) as db:
        triggers = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")]
    assert {name.split("_")[0] for name in triggers} == set(TABLES)
    for name in triggers:
        with closing(sqlite3.connect(path)) as db:
            [sql] = db.execute("SELECT sql FROM sqlite_master WHERE name = ?", [name]).fetchone()
            db.execute(f"DROP TRIGGER {name}")
            with closing(Log(path)) as opened:
                assert any(name in problem for problem in opened.problems())
            other = sql.replace("RAISE(ABORT, 'the log is append-only')", "RAISE(IGNORE)")
            with closing(Log(path)) as opened:
                db.execute(other)
                assert any(name in problem for problem in opened.problems())
            with pytest.raises(ValueError, match=f"nothing else, got trigger '{name}'"):
                Log(path)
            db.execute(f"DROP TRIGGER {name}")
            db.execute(sql)


# ---------------------------------------------------------------------------- making, opening


def test_only_the_owner_may_read(tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        with small_loop(tmp_path / "loop") as loop:
            d = loop.decide()
            loop.feedback(d.id, clicks=[d.shown[2]])
            loop.snapshot()
            names = set()
            for file in loop.path.iterdir():
                assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
                names.add(file.suffix)
            assert names >= {".db", ".safetensors", ".db-wal"}
            assert stat.S_IMODE(loop.path.stat().st_mode) == 0o700
    finally:
        os.umask(mask)


def test_a_log_that_is_there_is_not_made_again(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="there already"):
        Log(path, create=True)
    assert path.read_bytes() == before


def test_no_log(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such log"):
        Log(tmp_path / "log.db")
    with pytest.raises(FileNotFoundError):
        Log(tmp_path)
    assert not list(tmp_path.iterdir())


def _other_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE things (a)")
        db.commit()


def _with_a_table_event(version: int) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        with closing(sqlite3.connect(path)) as db:
            db.execute("CREATE TABLE event (a)")
            db.execute(f"PRAGMA user_version = {version}")

    return make


@pytest.mark.parametrize(
    "make",
    [
        _other_database,
        _with_a_table_event(0),
        _with_a_table_event(1),
        lambda path: path.touch(),
        lambda path: path.write_text("seq,kind,id\n" * 1000),
        lambda path: path.write_bytes(b"SQLite format 3\0" + bytes(4080)),
    ],
    ids=["another database", "with our table", "with our version", "empty", "text", "only a header"],
)
def test_another_file_is_refused_by_name(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "log.db"
    make(path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"log\.db: expected a"):
        Log(path)
    assert [file.name for file in tmp_path.iterdir()] == ["log.db"]
    assert path.read_bytes() == before


def test_a_newer_schema_is_refused(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {SCHEMA.version + 1}")
    with pytest.raises(ValueError, match=r"log\.db: .*newer heedful"):
        Log(path)
    with pytest.raises(ValueError, match="newer heedful"):
        Loop.open(path.parent)


def test_a_failed_create_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "SCHEMA", SCHEMA._replace(tables=(*SCHEMA.tables, "NONSENSE")))
    with pytest.raises(sqlite3.OperationalError, match="NONSENSE"):
        Log(tmp_path / "log.db", create=True)
    assert not list(tmp_path.iterdir())
    with pytest.raises(sqlite3.OperationalError):
        small_loop(tmp_path / "loop")
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------------------- group commit


def test_each_caller_is_answered_once_with_its_own_answer() -> None:
    written: list[tuple[int, int]] = []
    sizes: list[int] = []

    def commit(items: list[tuple[int, int]]) -> list[tuple[str, tuple[int, int]]]:
        sizes.append(len(items))
        written.extend(items)
        time.sleep(0.0005)
        return [("did", item) for item in items]

    commits = GroupCommit(commit, most=7)
    answers: dict[int, list[Any]] = {i: [] for i in range(16)}

    def caller(i: int) -> None:
        rng = random.Random(i)
        for n in range(30):
            items = [(i, 10 * n + j) for j in range(rng.choice([0, 1, 1, 2, 5]))]
            answers[i].append((items, commits.submit(items)))

    _run([threading.Thread(target=caller, args=(i,)) for i in answers])
    for i, each in answers.items():
        assert len(each) == 30, "a caller got no answer"
        assert all(list(got) == [("did", item) for item in items] for items, got in each)
        sent = [item for items, _ in each for item in items]
        assert [item for item in written if item[0] == i] == sent  # each once, in the caller's order
    assert max(sizes) > 5, "nothing was ever grouped"


def _run(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.daemon = True
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive(), "somebody still waits"


class Gate:
    """A commit that waits until it is let go, so that a test knows who is in which group."""

    def __init__(self) -> None:
        self.groups: list[list[Any]] = []
        self.entered, self.go = threading.Semaphore(0), threading.Semaphore(0)
        self.fails: dict[Any, BaseException] = {}

    def __call__(self, items: list[Any]) -> list[Any]:
        self.groups.append(list(items))
        self.entered.release()
        assert self.go.acquire(timeout=20)
        for item in items:
            if item in self.fails:
                raise self.fails[item]
        return [f"did {item}" for item in items]


class Caller(threading.Thread):
    def __init__(self, commits: GroupCommit[Any, Any], items: list[Any]) -> None:
        super().__init__(daemon=True)
        self.commits, self.items, self.got, self.error = commits, items, None, None
        self.start()

    def run(self) -> None:
        try:
            self.got = self.commits.submit(self.items)
        except BaseException as error:
            self.error = error


def _waiting(commits: GroupCommit[Any, Any], n: int) -> None:
    deadline = time.monotonic() + 20
    while len(commits._queue) < n:
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.mark.parametrize("error", [OSError(28, "full"), KeyboardInterrupt()], ids=["error", "interruption"])
def test_an_exception_reaches_exactly_its_group(error: BaseException) -> None:
    gate = Gate()
    commits = GroupCommit(gate)
    gate.fails["b"] = error
    first = Caller(commits, ["a"])
    assert gate.entered.acquire(timeout=20)
    second = []
    for n, item in enumerate("bcd"):
        second.append(Caller(commits, [item]))
        _waiting(commits, n + 1)
    gate.go.release()
    assert gate.entered.acquire(timeout=20)
    third = [Caller(commits, ["e"]), Caller(commits, ["f"])]
    _waiting(commits, 2)
    gate.go.release()
    gate.go.release()
    for thread in (first, *second, *third):
        thread.join(20)
        assert not thread.is_alive()
    assert [sorted(group) for group in gate.groups] == [["a"], ["b", "c", "d"], ["e", "f"]]
    assert first.got == ["did a"]
    assert first.error is None
    assert [thread.got for thread in third] == [["did e"], ["did f"]]
    assert all(thread.got is None for thread in second)
    if isinstance(error, Exception):
        assert all(thread.error is error for thread in second)
    else:  # the interruption is the leader's; the others are told to send again
        assert second[0].error is error
        assert all(isinstance(thread.error, InterruptedError) for thread in second[1:])


class Interrupted:
    """A lock on which waiting ends as by a signal: when it is told to, or just when the lock was let go."""

    def __init__(self, at_its_turn: bool) -> None:
        self.lock, self.told, self.at_its_turn = threading.Lock(), threading.Event(), at_its_turn
        self.lock.acquire()

    def acquire(self) -> bool:
        while not self.told.is_set():
            if self.lock.acquire(timeout=0.001):
                if self.at_its_turn:
                    break
                return True
        raise KeyboardInterrupt

    def release(self) -> None:
        self.lock.release()


@pytest.mark.parametrize("when", ["in the queue", "being written", "its turn"])
def test_an_interrupted_caller_holds_nobody_up(monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    gate = Gate()
    commits = GroupCommit(gate)
    first = Caller(commits, ["a"])
    assert gate.entered.acquire(timeout=20)
    turn = Interrupted(when == "its turn")
    make = group._Waiting.__init__

    def interruptible(self: Any, items: Any) -> None:
        make(self, items)
        if items == ["x"]:
            self.turn = turn

    monkeypatch.setattr(group._Waiting, "__init__", interruptible)
    callers = []
    for n, item in enumerate("xbc" if when == "its turn" else "bxc"):
        callers.append(Caller(commits, [item]))
        _waiting(commits, n + 1)
    [victim] = (caller for caller in callers if caller.items == ["x"])
    others = [caller for caller in callers if caller is not victim]
    if when == "in the queue":
        turn.told.set()
        victim.join(20)
    gate.go.release()
    assert gate.entered.acquire(timeout=20)
    if when == "being written":
        assert gate.groups[-1] == ["b", "x", "c"]
        turn.told.set()
        victim.join(20)
    else:
        assert gate.groups[-1] == ["b", "c"]
    gate.go.release()
    for caller in (first, *callers):
        caller.join(20)
        assert not caller.is_alive()
    assert isinstance(victim.error, KeyboardInterrupt)
    assert [first.got, *(caller.got for caller in others)] == [["did a"], ["did b"], ["did c"]]
    gate.go.release()
    later = Caller(commits, ["d"])
    later.join(20)
    assert later.got == ["did d"]


@pytest.mark.parametrize("at", range(20))
def test_interrupted_at_any_line(at: int) -> None:
    """Whoever is interrupted while it leads lets the others go on."""
    commits = GroupCommit(lambda items: [*items])
    lines = iter(range(1000))

    def interrupt(frame: FrameType, event: str, _: Any) -> Any:
        # Where a `with` ends its line is seen once more, at a point where no signal is handled; nor is one where the
        # leaving begins.
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        ends = (commits._mutex.locked() and line.startswith("with ")) or line.startswith("self._leave(")
        if frame.f_code.co_name in ("submit", "_write_group") and event == "line" and not ends and next(lines) == at:
            sys.settrace(None)
            raise KeyboardInterrupt
        return interrupt

    tracing = sys.gettrace()
    try:
        sys.settrace(interrupt)
        commits.submit([1])
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(tracing)
    later = Caller(commits, [2])
    later.join(20)
    assert later.got == [2]


# ---------------------------------------------------------------------------- several threads, several processes


def test_the_order_of_the_log_is_the_order_of_the_answers(home: Place) -> None:
    with small_loop(home / "loop", control=0.0) as loop:
        d = loop.decide(id="d")
        answers: dict[int, list[Any]] = {i: [] for i in range(8)}

        def caller(i: int) -> None:
            answers[i] = [loop.feedback("d", id=f"{i}-{n}", clicks=[d.shown[1 + i]]) for n in range(20)]

        _run([threading.Thread(target=caller, args=(i,)) for i in answers])
        seqs = sorted(a.seq for each in answers.values() for a in each)
        assert len(set(seqs)) == 160
        assert seqs == list(range(d.seq + 1, d.seq + 161))
        for i, each in answers.items():
            assert [a.seq for a in each] == sorted(a.seq for a in each)
            assert all(a.version >= a.seq for a in each)
            assert all(loop.projection.log.at(a.seq).id == f"{i}-{n}" for n, a in enumerate(each))
        assert loop.projection.model.shared.t == 160
        assert bits(loop) == bits_from_scratch(loop)


def _appends(path: Path, name: str, n: int, begin: Any, out: Any) -> None:
    with Loop.open(path) as loop:
        begin.wait(30)
        seqs = []
        for i in range(n):
            d = loop.decide(id=f"d-{name}-{i}", person=f"p{i % 3}")
            a = loop.feedback(d.id, id=f"e-{name}-{i}", clicks=[d.shown[3]])
            seqs += [d.seq, a.seq]
            if i % 10 == 5:
                seqs.append(loop.undo(f"e-{name}-{i}").seq)
            loop.feedback("shared", id=f"shared-{i}", clicks=["i3"])  # both send it: it counts once
        begin.wait(30)  # both have written all there is
        loop.projection.catch_up()
        out.put((name, seqs, bits(loop), loop.verify()))


@pytest.mark.slow
def test_two_processes_with_one_log(home: Place) -> None:
    n = 40
    with small_loop(home / "loop", control=0.0, shrink=3.0, snapshot_every=15) as loop:
        loop.decide(id="shared", person="p1")
    spawned = multiprocessing.get_context("spawn")
    begin, out = spawned.Barrier(2), spawned.Queue()
    children = [spawned.Process(target=_appends, args=(home / "loop", name, n, begin, out)) for name in "ab"]
    for child in children:
        child.start()
    found = sorted([out.get(timeout=60) for _ in children])
    for child in children:
        child.join(30)
        assert child.exitcode == 0
    both = [seq for _, seqs, _, _ in found for seq in seqs]
    assert len(set(both)) == len(both) == 2 * (2 * n + n // 10)
    assert all(seqs == sorted(seqs) for _, seqs, _, _ in found)
    assert found[0][2] == found[1][2]
    assert [problems for *_, problems in found] == [[], []]
    with Loop.open(home / "loop") as loop:
        assert loop.projection.model.shared.t == 2 * (n - n // 10) + n
        assert bits(loop) == bits_from_scratch(loop) == found[0][2]
        order = [event.seq for event in loop.projection.log.events()]
        assert order == sorted(set(order))
        assert set(both) < set(order)


WRITER = """
import sys, time
from heedful import Loop

loop, n = Loop.open(sys.argv[1]), 0
while True:
    loop.feedback("d", id=f"w{n}", better=["i3"])
    n += 1
    time.sleep(0.001)
    if n == 1:
        print("at work", flush=True)
"""


@pytest.mark.slow
def test_opened_beside_a_process_that_writes(home: Place) -> None:
    """What comes while the log is folded counts once."""
    path = home / "loop"
    with small_loop(path, control=0.0) as loop:
        loop.decide(id="d")
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout.readline() == b"at work\n"
            for n in range(8 * FACTOR):
                beside = Loop.open(path)
                beside.feedback("d", id=f"b{n}", better=["i4"])
                if n % 3 == 2:
                    beside.undo(f"b{n}")
                projection = beside.projection
                with projection.turn, projection.log.writing():  # the other waits meanwhile
                    projection._catch_up()
                    lessons = projection.log.counts()["feedback"] - len(projection.log.retractions().undone)
                    assert projection.model.shared.t == lessons
                    assert bits(beside) == bits_from_scratch(beside)
                projection.log.close()
        finally:
            child.kill()


def test_what_is_appended_while_the_log_is_folded(home: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with small_loop(home / "loop", control=0.0) as one:
        one.decide(id="d")
        one.feedback("d", id="e0", better=["i3"])
        last = Log.last

        def late(self: Log, *given: Any) -> Any:
            found = last(self, *given)
            monkeypatch.setattr(Log, "last", last)
            one.feedback("d", id="e1", better=["i4"])
            return found

        monkeypatch.setattr(Log, "last", late)
        with Loop.open(home / "loop") as two:
            two.feedback("d", id="e2", better=["i5"])
            assert two.projection.model.shared.t == 3
            assert bits(two) == bits_from_scratch(two)


def test_catching_up_that_fails_half_way(home: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was learned before the disk failed is not learned once more."""
    with small_loop(home / "loop", control=0.0) as one, Loop.open(home / "loop") as two:
        one.decide(id="d")
        for n in range(4):
            one.feedback("d", id=f"e{n}", better=["i3", "i4"])
        at, calls = Log.at, []

        def fails_once(self: Log, seq: int) -> Any:
            calls.append(seq)
            if len(calls) == 3:
                raise OSError(errno.EIO, "disk")
            return at(self, seq)

        with monkeypatch.context() as patched:
            patched.setattr(Log, "at", fails_once)
            with pytest.raises(OSError, match="disk"):
                two.projection.catch_up()
        two.projection.catch_up()
        assert two.projection.model.shared.t == 4
        assert bits(two) == bits(one) == bits_from_scratch(two)


def _append_and_fail(opened: Log, event: Event) -> None:
    opened.append([event])
    raise RuntimeError


def test_each_write_is_its_own_transaction(tmp_path: Path) -> None:
    with closing(Log(tmp_path / "log.db", create=True)) as opened:
        event = Event(1, "export", "x", 0, None, None, 0, "{}")
        with pytest.raises(RuntimeError), opened.writing():
            _append_and_fail(opened, event)
        assert list(opened.events()) == []
        with pytest.raises(sqlite3.IntegrityError), opened.writing():
            opened.append([event, event])
        assert list(opened.events()) == []
        with opened.writing():
            opened.append([event])
        assert list(opened.events()) == [event]


def test_what_another_process_appends_just_before_the_log_is_folded_anew_counts_once(
    home: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the commit of an undo and the reading of the log for it."""
    with small_loop(home / "loop", control=0.0) as one, Loop.open(home / "loop") as two:
        one.decide(id="d")
        one.feedback("d", id="e0", better=["i3"])
        one.feedback("d", id="e1", better=["i4"])
        rebuild = one.projection.rebuild
        came: list[int] = []

        def late() -> None:
            if not came:
                came.append(0)
                came[0] = two.feedback("d", id="between", better=["i5"]).seq or 0
            rebuild()

        monkeypatch.setattr(one.projection, "rebuild", late)
        one.undo("e0")
        assert came[0] > 0
        assert one.projection.model.shared.t == 2
        one.decide(id="d2")
        assert one.projection.model.shared.t == 2
        assert bits(one) == bits_from_scratch(one)
        assert one.version == came[0]


def test_the_write_ahead_file_does_not_grow_from_crash_to_crash(tmp_path: Path) -> None:
    """A process that is killed leaves what its files were before it closed them."""
    path, most, n = tmp_path / "0" / "log.db", 0, 8
    path.parent.mkdir()
    Log(path, create=True).close()
    for i in range(1, n + 1):
        with closing(Log(path)) as log:
            with log.writing():
                log.append([Event(i, "export", f"x{i}", 0, None, None, 0, f'{{"path":"{i:2000000}"}}')])
            most = max(most, os.path.getsize(f"{path}-wal"))
            killed = shutil.copytree(path.parent, tmp_path / str(i))
        path = killed / "log.db"
    assert 2_000_000 < most < 8_000_000
    with closing(Log(path)) as log:
        assert [event.id for event in log.events()] == [f"x{i}" for i in range(1, n + 1)]


def test_a_long_write_ahead_file_that_another_process_reads_stays_until_it_may_go(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with closing(Log(path, create=True)) as log:
        with log.writing():
            log.append([Event(1, "export", "x", 0, None, None, 0, f'{{"path":"{1:6000000}"}}')])
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN")
            other.execute("SELECT * FROM event").fetchall()
            with closing(Log(path, wait=60.0)) as another:
                assert [event.id for event in another.events()] == ["x"]
        with closing(Log(path)) as another:
            assert os.path.getsize(f"{path}-wal") < 1_000_000
            assert [event.id for event in another.events()] == ["x"]
        with log.writing():
            log.append([Event(2, "export", "y", 0, None, None, 0, '{"path":"-"}')])
        assert [event.id for event in log.events()] == ["x", "y"]
