"""Questions about preferences: how fast, how sure, how many: `python bench/questions.py --sushi FOLDER`.

(a) the closed form of BALD against a trapezoid rule; (b) the next question among 1,000 items, one thread, its
processor time, the best of some runs; (c) 1,000 simulated studies: people drawn from the prior are asked until
"P(best) >= .9", or the same of the ranking: how often that was right, and what was said of how many questions were
left (bench/remaining.py has more); (d) 400 people of the Sushi set, whom the
population prior has not met: test error after 5, 10 and 15 questions, and whether the favourite is found within 5.
Without --sushi, (d) is left out. Prints tables; writes
bench/results/questions.json. `--quick` takes a tenth of the people and writes nothing.
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
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from machine import record
from rich.console import Console
from rich.table import Table

from heedful.data.sushi import load_sushi
from heedful.inference.pairwise import pair_rows
from heedful.inference.gp.ep import UserPosteriors, Sites, infer_users
from heedful.inference.gp.remaining_questions import RemainingQuestions, estimate_remaining
from heedful.inference.gp.hierarchical import Population, fit
from heedful.inference.gp.posterior import Posterior
from heedful.inference.gp.acquisition import bald, next_question
from heedful.inference.gp.subset_acquisition import next_set
from heedful.inference.gp.stopping import stopping

STUDIES = (  # goal, questions, sd of the utilities
    ("best", "eubo", 2.0),
    ("best", "eubo", 1.0),
    ("best", "bald", 2.0),
    ("ranking", "bald", 2.0),
    ("ranking", "random", 2.0),
)
out = Console(width=130)
Array = Any


# ---------------------------------------------------------------------------- (a) and (b)


def trapezoid(mean: float, var: float, points: int = 36_001) -> float:
    """BALD in bits with its integral by the trapezoid rule on f in [-9, 9]."""
    from scipy.special import ndtr

    def entropy(z: Array) -> Array:
        p = np.clip(ndtr(-np.abs(z)), 1e-300, None)
        return -(p * np.log(p) + (1 - p) * np.log1p(-p)) / np.log(2)

    f = np.linspace(-9.0, 9.0, points)
    density = np.exp(-((f - mean) ** 2) / (2 * var)) / np.sqrt(2 * np.pi * var)
    return float(entropy(mean / np.sqrt(var + 1.0)) - np.trapezoid(entropy(f) * density, f))


def closed_form() -> dict[str, Any]:
    worst = (0.0, 0.0, 0.0)
    for var in 10.0 ** np.linspace(-4, 4, 65):
        for mean in np.linspace(0.0, 12.0, 121):
            off = abs(float(bald(mean, var)) - trapezoid(mean, var))
            worst = max(worst, (off, float(mean), float(var)))
    return {"bits off at most": round(worst[0], 5), "at mean": round(worst[1], 2), "variance": round(worst[2], 5)}


def some_posterior(n: int, answered: int, seed: int = 0) -> Posterior:
    """Items with 5 features, RBF kernel, and some answers about random pairs."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    K = np.exp(-0.5 * squares / np.median(squares)) + 1e-6 * np.eye(n)
    f = np.linalg.cholesky(K) @ rng.standard_normal(n)
    pairs = np.array([rng.choice(n, 2, replace=False) for _ in range(answered)])
    won = f[pairs[:, 0]] - f[pairs[:, 1]] + rng.standard_normal(answered) > 0
    return infer_users(K, np.zeros(n), 1, pair_rows(np.where(won[:, None], pairs, pairs[:, ::-1]))).of(0)


def seconds(f: Callable[[], Any], repeats: int = 7) -> float:
    f()
    took = []
    for _ in range(repeats):
        start = time.thread_time()
        f()
        took.append(time.thread_time() - start)
    return min(took)


