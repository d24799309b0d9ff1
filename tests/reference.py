"""What a loop of each kind of feedback must do, in lists and dictionaries: the reference of `loop/test_any_life.py`.

A reference keeps nothing of heedful but a learner's own functions, which it folds over what survives of the log. What
holds for every kind stands in the test; here is what one kind alone knows: what its loops are made of, what is asked
and answered, what an answer teaches, what may be shown.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from heedful import Loop, Settings, infer
from heedful.core.conformance import identical
from heedful.core.fold import copy_arrays
from heedful.learners.coactive.fair_pairs import PerturbedRanking
from heedful.learners.registry import learner_class
from heedful.loop.explain import Explanation
from heedful.loop.interactions.comparison.learners import chooser
from heedful.loop.interactions.lists import order_shown
from heedful.loop.interactions.ordinal.learners import grader
from heedful.loop.interactions.rating.learners import rater
from heedful.spaces.comparison import EQUAL, UNSURE, ComparisonPool
from heedful.spaces.slate import SlateContext, WeightedRatings

SOME = st.integers(0, 10**6)
"""Which of those that there are."""
PERSON = st.sampled_from([None, "p", "q", "r"])
FIFTH = f"{Path(__file__).with_name('fifth.py')}:BestWorst"


class Shown(NamedTuple):
    """A decision as the reference keeps it."""

    names: list[str]
    """of the candidates"""
    rows: list[dict[str, Any]]
    """the items as they were then"""
    shown: list[str]
    person: str | None
    arm: str
    predicted: tuple[float, ...] | None
    prior: Sequence[float]
    """the caller's scores as the log keeps them, one a candidate, or none"""
    proposal: Any

    @property
    def places(self) -> list[int]:
        """Where the shown items stand among the candidates."""
        return [self.names.index(name) for name in self.shown]


class Given(NamedTuple):
    """An answer: what is sent, and what the loop must make of it."""

    form: dict[str, Any]
    lesson: Any = None
    """what is learned from it; None where that is nothing"""
    refused: bool = False
    """whether the loop rejects it"""


class Fold(ABC):
    """The model that the surviving part of a log makes."""

    @abstractmethod
    def learn(self, decision: Shown, lesson: Any) -> None:
        """Take a lesson in."""

    def put(self, name: str, row: Mapping[str, Any]) -> None:  # noqa: B027 - most kinds learn nothing from it
        """Take in that an item is on offer, or changed."""

    def withdraw(self, name: str) -> None:  # noqa: B027
        """Take in that an item is on offer no more."""

    def eligible(self, names: list[str], person: str | None, fields: Mapping[str, Any]) -> list[str]:
        """Return the candidates that may be shown."""
        return names

    def learns(self, given: Given) -> bool:
        """Return whether this answer teaches anything."""
        return given.lesson is not None

    @abstractmethod
    def check(self, loop: Loop) -> None:
        """Assert that the loop's model is this one."""


