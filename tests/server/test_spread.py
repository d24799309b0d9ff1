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
from takeover import LONGEST, Crowd, Node, copies, new_name, owners

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


def test_what_is_asked_of_the_other_server_is_done_by_the_owner(
    postgres: str, servers: Callable[..., list[Node]]
) -> None:
    """Requests of programs, pages and clicks; one that was passed on already comes back with the owner's address."""
    name = new_name()
    small_loop(f"{postgres}#{name}", control=0.0).close()
    nodes = servers(postgres)
    at = {node.url: node for node in nodes}
    with closing(psycopg.connect(postgres, autocommit=True)) as db, httpx.Client(timeout=LONGEST) as client:

        def ask(method: str, path: str, value: Any = None, status: int = 200, **more: Any) -> Any:
            reply = client.request(method, f"{other.url}{path}", json=value, **more)
            assert reply.status_code == status, (path, reply.status_code, reply.text)
            return reply

        other = nodes[0]
        ask("POST", f"/v1/loops/{name}/decisions", {"id": "d0"})
        until(lambda: owners(db).get(name) == rendezvous(name, tuple(at)), LONGEST)
        owner = owners(db)[name]
        [other] = [node for url, node in at.items() if url != owner]
        loop = f"/v1/loops/{name}"
        shown = ask("POST", f"{loop}/decisions", {"id": "d1", "person": "p1"}).json()["shown"]
        feedback = {"decision": "d1", "id": "f1", "clicks": [shown[2]]}
        assert ask("POST", f"{loop}/feedback", feedback).json()["status"] == "applied"
        assert ask("POST", f"{loop}/feedback", feedback).json()["status"] == "duplicate"
        assert "clicks" in ask("POST", f"{loop}/feedback", {"decision": "d1", "clicks": 3}, 422).json()["detail"]
        ask("POST", f"{loop}/undo", {"event": "f1"})
        row = ask("GET", f"{loop}/decisions/d1/why").json()
        assert row["item"] == shown[0]
        ask("POST", f"{loop}/forget", {"person": "p1"})
        form = {"content": "", "headers": {"content-type": "application/x-www-form-urlencoded", "origin": other.url}}
        assert ask("POST", f"/loops/{name}/snapshot", status=303, **form).headers["location"] == "/"
        ask("POST", f"/v1/loops/{new_name()}/decisions", {}, 404)
        refused = ask("POST", f"{loop}/decisions", {}, 421, headers={"heedful-passed": "1"})
        assert refused.json()["owner"] == owner
        counted = [
            line for line in ask("GET", "/metrics").text.splitlines() if line.startswith("heedful_requests_total")
        ]
    assert not [line for line in counted if 'status="5' in line]
    assert [line for line in counted if 'route="feedback",status="421"' in line]
    assert not [line for line in counted if 'route="feedback",status="200"' in line]


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
            until(lambda: rightful.items() <= owners(db).items(), LONGEST)  # others may have loops of earlier tests
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
