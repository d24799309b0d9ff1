"""Storage: SQLite files and PostgreSQL databases; opening, tables, transactions, and what went wrong.

The logs of loops and the keys of a server are stored through this package; no other package opens a database. Each of
them describes its tables and runs its SQL on connections from here. `sqlite.py` is the only module that knows SQLite,
`postgres.py` the only one that knows psycopg. This module imports neither, so that a command that opens nothing loads
nothing.
"""

from heedful.storage.address import Address, Place, is_address, place_of
from heedful.storage.errors import Busy, Closed, Damaged, Moved, Newer, OutOfConnections, Owned, Unreachable

__all__ = [
    "Address",
    "Busy",
    "Closed",
    "Damaged",
    "Moved",
    "Newer",
    "OutOfConnections",
    "Owned",
    "Place",
    "Unreachable",
    "is_address",
    "place_of",
]
