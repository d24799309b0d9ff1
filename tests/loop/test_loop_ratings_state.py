"""Any life of a loop of ratings against a simple account of it: what was shown, what counts, what is consumed.

The account keeps dictionaries and the story in the order of the log, and folds what survives with the learner's own
functions, people numbered as they come.
"""

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
from heedful import Loop, Settings
from heedful.core.conformance import identical
from heedful.loop.interactions.rating.learners import rater
from heedful.spaces.slate import SlateContext, WeightedRatings
from loops import bits

NAMES = [f"i{j}" for j in range(6)]
LEARNERS = ["bmf:n_factors=2", "item-mean", "alb:n_factors=2", "pair-mean"]
ACTIONS = {"view": (3.2, 0.1), "cart": (4.0, 0.5), "buy": (5.0, 1.0), "hide": (1.0, 1.0)}
SOME = st.integers(0, 10**6)  # which of those that there are


class Fold:
    """What survives, by the learner's own functions."""

    def __init__(self, spec: str) -> None:
        self.learner = rater(spec, 2, (1.0, 5.0))
        self.rng = np.random.default_rng(np.random.SeedSequence(0).spawn(3)[2])
        self.state = self.learner.init(self.rng)
        self.numbers: dict[str, int] = {}
        self.users = 0
        self.gone: set[str] = set()
        self.said: dict[tuple[str, str], float] = {}

    def learn(self, person: str | None, shown: list[str], said: dict[str, tuple[float, float]]) -> None:
        said = {name: each for name, each in said.items() if name not in self.gone}
        if not said:
            return
        user = self.numbers.get(person or "", self.users)
        self.users += user == self.users
        if person is not None:
            self.numbers[person] = user
            for name, (_, weight) in said.items():
                self.said[person, name] = self.said.get((person, name), 0.0) + weight
        there = [NAMES.index(name) for name in shown if name not in self.gone]
        items = [name for name in shown if name in said]
        lesson = WeightedRatings(
            np.array([NAMES.index(name) for name in items]),
            np.array([said[name][0] for name in items]),
            np.array([said[name][1] for name in items]),
        )
        self.state = self.learner.update(
            self.state, SlateContext(user, np.array(sorted(there))), np.array(there), lesson
        )

    def withdraw(self, name: str) -> None:
        self.gone.add(name)
        self.state = self.learner.without_item(self.state, NAMES.index(name))
        self.said = {pair: weight for pair, weight in self.said.items() if pair[1] != name}

    def best(self, person: str | None, names: list[str], size: int) -> list[str]:
        learner = self.learner._replace(space=self.learner.space._replace(size=size))
        items = np.array(sorted(map(NAMES.index, names)))
        user = self.numbers.get(person or "", self.users)
        return [NAMES[j] for j in learner.propose(self.state, SlateContext(user, items), self.rng).tolist()]


