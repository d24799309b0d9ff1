"""Export: a loop's events as the JSON lines of `heedful.io`, with everything that the model is computed from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import msgspec
import numpy as np

from heedful.core.times import EPOCH
from heedful.io import serving_lines
from heedful.io.line_schema import ROLLBACK_TO
from heedful.loop import Loop, records
from heedful.loop.interactions.forms import known_forms
from heedful.loop.log import Event, rollback_target
from heedful.loop.packing import LoggedDecision
from heedful.loop.records import FeedbackRecord
from heedful.loop.serving import KINDS as LEARNER_KINDS
from heedful.loop.style import KIND as STYLE
from heedful.loop.style import rule_line
from heedful.results.answers import PersonEvents

KEPT = 1_000_000
"""The most candidates, over all decisions that are kept in memory until their feedback is written."""


def export_lines(loop: Loop) -> Iterator[dict[str, Any]]:
    """Yield the items, decisions, activations, feedback, undos, rollbacks, experiments, promotions and corrections of
    style of a loop as JSON objects, in the log's order.

    Events that are appended meanwhile are left out. Items and candidates have their attributes if the loop stores
    texts, otherwise the features that were computed from them. The candidates of a decision also have features if one
    of their items was changed just before the decision was written.
    """
    loop.projection.catch_up()
    return Exporter(loop).lines()


def events_of_person(loop: Loop, person: str) -> PersonEvents:
    """Return what `loop` has about a `person`: the events that `Loop.forget` would erase, as JSON lines.

    Candidates are names or, where they came with the request, what came. What is learned of it is not in it:
    `Loop.weights` and `Loop.style_of` say that. Raise ValueError if `person` is no name."""
    person = records.check_id("person", person)
    loop.projection.catch_up()
    exporter, lines = Exporter(loop, by_name=True), list[dict[str, Any]]()
    for event in loop.projection.log.of_person(person):
        if (line := exporter.line(event)) is not None:
            decision = exporter.decision(event.seq) if event.kind == "decision" else None
            attributes = () if decision is None else decision[1].record.attributes
            lines.append(line | ({"candidates": attributes} if attributes else {}))
    return PersonEvents(person, tuple(lines), loop.spelt_like(person))


def as_time(micros: int) -> str:
    """Return a time, `micros` microseconds since 1970 UTC, as an ISO 8601 text that ends in Z."""
    return (EPOCH + timedelta(microseconds=micros)).isoformat().replace("+00:00", "Z")


class Exporter:
    """Writes the events of one loop as JSON lines. It keeps recent decisions in memory, as later feedback refers to
    them."""

    def __init__(self, loop: Loop, *, by_name: bool = False) -> None:
        """Export `loop`. The events have to come from the first on, so that it knows which version of an item was on
        offer.

        With `by_name` they may begin anywhere: candidates are then written as their names alone.
        """
        self._by_name = by_name
        self._projection = loop.projection
        self._manifest = loop.manifest
        self._forms = known_forms(loop.projection.interaction)
        self._current: dict[str, int] = {}  # the version of each item at this point of the log
        self._decisions: dict[int, tuple[str, LoggedDecision]] = {}
        self._kept = 0

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield the line of every event that is in the log now, in its order, without those that `line` does not
        export."""
        log = self._projection.log
        head, _ = log.last()
        for event in log.events():
            if event.seq > head:
                return
            if (line := self.line(event)) is not None:
                yield line

    def line(self, event: Event) -> dict[str, Any] | None:
        """Return the line of an event as a JSON object, or None if it is not exported.

        Not exported are events about a decision or feedback that was forgotten, and those that only the log itself
        needs.
        """
        if event.kind == "item":
            return self._item(event)
        if event.kind == "decision":
            return self._decision(event, self._keep(event))
        if event.kind == "activate" and self.decision(event.target):
            return {"kind": "activate", "decision": event.id, "time": as_time(event.time)}
        if event.kind == "feedback" and (answered := self.decision(event.target)):
            return self._feedback(event, *answered)
        if event.kind == "undo" and (target := self._projection.log.at(event.target or 0)):
            return {"kind": "undo", "id": event.id, "event": target.id, "time": as_time(event.time)}
        if event.kind == "rollback":
            return self._rollback(event)
        if event.kind in LEARNER_KINDS:
            return serving_lines.write(event, self._projection.log) | {"time": as_time(event.time)}
        if event.kind == STYLE:
            return rule_line(event) | {"time": as_time(event.time)}
        return None

    def _rollback(self, event: Event) -> dict[str, Any]:
        """Return the line of a rollback; it names an event by kind and id, as an import gives events other numbers."""
        payload: dict[str, Any] = msgspec.json.decode(event.payload)
        last = self._projection.log.last_of(ROLLBACK_TO, rollback_target(event.payload))
        to = None if last is None else {"kind": last.kind, "id": last.id}
        line = {"kind": "rollback", "id": event.id, "to": to, "time": as_time(event.time)}
        return line | ({"reason": payload["reason"]} if payload["reason"] else {})

    # ------------------------------------------------------------------------ items

    def _item(self, event: Event) -> dict[str, Any]:
        name = event.subject or ""
        if event.arrays is None:
            self._current.pop(name, None)
            return {"kind": "withdraw", "id": name}
        self._current[name] = event.seq
        if not self._manifest.settings.store_text:
            return {"kind": "item", "id": name, "features": np.frombuffer(event.arrays, "<f4").tolist()}
        row: dict[str, Any] = msgspec.json.decode(event.payload)
        head = {"kind": "item"} if self._manifest.encoding.identifier == "id" else {"kind": "item", "id": name}
        # An attribute of the same name as a field of the line: the attributes go into an object of their own.
        return head | row if row.keys().isdisjoint(head) else {"kind": "item", "id": name, "attributes": row}

    # ------------------------------------------------------------------------ decisions

    def _keep(self, event: Event) -> LoggedDecision:
        decision = self._projection.decision(event)
        self._decisions[event.seq] = event.id, decision
        self._kept += len(decision.names)
        while self._kept > KEPT and len(self._decisions) > 1:
            _, before = self._decisions.pop(next(iter(self._decisions)))
            self._kept -= len(before.names)
        return decision

    def decision(self, seq: int | None) -> tuple[str, LoggedDecision] | None:
        """Return (id, decision) of the decision with the sequence number `seq`; None if `seq` is None, or if it is not
        in the log, since its person was forgotten meanwhile."""
        if seq not in self._decisions:
            event = self._projection.log.at(seq or 0)
            if event is None:
                return None
            self._keep(event)
        return self._decisions[seq or 0]

    def _decision(self, event: Event, decision: LoggedDecision) -> dict[str, Any]:
        record, names = decision.record, decision.names
        line = {
            "kind": "decision",
            "id": event.id,
            "person": decision.person,
            "time": as_time(event.time),
            "candidates": self._candidates(decision),
            "shown": [names[j] for j in record.shown],
            "context": self._context(decision),
            "prior": record.prior or None,
            "standardised": True if record.prior else None,
            "probability": record.probability,
            "arm": record.arm,
            "learner": record.learner or None,
            "seed": record.seed or None,
            "proposal": record.proposal or None,
            "deferred": record.deferred or None,
            "predicted": record.predicted or None,
            "unknown": {name: None if place < 0 else place for place, name in record.unknown} or None,
            "rival": record.rival or None,
            "after": record.after or None,
        }
        return {name: value for name, value in line.items() if value is not None or name == "probability"}

    def _candidates(self, decision: LoggedDecision) -> Sequence[object]:
        if not decision.names or self._by_name or self._projection.interaction.by_number:
            return decision.names
        if decision.record.attributes:
            return decision.record.attributes
        versions = dict(zip(decision.names, decision.record.items))
        identifier = self._manifest.encoding.identifier or "id"
        if versions and all(self._current.get(name) == version for name, version in versions.items()):
            if self._manifest.query is None:
                return decision.names
            features = self._projection.requests.came(decision.record, decision.arrays)
            return [{identifier: name, "query_features": x} for name, x in zip(decision.names, features.tolist())]
        X = np.asarray(self._projection.requests.items(decision.record, decision.arrays), np.float32)
        return [{identifier: name, "features": x} for name, x in zip(decision.names, X.tolist())]

    def _context(self, decision: LoggedDecision) -> dict[str, Any] | None:
        encoding = self._manifest.context
        if encoding is None or self._manifest.settings.store_text:
            return decision.record.context
        split = len(decision.arrays) - 4 * encoding.size
        return {"features": np.frombuffer(decision.arrays[split:], "<f4").tolist()}

    # ------------------------------------------------------------------------ feedback

    def _feedback(self, event: Event, decision: str, logged: LoggedDecision) -> dict[str, Any]:
        record = records.decode_feedback(event.payload)
        line = {"kind": "feedback", "id": event.id, "decision": decision, "time": as_time(event.time)}
        return line | self._form(event, logged, record)

    def _form(self, event: Event, decision: LoggedDecision, record: FeedbackRecord) -> dict[str, Any]:
        """Return the fields of a piece of feedback on `decision`, less the texts that the loop does not store."""
        if record.said is not None:
            return record.said
        return self._forms[record.form].write(record, _AnsweredDecision(self, event, decision))

    def features(self, decision: LoggedDecision) -> Any:
        """Return the features of the m candidates of `decision`, (m, N) with N the number of features."""
        return self._projection.requests.items(decision.record, decision.arrays)


class _AnsweredDecision:
    """The decision that a piece of feedback answers, as `Form.write` needs it to write the feedback as JSON."""

    def __init__(self, exporter: Exporter, event: Event, decision: LoggedDecision) -> None:
        self._exporter, self._event, self._decision = exporter, event, decision
        self.names, self.shown = decision.names, decision.record.shown

    def later(self, seq: int) -> tuple[str, Sequence[str]] | None:
        decision = self._exporter.decision(seq)
        return None if decision is None else (decision[0], decision[1].names)

    def features(self, candidate: int) -> list[float]:
        arrays = self._event.arrays
        row = np.frombuffer(arrays, "<f4") if arrays else self._exporter.features(self._decision)[candidate]
        return list(map(float, np.asarray(row).tolist()))
