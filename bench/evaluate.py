"""What a log says about three learners, and what the labels say: MQ2008, with clicks that favour the top.

`python bench/evaluate.py FOLDER [--runs 20]` (FOLDER holds S1.txt.gz to S5.txt.gz of LETOR 4.0's MQ2008) writes
bench/results/evaluate/SEARCHES.json. In each run a loop of the posterior answers 5,000 searches (`--searches`), drawn
from the queries of S1 to S4, for 500 people who look at position i with probability 1/i; the caller's order is by BM25.
The log is evaluated for three learners (`Loop.evaluate`); what each of them ends with is scored by NDCG@10 on the
queries of S5, by their labels.

Told are, by swapped pairs and by examination-weighted clicks, the mean value of each learner, how often the verdict
on it is each, and the median number of decisions that an evaluation says it takes to tell it from the posterior; by
swapped pairs also how often its interval contains the mean value over all other runs, which stands for the truth.

`python bench/evaluate.py --speed` needs no data and writes bench/results/evaluate_speed.json: the processor time in
which loops of 100,000 decisions (10 shown of 20 candidates out of 10,000 items with 20 features), with one click each,
are evaluated for the loop's own learner, and for one more.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from machine import record
from rich.console import Console
from rich.table import Table

from heedful.data.letor import Queries, load_letor
from heedful import infer
from heedful.loop import Loop
from heedful.results.evaluation import Value
from heedful.loop.settings import Settings
from heedful.worlds.clicks import PositionBiased

SEARCHES, PEOPLE, K, BM25, SEED = 5_000, 500, 10, 24, 629_976_868
MEASURES = ("swapped pairs", "examination-weighted clicks")
LEARNERS = ("posterior", "perceptron", "second-order")
ITEMS, FEATURES, CANDIDATES, TOGETHER = 10_000, 20, 20, 500
LONG: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("perceptron", {"sampled": 0.01}, "posterior"),
    ("posterior", {}, "perceptron"),
)
"""The loops of `--speed`: their learner and settings, and another learner."""
CLICKS = PositionBiased(1.0, 0.1, clicks_only=True, highest=2.0)


def searches(data: Queries, n: int, seed: int, folder: Path) -> Loop:
    """Return a loop of the posterior that `n` searches were answered by, with what people clicked."""
    rng = np.random.default_rng([SEED, seed])
    numbers = np.random.default_rng(0).standard_normal((100, data.X.shape[1])).tolist()
    named = infer([{"id": f"{i}", **{f"f{j}": z for j, z in enumerate(row)}} for i, row in enumerate(numbers)])
    loop = Loop.create(folder, encoding=named, learner="posterior", settings=Settings(k=K))
    useful = [q for q in range(len(data.qids)) if data.labels[slice(*data.offsets[q : q + 2])].any()]
    for t in range(n):
        rows = slice(*data.offsets[(q := int(rng.choice(useful))) : q + 2])
        x, labels = data.X[rows], data.labels[rows].astype(float)
        d = loop.decide(x, prior=x[:, BM25].tolist(), id=f"s{t}", person=f"p{rng.integers(PEOPLE)}")
        shown = np.array([int(name) for name in d.shown])
        clicked = CLICKS.rank(K, labels, labels, 0.0, shown[:K], rng)
        loop.feedback(d.id, id=f"c{t}", clicks=[str(j) for j in clicked])
    return loop


def ndcg(data: Queries, weights: np.ndarray[Any, Any]) -> float:
    """Return the mean NDCG@10 of the queries with a relevant document, by x @ weights (caller's score last)."""
    found = []
    for a, b in zip(data.offsets, data.offsets[1:]):
        x, gains = data.X[a:b], 2.0 ** data.labels[a:b] - 1.0
        if gains.any():
            prior = x[:, BM25]
            spread = float(prior.std())
            prior = (prior - prior.mean()) / (spread if spread > 0.0 else 1.0)
            order = np.argsort(-(np.column_stack([x, prior]) @ weights), kind="stable")[:K]
            discounts = 1.0 / np.log2(np.arange(K) + 2.0)
            best = np.sort(gains)[::-1][:K]
            found.append(gains[order] @ discounts[: order.size] / (best @ discounts[: best.size]))
    return float(np.mean(found))


def long_loop(folder: Path, learner: str, decisions: int, settings: dict[str, Any]) -> Loop:
    """Return a loop of `learner` with `decisions` decisions for 997 people, each with one click by their common taste,
    more often at the top."""
    rng = np.random.default_rng(0)
    x, taste = rng.standard_normal((ITEMS, FEATURES)), rng.standard_normal(FEATURES)
    rows = [{"id": f"i{j}", **{f"f{k}": float(z) for k, z in enumerate(row)}} for j, row in enumerate(x)]
    utility, kept = x @ taste, Settings(k=K, durable="feedback", **settings)
    loop = Loop.create(folder, encoding=infer(rows), items=rows, learner=learner, settings=kept)
    for first in range(0, decisions, TOGETHER):
        answers = []
        for t in range(first, min(first + TOGETHER, decisions)):
            candidates = [f"i{j}" for j in rng.choice(ITEMS, CANDIDATES, replace=False)]
            shown = loop.decide(candidates, person=f"p{t % 997}", show=K, id=f"d{t}").shown
            liked = utility[[int(name[1:]) for name in shown]] + 2.0 * rng.gumbel(size=K) - 0.3 * np.arange(K)
            answers.append({"decision": f"d{t}", "clicks": [shown[int(liked.argmax())]]})
        loop.feedback_many(answers)
    return loop


def speed(console: Console, decisions: int) -> None:
    """Measure how long it takes to evaluate loops of so many decisions, and record it."""
    told: dict[str, Any] = {"decisions": decisions}
    for learner, settings, other in LONG:
        with (
            tempfile.TemporaryDirectory() as folder,
            long_loop(Path(folder) / "l", learner, decisions, settings) as loop,
        ):
            seconds = []
            for learners in ((), (other,)):
                before = time.process_time()
                loop.evaluate(*learners)
                seconds.append(round(time.process_time() - before, 2))
        told[learner] = {"alone": seconds[0], f"with {other}": seconds[1]}
        console.print(learner, told[learner])
    record("evaluate_speed", told)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--searches", type=int, default=SEARCHES)
    parser.add_argument("--speed", action="store_true", help="measure the time of an evaluation alone")
    parser.add_argument("--decisions", type=int, default=100_000, help="of --speed")
    asked = parser.parse_args()
    console = Console()
    if asked.speed:
        speed(console, asked.decisions)
        return
    if asked.folder is None:
        parser.error("FOLDER: expected the folder of MQ2008, or --speed")
    train = load_letor(*(asked.folder / f"S{i}.txt.gz" for i in range(1, 5)))
    held = load_letor(asked.folder / "S5.txt.gz", n_features=46)
    console.print(f"the caller's order: NDCG@10 {ndcg(held, np.array([0.0] * 46 + [1.0])):.3f}")
    quality, seconds = [], []
    told: dict[str, list[list[Value]]] = {name: [] for name in MEASURES}
    for seed in range(asked.runs):
        with tempfile.TemporaryDirectory() as folder, searches(train, asked.searches, seed, Path(folder) / "l") as loop:
            before = time.process_time()
            found = loop.evaluate(*LEARNERS)
            seconds.append(time.process_time() - before)
        for name in MEASURES:
            told[name].append([value for each in found.learners for value in each.values if value.measure == name])
        quality.append([ndcg(held, np.array(list(each.weights.values()))) for each in found.learners])
        console.print(seed, np.round(quality[-1], 3), f"{seconds[-1]:.1f} s")
    q = np.array(quality).mean(axis=0)
    table = Table("learner", "NDCG@10", "measure", "value", "interval holds", "worse", "better", "needed")
    rows = []
    for j, learner in enumerate(LEARNERS):
        for name in MEASURES:
            each = [run[j] for run in told[name]]
            v = np.array([value.value for value in each], float)
            others = (np.nansum(v) - v) / max(asked.runs - 1, 1)
            holds = [(value.low or 0.0) <= other <= (value.high or 1.0) for value, other in zip(each, others)]
            verdicts = [value.verdict for value in each]
            needed = float(np.median([value.decisions_needed or np.inf for value in each]))
            same = name == MEASURES[0]  # the other is of as many places as a run knows the examination of
            row = {
                "learner": learner, "ndcg": float(q[j]), "measure": name, "value": float(np.nanmean(v)),
                "holds": float(np.mean(holds)) if same else None,
                "worse": verdicts.count("worse"), "better": verdicts.count("better"),
                "needed": needed if np.isfinite(needed) else None,
            }  # fmt: skip
            rows.append(row)
            table.add_row(learner, f"{q[j]:.3f}", name, f"{v.mean():.3f}", f"{row['holds']:.2f}" if same else "",
                          f"{row['worse']}", f"{row['better']}", f"{needed:,.0f}")  # fmt: skip
    console.print(table)
    folder = Path(__file__).resolve().parent / "results" / "evaluate"
    folder.mkdir(exist_ok=True)
    record(f"evaluate/{asked.searches}", {"seed": SEED, "runs": asked.runs, "learners": rows, "seconds": seconds})


if __name__ == "__main__":
    main()
