"""Speed of the ordinal learners, and `ordinal-logistic` against a batch ordinal regression: `python bench/ordinal.py`.

(a) `trace` of PRank against the plain numpy loop below; (b) `ordinal-logistic` against LogisticAT of mord 0.7, refitted
at every tenth of the stream, and whenever there are 10 % more instances; each predicts what it has not seen. One
thread, its processor time; ratios within one run, of the best of interleaved repetitions (LogisticAT is fitted once).
Prints tables and writes bench/results/ordinal.json.

mord is a peer for this comparison only, in no lock file: `pip install mord==0.7`; `--no-batch` leaves (b) out.
`--quick` takes a tenth of the stream and writes nothing.
"""

from __future__ import annotations

import os
import sys

if os.environ.get("OPENBLAS_NUM_THREADS") != "1":  # before numpy starts its threads
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.execv(sys.executable, [sys.executable, *sys.argv])

import argparse
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from machine import bandwidth, record
from rich.console import Console
from rich.table import Table

from heedful import trace
from heedful.core.fold import generators
from heedful.learners.ordinal.ordinal_logistic import OrdinalLogistic
from heedful.learners.ordinal.perceptrons import ConstantRank, MulticlassPerceptron, PRank, WidrowHoff
from heedful.worlds.instances import synthetic_ordinal

RANKS, FEATURES, NOISE = 5, 50, 0.3
out = Console(width=130)


def in_numpy(X: Any, ranks: Any, order: Any) -> Any:
    """PRank as one would write it in numpy; the rank loss of every round."""
    w, b = np.zeros(X.shape[1]), np.zeros(RANKS - 1)
    r = np.arange(1, RANKS)
    loss = np.empty(order.size)
    for t, i in enumerate(order):
        x, y = X[i], ranks[i]
        gap = x @ w - b
        shown = 1 + np.count_nonzero(gap >= 0)
        if shown != y:
            sign = np.where(y <= r, -1.0, 1.0)
            tau = np.where(gap * sign <= 0, sign, 0.0)
            w += tau.sum() * x
            b -= tau
        loss[t] = abs(shown - y)
    return loss


def interleaved(repeats: int, **runs: Callable[[], Any]) -> dict[str, float]:
    """Processor seconds of the fastest of some repetitions of each, in turn, so that all meet the same company.

    Each time the second of two runs counts: the first finds the caches as another left them.
    """
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            run()
            start = time.thread_time()
            run()
            times[name].append(time.thread_time() - start)
    return {name: min(each) for name, each in times.items()}


def loops(rounds: int, memory: dict[str, float]) -> list[dict[str, Any]]:
    """ns a round of `trace` and of numpy, at random and as the rows lie in memory, and what memory alone would take.

    A short stream, and one ten times as long: over a short one it counts what comes before the first round, and that
    the machine wakes up, which takes longer than the rounds do. numpy's loop runs over the first `rounds` of either.
    """
    rows = []
    for length, n in ((rounds, 10), (rounds, FEATURES), (10 * rounds, 10), (10 * rounds, FEATURES)):
        world, _, _ = synthetic_ordinal(length, n, RANKS, noise=NOISE)
        learner = PRank(n, RANKS)
        for arrival, stream in (("at random", world), ("as they lie", world._replace(fixed=True))):
            order = stream.init(generators(0)[0]).order[:rounds]
            fast, slow = trace(learner, stream, rounds, 0), in_numpy(world.X, world.ranks, order)
            took = interleaved(
                7 if length == rounds else 4,
                trace=lambda s=stream, p=learner, t=length: trace(p, s, t, 0),  # type: ignore[misc]
                idle=lambda s=stream, p=learner: trace(p, s, 0, 0),  # type: ignore[misc]
                numpy=lambda w=world, o=order: in_numpy(w.X, w.ranks, o),  # type: ignore[misc]
            )
            ns = {name: seconds / (rounds if name == "numpy" else length) * 1e9 for name, seconds in took.items()}
            bound = (n * 8 + 24) / memory["in order"]  # bytes: the row, its rank, its place, its regret
            rows.append(
                {
                    "instances": length,
                    "features": n,
                    "arrival": arrival,
                    "trace ns": round(ns["trace"], 1),
                    "of it before round 1": round(ns["idle"], 1),
                    "numpy ns": round(ns["numpy"]),
                    "ratio": round(ns["numpy"] / ns["trace"]),
                    "memory ns": round(bound, 1),
                    "memory / trace": round(bound / ns["trace"], 2),
                    "mean loss": round(float(fast.mean()), 4),
                    # BLAS sums w . x in another order, so a score within rounding of a threshold may fall otherwise
                    "of numpy": round(float(slow.mean()), 4),
                }
            )
    return rows


