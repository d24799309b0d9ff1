"""The routes of decisions and feedback: how their bodies are decoded, what they do, and what they answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heedful.core.validation import describe
from heedful.results.answers import Answer, LostDecision
from heedful.server import codecs
from heedful.server.codecs import FLOAT32
from heedful.server.parameters import DECISION, read_query
from heedful.server.problems import Problem, mask_keys
from heedful.server.request import ApiRequest
from heedful.server.schema import Decide

# ---------------------------------------------------------------------------- codecs


def read_decision(request: ApiRequest, kind: bytes, body: bytes) -> dict[str, Any]:
    """Return the arguments of `Loop.decide` from `body`, of the media type `kind`; the Idempotency-Key is the id.

    An empty body means that all items on offer are the candidates. A body of raw numbers has the candidates' features,
    and the other arguments are in the query. Raise ValueError or Problem if it has another form."""
    fields: dict[str, Any]
    if kind == FLOAT32:
        interaction = request.loop.projection.interaction
        size = 0 if interaction.by_number else request.loop.manifest.candidates.size
        if not size:
            raise ValueError(f"body: expected names of items, in {interaction.words.loop}, got raw numbers")
        fields = from_numbers(body, read_query(list(request.query.items()), DECISION), size)
    else:
        if (name := next(iter(request.query), None)) is not None:
            raise ValueError(f"query: expected none, as only raw numbers have fields there, got {describe(name)}")
        fields = codecs.check_fields(codecs.decode(body, kind) if body else {}, Decide)
    return codecs.with_key(fields, codecs.key(request.headers))


def read_feedback(request: ApiRequest, kind: bytes, body: bytes) -> dict[str, Any] | list[Any]:
    """Return one event, or a list of them, from `body`, of the media type `kind`.

    The Idempotency-Key is the id of one event; in a list, events without ids get it with a number. The fields of an
    event are checked by the loop, as they depend on the kind of feedback. Raise ValueError or Problem if it is
    neither."""
    value = codecs.decode(body, kind)
    key = codecs.key(request.headers)
    if type(value) is dict:
        return codecs.with_key(value, key)
    if type(value) is not list:
        raise ValueError(f"body: expected an event, or a list of them, got {describe(value)}")
    events = codecs.check_list(value, codecs.BATCH)
    if key is None:
        return events
    return [
        event | {"id": f"{key}-{i}"} if type(event) is dict and event.get("id") is None else event
        for i, event in enumerate(events)
    ]


# ---------------------------------------------------------------------------- work


async def decide(request: ApiRequest) -> dict[str, Any]:
    """Return the decision for a request, new or made earlier under its id, as JSON fields; count it in the metrics."""
    decision, again = await request.worker.decide_once(request.body, request.large)
    request.note("decision", "duplicate" if again else decision.arm)
    if decision.unknown and not again:
        request.note("candidate", "unknown", len(decision.unknown))
    plain: dict[str, Any] = decision.plain()
    return plain


async def take_feedback(request: ApiRequest) -> dict[str, Any] | list[dict[str, Any]]:
    """Apply one piece of feedback, or a list of them, and return the answers as JSON fields; count them in the metrics.

    Raise Problem (409) if a single one is rejected."""
    body, worker = request.body, request.worker
    if type(body) is not list:
        answer = await worker.feedback(body, request.large)
        request.note("feedback", outcome(answer))
        return answer_fields(answer)
    request.service.authenticator.spend(request.caller, len(body))
    answers = await worker.feedback_many(body, request.large)
    for answer in answers:
        request.note("feedback", outcome(answer))
    return [_fields(answer) for answer in answers]


# ---------------------------------------------------------------------------- results


def outcome(answer: Answer) -> str:
    """Return in a word what became of the event that was answered with `answer`, for the metrics.

    It is the answer's status ("applied", "duplicate", ...), or "late" for feedback that was applied but came later
    after its decision than the loop's setting `late_after` says."""
    return "late" if answer.late and answer.status == "applied" else answer.status


def answer_fields(answer: Answer) -> dict[str, Any]:
    """Return the `answer` to an event as JSON fields.

    Raise Problem (409), with the answer in it, if it is a rejection: of the kind "lost-decision" if the event's
    decision was lost in a crash, otherwise "rejected"."""
    if answer.status == "rejected":
        kind = "lost-decision" if isinstance(answer, LostDecision) else "rejected"
        raise Problem(kind, answer.reason or "rejected", answer=_fields(answer))
    return _fields(answer)


def _fields(answer: Answer) -> dict[str, Any]:
    """Return an answer as JSON fields; if it is rejected, what looks like a key in its texts is masked."""
    if answer.status == "rejected":
        answer = answer._replace(event=mask_keys(answer.event), reason=mask_keys(answer.reason or "rejected"))
    return answer._asdict()


def from_numbers(body: bytes | memoryview, parameters: Mapping[str, Any], columns: int) -> dict[str, Any]:
    """Return the arguments of `Loop.decide` from a `body` of raw float32 numbers, one row for each candidate.

    A row has `columns` features. If the query parameter `prior` is true, the caller's score follows them as last
    number. The other arguments are in the query, whose fields are `parameters`."""
    arguments = dict(parameters)
    scored = arguments.pop("prior", False)
    rows = codecs.matrix(body, columns + scored)
    arguments["candidates"] = rows[:, :columns] if scored else rows
    if scored:
        arguments["prior"] = rows[:, columns].tolist()
    return arguments
