"""What a kind of feedback calls things: the texts from which pages, commands and OpenAPI are made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from heedful.loop.settings import Settings

MUTE = "thumbs and edits, which are all that came, do not say which item was preferred to which"
"""Why learned and control lists cannot be compared if all feedback was thumbs and edits, in words."""


BECAUSE = {
    "control": "this was a control: the caller's order was shown, whatever the model says",
    "interleaved": "the loop's ranking and that of a candidate learner drafted this list together, in turn",
    "sampled": "this list was drawn at random around what was learned, so that every list has a known probability",
    "imported": "somebody else made this order; the margin is what the model said of it at that time",
    "ahead": "the model had them in this order",
    "behind": "the model had them the other way round: neighbours were swapped at random, so that clicks can be "
    "compared",
}
"""What put the first item of a list before the second, by the arm of the decision; for lists of the model, by which of
the two it had ahead."""


class NotCompared(NamedTuple):
    """Why learned and control lists of one kind cannot be compared, in words; {} stands for the name of an arm. By
    default the lists are orders, of which people say what they prefer."""

    arms: tuple[str, str] = ("made from what was learned", "left in its own order")
    """what lists of the model, and of the control, are"""
    no_control: str = "no list is left in its own order"
    unshown: str = "no list was {} so far"
    """"" where a list that was not shown has no answer, either"""
    unanswered: str = "no list that was {} has an answer so far that says what was preferred"
    level: str = "in either kind of list what was preferred always stood in the same place: chance cannot be told"
    """all have the same score"""
    few: str = "too few people have answered: of either kind of list it takes the answers of two at least"
    """too few people have answered"""


class Words(NamedTuple):
    """The texts of a kind of feedback. `Interaction.fill` fills their gaps, such as {learner}."""

    loop: str = "this loop"
    """a loop of this kind, as part of a sentence: "a loop of ratings\""""
    takes: str = ""
    """what its learners learn from: "corrections and clicks\""""
    learns: str = "this loop learns from nothing else"
    """why feedback of other forms than the kind takes is refused"""
    instead: Mapping[str, str] = {}  # nobody writes to it
    """what to send instead of such a form, by its name"""
    learner: str = "of this kind of feedback"
    """which learners such a loop takes; it follows "expected one" """
    command: str = "heedful init NAME ITEMS.csv"
    """a command that tries a learner of this kind, without its --learner option"""
    answer: str = "answer"
    """the noun of one answer: "rating\""""
    question: str = "What do you say of these?"
    """what a person is asked about the items that are shown"""
    shown: str = "list"
    """the noun of what one decision shows: "list\""""
    badge: str = ""
    """a short label that marks such a loop in a list; "" for none"""
    prediction: str = ""
    """the noun of what is predicted for each item shown, as the heading of a column: "rating"; "" if nothing is"""
    unordered: str = "the learner also tries what it is unsure of"
    """why the predictions of a list that the model made need not fall from top to bottom"""
    widget: Literal["order", "scale", "pairs", "fields"] = "fields"
    """how a page takes answers to the items shown as cards:

    order   an order of the cards: the best is picked, or all are moved to another order
    scale   a number for each card
    pairs   a choice between two, on a page of its own
    fields  the JSON fields of the first form of feedback, whatever they are
    """
    measure: str = "Mean score"
    """the name of the score that a report compares, as a heading"""
    measure_help: str = "How good what was shown was, by the answers to it, on average."
    """an explanation of that score for people who do not know it"""
    score: str = "how good what was shown was"
    """what the mean score in a report is the mean of"""
    arms: tuple[str, str] = ("learned lists", "control")
    """the names in a report of the two sorts of lists: those by the model, and those of the control (the caller's
    order)"""
    axis: str = ""
    """the scale of a picture of the score: "place" (1 / a position in a list); "" for its range of numbers"""
    incomparable: str = ""
    """why a report never compares these two sorts; "" if it does"""
    not_compared: NotCompared = NotCompared()
    """why they cannot be compared so far"""
    notes: tuple[str, ...] = ()
    """sentences on how they are compared"""
    imported: str = "put in order by the page itself after a lesson, or imported"
    """who made the lists that belong to neither sort; follows the number of such lists"""
    contradiction: str = "has it the other way round"
    """what the model does with feedback that it contradicts by now; follows "by now the model\""""
    because: Mapping[str, str] = BECAUSE
    """what put the first item there, by the arm of the decision, or "ahead" and "behind" for lists of the model"""
    introduction: str = ""
    """what a new loop learns, for the user who has created it: a line for each sentence"""
    context_alone: str = "a context alone adds the same to every item, which never changes an order"
    """the effect of features of a request (the context) that are not multiplied with features of items"""
    no_control: str = "all is shown by what was learned, so that it got better cannot be shown"
    """what cannot be measured without a control"""
    single: str = ""
    """what cannot be learned where every list shows a single item (setting k); "" if nothing is lost by that"""
    no_swaps: str = ""
    """what cannot be told where a learner swaps no neighbours; "" if nothing is lost by that"""
    all_single: str = ""
    """why feedback changed no prediction if every list showed a single item; "" if that is no reason"""
    nothing_said: str = "nothing in it was preferred to anything"
    """why nothing was learned from an answer that names no item"""
    nothing_new: str = "it says nothing, or what was shown already"
    """why nothing was learned from another answer"""

    def caveats(self, settings: Settings, learner: Any) -> list[str]:
        """Return a sentence for everything that a loop with these `settings` and this `learner` cannot measure or
        learn; [] if there is none."""
        told = []
        if settings.k == 1 and self.single and not hasattr(learner, "judge"):
            told.append(f"k 1: {self.single}")
        if settings.control == 0.0:
            told.append(f"control 0: {self.no_control}")
        if getattr(learner, "swap", 0.0) == 0.0 and self.no_swaps:
            told.append(f"exploration 0: {self.no_swaps}")
        return told
