"""What a loop holds in memory between a decision and its feedback: bytes that are counted, and no more."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import heedful.io.exports
import heedful.loop.decisions
from heedful import Loop, Settings
from heedful.features import infer
from loops import rows, small_loop


def size_of(thing: Any, seen: set[int]) -> int:
    """The bytes of an object with all that it holds, each once."""
    if id(thing) in seen:
        return 0
    seen.add(id(thing))
    parts: list[Any] = []
    if isinstance(thing, Mapping):
        parts = [*thing.keys(), *thing.values()]
    elif isinstance(thing, tuple | list):
        parts = list(thing)
    elif isinstance(thing, msgspec.Struct):
        parts = [getattr(thing, name) for name in thing.__struct_fields__]
    elif isinstance(thing, np.ndarray) and thing.base is not None:
        parts = [thing.base]
    return sys.getsizeof(thing) + sum(size_of(part, seen) for part in parts)


def held(loop: Loop) -> int:
    return size_of(loop.projection.decisions.cached, set())


def ways(loop: Loop, k: int) -> dict[str, Any]:
    """Requests of every form that a decision can have, the k-th of each."""
    rng = np.random.default_rng(k)
    return {
        "all": {},
        "names": {"candidates": [f"i{j}" for j in rng.permutation(200)[:150]]},
        "objects": {"candidates": [row | {"id": f"n{k}-{j}", "note": "é" * 9} for j, row in enumerate(rows(40, 4, k))]},
        "array": {"candidates": rng.standard_normal((60, 4))},
        "prior": {"prior": rng.standard_normal(200).tolist()},
        "long names": {"person": "p" * 180 + str(k), "id": f"{k}" + "d" * 150},
    }


@pytest.mark.parametrize("way", ["all", "names", "objects", "array", "prior", "long names"])
def test_the_limit_is_of_bytes_that_are_really_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    monkeypatch.setattr(heedful.loop.decisions, "HELD", 60_000)
    with small_loop(tmp_path / "loop", n_items=200) as loop:
        asked = [loop.decide(**ways(loop, k)[way]).id for k in range(80)]
        assert 5_000 < held(loop) <= 60_000 + sys.getsizeof(loop.projection.decisions.cached)
        assert loop.projection.find_decision(asked[0]) is not None  # read from the log again
        assert held(loop) <= 60_000 + sys.getsizeof(loop.projection.decisions.cached)


@pytest.mark.slow
def test_what_an_entry_takes_is_counted(tmp_path: Path) -> None:
    """`ENTRY` against the allocator: of many small decisions, all that is held is counted, and not much more."""
    with small_loop(tmp_path / "loop", n_items=12) as loop:
        some = [f"i{j}" for j in range(6)]
        for k in range(20):
            loop.decide(some, id=f"before{k}")
        loop.projection.keeper.forget_memory(loop.projection)
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            for k in range(1_000):
                loop.decide(some, id=f"d{k}", person=f"p{k}")
            gc.collect()  # the interpreter keeps tuples that are free, until it collects all
            taken = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()
        assert taken <= 1.1 * loop.projection.decisions.size <= 2.0 * taken


@pytest.mark.slow
def test_asking_about_all_that_is_on_offer_keeps_a_reference_to_it(tmp_path: Path) -> None:
    """10,000 items: of a body of {} what was shown stays, two bytes each, and who comes next costs the same."""
    items = [{"id": f"i{j}", "a": float(j % 97)} for j in range(10_000)]
    encoding = infer(items, identifier="id", kinds={"a": "number"})
    with Loop.create(tmp_path / "loop", encoding=encoding, items=items, settings=Settings(control=0.0)) as loop:
        few = loop.decide(show=10)
        assert held(loop) < 2_000
        whole = loop.decide()
        assert held(loop) < 2_000 + 25_000
        loop.feedback(few.id, better=[few.shown[7]])
        learned = loop.decide()
        assert held(loop) < 2_000 + 2 * 25_000
        size = sum(len(e.payload) + len(e.arrays or b"") for e in loop.projection.log.events(kinds=["decision"]))
        assert size < 1_000 + 2 * 25_000
    with Loop.open(tmp_path / "loop") as loop:
        assert loop.decide(id=whole.id) == whole
        assert loop.decide(id=learned.id) == learned
        assert loop.feedback(whole.id, id="e", clicks=[whole.shown[3]]).learned


def test_an_export_holds_so_many_candidates_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heedful.io.exports, "KEPT", 30)
    with small_loop(tmp_path / "loop") as loop:
        made = [loop.decide(id=f"d{k}") for k in range(9)]
        for d in made:
            loop.feedback(d.id, id=f"e-{d.id}", clicks=[d.shown[1]])
        exporter, clicks = heedful.io.exports.Exporter(loop), []
        for line in exporter.lines():
            assert sum(len(known.names) for _, known in exporter._decisions.values()) <= 30
            if line["kind"] == "feedback":
                clicks.append((line["decision"], *line["clicks"]))
        assert clicks == [(d.id, d.shown[1]) for d in made]


@pytest.mark.parametrize("seed", range(4))
def test_what_was_on_offer_once_is_known_for_good(tmp_path: Path, seed: int) -> None:
    """Items come, change, go and come back between decisions: what each was among, in which order, with which
    features, is what a plain dictionary had, at once, from the log, and after a restart."""
    rng = np.random.default_rng(seed)
    there: dict[str, dict[str, Any]] = {row["id"]: row for row in rows(12, 4)}
    among: dict[str, list[dict[str, Any]]] = {}
    with small_loop(tmp_path / "loop", control=0.5) as loop:
        for k in range(60):
            name = f"i{rng.integers(16)}"
            if rng.random() < 0.4 and name in there and len(there) > 2:
                del there[name]
                assert loop.withdraw(name)
            elif rng.random() < 0.6:
                there[name] = {"id": name, **{f"f{i}": round(float(rng.normal()), 2) for i in range(4)}}
                loop.put_items([there[name]])
            if rng.random() < 0.5:
                candidates = None if rng.random() < 0.5 else list(there)
                among[loop.decide(candidates, id=f"d{k}", show=1).id] = list(there.values())
        assert set(loop.items) == set(there)
        _same_candidates(loop, among)
        loop.projection.keeper.forget_memory(loop.projection)
        _same_candidates(loop, dict(reversed(among.items())))
    with Loop.open(tmp_path / "loop") as loop:
        _same_candidates(loop, among)


def _same_candidates(loop: Loop, among: dict[str, list[dict[str, Any]]]) -> None:
    assert len(among) > 10
    for id, candidates in among.items():
        known = loop.projection.find_decision(id)
        assert known.names == tuple(row["id"] for row in candidates)
        x = loop.projection.requests.context(known).x
        assert np.array_equal(x[:, :-1], loop.manifest.encoding.encode_many(candidates))
