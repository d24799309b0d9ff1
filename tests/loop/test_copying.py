"""Loops are copied between folders and databases: the same events, the same model, and nothing by halves."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from heedful import Loop, Settings, infer
from heedful.loop.copying import copy_loop, loops_in
from heedful.loop.log import Log
from heedful.storage import Address, Damaged, Place
from loops import bits, rows, small_loop

WAYS = [
    "folder-folder",
    pytest.param("folder-postgres", marks=pytest.mark.slow),
    pytest.param("postgres-folder", marks=pytest.mark.slow),
    pytest.param("postgres-postgres", marks=pytest.mark.slow),
]


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Place]:
    """Gives new places for loops, in a folder or a database, by the name of the store."""
    numbers = count()

    def new(store: str) -> Place:
        if store == "folder":
            return tmp_path / f"l{next(numbers)}.heedful"
        return Address(request.getfixturevalue("postgres"), f"copied-{os.urandom(4).hex()}")

    return new


def open_log(place: Place) -> Log:
    return Log(place if isinstance(place, Address) else place / "log.db", read_only=True)


def taught(place: Place, n: int = 6) -> None:
    """A loop in which everything happened: a context, somebody forgotten, an undo, a withdrawn item."""
    items = rows(12, 4)
    encoding = infer(items, identifier="id", kinds={f"f{i}": "number" for i in range(4)})
    around = infer([{"hour": i % 24} for i in range(48)], identifier="", keep=["hour"])
    settings = Settings(control=0.0, shrink=5.0)
    with Loop.create(place, encoding=encoding, items=items, context=around, settings=settings) as loop:
        for i in range(n):
            d = loop.decide(id=f"d{i}", person=("ann", "bob", "cy")[i % 3], context={"hour": i})
            loop.feedback(d.id, id=f"e{i}", clicks=[d.shown[3]])
        loop.undo("e1")
        loop.withdraw("i3")
        loop.forget("ann")


def content(place: Place) -> tuple[Any, ...]:
    """All that a log holds: its secret, events and digests."""
    with closing(open_log(place)) as log, log.store.frozen() as run:
        return log.store.secret, list(log.events()), run("SELECT seq, digest FROM forgotten ORDER BY digest")


@pytest.mark.parametrize("way", WAYS)
def test_a_copy_is_the_loop(way: str, place: Callable[[str], Place]) -> None:
    source, target = map(place, way.split("-"))
    taught(source)
    before = content(source)
    with Loop.open(source, read_only=True) as loop:
        copied = copy_loop(source, target)
        assert (copied.events, copied.new) == (len(before[1]), True)
        assert content(target) == before
        with Loop.open(target) as copy:
            assert copy.verify() == []
            assert bits(copy) == bits(loop)
            assert copy.manifest == loop.manifest
            assert copy.decide(id="next", person="bob").shown
            with pytest.raises(LookupError, match="forgotten"):
                copy.decide(id="d0", person="ann")
    assert content(source) == before


@pytest.mark.parametrize("way", WAYS)
def test_what_is_there_is_left_unless_it_is_an_earlier_copy(way: str, place: Callable[[str], Place]) -> None:
    source, target = map(place, way.split("-"))
    taught(source)
    copy_loop(source, target)
    assert not copy_loop(source, target).new
    with Loop.open(source) as loop:
        loop.decide(id="later")
    with pytest.raises(FileExistsError, match="got another"):
        copy_loop(source, target)
    if isinstance(target, Address):
        return  # a back-up is a folder
    with Loop.open(target):  # somebody looks at it, and leaves a snapshot
        pass
    assert copy_loop(source, target, renew=True).new
    assert content(target) == content(source)
    with Loop.open(source) as loop:
        loop.forget("bob")  # the last events of the copy are not in the loop any more
    assert copy_loop(source, target, renew=True).new
    assert content(target) == content(source)
    assert {path.name for path in target.iterdir()} == {"log.db"}
    # One that has gone on by itself is not replaced, nor another loop.
    with Loop.open(target) as loop:
        loop.decide(id="elsewhere")
    with pytest.raises(FileExistsError, match="events that it does not have"):
        copy_loop(source, target, renew=True)
    other = place("folder")
    taught(other)
    with pytest.raises(FileExistsError, match="another loop"):
        copy_loop(other, target, renew=True)


def test_the_files_of_a_study_come_with_it(tmp_path: Path) -> None:
    source, target = tmp_path / "a.heedful", tmp_path / "b.heedful"
    small_loop(source).close()
    (source / "pictures").mkdir()
    (source / "pictures" / "0a").write_bytes(b"one")
    (source / "study.json").write_text("{}")
    (source / "elsewhere").symlink_to(tmp_path / "secret")
    (tmp_path / "secret").write_text("not ours")
    for leftover in ("snapshot-000000000001.safetensors", ".log.db-litestream", "study.jsonabcdefgh.tmp"):
        (source / leftover).write_text("x")
    copy_loop(source, target)
    names = {"log.db", "study.json", "pictures", "pictures/0a"}
    assert {path.relative_to(target).as_posix() for path in target.rglob("*")} == names
    assert (target / "pictures" / "0a").read_bytes() == b"one"
    assert {path.stat().st_mode & 0o777 for path in target.rglob("*")} == {0o600, 0o700}
    (source / "study.json").write_text('{"ask": "Which?"}')
    (source / "pictures" / "0b").write_bytes(b"two")
    assert copy_loop(source, target, renew=True).new  # although the log is the same
    assert (target / "study.json").read_text() == '{"ask": "Which?"}'
    assert (target / "pictures" / "0b").read_bytes() == b"two"
    with pytest.raises(ValueError, match=r"got one with pictures/0a, pictures/0b, study.json: copy it to a folder"):
        copy_loop(source, Address("postgresql://nowhere/at-all", "a"))


def test_a_damaged_log_is_not_copied_over_a_good_copy(tmp_path: Path) -> None:
    source, target = tmp_path / "a.heedful", tmp_path / "b.heedful"
    with small_loop(source) as loop:
        copy_loop(source, target)
        loop.decide(id="d1")
    good = content(target)
    with closing(sqlite3.connect(source / "log.db")) as db, db:
        [sql] = db.execute("SELECT sql FROM sqlite_master WHERE name = 'event_keeps'").fetchone()
        db.execute("DROP TRIGGER event_keeps")
        db.execute("UPDATE event SET payload = '{}' WHERE seq = 2")
        db.execute(sql)
    with pytest.raises(Damaged, match=r"a\.heedful/log\.db: event 2: its content was changed"):
        copy_loop(source, target, renew=True)
    assert content(target) == good
    assert {path.name for path in tmp_path.iterdir()} == {"a.heedful", "b.heedful"}


def test_something_else_is_never_replaced(tmp_path: Path) -> None:
    small_loop(tmp_path / "a.heedful").close()
    (tmp_path / "b.heedful").mkdir()
    (tmp_path / "c.heedful").write_text("a file")
    for name in ("b", "c"):
        with pytest.raises(FileExistsError, match="something else"):
            copy_loop(tmp_path / "a.heedful", tmp_path / f"{name}.heedful", renew=True)
    with pytest.raises(FileNotFoundError):
        copy_loop(tmp_path / "none.heedful", tmp_path / "d.heedful")
    assert not (tmp_path / "d.heedful").exists()


# ---------------------------------------------------------------------------- killed at every step

# A process that forks: copy n, or without a source a new loop, goes to target n and dies just before its step number n,
# until one takes all steps.
COPIER = """
import os, pathlib, shutil, sys, tempfile
from heedful import Loop, infer
from heedful.loop import copying
from heedful.loop.log import table
from heedful.loop.log.file import LogFile
from heedful.loop.log.reader import LogReader
from heedful.storage import place_of
from heedful.storage.postgres import Connection

