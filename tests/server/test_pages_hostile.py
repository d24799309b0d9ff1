"""The pages under attack: who reads what a key may not, takes up the server, gets at files, keeps what has ended."""

from __future__ import annotations

import logging
import re
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from asking import NO_TLS, Wire, request
from browsing import Visitor
from hypothesis import given
from hypothesis import strategies as st

from budget import examples
from heedful import TEXTS, Loop
from heedful.server.context import Options
from heedful.server.keys import Keys
from heedful.server.main import served
from heedful.server.pages import PAGES
from heedful.server.pages.page import Page
from heedful.server.pages.session import cookies
from heedful.server.sessions import MOST, Sessions
from loops import bits, bits_from_scratch, choice_loop, rating_loop, small_loop

pages_page = import_module("heedful.server.pages.page")  # a function of its package has that name, too
SECRET = "person-nobody-may-see"
DEEP = "[" * 5000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    small_loop(tmp_path / "cars.heedful").close()
    return tmp_path


@pytest.fixture
def url(folder: Path) -> Iterator[str]:
    with served(folder, Options(threads=4)) as found:
        yield found


@pytest.fixture
def held() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def visitor(url: str, held: ExitStack) -> Visitor:
    """Somebody without a session."""
    return held.enter_context(closing(Visitor(url)))


def program(held: ExitStack, url: str, key: str) -> httpx.Client:
    """Somebody who sends a key with every request."""
    headers = {"authorization": f"Bearer {key}"}
    return held.enter_context(httpx.Client(base_url=url, timeout=30, verify=NO_TLS, headers=headers))


def cookie_of(folder: Path) -> str:
    """What a session's cookie is called, where there is no https."""
    return cookies(folder)[1]


def noted(visitor: Visitor) -> dict[str, int]:
    """How many events of each kind are in the log."""
    found: dict[str, int] = visitor.http.get("/v1/loops/cars").json()["events"]
    return found


# ---------------------------------------------------------------------------- what a key may not


@pytest.mark.parametrize("path", ["undo", "learned/undo", "teach"])
def test_a_key_that_may_not_read_is_shown_nothing(
    keys: Keys, visitor: Visitor, url: str, held: ExitStack, path: str
) -> None:
    site, full = keys.create("site", scopes=["decide", "feedback"])[1], keys.create("full")[1]
    api, theirs = program(held, url, full), program(held, url, site)
    api.post("/v1/loops/cars/decisions", json={"id": "d1", "person": SECRET, "candidates": ["i1", "i2", "i3"]})
    assert api.post("/v1/loops/cars/feedback", json={"decision": "d1", "id": "e1", "clicks": ["i3"]}).is_success
    theirs.post("/v1/loops/cars/decisions", json={"id": "d2", "candidates": ["i1", "i2"]})
    assert theirs.post("/v1/loops/cars/feedback", json={"decision": "d2", "id": "mine", "clicks": ["i2"]}).is_success
    visitor.sign_in(site)
    form = {"event": "mine"} if path != "teach" else {"event": "t", "hand": '["i5","i6"]', "item": "i6"}
    refused = visitor.post(f"/loops/cars/{path}", form, hx_request="true")
    assert (refused.status, SECRET in refused.html, "i5" in refused.html) == (403, False, False)


@pytest.mark.parametrize(("rate", "made"), [("", 5.0), ("2", 2.0), ("100000", None), ("inf", None)])
def test_nobody_makes_a_key_that_may_ask_more_often_than_their_own(
    keys: Keys, visitor: Visitor, rate: str, made: float | None
) -> None:
    visitor.sign_in(keys.create("slow", tenant="acme", rate=5.0)[1])
    assert "At most 5, as your own key" in visitor.get("/keys").html
    answer = visitor.post("/keys", {"name": "quick", "scope-read": "yes", "rate": rate})
    assert answer.status == (422 if made is None else 200)
    assert [key.rate for key in keys.all() if key.name == "quick"] == ([] if made is None else [made])


