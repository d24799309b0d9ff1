"""From feedback as it is given to an event for the log: what it answers, whether it still fits.

Nothing here writes; see `heedful.loop.deciding`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from heedful.core.validation import describe, is_number
from heedful.loop import wire
from heedful.loop.interactions.forms import known_forms, parse_feedback
from heedful.loop.ledger import Draft, Ledger
from heedful.loop.log import Event, now
from heedful.loop.packing import Known
from heedful.loop.strangers import about_known
from heedful.loop.wire import Answer, FeedbackRecord
from heedful.storage import Closed, Damaged


class Unknown(NamedTuple):
    """Feedback on a decision that is not here: another process may have made it, or forgotten it."""

    event: str
    decision: str


class Answering:
    """What a loop needs to take feedback in."""

    def __init__(self, ledger: Ledger) -> None:
        """On the decisions of `ledger`."""
        self.ledger = ledger
        self._forms = known_forms(ledger.interaction)

    def drafted(self, decision: Any, id: Any, time: Any, form: Mapping[str, Any]) -> Draft | Answer | Unknown:
        """The event of one piece of feedback, or the answer that rejects it. ValueError, by name, where it is none."""
        event_id = wire.new_id() if id is None else wire.check_id("id", id)
        decision = wire.check_id("decision", decision)
        interaction = self.ledger.interaction
        form = interaction.form(form)
        given = parse_feedback(form, self._forms)
        known = self.ledger.known(decision)
        if known is None:
            return Unknown(event_id, decision)
        since = self._shown_at(known)
        if since is None:
            return self.ledger.rejected(
                event_id, f"decision {decision} was deferred and never activated: it was not shown"
            )
        if (refusal := interaction.refusal(self.ledger.model, given.form)) is not None:
            return self.ledger.rejected(event_id, refusal)
        interaction.check_feedback(given)
        try:
            record, extra = self._resolved(given, form, known)
        except LookupError as error:
            return self.ledger.rejected(event_id, str(error.args[0]))
        if record.form != "unknown" and (refusal := interaction.unfit(record, known.record.shown)) is not None:
            return self.ledger.rejected(event_id, refusal)
        when = now() if time is None else wire.check_time("time", time)
        arrays = extra.astype("<f4").tobytes() if extra is not None else None
        event = Event(0, "feedback", event_id, when, None, known.seq, 0, wire.encode(record), arrays)
        return Draft(event, known if since == known.since else known._replace(since=since), record)

    def _resolved(self, given: wire.Feedback, form: Mapping[str, Any], known: Known) -> tuple[FeedbackRecord, Any]:
        """(the record of feedback on a decision, the features it brought along or None). LookupError, with the reason,
        where it does not fit what was shown."""
        requests, record, names, said = self.ledger.requests, known.record, known.names, None
        later = [self.ledger.known(id) for id in given.chain]
        elsewhere = [n for each in later if each is not None for at, n in each.record.unknown if at >= 0]
        if record.unknown or elsewhere or not record.shown:
            about, said = about_known(given, form, record, names, elsewhere)
            if said is not None and given.form == "edit" and not self.ledger.settings.store_text:
                said["edit"] = None
            if about is None:
                return FeedbackRecord("unknown", said=said), None
            given = about
        found, extra = requests.resolved(
            given, record, names, lambda: requests.items(record, known.arrays), self._link(known)
        )
        return (found if said is None else msgspec.structs.replace(found, said=said)), extra

    def drafted_many(self, events: Iterable[Mapping[str, Any]]) -> list[Draft | Answer | Unknown]:
        """The events of many; one that is no feedback is rejected, and the others go on."""
        drafts: list[Draft | Answer | Unknown] = []
        if isinstance(events, str | bytes | Mapping) or not isinstance(events, Iterable):
            raise ValueError(f"events: expected a list of objects, got {describe(events)}")
        for event in events:
            given = event.get("id") if isinstance(event, Mapping) else None
            try:
                if not isinstance(event, Mapping):
                    raise ValueError(f"event: expected an object, got {describe(event)}")
                form = {name: value for name, value in event.items() if name not in ("decision", "id", "time")}
                drafts.append(self.drafted(event.get("decision"), given, event.get("time"), form))
            except (Closed, Damaged):
                raise  # nobody said it
            except ValueError as error:
                named = str(given) if isinstance(given, str) or is_number(given, int) else ""
                drafts.append(self.ledger.rejected(named, str(error)))
        return drafts

    def unknown(self, event: str, kind: str, id: str) -> Answer:
        """The answer to what is about an event that is not in the log, after a look at what other processes wrote."""
        self.ledger.catch_up()
        forgotten = self.ledger.log.is_forgotten(kind, id)
        return self.ledger.rejected(event, f"{kind} {id} {'was forgotten' if forgotten else 'is not in the log'}")

    def _shown_at(self, known: Known) -> int | None:
        """When a decision was shown; None where it was deferred and not activated."""
        if not known.record.deferred:
            return known.since
        activated = self.ledger.log.find("activate", known.id)
        return None if activated is None else activated.time

    def _link(self, known: Known) -> Callable[[str], tuple[int, dict[str, int]]]:
        """How the later decisions of a chain are found: (sequence number, what was shown, by name)."""

        def find(id: str) -> tuple[int, dict[str, int]]:
            later = self.ledger.known(id)
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
