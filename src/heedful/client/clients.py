"""The public classes of the client: `Client`, `AsyncClient`, and their loops."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from heedful.client.fallback import Breaker, Decision, UntoldFallbacks
from heedful.client.loop import LoopOperations
from heedful.client.operations import ClientOperations, Loop, id_of
from heedful.client.page_token import HOUR, page_token
from heedful.client.stream import EventFollower
from heedful.client.sync_async import Awaiting, Blocking, Steps
from heedful.client.transport import AsyncTransport, Transport
from heedful.core.validation import describe, is_number

if TYPE_CHECKING:
    from heedful.client.transport import AnyTransport

T = TypeVar("T")


def _seconds(name: str, value: float) -> float:
    if not is_number(value, int, float) or not 0 < value < 1e6:
        raise ValueError(f"{name}: expected seconds, more than 0, got {describe(value)}")
    return float(value)


class _Client(ClientOperations[Loop]):
    """What `Client` and `AsyncClient` share: timeouts, the circuit breaker, and the fallbacks to report to the server.

    A fallback is a decision in the caller's own order, made because the server did not answer."""

    _carrier: Transport | AsyncTransport
    """sends the requests: `Transport` for the blocking client, `AsyncTransport` for the one with await"""
    _sends: type[Transport | AsyncTransport]
    """the class of `_carrier`"""

    def __init__(
        self,
        url: str = "http://127.0.0.1:8710",
        key: str | None = None,
        *,
        timeout: float = 0.25,
        patience: float = 10.0,
        failures: int = 3,
        pause: float = 1.0,
        insecure: bool = False,
        transport: AnyTransport = None,
    ) -> None:
        """Make a client for the server at `url`, with its `key`; nothing is sent yet.

        `timeout` is the seconds after which `decide` returns the caller's own order, `patience` the seconds for which
        all other requests are repeated. What may have to read a whole log (`create`, `put_items`, `forget`, `why`,
        `standing`, `report`, `evaluate`) may take ten minutes once connected. After `failures` decisions in a row
        without an answer the server is not asked for `pause` seconds. `insecure` allows to send a key over plain
        http to another machine. `transport` is one of httpx, for certificates or a proxy of your own: one with await
        for an `AsyncClient`. Raise ValueError, naming the argument, if one makes no sense."""
        self.timeout = _seconds("timeout", timeout)
        self.patience = _seconds("patience", patience)
        self._breaker = Breaker(failures, _seconds("pause", pause), self._clock)
        self._untold = UntoldFallbacks()
        self._few: dict[str, int] = {}
        self._carrier = self._sends(url, key, insecure, transport)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._carrier.url!r})"


class _Loop(LoopOperations):
    """What `RemoteLoop` and `AsyncRemoteLoop` share: their name, and the time limits and state of their client."""

    def __init__(self, client: _Client[Any], name: str, identifier: str) -> None:
        self._client = client
        self.name, self.identifier = name, identifier
        self.timeout, self.patience, self._clock = client.timeout, client.patience, client._clock
        self._breaker, self._untold, self._few = client._breaker, client._untold, client._few

    def page_token(self, decision: str | Decision, seconds: float = HOUR) -> str:
        """Return a token with which a page may report clicks on `decision` (a decision or its id) and do nothing else.

        It goes into the page with the list, is valid for `seconds` (at most a week), and ends with the client's key,
        which has to have the scope `feedback`. No request is sent. Raise ValueError if the client has no key, or if
        `seconds` is out of range."""
        key = self._client._carrier.key
        if key is None:
            raise ValueError("key: expected a client with a key, which signs the token, got one without")
        return page_token(key, self.name, str(id_of(decision)), seconds)

    def _follower(self, after: int, kinds: Sequence[str], follow: bool) -> EventFollower:
        return EventFollower(self.name, after, kinds, follow, self.patience, self._clock)

    def __repr__(self) -> str:
        return f"<loop {self.name!r} of {self._client!r}>"


class RemoteLoop(_Loop, Blocking):
    """A loop on a server, with methods of `heedful.Loop`; made by `Client.loop`."""

    _client: Client
    """the client that made it, whose connections it uses"""

    def _run(self, steps: Steps[T]) -> T:
        return self._client._run(steps)

    def events(self, after: int = 0, kinds: Sequence[str] = (), follow: bool = True) -> Iterator[dict[str, Any]]:
        """Yield the events of the loop's log, {"kind": ..., "seq": ...}, in order.

        They are those after the sequence number `after`, of these `kinds` (() for all) and, with `follow`, new ones as
        they come. If the connection breaks, it goes on after the last event; raise TimeoutError or ConnectionError if
        the server is unreachable for longer than `patience`."""
        return self._client._carrier.follow(self._follower(after, kinds, follow))


class AsyncRemoteLoop(_Loop, Awaiting):
    """A loop on a server, with methods of `heedful.Loop` as coroutines; made by `AsyncClient.loop`."""

    _client: AsyncClient
    """the client that made it, whose connections it uses"""

    async def _run(self, steps: Steps[T]) -> T:
        return await self._client._run(steps)

    def events(self, after: int = 0, kinds: Sequence[str] = (), follow: bool = True) -> AsyncIterator[dict[str, Any]]:
        """Yield the events of the loop's log as `RemoteLoop.events` does, for `async for`."""
        return self._client._carrier.follow(self._follower(after, kinds, follow))


class Client(_Client[RemoteLoop], Blocking):
    """A client of a server of loops, over HTTP. Any number of threads may use one. Close it, or use it in `with`.

    >>> with Client("https://rank.example", key=KEY, timeout=0.05) as heedful:
    ...     cars = heedful.loop("cars")
    ...     d = cars.decide(["a", "b", "c"], person="p1", show=10)
    ...     cars.feedback(d, clicks=["b"])
    """

    _carrier: Transport
    _sends = Transport

    def _run(self, steps: Steps[T]) -> T:
        return self._carrier.run(steps)

    def loop(self, name: str, *, identifier: str = "id") -> RemoteLoop:
        return RemoteLoop(self, name, identifier)

    def close(self) -> None:
        """Close the connections."""
        self._carrier.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class AsyncClient(_Client[AsyncRemoteLoop], Awaiting):
    """A client of a server of loops, over HTTP: `Client` with `await`, for one event loop of asyncio.

    >>> async with AsyncClient("https://rank.example", key=KEY, timeout=0.05) as heedful:
    ...     cars = heedful.loop("cars")
    ...     d = await cars.decide(["a", "b", "c"], person="p1", show=10)
    ...     await cars.feedback(d, clicks=["b"])
    """

    _carrier: AsyncTransport
    _sends = AsyncTransport

    async def _run(self, steps: Steps[T]) -> T:
        return await self._carrier.run(steps)

    def loop(self, name: str, *, identifier: str = "id") -> AsyncRemoteLoop:
        return AsyncRemoteLoop(self, name, identifier)

    async def close(self) -> None:
        """Close the connections."""
        await self._carrier.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