def test_a_key_without_a_rate_gives_no_more_than_the_servers(folder: Path, keys: Keys, held: ExitStack) -> None:
    found = held.enter_context(closing(Visitor(held.enter_context(served(folder, Options(rate=50.0))))))
    found.sign_in(keys.create("full")[1])
    statuses = [found.post("/keys", {"name": "new", "scope-read": "yes", "rate": r}).status for r in ("51", "50", "")]
    assert statuses == [422, 200, 200]
    assert [key.rate for key in keys.all()] == [None, 50.0, None]


# ---------------------------------------------------------------------------- nobody holds everybody up


def test_who_has_no_key_sends_no_large_form(keys: Keys, visitor: Visitor) -> None:
    keys.create("full")
    headers = {"origin": visitor.url, "content-type": "application/x-www-form-urlencoded"}
    for size in (2**10, 2**20):  # of %41, as slow to read as can be
        answer = visitor.http.post("/sign-in", content=b"key=" + b"%41" * size, headers=headers)
        assert answer.status_code == (413 if size > 2**10 else 422)


def test_strangers_with_cookies_do_not_take_the_threads_of_the_loops(
    folder: Path, keys: Keys, url: str, held: ExitStack
) -> None:
    """Each looks for a session while somebody has the database locked; what programs ask goes on."""
    api = program(held, url, keys.create("full")[1])
    assert api.get("/v1/loops/cars").status_code == 200
    other = held.enter_context(closing(sqlite3.connect(folder / "server.db", isolation_level=None)))
    other.execute("BEGIN EXCLUSIVE")
    wires = [held.enter_context(closing(Wire(url, 30))) for _ in range(8)]
    for wire in wires:
        wire.send(request("GET", "/loops/cars", None, f"Cookie: {cookie_of(folder)}={'a' * 43}"))
    assert api.get("/v1/loops/cars", timeout=60).status_code == 200
    assert other.in_transaction
    for wire in wires:
        assert wire.answer()[0] == 503


