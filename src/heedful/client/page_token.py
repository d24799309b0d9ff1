"""Tokens with which a web page may report clicks on one decision, made from the key without a request.

`heedful.server.page_tokens` says what one holds; a token is a JSON Web Token (RFC 7519), which any library makes."""

from __future__ import annotations

import hmac
import time
from base64 import urlsafe_b64encode
from hashlib import sha256

import msgspec

from heedful.core.validation import check_between

HOUR = 3600.0
WEEK = 7 * 86_400.0
PREFIX = len("hk_12345678")
"""Characters of a key that identify it."""


def page_token(key: str, loop: str, decision: str, seconds: float = HOUR) -> str:
    """Return a token for reporting clicks on the decision with the id `decision` of the loop called `loop`.

    It is valid for `seconds`, at most a week, and as long as `key`, which has to have the scope `feedback`. Raise
    ValueError if `seconds` is out of range."""
    check_between("seconds", seconds, 1.0, WEEK)
    header = {"alg": "HS256", "typ": "JWT", "kid": key[:PREFIX]}
    claims = {"loop": loop, "decision": decision, "exp": round(time.time() + seconds, 3)}
    signed = f"{_encoded(msgspec.json.encode(header))}.{_encoded(msgspec.json.encode(claims))}"
    signature = hmac.digest(sha256(key.encode()).digest(), signed.encode(), "sha256")
    return f"{signed}.{_encoded(signature)}"


def _encoded(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()
