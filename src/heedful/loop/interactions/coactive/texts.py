"""Explanations and reports of a coactive loop, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heedful.core.formatting import signed
from heedful.loop.interactions.findings import Findings, Verdict, compare_arms
from heedful.loop.interactions.protocol import MUTE
from heedful.loop.interactions.telling import Line, Part, features_table, lessons_table, there
from heedful.results.sentences import sentence

if TYPE_CHECKING:
    from heedful.loop.interactions.card import Card
    from heedful.loop.settings import Settings
    from heedful.results.explanation import Explanation
    from heedful.results.report import Report

PAIRS = (
    "Swapped pairs is the share of neighbours, shown in either order at random, that a learner ranks as people "
    "answered, before it learns from the answer; guessing gives 50 %. That people click more at the top cancels out."
)
NO_PAIRS = "no answer prefers one of two neighbours that were shown in either order at random"
SWAP = (
    "A loop of fair-pairs with exploration above 0 swaps neighbours (heedful init --learner fair-pairs); with any "
    "learner a share of lists can be drawn at random (heedful init --sampled 0.01)."
)
ALONE = (
    "one item is shown, and a click on the only one compares it with nothing, so clicks teach nothing; send thumbs, "
    "up and down, or show two or more; what is better (a correction, a pick of another) is learned, too"
)
UNSWAPPED = {
    "control": "was a control",
    "sampled": "was drawn at random",
    "interleaved": "is of two learners",
    "imitated": "is in your order",
}
"""What the decisions are in which a learner swapped no neighbours, by arm."""


def explanation(told: Explanation) -> list[Part]:
    """Return the explanation `told` of a decision as lines and tables.

    They hold the features that put its first item before the second, and the feedback that moved the lead."""
    other = "an item of average features" if told.second is None else told.second
    return explain_score(told, f"{told.first} before {other}, by {signed(told.margin)}", "it", "tells the two apart")


def explain_score(told: Explanation, head: str, what: str, moved: str) -> list[Part]:
    """Return the explanation `told` of a score as lines and tables: first the line `head`, then the features, then the
    feedback.

    If the list was not made by the model, a line says that the model had no part in `what`, a word such as "that"; if
    the model had another item before the first, a line says why that did not stand first. If there was no feedback, a
    line says that nothing was learned that `moved`, a phrase such as "moved it"."""
    parts: list[Part] = [Line(head)]
    if told.arm != "learned":
        orders = {
            "control": "your order, for comparison",
            "sampled": "an order drawn at random around what was learned",
            "interleaved": "an order that two learners drafted together",
            "imitated": "your order, which the model learns to make",
        }
        why = orders.get(told.arm, "somebody else's order")
        parts.append(Line(f"This decision showed {why}: the model had no part in {what}."))
    elif told.second is not None and told.margin < 0.0:
        parts.append(Line(sentence(told.because)))
    parts += [features_table(told), lessons_table(told)]
    parts += [] if told.lessons else [Line(f"Nothing was learned before it that {moved}.")]
    return there(parts)


def findings(found: Report, card: Card, settings: Settings) -> Findings:
    """Return the report `found` in words and pictures: the reciprocal ranks of what people preferred.

    It compares learned lists with lists in the caller's order. `settings` are those of the loop, `card` describes its
    kind of feedback."""
    notes = (
        "A list counts 1 where what was picked stood first, 1/2 where it stood second, 1/3 where third, and 0 where it "
        "was not in the list or nothing was picked: that is its reciprocal rank. The mean over lists is compared.",
        "Thumbs and edits do not say which item was preferred to which, so they are left out.",
    )
    told = compare_arms(found, card, settings.control, "place", notes)
    if found.difference is None and found.unsaid == MUTE:
        more = "Clicks, picks, ratings and choices do say that: with some of those it could be told."
        told = told._replace(verdict=Verdict("open", "That cannot be told here.", (sentence(found.unsaid), more)))
    if settings.k == 1 and found.feedback.empty:
        told = told._replace(verdict=told.verdict._replace(more=(*told.verdict.more, sentence(ALONE))))
    return told
