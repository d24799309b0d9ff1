"""Sealed segments: the model folded from them is the one folded from the log, bit for bit; damage is named."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import heedful.jit.cache
from budget import FACTOR
from heedful import Loop, Settings, infer
from heedful.loop import batch, segments, snapshots
from heedful.loop.interactions.columns import Encoded
from heedful.loop.log import Segment
from heedful.loop.replay import replay
from heedful.storage import Address
from kinds import KINDS, NAMES, Kind, each_kind, teach
from loops import rows, small_loop, specs

GRADES = ["ordinal-logistic:n_ranks=5", "prank:n_ranks=5"]
CORRECTIONS = ["perceptron", "posterior", "posterior:swap=0", "second-order"]
RATERS = specs("rating")


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments are read a few events at a time."""
    monkeypatch.setattr(segments, "BLOCK", 16)


@contextmanager
def interpreted() -> Iterator[list[int]]:
    """The kernels as they are, not compiled, which takes long; what is yielded has the number of examples of each
    call."""
    calls: list[int] = []

    def plain(f: Callable[..., Any], *args: Any) -> Callable[..., Any]:
        calls.append(len(args[3]))
        return f

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heedful.jit.cache, "kernel_for", plain)
        patch.setattr(heedful.jit.cache, "is_cached", lambda *args, kernel: True)
        patch.setattr(batch, "LEAST", 0)  # however few there are
        yield calls


def check(loop: Loop) -> None:
    """Fold the log with and without segments: the same model, and the same counts."""
    projection = loop.projection
    head = projection.log.last()[0]
    told = []
    for batched in (True, False):
        fold = replay(projection, head, projection.failed, batched=batched)
        told.append((fold.model, fold.moves, dict(fold.failed)))
    assert snapshots.same(told[0][0], told[1][0])
    assert told[0][1:] == told[1][1:]
    assert snapshots.same(told[0][0], projection.model)


def taught(path: Path, learner: str = "perceptron", rounds: int = 40, **how: Any) -> Loop:
    """A loop with some clicks, corrections and undos in its log."""
    loop = small_loop(path, learner, **{"control": 0.2} | how)
    for i in range(rounds):
        shown = loop.decide(person=f"p{i % 3}", id=f"d{i}").shown
        loop.feedback(f"d{i}", id=f"e{i}", **({"clicks": [shown[i % 4]]} if i % 3 else {"better": [shown[-1]]}))
    loop.undo("e3")
    return loop


# ---------------------------------------------------------------------------- the same model

_acts = st.lists(
    st.one_of(
        st.tuples(st.just("teach"), st.integers(0, 5), st.integers(0, 2)),
        st.tuples(st.just("teach"), st.integers(0, 5), st.integers(0, 2)),
        st.tuples(st.sampled_from(["undo", "forget", "rollback", "seal", "item", "snapshot"]), st.integers(0, 40)),
    ),
    min_size=5,
    max_size=40,
)


class Life:
    """A loop of corrections or grades, and what is done to it."""

    def __init__(self, path: Path, learner: str) -> None:
        self.graded = learner in GRADES
        self.loop = small_loop(path, learner, control=0.2)
        self.n = 0

    def teach(self, form: int, person: int) -> None:
        i, loop = self.n, self.loop
        self.n += 1
        prior = {name: (i + j) % 4 - 1.5 for j, name in enumerate(NAMES[:8])} if i % 3 == 0 else None
        features = [{"id": f"n{j}", **{f"f{c}": (i * j + c) % 7 / 3 for c in range(4)}} for j in range(5)]
        among: Any = features if i % 4 == 3 else NAMES[:8]
        if prior and i % 4 == 3:
            prior = None
        shown = loop.decide(among, person=f"p{person}", id=f"d{i}", prior=prior, show=4).shown
        told: dict[str, Any]
        if self.graded:
            told = {"grade": {shown[0]: 1 + form % 5, shown[-1]: 1 + i % 5}} if form else {"none": True}
        else:
            told = [
                {"clicks": [shown[i % 4]]},
                {"better": [shown[-1], shown[0]]},
                {"thumb": "up"},
                {"rating": {shown[0]: 1, shown[2]: i % 3}},
                {"clicks": []},
                {"edit": {"f0": 0.1 * i}, "item": shown[0]},
            ][form]
        loop.feedback({**told, "decision": f"d{i}", "id": f"e{i}"})

    def put(self, k: int) -> None:
        self.loop.put_items([{"id": NAMES[k % 12], **{f"f{c}": k / 7 + c for c in range(4)}}])

    def act(self, what: str, k: int, person: int = 0) -> None:
        loop = self.loop
        if what == "teach":
            self.teach(k, person)
        elif what == "undo":
            loop.undo(f"e{k}")
        elif what == "forget":
            loop.forget(f"p{k % 3}")
        elif what == "rollback":
            at = loop.projection.log.at(max(loop.version - k, 1))
            if at is not None and at.kind == "feedback":
                loop.rollback(at.seq)
        elif what == "item":
            self.put(k)
        elif what == "snapshot":
            loop.snapshot()
        else:
            loop.seal(1 + k)


