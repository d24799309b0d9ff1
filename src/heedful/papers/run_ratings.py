"""Run the figures of [A18]: rating learners without prior data, in synthetic environments and on those made from a file
of ratings.

Run s of each curve of a plot has the seed s: the same sequence of users, and the same synthetic ratings.

[A18]: Dadkhahi & Negahban, *Alternating Linear Bandits for Online Matrix-Factorization Recommendation*, 2018.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.experiments.ratings import RATING
from heedful.experiments.setting import Scene, Setting
from heedful.learners.registry import learner_class
from heedful.papers.figure import LineResult, Option, Panel, Size
from heedful.papers.ndcg_world import DEPTH, NdcgWorld, RankByPrediction
from heedful.papers.panels import BERNOULLI, BOOKS, GAUSSIAN, JESTER, MOVIES_100K, UNIFORM
from heedful.papers.runner import HERE, Group, LearnerRuns, Tell, Workers, best_of, part_of, run_group
from heedful.spaces.slate import Slate
from heedful.worlds.ratings import bernoulli_ratings, gaussian_ratings, replay_ratings, uniform_ratings

if TYPE_CHECKING:
    from heedful.data.ratings import RatingTable

Tables = Callable[[str], "RatingTable"]

SYNTHETIC: dict[str, Callable[..., Any]] = {
    GAUSSIAN: gaussian_ratings,
    UNIFORM: uniform_ratings,
    BERNOULLI: bernoulli_ratings,
}
RANGES = {
    UNIFORM: (-0.25, 1.25),
    BERNOULLI: (0.0, 1.0),
    BOOKS: (1.0, 10.0),
    MOVIES_100K: (1.0, 5.0),
    JESTER: (-10.0, 10.0),
}
"""the lowest and the highest rating, by data set; Gaussian ratings have no limits"""
LOW = {BOOKS: 0.0, MOVIES_100K: 0.0, JESTER: -10.0}
"""the rating whose gain in NDCG is 0, by data set: only Jester's ratings are shifted"""
TUNING = 1000
"""the seed of the first run of a grid, so that nothing is tuned on the runs that are drawn"""


def run_ratings(
    panel: Panel, size: Size, tables: Tables, cache: dict[Any, Any], workers: Workers, tell: Tell
) -> dict[str, LineResult]:
    """Run a plot of [A18], and return the results of its curves by label.

    `tables` is a function that loads the ratings of the data set of a key; `cache` is a cache of runs, which is read
    and added to; `workers` run them, one at a time here if processor time is measured; `tell` is called to report
    progress.
    """
    timed = "seconds" in panel.options
    runs: dict[str, LearnerRuns] = {}
    by_options: dict[tuple[Option, ...], list[str]] = {}
    for spec in (spec for line in panel.lines for spec in line.learners):
        by_options.setdefault(_options(spec, panel), []).append(spec)
    for i, (options, group) in enumerate(by_options.items()):
        job = _group(panel._replace(options=options), size, group, tables)
        runs |= run_group(job, size.rounds, cache, HERE if timed else workers, part_of(tell, i, len(by_options)))
    results = {}
    for line in panel.lines:
        best = best_of(line, runs)
        regrets, seconds = runs[best]
        values = regrets.sum(axis=1, keepdims=True) if panel.kind == "bars" else regrets
        points = seconds[:, None] if timed else values
        results[line.label] = LineResult(line, best, points, np.ones(len(points)), seconds)
    return results


def scenes(panel: Panel, size: Size, tables: Tables) -> tuple[Scene, ...]:
    """Return the simulated environments of a plot with their seeds, one for each run.

    Those of a grid search have other seeds, from 1000 on, so that nothing is tuned on the runs that are drawn. `tables`
    is a function from the key of a data set to its ratings."""
    first = TUNING if panel.kind == "cells" else 0
    seeds = range(first, first + size.runs)
    if panel.world in SYNTHETIC:
        worlds = [SYNTHETIC[panel.world](seed=seed) for seed in seeds]
    else:
        users, items, values = tables(panel.world)[:3]
        world: Any = replay_ratings(users, items, values, repeats="once" not in panel.options)
        if "scores" in panel.options:
            world = NdcgWorld(world, LOW[panel.world], 0)
        elif "factors" in panel.options:
            world = NdcgWorld(world, LOW[panel.world], 1)
        worlds = [world] * size.runs
    return tuple(Scene(seed, 0, seed, world, np.empty(0)) for seed, world in zip(seeds, worlds))


def learner(spec: str, panel: Panel) -> Any:
    """Return the learner that the text `spec` (NAME:FIELD=VALUE,...) describes, for the ratings of the plot's data set:
    one that shows one item or, for NDCG, a ranking of five items.
    """
    low, high = RANGES.get(panel.world, (-1e50, 1e50))
    single, ranking = (
        Setting(0, Slate(n, low, high), math.nan, math.nan, math.nan, 0, (), RATING).learner(spec) for n in (1, DEPTH)
    )
    if "factors" in panel.options:
        return RankByPrediction(single)
    return ranking if "scores" in panel.options else single


def _options(spec: str, panel: Panel) -> tuple[Option, ...]:
    """Return the options of the plot `panel` for the learner `spec`: with "scores" in place of "factors" if the learner
    predicts no ratings besides its scores.
    """
    if "factors" in panel.options and not hasattr(learner_class(spec), "ratings"):
        return tuple("scores" if option == "factors" else option for option in panel.options)
    return panel.options


def _group(panel: Panel, size: Size, specs: Sequence[str], tables: Tables) -> Group:
    """Return the learners `specs` (texts NAME:FIELD=VALUE,...) as a group that plays the same simulated environments;
    of a grid search only the sum of the regrets of each run is kept.
    """

    def settings() -> Iterator[Setting]:
        nan = math.nan
        yield Setting(0, Slate(), nan, nan, nan, size.rounds, scenes(panel, size, tables), RATING, "regret")

    grid = panel.kind == "cells"
    key = panel.world, panel.options, size, grid
    interpreted = False if "seconds" in panel.options else None
    return Group(
        key, specs, settings(), lambda spec, _: learner(spec, panel), size.runs, "ratings", interpreted, sums=grid
    )
