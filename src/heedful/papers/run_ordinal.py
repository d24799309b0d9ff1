"""Run the figures of [P01]: synthetic grades, people who rated movies, batch learners, the lemma and the theorem.

MovieLens 1M replaces EachMovie, which was withdrawn. An instance is a movie that a person rated: its features are the
ratings of all other people in the experiment, (rating - 3) / 4, so from -1/2 to 1/2, and 0 where missing; its rank is
the person's own rating. A run is a person, with as many of their movies as there are rounds, in random order.

[P01]: Crammer & Singer, *Pranking with Ranking*, NIPS 2001.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.fold import play
from heedful.experiments.ordinal import ORDINAL
from heedful.experiments.setting import Scene, Setting
from heedful.learners.registry import make_learner
from heedful.papers.figure import NOTHING, Line, LineResult, Option, Panel, Size
from heedful.papers.panels import RATERS, SEPARABLE, STREAMS, SYNTHETIC
from heedful.papers.runner import Group, Tell, Trial, Trials, Workers, best_of, part_of, run_group, run_trials
from heedful.papers.statistics import log_spaced
from heedful.spaces.ordinal import Ranks
from heedful.worlds.instances import InstanceStream, instance_stream, synthetic_instances

if TYPE_CHECKING:
    from heedful.data.movielens import Ratings

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

RANKS = 5
STEPS = (0.001, 0.01, 0.1, 1.0, 1.9)
"""Widrow-Hoff's step sizes eta in units of 1 / R^2, of which the best in hindsight is drawn: it is stable below 2. R is
the length of the longest instance."""
IN_MEMORY = 50
"""the number of people whose instances are in memory at a time"""
DIMENSIONS = 10
"""the number of features of the instances that `separable` makes, which a rule ranks correctly by a margin"""
TRAINING = 0.8
"""the share of a person's movies to train on in the batch comparison; the others are for testing"""
MACHINES = ("svm", "svr")
COSTS = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
"""values of C of the support vector machines, of which three-fold cross-validation on the training part chooses one"""
NOISE = "no rule ranks every instance of a noisy stream right"


class People(NamedTuple):
    """The ratings of M movies by the n people with enough ratings."""

    centred: npt.NDArray[np.float32]  # M x n; (rating - 3) / 4, 0 where there is none
    """(M x n) ratings as features, (rating - 3) / 4; 0 where there is no rating"""
    ranks: npt.NDArray[np.int8]  # M x n; 0 where there is none
    """(M x n) ratings as ranks, 1 to 5; 0 where there is no rating"""


class Batch(NamedTuple):
    """The runs of a plot, with few in memory at a time."""

    parts: Iterator[Setting]
    """iterates over settings (simulated environments to run learners in) with a few runs each"""
    R: float  # the length of the longest instance
    """the length of the longest instance, over all runs"""


def people_who_rated(ratings: Ratings, least: int) -> People:
    """Return the people who gave at least `least` of the `ratings`, with their ratings as features and ranks."""
    counts = np.bincount(ratings.users, minlength=ratings.user_ids.size)
    column = np.full(counts.size, -1)
    active = np.flatnonzero(counts >= least)
    column[active] = np.arange(active.size)
    selected = column[ratings.users] >= 0
    ranks = np.zeros((ratings.movie_ids.size, active.size), np.int8)
    ranks[ratings.movies[selected], column[ratings.users[selected]]] = ratings.values[selected].astype(np.int8)
    return People(np.where(ranks > 0, (ranks.astype(np.float32) - 3.0) / 4.0, 0.0).astype(np.float32), ranks)


def instances_of(
    people: People, person: int, rounds: int, options: Sequence[Option] = ()
) -> tuple[npt.NDArray[np.floating], Ints]:
    """Return `rounds` random movies of a person, in random order: (features (rounds x n, or n + 1), the person's ranks
    (rounds,)), for n people.

    `person` is an index in `people`. `options`: with "unit" each row is divided by its length; with "intercept" each
    row has another feature, which is 1.
    """
    rated = np.flatnonzero(people.ranks[:, person])
    chosen = np.random.default_rng([person, 4]).permutation(rated)[:rounds]
    X = people.centred[chosen]
    X[:, person] = 0.0  # what is to be predicted
    if "unit" in options:
        length = np.linalg.norm(X, axis=1, keepdims=True)
        X /= np.where(length > 0.0, length, 1.0)
    if "intercept" in options:
        X = np.hstack([X, np.ones((len(X), 1), np.float32)])
    return X, people.ranks[chosen, person].astype(np.int64)


