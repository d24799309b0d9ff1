"""What is sent and what comes back, without any network: calls, replies, and what a reply means.

Pure: nothing in here waits, opens or sends. Both clients share it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec
import numpy as np

from heedful.doors import describe
from heedful.loop.wire import Answer

T = TypeVar("T")
JSON, MSGPACK, FLOATS = "application/json", "application/msgpack", "application/octet-stream"


class Call(NamedTuple):
    """A request, ready to be sent."""

    method: str
    path: str
    """from /v1 on, quoted, with its query"""
    body: bytes | None = None
    content: str = JSON
    """the body's type"""
    timeout: float = 5.0
    """seconds for all of it"""
    last_id: str = ""
    """of a stream, the last event that was seen"""


class Reply(NamedTuple):
    """An answer that arrived whole."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Failed(NamedTuple):
    """No answer."""

    told: str
    timed_out: bool
    sent: bool
    """whether the request may have arrived"""


class Wait(NamedTuple):
    """A pause between two calls."""

    seconds: float


# ---------------------------------------------------------------------------- what is sent


def path(*parts: str, **query: Any) -> str:
    """The path of a request under /v1; parts are names, whatever characters they are made of."""
    found = "/v1" + "".join(f"/{_segment(part)}" for part in parts)
    given = [f"{name}={quote(_said(value), safe='')}" for name, value in query.items() if value is not None]
    return f"{found}?{'&'.join(given)}" if given else found


def _segment(name: str) -> str:
    # Dots alone would be read as "this folder" and "the one above" on the way.
    return quote(name, safe="") if name.strip(".") else name.replace(".", "%2E")


def _said(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=_plain).decode()


def body(value: Any, content: str = JSON) -> bytes:
    """value as JSON or msgpack; what numpy and others call a number, a list or an object is one."""
    encode = msgspec.msgpack.encode if content == MSGPACK else msgspec.json.encode
    try:
        return encode(value, enc_hook=_plain)
    except (TypeError, NotImplementedError, OverflowError, RecursionError) as error:
        raise ValueError(f"body: wanted what JSON can say, got something else: {error}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key) if isinstance(key, str) else key: each for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return list(value)
    if isinstance(value, str):
        return str(value)
    raise TypeError(f"a {type(value).__name__}")


def given(**fields: Any) -> dict[str, Any]:
    """The fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def batches(values: Iterable[Any], most: int, size: int) -> Iterator[tuple[list[Any], bytes]]:
    """values in lists of at most `most`, and of about `size` bytes as msgpack, each with its msgpack."""
    some: list[Any] = []
    pieces: list[msgspec.Raw] = []
    total = 0
    for value in values:
        piece = msgspec.Raw(body(value, MSGPACK))
        if some and (len(some) >= most or total + len(piece) > size):
            yield some, body(pieces, MSGPACK)
            some, pieces, total = [], [], 0
        some.append(value)
        pieces.append(piece)
        total += len(piece)
    if some:
        yield some, body(pieces, MSGPACK)


# ---------------------------------------------------------------------------- what comes back

_ERRORS: dict[int, Callable[[str], Exception]] = {
    401: PermissionError,
    403: PermissionError,
    404: LookupError,
    408: TimeoutError,
    409: LookupError,
    421: PermissionError,
    429: TimeoutError,
    500: RuntimeError,
    503: TimeoutError,
}


def kind_of(reply: Reply) -> str:
    """The kind of problem that a reply tells, "" where it is none of ours."""
    return str(_problem(reply).get("type", "")).rpartition(":")[2]


def _problem(reply: Reply) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(reply.body)
    except msgspec.MsgspecError:
        return {}
    return found if isinstance(found, dict) else {}


def error_of(call: Call, outcome: Reply | Failed) -> Exception:
    """The exception that says what went wrong. It holds what the server said, and no header of the request."""
    where = f"{call.method} {call.path.partition('?')[0]}"
    if isinstance(outcome, Failed):
        return (TimeoutError if outcome.timed_out else ConnectionError)(f"{where}: {outcome.told}")
    told = _problem(outcome).get("detail") or f"{where}: the server answered {outcome.status}"
    status = outcome.status
    if status == 409 and kind_of(outcome) == "exists":
        return FileExistsError(told)
    if status in _ERRORS:
        return _ERRORS[status](told)
    return ValueError(told) if 400 <= status < 500 else ConnectionError(told)


def retry_after(outcome: Reply | Failed) -> float:
    """The seconds that the server asks to wait; 0 where it does not say."""
    said = outcome.headers.get("retry-after", "") if isinstance(outcome, Reply) else ""
    return float(said) if said.isascii() and said.isdigit() else 0.0


def read(reply: Reply, wanted: type[T]) -> T:
    """A reply's body as what it should be. ConnectionError where it is something else: that was no heedful server."""
    try:
        return msgspec.json.decode(reply.body, type=wanted)
    except msgspec.MsgspecError as error:
        told = f"wanted an answer of heedful's, got {describe(reply.body[:40])} ({error}); is the url the server's?"
        raise ConnectionError(told) from None


def _known(wanted: Callable[..., Any], fields: dict[str, Any]) -> dict[str, Any]:
    """The fields that `wanted` takes: a newer server may say more."""
    takes = inspect.signature(wanted).parameters.values()
    if any(each.kind is each.VAR_KEYWORD for each in takes):
        return fields
    return {each.name: fields[each.name] for each in takes if each.name in fields}


def read_as(reply: Reply, wanted: Callable[..., T]) -> T:
    """A reply's fields as a tuple with names, or whatever takes them by name."""
    fields = read(reply, dict[str, Any])
    try:
        return wanted(**_known(wanted, fields))
    except TypeError as error:
        raise ConnectionError(f"wanted an answer of heedful's, got one with other fields: {error}") from None


def answer_of(reply: Reply, event: str) -> Answer:
    """What became of an event: an answer, also where that is `rejected`."""
    if reply.status != 409:
        return read_as(reply, Answer)
    problem = _problem(reply)
    told = problem.get("answer") or problem
    reason = told.get("reason") or problem.get("detail")
    return Answer("rejected", told.get("event") or event, None, told.get("version") or 0, reason=reason)


def answers_of(reply: Reply, n: int) -> list[Answer]:
    """What became of the n events of a batch."""
    found = read(reply, list[dict[str, Any]])
    try:
        answers = [Answer(**{name: each[name] for name in Answer._fields if name in each}) for each in found]
    except TypeError as error:
        raise ConnectionError(f"wanted an answer of heedful's, got one with other fields: {error}") from None
    if len(answers) != n:
        raise ConnectionError(f"wanted {n} answers, got {len(answers)}")
    return answers
