"""What `heedful demo` is about: 406 cars, a loop to teach, and one that somebody with a hidden taste has taught."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from heedful.cli.console import Failure, check_extra

if TYPE_CHECKING:
    import numpy as np

    from heedful.features import Encoding

CARS, SIMULATED = "cars", "simulated"

# The column of vega_datasets -> (what it is called here, a car with more of it, a car with less).
COLUMNS = {
    "Weight_in_lbs": ("weight in lb", "heavier", "lighter"),
    "Horsepower": ("horsepower", "more horsepower", "less horsepower"),
    "Miles_per_Gallon": ("miles per gallon", "more miles per gallon", "fewer miles per gallon"),
    "Acceleration": ("seconds to 60 mph", "slower to 60 mph", "quicker to 60 mph"),
    "Year": ("year", "newer", "older"),
}
WORDS = {name: (more, less) for name, more, less in COLUMNS.values()}
ORIGINS = {f"origin={there}": there for there in ("Europe", "Japan", "the USA")}
WORDS |= {feature: (f"from {there}", f"not from {there}") for feature, there in ORIGINS.items()}
"""What more and less of each feature are called, on the pages and in the terminal."""

# The file of vega_datasets spells some names as nobody does, and was once searched for "acc" and replaced.
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
"""The share of lists of cars that are left alone. More than usual: so of most people thirty lists tell whether learning
helps, where of 1 in 10 it would take a hundred."""
ENOUGH = 30
"""Lists after which that can be told, of most people."""
LESSONS = 200
"""That the simulated person gives."""
ALPHA = 0.5
"""Each gains at least half of what could be gained: strictly alpha-informative."""
LISTED, TOP = 20, 5
"""Cars in a list for the simulated person; positions that count."""


def cars() -> list[dict[str, Any]]:
    """The cars, a row each: read from the file in vega_datasets, which stays local. Failure where it is not there."""
    check_extra("vega_datasets", "demo", "the demo")
    package = importlib.util.find_spec("vega_datasets")
    file = Path(str(package and package.origin)).parent / "_data" / "cars.json"
    if not file.is_file():
        raise Failure(f"the demo needs {file.name} of vega_datasets, which has none: pip install 'heedful[demo]'")
    rows: dict[str, dict[str, Any]] = {}
    for car in json.loads(file.read_text(encoding="utf-8")):
        name = called = f"{_spelling(car['Name'])} '{car['Year'][2:4]}"
        again = 1
        while called in rows:  # three were sold in two makes that year
            called = f"{name} ({(again := again + 1)})"
        year = int(car["Year"][:4])
        rows[called] = {"name": called} | {name: car[column] for column, (name, *_) in COLUMNS.items()}
        rows[called] |= {"year": year, "origin": car["Origin"].replace("USA", "the USA")}
    return list(rows.values())


def _spelling(name: str) -> str:
    for wrong, right in MENDED.items():
        name = name.replace(wrong, right)
    return " ".join(word.upper() if word in CAPITALS else word[:1].upper() + word[1:] for word in name.split())


def encoding_of(rows: Sequence[dict[str, Any]]) -> Encoding:
    """Infer the encoding of a demo table, whose column `name` holds the items' names.

    No column gets a feature for missing values: the features of a missing value are 0, so it counts as average.
    """
    import msgspec

    from heedful import infer

    found = infer(rows, identifier="name")
    columns = tuple(msgspec.structs.replace(column, missing=0) for column in found.columns)
    encoding: Encoding = msgspec.structs.replace(found, columns=columns)
    return encoding


def make_demo_loops(folder: Path) -> None:
    """Make the two loops in `folder`, where they are not there yet."""
    rows = cars()
    cars_loop(folder, rows, control=CONTROL)
    _make_whole(folder, SIMULATED, lambda making: _simulate(making, rows))


def cars_loop(folder: Path, rows: Sequence[dict[str, Any]], control: float) -> None:
    """Make the loop that is to be taught, which knows nothing, where it is not there yet."""
    from heedful import Loop, Settings

    def make(making: Path) -> None:
        settings = Settings(control=control)
        Loop.create(
            making, encoding=encoding_of(rows), items=rows, learner="pairwise-logistic", settings=settings
        ).close()

    _make_whole(folder, CARS, make)


def _make_whole(folder: Path, name: str, make: Callable[[Path], None]) -> None:
    """Let `make` make a loop; it is there whole, or not at all."""
    path, making = folder / f"{name}.heedful", folder / f".{name}.making"
    if path.exists():
        return
    shutil.rmtree(making, ignore_errors=True)
    make(making)
    making.rename(path)


# ---------------------------------------------------------------------------- simulated people


class Person(NamedTuple):
    """A simulated person with a hidden taste: what they think of each feature (N,), of length 1, and of each car."""

    features: list[str]
    taste: dict[str, float]
    X: np.ndarray[Any, np.dtype[np.float64]]
    """the cars' features, m x N"""
    worth: dict[str, float]

    @classmethod
    def of(cls, rows: Sequence[dict[str, Any]], seed: int) -> Person:
        """One with a random taste in these cars."""
        import numpy as np

        from heedful.worlds.items import taste

        encoding = encoding_of(rows)
        X = encoding.encode_many(rows).astype(np.float64)
        w, _ = taste(X, seed)
        worth = dict(zip([row["name"] for row in rows], (X @ w).tolist()))
        return cls(encoding.names, dict(zip(encoding.names, w.tolist())), X, worth)

    def alike(self, weights: Mapping[str, float]) -> float:
        """Of all pairs of cars that differ in utility for this person, the share that `weights` orders likewise."""
        import numpy as np

        from heedful.experiments.run import pair_agreement

        w = np.array([weights[name] for name in self.features])
        return pair_agreement(np.array(list(self.worth.values())), self.X @ w)

    def correct(self, shown: Sequence[str], rng: np.random.Generator) -> list[str]:
        """The order they would rather have: the best few of what they looked at on top, as far down as it takes to gain
        enough."""
        import numpy as np

        from heedful.worlds.users import StrictAlpha, utility

        u = np.array([self.worth[name] for name in shown])
        best = utility(u, np.argsort(-u, kind="stable"), TOP)
        places = np.arange(len(shown))
        return [shown[j] for j in StrictAlpha(ALPHA).rank(TOP, u, u, best, places, rng).tolist()]

    def wish(self, shown: Sequence[str]) -> str:
        """The car that they would rather have than the others."""
        return max(shown, key=self.worth.__getitem__)


def _simulate(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """A loop that somebody has taught. A bound is promised for what it learns from learned lists alone, so of a list
    of the control they only say which car is the best of it, which teaches nothing."""
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
