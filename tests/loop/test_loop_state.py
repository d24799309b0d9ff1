"""Any life of a loop against a simple account of it: what is on offer, what was shown, what counts.

The account keeps lists and dictionaries, and folds what survives with the learner's own functions.
"""

import math
import shutil
import tempfile
from collections import Counter
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
from heedful.core.fold import copy_arrays
from heedful.learners.coactive.fair_pairs import PerturbedRanking
from heedful.loop.interactions.lists import order_shown
from loops import bits

COLUMNS = ("f0", "f1")
N = len(COLUMNS) + 1
NAMES = [f"i{j}" for j in range(6)]
PEOPLE = [None, "p", "q"]
ACTIONS = {"view": 0.1, "buy": 2.0, "hide": -1.0}  # weighed by the greatest: 0.05, 1, -0.5
LEARNERS = ["perceptron", "perceptron:batch=2", "pairwise-logistic", "second-order:radius=1", "convex:radius=0.5"]
LEARNERS += ["exponentiated:bound=3", "fair-pairs", "dueling-bandit"]
FORMS = ["clicks", "chain", "better", "edit", "nearest", "thumb", "item", "action", "rating", "grade", "choice", "none"]
SOME = st.integers(0, 10**6)  # which of those that there are


class Fold:
    """The model of a learner: what all share, and an offset for each person."""

    def __init__(self, learner: Any, shrink: float) -> None:
        self.learner, self.shrink = learner, shrink
        # How much the shared score counts is not a person's to learn.
        self.own = learner._replace(space=learner.space._replace(adjusted=False))
        self.shared = self.fresh()
        self.people: dict[str, tuple[Any, int]] = {}

    def fresh(self) -> Any:
        return self.learner.init(np.random.default_rng(0))

    def learn(self, person: str | None, lesson: Any) -> None:
        """A lesson is (x, y, the chosen, how loudly), or (z, sign) for a thumb."""
        if self.shrink and person is not None:
            state, n = self.people.get(person, (self.fresh(), 0))
            seen = (self.seen(lesson[0], n + 1), *lesson[1:])
            self.people[person] = self.moved(self.own, copy_arrays(state), seen), n + 1
        self.shared = self.moved(self.learner, self.shared, lesson)

    def seen(self, x: Any, n: int) -> Any:
        """Candidates as the person's own learner has them: c x, and the shared score as the caller's."""
        w = self.learner.weights(self.shared).copy()
        w[-1] += 1.0
        own = x * (n / (n + self.shrink))
        own[..., -1] = np.add.reduce(np.atleast_2d(x) * w, axis=1).reshape(x.shape[:-1])
        return own

    def moved(self, learner: Any, state: Any, lesson: Any) -> Any:
        if len(lesson) == 2:
            z, sign = lesson
            w = learner.weights(state).copy()
            w[-1] = 1.0 + w[-1] if learner is self.learner else 1.0
            margin = sign * float(np.add.reduce((z * w)[None, :], axis=1)[0])
            approval = (
                1.0 / (1.0 + math.exp(margin)) if margin <= 0.0 else math.exp(-margin) / (1.0 + math.exp(-margin))
            )
            D = sign * approval * z
            if learner is self.own:
                D[-1] = 0.0
            return learner.step(state, D)
        x, y, chosen, weight = lesson
        whole = [*chosen, *(j for j in order_shown(y).tolist() if j not in chosen)]
        ybar = np.array(chosen if getattr(learner, "partial", False) else whole, np.int64)
        if weight == 1.0:
            return learner.update(state, x, y, ybar)
        if hasattr(learner, "direction"):
            return learner.step(state, weight * learner.direction(state, x, y, ybar))
        D = np.zeros(N)
        learner.space.add_difference(D, x, ybar, y, 1.0)
        return learner.step(state, weight * D)


