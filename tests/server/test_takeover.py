"""Two servers on one PostgreSQL: whatever happens to the owner of a loop, nothing acknowledged is lost or twice."""

from __future__ import annotations

import os
import random
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from budget import FACTOR
from heedful import Loop
from loops import bits, bits_from_scratch, small_loop
from takeover import LONGEST, Acknowledged, Crowd, Trial, new_name, pooler

FAULTS = ("kill", "stop", "terminate", "cut", "away")
ROUNDS = {"direct": 20, "pooled": 20} if FACTOR > 1 else {"direct": 1, "pooled": 1}
"""How often each of the faults happens."""
BACK = 5.0
"""Seconds after which there is service again. Only the long version checks that, 98 times in 100: how long it takes is
measured and told, and the quick tests run beside others, which slow everything down."""


def check(url: str, name: str, crowd: Crowd, *others: Acknowledged) -> int:
    """Everything acknowledged, the `others` too, is in the log, once, where it was said to be; the model is the fold.
    How much that is."""
    with psycopg.connect(url, autocommit=True) as connection:
        query = "SELECT seq, kind, id FROM heedful.event JOIN heedful.loop ON number = event.loop WHERE name = %s"
        rows = connection.execute(f"{query} ORDER BY seq", [name]).fetchall()
    assert [seq for seq, _, _ in rows] == list(range(1, len(rows) + 1)), "a place twice, or a gap"
    assert max(Counter((kind, id) for _, kind, id in rows).values()) == 1
    places = {(kind, id): seq for seq, kind, id in rows}
    for each in (*crowd.told, *others):
        assert places.get((each.kind, each.id)) == each.seq, each
    with Loop.open(f"{url}#{name}") as loop:
        if not others:
            assert loop.projection.model.shared.t == sum(kind == "feedback" for _, kind, _ in rows)
        assert loop.verify() == []
        assert bits(loop) == bits_from_scratch(loop)
    return len(rows)


@pytest.mark.parametrize("way", ["direct", "pooled"])
def test_whatever_happens_to_the_owner(
    postgres: str, tmp_path: Path, way: str, record_property: Callable[[str, object], None]
) -> None:
    name, rng = new_name(), random.Random(1)
    small_loop(f"{postgres}#{name}", control=0.0, shrink=5.0, snapshot_every=200).close()
    faults = [fault for _ in range(ROUNDS[way]) for fault in FAULTS]
    took: dict[str, list[float]] = {}
    with ExitStack() as stack:
        url = postgres
        if way == "pooled":
            try:
                url = stack.enter_context(pooler(postgres))
            except FileNotFoundError as error:
                if os.environ.get("CI"):
                    raise
                pytest.skip(str(error))
        trial = Trial(url, postgres, tmp_path, name)
        stack.callback(trial.end)
        rng.shuffle(faults)
        for fault in faults:
            took.setdefault(fault, []).append(trial.happen(fault, rng))
            assert not trial.crowd.wrong, trial.crowd.wrong[:3]
        trial.crowd.end()
    n = check(postgres, name, trial.crowd)
    late = sum(each > BACK for times in took.values() for each in times)
    slowest = {fault: round(max(each), 2) for fault, each in sorted(took.items())}
    median = {fault: round(statistics.median(each), 2) for fault, each in sorted(took.items())}
    told = f"{way}: {len(faults)} faults, {n} events, service back after {median} s in the median, {slowest} s at most"
    record_property("told", f"{told}, {late} times after more than {BACK:g} s; {dict(trial.crowd.statuses)}")
    assert trial.crowd.statuses["duplicate"] > 0.05 * trial.crowd.statuses["applied"]


class Act(threading.Thread):
    """One request about which learner serves, sent to one server after the other, always with its id, until one has
    done it."""

    def __init__(self, trial: Trial, path: str, kind: str, value: dict[str, Any]) -> None:
        super().__init__(daemon=True)
        self._trial, self._path, self._kind, self._value = trial, path, kind, value
        self.told: list[Acknowledged] = []
        self.wrong = ""
        self.start()

    def run(self) -> None:
        began = time.monotonic()
        while not self.told and not self.wrong and time.monotonic() < began + LONGEST:
            for node in self._trial.nodes:
                url = f"{node.url}/v1/loops/{self._trial.loop}/{self._path}"
                try:
                    reply = httpx.post(url, json=self._value, timeout=3.0)
                except httpx.TransportError:
                    continue
                if reply.status_code == 200:
                    value = reply.json()
                    seq = value.get("answer", value)["seq"]
                    self.told.append(Acknowledged(self._kind, self._value["id"], seq, began, time.monotonic()))
                    break
                if reply.status_code != 503:
                    self.wrong = f"{reply.status_code} {reply.text:.300}"
            time.sleep(0.05)


def test_who_serves_is_fenced_like_every_event(
    postgres: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """A promotion, a rollback or an experiment is asked for, and something happens to the owner."""
    name, rng = new_name(), random.Random(2)
    with small_loop(f"{postgres}#{name}", control=0.0, shrink=5.0, snapshot_every=200) as loop:
        first = loop.decide(id="first")
        loop.feedback(first.id, clicks=[first.shown[3]])
        learner, version = loop.manifest.learner, loop.version
    trial, done = Trial(postgres, postgres, tmp_path, name), []
    try:
        for i, fault in enumerate(["kill", "stop", "terminate", "cut"] * (1 if FACTOR == 1 else 5)):
            path, kind, value = [
                ("experiments", "experiment", {"learner": "perceptron", "share": 0.5}),
                ("promotions", "promote", {"learner": "perceptron", "force": True, "by": "ann"}),
                ("promotions", "promote", {"learner": learner, "force": True}),
                ("rollback", "rollback", {"to": version}),
            ][i % 4]
            act = Act(trial, path, kind, {"id": f"act-{i}", **value})
            trial.happen(fault, rng)
            act.join(LONGEST)
            assert (act.wrong, len(act.told)) == ("", 1), (fault, path)
            done += act.told
            assert not trial.crowd.wrong, trial.crowd.wrong[:3]
    finally:
        trial.end()
    n = check(postgres, name, trial.crowd, *done)
    with Loop.open(f"{postgres}#{name}") as loop:
        assert loop.manifest.learner == learner
        assert {each.in_effect for each in loop.promotions()} == {False}  # they were rolled back
        counts = loop.projection.log.counts()
        assert [counts[kind] for kind in ("experiment", "promote", "rollback")] == [
            len(done) // 4 * k for k in (1, 2, 1)
        ]
    record_property("told", f"{len(done)} acts, each with a fault, {n} events; {dict(trial.crowd.statuses)}")
