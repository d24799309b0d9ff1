"""Reading a log: single events, and iteration over many, in order or from the newest back."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any

from heedful.core.retractions import Retractions, find_retractions
from heedful.loop.log.event import COLUMNS, Event, to_event
from heedful.loop.log.retractions import rollback_target
from heedful.loop.log.store import Run, Store

PAGE = 200
"""How many events `newest_first` reads at a time."""
AT_ONCE = 500
"""How many sequence numbers, or people, a query has at most."""
FEW = 2000
"""The most events of a kind that are found through the index alone."""


def of_people(people: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the query of (seq, kind, id, person) of all events of at most `AT_ONCE` people, and its parameters.

    These are decisions, corrections of style, and what is about any of them."""
    query = f"""WITH RECURSIVE gone (seq, person) AS (
        SELECT seq, subject FROM event
        WHERE kind IN ('decision', 'style') AND subject IN ({", ".join("?" * len(people))})
        UNION SELECT e.seq, gone.person FROM event e JOIN gone ON e.target = gone.seq
    ) SELECT e.seq, e.kind, e.id, gone.person FROM event e JOIN gone ON e.seq = gone.seq"""
    return query, people


class LogReader:
    """The queries of a log. Those that may read much of it use a connection of their own, so that short ones need not
    wait."""

    def __init__(self, store: Store) -> None:
        """Read the log in `store`."""
        self.store, self.path, self._one = store, store.path, store.one

    def _event(self, row: tuple[object, ...]) -> Event:
        return to_event(row, self.path)

    def _scan(self, query: str, parameters: Sequence[object] = ()) -> list[Any]:
        """Return all rows of a `query` that may read much of the log."""
        with self.store.scanning() as run:
            return run(query, parameters)

    def _few_of(self, columns: str, *kinds: str) -> list[Any] | None:
        """Return the rows of all events of the `kinds`, in no particular order; None if there are more than `FEW`.

        The index lists them, so no other event is read, and no connection is opened, which takes longer."""
        chosen = ", ".join("?" * len(kinds))
        rows = self.store.few(f"SELECT {columns} FROM event WHERE kind IN ({chosen}) LIMIT ?", (*kinds, FEW + 1))
        return rows if len(rows) <= FEW else None

    def _of_kinds(self, columns: str, *kinds: str, after: int = 0, up_to: int = 2**62) -> list[Any]:
        """Return `columns`, of which the first is the sequence number, of the events of the `kinds` above `after` and
        at most `up_to`, in no particular order."""
        if (few := self._few_of(columns, *kinds)) is not None:
            return [row for row in few if after < row[0] <= up_to]
        query = f"SELECT {columns} FROM event WHERE kind IN ({', '.join('?' * len(kinds))}) AND seq > ? AND seq <= ?"
        return self._scan(query, (*kinds, after, up_to))

    # ------------------------------------------------------------------------ single events

    def find(self, kind: str, id: str) -> Event | None:
        """Return the event of this `kind` with this `id`; None if there is none."""
        row = self._one(f"SELECT {COLUMNS} FROM event WHERE kind = ? AND id = ?", (kind, id))
        return self._event(row) if row else None

    def at(self, seq: int) -> Event | None:
        """Return the event with the sequence number `seq`; None if there is none."""
        row = self._one(f"SELECT {COLUMNS} FROM event WHERE seq = ?", (seq,))
        return self._event(row) if row else None

    def many(self, seqs: Sequence[int]) -> list[Event]:
        """Return the events with these sequence numbers, in no particular order; those that are not there are left
        out."""
        return list(self._many(self.store.few, seqs))

    def _many(self, run: Run, seqs: Sequence[int]) -> Iterator[Event]:
        for start in range(0, len(seqs), AT_ONCE):
            part = seqs[start : start + AT_ONCE]
            query = f"SELECT {COLUMNS} FROM event WHERE seq IN ({', '.join('?' * len(part))})"
            yield from map(self._event, run(query, part))

    def between(self, first: int, last: int, kind: str) -> list[Event]:
        """Return the events of one `kind` with sequence numbers from `first` to `last`, both included."""
        query = f"SELECT {COLUMNS} FROM event WHERE seq BETWEEN ? AND ? AND +kind = ?"
        return [self._event(row) for row in self.store.few(query, (first, last, kind))]

    def newest(self, kind: str, subject: str) -> int:
        """Return the sequence number of the last event of `kind` about `subject` (a person or an item); 0 if there is
        none."""
        query = "SELECT coalesce(max(seq), 0) FROM event WHERE kind = ? AND subject = ?"
        return int(self._one(query, (kind, subject))[0])

    def last_of(self, kinds: Sequence[str], up_to: int) -> Event | None:
        """Return the last event of one of these `kinds` with a sequence number of at most `up_to`; None if there is
        none."""
        chosen = ", ".join("?" * len(kinds))
        query = f"SELECT {COLUMNS} FROM event WHERE seq <= ? AND +kind IN ({chosen}) ORDER BY seq DESC LIMIT 1"
        row = self._one(query, (up_to, *kinds))
        return self._event(row) if row else None

    def last(self, items: bool = False) -> tuple[int, int]:
        """Return (sequence number of the last event, sequence number of the last event that changes the model); 0 where
        there is none.

        Feedback, undos, rollbacks, promotions and forgetting change a model. `items` says whether events of items (put
        on offer, withdrawn) do, too."""
        # The plus keeps SQLite on the table: from its end, the first that is met.
        kinds = "'feedback', 'undo', 'forget', 'rollback', 'promote'" + (", 'item'" if items else "")
        made_of = f"SELECT seq FROM event WHERE +kind IN ({kinds}) ORDER BY seq DESC LIMIT 1"
        [head, version] = self._one(f"SELECT coalesce(max(seq), 0), coalesce(({made_of}), 0) FROM event")
        return head, version

    def is_superseded(self, position: int) -> bool:
        """Return whether a model as of the event with the sequence number `position` is outdated.

        It is if an event up to there was undone, rolled back or deleted to forget a person, and that happened after
        `position`."""
        return self.forgot_after(position) or self.retractions().changes(position)

    def forgot_after(self, position: int) -> bool:
        """Return whether a person was forgotten after the event with the sequence number `position`."""
        forgot = "SELECT EXISTS (SELECT 1 FROM event WHERE kind = 'forget' AND seq > ?)"
        return bool(self._one(forgot, (position,))[0])

    def retractions(self, up_to: int | None = None) -> Retractions:
        """Return which events do not count (undone or rolled back), given the events up to sequence number `up_to`;
        None for all."""
        most = 2**62 if up_to is None else up_to
        rows = self._of_kinds("seq, kind, target, payload", "undo", "rollback", up_to=most)
        undos = [(seq, target) for seq, kind, target, _ in rows if kind == "undo" and target is not None]
        rollbacks = [(seq, rollback_target(told)) for seq, kind, _, told in rows if kind == "rollback"]
        return find_retractions(undos, rollbacks)

    def retracted_by(self, undo: str) -> int:
        """Return the sequence number of the rollback that leaves out the undo with the id `undo`; 0 if none does."""
        event = self.find("undo", undo)
        spans = self.retractions().spans if event is not None else ()
        return next((end for to, end in spans if event is not None and to < event.seq < end), 0)

    # ------------------------------------------------------------------------ many events

    def places(self, *kinds: str, after: int = 0, up_to: int = 2**62) -> list[int]:
        """Return the sequence numbers, in order, of the events of the `kinds` that are above `after` and at most
        `up_to`."""
        return sorted(seq for [seq] in self._of_kinds("seq", *kinds, after=after, up_to=up_to))

    def count(self, kind: str, after: int = 0, up_to: int = 2**62) -> int:
        """Return how many events of the kind `kind` are above the sequence number `after` and at most `up_to`."""
        query = "SELECT count(*) FROM event WHERE kind = ? AND seq > ? AND seq <= ?"
        return int(self._one(query, (kind, after, up_to))[0])

    def events(self, after: int = 0, kinds: Sequence[str] = (), page: int = 5000) -> Iterator[Event]:
        """Yield the events with sequence numbers above `after`, in order.

        They are of the kinds `kinds`, or of all kinds if that is empty. `page` events are read at a time."""
        chosen = f"AND kind IN ({', '.join('?' * len(kinds))})" if kinds else ""
        # The plus keeps SQLite on the table, which is in order, and off the index, which would have to be sorted.
        chosen = chosen.replace("kind", "+kind")
        query = f"SELECT {COLUMNS} FROM event WHERE seq > ? {chosen} ORDER BY seq LIMIT {page}"
        return map(self._event, self._pages(query, list(kinds), after, page))

    def newest_first(self, before: int, kind: str | None = None) -> Iterator[Event]:
        """Yield the events with a sequence number below `before`, the newest first, of one `kind` or of all if it is
        None.

        The log is read a page at a time, no further than the caller iterates."""
        if kind is not None and (few := self._few_of("seq", kind)) is not None:
            left = sorted(seq for [seq] in few if seq < before)
            while left:
                left, page = left[:-PAGE], left[-PAGE:]
                yield from sorted(self.many(page), key=lambda event: -event.seq)
            return
        chosen = "" if kind is None else "AND +kind = ?"
        query = f"SELECT {COLUMNS} FROM event WHERE seq < ? {chosen} ORDER BY seq DESC LIMIT {PAGE}"
        while True:
            rows = self.store.few(query, [before] if kind is None else [before, kind])
            yield from map(self._event, rows)
            if len(rows) < PAGE:
                return
            before = rows[-1][0]

    def moments_back(self) -> Iterator[tuple[int, str, int | None, int, str]]:
        """Yield (sequence number, kind, sequence number of what it is about, time, id) of each decision, activation and
        feedback, the newest first.

        The log is read a page at a time, no further than the caller iterates, without what decisions showed."""
        query = (
            "SELECT seq, kind, target, time, id FROM event WHERE seq < ? "
            f"AND +kind IN ('decision', 'activate', 'feedback') ORDER BY seq DESC LIMIT {PAGE}"
        )
        before = 2**62
        while rows := self.store.few(query, [before]):
            yield from rows
            before = rows[-1][0]

    def lessons(self, after: int = 0, person: str | None = None) -> Generator[tuple[Event, Event]]:
        """Yield (feedback, the decision that it answers) for all feedback with a sequence number above `after`, in
        order.

        `person` takes only decisions for that person (None: all). Feedback that was undone is included."""
        query = f"SELECT {COLUMNS} FROM event WHERE seq > ? AND +kind = 'feedback' ORDER BY seq LIMIT 5000"
        with self.store.scanning() as run:
            while rows := run(query, [after]):
                # No join: a database that has no statistics of this loop yet would compare each with each.
                answers = [self._event(row) for row in rows]
                decided = {each.seq: each for each in self._many(run, sorted({each.target or 0 for each in answers}))}
                for each in answers:
                    decision = decided.get(each.target or 0)
                    if decision is not None and person in (None, decision.subject):
                        yield each, decision
                after = answers[-1].seq

    def _pages(self, query: str, parameters: list[Any], after: int, page: int = 5000) -> Iterator[Any]:
        """Yield the rows of a `query` page after page, in the order of their first column, a sequence number above
        `after`.

        The first parameter of the query is the sequence number after which it begins; it returns at most `page` rows.
        """
        with self.store.scanning() as run:
            while True:
                rows = run(query, [after, *parameters])
                yield from rows
                if len(rows) < page:
                    return
                after = rows[-1][0]

    # ------------------------------------------------------------------------ about the whole log

    def subjects(self, kind: str) -> list[tuple[int, str, bool]]:
        """Return (sequence number, subject, whether it has features as bytes besides its JSON) of each event of the
        kind `kind` that has a subject, in order.

        The subject is the name of the person or item that the event is about."""
        chosen = "WHERE kind = ? AND subject IS NOT NULL ORDER BY +seq"
        query = f"SELECT seq, subject, arrays IS NOT NULL FROM event {chosen}"
        return [(seq, subject, bool(there)) for seq, subject, there in self._scan(query, (kind,))]

    def of_person(self, person: str) -> list[Event]:
        """Return all events of a `person`, in order: decisions for them, what was said by hand about their style, and
        what is about any of these."""
        places = [row[0] for row in self._scan(*of_people([person]))]
        return sorted(self.many(places), key=lambda event: event.seq)

    def people(self) -> set[str]:
        """Return the names of all people for whom there is a decision, or about whose style something was said by
        hand."""
        query = "SELECT DISTINCT subject FROM event WHERE kind IN ('decision', 'style') AND subject IS NOT NULL"
        return {name for [name] in self._scan(query)}

    def unseen_since(self, time: int, own: str) -> list[str]:
        """Return the names of all people, sorted, of whom every event is older than `time` (microseconds since 1970):
        decisions for them, what was said by hand about their style, and feedback on decisions.

        Feedback whose id begins with `own` does not count: the loop gave it itself."""
        old = "FROM event WHERE kind IN ('decision', 'style') AND subject IS NOT NULL"
        people = {name for [name] in self._scan(f"SELECT subject {old} GROUP BY subject HAVING max(time) < ?", [time])}
        if people:
            last = self._scan(f"SELECT coalesce(max(seq), 0) {old} AND time < ?", [time])[0][0]
            query = "SELECT DISTINCT target FROM event WHERE +kind = 'feedback' AND time >= ? AND target <= ?"
            theirs = "AND substr(id, 1, ?) <> ?"
            answered = [target for [target] in self._scan(f"{query} {theirs}", [time, last, len(own), own])]
            people -= {event.subject for event in self.many(answered) if event.subject is not None}
        return sorted(people)

    def counts(self) -> dict[str, int]:
        """Return the number of events of each kind ("decision", "feedback", ...): {kind: number}."""
        return dict(self._scan("SELECT kind, count(*) FROM event GROUP BY kind ORDER BY kind"))

    def problems(self) -> list[str]:
        """Return what is wrong with the log, a sentence each; [] if nothing is. The whole log is read."""
        found = self.store.problems()
        for row in self._pages(f"SELECT {COLUMNS} FROM event WHERE seq > ? ORDER BY seq LIMIT 5000", [], -(2**63)):
            try:
                self._event(row)
            except ValueError as error:
                found.append(str(error))
        lost = self._scan(
            "SELECT count(*) FROM event e WHERE target IS NOT NULL "
            "AND NOT EXISTS (SELECT 1 FROM event t WHERE t.seq = e.target)"
        )
        if lost[0][0]:
            are = "event is" if lost[0][0] == 1 else "events are"
            found.append(f"{lost[0][0]} {are} about an event that is not there")
        return found