def test_who_is_known_stays_while_somebody_is_writing(folder: Path, keys: Keys) -> None:
    sessions = Sessions(folder, clock=lambda: now)
    now = 1e6
    token, other = (sessions.create(keys.create("full")[0].prefix) for _ in range(2))
    prefix = sessions.prefix_of(token)
    now += 100
    with closing(sqlite3.connect(folder / "server.db", isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        assert sessions.prefix_of(token) == prefix
        assert sessions.holds(token)
        with pytest.raises(TimeoutError):
            sessions.prefix_of(other)


# ---------------------------------------------------------------------------- what is no fault of the server


@pytest.mark.parametrize("keyed", [False, True])
def test_a_long_name_of_a_file_is_not_found(keys: Keys, visitor: Visitor, keyed: bool) -> None:
    if keyed:
        keys.create("full")
    answer = visitor.get(f"/static/{'a' * 300}")
    assert answer.status == 404
    assert "content-security-policy" in answer.headers


def test_no_path_that_is_asked_for_gets_to_the_file_system(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Windows C:.. is the folder above, and D: another drive."""
    static = Path(pages_page.__file__).parents[1] / "static"
    there = {file.relative_to(static).as_posix(): file for file in static.rglob("*") if file.is_file()}
    assert {path: content for path, (content, _) in pages_page.static_files().items()} == {
        path: file.read_bytes() for path, file in there.items() if not file.name.startswith(".")
    }

    def opened(*_: Any) -> None:
        raise AssertionError("a file was looked for")

    monkeypatch.setattr(pages_page, "files", opened)
    for path in ("C:../keys.py", "D:/secrets", "C:../C:../boot.ini", "vendor/../heedful.css", "/etc/passwd"):
        assert visitor.http.get(f"/static/{path}".replace("..", "%2e%2e")).status_code == 404
    assert visitor.http.get("/static/heedful.css").status_code == 200


@pytest.mark.parametrize("field", ["hand", "order", "dealt"])
def test_json_that_is_nested_too_deep_teaches_nothing(visitor: Visitor, field: str) -> None:
    form = {"hand": '["i1","i0"]', "event": "e1", "kind": "order", "order": '["i0","i1"]'} | {field: DEEP * 20}
    answer = visitor.post("/loops/cars/teach", form)
    assert (answer.status, f"{field}: expected a list of names as JSON" in answer.html) == (422, True)
    assert "feedback" not in noted(visitor)


@pytest.mark.parametrize("path", ["", "/hand"])
def test_a_query_that_is_nested_too_deep_is_refused_by_name(visitor: Visitor, path: str) -> None:
    answer = visitor.get(f"/loops/cars{path}?hand={DEEP}")
    assert (answer.status, "hand: expected a list of names as JSON" in answer.html) == (422, True)


WORDS = [
    "i0",
    "i1",
    "i7",
    "d0",
    "p0",
    "first",
    "second",
    "up",
    "3",
    "-1",
    "1e400",
    "",
    '["i0","i1"]',
    "[[",
    "\u202e",
    "\0",
]
LOOPS = ["cars", "grades", "ratings", "study", "letters"]
PARTS = {"loop": LOOPS, "name": [*LOOPS, "none", "..", "\0"], "form": ["csv", "json", "toi", "svg", "x"]}
FIELDS = ["after", "answer", "decision", "dealt", "event", "hand", "item", "kind", "name", "next", "number", "order"]
FIELDS += ["person", "rate", "reason", "score", "segment", "share", "shown", "signal", "text"]
VALUES = st.dictionaries(st.sampled_from(FIELDS), st.sampled_from(WORDS) | st.text(max_size=9), max_size=6)


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """The folder and the address of a server with a loop of each kind."""
    folder = tmp_path_factory.mktemp("kinds")
    small_loop(folder / "cars.heedful", control=0.0).close()
    small_loop(folder / "grades.heedful", "prank:n_ranks=5", control=0.0).close()
    rating_loop(folder / "ratings.heedful").close()
    choice_loop(folder / "study.heedful").close()
    Loop.create(folder / "letters.heedful", encoding=TEXTS).close()
    with served(folder) as found:
        yield folder, found


@pytest.mark.slow
def test_no_form_is_the_servers_fault(kinds: tuple[Path, str], caplog: pytest.LogCaptureFixture) -> None:
    """Whatever is sent to any page: no 5xx, nothing in the log of the server, models that are the folds of their
    logs."""
    folder, url = kinds
    statuses = set()

    @examples(500)
    @given(st.sampled_from([page for page in PAGES if page.path != "/keys"]), VALUES, st.booleans(), st.data())
    def send(page: Page, values: dict[str, str], scripted: bool, data: st.DataObject) -> None:
        path = page.path
        for name in re.findall(r"{(\w+)}", path):
            path = path.replace(f"{{{name}}}", quote(data.draw(st.sampled_from(PARTS.get(name, WORDS))), safe=""))
        headers = {"origin": url} | ({"hx-request": "true"} if scripted else {})
        content = {"data": values} if page.method == "POST" else {"params": values}
        with http.stream(page.method, path, headers=headers, **content) as answer:
            statuses.add(answer.status_code)
            assert answer.status_code < 500, answer.request.url

    with httpx.Client(base_url=url, timeout=30, verify=NO_TLS) as http:
        send()
    assert {200, 303, 404, 422} <= statuses
    assert not [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    for name in LOOPS:
        with Loop.open(folder / f"{name}.heedful") as loop:
            assert bits(loop) == bits_from_scratch(loop)
            assert loop.verify() == []


@pytest.mark.parametrize(("method", "path"), [("GET", "/loops/cars"), ("GET", "/"), ("POST", "/sign-out")])
def test_where_the_folder_is_is_told_to_nobody(
    folder: Path, keys: Keys, visitor: Visitor, method: str, path: str
) -> None:
    keys.create("full")
    assert visitor.get("/").status == 303
    (folder / "server.db").write_bytes(b"garbage" * 1000)
    headers = {"cookie": f"{cookie_of(folder)}={'a' * 43}", "origin": visitor.url}
    for _ in range(2):
        answer = visitor.http.request(method, path, headers=headers)
        assert (answer.status_code in (500, 503), str(folder) in answer.text) == (True, False)


def test_why_there_is_no_snapshot_is_in_the_log(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(self: Loop) -> None:
        raise OSError(5, "Input/output error")

    assert visitor.get("/loops/cars").status == 200
    with monkeypatch.context() as patched, caplog.at_level(logging.ERROR, "heedful.server"):
        patched.setattr(Loop, "snapshot", fails)
        answer = visitor.post("/loops/cars/snapshot", {"x": "y"})
    assert (answer.status, "log says why" in answer.html, "retry-after" in answer.headers) == (503, True, True)
    assert "Input/output error" in caplog.text


# ---------------------------------------------------------------------------- sessions that have ended


def test_a_stream_ends_with_its_session(folder: Path, keys: Keys, visitor: Visitor, url: str, held: ExitStack) -> None:
    full = keys.create("full")[1]
    visitor.sign_in(full)
    lines, began, over = list[str](), threading.Event(), threading.Event()
    token = {cookie_of(folder): visitor.http.cookies[cookie_of(folder)]}

    def read() -> None:
        with (
            httpx.Client(base_url=url, timeout=30, verify=NO_TLS, cookies=token) as other,
            other.stream("GET", "/loops/cars/live?after=0") as answer,
        ):
            for line in answer.iter_lines():
                lines.append(line)
                began.set()
        over.set()

    threading.Thread(target=read, daemon=True).start()
    assert began.wait(60)
    stays = held.enter_context(closing(Visitor(url)))
    stays.sign_in(full)
    with stays.http.stream("GET", "/loops/cars/live?after=0") as open_still:
        parts = open_still.iter_lines()
        next(parts)
        assert visitor.post("/sign-out").status == 303
        assert over.wait(60)
        program(held, url, full).post("/v1/loops/cars/decisions", json={"person": SECRET})
        assert any(SECRET in line for line in parts)
    assert not any(SECRET in line for line in lines)


def test_a_stream_does_not_keep_its_session_alive(folder: Path, keys: Keys) -> None:
    sessions = Sessions(folder, idle=1000.0, clock=lambda: now)
    now = 1e6
    token = sessions.create(keys.create("full")[0].prefix)
    for _ in range(9):
        now += 100
        assert sessions.holds(token)
    now += 100
    assert not sessions.holds(token)
    assert sessions.prefix_of(token) is None


def test_signing_in_anew_ends_the_session_before(folder: Path, keys: Keys, visitor: Visitor, held: ExitStack) -> None:
    full, name = keys.create("full")[1], cookie_of(folder)
    visitor.sign_in(full)
    old = visitor.http.cookies[name]
    assert visitor.get("/").status == 200
    visitor.sign_in(full)
    assert visitor.http.cookies[name] != old
    before = held.enter_context(closing(Visitor(visitor.url)))
    before.http.cookies[name] = old
    assert (before.get("/").status, visitor.get("/").status) == (303, 200)


def test_a_key_has_so_many_sessions_and_the_newest_stay(folder: Path, keys: Keys) -> None:
    now = 1e6
    sessions = Sessions(folder, clock=lambda: now)
    prefix, other = keys.create("full")[0].prefix, keys.create("other")[0].prefix
    apart, tokens = sessions.create(other), list[str]()
    for _ in range(MOST + 2):
        now += 1
        tokens.append(sessions.create(prefix))
    assert [sessions.prefix_of(token) is not None for token in tokens] == [False] * 2 + [True] * MOST
    assert sessions.prefix_of(apart) == other


def test_two_servers_of_one_machine_do_not_sign_each_other_out(tmp_path: Path, held: ExitStack) -> None:
    """Cookies know no ports."""
    ask = held.enter_context(httpx.Client(timeout=30, verify=NO_TLS))
    urls = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        with closing(Keys(tmp_path / name)) as made:
            key = made.create(name)[1]
        urls.append(held.enter_context(served(tmp_path / name)))
        assert ask.post(f"{urls[-1]}/sign-in", data={"key": key}, headers={"origin": urls[-1]}).status_code == 303
    assert [ask.get(f"{url}/").status_code for url in urls] == [200, 200]


def test_over_https_the_cookie_is_of_this_host_alone(folder: Path, keys: Keys, visitor: Visitor) -> None:
    name = cookies(folder)[0]
    proxied = {"host": "rank.example", "origin": "https://rank.example"}
    signed = visitor.post("/sign-in", {"key": keys.create("full")[1]}, **proxied)
    given = signed.headers["set-cookie"]
    assert given.startswith(f"{name}=")
    assert name.startswith("__Host-")
    assert "; Secure" in given
    token = given.partition("=")[2].partition(";")[0]
    both = {"cookie": f"{cookie_of(folder)}={'a' * 43}; {name}={token}"}  # one that another host put there
    assert visitor.get("/", **both, host="rank.example").status == 200
    out = visitor.post("/sign-out", **both | proxied)
    assert sorted(line.partition("=")[0] for line in out.headers.get_list("set-cookie")) == sorted(cookies(folder))
    assert visitor.get("/", **both, host="rank.example").status == 303


# ---------------------------------------------------------------------------- what is told again


@pytest.mark.parametrize("field", ["name", "rate"])
def test_a_key_in_the_wrong_field_is_not_told_again(keys: Keys, visitor: Visitor, field: str) -> None:
    full = keys.create("full")[1]
    visitor.sign_in(full)
    answer = visitor.post("/keys", {"name": "x", "scope-read": "yes"} | {field: full})
    assert (answer.status, full[12:] in answer.html, full[:11] in answer.html) == (422, False, True)


def test_what_is_long_is_told_in_short(visitor: Visitor) -> None:
    for field in ("name", "rate"):
        answer = visitor.post("/keys", {"name": "x", "scope-read": "yes"} | {field: "x" * 1_000_000})
        assert (answer.status, len(answer.html) < 20_000) == (422, True)


@pytest.mark.parametrize("column", [False, True])
def test_a_long_title_or_column_is_cut_short(visitor: Visitor, column: bool) -> None:
    long: list[dict[str, Any]] = [{"k" * 200_000: 1.5 * i} if column else {"title": "<b>" * 250_000} for i in range(9)]
    items = [{"id": f"a{i}", "hp": i} | more for i, more in enumerate(long)]
    assert visitor.http.post("/v1/loops", json={"name": "long", "items": items}).status_code == 201
    assert len(visitor.get("/loops/long").html) < 100_000
    taught = visitor.post("/loops/long/teach", {"hand": '["a1","a2"]', "event": "e", "item": "a2"}, hx_request="true")
    assert (taught.status, len(taught.html) < 100_000) == (200, True)
    assert len(visitor.get("/loops/long/learned").html) < 100_000


# ---------------------------------------------------------------------------- what is noted


@pytest.mark.parametrize(
    "given",
    [{"kind": "order", "order": '["i9"]'}, {"kind": "pick", "item": "i9"}, {"kind": "none", "event": "e" * 181}],
)
def test_what_is_refused_leaves_no_list_in_the_log(visitor: Visitor, given: dict[str, str]) -> None:
    refused = visitor.post("/loops/cars/teach", {"hand": '["i1","i0"]', "event": "e1", **given})
    assert refused.status == (422 if "event" in given else 409)
    assert "decision" not in noted(visitor)


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ({"sec-fetch-dest": "document", "sec-purpose": "prefetch;prerender"}, 200),
        ({"sec-fetch-dest": "empty", "purpose": "prefetch"}, 200),
        ({"sec-fetch-dest": "image"}, 200),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, 403),
        ({"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"}, 403),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, 200),
    ],
)
def test_a_list_that_nobody_looks_at_does_not_count_as_shown(
    visitor: Visitor, header: dict[str, str], status: int
) -> None:
    assert visitor.http.get("/loops/cars", headers={"sec-fetch-site": "none"} | header).status_code == status
    assert "decision" not in noted(visitor)


@pytest.mark.slow
@pytest.mark.parametrize("dest", ["document", "empty"])
def test_a_list_that_somebody_looks_at_counts_as_shown(visitor: Visitor, dest: str) -> None:
    visitor.http.get("/loops/cars", headers={"sec-fetch-site": "same-origin", "sec-fetch-dest": dest})
    assert noted(visitor)["decision"] == 1