def speeds() -> dict[str, float]:
    """Milliseconds."""
    took = {}
    for n in (10, 100, 1_000):
        posterior = some_posterior(n, 40)
        for rule in ("bald", "mes", "eubo"):
            took[f"next question, {n} items, {rule}"] = seconds(lambda: next_question(posterior, rule))
        for goal in ("best", "ranking"):
            took[f"stopping, {n} items, {goal}"] = seconds(lambda: stopping(posterior, goal), 3)
            if n < 1_000 or goal == "best":
                took[f"questions left, {n} items, {goal}"] = seconds(lambda: estimate_remaining(posterior, goal), 1)
    for k in (3, 5):
        took[f"next set of {k}, 1000 items, bald"] = seconds(lambda: next_set(posterior, "bald", k), 3)
    took |= inference_speeds()
    return {name: round(1e3 * s, 2) for name, s in took.items()}


def inference_speeds() -> dict[str, float]:
    """Seconds: one person who chose in all pairs of 64 items; populations of people with 20 random pairs each."""
    rng, took = np.random.default_rng(0), {}
    f, pairs = rng.standard_normal(64), np.stack(np.triu_indices(64, 1), axis=1)
    won = f[pairs[:, 0]] - f[pairs[:, 1]] + rng.standard_normal(len(pairs)) > 0
    rows = pair_rows(np.where(won[:, None], pairs, pairs[:, ::-1]))
    took["EP, 64 items, 2016 pairs"] = seconds(lambda: infer_users(np.eye(64), np.zeros(64), 1, rows), 5)
    for n, users in ((10, 100), (10, 1_000), (1_000, 100)):
        f = rng.standard_normal(n) + rng.standard_normal((users, n))
        a, b = np.array([rng.choice(n, 2, replace=False) for _ in range(20 * users)]).T
        user = np.repeat(np.arange(users), 20)
        won = f[user, a] - f[user, b] + rng.standard_normal(user.size) > 0
        said = pair_rows(np.where(won[:, None], np.stack([a, b], axis=1), np.stack([b, a], axis=1)), user=user)
        took[f"population, {users} people x 20 pairs, {n} items"] = seconds(
            partial(fit, np.eye(n), users, said, kappa0=1.0), 3
        )
    return took


# ---------------------------------------------------------------------------- people asked in step


class Person(NamedTuple):
    """When a study stopped (questions asked; -1 never), whether it was right (a share, of a ranking), how sure it
    was."""

    asked: int
    right: float
    sure: float


def posteriors(
    K: Array, m: Array, rows: list[list[tuple[int, int]]], sites: Sites | None
) -> tuple[UserPosteriors, Sites]:
    """Of people who were all asked as often; rows[t][u], the winner first."""
    flat = np.array(rows).reshape(-1, 2)
    users = np.tile(np.arange(len(rows[0])), len(rows))
    many = infer_users(K, m, len(rows[0]), pair_rows(flat, user=users), sites, tolerance=1e-6)
    return many, many.sites


def prior_of(K: Array, m: Array) -> Posterior:
    return Posterior(m, K)


def studies(
    people: int, n: int, goal: str, rule: str, amplitude: float, most: int, estimates: tuple[int, ...]
) -> tuple[list[Person], list[tuple[int, RemainingQuestions, int]]]:
    """People drawn from the prior N(0, amplitude^2 I), asked until it is sure; and what was said, after some answers
    (`estimates`), of how many were left: (asked, said, person)."""
    rng = np.random.default_rng(1)
    K, m = amplitude**2 * np.eye(n), np.zeros(n)
    truth = amplitude * rng.standard_normal((people, n))
    rows: list[list[tuple[int, int]]] = []
    done: dict[int, Person] = {}
    said: list[tuple[int, RemainingQuestions, int]] = []
    left = np.arange(people)
    sites: Sites | None = None
    for t in range(most + 1):
        if t:
            many, sites = posteriors(K, m, rows, sites)
        going = []
        for at, u in enumerate(left.tolist()):
            posterior = many.of(at) if t else prior_of(K, m)
            verdict = stopping(posterior, goal, seed=u)
            if verdict.stop:
                if goal == "best":
                    right = float(verdict.item == truth[u].argmax())
                else:
                    a, b = np.triu_indices(n, 1)
                    right = float(np.mean((truth[u, a] > truth[u, b]) == (posterior.mean[a] > posterior.mean[b])))
                done[u] = Person(t, right, verdict.sure)
            else:
                going.append(at)
                if t in estimates and u < people // 5:
                    said.append((t, estimate_remaining(posterior, goal, rule, seed=u), u))
        keep = np.array(going, int)
        if not keep.size or t == most:
            break
        if keep.size < left.size and sites is not None:
            shape = (t, left.size)
            sites = Sites(sites.tau.reshape(shape)[:, keep].ravel(), sites.nu.reshape(shape)[:, keep].ravel())
        rows = [[row[at] for at in going] for row in rows]
        asked = []
        for at, u in zip(going, left[keep].tolist()):
            posterior = many.of(at) if t else prior_of(K, m)
            a, b = next_question(posterior, rule, rng=rng)[:2]
            won = truth[u, a] - truth[u, b] + rng.standard_normal() > 0
            asked.append((a, b) if won else (b, a))
        rows.append(asked)
        left = left[keep]
    everybody = [done.get(u, Person(-1, np.nan, np.nan)) for u in range(people)]
    return everybody, said