class Reference(ABC):
    """What a loop of one kind must do."""

    names: ClassVar[list[str]] = [f"i{j}" for j in range(5)]
    first: ClassVar[int] = 5
    """How many of the items are on offer from the beginning."""
    ways: ClassVar[tuple[str, ...]] = ("names", "names", "all")
    """How candidates are given: by name, "inline" with attributes, "all" on offer; "recorded" is decided by others."""
    fields: ClassVar[dict[str, st.SearchStrategy[Any]]] = {}
    """What else a decision is asked with."""
    setups: ClassVar[dict[str, st.SearchStrategy[Any]]]
    """What a loop is made with, besides `control` and `every`."""
    answers: ClassVar[st.SearchStrategy[Any]]
    """What an answer is made of."""
    wrong: ClassVar[list[dict[str, Any]]]
    """Answers that the loop rejects, whatever was shown."""
    turns: ClassVar[st.SearchStrategy[Any]] = st.integers(0, 2)
    """What the attributes of an item are made of."""
    least = 1
    """With fewer candidates nothing is decided."""
    exact = True
    """Whether there is a fold to compare the model with."""
    own: str | None = None
    lives = 10
    """How many lives hypothesis tries."""
    rules: ClassVar[dict[str, Any]] = {}
    """Rules of hypothesis that only this kind has, by name."""

    @abstractmethod
    def create(self, path: Path, control: float, every: int) -> Loop:
        """Make the loop in a new folder, with the first items on offer."""

    @abstractmethod
    def row(self, name: str, turn: Any) -> dict[str, Any]:
        """Return an item's attributes."""

    def start(self, name: str) -> dict[str, Any]:
        """Return an item as it is at the beginning."""
        return self.row(name, 0)

    @abstractmethod
    def fold(self) -> Fold:
        """Return a model that has learned nothing."""

    @abstractmethod
    def size(self, show: int | None, eligible: int) -> int:
        """Return how many must be shown."""

    @abstractmethod
    def answer(self, decision: Shown, drawn: Any) -> Given:
        """Return an answer to a decision."""

    def another_answer(self, decision: Shown, form: Mapping[str, Any]) -> dict[str, Any]:
        """Return an answer to the decision that the loop would take, other than `form`."""
        return {"clicks": []} if "none" in form else {"none": True}

    def asked(self, drawn: Mapping[str, Any], n: int) -> dict[str, Any]:
        """Return what a decision about n candidates is asked with."""
        return dict(drawn)

    def check_decision(self, fold: Any, decision: Shown, eligible: list[str]) -> None:  # noqa: B027
        """Assert that this may be shown by what is learned."""

    def check_explanation(self, why: Explanation, decision: Shown, forgot: bool) -> None:
        """Assert that the explanation is of this decision; `forgot` once somebody was forgotten since it."""
        assert why.decision

    def encode(self, rows: Sequence[Mapping[str, Any]]) -> Any:
        """The features of items, (n, k), as the log keeps them."""
        return np.array([self.encoding.encode(row) for row in rows], np.float32).astype(float)

    encoding: Any = None


PRIOR = {"prior": st.one_of(st.none(), st.lists(st.integers(0, 3), min_size=6, max_size=6))}


def with_prior(drawn: Mapping[str, Any], n: int) -> dict[str, Any]:
    """The caller's scores of n candidates."""
    return {"prior": None if drawn["prior"] is None else [float(score) for score in drawn["prior"][:n]]}


def with_scores(X: Any, decision: Shown) -> Any:
    """X (n, k) with the caller's scores as the last column, 0 where there are none."""
    return np.column_stack([X, decision.prior or np.zeros(len(X))])


def by_prior(decision: Shown) -> list[str]:
    """The candidates in the caller's order."""
    prior = decision.prior or [0.0] * len(decision.names)
    return [decision.names[j] for j in sorted(range(len(prior)), key=lambda j: -prior[j])]


# ---------------------------------------------------------------------------- coactive

ACTIONS = {"view": 0.1, "buy": 2.0, "hide": -1.0}  # weighed by the greatest: 0.05, 1, -0.5
FORMS = ["clicks", "better", "edit", "nearest", "thumb", "item", "action", "rating", "grade", "choice", "none"]


