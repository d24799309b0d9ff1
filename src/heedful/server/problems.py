"""Errors as answers: problem details for HTTP APIs (RFC 9457)."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from heedful.server.server_log import log, request_id
from heedful.storage import Closed, Damaged, Moved, Newer, OutOfConnections, Owned, Unreachable

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
    "misdirected": (421, "Another server owns the loop"),
    "wrong-host": (421, "Not for this host"),
    "bad-input": (422, "A field is wrong"),
    "too-many": (429, "Too many requests"),
    "damaged": (500, "Something is broken here"),
    "unavailable": (503, "Not now"),
}
"""The kinds of problems: kind -> (HTTP status, title)."""

OWNER = "Heedful-Owner"
"""The header of an answer that says which server owns the loop."""

FILES = 6
"""The number of files that an open loop has open."""

_FULL, _CLOSED = "the disk is full", "a file of the server cannot be read, or cannot be written, by its user"
_OF_THE_DISK = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: "a file of the server may not grow any more",
    errno.EACCES: _CLOSED,
    errno.EPERM: _CLOSED,
    errno.EROFS: "a file of the server cannot be written, and is only read",
    errno.EIO: "a file of the server cannot be read or written: a full or broken disk, or one that is read-only",
}
"""What the system says of a file, in words for answers: nothing is damaged, and it may pass."""

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
        """Return the problem as JSON, with the id of the request."""
        if known := request_id():
            self.members.setdefault("request_id", known)
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


def _log_cause(cause: str, error: Exception) -> None:
    """Log an error of the `cause`, for all loops once in a while."""
    log.error("%s: %s", cause, error, extra={"cause": cause})


def as_problem(error: Exception, lookup: str = "bad-input") -> Problem:
    """Return the Problem that answers an error; a LookupError becomes one of the kind `lookup`.

    An error that is not the caller's fault is logged here, and the answer gives no details of it. A Problem is returned
    itself, but without traceback and cause. Otherwise each refusal would leave a reference cycle: the caller keeps the
    Problem in a variable, and its traceback refers to the frame that has this variable."""
    if isinstance(error, Problem):
        error.__context__ = error.__cause__ = None
        return error.with_traceback(None)
    if isinstance(error, FileExistsError):
        return Problem("exists", "there is a loop of that name")
    if isinstance(error, Owned):
        detail = "another server owns this loop at the moment; nothing was changed: send it again"
        if not error.owner:
            return unavailable(detail)
        return Problem("misdirected", detail, headers={OWNER: error.owner}, owner=error.owner)
    if isinstance(error, Newer):
        _log_cause("a log of another version", error)
        detail = "a newer heedful has written the log of this loop; nothing was changed: ask a server of that version"
        return unavailable(detail, 60)
    if isinstance(error, OutOfConnections):
        _log_cause("out of connections", error)
        return unavailable("the database has no connection left; nothing was changed: send it again")
    if isinstance(error, Unreachable):
        detail = "the database cannot be reached; whether anything was changed is not known: send it again, with its id"
        return unavailable(detail)
    if isinstance(error, TimeoutError | InterruptedError):
        return unavailable("somebody else has been writing for too long; nothing was changed: send it again")
    if isinstance(error, OSError) and out_of_files(error):
        _log_cause("no more files may be opened", error)
        return unavailable("the server has as many files open as it may; nothing was changed: send it again")
    if isinstance(error, OSError) and error.errno in _OF_THE_DISK:
        _log_cause(_OF_THE_DISK[error.errno], error)
        return unavailable(f"{_OF_THE_DISK[error.errno]}; nothing was changed", 60)
    if isinstance(error, Moved):  # the next request gets what is in its place
        log.warning("%s", error)
        return unavailable("the loop's folder was moved or replaced; nothing was changed: send it again")
    inside = isinstance(error, Closed | Damaged | KeyError | IndexError)
    if isinstance(error, LookupError) and not inside:
        return bad_input(str(error)) if lookup == "bad-input" else Problem(lookup, str(error))
    if isinstance(error, ValueError) and not inside:
        return bad_input(str(error))
    log.error("a request failed", exc_info=error)
    return Problem("damaged", "the request failed for a reason that is in the server's log; nothing of it was kept")
