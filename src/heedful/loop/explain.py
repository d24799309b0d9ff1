"""Why was a decision made: what put the first of it there, and which feedback moved it? One procedure for all kinds.

What an explanation is made of, the loop's interaction knows (`interaction.explain`); it reads the log through `_Past`.
Everything here folds the log again and changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from heedful.core.notebooks import table
from heedful.data.frames import frame_of
from heedful.loop.log import Event
from heedful.loop.model import Context
from heedful.loop.packing import LoggedDecision
from heedful.loop.projection import Projection
from heedful.loop.records import FeedbackRecord


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


def explain(projection: Projection, id: str) -> Explanation:
    """Why the first of decision `id` stood first. LookupError where there is no such decision, or where it showed
    nothing that was on offer."""
    known = projection.known(id)
    if known is None:
        raise LookupError(f"decision {id} is not in the log")
    if not known.record.shown:
        raise LookupError(f"decision {id} showed nothing that was on offer: there is nothing to explain")
    found: Explanation = projection.interaction.explain(
        known, projection.requests.context(known), _Past(projection, known.version)
    )
    return found


class _Past:
    """The log up to a version of the model, as an interaction reads it."""

    def __init__(self, projection: Projection, version: int) -> None:
        self._ledger, self._version = projection, version

    def model(self) -> Any:
        """The model as it was: from the newest state before it that was kept, folded on."""
        projection, model = self._ledger, self._ledger.fresh()
        for event, decision, feedback in projection.steps(
            model, projection.before(model, self._version), self._version
        ):
            if event.seq not in projection.failed:
                projection.teach(model, event, decision, feedback)
        return model

    def follow(self, margin: Callable[[Any], float]) -> tuple[Any, list[Moved]]:
        """The model as it was, folded from the first lesson; by how much each moved `margin` of it, the most first."""
        projection, moved = self._ledger, list[Moved]()
        model = projection.fresh()
        before = margin(model)
        for event, decision, feedback in projection.steps(model, 0, self._version):
            if event.seq in projection.failed or not projection.teach(model, event, decision, feedback):
                continue
            after = margin(model)
            if after != before and not (math.isnan(after) and math.isnan(before)):
                moved.append(Moved(event.id, event.seq, feedback.form, after - before))
            before = after
        return model, sorted(moved, key=lambda each: by_size(each.by))

    def feedback(self) -> Iterator[tuple[Event, LoggedDecision, FeedbackRecord]]:
        """What the model was made of, in order, without the lessons that the learner failed on."""
        for event, decision, feedback in self._ledger.lessons(up_to=self._version):
            if event.seq not in self._ledger.failed:
                yield event, decision, feedback

    def context(self, decision: LoggedDecision) -> Context:
        """A decision with its arrays."""
        return self._ledger.requests.context(decision)


def by_size(value: float) -> float:
    """Sorts the greatest first, whatever its sign, and what is no number before all."""
    return -math.inf if math.isnan(value) else -abs(value)
