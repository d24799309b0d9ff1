"""The reference of loops of items without features, which people rate or buy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import strategies as st

from heedful import Loop, Settings
from heedful.core.conformance import identical
from heedful.loop.interactions.rating.learners import rater
from heedful.results.explanation import Why
from heedful.spaces.slate import SlateContext, WeightedRatings
from references import SOME, Fold, Given, Reference, Shown

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
        assert {name: person.state for name, person in model.people.items()} == self.numbers
        for person in self.numbers:
            consumed = {self.names[j] for j in model.consumed_items(model.view(person)).tolist()}
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

    def check_explanation(self, why: Why, decision: Shown, forgot: bool) -> None:
        """What was expected then, whatever was undone since, and whatever state it is folded from; nobody knows any
        more what was learned from people who were forgotten."""
        if decision.predicted and not forgot:
            assert why.score == pytest.approx(decision.predicted[0], rel=1e-5)
