"""What a loop asks of an interaction: all that differs from one kind of feedback to another.

A loop has one instance, made from what the loop was founded with and its learner. The state that a log folds to is a
model (`Folded`): what all share, and what is each person's own.
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
from heedful.loop.interactions.named import loop_learner
from heedful.loop.interactions.options import Chosen, LoopOption
from heedful.loop.interactions.telling import Part
from heedful.loop.log import Event
from heedful.loop.model import Context, Person
from heedful.loop.packing import LoggedDecision
from heedful.loop.records import Feedback, FeedbackRecord, check_id, check_number
from heedful.loop.request import Request
from heedful.loop.settings import Manifest, Settings
from heedful.spaces.ranking import Ranking, WithBaseScore

if TYPE_CHECKING:
    from heedful.loop.counterfactual import Replayed
    from heedful.loop.explain import Explanation, Moved
    from heedful.loop.interactions.coactive.model import Model
    from heedful.loop.interactions.comparison.standing import Standings
    from heedful.loop.prediction_report import PredictionReport
    from heedful.loop.projection import Projection
    from heedful.loop.report import Arm, Report


class Folded(Protocol):
    """The state of a loop: what the fold of its log has come to. It is changed by `teach` alone."""

    version: int
    """of how feedback becomes lessons: a change of what is folded raises it"""
    learner: Any
    shared: Any
    people: dict[str, Person]

    def teach(self, context: Context, feedback: FeedbackRecord, extra: Floats, version: int, /) -> bool:
        """The fold's step: learn from one piece of feedback; whether there was anything in it to learn."""

    def lesson(self, context: Context, feedback: FeedbackRecord, extra: Floats, /) -> Any:
        """What a piece of feedback says to the learner; None where it says nothing."""

    def refusal(self, form: str, /) -> str | None:
        """Why the learner cannot use a form of feedback; None where it can."""

    def effective(self, shared: Any, person: Person | None, /) -> Any:
        """What each feature counts for a person (N,); empty where there is no such thing (0,)."""


CALLERS_SCORE = "the caller's score"
"""The name of the last feature."""

M = TypeVar("M", bound=Folded)
M_co = TypeVar("M_co", bound=Folded, covariant=True)


class Question(NamedTuple):
    """What is asked of a model: what to show of these candidates to this person."""

    request: Request
    person: str | None
    repeats: bool
    """whether what was shown to them before, and is done with, may be shown again"""
    control: bool
    """whether this is left to the arm to compare with, and not to what was learned"""


class Proposal(NamedTuple):
    """What to show, and what the log is told of it."""

    shown: Ints
    """the places of the candidates in the request, best first"""
    probability: float | None
    """of showing just that; None where nobody can say"""
    carried: dict[str, Any] = {}  # noqa: RUF012  # nobody writes to it
    """what the learner's update needs besides what is shown, as JSON"""
    predicted: tuple[Any, ...] = ()
    """of each that is shown, what will be answered"""
    unknown: tuple[tuple[int, str], ...] = ()
    """what was asked for and is not on offer, with its place in what is shown, -1 where it has none"""
    kept: Sequence[int] | None = None
    """the candidates that the log keeps, in this order; None for all"""
    of: int = 0
    """how many candidates there were, where not all are kept; 0 where all are"""


class Predicted(NamedTuple):
    """What is predicted of an item."""

    value: float
    """its grade, its rating, how likely it is to be chosen: as `Decision.predicted` has it, unrounded"""
    spread: float | None = None
    """the standard deviation of that belief; None where the learner does not say"""


class Step(NamedTuple):
    """One piece of feedback with all that the fold takes with it."""

    event: Event
    decision: LoggedDecision
    feedback: FeedbackRecord
    context: Context
    extra: Floats
    """the features of what the feedback brought along"""


class Newest(NamedTuple):
    """How many of the newest pieces of feedback are of a kind that may move nothing."""

    looked: int
    alone: int
    """on lists of a single item"""
    said: int
    """that prefer something"""
    control: int
    """on lists of the control"""


