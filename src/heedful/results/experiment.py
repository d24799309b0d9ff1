"""Experiments of two learners, their plans, and promotions."""

from __future__ import annotations

from typing import Any, NamedTuple

from heedful.core.notebooks import table
from heedful.core.wording import percent
from heedful.evaluation.interleaving import Verdict
from heedful.results.answers import Answer
from heedful.results.sentences import number
from heedful.results.table import Column


class ItemMove(NamedTuple):
    """How differently a candidate learner treats one item, compared with the learner that serves."""

    item: str
    """its name"""
    shown: int
    """how many of the lists that were shown it was in"""
    proposed: int
    """how many of the candidate's lists it is in"""
    places: float | None
    """how many places higher it is in the candidate's list, on average over decisions where both have it; None if none
    has"""


MOVE_COLUMNS = (
    Column("item", "item", "", lambda move: move.item, True),
    Column("shown", "shown", "How many of the loop's own lists have it", lambda move: f"{move.shown:,}"),
    Column(
        "proposed",
        "proposed",
        "How many of the candidate's lists for the same requests have it",
        lambda move: f"{move.proposed:,}",
    ),
    Column(
        "places",
        "places up",
        "How many places higher the candidate has it, on average over the lists where both have it",
        lambda move: number(move.places, 1, True),
    ),
)
"""The columns in which items that would move are shown in the terminal and on pages."""


class PersonAgreement(NamedTuple):
    """How much the lists of a candidate learner for one person agree with those that the person was shown."""

    person: str
    """their name"""
    decisions: int
    """how many of the person's lists are compared"""
    overlap: float
    """the share of the items in them that the candidate's lists have, too, on average"""


PERSON_COLUMNS = (
    Column("person", "person", "", lambda each: each.person, True),
    Column("decisions", "lists", "", lambda each: f"{each.decisions:,}"),
    Column("overlap", "items in common", "", lambda each: percent(each.overlap, 2)),
)
"""The columns in which people are shown whose lists would change most."""


class Agreement(NamedTuple):
    """How much the lists of a candidate learner agree with those that the learner that serves showed."""

    decisions: int
    """how many lists of the learner that serves (not interleaved ones) are compared"""
    same_first: float | None
    """the share of them whose first item is the candidate's first, too; None if there are no lists"""
    overlap: float | None
    """the share of the items shown that the candidate's list of the same length has, too, on average; None if there are
    no lists"""
    moves: tuple[ItemMove, ...]
    """the items that would move most: first those that would enter or leave most lists; at most `LISTED`"""
    people: tuple[PersonAgreement, ...]
    """the people with the least overlap first; at most `LISTED`"""


class Split(NamedTuple):
    """Counts of a random split in two, such as of people between two learners, and evidence that it was not as
    stated."""

    own: int
    """the count of the side that serves (A)"""
    candidate: int
    """the count of the candidate's side (B)"""
    expected: float
    """the stated probability of the candidate's side"""
    e_value: float
    """the evidence against that probability; from 1,000 on something is taken to be wrong with the drafts or the log"""


class Answered(NamedTuple):
    """How many lists got an answer in favour of some item: interleaved ones (drafted by both learners of an experiment)
    and those of the learner that serves, shown to people outside the experiment while it ran."""

    interleaved: int
    """interleaved lists"""
    answered: int
    """those of them with an answer in favour of an item"""
    learned: int
    """lists of the learner that serves, shown to people who do not take part while the experiment ran"""
    learned_answered: int
    """those of them with an answer in favour of an item"""
    worse: bool
    """whether interleaved lists are answered less often, each person counting alike, at the error rate of the
    experiment"""


