"""The bodies of requests and answers, in three formats: JSON, which people can read, and msgpack and raw float32
numbers, which are faster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np

from heedful.core.validation import describe
from heedful.data.jsonl import AT_BYTE, json_fault
from heedful.server.problems import Problem

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Headers = Mapping[bytes, bytes]
Messages = tuple[dict[str, Any], dict[str, Any]]

JSON = b"application/json"
MSGPACK = b"application/msgpack"
FLOAT32 = b"application/octet-stream"
PROBLEM = b"application/problem+json"
_MSGPACKS = {MSGPACK, b"application/x-msgpack", b"application/vnd.msgpack"}
_LITTLE = np.dtype("<f4")

BATCH = 1000
"""The most events in a request; of items ten times as many."""
JSON_SIZE = 2**20
"""The most bytes of a JSON body other than a list of items or a new loop: JSON takes the most memory for its bytes."""
LARGE = 2**18
"""Bytes from which on a body is checked before it is decoded. An empty list takes one byte of msgpack, or three of
JSON, but sixty of memory, and decoding holds up all other requests."""
KEY_LENGTH = 180
"""The most characters of an Idempotency-Key."""
VALUES = 1_000_000
"""The most values in a JSON body: twice those of 10,000 items with 50 attributes."""
MANY = 100_000
"""The most values in one list or object of a large msgpack body: as many as there may be candidates."""

Scalar = bool | int | float | str | None


def plain_values() -> Any:
    """Return the type as which large msgpack bodies are decoded: nested lists and objects of bounded depth and length.

    It allows objects in lists, but no lists of objects within these, and at most `MANY` values in each list and object.
    Msgpack has the number of values before them, so a longer list is refused before it is decoded."""
    many = msgspec.Meta(max_length=MANY)
    inside: Any = Scalar | Annotated[list[Scalar], many]
    for _ in range(4):
        inside = Scalar | Annotated[list[Scalar], many] | Annotated[dict[str, inside], many]
    rows = Annotated[list[inside], many]
    return rows | Annotated[dict[str, Scalar | rows | Annotated[dict[str, inside], many]], many]


_PLAIN = msgspec.msgpack.Decoder(plain_values())


class Limits(NamedTuple):
    """Limits of the size of a request, and of the time that it may take to arrive."""

    body: int = 8 * 2**20
    """the most bytes of a body"""
    seconds: float = 10.0
    """the most seconds from the first byte of a request to its last"""


# ---------------------------------------------------------------------------- in


async def read(headers: Headers, receive: Receive, limits: Limits, kind: bytes = b"") -> bytes:
    """Return the body of a request with these `headers`; `receive` is ASGI's.

    `kind` is the body's media type, if that has a limit of its own; otherwise it is empty. Raise Problem if the body is
    too large or cut off. The time that it may take is limited elsewhere (`heedful.server.main`)."""
    most, of = (JSON_SIZE, " of JSON") if kind == JSON and JSON_SIZE < limits.body else (limits.body, "")
    if (length := headers.get(b"content-length")) is not None and length.isdigit() and int(length[:20]) > most:
        raise _too_large(most, of)
    if headers.get(b"content-encoding", b"identity").strip().lower() != b"identity":
        raise Problem("unsupported", "Content-Encoding: expected none", field="Content-Encoding")
    message = await receive()
    body: bytes = message.get("body", b"")
    if message.get("more_body"):
        parts, size = [body], len(body)
        while message.get("more_body"):
            message = await receive()
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > most:
                raise _too_large(most, of)
        body = b"".join(parts)
    if message["type"] == "http.disconnect":
        raise Problem("malformed", "body: expected all of it, got a part", field="body")
    if len(body) > most:
        raise _too_large(most, of)
    return body


def _too_large(most: int, of: str) -> Problem:
    detail = f"body: expected at most {most} bytes{of}, got more"
    return Problem("too-large", detail, field="body", headers={"Connection": "close"})


def media_type(headers: Headers) -> bytes:
    """Return the media type of the body, by the header Content-Type, JSON without one. Raise Problem if it is
    unsupported."""
    header = headers.get(b"content-type")
    if header is None:
        return JSON
    kind, _, parameters = header.partition(b";")
    kind = kind.strip().lower()
    if kind == JSON:
        if parameters and b"charset" in parameters.lower() and b"utf-8" not in parameters.lower():
            raise Problem("unsupported", "Content-Type: expected UTF-8", field="Content-Type")
        return JSON
    if kind in _MSGPACKS:
        return MSGPACK
    if kind == FLOAT32:
        return FLOAT32
    detail = f"Content-Type: expected application/json or application/msgpack, got {describe(kind.decode('latin-1'))}"
    raise Problem("unsupported", detail, field="Content-Type")


def decode(body: bytes | memoryview, kind: bytes) -> Any:
    """Return the value in `body`, which is JSON or msgpack by its media type `kind`. Raise Problem if it cannot be
    decoded or has too many values."""
    if kind == FLOAT32:
        raise Problem(
            "unsupported",
            "Content-Type: expected application/json or application/msgpack, got raw numbers, which only "
            "decisions take",
            field="Content-Type",
        )
    large = len(body) > LARGE
    if large and kind == JSON and count_values(bytes(body)) > VALUES:
        raise Problem("too-large", f"body: expected at most {VALUES} values, got more: send several", field="body")
    try:
        if large and kind == MSGPACK:
            return _PLAIN.decode(body)
        return msgspec.json.decode(body) if kind == JSON else msgspec.msgpack.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, OverflowError, ValueError, TypeError) as error:
        if isinstance(error, msgspec.ValidationError) and large and kind == MSGPACK:
            detail = f"body: expected plain values, at most {MANY} in a list, in msgpack of more than {LARGE} bytes"
            raise Problem("too-large", f"{detail}, got others: {error}", field="body") from None
        name = "JSON" if kind == JSON else "msgpack"
        detail = f"body: expected {name}, got {_fault(body, error)}"
        raise Problem("malformed", detail, field="body") from None


def _fault(body: bytes | memoryview, error: Exception) -> str:
    """Return what came in place of a body that can be decoded, by the `error` of the decoder."""
    if not body:
        return "an empty body"
    if isinstance(error, RecursionError):
        return "one that is nested too deep"
    if "truncated" in str(error):
        return "one that ends early"
    if place := AT_BYTE.match(str(error)):
        return f"{json_fault(place[1])} at byte {int(place[2]) + 1}"
    return f"none: {error}"


def count_values(body: bytes) -> int:
    """Return an upper bound of the number of values in a JSON text, in a millisecond per mebibyte."""
    return 1 + body.count(b",") + body.count(b"[") + body.count(b"{")


def check_fields(fields: object, body: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the `fields` of a request. Raise ValueError unless they are an object, and all are fields of `body`."""
    if type(fields) is not dict:
        raise ValueError(f"body: expected an object, got {describe(fields)}")
    allowed = set(body.__struct_fields__)
    if not fields.keys() <= allowed:
        strange = min((key for key in fields if key not in allowed), key=str)
        raise ValueError(f"body: expected {', '.join(sorted(allowed))}, got another field: {describe(strange)}")
    return fields


