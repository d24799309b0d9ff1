"""Every learner of the folder keeps every promise, in each world of its interaction that it can work in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from budget import FACTOR
from heedful.core import conformance
from heedful.core.conformance import check_learner, identical
from heedful.core.fold import copy_arrays, generators, must_interpret, play
from heedful.jit import cache as compiling
from heedful.learners.registry import find_learners, summarise
from heedful.spaces.assignment import Assignment
from heedful.spaces.comparison import Choice
from heedful.spaces.ordinal import Ranks
from heedful.spaces.ranking import Ranking, WithBaseScore
from heedful.spaces.slate import Slate
from heedful.spaces.structured import Subset
from heedful.worlds.choices import gaussian_choosers
from heedful.worlds.clicks import PositionBiased
from heedful.worlds.instances import instance_stream, synthetic_ordinal
from heedful.worlds.items import item_pool, taste
from heedful.worlds.queries import query_stream, synthetic_queries
from heedful.worlds.ratings import bernoulli_ratings, gaussian_ratings, replay_ratings, uniform_ratings
from heedful.worlds.structured import synthetic_assignments, synthetic_subsets
from heedful.worlds.users import Better, Noisy, StrictAlpha
from orderers import Orderers

N = 6
# What a learner needs beyond n_features and space.
REQUIRED = {"bound": 6.0, "radius": 0.7}
# Hyperparameters that take another way through the code.
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "PreferencePerceptron": [{"batch": 3}],
    "ExponentiatedPerceptron": [{"horizon": 40}, {"signed": False}],
    "SecondOrderPerceptron": [{"radius": 0.5}],
    "RankingSVM": [{"squared": True}, {"capacity": 20}],
    "PerturbedPerceptron": [{"swap": 0.2}],
    "Posterior": [{"swap": 0.0}, {"prior": 5.0}],
    "WidrowHoff": [{"eta": 0.2}],
    "ALB": [{"n_factors": 2, "n_users": 1, "n_items": 1}],
    "PreferenceGP": [{"rule": "random", "every": 3}, {"rule": "eubo", "lapse": 0.05}, {"learn_noise": True}],
    "HierarchicalGP": [{"rule": "mes", "every": 5}, {"every": 5, "learn_noise": True}],
    "CollaborativeGP": [{"rule": "mes", "every": 5, "D": 3}],
}

# Their rounds take milliseconds, so all but `make test-long` plays fewer of them.
SLOW = ("PTS", "PreferenceGP", "HierarchicalGP", "CollaborativeGP")

# They interleave or perturb rankings; that they say so is tested beside them.
RANKERS = ("DuelingBandit", "Posterior", "PerturbedPerceptron")


def ties() -> Any:
    """Queries of small integers with repeated rows: scores tie, by identity and by arithmetic."""
    rng = np.random.default_rng(5)
    X = rng.integers(-1, 2, (300, N)).astype(np.float64)
    X[1::3] = X[::3]
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 14, 60)), [300]])
    offsets = np.unique(offsets[offsets <= 300])
    return query_stream(X, rng.integers(0, 5, 300), offsets, rng.integers(-2, 3, N).astype(float), Noisy(10))


def pool(integers: bool) -> Any:
    rng = np.random.default_rng(6)
    X = rng.integers(-2, 3, (70, N)).astype(np.float64) if integers else rng.standard_normal((70, N))
    X[1::5] = X[::5]
    w_star, ratings = taste(X, 3)
    return item_pool(X, w_star, Better(), ratings)


def grades() -> Any:
    """Instances of small integers, some twice, whose ranks have nothing to do with them: scores tie with thresholds."""
    rng = np.random.default_rng(7)
    X = rng.integers(-1, 2, (30, N)).astype(np.float64)
    X[1::3] = X[::3]
    return instance_stream(X, rng.integers(1, 4, 30), n_ranks=3)


COACTIVE: dict[str, tuple[Any, Any]] = {
    "queries": (synthetic_queries(40, 8, N, noise=1.0, user=Noisy(5))[0], Ranking(5)),
    "strict": (synthetic_queries(40, 8, N, noise=0.0, user=StrictAlpha(0.5))[0], Ranking(3)),
    "float32": (synthetic_queries(40, 8, N, noise=1.0, user=Noisy(5), dtype="float32")[0], Ranking(5)),
    "ties": (ties(), Ranking(5)),
    "clicks": (synthetic_queries(40, 8, N, noise=1.0, user=PositionBiased(0.5))[0], WithBaseScore(Ranking(3))),
    "items": (pool(False), Ranking(1)),
    "integer items": (pool(True), Ranking(1)),
    "assignment": (synthetic_assignments(40, 5, 3, N, StrictAlpha(0.5))[0], Assignment(3)),
    "subsets": (synthetic_subsets(40, 7, 3, N, StrictAlpha(0.5))[0], Subset(3)),
}
LEARNS_NOTHING = {
    *((name, world) for name in ("FixedOrder", "RandomOrder") for world in COACTIVE.keys() - {"assignment"}),
    # feedback reorders the first five, and five count as clicked: of no pair of neighbours one alone is
    *(("PerturbedPerceptron", world) for world in ("queries", "float32")),
}
"""Learners whose weights stay 0 in a world, so that all candidates tie: nobody can say how they would be permuted."""
ORDINAL: dict[str, tuple[Any, Any]] = {
    "instances": (synthetic_ordinal(60, N)[0], Ranks(5)),
    "two grades": (synthetic_ordinal(60, N, 2, noise=0.0)[0], Ranks(2)),
    "float32 instances": (synthetic_ordinal(60, N, 9, dtype="float32")[0], Ranks(9)),
    "tied instances": (grades(), Ranks(3)),
}


def once_rated(repeats: bool) -> Any:
    """A few whole ratings by users of whom some rated one item and one none: they tie, and soon some ran dry."""
    rng = np.random.default_rng(8)
    rated = np.argwhere(rng.random((8, 40)) < 0.2)
    kept = rated[(rated[:, 0] != 3) & ((rated[:, 0] != 5) | (np.cumsum(rated[:, 0] == 5) == 1))]
    return replay_ratings(kept[:, 0], kept[:, 1], rng.integers(1, 4, len(kept)), repeats=repeats)


RATING: dict[str, tuple[Any, Any]] = {
    "gaussian": (gaussian_ratings(9, 80, 3), Slate()),
    "slates of uniform": (uniform_ratings(9, 30, 3), Slate(3, -1.0, 2.0)),
    "bernoulli": (bernoulli_ratings(9, 30, 3), Slate(1, 0.0, 1.0)),
    "replay": (once_rated(True), Slate(1, 1.0, 3.0)),
    "each once": (once_rated(False), Slate(2, 1.0, 3.0)),
}
FEATURES = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [2.0, 2.0], [1.0, 1.0]])  # two items are the same
PAIRWISE: dict[str, tuple[Any, Any]] = {
    "choices": (gaussian_choosers(5, 7), Choice(7, equal=False)),
    "equal and unsure": (gaussian_choosers(5, 7, tie=0.3, unsure=0.1, lapse=0.1), Choice(7)),
    "best of three": (gaussian_choosers(3, 6, tie=0.2, unsure=0.1, shown=3), Choice(6)),
    "orders of four, each once": (Orderers(gaussian_choosers(2, 5, shown=4, repeats=False)), Choice(5, False)),
    "each pair once": (gaussian_choosers(2, 5, tie=0.3, repeats=False), Choice(5, True, FEATURES)),
}
WORLDS = {"coactive": COACTIVE, "ordinal": ORDINAL, "rating": RATING, "pairwise": PAIRWISE}
"""By interaction: the world's name, the world, its space."""


