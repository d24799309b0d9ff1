"""kill -9 at any moment: what was acknowledged is there, once; the model is the fold; forgetting is finished."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from budget import FACTOR
from heedful import Loop
from loops import bits, bits_from_scratch, choice_loop, rating_loop, sides, small_loop
from processes import check_log

KILLS = 50 if FACTOR > 1 else 6

# ---------------------------------------------------------------------------- a child that works until it is killed

THREADS = 16
REPEATED = 0.2

WORKER = """
import os, random, sys, threading
sys.path.insert(0, sys.argv[1])
from heedful import Loop

path, out, run, tried = sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5] == "tried"
loop = Loop.open(path)
sent = []  # (event id, decision, form) of every thread, sent or just being sent

def tell(*parts):
    os.write(out, (" ".join(map(str, parts)) + "\\n").encode())  # one write: all of the line or nothing

def work(i):
    rng = random.Random(f"{run}-{i}")
    n = 0
    while True:
        n += 1
        if sent and rng.random() < REPEATED:
            id, decision, form = rng.choice(sent[-200:])
        else:
            again = "ratings" in loop.facts or None
            d = loop.decide(id=f"d-{run}-{i}-{n}", person=f"p{rng.randrange(4)}", repeats=again)
            tell("decision", d.id, "decided", d.seq)
            one = d.shown[1 if "choices" in loop.facts else 3]
            form = {"rating": {one: 1 + n % 5}} if "ratings" in loop.facts else {"clicks": [one]}
            id, decision = f"e-{run}-{i}-{n}", d.id
            sent.append((id, decision, form))
        a = loop.feedback(decision, id=id, **form)
        tell("feedback", id, a.status, a.seq)
        if rng.random() < (0.2 if "choices" in loop.facts else 0.03):
            u = loop.undo(id)
            tell("undo", u.event, u.status, u.seq, id)
        if rng.random() < 0.01:
            loop.snapshot()
        if tried and rng.random() < 0.05:
            try_another(rng, f"{run}-{i}-{n}")

def try_another(rng, id):
    "Begin an experiment or, where one runs, end it or promote its candidate."
    what = "experiment" if loop.projection.experiment is None else rng.choice(["stop", "promote"])
    try:
        if what == "experiment":
            other = ({"perceptron", "posterior:swap=0"} - {loop.manifest.learner}).pop()
            a = loop.start_experiment(other, share=0.5, frozen=rng.random() < 0.3, id=id)
        else:
            a = loop.stop_experiment(id=id) if what == "stop" else loop.promote(force=True, id=id).answer
        tell(what, id, a.status, a.seq)
    except (LookupError, ValueError):  # another thread was quicker
        pass

for i in range(THREADS):
    threading.Thread(target=work, args=(i,), daemon=True).start()
