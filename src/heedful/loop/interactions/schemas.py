"""The msgspec types of what kinds of feedback add to answers over HTTP; the server's OpenAPI schema is made from
them."""

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
    """Mean score of learned lists minus that of control lists, with its 95 % confidence interval."""

    by: float
    low: float
    high: float
    people: Annotated[int, Meta(description="who answered; a list of nobody in particular counts as one")]


class Standing(msgspec.Struct):
    """One item in the ranking of a loop of choices."""

    item: str
    utility: Annotated[float, Meta(description="in units of the noise of one choice, less the average of all")]
    sd: float
    best: Annotated[float, Meta(description="how likely it is the best")]
    place_low: Annotated[int, Meta(description="from this position, 1 the first, to the next with 90 % probability")]
    place_high: int
    asked: Annotated[int, Meta(description="in how many pairs that somebody was asked about it was")]
    told_apart: Annotated[
        bool | None, Meta(description="whether it is better than the next is 90 % sure; null for the last")
    ]


class Left(msgspec.Struct):
    """A forecast of how many questions are left: from low to high with 80 % probability."""

    low: int
    high: int
    most: Annotated[int, Meta(description="where a number is this, it is that many or more")]
    told: str


class Standings(msgspec.Struct):
    """The ranking of items that follows from the choices so far, and how certain it is."""

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
        Meta(description="groups of neighbours that cannot be told apart, best first; they may overlap"),
    ]


# ---------------------------------------------------------------------------- what a report says of predictions


class GradeDetails(msgspec.Struct):
    """What a loop of grades adds to the report of its predictions."""

    exact: Annotated[float | None, Meta(description="the share of grades predicted exactly; null without any")]


class Picked(msgspec.Struct):
    """The mean rating of one item of a list, chosen in three ways, over control lists with two or more rated items."""

    lists: Annotated[int, Meta(description="the number of lists")]
    learned: Annotated[float, Meta(description="for the item with the highest predicted rating")]
    popular: Annotated[float, Meta(description="for the item with the highest mean rating so far")]
    chance: Annotated[float, Meta(description="for an item chosen at random")]
    difference: Annotated[Difference | None, Meta(description="learned less popular")]


class RatingDetails(msgspec.Struct):
    """What a loop of ratings adds to the report of its predictions."""

    mean: Annotated[float | None, Meta(description="of the ratings of what was shown; null without any")]
    picked: Annotated[Picked | None, Meta(description="null without a control list that has two or more rated items")]


class ChoiceDetails(msgspec.Struct):
    """What a loop of choices adds to the report of its predictions."""

    by_chance: Annotated[int, Meta(description="answers to questions that chance picked")]
    right_by_chance: Annotated[float | None, Meta(description="their score; null without any")]
    equal: Annotated[int, Meta(description="how often all were called equally good")]
    unsure: Annotated[int, Meta(description="how often nobody could judge, or nothing was chosen")]


class RouteDetails(msgspec.Struct):
    """What a loop of routes adds to the report of its predictions."""

    predicted: Annotated[float | None, Meta(description="the mean probability of a thumb up; null without any")]
    came: Annotated[float | None, Meta(description="the mean of the thumbs that came, an edit being a share of one")]


# ---------------------------------------------------------------------------- what is added to what every loop says


class Loop(msgspec.Struct, kw_only=True):
    """Settings that only loops of some kinds have."""

    grades: Annotated[int | UnsetType, Meta(description="how many grades there are, 1 the lowest")] = UNSET
    ratings: Annotated[
        Annotated[list[float], Meta(min_length=2, max_length=2)] | UnsetType,
        Meta(description="of a loop of ratings: the lowest and the highest"),
    ] = UNSET
    choices: Annotated[
        Literal["best", "ranking"] | UnsetType, Meta(description="of a loop of choices: what they are for")
    ] = UNSET
