"""Authentication and authorisation of requests, by keys. Thousands of requests a second pass here, on the event
loop."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from hmac import compare_digest
from typing import NamedTuple, NoReturn

from heedful.core.times import day
from heedful.core.validation import describe
from heedful.server.keys import SCOPES, Key, Keys, Stamp, check_rate, in_order
from heedful.server.problems import Problem
from heedful.server.rate_limit import Bucket
from heedful.server.server_log import log
from heedful.storage.sqlite import WAIT

BURST = 2.0, 10.0
"""How many requests may come at once: the rate times the first number (seconds), but at least the second number."""

_PAUSE = 0.1  # seconds between two looks at the database because of keys that nobody knows
_LENGTH = len("Bearer hk_12345678_") + 43
_HEADER = re.compile(rb"[Bb][Ee][Aa][Rr][Ee][Rr] hk_[a-z0-9]{8}_[A-Za-z0-9_-]{43}")
_LOOPBACK = rb"(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?"
_HOST = re.compile(_LOOPBACK, re.IGNORECASE)
_ORIGIN = re.compile(rb"https?://" + _LOOPBACK, re.IGNORECASE)


class Caller(NamedTuple):
    """The sender of a request, by its API key: the tenant whose loops it may use, and what it may do with them."""

    tenant: str
    """the name of the tenant, whose loops the request may use"""
    scopes: frozenset[str]
    """what the key may do: some of `keys.SCOPES`; all of them if no key was ever made"""
    prefix: str
    """the first characters of the key, which identify it; "" if no key was ever made"""


class CachedKey(Bucket):
    """A valid API key as it is cached in memory: whose it is, its digest, and its rate limit, a bucket of tokens.

    Tokens of pages are signed with its digest (`heedful.server.page_tokens`)."""

    __slots__ = ("caller", "digest", "ends", "pages", "recorded", "used")

    def __init__(self, caller: Caller, digest: bytes, rate: float | None, now: float) -> None:
        super().__init__(rate, _most(rate), now)
        self.caller, self.digest = caller, digest
        self.pages = Bucket(rate, _most(rate), now)
        """the same limit for the clicks of pages, so that visitors cannot use up that of the key's own requests"""
        self.ends = math.inf
        """when it expires, in seconds since 1970"""
        self.used = self.recorded = 0.0
        """when it was last used, here and as the database says, in seconds since 1970; 0 if never"""

    @property
    def expired(self) -> bool:
        """whether its time is over"""
        return time.time() >= self.ends


def _most(rate: float | None) -> float:
    return 0.0 if rate is None else max(BURST[1], BURST[0] * rate)


