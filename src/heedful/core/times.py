"""Read and write times: microseconds since 1970 in a log, ISO 8601 in files and requests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_time(text: object, *, zoned: bool = False) -> datetime:
    """Return an ISO 8601 text as a time in UTC, which it is in unless it says otherwise; if `zoned`, it has to say it.

    Raise ValueError for anything else."""
    if not isinstance(text, str):
        raise ValueError("expected a text")
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None and zoned:
        raise ValueError("expected a time zone")
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("expected a time from the year 1 to 9999") from error


def micros_of(moment: datetime) -> int:
    """Return a time with a zone in microseconds since 1970."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def utc(micros: int) -> str:
    """Return a time, given in microseconds since 1970, as text in UTC, to the second: 2026-01-31 12:00:00 UTC."""
    return f"{EPOCH + timedelta(microseconds=micros):%Y-%m-%d %H:%M:%S} UTC"


def day(micros: int) -> str:
    """Return a time, given in microseconds since 1970, as text in UTC, to the minute: 2026-01-31 12:00 UTC."""
    return f"{utc(micros)[:16]} UTC"


def iso(micros: int) -> str:
    """Return a time, given in microseconds since 1970, as ISO 8601 text in UTC, to the second: 2026-01-31T12:00:00Z."""
    return utc(micros).replace(" UTC", "Z").replace(" ", "T")