class RatedLife(Life):
    """A loop of ratings of items that come and go, with two features each where the learner uses these, by people and
    by nobody in particular."""

    def __init__(self, path: Path, learner: str) -> None:
        kinds = dict.fromkeys(("f0", "f1"), "number")
        encoding = infer(rows(12, 2), identifier="id", kinds=kinds) if learner == "bmf" else None
        self.loop = Loop.create(
            path,
            encoding=encoding,
            items=[{"id": row["id"]} if encoding is None else row for row in rows(8, 2)],
            learner=learner,
            settings=Settings(ratings=(1, 5), k=3, control=0.2),
        )
        self.n = 0

    def teach(self, form: int, person: int) -> None:
        i, loop = self.n, self.loop
        self.n += 1
        shown = loop.decide(person=f"p{person}" if person else None, id=f"d{i}", repeats=True).shown
        told: list[dict[str, Any]] = [
            {"rating": {name: 1 + (i + j) % 5 for j, name in enumerate(shown[::-1])}},
            {"actions": {shown[0]: ["view", "buy"]} if shown else {}},
            {"rating": dict.fromkeys(shown[1:2], 5)},
        ]
        if shown:
            said = told[form % 3] if len(shown) > 1 or form % 3 < 2 else {"none": True}
            loop.feedback({**said, "decision": f"d{i}", "id": f"e{i}"})

    def put(self, k: int) -> None:
        name = NAMES[k % 12]
        if k % 3 and name in self.loop.items and len(self.loop.items) > 4:
            self.loop.withdraw(name)
        else:
            row = rows(12, 2, seed=k)[k % 12]
            self.loop.put_items([row if self.loop.manifest.encoding.names else {"id": name}])


@pytest.mark.slow
@pytest.mark.parametrize("learner", [*CORRECTIONS, *GRADES, *RATERS])
@settings(max_examples=12 * FACTOR)
@given(acts=_acts, size=st.integers(1, 30))
def test_any_life_folds_to_the_same_model_from_segments(learner: str, acts: list[Any], size: int) -> None:
    with tempfile.TemporaryDirectory() as folder, interpreted():
        life = (RatedLife if learner in RATERS else Life)(Path(folder) / "l", learner)
        with life.loop as loop:
            for act in acts:
                life.act(*act)
            loop.seal(size)
            check(loop)
            assert list(segments.problems(loop.projection)) == []
            assert not [note for note in loop.notes if "log is read instead" in note]


def test_what_is_learned_comes_from_columns(tmp_path: Path) -> None:
    with taught(tmp_path / "l") as loop, interpreted() as calls:
        head = loop.projection.log.last()[0]
        made = loop.seal(20)
        assert [each.first for each in made.segments] == list(range(1, head - 18, 20))
        assert made.left == head - made.segments[-1].last < 20
        assert sum(each.lessons for each in made.segments) > 25
        check(loop)
        assert sum(calls) > 25
        assert loop.seal(20).segments == ()  # nothing is left


@each_kind
def test_every_kind_can_be_sealed(kind: Kind, tmp_path: Path) -> None:
    with kind.make(tmp_path / "l") as loop, interpreted():
        teach(kind, loop, range(8))
        loop.forget("p1")
        teach(kind, loop, range(9, 12))
        made = loop.seal(7)
        assert sum(each.events for each in made.segments) + made.left == sum(loop.projection.log.counts().values())
        check(loop)
        assert list(segments.problems(loop.projection)) == []


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["perceptron", "posterior", "ordinal-logistic:n_ranks=5", *RATERS])
def test_compiled_it_is_the_same_model(learner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "LEAST", 0)
    named = "rating" if learner in RATERS else "ordinal" if "n_ranks" in learner else "coactive"
    kind = next(kind for kind in KINDS if kind.name == named)
    with kind.make(tmp_path / "l", learner, **({} if named == "rating" else {"shrink": 0.0})) as loop:
        teach(kind, loop, range(30))
        loop.undo("e4")
        assert sum(each.lessons for each in loop.seal(25).segments) > 10
        check(loop)
        assert loop.notes == []


