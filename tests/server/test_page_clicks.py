"""Clicks that browsers report with a token for one decision: what they do, and that a token can do nothing else."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import re
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import httpx
import jwt
import pytest
from asking import NO_TLS, Said, is_problem, ok, said
from typer.testing import CliRunner

from heedful import Loop
from heedful.client import Client
from heedful.client.page_token import page_token
from heedful.server.auth import Authenticator
from heedful.server.context import Options
from heedful.server.keys import Keys
from heedful.server.main import served
from heedful.server.page_clicks import RATE, SIZE, check_origin, script
from heedful.server.page_tokens import CLOCKS, LONGEST
from heedful.server.routes import ROUTES
from heedful.storage import Place
from loops import small_loop
from processes import until

SHOP = "https://shop.example"
CLICKS = "/v1/loops/cars/clicks"
DOCS = Path(__file__).resolve().parents[2] / "docs"


class Shop(NamedTuple):
    """A server with loops, and the key of the pages' own server."""

    url: str
    folder: Path
    key: str
    keys: Keys
    http: httpx.Client

    def token(self, loop: str = "cars", decision: str = "d1", seconds: float = 60.0, **more: Any) -> str:
        """A token as a library of somebody else makes it."""
        claims = {"loop": loop, "decision": decision, "exp": int(time.time() + seconds), **more}
        return signed(self.key, claims)

    def click(self, token: Any, item: Any = "i3", decision: Any = "d1", path: str = CLICKS, **headers: str) -> Said:
        """What is answered to a click, as a browser's sendBeacon reports it."""
        body = json.dumps({"token": token, "decision": decision, "item": item})
        return self.send(body, path, **headers)

    def send(self, body: str | bytes, path: str = CLICKS, **headers: str) -> Said:
        sent = {"content-type": "text/plain;charset=UTF-8", "origin": SHOP}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        return said(self.http.post(self.url + path, content=body, headers={k: v for k, v in sent.items() if v}))

    def log(self) -> dict[str, int]:
        """How many events of each kind the loop has."""
        with Loop.open(self.folder / "cars.heedful") as loop:
            return dict(loop.projection.log.counts())


def signed(key: str, claims: dict[str, Any], algorithm: str = "HS256", **header: Any) -> str:
    """A token that PyJWT makes by a key."""
    return jwt.encode(claims, hashlib.sha256(key.encode()).digest(), algorithm, {"kid": key[:11], **header})


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    for name, late in (("cars", 3600.0), ("films", 0.001)):
        small_loop(tmp_path / f"{name}.heedful", control=0.0, exploration=0.0, late_after=late).close()
    with closing(Keys(tmp_path)) as keys:
        key = keys.create("shop", scopes=["decide", "feedback"])[1]
        with served(tmp_path, Options(origins=(SHOP,))) as url, httpx.Client(timeout=30, verify=NO_TLS) as http:
            with Client(url, key, timeout=20.0) as client:
                for name in ("cars", "films"):
                    for id in ("d1", "d2"):
                        client.loop(name).decide(id=id, person="ann", show=6)
            yield Shop(url, tmp_path, key, keys, http)


# ---------------------------------------------------------------------------- what a token is for


def test_a_click_counts_once_and_teaches(shop: Shop) -> None:
    with Client(shop.url, shop.key, timeout=20.0) as client:
        cars = client.loop("cars")
        before = cars.decide(id="b", person="bob").shown
        clicked = before[4]
        answers = [ok(shop.click(token, clicked)) for token in (cars.page_token("d1"), shop.token(), shop.token())]
        assert [each["status"] for each in answers] == ["applied", "duplicate", "duplicate"]
        assert answers[0]["learned"]
        assert len({each["event"] for each in answers}) == 1
        assert cars.decide(id="c", person="bob").shown.index(clicked) < 4
        assert ok(shop.click(shop.token(), before[2]))["status"] == "applied"  # another item is another click
        assert cars.undo(answers[0]["event"]).status == "applied"
    with Loop.open(shop.folder / "cars.heedful") as loop:
        assert loop.projection.log.counts()["feedback"] == 2


def test_a_click_that_comes_late_counts_and_is_told_as_late(shop: Shop) -> None:
    time.sleep(0.01)
    answers = [ok(shop.click(shop.token(loop=name), path=f"/v1/loops/{name}/clicks")) for name in ("cars", "films")]
    assert [(each["status"], each["late"]) for each in answers] == [("applied", False), ("applied", True)]
    metrics = httpx.get(f"{shop.url}/metrics", headers=_admin(shop), verify=NO_TLS).text
    assert 'heedful_events_total{kind="feedback",loop="films",outcome="late",tenant="main"} 1.0' in metrics


