"""The reference of loops of items, which people grade."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from hypothesis import strategies as st

from heedful import Loop, Settings, infer
from heedful.core.conformance import identical
from heedful.loop.interactions.ordinal.learners import grader
from references import PRIOR, SOME, Fold, Given, Reference, Shown, by_prior, with_prior, with_scores

N_RANKS = 4
SHARED = ["prank:n_ranks=4", "ordinal-logistic:n_ranks=4"]
WITH_OFFSETS = "ordinal-logistic:n_ranks=4"


class OrdinalFold(Fold):
    """What all share and what is a person's own, by the learner's own functions. A lesson is [(x, grade), ...]."""

    def __init__(self, spec: str, shrink: float) -> None:
        self.learner, self.shrink = grader(spec, 3, shrink), shrink
        self.cut = spec in SHARED
        self.rng = np.random.default_rng(0)
        self.shared = self.learner.init(self.rng)
        self.own: dict[str, tuple[Any, int]] = {}

    def row(self, x: Any) -> Any:
        return x if self.cut else np.append(x, 1.0)

    def score(self, person: str | None, x: Any) -> float:
        w, a = self.learner.weights(self.shared), 0.0
        if person in self.own:
            own, _ = self.own[person]
            w, a = w + own.v, own.a
        return math.fsum(wi * xi for wi, xi in zip(w, x)) - a

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
            own, n = self.own.get(person) or (self.learner.stranger(), 0)
            self.own[person] = self.learner.learn_offset(self.shared, own, x, y, self.shrink), n + 1
        self.shared = self.learner.update(self.shared, self.row(x), 0, y)

    def check(self, loop: Loop) -> None:
        model = loop.projection.model
        assert identical(model.shared, self.shared)
        assert set(model.people) == set(self.own)
        for person, (own, n) in self.own.items():
            assert model.people[person].lessons == n
            assert identical(model.people[person].state, own)


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
        self.learner, self.k, self.shrink = learner, k, shrink if learner == WITH_OFFSETS else 0.0

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
        elif decision.arm == "learned" and all(len(each) == 1 for each in may.values()):
            best = sorted((min(each) for each in may.values()), reverse=True)
            assert list(decision.predicted) == best[: len(decision.shown)]

    def answer(self, decision: Shown, drawn: Any) -> Given:
        given = {decision.names[j % len(decision.names)]: grade for j, grade in drawn}
        x = dict(zip(decision.names, with_scores(self.encode(decision.rows), decision)))
        in_turn = [*decision.shown, *(name for name in decision.names if name not in decision.shown)]
        return Given({"grade": given}, [(x[name], given[name]) for name in in_turn if name in given])

    def another_answer(self, decision: Shown, form: Mapping[str, Any]) -> dict[str, Any]:
        return {"grade": {name: grade % N_RANKS + 1 for name, grade in form["grade"].items()}}
