"""Speed of learners of ratings, as rounds go by, and of ALB against Algorithm 1 as printed: `python bench/ratings.py`.

(a) Steps a second of `trace` (k = 5) at 943 users x 1,682 items and at 50,000 x 20,000; (b) the cost of a step as
rounds go by, to 500,000; (c) [A18] Algorithm 1 in numpy as it is printed, histories and all, at t = 25,000, the default
horizon of the paper, on the same world; (d) steps a second of BMF, PTS and NMF-Bandit in the first 25,000 rounds on the
paper's 200 x 200, and what a step of theirs costs as rounds go by. Everything is on offer to everybody. One thread, its
processor time; of interleaved repetitions the best. Prints tables and writes bench/results/ratings.json.

`--quick` takes a tenth of the rounds and writes nothing.
"""

from __future__ import annotations

import os
import sys

if os.environ.get("OPENBLAS_NUM_THREADS") != "1":  # before numpy starts its threads
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.execv(sys.executable, [sys.executable, *sys.argv])

import argparse
import time
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from machine import record
from rich.console import Console
from rich.table import Table

from heedful import trace
from heedful.jit.cache import loop_for
from heedful.core.fold import coerce, copy_arrays, generators
from heedful.learners.ratings.alb import ALB
from heedful.learners.ratings.bmf import BMF
from heedful.learners.ratings.nmf_bandit import NMFBandit
from heedful.learners.ratings.pts import PTS
from heedful.spaces.slate import SlateContext, SlateRatings, Slate
from heedful.worlds.ratings import LowRankState, gaussian_ratings

SMALL, LARGE, PAPER, K = (943, 1_682), (50_000, 20_000), (200, 200), 5
out = Console(width=130)


class Literal:
    """Algorithm 1 as it is printed, in numpy: the rows of all rounds kept and rewritten, masks over the past."""

    def __init__(self, n_items: int, horizon: int, learner: ALB, rng: np.random.Generator) -> None:
        self.learner = learner
        self.B = rng.standard_normal((n_items, K))
        self.X, self.Z, self.y = np.empty((horizon, K)), np.empty((horizon, K)), np.empty(horizon)
        self.users, self.items = np.empty(horizon, np.int64), np.empty(horizon, np.int64)

    def step(self, t: int, i: int, rate: Any) -> None:
        p, B = self.learner, self.B
        past = self.users[:t] == i
        X, y = self.X[:t][past], self.y[:t][past]
        V = p.penalty * np.eye(K) + X.T @ X
        inverse = np.linalg.inv(V)
        mu = inverse @ (X.T @ y)
        root = np.sqrt(np.linalg.det(V) / p.penalty**K)
        c = p.sigma * np.sqrt(2.0 * np.log(root / p.delta)) + np.sqrt(p.penalty) * p.s
        norms = np.sqrt(np.sum(B @ inverse * B, axis=1))
        j = int(np.argmax(B @ mu + c * norms))
        self.users[t], self.items[t], self.y[t] = i, j, rate(i, j)
        A = mu + c * inverse @ B[j] / norms[j]
        self.Z[: t + 1][self.users[: t + 1] == i] = A
        whose = self.items[: t + 1] == j
        Z = self.Z[: t + 1][whose]
        B[j] = np.linalg.solve(Z.T @ Z + p.penalty * np.eye(K), Z.T @ self.y[: t + 1][whose])
        self.X[: t + 1][whose] = B[j]


def learner_of(size: tuple[int, int], **more: Any) -> ALB:
    return ALB(n_factors=K, n_users=size[0], n_items=size[1], **more)


class Many(NamedTuple):
    """As `gaussian_ratings`, of two factors' matrices instead of their product, which would take 8 GB; no regret."""

    A: Any
    B: Any
    items: Any
    noise: float

    def init(self, rng: np.random.Generator) -> LowRankState:
        return LowRankState(0)

    def over(self, state: LowRankState, t: int) -> bool:
        return False

    def context(self, state: LowRankState, t: int, rng: np.random.Generator) -> SlateContext:
        return SlateContext(int(rng.random() * self.A.shape[0]), self.items)

    def respond(self, state: LowRankState, x: SlateContext, shown: Any, rng: np.random.Generator) -> SlateRatings:
        ratings = np.empty(shown.size)
        for r in range(shown.size):
            ratings[r] = self.noise * rng.standard_normal()
            for a in range(self.A.shape[1]):
                ratings[r] += self.A[x.user, a] * self.B[shown[r], a]
        return SlateRatings(shown.copy(), ratings)

    def regret(self, state: LowRankState, x: SlateContext, shown: Any) -> float:
        return 0.0

    def advance(self, state: LowRankState, x: SlateContext, shown: Any, feedback: SlateRatings) -> LowRankState:
        return LowRankState(state.t + 1)


def many(size: tuple[int, int]) -> Many:
    rng = np.random.default_rng(0)
    return Many(rng.standard_normal((size[0], K)), rng.standard_normal((size[1], K)), np.arange(size[1]), 0.5)


def speed(size: tuple[int, int], rounds: int, repeats: int, **more: Any) -> float:
    """Steps a second of `trace`, from nothing; what comes before round 1 taken off."""
    world, learner = many(size), learner_of(size, **more)
    times, idle = [], []
    trace(learner, world, 10, 0)
    for _ in range(repeats):
        for seconds, n in ((idle, 1), (times, rounds)):
            start = time.thread_time()
            trace(learner, world, n, 0)
            seconds.append(time.thread_time() - start)
    return rounds / (min(times) - min(idle))


