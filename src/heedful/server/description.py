"""The routes as an OpenAPI description."""

from __future__ import annotations

from typing import Any

import msgspec

from heedful.server.problems import TITLES
from heedful.server.schema import (
    MOST,
    PRINTABLE,
    Activate,
    Answer,
    Decide,
    Decision,
    Explanation,
    Feedback,
    Forgotten,
    Health,
    Items,
    Loop,
    Loops,
    NewLoop,
    Object,
    Problem,
    Put,
    Rank,
    Ranking,
    Record,
    Replay,
    Replayed,
    Report,
    Standings,
    Undo,
    Weights,
    Withdrawn,
)

_ONE = "/v1/loops/{loop}"
_KEYED = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "the id, where the body has none; with or without quotes",
    "schema": {"type": "string", "minLength": 1, "maxLength": 180},
}
_LAST = {
    "name": "Last-Event-ID",
    "in": "header",
    "required": False,
    "description": "what a reader of streams sends by itself when it connects again: it goes before `after`",
    "schema": {"type": "integer", "minimum": 0, "maximum": 10**18 - 1},
}
_NAMED: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": PRINTABLE}
_PATH: dict[str, dict[str, Any]] = {
    "loop": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"},
    "item": _NAMED,
    "id": _NAMED,
    "person": _NAMED,
}
_KINDS = "item|decision|activate|feedback|undo"
_QUERY: dict[str, dict[str, Any]] = {
    "start": {"type": "integer", "minimum": 0},
    "limit": {"type": "integer", "minimum": 1, "maximum": 10_000},
    "person": _NAMED,
    "after": {"type": "integer", "minimum": 0, "maximum": 10**18 - 1},
    "kinds": {"type": "string", "pattern": f"^({_KINDS})(,({_KINDS}))*$", "description": "with commas"},
    "follow": {"type": "boolean"},
    "last": {"type": "integer", "minimum": 1, "maximum": 1_000_000, "description": "decisions, the newest"},
    "show": {"type": "integer", "minimum": 1, "maximum": MOST},
    "id": _NAMED,
    "deferred": {"type": "boolean"},
    "context": {"type": "object"},
    "prior": {"type": "boolean", "description": "whether the last number of each row is your score"},
}
_NUMBERS = ("person", "show", "id", "deferred", "context", "prior")
"""The fields beside candidates that are raw numbers."""

# (method, path, scope, what it does, what it takes, what it gives, query)
_ROUTES: tuple[tuple[str, str, str | None, str, Any, Any, tuple[str, ...]], ...] = (
    ("get", "/v1/loops", "read", "The loops there are", None, Loops, ()),
    ("post", "/v1/loops", "admin", "Make a loop", NewLoop, Loop, ()),
    ("get", _ONE, "read", "What there is to know of a loop", None, Loop, ()),
    ("put", f"{_ONE}/items", "admin", "Put items on offer, new or changed", list[Object], Put, ()),
    ("get", f"{_ONE}/items", "read", "The items on offer", None, Items, ("start", "limit")),
    ("delete", f"{_ONE}/items/{{item}}", "admin", "Take an item off offer", None, Withdrawn, ()),
    ("post", f"{_ONE}/decisions", "decide", "Decide what to show", Decide, Decision, ()),
    ("post", f"{_ONE}/rank", "read", "The model's order of candidates; nothing is logged", Rank, Ranking, ()),
    ("post", f"{_ONE}/records", "decide", "Tell what somebody else decided", Record, Decision, ()),
    ("post", f"{_ONE}/feedback", "feedback", "Tell what people answered, one or many", Feedback | list[Feedback],
     Answer | list[Answer], ()),
    ("post", f"{_ONE}/activate", "feedback", "Say that a deferred decision was shown", Activate, Answer, ()),
    ("post", f"{_ONE}/undo", "feedback", "Take one piece of feedback back", Undo, Answer, ()),
    ("post", f"{_ONE}/replays", "read", "What another learner makes of the log", Replay, Replayed, ()),
    ("get", f"{_ONE}/weights", "read", "What each feature counts", None, Weights, ("person",)),
    ("get", f"{_ONE}/standing", "read", "How things stand in a loop of choices", None, Standings, ("person",)),
    ("get", f"{_ONE}/report", "read", "What the loop learned, measured", None, Report, ("last",)),
    ("get", f"{_ONE}/decisions/{{id}}/explanation", "read", "Why the first stood first", None, Explanation, ()),
    ("get", f"{_ONE}/events", "read", "The events as they come", None, None, ("after", "kinds", "follow")),
    ("delete", f"{_ONE}/people/{{person}}", "admin", "Forget a person", None, Forgotten, ()),
    ("get", "/metrics", "read", "For Prometheus", None, None, ()),
    ("get", "/healthz", None, "Whether the server answers", None, Health, ()),
    ("get", "/openapi.json", None, "This description", None, None, ()),
)  # fmt: skip
_KEYED_PATHS = ("decisions", "records", "feedback", "undo")
_TEXT = {"/metrics": "text/plain", f"{_ONE}/events": "text/event-stream"}