def test_tokens_of_the_longest_time_are_good(shop: Shop) -> None:
    for seconds, item in ((LONGEST, "i1"), (LONGEST + CLOCKS - 60, "i2"), (20.0, "i3")):
        claims = {"loop": "cars", "decision": "d1", "exp": time.time() + seconds}
        assert ok(shop.click(signed(shop.key, claims), item))["status"] == "applied"


def test_a_signer_is_known_at_once_and_until_its_key_ends(vault: Place) -> None:
    with closing(Keys(vault)) as keys:
        first = keys.create("first")[0]
        authenticator = Authenticator(keys, every=0.0)
        key, text = keys.create("shop", scopes=["feedback"])
        signer = until(lambda: authenticator.signer(key.prefix))
        assert signer.digest == hashlib.sha256(text.encode()).digest()
        assert (signer.caller.prefix, signer.caller.scopes) == (key.prefix, {"feedback"})
        assert authenticator.signer("hk_nobody12") is None
        keys.revoke(key.prefix)
        until(lambda: authenticator.signer(key.prefix) is None)
        assert authenticator.signer(first.prefix) is not None


def test_the_client_makes_what_a_library_reads() -> None:
    key = "hk_ab12cd34_" + "x" * 43
    token = page_token(key, "cars", "é/1", 3600)
    secret = hashlib.sha256(key.encode()).digest()
    claims = jwt.decode(token, secret, ["HS256"], options={"require": ["exp"]})
    assert claims | {"exp": 0} == {"loop": "cars", "decision": "é/1", "exp": 0}
    assert abs(claims["exp"] - time.time() - 3600) < 60
    assert jwt.get_unverified_header(token) == {"alg": "HS256", "typ": "JWT", "kid": "hk_ab12cd34"}
    assert key not in token
    for seconds in (0.5, LONGEST + 1, float("nan"), "60"):
        with pytest.raises(ValueError, match=r"^seconds: expected a number from 1 to 604800, got "):
            page_token(key, "cars", "d1", seconds)  # type: ignore[arg-type]


def test_a_client_without_a_key_signs_nothing() -> None:
    with Client() as client, pytest.raises(ValueError, match=r"^key: expected a client with a key"):
        client.loop("cars").page_token("d1")


def test_the_longest_names_fit(shop: Shop) -> None:
    """200 characters of four bytes each, as text that JSON escapes."""
    name = "𝔡" * 200
    with Client(shop.url, shop.key, timeout=20.0) as client:
        d = client.loop("cars").decide([{"id": name, "f0": 1.0}, {"id": "b", "f0": 2.0}], id=name)
        body = json.dumps({"token": client.loop("cars").page_token(d), "decision": name, "item": name})
    assert 4000 < len(body) < SIZE
    assert ok(shop.send(body))["status"] == "applied"


# ---------------------------------------------------------------------------- what it is not for


def changed(token: str) -> Iterator[str]:
    """A token with one of its characters changed, at each place."""
    for i, letter in enumerate(token):
        yield token[:i] + ("A" if letter != "A" else "B") + token[i + 1 :]


