"""Two servers on one PostgreSQL: whatever happens to the owner of a loop, nothing acknowledged is lost or twice."""

from __future__ import annotations

import os
import random
import statistics
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from budget import FACTOR
from heedful import Loop
from loops import bits, bits_from_scratch, small_loop
from takeover import Crowd, Trial, new_name, pooler

FAULTS = ("kill", "stop", "terminate", "cut", "away")
ROUNDS = {"direct": 20, "pooled": 20} if FACTOR > 1 else {"direct": 1, "pooled": 1}
"""How often each of the faults happens."""
BACK = 5.0
"""Seconds after which there is service again. Only the long version checks that, 98 times in 100: how long it takes is
measured and told, and the quick tests run beside others, which slow everything down."""


def check(url: str, name: str, crowd: Crowd) -> int:
    """Everything acknowledged is in the log, once, where it was said to be; the model is the fold. How much that is."""
    with psycopg.connect(url, autocommit=True) as connection:
        query = "SELECT seq, kind, id FROM heedful.event JOIN heedful.loop ON number = event.loop WHERE name = %s"
        rows = connection.execute(f"{query} ORDER BY seq", [name]).fetchall()
    assert [seq for seq, _, _ in rows] == list(range(1, len(rows) + 1)), "a place twice, or a gap"
    assert max(Counter((kind, id) for _, kind, id in rows).values()) == 1
    places = {(kind, id): seq for seq, kind, id in rows}
    for each in crowd.told:
        assert places.get((each.kind, each.id)) == each.seq, each
    with Loop.open(f"{url}#{name}") as loop:
        feedback = sum(kind == "feedback" for _, kind, _ in rows)
        assert loop.projection.model.shared.t == feedback
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
    assert FACTOR == 1 or late <= len(faults) // 50, took
