"""Where something is stored in a PostgreSQL database: the database's URL and a name in it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

SCHEMES = ("postgresql://", "postgres://")
_PARTS = re.compile(r"(\w+://)(?:([^:@/?]*)(?::[^@/?]*)?@)?([^?]*)")


@dataclass(frozen=True)
class Address:
    """The address of a loop in a PostgreSQL database, or, if `key` is empty, of the database as a folder of loops."""

    url: str = field(repr=False)
    """the URL of the database as psycopg takes it; it may contain a password"""
    key: str = ""
    """the name of the loop there: NAME, or TENANT/NAME"""

    @property
    def name(self) -> str:
        """the name of the loop without its tenant"""
        return self.key.rpartition("/")[2]

    def __str__(self) -> str:
        """Return the address as it may be shown: without a password or other parameters."""
        match = _PARTS.match(self.url)
        scheme, user, rest = match.groups() if match else ("", "", "")
        shown = f"{scheme}{user}@{rest}" if user else f"{scheme}{rest}"
        return f"{shown}#{self.key}" if self.key else shown

    def __truediv__(self, name: str) -> Address:
        """Return the address of `name` within this one: of a tenant, or of a loop, whose ending ".heedful" is left
        out."""
        name = name.removesuffix(".heedful")
        return Address(self.url, f"{self.key}/{name}" if self.key else name)


Place = Path | Address
"""Where a loop is: its folder, or its address in a database."""


def is_address(given: object) -> bool:
    """Return whether `given` is the URL of a PostgreSQL database, as a text."""
    return isinstance(given, str) and given.startswith(SCHEMES)


def place_of(given: str | os.PathLike[str] | Address) -> Place:
    """Return the place that `given` names: the path of a folder, or the `Address` for
    "postgresql://HOST/DATABASE#NAME"."""
    if isinstance(given, Address):
        return given
    if isinstance(given, str) and is_address(given):
        url, _, key = given.partition("#")
        return Address(url, key.removesuffix(".heedful"))
    return Path(given)
