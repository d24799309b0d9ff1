"""The interaction of loops that show one item (k = 1): a banner, a price, a draft, a tool.

People say whether it was good: by a click or none, a thumb, or a reward. Everything else is as in a loop of rankings,
from whose interaction this one inherits. Routes are this with a price."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from heedful.core.validation import check_count
from heedful.evaluation.answers import Answer, Scale, judged
from heedful.evaluation.expected import Expected
from heedful.jit.kernel import Floats, Ints
from heedful.loop.interactions.coactive import Coactive
from heedful.loop.interactions.coactive.model import tells
from heedful.loop.interactions.lists import propose_list
from heedful.loop.interactions.one import texts
from heedful.loop.interactions.one.model import Draw, OneModel
from heedful.loop.interactions.one.prediction_report import reward_tally, squared_error
from heedful.loop.interactions.protocol import (
    Compare,
    ItemPrediction,
    ListValue,
    LoggedAnswer,
    Proposal,
    Question,
    Step,
)
from heedful.loop.model import View
from heedful.loop.packing import LoggedDecision
from heedful.loop.prediction_report import NumberTally
from heedful.loop.records import FeedbackRecord
from heedful.loop.settings import Manifest
from heedful.results.evaluation import Measure
from heedful.results.report import RewardDetails
from heedful.spaces.ranking import Ranking, WithBaseScore


class One(Coactive):
    """Feedback on a single item: clicks or none, thumbs, rewards, edits, or what would have been better."""

    name, words = "one", texts.WORDS
    model_type: type[Any] = OneModel
    forms = OneModel.forms
    details = RewardDetails
    rewarded = True
    scale: Scale

    def __init__(self, manifest: Manifest, learner: Any) -> None:
        super().__init__(manifest, learner)
        self._tells = tells(learner)
        low, high = manifest.settings.rewards or (0.0, 1.0)
        self.span, self.scale = (low, high), Scale(low, high, differ=high - low, apart=(high - low) / 2.0)

    @classmethod
    def make_learner(cls, spec: str, manifest: Manifest) -> Any:
        learner = super().make_learner(spec, manifest)  # where a request asks for two, people look at both
        return learner._replace(space=WithBaseScore(Ranking(2))) if tells(learner) else learner

    # ------------------------------------------------------------------------ deciding

    def check_show(self, show: object) -> None:
        check_count("show", show)

    def propose(self, view: View[Any], asked: Question, eligible: Ints | None, rng: np.random.Generator) -> Proposal:
        if not self._tells:
            return super().propose(view, asked, eligible, rng)
        request = asked.request._replace(show=asked.request.show or 1)
        draw = Draw(view.model, view, request.x, 2.0 * getattr(self.learner, "swap", 0.25))
        one, drawing = asked._replace(request=request), view._replace(model=draw)
        made = propose_list(
            drawing, one, self.manifest.settings, (None, draw.chance, None), rng, lambda _, x: self.rewards(view, x)
        )
        return self.with_sure(view, asked, made)

    def rewards(self, view: View[Any], x: Floats) -> Floats:
        """Return the expected reward of each of m candidates `x` (m, N), with N features each (m,)."""
        low, high, *_ = self.scale
        found: Floats = low + (high - low) * view.model.approvals(view, x)
        return found

    def predict(self, view: View[Any], x: Floats) -> list[ItemPrediction] | None:
        return [ItemPrediction(float(p)) for p in self.rewards(view, x)] if self._tells else None

    # ------------------------------------------------------------------------ taking feedback

    def why_unfit(self, feedback: FeedbackRecord, shown: Sequence[int]) -> str | None:
        if feedback.form == "reward" and not feedback.chosen and len(shown) != 1:
            return f"item: expected the item that was worth it, as {len(shown)} were shown, got none"
        return super().why_unfit(feedback, shown)

    # ------------------------------------------------------------------------ looking back

    def answer(self, decision: LoggedDecision, feedback: FeedbackRecord) -> Answer:
        said = super().answer(decision, feedback)
        found = judged(decision.record.shown, said, self.scale.low, self.scale.high)
        return said if found is None else Answer(dict([found]), stated=said.stated)

    def score(self, decision: LoggedDecision, answers: Sequence[FeedbackRecord]) -> float | None:
        """Return the reward of the item shown, by the first answer that judges it."""
        if len(decision.record.shown) != 1:
            return None
        return next((r for each in answers for r in self.answer(decision, each).values.values()), None)

    def expected(self, view: View[Any], step: Step) -> Expected:
        if not self._tells:
            return super().expected(view, step)
        return Expected(
            utilities=lambda items: view.model.margins(view, step.rows(items)),
            values=lambda items: self.rewards(view, step.rows(items)),
        )

    def measures(self) -> Sequence[tuple[Measure, Compare]]:
        return ((texts.SQUARED_ERROR, squared_error),)

    def list_measures(self) -> Sequence[tuple[Measure, ListValue]]:
        return ((texts.REWARD._replace(low=self.scale.low, high=self.scale.high), reward),)

    def tally(self) -> NumberTally | None:
        return reward_tally(self.scale.low, self.scale.high) if self._tells else None


def reward(said: LoggedAnswer) -> float | None:
    """Return the reward of a single item shown; None if there is none."""
    return next(iter(said.answer.values.values()), None) if len(said.shown) == 1 else None
