"""Small loops for tests: quick to make, the same every time."""

from __future__ import annotations

import json
import math
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful import Loop, Settings
from heedful.data.jsonl import Line, as_lines
from heedful.features import Encoding, declare, infer
from heedful.learners.registry import find_learners, summarise
from heedful.loop.following import Follower
from heedful.loop.model import Moves
from heedful.loop.settings import Manifest
from heedful.results.answers import Decision, plain
from heedful.storage import Address
from heedful.testing.kind_checks import export
from heedful.testing.loop_state import bits as bits
from heedful.testing.loop_state import bits_from_scratch as bits_from_scratch
from heedful.testing.loop_state import bits_of as bits_of

REQUIRED = {"exponentiated": "bound=6", "convex": "radius=0.7"}
"""What a learner of the package needs beyond what a loop gives it."""


def plain_manifest(**settings: Any) -> Manifest:
    """Of a loop without features and with these settings, to make a model of by itself."""
    return Manifest(learner="any", encoding=Encoding(columns=(), identifier="id"), settings=Settings(**settings))


def specs(interaction: str = "coactive") -> list[str]:
    """Every learner of the package that a loop of this interaction takes, as text says it, found by looking."""
    found = find_learners()
    names = [name for name in found if not hasattr(found[name], "simulation_only")]
    needs = REQUIRED | {name: "n_ranks=5" for name in names if summarise(found[name]).interaction == "ordinal"}
    taken = [name for name in names if summarise(found[name]).interaction == interaction]
    return [f"{name}:{needs[name]}" if name in needs else name for name in taken]


def rows(n: int, k: int, seed: int = 0) -> list[dict[str, Any]]:
    """n items "i0", "i1", ... with k numbers f0, f1, ... each."""
    X = np.random.default_rng(seed).standard_normal((n, k)).round(3)
    return [{"id": f"i{j}", **{f"f{i}": float(X[j, i]) for i in range(k)}} for j in range(n)]


def small_loop(
    path: str | Path, learner: str = "posterior:swap=0", n_items: int = 12, n_features: int = 4, **settings: Any
) -> Loop:
    """A loop in the new folder `path` over `rows(n_items, n_features)`; `settings` are those of `heedful.Settings`."""
    items = rows(n_items or 12, n_features)  # with none, it is inferred from those that will come
    kinds = {f"f{i}": "number" for i in range(n_features)}
    encoding = infer(items, identifier="id", kinds=kinds)
    return Loop.create(path, encoding=encoding, items=items[:n_items], learner=learner, settings=Settings(**settings))


def rating_loop(path: str | Path, learner: str | None = None, n_items: int = 12, **settings: Any) -> Loop:
    """A loop of ratings from 1 to 5 in the new folder `path`, of items "i0", "i1", ... with titles; three are shown."""
    items = [{"id": f"i{j}", "title": f"film {j}"} for j in range(n_items)]
    how: dict[str, Any] = {"ratings": (1, 5), "k": 3} | settings
    return Loop.create(path, items=items, learner=learner, settings=Settings(**how))


def choice_loop(
    path: str | Path, learner: str | None = None, n_items: int = 8, n_features: int = 0, **settings: Any
) -> Loop:
    """A loop of choices for the best of items "i0", "i1", ... in the new folder `path`; of so many features."""
    items = (
        rows(n_items or 12, n_features)
        if n_features
        else [{"id": f"i{j}", "title": f"film {j}"} for j in range(n_items)]
    )
    kinds = {f"f{i}": "number" for i in range(n_features)}
    encoding = infer(items, identifier="id", kinds=kinds) if n_features else None
    how: dict[str, Any] = {"choices": "best"} | settings
    return Loop.create(path, encoding=encoding, items=items[:n_items], learner=learner, settings=Settings(**how))


FIXED = f"{Path(__file__).parent / 'fixed.py'}:Fixed"
UP, DOWN = (f"{FIXED}:tilt={tilt}" for tilt in (1, -1))
"""Learners that rank by the first feature, the greatest or the least first, whatever people answer."""
F0 = {row["id"]: row["f0"] for row in rows(12, 4)}
BY_F0 = sorted(F0, key=lambda name: -F0[name])


LIKED = {"phone": "news", "desk": "food", "tablet": "sport"}


