"""Tests of whether something is wrong with feedback: what was compared, with what evidence, and what to do next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.wording import count, percent
from heedful.evaluation.change import Change, excess, rise

if TYPE_CHECKING:
    from heedful.loop.arms import SampleRatio

Array = npt.NDArray[np.float64]

MOST = 0.5
"""The share of the feedback above which one person gives too much of it."""
LARGE, LEAST = 20, 10
"""How many people are tested for giving too much feedback, and how much each has to have given."""


class Signal(NamedTuple):
    """One test of the feedback: what was compared, with what evidence, and what to do next.

    - `name`: "unanswered", "late", "empty", "contradictory", "one person", "error" or "sample ratio".
    - `alarm`, `evidence`, `error_rate`: an alarm is raised if `evidence`, an e-value, reaches 1 / `error_rate`, the
      probability of a false alarm at most.
    - `about`, `said`, `remedy`: what is compared, what was found and what to do next, in sentences.
    - `values`, `people`: how many values were compared, and how many people they come from.
    - `before`, `after`, `since`: the means before and after the likeliest time of a change, in microseconds since 1970.
    """

    name: str
    """what it is: "unanswered", "late", "empty", "contradictory", "one person", "error" or "sample ratio\""""
    alarm: bool
    """whether the evidence suffices for an alarm: `evidence` >= 1 / `error_rate`"""
    about: str
    """what is compared, as a sentence"""
    said: str
    """what was found, as a sentence"""
    evidence: float
    """an e-value: if nothing is wrong, it ever reaches 1 / `error_rate` with probability `error_rate` at most"""
    error_rate: float
    """the probability of a false alarm, at most, however often one looks"""
    values: int
    """how many values were compared; consecutive ones of the same person count as one, their mean"""
    people: int
    """how many people they come from; a decision for nobody in particular counts as one"""
    before: float | None
    """the mean before the likeliest time of a change; None if there is no such time"""
    after: float | None
    """the mean since then, or over all if there is no such time; None without values"""
    since: int | None
    """when the likeliest change was, in microseconds since 1970; None if there is none"""
    remedy: str
    """what to do next, as sentences"""


class WatchedLoop(NamedTuple):
    """The loop whose feedback is tested, with the names that sentences use for it, and the false-alarm rate of each
    test."""

    loop: str
    """its name, as a command takes it"""
    learner: str
    """its learner, by name and parameters"""
    late_after: float
    """how many seconds after its decision feedback counts as late"""
    error_rate: float
    """the probability of a false alarm of each test, at most"""


Valued = tuple[float, str | None, int]
"""A value from 0 to 1, the person whom it is from (None: nobody in particular), and its time in microseconds since
1970."""


def _visits(values: Sequence[Valued]) -> tuple[Array, list[int], int]:
    """Return (values, times, people): the values with consecutive ones of the same person merged into their mean, when
    each came, and how many people they are from.

    What a person says in one go is alike. If all values are from one person, each counts by itself."""
    people = {person for _, person, _ in values if person is not None}
    anybody = sum(person is None for _, person, _ in values)
    found: list[list[float]] = []
    times, before = [], None
    for value, person, time in values:
        if person is not None and person == before and len(people) + anybody > 1:
            found[-1].append(value)
        else:
            found.append([value])
            times.append(time)
        before = person
    return np.array([sum(each) / len(each) for each in found], np.float64), times, len(people) + anybody


class _Words(NamedTuple):
    """The texts of one test for a rise of a mean: what is compared, and what to do next."""

    about: str
    """what is compared"""
    of: str
    """what the values are, in the plural"""
    missing: str
    """why nothing can be said, if there are no values"""
    remedy: str
    """what to do next, as sentences"""


WORDS = {
    "unanswered": _Words(
        "The share of decisions that had no feedback within {twice}, of those shown at least so long ago",
        "decisions",
        "no decision is {twice} old",
        "See that feedback still reaches the loop: heedful doctor {name} looks at what comes in. Did the page that "
        "sends it change?",
    ),
    "late": _Words(
        "The share of decisions whose first feedback came later than {once}, of those that had some within {twice}",
        "decisions",
        "no decision that was answered is {twice} old",
        "See whether feedback waits in a queue of the caller. If people take so long, raise late_after.",
    ),
    "empty": _Words(
        "The share of feedback that holds nothing to learn: nothing was clicked, corrected or chosen",
        "pieces of feedback",
        "there is no feedback",
        "If people find nothing to correct, this is good news: heedful report {name} says whether lists got better. "
        "Otherwise see what the page sends.",
    ),
    "contradictory": _Words(
        "The share of questions that a person answered otherwise than the last time, of those answered before",
        "repeated answers",
        "no person answered a question twice",
        "If tastes changed, try first what a restart would be worth, which changes nothing: heedful evaluate {name} "
        "--learner {restart} (answers are compared from there on). If answers became careless, see who gives them: "
        "each can be undone.",
    ),
    "error": _Words(
        "The error of predictions, from 0 to 1, each made before the answer was learned",
        "answers",
        "no answer was predicted",
        "Something changed that the model does not follow. Try first what a restart from there would be worth, which "
        "changes nothing: heedful evaluate {name} --learner {restart} (answers are compared from there on). If it is "
        "better, make a loop of what came since, or choose a learner that forgets.",
    ),
}