class Authenticator:
    """Admits HTTP requests that have a valid key, within the key's scopes and rate.

    As long as no key was ever made, it admits all requests from this machine. Changes in the database take effect
    within `every` seconds, a new key at once. Keys are known by their digests only. If the database cannot be read,
    nobody is admitted."""

    def __init__(
        self,
        keys: Keys,
        *,
        rate: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        every: float = 0.5,
    ) -> None:
        """Admit requests that have one of `keys`; an error of reading these is raised here.

        `rate`, in requests per second, limits keys that have no rate of their own (None: no limit). `clock` gives
        seconds; the database is read for changes every `every` seconds."""
        self._keys, self._rate, self._clock, self._every = keys, check_rate(rate), clock, every
        self._entries: dict[bytes, CachedKey] = {}
        self._by_prefix: dict[str, CachedKey] = {}
        self._anybody = CachedKey(Caller("main", frozenset(SCOPES), ""), b"", self._rate, clock())
        self._ever = False  # whether a key was ever made: from then on one is needed, whatever happens to the file
        self._broken = ""  # the kind of problem that everybody gets as the keys cannot be read
        self._keyed = False  # whether keys are what decides
        self._stamp: Stamp | None = None
        self._trace: Stamp | None = ()
        self._next = clock()
        self._look(clock(), wait=WAIT)
        self.refresh()

    # ------------------------------------------------------------------------ a request

    def admit(
        self,
        authorization: bytes | None,
        host: bytes | None,
        origin: bytes | None,
        scope: str | None,
    ) -> Caller:
        """Return the sender of a request with the headers Authorization, Host and Origin (None for a missing one).

        Raise Problem unless their key has `scope` (None: any valid key will do) and their rate is not exceeded."""
        now = self._refreshed_time()
        if not self._keyed:
            entry = self._nearby(host, origin)
        elif authorization is None or len(authorization) != _LENGTH:
            _no_key()
        else:
            # The scheme is looked at for unknown digests only: `_HEADER` says what a key may look like.
            digest = sha256(authorization[7:]).digest()
            cached = self._entries.get(digest) or self._new_entry(digest, authorization, now)
            # A digest of 256 random bits is not to be guessed bit by bit; comparing again costs nothing.
            if cached is None or not compare_digest(cached.digest, digest):
                _no_key()
            if authorization[:7] != b"Bearer " and authorization[:7].lower() != b"bearer ":
                _no_key()
            entry = cached
        return self._check_scope_and_rate(entry, now, scope)

    def visit(self, prefix: str | None, host: bytes | None, origin: bytes | None) -> Caller:
        """Return the sender of a request for a page; `prefix` is that of the key with which they signed in (None:
        nobody is signed in).

        `host` and `origin` are headers of the request. Raise Problem if a key is needed and there is none, or if its
        rate is exceeded."""
        now = self._refreshed_time()
        if not self._keyed:
            return self._check_scope_and_rate(self._nearby(host, origin), now, None)
        entry = self._by_prefix.get(prefix) if prefix is not None else None
        if entry is None:
            _no_key()
        return self._check_scope_and_rate(entry, now, None)

    def _check_scope_and_rate(self, entry: CachedKey, now: float, scope: str | None) -> Caller:
        _note_use(entry)
        if entry.rate is not None:
            entry.take(now)
        caller = entry.caller
        if scope is not None and scope not in caller.scopes:
            refuse_scope(caller, scope)
        return caller

    def _refreshed_time(self) -> float:
        """Return the time by the clock, after reading changes from the database if that is due."""
        now = self._clock()
        if now >= self._due or (not self._keyed and self._keys.trace() != self._trace):
            self.refresh()
        return now

    def holds(self, caller: Caller, scope: str) -> bool:
        """Return whether a caller who was admitted earlier still has `scope`, by what the database says now."""
        if self._clock() >= self._due:
            self.refresh()
        if not caller.prefix:
            return not self._keyed and not self._broken
        entry = self._by_prefix.get(caller.prefix)
        return self._keyed and entry is not None and scope in entry.caller.scopes and not entry.expired

    def spend(self, caller: Caller, n: int) -> None:
        """Take the tokens of a batch, which counts as `n` requests of `caller`, but for the one that it took."""
        entry = self._by_prefix.get(caller.prefix) if caller.prefix else self._anybody
        if entry is not None and entry.rate is not None and n > 1:
            entry.tokens -= n - 1

    def signer(self, prefix: str) -> CachedKey | None:
        """Return the valid key with this `prefix`, by which tokens of pages are signed; None if there is none.

        Raise Problem if the keys cannot be read."""
        now = self._refreshed_time()
        if prefix not in self._by_prefix:
            self._look_for_new_keys(now)
        self._check_readable()
        entry = self._by_prefix.get(prefix)
        if entry is None or entry.expired:
            return None
        entry.used = time.time()
        return entry

    def spend_page(self, caller: Caller) -> None:
        """Charge a click that a page reports with a token of the key of `caller`. Raise Problem (429) if its rate is
        exceeded, which is as high as that of the key, and apart from it."""
        entry = self._by_prefix.get(caller.prefix)
        if entry is not None:
            entry.pages.take(self._clock())

    def _new_entry(self, digest: bytes, authorization: bytes, now: float) -> CachedKey | None:
        """Return the cached key with this `digest` if it was made since the keys were last read; else None."""
        if not _HEADER.fullmatch(authorization):
            return None
        self._look_for_new_keys(now)
        return self._entries.get(digest)

    def _look_for_new_keys(self, now: float) -> None:
        if now >= self._next or self._trace != self._keys.trace():
            self._next = now + _PAUSE
            self.refresh()

    def _nearby(self, host: bytes | None, origin: bytes | None) -> CachedKey:
        """Return the entry that all requests from this machine share as long as no key was ever made."""
        self._check_readable()
        if host is None or not _HOST.fullmatch(host):
            raise Problem("wrong-host", f"Host: expected localhost, 127.0.0.1 or [::1], got {_describe_header(host)}")
        if origin is not None and not _ORIGIN.fullmatch(origin):
            raise Problem(
                "wrong-origin", f"Origin: expected a page of this machine or none, got {_describe_header(origin)}"
            )
        return self._anybody

    def _check_readable(self) -> None:
        if self._broken:
            detail = "the keys cannot be read, so nobody is let in; the server's log says more"
            raise Problem(self._broken, detail, headers={"Retry-After": "1"} if self._broken == "unavailable" else None)

    @property
    def readable(self) -> bool:
        """whether the keys can be read, by what the database says now"""
        self._refreshed_time()
        return not self._broken

    @property
    def takes_keys(self) -> bool:
        """whether requests need a key, by what the database says now"""
        self._refreshed_time()
        return self._keyed

    def entries(self) -> list[CachedKey]:
        """Return all valid keys, those that have expired among them."""
        return list(self._by_prefix.values())

    def new_uses(self) -> dict[str, int]:
        """Return prefix -> when it was last used, in microseconds since 1970, of the keys of which the database does
        not say so yet."""
        used = {entry.caller.prefix: entry.used for entry in self.entries() if entry.used > entry.recorded}
        return {prefix: int(1e6 * seconds) for prefix, seconds in used.items()}

    # ------------------------------------------------------------------------ what the database says

    def refresh(self) -> None:
        """Read from the database which keys were made, changed or revoked."""
        now = self._clock()
        self._due = now + self._every
        trace = None
        try:
            trace = self._keys.trace()
            self._look(now)
            self._broken = ""
        except TimeoutError:
            return  # somebody is writing: until that is done what is known holds
        except (OSError, ValueError) as error:
            if not self._broken:
                log.error("%s", error)
            self._broken = "unavailable" if isinstance(error, OSError) else "damaged"
        self._trace = trace
        self._keyed = self._ever and not self._broken

    def _look(self, now: float, wait: float = 0.0) -> None:
        changes = self._keys.since(self._stamp, wait)
        if changes is not None:
            self._stamp = changes[0]
            self._ever |= bool(changes[1])
            self._take_over(changes[1], now)

    def _take_over(self, keys: list[Key], now: float) -> None:
        entries = {}
        for key in keys:
            if key.revoked is None:
                caller, entry = Caller(key.tenant, key.scopes, key.prefix), self._entries.get(key.digest)
                if entry is None:
                    entry = CachedKey(caller, key.digest, self._rate if key.rate is None else key.rate, now)
                entry.caller = caller  # its scopes may have changed
                entry.ends = math.inf if key.expires is None else key.expires / 1e6
                entry.recorded = (key.used or 0) / 1e6
                entries[key.digest] = entry
        self._entries = entries
        self._by_prefix = {entry.caller.prefix: entry for entry in entries.values()}


