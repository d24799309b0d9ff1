"""A request for a loop that another server owns is passed on to it, once; and which server should own which loop."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from faulty import Faulty, Request, Response, cut, deaf, hang, raw, say, unused, with_
from heedful.server import codecs
from heedful.server.metrics import PASSED_ON, Metrics
from heedful.server.peers import HERE, PASSED, Passing, Peers, rendezvous
from heedful.server.problems import OWNER, as_problem
from heedful.storage import Owned

PATH = "/v1/loops/cars/feedback"
BODY = b'{"decision":"d1","clicks":["a"]}'
ASKED = {"content-type": "application/json", "authorization": "Bearer hk_x", "host": "rank.example", "cookie": "a=b"}


def echo(request: Request) -> Response:
    """What came, as an answer."""
    return say({"path": request.path, "query": request.query, "body": request.body.decode()}, 201, X_More="kept")


@pytest.fixture
def owner() -> Iterator[Faulty]:
    """The server that owns the loop."""
    server = Faulty(echo)
    yield server
    server.close()


class Here:
    """The application of this server: it says who owns the loop, as long as there is somebody in `owners`."""

    def __init__(self, *owners: str) -> None:
        self.owners, self.bodies, self.here = list(owners), list[bytes](), list[bool]()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Read the body and answer."""
        self.bodies.append((await receive())["body"])
        self.here.append(HERE in scope)
        if self.owners:
            messages: Any = codecs.problem_messages(as_problem(Owned("theirs", self.owners.pop(0))))
        else:
            messages = codecs.messages({"here": True})
        for message in messages:
            await send(message)


class Asked:
    """What a request to this server came to."""

    def __init__(
        self, here: Here, peers: Peers | None = None, times: int = 1, stopping: bool = False, **headers: str
    ) -> None:
        self.peers = Peers("http://127.0.0.1:1", 60.0) if peers is None else peers
        self.metrics = Metrics(None)
        self.status, self.headers, self.body = 0, dict[bytes, bytes](), b""
        self.stopping = asyncio.Event()
        self._passing = Passing(here, self.peers, self.metrics, codecs.Limits(), self.stopping)
        asyncio.run(self._ask(times, stopping, ASKED | headers))

    async def _ask(self, times: int, stopping: bool, headers: dict[str, str]) -> None:
        async def receive() -> Any:
            return {"type": "http.request", "body": BODY, "more_body": False}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                self.status, self.headers = message["status"], dict(message["headers"])
            else:
                self.body = message["body"]

        sent = [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()]
        scope = {"type": "http", "method": "POST", "path": PATH, "raw_path": PATH.encode(), "query_string": b"a=%20"}
        if stopping:
            self.stopping.set()
        for _ in range(times):
            await self._passing(scope | {"headers": sent}, receive, send)
        self._passing.close()

    @property
    def value(self) -> Any:
        """The body, read."""
        return msgspec.json.decode(self.body)


def test_it_goes_to_the_owner_as_it_came_and_the_answer_comes_back(owner: Faulty) -> None:
    here = Here(owner.url + "/below", owner.url + "/below")
    asked = Asked(here, times=2)
    assert (asked.status, asked.value["body"], asked.headers[b"x-more"]) == (201, BODY.decode(), b"kept")
    assert (asked.value["path"], asked.value["query"]) == (f"/below{PATH}", "a=%20")
    for request in owner.seen:
        assert {name: request.headers[name] for name in ASKED} == ASKED
        assert request.headers[PASSED.decode()] == "1"
    assert (len(owner.seen), len(owner._accepted)) == (2, 1), "the connection is used again"
    assert asked.metrics.requests == {}, "it is counted where it is answered"


def test_one_that_was_passed_on_is_not_passed_on_again(owner: Faulty) -> None:
    here = Here(owner.url)
    asked = Asked(here, heedful_passed="1")
    assert (asked.status, asked.headers[OWNER.lower().encode()]) == (421, owner.url.encode())
    assert (asked.value["owner"], here.here, owner.seen) == (owner.url, [True], [])


