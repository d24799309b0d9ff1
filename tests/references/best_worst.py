"""The reference of loops of of a kind from outside of heedful, `fifth.py`: the best and the worst of those shown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from hypothesis import strategies as st

from heedful import Loop, Settings, infer
from heedful.core.conformance import identical
from heedful.learners.registry import learner_class
from references import SOME, Fold, Given, Reference, Shown, with_scores

FIFTH = f"{Path(__file__).parents[1] / 'fifth.py'}:BestWorst"


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
