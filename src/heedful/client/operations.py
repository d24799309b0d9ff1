"""How a request is repeated until it is answered, and the methods of a client that are about the server itself.

Methods are written once for both clients: see `heedful.client.sync_async`."""

from __future__ import annotations

import random
import time
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from heedful.client import messages
from heedful.client.fallback import Breaker, Decision, UntoldFallbacks, decision_of, logger
from heedful.client.messages import MSGPACK, Call, Failure, Reply, Wait
from heedful.client.sync_async import Steps, either
from heedful.core.validation import describe, list_of
from heedful.data.frames import Frame, rows_in
from heedful.results.about import About, Loops

Row = Mapping[str, object]
Loop = TypeVar("Loop")
"""a loop of the client"""

LEAST = 0.02
"""Seconds that must be left for another try to make sense."""
LONG = 600.0
"""Seconds, once connected, for requests that may have to replay a whole log."""
MOST, SIZE = 1000, 1 << 20
"""The most events, and about the most bytes, of a batch. Larger ones are no faster, and delay other callers."""


class Operations:
    """What a client and its loops share: time limits, a circuit breaker, and the fallbacks that the server has yet to
    be told of."""

    timeout: float
    """seconds after which `decide` returns a fallback, the caller's own order"""
    patience: float
    """seconds for which all other requests are repeated until they are answered"""
    _breaker: Breaker
    """says whether the server should be asked now, after failures"""
    _untold: UntoldFallbacks
    """fallbacks that are yet to be reported to the server"""
    _clock = staticmethod(time.monotonic)

    def _within(self, call: Call, until: float) -> Call:
        """Return `call` with the time that is left up to `until`, a time of the client's clock."""
        return call._replace(timeout=max(until - self._clock(), 0.001))

    def _ask(self, call: Call, repeat: bool = True, long: bool = False) -> Steps[Reply]:
        """Return the server's reply to `call`, which is sent again until `patience` has run out. Raise the server's
        error.

        With `repeat`, it is sent again even if an earlier one may have arrived. With `long`, the answer may take up to
        LONG seconds, and `patience` is for connecting only."""
        started = self._clock()
        until, pause = started + self.patience, 0.05
        while True:
            share = max(min(until - self._clock(), max(self.patience / 3, self.timeout)), 0.001)
            timed = call._replace(timeout=LONG, connect=share) if long else call._replace(timeout=share)
            outcome: Reply | Failure = yield timed
            if isinstance(outcome, Reply):
                if 200 <= outcome.status < 300 or (
                    outcome.status == 409 and messages.kind_of(outcome) in messages.REJECTED
                ):
                    return outcome
                again = outcome.status in (429, 503) or (repeat and outcome.status in (408, 502, 504))
            else:
                again = repeat or not outcome.sent
            wait = max(messages.retry_after(outcome), pause * random.uniform(0.5, 1.0))
            if not again or self._clock() + wait + LEAST > until:
                if isinstance(outcome, Failure) and outcome.timed_out:  # of all tries, not of the last alone
                    what = "answer" if outcome.sent else "connection"
                    outcome = outcome._replace(reason=f"no {what} within {self._clock() - started:.3g} s")
                raise messages.error_of(call, outcome)
            yield Wait(wait)
            pause = min(2.0 * pause, 2.0)

    def _tell(self, loop: str, decision: Decision, telling: Call) -> Steps[Decision]:
        """Report a fallback (a decision made because the server did not answer) to the server; return it as logged."""
        try:
            logged = decision_of(telling, (yield from self._ask(telling)), decision.id)
        except ValueError as error:
            # It was told before, and an item has changed since. The id says that it is the same.
            if not str(error).startswith("id:"):
                raise
            logged = decision
        self._untold.mark_told(loop, decision)
        return logged


class ClientOperations(Operations, Generic[Loop]):
    """The methods of a client that are about the server as a whole, not one loop."""

    @either
    def loops(self) -> Steps[list[str]]:
        """Return the names of the loops that the key may see."""
        reply = yield from self._ask(Call("GET", messages.path("loops")))
        return list(messages.read_as(reply, Loops).loops)

    @either
    def healthy(self) -> Steps[bool]:
        """Return whether the server answers that it is ready; this sends a single request."""
        outcome = yield Call("GET", "/healthz", timeout=max(self.timeout, 1.0))
        return isinstance(outcome, Reply) and outcome.status == 200

    @either
    def tell_fallbacks(self) -> Steps[int]:
        """Report all fallbacks (decisions made because the server did not answer) to the server; return how many it
        took.

        Feedback on a fallback does so by itself. Call this now and then if feedback comes through other processes, or
        if fallbacks that nobody answers should be in the log as well. Deferred decisions are left to `activate`."""
        count = 0
        for loop, decision in self._untold.remaining():
            if decision.telling is None or decision.deferred:
                continue
            try:
                yield from self._tell(loop, decision, decision.telling)
                count += 1
            except (ValueError, LookupError) as error:
                logger.warning("%s: what decision %s showed cannot be told: %s", loop, describe(decision.id), error)
                self._untold.mark_told(loop, decision)
        return count

    @abstractmethod
    def loop(self, name: str, *, identifier: str = "id") -> Loop:
        """Return the loop called `name`; nothing is sent yet.

        `identifier` is the attribute that names candidates given as objects, which a fallback needs to know."""

    @either
    def create(
        self,
        name: str,
        items: Iterable[Row] | Frame,
        *,
        learner: str | None = None,
        settings: Mapping[str, object] | None = None,
        identifier: str | None = None,
        kinds: Mapping[str, str] | None = None,
        context: Iterable[Row] | None = None,
        crosses: Iterable[Sequence[str]] | None = None,
        features: bool | None = None,
        query_features: Mapping[str, object] | None = None,
    ) -> Steps[Loop]:
        """Create a loop called `name` on the server, with these `items` on offer, and return it.

        `learner`, `settings`, `identifier` (the column that names items), `kinds` (of columns), `context` (rows that
        describe requests), `crosses` (pairs of context and item columns to multiply) are those of `heedful init`.
        `features` says whether a loop that asks which of two items is better learns from the items' columns.
        `query_features` describes what each request says of each item: {"bm25": (0, 40), "source": ["web", "app"]}.
        Raise FileExistsError if there is a loop of that name."""
        fields = messages.present_fields(
            learner=learner,
            settings=settings,
            identifier=identifier,
            kinds=kinds,
            features=features,
            query_features=query_features,
        )
        fields |= {"name": name, "items": list_of("items", rows_in("items", items), "objects")}
        if context is not None:
            fields["context"] = list_of("context", context, "objects")
        if crosses is not None:
            fields["crosses"] = [list(pair) for pair in crosses]
        call = Call("POST", messages.path("loops"), messages.body(fields, MSGPACK), MSGPACK)
        about = messages.read_as((yield from self._ask(call, repeat=False, long=True)), About)
        return self.loop(name, identifier=about.identifier)


def id_of(decision: object) -> Any:
    """Return the id of `decision` if it is a Decision; anything else is taken as an id and returned as it is."""
    return decision.id if hasattr(decision, "id") and hasattr(decision, "shown") else decision
