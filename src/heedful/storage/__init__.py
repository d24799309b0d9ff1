"""Storage: create, open, check, migrate and write SQLite files, and say what went wrong.

The logs of loops and the keys of a server are stored through this package; no other package opens a database. Each of
them describes its tables (`Schema`) and runs its SQL on the connections of a `Database`. `sqlite.py` is the only module
that knows SQLite.
"""

from heedful.storage.errors import Busy, Closed, Damaged, Moved
from heedful.storage.sqlite import WAIT, Connection, Database, Schema

__all__ = ["WAIT", "Busy", "Closed", "Connection", "Damaged", "Database", "Moved", "Schema"]