@pytest.mark.parametrize("why", ["away", "free", "no server"])
def test_what_the_owner_did_not_do_is_done_here_if_the_loop_is_free(owner: Faulty, why: str) -> None:
    at = {"away": unused(), "free": owner.url, "no server": "host-1"}[why]
    owner.otherwise = with_(say({}, 421, Heedful_Owner="http://elsewhere"))
    here = Here(at)
    asked = Asked(here)
    assert (asked.status, asked.value) == (200, {"here": True})
    assert (here.bodies, here.here) == ([BODY, BODY], [False, True])
    assert asked.peers.is_away(at) == (why != "free")


def test_it_is_asked_where_it_went_meanwhile(owner: Faulty) -> None:
    asked = Asked(Here(unused(), owner.url))
    assert (asked.status, asked.value["body"]) == (201, BODY.decode())


def test_an_owner_that_cannot_be_reached_is_said_to_be(owner: Faulty) -> None:
    away = unused()
    asked = Asked(Here(away, away))
    assert (asked.status, asked.value["type"]) == (503, "urn:heedful:problem:unavailable")
    assert "nothing was changed" in asked.value["detail"]
    assert asked.headers[b"retry-after"] == b"1"
    assert asked.metrics.requests == {("", PASSED_ON, 503): 1}


@pytest.mark.parametrize(
    "fault", [cut, deaf, raw(b"HTTP/1.1 200 OK\r\n\r\n"), raw(b"x" * 2**17), raw(b"SSH-2.0\r\n\r\n")]
)
def test_it_is_not_done_twice_if_the_owner_does_not_answer(owner: Faulty, fault: Any) -> None:
    """Nobody knows whether it was done there: the client sends it again, with its id."""
    owner.faults.append(fault)
    here = Here(owner.url)
    asked = Asked(here)
    assert (asked.status, len(here.bodies)) == (503, 1)
    assert "not known" in asked.value["detail"]


def test_an_owner_that_hangs_is_given_up_when_it_is_there_no_more(owner: Faulty) -> None:
    class Going(Peers):
        looks = 0

        def is_there(self, address: str) -> bool:
            self.looks += 1
            return self.looks < 3

    owner.faults.append(hang)
    asked = Asked(Here(owner.url), Going("http://127.0.0.1:1", 60.0))
    assert (asked.status, len(owner.seen)) == (503, 1)


def test_a_server_that_ends_does_not_wait_for_the_others(owner: Faulty) -> None:
    owner.faults.append(hang)
    asked = Asked(Here(owner.url), stopping=True)
    assert (asked.status, len(owner.seen)) == (503, 1)


# ---------------------------------------------------------------------------- which server should own which loop


def test_a_server_that_comes_or_goes_moves_its_own_share_alone() -> None:
    names, servers = [f"loop-{i}" for i in range(3000)], tuple(f"http://192.0.2.{i}:8710" for i in range(4))
    before = {name: rendezvous(name, servers[:3]) for name in names}
    after = {name: rendezvous(name, servers) for name in names}
    assert all(600 < n < 900 for n in Counter(after.values()).values())
    assert {after[name] for name in names if after[name] != before[name]} == {servers[3]}
    assert after == {name: rendezvous(name, servers[::-1]) for name in names}, "whoever works it out"


def test_all_servers_agree_and_leave_out_who_is_away() -> None:
    addresses = ["http://a:1", "http://b:1", "http://c:1"]
    every = [Peers(each, 60.0) for each in addresses]
    for peers in every:
        peers.ready = {each: frozenset() for each in addresses if each != peers.address}
    for name in ("cars", "acme/cars", "films"):
        assert len({peers.rightful(name) or peers.address for peers in every}) == 1
    away = every[0].rightful("cars") or every[0].address
    [first, *_] = [peers for peers in every if peers.address != away]
    first.lose(away)
    assert first.rightful("cars") != away
    assert not first.is_there(away)
