"""Runs the figures of [P01]: synthetic grades, people who rated movies, batch learners, the lemma and the theorem.

MovieLens 1M replaces EachMovie, which was withdrawn. An instance is a movie that a person rated: its features are the
ratings of all other people of the panel, (rating - 3) / 4, so from -1/2 to 1/2, and 0 where missing; its rank is the
person's own rating. A run is a person, with as many of their movies as there are rounds, in random order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.fold import play, trace
from heedful.experiments.run import Scene, Setting
from heedful.learners.registry import make_learner
from heedful.papers.figure import NOTHING, Line, LineResult, Panel, Size
from heedful.papers.panels import RATERS, SEPARABLE, STREAMS, SYNTHETIC
from heedful.papers.runner import Group, Tell, best_of, run_group
from heedful.papers.statistics import log_spaced
from heedful.spaces.ordinal import Ranks
from heedful.worlds.instances import InstanceStream, instance_stream, synthetic_instances

if TYPE_CHECKING:
    from heedful.data.movielens import Ratings

Array = npt.NDArray[np.float64]

RANKS = 5
STEPS = (0.001, 0.01, 0.1, 1.0, 1.9)
"""Widrow-Hoff's eta times R^2, of which the best in hindsight is drawn: it is stable below 2. By rule it is 1."""
TOGETHER = 50
"""People whose instances are in memory at once."""
TRAINING = 0.8
"""Of a person's movies, the share to learn from in the batch comparison."""
MACHINES = ("svm", "svr")
COSTS = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
"""C of the support vector machines, of which three-fold cross-validation on the training part takes the best."""
NOISE = "no rule ranks every instance of a noisy stream right"


class People(NamedTuple):
    """People with enough ratings: their centred ratings, and their ranks."""

    centred: npt.NDArray[np.float32]  # M x n; (rating - 3) / 4, 0 where there is none
    ranks: npt.NDArray[np.int8]  # M x n; 0 where there is none


class Batch(NamedTuple):
    """A world in several settings of so many scenes each."""

    parts: Iterator[Setting]
    R: float  # no instance is longer


def people_who_rated(ratings: Ratings, least: int) -> People:
    """People with at least `least` ratings."""
    counts = np.bincount(ratings.users, minlength=ratings.user_ids.size)
    column = np.full(counts.size, -1)
    often = np.flatnonzero(counts >= least)
    column[often] = np.arange(often.size)
    mine = column[ratings.users] >= 0
    ranks = np.zeros((ratings.movie_ids.size, often.size), np.int8)
    ranks[ratings.movies[mine], column[ratings.users[mine]]] = ratings.values[mine].astype(np.int8)
    return People(np.where(ranks > 0, (ranks.astype(np.float32) - 3.0) / 4.0, 0.0).astype(np.float32), ranks)


def instances_of(people: People, person: int, rounds: int, features: str = "") -> tuple[npt.NDArray[Any], Any]:
    """`rounds` random movies of a person in random order: features (rounds x n, or n + 1) and the person's ranks.

    `features`: "" as they are; "unit": each row divided by its length; "unit, intercept": with an additional 1.
    """
    rated = np.flatnonzero(people.ranks[:, person])
    chosen = np.random.default_rng([person, 4]).permutation(rated)[:rounds]
    X = people.centred[chosen]
    X[:, person] = 0.0  # what is to be predicted
    if features:
        length = np.linalg.norm(X, axis=1, keepdims=True)
        X /= np.where(length > 0.0, length, 1.0)
    if features == "unit, intercept":
        X = np.hstack([X, np.ones((len(X), 1), np.float32)])
    return X, people.ranks[chosen, person].astype(np.int64)


def draw_people(people: People, runs: int) -> list[int]:
    """`runs` random people for a panel."""
    return np.random.default_rng(4).permutation(people.ranks.shape[1])[:runs].tolist()  # type: ignore[no-any-return]


# ---------------------------------------------------------------------------- worlds


def synthetic_batch(size: Size) -> Batch:
    """One synthetic stream per run."""
    R = 3.0  # |phi(x)|^2 = (x . x + 1)^2 <= 9 on the unit square

    def parts() -> Iterator[Setting]:
        nothing = np.empty(0)
        scenes = [Scene(s, 0, s, synthetic_instances(size.rounds, s), nothing) for s in range(size.runs)]
        yield Setting(6, Ranks(RANKS), R, 2.0, math.nan, size.rounds, tuple(scenes), "ordinal", "rank loss")

    return Batch(parts(), R)


