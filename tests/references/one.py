"""The reference of loops that show one item, which people judge."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st

from references import SOME, Given, Shown, with_scores
from references.coactive import FORMS, CoactiveFold, CoactiveReference, Verdict


class OneFold(CoactiveFold):
    """What all share, and an offset for each person."""

    alone = True

    def margin(self, person: str | None, x: Any) -> float:
        """The log-odds of a thumb up."""
        w, state, learner = self.effective(), self.shared, self.learner
        if person in self.people and self.shrink:
            (state, n), learner = self.people[person], self.own
            w[:-1] += n / (n + self.shrink) * learner.weights(state)[:-1]
        usual = math.fsum(a * b for a, b in zip(state.m, state.usual))
        return float(state.m[-1]) - usual + math.fsum(a * b for a, b in zip(w, x))

    def chance(self, person: str | None, x: Any) -> float:
        """How probable a thumb up is."""
        return 1.0 / (1.0 + math.exp(-self.margin(person, x)))


class OneReference(CoactiveReference):
    """One item of several; a click or a thumb up is the highest reward, none or a thumb down the lowest."""

    lives = 25
    setups: ClassVar = {
        "learner": st.sampled_from(["posterior", "posterior:swap=0", "perceptron", "dueling-bandit"]),
        "k": st.just(1),
        "shrink": st.sampled_from([0.0, 1.5]),
    }
    answers = st.tuples(
        st.sampled_from(["reward", *(form for form in FORMS if form not in ("rating", "grade", "choice"))]),
        st.lists(SOME, min_size=1, max_size=4),
        st.sampled_from([1.0, -1.0]),
    )
    wrong: ClassVar = [
        {"clicks": ["nobody"]},
        {"reward": 1.5},
        {"reward": "much"},
        {"grade": {"i0": 1}},
        {"rating": {"i0": 1}},
        {"choice": "first"},
        {"thumb": "sideways"},
        {},
    ]

    def fold(self) -> OneFold:
        return OneFold(self.made, self.shrink)

    def check_decision(self, fold: OneFold, decision: Shown, eligible: list[str]) -> None:
        super().check_decision(fold, decision, eligible)
        if not self.learner.startswith("posterior"):
            assert not decision.predicted
        elif decision.shown and decision.arm != "imported":
            x = with_scores(self.encode(decision.rows), decision)
            [place] = decision.places
            assert decision.predicted == pytest.approx([fold.chance(decision.person, x[place])], abs=1e-6)
            if decision.arm == "learned" and self.learner.endswith("swap=0"):
                best = max(fold.margin(decision.person, each) for each in x)
                assert fold.margin(decision.person, x[place]) == pytest.approx(best, abs=1e-6)

    def answer(self, decision: Shown, drawn: Any) -> Given:
        form, some, _ = drawn
        x, shown = with_scores(self.encode(decision.rows), decision), decision.places
        if form == "reward":
            share = some[0] % 5 / 4.0
            return self.told(decision, form, {"reward": share}, Verdict(x, x[shown[0]], x[shown], share))
        given = super().answer(decision, drawn)
        if not self.learner.startswith("posterior") or given.refused:
            return given
        share = {"clicks": float(bool(given.form.get("clicks"))), "none": 0.0}.get(form)
        if form == "action":
            share = max(0.0, {"view": 0.05, "buy": 1.0, "hide": -0.5}[given.form["action"]])
        return given if share is None else Given(given.form, Verdict(x, x[shown[0]], x[shown], share))

    def chained(self, decision: Shown, id: str, later: Shown, some: int) -> Given:
        given = super().chained(decision, id, later, some)
        if given.lesson is None and self.learner.startswith("posterior"):  # the only item was clicked
            x, [place] = with_scores(self.encode(decision.rows), decision), decision.places
            return Given(given.form, Verdict(x, x[place], x[[place]], 1.0))
        return given

    def told(self, decision: Shown, form: str, given: dict[str, Any], lesson: Any) -> Given:
        if form == "reward" and not self.learner.startswith("posterior"):
            return Given(given, None, refused=True)
        return super().told(decision, form, given, lesson)
