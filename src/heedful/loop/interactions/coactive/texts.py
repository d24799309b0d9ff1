"""Explanations and reports of a coactive loop, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heedful.core.formatting import signed
from heedful.loop.interactions.telling import Line, Part, features_table, lessons_table, there
from heedful.loop.interactions.words import Words
from heedful.results.sentences import sentence

if TYPE_CHECKING:
    from heedful.results.explanation import Explanation

WORDS = Words(
    loop="a loop of rankings",
    takes="corrections and clicks",
    learns="this loop learns what is better",
    instead={"actions": "send action and item"},
    learner="that is taught what is better, such as posterior",
    command="heedful simulate catalogue items.csv --user better",
    answer="correction",
    question="Which of these is better than what stands first?",
    widget="order",
    score="how high what was preferred stood (1: first, 0.5: second)",
    measure="Mean reciprocal rank",
    measure_help="1 where what was picked stood first, 1/2 where it stood second, 1/3 where third, and so on; the mean "
    "over lists.",
    axis="place",
    arms=("learned order", "your order (control)"),
    notes=(
        "A list counts 1 where what was picked stood first, 1/2 where it stood second, 1/3 where third, and 0 where it "
        "was not in the list or nothing was picked: that is its reciprocal rank. The mean over lists is compared.",
        "Thumbs and edits do not say which item was preferred to which, so they are left out.",
    ),
    no_control="nothing keeps the caller's order, so that it got better cannot be shown",
    no_swaps="neighbours are never swapped, so clicks cannot tell which of two learners ranks better",
    all_single="each list showed a single item, and a click or an action on the only one compares it with nothing",
)

PAIRS = (
    "Swapped pairs is the share of neighbours, shown in either order at random, that a learner ranks as people "
    "answered, before it learns from the answer; guessing gives 50 %. That people click more at the top cancels out."
)
NO_PAIRS = "no answer prefers one of two neighbours that were shown in either order at random"
SWAP = (
    "The learner posterior swaps neighbours at random (heedful init --learner posterior:swap=0.25); with any "
    "learner a share of lists can be drawn at random (heedful init --sampled 0.01)."
)


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
    if told.sure is not None:
        parts.append(Line(f"{told.first} is better than {told.second} with probability {told.sure:.2f}."))
    if told.arm != "learned":
        orders = {
            "control": "your order, for comparison",
            "sampled": "an order drawn at random around what was learned",
            "interleaved": "an order that two learners drafted together",
        }
        why = orders.get(told.arm, "somebody else's order")
        parts.append(Line(f"This decision showed {why}: the model had no part in {what}."))
    elif told.second is not None and told.margin < 0.0:
        parts.append(Line(sentence(told.because)))
    parts += [features_table(told), lessons_table(told)]
    parts += [] if told.lessons else [Line(f"Nothing was learned before it that {moved}.")]
    return there(parts)
