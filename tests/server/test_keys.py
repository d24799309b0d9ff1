"""Keys: what is kept of them, what never is, and a database that several processes make and change at once."""

from __future__ import annotations

import hashlib
import logging
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from asking import at_once
from hypothesis import given
from hypothesis import strategies as st

from heedful import Loop
from heedful.server.database import SCHEMA
from heedful.server.keys import SCOPES, SHAPE, Key, Keys, check_tenant, in_order
from heedful.storage import Place
from heedful.storage.sqlite import Database
from loops import small_loop


def sql(folder: Path, *statements: str) -> list[Any]:
    """What the last of these says, asked behind everybody's back."""
    with closing(sqlite3.connect(folder / "server.db", isolation_level=None)) as connection:
        for statement in statements:
            found = connection.execute(statement).fetchall()
    return found


# ---------------------------------------------------------------------------- making


def test_looking_makes_nothing(keys: Keys, tmp_path: Path) -> None:
    assert (keys.all(), keys.exist(), keys.trace()) == ([], False, None)
    assert keys.since(None) == ((), [])
    assert keys.since(()) is None
    for ask in (lambda: keys.revoke("hk_ab12cd34"), lambda: keys.set_scopes("hk_ab12cd34", ["read"])):
        with pytest.raises(LookupError, match="prefix: expected one that `heedful keys list` shows"):
            ask()
    with pytest.raises(ValueError, match="name: "):
        keys.create("")
    assert list(tmp_path.iterdir()) == []


def test_a_key_is_made(keys: Keys, vault: Place) -> None:
    before = time.time_ns() // 1000
    key, text = keys.create("ci")
    assert SHAPE.fullmatch(text)
    assert len(text) == 55
    assert key.prefix == text[:11]
    assert key == Key(
        text[:11], "ci", "main", frozenset(SCOPES), None, hashlib.sha256(text.encode()).digest(), key.created, None
    )
    assert before <= key.created <= time.time_ns() // 1000
    assert keys.all() == [key]
    assert keys.exist()
    other, _ = keys.create("two", tenant="acme-2", scopes=["read", "decide", "read"], rate=3)
    assert (other.tenant, other.scopes, other.rate) == ("acme-2", {"decide", "read"}, 3.0)
    with closing(Keys(vault)) as again:
        assert again.all() == [key, other]


def test_keys_are_listed_in_the_order_of_making_and_no_two_are_alike(keys: Keys, vault: Place) -> None:
    made = [keys.create(f"k{i}") for i in range(50)]
    assert keys.all() == [key for key, _ in made]
    assert len({text[12:] for _, text in made}) == len({key.prefix for key, _ in made}) == 50
    assert {len(text) for _, text in made} == {55}


