"""Thousands of requests that nobody thought of: none of them is the server's fault."""

from __future__ import annotations

import itertools
import json
import logging
import random
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
import pytest
from oddities import CASES

from budget import FACTOR
from heedful import TEXTS, Loop
from heedful.server.main import served
from heedful.server.pages import PAGES
from heedful.server.routes import description
from loops import bits, bits_from_scratch, choice_loop, rating_loop, small_loop

N = 1000 * FACTOR
"""Requests; in the long version twenty thousand."""
NAMES = ["cars", "grades", "ratings", "study", "letters", "none", "cars.heedful", "..", ".", "", "a b", "\0", "é" * 90]
WORDS = [
    "i0",
    "i1",
    "i7",
    "d0",
    "d1",
    "e0",
    "e1",
    "p0",
    "p1",
    "first",
    "second",
    "up",
    "",
    "hk_ab12cd34_x",
    "\u202e",
    "\0",
]
ODD: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1,
    2**63,
    -(2**63),
    2**64 - 1,
    1e308,
    -0.0,
    0.5,
    "",
    "x" * 201,
    [],
    {},
    [[]],
]
TYPES = ["application/json", "application/msgpack", "application/octet-stream", "application/x-www-form-urlencoded"]
TYPES += ["text/plain", "application/json; charset=latin-1", ";", "application/json, text/html"]
HEADERS = [
    "Accept: application/msgpack",
    "Accept: */*",
    "Idempotency-Key: k1",
    'Idempotency-Key: "k2"',
    "Expect: 100-continue",
]
HEADERS += ["Last-Event-ID: 3", "Last-Event-ID: x", "HX-Request: true", "Cookie: a=b", "Origin: http://localhost"]
HEADERS += ["Origin: null", "Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: cross-site", "Authorization: Bearer x"]
HEADERS += ["Connection: Upgrade\r\nUpgrade: h2c", "Content-Encoding: gzip", "Range: bytes=0-1", "If-None-Match: *"]
HEADERS += ["X-Forwarded-For: 1.2.3.4", "Accept: text/event-stream", "Connection: close", "TE: trailers"]
OPERATIONS = json.loads(description())
SCHEMAS = OPERATIONS["components"]["schemas"]


