"""The structs in which the log keeps events, what callers get back, and the checks of what comes from outside.

All that comes from a person or a program is checked here, by field, before anything is written. The log keeps it in one
of the `...Record` structs, with candidates as indices into their decision. The file is long because each struct is
described field by field."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec
import numpy as np

from heedful.core.decoding import decoder
from heedful.core.ids import new_id as new_id
from heedful.core.times import micros_of, parse_time
from heedful.core.validation import MOST, describe, is_number
from heedful.core.wording import OBEYED
from heedful.results.answers import Arm

LONGEST_ID = 200
MOST_CANDIDATES = 100_000

# ---------------------------------------------------------------------------- what the log keeps


class DecisionRecord(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A decision in the log: the candidates, what was shown, and how that came about.

    Candidates are items on offer (`items`, or `catalogue` for all of them) or came with the request (`names`,
    `attributes`); `shown` are indices among them, best first. `arm` says how the list was made, `probability` how
    likely just this list was. The fields describe the rest. Lists are tuples, which the garbage collector need not look
    through. `heedful.loop.packing` writes it."""

    shown: tuple[int, ...]
    """indices of the candidates that were shown, best first"""
    items: tuple[int, ...] = ()
    """the versions of the candidates, if they are items of the catalogue: the sequence numbers of the events that put
    them on offer"""
    catalogue: int = 0
    """if all items on offer were candidates, the sequence number of the last item event, which determines `items`; the
    log leaves `items` out then. Otherwise 0"""
    names: tuple[str, ...] = ()
    """the names of the candidates, if they came with the request and are not items of the catalogue"""
    prior: tuple[float, ...] = ()
    """the caller's score of each candidate, standardised to mean 0 and variance 1; empty if none were given"""
    arm: Arm = "learned"
    """how it was decided: "learned", in the model's order; "control", in the caller's order or at random, for
    comparison; "sampled", drawn around the model's order, so that every list has a known probability; "interleaved",
    a draft of the model's order and that of a candidate learner; "imported", by another system"""
    learner: str = ""
    """the learner with its version: "NAME@VERSION\""""
    seed: int = 0
    """the seed of the loop; with the decision's id it determines all random draws of the decision"""
    probability: float | None = None
    """the probability of showing just this list; None if it is unknown"""
    proposal: dict[str, Any] = {}
    """what else the learner's update needs when the feedback comes, by name"""
    context: dict[str, Any] | None = None
    """the context of the request as it was given; None if the loop stores no texts"""
    attributes: tuple[dict[str, Any], ...] = ()
    """the attributes of candidates that came with the request, as they were given; empty if the loop stores no texts"""
    of: int = 0
    """the number of candidates there were, if only those that were shown are kept; otherwise 0"""
    deferred: bool = False
    """whether it was made ahead of time, and does not count as shown before it is activated"""
    predicted: tuple[int | float, ...] = ()
    """the prediction for each item shown: its grade, its rating, its probability of being chosen; empty if there is
    none"""
    unknown: tuple[tuple[int, str], ...] = ()
    """(place in the list from 0, name) of each candidate that was not on offer; the place is -1 if it was not shown.
    The rest of the record is as if it had not been named"""
    rival: tuple[str, ...] = ()
    """the names of the items that a candidate learner would have shown instead, best first; empty if no learner was
    tried"""
    after: str = ""
    """the id of the decision that this one continues: it is the next page of that list; "" if it begins one"""
    undeclared: tuple[str, ...] = ()
    """the fields of candidates and of the context that came and are no features of the loop, such as
    "candidates.bm25"; at most 20"""
    packed: Packed | None = None
    """in the log, the description of the fields that are not in the JSON; None if all are"""


