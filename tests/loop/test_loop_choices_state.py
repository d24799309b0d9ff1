"""Any life of a loop of choices against a simple account of it: what was asked, what counts, who prefers what.

The account keeps the story in the order of the log, and folds what survives with the learner's own functions, people
numbered as they come, items by their first appearance.
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
from heedful import Loop, Settings, infer
from heedful.core.conformance import identical
from heedful.loop.interactions.comparison import Comparison
from heedful.loop.interactions.comparison.learners import chooser
from heedful.spaces.comparison import EQUAL, UNSURE, ComparisonPool
from loops import bits

NAMES = [f"i{j}" for j in range(5)]
LEARNERS = ["preference-gp", "hierarchical-gp:every=3", "preference-gp:rule=random,lapse=0.1"]
SOME = st.integers(0, 10**6)  # which of those that there are


def row(name: str, features: bool, turn: int = 0) -> dict[str, Any]:
    """An item, with a number that changes with the turn."""
    j = int(name[1:])
    return {"id": name, "x": float((j * j + turn) % 7)} if features else {"id": name}


class Fold:
    """What survives, by the learner's own functions."""

    def __init__(self, spec: str, features: int) -> None:
        self.learner = chooser(spec, "best", features)
        self.state = self.learner.init(np.random.default_rng(0))
        self.numbers: dict[Any, int] = {}
        self.coming: list[Any] = []
        self.users: dict[str, int] = {}
        self.asked: set[tuple[str, frozenset[int]]] = set()
        self.features = features

    def comes(self, name: str, x: tuple[float, ...]) -> None:
        if (name, x) not in self.numbers:
            self.numbers[name, x] = len(self.numbers)
            self.coming.append(x)

    def joined(self) -> Any:
        """The state with the items that came since."""
        if self.coming:
            X = np.array(self.coming, np.float64).reshape(len(self.coming), self.features)
            self.state, self.coming = self.learner.with_items(self.state, X), []
        return self.state

    def learn(self, person: str | None, shown: list[int], answer: Any) -> None:
        user = self.users.setdefault(person or "", len(self.users))
        items = np.array(shown)
        self.state = self.learner.update(self.joined(), ComparisonPool(user, items[None]), items, answer)
        self.asked |= {(person or "", frozenset((a, b))) for a in shown for b in shown if a != b}


