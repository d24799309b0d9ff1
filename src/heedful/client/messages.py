"""Requests and replies of the client as data, and what a reply means.

Nothing in here waits, opens a connection or sends; the blocking and the asynchronous client share it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import UnionType
from typing import Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import quote

import msgspec
import numpy as np

from heedful.core.decoding import decoder
from heedful.core.validation import describe
from heedful.results.answers import Answer, LostDecision

T = TypeVar("T")
JSON, MSGPACK, FLOATS = "application/json", "application/msgpack", "application/octet-stream"
LONGEST = 60_000
"""The most characters of a path with its query, as it is sent: httpx takes 65,536, including the server's address."""


class Call(NamedTuple):
    """A request to the server, ready to be sent."""

    method: str
    """the HTTP method: "GET", "POST", ..."""
    path: str
    """the path from /v1 on, percent-encoded, with its query"""
    body: bytes | None = None
    """the bytes to send; None without a body"""
    content: str = JSON
    """the media type of the body"""
    timeout: float = 5.0
    """the most seconds for all of it"""
    last_id: str = ""
    """for a stream of events, the sequence number of the last event that was received"""
    connect: float | None = None
    """the most of these seconds for connecting; None for no limit of its own"""


class Reply(NamedTuple):
    """A complete HTTP answer."""

    status: int
    """the HTTP status, 200 for success"""
    headers: Mapping[str, str]
    """the header lines, by name"""
    body: bytes
    """the bytes of the body, decoded by `read`"""


class Failure(NamedTuple):
    """Why a call got no answer from the server."""

    reason: str
    """what went wrong, for an error message"""
    timed_out: bool
    """whether time ran out, not the connection"""
    sent: bool
    """whether the request may have reached the server"""


class Wait(NamedTuple):
    """A step of an operation: a pause before the next call."""

    seconds: float
    """its length"""


# ---------------------------------------------------------------------------- what is sent


def path(*parts: str, **query: object) -> str:
    """Return the path of a request under /v1, "/v1/loops/cars?start=0".

    Its segments are `parts`, any names, which are percent-encoded. The `query` is added without fields that are None.
    Raise ValueError, beginning with the field's name, if a value cannot be written as JSON, or if the path is too
    long."""
    address = "/v1" + "".join(f"/{_segment(part)}" for part in parts)
    parameters = {name: _text(name, value) for name, value in query.items() if value is not None}
    if parameters:
        address += f"?{'&'.join(f'{name}={text}' for name, text in parameters.items())}"
    if len(address) > LONGEST:
        longest = max(parameters, key=lambda name: len(parameters[name]), default="name")
        message = f"expected less: {LONGEST:,} characters go in the address of a request, quoted, got {len(address):,}"
        raise ValueError(f"{longest}: {message}")
    return address


def _segment(name: str) -> str:
    # Dots alone would be read as "this folder" and "the one above" on the way.
    return _quote("name", name) if name.strip(".") else name.replace(".", "%2E")


def _text(name: str, value: object) -> str:
    return _quote(name, value if isinstance(value, str) else _encode(name, value, msgspec.json.encode).decode())


def _quote(name: str, text: str) -> str:
    try:
        return quote(text, safe="")
    except UnicodeEncodeError:
        raise ValueError(f"{name}: expected text that UTF-8 can say, got {describe(text)}") from None


MOST_JSON = 2**20
"""The most bytes of JSON that a server takes by default."""


def body(value: object, content: str = JSON) -> bytes:
    """Return a value as JSON or msgpack, by the media type `content`; arrays of numpy and similar types count as lists.

    Raise ValueError, beginning with the field's name, if it holds something that JSON has no type for."""
    encode = msgspec.msgpack.encode if content == MSGPACK else msgspec.json.encode
    try:
        return _encode("body", value, encode)
    except ValueError:
        if isinstance(value, dict):
            for name, entry in value.items():  # the field that is to blame, where it is a single one
                _encode(str(name), entry, encode)
        raise


def short(value: object) -> tuple[bytes, str]:
    """Return (`value` as bytes, their media type): JSON, or msgpack if the JSON is too large for a server."""
    content = body(value)
    return (content, JSON) if len(content) <= MOST_JSON else (body(value, MSGPACK), MSGPACK)


def _encode(name: str, value: object, encode: Callable[..., bytes]) -> bytes:
    try:
        return encode(value, enc_hook=_plain)
    except (TypeError, NotImplementedError, OverflowError, RecursionError, UnicodeEncodeError) as error:
        raise ValueError(f"{name}: expected what JSON can say, got something else: {error}") from None


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key) if isinstance(key, str) else key: entry for key, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return list(value)
    if isinstance(value, str):
        return str(value)
    raise TypeError(f"a {type(value).__name__}")


def present_fields(**fields: object) -> dict[str, Any]:
    """Return the arguments that are not None, by name."""
    return {name: value for name, value in fields.items() if value is not None}


def batches(values: Iterable[T], most: int, size: int) -> Iterator[tuple[list[T], bytes]]:
    """Yield parts of `values` as (list, the same in msgpack), of at most `most` values and about `size` bytes each."""
    some: list[T] = []
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


