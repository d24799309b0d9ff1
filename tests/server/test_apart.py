"""Tenants and scopes: who gets what from which route, and that nobody can tell what others have."""

from __future__ import annotations

import base64
import itertools
import json
import logging
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from asking import FLOAT32, NO_TLS, Caller, Said, files, is_problem, said
from hypothesis import given
from hypothesis import strategies as st

from budget import examples
from heedful import Loop
from heedful.server import metrics
from heedful.server.keys import SCOPES, Keys
from heedful.server.main import served
from loops import rows, small_loop


class Route(NamedTuple):
    """One route, asked so that it is answered where it may be."""

    method: str
    path: str
    scope: str | None
    body: Any = ...
    status: int = 200

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"


LOOP = "/v1/loops/{loop}"
ROUTES = [
    Route("GET", "/v1/loops", "read"),
    Route("POST", "/v1/loops", "admin", {"name": "{new}", "items": rows(3, 2)}, 201),
    Route("GET", LOOP, "read"),
    Route("PUT", f"{LOOP}/items", "admin", [{"id": "new", "f0": 1}]),
    Route("GET", f"{LOOP}/items", "read"),
    Route("DELETE", f"{LOOP}/items/new", "admin"),
    Route("POST", f"{LOOP}/decisions", "decide", {"id": "d", "person": "p", "show": 3}),
    Route("POST", f"{LOOP}/records", "decide", {"candidates": ["i0", "i1"], "shown": ["i1"], "id": "r"}),
    Route("POST", f"{LOOP}/feedback", "feedback", {"decision": "d", "id": "e", "better": "i5"}),
    Route("POST", f"{LOOP}/feedback", "feedback", [{"decision": "d", "id": "e2", "better": "i6"}]),
    Route("POST", f"{LOOP}/clicks", None, {"token": "{key}", "decision": "d", "item": "i0"}, 403),
    Route("POST", f"{LOOP}/activate", "feedback", {"decision": "d"}),
    Route("POST", f"{LOOP}/undo", "feedback", {"event": "e"}),
    Route("POST", f"{LOOP}/rollback", "admin", {"to": 3, "id": "back"}),
    Route("POST", f"{LOOP}/experiments", "admin", {"learner": "perceptron", "share": 0.5, "id": "x"}),
    Route("GET", f"{LOOP}/experiments/latest", "read"),
    Route("GET", f"{LOOP}/experiments/plan", "read"),
    Route("POST", f"{LOOP}/experiments/stop", "admin", {"id": "s"}),
    Route("POST", f"{LOOP}/promotions", "admin", {"learner": "perceptron", "force": True, "id": "u"}),
    Route("GET", f"{LOOP}/promotions", "read"),
    Route("POST", f"{LOOP}/rank", "read", {"person": "p"}),
    Route("POST", f"{LOOP}/evaluations", "read", {"learners": ["perceptron"]}),
    Route("GET", f"{LOOP}/weights", "read"),
    Route("GET", f"{LOOP}/report", "read"),
    Route("GET", f"{LOOP}/health", "read"),
    Route("GET", f"{LOOP}/style?person=p", "read"),
    Route("POST", f"{LOOP}/style", "admin", {"person": "p", "always": "Be brief.", "id": "s"}),
    Route("GET", f"{LOOP}/standing", "read", status=422),  # of loops of choices alone
    Route("GET", f"{LOOP}/decisions/d/why?item=i0", "read"),
    Route("GET", f"{LOOP}/events?follow=false", "read"),
    Route("GET", f"{LOOP}/people/p", "read"),
    Route("POST", f"{LOOP}/forget", "admin", {"person": "p"}),
    Route("GET", "/metrics", "metrics"),
    Route("GET", "/v1/audit", "admin"),
    Route("GET", "/healthz", None),
    Route("GET", "/readyz", None),
    Route("GET", "/openapi.json", None),
    Route("GET", "/heedful.js", None),
]
OF_A_LOOP = [route for route in ROUTES if "{loop}" in route.path and route.scope is not None]


class Site(NamedTuple):
    """A server of three tenants, with keys."""

    url: str
    folder: Path
    keys: dict[str, str | None]
    told: list[str]
    """every answer that was given"""
    http: httpx.Client


def ask(site: Site, key: str | None, route: Route, loop: str = "cars", new: str = "new") -> httpx.Response:
    """What the holder of a key is answered."""
    headers = {} if key is None else {"authorization": key if " " in key else f"Bearer {key}"}
    path, content = route.path.replace("{loop}", loop), None
    if route.body is not ...:
        content = json.dumps(route.body).replace("{new}", new).replace("{key}", key or "")
        headers["content-type"] = "application/json"
    answer = site.http.request(route.method, site.url + path, content=content, headers=headers)
    site.told.append(answer.text + str(answer.headers.raw))
    return answer


