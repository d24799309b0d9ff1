"""The interface of an interaction: all that a loop does differently for one kind of feedback than for another.

A kind of feedback is corrections and clicks, grades, ratings, choices, or thumbs and edits of answers. A loop has one
`Interaction`, made from its manifest and its learner. The state that a loop's log folds to is a model (`LoopModel`):
the learner's state that all people share, and a state for each person. The file is long because `Interaction` is one
list of methods, most with a body that suits most kinds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from heedful.core.fold import must_interpret
from heedful.evaluation import answers
from heedful.evaluation.answers import Answer, Item, Scale
from heedful.evaluation.expected import Compared, Expected, numbers_expected
from heedful.evaluation.interleaving import draft_probability, interleave, slot_probabilities
from heedful.features import Encoding
from heedful.jit.kernel import Floats, Ints, scores
from heedful.learners.registry import UnknownLearner
from heedful.loop.catalogue import Catalogue
from heedful.loop.interactions import contributions as parts_of
from heedful.loop.interactions.columns import Columns
from heedful.loop.interactions.findings import Findings, compare_arms, prediction_section
from heedful.loop.interactions.forms import Form, read_answer
from heedful.loop.interactions.named import loop_learner, name_fitting
from heedful.loop.interactions.options import LoopOption
from heedful.loop.interactions.words import Words
from heedful.loop.log import Event
from heedful.loop.model import Context, LoopModel, View
from heedful.loop.packing import LoggedDecision
from heedful.loop.records import AnsweredItem, DecisionRecord, FeedbackRecord, check_id, check_number
from heedful.loop.request import Request
from heedful.loop.settings import Manifest, Settings
from heedful.loop.strangers import answer_by_name, around
from heedful.results.answers import Arm as DecisionArm
from heedful.results.evaluation import Measure
from heedful.results.explanation import Contributions
from heedful.spaces.ranking import Ranking, WithBaseScore

if TYPE_CHECKING:
    from heedful.data.table import Table
    from heedful.results.board import Board
    from heedful.results.report import PredictionReport, Report


class Readable(Protocol):
    """What a kind of feedback reads of a loop (`heedful.loop.history.History`)."""

    settings: Settings
    """the settings of the loop"""
    catalogue: Catalogue
    """its items"""

    @property
    def model(self) -> LoopModel:
        """the model, which learns in place"""

    def reading_of(self, x: Any, person: str | None) -> tuple[Any, View[Any]]:
        """Return (published state, the same for `person`), with which to rank the candidates `x`."""


CALLERS_SCORE = "the caller's score"
"""The name of the last feature: the score that the caller gave a candidate with the request."""


class Arrange(Protocol):
    """A function that makes the encodings of a new loop from its items."""

    def __call__(
        self, rows: Sequence[Mapping[str, Any]], identifier: str | None, context: Encoding | None
    ) -> tuple[Encoding, Encoding | None, Sequence[tuple[str, str]]]:
        """Return (the encoding of the items `rows`, that of requests, the pairs of columns that are crossed).

        `identifier` is the column that names the items, None to find it; `context` the encoding of requests that the
        caller made, None if there is none. Raise ValueError, naming the field, if the rows make no sense."""


M = TypeVar("M", bound=LoopModel)


class Pairing(NamedTuple):
    """The rankings of two learners, from which one list is drafted: they pick items in turns (team-draft interleaving).

    The answers to such lists show which learner ranks better. `heedful.evaluation.interleaving` describes the
    procedure."""

    experiment: str
    """the id of the experiment in which two learners are compared"""
    a: Ints
    """the ranking of the learner that serves: indices of all m candidates, best first (m,)"""
    b: Ints
    """the ranking of the other learner (m,)"""
    rng: np.random.Generator
    """the random generator of the coins that decide which learner picks first in each round of two picks"""
    opening: int | None = None
    """the learner, 0 or 1, that picks the first item of a later page alone, if the page before ended in the middle of a
    round; otherwise None"""
    above: tuple[Ints, Ints] | None = None
    """for a later page: how many items of earlier pages each learner ranks above each of the m candidates, two arrays
    (m,); None for the first page"""

    def among(self, eligible: Ints) -> Pairing:
        """Return a pair of both rankings without the candidates whose indices are not in `eligible`."""
        return self._replace(a=self.a[np.isin(self.a, eligible)], b=self.b[np.isin(self.b, eligible)])

    def draft(self, size: int) -> tuple[Ints, dict[str, Any]]:
        """Return (a list of `size` candidates, as indices, drafted by both learners; what the log keeps of the draft,
        as JSON).

        The latter has these fields:
        - "experiment": the id of the experiment
        - "teams": the learner that picked each item, 0 or 1
        - "coins": the learner that picked first in each round
        - "ranks": the rank, from 1, that each learner gives to each item, among those of earlier pages too
        - "places": the probability that a draft shows each item in its position, given the pages before
        - "opening": the learner that picked the first item alone, if the page before ended in the middle of a round"""
        a, b = self.a.tolist(), self.b.tolist()
        made = interleave(a, b, size, self.rng, self.opening)
        cells = slot_probabilities(a, b, size, self.opening)
        above = np.zeros((2, 1 + max(made.items, default=0)), np.int64) if self.above is None else self.above
        kept: dict[str, Any] = {
            "experiment": self.experiment,
            "teams": list(made.teams),
            "coins": list(made.coins),
            "ranks": [[1 + r.index(item) + int(more[item]) for item in made.items] for r, more in zip((a, b), above)],
            "places": [cells[item, slot] for slot, item in enumerate(made.items)],
        }
        if self.opening is not None:
            kept["opening"] = self.opening
        return np.array(made.items, np.int64), kept

    def probability(self, shown: Ints) -> float:
        """Return the probability that a draft shows exactly the list `shown`, given the pages before.

        `shown` are indices of candidates, best first."""
        return draft_probability(self.a.tolist(), self.b.tolist(), shown.tolist(), self.opening)


class Shares(NamedTuple):
    """The probabilities with which a list is made in another way than by the learner that serves."""

    control: float
    """the probability of a list in the caller's own order or at random (the control)"""
    sampled: float
    """the probability of a list drawn at random around the model's ranking"""


