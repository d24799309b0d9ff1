"""docs/http.md: every request on the page is sent, and answered as the page says."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx
import pytest

from heedful.server.auth import Authenticator
from heedful.server.codecs import BATCH, JSON_SIZE, LARGE, MANY, VALUES, Limits
from heedful.server.keys import SCOPES, Keys
from heedful.server.main import served
from heedful.server.problems import TITLES
from heedful.server.routes import description
from loops import small_loop

PAGE = Path(__file__).resolve().parents[1] / "docs" / "http.md"
TEXT = PAGE.read_text()
MESSAGE = re.compile(r"\n(?=(?:HTTP/1\.1|GET|POST|PUT|DELETE) )")
"""Where the next message of a block begins."""


class Block(NamedTuple):
    """A fenced block, with the line of the page that it begins at."""

    language: str
    body: str
    line: int


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page; one of HTTP has requests with their answers, each of which is a block here."""
    found = []
    for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S):
        line = text.count("\n", 0, match.start()) + 1
        for part in re.split(MESSAGE, match[2]) if match[1] == "http" else [match[2]]:
            found.append(Block(match[1], part, line))
            line += part.count("\n") + 1
    return found


class Message(NamedTuple):
    """A request or an answer as the page writes it."""

    first: str
    headers: dict[str, str]
    body: str


def message(block: Block) -> Message:
    """An `http` block, read."""
    head, _, body = block.body.partition("\n\n")
    first, *lines = head.strip().splitlines()
    return Message(first, {name: text.strip() for name, _, text in (line.partition(":") for line in lines)}, body)


def pattern(text: str) -> re.Pattern[str]:
    """What matches text in which … stands for anything."""
    return re.compile(".*".join(map(re.escape, text.split("…"))), re.S)


def alike(wanted: Any, got: Any) -> bool:
    """Whether JSON is what the page says: numbers to the digits shown, texts but for what … stands for."""
    if isinstance(wanted, Decimal):
        return type(got) in (int, float) and round(Decimal(got), -int(wanted.as_tuple().exponent)) == wanted
    if wanted == "…":
        return True
    if isinstance(wanted, str):
        return isinstance(got, str) and pattern(wanted).fullmatch(got) is not None
    if isinstance(wanted, dict):
        shown = wanted
        if isinstance(got, dict) and "…" in wanted:  # and fields that the page leaves to the reference
            shown = {name: value for name, value in wanted.items() if name != "…"}
            got = {name: value for name, value in got.items() if name in shown}
        return isinstance(got, dict) and [*shown] == [*got] and all(alike(shown[name], got[name]) for name in shown)
    if isinstance(wanted, list):
        if "…" in wanted and isinstance(got, list):  # any number of them
            at = wanted.index("…")
            wanted = wanted[:at] + ["…"] * (len(got) - len(wanted) + 1) + wanted[at + 1 :]
        return isinstance(got, list) and len(wanted) == len(got) and all(map(alike, wanted, got))
    return type(wanted) is type(got) and bool(wanted == got)


def read(text: str) -> Any:
    """JSON as the page writes it; None where it is none."""
    try:
        return json.loads(text, parse_float=Decimal)
    except ValueError:
        return None


class Said(NamedTuple):
    """What a server answered."""

    status: int
    headers: http.client.HTTPMessage
    body: str


def ask(url: str, asked: Message, known: dict[str, str]) -> Said:
    """Send a request as it stands on the page."""
    method, path = asked.first.split(" ")
    where = urlsplit(url)
    connection = http.client.HTTPConnection(str(where.hostname), where.port, timeout=30)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        sent = {"Host": where.netloc} | asked.headers
        body = re.sub(r"\$(\w+)", lambda match: known.get(match[1], match[0]), asked.body).encode()
        if body:
            sent = {"Content-Type": "application/json", "Content-Length": str(len(body))} | sent
        for name, text in sent.items():
            connection.putheader(name, re.sub(r"\$(\w+)", lambda match: known[match[1]], text))
        connection.endheaders(body)
        answer = connection.getresponse()
        return Said(answer.status, answer.headers, answer.read().decode())
    finally:
        connection.close()


def wrong(block: Block, said: Said) -> str:
    """What differs between an answer on the page and the one that came; "" where nothing does."""
    wanted = message(block)
    kind = "application/problem+json" if said.status >= 400 else "application/json"
    for name, text in ({"Content-Type": kind} | wanted.headers).items():
        if not pattern(text).fullmatch(said.headers.get(name, "")):
            return f"line {block.line}: {name}: {said.headers.get(name)}"
    expected = read(wanted.body)
    if isinstance(expected, dict) and said.status >= 400:
        expected.setdefault("request_id", "…")  # all problems have it: the page says so once
    same = pattern(wanted.body.strip()).fullmatch(said.body.strip()) if expected is None else None
    if wanted.first.split()[:2] != ["HTTP/1.1", str(said.status)] or not (
        same if expected is None else alike(expected, json.loads(said.body))
    ):
        return f"line {block.line}: {said.status} {said.body}"
    return ""


