"""Export as OpenSearch's User Behavior Insights (UBI 1.3): decisions are queries, clicks and actions are events.

The schema is https://github.com/o19s/ubi (schema/1.3.0); `heedful.data.ubi` reads it. docs/ubi.md says what becomes
what, and what does not fit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from heedful.data.row_report import UNDONE, Report
from heedful.data.ubi import ACTIONS, event_attributes
from heedful.io.exports import Exporter, as_time
from heedful.io.formats import Format, is_yes
from heedful.loop import Loop
from heedful.loop.log import Event
from heedful.loop.packing import LoggedDecision
from heedful.loop.recent_feedback import shown_at

LONGEST = 100
"""The most characters of an id, a client or an action in the schema, and in OpenSearch's indices of UBI."""
EARLIEST = 946_684_800_000_000
"""The year 2000, in microseconds since 1970: readers take an earlier time for a mistake."""
NAMES: Mapping[str, str] = {"cart": "add_to_cart", "buy": "purchase", "view": "watch"}
"""What actions of a loop are called in UBI; others keep their names."""
TAKEN = tuple(name for name, means in ACTIONS.items() if means in ("click", "impression", ""))
"""Names of UBI's that would say something else of an action."""
OPTIONS = {"bulk": "no: documents alone, without the lines between them that the bulk interface needs"}
"""The options of the format, each with what it says."""

NOT_SHOWN, NO_HITS, OLD, LONG = (
    "made ahead of time and not shown",
    "a list without items",
    "a time before 2000",
    f"an id of more than {LONGEST} characters",
)
NO_CLICK, NO_DECISION = "nothing was clicked", "on a decision that is not exported"
UNSEEN, CLASH = "about an item that was not shown", "an action with the name of another event of UBI"
JOINED, CHAINED = (
    "further clicks on a decision: readers join them",
    "clicks of one need on several lists: no longer one",
)
NUMBERS, UNSHOWN = "a context of which the log has numbers alone", "candidate that was not shown"


class _Clicked(NamedTuple):
    """What was done with one item of a decision: its id, the place from 1, the name of the action, the time."""

    decision: LoggedDecision
    item: str
    place: int
    action: str
    time: int