def ratings_batch(people: People, size: Size, features: str = "") -> Batch:
    """One person per run."""
    chosen = draw_people(people, size.runs)
    intercept = features == "unit, intercept"
    longest = 1.0 if features else float((people.centred**2).sum(axis=1).max())
    R = math.sqrt(longest + intercept)

    def parts() -> Iterator[Setting]:
        for i in range(0, len(chosen), TOGETHER):
            scenes = []
            for person in chosen[i : i + TOGETHER]:
                X, ranks = instances_of(people, person, size.rounds, features)
                scenes.append(Scene(0, person, person, instance_stream(X, ranks, n_ranks=RANKS), np.empty(0)))
            N = people.ranks.shape[1] + intercept
            yield Setting(N, Ranks(RANKS), R, 1.0, math.nan, size.rounds, tuple(scenes), "ordinal", "rank loss")

    return Batch(parts(), R)


def separable(rounds: int, seed: int, margin: float) -> tuple[InstanceStream, float, float]:
    """A stream that a rule of norm 1 ranks correctly with a margin: the stream, max |x|^2, and its smallest margin.

    x is uniform in the unit ball of 10 dimensions; points nearer than the margin to a threshold are drawn again.
    """
    N, b = 10, np.array([-0.3, -0.1, 0.1, 0.3])
    rng = np.random.default_rng([seed, 5])
    w = rng.standard_normal(N)
    w /= np.linalg.norm(w)
    norm = math.sqrt(1.0 + float(b @ b))
    kept: list[Array] = []
    while sum(map(len, kept)) < rounds:
        x = rng.standard_normal((rounds, N))
        x *= (rng.random((rounds, 1)) ** (1.0 / N)) / np.linalg.norm(x, axis=1, keepdims=True)
        kept.append(x[(np.abs((x @ w)[:, None] - b).min(axis=1) / norm) >= margin])
    X = np.concatenate(kept)[:rounds]
    s = X @ w
    least = float(np.abs(s[:, None] - b).min() / norm)
    stream = instance_stream(X, 1 + np.searchsorted(b, s, side="right"), n_ranks=RANKS)
    return stream, float((X**2).sum(axis=1).max()), least


# ---------------------------------------------------------------------------- curves


def run_ordinal(
    panel: Panel, size: Size, people: Callable[[int], People], kept: dict[Any, Any], jobs: int, tell: Tell
) -> dict[str, LineResult]:
    """Run a panel of [P01]: its lines by label. `people` gives those with at least so many ratings; runs of other
    panels are `kept`.
    """
    if panel.kind == "bars":
        key = panel.world, panel.lines, size
        if key not in kept:
            kept[key] = _batch_learners(panel, size, people(RATERS[panel.world]), tell)
        return {
            line.label: _line_result(line, line.learners[0], panel.measure.of(kept[key][line.label], np.ones(1)))
            for line in panel.lines
        }
    if panel.world == STREAMS:
        return _run_threshold_gaps(panel, size, people, tell)
    if panel.world == SEPARABLE:
        return _run_mistake_bound(panel, size, tell)
    batch = synthetic_batch(size)
    if panel.world != SYNTHETIC:
        batch = ratings_batch(people(RATERS[panel.world]), size, panel.features)
    steps = [step / batch.R**2 for step in STEPS]
    specs = {spec: spec.format(eta=1.0 / batch.R**2, etas=steps) for line in panel.lines for spec in line.learners}

    def make(spec: str, setting: Setting) -> Any:
        return setting.learner(specs[spec])

    group = Group((panel.world, panel.features, size), list(specs), batch.parts, make, size.runs, "grades")
    found = run_group(group, size.rounds, kept, jobs, tell)
    bests = {line: best_of(line, found) for line in panel.lines}
    return {line.label: _line_result(line, specs[best], *found[best]) for line, best in bests.items()}


def _line_result(line: Line, learner: str, regrets: Array, seconds: Array = NOTHING) -> LineResult:
    return LineResult(line, learner, regrets, np.ones(len(regrets)), seconds)


# ---------------------------------------------------------------------------- the lemma and the theorem


def _run_threshold_gaps(panel: Panel, size: Size, people: Callable[[int], People], tell: Tell) -> dict[str, LineResult]:
    """Smallest b_{r+1} - b_r of PRank after each round (runs x T), on each stream."""
    ran = {}
    for i, line in enumerate(panel.lines):
        tell(line.label, i / len(panel.lines))
        if line.user == SYNTHETIC:
            batch = synthetic_batch(size)
        else:
            least = RATERS[line.user]
            batch = ratings_batch(people(least), Size(least, size.runs))
        gaps = []
        for setting in batch.parts:
            learner: Any = setting.learner(line.learners[0])
            for scene in setting.scenes:
                played = play(learner, scene.world, setting.rounds, scene.draw)
                gaps.append([float(np.diff(learner.thresholds(state)).min()) for _, state in played])
        ran[line.label] = _line_result(line, line.learners[0], np.array(gaps))
    return ran


