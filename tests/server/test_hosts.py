"""Loops served by Ray actors on two nodes: a node is killed while clients post, and nothing is lost or twice."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import pytest
from command import heedful

from alone import alone_with_ray
from budget import FACTOR
from heedful.server.app import App
from heedful.server.context import Options, ServerContext
from heedful.server.hosts import Front
from heedful.server.keys import Keys
from heedful.server.main import Server, config, listening_socket, served
from heedful.storage import Address
from loops import small_loop
from processes import Asker
from takeover import Crowd, Node, new_name

KILLS = 10 if FACTOR > 1 else 1
BACK = 10.0
"""Seconds after which there is service again: it is measured and told, and only the long version checks it."""
LONGEST = 120.0


def started(cluster: Callable[[], Any]) -> Any:
    """A cluster, which is tried again where its first node did not come up in the half minute that Ray gives it: that
    happens on a machine that is very busy."""
    for _ in range(4):
        try:
            return cluster()
        except Exception as error:  # Ray raises no other
            if "timed out during startup" not in str(error):
                raise
    return cluster()


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A Ray cluster on this machine, of one node, to which this process is connected."""
    if find_spec("ray") is None:
        told = "expected Ray for the tests of loops on a cluster, and it is not installed: pip install '.[ray]'"
        if os.environ.get("CI"):
            raise ModuleNotFoundError(told)
        pytest.skip(told)
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray
    from ray.cluster_utils import Cluster

    # A node that was killed refuses at once; one on a busy machine may take long to answer, and lives. Workers are as
    # nice as the rest (otherwise by 15, and beside eight busy programs they do not start in two minutes).
    quick = {"health_check_period_ms": 500, "health_check_timeout_ms": 20_000, "health_check_failure_threshold": 5}
    quick["worker_niceness"] = 0
    head = {"num_cpus": 1, "include_dashboard": False, "_system_config": quick}
    with alone_with_ray():
        made = started(partial(Cluster, initialize_head=True, head_node_args=head))
        ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
        yield made
        ray.shutdown()
        made.shutdown()


@contextmanager
def fronted(url: str, hosts: int) -> Iterator[tuple[Any, int]]:
    """(the front, its port) of so many hosts for the loops of a database."""
    front = Front(ServerContext(Address(url), Options(lease=2.0)), hosts)
    with listening_socket("127.0.0.1", 0) as listener:
        server = Server(config(front), front)
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        end = time.monotonic() + LONGEST
        while not server.started:
            assert thread.is_alive(), "the front did not start"
            assert time.monotonic() < end
            time.sleep(0.05)
        try:
            yield front, listener.getsockname()[1]
        finally:
            server.stop()
            thread.join(60)


async def look(port: int, name: str) -> None:
    """Requests through the front are answered as by a server."""
    asker = Asker(port)
    assert (await asker.ask("GET", "/healthz")).value == {"status": "ok"}
    assert name in (await asker.ask("GET", "/v1/loops")).value["loops"]
    first = await asker.ask("POST", f"/v1/loops/{name}/decisions", {"id": "first"})
    again = await asker.ask("POST", f"/v1/loops/{name}/decisions", {"id": "first"})
    assert (first.status, first.value["shown"]) == (200, again.value["shown"])
    wrong = await asker.ask("POST", f"/v1/loops/{name}/decisions", {"nonsense": 3})
    assert (wrong.status, wrong.value["type"]) == (422, "urn:heedful:problem:bad-input")
    assert (await asker.ask("GET", "/v1/loops/nobody")).status == 404
    assert (await asker.ask("GET", f"/v1/loops/{name}/events")).status == 404
    asker.close()


def test_a_loop_that_is_not_in_the_database_is_not_found(postgres: str) -> None:
    small_loop(f"{postgres}#{new_name()}").close()

    async def ask(port: int) -> tuple[int, str]:
        asker = Asker(port)
        reply = await asker.ask("POST", f"/v1/loops/{new_name()}/decisions", {})
        asker.close()
        return reply.status, reply.value["type"]

    with served(Address(postgres)) as url:
        assert asyncio.run(ask(int(url.rpartition(":")[2]))) == (404, "urn:heedful:problem:not-found")


