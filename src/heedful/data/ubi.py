"""OpenSearch User Behavior Insights logs (UBI 1.0 to 1.3) as lines of the exchange format: decisions and feedback.

The schemas are those of https://github.com/o19s/ubi (schema/1.2.0 and schema/1.3.0, event.schema.json and
query.request.schema.json); the names of the indices' fields are those of the plugin
(https://github.com/opensearch-project/user-behavior-insights, src/main/resources). docs/ubi.md has the table of what
becomes what, and every reason why a row is dropped.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from heedful.core.validation import describe
from heedful.data.row_report import Report
from heedful.data.ubi_rows import (
    as_context,
    as_hits,
    as_name,
    as_object,
    as_position,
    as_time,
    first,
    is_bulk,
    read_rows,
)

# What becomes of an action: gathered "click"s, an "impression" that tells what was shown, "" for no choice at
# all, or the name of the action in the feedback, as the settings of a loop have it. What is named here are the
# standard's own actions and the hovers of its collectors.
ACTIONS: Mapping[str, str] = {
    "click": "click",
    "click_through": "click",
    "add_to_cart": "cart",
    "purchase": "buy",
    "watch": "view",
    "impression": "impression",
    "view": "",
    "hover": "",
    "product_hover": "",
}

HITS = ("query_response_hit_ids", "query_response_object_ids", "query_response_objects_ids")  # newest first
CHAIN_MINUTES = 30  # greatest gap between two queries of one information need


class _Event(NamedTuple):
    """One usable event of a UBI log; `position` is infinite if unknown, `line` its line in the file."""

    time: datetime
    item: str
    what: str  # "click", "impression" or the name of an action
    position: float  # where the item was shown; infinity if nobody says
    session: str
    line: int


def event_attributes(item: str, field: str, place: int) -> dict[str, Any]:
    """Return the `event_attributes` of an event on the `item`, an id in the documents' field `field`, which stood at
    this `place`, from 1."""
    return {"object": {"object_id": item, "object_id_field": field}, "position": {"ordinal": place}}


@dataclass(slots=True)
class _Query:
    """One query of a UBI log with its hits and events; `extra` counts attributes that are not part of the context."""

    id: str
    time: datetime
    hits: list[str]
    person: str | None
    context: dict[str, Any]
    session: str
    line: int
    extra: int  # attributes that are not in the context
    events: list[_Event] = field(default_factory=list)

    def content(self) -> tuple[object, ...]:
        """Return a sort key of all fields in which two rows of a query may differ; the smallest is kept."""
        context = msgspec.json.encode(self.context, order="sorted")
        return (not any(self.hits), self.time, self.hits, self.person or "", context, self.session)


def read_ubi(
    queries: str | PathLike[str],
    events: str | PathLike[str],
    report: Report,
    *,
    chains: bool = False,
    actions: Mapping[str, str] = ACTIONS,
) -> Iterator[dict[str, Any]]:
    """Yield the decisions and the feedback in logs of search (UBI, User Behavior Insights), as objects of the exchange
    format, in an order that can be imported.

    `queries` and `events`: files of JSON lines (documents, bare or within `_source`), or CSV if so named (.csv,
    .csv.gz), plain or gzip. Queries come in the order of time, then of ids. Each is a decision that showed its hits in
    their order, with probability None; a query without hits showed the items of its impressions, by position. After it
    comes one feedback with its clicks, in the order of the first click on each item, and then one for each other
    action. `actions`: what each action in the logs counts as: "click", "impression", "" for nothing, or the name of
    an action of the loop. With `chains`, queries of one client (of one session, where known) with at most 30 minutes
    from each to the next are one search for the same thing. Their clicks become one feedback: it comes after all of
    their decisions, answers the first, and its `chain` names the others.

    Ids are hashes of what identifies the event, so that another export of the same rows gives the same lines; rows may
    be in any order. All queries and usable events are held in memory. `report` is filled in with what became of each
    row: a bad row is counted there, and raises nothing. Errors for a file that does not exist or is cut off are those
    of `files.open_uncompressed`.
    """
    queries_by_id, unusable = _queries(Path(queries), report)
    _events(Path(events), queries_by_id, unusable, actions, report)
    names = Path(queries).name, Path(events).name
    shown_queries = [query for query in queries_by_id.values() if _resolve(query, names, report)]
    shown_queries.sort(key=lambda query: (query.time, query.id))
    for need in _needs(shown_queries, chains):
        for query in need:
            report.used["queries"] += 1
            yield _decision(query)
        yield from _feedback(need, names[1], report)


def _queries(path: Path, report: Report) -> tuple[dict[str, _Query], set[str]]:
    """Return {id: query} of the usable rows, and the ids of the others; `report` counts what became of each."""
    by_id: dict[str, _Query] = {}
    unusable: set[str] = set()
    for number, row, error, _ in read_rows(path):
        report.rows["queries"] += 1
        place = f"{path.name}:{number}"
        in_query = f"{place}: action_name: expected none in a query, got one"
        query_id = row and as_name(row.get("query_id"))
        if row is None:
            report.drop("unreadable line", error or place)
        elif not query_id:
            if is_bulk(row):
                report.drop("bulk action line", f"{place}: expected a document, got {describe(row)}")
            elif "action_name" in row:
                report.drop("event among the queries", in_query)
            else:
                report.drop("query without query_id", _complaint(place, "query_id", "an id", row.get("query_id")))
        elif "action_name" in row:
            report.drop("event among the queries", in_query)
        elif (time := as_time(row.get("timestamp"))) is None:
            unusable.add(query_id)
            report.drop("query without a time", _complaint(place, "timestamp", "ISO 8601 or ms", row.get("timestamp")))
        else:
            attributes = as_object(row.get("query_attributes"))
            session = as_name(row.get("session_id")) or as_name(attributes.get("session_id"))
            hits = as_hits(next((row[name] for name in HITS if row.get(name)), None))
            context = as_context(row.get("user_query"), attributes)
            extra = sum(key not in context or context[key] is not attributes[key] for key in attributes)
            person = as_name(row.get("client_id")) or None
            query = _Query(query_id, time, hits, person, context, session, number, extra)
            first_row = by_id.setdefault(query_id, query)
            if first_row is not query:
                new, old = query.content(), first_row.content()
                if new < old:
                    by_id[query_id], query = query, first_row
                _drop_second(query, f"{path.name}:{query.line}", new == old, report)
    return by_id, unusable


def _drop_second(query: _Query, place: str, same: bool, report: Report) -> None:
    """Count in `report` that a row is not kept, because another row of its query is; `same`: they are equal."""
    if same:
        report.drop("repeated row", f"{place}: query_id: expected each query once, got {describe(query.id)} again")
    elif not any(query.hits):
        report.drop("query without hits", f"{place}: {HITS[0]}: expected the ids of what was shown, got none")
    else:
        report.drop(
            "query_id of another query", f"{place}: query_id: expected one query an id, got {describe(query.id)} again"
        )


def _events(
    path: Path, queries: dict[str, _Query], unusable: set[str], actions: Mapping[str, str], report: Report
) -> None:
    """Append each usable event to its query in `queries`; report the others."""
    for number, row, error, _ in read_rows(path):
        report.rows["events"] += 1
        place = f"{path.name}:{number}"
        if row is None:
            report.drop("unreadable line", error or place)
            continue
        action = row.get("action_name")
        attributes = as_object(row.get("event_attributes"))
        hit, position_fields = as_object(attributes.get("object")), as_object(attributes.get("position"))
        # In a CSV the fields are flat, with or without the names of the objects around them.
        item = as_name(first(hit.get("object_id"), row.get("event_attributes.object.object_id"), row.get("object_id")))
        query_id, time = as_name(row.get("query_id")), as_time(row.get("timestamp"))
        if action is None and is_bulk(row):
            report.drop("bulk action line", f"{place}: expected a document, got {describe(row)}")
        elif action is None and ("user_query" in row or any(name in row for name in HITS)):
            report.drop("query among the events", f"{place}: action_name: expected one, got none")
        elif not query_id:
            report.drop("event without query_id", _complaint(place, "query_id", "an id", row.get("query_id")))
        elif query_id not in queries:
            reason = "event of a dropped query" if query_id in unusable else "event of an unknown query"
            report.drop(reason, _complaint(place, "query_id", "one of the queries", query_id))
        elif not isinstance(action, str) or action not in actions:
            report.drop("unknown action", _complaint(place, "action_name", "one that is known", action))
        elif not (what := actions[action]):
            report.drop("not a choice", _complaint(place, "action_name", "a choice", action))
        elif time is None:
            report.drop("event without a time", _complaint(place, "timestamp", "ISO 8601 or ms", row.get("timestamp")))
        elif not item:
            report.drop("event without object_id", _complaint(place, "object_id", "an id", hit.get("object_id")))
        else:
            ordinal = first(
                position_fields.get("ordinal"), row.get("event_attributes.position.ordinal"), row.get("ordinal")
            )
            if isinstance(ordinal, dict):  # as in 1.2; from 1.3 on the number itself
                ordinal = ordinal.get("index")
            position = as_position(first(ordinal, attributes.get("rank"), row.get("rank")))
            session = as_name(row.get("session_id"))
            queries[query_id].events.append(_Event(time, item, what, position, session, number))


def _resolve(query: _Query, names: tuple[str, str], report: Report) -> bool:
    """Sort a query's events, dropping those of items not shown; return False if nobody knows what was shown."""
    query.events.sort()
    impressions = [event for event in query.events if event.what == "impression"]
    rebuilt = not any(query.hits)
    if rebuilt:
        query.hits = [event.item for event in sorted(impressions, key=lambda event: event.position)]
    named = [hit for hit in query.hits if hit]
    hits = list(dict.fromkeys(named))
    if not hits:
        expected = f"{names[0]}:{query.line}: {HITS[0]}: expected the ids of what was shown"
        report.drop("query without hits", f"{expected}, got none, and no impressions")
    elif not rebuilt:
        _leave_out("hit without an id", len(query.hits) - len(named), report)
        _leave_out("hit named twice", len(named) - len(hits), report)
    query.hits = hits
    query.session = query.session or next((event.session for event in query.events if event.session), "")
    usable: list[_Event] = []
    shown, repeats, before = set(query.hits), set(), set()
    for event in query.events:
        place = f"{names[1]}:{event.line}"
        same = (event.time, event.item, event.what)
        if not query.hits:
            report.drop("event of a dropped query", _complaint(place, "query_id", "a query with hits", query.id))
        elif event.what == "impression" and not rebuilt:
            report.drop("not a choice", _complaint(place, "action_name", "a choice", event.what))
        elif event.item not in shown:
            report.drop("item not in the response", _complaint(place, "object_id", "one of the hits", event.item))
        elif same in repeats:
            report.drop("repeated row", f"{place}: event: expected each once, got one again")
        elif (event.what, event.item) in before and event.what in ("click", "impression"):
            report.drop("same item again", f"{place}: object_id: expected the first {event.what} on it, got another")
        else:
            usable.append(event)
        repeats.add(same)
        before.add((event.what, event.item))
    if query.hits:
        _leave_out("attribute that is no text or number", query.extra, report)
        report.used["events"] += sum(event.what == "impression" for event in usable)
    query.events = [event for event in usable if event.what != "impression"]
    return bool(query.hits)


