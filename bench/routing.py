"""What a loop of routes learns from N thumbs, and whether the values that `evaluate` claims of policies are right.

`python bench/routing.py` writes bench/results/routing.json. Four models cost 0.2, 1, 3 and 10, the cost weight is 0.03.
Prompts belong to six topics. A thumb up for the dearest model has the probability 0.9; for each other 0.88 on the
topics that it is good at (a third, a half, two thirds of them, drawn with each seed), and 0.25 on the rest. A prompt
comes as an embedding of 64 numbers of length 1 (a direction of its topic, one that all share, and noise), or as ten
words, half of them of its topic. 50 people give one thumb each in turn.

- **What is learned**: the value (probability of a thumb up less cost weight times cost) of the model that the loop
  would choose for 300 new prompts after 100, 300, 1,000 and 3,000 thumbs, as a share of the way from the best single
  model (0) to the best model for each topic (1); and of the models that were shown on the way, tries and control
  included.
- **What is claimed**: after 1,000 and 3,000 thumbs, how often the 95 % interval that `evaluate` gives for the value
  of the loop's own learner and of policies that were not shown (cheapest, always one model) has the truth in it, how
  wide it is, and how often there is none.

- **Long embeddings**: the first figure after 1,000 thumbs, for embeddings of 384 and 1,536 numbers.
- **Where most thumbs are down**: the first figure where every probability of a thumb up, and the cost weight, is a
  fifth of that, so that at most 18 % are up.

`--seeds N` takes other than 12 of either kind of prompts; `--quick` takes 1, up to 300 thumbs, and writes nothing.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from machine import record
from rich.console import Console
from rich.table import Table

from heedful import Loop, Settings
from heedful.loop.interactions.routing.table import embeddings

COSTS = {"tiny": 0.2, "small": 1.0, "medium": 3.0, "large": 10.0}
WEIGHT, TOPICS, SIZE, PEOPLE, FRESH = 0.03, 6, 64, 50, 300
LONG = (384, 1536)
LOOKS, CLAIMS = (100, 300, 1000, 3000), (1000, 3000)
Rng = np.random.Generator


class World:
    """Prompts of topics, and how good each model is at each topic."""

    def __init__(self, kind: str, rng: Rng, size: int = SIZE, up: float = 1.0) -> None:
        self.kind, self.size = kind, size
        good = rng.random((TOPICS, 3)) < np.array([1 / 3, 1 / 2, 2 / 3])
        self.thumb = up * np.column_stack([np.where(good, 0.88, 0.25), np.full(TOPICS, 0.9)])
        self.value = self.thumb - up * WEIGHT * np.array(list(COSTS.values()))
        directions = rng.standard_normal((TOPICS + 1, size))
        self.directions = directions / np.linalg.norm(directions, axis=1, keepdims=True)

    def prompt(self, rng: Rng) -> tuple[int, dict[str, Any]]:
        """Return (a topic, the context of a request for a prompt of it)."""
        topic = int(rng.integers(TOPICS))
        if self.kind == "embedding":
            e = self.directions[topic] + self.directions[-1] + rng.standard_normal(self.size) / np.sqrt(self.size)
            return topic, {"embedding": (e / np.linalg.norm(e)).tolist()}
        own, shared = rng.integers(40, size=5), rng.integers(200, size=5)
        return topic, {"prompt": " ".join([f"topic{topic}word{j}" for j in own] + [f"word{j}" for j in shared])}


def run(kind: str, seed: int, most: int, size: int = SIZE, up: float = 1.0) -> dict[str, Any]:
    """One loop that gets `most` thumbs; what is known of it at each look."""
    rng = np.random.default_rng(seed)
    world, names = World(kind, rng, size, up), list(COSTS)
    fresh = [world.prompt(np.random.default_rng([seed, 1, i])) for i in range(FRESH)]
    truth = {"cheapest": world.value[:, 0].mean()} | {
        f"always:{name}": world.value[:, j].mean() for j, name in enumerate(names)
    }
    found: dict[str, Any] = {"learned": {}, "shown": {}, "claims": []}
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        items = [{"id": name, "cost": cost} for name, cost in COSTS.items()]
        context = embeddings(size) if kind == "embedding" else None
        settings = Settings(cost_weight=up * WEIGHT, seed=seed)
        path = Path(folder) / "l"
        with Loop.create(path, items=items, settings=settings, context=context) as loop:
            shown, own = [], []
            for i in range(most):
                topic, about = world.prompt(rng)
                own.append(world.value[topic, names.index(loop.rank(context=about)[0])])
                decision = loop.decide(context=about, id=f"d{i}", person=f"p{i % PEOPLE}")
                j = names.index(decision.shown[0])
                shown.append(world.value[topic, j])
                loop.feedback(decision.id, thumb="up" if rng.random() < world.thumb[topic, j] else "down")
                if i + 1 in LOOKS:
                    chosen = [world.value[k, names.index(loop.rank(context=each)[0])] for k, each in fresh]
                    base = max(truth.values())
                    way = world.value.max(axis=1).mean() - base
                    best = np.mean([world.value[k].max() for k, _ in fresh])
                    alone = max(np.mean([world.value[k, j] for k, _ in fresh]) for j in range(len(names)))
                    found["learned"][i + 1] = float((np.mean(chosen) - alone) / (best - alone))
                    found["shown"][i + 1] = float((np.mean(shown) - base) / way)
                if i + 1 in CLAIMS and size == SIZE and up == 1.0:
                    found["claims"] += claims(loop, truth | {"own": float(np.mean(own))}, i + 1)
    return found


def claims(loop: Loop, truth: Mapping[str, float], n: int) -> list[dict[str, Any]]:
    """What `evaluate` says of the value of each policy, next to the truth."""
    told = loop.evaluate()
    at = [each.name for each in told.measures].index("value")
    rows = []
    for each in told.learners:
        policy = each.learner if each.learner in truth else "own"
        value = each.values[at]
        row = {"thumbs": n, "policy": policy, "truth": float(truth[policy]), "value": value.value}
        rows.append(row | {"low": value.low, "high": value.high})
    return rows


def main() -> None:
    """Run all seeds, print and write what came out."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args()
    seeds, most = (1, 300) if chosen.quick else (chosen.seeds, LOOKS[-1])
    results: dict[str, Any] = {"seeds": seeds}
    for kind in ("embedding", "words"):
        results[kind] = [run(kind, seed, most) for seed in range(seeds)]
        show(kind, results[kind])
    results["long embeddings"] = long_ones(seeds, min(most, 1000))
    results["mostly down"] = mostly_down(seeds, most)
    if not chosen.quick:
        record("routing", results)


