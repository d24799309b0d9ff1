"""Learned lists compared with control lists: their scores, shares such as those of lists with a click, and whether
either kind is answered as often as the other.

A learned list is in the order of the model; a control list is in the caller's own order (or a random one), shown to a
share of requests for comparison. Intervals are cluster-robust over people (`heedful.loop.cluster_robust`), and

- **hold if an arm loses answers**: a difference is computed of the answered lists, of all lists with the least score
  for those without an answer, and of all lists with the greatest, the last two divided by the greater of the two
  answered shares. If answers of one arm are lost, in whatever way, it is the least score that makes up for it on one
  side and the greatest on the other: the true difference lies above the first or below the second. The interval
  reaches from the lowest of the three lower ends to the highest of the upper ends. Where every list is answered all
  three are the same.
- **hold if an arm is small**: a control of fifteen lists without a click has no spread, but is not certain. So each
  arm has two lists more, of nobody, one with the least score and one with the greatest (Agresti & Caffo 2000).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from heedful.core.wording import count, percent
from heedful.evaluation.sample_ratio import log_evidence, steps
from heedful.loop.cluster_robust import Array, Bools, Ints, difference, paired_difference
from heedful.loop.serving import read_experiment, takes_part
from heedful.results.report import Difference, SampleRatio, Share, Shares

if TYPE_CHECKING:
    from heedful.loop.log import Log
    from heedful.loop.records import DecisionRecord
    from heedful.loop.settings import Settings

ALPHA = 0.05
"""The probability, at most, with which lists that are answered alike are ever taken for lists that are not."""
SECOND = 1e6
LARGEST = 1e300
UNTOLD = "it takes those of two people on either kind of list, not all alike"
WHY = (
    "so either answers of one are lost, or people answer it less often, and those that came cannot be compared. See "
    "that both kinds of list reach people, and that their answers come back, in the same way: a cache, or an app that "
    "sends none for one of them alone, loses some"
)
SILENT = (
    ". If your page reports clicks alone, a list without a click is an answer: the setting none_after says so (heedful "
    "init --none-after 3600, then import what this loop exports)"
)


class ShownList(NamedTuple):
    """A learned or control list that was shown to `person` at `time`, and `answered` at a time (None: not so far), both
    in microseconds since 1970.

    `drawn` says whether its arm was drawn for this list, by the shares in the settings."""

    time: int
    learned: bool
    person: str | int
    """the name, or a number of its own for a list shown to nobody in particular"""
    answered: int | None
    drawn: bool


class DrawnArms:
    """Says of decisions whether their arm was drawn for them alone, by the shares in the settings.

    A later page has the arm of the first, and learned lists of people in an experiment are interleaved instead."""

    def __init__(self, log: Log) -> None:
        self._experiments = [(event.id, read_experiment(event.payload).share)
                             for event in log.many(log.places("experiment"))]  # fmt: skip

    def drawn(self, record: DecisionRecord, person: str | None) -> bool:
        """Return whether the arm of the decision `record` for `person` was drawn for it alone.

        While an experiment runs, decisions keep what its candidate proposes (`rival`)."""
        if record.after:
            return False
        return not record.rival or not any(takes_part(id, share, person) for id, share in self._experiments)


def sample_ratio(
    lists: Sequence[ShownList],
    settings: Settings,
    until: int,
    silent: bool,
    alpha: float = ALPHA,
    noun: str = "an answer",
) -> SampleRatio | None:
    """Return whether learned and control `lists` are answered equally often; None if there are none, or the `settings`
    have no control.

    A list counts as not answered after twice the setting `late_after` without an answer. `until` is the time of the
    last event, in microseconds since 1970. `silent` says whether silence could be an answer in this kind of loop, if
    the settings said so; `noun` is what counts as an answer, with its article."""
    c = settings.control / (1.0 - settings.sampled) if settings.sampled < 1.0 else 1.0
    if not 0.0 < c < 1.0:
        return None
    kept = sorted((each for each in lists if each.drawn), key=lambda each: each.time)
    if not kept:
        return None
    numbers: dict[str | int, int] = {}
    people = np.array([numbers.setdefault(each.person, len(numbers)) for each in kept], np.int64)
    shown = np.array([each.time for each in kept], np.float64)
    answered = np.array([math.nan if each.answered is None else each.answered for each in kept], np.float64)
    control = np.array([not each.learned for each in kept], bool)
    x, order = steps(shown, answered, control, c, 2.0 * settings.late_after * SECOND, float(until))
    e_value = math.exp(min(log_evidence(x, people[order]), math.log(LARGEST)))
    shares = [float(np.isfinite(answered[arm]).mean()) if arm.any() else None for arm in (~control, control)]
    told = " and ".join(
        f"{percent(share)} of {count(int(arm.sum()), f'{name} list')}"
        for share, arm, name in zip(shares, (~control, control), ("learned", "control"))
        if share is not None
    )
    told += f" have {noun} (evidence of a difference {e_value:.3g}; {1.0 / alpha:.4g} suffices)"
    differs = e_value >= 1.0 / alpha
    said = f"{told}, {WHY}{SILENT if silent else ''}" if differs else told
    compared, n = int(order.size), int(np.unique(people[order]).size)
    return SampleRatio(shares[0], shares[1], compared, n, e_value, alpha, differs, said)


# ---------------------------------------------------------------------------- differences


def arm_difference(scores: Array, answered: Bools, learned: Bools, people: Ints) -> Difference | None:
    """Return the mean score of answered learned lists minus that of answered control lists, with a 95 % interval that
    holds although an arm loses answers, or is small.

    For n lists: `scores` (n,) from 0 to 1, of which only those of lists that are `answered` (n,) count; `learned` (n,)
    is True for a list in the model's order and False for one in the caller's own order; `people` (n,) numbers the
    person, from 0. Return None if no interval can be computed: an arm has no answer, or those of one person alone, or
    there is no spread."""
    among = difference(scores[answered], learned[answered], people[answered])
    if among is None:
        return None
    found = [(_with_two_more(scores[answered], learned[answered], people[answered]), 1.0)]
    if not answered.all():
        most = max(float(answered[learned].mean()), float(answered[~learned].mean()))
        found += [(_with_two_more(np.where(answered, scores, end), learned, people), most) for end in (0.0, 1.0)]
    low = min(among.by, *(each.low / share for each, share in found))
    high = max(among.by, *(each.high / share for each, share in found))
    return Difference(among.by, max(low, -1.0), min(high, 1.0), among.people)


def _with_two_more(scores: Array, learned: Bools, people: Ints) -> Difference:
    """Return the difference of two arms, each with two lists more of nobody, one with score 0 and one with 1."""
    found = difference(
        np.r_[scores, 0.0, 1.0, 0.0, 1.0],
        np.r_[learned, True, True, False, False],
        np.r_[people, people.max() + 1 + np.arange(4)],
    )
    assert found is not None  # there are people, and spread, in either arm
    return found


def compare_shares(rows: Sequence[tuple[bool, str | int, float | None]], unequal: str = "") -> Shares | None:
    """Return a share of learned lists and of control lists, with their difference; None if nothing was counted.

    A row is (whether it is of a learned list, the person, 1 for yes or 0 for no; None for a list that does not say).
    `unequal` says why the two are not to be compared, "" if they may be."""
    if not any(value is not None for _, _, value in rows):
        return None
    numbers: dict[str | int, int] = {}
    people = np.array([numbers.setdefault(person, len(numbers)) for _, person, _ in rows], np.int64)
    learned = np.array([each for each, _, _ in rows], bool)
    answered = np.array([value is not None for _, _, value in rows], bool)
    yes = np.array([value or 0.0 for _, _, value in rows], np.float64)
    both = [_share(yes[arm & answered], people[arm & answered]) for arm in (learned, ~learned)]
    found = None if unequal else arm_difference(yes, answered, learned, people)
    return Shares(both[0], both[1], found, unequal or ("" if found is not None else UNTOLD))


def _share(yes: Array, people: Ints) -> Share:
    if not yes.size:
        return Share(0, 0, None, None, None)
    share, low, high = float(yes.mean()), None, None
    if np.unique(people).size > 1:  # two of either more, of nobody (Agresti & Coull 1998)
        more = np.r_[yes, 0.0, 0.0, 1.0, 1.0], np.r_[people, people.max() + 1 + np.arange(4)]
        if (found := paired_difference(*more)) is not None:
            low, high = max(min(found.low, share), 0.0), min(max(found.high, share), 1.0)
    return Share(yes.size, int(yes.sum()), share, low, high)