def _leave_out(what: str, number: int, report: Report) -> None:
    if number:
        report.left_out[what] += number


def _needs(queries: list[_Query], chains: bool) -> list[list[_Query]]:
    """Group queries by information need: one each or, with `chains`, those of a session within CHAIN_MINUTES."""
    needs: list[list[_Query]] = []
    latest: dict[str, tuple[list[_Query], str]] = {}  # the latest need of each client, with its session as far as known
    for query in queries:
        need, session = latest.get(query.person or "", ([], ""))
        near = bool(need) and query.time - need[-1].time <= timedelta(minutes=CHAIN_MINUTES)
        if not (near and (not session or not query.session or session == query.session)):
            need, session = [], ""
            needs.append(need)
        need.append(query)
        if chains and query.person:
            latest[query.person] = need, session or query.session
    return needs


def _decision(query: _Query) -> dict[str, Any]:
    return {
        "kind": "decision",
        "id": query.id,
        "person": query.person,
        "time": _iso(query.time),
        "candidates": query.hits,
        "shown": list(query.hits),
        "context": query.context,
        "probability": None,
    }


def _feedback(need: list[_Query], name: str, report: Report) -> Iterator[dict[str, Any]]:
    """Yield the feedback on the queries of a need as lines of an import: all clicks as one, then each action."""
    clicks: dict[str, _Event] = {}
    for event in sorted(event for query in need for event in query.events if event.what == "click"):
        if event.item in clicks:
            report.drop(
                "same item again", f"{name}:{event.line}: object_id: expected the first click on it, got another"
            )
        else:
            clicks[event.item] = event
    if clicks:
        report.used["events"] += len(clicks)
        decision = need[0].id
        last = max(event.time for event in clicks.values())
        # One such event for each decision: a later export with more clicks is refused as changed, not learned again.
        chain = {"chain": [query.id for query in need[1:]]} if len(need) > 1 else {}
        yield _event(_id("clicks", decision), decision, last) | {"clicks": list(clicks)} | chain
    for query in need:
        for event in query.events:
            if event.what != "click":
                report.used["events"] += 1
                event_id = _id("action", query.id, event.what, event.item, _iso(event.time))
                yield _event(event_id, query.id, event.time) | {"action": event.what, "item": event.item}


def _event(event_id: str, decision: str, time: datetime) -> dict[str, Any]:
    return {"kind": "feedback", "id": event_id, "decision": decision, "time": _iso(time)}


def _id(*what: str) -> str:
    """Return the id of an event, a hash of the texts `what` that identify it: 128 bits, so no two events share one."""
    return "ubi-" + hashlib.blake2b(msgspec.json.encode(what), digest_size=16).hexdigest()


def _iso(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")


def _complaint(place: str, name: str, expected: str, value: object) -> str:
    return f"{place}: {name}: expected {expected}, got {'none' if value is None else describe(value)}"
