"""Signing in with a key: who may, for how long, and what a page of somebody else can do about it."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from asking import NO_TLS

from heedful.server.keys import SCOPES, Keys
from heedful.server.main import served
from heedful.server.pages import FIRST, PAGES
from heedful.server.sessions import Sessions
from heedful.storage import Place
from loops import small_loop
from processes import until


class Clock:
    """A clock that is set by hand."""

    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


# ---------------------------------------------------------------------------- what is kept


def test_a_session_is_found_by_its_token_alone_and_ends(keys: Keys, vault: Place) -> None:
    key, _ = keys.create("ci")
    sessions = Sessions(vault)
    token = sessions.create(key.prefix)
    assert sessions.prefix_of(token) == key.prefix
    for wrong in ("", token[:-1], token[:-1] + ("a" if token[-1] != "a" else "b"), f"{token}a", "ü" * 43):
        assert sessions.prefix_of(wrong) is None
    other = sessions.create(key.prefix)
    sessions.end(token)
    assert (sessions.prefix_of(token), sessions.prefix_of(other)) == (None, key.prefix)
    sessions.end(token)


def test_only_a_digest_of_it_is_on_the_disk(keys: Keys, tmp_path: Path) -> None:
    token = Sessions(tmp_path).create(keys.create("ci")[0].prefix)
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir() if file.is_file())
    assert b"sessions" in kept
    assert token.encode() not in kept


def test_it_ends_when_nobody_came_for_long_and_a_visit_prolongs_it(keys: Keys, vault: Place) -> None:
    prefix, clock = keys.create("ci")[0].prefix, Clock()
    sessions = Sessions(vault, idle=1000.0, clock=clock)
    visited, left = sessions.create(prefix), sessions.create(prefix)
    for _ in range(5):
        clock.now += 600
        assert sessions.prefix_of(visited) == prefix
    assert sessions.prefix_of(left) is None
    clock.now += 999
    assert sessions.prefix_of(visited) == prefix
    clock.now += 1000
    assert sessions.prefix_of(visited) is None


def test_what_has_ended_goes(keys: Keys, vault: Place) -> None:
    prefix, clock = keys.create("ci")[0].prefix, Clock()
    sessions = Sessions(vault, idle=1000.0, clock=clock)
    tokens = [sessions.create(prefix) for _ in range(3)]
    clock.now += 1001
    sessions.create(prefix)
    clock.now -= 1001  # were they still there, they would be good again
    assert [sessions.prefix_of(token) for token in tokens] == [None] * 3


def test_without_a_database_there_is_no_session(tmp_path: Path) -> None:
    sessions = Sessions(tmp_path)
    assert sessions.prefix_of("a" * 43) is None
    sessions.end("a" * 43)
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------------- over HTTP


class Browser:
    """Asks as a browser does: with its cookies, and saying where a form comes from."""

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(base_url=url, timeout=30, verify=NO_TLS)
        self.origin = url

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.http.get(path, headers={name.replace("_", "-"): value for name, value in headers.items()})

    def post(self, path: str, form: dict[str, str], **headers: str) -> httpx.Response:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.http.post(path, data=form, headers={"origin": self.origin} | sent)

    def sign_in(self, key: str, **form: str) -> httpx.Response:
        return self.post("/sign-in", {"key": key, **form})


@pytest.fixture
def browsers() -> Iterator[ExitStack]:
    with ExitStack() as held:
        yield held


def browser(held: ExitStack, url: str) -> Browser:
    made = Browser(url)
    held.callback(made.http.close)
    return made


def test_as_long_as_there_is_no_key_nobody_signs_in(tmp_path: Path, browsers: ExitStack) -> None:
    small_loop(tmp_path / "cars.heedful").close()
    with served(tmp_path) as url:
        ask = browser(browsers, url)
        assert ask.get("/loops/cars").status_code == 200
        assert "No key is needed yet" in ask.get("/sign-in").text
        assert "Sign out" not in ask.get("/loops/cars").text
        for path in ("/", "/loops/cars", "/keys"):
            far = ask.get(path, host="example.org")
            assert (far.status_code, "Host: expected localhost" in far.text) == (421, True)


def test_a_key_is_asked_for_once_and_opens_what_it_may(tmp_path: Path, keys: Keys, browsers: ExitStack) -> None:
    small_loop(tmp_path / "cars.heedful").close()
    key, text = keys.create("ci")
    with served(tmp_path) as url:
        ask = browser(browsers, url)
        away = ask.get("/loops/cars?person=ann")
        assert (away.status_code, away.headers["location"]) == (303, "/sign-in?next=%2Floops%2Fcars%3Fperson%3Dann")
        part = ask.get("/loops/cars/hand?deal=new", hx_request="true")
        assert (part.status_code, part.headers["hx-redirect"], part.content) == (401, "/sign-in", b"")
        assert ask.get("/static/heedful.css").status_code == 200
        form = ask.get(away.headers["location"])
        assert 'name="next" value="/loops/cars?person=ann"' in form.text
        wrong = ask.sign_in(text[:-1] + ("a" if text[-1] != "a" else "b"))
        assert (wrong.status_code, "unknown, revoked or expired" in wrong.text, text[12:-1] in wrong.text) == (
            401,
            True,
            False,
        )
        assert ask.sign_in("password").status_code == 422
        good = ask.sign_in(f" {text}\n", next="/loops/cars?person=ann")
        assert (good.status_code, good.headers["location"]) == (303, "/loops/cars?person=ann")
        cookie = good.headers["set-cookie"]
        for part_of_it in ("HttpOnly", "SameSite=strict", "Path=/"):
            assert part_of_it in cookie
        assert "Secure" not in cookie
        assert text not in cookie
        page = ask.get("/loops/cars?person=ann")
        assert (page.status_code, f"Signed in with {key.prefix}" in page.text) == (200, True)
        assert ask.get("/v1/loops").status_code == 401  # the cookie is for pages: what programs ask takes a key
    with served(tmp_path) as url:  # another server of the same folder, as after a restart
        again = browser(browsers, url)
        again.http.cookies.update(ask.http.cookies)
        assert again.get("/loops/cars").status_code == 200
        out = again.post("/sign-out", {})
        assert (out.status_code, out.headers["location"]) == (303, "/sign-in")
        again.http.cookies.update(ask.http.cookies)
        assert again.get("/loops/cars").status_code == 303


def test_a_session_ends_with_its_key(tmp_path: Path, keys: Keys, browsers: ExitStack) -> None:
    small_loop(tmp_path / "cars.heedful").close()
    key, text = keys.create("ci")
    with served(tmp_path) as url:
        ask = browser(browsers, url)
        ask.sign_in(text)
        assert ask.get("/loops/cars").status_code == 200
        keys.revoke(key.prefix)
        until(lambda: ask.get("/loops/cars").status_code == 303)


READ, FEEDBACK, TEACH, ADMIN = ("read",), ("feedback", "read"), ("decide", "feedback", "read"), ("admin", "read")
LOOP = "/loops/{loop}"
MAY = {
    "GET": {f"{LOOP}/compare": TEACH, "/keys": ("admin",)},
    "POST": {
        **dict.fromkeys((f"{LOOP}/teach", f"{LOOP}/compare/answer", f"{LOOP}/compare/undo"), TEACH),
        **dict.fromkeys((f"{LOOP}/undo", f"{LOOP}/learned/undo"), FEEDBACK),
        **dict.fromkeys(("/keys", "/keys/revoke"), ("admin",)),
    },
}
"""Which scopes a page takes, by method and path; others take READ to look at them, and ADMIN to change anything."""


def test_a_page_takes_its_scopes_and_is_not_there_for_others(tmp_path: Path, keys: Keys, browsers: ExitStack) -> None:
    small_loop(tmp_path / "cars.heedful").close()
    with served(tmp_path) as url:

        def signed_in(scopes: Collection[str], tenant: str = "main") -> Browser:
            made = browser(browsers, url)
            assert made.sign_in(keys.create("k", scopes=scopes, tenant=tenant)[1]).status_code == 303
            return made

        lacking = {scope: signed_in(set(SCOPES) - {scope}) for scope in SCOPES}
        having = {scopes: signed_in(scopes) for scopes in (READ, FEEDBACK, TEACH, ADMIN, ("admin",))}
        stranger, nobody = signed_in(SCOPES, "acme"), browser(browsers, url)
        for page in PAGES:
            needed = MAY[page.method].get(page.path, READ if page.method == "GET" else ADMIN)
            path = re.sub(r"\{(loop|name)\}", "cars", page.path).replace("{form}", "csv").replace("{number}", "x")

            def asked(browser: Browser, method: str = page.method, path: str = path) -> int:
                return (browser.get(path) if method == "GET" else browser.post(path, {"x": "y"})).status_code

            assert {asked(lacking[scope]) for scope in needed} == {403}, page
            if not path.endswith("/live"):  # which does not end
                assert asked(having[needed]) in ((415,) if page.uploads else (200, 303, 404, 409, 422)), page
            assert asked(stranger) == 404 or not page.path.startswith("/loops"), page
            assert page.method == "POST" or nobody.get(path).headers["location"].startswith("/sign-in"), page


def test_a_page_says_what_a_key_may_not(tmp_path: Path, keys: Keys, browsers: ExitStack) -> None:
    small_loop(tmp_path / "cars.heedful").close()
    with served(tmp_path) as url:
        reader, teacher = browser(browsers, url), browser(browsers, url)
        reader.sign_in(keys.create("reader", scopes=["read"])[1])
        teacher.sign_in(keys.create("teacher", scopes=TEACH)[1])
        seen = reader.get("/loops/cars").text
        assert ("rather have this" in seen, "Your key may only read" in seen, "/keys" in seen) == (False, True, False)
        refused = reader.post("/loops/cars/teach", {"event": "e1"}).text
        assert "a key that may decide and feedback; yours may read" in refused
        assert "rather have this" in teacher.get("/loops/cars").text


FOREIGN = (
    {"origin": "http://example.org"},
    {"origin": "null"},
    {"origin": "http://127.0.0.1:1"},
    {"origin": "http://localhost"},
    {"sec_fetch_site": "cross-site"},
    {"sec_fetch_site": "same-site"},
    {"sec_fetch_site": "none"},
)


@pytest.mark.parametrize("keyed", [False, True])
def test_what_a_page_of_somebody_else_sends_is_refused(
    tmp_path: Path, keys: Keys, browsers: ExitStack, keyed: bool
) -> None:
    small_loop(tmp_path / "cars.heedful").close()
    text = keys.create("ci")[1] if keyed else ""
    with served(tmp_path) as url:
        ask = browser(browsers, url)
        if keyed:
            assert ask.sign_in(text).status_code == 303
        form = {"hand": '["i1","i0"]', "event": "e1", "item": "i0"}
        paths = [page.path.replace("{loop}", "cars") for page in PAGES if page.method == "POST"]
        assert "/loops/cars/teach" in paths
        for headers in FOREIGN:
            for path in (*paths, "/sign-in", "/sign-out"):
                answer = ask.post(path, form, **headers)
                assert (answer.status_code, "Not from this page" in answer.text) == (403, True), (path, headers)
        silent = ask.http.post("/loops/cars/teach", data=form)
        assert silent.status_code == 403
        told = ask.http.post("/loops/cars/teach", data=form, headers={"sec-fetch-site": "same-origin"})
        assert told.status_code == 303  # some browsers say where it comes from in this way alone


@pytest.mark.parametrize(
    "to", ["//example.org", "https://example.org", "/\\example.org", "javascript:alert(1)", "/a\nb"]
)
def test_signing_in_leads_nowhere_else(tmp_path: Path, keys: Keys, browsers: ExitStack, to: str) -> None:
    text = keys.create("ci")[1]
    with served(tmp_path) as url:
        ask = browser(browsers, url)
        assert ask.sign_in(text, next=to).headers["location"] == "/"
        assert 'name="next" value="/"' in ask.http.get("/sign-in", params={"next": to}).text


def test_the_key_stands_in_no_log_and_in_no_answer(
    tmp_path: Path, keys: Keys, browsers: ExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    text = keys.create("ci")[1]
    with caplog.at_level(logging.DEBUG), served(tmp_path) as url:
        ask = browser(browsers, url)
        answers = [ask.sign_in(text), ask.sign_in(f"{text}x"), ask.sign_in(text, more="x"), ask.get(f"/loops/{text}")]
        assert [answer.status_code for answer in answers] == [303, 422, 303, 404]
        for answer in answers:
            assert text[12:] not in f"{answer.headers} {answer.text}"
    ours = [record.getMessage() for record in caplog.records if record.name.startswith(("heedful", "uvicorn"))]
    assert not [line for line in ours if text[12:] in line]


def test_a_key_has_its_rate_on_pages_too(tmp_path: Path, keys: Keys, browsers: ExitStack) -> None:
    small_loop(tmp_path / "cars.heedful").close()
    text = keys.create("ci", rate=0.001)[1]
    with served(tmp_path) as url:
        ask = browser(browsers, url)
        ask.sign_in(text)
        codes = [ask.get("/loops/cars").status_code for _ in range(12)]
        assert codes == sorted(codes)
        assert set(codes) == {200, 429}
        assert int(ask.get("/loops/cars").headers["retry-after"]) > 0


# ---------------------------------------------------------------------------- what a browser is told


def test_pages_hold_nothing_inline_and_ask_nobody_else(tmp_path: Path, browsers: ExitStack) -> None:
    with small_loop(tmp_path / "cars.heedful") as loop:
        for n in range(3):
            loop.feedback(loop.decide(id=f"d{n}").id, better=["i5"])
    templates = list((Path(__file__).parents[2] / "src/heedful/server/templates").glob("*.html"))
    assert len(templates) > 5
    for file in templates:
        text = file.read_text()
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:|hx-on|hx-vals=.js", text), file.name
        assert not re.search(r"<script(?![^>]* (src=|type=\"application/json\"))", text), file.name
        assert not re.search(r"(src|href|action)=\"(https?:)?//", text), file.name
        assert "|safe" not in text, file.name
    with served(tmp_path) as url:
        ask = browser(browsers, url)
        pages = "", "/hand", "/learned", "/proof", "/health", "/why?decision=d0", "/no"
        for path in ("/", "/loops/nothing", "/keys", "/sign-in", *[f"/loops/cars{page}" for page in pages]):
            answer = ask.get(path)
            headers, ids = answer.headers, re.findall(r'\sid="([^"]*)"', answer.text)
            assert len(set(ids)) == len(ids), path
            assert headers["content-type"] == "text/html; charset=utf-8", path
            assert "default-src 'none'; script-src 'self';" in headers["content-security-policy"], path
            assert "frame-ancestors 'none'" in headers["content-security-policy"], path
            assert headers["x-content-type-options"] == "nosniff", path
            assert headers["cache-control"] == "no-store", path
            assert headers["referrer-policy"] == "same-origin", path
        for path in re.findall(r'(?:src|href)="(/static/[^"]+)"', ask.get("/loops/cars").text):
            file = ask.get(path)
            assert (file.status_code, "immutable" in file.headers["cache-control"]) == (200, True), path
            assert ask.get(path, if_none_match=file.headers["etag"]).status_code == 304
        assert ask.get("/static/heedful.css").headers["cache-control"] == "no-cache"
        for path in ("nothing.css", "..%2Fkeys.py", "../keys.py", ".hidden", "vendor", "vendor/", "", "a%5Cb"):
            assert ask.get(f"/static/{path}").status_code == 404, path
        assert {page.path.split("/")[1] for page in PAGES} - {""} <= FIRST


def test_other_methods_are_told_so(tmp_path: Path, browsers: ExitStack) -> None:
    small_loop(tmp_path / "cars.heedful").close()
    with served(tmp_path) as url:
        ask = browser(browsers, url)
        answer = ask.http.put("/loops/cars")
        assert (answer.status_code, set(answer.headers["allow"].split(", "))) == (405, {"GET", "HEAD"})
        assert ask.get("/sign-out").status_code == 405
        head = ask.http.head("/loops/cars")
        assert (head.status_code, head.content) == (200, b"")
