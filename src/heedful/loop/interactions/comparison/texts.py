"""What a loop of choices says of an explanation and a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heedful.core.formatting import signed
from heedful.loop.interactions.telling import (
    Line,
    Part,
    arms_table,
    lessons_table,
    prediction,
    sentence,
    there,
)

if TYPE_CHECKING:
    from heedful.loop.explain import Explanation
    from heedful.loop.interactions.card import Card
    from heedful.loop.interactions.comparison import ChoicePrediction
    from heedful.loop.prediction_report import PredictionReport
    from heedful.loop.report import Report


def explanation(told: Explanation, choice: ChoicePrediction) -> list[Part]:
    """What was believed of two items, and from which answers."""
    ahead = f"{told.first} was {signed(told.margin)} ahead, give or take {choice.spread:.2f}"
    sure = f"the better one with {choice.better:.0%} probability, and chosen with {choice.chosen:.0%}"
    known = f"{choice.answers:,} answers of the person before it; pairs asked with the first in it: "
    return there(
        [
            Line(f"{told.first} or {told.second}: {ahead}: it is {sure}"),
            sentence(told.because),
            Line(f"{known}{choice.asked_first:,}, with the second: {choice.asked_second:,}"),
            lessons_table(told, "What it comes from: by so much each answer moved the first ahead"),
        ]
    )


def report(found: Report, measured: PredictionReport, card: Card) -> list[Part]:
    """How often what was likeliest was chosen, against guessing."""
    columns = ("questions", "asked", "answered", "predicted")
    equal, unsure = measured.details["equal"], measured.details["unsure"]
    answers = f"Equally good: {equal:,}; could not judge, or chose nothing: {unsure:,}."
    return [arms_table(found, card, columns, form=".1%"), prediction(measured), Line(answers)]
