"""Explanations and reports of a loop of choices, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heedful.core.formatting import signed
from heedful.core.wording import count, share
from heedful.loop.interactions.findings import Section, prediction_section
from heedful.loop.interactions.telling import (
    Line,
    Part,
    lessons_table,
    sentence,
    there,
)

if TYPE_CHECKING:
    from heedful.loop.interactions.comparison import ChoicePrediction
    from heedful.results.explanation import Explanation
    from heedful.results.report import PredictionReport


EXPECTED = (
    "Expected is the share of the items that were not chosen which were expected to lose against the one that was, "
    "each before the answer was learned from; a guess has 50 %."
)


def explanation(told: Explanation, choice: ChoicePrediction) -> list[Part]:
    """Return the explanation `told` of a question as lines and tables.

    They say what the model expected of the two items asked about (`choice`), and from which earlier answers."""
    ahead = f"{told.first} was {signed(told.margin)} ahead, give or take {choice.spread:.2f}"
    sure = f"the better one with {share(choice.better)} probability, and chosen with {share(choice.chosen)}"
    known = f"{count(choice.answers, 'answer')} of the person before it; pairs asked with the first in it: "
    return there(
        [
            Line(f"{told.first} or {told.second}: {ahead}: it is {sure}"),
            sentence(told.because),
            Line(f"{known}{choice.asked_first:,}, with the second: {choice.asked_second:,}"),
            lessons_table(told, "What it comes from: by so much each answer moved the first ahead"),
        ]
    )


def section(found: PredictionReport) -> Section:
    """Return a section of the report on predictions (`found`): how often the item predicted as likeliest was chosen.

    It compares that with guessing, and says how many answers chose none."""
    equal, unsure = found.details["equal"], found.details["unsure"]
    return prediction_section(found, (f"Equally good: {equal:,}; could not judge, or chose nothing: {unsure:,}.",))
