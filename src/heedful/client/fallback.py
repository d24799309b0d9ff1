"""What is shown while the server does not answer, and how feedback on that stays true.

A page cannot wait. Where the server is slow, away or ill, `decide` returns the caller's own order, and that is what a
person sees. What is hard is the answer to it, because nobody knows what became of the request. It may never have
arrived. It may have been decided and logged, and only the answer was lost. It may still be under way, to be decided
in a minute. So there may be two lists: the one in the server's log, that nobody saw, and the one that was shown.

The client asks under an id that it makes itself (`asked`), unless the caller gave one. What is shown instead gets an
id of its own, `asked-fallback-DIGEST`, which is the fallback's `id`. Before feedback on it is sent, the client tells
the server what was shown, as a *recorded* decision (arm `imported`) of that id, at the time it was shown. Feedback
then goes to that one, always. Why not to the decision that the server may have made, where both lists agree?

- They agree by selection. In the control arm the server keeps the caller's order, which is just what is shown
  instead: there they always agree; in the learned arm rarely. To keep the feedback where they agree and drop
  the rest takes answers away from one arm only, and the comparison of the two, which is the proof that learning
  helps, is off by as much.
- A learner that swaps neighbours to let position cancel (`fair-pairs`) would get, of its swaps, only those that came
  out as the caller had it: position counts again.
- The probability that the server logged is that of its own draw. What was shown was not drawn.

With two ids no feedback is lost, none reaches a list that nobody saw, and whatever the server decided or will decide
late stays what an unseen page is anyway: a decision that nobody answers, in both arms alike. Nothing has to be known
about the order in which things arrive, and a bare id that travels through a page to another process is safe: it is
unknown until the list was told, and then feedback on it is refused, not misread. For that the id has to be the
decision's own, `d.id`; feedback under the id of the request is about the server's list.

The digest is of what was asked and shown. The same fallback again, after a reload while the server is still away, has
the same id, and telling it twice is telling it once; another order has another id. A probability is not told: how
often a server is away, and whether that has to do with the person, nobody knows.

A deferred decision that fell back counts as shown once it is activated, like any other: `activate` tells it.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy.typing as npt

from heedful.client import messages
from heedful.client.messages import Call, Reply
from heedful.core.validation import describe, is_number

Prior = Mapping[str, float] | Sequence[float] | npt.NDArray[Any] | None
"""The caller's score of each candidate: by name, or one for each; an array of any type of numbers."""

logger = logging.getLogger("heedful.client")

ARM = "fallback"
AWAY = (ConnectionError, TimeoutError, RuntimeError)
"""What is raised where the server is to blame, and not the request: it is away, busy, broken, or no heedful server."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What to show, and how it came about. Feedback names its `id`. It may be pickled."""

    id: str
    shown: tuple[str, ...]
    """names of candidates, best first"""
    probability: float | None
    """of showing just that; None where it is unknown"""
    version: int | None
    """the model's; None of a fallback"""
    arm: str
    """learned, control, sampled, imported; "fallback" where the server did not answer"""
    seq: int | None
    reason: str | None = None
    """why it fell back"""
    predicted: tuple[int | float | None, ...] | None = None
    """of each that is shown, its grade, its rating, how likely it is to be chosen, as the loop's kind has it; None of
    what is unknown, and altogether where nothing is predicted, and of a fallback"""
    unknown: tuple[str, ...] | None = None
    """what was asked for and is not on offer; None where all is, and of a fallback, which does not know"""
    deferred: bool = False
    telling: Call | None = field(default=None, repr=False, compare=False)
    """of a fallback, the request that tells the server what was shown; None where nothing was"""

    @property
    def fallback(self) -> bool:
        """whether this is the caller's own order, because the server did not answer"""
        return self.arm == ARM


class DecisionReply(msgspec.Struct, frozen=True):
    """A decision as the server says it."""

    id: str
    shown: tuple[str, ...]
    probability: float | None
    version: int
    arm: str
    seq: int
    predicted: tuple[int | float | None, ...] | None = None
    unknown: tuple[str, ...] | None = None


