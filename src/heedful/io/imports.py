"""Import: lines of JSON become events of a loop, in batches.

The file is long because every kind of event has its own way into the log."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from heedful.core.validation import describe
from heedful.io import serving_lines
from heedful.io.exports import as_time
from heedful.io.line_schema import predictions_of, standardised_scores, time_of, unknown, within
from heedful.loop import Loop, records
from heedful.loop.decide import difference
from heedful.loop.log import Event, rollback_event
from heedful.loop.packing import LoggedDecision, pack
from heedful.loop.paging import page_before
from heedful.loop.projection import PendingEvent
from heedful.loop.records import DecisionRecord
from heedful.loop.request import encode_row
from heedful.loop.serving import KINDS as LEARNER_KINDS
from heedful.loop.style import KIND as STYLE
from heedful.loop.style import rule_event
from heedful.loop.undeclared import describe_undeclared
from heedful.results.answers import Answer, Status

ALONE = ("rollback", *LEARNER_KINDS, STYLE)
"""The kinds of events that depend on the order of all other events, so that each is written alone."""

_OTHER_CONTENT = "decision {} is in the log already, with other content: {}"
_NOT_JOINED = "{0} {1} of this file was rejected, so its {2} is not joined to the {0} {1} in the log"
_BEFORE = "given at {}, before decision {} was shown, at {}: is it about another one of this id?"

_AGAIN = (
    "decision {} had an answer before, and its line says neither whose it is nor when it was shown: is this answer "
    "about another one of this id? Then give it another"
)


class Outcome(NamedTuple):
    """What became of one line of an import: `status` "applied", "duplicate" or "rejected", the last with the `reason`.

    `line` is its number in the file, from 1; `kind` and `id` are those of the event ("item", "decision", "feedback",
    ...)."""

    line: int
    """its number in the file, from 1"""
    kind: str
    """item, withdraw, decision, activate, feedback, undo, rollback, experiment, stop, promote or style; "line" if it
    is none of them"""
    id: str
    """the id of the event; "" if the line has none"""
    status: Status
    """applied; duplicate, if it was in the loop before; or rejected, for the `reason`"""
    reason: str | None = None
    """why it was rejected; for an event that was applied, a remark"""


class EventLine(NamedTuple):
    """A line of a file that is an event: its form was checked (`check_line`), but not yet whether the loop takes it.

    `line` is its number in the file, from 1; `kind` ("item", "decision", ...) and `id` identify the event; `record` is
    the JSON object."""

    line: int
    """its number in the file, from 1"""
    kind: str
    """the kind of the event: item, withdraw, decision, ..."""
    id: str
    record: Mapping[str, Any]
    """the JSON object of the line"""

    def outcome(self, answer: Answer) -> Outcome:
        """Return the outcome of this line, given the loop's answer to its event."""
        return Outcome(self.line, self.kind, self.id, answer.status, answer.reason)

    def reject(self, reason: str) -> Outcome:
        """Return the outcome that rejects this line for `reason`."""
        return Outcome(self.line, self.kind, self.id, "rejected", reason)

    def about(self) -> list[tuple[str, str]]:
        """Return the (kind, id) of each event that this line refers to: its decisions, or the feedback that it
        undoes."""
        if self.kind == "undo":
            return [("feedback", str(self.record["event"]))]
        if self.kind == "feedback":
            chain = self.record.get("chain") or []
            decisions = [str(self.record["decision"]), *map(str, chain)]
            return [(kind, id) for id in decisions for kind in ("decision", "activate")]
        if self.kind == "decision" and self.record.get("after") is not None:
            return [("decision", str(self.record["after"]))]
        return [("decision", self.id)] if self.kind == "activate" else []


