"""Which server a loop's requests go to, where several serve one database.

One server at a time owns a loop in a database; another one answers requests that would write with 503 and the owner's
address. The client sends the request there, and later ones at once."""

from __future__ import annotations

from collections.abc import Callable

AGAIN_AFTER = 5.0
"""Seconds for which an address is not used again after it could not be reached."""


class Owners:
    """The addresses of the servers that own loops, by loop, as other servers have told; and which of these addresses
    could not be reached from here lately."""

    def __init__(self, may_ask: Callable[[str], bool]) -> None:
        """Use addresses of which `may_ask` is True: requests, which have the client's key, may be sent there."""
        self._may_ask = may_ask
        self._found: dict[str, str] = {}
        self._away: dict[str, float] = {}

    def of(self, loop: str) -> str:
        """Return the address of the server that owns `loop`, a URL; "" if no other server than the client's own is
        known."""
        return self._found.get(loop, "")

    def note(self, loop: str, address: str, now: float) -> bool:
        """Note that `address`, a URL, is that of the server that owns `loop`; return False, and forget it, if nothing
        may be sent there, or if it could not be reached within `AGAIN_AFTER` seconds before `now`."""
        if (address in self._away and now < self._away[address] + AGAIN_AFTER) or not self._may_ask(address):
            return False
        self._found[loop] = address
        return True

    def lose(self, loop: str, reached: bool, now: float) -> None:
        """Note that the server that owned `loop` did not answer, at the time `now`, in seconds; the client's own is
        asked next. If it was not even `reached`, its address is not used again for `AGAIN_AFTER` seconds."""
        address = self._found.pop(loop, "")
        if address and not reached:
            self._away[address] = now
