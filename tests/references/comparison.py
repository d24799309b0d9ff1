"""The reference of loops of two items or more, of which people choose."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import strategies as st

from heedful import Loop, Settings, infer
from heedful.core.conformance import identical
from heedful.core.fold import copy_arrays
from heedful.loop.interactions.comparison.learners import chooser
from heedful.spaces.comparison import EQUAL, UNSURE, ComparisonPool
from references import SOME, Fold, Given, Reference, Shown


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
        assert {name: person.state for name, person in model.people.items()} == self.users
        assert identical(model.shared.learned, self.state)
        names = {user: name for name, user in self.users.items()}
        asked = model.shared.asked[: model.shared.rows].tolist()
        assert {(names[user], frozenset((a, b))) for user, a, b in asked} == self.asked


class ComparisonReference(Reference):
    """Two items or more, of which people choose."""

    least = 2
    lives = 10
    setups: ClassVar = {
        "learner": st.sampled_from(["gp", "hierarchical-gp:every=3", "gp:rule=random,lapse=0.1"]),
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
