"""A request to the interface for programs, as the work of a route gets it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from heedful.loop import Loop
from heedful.server.auth import Caller
from heedful.server.codecs import Headers
from heedful.server.context import ServerContext
from heedful.server.loop_worker import LoopWorker


class ApiRequest(NamedTuple):
    """A request whose caller has a key with the scope of the route."""

    service: ServerContext
    caller: Caller
    headers: Headers
    query: Mapping[str, str]
    path: Mapping[str, str]
    given: Any
    """the body, decoded by the codec of the route; None without one"""
    worker: Any
    """the worker of the loop that the path names; None where it names none"""
    large: bool = False
    """whether the body is so large that it is decoded and worked on in a thread"""

    @property
    def loop(self) -> Loop:
        """The loop that the path names."""
        worker: LoopWorker = self.worker
        return worker.loop

    def note(self, kind: str, result: str, n: int = 1) -> None:
        """Add `n` to the server's count of events of this `kind` and `result`, for this caller's tenant and loop."""
        self.service.metrics.events[self.caller.tenant, self.path["loop"], kind, result] += n
