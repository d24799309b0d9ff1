"""How often the gate lets a candidate through: whole loops, from the first decision to the promotion.

`python bench/gate.py` writes bench/results/gate.json. Each run is a loop of its own, in a folder: a learner with fixed
weights serves, a candidate with other fixed weights is interleaved with it for half of the people, who click on one of
what they are shown by their tastes, more often on what stands first, or on nothing. After every LOOK lists of people
who take part, somebody looks and promotes the candidate if the gate lets them, so it is looked at many times; the run
ends with the promotion or after SESSIONS lists. A candidate that promotes the opposite of people's taste is worse, one
that ranks in an order of its own that tastes have no part in is equal, one that has part of their taste is better.

`--runs N` sets the number of runs of each (1,000); `--quick` takes 20 and writes nothing.
"""

from __future__ import annotations

import argparse
import math
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from machine import record
from rich.console import Console
from rich.progress import track
from rich.table import Table

from heedful import Loop, Settings, infer

PEOPLE, SESSIONS, LOOK, SHOWN, FEATURES, ITEMS = 60, 300, 25, 5, 4, 30
SERVING = (0.0, 1.0, 0.0, 0.0)
"""The weights of the learner that serves: a feature that nobody's taste depends on."""
CANDIDATES = {
    "much worse": (-2.0, 1.0, 0.0, 0.0),
    "worse": (-0.5, 1.0, 0.0, 0.0),
    "equal": (0.0, 0.0, 1.0, 0.0),
    "slightly better": (0.25, 1.0, 0.0, 0.0),
    "better": (0.5, 1.0, 0.0, 0.0),
    "much better": (2.0, 1.0, 0.0, 0.0),
}
"""The weights of the candidates; people like the first feature."""
FIXED = f"{Path(__file__).resolve().parent / 'fixed_weights.py'}:FixedWeights"


def spec(weights: tuple[float, ...]) -> str:
    """Return a learner with these weights, by name."""
    return f"{FIXED}:" + ",".join(f"w{i}={w}" for i, w in enumerate(weights))


def run(folder: Path, weights: tuple[float, ...], seed: int) -> dict[str, Any]:
    """Return what became of one candidate: whether it was promoted, after how many lists, the share of lists it won."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((ITEMS, FEATURES))
    items = [{"id": f"i{j}", **{f"f{i}": float(value) for i, value in enumerate(row)}} for j, row in enumerate(x)]
    kinds = {f"f{i}": "number" for i in range(FEATURES)}
    settings = Settings(control=0.0, durable="feedback", seed=seed)
    encoding = infer(items, identifier="id", kinds=kinds)
    utility = {row["id"]: row["f0"] for row in items}
    sessions = 0
    with Loop.create(folder, encoding=encoding, items=items, learner=spec(SERVING), settings=settings) as loop:
        loop.start_experiment(spec(weights), share=0.5)
        taste = rng.normal(1.0, 0.5, PEOPLE)
        while sessions < SESSIONS:
            who = int(rng.integers(PEOPLE))
            candidates = [f"i{j}" for j in rng.choice(ITEMS, 12, replace=False)]
            made = loop.decide(candidates, person=f"p{who}", show=SHOWN)
            score = taste[who] * np.array([utility[name] for name in made.shown]) - 0.5 * np.arange(SHOWN)
            chance = np.exp(score - score.max())
            clicked = made.shown[int(rng.choice(SHOWN, p=chance / chance.sum()))]
            loop.feedback(made.id, **({"clicks": [clicked]} if rng.random() < 0.6 else {"none": True}))
            if made.arm != "interleaved":
                continue
            sessions += 1
            if sessions % LOOK == 0 and loop.experiment().ready:
                loop.promote()
                break
        found = loop.experiment()
        promoted = loop.manifest.learner != spec(SERVING)
    return {"promoted": promoted, "sessions": sessions, "share": found.verdict.share}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="20 runs; nothing is written")
    parser.add_argument("--runs", type=int, default=1_000)
    asked = parser.parse_args()
    runs, screen = 20 if asked.quick else asked.runs, Console()
    results: dict[str, dict[str, Any]] = {}
    for name, weights in CANDIDATES.items():
        found = []
        for seed in track(range(runs), f"{name}", console=screen):
            folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
            try:
                found.append(run(folder / "loop", weights, seed))
            finally:
                shutil.rmtree(folder)
        promoted = np.array([each["promoted"] for each in found])
        lengths = [each["sessions"] for each in found if each["promoted"]]
        results[name] = {
            "runs": runs,
            "promoted": round(float(promoted.mean()), 4),
            "standard error": round(math.sqrt(promoted.mean() * (1.0 - promoted.mean()) / runs), 4),
            "median lists until then": int(np.median(lengths)) if lengths else None,
            "share of decided lists won": round(float(np.mean([each["share"] for each in found])), 4),
        }
    table = Table("candidate", "promoted", "standard error", "median lists", "share won")
    for name, row in results.items():
        table.add_row(name, *(str(value) for key, value in row.items() if key != "runs"))
    screen.print(table)
    if not asked.quick:
        record("gate", results)


if __name__ == "__main__":
    main()