class Packed(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The description of the bytes that the log keeps next to the JSON of a decision: how many there are of what.

    First comes the deflated rest of the record, then the features of the m candidates, N each, and of the context, as
    float32, deflated or not."""

    record: int = 0
    """how many bytes the deflated rest of the record takes"""
    lists: tuple[tuple[str, int], ...] = ()
    """(numpy type string, count) of the numbers in `shown` and in `items`"""
    rest: int = 0
    """how many bytes that rest takes once it is inflated: the two lists, then JSON of the other long fields"""
    features: int = 0
    """how many bytes the features take once they are inflated; 0 if they are not deflated"""


class FeedbackRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A piece of feedback in the log, in the form in which it was given, with candidates as indices into their
    decision."""

    form: str
    """the form: "clicks", "grade", "thumb", ...; "unknown" if all of it is about candidates that were not on offer"""
    chosen: list[int] = []
    """candidates that the feedback names, by index; -1, -2, ... stand for objects that were not among the candidates: a
    corrected object, such as an edited text, or the candidates of later decisions in `chain`"""
    values: list[float] = []
    """the rating or grade of each candidate in `chosen`, the weight of an action, +1 or -1 for a thumb, or the index of
    the better item of a choice (-1: neither)"""
    chain: list[tuple[int, int]] = []
    """clicks in later decisions for the same need, in order: (sequence number of that decision, index of its
    candidate)"""
    text: str | None = None
    """the corrected text (None if the loop stores no texts), the name of the action, or the choice"""
    given: dict[str, Any] | None = None
    """the attributes of a corrected object, as given; None if there is none or the loop stores no texts"""
    base: int = 0
    """the index of the candidate that a corrected object was made from"""
    done: list[list[str]] = []
    """if several actions came at once, the names of those on each candidate in `chosen`"""
    said: dict[str, Any] | None = None
    """the feedback as it was given, if any of it is about candidates that were not on offer; otherwise None"""


class ExportRecord(msgspec.Struct, frozen=True):
    """The record of an export: the path of the file that it wrote, "-" for stdout."""

    path: str


# ---------------------------------------------------------------------------- feedback as it is given


class Feedback(NamedTuple):
    """Feedback as it came, with items by name: its shape was checked, but not yet whether it fits the decision."""

    form: str
    """the form: "clicks", "grade", "thumb", ..."""
    names: tuple[str, ...] = ()
    """the items that it names"""
    values: tuple[float, ...] = ()
    """the rating or grade of each of them, the weight of an action, +1 or -1 for a thumb, or the index of the better
    item of a choice (-1: neither); (1,) for an edit that stands for the candidate nearest to it"""
    chain: tuple[str, ...] = ()
    """the ids of later decisions for the same need, in which some of the clicks were"""
    text: str | None = None
    """the corrected text, the name of an action, or the choice"""
    given: Mapping[str, Any] | None = None
    """the attributes of a corrected object"""
    done: tuple[tuple[str, ...], ...] = ()
    """if several actions came at once, the names of those on each item"""


class AnsweredItem(NamedTuple):
    """A number that a person gave an item, without its decision, as in a table: that is as if they were shown just this
    item, and answered."""

    id: str
    """the id of the decision, and of the feedback that answers it"""
    person: str
    item: str
    """the name of the item"""
    form: str
    """the form of feedback, one that gives items numbers"""
    number: float


# ---------------------------------------------------------------------------- the checks

_CONTROL = re.compile(rf"[{OBEYED}\ud800-\udfff]")


def check_id(name: str, value: object) -> str:
    """Return `value` as an id: a text of 1 to 200 printable characters, or the digits of a whole number below 2^63 in
    size.

    Raise ValueError for anything else; `name` is the field that the message names."""
    if type(value) is str and value.isprintable() and 1 <= len(value) <= LONGEST_ID:
        return value  # nearly always
    if is_number(value, int) and abs(value) < 2**63:
        return str(value)
    if not isinstance(value, str) or not 1 <= len(value) <= LONGEST_ID or _CONTROL.search(value):
        raise ValueError(f"{name}: expected a text of 1 to {LONGEST_ID} printable characters, got {_came(value)}")
    return str(value)


def _came(value: object) -> str:
    """Return what came in place of a text, for messages: a field that is missing is None here, and null in JSON."""
    return "none" if value is None else describe(value)


def check_text(name: str, value: object, most: int = 1_000_000) -> str:
    """Return `value` as a text that UTF-8 can encode, of at most `most` characters.

    Raise ValueError for anything else; `name` is the field that the message names."""
    if not isinstance(value, str) or len(value) > most:
        got = f"{len(value)} characters" if isinstance(value, str) else _came(value)
        raise ValueError(f"{name}: expected a text of at most {most} characters, got {got}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name}: expected a text, got half of a surrogate pair in {describe(value)}") from None
    return str(value)


def check_names(name: str, value: Any, least: int = 1, most: int = MOST_CANDIDATES) -> tuple[str, ...]:
    """Return `value`, a sequence of `least` to `most` ids, as a tuple.

    Raise ValueError for anything else; `name` is the field that the message names."""
    listed = type(value) is list or (isinstance(value, Sequence) and not isinstance(value, str | bytes))
    if not listed or not least <= len(value) <= most:
        got = f"{len(value)} of them" if listed and len(value) > most else describe(value)
        raise ValueError(f"{name}: expected a list of {least} to {most} names, got {got}")
    try:
        return tuple([check_id(name, each) for each in value])
    except ValueError:
        return tuple([check_id(f"{name}[{i}]", each) for i, each in enumerate(value)])  # says which


def distinct(name: str, value: object, least: int = 1) -> tuple[str, ...]:
    """Return `value`, a sequence of at least `least` ids, as a tuple; none of them may come twice.

    Raise ValueError for anything else; `name` is the field that the message names."""
    names = check_names(name, value, least)
    if len(set(names)) < len(names):
        [(twice, times)] = Counter(names).most_common(1)
        raise ValueError(f"{name}: expected each once, got {describe(twice)} {times} times")
    return names


def check_number(name: str, value: object) -> float:
    """Return `value` as a float; it has to be a finite number of at most 1e100 in size.

    Raise ValueError for anything else; `name` is the field that the message names."""
    if is_number(value, np.integer, np.floating) and isinstance(value, np.generic):
        value = value.item()
    if not is_number(value, int, float) or not abs(value) <= MOST:
        raise ValueError(f"{name}: expected a finite number, got {describe(value)}")
    return float(value)


def check_time(name: str, value: Any) -> int:
    """Return `value` as microseconds since 1970, UTC; it may be a number of them, or a text such as
    2026-01-31T12:00:00Z.

    A text has to say its time zone. Raise ValueError for anything else; `name` is the field that the message names."""
    if is_number(value, int) and 0 <= value < 2**53:
        return int(value)
    with suppress(ValueError):
        if (micros := micros_of(parse_time(value, zoned=True))) >= 0:
            return micros
    expected = "expected a time with its zone, 2026-01-31T12:00:00Z, or microseconds since 1970"
    raise ValueError(f"{name}: {expected}, got {describe(value)}")


def encode(value: object) -> str:
    """Return `value`, one of the structs here, as JSON text."""
    return msgspec.json.encode(value).decode()


decode_export = decoder(ExportRecord).decode
decode_feedback = decoder(FeedbackRecord).decode
