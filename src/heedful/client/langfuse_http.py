"""Reading Langfuse's scores, and the outputs that they are about, over HTTP.

`GET /api/public/v3/scores`, page by page with a cursor, and `GET /api/public/v2/observations` for the outputs of one
trace. Only the standard library is used. What a server may cost is bounded: the bytes of an answer, its seconds, how
often and how long it is waited for, and the number of pages. No redirect is followed, so keys go to one host alone.
"""

from __future__ import annotations

import base64
import http.client
import ipaddress
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from heedful import __version__
from heedful.data.json_records import Located, parse_document

MOST_BYTES = 16 * 2**20
"""The most bytes of an answer; Langfuse's own limit is 5 MB."""
MOST_VALUES = 1_000_000
"""The most values in an answer, counted by its commas and brackets; each may take 200 bytes of memory."""
MOST_PAGES = 1_000_000
"""The most pages of scores; a page has up to 100."""
MOST_EMPTY = 3
"""The most pages without a score in a row."""
SECONDS = 60.0
"""The most seconds until an answer is there, from the first byte that is sent to the last that comes."""
TRIES = 5
"""How often a request is sent before it fails: again after 429, 5xx and broken connections."""
LONGEST_WAIT = 300.0
"""The most seconds that are waited before a request is sent again."""
PAGE = 100
"""How many scores are asked for at a time: the most that Langfuse allows."""
TRACE_PAGES = 10
"""The most pages of observations of one trace; a page has up to 1000."""


class LangfuseError(Exception):
    """A server that could not be read: it refused, broke off, or sent something else. The message has no key."""


class _Answer(NamedTuple):
    """An HTTP answer: its status, the header Retry-After if it has one, and the body."""

    status: int
    retry_after: str | None
    body: bytes


