"""Errors as answers: problem details for HTTP APIs (RFC 9457)."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from typing import Any

import msgspec

TITLES = {
    "malformed": (400, "The request cannot be read"),
    "no-key": (401, "A key is required"),
    "no-scope": (403, "The key may not do this"),
    "wrong-origin": (403, "Not from this page"),
    "bad-token": (403, "The token is not for this"),
    "not-found": (404, "Not found"),
    "not-allowed": (405, "Not with this method"),
    "too-slow": (408, "The request did not arrive in time"),
    "rejected": (409, "Rejected"),
    "lost-decision": (409, "The decision is not on the disk"),
    "exists": (409, "It is there already"),
    "too-large": (413, "The request is too large"),
    "unsupported": (415, "Not in this form"),
    "wrong-host": (421, "Not for this host"),
    "bad-input": (422, "A field is wrong"),
    "too-many": (429, "Too many requests"),
    "damaged": (500, "Something is broken here"),
    "unavailable": (503, "Not now"),
}
"""The kinds of problems: kind -> (HTTP status, title)."""

FILES = 6
"""The number of files that an open loop has open."""

_KEY = re.compile(r"(hk[_-][a-z0-9_-]{8})[a-z0-9_-]{20,}", re.IGNORECASE)
_FIELD = re.compile(r"([A-Za-z_][\w-]*(?:\[[^\]]*\])*): ")


class Problem(Exception):
    """An error with its HTTP answer, raised anywhere between a request and its answer."""

    def __init__(
        self, kind: str, detail: str, *, field: str | None = None, headers: Mapping[str, str] | None = None, **more: Any
    ) -> None:
        """Describe a problem of a `kind` in TITLES.

        `detail` is a sentence for people, `field` names the field that is wrong, `headers` are those of the answer, and
        `more` are further members of the JSON object."""
        detail = mask_keys(detail)
        super().__init__(detail)
        self.kind = kind
        self.status, self.title = TITLES[kind]
        self.headers = dict(headers or {})
        self.members = {
            "type": f"urn:heedful:problem:{kind}",
            "title": self.title,
            "status": self.status,
            "detail": detail,
            **({"field": field} if field is not None else {}),
            **more,
        }

    @property
    def body(self) -> bytes:
        """Return the problem as JSON."""
        return msgspec.json.encode(self.members)


def unavailable(detail: str, seconds: int = 1) -> Problem:
    """Return the Problem (503) that says why, `detail`, and after how many `seconds` to try again."""
    return Problem("unavailable", detail, headers={"Retry-After": str(seconds)})


def mask_keys(text: str) -> str:
    """Return `text` with each API key in it cut to its first characters, followed by "_...".

    Texts that look like a key, hk_ or hk-, 8 and at least 20 more letters, digits, "_" or "-", are cut too, so that a
    mistyped key is not shown."""
    return _KEY.sub(r"\1_...", text)


def out_of_files(error: OSError) -> bool:
    """Return whether `error` came because the process, or the machine, may open no more files.

    SQLite's errors do not say so. For these, try to open some files, while the work that failed still holds its own."""
    if error.errno != errno.EIO:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    held: list[int] = []
    try:
        while len(held) < FILES + 2:  # to open one it takes two more for a moment
            held.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return True
    finally:
        for file in held:
            os.close(file)
    return False


def bad_input(message: str) -> Problem:
    """Return the error text `message`, "field: expected ..., got ...", as a Problem (422) that names the field."""
    match = _FIELD.match(message)
    return Problem("bad-input", message, field=match[1] if match else None)
