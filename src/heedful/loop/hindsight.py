"""Looking back over a log: why was this first, what moved it, and what would another learner have made of it?

Everything here folds the log again and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.data.frames import frame_of
from heedful.kernel import Floats, scores
from heedful.learners.fair_pairs import fair_pairs
from heedful.loop.graders import is_grading
from heedful.loop.ledger import Ledger
from heedful.loop.lessons import lesson_of
from heedful.loop.log import Event
from heedful.loop.model import Context, Lesson, Model, Thumb
from heedful.loop.packing import Known
from heedful.loop.settings import founded_on
from heedful.loop.wire import FeedbackRecord
from heedful.naming import learner_class
from heedful.notebooks import table

Array = npt.NDArray[np.float64]


class Part(NamedTuple):
    """What one feature says about the two: weight times difference."""

    name: str
    weight: float
    first: float
    second: float
    counts: float


class Moved(NamedTuple):
    """By how much one piece of feedback moved the first ahead of the second."""

    event: str
    seq: int
    form: str
    by: float


class Foreseen(NamedTuple):
    """What a loop of ratings expected of an item, and from how much."""

    expected: float | None
    """the rating, within the range; None for a learner that does not say"""
    spread: float | None
    """the standard deviation of that belief; None where it is not known"""
    by_all: float
    """how many ratings the item had from all by then, actions by their weight; and their mean, None without any"""
    mean_of_all: float | None
    by_person: float
    """... how many the person had given, and their mean"""
    mean_of_person: float | None
    own: float
    """... how many of this item by this person, and their mean"""
    mean_of_own: float | None


class Weighed(NamedTuple):
    """What a loop of choices believed of two items when it asked which is better."""

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


class Explanation(NamedTuple):
    """Why the first of a decision stands before the second, by the model as it was then."""

    decision: str
    arm: str
    first: str
    second: str | None
    """None where there was no other candidate: then the first is compared with an item of average features"""
    because: str
    """the model, the caller's order, or chance: in words"""
    margin: float
    """score of the first less score of the second: the sum of what the features count"""
    features: tuple[Part, ...]
    """by how much they count, the most first; those that count nothing are left out"""
    lessons: tuple[Moved, ...]
    """by how much they moved it, the most first; with the caller's own score they sum to the margin"""
    grade: int | None = None
    """of a grading loop, what was predicted of the first, which is then explained by itself: `margin` is its score"""
    between: tuple[float | None, float | None] | None = None
    """of a grading loop, the scores from which on and up to which this grade is predicted; None at an end, and
    altogether where there is no such score: `because` says why"""
    rating: Foreseen | None = None
    """of a loop of ratings, what was expected of the first, which is then explained by itself: `margin` is that rating,
    `features` what it is the sum of"""
    choice: Weighed | None = None
    """of a loop of choices, what was believed of the first two: `margin` is by how much the first was ahead, `lessons`
    the answers that it is the sum of"""

    def to_frame(self, package: str = "pandas") -> Any:
        """What each feature counts, the most first, as a data frame of this package: pandas, polars, or pyarrow for a
        table. ModuleNotFoundError where it is not installed."""
        return frame_of({name: [getattr(part, name) for part in self.features] for name in Part._fields}, package)

    def _repr_html_(self) -> str:
        other = "" if self.second is None else f" before {self.second}"
        told = f"Decision {self.decision}: why {self.first} stood first{other}, by {self.margin:+.3g}"
        parts = table(told, ["feature", "weight", "first", "second", "counts"], self.features, [self.because])
        moved = table("What moved it", ["feedback", "event", "form", "by"], self.lessons)
        return parts + (moved if self.lessons else "")


class Replayed(NamedTuple):
    """What another learner makes of the same log."""

    learner: str
    lessons: int
    weights: dict[str, float]
    """by feature, the caller's score last (1 more than what was learned of it)"""
    agreement: float | None
    """the share of comparisons that it ranked as the person did, before it learned from them; None without any"""
    comparisons: float
    """how many there were: answers to orders that neither learner chose (control, imported) and swapped neighbours; in
    a loop of ratings pairs of items that one answer rates differently, in a loop of choices what was chosen and each of
    the others"""
    rank_loss: float | None = None
    """of a grading loop, the mean of |predicted - given|, each before it learned from it; None without any"""
    graded: int | None = None
    """of a grading loop, how many grades that is over"""
    error: float | None = None
    """of a loop of ratings, the mean of |predicted - given|, each before it learned from it; None without any, and for
    a learner that does not predict"""
    rated: int | None = None
    """of a loop of ratings, how many ratings that is over"""


def explain(ledger: Ledger, id: str) -> Explanation:
    """Why the first of decision `id` stood first. LookupError where there is no such decision."""
    known = ledger.known(id)
    if known is None:
        raise LookupError(f"decision {id} is not in the log")
    version = known.version
    names = known.names
    context = ledger.requests.context(known)
    first = known.record.shown[0]
    second = _second(ledger, known, context.x, version)
    gap = context.x[first] - (context.x[second] if second is not None else 0.0)
    model, moved = Model(ledger.learner, ledger.settings.shrink), []

    def lead() -> float:
        return float(scores(gap[None, :], _weights(model, known.person))[0])

    before = lead()
    for event, decision, feedback in learned(ledger, version):
        ledger.teach(model, event, decision, feedback)
        after = lead()
        if after != before:
            moved.append(Moved(event.id, event.seq, feedback.form, after - before))
        before = after
    weights = _weights(model, known.person)
    parts = [
        Part(name, float(w), float(a), float(a - g), float(w * g))
        for name, w, a, g in zip(ledger.founding.names, weights, context.x[first], gap)
        if w * g != 0.0
    ]
    return Explanation(
        id,
        known.record.arm,
        names[first],
        None if second is None else names[second],
        _because(known.record.arm, before),
        before,
        tuple(sorted(parts, key=lambda part: -abs(part.counts))),
        tuple(sorted(moved, key=lambda each: -abs(each.by))),
    )


