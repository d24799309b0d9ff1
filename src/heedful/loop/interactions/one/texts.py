"""Reports of a loop that shows one item, in words."""

from __future__ import annotations

from heedful.loop.interactions.coactive import texts as coactive
from heedful.loop.interactions.words import NotCompared
from heedful.results.evaluation import Measure

WORDS = coactive.WORDS._replace(
    loop="a loop that shows one item",
    takes="clicks, thumbs, rewards and corrections",
    learns="this loop learns how good what it shows is",
    question="Was this a good choice?",
    shown="item",
    badge="one of a few",
    prediction="reward",
    score="what the item shown was worth: a click or a thumb up is the highest reward, none or a thumb down the lowest",
    measure="Mean reward",
    measure_help="What the item that was shown was worth: a click or a thumb up is the highest reward, none or a thumb "
    "down the lowest.",
    axis="",
    arms=("learned items", "your first item (control)"),
    not_compared=NotCompared(
        ("what was learned", "your own order"),
        "no request goes to your own order",
        "",
        "no item chosen by {} was judged so far",
        "of either kind all were judged alike: chance cannot be told",
        "too few people have answered: of either kind it takes the answers of two at least",
    ),
    notes=(
        "A click or a thumb up is the highest reward, none or a thumb down the lowest, an action as much as its "
        "weight. Edits, and what would have been better, teach and are not counted.",
    ),
    introduction="Each decision shows one item, by {learner}; a click, a thumb or a reward says how good it was, and "
    "what may be better is tried.",
    no_control="no request goes to your own order, so that it got better cannot be shown",
    single="one item is shown, and a click on the only one compares it with nothing, so clicks teach this learner "
    "nothing; posterior, the default learner, learns from them",
    no_swaps="what seems best is always shown, so what seems worse is never tried, and a log says nothing of it",
)

SQUARED_ERROR = Measure(
    "squared error",
    "Squared error is that of the predicted reward, as a share of the highest, or of the probability that the better "
    "of two is better and 1; each before it was learned from.",
    "nothing was judged",
    "More answers.",
    more_is_better=False,
    decisive=False,
)
REWARD = Measure(
    "reward",
    "Reward is the mean reward of the items that a learner would have shown: those that were shown, each weighted by "
    "the probability with which the learner would have shown it over that with which it was shown.",
    "no item with a known probability was judged",
    "More answers, or more exploration (heedful init --exploration 0.5), with which others are tried more.",
    counts="answer",
)