_EVENT = {
    "type": "object",
    "description": "each event of the stream",
    "properties": {
        "id": {"type": "string", "description": "its place in the log"},
        "event": {"type": "string", "enum": _KINDS.split("|")},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}


def _named(method: str, path: str) -> str:
    """The name of an operation: get_loops, get_loop, post_decisions, delete_person."""
    words = [word for word in path.strip("/").split("/") if word != "v1"]
    return f"{method}_{words[-1].strip('{}').partition('.')[0]}"


def openapi(version: str) -> bytes:
    """The description of all routes, as JSON."""
    bodies = [each for route in _ROUTES for each in route[4:6] if each is not None]
    schemas, components = msgspec.json.schema_components([*bodies, Problem], ref_template="#/components/schemas/{name}")
    known = dict(zip([*map(str, bodies), "problem"], schemas))
    paths: dict[str, Any] = {}
    for method, path, scope, summary, takes, gives, query in _ROUTES:
        paths.setdefault(path, {})[method] = _operation(method, path, scope, summary, takes, gives, query, known)
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "heedful",
                "version": version,
                "description": "Loops over HTTP: show something, take the reaction, do better next time.",
            },
            "paths": paths,
            "components": {
                "schemas": components,
                "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": "heedful keys create"}},
            },
        }
    )


def _operation(
    method: str, path: str, scope: str | None, summary: str, takes: Any, gives: Any, query: tuple[str, ...],
    known: dict[str, Any],
) -> dict[str, Any]:  # fmt: skip
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    parameters = [{"name": n, "in": "path", "required": True, "schema": _PATH[n]} for n in names]
    parameters += [{"name": n, "in": "query", "required": False, "schema": _QUERY[n]} for n in query]
    what = path.rpartition("/")[2]
    if what == "decisions":
        parameters += map(_beside_numbers, _NUMBERS)
    if what in _KEYED_PATHS and method == "post":
        parameters.append(_KEYED)
    if what == "events":
        parameters.append(_LAST)
    content = {"application/json": {"schema": known[str(gives)] if gives is not None else {}}}
    if gives is not None and scope is not None:
        content["application/msgpack"] = content["application/json"]
    if path in _TEXT:
        content = {_TEXT[path]: {"schema": _EVENT if path.endswith("/events") else {"type": "string"}}}
    status = "201" if gives is Loop and method == "post" else "200"
    operation: dict[str, Any] = {
        "summary": summary,
        "operationId": _named(method, path),
        "parameters": parameters,
        "responses": {status: {"description": "Done", "content": content}},
    }
    if scope is None:
        return operation
    operation["description"] = f"Needs the scope {scope}."
    operation["security"] = [{"key": []}]
    if takes is not None:
        schema = known[str(takes)]
        media = ["application/json", "application/msgpack"]
        operation["requestBody"] = {"required": True, "content": {each: {"schema": schema} for each in media}}
        if what == "decisions":  # without a body it is one among all items
            operation["requestBody"]["required"] = False
            numbers = {"schema": {"type": "string", "format": "binary", "description": "m x N float32, little-endian"}}
            operation["requestBody"]["content"]["application/octet-stream"] = numbers
    for kind, (code, title) in TITLES.items():
        problem = {"application/problem+json": {"schema": known["problem"]}}
        if kind != "not-allowed":
            operation["responses"].setdefault(str(code), {"description": title, "content": problem})
    return operation


def _beside_numbers(name: str) -> dict[str, Any]:
    """A parameter of decisions: the other forms of a body have it as a field."""
    schema = {"schema": _QUERY[name]}
    return {
        "name": name,
        "in": "query",
        "required": False,
        "description": "beside application/octet-stream alone",
        **({"content": {"application/json": schema}} if name == "context" else schema),
    }
