"""The tables of a PostgreSQL database with loops and of its server (keys, sessions, links, audit log), which SQLite has
in a file of its own."""

from __future__ import annotations

PARTITIONS = 64
"""How many tables the events of all loops are spread over, by loop: one for each loop would be too many for a database
with thousands of loops, and a single one would be written anew as a whole when a person is forgotten."""


SERVER_TABLES = (
    """CREATE TABLE keys (
        id INTEGER NOT NULL,
        prefix VARCHAR(11) NOT NULL,
        name VARCHAR(200) NOT NULL,
        tenant VARCHAR(40) NOT NULL,
        scopes VARCHAR(200) NOT NULL,
        rate FLOAT,
        digest BLOB NOT NULL,
        created BIGINT NOT NULL,
        revoked BIGINT,
        expires BIGINT,
        used BIGINT,
        PRIMARY KEY (id),
        UNIQUE (prefix),
        UNIQUE (digest)
    )""",
    """CREATE TABLE sessions (
        digest BLOB NOT NULL,
        prefix VARCHAR(11) NOT NULL,
        ends BIGINT NOT NULL,
        PRIMARY KEY (digest)
    )""",
    """CREATE TABLE links (
        id INTEGER NOT NULL,
        handle VARCHAR(8) NOT NULL,
        digest BLOB NOT NULL,
        tenant VARCHAR(40) NOT NULL,
        loop VARCHAR(100) NOT NULL,
        founded BIGINT NOT NULL,
        segment VARCHAR(60) NOT NULL,
        created BIGINT NOT NULL,
        ends BIGINT NOT NULL,
        revoked BIGINT,
        secret BLOB NOT NULL,
        most INTEGER NOT NULL,
        begun INTEGER NOT NULL,
        shows BOOLEAN DEFAULT '0' NOT NULL,
        PRIMARY KEY (id),
        UNIQUE (handle),
        UNIQUE (digest)
    )""",
    """CREATE TABLE audit (
        id INTEGER NOT NULL,
        time BIGINT NOT NULL,
        prefix VARCHAR(11) NOT NULL,
        tenant VARCHAR(40) NOT NULL,
        action VARCHAR(20) NOT NULL,
        loop VARCHAR(100) NOT NULL,
        about VARCHAR(11) NOT NULL,
        request VARCHAR(100) NOT NULL,
        PRIMARY KEY (id)
    )""",
)
"""The tables of a server in words of SQLite. Ids are in the order of creation, digests are SHA-256 (of a key, a
session's token, a link's token), times are microseconds since 1970, UTC; scopes are words separated by spaces, a rate
is in requests per second. `keys.used` is when a key was last used. `links.founded` is when the loop was created:
another loop of the same name is another study. `audit` has what was done with the keys
(`heedful.results.audit.Act`)."""


def _of_postgres(table: str) -> str:
    """Return the SQL statement `table`, one of SERVER_TABLES, in words of PostgreSQL."""
    words = {
        "CREATE TABLE ": "CREATE TABLE heedful.",
        "id INTEGER NOT NULL": "id bigint GENERATED ALWAYS AS IDENTITY",
        " BLOB ": " bytea ",
    }
    for word, other in words.items():
        table = table.replace(word, other)
    return table


def _refuse(table: str) -> tuple[str, ...]:
    """Return SQL statements that create triggers by which the database refuses to change the table `table`, except to
    forget a person."""
    return (
        f"CREATE TRIGGER {table}_stays BEFORE UPDATE OR DELETE ON heedful.{table} "
        "FOR EACH ROW EXECUTE FUNCTION heedful.refuse()",
        f"CREATE TRIGGER {table}_whole BEFORE TRUNCATE ON heedful.{table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION heedful.refuse()",
    )


TABLES = (
    "CREATE SCHEMA IF NOT EXISTS heedful",
    "CREATE TABLE heedful.version (number integer NOT NULL, changes bigint NOT NULL DEFAULT 0)",
    "INSERT INTO heedful.version VALUES (1)",
    # DELETE is let through where the transaction says which loop it erases; UPDATE and TRUNCATE never are.
    """CREATE FUNCTION heedful.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'DELETE' THEN
            IF current_setting('heedful.erasing', true) = OLD."loop"::text THEN RETURN OLD; END IF;
        END IF;
        RAISE EXCEPTION 'the log is append-only' USING ERRCODE = 'integrity_constraint_violation';
    END $$""",
    """CREATE TABLE heedful.loop (
        number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name text COLLATE "C" NOT NULL UNIQUE,  -- NAME, or TENANT/NAME
        secret text NOT NULL                    -- the key of digests of forgotten ids, and its CRC-32
    )""",
    """CREATE TABLE heedful.lease (
        loop bigint PRIMARY KEY REFERENCES heedful.loop ON DELETE CASCADE,
        owner text NOT NULL,                    -- of the process that writes, drawn when it opened the loop
        address text NOT NULL,                  -- where it answers requests; '' if it does not
        epoch bigint NOT NULL,                  -- how often the loop has changed hands
        expires timestamptz NOT NULL            -- by the clock of the database
    ) WITH (fillfactor = 20)""",
    """CREATE TABLE heedful.event (
        loop bigint NOT NULL,
        seq bigint NOT NULL,
        kind text COLLATE "C" NOT NULL,
        id text COLLATE "C" NOT NULL,
        time bigint NOT NULL,
        subject text COLLATE "C",
        target bigint,
        version bigint NOT NULL,
        payload text NOT NULL,
        arrays bytea,
        checked bigint NOT NULL,
        PRIMARY KEY (loop, seq),
        UNIQUE (loop, kind, id)
    ) PARTITION BY HASH (loop)""",
    *(
        f"CREATE TABLE heedful.event_{i} PARTITION OF heedful.event "
        f"FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {i})"
        for i in range(PARTITIONS)
    ),
    "CREATE INDEX event_subject ON heedful.event (loop, kind, subject, seq) WHERE subject IS NOT NULL",
    """CREATE TABLE heedful.forgotten (
        loop bigint NOT NULL,
        digest text COLLATE "C" NOT NULL,
        seq bigint NOT NULL,
        PRIMARY KEY (loop, digest)
    )""",
    *_refuse("event"),
    *_refuse("forgotten"),
    """CREATE TABLE heedful.snapshot (
        loop bigint NOT NULL REFERENCES heedful.loop ON DELETE CASCADE,
        position bigint NOT NULL,
        content bytea NOT NULL,
        PRIMARY KEY (loop, position)
    )""",
    "ALTER TABLE heedful.snapshot ALTER content SET STORAGE EXTERNAL",
    """CREATE TABLE heedful.server (
        address text PRIMARY KEY,               -- where other servers pass requests on to it
        expires timestamptz NOT NULL,           -- when it is gone if it does not say again that it is there
        ready bigint[] NOT NULL                 -- the loops that it follows and should own
    ) WITH (fillfactor = 20)""",
    *map(_of_postgres, SERVER_TABLES),
)
"""The SQL statements that create all of it."""

VERSION = 1
"""The number in `heedful.version` of a database with these tables; a database with another one is refused."""
