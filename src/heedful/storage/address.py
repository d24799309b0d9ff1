"""Where something is stored in a PostgreSQL database: the database's URL and a name in it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

SCHEMES = ("postgresql://", "postgres://")
_HOST = r"(?:\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._~%-]*)(?::[0-9]*)?"
_PARTS = re.compile(rf"(\w+://)(?:([^:@/]*)(?::[^@/]*)?@)?({_HOST}(?:,{_HOST})*(?:/[A-Za-z0-9._~%$-]*)?)(?:\?[^@]*)?")
"""The scheme, the user, and hosts with the name of the database, of a URL from which nothing of a password can be left
in these: an "@" or "/" of its own would be."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""A name of a loop, or of a tenant, that has a place in a URL."""
SUFFIX = ".heedful"
LOG = "log.db"
"""The file with the log of a loop, in the loop's folder."""
_URL = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]+):/")


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

    @property
    def plain(self) -> bool:
        """whether it is clear what of the URL is the password, so that the rest of it may be shown"""
        return _PARTS.fullmatch(self.url) is not None

    def __str__(self) -> str:
        """Return the address as it may be shown: without a password or other parameters.

        Nothing but the scheme is shown of a URL of which it is not clear what the password is."""
        match = _PARTS.fullmatch(self.url)
        scheme, user, rest = match.groups() if match else ("postgresql://", "", "...")
        shown = f"{scheme}{user}@{rest}" if user else f"{scheme}{rest}"
        return f"{shown}#{self.key}" if self.key else shown

    def __truediv__(self, name: str) -> Address:
        """Return the address of `name` within this one: of a tenant, or of a loop, whose ending ".heedful" is left
        out."""
        name = name.removesuffix(SUFFIX)
        return Address(self.url, f"{self.key}/{name}" if self.key else name)

    def check_name(self) -> None:
        """Raise ValueError unless a loop can be made under this name, so that a server can serve it."""
        parts = self.key.split("/")
        if len(parts) > 2 or not all(NAME.fullmatch(each) and not each.endswith(SUFFIX) for each in parts):
            told = "expected NAME or TENANT/NAME, of letters, digits, '.', '_' and '-', first a letter or digit"
            raise ValueError(f"name: {told}, got {self.key!r:.120}")


Place = Path | Address
"""Where a loop is: its folder, or its address in a database."""


def is_address(given: object) -> bool:
    """Return whether `given` is the URL of a PostgreSQL database, as a text."""
    return isinstance(given, str) and given.startswith(SCHEMES)


def shown_path(given: object) -> str:
    """Return a path as it may be shown: of one that is a URL, in which there may be a password, only the scheme."""
    text = str(given)
    match = _URL.match(text)
    return f"{match[1]}://..." if match else text


def place_of(given: str | os.PathLike[str] | Address) -> Place:
    """Return the place that `given` names: the path of a folder, or the `Address` for
    "postgresql://HOST/DATABASE#NAME".

    Raise ValueError for a URL of another scheme, and for what is no path."""
    if isinstance(given, Address):
        return given
    from heedful.core.validation import check_path  # which brings numpy

    check_path("path", given, "a folder or postgresql://HOST/DATABASE#NAME")
    if isinstance(given, str) and is_address(given):
        url, _, key = given.rpartition("#")
        if not url or "@" in key:  # then the "#" is in the password
            url, key = given, ""
        return Address(url, key.removesuffix(SUFFIX))
    if isinstance(given, str) and _URL.match(given):
        raise ValueError(f"expected a folder or postgresql://HOST/DATABASE#NAME, got one of {shown_path(given)}")
    return Path(given)
