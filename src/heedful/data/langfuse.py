"""Scores of Langfuse, and the outputs that they are about, as its API and its exports have them.

Scores are read in three shapes: those of `GET /api/public/v3/scores` (with `fields=subject`), the flat ones of
`/api/public/v2/scores`, and rows of the export to blob storage (`trace_id`, `data_type`, ...). Outputs are observations
(`GET /api/public/v2/observations`, or of the export) or traces. docs/langfuse.md says what was verified.
"""

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, TypeAlias

from heedful.core.times import parse_time
from heedful.core.validation import describe
from heedful.data.files import cell_number, cell_truth
from heedful.data.messages import conversation, has_other_parts, is_message, messages_in, says_more

DataType: TypeAlias = Literal["NUMERIC", "BOOLEAN", "CATEGORICAL", "TEXT", "CORRECTION"]
TYPES: tuple[DataType, ...] = ("NUMERIC", "BOOLEAN", "CATEGORICAL", "TEXT", "CORRECTION")
KINDS = ("trace", "observation", "session", "experiment")


class Score(NamedTuple):
    """One score: its id, what it says, and what it is attached to.

    `trace` and `observation` are ids, None for a score of something else."""

    place: str
    """its place in a file, for messages"""
    id: str
    name: str
    type: DataType
    value: float | bool | str | None
    """a number, a boolean or a text, by `type`; None if it has none"""
    source: str
    """who gave it: API, ANNOTATION (a person) or EVAL (a model)"""
    time: str | None
    """when it was given, ISO 8601"""
    version: str | None
    """when it was changed last, ISO 8601"""
    kind: str
    """what it is attached to: trace, observation, session, experiment"""
    trace: str | None
    observation: str | None

    @property
    def places(self) -> tuple[str, ...]:
        """the ids under which a decision may stand: that of the observation, then that of the trace"""
        return tuple([id for id in (self.observation, self.trace) if id is not None])


class Output(NamedTuple):
    """What an application answered: the output of a trace or of an observation, with what it was asked."""

    id: str
    """the id of the trace, or of the observation"""
    trace: str
    """the id of the trace; for a trace its own"""
    is_root: bool
    """whether it stands for its whole trace"""
    text: str
    """the output as a text; "" if there is none"""
    prompt: str
    """the input as a text; "" if there is none"""
    messages: list[Any] | None
    """the input, if it is a list of messages"""
    person: str | None
    """the id of the user"""
    time: str | None
    """when it began, ISO 8601"""


def parse_score(place: str, record: Mapping[str, Any]) -> Score:
    """Return the score in a `record`, an object at this `place`. Raise ValueError, which begins with the place, if it
    is none."""
    try:
        return _score(place, record)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None


def parse_output(place: str, record: Mapping[str, Any]) -> Output:
    """Return the output of a `record`, an object at this `place`, of a trace or an observation. Raise ValueError, which
    begins with the place, if it is neither."""
    try:
        return _output(record)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None


# ---------------------------------------------------------------------------- scores


def _score(place: str, record: Mapping[str, Any]) -> Score:
    id, name = _id(record, "id"), record.get("name")
    if id is None:
        raise ValueError(f"id: expected that of a score, got {'none' if 'id' not in record else repr(record['id'])}")
    if not isinstance(name, str):
        raise ValueError(f"name: expected a text, got {describe(name)}")
    data_type = _first(record, "dataType", "data_type")
    written = data_type.upper() if isinstance(data_type, str) else None
    score_type = next((type for type in TYPES if type == written), None)
    if score_type is None:
        raise ValueError(f"dataType: expected {', '.join(TYPES)}, got {describe(data_type)}")
    source = record.get("source")
    if not isinstance(source, str) or not source:
        raise ValueError(f"source: expected API, ANNOTATION or EVAL, got {describe(source)}")
    kind, trace, observation = _subject(record)
    time = _time(record, "timestamp")
    version = _time(record, "updatedAt") or _time(record, "updated_at") or time
    return Score(
        place, id, name, score_type, _value(score_type, record), source.upper(), time, version, kind, trace, observation
    )


def _value(type: DataType, record: Mapping[str, Any]) -> float | bool | str | None:
    """Return the value of a score by its type; older answers have texts in `stringValue`, exports in `string_value`."""
    value, text = record.get("value"), _first(record, "stringValue", "string_value")
    if type in ("CATEGORICAL", "TEXT", "CORRECTION"):
        content = text if text is not None else value
        if text is None and (record.get("stringValue", 0) in (None, "") or record.get("string_value", 0) in (None, "")):
            return None
        if content is None:
            return None
        if not isinstance(content, str):
            raise ValueError(f"value: expected a text with {type}, got {describe(content)}")
        return content
    if value is None and text is None:
        return None
    if type == "BOOLEAN":
        content = value if value is not None else text
        if (truth := cell_truth(content)) is None:
            raise ValueError(f"value: expected true or false with BOOLEAN, got {describe(content)}")
        return truth
    number = cell_number(value)
    if number is None or not math.isfinite(number):
        raise ValueError(f"value: expected a number with NUMERIC, got {describe(value)}")
    return number