def whole(answer: httpx.Response) -> tuple[Any, ...]:
    """All of an answer, but the time and whether the connection stays."""
    left_out = (b"date", b"connection", b"x-request-id")  # the time, what was asked for, and what each has of its own
    headers = [(name.lower(), value) for name, value in answer.headers.raw if name.lower() not in left_out]
    content = answer.text.replace(f',"request_id":"{answer.headers["x-request-id"]}"', "")
    return answer.status_code, answer.reason_phrase, sorted(headers), content


@pytest.fixture
def site(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[Site]:
    """main has cars and mine, acme has cars and theirs, globex has nothing."""
    caplog.set_level(logging.DEBUG)
    for theirs in ("httpx", "httpcore"):  # what the one who asks logs of itself is another matter
        caplog.set_level(logging.WARNING, logger=theirs)
    (tmp_path / "acme").mkdir()
    for path in ("cars", "mine", "acme/cars", "acme/theirs"):
        small_loop(tmp_path / f"{path}.heedful", control=0.0, exploration=0.0).close()
    made: dict[str, str | None] = {"none": None, "wrong": "hk_ab12cd34_" + "x" * 43}
    with closing(Keys(tmp_path)) as keys:
        for tenant in ("main", "acme", "globex"):
            made[tenant] = keys.create(tenant, tenant=tenant)[1]
            for scope in SCOPES:
                made[f"{tenant}-{scope}"] = keys.create(f"{tenant} {scope}", tenant=tenant, scopes=[scope])[1]
        gone, made["revoked"] = keys.create("gone", tenant="acme")
        keys.revoke(gone.prefix)
    good = str(made["acme"])
    made["cut"], made["longer"], made["basic"] = (
        good[:-1],
        good + "x",
        "Basic " + base64.b64encode(good.encode()).decode(),
    )
    made["mixed"] = good[:12] + str(made["main"])[12:]
    told: list[str] = []
    with served(tmp_path) as url, httpx.Client(timeout=20, verify=NO_TLS) as http:
        yield Site(url, tmp_path, made, told, http)
    # The text of a key is nowhere but with whoever holds it.
    texts = [
        key
        for name, key in made.items()
        if key is not None and name.partition("-")[0] in ("main", "acme", "globex", "revoked")
    ]
    secrets = [text[12:].encode() for text in texts]
    assert len(secrets) == 19
    for where, content in {**files(tmp_path), "log": caplog.text.encode(), "told": "\n".join(told).encode()}.items():
        for secret in secrets:
            assert secret not in content, where
            assert secret[:20] not in content, where


BAD = ("none", "wrong", "revoked", "cut", "longer", "basic", "mixed")


def test_the_routes_are_all_of_them(site: Site) -> None:
    described = httpx.get(f"{site.url}/openapi.json").json()["paths"]
    found = set()
    for path, operations in described.items():
        for method, operation in operations.items():
            scope = re.search(r"scope (\w+)", operation.get("description", ""))
            found.add((method.upper(), path, scope[1] if scope else None))
    wanted = {
        (route.method, re.sub(r"/new$", "/{item}", route.path).replace("/d/", "/{id}/").replace("/p", "/{person}")
         if route.path.endswith(("/p", "/new")) else
         f"{LOOP}/decisions/{{id}}/why" if "/why" in route.path else route.path.partition("?")[0], route.scope)
        for route in ROUTES
    }  # fmt: skip
    assert {(m, p.replace("/{person}eople", "/people"), s) for m, p, s in wanted} == found


@pytest.mark.slow
def test_every_key_at_every_route(site: Site) -> None:
    """The whole table: who may, may not, and who is nobody."""
    nobody = set()
    for name, key in site.keys.items():
        tenant, _, scope = name.partition("-")
        for route in ROUTES:
            answer = ask(site, key, route, "cars", f"new-{name}")
            where = (name, route.name, answer.text)
            if route.scope is None:
                assert answer.status_code == route.status, where
            elif name in BAD:
                assert answer.status_code == 401, where
                nobody.add(repr(whole(answer)))
            elif scope not in ("", route.scope):
                members = is_problem(said(answer), "no-scope")
                assert repr(route.scope) in members["detail"], where
                assert "www-authenticate" not in answer.headers
            elif "{loop}" in route.path and tenant == "globex":
                is_problem(said(answer), "not-found")
            elif scope == "":
                assert answer.status_code == route.status, where
            else:  # what it is about may not be there, as others were not let to make it, or forgotten
                assert answer.status_code in (route.status, 404, 409, 422), where
    assert len(nobody) == 1  # the same bytes, whatever was asked and whatever was wrong


def test_nobody_is_told_anything_at_any_path(site: Site) -> None:
    """Once there is a key everything but the open routes wants one: also what is not there, and other methods."""
    asked = [("GET", "/nothing"), ("GET", "/v1/loops/cars/nothing"), ("POST", "/v1/loops/cars/items")]
    asked += [
        ("GET", "/v1/loops/cars/decisions"),
        ("DELETE", "/v1/loops"),
        ("OPTIONS", "/v1/loops"),
        ("GET", "/v1/loops/a%2Fb"),
    ]
    wanted = whole(ask(site, None, ROUTES[0]))
    for method, path in asked:
        for key in (None, site.keys["wrong"], site.keys["revoked"]):
            assert whole(ask(site, key, Route(method, path, None))) == wanted, (method, path)
    for key in ("main", "globex-decide"):
        assert ask(site, site.keys[key], Route("GET", "/nothing", None)).status_code == 404


def test_a_page_sends_whoever_is_not_signed_in_to_the_same_place(site: Site) -> None:
    """Whether there is such a loop or not; a key in a header signs nobody in to a page."""
    for path in ("/", "/keys", "/loops/cars", "/loops/nothing", "/loops/cars/learned", "/loops/nothing/learned"):
        for key in (None, site.keys["wrong"], site.keys["revoked"], site.keys["main"]):
            answer = ask(site, key, Route("GET", path, None))
            assert answer.status_code == 303, (path, key)
            assert answer.headers["location"].partition("?")[0] == "/sign-in"
            assert not answer.content


def test_what_is_wrong_with_a_request_is_told_to_nobody_without_a_key(site: Site) -> None:
    wanted = whole(ask(site, None, ROUTES[0]))
    bodies = [b"{", b"x" * (9 * 2**20), b"\xc1"]
    for body, kind in itertools.product(bodies, ["application/json", "text/plain", FLOAT32]):
        for path in ("decisions", "feedback", "records"):
            for loop in ("cars", "nothing"):
                target = f"{site.url}/v1/loops/{loop}/{path}?x=1"
                try:
                    headers = {"content-type": kind, "idempotency-key": "", "connection": "close"}
                    answer = httpx.post(target, content=body, headers=headers, verify=NO_TLS)
                except httpx.TransportError:
                    assert len(body) > 2**20  # the server need not read it all
                    continue
                assert whole(answer) == wanted


@pytest.mark.slow
def test_a_loop_of_others_is_no_loop(site: Site) -> None:
    """Byte for byte but for the name that was asked for: one cannot tell whether others have a loop of that name."""
    others = [("main", "theirs"), ("acme", "mine"), ("globex", "cars"), ("globex", "mine")]
    for tenant, theirs in others:
        for route in OF_A_LOOP:
            for scope in ("", f"-{route.scope}", "-decide", "-admin"):
                key = site.keys[tenant + scope]
                names = theirs, "z" * len(theirs)
                answers = {repr(whole(ask(site, key, route, loop))).replace(loop, "NAME") for loop in names}
                assert len(answers) == 1, (tenant, route.name, scope)
                if scope in ("", f"-{route.scope}"):
                    assert ask(site, key, route, theirs).status_code == 404


@pytest.mark.slow
@given(loop=st.text(max_size=30), data=st.data())
@examples(30)
def test_any_name_at_all(loop: str, data: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    site = _shared(tmp_path_factory)
    loop = data.draw(
        st.sampled_from([loop, f"acme/{loop}", f"../{loop}", f"acme/theirs{loop}", f"{loop}/../acme/theirs"])
    )
    quoted = "".join(f"%{byte:02x}" for byte in loop.encode(errors="surrogatepass"))
    caller = Caller(site.url, site.keys["main"])
    with closing(caller):
        for method, path in (("GET", ""), ("GET", "/weights"), ("POST", "/decisions"), ("POST", "/forget")):
            answer = caller.send(method, f"/v1/loops/{quoted}{path}", b"{}" if method == "POST" else None)
            assert answer.status in (404, 405), (loop, answer)
        answer = caller.post("/v1/loops", {"name": loop.encode(errors="replace").decode()})
        if answer.status == 201:
            assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", loop)
        else:
            is_problem(answer, "bad-input" if answer.status == 422 else "exists", answer.value.get("field"))
    theirs = {path.name for path in (site.folder / "acme").iterdir()}
    assert theirs == {"theirs.heedful"}
    for path in site.folder.iterdir():
        assert path.name in ("acme", "server.db") or path.name.endswith(".heedful")
    assert {path.name for path in site.folder.parent.iterdir()} == {site.folder.name}


_SITES: list[Site] = []


def _shared(factory: pytest.TempPathFactory) -> Site:
    if not _SITES:
        folder = factory.mktemp("around") / "served"
        (folder / "acme").mkdir(parents=True)
        small_loop(folder / "acme" / "theirs.heedful").close()
        with closing(Keys(folder)) as keys:
            made: dict[str, str | None] = {"main": keys.create("main")[1]}
        server = served(folder)
        _SITES.append(Site(server.__enter__(), folder, made, [], httpx.Client(verify=NO_TLS)))
        _KEEP.append(server)
    return _SITES[0]


_KEEP: list[Any] = []


@pytest.fixture(scope="module", autouse=True)
def _ends() -> Iterator[None]:
    yield
    while _KEEP:
        _KEEP.pop().__exit__(None, None, None)
        _SITES.clear()


@pytest.mark.slow
def test_what_one_does_changes_nothing_for_another(site: Site) -> None:
    """The same names everywhere: cars, d, e, p."""
    acme = site.folder / "acme"
    before = files(acme)
    for name in ("main", "globex", *BAD):
        for route in ROUTES:
            ask(site, site.keys[name], route, "cars")
            ask(site, site.keys[name], route, "theirs")
    after = files(acme)
    assert after == before  # not a byte, not even opened
    with Loop.open(acme / "cars.heedful") as loop:
        assert loop.projection.log.counts() == {"loop": 1, "item": 12}
    with closing(Caller(site.url, site.keys["acme"])) as caller:
        assert caller.get("/v1/loops").value == {"loops": ["cars", "theirs"]}
        for route in ROUTES:
            assert ask(site, site.keys["acme"], route).status_code == route.status, route
        assert caller.get("/v1/loops").value == {"loops": ["cars", "new", "theirs"]}
        main = Caller(site.url, site.keys["main"])
        with closing(main):
            mine = main.get("/v1/loops/cars").value
            for _ in range(3):
                d = caller.post("/v1/loops/cars/decisions", {"person": "p"}).value
                caller.post("/v1/loops/cars/feedback", {"decision": d["id"], "better": "i7"})
            assert main.get("/v1/loops/cars").value == mine
            # The ids of others are no ids here.
            is_problem(main.post("/v1/loops/cars/feedback", {"decision": d["id"], "better": "i7"}), "rejected")
            is_problem(main.get(f"/v1/loops/cars/decisions/{d['id']}/why"), "not-found")


def test_a_tenant_without_a_folder_has_no_loops_until_it_makes_one(site: Site) -> None:
    with closing(Caller(site.url, site.keys["globex"])) as caller:
        assert caller.get("/v1/loops").value == {"loops": []}
        assert not (site.folder / "globex").exists()
        assert caller.post("/v1/loops", {"name": "cars", "items": rows(3, 2)}).status == 201
        assert caller.get("/v1/loops").value == {"loops": ["cars"]}
        assert (site.folder / "globex").stat().st_mode & 0o077 == 0
        assert caller.post("/v1/loops/cars/decisions", {}).value["seq"] == 5
    with closing(Caller(site.url, site.keys["main"])) as caller:
        assert caller.get("/v1/loops").value == {"loops": ["cars", "mine"]}


@pytest.mark.slow
def test_the_meters_of_one_say_nothing_of_another(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "EVERY", 0.0)
    for name in ("main", "acme", "none", "wrong"):
        for route in ROUTES:
            ask(site, site.keys[name], route)
    for who, words in {
        "acme": ("main", "globex", "mine"),
        "globex-metrics": ("main", "acme", "mine", "theirs"),
    }.items():
        text = ask(site, site.keys[who], Route("GET", "/metrics", "metrics")).text
        for word in words:
            assert f'"{word}"' not in text
        assert 'tenant=""' not in text
    everything = ask(site, site.keys["main"], Route("GET", "/metrics", "metrics")).text
    assert '"acme"' in everything


def test_a_key_in_the_wrong_place_is_not_told_again(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """Where somebody puts a key by mistake: the answer does not say it, and the log does not keep it."""
    key = str(site.keys["acme"])
    with closing(Caller(site.url, site.keys["main"])) as caller:
        answers: list[Said] = [caller.get(f"/v1/loops/{key}"), caller.get(f"/v1/loops?key={key}")]
        answers += [caller.get("/v1/loops", x_api_key=key), caller.get(f"/v1/loops/cars/weights?{key}=1")]
        answers += [caller.post("/v1/loops/cars/decisions", {key: 1}), caller.post("/v1/loops", {"name": f"{key}!"})]
        answers += [
            caller.get("/v1/loops/cars", authorization=f"Bearer x{key}"),
            caller.get("/v1/loops", authorization=f"Token {key}"),
        ]
    for answer in answers:
        assert key[12:] not in json.dumps(answer.value)
    assert key[12:] not in caplog.text
