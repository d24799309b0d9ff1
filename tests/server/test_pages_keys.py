"""The page of keys: making them, seeing them once, revoking them; and who may."""

from __future__ import annotations

import logging
from contextlib import closing
from pathlib import Path
from shlex import quote

import httpx
import pytest
from browsing import Visitor, words

from heedful.server.context import Options
from heedful.server.keys import SCOPES, SHAPE, Keys
from heedful.server.main import served
from processes import until

BOTH = {"scope-read": "yes", "scope-admin": "yes"}
"""What a first key has to be allowed."""


def loops(visitor: Visitor, key: str) -> int:
    """What a program with that key is answered."""
    return httpx.get(f"{visitor.url}/v1/loops", headers={"authorization": f"Bearer {key}"}).status_code


def test_the_first_key_is_shown_once_and_shuts_the_gate(
    visitor: Visitor, keys: Keys, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    page = visitor.get("/keys")
    assert page.status == 200
    assert "The first key changes that for good." in words(page.one("main"))
    form = page.fields("/keys")
    assert form == {"name": "", "rate": "", **{f"scope-{scope}": "yes" for scope in SCOPES}}
    made = visitor.post("/keys", form | {"name": "me"})
    assert "This browser is signed in with it" in words(made.one("main"))
    secret = made.at("secret")
    assert made.status == 200
    assert made.headers["cache-control"] == "no-store"
    assert SHAPE.fullmatch(secret)
    assert [key.name for key in keys.all()] == ["me"]
    assert loops(visitor, secret) == 200
    with closing(Visitor(visitor.url)) as another:
        assert another.get("/keys").headers["location"] == "/sign-in?next=%2Fkeys"
    page = visitor.get("/keys")
    assert secret not in page.html
    assert "yours" in words(page.one(f"tr[@data-key='{secret[:11]}']"))
    assert secret not in caplog.text
    assert not any(secret.encode() in each.read_bytes() for each in tmp_path.rglob("*") if each.is_file())


@pytest.mark.parametrize("passing", [False, True])
def test_keys_of_a_folder_that_goes_are_said_to_go_with_it(tmp_path: Path, passing: bool) -> None:
    with served(tmp_path, Options(passing=passing)) as url, closing(Visitor(url)) as visitor:
        assert ("its keys go with it" in visitor.get("/keys").html) == passing


def test_a_key_may_what_was_ticked_and_as_often_as_was_said(visitor: Visitor, keys: Keys) -> None:
    _, mine = keys.create("me")
    visitor.sign_in(mine)
    assert visitor.get("/keys").fields("/keys").keys() == {"name", "scope-decide", "scope-feedback", "rate"}
    made = visitor.post("/keys", {"name": " <b>shop</b> ", "scope-decide": "yes", "rate": "2.5"})
    assert made.status == 200
    [key] = [key for key in keys.all() if key.name == "<b>shop</b>"]
    assert (key.tenant, key.scopes, key.rate) == ("main", {"decide"}, 2.5)
    assert "<b>shop</b>" not in made.html
    row = words(visitor.get("/keys").one(f"tr[@data-key='{key.prefix}']"))
    assert "<b>shop</b> decide 2.5" in row


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"name": "x"}, "scopes: expected read and admin too, as the first key has to make the others"),
        ({"name": "x", "scope-admin": "yes"}, "scopes: expected read and admin too"),
        ({"name": ""} | BOTH, "name: expected"),
        ({"name": "x", "rate": "fast"} | BOTH, "rate: expected a number of requests a second, or nothing"),
        ({"name": "x", "rate": "0"} | BOTH, "rate: expected requests per second"),
    ],
)
def test_what_is_wrong_is_said_beside_the_form_that_keeps_the_rest(
    visitor: Visitor, keys: Keys, form: dict[str, str], told: str
) -> None:
    page = visitor.post("/keys", form)
    assert page.status == 422
    assert words(page.one("*[@role='alert']")).startswith(told)
    assert page.fields("/keys") == {"rate": ""} | form
    assert keys.all() == []


