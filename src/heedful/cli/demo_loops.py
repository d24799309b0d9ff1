"""The data and loops of `heedful demo`: 406 cars, a loop to teach, and a loop that a simulated person has taught."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from heedful.cli.console import Failure, check_extra
from heedful.core.extras import lacking
from heedful.core.paths import path_kind

if TYPE_CHECKING:
    import numpy as np

    from heedful.features import Encoding
    from heedful.loop import Loop

CARS, SIMULATED = "cars", "simulated"

# Column of vega_datasets -> (its name here, words for a car with more of it, words for a car with less).
COLUMNS = {
    "Weight_in_lbs": ("weight in lb", "heavier", "lighter"),
    "Horsepower": ("horsepower", "more horsepower", "less horsepower"),
    "Miles_per_Gallon": ("miles per gallon", "more miles per gallon", "fewer miles per gallon"),
    "Acceleration": ("seconds to 60 mph", "slower to 60 mph", "quicker to 60 mph"),
    "Year": ("year", "newer", "older"),
}
WORDS = {name: (more, less) for name, more, less in COLUMNS.values()}
ORIGINS = {f"origin={place}": place for place in ("Europe", "Japan", "the USA")}
WORDS |= {feature: (f"from {place}", f"not from {place}") for feature, place in ORIGINS.items()}
"""(words for more, words for less) of each feature, on the pages and in the terminal."""

# Spelling mistakes in the file of vega_datasets, some made by a replacement of "acc" long ago.
MENDED = {
    "Accelerationord": "accord",
    "chevroelt": "chevrolet",
    "maxda": "mazda",
    "toyouta": "toyota",
    "vokswagen": "volkswagen",
    "mercedes benz": "mercedes-Benz",
    "mercedes-benz": "mercedes-Benz",
    "town @ country": "town & country",
}
CAPITALS = ("amc", "bmw", "gt", "ii", "iii", "vw")

CONTROL = 1 / 3
"""The share of lists of cars that are shuffled, for comparison (the control). It is more than usual: for most people,
thirty lists then tell whether learning helps; with 1 in 10 it would take a hundred."""
ENOUGH = 30
"""The number of lists after which that can be told for most people."""
LESSONS = 200
"""The number of lists that the simulated person answers."""
ALPHA = 0.5
"""Each answer gains at least this share of what could be gained: it is strictly alpha-informative."""
LISTED, TOP = 20, 5
"""The number of cars in a list for the simulated person, and of positions that count."""


def cars() -> list[dict[str, Any]]:
    """Return a row for each car, read from the installed package vega_datasets. Raise Failure if it is not there."""
    check_extra("vega_datasets", "demo", "the demo")
    package = importlib.util.find_spec("vega_datasets")
    file = Path(str(package and package.origin)).parent / "_data" / "cars.json"
    if path_kind(file) != "file":
        raise Failure(lacking("the demo", f"{file.name} of vega_datasets", "demo"))
    rows: dict[str, dict[str, Any]] = {}
    for car in json.loads(file.read_text(encoding="utf-8")):
        name = unique_name = f"{_spelling(car['Name'])} '{car['Year'][2:4]}"
        number = 1
        while unique_name in rows:  # three were sold in two makes that year
            unique_name = f"{name} ({(number := number + 1)})"
        year = int(car["Year"][:4])
        rows[unique_name] = {"name": unique_name} | {name: car[column] for column, (name, *_) in COLUMNS.items()}
        rows[unique_name] |= {"year": year, "origin": car["Origin"].replace("USA", "the USA")}
    return list(rows.values())


def _spelling(name: str) -> str:
    for wrong, right in MENDED.items():
        name = name.replace(wrong, right)
    return " ".join(word.upper() if word in CAPITALS else word[:1].upper() + word[1:] for word in name.split())


def encoding_of(rows: Sequence[dict[str, Any]]) -> Encoding:
    """Return the encoding inferred from the rows of a demo table, whose column `name` holds the items' names.

    No column gets a feature for missing values: the features of a missing value are 0, so it counts as average. Nor do
    numbers get logarithms, so that each column is one line on the pages.
    """
    import msgspec

    from heedful import infer

    inferred = infer(rows, identifier="name", kinds={name: "number" for name, *_ in COLUMNS.values()})
    columns = tuple(msgspec.structs.replace(column, missing=0) for column in inferred.columns)
    encoding: Encoding = msgspec.structs.replace(inferred, columns=columns)
    return encoding


def make_demo_loops(folder: Path) -> None:
    """Make the two loops of the demo in `folder`, unless they are there."""
    rows = cars()
    cars_loop(folder, rows, control=CONTROL)
    _make_whole(folder, SIMULATED, lambda making: _simulate(making, rows))


def cars_loop(folder: Path, rows: Sequence[dict[str, Any]], control: float) -> None:
    """Make the loop `cars` of the demo, which has learned nothing yet, in `folder`, unless it is there.

    `rows` are the cars; `control` is the share of lists that are not in the learned order, for comparison.
    """
    from heedful import Loop, Settings

    def make(making: Path) -> None:
        settings = Settings(control=control)
        Loop.create(
            making, encoding=encoding_of(rows), items=rows, learner="posterior:swap=0", settings=settings
        ).close()

    _make_whole(folder, CARS, make)


def _make_whole(folder: Path, name: str, make: Callable[[Path], None]) -> None:
    """Call `make` with a temporary folder, then rename it, so that an interrupted start leaves no half loop."""
    path, making = folder / f"{name}.heedful", folder / f".{name}.making"
    if path.exists():
        return
    shutil.rmtree(making, ignore_errors=True)
    make(making)
    making.rename(path)


def benefit(loop: Loop) -> str:
    """Return sentences that say whether people do better with lists in the learned order than with control lists."""
    verdict = loop.projection.interaction.findings(loop.report()).verdict
    return " ".join([verdict.short, *verdict.more])


# ---------------------------------------------------------------------------- simulated people


class Person(NamedTuple):
    """A simulated person with a hidden taste: a weight for each of N features, which gives each of m cars a utility."""

    features: list[str]
    """the names of the features"""
    taste: dict[str, float]
    """the weight of each feature; together they have Euclidean length 1"""
    X: np.ndarray[Any, np.dtype[np.float64]]
    """the features of the cars (m, N)"""
    worth: dict[str, float]
    """the utility of each car, by name: its features times the weights"""

    @classmethod
    def of(cls, rows: Sequence[dict[str, Any]], seed: int) -> Person:
        """Return a person with a random taste for the cars in `rows`, drawn with `seed`."""
        import numpy as np

        from heedful.worlds.items import taste

        encoding = encoding_of(rows)
        X = encoding.encode_many(rows).astype(np.float64)
        w, _ = taste(X, seed)
        worth = dict(zip([row["name"] for row in rows], (X @ w).tolist()))
        return cls(encoding.names, dict(zip(encoding.names, w.tolist())), X, worth)

    def alike(self, weights: Mapping[str, float]) -> float:
        """Return the share of pairs of cars that `weights`, by feature, order as this person's own taste does.

        Pairs of equal utility to the person are left out."""
        import numpy as np

        from heedful.experiments.run import pair_agreement

        w = np.array([weights[name] for name in self.features])
        return pair_agreement(np.array(list(self.worth.values())), self.X @ w)

    def correct(self, shown: Sequence[str], rng: np.random.Generator) -> list[str]:
        """Return the list `shown` as the person would rather have it: a few of the best cars are moved to the top.

        They are as many as it takes to gain the share `ALPHA` of what could be gained (`StrictAlpha`, which draws with
        `rng`).
        """
        import numpy as np

        from heedful.worlds.users import StrictAlpha, utility

        u = np.array([self.worth[name] for name in shown])
        best = utility(u, np.argsort(-u, kind="stable"), TOP)
        places = np.arange(len(shown))
        return [shown[j] for j in StrictAlpha(ALPHA).rank(TOP, u, u, best, places, rng).tolist()]

    def wish(self, shown: Sequence[str]) -> str:
        """Return the car with the greatest utility to this person among those shown."""
        return max(shown, key=self.worth.__getitem__)


def _simulate(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Have a simulated person teach a new loop; on a control list they teach nothing, as the regret bound needs."""
    import numpy as np

    from heedful import Loop, Settings
    from heedful.loop.simulation import Simulation

    person, rng = Person.of(rows, seed=1), np.random.default_rng(1)
    names = [row["name"] for row in rows]
    settings = Settings(k=TOP, control=0.1)
    with Loop.create(path, encoding=encoding_of(rows), items=rows, learner="perceptron", settings=settings) as loop:
        Simulation(weights=person.taste, alpha=ALPHA).write(path)
        for i in range(LESSONS):
            offered = [names[j] for j in rng.choice(len(names), LISTED, replace=False).tolist()]
            decision = loop.decide(offered, id=f"list-{i + 1}")
            if decision.arm == "control":
                loop.feedback(decision.id, id=f"lesson-{i + 1}", rating={person.wish(decision.shown): 5})
            else:
                loop.feedback(decision.id, id=f"lesson-{i + 1}", better=person.correct(decision.shown, rng))
