"""Two servers on one PostgreSQL share its loops, with few connections, and loops that move lose nothing."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest
from test_takeover import check

from budget import FACTOR
from heedful.server.peers import rendezvous
from loops import small_loop
from processes import until
from takeover import LONGEST, Crowd, Node, new_name

LOOPS = 500 if FACTOR > 1 else 24
LEFT = 97
"""The connections of a database of which `max_connections` is 100: three are kept for superusers."""


@contextmanager
def few_connections(url: str) -> Iterator[str]:
    """The URL of the database for a role that has no more connections than there are by default."""
    role, parts = f"few_{secrets.token_hex(6)}", urlsplit(url)
    with closing(psycopg.connect(url, autocommit=True)) as db:
        db.execute(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT {LEFT}")  # type: ignore[arg-type]
        db.execute(f"GRANT CREATE ON DATABASE {parts.path[1:]} TO {role}")  # type: ignore[arg-type]
        try:
            yield parts._replace(netloc=f"{role}@{parts.hostname}:{parts.port}").geturl()
        finally:
            db.execute(f"DROP OWNED BY {role} CASCADE")  # type: ignore[arg-type]
            db.execute(f"DROP ROLE {role}")  # type: ignore[arg-type]


def copies(url: str, n: int) -> list[str]:
    """The names of `n` new loops, all the same one."""
    first = new_name()
    small_loop(f"{url}#{first}", control=0.0).close()
    with closing(psycopg.connect(url)) as db, db:
        columns = "seq, kind, id, time, subject, target, version, payload, arrays, checked"
        db.execute(
            "INSERT INTO heedful.loop (name, secret) SELECT name || '-' || i, secret FROM heedful.loop, "
            "generate_series(2, %s) AS i WHERE name = %s",
            [n, first],
        )
        db.execute(
            f"INSERT INTO heedful.event (loop, {columns}) SELECT copy.number, {columns} FROM heedful.event, "  # type: ignore[arg-type]
            "heedful.loop AS of, heedful.loop AS copy WHERE event.loop = of.number AND of.name = %s "
            "AND copy.name <> of.name AND starts_with(copy.name, of.name)",
            [first],
        )
    return [first, *(f"{first}-{i}" for i in range(2, n + 1))]


def owners(db: psycopg.Connection[Any]) -> dict[str, str]:
    """Which server owns each loop now."""
    query = "SELECT name, address FROM heedful.lease JOIN heedful.loop ON number = loop"
    return dict(db.execute(f"{query} WHERE expires > clock_timestamp()").fetchall())  # type: ignore[arg-type]


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Callable[..., list[Node]]]:
    """Starts two servers of the database at a URL, with options."""
    nodes: list[Node] = []

    def start(url: str, *options: str, lease: float = 2.0) -> list[Node]:
        nodes.extend(Node(url, tmp_path, lease, *options) for _ in range(2))
        for node in nodes:
            node.wait()
        return nodes

    yield start
    for node in nodes:
        node.close()


def test_both_have_their_share_after_a_rolling_restart(
    postgres: str, servers: Callable[..., list[Node]], record_property: Callable[[str, object], None]
) -> None:
    """Also where there are no more connections than by default, and all loops are open on both."""
    with ExitStack() as stack:
        url = stack.enter_context(few_connections(postgres))
        names = copies(url, LOOPS)
        nodes = servers(url, "--most-open", str(2 * LOOPS))
        db = stack.enter_context(closing(psycopg.connect(postgres, autocommit=True)))
        asking = stack.enter_context(httpx.Client(timeout=LONGEST))
        rightful = {name: rendezvous(name, tuple(node.url for node in nodes)) for name in names}

        def write_to_all(node: Node) -> None:
            """Whichever server is asked, each is answered."""
            for name in names:
                reply = asking.post(f"{node.url}/v1/loops/{name}/decisions", json={"person": "p1"})
                assert reply.status_code == 200, reply.text

        write_to_all(nodes[0])
        until(lambda: owners(db) == rightful, 5 * LONGEST)
        for node, other in zip(nodes, reversed(nodes)):
            node.finish()
            write_to_all(other)
            assert set(owners(db).values()) == {other.url}
            node.start()
            node.wait()
            until(lambda: owners(db) == rightful, 5 * LONGEST)
        write_to_all(nodes[1])
        query = "SELECT count(*) FROM pg_stat_activity WHERE usename = %s"
        [[connections]] = db.execute(query, [urlsplit(url).username]).fetchall()
        texts = [asking.get(f"{node.url}/metrics").text for node in nodes]
        shares = Counter(owners(db).values())
        for node in nodes:
            node.close()
    refused = [line for text in texts for line in text.splitlines() if 'status="5' in line]
    assert refused == []
    if LOOPS >= 500:
        assert all(0.4 * LOOPS <= shares[node.url] <= 0.6 * LOOPS for node in nodes)
    record_property("told", f"{LOOPS} loops: {[*shares.values()]}, {connections} connections of both servers")


def test_nothing_is_lost_while_loops_move_under_those_who_write(
    postgres: str, servers: Callable[..., list[Node]], record_property: Callable[[str, object], None]
) -> None:
    nodes, names = servers(postgres), list[str]()
    addresses = tuple(node.url for node in nodes)
    while Counter(rendezvous(name, addresses) for name in names) != dict.fromkeys(addresses, 2):
        names = [new_name() for _ in range(4)]
    rightful = {name: rendezvous(name, addresses) for name in names}
    for name in names:
        small_loop(f"{postgres}#{name}", control=0.0, shrink=5.0, snapshot_every=100).close()
    crowds = [Crowd([node.port for node in nodes], name) for name in names]
    refused = list[int]()

    def wait_for_more(n: int) -> None:
        before = [len(crowd.told) for crowd in crowds]
        until(lambda: all(len(crowd.told) > was + n for crowd, was in zip(crowds, before)), LONGEST)

    with closing(psycopg.connect(postgres, autocommit=True)) as db:
        for node in (nodes * 2 * FACTOR)[: 2 + FACTOR]:
            wait_for_more(10)
            node.finish()
            wait_for_more(10)
            node.start()
            node.wait()
            before = sum(crowd.statuses["503"] for crowd in crowds)
            until(lambda: owners(db) == rightful, LONGEST)
            wait_for_more(10)
            refused.append(sum(crowd.statuses["503"] for crowd in crowds) - before)
    for crowd in crowds:
        crowd.end()
    for node in nodes:
        node.close()
    statuses = sum((crowd.statuses for crowd in crowds), Counter[str]())
    assert [each for crowd in crowds for each in crowd.wrong] == []
    n = sum(check(postgres, name, crowd) for name, crowd in zip(names, crowds))
    record_property("told", f"{n} events, {dict(statuses)}; 503 while loops moved to a server that came: {refused}")
