"""One loop of each kind of feedback, that of `fifth.py` too, for what holds of all of them.

`each_kind` runs a test once for each kind.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from heedful import Loop, Settings, infer
from heedful.loop.interactions.routing import Routing
from heedful.loop.interactions.routing.table import embeddings
from heedful.testing import KindCase, check_kind
from heedful.testing.kind_checks import ask as ask
from heedful.testing.kind_checks import teach as teach
from loops import choice_loop, rating_loop, rows, small_loop, specs
from references import Reference
from references.best_worst import FIFTH, BestWorstReference
from references.coactive import CoactiveReference
from references.comparison import ComparisonReference
from references.one import OneReference
from references.ordinal import OrdinalReference
from references.rating import RatingReference
from references.routing import RoutingReference


class Kind(NamedTuple):
    """A kind of feedback: a loop of it over "i0", "i1", ..., what is asked and what is answered in round i."""

    name: str
    make: Callable[..., Loop]
    """a new loop in a folder: `make(path, learner, n_items=12)`, its learner the first of `learners` by default"""
    ask: Callable[[int], dict[str, Any]]
    """the fields of a decision"""
    answer: Callable[[int, tuple[str, ...]], dict[str, Any]]
    """a form of feedback to what is shown"""
    other: str
    """a learner that its log can be evaluated with"""
    reference: type[Reference]
    """what any loop of it must do"""
    learners: list[str]
    """all that its loops can learn with"""
    says: frozenset[str]
    """what answers over HTTP say of its loops and not of every loop: "Struct.field" """
    own: str | None = None
    """the learner to name when its loop is opened, where that is not heedful's"""

    def case(self, learner: str | None = None, **settings: Any) -> KindCase:
        """What `heedful.testing` checks, with this learner or the first, and with settings."""
        named = {} if learner is None else {"learner": learner}
        return KindCase(partial(self.make, **named, **settings), self.ask, self.answer, self.own)


def checks(case: KindCase, *names: str) -> Any:
    """Parametrisation over the checks of `heedful.testing` with these names, of a loop with settings of its own."""
    found = [check for check in check_kind(case) if check.__name__ in names]
    assert len(found) == len(names)
    return pytest.mark.parametrize("check", found, ids=lambda check: check.__name__)


def _number(name: str) -> int:
    return int(name[1:])


def _coactive(path: Path, learner: str = "posterior:swap=0", **how: Any) -> Loop:
    exploration = 0.5 if learner == "posterior" else None  # its proposals are more than what is shown
    return small_loop(path, learner, **{"control": 0.2, "shrink": 2.0, "exploration": exploration} | how)


def _ordinal(path: Path, learner: str = "ordinal-logistic:n_ranks=5", **how: Any) -> Loop:
    return small_loop(
        path, learner, **{"control": 0.2, "shrink": 2.0 if learner.startswith("ordinal-logistic") else 0.0} | how
    )


def _rating(path: Path, learner: str | None = None, **how: Any) -> Loop:
    return rating_loop(path, learner, **{"control": 0.2} | how)


def _comparison(path: Path, learner: str | None = None, **how: Any) -> Loop:
    n_features = 2 if learner == "gp" else 0  # of one learner the items have features
    return choice_loop(path, learner, **{"control": 0.2, "n_items": 12, "n_features": n_features} | how)


def _routing(path: Path, learner: str = "posterior", n_items: int = 12, **how: Any) -> Loop:
    """Of twelve models; the table has the names of more, which some tests put on offer later."""
    models = [{"id": name, "cost": float(1 + _number(name) % 4)} for name in NAMES]
    later = [*(f"{name}0{j}" for name in NAMES for j in range(10)), "i12", *(f"n{j}" for j in range(200))]
    table = models + [{"id": name, "cost": 1.0} for name in later]
    items, context, crosses = Routing.arrange(table, "id", embeddings(3))
    settings = Settings(**{"control": 0.2, "shrink": 2.0, "cost_weight": 0.02} | how)
    return Loop.create(
        path,
        encoding=items,
        items=models[:n_items],
        learner=learner,
        settings=settings,
        context=context,
        crosses=crosses,
    )


def _best_worst(path: Path, learner: str | None = None, n_items: int = 12, **how: Any) -> Loop:
    items = rows(12, 3)
    encoding = infer(items, identifier="id", kinds={f"f{i}": "number" for i in range(3)})
    settings = Settings(**{"control": 0.2} | how)
    return Loop.create(path, encoding=encoding, items=items[:n_items], learner=learner or FIFTH, settings=settings)


def _prior(i: int) -> dict[str, float]:
    return {name: float((7 * _number(name) + i) % 5) for name in NAMES[i % 4 :]}


def _extremes(i: int, shown: tuple[str, ...]) -> dict[str, Any]:
    best = shown[i % len(shown)]
    return {"best": best, "worst": next(name for name in reversed(shown) if name != best)}


