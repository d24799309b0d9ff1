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
    """The part of one feature in the margin of the first over the second: weight times difference."""

    name: str
    weight: float
    first: float
    second: float
    counts: float


class Moved(NamedTuple):
    """A piece of feedback, and by how much it moved the first ahead of the second."""

    event: str
    seq: int
    form: str
    by: float


class Explanation(NamedTuple):
    """An explanation of why the first item of a decision stands before the second, by the model of that time."""

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
    prediction: dict[str, Any] | None = None
    """what was predicted of the first, and from how much, by the names of its interaction; None where nothing is. Where
    the first is explained by itself (`second` is None), `margin` is its score or the prediction itself"""

    def to_frame(self, package: str = "pandas") -> Any:
        """Return the features, the most important first, as a data frame of `package` (pandas, polars, or pyarrow).

        Raise ModuleNotFoundError if it is not installed."""
        return frame_of({name: [getattr(part, name) for part in self.features] for name in Part._fields}, package)

    def _repr_html_(self) -> str:
        other = "" if self.second is None else f" before {self.second}"
        told = f"Decision {self.decision}: why {self.first} stood first{other}, by {self.margin:+.3g}"
        parts = table(told, ["feature", "weight", "first", "second", "counts"], self.features, [self.because])
        moved = table("What moved it", ["feedback", "event", "form", "by"], self.lessons)
        return parts + (moved if self.lessons else "")


def explain(projection: Projection, id: str) -> Explanation:
    """Return why the first item of decision `id` stood first.

    Raise LookupError if there is no such decision, or if it showed nothing that was on offer."""
    known = projection.find_decision(id)
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
        """Return the model as it was: folded on from the newest state before it that was kept."""
        projection, model = self._ledger, self._ledger.fresh()
        for event, decision, feedback in projection.steps(
            [model], projection.before(model, self._version), self._version
        ):
            if event.seq not in projection.failed:
                projection.teach(model, event, decision, feedback)
        return model

    def follow(self, margin: Callable[[Any], float]) -> tuple[Any, list[Moved]]:
        """Return the model as it was, and by how much each lesson moved `margin` of it, the most first."""
        projection, moved = self._ledger, list[Moved]()
        model = projection.fresh()
        before = margin(model)
        for event, decision, feedback in projection.steps([model], 0, self._version):
            if event.seq in projection.failed or not projection.teach(model, event, decision, feedback):
                continue
            after = margin(model)
            if after != before and not (math.isnan(after) and math.isnan(before)):
                moved.append(Moved(event.id, event.seq, feedback.form, after - before))
            before = after
        return model, sorted(moved, key=lambda each: by_size(each.by))

    def feedback(self) -> Iterator[tuple[Event, LoggedDecision, FeedbackRecord]]:
        """Yield the feedback that the model was made of, in order, without that on which the learner failed."""
        for event, decision, feedback in self._ledger.lessons(up_to=self._version):
            if event.seq not in self._ledger.failed:
                yield event, decision, feedback

    def context(self, decision: LoggedDecision) -> Context:
        """Return a decision with its arrays."""
        return self._ledger.requests.context(decision)


def by_size(value: float) -> float:
    """Return a sort key that puts the greatest size first, whatever the sign, and nan before all."""
    return -math.inf if math.isnan(value) else -abs(value)
