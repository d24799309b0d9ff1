"""The reference of loops of lists, from which people pick."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

import naive
from heedful import Loop, Settings, infer
from heedful.core.conformance import identical
from heedful.core.fold import copy_arrays
from references import PRIOR, SOME, Fold, Given, Reference, Shown, by_prior, with_prior, with_scores

ACTIONS = {"view": 0.1, "buy": 2.0, "hide": -1.0}  # weighed by the greatest: 0.05, 1, -0.5
FORMS = ["clicks", "better", "edit", "nearest", "thumb", "item", "action", "rating", "grade", "choice", "none"]


class Better(NamedTuple):
    """What was said to be better than what was shown."""

    x: Any
    """the candidates"""
    shown: list[int]
    chosen: list[int]
    clicked: bool = False
    weight: float = 1.0

    @property
    def picked(self) -> bool:
        """Whether it was picked out of what was shown."""
        return self.clicked and set(self.chosen) <= set(self.shown)


class Verdict(NamedTuple):
    """What was said of a whole list, or of an item."""

    x: Any
    """the candidates"""
    z: Any
    """the features of what was judged"""
    shown: Any
    """the features of what was shown"""
    up: float
    """the share of a thumb up"""

    @property
    def among(self) -> Any:
        return self.shown.mean(axis=0) if len(self.shown) > 1 else 0.0 * self.z


class CoactiveFold(Fold):
    """What all share, and an offset for each person, by the learner's own steps."""

    alone = False
    """whether what is judged was shown by itself"""

    def __init__(self, learner: Any, shrink: float) -> None:
        self.learner, self.shrink = learner, shrink
        # How much the shared score counts is not a person's to learn.
        self.own = learner._replace(space=learner.space._replace(adjusted=False))
        self.shared = self.fresh()
        self.people: dict[str, tuple[Any, int]] = {}

    def fresh(self) -> Any:
        return self.learner.init(np.random.default_rng(0))

    def learn(self, decision: Shown, lesson: Any) -> None:
        person = decision.person
        if hasattr(self.learner, "learn") and not self.compares(lesson):
            return
        if self.shrink and person is not None:
            before, n = self.people.get(person, (self.own.init(np.random.default_rng(0)), 0))
            mine = copy_arrays(before)
            self.people[person] = self.taught(self.own, mine, lesson, lambda x: self.seen(x, n + 1)), n + 1
        self.shared = self.taught(self.learner, self.shared, lesson, lambda x: x)

    def learns(self, given: Given) -> bool:
        """Whether it compares something."""
        return given.lesson is not None and self.compares(given.lesson)

    def compares(self, lesson: Any) -> bool:
        """What is said differs from what was shown, or tells it apart; a thumb, from what is usual."""
        if isinstance(lesson, Verdict):
            return bool((lesson.z != (self.shared.usual if self.shared.judged else lesson.among)).any())
        x, shown, chosen, k = lesson.x, lesson.shown, lesson.chosen, self.learner.space.positions()
        if hasattr(self.learner, "learn"):
            if lesson.picked:
                return bool((x[shown] != x[shown[0]]).any())
            pairs = naive.Posterior(x.shape[1], min(k, len(shown))).pairs(shown, chosen, len(x))
            return any((x[a] != x[b]).any() for a, b in pairs)
        whole = [*chosen, *(j for j in shown if j not in chosen)]
        space = naive.Rankings(k)
        return bool(np.abs(space.phi(x, whole) - space.phi(x, shown)).max() > 1e-12)

    def taught(self, learner: Any, before: Any, lesson: Any, seen: Any) -> Any:
        x = seen(lesson.x)
        if isinstance(lesson, Verdict):
            z, among = seen(lesson.z[None, :])[0], seen(lesson.among[None, :])[0]
            return learner.judge(before, z, among, lesson.up, self.alone)
        shown, chosen = np.array(lesson.shown, np.int64), np.array(lesson.chosen, np.int64)
        if hasattr(learner, "learn"):
            return learner.learn(before, x, shown, chosen, lesson.picked, lesson.weight)
        whole = [*lesson.chosen, *(j for j in lesson.shown if j not in lesson.chosen)]
        return learner.update(before, x, shown, np.array(whole, np.int64))

    def seen(self, x: Any, n: int) -> Any:
        """Candidates as the person's own learner has them: c x, and the shared score as the caller's."""
        own = x * (n / (n + self.shrink))
        own[:, -1] = np.add.reduce(x * self.effective(), axis=1)
        return own

    def effective(self) -> Any:
        """The shared weights, with that of the caller's score."""
        w = self.learner.weights(self.shared).copy()
        w[-1] += 1.0
        return w

    def check(self, loop: Loop) -> None:
        model = loop.projection.model
        assert identical(model.shared, self.shared)
        assert {name: own.lessons for name, own in model.people.items()} == {n: c for n, (_, c) in self.people.items()}
        assert all(identical(model.people[name].state, own) for name, (own, _) in self.people.items())


