"""Texts of a loop of routes."""

from __future__ import annotations

from heedful.loop.interactions.coactive import texts as coactive
from heedful.loop.interactions.one import texts as one
from heedful.loop.interactions.words import NotCompared, Words
from heedful.results.evaluation import Measure

WORDS = Words(
    loop="a loop of routes",
    takes="thumbs, rewards, edits and choices",
    learns="this loop learns which answers are good",
    learner="that learns from thumbs, such as posterior",
    answer="thumb",
    question="Was the answer of this model good?",
    shown="route",
    badge="routes",
    prediction="thumb",
    score="thumbs up, less cost weight times cost",
    measure="Mean thumb less cost",
    measure_help="A thumb up counts 1, one down 0, an edit the share that it left; less the cost of the model times "
    "the cost weight, at most 1.",
    arms=("learned routes", "your first model (control)"),
    not_compared=NotCompared(
        ("what was learned", "your first model"),
        "no prompt goes to your first model",
        "",
        "no answer by {} has a thumb or an edit so far",
        "of either kind all answers are judged alike: chance cannot be told",
        "too few people have answered: of either kind it takes the answers of two at least",
    ),
    notes=(
        "A thumb up counts 1, a thumb down 0, an edit the share of the answer that it left; less the cost of the model "
        "times the cost weight of the request. Choices between two answers teach, and are not counted.",
        "The control is {first}, the first of your table (of the candidates, where a request names them), which need "
        "not be the best: heedful evaluate says what each model alone would be worth.",
    ),
    introduction="For each prompt it chooses one of {n_models:,} models by {columns}: the one whose thumb up is most "
    "probable, less {cost_weight:g} for each unit of cost. A request may say another cost weight: "
    'context={{"cost_weight": ...}}.\nModels that seem a little worse are tried now and then, the less the more was '
    "learned; {control} of prompts go to the first of your table, for comparison.",
    no_control="no prompt goes to your first model, so that it got better cannot be shown",
    no_swaps=one.WORDS.no_swaps,
    all_single=coactive.WORDS.all_single,
)

COST = Measure(
    "cost",
    "Cost is the mean cost of the models that would have been chosen, over the prompts that were answered.",
    "no answer of a single model was judged",
    "More thumbs.",
    high=0.0,
    more_is_better=False,
    decisive=False,
)
_ANSWERS = "no answer of a single model with a known probability was judged by a thumb or an edit"
_MORE = "More answers, or more exploration (heedful init --route --exploration 0.5), with which others are tried more."
_WEIGHTED = (
    "of the answers that a policy would have shown: those that were shown, each weighted by the probability with which "
    "the policy would have chosen its model over that with which it was chosen."
)
VALUE = Measure(
    "value",
    f"Value is the mean thumb less cost weight times cost {_WEIGHTED}",
    _ANSWERS,
    _MORE,
    -1.0,
    counts="answer",
)
THUMBS = Measure(
    "thumbs", f"Thumbs is the share of thumbs up {_WEIGHTED}", _ANSWERS, _MORE, decisive=False, counts="answer"
)