threading.Event().wait()
""".replace("REPEATED", str(REPEATED)).replace("THREADS", str(THREADS))


def killed(path: Path, run: int, what: str, lines: int) -> list[list[str]]:
    """The lines that a worker wrote before it was killed: as soon as it had written a number drawn up to `lines`."""
    rng = random.Random(run)
    read, write = os.pipe()
    command = [sys.executable, "-c", WORKER, str(Path(__file__).parents[1]), str(path), str(write), str(run), what]
    with subprocess.Popen(command, pass_fds=[write], start_new_session=True) as child:
        os.close(write)
        with os.fdopen(read, "rb") as out:
            if run % 8:
                whole = b"".join(out.readline() for _ in range(rng.randint(1, lines)))
            else:  # while it starts
                whole = b""
                time.sleep(rng.uniform(0.0, 0.6))
            os.kill(child.pid, signal.SIGKILL)
            whole += out.read()
        assert child.wait() == -signal.SIGKILL, "the worker ended by itself"
    assert whole == b"" or whole.endswith(b"\n")
    return [line.split() for line in whole.decode().splitlines()]


class Acknowledged:
    """What the workers were told, all of them together."""

    def __init__(self) -> None:
        self.seq: dict[tuple[str, str], int] = {}
        self.undone: set[str] = set()
        self.statuses: Counter[str] = Counter()

    def take(self, lines: list[list[str]]) -> None:
        for kind, id, status, seq, *rest in lines:
            self.statuses[f"{kind} {status}"] += 1
            assert status in ("applied", "duplicate", "decided")
            assert self.seq.setdefault((kind, id), int(seq)) == int(seq), "one event, two places"
            self.undone.update(rest)


def check(path: Path, told: Acknowledged) -> None:
    counts, events = check_log(path, told.seq, told.undone)
    with Loop.open(path) as loop:
        assert not [note for note in loop.notes if "damaged" in note]
        model = loop.projection.model
        learned = model.shared.learned if loop.facts else model.shared
        assert learned.t == len(counts), "counted twice, or not"
        assert sum(person.lessons for person in model.people.values()) == learned.t
        assert {event.id for event, _, _ in loop.projection.lessons()} == counts
        assert bits(loop) == bits_from_scratch(loop)
        said = [each for each in events if each[0] in ("experiment", "stop", "promote")]
        assert loop.projection.experiment is None or said[-1] == ("experiment", loop.projection.experiment[0].id)
        assert (loop.projection.experiment is not None) == (said != [] and said[-1][0] == "experiment")
        assert (loop.projection.published.running is None) == (loop.projection.experiment is None)
        assert sides(loop) == sides(loop, from_scratch=True)
        assert [made.id for made in loop.promotions()] == [id for kind, id in reversed(said) if kind == "promote"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["coactive", "tried", "ratings", "choices"])
def test_killed_again_and_again(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "loop"
    if kind in ("coactive", "tried"):
        small_loop(path, shrink=5.0, snapshot_every=100, control=0.1, n_items=8).close()
    elif kind == "choices":
        choice_loop(path, "gp", snapshot_every=100, control=0.1).close()
    else:
        rating_loop(path, "item-mean", snapshot_every=100, control=0.1, n_items=8, k=8).close()
    told = Acknowledged()
    # A lesson of choices takes milliseconds, and undoing one a few dozen, as does a promotion.
    least = {"choices": 4, "tried": 10}.get(kind, 40)
    lines = 2 * THREADS + 8 * least  # the first of each thread is a decision, then nearly half are feedback

    def worth_while() -> bool:
        """All that can happen did."""
        n = told.statuses
        return (
            n["feedback applied"] > least * KILLS
            and n["feedback duplicate"] > 0.05 * n["feedback applied"]
            and n["undo applied"] > (KILLS / 2 if least == 40 else 0)
            and len(list(path.glob("snapshot-*.safetensors"))) > 1
            and (kind != "tried" or min(n[f"{what} applied"] for what in ("experiment", "stop", "promote")) > 0)
        )

    for run in range(8 * KILLS):
        if run >= KILLS and worth_while():
            break
        told.take(killed(path, run, kind, lines))
        check(path, told)
    assert worth_while(), (told.statuses, len(list(path.glob("snapshot-*.safetensors"))))


# ---------------------------------------------------------------------------- killed at every step of one act

PERSON = "ann-marker"
MARKERS = (PERSON, "marker-decision", "marker-event", "marker-context", "marker-undo")

# A process that forks: copy n does one thing and dies just before its step number n, until one does all of it. Steps
# are the statements of the writer, and what changes the folder. The last folder is for a rehearsal.
STEPS = """
import json, os, pathlib, sys
sys.path.insert(0, sys.argv[1])
from heedful import Loop
from heedful.loop.log.reader import LogReader

LogReader.unseen_since = lambda *_: ["ann-marker", "zoe"]
act, die_at, folders = sys.argv[2], None, json.loads(sys.argv[3])
step = 0

def stepped(f, half=None):
    def do(*args, **kwargs):
        global step
        step += 1
        if step - 1 == die_at:
            if half:
                half(*args)
            os._exit(9)
        return f(*args, **kwargs)
    return do

class Stepped:
    def __init__(self, connection):
        self._connection = connection
    def __getattr__(self, name):
        found = getattr(self._connection, name)
        return stepped(found) if name in ("execute", "executemany") else found

