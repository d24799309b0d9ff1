"""The OpenAPI document, made from the table of routes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from heedful.loop.interactions.registry import interactions
from heedful.server.codecs import KEY_LENGTH
from heedful.server.parameters import AFTER, KINDS, NAMED, Parameter
from heedful.server.problems import TITLES
from heedful.server.result_schema import json_type
from heedful.server.schema import LOOP_NAME, Problem

if TYPE_CHECKING:
    from heedful.server.routes import Route


class Text(NamedTuple):
    """The type of an answer that is text, not JSON, for the OpenAPI document."""

    media: str
    """the media type: "text/plain\""""
    schema: dict[str, Any]
    """the JSON schema of the text, or of the events that it is made of"""


TEXT = Text("text/plain", {"type": "string"})
EVENTS = Text(
    "text/event-stream",
    {
        "type": "object",
        "description": "each event of the stream",
        "properties": {
            "id": {"type": "string", "description": "its place in the log"},
            "event": {"type": "string", "enum": KINDS},
            "data": {"type": "string", "contentMediaType": "application/json"},
        },
    },
)
SCRIPT = Text("text/javascript", {"type": "string"})
_HEADERS: dict[str, dict[str, Any]] = {
    "Idempotency-Key": {
        "description": "the id, where the body has none; with or without quotes",
        "schema": {"type": "string", "minLength": 1, "maxLength": KEY_LENGTH},
    },
    "Last-Event-ID": {
        "description": "what a reader of streams sends by itself when it connects again: it goes before `after`",
        "schema": AFTER.schema,
    },
}
_PATH: dict[str, dict[str, Any]] = {
    "loop": {"type": "string", "pattern": LOOP_NAME},
    "item": NAMED,
    "id": NAMED,
    "person": NAMED,
}
_PROBLEM = "Problem"
_REFERENCE = "#/components/schemas/{name}"


def openapi(routes: Sequence[Route], version: str) -> bytes:
    """Return the OpenAPI 3.1 document of these `routes` as JSON; `version` is that of heedful."""
    bodies = [body for route in routes for body in (route.takes, route.gives) if not isinstance(body, Text | None)]
    details = [details for kind in interactions().values() if (details := kind.details) is not None]
    schemas, components = msgspec.json.schema_components(
        [json_type(kind) for kind in (*bodies, Problem, *details)], ref_template=_REFERENCE
    )
    components["PredictionReport"]["properties"]["details"] |= {
        "anyOf": [
            *({"$ref": _REFERENCE.format(name=kind.__name__)} for kind in details),
            {"type": "object", "description": "of a kind of feedback of your own"},
        ]
    }
    by_type = dict(zip([*map(str, bodies), "problem"], schemas))
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.template, {})[route.method.lower()] = _operation(route, by_type)
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
                "responses": _problems(by_type["problem"]),
                "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": "heedful keys create"}},
            },
        }
    )


def _operation(route: Route, by_type: dict[str, Any]) -> dict[str, Any]:
    named = [part[1:-1] for part in route.template.split("/") if part.startswith("{")]
    parameters = [{"name": name, "in": "path", "required": True, "schema": _PATH[name]} for name in named]
    parameters += [_query_parameter(parameter, route.numbers) for parameter in route.query]
    parameters += [{"name": name, "in": "header", "required": False, **_HEADERS[name]} for name in route.headers]
    if isinstance(route.gives, Text):
        content = {route.gives.media: {"schema": route.gives.schema}}
    else:
        content = {"application/json": {"schema": {} if route.gives is None else by_type[str(route.gives)]}}
        if route.gives is not None and route.scope is not None:
            content["application/msgpack"] = content["application/json"]
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": _name(route),
        "parameters": parameters,
        "responses": {str(route.status): {"description": "Done", "content": content}},
    }
    if route.scope is None and route.takes is None:
        return operation
    if route.scope is None:
        operation["description"] = "Needs a token for the decision, in its body, in place of a key."
    else:
        operation["description"] = f"Needs the scope {route.scope}."
        operation["security"] = [{"key": []}]
    if route.takes is not None:
        schema = {"schema": by_type[str(route.takes)]}
        text = {"type": "string", "contentMediaType": "application/json", "description": "the same"}
        other = {"text/plain": {"schema": text}} if route.plain else {"application/msgpack": schema}
        forms = {"application/json": schema, **other}
        if route.numbers:
            numbers = {"type": "string", "format": "binary", "description": "m x N float32, little-endian"}
            forms["application/octet-stream"] = {"schema": numbers}
        operation["requestBody"] = {"required": not route.numbers, "content": forms}
    for name in _problems(by_type["problem"]):
        operation["responses"][name.removeprefix(_PROBLEM)] = {"$ref": f"#/components/responses/{name}"}
    return operation


def _problems(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the answers to what is wrong with a request, by name, one for each HTTP status: "Problem404"."""
    titles: dict[int, list[str]] = {}
    for kind, (code, title) in TITLES.items():
        if kind != "not-allowed":
            titles.setdefault(code, []).append(title)
    content = {"application/problem+json": {"schema": schema}}
    return {
        f"{_PROBLEM}{code}": {"description": "; ".join(texts), "content": content} for code, texts in titles.items()
    }


def _name(route: Route) -> str:
    """Return the operationId of a route: get_loops, get_loop, post_decisions, delete_person."""
    return f"{route.method.lower()}_{route.template.rpartition('/')[2].strip('{}').partition('.')[0]}"


def _query_parameter(parameter: Parameter, numbers: bool) -> dict[str, Any]:
    """Return a parameter as OpenAPI has it; with `numbers`, other bodies have it as a field."""
    schema: dict[str, Any] = {"schema": parameter.schema}
    if parameter.schema["type"] in ("array", "object"):
        schema = {"content": {"application/json": schema}}
    described = {"name": parameter.name, "in": "query", "required": False, **schema}
    return described | ({"description": "with application/octet-stream only"} if numbers else {})
