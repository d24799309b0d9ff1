"""The server's log. What one broken file or full disk makes every request say is counted, not repeated. Each line says
which request it came from, and never whom that was about."""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from contextvars import ContextVar
from datetime import UTC, datetime

import msgspec

from heedful.storage.address import NAME

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


class RequestLabels:
    """What the lines of the log say of the request that they came from."""

    __slots__ = ("key", "loop", "request", "tenant")

    def __init__(self, request: str) -> None:
        self.request = request
        """its id"""
        self.tenant = self.key = ""
        """the tenant and the prefix of its key, once that is known"""
        self.loop = ""
        """the loop in its path, as it came; lines have it only if it is a name"""

    def plain(self) -> dict[str, str]:
        """Return what is known, by name."""
        loop = self.loop if NAME.fullmatch(self.loop) else ""
        known = {"request": self.request, "tenant": self.tenant, "key": self.key, "loop": loop}
        return {name: value for name, value in known.items() if value}


_labels: ContextVar[RequestLabels | None] = ContextVar("labels", default=None)


def begin_request(headers: Sequence[tuple[bytes, bytes]]) -> None:
    """Let the lines of the log come from the request with these `headers` from now on, in this task and in what it
    begins."""
    for name, value in reversed(headers):  # the server itself puts it last
        if name == b"x-request-id":
            _labels.set(RequestLabels(value.decode("latin-1")))
            return


def label_request(tenant: str, key: str, loop: str) -> None:
    """Note whose request it is: the tenant and the prefix of the key, and the `loop` in its path."""
    if (labels := _labels.get()) is not None:
        labels.tenant, labels.key, labels.loop = tenant, key, loop


def request_id() -> str:
    """Return the id of the request that is handled now; "" if none is."""
    labels = _labels.get()
    return "" if labels is None else labels.request


class _Lines(logging.Formatter):
    """Lines for people: time, level, text, and what is known of the request."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        line, labels = super().formatMessage(record), _labels.get()
        known = {} if labels is None else labels.plain()
        return f"{line} [{' '.join(f'{name}={value}' for name, value in known.items())}]" if known else line


class _Json(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        labels = _labels.get()
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "message": record.getMessage(),
            **({} if labels is None else labels.plain()),
            **({} if not record.exc_info else {"error": self.formatException(record.exc_info)}),
        }
        return msgspec.json.encode(line).decode()


def write_log(json: bool = False) -> None:
    """Write the log of this process to stderr: as lines of text, or of `json`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if json else _Lines())
    logging.basicConfig(handlers=[handler], level=logging.INFO)