def _run_mistake_bound(panel: Panel, size: Size, tell: Tell) -> dict[str, LineResult]:
    """PRank's loss, with the bound (k - 1)(R^2 + 1) / gamma^2 where a margin is known."""
    ran = {}
    marks = log_spaced(size.rounds).astype(np.float64)
    for i, line in enumerate(panel.lines):
        tell(line.label, i / len(panel.lines))
        margin = float(line.user)
        worlds, limits = [], []
        for seed in range(size.runs):
            if margin > 0.0:
                stream, R2, gamma = separable(size.rounds, seed, margin)
                limits.append((RANKS - 1) * (R2 + 1.0) / gamma**2)
            else:
                stream = synthetic_instances(size.rounds, seed)
            worlds.append(stream)
        learner = make_learner(line.learners[0], n_features=worlds[0].X.shape[1], space=Ranks(RANKS), n_ranks=RANKS)
        regrets = np.array([trace(learner, world, size.rounds, seed) for seed, world in enumerate(worlds)])
        one = _line_result(line, line.learners[0], regrets)
        theorem = "the mistake bound"
        if limits:
            one = one._replace(marks=marks, bound=np.full(marks.size, np.mean(limits)), theorem=theorem)
        else:
            one = one._replace(theorem=theorem, lacking=NOISE)
        ran[line.label] = one
    return ran


# ---------------------------------------------------------------------------- batch learners


def _batch_learners(panel: Panel, size: Size, people: People, tell: Tell) -> dict[str, Array]:
    """Rank loss and accuracy on each person's test movies (runs x 2)."""
    found: dict[str, list[tuple[float, float]]] = {line.label: [] for line in panel.lines}
    chosen = draw_people(people, size.runs)
    for i, person in enumerate(chosen):
        tell("batch learners", i / len(chosen))
        X, ranks = instances_of(people, person, size.rounds)
        wide = X.astype(np.float64)
        # The machines know inner products alone, which a rotation keeps: N is then the number of movies. Not so for
        # PRank, to which exact ties make a difference.
        values, vectors = np.linalg.eigh(wide @ wide.T)
        rotated = vectors * np.sqrt(np.maximum(values, 0.0))
        n = int(TRAINING * len(ranks))
        for line in panel.lines:
            seen = rotated if line.learners[0] in MACHINES else wide
            missed = np.abs(predict_ranks(line.learners[0], seen[:n], ranks[:n], seen[n:]) - ranks[n:])
            found[line.label].append((float(missed.mean()), float(np.mean(missed == 0))))
    return {label: np.array(pairs) for label, pairs in found.items()}


def predict_ranks(spec: str, X: Array, ranks: npt.NDArray[np.int64], unseen: Array) -> npt.NDArray[np.int64]:
    """Predicted ranks of unseen instances by a learner trained on X (n x N) and ranks (n,).

    `spec`: `NAME` or `NAME passes=P` for one of our learners with P passes; svm or svr.
    """
    if spec in MACHINES:
        best = min(COSTS, key=lambda C: (_cross_validate(spec, C, X, ranks), C))
        return _machine(spec, best, X, ranks, unseen)
    name, _, passes = spec.partition(" passes=")
    learner = make_learner(name, n_features=X.shape[1], space=Ranks(RANKS), n_ranks=RANKS)
    rng = np.random.default_rng(0)
    state = learner.init(rng)
    for _ in range(int(passes or 1)):
        for x, rank in zip(X, ranks.tolist()):
            state = learner.update(state, x, learner.propose(state, x, rng), rank)
    return np.array([learner.propose(state, x, rng) for x in unseen], np.int64)


def _cross_validate(spec: str, C: float, X: Array, ranks: npt.NDArray[np.int64]) -> float:
    """Rank loss of a machine in three folds: every third instance is held out once."""
    fold, loss = np.arange(len(ranks)) % 3, 0.0
    for held in range(3):
        guess = _machine(spec, C, X[fold != held], ranks[fold != held], X[fold == held])
        loss += float(np.abs(guess - ranks[fold == held]).sum())
    return loss


def _machine(spec: str, C: float, X: Array, ranks: npt.NDArray[np.int64], unseen: Array) -> npt.NDArray[np.int64]:
    """scikit-learn's multiclass SVM (Crammer & Singer's, linear) or its SVR (linear, epsilon 0.1), rounded."""
    import warnings

    from sklearn.svm import SVR, LinearSVC

    if np.unique(ranks).size == 1:
        return np.full(len(unseen), ranks[0])
    if spec == "svr":
        value: Array = SVR(kernel="linear", C=C).fit(X, ranks).predict(unseen)
        rounded: npt.NDArray[np.int64] = np.clip(np.floor(value + 0.5), 1, RANKS).astype(np.int64)
        return rounded
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what has not converged at a large C is scored like the rest
        machine = LinearSVC(multi_class="crammer_singer", C=C, random_state=0, max_iter=2000).fit(X, ranks)
    return np.asarray(machine.predict(unseen), np.int64)
