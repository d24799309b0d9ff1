"""The tables of a log, and the triggers by which the database refuses to change what is in them."""

from __future__ import annotations

from heedful.storage.sqlite import Schema

APPLICATION = 0x68656564
"""The number in the header of the database file that marks a log: "heed" in ASCII."""

# docs/decisions/0005 says what another database spells differently.
TABLES = (
    """CREATE TABLE event (
        seq INTEGER NOT NULL PRIMARY KEY, -- 1, 2, ...: the order of the log; what was forgotten leaves a gap
        kind TEXT NOT NULL,               -- loop, item, decision, activate, feedback, undo, forget, erased, export
        id TEXT NOT NULL,                 -- the caller's event id
        time BIGINT NOT NULL,             -- microseconds since 1970, UTC, by the clock of the writer
        subject TEXT,                     -- the person of a decision, the name of an item
        target BIGINT,                    -- the decision a feedback answers, the event an undo takes back
        version BIGINT NOT NULL,          -- the model's version when the event came
        payload TEXT NOT NULL,            -- JSON
        arrays BLOB,                      -- float32 features, little-endian
        checked BIGINT NOT NULL,          -- CRC-32 of all that stands before: a flipped bit is found
        UNIQUE (kind, id)
    )""",
    "CREATE INDEX event_subject ON event (kind, subject, seq) WHERE subject IS NOT NULL",
    "CREATE TABLE forgotten (digest TEXT NOT NULL PRIMARY KEY, seq BIGINT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE secret (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
)

_REFUSE = "SELECT RAISE(ABORT, 'the log is append-only')"
# INSERT OR REPLACE deletes without firing a DELETE trigger, so an insertion in place of a row is refused, too.
TRIGGERS = tuple(
    (f"{table}_{name}", f"CREATE TRIGGER {table}_{name} BEFORE {act} ON {table} {when} BEGIN {_REFUSE}; END")
    for table, taken in (
        ("event", ("seq = NEW.seq", "kind = NEW.kind AND id = NEW.id")),
        ("forgotten", ("digest = NEW.digest",)),
        ("secret", ("name = NEW.name",)),
    )
    for name, act, when in (
        ("keeps", "UPDATE", ""),
        ("stays", "DELETE", ""),
        ("adds", "INSERT", f"WHEN {' OR '.join([f'EXISTS (SELECT 1 FROM {table} WHERE {same})' for same in taken])}"),
    )
)
SCHEMA = Schema("log", TABLES, TRIGGERS, APPLICATION)
CACHE = "cache_size = -65536"
"""64 MB: the indices of a few million events."""
PRAGMAS = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "fullfsync = ON",
    "secure_delete = ON",
    CACHE,
    "wal_autocheckpoint = 8192",  # 32 MB: ids are random, so pages change often
)
