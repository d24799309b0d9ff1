"""Runs the figures of [H12]: people's answers are split, and models trained on one part predict the other.

Run s of each line of a panel has seed s: the same random people, and the same split of each person's pairs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.data.pairwise_dataset import PairwiseDataset
from heedful.inference.gp.acquisition import bald, mes
from heedful.inference.pairwise import PairRows, pair_rows
from heedful.jit.kernel import Ints
from heedful.papers.choice_models import Fit, PreferenceModel, Problem, model, tune_on_others
from heedful.papers.figure import NOTHING, Line, LineResult, Panel, Size
from heedful.papers.figure1_toy import on_a_line
from heedful.papers.panels import ELECTION, JURA, MOVIE_CHOICES, SUSHI, SYNTHETIC_CHOICES, TOY
from heedful.papers.runner import Tell

Array = npt.NDArray[np.float64]
Sets = Callable[[str, str], PairwiseDataset]
"""The choices of a world, with right or published labels."""

TRAINING = {SYNTHETIC_CHOICES: 30, SUSHI: 20, MOVIE_CHOICES: 20, ELECTION: 20, JURA: 15}
"""Training pairs of each person; all others are test pairs. [H12] section 6.1"""
ASKED = {
    SYNTHETIC_CHOICES: (5, 35, 5),
    SUSHI: (5, 35, 5),
    MOVIE_CHOICES: (5, 35, 5),
    ELECTION: (3, 22, 3),
    JURA: (3, 15, 3),
}
"""Pairs of each person to train on at first, to ask about, and to test on. [H12] section 6.2"""
FEW_SPLITS = 5
"""Where there are at most so many splits, tuning takes less time, too."""
QUERIES = 10
OTHERS = 100
"""People who are kept apart for what is tuned, where tables compare 100."""
SCALES = tuple(float(2.0**half) for half in np.arange(-4, 5) / 2.0)
"""Length-scales that the evidence is drawn at, in units of the one of the tables."""
EVIDENCE, LIKELIHOOD, ERROR = ASPECTS = ("evidence", "log-likelihood of test answers", "error")


class Split(NamedTuple):
    """People and the indices of their pairs: to train on (U x n), to ask about (U x m), and to test on (U x t)."""

    problem: Problem
    pairs: Ints  # P x 2
    first: npt.NDArray[np.bool_]  # U x P
    train: Ints
    pool: Ints
    test: Ints

    def rows(self, at: Ints) -> PairRows:
        """Answers to these pairs (U x n): everybody's first pair, then everybody's second, ..."""
        users = np.arange(len(at))
        pairs = self.pairs[at.T]  # n x U x 2
        won = self.first[users, at.T]
        ordered = np.where(won[:, :, None], pairs, pairs[:, :, ::-1])
        return pair_rows(ordered.reshape(-1, 2), user=np.tile(users, at.shape[1]))

    def gap(self, fitted: PreferenceModel, at: Ints) -> tuple[Array, Array]:
        """Mean and variance (U x n) of the first item's utility less the second's, for these pairs (U x n)."""
        users = np.broadcast_to(np.arange(len(at))[:, None], at.shape)
        a, b = self.pairs[at, 0], self.pairs[at, 1]
        mean, var = fitted.gap(users.ravel(), a.ravel(), b.ravel())
        return mean.reshape(at.shape), var.reshape(at.shape)

    def error(self, fitted: PreferenceModel) -> float:
        """Share of the test answers predicted wrong."""
        mean, _ = self.gap(fitted, self.test)
        return float(np.mean((mean > 0.0) != np.take_along_axis(self.first, self.test, axis=1)))

    def log_likelihood(self, fitted: PreferenceModel) -> float:
        """Mean log probability of the test answers, in nats."""
        from scipy.special import log_ndtr

        mean, var = self.gap(fitted, self.test)
        sign = np.where(np.take_along_axis(self.first, self.test, axis=1), 1.0, -1.0)
        return float(log_ndtr(sign * mean / np.sqrt(1.0 + var)).mean())


def split(
    data: PairwiseDataset,
    people: int,
    seed: int,
    train: int,
    pool: int = 0,
    test: int = 0,
    apart: Mapping[str, Any] = {},
) -> Split:
    """Split the answers of `people` random people (all, where there are fewer): random pairs of each to train on, to
    ask about, and to test on.

    `test`: test pairs per person; 0: all that are left. `apart`: what was tuned on other people, by model.
    """
    rng = np.random.default_rng([seed, 12])
    some = rng.permutation(len(data.first))[:people]
    order = rng.random((some.size, len(data.pairs))).argsort(axis=1)
    last = train + pool + test if test else order.shape[1]
    problem = Problem(data.features, data.people[some], seed, apart, {})
    parts = np.split(order[:, :last], [train, train + pool], axis=1)
    return Split(problem, data.pairs, data.first[some], *parts)


# ---------------------------------------------------------------------------- what is run


class RunResult(NamedTuple):
    """Values of one run of a line, and its processor time."""

    values: Array
    seconds: float


def run_panel(
    panel: Panel, size: Size, sets: Sets, kept: dict[Any, Any], jobs: int, tell: Tell
) -> dict[str, LineResult]:
    """Run a panel of [H12]: its lines by label. Runs that another panel shares are `kept`.

    `size`: at most so many people, and so many splits. A panel of seconds runs one thing at a time.
    """
    if panel.world == TOY:
        return on_a_line(panel)
    labels, *timed = panel.features.split(", ")
    data = sets(panel.world, labels)
    if panel.kind == "bars":
        data, others = set_apart(data)
    apart: dict[str, Any] = {}
    found: dict[str, list[RunResult]] = {}
    keys = {line: (panel.world, panel.features, panel.kind, size, line.learners[0]) for line in panel.lines}
    for i, line in enumerate(panel.lines):
        if keys[line] not in kept:
            tell(line.label, i / len(panel.lines))
            names = _together(panel, line)
            if panel.kind == "bars":
                apart = {names[0]: _tune(names[0], others, panel, size.runs <= FEW_SPLITS, kept)}

            def one(seed: int, names: list[str] = names, apart: Any = apart) -> list[RunResult]:
                if panel.kind == "questions":
                    return _asking_by_all(data, panel.world, size.rounds, seed, names)
                run = _scales if panel.kind == "scales" else _learning
                return [run(data, panel.world, size.rounds, seed, names[0], apart)]

            with ThreadPoolExecutor(1 if timed else min(jobs, size.runs)) as threads:
                runs = list(threads.map(one, range(size.runs)))
            for k, name in enumerate(names):
                kept[*keys[line][:-1], name] = [each[k] for each in runs]
        found[line.label] = kept[keys[line]]
    return {line.label: _line_result(panel, line, found[line.label]) for line in panel.lines}


def set_apart(data: PairwiseDataset) -> tuple[PairwiseDataset, PairwiseDataset]:
    """The data without OTHERS random people, and these people, for tuning. Features of people are standardised."""
    spread = data.people.std(axis=0)
    data = data._replace(people=(data.people - data.people.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0))
    order = np.random.default_rng([0, 14]).permutation(len(data.first))
    some, rest = order[:OTHERS], np.sort(order[OTHERS:])
    return tuple(data._replace(people=data.people[at], first=data.first[at]) for at in (rest, some))  # type: ignore[return-value]


def _together(panel: Panel, line: Line) -> list[str]:
    """The names that run with a line: for acquisition, all rules of its model, which share the first fit."""
    [name] = line.learners
    if panel.kind != "questions":
        return [name]
    each = (other.learners[0] for other in panel.lines)
    return [other for other in each if other.partition(" by ")[0] == name.partition(" by ")[0]]


def _tune(name: str, others: PairwiseDataset, panel: Panel, few: bool, kept: dict[Any, Any]) -> Any:
    """What a model tunes on other people, once per data set."""
    key = (panel.world, panel.features.partition(",")[0], "apart", few, name)
    if key not in kept:
        parts = split(others, OTHERS, 0, TRAINING[panel.world])
        kept[key] = tune_on_others(name, others.features, parts.problem.people, parts.rows(parts.train), few)
    return kept[key]


def _line_result(panel: Panel, line: Line, found: list[RunResult]) -> LineResult:
    seconds = np.array([one.seconds for one in found])
    values = np.array([one.values for one in found])
    if panel.kind == "scales":
        values = values[:, :, ASPECTS.index(line.user)]
    held = seconds[:, None] if panel.features.endswith("seconds") else values
    marks = np.array(SCALES) if panel.kind == "scales" else NOTHING
    return LineResult(line, line.learners[0], held, np.ones(len(held)), seconds, marks)


def _learning(
    data: PairwiseDataset, world: str, people: int, seed: int, name: str, apart: Mapping[str, Any]
) -> RunResult:
    """The test error."""
    parts = split(data, people, seed, TRAINING[world], apart=apart)
    rows = parts.rows(parts.train)
    began = time.thread_time()
    fitted = model(name)(parts.problem, rows, None)
    took = time.thread_time() - began
    return RunResult(np.array([parts.error(fitted)]), took)


def _asking(
    data: PairwiseDataset,
    world: str,
    people: int,
    seed: int,
    name: str,
    first: tuple[PreferenceModel, float] | None = None,
) -> RunResult:
    """The test error at first, and after each of ten questions to everybody by a rule: `MODEL by RULE`. `first`: the
    first fit and its seconds, where already done.
    """
    fit, rule = model(name.partition(" by ")[0]), name.partition(" by ")[2]
    parts = split(data, people, seed, *ASKED[world])
    rng = np.random.default_rng([seed, 13])
    users = np.arange(len(parts.first))
    learned, pool = parts.train, parts.pool
    fitted, errors, took = None, [], 0.0
    for query in range(QUERIES + 1):
        fitted, seconds = _fit(fit, parts, learned, fitted) if first is None or query else first
        took += seconds
        errors.append(parts.error(fitted))
        if query == QUERIES:
            break
        if rule == "random":
            scores = rng.random(pool.shape)
        else:
            scores = (bald if rule == "bald" else mes)(*parts.gap(fitted, pool))
        at = scores.argmax(axis=1)
        learned = np.column_stack([learned, pool[users, at]])
        rest = np.ones(pool.shape, bool)
        rest[users, at] = False
        pool = pool[rest].reshape(len(pool), -1)
    return RunResult(np.array(errors), took)


def _asking_by_all(data: PairwiseDataset, world: str, people: int, seed: int, names: Sequence[str]) -> list[RunResult]:
    """`_asking` of one model by several rules, with one first fit."""
    parts = split(data, people, seed, *ASKED[world])
    first = _fit(model(names[0].partition(" by ")[0]), parts, parts.train, None)
    return [_asking(data, world, people, seed, name, first) for name in names]


def _fit(fit: Fit, parts: Split, learned: Ints, earlier: PreferenceModel | None) -> tuple[PreferenceModel, float]:
    """A fit to these pairs (U x n), and its processor time."""
    rows = parts.rows(learned)
    began = time.thread_time()
    fitted = fit(parts.problem, rows, earlier)
    return fitted, time.thread_time() - began


def _scales(
    data: PairwiseDataset, world: str, people: int, seed: int, name: str, apart: Mapping[str, Any]
) -> RunResult:
    """At each length-scale (s x 3): log evidence and test log-likelihood per answer, in nats, and test error."""
    parts = split(data, people, seed, TRAINING[world])
    rows = parts.rows(parts.train)
    values, began = [], time.thread_time()
    for times in SCALES:
        fitted = model(f"{name}:times={times!r}")(parts.problem, rows, None)
        values.append((fitted.log_evidence / rows.size, parts.log_likelihood(fitted), parts.error(fitted)))
    return RunResult(np.array(values), time.thread_time() - began)