def check_list(values: object, most: int) -> list[Any]:
    """Return the body `values`. Raise ValueError unless it is a list, and Problem if it has more than `most` values."""
    if type(values) is not list:
        raise ValueError(f"body: expected a list, got {describe(values)}")
    if len(values) > most:
        detail = f"body: expected at most {most} at once, got {len(values)}: send several"
        raise Problem("too-large", detail, field="body")
    return values


def unique_fields(pairs: Sequence[tuple[str, str]], allowed: Collection[str] | None = None) -> dict[str, str]:
    """Return the fields of a query or a form by name. Raise ValueError for one that comes twice or is not among
    `allowed`."""
    fields: dict[str, str] = {}
    for name, value in pairs:
        if allowed is not None and name not in allowed:
            raise ValueError(f"query: expected {', '.join(allowed) or 'none'}, got {describe(name)}")
        if name in fields:
            raise ValueError(f"{name}: expected it once, got it twice")
        fields[name] = value
    return fields


def whole(fields: Mapping[str, str], name: str, default: int, least: int, most: int = 2**62) -> int:
    """Return the field `name` of a query or a form as a whole number from `least` to `most`, or `default` if it is
    missing.

    Raise ValueError if it is anything else."""
    text = fields.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdecimal() or len(text) > 19 or not least <= int(text) <= most:
        raise ValueError(f"{name}: expected a whole number from {least} to {most}, got {describe(text)}")
    return int(text)