def write_ubi(loop: Loop, report: Report, options: Mapping[str, str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the queries and events of a loop that learns from clicks, in the order of its log, each after its line for
    the bulk interface, which names the index.

    Feedback that was undone or rolled back is left out; what was forgotten is not in the log. `report` counts decisions
    and feedback, and why some are left out. Raise ValueError for a loop of another kind."""
    interaction, bulk = loop.projection.interaction, is_yes(options, "bulk", True)
    if not interaction.linear or "clicks" not in interaction.forms:
        expected = "expected a loop that learns from clicks on lists, as `heedful init` makes one"
        raise ValueError(f"--as ubi: {expected}, got {interaction.words.loop}")
    loop.projection.catch_up()
    for what, id, document in _Writer(loop, report).documents():
        if bulk:
            yield "bulk action", {"index": {"_index": f"ubi_{'queries' if what == 'query' else 'events'}", "_id": id}}
        yield what, document


class _Writer:
    """Writes the documents of one loop, and counts in `report`."""

    def __init__(self, loop: Loop, report: Report) -> None:
        self._projection, self._report = loop.projection, report
        self._exporter = Exporter(loop, by_name=True)
        self._retracted = loop.projection.log.retractions()
        self._about = {"application": loop.path.name.removesuffix(".heedful")[:LONGEST]}
        self._field = loop.manifest.encoding.identifier or "id"
        self._numbers = loop.manifest.context is not None and not loop.manifest.settings.store_text
        self._clicked = set[int]()  # the decisions that had clicks

    def documents(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield ("query" or "event", its id in the index, the document)."""
        log, report = self._projection.log, self._report
        head, _ = log.last()
        for event in log.events(kinds=("decision", "feedback")):
            if event.seq > head:
                return
            if event.kind == "decision":
                report.rows["decisions"] += 1
                decision = self._projection.decision(event)
                if why := self._why_no_query(decision):
                    report.drop(why, f"decision {event.id}")
                    continue
                report.used["decisions"] += 1
                yield "query", event.id, self._query(decision)
            elif answered := self._exporter.decision(event.target):
                report.rows["feedback"] += 1
                clicks = self._clicks_of(event, answered[1])
                if isinstance(clicks, str):
                    report.drop(clicks, f"feedback {event.id}")
                    continue
                report.used["feedback"] += 1
                for i, click in enumerate(clicks):  # the id of each is the same in every export
                    id = hashlib.blake2b(f"{i} {event.id}".encode(), digest_size=16).hexdigest()
                    yield "event", f"heedful-{id}", self._event(click)

    # ---------------------------------------------------------------------------- queries

    def _why_no_query(self, decision: LoggedDecision) -> str:
        """Return why a decision becomes no query; "" if it does."""
        record = decision.record
        if record.deferred and self._projection.log.find("activate", decision.id) is None:
            return NOT_SHOWN
        if not _hits(decision):
            return NO_HITS
        if max(len(decision.id), len(decision.person or "")) > LONGEST:
            return LONG
        return OLD if shown_at(self._projection, decision) < EARLIEST else ""

    def _query(self, decision: LoggedDecision) -> dict[str, Any]:
        hits, context = _hits(decision), dict(decision.record.context or {})
        query = context.get("query")
        user_query = context.pop("query") if isinstance(query, str) and query else ""
        if self._numbers:
            self._report.left_out[NUMBERS] += 1
        if unshown := len(set(decision.names) - set(hits)):
            self._report.left_out[UNSHOWN] += unshown
        return {
            **self._about,
            "query_id": decision.id,
            **self._client(decision),
            "user_query": user_query,
            "timestamp": as_time(shown_at(self._projection, decision)),
            **({"query_attributes": context} if context else {}),
            "object_id_field": self._field,
            "query_response_hit_ids": hits,
        }

    def _client(self, decision: LoggedDecision) -> dict[str, str]:
        return {} if decision.person is None else {"client_id": decision.person}

    # ---------------------------------------------------------------------------- events

    def _clicks_of(self, event: Event, decision: LoggedDecision) -> list[_Clicked] | str:
        """Return what a piece of feedback says was done, click by click, or why it becomes no event."""
        if event.seq in self._retracted:
            return UNDONE
        line = self._exporter.line(event) or {}
        if "clicks" in line:
            return self._clicks(event, decision, line)
        if "action" in line:
            return self._action(event, decision, line)
        form = next((name for name in line if name not in ("kind", "id", "decision", "time")), "none")
        return NO_CLICK if form == "none" else f"{form}: no event of UBI says it"

    def _clicks(self, event: Event, decision: LoggedDecision, line: Mapping[str, Any]) -> list[_Clicked] | str:
        names, chain = line["clicks"], line.get("chain", ())
        if not names:
            return NO_CLICK
        later = (self._projection.find_decision(id) for id in chain)
        lists = [
            answered for answered in (decision, *later) if answered is not None and not self._why_no_query(answered)
        ]
        if not lists:
            return NO_DECISION
        shown = [_hits(answered) for answered in lists]
        placed = [(name, next((i for i, hits in enumerate(shown) if name in hits), -1)) for name in names]
        if all(i < 0 for _, i in placed):
            return UNSEEN
        # A microsecond between clicks, the last at the time of the feedback, so that their order can be read.
        clicks = [
            _Clicked(lists[i], name, shown[i].index(name) + 1, "click", event.time - (len(placed) - 1 - j))
            for j, (name, i) in enumerate(placed)
            if i >= 0
        ]
        if len(clicks) < len(placed):
            self._report.left_out[f"click {UNSEEN}"] += len(placed) - len(clicks)
        if chain:
            self._report.left_out[CHAINED] += 1
        if decision.seq in self._clicked:
            self._report.left_out[JOINED] += 1
        self._clicked.add(decision.seq)
        return clicks if event.time - len(placed) >= EARLIEST else OLD

    def _action(self, event: Event, decision: LoggedDecision, line: Mapping[str, Any]) -> list[_Clicked] | str:
        item, action = line["item"], NAMES.get(line["action"], line["action"])
        if why := self._why_no_query(decision):
            return why if why == LONG else NO_DECISION
        hits = _hits(decision)
        if item not in hits:
            return UNSEEN
        if action in TAKEN:
            return CLASH
        if len(action) > LONGEST:
            return LONG
        if event.time < EARLIEST:
            return OLD
        return [_Clicked(decision, item, hits.index(item) + 1, action, event.time)]

    def _event(self, click: _Clicked) -> dict[str, Any]:
        return {
            **self._about,
            "action_name": click.action,
            "query_id": click.decision.id,
            **self._client(click.decision),
            "timestamp": as_time(click.time),
            "event_attributes": event_attributes(click.item, self._field, click.place),
        }


def _hits(decision: LoggedDecision) -> list[str]:
    """Return the names in a list as it was shown, those that were not on offer in their places."""
    hits: list[str] = [decision.names[j] for j in decision.record.shown]
    placed: Sequence[tuple[int, str]] = sorted(place for place in decision.record.unknown if place[0] >= 0)
    for place, name in placed:
        hits.insert(place, name)
    return hits


UBI = Format("ubi", "OpenSearch's User Behavior Insights: queries and events", write_ubi, options=OPTIONS)