@pytest.mark.slow
def test_a_token_is_refused_by_what_is_wrong_with_it(shop: Shop) -> None:
    read = shop.keys.create("reader", scopes=["read"])[1]
    gone, revoked = shop.keys.create("gone")
    shop.keys.revoke(gone.prefix)
    now = time.time()
    good = {"loop": "cars", "decision": "d1", "exp": int(now + 60)}
    none = jwt.encode(good, None, "none", {"kid": shop.key[:11]})
    forged = "another text|a key of this server"
    wrong: list[tuple[Any, str, str]] = [
        (shop.token(decision="d2"), "decision", "expected 'd2', for which the token was made, got 'd1'"),
        (shop.token(loop="films"), "loop", "expected 'films', for which the token was made, got 'cars'"),
        (shop.token(seconds=-1), "token", "expected one that has not ended, got one that ended at 20"),
        (signed(shop.key, good | {"exp": -1e30}), "token", "got one that ended at -1e\\+30"),
        (
            shop.token(seconds=LONGEST + CLOCKS + 60),
            "token",
            "expected one that ends within 7 days, got one that ends at 20",
        ),
        (signed(shop.key, good | {"exp": 1e300}), "token", "got one that ends at 1e\\+300"),
        (signed(read, good), "token", "signed with a key that may 'feedback', got one whose key may not"),
        (signed(revoked, good), "token", "its key is unknown, revoked or expired"),
        (signed("hk_ab12cd34_" + "x" * 43, good), "token", "its key is unknown, revoked or expired"),
        (signed(read, good, kid=shop.key[:11]), "token", "this one was changed, or signed with something else"),
        (good_of("HS512"), "token", '"alg" HS256'),
        (none, "token", "expected a JSON Web Token"),
        (none + "A", "token", '"alg" HS256'),
        (signed(shop.key, good, crit=["b64"]), "token", "expected a JSON Web Token"),
        (signed(shop.key, good | {"nbf": 0}), "token", "expected a JSON Web Token"),
        (signed(shop.key, good | {"aud": "x"}), "token", "expected a JSON Web Token"),
        (signed(shop.key, {"decision": "d1", "exp": now + 60}), "token", "expected a JSON Web Token"),
        (signed(shop.key, {"loop": "cars", "decision": "d1"}), "token", "expected a JSON Web Token"),
        (shop.key, "token", "three parts"),
        ("", "token", "three parts"),
        ("a" * 5000, "token", "three parts"),
    ]
    before = shop.log()
    for token, field, told in wrong:
        found = is_problem(shop.click(token), "bad-token", field)
        assert found["detail"].startswith(f"{field}: "), found
        is_problem_like(found, told)
        assert token == "" or token[-43:] not in json.dumps(found)
    for token in changed(shop.token()):
        found = is_problem(shop.click(token), "bad-token", "token")
        is_problem_like(found, f"{forged}|JSON Web Token")
    assert shop.log() == before


def good_of(algorithm: str) -> str:
    return jwt.encode({"loop": "cars", "decision": "d1", "exp": 2e9}, b"x" * 64, algorithm, {"kid": "hk_ab12cd34"})


def is_problem_like(found: dict[str, Any], told: str) -> None:
    assert re.search(told, found["detail"]), (told, found)


def test_a_library_may_say_when_it_made_a_token(shop: Shop) -> None:
    assert ok(shop.click(shop.token(iat=int(time.time()))))["status"] == "applied"


def test_a_token_ends_with_its_key_and_its_scope(shop: Shop) -> None:
    token = shop.token()
    assert ok(shop.click(token, "i1"))["status"] == "applied"
    shop.keys.set_scopes(shop.key[:11], ["decide"])
    until(lambda: shop.click(token, "i2").status == 403)
    shop.keys.set_scopes(shop.key[:11], ["feedback"])
    until(lambda: shop.click(token, "i2").status == 200)
    shop.keys.revoke(shop.key[:11])
    until(lambda: shop.click(token, "i3").status == 403)


def test_a_token_opens_the_loops_of_its_tenant_alone(shop: Shop) -> None:
    other = shop.keys.create("acme", tenant="acme")[1]
    is_problem(shop.click(signed(other, {"loop": "cars", "decision": "d1", "exp": time.time() + 60})), "not-found")


def test_a_token_is_no_key(shop: Shop) -> None:
    """At every route that takes one: as a bearer's token, in the query, and for other decisions."""
    token, before = shop.token(), shop.log()
    asked = [route for route in ROUTES if route.scope is not None]
    assert len(asked) > 30
    for route in asked:
        path = route.path.replace("{loop}", "cars").replace("{item:path}", "i0")
        path = path.replace("{id:path}", "d1").replace("{person:path}", "ann")
        assert "{" not in path
        body = {"decision": "d1", "token": token, "event": "e", "clicks": ["i3"]}
        for headers, query in (({"authorization": f"Bearer {token}"}, ""), ({}, f"?token={token}")):
            content = None if route.method in ("GET", "DELETE") else json.dumps(body)
            kind = {"content-type": "application/json", "origin": SHOP}
            url = f"{shop.url}{path}{query}"
            answer = shop.http.request(route.method, url, content=content, headers=kind | headers)
            is_problem(said(answer), "no-key")
            assert "access-control-allow-origin" not in answer.headers
    assert shop.log() == before


