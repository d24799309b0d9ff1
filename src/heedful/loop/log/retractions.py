"""The events of a log that retract others: rollbacks. Which events they leave out says `heedful.core.retractions`."""

from __future__ import annotations

import msgspec

from heedful.loop.log.event import Event


def rollback_event(id: str, to: int, reason: str, version: int, time: int) -> Event:
    """Return the event of a rollback to version `to`, with sequence number 0, to be appended.

    `id` is the caller's event id, `reason` a text for people, `version` the model's version at the time, `time` in
    microseconds since 1970."""
    payload = msgspec.json.encode({"to": to, "reason": reason}).decode()
    return Event(0, "rollback", id, time, None, None, version, payload)


def rollback_target(event_payload: str) -> int:
    """Return the version of the model to which a rollback goes back; `event_payload` is the payload of its event in the
    log."""
    return int(msgspec.json.decode(event_payload)["to"])