def number(fields: Mapping[str, str], name: str) -> float:
    """Return the field `name` of a query or a form as a number. Raise ValueError if it is none."""
    text = fields[name]
    try:
        if not text.isascii() or "_" in text or text != text.strip():  # which float takes
            raise ValueError
        return float(text)
    except ValueError:
        raise ValueError(f"{name}: expected a number, got {describe(text)}") from None


def matrix(body: bytes | memoryview, columns: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return the raw numbers in `body`, little-endian float32 row by row, as an array (m, `columns`): m rows.

    Raise ValueError if there is no row, or if the last one is cut off."""
    if not body or len(body) % (4 * columns):
        raise ValueError(f"body: expected rows of {columns} float32 numbers, {4 * columns} bytes each, got {len(body)}")
    return np.frombuffer(body, _LITTLE).reshape(-1, columns)


def key(headers: Headers) -> str | None:
    """Return the Idempotency-Key of a request; None without one. Raise Problem if it is malformed."""
    header = headers.get(b"idempotency-key")
    if header is None:
        return None
    text = header.decode("latin-1").strip()
    if len(text) >= 2 and text[0] == text[-1] == '"':
        text = text[1:-1]
    if not 1 <= len(text) <= KEY_LENGTH or not text.isprintable():
        detail = f"Idempotency-Key: expected 1 to {KEY_LENGTH} printable characters, got {describe(text)}"
        raise Problem("malformed", detail, field="Idempotency-Key")
    return text


def with_key(body: dict[str, Any], key: str | None) -> dict[str, Any]:
    """Return the fields `body` of a request with its Idempotency-Key, `key`, as their `id`; unchanged if it is None.

    Raise ValueError if the body has another id."""
    if key is None:
        return body
    id = body.get("id")
    if id is not None and str(id) != key:
        raise ValueError(
            f"Idempotency-Key: expected none, or the id of the body, got {describe(key)} "
            f"where the body has {describe(id)}"
        )
    return body | {"id": key}


# ---------------------------------------------------------------------------- out


def answer_form(headers: Headers) -> bytes:
    """Return the media type of the answer: msgpack if the header Accept names it first, otherwise JSON."""
    accepted = headers.get(b"accept")
    return MSGPACK if accepted is not None and b"msgpack" in accepted.partition(b",")[0] else JSON


_JSON_HEADERS = (b"content-type", JSON), (b"cache-control", b"no-store")
_MSGPACK_HEADERS = (b"content-type", MSGPACK), (b"cache-control", b"no-store")


def messages(value: object, kind: bytes = JSON, status: int = 200) -> Messages:
    """Return the two ASGI messages of an answer: its head, and its body, `value` in the media type `kind`."""
    body = msgspec.json.encode(value) if kind == JSON else msgspec.msgpack.encode(value)
    same = _JSON_HEADERS if kind == JSON else _MSGPACK_HEADERS
    return _messages(status, [*same, (b"content-length", b"%d" % len(body))], body)


def problem_messages(problem: Problem) -> Messages:
    """Return the two ASGI messages (head and body) of the answer that reports `problem`."""
    body = problem.body
    return _messages(problem.status, _problem_headers(problem, body), body)


def _messages(status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> Messages:
    return (
        {"type": "http.response.start", "status": status, "headers": headers},
        {"type": "http.response.body", "body": body},
    )


def _problem_headers(problem: Problem, body: bytes) -> list[tuple[bytes, bytes]]:
    headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in problem.headers.items()]
    return [
        *headers,
        (b"cache-control", b"no-store"),
        (b"content-length", b"%d" % len(body)),
        (b"content-type", PROBLEM),
    ]


# ---------------------------------------------------------------------------- out, without ASGI


def problem_bytes(problem: Problem) -> tuple[bytes, bytes]:
    """Return (header lines, body) of an answer that is a problem, where no ASGI request is under way."""
    body = problem.body
    return b"".join([b"%s: %s\r\n" % header for header in _problem_headers(problem, body)]), body
