"""Storage: how a database file is created, opened, checked, migrated and written, and what its errors mean.

The logs of loops and the keys of a server are kept through this package, and nothing else opens a database. Each says
what its file holds (`Schema`) and speaks SQL through `Database`; `sqlite.py` is the only module that knows SQLite.
"""

from heedful.storage.errors import Busy, Closed, Damaged, Moved
from heedful.storage.sqlite import WAIT, Connection, Database, Schema

__all__ = ["WAIT", "Busy", "Closed", "Connection", "Damaged", "Database", "Moved", "Schema"]
