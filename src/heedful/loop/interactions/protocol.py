"""What a loop asks of an interaction: all that differs from one kind of feedback to another.

A loop has one instance, made from its manifest and its learner. The state that a log folds to is a model (`LoopModel`):
what all people share, and what is each person's own. The file is long because `Interaction` is one list of questions,
with the answer that most kinds give.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar

import numpy as np

from heedful.core.fold import copy_arrays
from heedful.jit.kernel import Floats, Ints
from heedful.learners.registry import make_learner
from heedful.loop.catalogue import Catalogue
from heedful.loop.interactions import telling
from heedful.loop.interactions.card import Card
from heedful.loop.interactions.findings import Findings, compare_arms, prediction_section
from heedful.loop.interactions.forms import Form
from heedful.loop.interactions.measure import Compared, Measure
from heedful.loop.interactions.named import loop_learner
from heedful.loop.interactions.options import KindChoice, LoopOption
from heedful.loop.interactions.telling import Part
from heedful.loop.log import Event
from heedful.loop.model import Context, Person
from heedful.loop.packing import LoggedDecision
from heedful.loop.records import Arm as DecisionArm
from heedful.loop.records import Feedback, FeedbackRecord, check_id, check_number
from heedful.loop.request import Request
from heedful.loop.settings import Manifest, Settings
from heedful.spaces.ranking import Ranking, WithBaseScore

if TYPE_CHECKING:
    from heedful.loop.evaluate import Evaluation
    from heedful.loop.explain import Explanation, Moved
    from heedful.loop.interactions.coactive.model import Model
    from heedful.loop.interactions.comparison.standing import Standings
    from heedful.loop.prediction_report import PredictionReport
    from heedful.loop.projection import Projection
    from heedful.loop.report import Arm, Report


class LoopModel(Protocol):
    """The state of a loop, which the fold of its log makes; `teach` alone changes it."""

    version: int
    """the version of the fold: raised with every change of how feedback becomes lessons"""
    learner: Any
    shared: Any
    people: dict[str, Person]

    def teach(self, context: Context, feedback: FeedbackRecord, extra: Floats, version: int, /) -> bool:
        """Learn from one piece of feedback, one step of the fold; return whether there was anything to learn.

        `extra` are the features of objects that the feedback brought along, `version` is the model's version then."""

    def lesson(self, context: Context, feedback: FeedbackRecord, extra: Floats, /) -> Any:
        """Return what a piece of feedback says to the learner; None if it says nothing."""

    def refusal(self, form: str, /) -> str | None:
        """Return why the learner cannot use a form of feedback; None if it can."""

    def effective(self, shared: Any, person: Person | None, /) -> Any:
        """Return the weight of each feature for a person (N,); empty (0,) for a model without such weights."""


CALLERS_SCORE = "the caller's score"
"""The name of the last feature."""

M = TypeVar("M", bound=LoopModel)
M_co = TypeVar("M_co", bound=LoopModel, covariant=True)


class Question(NamedTuple):
    """A request as a model sees it: what to show of which candidates to whom."""

    request: Request
    person: str | None
    repeats: bool
    """whether what was shown to them before, and is done with, may be shown again"""
    arm: DecisionArm
    """what decides: what was learned, the caller's order or chance, or chance around what was learned"""

    @property
    def control(self) -> bool:
        """Whether the control arm decides, and not what was learned."""
        return self.arm == "control"


class Proposal(NamedTuple):
    """A decision before it is logged: what is shown, and what the log keeps of it."""

    shown: Ints
    """the places of the candidates in the request, best first"""
    probability: float | None
    """the probability of showing just that; None if it is unknown"""
    carried: dict[str, Any] = {}  # noqa: RUF012  # nobody writes to it
    """what the learner's update needs besides what is shown, as JSON"""
    predicted: tuple[Any, ...] = ()
    """for each item shown, the answer that is predicted"""
    unknown: tuple[tuple[int, str], ...] = ()
    """what was asked for and is not on offer, with its place in what is shown, -1 where it has none"""
    kept: Sequence[int] | None = None
    """the candidates that the log keeps, in this order; None for all"""
    of: int = 0
    """how many candidates there were, where not all are kept; 0 where all are"""


