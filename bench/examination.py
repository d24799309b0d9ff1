"""How right the values of clicks weighted by examination are, and how many searches it takes to tell two rankers.

`python bench/examination.py FOLDER [--studies 400] [--only NAME]` (FOLDER holds S1.txt.gz to S5.txt.gz of LETOR 4.0's
MQ2008) writes bench/results/examination/CELL.json, a file a cell; cells that are there are skipped. The rankers are
fixed: a good one (least squares on the labels of S1 to S4) and a bad one (of 60 random ones the nearest to NDCG@10 =
.35 on S5). In a study one of them, or BM25, serves n searches of the queries of S1 to S4, in lists of ten in which
neighbours are swapped at random (.25, and .5 in some cells), to n people or to 100 of whom some search much more
than others. People click what they look at with probability .1 for a document of no relevance, .4 and 1 for labels of 1
and 2. They look at position i with probability 1/i, or .75^i, or as above and below a fold; or they read from the top
and stop after most clicks (cascade), which the measure does not allow for.

Said and right: how often the 95 % interval of the difference of the two rankers, that of the good one's value, and that
of the examination of the second place hold the true one. Told: how often the interval of the difference leaves out 0 on
the right side, or on the wrong one, by this measure and by swapped pairs (whose interval holds at all looks). Errors
apart is the mean difference over its standard deviation between studies: with the examination estimated, if it were
known, and by swapped pairs. Needed is the median number of searches that a study says it takes.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from machine import ROOT, description
from rich.console import Console
from rich.table import Table

from heedful.data.letor import Queries, load_letor
from heedful.evaluation import examination
from heedful.evaluation.ratio import ratio

K, BM25, SEED = 10, 24, 629_976_868
DEPTH = K + 1
ALPHA = 0.05
EYES = {
    "1/i": 1.0 / np.arange(1.0, K + 1.0),
    ".75^i": 0.75 ** np.arange(K),
    "fold": np.array([1.0, 0.85, 0.75, 0.65, 0.3, 0.27, 0.25, 0.22, 0.2, 0.18]),
}
CLICKED = np.array([0.1, 0.4, 1.0])
STOP = 0.7


class Cell(NamedTuple):
    """What a study is of: who serves, how many searches, how people look, whether they come back, how often
    neighbours are swapped."""

    serves: str
    searches: int
    eyes: str
    people: str
    swap: float = 0.25

    @property
    def name(self) -> str:
        return f"{self.serves} {self.searches} {self.eyes.replace('/', '_')} {self.people} {self.swap}"


CELLS = [
    *(Cell(s, n, "1/i", "new") for s in ("good", "bm25", "bad") for n in (1_000, 4_000)),
    *(Cell(s, 4_000, eyes, "new") for s in ("good", "bad") for eyes in (".75^i", "fold", "cascade")),
    *(Cell(s, 4_000, "1/i", "100") for s in ("good", "bad")),
    *(Cell(s, 1_000, "1/i", "new", 0.5) for s in ("good", "bm25", "bad")),
    *(Cell(s, 12_000, "1/i", "new") for s in ("good", "bm25", "bad")),
]


class Lists(NamedTuple):
    """The first DEPTH documents of each query by the ranker that serves: labels, -1 beyond the last, and the scores of
    the good and of the bad ranker."""

    labels: Any  # (Q, DEPTH)
    scores: Any  # (Q, DEPTH, 2)


def ndcg(data: Queries, w: Any) -> float:
    """Return the mean NDCG@10 of the queries with a relevant document."""
    found = []
    for a, b in zip(data.offsets, data.offsets[1:]):
        gains = 2.0 ** data.labels[a:b] - 1.0
        if gains.any():
            order = np.argsort(-(data.X[a:b] @ w), kind="stable")[:K]
            discounts, best = 1.0 / np.log2(np.arange(K) + 2.0), np.sort(gains)[::-1][:K]
            found.append(gains[order] @ discounts[: order.size] / (best @ discounts[: best.size]))
    return float(np.mean(found))


def rankers(train: Queries, held: Queries) -> dict[str, Any]:
    """Return the weights of the rankers, by name."""
    x, y = train.X, train.labels.astype(float)
    n = x.shape[1]
    good = np.linalg.solve(x.T @ x + 10.0 * np.eye(n), x.T @ (y - y.mean()))
    some = np.random.default_rng(SEED).standard_normal((60, n))
    bad = min(some, key=lambda w: abs(ndcg(held, w) - 0.35))
    return {"good": good, "bm25": np.eye(n)[BM25], "bad": bad}


def lists(train: Queries, weights: dict[str, Any], serves: str) -> Lists:
    labels, scores = [], []
    for a, b in zip(train.offsets, train.offsets[1:]):
        if not train.labels[a:b].any():
            continue
        order = a + np.argsort(-(train.X[a:b] @ weights[serves]), kind="stable")[:DEPTH]
        rest = DEPTH - order.size
        labels.append(np.pad(train.labels[order].astype(int), (0, rest), constant_values=-1))
        both = train.X[order] @ np.stack([weights["good"], weights["bad"]], axis=1)
        scores.append(np.pad(both, ((0, rest), (0, 0)), constant_values=-np.inf))
    return Lists(np.array(labels), np.array(scores))


class Study(NamedTuple):
    """n lists: relevance of what was shown (n, K), what each ranker puts before each item (n, K, 2), weights of the
    random pairs that begin at each place (n, K)."""

    liked: Any
    above: Any
    pairs: Any


def shown(each: Lists, n: int, swap: float, rng: Any) -> Study:
    """Return n lists of random queries, with neighbours swapped as by the posterior."""
    q, start = rng.integers(len(each.labels), size=n), rng.integers(2, size=n)
    order, labels = np.tile(np.arange(DEPTH), (n, 1)), each.labels[q]
    pairs = np.zeros((n, DEPTH))
    for i in range(DEPTH - 1):
        there = (start == i % 2) & (labels[:, i + 1] >= 0)
        swapped = there & (rng.random(n) < swap)
        order[swapped, i], order[swapped, i + 1] = i + 1, i
        pairs[:, i] = np.where(there, 0.5 / np.where(swapped, swap, 1.0 - swap), 0.0)
    order = order[:, :K]
    labels = np.take_along_axis(labels, order, 1)
    scores = np.take_along_axis(each.scores[q], order[:, :, None], 1)
    ahead = scores[:, None, :, :] > scores[:, :, None, :]  # (n, item, other, ranker)
    above = (ahead * (1 << np.arange(K))[:, None]).sum(axis=2)
    pairs = pairs[:, :K].copy()
    pairs[:, K - 1] = 0.0  # the lower one is not seen
    return Study(np.where(labels >= 0, CLICKED[np.maximum(labels, 0)], 0.0), above, pairs)


def clicked(study: Study, eyes: str, rng: Any) -> Any:
    """Return what people click (n, K)."""
    n = len(study.liked)
    if eyes != "cascade":
        return rng.random((n, K)) < EYES[eyes] * study.liked
    wants = rng.random((n, K)) < study.liked
    stops = wants & (rng.random((n, K)) < STOP)
    before = np.cumsum(stops, axis=1) - stops
    return wants & (before == 0)


def truth(each: Lists, swap: float) -> Any:
    """Return (K + 1, 2): the values of both rankers if examination is known down to each number of places."""
    study = shown(each, 200_000, swap, np.random.default_rng(SEED + 1))
    found = np.zeros((K + 1, 2))
    for places in range(1, K + 1):
        ranks = np.bitwise_count(study.above[:, :places] & ((1 << places) - 1))
        liked = study.liked[:, :places, None]
        found[places] = (liked / np.log2(2.0 + ranks)).sum(axis=(0, 1)) / liked.sum()
    return found


def visitors(people: str, n: int, rng: Any) -> Any:
    """Return who searches (n,): everybody once, or 100 people by a Pareto distribution."""
    if people == "new":
        return np.arange(n)
    share = rng.pareto(1.5, 100) + 0.1
    return rng.choice(100, n, p=share / share.sum())


def look(cell: Cell, each: Lists, true: Any, seed: int) -> dict[str, float]:
    """Return what one study says."""
    rng = np.random.default_rng([SEED, CELLS.index(cell), seed])
    study = shown(each, cell.searches, cell.swap, rng)
    clicks, who = clicked(study, cell.eyes, rng), visitors(cell.people, cell.searches, rng)
    lower = np.hstack([np.zeros((cell.searches, 1)), study.pairs[:, :-1]])
    t, place = np.nonzero(clicks)
    weight = 1.0 / np.bincount(who)[who[t]]
    made = examination.Clicks(who[t], place, study.pairs[t, place], lower[t, place], study.above[t, place], weight)
    places = examination.reliable_places(made)
    row = pairs_of(study, clicks, who)
    if cell.eyes in EYES:
        _, *ends = examination.neighbour_ratio(made, 0, ALPHA)
        row["examination holds"] = ends[0] <= EYES[cell.eyes][1] <= ends[1]
    found = examination.estimate(made, places) if places > 1 else None
    if found is None:
        return row
    gap, goal = found.values[0] - found.values[1], true[places, 0] - true[places, 1]
    low, high = examination.interval(gap, found.gap_errors[1], found.freedom, ALPHA)
    ends = examination.interval(found.values[0], found.errors[0], found.freedom, ALPHA)
    row |= {
        "places": places, "gap": gap, "true": goal, "error": found.gap_errors[1],
        "holds": low <= goal <= high, "value holds": ends[0] <= true[places, 0] <= ends[1],
        "right": low > 0.0, "wrong": high < 0.0, "needed": cell.searches * ((high - gap) / gap) ** 2,
    }  # fmt: skip
    if cell.eyes in EYES:
        there = made.place < places
        w = made.weight[there] / EYES[cell.eyes][made.place[there]]
        gains = 1.0 / np.log2(2.0 + np.bitwise_count(made.above[there] & ((1 << places) - 1)))
        row["known"] = float(w @ (gains[:, 0] - gains[:, 1]) / w.sum())
    return row


def pairs_of(study: Study, clicks: Any, who: Any) -> dict[str, float]:
    """Return what swapped pairs say of the difference, with an interval as `Loop.evaluate` makes it."""
    people = int(who.max()) + 1
    sums = np.zeros((4, people))
    for i in range(K - 1):
        one = (study.pairs[:, i] > 0.0) & (clicks[:, i] != clicks[:, i + 1])
        w = study.pairs[one, i]
        lower_ahead = study.above[one, i] >> (i + 1) & 1  # (pairs, 2)
        agrees = np.where(clicks[one, i, None], 1 - lower_ahead, lower_ahead)
        for j, part in enumerate((np.ones(w.size), w, w * agrees[:, 0], w * agrees[:, 1])):
            sums[j] += np.bincount(who[one], part, people)
    n, whole, good, bad = sums[:, sums[0] > 0.0]
    whole, good, bad = whole / n, good / n, bad / n
    most = 0.5 / min(study.pairs[study.pairs > 0.0].min(), 1.0)
    most = max(float(study.pairs.max()), most)
    value, low, high = ratio((whole + good - bad) / 2.0, whole, most, ALPHA)
    return {
        "pairs gap": 2.0 * value - 1.0,
        "pairs right": 2.0 * low - 1.0 > 0.0,
        "pairs wrong": 2.0 * high - 1.0 < 0.0,
        "pairs needed": len(who) * ((value - low) / max(abs(value - 0.5), 1e-9)) ** 2,
    }


def summary(rows: list[dict[str, float]]) -> dict[str, Any]:
    """Return means over studies, with standard errors where they are of shares."""
    found: dict[str, Any] = {"studies": len(rows), "refused": sum("gap" not in row for row in rows)}
    for key in ("holds", "value holds", "examination holds", "right", "wrong", "pairs right", "pairs wrong"):
        told = [float(row[key]) for row in rows if key in row]
        p = float(np.mean(told)) if told else math.nan
        found[key] = [round(p, 4), round(math.sqrt(p * (1.0 - p) / max(len(told), 1)), 4)]
    for key in ("places", "needed", "pairs needed"):
        found[key] = float(np.median([row[key] for row in rows if key in row] or [math.nan]))
    told = [row for row in rows if "gap" in row]
    for key in ("gap", "true", "error", "pairs gap"):
        found[key] = round(float(np.mean([row[key] for row in rows if key in row] or [math.nan])), 4)
    spread = {key: float(np.std([row[key] for row in told if key in row], ddof=1)) for key in ("gap", "known")
              if sum(key in row for row in told) > 1}  # fmt: skip
    pairs = float(np.std([row["pairs gap"] for row in rows], ddof=1))
    found["standard errors apart"] = {
        "examination estimated": round(found["gap"] / spread["gap"], 1) if "gap" in spread else None,
        "examination known": round(float(np.mean([r["known"] for r in told])) / spread["known"], 1)
        if "known" in spread else None,
        "swapped pairs": round(found["pairs gap"] / pairs, 1),
    }  # fmt: skip
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("--only", help="cells whose name contains this")
    parser.add_argument("--quick", action="store_true", help="20 studies a cell; nothing is written")
    asked = parser.parse_args()
    console = Console(width=170)
    train = load_letor(*(asked.folder / f"S{i}.txt.gz" for i in range(1, 5)))
    held = load_letor(asked.folder / "S5.txt.gz", n_features=46)
    weights = rankers(train, held)
    quality = {name: round(ndcg(held, w), 3) for name, w in weights.items()}
    console.print("NDCG@10 on S5:", quality)
    folder = ROOT / "bench" / "results" / "examination"
    folder.mkdir(exist_ok=True)
    shares = ("holds", "value holds", "examination holds", "right", "wrong", "pairs right", "pairs wrong")
    table = Table("cell", "studies", "places", "said .95: right", "value", "examination", "told", "wrong",
                  "pairs told", "wrong", "errors apart", "known", "pairs", "needed", "pairs")  # fmt: skip
    for cell in CELLS:
        path = folder / f"{cell.name}.json"
        if asked.only and asked.only not in cell.name:
            continue
        if asked.quick or not path.exists():
            each = lists(train, weights, cell.serves)
            true = truth(each, cell.swap)
            rows = [look(cell, each, true, seed) for seed in range(20 if asked.quick else asked.studies)]
            found = {"machine": description(), "NDCG@10": quality, "cell": cell._asdict(), **summary(rows)}
            if not asked.quick:
                path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
        else:
            found = json.loads(path.read_text())
        apart = found["standard errors apart"]
        told = [f"{found[key][0]:.3f} ({found[key][1]:.3f})" for key in shares]
        table.add_row(cell.name, f"{found['studies']}", f"{found['places']:.0f}", *told, *map(str, apart.values()),
                      f"{found['needed']:,.0f}", f"{found['pairs needed']:,.0f}")  # fmt: skip
    console.print(table)


if __name__ == "__main__":
    main()
