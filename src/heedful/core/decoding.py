"""Decode JSON into typed records (msgspec structs), safely from several threads."""

from __future__ import annotations

from threading import Lock
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_LOCK = Lock()
_MADE: dict[Any, msgspec.json.Decoder[Any]] = {}


def decoder(expected: type[T]) -> msgspec.json.Decoder[T]:
    """Return the msgspec decoder of JSON into the type `expected`, made at the first call and kept. Any thread may
    call.

    msgspec looks up the fields of a struct when it first needs them, and releases the interpreter's lock meanwhile. A
    second thread that made a decoder of the same struct at that time would find fields without a type and crash, so
    decoders are made under a lock.
    """
    with _LOCK:
        if expected not in _MADE:
            _MADE[expected] = msgspec.json.Decoder(expected)
        return _MADE[expected]
