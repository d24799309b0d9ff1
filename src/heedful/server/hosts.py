"""Loops of a database on many machines: Ray actors that serve them ("hosts"), behind one HTTP front.

Each host is the whole application of a server, as `heedful serve` runs it on a database, in an actor of its own. The
front sends a request to the host that its loop is placed on by name. Who may write to a loop is decided by its lease in
the database alone, so it does no harm if two fronts place a loop differently, or if a host that was thought to be gone
comes back: a host that does not own the loop refuses, and names the owner.

If a host is gone, the requests that it had are answered "unavailable". Nothing is sent twice by the front, and Ray
repeats no call (`max_task_retries=0`): the client sends its event again, under the same id, which counts once. The
loops go to the next host, which follows their logs all the time and owns them as soon as the lease has run out. Ray
starts the host again on a node that is left.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from starlette.requests import Request

from heedful.core.engine import connect_ray
from heedful.server import codecs
from heedful.server.app import App, create_app
from heedful.server.codecs import Headers, Receive, Send
from heedful.server.context import Options, ServerContext
from heedful.server.page_clicks import SIZE
from heedful.server.pages import FIRST, page_caller
from heedful.server.pages.page import FORM
from heedful.server.peers import PASSED, owner_of, rendezvous
from heedful.server.problems import Problem, unavailable
from heedful.server.routes import ROUTES, check_caller
from heedful.server.server_log import log
from heedful.storage import Address

PING, PATIENCE = 0.5, 3.0
"""Seconds between two looks at whether hosts answer, and how long one may take to."""
SHARE = 0.01
"""The share of a core that a host reserves: with none, Ray does not heed where it is asked to place it."""
AT_ONCE = 1000
"""How many requests a host has at a time at most; others wait."""
STREAMS = "events"
"""The last segment of paths whose answers do not end: they are not served through the front."""

OPEN = SIZE
"""The most bytes of a body that comes without a key or a session: a click that a page reports, or a small form."""
_WITHOUT_KEY = frozenset(route.path.rpartition("/")[2] for route in ROUTES if route.scope is None)

Reply = tuple[int, list[tuple[bytes, bytes]], bytes]
"""status, headers and body of an answer"""


class Host:
    """The application for the loops of a database, in a Ray actor."""

    def __init__(self, url: str, key: str, options: Options, places: Sequence[str]) -> None:
        """Prepare to serve the database at `url`, or the part of it under `key`, with these `options`.

        `places` are folders from which Python modules are imported, as on the machine of the front."""
        sys.path.extend(place for place in places if place not in sys.path)
        self._app = create_app(Address(url, key), options)
        self._started = False

    async def ready(self) -> bool:
        """Return True once requests are served."""
        if not self._started:
            self._started = True
            await self._app.service.start()
        return True

    async def handle(self, scope: dict[str, Any], body: bytes) -> Reply:
        """Return the answer to a request with this ASGI `scope` and `body`."""
        await self.ready()
        status, headers, parts, sent = 500, list[tuple[bytes, bytes]](), list[bytes](), False

        async def receive() -> dict[str, Any]:
            nonlocal sent
            if sent:
                await asyncio.Event().wait()  # the front does not tell when a client hangs up
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            nonlocal status, headers
            if message["type"] == "http.response.start":
                status, headers = message["status"], [(bytes(k), bytes(v)) for k, v in message.get("headers", ())]
            elif message["type"] == "http.response.body":
                parts.append(bytes(message.get("body", b"")))

        try:
            await self._app(scope, receive, send)
        except Exception:
            log.exception("a request failed")
            return 500, [(b"content-length", b"0")], b""
        return status, headers, b"".join(parts)

    async def node(self) -> str:
        """Return the id of the Ray node that the host runs on."""
        import ray

        return str(ray.get_runtime_context().get_node_id())

    async def end(self) -> None:
        """Close all loops, so that other hosts can have them at once."""
        await self._app.service.stop()


class Front(App):
    """An ASGI application that forwards each request to one of the hosts (Ray actors), the one of its loop."""

    def __init__(self, service: ServerContext, hosts: int) -> None:
        """Prepare to serve the loops of `service` by `hosts` Ray actors. They run on the Ray cluster that this process
        is connected to; if there is none, one is started on this machine.

        Raise ValueError if the loops are not in a database."""
        super().__init__(service)
        if not isinstance(service.folder, Address):
            raise ValueError(f"hosts: expected loops in a database (--database URL), got the folder {service.folder}")
        ray = connect_ray()
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._gone: type[Exception] = ray.exceptions.RayError
        self._ray, address = ray, service.folder
        actor = ray.remote(num_cpus=SHARE, max_restarts=-1, max_task_retries=0, max_concurrency=AT_ONCE)(Host)
        options = service.options._replace(words=dict(service.options.words))
        service.options = options._replace(forget_unseen=None)  # the hosts do that
        nodes = sorted(node["NodeID"] for node in ray.nodes() if node["Alive"])
        self._hosts = []
        for i in range(hosts):  # soft: if the node is gone, the host starts again on another one
            placed = actor.options(scheduling_strategy=NodeAffinitySchedulingStrategy(nodes[i % len(nodes)], soft=True))
            host_options = options._replace(address=f"host-{i}")
            self._hosts.append(placed.remote(address.url, address.key, host_options, list(sys.path)))
        self._down = set[int]()
        self._owners: dict[str, int] = {}
        """by name of a loop, the host that owns it, where that is not the one it is placed on"""
        self._watching: asyncio.Task[None] | None = None

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await super().__call__(scope, receive, send)
            return
        request_headers: Headers = dict(scope["headers"])
        try:
            limits = self.service.limits._replace(body=await self._most(scope, request_headers))
            status, headers, content = await self._forward(scope, await codecs.read(request_headers, receive, limits))
        except Problem as problem:
            for message in codecs.problem_messages(problem):
                await send(message)
            return
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    async def _most(self, scope: Any, headers: Headers) -> int:
        """Return how many bytes the body of a request may have, which is read as a whole here before a host gets it."""
        service, most = self.service, self.service.limits.body
        first, last = scope["path"][1:].partition("/")[0], scope["path"].rpartition("/")[2]
        if not first or first in FIRST:
            if scope["method"] == "POST":
                with suppress(Problem):
                    await page_caller(service, Request(scope))
                    return min(FORM, most)
            return min(OPEN, most)
        if last in _WITHOUT_KEY:
            return min(OPEN, most)
        check_caller(service, headers, None)
        return most

    async def _forward(self, scope: Any, body: bytes) -> Reply:
        parts = scope["path"].split("/")
        if parts[-1] == STREAMS:
            raise Problem("not-found", "streams of events are not served through this front")
        name = (
            parts[parts.index("loops") + 1] if "loops" in parts[1:3] and len(parts) > parts.index("loops") + 1 else ""
        )
        kept = ("type", "http_version", "method", "scheme", "path", "raw_path", "query_string", "root_path", "headers")
        head = {key: scope[key] for key in (*kept, "client", "server", "asgi") if key in scope}
        head["headers"] = [*((bytes(key), bytes(value)) for key, value in scope["headers"]), (PASSED, b"1")]
        for _ in range(2):
            i = self._place(name)
            try:
                reply: Reply = await self._hosts[i].handle.remote(head, body)
            except self._gone as error:
                self._down.add(i)
                log.warning("host %d is gone: %s", i, type(error).__name__)
                detail = "the server of this loop is gone; whether the request was done is not known: send it again"
                raise unavailable(detail) from None
            owner = _owner(reply)
            if owner is None or owner == i or owner >= len(self._hosts) or owner in self._down:
                break
            self._owners[name] = owner  # nothing was changed: the owner may be asked at once
        if owner is not None:
            raise unavailable("the server that owns this loop cannot be reached; nothing was changed: send it again")
        return reply

    def _place(self, name: str) -> int:
        """Return the number of the host that gets requests for the loop `name`: its owner, if that is known."""
        there = [i for i in range(len(self._hosts)) if i not in self._down] or list(range(len(self._hosts)))
        owner = self._owners.get(name)
        if owner in there:
            return owner
        self._owners.pop(name, None)
        return int(rendezvous(name, tuple(f"host-{i}" for i in there)).removeprefix("host-"))

    async def _look(self, i: int, patience: float | None = PATIENCE) -> None:
        """Note whether host `i` answers within so many seconds."""
        answer = asyncio.ensure_future(_await_reference(self._hosts[i].ready.remote()))
        try:
            await asyncio.wait_for(asyncio.shield(answer), patience)
            self._down.discard(i)
        except (self._gone, TimeoutError) as error:
            if i not in self._down:
                log.warning("host %d does not answer: %s", i, error or type(error).__name__)
            self._down.add(i)

    async def _watch(self) -> None:
        """Check again and again which hosts answer."""
        while True:
            await asyncio.gather(*(self._look(i) for i in range(len(self._hosts))))
            await asyncio.sleep(PING)

    async def start(self) -> None:
        """Wait for all hosts, but for those that are lost meanwhile: Ray starts them again."""
        await asyncio.gather(*(self._look(i, None) for i in range(len(self._hosts))))
        if len(self._down) == len(self._hosts):
            raise RuntimeError(f"expected a host that answers, and all of {len(self._hosts)} were lost as they started")
        self._watching = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        """Let all hosts close their loops, for at most 15 s each, and end them."""
        if self._watching is not None:
            self._watching.cancel()
        for host in self._hosts:
            with suppress(self._gone, TimeoutError):
                await asyncio.wait_for(_await_reference(host.end.remote()), 15.0)
            with suppress(Exception):
                self._ray.kill(host)
        await super().stop()


async def _await_reference(reference: Any) -> Any:
    return await reference


def _owner(reply: Reply) -> int | None:
    """Return the number of the host that owns a loop, from the refusal of one that does not; else None."""
    with suppress(ValueError):
        return int(owner_of(reply[0], reply[1]).removeprefix("host-"))
    return None