def test_sealing_compiles_what_folds(tmp_path: Path) -> None:
    with taught(tmp_path / "l") as loop, interpreted() as calls:
        before = loop.projection.moves
        loop.seal(20)
        assert len(calls) == 1
        assert loop.projection.moves == before


def test_another_process_that_seals_in_between_makes_no_overlap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = segments._write
    with taught(tmp_path / "l") as loop, interpreted():

        def written(*args: Any) -> Any:
            monkeypatch.setattr(segments, "_write", write)
            loop.seal(15)
            return write(*args)

        monkeypatch.setattr(segments, "_write", written)
        with pytest.raises(TimeoutError, match="another process has sealed some of it"):
            loop.seal(40)
        check(loop)
        assert list(segments.problems(loop.projection)) == []


def test_a_loop_that_is_opened_again_is_the_same(tmp_path: Path) -> None:
    with taught(tmp_path / "l", "posterior") as loop, interpreted():
        loop.seal(20)
        model = loop.projection.model
        for path in (tmp_path / "l").glob("snapshot-*"):
            path.unlink()
        with Loop.open(tmp_path / "l") as again:
            assert snapshots.same(again.projection.model, model)


def test_features_keep_every_bit() -> None:
    """Each candidate once, as float32 if it fits; -0.0 is not 0.0, neither as a feature nor as the caller's score."""

    def columns(*xs: list[list[float]]) -> tuple[list[Any], ...]:
        found = [Encoded(np.array(x), np.arange(len(x)), np.arange(len(x))) for x in xs]
        known = np.zeros((0, len(xs[0][0]) - 1))
        [_, narrow, wide, rows, scores, *_], _ = segments._example_columns(pa, [None, *found], (), known)
        return tuple([part.to_pylist() for part in (narrow, wide, rows, scores)])

    a, b = [0.5, 2.0, 0.0], [1.0, 3.0, 0.0]
    assert columns([a, b], [b, [4.0, 5.0, 1.5]]) == (
        [[], [0.5, 2.0, 1.0, 3.0], [4.0, 5.0]], [[], [], []], [[], [0, 1], [1, 2]], [[], [], [0.0, 1.5]]
    )  # fmt: skip
    assert columns([a, [0.1, 2.0, 0.0]])[:2] == ([[], []], [[], [0.5, 2.0, 0.1, 2.0]])
    zeros = columns([[0.0, 1.0, -0.0]], [[-0.0, 1.0, 0.0]])
    assert np.signbit(zeros[0][1]).tolist() == [False, False]
    assert np.signbit(zeros[0][2]).tolist() == [True, False]
    assert np.signbit(zeros[3][1]).tolist() == [True]
    assert zeros[3][2] == []


def test_blocks_with_many_candidates_are_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "NUMBERS", 100)
    monkeypatch.setattr(batch, "NUMBERS", 100)
    monkeypatch.setattr(segments, "BLOCK", 1000)
    with taught(tmp_path / "l") as loop, interpreted():
        loop.seal(80)
        file = pq.ParquetFile(first_file(loop))
        anew = [file.read_row_group(block)["anew"][0].as_py() for block in range(file.num_row_groups)]
        assert len(anew) > 5
        assert anew[0]
        check(loop)


def test_columns_of_another_learner_are_not_used(tmp_path: Path) -> None:
    with taught(tmp_path / "l") as loop, interpreted() as calls:
        loop.seal(20)
        assert loop.promote("posterior:swap=0", force=True).answer.status == "applied"
        check(loop)
        assert any("sealed for another learner" in note for note in loop.notes)
        assert loop.seal(20).segments  # written again, for the learner that serves
        check(loop)
        assert sum(calls) > 25


# ---------------------------------------------------------------------------- what is wrong is named


def first_file(loop: Loop) -> Path:
    return segments.segment_path(Path(loop.path), 1)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("how", ["flip", "cut", "remove", "link"])