def shell(script: str, folder: Path, known: dict[str, str]) -> str:
    """What a `sh` block writes, run in a folder; variables that it sets become known."""
    names = re.findall(r"^(\w+)=", script, re.M)
    script += "".join(f'\nprintf "\\036%s=%s" {name} "${name}"' for name in names)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder, env=os.environ | known | {"PATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told, *values = done.stdout.split("\036")
    known |= {name: text for name, _, text in (value.partition("=") for value in values)}
    return told


class Page:
    """The blocks of the page, being run in their order."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self.known = folder, dict[str, str]()
        (folder / "loops").mkdir()
        self.url = stack.enter_context(served(folder / "loops"))

    def answers(self, after: list[Block]) -> Iterator[tuple[Block, Said, Block | None]]:
        """(a request, what came, the block after it)."""
        for block, following in zip(after, [*after[1:], None]):
            if block.language == "sh":
                shell(block.body, self.folder, self.known)
            elif block.language == "http" and not block.body.startswith("HTTP/1.1"):
                yield block, ask(self.url, message(block), self.known), following


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    monkeypatch.setattr("heedful.server.context.Authenticator", partial(Authenticator, every=0.0))
    with ExitStack() as stack:
        yield Page(tmp_path, stack)


@pytest.mark.slow
def test_every_request_is_answered_as_the_page_says(page: Page) -> None:
    found = []
    for block, said, following in page.answers(blocks(TEXT)):
        assert following is not None, f"line {block.line}: no answer"
        assert following.body.startswith("HTTP/1.1 "), f"line {block.line}: no answer"
        found.append(wrong(following, said))
    assert [told for told in found if told] == []
    assert len(found) > 40


def test_the_page_has_every_route_with_an_answer() -> None:
    asked = [
        (*message(block).first.split(" "), following.body)
        for block, following in zip(blocks(TEXT), blocks(TEXT)[1:])
        if block.language == "http" and following.body.startswith("HTTP/1.1 2")
    ]
    for path, methods in json.loads(description())["paths"].items():
        form = re.compile(re.sub(r"\\\{\w+\\\}", "[^/?]+", re.escape(path)) + r"(\?.*)?")
        for method in methods:
            assert any(form.fullmatch(each[1]) and each[0] == method.upper() for each in asked), (method, path)


def test_the_page_has_every_kind_of_problem() -> None:
    table = re.findall(r"^\| `([\w-]+)` \| (\d{3}) \|", TEXT, re.M)
    assert {kind: int(status) for kind, status in table} == {kind: status for kind, (status, _) in TITLES.items()}


def test_every_field_of_a_body_has_words() -> None:
    """The list of fields is written from the schemas; of a few the name says it all."""
    plain = {"time", "token", "reason", "learner"}
    schemas = json.loads(description())["components"]["schemas"]
    for name, body in schemas.items():
        for field, of in body.get("properties", {}).items():
            assert of.get("description") or "$ref" in of or field in plain, (name, field)


def test_the_page_has_a_row_for_every_scope() -> None:
    for scope in SCOPES:
        assert re.search(rf"^\| `{scope}` \|", TEXT, re.M), scope


def test_the_limits_are_those_of_the_code() -> None:
    limits = Limits()
    assert f"| body | {limits.body // 2**20} MiB |" in TEXT
    assert f"| JSON, but for items and new loops | {JSON_SIZE // 2**20} MiB |" in TEXT
    assert f"| values in JSON | {VALUES:,} |" in TEXT
    assert f"Of msgpack above {LARGE // 2**10} KiB lists and objects have at most {MANY:,} values" in " ".join(
        TEXT.split()
    )
    assert f"| events in a request | {BATCH}; items ten times as many |" in TEXT
    assert f"| time for a request to arrive | {limits.seconds:g} s |" in TEXT


def test_a_page_that_is_wrong_is_found() -> None:
    answer = http.client.HTTPMessage()
    answer["Content-Type"] = "application/json"
    said = Said(200, answer, '{"a": 0.12345, "b": "x1", "c": [1, true]}')
    right = 'HTTP/1.1 200 OK\n\n{"a": 0.123, "b": "x…", "c": [1, true]}'
    assert wrong(Block("http", right, 1), said) == ""
    assert wrong(Block("http", right.replace('"c": [1, true]', '"…": "…"'), 1), said) == ""
    for old, new in (
        ("200", "201"), ("0.123", "0.124"), ("x…", "y…"), ("x…", "x"), ("[1, true]", "[1, 1]"), ("[1, true]", "[true]"),
        ('"c"', '"d"'), (', "c": [1, true]', ', "d": 1, "…": "…"'),
        ("200 OK", "200 OK\nContent-Type: text/plain"), (', "c": [1, true]', ""),
    ):  # fmt: skip
        assert wrong(Block("http", right.replace(old, new), 1), said) != "", new


# ---------------------------------------------------------------------------- what the page says beside its blocks


def test_a_stream_ends_when_its_key_is_revoked(tmp_path: Path) -> None:
    small_loop(tmp_path / "cars.heedful").close()
    with closing(Keys(tmp_path)) as keys:
        known, key = keys.create("reader", scopes=["read"])
        with served(tmp_path) as url:
            headers = {"authorization": f"Bearer {key}"}
            path = f"{url}/v1/loops/cars/events?after=1000"
            with httpx.stream("GET", path, headers=headers, timeout=20) as stream:
                lines = stream.iter_lines()
                assert next(lines) == ": events of the loop"
                keys.revoke(known.prefix)
                assert [line for line in lines if line] == []  # it ends, rather than being read until the time-out


def test_the_place_of_an_event_is_its_own_whatever_its_item_has(tmp_path: Path) -> None:
    with served(tmp_path) as url:
        new = {"name": "cars", "items": [{"id": "a", "seq": 700}, {"id": "b", "seq": 900}]}
        assert httpx.post(f"{url}/v1/loops", json=new).status_code == 201
        text = httpx.get(f"{url}/v1/loops/cars/events?follow=false").text
        places = re.findall(r"^id: (\d+)\nevent: item\ndata: (.*)$", text, re.M)
        assert [int(place) for place, _ in places] == [json.loads(data)["seq"] for _, data in places] == [2, 3]
