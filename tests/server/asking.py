"""A real server over small loops, and those who ask it: with httpx in either form, and byte by byte."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import msgspec

from heedful.server.context import Options, ServerContext
from heedful.server.problems import TITLES
from processes import until

MSGPACK = "application/msgpack"
FLOAT32 = "application/octet-stream"


NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Made once, and never used: without it each client of httpx reads all the certificates there are."""


@contextlib.asynccontextmanager
async def serving(folder: Path, threads: int = 4, **options: Any) -> AsyncIterator[ServerContext]:
    """What all requests of a server of the loops in a folder share, without a socket."""
    service = ServerContext(folder, Options(threads=threads)._replace(**options))
    try:
        yield service
    finally:
        await service.stop()


class Said(NamedTuple):
    """An answer, read."""

    status: int
    value: Any
    headers: httpx.Headers

    @property
    def kind(self) -> str:
        """What kind of problem it is."""
        return str(self.value["type"]).rpartition(":")[2]


class Caller:
    """Asks one server, in JSON or msgpack, with or without a key."""

    def __init__(self, url: str, key: str | None = None, form: str = "json") -> None:
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        self.url, self.form = url, form
        self.http = httpx.Client(base_url=url, headers=headers, timeout=30, verify=NO_TLS)

    def __call__(self, method: str, path: str, body: Any = ..., **headers: str) -> Said:
        """What is answered; headers with _ for -."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        content = None
        if self.form == "msgpack":
            sent.setdefault("accept", MSGPACK)
        if body is not ...:
            content = msgspec.json.encode(body) if self.form == "json" else msgspec.msgpack.encode(body)
            sent.setdefault("content-type", "application/json" if self.form == "json" else MSGPACK)
        return self.send(method, path, content, **sent)

    def send(self, method: str, path: str, content: bytes | None = None, **headers: str) -> Said:
        """What is answered to bytes as they are."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return said(self.http.request(method, path, content=content, headers=sent))

    def get(self, path: str, **headers: str) -> Said:
        return self("GET", path, **headers)

    def post(self, path: str, body: Any = ..., **headers: str) -> Said:
        return self("POST", path, body, **headers)

    def close(self) -> None:
        self.http.close()


def said(response: httpx.Response) -> Said:
    """An answer, read by what it says it is."""
    kind, content = response.headers.get("content-type", ""), response.content
    value: Any = content
    if kind in ("application/json", "application/problem+json") and content:
        value = msgspec.json.decode(content)
    elif kind == MSGPACK and content:
        value = msgspec.msgpack.decode(content)
    return Said(response.status_code, value, response.headers)


def ok(answer: Said, status: int = 200) -> Any:
    """What is answered, where all went well."""
    assert answer.status == status, answer
    assert answer.headers["cache-control"] == "no-store"
    return answer.value


def is_problem(answer: Said, kind: str, field: str | None = None) -> dict[str, Any]:
    """The members of a problem, that must be of this kind and name this field."""
    status, title = TITLES[kind]
    assert answer.headers["content-type"] == "application/problem+json", answer
    assert answer.headers["content-length"].isdigit(), answer
    value: dict[str, Any] = answer.value
    assert (answer.status, value["status"]) == (status, status), value
    assert (value["type"], value["title"]) == (f"urn:heedful:problem:{kind}", title), value
    assert isinstance(value["detail"], str), value
    assert value["detail"], value
    assert value.get("field") == field, value
    return value


def raw_numbers(rows: Any) -> bytes:
    """Rows of numbers as the wire has them."""
    import numpy as np

    return np.ascontiguousarray(rows, "<f4").tobytes()


# ---------------------------------------------------------------------------- byte by byte


