"""What a loop answers to whoever asks, corrects, undoes or forgets."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, NamedTuple

from heedful.core.notebooks import table
from heedful.data.frames import frame_of

Finite = Annotated[float, "null in JSON where it is not finite: the weights overflowed, as caveats say"]
"""A number that may be infinite or no number."""
Status = Literal["applied", "duplicate", "rejected"]


Arm = Literal["learned", "control", "sampled", "interleaved", "imported"]


class Answer(NamedTuple):
    """What became of an event that was sent to a loop."""

    status: Status
    """"applied"; "duplicate" if the same event was in the log already; "rejected", with the `reason`"""
    event: str
    """the id of the event"""
    seq: int | None
    """the sequence number of the event in the log, for a duplicate that of the first one; None if it was rejected"""
    version: int
    """the version of the model after the event"""
    late: bool = False
    """whether it is feedback that came later than the setting `late_after` says; it is learned all the same"""
    learned: bool = False
    """whether it changed what the model is made of: feedback with something to learn in it, an undo that took effect, a
    rollback"""
    reason: str | None = None
    """why it was rejected, or why nothing was learned; None if there is nothing to say"""


class LostDecision(Answer):
    """The answer to feedback on a decision that is not in the log of a loop with `durable="feedback"`.

    It is rejected: the decision was lost in a crash of the machine, or never made."""

    __slots__ = ()


class Decision(NamedTuple):
    """A decision, as callers get it: what to show, and how that came about."""

    id: str
    """the id of the decision, which feedback on it names"""
    shown: tuple[str, ...]
    """the names of the candidates to show, best first"""
    probability: float | None
    """the probability of showing just this list; None if it is unknown"""
    version: int
    """the version of the model that made it"""
    arm: Arm
    """how it was made: "learned" (by the model), "control" (in the caller's order or at random, for comparison),
    "sampled" (drawn around the model's order), "interleaved" (drafted by the model and a candidate learner) or
    "imported" (by another system)"""
    seq: int
    """its sequence number in the log"""
    predicted: tuple[float | None, ...] | None = None
    """the prediction for each item shown (a grade, a rating, a probability of being chosen), None for an unknown item;
    None if this loop predicts nothing"""
    unknown: tuple[str, ...] | None = None
    """the names of candidates that are not on offer, shown or not; None if all are on offer"""
    undeclared: tuple[str, ...] | None = None
    """the fields of candidates and of the context that the loop makes no feature of, such as "candidates.bm25"; None
    if there are none"""
    sure: float | None = None
    """how probable it is, by what was learned, that the first item shown is better than the second (of one item, than
    the best other candidate); None if the learner cannot tell"""

    def plain(self) -> dict[str, Any]:
        """Return the fields by name, as in JSON; `predicted`, `unknown` and `undeclared` only if they are not None."""
        return {name: value for name, value in zip(self._fields, self) if value is not None or name == "probability"}

    def to_frame(self, package: str = "pandas") -> Any:
        """Return what is shown, a row each, best first, with its predictions, as a data frame of `package`.

        `package` is "pandas", "polars" or "pyarrow". Raise ModuleNotFoundError if it is not installed."""

        return frame_of(self._columns(), package)

    def _columns(self) -> dict[str, list[Any]]:
        told = {"item": self.shown, "predicted": self.predicted}
        return {name: list(values) for name, values in told.items() if values is not None}

    def _repr_html_(self) -> str:

        columns = {"": range(1, len(self.shown) + 1), **self._columns()}
        chance = "unknown" if self.probability is None else f"{self.probability:.3g}"
        told = f"probability of just this {chance}; arm {self.arm}; model version {self.version}"
        return table(f"Decision {self.id}", list(columns), zip(*columns.values()), [told])


def plain(value: object) -> Any:
    """Return a result as plain values for JSON.

    Named tuples become objects, at any depth. Numbers that are not finite become None, and a field that is None is left
    out if it has a default."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        parts = zip(value._fields, map(plain, value))
        return {name: part for name, part in parts if part is not None or _says_none(value, name)}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _says_none(value: Any, name: str) -> bool:
    return name not in value._field_defaults


class Ranking(NamedTuple):
    """All candidates of a request, ordered by the current model."""

    ranking: tuple[str, ...]
    """the names of the candidates, best first"""
    version: int
    """the version of the model: the sequence number of the last event that it was made of"""
    unknown: tuple[str, ...] | None = None
    """the names of candidates that are not items on offer; None if all are"""
    undeclared: tuple[str, ...] | None = None
    """the fields of candidates and of the context that are no features of the loop, such as "candidates.bm25"; None if
    there are none"""
    sure: tuple[float, ...] | None = None
    """how probable it is, by what was learned, that each of the first ten is better than the next; None if the learner
    cannot tell"""


class Put(NamedTuple):
    """What became of items that were put on offer."""

    put: int
    """how many were new or have other attributes than before; those that are on offer as they are do not count"""
    changed: tuple[str, ...] = ()
    """the names of those that were on offer with other attributes. What was answered about them still counts: for what
    was shown then, or for the item itself in a loop that learns of items by name"""


class Forgotten(NamedTuple):
    """The result of `Loop.forget`: what was erased of a person, or of several, and what could not be."""

    events: int
    """how many events were erased: decisions for the person, feedback on them, corrections of their style, and undos of
    either"""
    exports: tuple[str, ...]
    """paths of files that exports wrote earlier, or left when killed; they may still hold the person's events, and the
    loop cannot change them"""
    version: int
    """the version of the model without the person"""
    erased: bool = True
    """whether no bytes of the person's events are left in the loop's files; False while another process is reading"""
    unreached: tuple[str, ...] = ()
    """what the loop cannot erase them from, in words: of a database its write-ahead log, archive and standbys; of a
    folder the files of Litestream, if it copies the log; () if there is nothing"""
    alike: tuple[str, ...] = ()
    """names of people who are still in the log and whose names differ in case, blanks or the code of a letter alone"""
    people: int = 0
    """how many people that was; 0 if nothing in the log was about them"""


class PersonEvents(NamedTuple):
    """What a loop has about a person: the lines of their events in order (decisions for them, activations, feedback on
    them, undos of that, corrections of their style), and other names in the log that are spelt alike."""

    person: str
    """the name that was asked for"""
    events: tuple[dict[str, Any], ...]
    """those that `Loop.forget` would erase, as the lines of an export"""
    alike: tuple[str, ...]
    """names that differ in case, blanks or the code of a letter alone, and may be those of the same person"""


class RolledBack(NamedTuple):
    """The result of `Loop.rollback`: the answer to the event, and how much feedback it changed."""

    answer: Answer
    """what became of the rollback as an event: applied, or duplicate if its id was in the log"""
    to: int
    """the version that the model went back to; the model equals it bit for bit if `forgotten` is 0"""
    left_out: int
    """how many pieces of feedback counted before the rollback and no longer do"""
    restored: int
    """how many pieces of feedback count again: they were undone or rolled back after version `to`"""
    forgotten: int
    """how many people were forgotten after version `to`; they stay forgotten"""
