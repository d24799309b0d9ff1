"""Taking back what is in a log: one piece of feedback, all since a version, or a person."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from heedful.core.validation import check_between, check_count, check_path
from heedful.core.wording import spelling
from heedful.data.files import find_unfinished
from heedful.loop import records
from heedful.loop.history import History
from heedful.loop.log import Event, Log, now, rollback_event
from heedful.loop.pending import PendingEvent
from heedful.loop.projection import Projection
from heedful.loop.silence import PREFIX
from heedful.results.answers import Answer, Forgotten, RolledBack


class Unerased(TimeoutError):
    """Raised by `forget`: the person is forgotten, but their bytes are still on the disk, as another process is
    reading.

    `forgotten` holds what `forget` would have returned."""

    def __init__(self, reason: str, forgotten: Forgotten) -> None:
        super().__init__(reason)
        self.forgotten = forgotten


def undo(projection: Projection, event: str, id: str | None = None) -> Answer:
    """Take back the feedback or the correction by hand with the id `event`, as `Loop.undo` says."""
    event = records.check_id("event", event)
    undo_id = f"undo-{event}" if id is None else records.check_id("id", id)
    if len(undo_id) > records.LONGEST_ID:
        undo_id = f"undo-{hashlib.blake2b(event.encode(), digest_size=16).hexdigest()}"
    target = projection.log.find("feedback", event) or projection.log.find("style", event)
    if target is None:
        return projection.reject_unknown(undo_id, "feedback", event)
    while id is None and (end := projection.log.retracted_by(undo_id)):
        undo_id = f"undo-{target.seq}-after-{end}"  # a rollback left the undo of that name out
    undoing = Event(0, "undo", undo_id, now(), None, target.seq, projection.published.version, "{}")
    [answer] = projection.submit([PendingEvent(undoing)])
    return answer


def rollback(projection: Projection, to: int, id: str | None = None, reason: str = "") -> RolledBack:
    """Go back to version `to` of the model, as `Loop.rollback` says."""
    event_id = records.new_id() if id is None else records.check_id("id", id)
    check_count("to", to)
    records.check_text("reason", reason, 1000)
    log = projection.log
    with projection.turn:
        projection.catch_up()
        version = projection.published.version
        if to > (head := log.last()[0]):
            raise ValueError(f"to: expected a version from 1 to {head}, got {to}")
        before = log.retractions()
        [answer] = projection.submit_in_turn([PendingEvent(rollback_event(event_id, int(to), reason, version, now()))])
        after = log.retractions()
        oldest = min(to, *(at for at, _ in (*before.spans, *after.spans)))
        candidates = {*log.places("feedback", after=oldest), *before.undone, *after.undone}
        changed = [seq for seq in candidates if (seq in before) != (seq in after)]
        forgotten = len(log.places("forget", after=to))
        gone = sum(seq in after for seq in changed)
        return RolledBack(answer, to, gone, len(changed) - gone, forgotten)


def forget(projection: Projection, person: str) -> Forgotten:
    """Erase a person, as `Loop.forget` says."""
    person = records.check_id("person", person)
    with projection.turn:
        projection.catch_up()
        return _forget(projection, [person])


def forget_unseen(projection: Projection, days: float) -> Forgotten:
    """Erase people who were not seen for so many `days`, as `Loop.forget_unseen` says."""
    check_between("days", days, 1e-3, 1e5)
    with projection.turn:
        projection.catch_up()
        return _forget(projection, unseen(projection.log, days))


def unseen(log: Log, days: float) -> list[str]:
    """Return the names of the people in `log` who were not seen for so many `days`."""
    return log.unseen_since(now() - round(86_400e6 * days), PREFIX)


def _forget(projection: Projection, people: Sequence[str]) -> Forgotten:
    """Erase `people` and return what became of it, for the thread whose turn it is."""
    log = projection.log
    exports = tuple(str(each) for path in exported(projection) for each in (path, *find_unfinished(Path(path))))

    def event(person: str, count: int) -> Event:
        payload = records.encode({"person": log.digest("person", person), "events": count, "exports": exports})
        return Event(0, "forget", records.new_id(), now(), None, None, projection.published.version, payload)

    erased, only = log.erase(people, event), people[0] if len(people) == 1 else None
    if erased:
        projection.forget_derived(only)
        projection.rebuild()
    alike = () if only is None else spelt_like(projection, only)
    gone = Forgotten(sum(erased.values()), (), projection.published.version, alike=alike, people=len(erased))
    if erased:
        gone = gone._replace(exports=exports, unreached=log.store.unreached())
    try:
        finish_forgetting(projection, only)
    except TimeoutError as error:
        raise Unerased(str(error), gone._replace(erased=False)) from None
    return gone


def spelt_like(history: History, person: str) -> tuple[str, ...]:
    """Return the names of people that may be the same as `person`, as `Loop.spelt_like` says."""
    spelt = spelling(person)
    return tuple(sorted(name for name in history.log.people() if name != person and spelling(name) == spelt))


def exported(history: History) -> list[str]:
    """Return the paths of the files that exports wrote, as `Loop.exports` says."""
    exports = history.log.events(kinds=["export"])
    return list(dict.fromkeys(records.decode_export(event.payload).path for event in exports))


def note_export(projection: Projection, path: str | Path) -> None:
    """Note in the log that its events were written to the file `path`, as `Loop.note_export` says."""
    check_path("path", path)
    name = records.check_text("path", "-" if str(path) == "-" else str(Path(path).absolute()))
    payload = records.encode({"path": name})
    event = Event(0, "export", records.new_id(), now(), None, None, projection.published.version, payload)
    try:
        projection.submit([PendingEvent(event)])
    except PermissionError as error:
        projection.note(f"the export is not noted in the log, so forget does not name it: {error.strerror}")


def finish_forgetting(projection: Projection, person: str | None = None) -> None:
    """Remove the bytes of forgotten people that are still on the disk, as `Loop.finish_forgetting` says; `person` is
    the only one, if it is given."""
    with projection.turn:
        if projection.log.unfinished() and not projection.log.store.read_only:
            projection.forget_derived(person)
            projection.log.finish_erasing()
            projection.keep()
