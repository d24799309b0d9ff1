"""What the routes take and give, field by field."""

from __future__ import annotations

import atexit
import gc
from functools import cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

# Types with `Meta` may be freed twice in the interpreter's last collection, which then crashes (msgspec issue 717):
# nothing is left for it to collect.
atexit.register(gc.freeze)

PRINTABLE = r"^[^\x00-\x1f\x7f]+$"
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
"""Of a loop."""
Id = Annotated[str, Meta(min_length=1, max_length=200, description="1 to 200 printable characters", pattern=PRINTABLE)]
MOST = 2**62
"""What a count may be."""
Number = Annotated[float, Meta(ge=-1e100, le=1e100)]
Time = (
    Annotated[int, Meta(ge=0, lt=2**53, description="microseconds since 1970")]
    | Annotated[str, Meta(description="2026-01-31T12:00:00Z", examples=["2026-01-31T12:00:00Z"])]
)
Object = dict[str, Any]
Candidates = Annotated[
    list[Any],
    Meta(
        max_length=100_000,
        description="names of items on offer, objects with attributes, or hits of a search engine with _id, _score "
        "and _source, in your order; without it all items. What is not on offer is ranked by your score or last, what "
        "comes twice counts once, and none give an empty list, unless it is strict",
        extra_json_schema={"items": {"anyOf": [{"type": "string", "minLength": 1}, {"type": "object"}]}},
    ),
]
Strict = Annotated[
    bool,
    Meta(
        description="whether candidates that are not on offer, come twice, or are none are refused (422); as the "
        "loop's settings say where it is not said"
    ),
]
Unknown = Annotated[list[str], Meta(description="candidates that are not on offer; only where there are some")]
Names = Annotated[list[Id], Meta(min_length=1, max_length=100_000, extra_json_schema={"uniqueItems": True})]


Learned = Annotated[
    float | None, Meta(description="null where it is no number any more: the weights overflowed, as caveats say")
]