class Past(Protocol[M_co]):
    """The log up to a decision, as an explanation reads it."""

    def model(self) -> M_co:
        """The model as it was then."""

    def follow(self, margin: Callable[[M_co], float]) -> tuple[M_co, list[Moved]]:
        """The model as it was then, folded from the first lesson, and by how much each lesson moved `margin` of it,
        the most first."""

    def feedback(self) -> Iterator[tuple[Event, LoggedDecision, FeedbackRecord]]:
        """What the model was made of then, in order, without the lessons that the learner failed on."""

    def context(self, decision: LoggedDecision) -> Context:
        """A decision with its arrays."""


class Counterfactual(Protocol[M]):
    """What another learner would have predicted of a log, each time before it learned from the answer."""

    model: M
    """of that learner, which has learned nothing"""

    def score(self, step: Step) -> None:
        """Compare what the model predicts with an answer that it is about to learn."""

    def result(self, spec: str, lessons: int) -> Replayed:
        """What was found, of the learner that `spec` names, after so many lessons."""


class Tally(Protocol):
    """What a report counts of one kind of feedback, over its decisions, the newest first."""

    def contradicts(self, step: Step, lesson: Any) -> bool:
        """Whether the model, as it is now, would have had it otherwise than a lesson says."""

    def take(self, decision: LoggedDecision, given: Sequence[tuple[Event, FeedbackRecord]]) -> None:
        """A decision with the feedback on it that counts, in order."""

    def report(self) -> PredictionReport | None:
        """How well answers were predicted; None where nothing is predicted."""


