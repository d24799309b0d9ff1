"""Run the figures of [H12]: answers of people are split, and models that are trained on one part predict the other.

Run s of each curve of a plot has the seed s: the same random people, and the same split of each person's pairs.

[H12]: Houlsby, Huszár, Ghahramani & Hernández-Lobato, *Collaborative Gaussian Processes for Preference Learning*, NIPS
2012.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.data.pairwise_dataset import PairwiseDataset
from heedful.inference.collaborative.model_selection import FittedModel
from heedful.inference.gp.acquisition import bald, mes
from heedful.inference.pairwise import PairRows, pair_rows
from heedful.jit.kernel import Ints
from heedful.papers.choice_models import Fit, Problem, model, tune_on_others
from heedful.papers.figure import NOTHING, Line, LineResult, Panel, Size
from heedful.papers.figure1_toy import on_a_line
from heedful.papers.panels import ELECTION, JURA, MOVIE_CHOICES, SUSHI, SYNTHETIC_CHOICES, TOY
from heedful.papers.runner import HERE, LearnerRuns, Tell, Trial, Trials, Workers, part_of, run_trials

Array = npt.NDArray[np.float64]
Sets = Callable[[str, str], PairwiseDataset]
"""A function that loads the comparisons of a data set, from its key, such as "choices-sushi", and which labels to use,
"right" or "published" (some of the published ones are inverted)."""

TRAINING = {SYNTHETIC_CHOICES: 30, SUSHI: 20, MOVIE_CHOICES: 20, ELECTION: 20, JURA: 15}
"""the number of training pairs of each person, by data set; all other pairs are for testing ([H12] section 6.1)"""
QUESTION_PAIRS = {
    SYNTHETIC_CHOICES: (5, 35, 5),
    SUSHI: (5, 35, 5),
    MOVIE_CHOICES: (5, 35, 5),
    ELECTION: (3, 22, 3),
    JURA: (3, 15, 3),
}
"""The numbers of pairs of each person to train on at first, to ask about, and to test on, by data set ([H12] section
6.2)."""
FEW_SPLITS = 5
"""With at most this many runs, each a random split of people's answers, models are also tuned with less effort."""
QUERIES = 10
"""the number of questions that each person is asked"""
OTHERS = 100
"""the number of people who are set apart for tuning where tables compare models on 100 people"""
SCALES = tuple(float(2.0**half) for half in np.arange(-4, 5) / 2.0)
"""length-scales at which the evidence is drawn, in units of the length-scale of the tables"""
EVIDENCE, LIKELIHOOD, ERROR = ASPECTS = ("evidence", "log-likelihood of test answers", "error")


class Split(NamedTuple):
    """The answers of U people to P pairs of items, divided at random for each person into three parts."""

    problem: Problem
    """what is known of people and items besides the answers"""
    pairs: Ints  # P x 2
    """(P x 2) the item indices of each pair"""
    first: npt.NDArray[np.bool_]  # U x P
    """(U x P) whether a person prefers the first item of a pair"""
    train: Ints
    """(U x n) the indices of the pairs of each person to train on"""
    pool: Ints
    """(U x m) the indices of the pairs of each person to ask about"""
    test: Ints
    """(U x t) the indices of the pairs of each person to test on"""

    def rows(self, chosen: Ints) -> PairRows:
        """Return the answers to n pairs of each of the U people, whose indices are `chosen` (U x n), as a table of
        comparisons: the first pair of each person, then the second, ...
        """
        users = np.arange(len(chosen))
        pairs = self.pairs[chosen.T]  # n x U x 2
        won = self.first[users, chosen.T]
        ordered = np.where(won[:, :, None], pairs, pairs[:, :, ::-1])
        return pair_rows(ordered.reshape(-1, 2), user=np.tile(users, chosen.shape[1]))

    def gap(self, fit: FittedModel, chosen: Ints) -> tuple[Array, Array]:
        """Return (mean, variance) of the utility of the first item less that of the second, as the model `fit`
        predicts it.

        `chosen` (U x n) are the indices of n pairs for each of the U people; both results have this shape.
        """
        users = np.broadcast_to(np.arange(len(chosen))[:, None], chosen.shape)
        a, b = self.pairs[chosen, 0], self.pairs[chosen, 1]
        mean, var = fit.gap(users.ravel(), a.ravel(), b.ravel())
        return mean.reshape(chosen.shape), var.reshape(chosen.shape)

    def error(self, fit: FittedModel) -> float:
        """Return the share of the test answers that the model `fit` predicts wrong."""
        mean, _ = self.gap(fit, self.test)
        return float(np.mean((mean > 0.0) != np.take_along_axis(self.first, self.test, axis=1)))

    def log_likelihood(self, fit: FittedModel) -> float:
        """Return the mean log probability that the model `fit` gives the test answers, in nats."""
        from scipy.special import log_ndtr

        mean, var = self.gap(fit, self.test)
        sign = np.where(np.take_along_axis(self.first, self.test, axis=1), 1.0, -1.0)
        return float(log_ndtr(sign * mean / np.sqrt(1.0 + var)).mean())