class Experiment(NamedTuple):
    """The state of an experiment: a candidate learner (side B) against the one that serves (side A), and which people
    prefer."""

    id: str
    """the id of the experiment"""
    learner: str
    """the candidate, by name and parameters"""
    against: str
    """the learner that served when the experiment began"""
    share: float
    """the share of people whose lists both sides draft together; 0 if the candidate's lists are only logged"""
    frozen: int
    """the version after which neither side learns on in the experiment; 0 if both learn on"""
    alpha: float
    """the probability with which the verdict may be wrong, at most, however often it is looked at"""
    since: int
    """the sequence number of the event with which it began"""
    running: bool
    """whether it goes on"""
    decisions: int
    """how many decisions the loop has made while it ran"""
    verdict: Verdict
    """which side people prefer ("b", the candidate, "a", the learner that serves, or "undecided"), with the evidence"""
    credit: float | None
    """how much better B ranks what people chose: the mean over people of 1 / rank in B - 1 / rank in A, weighted by the
    inverse probability of the place where it was shown; None without a session. The verdict does not count it"""
    credit_error: float | None
    """its standard error over people; None with fewer than two people"""
    agreement: Agreement
    """how much the candidate's lists agree with those that were shown"""
    coins: Split
    """how often either side picked first in a round of a draft"""
    people: Split
    """how many people do not take part (own) and do (candidate)"""
    answered: Answered
    """how many lists were answered"""
    least_people: int
    """the least number of people whose answers can make a verdict"""
    against_promotion: tuple[str, ...]
    """why the candidate may not be promoted now, a sentence each; () if it may"""

    @property
    def ready(self) -> bool:
        """whether the candidate may be promoted: True if `against_promotion` is empty"""
        return not self.against_promotion

    def _repr_html_(self) -> str:
        said = self.verdict
        rows = [
            ("verdict", said.verdict), ("e-value", said.e_value), ("B's share of decided sessions", said.share),
            ("sessions", said.sessions), ("people", said.people), ("same first item", self.agreement.same_first),
            ("overlap", self.agreement.overlap),
        ]  # fmt: skip
        return table(f"{self.learner} against {self.against}", ["", ""], rows, self.against_promotion)


class Promotion(NamedTuple):
    """A promotion: which learner it made serve in place of which, its evidence at the time, and the same evidence
    computed from the log today."""

    id: str
    """the id of its event"""
    seq: int
    """the sequence number of its event"""
    learner: str
    """the learner that it made serve"""
    before: str
    """the learner that served until then"""
    by: str
    """who promoted it, as they said"""
    reason: str
    """why, in their words"""
    evidence: dict[str, Any]
    """what spoke for it at that time, by name"""
    now: dict[str, Any]
    """the same, computed from the log as it is now: it differs if feedback was undone or people were forgotten since"""
    forced: tuple[str, ...]
    """the reasons against it that were overruled, a sentence each"""
    in_effect: bool
    """whether no rollback has left it out"""
    changed: str
    """a sentence saying how the evidence has changed since the promotion, by undoing or forgetting; "" if it has not"""


class Promoted(NamedTuple):
    """The result of `Loop.promote`."""

    answer: Answer
    """what became of the promotion as an event"""
    learner: str
    """the learner that serves now"""
    before: str
    """the learner that served until then"""
    evidence: dict[str, Any]
    """what spoke for it, by name"""
    forced: tuple[str, ...]
    """the reasons against it that were overruled, a sentence each"""


class PlannedWin(NamedTuple):
    """What a planned experiment would find if the candidate won a share of the sessions that have a winner.

    A session is one list drafted by both learners and answered; the learner whose items got more answers wins it."""

    share: float
    """that share"""
    found: float
    """the probability of the verdict that the candidate is better"""
    days: float | None
    """the median number of days until that verdict; None if most experiments of that length would not reach it"""


WIN_COLUMNS = (
    Column("share", "sessions won", "", lambda win: percent(win.share), True),
    Column("found", "found to be better", "", lambda win: percent(win.found, 2)),
    Column("days", "median days", "", lambda win: number(win.days, 1)),
)
"""The columns in which is shown what a planned experiment would find."""


class PlannedExperiment(NamedTuple):
    """How many people and sessions an experiment would have, and what it would find, judged by recent use of the loop.

    A session is one list drafted by both learners (interleaved) and answered."""

    people: int
    """how many people would take part"""
    sessions: int
    """how many lists would be interleaved and answered"""
    ties: float
    """the estimated share of sessions that neither side wins"""
    days: float
    """how many days the experiment would run"""
    wins: tuple[PlannedWin, ...]
    """for several shares of wins of the candidate, what the experiment would find"""
    caveat: str
    """why the estimate may be poor, in words; "" if there is no reason known"""


class Promotions(NamedTuple):
    """All changes of the loop's learner to another one, the newest first."""

    promotions: tuple[Promotion, ...]
    """the newest first"""
