"""The server's log. What one broken file or full disk makes every request say is counted, not repeated."""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback

QUIET = 60.0
"""Seconds in which equal lines are logged once."""

MOST = 1000
"""The number of different lines from which on those that were logged longer than `QUIET` seconds ago are forgotten."""

log = logging.getLogger("heedful.server")

_logged: dict[tuple[object, ...], tuple[float, int]] = {}  # line -> (when it was logged, how many came since)
_lock = threading.Lock()


def _is_new(record: logging.LogRecord) -> bool:
    """Return whether to log `record`; if an equal line was logged within `QUIET` seconds, the next one counts it.

    Lines are equal that name one `cause` (in `extra`), or that have one text, level and error, raised at one place."""
    text = record.getMessage()
    line: tuple[object, ...] = record.levelno, getattr(record, "cause", text)
    if record.exc_info:
        error, raised = record.exc_info[1], traceback.extract_tb(record.exc_info[2])[-1:]
        line = *line, type(error), str(error), *((frame.filename, frame.lineno) for frame in raised)
    now = time.monotonic()
    with _lock:
        at, more = _logged.get(line, (-QUIET, 0))
        if now - at < QUIET:
            _logged[line] = at, more + 1
            return False
        if len(_logged) >= MOST:
            for old in [old for old, (at, _) in _logged.items() if now - at >= QUIET]:
                del _logged[old]
        _logged[line] = now, 0
    if more:
        record.msg, record.args = f"{text} (and {more:,} more since the last such line)", ()
    return True


log.addFilter(_is_new)


def write_log() -> None:
    """Write the log of this process to stderr, with the time and the level."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