class Question(NamedTuple):
    """A request as a model sees it: from which candidates to choose, for whom, and by which policy."""

    request: Request
    """the candidates, as features or item numbers, and how many to show"""
    person: str | None
    """the name of the person to decide for; None for nobody in particular"""
    repeats: bool
    """whether items that this person has already rated, or pairs already answered, may be shown again"""
    arm: DecisionArm
    """the policy that decides: "learned", the model; "control", the caller's order (or a random one), for comparison;
    "sampled", an order drawn at random around the model's; "interleaved", a draft of two learners' rankings"""
    match: Pairing | None = None
    """the two rankings, for a person whose lists are interleaved; otherwise None"""
    settled: bool = False
    """whether `arm` was not drawn for this request: it is a later page of a list, which has the policy of the first
    page"""

    def shares(self, settings: Settings) -> Shares:
        """Return the probabilities of the control and of lists drawn at random, given the pages before.

        They are those in the `settings` of the loop; for a later page of a list 1 for the policy of the first page,
        otherwise 0."""
        if self.settled:
            return Shares(float(self.arm == "control"), float(self.arm == "sampled"))
        return Shares(settings.control, settings.sampled)

    @property
    def control(self) -> bool:
        """True if the list is shown for comparison (the control: in the caller's order, or a random one), not by the
        model."""
        return self.arm == "control"


class Proposal(NamedTuple):
    """A decision before it is logged: what is shown, and what the log keeps with it."""

    shown: Ints
    """the candidates to show, as indices into the request's candidates, best first"""
    probability: float | None
    """the probability of showing exactly this list; None if it is unknown"""
    carried: dict[str, Any] = {}  # noqa: RUF012  # nobody writes to it
    """what the learner's `update` needs besides the list, by name, as JSON"""
    predicted: tuple[Any, ...] = ()
    """the predicted answer for each item shown, in the same order; () if nothing is predicted"""
    unknown: tuple[tuple[int, str], ...] = ()
    """(position in the list from 0, name) of each candidate that is not on offer; the position is -1 if it is not
    shown"""
    kept: Sequence[int] | None = None
    """indices of the candidates that the log keeps, in this order; None for all"""
    of: int = 0
    """how many candidates there were, if the log does not keep all (`kept`); otherwise 0"""