def _subject(record: Mapping[str, Any]) -> tuple[str, str | None, str | None]:
    """Return (kind, trace, observation): what a score is attached to."""
    if "subject" in record:
        subject = record["subject"]
        if not isinstance(subject, Mapping) or subject.get("kind") not in KINDS:
            raise ValueError(f"subject: expected an object of kind {', '.join(KINDS)}, got {describe(subject)}")
        id = _id(subject, "id")
        if id is None:
            raise ValueError(f"subject.id: expected an id, got {describe(subject.get('id'))}")
        if subject["kind"] == "observation":
            return "observation", _id(subject, "traceId"), id
        return str(subject["kind"]), id if subject["kind"] == "trace" else None, None
    names = (
        ("observation", ("observationId", "observation_id")),
        ("trace", ("traceId", "trace_id")),
        ("session", ("sessionId", "session_id")),
        ("experiment", ("datasetRunId", "dataset_run_id")),
    )
    if not any(field in record for _, fields in names for field in fields):
        expected = "what the score is attached to; ask for it with fields=subject"
        raise ValueError(f"subject: expected {expected}, got none")
    ids = {kind: next((id for f in fields if (id := _id(record, f)) is not None), None) for kind, fields in names}
    kind = next((kind for kind, id in ids.items() if id is not None), None)
    if kind is None:
        raise ValueError("traceId: expected what the score is attached to, got nothing")
    return kind, ids["trace"], ids["observation"]


# ---------------------------------------------------------------------------- outputs


def _output(record: Mapping[str, Any]) -> Output:
    id, trace = _id(record, "id"), _id(record, "traceId") or _id(record, "trace_id")
    if id is None:
        raise ValueError(f"id: expected that of a trace or an observation, got {describe(record.get('id'))}")
    if "output" not in record and "input" not in record:
        raise ValueError("output: expected input and output (fields=core,basic,io), got neither")
    root = _first(record, "isRootObservation", "is_root_observation")
    parent = _first(record, "parentObservationId", "parent_observation_id")
    is_root = trace is None or (root if isinstance(root, bool) else not parent)
    messages = _messages(record.get("input"))
    return Output(
        id,
        trace or id,
        is_root,
        as_text(record.get("output")),
        _conversation(messages) if messages is not None else as_text(record.get("input"), prompt=True),
        messages,
        _id(record, "userId") or _id(record, "user_id"),
        _time(record, "startTime") or _time(record, "start_time") or _time(record, "timestamp"),
    )


def as_text(value: object, *, prompt: bool = False) -> str:
    """Return an input or output as one text: a text as it is, of messages the last answer, of an object its text.

    Langfuse has them as texts, which may be JSON. `prompt` says that it is an input. What has no text of its own is
    returned as JSON, but "" for a message that calls tools or has other parts than texts."""
    value = _decoded(value)
    if (
        value is None
        or has_other_parts(value)
        or (isinstance(value, Mapping) and is_message(value) and says_more(value))
    ):
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        for field in ("content", "text", "output", "answer", "response", "completion", "message", "query", "question"):
            if field in value and (isinstance(value[field], str | Mapping) or _is_content(value[field])):
                return as_text(value[field], prompt=prompt)
        if isinstance(value.get("choices"), list) and len(value["choices"]) == 1:
            return as_text(value["choices"][0], prompt=prompt)
        messages = _messages(value)
        if messages is not None:
            return _conversation(messages) if prompt else as_text(messages[-1])
        if len(value) == 1 and isinstance(alone := next(iter(value.values())), str):
            return alone
    if isinstance(value, list):
        if (parts := _parts(value)) is not None:
            return parts
        if (messages := _messages(value)) is not None:
            return _conversation(messages) if prompt else as_text(messages[-1])
        if len(value) == 1:
            return as_text(value[0], prompt=prompt)
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _decoded(value: object) -> object:
    """Return the value of a text that is JSON, or messages as Python prints them (None if unreadable); others as they
    are."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "[", '"'):
        try:
            decoded = json.loads(value)
        except (ValueError, RecursionError):
            try:
                return messages_in(value) or value
            except ValueError:
                return None
        return decoded if isinstance(decoded, dict | list | str) else value
    return value


def _parts(value: object) -> str | None:
    """Return the text of a message's parts, [{"type": "text", "text": ...}]; None if it is something else."""
    if not isinstance(value, list) or not value:
        return None
    texts = [part.get("text") for part in value if isinstance(part, Mapping) and isinstance(part.get("text"), str)]
    return "\n\n".join(map(str, texts)) if len(texts) == len(value) else None


def _is_content(value: object) -> bool:
    """Return whether `value` is a list of a message's parts."""
    return has_other_parts(value) or _parts(value) is not None


def _messages(value: object) -> list[Any] | None:
    """Return the messages in an input, a list of {"role", "content"} or an object with one; None if there are none."""
    value = _decoded(value)
    if isinstance(value, Mapping) and "messages" in value:
        value = value["messages"]
    return value if isinstance(value, list) and value and all(map(is_message, value)) else None


def _conversation(messages: list[Any]) -> str:
    return conversation(messages, [as_text(message["content"]) for message in messages])


# ---------------------------------------------------------------------------- fields


def _first(record: Mapping[str, Any], *fields: str) -> Any:
    """Return the first of these fields that the record has and that is not None and not empty."""
    return next((record[field] for field in fields if record.get(field) not in (None, "")), None)


def _id(record: Mapping[str, Any], field: str) -> str | None:
    value = record.get(field)
    if value is None or value == "":
        return None
    if not isinstance(value, str) or not 1 <= len(value) <= 200 or not value.isprintable():
        raise ValueError(f"{field}: expected 1 to 200 printable characters, got {describe(value)}")
    return value


def _time(record: Mapping[str, Any], field: str) -> str | None:
    value = record.get(field)
    if value is None or value == "":
        return None
    if isinstance(value, datetime):
        return value.isoformat() if value.tzinfo else value.replace(tzinfo=UTC).isoformat()
    try:
        parse_time(value)
    except ValueError:
        raise ValueError(f"{field}: expected a time such as 2026-01-31T12:00:00Z, got {describe(value)}") from None
    return str(value)
