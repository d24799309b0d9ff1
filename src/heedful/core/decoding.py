"""JSON as records, read in several threads at once."""

from __future__ import annotations

from threading import Lock
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_LOCK = Lock()
_MADE: dict[Any, msgspec.json.Decoder[Any]] = {}


def decoder(expected: type[T]) -> msgspec.json.Decoder[T]:
    """The decoder that reads JSON as `expected`: made once, and one at a time.

    msgspec looks up the fields of a struct when it first needs them, and releases the interpreter's lock meanwhile.
    Another thread that decodes the same struct then meets fields without a type, and the process ends.
    """
    with _LOCK:
        if expected not in _MADE:
            _MADE[expected] = msgspec.json.Decoder(expected)
        return _MADE[expected]
