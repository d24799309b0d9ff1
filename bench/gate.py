"""How often the gate lets a candidate through: whole loops, from the first decision to the promotion.

`python bench/gate.py` writes bench/results/gate.json. Each run is a loop of its own, in a folder: a learner with fixed
weights serves, a candidate with other fixed weights is interleaved with it, and people click on one of what they are
shown by their tastes, more often on what stands first, or on nothing. After every LOOK lists somebody looks, and
promotes the candidate if the gate lets them, so it is looked at many times; the run ends with the promotion or after
SESSIONS lists. A candidate that ranks by the opposite of people's taste is worse, one that ranks by a feature that
tastes have no part in is equal, as such a feature serves, and one that has part of their taste is better.

`--runs N` sets the number of runs of each candidate (1,000), `--processes N` how many are under way at a time (2);
`--quick` takes 20 and writes nothing. A run takes .3 to 1.5 s of processor time.
"""

from __future__ import annotations

import argparse
import math
import shutil
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from machine import record
from rich.console import Console
from rich.progress import track
from rich.table import Table

from heedful import Loop, Settings, infer

PEOPLE, SESSIONS, LOOK, SHOWN, FEATURES, ITEMS = 60, 300, 25, 5, 4, 12
SERVING = (0.0, 1.0, 0.0, 0.0)
"""The weights of the learner that serves: a feature that nobody's taste depends on."""
CANDIDATES = {
    "worse": (-0.25, 1.0, 0.0, 0.0),
    "equal": (0.0, 0.0, 1.0, 0.0),
    "slightly better": (0.25, 1.0, 0.0, 0.0),
    "better": (0.5, 1.0, 0.0, 0.0),
    "much better": (1.0, 1.0, 0.0, 0.0),
}
"""The weights of the candidates; people like the first feature."""
FIXED = f"{Path(__file__).resolve().parent / 'fixed_weights.py'}:FixedWeights"


def spec(weights: tuple[float, ...]) -> str:
    """Return a learner with these weights, by name."""
    return f"{FIXED}:" + ",".join(f"w{i}={w}" for i, w in enumerate(weights))


def drawn(rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return the candidates of one request, with features drawn at random."""
    x = rng.standard_normal((ITEMS, FEATURES))
    return [{"id": f"i{j}", **{f"f{i}": float(value) for i, value in enumerate(row)}} for j, row in enumerate(x)]


def run(folder: Path, weights: tuple[float, ...], seed: int) -> dict[str, Any]:
    """Return what became of one candidate: whether it was promoted, after how many lists, the share of lists it won."""
    rng = np.random.default_rng(seed)
    items = drawn(rng)
    kinds = {f"f{i}": "number" for i in range(FEATURES)}
    settings = Settings(control=0.0, durable="feedback", seed=seed)
    encoding = infer(items, identifier="id", kinds=kinds)
    sessions = 0
    with Loop.create(folder, encoding=encoding, learner=spec(SERVING), settings=settings) as loop:
        loop.start_experiment(spec(weights), share=1.0)
        taste = rng.normal(1.0, 0.5, PEOPLE)
        while sessions < SESSIONS:
            who = int(rng.integers(PEOPLE))
            candidates = drawn(rng)  # others each time: a feature that nobody likes is worth nothing, in any run
            utility = {row["id"]: row["f0"] for row in candidates}
            made = loop.decide(candidates, person=f"p{who}", show=SHOWN)
            score = taste[who] * np.array([utility[name] for name in made.shown]) - 0.5 * np.arange(SHOWN)
            chance = np.exp(score - score.max())
            clicked = made.shown[int(rng.choice(SHOWN, p=chance / chance.sum()))]
            loop.feedback(made.id, **({"clicks": [clicked]} if rng.random() < 0.6 else {"none": True}))
            sessions += 1
            if sessions % LOOK == 0 and loop.experiment().ready:
                loop.promote()
                break
        found = loop.experiment()
        promoted = loop.manifest.learner != spec(SERVING)
    return {"promoted": promoted, "sessions": sessions, "share": found.verdict.share}


def in_folder(weights: tuple[float, ...], seed: int) -> dict[str, Any]:
    """Return what became of one candidate, in a folder of its own, in memory if the machine has such a place."""
    folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    try:
        return run(folder / "loop", weights, seed)
    finally:
        shutil.rmtree(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="20 runs; nothing is written")
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    most, screen = 20 if asked.quick else asked.runs, Console()
    results: dict[str, dict[str, Any]] = {}
    for name, weights in CANDIDATES.items():
        with ProcessPoolExecutor(asked.processes) as pool:
            each = pool.map(partial(in_folder, weights), range(most))
            found = list(track(each, name, total=most, console=screen))
        promoted = np.array([each["promoted"] for each in found])
        lengths = [each["sessions"] for each in found if each["promoted"]]
        results[name] = {
            "runs": most,
            "promoted": round(float(promoted.mean()), 4),
            "standard error": round(math.sqrt(promoted.mean() * (1.0 - promoted.mean()) / most), 4),
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
