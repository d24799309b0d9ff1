"""Simulated feedback of people who differ, come more or less often and stay for a while, for signals of its health.

A sound log changes nothing but that its errors fall, as a learner learns. A fault begins after some decisions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv

from heedful.loop.health import GivenFeedback, ShownDecision, signals
from heedful.loop.signals import WatchedLoop
from heedful.results.health import Signal

T0, SECOND = 1_700_000_000_000_000, 1_000_000
LATE_AFTER = 3600.0


class Rates(NamedTuple):
    """Means over people; each person has their own."""

    unanswered: float = 0.3
    late: float = 0.05
    empty: float = 0.2
    contradictory: float = 0.15
    error: float = 0.2
    flood: float = 0.0
    """how often a person who answers nothing else comes, without a pause"""


SOUND = Rates()
FAULTS: Mapping[str, Rates] = {
    "unanswered": SOUND._replace(unanswered=0.6),
    "late": SOUND._replace(late=0.4),
    "empty": SOUND._replace(empty=0.5),
    "contradictory": SOUND._replace(contradictory=0.5),
    "error": SOUND._replace(error=0.5),
    "one person": SOUND._replace(flood=0.85),
}


class Visits(NamedTuple):
    """How people come: `at_once` are there at any time, and each decision is for one of them, drawn at random.

    A visit is of `length` decisions; then somebody else comes: of those who are not there, drawn at random, or the next
    `in_turn`. `alike` is the correlation of what a person says in one visit, beyond that they are the same person: 0
    none, 1 the same all the time."""

    at_once: int
    length: int
    alike: float = 0.0
    in_turn: bool = False


class Log(NamedTuple):
    """A simulated log."""

    shown: list[ShownDecision]
    given: list[GivenFeedback]


def simulate(
    rng: np.random.Generator,
    decisions: int,
    people: int = 25,
    after: Rates = SOUND,
    at: int = 0,
    visits: Visits | None = None,
) -> Log:
    """Return a log whose rates are `SOUND`, and `after` from decision `at` on.

    People come as `visits` says, or with chances 1 / (j + 5), and stay for another decision with probability 1/2. Their
    rates of feedback differ: the log odds by a normal variable of standard deviation 1/2."""
    offsets = 0.5 * rng.standard_normal((people, 5))
    shown, given, time = list[ShownDecision](), list[GivenFeedback](), T0
    moods = dict[int, np.ndarray]()
    for i, (who, visit) in enumerate(_who_comes(rng, decisions, people, visits)):
        rates = after if i >= at else SOUND
        time += int(rng.exponential(600.0) * SECOND)
        person, own = f"p{who}", offsets[who]
        if rng.random() < rates.flood:
            person, own = "bot", np.zeros(5)
        means = np.array([_shifted(rate, gap) for rate, gap in zip(rates[:5], own.tolist())])
        if visits is not None and visits.alike > 0.0:
            if visit not in moods:
                moods[visit] = rng.random(5)
            means = _mood(means, moods[visit], visits.alike)
        unanswered, late, empty, contradictory, error = means.tolist()
        shown.append(ShownDecision(time, person))
        if rng.random() < unanswered:
            continue
        delay = rng.uniform(1.0, 2.0) * LATE_AFTER if rng.random() < late else rng.exponential(60.0)
        shown[-1].first = time + int(delay * SECOND)
        repeated = int(rng.binomial(3, min(i / 200.0, 0.8)))
        learned = 1.0 + np.exp(-i / 40.0)  # errors fall from twice what they end at
        wrong = min(error * learned, 1.0)
        given.append(
            GivenFeedback(
                i,
                shown[-1].first,
                person,
                bool(rng.random() < empty),
                repeated,
                int(rng.binomial(repeated, contradictory)),
                float(rng.beta(max(4.0 * wrong, 0.05), max(4.0 * (1.0 - wrong), 0.05))),
            )
        )
    return Log(shown, given)


def _who_comes(
    rng: np.random.Generator, decisions: int, people: int, visits: Visits | None
) -> Iterator[tuple[int, int]]:
    """Yield for each decision the number of the person whom it is for, and that of their visit."""
    if visits is None:
        often = 1.0 / (np.arange(people) + 5.0)
        often /= often.sum()
        who = visit = 0
        for i in range(decisions):
            if not i or rng.random() >= 0.5:
                who, visit = int(rng.choice(people, p=often)), i
            yield who, visit
        return
    here, came = list[list[int]](), 0  # (person, visit, decisions left) of each who is there
    for _ in range(decisions):
        while len(here) < visits.at_once:
            away = np.setdiff1d(np.arange(people), [each[0] for each in here])
            who = came % people if visits.in_turn else int(rng.choice(away))
            here.append([who, came, visits.length])
            came += 1
        j = int(rng.integers(len(here)))
        yield here[j][0], here[j][1]
        here[j][2] -= 1
        if not here[j][2]:
            del here[j]


def _mood(means: np.ndarray, uniform: np.ndarray, alike: float) -> np.ndarray:
    """Return the rates of a visit (5,): with these means over visits, such that two answers of one visit have the
    correlation `alike`. `uniform` (5,) are the numbers from 0 to 1 that were drawn for the visit."""
    if alike == 1.0:
        return (uniform < means).astype(float)
    return betaincinv(means * (1.0 / alike - 1.0), (1.0 - means) * (1.0 / alike - 1.0), uniform)


def _shifted(rate: float, gap: float) -> float:
    """Return a probability with log odds greater by `gap`."""
    odds = rate / (1.0 - rate) * np.exp(gap)
    return float(odds / (1.0 + odds))


def seen(log: Log, decisions: int, alpha: float = 0.05) -> tuple[Signal, ...]:
    """Return the signals after so many decisions, with what was answered by then."""
    until = log.shown[decisions - 1].when
    shown = [
        ShownDecision(each.when, each.person, each.first if each.first is not None and each.first <= until else None)
        for each in log.shown[:decisions]
    ]
    given = sorted((each for each in log.given if each.time <= until), key=lambda each: each.time)
    return signals(shown, given, until, WatchedLoop("cars", "perceptron", LATE_AFTER, alpha / 6.0))


def alarms(log: Log, looks: range, alpha: float = 0.05) -> dict[str, int]:
    """Return the alarms that are raised at any of these looks, each with the number of decisions at the first."""
    found = dict[str, int]()
    for n in looks:
        for each in seen(log, n, alpha):
            if each.alarm:
                found.setdefault(each.name, n)
    return found