def test_hosts_are_for_loops_in_a_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEEDFUL_DATABASE", raising=False)
    got = heedful("serve {} --hosts 2", tmp_path)
    assert got.code == 2
    assert "--hosts: expected loops in a --database, got a folder" in got.err


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="there is no Ray here")
def test_the_command_ends_at_sigterm_as_one_server_does(postgres: str, tmp_path: Path) -> None:
    with alone_with_ray(), closing(Node(postgres, tmp_path, 2.0, "--hosts", "2")) as node:
        node.wait(LONGEST)
        node.finish()


class Starting:
    """A host that is lost so often, and then is ready."""

    def __init__(self, lost: int) -> None:
        self.lost, self.ready = lost, self

    def remote(self) -> Any:
        """Its next answer."""
        return self.answer()

    async def answer(self) -> bool:
        """True, or the error of who asks a host that is lost."""
        self.lost -= 1
        if self.lost >= 0:
            raise ConnectionError("the node of the actor has died")
        return True


def starting(*hosts: Starting) -> Any:
    """A front of these hosts, without a cluster."""
    front = Front.__new__(Front)
    front._hosts, front._down, front._owners, front._gone = list(hosts), set(), {}, ConnectionError
    return front


def test_a_host_that_is_lost_as_it_starts_is_waited_for_and_the_others_serve() -> None:
    async def life() -> None:
        front = starting(Starting(0), Starting(1))
        await front.start()
        assert {front._place(name) for name in "abcdefgh"} == {0}
        async with asyncio.timeout(LONGEST):
            while front._down:
                await asyncio.sleep(0)
        assert {front._place(name) for name in "abcdefgh"} == {0, 1}
        front._watching.cancel()

    asyncio.run(life())


def test_without_any_host_the_front_does_not_start() -> None:
    front = starting(Starting(1), Starting(1))
    with pytest.raises(RuntimeError, match="expected a host that answers, and all of 2 were lost as they started"):
        asyncio.run(front.start())


@pytest.fixture
def forwarding(tmp_path: Path) -> tuple[Any, list[bytes], str]:
    """A front without a cluster, the bodies that it forwards, and a key of its loops."""
    with closing(Keys(tmp_path)) as keys:
        key = keys.create("me")[1]
    front, forwarded = Front.__new__(Front), list[bytes]()
    App.__init__(front, ServerContext(tmp_path))

    async def forward(scope: Any, body: bytes) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        forwarded.append(bytes(body))
        return 200, [], b"done"

    front._forward = forward  # type: ignore[method-assign]
    return front, forwarded, key


def sent(front: Any, method: str, path: str, key: str | None, parts: list[bytes]) -> tuple[int, int]:
    """(what a request whose body comes in these parts is answered, how many of them were read)."""
    headers = [(b"host", b"localhost"), (b"authorization", b"Bearer " + (key or "none").encode())]
    scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": headers[: 2 if key else 1]}
    answers, read = list[Any](), 0

    async def receive() -> Any:
        nonlocal read
        read += 1
        return {"type": "http.request", "body": parts[read - 1], "more_body": read < len(parts)}

    async def send(message: Any) -> None:
        answers.append(message)

    asyncio.run(front(scope, receive, send))
    assert [each["type"] for each in answers] == ["http.response.start", "http.response.body"]
    return answers[0]["status"], read


DECIDE, CLICKS = "/v1/loops/cars/decisions", "/v1/loops/cars/clicks"


@pytest.mark.parametrize("path", [DECIDE, "/v1/loops/cars/items", "/metrics", "/nowhere"])
def test_the_front_reads_nothing_of_whom_it_does_not_know(forwarding: tuple[Any, list[bytes], str], path: str) -> None:
    front, forwarded, key = forwarding
    parts = [b"x" * 2**16] * 40
    assert sent(front, "POST", path, None, parts) == (401, 0)
    assert sent(front, "POST", path, f"hk_00000000_{43 * 'A'}", parts) == (401, 0)
    assert forwarded == []
    assert sent(front, "POST", path, key, parts) == (200, 40)
    assert forwarded == [b"".join(parts)]