def split(
    data: PairwiseDataset,
    people: int,
    seed: int,
    train: int,
    pool: int = 0,
    test: int = 0,
    tuned: Mapping[str, object] = {},
) -> Split:
    """Split the answers of `people` random people of `data` (of all, if there are fewer), drawn from `seed`: the pairs
    of each person are divided at random, independently of other people's.

    `train`, `pool` and `test` are the numbers of pairs of a person to train on, to ask about, and to test on (0: all
    that are left). `tuned` has, by name of a model, the hyperparameters that were tuned on other people.
    """
    rng = np.random.default_rng([seed, 12])
    sample = rng.permutation(len(data.first))[:people]
    order = rng.random((sample.size, len(data.pairs))).argsort(axis=1)
    last = train + pool + test if test else order.shape[1]
    problem = Problem(data.features, data.people[sample], seed, tuned, {})
    parts = np.split(order[:, :last], [train, train + pool], axis=1)
    return Split(problem, data.pairs, data.first[sample], *parts)


# ---------------------------------------------------------------------------- panels


def run_panel(
    panel: Panel, size: Size, sets: Sets, cache: dict[Any, Any], workers: Workers, tell: Tell
) -> dict[str, LineResult]:
    """Run a plot of [H12], and return the results of its curves by label.

    `size` has the greatest number of people and the number of splits; `sets` is a function that loads the data set of a
    key; `cache` is a cache of runs, which is read and added to; `workers` run them, one at a time here if processor
    time is measured; `tell` is called to report progress.
    """
    if panel.world == TOY:
        return on_a_line(panel)
    data = sets(panel.world, _labels(panel))
    if panel.kind == "bars":
        data, others = hold_out_people(data)
    together: dict[str, list[Line]] = {}  # acquisition rules of one model share their first fit
    for line in panel.lines:
        together.setdefault(line.learners[0].partition(" by ")[0], []).append(line)
    runs: dict[str, LearnerRuns] = {}
    for i, (name, lines) in enumerate(together.items()):
        part = part_of(tell, i, len(together))
        part(lines[0].label, 0.0)
        tuned = {name: _tune(name, others, panel, size.runs <= FEW_SPLITS, cache)} if panel.kind == "bars" else {}
        run = partial(_run, data, panel.kind, panel.world, size.rounds, tuned)
        names = list(dict.fromkeys(line.learners[0] for line in lines))
        trials = Trials((panel.world, panel.options, panel.kind, size), names, run, size.runs, lines[0].label)
        runs |= run_trials(trials, cache, HERE if "seconds" in panel.options else workers, part)
    return {line.label: _line_result(panel, line, runs[line.learners[0]]) for line in panel.lines}


def _run(
    data: PairwiseDataset,
    kind: str,
    world: str,
    people: int,
    tuned: Mapping[str, object],
    seed: int,
    names: Sequence[str],
) -> dict[str, Trial]:
    """Return the trials of the models `names` in one split of `data`, that of `seed`, for a plot of a `kind`."""
    if kind == "questions":
        return _ask_by_rules(data, world, people, seed, names)
    test = _test_scales if kind == "scales" else _test
    return {name: test(data, world, people, seed, name, tuned) for name in names}


def _labels(panel: Panel) -> str:
    return "published" if "published" in panel.options else "right"


def hold_out_people(data: PairwiseDataset) -> tuple[PairwiseDataset, PairwiseDataset]:
    """Return (`data` without 100 random people, the data of these people, for tuning); features of people are
    standardised over all of them."""
    spread = data.people.std(axis=0)
    data = data._replace(people=(data.people - data.people.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0))
    order = np.random.default_rng([0, 14]).permutation(len(data.first))
    chosen, rest = order[:OTHERS], np.sort(order[OTHERS:])
    return tuple(data._replace(people=data.people[people], first=data.first[people]) for people in (rest, chosen))  # type: ignore[return-value]