class CoactiveFold(Fold):
    """What all share, and an offset for each person. A lesson is (x, y, the chosen, how loudly), or (z, sign)."""

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
        """The state after a lesson, by the learner's own steps."""
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
        D = np.zeros(x.shape[1])
        learner.space.add_difference(D, x, ybar, y, 1.0)
        return learner.step(state, weight * D)

    def check(self, loop: Loop) -> None:
        model = loop.projection.model
        assert identical(model.shared, self.shared)
        assert {name: own.lessons for name, own in model.people.items()} == {n: c for n, (_, c) in self.people.items()}
        assert all(identical(model.people[name].state, state) for name, (state, _) in self.people.items())


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
                "pairwise-logistic",
                "second-order:radius=1",
                "convex:radius=0.5",
                "exponentiated:bound=3",
                "fair-pairs",
                "dueling-bandit",
            ]
        ),
        "k": st.sampled_from([1, 2, 5]),
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
            lesson: Any = x, shown, list(dict.fromkeys([decision.names.index(name), here])), 1.0
        else:
            row = with_scores(self.encode(later.rows), later)[[later.places[0]]]
            lesson = np.concatenate([x, row]), shown, [len(x), here], 1.0
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
            lesson = (x, shown, picked, 1.0) if picked else None
        elif form == "better":
            given = {"better": [names[j] for j in any_of]}
            lesson = (x, shown, any_of, 1.0)
        elif form in ("edit", "nearest"):
            base = any_of[0] if sign > 0 else shown[0]
            given = {"edit": {"f1": float(some[0] % 7)}} | ({"item": names[base]} if sign > 0 else {})
            row = x[[base]].copy()
            row[0, 1] = self.encode([{"f1": float(some[0] % 7)}])[0, 1]
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
                z = self.made.space.phi(x, np.array(shown)) / discounts.sum()
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
            said = ["first", "second", "equal", "cannot_judge"][some[0] % 4]
            given = {"choice": said}
            if said in ("first", "second") and len(shown) > 1:
                lesson = (x[shown[:2]], [0, 1], [0 if said == "first" else 1], 1.0)
        else:
            given = {"none": True}
        return self.told(decision, {"nearest": "edit", "item": "thumb"}.get(form, form), given, lesson)

    def told(self, decision: Shown, form: str, given: dict[str, Any], lesson: Any) -> Given:
        """The answer, with its lesson on the proposal as it was made, for clicks on a learner's own; at face value for
        all other answers."""
        # A dueling bandit learns from what was chosen of its own proposal, and from nothing else.
        refused = form == "choice" and len(decision.shown) < 2
        refused = refused or (form not in ("clicks", "better", "none") and not self.exact)
        if not self.exact:
            return Given(given, None, refused)  # it learns of more than is shown: there is no fold of it here
        if lesson is not None and len(lesson) == 4:
            x, shown, chosen, weight = lesson
            y: Any = np.array(shown, np.int64)
            if self.learner.startswith("fair-pairs"):
                y = PerturbedRanking(y, -1, np.zeros(0, np.bool_), 1.0)
                if form == "clicks" and decision.arm == "control":
                    return Given(given, None, refused)  # nothing was swapped there
                if form == "clicks" and decision.arm == "learned":
                    start, swapped = decision.proposal["start"], decision.proposal["swapped"]
                    # both of a pair were seen
                    whole = [s for p, s in enumerate(swapped) if start + 2 * p + 1 < len(shown)]
                    y = PerturbedRanking(y.shown, start, np.array(whole, np.bool_), 1.0)
            lesson = x, y, chosen, weight
        return Given(given, lesson, refused)


# ---------------------------------------------------------------------------- ordinal

N_RANKS = 4
SHARED = ["prank:n_ranks=4", "averaged-prank:n_ranks=4"]