class ItemPrediction(NamedTuple):
    """The prediction for one item."""

    value: float
    """its grade, its rating, how likely it is to be chosen: as `Decision.predicted` has it, unrounded"""
    spread: float | None = None
    """the standard deviation of that belief; None where the learner does not say"""


class Step(NamedTuple):
    """A piece of feedback with its decision, as the fold takes it."""

    event: Event
    decision: LoggedDecision
    feedback: FeedbackRecord
    context: Context
    extra: Floats
    """the features of what the feedback brought along"""


class Newest(NamedTuple):
    """Counts of the newest pieces of feedback, to say why none of them moved the model."""

    looked: int
    """how many were looked at"""
    alone: int
    """how many are on lists of a single item"""
    said: int
    """how many prefer something"""
    control: int
    """how many are on lists of the control"""


class Past(Protocol[M_co]):
    """The log up to a decision, as an explanation reads it."""

    def model(self) -> M_co:
        """Return the model as it was then."""

    def follow(self, margin: Callable[[M_co], float]) -> tuple[M_co, list[Moved]]:
        """Return the model as it was then, and by how much each lesson moved `margin` of it, the most first."""

    def feedback(self) -> Iterator[tuple[Event, LoggedDecision, FeedbackRecord]]:
        """Yield the feedback that the model was made of then, in order, without that on which the learner failed."""

    def context(self, decision: LoggedDecision) -> Context:
        """Return a decision with its arrays."""


class Tally(Protocol):
    """A counter for a report, which is given the decisions of a loop newest first."""

    def contradicts(self, step: Step, lesson: Any) -> bool:
        """Return whether a lesson contradicts the model as it is now."""

    def take(self, decision: LoggedDecision, given: Sequence[tuple[Event, FeedbackRecord]]) -> None:
        """Take in a decision with the feedback on it that was not undone, in order."""

    def report(self) -> PredictionReport | None:
        """Return how well answers were predicted; None if this kind predicts nothing."""