def _tune(name: str, others: PairwiseDataset, panel: Panel, few: bool, cache: dict[Any, Any]) -> Any:
    """Return what the model `name` tunes on the people `others`, once for each data set, cached in `cache`; `few`: with
    less effort."""
    key = (panel.world, _labels(panel), "apart", few, name)
    if key not in cache:
        parts = split(others, OTHERS, 0, TRAINING[panel.world])
        cache[key] = tune_on_others(name, others.features, parts.problem.people, parts.rows(parts.train), few)
    return cache[key]


def _line_result(panel: Panel, line: Line, runs: LearnerRuns) -> LineResult:
    values, marks = runs.regrets, NOTHING
    if panel.kind == "scales":
        values, marks = values[:, :, ASPECTS.index(line.user)], np.array(SCALES)
    elif "seconds" in panel.options:
        values = runs.seconds[:, None]
    return LineResult(line, line.learners[0], values, np.ones(len(values)), runs.seconds, marks)


# ---------------------------------------------------------------------------- runs


def _test(data: PairwiseDataset, world: str, people: int, seed: int, name: str, tuned: Mapping[str, object]) -> Trial:
    """Return the test error (1,) of the model `name` in the split of `seed`, and the time of its fit."""
    parts = split(data, people, seed, TRAINING[world], tuned=tuned)
    fit, seconds = _fit(model(name), parts, parts.train, None)
    return Trial(np.array([parts.error(fit)]), seconds)


def _ask(
    data: PairwiseDataset,
    world: str,
    people: int,
    seed: int,
    name: str,
    first: tuple[FittedModel, float] | None = None,
) -> Trial:
    """Return the test error after the first fit and after each of ten questions (11,), and the time of all fits, of
    `MODEL by RULE`, the `name`."""
    fit, rule = model(name.partition(" by ")[0]), name.partition(" by ")[2]
    parts = split(data, people, seed, *QUESTION_PAIRS[world])
    rng = np.random.default_rng([seed, 13])
    users = np.arange(len(parts.first))
    answered, pool = parts.train, parts.pool
    latest, errors, total = None, [], 0.0
    for query in range(QUERIES + 1):
        latest, seconds = _fit(fit, parts, answered, latest) if first is None or query else first
        total += seconds
        errors.append(parts.error(latest))
        if query == QUERIES:
            break
        if rule == "random":
            scores = rng.random(pool.shape)
        else:
            scores = (bald if rule == "bald" else mes)(*parts.gap(latest, pool))
        asked = scores.argmax(axis=1)
        answered = np.column_stack([answered, pool[users, asked]])
        rest = np.ones(pool.shape, bool)
        rest[users, asked] = False
        pool = pool[rest].reshape(len(pool), -1)
    return Trial(np.array(errors), total)


def _ask_by_rules(data: PairwiseDataset, world: str, people: int, seed: int, names: Sequence[str]) -> dict[str, Trial]:
    """Return the trials of `_ask` (same arguments) for one model and several acquisition functions, the `names`, which
    share the first fit."""
    parts = split(data, people, seed, *QUESTION_PAIRS[world])
    first = _fit(model(names[0].partition(" by ")[0]), parts, parts.train, None)
    return {name: _ask(data, world, people, seed, name, first) for name in names}


def _fit(fit: Fit, parts: Split, answered: Ints, earlier: FittedModel | None) -> tuple[FittedModel, float]:
    """Fit a model with the function `fit` to the answers to n pairs of each of U people, `answered` (U x n indices),
    given its `earlier` fit; return the fit and its processor time in seconds."""
    rows = parts.rows(answered)
    began = time.thread_time()
    result = fit(parts.problem, rows, earlier)
    return result, time.thread_time() - began


def _test_scales(
    data: PairwiseDataset, world: str, people: int, seed: int, name: str, tuned: Mapping[str, object]
) -> Trial:
    """Return for each of the s length-scales SCALES (s x 3) the log evidence and the test log-likelihood per answer, in
    nats, and the test error of the model `name`; and the time. The other arguments are those of `_test`."""
    parts = split(data, people, seed, TRAINING[world])
    rows = parts.rows(parts.train)
    values, began = [], time.thread_time()
    for times in SCALES:
        fit = model(f"{name}:times={times!r}")(parts.problem, rows, None)
        values.append((fit.log_evidence / rows.size, parts.log_likelihood(fit), parts.error(fit)))
    return Trial(np.array(values), time.thread_time() - began)