def mostly_down(seeds: int, most: int) -> dict[str, list[float]]:
    """Print and return what the loop would choose where a fifth as many thumbs are up: (mean, standard error) after so
    many thumbs, and of the model that it would choose before any, the first of the table."""
    runs = [run("embedding", seed, most, up=0.2) for seed in range(seeds)]
    for seed, each in enumerate(runs):
        value = World("embedding", np.random.default_rng(seed), up=0.2).value
        best, alone = value.max(axis=1).mean(), value.mean(axis=0)
        each["learned"] = {0: (alone[0] - alone.max()) / (best - alone.max())} | each["learned"]
    table, rows = Table(title="most thumbs are down"), {}
    for column in ("thumbs", "would choose", "standard error"):
        table.add_column(column, justify="right")
    for look in runs[0]["learned"]:
        found = np.array([each["learned"][look] for each in runs])
        error = found.std(ddof=1) / np.sqrt(found.size) if found.size > 1 else float("nan")
        rows[f"{look:,}"] = [round(float(found.mean()), 3), round(float(error), 3)]
        table.add_row(f"{look:,}", f"{found.mean():.2f}", f"{error:.2f}")
    Console().print(table)
    return rows


def long_ones(seeds: int, most: int) -> list[dict[str, Any]]:
    """Print and return what is learned from long embeddings."""
    table, rows = Table(title=f"after {most:,} thumbs"), []
    for column in ("numbers", "would choose", "standard error"):
        table.add_column(column, justify="right")
    for size in LONG:
        found = np.array([run("embedding", seed, most, size)["learned"][most] for seed in range(seeds)])
        rows.append({"size": size, "learned": found.tolist()})
        error = found.std(ddof=1) / np.sqrt(found.size) if found.size > 1 else float("nan")
        table.add_row(f"{size:,}", f"{found.mean():.2f}", f"{error:.2f}")
    Console().print(table)
    return rows


def show(kind: str, runs: list[dict[str, Any]]) -> None:
    """Print the tables of one kind of prompts."""
    console, table = Console(), Table(title=f"prompts as {kind}: share of the way to the best model for each topic")
    for column in ("thumbs", "would choose", "standard error", "was shown"):
        table.add_column(column, justify="right")
    for n in runs[0]["learned"]:
        learned, shown = (np.array([each[name][n] for each in runs]) for name in ("learned", "shown"))
        error = learned.std(ddof=1) / np.sqrt(learned.size) if learned.size > 1 else float("nan")
        table.add_row(f"{n:,}", f"{learned.mean():.2f}", f"{error:.2f}", f"{shown.mean():.2f}")
    console.print(table)
    groups = defaultdict(list)
    for row in (row for each in runs for row in each["claims"]):
        groups[row["thumbs"], row["policy"]].append(row)
    table = Table(title=f"prompts as {kind}: 95 % intervals of values that are claimed")
    for column in ("thumbs", "policy", "intervals", "hold the truth", "mean width", "mean error", "refused"):
        table.add_column(column, justify="right")
    for (n, policy), rows in groups.items():
        said = [row for row in rows if row["low"] is not None]
        hold = sum(row["low"] <= row["truth"] <= row["high"] for row in said)
        width = np.mean([row["high"] - row["low"] for row in said]) if said else float("nan")
        error = np.mean([abs(row["value"] - row["truth"]) for row in said]) if said else float("nan")
        counts = f"{len(said)}", f"{hold}", f"{width:.2f}", f"{error:.3f}", f"{len(rows) - len(said)}"
        table.add_row(f"{n:,}", policy, *counts)
    console.print(table)


if __name__ == "__main__":
    main()