@precondition(lambda life: life.decisions)
@rule(which=SOME, pick=SOME, some=SOME, place=SOME)
def chain(life: Any, which: int, pick: int, some: int, place: int) -> None:
    """Somebody asked again, and picked of the later list: that is better than what the first showed."""
    id = life.pick(life.decisions, pick)
    ids, person = list(life.decisions), life.decisions[id].person
    later = [d for d in ids[ids.index(id) + 1 :] if life.decisions[d].person == person and d not in life.waiting]
    if later:
        other = later[some % len(later)]
        life.send(which, id, life.reference.chained(life.decisions[id], other, life.decisions[other], place))


class CoactiveReference(Reference):
    """Lists, from which people pick."""

    names, first = [f"i{j}" for j in range(6)], 4
    ways = ("names", "inline", "all", "recorded")
    fields, rules = PRIOR, {"chain": chain}
    turns = st.tuples(*[st.integers(-3, 3)] * 2)
    lives = 35
    setups: ClassVar = {
        "learner": st.sampled_from(
            [
                "perceptron",
                "perceptron:batch=2",
                "posterior:swap=0",
                "second-order:radius=1",
                "convex:radius=0.5",
                "exponentiated:bound=3",
                "posterior",
                "dueling-bandit",
            ]
        ),
        "k": st.sampled_from([2, 5]),
        "shrink": st.sampled_from([0.0, 1.5]),
    }
    answers = st.tuples(st.sampled_from(FORMS), st.lists(SOME, min_size=1, max_size=4), st.sampled_from([1.0, -1.0]))
    wrong: ClassVar = [
        {"clicks": "i0"},
        {"clicks": ["nobody"]},
        {"clicks": [], "none": True},
        {"rating": {"i0": math.nan}},
        {"edit": {"f0": "tall"}},
        {"thumb": "sideways"},
        {"action": "steal", "item": "i0"},
        {},
    ]

    def __init__(self, learner: str, k: int, shrink: float) -> None:
        self.learner, self.k, self.shrink = learner, k, shrink
        self.exact = not learner.startswith("dueling")

    def create(self, path: Path, control: float, every: int) -> Loop:
        rows = [self.start(name) for name in self.names]
        self.encoding = infer(rows, identifier="id", kinds={"f0": "number", "f1": "number"})
        chosen = Settings(k=self.k, control=control, shrink=self.shrink, snapshot_every=every, actions=ACTIONS)
        loop = Loop.create(
            path, encoding=self.encoding, items=rows[: self.first], learner=self.learner, settings=chosen
        )
        self.made = loop.learner
        return loop

    def row(self, name: str, turn: Any) -> dict[str, Any]:
        return {"id": name, "f0": float(turn[0]), "f1": float(turn[1])}

    def start(self, name: str) -> dict[str, Any]:
        j = int(name[1:])
        return self.row(name, (j, j * j % 5))

    def fold(self) -> CoactiveFold:
        return CoactiveFold(self.made, self.shrink)

    def size(self, show: int | None, eligible: int) -> int:
        return 1 if self.k == 1 else min(show or eligible, eligible)

    def asked(self, drawn: Mapping[str, Any], n: int) -> dict[str, Any]:
        return with_prior(drawn, n) | {"show": None if self.k == 1 else drawn["show"]}  # k = 1: a single item is shown

    def check_decision(self, fold: Any, decision: Shown, eligible: list[str]) -> None:
        if decision.arm == "control":
            assert decision.shown == by_prior(decision)[: len(decision.shown)]

    def chained(self, decision: Shown, id: str, later: Shown, some: int) -> Given:
        """Clicks on the first of a `later` list, decision `id`, and on one of this."""
        x, shown, name = with_scores(self.encode(decision.rows), decision), decision.places, later.shown[0]
        here = shown[some % len(shown)]
        if name in decision.shown:
            lesson = Better(x, shown, list(dict.fromkeys([decision.names.index(name), here])), clicked=True)
        else:
            row = with_scores(self.encode(later.rows), later)[[later.places[0]]]
            lesson = Better(np.concatenate([x, row]), shown, [len(x), here], clicked=True)
        given = {"clicks": [name, decision.names[here]], "chain": [id]}
        return self.told(decision, "clicks", given, lesson)

    def answer(self, decision: Shown, drawn: Any) -> Given:
        form, some, sign = drawn
        names, shown, x = decision.names, decision.places, with_scores(self.encode(decision.rows), decision)
        picked = list(dict.fromkeys(shown[j % len(shown)] for j in some))
        any_of = list(dict.fromkeys(j % len(names) for j in some))
        given: dict[str, Any]
        lesson: Any = None
        if form == "clicks":
            picked = [] if sign < 0 and len(some) == 1 else picked
            given = {"clicks": [names[j] for j in picked] * 2}
            lesson = Better(x, shown, picked, clicked=True) if picked else None
        elif form == "better":
            given = {"better": [names[j] for j in any_of]}
            lesson = Better(x, shown, any_of)
        elif form in ("edit", "nearest"):
            base = any_of[0] if sign > 0 else shown[0]
            given = {"edit": {"f1": float(some[0] % 7)}} | ({"item": names[base]} if sign > 0 else {})
            row = x[[base]].copy()
            row[0, 1] = self.encode([{"f1": float(some[0] % 7)}])[0, 1]
            if form == "edit":
                lesson = Better(np.concatenate([x[[base]], row]), [0, 1], [1])
            else:
                given["nearest"] = True
                order = shown + [j for j in range(len(x)) if j not in shown]
                near = min(order, key=lambda j: float(np.square(x[j, :-1] - row[0, :-1]).sum()))
                lesson = Better(x[[base, near]], [0, 1], [1]) if near != base else None
        elif form in ("thumb", "item"):
            given = {"thumb": "up" if sign > 0 else "down"} | ({"item": names[picked[0]]} if form == "item" else {})
            z = x[picked[0]]
            if form == "thumb":
                discounts = 1.0 / np.array([math.log2(i + 2.0) for i in range(min(self.k, len(shown)))])
                z = self.made.space.phi(x, np.array(shown)) / discounts.sum()
            lesson = Verdict(x, z, x[shown], (1.0 + sign) / 2.0)
        elif form == "action":
            action = list(ACTIONS)[some[0] % 3]
            given = {"action": action, "item": names[picked[0]]}
            weight = ACTIONS[action] / 2.0
            rest = [j for j in shown if j != picked[0]]
            better = picked[:1] if weight > 0 else rest
            lesson = Better(x, shown, better, weight=abs(weight)) if better else None
        elif form in ("rating", "grade"):
            rated = {j: float(value % 3) for j, value in zip(any_of, some)}
            given = {form: {names[j]: value for j, value in rated.items()}}
            among = [j for j in shown if j in rated] + sorted(j for j in rated if j not in shown)
            y = list(range(len(among)))
            if len(set(rated.values())) > 1:
                lesson = Better(x[among], y, sorted(y, key=lambda i: -rated[among[i]]))
        elif form == "choice":
            said = ["first", "second", "equal", "cannot_judge"][some[0] % 4]
            given = {"choice": said}
            if said in ("first", "second") and len(shown) > 1:
                lesson = Better(x[shown[:2]], [0, 1], [0 if said == "first" else 1])
        else:
            given = {"none": True}
        return self.told(decision, {"nearest": "edit", "item": "thumb"}.get(form, form), given, lesson)

    def told(self, decision: Shown, form: str, given: dict[str, Any], lesson: Any) -> Given:
        """The answer, with what the learner makes of it."""
        posterior = self.learner.startswith("posterior")
        refused = form == "choice" and len(decision.shown) < 2
        # The papers' learners learn from what is better alone, a dueling bandit from its own proposals alone.
        refused = refused or (form in ("thumb", "action") and not posterior)
        refused = refused or (form not in ("clicks", "better", "none") and not self.exact)
        if refused or not self.exact:
            return Given(given, None, refused)  # a dueling bandit learns of more than is shown: no fold of it here
        if posterior and isinstance(lesson, Better) and lesson.clicked and len({*lesson.shown, *lesson.chosen}) < 2:
            lesson = None  # a click on the only item
        return Given(given, lesson)