def test_a_damaged_segment_is_named_and_the_log_is_read_instead(how: str, tmp_path: Path) -> None:
    with taught(tmp_path / "l") as loop, interpreted():
        loop.seal(20)
        path = first_file(loop)
        if how == "flip":
            flip(path)
        elif how == "cut":
            path.write_bytes(path.read_bytes()[:-10])
        else:
            path.rename(tmp_path / "aside")
            if how == "link":
                path.symlink_to(tmp_path / "aside")
        [(name, told)] = segments.problems(loop.projection)
        assert name == path.name
        assert told
        check(loop)
        assert any(path.name in note and "log is read instead" in note for note in loop.notes)
        if how != "link":
            assert [each.first for each in loop.seal(20).segments] == [1]
            assert list(segments.problems(loop.projection)) == []


def test_a_file_that_is_not_listed_is_named_and_not_used(tmp_path: Path) -> None:
    with taught(tmp_path / "l") as loop:
        segments.segment_path(tmp_path / "l", 1).write_bytes(b"x")
        assert list(segments.problems(loop.projection)) == [(first_file(loop).name, "the log does not list it")]
        check(loop)


@pytest.mark.parametrize("column", ["rows", "shown", "answer"])
def test_columns_that_make_no_sense_are_not_compiled(column: str, tmp_path: Path) -> None:
    """A folder may come from somebody else, and compiled code checks no index."""
    with taught(tmp_path / "l") as loop, interpreted():
        [made] = loop.seal(80).segments
        path = first_file(loop)
        table = pq.read_table(path)
        wrong = [[10**6 for _ in row] for row in table[column].to_pylist()]
        at = table.column_names.index(column)
        changed = table.set_column(at, table.schema.field(at), pa.array(wrong, table.schema.field(at).type))
        pq.write_table(changed, path)
        with loop.projection.log.writing():
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            loop.projection.log.list_segment(Segment(made.first, made.last, made.events, made.lessons, digest))
        check(loop)
        assert any("its columns make no sense" in note for note in loop.notes)


def test_events_that_differ_from_the_log_are_found(tmp_path: Path) -> None:
    with taught(tmp_path / "l") as loop, interpreted():
        [made] = loop.seal(80).segments
        path = first_file(loop)
        table = pq.read_table(path)
        pq.write_table(table.set_column(3, "time", pa.array([t + 1 for t in table["time"].to_pylist()])), path)
        with loop.projection.log.writing():
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            loop.projection.log.list_segment(Segment(made.first, made.last, made.events, made.lessons, digest))
        assert list(segments.problems(loop.projection)) == [(path.name, "its events are not those of the log")]


# ---------------------------------------------------------------------------- forgetting


def test_forgetting_writes_the_segments_again_without_the_person(tmp_path: Path) -> None:
    with taught(tmp_path / "l", rounds=30) as loop, interpreted():
        loop.decide(person="somebody", id="theirs")
        loop.feedback("theirs", id="their-answer", clicks=[loop.items[3]])
        for i in range(30, 40):
            loop.decide(person="p1", id=f"d{i}")
        before = loop.seal(10).segments
        untouched = [each for each in before if each.last < 70]
        loop.forget("somebody")
        after = loop.projection.log.segments()
        assert [each for each in after if each.last < 70] == untouched
        assert all(each.hash for each in after)
        assert sum(each.events for each in before) - 2 == sum(each.events for each in after)
        check(loop)
        assert list(segments.problems(loop.projection)) == []
    for path in (tmp_path / "l").iterdir():
        content = path.read_bytes()
        assert b"somebody" not in content, path.name
        assert b"their" not in content, path.name
        if path.suffix == ".parquet":
            assert "somebody" not in str(pq.read_table(path).to_pylist())


def test_a_file_of_before_that_comes_back_is_not_used(tmp_path: Path) -> None:
    with taught(tmp_path / "l") as loop, interpreted():
        loop.seal(40)
        old = first_file(loop).read_bytes()
        loop.forget("p1")
        first_file(loop).write_bytes(old)  # out of a back-up
        check(loop)
        assert [name for name, _ in segments.problems(loop.projection)] == [first_file(loop).name]


def test_what_was_written_before_somebody_was_forgotten_is_not_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, others = segments._write, []

    with taught(tmp_path / "l") as loop, interpreted():

        def written(*args: Any) -> Any:
            count = write(*args)
            if not others:
                others.append(loop.forget("p2").events)
            return count

        monkeypatch.setattr(segments, "_write", written)
        made = loop.seal(60)
        assert others[0] > 0
        assert made.segments[0].events < 60
        assert "p2" not in pq.read_table(first_file(loop))["subject"].to_pylist()
        assert list(segments.problems(loop.projection)) == []


