"""The experiments that `heedful simulate` and `heedful sweep` run, by name. Another one is a class in `definitions` and
a line here."""

from __future__ import annotations

from heedful.experiments.definitions.base import Experiment, GridExperiment
from heedful.experiments.definitions.catalogue import Items
from heedful.experiments.definitions.letor import Letor
from heedful.experiments.definitions.movielens import MovieLens
from heedful.experiments.definitions.ordinal import Ordinal
from heedful.experiments.definitions.ratings import Ratings

EXPERIMENTS: dict[str, Experiment] = {each.name: each for each in (Letor(), Items(), MovieLens(), Ordinal(), Ratings())}
GRIDS: dict[str, GridExperiment] = {
    name: each for name, each in EXPERIMENTS.items() if isinstance(each, GridExperiment)
}
"""Those that a grid may name."""