def from_nothing(learner: Any, size: tuple[int, int], rounds: int) -> float:
    """Steps a second of `trace` on Gaussian ratings, from the first round; the best of 3."""
    world, times = gaussian_ratings(*size, K), []
    trace(learner, world, 10, 0)
    for _ in range(3):
        start = time.thread_time()
        trace(learner, world, rounds, 0)
        times.append(time.thread_time() - start)
    return rounds / min(times)


def windows(edges: list[tuple[int, int]], of: Any, size: tuple[int, int] = SMALL) -> dict[int, float]:
    """Seconds a step from each lo to hi (rising, apart), in one run of the compiled loop; copies are not counted."""
    learner, world = coerce(of), gaussian_ratings(*size, K)
    asked, answered, drawn = generators(0)
    state, truth = learner.init(drawn), world.init(asked)
    took, done = {}, 0
    for lo, hi in edges:
        for until in (lo, hi):
            regrets = np.empty(until - done)
            args = learner, world, state, truth, regrets, done, asked, answered, drawn
            loop = loop_for(*args)
            start = time.thread_time()
            out = loop(*args)
            took[hi] = (time.thread_time() - start) / max(until - done, 1)
            state, truth, _ = copy_arrays(out)
            done = until
    return took


def as_rounds_go_by(
    rounds: list[int], repeats: int, of: Any, size: tuple[int, int] = SMALL, part: int = 10
) -> dict[str, float]:
    """Microseconds a step over the tenth (`part`) of the rounds before each of these; the best of some runs."""
    runs = [windows([(t - t // part, t) for t in rounds], of, size) for _ in range(repeats)]
    return {f"{t:,}": round(min(run[t] for run in runs) * 1e6, 2) for t in rounds}


def literal(rounds: int) -> dict[str, Any]:
    """ALB against the literal algorithm at the end of `rounds` rounds: microseconds a step, of a tenth of them."""
    world, learner = gaussian_ratings(*SMALL, K), learner_of(SMALL)
    rng = np.random.default_rng(0)
    slow = Literal(SMALL[1], rounds, learner, rng)

    def rate(i: int, j: int) -> float:
        return float(world.Y[i, j] + world.width * rng.standard_normal())

    edges = [rounds // 10, rounds - rounds // 10, rounds]
    seconds = {}
    t = 0
    for lo, hi in pairwise([0, *edges]):
        start = time.thread_time()
        for t in range(lo, hi):
            slow.step(t, int(rng.integers(SMALL[0])), rate)
        seconds[hi] = (time.thread_time() - start) / (hi - lo)
    fast = min(windows([(edges[1], edges[2])], learner)[rounds] for _ in range(3))
    return {
        "t": t + 1,
        "literal, us a step over the first tenth": round(seconds[edges[0]] * 1e6, 1),
        "literal, us a step over the last tenth": round(seconds[rounds] * 1e6, 1),
        "ALB, us a step over the last tenth": round(fast * 1e6, 2),
        "ratio": round(seconds[rounds] / fast, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rounds; nothing is written")
    quick = parser.parse_args().quick
    shrink = 10 if quick else 1
    rounds = 100_000 // shrink
    figures: dict[str, Any] = {"k": K, "rounds": rounds}
    start = time.thread_time()
    trace(learner_of((64, 64)), many((64, 64)), 10, 0)
    figures["compiling, cold, s"] = round(time.thread_time() - start, 1)
    table = Table("users x items", "shown", "steps/s from nothing", "us a step")
    for size, shown in ((SMALL, 1), (SMALL, 10), (LARGE, 1)):
        fast = speed(size, rounds // (5 if shown > 1 or size == LARGE else 1), 3, space=Slate(shown))
        name = f"{size[0]:,} x {size[1]:,}, {shown} shown"
        figures[f"{name}, steps/s"] = round(fast)
        table.add_row(f"{size[0]:,} x {size[1]:,}", str(shown), f"{fast:,.0f}", f"{1e6 / fast:.2f}")
    out.print(table)
    figures["us a step, around round"] = as_rounds_go_by(
        [n // shrink for n in (1_000, 10_000, 100_000, 500_000)], 3, learner_of(SMALL)
    )
    out.print("us a step, around round", figures["us a step, around round"])
    figures["against Algorithm 1 as it is printed"] = literal(25_000 // shrink)
    out.print(figures["against Algorithm 1 as it is printed"])
    table = Table("200 x 200", "steps/s from nothing", "us a step, around round")
    for other in (BMF(), PTS(), NMFBandit()):
        name = type(other).__name__
        fast = from_nothing(other, PAPER, 25_000 // shrink)
        later = as_rounds_go_by([n // shrink for n in (25_000, 100_000, 500_000)], 1, other, PAPER)
        figures[f"200 x 200, {name}, steps/s in the first 25,000"] = round(fast)
        figures[f"200 x 200, {name}, us a step, around round"] = later
        table.add_row(name, f"{fast:,.0f}", str(later))
    figures["943 x 1,682, PTS, steps/s in the first 25,000"] = round(from_nothing(PTS(), SMALL, 25_000 // shrink))
    out.print(table, "PTS, 943 x 1,682, steps/s:", figures["943 x 1,682, PTS, steps/s in the first 25,000"])
    if not quick:
        record("ratings", figures)


main()
