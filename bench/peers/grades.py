"""Grades that people gave: five small sets, two thirds of the rows to learn from, the others to be predicted.

The sets (balance scale, ERA, ESL, LEV, SWD) come with skordinal; the splits are the same for everyone. heedful takes
the rows once, one after the other; the peers are fitted to all of them, their settings chosen by cross-validation on
these rows (three folds), since no setting is good for all five sets. `ordinal` has a long stream, and learners that are
told one grade at a time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from peers.job import Clock, Entrant, Job, Memory, answer

from heedful import Session
from heedful.learners.ordinal.ordinal_logistic import OrdinalLogistic

Array = Any
TITLE = "Grades of five sets"
STREAM = "two thirds of the rows to learn from, mean |predicted - given| of the others"
SETS = {"balance_scale": "balance scale", "era": "ERA", "esl": "ESL", "lev": "LEV", "swd": "SWD"}
SEEDS, ROUNDS, QUICK, TUNING = 10, 2, 1, 1.0
"""Splits of each set in a run."""
QUALITY = "error"
Fit = Callable[[Array, Array, int], Callable[[Array], Array]]
"""Rows, their grades and the number of grades, to the function from rows to predicted grades."""


def splits(seed: int, rounds: int) -> Iterator[tuple[str, Array, Array, Array]]:
    """(set, rows, grades from 1, which rows are learned from), the rows shuffled, of each split of each set."""
    from skordinal import datasets

    for number, name in enumerate(SETS):
        X, grades = getattr(datasets, f"load_{name}")(return_X_y=True)
        for split in range(rounds):
            order = np.random.default_rng([seed, number, split]).permutation(len(X))
            yield name, X[order].astype(float), grades[order].astype(int) + 1, np.arange(len(X)) < 2 * len(X) // 3


def heedful_session() -> Fit:
    def fit(X: Array, grades: Array, most: int) -> Any:
        session = Session(OrdinalLogistic(X.shape[1], most))
        for x, grade in zip(X, grades):
            session.propose(x)
            session.learn(int(grade))
        return lambda rows: np.array([int(session.propose(x)) for x in rows])

    return fit


def searched(model: Any, grid: dict[str, tuple[float, ...]]) -> Any:
    """The best of a grid by mean absolute error in three folds, on standard scores."""
    from sklearn.model_selection import GridSearchCV, KFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    whole, name = make_pipeline(StandardScaler(), model), type(model).__name__.lower()
    settings = {f"{name}__{key}": values for key, values in grid.items()}
    return GridSearchCV(whole, settings, scoring="neg_mean_absolute_error", cv=KFold(3))


def batch(make: Callable[[], tuple[Any, dict[str, tuple[float, ...]]]]) -> Callable[[], Fit]:
    """A peer: its model and the settings that are tried."""

    def start() -> Fit:
        model, grid = make()
        return lambda X, grades, most: searched(model, grid).fit(X, grades).predict

    return start


def mord_logistic() -> Any:
    from mord import LogisticAT

    return LogisticAT(), {"alpha": (0.1, 1.0, 10.0)}


def support_vectors() -> Any:
    from skordinal.classifiers import SVOR

    return SVOR(), {"C": (1.0, 10.0), "gamma": (0.1, 0.3)}


def boosting() -> Any:
    from skordinal.classifiers import ORBoost

    return ORBoost(), {"n_estimators": (100, 500)}


def median_grade() -> Fit:
    return lambda X, grades, most: lambda rows: np.full(len(rows), int(np.median(grades)))


ENTRANTS = {
    "heedful, ordinal-logistic": Entrant("heedful", "Session, every row once; its defaults", heedful_session),
    "mord, LogisticAT": Entrant("mord", "fitted to all rows; alpha by three folds", batch(mord_logistic)),
    "skordinal, SVOR": Entrant("skordinal", "radial kernel; C and gamma by three folds", batch(support_vectors)),
    "skordinal, ORBoost": Entrant("skordinal", "stumps; how many by three folds", batch(boosting)),
    "a constant rank": Entrant("heedful", "the median of those learned from", median_grade),
}
REFERENCE = "heedful, ordinal-logistic"
COLUMNS = {f"error {name}": said for name, said in SETS.items()}


def measure(job: Job) -> dict[str, float]:
    """Mean absolute error on each set; processor seconds of learning (with the choice of settings) and predicting."""
    each, clock, rows = list(splits(job.seed, job.rounds)), Clock(), 0
    memory, found = Memory(), {f"error {name}": [] for name in SETS}
    fit: Fit = ENTRANTS[job.entrant].make(**job.setting)
    for name, X, grades, learned in each:
        with clock.on():
            predicted = fit(X[learned], grades[learned], int(grades.max()))(X[~learned])
        found[f"error {name}"].append(float(np.abs(predicted - grades[~learned]).mean()))
        rows += len(X)
    means = {name: float(np.mean(values)) for name, values in found.items()}
    return means | {
        "error": float(np.mean(list(means.values()))), "rounds": rows, "seconds": clock.seconds, "MB": memory.grown(),
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(answer(measure))
