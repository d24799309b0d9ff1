"""The ASGI application: it hands decisions and feedback to their endpoints, pages to the application of pages, and all
other requests to Starlette's router."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from heedful.server import pages, routes
from heedful.server.codecs import Receive, Send
from heedful.server.context import Options, ServerContext
from heedful.server.pages import FIRST
from heedful.server.peers import Passing
from heedful.server.server_log import begin_request
from heedful.storage import Address, place_of

ASGI = Callable[[Any, Receive, Send], Awaitable[None]]


class App:
    """The ASGI application that serves a folder of loops, or those of a database: the HTTP interface and the pages."""

    def __init__(self, service: ServerContext) -> None:
        self.service = service
        self.sharing: int | None = None
        """the port for participants, on which only what a link opens is served; None without one"""
        self.connections: int | None = None
        """the most connections at once; None for no limit"""
        self._direct = {name: routes.Endpoint(service, route) for name, route in routes.DIRECT.items()}
        self._routes: ASGI = routes.mount(service)
        self._pages: ASGI = pages.mount(service)
        self._passing: Passing | None = None
        if service.loops.peers is not None:
            passed = service.loops.peers, service.metrics, service.limits, service.stopping
            self._passing = Passing(self._answer, *passed)

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self.sharing is not None and scope["server"][1] == self.sharing:
            shared = scope["path"].startswith(("/s/", "/static/"))
            await (self._pages if shared else nothing)(scope, receive, send)
            return
        if scope["type"] == "lifespan":
            while (await receive())["type"] == "lifespan.startup":
                await self.start()
                await send({"type": "lifespan.startup.complete"})
            await self.stop()
            await send({"type": "lifespan.shutdown.complete"})
            return
        begin_request(scope["headers"])
        try:
            await (self._answer if self._passing is None else self._passing)(scope, receive, send)
        except asyncio.CancelledError:
            if not self.service.stopping.is_set():
                raise  # otherwise it took longer than the server waits when it ends, which is no error of ours

    async def _answer(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["method"] == "POST":
            parts = scope["path"].split("/")
            if len(parts) == 5 and parts[1] == "v1" and parts[2] == "loops" and parts[4] in self._direct:
                scope["path_params"] = {"loop": parts[3]}
                await self._direct[parts[4]](scope, receive, send)
                return
        of_pages = scope["path"] == "/" or scope["path"][1:].partition("/")[0] in FIRST
        await (self._pages if of_pages else self._routes)(scope, receive, send)

    async def start(self) -> None:
        """Begin to serve."""
        await self.service.start()

    async def stop(self) -> None:
        """Close all loops, and end what runs in the background."""
        await self.service.stop()
        if self._passing is not None:
            self._passing.close()


async def nothing(scope: object, receive: Receive, send: Send) -> None:
    """Answer any request with 404 and no body."""
    await send({"type": "http.response.start", "status": 404, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


def create_app(folder: str | Path | Address, options: Options | None = None) -> App:
    """Return the ASGI application that serves the loops of `folder`, or of a PostgreSQL database, "postgresql://..."."""
    return App(ServerContext(place_of(folder), options))