def made(cls: Any, space: Any, **extra: Any) -> Any:
    """The learner for a space, with what it needs beyond."""
    offered = {"n_features": N, "space": space, "n_ranks": getattr(space, "k", 0), **REQUIRED, **extra}
    return cls(**{name: value for name, value in offered.items() if name in cls._fields})


def worlds_of(cls: Any) -> dict[str, tuple[Any, Any]]:
    """By name, the worlds that a learner can work in, each with its space."""
    worlds = WORLDS.get(summarise(cls).interaction, {})
    if cls.__name__ not in RANKERS:
        return worlds
    return {name: pair for name, pair in worlds.items() if isinstance(pair[1], Ranking | WithBaseScore)}


def one_loop(worlds: dict[str, tuple[Any, Any]]) -> list[list[str]]:
    """The names of worlds, those together in which a learner runs the same compiled loop."""
    together: dict[Any, list[str]] = {}
    for name, (world, space) in worlds.items():
        together.setdefault(compiling._kind((world, space, copy_arrays(world).init(generators(0)[0]))), []).append(name)
    return list(together.values())


def compiled_worlds() -> dict[str, list[str]]:
    """Of each learner the worlds it is compiled in: all in `make test-long`.

    A loop takes seconds to compile, most of a case's time. So `make test-all` compiles a learner in one kind of world,
    in which the fewest were compiled before: every learner in some world, and every world with some learner.
    """
    chosen, met = {}, Counter[tuple[str, str]]()
    for cls in find_learners().values():
        kinds, interaction = one_loop(worlds_of(cls)), summarise(cls).interaction
        if FACTOR == 1 and not must_interpret(made(cls, next(iter(worlds_of(cls).values()))[1])):
            kinds = [min(kinds, key=lambda kind: met[interaction, kind[0]])]
            met[interaction, kinds[0][0]] += 1
        chosen[cls.__name__] = [name for kind in kinds for name in kind]
    return chosen