def _choose(i: int, shown: tuple[str, ...]) -> dict[str, Any]:
    return {"choice": "equal" if i % 7 == 6 else "first"} if len(shown) == 2 else {"better": [max(shown)]}


def _appraise(i: int, shown: tuple[str, ...]) -> dict[str, Any]:
    """What somebody says of the only item shown; of several, what they click."""
    said: list[dict[str, Any]] = [{"clicks": [shown[0]]}, {"none": True}, {"thumb": "up"}, {"reward": 0.25}]
    if len(shown) > 1:
        return {"clicks": [shown[0]]}
    return said[i % 4] if i % 5 < 4 else {"action": "buy", "item": shown[0]}


def _ask_a_route(i: int) -> dict[str, Any]:
    """For one of three prompts, among all or some models; of every eighth two answers are compared."""
    among = {"candidates": NAMES[i % 5 :]} if i % 2 else {}
    return among | {"context": {"embedding": PROMPTS[i % 3]}} | ({} if i % 8 else {"show": 2})


def _judge(i: int, shown: tuple[str, ...]) -> dict[str, Any]:
    """A choice of two answers, otherwise a thumb on one or an edit of it."""
    if len(shown) == 2:
        return {"choice": "first" if i % 3 else "second"}
    if i % 2:
        return {"edit": {"from": "a b c d", "to": "a b x d"}, "item": shown[0]}
    return {"thumb": "down" if i % 8 == 6 else "up", "item": shown[0]}


PROMPTS = ([1.0, 0.0, 0.25], [0.0, 1.0, -0.5], [0.5, 0.5, 1.0])
NAMES = [f"i{j}" for j in range(12)]
ROUTERS = ["posterior"]
PREDICTS = frozenset({"Decision.predicted", "Report.prediction"})
ARMS = frozenset({"Report.sample_ratio"})
SURE = frozenset({"Decision.sure"})
BOARD = frozenset({"Board.verdict", "Board.version"}) | {
    f"BoardRow.{name}" for name in ("utility", "utility_low", "utility_high", "comparisons")
}
"""What reports say where lists are compared with those of a control."""
KINDS = (
    Kind(
        "coactive",
        _coactive,
        lambda i: {"show": 4, "candidates": NAMES[i % 4 :], "prior": _prior(i)} if i % 2 else {},
        lambda i, shown: {"clicks": [shown[i % 3]]} if i % 3 else {"better": [shown[-1]]},
        "perceptron",
        CoactiveReference,
        specs("coactive"),
        ARMS | SURE,
    ),
    Kind(
        "one",
        partial(_coactive, k=1),
        lambda i: {"candidates": NAMES[i % 4 :], "prior": _prior(i)} if i % 2 else {},
        _appraise,
        "posterior:prior=4",
        OneReference,
        ROUTERS,
        PREDICTS | ARMS | SURE,
    ),
    Kind(
        "ordinal",
        _ordinal,
        lambda i: {"show": 4, "candidates": NAMES[i % 4 :], "prior": _prior(i)} if i % 2 else {"show": 3},
        lambda i, shown: {"grade": {name: 1 + (_number(name) + i % 3) % 5 for name in shown[:3]}},
        "ordinal-logistic:prior=1",
        OrdinalReference,
        specs("ordinal"),
        PREDICTS | ARMS | {"About.grades"},
    ),
    Kind(
        "rating",
        _rating,
        lambda i: {"show": 4, "candidates": NAMES, "repeats": i >= 12} if i % 2 else {"repeats": i >= 12},
        lambda i, shown: (
            {"actions": {shown[0]: ["view", "buy"]}}
            if i % 5 == 4
            else {"rating": {name: 1 + (_number(name) + i % 4) % 5 for name in shown[:2]}}
        ),
        "item-mean",
        RatingReference,
        specs("rating"),
        PREDICTS | ARMS | {"About.ratings"},
    ),
    Kind(
        "comparison",
        _comparison,
        lambda i: {"candidates": NAMES[:6], "show": 3} if i % 4 == 3 else {},
        lambda i, shown: _choose(i, shown),
        "gp",
        ComparisonReference,
        specs("pairwise"),
        PREDICTS | {"About.choices"} | BOARD,
    ),
    Kind(
        "routing",
        _routing,
        _ask_a_route,
        _judge,
        "posterior:prior=4",
        RoutingReference,
        ROUTERS,
        PREDICTS | ARMS | SURE,
    ),
    Kind(
        "best-worst",
        _best_worst,
        lambda i: {"candidates": NAMES[i % 3 :]} if i % 2 else {},
        _extremes,
        FIFTH,
        BestWorstReference,
        [FIFTH],
        PREDICTS,
        FIFTH,
    ),
)
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
