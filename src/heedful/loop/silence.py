"""Silence as an answer: in a loop with the setting `none_after` a list that nobody has answered so many seconds after
it was shown is answered "none".

The answer is feedback in the log like any other, so the model learns from it. It is written with the next commit, and
its id is made of the decision's, so it counts once, whichever process commits. The time is that of the decisions in the
log, so an import is as silent as the log that it came from. Feedback that comes later takes the place of the answer
wherever answers are counted; the model has learned from both."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Collection

from heedful.core.validation import describe
from heedful.loop import records
from heedful.loop.history import History
from heedful.loop.log import Event, Log, now
from heedful.loop.packing import LoggedDecision
from heedful.loop.pending import PendingEvent
from heedful.loop.records import FeedbackRecord

NONE = FeedbackRecord("none")
"""The answer that silence stands for."""
PREFIX = "silence-"
"""What the ids of these answers begin with; the id of the decision follows."""
MOST = 20
"""How many of these answers are written with a commit, besides one for each decision since the last: after a quiet
night a commit takes a few milliseconds more, and an import keeps up."""
_PAYLOAD = records.encode(NONE)


def is_silence(event: Event) -> bool:
    """Return whether the feedback in `event` was written because nobody had answered."""
    return event.id.startswith(PREFIX)


def check_not_silent(id: str, decision: str, form: str) -> None:
    """Raise ValueError if the `id` of feedback of a `form` on a `decision` is kept for what silence says.

    What silence said elsewhere, in a log that is imported, is taken."""
    if id.startswith(PREFIX) and (form != NONE.form or id != id_of(decision)):
        whose = f"{PREFIX!r}, which the loop gives what silence says"
        raise ValueError(f"id: expected another beginning than {whose}, got {describe(id)}")


def broken_silences(history: History) -> set[int]:
    """Return the sequence numbers of the answers that silence stood for on lists that were answered later, by feedback
    that still counts: what counts answers leaves them out."""
    retractions, silent, broken = history.log.retractions(), dict[int | None, int](), set[int]()
    for event in history.log.events(kinds=["feedback"]):
        if is_silence(event):
            silent[event.target] = event.seq
        elif event.target in silent and event.seq not in retractions:
            broken.add(silent[event.target])
    return broken


class Unanswered:
    """The decisions of a log that nobody has answered so far, and when each was shown, in the order of the log."""

    def __init__(self, log: Log, none_after: float) -> None:
        """Read `log` back to the newest decision whose silence was an answer, after `none_after` seconds: what came
        before that one is settled. To be called in a transaction."""
        self._wait = round(1e6 * none_after)
        self._until = self._since = settled = 0
        waiting, done = list[tuple[int, int]](), set[int]()
        for seq, kind, target, time, id in log.moments_back():
            if seq <= settled:
                break
            about = target or seq
            if kind == "feedback" and not settled and id.startswith(PREFIX):
                settled = about
            elif kind != "feedback" and about not in done:
                waiting.append((about, min(time, now())))
            if kind == "decision":
                self._until = max(self._until, min(time, now()))
                done.discard(about)
            else:
                done.add(about)
        self._shown = OrderedDict(waiting[::-1])

    def take(self, seq: int, kind: str, target: int | None, time: int) -> None:
        """Take in an event of the log: its sequence number, its kind, the event that it is about, and its time."""
        time = min(time, now())  # another system may say what it likes
        if kind == "decision":
            self._shown[seq] = time
            self._since += 1
            self._until = max(self._until, time)
        elif kind == "activate" and target is not None:
            self._shown.pop(target, None)
            self._shown[target] = time
        elif kind == "feedback" and target is not None:
            self._shown.pop(target, None)

    def answers(self, history: History, pending: Collection[PendingEvent]) -> list[PendingEvent]:
        """Return the answers to the oldest lists on which none has come in time, to be written together with
        `pending`, which may have some; they are dropped here.

        The log of `history` is that of these decisions."""
        answered = {each.event.target for each in pending if each.event.kind == "feedback"}
        made = [each.event.time for each in pending if each.again]
        if not made and not answered:
            return []  # decisions that are imported, for instance: the feedback on them comes with the next commit
        until, over = max((self._until, *made)), list[int]()
        for seq, shown in self._shown.items():
            if until - shown < self._wait or len(over) >= MOST + self._since:
                break
            if seq not in answered:
                over.append(seq)
        self._since = 0
        due = {seq: self._shown.pop(seq) + self._wait for seq in over}
        there = {event.seq: event for event in history.log.many(over)} if over else {}
        known = [history.decision(there[seq]) for seq in over if seq in there]  # or else somebody was forgotten
        return [_answer(each, due[each.seq]) for each in known if _asks(history.log, each)]


def _asks(log: Log, decision: LoggedDecision) -> bool:
    """Return whether a decision has shown anything of which people could say something."""
    record = decision.record
    return bool(record.shown) and (not record.deferred or log.find("activate", decision.id) is not None)


def id_of(decision: str) -> str:
    """Return the id of the answer that silence is to the decision with the id `decision`."""
    id = PREFIX + decision
    return (
        id if len(id) <= records.LONGEST_ID else PREFIX + hashlib.blake2b(decision.encode(), digest_size=16).hexdigest()
    )


def _answer(decision: LoggedDecision, time: int) -> PendingEvent:
    return PendingEvent(Event(0, "feedback", id_of(decision.id), time, None, decision.seq, 0, _PAYLOAD), decision, NONE)