class Living(RuleBasedStateMachine):
    """A loop of choices, perhaps open twice, and the account of it."""

    @initialize(
        learner=st.sampled_from(LEARNERS),
        control=st.sampled_from([0.0, 0.4]),
        every=st.sampled_from([2, 5, 1000]),
        features=st.booleans(),
    )
    def create(self, learner: str, control: float, every: int, features: bool) -> None:
        memory = Path("/dev/shm")
        self.folder = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
        chosen = Settings(choices="best", control=control, snapshot_every=every)
        self.features = features
        items = [row(name, features) for name in NAMES]
        self.encoding = infer(items, identifier="id", kinds={"x": "number"}) if features else None
        how: dict[str, Any] = {"encoding": self.encoding, "learner": learner, "settings": chosen}
        self.loops = [Loop.create(self.folder / "l", items=items, **how)]
        self.learner = learner
        self.decisions: dict[str, Any] = {}
        self.current = {name: self.encoded(row(name, features)) for name in NAMES}
        self.gone: set[str] = set()
        # In the order of the log: (event, decision, answer), or (None, name, features)
        self.story: list[Any] = [(None, name, self.current[name]) for name in NAMES]
        self.undone: set[str] = set()
        self.made = self.turn = 0

    def encoded(self, item: dict[str, Any]) -> tuple[float, ...]:
        return () if self.encoding is None else tuple(self.encoding.encode(item).tolist())

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
        told = Fold(self.learner, 0 if self.encoding is None else self.encoding.size)
        for event, what, said in self.story:
            if event is None:
                told.comes(what, said)
            elif event not in self.undone:
                known = self.decisions[what]
                told.learn(known["person"], [told.numbers[each] for each in known["items"]], said)
        return told

    @rule(
        which=SOME,
        order=st.permutations(NAMES),
        size=st.integers(2, 5),
        person=st.sampled_from([None, "p", "q", "r"]),
        show=st.sampled_from([None, None, 2, 3]),
    )
    def decide(self, which: int, order: Any, size: int, person: Any, show: Any) -> None:
        names, id, loop = [name for name in order[:size] if name not in self.gone], self.new("d"), self.loop(which)
        if len(names) < 2:
            before = loop.projection.log.counts()
            with pytest.raises(ValueError, match="candidates: expected"):
                loop.decide(names, id=id, person=person, show=show, strict=True)
            assert loop.projection.log.counts() == before
            return
        d = loop.decide(names, id=id, person=person, show=show)
        assert set(d.shown) <= set(names)
        assert len(set(d.shown)) == len(d.shown) == min(show or 2, len(names))
        assert self.loop(which + 1).decide(names, id=id, person=person) == d
        told = self.fold()
        numbers = {name: told.numbers[name, self.current[name]] for name in names}
        if len(d.shown) == 2:
            pairs = {frozenset((numbers[a], numbers[b])) for a in names for b in names if a != b}
            left = pairs - {pair for who, pair in told.asked if who == (person or "")}
            assert frozenset(numbers[name] for name in d.shown) in (left or pairs)
            user = told.users.get(person or "", len(told.users))
            first, second = (numbers[name] for name in d.shown)
            believed = told.learner.posterior(told.joined(), user)
            assert d.predicted is not None
            assert d.predicted[0] == pytest.approx(float(believed.beats(first, second)), abs=2e-6)
        self.decisions[id] = {
            "shown": list(d.shown), "person": person, "items": [(name, self.current[name]) for name in d.shown]
        }  # fmt: skip

    @precondition(lambda self: self.decisions)
    @rule(which=SOME, pick=SOME, how=st.sampled_from(["best", "best", "order", "equal", "unsure", "none"]), best=SOME)
    def choose(self, which: int, pick: int, how: str, best: int) -> None:
        id = list(self.decisions)[pick % len(self.decisions)]
        shown = self.decisions[id]["shown"]
        k, place = len(shown), best % len(shown)
        order = [place, *(i for i in range(k) if i != place)]
        forms: dict[str, tuple[dict[str, Any], Any]] = {
            "best": ({"better": shown[place]}, place),
            "order": ({"better": [shown[i] for i in order]}, place if k == 2 else np.array(order)),
            "equal": ({"choice": "equal"}, EQUAL),
            "unsure": ({"choice": "cannot_judge"}, UNSURE),
            "none": ({"none": True}, UNSURE),
        }
        form, said = forms[how]
        event = self.new("e")
        got = self.loop(which).feedback(id, id=event, **form)
        assert (got.status, got.learned, got.reason) == ("applied", how not in ("unsure", "none"), None)
        self.story.append((event, id, said))
        assert self.loop(which + 1).feedback(id, id=event, **form).status == "duplicate"

    @precondition(lambda self: self.decisions)
    @rule(which=SOME, pick=SOME, bad=st.sampled_from([{"rating": {"i0": 4}}, {"clicks": []}, {"better": "no"}]))
    def nonsense(self, which: int, pick: int, bad: Any) -> None:
        id = list(self.decisions)[pick % len(self.decisions)]
        assert self.loop(which).feedback(id, **bad).status == "rejected"

    @precondition(lambda self: any(event is not None for event, _, _ in self.story))
    @rule(which=SOME, pick=SOME)
    def undo(self, which: int, pick: int) -> None:
        events = [event for event, _, _ in self.story if event is not None]
        event = events[pick % len(events)]
        assert self.loop(which).undo(event).status == ("duplicate" if event in self.undone else "applied")
        self.undone.add(event)

    @rule(which=SOME, person=st.sampled_from(["p", "q", "r"]))
    def forget(self, which: int, person: str) -> None:
        hers = {id for id, known in self.decisions.items() if known["person"] == person}
        told = [each for each in self.story if each[0] is not None and each[1] in hers]
        undone = sum(event in self.undone for event, _, _ in told)
        assert self.loop(which).forget(person).events == len(hers) + len(told) + undone
        self.story = [each for each in self.story if each not in told]
        for id in hers:
            del self.decisions[id]

    @rule(which=SOME, name=st.sampled_from(NAMES))
    def withdraw(self, which: int, name: str) -> None:
        assert self.loop(which).withdraw(name) == (name not in self.gone)
        self.gone.add(name)

    @rule(which=SOME, name=st.sampled_from(NAMES), turn=st.integers(0, 2))
    def put(self, which: int, name: str, turn: int) -> None:
        """Back on offer, or with other features."""
        item = row(name, self.features, turn)
        self.loop(which).put_items([item])
        self.gone.discard(name)
        self.current[name] = self.encoded(item)
        self.story.append((None, name, self.current[name]))

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

    @precondition(lambda self: self.decisions)
    @rule(which=SOME, pick=SOME)
    def explain(self, which: int, pick: int) -> None:
        """What was foretold then, and what it comes from adds up to it."""
        id = list(self.decisions)[pick % len(self.decisions)]
        told = self.loop(which).explain(id)
        assert sum(each.by for each in told.lessons) == pytest.approx(told.margin, abs=1e-9)

    @rule(which=SOME)
    def verify(self, which: int) -> None:
        assert self.loop(which).verify() == []

    @invariant()
    def it_is_what_survives(self) -> None:
        if not hasattr(self, "loops"):
            return
        told = self.fold()
        for loop in self.loops:
            loop.projection.catch_up()
            model: Any = loop.projection.model
            assert model.shared.users == len(told.users)
            assert model.shared.n == len(told.numbers)
            assert {name: person.state.user for name, person in model.people.items()} == told.users
            assert identical(model.shared.learned, told.state)  # items that came since join with the next answer
            asked = model.shared.asked[: model.shared.rows].tolist()
            names = {user: name for name, user in told.users.items()}
            assert {(names[user], frozenset((a, b))) for user, a, b in asked} == told.asked
        assert all(bits(loop) == bits(self.loops[0]) for loop in self.loops)


@pytest.fixture(autouse=True)
def _small_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few decisions in memory, marks every few lessons: what a long life has, in a short one."""
    monkeypatch.setattr(heedful.loop.projection, "CACHED", 3)
    monkeypatch.setattr(Comparison, "mark_every", 3)


Living.TestCase.settings = settings(
    max_examples=15 * FACTOR,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@pytest.mark.usefixtures("_small_caches")
class TestLiving(Living.TestCase):  # type: ignore[misc, name-defined]
    """Lives of 25 steps."""
