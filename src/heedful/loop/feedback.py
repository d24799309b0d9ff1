"""Feedback as a caller gives it, checked and turned into an event for the log.

`FeedbackReader.read` checks it, `FeedbackReader.submit` waits until it is in the log and learned; the server submits
what came in many requests together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from heedful.core.validation import describe, is_number, list_of
from heedful.jit.kernel import Floats
from heedful.loop import records
from heedful.loop.interactions.forms import in_taken_form, known_forms, parse_feedback
from heedful.loop.interactions.protocol import why_refused
from heedful.loop.log import Event, now
from heedful.loop.packing import LoggedDecision
from heedful.loop.pending import PendingEvent
from heedful.loop.projection import Projection
from heedful.loop.records import FeedbackRecord
from heedful.loop.silence import check_not_silent
from heedful.loop.strangers import about_known
from heedful.results.answers import Answer
from heedful.storage import Closed, Damaged


class UnknownDecision(NamedTuple):
    """The result of reading feedback on a decision that this process does not find in the log.

    `event` is the id of the feedback, `decision` that of the decision. Another process may have made the decision
    meanwhile, or it was forgotten."""

    event: str
    """the id of the feedback"""
    decision: str
    """the id of the decision that it is about"""


class FeedbackReader:
    """Checks pieces of feedback and turns each into an event for the log, or into the answer that rejects it."""

    def __init__(self, projection: Projection) -> None:
        """Read feedback on the decisions of the loop that `projection` writes."""
        self.projection = projection
        self._forms = known_forms(projection.interaction)

    def read(
        self, decision: object, id: object, time: object, form: Mapping[str, object]
    ) -> PendingEvent | Answer | UnknownDecision:
        """Check one piece of feedback and return the event to submit; nothing is written.

        `decision` is the id of the decision, `id` that of the feedback (None: a new one), `time` when it was given
        (microseconds since 1970 or an ISO 8601 text, None: now), `form` the other fields, such as {"clicks": ["b"]}.
        Return an `Answer` with status `rejected` if the feedback does not fit its decision or this loop, and
        `UnknownDecision` if the decision is not known here. Raise ValueError, naming the field, if `form` is no
        feedback."""
        event_id = records.new_id() if id is None else records.check_id("id", id)
        decision = records.check_id("decision", decision)
        interaction = self.projection.interaction
        form = in_taken_form(form, interaction.forms)
        given = parse_feedback(form, self._forms)
        check_not_silent(event_id, decision, given.form)
        known = self.projection.find_decision(decision)
        if known is None:
            return UnknownDecision(event_id, decision)
        since = self._shown_at(known)
        if since is None:
            return self.projection.reject(
                event_id, f"decision {decision} was deferred and never activated: it was not shown"
            )
        if (refusal := why_refused(interaction, self.projection.model, given.form)) is not None:
            return self.projection.reject(event_id, refusal)
        if interaction.scale is not None and given.form in interaction.forms:
            for field, value in interaction.forms[given.form].numbers(given).items():
                interaction.scale.check(field, value)
        try:
            record, extra = self._resolve(given, form, known)
        except LookupError as error:
            return self.projection.reject(event_id, str(error.args[0]))
        if record.form != "unknown" and (refusal := interaction.why_unfit(record, known.record.shown)) is not None:
            return self.projection.reject(event_id, refusal)
        when = now() if time is None else records.check_time("time", time)
        arrays = extra.astype("<f4").tobytes() if extra is not None else None
        event = Event(0, "feedback", event_id, when, None, known.seq, 0, records.encode(record), arrays)
        return PendingEvent(event, known if since == known.since else known._replace(since=since), record)

    def _resolve(
        self, given: records.Feedback, form: Mapping[str, object], known: LoggedDecision
    ) -> tuple[FeedbackRecord, Floats | None]:
        """Look up the names in a piece of feedback in its decision; return (its record for the log, features or
        None)."""
        requests, record, names, said = self.projection.requests, known.record, known.names, None
        later = [self.projection.find_decision(id) for id in given.chain]
        elsewhere = [n for each in later if each is not None for at, n in each.record.unknown if at >= 0]
        if record.unknown or elsewhere or not record.shown:
            about, said = about_known(given, self._forms[given.form], form, record, names, elsewhere)
            if said is not None and given.form == "edit" and not self.projection.settings.store_text:
                said["edit"] = ""  # that something was edited is kept, the text is not
            if about is None:
                return FeedbackRecord("unknown", said=said), None
            given = about
        found, extra = requests.resolve(
            given, record, names, lambda: requests.items(record, known.arrays), self._link(known)
        )
        return (found if said is None else msgspec.structs.replace(found, said=said)), extra

    def read_many(self, events: Iterable[Mapping[str, object]]) -> list[PendingEvent | Answer | UnknownDecision]:
        """Return what `read` returns for each of `events`, in order: mappings such as {"decision": ..., "id": ...,
        "clicks": [...]}.

        An event that is no feedback becomes an answer that rejects it. Raise ValueError if `events` is not an iterable
        of events."""
        read: list[PendingEvent | Answer | UnknownDecision] = []
        for event in list_of("events", events, "objects"):
            given = event.get("id") if isinstance(event, Mapping) else None
            try:
                if not isinstance(event, Mapping):
                    raise ValueError(f"event: expected an object, got {describe(event)}")
                form = {name: value for name, value in event.items() if name not in ("decision", "id", "time")}
                read.append(self.read(event.get("decision"), given, event.get("time"), form))
            except (Closed, Damaged):
                raise  # nobody said it
            except ValueError as error:
                is_id = isinstance(given, str) or (is_number(given, int) and abs(given) < 2**63)
                named = str(given) if is_id else ""
                read.append(self.projection.reject(named, str(error)))
        return read

    def submit(self, read: Sequence[PendingEvent | Answer | UnknownDecision]) -> list[Answer]:
        """Submit the events among what was `read`, and return the answer to each, in order."""
        events = [each for each in read if isinstance(each, PendingEvent)]
        answers = iter(self.projection.submit(events) if events else ())
        return [self._answer(each, answers) for each in read]

    def _answer(self, read: PendingEvent | Answer | UnknownDecision, answers: Iterator[Answer]) -> Answer:
        if isinstance(read, UnknownDecision):
            return self.projection.reject_unknown(read.event, "decision", read.decision)
        return next(answers) if isinstance(read, PendingEvent) else read

    def activate(self, decision: str, time: int | str | None = None) -> Answer:
        """Note in the log that a deferred decision was shown, as `Loop.activate` says."""
        id = records.check_id("decision", decision)
        known = self.projection.find_decision(id)
        if known is None:
            return self.projection.reject_unknown(id, "decision", id)
        when, version = now() if time is None else records.check_time("time", time), self.projection.published.version
        [answer] = self.projection.submit(
            [PendingEvent(Event(0, "activate", id, when, None, known.seq, version, "{}"))]
        )
        return answer

    def _shown_at(self, known: LoggedDecision) -> int | None:
        """Return when the decision `known` was shown, in microseconds since 1970; None if it is deferred and was not
        activated."""
        if not known.record.deferred:
            return known.since
        activated = self.projection.log.find("activate", known.id)
        return None if activated is None else activated.time

    def _link(self, known: LoggedDecision) -> Callable[[str], tuple[int, dict[str, int]]]:
        """Return a function that looks up a later decision in a chain of clicks, which begins with the decision
        `known`."""

        def find(id: str) -> tuple[int, dict[str, int]]:
            later = self.projection.find_decision(id)
            if later is None:
                raise LookupError(f"chain: decision {id} is not in the log")
            if later.person != known.person:
                raise LookupError(f"chain: decision {id} was shown to somebody else")
            if later.seq <= known.seq:
                raise LookupError(f"chain: decision {id} came before the first: expected later ones")
            if self._shown_at(later) is None:
                raise LookupError(f"chain: decision {id} was deferred and never activated: it was not shown")
            return later.seq, {later.names[j]: j for j in later.record.shown}

        return find
