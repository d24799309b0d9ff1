"""The door for JSON: checks of what comes from outside, and the structs in which the log keeps it.

All that comes from a person or a program is checked here, by field, before anything is written. The log keeps it in one
of the `...Record` structs, with candidates as indices into their decision.
"""

from __future__ import annotations

import math
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from heedful.core.decoding import decoder
from heedful.core.validation import MOST, describe, is_number

Status = Literal["applied", "duplicate", "rejected"]
Arm = Literal["learned", "control", "sampled", "imported"]

LONGEST_ID = 200
MOST_CANDIDATES = 100_000

# ---------------------------------------------------------------------------- what the log keeps


class DecisionRecord(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A decision in the log: what there was to choose from, what was shown, and how that came about.

    Its lists are tuples, which the garbage collector need not look through. `heedful.loop.packing` writes it.
    """

    shown: tuple[int, ...]
    """indices of the candidates that were shown, best first"""
    items: tuple[int, ...] = ()
    """the versions of the candidates that are items of the catalogue"""
    catalogue: int = 0
    """if all items on offer were candidates, the version of the catalogue, which says what `items` are; the log leaves
    them out then"""
    names: tuple[str, ...] = ()
    """the names of candidates that came with the request"""
    prior: tuple[float, ...] = ()
    """the caller's score of each candidate, standardised"""
    arm: Arm = "learned"
    """what decided: what was learned; the caller's order or chance, for comparison; a draw around what was learned, so
    that every list has a known probability; or another system"""
    learner: str = ""
    """the learner with its version"""
    seed: int = 0
    """the seed of the loop, which together with the id makes the decision's random generator"""
    probability: float | None = None
    """of showing just this list; None if it is unknown"""
    proposal: dict[str, Any] = {}
    """what else the learner needs when the feedback comes"""
    context: dict[str, Any] | None = None
    """the context as it was given; None if the loop stores no texts"""
    attributes: tuple[dict[str, Any], ...] = ()
    """candidates as they were given with the request; empty if the loop stores no texts"""
    of: int = 0
    """the number of candidates, if only those that were shown are kept; otherwise 0"""
    deferred: bool = False
    """whether it was made ahead of time, and does not count as shown before it is activated"""
    predicted: tuple[int | float, ...] = ()
    """the prediction for each item shown: its grade, its rating, its probability of being chosen; empty if there is
    none"""
    unknown: tuple[tuple[int, str], ...] = ()
    """(index in the list, name) of each candidate that was not on offer, -1 if it was not shown; the rest of the record
    is as if it had not been named"""
    packed: Packed | None = None
    """in the log, the description of what is not in the JSON"""


class Packed(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The description of an event's bytes beside the JSON of a decision: first the deflated rest of the record, then
    features (m, N), as float32 or deflated."""

    record: int = 0
    """bytes of the deflated rest of the record"""
    lists: tuple[tuple[str, int], ...] = ()
    """(type of a number, count) of `shown` and of `items`"""
    rest: int = 0
    """bytes of that rest once it is inflated: lists first, then JSON"""
    features: int = 0
    """bytes of the features once they are inflated; 0 if they are not deflated"""


class FeedbackRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A piece of feedback in the log, in the form in which it was given, with candidates as indices into the
    decision."""

    form: str
    chosen: list[int] = []
    """candidates; -1, -2, ... are what the feedback brought along: a corrected object, candidates of later queries"""
    values: list[float] = []
    """the rating or grade of each candidate chosen; the weight of an action"""
    chain: list[tuple[int, int]] = []
    """clicks in later queries for the same need: (sequence number of the decision, candidate)"""
    text: str | None = None
    """the corrected text, or the name of the action; None if the loop stores no texts"""
    given: dict[str, Any] | None = None
    """the attributes of a corrected object; None if the loop stores no texts"""
    base: int = 0
    """the candidate that a corrected object was made from"""
    done: list[list[str]] = []
    """for several actions at once, the names of those on each candidate chosen"""
    said: dict[str, Any] | None = None
    """the feedback as it was given, if some of it is about candidates that were not on offer; if all of it is, `form`
    is `unknown`"""


class ExportRecord(msgspec.Struct, frozen=True):
    """The record of an export: the path of the file it wrote."""

    path: str


class Answer(NamedTuple):
    """The result of an event."""

    status: Status
    event: str
    seq: int | None
    """its sequence number in the log, for a duplicate that of the first; None if it was rejected"""
    version: int
    """the version of the model after it"""
    late: bool = False
    learned: bool = False
    """whether there was a lesson in it"""
    reason: str | None = None


class LostDecision(Answer):
    """The answer to feedback on a decision that is not in the log of a loop with `durable="feedback"`: rejected, as it
    was lost in a crash or never made."""

    __slots__ = ()


class Decision(NamedTuple):
    """A decision: what to show, and how it came about."""

    id: str
    shown: tuple[str, ...]
    """the names of the candidates, best first"""
    probability: float | None
    version: int
    arm: str
    seq: int
    predicted: tuple[float | None, ...] | None = None
    """the prediction for each item shown (a grade, a rating, a probability of being chosen), None for an unknown item;
    None if this loop predicts nothing"""
    unknown: tuple[str, ...] | None = None
    """candidates that are not on offer, shown or not; None if all are"""

    def plain(self) -> dict[str, Any]:
        """Return the decision by field, as in JSON: `predicted` and `unknown` only if there are some."""
        return {name: value for name, value in zip(self._fields, self) if value is not None or name == "probability"}

    def to_frame(self, package: str = "pandas") -> Any:
        """Return what is shown, best first, with its predictions, as a data frame of `package` (pandas, polars, or
        pyarrow for a table). Raise ModuleNotFoundError if the package is not installed."""
        from heedful.data.frames import frame_of

        return frame_of(self._columns(), package)

    def _columns(self) -> dict[str, list[Any]]:
        told = {"item": self.shown, "predicted": self.predicted}
        return {name: list(values) for name, values in told.items() if values is not None}

    def _repr_html_(self) -> str:
        from heedful.core.notebooks import table

        columns = {"": range(1, len(self.shown) + 1), **self._columns()}
        chance = "unknown" if self.probability is None else f"{self.probability:.3g}"
        told = f"probability of just this {chance}; arm {self.arm}; model version {self.version}"
        return table(f"Decision {self.id}", list(columns), zip(*columns.values()), [told])


# ---------------------------------------------------------------------------- feedback as it is given


class Feedback(NamedTuple):
    """Feedback that was checked, before its names are looked up in the decision."""

    form: str
    names: tuple[str, ...] = ()
    values: tuple[float, ...] = ()
    chain: tuple[str, ...] = ()
    text: str | None = None
    given: Mapping[str, Any] | None = None
    done: tuple[tuple[str, ...], ...] = ()


# ---------------------------------------------------------------------------- the checks

_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


def check_id(name: str, value: Any) -> str:
    """Return `value` as an id or name: a text of 1 to 200 printable characters, or the digits of a whole number. Raise
    ValueError for anything else."""
    if type(value) is str and value.isprintable() and 1 <= len(value) <= LONGEST_ID:
        return value  # nearly always
    if is_number(value, int) and abs(value) < 2**63:
        return str(value)
    if not isinstance(value, str) or not 1 <= len(value) <= LONGEST_ID or _CONTROL.search(value):
        raise ValueError(f"{name}: expected a text of 1 to {LONGEST_ID} printable characters, got {describe(value)}")
    return str(value)


def new_id() -> str:
    """Return a new id: 32 hexadecimal digits of the time in milliseconds and 80 random bits, as in a UUID of version 7.

    Ids in the order of time stand side by side in the log's index; random ones would touch a page of the disk each.
    """
    return f"{time.time_ns() // 1_000_000:012x}{_drawn(10).hex()}"


_random: dict[str, Any] = {"bytes": b"", "at": 0}
_drawing = threading.Lock()


def _drawn(n: int) -> bytes:
    """Return n random bytes, out of many that the system was asked for at once."""
    with _drawing:
        at = _random["at"]
        if at + n > len(_random["bytes"]):
            _random["bytes"], at = os.urandom(4096), 0
        _random["at"] = at + n
        drawn: bytes = _random["bytes"][at : at + n]
        return drawn


def _draw_anew() -> None:
    """Make a forked process draw random bytes of its own."""
    global _drawing
    _drawing = threading.Lock()
    _random["bytes"] = b""


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_draw_anew)


def check_text(name: str, value: Any, most: int = 1_000_000) -> str:
    """Return `value` as a text that UTF-8 can write, of at most `most` characters. Raise ValueError for anything
    else."""
    if not isinstance(value, str) or len(value) > most:
        got = f"{len(value)} characters" if isinstance(value, str) else describe(value)
        raise ValueError(f"{name}: expected a text of at most {most} characters, got {got}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name}: expected a text, got half of a surrogate pair in {describe(value)}") from None
    return str(value)


def check_names(name: str, value: Any, least: int = 1, most: int = MOST_CANDIDATES) -> tuple[str, ...]:
    """Return `value` as a tuple of ids. Raise ValueError for anything else."""
    if isinstance(value, str | bytes) or not isinstance(value, Sequence) or not least <= len(value) <= most:
        got = f"{len(value)} of them" if isinstance(value, Sequence) and len(value) > most else describe(value)
        raise ValueError(f"{name}: expected a list of {least} to {most} names, got {got}")
    try:
        return tuple([check_id(name, each) for each in value])
    except ValueError:
        return tuple([check_id(f"{name}[{i}]", each) for i, each in enumerate(value)])  # says which


def distinct(name: str, value: Any, least: int = 1) -> tuple[str, ...]:
    """Return `value` as a tuple of ids, none of them twice. Raise ValueError for anything else."""
    names = check_names(name, value, least)
    if len(set(names)) < len(names):
        [(twice, times)] = Counter(names).most_common(1)
        raise ValueError(f"{name}: expected each once, got {describe(twice)} {times} times")
    return names


def check_number(name: str, value: Any) -> float:
    """Return `value` as a finite number of at most 1e100 in size. Raise ValueError for anything else."""
    if is_number(value, np.integer, np.floating) and isinstance(value, np.generic):
        value = value.item()
    if not is_number(value, int, float) or not abs(value) <= MOST:
        raise ValueError(f"{name}: expected a finite number, got {describe(value)}")
    return float(value)


def check_time(name: str, value: Any) -> int:
    """Return `value` as microseconds since 1970, UTC; it may be a number of them, or a text such as
    2026-01-31T12:00:00Z. Raise ValueError for anything else."""
    if is_number(value, int) and 0 <= value < 2**53:
        return int(value)
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is not None and moment.year >= 1970:
            return int(moment.timestamp()) * 1_000_000 + moment.microsecond
    except (TypeError, ValueError, OverflowError, OSError):
        pass
    expected = "expected a time with its zone, 2026-01-31T12:00:00Z, or microseconds since 1970"
    raise ValueError(f"{name}: {expected}, got {describe(value)}")


def encode(value: Any) -> str:
    """Return a record as JSON."""
    return msgspec.json.encode(value).decode()


def plain(value: Any) -> Any:
    """Return a result as plain values for JSON: named tuples become objects, at any depth, without fields that are None
    by default; numbers that are not finite become null."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        kept = [(name, part) for name, part in zip(value._fields, value) if part is not None or _says_none(value, name)]
        return {name: plain(part) for name, part in kept}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _says_none(value: Any, name: str) -> bool:
    return name not in value._field_defaults


decode_export = decoder(ExportRecord).decode
decode_feedback = decoder(FeedbackRecord).decode
