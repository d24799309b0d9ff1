"""What was done with the keys of a server: the entries of its audit log, which name no person."""

from __future__ import annotations

from typing import NamedTuple


class Act(NamedTuple):
    """One thing that was done with a key, or to a key."""

    id: int
    """its number: later acts have larger ones"""
    time: int
    """when it was done, in microseconds since 1970, UTC"""
    key: str
    """the prefix of the key with which it was done; "" if none was needed, as for a command on the
    machine of the server"""
    tenant: str
    """the tenant of that key"""
    action: str
    """what was done, such as "promote" or "forget" """
    loop: str
    """the name of the loop that it was done to; "" if it was done to a key"""
    about: str
    """the prefix of the key that was made or changed; "" otherwise"""
    request: str
    """the id of the request (header X-Request-Id); "" for a command"""


class Acts(NamedTuple):
    """A page of the audit log of the key's tenant."""

    acts: tuple[Act, ...]
    """the newest first"""
