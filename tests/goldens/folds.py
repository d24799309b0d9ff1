"""A fixed stream for every learner, small numbers by arithmetic, and the state that its fold ends in.

What is stored (tests/goldens/folds, a file a learner) is what a version of a learner means: whoever changes it raises
the version that the learner declares, or the one of its interaction's model, and writes it again with `make`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from heedful.core.fold import coerce, copy_arrays
from heedful.core.serialization import arrays_of
from heedful.learners.registry import find_learners, make_learner, summarise
from heedful.loop.interactions.registry import learner_version
from heedful.spaces.comparison import EQUAL, UNSURE, Choice, ComparisonPool
from heedful.spaces.ordinal import Ranks
from heedful.spaces.ranking import Ranking, WithBaseScore
from heedful.spaces.slate import Slate, SlateContext, WeightedRatings

FOLDER = Path(__file__).parent / "folds"
ROUNDS = 30
N = 6
N_ITEMS = 7
HIDDEN = np.array([2.0, -1.0, 0.0, 1.0, -2.0, 1.0])
GIVEN = {
    "exponentiated": "bound=6",
    "convex": "radius=0.7",
    "ranking-svm": "capacity=40",
    "alb": "n_factors=2",
    "bmf": "n_factors=2",
    "nmf-bandit": "n_factors=2",
    "pts": "n_factors=2,n_particles=3",
    "collaborative-gp": "D=3,every=5",
}
"""What a learner needs, and what makes its state small."""
VARIANTS = (
    "perceptron:batch=3",
    "exponentiated:bound=6,signed=false",
    "second-order:radius=0.5",
    "posterior:swap=0.5",
    "widrow-hoff:eta=0.2",
    "pts:n_factors=2,n_particles=3,resample=0.5",
    "bmf:n_factors=2,sampled=true",
    "gp:lapse=0.05",
    "gp:learn_noise=true",
    "hierarchical-gp:learn_noise=true,every=5",
)
"""Hyperparameters that take another way through the fold."""
ROUNDING = {"bmf", "collaborative-gp", "gp", "hierarchical-gp", "ordinal-logistic", "posterior", "second-order"}
"""Learners that call BLAS and LAPACK, which add up in another order on another processor (decision 52): their numbers
are compared to 1e-9 of the largest in their array. All others do elementwise arithmetic and sums in an order of our
own, and are compared bit for bit."""


def specs() -> list[str]:
    """Every learner of the package, as text says it, and some with other hyperparameters."""
    named = [f"{name}:{GIVEN[name]}" if name in GIVEN else name for name in find_learners()]
    return sorted([*named, *VARIANTS])


def golden_learner(spec: str) -> Any:
    """The learner that `spec` names, in a space of its interaction."""
    kind = summarise(find_learners()[spec.partition(":")[0]]).interaction
    X = np.array([[(3 * j) % 7, (j * j) % 5] for j in range(N_ITEMS)], np.float64)
    space: Any = {
        "coactive": WithBaseScore(Ranking(4)),
        "ordinal": Ranks(5),
        "rating": Slate(2, 1.0, 5.0),
        "pairwise": Choice(N_ITEMS, True, X),
    }[kind]
    return coerce(make_learner(spec, n_features=N, space=space))


def version(spec: str) -> str:
    """The declared version of the fold."""
    return learner_version(golden_learner(spec))


def fold(spec: str, rounds: int = ROUNDS) -> list[tuple[str, Any]]:
    """The state after the stream, as (name, array) in the order of its fields."""
    learner = golden_learner(spec)
    kind = summarise(type(learner)).interaction
    state = learner.init(np.random.default_rng(0))
    step = {"coactive": _coactive, "ordinal": _ordinal, "rating": _rating, "pairwise": _pairwise}[kind]
    for t in range(rounds):
        state = step(learner, state, t)
    return list(arrays_of(copy_arrays(state)).items())


def _table(m: int, n: int, t: int) -> Any:
    """Numbers from -2 to 2 (m x n), of which several are the same."""
    return np.array(
        [[(7 * i + 11 * j + 13 * t + i * j * t + t * t) % 5 - 2 for j in range(n)] for i in range(m)], float
    )


def _coactive(learner: Any, state: Any, t: int) -> Any:
    x = _table(3 + t % 6, N, t)
    y = learner.propose(state, x, np.random.default_rng(t))
    order = np.argsort(-(x @ HIDDEN), kind="stable")
    if getattr(learner, "partial", False):
        order = order[: 1 + t % 2]
    return learner.update(state, x, y, order)


def _ordinal(learner: Any, state: Any, t: int) -> Any:
    x = _table(1, N, t)[0]
    y = learner.propose(state, x, np.random.default_rng(t))
    return learner.update(state, x, y, int(np.clip(3 + x @ HIDDEN // 3, 1, 5)))


def _rating(learner: Any, state: Any, t: int) -> Any:
    offer = SlateContext((t * t) % 5, np.array([j for j in range(12) if (j + t) % 3], np.int64))
    y = learner.propose(state, offer, np.random.default_rng(t))
    ratings = np.array([1.0 + (2 * offer.user + 3 * j) % 5 for j in y])
    state = learner.update(state, offer, y, WeightedRatings(y, ratings, np.array([1.0, 0.5])[: y.size]))
    if t == ROUNDS // 2 and hasattr(learner, "without_item"):
        state = learner.without_item(state, 4)
    return state


def _pairwise(learner: Any, state: Any, t: int) -> Any:
    pairs = np.array([(a, b) for a in range(N_ITEMS) for b in range(N_ITEMS) if a != b and (a + b + t) % 3], np.int64)
    if t % 10 == 9:
        pairs = np.array([(0, 1, 2, 3), (6, 2, 4, 5)], np.int64)
    pool = ComparisonPool(t % 3, pairs)
    y = pairs[(7 * t) % len(pairs)].copy()  # what is proposed of several that are worth the same is up to the last bits
    answers: list[Any] = [int(y[1] > y[0]), int(y[1] > y[0]), EQUAL, int(y[1] < y[0]), UNSURE]
    answer = answers[t % 5] if y.size == 2 else np.argsort(y)[:3]
    state = learner.update(state, pool, y, answer)
    if t == ROUNDS // 2 and hasattr(learner, "with_items"):
        state = learner.with_items(state, np.array([[8.0, 3.0]]))
    return state


# ---------------------------------------------------------------------------- as files


def path_of(spec: str) -> Path:
    """Where the golden fold of a learner is."""
    return FOLDER / f"{re.sub('[^a-z0-9.]+', '-', spec)}.json"


def as_json(version: str, state: list[tuple[str, Any]]) -> str:
    """A version and a state, an array a line; its numbers as Python writes them, which is all of them."""
    rows = [json.dumps([name, value.dtype.str, value.shape, value.ravel().tolist()]) for name, value in state]
    return f'{{"version": {json.dumps(version)}, "state": [\n' + ",\n".join(rows) + "\n]}\n"


def from_json(written: str) -> tuple[str, list[tuple[str, Any]]]:
    """What `as_json` wrote."""
    found = json.loads(written)
    state = [(name, np.array(values, dtype).reshape(shape)) for name, dtype, shape, values in found["state"]]
    return found["version"], state


def differences(spec: str, expected: list[tuple[str, Any]], found: list[tuple[str, Any]]) -> list[str]:
    """What differs between two states, array by array in their order: a field may get another name."""
    if len(expected) != len(found):
        return [f"{len(expected)} arrays, now {len(found)}"]
    loose = spec.partition(":")[0] in ROUNDING
    return [name for (name, a), (_, b) in zip(expected, found) if not _equal(a, b, loose)]


def _equal(a: Any, b: Any, loose: bool) -> bool:
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return False
    if not loose or a.dtype.kind != "f" or not a.size:
        return bool(a.tobytes() == b.tobytes())
    return bool(np.allclose(a, b, rtol=0.0, atol=1e-9 * np.abs(a).max() + 1e-12))
