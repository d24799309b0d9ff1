"""The comparison interaction: a person says which of two, or of several, is better; the learner predicts who wins.

The model is `ChoiceModel`, in `model`: what is believed of everybody's utilities, of items known by number.
Learners name it `pairwise`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from heedful.jit.kernel import Ints
from heedful.loop.catalogue import Catalogue
from heedful.loop.interactions import telling
from heedful.loop.interactions.card import Card, Prediction, Setting, Widget
from heedful.loop.interactions.comparison import texts
from heedful.loop.interactions.comparison.learners import DEFAULT, check_purpose, chooser
from heedful.loop.interactions.comparison.model import ChoiceModel, Heard, unfit
from heedful.loop.interactions.comparison.question import check_two, propose_question
from heedful.loop.interactions.forms import BETTER, CHOICE, CLICKS, NONE, by_name
from heedful.loop.interactions.options import Chosen, LoopOption
from heedful.loop.interactions.protocol import Interaction, Past, Predicted, Proposal, Question, Step
from heedful.loop.log import Event
from heedful.loop.model import Context, Person
from heedful.loop.packing import LoggedDecision
from heedful.loop.records import FeedbackRecord
from heedful.loop.settings import Manifest, Settings
from heedful.spaces.comparison import EQUAL

if TYPE_CHECKING:
    from heedful.inference.gp.posterior import Posterior
    from heedful.loop.counterfactual import Replayed
    from heedful.loop.explain import Explanation
    from heedful.loop.interactions.comparison.standing import Standings
    from heedful.loop.interactions.findings import Findings
    from heedful.loop.prediction_report import PredictionReport
    from heedful.loop.projection import Projection
    from heedful.loop.report import Arm, Report


class Comparison(Interaction[ChoiceModel]):
    """What is shown is answered by what is better of it."""

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
    """its lessons take milliseconds, and its people are a number each"""
    options = (
        LoopOption("choices", "Ask which of two is better, and learn what people prefer from that."),
        LoopOption("goal", "With --choices: what they are for.", str, "best|ranking", "best"),
        LoopOption("features", "With --choices: items that are like each other are liked alike."),
    )

    # ------------------------------------------------------------------------ manifest a loop

    @classmethod
    def choose(cls, given: Mapping[str, Any], learner: str | None) -> Chosen:
        """What choices are for."""
        return Chosen(learner, {"choices": given["goal"] or "best"})

    @classmethod
    def check_settings(cls, settings: Settings) -> dict[str, Any]:
        """What choices are for."""
        check_purpose(settings.choices)
        return super().check_settings(settings)

    @classmethod
    def feature_names(cls, manifest: Manifest) -> list[str]:
        """Those of the items, which tell what one says of others."""
        return list(manifest.encoding.names)

    @classmethod
    def check_spec(cls, spec: str) -> None:
        """For a purpose that any learner takes."""
        chooser(spec, "best")

    @classmethod
    def make_learner(cls, spec: str, manifest: Manifest) -> Any:
        """One whose space is a Choice."""
        settings = manifest.settings
        return chooser(spec, settings.choices, manifest.encoding.size, settings.shrink)

    def caveats(self) -> list[str]:
        """Of choices between any two."""
        if self.manifest.settings.control > 0.0:
            return []
        return [
            "control 0: only what it is least sure of is asked, so how well it foretells choices between any "
            "two cannot be said"
        ]

    @property
    def goal(self) -> str:
        """What choices are for."""
        return self.manifest.settings.choices or ""

    # ------------------------------------------------------------------------ how it speaks of itself

    def introduce(self) -> list[str]:
        """What is asked, by which rule, to find what."""
        names, rule = self.names, getattr(self.learner, "rule", "")
        told = "Each item is known by its name alone"
        if names:
            told = f"What is known of one item tells of others that are like it, by {len(names):,} features"
        best = self.goal == "best"
        expected = "which item is the best" if best else "the ranking of all items"
        asked = f"It asks which of two is better, by {self.manifest.learner}{f' and {rule}' if rule else ''}"
        return [f"{asked}, to find {expected}. {told}."]

    def describe(self) -> Card:
        """The better of two; chance asks some of the questions, and the two arms are not compared."""
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
        """What choices are for."""
        return {"choices": self.goal}

    def example(self, model: ChoiceModel, shown: Sequence[str]) -> tuple[str, dict[str, Any]]:
        """The first is better."""
        return "prefers the first", {"choice": "first"} if len(shown) == 2 else {"better": [shown[0]]}

    def empty(self, given: Mapping[str, Any]) -> str:
        """That it was asked is kept."""
        return ", but that this was asked" if given else ""

    def tell_explanation(self, told: Explanation) -> list[telling.Part]:
        """Lines for an explanation: how likely each item shown was to be chosen, and the answers that this came
        from."""
        if told.prediction is None:
            return super().tell_explanation(told)
        return texts.explanation(told, ChoicePrediction(**told.prediction))

    def tell_replays(self, folds: Sequence[Replayed]) -> list[telling.Part]:
        """How often each had what was chosen ahead."""
        return telling.agreements(folds, "nothing was chosen so far")

    def findings(self, found: Report) -> Findings:
        """Return a report in words: how often the likeliest item was chosen, and how many answers chose nothing."""
        told = super().findings(found)
        return told if found.prediction is None else told._replace(sections=(texts.section(found.prediction),))

    # ------------------------------------------------------------------------ the fold

    def fresh(self) -> ChoiceModel:
        """A model that has learned nothing."""
        return ChoiceModel(self.learner, self.manifest.encoding.size)

    def personal(self, model: ChoiceModel) -> Any:
        """One person's own state: a number."""
        return model.nobody()

    def on_item(self, model: ChoiceModel, event: Event, catalogue: Catalogue) -> str:
        """An item is known from when it comes; what was said of it stays when it goes."""
        if event.arrays is not None:
            model.put(catalogue.number(event.subject or "", event.arrays), np.frombuffer(event.arrays, "<f4"))
        return ""

    def publish(self, model: ChoiceModel) -> Any:
        """The state itself: the next lesson begins with a copy."""
        return model.published()

    # ------------------------------------------------------------------------ reading

    def person(self, name: str | None) -> str | None:
        """All who have no name are one person."""
        return name or ""

    def lacks(self, shared: Any, x: Ints) -> bool:
        """An item that is being taken in stands on the catalogue before the state knows it."""
        return bool(x.size) and int(x.max()) >= shared.n

    def order(self, model: ChoiceModel, shared: Any, own: Person | None, x: Ints) -> Ints:
        """By expected utility."""
        return np.argsort(-model.believed(shared, own, x).mean, kind="stable")

    def predict(self, model: ChoiceModel, shared: Any, own: Person | None, x: Ints) -> list[Predicted] | None:
        """How likely each is to be chosen, were all of these shown; None where that is no number."""
        found = model.chances(shared, own, x)
        return None if found is None else [Predicted(chance) for chance in found.tolist()]

    def standing(self, projection: Projection, person: str | None, people: Sequence[str] | None) -> Standings:
        """For a person, for some people together, or for all."""
        from heedful.loop.interactions.comparison.standing import standings

        return standings(projection, person, people)

    # ------------------------------------------------------------------------ deciding

    def eligible(self, model: ChoiceModel, shared: Any, own: Person | None, asked: Question) -> None:
        """All candidates, where there are two."""
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
        """The pair that the rule gives most, or one that chance picks, in places that are drawn."""
        return propose_question(model, shared, own, asked, self.manifest.settings.control, rng)

    # ------------------------------------------------------------------------ taking feedback

    def form(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """An order that was edited is a better one."""
        if isinstance(given.get("edit"), list | tuple):
            return {**given, "edit": None, "better": given["edit"]}
        return given

    def unfit(self, feedback: FeedbackRecord, shown: Sequence[int]) -> str | None:
        """It takes two to choose between; of more, the best or an order of them."""
        return unfit(feedback, len(shown))

    # ------------------------------------------------------------------------ looking back

    def explain(self, decision: LoggedDecision, context: Context, past: Past[ChoiceModel]) -> Explanation:
        """Why the first two were asked about, and which answers said which is better."""
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

    def counterfactual(self, spec: str) -> _Counterfactual:
        """How often what another learner would have predicted was chosen."""
        size = self.manifest.encoding.size
        return _Counterfactual(ChoiceModel(chooser(spec, self.manifest.settings.choices, size), size))

    # ------------------------------------------------------------------------ reporting

    def tally(self, model: ChoiceModel, shared: Any, people: dict[str, Person]) -> _Tally:
        """How often what was predicted was chosen."""
        return _Tally(model, shared, people)

    def score(self, decision: LoggedDecision, answers: Sequence[FeedbackRecord]) -> float | None:
        """Whether what the first answer put first was the likeliest; None where none of them put anything first."""
        from heedful.loop.interactions.comparison.prediction_report import best_of, share

        record = decision.record
        for feedback in answers:
            best = best_of(record.shown, feedback)
            if best is not None and record.predicted:
                return share(record.predicted, record.shown.index(best))
        return None

    def unsaid(self, learned: Arm, control: Arm, level: bool, forms: set[str]) -> str:
        """Arms are not compared."""
        return "the rule asks what is least certain, so that fewer of its questions are predicted says nothing"


def comparison_settings(goal: Literal["best", "ranking"], **more: Any) -> Settings:
    """The settings of a loop that asks which of two is better, to find the best or to rank all."""
    return Settings(choices=goal, **more)


class ChoicePrediction(NamedTuple):
    """What was believed of two items when it was asked which is better."""

    rule: str | None
    """that asked it: bald, mes, eubo or random; None where chance or somebody else did, or the learner has none"""
    chosen: float
    """P(the first would be chosen), the noise of a choice included"""
    better: float
    """P(the first is better)"""
    spread: float
    """the standard deviation of the margin, which is what the first was believed to be ahead"""
    asked_first: int
    """of how many pairs with the first in it the person had been asked; and with the second"""
    asked_second: int
    answers: int
    """how many answers of the person there were in all"""


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
    return model.believed(model.shared, model.people.get(person or ""), items)


# ---------------------------------------------------------------------------- what another would say


class _Counterfactual:
    """How often what was chosen was likelier to win than each of the others."""

    def __init__(self, model: ChoiceModel) -> None:
        self.model = model
        self._right = self._compared = 0.0

    def score(self, step: Step) -> None:
        """Of how many of the others the model has what was chosen ahead."""
        for share in self._ahead(step):
            self._right, self._compared = self._right + share, self._compared + 1.0

    def _ahead(self, step: Step) -> Iterator[float]:
        """1 for each of the others that what was chosen was likelier to beat, 0 where it was less likely, 1/2 where
        neither; nothing where nothing was chosen."""
        heard = self.model.lesson(step.context, step.feedback, step.extra)
        best = None if heard is None else chosen_place(heard)
        if heard is None or best is None:
            return
        mean = _of(self.model, step.decision.person, heard.items).mean
        for i in range(heard.items.size):
            if i != best:
                yield (float(np.sign(mean[best] - mean[i])) + 1.0) / 2.0

    def result(self, spec: str, lessons: int) -> Replayed:
        """The share."""
        from heedful.loop.counterfactual import Replayed

        return Replayed(spec, lessons, {}, self._right / self._compared if self._compared else None, self._compared)


def chosen_place(heard: Heard) -> int | None:
    """The place of what an answer put first; None where all were called equally good."""
    answer: Any = heard.answer
    if isinstance(answer, np.ndarray):
        return int(answer[0])
    return None if answer == EQUAL else int(answer)


# ---------------------------------------------------------------------------- what is reported


class _Tally:
    """How often what was predicted was chosen."""

    def __init__(self, model: ChoiceModel, shared: Any, people: dict[str, Person]) -> None:
        from heedful.loop.interactions.comparison.prediction_report import ChoiceTally

        self._model, self._shared, self._people = model, shared, people
        self._compared = ChoiceTally()

    def contradicts(self, step: Step, lesson: Any) -> bool:
        """Whether the model is sure that another of those shown is better than the one put first."""
        from heedful.loop.interactions.comparison.standing import SURE

        best = chosen_place(lesson)
        if best is None:
            return False
        k = lesson.items.size
        believed = self._model.believed(self._shared, self._people.get(step.decision.person or ""), lesson.items)
        others = np.array([i for i in range(k) if i != best])
        return bool(believed.better(others, np.full(k - 1, best)).max() >= SURE)

    def take(self, decision: LoggedDecision, given: Sequence[tuple[Event, FeedbackRecord]]) -> None:
        """A decision with the feedback on it that counts."""
        self._compared.take(decision, given)

    def report(self) -> PredictionReport:
        """Summary of prediction accuracy: the share of answers that chose the item predicted as likeliest, next to a
        guess."""
        return self._compared.report()