REJECTED = {"rejected": Answer, "lost-decision": LostDecision}
"""kind of problem -> the type of the Answer to an event that it stands for"""


def kind_of(reply: Reply) -> str:
    """Return the kind of problem that the server's `reply` reports, such as "not-found"; "" if it reports none."""
    return str(_problem(reply).get("type", "")).rpartition(":")[2]


def _problem(reply: Reply) -> dict[str, Any]:
    try:
        problem = msgspec.json.decode(reply.body)
    except msgspec.MsgspecError:
        return {}
    return problem if isinstance(problem, dict) else {}


def error_of(call: Call, outcome: Reply | Failure) -> Exception:
    """Return the exception for `call`, which failed with `outcome`; its text is the server's explanation, without
    headers.

    Without an answer it is TimeoutError or ConnectionError. Otherwise it depends on the HTTP status:

    - 401, 403, 421: PermissionError.
    - 404, 409: LookupError; FileExistsError if a loop exists already.
    - 408, 429, 503: TimeoutError.
    - 500: RuntimeError.
    - other 4xx: ValueError.
    - all others: ConnectionError."""
    where = f"{call.method} {call.path.partition('?')[0]}"
    if isinstance(outcome, Failure):
        return (TimeoutError if outcome.timed_out else ConnectionError)(f"{where}: {outcome.reason}")
    detail = _problem(outcome).get("detail") or f"{where}: the server answered {outcome.status}"
    status = outcome.status
    if status == 409 and kind_of(outcome) == "exists":
        return FileExistsError(detail)
    if status in _ERRORS:
        return _ERRORS[status](detail)
    return ValueError(detail) if 400 <= status < 500 else ConnectionError(detail)


def retry_after(outcome: Reply | Failure) -> float:
    """Return how many seconds the answer `outcome` asks to wait before another try (header Retry-After), 0 without
    it."""
    header = outcome.headers.get("retry-after", "") if isinstance(outcome, Reply) else ""
    return float(header) if header.isascii() and header.isdigit() else 0.0


def read(reply: Reply, expected: type[T]) -> T:
    """Return the body of the server's `reply`, decoded as the type `expected`.

    Raise ConnectionError if it is something else, as then no heedful server answered."""
    try:
        return decoder(expected).decode(reply.body)
    except msgspec.MsgspecError as error:
        message = (
            f"expected an answer of heedful's, got {describe(reply.body[:40])} ({error}); is the url the server's?"
        )
        raise ConnectionError(message) from None


def read_as(reply: Reply, expected: type[T]) -> T:
    """Return the JSON object in the server's `reply` as the named tuple `expected`, and objects in it likewise.

    Raise ConnectionError if it lacks a field."""
    return _convert(expected, read(reply, dict[str, Any]))


def _convert(expected: type[T], fields: object) -> T:
    try:
        made: T = _of(expected, fields)
        return made
    except TypeError as error:
        raise ConnectionError(f"expected an answer of heedful's, got one with other fields: {error}") from None


def _of(expected: Any, value: object) -> Any:
    """Return `value`, decoded JSON, as the type `expected`: objects as named tuples, lists as tuples, anything else as
    it is.

    Fields that the type does not have, at any depth, are dropped: a newer server may send more."""
    kinds = get_args(expected)
    if get_origin(expected) is UnionType:  # this or None
        return None if value is None else _of(next(kind for kind in kinds if kind is not type(None)), value)
    if get_origin(expected) is tuple:
        if not isinstance(value, list):
            raise TypeError(f"expected a list, got {describe(value)}")
        return tuple(_of(kinds[0], entry) for entry in value) if kinds[-1] is Ellipsis else tuple(value)
    if hasattr(expected, "_fields"):
        if not isinstance(value, dict):
            raise TypeError(f"expected an object, got {describe(value)}")
        return expected(**{name: _of(kind, value[name]) for name, kind in _kinds(expected).items() if name in value})
    return value


@cache
def _kinds(expected: object) -> dict[str, Any]:
    """Return {name: type} of the fields of the named tuple `expected`."""
    return get_type_hints(expected)


def answer_of(reply: Reply, event: str) -> Answer:
    """Return the answer to the event with the id `event` from the server's `reply`, which may also be a rejection
    (409)."""
    if reply.status != 409:
        return read_as(reply, Answer)
    problem = _problem(reply)
    rejection = problem.get("answer") or problem
    reason = rejection.get("reason") or problem.get("detail")
    rejected = REJECTED.get(kind_of(reply), Answer)
    return rejected("rejected", rejection.get("event") or event, None, rejection.get("version") or 0, reason=reason)


def answers_of(reply: Reply, n: int) -> list[Answer]:
    """Return the answers to the `n` events of a batch, in order, from the server's `reply`.

    Raise ConnectionError if there are not n."""
    answers = [_convert(Answer, answer) for answer in read(reply, list[dict[str, Any]])]
    if len(answers) != n:
        raise ConnectionError(f"expected {n} answers, got {len(answers)}")
    return answers