class OrdinalFold(Fold):
    """What all share, by the learner's own functions, and what is a person's own, v (N,), a and lessons. A lesson is
    [(x, grade), ...]."""

    def __init__(self, spec: str, shrink: float) -> None:
        self.learner, self.shrink = grader(spec, 3, shrink), shrink
        self.cut = spec in SHARED
        self.rng = np.random.default_rng(0)
        self.shared = self.learner.init(self.rng)
        self.own: dict[str, tuple[Any, float, int]] = {}

    def row(self, x: Any) -> Any:
        return x if self.cut else np.append(x, 1.0)

    def score(self, person: str | None, x: Any, more: int = 0) -> float:
        w = self.learner.weights(self.shared)
        v, a, n = self.own.get(person or "", (np.zeros(3), 0.0, -more))
        c = (n + more) / (n + more + self.shrink) if n + more else 0.0
        return math.fsum(wi * xi for wi, xi in zip(w, x)) + c * (math.fsum(vi * xi for vi, xi in zip(v, x)) - a)

    def grades(self, person: str | None, x: Any) -> set[int]:
        """What may be predicted: where the score is at a threshold, to rounding, either side of it."""
        if not self.cut:
            return {self.learner.propose(self.shared, self.row(x), self.rng)}
        s, b = self.score(person, x), self.learner.thresholds(self.shared)
        return {1 + sum(s + e >= threshold for threshold in b) for e in (-1e-9, 0.0, 1e-9)}

    def learn(self, decision: Shown, lesson: Any) -> None:
        for x, y in lesson:
            self.learn_grade(decision.person, x, y)

    def learn_grade(self, person: str | None, x: Any, y: int) -> None:
        if self.shrink and person is not None:
            v, a, n = self.own.get(person, (np.zeros(3), 0.0, 0))
            self.own[person] = v, a, n
            s, b = self.score(person, x, 1), self.learner.thresholds(self.shared)
            if 1 + sum(s >= threshold for threshold in b) != y:
                signs = [-1.0 if y <= r else 1.0 for r in range(1, N_RANKS)]
                total = sum(sign for sign, threshold in zip(signs, b) if (s - threshold) * sign <= 0.0)
                v, a = v + total * x, a - total
            self.own[person] = v, a, n + 1
        self.shared = self.learner.update(self.shared, self.row(x), 0, y)

    def check(self, loop: Loop) -> None:
        model = loop.projection.model
        assert identical(model.shared, self.shared)
        assert set(model.people) == set(self.own)
        for person, (v, a, n) in self.own.items():
            own = model.people[person]
            assert own.lessons == n
            assert own.state.v == pytest.approx(v)
            assert own.state.a == pytest.approx(a)


class OrdinalReference(Reference):
    """Items, which people grade."""

    ways = ("names", "inline", "all", "recorded")
    fields = PRIOR
    lives = 20
    setups: ClassVar = {
        "learner": st.sampled_from(
            [*SHARED, "multiclass:n_ranks=4", "widrow-hoff:n_ranks=4,eta=0.1", "constant-rank:n_ranks=4"]
        ),
        "shrink": st.sampled_from([0.0, 1.5]),
        "k": st.sampled_from([1, 10]),
    }
    answers = st.lists(st.tuples(SOME, st.integers(1, N_RANKS)), min_size=1, max_size=4)
    wrong: ClassVar = [
        {"grade": {"i0": N_RANKS + 1}},
        {"grade": {"i0": 0.5}},
        {"grade": {"nobody": 1}},
        {"rating": {"i0": 1}},
        {"clicks": []},
    ]
    values: ClassVar = {"i0": (0.3, 1.1), "i1": (-1.7, 0.2), "i2": (0.9, -0.6), "i3": (2.3, 0.7), "i4": (-0.1, -1.9)}

    def __init__(self, learner: str, shrink: float, k: int) -> None:
        self.learner, self.k, self.shrink = learner, k, shrink if learner in SHARED else 0.0

    def create(self, path: Path, control: float, every: int) -> Loop:
        rows = [self.start(name) for name in self.names]
        self.encoding = infer(rows, identifier="id", kinds={"f0": "number", "f1": "number"})
        chosen = Settings(k=self.k, control=control, shrink=self.shrink, snapshot_every=every)
        return Loop.create(path, encoding=self.encoding, items=rows, learner=self.learner, settings=chosen)

    def row(self, name: str, turn: Any) -> dict[str, Any]:
        f0, f1 = self.values[name]
        return {"id": name, "f0": f0 + 0.7 * turn, "f1": f1 - 0.4 * turn}

    def fold(self) -> OrdinalFold:
        return OrdinalFold(self.learner, self.shrink)

    def size(self, show: int | None, eligible: int) -> int:
        return 1 if self.k == 1 else min(show or eligible, eligible)

    def asked(self, drawn: Mapping[str, Any], n: int) -> dict[str, Any]:
        return with_prior(drawn, n) | {"show": None if self.k == 1 else drawn["show"]}

    def check_decision(self, fold: Any, decision: Shown, eligible: list[str]) -> None:
        if decision.arm == "imported":
            return
        x = dict(zip(decision.names, with_scores(self.encode(decision.rows), decision)))
        may = {name: fold.grades(decision.person, x[name]) for name in decision.names}
        assert decision.predicted is not None
        assert all(grade in may[name] for name, grade in zip(decision.shown, decision.predicted))
        if decision.arm == "control":
            assert decision.shown == by_prior(decision)[: len(decision.shown)]
        elif all(len(each) == 1 for each in may.values()):
            best = sorted((min(each) for each in may.values()), reverse=True)
            assert list(decision.predicted) == best[: len(decision.shown)]

    def answer(self, decision: Shown, drawn: Any) -> Given:
        given = {decision.names[j % len(decision.names)]: grade for j, grade in drawn}
        x = dict(zip(decision.names, with_scores(self.encode(decision.rows), decision)))
        in_turn = [*decision.shown, *(name for name in decision.names if name not in decision.shown)]
        return Given({"grade": given}, [(x[name], given[name]) for name in in_turn if name in given])

    def another_answer(self, decision: Shown, form: Mapping[str, Any]) -> dict[str, Any]:
        return {"grade": {name: grade % N_RANKS + 1 for name, grade in form["grade"].items()}}