class ItemPrediction(NamedTuple):
    """The predicted answer to one item, with its uncertainty."""

    value: float
    """the predicted grade or rating, or the probability that the item is chosen; as in `Decision.predicted`, but not
    rounded"""
    spread: float | None = None
    """the standard deviation of the posterior of that value; None if the learner has none"""


class Step(NamedTuple):
    """One piece of feedback in the log with the decision that it answers, from which a model learns."""

    event: Event
    """the event of the feedback in the log"""
    decision: LoggedDecision
    """the decision that the feedback answers, as the log keeps it"""
    feedback: FeedbackRecord
    """the decoded record of the feedback"""
    context: Context
    """the same decision with its candidates as an array"""
    extra: Floats
    """the N features (e, N) of e objects that the feedback names and that were not among the candidates, such as an
    edited text"""

    def rows(self, items: Sequence[int]) -> Any:
        """Return the features (k, N), or the item numbers (k,), of k `items`: indices of candidates or, below 0, of
        objects that were none."""
        x, m = self.context.x, len(self.context.x)
        if not len(self.extra):
            return x.take(items, axis=0)
        return np.concatenate([x, self.extra]).take([j if j >= 0 else m - 1 - j for j in items], axis=0)


class LoggedAnswer:
    """One answer in the log, and what L models expect of it that have not learned from it yet. Each is worked out
    once, for all measures."""

    def __init__(self, interaction: Interaction[Any], views: Sequence[View[Any]], step: Step) -> None:
        """Take the feedback in `step`, and the models for the person who gave it."""
        self.step, self.views = step, views
        self.shown = step.context.record.shown
        self.answer = interaction.answer(step.decision, step.feedback)
        self._interaction = interaction

    @cached_property
    def models(self) -> Sequence[Expected]:
        """what each model expects"""
        return [self._interaction.expected(view, self.step) for view in self.views]

    @cached_property
    def numbers(self) -> tuple[Floats, Floats] | None:
        """the numbers stated (k,) and those that each model expects (L, k), nan where none; None if none is stated"""
        return numbers_expected(self.shown, self.answer, self.models)


Compare: TypeAlias = Callable[[LoggedAnswer], Compared | None]
"""A function that tells how good the prediction of each model was for an answer; None if that says nothing of it."""
ListValue: TypeAlias = Callable[[LoggedAnswer], float | None]
"""A function that tells how good the list was that was shown; None if the answer does not say."""


class Tally(Protocol):
    """Collects predictions and the answers to them, for the report of how well a loop predicts.

    Call `take` for each decision of the loop, the newest first, then `report`."""

    def take(self, decision: LoggedDecision, given: Sequence[tuple[Event, Answer]]) -> None:
        """Add one decision and compare the predictions in its record, one for each item shown, with the answers.

        `given` is the feedback on the decision that was not undone, in order: pairs (event in the log, answer)."""

    def report(self) -> PredictionReport:
        """Return the mean score of the predictions of all decisions added, next to that of a simple baseline."""


