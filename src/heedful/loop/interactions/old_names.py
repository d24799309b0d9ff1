"""The names that the field `predicted` of a record had earlier, one for each kind of feedback."""

from __future__ import annotations

import msgspec

from heedful.core.decoding import decoder


class _Before(msgspec.Struct):
    grades: tuple[int, ...] = ()
    ratings: tuple[float, ...] = ()
    chances: tuple[float, ...] = ()
    unknown: tuple[tuple[int, str], ...] = ()


def predicted_before(written: bytes) -> tuple[int | float, ...]:
    """Return the predictions of a decision record that keeps them under an earlier name of the field `predicted`; () if
    it does not.

    `written` is the record as JSON."""
    if b'"grades":' not in written and b'"ratings":' not in written and b'"chances":' not in written:
        return ()
    before = _decode_before(written)
    return before.grades or before.ratings or before.chances


_decode_before = decoder(_Before).decode