def calibration(people: int) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    table = Table(
        "goal",
        "asked by",
        "prior sd",
        "stopped",
        "right",
        "said sure",
        "questions, quartiles",
        "left: said / were",
    )
    for goal, rule, amplitude in STUDIES:
        start = time.thread_time()
        everybody, said = studies(people, 10, goal, rule, amplitude, 100, (3, 10))
        stopped = [p for p in everybody if p.asked >= 0]
        right = float(np.mean([p.right for p in stopped]))
        quartiles = np.quantile([p.asked if p.asked >= 0 else 999 for p in everybody], [0.25, 0.5, 0.75]).tolist()
        were = [(everybody[u].asked - t if everybody[u].asked >= 0 else 999, left) for t, left, u in said]
        # Where as many are said as a forecast counts at most, that means "or more".
        within = [left.low <= w and (w <= left.high or left.high >= left.most) for w, left in were]
        inside = float(np.mean(within)) if were else float("nan")
        median = float(np.median([w for w, _ in were]))
        low, high = (float(np.median([getattr(left, end) for _, left in were])) for end in ("low", "high"))
        key = f"{goal}, {rule}, prior sd {amplitude:g}"
        figures[key] = {
            "studies": people,
            "stopped within 100": len(stopped),
            "right": round(right, 4),
            "standard error": round(float(np.std([p.right for p in stopped]) / np.sqrt(len(stopped))), 4),
            "said sure, mean": round(float(np.mean([p.sure for p in stopped])), 4),
            "questions, quartiles": quartiles,
            "left, median said": [low, high],
            "left, median it was": median,
            "left, share within the 80 % said": round(inside, 3),
            "processor s": round(time.thread_time() - start, 1),
        }
        one = figures[key]
        out.print(key, one)
        table.add_row(
            goal, rule, f"{amplitude:g}", f"{len(stopped)}/{people}",
            f"{right:.3f} +- {one['standard error']:.3f}",
            f"{one['said sure, mean']:.3f}", str(quartiles), f"{low:g} to {high:g} / {median:g}, inside {inside:.2f}",
        )  # fmt: skip
    out.print(table)
    return figures


# ---------------------------------------------------------------------------- (d) Sushi


def population(orders: Array, per_person: int, seed: int) -> Population:
    """That of `per_person` random pairs of each order, told without error; no features."""
    rng = np.random.default_rng(seed)
    U, n = orders.shape
    place = np.argsort(orders, axis=1)
    a, b = np.triu_indices(n, 1)
    pairs = []
    for u in range(U):
        k = rng.choice(a.size, per_person, replace=False)
        first = place[u, a[k]] < place[u, b[k]]
        pairs.append(np.stack([np.where(first, a[k], b[k]), np.where(first, b[k], a[k])], axis=1))
    rows = pair_rows(np.concatenate(pairs), user=np.repeat(np.arange(U), per_person))
    return fit(np.eye(n), U, rows).population


