"""Cars that nobody ever built, the same every time; loops over them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np

from heedful import Loop, Settings, infer

MAKERS = ("Alba", "Borealis", "Cima", "Dorado", "Esker", "Fjord", "Gala", "Hesper")
MODELS = ("Roadster", "Wagon", "Mini", "Coupe", "Estate", "Grand", "Sprint", "Pickup", "Saloon", "Van")
NUMBERS = ("horsepower", "weight", "miles per gallon", "seconds to 60", "year")


def cars(n: int = 60, seed: int = 5) -> list[dict[str, Any]]:
    """n cars: heavy ones are strong and drink much, as it is."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(n):
        size = rng.uniform()
        found.append(
            {
                "name": f"{MAKERS[i % len(MAKERS)]} {MODELS[i // len(MAKERS) % len(MODELS)]} {100 + i}",
                "horsepower": int(50 + 150 * size + 15 * rng.standard_normal()),
                "weight": int(1700 + 2800 * size + 150 * rng.standard_normal()),
                "miles per gallon": round(float(42 - 28 * size + 3 * rng.standard_normal()), 1),
                "seconds to 60": round(float(22 - 9 * size + rng.standard_normal()), 1),
                "year": int(1970 + rng.integers(13)),
                "origin": ("Europe", "Japan", "USA")[rng.integers(3)],
            }
        )
    return found


def loop_of_cars(path: Path, n: int = 60, learner: str = "posterior:swap=0", **settings: Any) -> Path:
    """A new loop in the folder `path` over n cars, one list in ten left alone unless `settings` say otherwise."""
    items = cars(n)
    encoding = infer(items, identifier="name", kinds=dict.fromkeys(NUMBERS, "number") | {"origin": "category"})
    chosen = Settings(**{"control": 0.1, "exploration": 0.0, **settings})
    Loop.create(path, encoding=encoding, items=items, learner=learner, settings=chosen).close()
    return path


def copied(template: Path, path: Path) -> Path:
    """The same loop again, in the new folder `path`."""
    shutil.copytree(template, path)
    return path


def told(path: Path, *kinds: str) -> list[tuple[str, str]]:
    """(kind, id) of every event of these kinds in the log of a loop, in order; of all, where none are named."""
    with Loop.open(path) as loop:
        return [(event.kind, event.id) for event in loop.projection.log.events(kinds=kinds)]
