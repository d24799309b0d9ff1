"""Why an item of a decision had its score, and which feedback moved that."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from heedful.core.notebooks import table
from heedful.data.frames import frame_of
from heedful.results.answers import Finite

Method = Literal["exact", "gradient", "removed", "none"]


class Contribution(NamedTuple):
    """How much one feature of an item adds to the item's score."""

    name: str
    """the name of the feature, or of a part of the score that is no feature"""
    value: float
    """the value of the feature as the learner sees it; 1 for a part that is no feature, such as a mean"""
    weight: float | None
    """the change of the score per unit of the feature; None if the feature was removed instead"""
    counts: Finite
    """the contribution, in units of the score"""
    lead: float | None = None
    """what it adds to the lead over the item that this one is compared with, in the same units; None if there is none,
    or if the parts do not sum to the score"""


class Contributions(NamedTuple):
    """The contributions of all features of an item to its score."""

    method: Method
    """exact: the parts sum to the score; gradient: derivative times feature; removed: the score without the feature;
    none: there are none, and `about` says why"""
    about: str
    """the method, or why there are no parts, in words"""
    score_is: str
    """what the score is: "predicted rating", "utility\""""
    parts: tuple[Contribution, ...] = ()
    """the largest in size first; those that are 0 are left out"""


EventMethod = Literal["leave-one-out", "additive", "movement", "none"]


class Influence(NamedTuple):
    """A piece of feedback, and by how much it raised the score of the item that is explained."""

    event: str
    """the id of the feedback, which `Loop.undo` takes"""
    seq: int
    """its sequence number in the log"""
    form: str
    """its form: "clicks", "grade", "thumb", ..."""
    decision: str
    """the id of the decision that it answers"""
    by: Finite
    """by how much it raised the score"""
    lead: float | None
    """by how much it raised the lead of the item over the one that it is compared with; None if there is none"""


class Why(NamedTuple):
    """Why a candidate (`item`) of a decision had its score, by the model that made the decision."""

    decision: str
    """the id of the decision"""
    item: str
    """the name of the candidate"""
    arm: str
    """how the decision was made: "learned", "control", "sampled", "interleaved" or "imported\""""
    place: int | None
    """its place in what was shown, 1 for the first; None if it was a candidate and not shown"""
    version: int
    """the version of the model that made the decision"""
    score: float | None
    """the score that the model gives it; None if the learner gives items no score"""
    score_is: str
    """what the score is: "score", "expected rating", "utility\""""
    next: str | None
    """what the item is compared with: the one shown after it; for the last one shown, the best that was not shown; for
    an item that was not shown, the last one shown; None if there is no other"""
    lead: float | None
    """the score minus that of `next`"""
    sure: float | None
    """how probable it is, by what was learned, that the item is better than `next`; None if that cannot be told"""
    prediction: dict[str, Any] | None
    """the answer that was expected and the numbers that it rests on, by name; None if there are none"""
    features_by: Method
    """how contributions were computed: exact, gradient, removed, or none"""
    features_about: str
    """that method in words, or why there are none"""
    features: tuple[Contribution, ...]
    """the largest contribution first; those that are 0 for both items are left out"""
    events_by: EventMethod
    """how the influence of feedback was computed. "leave-one-out": the score minus the score of a model made without
    it; "additive": what it added to the score, which is the same for this learner; "movement": by how much the score
    changed when it was learned; "none\""""
    events_about: str
    """that method in words, with its limits, or why there is none"""
    events: tuple[Influence, ...]
    """the feedback that moved the score most, the most first"""
    considered: int
    """how many pieces of feedback the model was made of that have not been undone or rolled back since"""
    undone_since: int
    """how many pieces of feedback the model was made of that were undone or rolled back since; they are not listed"""

    def to_frame(self, package: str = "pandas") -> Any:
        """Return the contributions, the largest first, as a data frame of `package` ("pandas", "polars" or "pyarrow").

        Raise ModuleNotFoundError if it is not installed."""
        return frame_of({n: [getattr(part, n) for part in self.features] for n in Contribution._fields}, package)

    def _repr_html_(self) -> str:
        told = f"Decision {self.decision}: why {self.item} has the {self.score_is} {_number(self.score)}"
        parts = table(told, ["feature", "value", "weight", "counts", "lead"], self.features, [self.features_about])
        columns = ["feedback", "event", "form", "decision", "by", "lead"]
        return parts + table("What moved it", columns, self.events, [self.events_about])


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3g}"
