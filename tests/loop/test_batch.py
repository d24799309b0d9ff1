"""Feedback learned in batches: the model is the one learned one by one, bit for bit, whatever is undone."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import heedful.jit.cache
from budget import FACTOR
from heedful import Loop, Settings, infer
from heedful.io import import_answers
from heedful.loop import batch, snapshots
from heedful.loop.interactions.columns import Lessons
from heedful.loop.log import Event, now
from heedful.loop.records import AnsweredItem, FeedbackRecord, encode
from heedful.loop.replay import replay
from kinds import KINDS, NAMES, teach
from loops import rows, small_loop, specs

GRADES = ["ordinal-logistic:n_ranks=5", "prank:n_ranks=5"]
CORRECTIONS = ["perceptron", "posterior", "posterior:swap=0", "second-order"]
RATERS = specs("rating")


@contextmanager
def interpreted() -> Iterator[list[Lessons]]:
    """The kernels as they are, not compiled, which takes long; what is yielded has the examples that
    each call could learn."""
    calls: list[Lessons] = []

    def plain(f: Callable[..., Any], *args: Any) -> Callable[..., Any]:
        calls.append(args[2])
        return f

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heedful.jit.cache, "kernel_for", plain)
        patch.setattr(heedful.jit.cache, "is_cached", lambda *args, kernel: True)
        patch.setattr(batch, "LEAST", 0)  # however few there are
        yield calls


def learned(calls: list[Lessons]) -> int:
    """How many examples compiled code would have learned, or more."""
    return sum(each.shown.starts.size - 1 for each in calls)


def check(loop: Loop) -> None:
    """Fold the log in batches and one by one: the same model, and the same counts."""
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
        st.tuples(st.sampled_from(["undo", "forget", "rollback", "item", "snapshot"]), st.integers(0, 40)),
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
        else:
            loop.snapshot()


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
def test_any_life_folds_to_the_same_model(learner: str, acts: list[Any], size: int) -> None:
    with tempfile.TemporaryDirectory() as folder, interpreted(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "MANY", size)  # how many are learned together
        life = (RatedLife if learner in RATERS else Life)(Path(folder) / "l", learner)
        with life.loop as loop:
            for act in acts:
                life.act(*act)
            check(loop)


def test_what_was_undone_before_it_was_kept_comes_back(tmp_path: Path) -> None:
    """An undo by which a loop first reads its feedback into columns, without what is undone; then that undo itself is
    taken back."""
    with interpreted():
        life = RatedLife(tmp_path / "l", "bmf")
        with life.loop as loop:
            for _ in range(3):
                life.act("teach", 0)
            before = loop.version
            loop.undo("e0")
            check(loop)
            loop.rollback(before)
            check(loop)


def test_ratings_of_one_item_each_become_columns_together(tmp_path: Path) -> None:
    ratings = [AnsweredItem(f"r{n}", f"p{n % 5}", NAMES[n % 7], "rating", 1.0 + n % 5) for n in range(20)]
    with RatedLife(tmp_path / "l", "bmf").loop as loop, interpreted() as calls:
        assert {each.status for each in import_answers(loop, ratings)} == {"applied"}
        assert [each.shown.starts.size - 1 for each in calls] == [20]
        check(loop)
        loop.withdraw(NAMES[0])
        more = [
            {"decision": "r1", "id": "a", "rating": {NAMES[1]: 2}},
            {"decision": "r0", "id": "b", "rating": {NAMES[0]: 2}},
        ]
        assert [each.learned for each in loop.feedback_many(more)] == [
            True,
            False,
        ]  # of what is gone nothing is learned
        check(loop)


def test_thumbs_rewards_and_clicks_on_one_item_are_columns(tmp_path: Path) -> None:
    said: list[dict[str, Any]] = [
        {"clicks": True},
        {"none": True},
        {"thumb": "down"},
        {"reward": 0.25},
        {"action": "buy"},
    ]
    with small_loop(tmp_path / "l", "posterior", k=1, control=0.2) as loop, interpreted() as calls:
        for i in range(40):
            [shown] = loop.decide(NAMES[i % 4 :], id=f"d{i}").shown
            told = {"clicks": [shown]} if i % 5 == 0 else said[i % 5] | ({"item": shown} if i % 5 == 4 else {})
            loop.feedback(f"d{i}", id=f"e{i}", **told)
        calls.clear()
        loop.undo("e3")
        assert learned(calls) == 39
        check(loop)


def test_a_thumb_that_teaches_nothing_is_no_lesson_in_columns_either(tmp_path: Path) -> None:
    """All that is shown is alike: what is judged is what is usual."""
    items = [{"id": f"i{j}", "f0": float(j > 5)} for j in range(12)]
    encoding = infer(items, identifier="id", kinds={"f0": "number"})
    with Loop.create(tmp_path / "l", encoding=encoding, items=items, learner="posterior") as loop, interpreted():
        told = []
        for i in range(6):
            loop.decide(NAMES[:6] if i < 4 else NAMES, id=f"d{i}")
            told.append(loop.feedback(f"d{i}", id=f"e{i}", thumb="up").learned)
        assert told[:4] == [False] * 4
        loop.undo("e1")
        check(loop)
        loop.undo("e5")
        check(loop)


def test_what_is_learned_comes_from_columns(tmp_path: Path) -> None:
    with taught(tmp_path / "l") as loop, interpreted() as calls:
        check(loop)
        assert learned(calls) > 25


@pytest.mark.slow
@pytest.mark.parametrize(
    ("named", "learner"),
    [
        ("coactive", "perceptron"),
        ("coactive", "posterior"),
        ("one", "posterior"),
        ("routing", "posterior"),
        ("ordinal", "ordinal-logistic:n_ranks=5"),
        *(("rating", learner) for learner in RATERS),
    ],
)
def test_compiled_it_is_the_same_model(
    named: str, learner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "LEAST", 0)
    kind = next(kind for kind in KINDS if kind.name == named)
    with kind.make(tmp_path / "l", learner, **({} if named == "rating" else {"shrink": 0.0})) as loop:
        teach(kind, loop, range(30))
        said = list[str]()
        for _ in range(2):
            batch.prepare(loop.projection, 1, said.append)
        assert len(said) <= 1  # where it was not on the disk, and once
        loop.undo("e4")
        check(loop)
        assert loop.notes == []


def test_a_loop_that_is_opened_again_is_the_same(tmp_path: Path) -> None:
    with taught(tmp_path / "l", "posterior") as loop, interpreted():
        model = loop.projection.model
        for path in (tmp_path / "l").glob("snapshot-*"):
            path.unlink()
        with Loop.open(tmp_path / "l") as again:
            assert snapshots.same(again.projection.model, model)


def test_batches_with_many_candidates_are_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "NUMBERS", 100)
    with taught(tmp_path / "l") as loop, interpreted() as calls:
        check(loop)
        assert len(calls) > 5


def test_after_a_promotion_the_other_learner_learns_all(tmp_path: Path) -> None:
    with taught(tmp_path / "l") as loop, interpreted() as calls:
        loop.undo("e5")  # what is learned is in memory
        assert loop.promote("posterior:swap=0", force=True).answer.status == "applied"
        loop.undo("e7")
        check(loop)
        assert learned(calls) > 50
        assert loop.verify() == []


@pytest.mark.parametrize("wrong", ["shown", "chosen"])
@pytest.mark.parametrize("learner", ["perceptron", "posterior"])
def test_an_index_out_of_range_is_not_compiled(learner: str, wrong: str, tmp_path: Path) -> None:
    """A log may come from somebody else, and compiled code checks no index."""
    with taught(tmp_path / "l", learner) as loop:
        log, head = loop.projection.log, loop.projection.log.last()[0]
        known = loop.projection.find_decision("d8")
        assert known is not None
        shown = known.record.shown if wrong == "chosen" else tuple(10**6 + j for j in known.record.shown)
        decision = encode(msgspec.structs.replace(known.record, shown=shown))
        said = encode(FeedbackRecord("better", [10**6 if wrong == "chosen" else 1]))
        with log.writing():
            log.append([Event(head + 1, "decision", "of another", now(), "p1", None, 0, decision)])
            log.append([Event(head + 2, "feedback", "wrong", now(), None, head + 1, 0, said)])
        with interpreted() as calls:
            fold = replay(loop.projection, head + 2)
        one_by_one = replay(loop.projection, head + 2, batched=False)
        assert fold.failed == one_by_one.failed
        assert snapshots.same(fold.model, one_by_one.model)
        assert all(lessons.shown.values.max() < 100 and lessons.answer.values.max() < 100 for lessons in calls)


# ---------------------------------------------------------------------------- what is left out


def test_a_rollback_leaves_items_as_they_are(tmp_path: Path) -> None:
    """What was withdrawn in what is rolled back stays withdrawn, from memory as from the log."""
    kind = next(kind for kind in KINDS if kind.name == "rating")
    with kind.make(tmp_path / "l") as loop, interpreted():
        teach(kind, loop, range(6))
        version = loop.version
        loop.withdraw("i3")
        teach(kind, loop, range(6, 8), withdrawn="i3")
        loop.undo("e7")
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
        assert learned(calls) > 0
        left = {name for step in kept._steps if isinstance(step, batch.Run) for name in step.names}
        assert people - left == {person}
        check(loop)
