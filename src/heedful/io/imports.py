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
from heedful.loop.feedback import UnknownDecision
from heedful.loop.interactions.protocol import Interaction, prediction_scale
from heedful.loop.log import Event, now, rollback_event
from heedful.loop.packing import LoggedDecision, pack
from heedful.loop.paging import page_before
from heedful.loop.pending import PendingEvent
from heedful.loop.records import AnsweredItem, DecisionRecord
from heedful.loop.request import encode_row
from heedful.loop.serving import KINDS as LEARNER_KINDS
from heedful.loop.style import KIND as STYLE
from heedful.loop.style import rule_event
from heedful.loop.undeclared import describe_undeclared
from heedful.results.answers import Answer, Status

ALONE = ("rollback", *LEARNER_KINDS, STYLE)
"""The kinds of events that depend on the order of all other events, so that each is written alone."""

MOST_SHOWN = 50_000
"""The most items for which a decision that shows one alone is kept, of which the others are copies."""

_OTHER_CONTENT = "decision {} is in the log already, with other content: {}"
_NOT_JOINED = "{0} {1} of this file was rejected, so its {2} is not joined to the {0} {1} in the log"
_BEFORE = "given at {}, before decision {} was shown, at {}: is it about another one of this id?"

_AGAIN = (
    "decision {} had an answer before, and its line says neither whose it is nor when it was shown: is this answer "
    "about another one of this id? Then give it another"
)