def decision_of(call: Call, reply: Reply, id: str, deferred: bool = False) -> Decision:
    """A reply as the decision of that id. Raises what the server said, or ConnectionError where it is something else,
    or another decision."""
    if not 200 <= reply.status < 300:
        raise messages.error_of(call, reply)
    said = messages.read(reply, DecisionReply)
    if said.id != id:
        raise ConnectionError(f"expected decision {describe(id)}, got {describe(said.id)}: an answer to somebody else")
    beside: dict[str, Any] = {"predicted": said.predicted, "unknown": said.unknown}
    return Decision(id, said.shown, said.probability, said.version, said.arm, said.seq, deferred=deferred, **beside)


def caller_order(names: Sequence[str], prior: Prior) -> list[str]:
    """The candidates by the caller's score, as the server's control arm has them: those without one count as average,
    ties stand as they were listed. Never raises: scores that make no sense are none."""
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


def _item(score: Any) -> Any:
    return score.item() if hasattr(score, "item") else score


def fall_back(path: str, asked: str, record: dict[str, Any], reason: str, deferred: bool) -> Decision:
    """The decision that stands in for the server's. `record` is what was asked, with what is `shown`."""
    shown = tuple(record["shown"])
    digest = hashlib.blake2b(messages.body([asked, record], messages.MSGPACK), digest_size=8).hexdigest()
    id = f"{asked[:150]}-fallback-{digest}"
    telling = None
    if shown:
        told = messages.body({**record, "id": id, "time": time.time_ns() // 1000}, messages.MSGPACK)
        telling = Call("POST", path, told, messages.MSGPACK)
    return Decision(id, shown, None, None, ARM, None, reason, deferred=deferred, telling=telling)


class Breaker:
    """Spares a dead server, and the callers that would wait for it. After some failures in a row nobody asks for a
    while, then one request tries again. Threads may share it."""

    def __init__(self, failures: int, pause: float, clock: Callable[[], float]) -> None:
        self.failures, self.pause, self.clock = failures, pause, clock
        self._in_a_row = 0
        self._until = 0.0
        self._turn = threading.Lock()

    def asks(self) -> bool:
        """Return whether to ask the server now."""
        if self._in_a_row < self.failures:
            return True
        with self._turn:
            now = self.clock()
            if now < self._until:
                return False
            self._until = now + self.pause  # this one tries; the others go on without
            return True

    def note_success(self) -> None:
        """The server is there."""
        self._in_a_row = 0

    def note_failure(self) -> None:
        """The server is slow, or not there."""
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
    """The newest fallbacks, by loop and id, so that feedback may name one by its id; which of them were told."""

    MOST = 1000

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], Decision | None] = {}
        self._turn = threading.Lock()

    def keep(self, loop: str, decision: Decision) -> None:
        """Remember a fallback."""
        self._put(loop, decision.id, decision)

    def mark_told(self, loop: str, decision: Decision) -> None:
        """The server knows what was shown."""
        self._put(loop, decision.id, None)

    def _put(self, loop: str, id: str, value: Decision | None) -> None:
        with self._turn:
            if self._kept.pop((loop, id), value) is None:
                value = None  # told once is told
            while len(self._kept) >= self.MOST:
                del self._kept[next(iter(self._kept))]
            self._kept[loop, id] = value

    def remaining(self) -> list[tuple[str, Decision]]:
        """Return (loop, fallback) of those that have not been told to the server."""
        with self._turn:
            return [(loop, decision) for (loop, _), decision in self._kept.items() if decision is not None]

    def forget(self, loop: str, person: str) -> None:
        """Drop the fallbacks shown to a person who is forgotten."""
        for where, decision in self.remaining():
            body = decision.telling.body if decision.telling is not None else None
            if where == loop and body is not None and str(msgspec.msgpack.decode(body).get("person")) == person:
                self.mark_told(loop, decision)

    def find(self, loop: str, decision: object) -> Decision | None:
        """The fallback that is still to be told before feedback on `decision`, itself or its id; None where none is."""
        given = decision if isinstance(decision, Decision) and decision.fallback else None
        id = given.id if given is not None else decision
        return self._kept.get((loop, id), given) if isinstance(id, str) else None
