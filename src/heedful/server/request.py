"""A request to the interface for programs, as a route's handler gets it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from heedful.loop import Loop
from heedful.server.auth import Caller
from heedful.server.codecs import Headers
from heedful.server.context import ServerContext
from heedful.server.loop_worker import LoopWorker


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

    def note(self, kind: str, result: str, n: int = 1) -> None:
        """Add `n` to the metrics' count of events of this `kind` ("feedback") and `result` ("duplicate").

        They are counted for the caller's tenant and the loop that the path names."""
        self.service.metrics.events[self.caller.tenant, self.path["loop"], kind, result] += n