class Interaction(Protocol[M]):
    """One kind of feedback, in one loop. What has a body here is what most kinds do."""

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
        """Of a loop founded so, with this learner."""
        self.manifest, self.learner = manifest, learner
        self.names = self.feature_names(manifest)

    # ------------------------------------------------------------------------ manifest a loop

    @classmethod
    def check_settings(cls, settings: Settings) -> dict[str, Any]:
        """What the settings of a loop that a setting makes of this kind are kept as, where they are checked by the
        kind: by name. ValueError, by name, where they make no sense."""
        weights = {check_id("actions", a): check_number(f"actions[{a}]", w) for a, w in settings.actions.items()}
        for name, weight in weights.items():
            if weight == 0.0:
                raise ValueError(f"actions[{name}]: expected a weight above or below 0, got 0")
        return {"actions": weights}

    @classmethod
    def choose(cls, given: Mapping[str, Any], learner: str | None) -> Chosen:
        """The learner and the settings of a loop that `options` make, given by name, None or false where they are not;
        `learner` is the one that is named. ValueError, by option, where they make no sense."""
        return Chosen(learner)

    @classmethod
    def read_action(cls, name: str, said: str) -> Any:
        """What an action of that name says of its item, as settings have it. ValueError where that is no number."""
        try:
            return float(said)
        except ValueError:
            raise ValueError(f"--action: expected {cls.action_syntax}, got {f'{name}={said}'!r}") from None

    @classmethod
    def check_manifest(cls, manifest: Manifest) -> None:
        """ValueError, by name, where no loop of this kind is founded so."""
        return

    @classmethod
    def feature_names(cls, manifest: Manifest) -> list[str]:
        """The names of the features as the learner sees them, N; the last is the caller's score."""
        return [*manifest.candidate_names, CALLERS_SCORE]

    @classmethod
    def looks_at_items(cls, asked: Any) -> bool:
        """Whether columns of items are features, where that was `asked` for or not."""
        return cls.item_features == "all" or (cls.item_features == "asked" and bool(asked))

    @classmethod
    def check_spec(cls, spec: str) -> None:
        """ValueError, by name, where `spec` gives a learner of this kind parameters that it does not have."""
        make_learner(spec, n_features=1, space=Ranking(2))

    @classmethod
    def make_learner(cls, spec: str, manifest: Manifest) -> Any:
        """The learner that `spec` names, for a loop founded so. ValueError, by name, where it does not fit."""
        learner = loop_learner(spec, len(cls.feature_names(manifest)), WithBaseScore(Ranking(manifest.settings.k)))
        learner.init(np.random.default_rng(0))
        return learner

    def caveats(self) -> list[str]:
        """What can no longer be proved with the loop's settings, in words."""
        if self.manifest.settings.control > 0.0:
            return []
        return ["control 0: all is shown by what was learned, so that it got better cannot be shown"]

    @property
    def goal(self) -> str:
        """What answers are for, where that is chosen for a loop; "" where there is nothing to choose."""
        return ""

    # ------------------------------------------------------------------------ how it speaks of itself

    @classmethod
    def context_alone(cls) -> str:
        """What features of a request are worth that are crossed with none of an item, in words."""
        return "a context alone adds the same to every item, which never changes an order"

    def introduce(self) -> list[str]:
        """What a new loop learns, in sentences, and how its settings have it; [] where there is nothing to add."""
        return []

    def describe(self) -> Card:
        """How a page, a command or OpenAPI speaks of it."""
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
        """What a loop of this kind was made with and others have not, by name, as JSON."""
        return {}

    def example(self, model: M, shown: Sequence[str]) -> tuple[str, dict[str, Any]]:
        """(what somebody might do about items that were shown, in words, the first not none; as the fields of feedback
        from which the model can learn)."""
        form = next(iter(self.forms.values()))
        return "answers", {form.name: form.example}

    def empty(self, given: Mapping[str, Any]) -> str:
        """Why there was nothing to learn in feedback that was taken, in words after a "nothing in it to learn"."""
        return ": it says nothing, or what was shown already" if given else ""

    def tell_explanation(self, told: Explanation) -> list[Part]:
        """What `explain` found, in lines and tables."""
        return telling.explanation(told)

    def tell_replays(self, folds: Sequence[Replayed]) -> list[Part]:
        """What `counterfactual` found of some learners, the loop's own first."""
        return telling.agreements(folds, "nothing was answered so far that it can be compared with")

    def findings(self, found: Report) -> Findings:
        """Return a report in words and pictures, for pages and commands: both arms, and predictions if any."""
        told = compare_arms(found, self.describe(), self.manifest.settings.control, self.span())
        return told if found.prediction is None else told._replace(sections=(prediction_section(found.prediction),))

    # ------------------------------------------------------------------------ the fold

    def fresh(self) -> M:
        """A model that has learned nothing."""

    def personal(self, model: M) -> Any:
        """A state as it is kept of one person, to read others like it from a file."""

    def on_item(self, model: M, event: Event, catalogue: Catalogue) -> str:
        """An item was put on offer, changed, or withdrawn; why the learner failed on it, "" where it did not."""
        return ""

    def teaches(self, model: M, lesson: Any) -> bool:
        """Whether there is anything in a lesson that this model would learn."""
        return True

    def publish(self, model: M) -> Any:
        """The state that all share for readers: nobody writes to it from now on."""
        return copy_arrays(model.shared)

    def predictor(self, model: M, person: str | None) -> list[bytes] | None:
        """What the predictions for a person come from, to be compared with later; None where every lesson moves it."""
        return None

    # ------------------------------------------------------------------------ reading

    def person(self, name: str | None) -> str | None:
        """Under which name a person's own state is kept; None for nobody's."""
        return name

    def lacks(self, shared: Any, x: Any) -> bool:
        """Whether a state does not know all of the candidates x yet."""
        return False

    def order(self, model: M, shared: Any, own: Person | None, x: Any) -> Ints:
        """The places of the candidates (m,), best first; what is alike as it was asked for."""

    def predict(self, model: M, shared: Any, own: Person | None, x: Any) -> list[Predicted] | None:
        """What is predicted of each of the candidates (m,); None where nothing is."""
        return None

    def standing(self, projection: Projection, person: str | None, people: Sequence[str] | None) -> Standings:
        """The ranking of all items, how sure it is, whether that is enough; ValueError where no loop of this kind
        says."""
        raise ValueError(f"standing: expected a loop of choices, got {self.loop}")

    def cuts(self, model: M, shared: Any, own: Person | None) -> list[float] | None:
        """Where the score of an item, w.x, is cut into what is predicted, as a person has it; None where it is not."""
        return None

    def unpredicted(self, shared: Any) -> str:
        """Why nothing is predicted of items by now, in words; "" where something is."""
        return "Nothing is predicted."

    def used(self, model: M, shared: Any, own: Person | None) -> set[int]:
        """The numbers of the items that are not shown to a person again, unless repeats are asked for."""
        return set()

    def own_answers(self, shared: Any, own: Person | None) -> dict[int, str]:
        """What a person said of items, in a word or two, by their numbers."""
        return {}

    def counts(self, shared: Any, items: int) -> str:
        """How much it was taught, with so many items on offer, in a sentence; "" where the page's own numbers do."""
        return ""

    def overflown(self, model: M, shared: Any) -> str:
        """Why the state says nothing any more, and what to do, in a sentence; "" where it does."""
        return ""

    def why_unmoved(self, newest: Newest, thumbs: str) -> tuple[str, str] | None:
        """(why none of the newest feedback moved the model, what would), where that is known of this kind; `thumbs`
        says that they would, "" where the learner takes none."""
        return None

    # ------------------------------------------------------------------------ deciding

    def check_show(self, show: Any) -> None:
        """ValueError where so many cannot be shown."""
        return

    def eligible(self, model: M, shared: Any, own: Person | None, asked: Question) -> Ints | None:
        """The places of the candidates that may be shown to this person; None for all. ValueError where there are too
        few."""
        return None

    def propose(
        self, model: M, shared: Any, own: Person | None, asked: Question, eligible: Ints | None, rng: Any
    ) -> Proposal:
        """What to show of those eligible. `rng` is the decision's own."""

    # ------------------------------------------------------------------------ taking feedback

    def form(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Feedback as it was given, in the form that this kind has for it."""
        return given

    def refusal(self, model: M, form: str) -> str | None:
        """Why a form of feedback is not taken; None where it is."""
        return model.refusal(form)

    def check_feedback(self, given: Feedback) -> None:
        """ValueError, by name, where feedback of a form that is taken makes no sense."""
        return

    def unfit(self, feedback: FeedbackRecord, shown: Sequence[int]) -> str | None:
        """Why feedback does not fit a decision that showed these candidates; None where it does."""
        return None

    def read_predicted(self, given: Sequence[float]) -> tuple[float, ...]:
        """What was predicted of each that was shown, as somebody else says it. ValueError, by name, where nothing of
        that kind is predicted."""
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
        """Why a decision was made. LookupError where there was nothing to decide."""

    def counterfactual(self, spec: str) -> Counterfactual[M]:
        """The learner that `spec` names in the place of this one. ValueError where it is none, or does not fit."""

    # ------------------------------------------------------------------------ reporting

    def tally(self, model: M, shared: Any, people: dict[str, Person]) -> Tally:
        """What a report counts; by the state published now."""

    def score(self, decision: LoggedDecision, answers: Sequence[FeedbackRecord]) -> float | None:
        """How good what was shown was, by its answers; None where they do not say."""

    def span(self) -> tuple[float, float]:
        """The least and the greatest that `score` may be."""
        return 0.0, 1.0

    def unsaid(self, learned: Arm, control: Arm, level: bool, forms: set[str]) -> str:
        """Why the two arms cannot be compared, in words: `level` where all scores in them are the same; `forms` are
        those of what was answered."""

    def order_reader(self) -> Model | None:
        """What reads feedback as an order that is better than the one shown, for regret and its bounds; None where
        feedback is no such thing."""
        return None
