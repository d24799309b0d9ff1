"""How a call is asked until it is answered; what is asked of the server itself. Written once: see
`heedful.client.sync_async`."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from heedful.client import messages
from heedful.client.fallback import Breaker, Decision, UntoldFallbacks, decision_of, logger
from heedful.client.messages import MSGPACK, Call, Failure, Reply, Wait
from heedful.client.sync_async import Steps, either
from heedful.core.validation import describe
from heedful.data.frames import Frame, rows_in
from heedful.loop.interactions.facts import Facts

LEAST = 0.02
"""Seconds that must be left for asking again to make sense."""
LONG = 600.0
"""Seconds, once connected, for what may have to fold a whole log."""
MOST, SIZE = 1000, 1 << 20
"""Of a batch: events, bytes. More at once is no quicker, and other callers of the server wait for it."""


class About(Facts, frozen=True, kw_only=True):
    """A loop as the server describes it."""

    name: str
    learner: str
    version: int
    identifier: str = "id"
    """the column, or attribute, that names an item"""
    features: int
    """how many numbers a row of `decide(features=...)` has"""
    names: list[str]
    items: int
    events: dict[str, int]
    """how many there are of each kind"""
    settings: dict[str, object]
    caveats: list[str] = msgspec.field(default_factory=list)
    notes: list[str] = msgspec.field(default_factory=list)
    unknown: dict[str, int] = msgspec.field(default_factory=dict)


class Operations:
    """The settings that clients and their loops share: how long to wait, and when to try again."""

    timeout: float
    patience: float
    _breaker: Breaker
    _untold: UntoldFallbacks
    _clock = staticmethod(time.monotonic)

    def _ask(self, call: Call, repeat: bool = True, long: bool = False) -> Steps[Reply]:
        """The answer to a call, asked again until `patience` has run out. `repeat` where a call may arrive twice: then
        it is also sent again where nobody knows whether it arrived. `long` where an answer may take LONG seconds: then
        patience is for connecting alone. Raises what the server said."""
        started = self._clock()
        until, pause = started + self.patience, 0.05
        while True:
            share = max(min(until - self._clock(), max(self.patience / 3, self.timeout)), 0.001)
            outcome = yield call._replace(timeout=LONG, connect=share) if long else call._replace(timeout=share)
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
                    outcome = outcome._replace(told=f"no {what} within {self._clock() - started:.3g} s")
                raise messages.error_of(call, outcome)
            yield Wait(wait)
            pause = min(2.0 * pause, 2.0)

    def _tell(self, loop: str, decision: Decision, telling: Call) -> Steps[Decision]:
        """Tell what was shown; the decision as the server has it. ValueError, LookupError where it cannot take it."""
        try:
            told = decision_of(telling, (yield from self._ask(telling)), decision.id)
        except ValueError as error:
            # It was told before, and an item has changed since. The id says that it is the same.
            if not str(error).startswith("id:"):
                raise
            told = decision
        self._untold.mark_told(loop, decision)
        return told


class ClientOperations(Operations):
    """The methods of a client: questions about the server itself."""

    @either
    def loops(self) -> Steps[list[str]]:
        """The names of the loops."""
        reply = yield from self._ask(Call("GET", messages.path("loops")))
        return messages.read(reply, _Loops).loops

    @either
    def healthy(self) -> Steps[bool]:
        """Return whether the server answers that it is well; it is asked once."""
        outcome = yield Call("GET", "/healthz", timeout=max(self.timeout, 1.0))
        return isinstance(outcome, Reply) and outcome.status == 200

    @either
    def tell_fallbacks(self) -> Steps[int]:
        """Tell the server what this client showed while it was away, in all loops; how many decisions it took.

        Feedback on a fallback does so by itself. Do it now and then where feedback comes through other processes, or
        where what nobody answered should be in the log as well. Deferred decisions are left to `activate`.
        """
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

    def _create(
        self,
        name: str,
        items: Iterable[Mapping[str, object]] | Frame,
        learner: str | None,
        settings: Mapping[str, object] | None,
        identifier: str | None,
        kinds: Mapping[str, str] | None,
        context: Iterable[Mapping[str, object]] | None,
        crosses: Iterable[Sequence[str]] | None,
        features: bool | None = None,
        query_features: Mapping[str, object] | None = None,
    ) -> Steps[About]:
        fields = messages.present_fields(
            learner=learner, settings=settings, identifier=identifier, kinds=kinds, features=features
        )
        fields |= {"name": name, "items": list_of("items", rows_in("items", items), "objects")}
        if context is not None:
            fields["context"] = list_of("context", context, "objects")
        if query_features is not None:
            fields["query_features"] = query_features
        if crosses is not None:
            fields["crosses"] = [list(pair) for pair in crosses]
        call = Call("POST", messages.path("loops"), messages.body(fields, MSGPACK), MSGPACK)
        return messages.read((yield from self._ask(call, repeat=False, long=True)), About)


class _Loops(msgspec.Struct):
    loops: list[str]


def id_of(decision: object) -> Any:
    """The id of a decision, or what was given as one."""
    return decision.id if hasattr(decision, "id") and hasattr(decision, "shown") else decision


def list_of(name: str, values: object, expected: str) -> list[Any]:
    """Return values as a list. Raise ValueError for a text, a mapping, or anything that is no sequence."""
    single = isinstance(values, np.ndarray) and values.ndim == 0
    if single or isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise ValueError(f"{name}: expected a list of {expected}, got {describe(values)}")
    found: list[Any] = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return found