def banners(path: str | Path | Address, **settings: Any) -> Loop:
    """Three banners for three devices, one of them shown."""
    items = [{"id": name, "banner": name} for name in ("news", "sport", "food")]
    return Loop.create(
        path,
        encoding=infer(items, identifier="id", kinds={"banner": "category"}),
        items=items,
        context=declare({"device": list(LIKED)}),
        crosses=[("device", "banner")],
        settings=Settings(**{"k": 1, "control": 0.0} | settings),
    )


def fixed_loop(path: str | Path, **settings: Any) -> Loop:
    """A loop that shows items by their first feature, the least first."""
    return small_loop(path, DOWN, **settings)


def as_often_as_said(made: Iterable[Decision], whole: float = 1.0 - 1e-9) -> dict[tuple[str, ...], float]:
    """Check that each list is shown as often as its probability says, to 4.5 standard errors, and that these are 1 in
    all, or at least `whole` of it where some lists are rare; return the probabilities."""
    shown, told = Counter[tuple[str, ...]](), dict[tuple[str, ...], Any]()
    for d in made:
        shown[d.shown] += 1
        assert told.setdefault(d.shown, d.probability) == pytest.approx(d.probability)
    assert whole <= sum(told.values()) <= 1.0 + 1e-9
    n = shown.total()
    for each, p in told.items():
        assert abs(shown[each] / n - p) < 4.5 * math.sqrt(p * (1.0 - p) / n)
    return told


def lines_of(loop: Loop, *kinds: str) -> list[Line]:
    """The lines of a loop as they are read from a file; of these kinds alone, where some are named."""
    return list(as_lines(line for line in export(loop) if not kinds or line["kind"] in kinds))


def empty_copy(path: str | Path, manifest: Manifest) -> Loop:
    """A loop in the new folder `path` that is made as another one was, and holds nothing."""
    names = ("encoding", "learner", "settings", "context", "crosses")
    return Loop.create(path, **{name: getattr(manifest, name) for name in names})


def diverged(path: str | Path, **settings: Any) -> Loop:
    """A grading loop whose weights have overflown, as its eta is too large: decisions d0, ..., d29 and their grades. It
    warns of what is no number: `@pytest.mark.filterwarnings("ignore::RuntimeWarning")`."""
    loop = small_loop(path, "widrow-hoff:n_ranks=5,eta=1e20", **settings)
    for t in range(30):
        d = loop.decide([f"i{t % 12}", "i0", "i1"], id=f"d{t}") if t % 12 > 1 else loop.decide(["i2"], id=f"d{t}")
        loop.feedback(d.id, id=f"e{t}", grade={d.shown[0]: 1 + t % 5})
    return loop


def sides(loop: Loop, from_scratch: bool = False) -> list[dict[str, bytes]]:
    """The states of the learners of the experiment that runs as bytes: of the candidate and, where both are frozen, of
    the loop's own; [] where none runs. From scratch each learns from the first event on."""
    projection = loop.projection
    with projection.turn:
        running = projection.published.running
        found = [] if running is None else [side for side in (running.candidate, running.own) if side is not None]
        if running is None or not from_scratch:
            return [bits_of(side) for side in found]
        learners = [projection.candidate(side.interaction.manifest.learner) for side in found]
        head, frozen = projection.log.last()[0], running.record.frozen
        unlearned = (0, Moves())
        followers = [Follower(learner, lambda *_: unlearned, frozen) for learner in learners]
        return [bits_of(follower.follow(projection, head)) for follower in followers]


def whole_log(folder: Path) -> bytes:
    """The bytes of a log that is all in one file, no snapshot beside it."""
    with closing(sqlite3.connect(folder / "log.db")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for snapshot in folder.glob("snapshot-*"):
        snapshot.unlink()
    return (folder / "log.db").read_bytes()


def set_clock(monkeypatch: Any, clock: Callable[[], int]) -> None:
    """Let a loop's clock be `clock`, in microseconds since 1970."""
    for module in ("decide", "feedback", "founding", "offer", "retraction", "silence", "style", "trials"):
        monkeypatch.setattr(f"heedful.loop.{module}.now", clock)


def as_json(value: Any) -> Any:
    """A record, or many, as an answer over HTTP or a file holds it."""
    return json.loads(json.dumps(plain(value)))


def values(predicted: Mapping[str, Any]) -> dict[str, Any]:
    """What `Loop.predict` says of each, without how certain that is."""
    return {name: each.value for name, each in predicted.items()}