# ---------------------------------------------------------------------------- rating

WEIGHED = {"view": (3.2, 0.1), "cart": (4.0, 0.5), "buy": (5.0, 1.0), "hide": (1.0, 1.0)}
"""What an action counts for: (the rating, its weight)."""


class RatingFold(Fold):
    """People are numbered as they come. A lesson is {item: (rating, weight)}."""

    def __init__(self, spec: str, names: list[str], repeats: bool) -> None:
        self.learner, self.names, self.repeats = rater(spec, 2, (1.0, 5.0)), names, repeats
        self.rng = np.random.default_rng(np.random.SeedSequence(0).spawn(3)[2])
        self.state = self.learner.init(self.rng)
        self.numbers: dict[str, int] = {}
        self.users = 0
        self.gone: set[str] = set()
        self.said: dict[tuple[str, str], float] = {}

    def learns(self, given: Given) -> bool:
        return not given.lesson.keys() <= self.gone

    def learn(self, decision: Shown, lesson: Any) -> None:
        person = decision.person
        said = {name: each for name, each in lesson.items() if name not in self.gone}
        if not said:
            return
        user = self.numbers.get(person or "", self.users)
        self.users += user == self.users
        if person is not None:
            self.numbers[person] = user
            for name, (_, weight) in said.items():
                self.said[person, name] = self.said.get((person, name), 0.0) + weight
        there = [self.names.index(name) for name in decision.shown if name not in self.gone]
        items = [name for name in decision.shown if name in said]
        ratings = WeightedRatings(
            np.array([self.names.index(name) for name in items]),
            np.array([said[name][0] for name in items]),
            np.array([said[name][1] for name in items]),
        )
        context = SlateContext(user, np.array(sorted(there)))
        self.state = self.learner.update(self.state, context, np.array(there), ratings)

    def put(self, name: str, row: Mapping[str, Any]) -> None:
        self.gone.discard(name)

    def withdraw(self, name: str) -> None:
        self.gone.add(name)
        self.state = self.learner.without_item(self.state, self.names.index(name))
        self.said = {pair: weight for pair, weight in self.said.items() if pair[1] != name}

    def eligible(self, names: list[str], person: str | None, fields: Mapping[str, Any]) -> list[str]:
        again = self.repeats if fields["repeats"] is None else fields["repeats"]
        return [name for name in names if again or self.said.get((person or "", name), 0.0) < 1.0 - 1e-9]

    def best(self, person: str | None, names: list[str], size: int) -> list[str]:
        learner = self.learner._replace(space=self.learner.space._replace(size=size))
        items = np.array(sorted(map(self.names.index, names)))
        user = self.numbers.get(person or "", self.users)
        return [self.names[j] for j in learner.propose(self.state, SlateContext(user, items), self.rng).tolist()]

    def check(self, loop: Loop) -> None:
        model: Any = loop.projection.model
        assert identical(model.shared.learned, self.state)
        assert model.shared.users == self.users
        assert {name: person.state.user for name, person in model.people.items()} == self.numbers
        for person in self.numbers:
            consumed = {self.names[j] for j in model.consumed(model.shared, model.people[person]).tolist()}
            assert consumed == {n for (p, n), weight in self.said.items() if p == person and weight >= 1.0 - 1e-9}


