"""Any life of a grading loop against a simple account of it: what was predicted, what counts.

The account keeps dictionaries, and folds what survives with the learner's own functions; a person's own in words.
"""

import math
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import heedful.loop.projection
from budget import FACTOR
from heedful import Loop, Settings, infer
from heedful.core.conformance import identical
from heedful.loop.interactions.ordinal.learners import grader
from loops import bits

COLUMNS = ("f0", "f1")
N, K = len(COLUMNS) + 1, 4
NAMES = [f"i{j}" for j in range(5)]
SHARED = ["prank:n_ranks=4", "averaged-prank:n_ranks=4"]
LEARNERS = [*SHARED, "multiclass:n_ranks=4", "widrow-hoff:n_ranks=4,eta=0.1", "constant-rank:n_ranks=4"]
SOME = st.integers(0, 10**6)  # which of those that there are


class Fold:
    """What all share, by the learner's own functions, and what is a person's own."""

    def __init__(self, spec: str, shrink: float) -> None:
        self.learner, self.shrink = grader(spec, N, shrink), shrink
        self.cut = spec in SHARED
        self.rng = np.random.default_rng(0)
        self.shared = self.learner.init(self.rng)
        self.own: dict[str, tuple[Any, float, int]] = {}

    def row(self, x: Any) -> Any:
        return x if self.cut else np.append(x, 1.0)

    def score(self, person: str | None, x: Any, more: int = 0) -> float:
        w = self.learner.weights(self.shared)
        v, a, n = self.own.get(person or "", (np.zeros(N), 0.0, -more))
        c = (n + more) / (n + more + self.shrink) if n + more else 0.0
        return math.fsum(wi * xi for wi, xi in zip(w, x)) + c * (math.fsum(vi * xi for vi, xi in zip(v, x)) - a)

    def grades(self, person: str | None, x: Any) -> set[int]:
        """What may be predicted: where the score is at a threshold, to rounding, either side of it."""
        if not self.cut:
            return {self.learner.propose(self.shared, self.row(x), self.rng)}
        s, b = self.score(person, x), self.learner.thresholds(self.shared)
        return {1 + sum(s + e >= threshold for threshold in b) for e in (-1e-9, 0.0, 1e-9)}

    def learn(self, person: str | None, x: Any, y: int) -> None:
        if self.shrink and person is not None:
            v, a, n = self.own.get(person, (np.zeros(N), 0.0, 0))
            self.own[person] = v, a, n
            s, b = self.score(person, x, 1), self.learner.thresholds(self.shared)
            if 1 + sum(s >= threshold for threshold in b) != y:
                signs = [-1.0 if y <= r else 1.0 for r in range(1, K)]
                total = sum(sign for sign, threshold in zip(signs, b) if (s - threshold) * sign <= 0.0)
                v, a = v + total * x, a - total
            self.own[person] = v, a, n + 1
        self.shared = self.learner.update(self.shared, self.row(x), 0, y)