class Wire:
    """One connection, byte by byte."""

    def __init__(self, url: str, timeout: float = 60.0) -> None:
        self.socket = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])))
        self.socket.settimeout(timeout)
        self.data = b""

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def send(self, some: bytes) -> bool:
        """Whether the other side was still there."""
        try:
            self.socket.sendall(some)
        except OSError:
            return False
        return True

    def answer(self, head: bool = False) -> Said | None:
        """The next answer; None where the connection is closed first. TimeoutError where neither comes."""
        while b"\r\n\r\n" not in self.data:
            if not self._more():
                assert not self.data, self.data
                return None
        before, _, self.data = self.data.partition(b"\r\n\r\n")
        status, *lines = before.decode("latin-1").split("\r\n")
        pairs = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        headers = httpx.Headers(pairs)
        code = int(re.fullmatch(r"HTTP/1\.[01] (\d{3}) .*", status)[1])  # type: ignore[index]
        if code == 100:
            return self.answer()
        length = 0 if head else int(headers["content-length"])
        while len(self.data) < length:
            assert self._more(), "the answer was cut off"
        content, self.data = self.data[:length], self.data[length:]
        is_json = "json" in headers.get("content-type", "") and content
        return Said(code, msgspec.json.decode(content) if is_json else content, headers)

    def must(self, head: bool = False) -> Said:
        """The next answer, which must come."""
        answer = self.answer(head)
        assert answer is not None, "hung up without an answer"
        return answer

    def closed(self) -> bool:
        """Whether the other side hangs up, with nothing more to say."""
        while self._more():
            pass
        return not self.data

    def _more(self) -> bool:
        try:
            some = self.socket.recv(1 << 16)
        except ConnectionError:
            return False
        self.data += some
        return bool(some)


def request(method: str, path: str, body: bytes | None = None, *lines: str, host: str | None = "localhost") -> bytes:
    """A request as bytes, with a Content-Length where there is a body and none among the lines."""
    head = [f"{method} {path} HTTP/1.1", *([f"Host: {host}"] if host is not None else []), *lines]
    told = any(line.lower().startswith(("content-length", "transfer-encoding")) for line in lines)
    if body is not None and not told:
        head.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*head, "", ""]).encode("latin-1") + (body or b"")


# ---------------------------------------------------------------------------- streams, metrics, files


class Event(NamedTuple):
    """One event of a stream."""

    id: int
    kind: str
    data: dict[str, Any]


@contextlib.contextmanager
def events(caller: Caller, path: str, **headers: str) -> Iterator[Iterator[Event]]:
    """A stream of events, as it comes."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    with caller.http.stream("GET", path, headers=sent) as response:
        assert (response.status_code, response.headers["cache-control"]) == (200, "no-store"), response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        yield _events(response.iter_lines())


def _events(lines: Iterator[str]) -> Iterator[Event]:
    found: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(":")
            found[name] = value.removeprefix(" ")
        else:
            if "data" in found:
                yield Event(int(found["id"]), found["event"], json.loads(found["data"]))
            found = {}
    assert not found, "the stream ended in the middle of an event"


def metrics(text: bytes) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """What /metrics says, by name and labels."""
    from prometheus_client.parser import text_string_to_metric_families

    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def files(folder: Path) -> dict[str, bytes]:
    """All that is in a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def held_up(url: str, work: Any) -> bool:
    """Whether others wait for their answers while `work` goes on, each of three times that it is done: about as long
    as it takes, not just their turn."""
    return all(_held_up(url, work) for _ in range(3))


def _held_up(url: str, work: Any) -> bool:
    waited, stop = [0.0], threading.Event()

    def ask() -> None:
        with httpx.Client(timeout=60, verify=NO_TLS) as client:
            while not stop.is_set():
                began = time.monotonic()
                client.get(f"{url}/healthz")
                waited.append(time.monotonic() - began)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        until(lambda: len(waited) > 2)
        waited.clear()
        began = time.monotonic()
        work()
        took = time.monotonic() - began
    finally:
        stop.set()
        asking.join()
    return max(waited) > max(0.8, 0.7 * took)


@cache
def shared(url: str) -> Caller:
    """One caller for all examples that are drawn."""
    return Caller(url)


def at_once(*works: Callable[[], Any]) -> list[Any]:
    """What each of these gives, each in a thread of its own."""
    with ThreadPoolExecutor(len(works)) as pool:
        return [each.result() for each in [pool.submit(work) for work in works]]


def run(work: Awaitable[Any]) -> Any:
    """What is awaited, which takes seconds at most."""

    async def within() -> Any:
        return await asyncio.wait_for(work, 20)

    return asyncio.run(within())