class Outcome(NamedTuple):
    """What became of one line of an import."""

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
    """A line of a file that is an event: its form was checked (`check_line`), but not yet whether the loop takes it."""

    number: int
    """its number in the file, from 1"""
    kind: str
    """the kind of the event: item, withdraw, decision, ..."""
    id: str
    record: Mapping[str, Any]
    """the JSON object of the line"""

    def outcome(self, answer: Answer) -> Outcome:
        """Return the outcome of this line, given the loop's answer to its event."""
        return Outcome(self.number, self.kind, self.id, answer.status, answer.reason)

    def reject(self, reason: str) -> Outcome:
        """Return the outcome that rejects this line for `reason`."""
        return Outcome(self.number, self.kind, self.id, "rejected", reason)

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
        self._shown = dict[str, tuple[Event, LoggedDecision]]()  # by item: a decision that showed it alone
        self._on_offer = -1  # the version of the catalogue in which these items are on offer
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
        - for a rollback, an experiment or a promotion, which depend on the order of all other events, and for a
          correction of style, to which a rollback may go back."""
        if kind in ALONE or not self._kinds.isdisjoint(ALONE):
            return True  # it is about the order of all the others
        if kind == "feedback" and "undo" in self._kinds:
            return True
        comes_or_goes = kind in ("item", "withdraw") and self._loop.projection.interaction.by_number
        return (kind, id) in self._needed or (comes_or_goes and self._fed_before)

    def add(self, line: EventLine) -> None:
        """Add `line` to the batch; nothing is written before `flush`."""
        self._waiting.append(line)
        self._kinds.add(line.kind)
        if line.kind == "decision" and line.record.get("time") is None:
            self._undated.add(line.id)
            if line.record.get("person") is None:
                self._nameless.add(line.id)
        self._needed.update(line.about())
        self._fed_before = self._fed_before or line.kind == "feedback"

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
        yield from self._bring_offers([line for line in waiting if line.kind in ("item", "withdraw", "decision")])
        for kind, bring in (
            ("activate", lambda lines: self._submit_drafts(lines, self._activation)),
            ("feedback", self._bring_feedback),
            ("undo", lambda lines: self._submit_drafts(lines, self._undoing)),
        ):
            joined = list[EventLine]()
            for line in [line for line in waiting if line.kind == kind]:
                if (reason := self._not_joined(line)) is None:
                    joined.append(line)
                else:
                    yield line.reject(reason)
            yield from bring(joined)
        yield from self._submit_drafts([line for line in waiting if line.kind == "rollback"], self._rollback)
        yield from self._submit_drafts([line for line in waiting if line.kind in LEARNER_KINDS], self._serving)
        yield from self._submit_drafts([line for line in waiting if line.kind == STYLE], self._style)

    def _not_joined(self, line: EventLine) -> str | None:
        """Return why `line` joins nothing in the log: what it is about was rejected in this file; else None."""
        log = self._loop.projection.log
        what = {"feedback": "answer", "activate": "activation"}.get(line.kind, line.kind)
        for kind, id in line.about():
            if (kind, id) in self._rejected and log.find(kind, id) is not None:
                return _NOT_JOINED.format(kind, id, what)
        return None

    def _submit_drafts(
        self, lines: Sequence[EventLine], draft: Callable[[EventLine], PendingEvent | Answer]
    ) -> Iterator[Outcome]:
        drafts = [draft(line) for line in lines]
        answers = iter(self._loop.projection.submit([draft for draft in drafts if isinstance(draft, PendingEvent)]))
        for line, event in zip(lines, drafts):
            yield line.outcome(next(answers) if isinstance(event, PendingEvent) else event)

    # ------------------------------------------------------------------------ answers without decisions

    def bring_answers(self, answers: Sequence[AnsweredItem], first: int) -> Iterator[Outcome]:
        """Write `answers`, the first of which has the number `first`; yield what became of the decision and of the
        feedback that each becomes.

        They become the events that their lines would. Decisions for one item differ in id and person alone, feedback
        with one number in id and decision alone, so the rest is made once. What does not fit, or is in the log already
        with other content, is taken line by line."""
        projection, reader, when = self._loop.projection, self._loop.feedback_reader, now()
        version, on_offer = self._loop.version, projection.catalogue.at_version().version
        if on_offer != self._on_offer or len(self._shown) > MOST_SHOWN:
            self._shown, self._on_offer = {}, on_offer
        shown, said = self._shown, dict[tuple[str, float], PendingEvent]()
        fit, drafts, left = list[tuple[int, AnsweredItem]](), list[PendingEvent](), list[tuple[int, AnsweredItem]]()
        for number, each in enumerate(answers, first):
            id, person, item, _, _ = each
            try:
                records.check_id("person", person)
                if item not in shown:
                    event = self._decision(_as_lines(number, each)[0], ()).event
                    shown[item] = event, projection.decision(event)
            except (ValueError, LookupError):
                left.append((number, each))
                continue
            fit.append((number, each))
            alone = shown[item][0]
            event = Event(0, "decision", id, when, person, None, version, alone.payload, alone.arrays)
            drafts.append(PendingEvent(event))
        read, numbers = list[PendingEvent | Answer | UnknownDecision](), list[tuple[int, str]]()
        later, replies = now(), projection.submit(drafts)
        repeated = [reply.seq or 0 for reply in replies if reply.status != "applied"]
        logged = {event.seq: event for event in projection.log.many(repeated)}
        for (number, each), draft, answer in zip(fit, drafts, replies):
            id, person, item, form, value = each
            decided = logged.get(answer.seq or 0, draft.event)
            if answer.seq is None or _content(decided) != _content(draft.event):
                left.append((number, each))
                continue
            yield Outcome(number, "decision", id, answer.status, answer.reason)
            numbers.append((number, id))
            if (alike := said.get((form, value))) is None:
                [found] = reader.read_many([_as_lines(number, each)[1].record])
                if isinstance(found, PendingEvent):
                    said[form, value] = found
                read.append(found)
                continue
            _, _, _, _, record, arrays, names, _, rows = shown[item][1]
            decision = LoggedDecision(
                id, answer.seq, decided.time, person, record, arrays, names, decided.version, rows
            )
            event = Event(0, "feedback", id, later, None, answer.seq, 0, alike.event.payload)
            read.append(PendingEvent(event, decision, alike.feedback))
        for (number, id), answer in zip(numbers, reader.submit(read)):
            yield Outcome(number, "feedback", id, answer.status, answer.reason)
        for number, each in left:
            for line in _as_lines(number, each):
                self.add(line)
        yield from self.flush()

    # ------------------------------------------------------------------------ items and decisions

    def _bring_offers(self, lines: Sequence[EventLine]) -> Iterator[Outcome]:
        """Write items, withdrawals and decisions, many of a kind in one commit; a decision and a change of its item
        keep order."""
        items: list[EventLine] = []
        decided: list[tuple[EventLine, PendingEvent]] = []
        changed, named = set[str](), set[str]()
        changes = any(line.kind != "decision" for line in lines)
        for line in lines:
            if line.kind == "decision":
                names = self._named_by(line) if changes else named
                if not changed.isdisjoint(names):
                    yield from self._change_items(items)
                    items, changed = [], set()
                try:
                    decided.append((line, self._decision(line, decided)))
                    named |= names
                except (ValueError, LookupError) as error:
                    yield self._earlier(line) or line.reject(str(error.args[0]))
            else:
                if line.id in named:  # decided before the item changed: it comes first in the log too
                    yield from self._decide(decided)
                    decided, named = [], set()
                items.append(line)
                changed.add(line.id)
        yield from self._decide(decided)
        yield from self._change_items(items)

    def _named_by(self, line: EventLine) -> set[str]:
        """Return the names of the items in the line of a decision; none if they cannot be names."""
        try:
            return set(self._loop.projection.requests.requested_names(line.record["candidates"]) or ())
        except ValueError:
            return set()  # it is rejected where it is read

    def _change_items(self, lines: Sequence[EventLine]) -> Iterator[Outcome]:
        """Put items on offer and withdraw them, in the order of `lines`; one imported before is a duplicate."""
        rows: list[Mapping[str, Any]] = []
        for line in lines:
            try:
                name, version, row = self._item(line)
            except ValueError as error:
                yield line.reject(str(error))
                continue
            if self._has_been(name, version):
                yield Outcome(line.number, line.kind, line.id, "duplicate")
                continue
            if row is not None:
                rows.append(row)
            else:
                self._loop.put_items(rows)
                rows = []
                if not self._loop.withdraw(name):
                    yield line.reject(f"item {name} is not on offer")
                    continue
            yield Outcome(line.number, line.kind, line.id, "applied")
        self._loop.put_items(rows)

    def _item(self, line: EventLine) -> tuple[str, _Version, Mapping[str, Any] | None]:
        """Return (name, version, attributes) of an item, the last two None if withdrawn; raise ValueError if unfit."""
        if line.kind == "withdraw":
            return line.id, None, None
        manifest, record = self._loop.manifest, line.record
        identifier = manifest.encoding.identifier
        nested = isinstance(record.get("attributes"), Mapping) and record.keys() <= {"kind", "id", "attributes"}
        row = dict(record["attributes"]) if nested else {name: record[name] for name in record if name != "kind"}
        if not nested and identifier != "id":
            del row["id"]
        if identifier not in row:
            row = {identifier: line.id} | row
        name = manifest.encoding.name_of(row)
        if name != line.id.strip():
            raise ValueError(f"id: expected {describe(name)}, as in the column {identifier}, got {describe(line.id)}")
        encoded = encode_row(manifest.encoding, row, Counter()).astype("<f4").tobytes()
        # What came as features has no attributes to compare.
        written = manifest.item_payload(row) if "features" not in row and manifest.settings.store_text else ""
        return name, _version(written, encoded), row

    def _has_been(self, name: str, version: _Version) -> bool:
        """Return whether the log has this change of an item (None: withdrawn) after the one that was matched last."""
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

    def _earlier(self, line: EventLine) -> Outcome | None:
        """Return the outcome of a decision that the log has already, whose items may be withdrawn since; else None."""
        projection, record = self._loop.projection, line.record
        logged = projection.find_decision(line.id)
        if logged is None:
            forgotten = projection.log.is_forgotten("decision", line.id)
            return line.reject(f"decision {line.id} was forgotten") if forgotten else None
        names, person = projection.requests.requested_names(record["candidates"]) or (), record.get("person")
        places = {name: j for j, name in enumerate(names)}
        shown = DecisionRecord(tuple([places.get(name, -1) for name in record["shown"]]))
        decision = LoggedDecision(line.id, 0, time_of(record), person and str(person), shown, b"", names, 0)
        other = difference(logged, decision, dated=record.get("time") is not None)
        if other is not None:
            return line.reject(_OTHER_CONTENT.format(line.id, other))
        return Outcome(line.number, line.kind, line.id, "duplicate")

    def _decide(self, decided: Sequence[tuple[EventLine, PendingEvent]]) -> Iterator[Outcome]:
        answers = self._loop.projection.submit([draft for _, draft in decided])
        for (line, draft), answer in zip(decided, answers):
            if answer.status == "applied" and not (line.record.get("context") or _has_fields(line)):
                yield line.outcome(answer)  # as most are; to read what was written takes longer
                continue
            decision = self._loop.projection.decision(draft.event)
            if answer.status == "applied":
                undeclared, by_number = decision.record.undeclared, self._loop.projection.interaction.by_number
                yield line.outcome(answer._replace(reason=describe_undeclared(undeclared, by_number) or answer.reason))
                continue
            logged = self._loop.projection.find_decision(line.id)
            other = (
                difference(logged, decision, dated=line.record.get("time") is not None) if logged is not None else None
            )
            yield line.outcome(answer) if other is None else line.reject(_OTHER_CONTENT.format(line.id, other))

    def _decision(self, line: EventLine, decided: Sequence[tuple[EventLine, PendingEvent]]) -> PendingEvent:
        """Return the event of the decision in `line`; raise ValueError or LookupError if it does not fit the loop."""
        record, projection = line.record, self._loop.projection
        standardised = bool(record.get("standardised"))
        candidates, strange = record["candidates"], unknown(record.get("unknown"))
        if candidates:
            request = projection.requests.parse(candidates, record.get("context"), record.get("prior"), None)
        else:
            request = projection.requests.nothing(record.get("context"), None)
        places = {name: j for j, name in enumerate(request.called)}
        shown = records.distinct("shown", record["shown"], least=0 if strange or not candidates else 1)
        within(shown, list(places))
        probability, predictions = record.get("probability"), predictions_of(record, len(shown))
        content = DecisionRecord(
            shown=tuple([places[name] for name in shown]),
            items=request.items,
            catalogue=request.catalogue,
            names=request.names,
            prior=tuple(standardised_scores(record, len(places))) if standardised else request.prior,
            arm=record.get("arm") or "imported",
            learner=record.get("learner") or "",
            seed=record.get("seed") or 0,
            probability=None if probability is None else float(probability),
            proposal=dict(record.get("proposal") or {}),
            context=request.context,
            attributes=request.attributes,
            deferred=bool(record.get("deferred")),
            predicted=() if predictions is None else _check_predicted(projection.interaction, predictions),
            unknown=strange,
            rival=tuple(record.get("rival") or ()),
            after=self._page_before(record, decided),
            undeclared=request.undeclared,
        )
        person = record.get("person")
        person = None if person is None else records.check_id("person", person)
        payload, arrays = pack(content, request.numbers())
        return PendingEvent(
            Event(0, "decision", line.id, time_of(record), person, None, self._loop.version, payload, arrays)
        )

    def _page_before(self, record: Mapping[str, object], decided: Sequence[tuple[EventLine, PendingEvent]]) -> str:
        """Return the id of the decision that `record` continues, in the log or in `decided`; "" if none."""
        after = record.get("after")
        if after is None:
            return ""
        after = records.check_id("after", after)
        person = None if record.get("person") is None else str(record["person"])
        before = next((line.record for line, _ in reversed(decided) if line.id == after), None)
        if before is None or str(before.get("person")) != str(person):
            page_before(self._loop.projection, after, person)
        return after

    # ------------------------------------------------------------------------ what came of decisions

    def _activation(self, line: EventLine) -> PendingEvent | Answer:
        decision = self._loop.projection.find_decision(line.id)
        if decision is None:
            return self._unknown(line.id, "decision", line.id)
        return PendingEvent(
            Event(0, "activate", line.id, time_of(line.record), None, decision.seq, self._loop.version, "{}")
        )

    def _undoing(self, line: EventLine) -> PendingEvent | Answer:
        event = records.check_id("event", line.record["event"])
        log = self._loop.projection.log
        target = log.find("feedback", event) or log.find(STYLE, event)
        if target is None:
            return self._unknown(line.id, "feedback", event)
        return PendingEvent(Event(0, "undo", line.id, time_of(line.record), None, target.seq, self._loop.version, "{}"))

    def _style(self, line: EventLine) -> PendingEvent:
        record = line.record
        rules = record.get("person"), record.get("deny"), record.get("always")
        return PendingEvent(rule_event(line.id, *rules, self._loop.version, time_of(record)))

    def _rollback(self, line: EventLine) -> PendingEvent | Answer:
        to, log = line.record.get("to"), self._loop.projection.log
        target = None if to is None else log.find(to["kind"], records.check_id("to.id", to["id"]))
        if to is not None and target is None:
            return self._unknown(line.id, to["kind"], str(to["id"]))
        version = 1 if target is None else target.seq
        return PendingEvent(
            rollback_event(line.id, version, line.record.get("reason") or "", self._loop.version, time_of(line.record))
        )

    def _serving(self, line: EventLine) -> PendingEvent | Answer:
        projection = self._loop.projection
        try:
            event = serving_lines.read(projection, line.kind, line.id, line.record)
        except (ValueError, LookupError, OSError) as error:
            return projection.reject(line.id, str(error.args[0]) if isinstance(error, LookupError) else str(error))
        return PendingEvent(event._replace(time=time_of(line.record), version=self._loop.version))

    def _unknown(self, event: str, kind: str, id: str) -> Answer:
        forgotten = self._loop.projection.log.is_forgotten(kind, id)
        return self._loop.projection.reject(
            event, f"{kind} {id} {'was forgotten' if forgotten else 'is not in the log'}"
        )

    def _bring_feedback(self, lines: Sequence[EventLine]) -> Iterator[Outcome]:
        events = [
            {name: value for name, value in line.record.items() if name != "kind"} | {"time": time_of(line.record)}
            for line in lines
        ]
        doubtful = {line.number: self._is_again(line) for line in lines}
        for line, answer in zip(lines, self._loop.feedback_many(events) if events else ()):
            outcome = line.outcome(answer)
            early = answer.status == "applied" and (self._is_early(line) or doubtful[line.number])
            yield outcome._replace(reason=early) if early else outcome

    def _is_again(self, line: EventLine) -> str:
        """Return, in words, that feedback may be about another decision, as its log numbers its lists anew; else ""."""
        id = str(line.record["decision"])
        if id not in self._again:
            return ""
        if self._answered is None:
            events = self._loop.projection.log.events(kinds=["feedback"])
            self._answered = {event.target for event in events if event.target is not None}
        decision = self._loop.projection.find_decision(id)
        return _AGAIN.format(id) if decision is not None and decision.seq in self._answered else ""

    def _is_early(self, line: EventLine) -> str:
        """Return, in words, that feedback is from before its decision was shown; "" if it is not or nobody knows."""
        if line.record.get("time") is None:
            return ""
        decision, when = self._loop.projection.find_decision(str(line.record["decision"])), time_of(line.record)
        if decision is None or when >= decision.since or decision.id in self._undated:
            return ""
        return _BEFORE.format(as_time(when), decision.id, as_time(decision.since))


def _as_lines(number: int, answer: AnsweredItem) -> tuple[EventLine, EventLine]:
    """Return (decision, feedback) that an `answer` becomes, as lines with this `number`."""
    id, person, item, form, value = answer
    decided = {"person": person, "candidates": [item], "shown": [item]}
    feedback = {"id": id, "decision": id, form: {item: value}}
    return EventLine(number, "decision", id, decided), EventLine(number, "feedback", id, feedback)


def _content(event: Event) -> tuple[str | None, str, bytes | None]:
    """Return what a decision says: for whom, what, and of which features."""
    return event.subject, event.payload, event.arrays


def _has_fields(line: EventLine) -> bool:
    """Return whether candidates of a decision are given as objects."""
    candidates = line.record["candidates"]
    return bool(candidates) and not isinstance(candidates[0], str)


_Version: TypeAlias = "tuple[str, str] | None"


def _version(written: str, encoded: bytes) -> _Version:
    """Return the digests of an item's attributes as they are `written` ("" if there are none) and of its features."""
    digests = [
        hashlib.blake2b(part, digest_size=12).hexdigest() if part else "" for part in (written.encode(), encoded)
    ]
    return digests[0], digests[1]


def _same(a: _Version, b: _Version) -> bool:
    if a is None or b is None:
        return a is b
    return a[1] == b[1] and (a[0] == b[0] or not a[0] or not b[0])


def _check_predicted(interaction: Interaction[Any], given: Sequence[float]) -> tuple[float, ...]:
    """Return `given`, the predictions that come with an imported decision, one for each item shown; whole numbers as
    integers where people answer with those.

    Raise ValueError, naming the field, if one is out of range or loops of this kind predict nothing."""
    if not interaction.words.prediction:
        raise ValueError(f"predicted: expected none in {interaction.words.loop}, which predicts nothing, got some")
    scale = prediction_scale(interaction)
    for j, number in enumerate(given):
        scale.check(f"predicted[{j}]", number)
    return tuple(map(int, given)) if scale.whole else tuple(given)
