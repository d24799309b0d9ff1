"""Reports of a loop of ratings, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heedful.core.wording import count
from heedful.loop.interactions.findings import Findings
from heedful.loop.interactions.words import NotCompared, Words
from heedful.results.report import Difference
from heedful.results.sentences import interval, number

if TYPE_CHECKING:
    from heedful.results.report import PredictionReport, Report


WORDS = Words(
    loop="a loop of ratings",
    takes="ratings of what is shown",
    learns="this loop learns ratings from {ratings[0]:g} to {ratings[1]:g}",
    instead={"grade": "send grades as rating", "action": "write actions={item: action}"},
    command="heedful simulate ratings ratings.csv",
    answer="rating",
    question="How much do you like each of these, from {ratings[0]:g} to {ratings[1]:g}?",
    badge="ratings {scale}",
    prediction="rating",
    unordered="the learner ranks by how good an item may be for this person, and so also shows what it is unsure of",
    widget="scale",
    score="the mean rating of what was shown",
    measure="Mean rating",
    measure_help="Of what was shown, by the people who rated it.",
    arms=("learned choice", "control (your score, or chance)"),
    not_compared=NotCompared(
        ("made from what was learned", "left to the caller's score or chance"),
        "nothing is left to the caller's score or chance",
        "",
        "nothing that was {} was rated so far",
        "all ratings of either kind of list were the same: chance cannot be told",
        "too few people have rated: of either kind of list it takes the ratings of two at least",
    ),
    notes=(
        "A list counts with the mean of the ratings that were given to what was in it. Lists of the control show what "
        "they show whatever was learned: the best by the caller's own score where there is one, otherwise a random "
        "draw.",
        "The prediction for an item is what was said when it was shown, before its rating was known. People who see it "
        "may be drawn towards it: ratings given on the page may be nearer than others. Actions are no ratings, and are "
        "not compared.",
    ),
    imported="noted as shown by somebody else, or imported",
    contradiction="would predict a rating more than a quarter of the scale away",
    introduction="It learns who likes what from ratings from {ratings[0]:g} to {ratings[1]:g}, by {learner}. {items} "
    "What a person has rated {again}.{actions}",
    nothing_new="what it is about was withdrawn",
)

ERROR = (
    "Mean error is that of |predicted - given|, each before it was learned from, over the ratings of what was shown."
)
PAIRS = "Pairs in order is the share of the pairs that one answer rates differently which were predicted in that order."
MORE = "More ratings."


def pick_sentences(picked: dict[str, Any]) -> str:
    """Return sentences that compare ratings of the model's first choice with those of the most popular item."""
    told = f"Of {count(picked['lists'], 'list')} that were not chosen by it, what it expected most of was rated "
    told += f"{number(picked['learned'])}, the most popular {number(picked['popular'])}, any of them "
    told += f"{number(picked['chance'])}."
    if picked["difference"] is None:
        return f"{told} Whether it is better than the most popular cannot be said yet."
    return f"{told} {interval(Difference(**picked['difference']), ', above 0 is better than the most popular')}"


def findings(told: Findings, report: Report, found: PredictionReport, scale: str) -> Findings:
    """Return the findings `told` of a `report`, with the mean rating in place of a difference that is not known yet.

    `found` is the part of the report on predictions, `scale` that of ratings in words."""
    if report.difference is None and found.details["mean"] is not None:
        by = count(found.answers, "rating")
        mean = f"What was shown is rated {number(found.details['mean'])} on average, on a scale from {scale}, by {by}."
        told = told._replace(verdict=told.verdict._replace(more=(mean, *told.verdict.more)))
    return told