class RatingReference(Reference):
    """Items without features, which people rate or buy."""

    names, first = [f"i{j}" for j in range(6)], 6
    fields: ClassVar = {"repeats": st.sampled_from([None, True, False])}
    lives = 20
    setups: ClassVar = {
        "learner": st.sampled_from(["bmf:n_factors=2", "item-mean", "alb:n_factors=2", "pair-mean"]),
        "repeats": st.booleans(),
    }
    answers = st.one_of(
        st.lists(st.tuples(SOME, st.integers(1, 5)), min_size=1, max_size=3),
        st.lists(st.tuples(SOME, st.sampled_from(sorted(WEIGHED))), min_size=1, max_size=3),
    )
    wrong: ClassVar = [{"rating": {"i0": 6}}, {"grade": {"i0": 1}}, {"clicks": []}, {"rating": {"nobody": 1}}]

    def __init__(self, learner: str, repeats: bool) -> None:
        self.learner, self.repeats = learner, repeats

    def create(self, path: Path, control: float, every: int) -> Loop:
        chosen = Settings(ratings=(1, 5), k=2, control=control, snapshot_every=every, repeats=self.repeats)
        return Loop.create(path, items=[self.start(name) for name in self.names], learner=self.learner, settings=chosen)

    def row(self, name: str, turn: Any) -> dict[str, Any]:
        return {"id": name, "version": turn}

    def fold(self) -> RatingFold:
        return RatingFold(self.learner, self.names, self.repeats)

    def size(self, show: int | None, eligible: int) -> int:
        return min(show or 2, eligible)

    def check_decision(self, fold: Any, decision: Shown, eligible: list[str]) -> None:
        if decision.arm == "learned":
            assert decision.shown == fold.best(decision.person, eligible, len(decision.shown))

    def answer(self, decision: Shown, drawn: Any) -> Given:
        shown = decision.shown
        if isinstance(drawn[0][1], int):
            given = {shown[j % len(shown)]: float(rating) for j, rating in drawn}
            return Given({"rating": given}, {name: (rating, 1.0) for name, rating in given.items()})
        done: dict[str, list[str]] = {}
        for j, action in drawn:
            done.setdefault(shown[j % len(shown)], []).append(action)
        said = {}
        for name, actions in done.items():
            weight = sum(WEIGHED[action][1] for action in actions)
            said[name] = sum(WEIGHED[action][0] * WEIGHED[action][1] for action in actions) / weight, weight
        return Given({"actions": done}, said)

    def another_answer(self, decision: Shown, form: Mapping[str, Any]) -> dict[str, Any]:
        low = {decision.shown[0]: 1.0}
        return {"rating": {decision.shown[0]: 2.0} if form.get("rating") == low else low}

    def check_explanation(self, why: Explanation, decision: Shown, forgot: bool) -> None:
        """What was expected then, whatever was undone since, and whatever state it is folded from; nobody knows any
        more what was learned from people who were forgotten."""
        if decision.predicted and not forgot:
            assert why.margin == pytest.approx(decision.predicted[0], rel=1e-5)


# ---------------------------------------------------------------------------- comparison