def test_a_prefix_is_given_once(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter("aaaaaaaaaaaaaaaaaaaaaaab")
    monkeypatch.setattr("secrets.choice", lambda letters: next(drawn))
    assert [keys.create("x")[0].prefix for _ in range(2)] == ["hk_aaaaaaaa", "hk_aaaaaaab"]


def test_only_the_owner_reads_the_file(keys: Keys, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        keys.create("ci")
    finally:
        os.umask(before)
    assert {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {"server.db": 0o600}


def test_a_commit_is_on_the_disk(keys: Keys) -> None:
    keys.create("ci")
    with keys._database.writing() as connection:
        pragmas = {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "busy_timeout", "trusted_schema")
        }
        assert pragmas == {"journal_mode": "delete", "synchronous": 2, "busy_timeout": 5000, "trusted_schema": 0}


@pytest.mark.parametrize("name", ["a b", "a?mode=ro", "a#b", "a%20b", "ä", "a&b=c"])
def test_a_folder_of_any_name(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    with closing(Keys(Path(name))) as keys:
        key, _ = keys.create("ci")
        monkeypatch.chdir("/")
        assert keys.all() == [key]
    assert [str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.db")] == [f"{name}/server.db"]


# ---------------------------------------------------------------------------- what is never kept


def test_the_text_of_a_key_is_nowhere(
    keys: Keys, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    watcher = Keys(tmp_path)
    told: list[str] = []
    texts = []
    for i in range(5):
        key, text = keys.create(f"k{i}", rate=2)
        texts.append(text)
        told += [repr(key), str(key), f"{key}", repr(keys), str(vars(keys)), str(watcher.since(None)), str(keys.all())]
    keys.revoke(texts[0][:11])
    keys.set_scopes(texts[1][:11], ["read"])
    wrong = [
        lambda text: keys.create(text),
        lambda text: keys.create(f"for {text} too"),
        lambda text: keys.create("x", tenant=text),
        lambda text: keys.create("x", scopes=text),
        lambda text: keys.create("x", scopes=[text]),
        lambda text: keys.create("x", rate=text),
        lambda text: keys.create(text * 5),
        lambda text: keys.revoke(text),
        lambda text: keys.set_scopes(text, ["read"]),
        lambda text: keys.set_scopes(text[:11], [text]),
        lambda text: keys.set_scopes(text[:11], [[text]]),
        check_tenant,
    ]
    for ask in wrong:
        with pytest.raises((ValueError, LookupError)) as error:
            ask(texts[2])
        told += [str(error.value), repr(error.value), str(error.value.__cause__), str(error.value.__context__)]
    out = capfd.readouterr()
    told += [caplog.text, out.out, out.err]
    files = {file.name: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    assert list(files) == ["server.db"]
    assert texts[0][:11].encode() in files["server.db"]  # what is looked for would be found
    for text in texts:
        for part in (text[12:], text[12:33], text[34:]):
            assert not any(part in each for each in told)
            assert not any(part.encode() in content for content in files.values())


# ---------------------------------------------------------------------------- changing


def test_a_key_is_revoked_once(keys: Keys, vault: Place) -> None:
    (first, _), (second, _) = keys.create("a"), keys.create("b")
    ended = keys.revoke(first.prefix)
    assert ended == first._replace(revoked=ended.revoked)
    assert ended.revoked is not None
    assert ended.revoked >= first.created
    assert keys.revoke(first.prefix) == ended
    assert keys.all() == [ended, second]
    keys.revoke(second.prefix)
    assert keys.exist()
    with pytest.raises(ValueError, match=f"prefix: expected a key that was not revoked, got '{first.prefix}'"):
        keys.set_scopes(first.prefix, ["read"])
    assert keys.all()[0] == ended


@pytest.mark.parametrize("prefix", ["hk_00000000", "", "ci", "HK_AB12CD34", 5, None, "' OR 1=1 --", "%"])
def test_only_what_is_there_is_changed(keys: Keys, vault: Place, prefix: Any) -> None:
    key, _ = keys.create("ci")
    for ask in (lambda: keys.revoke(prefix), lambda: keys.set_scopes(prefix, ["read"])):
        with pytest.raises(LookupError, match="prefix: expected one that `heedful keys list` shows"):
            ask()
    assert keys.all() == [key]


def test_what_a_key_may_do_is_changed_and_nothing_else(keys: Keys, vault: Place) -> None:
    key, _ = keys.create("ci", rate=5)
    assert keys.set_scopes(key.prefix, ["feedback"]) == (now := key._replace(scopes=frozenset({"feedback"})))
    assert keys.all() == [now]


SCOPES_WANTED = "expected a list of some of decide, feedback, read, admin, metrics, got"
RATE_WANTED = "expected requests per second, from 0.001 to 1,000,000, or nothing for no limit, got"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"name": ""}, "name: expected a text of 1 to 200 printable characters, got ''"),
        ({"name": "x" * 201}, "name: expected a text of 1 to 200 printable characters, got"),
        ({"name": "a\nb"}, r"name: expected a text of 1 to 200 printable characters, got 'a\nb'"),
        ({"name": None}, "name: expected a text of 1 to 200 printable characters, got none"),
        ({"scopes": []}, f"scopes: {SCOPES_WANTED} none of them"),
        ({"scopes": ["read", "wirte"]}, f"scopes: {SCOPES_WANTED} 'wirte'"),
        ({"scopes": ["READ"]}, f"scopes: {SCOPES_WANTED} 'READ'"),
        ({"scopes": "read"}, f"scopes: {SCOPES_WANTED} 'read'"),
        ({"scopes": [["read"]]}, f"scopes: {SCOPES_WANTED} ['read']"),
        ({"scopes": 5}, f"scopes: {SCOPES_WANTED} 5"),
        ({"rate": 0}, f"rate: {RATE_WANTED} 0"),
        ({"rate": -1}, f"rate: {RATE_WANTED} -1"),
        ({"rate": float("nan")}, f"rate: {RATE_WANTED} nan"),
        ({"rate": float("inf")}, f"rate: {RATE_WANTED} inf"),
        ({"rate": 2e6}, f"rate: {RATE_WANTED} 2000000.0"),
        ({"rate": 10**400}, f"rate: {RATE_WANTED} 1000"),
        ({"rate": True}, f"rate: {RATE_WANTED} True"),
        ({"rate": "5"}, f"rate: {RATE_WANTED} '5'"),
        ({"tenant": "../a"}, "tenant: expected 1 to 40 of a-z, 0-9 and -, the first of them no -, got '../a'"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(keys: Keys, vault: Place, given: dict[str, Any], told: str) -> None:
    key, _ = keys.create("ci")
    with pytest.raises(ValueError, match=f"^{re.escape(told)}"):
        keys.create(**({"name": "x"} | given))
    if "scopes" in given:
        with pytest.raises(ValueError, match=f"^{re.escape(told)}"):
            keys.set_scopes(key.prefix, given["scopes"])
    assert keys.all() == [key]


@given(st.text("abz019-A._/\n\0 ä", max_size=42))
def test_tenants_are_told_letter_by_letter(value: str) -> None:
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    if 1 <= len(value) <= 40 and value[0] in letters and set(value) <= set(letters + "-"):
        assert check_tenant(value) == value
    else:
        with pytest.raises(
            ValueError, match="tenant: expected 1 to 40 of a-z, 0-9 and -, the first of them no -, got "
        ):
            check_tenant(value)


def test_scopes_have_an_order() -> None:
    assert in_order({"admin", "decide", "read"}) == ["decide", "read", "admin"]


# ---------------------------------------------------------------------------- several at once

MAKER = """
import sys, time
from pathlib import Path
from heedful.server.keys import Keys
folder, who = Path(sys.argv[1]), sys.argv[2]
keys = Keys(folder)
print("ready", flush=True)
sys.stdin.readline()
for i in range(5):
    print(keys.create(f"{who}-{i}")[0].prefix)
"""


def maker(folder: Path, who: int) -> subprocess.Popen[str]:
    args = [sys.executable, "-c", MAKER, str(folder), str(who)]
    return subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_processes_that_make_the_first_key_at_once(tmp_path: Path) -> None:
    running = [maker(tmp_path, who) for who in range(4)]
    for each in running:
        assert each.stdout
        assert each.stdout.readline() == "ready\n"
    assert list(tmp_path.iterdir()) == []
    for each in running:
        assert each.stdin
        each.stdin.write("go\n")
        each.stdin.flush()
    made = [each.communicate(timeout=60)[0].split() for each in running]
    assert [each.returncode for each in running] == [0] * 4
    with closing(Keys(tmp_path)) as keys:
        found = keys.all()
    assert sorted(key.prefix for key in found) == sorted(prefix for prefixes in made for prefix in prefixes)
    for who, prefixes in enumerate(made):
        assert [key.prefix for key in found if key.name.startswith(f"{who}-")] == prefixes
        assert len(prefixes) == 5
    assert sql(tmp_path, "PRAGMA user_version") == [(SCHEMA.version,)]


def test_threads_that_make_the_first_key_at_once(tmp_path: Path) -> None:
    """Of one folder, and of several."""
    made: list[tuple[Path, Key]] = []
    folders = [tmp_path / f"f{i}" for i in range(4)]
    start = threading.Barrier(16)

    def make(folder: Path) -> None:
        with closing(Keys(folder)) as keys:
            start.wait()
            made.append((folder, keys.create("x")[0]))

    for folder in folders:
        folder.mkdir()
    at_once(*[partial(make, folder) for folder in folders * 4])
    for folder in folders:
        with closing(Keys(folder)) as keys:
            mine = [key for where, key in made if where == folder]
            assert len(mine) == 4
            assert sorted(key.prefix for key in keys.all()) == sorted(key.prefix for key in mine)


def test_a_process_that_stopped_halfway_made_no_key(keys: Keys, tmp_path: Path) -> None:
    (tmp_path / "server.db").touch()
    with closing(Keys(tmp_path)) as again:
        assert (again.all(), again.exist()) == ([], False)
        assert again.since(None) is not None
    with pytest.raises(LookupError):
        keys.revoke("hk_ab12cd34")
    assert (tmp_path / "server.db").read_bytes() == b""
    key, _ = keys.create("ci")
    assert keys.all() == [key]


def test_a_key_that_fails_halfway_is_no_key(keys: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Keys, "_key_of", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        keys.create("ci")
    assert (keys.all(), keys.exist()) == ([], False)
    assert (tmp_path / "server.db").read_bytes() == b""  # the table and its first row are one transaction


def test_who_writes_is_waited_for(keys: Keys, tmp_path: Path) -> None:
    keys.create("ci")
    stamp, _ = keys.since(None) or ((), [])
    with closing(sqlite3.connect(tmp_path / "server.db", isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN EXCLUSIVE")
        for fresh in (False, True):  # whether the file is open already
            watcher = Keys.__new__(Keys) if fresh else keys
            if fresh:
                watcher.__dict__.update(vars(keys), _watch=None)
            with pytest.raises(TimeoutError, match="another process is writing; nothing was changed: try again"):
                watcher.since(stamp)
            assert watcher._watch is not None
            assert watcher._watch.execute("PRAGMA busy_timeout").fetchone() == (0,)  # who looks does not wait
            watcher.close()
        ends: list[bool] = []
        timer = threading.Timer(0.3, lambda: (ends.append(True), other.execute("COMMIT")))
        timer.start()
        keys.create("two")
        assert ends == [True]  # who writes does
        timer.join()
    assert [key.name for key in keys.all()] == ["ci", "two"]


def test_waiting_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Database.__init__, "__kwdefaults__", {"wait": 0.1})
    with closing(Keys(tmp_path)) as keys:
        keys.create("ci")
        with closing(sqlite3.connect(tmp_path / "server.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(TimeoutError, match="another process is writing"):
                keys.create("two")
            assert len(keys.all()) == 1  # who reads need not wait for who has yet to commit
            other.execute("COMMIT")
            other.execute("BEGIN EXCLUSIVE")
            for ask in (keys.all, keys.exist, lambda: keys.since(None, wait=0.1), lambda: Keys(tmp_path)):
                with pytest.raises(TimeoutError, match="another process is writing"):
                    ask()


# ---------------------------------------------------------------------------- what changed since


def test_what_changed_is_seen_and_nothing_else(keys: Keys, tmp_path: Path) -> None:
    def seen(held: Keys) -> list[str] | None:
        nonlocal stamp
        found = held.since(stamp)
        stamp = found[0] if found else stamp
        return found and [f"{key.name}{'*' * (key.revoked is not None)}" for key in found[1]]

    stamp: tuple[int, ...] | None = None
    with closing(Keys(tmp_path)) as watcher:
        assert (seen(watcher), seen(watcher)) == ([], None)
        key, _ = keys.create("a")
        assert (seen(watcher), seen(watcher)) == (["a"], None)
        watcher.create("b")  # what it does itself as well
        assert (seen(watcher), seen(watcher)) == (["a", "b"], None)
        keys.revoke(key.prefix)
        assert (seen(watcher), seen(watcher)) == (["a*", "b"], None)
        shutil.copy(tmp_path / "server.db", tmp_path / "kept")
        keys.create("c")
        assert seen(watcher) == ["a*", "b", "c"]
        os.replace(tmp_path / "kept", tmp_path / "server.db")
        assert (seen(watcher), seen(watcher)) == (["a*", "b"], None)
        (tmp_path / "server.db").unlink()
        assert (seen(watcher), seen(watcher)) == ([], None)
        keys.create("d")
        assert (seen(watcher), seen(watcher)) == (["d"], None)
        watcher.close()
        assert seen(watcher) == ["d"]


# ---------------------------------------------------------------------------- schema


def test_a_newer_schema_is_refused(keys: Keys, tmp_path: Path) -> None:
    keys.create("ci")
    sql(tmp_path, "PRAGMA user_version = 99")
    before = (tmp_path / "server.db").read_bytes()
    asking = (lambda: Keys(tmp_path), keys.all, lambda: keys.create("x"), keys.exist, lambda: keys.since(None))
    for ask in asking:
        told = "expected a database of keys of schema 1, got 99: a newer heedful wrote it; upgrade heedful"
        with pytest.raises(ValueError, match=told):
            ask()
    assert (tmp_path / "server.db").read_bytes() == before


# ---------------------------------------------------------------------------- damage

DAMAGED = r"server\.db: expected (the tables of )?a (whole )?database of keys"


def log_of_a_loop(file: Path) -> None:
    small_loop(file.parent / "cars.heedful").close()
    with closing(Loop.open(file.parent / "cars.heedful")):
        shutil.copy(file.parent / "cars.heedful" / "log.db", file)


def another_table(file: Path) -> None:
    sql(file.parent, "CREATE TABLE other (x)")


def changed(statement: str) -> Callable[[Path], None]:
    """What makes a file of keys and executes the `statement` in it."""

    def spoil(file: Path) -> None:
        with closing(Keys(file.parent)) as keys:
            keys.create("ci")
        sql(file.parent, statement)

    return spoil


def cut_short(file: Path) -> None:
    with closing(Keys(file.parent)) as keys:
        for i in range(50):
            keys.create(f"k{i}")
    os.truncate(file, 4096)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda file: file.write_bytes(b"not a database" * 1000),
        lambda file: file.write_bytes(b"x"),
        lambda file: sql(file.parent, "PRAGMA user_version = 1"),
        log_of_a_loop,
        another_table,
        changed("PRAGMA user_version = 0"),
        changed("CREATE VIEW more AS SELECT * FROM keys"),
        changed("CREATE TRIGGER act AFTER INSERT ON keys BEGIN DELETE FROM keys; END"),
        changed("DROP TABLE keys"),
        cut_short,
    ],
)
def test_what_is_no_database_of_keys_is_refused(tmp_path: Path, spoil: Any) -> None:
    """And nothing that is asked makes it worse."""
    file = tmp_path / "server.db"
    spoil(file)
    before = file.read_bytes()
    asking: list[Callable[[Keys], object]] = [Keys.all, Keys.exist, lambda keys: keys.create("x")]
    asking += [lambda keys: keys.since(None)]
    for ask in asking:
        with pytest.raises(ValueError, match=DAMAGED), closing(Keys(tmp_path)) as keys:
            ask(keys)
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    "spoiled",
    [
        "prefix = X'00'",
        "name = X'ff'",
        "name = CAST(X'ff' AS TEXT)",
        "tenant = '../other'",
        "tenant = X'61'",
        "scopes = 'read root'",
        "scopes = ''",
        "scopes = X'00'",
        "rate = 'fast'",
        "rate = -1",
        "rate = 9e999",
        "digest = 'x'",
        "digest = X'00'",
        "created = 'now'",
        "revoked = 'never'",
    ],
)
def test_a_damaged_row_is_said(keys: Keys, tmp_path: Path, spoiled: str) -> None:
    key, _ = keys.create("ci")
    sql(tmp_path, f"UPDATE keys SET {spoiled}")
    asking = [keys.all, lambda: keys.since(None)]
    asking += [] if spoiled.startswith("prefix") else [lambda: keys.revoke(key.prefix)]
    for ask in asking:
        with pytest.raises(ValueError, match=r"server\.db: expected a .*restore a back-up"):
            ask()


def test_a_file_of_random_damage_never_gives_a_key_that_was_not_made(keys: Keys, tmp_path: Path) -> None:
    for i in range(20):
        keys.create(f"k{i}")
    known = {key.digest for key in keys.all()}
    whole = (tmp_path / "server.db").read_bytes()
    draw = random.Random(1)
    refused = 0
    for _ in range(150):
        spoiled = bytearray(whole)
        at = draw.randrange(len(spoiled) - 16)
        spoiled[at : at + 16] = draw.randbytes(16)
        (tmp_path / "server.db").write_bytes(spoiled)
        try:
            with closing(Keys(tmp_path)) as again:
                found = again.all()
        except (ValueError, OSError):  # and nothing else, whatever it was that broke
            refused += 1
        else:
            assert sum(key.digest not in known for key in found) <= 1  # the one whose digest was hit
    assert refused >= 5


def test_a_folder_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with closing(Keys(tmp_path / "none")) as keys:
        assert keys.all() == []
        with pytest.raises(FileNotFoundError):
            keys.create("ci")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "server.db").mkdir()
    with pytest.raises(OSError, match="the database of keys cannot be read or written"):  # not: no key was ever made
        Keys(tmp_path)