class Draw(random.Random):
    """Draws requests by the description of the API, right and wrong."""

    def some(self, share: float) -> bool:
        return self.random() < share

    def value(self, schema: dict[str, Any], depth: int = 0) -> Any:
        """Something of that schema; now and then something else."""
        if self.some(0.06) or depth > 6:
            return self.choice(ODD)
        if "$ref" in schema:
            return self.value(SCHEMAS[schema["$ref"].rpartition("/")[2]], depth)
        if "anyOf" in schema:
            return self.value(self.choice(schema["anyOf"]), depth + 1)
        if "enum" in schema:
            return self.choice(schema["enum"])
        kind = schema.get("type")
        make: dict[Any, Callable[[], Any]] = {
            "object": lambda: self.object(schema, depth),
            "array": lambda: [self.value(schema.get("items", {}), depth + 1) for _ in range(self.choice([0, 1, 2, 3]))],
            "string": lambda: self.choice(WORDS),
            "integer": lambda: self.choice([0, 1, 2, 3, 5, 100, -1, 10**9]),
            "number": lambda: self.choice([0.0, 1.0, -1.5, 3, 1e30]),
            "boolean": lambda: self.some(0.5),
            "null": lambda: None,
        }
        return make.get(kind, lambda: self.choice([*ODD, *WORDS]))()

    def object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        found = {}
        for name, each in schema.get("properties", {}).items():
            if name in schema.get("required", ()) or self.some(0.3):
                found[name] = self.value(each, depth + 1)
        more = schema.get("additionalProperties")
        if isinstance(more, dict) or (more is not False and self.some(0.05)):
            for _ in range(self.randint(0, 2)):
                found[self.choice(WORDS)] = self.value(more if isinstance(more, dict) else {}, depth + 1)
        return found

    def request(self) -> bytes:
        """A request as bytes."""
        if self.some(0.25):
            method, path, query, body = self.of_page()
        else:
            method, path, query, body = self.of_api()
        if self.some(0.05):
            method = self.choice(["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "CONNECT"])
        target = path + (f"?{urlencode(query)}" if query else "")
        lines = ["Host: localhost"] if self.some(0.98) else [f"Host: {self.choice(['evil', '', 'a b', '[::1]'])}"]
        lines += self.sample(HEADERS, self.choice([0, 0, 0, 1, 1, 2]))
        kind, content = self.content(body)
        if kind is not None:
            lines.append(f"Content-Type: {kind}")
        if self.some(0.1):
            lines.append("Transfer-Encoding: chunked")
            content = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in self.parts(content)) + b"0\r\n\r\n"
        elif content or self.some(0.3):
            lines.append(f"Content-Length: {len(content)}")
        return "\r\n".join([f"{method} {target} HTTP/1.1", *lines, "", ""]).encode("latin-1", "replace") + content

    def of_api(self) -> tuple[str, str, dict[str, Any], Any]:
        path, methods = self.choice(list(OPERATIONS["paths"].items()))
        method, told = self.choice(list(methods.items()))
        query = {}
        for each in told.get("parameters", ()):
            if each["in"] == "path":
                given = self.choice(NAMES[:5] if self.some(0.8) else NAMES)
                given = given if each["name"] == "loop" else self.choice(WORDS)
                path = path.replace(f"{{{each['name']}}}", quote(given, safe=""))
            elif each["in"] == "query" and self.some(0.4):
                query[each["name"]] = self.value(each.get("schema", {}))
        if path.endswith("/events"):
            query["follow"] = "false"
        schemas = told.get("requestBody", {}).get("content", {})
        schema = schemas.get("application/json", {}).get("schema")
        body = None if schema is None else self.value(schema)
        if path == "/v1/loops" and isinstance(body, dict):  # few are made
            body = body | {"name": self.choice(["cars", "new", "other", self.choice(ODD)])}
        return method.upper(), path, query, body

    def of_page(self) -> tuple[str, str, dict[str, Any], Any]:
        pages = [page for page in PAGES if (page.method, page.path) != ("POST", "/keys")]  # a key would shut all out
        page = self.choice(pages)
        path = page.path
        for name in re.findall(r"\{(\w+)\}", path):
            among = {
                "loop": NAMES[:5],
                "name": NAMES,
                "form": ["csv", "json", "toi", "svg", "x"],
                "number": ["0", "1", "x"],
            }
            path = path.replace(f"{{{name}}}", quote(self.choice(among.get(name, WORDS)), safe=""))
        fields = [
            "person",
            "item",
            "segment",
            "next",
            "decision",
            "answer",
            "order",
            "after",
            "number",
            "event",
            "shown",
        ]
        given = {self.choice(fields): self.choice(WORDS) for _ in range(self.randint(0, 3))}
        return page.method, path, {} if page.method == "POST" else given, urlencode(given)

    def content(self, body: Any) -> tuple[str | None, bytes]:
        """(its media type, a body); not always of that type."""
        if body is None:
            return None, self.randbytes(self.randint(0, 20)) if self.some(0.1) else b""
        if isinstance(body, str):
            return TYPES[3] if self.some(0.9) else self.choice(TYPES), body.encode()
        packed = self.some(0.3)
        content = (msgspec.msgpack if packed else msgspec.json).encode(body)
        if self.some(0.1):
            content = self.spoil(content)
        if self.some(0.05):
            return TYPES[2], self.randbytes(4 * self.randint(0, 40))
        return self.choice(TYPES) if self.some(0.05) else TYPES[packed], content

    def parts(self, content: bytes) -> list[bytes]:
        at = sorted({0, len(content), *(self.randint(0, len(content)) for _ in range(2))})
        return [content[one:other] for one, other in itertools.pairwise(at)]

    def spoil(self, content: bytes) -> bytes:
        """Bytes with a few of them changed, left out, put in or said again."""
        bad = bytearray(content)
        for _ in range(self.randint(1, 4)):
            at = self.randint(0, len(bad))
            put = self.choice([b"", self.randbytes(self.randint(1, 3)), b"\r\n", b"\n", b"\0", bytes(bad[at : at + 9])])
            bad[at : at + self.randint(0, 3)] = put
        return bytes(bad)


class Line:
    """A connection that is made again where it ended."""

    def __init__(self, url: str) -> None:
        self.address = "127.0.0.1", int(url.rpartition(":")[2])
        self.socket: socket.socket | None = None

    def status(self, content: bytes) -> int | None:
        """The status of the first answer; None where there is none soon. Another connection where more is to come."""
        if self.socket is None:
            self.socket = socket.create_connection(self.address)
        self.socket.settimeout(0.25)
        data = b""
        try:
            self.socket.sendall(content)
            while not (match := re.match(rb"HTTP/1\.1 ([2-5]\d\d) .*?\r\n\r\n", data, re.DOTALL)):
                data = data.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
                some = self.socket.recv(1 << 20)
                data += some
                if not some:
                    break
            length = re.search(rb"\r\ncontent-length: (\d+)\r\n", match[0], re.IGNORECASE) if match else None
            while match and length and len(data) < match.end() + int(length[1]) and content[:4] != b"HEAD":
                some = self.socket.recv(1 << 20)
                assert some, "the answer was cut off"
                data += some
            whole = length and len(data) == match.end() + int(length[1]) if match else False
            if not whole or b"connection: close" in match[0].lower():  # type: ignore[index]
                self.close()
        except OSError:
            self.close()
            return None
        return int(match[1]) if match else None

    def close(self) -> None:
        if self.socket is not None:
            self.socket.close()
        self.socket = None


@pytest.mark.slow
def test_no_request_is_the_servers_fault(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """By the description of the API and the table of pages, with bytes changed, and the odd ones of the table: no 5xx,
    nothing in the log of the server, and models that are the folds of their logs."""
    small_loop(tmp_path / "cars.heedful", control=0.0).close()
    small_loop(tmp_path / "grades.heedful", "prank:n_ranks=5", control=0.0).close()
    rating_loop(tmp_path / "ratings.heedful").close()
    choice_loop(tmp_path / "study.heedful").close()
    Loop.create(tmp_path / "letters.heedful", encoding=TEXTS).close()
    draw, found = Draw(20), dict[int | None, int]()
    with served(tmp_path) as url:
        line = Line(url)
        for n in range(N):
            content = draw.choice(CASES).data if draw.some(0.05) else draw.request()
            if draw.some(0.25):
                content = draw.spoil(content)
            status = line.status(content)
            found[status] = found.get(status, 0) + 1
            assert status is None or status < 500, (n, content)
        line.close()
    assert found.get(None, 0) < N / 4, found
    assert sum(found.get(status, 0) for status in (200, 201, 303)) > N / 8, found
    names = ("heedful", "uvicorn", "asyncio")
    told = [record for record in caplog.records if record.name.startswith(names) and record.levelno >= logging.ERROR]
    assert not told, [record.getMessage() for record in told]
    for path in tmp_path.glob("*.heedful"):
        with Loop.open(path) as loop:
            assert bits(loop) == bits_from_scratch(loop)
            assert loop.verify() == []