class Interaction(Protocol[M]):
    """A kind of feedback in one loop: which answers it takes, how they are learned, decided from, explained and
    reported.

    Subclass it for a new kind; methods with a body here do what most kinds do. Arguments that many methods share:
    `view` is the loop's model for the person asked about, and `x` the candidates of a request, as features (m, N) for m
    candidates and N features or, in kinds that know items by number, as item numbers (m,)."""

    name: str
    """the name by which a learner's docstring asks for this interaction: "ordinal\""""
    words: Words = Words()
    """what it calls things"""
    forms: ClassVar[Mapping[str, Form]]
    """the forms of feedback that it takes (clicks, grade, ...), by name, the most usual first"""
    model_type: type[M]
    """the class of model that learns from the log of a loop of this kind; its `version` is that of the code that does
    so"""
    setting: str = ""
    """the field of `Settings` that makes a loop one of this kind, whatever its learner; "" if the learner decides"""
    default_learner: str = ""
    """the learner of a loop of this kind if none is named"""
    options: tuple[LoopOption, ...] = ()
    """the options that it adds to `heedful init`; the first makes the new loop one of this kind"""
    action_syntax: str = "NAME=WEIGHT"
    """how an action (buy, hide, ...) and its value are written on a command line"""
    by_number: bool = False
    """whether the learner knows items by number; features only help it, if the user asks for that. The candidates of a
    request are then names of items, the log keeps all of them, a request may ask for what the person has already
    answered, and the model depends on the log's events of items (put on offer, withdrawn) too, not on feedback
    alone"""
    arrange: ClassVar[Arrange | None] = None
    """makes the encodings of items and requests; None if users say how columns are encoded and crossed"""
    splits_items: bool = False
    """whether an item whose features change becomes a new item, with a number of its own"""
    shows_weights: bool = True
    """whether pages show the weights of features, which are what the model has learned"""
    samples_lists: bool = False
    """whether a share of lists may be drawn at random around the model's ranking (setting `sampled`)"""
    ranks: bool = False
    """whether lists are rankings, so that two learners can draft a list together, a list can have more pages, and a
    request may give a score of the caller for each candidate"""
    orders: bool = False
    """whether a list is an order of candidates by their features, which the caller could have made: the answer none
    judges the list, so that silence may stand for it (setting `none_after`)"""
    scale: Scale | None = None
    """the numbers with which people answer; None if answers are no numbers"""
    rewarded: bool = False
    """whether people may say what the item shown was worth, from the lowest to the highest reward (setting
    `rewards`)"""
    details: type | None = None
    """the named tuple of what `PredictionReport.details` has; None if it has none"""
    policies: tuple[str, ...] = ()
    """how to write what is no learner and can be compared with learners ("always:MODEL")"""
    span: tuple[float, float] = (0.0, 1.0)
    """the (least, greatest) value of `score`"""
    linear: bool = False
    """whether candidates are ordered by a score that is linear in their features, with the weights that
    `LoopModel.effective` returns, and feedback corrects lists, so that `gains` says how much better one is"""
    manifest: Manifest
    """the manifest of the loop: its learner's name, encodings of items and requests, and settings"""
    learner: Any
    """the learner of the loop"""
    names: list[str]
    """the names of the N features as the learner sees them"""

    def __init__(self, manifest: Manifest, learner: Any) -> None:
        """Make the interaction of one loop, from the loop's `manifest` and its `learner`."""
        self.manifest, self.learner = manifest, learner
        self.names = feature_names(type(self), manifest)

    # ------------------------------------------------------------------------ founding a loop

    @classmethod
    def check_settings(cls, settings: Settings) -> dict[str, Any]:
        """Return the settings that this kind of feedback checks, by name, as they are stored.

        By default this is `actions`: the weight of each action, by the action's name. Raise ValueError, naming the
        setting, if a value is not valid."""
        weights = {check_id("actions", a): check_number(f"actions[{a}]", w) for a, w in settings.actions.items()}
        for name, weight in weights.items():
            if weight == 0.0:
                raise ValueError(f"actions[{name}]: expected a weight above or below 0, got 0")
        return {"actions": weights}

    @classmethod
    def check_items(cls, manifest: Manifest, rows: Sequence[Mapping[str, object]]) -> None:
        """Raise ValueError, with the number of the row from 1 and the column, if one of `rows` cannot be an item of a
        loop with this `manifest`; nothing beyond what the encoding refuses in most kinds."""
        return

    @classmethod
    def make_learner(cls, spec: str, manifest: Manifest) -> Any:
        """Return the learner that `spec` names ("posterior:swap=0.1"), for a loop with this `manifest`.

        Raise ValueError if there is no such learner, or if it does not fit the loop."""
        n, space = len(feature_names(cls, manifest)), WithBaseScore(Ranking(manifest.settings.k))
        return loop_learner(spec, n, space, cls.name, cls.words.learner, manifest.n_products)

    # ------------------------------------------------------------------------ how it speaks of itself

    def facts(self) -> dict[str, Any]:
        """Return, by name as JSON, the settings that only loops of this kind have, such as {"grades": 5}; {} if there
        are none."""
        return {}

    def gaps(self) -> dict[str, Any]:
        """Return the values that fill the gaps in texts of `words`, by name: those of `facts` and {learner}."""
        return {"learner": self.manifest.learner, **self.facts()}

    def fill(self, text: str) -> str:
        """Return one of the texts of `words` with its gaps filled."""
        return text.format(**self.gaps())

    def example(self, model: M, shown: Sequence[str]) -> tuple[str, dict[str, Any]]:
        """Return (an answer in words, the same answer as JSON fields of feedback), to show how a decision can be
        answered.

        `model` can learn from it; `shown` are the names of the items that the decision showed, best first."""
        form = next(iter(self.forms.values()))
        return "answers", {form.name: form.example}

    def why_empty(self, model: M, record: DecisionRecord, feedback: FeedbackRecord) -> str:
        """Return in words why `model` learned nothing from `feedback` on the decision in `record`, as a clause."""
        if not (feedback.chosen or feedback.values):
            return self.words.nothing_said
        return self.words.nothing_new

    def example_request(self) -> list[str]:
        """Return the options of `heedful decide` that a request to this loop needs, as an example; [] for none."""
        return []

    def findings(self, found: Report) -> Findings:
        """Return the report `found` in words and pictures, for pages and commands.

        It compares the model's lists with lists in the caller's order (the control), and predictions with a baseline if
        there are predictions."""
        notes = [self.fill(note) for note in self.words.notes]
        told = compare_arms(found, self.words, self.manifest.settings, self.span, notes)
        if found.prediction is None:
            return told
        section = prediction_section(found.prediction, self.prediction_sentences(found.prediction))
        return told._replace(sections=(*told.sections, section))

    def prediction_sentences(self, found: PredictionReport) -> Sequence[str]:
        """Return further sentences on how well answers were predicted, for the report; `found` has the numbers."""
        return ()

    # ------------------------------------------------------------------------ the fold

    def fresh(self) -> M:
        """Return a model of this loop's learner that has learned nothing."""
        return self.model_type(self.learner, self.manifest)

    def columns(self, model: M) -> Columns | None:
        """Return how the training examples of `model` become columns of numbers, from which compiled code learns; None
        if they do not.

        The resulting state has to equal that of `LoopModel.teach` for one example after the other, bit for bit."""
        return None

    # ------------------------------------------------------------------------ reading

    def order(self, view: View[M], x: Any) -> Ints:
        """Return the indices of the m candidates `x`, best first (m,); equally good ones stay in the order of the
        request.

        `x` are N features each (m, N) or item numbers (m,)."""

    def predict(self, view: View[M], x: Any) -> list[ItemPrediction] | None:
        """Return the predicted answer to each of the m candidates `x`, in their order; None if nothing is predicted.

        An answer is a grade, a rating or the probability of being chosen. `x` are N features each (m, N) or item
        numbers (m,)."""
        return None

    def standing(self, history: Readable, person: str | None, people: Sequence[str] | None) -> Board:
        """Return the ranking of all items on offer, its uncertainty, and whether it is certain enough to stop asking.

        It is the ranking of `person`, or of the mean utility of `people`, or of everybody if both are None.
        `history` holds the items with the model that is learned of them. Raise ValueError if this kind of loop has no
        such ranking."""
        raise ValueError(f"standing: expected a loop of choices, got {self.words.loop}")

    def cuts(self, view: View[M]) -> list[float] | None:
        """Return the k - 1 thresholds, rising, that divide the score of an item (weights times features) into k grades;
        None if there are none.

        They are those of the person of `view`, or, if it has none, those that all people share."""
        return None

    def why_not_predicted(self, shared: Any) -> str:
        """Return why the state `shared` predicts nothing of items so far, in words; "" if it predicts something."""
        return "" if self.words.prediction else "Nothing is predicted."

    def used(self, view: View[M]) -> set[int]:
        """Return the numbers of the items that are not shown to a person again unless the request asks for repeats.

        They are, for example, those that the person has rated. The set is empty in most kinds."""
        return set()

    def own_answers(self, view: View[Any]) -> dict[int, str]:
        """Return what a person answered, in a word or two for each item, by item number: {3: "said 4"}."""
        return {}

    def counts(self, shared: Any, items: int) -> str:
        """Return a sentence on how much feedback the published state `shared` was learned from; "" if there is none to
        give.

        `items` is the number of items on offer."""
        return ""

    # ------------------------------------------------------------------------ deciding

    def check_show(self, show: object) -> None:
        """Raise ValueError if a loop of this kind cannot show `show` items at once."""
        return

    def check_context(self, context: Mapping[str, object]) -> None:
        """Raise ValueError, naming the attribute, if the `context` of a request makes no sense in a loop of this
        kind."""
        return

    def eligible(self, view: View[M], asked: Question) -> Ints | None:
        """Return the indices of the candidates of the request `asked` that may be shown to its person; None for all.

        For example, items that the person has rated may be left out. Raise ValueError if too few are left."""
        return None

    def propose(
        self,
        view: View[M],
        asked: Question,
        eligible: Ints | None,
        rng: np.random.Generator,
    ) -> Proposal:
        """Return what to show for the request `asked`, with its probability and the predictions for the items.

        `asked.arm` is the policy: by the model, in the caller's order, ...

        - `eligible`: indices of the candidates that may be shown; None for all
        - `rng`: the random generator of this one decision"""

    # ------------------------------------------------------------------------ taking feedback

    def why_unfit(self, feedback: FeedbackRecord, shown: Sequence[int]) -> str | None:
        """Return why `feedback` cannot answer a decision that showed the candidates `shown` (indices); None if it
        can."""
        return None

    def table_answers(
        self,
        table: Table,
        columns: Mapping[str, Sequence[str]],
        worth: Mapping[str, float],
        missing: Collection[str],
        items: Collection[str],
    ) -> tuple[list[str], int, Iterator[AnsweredItem]] | None:
        """Return (names of items that are not on offer yet, how many answers there are, these) of a `table` of answers;
        None if it is none, as in kinds that read no such tables.

        `columns`: those of roles whose names differ from the usual ones; `worth`: what kinds of feedback are worth as
        numbers; `missing`: numbers that stand for none; `items`: the names of items on offer."""
        return None

    # ------------------------------------------------------------------------ looking back

    def explained(self, view: View[M], x: Any, place: int) -> dict[str, Any] | None:
        """Return the answer that the model expects to the item at a `place` among the candidates `x`, and the numbers
        that it rests on, by name; None if there are none."""
        return None

    def sure(self, view: View[M], x: Any) -> list[float] | None:
        """Return how probable it is, by what was learned, that each of the items `x` is better than the next; None if
        the model cannot tell."""
        return None

    def item_scores(self, view: View[M], x: Any, places: Sequence[int]) -> Floats | None:
        """Return the scores (k,) that the model gives to k candidates of a decision; None if it gives none.

        `x` are the m candidates of the decision, as N features each (m, N) or item numbers (m,); `places` are the
        indices of the k candidates. By default a score is the inner product of weights and features."""
        w, rows = view.model.effective(view), x[list(places)]
        return scores(rows, w) if rows.ndim == 2 and w.shape == rows.shape[1:] else None

    def contributions(self, view: View[M], x: Any, place: int) -> Contributions:
        """Return how much each feature of one candidate contributes to the score that the model gives it.

        `x` are the m candidates of a decision, as N features each (m, N) or item numbers (m,); `place` is the index of
        the candidate. If there are no contributions, the result says why."""
        if self.item_scores(view, x, [place]) is None:
            return parts_of.none(f"{type(self.learner).__name__} has no weights of features: there are no parts")
        return parts_of.linear(self.names, view.model.effective(view), x[place], "score")

    def candidate(self, spec: str) -> M:
        """Return an untrained model of another learner, named by `spec`, to be evaluated on this loop's log.

        Raise ValueError if there is no such learner, or it does not fit the loop."""
        return self.model_type(self.make_learner(spec, self.manifest), self.manifest)

    def full_spec(self, spec: str) -> str:
        """Return `spec`, the name of a learner to try in this loop, with the parameters that the loop prescribes added.

        With 5 grades, for example, "prank" becomes "prank:n_ranks=5"."""
        return spec

    def measures(self) -> Sequence[tuple[Measure, Compare]]:
        """Return the measures by which learners are compared on a log of this kind, the main one first: (names, range
        and texts; the function that compares)."""

    def chances(self, said: LoggedAnswer) -> Floats | None:
        """Return the probability (L,) with which each of the L models of `said` would show exactly the list that was
        shown, nan for one that cannot tell; None if this kind of feedback has no such probabilities."""
        return None

    def baselines(self, items: Sequence[str]) -> Sequence[str]:
        """Return the learners, by name, that the loop's own is compared with if none is named; `items` are the names of
        the items on offer."""
        return ()

    def list_measures(self) -> Sequence[tuple[Measure, ListValue]]:
        """Return the measures by which the lists are judged that another learner would have shown: (names, range of
        all values that are possible, and texts; the value of the list that was shown); () for the mean of `score`
        alone."""
        return ()

    # ------------------------------------------------------------------------ reporting

    def tally(self) -> Tally | None:
        """Return a new collector of predictions and answers, for the report; None if this kind of feedback predicts
        nothing."""
        return None

    def expected(self, view: View[M], step: Step) -> Expected:
        """Return what the model expects of the candidates of the decision in `step`, and of the other objects that its
        feedback names."""

    def answer(self, decision: LoggedDecision, feedback: FeedbackRecord) -> Answer:
        """Return what `feedback` says of the items of `decision`, by its form and the settings of this kind."""
        return read_answer(self.forms, feedback, decision.record.shown)

    def score(self, decision: LoggedDecision, feedback: Sequence[FeedbackRecord]) -> float | None:
        """Return how good the list of `decision` was, judged by the `feedback` on it; None if that does not say.

        The score lies between the two numbers of `span`. By default it is the reciprocal rank of what was
        preferred."""
        record = decision.record
        shown = around(record.shown, record, str) if record.unknown else record.shown
        return answers.reciprocal_rank(shown, [self._said(decision, each, shown) for each in feedback])

    def _said(self, decision: LoggedDecision, feedback: FeedbackRecord, shown: Sequence[Item]) -> Answer:
        if feedback.said is None:
            return self.answer(decision, feedback)
        return answer_by_name(feedback.said, shown, decision.names)


