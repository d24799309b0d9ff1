"""The gate: who is let in, with what, how often; and how soon it knows what changed."""

from __future__ import annotations

import base64
import gc
import logging
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.core.times import micros_of
from heedful.server.auth import Authenticator, CachedKey, Caller
from heedful.server.keys import SCOPES, Key, Keys
from heedful.server.problems import Problem


class Clock:
    """A clock that stands still until it is told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def opened(tmp_path: Path, clock: Clock) -> Iterator[Callable[..., Authenticator]]:
    """Makes gates, each with a connection of its own."""
    held = []

    def gate(**options: Any) -> Authenticator:
        held.append(Keys(tmp_path))
        return Authenticator(held[-1], clock=clock, **options)

    yield gate
    for each in held:
        each.close()


def bearer(text: str) -> bytes:
    return b"Bearer " + text.encode()


def admit(gate: Authenticator, text: str, scope: str | None = "read") -> Caller:
    return gate.admit(bearer(text), b"api.example.com", b"https://shop.example.com", scope)


def refused(gate: Authenticator, *given: Any) -> Problem:
    """The problem that a request gets."""
    with pytest.raises(Problem) as error:
        gate.admit(*given)
    return error.value


def kind(gate: Authenticator, text: str, scope: str | None = "read") -> str:
    """What becomes of a key: "in", or the kind of the problem."""
    try:
        admit(gate, text, scope)
    except Problem as problem:
        return problem.kind
    return "in"


# ---------------------------------------------------------------------------- good keys


def test_a_good_key_is_let_in_from_anywhere(keys: Keys, opened: Callable[..., Authenticator]) -> None:
    key, text = keys.create("ci", tenant="acme", scopes=["read", "decide"])
    gate = opened()
    for host, origin in ((None, None), (b"evil.com", b"null"), (b"localhost", b"https://a.b")):
        for scheme in (b"Bearer", b"bearer", b"BEARER", b"bEaReR"):
            for scope in ("read", "decide", None):
                caller = gate.admit(scheme + b" " + text.encode(), host, origin, scope)
                assert caller == Caller("acme", frozenset({"read", "decide"}), key.prefix)


@pytest.mark.parametrize("scope", SCOPES)
def test_a_scope_is_no_other(keys: Keys, opened: Callable[..., Authenticator], scope: str) -> None:
    key, text = keys.create("ci", scopes=[scope])
    gate = opened()
    assert admit(gate, text, scope).scopes == {scope}
    assert admit(gate, text, None).scopes == {scope}
    for other in set(SCOPES) - {scope}:
        problem = refused(gate, bearer(text), None, None, other)
        assert (problem.kind, problem.status, problem.headers) == ("no-scope", 403, {})
        told = f"expected a key that may {other!r}, got one that may: {scope}; "
        assert problem.members["detail"] == f"{told}heedful keys scopes {key.prefix} sets what it may"


# ---------------------------------------------------------------------------- all other keys


def test_every_key_that_is_not_good_gets_the_same_bytes(keys: Keys, opened: Callable[..., Authenticator]) -> None:
    key, text = keys.create("ci")
    (gone, revoked), (_, other) = keys.create("gone"), keys.create("other")
    keys.revoke(gone.prefix)
    gate = opened()
    good = text.encode()
    wrong: list[bytes | None] = [None, b"", b"Bearer", b"Bearer ", b" ", good, b"Bearer\t" + good, b"Bearer  " + good]
    wrong += [b" Bearer " + good, b"Bearer " + good + b" ", b"Bearer " + good + b"\0", b"Bearer " + good + b"\n"]
    wrong += [b"Basic " + base64.b64encode(b"ci:" + good), b"Token  " + good, b"Digest " + good, b"Bearer:" + good]
    wrong += [b"Bearer " + good[:-1], b"Bearer " + good[:-1] + (b"A" if good[-1:] != b"A" else b"B")]
    wrong += [b"Bearer " + good.upper(), b"Bearer " + good.swapcase(), b"Bearer HK" + good[2:]]
    wrong += [b"Bearer " + good[:12] + other.encode()[12:], b"Bearer " + other.encode()[:12] + good[12:]]
    wrong += [bearer(revoked), b"Bearer " + key.digest, b"Bearer " + key.digest.hex().encode(), b"Bearer " + good * 2]
    wrong += [b"Bearer " + good + b", Bearer " + good, b"\xff" * 62, b"\0" * 62, b"Bearer hk_" + b"\xe9" * 52]
    wrong += [b"Bearer hk_" + b"0" * 8 + b"_" + b"A" * 43, b"Bearer " + key.prefix.encode(), b"x" * 100_000]
    seen = set()
    for header in wrong:
        for scope in (None, *SCOPES):
            problem = refused(gate, header, b"localhost", None, scope)
            seen.add((problem.kind, problem.status, problem.body, tuple(problem.headers.items())))
    [(name, status, body, headers)] = seen
    assert (name, status, headers) == ("no-key", 401, (("WWW-Authenticate", "Bearer"),))
    assert b'"status":401' in body
    assert kind(gate, text) == "in"


@given(st.binary(max_size=80), st.booleans())
def test_nothing_else_is_a_key(tmp_path_factory: pytest.TempPathFactory, header: bytes, padded: bool) -> None:
    gate = shared_gate(tmp_path_factory)
    given = b"Bearer hk_" + header[:52].ljust(52, b"x") if padded else header
    assert refused(gate, given, b"localhost", None, None).kind == "no-key"


_SHARED: list[Authenticator] = []


def shared_gate(factory: pytest.TempPathFactory) -> Authenticator:
    if not _SHARED:
        keys = Keys(factory.mktemp("shared"))
        keys.create("ci")
        _SHARED.append(Authenticator(keys))
    return _SHARED[0]


@pytest.mark.slow
def test_the_text_of_a_key_is_kept_nowhere(
    keys: Keys, tmp_path: Path, opened: Callable[..., Authenticator], clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    _, text = keys.create("ci", scopes=["read"], rate=1)
    (gone, revoked) = keys.create("gone")
    gate = opened()
    keys.revoke(gone.prefix)
    clock.now += 1
    told, kinds = [], set()
    for each in (text, revoked):
        for scope in ["read", "admin"] * 8:
            try:
                told.append(repr(admit(gate, each, scope)))
            except Problem as problem:
                kinds.add(problem.kind)
                told += [str(problem), repr(problem), str(problem.members), str(problem.headers)]
                told.append(problem.body.decode())
    assert kinds == {"no-scope", "too-many", "no-key"}
    sql(tmp_path, "DROP TABLE keys")
    gate.refresh()
    told += [repr(gate), str(vars(gate)), *map(repr, gate._entries.values()), caplog.text]
    assert "server.db" in caplog.text
    # By type: to ask a weak proxy for its class is to ask what is gone.
    mine = [
        each for each in gc.get_objects() if issubclass(type(each), CachedKey | Authenticator | Key | Caller | Keys)
    ]
    assert mine
    for secret in (text[12:], revoked[12:], text[12:33], revoked[34:]):
        assert not any(secret in each for each in told)
        for each in mine:
            kept = [getattr(each, slot) for slot in each.__slots__] if isinstance(each, CachedKey) else vars_of(each)
            assert not any(secret in repr(value) or secret.encode().hex() in repr(value) for value in kept)


def vars_of(held: object) -> list[Any]:
    return list(held) if isinstance(held, tuple) else list(vars(held).values())


def sql(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / "server.db", isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


# ---------------------------------------------------------------------------- how soon


def test_a_revoked_key_stops_within_every(keys: Keys, opened: Callable[..., Authenticator], clock: Clock) -> None:
    (key, text), (_, other) = keys.create("ci"), keys.create("other")
    gate = opened(every=0.5)
    assert kind(gate, text) == "in"
    keys.revoke(key.prefix)
    clock.now += 0.5
    assert (kind(gate, text), kind(gate, other)) == ("no-key", "in")


@pytest.mark.slow
def test_a_key_that_another_process_revokes_stops_within_half_a_second(
    keys: Keys, tmp_path: Path, opened: Callable[..., Authenticator], clock: Clock
) -> None:
    key, text = keys.create("ci")
    gate = opened()
    assert kind(gate, text) == "in"
    program = "import sys; from pathlib import Path; from heedful.server.keys import Keys\n"
    program += "Keys(Path(sys.argv[1])).revoke(sys.argv[2])"
    subprocess.run([sys.executable, "-c", program, str(tmp_path), key.prefix], check=True)
    assert kind(gate, text) == "in"  # by the clock of the gate no time has gone by
    clock.now += 0.5
    assert kind(gate, text) == "no-key"


def test_a_new_key_is_good_at_once(keys: Keys, opened: Callable[..., Authenticator], clock: Clock) -> None:
    keys.create("first")
    gate = opened()
    for i in range(5):  # the clock stands still
        assert kind(gate, "hk_ab12cd34_" + "x" * 43) == "no-key"
        _, text = keys.create(f"k{i}")
        assert kind(gate, text) == "in"


def test_a_new_key_is_good_within_a_tenth_of_a_second_where_the_clock_of_the_disk_is_coarse(
    keys: Keys, opened: Callable[..., Authenticator], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys.create("first")
    seen = keys.trace()
    monkeypatch.setattr(Keys, "trace", lambda self: seen)
    gate = opened(every=60.0)
    assert kind(gate, "hk_ab12cd34_" + "x" * 43) == "no-key"
    _, text = keys.create("ci")
    assert kind(gate, text) == "no-key"
    clock.now += 0.11
    assert kind(gate, text) == "in"


def test_changes_take_effect(keys: Keys, opened: Callable[..., Authenticator], clock: Clock) -> None:
    key, text = keys.create("ci", scopes=["read"])
    gate = opened()
    assert kind(gate, text, "admin") == "no-scope"
    keys.set_scopes(key.prefix, ["admin"])
    clock.now += 0.5
    assert (kind(gate, text, "admin"), kind(gate, text, "read")) == ("in", "no-scope")


@pytest.mark.slow
def test_unknown_keys_cost_little_and_leave_nothing(
    keys: Keys, opened: Callable[..., Authenticator], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, text = keys.create("ci")
    gate = opened(every=1.0)
    looks = []
    since = Keys.since
    monkeypatch.setattr(Keys, "since", lambda self, *given: looks.append(clock.now) or since(self, *given))
    sizes = []
    for i in range(2000):
        clock.now += 0.002
        assert kind(gate, f"hk_{i:08d}_" + "x" * 43) == "no-key"
        assert kind(gate, "nonsense") == "no-key"
        if i % 500 == 250:
            gc.collect()
            sizes.append(len(gc.get_objects()))
    assert len(looks) <= 4 / 0.1 + 4 + 1
    assert min(after - before for before, after in pairwise(looks)) > 0.05
    assert max(after - before for before, after in pairwise(sizes)) < 200  # less, where what others left is collected
    assert (len(gate._entries), len(gate._by_prefix)) == (1, 1)
    assert kind(gate, text) == "in"


def test_nothing_is_read_where_nothing_changed(
    keys: Keys, opened: Callable[..., Authenticator], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, text = keys.create("ci")
    gate = opened()
    reads = []
    rows = Keys._rows
    monkeypatch.setattr(Keys, "_rows", lambda self, *given: reads.append(1) or rows(self, *given))
    for _ in range(10):
        clock.now += 1
        assert kind(gate, text) == "in"
    assert reads == []
    keys.set_scopes(key.prefix, ["read"])
    clock.now += 1
    assert kind(gate, text, "read") == "in"
    assert reads == [1]


# ---------------------------------------------------------------------------- limits


def burst(gate: Authenticator, text: str, most: int = 10_000) -> int:
    """How many requests are let in one after the other."""
    for n in range(most):
        if kind(gate, text) != "in":
            return n
    return most


@pytest.mark.parametrize(("rate", "most"), [(0.5, 10), (1, 10), (5, 10), (5.5, 11), (20, 40), (1000, 2000)])
def test_a_burst_and_then_the_rate(
    keys: Keys, opened: Callable[..., Authenticator], clock: Clock, rate: float, most: int
) -> None:
    _, text = keys.create("ci", rate=rate)
    gate = opened()
    assert burst(gate, text) == most
    clock.now += 10 / rate
    assert burst(gate, text) == 10
    clock.now += 1e6
    assert burst(gate, text) == most


def test_how_long_to_wait_is_told_and_is_true(keys: Keys, opened: Callable[..., Authenticator], clock: Clock) -> None:
    _, text = keys.create("ci", rate=0.25)
    gate = opened()
    burst(gate, text)
    problem = refused(gate, bearer(text), None, None, "read")
    assert (problem.kind, problem.status, problem.headers) == ("too-many", 429, {"Retry-After": "4"})
    assert problem.members["detail"] == "expected at most 0.25 requests per second, got more; try again in 4 s"
    clock.now += 3.9
    assert refused(gate, bearer(text), None, None, "read").headers == {"Retry-After": "1"}
    clock.now += 0.1
    assert burst(gate, text) == 1


def test_a_batch_counts_as_many(keys: Keys, opened: Callable[..., Authenticator], clock: Clock) -> None:
    (_, text), (_, other) = keys.create("ci", rate=10), keys.create("other", rate=10)
    gate = opened()
    caller = admit(gate, text)
    gate.spend(caller, 1)
    gate.spend(caller, 0)
    assert burst(gate, text) == 19
    clock.now += 2
    gate.spend(admit(gate, text), 1000)  # as much as there is, and then it is waited for
    problem = refused(gate, bearer(text), None, None, "read")
    assert problem.headers == {"Retry-After": "99"}  # 20 - 1000 tokens, and one more
    clock.now += 98
    assert kind(gate, text) == "too-many"
    clock.now += 1
    assert burst(gate, text) == 10 - 0
    assert burst(gate, other) == 20  # everybody has a bucket of their own
    gate.spend(Caller("main", frozenset(), "hk_00000000"), 5)  # revoked in between


def test_a_keys_own_limit_goes_before_the_servers(keys: Keys, opened: Callable[..., Authenticator]) -> None:
    texts = [keys.create("own", rate=30)[1], keys.create("none")[1]]
    assert [burst(opened(rate=20), text, 200) for text in texts] == [60, 40]
    assert [burst(opened(), text, 200) for text in texts] == [60, 200]
    for wrong in (0, -1, float("nan"), "5", True):
        with pytest.raises(ValueError, match="rate: expected requests per second"):
            opened(rate=wrong)


def test_what_was_taken_stays_taken(keys: Keys, opened: Callable[..., Authenticator], clock: Clock) -> None:
    key, text = keys.create("ci", rate=1)
    gate = opened()
    assert burst(gate, text) == 10
    for scopes, left in ((["admin", "read"], 0), (["read"], 1)):
        keys.set_scopes(key.prefix, scopes)
        clock.now += 0.5
        assert burst(gate, text) == left


def test_the_limit_holds_for_what_a_key_may_not_do(keys: Keys, opened: Callable[..., Authenticator]) -> None:
    _, text = keys.create("ci", scopes=["read"], rate=1)
    gate = opened()
    assert [kind(gate, text, "admin") for _ in range(12)] == ["no-scope"] * 10 + ["too-many"] * 2


@given(
    st.floats(0.01, 2000),
    st.lists(st.tuples(st.floats(0, 30), st.integers(1, 50)), max_size=60),
)
def test_no_schedule_gets_more_than_the_rate(rate: float, schedule: list[tuple[float, int]]) -> None:
    entry = CachedKey(Caller("main", frozenset(), ""), b"", rate, 0.0)
    now, let, waited = 0.0, 0, None
    for pause, n in schedule:
        now += pause
        for _ in range(n):
            try:
                entry.take(now)
            except Problem as problem:
                seconds = int(problem.headers["Retry-After"])
                assert seconds >= 1
                waited = now + seconds
                break
            let += 1
        assert let <= max(10, 2 * rate) + rate * now + 1e-6
        if waited is not None:
            now, waited = waited, None
            entry.take(now)  # whoever waits as long as was said is let in
            let += 1


# ---------------------------------------------------------------------------- nobody ever made a key

GOOD_HOSTS = [b"localhost", b"LOCALHOST", b"LocalHost:8710", b"127.0.0.1", b"127.0.0.1:1", b"[::1]", b"[::1]:65535"]
BAD_HOSTS = [
    None,
    b"",
    b"localhost.evil.com",
    b"127.0.0.1.evil.com",
    b"evil.com:127.0.0.1",
    b"evil.com",
    b"evil.com:8710",
    b"localhost.",
    b"xlocalhost",
    b"localhost:",
    b"localhost:80:80",
    b"localhost:evil",
    b"localhost:123456",
    b"localhost:-1",
    b"localhost@evil.com",
    b"evil.com@localhost",
    b"evil.com#localhost",
    b"evil.com/localhost",
    b"localhost, evil.com",
    b"evil.com localhost",
    b"localhost\n",
    b"localhost\0",
    b" localhost",
    b"localhost ",
    b"0.0.0.0",
    b"127.0.0.2",
    b"127.1",
    b"0x7f.0.0.1",
    b"2130706433",
    b"127.0.0.1.",
    b"127x0x0x1",
    b"::1",
    b"[::1",
    b"[::]",
    b"[::1]evil.com",
    b"[::1].evil.com",
    b"[::ffff:127.0.0.1]",
    b"[0:0:0:0:0:0:0:1]",
    b"192.168.1.5",
    b"\xff",
    "lоcalhost".encode(),
    "localhost:１".encode(),
]


@pytest.mark.parametrize("host", GOOD_HOSTS)
def test_whoever_is_near_may_do_everything(opened: Callable[..., Authenticator], host: bytes) -> None:
    gate = opened()
    for authorization in (None, b"", b"Bearer hk_ab12cd34_" + b"x" * 43, b"Basic abc"):
        for scope in (None, *SCOPES):
            assert gate.admit(authorization, host, None, scope) == Caller("main", frozenset(SCOPES), "")
    for origin in (b"http://" + host, b"https://" + host, b"HTTP://" + host):
        assert gate.admit(None, host, origin, "admin").prefix == ""


@pytest.mark.parametrize("host", BAD_HOSTS)
def test_nobody_else_is_this_machine(opened: Callable[..., Authenticator], host: bytes | None) -> None:
    gate = opened()
    problem = refused(gate, None, host, None, "read")
    assert (problem.kind, problem.status) == ("wrong-host", 421)
    assert problem.members["detail"].startswith("Host: expected localhost, 127.0.0.1 or [::1], got ")
    assert refused(gate, None, host, b"http://localhost", None).kind == "wrong-host"
    if host is not None:
        problem = refused(gate, None, b"localhost:8710", b"http://" + host, "read")
        assert (problem.kind, problem.status) == ("wrong-origin", 403)


ORIGINS = [b"", b"null", b"localhost", b"file://", b"file://localhost", b"http://", b"//localhost", b"http:localhost"]
ORIGINS += [b"http://localhost/", b"http://localhost http://evil.com", b"http://evil.com http://localhost"]
ORIGINS += [b"xhttp://localhost", b"javascript://localhost", b"http://localhost?x", b"http://a:b@localhost", b"*"]


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_page_of_somewhere_else_is_kept_out(opened: Callable[..., Authenticator], origin: bytes) -> None:
    problem = refused(opened(), None, b"localhost", origin, "read")
    assert (problem.kind, problem.status) == ("wrong-origin", 403)
    assert problem.members["detail"].startswith("Origin: expected a page of this machine or none, got ")


def test_the_first_key_shuts_the_gate_for_good(
    keys: Keys, tmp_path: Path, opened: Callable[..., Authenticator], clock: Clock
) -> None:
    gate = opened()
    nearby = (None, b"localhost", None, "read")
    assert gate.admit(*nearby).prefix == ""
    key, text = keys.create("ci")
    assert refused(gate, *nearby).kind == "no-key"  # the clock stands still
    assert kind(gate, text) == "in"
    keys.revoke(key.prefix)
    clock.now += 1
    assert refused(gate, *nearby).kind == refused(gate, bearer(text), *nearby[1:]).kind == "no-key"
    assert refused(opened(), *nearby).kind == "no-key"
    (tmp_path / "server.db").unlink()
    clock.now += 1
    assert refused(gate, *nearby).kind == "no-key"  # it does not forget that there was one
    assert opened().admit(*nearby).prefix == ""


def test_a_file_without_a_key_shuts_nothing(keys: Keys, tmp_path: Path, opened: Callable[..., Authenticator]) -> None:
    nearby = (None, b"localhost", None, "read")
    gate = opened()
    (tmp_path / "server.db").touch()
    for each in (gate, opened()):
        assert each.admit(*nearby).prefix == ""
    keys.create("ci")
    assert refused(gate, *nearby).kind == "no-key"


def test_the_servers_limit_holds_without_a_key(opened: Callable[..., Authenticator], clock: Clock) -> None:
    gate = opened(rate=1)
    nearby = (None, b"localhost", None, "read")
    for _ in range(10):
        caller = gate.admit(*nearby)
    assert refused(gate, *nearby).kind == "too-many"
    gate.spend(caller, 3)
    clock.now += 2
    assert refused(gate, *nearby).headers == {"Retry-After": "1"}
    clock.now += 1
    assert gate.admit(*nearby) == caller


# ---------------------------------------------------------------------------- trouble with the database


def test_somebody_who_writes_holds_nobody_up(
    keys: Keys, tmp_path: Path, opened: Callable[..., Authenticator], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, text = keys.create("ci")
    gate, since, waits = opened(), Keys.since, list[float]()
    monkeypatch.setattr(Keys, "since", lambda self, stamp, wait=0.0: waits.append(wait) or since(self, stamp, wait))
    with closing(sqlite3.connect(tmp_path / "server.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        other.execute("UPDATE keys SET revoked = 1")
        for _ in range(20):
            clock.now += 1
            assert kind(gate, text) == "in"  # it is not done
            assert kind(gate, "hk_ab12cd34_" + "x" * 43) == "no-key"
        other.execute("COMMIT")
    assert len(waits) >= 20
    assert set(waits) == {0.0}
    clock.now += 1
    assert kind(gate, text) == "no-key"


def test_a_database_that_breaks_lets_nobody_in_until_it_is_whole(
    keys: Keys, tmp_path: Path, opened: Callable[..., Authenticator], clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    _, text = keys.create("ci", rate=1)
    gate = opened()
    assert burst(gate, text) == 10
    shutil.copy(tmp_path / "server.db", tmp_path / "kept")
    (tmp_path / "server.db").write_bytes(b"not a database" * 1000)
    for header in (bearer(text), None):
        clock.now += 0.5
        problem = refused(gate, header, b"localhost", None, "read")
        assert (problem.kind, problem.status) == ("damaged", 500)
        assert str(tmp_path) not in problem.body.decode()
    assert caplog.text.count("restore a back-up") == 1  # told once
    os.replace(tmp_path / "kept", tmp_path / "server.db")
    assert burst(gate, text) == 1  # at once, with what had been taken
    assert refused(gate, None, b"localhost", None, "read").kind == "no-key"
    sql(tmp_path, "PRAGMA user_version = 99")
    clock.now += 1
    assert kind(gate, text) == "damaged"
    with pytest.raises(ValueError, match="upgrade heedful"):
        opened()


def test_a_database_that_cannot_be_reached_is_tried_again(
    keys: Keys, opened: Callable[..., Authenticator], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, text = keys.create("ci")
    gate = opened()

    def unreachable(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(Keys, "since", unreachable)
        clock.now += 1
        problem = refused(gate, bearer(text), None, None, "read")
        assert (problem.kind, problem.status, problem.headers) == ("unavailable", 503, {"Retry-After": "1"})
    assert kind(gate, text) == "unavailable"
    clock.now += 0.5
    assert kind(gate, text) == "in"


def test_an_open_gate_whose_database_breaks_is_shut(tmp_path: Path, opened: Callable[..., Authenticator]) -> None:
    gate = opened()
    (tmp_path / "server.db").write_bytes(b"x")
    assert refused(gate, None, b"localhost", None, "read").kind == "damaged"
    (tmp_path / "server.db").unlink()
    assert gate.admit(None, b"localhost", None, "read").prefix == ""


# ---------------------------------------------------------------------------- speed


def test_a_request_is_let_in_by_a_few_calls(keys: Keys) -> None:
    """Of functions, what a look at a table takes."""
    headers = [bearer(keys.create("ci", rate=rate)[1]) for rate in (None, 1_000_000)]
    gate = Authenticator(keys, clock=Clock())
    for header in headers:
        ask = partial(gate.admit, header, None, None, "read")
        ask()
        called: list[tuple[str, Any]] = []
        sys.setprofile(lambda frame, event, arg, called=called: called.append((event, frame.f_code.co_name)))
        try:
            ask()
        finally:
            sys.setprofile(None)
        assert len([event for event, _ in called if event.endswith("call")]) < 20, called


# ---------------------------------------------------------------------------- use and expiry


def test_a_key_that_has_expired_is_refused_and_says_so(
    keys: Keys, opened: Callable[..., Authenticator], monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = datetime.now(UTC) + timedelta(days=90)
    made, text = keys.create("ci", expires=micros_of(ends))
    gate = opened()
    caller = admit(gate, text)
    assert gate.holds(caller, "read")
    assert gate.signer(made.prefix) is not None
    monkeypatch.setattr("heedful.server.auth.time.time", lambda: ends.timestamp() + 1)
    problem = refused(gate, bearer(text), None, None, "read")
    assert (problem.kind, problem.headers) == ("no-key", {"WWW-Authenticate": "Bearer"})
    assert str(problem).startswith(f"the key {made.prefix} expired on {ends:%Y-%m-%d %H:%M} UTC; ")
    assert not gate.holds(caller, "read")
    assert gate.signer(made.prefix) is None
    with pytest.raises(Problem):
        gate.visit(made.prefix, None, None)


def test_the_last_use_is_written_where_it_is_new(
    keys: Keys, opened: Callable[..., Authenticator], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one, text), (two, other), _ = (keys.create(name) for name in ("one", "two", "three"))
    gate, elsewhere = opened(), opened()
    assert (gate.new_uses(), [key.used for key in keys.all()]) == ({}, [None] * 3)
    monkeypatch.setattr("heedful.server.auth.time.time", lambda: 5000.0)
    admit(gate, text)
    assert gate.signer(two.prefix) is not None
    assert gate.new_uses() == {one.prefix: 5 * 10**9, two.prefix: 5 * 10**9}
    monkeypatch.setattr("heedful.server.auth.time.time", lambda: 4000.0)
    admit(elsewhere, text)
    for each in (gate, elsewhere):  # the later one stays, whoever writes last
        keys.record_uses(each.new_uses())
    assert [key.used for key in keys.all()] == [5 * 10**9, 5 * 10**9, None]
    clock.now += 1.0
    for each in (gate, elsewhere):
        each.refresh()
        assert each.new_uses() == {}
    monkeypatch.setattr("heedful.server.auth.time.time", lambda: 6000.0)
    admit(elsewhere, other)
    assert elsewhere.new_uses() == {two.prefix: 6 * 10**9}
