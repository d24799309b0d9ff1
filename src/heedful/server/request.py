"""A request to the interface for programs, as a route's handler gets it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from heedful.loop import Loop
from heedful.server.auth import Caller
from heedful.server.codecs import Headers, Receive
from heedful.server.context import ServerContext
from heedful.server.loop_worker import LoopWorker
from heedful.server.problems import unavailable

P = ParamSpec("P")
T = TypeVar("T")


class ApiRequest(NamedTuple):
    """A request for the HTTP interface, after its API key was checked."""

    service: ServerContext
    """what all requests of the server share: loops, keys, metrics, options"""
    caller: Caller
    """the sender: tenant and scopes of the key"""
    headers: Headers
    """the values of the headers, by name in lower case, as bytes"""
    query: Mapping[str, Any]
    """the values of the query parameters, by name; texts where a body of raw numbers has them"""
    path: Mapping[str, str]
    """the variable parts of the path, by name: "loop", "item", ..."""
    body: Any
    """the body as the codec of the route decoded it; None without one"""
    loop_worker: LoopWorker | None
    """the worker of the loop that the path names; None if it names none"""
    receive: Receive
    """ASGI's function that says when the client has hung up, once the body was read"""
    large: bool = False
    """whether the body is so large that it is handled in another thread"""

    @property
    def worker(self) -> LoopWorker:
        """The worker of the loop that the path names; handlers of other paths do not ask for it."""
        assert self.loop_worker is not None
        return self.loop_worker

    @property
    def loop(self) -> Loop:
        """The loop that the path names."""
        return self.worker.loop

    async def analyse(self, question: Callable[Concatenate[Loop, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Do what `LoopWorker.analyse` does, until the client hangs up."""
        return await until_gone(self.receive, self.worker.analyse(question, *args, **kwargs))

    def note(self, kind: str, result: str, n: int = 1) -> None:
        """Add `n` to the metrics' count of events of this `kind` ("feedback") and `result` ("duplicate").

        They are counted for the caller's tenant and the loop that the path names."""
        self.service.metrics.events[self.caller.tenant, self.path["loop"], kind, result] += n


async def until_gone(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """Return what `work` returns; cancel it if `receive`, ASGI's function, says that the client has hung up."""

    async def wait_until_gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    working, waiting = asyncio.ensure_future(work), asyncio.ensure_future(wait_until_gone())
    try:
        await asyncio.wait((working, waiting), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise unavailable("the client has hung up")
        return working.result()
    finally:
        working.cancel()
        waiting.cancel()
