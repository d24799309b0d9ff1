"""What goes wrong around a loop: full disk, locks, damaged files, clocks, learners that raise. Nothing is lost, nothing
half-applied, nothing silently wrong."""

from __future__ import annotations

import errno
import json
import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from budget import FACTOR
from heedful import Loop
from heedful.core.serialization import read_arrays, write_arrays
from heedful.loop.log.event import Event
from heedful.loop.log.file import LogFile
from heedful.storage import Damaged, Moved
from loops import bits, bits_from_scratch, set_clock, small_loop, whole_log


def taught(path: Path, n: int = 4, **settings: Any) -> Loop:
    """A loop in which n lessons were learned: events e0, e1, ... about decisions d0, d1, ..."""
    loop = small_loop(path, **{"control": 0.0, **settings})
    more(loop, 0, n)
    return loop


def more(loop: Loop, start: int, stop: int) -> None:
    for n in range(start, stop):
        d = loop.decide(id=f"d{n}", person=f"p{n % 2}")
        assert loop.feedback(d.id, id=f"e{n}", clicks=[d.shown[3]]).learned


def everything(loop: Loop) -> Any:
    """All that may not change when something fails."""
    log = loop.projection.log
    published = loop.projection.published
    return (
        bits(loop),
        list(log.events()),
        published.version,
        published.shared.m.tobytes(),
        sorted(published.people),
    )


# ---------------------------------------------------------------------------- the disk is full


@contextmanager
def full_disk(loop: Loop, pages: int = 0) -> Iterator[None]:
    """The database may not grow by more than some pages."""
    writer = loop.projection.log.store._writer
    [size] = writer.execute("PRAGMA page_count").fetchone()
    [free] = writer.execute("PRAGMA freelist_count").fetchone()
    assert free == 0
    writer.execute(f"PRAGMA max_page_count = {size + pages}")
    try:
        yield
    finally:
        writer.execute("PRAGMA max_page_count = 1073741823")


@pytest.mark.parametrize("pages", [0, 1, 3])
def test_full_disk(tmp_path: Path, pages: int) -> None:
    with taught(tmp_path / "loop", store_text=True) as loop:
        d = loop.decide(id="d", context={"note": "x"})
        before = everything(loop)
        big = {"note": np.random.default_rng(0).bytes(15_000).hex()}  # it does not get much shorter by being packed
        many = [{"decision": "d", "id": f"m{n}", "clicks": [d.shown[3]]} for n in range(1000)]
        with full_disk(loop, pages):
            for attempt in (lambda: loop.decide(id="big", context=big), lambda: loop.feedback_many(many)):
                with pytest.raises(OSError, match="disk is full; nothing was changed") as raised:
                    attempt()
                assert raised.value.errno == errno.ENOSPC
                assert raised.value.filename == str(tmp_path / "loop" / "log.db")
                assert everything(loop) == before
            with pytest.raises(OSError, match="disk is full"):
                loop.put_items({"id": f"n{n}", "f0": 1.0} for n in range(1000))
            assert "n0" not in loop.items
            assert "n999" not in loop.items
            assert everything(loop) == before
            assert loop.projection.find_decision("d") is not None
        assert loop.decide(id="big", context=big).id == "big"
        assert {a.status for a in loop.feedback_many(many)} == {"applied"}
        assert loop.projection.model.shared.t == 4 + 1000
        assert loop.verify() == []
    with Loop.open(tmp_path / "loop") as loop:
        assert loop.projection.model.shared.t == 4 + 1000
        assert loop.verify() == []


def test_full_disk_while_undoing(tmp_path: Path) -> None:
    """An undo is a small event: whether the last page has room for it is chance. If not, nothing is changed."""
    with taught(tmp_path / "loop") as loop:
        before = everything(loop)
        writer = loop.projection.log.store._writer
        writer.execute("PRAGMA max_page_count = 1")  # what SQLite makes of it: no page more than there are
        try:
            loop.undo("e0")
        except OSError:
            assert everything(loop) == before
        writer.execute("PRAGMA max_page_count = 1073741823")
        loop.undo("e0", id="again")
        assert [e for e in everything(loop)[1] if e.kind != "undo"] == before[1]
        assert loop.verify() == []


LIMITED = """
import json, resource, signal, sys
sys.path[:0] = [sys.argv[1], f"{sys.argv[1]}/loop"]
from heedful import Loop
from loops import bits
from test_faults import everything

loop = Loop.open(sys.argv[2])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
room = (loop.path / "log.db-wal").stat().st_size
told, kept, n = [], [], 0
for round in range(3):
    resource.setrlimit(resource.RLIMIT_FSIZE, (room + 60_000, resource.RLIM_INFINITY))
    while True:
        before = everything(loop)
        try:
            a = loop.feedback("d", id=f"x{n}", better=["i3", "i4"])
        except OSError as error:
            told.append([error.errno, str(error)])
            assert everything(loop) == before
            break
        kept.append([f"x{n}", a.seq])
        n += 1
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    a = loop.feedback("d", id=f"x{n}", better=["i3", "i4"])  # the very event that was refused
    assert a.status == "applied", a
    kept.append([f"x{n}", a.seq])
    n += 1
    room = (loop.path / "log.db-wal").stat().st_size
assert loop.verify() == []
print(json.dumps([told, kept]))
import os; os._exit(0)  # and no tidy end either
"""