@pytest.mark.parametrize("sealed", [False, True])
def test_a_rollback_leaves_items_as_they_are(sealed: bool, tmp_path: Path) -> None:
    """What was withdrawn in what is rolled back stays withdrawn, from memory and from segments as from the log."""
    kind = next(kind for kind in KINDS if kind.name == "rating")
    with kind.make(tmp_path / "l") as loop, interpreted():
        teach(kind, loop, range(6))
        version = loop.version
        loop.withdraw("i3")
        teach(kind, loop, range(6, 8), withdrawn="i3")
        loop.undo("e7")
        if sealed:
            loop.seal(5)
        loop.rollback(version)
        loop.undo("e1")
        check(loop)


def test_what_is_in_memory_is_learned_again_without_the_person(tmp_path: Path) -> None:
    kind = next(kind for kind in KINDS if kind.name == "rating")
    with kind.make(tmp_path / "l") as loop, interpreted() as calls:
        teach(kind, loop, range(12))
        loop.undo("e2")
        kept = loop.projection.keeper.kept
        people = {name for step in kept._steps if isinstance(step, batch.Run) for name in step.names}
        [person] = people - {"p1", "p2"}  # who said what is undone
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loop.projection, "step", None)  # which makes arrays of what is read from the log
            loop.undo("e4")
            calls.clear()
            loop.forget(person)
        assert sum(calls) > 0
        left = {name for step in kept._steps if isinstance(step, batch.Run) for name in step.names}
        assert people - left == {person}
        check(loop)


# ---------------------------------------------------------------------------- kill -9

KILLED = """
import os, signal, sys
from pathlib import Path
import heedful.loop.segments as segments
from heedful import Loop, Settings, infer
from heedful.loop.log import Log

def die(*args, **how):
    os.kill(os.getpid(), signal.SIGKILL)

def then_die(f):
    def dying(*args, **how):
        f(*args, **how)
        die()
    return dying

at, path = sys.argv[1:]
if at == "written":
    os.fsync = die
elif at == "synced":
    os.replace = die
elif at == "renamed":
    os.replace = then_die(os.replace)
else:
    Log.list_segment = then_die(Log.list_segment)
Loop.open(path).seal(20)
"""


@pytest.mark.slow
@pytest.mark.parametrize("at", ["written", "synced", "renamed", "listed"])
@pytest.mark.parametrize("again", [False, True], ids=["first", "again"])
def test_killed_while_it_seals_the_loop_opens_and_is_sealed(at: str, again: bool, tmp_path: Path) -> None:
    with taught(tmp_path / "l") as loop, interpreted():
        if again:  # a damaged one is written again
            loop.seal(20)
            flip(first_file(loop))
    done = subprocess.run([sys.executable, "-c", KILLED, at, str(tmp_path / "l")], capture_output=True, timeout=120)
    assert done.returncode == -9, done.stderr.decode()
    with Loop.open(tmp_path / "l") as loop, interpreted():
        check(loop)
        loop.seal(20)
        assert list(segments.problems(loop.projection)) == []
        check(loop)
        for path in (tmp_path / "l").glob("segment-*.tmp"):
            os.utime(path, (0, 0))
        loop.seal(20)
        assert not list((tmp_path / "l").glob("segment-*.tmp"))


# ---------------------------------------------------------------------------- what is refused


def test_without_pyarrow_it_says_what_to_install_and_folds_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with taught(tmp_path / "l") as loop, interpreted():
        loop.seal(20)
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(ModuleNotFoundError, match="'heedful\\[parquet\\]'"):
            loop.seal(20)
        check(loop)


@pytest.mark.parametrize("events", [0, -1, True, 1.5, "7"])
def test_a_size_that_makes_no_sense_is_refused(events: Any, tmp_path: Path) -> None:
    with small_loop(tmp_path / "l") as loop, pytest.raises(ValueError, match=r"^events: expected a whole number"):
        loop.seal(events)


def test_a_loop_in_a_database_has_no_segments() -> None:
    with pytest.raises(ValueError, match="expected a loop in a folder"):
        segments.folder_of(SimpleNamespace(path=Address("postgresql://h/d#cars")))  # type: ignore[arg-type]
