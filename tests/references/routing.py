"""The reference of loops of routes: for each prompt a model, whose answer people judge."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import strategies as st

from heedful import Loop, Settings
from heedful.loop.interactions.routing import Routing
from heedful.loop.interactions.routing.table import embeddings
from references import SOME, Given, Reference, Shown
from references.coactive import Better, Verdict
from references.one import OneFold

WEIGHT = 0.05
"""The cost weight of the loop."""


class RoutingFold(OneFold):
    """What all share, and an offset for each person, over a feature for each model and one for each number of the
    prompt and each model."""

    def __init__(self, learner: Any, shrink: float, features: list[str]) -> None:
        super().__init__(learner, shrink)
        self.features = features

    def x(self, name: str, prompt: Any) -> Any:
        """The features of a model for a prompt (2,), without costs, which are not learned from."""
        numbers = dict(zip(("embedding[0]", "embedding[1]"), prompt))
        found = np.zeros(len(self.features))
        for j, feature in enumerate(self.features):
            of, cross, model = feature.rpartition(" × ")
            if model == f"id={name}":
                found[j] = numbers[of] if cross else 1.0
        return found

    def effective(self) -> Any:
        w = super().effective()
        w[-1] = 0.0  # nobody gives scores
        return w


class RoutingReference(Reference):
    """A model for each prompt; three of five are on offer."""

    first = 3
    ways = ("names", "inline", "all", "recorded")
    fields: ClassVar = {"prompt": st.tuples(*[st.sampled_from([-1.0, 0.0, 0.5, 2.0])] * 2)}
    lives = 20
    setups: ClassVar = {
        "learner": st.sampled_from(["posterior", "posterior:prior=4"]),
        "shrink": st.sampled_from([0.0, 1.5]),
    }
    answers = st.tuples(
        st.sampled_from(["thumb", "reward", "clicks", "edit", "choice", "better", "none"]),
        SOME,
        st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    )
    wrong: ClassVar = [
        {"thumb": "sideways"},
        {"thumb": "up", "item": "nobody"},
        {"edit": {"changed": 1.5}},
        {"edit": {"from": "a"}},
        {"reward": -1},
        {"grade": {"i0": 1}},
        {"choice": "third"},
        {},
    ]

    def __init__(self, learner: str, shrink: float) -> None:
        self.learner, self.shrink = learner, shrink

    def create(self, path: Path, control: float, every: int) -> Loop:
        rows = [self.start(name) for name in self.names]
        items, context, crosses = Routing.arrange(rows, "id", embeddings(2))
        loop = Loop.create(
            path,
            encoding=items,
            items=rows[: self.first],
            learner=self.learner,
            settings=Settings(control=control, shrink=self.shrink, snapshot_every=every, cost_weight=WEIGHT),
            context=context,
            crosses=crosses,
        )
        self.made, self.features = loop.learner, loop.feature_names
        return loop

    def row(self, name: str, turn: Any) -> dict[str, Any]:
        return {"id": name, "cost": float(int(name[1:]) + 2 * turn)}

    def fold(self) -> RoutingFold:
        return RoutingFold(self.made, self.shrink, self.features)

    def asked(self, drawn: Mapping[str, Any], n: int) -> dict[str, Any]:
        show = drawn["show"] if drawn["show"] in (1, 2) else None
        return {"context": {"embedding": list(drawn["prompt"])}, "show": show}

    def size(self, show: int | None, eligible: int) -> int:
        return min(show or 1, eligible)

    def check_decision(self, fold: RoutingFold, decision: Shown, eligible: list[str]) -> None:
        if decision.arm == "imported":
            return
        chances = [fold.chance(decision.person, fold.x(name, decision.context["embedding"])) for name in decision.names]
        by_name = dict(zip(decision.names, chances))
        assert decision.predicted == pytest.approx([by_name[name] for name in decision.shown], abs=1e-6)
        if decision.arm == "control":
            assert decision.shown == decision.names[: len(decision.shown)]
        elif len(decision.shown) == 2:  # the first is drawn; the second is the best of the others
            cost = {row["id"]: row["cost"] for row in decision.rows}
            utility = {name: by_name[name] - WEIGHT * cost[name] for name in decision.names}
            rest = max(utility[name] for name in decision.names if name != decision.shown[0])
            assert utility[decision.shown[1]] == pytest.approx(rest, abs=1e-6)

    def answer(self, decision: Shown, drawn: Any) -> Given:
        form, some, share = drawn
        fold, shown = RoutingFold(self.made, self.shrink, self.features), decision.shown
        x = {name: fold.x(name, decision.context["embedding"]) for name in decision.names}
        judged = shown[some % len(shown)]
        of_all, of_shown = (np.array([x[name] for name in names]) for names in (decision.names, shown))
        if form in ("thumb", "reward", "edit"):
            item = {"item": judged} if len(shown) > 1 or some % 3 else {}
            up = share > 0.5
            said: dict[str, tuple[dict[str, Any], float]] = {
                "thumb": ({"thumb": "up" if up else "down"}, float(up)),
                "reward": ({"reward": share}, share),
                "edit": ({"edit": {"changed": share}}, 1.0 - share),
            }
            given, reward = said[form]
            return Given(given | item, Verdict(of_all, x[judged], of_shown, reward))
        if form == "choice":
            said = ["first", "second", "equal"][some % 3]
            if len(shown) != 2:
                return Given({"choice": said}, None, refused=True)
            winner = {"first": 0, "second": 1}.get(said)
            pair = np.array([x[name] for name in shown])
            return Given({"choice": said}, None if winner is None else Better(pair, [0, 1], [winner]))
        if form == "better":
            places = decision.places
            best = some % len(decision.names)
            return Given(
                {"better": [decision.names[best]]},
                Better(np.array([x[name] for name in decision.names]), places, [best]),
            )
        clicked = [judged] if form == "clicks" else []
        told: dict[str, Any] = {"clicks": clicked} if clicked else {"none": True}
        if len(shown) == 1:
            return Given(told, Verdict(of_all, x[judged], of_shown, float(bool(clicked))))
        return Given(
            told, Better(of_all, decision.places, [decision.names.index(judged)], clicked=True) if clicked else None
        )

    def another_answer(self, decision: Shown, form: Mapping[str, Any]) -> dict[str, Any]:
        return {"better": [decision.names[0]]} if "none" in form else {"none": True}