class Living(RuleBasedStateMachine):
    """A grading loop, perhaps open twice, and the account of it."""

    @initialize(
        learner=st.sampled_from(LEARNERS),
        shrink=st.sampled_from([0.0, 1.5]),
        control=st.sampled_from([0.0, 0.4]),
        every=st.sampled_from([2, 5, 1000]),
        k=st.sampled_from([1, 10]),
    )
    def create(self, learner: str, shrink: float, control: float, every: int, k: int) -> None:
        memory = Path("/dev/shm")
        self.folder = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
        values = [(0.3, 1.1), (-1.7, 0.2), (0.9, -0.6), (2.3, 0.7), (-0.1, -1.9)]
        rows = [{"id": name, "f0": f0, "f1": f1} for name, (f0, f1) in zip(NAMES, values)]
        encoding = infer(rows, identifier="id", kinds=dict.fromkeys(COLUMNS, "number"))
        self.x = {row["id"]: np.array(encoding.encode(row), np.float32).astype(float) for row in rows}
        self.shrink = shrink if learner in SHARED else 0.0
        chosen = Settings(k=k, control=control, shrink=self.shrink, snapshot_every=every)
        self.loops = [Loop.create(self.folder / "l", encoding=encoding, items=rows, learner=learner, settings=chosen)]
        self.learner, self.k = learner, k
        self.decisions: dict[str, Any] = {}
        self.feedback: dict[str, Any] = {}  # in the order of the log
        self.undone: set[str] = set()
        self.made = 0

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            for loop in self.loops:
                loop.close()
            shutil.rmtree(self.folder)

    def loop(self, which: int) -> Loop:
        loop = self.loops[which % len(self.loops)]
        loop.projection.catch_up()
        return loop

    def new(self, kind: str) -> str:
        self.made += 1
        return f"{kind}{self.made}"

    def fold(self) -> Fold:
        """All that counts, from the beginning."""
        told = Fold(self.learner, self.shrink)
        for event, (id, grades) in self.feedback.items():
            if event not in self.undone:
                person, x = self.decisions[id]["person"], self.decisions[id]["x"]
                for name, grade in grades:
                    told.learn(person, x[name], grade)
        return told

    @rule(
        which=SOME,
        order=st.permutations(NAMES),
        size=st.integers(1, 5),
        person=st.sampled_from([None, "p", "q"]),
        prior=st.one_of(st.none(), st.lists(st.integers(0, 3), min_size=5, max_size=5)),
        show=st.one_of(st.none(), st.integers(1, 3)),
    )
    def decide(self, which: int, order: Any, size: int, person: Any, prior: Any, show: Any) -> None:
        names, id, loop = list(order[:size]), self.new("d"), self.loop(which)
        scores = None if prior is None else [float(score) for score in prior[:size]]
        d = loop.decide(names, id=id, person=person, prior=scores, show=None if self.k == 1 else show)
        known = loop.projection.known(id)
        assert known is not None
        kept = known.record.prior or [0.0] * size
        x = {name: np.append(self.x[name], p) for name, p in zip(names, kept)}
        told = self.fold()
        assert len(d.shown) == (1 if self.k == 1 else min(show or size, size))
        assert d.predicted is not None
        assert all(grade in told.grades(person, x[name]) for name, grade in zip(d.shown, d.predicted))
        by_prior = sorted(names, key=lambda name: -x[name][-1])
        if d.arm == "control":
            assert list(d.shown) == by_prior[: len(d.shown)]
        elif all(len(told.grades(person, x[name])) == 1 for name in names):
            best = sorted((min(told.grades(person, x[name])) for name in names), reverse=True)
            assert list(d.predicted) == best[: len(d.shown)]
        assert self.loop(which + 1).decide(names, id=id, person=person, prior=scores) == d
        self.decisions[id] = {"names": names, "x": x, "shown": list(d.shown), "person": person}

    @precondition(lambda self: self.decisions)
    @rule(which=SOME, pick=SOME, grades=st.lists(st.tuples(SOME, st.integers(1, K)), min_size=1, max_size=4))
    def grade(self, which: int, pick: int, grades: Any) -> None:
        id = list(self.decisions)[pick % len(self.decisions)]
        decided, event = self.decisions[id], self.new("e")
        given = {decided["names"][j % len(decided["names"])]: grade for j, grade in grades}
        got = self.loop(which).feedback(id, id=event, grade=given)
        assert (got.status, got.learned, got.reason) == ("applied", True, None)
        in_turn = [*decided["shown"], *(name for name in decided["names"] if name not in decided["shown"])]
        self.feedback[event] = id, [(name, given[name]) for name in in_turn if name in given]
        assert self.loop(which + 1).feedback(id, id=event, grade=given).status == "duplicate"

    @precondition(lambda self: self.decisions)
    @rule(
        which=SOME,
        pick=SOME,
        bad=st.sampled_from(
            [
                {"grade": {"i0": K + 1}},
                {"grade": {"i0": 0.5}},
                {"rating": {"i0": 1}},
                {"clicks": []},
                {"grade": {"no": 1}},
            ]
        ),
    )
    def refused(self, which: int, pick: int, bad: Any) -> None:
        id, loop = list(self.decisions)[pick % len(self.decisions)], self.loop(which)
        before = bits(loop), loop.projection.log.counts()
        [got] = loop.feedback_many([{"decision": id, "id": self.new("e"), **bad}])
        assert got.status == "rejected"
        assert (bits(loop), loop.projection.log.counts()) == before

    @precondition(lambda self: self.feedback)
    @rule(which=SOME, pick=SOME)
    def undo(self, which: int, pick: int) -> None:
        event = list(self.feedback)[pick % len(self.feedback)]
        assert self.loop(which).undo(event).status == ("duplicate" if event in self.undone else "applied")
        self.undone.add(event)

    @rule(which=SOME, person=st.sampled_from(["p", "q"]))
    def forget(self, which: int, person: str) -> None:
        hers = {id for id, decided in self.decisions.items() if decided["person"] == person}
        self.loop(which).forget(person)
        self.feedback = {event: kept for event, kept in self.feedback.items() if kept[0] not in hers}
        self.undone &= self.feedback.keys()
        for id in hers:
            del self.decisions[id]

    @rule(which=SOME, snapshot=st.booleans(), clean=st.booleans())
    def reopen(self, which: int, snapshot: bool, clean: bool) -> None:
        """Closed, or gone without a word; opened again."""
        at = which % len(self.loops)
        loop = self.loop(at)
        before = bits(loop), loop.version
        if snapshot:
            loop.snapshot()
        (loop if clean else loop.projection.log).close()
        self.loops[at] = loop = Loop.open(self.folder / "l")
        assert (bits(loop), loop.version) == before
        assert loop.notes == []

    @precondition(lambda self: len(self.loops) < 2)
    @rule()
    def another(self) -> None:
        self.loops.append(Loop.open(self.folder / "l"))

    @invariant()
    def it_is_as_the_account_says(self) -> None:
        if not hasattr(self, "loops"):
            return
        told = self.fold()
        for at in range(len(self.loops)):
            loop = self.loop(at)
            model = loop.projection.model
            assert loop.projection.failed == {}
            assert identical(model.shared, told.shared)
            assert set(model.people) == set(told.own)
            for person, (v, a, n) in told.own.items():
                own = model.people[person]
                assert own.lessons == n
                assert own.state.v == pytest.approx(v)
                assert own.state.a == pytest.approx(a)

    @rule(which=SOME)
    def verify(self, which: int) -> None:
        assert self.loop(which).verify() == []


@pytest.fixture(autouse=True)
def _small_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few decisions in memory, marks every few lessons: what a long life has, in a short one."""
    monkeypatch.setattr(heedful.loop.projection, "CACHED", 3)
    monkeypatch.setattr(heedful.loop.projection, "BETWEEN", 3)


Living.TestCase.settings = settings(
    max_examples=60 * FACTOR,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@pytest.mark.usefixtures("_small_caches")
class TestLiving(Living.TestCase):  # type: ignore[misc, name-defined]
    """Lives of 25 steps."""