@pytest.mark.parametrize(("path", "known"), [(DECIDE, True), (CLICKS, False), ("/loops/cars", False), ("/s/t", False)])
def test_the_front_reads_no_more_than_a_server_does(
    forwarding: tuple[Any, list[bytes], str], path: str, known: bool
) -> None:
    front, forwarded, key = forwarding
    most = front.service.limits.body if known else 2**13
    part = b"x" * (most // 16)
    assert sent(front, "POST", path, key if known else None, [part] * 16) == (200, 16)
    assert forwarded == [part * 16]
    assert sent(front, "POST", path, key if known else None, [part] * 64) == (413, 17)
    assert len(forwarded) == 1


def owner(url: str, name: str) -> str:
    """The address of the server that owns a loop."""
    with psycopg.connect(url, autocommit=True) as connection:
        query = "SELECT address FROM heedful.lease JOIN heedful.loop ON number = loop WHERE name = %s"
        [(address,)] = connection.execute(query, [name]).fetchall()
    return str(address)


def until(found: Callable[[], bool], crowd: Crowd) -> None:
    end = time.monotonic() + LONGEST
    while not found():
        assert time.monotonic() < end, (crowd.statuses, crowd.wrong[:3])
        time.sleep(0.02)


def kill_a_node(postgres: str, cluster: Any) -> tuple[float, int, Counter[str]]:
    """Kill one of two nodes while clients post to the loop that it has. Return (the seconds until a decision was
    acknowledged that was asked for after the kill, how many events the log has, what became of the requests).

    Everything acknowledged is in the log, once; the host that was lost runs again, and the loop goes on."""
    import ray
    from test_takeover import check

    node = cluster.add_node(num_cpus=1)
    with fronted(postgres, 2) as (front, port):
        nodes = ray.get([host.node.remote() for host in front._hosts])
        assert len(set(nodes)) == 2, "a host on each node"
        there = nodes.index(node.node_id)
        name = next(each for each in iter(new_name, "") if front._place(each) == there)
        small_loop(f"{postgres}#{name}", control=0.0, shrink=5.0, snapshot_every=200).close()
        asyncio.run(look(port, name))
        crowd = Crowd([port], name)
        try:
            until(lambda: crowd.statuses["applied"] >= 50, crowd)
            assert owner(postgres, name) == f"host-{there}"
            killed = time.monotonic()
            cluster.remove_node(node, allow_graceful=False)
            until(lambda: there in front._down, crowd)  # until then the host may live, and answer
            began = time.monotonic()

            def later() -> list[float]:
                return [each.at for each in crowd.told[-200:] if each.kind == "decision" and each.sent > began]

            until(lambda: bool(later()), crowd)
            back, applied = min(later()) - killed, crowd.statuses["applied"]
            until(lambda: crowd.statuses["applied"] >= applied + 50, crowd)
            end = time.monotonic() + LONGEST
            while True:  # the host that was lost runs on the node that is left
                try:
                    assert ray.get(front._hosts[there].node.remote(), timeout=5) == nodes[1 - there]
                    break
                except ray.exceptions.RayError:
                    assert time.monotonic() < end, "the host was not started again"
                    time.sleep(0.5)
            until(lambda: there not in front._down, crowd)
            applied = crowd.statuses["applied"]
            until(lambda: crowd.statuses["applied"] >= applied + 50, crowd)
        finally:
            crowd.end()
        assert not crowd.wrong, crowd.wrong[:3]
    assert crowd.statuses["duplicate"] > 0
    return back, check(postgres, name, crowd), crowd.statuses


def test_a_node_is_killed_while_clients_post(
    postgres: str, cluster: Any, record_property: Callable[[str, object], None]
) -> None:
    took, events, statuses = [], 0, Counter[str]()
    for _ in range(KILLS):
        back, n, told = kill_a_node(postgres, cluster)
        took.append(round(back, 2))
        events, statuses = events + n, statuses + told
    told_all = f"a node killed {KILLS} times: {events} events, service back after {sorted(took)} s"
    record_property("told", f"{told_all}; {dict(statuses)}")
    assert max(took) < BACK or FACTOR == 1, took
