"""The fallback: what `decide` returns if the server does not answer, and why feedback on it stays valid.

A page cannot wait. If the server is slow, down or broken, `decide` returns the caller's own order, and that is what a
person sees. The difficulty is feedback on it, because the client does not know what became of its request. It may
never have arrived. It may have been decided and logged, and only the answer was lost. It may still be under way, and
be decided in a minute. So there may be two lists: the one in the server's log, which nobody saw, and the one shown.

The client asks under an id that it makes itself (`asked`), unless the caller gave one. What is shown instead gets an
id of its own, `asked-fallback-DIGEST`, which is the fallback's `id`. Before feedback on it is sent, the client tells
the server what was shown, as a *recorded* decision (arm `imported`) of that id, at the time it was shown. Feedback
then goes to that one, always. Why not to the decision that the server may have made, where both lists agree?

- They agree by selection. In the control arm the server keeps the caller's order, which is exactly what the fallback
  shows: there they always agree; in the learned arm rarely. To keep the feedback where they agree and drop the rest
  removes answers from one arm only, and biases the comparison of the two, which shows whether learning helps.
- A learner that swaps neighbours so that effects of position cancel (`posterior`) would see only those swaps that
  agree with the caller's order, and position has an effect again.
- The probability that the server logged is that of its own random draw. What was shown was not drawn.

With two ids no feedback is lost, and none is attributed to a list that nobody saw. What the server decided, or decides
late, is like any page that nobody looks at: a decision without feedback, in both arms alike. The order in which
requests arrive does not matter. An id that travels through a page to another process is safe: until the server is told
about the list, it refuses feedback on that id as unknown, and never takes it for feedback on another list. The id has
to be the decision's own, `d.id`; feedback under the id of the request is about the server's list.

The digest is of the request and the list shown. The same fallback again, after a reload while the server is still
down, has the same id, and telling the server twice counts once; another order has another id. No probability is
recorded: how often a server is down, and whether that depends on the person, is unknown.

A deferred decision that fell back counts as shown once it is activated, like any other: `activate` tells the server.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy.typing as npt

from heedful.client import messages
from heedful.client.messages import Call, Reply
from heedful.core.validation import describe, is_number

Prior = Mapping[str, float] | Sequence[float] | npt.NDArray[Any] | None
"""The caller's score of each candidate: by name, or a sequence in the order of the candidates."""

logger = logging.getLogger("heedful.client")

ARM = "fallback"
AWAY = (ConnectionError, TimeoutError, RuntimeError)
"""Exceptions that mean that the server is at fault, not the request: it is down, busy, broken, or no heedful server."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision: which items to show, and how it was made. Feedback names its `id`. It can be pickled."""

    id: str
    """the decision's id, which feedback on it names"""
    shown: tuple[str, ...]
    """names of the items to show, best first"""
    probability: float | None
    """the probability of showing exactly this list; None if it is unknown"""
    version: int | None
    """the version of the model; None for a fallback"""
    arm: str
    """what decided: "learned" (the model), "control" (the caller's order, for comparison), "sampled" (a random draw),
    "interleaved" (two learners), "imported" (another system), or "fallback" (the caller's order, as the server did not
    answer)"""
    seq: int | None
    """its sequence number in the loop's log; None for a fallback"""
    reason: str | None = None
    """why it is a fallback; None if it is not"""
    predicted: tuple[int | float | None, ...] | None = None
    """the prediction for each item shown: a grade, a rating, a probability of being chosen; None for an unknown item.
    None altogether if the loop predicts nothing, and for a fallback"""
    unknown: tuple[str, ...] | None = None
    """candidates that are not on offer; None if all are, and for a fallback, which does not know"""
    undeclared: tuple[str, ...] | None = None
    """fields of candidates and of the context that are no features of the loop, such as "candidates.bm25"; None if
    there are none, and for a fallback, which does not know"""
    sure: float | None = None
    """how probable it is, by what was learned, that the first item shown is better than the second (of one item, than
    the best other candidate); None if the learner cannot tell, and for a fallback"""
    deferred: bool = False
    """whether the list was requested before it is shown: it counts as shown once `activate` says so"""
    telling: Call | None = field(default=None, repr=False, compare=False)
    """for a fallback, the request that tells the server what was shown; None if nothing was"""

    @property
    def fallback(self) -> bool:
        """whether this is the caller's own order, because the server did not answer"""
        return self.arm == ARM


def decision_of(call: Call, reply: Reply, id: str, deferred: bool = False) -> Decision:
    """Return the decision with this `id` from a server's `reply` to `call`.

    `deferred` says whether the list was requested before it is shown. Raise the server's error, or ConnectionError if
    the reply is something else, or another decision."""
    if not 200 <= reply.status < 300:
        raise messages.error_of(call, reply)
    answer = messages.read(reply, Decision)
    if answer.id != id:
        raise ConnectionError(
            f"expected decision {describe(id)}, got {describe(answer.id)}: an answer to somebody else"
        )
    return replace(answer, deferred=deferred)


