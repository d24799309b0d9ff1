"""Checks of a request's head (request line and headers) that are stricter than the parser's: RFC 9112 and RFC 9110.

A proxy in between could read an ambiguous head as another request (request smuggling). No ordinary client sends what is
refused here."""

from __future__ import annotations

import re
from collections.abc import Sequence

Lines = Sequence[tuple[bytes, bytes]]
"""(name, value) of each header as it came, names in lower case."""

_AUTHORITY = rb"(?:\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9._~-]|%[0-9A-Fa-f]{2})*)(?::[0-9]{0,5})?"
_HOST = re.compile(_AUTHORITY)
_ABSOLUTE = re.compile(rb"https?://(?=[^:/?])(" + _AUTHORITY + rb")(/[^?]*)?(\?.*)?", re.IGNORECASE)
_ONCE = (b"host", b"authorization", b"content-type", b"idempotency-key", b"origin", b"sec-fetch-site")
OFFER = (b"upgrade", b"http2-settings")
"""The names of headers that offer to switch to another protocol."""


def fault(version: str, target: bytes, headers: Lines) -> str | None:
    """Return what is wrong with the head of a request, as "Host: expected ..., got ..."; None if nothing is.

    `version` is the HTTP version of the request line ("1.1"), `target` its target (path and query, or a URL), `headers`
    are its (name, value) lines, all as they were received."""
    if version not in ("1.0", "1.1"):
        return f"request: expected HTTP/1.1, got version {version}"
    if b"#" in target or not (target.startswith(b"/") or _ABSOLUTE.fullmatch(target)):
        return "request: expected a path, or http:// and a host before it, got another target"
    names = [name for name, _ in headers]
    for name in _ONCE:
        if names.count(name) > 1:
            return f"{name.decode().title()}: expected it once, got it {names.count(name)} times"
    if b"host" not in names and version == "1.1":  # RFC 9112, 3.2
        return "Host: expected the name of a host, got none"
    codings = [value for name, value in headers if name == b"transfer-encoding"]
    if codings and version == "1.0":  # RFC 9112, 6.1
        return "Transfer-Encoding: expected none with HTTP/1.0, got one"
    if codings and codings[0].lower() != b"chunked":
        return "Transfer-Encoding: expected chunked, and nothing else, got another"
    for name, value in headers:
        if name == b"host" and not _HOST.fullmatch(value.strip(b" \t")):
            return "Host: expected the name of a host, perhaps with a port, got something else"
    return None


def split_target(target: bytes) -> tuple[bytes | None, bytes]:
    """Return (authority, path and query) of a request's target; the authority is None if the target is only a path.

    `target` has passed `fault`. By RFC 9112, 3.2.2, the authority (host and port) in a target takes precedence over the
    Host header."""
    if target.startswith(b"/"):
        return None, target
    match = _ABSOLUTE.fullmatch(target)
    assert match is not None, "faults are looked for first"
    return match[1], (match[2] or b"/") + (match[3] or b"")