@pytest.mark.slow
def test_no_room_for_the_file(tmp_path: Path) -> None:
    with small_loop(tmp_path / "loop", control=0.0) as loop:
        loop.decide(id="d")
    command = [sys.executable, "-c", LIMITED, str(Path(__file__).parents[1]), str(tmp_path / "loop")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    told, kept = json.loads(done.stdout)
    assert len(told) == 3
    assert len(kept) > 6
    for number, text in told:
        assert number in (errno.ENOSPC, errno.EIO)  # SQLite calls a file that may not grow an I/O error
        assert "nothing was changed" in text
        assert "log.db" in text
    with Loop.open(tmp_path / "loop") as loop:
        assert [[id, loop.projection.log.find("feedback", id).seq] for id, _ in kept] == kept
        assert loop.projection.model.shared.t == len(kept) == loop.projection.log.counts()["feedback"]
        assert loop.verify() == []


def test_no_room_for_a_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with small_loop(tmp_path / "loop", control=0.0, snapshot_every=2) as loop:
        with monkeypatch.context() as patched:
            patched.setattr("heedful.core.serialization.os.fsync", full)
            more(loop, 0, 3)
            assert any("no snapshot was kept" in note and "No space left" in note for note in loop.notes)
            assert not list(loop.path.glob("snapshot-*"))
            with pytest.raises(OSError, match="No space left"):
                loop.snapshot()
        assert loop.snapshot().is_file()
        assert loop.projection.model.shared.t == 3
        assert loop.verify() == []


# ---------------------------------------------------------------------------- somebody else writes


def impatient(loop: Loop, wait: float = 0.1) -> None:
    log = loop.projection.log.store
    log._wait = wait
    for connection in (log._writer, log._reader):
        connection.execute(f"PRAGMA busy_timeout = {int(1000 * wait)}")


def acts_of(loop: Loop) -> list[Callable[[], Any]]:
    """What needs the log of a loop: the last reads it, the others write."""
    return [
        lambda: loop.decide(id="new"),
        lambda: loop.feedback("d1", id="new", clicks=["i3"]),
        lambda: loop.undo("e1"),
        lambda: loop.forget("p1"),
        lambda: loop.put_items([{"id": "n", "f0": 1.0}]),
        loop.verify,
    ]


def test_locked_by_another_process(tmp_path: Path) -> None:
    with taught(tmp_path / "loop") as loop:
        impatient(loop)
        before = everything(loop)
        with closing(sqlite3.connect(tmp_path / "loop" / "log.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            acts = acts_of(loop)
            for act in acts:
                with pytest.raises(TimeoutError, match=r"another process is writing; nothing was chang"):
                    act()
                assert everything(loop) == before
            assert loop.projection.find_decision("d1") is not None  # reading goes on
            other.execute("ROLLBACK")
        for act in acts[:-1]:
            act()
        assert acts[-1]() == []
        assert "p1" not in loop.projection.model.people


def test_a_commit_that_fails_after_catching_up(tmp_path: Path) -> None:
    """What another process taught is learned and published, though this one's own events found no room."""
    with taught(tmp_path / "loop", 0, shrink=2.0) as one, Loop.open(tmp_path / "loop") as two:
        more(one, 0, 2)
        many = [{"decision": "d0", "id": f"m{n}", "better": ["i3"]} for n in range(1000)]
        with full_disk(two), pytest.raises(OSError, match="disk is full"):
            two.feedback_many(many)
        found: list[Any] = []
        reader = threading.Thread(target=lambda: found.append(two.projection.reading("p1")), daemon=True)
        reader.start()
        reader.join(60)
        two.decide(id="d", person="p1")
        assert found, "deciding for her waits for ever"
        assert bits(two) == bits(one) == bits_from_scratch(two)


def test_closing_while_it_is_locked(tmp_path: Path) -> None:
    loop = taught(tmp_path / "loop", 2)
    impatient(loop)
    with closing(sqlite3.connect(tmp_path / "loop" / "log.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        loop.close()  # without a snapshot, if need be
    with Loop.open(tmp_path / "loop") as loop:
        assert loop.projection.model.shared.t == 2


def test_waits_for_a_short_lock(tmp_path: Path) -> None:
    with taught(tmp_path / "loop") as loop:
        other = sqlite3.connect(tmp_path / "loop" / "log.db", isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.3, lambda: other.execute("COMMIT"))
        timer.start()
        assert loop.feedback("d1", id="new", better=["i3"]).status == "applied"
        timer.join()
        other.close()


def test_reads_while_somebody_writes(tmp_path: Path) -> None:
    """Opening, reading and proposing want no lock: a long transaction of another process does not stop them."""
    with taught(tmp_path / "loop") as loop:
        whole = bits(loop)
    with closing(sqlite3.connect(tmp_path / "loop" / "log.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        loop = Loop.open(tmp_path / "loop")
        assert bits(loop) == whole
        assert loop.projection.find_decision("d0") is not None
    loop.close()


# ---------------------------------------------------------------------------- snapshots that are damaged


def flipped(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :]


def _made_with(**other: Any) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        arrays, manifest = read_arrays(path)
        assert other.keys() <= manifest.keys()
        write_arrays(path, arrays, {k: v for k, v in (manifest | other).items() if k != "schema"})

    return change


def _without(name: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        arrays, manifest = read_arrays(path)
        write_arrays(path, {k: v for k, v in arrays.items() if k != name}, manifest)

    return change


def _other_shape(path: Path) -> None:
    arrays, manifest = read_arrays(path)
    write_arrays(path, arrays | {"shared.m": np.zeros(99)}, manifest)


def _a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _another_schema(path: Path) -> None:
    arrays, manifest = read_arrays(path)
    write_arrays(path, arrays, manifest | {"schema": 99})


SPOILT: dict[str, Callable[[Path], None]] = {
    "empty": lambda path: path.write_bytes(b""),
    "one byte": lambda path: path.write_bytes(path.read_bytes()[:1]),
    "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "a byte short": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "a byte longer": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "a long header": lambda path: path.write_bytes(b"\xff" * 8 + path.read_bytes()[8:]),
    "text": lambda path: path.write_text("{}"),
    "a folder": _a_folder,
    "other parameters": _made_with(fields={"prior": "2.0"}),
    "other code": _made_with(learner_version="000000000000"),
    "another numpy": _made_with(numpy="1.26.4"),
    "another scipy": _made_with(scipy="0.1"),
    "another Python": _made_with(python="2.7.18"),
    "another machine": _made_with(machine="VAX"),
    "another position": _made_with(position=3),
    "compiled": _made_with(executor="compiled"),
    "another shrink": _made_with(shrink=9.0),
    "another schema": _another_schema,
    "an array less": _without("shared.usual"),
    "no people": _without("lessons"),
    "another shape": _other_shape,
}


Kept = tuple[Path, dict[str, bytes]]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """A loop with one snapshot, and its model."""
    folder = tmp_path_factory.mktemp("kept") / "loop"
    with taught(folder, 6, shrink=3.0) as loop:
        loop.undo("e2")
        whole = bits(loop)
    for old in sorted(folder.glob("snapshot-*"))[:-1]:
        old.unlink()
    return folder, whole


@pytest.fixture
def copy(kept: Kept, tmp_path: Path) -> Kept:
    """The snapshot of a copy of that loop, in the folder "loop", and its model."""
    shutil.copytree(kept[0], tmp_path / "loop")
    [snapshot] = (tmp_path / "loop").glob("snapshot-*")
    return snapshot, kept[1]


def _opened(folder: Path, whole: dict[str, bytes]) -> list[str]:
    """The notes on opening; the model is right whatever they say, and goes on right."""
    with Loop.open(folder) as loop:
        assert bits(loop) == whole
        notes = list(loop.notes)
        assert loop.feedback("d0", id="once more", better=["i3"]).learned
        assert bits(loop) == bits_from_scratch(loop)
        assert loop.verify() == []
    return notes


def test_a_whole_snapshot_is_used(copy: Kept, tmp_path: Path) -> None:
    # Or the tests below would pass where none ever is.
    snapshot, whole = copy
    with Loop.open(tmp_path / "loop") as loop:
        assert loop.notes == []
        assert bits(loop) == whole
        assert loop.projection.keeper.since_snapshot == 0, "it was folded from the first event"
    arrays, manifest = read_arrays(snapshot)
    write_arrays(snapshot, arrays | {"shared.m": arrays["shared.m"] + 1.0}, manifest)  # as if it were right
    with Loop.open(tmp_path / "loop") as loop:
        assert bits(loop) != whole
        assert loop.verify() == ["the model is not the fold of the log, bit for bit"]


def test_a_snapshot_of_another_kind_of_processor_is_used_and_may_differ_in_last_digits(
    copy: Kept, tmp_path: Path
) -> None:
    # There libraries of linear algebra add up in another order; whoever takes a loop over would fold it anew for that.
    snapshot, whole = copy
    arrays, manifest = read_arrays(snapshot)
    differ = ["the model is not the fold of the log, bit for bit"]
    for away, here, problems in ((1e-9, False, []), (1e-9, True, differ), (1e-3, False, differ)):
        about = manifest if here else manifest | {"processor": "another"}
        write_arrays(snapshot, arrays | {"shared.m": arrays["shared.m"] * (1.0 + away)}, about)
        with Loop.open(tmp_path / "loop") as loop:
            assert (loop.notes, loop.projection.keeper.since_snapshot) == ([], 0)
            assert bits(loop) != whole
            assert loop.verify() == problems
    with Loop.open(tmp_path / "loop") as loop:  # what is made of it is made by two
        loop.snapshot()
        assert read_arrays(snapshot)[1]["processor"] == "several"


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_a_spoilt_snapshot_is_never_used(copy: Kept, tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    snapshot, whole = copy
    spoil(snapshot)
    notes = _opened(tmp_path / "loop", whole)
    [note] = notes
    assert snapshot.name in note
    assert "the log is folded again" in note


def test_a_snapshot_of_another_learner_is_left_for_a_rollback(copy: Kept, tmp_path: Path) -> None:
    """The learner that served before a promotion leaves such snapshots, so nothing is said of it; it is not used."""
    snapshot, whole = copy
    _made_with(learner="perceptron")(snapshot)
    assert _opened(tmp_path / "loop", whole) == []


def test_a_link_in_the_place_of_a_snapshot_is_not_followed(copy: Kept, tmp_path: Path) -> None:
    """It counts for none, so nothing is said of it: the log is folded, to the same bits."""
    snapshot, whole = copy
    snapshot.unlink()
    snapshot.symlink_to(tmp_path / "loop" / "nowhere")
    assert _opened(tmp_path / "loop", whole) == []


@pytest.mark.slow
def test_every_byte_of_a_snapshot_counts(copy: Kept, tmp_path: Path) -> None:
    snapshot, whole = copy
    content = snapshot.read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    places = {*range(12), *range(12, header, 197), *range(header, len(content), 131), header - 1, len(content) - 1}
    for place in sorted(places):
        snapshot.write_bytes(flipped(content, place))
        loop = Loop.open(tmp_path / "loop")
        assert bits(loop) == whole, place
        # A space after the header's JSON may become another space that says the same; nothing else may be used.
        assert len(loop.notes) == 1 or content[place : place + 1] == b" ", place
        loop.projection.log.close()  # without keeping another one
    assert len(places) > 60


def test_an_older_snapshot_serves(tmp_path: Path) -> None:
    with taught(tmp_path / "loop", 0, snapshot_every=2) as loop:
        more(loop, 0, 8)
        whole = bits(loop)
    newest, *_ = sorted((tmp_path / "loop").glob("snapshot-*"), reverse=True)
    newest.write_bytes(flipped(newest.read_bytes(), -1 % newest.stat().st_size))
    with Loop.open(tmp_path / "loop") as loop:
        assert bits(loop) == whole
        assert len(loop.notes) == 1
        assert loop.projection.keeper.since_snapshot == 2  # only the lessons since
    assert len(list((tmp_path / "loop").glob("snapshot-*"))) <= 4


def test_snapshots_of_a_large_model_wait_for_more_lessons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with taught(tmp_path / "loop", 0, shrink=3.0, snapshot_every=2) as loop:
        more(loop, 0, 2)  # of both people
        [first] = (tmp_path / "loop").glob("snapshot-*")
        arrays = read_arrays(first)[0]
        numbers = sum(arrays[name].size for name in arrays.keys() - {"lessons", "since"})
        monkeypatch.setattr("heedful.loop.keeper.LARGE", numbers // 2)
        monkeypatch.setattr("heedful.loop.keeper.WORTH", numbers // 4)
        kept = []
        for n in range(2, 8):
            more(loop, n, n + 1)
            kept.append(len(list((tmp_path / "loop").glob("snapshot-*"))))
        assert kept == [1, 1, 1, 2, 2, 2]  # after four lessons and not two
        loop.undo("e1")  # an older one would be of no use then
        assert len(list((tmp_path / "loop").glob("snapshot-*"))) == 3


def test_a_snapshot_under_another_name(tmp_path: Path) -> None:
    with taught(tmp_path / "loop", 0, snapshot_every=2) as loop:
        more(loop, 0, 3)
        whole = bits(loop)
    for snapshot in (tmp_path / "loop").glob("snapshot-*"):
        snapshot.rename(snapshot.with_name("snapshot-000000000015.safetensors"))
    notes = _opened(tmp_path / "loop", whole)
    assert len(notes) == 1
    assert "snapshot-000000000015" in notes[0]


def test_a_back_up_of_the_log_beside_newer_snapshots(tmp_path: Path) -> None:
    """A log that was put back, as the errors advise: what came after it is not remembered by way of a snapshot."""
    with taught(tmp_path / "loop", 3) as loop:
        right = bits(loop)
        with (
            closing(sqlite3.connect(tmp_path / "loop" / "log.db")) as source,
            closing(sqlite3.connect(tmp_path / "back-up.db")) as copy,
        ):
            source.backup(copy)
        more(loop, 3, 8)
    shutil.copy(tmp_path / "back-up.db", tmp_path / "loop" / "log.db")
    with Loop.open(tmp_path / "loop") as loop:
        assert bits(loop) == right == bits_from_scratch(loop)
        for n in range(20, 30):  # other events in the places of those that are lost
            d = loop.decide(id=f"d{n}")
            assert loop.feedback(d.id, id=f"e{n}", clicks=[d.shown[5]]).learned
        right = bits(loop)
    for path in sorted((tmp_path / "loop").glob("snapshot-*"))[-1:]:
        path.unlink()  # so that those of before are looked at again
    with Loop.open(tmp_path / "loop") as loop:
        assert bits(loop) == right == bits_from_scratch(loop)


def test_a_snapshot_of_another_loop(tmp_path: Path) -> None:
    taught(tmp_path / "a", 3).close()
    with small_loop(tmp_path / "b", control=0.0) as loop:
        for n in range(3):
            d = loop.decide(id=f"d{n}")
            loop.feedback(d.id, id=f"e{n}", clicks=[d.shown[5]])
        right = bits(loop)
    [one], [two] = (list((tmp_path / name).glob("snapshot-*")) for name in "ab")
    assert one.name == two.name
    shutil.copy(one, two)
    assert len(_opened(tmp_path / "b", right)) == 1


def test_a_note_is_told_once(copy: Kept, tmp_path: Path) -> None:
    copy[0].write_bytes(b"")
    with Loop.open(tmp_path / "loop") as loop:
        for n in range(4):
            loop.feedback("d0", id=f"more{n}", better=["i3"])
            loop.undo(f"more{n}")
        assert len(loop.notes) == 1


# ---------------------------------------------------------------------------- a log that is damaged


def _found(folder: Path) -> bool:
    """Whether damage is refused on opening, by name, or found by looking."""
    told, loop = "", None
    try:
        loop = Loop.open(folder)
        return bool(loop.verify())
    except ValueError as error:
        told = str(error)
    finally:
        if loop is not None:
            loop.projection.log.close()
    return any(word in told for word in ("log.db", "expected a loop", "damaged")) or pytest.fail(told)


@pytest.mark.parametrize("length", [0, 1, 50, 100, 4096, -4096, -3 * 4096])
def test_a_truncated_log(tmp_path: Path, length: int) -> None:
    taught(tmp_path / "loop", 30).close()
    whole = whole_log(tmp_path / "loop")
    (tmp_path / "loop" / "log.db").write_bytes(whole[:length])
    assert _found(tmp_path / "loop")


@pytest.mark.slow
def test_a_damaged_header(tmp_path: Path) -> None:
    with taught(tmp_path / "loop", 3) as loop:
        right = bits(loop)
    whole = whole_log(tmp_path / "loop")
    for place in range(100):
        (tmp_path / "loop" / "log.db").write_bytes(flipped(whole, place))
        if place < 18:
            with pytest.raises(ValueError, match=r"log\.db: expected a .*damaged"):
                Loop.open(tmp_path / "loop")
        elif not _found(tmp_path / "loop"):  # counters and dates of SQLite's own: everything is still there
            loop = Loop.open(tmp_path / "loop")
            assert bits(loop) == right, place
            assert len(list(loop.projection.log.events())) == 1 + 12 + 6, place
            loop.projection.log.close()
        for file in (tmp_path / "loop").iterdir():
            if file.name != "log.db":
                file.unlink()


def test_damaged_pages(tmp_path: Path) -> None:
    """The first bytes of every page, and a page of noise: each is found."""
    taught(tmp_path / "loop", 40).close()
    whole = whole_log(tmp_path / "loop")
    pages = len(whole) // 4096
    assert pages > 8
    noise = np.random.default_rng(0).bytes(4096)
    for page in range(1, pages):
        start = page * 4096
        for damaged in (noise, bytes(4096), b"\xff" * 12 + whole[start + 12 : start + 4096]):
            (tmp_path / "loop" / "log.db").write_bytes(whole[:start] + damaged + whole[start + 4096 :])
            assert _found(tmp_path / "loop"), page


def _rows(folder: Path) -> list[Any]:
    with closing(sqlite3.connect(f"file:{folder / 'log.db'}?immutable=1", uri=True)) as db:
        return [
            db.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall() for table in ("event", "forgotten", "secret")
        ]


@pytest.mark.slow
def test_every_bit_of_the_log_counts(tmp_path: Path) -> None:
    """Wherever a bit flips: it is refused, or found, or it says nothing."""
    taught(tmp_path / "loop", 8, shrink=2.0).close()
    whole = whole_log(tmp_path / "loop")
    right = _rows(tmp_path / "loop")
    found, places = 0, range(100, len(whole), 499 // (2 if FACTOR > 1 else 1))
    for place in places:
        (tmp_path / "loop" / "log.db").write_bytes(flipped(whole, place))
        if _found(tmp_path / "loop"):
            found += 1
        else:
            assert _rows(tmp_path / "loop") == right, place
        for file in (tmp_path / "loop").iterdir():
            if file.name != "log.db":
                file.unlink()
    assert 10 < found < len(places)


def test_damage_is_named(tmp_path: Path) -> None:
    taught(tmp_path / "loop", 3).close()
    whole = whole_log(tmp_path / "loop")
    assert whole.count(b'"shown":[') == 3
    (tmp_path / "loop" / "log.db").write_bytes(whole.replace(b'"shown":[', b'"shown":}'))
    with pytest.raises(ValueError, match=r"log\.db: event 14: .*damaged"):
        Loop.open(tmp_path / "loop")


def test_a_log_of_something_else(tmp_path: Path) -> None:
    from heedful.loop.log import Log

    (tmp_path / "loop").mkdir()
    Log(tmp_path / "loop" / "log.db", create=True).close()
    with pytest.raises(ValueError, match="does not begin with one"):
        Loop.open(tmp_path / "loop")


# ---------------------------------------------------------------------------- clocks


YEAR = 365 * 24 * 3600 * 1_000_000
CLOCKS: dict[str, Callable[[int], int]] = {
    "stands still": lambda n: 50 * YEAR,
    "backwards": lambda n: 50 * YEAR - n * YEAR // 3,
    "jumps": lambda n: (10, 60, 56, 56, 1, 90)[n % 6] * YEAR + n % 2,
    "before 1970": lambda n: -n * YEAR,
}


@pytest.mark.parametrize("clock", CLOCKS.values(), ids=CLOCKS)
def test_clocks_do_not_order_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Any) -> None:
    ticks = iter(range(10_000))
    told: dict[str, int] = {}

    def now() -> int:
        return int(clock(next(ticks)))

    set_clock(monkeypatch, now)
    monkeypatch.setattr("heedful.loop.log.log.now", now)
    with small_loop(tmp_path / "loop", control=0.0, shrink=2.0) as loop:
        for n in range(10):
            d = loop.decide(id=f"d{n}", person=f"p{n % 2}")
            a = loop.feedback(d.id, id=f"e{n}", clicks=[d.shown[3]])
            assert a.status == "applied"
            assert a.learned
            assert a.seq == d.seq + 1
            times = [loop.projection.log.at(seq).time for seq in (d.seq, a.seq)]
            assert a.late == (times[1] - times[0] > 3600e6)
            told[f"e{n}"] = a.seq
        loop.undo("e3")
        whole = bits(loop)
        assert [e.seq for e in loop.projection.log.events()] == list(range(1, 12 + 1 + 20 + 2))
        assert whole == bits_from_scratch(loop)
        assert loop.forget("p1").events == 11
        assert [e.seq for e, _, _ in loop.projection.lessons()] == [told[f"e{n}"] for n in range(0, 10, 2)]
    with Loop.open(tmp_path / "loop") as loop:
        assert loop.verify() == []
        assert loop.projection.model.shared.t == 5


def test_the_clock_says_nothing_to_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for name, clock in CLOCKS.items():
        ticks = iter(range(10_000))
        set_clock(monkeypatch, lambda ticks=ticks, clock=clock: clock(next(ticks)))
        with taught(tmp_path / name, shrink=2.0) as loop:
            found.append(bits(loop))
    assert all(each == found[0] for each in found)


# ---------------------------------------------------------------------------- learners that raise

OWN = """
    from typing import Any, NamedTuple
    from heedful.learners.coactive.perceptron import PreferencePerceptron

    INTERRUPTED = []

    class Touchy(NamedTuple):
        n_features: int
        space: Any

        def _as(self): return PreferencePerceptron(self.n_features, self.space)
        def init(self, rng): return self._as().init(rng)
        def propose(self, state, x, rng): return self._as().propose(state, x, rng)
        def weights(self, state): return self._as().weights(state)
        def update(self, state, x, y, feedback):
            if state.w.max() > 50.0:
                raise OverflowError("what is this?")
            if INTERRUPTED and feedback[0] == 4:
                raise KeyboardInterrupt(INTERRUPTED.pop())
            state = self._as().update(state, x, y, feedback)
            if len(feedback) and feedback[0] in (3, 5):  # half-way: the state was changed already
                state.w[:] += 100.0
                raise ZeroDivisionError("cannot take it")
            return state
"""


def touchy(folder: Path) -> str:
    """A learner that raises, in a file of its own."""
    (folder / "own.py").write_text(textwrap.dedent(OWN))
    return f"{folder / 'own.py'}:Touchy"


@pytest.mark.parametrize("shrink", [0.0, 2.0])
def test_a_learner_that_raises(tmp_path: Path, shrink: float) -> None:
    spec = touchy(tmp_path)
    told = [1, 2, 3, 4, 5, 6, 7]
    with small_loop(tmp_path / "without", spec, control=0.0, shrink=shrink) as loop:
        loop.record([f"i{n}" for n in range(12)], ["i0"], id="d", person="p")
        for n in told:
            if n not in (3, 5):
                loop.feedback("d", id=f"e{n}", better=[f"i{n}"])
        without = bits(loop)
    with small_loop(tmp_path / "loop", spec, control=0.0, shrink=shrink, snapshot_every=2) as loop:
        loop.record([f"i{n}" for n in range(12)], ["i0"], id="d", person="p")
        for n in told:
            a = loop.feedback("d", id=f"e{n}", better=[f"i{n}"])
            assert a.status == "applied"
            assert a.learned == (n not in (3, 5))
            if n in (3, 5):
                assert "ZeroDivisionError: cannot take it" in a.reason
                assert "learned nothing" in a.reason
                assert any(f"e{n}" in note and "cannot take it" in note for note in loop.notes)
            assert loop.projection.log.find("feedback", f"e{n}").seq == a.seq
        assert loop.feedback("d", id="e3", better=["i3"]).status == "duplicate"
        assert len([note for note in loop.notes if "cannot take it" in note]) == 2
        assert bits(loop) == without == bits_from_scratch(loop)
        assert loop.verify() == []
        assert loop.undo("e3").status == "applied"
        assert bits(loop) == without
    for snapshot in [*(tmp_path / "loop").glob("snapshot-*"), None]:
        with Loop.open(tmp_path / "loop", learner=spec) as loop:
            assert bits(loop) == without == bits_from_scratch(loop)
            assert loop.verify() == []
        if snapshot is not None:
            snapshot.unlink(missing_ok=True)


def test_no_snapshot_leaves_out_a_lesson(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start from one would neither say that it is missing nor try it again."""
    spec = touchy(tmp_path)
    with small_loop(tmp_path / "loop", spec, control=0.0, snapshot_every=2) as loop:
        loop.record([f"i{n}" for n in range(12)], ["i0"], id="d", person="p")
        for n in (1, 3, 4, 6, 7, 8):
            loop.feedback("d", id=f"e{n}", better=[f"i{n}"])
        with pytest.raises(ValueError, match="the learner failed on feedback e3: undo it, or mend the learner"):
            loop.snapshot()
        assert any("no snapshot was kept (the learner failed on feedback e3" in note for note in loop.notes)
        told = {lesson.event: lesson.learned for lesson in loop.lessons()}
        before = loop.why("d").lead
    for _ in range(2):
        with Loop.open(tmp_path / "loop", learner=spec) as loop:
            assert any("e3" in note and "cannot take it" in note for note in loop.notes)
            assert {lesson.event: lesson.learned for lesson in loop.lessons()} == told
            assert not told["e3"]
            assert loop.why("d").lead == before
    with Loop.open(tmp_path / "loop", learner=spec) as loop:
        loop.undo("e3")
        assert loop.snapshot().is_file()
    # Whoever mends the learner has all the lessons.
    with Loop.open(tmp_path / "loop", learner=spec) as loop:
        assert not loop.feedback("d", id="e5", better=["i5"]).learned
        learner: Any = type(loop.learner)
    monkeypatch.setattr(learner, "update", lambda self, *told: self._as().update(*told))
    with Loop.open(tmp_path / "loop", learner=spec) as loop:
        assert {lesson.event: lesson.learned for lesson in loop.lessons()}["e5"]
        assert bits(loop) == bits_from_scratch(loop)


def test_items_are_put_all_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many they are: a disk that is full half-way keeps none of them."""
    with small_loop(tmp_path / "loop") as loop:
        commit, times = loop.projection._commit, [0]

        def fails(*told: Any) -> Any:
            times[0] += 1
            if times[0] == 2:
                raise OSError(errno.ENOSPC, "the disk is full")
            return commit(*told)

        monkeypatch.setattr(loop.projection._group, "_commit", fails)
        assert loop.put_items([{"id": f"new{j}"} for j in range(6000)]).put == 6000
        assert len(loop.items) == 6012
        assert times[0] == 1


def test_who_reads_after_an_interruption_does_not_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For somebody whose lesson was begun: what is in the log is folded by whoever reads first."""
    from heedful.loop.interactions.coactive.model import Model

    with small_loop(tmp_path / "loop", control=0.0, shrink=2.0) as loop:
        d = loop.decide(id="d", person="p")
        teach, left = Model.teach, [3]

        def interrupted(self: Model, *told: Any) -> bool:
            left[0] -= 1
            if not left[0]:
                raise KeyboardInterrupt
            return teach(self, *told)

        monkeypatch.setattr(Model, "teach", interrupted)
        with pytest.raises(KeyboardInterrupt):
            loop.feedback_many([{"decision": "d", "id": f"e{n}", "clicks": [d.shown[n]]} for n in range(1, 6)])
        reader = threading.Thread(target=loop.decide, kwargs={"id": "next", "person": "p"}, daemon=True)
        reader.start()
        reader.join(20)
        assert not reader.is_alive()
        assert bits(loop) == bits_from_scratch(loop)
        assert loop.projection.model.people["p"].lessons == 5


@contextmanager
def touchy_twice(tmp_path: Path) -> Iterator[tuple[Loop, Loop]]:
    """One loop, open twice, with a decision that feedback can be about."""
    spec = touchy(tmp_path)
    with (
        small_loop(tmp_path / "loop", spec, control=0.0) as one,
        Loop.open(tmp_path / "loop", learner=spec) as two,
    ):
        one.record([f"i{n}" for n in range(12)], ["i0"], id="d")
        yield one, two


def test_a_learner_that_raises_for_another_process(tmp_path: Path) -> None:
    with touchy_twice(tmp_path) as (one, two):
        for n in range(1, 8):
            one.feedback("d", id=f"e{n}", better=[f"i{n}"])
        assert two.feedback("d", id="e9", better=["i9"]).learned
        one.projection.catch_up()
        assert bits(one) == bits(two) == bits_from_scratch(two)
        assert one.projection.model.shared.t == 6


def test_items_that_came_after_what_another_process_could_not_learn(tmp_path: Path) -> None:
    with touchy_twice(tmp_path) as (one, two):
        assert two.items == one.items  # it has looked what is on offer
        assert not one.feedback("d", id="e3", better=["i3"]).learned
        one.put_items([{"id": "new"}])
        one.withdraw("i5")
        two.projection.catch_up()
        assert two.items == one.items
        assert two.decide(["new"]).shown == ("new",)


def test_items_that_another_process_puts_while_this_one_folds_anew(tmp_path: Path) -> None:
    """Between a commit and the fold anew that it asks for, as an undo does: the fold has what came in between."""
    with taught(tmp_path / "loop", 2) as one, Loop.open(tmp_path / "loop") as two:
        learn = one.projection._learn

        def late(*told: Any) -> None:
            one.projection._learn = learn  # type: ignore[method-assign]
            two.put_items([{"id": "new"}])
            two.withdraw("i5")
            two.forget("p1")
            learn(*told)

        one.projection._learn = late  # type: ignore[method-assign]
        assert one.undo("e0").status == "applied"
        assert one.items == two.items
        assert one.decide(["new"]).shown == ("new",)
        answer = one.feedback("d1", better=["i3"])
        assert (answer.status, answer.reason) == ("rejected", "decision d1 was forgotten")
        assert one.projection.log.is_forgotten("decision", "d1")
        assert one.verify() == two.verify() == []


def test_an_interruption_while_it_is_learned(tmp_path: Path) -> None:
    """Ctrl-C between the commit and the answer: the event is there, so it is learned, now and after closing."""
    spec = touchy(tmp_path)
    for shrink in (0.0, 2.0):
        path = tmp_path / f"loop{shrink}"
        with small_loop(path, spec, control=0.0, shrink=shrink) as loop:
            loop.record([f"i{n}" for n in range(12)], ["i0"], id="d", person="p")
            loop.feedback("d", id="e1", better=["i1"])
            sys.modules[type(loop.learner).__module__].INTERRUPTED.append(True)
            events = [{"decision": "d", "id": f"e{n}", "better": [f"i{n}"]} for n in (2, 4, 6)]
            with pytest.raises(KeyboardInterrupt):
                loop.feedback_many(events)
            assert {a.status for a in loop.feedback_many(events)} == {"duplicate"}
            assert loop.projection.reading("p")[0].shared.t == 4
            assert loop.projection.model.shared.t == 4
            whole = bits(loop)
            assert whole == bits_from_scratch(loop)
        with Loop.open(path, learner=spec) as loop:
            assert bits(loop) == whole


def test_a_failure_does_not_spread_in_its_group(tmp_path: Path) -> None:
    """What a half-learned lesson did to the state is not held against those that came with it."""
    spec = touchy(tmp_path)
    with small_loop(tmp_path / "loop", spec, control=0.0) as loop:
        loop.record([f"i{n}" for n in range(12)], ["i0"], id="d")
        answers = loop.feedback_many({"decision": "d", "id": f"e{n}", "better": [f"i{n}"]} for n in (1, 3, 4, 6))
        assert [(a.status, a.learned) for a in answers] == [("applied", n != 3) for n in (1, 3, 4, 6)]
        whole = bits(loop)
        assert loop.projection.model.shared.t == 3
    with Loop.open(tmp_path / "loop", learner=spec) as loop:
        assert bits(loop) == whole == bits_from_scratch(loop)


# ---------------------------------------------------------------------------- folders, closing


def test_a_folder_that_is_read_only(nobody: Path) -> None:
    taught(nobody / "loop", 3).close()
    before = {file.name: file.read_bytes() for file in (nobody / "loop").iterdir()}
    os.chmod(nobody / "loop", 0o500)
    with (
        pytest.raises(OSError, match=r"log\.db"),
        closing(Loop.open(nobody / "loop").projection.log) as log,
        log.writing(),
    ):
        log.append([])  # to read may be allowed; to write is refused
    with pytest.raises(OSError, match="other"):
        small_loop(nobody / "loop" / "other")
    assert {file.name: file.read_bytes() for file in (nobody / "loop").iterdir()} == before
    os.chmod(nobody / "loop", 0o700)
    with Loop.open(nobody / "loop") as loop:
        assert loop.decide(id="new").seq > 0
        assert loop.verify() == []


# ---------------------------------------------------------------------------- a part of the log is removed


def remove(path: Path) -> None:
    path.unlink()


def replace(path: Path) -> None:
    path.unlink()
    path.write_bytes(b"")


def events_in(path: Path) -> list[tuple[int, str, str]]:
    """What a database file holds, read without heedful."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as there:
        return there.execute("SELECT seq, kind, id FROM event ORDER BY seq").fetchall()


def put_in_place(told: str) -> None:
    """Do what a message says: the command at its end, as a shell would."""
    removing, moving = [shlex.split(command) for command in told[told.index("rm -f") :].split(" && ")]
    assert (removing[:2], moving[:1]) == (["rm", "-f"], ["mv"])
    for path in removing[2:]:
        Path(path).unlink(missing_ok=True)
    os.replace(*moving[1:])


@pytest.mark.parametrize("change", [remove, replace])
@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_a_write_ahead_file_that_is_removed(tmp_path: Path, suffix: str, change: Callable[[Path], None]) -> None:
    """Nothing more is acknowledged, and what was is kept in a file, whatever becomes of this process."""
    path = tmp_path / "loop" / "log.db"
    loop = taught(tmp_path / "loop", 3)
    written = [(each.seq, each.kind, each.id) for each in loop.projection.log.events()]
    change(Path(f"{path}{suffix}"))
    for act in (lambda: loop.decide(id="late"), lambda: loop.feedback("d0", id="late", clicks=["i3"])):
        with pytest.raises(Moved, match=rf"log\.db{suffix} was removed or replaced .* nothing was written") as refused:
            act()
    kept = Path(f"{path}-kept")
    assert events_in(kept) == written
    assert kept.stat().st_mode & 0o777 == 0o600
    with pytest.raises(Damaged, match=r"log\.db-kept"):
        Loop.open(tmp_path / "loop")  # nobody goes on without them
    with pytest.raises(Moved):
        loop.close()
    put_in_place(str(refused.value))
    with Loop.open(tmp_path / "loop") as again:
        assert [(each.seq, each.kind, each.id) for each in again.projection.log.events()] == written
        assert again.decide(id="late").seq == len(written) + 1
        assert again.verify() == []


def test_a_write_ahead_file_that_is_removed_during_a_commit(tmp_path: Path) -> None:
    loop = taught(tmp_path / "loop", 1)
    log, path = loop.projection.log, tmp_path / "loop" / "log.db"
    written = [each.id for each in log.events()]

    def commit() -> None:
        with log.writing():
            seq = log.head() + 1
            log.append([Event(seq, "decision", "late", 1_000_000, None, None, seq, "{}")])
            Path(f"{path}-wal").unlink()

    with pytest.raises(Moved, match="nothing was written"):
        commit()
    assert [id for _, _, id in events_in(Path(f"{path}-kept"))] == written


def test_a_write_ahead_file_that_is_removed_before_closing(tmp_path: Path) -> None:
    loop = taught(tmp_path / "loop", 2)
    written = [each.id for each in loop.projection.log.events()]
    Path(f"{tmp_path / 'loop' / 'log.db'}-wal").unlink()
    loop.projection.log.close()
    assert [id for _, _, id in events_in(tmp_path / "loop" / "log.db-kept")] == written
    with pytest.raises(Damaged, match=r"rm -f .*log\.db-wal .*mv .*log\.db-kept .*log\.db"):
        Loop.open(tmp_path / "loop")


def test_where_nothing_can_be_kept_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = taught(tmp_path / "loop", 1)
    Path(f"{tmp_path / 'loop' / 'log.db'}-wal").unlink()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "the disk is full")))
    for _ in range(2):
        with pytest.raises(Moved, match=r"could not be kept, .*the disk is full"):
            loop.decide()
    assert {each.name for each in (tmp_path / "loop").iterdir()} <= {"log.db", "log.db-shm", "log.db-wal"}


def test_a_log_that_is_removed_does_not_come_back(tmp_path: Path) -> None:
    loop = taught(tmp_path / "loop", 1)
    for suffix in ("", "-wal", "-shm"):
        Path(f"{tmp_path / 'loop' / 'log.db'}{suffix}").unlink()
    with pytest.raises(Moved, match="removed or replaced"):
        loop.decide()
    loop.projection.log.close()
    assert not list((tmp_path / "loop").iterdir())


def test_nothing_works_after_closing(tmp_path: Path) -> None:
    loop = taught(tmp_path / "loop", 2)
    loop.close()
    loop.close()  # as files allow
    for act in acts_of(loop):
        with pytest.raises((ValueError, OSError, RuntimeError), match="closed"):
            act()
    with Loop.open(tmp_path / "loop") as again:
        assert again.projection.model.shared.t == 2
        assert again.verify() == []


def test_a_loop_that_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LogFile, "append", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
    with pytest.raises(OSError, match="full"):
        small_loop(tmp_path / "loop")
    assert not list(tmp_path.iterdir())