def cases(*, quick: bool = False) -> Iterator[Any]:
    """(a learner, the name of a world, the world): each learner in each world, and each variant in one in which it is
    compiled (in `make test-long` in each); or all in one world each, not the same for all."""
    turn = 0
    for cls in find_learners().values():
        for i, extra in enumerate([{}, *VARIANTS.get(cls.__name__, [])]):
            worlds = worlds_of(cls)
            names = list(worlds)
            if quick:
                names = [names[turn % len(names)]]
                turn += 1
            elif FACTOR == 1 and i:
                names = [COMPILED[cls.__name__][i % len(COMPILED[cls.__name__])]]
            for name in names:
                world, space = worlds[name]
                words = "-".join([name, *(f"{k}={v}" for k, v in extra.items())])
                yield pytest.param(made(cls, space, **extra), name, world, id=f"{cls.__name__}-{words}")


COMPILED = compiled_worlds()


@pytest.mark.parametrize(("learner", "name", "world"), list(cases(quick=True)))
def test_every_promise_is_kept_interpreted(
    learner: Any, name: str, world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one world, and fewer rounds where these are slow."""
    check(learner, name, world, False, 6 if type(learner).__name__ in SLOW else conformance.ROUNDS, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize(("learner", "name", "world"), list(cases()))
def test_every_promise_is_kept(learner: Any, name: str, world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    few = FACTOR == 1 and type(learner).__name__ in SLOW
    compiled = name in COMPILED[type(learner).__name__]
    check(learner, name, world, compiled, 12 if few else conformance.ROUNDS, monkeypatch)


def check(
    learner: Any, world_of: str, world: Any, compiled: bool, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check all promises, or all but that of compiled rounds."""
    kept = [promise for promise in conformance.CHECKS if compiled or promise is not conformance._check_compiled]
    monkeypatch.setattr(conformance, "CHECKS", tuple(kept))
    monkeypatch.setattr(conformance, "ROUNDS", rounds)
    findings = list(check_learner(learner, world))
    assert len(findings) == 10 + compiled
    untold = [f.promise for f in findings if f.kept is None]
    if (type(learner).__name__, world_of) in LEARNS_NOTHING:
        assert untold == [conformance._check_permutation.__doc__]
    else:
        assert untold == []
    assert [(f.promise, f.where) for f in findings if f.kept is False] == []


def test_every_learner_of_the_folder_is_walked() -> None:
    """The walk finds what a reader of the folders finds: classes with init, propose and update."""
    import ast
    from pathlib import Path

    import heedful.learners

    root = Path(heedful.learners.__path__[0])
    # In the folders; what lies beside them, `Personal`, is made around a learner (tests/learners/test_personal.py).
    trees = [ast.parse(p.read_text()) for p in root.rglob("*.py") if p.parent != root]
    classes = [part for tree in trees for part in tree.body if isinstance(part, ast.ClassDef)]
    methods = [{part.name for part in cls.body if isinstance(part, ast.FunctionDef)} for cls in classes]
    written = sum({"init", "propose", "update"} <= names for names in methods)
    assert len({id(c) for c in find_learners().values()}) == written > 0


def test_every_learner_has_a_world() -> None:
    """No interaction without worlds, and none of the walk is left out."""
    walked = {type(case.values[0]) for case in cases()}
    assert walked == set(find_learners().values())


def test_every_learner_and_every_world_is_compiled() -> None:
    """Those that can be, also where time is short."""
    assert set(COMPILED) == {cls.__name__ for cls in find_learners().values()}
    assert all(COMPILED.values())
    compiling = [
        c for c in find_learners().values() if not must_interpret(made(c, next(iter(worlds_of(c).values()))[1]))
    ]
    for interaction, worlds in WORLDS.items():
        met = {name for c in compiling if summarise(c).interaction == interaction for name in COMPILED[c.__name__]}
        assert met in (set(worlds), set()), interaction
    assert len(compiling) >= 20


@pytest.mark.parametrize(
    ("interaction", "name", "least"),
    [("coactive", "ties", 4), ("ordinal", "tied instances", 4), ("rating", "replay", 4), ("pairwise", "choices", 2)],
)
def test_the_same_arrivals_for_every_learner(interaction: str, name: str, least: int) -> None:
    """On a stream, where nothing leaves, all learners meet the very same contexts on one seed."""
    world, space = WORLDS[interaction][name]
    met = []
    for cls in find_learners().values():
        if summarise(cls).interaction == interaction:
            met.append(tuple(copy_arrays(r.x) for r, _ in play(made(cls, space), world, 30, 11)))
    assert len(met) >= least
    assert len(met[0]) == 30
    assert all(identical(m, met[0]) for m in met)
