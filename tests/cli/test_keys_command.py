"""`heedful keys`: what it prints and where, and that a key is printed once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from command import bad, done, heedful, refusal

from heedful.server.keys import SCOPES, SHAPE, Keys

pytestmark = pytest.mark.usefixtures("folder")


def created(line: str = "keys create ci") -> str:
    got = done(line, notes=True)
    return got.out.strip()


# ---------------------------------------------------------------------------- create


def test_a_key_is_printed_alone_and_once(folder: Path) -> None:
    got = heedful("keys create ci")
    assert got.code == 0
    text = got.out.removesuffix("\n")
    assert SHAPE.fullmatch(text)
    [key] = Keys(folder).all()
    assert (key.prefix, key.name, key.tenant, key.scopes, key.rate) == (text[:11], "ci", "main", set(SCOPES), None)
    first, second, third, fourth = got.err.splitlines()
    may = f"heedful: {key.prefix} may decide, feedback, read, admin, metrics, for tenant main; "
    assert first == f"{may}the key is shown this once: keep it now"
    assert second == "heedful: the first key: from now on a server of this folder wants one with every request"
    assert third.startswith(f"heedful: there is no loop in {folder}: is that the folder that is served?")
    assert fourth.startswith('heedful: use it: curl -H "Authorization: Bearer $KEY" http://')
    (folder / "cars.heedful").mkdir()
    (folder / "cars.heedful" / "log.db").touch()
    assert len(heedful("keys create two").err.splitlines()) == 2
    everything = [got.err, *(heedful(f"keys {line}").out for line in ("list", "list --json", f"revoke {key.prefix}"))]
    assert not any(text[12:] in each for each in everything)


def test_in_a_database_no_folder_is_spoken_of(postgres: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_DATABASE", postgres)
    got = heedful("keys create ci")
    assert got.code == 0
    assert SHAPE.fullmatch(got.out.strip())
    assert "folder" not in got.err
    assert not list(folder.iterdir())
    assert heedful(f"keys revoke {got.out[:11]}").code == 0


@pytest.mark.slow
def test_a_shell_takes_the_key(folder: Path) -> None:
    program = [str(Path(sys.executable).parent / "heedful"), "keys", "create", "ci"]
    script = f'KEY=$({" ".join(program)} 2>notes); printf "%s" "$KEY" >taken'
    subprocess.run(["sh", "-c", script], check=True)
    assert SHAPE.fullmatch((folder / "taken").read_text())
    assert (folder / "taken").read_text()[12:] not in (folder / "notes").read_text()


def test_what_a_key_is_for_is_said(folder: Path) -> None:
    (folder / "served").mkdir()
    line = "keys create ci --folder served --tenant acme --scope read --scope decide --scope read --rate 2.5 --json"
    got = done(line, notes=True)
    told = got.json
    assert SHAPE.fullmatch(told.pop("key"))
    [key] = Keys(folder / "served").all()
    assert told == {
        "prefix": key.prefix,
        "name": "ci",
        "tenant": "acme",
        "scopes": ["decide", "read"],
        "rate": 2.5,
        "created": key.created,
        "revoked": None,
        "expires": None,
        "used": None,
    }
    assert (key.tenant, key.scopes, key.rate) == ("acme", {"decide", "read"}, 2.5)
    assert list(folder.iterdir()) == [folder / "served"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            "create ci --rate 0",
            "rate: expected requests per second, from 0.001 to 1,000,000, or nothing for no limit, got 0.0",
        ),
        ("create ci --folder none", "--folder: expected a folder that is there, got 'none'"),
        ("list --folder none", "--folder: expected a folder that is there, got 'none'"),
        ("revoke hk_x", "prefix: expected one that `heedful keys list` shows, such as hk_ab12cd34, got 'hk_x'"),
        (
            "scopes hk_x --scope read",
            "prefix: expected one that `heedful keys list` shows, such as hk_ab12cd34, got 'hk_x'",
        ),
        ("scopes hk_x", "--scope: expected at least one of decide, feedback, read, admin, metrics, got none of them"),
    ],
)
def test_what_makes_no_sense_is_a_sentence_and_makes_nothing(folder: Path, line: str, told: str) -> None:
    bad(heedful(f"keys {line}"), told)
    assert list(folder.iterdir()) == []


def test_a_key_given_for_something_else_is_not_repeated() -> None:
    text = created()
    for line in (f"create {text}", f"create x --tenant {text}", f"create x --scope {text}", f"revoke {text}"):
        err = refusal(f"keys {line}")
        assert f"{text[:12]}..." in err
        assert text[12:20] not in err


# ---------------------------------------------------------------------------- list


def test_no_key_is_a_note(folder: Path) -> None:
    assert refusal("keys list", code=0) == "no key was ever made here; make one: heedful keys create NAME"
    assert (heedful("keys list --json").json, list(folder.iterdir())) == ([], [])


def test_keys_are_listed(folder: Path) -> None:
    prefixes = [created("keys create [red]")[:11], created("keys create two --tenant t2 --rate 5 --scope read")[:11]]
    assert heedful(f"keys revoke {prefixes[0]}").code == 0
    got = done("keys list")
    when = r"\d{4}-\d\d-\d\d \d\d:\d\d UTC"
    assert re.search(
        rf"{prefixes[0]} +\[red\] +main +decide, feedback, read, admin, metrics +{when} +revoked {when}", got.out
    )
    assert re.search(rf"{prefixes[1]} +two +t2 +read +5 +{when} *\n", got.out)
    for title in ("prefix", "name", "tenant", "scopes", "rate", "made", "last used", "ends"):
        assert title in got.out
    listed = heedful("keys list --json").json
    assert [each["prefix"] for each in listed] == prefixes
    assert [each["revoked"] is None for each in listed] == [False, True]
    assert set(listed[0]) == {"prefix", "name", "tenant", "scopes", "rate", "created", "revoked", "expires", "used"}
    narrow = heedful("keys list", width=60).out
    assert all(prefix in narrow for prefix in prefixes)  # whole: it is what `revoke` wants


# ---------------------------------------------------------------------------- revoke and scopes


def test_a_key_is_revoked(folder: Path) -> None:
    prefix = created()[:11]
    two, three = (created(f"keys create {name}")[:11] for name in ("two --scope admin", "three --scope read"))
    got = done(f"keys revoke {prefix}")
    assert re.fullmatch(rf"{prefix} \(ci\) is revoked: .* UTC\n", got.out)
    again = heedful(f"keys revoke {prefix}")
    assert (again.code, again.out) == (0, got.out.replace("is revoked", "was revoked before"))
    key, *_ = Keys(folder).all()
    assert heedful(f"keys revoke {prefix} --json").json["revoked"] == key.revoked
    warned = heedful(f"keys revoke {two}").err
    assert warned == "heedful: no key of tenant main may admin any more: only heedful keys create makes others\n"
    warned = heedful(f"keys revoke {three}").err
    assert warned == "heedful: tenant main has no key any more: nobody gets in until heedful keys create makes one\n"
    told = f"prefix: expected a key that was not revoked, got '{prefix}'; make a new one"
    bad(heedful(f"keys scopes {prefix} --scope read"), told)


def test_scopes_are_set(folder: Path) -> None:
    prefix = created()[:11]
    got = heedful(f"keys scopes {prefix} --scope read --scope decide")
    assert (got.code, got.out, got.err) == (0, f"{prefix} (ci) may now decide, read\n", "")
    assert heedful(f"keys scopes {prefix} --scope admin --json").json["scopes"] == ["admin"]
    [key] = Keys(folder).all()
    assert key.scopes == {"admin"}
    told = "--scope: expected at least one of decide, feedback, read, admin, metrics, got none of them"
    bad(heedful(f"keys scopes {prefix}"), told)


def test_a_server_says_at_its_start_whom_it_lets_in(folder: Path) -> None:
    from heedful.cli.serve import _keys_note

    keys = Keys(folder)
    made = "heedful keys create NAME"
    assert _keys_note(keys.all(), made).endswith(f"everybody on this machine may do everything; {made}")
    first, _ = keys.create("first")
    assert _keys_note(keys.all(), made) == "every request needs a key (1 key)"
    second, _ = keys.create("second")
    assert _keys_note(keys.all(), made) == "every request needs a key (2 keys)"
    for key in (first, second):
        keys.revoke(key.prefix)
    assert _keys_note(keys.all(), made) == f"every request needs a key, and all keys were revoked; {made}"


# ---------------------------------------------------------------------------- what is missing or broken

LINES = ["create x", "list", "revoke hk_ab12cd34", "scopes hk_ab12cd34 --scope read"]


@pytest.mark.slow
def test_no_extra_is_needed(folder: Path) -> None:
    """Keys are made where a server is not installed."""
    program = "import sys\nfor name in ('starlette', 'uvicorn', 'httptools', 'prometheus_client', 'jinja2', 'PIL'):\n"
    program += "    sys.modules[name] = None\nfrom heedful.cli import app; app(sys.argv[1:])"
    lines = (["keys", "create", "ci"], ["keys", "list", "--json"], ["keys", "create", "--help"])
    for line in lines:
        got = subprocess.run([sys.executable, "-c", program, *line], capture_output=True, text=True, check=False)
        assert got.returncode == 0, got.stderr
    assert "Example: heedful keys create" in got.stdout
    assert [key.name for key in Keys(folder).all()] == ["ci"]
    assert heedful("keys").out == heedful("keys --help").out


@pytest.mark.parametrize("line", LINES)
def test_a_database_that_is_damaged_is_no_fault_of_the_input(folder: Path, line: str) -> None:
    (folder / "server.db").write_bytes(b"not a database" * 1000)
    assert refusal(f"keys {line}", code=1).startswith(f"{folder / 'server.db'}: expected a whole database of keys, got")


@pytest.mark.parametrize("line", ["list", "revoke {}", "scopes {} --scope read"])
def test_a_damaged_row_is_no_fault_of_the_input(folder: Path, line: str) -> None:
    prefix = created()[:11]
    with Keys(folder)._database.writing() as connection:
        connection.execute("UPDATE keys SET tenant = '../x'")
    assert "restore a back-up" in refusal(f"keys {line}", prefix, code=1)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_a_sentence(folder: Path) -> None:
    folder.chmod(0o500)
    try:
        got = heedful("keys create ci")
    finally:
        folder.chmod(0o700)
    assert (got.code, got.out) == (1, "")
    assert got.err == f"heedful: {folder / 'server.db'}: Permission denied\n"


def test_serving_a_loop_instead_of_its_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "cars.heedful").mkdir()
    (tmp_path / "cars.heedful" / "log.db").touch()
    assert "DIR: expected the folder that loops are in" in refusal(f"serve {tmp_path / 'cars.heedful'}")


# ---------------------------------------------------------------------------- expiry, last use, audit


def test_a_key_that_expires_says_when_and_when_it_was_used(folder: Path) -> None:
    got = heedful("keys create ci --expires 90d")
    assert re.search(r"\nheedful: it expires on \d{4}-\d\d-\d\d \d\d:\d\d UTC\n", got.err)
    with closing(Keys(folder)) as keys:
        [key] = keys.all()
        assert key.expires is not None
        assert 89 * 86_400 < key.expires / 1e6 - time.time() <= 90 * 86_400
        keys.record_uses({key.prefix: 1_600_000_000_000_000})
    assert "2020-09-13 12:26 UTC" in done("keys list").out
    for wrong in ("90", "0d", "1w", "-1d", "100000d", "d"):
        told = "--expires: expected a number of days or hours, such as 90d or 12h, got"
        assert told in refusal(f"keys create x --expires={wrong}")


def test_what_was_done_with_keys_is_listed() -> None:
    assert refusal("keys audit", code=0) == "nothing was done with a key yet"
    prefix = created()[:11]
    assert heedful(f"keys revoke {prefix}").code == 0
    lines = [line for line in done("keys audit").out.splitlines() if prefix in line]
    assert ["revoke key" in lines[0], "make key" in lines[1]] == [True, True]
    newest, first = heedful("keys audit --json").json
    assert (newest["action"], newest["about"], newest["key"]) == ("revoke key", prefix, "")
    assert newest["id"] > first["id"]
    assert len(heedful("keys audit --json --limit 1").json) == 1