class ComparisonFold(Fold):
    """People are numbered as they come, items by their first appearance. A lesson is the learner's own answer."""

    def __init__(self, spec: str, encode: Any, features: int) -> None:
        self.learner, self.encode, self.features = chooser(spec, "best", features), encode, features
        self.state = self.learner.init(np.random.default_rng(0))
        self.numbers: dict[Any, int] = {}
        self.coming: list[Any] = []
        self.users: dict[str, int] = {}
        self.asked: set[tuple[str, frozenset[int]]] = set()

    def put(self, name: str, row: Mapping[str, Any]) -> None:
        x = self.encode(row)
        if (name, x) not in self.numbers:
            self.numbers[name, x] = len(self.numbers)
            self.coming.append(x)

    def number(self, name: str, row: Mapping[str, Any]) -> int:
        return self.numbers[name, self.encode(row)]

    def joined(self) -> Any:
        """The state with the items that came since: they join with the next answer."""
        if not self.coming:
            return self.state
        X = np.array(self.coming, np.float64).reshape(len(self.coming), self.features)
        return self.learner.with_items(copy_arrays(self.state), X)

    def learn(self, decision: Shown, lesson: Any) -> None:
        person = decision.person or ""
        user = self.users.setdefault(person, len(self.users))
        shown = [self.number(name, decision.rows[j]) for name, j in zip(decision.shown, decision.places)]
        items = np.array(shown)
        self.state = self.learner.update(self.joined(), ComparisonPool(user, items[None]), items, lesson)
        self.coming = []
        self.asked |= {(person, frozenset((a, b))) for a in shown for b in shown if a != b}

    def learns(self, given: Given) -> bool:
        return given.lesson is not UNSURE

    def check(self, loop: Loop) -> None:
        model: Any = loop.projection.model
        assert model.shared.users == len(self.users)
        assert model.shared.n == len(self.numbers)
        assert {name: person.state.user for name, person in model.people.items()} == self.users
        assert identical(model.shared.learned, self.state)
        names = {user: name for name, user in self.users.items()}
        asked = model.shared.asked[: model.shared.rows].tolist()
        assert {(names[user], frozenset((a, b))) for user, a, b in asked} == self.asked


class ComparisonReference(Reference):
    """Two items or more, of which people choose."""

    least = 2
    lives = 10
    setups: ClassVar = {
        "learner": st.sampled_from(["preference-gp", "hierarchical-gp:every=3", "preference-gp:rule=random,lapse=0.1"]),
        "features": st.booleans(),
    }
    answers = st.tuples(st.sampled_from(["best", "best", "order", "equal", "unsure", "none"]), SOME)
    wrong: ClassVar = [{"rating": {"i0": 4}}, {"clicks": []}, {"better": "nobody"}]

    def __init__(self, learner: str, features: bool) -> None:
        self.learner, self.features = learner, features

    def create(self, path: Path, control: float, every: int) -> Loop:
        rows = [self.start(name) for name in self.names]
        self.encoding = infer(rows, identifier="id", kinds={"x": "number"}) if self.features else None
        chosen = Settings(choices="best", control=control, snapshot_every=every)
        return Loop.create(path, encoding=self.encoding, items=rows, learner=self.learner, settings=chosen)

    def row(self, name: str, turn: Any) -> dict[str, Any]:
        return {"id": name, "x": float((int(name[1:]) ** 2 + turn) % 7)} if self.features else {"id": name}

    def encoded(self, row: Mapping[str, Any]) -> tuple[float, ...]:
        return () if self.encoding is None else tuple(self.encoding.encode(row).tolist())

    def fold(self) -> ComparisonFold:
        return ComparisonFold(self.learner, self.encoded, 0 if self.encoding is None else self.encoding.size)

    def size(self, show: int | None, eligible: int) -> int:
        return min(max(show or 2, 2), eligible)

    def check_decision(self, fold: Any, decision: Shown, eligible: list[str]) -> None:
        if len(decision.shown) != 2:
            return
        person = decision.person or ""
        numbers = {name: fold.number(name, row) for name, row in zip(decision.names, decision.rows)}
        pairs = {frozenset((numbers[a], numbers[b])) for a in numbers for b in numbers if a != b}
        left = pairs - {pair for who, pair in fold.asked if who == person}
        assert frozenset(numbers[name] for name in decision.shown) in (left or pairs)
        first, second = (numbers[name] for name in decision.shown)
        belief = fold.learner.posterior(fold.joined(), fold.users.get(person, len(fold.users)))
        assert decision.predicted is not None
        assert decision.predicted[0] == pytest.approx(float(belief.beats(first, second)), abs=2e-6)

    def answer(self, decision: Shown, drawn: Any) -> Given:
        how, best = drawn
        k, place = len(decision.shown), best % len(decision.shown)
        order = [place, *(i for i in range(k) if i != place)]
        form, lesson = {
            "best": ({"better": decision.shown[place]}, place),
            "order": ({"better": [decision.shown[i] for i in order]}, place if k == 2 else np.array(order)),
            "equal": ({"choice": "equal"}, EQUAL),
            "unsure": ({"choice": "cannot_judge"}, UNSURE),
            "none": ({"none": True}, UNSURE),
        }[how]
        return Given(form, lesson)

    def another_answer(self, decision: Shown, form: Mapping[str, Any]) -> dict[str, Any]:
        return {"choice": "equal"} if "none" in form else {"none": True}

    def check_explanation(self, why: Explanation, decision: Shown, forgot: bool) -> None:
        """What it comes from adds up to it."""
        assert sum(each.by for each in why.lessons) == pytest.approx(why.margin, abs=1e-9)


