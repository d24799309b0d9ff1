"""Speed of the coactive learners: `make bench`. One thread; ratios within one run; nothing here is a test.

Prints a table and writes bench/results/coactive.json. `--quick` takes a tenth of the stream.
"""

from __future__ import annotations

import os
import sys

if os.environ.get("OPENBLAS_NUM_THREADS") != "1":  # before numpy starts its threads
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.execv(sys.executable, [sys.executable, *sys.argv])

import json
import resource
import subprocess
from typing import Any, NamedTuple

import numpy as np
from machine import bandwidth, best, record
from numpy_loop import as_the_paper_writes_it, lean
from rich.console import Console
from rich.table import Table

from heedful import Ranking, Session, trace
from heedful.learners.coactive.perceptron import ConvexPerceptron, ExponentiatedPerceptron, PreferencePerceptron
from heedful.learners.coactive.dueling import DuelingBandit
from heedful.learners.coactive.posterior import Posterior
from heedful.learners.coactive.second_order import SecondOrderPerceptron
from heedful.worlds.queries import StreamState, synthetic_queries
from heedful.worlds.users import Noisy

DOCS = 20
out = Console(width=130)


class InOrder(NamedTuple):
    """A query stream whose queries arrive as they lie in memory, rather than shuffled by the seed."""

    stream: Any

    def init(self, rng: Any) -> StreamState:
        return StreamState(np.arange(self.stream.offsets.size - 1), 0)

    def over(self, state: StreamState, t: int) -> bool:
        return False

    def context(self, state: StreamState, t: int, rng: Any) -> Any:
        return self.stream.context(state, t, rng)

    def respond(self, state: StreamState, x: Any, shown: Any, rng: Any) -> Any:
        return self.stream.respond(state, x, shown, rng)

    def regret(self, state: StreamState, x: Any, shown: Any) -> Any:
        return self.stream.regret(state, x, shown)

    def advance(self, state: StreamState, x: Any, shown: Any, feedback: Any) -> Any:
        return self.stream.advance(state, x, shown, feedback)


def streams(queries: int, memory: dict[str, float]) -> list[dict[str, Any]]:
    rows = []
    for n in (136, 700):
        for dtype in ("float64", "float32"):
            shuffled, _ = synthetic_queries(queries, DOCS, n, noise=1.0, user=Noisy(10), dtype=dtype)
            learner = PreferencePerceptron(n, Ranking(5))
            X = shuffled.X.reshape(queries, DOCS, n)
            U, labels = (a.reshape(queries, DOCS) for a in (shuffled.utilities, shuffled.labels))
            for arrival, world, order in (
                ("in order", InOrder(shuffled), np.arange(queries)),
                ("shuffled", shuffled, np.random.default_rng(1).permutation(queries)),
            ):
                fold = best(lambda: trace(learner, world, queries, 0)) / queries * 1e6
                plain = best(lambda: as_the_paper_writes_it(X, U, labels, order), 2) / queries * 1e6
                leaner = best(lambda: lean(X, U, labels, order), 2) / queries * 1e6
                bound = DOCS * n * X.itemsize / memory["in order"] / 1e3
                rows.append(
                    {
                        "features": n,
                        "dtype": dtype,
                        "arrival": arrival,
                        "trace us": round(fold, 2),
                        "numpy us": round(plain, 1),
                        "ratio": round(plain / fold, 1),
                        "lean numpy us": round(leaner, 1),
                        "lean ratio": round(leaner / fold, 1),
                        "memory us": round(bound, 2),
                        "memory / trace": round(bound / fold, 2),
                    }
                )
    return rows