class Living(RuleBasedStateMachine):
    """A loop of ratings, perhaps open twice, and the account of it."""

    @initialize(
        learner=st.sampled_from(LEARNERS),
        control=st.sampled_from([0.0, 0.4]),
        every=st.sampled_from([2, 5, 1000]),
        repeats=st.booleans(),
    )
    def create(self, learner: str, control: float, every: int, repeats: bool) -> None:
        memory = Path("/dev/shm")
        self.folder = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
        chosen = Settings(ratings=(1, 5), k=2, control=control, snapshot_every=every, repeats=repeats)
        rows = [{"id": name} for name in NAMES]
        self.loops = [Loop.create(self.folder / "l", items=rows, learner=learner, settings=chosen)]
        self.learner, self.repeats = learner, repeats
        self.decisions: dict[str, Any] = {}
        self.story: list[
            Any
        ] = []  # in the order of the log: (event, decision, what is said), or (None, "-" or "+", item)
        self.undone: set[str] = set()
        self.made = self.puts = 0

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
        told = Fold(self.learner)
        for event, what, said in self.story:
            if event is None and what == "-":
                told.withdraw(said)
            elif event is None:
                told.gone.discard(said)
            elif event not in self.undone:
                told.learn(self.decisions[what]["person"], self.decisions[what]["shown"], said)
        return told

    @rule(
        which=SOME,
        order=st.permutations(NAMES),
        size=st.integers(1, 6),
        person=st.sampled_from([None, "p", "q", "r"]),
        show=st.one_of(st.none(), st.integers(1, 4)),
        repeats=st.sampled_from([None, True, False]),
    )
    def decide(self, which: int, order: Any, size: int, person: Any, show: Any, repeats: Any) -> None:
        told, id, loop = self.fold(), self.new("d"), self.loop(which)
        names = [name for name in order[:size] if name not in told.gone]
        again = self.repeats if repeats is None else repeats
        left = [name for name in names if again or told.said.get((person, name), 0.0) < 1.0 - 1e-9]
        if not left:
            before = loop.projection.log.counts()
            with pytest.raises(ValueError, match="candidates: expected"):
                loop.decide(names, id=id, person=person, show=show, repeats=repeats, strict=True)
            assert loop.projection.log.counts() == before
            return
        d = loop.decide(names, id=id, person=person, show=show, repeats=repeats)
        assert len(set(d.shown)) == len(d.shown) == min(show or 2, len(left))
        assert set(d.shown) <= set(left)
        if d.arm == "learned":
            assert list(d.shown) == told.best(person, left, len(d.shown))
        assert self.loop(which + 1).decide(names, id=id, person=person) == d
        self.decisions[id] = {"shown": list(d.shown), "person": person, "expected": (d.predicted or (None,))[0]}

    @precondition(lambda self: self.decisions)
    @rule(which=SOME, pick=SOME, ratings=st.lists(st.tuples(SOME, st.integers(1, 5)), min_size=1, max_size=3))
    def rate(self, which: int, pick: int, ratings: Any) -> None:
        id = list(self.decisions)[pick % len(self.decisions)]
        shown = self.decisions[id]["shown"]
        given = {shown[j % len(shown)]: float(rating) for j, rating in ratings}
        self.answer(which, id, {"rating": given}, {name: (rating, 1.0) for name, rating in given.items()})

    @precondition(lambda self: self.decisions)
    @rule(
        which=SOME, pick=SOME, done=st.lists(st.tuples(SOME, st.sampled_from(sorted(ACTIONS))), min_size=1, max_size=3)
    )
    def act(self, which: int, pick: int, done: Any) -> None:
        id = list(self.decisions)[pick % len(self.decisions)]
        shown = self.decisions[id]["shown"]
        given: dict[str, list[str]] = {}
        for j, action in done:
            given.setdefault(shown[j % len(shown)], []).append(action)
        said = {}
        for name, actions in given.items():
            weight = sum(ACTIONS[action][1] for action in actions)
            said[name] = sum(ACTIONS[action][0] * ACTIONS[action][1] for action in actions) / weight, weight
        self.answer(which, id, {"actions": given}, said)

    def answer(self, which: int, id: str, form: Any, said: Any) -> None:
        event, gone = self.new("e"), self.fold().gone
        got = self.loop(which).feedback(id, id=event, **form)
        assert (got.status, got.learned, got.reason) == ("applied", not said.keys() <= gone, None)
        self.story.append((event, id, said))
        assert self.loop(which + 1).feedback(id, id=event, **form).status == "duplicate"

    @precondition(lambda self: self.decisions)
    @rule(
        which=SOME,
        pick=SOME,
        bad=st.sampled_from([{"rating": {"i0": 6}}, {"grade": {"i0": 1}}, {"clicks": []}, {"rating": {"no": 1}}]),
    )
    def refused(self, which: int, pick: int, bad: Any) -> None:
        id, loop = list(self.decisions)[pick % len(self.decisions)], self.loop(which)
        before = bits(loop), loop.projection.log.counts()
        [got] = loop.feedback_many([{"decision": id, "id": self.new("e"), **bad}])
        assert got.status == "rejected"
        assert (bits(loop), loop.projection.log.counts()) == before

    @rule(which=SOME, name=st.sampled_from(NAMES))
    def withdraw(self, which: int, name: str) -> None:
        gone = name in self.fold().gone
        assert self.loop(which).withdraw(name) != gone
        if not gone:
            self.story.append((None, "-", name))

    @rule(which=SOME, name=st.sampled_from(NAMES))
    def put(self, which: int, name: str) -> None:
        self.puts += 1
        assert self.loop(which).put_items([{"id": name, "version": self.puts}]) == 1
        self.story.append((None, "+", name))

    @precondition(lambda self: any(event is not None for event, _, _ in self.story))
    @rule(which=SOME, pick=SOME)
    def undo(self, which: int, pick: int) -> None:
        events = [event for event, _, _ in self.story if event is not None]
        event = events[pick % len(events)]
        assert self.loop(which).undo(event).status == ("duplicate" if event in self.undone else "applied")
        self.undone.add(event)

    @rule(which=SOME, person=st.sampled_from(["p", "q", "r"]))
    def forget(self, which: int, person: str) -> None:
        hers = {id for id, decided in self.decisions.items() if decided["person"] == person}
        self.loop(which).forget(person)
        self.story = [told for told in self.story if told[0] is None or told[1] not in hers]
        self.undone &= {event for event, _, _ in self.story}
        for id in hers:
            del self.decisions[id]
        for decided in self.decisions.values():  # nobody knows any more what was learned from her
            decided["expected"] = None

    @precondition(lambda self: self.decisions)
    @rule(which=SOME, pick=SOME)
    def explain(self, which: int, pick: int) -> None:
        """What was expected then, whatever was undone since, and whatever state it is folded from."""
        id = list(self.decisions)[pick % len(self.decisions)]
        told = self.loop(which).explain(id)
        if self.decisions[id]["expected"] is not None:
            assert told.margin == pytest.approx(self.decisions[id]["expected"], rel=1e-5)

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
            assert identical(model.shared.learned, told.state)
            assert model.shared.users == told.users
            assert {name: person.state.user for name, person in model.people.items()} == told.numbers
            for person in told.numbers:
                consumed = {NAMES[j] for j in model.consumed(model.shared, model.people[person]).tolist()}
                wanted = {n for (p, n), weight in told.said.items() if p == person and weight >= 1.0 - 1e-9}
                assert consumed == wanted

    @rule(which=SOME)
    def verify(self, which: int) -> None:
        assert self.loop(which).verify() == []


@pytest.fixture(autouse=True)
def _small_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few decisions in memory, marks every few lessons: what a long life has, in a short one."""
    monkeypatch.setattr(heedful.loop.projection, "CACHED", 3)
    monkeypatch.setattr(heedful.loop.projection, "BETWEEN", 3)


Living.TestCase.settings = settings(
    max_examples=40 * FACTOR,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@pytest.mark.usefixtures("_small_caches")
class TestLiving(Living.TestCase):  # type: ignore[misc, name-defined]
    """Lives of 25 steps."""