def test_a_revoked_key_is_refused_and_its_sessions_end(visitor: Visitor, keys: Keys) -> None:
    mine, text = keys.create("me")
    other, others = keys.create("other")
    visitor.sign_in(text)
    with closing(Visitor(visitor.url)) as they:
        they.sign_in(others)
        assert they.get("/keys").status == 200
        page = visitor.get("/keys")
        assert page.fields("/keys/revoke") == {"prefix": mine.prefix}
        done = visitor.post("/keys/revoke", {"prefix": other.prefix})
        assert (done.status, done.headers["location"]) == (303, "/keys")
        row = visitor.get("/keys").one(f"tr[@data-key='{other.prefix}']")
        assert "Revoked" in words(row)
        assert row.find(".//form") is None
        until(lambda: loops(visitor, others) == 401)
        until(lambda: they.get("/keys").status == 303)
    warned = "No other key may admin."
    assert warned in words(visitor.get("/keys").one(f"tr[@data-key='{mine.prefix}']"))
    helper, _ = keys.create("helper", scopes=["admin"])
    assert warned not in visitor.get("/keys").html
    keys.revoke(helper.prefix)
    assert warned in visitor.get("/keys").html
    done = visitor.post("/keys/revoke", {"prefix": mine.prefix})
    assert (done.status, done.headers["location"]) == (303, "/sign-in")
    assert visitor.http.cookies == {}
    assert visitor.get("/keys").status == 303


def test_who_may_not_is_told_what_to_do_about_it(visitor: Visitor, keys: Keys, tmp_path: Path) -> None:
    made, text = keys.create("asker", scopes=["decide", "feedback"])
    visitor.sign_in(text)
    page = visitor.get("/")
    assert page.status == 403
    assert "This takes a key that may read; yours may decide and feedback." in words(page.one("main"))
    scopes = "--scope decide --scope feedback --scope read"
    assert words(page.one("pre")) == f"heedful keys scopes {made.prefix} {scopes} --folder {quote(str(tmp_path))}"
    assert "/sign-out" in [form.attrib["action"] for form in page.all("form")]
    assert ("/sign-in", "Sign in with another key") in [(a.attrib["href"], words(a)) for a in page.all("a")]
    assert "All loops" not in page.html


@pytest.mark.parametrize(
    "headers",
    [{}, {"host": "shop.example"}, {"x_forwarded_for": "192.0.2.1"}, {"forwarded": "for=192.0.2.1"}, {"via": "1.1 a"}],
)
def test_the_folder_is_named_to_who_is_on_this_machine_alone(
    visitor: Visitor, keys: Keys, tmp_path: Path, headers: dict[str, str]
) -> None:
    _, text = keys.create("asker", scopes=["decide"])
    told = quote(str(tmp_path)) if not headers else "DIR"
    assert words(visitor.get("/sign-in", **headers).one("pre")) == f"heedful keys create NAME --folder {told}"
    visitor.sign_in(text)
    page = visitor.get("/", **headers)
    assert page.status == 403
    assert words(page.one("pre")).endswith(f" --folder {told}")
    assert (str(tmp_path) in page.html) == (not headers)


def test_keys_of_other_tenants_are_neither_seen_nor_revoked(visitor: Visitor, keys: Keys) -> None:
    _, mine = keys.create("me")
    theirs, others = keys.create("theirs", tenant="acme")
    visitor.sign_in(mine)
    assert len(visitor.get("/keys").all("tr[@data-key]")) == 1
    for prefix in (theirs.prefix, "hk_nothing0", "", others):
        refused = visitor.post("/keys/revoke", {"prefix": prefix})
        assert refused.status == 404
        assert others not in refused.html
    assert [key.revoked for key in keys.all()] == [None, None]
    with closing(Visitor(visitor.url)) as they:
        they.sign_in(others)
        they.post("/keys", {"name": "more", "scope-read": "yes"})
    assert [key.tenant for key in keys.all()] == ["main", "acme", "acme"]


def test_nobody_makes_a_key_that_may_more_than_their_own(visitor: Visitor, keys: Keys) -> None:
    _, admin = keys.create("admin", scopes=["admin"])
    _, reader = keys.create("reader", scopes=["read"])
    visitor.sign_in(admin)
    page = visitor.get("/keys")
    assert [box.attrib["name"] for box in page.all("input[@type='checkbox']")] == ["scope-admin"]
    refused = visitor.post("/keys", {"name": "more", "scope-admin": "yes", "scope-read": "yes"})
    assert refused.status == 422
    assert words(refused.one("*[@role='alert']")) == "scopes: expected what your own key may, got read too"
    visitor.sign_in(reader)
    assert visitor.get("/keys").status == 403
    assert visitor.post("/keys", {"name": "more", "scope-read": "yes"}).status == 403
    assert visitor.post("/keys/revoke", {"prefix": reader[:11]}).status == 403
    assert "/keys" not in [link.attrib["href"] for link in visitor.get("/").all("a")]
    assert len(keys.all()) == 2


def test_what_comes_twice_is_refused(visitor: Visitor, keys: Keys) -> None:
    refused = visitor.http.post(
        "/keys",
        content="name=a&name=b&scope-read=yes",
        headers={"origin": visitor.url, "content-type": "application/x-www-form-urlencoded"},
    )
    assert refused.status_code == 422
    assert keys.all() == []