# ---------------------------------------------------------------------------- best-worst scaling


class BestWorstFold(Fold):
    """A lesson is (x, places shown, [best, worst])."""

    def __init__(self) -> None:
        self.learner: Any = learner_class(FIFTH)(3)
        self.state = self.learner.init(np.random.default_rng(0))

    def learn(self, decision: Shown, lesson: Any) -> None:
        self.state = self.learner.update(self.state, *lesson)

    def check(self, loop: Loop) -> None:
        assert identical(loop.projection.model.shared, self.state)


class BestWorstReference(Reference):
    """A kind of feedback from outside of heedful: of those shown, the best and the worst."""

    names, first = [f"i{j}" for j in range(6)], 6
    own, least = FIFTH, 2
    setups: ClassVar = {}
    answers = st.tuples(SOME, SOME)
    wrong: ClassVar = [
        {"best": "i0"},
        {"best": "i0", "worst": "i0"},
        {"best": "i0", "worst": "nobody"},
        {"clicks": ["i0"]},
        {},
    ]

    def create(self, path: Path, control: float, every: int) -> Loop:
        rows = [self.start(name) for name in self.names]
        self.encoding = infer(rows, identifier="id", kinds={"f0": "number", "f1": "number"})
        chosen = Settings(control=control, snapshot_every=every)
        return Loop.create(path, encoding=self.encoding, items=rows, learner=FIFTH, settings=chosen)

    def row(self, name: str, turn: Any) -> dict[str, Any]:
        j = int(name[1:])
        return {"id": name, "f0": float(j - turn), "f1": float(j * j % 5 + turn)}

    def fold(self) -> BestWorstFold:
        return BestWorstFold()

    def size(self, show: int | None, eligible: int) -> int:
        return min(show or 4, eligible)

    def answer(self, decision: Shown, drawn: Any) -> Given:
        shown, k = decision.places, len(decision.shown)
        best = drawn[0] % k
        pair = [shown[best], shown[(best + 1 + drawn[1] % (k - 1)) % k]]
        lesson = with_scores(self.encode(decision.rows), decision), np.array(shown), np.array(pair)
        return Given({"best": decision.names[pair[0]], "worst": decision.names[pair[1]]}, lesson)

    def another_answer(self, decision: Shown, form: Mapping[str, Any]) -> dict[str, Any]:
        return {"best": form["worst"], "worst": form["best"]}