class Living(RuleBasedStateMachine):
    """A loop, perhaps open twice, and the account of it."""

    # ------------------------------------------------------------------------ making

    @initialize(
        learner=st.sampled_from(LEARNERS),
        k=st.sampled_from([1, 2, 5]),
        control=st.sampled_from([0.0, 0.4]),
        shrink=st.sampled_from([0.0, 1.5]),
        every=st.sampled_from([2, 5, 1000]),
    )
    def create(self, learner: str, k: int, control: float, shrink: float, every: int) -> None:
        memory = Path("/dev/shm")
        self.folder = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
        rows = [{"id": name, "f0": float(j), "f1": float(j * j % 5)} for j, name in enumerate(NAMES)]
        encoding = infer(rows, identifier="id", kinds=dict.fromkeys(COLUMNS, "number"))
        chosen = Settings(k=k, control=control, shrink=shrink, snapshot_every=every, actions=ACTIONS)
        first = Loop.create(self.folder / "l", encoding=encoding, items=rows[:4], learner=learner, settings=chosen)
        self.loops = [first]
        self.k, self.plain = k, not learner.startswith("dueling")
        self.steps, self.learner, self.encoding = not learner.startswith("dueling"), learner, encoding
        self.items = {row["id"]: row for row in rows[:4]}
        self.decisions: dict[str, Any] = {}
        self.feedback: dict[str, Any] = {}  # in the order of the log
        self.undone: set[str] = set()
        self.gone: set[tuple[str, str]] = set()
        self.counts = Counter(loop=1, item=4)
        self.made = 0

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            for loop in self.loops:
                loop.close()
            shutil.rmtree(self.folder)

    def loop(self, which: int) -> Loop:
        """One of those that have it open. What another wrote, it takes in at its next commit; here, now."""
        loop = self.loops[which % len(self.loops)]
        loop.projection.catch_up()
        return loop

    def new(self, kind: str) -> str:
        self.made += 1
        return f"{kind}{self.made}"

    def checked(self, kept: list[float], scores: list[float] | None) -> list[float]:
        """The caller's scores as the log keeps them: mean 0, variance 1, to rounding; none where all are equal."""
        if scores is None or len(set(scores)) < 2:
            assert kept == ()
        else:
            assert kept == pytest.approx((np.array(scores) - np.mean(scores)) / np.std(scores))
        return kept

    def row(self, name: str, values: Any) -> dict[str, Any]:
        return {"id": name, **dict(zip(COLUMNS, map(float, values)))}

    def encoded(self, rows: Any) -> Any:
        return np.array([self.encoding.encode(row) for row in rows], np.float32).astype(float)

    # ------------------------------------------------------------------------ items

    @rule(which=SOME, name=st.sampled_from(NAMES), values=st.tuples(*[st.integers(-3, 3)] * 2))
    def put(self, which: int, name: str, values: Any) -> None:
        row = self.row(name, values)
        changed = self.items.get(name) != row
        if changed and ("withdrawn", name) in self.gone:
            return  # an item that was withdrawn has a test of its own
        assert self.loop(which).put_items([row]) == int(changed)
        self.counts["item"] += changed
        self.items[name] = row

    @rule(which=SOME, name=st.sampled_from(NAMES))
    def withdraw(self, which: int, name: str) -> None:
        assert self.loop(which).withdraw(name) == (name in self.items)
        self.counts["item"] += name in self.items
        if self.items.pop(name, None):
            self.gone.add(("withdrawn", name))

    # ------------------------------------------------------------------------ deciding

    @rule(
        which=SOME,
        order=st.permutations(NAMES),
        size=st.integers(1, 6),
        how=st.sampled_from(["names", "inline", "all", "recorded"]),
        person=st.sampled_from(PEOPLE),
        prior=st.one_of(st.none(), st.lists(st.integers(0, 3), min_size=6, max_size=6)),
        show=st.one_of(st.none(), st.integers(1, 4)),
        deferred=st.booleans(),
    )
    def decide(
        self, which: int, order: Any, size: int, how: str, person: Any, prior: Any, show: Any, deferred: bool
    ) -> None:
        show = None if self.k == 1 else show  # a single item is shown
        names = [name for name in order[:size] if name in self.items] if how != "inline" else list(order[:size])
        names = list(self.items) if how == "all" else names
        if not names:
            return
        rows = [self.items.get(name, self.row(name, (len(name), j))) for j, name in enumerate(names)]
        scores = None if prior is None else [float(score) for score in prior[: len(names)]]
        given: Any = {"names": names, "inline": rows, "all": None, "recorded": names}[how]
        loop, id, version = self.loop(which), self.new("d"), None
        if how == "recorded":
            deferred, shown = False, list(reversed(names))[: 1 if self.k == 1 else show]
            d = loop.record(given, shown, id=id, person=person, prior=scores)
            assert (d.shown, d.arm, d.probability) == (tuple(shown), "imported", None)
        else:
            version = loop.version
            d = loop.decide(given, id=id, person=person, prior=scores, show=show, deferred=deferred)
            again = self.loop(which + 1).decide(given, id=id, person=person, prior=scores, show=show)
            assert again == d
            assert d.version == version
            assert len(d.shown) == (1 if self.k == 1 else min(show or len(names), len(names)))
        assert set(d.shown) <= set(names)
        x = np.zeros((len(names), N))
        x[:, :-1] = self.encoded(rows)
        x[:, -1] = self.checked(loop.projection.known(id).record.prior, scores) or 0.0
        self.counts["decision"] += 1
        self.decisions[id] = {"names": names, "x": x, "shown": [names.index(name) for name in d.shown], "arm": d.arm}
        self.decisions[id] |= {
            "person": person,
            "waits": deferred,
            "proposal": loop.projection.known(id).record.proposal,
        }
        if d.arm == "control":
            caller = sorted(range(len(names)), key=lambda j: -x[j, -1])
            assert self.decisions[id]["shown"] == caller[: len(d.shown)]

    @precondition(lambda self: self.decisions)
    @rule(which=SOME, pick=SOME)
    def activate(self, which: int, pick: int) -> None:
        id = list(self.decisions)[pick % len(self.decisions)]
        if self.decisions[id]["waits"]:
            assert self.loop(which).activate(id).status == "applied"
            self.counts["activate"] += 1
            self.decisions[id]["waits"] = False
            assert self.loop(which + 1).activate(id).status == "duplicate"

    # ------------------------------------------------------------------------ feedback

    @precondition(lambda self: self.decisions)
    @rule(
        which=SOME,
        pick=SOME,
        form=st.sampled_from(
            [
                "clicks",
                "chain",
                "better",
                "edit",
                "nearest",
                "thumb",
                "item",
                "action",
                "rating",
                "grade",
                "choice",
                "none",
            ]
        ),
        some=st.lists(SOME, min_size=1, max_size=4),
        sign=st.sampled_from([1.0, -1.0]),
    )
    def answer(self, which: int, pick: int, form: str, some: list[int], sign: float) -> None:
        id = list(self.decisions)[pick % len(self.decisions)]
        decided = self.decisions[id]
        names, shown, x = decided["names"], decided["shown"], decided["x"]
        picked = list(dict.fromkeys(shown[j % len(shown)] for j in some))
        any_of = list(dict.fromkeys(j % len(names) for j in some))
        given: dict[str, Any]
        lesson: Any = None  # (x, y, the chosen, weight), (z, sign), or None

        if form == "clicks":
            picked = [] if sign < 0 and len(some) == 1 else picked
            given = {"clicks": [names[j] for j in picked] * 2}
            lesson = (x, shown, picked, 1.0) if picked else None
        elif form == "chain":
            ids = list(self.decisions)
            after = {d: self.decisions[d] for d in ids[ids.index(id) + 1 :]}
            later = [d for d, other in after.items() if other["person"] == decided["person"] and not other["waits"]]
            if not later:
                return
            other = later[some[0] % len(later)]
            name = self.decisions[other]["names"][self.decisions[other]["shown"][0]]
            given = {"clicks": [name, names[picked[0]]], "chain": [other]}
            if name in names and names.index(name) in shown:
                first = names.index(name)
                lesson = (x, shown, list(dict.fromkeys([first, picked[0]])), 1.0)
            else:
                row = self.decisions[other]["x"][[self.decisions[other]["shown"][0]]]
                lesson = (np.concatenate([x, row]), shown, [len(x), picked[0]], 1.0)
        elif form == "better":
            given = {"better": [names[j] for j in any_of]}
            lesson = (x, shown, any_of, 1.0)
        elif form in ("edit", "nearest"):
            base = any_of[0] if sign > 0 else shown[0]
            given = {"edit": {"f1": float(some[0] % 7)}} | ({"item": names[base]} if sign > 0 else {})
            row = x[[base]].copy()
            row[0, 1] = self.encoded([{"f1": float(some[0] % 7)}])[0, 1]
            if form == "edit":
                lesson = (np.concatenate([x[[base]], row]), [0, 1], [1], 1.0)
            else:
                given["nearest"] = True
                order = shown + [j for j in range(len(x)) if j not in shown]
                near = min(order, key=lambda j: float(np.square(x[j, :-1] - row[0, :-1]).sum()))
                lesson = (x[[base, near]], [0, 1], [1], 1.0) if near != base else None
        elif form in ("thumb", "item"):
            given = {"thumb": "up" if sign > 0 else "down"} | ({"item": names[picked[0]]} if form == "item" else {})
            z = x[picked[0]]
            if form == "thumb":
                discounts = 1.0 / np.array([math.log2(i + 2.0) for i in range(min(self.k, len(shown)))])
                z = self.loops[0].learner.space.phi(x, np.array(shown)) / discounts.sum()
            lesson = (z, sign)
        elif form == "action":
            action = list(ACTIONS)[some[0] % 3]
            given = {"action": action, "item": names[picked[0]]}
            weight = ACTIONS[action] / 2.0
            rest = [j for j in shown if j != picked[0]]
            better = picked[:1] if weight > 0 else rest
            lesson = (x, shown, better, abs(weight)) if better else None
        elif form in ("rating", "grade"):
            rated = {j: float(value % 3) for j, value in zip(any_of, some)}
            given = {form: {names[j]: value for j, value in rated.items()}}
            among = [j for j in shown if j in rated] + sorted(j for j in rated if j not in shown)
            y = list(range(len(among)))
            if len(set(rated.values())) > 1:
                lesson = (x[among], y, sorted(y, key=lambda i: -rated[among[i]]), 1.0)
        elif form == "choice":
            answer = ["first", "second", "equal", "cannot_judge"][some[0] % 4]
            given = {"choice": answer}
            if answer in ("first", "second"):
                lesson = (x[shown[:2]], [0, 1], [0 if answer == "first" else 1], 1.0)
        else:
            given = {"none": True}
        form = {"chain": "clicks", "nearest": "edit", "item": "thumb"}.get(form, form)
        if lesson is not None and len(lesson) == 4:
            lesson = self.on(decided, form, *lesson)
        self.sent(which, id, form, given, lesson)

    def on(self, decided: dict[str, Any], form: str, x: Any, shown: list[int], chosen: list[int], weight: float) -> Any:
        """The lesson on the proposal: that which was made, for clicks on a learner's own; at face value otherwise."""
        y: Any = np.array(shown, np.int64)
        if self.learner.startswith("fair-pairs"):
            y = PerturbedRanking(y, -1, np.zeros(0, np.bool_), 1.0)
            if form == "clicks" and decided["arm"] == "control":
                return None  # nothing was swapped there
            if form == "clicks" and decided["arm"] == "learned":
                start, swapped = decided["proposal"]["start"], decided["proposal"]["swapped"]
                whole = [s for p, s in enumerate(swapped) if start + 2 * p + 1 < len(shown)]  # both of a pair were seen
                y = PerturbedRanking(y.shown, start, np.array(whole, np.bool_), 1.0)
        return x, y, chosen, weight

    def sent(self, which: int, id: str, form: str, given: dict[str, Any], lesson: Any) -> None:
        """Give it, and see that the answer is the one that the account expects."""
        decided, event = self.decisions[id], self.new("e")
        refused = decided["waits"] or (form == "choice" and len(decided["shown"]) < 2)
        # A dueling bandit learns from what was chosen of its own proposal, and from nothing else.
        refused = refused or (form not in ("clicks", "better", "none") and not self.steps)
        loop = self.loop(which)
        got = loop.feedback(id, id=event, **given)
        if refused:
            assert (got.status, got.seq, got.learned) == ("rejected", None, False)
            assert got.reason
            return
        assert (got.status, got.reason) == ("applied", None)
        assert got.seq == got.version == loop.version
        if self.plain:
            assert got.learned == (lesson is not None)
        self.counts["feedback"] += 1
        self.feedback[event] = {"decision": id, "given": given, "lesson": lesson, "seq": got.seq}

    @precondition(lambda self: self.feedback)
    @rule(which=SOME, pick=SOME)
    def repeat(self, which: int, pick: int) -> None:
        event = list(self.feedback)[pick % len(self.feedback)]
        kept = self.feedback[event]
        again = self.loop(which).feedback(kept["decision"], id=event, **kept["given"])
        assert (again.status, again.seq, again.learned) == ("duplicate", kept["seq"], False)
        other = {"none": True} if "none" not in kept["given"] else {"clicks": []}
        assert self.loop(which).feedback(kept["decision"], id=event, **other).status == "rejected"

    @precondition(lambda self: self.decisions)
    @rule(
        which=SOME,
        pick=SOME,
        bad=st.sampled_from(
            [
                {"clicks": "i0"},
                {"clicks": [], "none": True},
                {"rating": {"i0": math.nan}},
                {"edit": {"f0": "tall"}},
                {"thumb": "sideways"},
                {"action": "steal", "item": "i0"},
                {},
            ]
        ),
    )
    def malformed(self, which: int, pick: int, bad: Any) -> None:
        id, loop = list(self.decisions)[pick % len(self.decisions)], self.loop(which)
        before = bits(loop)
        [got] = loop.feedback_many([{"decision": id, "id": self.new("e"), **bad}])
        assert got.status == "rejected"
        assert loop.feedback("nobody", clicks=[]).status == "rejected"
        assert loop.feedback(id, clicks=["nobody"]).status == "rejected"
        assert bits(loop) == before

    # ------------------------------------------------------------------------ taking back

    @precondition(lambda self: self.feedback)
    @rule(which=SOME, pick=SOME)
    def undo(self, which: int, pick: int) -> None:
        event = list(self.feedback)[pick % len(self.feedback)]
        got = self.loop(which).undo(event)
        assert got.status == ("duplicate" if event in self.undone else "applied")
        self.counts["undo"] += event not in self.undone
        self.undone.add(event)

    @rule(which=SOME, person=st.sampled_from(["p", "q"]))
    def forget(self, which: int, person: str) -> None:
        hers = [id for id, d in self.decisions.items() if d["person"] == person]
        answers = [e for e, f in self.feedback.items() if f["decision"] in hers]
        undos = [e for e in answers if e in self.undone]
        loop = self.loop(which)
        shown = [event for event in loop.projection.log.events(kinds=["activate"]) if event.id in hers]
        assert loop.forget(person).events == len(hers) + len(answers) + len(undos) + len(shown)
        if hers:
            self.counts += Counter(forget=1, erased=1)
        self.counts -= Counter(decision=len(hers), feedback=len(answers), undo=len(undos), activate=len(shown))
        self.gone |= {("decision", id) for id in hers} | {("feedback", id) for id in answers}
        for id in hers:
            del self.decisions[id]
        for event in answers:
            del self.feedback[event]
            self.undone.discard(event)

    @precondition(lambda self: self.gone)
    @rule(which=SOME, pick=SOME)
    def come_back(self, which: int, pick: int) -> None:
        kind, id = sorted(self.gone)[pick % len(self.gone)]
        loop = self.loop(which)
        if kind == "decision":
            assert "forgotten" in str(loop.feedback(id, clicks=[]).reason)
            with pytest.raises(LookupError, match="forgotten"):
                loop.decide([{"id": "x", "f0": 1.0}], id=id)
        elif kind == "feedback":
            assert "forgotten" in str(loop.undo(id).reason)
            if self.decisions:
                assert "forgotten" in str(loop.feedback(next(iter(self.ready())), id=id, none=True).reason)

    def ready(self) -> list[str]:
        return [id for id, d in self.decisions.items() if not d["waits"]] or ["nobody was forgotten"]

    # ------------------------------------------------------------------------ processes

    @rule(which=SOME, snapshot=st.booleans(), clean=st.booleans())
    def reopen(self, which: int, snapshot: bool, clean: bool) -> None:
        """Closed, or gone without a word; opened again."""
        at = which % len(self.loops)
        loop = self.loop(at)
        before = bits(loop), loop.version, loop.items
        if snapshot:
            loop.snapshot()
        (loop if clean else loop.projection.log).close()
        self.loops[at] = loop = Loop.open(self.folder / "l")
        assert (bits(loop), loop.version, loop.items) == before
        assert loop.notes == []

    @precondition(lambda self: len(self.loops) < 2)
    @rule()
    def another(self) -> None:
        self.loops.append(Loop.open(self.folder / "l"))

    # ------------------------------------------------------------------------ what must be true

    @invariant()
    def it_is_as_the_account_says(self) -> None:
        if not hasattr(self, "loops"):
            return
        for at in range(len(self.loops)):
            loop = self.loop(at)
            assert loop.items == list(self.items)
            counted = loop.projection.log.counts()
            assert counted == {kind: n for kind, n in self.counts.items() if n}
            assert loop.projection.failed == {}
            if self.plain:
                self.folded(loop)
        assert all(bits(loop) == bits(self.loops[0]) for loop in self.loops)

    def folded(self, loop: Loop) -> None:
        """The model is the fold of what survives, bit for bit."""
        fold = Fold(loop.learner, loop.settings.shrink)
        for event, kept in self.feedback.items():
            if event not in self.undone and kept["lesson"] is not None:
                fold.learn(self.decisions[kept["decision"]]["person"], kept["lesson"])
        model = loop.projection.model
        assert identical(model.shared, fold.shared)
        assert {name: (own.lessons) for name, own in model.people.items()} == {
            n: c for n, (_, c) in fold.people.items()
        }
        assert all(identical(model.people[name].state, state) for name, (state, _) in fold.people.items())

    @rule(which=SOME)
    def verify(self, which: int) -> None:
        assert self.loop(which).verify() == []


@pytest.fixture(autouse=True)
def _small_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few decisions in memory, marks every few lessons: what a long life has, in a short one."""
    monkeypatch.setattr(heedful.loop.projection, "CACHED", 3)
    monkeypatch.setattr(heedful.loop.projection, "BETWEEN", 3)


Living.TestCase.settings = settings(
    max_examples=100 * FACTOR,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@pytest.mark.usefixtures("_small_caches")
class TestLiving(Living.TestCase):  # type: ignore[misc, name-defined]
    """Lives of 25 steps."""
