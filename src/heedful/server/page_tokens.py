"""Tokens with which a browser may report clicks on one decision, and do nothing else.

A page cannot keep a key: anyone who sees the page can read it. So the page's own server, which has a key, signs a token
for each list that it shows. A token is a JSON Web Token (RFC 7519) with HMAC-SHA256, so that any language's library
makes one, without a request:

- header: {"alg": "HS256", "typ": "JWT", "kid": the key's prefix, hk_xxxxxxxx};
- claims: {"loop": its name, "decision": the decision's id, "exp": when it ends, in seconds since 1970};
- signing key: the 32 bytes of SHA-256 of the API key's whole text, which this server stores as the key's digest.

So nothing is stored for a token, every server of the same keys knows it, and it ends with its key. Decision 34 says
what that costs."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from datetime import UTC, datetime
from hmac import compare_digest, digest
from typing import Literal, NoReturn

import msgspec

from heedful.core.validation import describe
from heedful.server.auth import CachedKey, Caller
from heedful.server.problems import Problem

LONGEST = 7 * 86_400.0
"""The most seconds for which a token may be valid."""
CLOCKS = 300.0
"""By how many seconds the clock of the page's server may be ahead of this one's, for a token of the longest time."""
LENGTH = 4096
"""The most characters of a token; one with the longest names has about 1,600."""
_PARTS = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)")


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    alg: Literal["HS256"]
    kid: str
    """the prefix of the key that signed it"""
    typ: Literal["JWT"] = "JWT"


class _Claims(msgspec.Struct, forbid_unknown_fields=True):
    # What is not known is refused: it may be meant to restrict the token ("aud", "nbf").
    loop: str
    decision: str
    exp: float
    """seconds since 1970"""
    iat: float | None = None
    """when it was made, which some libraries add; not used"""


def check_token(
    token: str, loop: str, decision: str, signer_of: Callable[[str], CachedKey | None], now: float
) -> Caller:
    """Return whose key signed a `token` that is good for feedback on `decision` of `loop` at the time `now`.

    `signer_of(prefix)` returns the valid key with that prefix, None if there is none; `now` is in seconds since 1970.
    Raise Problem (403), which names what is wrong, if the token is not good for that. No text has any of the token."""
    parts = _PARTS.fullmatch(token) if len(token) <= LENGTH else None
    if parts is None:
        _refuse("token", "expected a JSON Web Token, three parts with dots between, got another text (not shown)")
    try:
        header = msgspec.json.decode(_decoded(parts[1]), type=_Header)
        claims = msgspec.json.decode(_decoded(parts[2]), type=_Claims)
    except ValueError:  # also what msgspec raises
        detail = 'with "alg" HS256 and "kid" in its header, and "loop", "decision" and "exp" as claims'
        _refuse("token", f"expected a JSON Web Token {detail}, got another")
    signer = signer_of(header.kid)
    signed = f"{parts[1]}.{parts[2]}".encode()
    # Compared as text: the last letter of a signature has two bits that say nothing.
    if signer is None or not compare_digest(_encoded(digest(signer.digest, signed, "sha256")), parts[3]):
        detail = "this one was changed, or signed with something else, or its key is unknown, revoked or expired"
        _refuse("token", f"expected one that was signed with a key of this server; {detail}")
    if "feedback" not in signer.caller.scopes:
        _refuse("token", "expected one that was signed with a key that may 'feedback', got one whose key may not")
    if not claims.exp > now:
        _refuse("token", f"expected one that has not ended, got one that ended at {_moment(claims.exp)}")
    if claims.exp > now + LONGEST + CLOCKS:
        days = f"{LONGEST / 86_400:g} days"
        _refuse("token", f"expected one that ends within {days}, got one that ends at {_moment(claims.exp)}")
    if claims.loop != loop:
        _refuse("loop", f"expected {describe(claims.loop)}, for which the token was made, got {describe(loop)}")
    if claims.decision != decision:
        detail = f"expected {describe(claims.decision)}, for which the token was made, got {describe(decision)}"
        _refuse("decision", detail)
    return signer.caller


def _decoded(part: str) -> bytes:
    return urlsafe_b64decode(part + "=" * (-len(part) % 4))


def _encoded(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()


def _moment(seconds: float) -> str:
    """Return a time, in seconds since 1970, as text; as a number if no calendar has it."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"{seconds:g}"


def _refuse(field: str, detail: str) -> NoReturn:
    raise Problem("bad-token", f"{field}: {detail}", field=field)