def caller_order(names: Sequence[str], prior: Prior) -> list[str]:
    """Return `names` by the caller's scores `prior`, highest first. Control lists of the server are in this order, too.

    Candidates without a score count as average; ties keep the given order. Invalid scores count as none, so that this
    never raises."""
    if isinstance(prior, Mapping):
        by_name = {str(name): score for name, score in prior.items()}
        scores = [by_name.get(name) for name in names]
    else:
        scores = list(prior) if prior is not None and len(prior) == len(names) else []
    numbers = [float(s) if is_number(s, int, float) and abs(s) <= 1e100 else None for s in map(_item, scores)]
    largest = max((abs(s) for s in numbers if s is not None), default=0.0)
    if largest == 0.0:
        return list(names)
    there = [s / largest for s in numbers if s is not None]
    mean = sum(there) / len(there)
    heights = [mean if s is None else s / largest for s in numbers]
    return [names[j] for j in sorted(range(len(names)), key=lambda j: -heights[j])]


def _item(score: object) -> Any:
    return score.item() if hasattr(score, "item") else score


def fall_back(path: str, request_id: str, record: dict[str, Any], reason: str, deferred: bool) -> Decision:
    """Return the fallback decision: the caller's own order, shown because the server did not answer.

    - `request_id`: the id of the request that was not answered.
    - `record`: its fields, together with the list `shown`; they are reported to the server at `path` before feedback.
    - `reason`: why the server's decision is missing.
    - `deferred`: whether the list was requested before it is shown."""
    shown = tuple(record["shown"])
    digest = hashlib.blake2b(messages.body([request_id, record], messages.MSGPACK), digest_size=8).hexdigest()
    id = f"{request_id[:150]}-fallback-{digest}"
    telling = None
    if shown:
        body = messages.body({**record, "id": id, "time": time.time_ns() // 1000}, messages.MSGPACK)
        telling = Call("POST", path, body, messages.MSGPACK)
    return Decision(id, shown, None, None, ARM, None, reason, deferred=deferred, telling=telling)


class Breaker:
    """A circuit breaker: after `failures` failures in a row the server is not asked for `pause` seconds.

    Then one request tries again. It can be shared by threads. `clock` gives seconds."""

    def __init__(self, failures: int, pause: float, clock: Callable[[], float]) -> None:
        self.failures, self.pause, self.clock = failures, pause, clock
        self._in_a_row = 0
        self._until = 0.0
        self._turn = threading.Lock()

    def asks(self) -> bool:
        """Return whether the server should be asked now."""
        if self._in_a_row < self.failures:
            return True
        with self._turn:
            now = self.clock()
            if now < self._until:
                return False
            self._until = now + self.pause  # this one tries; the others go on without
            return True

    def note_success(self) -> None:
        """Note that the server answered: the count of failures in a row starts again from 0."""
        self._in_a_row = 0

    def note_failure(self) -> None:
        """Count a failure of the server."""
        with self._turn:
            self._in_a_row += 1
            self._until = self.clock() + self.pause
            if self._in_a_row == self.failures:
                logger.warning(
                    "no answer %d times in a row: the caller's own order is shown, and the server is asked again "
                    "every %g s",
                    self.failures,
                    self.pause,
                )


class UntoldFallbacks:
    """The newest fallbacks (decisions that the client made because the server did not answer) that have not been
    reported to the server yet.

    They are kept so that feedback may name a fallback by its id."""

    MOST = 1000

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], Decision | None] = {}
        self._turn = threading.Lock()

    def keep(self, loop: str, decision: Decision) -> None:
        """Remember the fallback `decision` of `loop`, which the server does not know of yet."""
        self._put(loop, decision.id, decision)

    def mark_told(self, loop: str, decision: Decision) -> None:
        """Note that the fallback `decision` of the loop `loop` was reported to the server."""
        self._put(loop, decision.id, None)

    def _put(self, loop: str, id: str, value: Decision | None) -> None:
        with self._turn:
            if self._kept.pop((loop, id), value) is None:
                value = None  # told once is told
            while len(self._kept) >= self.MOST:
                del self._kept[next(iter(self._kept))]
            self._kept[loop, id] = value

    def remaining(self) -> list[tuple[str, Decision]]:
        """Return (loop, fallback) for each fallback that has not been reported to the server yet."""
        with self._turn:
            return [(loop, decision) for (loop, _), decision in self._kept.items() if decision is not None]

    def forget(self, loop: str, person: str) -> None:
        """Drop the fallbacks of `loop` that were shown to `person`, whose data are being erased."""
        for where, decision in self.remaining():
            body = decision.telling.body if decision.telling is not None else None
            if where == loop and body is not None and str(msgspec.msgpack.decode(body).get("person")) == person:
                self.mark_told(loop, decision)

    def find(self, loop: str, decision: object) -> Decision | None:
        """Return the fallback that `decision` (a Decision, or its id) names; None if it names none, or one that the
        server knows of.

        A fallback is a decision that the client made because the server did not answer."""
        fallback = decision if isinstance(decision, Decision) and decision.fallback else None
        id = fallback.id if fallback is not None else decision
        return self._kept.get((loop, id), fallback) if isinstance(id, str) else None
