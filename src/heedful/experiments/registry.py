"""The experiments of `heedful simulate`, by name, without importing them.

A new experiment is a class in `definitions` and an entry here. The entry has the line that the list of commands shows,
so the experiment's module is imported only when it is run.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from heedful.experiments.definitions.base import Experiment


class Entry(NamedTuple):
    """An experiment in the list of commands.

    - `where`: its class, as MODULE:CLASS in `experiments.definitions`.
    - `help`: the first line of its help.
    - `example`: a command line that runs it.
    """

    where: str
    help: str
    example: str


EXPERIMENTS = {
    "letor": Entry(
        "letor:Letor",
        "Rank the documents of queries for somebody whose corrections follow from the labels.",
        "heedful simulate letor S1.txt.gz S2.txt.gz --user strict:alpha=0.5 "
        "--learner perceptron --learner second-order --seeds 5",
    ),
    "catalogue": Entry(
        "catalogue:Items",
        "Propose items to people with hidden tastes, who answer each with one they like better.",
        "heedful simulate catalogue items.csv --user better --learner perceptron --rounds 300 --people 100",
    ),
    "movielens": Entry(
        "movielens:MovieLens",
        "Recommend movies to people who rated some of them, one movie after the other.",
        "heedful simulate movielens ml-1m --user better --learner perceptron --rounds 1500 --people 100",
    ),
    "ordinal": Entry(
        "ordinal:Ordinal",
        "Predict the grade of one row after the other; after each prediction the true grade is told.",
        "heedful simulate ordinal wine.csv --target quality --learner prank --seeds 5",
    ),
    "ratings": Entry(
        "ratings:Ratings",
        "Recommend items to users of whom nothing is known; what is shown is rated, and so it learns.",
        "heedful simulate ratings ml-100k --learner alb --learner bmf",
    ),
}

TRIALS = {"coactive": "coactive", "ordinal": "ordinal", "rating": "ratings", "pairwise": "comparisons"}
"""By interaction (kind of feedback), the module here whose `make_trial` makes a learner and a small world for it."""


@cache
def make_experiment(name: str) -> Experiment:
    """Return the experiment of this name. Raise KeyError if there is none."""
    module, _, cls = EXPERIMENTS[name].where.partition(":")
    made: Experiment = getattr(import_module(f"heedful.experiments.definitions.{module}"), cls)()
    return made
