"""The comparison interaction: people say which of two or more items is better, and the learner predicts which is
chosen.

Its model (`model.ChoiceModel`) is a posterior over each person's utilities of items, known by number. Learners name
this interaction `pairwise`. The file is long because `Comparison` answers every method of `Interaction`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from heedful.core.wording import count
from heedful.evaluation.answers import Answer, likeliest_chosen
from heedful.evaluation.expected import Expected, best_expected
from heedful.jit.kernel import Floats, Ints
from heedful.loop.interactions.comparison import texts
from heedful.loop.interactions.comparison.learners import DEFAULT, check_purpose, chooser
from heedful.loop.interactions.comparison.model import FORMS, ChoiceModel, why_unfit
from heedful.loop.interactions.comparison.question import check_two, propose_question
from heedful.loop.interactions.contributions import gradient, none
from heedful.loop.interactions.options import LoopOption
from heedful.loop.interactions.protocol import (
    Compare,
    Interaction,
    ItemPrediction,
    Proposal,
    Question,
    Readable,
    Step,
    Tally,
)
from heedful.loop.model import View
from heedful.loop.packing import LoggedDecision
from heedful.loop.records import FeedbackRecord
from heedful.loop.settings import Manifest, Settings
from heedful.results.evaluation import Measure
from heedful.results.explanation import Contributions
from heedful.results.report import ChoiceDetails

if TYPE_CHECKING:
    from heedful.results.board import Board
    from heedful.results.report import PredictionReport


SCORE = "utility"


class Comparison(Interaction[ChoiceModel]):
    """Feedback that says which of the items shown is better; the learner chooses which items to ask about."""

    name, words = "pairwise", texts.WORDS
    model_type, forms = ChoiceModel, FORMS
    splits_items = True
    setting, default_learner, by_number = "choices", DEFAULT, True
    details = ChoiceDetails
    options = (
        LoopOption("choices", "Ask which of two is better, and learn what people prefer from that."),
        LoopOption("goal", "With --choices: what they are for.", str, "best|ranking", "best", "choices"),
    )

    # ------------------------------------------------------------------------ making a loop

    @classmethod
    def check_settings(cls, settings: Settings) -> dict[str, Any]:
        check_purpose(settings.choices)
        return super().check_settings(settings)

    @classmethod
    def make_learner(cls, spec: str, manifest: Manifest) -> Any:
        return chooser(spec, manifest.settings.choices, manifest.encoding.size)

    # ------------------------------------------------------------------------ how it speaks of itself

    def facts(self) -> dict[str, Any]:
        return {"choices": self.manifest.settings.choices}

    def gaps(self) -> dict[str, Any]:
        told = "Each item is known by its name alone"
        if self.names:
            told = f"What is known of one item tells of others that are like it, by {count(len(self.names), 'feature')}"
        rule = getattr(self.learner, "rule", "")
        aim = "which item is the best" if self.manifest.settings.choices == "best" else "the ranking of all items"
        return super().gaps() | {"aim": aim, "rule": f" and {rule}" if rule else "", "items": told}

    def example(self, model: ChoiceModel, shown: Sequence[str]) -> tuple[str, dict[str, Any]]:
        return "prefers the first", {"choice": "first"} if len(shown) == 2 else {"better": [shown[0]]}

    def prediction_sentences(self, found: PredictionReport) -> Sequence[str]:
        equal, unsure = found.details["equal"], found.details["unsure"]
        return (f"Equally good: {equal:,}; could not judge, or chose nothing: {unsure:,}.",)

    # ------------------------------------------------------------------------ reading

    def order(self, view: View[ChoiceModel], x: Ints) -> Ints:
        return np.argsort(-view.model.posterior(view, x).mean, kind="stable")

    def predict(self, view: View[ChoiceModel], x: Ints) -> list[ItemPrediction] | None:
        found = view.model.chances(view, x)
        return None if found is None else [ItemPrediction(chance) for chance in found.tolist()]

    def standing(self, history: Readable, person: str | None, people: Sequence[str] | None) -> Board:
        from heedful.loop.interactions.comparison.standing import board

        return board(history, person, people)

    # ------------------------------------------------------------------------ deciding

    def eligible(self, view: View[ChoiceModel], asked: Question) -> None:
        check_two(asked)

    def propose(
        self, view: View[ChoiceModel], asked: Question, eligible: Ints | None, rng: np.random.Generator
    ) -> Proposal:
        return propose_question(view, asked, self.manifest.settings.control, rng)

    # ------------------------------------------------------------------------ taking feedback

    def why_unfit(self, feedback: FeedbackRecord, shown: Sequence[int]) -> str | None:
        return why_unfit(feedback, len(shown))

    # ------------------------------------------------------------------------ looking back

    def sure(self, view: View[ChoiceModel], x: Ints) -> list[float] | None:
        items: Ints = np.array(x, np.int64)
        if items.size < 2 or items.max() >= view.shared.n:
            return None
        upper: Ints = np.arange(items.size - 1)
        probabilities: list[float] = view.model.posterior(view, items).better(upper, upper + 1).tolist()
        return probabilities

    def item_scores(self, view: View[ChoiceModel], x: Ints, places: Sequence[int]) -> Floats:
        items: Ints = np.array(x[list(places)], np.int64)
        if items.max() >= view.shared.n:
            return np.zeros(items.size)
        return np.asarray(view.model.posterior(view, items).mean, np.float64)

    def contributions(self, view: View[ChoiceModel], x: Ints, place: int) -> Contributions:
        """To first order: a feature times the derivative, at this item's features, of the utility that the model
        expects of a new item."""
        if not self.names:
            return none("items are known by their names alone: they have no features", SCORE)
        if not hasattr(self.learner, "utility_gradient"):
            return none(f"{type(self.learner).__name__} has no derivative by the features: there are no parts", SCORE)
        model, number = view.model, int(x[place])
        slopes = self.learner.utility_gradient(model.ready(view.shared), model.user(view), number)
        return gradient(self.names, slopes, view.shared.things[number], SCORE)

    def measures(self) -> Sequence[tuple[Measure, Compare]]:
        expected = Measure("expected", texts.EXPECTED, "nothing was chosen", "More answers.")
        return ((expected, lambda said: best_expected(said.shown, said.answer, said.models)),)

    # ------------------------------------------------------------------------ reporting

    def tally(self) -> Tally:
        from heedful.loop.interactions.comparison.prediction_report import WORDING
        from heedful.loop.prediction_report import ChoiceTally

        return ChoiceTally(WORDING)

    def expected(self, view: View[ChoiceModel], step: Step) -> Expected:
        def better(items: Sequence[int], other: int) -> Floats:
            posterior, k = view.model.posterior(view, step.rows([*items, other])), len(items)
            return posterior.better(np.arange(k), np.full(k, k))

        return Expected(lambda items: np.asarray(view.model.posterior(view, step.rows(items)).mean), better=better)

    def answer(self, decision: LoggedDecision, feedback: FeedbackRecord) -> Answer:
        answer, shown = super().answer(decision, feedback), decision.record.shown
        if not answer.best:
            return answer
        best: Any = answer.best[0]
        return Answer(best=answer.best, pairs=tuple([(best, j) for j in shown if j != best]))

    def score(self, decision: LoggedDecision, answers: Sequence[FeedbackRecord]) -> float | None:
        record = decision.record
        scores = (likeliest_chosen(record.shown, record.predicted, self.answer(decision, each)) for each in answers)
        return next((score for score in scores if score is not None), None)


def comparison_settings(goal: Literal["best", "ranking"], **more: Any) -> Settings:
    """Return the settings of a loop that asks which of two items is better.

    `goal` is "best", to find the best item, or "ranking", to rank all; `more` are other fields of `Settings`."""
    return Settings(choices=goal, **more)
