"""The JSON door: requests and feedback in, answers out; what the log keeps of them.

Whatever comes from a person or a program is checked here, by name, before anything is written. What has come
through is kept in the log as one of the `...Record` structs, with candidates as indices into their decision.
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

LONGEST_ID = 200
MOST_CANDIDATES = 100_000

# ---------------------------------------------------------------------------- what the log keeps


class DecisionRecord(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One decision: what there was to choose from, what was shown, and how that came about.

    Tuples, not lists: what cannot change the garbage collector need not look at. `heedful.loop.packing` writes it.
    """

    shown: tuple[int, ...]
    """candidate indices as shown, best first; those that were not shown are not in it"""
    items: tuple[int, ...] = ()
    """for candidates of the catalogue the sequence numbers of their item events, as they were then"""
    catalogue: int = 0
    """where all that was on offer was to choose from, the sequence number of the last item event before: it says what
    `items` are, which the log leaves out then"""
    names: tuple[str, ...] = ()
    """for candidates that came with the request, their names"""
    prior: tuple[float, ...] = ()
    """the caller's score of each candidate, standardised"""
    arm: Literal["learned", "control", "imported"] = "learned"
    learner: str = ""
    """the learner and its version"""
    seed: int = 0
    """what the decision's random draws were keyed by, with its id"""
    probability: float | None = None
    """of showing just this; None where it is unknown"""
    proposal: dict[str, Any] = {}
    """what else the learner wants to know when the answer comes"""
    context: dict[str, Any] | None = None
    """the context as it was given, where texts are stored"""
    attributes: tuple[dict[str, Any], ...] = ()
    """the candidates as they were given with the request, where texts are stored"""
    of: int = 0
    """how many candidates there were, where only those that were shown were kept"""
    deferred: bool = False
    """made ahead of time: not shown before it is activated"""
    predicted: tuple[int | float, ...] = ()
    """what was predicted of each that was shown, its grade, its rating, how likely it was to be chosen; empty where
    nothing was"""
    unknown: tuple[tuple[int, str], ...] = ()
    """what was asked for too and not on offer: (its place in what was shown, its name), -1 where it was not shown; all
    the rest of the record is of the others, as if these had not been named"""
    packed: Packed | None = None
    """in the log, what of this is not in the JSON"""