def others() -> dict[str, Any]:
    """us a round of every learner at 136 features, the second order at 700, and a session."""
    figures: dict[str, Any] = {}
    for n, kinds in ((136, 6), (700, 1)):
        world, _ = synthetic_queries(500, DOCS, n, noise=1.0, user=Noisy(10))
        space = Ranking(5)
        learners: list[Any] = [
            SecondOrderPerceptron(n, space),
            PreferencePerceptron(n, space),
            ExponentiatedPerceptron(n, space, 10.0),
            ConvexPerceptron(n, space, 100.0),
            Posterior(n, space, swap=0.0),
            DuelingBandit(n, space),
        ][:kinds]
        for learner in learners:
            figures[f"trace {type(learner).__name__} {n} features us/round"] = round(
                best(lambda: trace(learner, world, 2000, 0)) / 2000 * 1e6, 2
            )
    rng = np.random.default_rng(0)
    for learner in (PreferencePerceptron(136, Ranking(5)), SecondOrderPerceptron(700, Ranking(5))):
        x, session, wanted = rng.standard_normal((DOCS, learner.n_features)), Session(learner), rng.permutation(DOCS)

        def lesson() -> None:
            for _ in range(200):
                session.propose(x)
                session.learn(wanted)

        name = f"session propose + learn {type(learner).__name__} {learner.n_features} features us"
        figures[name] = round(best(lesson, 9) / 200 * 1e6, 1)
    return figures


def memory_of_a_trace() -> dict[str, Any]:
    """Peak memory of 1,000 and of 300,000 rounds over the same data, in processes of their own."""
    program = """
import resource, sys
from heedful import Ranking, trace
from heedful.learners.coactive.perceptron import PreferencePerceptron
from heedful.worlds.queries import synthetic_queries
from heedful.worlds.users import Noisy
world, _ = synthetic_queries(200, 20, 136, noise=1.0, user=Noisy(10))
learner = PreferencePerceptron(136, Ranking(5))
trace(learner, world, 10, 0)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
regrets = trace(learner, world, int(sys.argv[1]), 0)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, regrets.nbytes // 1024)
"""
    rows = {}
    for n in (1_000, 300_000, 3_000_000):
        grown, returned = subprocess.run(
            [sys.executable, "-c", program, str(n)], capture_output=True, text=True, check=True
        ).stdout.split()
        rows[f"{n} rounds: kB grown / kB returned"] = [int(grown), int(returned)]
    return rows


def starts() -> dict[str, Any]:
    """CPU seconds of a process from its start to the first compiled round; and of `import heedful`."""
    program = """
import resource
from heedful import Ranking, trace
from heedful.learners.coactive.perceptron import PreferencePerceptron
from heedful.worlds.queries import synthetic_queries
from heedful.worlds.users import Noisy
world, _ = synthetic_queries(5, 20, 136, noise=1.0, user=Noisy(10))
trace(PreferencePerceptron(136, Ranking(5)), world, 1, 0)
u = resource.getrusage(resource.RUSAGE_SELF)
print(u.ru_utime + u.ru_stime)
"""
    imports = "import resource, heedful; u = resource.getrusage(resource.RUSAGE_SELF); print(u.ru_utime + u.ru_stime)"

    def seconds(text: str) -> float:
        runs = [
            subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True) for _ in range(5)
        ]
        return round(min(float(r.stdout) for r in runs), 2)

    return {"second start to first round, CPU s": seconds(program), "start and import heedful, CPU s": seconds(imports)}


def main() -> None:
    queries = 2_000 if "--quick" in sys.argv else 20_000
    memory = {name: round(value, 1) for name, value in bandwidth().items()}
    out.print(f"memory, one thread: {memory} GB/s; {queries} queries of {DOCS} documents", highlight=False)
    rows = streams(queries, memory)
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*map(str, row.values()))
    out.print(table)
    figures = {**others(), **starts(), **memory_of_a_trace()}
    for name, value in figures.items():
        out.print(f"{name}: {value}", highlight=False)
    record("coactive", {"memory GB/s": memory, "queries": queries, "streams": rows, **figures})
    out.print(json.dumps({"peak MB of this run": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}))


main()
