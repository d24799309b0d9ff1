"""What a loop of choices says of an explanation and a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heedful.core.formatting import signed
from heedful.loop.interactions.telling import (
    Line,
    Part,
    arms_table,
    counted,
    lessons_table,
    sentence,
    there,
    verdict,
)

if TYPE_CHECKING:
    from heedful.loop.explain import Explanation, Weighed
    from heedful.loop.interactions.card import Card
    from heedful.loop.interactions.comparison.prediction_report import Guessing
    from heedful.loop.report import Report


def explanation(told: Explanation, choice: Weighed) -> list[Part]:
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


def report(found: Report, measured: Guessing, card: Card) -> list[Part]:
    """How often what was likeliest was chosen, against guessing."""
    columns = ("questions", "asked", "answered", "foretold")
    answers = f"Equally good: {measured.equal:,}; could not judge, or chose nothing: {measured.unsure:,}."
    return [arms_table(found, card, columns, form=".1%"), Line(_right(measured)), Line(answers)]


def _right(found: Guessing) -> str:
    if found.right is None or found.guess is None:
        return f"How well choices are foretold cannot be said: {found.unsaid}."
    told = f"Foretold in {found.right:.1%} of {found.answers:,} answers; a guess is right in {found.guess:.1%}"
    apart = found.difference
    if apart is None:
        return f"{told}. Whether that is more than chance cannot be said: {found.unsaid}."
    better = verdict(apart, "better than a guess", "worse")
    return f"{told}: {counted(apart)} ({apart.people:,} people): {better}."