def sushi(folder: str, learned_from: int, new: int, per_person: int) -> dict[str, Any]:
    orders = load_sushi(f"{folder}").orders
    shuffled = np.random.default_rng(0).permutation(orders)
    start = time.thread_time()
    m, S = population(shuffled[:learned_from], per_person, 1)
    figures: dict[str, Any] = {
        "people the prior was learned from": learned_from,
        "pairs of each": per_person,
        "new people": new,
        "prior, processor s": round(time.thread_time() - start, 1),
    }
    place = np.argsort(shuffled[learned_from : learned_from + new], axis=1)
    favourite = shuffled[learned_from : learned_from + new, 0]
    n = place.shape[1]
    a, b = np.triu_indices(n, 1)
    truth = place[:, a] < place[:, b]
    table = Table(
        "prior", "asked by", "error, all pairs, after 0 / 5 / 10 / 15", "error, pairs not asked", "favourite after 5"
    )
    for prior, (mean, cov) in {"population": (m, S), "none": (np.zeros(n), 4.0 * np.eye(n))}.items():
        for rule in ("bald", "eubo", "mes", "random"):
            rng = np.random.default_rng(2)
            rows: list[list[tuple[int, int]]] = []
            gone: list[list[tuple[int, int]]] = [[] for _ in range(new)]
            sites: Sites | None = None
            errors, unasked, found = [], [], []
            stops: dict[int, tuple[int, bool]] = {}
            for t in range(16):
                if t:
                    many, sites = posteriors(cov, mean, rows, sites)
                    means = many.mean
                else:
                    means = np.repeat(mean[None], new, axis=0)
                gap = means[:, a] - means[:, b]
                wrong = np.where(gap == 0.0, 0.5, (gap > 0.0) != truth)  # who does not know is right half the time
                errors.append(float(wrong.mean()))
                fresh = np.ones((new, a.size), bool)
                for u in range(new):
                    for i, j in gone[u]:
                        fresh[u, (a == i) & (b == j)] = False
                unasked.append(float(wrong[fresh].mean()))
                found.append(float((means.argmax(axis=1) == favourite).mean()))
                asked = []
                for u in range(new):
                    posterior = many.of(u) if t else prior_of(cov, mean)
                    if rule == "eubo" and u not in stops:
                        verdict = stopping(posterior, seed=u)
                        if verdict.stop:
                            stops[u] = t, bool(verdict.item == favourite[u])
                    i, j = next_question(posterior, rule, skip=gone[u], rng=rng)[:2]
                    gone[u].append((min(i, j), max(i, j)))
                    asked.append((i, j) if place[u, i] < place[u, j] else (j, i))
                rows.append(asked)
            key = f"{prior} prior, {rule}"
            figures[key] = {
                "error, all 45 pairs": {t: round(errors[t], 4) for t in (0, 5, 10, 15)},
                "error, pairs not asked": {t: round(unasked[t], 4) for t in (0, 5, 10, 15)},
                "favourite has the highest mean": {t: round(found[t], 4) for t in (0, 3, 4, 5, 6, 8, 10, 15)},
            }
            if stops:
                figures[key]["P(best) >= .9 within 15"] = {
                    "people": len(stops),
                    "right": round(float(np.mean([right for _, right in stops.values()])), 4),
                    "questions, median of those": float(np.median([t for t, _ in stops.values()])),
                }
                out.print(key, figures[key])
            table.add_row(
                prior, rule, " / ".join(f"{errors[t]:.3f}" for t in (0, 5, 10, 15)),
                " / ".join(f"{unasked[t]:.3f}" for t in (0, 5, 10, 15)), f"{found[5]:.3f}",
            )  # fmt: skip
    out.print(table)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the people; nothing is written")
    parser.add_argument("--sushi", metavar="FOLDER", help="the folder that has sushi3.idata and its orders")
    parser.add_argument("--only", default="abcd", help="the parts to run, such as bd; nothing is written")
    options = parser.parse_args()
    shrink = 10 if options.quick else 1
    figures: dict[str, Any] = {}
    if "a" in options.only:
        figures["BALD, closed form against trapezoid"] = closed_form()
        out.print(figures)
    if "b" in options.only:
        figures["milliseconds, one thread"] = speeds()
        out.print(figures["milliseconds, one thread"])
    if "d" in options.only and options.sushi:
        figures["sushi"] = sushi(options.sushi, 1_000 // shrink, 400 // shrink, 20)
    if "c" in options.only:
        figures["studies that stopped when sure"] = calibration(1_000 // shrink)
    if not options.quick and options.only == "abcd" and options.sushi:
        record("questions", figures)


if __name__ == "__main__":
    main()
