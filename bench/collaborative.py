"""The collaborative models: how fast, how that grows: `bench/collaborative.py --sushi FOLDER`.

One thread, processor time, the best of some runs. (a) CP of 100 and 1,000 people with 20 choices each among 10 items,
CPU of 100, the evidence, hyper-parameters by held-out pairs, and the baselines; (b) 5,000 people of the Sushi set, 20
pairs each, test error on the others; (c) how the time of a cycle grows with people and with answers. Without --sushi,
(b) is left out. Prints tables; writes bench/results/collaborative.json. `--quick` takes a tenth of the people in (b)
and (c) and writes nothing.
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
from typing import Any

import numpy as np
from machine import record
from rich.console import Console
from rich.table import Table

from heedful.data.sushi import load_sushi
from heedful.inference.pairwise import PairRows, pair_rows
from heedful.inference.collaborative.baselines import fit_birlutiu, fit_single
from heedful.inference.collaborative.cp import fit
from heedful.inference.collaborative.user_covariance import user_covariance
from heedful.inference.collaborative.distances import half_median
from heedful.inference.collaborative.model_selection import tune_cp
from heedful.inference.gp.kernels import kernel_for

out = Console(width=130)
Array = Any


def seconds(f: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Processor seconds of the fastest of some runs, and what the last gave."""
    times = []
    for _ in range(repeats):
        start = time.thread_time()
        got = f()
        times.append(time.thread_time() - start)
    return round(min(times), 4), got


def world(users: int, n: int, each: int, D: int = 5, seed: int = 0) -> tuple[Array, Array, PairRows, Array]:
    """Features, covariance, choices of people who weigh D functions of n items, and their utilities."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    K = kernel_for(X, half_median(X)).over(X)
    f = rng.normal(size=(users, D)) @ rng.multivariate_normal(np.zeros(n), K, D)
    user = np.repeat(np.arange(users), each)
    a = rng.integers(n, size=user.size)
    b = (a + rng.integers(1, n, size=user.size)) % n
    won = f[user, a] - f[user, b] + rng.normal(size=user.size) > 0.0
    pairs = np.where(won[:, None], np.stack([a, b], axis=1), np.stack([b, a], axis=1))
    return X, K, pair_rows(pairs, user=user), f


def wrong(model: Any, f: Array, count: int = 200_000) -> float:
    """The share of random pairs of items, of random people, that are told the wrong way round."""
    rng = np.random.default_rng(1)
    users, n = f.shape
    u, a = rng.integers(users, size=count), rng.integers(n, size=count)
    b = (a + rng.integers(1, n, size=count)) % n
    return round(float(((f[u, a] > f[u, b]) != (model.predict_proba(u, a, b) > 0.5)).mean()), 4)


# ---------------------------------------------------------------------------- (a)


def speeds(repeats: int) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    table = Table("fit", "people", "processor s", "cycles", "error")
    X, K, rows, f = world(100, 10, 20)
    Z = np.random.default_rng(2).normal(size=(100, 5))
    many = world(1000, 10, 20)
    fit(K, 100, rows)  # what is imported late is imported
    runs: dict[str, tuple[int, Callable[[], Any], Array, int]] = {
        "CP": (100, lambda: fit(K, 100, rows), f, 5 * repeats),
        "CP, 1,000 people": (1000, lambda: fit(many[1], 1000, many[2]), many[3], repeats),
        "CPU": (100, lambda: fit(K, 100, rows, user_cov=user_covariance(Z)), f, repeats),
        "CPU, 25 pseudo-people": (100, lambda: fit(K, 100, rows, user_cov=user_covariance(Z, pseudo=25)), f, repeats),
        "CP, FITC over pairs": (100, lambda: fit(K, 100, rows, pseudo_pairs=25), f, repeats),
        "CP, tuned by held-out pairs": (100, lambda: tune_cp(X, rows, 100).fit, f, 1),
        "BI, as published": (100, lambda: fit_birlutiu(K, 100, rows), f, repeats),
        "SU": (100, lambda: fit_single(K, 100, rows), f, repeats),
    }
    for name, (users, run, truth, times) in runs.items():
        took, model = seconds(run, times)
        figures[name] = {"people": users, "processor s": took, "cycles": model.cycles, "error": wrong(model, truth)}
        table.add_row(name, str(users), f"{took:.3f}", str(model.cycles), f"{figures[name]['error']:.3f}")
    model = fit(K, 100, rows)
    figures["evidence"] = {"people": 100, "processor s": seconds(lambda: model.log_evidence, repeats)[0]}
    out.print(table)
    return figures


# ---------------------------------------------------------------------------- (b)


def sushi(folder: str, users: int, repeats: int) -> dict[str, Any]:
    data = load_sushi(folder)
    orders = data.orders[:users]
    place = np.argsort(orders, axis=1)
    rng = np.random.default_rng(0)
    a, b = np.triu_indices(10, 1)
    chosen = np.argsort(rng.random((users, a.size)), axis=1)
    user = np.repeat(np.arange(users), 20)
    i, j = a[chosen[:, :20].ravel()], b[chosen[:, :20].ravel()]
    first = place[user, i] < place[user, j]
    rows = pair_rows(np.where(first[:, None], np.stack([i, j], 1), np.stack([j, i], 1)), user=user)
    kinds = data.features[:, 2:3] == np.unique(data.features[:, 2])
    X = np.column_stack([data.features[:, [0, 1, 3, 4, 5, 6]], kinds])
    K = kernel_for(X, half_median(X)).over(X)
    took, model = seconds(lambda: fit(K, users, rows), repeats)
    others = np.repeat(np.arange(users), a.size - 20)
    i, j = a[chosen[:, 20:].ravel()], b[chosen[:, 20:].ravel()]
    miss = (model.predict_proba(others, i, j) > 0.5) != (place[others, i] < place[others, j])
    got = {
        "people": users,
        "pairs": rows.size,
        "processor s": took,
        "cycles": model.cycles,
        "error": round(float(miss.mean()), 4),
    }
    out.print("Sushi", got)
    return got


# ---------------------------------------------------------------------------- (c)


def growth(shrink: int) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    table = Table("people", "answers each", "items", "processor ms a cycle")
    for users, each, n in (
        (4000, 20, 10),
        (8000, 20, 10),
        (8000, 40, 10),
        (2000, 20, 60),
        (4000, 20, 60),
        (4000, 40, 60),
    ):
        _, K, rows, _ = world(users // shrink, n, each)
        few, _ = seconds(lambda: fit(K, users // shrink, rows, cycles=1, tolerance=0.0), 2)
        more, _ = seconds(lambda: fit(K, users // shrink, rows, cycles=31, tolerance=0.0), 2)
        took = round((more - few) / 30 * 1e3, 2)
        figures[f"{users // shrink} people, {each} answers each, {n} items"] = took
        table.add_row(str(users // shrink), str(each), str(n), f"{took:.1f}")
    out.print(table)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the people; nothing is written")
    parser.add_argument("--sushi", metavar="FOLDER", help="the folder that has sushi3.idata and its orders")
    parser.add_argument("--only", default="abc", help="the parts to run, such as bc; nothing is written")
    options = parser.parse_args()
    shrink = 10 if options.quick else 1
    figures: dict[str, Any] = {}
    if "a" in options.only:
        figures["fits"] = speeds(3)
    if "b" in options.only and options.sushi:
        figures["sushi"] = sushi(options.sushi, 5_000 // shrink, 2)
    if "c" in options.only:
        figures["ms a cycle"] = growth(shrink)
    if not options.quick and options.only == "abc" and options.sushi:
        record("collaborative", figures)


main()
