"""The drill of an operator: two servers on one PostgreSQL, eight writers, and what is done to the servers and to it."""

from __future__ import annotations

import os
import secrets
from collections import Counter
from contextlib import ExitStack, closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from test_takeover import check

import postgres as postgresql
from heedful.server.peers import rendezvous
from processes import until
from takeover import LONGEST, Crowd, Node, copies, owners

pytestmark = pytest.mark.long

LOOPS, WRITERS = 500, 8


def longest_gap(crowd: Crowd, since: int) -> float:
    """The most seconds between two acknowledgements of a writer, from its acknowledgement number `since` on."""
    times = [each.at for each in crowd.told[since:]]
    return max(after - before for before, after in pairwise(times))


def test_the_drill(tmp_path: Path, record_property: Any) -> None:
    if os.environ.get("HEEDFUL_TEST_DATABASE"):
        pytest.skip("a server of the tests' own is restarted, and HEEDFUL_TEST_DATABASE names another")
    run, gaps = f"drill-{secrets.token_hex(4)}", dict[str, float]()
    with ExitStack() as stack:
        try:
            url = stack.enter_context(postgresql.database(stack.enter_context(postgresql.server(run))))
        except FileNotFoundError as error:
            pytest.skip(str(error))
        names = copies(url, LOOPS)
        nodes = [Node(url, tmp_path, 2.0, "--most-open", str(2 * LOOPS)) for _ in range(2)]
        for node in nodes:
            stack.callback(node.close)
            node.wait()
        asking = stack.enter_context(httpx.Client(timeout=LONGEST))
        crowds = [Crowd([node.port for node in nodes], name, 1) for name in names[:WRITERS]]
        rightful = {name: rendezvous(name, tuple(node.url for node in nodes)) for name in names}

        def shared() -> bool:
            with closing(psycopg.connect(url, autocommit=True)) as db:
                return owners(db) == rightful

        def wait_for_shares() -> None:
            """Until all loops are where they should be; each is used for that, as one that nobody uses has no owner."""
            for name in names:
                assert asking.post(f"{nodes[0].url}/v1/loops/{name}/decisions", json={}).status_code == 200
            until(shared, 5 * LONGEST)

        def all_is_well(act: str, since: list[int]) -> None:
            """All loops are where they should be, and each writer goes on."""
            wait_for_shares()
            before = [len(crowd.told) for crowd in crowds]
            until(lambda: all(len(crowd.told) > n + 10 for crowd, n in zip(crowds, before)), LONGEST)
            gaps[act] = max(longest_gap(crowd, n) for crowd, n in zip(crowds, since))

        def acknowledged() -> list[int]:
            return [len(crowd.told) for crowd in crowds]

        all_is_well("nothing", acknowledged())
        since = acknowledged()
        for node in nodes:
            node.finish()
            node.start()
            node.wait()
            wait_for_shares()
        all_is_well("a rolling restart", since)
        since = acknowledged()
        nodes[0].kill()
        until(lambda: all(len(crowd.told) > n + 10 for crowd, n in zip(crowds, since)), LONGEST)
        nodes[0].start()
        nodes[0].wait()
        all_is_well("a kill", since)
        since = acknowledged()
        postgresql.crash(run)
        until(lambda: all(len(crowd.told) > n + 10 for crowd, n in zip(crowds, since)), LONGEST)
        all_is_well("a crash of the database", since)
        for crowd in crowds:
            crowd.end()
        shares = Counter(rightful.values())
        assert all(0.4 * LOOPS <= shares[node.url] <= 0.6 * LOOPS for node in nodes)
        for node in nodes:
            node.finish()
        assert [each for crowd in crowds for each in crowd.wrong] == []
        n = sum(check(url, name, crowd) for name, crowd in zip(names, crowds))
    told = {act: round(gap, 2) for act, gap in gaps.items()}
    record_property("told", f"{n} events, {[*shares.values()]} loops; the longest gap of a writer, s: {told}")