class Packed(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What stands in the bytes beside a record, deflated; features follow, m x N float32, or deflated as well."""

    record: int = 0
    """how many bytes hold the rest of the record"""
    lists: tuple[tuple[str, int], ...] = ()
    """of `shown` and `items` the type of a number, and how many there are"""
    rest: int = 0
    """how many bytes the rest has when it is inflated: lists first, then JSON"""
    features: int = 0
    """how many bytes the features have when they are inflated; 0 where they stand as they are"""


class FeedbackRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """One piece of feedback, in the form it was given, with candidates as indices into the decision."""

    form: str
    chosen: list[int] = []
    """-1, -2, ... for what came along: the corrected object, the candidates of later queries"""
    values: list[float] = []
    """ratings and grades of those chosen; the weight of an action"""
    chain: list[tuple[int, int]] = []
    """clicks in later queries for the same need: (the decision's sequence number, the candidate)"""
    text: str | None = None
    """the corrected text, the name of the action: where texts are stored"""
    given: dict[str, Any] | None = None
    """a corrected object's attributes, where texts are stored"""
    base: int = 0
    """the candidate that a corrected object was made of"""
    done: list[list[str]] = []
    """where actions on several are taken at once, the names of those on each of those chosen"""
    said: dict[str, Any] | None = None
    """the feedback as it was given, where some of it is about what was not on offer; where all is, `form` is unknown"""


class ExportRecord(msgspec.Struct, frozen=True):
    """Where the events went that an export wrote."""

    path: str


class Answer(NamedTuple):
    """What became of an event."""

    status: Status
    event: str
    seq: int | None
    """its place in the log; of a duplicate, that of the first; None where it was rejected"""
    version: int
    """the model's version after it: the sequence number of the last event it is made of"""
    late: bool = False
    learned: bool = False
    """whether there was a lesson in it"""
    reason: str | None = None


class LostDecision(Answer):
    """The answer to feedback on a decision that is not in the log of a loop that answers decisions before they are on
    the disk: rejected, as it was lost in a crash, or never was."""

    __slots__ = ()


class Decision(NamedTuple):
    """What to show, and how it came about."""

    id: str
    shown: tuple[str, ...]
    """names of candidates, best first"""
    probability: float | None
    version: int
    arm: str
    seq: int
    predicted: tuple[float | None, ...] | None = None
    """of each that is shown, its grade, its rating, how likely it is to be chosen, as the loop's interaction says; None
    of what is unknown, and altogether where nothing is predicted"""
    unknown: tuple[str, ...] | None = None
    """what was asked for and is not on offer, shown or not; None where all is"""

    def plain(self) -> dict[str, Any]:
        """The decision by name, as it is told in JSON: `predicted` and `unknown` only where there are some."""
        return {name: value for name, value in zip(self._fields, self) if value is not None or name == "probability"}

    def to_frame(self, package: str = "pandas") -> Any:
        """What is shown, best first, with what was predicted of it, as a data frame of this package: pandas, polars, or
        pyarrow for a table. ModuleNotFoundError where it is not installed."""
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
    """Feedback through the door, before its names are looked up in the decision."""

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
    """value as an id or name: a text of 1 to 200 characters, none of them control characters; a whole number as its
    digits."""
    if type(value) is str and value.isprintable() and 1 <= len(value) <= LONGEST_ID:
        return value  # nearly always
    if is_number(value, int) and abs(value) < 2**63:
        return str(value)
    if not isinstance(value, str) or not 1 <= len(value) <= LONGEST_ID or _CONTROL.search(value):
        raise ValueError(f"{name}: expected a text of 1 to {LONGEST_ID} printable characters, got {describe(value)}")
    return str(value)


def new_id() -> str:
    """An id of our own: 32 hexadecimal digits, the time in milliseconds and 80 random bits, as a UUID of version 7.

    Ids in the order of time stand side by side in the index of the log; random ones cost a page of the disk each."""
    return f"{time.time_ns() // 1_000_000:012x}{_drawn(10).hex()}"


_random: dict[str, Any] = {"bytes": b"", "at": 0}
_drawing = threading.Lock()


def _drawn(n: int) -> bytes:
    """n random bytes, of many that the system was asked for at once: asking costs more than they do."""
    with _drawing:
        at = _random["at"]
        if at + n > len(_random["bytes"]):
            _random["bytes"], at = os.urandom(4096), 0
        _random["at"] = at + n
        drawn: bytes = _random["bytes"][at : at + n]
        return drawn


def _draw_anew() -> None:
    """A process that was forked draws its own."""
    global _drawing
    _drawing = threading.Lock()
    _random["bytes"] = b""


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_draw_anew)


def check_text(name: str, value: Any, most: int = 1_000_000) -> str:
    """value as a text that can be written in UTF-8, of at most `most` characters."""
    if not isinstance(value, str) or len(value) > most:
        got = f"{len(value)} characters" if isinstance(value, str) else describe(value)
        raise ValueError(f"{name}: expected a text of at most {most} characters, got {got}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name}: expected a text, got half of a surrogate pair in {describe(value)}") from None
    return str(value)


def check_names(name: str, value: Any, least: int = 1, most: int = MOST_CANDIDATES) -> tuple[str, ...]:
    """value as a list of ids."""
    if isinstance(value, str | bytes) or not isinstance(value, Sequence) or not least <= len(value) <= most:
        got = f"{len(value)} of them" if isinstance(value, Sequence) and len(value) > most else describe(value)
        raise ValueError(f"{name}: expected a list of {least} to {most} names, got {got}")
    try:
        return tuple([check_id(name, each) for each in value])
    except ValueError:
        return tuple([check_id(f"{name}[{i}]", each) for i, each in enumerate(value)])  # says which


def distinct(name: str, value: Any, least: int = 1) -> tuple[str, ...]:
    """value as a list of ids, none twice."""
    names = check_names(name, value, least)
    if len(set(names)) < len(names):
        [(twice, times)] = Counter(names).most_common(1)
        raise ValueError(f"{name}: expected each once, got {describe(twice)} {times} times")
    return names


def check_number(name: str, value: Any) -> float:
    """value as a finite number of at most 1e100 in size."""
    if is_number(value, np.integer, np.floating) and isinstance(value, np.generic):
        value = value.item()
    if not is_number(value, int, float) or not abs(value) <= MOST:
        raise ValueError(f"{name}: expected a finite number, got {describe(value)}")
    return float(value)


def check_time(name: str, value: Any) -> int:
    """value as microseconds since 1970, UTC: a whole number of them, or a text such as 2026-01-31T12:00:00Z."""
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
    """A record as JSON."""
    return msgspec.json.encode(value).decode()


def plain(value: Any) -> Any:
    """A result as JSON says it: named tuples by name, all the way down, without fields that are None by default: what
    only some loops have to say; null for what is no finite number."""
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
