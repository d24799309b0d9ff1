"""Decisions over HTTP: what to show, what was shown, and telling the server what was shown while it did not answer.

Methods are written once for both clients: see `heedful.client.sync_async`. Reasons for the fallback are in
`heedful.client.fallback`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy.typing as npt

from heedful.client import messages
from heedful.client.decide_request import DecideRequest
from heedful.client.fallback import AWAY, Decision, Prior, decision_of, logger
from heedful.client.messages import MSGPACK, Call, Failure, Reply, answer_of
from heedful.client.operations import Operations, id_of
from heedful.client.sync_async import Steps, either
from heedful.core.ids import new_id
from heedful.core.validation import describe, list_of
from heedful.results.answers import Answer

T = TypeVar("T")
Time = int | str | None


class DecisionOperations(Operations):
    """The methods of a loop on a server about decisions: what to show, and what was shown."""

    name: str
    """the name of the loop"""
    identifier: str
    """the attribute that names candidates given as objects"""
    _few: dict[str, int]
    """how many items a loop shows, by loop, if it is known to show fewer than asked: a single item, or a pair"""

    @either
    def decide(
        self,
        candidates: Sequence[object] | None = None,
        *,
        features: npt.ArrayLike | None = None,
        person: str | None = None,
        context: Mapping[str, object] | None = None,
        prior: Prior = None,
        show: int | None = None,
        id: str | None = None,
        deferred: bool = False,
        repeats: bool | None = None,
        strict: bool | None = None,
        after: str | Decision | None = None,
    ) -> Steps[Decision]:
        """Return what to show, best first, within `timeout` seconds.

        The loop decides. If the server does not answer in time, the result is a fallback: the caller's own order, with
        the `arm` "fallback".

        - `candidates`: names of items on offer (None: all), or mappings with attributes of their own, in the caller's
          order.
        - `features`, in place of `candidates`: N numbers for each of m candidates (m, N), whose names are then "0",
          "1", ....
        - `person`, `context`: the name of the person, and attributes of the request.
        - `prior`: the caller's own scores of the candidates, higher is better.
        - `show`: how many items to show.
        - `id`: the id of the decision; a repeated request with it returns the same decision.
        - `deferred`: the decision counts as shown only once `activate` says so.
        - `repeats`: what the person has already answered may be shown again.
        - `after`: for the next page of a list, the decision for the page before, or its id. What that page showed is
          left out. A fallback leaves it out only if `after` is a decision, or if it was a fallback, too.

        The result's `predicted` has the prediction for each item shown. It is None in a fallback, which also does not
        know what the person has already answered. A candidate that is not on offer keeps the position that your score
        gives it, or comes last, and is reported in `unknown`. A name that comes twice counts once. No candidates give
        an empty list. Hits of a search engine are taken as they are. With `strict` these are refused.

        Raise ValueError, LookupError or PermissionError if the request is wrong. A server that does not answer raises
        nothing."""
        about = {"person": person, "context": context}
        untold = None if after is None else self._untold.find(self.name, after)
        before = after if isinstance(after, Decision) else untold
        begins = after is None or (untold is not None and untold.telling is None)  # that one showed nothing
        how = {"repeats": repeats, "strict": strict, "after": None if begins else id_of(after)}
        question = DecideRequest(self.name, candidates, features, prior, show, id, deferred, how, **about)
        reason = "the server did not answer lately"
        if self._breaker.asks():
            until = self._clock() + self.timeout
            outcome: Reply | Failure | None = None
            if untold is not None and untold.telling is not None:  # the server has to know the page before
                outcome = yield untold.telling._replace(timeout=self.timeout)
                if isinstance(outcome, Reply) and outcome.status < 500:  # told, or refused, which the next call says
                    outcome = None
            if outcome is None:
                outcome = yield self._within(question.call, until)
            if isinstance(outcome, Failure) and outcome.sent and not outcome.timed_out and self._clock() < until:
                # A connection kept from before may have been closed by the server: once more, on a new one.
                outcome = yield self._within(question.call, until)
            result = self._decision_of(question, outcome)
            if isinstance(result, Decision):
                if untold is not None:
                    self._untold.mark_told(self.name, untold)
                return result
            reason = result
        decision = question.fallback(reason, self.identifier, self._few.get(self.name), before.shown if before else ())
        self._untold.keep(self.name, decision)
        return decision

    def _decision_of(self, question: DecideRequest, outcome: Reply | Failure) -> Decision | str:
        """Return the decision in `outcome`, the server's answer to `question`; if the server failed, return the reason
        as text."""
        if isinstance(outcome, Failure):
            self._breaker.note_failure()
            reason = outcome.reason
        else:
            self._breaker.note_success()
            try:
                decision = decision_of(question.call, outcome, question.id, question.deferred)
                if question.is_cut(len(decision.shown), self.identifier):
                    self._few[self.name] = max(len(decision.shown), self._few.get(self.name, 1))
                return decision
            except AWAY as error:
                reason = str(error)
        logger.warning("%s: decision %s is the caller's own order: %s", self.name, describe(question.id), reason)
        return reason

    @either
    def record(
        self,
        candidates: Sequence[object],
        shown: Sequence[str],
        *,
        id: str | None = None,
        person: str | None = None,
        context: Mapping[str, object] | None = None,
        prior: Prior = None,
        probability: float | None = None,
        time: Time = None,
        strict: bool | None = None,
    ) -> Steps[Decision]:
        """Log a decision that another system made, so that feedback on it teaches; return it as logged.

        `shown` are the names of the items shown, best first, among the `candidates`; `probability` is that of showing
        just this list, if known; `time` is when it was shown (microseconds since 1970 or ISO 8601; None: now). The
        other arguments are those of `decide`."""
        event = new_id() if id is None else str(id)
        fields = messages.present_fields(
            person=person, context=context, prior=prior, probability=probability, time=time
        )
        fields |= messages.present_fields(strict=strict)
        fields |= {
            "candidates": list_of("candidates", candidates, "names or of objects"),
            "shown": list_of("shown", shown, "names"),
            "id": event,
        }
        call = Call("POST", self._path("records"), messages.body(fields, MSGPACK), MSGPACK)
        return decision_of(call, (yield from self._ask(call)), event)

    @either
    def tell(self, decision: str | Decision) -> Steps[bool]:
        """Report a fallback to the server: a decision made because the server did not answer. Return whether there was
        one.

        Feedback on a fallback does so by itself. Call this if fallbacks that nobody answers should be in the log as
        well. A deferred decision is to be activated instead, if it was shown."""
        untold = self._untold.find(self.name, decision)
        if untold is None or untold.telling is None:
            return False
        yield from self._tell(self.name, untold, untold.telling)
        return True

    @either
    def activate(self, decision: str | Decision, *, time: Time = None) -> Steps[Answer]:
        """Say that a deferred decision was shown after all, at `time` (None: now); return the answer to that event."""
        id = id_of(decision)
        untold = self._untold.find(self.name, decision)
        if untold is not None and untold.telling is not None:
            try:
                logged = yield from self._tell(self.name, untold, untold.telling)
            except (ValueError, LookupError) as error:
                return Answer("rejected", id, None, 0, reason=str(error))
            return Answer("applied", id, logged.seq, logged.version or 0)
        return (yield from self._post(id, messages.present_fields(decision=id, time=time), "activate"))

    def _path(self, *parts: str, **query: object) -> str:
        return messages.path("loops", self.name, *parts, **query)

    def _get(self, result: type[T], *parts: str, long: bool = False, **query: object) -> Steps[T]:
        """Return what the server answers to GET at a path of the loop, as a `result`."""
        return messages.read_as((yield from self._ask(Call("GET", self._path(*parts, **query)), long=long)), result)

    def _post(self, event: str, fields: Mapping[str, object], *parts: str, long: bool = False) -> Steps[Answer]:
        """Return what became of the event with the id `event`, whose `fields` are sent to a path of the loop."""
        call = Call("POST", self._path(*parts), messages.body(fields))
        return answer_of((yield from self._ask(call, long=long)), event)
