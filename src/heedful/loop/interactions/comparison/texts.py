"""Texts of a loop of choices."""

from __future__ import annotations

from heedful.loop.interactions.words import Words

WORDS = Words(
    loop="a loop of choices",
    takes="choices",
    learns="this loop learns choices",
    instead={
        **dict.fromkeys(("rating", "grade"), "send the order as better"),
        **dict.fromkeys(("action", "actions"), "send what was chosen as better"),
        "edit": "send the order as a list",
        "thumb": "send choice",
        "reward": "send choice",
    },
    command="heedful init study items.csv --choices",
    answer="choice",
    question="Which of these is better?",
    shown="question",
    badge="choices: {choices}",
    prediction="chance",
    unordered="which item stands where is drawn at random",
    widget="pairs",
    score="how often what was likeliest was chosen",
    measure="Share of answers that were predicted",
    measure_help="How often the item that was likeliest to be chosen was chosen.",
    arms=("of the rule, the least certain", "of chance"),
    incomparable="the rule asks what is least certain, so that fewer of its questions are predicted says nothing",
    introduction="It asks which of two is better, by {learner}{rule}, to find {aim}. {items}.",
    no_control="only what it is least sure of is asked, so how well it predicts choices between any two cannot be said",
    nothing_said="it is only noted that this was asked",
    nothing_new="it is only noted that this was asked",
)

EXPECTED = (
    "Expected is the share of the items that were not chosen which were expected to lose against the one that was, "
    "each before the answer was learned from; a guess has 50 %."
)
