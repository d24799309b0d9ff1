"""The bodies that the routes of experiments and promotions take and give, as msgspec structs.

Names of structs and their docstrings appear in the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from heedful.server.schema import Answer, Id, _Body

Share = Annotated[float, Meta(ge=0, le=1)]
Learner = Annotated[str, Meta(max_length=500, examples=["second-order:epsilon=0.1"])]
Reasons = Annotated[list[str], Meta(description="a sentence each")]


class StartExperiment(_Body):
    """A request to compare another learner (the candidate) with the loop's learner, on lists that both draft together.

    `id` is the id of the experiment: a request that is sent again under it begins no second one."""

    learner: Learner
    share: (
        Annotated[float, Meta(ge=0, le=1, description="of the people, whose lists both learners draft together; 0")]
        | UnsetType
    ) = UNSET
    frozen: Annotated[bool, Meta(description="whether both sides rank as they do now; false")] | UnsetType = UNSET
    alpha: Annotated[float, Meta(ge=1e-6, le=0.5, description="how often a verdict may be wrong; 0.05")] | UnsetType = (
        UNSET
    )
    id: Id | UnsetType = UNSET


class StopExperiment(_Body):
    """A request to end the experiment that is running. `id` is the id of this request: sent again under it, it counts
    once."""

    id: Id | UnsetType = UNSET


class PreferenceVerdict(msgspec.Struct, kw_only=True):
    """Which side people prefer, the loop's learner (a) or the candidate (b), and how certain that is.

    `sessions` is how many interleaved lists were answered, from `people` people; `low` and `high` are the ends of an
    interval for `share`."""

    verdict: Annotated[Literal["a", "b", "undecided"], Meta(description="a: the loop's learner, b: the candidate")]
    e_value: Annotated[float, Meta(description="decided from 1 / alpha on")]
    share: Annotated[float, Meta(description="of b among sessions that one side won")]
    low: float
    high: float
    sessions: int
    people: int
    largest: Annotated[float, Meta(description="the largest share of the sessions that one person has")]


class ItemMove(msgspec.Struct, kw_only=True):
    """How often the candidate shows an item, compared with the lists shown, and how much higher or lower."""

    item: str
    shown: int
    proposed: int
    places: Annotated[float | None, Meta(description="by how many places higher, where both have it")]


class PersonAgreement(msgspec.Struct, kw_only=True):
    """The `overlap` of the lists shown to one person with the lists that the candidate would have shown them: the mean
    share of the items shown, over `decisions` lists."""

    person: str
    decisions: int
    overlap: float


class Agreement(msgspec.Struct, kw_only=True):
    """How the candidate's lists differ from those of the loop's learner, over `decisions` lists of the latter: by
    decision, by item and by person.

    `same_first` is the share of lists with the same first item, `overlap` the mean share of the items shown that the
    candidate has, too; null without lists."""

    decisions: int
    same_first: float | None
    overlap: float | None
    moves: list[ItemMove]
    people: list[PersonAgreement]


class Split(msgspec.Struct, kw_only=True):
    """How coins or people were split between the two sides, with a test of whether the split is the intended one.

    `own` is the count of the loop's learner, `candidate` that of the candidate, `expected` the stated share of the
    candidate."""

    own: int
    candidate: int
    expected: float
    e_value: Annotated[float, Meta(description="evidence that the split is another; from 1,000 on it counts")]


class Answered(msgspec.Struct, kw_only=True):
    """How many lists were answered in favour of an item: `answered` of `interleaved` lists, and `learned_answered` of
    `learned`, those of the loop's learner alone. `worse`: interleaved lists are answered less often, each person
    counting alike, at the error rate of the experiment."""

    interleaved: int
    answered: int
    learned: int
    learned_answered: int
    worse: bool


class Experiment(msgspec.Struct, kw_only=True):
    """The result of an experiment so far.

    `share` is that of the people whose lists both sides draft, `alpha` the probability, at most, that the verdict is
    wrong, `since` the sequence number of the event with which it began, `least_people` the fewest people who can make a
    verdict, `credit_error` the standard error of `credit`."""

    id: str
    learner: Annotated[str, Meta(description="the candidate, side b")]
    against: Annotated[str, Meta(description="the learner that served when it began, side a")]
    share: float
    frozen: Annotated[int, Meta(description="the version at which both sides stay; 0: both learn on")]
    alpha: float
    since: int
    running: bool
    decisions: int
    verdict: PreferenceVerdict
    credit: Annotated[float | None, Meta(description="how much better b ranks what people chose, in reciprocal ranks")]
    credit_error: float | None
    agreement: Agreement
    coins: Split
    people: Split
    answered: Answered
    least_people: int
    against_promotion: Reasons


class Promote(_Body):
    """A request to let another learner serve the loop."""

    learner: (
        Annotated[
            Learner, Meta(description="without it, the candidate of the experiment, or the learner that imitates")
        ]
        | UnsetType
    ) = UNSET
    force: Annotated[bool, Meta(description="whatever speaks against it; false")] | UnsetType = UNSET
    by: Annotated[str, Meta(max_length=1000, description="who does it")] | UnsetType = UNSET
    reason: Annotated[str, Meta(max_length=1000)] | UnsetType = UNSET
    id: Id | UnsetType = UNSET


class Promoted(msgspec.Struct, kw_only=True):
    """The result of letting another learner serve the loop: which one served before, and the evidence for the
    change."""

    answer: Answer
    learner: str
    before: str
    evidence: dict[str, Any]
    forced: Reasons


class Promotion(msgspec.Struct, kw_only=True):
    """The change of a loop's learner to another one, with its evidence then and now."""

    id: str
    seq: int
    learner: str
    before: str
    by: str
    reason: str
    evidence: dict[str, Any]
    now: Annotated[dict[str, Any], Meta(description="the evidence, from what is left in the log")]
    forced: Reasons
    in_effect: bool
    changed: Annotated[
        str, Meta(description="what has changed of the evidence, by undoing or forgetting; empty if nothing")
    ]


class Promotions(msgspec.Struct, kw_only=True):
    """All changes of the loop's learner to another one, the newest first."""

    promotions: list[Promotion]


class PlannedWin(msgspec.Struct, kw_only=True):
    """The outcome of a planned experiment, if the candidate won this `share` of the sessions."""

    share: float
    found: Annotated[float, Meta(description="the probability that it is found to be better")]
    days: Annotated[float | None, Meta(description="the median time until then")]


class PlannedExperiment(msgspec.Struct, kw_only=True):
    """How likely an experiment would find a better candidate, for several shares of sessions that the candidate
    wins."""

    people: int
    sessions: int
    ties: float
    days: float
    wins: list[PlannedWin]
    caveat: str