def _note_use(entry: CachedKey) -> None:
    """Note that a key is used now. Raise Problem (401) if it has expired."""
    now = time.time()
    if now >= entry.ends:
        detail = f"the key {entry.caller.prefix} expired on {day(int(1e6 * entry.ends))}; heedful keys create makes one"
        raise Problem("no-key", detail, headers={"WWW-Authenticate": "Bearer"})
    entry.used = now


def source(headers: Mapping[bytes, bytes]) -> bytes | None:
    """Return the origin of the web page that sent a request, by its `headers`; None if no page of another site did.

    This is the header Origin. Without one, as for an image, it is the header Sec-Fetch-Site if that names another
    site."""
    origin, site = headers.get(b"origin"), headers.get(b"sec-fetch-site")
    if origin is not None or site not in (b"cross-site", b"same-site"):
        return origin
    return None if headers.get(b"sec-fetch-mode") == b"navigate" else site


def _describe_header(header: bytes | None) -> str:
    return "none" if header is None else describe(header.decode("latin-1"))


def refuse_scope(caller: Caller, scope: str) -> NoReturn:
    """Raise the Problem that the key of `caller` lacks `scope`."""
    held = ", ".join(in_order(caller.scopes))
    detail = f"expected a key that may {scope!r}, got one that may: {held}"
    raise Problem("no-scope", f"{detail}; heedful keys scopes {caller.prefix} sets what it may")


def _no_key() -> NoReturn:
    """Raise the Problem for a request with a missing or invalid key; it does not say which."""
    detail = (
        "expected the header Authorization: Bearer and a key: none came, or one that is mistyped, unknown or revoked"
    )
    raise Problem("no-key", f"{detail}; heedful keys create makes one", headers={"WWW-Authenticate": "Bearer"})