def draw_people(people: People, runs: int) -> list[int]:
    """Return the indices of `runs` random people, the same in every panel."""
    return np.random.default_rng(4).permutation(people.ranks.shape[1])[:runs].tolist()  # type: ignore[no-any-return]


# ---------------------------------------------------------------------------- worlds


def synthetic_batch(size: Size) -> Batch:
    """Return the runs of the synthetic stream of graded instances of [P01]: one stream for each of `size.runs`
    seeds.
    """
    R = 3.0  # |phi(x)|^2 = (x . x + 1)^2 <= 9 on the unit square

    def parts() -> Iterator[Setting]:
        yield _setting(6, R, 2.0, size.rounds, [synthetic_instances(size.rounds, seed) for seed in range(size.runs)])

    return Batch(parts(), R)


def _setting(N: int, R: float, S: float, rounds: int, streams: Sequence[InstanceStream]) -> Setting:
    """Return the setting (the simulated environments and what they share) of streams of instances x with `N` features,
    |x| <= `R` and |x|_inf <= `S`; the index of a stream is the seed of its run.
    """
    scenes = tuple(Scene(seed, 0, seed, stream, NOTHING) for seed, stream in enumerate(streams))
    return Setting(N, Ranks(RANKS), R, S, math.nan, rounds, scenes, ORDINAL, "rank loss")


def ratings_batch(people: People, size: Size, options: Sequence[Option] = ()) -> Batch:
    """Return runs in which the ratings of one person are predicted, for `size.runs` random people; with "unit" in
    `options` each row of features is divided by its length, with "intercept" it has another feature, which is 1.
    """
    chosen = draw_people(people, size.runs)
    intercept = "intercept" in options
    longest = 1.0 if "unit" in options else float((people.centred**2).sum(axis=1).max())
    R = math.sqrt(longest + intercept)

    def parts() -> Iterator[Setting]:
        for i in range(0, len(chosen), IN_MEMORY):
            scenes = []
            for person in chosen[i : i + IN_MEMORY]:
                X, ranks = instances_of(people, person, size.rounds, options)
                scenes.append(Scene(0, person, person, instance_stream(X, ranks, n_ranks=RANKS), np.empty(0)))
            N = people.ranks.shape[1] + intercept
            yield Setting(N, Ranks(RANKS), R, 1.0, math.nan, size.rounds, tuple(scenes), ORDINAL, "rank loss")

    return Batch(parts(), R)


def separable(rounds: int, seed: int, margin: float) -> tuple[InstanceStream, float, float]:
    """Return (a stream of `rounds` instances x, the greatest |x|^2 in it, the smallest margin in it), drawn from
    `seed`: a rule (direction and thresholds of norm 1 together) ranks all of them correctly with at least the `margin`.

    x is uniform in the unit ball of 10 dimensions; points whose score is nearer than `margin` to a threshold are drawn
    again.
    """
    N, b = DIMENSIONS, np.array([-0.3, -0.1, 0.1, 0.3])
    rng = np.random.default_rng([seed, 5])
    w = rng.standard_normal(N)
    w /= np.linalg.norm(w)
    norm = math.sqrt(1.0 + float(b @ b))
    blocks: list[Array] = []
    while sum(map(len, blocks)) < rounds:
        x = rng.standard_normal((rounds, N))
        x *= (rng.random((rounds, 1)) ** (1.0 / N)) / np.linalg.norm(x, axis=1, keepdims=True)
        blocks.append(x[(np.abs((x @ w)[:, None] - b).min(axis=1) / norm) >= margin])
    X = np.concatenate(blocks)[:rounds]
    s = X @ w
    least = float(np.abs(s[:, None] - b).min() / norm)
    stream = instance_stream(X, 1 + np.searchsorted(b, s, side="right"), n_ranks=RANKS)
    return stream, float((X**2).sum(axis=1).max()), least


# ---------------------------------------------------------------------------- curves


