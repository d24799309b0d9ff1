"""The parameters in the queries of requests. Each is declared once, by the JSON schema of its value: the OpenAPI
document has that schema, and texts are read by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from heedful.core.decoding import decoder
from heedful.core.validation import ALPHA, describe
from heedful.server.codecs import number, unique_fields, whole
from heedful.server.schema import MOST, Id

KINDS = ("item", "decision", "activate", "feedback", "undo", "rollback", "experiment", "stop", "promote", "style")
"""The kinds of events of a stream."""
_KINDS = "|".join(KINDS)
NAMED = {name: value for name, value in msgspec.json.schema(Id).items() if name != "description"}


class Parameter(NamedTuple):
    """A parameter in the query of a request."""

    name: str
    schema: dict[str, Any]
    """the JSON schema of its value; an object or an array is written as JSON"""
    default: object = None
    """its value in a request without it; None if it has none then"""

    def read(self, text: str) -> Any:
        """Return the value that is written as `text`. Raise ValueError, beginning with the name, if it is none."""
        name, kind = self.name, self.schema["type"]
        if kind == "integer":
            return whole({name: text}, name, 0, self.schema["minimum"], self.schema["maximum"])
        if kind == "number":
            return number({name: text}, name)
        if kind == "boolean":
            if text not in ("true", "false"):
                raise ValueError(f"{name}: expected true or false, got {describe(text)}")
            return text == "true"
        if kind in ("object", "array"):
            try:
                return decoder(list[str]).decode(text) if kind == "array" else msgspec.json.decode(text)
            except (msgspec.MsgspecError, RecursionError, ValueError) as error:
                raise ValueError(f"{name}: expected JSON, got {describe(text)}: {error}") from None
        return text


def read_query(pairs: Sequence[tuple[str, str]], parameters: Sequence[Parameter]) -> Mapping[str, Any]:
    """Return the values of a query by name, with defaults. Raise ValueError for a parameter that is not among
    `parameters` or comes twice, or for a value that it does not take."""
    texts = unique_fields(pairs, [parameter.name for parameter in parameters])
    values = {parameter.name: parameter.default for parameter in parameters if parameter.default is not None}
    for parameter in parameters:
        if parameter.name in texts:
            values[parameter.name] = parameter.read(texts[parameter.name])
    return values


def _whole(name: str, default: int | None, least: int, most: int, **more: str) -> Parameter:
    return Parameter(name, {"type": "integer", "minimum": least, "maximum": most, **more}, default)


AFTER = _whole("after", 0, 0, 10**18 - 1)
ALPHA_ = Parameter("alpha", {"type": "number", "minimum": ALPHA[0], "maximum": ALPHA[1]}, 0.05)
PERSON = Parameter("person", NAMED)
PAGE = _whole("start", 0, 0, MOST), _whole("limit", 1000, 1, 10_000)
ACTS = _whole("before", MOST, 1, MOST), _whole("limit", 100, 1, 1000)
LAST = _whole("last", 10_000, 1, 1_000_000, description="decisions, the newest")
OF_ITEM = Parameter("item", NAMED), _whole("top", 10, 0, 1000)
WITHOUT = Parameter("without", {"type": "array", "items": NAMED}, ())
PLAN = (
    Parameter("share", {"type": "number", "minimum": 1e-6, "maximum": 1}),
    Parameter("days", {"type": "number", "minimum": 1e-3, "maximum": 3650}),
    ALPHA_,
)
STREAM = (
    AFTER,
    Parameter("kinds", {"type": "string", "pattern": f"^({_KINDS})(,({_KINDS}))*$", "description": "with commas"}),
    Parameter("follow", {"type": "boolean"}, True),
)
DECISION = (
    PERSON,
    _whole("show", None, 1, MOST),
    Parameter("id", NAMED),
    Parameter("deferred", {"type": "boolean"}),
    Parameter("context", {"type": "object"}),
    Parameter("prior", {"type": "boolean", "description": "whether the last number of each row is your score"}),
    Parameter("after", NAMED),
)
"""Those of a decision whose body, its candidates, is raw numbers."""
