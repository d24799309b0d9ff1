"""Simulated feedback of people who differ, come more or less often and stay for a while, for signals of its health.

A sound log changes nothing but that its errors fall, as a learner learns. A fault begins after some decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from heedful.loop.health import GivenFeedback, ShownDecision, signals
from heedful.loop.signals import Signal, WatchedLoop

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


class Log(NamedTuple):
    """A simulated log."""

    shown: list[ShownDecision]
    given: list[GivenFeedback]


def simulate(rng: np.random.Generator, decisions: int, people: int = 25, after: Rates = SOUND, at: int = 0) -> Log:
    """Return a log whose rates are `SOUND`, and `after` from decision `at` on.

    People come with chances 1 / (j + 5), and stay for another decision with probability 1/2. Their rates of feedback
    differ: the log odds by a normal variable of standard deviation 1/2."""
    offsets = 0.5 * rng.standard_normal((people, 5))
    often = 1.0 / (np.arange(people) + 5.0)
    often /= often.sum()
    shown, given, time, who = list[ShownDecision](), list[GivenFeedback](), T0, 0
    for i in range(decisions):
        rates = after if i >= at else SOUND
        time += int(rng.exponential(600.0) * SECOND)
        who = who if i and rng.random() < 0.5 else int(rng.choice(people, p=often))
        person, own = f"p{who}", offsets[who]
        if rng.random() < rates.flood:
            person, own = "bot", np.zeros(5)
        unanswered, late, empty, contradictory, error = (
            _shifted(rate, gap) for rate, gap in zip(rates[:5], own.tolist())
        )
        shown.append(ShownDecision(time, person))
        if rng.random() < unanswered:
            continue
        delay = rng.uniform(1.0, 2.0) * LATE_AFTER if rng.random() < late else rng.exponential(60.0)
        shown[-1].first = time + int(delay * SECOND)
        repeated = int(rng.binomial(3, min(i / 200.0, 0.8)))
        learned = 1.0 + np.exp(-i / 40.0)  # errors fall from twice what they end at
        given.append(
            GivenFeedback(
                i,
                shown[-1].first,
                person,
                bool(rng.random() < empty),
                repeated,
                int(rng.binomial(repeated, contradictory)),
                float(rng.beta(4.0 * error * learned, 4.0 * max(1.0 - error * learned, 0.05))),
            )
        )
    return Log(shown, given)


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