def run_ordinal(
    panel: Panel, size: Size, people: Callable[[int], People], cache: dict[Any, Any], workers: Workers, tell: Tell
) -> dict[str, LineResult]:
    """Run a plot of [P01], and return the results of its curves by label.

    `people` is a function from the least number of ratings to the people with as many; `cache` is a cache of runs,
    which is read and added to; `workers` run them; `tell` is called to report progress.
    """
    if panel.kind == "bars":
        losses = _run_batch_learners(panel, size, people(RATERS[panel.world]), cache, workers, tell)
        return {
            line.label: _line_result(line, line.learners[0], panel.measure.of(losses[line.learners[0]], np.ones(1)))
            for line in panel.lines
        }
    if panel.world == STREAMS:
        return _run_threshold_gaps(panel, size, people, cache, workers, tell)
    if panel.world == SEPARABLE:
        return _run_mistake_bound(panel, size, cache, workers, tell)
    batch = synthetic_batch(size)
    if panel.world != SYNTHETIC:
        batch = ratings_batch(people(RATERS[panel.world]), size, panel.options)
    steps = [step / batch.R**2 for step in STEPS]
    specs = {spec: spec.format(eta=1.0 / batch.R**2, etas=steps) for line in panel.lines for spec in line.learners}

    def make(spec: str, setting: Setting) -> Any:
        return setting.learner(specs[spec])

    group = Group((panel.world, panel.options, size), list(specs), batch.parts, make, size.runs, "grades")
    runs = run_group(group, size.rounds, cache, workers, tell)
    bests = {line: best_of(line, runs) for line in panel.lines}
    return {line.label: _line_result(line, specs[best], *runs[best]) for line, best in bests.items()}


def _line_result(line: Line, learner: str, regrets: Array, seconds: Array = NOTHING) -> LineResult:
    return LineResult(line, learner, regrets, np.ones(len(regrets)), seconds)


# ---------------------------------------------------------------------------- the lemma and the theorem


def _run_threshold_gaps(
    panel: Panel, size: Size, people: Callable[[int], People], cache: dict[Any, Any], workers: Workers, tell: Tell
) -> dict[str, LineResult]:
    """Return the results of the curves of a plot whose values are the smallest gap b_{r+1} - b_r between PRank's
    thresholds after each of T rounds (runs x T), on each stream.
    """
    results = {}
    for i, line in enumerate(panel.lines):
        least = RATERS.get(line.user, 0)
        batch = ratings_batch(people(least), Size(least, size.runs)) if least else synthetic_batch(size)
        folds = [(setting, scene) for setting in batch.parts for scene in setting.scenes]
        measure = partial(_least_gaps, folds)
        trials = Trials((panel.world, "gaps", line.user, size), line.learners, measure, len(folds), line.label)
        runs = run_trials(trials, cache, workers.apart, part_of(tell, i, len(panel.lines)))
        results[line.label] = _line_result(line, line.learners[0], runs[line.learners[0]].regrets)
    return results


def _least_gaps(folds: Sequence[tuple[Setting, Scene]], run: int, specs: Sequence[str]) -> dict[str, Trial]:
    """Return the smallest gap between the thresholds of the learners `specs` after each round (T,), in the environment
    with the number `run` of `folds`."""
    setting, scene = folds[run]
    gaps = {}
    for spec in specs:
        learner: Any = setting.learner(spec)
        began = time.thread_time()
        played = play(learner, scene.world, setting.rounds, scene.draw)
        least_gaps = np.array([float(np.diff(learner.thresholds(state)).min()) for _, state in played])
        gaps[spec] = Trial(least_gaps, time.thread_time() - began)
    return gaps


def _run_mistake_bound(
    panel: Panel, size: Size, cache: dict[Any, Any], workers: Workers, tell: Tell
) -> dict[str, LineResult]:
    """Return the results of the curves of a plot of PRank's loss, with the bound (k - 1)(R^2 + 1) / gamma^2 where the
    margin gamma of the stream is known.
    """
    results = {}
    marks = log_spaced(size.rounds).astype(np.float64)
    for i, line in enumerate(panel.lines):
        margin, limits = float(line.user), []
        parts = synthetic_batch(size).parts
        if margin > 0.0:
            streams = [separable(size.rounds, seed, margin) for seed in range(size.runs)]
            limits = [(RANKS - 1) * (R2 + 1.0) / gamma**2 for _, R2, gamma in streams]
            parts = iter([_setting(DIMENSIONS, math.nan, math.nan, size.rounds, [stream for stream, _, _ in streams])])
        group = Group(
            (panel.world, line.user, size),
            line.learners,
            parts,
            lambda spec, setting: setting.learner(spec),
            size.runs,
            line.label,
        )
        runs = run_group(group, size.rounds, cache, workers, part_of(tell, i, len(panel.lines)))
        result = _line_result(line, line.learners[0], runs[line.learners[0]].regrets)._replace(
            theorem="the mistake bound"
        )
        if limits:
            result = result._replace(marks=marks, bound=np.full(marks.size, np.mean(limits)))
        else:
            result = result._replace(lacking=NOISE)
        results[line.label] = result
    return results