class Interaction(Protocol[M]):
    """A kind of feedback, in one loop: its forms, its fold, its decisions, its reports, its words.

    A method with a body here does what most kinds do.
    """

    name: str
    """by which a learner's docstring names it"""
    takes: str = ""
    """what its learners learn from: "corrections and clicks\""""
    command: str = ""
    """a command that tries a learner of this kind, but for --learner; "" where there is none"""
    loop: str = "this loop"
    """a loop of this kind, in a sentence: "a loop of ratings\""""
    forms: Mapping[str, Form]
    """of feedback that it takes, by name, the most usual first"""
    model_type: type[M]
    """what a loop of this kind folds; declares the version of how feedback becomes lessons"""
    setting: str = ""
    """the field of `Settings` that makes a loop of this kind, whatever its learner; "" where the learner says it"""
    default_learner: str = ""
    """of a loop that a setting makes of this kind, where none is named"""
    options: tuple[LoopOption, ...] = ()
    """of `heedful init`; the first makes a loop of this kind"""
    action_syntax: str = "NAME=WEIGHT"
    """how an action is said on a command line"""
    by_number: bool = False
    """whether the learner knows items by number, not by features: then candidates are items on offer, by name"""
    item_features: Literal["all", "asked", "none"] = "all"
    """whether all columns of items are features, only where that is asked for, or none"""
    slow: bool = False
    """whether a decision, and a lesson, take milliseconds: a server does them in a thread of their own"""
    splits_items: bool = False
    """whether an item with other features is another one, with a number of its own"""
    takes_prior: bool = True
    """whether a request may bring the caller's score of each candidate"""
    folds_items: bool = False
    """whether the model is made of the events of items, too"""
    takes_repeats: bool = False
    """whether a request may say that what a person is done with is shown again"""
    keeps_unshown: bool = True
    """whether the log may keep candidates that were not shown"""
    samples_lists: bool = False
    """whether a share of lists may be drawn at random around the ranking"""
    compares_arms: bool = True
    """whether lists made from what was learned can be compared with those of the control"""
    mark_every: int = 0
    """lessons between two states that are kept in memory, for undoing; 0 for as many as cost little"""
    snapshot_most: int = 2**62
    """lessons after which a snapshot is due, at the latest"""

    manifest: Manifest
    learner: Any
    names: list[str]
    """of the features as the learner sees them, N"""

    def __init__(self, manifest: Manifest, learner: Any) -> None:
        """Make the interaction of a loop with this manifest and learner."""
        self.manifest, self.learner = manifest, learner
        self.names = self.feature_names(manifest)

    # ------------------------------------------------------------------------ founding a loop

    @classmethod
    def check_settings(cls, settings: Settings) -> dict[str, Any]:
        """Return the settings that this kind checks, by name, as they are kept.

        Raise ValueError, naming the setting, if one makes no sense."""
        weights = {check_id("actions", a): check_number(f"actions[{a}]", w) for a, w in settings.actions.items()}
        for name, weight in weights.items():
            if weight == 0.0:
                raise ValueError(f"actions[{name}]: expected a weight above or below 0, got 0")
        return {"actions": weights}

    @classmethod
    def choose(cls, given: Mapping[str, Any], learner: str | None) -> KindChoice:
        """Return the learner and the settings that the `options` of a command make.

        `given` holds their values by name, None or False where one is absent; `learner` is the learner that was named.
        Raise ValueError, naming the option, if they make no sense."""
        return KindChoice(learner)

    @classmethod
    def read_action(cls, name: str, said: str) -> Any:
        """Return the value of an action, given as text, as settings keep it. Raise ValueError for what is no number."""
        try:
            return float(said)
        except ValueError:
            raise ValueError(f"--action: expected {cls.action_syntax}, got {f'{name}={said}'!r}") from None

    @classmethod
    def check_manifest(cls, manifest: Manifest) -> None:
        """Raise ValueError, naming the field, if a loop of this kind cannot have this manifest."""
        if manifest.settings.sampled > 0.0 and not cls.samples_lists:
            raise ValueError(f"sampled: expected 0 in {cls.loop}, got {manifest.settings.sampled:g}")

    @classmethod
    def feature_names(cls, manifest: Manifest) -> list[str]:
        """Return the names of the features as the learner sees them, N; the last is the caller's score."""
        return [*manifest.candidate_names, CALLERS_SCORE]

    @classmethod
    def looks_at_items(cls, asked: Any) -> bool:
        """Return whether columns of items are features; `asked` says whether that was asked for."""
        return cls.item_features == "all" or (cls.item_features == "asked" and bool(asked))

    @classmethod
    def check_spec(cls, spec: str) -> None:
        """Raise ValueError, naming the parameter, if `spec` gives a learner parameters that it does not have."""
        make_learner(spec, n_features=1, space=Ranking(2))

    @classmethod
    def make_learner(cls, spec: str, manifest: Manifest) -> Any:
        """Return the learner that `spec` names, for a loop with this manifest. Raise ValueError if it does not fit."""
        learner = loop_learner(spec, len(cls.feature_names(manifest)), WithBaseScore(Ranking(manifest.settings.k)))
        learner.init(np.random.default_rng(0))
        return learner

    def caveats(self) -> list[str]:
        """Return what the loop's settings make impossible to prove, in words."""
        if self.manifest.settings.control > 0.0:
            return []
        return ["control 0: all is shown by what was learned, so that it got better cannot be shown"]

    @property
    def goal(self) -> str:
        """The purpose of answers, if a loop of this kind has a choice of purposes; otherwise ""."""
        return ""

    # ------------------------------------------------------------------------ how it speaks of itself

    @classmethod
    def context_alone(cls) -> str:
        """Return what features of a request are worth that are not crossed with one of an item, in words."""
        return "a context alone adds the same to every item, which never changes an order"

    def introduce(self) -> list[str]:
        """Return sentences on what a new loop learns, by its settings; [] if there is nothing to add."""
        return []

    def describe(self) -> Card:
        """Return how a page, a command or OpenAPI speaks of this kind."""
        first = next(iter(self.forms), "answer")
        return Card(
            name=self.name,
            title=self.name.capitalize(),
            loop=self.loop,
            answer=first,
            question="What do you say of these?",
            forms=tuple(self.forms.values()),
            compares_arms=self.compares_arms,
            badge=self.name,
        )

    def facts(self) -> dict[str, Any]:
        """Return what only a loop of this kind was made with, by name, as JSON."""
        return {}

    def example(self, model: M, shown: Sequence[str]) -> tuple[str, dict[str, Any]]:
        """Return an answer that the model can learn from, in words and as fields of feedback; `shown` are names."""
        form = next(iter(self.forms.values()))
        return "answers", {form.name: form.example}

    def empty(self, given: Mapping[str, Any]) -> str:
        """Return why there was nothing to learn in feedback, in words that follow "nothing in it to learn"."""
        return ": it says nothing, or what was shown already" if given else ""

    def tell_explanation(self, told: Explanation) -> list[Part]:
        """Return an explanation as lines and tables."""
        return telling.explanation(told)

    def tell_evaluation(self, found: Evaluation) -> list[Part]:
        """Return what a log says about some learners as lines and tables, the loop's own learner first."""
        return telling.evaluation(found)

    def findings(self, found: Report) -> Findings:
        """Return a report in words and pictures, for pages and commands: both arms, and predictions if any."""
        told = compare_arms(found, self.describe(), self.manifest.settings.control, self.span())
        return told if found.prediction is None else told._replace(sections=(prediction_section(found.prediction),))

    # ------------------------------------------------------------------------ the fold

    def fresh(self) -> M:
        """Return a model that has learned nothing."""

    def personal(self, model: M) -> Any:
        """Return a state like those that are kept of each person, so that others can be read from a file."""
        return model.shared

    def on_item(self, model: M, event: Event, catalogue: Catalogue) -> str:
        """Take in that an item was put on offer, changed or withdrawn; return why the learner failed on it, or ""."""
        return ""

    def teaches(self, model: M, lesson: Any) -> bool:
        """Return whether there is anything in a lesson that this model would learn."""
        return True

    def publish(self, model: M) -> Any:
        """Return the state that all share in arrays that readers may keep: nothing writes to them any more."""
        return copy_arrays(model.shared)

    def predictor(self, model: M, person: str | None) -> list[bytes] | None:
        """Return the numbers that predictions for a person come from, as bytes, to see whether a lesson moved them.

        None stands for a kind of which every lesson moves them."""
        return None

    # ------------------------------------------------------------------------ reading

    def person(self, name: str | None) -> str | None:
        """Return the name under which a person's own state is kept; None if there is none."""
        return name

    def lacks(self, shared: Any, x: Any) -> bool:
        """Return whether a state does not know all of the candidates x yet."""
        return False

    def order(self, model: M, shared: Any, own: Person | None, x: Any) -> Ints:
        """Return the places of the candidates (m,), best first, ties in the order of the request."""

    def predict(self, model: M, shared: Any, own: Person | None, x: Any) -> list[ItemPrediction] | None:
        """Return the prediction for each of the candidates (m,); None if nothing is predicted."""
        return None

    def standing(self, projection: Projection, person: str | None, people: Sequence[str] | None) -> Standings:
        """Return the ranking of all items, how sure it is, and whether that is enough.

        Raise ValueError if this kind has no such ranking."""
        raise ValueError(f"standing: expected a loop of choices, got {self.loop}")

    def cuts(self, model: M, shared: Any, own: Person | None) -> list[float] | None:
        """Return the thresholds at which a person's score w.x changes the prediction; None if there are none."""
        return None

    def why_not_predicted(self, shared: Any) -> str:
        """Return why nothing is predicted of items by now, in words; "" if something is."""
        return "Nothing is predicted."

    def used(self, model: M, shared: Any, own: Person | None) -> set[int]:
        """Return the numbers of the items that are not shown to a person again unless repeats are asked for."""
        return set()

    def own_answers(self, shared: Any, own: Person | None) -> dict[int, str]:
        """Return what a person said of items, in a word or two, by the items' numbers."""
        return {}

    def counts(self, shared: Any, items: int) -> str:
        """Return a sentence on how much the loop was taught; "" if the page's own numbers say it."""
        return ""

    def describe_overflow(self, model: M, shared: Any) -> str:
        """Return why the state predicts nothing any more and what to do, in a sentence; "" if it is well."""
        return ""

    def why_unmoved(self, newest: Newest, thumbs: str) -> tuple[str, str] | None:
        """Return (why none of the newest feedback moved the model, what would), None if this kind does not know.

        `thumbs` is a sentence that thumbs would, "" if the learner takes none."""
        return None

    # ------------------------------------------------------------------------ deciding

    def check_show(self, show: Any) -> None:
        """Raise ValueError if `show` items cannot be shown."""
        return

    def eligible(self, model: M, shared: Any, own: Person | None, asked: Question) -> Ints | None:
        """Return the places of the candidates that may be shown to this person, None for all.

        Raise ValueError if they are too few."""
        return None

    def propose(
        self, model: M, shared: Any, own: Person | None, asked: Question, eligible: Ints | None, rng: Any
    ) -> Proposal:
        """Return what to show of the `eligible` candidates. `rng` is the decision's own generator."""

    # ------------------------------------------------------------------------ taking feedback

    def form(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the fields of feedback, turned into the form that this kind has for them."""
        return given

    def refusal(self, model: M, form: str) -> str | None:
        """Return why a form of feedback is refused; None if it is taken."""
        return model.refusal(form)

    def check_feedback(self, given: Feedback) -> None:
        """Raise ValueError, naming the field, if feedback of a form that is taken makes no sense."""
        return

    def why_unfit(self, feedback: FeedbackRecord, shown: Sequence[int]) -> str | None:
        """Return why feedback does not fit a decision that showed these candidates; None if it does."""
        return None

    def read_predicted(self, given: Sequence[float]) -> tuple[float, ...]:
        """Return the predictions of a decision that is imported, one for each item shown.

        Raise ValueError, naming the field, if this kind predicts nothing of the sort."""
        said = self.describe().prediction
        if said is None:
            raise ValueError(f"predicted: expected none in {self.loop}, which predicts nothing, got some")
        low, high = (-math.inf if said.low is None else said.low), (math.inf if said.high is None else said.high)
        for j, number in enumerate(given):
            if not low <= number <= high:
                raise ValueError(f"predicted[{j}]: expected a number from {low:g} to {high:g}, got {number:g}")
        return tuple(given)

    # ------------------------------------------------------------------------ looking back

    def explain(self, decision: LoggedDecision, context: Context, past: Past[M]) -> Explanation:
        """Return why a decision was made. Raise LookupError if there was nothing to decide."""

    def candidate(self, spec: str) -> M:
        """Return a model of the learner that `spec` names, which has learned nothing.

        Raise ValueError if there is no such learner, or it does not fit."""

    def measures(self) -> tuple[Measure, ...]:
        """Return what learners are measured by on a log of this kind; the first leads."""

    def compare(self, models: Sequence[M], step: Step) -> Sequence[Compared | None]:
        """Return, by each measure, how the predictions of `models` compare with an answer that they have not learned
        yet; None where it says nothing."""

    def chances(self, models: Sequence[M], step: Step) -> Floats | None:
        """Return the probability with which each of `models` would show just the list of a decision that was answered
        (L,), nan for one that does not say; None if this kind of feedback cannot say."""
        return None

    # ------------------------------------------------------------------------ reporting

    def tally(self, model: M, shared: Any, people: dict[str, Person]) -> Tally:
        """Return what counts for a report, by the state published now."""

    def score(self, decision: LoggedDecision, answers: Sequence[FeedbackRecord]) -> float | None:
        """Return how good what was shown was, by its answers; None if they do not say."""

    def span(self) -> tuple[float, float]:
        """Return the least and the greatest value that `score` may have."""
        return 0.0, 1.0

    def why_not_compared(self, learned: Arm, control: Arm, level: bool, forms: set[str]) -> str:
        """Return why the two arms cannot be compared, in words.

        `level` says whether all scores in them are the same, `forms` are the forms of the answers."""

    def order_reader(self) -> Model | None:
        """Return a model that reads feedback as an order better than the one shown, for regret and its bounds.

        None if feedback of this kind is no such order."""
        return None
