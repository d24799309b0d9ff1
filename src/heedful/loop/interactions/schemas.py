"""What the kinds of feedback add to the answers over HTTP, field by field: the server's schema is made with it."""

from __future__ import annotations

import atexit
import gc
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

# Types with `Meta` may be freed twice in the interpreter's last collection, which then crashes (msgspec issue 717):
# nothing is left for it to collect.
atexit.register(gc.freeze)

Learned = Annotated[
    float | None, Meta(description="null where it is no number any more: the weights overflowed, as caveats say")
]


class Difference(msgspec.Struct):
    """Learned less control, with its 95 % interval."""

    by: float
    low: float
    high: float
    people: Annotated[int, Meta(description="who answered; a list of nobody in particular counts as one")]


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


# ---------------------------------------------------------------------------- what is added to what every loop says


class Loop(msgspec.Struct, kw_only=True):
    """What some loops were made with."""

    grades: Annotated[int | UnsetType, Meta(description="how many grades there are, 1 the lowest")] = UNSET
    ratings: Annotated[
        Annotated[list[float], Meta(min_length=2, max_length=2)] | UnsetType,
        Meta(description="of a loop of ratings: the lowest and the highest"),
    ] = UNSET
    choices: Annotated[
        Literal["best", "ranking"] | UnsetType, Meta(description="of a loop of choices: what they are for")
    ] = UNSET


class Explanation(msgspec.Struct, kw_only=True):
    """What some loops say of what they predicted."""

    grade: Annotated[int | UnsetType, Meta(description="of a loop that predicts grades: of the first")] = UNSET
    between: Annotated[
        list[float | None] | UnsetType, Meta(description="the scores that this grade lies between; null at an end")
    ] = UNSET
    rating: Annotated[Foreseen | UnsetType, Meta(description="of a loop of ratings: of the first")] = UNSET
    choice: Annotated[Weighed | UnsetType, Meta(description="of a loop of choices: of the first two")] = UNSET


class Replayed(msgspec.Struct, kw_only=True):
    """How far what was predicted lay from what was given, where that is a number."""

    rank_loss: Annotated[float | UnsetType, Meta(description="of grades: the mean of |predicted - given|")] = UNSET
    graded: Annotated[int | UnsetType, Meta(description="how many grades that is over")] = UNSET
    error: Annotated[float | UnsetType, Meta(description="of ratings: the mean of |predicted - given|")] = UNSET
    rated: Annotated[int | UnsetType, Meta(description="how many ratings that is over")] = UNSET


class Report(msgspec.Struct, kw_only=True):
    """How well answers were predicted, in some loops."""

    grades: Annotated[Accuracy | UnsetType, Meta(description="of a loop that predicts grades")] = UNSET
    ratings: Annotated[Foretelling | UnsetType, Meta(description="of a loop of ratings")] = UNSET
    choices: Annotated[Guessing | UnsetType, Meta(description="of a loop of choices")] = UNSET
