"""Tests of whether something is wrong with feedback: what was compared, with what evidence, and what to do next."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.times import day, iso
from heedful.core.wording import count, percent
from heedful.evaluation.change import rise, start_weight, starts
from heedful.evaluation.leaning import log_evidence
from heedful.results.health import Signal, SignalName

if TYPE_CHECKING:
    from heedful.results.report import SampleRatio

Array = npt.NDArray[np.float64]

MOST = 0.5
"""The share of the feedback above which one person gives too much of it."""


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


def rise_signal(kind: SignalName, values: Sequence[Valued], watched: WatchedLoop) -> Signal:
    """Return whether the mean of a series of values from 0 to 1 has risen, with the evidence.

    `kind` names the series ("unanswered", "late", ...: a key of `WORDS`); `values` are (value, person or None, time) in
    the order in which they came; `watched` is the loop."""
    words, rate = WORDS[kind], watched.error_rate
    x, people = np.array([each[0] for each in values], np.float64), [each[1] for each in values]
    change = rise(x, people)
    found = change.start > 0
    since = values[change.start][2] if found else None
    restart = quote(f"{watched.learner}@{'DATE' if since is None else iso(since)}..")
    once, twice = duration(watched.late_after), duration(2.0 * watched.late_after)
    told = {"once": once, "twice": twice, "name": watched.loop, "restart": restart}
    if not x.size:
        said = f"Nothing can be said: {words.missing.format(**told)}."
    elif since is None:
        said = f"{percent(change.after)} of {x.size:,} {words.of}: too few, or of too few people, to compare."
    else:
        before, after = f"{percent(change.before)} of {words.of} before {day(since)}", percent(change.after)
        whose = "from the same people" if change.same else "from people who came for the first time"
        said = f"{before}, {after} since, {whose}. {_evidence_text(change.log_evidence, rate)}"
    return Signal(
        kind,
        change.log_evidence >= -math.log(rate),
        f"{words.about.format(**told)}, compared before and since each of several moments.",
        said,
        _evidence(change.log_evidence),
        rate,
        x.size,
        _number_of_people(people),
        _none_if_nan(change.before),
        _none_if_nan(change.after),
        since,
        words.remedy.format(**told),
    )


def _number_of_people(people: Sequence[str | None]) -> int:
    """Return how many people these are; each for nobody in particular counts as one."""
    return len({person for person in people if person is not None}) + sum(person is None for person in people)


def one_person(given: Sequence[tuple[str | None, int]], watched: WatchedLoop) -> Signal:
    """Return whether one person gives more than half of the feedback since some moment.

    `given` has the person (None: nobody in particular) and the time, in microseconds since 1970, of each piece of
    feedback, in order; `watched` is the loop. Of several moments, whoever gave most just before is looked at since. All
    that this person gives before anybody else does, with all that others then give until the person comes again, counts
    once, by the person's share of it."""
    everybody, rate = [person for person, _ in given], watched.error_rate
    numbers: dict[str | None, int] = {person: j for j, person in enumerate(dict.fromkeys(everybody))}
    who = np.array([numbers[person] for person in everybody], np.int64)
    people = _number_of_people(everybody)
    logs, found = list[float](), list[tuple[int, str]]()
    moments = starts(who.size)
    for k, (before, moment) in enumerate(zip([0, *moments.tolist()], moments.tolist())):
        votes = Counter(each for each in everybody[before:moment] if each is not None)
        if votes:
            person = max(votes, key=votes.__getitem__)
            bets = 2.0 * _shares_of_turns(who[moment:] == numbers[person]) - 1.0
            logs.append(float(log_evidence(bets[:, None])[0][0]) + start_weight(k))
            found.append((moment, person))
    about = (
        f"The share of the feedback that comes from one person, next to {percent(MOST)}, since each of several moments."
    )
    remedy = "Nothing is to be done."
    if not logs or max(logs) <= 0.0:
        said = "Nothing can be said: no one person keeps giving more than others do until they come again."
        if people == 1 and everybody[0] is not None:
            said = f"All feedback comes from {everybody[0]}: there is nobody to compare them with."
        return Signal("one person", False, about, said, 1.0, rate, len(given), people, None, None, None, remedy)
    log_e = float(np.logaddexp.reduce(logs))
    moment, person = found[int(np.argmax(logs))]
    own = who == numbers[person]
    share, since = float(own[moment:].mean()), given[moment][1]
    part = f"of {count(len(given) - moment, 'piece of feedback', 'pieces of feedback')} since {day(since)}"
    said = f"{percent(share)} {part} come from {person}. {_evidence_text(log_e, rate)}"
    remedy = f"Look at the lessons of {person}. If that is a crawler or a test, heedful forget {watched.loop} "
    remedy += f"{quote(person)} takes all of it out, and heedful rollback goes back to a version before it."
    return Signal(
        "one person",
        log_e >= -math.log(rate),
        about,
        said,
        _evidence(log_e),
        rate,
        len(given),
        people,
        float(own[:moment].mean()),
        share,
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


def _shares_of_turns(own: npt.NDArray[np.bool_]) -> Array:
    """Return a person's share of the pieces in each of their turns that have ended: all from one that is `own` (n,)
    after another's, or the first, to the last before the next such."""
    begins = np.flatnonzero(own & ~np.concatenate([[False], own[:-1]]))
    return np.diff(np.concatenate([[0], np.cumsum(own)])[begins]) / np.diff(begins)


def _evidence_text(log_evidence: float, rate: float) -> str:
    return f"Evidence {_evidence(log_evidence):.3g}; {1.0 / rate:,.0f} make an alarm."


def _evidence(log_evidence: float) -> float:
    """Return the e-value with this logarithm, at most 1e300."""
    return math.exp(min(log_evidence, math.log(1e300)))


def _none_if_nan(value: float) -> float | None:
    return None if math.isnan(value) else value


def duration(seconds: float) -> str:
    """Return a number of seconds as text for a sentence: "2 hours"."""
    for unit, name in ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}{'' if seconds == unit else 's'}"
    return f"{seconds:.3g} seconds"
