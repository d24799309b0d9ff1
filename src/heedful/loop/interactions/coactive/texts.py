"""Texts of a coactive loop."""

from __future__ import annotations

from heedful.loop.interactions.words import Words

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