copying.PAGE, step, die_at = 200, 0, None

def stepped(f):
    def do(*args, **kwargs):
        global step
        step += 1
        if step - 1 == die_at:
            os._exit(9)
        return f(*args, **kwargs)
    return do

for of, names in {
    tempfile: ("mkdtemp",), copying: ("_write",), shutil: ("copyfile", "rmtree"), LogReader: ("problems",),
    pathlib.Path: ("mkdir", "rename", "replace", "unlink"), table: ("_insert", "_insert_forgotten"),
    LogFile: ("_fill", "append", "remove", "close"), Connection: ("script",),
}.items():
    for name in names:
        setattr(of, name, stepped(getattr(of, name)))

source, targets = sys.argv[1], sys.argv[2:]
items = [{"id": f"i{i}", "size": i * 7 % 50} for i in range(50)]
for die_at, target in enumerate(targets):
    child = os.fork()
    if child == 0:
        if source:
            copying.copy_loop(place_of(source), place_of(target), renew=True)
        else:
            Loop.create(target, encoding=infer(items), items=items)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(code, flush=True)
    if code != 9:
        break
"""


def killed_at_every_step(source: Place | str, targets: list[Place]) -> int:
    """Copy to each target, or make a loop there without a `source`, in a process that is killed a step later than the
    one before; how many were killed until one was done."""
    given = [f"{each.url}#{each.key}" if isinstance(each, Address) else str(each) for each in (source, *targets)]
    out = subprocess.run([sys.executable, "-c", COPIER, *given], capture_output=True, text=True, check=True).stdout
    codes = out.split()
    assert codes[-1] == "0", "more steps than targets"
    assert set(codes[:-1]) == {"9"}
    return len(codes) - 1


def fill(loop: Loop, run: str) -> None:
    for i in range(8):
        d = loop.decide(id=f"d{run}-{i}", person=f"p{i % 3}")
        loop.feedback_many([{"decision": d.id, "id": f"e{run}-{i}-{j}", "clicks": [d.shown[3]]} for j in range(100)])


@pytest.mark.slow
@pytest.mark.parametrize("way", ["folder-folder", "folder-postgres", "postgres-folder", "postgres-postgres"])
def test_a_copy_that_was_killed_is_not_there_and_the_next_one_is_whole(way: str, place: Callable[[str], Place]) -> None:
    of, to = way.split("-")
    source, targets = place(of), [place(to) for _ in range(60)]
    with small_loop(source, control=0.0) as loop:
        fill(loop, "")
        loop.forget("p0")
    if way == "folder-folder":
        assert isinstance(source, Path)
        (source / "study.json").write_text("{}")
    before, there = content(source), 0
    killed = killed_at_every_step(source, targets)
    assert killed >= 5
    for target in targets[:killed]:
        found = target.key in loops_in(Address(target.url)) if isinstance(target, Address) else target.exists()
        there += found
        assert not found or content(target) == before
        copy_loop(source, target)
        assert content(target) == before
        if isinstance(target, Path):
            assert not list(target.parent.glob(f".{target.name}.*"))
    assert there <= 3, "killed between the last step that counts and the end"


@pytest.mark.slow
@pytest.mark.parametrize("store", ["folder", "postgres"])
def test_a_new_loop_is_there_as_a_whole_or_not_at_all(store: str, place: Callable[[str], Place]) -> None:
    targets, whole = [place(store) for _ in range(60)], 0
    killed = killed_at_every_step("", targets)
    assert killed >= (5 if store == "folder" else 2)
    for target in targets[: killed + 1]:
        found = target.key in loops_in(Address(target.url)) if isinstance(target, Address) else target.exists()
        whole += found
        with Loop.open(target) if found else small_loop(target) as loop:
            assert len(loop.items) == (50 if found else 12)
            assert loop.verify() == []
        if isinstance(target, Path) and not found:
            assert not list(target.parent.glob(f".{target.name}.*"))
    assert 1 <= whole < killed


@pytest.mark.slow
def test_a_back_up_that_was_killed_while_it_was_renewed_is_the_earlier_or_the_new_one(tmp_path: Path) -> None:
    source, targets = tmp_path / "a.heedful", [tmp_path / f"b{i}.heedful" for i in range(60)]
    with small_loop(source, control=0.0) as loop:
        fill(loop, "")
        for target in targets:
            copy_loop(source, target)
            (target / "snapshot-000000000009.safetensors").write_text("somebody opened it")
        earlier = content(source)
        fill(loop, "later")
        loop.forget("p0")
    (source / "study.json").write_text("{}")
    now = content(source)
    killed = killed_at_every_step(source, targets)
    found = [content(target) for target in targets[:killed]]
    assert all(each in (earlier, now) for each in found)
    assert earlier in found
    for target in targets[:killed]:
        copy_loop(source, target, renew=True)
        assert content(target) == now
        assert {path.name for path in target.iterdir()} == {"log.db", "study.json"}
    assert not list(tmp_path.glob(".*"))
