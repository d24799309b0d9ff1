"""How the log stores a decision: as JSON, with the long parts of a long one deflated in the event's bytes.

    payload    {"shown": [], "arm": ..., ..., "packed": {"record": 940, "lists": [["<u2", 200], ["<u4", 0]], ...}}
    arrays     as `packed` says: differences of numbers, JSON of the rest; then the features that came with the request

If all items on offer are the candidates, one number stands for them (`DecisionRecord.catalogue`).
docs/decisions/0017 weighs the alternatives.
"""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from heedful.core.decoding import decoder
from heedful.jit.kernel import Ints
from heedful.loop.records import DecisionRecord, Packed

LONG = 4_000
"""The least bytes of JSON, or of features, that are deflated. A shorter record fits into one page of the database."""
MOST = 2**28
"""The most bytes that are deflated into one part of an event, and so the most that reading it inflates."""

_LISTS = ("shown", "items")
_TYPES = ("|u1", "<u2", "<u4", "<u8")


class LoggedDecision(NamedTuple):
    """A decision as it stands in the log, with the names of its m candidates."""

    id: str
    """the id of the decision"""
    seq: int
    """its sequence number in the log; 0 if it is not written yet"""
    since: int
    """when it was made or, if it is deferred and was activated, shown, in microseconds since 1970"""
    person: str | None
    """whom it was for; None for nobody in particular"""
    record: DecisionRecord
    """what was shown, and how that came about"""
    arrays: bytes
    """float32 bytes: of the m candidates their n features (m, n) if they came with the request, or the Q query features
    that the request gave each item (m, Q); then the features of the context"""
    names: tuple[str, ...]
    """the names of the m candidates, to which indices in `record` refer"""
    version: int
    """the version of the model that made it"""
    rows: Ints | None = None
    """the rows (m,) of the m candidates in the catalogue; None if they came with the request"""


class _LongFields(msgspec.Struct, omit_defaults=True):
    """The fields of a `DecisionRecord` that may be long, other than its lists of numbers: what is stored deflated in a
    long one. They mean the same there."""

    names: tuple[str, ...] = ()
    prior: tuple[float, ...] = ()
    proposal: dict[str, Any] = {}
    context: dict[str, Any] | None = None
    attributes: tuple[dict[str, Any], ...] = ()
    predicted: tuple[int | float, ...] = ()


_LEFT = _LongFields.__struct_fields__


def pack(record: DecisionRecord, came: bytes) -> tuple[str, bytes | None]:
    """Return (payload, arrays) of the event that logs a decision: JSON text, and the bytes stored with it (None:
    none).

    `record` is the decision, `came` the features that came with its request, as float32 bytes."""
    if record.catalogue:
        record = msgspec.structs.replace(record, items=())
    told = Packed()
    deflated = b""
    written = msgspec.json.encode(record)
    if LONG <= len(written) <= MOST:
        lists = [_differences(getattr(record, name)) for name in _LISTS]
        left = _LongFields(*(getattr(record, name) for name in _LEFT))
        rest = b"".join([*(each.tobytes() for each in lists), msgspec.json.encode(left)])
        deflated = zlib.compress(rest, 1)
        told = Packed(len(deflated), tuple((each.dtype.str, each.size) for each in lists), len(rest))
        record = msgspec.structs.replace(record, shown=(), items=(), **msgspec.structs.asdict(_LongFields()))
    if LONG <= len(came) <= MOST and _is_sparse(came):
        told = msgspec.structs.replace(told, features=len(came))
        came = zlib.compress(came, 1)
    if told.record or told.features:
        written = msgspec.json.encode(msgspec.structs.replace(record, packed=told))
    return written.decode(), deflated + came or None


def unpack(payload: str, arrays: bytes | None) -> tuple[DecisionRecord, bytes]:
    """Return (record, features) of a logged decision from its `payload` and `arrays`; the features are the float32
    bytes that came with the request.

    The record has no `items` if all items on offer were candidates; the caller takes them from the catalogue of that
    time. Raise ValueError if the event was not written by `pack`."""
    record, came = _decode(payload), arrays or b""
    told = record.packed
    if told is None:
        return record, came
    record = msgspec.structs.replace(record, packed=None)
    deflated, came = came[: told.record], came[told.record :]
    if told.features:
        came = _inflate(came, told.features)
    if not told.record:
        return record, came
    rest, at = _inflate(deflated, told.rest), 0
    lists: dict[str, tuple[int, ...]] = {}
    for name, (kind, n) in zip(_LISTS, told.lists, strict=True):
        if kind not in _TYPES or n < 0 or len(rest) - at < n * int(kind[2]):
            raise ValueError(f"packed: expected numbers of {', '.join(_TYPES)}, got {n} of {kind!r}")
        lists[name] = tuple(np.frombuffer(rest, kind, n, at).cumsum(dtype=kind).tolist())
        at += n * int(kind[2])
    left = _decode_left(rest[at:])
    return msgspec.structs.replace(record, **lists, **msgspec.structs.asdict(left)), came


def _differences(numbers: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return the difference of each number from the one before, as unsigned integers of the narrowest type that fits
    `numbers`.

    Negative differences wrap around. Neighbouring versions, and an unchanged order, differ by 1, which deflates well.
    """
    wide = np.array(numbers, np.int64)
    kind = next(each for each in _TYPES if wide.max(initial=0) < 256 ** int(each[2]))
    return np.diff(wide.astype(kind), prepend=np.zeros(1, kind))


def _is_sparse(features: bytes) -> bool:
    """Return whether at least half of the float32 numbers in the bytes `features` are 0; other features do not deflate
    well."""
    numbers = np.frombuffer(features, "<u4")
    return 2 * int(np.count_nonzero(numbers)) <= numbers.size


def _inflate(deflated: bytes, n: int) -> bytes:
    """Return the `n` bytes that `deflated` holds. Raise ValueError if it holds another number of bytes, or is not
    deflated."""
    if not 0 <= n <= MOST:
        raise ValueError(f"packed: expected at most {MOST} bytes, got {n}")
    stream = zlib.decompressobj()
    try:
        found = stream.decompress(deflated, n + 1)
    except zlib.error as error:
        raise ValueError(f"packed: expected what was deflated, got: {error}") from None
    if len(found) != n or not stream.eof:
        raise ValueError(
            f"packed: expected {n} bytes that were deflated, got {'more' if len(found) > n else len(found)}"
        )
    return found


_decode = decoder(DecisionRecord).decode
_decode_left = decoder(_LongFields).decode