def learned(ledger: Ledger, version: int) -> Iterator[tuple[Event, Known, FeedbackRecord]]:
    """What the model was made of at a version: without the lessons that the learner failed on."""
    for event, decision, feedback in ledger.lessons(up_to=version):
        if event.seq not in ledger.failed:
            yield event, decision, feedback


def _because(arm: str, margin: float) -> str:
    if arm == "control":
        return "this was a control: the caller's order was shown, whatever the model says"
    if arm == "imported":
        return "somebody else made this order; the margin is what the model said of it at that time"
    if margin < 0.0:
        return (
            "the model had them the other way round: neighbours were swapped at random, so that clicks can be compared"
        )
    return "the model had them in this order"


def _second(ledger: Ledger, known: Known, x: Floats, version: int) -> int | None:
    """What the first is compared with: what was shown after it, else the candidate that was not shown."""
    if len(known.record.shown) > 1:
        return known.record.shown[1]
    others = [j for j in range(len(x)) if j != known.record.shown[0]]
    if not others:
        return None
    model = Model(ledger.learner, ledger.settings.shrink)
    for lesson in learned(ledger, version):
        ledger.teach(model, *lesson)
    utilities = scores(x, _weights(model, known.person))
    return max(others, key=lambda j: utilities[j])


def _weights(model: Model, person: str | None) -> Array:
    return model.effective(model.shared, model.people.get(person) if person is not None else None)


def replay(ledger: Ledger, spec: str) -> Replayed:
    """Fold the log with the learner that `spec` names. ValueError where it is none, or does not fit the loop."""
    if is_grading(learner_class(spec)):
        raise ValueError(
            f"learner: wanted one that is taught what is better, got {spec}: this loop learns orders, and does not fix "
            "how many grades there are"
        )
    model = Model(founded_on(ledger.founding, spec), ledger.settings.shrink)
    lessons, right, compared = 0, 0.0, 0.0
    for event, decision, feedback in ledger.lessons():
        context = ledger.requests.context(decision)
        weights = _weights(model, decision.person)
        agreed, weight = _agreed(ledger, event, decision, feedback, context, weights, model)
        right, compared = right + agreed, compared + weight
        try:
            lessons += ledger.teach(model, event, decision, feedback)
        except Exception as error:  # whatever a learner of somebody's own raises
            raise ValueError(f"learner: {spec} failed on feedback {event.id}: {error}") from error
    names = ledger.founding.names
    shared = dict(zip(names, map(float, model.effective(model.shared, None))))
    return Replayed(spec, lessons, shared, right / compared if compared else None, compared)


def _agreed(
    ledger: Ledger,
    event: Event,
    decision: Known,
    feedback: FeedbackRecord,
    context: Context,
    weights: Array,
    model: Model,
) -> tuple[float, float]:
    """(how much of it a model with these weights ranked as the person did, how much there was to rank).

    Corrections of a learner's own order say where it was wrong, so they would speak against it whoever it is. What is
    fair to all: what neither learner chose.
    """
    record, x, _ = context
    if record.arm == "learned":
        if feedback.form != "clicks" or record.proposal.get("start", -1) < 0:
            return 0.0, 0.0
        clicked = np.zeros(len(x), np.bool_)
        clicked[[j for j in feedback.chosen if j >= 0]] = True
        swapped = np.array(record.proposal["swapped"], np.bool_)
        start, shown = int(record.proposal["start"]), np.array(record.shown, np.int64)
        swapped = swapped[: max((shown.size - start) // 2, 0)]
        better, worse, weight = fair_pairs(shown, start, swapped, clicked, ledger.learner.swap)
        utilities = scores(x, weights)
        gaps = utilities[better] - utilities[worse]
        return float(((gaps > 0.0) + 0.5 * (gaps == 0.0)) @ weight), float(weight.sum())
    reader = order_reader(model.learner)
    lesson = lesson_of(ledger, reader, event, decision, feedback, context)
    if lesson is None:
        return 0.0, 0.0
    D = direction(reader, lesson)
    if not D.any():
        return 0.0, 0.0  # the person agreed with what was shown, or nothing tells the two apart
    gap = float(scores(D[None, :], weights)[0])
    return float(gap > 0.0) + 0.5 * float(gap == 0.0), 1.0


def order_reader(learner: Any) -> Model:
    """What reads feedback as a whole order that is better than the one shown, whatever `learner` makes of it."""
    return Model(_Order(learner.n_features, learner.space))


def direction(reader: Model, lesson: Lesson | Thumb) -> Array:
    """D of a lesson, N: phi(x, ybar) - phi(x, y); of a thumb phi of what was shown, turned round where it is down."""
    if isinstance(lesson, Thumb):
        return lesson.sign * lesson.z
    D = np.zeros(reader.learner.n_features)
    reader.learner.space.add_difference(D, lesson.x, lesson.feedback, lesson.y, 1.0)
    return D


class _Order(NamedTuple):
    """No learner: feedback reads as a whole order that is better than the one shown."""

    n_features: int
    space: Any

    def init(self, rng: Any) -> tuple[()]:
        return ()

    def propose(self, state: Any, x: Floats, rng: Any) -> Any:
        return np.arange(len(x))
