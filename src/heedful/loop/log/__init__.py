"""The log: what happened, in the order in which it happened, in a database that refuses to change it.

One table of events with an increasing sequence number. Triggers of the database refuse UPDATE and DELETE, whoever asks;
the one way to take something out is `Log.erase`, which forgets a person, says so in the log, and leaves it to
`Log.finish_erasing` to rewrite the file.

`Event` is a row, `Log` the file: `file` opens it and commits, `reader` reads, `log` appends and forgets. The package
knows nothing of learners: `heedful.loop` says what the events mean.
"""

from heedful.core.retractions import Retractions
from heedful.loop.log.event import Event, checksum, now
from heedful.loop.log.log import Log
from heedful.loop.log.retractions import rollback_event, rollback_target

__all__ = ["Event", "Log", "Retractions", "checksum", "now", "rollback_event", "rollback_target"]
