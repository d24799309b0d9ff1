"""The comparison interaction: a person says which of two, or of several, is better; the learner predicts who wins.

The model is `ChoiceModel`, in `model`: what is believed of everybody's utilities, of items known by number.
Learners name it `pairwise`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from heedful.jit.kernel import Ints
from heedful.loop.catalogue import Catalogue
from heedful.loop.interactions import telling
from heedful.loop.interactions.card import Card, Prediction, Setting, Widget
from heedful.loop.interactions.comparison import texts
from heedful.loop.interactions.comparison.learners import DEFAULT, check_purpose, chooser
from heedful.loop.interactions.comparison.model import ChoiceAnswer, ChoiceModel, why_unfit
from heedful.loop.interactions.comparison.question import check_two, propose_question
from heedful.loop.interactions.forms import BETTER, CHOICE, CLICKS, NONE, by_name
from heedful.loop.interactions.measure import Compared, Measure
from heedful.loop.interactions.options import KindChoice, LoopOption
from heedful.loop.interactions.protocol import Interaction, ItemPrediction, Past, Proposal, Question, Step
from heedful.loop.log import Event
from heedful.loop.model import Context, Person
from heedful.loop.packing import LoggedDecision
from heedful.loop.records import FeedbackRecord
from heedful.loop.settings import Manifest, Settings
from heedful.spaces.comparison import EQUAL

if TYPE_CHECKING:
    from heedful.inference.gp.posterior import Posterior
    from heedful.loop.explain import Explanation
    from heedful.loop.interactions.comparison.standing import Standings
    from heedful.loop.interactions.findings import Findings
    from heedful.loop.prediction_report import PredictionReport
    from heedful.loop.projection import Projection
    from heedful.loop.report import Arm, Report


class Comparison(Interaction[ChoiceModel]):
    """Feedback that says which of the items shown is better."""

    name, takes, command = "pairwise", "choices", "heedful init study items.csv --choices"
    loop = "a loop of choices"
    forms = by_name(CHOICE, BETTER, CLICKS, NONE)
    model_type = ChoiceModel
    compares_arms = False
    item_features, slow = "asked", True
    setting, default_learner, by_number = "choices", DEFAULT, True
    splits_items, takes_prior = True, False
    folds_items, takes_repeats, keeps_unshown = True, True, False
    mark_every, snapshot_most = 50, 1_000
    """Lessons take milliseconds, so states are kept often; people are a number each."""
    options = (
        LoopOption("choices", "Ask which of two is better, and learn what people prefer from that."),
        LoopOption("goal", "With --choices: what they are for.", str, "best|ranking", "best"),
        LoopOption("features", "With --choices: items that are like each other are liked alike."),
    )

    # ------------------------------------------------------------------------ manifest a loop

    @classmethod
    def choose(cls, given: Mapping[str, Any], learner: str | None) -> KindChoice:
        """Return the learner that a command was given, with the setting `choices` by its option --goal ("best" without
        one)."""
        return KindChoice(learner, {"choices": given["goal"] or "best"})

    @classmethod
    def check_settings(cls, settings: Settings) -> dict[str, Any]:
        """Check the settings of a loop of choices, of which `choices` says the goal: to find the best item, or the
        ranking. Return those that are kept in a form of their own. Raise ValueError, naming the setting."""
        check_purpose(settings.choices)
        return super().check_settings(settings)

    @classmethod
    def feature_names(cls, manifest: Manifest) -> list[str]:
        """Return the names of the items' features, by which an answer tells about other items."""
        return list(manifest.encoding.names)

    @classmethod
    def check_spec(cls, spec: str) -> None:
        """Raise ValueError, naming the parameter, if `spec` gives a learner parameters that it does not have."""
        chooser(spec, "best")

    @classmethod
    def make_learner(cls, spec: str, manifest: Manifest) -> Any:
        """Return the learner of choices that `spec` names, for the goal, features and shrinkage in `manifest`. Raise
        ValueError if it is not one of choices, or a parameter is wrong."""
        settings = manifest.settings
        return chooser(spec, settings.choices, manifest.encoding.size, settings.shrink)

    def caveats(self) -> list[str]:
        """Return a sentence on choices between arbitrary pairs."""
        if self.manifest.settings.control > 0.0:
            return []
        return [
            "control 0: only what it is least sure of is asked, so how well it foretells choices between any "
            "two cannot be said"
        ]

    @property
    def goal(self) -> str:
        """the purpose of the choices: to find the best, or to rank all"""
        return self.manifest.settings.choices or ""

    # ------------------------------------------------------------------------ how it speaks of itself

    def introduce(self) -> list[str]:
        """Return sentences on what is asked, by which rule, and for what."""
        names, rule = self.names, getattr(self.learner, "rule", "")
        told = "Each item is known by its name alone"
        if names:
            told = f"What is known of one item tells of others that are like it, by {len(names):,} features"
        best = self.goal == "best"
        expected = "which item is the best" if best else "the ranking of all items"
        asked = f"It asks which of two is better, by {self.manifest.learner}{f' and {rule}' if rule else ''}"
        return [f"{asked}, to find {expected}. {told}."]

    def describe(self) -> Card:
        """Return the description of a kind whose answers are the better of two; some questions are random, and the arms
        are not compared."""
        return (
            super()
            .describe()
            ._replace(
                title="Choices",
                answer="choice",
                question="Which of these is better?",
                prediction=Prediction("chance", "how likely each is to be chosen", 0, 1),
                score="how often what was likeliest was chosen",
                measure="Share of answers that were predicted",
                measure_help="How often the item that was likeliest to be chosen was chosen.",
                arms=("of the rule, the least certain", "of chance"),
                widget=Widget("pairs"),
                badge=f"choices: {self.goal}",
                settings=(
                    Setting("choices", "what they are for: to find the best, or to rank all", "best"),
                    Setting("repeats", "whether a pair is asked again before all were", True),
                ),
            )
        )

    def facts(self) -> dict[str, Any]:
        """Return the purpose of the choices."""
        return {"choices": self.goal}

    def example(self, model: ChoiceModel, shown: Sequence[str]) -> tuple[str, dict[str, Any]]:
        """Return the answer that the first is better."""
        return "prefers the first", {"choice": "first"} if len(shown) == 2 else {"better": [shown[0]]}

    def empty(self, given: Mapping[str, Any]) -> str:
        """Return why there was nothing to learn; that the question was asked is kept."""
        return ", but that this was asked" if given else ""

    def tell_explanation(self, told: Explanation) -> list[telling.Part]:
        """Return how likely each item shown was to be chosen, and the answers that this comes from, as text."""
        if told.prediction is None:
            return super().tell_explanation(told)
        return texts.explanation(told, ChoicePrediction(**told.prediction))

    def findings(self, found: Report) -> Findings:
        """Return a report in words: how often the likeliest item was chosen, and how many answers chose nothing."""
        told = super().findings(found)
        return told if found.prediction is None else told._replace(sections=(texts.section(found.prediction),))

    # ------------------------------------------------------------------------ the fold

    def fresh(self) -> ChoiceModel:
        """Return a model that has learned nothing."""
        return ChoiceModel(self.learner, self.manifest.encoding.size)

    def personal(self, model: ChoiceModel) -> Any:
        """Return a state like those kept for each person: a number."""
        return model.nobody()

    def on_item(self, model: ChoiceModel, event: Event, catalogue: Catalogue) -> str:
        """Take in a new item. What was learned of an item stays when it is withdrawn."""
        if event.arrays is not None:
            model.put(catalogue.number(event.subject or "", event.arrays), np.frombuffer(event.arrays, "<f4"))
        return ""

    def publish(self, model: ChoiceModel) -> Any:
        """Return the state itself: the next lesson begins with a copy."""
        return model.published()

    # ------------------------------------------------------------------------ reading

    def person(self, name: str | None) -> str | None:
        """Return the name of a person; all without a name are one person."""
        return name or ""

    def lacks(self, shared: Any, x: Ints) -> bool:
        """Return whether the state lacks an item, which is in the catalogue before the state knows it."""
        return bool(x.size) and int(x.max()) >= shared.n

    def order(self, model: ChoiceModel, shared: Any, own: Person | None, x: Ints) -> Ints:
        """Return the candidates by expected utility."""
        return np.argsort(-model.posterior(shared, own, x).mean, kind="stable")

    def predict(self, model: ChoiceModel, shared: Any, own: Person | None, x: Ints) -> list[ItemPrediction] | None:
        """Return the probability of each candidate to be chosen, if all of them were shown; None if it is not
        finite."""
        found = model.chances(shared, own, x)
        return None if found is None else [ItemPrediction(chance) for chance in found.tolist()]

    def standing(self, projection: Projection, person: str | None, people: Sequence[str] | None) -> Standings:
        """Return the ranking for a person, for some people together, or for all."""
        from heedful.loop.interactions.comparison.standing import standings

        return standings(projection, person, people)

    # ------------------------------------------------------------------------ deciding

    def eligible(self, model: ChoiceModel, shared: Any, own: Person | None, asked: Question) -> None:
        """Check that there are two candidates; all of them may be shown."""
        check_two(asked)

    def propose(
        self,
        model: ChoiceModel,
        shared: Any,
        own: Person | None,
        asked: Question,
        eligible: Ints | None,
        rng: Any,
    ) -> Proposal:
        """Return the pair that the learner's rule selects, or a random one, in random places."""
        return propose_question(model, shared, own, asked, self.manifest.settings.control, rng)

    # ------------------------------------------------------------------------ taking feedback

    def form(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the fields of feedback, with an edited order as a better order."""
        if isinstance(given.get("edit"), list | tuple):
            return {**given, "edit": None, "better": given["edit"]}
        return given

    def why_unfit(self, feedback: FeedbackRecord, shown: Sequence[int]) -> str | None:
        """Return why feedback does not fit: it takes two items to choose between, and of more the best or an order."""
        return why_unfit(feedback, len(shown))

    # ------------------------------------------------------------------------ looking back

    def explain(self, decision: LoggedDecision, context: Context, past: Past[ChoiceModel]) -> Explanation:
        """Return why the first two were asked about, and which answers said which is better."""
        from heedful.loop.explain import Explanation

        record, names = decision.record, decision.names
        if len(record.shown) < 2:
            raise LookupError(f"decision {decision.id} showed one item alone: there was nothing to choose between")
        pair: Ints = np.array(context.x[list(record.shown[:2])], np.int64)

        def lead(model: ChoiceModel) -> float:
            if model.shared.known <= pair.max():  # one of the two had not come yet
                return 0.0
            return float(_of(model, decision.person, pair).gap(0, 1)[0])

        model, moved = past.follow(lead)
        own = model.people.get(decision.person or "")
        believed = _of(model, decision.person, pair)
        gap, var = believed.gap(0, 1)
        asked = model.pairs_asked(model.shared, own, np.arange(model.shared.n))
        first, second = (int((asked == number).any(axis=1).sum()) for number in pair.tolist())
        weighed = ChoicePrediction(
            getattr(self.learner, "rule", None) if record.arm == "learned" else None,
            float(believed.beats(0, 1)),
            float(believed.better(0, 1)),
            float(np.sqrt(var)),
            first,
            second,
            0 if own is None else own.lessons,
        )
        return Explanation(
            decision.id,
            record.arm,
            names[record.shown[0]],
            names[record.shown[1]],
            _because(record.arm, weighed),
            float(gap),
            (),
            tuple(moved),
            weighed._asdict(),
        )

    def candidate(self, spec: str) -> ChoiceModel:
        """Return a model of another learner of choices."""
        size = self.manifest.encoding.size
        return ChoiceModel(chooser(spec, self.manifest.settings.choices, size), size)

    def measures(self) -> tuple[Measure, ...]:
        """Return the share of items that were expected to lose against what was chosen."""
        return (Measure("expected", texts.EXPECTED, "nothing was chosen", "More answers."),)

    def compare(self, models: Sequence[ChoiceModel], step: Step) -> Sequence[Compared | None]:
        """Return, for each item that was not chosen, 1 if it was expected to lose, 0 if to win, 1/2 if neither."""
        heard = models[0].lesson(step.context, step.feedback, step.extra)
        best = None if heard is None else chosen_place(heard)
        if heard is None or best is None:
            return (None,)
        means = np.array([_of(model, step.decision.person, heard.items).mean for model in models])
        others = np.delete(means, best, axis=1)
        values = (np.sign(means[:, best, None] - others) + 1.0) / 2.0
        return (Compared(values, np.ones(others.shape[1])),)

    # ------------------------------------------------------------------------ reporting

    def tally(self, model: ChoiceModel, shared: Any, people: dict[str, Person]) -> _Tally:
        """Return a counter of how often the prediction was chosen."""
        return _Tally(model, shared, people)

    def score(self, decision: LoggedDecision, answers: Sequence[FeedbackRecord]) -> float | None:
        """Return whether what the first answer put first was the likeliest; None if no answer put anything first."""
        from heedful.loop.interactions.comparison.prediction_report import best_of, share

        record = decision.record
        for feedback in answers:
            best = best_of(record.shown, feedback)
            if best is not None and record.predicted:
                return share(record.predicted, record.shown.index(best))
        return None

    def why_not_compared(self, learned: Arm, control: Arm, level: bool, forms: set[str]) -> str:
        """Return that the arms are not compared."""
        return "the rule asks what is least certain, so that fewer of its questions are predicted says nothing"


def comparison_settings(goal: Literal["best", "ranking"], **more: Any) -> Settings:
    """Return the settings of a loop that asks which of two is better, to find the best or to rank all."""
    return Settings(choices=goal, **more)


class ChoicePrediction(NamedTuple):
    """The model's belief about two items when it asked which is better."""

    rule: str | None
    """the rule that selected them: bald, mes, eubo or random; None if they were selected at random or by somebody else,
    or the learner has no rule"""
    chosen: float
    """the probability that the first would be chosen, including the noise of a choice"""
    better: float
    """the probability that the first is better"""
    spread: float
    """the standard deviation of the margin, the utility of the first minus that of the second"""
    asked_first: int
    """how many pairs with the first item the person had been asked; `asked_second` with the second"""
    asked_second: int
    answers: int
    """how many answers the person had given in all"""


def _because(arm: str, weighed: ChoicePrediction) -> str:
    if arm == "control":
        return "this was a control: chance picked what was asked"
    if arm == "imported":
        return "somebody else asked this; the margin is what the model believed at that time"
    aims = {
        "bald": "the answer says most about what the person likes",
        "mes": "it was least certain what would be answered",
        "eubo": "the better one is likely to be among the best",
        "random": "chance picked it",
    }
    why = aims.get(weighed.rule or "")
    return "the learner asked this" if why is None else f"of all that was left to ask, {why} ({weighed.rule})"


def _of(model: ChoiceModel, person: str | None, items: Ints) -> Posterior:
    return model.posterior(model.shared, model.people.get(person or ""), items)


def chosen_place(heard: ChoiceAnswer) -> int | None:
    """Return the place of what an answer put first; None if all were called equally good."""
    answer: Any = heard.answer
    if isinstance(answer, np.ndarray):
        return int(answer[0])
    return None if answer == EQUAL else int(answer)


# ---------------------------------------------------------------------------- what is reported


class _Tally:
    """A counter of how often the prediction was chosen."""

    def __init__(self, model: ChoiceModel, shared: Any, people: dict[str, Person]) -> None:
        from heedful.loop.interactions.comparison.prediction_report import ChoiceTally

        self._model, self._shared, self._people = model, shared, people
        self._compared = ChoiceTally()

    def contradicts(self, step: Step, lesson: Any) -> bool:
        """Return whether the model is sure that another item shown is better than the one put first."""
        from heedful.loop.interactions.comparison.standing import SURE

        best = chosen_place(lesson)
        if best is None:
            return False
        k = lesson.items.size
        believed = self._model.posterior(self._shared, self._people.get(step.decision.person or ""), lesson.items)
        others = np.array([i for i in range(k) if i != best])
        return bool(believed.better(others, np.full(k - 1, best)).max() >= SURE)

    def take(self, decision: LoggedDecision, given: Sequence[tuple[Event, FeedbackRecord]]) -> None:
        """Take in a decision with the feedback on it that counts."""
        self._compared.take(decision, given)

    def report(self) -> PredictionReport:
        """Return the share of answers that chose the likeliest item, next to guessing."""
        return self._compared.report()