class Importer:
    """Imports lines in batches: `add` collects them, `flush` writes them.

    Within a batch items and decisions are written first, then activations, feedback and undos. A rollback, an event
    that says which learner serves or is tried, and a correction of style has a batch of its own.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._waiting: list[EventLine] = []
        self._kinds: set[str] = set()  # of the lines that wait
        self._needed: set[tuple[str, str]] = set()
        self._fed_before = False
        self._history: dict[str, list[_Version]] | None = None
        self._reached: dict[str, int] = {}  # by item, the index in its history that its lines have reached
        self._undated = set[str]()  # ids of decisions that were shown nobody knows when
        self._nameless = set[str]()  # ids of decisions that were shown nobody knows to whom and when
        self._again = set[str]()  # those of these that were in the log before
        self._answered: set[int] | None = None  # sequence numbers of decisions with feedback, if there are such
        self._rejected = set[tuple[str, str]]()  # (kind, id) of the last line of a decision or of feedback, if it was

    @property
    def size(self) -> int:
        """the number of lines that were added and not written yet"""
        return len(self._waiting)

    def waits_for(self, kind: str, id: str) -> bool:
        """Return whether the batch has to be written (`flush`) before the event of this `kind` and `id` is added to it.

        The events of a batch are written sorted by kind, so it has to if that order would make a difference:
        - if a line of the batch already refers to the event, as feedback that stands before its decision does;
        - for an item, if items are part of the model and feedback was added before, since a withdrawal removes only
          what was said of the item earlier;
        - for feedback after an undo, since a rollback may go back to either;
        - for a decision after feedback, in loops that learn from the orders of decisions;
        - for a rollback, an experiment or a promotion, which depend on the order of all other events, and for a
          correction of style, to which a rollback may go back."""
        if kind in ALONE or not self._kinds.isdisjoint(ALONE):
            return True  # it is about the order of all the others
        if kind == "feedback" and "undo" in self._kinds:
            return True
        folded = self._loop.projection.folded
        comes_or_goes = ("item" if kind == "withdraw" else kind) in folded
        return (kind, id) in self._needed or (comes_or_goes and self._fed_before)

    def add(self, told: EventLine) -> None:
        """Add the line `told` to the batch; nothing is written before `flush`."""
        self._waiting.append(told)
        self._kinds.add(told.kind)
        if told.kind == "decision" and told.record.get("time") is None:
            self._undated.add(told.id)
            if told.record.get("person") is None:
                self._nameless.add(told.id)
        self._needed.update(told.about())
        self._fed_before = self._fed_before or told.kind == "feedback"

    def flush(self) -> Iterator[Outcome]:
        """Write the batch into the loop; yield the outcome of each line, sorted by kind, not as in the file."""
        for outcome in self._flush():
            self.note(outcome)
            yield outcome

    def note(self, outcome: Outcome) -> None:
        """Take in what became of a line, also of one that was not added: what refers to a decision or to feedback that
        was rejected is about no other one of that id."""
        if outcome.kind in ("decision", "feedback"):
            change = self._rejected.add if outcome.status == "rejected" else self._rejected.discard
            change((outcome.kind, outcome.id))
        if outcome.kind == "decision" and outcome.status == "duplicate" and outcome.id in self._nameless:
            self._again.add(outcome.id)

    def _flush(self) -> Iterator[Outcome]:
        waiting, self._waiting, self._needed, self._fed_before = self._waiting, [], set(), False
        self._kinds = set()
        yield from self._bring_offers([told for told in waiting if told.kind in ("item", "withdraw", "decision")])
        for kind, bring in (
            ("activate", lambda told: self._submit_drafts(told, self._activation)),
            ("feedback", self._bring_feedback),
            ("undo", lambda told: self._submit_drafts(told, self._undoing)),
        ):
            joined = list[EventLine]()
            for told in (each for each in waiting if each.kind == kind):
                if (reason := self._not_joined(told)) is None:
                    joined.append(told)
                else:
                    yield told.reject(reason)
            yield from bring(joined)
        yield from self._submit_drafts([told for told in waiting if told.kind == "rollback"], self._rollback)
        yield from self._submit_drafts([told for told in waiting if told.kind in LEARNER_KINDS], self._serving)
        yield from self._submit_drafts([told for told in waiting if told.kind == STYLE], self._style)

    def _not_joined(self, told: EventLine) -> str | None:
        """Return why the line `told` is about no event in the log: the one of this file that it is about was rejected;
        None if it was not."""
        log = self._loop.projection.log
        what = {"feedback": "answer", "activate": "activation"}.get(told.kind, told.kind)
        for kind, id in told.about():
            if (kind, id) in self._rejected and log.find(kind, id) is not None:
                return _NOT_JOINED.format(kind, id, what)
        return None

    def _submit_drafts(
        self, told: Sequence[EventLine], draft: Callable[[EventLine], PendingEvent | Answer]
    ) -> Iterator[Outcome]:
        drafts = [draft(each) for each in told]
        answers = iter(self._loop.projection.submit([each for each in drafts if isinstance(each, PendingEvent)]))
        for each, made in zip(told, drafts):
            yield each.outcome(next(answers) if isinstance(made, PendingEvent) else made)

    # ------------------------------------------------------------------------ items and decisions

    def _bring_offers(self, told: Sequence[EventLine]) -> Iterator[Outcome]:
        """Write the lines `told` (items, withdrawals, decisions), as many of a kind in one commit as possible.

        A decision and a change of one of its candidates keep their order.
        """
        items: list[EventLine] = []
        decided: list[tuple[EventLine, PendingEvent]] = []
        changed, named = set[str](), set[str]()
        for each in told:
            if each.kind == "decision":
                names = self._named_by(each)
                if not changed.isdisjoint(names):
                    yield from self._put(items)
                    items, changed = [], set()
                try:
                    decided.append((each, self._decision(each, decided)))
                    named |= names
                except (ValueError, LookupError) as error:
                    yield self._earlier(each) or each.reject(str(error.args[0]))
            else:
                if each.id in named:  # decided before the item changed: it comes first in the log too
                    yield from self._decide(decided)
                    decided, named = [], set()
                items.append(each)
                changed.add(each.id)
        yield from self._decide(decided)
        yield from self._put(items)

    def _named_by(self, told: EventLine) -> set[str]:
        """Return the names of items in the line of a decision, whose attributes its features may come from; none if
        they cannot be names."""
        try:
            return set(self._loop.projection.requests.requested_names(told.record["candidates"]) or ())
        except ValueError:
            return set()  # it is rejected where it is read

    def _put(self, told: Sequence[EventLine]) -> Iterator[Outcome]:
        """Put items on offer and withdraw them, in the order of the lines `told`; one that was imported before is a
        duplicate."""
        rows: list[Mapping[str, Any]] = []
        for each in told:
            try:
                name, version, row = self._item(each)
            except ValueError as error:
                yield each.reject(str(error))
                continue
            if self._has_been(name, version):
                yield Outcome(each.line, each.kind, each.id, "duplicate")
                continue
            if row is not None:
                rows.append(row)
            else:
                self._loop.put_items(rows)
                rows = []
                if not self._loop.withdraw(name):
                    yield each.reject(f"item {name} is not on offer")
                    continue
            yield Outcome(each.line, each.kind, each.id, "applied")
        self._loop.put_items(rows)

    def _item(self, told: EventLine) -> tuple[str, _Version, Mapping[str, Any] | None]:
        """Return (name, version, attributes) of the item in the line `told`; the last two are None if it is withdrawn.

        Raise ValueError if the id differs from the name in the attributes, or if these do not fit the loop's encoding.
        """
        if told.kind == "withdraw":
            return told.id, None, None
        manifest, record = self._loop.manifest, told.record
        identifier = manifest.encoding.identifier
        nested = isinstance(record.get("attributes"), Mapping) and record.keys() <= {"kind", "id", "attributes"}
        row = dict(record["attributes"]) if nested else {name: record[name] for name in record if name != "kind"}
        if not nested and identifier != "id":
            del row["id"]
        if identifier not in row:
            row = {identifier: told.id} | row
        name = manifest.encoding.name_of(row)
        if name != told.id.strip():
            raise ValueError(f"id: expected {describe(name)}, as in the column {identifier}, got {describe(told.id)}")
        encoded = encode_row(manifest.encoding, row, Counter()).astype("<f4").tobytes()
        # What came as features has no attributes to compare.
        written = manifest.item_payload(row) if "features" not in row and manifest.settings.store_text else ""
        return name, _version(written, encoded), row

    def _has_been(self, name: str, version: _Version) -> bool:
        """Return whether this change of the item `name`, to `version` (None: withdrawn), is in the log; note it if it
        is not.

        An item may change and change back, so its lines are matched with its changes in the log one by one, in order:
        each line is looked for after the place where the line before was found.
        """
        if self._history is None:
            self._history = {}
            for event in self._loop.projection.log.events(kinds=["item"]):
                self._history.setdefault(event.subject or "", []).append(self._of(event))
        history = self._history.setdefault(name, [])
        for i in range(self._reached.get(name, 0), len(history)):
            if _same(version, history[i]):
                self._reached[name] = i
                return True
        history.append(version)
        self._reached[name] = len(history) - 1
        return False

    def _of(self, event: Event) -> _Version:
        if event.arrays is None:
            return None
        return _version(event.payload if self._loop.settings.store_text else "", event.arrays)

    def _earlier(self, told: EventLine) -> Outcome | None:
        """Return the outcome of a decision's line whose id the log knows already; None if it knows none.

        It is asked where the loop could not make the decision today, such as of an item that was withdrawn since."""
        projection, record = self._loop.projection, told.record
        known = projection.find_decision(told.id)
        if known is None:
            gone = projection.log.is_forgotten("decision", told.id)
            return told.reject(f"decision {told.id} was forgotten") if gone else None
        names, person = projection.requests.requested_names(record["candidates"]) or (), record.get("person")
        places = {name: j for j, name in enumerate(names)}
        shown = DecisionRecord(tuple([places.get(name, -1) for name in record["shown"]]))
        ours = LoggedDecision(told.id, 0, time_of(record), person and str(person), shown, b"", names, 0)
        other = difference(known, ours, dated=record.get("time") is not None)
        if other is not None:
            return told.reject(_OTHER_CONTENT.format(told.id, other))
        return Outcome(told.line, told.kind, told.id, "duplicate")

    def _decide(self, decided: Sequence[tuple[EventLine, PendingEvent]]) -> Iterator[Outcome]:
        answers = self._loop.projection.submit([draft for _, draft in decided])
        for (told, draft), answer in zip(decided, answers):
            known, ours = self._loop.projection.find_decision(told.id), self._loop.projection.decision(draft.event)
            if answer.status == "applied":
                undeclared, by_number = ours.record.undeclared, self._loop.projection.interaction.by_number
                yield told.outcome(answer._replace(reason=describe_undeclared(undeclared, by_number) or answer.reason))
                continue
            other = difference(known, ours, dated=told.record.get("time") is not None) if known is not None else None
            yield told.outcome(answer) if other is None else told.reject(_OTHER_CONTENT.format(told.id, other))

    def _decision(self, told: EventLine, decided: Sequence[tuple[EventLine, PendingEvent]]) -> PendingEvent:
        """Return the event of the decision in the line `told`. Raise ValueError or LookupError if it does not fit the
        loop.

        `decided` are the decisions that are written together with it."""
        record, projection = told.record, self._loop.projection
        again = bool(record.get("standardised"))
        candidates, strange = record["candidates"], unknown(record.get("unknown"))
        if candidates:
            request = projection.requests.parse(candidates, record.get("context"), record.get("prior"), None)
        else:
            request = projection.requests.nothing(record.get("context"), None)
        places = {name: j for j, name in enumerate(request.called)}
        shown = records.distinct("shown", record["shown"], least=0 if strange or not candidates else 1)
        within(shown, list(places))
        probability, predictions = record.get("probability"), predictions_of(record, len(shown))
        kept = DecisionRecord(
            shown=tuple([places[name] for name in shown]),
            items=request.items,
            catalogue=request.catalogue,
            names=request.names,
            prior=tuple(standardised_scores(record, len(places))) if again else request.prior,
            arm=record.get("arm") or "imported",
            learner=record.get("learner") or "",
            seed=record.get("seed") or 0,
            probability=None if probability is None else float(probability),
            proposal=dict(record.get("proposal") or {}),
            context=request.context,
            attributes=request.attributes,
            deferred=bool(record.get("deferred")),
            predicted=() if predictions is None else projection.interaction.read_predicted(predictions),
            unknown=strange,
            rival=tuple(record.get("rival") or ()),
            after=self._page_before(record, {each.id: each.record for each, _ in decided}),
            undeclared=request.undeclared,
        )
        person = record.get("person")
        person = None if person is None else records.check_id("person", person)
        payload, arrays = pack(kept, request.numbers())
        return PendingEvent(
            Event(0, "decision", told.id, time_of(record), person, None, self._loop.version, payload, arrays)
        )

    def _page_before(self, record: Mapping[str, object], decided: Mapping[str, Mapping[str, object]]) -> str:
        """Return the id of the decision that the decision in `record` continues; "" if it continues none.

        `decided` are other decisions that are written together with it, by id. Raise ValueError if there is none of
        that id for the same person."""
        after = record.get("after")
        if after is None:
            return ""
        after = records.check_id("after", after)
        person = None if record.get("person") is None else str(record["person"])
        before = decided.get(after)
        if before is None or str(before.get("person")) != str(person):
            page_before(self._loop.projection, after, person)
        return after

    # ------------------------------------------------------------------------ what came of decisions

    def _activation(self, told: EventLine) -> PendingEvent | Answer:
        known = self._loop.projection.find_decision(told.id)
        if known is None:
            return self._unknown(told.id, "decision", told.id)
        return PendingEvent(
            Event(0, "activate", told.id, time_of(told.record), None, known.seq, self._loop.version, "{}")
        )

    def _undoing(self, told: EventLine) -> PendingEvent | Answer:
        event = records.check_id("event", told.record["event"])
        log = self._loop.projection.log
        target = log.find("feedback", event) or log.find(STYLE, event)
        if target is None:
            return self._unknown(told.id, "feedback", event)
        return PendingEvent(Event(0, "undo", told.id, time_of(told.record), None, target.seq, self._loop.version, "{}"))

    def _style(self, told: EventLine) -> PendingEvent:
        record = told.record
        said = record.get("person"), record.get("deny"), record.get("always")
        return PendingEvent(rule_event(told.id, *said, self._loop.version, time_of(record)))

    def _rollback(self, told: EventLine) -> PendingEvent | Answer:
        to, log = told.record.get("to"), self._loop.projection.log
        target = None if to is None else log.find(to["kind"], records.check_id("to.id", to["id"]))
        if to is not None and target is None:
            return self._unknown(told.id, to["kind"], str(to["id"]))
        version = 1 if target is None else target.seq
        return PendingEvent(
            rollback_event(told.id, version, told.record.get("reason") or "", self._loop.version, time_of(told.record))
        )

    def _serving(self, told: EventLine) -> PendingEvent | Answer:
        projection = self._loop.projection
        try:
            event = serving_lines.read(projection, told.kind, told.id, told.record)
        except (ValueError, LookupError, OSError) as error:
            return projection.reject(told.id, str(error.args[0]) if isinstance(error, LookupError) else str(error))
        return PendingEvent(event._replace(time=time_of(told.record), version=self._loop.version))

    def _unknown(self, event: str, kind: str, id: str) -> Answer:
        gone = self._loop.projection.log.is_forgotten(kind, id)
        return self._loop.projection.reject(event, f"{kind} {id} {'was forgotten' if gone else 'is not in the log'}")

    def _bring_feedback(self, told: Sequence[EventLine]) -> Iterator[Outcome]:
        events = [
            {name: value for name, value in each.record.items() if name != "kind"} | {"time": time_of(each.record)}
            for each in told
        ]
        doubtful = {each.line: self._is_again(each) for each in told}
        for each, answer in zip(told, self._loop.feedback_many(events) if events else ()):
            outcome = each.outcome(answer)
            early = answer.status == "applied" and (self._is_early(each) or doubtful[each.line])
            yield outcome._replace(reason=early) if early else outcome

    def _is_again(self, told: EventLine) -> str:
        """Return, in words, that the feedback in the line `told` is about a decision that had some before and may be
        another one, of a log that numbers its lists anew; "" if nothing speaks for that."""
        id = str(told.record["decision"])
        if id not in self._again:
            return ""
        if self._answered is None:
            events = self._loop.projection.log.events(kinds=["feedback"])
            self._answered = {event.target for event in events if event.target is not None}
        known = self._loop.projection.find_decision(id)
        return _AGAIN.format(id) if known is not None and known.seq in self._answered else ""

    def _is_early(self, told: EventLine) -> str:
        """Return, in words, that the feedback in the line `told` is from before its decision was shown; "" if it is
        not, or if the file does not say when that was."""
        if told.record.get("time") is None:
            return ""
        known, when = self._loop.projection.find_decision(str(told.record["decision"])), time_of(told.record)
        if known is None or when >= known.since or known.id in self._undated:
            return ""
        return _BEFORE.format(as_time(when), known.id, as_time(known.since))


_Version: TypeAlias = "tuple[str, str] | None"


def _version(written: str, encoded: bytes) -> _Version:
    """Return (digest of an item's attributes as they are `written` in the log, digest of its `encoded` features).

    The first is "" if there are no attributes to compare. `_same` compares two versions.
    """
    digests = [
        hashlib.blake2b(part, digest_size=12).hexdigest() if part else "" for part in (written.encode(), encoded)
    ]
    return digests[0], digests[1]


def _same(a: _Version, b: _Version) -> bool:
    if a is None or b is None:
        return a is b
    return a[1] == b[1] and (a[0] == b[0] or not a[0] or not b[0])