def rise_signal(kind: str, values: Sequence[Valued], watched: WatchedLoop) -> Signal:
    """Return whether the mean of a series of values from 0 to 1 has risen, with the evidence.

    `kind` names the series ("unanswered", "late", ...: a key of `WORDS`); `values` are (value, person or None, time) in
    the order in which they came; `watched` is the loop."""
    words, rate = WORDS[kind], watched.error_rate
    x, times, people = _visits(values)
    change = rise(x)
    found = change.start > 0
    since = times[change.start] if found else None
    restart = quote(f"{watched.learner}@{'DATE' if since is None else iso(since)}..")
    once, twice = duration(watched.late_after), duration(2.0 * watched.late_after)
    told = {"once": once, "twice": twice, "name": watched.loop, "restart": restart}
    if not x.size:
        said = f"Nothing can be said: {words.missing.format(**told)}."
    elif since is None:
        said = f"{percent(change.after)} of {x.size:,} {words.of}: too few to compare."
    else:
        said = f"{percent(change.before)} of {change.start:,} {words.of} before {day(since)}, "
        said += f"{percent(change.after)} of {x.size - change.start:,} since. {_evidence_text(change, rate)}"
    return Signal(
        kind,
        change.log_evidence >= -math.log(rate),
        f"{words.about.format(**told)}, compared before and since each of several moments.",
        said,
        _evidence(change.log_evidence),
        rate,
        x.size,
        people,
        change.before if found else None,
        _none_if_nan(change.after),
        since,
        words.remedy.format(**told),
    )


def one_person(given: Sequence[tuple[str | None, int]], watched: WatchedLoop) -> Signal:
    """Return whether one person gives more than half of the feedback, from the first on or since some moment.

    `given` has the person (None: nobody in particular) and the time, in microseconds since 1970, of each piece of
    feedback, in order; `watched` is the loop."""
    counts, rate = dict[str, int](), watched.error_rate
    for each, _ in given:
        if each is not None:
            counts[each] = counts.get(each, 0) + 1
    anybody = len(given) - sum(counts.values())
    found: list[tuple[float, Change, str]] = []
    for j, person in enumerate(counts):  # in the order in which they came
        if counts[person] >= LEAST and counts[person] in sorted(counts.values())[-LARGE:]:
            change = excess(np.array([each == person for each, _ in given]), MOST)
            found.append((change.log_evidence - math.log((j + 1) * (j + 2)), change, person))
    people = len(counts) + anybody
    about = (
        f"The share of the feedback that comes from one person, next to {percent(MOST)}, since each of several moments."
    )
    remedy = "Nothing is to be done."
    if not found:
        said = "Nothing can be said: too little feedback comes from any one person."
        return Signal("one person", False, about, said, 1.0, rate, len(given), people, None, None, None, remedy)
    top = max(found, key=lambda each: each[0])
    log_e = top[0] + math.log(sum(math.exp(each[0] - top[0]) for each in found))
    _, change, person = top
    since = given[change.start][1]
    alarm = log_e >= -math.log(rate) and people > 1
    part = f"of {count(len(given) - change.start, 'piece of feedback', 'pieces of feedback')} since {day(since)}"
    evidence = _evidence_text(change._replace(log_evidence=log_e), rate)
    said = f"{percent(change.after)} {part} come from {person}. {evidence}"
    if people == 1:
        said = f"All feedback comes from {person}: there is nobody to compare them with."
    else:
        remedy = f"Look at the lessons of {person}. If that is a crawler or a test, heedful forget {watched.loop} "
        remedy += f"{quote(person)} takes all of it out, and heedful rollback goes back to a version before it."
    before = _none_if_nan(change.before)
    return Signal(
        "one person",
        alarm,
        about,
        said,
        _evidence(log_e),
        rate,
        len(given),
        people,
        before,
        change.after,
        since,
        remedy,
    )


def ratio_signal(found: SampleRatio | None, watched: WatchedLoop) -> Signal:
    """Return `found`, whether learned and control lists are answered equally often, as a test of the feedback; None if
    the two are not compared, or silence is an answer."""
    about = "The share of learned lists with an answer next to that of control lists, whose arm is drawn by chance."
    remedy = f"heedful report {watched.loop} compares the two only if they are answered alike."
    if found is None or not found.lists:
        said = "no list is old enough" if found is not None else "no lists are compared, or silence is an answer"
        said = f"Nothing can be said: {said}."
        return Signal("sample ratio", False, about, said, 1.0, watched.error_rate, 0, 0, None, None, None, remedy)
    return Signal(
        "sample ratio", found.differs, about, f"{found.said[:1].upper()}{found.said[1:]}.", found.e_value,
        watched.error_rate, found.lists, found.people, None, None, None, remedy,
    )  # fmt: skip


def _evidence_text(change: Change, rate: float) -> str:
    return f"Evidence {_evidence(change.log_evidence):.3g}; {1.0 / rate:,.0f} make an alarm."


def _evidence(log_evidence: float) -> float:
    """Return the e-value with this logarithm, at most 1e300."""
    return math.exp(min(log_evidence, math.log(1e300)))


def _none_if_nan(value: float) -> float | None:
    return None if math.isnan(value) else value


def day(micros: int) -> str:
    """Return a time, given in microseconds since 1970, as text in UTC, to the minute: 2026-01-31 12:00 UTC."""
    return f"{datetime.fromtimestamp(micros // 1_000_000, UTC):%Y-%m-%d %H:%M} UTC"


def iso(micros: int) -> str:
    """Return a time, given in microseconds since 1970, as ISO 8601 text in UTC, to the second: 2026-01-31T12:00:00Z."""
    return f"{datetime.fromtimestamp(micros // 1_000_000, UTC):%Y-%m-%dT%H:%M:%SZ}"


def duration(seconds: float) -> str:
    """Return a number of seconds as text for a sentence: "2 hours"."""
    for unit, name in ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}{'' if seconds == unit else 's'}"
    return f"{seconds:.3g} seconds"
