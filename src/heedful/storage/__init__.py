"""Storage: SQLite files and PostgreSQL databases; opening, tables, transactions, and what went wrong.

The logs of loops and the keys of a server are stored through this package; no other package opens a database. Each of
them describes its tables and runs its SQL on connections from here. `sqlite.py` is the only module that knows SQLite,
`postgres.py` the only one that knows psycopg, which is imported when a PostgreSQL database is used.
"""

from heedful.storage.address import Address, Place, is_address, place_of
from heedful.storage.errors import Busy, Closed, Damaged, Moved, Owned, Unreachable
from heedful.storage.sqlite import WAIT, Connection, Database, Schema

__all__ = [
    "WAIT",
    "Address",
    "Busy",
    "Closed",
    "Connection",
    "Damaged",
    "Database",
    "Moved",
    "Owned",
    "Place",
    "Schema",
    "Unreachable",
    "is_address",
    "place_of",
]
