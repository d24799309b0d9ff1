"""Sending the requests of a client over the network with httpx, blocking or with await.

What to send, and what to do next, is decided by the steps that are run here (`heedful.client.sync_async`)."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import re
import ssl
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from heedful import __version__
from heedful.client.messages import JSON, Call, Failure, Reply, Wait
from heedful.client.stream import EventFollower
from heedful.client.sync_async import Steps
from heedful.core.extras import lacking
from heedful.core.validation import describe

if TYPE_CHECKING:
    import httpx

    AnyTransport = httpx.BaseTransport | httpx.AsyncBaseTransport | None

T = TypeVar("T")

_KEY = re.compile(r"hk_[a-z0-9]{8}_[A-Za-z0-9_-]{43}")


def _httpx() -> ModuleType:
    """Return the module httpx, which only the client needs."""
    try:
        import httpx
    except ModuleNotFoundError:
        raise ModuleNotFoundError(lacking("the client", "httpx", "client"), name="httpx") from None
    return httpx


def _check_url(url: str, key: str | None, insecure: bool) -> tuple[str, bool]:
    """Return (`url` without a final slash, whether it is on this machine)."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        fine = parts.scheme in ("http", "https") and host != "" and not parts.query and not parts.fragment
        _ = parts.port
    except (ValueError, AttributeError, TypeError):
        fine = False
    if not fine:
        raise ValueError(f"url: expected one such as https://rank.example, got {describe(url)}")
    if "@" in parts.netloc:
        raise ValueError("url: expected no user and password in it, got some; heedful wants a key")
    if key is not None and (not isinstance(key, str) or not _KEY.fullmatch(key)):
        raise ValueError("key: expected hk_, 8 characters, _ and 43 more, got something else (not shown)")
    try:
        here = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        here = False
    if key is not None and parts.scheme == "http" and not here and not insecure:
        message = "a key over plain http can be read by everybody on the way; insecure=True sends it all the same"
        raise ValueError(f"url: expected https, got http to {host}: {message}")
    return url.rstrip("/"), here


class _Transport:
    """What `Transport` and `AsyncTransport` share: the server's address, the headers, and the settings of httpx."""

    def __init__(self, url: str, key: str | None, insecure: bool, transport: AnyTransport) -> None:
        key = key.strip() if isinstance(key, str) else key
        self.url, self._here = _check_url(url, key, insecure)
        self.key = key
        """the API key; None without one"""
        self.httpx = _httpx()
        try:
            self.httpx.URL(self.url)
        except self.httpx.InvalidURL as error:  # a host that no network has: IDNA goes without snowmen
            raise ValueError(f"url: expected one such as https://rank.example, got {describe(url)}: {error}") from None
        self._transport = transport
        self._headers = [
            (b"Accept", JSON.encode()),
            (b"Accept-Encoding", b"identity"),
            (b"User-Agent", f"heedful/{__version__}".encode()),
            *([(b"Authorization", f"Bearer {key}".encode())] if key is not None else []),
        ]
        self._urls: dict[str, httpx.URL] = {}

    @property
    def _settings(self) -> dict[str, Any]:
        # As many connections at once as there are threads that ask; environment proxies are not for this machine.
        limits = self.httpx.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=30.0)
        # Who is to be believed takes 20 ms to read; without TLS nobody, and nobody is asked to be.
        verify = True if self.url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        return {"transport": self._transport, "limits": limits, "trust_env": not self._here, "verify": verify}

    def request(self, call: Call, timeouts: Mapping[str, float]) -> httpx.Request:
        """Return `call` as a request of httpx; `timeouts` are the most seconds for "connect", "write", "read" and
        "pool"."""
        url = self._urls.get(call.path)
        if url is None:
            url = self.httpx.URL(self.url + call.path)
            if "?" not in call.path and len(self._urls) < 1000:  # taking a URL apart is dear
                self._urls[call.path] = url
        headers = list(self._headers)
        if call.body is not None:
            headers.append((b"Content-Type", call.content.encode()))
        if call.last_id:
            headers += [(b"Last-Event-ID", call.last_id.encode()), (b"Cache-Control", b"no-store")]
        request: httpx.Request = self.httpx.Request(
            call.method, url, headers=headers, content=call.body, extensions={"timeout": timeouts}
        )
        return request

    def failure(self, error: Exception, call: Call) -> Failure:
        """Return the Failure that describes `error`, an exception that sending `call` raised. It leaves out the HTTP
        request, which has the API key."""
        if isinstance(error, TimeoutError | self.httpx.TimeoutException):
            sent = not isinstance(error, self.httpx.ConnectTimeout | self.httpx.PoolTimeout)
            return Failure(f"no answer within {call.timeout:.3g} s", True, sent)
        sent = not isinstance(error, self.httpx.ConnectError | self.httpx.UnsupportedProtocol)
        return Failure(f"no connection to {self.url}: {error}" if not sent else f"cut off: {error}", False, sent)

    def check_plain(self, response: httpx.Response) -> None:
        """Raise httpx.DecodingError if the body of `response`, of which nothing was read, is compressed: nobody asked
        for that, and a little may become far too much."""
        if (coding := response.headers.get("content-encoding", "identity")) != "identity":
            raise self.httpx.DecodingError(f"Content-Encoding: expected none, got {describe(coding)}")

    def silent(self, call: Call) -> dict[str, float]:
        """Return the timeouts of a stream of events: `call.timeout` is the most seconds of each silence, not of the
        whole."""
        return {"connect": 10.0, "write": 10.0, "pool": 10.0, "read": call.timeout}


