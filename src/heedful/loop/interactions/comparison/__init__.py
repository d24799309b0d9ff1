"""The comparison interaction: people say which of two or more items is better, and the learner predicts which is
chosen.

Its model (`model.ChoiceModel`) is a posterior over each person's utilities of items, known by number. Learners name
this interaction `pairwise`. The file is long because `Comparison` answers every method of `Interaction`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from heedful.core.wording import count
from heedful.jit.kernel import Floats, Ints
from heedful.loop.catalogue import Catalogue
from heedful.loop.interactions import telling
from heedful.loop.interactions.card import Card, Prediction, Setting, Widget
from heedful.loop.interactions.comparison import texts
from heedful.loop.interactions.comparison.learners import DEFAULT, check_purpose, chooser
from heedful.loop.interactions.comparison.model import ChoiceAnswer, ChoiceModel, ChoiceState, why_unfit
from heedful.loop.interactions.comparison.question import check_two, propose_question
from heedful.loop.interactions.contributions import gradient, none
from heedful.loop.interactions.forms import BETTER, CHOICE, CLICKS, NONE, by_name
from heedful.loop.interactions.measure import Compared
from heedful.loop.interactions.options import KindChoice, LoopOption
from heedful.loop.interactions.protocol import (
    Interaction,
    ItemPrediction,
    Past,
    Proposal,
    Question,
    Step,
    Tally,
    first_of,
    item_key,
)
from heedful.loop.log import Event
from heedful.loop.model import Context, Person
from heedful.loop.packing import LoggedDecision
from heedful.loop.records import DecisionRecord, FeedbackRecord
from heedful.loop.settings import Manifest, Settings
from heedful.results.evaluation import Measure
from heedful.results.explanation import Contributions
from heedful.spaces.comparison import EQUAL

if TYPE_CHECKING:
    from heedful.inference.gp.posterior import Posterior
    from heedful.loop.interactions.findings import Findings
    from heedful.loop.projection import Projection
    from heedful.results.board import Board
    from heedful.results.explanation import Explanation
    from heedful.results.report import Arm, Report


SCORE = "utility"


class Comparison(Interaction[ChoiceModel]):
    """Feedback that says which of the items shown is better; the learner chooses which items to ask about."""

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
    """An update takes milliseconds, so states are kept in memory often; a person's own state is just a number."""
    options = (
        LoopOption("choices", "Ask which of two is better, and learn what people prefer from that."),
        LoopOption("goal", "With --choices: what they are for.", str, "best|ranking", "best"),
        LoopOption("features", "With --choices: items that are like each other are liked alike."),
    )

    # ------------------------------------------------------------------------ making a loop

    @classmethod
    def choose(cls, given: Mapping[str, object], learner: str | None) -> KindChoice:
        """Return the learner and settings that the options of `heedful init` for loops of choices stand for.

        `given` holds the values of the options; the option --goal ("best" if it is not given) becomes the setting
        `choices`. `learner` is the learner that was named, None if none was."""
        return KindChoice(learner, {"choices": given["goal"] or "best"})

    @classmethod
    def check_settings(cls, settings: Settings) -> dict[str, Any]:
        """Return the settings that this kind of feedback checks, by name, as they are stored.

        Raise ValueError, naming the setting, if `choices` is neither "best" (find the best item) nor "ranking" (rank
        all), or if the `actions` are not valid."""
        check_purpose(settings.choices)
        return super().check_settings(settings)

    @classmethod
    def feature_names(cls, manifest: Manifest) -> list[str]:
        """Return the names of the items' features in `manifest`; through them an answer about one item also tells about
        similar ones."""
        return list(manifest.encoding.names)

    @classmethod
    def check_spec(cls, spec: str) -> None:
        """Raise ValueError, naming the parameter, if `spec` gives a learner parameters that it does not have."""
        chooser(spec, "best")

    @classmethod
    def make_learner(cls, spec: str, manifest: Manifest) -> Any:
        """Return the learner of choices that `spec` names, for the goal and the features in `manifest`.

        Raise ValueError if it is not one of choices, or a parameter is wrong."""
        settings = manifest.settings
        return chooser(spec, settings.choices, manifest.encoding.size, settings.shrink)

    def caveats(self) -> list[str]:
        """Return, if no pairs are asked at random, a sentence: predictions for arbitrary pairs cannot be judged then;
        otherwise []."""
        if self.manifest.settings.control > 0.0:
            return []
        return [
            "control 0: only what it is least sure of is asked, so how well it predicts choices between any "
            "two cannot be said"
        ]

    @property
    def goal(self) -> str:
        """The purpose of the choices: "best", to find the best item, or "ranking", to rank all of them."""
        return self.manifest.settings.choices or ""

    # ------------------------------------------------------------------------ how it speaks of itself

    def introduce(self) -> list[str]:
        """Return sentences for the user who has created a loop: what people are asked, how the pair to ask about is
        chosen, and for which goal."""
        names, rule = self.names, getattr(self.learner, "rule", "")
        told = "Each item is known by its name alone"
        if names:
            told = f"What is known of one item tells of others that are like it, by {count(len(names), 'feature')}"
        best = self.goal == "best"
        expected = "which item is the best" if best else "the ranking of all items"
        asked = f"It asks which of two is better, by {self.manifest.learner}{f' and {rule}' if rule else ''}"
        return [f"{asked}, to find {expected}. {told}."]

    def describe(self) -> Card:
        """Return the description of loops in which people choose between two items, for pages, commands and OpenAPI.

        It says that a share of the questions is random, and that reports do not compare these with the others."""
        return (
            super()
            .describe()
            ._replace(
                title="Choices",
                answer="choice",
                question="Which of these is better?",
                prediction=Prediction("chance", 0, 1, "which item stands where is drawn at random"),
                score="how often what was likeliest was chosen",
                measure="Share of answers that were predicted",
                measure_help="How often the item that was likeliest to be chosen was chosen.",
                shown="question",
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
        """Return the goal of the choices, as {"choices": "best"} or {"choices": "ranking"}."""
        return {"choices": self.goal}

    def example(self, model: ChoiceModel, shown: Sequence[str]) -> tuple[str, dict[str, Any]]:
        """Return (an answer in words, the same answer as JSON fields of feedback), to show how a decision can be
        answered.

        The answer is that the first of the items named `shown` is better; `model` is not used."""
        return "prefers the first", {"choice": "first"} if len(shown) == 2 else {"better": [shown[0]]}

    def why_empty(self, model: ChoiceModel, record: DecisionRecord, feedback: FeedbackRecord) -> str:
        """Return in words that `model` learned nothing from `feedback` on the decision in `record`, but that this was
        asked."""
        return "it is only noted that this was asked"

    def tell_explanation(self, told: Explanation) -> list[telling.Part]:
        """Return an explanation of a decision, `told`, as lines and tables.

        They hold how likely each of the items shown was to be chosen, and which earlier answers made that so."""
        if told.prediction is None:
            return super().tell_explanation(told)
        return texts.explanation(told, ChoicePrediction(**told.prediction))

    def findings(self, found: Report) -> Findings:
        """Return the report `found` in words: how often people chose the item predicted as likeliest, and how often
        they chose none."""
        told = super().findings(found)
        return told if found.prediction is None else told.with_section(texts.section(found.prediction))

    # ------------------------------------------------------------------------ the fold

    def fresh(self) -> ChoiceModel:
        """Return a model that has learned nothing."""
        return ChoiceModel(self.learner, self.manifest.encoding.size)

    def personal(self, model: ChoiceModel) -> Any:
        """Return an example of the state kept for each person, the number by which the learner knows them.

        Reading a snapshot needs it as a template for the states in the file."""
        return model.nobody()

    def on_item(self, model: ChoiceModel, event: Event, catalogue: Catalogue) -> str:
        """Add to `model`, in place, the item that `event` puts on offer, or its new features; return "".

        What was learned of an item stays when it is withdrawn. `catalogue` holds the items of the loop."""
        if event.arrays is not None:
            model.put(catalogue.number(event.subject or "", event.arrays), np.frombuffer(event.arrays, "<f4"))
        return ""

    def publish(self, model: ChoiceModel) -> ChoiceState:
        """Return the state for all people in `model`, for the threads that make decisions.

        It is not copied: the next update copies the arrays that it changes."""
        return model.present_state()

    # ------------------------------------------------------------------------ reading

    def person(self, name: str | None) -> str | None:
        """Return the key under which the model keeps the person `name`: the name, or "" for all people without a name
        (None) together."""
        return name or ""

    def lacks(self, shared: ChoiceState, x: Ints) -> bool:
        """Return whether the published state `shared` is older than one of the items `x` (m,), given by number, and so
        lacks it."""
        return bool(x.size) and int(x.max()) >= shared.n

    def order(self, model: ChoiceModel, shared: ChoiceState, own: Person | None, x: Ints) -> Ints:
        """Return the indices of the m candidates by posterior mean utility for this person, best first (m,).

        `x` (m,) are the numbers of the items. `model` holds the learner, `shared` its state for all people, `own` the
        person's number, None for a new person."""
        return np.argsort(-model.posterior(shared, own, x).mean, kind="stable")

    def predict(
        self, model: ChoiceModel, shared: ChoiceState, own: Person | None, x: Ints
    ) -> list[ItemPrediction] | None:
        """Return for each of the m candidates the probability that it is chosen if all of them are shown; None if one
        is not finite.

        `x` (m,) are the numbers of the items. `model` holds the learner, `shared` its state for all people, `own` the
        person's number, None for a new person."""
        found = model.chances(shared, own, x)
        return None if found is None else [ItemPrediction(chance) for chance in found.tolist()]

    def standing(self, projection: Projection, person: str | None, people: Sequence[str] | None) -> Board:
        """Return the ranking of all items on offer, its uncertainty, and whether it is certain enough to stop asking.

        It is that of `person`, or of the mean utility of `people`, or of everybody if both are None. `projection` holds
        the loop's log with the model learned from it. Raise ValueError with fewer than two items on offer."""
        from heedful.loop.interactions.comparison.standing import board

        return board(projection, person, people)

    # ------------------------------------------------------------------------ deciding

    def eligible(self, model: ChoiceModel, shared: ChoiceState, own: Person | None, asked: Question) -> None:
        """Return None, as all candidates may be shown; raise ValueError if the request `asked` has fewer than two.

        `model`, `shared` and `own` are not used."""
        check_two(asked)

    def propose(
        self,
        model: ChoiceModel,
        shared: ChoiceState,
        own: Person | None,
        asked: Question,
        eligible: Ints | None,
        rng: np.random.Generator,
    ) -> Proposal:
        """Return the items to ask about, in random order: those that the learner's rule selects, or random ones.

        A fixed share of the questions (the control) is random, for comparison.

        - `asked`: the request
        - `model`, `shared`: the model, and its state for all people
        - `own`: the person's number, None for a new person
        - `eligible`: not used
        - `rng`: the random generator of this decision"""
        return propose_question(model, shared, own, asked, self.manifest.settings.control, rng)

    # ------------------------------------------------------------------------ taking feedback

    def form(self, given: Mapping[str, object]) -> Mapping[str, Any]:
        """Return the JSON fields of the feedback `given`; a list of names in the field `edit` moves to `better`, as it
        is a better order."""
        if isinstance(given.get("edit"), list | tuple):
            return {**given, "edit": None, "better": given["edit"]}
        return given

    def why_unfit(self, feedback: FeedbackRecord, shown: Sequence[int]) -> str | None:
        """Return why `feedback` cannot answer a decision that showed the candidates `shown` (indices); None if it can.

        A choice answers a decision of two items; for more items, feedback names the best one or gives an order."""
        return why_unfit(feedback, len(shown))

    # ------------------------------------------------------------------------ looking back

    def explain(self, decision: LoggedDecision, context: Context, past: Past[ChoiceModel]) -> Explanation:
        """Return why a decision asked about its first two items, and which earlier answers say which of them is better.

        `context` is the `decision` with the numbers of its candidates, `past` the log up to it, from which the model of
        that time is learned again. Raise LookupError if it showed a single item."""
        from heedful.results.explanation import Explanation

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

    def item_scores(self, model: ChoiceModel, person: str | None, x: Ints, places: Sequence[int]) -> Floats:
        """Return the posterior mean utility (k,) of the k candidates at the indices `places`, for one person.

        `x` are the item numbers of all candidates (m,). All are 0 if `model` does not know one of the items yet."""
        items: Ints = np.array(x[list(places)], np.int64)
        if items.max() >= model.shared.n:
            return np.zeros(items.size)
        return np.asarray(_of(model, person, items).mean, np.float64)

    def contributions(self, model: ChoiceModel, person: str | None, x: Ints, place: int) -> Contributions:
        """Return, to first order, what each feature of one item contributes to its posterior mean utility for `person`.

        A contribution is the feature times the derivative, at this item's features, of the utility that `model` expects
        of a new item. `x` are the item numbers of the candidates (m,), `place` is the index of the item among them."""
        if not self.names:
            return none("items are known by their names alone: they have no features", SCORE)
        if not hasattr(self.learner, "utility_gradient"):
            return none(f"{type(self.learner).__name__} has no derivative by the features: there are no parts", SCORE)
        shared, number = model.shared, int(x[place])
        user = model.user(shared, model.people.get(person or ""))
        slopes = self.learner.utility_gradient(model.ready(shared), user, number)
        return gradient(self.names, slopes, shared.things[number], SCORE)

    def candidate(self, spec: str) -> ChoiceModel:
        """Return an untrained model of another learner of choices, to be evaluated on this loop's log.

        Raise ValueError if `spec` names no such learner."""
        size = self.manifest.encoding.size
        return ChoiceModel(chooser(spec, self.manifest.settings.choices, size), size)

    def measures(self) -> tuple[Measure, ...]:
        """Return the one measure by which learners are compared: how often an item that was not chosen had been
        expected to lose."""
        return (Measure("expected", texts.EXPECTED, "nothing was chosen", "More answers."),)

    def compare(self, models: Sequence[ChoiceModel], step: Step) -> Sequence[Compared | None]:
        """Return, for each of the L `models`, which of the items that were not chosen in `step` it had expected to
        lose.

        `step` is one answer with its decision, from which no model has learned yet. The result is one `Compared`, of
        values (L, c) for the c items not chosen: 1 if the item was expected to lose against the one chosen, 0 if to
        win, else 1/2. Return (None,) if the answer chose no item."""
        heard = models[0].lesson(step.context, step.feedback, step.extra)
        best = None if heard is None else chosen_place(heard)
        if heard is None or best is None:
            return (None,)
        means = np.array([_of(model, step.decision.person, heard.items).mean for model in models])
        others = np.delete(means, best, axis=1)
        values = (np.sign(means[:, best, None] - others) + 1.0) / 2.0
        return (Compared(values, np.ones(others.shape[1])),)

    # ------------------------------------------------------------------------ reporting

    def tally(self) -> Tally:
        """Return a new collector of predictions and answers, which counts how often the item with the highest predicted
        probability was chosen."""
        from heedful.loop.interactions.comparison.prediction_report import ChoiceTally

        return ChoiceTally()

    @staticmethod
    def prediction_details() -> type:
        """Return the msgspec struct of what loops of choices add to the report of predictions
        (`PredictionReport.details`)."""
        from heedful.results.report import ChoiceDetails

        return ChoiceDetails

    def contradicts(
        self, model: ChoiceModel, shared: ChoiceState, own: Person | None, step: Step, lesson: ChoiceAnswer
    ) -> bool:
        """Return whether the model is 90 % sure now that another item shown is better than the one that the answer
        chose.

        - `model`, `shared`: the model, and its state for all people
        - `own`: the person's number, None for a new person
        - `step`: one answer with the decision that it answers
        - `lesson`: the training example made of it"""
        from heedful.loop.interactions.comparison.standing import SURE

        best = chosen_place(lesson)
        if best is None:
            return False
        k = lesson.items.size
        others = np.array([i for i in range(k) if i != best])
        believed = model.posterior(shared, own, lesson.items)
        return bool(believed.better(others, np.full(k - 1, best)).max() >= SURE)

    def score(self, decision: LoggedDecision, answers: Sequence[FeedbackRecord]) -> float | None:
        """Return 1 if the first of `answers` that chose an item chose the one predicted as likeliest, 0 if another.

        `answers` is the feedback on `decision`, whose record holds the predictions. If n items tie for the likeliest
        and one of them was chosen, the score is 1 / n. Return None if no answer chose an item, or nothing was
        predicted."""
        from heedful.loop.interactions.comparison.prediction_report import best_of, share

        record = decision.record
        for feedback in answers:
            best = best_of(record.shown, feedback)
            if best is not None and record.predicted:
                return share(record.predicted, record.shown.index(best))
        return None

    def why_not_compared(self, learned: Arm, control: Arm, level: bool, forms: set[str]) -> str:
        """Return in words why questions selected by the learner's rule and random questions are not compared; the
        arguments are not used."""
        return "the rule asks what is least certain, so that fewer of its questions are predicted says nothing"

    # ------------------------------------------------------------------------ the health of feedback

    def outcomes(self, decision: LoggedDecision, feedback: FeedbackRecord) -> list[tuple[float, float]]:
        """Return (predicted probability of being chosen, whether it was chosen: 1 or 0) for each item that `decision`
        showed.

        `feedback` is the answer to it; [] if it chose no item."""
        from heedful.loop.interactions.comparison.prediction_report import best_of

        record = decision.record
        best, predicted = best_of(record.shown, feedback), dict(zip(record.shown, record.predicted))
        return first_of(predicted, best) if best is not None and best in predicted else []

    def claims(self, step: Step) -> dict[Any, float]:
        """Return the statements that the answer in `step` makes: the item chosen is better than each other item shown.

        They have the form {(smaller key, larger key): number}, where a key is a hash of an item (`item_key`), and the
        number is 1 if the first of the two is better, 0 if the second is. `step` is one answer with the decision that
        it answers."""
        from heedful.loop.interactions.comparison.prediction_report import best_of

        shown = step.context.record.shown
        best, told = best_of(shown, step.feedback), dict[Any, float]()
        for j in shown:
            if best is not None and best >= 0 and j != best:
                chosen, other = item_key(step, best), item_key(step, j)
                told[min(chosen, other), max(chosen, other)] = float(chosen < other)
        return told


def comparison_settings(goal: Literal["best", "ranking"], **more: Any) -> Settings:
    """Return the settings of a loop that asks which of two items is better.

    `goal` is "best", to find the best item, or "ranking", to rank all; `more` are other fields of `Settings`."""
    return Settings(choices=goal, **more)


class ChoicePrediction(NamedTuple):
    """The model's posterior of two items, "the first" and "the second", when it asked which of them is better."""

    rule: str | None
    """the acquisition rule that selected them (bald, mes, eubo or random); None if something else did"""
    chosen: float
    """the probability that the first is chosen, with the noise of a choice"""
    better: float
    """the probability that the first has the higher utility"""
    spread: float
    """the standard deviation of the first's utility minus the second's"""
    asked_first: int
    """how many pairs with the first item this person had been asked before"""
    asked_second: int
    """how many pairs with the second item this person had been asked before"""
    answers: int
    """how many answers this person had given before"""


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
    """Return the position, from 0 among the items shown, of the item that the answer `heard` puts first; None if it
    calls all equally good."""
    answer: Any = heard.answer
    if isinstance(answer, np.ndarray):
        return int(answer[0])
    return None if answer == EQUAL else int(answer)
