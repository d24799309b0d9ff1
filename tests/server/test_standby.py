"""A second server on one PostgreSQL follows what the owner of a loop writes, answers who reads, and takes over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from budget import FACTOR
from heedful import Loop
from heedful.client import Client
from heedful.server.main import served
from heedful.storage import Address
from loops import bits, bits_from_scratch, small_loop
from processes import until
from takeover import LONGEST, Crowd, Node, new_name

EVENTS = 50_000 if FACTOR > 1 else 2_000
"""Of the loop that is taken over. Its only snapshot is the one it began with, so that opening it takes all of them."""


def taught(url: str, name: str, n: int) -> None:
    """Make a loop with `n` pieces of feedback and no snapshot."""
    with small_loop(f"{url}#{name}", "perceptron", control=0.0, shrink=3.0, snapshot_every=10**9) as loop:
        shown = [loop.decide(id=f"d{i}", person=f"p{i % 20}").shown for i in range(20)]
        for begin in range(0, n, 5_000):
            ids = range(begin, min(begin + 5_000, n))
            loop.feedback_many(
                {"decision": f"d{i % 20}", "id": f"e{i}", "clicks": [shown[i % 20][i % 3 + 1]]} for i in ids
            )
    with psycopg.connect(url, autocommit=True) as connection:
        query = "DELETE FROM heedful.snapshot USING heedful.loop WHERE number = loop AND name = %s"
        connection.execute(query, [name])


@pytest.fixture
def pair(postgres: str, tmp_path: Path) -> Iterator[Callable[..., tuple[Node, Node]]]:
    """Two servers on the database; the arguments are the seconds of their leases."""
    nodes: list[Node] = []

    def started(lease: float = 2.0) -> tuple[Node, Node]:
        nodes.extend(Node(postgres, tmp_path, lease=lease) for _ in range(2))
        for node in nodes:
            node.wait()
        one, two = nodes
        return one, two

    yield started
    for node in nodes:
        node.close()


def test_a_loop_that_is_not_in_the_database_is_not_found(postgres: str) -> None:
    small_loop(f"{postgres}#{new_name()}").close()
    with served(Address(postgres)) as url:
        reply = httpx.post(f"{url}/v1/loops/{new_name()}/decisions", json={})
    assert (reply.status_code, reply.json()["type"]) == (404, "urn:heedful:problem:not-found")


def write(node: Node, name: str, n: int) -> httpx.Response:
    """Ask a server for a decision; again, as it says, where it or the owner was too busy to answer (503)."""
    end = time.monotonic() + LONGEST
    while True:
        asked = {"id": f"new{n}", "person": "p1"}
        reply = httpx.post(f"{node.url}/v1/loops/{name}/decisions", json=asked, timeout=LONGEST)
        if reply.status_code != 503 or time.monotonic() > end:
            return reply
        assert "send it again" in reply.json()["detail"], reply.text
        time.sleep(0.1)


def version(node: Node, name: str) -> float | None:
    """Return the version of a server's model of a loop, which is not opened for that; None if it is not open."""
    lines = httpx.get(f"{node.url}/metrics", timeout=LONGEST).text.splitlines()
    found = [line for line in lines if line.startswith("heedful_model_version{") and f'"{name}"' in line]
    return float(found[0].split()[-1]) if found else None


def test_a_standby_follows_and_takes_over(
    postgres: str, pair: Callable[..., tuple[Node, Node]], record_property: Callable[[str, object], None]
) -> None:
    """It has learned everything before anyone asks it, so that taking over reads the tail alone."""
    name = new_name()
    taught(postgres, name, EVENTS)
    owner, standby = pair()
    began = time.monotonic()
    assert write(owner, name, 0).status_code == 200
    opening = time.monotonic() - began
    until(lambda: (version(standby, name) or 0) == version(owner, name) > EVENTS, LONGEST)
    feedback = {"decision": "new0", "id": "last", "clicks": ["i3"]}
    assert httpx.post(f"{owner.url}/v1/loops/{name}/feedback", json=feedback, timeout=LONGEST).status_code == 200
    until(lambda: version(standby, name) == version(owner, name), LONGEST)

    began = time.monotonic()
    owner.kill()
    until(lambda: write(standby, name, 1).status_code == 200, LONGEST)
    took = time.monotonic() - began
    began = time.monotonic()
    owner.start()
    owner.wait()
    assert httpx.get(f"{owner.url}/v1/loops/{name}", timeout=LONGEST).status_code == 200
    standby.close()
    with Loop.open(f"{postgres}#{name}") as loop:
        assert loop.projection.model.shared.t == EVENTS + 1
        assert bits(loop) == bits_from_scratch(loop)
    told = f"a loop of {EVENTS:,} events was first served after {opening:.2f} s; taken over {took:.2f} s after the kill"
    record_property("told", told)


