"""The parsing of a loop's events (server-sent events), and when to connect again, without any network."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from heedful.client import messages
from heedful.client.messages import Call, Failure, Reply, error_of
from heedful.core.decoding import decoder
from heedful.core.validation import describe


class EventFollower:
    """The state of one follower of a loop's events: the next request, the parser, and when to connect again.

    `loop` is the loop's name, `after` the sequence number after which to begin, `kinds` are kinds of events (() for
    all). With `follow` it waits for new events. The server may be unreachable for `patience` seconds. `clock` gives
    seconds."""

    SILENCE = 45.0
    """seconds without a byte after which a connection counts as dead; the server sends something every 15"""

    def __init__(
        self, loop: str, after: int, kinds: Sequence[str], follow: bool, patience: float, clock: Callable[[], float]
    ) -> None:
        self.last = after
        self._loop, self._follow, self._patience, self._clock = loop, follow, patience, clock
        self._kinds = ",".join([kinds] if isinstance(kinds, str) else kinds) or None
        self._away: float | None = None  # since when the server has not answered
        self._tried = 0
        self._rest = b""

    def call(self) -> Call:
        """Return the request with which to connect now: for the events after the last one received."""
        if self._away is None:
            self._away = self._clock()
        self._rest = b""
        follow = "true" if self._follow else "false"
        path = messages.path("loops", self._loop, "events", after=self.last, kinds=self._kinds, follow=follow)
        return Call("GET", path, timeout=self.SILENCE, last_id=str(self.last))

    def start(self, content: str) -> None:
        """Note that the server answered, with the media type `content`. Raise ConnectionError if that is no stream of
        events."""
        if content.partition(";")[0].strip().lower() != "text/event-stream":
            message = f"events: expected text/event-stream, got {describe(content)}; is the url the server's?"
            raise ConnectionError(message)
        self._away = None

    def take(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        """Take a chunk of the stream; yield the events that are complete by now, none of them twice."""
        self._tried = 0
        *whole, self._rest = (self._rest + chunk).replace(b"\r\n", b"\n").split(b"\n\n")
        for block in whole:
            fields: dict[str, list[str]] = {}
            for line in block.decode(errors="replace").split("\n"):
                name, _, value = line.partition(":")
                fields.setdefault(name, []).append(value.removeprefix(" "))
            if "data" not in fields:
                continue  # a comment, so that the connection is not taken for dead
            event = self._event("\n".join(fields["data"]))
            seq = fields.get("id", ["0"])[-1]
            if not seq.isdigit() or int(seq) > self.last:  # what was seen before the connection broke is not said twice
                self.last = int(seq) if seq.isdigit() else self.last
                yield event

    @staticmethod
    def _event(text: str) -> dict[str, Any]:
        try:
            return decoder(dict[str, Any]).decode(text)
        except msgspec.MsgspecError:
            raise ConnectionError(
                f"events: expected JSON, got {describe(text[:40])}; is the url the server's?"
            ) from None

    def end(self, outcome: Reply | Failure | None) -> float | None:
        """Return the seconds to wait before connecting again, after the connection ended; None if all events were
        received.

        `outcome` is what went wrong, None for an orderly end. Raise the server's error, or ConnectionError or
        TimeoutError if it has been unreachable for too long."""
        if outcome is None and not self._follow:
            return None
        if isinstance(outcome, Reply) and outcome.status not in (408, 429, 502, 503, 504):
            raise error_of(self.call(), outcome)
        if self._away is None:
            self._away = self._clock()
        self._tried += 1
        wait = max(messages.retry_after(outcome) if outcome is not None else 0.0, self._pause())
        if outcome is not None and self._clock() + wait > self._away + self._patience:
            error = error_of(self.call(), outcome)
            raise type(error)(f"{error}; the last event was {self.last}") from None
        return wait

    def _pause(self) -> float:
        most: float = min(0.1 * 2.0 ** min(self._tried - 1, 10), 5.0)
        return most * random.uniform(0.5, 1.0)