class Slow:
    "A file of which half was written."
    def __init__(self, file):
        self.file = file
    def __enter__(self):
        return self
    def __exit__(self, *_):
        self.file.close()
    def __getattr__(self, name):
        return getattr(self.file, name)
    def write(self, content):
        def half(content):
            self.file.write(content[: len(content) // 2])
            self.file.flush()
        return stepped(self.file.write, half)(content)

def do(loop):
    if act == "forget":
        loop.forget("ann-marker")
    elif act == "unseen":
        loop.forget_unseen(1.0)
    else:
        loop.snapshot()

with Loop.open(folders.pop()) as loop:  # imports what all the copies need
    do(loop)
for n, folder in enumerate(folders):
    pid = os.fork()
    if pid == 0:
        die_at = n
        loop = Loop.open(folder)
        loop.projection.log.store._writer = Stepped(loop.projection.log.store._writer)
        pathlib.Path.unlink = stepped(pathlib.Path.unlink)
        os.replace, os.fsync = stepped(os.replace), stepped(os.fsync)
        opened = os.fdopen
        os.fdopen = lambda *args, **kwargs: Slow(opened(*args, **kwargs))
        do(loop)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print(code, flush=True)
    if code == 0:
        break
"""


def _with_a_person(path: Path) -> dict[str, bytes]:
    """A loop that PERSON taught, with snapshots; the model as it would be without her."""
    with small_loop(path, shrink=2.0, control=0.0, snapshot_every=2) as loop:
        for n in range(4):
            mine = loop.record(["i1", "i2", "i3"], ["i1", "i2"], id=f"other-{n}", person="bob")
            loop.feedback(mine.id, id=f"e-other-{n}", clicks=["i2"])
        without = bits(loop)
        d = loop.record(
            ["i1", "i2", "i3"], ["i1", "i2"], id="marker-decision", person=PERSON, context={"said": "marker-context"}
        )
        for n in range(3):
            loop.feedback(d.id, id=f"marker-event-{n}", clicks=["i2"])
        loop.undo("marker-event-1", id="marker-undo")
        assert loop.snapshot().is_file()
        assert len(list(path.glob("snapshot-*"))) > 1
    return without


def _steps(act: str, folders: list[Path]) -> list[int]:
    command = [sys.executable, "-c", STEPS, str(Path(__file__).parents[1]), act, json.dumps([str(f) for f in folders])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return [int(line) for line in done.stdout.split()]


def _copies(folder: Path, n: int) -> list[Path]:
    copies = []
    for i in range(n):
        copies.append(folder.with_name(f"{folder.name}-{i}"))
        copies[-1].mkdir(mode=0o700)
        for file in folder.iterdir():
            (copies[-1] / file.name).write_bytes(file.read_bytes())
    return copies


def traces(folder: Path) -> list[tuple[str, str]]:
    return [
        (file.name, marker)
        for file in folder.rglob("*")
        for marker in MARKERS
        if marker in file.name or (file.is_file() and marker.encode() in file.read_bytes())
    ]


@pytest.mark.slow
@pytest.mark.parametrize("act", ["forget", "unseen"])
def test_killed_at_every_step_of_forgetting(tmp_path: Path, act: str) -> None:
    without = _with_a_person(tmp_path / "loop")
    assert {marker for _, marker in traces(tmp_path / "loop")} == set(MARKERS)
    folders = _copies(tmp_path / "loop", 90)
    *killed, last = _steps(act, folders)
    assert (set(killed), last) == ({9}, 0)
    steps = len(killed)
    assert steps > 25, "too few steps to be all of them"
    stages = set()
    for folder in folders[: steps + 1]:
        with closing(sqlite3.connect(f"file:{folder / 'log.db'}?mode=ro", uri=True)) as db:
            kinds = {row[0] for row in db.execute("SELECT kind FROM event")}
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        stage = "erased" if "erased" in kinds else "forgotten" if "forget" in kinds else "before"
        stages.add(stage)
        with Loop.open(folder) as loop:
            assert loop.verify() == []
            if stage == "before":  # nothing of it happened: she is there, whole
                assert PERSON in loop.projection.model.people
                assert loop.projection.log.counts()["feedback"] == 7
                loop.forget(PERSON)
            assert bits(loop) == without == bits_from_scratch(loop)
            assert loop.projection.log.counts()["erased"] == 1
            assert loop.feedback("marker-decision", id="late", clicks=["i2"]).reason.endswith("was forgotten")
            assert traces(folder) == []
        assert traces(folder) == []
    assert stages == {"before", "forgotten", "erased"}


@pytest.mark.slow
def test_killed_at_every_step_of_a_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "loop"
    _with_a_person(path)
    with Loop.open(path) as loop:
        whole = bits(loop)
    for snapshot in list(path.glob("snapshot-*")):
        snapshot.unlink()
    folders = _copies(path, 12)
    codes = _steps("snapshot", folders)
    assert set(codes) == {9, 0}
    assert codes.count(9) >= 3
    strays = 0
    for folder, code in zip(folders, codes):
        before = {file.name for file in folder.glob("snapshot-*")}
        strays += sum(not name.endswith(".safetensors") for name in before)
        assert code == 9 or before
        with Loop.open(folder) as loop:
            assert loop.notes == []
            assert bits(loop) == whole == bits_from_scratch(loop)
            loop.snapshot()
        with Loop.open(folder) as loop:
            assert bits(loop) == whole
            loop.forget(PERSON)  # what the interrupted writing left has her in it
            assert traces(folder) == []
    assert strays >= 2, "no half of a snapshot was left: nothing was tested"


@pytest.mark.parametrize("cut", [0, 1, 100])
def test_a_write_ahead_file_that_ends_early(tmp_path: Path, cut: int) -> None:
    """As after a power cut: what was not finished is gone, and what was is there."""
    path = tmp_path / "loop"
    loop = small_loop(path, control=0.0)
    loop.decide(id="d")
    loop.feedback("d", id="e0", better=["i3"])
    before = (path / "log.db-wal").stat().st_size
    loop.feedback("d", id="e1", better=["i4"])
    after = (path / "log.db-wal").read_bytes()
    [copy] = _copies(path, 1)
    (copy / "log.db-wal").write_bytes(after[: before + cut])
    (copy / "log.db-shm").unlink()
    for snapshot in copy.glob("snapshot-*"):
        snapshot.unlink()
    loop.close()
    with Loop.open(copy) as loop:
        assert loop.projection.log.find("feedback", "e0") is not None
        assert loop.projection.log.find("feedback", "e1") is None
        assert loop.verify() == []
        assert loop.feedback("d", id="e1", better=["i4"]).status == "applied"
        assert loop.projection.model.shared.t == 2