def test_a_click_is_refused_that_does_not_fit_what_was_shown(shop: Shop) -> None:
    for item in ("i99", "none of these"):
        assert "expected items that were shown" in is_problem(shop.click(shop.token(), item), "rejected")["detail"]
    token = shop.token(decision="nobody-knows")
    told = is_problem(shop.click(token, decision="nobody-knows"), "rejected")["detail"]
    assert told == "decision nobody-knows is not in the log"
    with closing(Client(shop.url, shop.keys.create("admin")[1], timeout=20.0)) as admin:
        admin.loop("cars").forget("ann")
    assert "forgotten" in is_problem(shop.click(shop.token()), "rejected")["detail"]


def test_what_is_no_click(shop: Shop) -> None:
    token = shop.token()
    whole = {"token": token, "decision": "d1", "item": "i3"}
    for name in whole:
        for value in (None, 1, [], {"a": 1}):
            is_problem(shop.send(json.dumps(whole | {name: value})), "bad-input", name)
        is_problem(shop.send(json.dumps({k: v for k, v in whole.items() if k != name})), "bad-input", name)
    for more in ("id", "time", "clicks", "rating", "thumb"):
        is_problem(shop.send(json.dumps(whole | {more: "x"})), "bad-input", "body")
    for name in ("decision", "item"):
        for value in ("", "x" * 201, "a\0b"):
            is_problem(shop.send(json.dumps(whole | {name: value})), "bad-input", name)
    for body in ("", "{", "[]", "null", "token=x", "\ud800".encode("utf-8", "surrogatepass")):
        assert shop.send(body).status in (400, 422)
    is_problem(shop.send(json.dumps(whole) + " " * SIZE), "too-large", "body")
    for kind in ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/msgpack"):
        is_problem(shop.send(json.dumps(whole), content_type=kind), "unsupported", "Content-Type")
    for kind in ("text/plain", "application/json", ""):
        assert ok(shop.send(json.dumps(whole), content_type=kind))["status"] in ("applied", "duplicate")


# ---------------------------------------------------------------------------- whose pages


def test_only_pages_of_origins_that_were_named_may_report(shop: Shop) -> None:
    here = shop.url.partition("://")[2]
    token = shop.token()
    for origin in (SHOP, shop.url, f"https://{here}"):
        answer = shop.click(token, origin=origin)
        assert ok(answer)["status"] in ("applied", "duplicate")
        assert answer.headers["access-control-allow-origin"] == origin
        assert answer.headers["vary"] == "Origin"
        refused = shop.click("x", origin=origin)  # a page may read what is wrong
        assert refused.headers["access-control-allow-origin"] == origin
        assert "access-control-allow-credentials" not in {**answer.headers, **refused.headers}
    for origin in (
        "null", "https://evil.example", "http://shop.example", "https://shop.example:444", "https://shop.example.evil",
        "https://evil.shop.example", "file://", "http://127.0.0.1:1",
    ):  # fmt: skip
        answer = shop.click(token, origin=origin)
        told = is_problem(answer, "wrong-origin", "Origin")["detail"]
        assert "heedful serve --origin" in told
        assert ("Referrer-Policy" in told) == (origin == "null")
        assert "access-control-allow-origin" not in answer.headers
    assert ok(shop.click(token, origin=""))["status"] == "duplicate"  # no page sent it


@pytest.mark.parametrize(
    "good", ["https://shop.example", "http://localhost:8000", "https://[::1]:8443", "http://a-b.c"]
)
def test_an_origin(good: str) -> None:
    assert check_origin(good) == good


@pytest.mark.parametrize(
    "bad", ["", "*", "null", "shop.example", "https://", "https://shop.example/", "https://Shop.example", "ftp://a.b",
            "https://shop.example/page", "https://a.b:", "https://u@a.b", "https://a.b, https://c.d", " https://a.b"],
)  # fmt: skip
def test_no_origin(bad: str, tmp_path: Path) -> None:
    from heedful.cli import app

    with pytest.raises(ValueError, match=r"^origin: expected the origin of your pages, such as https://shop.example"):
        check_origin(bad)
    result = CliRunner().invoke(app, ["serve", str(tmp_path), "--origin", bad])
    assert (result.exit_code, result.stderr.count("origin: expected")) == (2, 1)


# ---------------------------------------------------------------------------- how many