class _TimeLeft(dict[str, float]):
    """The timeouts of one request, in seconds, by what it waits for: "connect", "read", ....

    Each is what is left, when it is read, until the deadline of the request, or until the earlier one for
    connecting."""

    def __init__(self, call: Call) -> None:
        super().__init__()
        now = time.monotonic()
        self.deadline = now + call.timeout
        self.connected = self.deadline if call.connect is None else now + call.connect

    def get(self, name: str, default: object = None) -> float:
        deadline = self.connected if name in ("connect", "pool") else self.deadline
        return max(deadline - time.monotonic(), 0.001)

    __getitem__ = get


class Transport(_Transport):
    """Sends the calls of a client over HTTP, blocking until they are answered. Any number of threads may use it."""

    def __init__(self, url: str, key: str | None, insecure: bool, transport: AnyTransport) -> None:
        super().__init__(url, key, insecure, transport)
        self.sleep = time.sleep
        self._opening = threading.Lock()
        self._open()

    def _open(self) -> None:
        self._http: httpx.Client = self.httpx.Client(**self._settings)
        self._process = os.getpid()

    @property
    def http(self) -> httpx.Client:
        """The client of httpx. A forked process makes its own: two that read from one connection would mix up
        answers."""
        if self._process != os.getpid():
            with self._opening:
                if self._process != os.getpid():
                    self._open()
        return self._http

    def run(self, steps: Steps[T]) -> T:
        """Run `steps`, a generator of calls to send and pauses, to the end; return its result."""
        try:
            step = next(steps)
            while True:
                if isinstance(step, Wait):
                    self.sleep(step.seconds)
                    step = next(steps)
                else:
                    step = steps.send(self.send(step))
        except StopIteration as end:
            result: T = end.value
            return result

    def send(self, call: Call) -> Reply | Failure:
        """Send the request `call` and return the server's reply, or a Failure that says why there was none."""
        left = _TimeLeft(call)
        try:
            response = self.http.send(self.request(call, left), stream=True)
            try:
                self.check_plain(response)
                length = int(response.headers.get("content-length", 1 << 60))
                body = b""
                for chunk in response.iter_bytes():
                    body += chunk
                    if len(body) < length and time.monotonic() > left.deadline:
                        raise TimeoutError  # it dribbles
            finally:
                response.close()
        except (TimeoutError, self.httpx.RequestError) as error:
            return self.failure(error, call)
        return Reply(response.status_code, response.headers, body)

    def follow(self, following: EventFollower) -> Iterator[dict[str, Any]]:
        """Yield the events of the loop that `following` describes, connecting again whenever the connection breaks.

        Raise the server's error, or ConnectionError or TimeoutError if it has been unreachable for too long."""
        while True:
            call = following.call()
            outcome: Reply | Failure | None = None
            try:
                response = self.http.send(self.request(call, self.silent(call)), stream=True)
                try:
                    self.check_plain(response)
                    if response.status_code == 200:
                        following.start(response.headers.get("content-type", ""))
                        for chunk in response.iter_bytes():
                            yield from following.take(chunk)
                    else:
                        outcome = Reply(response.status_code, response.headers, response.read())
                finally:
                    response.close()
            except self.httpx.RequestError as error:
                outcome = self.failure(error, call)
            wait = following.end(outcome)
            if wait is None:
                return
            self.sleep(wait)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()


class AsyncTransport(_Transport):
    """Sends the calls of a client over HTTP with await, in one event loop, by the methods of `Transport`."""

    def __init__(self, url: str, key: str | None, insecure: bool, transport: AnyTransport) -> None:
        super().__init__(url, key, insecure, transport)
        self.sleep = asyncio.sleep
        self.http: httpx.AsyncClient = self.httpx.AsyncClient(**self._settings)

    async def run(self, steps: Steps[T]) -> T:
        try:
            step = next(steps)
            while True:
                if isinstance(step, Wait):
                    await self.sleep(step.seconds)
                    step = next(steps)
                else:
                    step = steps.send(await self.send(step))
        except StopIteration as end:
            result: T = end.value
            return result

    async def send(self, call: Call) -> Reply | Failure:
        try:
            async with asyncio.timeout(call.timeout):
                connect = {} if call.connect is None else {"connect": call.connect, "pool": call.connect}
                response = await self.http.send(self.request(call, connect), stream=True)
                try:
                    self.check_plain(response)
                    body = b"".join([chunk async for chunk in response.aiter_bytes()])
                finally:
                    await response.aclose()
        except (TimeoutError, self.httpx.RequestError) as error:
            return self.failure(error, call)
        return Reply(response.status_code, response.headers, body)

    async def follow(self, following: EventFollower) -> AsyncIterator[dict[str, Any]]:
        while True:
            call = following.call()
            outcome: Reply | Failure | None = None
            try:
                response = await self.http.send(self.request(call, self.silent(call)), stream=True)
                try:
                    self.check_plain(response)
                    if response.status_code == 200:
                        following.start(response.headers.get("content-type", ""))
                        async for chunk in response.aiter_bytes():
                            for event in following.take(chunk):
                                yield event
                    else:
                        outcome = Reply(response.status_code, response.headers, await response.aread())
                finally:
                    await response.aclose()
            except self.httpx.RequestError as error:
                outcome = self.failure(error, call)
            wait = following.end(outcome)
            if wait is None:
                return
            await self.sleep(wait)

    async def close(self) -> None:
        await self.http.aclose()