# ---------------------------------------------------------------------------- batch learners


def _run_batch_learners(
    panel: Panel, size: Size, people: People, cache: dict[Any, Any], workers: Workers, tell: Tell
) -> dict[str, Array]:
    """Return (rank loss, accuracy) on the test movies of each person (runs x 2), by learner."""
    sample = draw_people(people, size.runs)
    learn = partial(_test_batch_learners, people, sample, size.rounds)
    specs = [line.learners[0] for line in panel.lines]
    trials = Trials((panel.world, "batch", size), specs, learn, len(sample), "batch learners")
    return {spec: runs.regrets for spec, runs in run_trials(trials, cache, workers.apart, tell).items()}


def _test_batch_learners(
    people: People, chosen: Sequence[int], rounds: int, run: int, specs: Sequence[str]
) -> dict[str, Trial]:
    """Return (rank loss, accuracy) of the learners `specs` on the test movies of the person chosen[run]."""
    X, ranks = instances_of(people, chosen[run], rounds)
    wide = X.astype(np.float64)
    # The machines know inner products alone, which a rotation keeps: N is then the number of movies. Not so for
    # PRank, to which exact ties make a difference.
    values, vectors = np.linalg.eigh(wide @ wide.T)
    rotated = vectors * np.sqrt(np.maximum(values, 0.0))
    n = int(TRAINING * len(ranks))
    tested = {}
    for spec in specs:
        rows = rotated if spec in MACHINES else wide
        began = time.thread_time()
        missed = np.abs(predict_ranks(spec, rows[:n], ranks[:n], rows[n:]) - ranks[n:])
        tested[spec] = Trial(np.array([missed.mean(), np.mean(missed == 0)]), time.thread_time() - began)
    return tested


def predict_ranks(spec: str, X: Array, ranks: Ints, unseen: Array) -> Ints:
    """Train a learner on n instances `X` (n x N) of N features and their `ranks` (n,), and return the ranks (m,) that
    it predicts for m others, `unseen` (m x N).

    `spec`: svm, svr, or one of our learners: `NAME` for one pass through the instances, `NAME passes=P` for P.
    """
    if spec in MACHINES:
        best = min(COSTS, key=lambda C: (_cross_validate(spec, C, X, ranks), C))
        return _machine(spec, best, X, ranks, unseen)
    name, _, passes = spec.partition(" passes=")
    learner = make_learner(name, n_features=X.shape[1], space=Ranks(RANKS), n_ranks=RANKS)
    stream = instance_stream(X, ranks, n_ranks=RANKS, fixed=True)
    *_, (_, state) = play(learner, stream, int(passes or 1) * len(ranks), 0)
    rng = np.random.default_rng(0)
    return np.array([learner.propose(state, x, rng) for x in unseen], np.int64)


def _cross_validate(spec: str, C: float, X: Array, ranks: Ints) -> float:
    """Return the summed rank loss of the machine `spec` with cost `C` in three folds: each instance is held out
    once."""
    fold, loss = np.arange(len(ranks)) % 3, 0.0
    for held in range(3):
        guess = _machine(spec, C, X[fold != held], ranks[fold != held], X[fold == held])
        loss += float(np.abs(guess - ranks[fold == held]).sum())
    return loss


def _machine(spec: str, C: float, X: Array, ranks: Ints, unseen: Array) -> Ints:
    """Return the ranks (m,) of `unseen` (m x N) by a linear SVM (svm: Crammer & Singer's; svr: regression, rounded)
    with cost `C`."""
    import warnings

    from sklearn.svm import SVR, LinearSVC

    if np.unique(ranks).size == 1:
        return np.full(len(unseen), ranks[0])
    if spec == "svr":
        value: Array = SVR(kernel="linear", C=C).fit(X, ranks).predict(unseen)
        rounded: Ints = np.clip(np.floor(value + 0.5), 1, RANKS).astype(np.int64)
        return rounded
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what has not converged at a large C is scored like the rest
        machine = LinearSVC(multi_class="crammer_singer", C=C, random_state=0, max_iter=2000).fit(X, ranks)
    return np.asarray(machine.predict(unseen), np.int64)