def test_clicks_on_one_decision_have_a_rate(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.server.page_clicks.time", SimpleNamespace(**vars(time) | {"monotonic": lambda: 0.0}))
    token = shop.token()
    for _ in range(int(RATE[1])):
        assert ok(shop.click(token))
    answer = shop.click(token)
    assert is_problem(answer, "too-many")["detail"].startswith("expected at most 2 requests per second")
    assert int(answer.headers["retry-after"]) >= 1
    assert ok(shop.click(shop.token(decision="d2"), decision="d2"))["status"] == "applied"
    for _ in range(int(RATE[1])):  # who has no good token takes nothing of it
        shop.click("x", decision="d2")
    assert ok(shop.click(shop.token(decision="d2"), "i1", decision="d2"))["status"] == "applied"


def test_clicks_of_pages_take_nothing_of_the_rate_of_their_key(shop: Shop) -> None:
    slow = shop.keys.create("slow", scopes=["decide", "feedback"], rate=0.001)[1]
    headers = {"authorization": f"Bearer {slow}"}
    codes = []
    for i in range(12):
        claims = {"loop": "cars", "decision": f"none-{i}", "exp": time.time() + 60}
        codes.append(shop.click(signed(slow, claims), decision=f"none-{i}").status)
    assert codes == [409] * 10 + [429] * 2  # the key's ten at once
    with httpx.Client(headers=headers, verify=NO_TLS) as http:
        assert http.post(f"{shop.url}/v1/loops/cars/decisions", json={}).status_code == 200


# ---------------------------------------------------------------------------- what is kept of it


def test_a_token_is_neither_kept_nor_told(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for theirs in ("httpx", "httpcore"):
        caplog.set_level(logging.WARNING, logger=theirs)
    token = shop.token()
    answers = [shop.click(token), shop.click(token), shop.click(token, "i99"), shop.click(token[:-1])]
    answers += [shop.click(token, item=token), shop.click(token, decision=token), shop.send(json.dumps({token: 1}))]
    secret = token.rpartition(".")[2]
    texts = [json.dumps(each.value) + str(each.headers) for each in answers] + [caplog.text]
    texts += [httpx.get(f"{shop.url}/metrics", headers=_admin(shop), verify=NO_TLS).text]
    for path in shop.folder.rglob("*"):
        with suppress(IsADirectoryError):
            texts.append(path.read_bytes().decode("latin-1"))
    assert "post /v1/loops/{loop}/clicks" in texts[8].lower() or any("clicks" in text for text in texts)
    assert not [text for text in texts if secret[:20] in text]


def _admin(shop: Shop) -> dict[str, str]:
    return {"authorization": f"Bearer {shop.keys.create('ops', scopes=['read', 'admin', 'metrics'])[1]}"}


def test_the_digest_in_the_database_signs(shop: Shop) -> None:
    """What decision 34 says it costs: who reads server.db can make tokens, for clicks on decisions that they know."""
    [key] = [each for each in shop.keys.all() if each.prefix == shop.key[:11]]
    head, claims = ({"alg": "HS256", "kid": key.prefix}, {"loop": "cars", "decision": "d1", "exp": time.time() + 9})
    parts = [base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=") for each in (head, claims)]
    mac = hmac.digest(key.digest, b".".join(parts), "sha256")
    token = b".".join([*parts, base64.urlsafe_b64encode(mac).rstrip(b"=")]).decode()
    assert ok(shop.click(token))["status"] == "applied"


# ---------------------------------------------------------------------------- the script


def test_the_script_is_small_and_any_page_may_load_it(shop: Shop) -> None:
    answer = httpx.get(f"{shop.url}/heedful.js", headers={"origin": SHOP}, verify=NO_TLS)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert answer.headers["cross-origin-resource-policy"] == "cross-origin"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.content == script()[0]
    assert len(answer.content) < 2048
    for word in ("eval", "innerHTML", "document.write", "Function(", "localStorage", "cookie", "import"):
        assert word not in answer.text
    again = httpx.get(f"{shop.url}/heedful.js", headers={"if-none-match": answer.headers["etag"]}, verify=NO_TLS)
    assert (again.status_code, again.content) == (304, b"")


def test_the_pages_say_how_large_and_how_many() -> None:
    browsers, http = ((DOCS / name).read_text(encoding="utf-8") for name in ("browsers.md", "http.md"))
    assert f"A script of {len(script()[0]):,} bytes" in browsers
    assert f"429 beyond {RATE[0]:g} a second ({RATE[1]:g} at once) for a decision" in browsers
    assert f"`application/json`, of {SIZE // 2**10} KiB at most." in http