def test_a_client_that_knows_one_server_is_served_by_the_owner(
    postgres: str, pair: Callable[..., tuple[Node, Node]]
) -> None:
    """It goes where the other one says, and comes back when the owner is gone."""
    name = new_name()
    taught(postgres, name, 20)
    owner, other = pair()
    assert write(owner, name, 0).status_code == 200
    with Client(other.url, timeout=LONGEST, patience=LONGEST) as client:
        loop = client.loop(name)
        d = loop.decide(person="p1", id="by-the-owner")
        assert not d.fallback
        assert loop.feedback(d, clicks=[d.shown[2]], id="applied").status == "applied"
        assert httpx.get(f"{owner.url}/v1/loops/{name}", timeout=LONGEST).status_code == 200
        owner.kill()
        assert loop.feedback(d, clicks=[d.shown[1]], id="after-the-kill").status == "applied"
        assert not loop.decide(person="p1", id="by-the-other").fallback
    with Loop.open(f"{postgres}#{name}") as loop_itself:
        ids = [event.id for event in loop_itself.projection.log.events(kinds=["decision", "feedback"])]
        assert ids[-4:] == ["by-the-owner", "applied", "after-the-kill", "by-the-other"]


def answers(node: Node, name: str) -> dict[str, Any]:
    """What a server says to everything that is read of a loop."""
    paths = ["", "/weights", "/weights?person=p3", "/standing", "/report", "/health", "/items", "/promotions"]
    paths += ["/decisions/d3/why", "/decisions/d3/why?item=i3", "/events?follow=false&after=10"]
    found, headers = {}, {"x-request-id": "r"}  # which all problems say
    for path in paths:
        reply = httpx.get(f"{node.url}/v1/loops/{name}{path}", timeout=LONGEST, headers=headers)
        found[path] = reply.status_code, reply.text
    ranked = httpx.post(f"{node.url}/v1/loops/{name}/rank", json={"person": "p3"}, timeout=LONGEST)
    found["/rank"] = ranked.status_code, ranked.text
    return found


def test_every_server_answers_who_reads(postgres: str, pair: Callable[..., tuple[Node, Node]]) -> None:
    name = new_name()
    taught(postgres, name, 200)
    owner, other = pair()
    assert write(owner, name, 0).status_code == 200
    feedback = {"decision": "new0", "id": "last", "clicks": ["i3"]}
    assert httpx.post(f"{owner.url}/v1/loops/{name}/feedback", json=feedback).status_code == 200
    told, told_by_other = answers(owner, name), answers(other, name)
    assert told_by_other == told
    assert {path for path, (status, _) in told.items() if status != 200} <= {"/standing"}, told
    # So do commands and Python, without waiting for the owner.
    with Loop.open(f"{postgres}#{name}") as loop:
        assert loop.projection.model.shared.t == 201
        assert loop.report().decisions == 21
        assert loop.verify() == []
        assert httpx.post(f"{owner.url}/v1/loops/{name}/feedback", json=feedback | {"id": "more"}).status_code == 200
        assert loop.report().feedback.given == 202
        assert loop.projection.model.shared.t == 202


def test_a_server_that_ends_hands_its_loops_over(
    postgres: str, pair: Callable[..., tuple[Node, Node]], record_property: Callable[[str, object], None]
) -> None:
    """In turn, as at a rolling restart. If it kept its lease, the other would have to wait for two minutes."""
    name = new_name()
    taught(postgres, name, 200)
    nodes = pair(lease=120.0)
    assert write(nodes[0], name, 0).status_code == 200
    crowd = Crowd([node.port for node in nodes], name)
    took = []
    for node in (nodes[0], nodes[1], nodes[0]):
        applied = crowd.statuses["applied"]
        until(lambda: crowd.statuses["applied"] > applied + 20, LONGEST)  # noqa: B023
        began = time.monotonic()
        node.child.terminate()
        node.child.wait(60.0)
        ended = time.monotonic()
        until(lambda: any(each.sent > ended for each in crowd.told[-50:]), 60.0)  # noqa: B023
        acknowledged = [began, *(each.at for each in crowd.told if each.at > began)]
        took.append(max(after - before for before, after in pairwise(acknowledged)))
        assert "Traceback" not in node.told.read_text(), node.told.read_text()
        node.start()
        node.wait()
    crowd.end()
    for node in nodes:
        node.close()
    assert crowd.wrong == []
    with Loop.open(f"{postgres}#{name}") as loop:
        for each in crowd.told:
            event = loop.projection.log.find(each.kind, each.id)
            assert event is not None, each
            assert event.seq == each.seq
        assert bits(loop) == bits_from_scratch(loop)
    longest = [round(each, 2) for each in took]
    record_property("told", f"a server ended in order: nothing was acknowledged for at most {longest} s")