def find_candidate(interaction: Interaction[M], spec: str, others: Sequence[str] = ()) -> M:
    """Return `interaction.candidate(spec)`. If there is no learner of that name, the error has the names that fit its
    loop.

    `others` may be named there as well, such as the `policies`."""
    try:
        return interaction.candidate(spec)
    except UnknownLearner as error:
        raise name_fitting(error, interaction.candidate, others) from None


def why_refused(interaction: Interaction[Any], model: LoopModel, form: str) -> str | None:
    """Return why a loop cannot learn from feedback of the form with the name `form` ("clicks"); None if it can.

    The kind of feedback has to take that form, and the learner of the `model` to be able to use it."""
    forms, words = list(interaction.forms), interaction.words
    if form in forms:
        return model.refusal(form)
    hint = f"; {words.instead[form]}" if form in words.instead else ""
    return f"{form}: expected {', '.join(forms[:-1])} or {forms[-1]}: {interaction.fill(words.learns)}{hint}"


def prediction_scale(interaction: Interaction[Any]) -> Scale:
    """Return the numbers that can be predicted for an item: those that people can give, otherwise probabilities."""
    return interaction.scale or Scale(0.0, 1.0)


def feature_names(kind: type[Interaction[Any]], manifest: Manifest) -> list[str]:
    """Return the names of the N features of a candidate, in the order in which a learner of this `kind` sees them.

    They are the features that the encodings in `manifest` make of an item and a request, then, last, the score that the
    caller gives the candidate in a request (`prior`), such as that of a search engine. Of items that are known by
    number they are the features of the item alone."""
    return list(manifest.encoding.names) if kind.by_number else [*manifest.candidate_names, CALLERS_SCORE]


def is_compiled_alike(learner: Any) -> bool:
    """Return whether `learner` ends in the same state, bit for bit, whether its `update` is compiled or interpreted.

    That is taken to hold for heedful's own learners, for which tests check it, unless one says that it cannot be
    compiled."""
    return type(learner).__module__.startswith("heedful.learners.") and not must_interpret(learner)


def item_key(step: Step, candidate: int) -> int:
    """Return a hash of one candidate of the decision in `step`, as the candidate was described to the learner.

    `candidate` is its index; `step` is one piece of feedback with the decision that it answers. The hash covers the
    name and the features or item number, without the score that the caller gave, so the same item described in the same
    way has the same hash."""
    x = step.context.x
    row = x[candidate : candidate + 1] if x.ndim == 1 else x[candidate, :-1]
    return hash((step.decision.names[candidate], np.ascontiguousarray(row).tobytes()))
