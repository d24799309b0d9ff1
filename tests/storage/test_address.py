"""Addresses of loops in a database: read, shown without secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from heedful.storage import Address, is_address, place_of


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


def test_names_within() -> None:
    there = Address("postgresql://host/db")
    assert there / "acme" / "cars.heedful" == Address("postgresql://host/db", "acme/cars")
    assert (there / "acme" / "cars").name == "cars"


def test_a_path_is_no_address() -> None:
    assert place_of("postgres/cars") == Path("postgres/cars")
    assert not is_address(Path("postgresql://host/db"))
