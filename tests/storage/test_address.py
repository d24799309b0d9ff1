"""Addresses of loops in a database: read, shown without secrets."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from heedful.storage import Address, Damaged, Unreachable, is_address, place_of, postgres
from heedful.storage.address import shown_path


@pytest.mark.parametrize(
    ("given", "shown", "key"),
    [
        ("postgresql://me:secret@host:5433/db?sslmode=require#cars", "postgresql://me@host:5433/db#cars", "cars"),
        ("postgres://host/db#acme/cars.heedful", "postgres://host/db#acme/cars", "acme/cars"),
        ("postgresql:///db?host=/run&password=secret", "postgresql:///db", ""),
        ("postgresql://:secret@host/db#a", "postgresql://host/db#a", "a"),
    ],
)
def test_an_address_is_shown_without_its_password(given: str, shown: str, key: str) -> None:
    place = place_of(given)
    assert isinstance(place, Address)
    assert str(place) == shown
    assert place.key == key
    assert "secret" not in f"{place!r}{place}"
    assert place.url == given.partition("#")[0]
    assert place_of(place) is place


AWKWARD = [
    "p#secret",
    "p/secret",
    "p@secret",
    "p?secret",
    "p%zzsecret",
    "p secret",
    "12/secret",
    "12#secret",
    "p@#secret",
]
"""Passwords as people have them, not encoded for a URL; libpq takes some and refuses others."""


@pytest.mark.parametrize("name", ["", "#cars", "#acme/cars"])
@pytest.mark.parametrize("password", AWKWARD)
def test_what_of_an_address_cannot_be_read_is_not_shown(password: str, name: str) -> None:
    place = place_of(f"postgresql://me:{password}@127.0.0.1:1/db{name}")
    assert isinstance(place, Address)
    assert place.url == f"postgresql://me:{password}@127.0.0.1:1/db"
    assert place.key == name[1:]
    shown = [str(place), repr(place), str(place / "cars"), str(Address(place.url))]
    if find_spec("psycopg") is not None:
        with pytest.raises((Unreachable, Damaged)) as refused:
            postgres.Server(place).connect()
        shown.append(str(refused.value))
    for text in shown:
        assert "secret" not in text
        assert "zz" not in text
        assert "12" not in text.replace("127.0.0.1", "")


@pytest.mark.parametrize(
    "given",
    ["postgresql+psycopg://me:secret@host/db", "Postgres://me:secret@host/db#cars", "mysql://me:secret@host/db"],
)
def test_the_address_of_another_database_is_no_folder(given: str) -> None:
    with pytest.raises(ValueError, match=r"expected a folder or postgresql://.*, got one of .*://") as refused:
        place_of(given)
    assert "secret" not in str(refused.value)
    for path in (given, Path(given)):
        assert "secret" not in shown_path(path)
    assert shown_path("here/cars.heedful") == "here/cars.heedful"


def test_names_within() -> None:
    there = Address("postgresql://host/db")
    assert there / "acme" / "cars.heedful" == Address("postgresql://host/db", "acme/cars")
    assert (there / "acme" / "cars").name == "cars"


def test_a_path_is_no_address() -> None:
    assert place_of("postgres/cars") == Path("postgres/cars")
    assert not is_address(Path("postgresql://host/db"))


@pytest.mark.parametrize("name", ["../x", "/x", "a/b/c", "x y", "", "x.heedful.heedful", "é", "x\n"])
def test_a_loop_in_a_database_has_a_name_that_a_server_can_serve(name: str) -> None:
    with pytest.raises(ValueError, match=r"^name: expected NAME or TENANT/NAME, of letters, digits, "):
        (Address("postgresql://there/loops") / name).check_name()
    for good in ("cars", "shop/cars", "a.b_c-1"):
        (Address("postgresql://there/loops") / good).check_name()