class Langfuse:
    """Reads the scores of one Langfuse project. Its keys are used for nothing else, and shown nowhere."""

    def __init__(
        self,
        url: str,
        public_key: str,
        secret_key: str,
        *,
        seconds: float = SECONDS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Read from the host `url`, such as https://cloud.langfuse.com, with the keys of a project.

        `seconds` is the most time for one answer; `sleep` waits so many seconds. Raise ValueError, without the keys, if
        the URL is none, or not https (unless it is on this machine), or if a key is missing."""
        self._host, self._port, self._path, self._secure = _check_url(url)
        for name, key in (("LANGFUSE_PUBLIC_KEY", public_key), ("LANGFUSE_SECRET_KEY", secret_key)):
            if not key or not key.isascii() or not key.isprintable() or " " in key:
                raise ValueError(f"{name}: expected a key of the project, got {'something else' if key else 'none'}")
        if ":" in public_key:
            raise ValueError("LANGFUSE_PUBLIC_KEY: expected a key of the project, got something else")
        self._auth = "Basic " + base64.b64encode(f"{public_key}:{secret_key}".encode()).decode()
        self._seconds, self._sleep = seconds, sleep
        self._lists_observations = True  # until the server says that it cannot

    @classmethod
    def from_environment(cls, url: str, **more: Any) -> Langfuse:
        """Return a reader with the keys in LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY. Errors are as in `__init__`."""
        keys = [os.environ.get(f"LANGFUSE_{which}_KEY", "").strip() for which in ("PUBLIC", "SECRET")]
        return cls(url, *keys, **more)

    def __repr__(self) -> str:
        return f"Langfuse({self._host!r})"

    def scores(self, since: str | None = None) -> Iterator[list[Located]]:
        """Yield the scores, a page of (place, object) at a time; `since` is an ISO 8601 time from which on.

        Raise LangfuseError if a page cannot be read, and if pages repeat or never end."""
        query = {"fields": "subject", "limit": str(PAGE)} | ({} if since is None else {"fromTimestamp": since})
        yield from self._pages("/api/public/v3/scores", query, MOST_PAGES)

    def outputs(self, trace: str) -> list[Located]:
        """Return the observations of a trace with their inputs and outputs, as (place, object); [] if there are none.

        A server before version 4, which cannot list them, is asked for the trace itself. Raise LangfuseError as
        `scores` does."""
        query = {"traceId": trace, "fields": "core,basic,io", "limit": "1000"}
        try:
            if self._lists_observations:
                path = "/api/public/v2/observations"
                return [observation for page in self._pages(path, query, TRACE_PAGES) for observation in page]
        except _Missing:
            self._lists_observations = False
        try:
            document = self._get(f"/api/public/traces/{urlencode({'': trace})[1:]}")
        except _Missing:
            return []
        observations = document.get("observations")
        at = f"{self._host}: trace"
        inside = (
            [observation for observation in observations if isinstance(observation, dict)]
            if isinstance(observations, list)
            else []
        )
        return [(at, {"traceId": trace, **observation, "isRootObservation": False}) for observation in inside] + [
            (at, document)
        ]

    def _pages(self, path: str, query: Mapping[str, str], most: int) -> Iterator[list[Located]]:
        cursor, seen, empty = "", set[int](), 0
        for number in range(1, most + 1):
            answer = self._get(path, {**query, **({"cursor": cursor} if cursor else {})})
            data, meta = answer.get("data"), answer.get("meta")
            at = f"{self._host}: page {number}"
            if not isinstance(data, list) or not all(isinstance(record, dict) for record in data):
                raise LangfuseError(f"{at}: data: expected a list of objects, got something else")
            if not isinstance(meta, dict) or not isinstance(meta.get("cursor") or "", str):
                raise LangfuseError(f"{at}: meta: expected an object with a cursor or without, got something else")
            yield [(f"{at}: record {i}", record) for i, record in enumerate(data, 1)]
            cursor, empty = meta.get("cursor") or "", 0 if data else empty + 1
            if not cursor:
                return
            if hash(cursor) in seen or empty >= MOST_EMPTY:
                raise LangfuseError(f"{at}: cursor: expected the next page, got one that leads nowhere")
            seen.add(hash(cursor))
        raise LangfuseError(f"{self._host}: expected at most {most:,} pages, got more")

    def _get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return the JSON object at `path`, asked for with the parameters `query`, again and again where that can
        help."""
        target = f"{self._path}{path}" + (f"?{urlencode(query)}" if query else "")
        wait, reason = 1.0, ""
        for i in range(TRIES):
            if i:
                self._sleep(wait)
                wait *= 2.0
            try:
                answer = self._send(target)
            except (OSError, http.client.HTTPException) as error:
                reason = f"no answer: {type(error).__name__}{f': {error}' if isinstance(error, OSError) else ''}"
                if isinstance(error, ssl.SSLCertVerificationError):
                    break
                continue
            if answer.status == 200:
                return self._object(answer.body)
            reason = f"status {answer.status}"
            if answer.status == 429 or answer.status >= 500:
                wait = _seconds(answer.retry_after, wait)
                if wait > LONGEST_WAIT:
                    reason += (
                        f", and to try again in {wait:.0f} s: what was imported until here is in; start again then"
                    )
                    break
                continue
            if answer.status == 404:
                raise _Missing(
                    f"{self._host}: {path}: expected an answer, got status 404: is it Langfuse 3.179 or newer?"
                )
            if 300 <= answer.status < 400:
                reason += ", a redirect, which is not followed: name the host that it leads to"
            if answer.status in (401, 403):
                reason += ": do LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY belong to this host and project?"
            break
        raise LangfuseError(f"{self._host}: {path}: expected an answer, got {reason}")

    def _object(self, body: bytes) -> dict[str, Any]:
        if sum(map(body.count, (b",", b"[", b"{"))) > MOST_VALUES:
            raise LangfuseError(f"{self._host}: json: expected at most {MOST_VALUES:,} values in an answer, got more")
        try:
            document = parse_document(self._host, body)
        except ValueError as error:
            raise LangfuseError(str(error)) from None
        if not isinstance(document, dict):
            raise LangfuseError(f"{self._host}: json: expected an object, got something else")
        return document

    def _send(self, target: str) -> _Answer:
        """Send one request and return the answer. Raise OSError or HTTPException if none is there in time."""
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=self._seconds)
        late, sockets = threading.Event(), list[Any]()

        def give_up() -> None:
            late.set()
            for opened in sockets:
                with suppress(OSError):
                    opened.shutdown(socket.SHUT_RDWR)  # whoever reads wakes up, however slowly it dribbles

        timer = threading.Timer(self._seconds, give_up)
        timer.daemon = True
        timer.start()
        headers = {
            "Authorization": self._auth,
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": f"heedful/{__version__}",
        }
        try:
            connection.connect()
            sockets.append(connection.sock)  # the connection lets go of it before the body is read
            connection.request("GET", target, headers=headers)
            response = connection.getresponse()
            body = response.read(MOST_BYTES + 1)
            if late.is_set():
                raise TimeoutError(f"not whole within {self._seconds:g} s")
            if len(body) > MOST_BYTES:
                raise LangfuseError(f"{self._host}: expected at most {MOST_BYTES:,} bytes in an answer, got more")
            if response.length:
                raise http.client.IncompleteRead(body, response.length)
            return _Answer(response.status, response.headers.get("Retry-After"), body)
        except (OSError, http.client.HTTPException):
            if late.is_set():
                raise TimeoutError(f"not whole within {self._seconds:g} s") from None
            raise
        finally:
            timer.cancel()
            connection.close()


class _Missing(LangfuseError):
    """There is nothing at this path."""


def _seconds(retry_after: str | None, wait: float) -> float:
    """Return how many seconds to wait, as the header Retry-After says; `wait` if it says nothing of use."""
    text = (retry_after or "").strip()
    return max(float(text), 0.0) if text.isascii() and text.isdecimal() and len(text) < 10 else wait


def _check_url(url: str) -> tuple[str, int | None, str, bool]:
    """Return (host, port, path, whether it is https) of `url`. Raise ValueError if keys should not be sent there."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment or not url.isprintable():
        raise ValueError("--langfuse: expected a URL such as https://cloud.langfuse.com, got something else")
    if "@" in parts.netloc or " " in url or not url.isascii():
        hint = "keys are read from LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY"
        raise ValueError(f"--langfuse: expected a plain URL without user and password, got another; {hint}")
    try:
        here = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        here = False
    if parts.scheme == "http" and not here:
        raise ValueError("--langfuse: expected https, got http, on which keys can be read on the way")
    return host, port, parts.path.rstrip("/"), parts.scheme == "https"