def others(rounds: int) -> dict[str, float]:
    """ns a round of every ordinal learner."""
    world, _, _ = synthetic_ordinal(rounds, FEATURES, RANKS, noise=NOISE)
    kinds: list[Any] = [PRank, OrdinalLogistic, MulticlassPerceptron, WidrowHoff, ConstantRank]
    runs = {cls.__name__: lambda cls=cls: trace(cls(FEATURES, RANKS), world, rounds, 0) for cls in kinds}
    return {name: round(seconds / rounds * 1e9, 1) for name, seconds in interleaved(7, **runs).items()}


def batch(rounds: int) -> dict[str, Any]:
    """`ordinal-logistic` and LogisticAT (alpha = 1, by default) on one stream: progressive loss and instances a second.

    LogisticAT predicts with its latest fit; what comes before the first counts for nobody. Its speed is the instances
    of the stream over the seconds of all fits; what `trace` takes includes drawing the order.
    """
    try:
        from mord import LogisticAT
    except ImportError:
        raise SystemExit("the comparison needs mord: pip install mord==0.7, or leave it out with --no-batch") from None
    world, _, _ = synthetic_ordinal(rounds, FEATURES, RANKS, noise=NOISE)
    order = world.init(generators(0)[0]).order  # what `trace` meets on seed 0
    X, ranks = world.X[order], world.ranks[order]
    learners: list[Any] = [OrdinalLogistic(FEATURES, RANKS), PRank(FEATURES, RANKS), ConstantRank(FEATURES, RANKS)]
    losses = {type(p).__name__: trace(p, world, rounds, 0) for p in learners}
    shuffled, ordered = (
        lambda: trace(learners[0], world, rounds, 0),
        lambda: trace(learners[0], world._replace(fixed=True), rounds, 0),
    )
    took = interleaved(7, shuffled=shuffled, ordered=ordered)
    tenths = [rounds * i // 10 for i in range(1, 10)]
    growing = [rounds // 100]
    while 11 * growing[-1] < 10 * rounds:
        growing.append(-(-11 * growing[-1] // 10))
    figures: dict[str, Any] = {
        "ordinal logistic instances/s, at random": round(rounds / took["shuffled"]),
        "ordinal logistic instances/s, as they lie": round(rounds / took["ordered"]),
    }
    for name, edges in (("refitted at every tenth", tenths), ("refitted whenever there are 10 % more", growing)):
        seconds, theirs = 0.0, []
        for lo, hi in pairwise([*edges, rounds]):
            start = time.thread_time()
            model = LogisticAT().fit(X[:lo], ranks[:lo])
            seconds += time.thread_time() - start
            theirs.append(np.abs(model.predict(X[lo:hi]) - ranks[lo:hi]))
        loss = float(np.concatenate(theirs).mean())
        ours = {learner: round(float(each[edges[0] :].mean()), 4) for learner, each in losses.items()}
        figures[f"LogisticAT {name}"] = {
            "fits": len(edges),
            "mean absolute error from the first fit on": {**ours, "LogisticAT": round(loss, 4)},
            "ordinal logistic / LogisticAT": round(ours["OrdinalLogistic"] / loss, 4),
            "LogisticAT instances/s": round(rounds / seconds),
            "times as fast, at random": round(seconds / took["shuffled"]),
            "times as fast, as they lie": round(seconds / took["ordered"]),
        }
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the stream; nothing is written")
    parser.add_argument("--no-batch", action="store_true", help="leave the comparison with mord out")
    given = parser.parse_args()
    rounds = 10_000 if given.quick else 100_000
    memory = {name: round(value, 1) for name, value in bandwidth().items()}
    out.print(f"memory, one thread: {memory} GB/s; {rounds} instances, {RANKS} ranks", highlight=False)
    rows = loops(rounds, memory)
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*map(str, row.values()))
    out.print(table)
    figures: dict[str, Any] = {"memory GB/s": memory, "rounds": rounds, "streams": rows}
    figures[f"trace, {FEATURES} features, ns a round"] = others(rounds)
    if not given.no_batch:
        figures["against a batch ordinal regression"] = batch(rounds)
    for name in list(figures)[3:]:
        out.print(name, figures[name])
    if not given.quick:
        record("ordinal", figures)


main()