class _Body(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A body: what is not among its fields is refused."""


class Decide(_Body):
    """A request for a decision."""

    candidates: Candidates | UnsetType = UNSET
    person: Id | UnsetType = UNSET
    context: Object | UnsetType = UNSET
    prior: Annotated[
        dict[Id, Number] | list[Number] | UnsetType, Meta(description="your own scores, by name or in order")
    ] = UNSET
    show: Annotated[int, Meta(ge=1, le=MOST, description="where there are fewer, all of them")] | UnsetType = UNSET
    id: Id | UnsetType = UNSET
    deferred: bool | UnsetType = UNSET
    repeats: Annotated[
        bool | UnsetType,
        Meta(
            description="in a loop of ratings, whether what the person has consumed may be shown, in a loop of choices "
            "whether a pair may be asked again"
        ),
    ] = UNSET
    strict: Strict | UnsetType = UNSET


class Rank(_Body):
    """A look at the order that the model has of some candidates; nothing is logged."""

    candidates: Candidates | UnsetType = UNSET
    person: Id | UnsetType = UNSET
    context: Object | UnsetType = UNSET
    prior: Annotated[
        dict[Id, Number] | list[Number] | UnsetType, Meta(description="your own scores, by name or in order")
    ] = UNSET
    strict: Strict | UnsetType = UNSET


class Ranking(msgspec.Struct, kw_only=True):
    """All candidates, best first."""

    ranking: list[str]
    version: Annotated[int, Meta(description="of the model that ranks them so")]
    unknown: Unknown | UnsetType = UNSET


class Record(_Body):
    """What somebody else decided."""

    candidates: Candidates
    shown: Names
    id: Id | UnsetType = UNSET
    person: Id | UnsetType = UNSET
    context: Object | UnsetType = UNSET
    prior: dict[Id, Number] | list[Number] | UnsetType = UNSET
    probability: Annotated[float, Meta(gt=0, le=1)] | UnsetType = UNSET
    time: Time | UnsetType = UNSET
    strict: Strict | UnsetType = UNSET


class Decision(msgspec.Struct, kw_only=True):
    """What to show, best first."""

    id: str
    shown: list[str]
    probability: float | None
    version: int
    arm: Literal["learned", "control", "imported"]
    seq: int
    predicted: Annotated[
        list[float | None] | UnsetType,
        Meta(
            description="of each that is shown: its grade, its rating, or how likely it is to be chosen, as the kind "
            "of the loop has it; null of what is unknown"
        ),
    ] = UNSET
    unknown: Unknown | UnsetType = UNSET


class Feedback(_Body):
    """What a person answered to a decision, in one form: clicks, better, edit, thumb, action, actions, rating, grade,
    choice or none. docs/feedback.md says what each means. A loop that predicts grades takes grade and none, a loop of
    ratings rating, actions and none, a loop of choices choice, better, clicks and none."""

    decision: Id
    id: Annotated[Id | UnsetType, Meta(description="yours: sent again it counts once")] = UNSET
    time: Time | UnsetType = UNSET
    clicks: list[Id] | UnsetType = UNSET
    chain: list[Id] | UnsetType = UNSET
    better: Names | Id | UnsetType = UNSET
    edit: str | Object | UnsetType = UNSET
    nearest: bool | UnsetType = UNSET
    thumb: Literal["up", "down"] | UnsetType = UNSET
    action: Id | UnsetType = UNSET
    item: Id | UnsetType = UNSET
    actions: (
        Annotated[dict[Id, Id | Annotated[list[Id], Meta(min_length=1, max_length=100)]], Meta(min_length=1)]
        | UnsetType
    ) = UNSET
    rating: Annotated[dict[Id, Number], Meta(min_length=1)] | UnsetType = UNSET
    grade: Annotated[dict[Id, Number], Meta(min_length=1)] | UnsetType = UNSET
    choice: Literal["first", "second", "equal", "cannot_judge"] | UnsetType = UNSET
    none: Literal[True] | UnsetType = UNSET


class Activate(_Body):
    """A deferred decision was shown after all."""

    decision: Id
    time: Time | UnsetType = UNSET


class Undo(_Body):
    """Take one piece of feedback back."""

    event: Id
    id: Id | UnsetType = UNSET


class Replay(_Body):
    """Fold the log with another learner."""

    learner: Annotated[str, Meta(examples=["second-order:epsilon=0.1"])]


class Answer(msgspec.Struct, kw_only=True):
    """What became of an event."""

    status: Literal["applied", "duplicate", "rejected"]
    event: str
    seq: int | None
    version: int
    late: bool
    learned: bool
    reason: str | None


class NewLoop(_Body):
    """A loop to make, as `heedful init` does."""

    name: Annotated[str, Meta(pattern=NAME)]
    items: list[Object] | UnsetType = UNSET
    learner: str | UnsetType = UNSET
    settings: Object | UnsetType = UNSET
    identifier: str | UnsetType = UNSET
    kinds: dict[str, Literal["number", "category", "text", "prose", "vector", "ignored"]] | UnsetType = UNSET
    context: list[Object] | UnsetType = UNSET
    crosses: list[Annotated[list[str], Meta(min_length=2, max_length=2)]] | Literal["all"] | UnsetType = UNSET
    query_features: Annotated[
        Object | UnsetType,
        Meta(description="what each request says of each item, by name: [low, high] of a number, a list of texts"),
    ] = UNSET
    features: Annotated[
        bool | UnsetType,
        Meta(description="in a loop of choices, whether items that are like each other are liked alike"),
    ] = UNSET


class Loop(msgspec.Struct, kw_only=True):
    """What there is to know of a loop."""

    name: str
    learner: str
    identifier: Annotated[str, Meta(description="the attribute that names an item")]
    version: int
    features: Annotated[int, Meta(description="N: numbers that an item has")]
    names: Annotated[list[str], Meta(description="of the features, crosses included; the caller's score the last")]
    items: int
    events: dict[str, int]
    settings: Object
    caveats: list[str]
    notes: list[str]
    unknown: dict[str, int]
    query_features: Annotated[
        list[str] | UnsetType, Meta(description="names of what each request says of each item, where it says anything")
    ] = UNSET
    grades: Annotated[int | UnsetType, Meta(description="how many grades there are, 1 the lowest")] = UNSET
    ratings: Annotated[
        Annotated[list[float], Meta(min_length=2, max_length=2)] | UnsetType,
        Meta(description="of a loop of ratings: the lowest and the highest"),
    ] = UNSET
    choices: Annotated[
        Literal["best", "ranking"] | UnsetType, Meta(description="of a loop of choices: what they are for")
    ] = UNSET


class Loops(msgspec.Struct):
    """The loops of the key's tenant."""

    loops: list[str]


class Put(msgspec.Struct):
    """How many items are new or changed."""

    put: int


class Items(msgspec.Struct):
    """Names of items on offer."""

    items: list[str]
    total: int


class Withdrawn(msgspec.Struct):
    """Whether the item was on offer."""

    withdrawn: bool


class Forgotten(msgspec.Struct):
    """What forgetting a person did."""

    events: int
    exports: list[str]
    version: int
    erased: Annotated[bool, Meta(description="false where somebody else is reading: the bytes go when nobody is")]


class Weights(msgspec.Struct):
    """What each feature counts."""

    version: int
    weights: dict[str, Learned]


class Part(msgspec.Struct):
    """What one feature says about the two."""

    name: str
    weight: Learned
    first: float
    second: float
    counts: Learned


class Moved(msgspec.Struct):
    """By how much one piece of feedback moved the first ahead of the second."""

    event: str
    seq: int
    form: str
    by: Learned


class Foreseen(msgspec.Struct):
    """What a loop of ratings expected of an item, and from how many ratings; an action counts as its weight."""

    expected: Annotated[float | None, Meta(description="null of a learner that does not say")]
    spread: Annotated[float | None, Meta(description="the standard deviation of that belief")]
    by_all: float
    mean_of_all: float | None
    by_person: float
    mean_of_person: float | None
    own: Annotated[float, Meta(description="of this item by this person")]
    mean_of_own: float | None


class Weighed(msgspec.Struct):
    """What a loop of choices believed of two items when it asked which is better."""

    rule: Annotated[str | None, Meta(description="that asked it; null where chance or somebody else did")]
    chosen: Annotated[float, Meta(description="how likely the first was to be chosen")]
    better: Annotated[float, Meta(description="how likely it is better")]
    spread: Annotated[float, Meta(description="the standard deviation of the margin")]
    asked_first: Annotated[int, Meta(description="of how many pairs with the first in it the person had been asked")]
    asked_second: int
    answers: Annotated[int, Meta(description="of the person in all")]


class Explanation(msgspec.Struct):
    """Why the first stood first."""

    decision: str
    arm: str
    first: str
    second: str | None
    because: str
    margin: Learned
    features: list[Part]
    lessons: list[Moved]
    grade: Annotated[int | UnsetType, Meta(description="of a loop that predicts grades: of the first")] = UNSET
    between: Annotated[
        list[float | None] | UnsetType, Meta(description="the scores that this grade lies between; null at an end")
    ] = UNSET
    rating: Annotated[Foreseen | UnsetType, Meta(description="of a loop of ratings: of the first")] = UNSET
    choice: Annotated[Weighed | UnsetType, Meta(description="of a loop of choices: of the first two")] = UNSET


class Replayed(msgspec.Struct):
    """What another learner makes of the log."""

    learner: str
    lessons: int
    weights: dict[str, Learned]
    agreement: float | None
    comparisons: float
    rank_loss: Annotated[float | UnsetType, Meta(description="of grades: the mean of |predicted - given|")] = UNSET
    graded: Annotated[int | UnsetType, Meta(description="how many grades that is over")] = UNSET
    error: Annotated[float | UnsetType, Meta(description="of ratings: the mean of |predicted - given|")] = UNSET
    rated: Annotated[int | UnsetType, Meta(description="how many ratings that is over")] = UNSET


class Arm(msgspec.Struct):
    """Lists made from what was learned, or left in the caller's order."""

    shown: int
    answered: Annotated[int, Meta(description="got feedback that says what was preferred, or that nothing was")]
    mean: Annotated[
        float | None,
        Meta(
            description="of 1 / the place of what was preferred, over those answered; in a loop of ratings of ratings, "
            "in a loop of choices the share that was foretold"
        ),
    ]


class Difference(msgspec.Struct):
    """Learned less control, with its 95 % interval."""

    by: float
    low: float
    high: float
    people: Annotated[int, Meta(description="who answered; a list of nobody in particular counts as one")]


class Window(msgspec.Struct):
    """Some lists that were shown one after the other."""

    seq: int
    time: Annotated[int, Meta(description="of the last, in microseconds since 1970")]
    learned: Arm
    control: Arm


class Counts(msgspec.Struct):
    """What feedback there was; what was undone counts in `undone` alone."""

    given: int
    empty: Annotated[int, Meta(description="there is no lesson in it")]
    contradictory: Annotated[int, Meta(description="the model, as it is now, has it the other way round")]
    late: int
    undone: int


class At(msgspec.Struct):
    """How far t answered lists fell short of the best, on average, and at most."""

    t: int
    regret: float
    bound: float | None


class Measured(msgspec.Struct):
    """The regret of a loop that a simulated person teaches."""

    lists: int
    regret: float | None
    bound: float | None
    unbound: Annotated[str, Meta(description="why there is no bound; empty where there is one")]
    curve: list[At]


class Stretch(msgspec.Struct):
    """Some grades that were given one after the other."""

    seq: int
    time: Annotated[int, Meta(description="of the last, in microseconds since 1970")]
    grades: int
    loss: float
    constant: float


class Accuracy(msgspec.Struct):
    """How well grades were predicted, each before it was known."""

    grades: Annotated[int, Meta(description="how many were given to what had been predicted and shown")]
    loss: Annotated[float | None, Meta(description="the mean of |predicted - given|")]
    exact: Annotated[float | None, Meta(description="the share that was predicted exactly")]
    constant: Annotated[float | None, Meta(description="the loss of the median of the grades so far")]
    difference: Annotated[Difference | None, Meta(description="loss less constant: below 0 is better")]
    unsaid: Annotated[str, Meta(description="why there is no difference; empty where there is one")]
    series: list[Stretch]


class Span(msgspec.Struct):
    """Some ratings that were given one after the other."""

    seq: int
    time: Annotated[int, Meta(description="of the last, in microseconds since 1970")]
    ratings: int
    mean: float
    error: float | None
    item_mean: float


class Picked(msgspec.Struct):
    """What the first of a list would have been given, chosen in one of three ways, over lists of the control in which
    two or more were rated."""

    lists: int
    learned: Annotated[float, Meta(description="the rating of what the model expected most of")]
    popular: Annotated[float, Meta(description="of the item with the highest mean so far")]
    chance: Annotated[float, Meta(description="of any of them")]
    difference: Annotated[Difference | None, Meta(description="learned less popular")]


class Foretelling(msgspec.Struct):
    """What ratings were given, and how well they were predicted, each before it was known."""

    ratings: Annotated[int, Meta(description="how many were given to what the loop had shown")]
    mean: Annotated[float | None, Meta(description="of the ratings")]
    error: Annotated[float | None, Meta(description="the mean of |predicted - given|")]
    item_mean: Annotated[float | None, Meta(description="the same of always saying the item's mean so far")]
    difference: Annotated[Difference | None, Meta(description="error less that: below 0 is better")]
    unsaid: Annotated[str, Meta(description="why there is no difference; empty where there is one")]
    series: list[Span]
    picked: Annotated[
        Picked | UnsetType, Meta(description="the model beside what is most popular, in lists of the control")
    ] = UNSET


class Tried(msgspec.Struct):
    """Some answers that were given one after the other."""

    seq: int
    time: Annotated[int, Meta(description="of the last, in microseconds since 1970")]
    answers: int
    right: float
    guess: float


class Guessing(msgspec.Struct):
    """How often what was foretold was chosen, each before it was known."""

    answers: int
    right: Annotated[float | None, Meta(description="the share in which what was likeliest was chosen")]
    guess: Annotated[float | None, Meta(description="the same of who guesses")]
    difference: Annotated[Difference | None, Meta(description="right less guess")]
    unsaid: Annotated[str, Meta(description="why there is no difference; empty where there is one")]
    by_chance: Annotated[int, Meta(description="of the answers, to questions that chance picked")]
    right_by_chance: Annotated[float | None, Meta(description="the share that was right of those")]
    equal: int
    unsure: Annotated[int, Meta(description="nobody could judge, or nothing was chosen")]
    series: list[Tried]


class Standing(msgspec.Struct):
    """One item in the ranking of a loop of choices."""

    item: str
    utility: Annotated[float, Meta(description="in units of the noise of one choice, less the average of all")]
    sd: float
    best: Annotated[float, Meta(description="how likely it is the best")]
    low: Annotated[int, Meta(description="from this position, 1 the first, to the next with 90 % probability")]
    high: int
    asked: Annotated[int, Meta(description="in how many pairs that somebody was asked about it was")]
    level: Annotated[bool, Meta(description="which of it and the next is better is less than 90 % sure")]


class Left(msgspec.Struct):
    """About how many questions are left: a median, and the middle half."""

    about: int
    low: int
    high: int
    most: Annotated[int, Meta(description="where a number is this, it is that many or more")]
    told: str


class Standings(msgspec.Struct):
    """How things stand in a loop of choices."""

    version: int
    goal: Literal["best", "ranking"]
    person: Annotated[str | None, Meta(description="null: all together")]
    people: int
    answers: int
    stop: Annotated[bool, Meta(description="whether it is as sure as it has to be, 90 %")]
    sure: Annotated[float, Meta(description="that the favourite is the best; of a ranking, the pairs in order")]
    favourite: str
    left: Left
    ranking: Annotated[list[Standing], Meta(description="best first")]
    alike: Annotated[
        list[list[str]],
        Meta(description="groups of neighbours of which no two can be told apart, best first; they may overlap"),
    ]


class Share(msgspec.Struct):
    """Thumbs that were given in one arm."""

    thumbs: int
    up: int
    share: float | None
    low: Annotated[float | None, Meta(description="of the 95 % interval; null where chance cannot be told")]
    high: float | None


class Approval(msgspec.Struct):
    """The thumbs of both arms."""

    learned: Share
    control: Share
    difference: Annotated[Difference | None, Meta(description="of the shares: learned less control")]


class Report(msgspec.Struct):
    """What a loop learned, measured from its log."""

    version: int
    decisions: Annotated[int, Meta(description="the newest, that were looked at")]
    whole: Annotated[bool, Meta(description="whether those are all")]
    since: Annotated[int | None, Meta(description="when the oldest was made, in microseconds since 1970")]
    imported: int
    waiting: Annotated[int, Meta(description="deferred and never activated: not shown")]
    learned: Arm
    control: Arm
    difference: Difference | None
    unsaid: Annotated[str, Meta(description="why there is no difference; empty where there is one")]
    series: list[Window]
    feedback: Counts
    simulation: Measured | None
    grades: Annotated[Accuracy | UnsetType, Meta(description="of a loop that predicts grades")] = UNSET
    ratings: Annotated[Foretelling | UnsetType, Meta(description="of a loop of ratings")] = UNSET
    choices: Annotated[Guessing | UnsetType, Meta(description="of a loop of choices")] = UNSET
    thumbs: Annotated[Approval | UnsetType, Meta(description="where thumbs were given")] = UNSET
    unknown: Annotated[
        int | UnsetType, Meta(description="decisions that were asked about something that was not on offer")
    ] = UNSET


class Problem(msgspec.Struct):
    """What is wrong (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    field: Annotated[str | UnsetType, Meta(description="that is to blame")] = UNSET
    answer: Annotated[Answer | UnsetType, Meta(description="of what was rejected: what became of it")] = UNSET


class Health(msgspec.Struct):
    """That the server answers."""

    status: Literal["ok"]


@cache
def names(body: type[msgspec.Struct]) -> frozenset[str]:
    """The fields that a body may have."""
    return frozenset(body.__struct_fields__)
